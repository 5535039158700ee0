"""Profiling from where programs seldom do: signal handlers and finalizers.

Owns how the calls get there, amid anything that other threads do; what is
called is the controller's.
"""

import os
import signal
import threading
import time


class Elsewhere:
    """Makes the main thread, and whoever collects garbage, act."""

    def __init__(self, run, act):
        self._run = run
        self._act = act
        # Only the main thread may set it.
        signal.signal(signal.SIGUSR1, self._handle)

    def close(self):
        """No signal comes any more, or none that would be handled."""
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)

    def work(self):
        rng = self._run.rng('elsewhere')
        while not self._run.over():
            rng.choice((self._interrupt, self._leave_garbage))()
            time.sleep(rng.random() ** 2 / 10)

    def _handle(self, signum, frame):
        self._run.count('acts_of_handlers')
        self._act()

    def _interrupt(self):
        signal.pthread_kill(threading.main_thread().ident, signal.SIGUSR1)

    def _leave_garbage(self):
        Finalized(self._finalize)

    def _finalize(self):
        self._run.count('acts_of_finalizers')
        self._act()


class Finalized:
    """Acts when it is collected, on whatever thread that happens."""

    def __init__(self, act):
        self._act = act
        self._pid = os.getpid()
        self._itself = self             # so that only the collector finds it

    def __del__(self):
        # Not in the child of a fork: it has sessions of its own.
        if os.getpid() == self._pid:
            self._act()
