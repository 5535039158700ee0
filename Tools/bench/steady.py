"""A session as users meet it: after its beginning.

A session begins with questions of the sampler thread.  It gives threads timers
of their own when looks that stand for half a second of running time have found
nobody asleep with the GIL (clock/trial.c).
"""

import time

import profile_sampling

# Well more than half a second.
TRIAL_S = 0.8

# The cheapest ways to interrupt a thread, as bare_ticker.c numbers them.
BARE = {'thread': 1, 'timer': 2}


def start_steady(work, mode='wall', **options):
    """Start a session, and call work() until its threads have timers."""
    profile_sampling.start(mode, **options)
    begin_ns = time.thread_time_ns()
    while time.thread_time_ns() - begin_ns < TRIAL_S * 1e9:
        work()


def captures():
    """How often the session has interrupted threads by now."""
    stats = profile_sampling.stats()
    return stats['captures'] + stats['captures_merged']
