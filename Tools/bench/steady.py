"""A session as users meet it: after its beginning.

A session begins with questions of the sampler thread.  It gives threads timers
of their own when looks that stand for half a second of running time have found
nobody asleep with the GIL (clock/ask.c).
"""

import ctypes
import time

import profile_sampling

# Well more than half a second.
TRIAL_S = 0.8

# The cheapest ways to interrupt a thread, as bare_ticker.c numbers them.
BARE = {'thread': 1, 'timer': 2, 'pair of timers': 3}
# Two that not everybody may use.  Containers have neither.
PRIVILEGED = {'real-time thread': 4, 'task clock': 5}


class BareTicker:
    """What interrupts the calling thread, and does nothing else."""

    def __init__(self, path):
        self._library = ctypes.CDLL(path)
        self._library.bare_stop.restype = ctypes.c_long

    def start(self, how, rate_hz):
        err = self._library.bare_start((BARE | PRIVILEGED)[how], rate_hz)
        if err:
            raise OSError(err, f'cannot start the ticker: {how}')

    def stop(self):
        """Return how many signals were handled."""
        return self._library.bare_stop()


def _captures():
    """How often the session has interrupted threads by now."""
    stats = profile_sampling.stats()
    return stats['captures'] + stats['captures_merged']


def start_steady(work, **options):
    """Start a session, and call work() until its threads have timers.

    Returns how often it has interrupted threads by then, for stop_steady().
    """
    profile_sampling.start(**options)
    begin_ns = time.thread_time_ns()
    while time.thread_time_ns() - begin_ns < TRIAL_S * 1e9:
        work()
    return _captures()


def stop_steady(before):
    """Stop it; return how often it has interrupted threads since."""
    found = _captures() - before
    profile_sampling.stop()
    return found
