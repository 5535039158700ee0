"""Threads that set a timer for their ticks.

When running threads were looked at for half a second, and none of them slept
with the GIL, the sampler thread looks no more: it would have to take a CPU
from somebody.  One system call may then end with EINTR, in C code that sleeps
with the GIL and does not try again.  After that nobody has a timer.
"""

import collections
import contextlib
import ctypes
import errno
import os
import platform
import signal
import subprocess
import sys
import threading
import time
import unittest

from test import support

from ..support import sampler, sessions
from ..support.sessions import (
    ProgramTest, Session, SessionTest, _profile, by_state, of_thread, on_stack,
    one_cpu, weight)
from ..support.work import BUSY, busy

RATE_HZ = 1000
# What has to be looked at is 0.5 s; a crowded machine takes longer.
TRIAL_S = 0.8
LOOKS_WITHOUT_TIMERS = 0.9
TELLS_CALLS = platform.machine() in ('x86_64', 'aarch64')


def setUpModule():
    sessions.need_prompt_signals()
    if not TELLS_CALLS:
        raise unittest.SkipTest('no timers on this machine')


def num_timers():
    """How many POSIX timers this process has."""
    with open('/proc/self/timers') as file:
        return file.read().count('signal:')


class TimersTest(SessionTest):

    @contextlib.contextmanager
    def with_timers(self):
        """A session in which threads have timers."""
        with Session(rate_hz=RATE_HZ) as session:
            busy(TRIAL_S)
            yield session

    def looks_per_tick(self, work):
        """Of the ticks during `work`, how many the sampler thread woke up
        for."""
        ticks, wakeups = _profile.stats()['ticks'], sampler.wakeups()
        work()
        return ((sampler.wakeups() - wakeups)
                / max(_profile.stats()['ticks'] - ticks, 1))


class UseTest(TimersTest):

    def test_after_a_trial(self):
        def work():
            busy(0.5)
        with Session(rate_hz=RATE_HZ):
            busy(0.02)          # it gives itself its name
            self.assertGreater(self.looks_per_tick(lambda: busy(0.2)),
                               LOOKS_WITHOUT_TIMERS)
            busy(TRIAL_S)
            self.assertLess(self.looks_per_tick(work), 0.2)

    def test_for_all_threads(self):
        def burst():
            for _ in range(100):
                busy(0.002)
                time.sleep(0.001)

        def work():
            threads = [threading.Thread(target=burst) for _ in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        with self.with_timers():
            self.assertLess(self.looks_per_tick(work), 0.5)

    def test_whole_time(self):
        # Nothing is lost on the way from looks to timers.
        with Session(rate_hz=RATE_HZ) as session:
            before_ns = time.monotonic_ns()
            for _ in range(400):
                busy(0.003)
                time.sleep(0.0005)
            took_ns = time.monotonic_ns() - before_ns
        found = of_thread(session.profile, threading.get_native_id())
        self.assertAlmostEqual(weight(found) / took_ns, 1, delta=0.02)
        self.assertGreaterEqual(by_state(found)['running'], 400 * 3_000_000)

    def test_not_while_threads_hand_the_gil_over(self):
        # A timer for each of their runs would cost more than it tells.
        def hand_over():
            for _ in range(100_000):
                os.stat('.')

        def work():
            thread = threading.Thread(target=hand_over)
            thread.start()
            thread.join()
        with self.with_timers():
            self.assertGreater(self.looks_per_tick(work), 0.5)

    @unittest.skipUnless(os.path.exists('/proc/self/timers'),
                         'needs /proc/self/timers')
    def test_none_is_left(self):
        before = num_timers()
        with Session(rate_hz=RATE_HZ):
            busy(TRIAL_S)
            thread = threading.Thread(target=busy, args=(0.05,))
            thread.start()
            thread.join()
            for _ in support.sleeping_retry(support.SHORT_TIMEOUT):
                # A look may have taken it for asleep: the trial goes on.
                busy(0.1)
                if num_timers() == before + 1:
                    break
        self.assertEqual(num_timers(), before)

    def test_signal_taken_by_the_program(self):
        # Not one of ours gets to its handler.
        heard = []
        with self.with_timers():
            old = signal.signal(signal.SIGURG,
                                lambda *args: heard.append(args))
            self.addCleanup(signal.signal, signal.SIGURG, old)
            self.assertLess(self.looks_per_tick(lambda: busy(0.5)), 0.3)
            self.assertEqual(_profile.stats()['signals_moved'], 1)
        self.assertEqual(heard, [])


class CpuTimeTest(TimersTest):
    # The CPU clock is not read at each tick.

    BURST_NS, PARTS = 4_000_000, 8

    def make_burst(self):
        """A function whose parts, equally long, have a line each."""
        namespace = {}
        exec('def burst(now, end, step):\n'
             + '    end += step\n'
               '    while now() < end: pass\n' * self.PARTS, namespace)
        return namespace['burst']

    def test_goes_where_wall_time_does(self):
        # In bursts of 16 periods, which the window of samples fits best.  What
        # the thread waits for a CPU has none.
        burst, now = self.make_burst(), time.perf_counter_ns
        with Session(rate_hz=16 * 1_000_000_000 // self.BURST_NS) as session:
            busy(TRIAL_S)
            for _ in range(500):
                burst(now, now(), self.BURST_NS // self.PARTS)
                time.sleep(0.001)
        wall_ns, cpu_ns = collections.Counter(), collections.Counter()
        for sample in session.profile.samples:
            for frame in sample.stack:
                if (frame.function.qualname == 'burst'
                        and sample.state == 'running'):
                    wall_ns[frame.line] += sample.wall_ns
                    cpu_ns[frame.line] += sample.cpu_ns
        parts = [line for line, _ in wall_ns.most_common(self.PARTS)]
        density = cpu_ns.total() / wall_ns.total()
        for line in parts:
            self.assertAlmostEqual(cpu_ns[line] / wall_ns[line] / density, 1,
                                   delta=0.03)


class BlockedTest(TimersTest):

    def test_in_short_runs(self):
        # It is sent none from then on, and nothing waits.
        pending = set()
        with self.with_timers() as session:
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGURG])
            for _ in range(100):
                busy(0.005)
                time.sleep(0.001)
                pending |= signal.sigpending()
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGURG])
        self.assertNotIn(signal.SIGURG, pending)
        self.assertGreater(session.profile.stats['captures_biased'], 100)

    def check_blocked_by_c_code(self):
        # One signal may come before that is noticed.
        change = ctypes.PyDLL(None).pthread_sigmask
        every = ctypes.create_string_buffer(b'\xff' * 128)
        change(signal.SIG_BLOCK, every, None)
        busy(0.5)
        pending = signal.sigpending()
        change(signal.SIG_UNBLOCK, every, None)
        self.assertEqual(pending, set())

    def test_by_c_code(self):
        with Session(rate_hz=RATE_HZ) as session:
            self.check_blocked_by_c_code()
        self.assertGreater(session.profile.stats['ticks_no_signal'], 100)

    def test_by_c_code_with_timers(self):
        with self.with_timers() as session:
            self.check_blocked_by_c_code()
        self.assertGreater(session.profile.stats['ticks_no_signal'], 100)

    def test_time_is_booked(self):
        def blocked():
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGURG])
            busy(0.5)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGURG])

        with self.with_timers() as session:
            before_ns = time.monotonic_ns()
            before_cpu_ns = time.thread_time_ns()
            blocked()
            took_ns = time.monotonic_ns() - before_ns
            took_cpu_ns = time.thread_time_ns() - before_cpu_ns
        found = [s for s in of_thread(session.profile,
                                      threading.get_native_id())
                 if on_stack(s, blocked.__qualname__)]
        self.assertAlmostEqual(weight(found) / took_ns, 1, delta=0.05)
        self.assertAlmostEqual(
            sum([sample.cpu_ns for sample in found]) / took_cpu_ns, 1,
            delta=0.05)
        self.assertGreater(session.profile.stats['captures_biased'], 100)


def num_interrupted(calls, call):
    """How many of the calls ended with EINTR."""
    return sum([call() == -1 and ctypes.get_errno() == errno.EINTR
                for _ in range(calls)])


class SleepWithGILTest(TimersTest):

    def check_cut(self):
        library = ctypes.PyDLL(None, use_errno=True)

        def call():
            return library.poll(None, 0, 20)
        with self.with_timers() as session:
            interrupted = num_interrupted(20, call)
            busy(TRIAL_S)       # it does not forget
            interrupted += num_interrupted(20, call)
        self.assertLessEqual(interrupted, 1)
        self.assertEqual(session.profile.stats['calls_interrupted'],
                         interrupted)
        # From the second call on it is told.
        asleep_ns = by_state(session.profile.samples)['asleep_with_gil']
        self.assertGreater(asleep_ns, 38 * 20_000_000 * 0.9)

    def test_one_call_is_cut_short(self):
        self.check_cut()

    def test_one_call_is_cut_short_on_one_cpu(self):
        with one_cpu():
            self.check_cut()

    def test_a_call_that_the_kernel_restarts(self):
        library = ctypes.PyDLL(None, use_errno=True)
        reader, writer = os.pipe()
        self.addCleanup(os.close, reader)
        self.addCleanup(os.close, writer)
        buffer = ctypes.create_string_buffer(1)
        with self.with_timers() as session:
            writing = subprocess.Popen([sys.executable, '-IS', '-c', WRITES],
                                       stdout=writer)
            self.assertEqual([library.read(reader, buffer, 1)
                              for _ in range(10)], [1] * 10)
            self.assertEqual(writing.wait(), 0)
            timed = session.snapshot().stats['ticks_timed']
            # It asks anew for a while, and then threads have timers again.
            busy(TRIAL_S)
        counters = session.profile.stats
        self.assertEqual(
            (counters['timers_begun'], counters['timers_ended'],
             counters['calls_interrupted']), (2, 1, 0))
        self.assertGreater(counters['ticks_timed'], timed + 20)
        self.assertGreater(
            by_state(session.profile.samples)['asleep_with_gil'], 0.15e9)


WRITES = """
import os, time
for _ in range(10):
    time.sleep(0.03)
    os.write(1, b'x')
"""

FORKS = BUSY + """
import os, threading
busy(0.8)
thread = threading.Thread(target=busy, args=(0.3,))
thread.start()
pid = os.fork()
busy(0.8)
if pid:
    thread.join()
    assert os.waitpid(pid, 0)[1] == 0
else:
    os._exit(0)
"""


@support.skip_if_sanitizer('it allows no threads in a child', thread=True)
class ProcessesTest(ProgramTest):

    def test_fork(self):
        # The child has none of its parent's timers, and makes its own.
        result = self.run_python('-Xsampleprof=out={pid}.pb.gz', '-c', FORKS)
        self.assertEqual(result.status, 0, result.err)
        self.assertEqual(len(self.files()), 2)
        for name in self.files():
            profile = self.load(name)
            running_ns = by_state(profile.samples)['running']
            self.assertGreater(running_ns, 0.7e9)
            self.assertGreater(profile.stats['signals_sent'], 500)
