"""How far the samples of running time may be off.

Only running time is sampled: what threads waited, and what the collector
took, is measured from its beginning to its end and has no such error.

A thread that runs is asked once a period, at a moment that is random in it.
So a part that has n of all N running records has, if it were measured again,

    standard error <= period * sqrt(n * (1 - n / N))

which is that of a binomial share, in time, and is what margins are made of.
It is reached by code that runs for a fraction of a period at a time.  Of what
runs for many periods only the beginning and the end are random, and the
margin is too wide.  The period is the one that was achieved: where the profiler's thread, or the
one that runs, gets a CPU too late, a sample stands for more than was asked
for.  It is worked out from the numbers of records, not from their weights:
ticks that find a thread where it was are added up in one sample, and sums of
squares of weights would give a call of 5 s an error of as much.  What differs from
run to run in the program itself is not in it.

A margin is 1.96 standard errors: about 95 % of intervals or more have the
true value.  But it is no less than what being profiled may move: half of what
the profiler took of the part, if that was spread evenly.
"""

from profile_sampling._data.losses import (
    RATE_LOWERED, overhead_ns, ticks_per_answer)
from profile_sampling._data.values import COUNT, CPU, STATES

# Of what the profiler takes of a part.
_MOVED = 0.5
# Of the normal distribution, for 95 %.
_Z = 1.96
_NS_PER_S = 1_000_000_000
_RUNNING = STATES.index('running')


class Precision:
    """What margins of a profile's running time are worked out from.

    is_known  whether there are any: not if profiles of different rates were
              merged, nor where values are no times
    """

    __slots__ = ('is_known', '_period_ns', '_records', '_moved')

    def __init__(self, tables, whole):
        """*whole* is the StateSums of all samples."""
        own = tables.value_types[tables.own]
        self.is_known = bool(tables.rate_hz and COUNT in tables.value_types
                             and own.unit == 'nanoseconds')
        self._records = whole.running_records
        self._period_ns = self._achieved_ns(tables, whole)
        self._moved = _MOVED * _cost_share(tables)

    def _achieved_ns(self, tables, whole):
        """The period, longer as more ticks came late.

        Counters know that of the whole session, of all its clocks; the time
        of a record is an upper bound.
        """
        asked_ns = _NS_PER_S / (tables.rate_hz or 1)
        if not self._records:
            return asked_ns
        each_ns = whole.by_state[_RUNNING] / self._records
        if tables.stats.get(RATE_LOWERED):
            return max(asked_ns, each_ns)
        return max(asked_ns, min(
            each_ns, asked_ns * ticks_per_answer(tables.stats)))

    def margin_ns(self, records):
        """Return the margin of a part with that many running records.

        None where the margin is not known.
        """
        if not self.is_known:
            return None
        return round(max(
            _Z * self._period_ns * self._error(records),
            self._moved * self._period_ns * max(records, 0)))

    def _error(self, records):
        """The standard error of a number of records."""
        rest = self._records - records
        # Differences that other tools write have negative counts, too.
        if records <= 0 or rest <= 0:
            return 0.0
        return (records * rest / self._records) ** 0.5

    def are_apart(self, one, other):
        """Whether two (value, running records) differ by more than chance.

        The margin is that of the difference of independent sums, which is
        hardly smaller than that of two parts of one profile.
        """
        if not self.is_known:
            return one[0] != other[0]
        error = (self._error(one[1]) ** 2 + self._error(other[1]) ** 2) ** 0.5
        return abs(one[0] - other[0]) > _Z * self._period_ns * error


def _cost_share(tables):
    """Return what the profiler took of the CPU time; 0: it is not known."""
    cpu_ns = tables.whole_cpu_ns or (
        tables.total(CPU.name) if CPU in tables.value_types else 0)
    return min(overhead_ns(tables.stats) / cpu_ns, 1.0) if cpu_ns else 0.0


def ranks(rows, precision):
    """Return (rank, is tied) for each of *rows*, (value, running records).

    The largest values come first.  Rows that are not apart from the first
    of a rank share it, as in sports: 1, 2, 2, 4.
    """
    found = []
    first = 0
    for number, row in enumerate(rows):
        if number and precision.are_apart(rows[first], row):
            first = number
        found.append(first)
    sizes = {}
    for first in found:
        sizes[first] = sizes.get(first, 0) + 1
    return [(first + 1, sizes[first] > 1) for first in found]
