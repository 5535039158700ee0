"""Other profilers find the function that runs, and so does ours beside them.

They know where in the interpreter's memory its fields are.  One that starts
the program is its parent; to attach to one that runs needs the right to
trace it.
"""

import contextlib
import os
import pathlib
import subprocess
import sys
import sysconfig
import time
from collections import Counter

import pytest
import zstandard
from profile_sampling import Profile

SCRIPTS = pathlib.Path(sysconfig.get_path('scripts'))
PROGRAM = '''
import signal, sys, time
def hot(until):
    while time.monotonic() < until:
        for i in range(10_000):
            i * i
signal.signal(signal.SIGTERM, lambda *_: sys.exit())
print('ready', flush=True)
hot(time.monotonic() + float(sys.argv[1]))
'''
START_S = 2
ATTACH_S = 1
# A dump takes a moment, and ours is to see more than imports.
BEFORE_S = 1
# Longer than a profiler takes to attach and to finish.
LIFE_S = 60


@pytest.fixture
def program(tmp_path, monkeypatch):
    """The program's command; ours must have seen the same in the end."""
    path = tmp_path / 'program.py'
    path.write_text(PROGRAM)
    sampled = 'PYTHONSAMPLEPROF' in os.environ
    if sampled:
        # No frames of C functions and operators: the others have none.
        monkeypatch.setenv('PYTHONSAMPLEPROF', 'wall,rate_hz=1000,quiet=1,'
                           f'names=off,out={tmp_path}/{{pid}}.pb.gz')
    yield [sys.executable, str(path)]
    if sampled:
        # What ddtrace-run did before it became the program is another file.
        [profile] = [path for path in tmp_path.glob('*.pb.gz')
                     if '.exec.' not in path.name]
        hot_leads(functions(profile))


@contextlib.contextmanager
def running(program):
    """Its process id, while it runs."""
    with subprocess.Popen([*program, str(LIFE_S)], text=True,
                          stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout.readline() == 'ready\n'
            time.sleep(BEFORE_S)
            yield str(process.pid)
        finally:
            process.terminate()
    assert process.returncode == 0


def run(tool, *arguments):
    subprocess.run([SCRIPTS / tool, *arguments], check=True)


def leaves(collapsed, name):
    """Weights of the functions that were running; *name* is of a frame."""
    weights = Counter()
    for line in collapsed.read_text().splitlines():
        stack, _, weight = line.rpartition(' ')
        if stack and not line.startswith('#'):
            weights[name(stack.rpartition(';')[2])] += int(weight)
    return weights


def functions(pprof):
    weights = Counter()
    for row in Profile.load(pprof).functions():
        name = row.function.name
        # A profiler's own threads wait.
        if not name.startswith('['):
            weights[name.rpartition('.')[2]] += row.self_wall_ns
    return weights


def hot_leads(weights):
    [(leader, _)] = weights.most_common(1)
    assert leader == 'hot', weights


def py_spy_name(frame):
    return frame.partition(' ')[0]


def austin_name(frame):
    return frame.split(':')[-2]


def test_py_spy_starts(program, tmp_path):
    out = tmp_path / 'out'
    run('py-spy', 'record', '-f', 'raw', '-o', out, '--', *program,
        str(START_S))
    hot_leads(leaves(out, py_spy_name))


def test_py_spy_attaches(program, tmp_path):
    out = tmp_path / 'out'
    with running(program) as pid:
        run('py-spy', 'record', '-f', 'raw', '-d', str(ATTACH_S), '-o', out,
            '--pid', pid)
    hot_leads(leaves(out, py_spy_name))


def test_py_spy_dumps(program):
    with running(program) as pid:
        dump = subprocess.run([SCRIPTS / 'py-spy', 'dump', '--pid', pid],
                              check=True, capture_output=True, text=True)
    assert ' hot (' in dump.stdout


def test_austin_starts(program, tmp_path):
    out = tmp_path / 'out'
    run('austin', '-i', '10ms', '-o', out, *program, str(START_S))
    hot_leads(leaves(out, austin_name))


def test_austin_attaches(program, tmp_path):
    out = tmp_path / 'out'
    with running(program) as pid:
        run('austin', '-i', '10ms', '-x', str(ATTACH_S), '-o', out, '-p', pid)
    hot_leads(leaves(out, austin_name))


def test_ddtrace(program, tmp_path, monkeypatch):
    # It is in the program; here it writes files and asks no agent.
    monkeypatch.setenv('DD_PROFILING_ENABLED', 'true')
    monkeypatch.setenv('DD_PROFILING_OUTPUT_PPROF', str(tmp_path / 'dd'))
    for other in ('TRACE', 'INSTRUMENTATION_TELEMETRY',
                  'REMOTE_CONFIGURATION', 'CRASHTRACKING'):
        monkeypatch.setenv(f'DD_{other}_ENABLED', 'false')
    run('ddtrace-run', *program, str(START_S))
    weights = Counter()
    unpacked = tmp_path / 'unpacked'
    for path in tmp_path.glob('dd.*.pprof'):
        with open(path, 'rb') as packed, open(unpacked, 'wb') as file:
            zstandard.ZstdDecompressor().copy_stream(packed, file)
        weights += functions(unpacked)
    hot_leads(weights)
