"""Who called a function, and whom it called.

A function that is on a stack more than once, by recursion, counts once for
it: as called by the caller of its outermost call, and as calling what its
innermost call does.  So the callers add up to its cumulative values, and so
do the callees, with its self values.
"""

from profile_sampling._data import match
from profile_sampling._data.rows import CallRow, function_rank
from profile_sampling._data.sums import sums_by
from profile_sampling._data.tables import FRAME_COLUMNS, NODE_COLUMNS

# What a stack has instead of a neighbour.
_NOT_THERE, _NOBODY = -2, -1


def callers(tables, function):
    """Return a list of CallRow; see Profile.callers()."""
    wanted = match.functions(tables, function)
    functions = _functions(tables)
    nodes = tables.nodes_view()
    found = [_NOT_THERE]
    keys = [_NOBODY]
    # Callers come before their callees.
    for parent, frame in zip(nodes[NODE_COLUMNS::NODE_COLUMNS],
                             nodes[NODE_COLUMNS + 1::NODE_COLUMNS]):
        key = functions[frame]
        above = found[parent]
        if above == _NOT_THERE and wanted[key]:
            above = keys[parent]
        found.append(above)
        keys.append(key)
    return _rows(tables, [found[node] for node in tables.column('stack')])


def callees(tables, function):
    """Return a list of CallRow; see Profile.callees()."""
    innermost, called = tables.innermost(
        match.frames(tables, match.functions(tables, function)))
    # What calls nothing has -1, the last one.
    functions = [*_functions(tables), _NOBODY]
    return _rows(tables, [
        functions[called[node]] if innermost[node] >= 0 else _NOT_THERE
        for node in tables.column('stack')])


def _functions(tables):
    return tables.frames_view()[0::FRAME_COLUMNS].tolist()


def _rows(tables, neighbours):
    """Return the rows of what each sample's stack has for a neighbour."""
    numbers = {_NOT_THERE: 0}
    of_sample = [numbers.setdefault(neighbour, len(numbers))
                 for neighbour in neighbours]
    sums = zip(*sums_by(tables, of_sample, len(numbers)))
    rows = [CallRow(None if number == _NOBODY else tables.functions[number],
                    tables.value_types, values)
            for number, values in zip(numbers, sums)
            if number != _NOT_THERE]
    own = tables.own
    rows.sort(key=lambda row: (-row.values[own],
                               *function_rank(row.function)))
    return rows
