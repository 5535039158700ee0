"""Programs that run and are asked."""

import contextlib
import os
import signal
import subprocess
import sys
import time

from .sessions import _profile      # skips where there is no profiler

# The prelude of every program: it says that it is ready.
READY = '''
import sys, threading, time
def ready():
    print("ready", flush=True)
def thread(function, name=None):
    t = threading.Thread(target=function, name=name, daemon=True)
    t.start()
    return t
'''
_FORK = '''
import os
def fork():
    pid = os.fork()
    if pid == 0:
        time.sleep(1000)
    ready()
    print(pid, flush=True)
    sys.stdin.read()
'''
LIMIT_S = 30
# Of sys.executable's own kind, without the test's options.
_ENVIRONMENT = {key: value for key, value in os.environ.items()
                if not key.startswith('PYTHONSAMPLEPROF')}


@contextlib.contextmanager
def running(source, *options, env=(), **keywords):
    """Run a program until the block ends; yield it when it is ready."""
    with subprocess.Popen(
            [sys.executable, *options, '-c', READY + source],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=_ENVIRONMENT | dict(env), **keywords) as process:
        try:
            assert process.stdout.readline() == 'ready\n'
            yield process
        finally:
            process.kill()


@contextlib.contextmanager
def running_with_child(source):
    """Run a program that calls fork(); yield it and the PID of its child,
    which sleeps."""
    with running(_FORK + source) as program:
        child = int(program.stdout.readline())
        try:
            yield program, child
        finally:
            os.kill(child, signal.SIGKILL)


def command(*arguments, **keywords):
    """Run the command line; return what it did."""
    return subprocess.run(
        [sys.executable, '-m', 'profile_sampling', *map(str, arguments)],
        capture_output=True, text=True, timeout=LIMIT_S, env=_ENVIRONMENT,
        **keywords)


def until(true, limit_s=LIMIT_S):
    """Wait until a function returns something true; return that."""
    deadline = time.monotonic() + limit_s
    while not (found := true()):
        if time.monotonic() > deadline:
            raise AssertionError(f'not within {limit_s} s')
        time.sleep(0.02)
    return found


def asleep(process):
    """Wait until all threads of a process sleep."""
    def all_sleep():
        directory = f'/proc/{process.pid}/task'
        states = []
        for number in os.listdir(directory):
            with open(f'{directory}/{number}/stat') as file:
                states.append(file.read().rpartition(')')[2].split()[0])
        return set(states) == {'S'}
    until(all_sleep)


def footprint(pid):
    """Return what a process has: threads, descriptors, handlers."""
    with open(f'/proc/{pid}/status') as file:
        signals = [line for line in file if line.startswith('Sig')
                   and not line.startswith('SigQ')]
    fds = {}
    for name in os.listdir(f'/proc/{pid}/fd'):
        with contextlib.suppress(FileNotFoundError):    # closed meanwhile
            fds[name] = os.readlink(f'/proc/{pid}/fd/{name}')
    with open(f'/proc/{pid}/maps') as file:
        shared = [line for line in file if 'sampleprof' in line]
    return sorted(os.listdir(f'/proc/{pid}/task')), fds, signals, shared
