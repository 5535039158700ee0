"""The states of asyncio's tasks: every nanosecond of a life is in one.

The clock is the tests' own, so all numbers are exact.
"""

import asyncio
import contextlib
import contextvars
import gc
import threading
from collections import Counter

from test import support

import profile_sampling
from profile_sampling import label

from ..support.lives import lives, spend
from ..support.manual import manual, tick
from ..support.sessions import Session, SessionTest, checked

WAITS = ('awaiting', 'loop_wait')


def tearDownModule():
    asyncio.set_event_loop_policy(None)     # as it was


async def parked(future):
    await future


class LivesTest(SessionTest):

    def run_main(self, main, **options):
        with manual(**options) as session:
            asyncio.run(main())
        return session.profile

    def check(self, main, /, **expected):
        profile = self.run_main(main)
        found = lives(profile)
        for name, states in expected.items():
            self.assertEqual(found[name], states, name)
        self.assertEqual(profile.total('task_ns'),
                         sum(map(sum, found.values())))
        return profile

    def test_awaiting_ends_where_the_future_is_set(self):
        async def main():
            future = asyncio.get_running_loop().create_future()
            task = asyncio.create_task(parked(future))
            await asyncio.sleep(0)
            spend(50)
            future.set_result(None)
            spend(7)
            await task
        self.check(main, parked=(0, 7, 50))

    def test_woken_while_it_runs(self):
        async def first():
            spend(1)
            await asyncio.sleep(0)
            spend(2)

        async def second():
            spend(30)
            await asyncio.sleep(0)

        async def main():
            await asyncio.gather(first(), second())
        self.check(main, first=(3, 30, 0), second=(30, 1 + 2, 0))

    def test_exception_and_cancel(self):
        async def fails():
            spend(3)
            raise KeyError

        async def main():
            failing = asyncio.create_task(fails())
            waiting = asyncio.create_task(
                parked(asyncio.get_running_loop().create_future()))
            await asyncio.sleep(0)
            spend(10)
            waiting.cancel()
            spend(20)
            with contextlib.suppress(asyncio.CancelledError):
                await waiting
            self.assertIsInstance(failing.exception(), KeyError)
        profile = self.check(main, fails=(3, 0, 0), parked=(0, 3 + 20, 10))
        counts = {row.name.rpartition('.')[2]: (row.finished, row.cancelled)
                  for row in profile.tasks()}
        self.assertEqual(counts['fails'], (1, 0))
        self.assertEqual(counts['parked'], (1, 1))

    def test_destroyed_while_it_awaits(self):
        async def main():
            loop = asyncio.get_running_loop()
            loop.set_exception_handler(lambda *args: None)
            task = asyncio.create_task(parked(loop.create_future()))
            await asyncio.sleep(0)
            spend(11)
            del task
            gc.collect()
            spend(100)
        profile = self.check(main, parked=(0, 0, 11))
        [row] = [row for row in profile.tasks()
                 if row.name.endswith('parked')]
        self.assertEqual(row.finished, 0)

    def test_destroyed_after_its_context(self):
        # The collector clears what belongs to a cycle in any order.
        async def holds(cycle):
            cycle.append(asyncio.current_task())
            with label(route='/x'):
                await asyncio.get_running_loop().create_future()

        async def main():
            asyncio.get_running_loop().set_exception_handler(
                lambda *args: None)
            for _ in range(100):
                cycle = []
                context = contextvars.copy_context()
                context.run(variable.set, (cycle, context))
                asyncio.create_task(holds(cycle), context=context)
                del cycle, context
                await asyncio.sleep(0)
                await asyncio.sleep(0)
                spend(1)
                gc.collect()
        variable = contextvars.ContextVar('variable')
        with label(kind='any'):
            profile = self.run_main(main)
        self.assertEqual(lives(profile)['holds'], (0, 0, 100))

    def test_awaits_when_the_session_ends(self):
        async def main():
            loop = asyncio.get_running_loop()
            with manual() as session:
                task = asyncio.create_task(parked(loop.create_future()))
                late = asyncio.create_task(parked(loop.create_future()))
                await asyncio.sleep(0)
                spend(6)
                snapshot = session.snapshot()
                spend(4)
            task.cancel()
            late.cancel()
            return snapshot, session.profile
        snapshot, profile = asyncio.run(main())
        self.assertEqual(lives(snapshot)['parked'], (0, 0, 12))
        self.assertEqual(lives(profile)['parked'], (0, 0, 20))

    def test_cleared_snapshots_add_up(self):
        async def main():
            loop = asyncio.get_running_loop()
            with manual() as session:
                future = loop.create_future()
                task = asyncio.create_task(parked(future))
                await asyncio.sleep(0)
                spend(6)
                first = session.snapshot(clear=True)
                spend(30)
                future.set_result(None)
                spend(1)
                await task
            return first, session.profile
        first, second = asyncio.run(main())
        self.assertEqual(lives(first)['parked'], (0, 0, 6))
        self.assertEqual(lives(second)['parked'], (0, 1, 30))

    def test_began_before_the_session(self):
        async def main():
            future = asyncio.get_running_loop().create_future()
            task = asyncio.create_task(parked(future))
            await asyncio.sleep(0)
            with manual() as session:
                spend(3)
                future.set_result(None)
                spend(9)
                await task
            return session.profile
        profile = asyncio.run(main())
        self.assertEqual(lives(profile)['parked'], (0, 9, 3))
        [row] = [row for row in profile.tasks()
                 if row.name.endswith('parked')]
        self.assertEqual(row.finished, 0, 'its life is not known')

    def test_began_before_a_snapshot_of_the_session(self):
        async def main():
            future = asyncio.get_running_loop().create_future()
            task = asyncio.create_task(parked(future))
            await asyncio.sleep(0)
            with manual() as session:
                spend(30)
                session.snapshot(clear=True)
                spend(3)
                future.set_result(None)
                await task
            return session.profile
        # What was not known when the snapshot was taken is in none.
        self.assertEqual(lives(asyncio.run(main()))['parked'], (0, 0, 3))

    def test_runs_when_the_session_begins(self):
        """In another thread's loop; it wakes itself."""
        began, go_on = threading.Event(), threading.Event()

        async def runs():
            began.set()
            go_on.wait()
            await asyncio.sleep(0)
            spend(9)

        thread = threading.Thread(target=asyncio.run, args=(runs(),))
        thread.start()
        began.wait()
        with manual() as session:
            spend(30)
            go_on.set()
            thread.join()
        running, _, awaiting = lives(session.profile)['runs']
        self.assertEqual((running, awaiting), (9, 0))

    def test_two_sessions(self):
        async def main():
            future = asyncio.get_running_loop().create_future()
            with manual():
                task = asyncio.create_task(parked(future))
                await asyncio.sleep(0)
                spend(1000)
            with manual() as session:
                spend(3)
                future.set_result(None)
                spend(9)
                await task
            return session.profile
        self.assertEqual(lives(asyncio.run(main()))['parked'], (0, 9, 3))

    def test_eager_tasks_run_in_the_step_of_another(self):
        async def eager():
            spend(5)
            await asyncio.sleep(0)
            spend(7)

        async def main():
            asyncio.get_running_loop().set_task_factory(
                asyncio.eager_task_factory)
            spend(1)
            task = asyncio.create_task(eager())
            spend(20)
            await task
        self.check(main, eager=(12, 20, 0), main=(21, 0, 5 + 7))

    def test_eager_task_that_never_suspends(self):
        async def eager():
            spend(5)

        async def main():
            asyncio.get_running_loop().set_task_factory(
                asyncio.eager_task_factory)
            await asyncio.create_task(eager())
        profile = self.check(main, eager=(5, 0, 0))
        [row] = [row for row in profile.tasks() if row.name.endswith('eager')]
        self.assertEqual((row.finished, row.steps), (1, 1))

    def test_loop_that_is_run_inside_a_task(self):
        async def inner():
            spend(40)

        async def main():
            spend(1)
            asyncio._set_running_loop(None)
            outer = asyncio.current_task(loop)
            asyncio._leave_task(loop, outer)
            other = asyncio.new_event_loop()
            try:
                other.run_until_complete(inner())
            finally:
                other.close()
                asyncio._enter_task(loop, outer)
                asyncio._set_running_loop(loop)
            spend(2)
        with manual() as session:
            loop = asyncio.new_event_loop()
            loop.run_until_complete(main())
            loop.close()
        self.assertEqual(lives(session.profile)['inner'], (40, 0, 0))
        self.assertEqual(lives(session.profile)['main'], (3, 0, 40))

    def test_loop_that_does_not_run_for_a_while(self):
        """Waits go on; what ran instead kept those waiting that were woken."""
        async def begin():
            future = loop.create_future()
            tasks = [loop.create_task(parked(future)),
                     loop.create_task(woken())]
            await asyncio.sleep(0)
            return future, tasks

        async def woken():
            for _ in range(3):
                await asyncio.sleep(0)

        async def end(future, tasks):
            future.set_result(None)
            await asyncio.gather(*tasks)

        def between():
            tick(50, 0)
        loop = asyncio.new_event_loop()
        self.addCleanup(loop.close)
        with manual() as session:
            state = loop.run_until_complete(begin())
            between()
            loop.run_until_complete(end(*state))
        found = lives(session.profile)
        self.assertEqual(found['parked'], (0, 0, 50))
        self.assertEqual(found['woken'], (0, 50, 0))
        self.assertEqual({row.function.qualname.rpartition('.')[2]:
                          row.delay_ns
                          for row in session.profile.loop_holders()
                          if row.delay_ns}, {'between': 50})

    def test_threads_are_the_same_with_tasks(self):
        async def child():
            spend(10)
            await asyncio.sleep(0)
            spend(10)

        async def main():
            await asyncio.gather(child(), child())
        profile = self.run_main(main)
        self.assertEqual(profile.total('wall_ns'), 40)
        self.assertTrue(all(row.wall_ns == row.cpu_ns == row.count == 0
                            for row in profile.samples
                            if row.state in WAITS))

    def test_records_are_in_what_memory_is_taken(self):
        many = 2000

        async def main():
            future = asyncio.get_running_loop().create_future()
            with manual() as session:
                taken = [session.snapshot()]
                tasks = [asyncio.create_task(parked(future))
                         for _ in range(many)]
                taken.append(session.snapshot())
                future.set_result(None)
                await asyncio.gather(*tasks)
            return [profile.stats['memory_bytes']
                    for profile in (*taken, session.profile)]
        before, at_most, after = asyncio.run(main())
        self.assertGreater(at_most - before, 100 * many)
        self.assertGreater(at_most - after, 100 * many)

    def test_labels_of_waits(self):
        async def work():
            with label(route='/x'):
                await asyncio.sleep(0)
            await asyncio.sleep(0)

        async def main():
            task = asyncio.create_task(work(), name='mine')
            await asyncio.sleep(0)
            spend(5)
            await task
        profile = self.run_main(main)
        found = Counter()
        for row in profile.samples:
            if row.state == 'loop_wait' and row.task_name == 'mine':
                found[row.labels.get('route')] += row.task_ns
        self.assertEqual(found, {'/x': 5})

    def test_tasks_of_a_subscriber_are_not_the_programs(self):
        async def own():
            await asyncio.sleep(0)

        served = threading.Event()

        def serve(batch):
            asyncio.run(own())
            served.set()
        profile_sampling.start()
        with profile_sampling.subscribe(serve, batch_seconds=0.01):
            for _ in support.busy_retry(support.SHORT_TIMEOUT):
                if served.is_set():
                    break
        self.assertEqual(profile_sampling.stop().tasks(), [])

    def test_delays_add_up_to_loop_waits(self):
        async def hog():
            spend(100)

        async def main():
            await asyncio.gather(hog(), hog(), hog())
        profile = self.run_main(main)
        self.assertEqual(profile.total('delay_ns'),
                         sum(row.task_ns for row in profile.samples
                             if row.state == 'loop_wait'))
        # The first kept two waiting, the second one.
        self.assertEqual(sum(row.delay_ns for row in profile.loop_holders()
                             if row.task_class.endswith('hog')), 300)


class BesideOthersTest(SessionTest):
    """On the real clock, so slow that it hits hardly any task."""

    RATE_HZ = 10

    def check(self, profile):
        found = lives(checked(profile))
        self.assertGreater(found['short'][0], 0)
        self.assertEqual(profile.total('task_ns'),
                         sum(map(sum, found.values())))

    def run_tasks(self):
        async def short():
            pass

        async def main():
            for _ in range(100):
                await asyncio.create_task(short())
        asyncio.run(main())

    def test_blocks_in_blocks(self):
        with profile_sampling.profile(rate_hz=self.RATE_HZ) as outer:
            with profile_sampling.profile() as inner:
                self.run_tasks()
        self.check(inner.profile)
        self.check(outer.profile)

    def test_session_in_a_block(self):
        with profile_sampling.profile(rate_hz=self.RATE_HZ) as block:
            self.run_tasks()
            with Session(rate_hz=self.RATE_HZ) as session:
                self.run_tasks()
                self.check(session.snapshot())
                self.run_tasks()
                self.check(session.snapshot(clear=True))
                self.run_tasks()
        self.check(session.profile)
        self.check(block.profile)
