"""The clocks of this process.

This file owns which functions are asked.  Programs put functions of their own
in the place of time.time(), time.monotonic() and their like, to have their
tests run at a time of their choice.  It must not know what is measured.
"""

from time import CLOCK_MONOTONIC, CLOCK_REALTIME, clock_gettime_ns


def monotonic_ns():
    """As time.monotonic_ns()."""
    return clock_gettime_ns(CLOCK_MONOTONIC)


def monotonic():
    """As time.monotonic()."""
    return monotonic_ns() / 1e9


def time_ns():
    """As time.time_ns()."""
    return clock_gettime_ns(CLOCK_REALTIME)
