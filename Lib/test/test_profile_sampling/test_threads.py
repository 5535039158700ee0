"""Threads: every one of them, from its first moment to its last.

Conservation is the oracle: the weights of a thread add up to its own clocks.
"""

import _interpreters
import _thread
import contextlib
import ctypes
import sys
import threading
import time
import unittest

from test import support
from test.support import threading_helper

import profile_sampling

from .sessions import (
    SANITIZER, THOROUGH, _profile, Session, SessionTest, busy, by_state,
    checked, computing_threads, names, of_thread, on_stack, parked_thread,
    thrice, wait_until_asleep, weight)

RATE_HZ = 1000
TICK_NS = 1_000_000_000 // RATE_HZ
SECONDS_OF_ENDS = 60 if THOROUGH else 3


class TestConservation(SessionTest):

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

    @thrice
    def test_python(self):
        def compute():
            busy(0.5)
        self.check(compute)

    def test_sleep(self):
        def sleep():
            time.sleep(0.5)
        states = by_state(self.check(sleep).samples)
        self.assertGreater(states['blocked'], 500_000_000)

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
        self.assertAlmostEqual(states['gil wait'] / total, 0.75, delta=0.15)
        # A thread that yields the GIL and is preempted before it asks for
        # it again counts as blocked meanwhile.
        self.assertLess(states['blocked'] / total, 0.15)
        for sample in there:
            if sample.state == 'gil wait':
                self.assertEqual(sample.stack[0].function.qualname,
                                 '[GIL wait]')
        # Waiting costs no CPU time.  1 %: the kernel's share in it.
        self.assertLess(by_state(there, 'cpu_ns')['gil wait']
                        / weight(there, 'cpu_ns'), 0.01)

    @thrice
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

    def test_clear_loses_nothing(self):
        with parked_thread() as parked:
            with Session(rate_hz=RATE_HZ) as session:
                t0 = time.monotonic_ns()
                parts = []
                for _ in range(10):
                    busy(0.01)
                    time.sleep(0.01)
                    parts.append(session.snapshot(clear=True))
                took_ns = time.monotonic_ns() - t0
            parts.append(session.profile)
        for native_id in parked.native_id, threading.get_native_id():
            total = sum(weight(of_thread(part, native_id))
                        for part in parts)
            self.assertGreaterEqual(total + TICK_NS, took_ns)
            self.assertLessEqual(
                total, sum(part.duration_ns for part in parts) + TICK_NS)


class TestWho(SessionTest):

    def test_existing_threads(self):
        # They were there before, and never do anything while it lasts.
        with parked_thread(name='first') as first, \
                parked_thread(name='second') as second:
            with Session(rate_hz=RATE_HZ) as session:
                time.sleep(0.1)
        for thread in first, second:
            samples = of_thread(session.profile, thread.native_id)
            self.assertEqual(set(s.state for s in samples), {'blocked'})
            self.assertGreaterEqual(weight(samples), 100_000_000)
            self.assertEqual(samples[0].thread.ident, thread.ident)
            self.assertEqual(samples[0].thread.interpreter_id, 0)
            stack = names(samples[0])
            self.assertEqual(stack[0], 'Thread._bootstrap')
            self.assertTrue(stack[-2].endswith('parked'), stack)

    def test_existing_busy_thread(self):
        with computing_threads() as (thread,):
            with Session(rate_hz=RATE_HZ) as session:
                time.sleep(0.2)
        samples = of_thread(session.profile, thread.native_id)
        there = [s for s in samples
                 if on_stack(s, 'computing_threads.<locals>.compute')]
        self.assertGreater(weight(there), 0.95 * weight(samples))

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

    def test_names_of_existing_threads(self):
        # By the public interface: it knows threading.
        import profile_sampling
        with parked_thread(name='early') as early:
            profile_sampling.start()
            with parked_thread(name='late') as late:
                profile = profile_sampling.stop()
        by_id = {t.native_id: t.name for t in profile.threads}
        self.assertEqual(by_id[early.native_id], 'early')
        self.assertEqual(by_id[late.native_id], 'late')
        self.assertEqual(by_id[threading.main_thread().native_id],
                         threading.main_thread().name)

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


class TestIdleThreads(SessionTest):
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
                 + grown['ticks_unheard'])
        self.assertGreater(asked, 0)
        # One more: the clock goes on while its counters are read.
        self.assertLessEqual(asked, grown['ticks'] + 1)
        # And no tick adds a sample of each of them.
        self.assertLess(grown['samples'], grown['ticks'] + 50)


class TestInterpretersThatEnd(unittest.TestCase):
    """They come and go while others begin sessions, whose tables are new."""

    # Something is left for the collections of its end.
    SCRIPT = """if True:
        import threading
        thread = threading.Thread(target=sum, args=(range(1000),))
        thread.start()
        thread.join()

        class Dying:
            def __del__(self, end=sum, numbers=range(30_000)):
                end(numbers)
        dying = [Dying() for _ in range(10)]
        for one in dying:
            one.all = dying
        """

    def check(self, config):
        records = []
        end = time.monotonic() + SECONDS_OF_ENDS

        def come_and_go():
            while time.monotonic() < end:
                interpreter = _interpreters.create(config)
                _interpreters.exec(interpreter, self.SCRIPT)
                _interpreters.destroy(interpreter)

        def add(batch):
            records.extend(batch.records)
        threads = [threading.Thread(target=come_and_go) for _ in range(6)]
        self.addCleanup(sys.setswitchinterval, sys.getswitchinterval())
        sys.setswitchinterval(1e-5)
        with support.catch_unraisable_exception() as caught:
            with threading_helper.start_threads(threads), \
                    profile_sampling.subscribe(add, rate_hz=10_000,
                                               batch_seconds=0.01,
                                               all_interpreters=True):
                while time.monotonic() < end:
                    with profile_sampling.profile(rate_hz=10_000):
                        for _ in range(20):
                            profile_sampling.snapshot()
                        profile_sampling.snapshot(clear=True)
            self.assertIsNone(caught.unraisable)
        self.assertGreater(
            len([r for r in records if r.kind == 'thread end']), 3)

    def test_shared_gil(self):
        self.check('legacy')

    def test_own_gil(self):
        self.check('isolated')


class TestInterpretersOnOneThread(SessionTest):
    """Thread states of several interpreters take turns on one OS thread,
    which has one clock."""

    SCRIPT = ('import time\n'
              'end = time.thread_time() + 0.2\n'
              'while time.thread_time() < end: pass\n')

    def check(self, config):
        interpreter = _interpreters.create(config)
        self.addCleanup(_interpreters.destroy, interpreter)
        with Session(rate_hz=RATE_HZ) as session:
            # Not around the session: leaving it checks the profile, too.
            wall_ns, cpu_ns = time.monotonic_ns(), time.thread_time_ns()
            for _ in range(2):
                busy(0.1)
                self.assertIsNone(
                    _interpreters.exec(interpreter, self.SCRIPT))
            wall_ns = time.monotonic_ns() - wall_ns
            cpu_ns = time.thread_time_ns() - cpu_ns
        native_id = threading.get_native_id()
        samples = of_thread(session.profile, native_id)
        self.assertAlmostEqual(weight(samples), wall_ns, delta=10 * TICK_NS)
        self.assertAlmostEqual(weight(samples, 'cpu_ns'), cpu_ns,
                               delta=10 * TICK_NS)
        here = [s for s in samples if s.thread.interpreter_id == 0]
        self.assertAlmostEqual(weight(here, 'cpu_ns'), 200_000_000,
                               delta=30_000_000)
        self.assertGreater(weight(here, 'cpu_ns'), 190_000_000)
        return session.profile

    def test_collection_at_the_end(self):
        # It is started with no Python frame: it is the root, however few
        # frames are kept.
        script = """if True:
            def make():
                # Globals are gone by then.
                from time import thread_time

                class Dying:
                    def __del__(self):
                        down(9)

                def down(n):
                    if n:
                        return down(n - 1)
                    end = thread_time() + 0.05
                    while thread_time() < end:
                        pass
                return Dying()
            dying = make()
            dying.itself = dying
            """
        for config in 'legacy', 'isolated':
            for depth_frames in 2, 8, 100:
                interpreter = _interpreters.create(config)
                with self.subTest(config=config, depth_frames=depth_frames), \
                        Session(rate_hz=RATE_HZ, depth_frames=depth_frames) \
                        as session:
                    _interpreters.exec(interpreter, script)
                    _interpreters.destroy(interpreter)
                found = [stack for stack in map(names, session.profile.samples)
                         if stack and stack[-1].endswith('down')]
                self.assertGreater(len(found), 0)
                for stack in found:
                    self.assertRegex(stack[0], r'^\[GC gen\d\]$', stack)

    # Codecs go after the interpreter's thread state was cleared once.
    LATE = """if True:
        import codecs
        from _profile import start, stop
        from time import sleep, thread_time
        class Search:
            def __call__(self, name):
                return None
            def __del__(self, start=start, stop=stop, clock=thread_time,
                        sleep=sleep):
                {}
                end = clock() + 0.1
                while clock() < end:
                    pass
        codecs.register(Search())
        """

    def late(self, config, statement):
        """An interpreter that runs the statement, and computes, at its end."""
        interpreter = _interpreters.create(config)
        self.assertIsNone(_interpreters.exec(
            interpreter, self.LATE.format(statement)))
        return interpreter

    def test_nothing_of_the_end_is_lost(self):
        # It sleeps, so it takes part once more; then no tick comes.
        for config in 'legacy', 'isolated':
            interpreter = self.late(config, 'sleep(0.05)')
            with self.subTest(config=config), Session(rate_hz=1) as session:
                wall_ns = time.monotonic_ns()
                _interpreters.destroy(interpreter)
                wall_ns = time.monotonic_ns() - wall_ns
            samples = of_thread(session.profile, threading.get_native_id())
            self.assertGreater(wall_ns, 100_000_000)
            self.assertGreaterEqual(weight(samples), wall_ns)

    def test_sessions_that_begin_at_the_end(self):
        for config in 'legacy', 'isolated':
            # The second one takes part in an earlier session first.
            for earlier in '', 'sleep(0.01); stop(); ':
                with self.subTest(config=config, earlier=earlier):
                    interpreter = self.late(
                        config, earlier + 'start(rate_hz=1000)')
                    if earlier:
                        _profile.start(rate_hz=100)
                    _interpreters.destroy(interpreter)
                    profile = checked(_profile.stop())
                    late = [sample for sample in profile.samples
                            if on_stack(sample, 'Search.__del__')]
                    self.assertGreater(weight(late), 70_000_000)

    def test_shared_gil(self):
        self.check('legacy')

    def test_own_gil(self):
        self.check('isolated')

    def test_inside_when_the_session_starts(self):
        interpreter = _interpreters.create('legacy')
        self.addCleanup(_interpreters.destroy, interpreter)
        thread = threading.Thread(target=lambda: _interpreters.exec(
            interpreter, 'import time; time.sleep(0.5)'))
        thread.start()
        wait_until_asleep(thread.native_id)
        with Session(rate_hz=RATE_HZ) as session:
            time.sleep(0.05)
            shot = session.snapshot(clear=True)
        thread.join()
        for profile in shot, session.profile:
            samples = of_thread(profile, thread.native_id)
            self.assertLess(weight(samples), profile.duration_ns + TICK_NS)
            self.assertEqual(
                {names(sample)[-2:] for sample in samples},
                {('<module>', '[blocked]')})

    def test_tables_exchanged_while_others_write(self):
        # No thread of another GIL may add to the new tables what it knows by
        # the numbers of rows in the old ones.
        interpreter = _interpreters.create('isolated')
        self.addCleanup(_interpreters.destroy, interpreter)
        script = '''if True:
            import threading, time

            def work(depth=5):
                if depth:
                    work(depth - 1)
                else:
                    sum([1] * 50)
                    time.sleep(0.00001)

            end = time.monotonic() + 1
            while time.monotonic() < end:
                for _ in range(20):
                    work()
                thread = threading.Thread(target=work)
                thread.start()
                thread.join()
            '''
        threads = [threading.Thread(target=time.sleep, args=(0.01,))
                   for _ in range(3)]
        other = threading.Thread(
            target=lambda: self.assertIsNone(
                _interpreters.exec(interpreter, script)))
        with Session(rate_hz=10_000):
            for thread in threads + [other]:
                thread.start()
            while other.is_alive():
                self.check_rows(_profile.snapshot(clear=True))
            for thread in threads + [other]:
                thread.join()

    def check_rows(self, raw):
        samples = memoryview(raw['samples']).cast('q').tolist()
        nodes = memoryview(raw['nodes']).cast('I').tolist()
        self.assertLess(max(samples[0::9], default=0), len(nodes) // 2)
        self.assertLess(max(samples[1::9], default=0),
                        max(1, len(raw['threads'])))
        for node, parent in enumerate(nodes[2::2], 1):
            self.assertLess(parent, node)

    def test_thread_that_sleeps_inside(self):
        interpreter = _interpreters.create('legacy')
        self.addCleanup(_interpreters.destroy, interpreter)
        native_ids = []

        def run():
            native_ids.append(threading.get_native_id())
            _interpreters.exec(interpreter,
                               'import time; time.sleep(0.3)')
        with Session(rate_hz=RATE_HZ) as session:
            thread = threading.Thread(target=run)
            thread.start()
            wall_ns = time.monotonic_ns()
            time.sleep(0.1)
            # In the middle of it, by a thread that holds the same GIL.
            raw = _profile.snapshot()
            thread.join()
            wall_ns = time.monotonic_ns() - wall_ns
        shot = checked(raw)
        self.assertLess(weight(of_thread(shot, native_ids[0])), wall_ns)
        self.assertAlmostEqual(
            weight(of_thread(session.profile, native_ids[0])), wall_ns,
            delta=20 * TICK_NS)


class TestForeignThreads(SessionTest):
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
        self.assertEqual({s.state for s in samples}, {'blocked'})
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


callback_name = 'TestForeignThreads.test_callback.<locals>.callback'


if __name__ == '__main__':
    unittest.main()
