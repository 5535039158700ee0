"""What the profiler costs where services feel it.

What a tick takes from a busy program on one CPU, which the sampler thread
shares with it, against the cheapest ways to send as many signals
(bare_ticker.c); a program that sleeps; and one that hands the GIL over all the
time.

A tick is timed by the program that it interrupts (standstill.py).
"""

import statistics
import sys

import children
from report import interval95, quartiles
from services_cost_child import HAND_OVER_RATE_HZ, OURS, PLAIN, RATE_HZ
from services_run import on_cpus
from steady import BARE, PRIVILEGED

SLICE_MS = 300
ROUNDS, QUICK_ROUNDS = 60, 8
RATIO_BAR = 1.15

ASLEEP_RATES_HZ = (100, 1000, 10_000)
ASLEEP_RUNS, QUICK_ASLEEP_RUNS = 3, 1
ASLEEP_S, QUICK_ASLEEP_S = 10, 2
ASLEEP_BAR_PERCENT = 0.1

# Against no profile at all.  Where the two threads run is up to the kernel: on
# two CPUs they were faster when profiled, too.
HAND_OVER_BAR = 1.25
# About half a second.
HAND_OVERS = 50_000
HAND_OVER_ROUNDS, QUICK_HAND_OVER_ROUNDS = 30, 5
CPUS = (1, 2)


def _percent(slice_):
    taken_ns, wall_ns, _ticks = slice_
    return taken_ns / wall_ns * 100


def _us_per_tick(rounds, how):
    """Median of [{how: slice}], beside the plain slice of the round."""
    return statistics.median(
        [(_percent(slices[how]) - _percent(slices[PLAIN])) / 100
         * slices[how][1] / 1000 / max(slices[how][2], 1)
         for slices in rounds])


def _ratio(rounds):
    """Ours against the cheaper of the bare ones."""
    cheapest_us = min([_us_per_tick(rounds, how) for how in BARE])
    # Less than nothing is noise.
    return (_us_per_tick(rounds, OURS) / cheapest_us if cheapest_us > 0
            else float('inf'))


def measure_interruptions(report, rounds_count):
    ticker, _directory = children.compile_shared('bare_ticker.c')
    with on_cpus(1):
        found = children.run_json('services_cost_child.py', 'interruptions',
                                  SLICE_MS, rounds_count, ticker)
    rounds = [dict(zip(found, slices)) for slices in zip(*found.values())]
    rows = []
    for how in found:
        low, median, high = quartiles([_percent(slices[how])
                                       for slices in rounds])
        row = [how if how in (PLAIN, OURS) else f'bare {how}',
               f'{median:.2f} [{low:.2f} {high:.2f}]']
        ticks = statistics.fmean([slices[how][2] for slices in rounds])
        wall_s = statistics.fmean([slices[how][1] for slices in rounds]) / 1e9
        rows.append([*row, f'{_us_per_tick(rounds, how):.1f}' if ticks else '',
                     f'{ticks / wall_s:.0f}'])
    ratio, (low, high) = _ratio(rounds), interval95(rounds, _ratio)
    report.data['cost']['interruptions'] = {
        'slices': found, 'ratio': ratio, 'ratio 95 %': [low, high]}
    report.table(
        f'Busy program on one CPU, {RATE_HZ:,} Hz: time in which it stands '
        f'still, median [quartiles] of {rounds_count} rounds of {SLICE_MS} ms '
        'slices, and how much more than plain a tick is',
        ['interrupted by', '% of its time', 'us per tick', 'ticks/s'], rows)
    missing = [how for how in PRIVILEGED if how not in found]
    if missing:
        report.say(f'  not to be had here: {", ".join(missing)}')
    report.say()
    report.bar('services: cost of a tick, against the cheapest bare signal',
               ratio, RATIO_BAR, 'x',
               f'(95 %: {low:.2f} .. {high:.2f}'
               f'{"; too noisy to tell" if low <= RATIO_BAR <= high else ""})')


def measure_asleep(report, runs, seconds):
    rows, shares = [], {rate_hz: [] for rate_hz in ASLEEP_RATES_HZ}
    for _ in range(runs):
        for rate_hz, own in shares.items():
            cpu_ns, wall_ns = children.run_json(
                'services_cost_child.py', 'asleep', rate_hz, seconds)
            own.append(cpu_ns / wall_ns * 100)
    report.data['cost']['asleep %'] = shares
    for rate_hz, own in shares.items():
        rows.append([f'{rate_hz:,} Hz', f'{statistics.median(own):.3f}',
                     f'{max(own):.3f}'])
    report.table(f'Program that sleeps: % of a CPU, {runs} run(s) of '
                 f'{seconds} s', ['rate', 'median', 'largest'], rows)
    report.say()
    for rate_hz, own in shares.items():
        report.bar(f'services: CPU of a sleeping program at {rate_hz:,} Hz',
                   statistics.median(own), ASLEEP_BAR_PERCENT, '%')


def measure_hand_over(report, rounds_count):
    rows, medians = [], {}
    report.data['cost']['hand_over'] = {}
    for cpus in CPUS:
        try:
            with on_cpus(cpus):
                found = children.run_json('services_cost_child.py',
                                          'hand_over', HAND_OVERS,
                                          rounds_count)
        except children.Unavailable as exc:
            report.fail(f'services: hand-over: {exc}')
            continue
        ratios = [ours / plain for ours, plain in zip(found[OURS],
                                                      found[PLAIN])]
        medians[cpus] = statistics.median(ratios)
        low, high = interval95(ratios, statistics.median)
        per_s = [HAND_OVERS / statistics.median(found[how]) * 1e9
                 for how in (PLAIN, OURS)]
        report.data['cost']['hand_over'][cpus] = found
        rows.append([f'{cpus} CPU{"s" if cpus > 1 else ""}',
                     *[f'{rate:,.0f}' for rate in per_s],
                     f'{medians[cpus]:.3f}',
                     f'{low:.3f} .. {high:.3f}'])
    report.table(
        f'Two threads that wake each other, {HAND_OVER_RATE_HZ:,} Hz, '
        f'{rounds_count} rounds: times a second that the GIL changes hands',
        ['on', 'plain', 'profiled', 'wall ratio', '95 % interval'], rows)
    report.say()
    for cpus, ratio in medians.items():
        report.bar(f'services: hand-over on {cpus} CPU(s), profiled by plain',
                   ratio, HAND_OVER_BAR, 'x')


def measure(report, options):
    report.data['cost'] = {}
    quick = options.quick
    print('running cost ...', file=sys.stderr, flush=True)
    measure_interruptions(report, QUICK_ROUNDS if quick else ROUNDS)
    measure_asleep(report, QUICK_ASLEEP_RUNS if quick else ASLEEP_RUNS,
                   QUICK_ASLEEP_S if quick else ASLEEP_S)
    measure_hand_over(report, QUICK_HAND_OVER_ROUNDS if quick
                      else HAND_OVER_ROUNDS)
