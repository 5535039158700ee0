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
from standstill import time_taken, time_taken_by_ours
from steady import BARE, PRIVILEGED, BareTicker
from test.test_profile_sampling.support import work

RATE_HZ = 1000
# How the busy loop is interrupted, beside the bare ways.
PLAIN, OURS = 'plain', 'ours'
HAND_OVER_RATE_HZ = 1000


class Interrupted:
    def __init__(self, slice_ms, ticker_path):
        self.slice_ns = int(slice_ms) * 1_000_000
        self.ticker = BareTicker(ticker_path)

    def slice(self, how):
        """(time taken and wall time in ns, signals that were handled)."""
        if how == PLAIN:
            return *time_taken(self.slice_ns), 0
        if how == OURS:
            return time_taken_by_ours(self.slice_ns, RATE_HZ)
        self.ticker.start(how, RATE_HZ)
        taken_ns, wall_ns = time_taken(self.slice_ns)
        return taken_ns, wall_ns, self.ticker.stop()


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
