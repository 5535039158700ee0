"""What a distribution costs while the profiler is off, against one of stock
that is built alike: start-up and programs, in instructions.

Each half of a build with a profile is laid out by what its own training run
counted, so two builds of the same source differ by some tenths of a percent,
too.
"""

import statistics

import off

BAR_PERCENT = 0.5
# So much less than stock, and a program is not the same, or not built alike.
CHEAPER_BAR_PERCENT = 2


def _bar(report, name, percent, limit_percent):
    report.bar(f'distribution: {name}', max(percent, 0), limit_percent, '%')


def measure(report, options):
    comparison = off.Comparison(report, options)
    with off.all_cores() as pool:
        comparison.add_start(pool)
        comparison.add_programs(pool)
    comparison.show()
    medians = dict(comparison.medians)
    start_up = medians.pop('start-up')
    report.bar('distribution: mean over the programs',
               statistics.mean(medians.values()), BAR_PERCENT, '%')
    # What takes fewer instructions than stock costs nothing.
    _bar(report, 'start-up', start_up, BAR_PERCENT)
    dearest = max(medians, key=medians.get)
    _bar(report, f'the dearest, {dearest}', medians[dearest], BAR_PERCENT)
    cheapest = min(medians, key=medians.get)
    _bar(report, f'the cheapest, {cheapest}, below stock',
         -medians[cheapest], CHEAPER_BAR_PERCENT)
