"""Deferred sessions, and profile() with labels."""

import asyncio
import contextlib
import threading
import time
import unittest

from test.support import threading_helper

import profile_sampling
from profile_sampling import label, labels, profile

from ..support import manual
from ..support.labelling import labelled, sums
from ..support.sessions import SessionTest, _profile, checked
from ..support.work import spin
from .fake_core import ApiTest


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


class BlocksTest(DeferredTest):

    def test_only_inside(self):
        tick(1, 0)
        with profile():
            tick(10, 0)
        tick(100, 0)
        with profile(route='/a') as block:
            tick(1000, 0)
        tick(10_000, 0)
        self.assertIsNone(block.profile)
        self.assertEqual(sums(self.stop()),
                         {(): 10, labelled(route='/a'): 1000})
        self.assertEqual(labels(), {})

    def test_nested(self):
        with profile(a=1), profile(b=2):
            tick(1, 0)
            with profile(a=None):
                tick(10, 0)
            tick(100, 0)
        tick(1000, 0)
        self.assertEqual(sums(self.stop()), {
            labelled(a='1', b='2'): 101, labelled(b='2'): 10})

    def test_the_same_block_in_itself(self):
        block = profile(a=1)
        with block:
            with block:
                tick(1, 0)
            tick(10, 0)
        tick(100, 0)
        self.assertEqual(sums(self.stop()), {labelled(a='1'): 11})

    def test_exceptions(self):
        for _ in range(3):
            with self.assertRaises(KeyError), profile(a=1):
                tick(1, 0)
                raise KeyError
            tick(10, 0)
        self.assertEqual(labels(), {})
        self.assertEqual(sums(self.stop()), {labelled(a='1'): 3})

    def test_nobody_inside(self):
        tick(5, 0)
        result = self.stop()
        self.assertEqual((result.total_count, result.total_wall_ns), (0, 0))

    def test_running(self):
        self.assertTrue(profile_sampling.running())
        with profile():
            self.assertTrue(profile_sampling.running())
        self.assertTrue(profile_sampling.running())
        self.stop()
        self.assertFalse(profile_sampling.running())

    def test_a_second_session(self):
        with self.assertRaises(RuntimeError):
            profile_sampling.start()
        with self.assertRaises(RuntimeError):
            profile_sampling.start(defer=True)

    def test_snapshot(self):
        with profile(a=1):
            tick(1, 0)
            found = checked(profile_sampling.snapshot(clear=True))
            self.assertEqual(sums(found), {labelled(a='1'): 1})
            tick(10, 0)
        tick(100, 0)
        self.assertEqual(sums(checked(profile_sampling.snapshot())),
                         {labelled(a='1'): 10})
        self.assertEqual(sums(self.stop()), {labelled(a='1'): 10})

    def test_options_are_refused(self):
        for options in ({'mode': 'wall'}, {'rate_hz': 1000},
                        {'depth_frames': 9}, {'names': 'off'},
                        {'out': 'p.pb.gz'}, {'signal': None}):
            [name] = options
            block = profile(**options, route='/a')
            with self.assertRaisesRegex(RuntimeError,
                                        f'labels only, not {name};'):
                with block:
                    self.fail('it was entered')
            with self.assertRaisesRegex(RuntimeError, name):
                block(labels)()
            self.assertEqual(labels(), {})
        tick(5, 0)
        self.assertEqual(self.stop().total_wall_ns, 0)

    def test_other_threads_are_sampled_too(self):
        found = []

        def work():
            with label(thread='other'):
                tick(10, 0)
        with profile(thread='main'):
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
        result = self.stop()
        found = {row.value: row.wall_ns
                 for row in result.label_values('thread')}
        self.assertEqual(found['other'], 10)

    def test_inside_of_two_threads(self):
        first_in = threading.Event()
        second_in = threading.Event()

        def first():
            with profile(who='first'):
                first_in.set()
                second_in.wait()

        thread = threading.Thread(target=first)
        thread.start()
        first_in.wait()
        with profile(who='second'):
            second_in.set()
            thread.join()
            tick(10, 0)
        tick(100, 0)
        found = {row.value: row.wall_ns
                 for row in self.stop().label_values('who')}
        self.assertEqual(found['second'], 10)

    def test_one_block_in_many_threads(self):
        shared = profile(a=1)
        wrong = []

        def work():
            for _ in range(300):
                with shared:
                    if labels() != {'a': '1'}:
                        wrong.append(labels())
        threads = [threading.Thread(target=work) for _ in range(4)]
        with threading_helper.start_threads(threads):
            pass
        self.assertEqual(wrong, [])
        tick(7, 0)
        self.assertNotIn(7, [row.wall_ns for row in self.stop().samples])

    def test_tasks(self):
        shared = profile(kind='task')

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
            (('kind', 'task'), ('task', '10')): 20,
            (('kind', 'task'), ('task', '100')): 200})

    def test_stopped_inside(self):
        with profile(a=1):
            tick(1, 0)
            self.assertEqual(sums(self.stop()), {labelled(a='1'): 1})
        self.assertEqual(labels(), {})
        self.assertFalse(profile_sampling.running())

    def test_a_block_ends_with_its_session(self):
        self.stop()
        profile_sampling.start(defer=True)
        with profile():
            profile_sampling.stop()
            profile_sampling.start(defer=True)
            later = profile()
            later.__enter__()
        # The old block has left; the new one is still inside.
        spin(0.02)
        later.__exit__(None, None, None)
        self.assertGreater(self.stop().total_wall_ns, 10_000_000)

    def test_custom_samples(self):
        profile_sampling.sample(1, where='outside')
        with profile():
            profile_sampling.sample(2, where='inside')
        found = {row.value: row.count
                 for row in self.stop().label_values('where')}
        self.assertEqual(found.get('inside'), 2)
        self.assertNotIn('outside', found)


class DecoratorTest(DeferredTest):

    def test_function(self):
        @profile(a=1)
        def work(ns):
            tick(ns, 0)
            return work(ns // 10) if ns > 10 else labels()

        tick(5, 0)
        self.assertEqual(work(1000), {'a': '1'})
        tick(5, 0)
        self.assertIsNone(work.profile)
        self.assertEqual(sums(self.stop()), {labelled(a='1'): 1110})

    def test_exception(self):
        @profile(a=1)
        def work():
            tick(1, 0)
            raise KeyError

        for _ in range(2):
            with self.assertRaises(KeyError):
                work()
            tick(10, 0)
        self.assertEqual(sums(self.stop()), {labelled(a='1'): 2})

    def test_coroutines_at_once(self):
        @profile(a=1)
        async def work(ns):
            for _ in range(3):
                tick(ns, 0)
                await asyncio.sleep(0)

        async def main():
            await asyncio.gather(work(1), work(10))
            tick(1000, 0)

        asyncio.run(main())
        found = sums(self.stop())
        self.assertEqual({dict(key).get('a') for key in found}, {'1'})
        self.assertEqual(sum(found.values()), 33)

    def test_generator(self):
        @profile(a=1)
        def numbers():
            tick(1, 0)
            yield labels()
            tick(1, 0)

        generator = numbers()
        tick(10, 0)
        self.assertEqual(next(generator), {'a': '1'})
        self.assertEqual(labels(), {})
        # The session samples until the generator ends; without its labels.
        tick(100, 0)
        self.assertEqual(list(generator), [])
        tick(1000, 0)
        self.assertEqual(sums(self.stop()), {labelled(a='1'): 2, (): 100})


class OwnSessionTest(SessionTest):
    """profile() with labels, and no deferred session."""

    def test_labels_hold(self):
        with profile(names='off', route='/a', user=7) as session:
            spin(0.03)
        self.assertEqual(labels(), {})
        found = sums(checked(session.profile))
        self.assertGreater(found[labelled(route='/a', user='7')],
                           0.9 * sum(found.values()))

    def test_a_session_that_is_not_deferred(self):
        profile_sampling.start()
        with self.assertRaisesRegex(RuntimeError, 'running already'):
            with profile(a=1):
                self.fail('a second session ran')
        self.assertEqual(labels(), {})
        profile_sampling.stop()

    def test_decorator(self):
        @profile(a=1)
        def work(n):
            return [labels()] + (work(n - 1) if n else [])

        self.assertEqual(work(1), [{'a': '1'}] * 2)
        self.assertIsNotNone(work.profile)
        self.assertEqual(labels(), {})

    def test_only_the_time_inside(self):
        """Real time: what is measured is what the blocks took."""
        profile_sampling.start(defer=True, names='off')
        inside_ns = 0
        try:
            for _ in range(5):
                spin(0.02)
                with profile():
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


class ArgumentsTest(ApiTest):

    def test_defer_reaches_the_core(self):
        profile_sampling.start(defer=True)
        self.assertIs(self.core.session['defer'], True)
        profile_sampling.stop()
        profile_sampling.start(defer=False)
        self.assertNotIn('defer', self.core.session)

    def test_options_misspelt(self):
        for name, meant in (
                ('rate', 'rate_hz'), ('hz', 'rate_hz'), ('Rate_Hz', 'rate_hz'),
                ('ratehz', 'rate_hz'), ('rate_hx', 'rate_hz'),
                ('rtae_hz', 'rate_hz'), ('frequency', 'rate_hz'),
                ('interval', 'rate_hz'), ('depth', 'depth_frames'),
                ('depth_frame', 'depth_frames'),
                ('depht_frames', 'depth_frames'),
                ('output', 'out'), ('OUT', 'out'), ('file', 'out'),
                ('format', 'out'), ('Mode', 'mode'), ('clock', 'mode'),
                ('signals', 'signal'), ('signla', 'signal'),
                ('opcodes', 'names'), ('Names', 'names'),
                ('defer', 'defer=True'), ('labels', 'labels')):
            with self.subTest(name=name):
                with self.assertRaisesRegex(
                        TypeError, f"option '{name}'; did you mean "
                                   f'.*{meant}'):
                    profile(**{name: 1})

    def test_labels_near_options(self):
        names = ('node', 'name', 'route', 'path', 'user', 'model', 'signed',
                 'games', 'outer', 'router', 'weight', 'self', '')
        profile(**dict.fromkeys(names, 1))

    def test_labels_that_cannot_be(self):
        with self.assertRaisesRegex(ValueError, 'state'):
            profile(state='x')
        with self.assertRaises(TypeError):
            profile(route=[])
        self.assertEqual(self.core.calls, [])


if __name__ == '__main__':
    unittest.main()
