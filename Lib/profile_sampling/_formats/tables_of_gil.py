"""Tables of who waited for the GIL while who had it."""

import re

from profile_sampling._data import by_gil_holder
from profile_sampling._formats.sites import place_cells, place_columns
from profile_sampling._formats.table import Column, Table

# Kinds of threads that have a column of their own, and a row.
_THREADS = 6
# Characters of a thread's name above a column.
_HEADING = 24
_OTHERS = '[others]'


def gil(tables, top):
    """The Tables of a profile: threads by threads, and places by places."""
    rows = by_gil_holder.rows(tables)
    own = by_gil_holder.ranked_by(tables)
    value_type = tables.value_types[own]
    total = sum([row.values[own] for row in rows])
    if not rows:
        return [Table('gil', 'No thread waited for the GIL.', [], [],
                      value_type=value_type)]
    return [_matrix(rows, own, value_type, total),
            _places(rows, own, value_type, total, top)]


def _places(rows, own, value_type, total, top):
    sums = {}
    for row in rows:
        held = row.holder
        key = (row.function, row.line, held.function, held.line, held.callee)
        sums[key] = sums.get(key, 0) + row.values[own]
    # The rows were in order, and so are equal ones.
    ranked = sorted(sums.items(), key=lambda item: -item[1])
    columns = [
        Column('share', 'share', 'share'),
        Column('wait_ns', 'waited', 'value'),
        *place_columns('waiter', 'waiter_'),
        *place_columns('holder', 'holder_'),
        Column('holder_callee', 'in', 'text')]
    cells = []
    for (waiter, line, holder, its_line, callee), ns in ranked[:top]:
        cells.append((ns / total if total else 0.0, ns,
                      *place_cells(waiter, line),
                      *place_cells(holder, its_line),
                      '' if callee is None else callee.name))
    return Table('gil', 'Waits for the GIL, and who held it', columns, cells,
                 value_type=value_type,
                 more=(len(ranked) - len(cells), 'pair'))


def _matrix(rows, own, value_type, total):
    """Kinds of threads by kinds: numbers in names tell threads apart that do
    the same."""
    waited, held, cells = {}, {}, {}
    for row in rows:
        waiter, holder = _kind(row.thread), _kind(row.holder.thread)
        ns = row.values[own]
        waited[waiter] = waited.get(waiter, 0) + ns
        held[holder] = held.get(holder, 0) + ns
        cells[waiter, holder] = cells.get((waiter, holder), 0) + ns
    waiters, holders = _first(waited), _first(held)
    sums = {}
    for (waiter, holder), ns in cells.items():
        key = (waiter if waiter in waiters else _OTHERS,
               holder if holder in holders else _OTHERS)
        sums[key] = sums.get(key, 0) + ns
    columns = [Column('share', 'share', 'share'),
               Column('waiter', 'waiter \\ holder', 'text'),
               *[Column(f'held_by_{holder}_ns', holder[:_HEADING], 'value')
                 for holder in holders]]
    its_rows = []
    for waiter in waiters:
        values = [sums.get((waiter, holder), 0) for holder in holders]
        its_rows.append((sum(values) / total if total else 0.0, waiter,
                         *values))
    return Table('gil_threads', 'Threads that waited, by threads that held '
                 'the GIL', columns, its_rows, value_type=value_type)


def _first(sums):
    ranked = sorted(sums, key=lambda name: (-sums[name], name))
    if len(ranked) > _THREADS:
        ranked[_THREADS - 1:] = [_OTHERS]
    return ranked


def _kind(thread):
    if thread is None:
        return '[unknown]'
    if thread.name is None:
        return '[no name]'
    return re.sub('[0-9]+', '*', thread.name)
