"""Collections of the garbage collector: by generation, and by line."""

from profile_sampling._data.allocations import (
    COLLECTIONS, longest_pauses_ns)
from profile_sampling._data.values import Value

_GC = '[GC gen'


class Row(Value):
    """What collections did.

    generation     a number, or None: of all
    function, line what started them, or most of them: of what is no line None
    number         how many there were
    pause_ns       the sum of their pauses
    longest_ns     the longest one; None: it is not known
    freed          objects
    uncollectable  objects
    """

    __slots__ = ('generation', 'function', 'line', 'number', 'pause_ns',
                 'longest_ns', 'freed', 'uncollectable')


def has_collections(tables):
    return COLLECTIONS[0] in tables.value_types


def rows(tables, sites):
    """Return two lists of Row: of each generation, with the line of *sites*
    that started most of its collections, and of each line, the longest pauses
    first."""
    if not has_collections(tables):
        return [], []
    by_both = _sums(tables, sites.places)
    longest = dict(enumerate(longest_pauses_ns(tables)))
    generations = []
    for generation in sorted({its for its, _ in by_both}):
        its = {place: sums for (one, place), sums in by_both.items()
               if one == generation}
        place = min(its, key=lambda place: (-its[place][0], _order(place)))
        generations.append(_row(generation, place, its.values(),
                                longest.get(generation)))
    lines = [_row(None, place, [sums for (_, its), sums in by_both.items()
                                if its == place])
             for place in dict.fromkeys([place for _, place in by_both])]
    return generations, sorted(lines, key=lambda row: (
        -row.pause_ns, _order((row.function, row.line))))


def _sums(tables, places):
    """Return {(generation, place): sums}."""
    columns = [tables.value_columns[tables.value_types.index(its)]
               for its in COLLECTIONS]
    found = {}
    for node, place, *values in zip(
            tables.column('stack'), places.of_samples, *columns):
        if values[0]:
            sums = found.setdefault(
                (_generation(tables, node), places.places[place]), [0] * 4)
            for number, value in enumerate(values):
                sums[number] += value
    return found


def _generation(tables, node):
    """Return that of the collection in a stack; -1: it was left out of it."""
    for frame in tables.stack(node):
        name = frame.function.qualname
        if frame.function.kind == 'pseudo' and name.startswith(_GC):
            return int(name[len(_GC):-1])
    return -1


def _order(place):
    function, line = place
    return '' if function is None else function.name, line


def _row(generation, place, parts, longest_ns=None):
    number, pause_ns, freed, uncollectable = map(sum, zip(*parts))
    return Row(generation, *place, number, pause_ns, longest_ns, freed,
               uncollectable)
