"""What a distribution costs while the profiler is off, against one of stock
that is built alike: start-up and programs, in instructions.

Each half of a build with a profile is laid out by what its own training run
counted, so two builds of the same source differ by some tenths of a percent,
too.
"""

import off

BAR_PERCENT = 0.5


def measure(report, options):
    comparison = off.Comparison(report, options)
    with off.all_cores() as pool:
        comparison.add_start(pool)
        comparison.add_programs(pool)
    comparison.show()
    report.bar('distribution: start-up', comparison.medians[off.START_UP],
               BAR_PERCENT, '%', either_way=False)
    comparison.hold('distribution', BAR_PERCENT, BAR_PERCENT)
