"""Deferred sessions, and the regions that they sample."""

import asyncio
import contextlib
import os
import threading
import time
import unittest


import profile_sampling
from profile_sampling import label, profile, region

from ..processes.children import NO_THREADS
from ..support import manual
from ..support.labelling import labelled, sums
from ..support.sessions import ProgramTest, SessionTest, _profile, checked
from ..support.subscribers import Recorder, subscribe_manually
from ..support.work import spin


def tearDownModule():
    asyncio.set_event_loop_policy(None)     # as it was


def tick(wall_ns, cpu_ns):
    """A tick that nobody asks for, outside, is refused."""
    with contextlib.suppress(RuntimeError):
        manual.tick(wall_ns, cpu_ns)


class DeferredTest(SessionTest):

    def setUp(self):
        super().setUp()
        # What start(defer=True) does, with a clock that tick() moves.
        _profile.start(manual=True, names=0, defer=True)

    def stop(self):
        return checked(profile_sampling.stop())


class RegionsTest(DeferredTest):

    def test_only_inside(self):
        tick(1, 0)
        with region():
            tick(10, 0)
        tick(100, 0)
        with region(), label(route='/a'):
            tick(1000, 0)
        tick(10_000, 0)
        self.assertEqual(sums(self.stop()),
                         {(): 10, labelled(route='/a'): 1000})

    def test_nested(self):
        shared = region()
        with self.assertRaises(KeyError), shared, region():
            tick(1, 0)
            with shared:
                tick(10, 0)
            tick(100, 0)
            raise KeyError
        tick(1000, 0)
        self.assertTrue(profile_sampling.running())
        self.assertEqual(sums(self.stop()), {(): 111})
        self.assertFalse(profile_sampling.running())

    def test_blocks_of_profile_are_regions(self):
        tick(1, 0)
        with profile() as block:
            tick(10, 0)
            with region():
                tick(100, 0)
            tick(1000, 0)
        tick(10_000, 0)
        with region():
            with profile() as second:
                pass
            tick(100_000, 0)
        self.assertEqual(sums(checked(block.profile)), {(): 1110})
        self.assertEqual(sums(checked(second.profile)), {})
        self.assertEqual(sums(self.stop()), {(): 101_110})

    def test_other_threads_are_sampled_too(self):
        def work():
            with label(where='other'):
                tick(10, 0)
        with region(), label(where='main'):
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
        result = self.stop()
        found = {row.value: row.wall_ns
                 for row in result.label_values('where')}
        self.assertEqual(found['other'], 10)

    def test_tasks(self):
        shared = region()

        async def work(ns):
            with shared:
                tick(ns, 0)
                await asyncio.sleep(0)
                tick(ns, 0)

        async def main():
            tick(1, 0)
            await asyncio.gather(*[
                asyncio.create_task(work(ns), name=f'{ns}')
                for ns in (10, 100)])
            tick(1000, 0)

        asyncio.run(main())
        self.assertEqual(sums(self.stop()), {
            (('task', '10'),): 20, (('task', '100'),): 200})

    def test_a_region_goes_on_in_the_next_session(self):
        with region():
            tick(1, 0)
            self.assertEqual(sums(self.stop()), {(): 1})
            _profile.start(manual=True, names=0, defer=True)
            tick(10, 0)
        tick(100, 0)
        self.assertEqual(sums(self.stop()), {(): 10})

    def test_custom_samples(self):
        profile_sampling.sample(1, where='outside')
        with region():
            profile_sampling.sample(2, where='inside')
        found = {row.value: row.count
                 for row in self.stop().label_values('where')}
        self.assertEqual(found.get('inside'), 2)
        self.assertNotIn('outside', found)


    def test_beside_a_subscription(self):
        # Time goes on for it, and stands still again after it.
        recorder = Recorder()
        with region():
            tick(10, 0)
        with subscribe_manually(recorder):
            tick(100, 0)
            with region():
                tick(1000, 0)
            tick(10_000, 0)
        tick(100_000, 0)
        with region():
            tick(1, 0)
        self.assertEqual(sums(self.stop()), {(): 1011})
        self.assertEqual(recorder.wall_ns(), 11_100)

    def test_a_subscription_that_was_there(self):
        self.stop()
        recorder = Recorder()
        with subscribe_manually(recorder):
            _profile.start(manual=True, names=0, defer=True)
            tick(100, 0)
            with region():
                tick(1000, 0)
        tick(10_000, 0)
        with region():
            tick(1, 0)
        self.assertEqual(sums(self.stop()), {(): 1001})
        self.assertEqual(recorder.wall_ns(), 1100)


class NobodyDefersTest(SessionTest):
    """A region without a deferred session does nothing."""

    def test_a_session_that_is_not_deferred(self):
        with region():
            _profile.start(manual=True, names=0)
            tick(1, 0)
        tick(10, 0)
        with region():
            tick(100, 0)
        self.assertEqual(checked(profile_sampling.stop()).total_wall_ns, 111)

    def test_only_the_time_inside(self):
        """Real time: what is measured is what the regions took."""
        profile_sampling.start(defer=True, names='off')
        inside_ns = 0
        try:
            for _ in range(5):
                spin(0.02)
                with region():
                    before = time.perf_counter_ns()
                    spin(0.02)
                    inside_ns += time.perf_counter_ns() - before
        finally:
            result = checked(profile_sampling.stop())
        own_ns = sum([row.wall_ns for row in result.samples
                      if row.thread.ident == threading.get_ident()])
        # Beginning and ending take some time of their own.
        self.assertGreater(own_ns, inside_ns * 0.98)
        self.assertLess(own_ns, inside_ns * 1.1 + 5_000_000)


class OtherThreadsTest(SessionTest):
    """Their time stands still between regions: nothing is done to them."""

    def setUp(self):
        super().setUp()
        self.is_over = threading.Event()
        self.threads = []
        self.addCleanup(self.end)

    def wait(self, number):
        for _ in range(number):
            self.threads.append(threading.Thread(target=self.is_over.wait))
            self.threads[-1].start()

    def end(self):
        self.is_over.set()
        for thread in self.threads:
            thread.join()

    def test_what_a_region_takes(self):
        def shortest_ns():
            times = []
            for _ in range(100):
                before_ns = time.thread_time_ns()
                with region():
                    pass
                times.append(time.thread_time_ns() - before_ns)
            return min(times)
        profile_sampling.start(defer=True)
        alone_ns = shortest_ns()
        self.wait(300)
        time.sleep(0.1)
        self.assertLess(shortest_ns(), 3 * alone_ns)

    def test_all_have_the_same_time(self):
        # To the nanosecond, whether they stand still or run in between.
        self.wait(1)
        is_over = threading.Event()

        def work():
            while not is_over.is_set():
                spin(0.001)
                time.sleep(0.001)
        self.threads.append(threading.Thread(target=work))
        self.threads[-1].start()
        self.addCleanup(is_over.set)
        profile_sampling.start(defer=True)
        inside_ns = around_ns = 0
        for _ in range(10):
            spin(0.01)
            around_ns -= time.perf_counter_ns()
            with region():
                inside_ns -= time.perf_counter_ns()
                spin(0.01)
                inside_ns += time.perf_counter_ns()
            around_ns += time.perf_counter_ns()
        result = checked(profile_sampling.stop())
        wall_ns, cpu_ns = {}, {}
        for row in result.samples:
            ident = row.thread.ident
            wall_ns[ident] = wall_ns.get(ident, 0) + row.wall_ns
            cpu_ns[ident] = cpu_ns.get(ident, 0) + row.cpu_ns
        idents = [threading.get_ident(), *[t.ident for t in self.threads]]
        self.assertEqual(len({wall_ns[ident] for ident in idents}), 1, wall_ns)
        self.assertGreaterEqual(wall_ns[idents[0]], inside_ns)
        self.assertLessEqual(wall_ns[idents[0]], around_ns)
        for ident in idents:
            self.assertLessEqual(cpu_ns[ident], wall_ns[ident])
        self.assertLess(cpu_ns[idents[1]], 1_000_000)


class DecoratorTest(DeferredTest):

    def test_function(self):
        @region()
        def work(ns):
            tick(ns, 0)
            return work(ns // 10) if ns > 10 else 1 // ns

        tick(5, 0)
        self.assertEqual(work(1000), 0)
        with self.assertRaises(ZeroDivisionError):
            work(0)
        tick(5, 0)
        self.assertEqual(sums(self.stop()), {(): 1110})

    def test_coroutines_at_once(self):
        @region()
        async def work(ns):
            for _ in range(3):
                tick(ns, 0)
                await asyncio.sleep(0)

        async def main():
            await asyncio.gather(work(1), work(10))
            tick(1000, 0)

        asyncio.run(main())
        self.assertEqual(sum(sums(self.stop()).values()), 33)

    def test_generator(self):
        @region()
        def numbers():
            tick(1, 0)
            yield 5
            tick(1, 0)

        generator = numbers()
        tick(10, 0)
        self.assertEqual(next(generator), 5)
        # It is inside until it ends.
        tick(100, 0)
        self.assertEqual(list(generator), [])
        tick(1000, 0)
        self.assertEqual(sums(self.stop()), {(): 102})


@unittest.skipUnless(hasattr(os, 'fork'), 'needs os.fork()')
@NO_THREADS
class ProgramsTest(ProgramTest):

    SPIN = '''\
import os, time
from profile_sampling import region
def spin(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end: pass
'''

    def test_the_command_line(self):
        result = self.run_python(
            '-Xsampleprof=defer=1,out=x.pb', '-c',
            self.SPIN + 'spin(0.2)\nwith region(): spin(0.05)\nspin(0.2)')
        self.assertEqual(result.status, 0, result.err)
        found = result.load('x.pb')
        self.assertGreaterEqual(found.total_wall_ns, 50_000_000)
        self.assertLess(found.total_wall_ns,
                        found.duration_ns - 400_000_000)

    def test_fork_inside(self):
        # The child is inside of nothing until it enters a region itself.
        result = self.run_python(
            '-Xsampleprof=defer=1,out={pid}.pb', '-c', self.SPIN + '''
with region():
    pid = os.fork()
    if not pid:
        spin(0.2)
        with region():
            spin(0.05)
        spin(0.2)
        os._exit(0)
    os.waitpid(pid, 0)
''')
        self.assertEqual(result.status, 0, result.err)
        child, parent = sorted([self.load(name) for name in self.files()],
                               key=lambda profile: profile.start_time_ns,
                               reverse=True)
        self.assertTrue(50_000_000 <= child.total_wall_ns
                        < child.duration_ns - 400_000_000)
        self.assertGreater(parent.total_wall_ns, 450_000_000)
