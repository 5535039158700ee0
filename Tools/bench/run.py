"""Measures what the profiler costs and how true it is.

    ./python Tools/bench/run.py [off|on|truth|events|idle|contended|calls|memory|large|
                                 page|difference|tasks|services|soak|distribution|all]
                            [--quick] [--out DIR]

off       instructions with the profiler off, against the stock interpreter
on        slowdown while it samples, against an empty signal handler
truth     its answers, against programs that know the answer
events    what subscribers cost, and how many samples they keep up with
idle      what a tick costs when there are many threads that sleep
contended what being profiled costs threads that fight for the GIL, beside other
          profilers
calls     what it costs to count calls, beside cProfile and yappi
memory    what it costs to sample allocations, beside tracemalloc and memray
large     what full tables cost to save, load, report and export
page      how quickly their page answers in a browser
difference
          whether what "diff" calls a difference is one
tasks     what it costs to follow the lives of asyncio's tasks
services  truth for programs that wait and work in turn, on one CPU and on
          two, alone and in a crowd, beside other profilers; and their cost.
          Not part of all
soak      whether memory grows in a long run; not part of all
distribution
          off and start-up, of what "make dist" builds; not part of all
"""

import argparse
import pathlib
import sys

import calls
import children
import contended
import difference
import distribution
import events
import idle
import large
import machine
import memory
import off
import on
import page
import services
import soak
import tasks
import truth
from report import Report

KINDS = {'off': off.measure, 'on': on.measure, 'truth': truth.measure,
         'events': events.measure, 'idle': idle.measure,
         'contended': contended.measure, 'calls': calls.measure, 'memory': memory.measure,
         'large': large.measure, 'page': page.measure,
         'difference': difference.measure, 'tasks': tasks.measure,
         'services': services.measure,
         'soak': soak.measure, 'distribution': distribution.measure}
# What takes hours, or interpreters of its own, is run by its own name.
ALL = tuple(kind for kind in KINDS
            if kind not in ('services', 'soak', 'distribution'))


def parse(args):
    parser = argparse.ArgumentParser(
        description='Measure what the profiler costs and how true it is.')
    parser.add_argument('kind', nargs='?', default='all',
                        choices=[*KINDS, 'all'])
    parser.add_argument('--quick', action='store_true',
                        help='a tenth of the time; too noisy for the bars')
    parser.add_argument('--out', type=pathlib.Path, metavar='DIR',
                        default=machine.ROOT / 'build' / 'bench',
                        help='where the results go (default: build/bench)')
    parser.add_argument('--stock', type=pathlib.Path, metavar='PATH',
                        default=machine.ROOT / 'build' / 'stock' / 'python',
                        help='the interpreter to compare with')
    parser.add_argument('--cells', metavar='PATTERN',
                        help='of services only what has a name like this: '
                        'poll/1.2ms/1cpu/alone/1000hz, tasks/*, off_gil, '
                        'cost, ...')
    parser.add_argument('--peers', metavar='DIR',
                        help='where py-spy, austin and python3.15, for '
                        'Tachyon, are (default: the '
                        'environment of "make third-parties", or PATH)')
    parser.add_argument('--soak-seconds', type=float, default=1800,
                        metavar='N',
                        help='length of each soak (default: 1800)')
    parser.add_argument('--jobs', type=int, default=2,
                        help='soaks at a time (default: 2)')
    return parser.parse_args(args)


def measure(kind, options):
    """Measure, print, write; return True if every bar is met."""
    report = Report(kind, machine.facts())
    if machine.is_busy():
        report.say('note: the machine is busy; timings will be noisy')
    try:
        KINDS[kind](report, options)
    except children.Unavailable as exc:
        report.fail(f'{kind}: {exc}')
    report.data['load at the end'] = machine.load()
    report.say(f'load at the end: {machine.load()}')
    report.write(options.out)
    return not report.failed


def main():
    options = parse(sys.argv[1:])
    kinds = ALL if options.kind == 'all' else [options.kind]
    if {'off', 'distribution'}.intersection(kinds) and \
            not options.stock.exists():
        print(f'no stock interpreter at {options.stock}: run "make stock", '
              'or give its path with --stock', file=sys.stderr)
        return 2
    met = [measure(kind, options) for kind in kinds]
    return 0 if all(met) else 1


if __name__ == '__main__':
    sys.exit(main())
