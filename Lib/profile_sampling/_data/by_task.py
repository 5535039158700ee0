"""What the lives of tasks were spent in, and who held their loop.

A task is running while a thread runs one of its steps, whatever that thread
does; it waits for its loop, or awaits something, while none does.
"""

from profile_sampling._data import by_label, checks, origins
from profile_sampling._data.label_names import (
    ANSWERED, TASK_CLASS, key_of, label_of)
from profile_sampling._data.rows import (
    AwaitedRow, LoopHolderRow, RequestTimes, SlowRequestsRow, TaskLabelRow,
    TaskRow, function_rank)
from profile_sampling._data.tables import FRAME_COLUMNS, NODE_COLUMNS
from profile_sampling._data.values import (
    AWAITING, DELAY, LOOP_WAIT, NOT_KNOWN, TASK, WALL)

_P50, _P99 = 0.5, 0.99
# The share of requests that are called slow; at least one.
SLOWEST = 0.01
# What calls the function that an executor was given, and what awaits it.
_WORKERS = frozenset({
    'anyio._backends._asyncio.WorkerThread.run',
    'concurrent.futures.thread._WorkItem.run'})
_AWAIT_THREADS = frozenset({
    'anyio._backends._asyncio.AsyncIOBackend.run_sync_in_worker_thread',
    'asyncio.threads.to_thread'})
# Where the sums of a key are.
_RUNNING, _LOOP_WAIT, _AWAITING = range(3)


def has_tasks(tables):
    return TASK in tables.value_types


def life(tables):
    """Return the (running, loop wait, awaiting) of all tasks."""
    sums, _ = _lives(tables, [None] * len(tables.labels))
    return tuple(sums.get(None, (0, 0, 0)))


def finished(tables):
    """Return how many tasks have ended; None: it is not known of a part."""
    if not tables.task_classes or is_part(tables):
        return None
    return sum([row.finished for row in tables.task_classes])


def rows(tables):
    """Return a list of TaskRow; see Profile.tasks()."""
    of_labels = by_label.values(tables.labels, TASK_CLASS)
    sums, awaited = _lives(tables, of_labels)
    counters = _counters_by_name(tables)
    functions = {function.name: function
                 for function in reversed(tables.functions)}
    found = []
    for name in {**sums, **counters}:
        known = counters.get(name)
        function = functions.get(name) if known is None else known.function
        found.append(TaskRow(
            name, function, *sums.get(name, (0, 0, 0)), *_counters(known),
            awaited.get(name, ())))
    return _ranked(found)


def _counters_by_name(tables):
    """Return {name of a function: TaskClass}: functions may share a name."""
    counters = {}
    for row in () if is_part(tables) else tables.task_classes:
        name = row.function.name
        known = counters.get(name)
        counters[name] = row if known is None else known.plus(row)
    return counters


def _counters(known):
    if known is None:
        return (None,) * 8
    lives, longest_ns = known.lives, known.longest_life_ns
    mean_ns = round(known.lives_ns / lives.count) if lives.count else None
    return (known.finished, known.cancelled, known.steps, mean_ns,
            *_shares(lives, longest_ns),
            longest_ns if lives.count else None, known.longest_step_ns)


def _shares(times, longest_ns):
    """Return two quantiles; a bucket may end behind the longest."""
    return [None if ns is None else min(ns, longest_ns)
            for ns in map(times.quantile, (_P50, _P99))]


def rows_of_label(tables, key):
    """Return a list of TaskLabelRow; see Profile.tasks_by()."""
    label = _checked(tables, key)
    latencies = {}
    if not is_part(tables):
        latencies = {row.value: row for row in tables.latencies
                     if row.key == label}
    values = by_label.values(tables.labels, label)
    classes = by_label.values(tables.labels, TASK_CLASS)
    answered = by_label.values(tables.labels, ANSWERED)
    spawned = []
    for value, its_class, later in zip(values, classes, answered):
        known = latencies.get(value)
        roots = () if known is None else known.roots
        # What requests started lives on its own.
        spawned.append(later is not None or bool(
            roots and its_class not in roots))
    sums, awaited = _lives(tables, list(zip(values, spawned)))
    given = _given_to_threads(tables, values)
    found = []
    for value in {**dict.fromkeys([value for value, _ in sums]), **latencies}:
        its_own, others = [sums.get((value, flag), (0, 0, 0))
                           for flag in (False, True)]
        found.append(TaskLabelRow(
            value, *its_own, sum(others), *durations(latencies.get(value)),
            _with_given(awaited.get((value, False), ()), given.get(value))))
    return _ranked(found)


def _checked(tables, key):
    """Return the label of a key; raise ValueError if nothing has it."""
    by_label.check_key(key, sorted({
        *by_label.keys(tables), *[key_of(row.key) for row in tables.latencies]
    }))
    return label_of(key)


def _given_to_threads(tables, values):
    """Return {value of a label: the Function of mine that threads ran most of
    their time for it}: what has been given to an executor."""
    functions, frames = tables.functions, tables.frames_view()
    nodes = tables.nodes_view()
    workers = {number for number, function in enumerate(functions)
               if function.name in _WORKERS}
    if not workers:
        return {}
    origin = origins.of_functions(tables)
    # Parents have smaller numbers.  -1: not below a worker; -2: at it.
    of_node = [-1]
    for parent, frame in zip(nodes[NODE_COLUMNS::NODE_COLUMNS],
                             nodes[NODE_COLUMNS + 1::NODE_COLUMNS]):
        function = frames[FRAME_COLUMNS * frame]
        its = of_node[parent]
        if function in workers:
            its = -2
        elif its == -2 and origin[function] == origins.MINE:
            its = function
        of_node.append(its)
    sums = {}
    for node, labels, ns in zip(tables.column('stack'), tables.column('labels'),
                                tables.value(WALL.name)):
        if of_node[node] >= 0:
            its = sums.setdefault(values[labels], {})
            its[of_node[node]] = its.get(of_node[node], 0) + ns
    return {value: functions[max(its, key=its.get)]
            for value, its in sums.items()}


def _with_given(rows, function):
    """Name what a thread ran in place of the library's function that waits
    for the thread."""
    return tuple([
        AwaitedRow(function, row.awaiting_ns) if function is not None
        and row.function is not None and row.function.name in _AWAIT_THREADS
        else row for row in rows])


def slow_requests(tables, key, share):
    """Return a list of SlowRequestsRow; see Profile.slow_requests()."""
    label = _checked(tables, key)
    checks.share('share', share)
    if is_part(tables):
        return []
    found = [(row.sum_ns, row.value, row.split(share))
             for row in tables.latencies if row.key == label]
    found.sort(key=lambda item: (-item[0], item[1]))
    return [SlowRequestsRow(value, *map(_request_times, halves))
            for _, value, halves in found
            if all([count for count, *_ in halves])]


def _request_times(sums):
    count, *sums = sums
    total, *spent = [round(ns / count) for ns in sums]
    rest = total
    for place, ns in enumerate(spent):
        # To wait for the GIL costs CPU time, too.
        spent[place] = min(ns, rest)
        rest -= spent[place]
    return RequestTimes(count, total, *spent, rest)


def durations(latency):
    """Return count, mean, two quantiles and the longest of a Latency."""
    # A file may say anything.
    if latency is None or not latency.count or not latency.times.count:
        return (None,) * 5
    return (latency.count, round(latency.sum_ns / latency.count),
            *_shares(latency.times, latency.longest_ns), latency.longest_ns)


def _ranked(found):
    found.sort(key=lambda row: (-row.life_ns, row.name is not None,
                                row.name or ''))
    return found


def is_part(tables):
    """Return whether counters, which are of all tasks, are of others, too."""
    return tables.whole_cpu_ns is not None


def _lives(tables, key_of_labels):
    """Return ({key: [running, loop wait, awaiting]}, {key: (AwaitedRow,
    ...)}), by the keys of rows of labels."""
    if not has_tasks(tables):
        return {}, {}
    sums, nodes = {}, {}
    for node, labels, state, ns in zip(
            tables.column('stack'), tables.column('labels'), tables.column('state'),
            tables.value(TASK.name)):
        if not ns:
            continue
        key = key_of_labels[labels]
        if key not in sums:
            sums[key] = [0, 0, 0]
            nodes[key] = {}
        if state == AWAITING:
            sums[key][_AWAITING] += ns
            nodes[key][node] = nodes[key].get(node, 0) + ns
        else:
            sums[key][_LOOP_WAIT if state == LOOP_WAIT else _RUNNING] += ns
    return sums, {key: _awaited(tables, its) for key, its in nodes.items()}


def _awaited(tables, ns_of_node):
    """Return what is awaited at nodes, the longest first."""
    nodes = tables.nodes_view()
    of_frames = tables.frames_view()[0::FRAME_COLUMNS]

    def function_of(node):
        return of_frames[nodes[NODE_COLUMNS * node + 1]] if node else -1

    sums = {}
    for node, ns in ns_of_node.items():
        number = function_of(node)
        # The leaf says that it is awaited, unless such frames are folded.
        if number >= 0 and tables.functions[number].kind == 'pseudo':
            number = function_of(nodes[NODE_COLUMNS * node])
        sums[number] = sums.get(number, 0) + ns
    found = [AwaitedRow(tables.functions[number] if number >= 0 else None, ns)
             for number, ns in sums.items()]
    found.sort(key=lambda row: (-row.awaiting_ns, *function_rank(row.function)))
    return tuple(found)


def holders(tables):
    """Return a list of LoopHolderRow; see Profile.loop_holders()."""
    if DELAY not in tables.value_types:
        return []
    sums = {}
    for (*key, callee), ns in _delays(tables):
        callees = sums.setdefault(tuple(key), {})
        callees[callee] = callees.get(callee, 0) + ns
    found = [LoopHolderRow(name, function, line, _most(callees),
                           sum(callees.values()), is_gil_wait)
             for (is_gil_wait, name, function, line), callees
             in sums.items()]
    found.sort(key=lambda row: (
        -row.delay_ns, *function_rank(row.function), row.line,
        row.task_class or '', row.is_gil_wait))
    return found


def _delays(tables):
    """Iterate over ((is GIL wait, task's class, function, line, callee), ns)
    of all samples that others waited for."""
    classes = by_label.values(tables.labels, TASK_CLASS)
    frames = list(tables.frame_tuples())
    innermost, called = tables.innermost_python()
    for node, labels, holder, ns in zip(
            tables.column('stack'), tables.column('labels'),
            tables.column('holder'),
            tables.value(DELAY.name)):
        if ns and holder:
            held = tables.gil_holder(NOT_KNOWN, holder)
            yield (True, None, held.function, held.line, held.callee), ns
        elif ns:
            yield (False, classes[labels], *_place(
                tables, frames, innermost[node], called[node], node)), ns


def _most(callees):
    """Return who has most of what a place has."""
    return min(callees, key=lambda callee: (-callees[callee],
                                            *function_rank(callee)))


def _place(tables, frames, frame, called, node):
    """Return (function, line, callee) of who runs at a node."""
    functions = tables.functions
    if frame < 0:
        leaf = tables.nodes_view()[NODE_COLUMNS * node + 1]
        return functions[frames[leaf][0]] if node else None, 0, None
    number, line, *_ = frames[frame]
    callee = functions[frames[called][0]] if called >= 0 else None
    return functions[number], line, callee
