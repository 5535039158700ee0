"""A session of pyinstrument, from samples of the interpreter's own.

    recorder = Recorder()
    with profile_sampling.subscribe(recorder, moments=True):
        work()
    print(ConsoleRenderer(show_all=True).render(recorder.session()))
"""

import itertools
import operator
import os
import sys
import time

from pyinstrument.session import Session


class Recorder:
    """A callback for subscribe() that keeps the samples of each thread.

    clock  'wall' or 'cpu': by which one pyinstrument is to weigh
    """

    def __init__(self, clock='wall'):
        self._clock = f'{clock}_ns'
        self._start_time_ns = time.time_ns()
        self._start_ns = time.monotonic_ns()
        self._end_ns = self._start_ns
        self._cpu_ns = 0
        self._count = 0
        self._threads = {}

    def __call__(self, batch):
        for sample in batch:
            self._end_ns = max(self._end_ns, sample.time_ns)
            self._cpu_ns += sample.cpu_ns
            self._count += sample.count
            thread = sample.thread
            self._threads.setdefault(
                (thread.ident, thread.native_id, thread.interpreter_id),
                []).append(sample)

    def session(self, interval=0.001):
        """Return what came in so far as a pyinstrument Session.

        pyinstrument knows one line of time: the threads follow each other,
        each below a frame with its name.
        """
        infos = {}
        records = [(self._stack(sample, infos), ns / 1e9)
                   for samples in self._threads.values()
                   for sample, ns in self._in_order(samples)]
        return Session(
            frame_records=records,
            start_time=self._start_time_ns / 1e9,
            duration=(self._end_ns - self._start_ns) / 1e9,
            min_interval=interval,
            max_interval=interval,
            sample_count=self._count,
            start_call_stack=[''],      # of no frame: trim none
            target_description=f'Process {os.getpid()}',
            cpu_time=self._cpu_ns / 1e9,
            sys_path=list(sys.path),
            sys_prefixes=Session.current_sys_prefixes())

    def _in_order(self, samples):
        """Yield the samples by time, equal ones in a row as one of all their
        time."""
        # A sample of a thread that runs comes later than one of its waits.
        samples.sort(key=operator.attrgetter('time_ns'))
        for _, group in itertools.groupby(samples,
                                          operator.attrgetter('key')):
            row = list(group)
            yield row[0], sum([getattr(sample, self._clock)
                               for sample in row])

    def _stack(self, sample, infos):
        thread = sample.thread
        stack = [thread.name or f'Thread {thread.native_id}']
        for frame in reversed(sample.stack):
            if frame not in infos:
                infos[frame] = frame_info(frame)
            stack.append(infos[frame])
        if not sample.stack:
            stack.append(f'[{sample.state}]')
        return stack


def frame_info(frame):
    """The text that stands for a frame: function, place, and line."""
    function = frame.function
    if function.kind == 'python':
        return (f'{function.qualname}\0{function.filename}\0'
                f'{function.first_line}\1l{frame.line}')
    if function.kind == 'pseudo':
        return function.qualname
    return f'{function.name}\0<built-in>\x000'
