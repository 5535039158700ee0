"""record and stat of a process that runs: samples until a time is over."""

import contextlib
import json
import os
import re
import sys
import time

from profile_sampling import _formats
from profile_sampling._cli import reached, run
from profile_sampling._cli.common import (
    STDOUT, Failure, encoded, fault, show, write)
from profile_sampling._data import idle
from profile_sampling._data.losses import lost_counts
from profile_sampling._data.merge import Merger
from profile_sampling._data.tables import Tables
from profile_sampling._data.values import COUNT, printable
from profile_sampling._formats import summary
from profile_sampling._formats.words import counted, size
from profile_sampling._reach import processes
from profile_sampling._reach.door import LIMIT_S
from profile_sampling._reach.look import seconds
from profile_sampling._reach.processes import Refusal
from profile_sampling._reach.text import three_lines
from profile_sampling._reach.watch import Watch
from profile_sampling._top.answers import Choices, answers
from profile_sampling._top.windows import Windows

# It costs a service one per cent of its CPU.
RATE_HZ = 250
DURATION_S = 30
# What there is is fetched so often: a process that is killed takes the rest.
_SLICE_S = 1.0
# How long one process may keep others waiting.
_AT_ONCE_S = 0.05
_ENDED_EARLY = 3
_IO = 'read_bytes', 'write_bytes'


def add(parser):
    """Add the options that name a process that runs."""
    parser.add_argument(
        '-p', '--pid', metavar='PID', type=reached.pid,
        help='a process that runs, in place of PROGRAM; it needs no option. '
             f'Then -d is {DURATION_S} and --rate {RATE_HZ} unless they are '
             'given')
    parser.add_argument(
        '--children', action='store_true',
        help='of -p: the Python processes that it has started, too, and those '
             'that it starts meanwhile')
    # Which one is meant depends on -p.
    parser.set_defaults(rate=None)


def check(options):
    """Fail if a program is named, too, or what one has from its beginning."""
    if options.program or options.words:
        raise Failure('give a program or -p, not both', 2)
    for name in 'calls', 'watch', 'repeat':
        if getattr(options, name, None):
            raise Failure(f'--{name} is of a program that is started, not of '
                          '-p', 2)


def record(options, format, output):
    """Record a process that runs; return the status."""
    output = output.replace('{pid}', str(options.pid))
    run.check_format(format, options)
    with reached.until_signal():
        return _record(options, format, output)


def _record(options, format, output):
    watched = _Watched(options)
    tables = watched.run()
    if tables is None:
        raise Failure(watched.nothing)
    data = encoded(tables, format, **_formats.options_of(
        format, source=not options.no_source))
    write(output, data)
    if not options.quiet:
        _say_end(watched, tables, output, len(data))
    return _ENDED_EARLY if watched.is_early else 0


def stat(options):
    """Say what a process that runs used meanwhile; return the status."""
    watched = _Watched(options)
    before = _usage(watched.process)
    tables = watched.run()
    used = _used(before, _usage(watched.process), watched.took_s)
    name = printable(' '.join(watched.process.command))
    if options.format == 'json':
        said = json.dumps(summary.as_json(name, None, used, tables),
                          indent=2) + '\n'
    else:
        said = summary.render(name, used, tables, reached.width(sys.stderr))
    show(said, options.to)
    return _ENDED_EARLY if watched.is_early else 0


class _Watched:
    """Processes while they are sampled, and the sum of what they say.

    process   the one that was named
    took_s    how long that was
    is_early  one has ended before its time
    nothing   why there is no profile
    """

    def __init__(self, options):
        self.process = processes.Process(options.pid)
        self.process.check()
        self._processes = []
        self._with_children = options.children
        self._duration_s = options.duration or DURATION_S
        self._asked = {
            'rate_hz': options.rate or RATE_HZ, 'mode': options.mode,
            'depth_frames': options.depth, 'names': options.names,
            'alloc_bytes': options.alloc_bytes, 'timeline': options.timeline}
        self._max_bytes = options.max_bytes
        self._is_terminal = sys.stderr is not None and sys.stderr.isatty()
        self.took_s = 0.0
        self.ending = ''
        self.is_early = False
        self.samples = self.lost = 0
        self._merger = None

    @property
    def nothing(self):
        return (f'PID {self.process.pid} has run no Python for '
                f'{seconds(self.took_s)}: there is nothing to write')

    def run(self):
        """Return the Tables of the sum, or None if there are none."""
        self._merger = Merger(self._max_bytes)
        with contextlib.ExitStack() as stack:
            watches = []
            self._watch(self.process, watches, stack)
            begin = time.monotonic()
            try:
                self._watch_children(watches, stack)
                for watch in watches:
                    watch.begin(max(_AT_ONCE_S,
                                    begin + LIMIT_S - time.monotonic()))
                # On a busy machine that takes a while.
                begin = time.monotonic()
                self._sample(watches, begin + self._duration_s, stack)
            except KeyboardInterrupt:
                pass        # it is enough
            self.took_s = time.monotonic() - begin
            for watch in watches:
                self._add(watch.last())
        self._show('')
        # Workers come and go.
        self.is_early = (watches[0].is_over
                         and self.took_s < self._duration_s)
        self.ending = watches[0].ending
        if not self.samples:
            return None
        tables = Tables(self._merger.raw())
        idle.decide(tables)
        return tables

    def _watch(self, process, watches, stack):
        self._processes.append(process)
        watches.append(stack.enter_context(Watch(process, **self._asked)))

    def _watch_children(self, watches, stack):
        if self._with_children:
            processes.add_children(
                self.process, self._processes,
                lambda process: self._watch(process, watches, stack))

    def _sample(self, watches, end, stack):
        begin = end - self._duration_s
        while (left_s := end - time.monotonic()) > 0:
            wait_s = min(_SLICE_S, left_s)
            until = time.monotonic() + wait_s
            self._progress(time.monotonic() - begin, watches)
            time.sleep(wait_s)
            if until < end:
                self._watch_children(watches, stack)
                for watch in list(watches):
                    try:
                        # One that runs no Python code keeps nobody waiting.
                        self._add(watch.slices(_SLICE_S if watch.is_begun
                                               else _AT_ONCE_S))
                    except Refusal:
                        if watch is watches[0]:
                            raise
                        watches.remove(watch)
            if all(watch.is_over for watch in watches):
                return

    def _add(self, slices):
        for tables in slices:
            self.samples += _samples(tables)
            self.lost += sum(lost_counts(tables.stats).values())
            try:
                self._merger.add(tables)
            except ValueError as exc:
                raise Failure(fault(exc)) from None

    def _progress(self, took_s, watches):
        pid = self.process.pid
        lost = f'{self.lost:,} lost' if self.lost else 'none lost'
        said = (f'{self.samples:,} samples, {lost}'
                if any(watch.is_begun for watch in watches)
                else 'has run no Python yet')
        self._show(f'PID {pid}  {took_s:.0f} of {self._duration_s} s  {said}'
                   '     Ctrl-C ends and writes')

    def _show(self, line):
        if self._is_terminal:
            sys.stderr.write(f'\r\033[K{line}')
            sys.stderr.flush()

    def is_clean(self):
        """Return whether nothing of ours is left in the processes."""
        return all(_is_clean(process.pid) for process in self._processes)


def _samples(tables):
    """Return how many there are: of memory alone, blocks."""
    return (tables.total(COUNT.name) if COUNT in tables.value_types
            else tables.stats['allocations'])


def _is_clean(pid):
    """Wait a moment for our thread to end."""
    for _ in range(20):
        names = set()
        try:
            for number in os.listdir(f'/proc/{pid}/task'):
                with open(f'/proc/{pid}/task/{number}/comm') as file:
                    names.add(file.read().strip())
        except OSError:
            return False
        if 'sampleprof' not in names:
            return True
        time.sleep(0.02)
    return False


def _say_end(watched, tables, output, num_bytes):
    pid = watched.process.pid
    took = f'{watched.took_s:.1f} s'
    if watched.is_early:
        how = f', {watched.ending}' if watched.ending else ''
        show(f'PID {pid} ended after {took}{how}.\n')
        took = f'{watched.took_s:.1f} of {watched._duration_s} s'
    if output == STDOUT:
        return
    lost = (f', {counted(watched.lost, "sample", "samples")} lost'
            if watched.lost else '')
    answers = _answers(tables) if COUNT in tables.value_types else ''
    show(f'Wrote {output}: PID {pid}, {took}, '
         f'{_samples(tables):,} samples{lost}, {size(num_bytes)}.\n'
         f'{answers}\nLook:  python -m profile_sampling report {output}\n')
    if not watched.is_early and watched.is_clean():
        show(f'PID {pid} is as it was: no thread, file or descriptor of ours '
             'is left in it.\n')


def _answers(tables):
    """Return the three lines of top about all of it."""
    windows = Windows()
    windows.add(tables)
    return '\n'.join(three_lines(
        answers(windows.all, Choices(), time.time()),
        reached.width(sys.stderr), lambda text, style: text)) + '\n'


def _usage(process):
    """Return {name: number} of what a process has used so far."""
    found = dict.fromkeys(('minflt', 'majflt', 'user', 'sys', 'peak', *_IO), 0)
    with contextlib.suppress(OSError, ValueError, IndexError):
        with open(f'/proc/{process.pid}/stat') as file:
            fields = file.read().rpartition(')')[2].split()
        found |= {'minflt': int(fields[7]), 'majflt': int(fields[9]),
                  'user': int(fields[11]), 'sys': int(fields[12])}
        with open(f'/proc/{process.pid}/status') as file:
            peak = re.search(r'^VmHWM:\s+(\d+) kB', file.read(), re.MULTILINE)
        found['peak'] = int(peak[1]) << 10 if peak else 0
        with open(f'/proc/{process.pid}/io') as file:
            text = file.read()
        for name in _IO:
            found[name] = int(re.search(rf'^{name}: (\d+)$', text,
                                        re.MULTILINE)[1])
    return found


def _used(before, after, real_s):
    ticks = os.sysconf('SC_CLK_TCK')
    more = {name: max(0, after[name] - before[name]) for name in before}
    return {
        'real_s': real_s, 'user_s': more['user'] / ticks,
        'sys_s': more['sys'] / ticks, 'peak_memory_bytes': after['peak'],
        'peak_memory_is_bound': False, 'page_faults_minor': more['minflt'],
        'page_faults_major': more['majflt'],
        'disk_read_bytes': more['read_bytes'],
        'disk_written_bytes': more['write_bytes']}
