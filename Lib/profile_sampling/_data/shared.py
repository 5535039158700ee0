"""How samples share what is known exactly of tasks.

This file owns that arithmetic: what the tasks of a class ran is shared by the
class's samples, as wall time is, and all loop wait of a thread by the thread's
samples, as they caused it.  It must not know where samples come from.
"""

from profile_sampling._data.values import (
    FUNCTION_KINDS, LOOP_WAIT, NOBODY, OFF_CLOCKS, STATES)

# Columns of samples as the core gives them.
_THREAD, _LABELS, _STATE = 1, 2, 3
_WALL, _TASK, _DELAY = 8, 9, 10
_WIDTH = 11
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
    samples = memoryview(bytearray(raw['samples'])).cast('q')
    unsampled = _share_steps(raw, samples)
    _share_delays(samples)
    raw = raw | {'samples': samples.tobytes()}
    return _with_unsampled(raw, unsampled) if samples and unsampled else raw


def _share_steps(raw, samples):
    """Set the time of tasks of samples in a step; return {class + 1: what it
    ran} of those that have none."""
    ran = {number: counters[_RUNNING] for number, (_, *counters)
           in enumerate(raw['task_classes'], 1)
           if counters and counters[_RUNNING]}
    classes = [None if is_work or task_class not in ran else task_class
               for *_, task_class, is_work in raw['labels']]
    labels_rows, states, walls = _columns(samples, _LABELS, _STATE, _WALL)
    rows = {}
    for row, (labels, state, wall_ns) in enumerate(zip(
            labels_rows, states, walls)):
        if classes[labels] and wall_ns and state not in _IN_NO_STEP:
            rows.setdefault(classes[labels], []).append(row)
    for task_class, its_rows in rows.items():
        _set_parts(samples, _TASK, its_rows, walls, ran.pop(task_class))
    return ran


def _share_delays(samples):
    """Set how long tasks waited for their loop because of each sample."""
    threads, states, walls, tasks, delays = _columns(
        samples, _THREAD, _STATE, _WALL, _TASK, _DELAY)
    rows = {}
    for row, thread in enumerate(threads):
        rows.setdefault(thread, []).append(row)
    for its_rows in rows.values():
        loop_wait_ns = sum([tasks[row] for row in its_rows
                            if states[row] == LOOP_WAIT])
        # If none is charged with it, all are.
        charged = any([delays[row] for row in its_rows])
        _set_parts(samples, _DELAY, its_rows, delays if charged else walls,
                   loop_wait_ns)


def _columns(samples, *columns):
    return [samples[column::_WIDTH].tolist() for column in columns]


def _set_parts(samples, column, rows, weights, rest_ns):
    """Set a value of some samples so that they add up to *rest_ns*."""
    rest = sum([weights[row] for row in rows])
    for row in rows:
        part_ns = rest_ns * weights[row] // rest if rest else 0
        samples[row * _WIDTH + column] = part_ns
        rest_ns -= part_ns
        rest -= weights[row]


def _with_unsampled(raw, ran):
    """Add a sample, on a thread that there is, for each of these classes."""
    # Few profiles need it, and it imports a lot.
    from array import array

    samples = array('q', raw['samples'])
    threads = {raw['labels'][labels][4]: thread for labels, thread
               in zip(samples[_LABELS::_WIDTH], samples[_THREAD::_WIDTH])}
    functions = [*raw['functions'], _NO_FUNCTION]
    frames = array('i', raw['frames'])
    nodes = array('I', raw['nodes'])
    labels = list(raw['labels'])
    for task_class, ran_ns in ran.items():
        node = 0
        for function in raw['task_classes'][task_class - 1][0], -1:
            nodes.extend((node, len(frames) // 5))
            frames.extend((function % len(functions), 0, 0, -1, 0))
            node = len(nodes) // 2 - 1
        thread = threads.get(task_class, samples[_THREAD])
        samples.extend((node, thread, len(labels), STATES.index('unsampled'),
                        *NOBODY, 0, 0, 0, ran_ns, 0))
        labels.append((0, None, None, 0, task_class, 0))
    return raw | {'functions': functions, 'frames': frames.tobytes(),
                  'nodes': nodes.tobytes(), 'labels': labels,
                  'samples': samples.tobytes()}
