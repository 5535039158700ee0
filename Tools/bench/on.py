"""What the profiler costs while it samples.

Slowdown is CPU time of the whole process, sampler thread included: on a shared
machine wall time is mostly the neighbours'.  All configurations of a program
run in one process, in slices of a fraction of a second, in random order; each
round of slices is compared within itself.  Interrupting a thread at all has a
price that no profiler can avoid, so a timer at the same rate with an empty
signal handler is the yardstick.  Slices begin when threads have their timers,
but for the cost of a capture and of a drain by the profiler's own counters:
these are of the half second before, in which the handler sets no timer.
"""

import itertools
import statistics
import sys

import children
from on_child import RATES_HZ
from report import interval95, quartiles

PROGRAM_NAMES = ('calls', 'objects', 'generators', 'exceptions', 'jsons',
                 'comprehensions')
SLICE_MS = 200
ROUNDS = 20
QUICK_ROUNDS = 4

RATIO_BAR = 1.15
RATIO_BAR_RATE_HZ = 1000

DEPTHS_FRAMES = (10, 100, 1000)
DEPTH_RATES_HZ = (10000, 1000)
# With the one to warm up, before threads have timers.
DEPTH_WINDOW_MS = 100
DEPTH_WINDOWS = 3
DEPTH_ROUNDS = 15
QUICK_DEPTH_ROUNDS = 3
NAMES = ('off', 'all')
CAPTURE_BARS_US = {'off': 0.5, 'all': 1.5}
DRAIN_BAR_US = 0.6
DEPTH_BAR_FRAMES = 100
DEPTH_BAR_RATE_HZ = 10000


def _slowdowns(results, key, column):
    """Percent per round, against the slice of that round without ticks."""
    return [(slice_[column] / off[column] - 1) * 100
            for slice_, off in zip(results[key], results['off 0'])]


def _us_per_tick(results, key):
    """Median CPU time that a tick takes from the program."""
    return statistics.median(
        [(slice_[0] - off[0]) / 1000 / max(slice_[3], 1) for slice_, off
         in zip(results[key], results['off 0'])])


def _pooled(rounds):
    """(empty %, sampled %): the mean over the programs of the medians over
    rounds of [(program, empty, sampled)]."""
    by_program = {}
    for program, *pair in rounds:
        by_program.setdefault(program, []).append(pair)
    return tuple(
        statistics.fmean([statistics.median([pair[i] for pair in pairs])
                          for pairs in by_program.values()])
        for i in (0, 1))


def _ratio(rounds):
    empty, sampled = _pooled(rounds)
    return sampled / empty if empty > 0 else float('inf')


def _slowdown_rows(by_program, rate_hz):
    rows = []
    for program, results in by_program.items():
        row = [f'{program} {rate_hz} Hz']
        for column in (0, 1):
            for kind in ('empty', 'sampled'):
                low, median, high = quartiles(
                    _slowdowns(results, f'{kind} {rate_hz}', column))
                row.append(f'{median:+.2f} [{low:+.1f} {high:+.1f}]')
        for kind in ('empty', 'sampled'):
            row.append(f'{_us_per_tick(results, f"{kind} {rate_hz}"):.1f}')
        helper = [slice_[2] / slice_[1] * 100
                  for slice_ in results[f'sampled {rate_hz}']]
        row.append(f'{statistics.median(helper):.1f}')
        rows.append(row)
    return rows


def _ratio_of_rate(report, by_program, rate_hz):
    rounds = [(program, empty, sampled)
              for program, results in by_program.items()
              for empty, sampled in zip(
                  _slowdowns(results, f'empty {rate_hz}', 0),
                  _slowdowns(results, f'sampled {rate_hz}', 0))]
    empty, sampled = _pooled(rounds)
    low, high = interval95(rounds, _ratio)
    # A slowdown below zero is noise, and no ratio.
    ratio = _ratio(rounds) if empty > 0 and sampled > 0 else None
    report.data['pooled'][rate_hz] = {
        'empty %': empty, 'sampled %': sampled, 'ratio': ratio,
        'ratio 95 %': [low, high]}
    row = [f'{rate_hz} Hz', f'{empty:+.3f}', f'{sampled:+.3f}',
           f'{sampled - empty:+.3f}',
           'noise' if ratio is None else f'{ratio:.2f}',
           f'{low:.2f} .. {high:.2f}']
    return row, ratio, low <= RATIO_BAR <= high


def measure_slowdown(report, rounds):
    ticker, _directory = children.compile_shared('bare_ticker.c')
    by_program = {}
    for program in PROGRAM_NAMES:
        print(f'timing {program} ...', file=sys.stderr, flush=True)
        by_program[program] = children.run_json(
            'on_child.py', program, ticker, SLICE_MS, rounds)
    report.data['slices'] = by_program
    report.data['pooled'] = {}
    rows = []
    for rate_hz in RATES_HZ:
        rows += _slowdown_rows(by_program, rate_hz)
    report.table(
        f'Slowdown, %: median [quartiles] of {rounds} rounds of {SLICE_MS} ms '
        'slices, paired; us: CPU time per tick',
        ['program', 'empty CPU', 'sampled CPU', 'empty wall', 'sampled wall',
         'empty us', 'sampled us', 'sampler thread %'], rows)
    pooled = {rate_hz: _ratio_of_rate(report, by_program, rate_hz)
              for rate_hz in RATES_HZ}
    report.table('All programs: mean of the medians, CPU time of the process',
                 ['rate', 'empty %', 'sampled %', 'difference', 'ratio',
                  '95 % interval'], [row for row, *_ in pooled.values()])
    row, ratio, is_open = pooled[RATIO_BAR_RATE_HZ]
    report.say()
    report.bar(f'on: slowdown at {RATIO_BAR_RATE_HZ} Hz against an empty '
               'handler', ratio, RATIO_BAR, 'x',
               f'(95 %: {row[-1]}'
               f'{"; too noisy to tell" if is_open else ""})')


def _depth_windows(rounds):
    """{(names, rate_hz, depth_frames): [window, ...]}, a process each round
    and all of them in turn: a shared machine is at times half as fast for
    seconds, and so is a handler whose sampler thread is on the sibling of
    its own CPU."""
    found = {}
    for _ in range(rounds):
        for key in itertools.product(NAMES, DEPTH_RATES_HZ, DEPTHS_FRAMES):
            found.setdefault(key, []).extend(children.run_json(
                'depth_child.py', *key, DEPTH_WINDOW_MS, DEPTH_WINDOWS))
    return found


def measure_depth(report, rounds):
    report.data['depth'] = []
    rows, medians_us = [], {}
    for key, windows in _depth_windows(rounds).items():
        names, rate_hz, depth_frames = key
        report.data['depth'].append(
            {'names': names, 'rate_hz': rate_hz, 'windows': windows,
             'depth_frames': depth_frames})
        row = [names, f'{rate_hz} Hz', str(depth_frames)]
        if not windows:
            rows.append([*row, 'no samples', '', ''])
            continue
        for i, what in ((0, 'capture'), (1, 'drain')):
            low, median, high = [ns / 1000 for ns in quartiles(
                [window[i] for window in windows])]
            medians_us[what, *key] = median
            row.append(f'{median:.3f} [{low:.2f} {high:.2f}]')
        rows.append([*row, str(sum([w[2] for w in windows]))])
    report.table(
        f'Cost of a sample, us: median [quartiles] of {rounds} x '
        f'{DEPTH_WINDOWS} windows of {DEPTH_WINDOW_MS} ms',
        ['names', 'rate', 'frames', 'handler', 'drain', 'samples'], rows)
    report.say()
    where = DEPTH_BAR_RATE_HZ, DEPTH_BAR_FRAMES
    for names in NAMES:
        for what, limit_us in (('capture', CAPTURE_BARS_US[names]),
                               ('drain', DRAIN_BAR_US)):
            report.bar(f'on: {what} at {DEPTH_BAR_FRAMES} frames, '
                       f'{DEPTH_BAR_RATE_HZ} Hz, names {names}',
                       medians_us.get((what, names, *where)), limit_us, 'us')


def measure(report, options):
    measure_depth(report, QUICK_DEPTH_ROUNDS if options.quick
                  else DEPTH_ROUNDS)
    measure_slowdown(report, QUICK_ROUNDS if options.quick else ROUNDS)
