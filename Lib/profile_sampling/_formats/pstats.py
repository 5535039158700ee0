"""Writer of files for pstats, and for what reads its files: SnakeViz,
gprof2dot.

The format is what pstats.Stats.load_stats() takes: a marshalled dict of (file,
line, name): (primitive calls, calls, own time, time, callers), where callers
is a dict of the same without callers.  cProfile's own documentation says no
more; Lib/pstats.py is the definition.

Times are those of what the profile is about, in seconds; values that are no
times are as they are, and what counting calls took is left out.  What is on a stack more than once, by recursion, counts
once, as in cProfile.

If calls were counted, their number is exact: as in cProfile it is that of
calls and resumes, a primitive call is an outermost one, and what was not
counted has 0.  A sampler alone knows none: then it is that of the samples with
the function on the stack, and "per call" is per sample.

What gets lost: stacks (of a function only its direct callers are kept), the
other types of values, lines, columns and instructions, threads, states but
for pseudo-frames, labels, tasks, who held the GIL and counters.
"""

import marshal

from profile_sampling._data import counting_cost
from profile_sampling._data.call_graph import CallGraph
from profile_sampling._data.call_paths import ROOT, CallPaths
from profile_sampling._data.measures import measures
from profile_sampling._data.on_clocks import on_clocks
from profile_sampling._data.values import COUNT, NO_FRAMES, printable

# Without references between objects: what these are depends on how often an
# object is used elsewhere.
_VERSION = 2
_NOWHERE = '~', 0
_NO_FRAMES = *_NOWHERE, NO_FRAMES


def encode(tables):
    """Return the bytes of the file of a profile."""
    return marshal.dumps(stats(tables), _VERSION)


def stats(tables):
    """Return the dict that is in the file."""
    tables, _ = counting_cost.without(on_clocks(tables))
    paths = CallPaths(tables)
    graph = CallGraph(paths, [_key(function) for function, _ in paths.places])
    all_measures = measures(tables)
    time = all_measures[0]
    own, = paths.self_sums([time.column])
    cum = paths.cumulative(own)
    # Where it is not known how many samples there are, it is 0.
    own_count, = paths.self_sums([next(
        (measure.column for measure in all_measures
         if measure.name == COUNT.name), ())])
    count = paths.cumulative(own_count)
    scale = 1e9 if time.unit == 'nanoseconds' else 1
    rows = _rows(graph.of_functions(count), graph.of_functions_alone(own),
                 graph.of_functions(cum), scale)
    callers = [{} for _ in rows]
    for (caller, called), row in zip(graph.calls, _rows(
            graph.of_calls(count), graph.of_calls_alone(own),
            graph.of_calls(cum), scale)):
        callers[called][graph.keys[caller]] = row
    found = {key: (*row, _in_order(its_callers)) for key, row, its_callers
             in zip(graph.keys, rows, callers)}
    ns, n = own[ROOT], own_count[ROOT]
    if tables.counts is not None and tables.counts.has_calls:
        found, n = _counted(found, tables.counts.calls), 0
    # pstats refuses a file without any row.
    if ns or n or not found:
        # A function may have this name.
        known = found.get(_NO_FRAMES, (0, 0, 0, 0, {}))
        found[_NO_FRAMES] = (known[0] + n, known[1] + n, known[2] + ns / scale,
                             known[3] + ns / scale, known[4])
    return _in_order(found)


def _counted(found, calls):
    """Return the same rows with exact numbers of calls in place of samples,
    and those of what was called and not sampled."""
    numbers, of_callers = {}, {}
    for row in calls:
        key = _key(row.callee)
        primitive = (row.calls + row.resumes
                     - row.recursive - row.recursive_resumes)
        pair = row.calls + row.resumes, primitive
        numbers[key] = _added(numbers.get(key), pair)
        if row.caller is not None:
            its = of_callers.setdefault(key, {})
            caller = _key(row.caller)
            its[caller] = _added(its.get(caller), pair)
            # pstats wants a row of each caller.
            numbers.setdefault(caller, (0, 0))
    result = {}
    for key in found.keys() | numbers.keys():
        _, _, own, cum, callers = found.get(key, (0, 0, 0, 0, {}))
        number, primitive = numbers.get(key, (0, 0))
        counted = of_callers.get(key, {})
        # Here cProfile has all calls first.
        callers = {caller: (*counted.get(caller, (0, 0)),
                            *callers.get(caller, (0, 0, 0, 0))[2:])
                   for caller in callers.keys() | counted.keys()}
        result[key] = primitive, number, own, cum, _in_order(callers)
    return result


def _added(one, other):
    return other if one is None else (one[0] + other[0], one[1] + other[1])


def _rows(counts, own, cum, scale):
    return [(count, count, its_own / scale, its_cum / scale)
            for count, its_own, its_cum in zip(counts, own, cum)]


def _in_order(table):
    return {key: table[key] for key in sorted(table)}


def _key(function):
    """What pstats calls a function: its file, line and name."""
    if function.kind == 'python':
        return (printable(function.filename), function.first_line,
                printable(function.qualname))
    name = printable(function.name)
    # It is shown in braces, as cProfile's C functions are.
    return *_NOWHERE, name if function.kind == 'pseudo' else f'<{name}>'
