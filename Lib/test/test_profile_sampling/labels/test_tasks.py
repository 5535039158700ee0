"""Labels and names of asyncio tasks, whatever runs them."""

import asyncio
import concurrent.futures
import threading
import time
import unittest
from collections import Counter

from test import support

from profile_sampling import label, labels

from ..support.labelling import LabelTest, labelled, sums
from ..support.manual import manual, tick
from ..support.sessions import _profile, checked
from ..support.subscribers import SubscriberTest, subscribe_manually

try:
    import uvloop
except ImportError:
    uvloop = None


def tearDownModule():
    asyncio.set_event_loop_policy(None)     # as it was


def make_function(name):
    """A function of its own code, that spins for so many seconds."""
    space = {'perf_counter': time.perf_counter}
    exec(f'def {name}(seconds):\n'
         '    end = perf_counter() + seconds\n'
         '    n = 0\n'
         '    while perf_counter() < end:\n'
         '        n += 1\n', space)
    return space[name]


class TasksTest(LabelTest):

    def run_tasks(self, main, *, run=asyncio.run):
        with manual() as session:
            run(main())
        return {key: ns for key, ns in sums(session.profile).items()}

    def test_names(self):
        async def work(ns):
            tick(ns, 0)
            await asyncio.sleep(0)
            tick(ns, 0)
            return id(asyncio.current_task())

        async def main():
            ids.extend(await asyncio.gather(
                asyncio.create_task(work(1), name='one'),
                asyncio.create_task(work(10), name='ten')))
            task = asyncio.current_task()
            for name, ns in ('a', 100), ('b', 1000), (7, 10_000):
                task.set_name(name)
                tick(ns, 0)

        ids = []
        with manual() as session:
            asyncio.run(main())
        self.assertEqual(sums(session.profile), {
            (('task', name),): ns for name, ns in (
                ('one', 2), ('ten', 20), ('a', 100), ('b', 1000),
                ('7', 10_000))})
        self.assertEqual(
            {row.task_id: row.task_name for row in session.profile.samples
             if row.task_name in ('one', 'ten') and row.wall_ns},
            dict(zip(ids, ('one', 'ten'))))

    def test_tasks_without_end(self):
        async def request():
            tick(10, 10)

        async def main():
            for i in range(1000):
                await asyncio.create_task(request())
            await asyncio.create_task(request(), name='the last')

        with manual() as session:
            asyncio.run(main())
        task_class = f'{__name__}.{request.__qualname__}'
        named = Counter()
        for row in session.profile.samples:
            if row.state == 'running' and row.task_class == task_class:
                named[row.task_name] += row.wall_ns
        self.assertEqual(sum(named.values()), 10_010)
        self.assertEqual(named['the last'], 10)
        self.assertLess(len(named), 300, 'the others have a row in common')
        self.assertGreater(named[None], 7000)

    def test_inheritance(self):
        async def child(ns):
            tick(ns, 0)
            label(own=ns).set()
            await asyncio.sleep(0)
            tick(ns, 0)

        async def main():
            asyncio.current_task().set_name('main')
            with label(a=1):
                one = asyncio.create_task(child(1), name='one')
            with label(a=2):
                two = asyncio.create_task(child(10), name='two')
                await asyncio.sleep(0)
                tick(100, 0)
            await one
            await two
            self.assertEqual(labels(), {})

        self.assertEqual(self.run_tasks(main), {
            (('a', '1'), ('task', 'one')): 1,
            (('a', '1'), ('own', '1'), ('task', 'one')): 1,
            (('a', '2'), ('task', 'two')): 10,
            (('a', '2'), ('own', '10'), ('task', 'two')): 10,
            (('a', '2'), ('task', 'main')): 100})

    def test_callbacks_have_the_context_but_no_task(self):
        async def main():
            loop = asyncio.get_running_loop()
            done = loop.create_future()
            asyncio.current_task().set_name('main')

            def callback():
                tick(3, 0)
                done.set_result(None)
            with label(a=1):
                loop.call_soon(callback)
            await done
        self.assertEqual(self.run_tasks(main), {labelled(a='1'): 3})

    def test_eager_tasks(self):
        names = {}

        async def child(ns):
            # create_task() names the task after its first step.
            names[ns] = asyncio.current_task().get_name()
            tick(ns, 0)
            await asyncio.sleep(0)
            tick(ns, 0)

        async def main():
            asyncio.get_running_loop().set_task_factory(
                asyncio.eager_task_factory)
            asyncio.current_task().set_name('main')
            with label(a=1):
                task = asyncio.create_task(child(1), name='child')
                tick(10, 0)
            await task
            tick(100, 0)
            await asyncio.create_task(child(1000), name='other')

        found = self.run_tasks(main)
        self.assertEqual(found, {
            (('a', '1'), ('task', names[1])): 1,
            (('a', '1'), ('task', 'child')): 1,
            (('a', '1'), ('task', 'main')): 10,
            (('task', 'main'),): 100,
            (('task', names[1000]),): 1000,
            (('task', 'other'),): 1000})

    def test_tasks_in_python(self):
        # Tasks that are not of asyncio's class in C have no name to see.
        async def work(ns):
            tick(ns, 0)
            await asyncio.sleep(0)
            tick(ns, 0)
            return id(asyncio.current_task())

        async def main():
            asyncio.get_running_loop().set_task_factory(
                lambda loop, coro, **kwargs: asyncio.tasks._PyTask(
                    coro, loop=loop, **kwargs))
            return await asyncio.gather(*[
                asyncio.create_task(work(ns)) for ns in (1, 10)])

        with manual() as session:
            one, ten = asyncio.run(main())
        found = Counter()
        for row in session.profile.samples:
            self.assertIsNone(row.task_name)
            # Threads that other tests left behind have no task.
            if row.wall_ns and row.task_id is not None:
                found[row.task_id] += row.wall_ns
        self.assertEqual(found, {one: 2, ten: 20})

    def test_executors(self):
        async def main():
            loop = asyncio.get_running_loop()
            asyncio.current_task().set_name('main')
            with label(a=1), concurrent.futures.ThreadPoolExecutor(1) as pool:
                # to_thread() takes the context along, executors do not.
                await loop.run_in_executor(pool, tick, 1, 1)
                await asyncio.to_thread(tick, 10, 10)
                await asyncio.to_thread(
                    lambda: self.assertEqual(labels(), {'a': '1'}))
                await loop.run_in_executor(
                    pool, lambda: self.assertEqual(labels(), {}))
        with manual() as session:
            asyncio.run(main())
        # The loop's thread waits meanwhile, for as long.
        found = Counter()
        for row in session.profile.samples:
            if row.thread.ident != threading.get_ident() and (
                    row.state == 'running'):
                found[row.labels.get('a'), row.task_name] += row.wall_ns
        self.assertEqual(+found, {(None, 'main'): 1, ('1', 'main'): 10})

    def test_no_sample_has_anothers_labels(self):
        """Tasks with labels of their own, each in a function of its own."""
        n_tasks = 8
        functions = [make_function(f'f{i}') for i in range(n_tasks)]
        deadline = time.monotonic() + support.SHORT_TIMEOUT

        async def work(i):
            with label(number=i):
                for _ in range(60):
                    functions[i](0.0005 + 0.0001 * (i % 3))
                    await asyncio.sleep(0)

        async def main():
            await asyncio.gather(*[
                asyncio.create_task(work(i), name=f'task {i}')
                for i in range(n_tasks)])

        # The machine may be busy: until there is enough to judge.
        counts = Counter()
        while min([counts[i] for i in range(n_tasks)]) < 20:
            self.assertLess(time.monotonic(), deadline, counts)
            _profile.start(rate_hz=5000, names=0)
            try:
                asyncio.run(main())
            finally:
                profile = checked(_profile.stop())
            for row in profile.samples:
                inside = [frame.function.qualname for frame in row.stack
                          if frame.function.qualname[:1] == 'f'
                          and frame.function.qualname[1:].isdigit()]
                if not inside:
                    continue
                [name] = inside
                self.assertEqual(row.labels, {'number': name[1:]})
                self.assertEqual(row.task_name, f'task {name[1:]}')
                counts[int(name[1:])] += row.count

    @unittest.skipIf(uvloop is None, 'uvloop is not installed')
    def test_uvloop_ticks(self):
        async def work(ns):
            tick(ns, 0)
            await asyncio.sleep(0)
            tick(ns, 0)

        async def main():
            with label(a=1):
                one = asyncio.create_task(work(1), name='one')
            await one
            await asyncio.create_task(work(10), name='ten')

        self.assertEqual(
            self.run_tasks(main, run=lambda coro: asyncio.run(
                coro, loop_factory=uvloop.new_event_loop)),
            {(('a', '1'), ('task', 'one')): 2, (('task', 'ten'),): 20})


class ScaleTest(SubscriberTest):

    def test_many_tasks(self):
        """100,000 tasks, each with its own time, and none with another's."""
        n_tasks = 100_000
        found = Counter()
        labels_of_task = {}

        def add(batch):
            for row in batch:
                if row.task_name is not None and row.wall_ns:
                    found[row.task_name] += row.wall_ns
                    labels_of_task[row.task_name] = row.labels

        async def work(number):
            with label(kind=number % 3):
                tick(1 + number % 7, 0)

        async def main():
            for start in range(0, n_tasks, 100):
                await asyncio.gather(*[
                    asyncio.create_task(work(number), name=f'{number}')
                    for number in range(start, start + 100)])

        # Room for all, should the thread that delivers be kept from it.
        with subscribe_manually(add, batch_seconds=0.01,
                                max_events=1 << 18):
            asyncio.run(main())
        self.assertEqual(found, {f'{number}': 1 + number % 7
                                 for number in range(n_tasks)})
        self.assertEqual(labels_of_task, {
            f'{number}': {'kind': f'{number % 3}'}
            for number in range(n_tasks)})
