"""System calls of C code that does not retry: no EINTR.  PITFALLS L1.

The kernel ends poll() and nanosleep() when a handler ran, SA_RESTART or not.
So no signal may reach a thread that sleeps in the kernel.
"""

import ctypes
import errno
import select
import time
import unittest

from .sessions import Session, SessionTest, busy, computing_threads


class timespec(ctypes.Structure):
    _fields_ = [('tv_sec', ctypes.c_long), ('tv_nsec', ctypes.c_long)]


class TestInterruptedCalls(SessionTest):

    CALLS = 1500

    def count(self, library, work, calls=CALLS):
        """How many of the calls ended with EINTR; *work* comes between."""
        nanosleep = library.nanosleep
        nanosleep.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
        poll = library.poll
        poll.argtypes = [ctypes.c_void_p, ctypes.c_ulong, ctypes.c_int]
        duration = timespec(0, 500_000)
        pointer = ctypes.byref(duration)
        interrupted = 0
        with Session(rate_hz=5000):
            for i in range(calls):
                work()
                if i % 2:
                    result = nanosleep(pointer, None)
                else:
                    result = poll(None, 0, 1)
                if result != 0:
                    self.assertEqual(ctypes.get_errno(), errno.EINTR)
                    interrupted += 1
        return interrupted

    def test_without_the_gil(self):
        self.assertEqual(self.count(ctypes.CDLL(None, use_errno=True),
                                    lambda: None), 0)

    def test_without_the_gil_after_work(self):
        # Ticks come while the thread is on its way into the call.
        self.assertEqual(self.count(ctypes.CDLL(None, use_errno=True),
                                    lambda: busy(0.0003)), 0)

    def test_without_the_gil_under_contention(self):
        # The other thread holds the GIL up to 5 ms at a time.
        with computing_threads():
            self.assertEqual(self.count(ctypes.CDLL(None, use_errno=True),
                                        lambda: None, 200), 0)

    def test_with_the_gil(self):
        self.assertEqual(self.count(ctypes.PyDLL(None, use_errno=True),
                                    lambda: None), 0)

    def test_sleeps_last(self):
        # Python's own calls retry; they must not return early either.
        with Session(rate_hz=5000):
            for _ in range(300):
                t0 = time.monotonic()
                time.sleep(0.001)
                self.assertGreaterEqual(time.monotonic() - t0, 0.001)
                t0 = time.monotonic()
                select.select([], [], [], 0.001)
                self.assertGreaterEqual(time.monotonic() - t0, 0.001)


if __name__ == '__main__':
    unittest.main()
