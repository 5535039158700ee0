"""Tables that are asked for: by function, by label, and more."""

from profile_sampling._data import by_function, by_state, keys
from profile_sampling._data.values import IDLE
from profile_sampling._formats import tables_of_counts
from profile_sampling._formats.sites import (
    TimeColumns, place_cells, place_columns)
from profile_sampling._formats.table import Column, Table


def functions(tables, sites, top, sort='self'):
    """The Table of functions, self and cumulative values in one row.

    Raise ValueError if they cannot be sorted so.
    """
    if tables.counts is not None and tables.counts.has_calls:
        return tables_of_counts.functions(tables, sites, top, sort)
    if sort not in ('self', 'cum'):
        raise ValueError(f'no calls were counted, so none to sort by (--sort '
                         f'{sort}).  Count them:  record --calls python')
    own = tables.own
    rows = (by_function.functions(tables)
            + by_function.without_frames(tables))
    rows.sort(key=lambda row: (-row.self_values[own], -row.cum_values[own])
              [::-1 if sort == 'cum' else 1])
    records = by_function.running_records(tables)
    total = tables.totals[own]
    value_type = tables.value_types[own]
    suffix = '_ns' if value_type.unit == 'nanoseconds' else ''
    margins = 'both' if sites.precision.is_known else 'data'
    columns = [
        Column('self_share', 'self', 'share'),
        Column('cum_share', 'cum', 'share'),
        Column(f'self{suffix}', 'self', 'value'),
        Column(f'self_margin{suffix}', '\N{PLUS-MINUS SIGN}', 'margin',
               margins),
        Column(f'cum{suffix}', 'cum', 'value'),
        Column(f'cum_margin{suffix}', '\N{PLUS-MINUS SIGN}', 'margin',
               margins),
        *place_columns('function'), Column('first_line', '', 'count', 'data'),
        Column('place', 'place', 'path', 'text')]
    cells = []
    for row in rows[:top]:
        function = row.function
        counts = records.get(function, (0, 0))
        self_value, cum_value = row.self_values[own], row.cum_values[own]
        self_margin, cum_margin = [sites.precision.margin_ns(its)
                                   for its in counts]
        name, *place = place_cells(function, 0)
        cells.append((
            self_value / total if total else 0.0,
            cum_value / total if total else 0.0,
            self_value, self_margin, cum_value, cum_margin, name, *place,
            *_place(function)))
    ranked = 'cumulative' if sort == 'cum' else 'self'
    return Table('functions', f'Functions by {ranked} time' if suffix else
                 f'Functions by {ranked} values', columns, cells,
                 value_type=value_type,
                 more=(len(rows) - len(cells), 'function'),
                 more_share=None if sort == 'cum' or not total else
                 sum([row.self_values[own] for row in rows[top:]]) / total)


def _place(function):
    """Return the first line of a function, and where it is in words."""
    if function is None:
        return 0, ''
    if function.kind != 'python':
        return function.first_line, _KINDS[function.kind]
    return function.first_line, f'{function.filename}:{function.first_line}'


_KINDS = {'C': 'C function', 'operator': 'operator',
          'pseudo': 'pseudo-frame'}


def by_key(tables, sites, top, key):
    """The Table of what each value of *key* cost, waiting included.

    The key is 'thread', 'state', 'task', 'file', 'pid' or a label.  Idle time
    is in a column of its own; shares are of the other.
    """
    numbers = {}
    of_samples = [numbers.setdefault(value, len(numbers))
                  for value in keys.values(tables, key)]
    sums, idle = [by_state.sums(tables, [
        number if (state == IDLE) == wanted else -1
        for number, state in zip(of_samples, tables.column('state'))],
        len(numbers)) for wanted in (False, True)]
    rows = sorted(zip(numbers, sums, idle), key=lambda row: (
        -row[1].total, -row[2].total, row[0] is not None, str(row[0])))
    shared = TimeColumns(tables, sites, [row[1] for row in rows])
    value_type = tables.value_types[tables.own]
    suffix = '_ns' if value_type.unit == 'nanoseconds' else ''
    columns = [*shared.columns,
               Column(f'idle{suffix}', 'idle', 'value',
                      'both' if sites.idle else 'data'),
               Column('value', key, 'path' if key == 'file' else 'text')]
    # In the order that the page has, too.
    texts = keys.texts(tables.threads if key == 'thread' else numbers)
    cells = [(*cells, its_idle.total, texts[value])
             for cells, (value, _, its_idle) in zip(shared.cells(top), rows)]
    return Table(f'by_{key}', '', columns, cells, value_type=value_type,
                 more=(len(rows) - len(cells), 'value'),
                 more_share=shared.share_from(top))
