"""Tasks that die, or are made, in ways that asyncio allows."""

import asyncio
import gc
import time

import profile_sampling
from profile_sampling import label
from test.support.script_helper import assert_python_ok

from ..support.manual import manual, tick
from ..support.sessions import SessionTest


def tearDownModule():
    asyncio.set_event_loop_policy(None)     # as it was


def row_of(profile, name):
    [row] = [row for row in profile.tasks()
             if row.name.rpartition('.')[2] == name]
    return row


async def parked(future):
    await future


async def nothing():
    pass


class HostileTest(SessionTest):

    def test_class_that_dies_with_its_task(self):
        def make():
            class Job(asyncio.Task):
                pass
            loop = asyncio.new_event_loop()

            async def main():
                Job.task = Job(parked(loop.create_future()), loop=loop)
                await asyncio.sleep(0.01)
            loop.set_exception_handler(lambda *args: None)
            loop.run_until_complete(main())
            loop.close()
        profile_sampling.start()
        make()
        gc.collect()
        profile = profile_sampling.stop()
        self.assertGreater(row_of(profile, 'parked').awaiting_ns, 9_000_000)

    def test_globals_that_die_with_their_task(self):
        assert_python_ok('-c', '''if True:
            import asyncio, gc, types, profile_sampling
            async def template():
                pass
            def make():
                space = {'__name__': 'gone',
                         **{f'k{i}': '' for i in range(40)}}
                coroutine = types.FunctionType(template.__code__, space)()
                loop = asyncio.new_event_loop()
                task = asyncio.Task(coroutine, loop=loop)
                task._log_destroy_pending = False
                loop._ready.clear()
                loop.close()
                task.me = task
            gc.disable()
            profile_sampling.start()
            for _ in range(10):
                make()
            gc.collect()
            profile_sampling.stop()
            ''', PYTHONMALLOC='debug')

    def test_context_of_another_type(self):
        class Context:
            def run(self, function, *args):
                return function(*args)

        async def main():
            await asyncio.get_running_loop().create_task(
                asyncio.sleep(0.01), context=Context())
        with label(any='label'):
            pass
        profile_sampling.start()
        asyncio.run(main())
        profile = profile_sampling.stop()
        self.assertGreater(row_of(profile, 'sleep').awaiting_ns, 9_000_000)

    def test_tasks_of_the_session_before_blame_nobody(self):
        other = asyncio.new_event_loop()
        self.addCleanup(other.close)
        with manual():
            old = [asyncio.Task(nothing(), loop=other) for _ in range(5)]
            for task in old:
                task._log_destroy_pending = False
            del task

        def blamed():
            tick(300, 0)

        def innocent():
            tick(3, 0)

        async def main():
            tasks = [asyncio.create_task(nothing()) for _ in range(5)]
            other._ready.clear()
            old.clear()
            gc.collect()
            blamed()
            await asyncio.gather(*tasks)
            task = asyncio.create_task(nothing())
            innocent()
            await task
        with manual() as session:
            asyncio.run(main())
        delays = {}
        for row in session.profile.loop_holders():
            delays[row.function.qualname.rpartition('.')[2]] = row.delay_ns
        self.assertEqual(delays['blamed'], 5 * 300)
        self.assertEqual(delays['innocent'], 3)

    def test_loop_with_a_clock_of_its_own(self):
        class Loop(asyncio.SelectorEventLoop):
            began = time.monotonic()

            def time(self):
                return time.monotonic() - self.began + 1

        async def main():
            for _ in range(5):
                await asyncio.sleep(0.02)
        profile_sampling.start()
        with asyncio.Runner(loop_factory=Loop) as runner:
            runner.run(main())
        row = row_of(profile_sampling.stop(), 'main')
        self.assertGreater(row.awaiting_ns, 95_000_000)

    def test_leaving_the_wrong_task(self):
        """It raises, and the one that runs goes on."""
        async def other():
            tick(100, 0)

        async def main():
            loop = asyncio.get_running_loop()
            task = loop.create_task(other())
            for wrong in task, None, 'no task':
                with self.assertRaises(RuntimeError):
                    asyncio._leave_task(loop, wrong)
            with self.assertRaises(RuntimeError):
                asyncio._leave_task(object(), asyncio.current_task())
            tick(7, 0)
            await task
        with manual() as session:
            asyncio.run(main())
        self.assertEqual(row_of(session.profile, 'main').running_ns, 7)
        self.assertEqual([row.task_class.rpartition('.')[2]
                          for row in session.profile.samples
                          if row.wall_ns == 7], ['main'])

    def test_task_that_ends_below_another(self):
        async def outer():
            loop = asyncio.get_running_loop()
            below = asyncio.Task(nothing(), loop=other)
            below._log_destroy_pending = False
            asyncio._enter_task(other, below)
            tick(7, 0)
            loop.call_soon(asyncio._leave_task, other, below)

        other = asyncio.new_event_loop()
        self.addCleanup(other.close)
        with manual() as session:
            asyncio.run(outer())
            other._ready.clear()
        row = row_of(session.profile, 'outer')
        self.assertEqual((row.finished, row.awaiting_ns), (1, 7))
