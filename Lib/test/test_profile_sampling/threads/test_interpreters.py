"""Threads that visit subinterpreters, and subinterpreters that end.

Conservation is the oracle, as in test_threads.
"""

import _interpreters
import sys
import threading
import time
import unittest

from test import support
from test.support import threading_helper

import profile_sampling

from ..support.sessions import (
    THOROUGH, _profile, Session, SessionTest, checked, names, of_thread,
    on_stack, wait_until_asleep, weight)
from ..support.work import busy

RATE_HZ = 1000
TICK_NS = 1_000_000_000 // RATE_HZ
SECONDS_OF_ENDS = 60 if THOROUGH else 3


class InterpretersThatEndTest(unittest.TestCase):
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
                profile_sampling.start(rate_hz=10_000)
                while time.monotonic() < end:
                    with profile_sampling.profile():
                        for _ in range(20):
                            profile_sampling.snapshot()
                        profile_sampling.snapshot(clear=True)
                profile_sampling.stop()
            self.assertIsNone(caught.unraisable)
        self.assertGreater(
            len([r for r in records if r.kind == 'thread end']), 3)

    def test_shared_gil(self):
        self.check('legacy')

    def test_own_gil(self):
        self.check('isolated')


class InterpretersOnOneThreadTest(SessionTest):
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

    def test_the_clock_rests_while_one_sleeps(self):
        # The record of the other thread state is no reason to tick, and both
        # have ticks when they run again.
        interpreter = _interpreters.create('legacy')
        self.addCleanup(_interpreters.destroy, interpreter)
        with Session(rate_hz=RATE_HZ):
            busy(0.05)
            before = _profile.stats()
            _interpreters.exec(interpreter, 'import time; time.sleep(0.5)')
            asleep = _profile.stats()
            time.sleep(0.2)
            busy(0.2)
            after = _profile.stats()
        self.assertLess(asleep['ticks'] - before['ticks'], 250)
        self.assertGreater(after['captures'] - asleep['captures'], 60)

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
                {('<module>', '[waiting]')})

    def test_nothing_waits_in_the_other_thread_state(self):
        # Its last samples, sixteen, waited to share time until it ran again.
        # What comes after the last tick, four periods at most, is with the other,
        # and in a crowd ticks are late.
        interpreter = _interpreters.create('legacy')
        self.addCleanup(_interpreters.destroy, interpreter)

        has_worked = threading.Event()
        cpu_ns = None

        def work():
            busy(0.1)
            nonlocal cpu_ns
            cpu_ns = time.thread_time_ns()
            has_worked.set()
            _interpreters.exec(interpreter, 'import time; time.sleep(0.5)')
        thread = threading.Thread(target=work)
        with Session(rate_hz=1000) as session:
            thread.start()
            has_worked.wait()
            time.sleep(0.1)
            wait_until_asleep(thread.native_id)
            shot = session.snapshot()
        thread.join()
        here = [sample for sample in of_thread(shot, thread.native_id)
                if sample.thread.interpreter_id == 0]
        self.assertGreater(weight(here, 'cpu_ns'), 0.85 * cpu_ns)

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
        columns = 11
        nodes = memoryview(raw['nodes']).cast('I').tolist()
        self.assertLess(max(samples[0::columns], default=0), len(nodes) // 2)
        self.assertLess(max(samples[1::columns], default=0),
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
