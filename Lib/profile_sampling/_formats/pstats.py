"""Writer of files for pstats, and for what reads its files: SnakeViz,
gprof2dot.

The format is what pstats.Stats.load_stats() takes: a marshalled dict of (file,
line, name): (primitive calls, calls, own time, time, callers), where callers
is a dict of the same without callers.  cProfile's own documentation says no
more; Lib/pstats.py is the definition.

Times are those of what the profile is about, in seconds; values that are no
times are as they are, and what counting calls took is left out.  What is on a
stack more than once, by recursion, counts once, as in cProfile.

Numbers of calls are exact: as in cProfile they are of calls and resumes, a
primitive call is an outermost one, and what was not counted has 0.  If calls
were counted, operators and pseudo-frames are part of the function that they
are in, as there.

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
from profile_sampling._data.shape import shaped
from profile_sampling._data.values import NO_FRAMES, printable

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
    has_calls = tables.counts is not None and tables.counts.has_calls
    if has_calls:
        tables = shaped(tables, fold=('operators', 'pseudo'))
    paths = CallPaths(tables)
    graph = CallGraph(paths, [_key(function) for function, _ in paths.places])
    time = measures(tables)[0]
    own, = paths.self_sums([time.column])
    cum = paths.cumulative(own)
    scale = 1e9 if time.unit == 'nanoseconds' else 1
    rows = _rows(graph.of_functions_alone(own), graph.of_functions(cum), scale)
    callers = [{} for _ in rows]
    for (caller, called), row in zip(graph.calls, _rows(
            graph.of_calls_alone(own), graph.of_calls(cum), scale)):
        callers[called][graph.keys[caller]] = row
    found = {key: (*row, _in_order(its_callers)) for key, row, its_callers
             in zip(graph.keys, rows, callers)}
    if has_calls:
        found = _counted(found, tables.counts.calls)
    ns = own[ROOT]
    # pstats refuses a file without any row.
    if ns or not found:
        # A function may have this name.
        known = found.get(_NO_FRAMES, (0, 0, 0, 0, {}))
        found[_NO_FRAMES] = (*known[:2], known[2] + ns / scale,
                             known[3] + ns / scale, known[4])
    return _in_order(found)


def _counted(found, calls):
    """Return the same rows with numbers of calls, and those of what was
    called and not sampled."""
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


def _rows(own, cum, scale):
    return [(0, 0, its_own / scale, its_cum / scale)
            for its_own, its_cum in zip(own, cum)]


def _in_order(table):
    return {key: table[key] for key in sorted(table)}


def _key(function):
    """What pstats calls a function: its file, line and name."""
    if function.kind == 'python':
        return (printable(function.filename), function.first_line,
                printable(function.qualname))
    # It is shown in braces, as cProfile's C functions are.
    return *_NOWHERE, (printable(function.name) if function.kind == 'pseudo'
                       else f'<{printable(_c_name(function))}>')


def _c_name(function):
    """As cProfile calls C functions; types that are called, which it leaves
    out, cannot all be told from functions."""
    owner, dot, name = function.name.rpartition('.')
    if function.kind != 'C' or not dot:
        return function.name
    if '.' in function.qualname or not function.module:
        return f"method '{name}' of '{owner}' objects"
    return f'built-in method {function.name}'
