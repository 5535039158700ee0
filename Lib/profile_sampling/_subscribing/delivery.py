"""The thread that delivers batches, one per interpreter.

The thread lives while there are subscriptions.  It is none of threading's,
so that a program which counts its threads counts as many as without it.  No
signal handler ever runs on it.

Everything else here may be interrupted anywhere, by a signal handler or a
finalizer that subscribes, closes and waits for the helper in its turn.  So
nothing here is done with a lock: a step is a single operation on a list or a
variable, and each order of two steps is stated where it matters.
"""

import _interpreters
import _thread
import atexit
import os
import sys

from profile_sampling import _clock, _core

# After an exception that is none of a callback's.
PAUSE_NS = 1_000_000_000

# What is served.
_subscriptions = []
# Held by the thread that serves; another one that was started ends at once.
_serving = _thread.allocate_lock()
# Those that were started.
_helpers = []
# No more subscriptions; all helpers are to end.
_is_over = False
_is_ending = False


def add(subscription):
    """Deliver to it from now on."""
    _subscriptions.append(subscription)
    try:
        # Only then: who sets it closes those that it finds.
        if _is_over:
            raise _core.shutting_down()
        _have_served()
    except BaseException:
        _discard(_subscriptions, subscription)
        raise
    finally:
        # The helper may sleep for longer than the new one can wait.
        _core.load().wake()


def deliver(subscription):
    """Have the helper deliver what waits, and wait for that.

    A signal handler runs meanwhile as in any wait for a lock.  Callbacks, and
    threads that they start, do not wait: the helper may be waiting for them.
    """
    if sys.is_finalizing() or subscription._pid != os.getpid():
        return          # there is no helper any more
    core = _core.load()
    if core.is_excluded():
        core.wake()
        return
    done = _thread.allocate_lock()
    done.acquire()
    subscription._asked.append(done)
    # Only then: who removes it answers those that have asked.
    if subscription in _subscriptions:
        _have_served()
        core.wake()
        done.acquire()


def is_main_interpreter():
    return _interpreters.get_current()[0] == _interpreters.get_main()[0]


def close_all():
    """Close all subscriptions and wait for the helper to end."""
    global _is_ending, _is_over
    if not is_main_interpreter():
        # It must not be ended before its threads.  Of the main interpreter
        # the core ends what begins now.
        _is_over = True
    for subscription in list(_subscriptions):
        subscription.close()
    # Daemon threads may subscribe again and again.
    _is_ending = True
    try:
        for helper in list(_helpers):
            if helper.pid == os.getpid() and not sys.is_finalizing():
                _core.load().wake()
                helper.handle.join()
    finally:
        _is_ending = False


def _discard(items, item):
    try:
        items.remove(item)
    except ValueError:
        pass            # another thread has


def _have_served():
    """Start a helper, unless one serves or is about to.

    One that is about to end looks for subscriptions once more, after it has
    given _serving back; one that is about to begin will look.
    """
    if _serving.locked() or not all([known.begun for known in _helpers]):
        return
    helper = _Helper()
    helper.handle = _core.load().start_helper(
        _thread.start_joinable_thread, helper.run,
        _thread.daemon_threads_allowed())
    _helpers.append(helper)
    for known in list(_helpers):
        if known.handle.is_done():
            _discard(_helpers, known)


class _Helper:
    """A thread that serves, if no other one does."""

    def __init__(self):
        self.pid = os.getpid()
        self.begun = False

    def run(self):
        self.begun = True
        core = _core.load()
        _thread._set_sampled_name(_thread.get_ident(), 'profile_sampling')
        # A callback may fork: in the child this one is none any more.
        serving = _serving
        while _is_needed(serving) and serving.acquire(blocking=False):
            try:
                _serve(core, serving)
            finally:
                serving.release()


def _is_needed(serving):
    return _subscriptions and not _is_ending and serving is _serving


def _serve(core, serving):
    while _is_needed(serving):
        try:
            pause_ns = _serve_all(core)
        except Exception as exc:
            # No memory, say.
            core.write_unraisable(exc, _serve_all)
            pause_ns = PAUSE_NS
        if _is_needed(serving):
            core.wait_for_batches(pause_ns)


def _serve_all(core):
    """Deliver what is due; return for how long nothing will be."""
    subscriptions = list(_subscriptions)
    now = _clock.monotonic()
    if any([now >= subscription._due for subscription in subscriptions]):
        # A thread that is blocked accounts for itself when it goes on, which
        # may be long after.
        core.account_blocked()
    for subscription in subscriptions:
        if subscription._is_due(now):
            core.call_excluded(_serve_one, (subscription, now))
    core.renew_if_full()
    due = min([subscription._due for subscription in subscriptions])
    return max(0, int((due - _clock.monotonic()) * 1e9))


def _serve_one(args):
    subscription, now = args
    asked = len(subscription._asked)
    try:
        if subscription._deliver(now):
            _discard(_subscriptions, subscription)
            # Who asks from now on sees that it is removed.
            asked = len(subscription._asked)
    except Exception as exc:
        # No memory, say: it is delivered the next time.
        _core.load().write_unraisable(exc, subscription)
    finally:
        for _ in range(asked):
            subscription._asked.pop(0).release()


def _after_fork():
    """In the child there is neither the thread nor a subscription."""
    global _serving, _is_ending
    _serving = _thread.allocate_lock()
    _is_ending = False
    _helpers.clear()
    _subscriptions.clear()


atexit.register(close_all)
if not _thread.daemon_threads_allowed():
    # This interpreter waits for its threads, so the helper has to end before.
    import threading
    threading._register_atexit(close_all)
os.register_at_fork(after_in_child=_after_fork)
