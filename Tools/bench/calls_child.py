"""Counts calls by one way and prints what that costs, as JSON.

    python calls_child.py WAY ROUNDS
"""

import contextlib
import json
import statistics
import sys
import time

from profile_sampling import profile
from test.test_profile_sampling.support import counted_programs

N = 100_000
PROGRAMS = ('unparse', 'tokens', 'parse_html', 'copy_deeply', 'read_config',
            'run_tasks', 'add_fractions', 'read_arguments')
# Of a program, so that it takes long enough to be timed.
PORTION_NS = 30_000_000


def f():
    pass


class A:
    def __init__(self):
        pass


class Answers:
    def __getattr__(self, name):
        return 1


def values(n):
    for number in range(n):
        yield number


def same(x):
    return x


def python_call():
    for _ in range(N):
        f()


def two_sites():
    for _ in range(N // 2):
        f()
        f()


def getattr_call():
    answers = Answers()
    for _ in range(N):
        answers.name


def init_call():
    for _ in range(N):
        A()


def resume():
    for _ in values(N):
        pass


def key_call(data=list(range(N))):
    sorted(data, key=same)


def len_call(data=[]):
    for _ in range(N):
        len(data)


def append_call():
    data = []
    for _ in range(N):
        data.append(1)


def min_call():
    for _ in range(N):
        min(1, 2)


LOOPS = {'f()': python_call, 'f(); f()': two_sites, 'getattr': getattr_call,
         'A()': init_call, 'resume': resume, 'key=f': key_call,
         'len': len_call, 'append': append_call, 'min': min_call}


def counting(way):
    if way == 'cProfile':
        import cProfile
        return cProfile.Profile()
    if way == 'yappi':
        import yappi
        yappi.set_clock_type('cpu')
        return yappi.run()
    # At 1 Hz the samples take nothing.
    return profile(rate_hz=1, calls=way)


def cpu_ns(run):
    begin_ns = time.process_time_ns()
    run()
    return time.process_time_ns() - begin_ns


def least_ns(run, block):
    """The least of three, when the code has been made ready."""
    with block:
        run()
        return min([cpu_ns(run) for _ in range(3)])


def both_ns(way, run):
    return (least_ns(run, contextlib.nullcontext()),
            least_ns(run, counting(way)))


def loop(way, run, rounds):
    pairs = [both_ns(way, run) for _ in range(rounds)]
    return [statistics.median([alone for alone, _ in pairs]) / N,
            statistics.median([with_ - alone for alone, with_ in pairs]) / N]


def program(way, run, rounds):
    run()
    times = max(1, PORTION_NS // cpu_ns(run))

    def portion():
        for _ in range(times):
            run()
    return statistics.median([with_ / alone for alone, with_ in [
        both_ns(way, portion) for _ in range(rounds)]])


def main(way, rounds):
    print(json.dumps({
        'loops': {name: loop(way, run, rounds)
                  for name, run in LOOPS.items()},
        'programs': {name: program(
            way, getattr(counted_programs, name), rounds)
            for name in PROGRAMS}}))


if __name__ == '__main__':
    main(sys.argv[1], int(sys.argv[2]))
