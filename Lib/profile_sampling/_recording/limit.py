"""The end of the command line's session, while its program goes on.

The thread is none of threading's, so that a program which counts its threads
counts as many as without it.  It is not sampled, and no signal handler ever
runs on it.
"""

import _thread
import atexit
import os

from profile_sampling import _clock, _core


def end_after(duration_s):
    """Write the profile of the command line when so many seconds are over.

    In a child of a fork, too, if it is profiled.  A program that ends before
    has its profile at its end.
    """
    limit = _Limit(_clock.monotonic() + duration_s)
    limit.wait()
    # After all that the program will have registered.
    atexit.register(limit.give_up)
    os.register_at_fork(after_in_child=limit.wait_in_child)


class _Limit:

    def __init__(self, due_s):
        self._due_s = due_s
        # The program may take its modules out of sys.modules.
        self._core = _core.load()

    def wait(self):
        self._is_over = _thread.allocate_lock()
        self._is_over.acquire()
        self._thread = self._core.start_helper(
            _thread.start_joinable_thread, self._run, True)

    def _run(self):
        left_s = self._due_s - _clock.monotonic()
        if not self._is_over.acquire(timeout=max(0, left_s)):
            self._core.write_now()

    def give_up(self):
        self._is_over.release()
        self._thread.join()

    def wait_in_child(self):
        if self._core.is_written_at_exit():
            self.wait()
        else:
            atexit.unregister(self.give_up)
