"""Tables of who called whom."""

from profile_sampling._data import calls, match
from profile_sampling._data.tree import call_tree
from profile_sampling._data.values import NO_FRAMES
from profile_sampling._formats import tables_of_counts
from profile_sampling._formats.sites import place_cells, place_columns
from profile_sampling._formats.table import Column, Table
from profile_sampling._formats.words import (
    brief_amount, counted, not_shown, share)

# Of all time: what is less is not opened, but counted.
_LEAST_SHARE = 0.005
# Functions that call each other in turns.
_LONGEST_CYCLE = 8


def tree(tables, top):
    """The Table of the call tree, callers above what they called.

    Calls with less than 0.5 % of all time are summed up in one row, or left
    out and counted below the table where their sum is as little.  A chain of
    calls that has no other beside it is not indented.  A function that calls
    itself and nothing else that is shown has one row for all these calls, and
    so has each of a few that call each other in turns.  What has no frames is
    a row at the top.
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
        chain = [node]
        shown = _shown_below(node, own, least, left_out)
        while depth and len(shown) == 1 and not isinstance(shown[0], tuple):
            chain += shown
            shown = _shown_below(shown[0], own, least, left_out)
        is_chain = len(shown) == 1
        rest = len(chain)
        for nodes in _folded(chain) if depth else ():
            yield (depth - 1, indent, nodes[0].function.name,
                   sum([node.self_values[own] for node in nodes]),
                   nodes[0].cum_values[own], len(nodes))
            depth += len(nodes)
            rest -= len(nodes)
            if not (is_alone and (rest or is_chain)):
                indent += 1
            is_alone = True
        pending += [(max(depth, 1), indent, is_chain, child)
                    for child in reversed(shown)]


def _folded(chain):
    """Iterate over lists of nodes: of a chain of calls, in which each row has
    all that is the same function in turn with the same others."""
    functions = [node.function for node in chain]
    begin = 0
    while begin < len(chain):
        period, end = _cycle(functions, begin)
        for place in range(begin, begin + period):
            yield chain[place:end:period]
        begin = end


def _cycle(functions, begin):
    """Return (how many functions call each other in turns from there on, where
    that ends)."""
    for period in range(1, _LONGEST_CYCLE + 1):
        first = functions[begin:begin + period]
        end = begin + period
        while functions[end:end + period] == first:
            end += period
        if end > begin + period:
            return period, end
    return 1, begin + 1


def _shown_below(node, own, least, left_out):
    """Return the children of a node that have a row: nodes, and maybe (name,
    value, value) of those that are small."""
    large, small = [], []
    for child in node.children:
        (large if child.cum_values[own] >= least else small).append(child)
    value = sum([child.cum_values[own] for child in small])
    if node.function is None and node.self_values[own] >= max(1, least):
        frameless = node.self_values[own]
        more = [child for child in large if child.cum_values[own] > frameless]
        large.insert(len(more), (NO_FRAMES, frameless, frameless))
    if small and value >= least:
        large.append((f'[{counted(len(small), "smaller call")}]', value,
                      value))
    elif small:
        left_out.append(len(small))
    return large


def neighbours(tables, sites, top, pattern, are_callers):
    """The Table of the callers, or the callees, of what matches a pattern.

    Raise ValueError for a pattern that is none, or that nothing matches.
    """
    wanted = match.compiled(pattern)
    found = [function.name for function, its_found
             in zip(tables.functions, match.functions(tables, wanted))
             if its_found]
    is_counted = tables.counts is not None and tables.counts.has_calls
    if is_counted:
        found = list(dict.fromkeys([*found, *[
            row.callee.name for row in tables.counts.calls
            if wanted.search(row.callee.name)]]))
    if not found:
        raise ValueError(f'no function has a name like {pattern!r}')
    if is_counted:
        return tables_of_counts.neighbours(tables, sites, top, found, wanted,
                                           are_callers)
    own = tables.own
    rows = (calls.callers if are_callers else calls.callees)(tables, wanted)
    total = sum([row.values[own] for row in rows])
    value_type = tables.value_types[own]
    suffix = '_ns' if value_type.unit == 'nanoseconds' else ''
    nobody = '[nobody]' if are_callers else '[itself]'
    columns = [
        Column('share', 'share', 'share'),
        Column('total_share', 'of all', 'share'),
        Column(f'cum{suffix}', 'cum', 'value'),
        *place_columns('caller' if are_callers else 'callee')]
    cells = []
    for row in rows[:top]:
        place = (('', nobody), nobody, '', 0, '')
        if row.function is not None:
            place = place_cells(row.function, 0)
        value = row.values[own]
        cells.append((value / total if total else 0.0,
                      value / (tables.totals[own] or 1), value, *place))
    what = 'Callers' if are_callers else 'Callees'
    text = found[0] if len(found) == 1 else counted(len(found), 'function')
    return Table(what.lower(),
                 f'{what} of {text}, which have '
                 f'{brief_amount(total, value_type)}, '
                 f'{share(total, tables.totals[own])}', columns, cells,
                 value_type=value_type,
                 more=(len(rows) - len(cells), 'function'))
