"""Samples allocations by one way or another, or not, by turns, and prints what
that costs, as JSON.

    python memory_child.py PROGRAM LAYOUT ROUNDS WAY...
        {way: [ratio, ...]}, of the CPU time of slices to that of the slices
        without, each round; memory is laid out by LAYOUT
    python memory_child.py PROGRAM LAYOUT 0 WAY
        most resident bytes; "off" is without
"""

import contextlib
import gc
import json
import random
import sys
import time

import programs

# What is timed in a row.
SLICE_NS = 150_000_000


def sampling(way):
    if way == 'alloc':
        import profile_sampling
        return profile_sampling.profile(mode='alloc')
    if way == 'tracemalloc':
        return tracing()
    if way == 'memray':
        import memray
        return memray.Tracker(destination=memray.FileDestination(
            '/dev/null', overwrite=True))
    return contextlib.nullcontext()


@contextlib.contextmanager
def tracing():
    import tracemalloc
    tracemalloc.start()
    try:
        yield
    finally:
        tracemalloc.stop()


def cpu_ns(run, times):
    begin_ns = time.process_time_ns()
    run(times)
    return time.process_time_ns() - begin_ns


def slice_ns(run, times, way):
    gc.collect()
    with sampling(way):
        run(1)
        return cpu_ns(run, times)


def costs(run, times, rounds, ways):
    """An order of its own each round, and twice that without."""
    found = {way: [] for way in ways}
    for number in range(rounds):
        order = ['off', *ways, 'off']
        random.Random(number).shuffle(order)
        spent = {}
        for way in order:
            spent.setdefault(way, []).append(slice_ns(run, times, way))
        off = sum(spent['off']) / 2
        for way in ways:
            found[way].append(spent[way][0] / off)
    return found


def most_resident():
    """Of this program: ru_maxrss would have what its parent had, too."""
    with open('/proc/self/status') as file:
        [line] = [line for line in file if line.startswith('VmHWM:')]
    return int(line.split()[1]) << 10


def main(name, layout, rounds, *ways):
    padding = programs.moved(int(layout))
    run = programs.BY_NAME[name]()
    run(2)
    portion_ns = cpu_ns(run, 5) / 5
    if rounds != '0':
        times = max(1, round(SLICE_NS / portion_ns))
        print(json.dumps(costs(run, times, int(rounds), ways)))
        return
    with sampling(ways[0]):
        run(programs.PROGRAMS[programs.__dict__[name]])
    print(json.dumps(most_resident()))
    del padding


if __name__ == '__main__':
    main(*sys.argv[1:])
