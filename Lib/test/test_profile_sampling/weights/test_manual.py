"""What samples weigh, by a clock that the test ticks: nothing has a tolerance.

What they say, by the same clock, is in test_stacks.
"""

import gc
import threading

from ..support import sessions
from ..support.manual import leaf, line_of, manual, rows, tick
from ..support.sessions import (
    SessionTest, _profile, checked, names, of_thread, on_stack)


class WeightsTest(SessionTest):

    def test_one_tick(self):
        with manual() as session:
            leaf(1_000_001, 999_999)
        profile = session.profile
        self.assertEqual(rows(profile),
                         {(('leaf',), 'running'): (1, 999_999, 1_000_001)})
        self.assertEqual(profile.duration_ns, 1_000_001)
        stats = profile.stats
        self.assertEqual((stats['ticks'], stats['signals_sent'],
                          stats['captures'], stats['samples']), (1, 1, 1, 1))

    def test_line_and_column(self):
        def place():
            tick(1, 50)
            x = [0,
                 tick(2, 60)]
            tick(3, 0); tick(4, 80)
        with manual() as session:
            place()
        places = {(sample.stack[0].line, sample.stack[0].column):
                  (sample.wall_ns, sample.cpu_ns)
                  for sample in session.profile.samples}
        self.assertEqual(places, {
            (line_of(place, 1), 13): (1, 50),
            (line_of(place, 3), 18): (2, 60),
            (line_of(place, 4), 13): (3, 0),
            (line_of(place, 4), 25): (4, 80)})

    def test_lines_of_callers(self):
        def outer():
            pass
            inner(); pass

        def inner():
            tick(1, 1)
        with manual() as session:
            outer()
        sample, = session.profile.samples
        self.assertEqual(
            [(frame.function.qualname.rpartition('.')[2], frame.line,
              frame.column) for frame in sample.stack[:2]],
            [('inner', line_of(inner, 1), 13),
             ('outer', line_of(outer, 2), 13)])
        self.assertEqual(sample.stack[0].function.first_line,
                         line_of(inner, 0))
        self.assertEqual(sample.stack[0].function.module, __name__)
        self.assertEqual(sample.stack[0].function.filename,
                         inner.__code__.co_filename)

    def test_same_place_is_one_row(self):
        with manual() as session:
            for i in range(100):
                leaf(10, 10 + i)
        self.assertEqual(rows(session.profile),
                         {(('leaf',), 'running'): (100, sum(range(10, 110)),
                                                   1000)})

    def test_ticks_between_safepoints_merge(self):
        # map() in C: no safepoint of this frame between the ticks.
        with manual() as session:
            list(map(tick, range(1, 11), range(2, 12)))
        sample, = session.profile.samples
        self.assertEqual((sample.count, sample.wall_ns, sample.cpu_ns),
                         (10, 55, 65))
        stats = session.profile.stats
        self.assertEqual(stats['captures'] + stats['captures_merged'], 10)
        self.assertEqual(stats['captures_merged'], 9)

    def test_straight_line_code(self):
        # More ticks without a safepoint than captures fit: the time of those
        # that found no room goes to the next sample, and they are counted.
        n = 200
        source = 'def straight():\n' + '    tick(1, 1)\n' * n
        namespace = {'tick': tick}
        exec(source, namespace)
        with manual() as session:
            namespace['straight']()
            tick(1, 1)
        profile = session.profile
        stats = profile.stats
        self.assertEqual(profile.total_wall_ns, n + 1)
        self.assertEqual(profile.total_cpu_ns, n + 1)
        self.assertEqual(profile.total_count + stats['captures_no_space'],
                         n + 1)

    def test_zero_and_huge_weights(self):
        year_ns = 365 * 86400 * 10**9
        with manual() as session:
            leaf(0, 0)
            leaf(year_ns, year_ns)
        self.assertEqual(session.profile.total_wall_ns, year_ns)
        self.assertEqual(session.profile.total_cpu_ns, year_ns)

    def test_conservation(self):
        # A program that does a bit of everything; every tick is different,
        # so that a weight recorded twice or not at all shows in the sum.
        wall = cpu = 0
        with manual() as session:
            for i in range(1, 2000):
                wall += i * i
                cpu += i
                if i % 3 == 0:
                    leaf(i * i, i)
                elif i % 3 == 1:
                    [tick(i * i, i) for _ in '1']
                else:
                    next(tick(i * i, i) for _ in '1')
                if i % 500 == 0:
                    self.assertEqual(session.snapshot().total_wall_ns, wall)
        self.assertEqual(session.profile.total_wall_ns, wall)
        self.assertEqual(session.profile.total_cpu_ns, cpu)
        self.assertEqual(session.profile.total_count, 1999)
        self.assertEqual(session.profile.duration_ns, wall)


class ArgumentsTest(SessionTest):

    def test_bad_options(self):
        for options in (dict(mode='x'), dict(mode=''), dict(mode=1),
                        dict(rate_hz=0), dict(rate_hz=10_001),
                        dict(rate_hz=-5), dict(rate_hz='9'),
                        dict(depth_frames=-1), dict(depth_frames=16_385),
                        dict(signal=-1), dict(signal=10_000)):
            with self.subTest(options=options):
                with self.assertRaises((TypeError, ValueError)):
                    _profile.start(**options)
                self.assertFalse(_profile.running())

    def test_unfit_signals(self):
        # Nobody may take these: they cannot be caught, or a fault would
        # come back for ever.
        import signal
        for signum in (signal.SIGKILL, signal.SIGSTOP, signal.SIGSEGV,
                       signal.SIGBUS, signal.SIGFPE, signal.SIGILL):
            sessions.end_session()
            with self.subTest(signum=signum):
                with self.assertRaises((ValueError, RuntimeError)):
                    _profile.start(signal=signum, manual=True)


class CollectorTest(SessionTest):

    def setUp(self):
        super().setUp()
        self.enterContext(sessions.collector_disabled())

    def test_del_is_under_the_collection(self):
        class Loop:
            def __del__(self):
                tick(3, 3)

        def collect():
            gc.collect(1)
            tick(1, 1)
        loop = Loop()
        loop.loop = loop
        del loop
        with manual() as session:
            collect()
        found = {sample.wall_ns: (sample.state,
                                  [name.rpartition('.')[2]
                                   for name in names(sample)[-3:]])
                 for sample in session.profile.samples}
        self.assertEqual(found[3],
                         ('gc', ['collect', '[GC gen1]', '__del__']))
        self.assertEqual(found[1][0], 'running')
        self.assertNotIn('[GC gen1]', found[1][1])

    def test_callbacks(self):
        def callback(phase, info):
            tick(10, 12)
        with manual() as session:
            gc.callbacks.append(callback)
            self.addCleanup(gc.callbacks.clear)
            for generation in range(3):
                gc.collect(generation)
            gc.callbacks.remove(callback)
        found = {names(sample)[-2]: (sample.state, sample.count,
                                     sample.cpu_ns, sample.wall_ns)
                 for sample in session.profile.samples}
        self.assertEqual(found, {
            f'[GC gen{generation}]': ('gc', 2, 24, 20)
            for generation in range(3)})

    def test_clear_in_a_collection(self):
        def callback(phase, info):
            tick(10, 10)
            taken.append(checked(_profile.snapshot(clear=True)))
        taken = []
        gc.callbacks.append(callback)
        self.addCleanup(gc.callbacks.clear)
        with manual() as session:
            gc.collect()
            gc.callbacks.remove(callback)
            leaf(1, 1)
        self.assertEqual([[(s.state, s.wall_ns) for s in profile.samples]
                          for profile in taken], [[('gc', 10)]] * 2)
        sample, = session.profile.samples
        self.assertEqual((sample.state, sample.wall_ns), ('running', 1))

    def test_start_in_a_collection(self):
        def callback(phase, info):
            if phase == 'start':
                _profile.start(manual=True)
        gc.callbacks.append(callback)
        self.addCleanup(gc.callbacks.clear)
        gc.collect()
        gc.callbacks.remove(callback)
        leaf(1, 1)
        sample, = checked(_profile.stop()).samples
        self.assertEqual(sample.state, 'running')

    def test_stop_in_a_collection(self):
        def callback(phase, info):
            if _profile.running():
                _profile.stop()
        gc.callbacks.append(callback)
        self.addCleanup(gc.callbacks.clear)
        _profile.start(manual=True)
        gc.collect()
        gc.callbacks.remove(callback)
        self.assertFalse(_profile.running())
        with manual() as session:
            leaf(1, 1)
        sample, = session.profile.samples
        self.assertEqual(sample.state, 'running')
        self.assertFalse(on_stack(sample, '[GC gen2]'))


class SnapshotsTest(SessionTest):

    def test_snapshot_goes_on(self):
        with manual() as session:
            leaf(1, 1)
            first = session.snapshot()
            leaf(2, 2)
            second = session.snapshot()
        self.assertEqual([p.total_wall_ns for p in
                          (first, second, session.profile)], [1, 3, 3])

    def test_clear(self):
        with manual() as session:
            leaf(1, 1)
            first = session.snapshot(clear=True)
            second = session.snapshot(clear=True)
            leaf(2, 2)
            third = session.snapshot(clear=True)
            leaf(4, 4)
        taken = first, second, third, session.profile
        self.assertEqual([p.total_wall_ns for p in taken], [1, 0, 2, 4])
        self.assertEqual([p.duration_ns for p in taken], [1, 0, 2, 4])
        self.assertEqual([p.stats['ticks'] for p in taken], [1, 0, 1, 1])
        for profile in first, third, session.profile:
            self.assertEqual(list(rows(profile)), [(('leaf',), 'running')])

    def test_clear_often(self):
        # New tables may lie where old ones lay: nothing remembered about
        # those may be used.
        def down(n, ns):
            if n:
                down(n - 1, ns)
            else:
                tick(ns, ns)
        with manual() as session:
            for i in range(1, 60):
                down(5, i)
                for _ in range(i % 12):
                    profile = session.snapshot(clear=True)
                down(5, i)
                profile = session.snapshot(clear=True)
                sample, *others = profile.samples
                self.assertFalse(others and i % 12)
                self.assertEqual(profile.total_wall_ns,
                                 i if i % 12 else 2 * i)
                self.assertEqual(names(sample).count(down.__qualname__), 6)

    def test_threads_keep_rows_and_names(self):
        with manual() as session:
            with sessions.parked_thread(name='sleeper') as thread:
                session.snapshot(clear=True)
                tick(5, 5)
            profile = session.snapshot()
        sample, = of_thread(profile, thread.native_id)
        self.assertEqual((sample.state, sample.wall_ns, sample.thread.name),
                         ('waiting', 5, 'sleeper'))


class AttachAndDetachTest(SessionTest):

    def test_waiting_thread(self):
        # The other thread sleeps in lock.acquire() while this one ticks.
        with manual() as session:
            with sessions.parked_thread() as thread:
                tick(100, 107)
                profile = session.snapshot()
        sample, = of_thread(profile, thread.native_id)
        self.assertEqual((sample.state, sample.wall_ns, sample.cpu_ns),
                         ('waiting', 100, 0))
        self.assertEqual(names(sample)[-1], '[waiting]')
        self.assertTrue(names(sample)[-2].endswith('parked'))
        own = of_thread(profile, threading.get_native_id())
        self.assertEqual([(s.state, s.wall_ns, s.cpu_ns) for s in own],
                         [('running', 100, 107)])

    def test_every_thread_sums_to_the_clock(self):
        # 20 threads, each registered at time 0, wait; time passes; some of
        # them tick.  Off the GIL or on it: each one's wall weights are the
        # whole time, its CPU weights its own ticks.
        started = threading.Barrier(21)
        turns = [threading.Lock() for _ in range(20)]
        for lock in turns:
            lock.acquire()
        done = threading.Semaphore(0)

        def worker(number):
            with turns[number]:
                tick(10 ** 6, number)
                done.release()

        def begin(number):
            started.wait()
            worker(number)
        threads = [threading.Thread(target=begin, args=(number,))
                   for number in range(20)]
        for thread in threads:
            thread.start()
        started.wait()
        with manual() as session:
            for number in 3, 1, 15:
                turns[number].release()
                done.acquire()
            tick(5, 5)
            profile = session.snapshot()
            for number in set(range(20)) - {3, 1, 15}:
                turns[number].release()
            for thread in threads:
                thread.join()
        total = 3 * 10 ** 6 + 5
        self.assertEqual(profile.duration_ns, total)
        for number, thread in enumerate(threads):
            samples = of_thread(profile, thread.native_id)
            if number not in (3, 1, 15):
                self.assertEqual(sessions.weight(samples), total, number)
                self.assertEqual(sessions.weight(samples, 'cpu_ns'), 0)

    def test_thread_that_ends(self):
        # It lives for one tick of its own; what it was given is not lost.
        def short():
            tick(1000, 100)
        with manual() as session:
            thread = threading.Thread(target=short)
            thread.start()
            thread.join()
            tick(1, 0)
        samples = of_thread(session.profile, thread.native_id)
        self.assertEqual(sessions.weight(samples), 1000)
        self.assertEqual(sessions.weight(samples, 'cpu_ns'), 100)
        # This one waited for it meanwhile.
        own = of_thread(session.profile, threading.get_native_id())
        self.assertEqual(sessions.weight(own), 1001)
