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
DEAREST_BAR_PERCENT = 0.6
# So much less than stock, and a program is not the same, or not built alike.
CHEAPER_BAR_PERCENT = 2
START_UP = 'start-up'
LAYOUTS = 5
QUICK_LAYOUTS = 1
QUICK_DIVISOR = 4


def _command(python, arguments):
    valgrind = children.tool('valgrind', "Debian's package valgrind")
    # Without address space randomization a count is repeatable.
    fixed = [children.tool('setarch', "Debian's package util-linux"), '-R']
    if subprocess.run([*fixed, 'true'], capture_output=True).returncode:
        fixed = []      # some containers forbid it: the spread will tell
    return [*fixed, valgrind, '--tool=callgrind',
            '--callgrind-out-file=/dev/null', str(python), '-E', '-s',
            *arguments]


def count(python, arguments, layout):
    """Instructions of one run of an interpreter."""
    # The environment lies on the stack: its size moves the frames in C.
    env = children.environment(BENCH_PADDING='x' * (72 * layout))
    done = subprocess.run(_command(python, arguments), env=env,
                          capture_output=True, text=True)
    found = re.search(r'Collected : (\d+)', done.stderr)
    if done.returncode != 0 or not found:
        raise children.Unavailable(
            f'{python} {" ".join(arguments)} failed under callgrind (status '
            f'{done.returncode}):\n{done.stderr.strip()[-2000:]}')
    return int(found[1])


def _arguments(name, portions, layout):
    return [str(children.HERE / 'programs.py'), name, str(portions),
            str(layout)]


def _write_bytecode(python, name):
    """Compile what the program imports, or its first count has it too."""
    subprocess.run([str(python), '-E', '-s', *_arguments(name, 0, 0)],
                   env=children.environment(), check=True)


def compare(pool, stock, name, portions, layouts):
    """[(our instructions, stock's)] of run(portions), one per layout."""
    for python in (sys.executable, stock):
        _write_bytecode(python, name)
    futures = [[pool.submit(count, python, _arguments(name, n, layout),
                            layout)
                for python in (sys.executable, stock)
                for n in (portions, 0)] for layout in range(layouts)]
    pairs = []
    for layout in futures:
        ours, ours_0, theirs, theirs_0 = [f.result() for f in layout]
        pairs.append((ours - ours_0, theirs - theirs_0))
    return pairs


def compare_start(pool, stock, layouts):
    """The same of a process that begins and ends."""
    for python in (sys.executable, stock):
        count(python, ['-c', 'pass'], 0)        # byte code is written
    futures = [[pool.submit(count, python, ['-c', 'pass'], layout)
                for python in (sys.executable, stock)]
               for layout in range(layouts)]
    return [tuple(f.result() for f in layout) for layout in futures]


class Comparison:
    """Rows of a table, and the median of each in percent by name."""

    def __init__(self, report, options):
        self.report, self.stock = report, options.stock
        self.layouts = QUICK_LAYOUTS if options.quick else LAYOUTS
        self.divisor = QUICK_DIVISOR if options.quick else 1
        self.rows, self.medians = [], {}
        report.data['programs'] = {}

    def add(self, name, pairs):
        percents = [(ours / theirs - 1) * 100 for ours, theirs in pairs]
        self.medians[name] = statistics.median(percents)
        self.report.data['programs'][name] = {'instructions': pairs,
                                              'percent': percents}
        self.rows.append([name, f'{pairs[0][1] / 1e6:.1f}',
                          f'{self.medians[name]:+.3f}',
                          f'{min(percents):+.3f}', f'{max(percents):+.3f}'])

    def add_programs(self, pool):
        for program, portions in PROGRAMS.items():
            name = program.__name__
            print(f'counting {name} ...', file=sys.stderr, flush=True)
            self.add(name, compare(pool, self.stock, name,
                                   portions // self.divisor, self.layouts))

    def add_start(self, pool):
        self.add(START_UP, compare_start(pool, self.stock, self.layouts))

    def show(self):
        self.report.table(
            f'Profiler off: instructions against {self.stock}, '
            f'{self.layouts} layout(s)',
            ['program', 'stock, M', 'median %', 'min %', 'max %'], self.rows)
        self.report.say()

    def hold(self, kind, mean_bar_percent, dearest_bar_percent):
        """The bars.  Of a single program, what takes fewer instructions than
        stock costs nothing, within reason; the mean may not hide that another
        takes more."""
        programs = {name: percent for name, percent in self.medians.items()
                    if name != START_UP}
        dearest = max(programs, key=programs.get)
        cheapest = min(programs, key=programs.get)
        bar = self.report.bar
        bar(f'{kind}: mean over the programs',
            statistics.mean(programs.values()), mean_bar_percent, '%')
        bar(f'{kind}: dearest program', programs[dearest],
            dearest_bar_percent, '%', f'({dearest})', either_way=False)
        bar(f'{kind}: cheapest program, below stock', -programs[cheapest],
            CHEAPER_BAR_PERCENT, '%', f'({cheapest})', either_way=False)


def all_cores():
    """Other load does not change a count."""
    return concurrent.futures.ThreadPoolExecutor(os.cpu_count())


def measure(report, options):
    comparison = Comparison(report, options)
    with all_cores() as pool:
        comparison.add_programs(pool)
    comparison.show()
    comparison.hold('off', MEAN_BAR_PERCENT, DEAREST_BAR_PERCENT)
