"""label() as a decorator of functions of every kind."""

import asyncio
import weakref
from collections import Counter

from test import support

from profile_sampling import label, labels

from ..support.labelling import LabelTest, labelled, sums
from ..support.manual import manual, tick


def tearDownModule():
    asyncio.set_event_loop_policy(None)     # as it was


class DecoratorTest(LabelTest):

    def test_function(self):
        class Class:
            @label(a=1)
            def work(self, x, *, y):
                """Doc."""
                tick(5, 0)
                self.found = labels()
                return self.work(x, y=y - 1) if y > 1 else x / y

        thing = Class()
        with manual() as session:
            self.assertEqual(thing.work(1, y=2), 1)
            with label(b=2), self.assertRaises(ZeroDivisionError):
                thing.work(1, y=0)
            self.assertEqual(labels(), {})
        self.assertEqual(thing.found, {'a': '1', 'b': '2'})
        self.assertEqual(sums(session.profile), {
            labelled(a='1'): 10, labelled(a='1', b='2'): 5})
        self.assertEqual((Class.work.__name__, Class.work.__doc__),
                         ('work', 'Doc.'))
        for thing in DecoratorTest, 5, classmethod(len):
            with self.assertRaisesRegex(TypeError, 'decorates functions'):
                label(a=1)(thing)

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
        def generator(again):
            try:
                yield
            except GeneratorExit:
                if again:
                    yield
                return 7

        for again in False, True:
            one = generator(again)
            next(one)
            if not again:
                self.assertEqual(one.close(), 7)
                continue
            with self.assertRaisesRegex(RuntimeError, 'ignored Generator'):
                one.close()

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

    def test_generators_in_turn_and_in_one_another(self):
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
            yield

        @label(other=1)
        def other():
            for _ in range(2):
                tick(1000, 0)
                yield

        with manual() as session:
            for _ in zip(outer(), other()):
                tick(100, 0)
        self.assertEqual(sums(session.profile), {
            labelled(outer='1'): 20, labelled(inner='1', outer='1'): 2,
            labelled(other='1'): 2000, (): 200})

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
