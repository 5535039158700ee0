"""What a distribution costs while the profiler is off, against one of stock
that is built alike: start-up and programs, in instructions.

Each half of a build with a profile is laid out by what its own training run
counted, so two builds of the same source differ by some tenths of a percent,
too.
"""

import statistics

import off

BAR_PERCENT = 0.5


def measure(report, options):
    comparison = off.Comparison(report, options)
    with off.all_cores() as pool:
        comparison.add_start(pool)
        comparison.add_programs(pool)
    comparison.show()
    medians = comparison.medians
    report.bar('distribution: start-up', medians['start-up'], BAR_PERCENT,
               '%')
    report.bar('distribution: mean over the programs', statistics.mean(
        [medians[name] for name in medians if name != 'start-up']),
        BAR_PERCENT, '%')
    # What takes fewer instructions than stock costs nothing.
    dearest = max(medians, key=medians.get)
    report.bar('distribution: the dearest', max(medians[dearest], 0),
               BAR_PERCENT, '%', f'({dearest})')
