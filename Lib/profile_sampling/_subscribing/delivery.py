"""The thread that delivers batches, one per interpreter.

This file owns when a batch is delivered, and the end of all subscriptions,
also of those that need no such thread.  It must not know what is in a batch.

The thread lives while there are subscriptions.  It is none of threading's,
so that a program which counts its threads counts as many as without it.
"""

import _thread
import atexit
import os
import sys
import time

from profile_sampling import _core
from profile_sampling._subscribing.locks import locked

# Guards the next six.  A finalizer may subscribe and close in the middle of
# this.
_lock = _thread.RLock()
_subscriptions = []
_helper = None
_helper_pid = None
_is_starting = False
_is_over = False
_synchronous = []                   # none of its methods lets others run
_is_ending = False
_is_registered = False


def add(subscription):
    """Deliver to it from now on."""
    if not locked(_lock, _add, subscription):
        raise RuntimeError('the interpreter is shutting down: it cannot be '
                           'sampled any more')
    # It may sleep for longer than the new one can wait.
    _core.load().ring()


def _add(subscription):
    if _is_over:
        return False
    if _helper is None and not _is_starting:
        _start_helper()
    _subscriptions.append(subscription)
    return True


def remove(subscription):
    """Deliver to it no more."""
    locked(_lock, _remove, subscription)
    _core.load().ring()


def _remove(subscription):
    if subscription in _subscriptions:
        _subscriptions.remove(subscription)


def close_at_end(subscription):
    """Close it at the end; it delivers by itself."""
    _synchronous.append(subscription)


def forget(subscription):
    """It is closed."""
    try:
        _synchronous.remove(subscription)
    except ValueError:
        pass        # by two threads at a time, or in the child of a fork


def close_all():
    """Close all subscriptions and wait for the thread to end."""
    global _is_ending
    if not _core.is_main_interpreter():
        # It must not be ended before its threads.  Of the main interpreter
        # the core ends what begins now.
        locked(_lock, _refuse_more)
    for subscription in [*_synchronous, *_subscriptions]:
        subscription.close()
    helper = _helper
    if (helper is not None and helper.ident != _thread.get_ident()
            # C code may have forked: then it is a thread of the parent.
            and _helper_pid == os.getpid()
            # Then it has ended, or never will.
            and not sys.is_finalizing()):
        # Daemon threads may subscribe again and again.
        _is_ending = True
        _core.load().ring()
        helper.join()
        _is_ending = False


def _refuse_more():
    global _is_over
    _is_over = True


def _start_helper():
    global _helper, _helper_pid, _is_starting
    _is_starting = True
    try:
        # What an excluded thread starts is excluded from the beginning.
        _helper = _core.load().call_excluded(_start, _run)
        _helper_pid = os.getpid()
    except BaseException:
        # A finalizer's, which rely on this.
        for subscription in _subscriptions:
            subscription._core.close()
        _subscriptions.clear()
        raise
    finally:
        _is_starting = False


def _start(run):
    global _is_registered
    is_daemon = _thread.daemon_threads_allowed()
    if not is_daemon and not _is_registered:
        # This interpreter waits for its threads, so this one has to be told
        # before.
        import threading
        threading._register_atexit(close_all)
        _is_registered = True
    core = _core.load()
    core.count_helpers(1)
    try:
        return _thread.start_joinable_thread(run, daemon=is_daemon)
    except BaseException:
        core.count_helpers(-1)
        raise


def _run():
    core = _core.load()
    core.begin_to_serve()
    _thread._set_sampled_name(_thread.get_ident(), 'profile_sampling')
    core.call_excluded(_serve, core, True)


def _serve(core):
    while (subscriptions := locked(_lock, _whom_to_serve)) is not None:
        now = time.monotonic()
        if any([now >= subscription._due for subscription in subscriptions]):
            # A thread that is blocked accounts for itself when it goes on,
            # which may be long after.
            core.account_blocked()
        for subscription in subscriptions:
            subscription._deliver(now)
        del subscription
        core.renew_if_full()
        due = min([subscription._due for subscription in subscriptions])
        del subscriptions
        core.wait_for_batches(
            max(0, int((due - time.monotonic()) * 1e9)))


def _whom_to_serve():
    """Return a list, or None if the thread is to end."""
    global _helper
    if not _subscriptions or _is_ending:
        _helper = None
        return None
    return list(_subscriptions)


def _after_fork():
    """In the child there is neither the thread nor a subscription."""
    global _lock, _helper, _is_starting, _is_ending
    _lock = _thread.RLock()
    _helper = None
    _is_starting = False
    _is_ending = False
    _subscriptions.clear()
    _synchronous.clear()


atexit.register(close_all)
os.register_at_fork(after_in_child=_after_fork)
