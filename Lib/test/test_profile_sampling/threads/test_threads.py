"""Threads: every one of them, from its first moment to its last.

Conservation is the oracle: the weights of a thread add up to its own clocks.
"""

import _thread
import contextlib
import ctypes
import sys
import tempfile
import threading
import time
import unittest

from test import support
from test.support import threading_helper

from ..support.compiling import load_extension, words
from ..support.sessions import (
    SANITIZER, _profile, Session, SessionTest, by_state, computing_threads,
    names, of_thread, on_stack, own, parked_thread, wait_until_asleep,
    weight)
from ..support.work import busy

RATE_HZ = 1000
TICK_NS = 1_000_000_000 // RATE_HZ


class ConservationTest(SessionTest):

    def check(self, work, count=1):
        """Threads that run work(): their weights are their clocks'."""
        measured = {}
        gate = threading.Barrier(count)

        def run():
            gate.wait()
            wall_ns, cpu_ns = time.monotonic_ns(), time.thread_time_ns()
            work()
            measured[threading.get_native_id()] = (
                time.monotonic_ns() - wall_ns,
                time.thread_time_ns() - cpu_ns)
        threads = [threading.Thread(target=run) for _ in range(count)]
        with Session(rate_hz=RATE_HZ) as session:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        for thread in threads:
            wall_ns, cpu_ns = measured[thread.native_id]
            samples = [s for s in of_thread(session.profile,
                                            thread.native_id)
                       if on_stack(s, run.__qualname__)
                       or s.state == 'unsampled' or len(s.stack) == 1]
            everything = of_thread(session.profile, thread.native_id)
            # The thread's life is longer than work() by its start and end
            # and by the wait for the others; never shorter.
            self.assertGreaterEqual(weight(everything), wall_ns)
            self.assertGreaterEqual(weight(everything, 'cpu_ns'), cpu_ns)
            # Start and end of a thread use well below 2 ms of CPU.
            self.assertAlmostEqual(weight(everything, 'cpu_ns'), cpu_ns,
                                   delta=TICK_NS + 2_000_000)
            # What was seen below run(), to a few ticks: the first capture
            # carries what came before it, and one of the last is missed.
            there = weight([s for s in samples
                            if work.__qualname__ in names(s)])
            self.assertGreater(there + 5 * TICK_NS + 0.02 * wall_ns,
                               wall_ns)
        return session.profile

    def test_short_sleeps(self):
        # Each of them is shorter than a tick.
        def sleeps():
            for _ in range(2000):
                time.sleep(0.0002)
        self.check(sleeps)

    def test_contention(self):
        def compute():
            busy(0.3)
        profile = self.check(compute, count=4)
        there = [s for s in profile.samples if on_stack(s, 'busy')]
        states = by_state(there)
        total = sum(states.values())
        # Four threads want one GIL: three of them wait at any moment, which
        # is 75 % of their time.  15 percentage points for starting and
        # ending one after the other, and for the system calls of the clock.
        self.assertAlmostEqual(states['gil_wait'] / total, 0.75, delta=0.15)
        # A thread that yields the GIL and is preempted before it asks for
        # it again counts as blocked meanwhile.
        self.assertLess(states['waiting'] / total, 0.15)
        for sample in there:
            if sample.state == 'gil_wait':
                self.assertEqual(sample.stack[0].function.qualname,
                                 '[GIL wait]')
        # Waiting costs no CPU time.  1 %: the kernel's share in it.
        self.assertLess(by_state(there, 'cpu_ns')['gil_wait']
                        / weight(there, 'cpu_ns'), 0.01)

    def test_mixed(self):
        def mixed():
            for _ in range(30):
                busy(0.003)
                time.sleep(0.003)
                sorted(range(3000), key=str)
        self.check(mixed, count=3)

    def test_session_is_the_threads_life(self):
        # A thread that outlives the session on both sides has the session's
        # length, whatever it does.  One tick: between two readings of the
        # clock in stop() and start().
        with parked_thread() as first, parked_thread() as second, \
                computing_threads(2) as threads:
            with Session(rate_hz=RATE_HZ) as session:
                time.sleep(0.5)
        profile = session.profile
        for thread in *threads, first, second:
            self.assertAlmostEqual(
                weight(of_thread(profile, thread.native_id)),
                profile.duration_ns, delta=TICK_NS)

    def test_a_yield_that_a_session_ends_in(self):
        # Who ends it has the GIL, since the other thread yields.  What that
        # one does in the next session is no yield.
        self.addCleanup(sys.setswitchinterval, sys.getswitchinterval())
        sys.setswitchinterval(0.001)
        runs, is_over = threading.Event(), False
        found = []

        def work():
            runs.set()
            while not is_over:
                pass
            with Session(rate_hz=RATE_HZ, names=1) as session:
                time.sleep(0.05)
            found.extend(own(session.profile))
        thread = threading.Thread(target=work)
        with Session(rate_hz=RATE_HZ):
            thread.start()
            runs.wait()
            time.sleep(0.02)
        is_over = True
        thread.join()
        asleep, = [s for s in found
                   if s.state == 'waiting' and s.wall_ns > 40_000_000]
        self.assertEqual(names(asleep)[-3:],
                         (work.__qualname__, 'sleep', '[waiting]'))


class WhoTest(SessionTest):

    def test_existing_threads(self):
        # They were there before, and never do anything while it lasts.
        with parked_thread(name='first') as first, \
                parked_thread(name='second') as second:
            with Session(rate_hz=RATE_HZ) as session:
                time.sleep(0.1)
        for thread in first, second:
            samples = of_thread(session.profile, thread.native_id)
            self.assertEqual(set(s.state for s in samples), {'waiting'})
            self.assertGreaterEqual(weight(samples), 100_000_000)
            self.assertEqual(samples[0].thread.ident, thread.ident)
            self.assertEqual(samples[0].thread.interpreter_id, 0)
            stack = names(samples[0])
            self.assertEqual(stack[0], 'Thread._bootstrap')
            self.assertTrue(stack[-2].endswith('parked'), stack)

    def test_names(self):
        release = threading.Event()
        early = threading.Thread(target=release.wait, name='early')
        early.start()
        self.addCleanup(release.set)
        with Session(rate_hz=RATE_HZ) as session:
            late = threading.Thread(target=release.wait, name='late')
            ended = threading.Thread(target=busy, args=(0.01,),
                                     name='ended \u2603')
            renamed = threading.Thread(target=release.wait, name='before')
            for thread in late, ended, renamed:
                thread.start()
            ended.join()
            renamed.name = 'after'
            profile = session.snapshot()
            cleared = session.snapshot(clear=True)
        release.set()
        for thread in early, late, renamed:
            thread.join()
        for found in profile, cleared:
            by_id = {t.native_id: t.name for t in found.threads}
            self.assertEqual(by_id[late.native_id], 'late')
            self.assertEqual(by_id[ended.native_id], 'ended \u2603')
            self.assertEqual(by_id[renamed.native_id], 'after')
        by_id = {t.native_id: t.name for t in session.profile.threads}
        self.assertEqual(by_id[late.native_id], 'late')

    def test_name_given_after_the_end(self):
        # The next thread often has the number of the last.
        def run(thread):
            thread.start()
            thread.join()
        with Session(rate_hz=RATE_HZ) as session:
            ended = threading.Thread(target=busy, args=(0.001,))
            run(ended)

            def rename():
                ended.name = 'late'
                busy(0.01)
            others = [threading.Thread(target=rename, name='other')
                      for _ in range(20)]
            for thread in others:
                run(thread)
        self.assertIn(ended.ident, [thread.ident for thread in others])
        by_id = {t.native_id: t.name for t in session.profile.threads}
        self.assertEqual({by_id[thread.native_id] for thread in others},
                         {'other'})

    @unittest.skipUnless('-DNDEBUG' in words('PY_CFLAGS'),
                         'a mistake to a build with assertions')
    def test_state_of_another_thread(self):
        directory = self.enterContext(tempfile.TemporaryDirectory())
        moved_state = load_extension('moved_state', directory)

        def job():
            cpu_ns = time.thread_time_ns()
            busy(0.2)
            measured[threading.get_native_id()] = (
                time.thread_time_ns() - cpu_ns)
        # Most often the second has the first one's pthread_self().
        measured = {}
        with Session(rate_hz=RATE_HZ) as session:
            moved_state.run(job, 2)
        self.assertEqual(len(measured), 2)
        for native_id, cpu_ns in measured.items():
            samples = of_thread(session.profile, native_id)
            self.assertAlmostEqual(weight(samples, 'cpu_ns'), cpu_ns,
                                   delta=TICK_NS + 2_000_000)
            self.assertGreater(weight([s for s in samples
                                       if on_stack(s, job.__qualname__)],
                                      'cpu_ns'), 0.9 * cpu_ns)

    def test_many_threads_at_once(self):
        gate = threading.Barrier(201)
        threads = [threading.Thread(target=gate.wait) for _ in range(200)]
        with Session(rate_hz=RATE_HZ) as session:
            for thread in threads:
                thread.start()
            time.sleep(0.05)
            gate.wait()
            for thread in threads:
                thread.join()
        seen = {t.native_id for t in session.profile.threads}
        self.assertLessEqual({t.native_id for t in threads}, seen)

    def test_thread_created_by_the_clock_is_invisible(self):
        def seen():
            return (set(threading.enumerate()), _thread._count(),
                    set(sys._current_frames()))
        before = seen()
        with Session(rate_hz=RATE_HZ):
            self.assertEqual(seen(), before)


def scheduling(threads):
    """Whether all of them sleep, and how often they ever left a CPU."""
    all_sleep, switches = True, 0
    for thread in threads:
        with open(f'/proc/self/task/{thread.native_id}/status') as lines:
            for line in lines:
                name, _, value = line.partition(':')
                if name == 'State':
                    all_sleep = all_sleep and value.split()[0] == 'S'
                elif name.endswith('ctxt_switches'):
                    switches += int(value)
    return all_sleep, switches


class IdleThreadsTest(SessionTest):
    """A tick is for the thread that runs, however many sleep.  PITFALLS L9.

    This counts; "bench idle" takes the time.
    """

    IDLE_THREADS = 1000

    @contextlib.contextmanager
    def idle_threads(self):
        if not SANITIZER:
            self.addCleanup(threading.stack_size,
                            threading.stack_size(64 * 1024))
        gate = threading.Lock()
        gate.acquire()

        def idle():
            with gate:
                pass
        threads = [threading.Thread(target=idle)
                   for _ in range(self.IDLE_THREADS)]
        with threading_helper.start_threads(threads, unlock=gate.release):
            self.wait_until_idle(threads)
            yield threads

    def wait_until_idle(self, threads):
        seen = None
        for _ in support.sleeping_retry(support.LONG_TIMEOUT):
            last, seen = seen, scheduling(threads)
            if seen == last and seen[0]:
                break

    def test_ticks_pass_them_by(self):
        with self.idle_threads() as threads, Session(rate_hz=RATE_HZ):
            busy(0.1)           # what comes at the start of a session is past
            asleep = scheduling(threads)
            before = _profile.stats()
            busy(0.3)
            after = _profile.stats()
            # Nobody woke them.
            self.assertEqual(scheduling(threads), asleep)
        grown = {name: after[name] - before[name] for name in after}
        asked = (grown['signals_sent'] + grown['ticks_noted']
                 + grown['ticks_no_signal'])
        self.assertGreater(asked, 0)
        # One more: the clock goes on while its counters are read.
        self.assertLessEqual(asked, grown['ticks'] + 1)
        # And no tick adds a sample of each of them.
        self.assertLess(grown['samples'], grown['ticks'] + 50)


class ForeignThreadsTest(SessionTest):
    """Threads that C code starts with pthread_create()."""

    FUNCTION = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)

    def setUp(self):
        super().setUp()
        try:
            library = ctypes.CDLL(None, use_errno=True)
            self.create = library.pthread_create
            self.join = library.pthread_join
        except (OSError, AttributeError) as exc:
            self.skipTest(f'no pthreads through ctypes: {exc}')
        self.create.argtypes = [ctypes.c_void_p, ctypes.c_void_p,
                                self.FUNCTION, ctypes.c_void_p]
        self.join.argtypes = [ctypes.c_ulong, ctypes.c_void_p]

    def run_foreign(self, function, count=1):
        threads = []
        for _ in range(count):
            thread = ctypes.c_ulong()
            self.assertEqual(
                self.create(ctypes.byref(thread), None, function, None), 0)
            threads.append(thread)
        for thread in threads:
            self.assertEqual(self.join(thread, None), 0)

    def test_callback(self):
        ids = []

        @self.FUNCTION
        def callback(argument):
            ids.append(threading.get_native_id())
            busy(0.1)
            return None
        with Session(rate_hz=RATE_HZ) as session:
            self.run_foreign(callback, 2)
        for native_id in ids:
            samples = of_thread(session.profile, native_id)
            there = [s for s in samples if on_stack(s, 'busy')]
            self.assertAlmostEqual(weight(there, 'cpu_ns'), 100_000_000,
                                   delta=2 * TICK_NS + 2_000_000)
            for sample in there:
                self.assertEqual(names(sample)[0], callback_name)
                self.assertIsNone(sample.thread.name)

    def test_existing_foreign_thread(self):
        gate = threading.Lock()
        gate.acquire()
        ids = []

        @self.FUNCTION
        def callback(argument):
            ids.append(threading.get_native_id())
            gate.acquire()
            return None
        thread = ctypes.c_ulong()
        self.create(ctypes.byref(thread), None, callback, None)
        while not ids:
            time.sleep(0.001)
        wait_until_asleep(ids[0])
        with Session(rate_hz=RATE_HZ) as session:
            time.sleep(0.1)
        gate.release()
        self.join(thread, None)
        samples = of_thread(session.profile, ids[0])
        self.assertEqual({s.state for s in samples}, {'waiting'})
        self.assertGreaterEqual(weight(samples), 100_000_000)

    def test_one_thread_is_one_row(self):
        # Each call from C makes a thread state and destroys it again.
        # Numbers of threads come back, too.
        calls = []

        @self.FUNCTION
        def callback(argument):
            calls.append(threading.get_native_id())
            return None
        with Session(rate_hz=RATE_HZ) as session:
            self.run_foreign(callback, 50)
        rows = [(t.ident, t.native_id, t.interpreter_id)
                for t in session.profile.threads]
        self.assertEqual(len(rows), len(set(rows)))
        self.assertEqual(session.profile.stats['lost_threads'], 0)


callback_name = 'ForeignThreadsTest.test_callback.<locals>.callback'
