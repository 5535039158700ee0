"""What was allocated, in use, and in use at the peak: by line, or by a key."""

from profile_sampling._data import by_label, growth, keys
from profile_sampling._data.allocations import (
    ALLOCATED, AMOUNTS, VALUES, amount_of, has_moments, margin_bytes,
    period_bytes, space)
from profile_sampling._data.by_site import called, is_outside
from profile_sampling._data.label_names import BLOCK_TYPE
from profile_sampling._data.sums import sums_of

# Below so many samples, or that share of all, a row has no name.
_LEAST_SAMPLES, LEAST_SHARE = 4, 0.005
_VALUES = 3         # of an amount: objects, bytes, variance


class Row:
    """What belongs to one line or key; or to several that have no name.

    of         a SiteRow, or the text of a key; None: several, or all
    amounts    {amount: (objects, bytes, margin in bytes)}; where moments are
               known, what grew, survived and churned is there, too
    n_rows     how many rows it is of
    """

    __slots__ = ('of', 'amounts', 'n_rows')

    def __init__(self, of, sums, n_rows=1):
        self.of = of
        self.n_rows = n_rows
        self.amounts = {}
        for place, amount in enumerate((*AMOUNTS, *growth.DERIVED)):
            objects, size, variance = sums[_VALUES * place:
                                           _VALUES * (place + 1)] or (0,) * _VALUES
            self.amounts[amount] = objects, size, margin_bytes(max(variance, 0))

    def bytes(self, amount):
        return self.amounts[amount][1]


class Memory:
    """The memory of a profile.

    amount   what it is ranked by
    rows     list of Row, the largest first
    small    a Row of those without a name, or None
    outside  list of Row: imports, and what is on no line of mine
    whole    the Row of all
    least_bytes, least_samples_bytes
             what has less has no name; for having too few samples
    since_ns  of what time it is, or None
    lifetimes  if it is ranked by churn: {what a row is of: what was freed, by
              decade of the lifetime}
    """

    __slots__ = ('amount', 'rows', 'small', 'outside', 'whole', 'least_bytes',
                 'least_samples_bytes', 'since_ns', 'lifetimes')

    def __init__(self, tables, ofs, numbers, top, amount=None,
                 since_ns=None):
        """*ofs* has what each number in *numbers*, one for each sample, is of;
        *tables* are about an amount, unless another is given.  What grew is
        since a moment, by default the first quarter of the time; what was
        allocated, freed and churned, too, by default in all of it."""
        self.amount = amount or amount_of(tables.value_types[tables.own])
        self.since_ns = since_ns
        sums = _sums(tables, numbers, len(ofs), since_ns)
        self.lifetimes = {}
        if self.amount == growth.CHURN:
            self.lifetimes = dict(zip(ofs, growth.lifetimes(
                tables, numbers, len(ofs))))
        self.whole = Row(None, list(map(sum, zip(*sums))), len(ofs))
        self.least_samples_bytes = _LEAST_SAMPLES * period_bytes(tables)
        self.least_bytes = max(
            self.least_samples_bytes,
            round(LEAST_SHARE * self.whole.bytes(self.amount)))
        found = sorted(
            [(Row(of, its), its) for of, its in zip(ofs, sums)
             if any(its)],
            key=lambda item: (-abs(item[0].bytes(self.amount)),
                              _name(item[0].of)))
        self.outside = [row for row, _ in found if _is_outside(row.of)
                        and row.bytes(self.amount)]
        inside = [item for item in found if not _is_outside(item[0].of)]
        self.rows = [row for row, _ in inside
                     if abs(row.bytes(self.amount)) >= self.least_bytes][:top]
        rest = [its for row, its in inside[len(self.rows):]
                if row.bytes(self.amount)]
        self.small = (Row(None, list(map(sum, zip(*rest))), len(rest))
                      if rest else None)


def _sums(tables, numbers, n_keys, since_ns=None):
    """Return for each key objects, bytes and variance of all amounts; each
    sample has the number of its key."""
    types = tables.value_types
    amounts = {which: [
        tables.value_columns[types.index(its)] if its in types
        else [0] * len(numbers) for its in VALUES[
            _VALUES * place:_VALUES * (place + 1)]]
        for place, which in enumerate(AMOUNTS)}
    if has_moments(tables):
        amounts |= growth.columns(tables, since_ns)
    return list(zip(*[sums_of(column, numbers, n_keys)
                      for its in amounts.values() for column in its]))


def _is_outside(of):
    return not isinstance(of, str) and is_outside(of.function)


def _name(of):
    if isinstance(of, str):
        return of, 0
    return '' if of.function is None else of.function.name, of.line


def by_line(tables, sites, top, amount=None, since_ns=None):
    """Return the Memory of tables that *sites* are of, by line."""
    numbers = {}
    ofs = []
    by_place = {}
    for row in sites.rows:
        by_place[row.function, row.line] = len(ofs)
        ofs.append(row)
    for number, place in enumerate(sites.places.places):
        numbers[number] = by_place.get(place, -1)
    return Memory(tables, ofs,
                  [numbers[number] for number in sites.places.of_samples], top,
                  amount, since_ns)


def by_key(tables, key, top, amount=None, since_ns=None):
    """Return the same by thread, label or what else samples have."""
    keys.check(tables, key)
    values = keys.values(tables, key)
    texts = keys.texts(values)
    numbers = {}
    of_samples = [numbers.setdefault(texts[value], len(numbers))
                  for value in values]
    return Memory(tables, list(numbers), of_samples, top, amount, since_ns)


def types_of_lines(tables, sites, amount, top=2):
    """Return {(function, line): names of the types that most of it is}."""
    if BLOCK_TYPE not in by_label.labels(tables):
        return {}
    of_sets = by_label.values(tables.labels, BLOCK_TYPE)
    found = {}
    for place, row, size in zip(sites.places.of_samples,
                                tables.column('labels'),
                                tables.value(space(amount).name)):
        if of_sets[row] and size:
            its = found.setdefault(place, {})
            its[of_sets[row]] = its.get(of_sets[row], 0) + size
    return {sites.places.places[place]: sorted(
        its, key=lambda name: (-its[name], name))[:top]
            for place, its in found.items()}


def by_route(tables, sites, key):
    """Return a list of (Row of a route or None, how many requests it had, the
    SiteRow that allocated most of it or None), by what one request allocates;
    [] if nobody counted requests by this key."""
    counts = {row.value: row.count for row in tables.latencies
              if row.key == key}
    if not counts:
        return []
    values = keys.values(tables, key)
    numbers = {name: number for number, name in enumerate(
        dict.fromkeys([*counts, *values]))}
    of_samples = [numbers[value] for value in values]
    sums = _sums(tables, of_samples, len(numbers))
    by_line = [{} for _ in numbers]
    for number, place, size in zip(of_samples, sites.places.of_samples,
                                   tables.value(space(ALLOCATED).name)):
        its = by_line[number]
        its[place] = its.get(place, 0) + size
    of_places = {(row.function, row.line): row for row in sites.rows}
    found = []
    for name, number in numbers.items():
        its = by_line[number]
        place = max(its, key=its.get, default=None)
        found.append((Row(name, sums[number]), counts.get(name, 0),
                      of_places.get(sites.places.places[place])
                      if its.get(place) else None))
    found.sort(key=lambda its: (
        not its[1], -its[0].bytes(ALLOCATED) / (its[1] or 1), its[0].of or ''))
    return found


def called_by(row):
    """Return the name of what a line called that allocates most, in two
    parts."""
    return ('', '') if isinstance(row.of, str | None) else called(row.of)
