"""Running a service on some CPUs, alone or in a crowd, with a profiler."""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time

import children
import services_peers

OURS = 'ours'
SPIN = 'while True: pass'
SPIN_START_S = 0.3


@contextlib.contextmanager
def on_cpus(count):
    """What is started meanwhile shares this many CPUs."""
    allowed = os.sched_getaffinity(0)
    if len(allowed) < count:
        raise children.Unavailable(f'{count} CPUs are needed')
    os.sched_setaffinity(0, sorted(allowed)[:count])
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


@contextlib.contextmanager
def crowd(count):
    """So many processes that want the CPU all the time."""
    spinning = []
    try:
        for _ in range(count):
            spinning.append(subprocess.Popen(
                [sys.executable, '-E', '-S', '-c', SPIN],
                env=children.environment()))
        if spinning:
            time.sleep(SPIN_START_S)
        yield
    finally:
        for process in spinning:
            process.kill()
        for process in spinning:
            process.wait()


class Child:
    """A script of this directory, which goes on at each line that it gets."""

    def __init__(self, interpreter, script, *args):
        self._script = script
        self._stderr = tempfile.TemporaryFile('w+')
        self._process = subprocess.Popen(
            [interpreter, '-E', '-s', str(children.HERE / script),
             *map(str, args)],
            env=children.environment(), stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=self._stderr, text=True)
        self.pid = self._process.pid

    def answer(self):
        line = self._process.stdout.readline()
        if not line:
            self._process.wait()
            self._stderr.seek(0)
            raise children.Unavailable(
                f'{self._script} ended with status '
                f'{self._process.returncode}:\n{self._stderr.read().strip()}')
        return line

    def go_on(self):
        self._process.stdin.write('\n')
        self._process.stdin.flush()

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        # The ends of a process that a profiler has stopped come late.
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._stderr.close()


def run(cell, profiler, path, seconds, longest_s):
    """What the service knows, with what the profiler found.

    `path` is of a peer's executable.  The crowd comes when the service has
    planned its work and the profiler has attached, which would else take
    several times as long.
    """
    with (on_cpus(cell.cpus),
          Child(services_peers.interpreter(profiler, path),
                'services_child.py', cell.service, cell.burst_ms, profiler,
                cell.rate_hz, seconds, longest_s) as child):
        child.answer()
        attached = None
        if profiler != OURS:
            attached = services_peers.Attached(profiler, path, child.pid,
                                               cell.rate_hz)
        try:
            with crowd(cell.crowd):
                child.go_on()
                result = json.loads(child.answer())
        finally:
            if attached is not None:
                found = attached.end()
        if attached is not None:
            result['found'] = found
    if not all(result['true_wall_ns']) or not all(
            result['calibrated_cpu_ns']):
        raise children.Unavailable('too few bursts in that time')
    return result
