"""Labels and names of tasks whose step runs a loop of its own."""

import asyncio
import gc
import sys
import threading
import weakref

from ..support.labelling import LabelTest, sums
from ..support.manual import manual, tick


def tearDownModule():
    asyncio.set_event_loop_policy(None)     # as it was


async def step(ns, error=None):
    """A task of one step that spends so much."""
    tick(ns, 0)
    if error is not None:
        raise error


def run_inside(coro):
    """Run a loop of its own in the midst of a task's step."""
    outer = asyncio.get_running_loop()
    asyncio._set_running_loop(None)
    try:
        return asyncio.run(coro)
    finally:
        asyncio._set_running_loop(outer)


def run_same_loop(coro):
    """The same with the loop that runs already, as nest_asyncio does it."""
    loop = asyncio.get_running_loop()
    current = asyncio.tasks._current_tasks.pop(loop)
    try:
        task = loop.create_task(coro)
        while not task.done():
            loop._run_once()
    finally:
        asyncio.tasks._current_tasks[loop] = current
    return task.result()


class InnerLoopTest(LabelTest):
    """Who runs a loop inside a task has its own name before and after."""

    def sums_of(self, main, *args):
        async def named():
            asyncio.current_task().set_name('main')
            await main(*args)
        with manual() as session:
            asyncio.run(named())
        with manual() as after:
            self.assertIsNone(self.task_id_now(after))
        return {dict(key).get('task'): ns
                for key, ns in sums(session.profile).items()}

    def task_id_now(self, session):
        session.snapshot(clear=True)
        tick(1, 0)
        [task_id] = [row.task_id for row in session.snapshot().samples
                     if row.wall_ns]
        return task_id

    async def around(self, run):
        async def inner():
            asyncio.current_task().set_name('inner')
            tick(10, 0)
            await asyncio.sleep(0)
            tick(10, 0)
        tick(1, 0)
        run(inner())
        tick(100, 0)
        await asyncio.sleep(0)
        tick(1000, 0)

    def test_inner_loop(self):
        for run in run_inside, run_same_loop:
            with self.subTest(run=run.__name__):
                self.assertEqual(self.sums_of(self.around, run),
                                 {'main': 1101, 'inner': 20})

    def test_what_no_inner_task_does(self):
        async def inner():
            asyncio.current_task().set_name('inner')
            done = asyncio.get_running_loop().create_future()

            def callback():
                tick(1, 0)
                done.set_result(None)
            asyncio.get_running_loop().call_soon(callback)
            await done
            tick(10, 0)

        async def main():
            run_inside(inner())
        self.assertEqual(self.sums_of(main), {'main': 1, 'inner': 10})

    def test_exceptions(self):
        async def main():
            for run, error in (
                    (run_inside, ZeroDivisionError),
                    (run_same_loop, ZeroDivisionError),
                    (run_inside, asyncio.CancelledError),
                    (run_same_loop, asyncio.CancelledError),
                    (run_inside, KeyboardInterrupt)):
                with self.assertRaises(error):
                    run(step(10, error))
                tick(1, 0)
        found = self.sums_of(main)
        self.assertEqual(found.pop('main'), 5)
        self.assertEqual(sum(found.values()), 50)

    def test_loop_in_a_loop_in_a_loop(self):
        async def work(depth):
            asyncio.current_task().set_name(f'{depth}')
            tick(1, 0)
            if depth:
                run_inside(work(depth - 1))
            tick(10, 0)
        self.assertEqual(self.sums_of(work, 4),
                         {f'{depth}': 11 for depth in range(5)})

    def test_eager_tasks(self):
        def eager(coro, name):
            return asyncio.eager_task_factory(
                asyncio.get_running_loop(), coro, name=name)

        async def inner():
            loop = asyncio.get_running_loop()
            asyncio.current_task().set_name('inner')
            # Of the task, and of a callback, which is no task.
            await eager(step(10), 'by a task')
            tick(100, 0)
            done = loop.create_future()
            loop.call_soon(lambda: done.set_result(
                eager(step(1000), 'by no task')))
            await (await done)
            tick(100, 0)

        async def main():
            run_inside(inner())
            tick(1, 0)
        self.assertEqual(self.sums_of(main), {
            'main': 1, 'inner': 200, 'by a task': 10, 'by no task': 1000})

    def test_eager_tasks_with_loops(self):
        async def eager():
            tick(10, 0)
            run_inside(step(0))
            tick(10, 0)

        async def main():
            for _ in range(2):
                asyncio.eager_task_factory(
                    asyncio.get_running_loop(), eager(), name='eager')
                tick(1, 0)
        self.assertEqual(self.sums_of(main), {'main': 2, 'eager': 40})

    def test_eager_task_of_the_outer_loop(self):
        async def inner(loop):
            asyncio.current_task().set_name('inner')
            asyncio.eager_task_factory(loop, step(10), name='eager')
            tick(100, 0)

        async def main():
            run_inside(inner(asyncio.get_running_loop()))
            tick(1, 0)
        self.assertEqual(self.sums_of(main),
                         {'main': 1, 'inner': 100, 'eager': 10})

    def test_inner_tasks_in_python(self):
        async def main():
            run_same_loop(python())
            tick(100, 0)

        async def python():
            await asyncio.tasks._PyTask(
                step(10), loop=asyncio.get_running_loop())
            tick(1, 0)
        found = self.sums_of(main)
        self.assertEqual((found.pop('main'), found.pop(None)), (100, 10))
        self.assertEqual(list(found.values()), [1])

    def test_session_that_starts_inside(self):
        async def inner():
            self.enterContext(session)
            asyncio.current_task().set_name('inner')
            tick(1, 0)

        async def main():
            asyncio.current_task().set_name('main')
            run_inside(inner())
            tick(10, 0)
        session = manual()
        asyncio.run(main())
        self.doCleanups()
        self.assertEqual(sums(session.profile), {
            (('task', 'inner'),): 1, (): 10})

    def test_nothing_is_entered_while_nobody_profiles(self):
        async def main():
            task = asyncio.current_task()
            before = sys.getrefcount(task)
            with manual():
                inside = sys.getrefcount(task)
            return before, inside

        # The first step is entered before the session, by nobody's order.
        before, inside = asyncio.run(main())
        self.assertEqual(inside, before + 1)

    def test_left_in_another_order(self):
        # As if greenlets ran them: none is better than the wrong one.
        loops, tasks = ['a', 'b'], ['of a', 'of b']
        session = self.enterContext(manual())
        for loop, task in zip(loops, tasks):
            asyncio.tasks._enter_task(loop, task)
        self.assertEqual(self.task_id_now(session), id(tasks[1]))
        asyncio.tasks._leave_task(loops[0], tasks[0])
        self.assertIsNone(self.task_id_now(session))
        asyncio.tasks._leave_task(loops[1], tasks[1])
        self.assertIsNone(self.task_id_now(session))

    def test_threads_that_end_inside(self):
        class Task:
            pass
        tasks = [Task(), Task()]
        alive = [weakref.ref(task) for task in tasks]

        def work():
            for number, task in enumerate(tasks):
                asyncio.tasks._enter_task(number, task)
            # The tables of asyncio forget, as no loop would.
            asyncio.tasks._current_tasks.clear()
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        tasks.clear()
        gc.collect()
        self.assertEqual([task() for task in alive], [None, None])

    def test_nothing_is_kept(self):
        alive = []

        async def inner():
            alive.append(weakref.ref(asyncio.current_task()))

        async def main():
            alive.append(weakref.ref(asyncio.current_task()))
            for _ in range(3):
                run_inside(inner())
            gc.collect()
            self.assertEqual(
                [task() is not None for task in alive],
                [True, False, False, False])
        asyncio.run(main())
        gc.collect()
        self.assertIsNone(alive[0]())
