"""Labels: what samples belong to.  Most tests tick the clock themselves."""

import asyncio
import concurrent.futures
import contextlib
import contextvars
import gc
import inspect
import os
import threading
import time
import unittest
import weakref
from collections import Counter

from test import support
from test.support import os_helper

import profile_sampling
from profile_sampling import Profile, _batch, label, labels, sample

from .manual import manual, tick
from .sessions import SessionTest, _profile, checked
from .subscribers import SubscriberTest, spin, subscribe_manually

try:
    import uvloop
except ImportError:
    uvloop = None


def sums(profile):
    """{labels and the task's name: wall_ns} of what weighs anything."""
    result = Counter()
    for row in profile.samples:
        key = tuple(row.labels.items())
        if row.task_name is not None:
            key += ('task', row.task_name),
        result[key] += row.wall_ns
    return {key: ns for key, ns in result.items() if ns}


def labelled(**values):
    return tuple(sorted(values.items()))


class LabelTest(SessionTest):

    def setUp(self):
        super().setUp()
        self.assertEqual(labels(), {})
        self.addCleanup(self.assertEqual, {}, labels())


class BlocksTest(LabelTest):

    def test_ticks(self):
        with manual() as session:
            tick(1, 0)
            with label(route='/a'):
                tick(10, 0)
                with label(user=7, route='/b'):
                    tick(100, 0)
                tick(1000, 0)
            tick(10_000, 0)
        self.assertEqual(sums(session.profile), {
            (): 10_001, labelled(route='/a'): 1010,
            labelled(route='/b', user='7'): 100})

    def test_none_takes_away(self):
        with manual() as session, label(a=1, b=2):
            with label(a=None, c=None):
                self.assertEqual(labels(), {'b': '2'})
                tick(5, 0)
            tick(7, 0)
        self.assertEqual(sums(session.profile),
                         {labelled(b='2'): 5, labelled(a='1', b='2'): 7})

    def test_exceptions(self):
        with label(a=1):
            for _ in range(3):
                with self.assertRaises(KeyError), label(a=2), label(b=3):
                    raise KeyError
                self.assertEqual(labels(), {'a': '1'})

    def test_order_of_keys(self):
        with manual() as session:
            with label(z=1), label(a=2):
                tick(1, 0)
            with label(a=2), label(z=1):
                tick(2, 0)
        self.assertEqual(sums(session.profile), {labelled(a='2', z='1'): 3})

    def test_set(self):
        def run():
            label(a=1).set()
            label(b=2).set()
            with label(a=3):
                self.assertEqual(labels(), {'a': '3', 'b': '2'})
            return labels()
        self.assertEqual(contextvars.copy_context().run(run),
                         {'a': '1', 'b': '2'})

    def test_a_label_again_and_in_itself(self):
        one = label(a=1)
        with one:
            with label(a=2):
                with one:
                    self.assertEqual(labels(), {'a': '1'})
                self.assertEqual(labels(), {'a': '2'})
            self.assertEqual(labels(), {'a': '1'})

    def test_blocks_that_end_in_another_order(self):
        first = contextlib.ExitStack()
        second = contextlib.ExitStack()
        first.enter_context(label(a=1))
        second.enter_context(label(b=2))
        first.close()
        second.close()
        label(a=None, b=None).set()

    def test_reserved_names(self):
        for name in ('state', 'interpreter', 'task name', 'task id',
                     'thread id', 'thread name', 'thread native id',
                     'opcode', 'instruction offset'):
            for function in label, sample:
                with self.assertRaisesRegex(ValueError, repr(name)):
                    function(**{name: 1})

    def test_any_other_name(self):
        names = {'self': 'a', 'labels': 'b', 'weight': 'c', '': 'd',
                 'ключ': 'e', 'two words': 'f'}
        with manual() as session, label(**names):
            tick(3, 0)
        self.assertEqual(sums(session.profile), {labelled(**names): 3})

    def test_texts(self):
        for value, text in ((1, '1'), (True, 'True'), (b'x', "b'x'"),
                            ('', ''), ('\0', '\0'), ('é\U0001f40d',) * 2,
                            ((1, 2), '(1, 2)'), (1.5, '1.5')):
            with self.subTest(value=value), manual() as session:
                with label(key=value):
                    tick(1, 0)
            self.assertEqual(sums(session.profile), {labelled(key=text): 1})

    def test_surrogates(self):
        with manual() as session, label(key='a\udc80'):
            tick(1, 0)
        [(value, _)] = [(dict(key)['key'], ns)
                        for key, ns in sums(session.profile).items()]
        self.assertTrue(value.startswith('a'), value)

    def test_values_become_text_once(self):
        calls = []

        class Value(str):
            def __str__(self):
                calls.append(self)
                return self

        one = label(key=Value('x'))
        self.assertEqual(len(calls), 1)
        function = one(labels)
        for _ in range(5):
            with one:
                self.assertEqual(labels(), {'key': 'x'})
            function()
        self.assertIs(type(function()['key']), str)
        contextvars.copy_context().run(one.set)
        self.assertEqual(len(calls), 1)

    def test_values_that_cannot_be(self):
        class Bad:
            def __str__(self):
                raise OSError('no text')

        for function in label, sample:
            with self.assertRaises(TypeError):
                function(key=[])
            with self.assertRaisesRegex(OSError, 'no text'):
                function(key=Bad())
            with self.assertRaises(TypeError):
                function({'key': 1})

    def test_threads_begin_without(self):
        found = []
        with manual() as session, label(a=1):
            def work():
                found.append(labels())
                tick(5, 0)
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
            tick(1, 0)
        self.assertEqual(found, [{}])
        self.assertEqual(sums(session.profile)[()], 5)

    def test_labels_carried_into_a_thread(self):
        found = []
        with label(a=1, b=None):
            outer = labels()

        def work():
            with label(**outer):
                found.append(labels())
            found.append(labels())
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        self.assertEqual(found, [{'a': '1'}, {}])

    def test_one_label_in_many_threads(self):
        shared = label(a=1)
        barrier = threading.Barrier(4)
        wrong = []

        def work():
            for _ in range(200):
                with shared:
                    barrier.wait()
                    if labels() != {'a': '1'}:
                        wrong.append(labels())
                if labels():
                    wrong.append(labels())
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_they_cost_no_session(self):
        with label(a=1):
            self.assertFalse(profile_sampling.running())

    def test_files(self):
        with manual() as session, label(route='/a', user='é'):
            tick(5, 0)
        path = os_helper.TESTFN + '.pb.gz'
        self.addCleanup(os_helper.unlink, path)
        session.profile.save(path)
        self.assertEqual(sums(Profile.load(path)), sums(session.profile))


class DecoratorTest(LabelTest):

    def test_function(self):
        @label(a=1)
        def work(x, *, y):
            """Doc."""
            tick(5, 0)
            return x, y, labels()

        with manual() as session:
            self.assertEqual(work(1, y=2), (1, 2, {'a': '1'}))
        self.assertEqual(sums(session.profile), {labelled(a='1'): 5})
        self.assertEqual((work.__name__, work.__doc__), ('work', 'Doc.'))

    def test_exception(self):
        @label(a=1)
        def work():
            1 / 0

        with label(b=2):
            with self.assertRaises(ZeroDivisionError):
                work()
            self.assertEqual(labels(), {'b': '2'})

    def test_recursion(self):
        @label(a=1)
        def work(n):
            return [labels()] + (work(n - 1) if n else [])
        self.assertEqual(work(2), [{'a': '1'}] * 3)

    def test_method(self):
        class Class:
            @label(a=1)
            def method(self):
                return self, labels()
        thing = Class()
        self.assertEqual(thing.method(), (thing, {'a': '1'}))

    def test_what_cannot_be_decorated(self):
        for thing in DecoratorTest, 5, classmethod(len):
            with self.assertRaisesRegex(TypeError, 'decorates functions'):
                label(a=1)(thing)

    def test_kinds_are_kept(self):
        async def coroutine():
            pass

        def generator():
            yield

        async def async_generator():
            yield

        for function, is_kind in (
                (coroutine, inspect.iscoroutinefunction),
                (generator, inspect.isgeneratorfunction),
                (async_generator, inspect.isasyncgenfunction)):
            self.assertTrue(is_kind(label(a=1)(function)))

    def test_coroutine(self):
        @label(a=1)
        async def work(n):
            tick(10, 0)
            await asyncio.sleep(0)
            tick(1, 0)
            return labels()

        async def main():
            result = await asyncio.gather(work(1), work(2))
            self.assertEqual(labels(), {})
            return result

        with manual() as session:
            self.assertEqual(asyncio.run(main()), [{'a': '1'}] * 2)
        self.assertEqual(
            sum([ns for key, ns in sums(session.profile).items()
                 if ('a', '1') in key]), 22)

    def test_generator(self):
        @label(a=1)
        def numbers(n):
            tick(1, 0)
            got = yield labels()
            tick(1, 0)
            try:
                yield got
            except KeyError as exc:
                tick(1, 0)
                yield exc
            return n

        with manual() as session:
            generator = numbers(5)
            self.assertEqual(next(generator), {'a': '1'})
            tick(10, 0)
            with label(b=2):
                self.assertEqual(generator.send('sent'), 'sent')
                tick(100, 0)
            error = KeyError()
            self.assertIs(generator.throw(error), error)
            self.assertEqual(labels(), {})
            with self.assertRaises(StopIteration) as caught:
                next(generator)
            self.assertEqual(caught.exception.value, 5)
        self.assertEqual(sums(session.profile), {
            labelled(a='1'): 2, labelled(a='1', b='2'): 1, (): 10,
            labelled(b='2'): 100})

    def test_generator_that_is_closed(self):
        found = []

        @label(a=1)
        def numbers():
            try:
                yield 1
            finally:
                found.append(labels())

        generator = numbers()
        next(generator)
        self.assertIsNone(generator.close())
        generator = numbers()
        next(generator)
        del generator
        support.gc_collect()
        self.assertEqual(found, [{'a': '1'}] * 2)
        # Never begun: nothing of it runs.
        numbers().close()
        self.assertEqual(len(found), 2)

    def test_generator_that_answers_to_close(self):
        @label(a=1)
        def returns():
            try:
                yield
            except GeneratorExit:
                return 7

        @label(a=1)
        def refuses():
            try:
                yield
            except GeneratorExit:
                yield

        generator = returns()
        next(generator)
        self.assertEqual(generator.close(), 7)
        generator = refuses()
        next(generator)
        with self.assertRaisesRegex(RuntimeError, 'ignored GeneratorExit'):
            generator.close()

    def test_generator_that_fails(self):
        @label(a=1)
        def fails():
            yield 1
            raise KeyError

        @label(a=1)
        def stops():
            yield 1
            raise StopIteration

        for function, error in (fails, KeyError), (stops, RuntimeError):
            generator = function()
            next(generator)
            with self.assertRaises(error):
                next(generator)
            self.assertEqual(labels(), {})

    def test_generator_keeps_nothing_alive(self):
        class Thing:
            pass

        @label(a=1)
        def things():
            try:
                yield Thing()
            except ValueError:
                pass
            yield

        generator = things()
        thing = weakref.ref(next(generator))
        self.assertIsNone(thing())
        with support.disable_gc():
            error = ValueError()
            error.thing = Thing()
            thing = weakref.ref(error.thing)
            generator.throw(error)
            del error
            self.assertIsNone(thing())

    def test_generators_in_turn(self):
        @label(g=1)
        def first():
            for _ in range(3):
                tick(1, 0)
                yield

        @label(g=2)
        def second():
            for _ in range(3):
                tick(10, 0)
                yield

        with manual() as session:
            for _ in zip(first(), second()):
                tick(100, 0)
        self.assertEqual(sums(session.profile), {
            labelled(g='1'): 3, labelled(g='2'): 30, (): 300})

    def test_generators_in_one_another(self):
        @label(inner=1)
        def inner():
            tick(1, 0)
            yield
            tick(1, 0)

        @label(outer=1)
        def outer():
            tick(10, 0)
            yield from inner()
            tick(10, 0)

        with manual() as session:
            for _ in outer():
                tick(100, 0)
        self.assertEqual(sums(session.profile), {
            labelled(outer='1'): 20, labelled(inner='1', outer='1'): 2,
            (): 100})

    def test_async_generator(self):
        found = []

        @label(a=1)
        async def numbers():
            try:
                got = yield 1
                tick(1, 0)
                await asyncio.sleep(0)
                tick(1, 0)
                try:
                    yield got
                except KeyError:
                    yield 'caught'
                await asyncio.sleep(30)
            finally:
                found.append(labels())

        async def main():
            generator = numbers()
            self.assertEqual(await anext(generator), 1)
            tick(10, 0)
            self.assertEqual(labels(), {})
            self.assertEqual(await generator.asend('sent'), 'sent')
            self.assertEqual(await generator.athrow(KeyError()), 'caught')
            self.assertEqual(labels(), {})
            with self.assertRaises(TimeoutError):
                async with asyncio.timeout(0.001):
                    await anext(generator)
            self.assertEqual(labels(), {})
            generator = numbers()
            async for _ in generator:
                break
            await generator.aclose()
            self.assertEqual([n async for n in short()], [1, 2])
            # Left alone: the loop closes it.
            self.assertEqual(await anext(numbers()), 1)

        @label(a=1)
        async def short():
            yield 1
            yield 2

        with manual() as session:
            asyncio.run(main())
        self.assertEqual(found, [{'a': '1'}] * 3)
        found = Counter()
        for key, ns in sums(session.profile).items():
            found[('a', '1') in key] += ns
        self.assertEqual(found, {True: 2, False: 10})


class SampleTest(LabelTest):

    def rows(self, profile):
        return {(tuple(row.labels.items()), row.state): (
            row.count, row.cpu_ns, row.wall_ns) for row in profile.samples}

    def test_without_a_session(self):
        self.assertIs(sample(5, a=1), False)

    def test_weights(self):
        def event():
            for _ in range(3):
                self.assertIs(sample(7, kind='x'), True)
            sample()

        with manual() as session:
            with label(a=1):
                event()
                tick(5, 0)
            sample(0)
            sample(2**40, a=2)
        self.assertEqual(self.rows(session.profile), {
            (labelled(a='1', kind='x'), 'custom'): (21, 0, 0),
            (labelled(a='1'), 'custom'): (1, 0, 0),
            (labelled(a='1'), 'running'): (1, 0, 5),
            (labelled(a='2'), 'custom'): (2**40, 0, 0)})
        on_stack = [row for row in session.profile.samples
                    if row.labels.get('kind') == 'x']
        self.assertIn('event', ' '.join([
            frame.function.qualname for frame in on_stack[0].stack]))

    def test_labels_of_it_hide_those_of_the_block(self):
        with manual() as session:
            with label(a=1, z=1):
                sample(1, a=2, b=3)
            with label(a=2, b=3, z=1):
                sample(1)
        found = Counter()
        for row in session.profile.samples:
            found[tuple(row.labels.items())] += row.count
        self.assertEqual(found, {labelled(a='2', b='3', z='1'): 2})
        # One sample of a file, whatever way the labels came together.
        checked(session.profile)

    def test_weights_that_cannot_be(self):
        for weight, error in ((-1, ValueError), (2**64, OverflowError),
                              ('1', TypeError), (1.5, TypeError),
                              (None, TypeError)):
            with self.subTest(weight=weight):
                with self.assertRaises(error):
                    sample(weight)

    def test_subscribers_get_them(self):
        found = []
        with subscribe_manually(lambda batch: found.extend(
                [(row.state, row.count, row.labels) for row in batch
                 if row.state == 'custom'])):
            sample(3, a=1)
        self.assertEqual(found, [('custom', 3, {'a': '1'})])


class RowsTest(LabelTest):

    def test_values(self):
        with manual() as session:
            with label(route='/a'):
                tick(6, 0)
            with label(route='/b', user=1):
                tick(3, 0)
                sample(5)
            tick(1, 0)
        rows = session.profile.label_values('route')
        self.assertEqual([(row.value, row.wall_ns) for row in rows],
                         [('/a', 6), ('/b', 3), (None, 1)])
        self.assertEqual(rows[1].count, 6)
        self.assertEqual([row.ns('wall') for row in rows], [6, 3, 1])
        for key in 'nothing', 'task name':
            [row] = session.profile.label_values(key)
            self.assertEqual((row.value, row.wall_ns, row.count),
                             (None, 10, 8))

    def test_by_the_modes_clock(self):
        with manual(mode='cpu') as session:
            with label(a='waits'):
                tick(9, 1)
            with label(a='works'):
                tick(3, 3)
        self.assertEqual(
            [(row.value, row.ns('cpu'))
             for row in session.profile.label_values('a')],
            [('works', 3), ('waits', 1)])

    def test_tasks(self):
        async def work(ns):
            tick(ns, 0)

        async def main():
            await asyncio.create_task(work(6), name='six')
            await asyncio.create_task(work(8), name='eight')

        with manual() as session:
            asyncio.run(main())
        self.assertEqual(
            [(row.value, row.wall_ns) for row
             in session.profile.label_values('task name') if row.wall_ns],
            [('eight', 8), ('six', 6)])

    def test_no_samples(self):
        with manual() as session:
            pass
        self.assertEqual(sum([row.wall_ns for row in
                              session.profile.label_values('a')]), 0)


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

        async def main():
            await asyncio.gather(
                asyncio.create_task(work(1), name='one'),
                asyncio.create_task(work(10), name='ten'))
            asyncio.current_task().set_name('main')
            tick(100, 0)

        self.assertEqual(self.run_tasks(main), {
            (('task', 'one'),): 2, (('task', 'ten'),): 20,
            (('task', 'main'),): 100})

    def test_ids(self):
        async def main():
            tick(5, 0)
            return id(asyncio.current_task())
        with manual() as session:
            task_id = asyncio.run(main())
        [row] = [row for row in session.profile.samples if row.wall_ns == 5]
        self.assertEqual(row.task_id, task_id)

    def test_set_name(self):
        async def main():
            task = asyncio.current_task()
            for name, ns in ('a', 1), ('b', 10), (7, 100):
                task.set_name(name)
                tick(ns, 0)
        self.assertEqual(self.run_tasks(main), {
            (('task', 'a'),): 1, (('task', 'b'),): 10, (('task', '7'),): 100})

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

    def test_one_label_in_many_tasks(self):
        shared = label(a=1)

        async def work(n):
            for step in range(5):
                with shared:
                    await asyncio.sleep(0.0001 * ((n * 7 + step) % 5))
                    self.assertEqual(labels(), {'a': '1'})
                self.assertEqual(labels(), {})

        async def main():
            await asyncio.gather(*[work(n) for n in range(20)])
        asyncio.run(main())

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
            if row.wall_ns:
                found[row.task_id] += row.wall_ns
        self.assertEqual(found, {one: 2, ten: 20})

    def test_executors(self):
        async def main():
            loop = asyncio.get_running_loop()
            asyncio.current_task().set_name('main')
            with label(a=1), concurrent.futures.ThreadPoolExecutor(1) as pool:
                # to_thread() takes the context along, executors do not.
                await loop.run_in_executor(pool, tick, 1, 0)
                await asyncio.to_thread(tick, 10, 0)
                await asyncio.to_thread(
                    lambda: self.assertEqual(labels(), {'a': '1'}))
                await loop.run_in_executor(
                    pool, lambda: self.assertEqual(labels(), {}))
        with manual() as session:
            asyncio.run(main())
        # The loop's thread is blocked meanwhile, for as long.
        found = Counter()
        for row in session.profile.samples:
            if row.thread.ident != threading.get_ident() and (
                    row.state == 'running'):
                found[tuple(row.labels.items()), row.task_name] += (
                    row.wall_ns)
        self.assertEqual(+found, {((), None): 1,
                                  (labelled(a='1'), None): 10})

    def interleave(self, run, samples_per_task=20):
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
        while min([counts[i] for i in range(n_tasks)]) < samples_per_task:
            self.assertLess(time.monotonic(), deadline, counts)
            _profile.start(rate_hz=5000, names=0)
            try:
                run(main())
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

    def test_no_sample_has_anothers_labels(self):
        self.interleave(asyncio.run)

    @unittest.skipIf(uvloop is None, 'uvloop is not installed')
    def test_uvloop(self):
        self.interleave(lambda coro: asyncio.run(
            coro, loop_factory=uvloop.new_event_loop))

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


class TruthTest(LabelTest):

    def test_shares(self):
        """Work of 3 to 1 by CPU time; a share is right to 2 points."""
        def burn(seconds):
            end = time.thread_time() + seconds
            while time.thread_time() < end:
                pass

        _profile.start(mode='cpu', rate_hz=2000, names=0)
        try:
            for _ in range(100):
                with label(part='three'):
                    burn(0.009)
                with label(part='one'):
                    burn(0.003)
        finally:
            profile = checked(_profile.stop())
        times = {row.value: row.cpu_ns
                 for row in profile.label_values('part')}
        share = times['three'] / (times['three'] + times['one'])
        self.assertAlmostEqual(share, 0.75, delta=0.02)


def resident_bytes():
    with open('/proc/self/statm') as file:
        return int(file.read().split()[1]) * os.sysconf('SC_PAGE_SIZE')


class ScaleTest(SubscriberTest):

    @unittest.skipUnless(os.path.exists('/proc/self/statm'), 'needs /proc')
    def test_a_million_changes(self):
        """Values that never come again: the tables and memory stay small.

        A clock that ticks at each 100th puts 10,000 sets into the tables.
        """
        def change(numbers):
            for number in numbers:
                with label(number=number):
                    if not number % 100:
                        tick(1, 0)

        with manual() as session:
            change(range(100_000))
            gc.collect()
            before = resident_bytes()
            change(range(100_000, 1_000_000))
            gc.collect()
            grown = resident_bytes() - before
            stats = _profile.stats()
        # What is sampled is kept: 9000 sets, of some hundred bytes each.
        self.assertLess(grown, 16 << 20)
        self.assertLess(stats['memory_bytes'], 16 << 20)
        self.assertEqual(stats['lost_labels'], 0)
        rows = session.profile.label_values('number')
        self.assertEqual(len([row for row in rows if row.value]), 10_000)

    def test_too_many_label_sets(self):
        """What there is no room for says so, and no time is lost."""
        names = [f'{number}' for number in range(270_000)]
        _profile.start(manual=True, names=0)
        for name in names:
            with label(number=name):
                tick(1, 0)
        # Not checked(): that takes most of a minute.
        profile = profile_sampling.stop()
        self.assertEqual(profile.total_wall_ns, len(names))
        lost = {row.value: row.wall_ns for row
                in profile.label_values('labels')}['[lost]']
        self.assertGreater(lost, 0)
        self.assertLess(lost, 10_000)
        self.assertEqual(profile.stats['lost_labels'], lost)
        self.assertEqual(
            {row.value: row.wall_ns for row in profile.label_values('number')
             if row.value is not None},
            dict.fromkeys(names[:len(names) - lost], 1))

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

        with subscribe_manually(add, batch_seconds=0.01):
            asyncio.run(main())
        self.assertEqual(found, {f'{number}': 1 + number % 7
                                 for number in range(n_tasks)})
        self.assertEqual(labels_of_task, {
            f'{number}': {'kind': f'{number % 3}'}
            for number in range(n_tasks)})


if __name__ == '__main__':
    unittest.main()
