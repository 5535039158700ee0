"""Times programs that are profiled and programs that are not.

    python services_cost_child.py busy SLICE_MS ROUNDS BARE_TICKER.SO
    python services_cost_child.py asleep RATE_HZ SECONDS
    python services_cost_child.py hand_over TIMES ROUNDS

Prints JSON.  busy: {how: [[cpu_ns, wall_ns, ticks], ...]}, one item for each
round, of the whole process.  asleep: [cpu_ns, wall_ns].  hand_over: {how:
[wall_ns, ...]}.
"""

import ctypes
import json
import random
import sys
import threading
import time

import profile_sampling
from truth_work import python_loop

RATE_HZ = 1000
# How the busy loop is interrupted; the bare ones as bare_ticker.c has them.
PLAIN, OURS = 'plain', 'ours'
BARE = {'thread': 1, 'timer': 2}
# What all others are compared with is measured more often.
SLICES = {PLAIN: 2}
HAND_OVER_RATE_HZ = 1000


def _loops_of(slice_ms):
    count = 100_000
    while True:
        begin_ns = time.thread_time_ns()
        python_loop(count)
        took_ns = time.thread_time_ns() - begin_ns
        if took_ns > slice_ms * 1e6 / 4:
            return int(count * slice_ms * 1e6 / took_ns)
        count *= 2


class Busy:
    def __init__(self, slice_ms, ticker_path):
        self.count = _loops_of(slice_ms)
        self.ticker = ctypes.CDLL(ticker_path)
        self.ticker.bare_stop.restype = ctypes.c_long

    def slice(self, how):
        """(CPU time and wall time in ns, signals that were handled)."""
        if how in BARE:
            err = self.ticker.bare_start(BARE[how], RATE_HZ)
            if err:
                raise OSError(err, 'cannot start the ticker')
        elif how == OURS:
            profile_sampling.start('wall', rate_hz=RATE_HZ)
        cpu_ns, wall_ns = time.process_time_ns(), time.perf_counter_ns()
        python_loop(self.count)
        cpu_ns = time.process_time_ns() - cpu_ns
        wall_ns = time.perf_counter_ns() - wall_ns
        ticks = 0
        if how in BARE:
            ticks = self.ticker.bare_stop()
        elif how == OURS:
            ticks = profile_sampling.stop().counters['captures']
        return cpu_ns, wall_ns, ticks


def busy(slice_ms, rounds, ticker_path):
    """All of them in each round, in random order."""
    bench, rng = Busy(float(slice_ms), ticker_path), random.Random(1)
    order = [how for how in (PLAIN, OURS, *BARE)
             for _ in range(SLICES.get(how, 1))]
    found = {how: [] for how in order}
    for how in found:
        bench.slice(how)
    for _ in range(int(rounds)):
        rng.shuffle(order)
        slices = {}
        for how in order:
            slices.setdefault(how, []).append(bench.slice(how))
        for how, own in slices.items():
            found[how].append([sum(column) / len(own)
                               for column in zip(*own)])
    return found


def asleep(rate_hz, seconds):
    profile_sampling.start('wall', rate_hz=int(rate_hz))
    cpu_ns, wall_ns = time.process_time_ns(), time.perf_counter_ns()
    time.sleep(float(seconds))
    cpu_ns = time.process_time_ns() - cpu_ns
    wall_ns = time.perf_counter_ns() - wall_ns
    profile_sampling.stop()
    return cpu_ns, wall_ns


def _hand_over(times):
    """Two threads wake each other in turn; wall time in ns."""
    locks = threading.Lock(), threading.Lock()

    def member(own, other):
        for _ in range(times // 2):
            own.acquire()
            other.release()

    for lock in locks:
        lock.acquire()
    threads = [threading.Thread(target=member, args=pair)
               for pair in (locks, locks[::-1])]
    for thread in threads:
        thread.start()
    begin_ns = time.perf_counter_ns()
    locks[0].release()
    for thread in threads:
        thread.join()
    return time.perf_counter_ns() - begin_ns


def hand_over(times, rounds):
    found = {PLAIN: [], OURS: []}
    rng = random.Random(1)
    order = list(found)
    _hand_over(int(times))
    for _ in range(int(rounds)):
        rng.shuffle(order)
        for how in order:
            if how == OURS:
                profile_sampling.start('wall', rate_hz=HAND_OVER_RATE_HZ)
            found[how].append(_hand_over(int(times)))
            if how == OURS:
                profile_sampling.stop()
    return found


def main():
    what, *args = sys.argv[1:]
    functions = {'busy': busy, 'asleep': asleep, 'hand_over': hand_over}
    json.dump(functions[what](*args), sys.stdout)


if __name__ == '__main__':
    main()
