"""Threads that take the GIL and give it up, block the signal, sleep with the GIL.

A thread that runs is sent a signal.  None may come when it has given the GIL
up, blocks the signal or sleeps in a system call; and its time is whole.
"""

import collections
import ctypes
import errno
import signal
import threading
import time

from test import support

from ..support import sessions
from ..support.sessions import (
    ProgramTest, Session, SessionTest, _profile, by_state, of_thread, on_stack,
    one_cpu, weight)
from ..support.work import BUSY, busy

RATE_HZ = 1000


def setUpModule():
    sessions.need_prompt_signals()


class WholeTest(SessionTest):

    def test_whole_time(self):
        with Session(rate_hz=RATE_HZ) as session:
            before_ns = time.monotonic_ns()
            for _ in range(400):
                busy(0.003)
                time.sleep(0.0005)
            took_ns = time.monotonic_ns() - before_ns
        found = of_thread(session.profile, threading.get_native_id())
        self.assertAlmostEqual(weight(found) / took_ns, 1, delta=0.02)
        states = by_state(found)
        # What runs is on a CPU or waits for one, to within four standard
        # deviations of the ticks in the waits.
        self.assertGreaterEqual(states['running'] + states['cpu_wait'],
                                0.95 * 400 * 3_000_000)

    def test_signal_taken_by_the_program(self):
        # Not one of ours gets to its handler.
        heard = []
        with Session(rate_hz=RATE_HZ):
            busy(0.1)
            old = signal.signal(signal.SIGURG,
                                lambda *args: heard.append(args))
            self.addCleanup(signal.signal, signal.SIGURG, old)
            captures = _profile.stats()['captures']
            busy(0.5)
            self.assertGreater(_profile.stats()['captures'], captures + 100)
            self.assertEqual(_profile.stats()['signals_moved'], 1)
        self.assertEqual(heard, [])


class CpuTimeTest(SessionTest):

    BURST_NS, PARTS = 4_000_000, 8

    def make_burst(self):
        """A function whose parts, equally long, have a line each."""
        namespace = {}
        exec('def burst(now, end, step):\n'
             + '    end += step\n'
               '    while now() < end: pass\n' * self.PARTS, namespace)
        return namespace['burst']

    def test_goes_where_wall_time_does(self):
        # In bursts of 16 periods, which the window of samples fits best.
        burst, now = self.make_burst(), time.perf_counter_ns
        with Session(rate_hz=16 * 1_000_000_000 // self.BURST_NS) as session:
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
        # Of some thousand samples each part has found the CPU in its share of
        # them: four standard deviations, and what changes from tick to tick,
        # three quarters of a point of the whole.
        noise = (max(0, 1 - density) / density / (4000 / self.PARTS)) ** 0.5
        for line in parts:
            self.assertAlmostEqual(cpu_ns[line] / wall_ns[line] / density, 1,
                                   delta=0.06 + 4 * noise)


class BlockedTest(SessionTest):

    def test_in_short_runs(self):
        # It is sent none from then on, and nothing waits.
        pending = set()
        with Session(rate_hz=RATE_HZ) as session:
            busy(0.1)
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGURG])
            for _ in range(100):
                busy(0.005)
                time.sleep(0.001)
                pending |= signal.sigpending()
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGURG])
        self.assertNotIn(signal.SIGURG, pending)
        self.assertGreater(session.profile.stats['captures_biased'], 100)

    def test_by_c_code(self):
        # One signal may come before that is noticed.
        change = ctypes.PyDLL(None).pthread_sigmask
        every = ctypes.create_string_buffer(b'\xff' * 128)
        with Session(rate_hz=RATE_HZ) as session:
            change(signal.SIG_BLOCK, every, None)
            busy(0.5)
            pending = signal.sigpending()
            change(signal.SIG_UNBLOCK, every, None)
        self.assertEqual(pending, set())
        self.assertGreater(session.profile.stats['ticks_no_signal'], 100)

    def test_time_is_recorded(self):
        def blocked():
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGURG])
            busy(0.5)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGURG])

        with Session(rate_hz=RATE_HZ) as session:
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


class SleepWithGILTest(SessionTest):

    def check_cut(self):
        library = ctypes.PyDLL(None, use_errno=True)

        def call():
            return library.poll(None, 0, 20)
        with Session(rate_hz=RATE_HZ) as session:
            busy(0.1)
            interrupted = num_interrupted(20, call)
            busy(0.5)       # it does not forget
            interrupted += num_interrupted(20, call)
        self.assertLessEqual(interrupted, 1)
        self.assertEqual(session.profile.stats['calls_interrupted'],
                         interrupted)
        asleep_ns = by_state(session.profile.samples)['asleep_with_gil']
        self.assertGreater(asleep_ns, 38 * 20_000_000 * 0.9)

    def test_calls_are_not_cut_short(self):
        self.check_cut()

    def test_calls_are_not_cut_short_on_one_cpu(self):
        with one_cpu():
            self.check_cut()


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
        # The child has a clock of its own.
        result = self.run_python('-Xsampleprof=out={pid}.pb.gz', '-c', FORKS)
        self.assertEqual(result.status, 0, result.err)
        self.assertEqual(len(self.files()), 2)
        for name in self.files():
            profile = self.load(name)
            running_ns = by_state(profile.samples)['running']
            self.assertGreater(running_ns, 0.7e9)
            self.assertGreater(profile.stats['signals_sent'], 500)
