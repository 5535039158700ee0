"""How long a program stands still for ticks, by its own clock.

CPU time would do if machines kept their speed: it differs by a fifth from one
slice to the next on some, and a thousand ticks take a fiftieth.
"""

import time

from steady import start_steady, stop_steady

# A loop that reads the clock stands still if a turn takes longer than this:
# undisturbed it takes 0.1 us.  Beyond the other limit another process had the
# CPU.
STANDS_STILL_NS = 1500
OTHERS_NS = 400_000


def time_taken(duration_ns):
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


def time_taken_by_ours(duration_ns, rate_hz):
    """The same in a program that is profiled, and its ticks."""
    before = start_steady(lambda: time_taken(1_000_000), rate_hz=rate_hz)
    taken_ns, wall_ns = time_taken(duration_ns)
    return taken_ns, wall_ns, stop_steady(before)
