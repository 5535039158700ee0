"""System calls of C code that does not retry: no EINTR.  PITFALLS L1.

The kernel ends poll() and nanosleep() when a handler ran, SA_RESTART or not.
So no signal may reach a thread that sleeps in the kernel.
"""

import ctypes
import errno
import select
import socket
import time

from ..support.sessions import (
    Session, SessionTest, computing_threads, one_cpu, spinning_processes)
from ..support.work import busy


class timespec(ctypes.Structure):
    _fields_ = [('tv_sec', ctypes.c_long), ('tv_nsec', ctypes.c_long)]


class pollfd(ctypes.Structure):
    _fields_ = [('fd', ctypes.c_int), ('events', ctypes.c_short),
                ('revents', ctypes.c_short)]


class InterruptedCallsTest(SessionTest):

    CALLS = 1500
    CALLS_OF_EACH = 150
    WORK_BEFORE_S = 0

    def count(self, library, work, calls=None):
        """How many of the calls ended with EINTR; *work* comes between."""
        if calls is None:
            calls = self.CALLS
        nanosleep = library.nanosleep
        nanosleep.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
        poll = library.poll
        poll.argtypes = [ctypes.c_void_p, ctypes.c_ulong, ctypes.c_int]
        duration = timespec(0, 500_000)
        pointer = ctypes.byref(duration)
        interrupted = 0
        with Session(rate_hz=5000):
            busy(self.WORK_BEFORE_S)
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
        # A thread may fall asleep between the question and the signal.
        self.assertLessEqual(self.count(ctypes.PyDLL(None, use_errno=True),
                                        lambda: None), 2)

    def count_each(self, library):
        """The same for other calls, of each kind: {name: how many}."""
        pause = ctypes.byref(timespec(0, 500_000))
        epoll = select.epoll()
        self.addCleanup(epoll.close)
        events = ctypes.create_string_buffer(64)
        # Nobody accepts: the queue of one connection is full, so that
        # connect() goes on in the background for as long as we care.
        server = socket.create_server(('127.0.0.1', 0), backlog=0)
        self.addCleanup(server.close)
        filling = [socket.socket() for _ in range(3)]
        for client in filling:
            self.addCleanup(client.close)
            client.setblocking(False)
            client.connect_ex(server.getsockname())
        wanted = pollfd(filling[-1].fileno(), select.POLLIN, 0)
        calls = {
            'ppoll': lambda: library.ppoll(None, 0, pause, None),
            'clock_nanosleep': lambda: library.clock_nanosleep(
                time.CLOCK_MONOTONIC, 0, pause, None),
            'epoll_wait': lambda: library.epoll_wait(
                epoll.fileno(), events, 1, 1),
            'connect and poll': lambda: library.poll(
                ctypes.byref(wanted), 1, 1),
            'select': lambda: library.select(
                0, None, None, None, ctypes.byref(timespec(0, 500))),
            'pselect': lambda: library.pselect(
                0, None, None, None, pause, None)}
        interrupted = dict.fromkeys(calls, 0)
        with Session(rate_hz=5000):
            busy(self.WORK_BEFORE_S)
            for name in list(calls) * self.CALLS_OF_EACH:
                busy(0.0001)
                # clock_nanosleep() returns the error.
                if calls[name]() not in (0, 1):
                    interrupted[name] += 1
        return interrupted

    def test_other_calls(self):
        found = self.count_each(ctypes.CDLL(None, use_errno=True))
        self.assertEqual(found, dict.fromkeys(found, 0))

    def test_other_calls_with_the_gil(self):
        # A thread that computes, and then sleeps with the GIL for the first
        # time, may enter the kernel after the clock has looked and before the
        # signal is there.  After that it is known to be sleepy.
        found = self.count_each(ctypes.PyDLL(None, use_errno=True))
        self.assertLess(sum(found.values()), 10, found)

    def test_sleeps_last(self):
        # Python's own calls retry; they must not return early either.
        with Session(rate_hz=5000):
            busy(self.WORK_BEFORE_S)
            for _ in range(300):
                t0 = time.monotonic()
                time.sleep(0.001)
                self.assertGreaterEqual(time.monotonic() - t0, 0.001)
                t0 = time.monotonic()
                select.select([], [], [], 0.001)
                self.assertGreaterEqual(time.monotonic() - t0, 0.001)


class InterruptedCallsOnOneCPUTest(InterruptedCallsTest):
    """The sampler thread runs where the thread runs that it asks.  So it never
    sees it on its CPU, and what it sends arrives as that goes on."""

    CALLS = 800
    CALLS_OF_EACH = 80

    def setUp(self):
        super().setUp()
        self.enterContext(one_cpu())


class InterruptedCallsAfterWorkTest(InterruptedCallsTest):
    """Threads have timers of their own when the calls begin."""

    CALLS = 800
    CALLS_OF_EACH = 80
    WORK_BEFORE_S = 0.8

    def test_with_the_gil(self):
        # One that a timer cuts short, one before the first is seen, and those
        # that fall asleep between the question and the signal: 1 %, or 2 where
        # the machine is crowded.
        self.assertLess(self.count(ctypes.PyDLL(None, use_errno=True),
                                   lambda: busy(0.0003)), self.CALLS / 50)


class InterruptedCallsAfterWorkOnOneCPUTest(InterruptedCallsAfterWorkTest):

    def setUp(self):
        super().setUp()
        self.enterContext(one_cpu())


class InterruptedCallsInACrowdTest(SessionTest):
    """Others have the CPU when a sleeper wakes up: it stays in its system call
    for some of their slices, and is looked at meanwhile."""

    CALLS = 100

    def setUp(self):
        super().setUp()
        self.enterContext(one_cpu())
        self.enterContext(spinning_processes(2))

    def interrupted(self, rate_hz):
        poll = ctypes.PyDLL(None, use_errno=True).poll
        poll.argtypes = [ctypes.c_void_p, ctypes.c_ulong, ctypes.c_int]
        with Session(rate_hz=rate_hz):
            return sum([poll(None, 0, 3) != 0 for _ in range(self.CALLS)])

    def test_calls_with_the_gil(self):
        # Two: before the first sleep is seen, and one that a timer cuts short.
        for rate_hz in 1000, 5000:
            with self.subTest(rate_hz=rate_hz):
                self.assertLessEqual(self.interrupted(rate_hz), 2)
