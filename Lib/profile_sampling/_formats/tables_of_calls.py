"""Tables of who called whom.

This file owns what is in them.  It must not know how a table is laid out.
"""

from profile_sampling._data import calls, match
from profile_sampling._data.queries import place_key
from profile_sampling._data.rows import function_rank
from profile_sampling._data.tree import call_tree
from profile_sampling._formats.sites import place_cells, place_columns
from profile_sampling._formats.table import Column, Table
from profile_sampling._formats.tables_of_counts import of_callers
from profile_sampling._formats.words import (
    brief_amount, counted, not_shown, share)

# Of all time: what is less is not opened, but counted.
_LEAST_SHARE = 0.005


def tree(tables, top):
    """The Table of the call tree, callers above what they called.

    Calls with less than 0.5 % of all time are summed up in one row, or left
    out and counted below the table where their sum is as little.  A chain of
    calls that has no other beside it is not indented.  A function that calls
    itself and nothing else that is shown has one row for all these calls.
    """
    total = tables.totals[tables.own]
    value_type = tables.value_types[tables.own]
    suffix = '_ns' if value_type.unit == 'nanoseconds' else ''
    columns = [
        Column('cum_share', 'cum', 'share'),
        Column('self_share', 'self', 'share'),
        Column(f'cum{suffix}', 'cum', 'value'),
        Column(f'self{suffix}', 'self', 'value'),
        Column('node', 'function', 'tree', 'text'),
        Column('depth', '', 'count', 'data'),
        Column('function', '', 'text', 'data'),
        Column('calls_within', '', 'count', 'data')]
    rows = []
    n_nodes = 0
    left_out = []
    for depth, indent, name, self_value, cum_value, calls_within in _nodes(
            tables, _LEAST_SHARE * total, left_out):
        n_nodes += 1
        if n_nodes <= top:
            rows.append((cum_value / total if total else 0.0,
                         self_value / total if total else 0.0,
                         cum_value, self_value,
                         (indent, _times(name, calls_within)), depth, name,
                         calls_within))
    notes = not_shown(n_nodes, top, 'row')
    if left_out:
        notes.append(f'{counted(sum(left_out), "small call")} left out')
    return Table('tree', 'Call tree', columns, rows, value_type=value_type,
                 notes=notes)


def _times(name, number):
    return name if number == 1 else f'{name} (\N{MULTIPLICATION SIGN}{number:,})'


def _nodes(tables, least, left_out):
    """Iterate over (depth, indent, name, self value, cumulative value, how
    many calls within each other the row is).

    How many calls are not among them is added to the list *left_out*.
    """
    own = tables.own
    pending = [(0, 0, True, call_tree(tables, inverted=False, by='function'))]
    while pending:
        depth, indent, is_alone, node = pending.pop()
        if isinstance(node, tuple):
            yield depth - 1, indent, *node, 1
            continue
        calls_within = 1
        self_value, cum_value = node.self_values[own], node.cum_values[own]
        shown = _shown_below(node, own, least, left_out)
        while (depth and len(shown) == 1 and not isinstance(shown[0], tuple)
               and shown[0].function == node.function):
            node, = shown
            calls_within += 1
            self_value += node.self_values[own]
            shown = _shown_below(node, own, least, left_out)
        if depth:
            yield (depth - 1, indent, node.function.name, self_value,
                   cum_value, calls_within)
        is_chain = len(shown) == 1
        if depth and not (is_chain and is_alone):
            indent += 1
        pending += [(depth + calls_within, indent, is_chain, child)
                    for child in reversed(shown)]


def _shown_below(node, own, least, left_out):
    """Return the children of a node that have a row: nodes, and maybe (name,
    value, value) of those that are small."""
    large, small = [], []
    for child in node.children:
        (large if child.cum_values[own] >= least else small).append(child)
    value = sum([child.cum_values[own] for child in small])
    if small and value >= least:
        large.append((f'[{counted(len(small), "smaller call")}]', value,
                      value))
    elif small:
        left_out.append(len(small))
    return large


def neighbours(tables, top, pattern, are_callers):
    """The Table of the callers, or the callees, of what matches a pattern.

    Raise ValueError for a pattern that is none, or that nothing matches.
    """
    wanted = match.compiled(pattern)
    found = [function.name for function, its_found
             in zip(tables.functions, match.functions(tables, wanted))
             if its_found]
    if not found:
        raise ValueError(f'no function has a name like {pattern!r}')
    own = tables.own
    rows = (calls.callers if are_callers else calls.callees)(tables, wanted)
    total = sum([row.values[own] for row in rows])
    value_type = tables.value_types[own]
    suffix = '_ns' if value_type.unit == 'nanoseconds' else ''
    nobody = '[nobody]' if are_callers else '[itself]'
    counted_calls = of_callers(
        tables, lambda function: wanted.search(function.name), are_callers)
    pairs = [(row.function, row.values[own]) for row in rows]
    if counted_calls is not None:
        sampled = {place_key(function) for function, _ in pairs}
        pairs += sorted([(function, 0) for key, (_, function)
                         in counted_calls.items() if key not in sampled],
                        key=lambda pair: function_rank(pair[0]))
    all_calls = sum([number for number, _ in (counted_calls or {}).values()])
    columns = [
        Column('calls', 'calls', 'count', 'both' if all_calls else 'data'),
        Column('of_calls', 'of calls', 'share',
               'both' if all_calls else 'data'),
        Column('share', 'share', 'share'),
        Column('total_share', 'of all', 'share'),
        Column(f'cum{suffix}', 'cum', 'value'),
        *place_columns('caller' if are_callers else 'callee')]
    cells = []
    for function, value in pairs[:top]:
        place = (('', nobody), nobody, '', 0, '')
        if function is not None:
            place = place_cells(function, 0)
        number, _ = (counted_calls or {}).get(place_key(function), (None, 0))
        cells.append((number, None if number is None else number / all_calls,
                      value / total if total else 0.0,
                      value / (tables.totals[own] or 1), value, *place))
    what = 'Callers' if are_callers else 'Callees'
    text = found[0] if len(found) == 1 else counted(len(found), 'function')
    return Table(what.lower(),
                 f'{what} of {text}, which have '
                 f'{brief_amount(total, value_type)}, '
                 f'{share(total, tables.totals[own])}', columns, cells,
                 value_type=value_type,
                 more=(len(pairs) - len(cells), 'function'))
