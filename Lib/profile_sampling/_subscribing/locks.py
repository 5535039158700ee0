"""Locks that signal handlers, finalizers and daemon threads may get into.

This file owns how such a lock is taken and given back.  It must not know what
it guards.
"""

import sys

from profile_sampling import _core

# Between looks at a lock.
MIN_PAUSE_NS = 50_000
MAX_PAUSE_NS = 10_000_000


def locked(lock, function, *args, waits=True):
    """Return function(*args), called with the lock; or None without it.

    Until it is taken, signal handlers run, and may raise.  What else is raised
    at any moment, by a trace function say, leaves no lock taken: "try" stands
    before the call that acquires it, and the first call after "finally" is the
    one that releases it.
    """
    try:
        return function(*args) if _acquire(lock, waits) else None
    finally:
        try:
            lock.release()
        except RuntimeError:
            pass            # it was not acquired


def _acquire(lock, waits):
    """Return whether the lock is taken.

    While the interpreter ends, it may be a daemon thread's for ever.  A daemon
    thread that waits for it has to come round to find that it is to end, and
    may not be in a lock's queue then: it would stay there.
    """
    pause_ns = MIN_PAUSE_NS
    while not lock.acquire(blocking=False):
        if not waits or sys.is_finalizing():
            return False
        _core.load().pause(pause_ns)
        pause_ns = min(2 * pause_ns, MAX_PAUSE_NS)
    return True
