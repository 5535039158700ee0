"""What it costs to sample allocations, beside tracemalloc and memray.

Each way is compared with slices of the same program, in the same process, that
nobody looks at; and with the resident memory of a process of its own.
"""

import statistics

import children
from programs import PROGRAMS
from report import interval95

WAYS = 'alloc', 'tracemalloc', 'memray'
# Processes of each program, whose memory is laid out otherwise.
LAYOUTS = 5
ROUNDS, QUICK_ROUNDS = 8, 2
RESIDENT_ROUNDS = 3
# Percent of CPU time, of the mean program and of the worst; resident memory as
# a factor.
MOST_MEAN, MOST_WORST, MOST_RESIDENT = 1, 3, 1.01


def _mean(rounds):
    """The geometric mean over programs of their medians, of [{program: ratio},
    ...]."""
    return statistics.geometric_mean([
        statistics.median([its[name] for its in rounds])
        for name in rounds[0]])


def _ways(report):
    """Those that are there."""
    found = []
    for way in WAYS:
        try:
            children.run_json('memory_child.py', 'strings', 0, 1, way)
            found.append(way)
        except children.Unavailable as exc:
            if way != 'memray':
                raise
            report.say(f'memray is left out: {str(exc).splitlines()[-1]}')
    return found


def _ratios(name, rounds, ways):
    found = {way: [] for way in ways}
    for layout in range(LAYOUTS):
        its = children.run_json('memory_child.py', name, layout, rounds, *ways)
        for way in ways:
            found[way] += its[way]
    return found


def _resident(name, way):
    return min([children.run_json('memory_child.py', name, 0, 0, way)
                for _ in range(RESIDENT_ROUNDS)])


def measure(report, options):
    ways = _ways(report)
    names = [program.__name__ for program in PROGRAMS]
    rounds = QUICK_ROUNDS if options.quick else ROUNDS
    ratios = {name: _ratios(name, rounds, ways) for name in names}
    resident = {name: {way: _resident(name, way) for way in ('off', *ways)}
                for name in names}
    report.data |= {'ratios': ratios, 'resident': resident}
    rows = []
    for way in ways:
        of_rounds = [{name: ratios[name][way][number] for name in names}
                     for number in range(rounds * LAYOUTS)]
        low, high = interval95(of_rounds, _mean)
        rows.append([way, *[
            f'{(statistics.median(ratios[name][way]) - 1) * 100:+.1f}'
            for name in names],
            f'{(_mean(of_rounds) - 1) * 100:+.2f} '
            f'[{(low - 1) * 100:+.2f} {(high - 1) * 100:+.2f}]',
            f'{_resident_mean(resident, way):.3f}'])
    report.table(f'CPU time more than without, %: medians of {rounds} rounds in {LAYOUTS} '
                 'processes, '
                 'paired; their geometric mean [95 %]; resident memory, times',
                 ['', *names, 'mean', 'RSS'], rows)
    report.say()
    its = [statistics.median(ratios[name]['alloc']) for name in names]
    for what, value, limit in (
            ('mean', statistics.geometric_mean(its), MOST_MEAN),
            ('worst program', max(its), MOST_WORST)):
        report.bar(f'memory: {what}', (value - 1) * 100, limit, '%',
                   either_way=False)
    report.bar('memory: resident', _resident_mean(resident, 'alloc'),
               MOST_RESIDENT, 'times', either_way=False)


def _resident_mean(resident, way):
    return statistics.geometric_mean([its[way] / its['off']
                                      for its in resident.values()])
