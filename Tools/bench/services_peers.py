"""Other profilers, attached to a process: py-spy, Austin and Tachyon.

They come from the environment that "make third-parties" makes, or from a
directory or PATH that holds them.  Tachyon is Python 3.15's own and samples
that version only, so what it samples is run by it.
"""

import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import children
import services_burst
from machine import ROOT

VENV = ROOT / 'build' / 'third_parties' / 'venv' / 'bin'
# To attach takes each of them less.
ATTACH_S = 1
END_S = 60

# What they call the frame of the burst, with its line as a group.
_PY_SPY_FRAME = re.compile(
    rf'(?:^|;){services_burst.FUNCTION} '
    r'\((?:[^;]*/)?services_burst\.py:(\d+)\)')
_COLONS_FRAME = re.compile(
    rf';[^;]*services_burst\.py:{services_burst.FUNCTION}:(\d+)')


def _py_spy(path, pid, rate_hz, out):
    return [path, 'record', '--format', 'raw', '--rate', str(rate_hz),
            '--output', out, '--pid', str(pid)]


def _py_spy_gil(*args):
    """What does not hold the GIL does not count."""
    return [*_py_spy(*args), '--gil']


def _austin(path, pid, rate_hz, out):
    return [path, '-i', f'{1_000_000 // rate_hz}us', '-o', out, '-p',
            str(pid)]


def _tachyon(path, pid, rate_hz, out):
    return [path, '-m', 'profiling.sampling', 'attach', '--all-threads',
            '--sampling-rate', str(rate_hz), '--collapsed', '-o', out,
            str(pid)]


# Executable, command, frame, and whether a line of the output is one sample
# that weighs so many microseconds, or as many samples.  py-spy looks at what
# runs, or at who holds the GIL: which one serves better depends on the cell.
PEERS = {'py-spy': ('py-spy', _py_spy, _PY_SPY_FRAME, False),
         'py-spy --gil': ('py-spy', _py_spy_gil, _PY_SPY_FRAME, False),
         'austin': ('austin', _austin, _COLONS_FRAME, True),
         'tachyon': ('python3.15', _tachyon, _COLONS_FRAME, False)}


def find(peer, directory):
    """The path of a peer's executable."""
    name = PEERS[peer][0]
    path = shutil.which(name, path=directory or VENV)
    if path is None and directory is None:
        path = shutil.which(name)
    if path is None:
        raise children.Unavailable(
            f'{name} is missing; run "make third-parties SUITES=profilers" '
            'for py-spy and austin, or tell with --peers in which directory '
            'it is')
    return path


def interpreter(peer, path):
    """What runs the program that a peer samples; *path* is of the peer."""
    return path if peer == 'tachyon' else sys.executable


def _cpu_of_children_s():
    """That of processes that have been waited for."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _read(text, frame, weighs):
    """Weights and counts of the six lines."""
    lines = services_burst.LINES
    weights, counts = [0] * len(lines), [0] * len(lines)
    for line in text.splitlines():
        stack, _, number = line.rpartition(' ')
        found = frame.search(stack)
        if found is None or int(found[1]) not in lines:
            continue
        i = lines.index(int(found[1]))
        weights[i] += int(number)
        counts[i] += 1 if weighs else int(number)
    return {'wall_ns' if weighs else 'weight': weights, 'count': counts}


class Attached:
    """A peer that samples a process, until end() tells what it found."""

    def __init__(self, name, path, pid, rate_hz):
        _, command, self._frame, self._weighs = PEERS[name]
        self._name = name
        self._directory = tempfile.TemporaryDirectory(prefix='bench')
        self._out = pathlib.Path(self._directory.name, 'out')
        self._log = open(pathlib.Path(self._directory.name, 'log'), 'w+')
        self._process = subprocess.Popen(
            command(path, pid, rate_hz, self._out), stdout=self._log,
            stderr=subprocess.STDOUT)
        time.sleep(ATTACH_S)

    def end(self):
        """Weights and counts of the six lines, and its own CPU time."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
        before_s = _cpu_of_children_s()
        try:
            self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.seek(0)
        with self._directory, self._log:
            if not self._out.exists():
                raise children.Unavailable(
                    f'{self._name} wrote nothing: {self._log.read()[-300:]}')
            found = _read(self._out.read_text(errors='replace'), self._frame,
                          self._weighs)
        found['own_cpu_ns'] = int((_cpu_of_children_s() - before_s) * 1e9)
        return found
