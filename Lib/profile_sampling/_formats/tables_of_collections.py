"""Tables of collections of the garbage collector, and what is said of them."""

from profile_sampling._data import by_collection
from profile_sampling._data.allocations import COLLECTIONS
from profile_sampling._data.values import NO_FRAMES, printable
from profile_sampling._formats.sites import place_cells, place_columns
from profile_sampling._formats.table import Column, Table
from profile_sampling._formats.words import counted, said, share

_PAUSE = COLLECTIONS[1]
# Pauses are spoken of from there on: of one, and of the time.
_LONG_NS, _LARGE_SHARE = 50_000_000, 0.03
_SUMS = [Column('collections', 'collections', 'count'),
         Column('pause_ns', 'pauses', 'value')]
_OBJECTS = [Column('freed', 'freed', 'count'),
            Column('uncollectable', 'uncollectable', 'count')]


def tables_of(tables, sites, top):
    """Return the Tables of collections by generation and by line."""
    generations, by_line = by_collection.rows(tables, sites)
    if not generations:
        return [Table('collections', 'No collection ended meanwhile.', [], [],
                      value_type=_PAUSE)]
    return [
        Table('collections', 'Collections of the garbage collector',
              [Column('generation', 'generation', 'count'), *_SUMS,
               Column('longest_ns', 'longest', 'time'), *_OBJECTS,
               *place_columns('most at')],
              [(row.generation, row.number, row.pause_ns, row.longest_ns,
                row.freed, row.uncollectable,
                *place_cells(row.function, row.line))
               for row in generations], value_type=_PAUSE,
              notes=['It frees only what is in cycles; freed and '
                     'uncollectable are objects.']),
        Table('collections_by_line', 'By the line that started them',
              [*_SUMS, *_OBJECTS, *place_columns('line')],
              [(row.number, row.pause_ns, row.freed, row.uncollectable,
                *place_cells(row.function, row.line))
               for row in by_line[:top]], value_type=_PAUSE,
              more=(len(by_line) - len(by_line[:top]), 'line'))]


def findings(tables, sites):
    """Iterate over what is worth saying beside a report."""
    generations, by_line = by_collection.rows(tables, sites)
    pause_ns = sum([row.pause_ns for row in generations])
    longest_ns = max([row.longest_ns or 0 for row in generations], default=0)
    if (longest_ns >= _LONG_NS
            or pause_ns >= _LARGE_SHARE * max(tables.duration_ns, 1)):
        number = sum([row.number for row in generations])
        first = by_line[0]
        yield (f'The garbage collector stopped the program '
               f'{counted(number, "time")} for {said(pause_ns)}'
               + (f', {said(longest_ns)} at most' if longest_ns else '')
               + f'; {share(first.pause_ns, pause_ns)} of that was started '
               f'at {_where(first)}: --collections')
    uncollectable = sum([row.uncollectable for row in generations])
    if uncollectable:
        yield f'{counted(uncollectable, "object")} were uncollectable: ' \
              '--collections'


def _where(row):
    name = printable(NO_FRAMES if row.function is None else row.function.name)
    return f'{name}:{row.line}' if row.line else name
