"""How samples share what is known exactly of tasks."""

from profile_sampling._data.values import (
    DELAY, FUNCTION_KINDS, LOOP_WAIT, OFF_CLOCKS, STATES, TASK, WALL)

# Of the counters of a class, behind finished and cancelled.
_RUNNING = 2
_IN_NO_STEP = OFF_CLOCKS | {STATES.index('custom')}
_NO_FUNCTION = None, '[unsampled]', '', 0, FUNCTION_KINDS.index('pseudo')


def share(raw, rows):
    """Return the tables of the core with values of tasks in all *rows*, the
    columns of its samples by name.

    Before that only samples of tasks that wait have time of tasks, and delays
    are proportions.  A class that ran and that no sample is of gets one, which
    comes after all others.
    """
    if not raw['task_classes']:
        return raw      # no task, so no delay
    unsampled = _share_steps(raw, rows)
    _share_delays(rows)
    if unsampled and rows['state']:
        raw = _with_unsampled(raw, rows, unsampled)
    return raw


def _set_parts(column, rows, weights, rest_ns):
    """Set a value of some rows so that they add up to *rest_ns*."""
    rest = sum([weights[row] for row in rows])
    for row in rows:
        part_ns = rest_ns * weights[row] // rest if rest else 0
        column[row] = part_ns
        rest_ns -= part_ns
        rest -= weights[row]


def _share_steps(raw, columns):
    """Set the time of tasks of samples in a step; return {class + 1: what it
    ran} of those that have none."""
    ran = {number: counters[_RUNNING] for number, (_, *counters)
           in enumerate(raw['task_classes'], 1)
           if counters and counters[_RUNNING]}
    classes = [None if is_work or task_class not in ran else task_class
               for *_, task_class, is_work in raw['labels']]
    states, walls = columns['state'], columns[WALL.name]
    rows = {}
    for row, its_labels in enumerate(columns['labels']):
        task_class = classes[its_labels]
        if task_class and walls[row] and states[row] not in _IN_NO_STEP:
            rows.setdefault(task_class, []).append(row)
    for task_class, its_rows in rows.items():
        _set_parts(columns[TASK.name], its_rows, walls, ran.pop(task_class))
    return ran


def _share_delays(columns):
    """Set how long tasks waited for their loop because of each sample."""
    states, tasks = columns['state'], columns[TASK.name]
    delays = list(columns[DELAY.name])
    rows = {}
    for row, thread in enumerate(columns['thread']):
        rows.setdefault(thread, []).append(row)
    for its_rows in rows.values():
        loop_wait_ns = sum([tasks[row] for row in its_rows
                            if states[row] == LOOP_WAIT])
        # If none is charged with it, all are.
        charged = any([delays[row] for row in its_rows])
        _set_parts(columns[DELAY.name], its_rows,
                   delays if charged else columns[WALL.name], loop_wait_ns)


def _with_unsampled(raw, columns, ran):
    """Add a sample, on a thread that there is, for each of these classes."""
    # Few profiles need it, and it imports a lot.
    from array import array

    threads, its_labels = columns['thread'], columns['labels']
    threads_of_classes = {raw['labels'][row][4]: thread for row, thread
                          in zip(its_labels, threads)}
    functions = [*raw['functions'], _NO_FUNCTION]
    frames = array('i', raw['frames'])
    nodes = array('I', raw['nodes'])
    labels = list(raw['labels'])
    for task_class, ran_ns in ran.items():
        function = raw['task_classes'][task_class - 1][0]
        node = 0
        for number in function, len(functions) - 1:
            nodes.extend((node, len(frames) // 5))
            frames.extend((number, 0, 0, -1, 0))
            node = len(nodes) // 2 - 1
        thread = threads_of_classes.get(task_class, threads[0])
        row = {'stack': node, 'thread': thread, 'labels': len(labels),
               'state': STATES.index('unsampled'), TASK.name: ran_ns}
        for name, column in columns.items():
            columns[name] = array('q', column)
            columns[name].append(row.get(name, 0))
        labels.append((0, None, None, 0, task_class, 0))
    return raw | {'functions': functions, 'frames': frames.tobytes(),
                  'nodes': nodes.tobytes(), 'labels': labels}
