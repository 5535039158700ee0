"""Forks, with sessions in the children, and programs started."""

import os
import signal
import subprocess
import sys
import time

import profile_sampling
from moments import Moments

OPERATORS = {'dict.__getitem__', 'float.__add__', 'float.__gt__',
             'float.__truediv__', 'int.__add__', 'int.__bool__',
             'int.__eq__', 'int.__truediv__', 'module.__getattribute__',
             'tuple.__eq__', 'tuple.__getitem__'}
ENTRIES = {'work', 'fork', 'fork_and_sample', 'fork_again', 'start_program'}
CALLS = {
    'work': {'time.sleep', 'fork', 'fork_and_sample', 'fork_again',
             'start_program', 'program.*', 'random.*', '_random.*'},
    'fork': {'logging.*', 'in_child', 'wait', 'posix.*'},
    'fork_and_sample': {'logging.*', 'in_child', 'sample_in_child', 'wait',
                        'posix.*'},
    'fork_again': {'logging.*', 'in_child', 'wait', 'posix.*', 'spin'},
    'sample_in_child': {'spin', 'profile_sampling.*', 'builtins.sum',
                        'test.*', 'validator.*'},
    'in_child': {'posix.*'},
    'spin': {'builtins.sum', 'range'},
    'wait': {'posix.*', 'os.*', 'time.*'},
    'start_program': {'subprocess.*'},
}

# A child that takes longer than this hangs.
CHILD_SECONDS = 60


def spin(n):
    return sum(range(n))


def in_child(work):
    """End the process by what *work* returns."""
    status = 70
    try:
        status = work()
    except BaseException as exc:
        sys.excepthook(type(exc), exc, exc.__traceback__)
    finally:
        os._exit(status)


def wait(run, pid):
    end = time.monotonic() + CHILD_SECONDS
    while (ended := os.waitpid(pid, os.WNOHANG)) == (0, 0):
        time.sleep(0.001)
        if time.monotonic() > end:
            os.kill(pid, signal.SIGABRT)        # it tells where it hangs
            end += CHILD_SECONDS
    status = os.waitstatus_to_exitcode(ended[1])
    run.count('forks')
    if status:
        run.fault(f'the child of a fork ended with status {status}')


def do_nothing():
    spin(2000)
    return 3 if profile_sampling.running() else 0


def sample_in_child():
    with Moments() as beginning:
        profile_sampling.start(rate_hz=10_000)
    spin(50_000)
    with Moments() as ending:
        profile = profile_sampling.stop()
    threads = {thread.native_id for thread in profile.threads}
    if threads != {os.getpid()}:
        sys.stderr.write(f'threads of the parent in the child: {threads}\n')
        return 4
    least_ns = ending.before_ns - beginning.after_ns
    most_ns = ending.after_ns - beginning.before_ns
    if not least_ns <= profile.total_wall_ns <= most_ns:
        sys.stderr.write(f'{profile.total_wall_ns} ns in the child, not '
                         f'{least_ns} to {most_ns}\n')
        return 5
    return 0


def grandchild():
    spin(100)
    pid = os.fork()
    if pid == 0:
        os._exit(sample_in_child())
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def fork(run):
    pid = os.fork()
    if pid == 0:
        in_child(do_nothing)
    wait(run, pid)


def fork_and_sample(run):
    pid = os.fork()
    if pid == 0:
        in_child(sample_in_child)
    wait(run, pid)


def fork_again(run):
    pid = os.fork()
    if pid == 0:
        in_child(grandchild)
    wait(run, pid)


def start_program(run):
    program = 'import sys; sys.exit(sum(range(100)) % 7)'
    status = subprocess.run([sys.executable, '-I', '-S', '-c', program]
                            ).returncode
    run.count('programs')
    if status != 4950 % 7:
        run.fault(f'a program ended with status {status}')


def work(run):
    rng = run.rng('processes')
    while not run.over():
        rng.choice((fork, fork, fork_and_sample, fork_again,
                    start_program))(run)
        time.sleep(rng.random() / 100)
