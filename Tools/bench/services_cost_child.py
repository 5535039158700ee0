"""Times programs that are profiled and programs that are not.

    python services_cost_child.py interruptions SLICE_MS ROUNDS BARE_TICKER.SO
    python services_cost_child.py asleep RATE_HZ SECONDS
    python services_cost_child.py hand_over TIMES ROUNDS

Prints JSON.  interruptions: {how: [[taken_ns, wall_ns, ticks], ...]}, one item
for each round: taken_ns is the time in which the program stood still; ways
that cannot be had here are missing.  asleep: [cpu_ns, wall_ns].  hand_over:
{how: [wall_ns, ...]}.
"""

import contextlib
import json
import random
import sys
import time

import profile_sampling
from steady import BARE, PRIVILEGED, BareTicker, captures, start_steady
from test.test_profile_sampling.support import work

RATE_HZ = 1000
# How the busy loop is interrupted, beside the bare ways.
PLAIN, OURS = 'plain', 'ours'
# A loop that reads the clock stands still if a turn takes longer than this:
# undisturbed it takes 0.1 us.  Beyond the other limit another process had the
# CPU.
STANDS_STILL_NS = 1500
OTHERS_NS = 400_000
HAND_OVER_RATE_HZ = 1000


def _time_taken(duration_ns):
    """(ns in which this loop stood still, ns in all)."""
    now = time.perf_counter_ns
    taken_ns = 0
    last_ns = begin_ns = now()
    while last_ns < begin_ns + duration_ns:
        now_ns = now()
        if STANDS_STILL_NS < now_ns - last_ns < OTHERS_NS:
            taken_ns += now_ns - last_ns
        last_ns = now_ns
    return taken_ns, last_ns - begin_ns


class Interrupted:
    def __init__(self, slice_ms, ticker_path):
        self.slice_ns = int(slice_ms) * 1_000_000
        self.ticker = BareTicker(ticker_path)

    def slice(self, how):
        """(time taken and wall time in ns, signals that were handled)."""
        is_bare = how not in (PLAIN, OURS)
        if is_bare:
            self.ticker.start(how, RATE_HZ)
        elif how == OURS:
            start_steady(lambda: _time_taken(1_000_000), rate_hz=RATE_HZ)
            captures_before = captures()
        taken_ns, wall_ns = _time_taken(self.slice_ns)
        ticks = 0
        if is_bare:
            ticks = self.ticker.stop()
        elif how == OURS:
            ticks = captures() - captures_before
            profile_sampling.stop()
        return taken_ns, wall_ns, ticks


def _available(program):
    """The ways that can be had here, each tried once."""
    found = [PLAIN, OURS, *BARE]
    for how in found:
        program.slice(how)
    for how in PRIVILEGED:
        with contextlib.suppress(OSError):  # the table says who is missing
            program.slice(how)
            found.append(how)
    return found


def interruptions(slice_ms, rounds, ticker_path):
    """All ways in each round, in random order."""
    program, rng = Interrupted(slice_ms, ticker_path), random.Random(1)
    order = _available(program)
    found = {how: [] for how in order}
    for _ in range(int(rounds)):
        rng.shuffle(order)
        for how in order:
            found[how].append(program.slice(how))
    return found


def asleep(rate_hz, seconds):
    profile_sampling.start('wall', rate_hz=int(rate_hz))
    cpu_ns, wall_ns = time.process_time_ns(), time.perf_counter_ns()
    time.sleep(float(seconds))
    cpu_ns = time.process_time_ns() - cpu_ns
    wall_ns = time.perf_counter_ns() - wall_ns
    profile_sampling.stop()
    return cpu_ns, wall_ns


def hand_over(times, rounds):
    found = {PLAIN: [], OURS: []}
    rng = random.Random(1)
    order = list(found)
    work.hand_over(int(times))
    for _ in range(int(rounds)):
        rng.shuffle(order)
        for how in order:
            if how == OURS:
                profile_sampling.start('wall', rate_hz=HAND_OVER_RATE_HZ)
            found[how].append(work.hand_over(int(times)))
            if how == OURS:
                profile_sampling.stop()
    return found


def main():
    what, *args = sys.argv[1:]
    functions = {'interruptions': interruptions, 'asleep': asleep,
                 'hand_over': hand_over}
    json.dump(functions[what](*args), sys.stdout)


if __name__ == '__main__':
    main()
