"""What memory did over time: grew, survived, churned.

All of it follows from what was allocated, and freed, when: what is in use at a
moment is what is in use at the end, less what was allocated since, and more
what was freed since.
"""

from profile_sampling._data.allocations import (
    ALLOCATED, BEGUN, ENDED, FREED, IN_USE, LIFETIME, VALUES, has_moments,
    margin_bytes)
from profile_sampling._data.values import Value, value_named

GREW, SURVIVED, CHURN = 'grew', 'survived', 'churn'
DERIVED = GREW, SURVIVED, CHURN
# Of lifetimes: below one second.
_CHURN_LIFETIMES = 5
_FIRST_NS, _MOST_STEPS = 125_000_000, 128
_EIGHTHS = 8
# What rises in as many of the seven steps between eighths grows: by chance it
# does in 0.6 % of cases.
_LEAST_RISES = 6
_LEAST_BYTES, _LEAST_SHARE = 2 << 20, 0.01
SHORTEST_NS = 300 * 1_000_000_000
_PER_VALUE = 3


class Steps(Value):
    """Moments of equal distance.

    begin_ns  since the epoch
    step_ns   their distance
    number    how many there are; the last is the end
    """

    __slots__ = ('begin_ns', 'step_ns', 'number')

    def of(self, time_ns):
        """Return in which step a moment is."""
        return min(max((time_ns - self.begin_ns) // self.step_ns, 0),
                   self.number - 1)


def steps(tables):
    """Return the Steps of a profile: as long as the intervals of its core, or
    as several of them."""
    step_ns = _FIRST_NS
    while tables.end_ns >= step_ns * _MOST_STEPS:
        step_ns *= 2
    begin_ns = tables.start_time_ns // step_ns * step_ns
    end_ns = tables.start_time_ns + tables.end_ns
    return Steps(begin_ns, step_ns, (end_ns - begin_ns) // step_ns + 1)


def columns(tables, since_ns=None):
    """Return {word: three columns}: objects, bytes and variance of each sample
    that grew since a moment, by default a quarter of the time; that survived
    what was allocated since then, by default at all; and that churned.  With a
    moment, what was allocated and freed is since then, too."""
    begun, ended, lifetimes = map(tables.column, (BEGUN, ENDED, LIFETIME))
    quarter_ns = since_ns or quarter(tables)
    first_ns = since_ns or 0
    allocated, freed = [_of(tables, amount) for amount in (ALLOCATED, FREED)]
    is_new = [begin >= quarter_ns for begin in begun]
    # Of a block that has come and gone nothing is left to be wrong about.
    sign = [1 if new else -1 for new in is_new]
    grew = [[a * new - f * (end >= quarter_ns) for a, f, new, end
             in zip(*pair, is_new, ended)]
            for pair in zip(allocated[:2], freed[:2])]
    grew.append([a * new - f * its * (end >= quarter_ns) for a, f, new, end,
                 its in zip(allocated[2], freed[2], is_new, ended, sign)])
    survived = [[(a - f) * (begin >= first_ns) for a, f, begin
                 in zip(*pair, begun)] for pair in zip(allocated, freed)]
    is_late = [end >= first_ns for end in ended]
    allocated, freed = [
        [[value * its for value, its in zip(column, wanted)] for column in its]
        for its, wanted in ((allocated, [begin >= first_ns for begin in begun]),
                            (freed, is_late))]
    churn = [[f * (lifetime < _CHURN_LIFETIMES) for f, lifetime
              in zip(column, lifetimes)] for column in freed]
    return {ALLOCATED: allocated, FREED: freed, GREW: grew,
            SURVIVED: survived, CHURN: churn}


def lifetimes(tables, numbers, n_keys):
    """Return for each key what was freed by decade of the lifetime, as far as
    that is churn; *numbers* has the key of each sample, or -1."""
    found = [[0] * _CHURN_LIFETIMES for _ in range(n_keys)]
    for number, lifetime, size in zip(
            numbers, tables.column(LIFETIME), _of(tables, FREED)[1]):
        if number >= 0 and lifetime < _CHURN_LIFETIMES:
            found[number][lifetime] += size
    return found


def _of(tables, amount):
    return [value_named(its.name, tables.value_types, tables.value_columns)
            for its in VALUES if its.kind.startswith(f'{amount}_')]


def quarter(tables):
    """Return when a quarter of the time was over: where a step begins."""
    its = steps(tables)
    first_ns = tables.start_time_ns + tables.end_ns // 4 - its.begin_ns
    return its.begin_ns + -(-first_ns // its.step_ns) * its.step_ns


def in_use(tables, numbers, n_keys):
    """Return, for each key, what is in use at the end of each step; *numbers*
    has the key of each sample, or -1."""
    its = steps(tables)
    changes = [[0] * (its.number + 1) for _ in range(n_keys)]
    ends = [0] * n_keys
    for number, begin, end, a, f, level in zip(
            numbers, tables.column(BEGUN), tables.column(ENDED),
            *[_of(tables, amount)[1]
              for amount in (ALLOCATED, FREED, IN_USE)]):
        if number < 0:
            continue
        ends[number] += level
        if a:
            changes[number][its.of(begin)] += a
        if f:
            changes[number][its.of(end)] -= f
    found = []
    for level, its_changes in zip(ends, changes):
        levels = []
        for change in reversed(its_changes[:-1]):
            levels.append(level)
            level -= change
        found.append(levels[::-1])
    return found


class Growth(Value):
    """How the memory in use grew.

    begin_ns, end_ns  between which moments, since the epoch
    bytes, margin     by how much
    is_growth         whether that is more than chance
    stopped_ns        since when it has not gone on; None: it goes on
    lowest            list: of each eighth of that time the lowest in use
    """

    __slots__ = ('begin_ns', 'end_ns', 'bytes', 'margin', 'is_growth',
                 'stopped_ns', 'lowest')

    @property
    def an_hour(self):
        return round(self.bytes * 3600e9 / max(self.end_ns - self.begin_ns, 1))


def growth(tables, *, least_ns=SHORTEST_NS):
    """Return the Growth of a profile, or None: it has no moments, or is too
    short for that."""
    if not has_moments(tables) or tables.end_ns < least_ns:
        return None
    its = steps(tables)
    [levels] = in_use(tables, [0] * len(tables), 1)
    begin_ns = quarter(tables)
    lowest = _lowest(levels[its.of(begin_ns):])
    if lowest is None:
        return None
    columns_ = columns(tables)[GREW]
    size, margin = sum(columns_[1]), margin_bytes(max(sum(columns_[2]), 0))
    rises = [after - before for before, after in zip(lowest, lowest[1:])]
    is_growth = size > max(margin, _LEAST_BYTES, _LEAST_SHARE * levels[-1])
    earlier, late = rises[:-3], rises[-3:]
    goes_on = (sum([rise > 0 for rise in rises]) >= _LEAST_RISES
               and min(rises[-2:]) > 0
               and sum(late) / 3 >= sum(earlier) / len(earlier) / 2)
    stopped_ns = None
    if not goes_on:
        most = max(levels[-1], lowest[-1])
        place = next((number for number, level in enumerate(levels)
                      if level >= 0.98 * most), len(levels) - 1)
        stopped_ns = its.begin_ns + place * its.step_ns
    return Growth(begin_ns, tables.start_time_ns + tables.end_ns, size, margin,
                  is_growth, stopped_ns, lowest)


def _lowest(levels):
    if len(levels) < _EIGHTHS:
        return None
    edges = [len(levels) * part // _EIGHTHS for part in range(_EIGHTHS + 1)]
    return [min(levels[begin:end]) for begin, end in zip(edges, edges[1:])]
