"""Lines that call a function, or that it calls from: exact calls beside time.

The caller is a line of Python, whatever C code is between.  A function that is
on a stack more than once is called by the caller of its outermost call, and
calls what its innermost call does, so that times add up to its time.
"""

from operator import add

from profile_sampling._data import match, stacks
from profile_sampling._data.by_state import RUNNING
from profile_sampling._data.counts import ALL, place_key
from profile_sampling._data.tables import FRAME_COLUMNS
from profile_sampling._data.values import COUNT, Value


class CallSite(Value):
    """What one line called.

    caller   the Function; None: no Python called it
    line     of it
    callee   the Function
    calls    how many calls there were; None: they were not counted
    value    of what the profile is about, of these calls
    records  how many samples were taken while they ran
    """

    __slots__ = ('caller', 'line', 'callee', 'calls', 'value', 'records')


def rows(tables, wanted, are_callers):
    """Return a list of CallSite, the most expensive first: of calls of, or by,
    the functions that match."""
    found = {}
    of_samples = _of_samples(tables, wanted, are_callers)
    counts = (tables.value(COUNT.name) if COUNT in tables.value_types
              else [0] * len(tables))
    for pair, state, value, count in zip(
            of_samples, tables.column('state'), tables.own_column, counts):
        if pair is not None:
            caller, line, callee = pair
            row = found.setdefault(
                (place_key(caller), line, place_key(callee)), [pair, None, 0, 0])
            row[2] += value
            row[3] += count if state == RUNNING else 0
    for row in tables.counts.calls:
        its = row.callee if are_callers else row.caller
        if its is not None and wanted.search(its.name):
            key = place_key(row.caller), row.line, place_key(row.callee)
            known = found.setdefault(
                key, [(row.caller, row.line, row.callee), None, 0, 0])
            known[1] = (known[1] or 0) + row.calls
    result = [CallSite(*pair, *more) for pair, *more in found.values()]
    result.sort(key=lambda row: (-row.value, -(row.calls or 0), row.line,
                                 row.callee.name))
    return result


def times(tables):
    """Return {(place_key of the caller, line, place_key of the callee):
    (value, running records)}: what outermost calls from each line took."""
    functions, frames = tables.functions, tables.frames_view()
    view = tables.nodes_view()
    parents, of_nodes = view[::2].tolist(), view[1::2].tolist()
    keys = [-1, *[frames[FRAME_COLUMNS * frame] for frame in of_nodes[1:]]]
    callers = stacks.innermost_of_all((parents, of_nodes), [
        functions[function].kind == 'python'
        for function in frames[::FRAME_COLUMNS]])
    leaves = tables.column('stack')
    records = [0] * len(tables)
    if COUNT in tables.value_types:
        records = [count if state == RUNNING else 0 for state, count in zip(
            tables.column('state'), tables.value(COUNT.name))]
    sums = [stacks.sums_of_nodes(parents, leaves, values)
            for values in (tables.own_column, records)]
    of_pairs = {}
    for node in stacks.outermost_nodes(parents, keys, set(leaves),
                                       len(functions)):
        its = of_pairs.setdefault((callers[parents[node]], keys[node]), [0, 0])
        for place, column in enumerate(sums):
            its[place] += column[node]
    found = {}
    for (caller, callee), its in of_pairs.items():
        place = FRAME_COLUMNS * caller
        key = (*((None, 0) if caller < 0 else
                 (place_key(functions[frames[place]]), frames[place + 1])),
               place_key(functions[callee]))
        found[key] = tuple(map(add, found.get(key, (0, 0)), its))
    return found


def _of_samples(tables, wanted, are_callers):
    """Return, for each sample, (caller, line, callee) of its stack, or None.
    """
    functions, frames = tables.functions, tables.frames_view()
    matches = match.functions(tables, wanted)
    # As they are counted.
    is_counted = [function.kind == 'python' or function.kind == 'C'
                  and tables.counts.mode == ALL for function in functions]
    # By node: the innermost frame of Python, -1 for none; and the pair of
    # frames.
    python, pairs = [-1], [None]
    nodes = tables.nodes_view()
    for parent, frame in zip(nodes[2::2], nodes[3::2]):
        function = frames[FRAME_COLUMNS * frame]
        caller, pair = python[parent], pairs[parent]
        if not is_counted[function]:
            pass
        elif are_callers:
            if pair is None and matches[function]:
                pair = caller, function
        elif caller >= 0 and matches[frames[FRAME_COLUMNS * caller]]:
            pair = caller, function
        python.append(frame if functions[function].kind == 'python'
                      else caller)
        pairs.append(pair)
    known = {None: None}
    for pair in set(map(pairs.__getitem__, set(tables.column('stack')))):
        if pair is not None:
            caller, callee = pair
            place = FRAME_COLUMNS * caller
            known[pair] = (
                *((None, 0) if caller < 0 else
                  (functions[frames[place]], frames[place + 1])),
                functions[callee])
    return [known[pairs[node]] for node in tables.column('stack')]
