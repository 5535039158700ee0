"""Whether runs of one program differ from those of another, and where.

This file owns the comparison of many runs with many: which rows belong
together, how sure their differences are, and what the gates say.  It must not
know how that is shown.

How sure is known in one of three ways (Comparison.method):

SAMPLING  one run on a side: how much the samples alone may be off.  How much
          runs differ from each other is not known, so nothing is judged
SPREAD    from two runs a side on: Welch's interval from how runs differ.
          Fewer than five are too few to judge
TEST      five runs a side or more: Welch's test of each row, and of each
          gate, adjusted by Benjamini and Hochberg for how many there are
"""

from profile_sampling._data import chance
from profile_sampling._data.runs import NOTHING, Run
from profile_sampling._data.values import Value

SAMPLING, SPREAD, TEST = 'sampling', 'spread', 'test'
# How values are made comparable.
PLAIN, SHARE, WORK = 'plain', 'share', 'work'
MORE, LESS, UNCLEAR = 'more', 'less', 'unclear'
REGRESSION, PASSED, INCONCLUSIVE = 'regression', 'passed', 'inconclusive'
MIN_RUNS = 5
# A change that counts: this share of the total, and of the row before.
LEAST_OF_TOTAL = 0.01
LEAST_OF_ROW = 0.05


class Change(Value):
    """What changed in a row, in the total or in a target.

    place          its Place, None for the total and for targets
    before, after  the mean of the runs of each side
    change         after minus before
    low, high      its interval of 95 %, or None if it is not known
    p              that a difference like this is chance; adjusted for how
                   many rows, or gates, were asked.  None without a test,
                   and for a row that is too small to matter
    verdict        MORE or LESS if it differs and by enough to count, else
                   UNCLEAR; None if nothing is judged
    runs_before, runs_after
                   the values of the single runs
    records_before, records_after
                   how many records of running code these are
    other          the change of the share of all, or, if it is shares that
                   are compared, of the plain value; None unless that has
                   another sign and is large enough to count
    """

    __slots__ = ('place', 'before', 'after', 'change', 'low', 'high', 'p',
                 'verdict', 'runs_before', 'runs_after', 'records_before',
                 'records_after', 'other')

    @property
    def relative(self):
        """The change as a share of what was before; None if that was 0."""
        return self.change / self.before if self.before else None

    def is_clear(self):
        """Whether the interval leaves no doubt which sign it has."""
        return self.low is not None and not self.low <= 0 <= self.high

    def with_test(self, p, verdict):
        fields = dict(zip(self.__slots__, self._fields()))
        return Change(*(fields | {'p': p, 'verdict': verdict}).values())


class Gate(Value):
    """What is to be said of a target.

    target   the Target
    change   its Change
    verdict  REGRESSION, PASSED or INCONCLUSIVE
    """

    __slots__ = 'target', 'change', 'verdict'


def of_tables(before, after, question, scale=PLAIN):
    """Return the Comparison of two iterables of Tables, one for each run."""
    sides = [[Run(tables, question) for tables in side]
             for side in (before, after)]
    return Comparison(*sides, question, scale)


class Comparison:
    """Runs of one program against those of another.

    before, after  lists of Run for the same question
    scale          PLAIN, SHARE (of all of a run) or WORK (per unit of it)

    value_type     what is compared
    method         how it is known how sure changes are
    total          the Change of the total
    rows           list of Change, first what is clear and at least 1 % of
                   the total, each part by size
    gates          list of Gate, one for each target

    Raise ValueError for runs that measure different things.
    """

    def __init__(self, before, after, question, scale=PLAIN):
        _check(before + after)
        self.before, self.after = before, after
        self.question = question
        self.scale = scale
        self.value_type = before[0].value_type
        self.method = _method(len(before), len(after))
        self.total = self._change(None, 'total')
        self.rows = self._rows()
        self.gates = self._gates()

    def verdict(self):
        """Return the worst of what the gates say, or None without any."""
        said = [gate.verdict for gate in self.gates]
        for verdict in REGRESSION, INCONCLUSIVE, PASSED:
            if verdict in said:
                return verdict
        return None

    def _rows(self):
        places, callees = {}, {}
        for run in [*self.before, *self.after]:
            places |= run.places
            # A line may call something else in each: what took most.
            for key, place in run.places.items():
                callees.setdefault(key, []).append(
                    (run.rows[key][0], place.callee or ''))
        places = {key: place.with_callee(max(callees[key])[1])
                  for key, place in places.items()}
        rows = [row for row in [self._change(place, 'rows', key)
                                for key, place in places.items()]
                if any(row.runs_before + row.runs_after)]
        least = LEAST_OF_TOTAL * abs(self.total.before)
        if self.method == TEST:
            rows = _tested(rows, least)
        rows.sort(key=lambda row: (
            row.verdict == UNCLEAR if self.method == TEST
            else not row.is_clear() or abs(row.change) < least,
            -abs(row.change), -row.after,
            row.place.name is None, row.place.name or '', row.place.line))
        return rows

    def _gates(self):
        changes = [self._change(None, 'targets', number)
                   for number in range(len(self.question.targets))]
        if self.method == TEST:
            chances = chance.benjamini_hochberg(
                [change.p for change in changes])
            changes = [change.with_test(p, None)
                       for change, p in zip(changes, chances)]
        return [Gate(target, change,
                     _gate_verdict(change, target.least, self.method))
                for target, change in zip(self.question.targets, changes)]

    def _change(self, place, *where):
        sides = [[_pick(run, *where) for run in runs]
                 for runs in (self.before, self.after)]
        scaled = [[sums[0] / self._unit(run) for run, sums
                   in zip(runs, side)]
                  for runs, side in zip((self.before, self.after), sides)]
        before, after = [sum(values) / len(values) for values in scaled]
        low, high, p = self._certainty(place, sides, scaled)
        return Change(
            place, before, after, after - before, low, high, p, None,
            *map(tuple, scaled),
            *[sum([sums[2] for sums in side]) for side in sides],
            self._other(sides, after - before))

    def _certainty(self, place, sides, scaled):
        """Return the interval of a change and, if it is tested, its p."""
        change = (sum(scaled[1]) / len(scaled[1])
                  - sum(scaled[0]) / len(scaled[0]))
        if self.method == SAMPLING:
            if place is not None and place.measured:
                return change, change, None
            intervals = [self._sampling(runs, side) for runs, side
                         in zip((self.before, self.after), sides)]
            if None in intervals:
                return None, None, None
            down, up = chance.of_difference(*intervals)
            return change - down, change + up, None
        half, p = chance.welch(*scaled, self._floor(sides))
        return change - half, change + half, (
            p if self.method == TEST else None)

    def _sampling(self, runs, side):
        """Return the interval of a side's mean, None if it is not known."""
        intervals = []
        for run, sums in zip(runs, side):
            if sums == run.total:
                # All of a run is measured.
                intervals.append((0.0, 0.0))
                continue
            period = _period(run, sums)
            if period is None:
                return None
            intervals.append([
                distance * period / self._unit(run) for distance
                in chance.of_records(sums[2], run.total[2])])
        return chance.of_mean(intervals)

    def _floor(self, sides):
        """Return the variance of a run that rounding to a period makes."""
        if not any([sums[2] for side in sides for sums in side]):
            return 0.0
        periods = [(_period(run, NOTHING) or 0) / self._unit(run)
                   for run in [*self.before, *self.after]]
        return min(periods) ** 2 / 12

    def _unit(self, run):
        if self.scale == WORK:
            return run.work
        # Nothing has no shares.
        return run.total[0] or 1 if self.scale == SHARE else 1

    def _other(self, sides, change):
        """Return the change by the other scale if its sign is another."""
        means = []
        for runs, side in zip((self.before, self.after), sides):
            units = [1 if self.scale == SHARE else run.total[0] or 1
                     for run in runs]
            means.append(sum([sums[0] / unit for sums, unit
                              in zip(side, units)]) / len(side))
        other = means[1] - means[0]
        if other * change >= 0:
            return None
        all_of_it = 1 if self.scale != SHARE else sum(
            [run.total[0] for run in self.before]) / len(self.before)
        return other if abs(other) >= LEAST_OF_TOTAL * all_of_it else None


def _check(runs):
    for what, words in ('mode', 'modes'), ('value_type', 'values'):
        first = getattr(runs[0], what)
        for run in runs:
            other = getattr(run, what)
            if other != first:
                raise ValueError(
                    f'cannot compare profiles of different {words}: '
                    f'{getattr(first, "name", first)} and '
                    f'{getattr(other, "name", other)}')


def _method(before, after):
    if min(before, after) == 1:
        return SAMPLING
    return SPREAD if min(before, after) < MIN_RUNS else TEST


def _pick(run, table, key=None):
    found = getattr(run, table)
    if table == 'rows':
        return found.get(key, NOTHING)
    return found if key is None else found[key]


def _period(run, sums):
    """Return what a record of a row stands for; None if it is not known.

    That is what it was in the end, not what was asked for: a program that
    shares its CPU has fewer records.  A row with few records may have had a
    heavy one by chance.  A rate of 0 is of a sum of several rates, or of a
    tool that does not say.
    """
    if not run.rate_hz:
        return None
    return max([value / records if records else 0.0
                for _, value, records in (run.total, sums)])


def _tested(rows, least):
    """Return rows with a verdict; a change of *least* counts.

    What is too small to change by that much is not asked: each test makes
    all others less certain.  That the sides together are small says nothing
    of how they differ, so the rest is not biased (Bourgon, Gentleman &
    Huber, PNAS 107, 2010).
    """
    asked = [abs(row.before) + abs(row.after) >= least for row in rows]
    chances = iter(chance.benjamini_hochberg(
        [row.p for row, is_asked in zip(rows, asked) if is_asked]))
    return [_judged(row, next(chances) if is_asked else None, least)
            for row, is_asked in zip(rows, asked)]


def _judged(row, p, least):
    verdict = UNCLEAR if p is None else _row_verdict(row, p, least)
    return row.with_test(p, verdict)


def _row_verdict(row, p, least):
    if (p > chance.ALPHA or abs(row.change) < least
            or abs(row.change) < LEAST_OF_ROW * abs(row.before)):
        return UNCLEAR
    return MORE if row.change > 0 else LESS


def _gate_verdict(change, least, method):
    if method != TEST:
        return INCONCLUSIVE
    enough = least * abs(change.before)
    if change.p <= chance.ALPHA and change.change > 0 and (
            change.change >= enough):
        return REGRESSION
    return PASSED if change.high < enough else INCONCLUSIVE
