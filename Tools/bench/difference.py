"""Whether what "diff" says of chance is so.

coverage    how often the truth is in the interval that one run a side gives,
            and in the margin that a row of one run has.  The answers are
            known: programs are simulated that go from function to function,
            and are sampled as the sampler does it, once in each period at any
            moment of it
itself      runs that differ by noise alone: how often a gate or a row finds
            a difference
slower      the same with a slowdown of 3 % on one side
real        runs of one program, recorded, and drawn by lot into two sides

The noise of a run is that of a quiet program's CPU time: 1 % of the whole,
which all its functions share, and 2 % of each function; "real" says what it is
on this machine.
"""

import itertools
import math
import random
import statistics
import tempfile
from pathlib import Path
from types import SimpleNamespace

import children
from profile_sampling import Profile
from profile_sampling._data import diff
from profile_sampling._data.by_state import RUNNING, StateSums
from profile_sampling._data.confidence import Precision
from profile_sampling._data.values import COUNT, CPU, STATES, Function

# At 1,000 Hz.
PERIOD_NS = 1_000_000
# Of a run, and more if it would have few visits.
PERIODS, LEAST_VISITS = 1000, 30
# Visits of a function, in periods.  In short ones a record falls by chance; of
# long ones only the ends do, and intervals are too wide.
VISITS = 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 100
SHARES = {'f': 0.6, 'g': 0.3, 'h': 0.08, 'i': 0.02}
NOISE_OF_RUN, NOISE_OF_ROW = 0.01, 0.02
RECORDS = 2000
FALSE_BAR, FOUND_BAR = 0.05, 0.9
LEAST_COVERAGE = 0.93
PLACES = {name: (name, Function('m', name, '/m.py', 1, 'python'), 0, '')
          for name in SHARES}


def measure(report, options):
    coverage(report, 40 if options.quick else 300)
    pairs = 100 if options.quick else 1000
    judged(report, 'itself', 5, 1.0, pairs)
    judged(report, 'itself', 10, 1.0, pairs)
    judged(report, 'slower', 5, 1.03, pairs)
    judged(report, 'slower', 10, 1.03, pairs)
    real(report, 24 if options.quick else 60, pairs)


def question(value='cpu_ns'):
    return diff.Question(by='function', value=value, gates=['total'])


class SimulatedRun(diff.Run):
    """A run of {name: (value, records)}, all of it running code."""

    def __init__(self, rows):
        self.mode, self.value_type, self.rate_hz = 'cpu', CPU, 1000
        self.rows, self.places, self.work = rows, PLACES, 1
        self.total = tuple([sum(column) for column in zip(*rows.values())])
        self.targets = [self.total]
        self.precision = precision_of(self.total[1])


def precision_of(records):
    by_state = [0] * len(STATES)
    by_state[RUNNING] = records * PERIOD_NS
    return Precision(
        SimpleNamespace(rate_hz=1000, value_types=(CPU, COUNT), own=0,
                        stats={}), StateSums(by_state, records))


def sampled(source, visit):
    """Sample a program with visits of so many periods on average.

    Return the time that each function took, and its (weight, records), in
    periods.
    """
    truth = dict.fromkeys(SHARES, 0.0)
    names, shares = list(SHARES), list(itertools.accumulate(SHARES.values()))
    periods = max(PERIODS, math.ceil(LEAST_VISITS * visit))
    ticks = iter([number + source.random() for number in range(periods)])
    tick = next(ticks)
    now = 0.0
    records = []
    while now < periods:
        name, = source.choices(names, cum_weights=shares)
        end = min(now + source.expovariate(1 / visit), periods)
        truth[name] += end - now
        now = end
        while tick < now:
            records.append(name)
            tick = next(ticks, math.inf)
    return truth, {name: (records.count(name), records.count(name))
                   for name in SHARES}


def in_ns(rows):
    return {name: (value * PERIOD_NS, records)
            for name, (value, records) in rows.items()}


def is_in_margin(time, sums, records):
    """Return whether the truth is in the margin that a report gives."""
    value, hits = sums
    return (abs(time - value) * PERIOD_NS
            <= precision_of(records).margin_ns(hits) + 1)


def coverage(report, times):
    source = random.Random(17)
    of_changes, of_rows, all_of_it = [], [], []
    for visit in VISITS:
        changes, rows = [{name: [] for name in SHARES} for _ in range(2)]
        for _ in range(times):
            runs = [sampled(source, visit) for _ in range(2)]
            (truth, found), (other, also) = runs
            compared = diff.Difference(
                [SimulatedRun(in_ns(found))], [SimulatedRun(in_ns(also))],
                question()).rows
            # No record in either: there is no row.
            for row in compared:
                change = (other[row.name] - truth[row.name]) * PERIOD_NS
                changes[row.name].append(
                    abs(row.change - change) <= row.margin + 1)
            for times_, sums in runs:
                records = sum([its[1] for its in sums.values()])
                for name in SHARES:
                    if sums[name][1]:
                        rows[name].append(is_in_margin(
                            times_[name], sums[name], records))
        shares = []
        for table, covered in (of_changes, changes), (of_rows, rows):
            share = statistics.mean(itertools.chain(*covered.values()))
            shares.append(share)
            table.append([f'{visit:g}', *[
                f'{statistics.mean(its):.1%}' if its else '-'
                for its in covered.values()], f'{share:.1%}'])
        all_of_it.append((visit, *shares))
    heads = ['periods per visit', *[f'{share:.0%}' for share
                                    in SHARES.values()], 'all']
    report.table(f'Margins of changes, one run a side, that have the truth, '
                 f'{times} pairs', heads, of_changes)
    report.table('Margins of the rows of one run that have', heads, of_rows)
    report.data['coverage'] = all_of_it
    for number, what in (1, 'changes'), (2, 'rows'):
        report.bar(f'coverage of {what}: least below 95 %',
                   max(0, 0.95 - min([row[number] for row in all_of_it])),
                   0.95 - LEAST_COVERAGE, '')


def noisy(source, slower):
    """Return the time of each function in a run, in periods, and the run."""
    speed = slower * source.lognormvariate(0, NOISE_OF_RUN)
    times = {name: RECORDS * share * speed
             * source.lognormvariate(0, NOISE_OF_ROW)
             for name, share in SHARES.items()}
    total = sum(times.values())
    records = round(total)
    hits = source.choices(list(times), list(times.values()), k=records)
    return SimulatedRun({name: (total * hits.count(name) / records,
                                hits.count(name)) for name in times})


def judged(report, kind, runs, slower, pairs):
    """Say how often a gate of the total, and any row, found something."""
    source = random.Random(17)
    gates, rows, covered = [], 0, 0
    for _ in range(pairs):
        difference = diff.Difference(
            *[[noisy(source, factor) for _ in range(runs)]
              for factor in (1.0, slower)], question())
        gates.append(difference.verdict())
        rows += any([row.is_clear for row in difference.rows])
        # By the law of large numbers, as noise multiplies all means alike.
        total = difference.total
        truth = (slower - 1) * total.before
        covered += abs(total.change - truth) <= total.margin
    _say(report, f'{kind}, {runs} and {runs} simulated runs', gates, rows)
    report.bar(f'{kind}, {runs} and {runs}: totals in their interval, '
               'less than 95 %', max(0, 0.95 - covered / pairs),
               0.95 - LEAST_COVERAGE, '')
    found = gates.count(diff.REGRESSION) / pairs
    if slower == 1:
        report.bar(f'{kind}, {runs} and {runs}: false regressions', found,
                   FALSE_BAR, '')
    elif runs >= 10:
        report.bar(f'{kind}, {runs} and {runs}: missed', 1 - found,
                   1 - FOUND_BAR, '')


def _say(report, what, gates, rows):
    counts = {verdict: gates.count(verdict) for verdict in (
        diff.REGRESSION, diff.INCONCLUSIVE, diff.PASSED)}
    report.data.setdefault('judged', {})[what] = counts | {'any row': rows}
    report.say(f'{what}: of {len(gates):,} pairs, ' + ', '.join(
        [f'{count:,} {verdict}' for verdict, count in counts.items()])
        + f'; {rows:,} with a row that differs')


def real(report, runs, pairs):
    """Record a program again and again; draw sides of five by lot."""
    with tempfile.TemporaryDirectory() as directory:
        paths = [Path(directory, f'{number}.pb.gz') for number in range(runs)]
        for path in paths:
            children.run_json('difference_child.py', path)
        profiles = [Profile.load(path)._tables for path in paths]
    source = random.Random(17)
    for value in 'cpu_ns', 'wall_ns':
        asked = question(value)
        recorded = [diff.Run(tables, asked) for tables in profiles]
        totals = [run.total[0] for run in recorded]
        report.say(f'real runs by {value}: {statistics.mean(totals) / 1e9:.3f}'
                   ' s, standard deviation '
                   f'{statistics.stdev(totals) / statistics.mean(totals):.1%}')
        gates, rows = [], 0
        for _ in range(pairs):
            drawn = source.sample(recorded, 10)
            difference = diff.Difference(drawn[:5], drawn[5:], asked)
            gates.append(difference.verdict())
            rows += any([row.is_clear for row in difference.rows])
        _say(report, f'real, 5 and 5 runs by {value}', gates, rows)
        report.bar(f'real by {value}: false regressions',
                   gates.count(diff.REGRESSION) / pairs, FALSE_BAR, '')
