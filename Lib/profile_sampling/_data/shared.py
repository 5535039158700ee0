"""How samples share what is known exactly of tasks.

This file owns that arithmetic: what the tasks of a class ran is shared by the
class's samples, as wall time is, and all loop wait of a thread by the thread's
samples, as they caused it.  It must not know where samples come from.
"""

from profile_sampling._data.values import (
    DELAY, FUNCTION_KINDS, LOOP_WAIT, NOBODY, OFF_CLOCKS, STATES, TASK, WALL)

# Columns of the key of a sample as the core gives it.
_THREAD, _LABELS, _STATE, _KEY_COLUMNS = 1, 2, 3, 6
# Of the counters of a class, behind finished and cancelled.
_RUNNING = 2
_IN_NO_STEP = OFF_CLOCKS | {STATES.index('custom')}
_NO_FUNCTION = None, '[unsampled]', '', 0, FUNCTION_KINDS.index('pseudo')


def share(raw):
    """Return the tables of the core with values of tasks in all samples.

    Before that only samples of tasks that wait have time of tasks, and delays
    are proportions.  A class that ran and that no sample is of gets one, which
    comes after all others.
    """
    if not raw['task_classes']:
        return raw      # no task, so no delay
    samples = _Samples(raw)
    unsampled = _share_steps(raw, samples)
    _share_delays(samples)
    raw = raw | {'samples': samples.numbers.tobytes()}
    if unsampled and samples.numbers:
        raw = _with_unsampled(raw, samples, unsampled)
    return raw


class _Samples:
    """The packed samples, to be changed."""

    def __init__(self, raw):
        self.numbers = memoryview(bytearray(raw['samples'])).cast('q')
        types = list(raw['measured'])
        self.width = _KEY_COLUMNS + len(types)
        self.wall, self.task, self.delay = [
            _KEY_COLUMNS + types.index((value_type.kind, value_type.unit))
            for value_type in (WALL, TASK, DELAY)]

    def columns(self, *numbers):
        return [self.numbers[number::self.width].tolist()
                for number in numbers]

    def set_parts(self, column, rows, weights, rest_ns):
        """Set a value of some rows so that they add up to *rest_ns*."""
        rest = sum([weights[row] for row in rows])
        for row in rows:
            part_ns = rest_ns * weights[row] // rest if rest else 0
            self.numbers[row * self.width + column] = part_ns
            rest_ns -= part_ns
            rest -= weights[row]


def _share_steps(raw, samples):
    """Set the time of tasks of samples in a step; return {class + 1: what it
    ran} of those that have none."""
    ran = {number: counters[_RUNNING] for number, (_, *counters)
           in enumerate(raw['task_classes'], 1)
           if counters and counters[_RUNNING]}
    classes = [None if is_work or task_class not in ran else task_class
               for *_, task_class, is_work in raw['labels']]
    labels, states, walls = samples.columns(_LABELS, _STATE, samples.wall)
    rows = {}
    for row, its_labels in enumerate(labels):
        task_class = classes[its_labels]
        if task_class and walls[row] and states[row] not in _IN_NO_STEP:
            rows.setdefault(task_class, []).append(row)
    for task_class, its_rows in rows.items():
        samples.set_parts(samples.task, its_rows, walls, ran.pop(task_class))
    return ran


def _share_delays(samples):
    """Set how long tasks waited for their loop because of each sample."""
    threads, states, walls, tasks, delays = samples.columns(
        _THREAD, _STATE, samples.wall, samples.task, samples.delay)
    rows = {}
    for row, thread in enumerate(threads):
        rows.setdefault(thread, []).append(row)
    for its_rows in rows.values():
        loop_wait_ns = sum([tasks[row] for row in its_rows
                            if states[row] == LOOP_WAIT])
        # If none is charged with it, all are.
        charged = any([delays[row] for row in its_rows])
        samples.set_parts(samples.delay, its_rows,
                          delays if charged else walls, loop_wait_ns)


def _with_unsampled(raw, samples, ran):
    """Add a sample, on a thread that there is, for each of these classes."""
    # Few profiles need it, and it imports a lot.
    from array import array

    threads, its_labels = samples.columns(_THREAD, _LABELS)
    threads_of_classes = {raw['labels'][row][4]: thread for row, thread
                          in zip(its_labels, threads)}
    functions = [*raw['functions'], _NO_FUNCTION]
    frames = array('i', raw['frames'])
    nodes = array('I', raw['nodes'])
    labels = list(raw['labels'])
    added = array('q')
    for task_class, ran_ns in ran.items():
        function = raw['task_classes'][task_class - 1][0]
        node = 0
        for number in function, len(functions) - 1:
            nodes.extend((node, len(frames) // 5))
            frames.extend((number, 0, 0, -1, 0))
            node = len(nodes) // 2 - 1
        thread = threads_of_classes.get(task_class, threads[0])
        row = [node, thread, len(labels), STATES.index('unsampled'), *NOBODY,
               *[0] * (samples.width - _KEY_COLUMNS)]
        row[samples.task] = ran_ns
        added.extend(row)
        labels.append((0, None, None, 0, task_class, 0))
    return raw | {'functions': functions, 'frames': frames.tobytes(),
                  'nodes': nodes.tobytes(), 'labels': labels,
                  'samples': raw['samples'] + added.tobytes()}
