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
MIN_TICKS = 500


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


def tick_ns(rate_hz):
    """What a tick takes of this thread's time, beside what interrupts it
    anyway.  It computes without pause: its caches are warm, and it has a timer.
    Where the sampler thread asks, a tick takes more on one CPU, and half as
    much on two."""
    duration_ns = MIN_TICKS * 1_000_000_000 // rate_hz
    plain_ns, plain_wall_ns = time_taken(duration_ns)
    taken_ns, wall_ns, ticks = time_taken_by_ours(duration_ns, rate_hz)
    return (taken_ns - plain_ns * wall_ns / plain_wall_ns) / ticks
