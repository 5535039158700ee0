"""What the profiler costs while it is off: instructions, not time.

callgrind counts the instructions of each program under our interpreter and
under the stock one; run(n) - run(0) leaves start-up out.  Counts are exact
but for two things: where objects lie in memory decides about collisions in
hash tables keyed by addresses (such as the type cache), and the kernel
decides when a blocked thread goes on.  So each pair is counted at several
layouts, the same for both interpreters, and the median is taken.
"""

import concurrent.futures
import os
import re
import statistics
import subprocess
import sys

import children
from programs import PROGRAMS

MEAN_BAR_PERCENT = 0.1
WORST_BAR_PERCENT = 0.6
LAYOUTS = 5
QUICK_LAYOUTS = 1
QUICK_DIVISOR = 4


def _command(python, name, portions, layout):
    valgrind = children.tool('valgrind', "Debian's package valgrind")
    # Without address space randomization a count is repeatable.
    fixed = [children.tool('setarch', "Debian's package util-linux"), '-R']
    if subprocess.run([*fixed, 'true'], capture_output=True).returncode:
        fixed = []      # some containers forbid it: the spread will tell
    return [*fixed, valgrind, '--tool=callgrind',
            '--callgrind-out-file=/dev/null', str(python), '-E', '-s',
            str(children.HERE / 'programs.py'), name, str(portions),
            str(layout)]


def count(python, name, portions, layout):
    """Instructions of one run of a program."""
    # The environment lies on the stack: its size moves the frames in C.
    env = children.environment(BENCH_PADDING='x' * (72 * layout))
    done = subprocess.run(_command(python, name, portions, layout), env=env,
                          capture_output=True, text=True)
    found = re.search(r'Collected : (\d+)', done.stderr)
    if done.returncode != 0 or not found:
        raise children.Unavailable(
            f'{python} failed on {name} under callgrind (status '
            f'{done.returncode}):\n{done.stderr.strip()[-2000:]}')
    return int(found[1])


def _write_bytecode(python, name):
    """Compile what the program imports, or its first count has it too."""
    subprocess.run([str(python), '-E', '-s',
                    str(children.HERE / 'programs.py'), name, '0', '0'],
                   env=children.environment(), check=True)


def compare(pool, stock, name, portions, layouts):
    """[(our instructions, stock's)] of run(portions), one per layout."""
    for python in (sys.executable, stock):
        _write_bytecode(python, name)
    futures = [[pool.submit(count, python, name, n, layout)
                for python in (sys.executable, stock)
                for n in (portions, 0)] for layout in range(layouts)]
    pairs = []
    for layout in futures:
        ours, ours_0, theirs, theirs_0 = [f.result() for f in layout]
        pairs.append((ours - ours_0, theirs - theirs_0))
    return pairs


def measure(report, options):
    layouts = QUICK_LAYOUTS if options.quick else LAYOUTS
    rows, medians = [], {}
    report.data['programs'] = {}
    # Other load does not change a count, so all cores may be used.
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for program, portions in PROGRAMS.items():
            name = program.__name__
            print(f'counting {name} ...', file=sys.stderr, flush=True)
            if options.quick:
                portions //= QUICK_DIVISOR
            pairs = compare(pool, options.stock, name, portions, layouts)
            percents = [(ours / theirs - 1) * 100 for ours, theirs in pairs]
            medians[name] = statistics.median(percents)
            report.data['programs'][name] = {'instructions': pairs,
                                             'percent': percents}
            rows.append([name, f'{pairs[0][1] / 1e6:.1f}',
                         f'{medians[name]:+.3f}', f'{min(percents):+.3f}',
                         f'{max(percents):+.3f}'])
    report.table(
        f'Profiler off: instructions against {options.stock}, '
        f'{layouts} layout(s)',
        ['program', 'stock, M', 'median %', 'min %', 'max %'], rows)
    worst = max(medians, key=lambda name: abs(medians[name]))
    report.say()
    report.bar('off: mean over the programs',
               statistics.mean(medians.values()), MEAN_BAR_PERCENT, '%')
    report.bar('off: worst program', medians[worst], WORST_BAR_PERCENT, '%',
               f'({worst})')
