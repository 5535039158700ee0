"""Threads of executors: for which task they work.

The clock is the tests' own, so all numbers are exact.
"""

import _thread
import asyncio
import concurrent.futures
import threading
import unittest
from collections import Counter

from ..support.manual import manual, tick
from ..support.packages import optional
from ..support.sessions import SessionTest

uvloop = optional('uvloop')


def tearDownModule():
    asyncio.set_event_loop_policy(None)     # as it was


def working(profile):
    """Samples of other threads, which the clock ticked."""
    return [row for row in profile.samples
            if row.thread.ident != threading.get_ident()
            and row.state == 'running' and row.wall_ns]


class ExecutorsTest(SessionTest):

    def work_of(self, main, run=asyncio.run):
        """{(task name, its class): ns} of other threads."""
        with manual() as session:
            task_id = run(main())
        self.profile = session.profile
        found = Counter()
        for row in working(session.profile):
            found[row.task_name, row.task_class] += row.wall_ns
            if row.task_name == 'main':
                self.assertEqual(row.task_id, task_id)
        return found

    def test_work_is_no_part_of_a_life(self):
        awaited = threading.Event()

        def work():
            awaited.wait()
            tick(10, 10)

        async def main():
            asyncio.current_task().set_name('main')
            tick(1, 1)
            asyncio.get_running_loop().call_soon(awaited.set)
            await asyncio.to_thread(work)
            tick(100, 100)
            return id(asyncio.current_task())
        name = f'{__name__}.{main.__qualname__}'
        self.assertEqual(self.work_of(main), {('main', name): 10})
        [row] = [row for row in self.profile.tasks() if row.name == name]
        self.assertEqual((row.running_ns, row.awaiting_ns
                          + row.loop_wait_ns), (101, 10))
        self.assertEqual(self.profile.total('task_ns'), 111)
        self.assertEqual(
            [row.task_ns for row in working(self.profile)], [0])

    @unittest.skipIf(uvloop is None, 'uvloop is not installed')
    def test_uvloop(self):
        async def main():
            asyncio.current_task().set_name('main')
            await asyncio.to_thread(tick, 10, 10)
            await asyncio.get_running_loop().run_in_executor(
                None, tick, 1, 1)
            return id(asyncio.current_task())
        found = self.work_of(main, lambda coro: asyncio.run(
            coro, loop_factory=uvloop.new_event_loop))
        self.assertEqual(
            found, {('main', f'{__name__}.{main.__qualname__}'): 11})

    def test_work_for_nobody(self):
        """What is given by no task, and after one, is of none."""
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            async def main():
                asyncio.current_task().set_name('main')
                loop = asyncio.get_running_loop()
                with self.assertRaises(ZeroDivisionError):
                    await loop.run_in_executor(pool, fails)
                await asyncio.wrap_future(
                    await loop.run_in_executor(pool, gives))
                done = loop.create_future()
                loop.call_soon(lambda: done.set_result(
                    pool.submit(tick, 1000, 1000)))
                await asyncio.wrap_future(await done)
                return id(asyncio.current_task())

            def fails():
                tick(1, 1)
                1 / 0

            def gives():
                tick(10, 10)
                # Work that makes work.
                return pool.submit(tick, 100, 100)
            found = self.work_of(main)
        self.assertEqual({name: ns for (name, _), ns in found.items()},
                         {'main': 111, None: 1000})

    def test_work_that_runs_a_loop(self):
        async def inner():
            asyncio.current_task().set_name('inner')
            tick(10, 10)

        def work():
            tick(1, 1)
            asyncio.run(inner())
            tick(1, 1)

        async def main():
            asyncio.current_task().set_name('main')
            await asyncio.to_thread(work)
        with manual() as session:
            asyncio.run(main())
        found = Counter()
        for row in working(session.profile):
            found[row.task_name] += row.wall_ns
        self.assertEqual(found, {'main': 2, 'inner': 10})

    def test_work_of_an_earlier_session(self):
        begun, go_on = threading.Event(), threading.Event()

        def work():
            begun.set()
            go_on.wait()
            tick(5, 5)

        async def main():
            asyncio.current_task().set_name('main')
            with manual():
                done = asyncio.ensure_future(asyncio.to_thread(work))
                await asyncio.sleep(0)
                begun.wait()
            with manual() as session:
                go_on.set()
                await done
            return session.profile
        profile = asyncio.run(main())
        self.assertEqual(
            {row.task_name for row in working(profile)}, {None})

    def test_a_function_is_left_alone(self):
        """While nobody profiles, and where there is no task."""
        self.assertIs(_thread._for_sampled_task(len), len)

        async def main():
            return _thread._for_sampled_task(len)
        self.assertIs(asyncio.run(main()), len)
        with manual():
            self.assertIs(_thread._for_sampled_task(len), len)

    def test_the_same_function(self):
        """What the task gives away takes, returns and raises the same."""
        def work(*args, **kwargs):
            if not args:
                raise ZeroDivisionError(kwargs)
            return args, kwargs

        async def main():
            return _thread._for_sampled_task(work)
        with manual():
            made = asyncio.run(main())
            self.assertIsNot(made, work)
            self.assertEqual(made(1, 2, a=3), ((1, 2), {'a': 3}))
            with self.assertRaises(ZeroDivisionError) as caught:
                made(b=4)
        self.assertEqual(caught.exception.args, ({'b': 4},))
        # And when the session is over.
        self.assertEqual(made(5), ((5,), {}))

    def test_work_within_work(self):
        """A thread goes on with what it worked for before."""
        async def give(name):
            asyncio.current_task().set_name(name)
            return _thread._for_sampled_task(
                lambda *then: (tick(1, 1), *[f() for f in then], tick(2, 2)))
        with manual() as session:
            outer, inner = [asyncio.run(give(name))
                            for name in ('outer', 'inner')]
            thread = threading.Thread(
                target=lambda: (outer(inner), tick(100, 100)))
            thread.start()
            thread.join()
        found = Counter()
        for row in working(session.profile):
            found[row.task_name] += row.wall_ns
        self.assertEqual(found, {'outer': 3, 'inner': 3, None: 100})
