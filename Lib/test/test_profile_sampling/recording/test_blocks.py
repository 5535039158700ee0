"""Blocks of profile(), beside each other and beside sessions."""

import _interpreters
import asyncio
import random
import signal
import textwrap
import threading
import time

from test import support

import profile_sampling
from profile_sampling import label, profile, region

from ..support import manual
from ..support.sessions import (
    SessionTest, _profile, checked, names, weight)
from ..support.work import spin

tick = manual.tick


def tearDownModule():
    asyncio.set_event_loop_policy(None)     # as it was


def total(profile):
    """What a manual clock has ticked in it."""
    return checked(profile).total_wall_ns


class ManualTest(SessionTest):

    def setUp(self):
        super().setUp()
        _profile.start(manual=True, names=0)

    def stop(self):
        return total(profile_sampling.stop())


class InASessionTest(ManualTest):

    def test_the_block_and_no_more(self):
        tick(1, 0)
        with profile() as block:
            tick(10, 3)
            self.assertIsNone(block.profile)
        tick(100, 0)
        self.assertEqual(total(block.profile), 10)
        self.assertEqual(block.profile.total_cpu_ns, 3)
        self.assertEqual(block.profile.total_count, 1)
        self.assertEqual(block.profile.duration_ns, 10)
        self.assertTrue(profile_sampling.running())
        self.assertEqual(self.stop(), 111)

    def test_the_same_stack_before_and_inside(self):
        for _ in range(3):
            for ns in 5, 70, 700, 6000:
                if ns == 70:
                    block = profile()
                    block.__enter__()
                elif ns == 6000:
                    block.__exit__(None, None, None)
                manual.leaf(ns, ns)
            [sample] = [sample for sample in checked(block.profile).samples
                        if names(sample)[-1] == 'leaf']
            self.assertEqual((sample.count, sample.wall_ns), (2, 770))
        self.assertEqual(self.stop(), 3 * 6775)

    def test_tasks(self):
        found = {}

        async def work(ns):
            with profile() as block, label(ns=ns):
                tick(ns, 0)
                await asyncio.sleep(0)
                tick(ns, 0)
            found[ns] = {row.value: row.wall_ns for row
                         in checked(block.profile).label_values('ns')
                         # Tasks that wait are in no thread.
                         if row.wall_ns}

        async def main():
            await asyncio.gather(work(1), work(10))

        asyncio.run(main())
        # The first began before the second, and ended before its end.
        self.assertEqual(found[1], {'1': 2, '10': 10})
        self.assertEqual(found[10], {'1': 1, '10': 20})

    def test_clear_in_the_middle(self):
        tick(1, 0)
        with profile() as outer:
            tick(10, 0)
            with profile() as inner:
                tick(100, 0)
                found = checked(profile_sampling.snapshot(clear=True))
                self.assertEqual(found.total_wall_ns, 111)
                self.assertEqual(profile_sampling.stats()['samples'], 0)
                tick(1000, 0)
                found = checked(profile_sampling.snapshot(clear=True))
                self.assertEqual(found.total_wall_ns, 1000)
                self.assertEqual(found.duration_ns, 1000)
                tick(10_000, 0)
            self.assertEqual(total(profile_sampling.snapshot()), 10_000)
        self.assertEqual(total(inner.profile), 11_100)
        self.assertEqual(total(outer.profile), 11_110)
        # Nobody is inside: it may have new tables.
        self.assertEqual(total(profile_sampling.snapshot(clear=True)), 10_000)
        tick(3, 0)
        self.assertEqual(self.stop(), 3)

    def test_stop_in_the_middle(self):
        tick(1, 0)
        with profile() as block:
            tick(10, 0)
            self.assertEqual(self.stop(), 11)
            with self.assertRaisesRegex(RuntimeError, 'end with their block'):
                profile_sampling.stop()
            self.assertTrue(profile_sampling.running())
            tick(100, 0)
            # Of the block, which is all that goes on.
            self.assertEqual(total(profile_sampling.snapshot()), 110)
        self.assertEqual(total(block.profile), 110)
        self.assertFalse(profile_sampling.running())

    def test_a_block_that_is_dropped(self):
        block = profile()
        block.__enter__()
        tick(1, 0)
        del block
        support.gc_collect()
        self.assertEqual(self.stop(), 1)
        self.assertFalse(profile_sampling.running())

    def test_the_options_of_the_session(self):
        profile_sampling.stop()
        _profile.start(mode='cpu', rate_hz=500, depth_frames=100, names=1)
        for options in ({}, {'rate_hz': 500}, {'depth_frames': 100},
                        {'names': 'calls'}, {'mode': 'cpu'}):
            with profile(**options) as block:
                pass
            found = checked(block.profile)
            self.assertEqual(
                (found.mode, found.rate_hz, found.depth_frames, found.names),
                ('cpu', 500, 100, 'calls'))
        with profile('wall') as block:
            pass
        self.assertEqual(block.profile.mode, 'wall')

    def test_other_options(self):
        profile_sampling.stop()
        _profile.start(rate_hz=500, depth_frames=100, names=1,
                       signal=signal.SIGUSR2)
        for options, message in (
                ({'rate_hz': 1000}, 'rate_hz=500.*rate_hz=1000'),
                ({'rate_hz': 499}, 'rate_hz=500'),
                ({'depth_frames': 50}, 'depth_frames=100.*depth_frames=50'),
                ({'names': 'off'}, "names='calls'.*names='off'"),
                ({'names': 'all'}, "names='calls'.*names='all'"),
                ({'signal': int(signal.SIGPROF)},
                 f'signal={int(signal.SIGUSR2)}')):
            with self.subTest(options=options):
                with self.assertRaisesRegex(RuntimeError, message):
                    with profile(**options):
                        self.fail('it was entered')
        with profile(signal=int(signal.SIGUSR2)):
            pass

    def test_only_what_was_used(self):
        thread = threading.Thread(target=tick, args=(1, 0))
        thread.start()
        thread.join()
        with label(a=1):
            manual.first()
        with profile() as block, label(b=2):
            manual.second()
        found = checked(block.profile)
        self.assertEqual([t.ident for t in found.threads],
                         [threading.get_ident()])
        self.assertEqual({key: value for sample in found.samples
                          for key, value in sample.labels.items()},
                         {'b': '2'})
        functions = {f.qualname for f in found._tables.functions}
        self.assertIn('second', functions)
        self.assertNotIn('first', functions)
        self.assertEqual({t.ident for t in checked(
            profile_sampling.stop()).threads} - {threading.get_ident()},
            {thread.ident})

    def test_gil_holders_move_along(self):
        """Rows of holders are renumbered with the others."""
        profile_sampling.stop()
        profile_sampling.start(rate_hz=10_000)
        with label(before=1):
            spin(0.01)
        threads = [threading.Thread(target=spin, args=(0.1,))
                   for _ in range(2)]
        with profile() as block:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        # checked() holds them against each other.
        self.assertGreater(total(block.profile), 0)


class AnyOrderTest(SessionTest):
    """Whatever begins and ends meanwhile, each has its own time, exactly."""

    def end(self, block, due_ns):
        self.assertEqual(total(_profile.end_block(block)), due_ns)

    def check(self, choose):
        # While it goes on, a deferred session samples as others do.
        outer, all_ns = _profile.begin_block(manual=True, names=0), 0
        blocks, regions, session_ns = [], [], None
        for _ in range(60):
            act = choose(('tick', 'tick', 'tick', 'begin', 'end', 'start',
                          'stop', 'snapshot', 'clear', 'enter', 'leave'))
            if act == 'tick':
                ns = choose(range(1, 1000))
                tick(ns, 0)
                all_ns += ns
                for block in blocks:
                    block[1] += ns
                if session_ns is not None:
                    session_ns += ns
            elif act == 'begin':
                blocks.append([_profile.begin_block(), 0])
            elif act == 'end' and blocks:
                self.end(*blocks.pop(choose(range(len(blocks)))))
            elif act == 'enter':
                regions.append(region())
                regions[-1].__enter__()
            elif act == 'leave' and regions:
                regions.pop().__exit__(None, None, None)
            elif act == 'start' and session_ns is None:
                _profile.start(manual=True, names=0,
                               defer=choose((False, True)))
                session_ns = 0
            elif act in ('stop', 'snapshot', 'clear') and (
                    session_ns is not None):
                raw = (_profile.stop() if act == 'stop'
                       else _profile.snapshot(act == 'clear'))
                self.assertEqual(total(raw), session_ns, act)
                session_ns = {'stop': None, 'clear': 0}.get(act, session_ns)
        for block in blocks:
            self.end(*block)
        if session_ns is not None:
            self.assertEqual(total(_profile.stop()), session_ns)
        self.end(outer, all_ns)
        for each in regions:
            each.__exit__(None, None, None)
        self.assertFalse(profile_sampling.running())

    def test_any_order(self):
        for seed in range(50):
            with self.subTest(seed=seed):
                self.check(random.Random(seed).choice)


class AloneTest(SessionTest):
    """Nothing samples when the first block begins."""

    def begin(self):
        return _profile.begin_block(manual=True, names=0)

    def test_the_last_block_ends_it(self):
        first = self.begin()
        tick(1, 0)
        with profile() as second:
            tick(10, 0)
            self.assertEqual(total(_profile.end_block(first)), 11)
            self.assertTrue(profile_sampling.running())
            tick(100, 0)
        self.assertEqual(total(second.profile), 110)
        self.assertFalse(profile_sampling.running())
        self.assertIsNone(_profile.end_block(first))

    def test_a_session_that_wants_more(self):
        first = self.begin()
        with self.assertRaisesRegex(RuntimeError, 'names'):
            _profile.start(manual=True, names=3)
        tick(1, 0)
        self.assertEqual(total(_profile.end_block(first)), 1)

    def test_the_session_with_the_higher_rate(self):
        with profile(rate_hz=100) as block:
            profile_sampling.start(rate_hz=10_000)
            spin(0.1)
            found = checked(profile_sampling.stop())
        self.assertEqual((found.rate_hz, block.profile.rate_hz),
                         (10_000, 100))
        self.assertGreater(found.stats['ticks'], 100)

    def test_a_block_that_is_dropped(self):
        first = self.begin()
        tick(1, 0)
        del first
        self.assertFalse(profile_sampling.running())
        with self.assertRaises(RuntimeError):
            tick(1, 0)

    def test_time_is_conserved(self):
        """Real clocks: each thread weighs what the block took."""
        ready = threading.Event()
        leave = threading.Event()

        def wait():
            ready.set()
            leave.wait()

        thread = threading.Thread(target=wait)
        with profile():
            thread.start()
            ready.wait()
            spin(0.02)
            before = time.monotonic_ns()
            with profile() as block:
                inside = time.monotonic_ns()
                spin(0.05)
                inside = time.monotonic_ns() - inside
            around = time.monotonic_ns() - before
        leave.set()
        thread.join()
        found = checked(block.profile)
        self.assertEqual(len(found.threads), 2)
        self.assertTrue(inside <= found.duration_ns <= around)
        for ident in thread.ident, threading.get_ident():
            # To the nanosecond, as from start() to stop().
            self.assertEqual(
                weight([sample for sample in found.samples
                        if sample.thread.ident == ident]),
                found.duration_ns)

    def test_beside_subscriptions(self):
        for names_ in 'off', 'all':
            with profile_sampling.subscribe(lambda batch: None,
                                            names=names_, rate_hz=7000):
                with profile() as block:
                    spin(0.02)
                found = checked(block.profile)
                self.assertEqual((found.names, found.rate_hz),
                                 (names_, 1000))
                self.assertFalse(profile_sampling.running())
                with profile() as block:
                    pass
                self.assertLess(block.profile.total_wall_ns,
                                found.total_wall_ns)
        with profile_sampling.subscribe(lambda batch: None, names='off'):
            with self.assertRaisesRegex(RuntimeError, 'names'):
                with profile(names='all'):
                    self.fail('it was entered')

    def test_less_than_there_is(self):
        """What a profile says of its stacks is so."""
        less = {'depth_frames': 2, 'names': 'off'}
        with profile_sampling.subscribe(lambda batch: None,
                                        depth_frames=500, names='calls'):
            with profile(**less) as block:
                spin(0.02)
            profile_sampling.start(**less)
            spin(0.02)
            session = profile_sampling.stop()
        for found in checked(block.profile), checked(session):
            self.assertEqual((found.depth_frames, found.names),
                             (500, 'calls'))
            self.assertGreater(max(len(sample.stack)
                                   for sample in found.samples), 2)

    def test_in_another_interpreter(self):
        interp = _interpreters.create('legacy')
        self.addCleanup(_interpreters.destroy, interp)
        first = self.begin()
        tick(1, 0)
        failed = _interpreters.exec(interp, textwrap.dedent('''\
            import profile_sampling
            with profile_sampling.profile() as block:
                assert profile_sampling.running()
            assert block.profile is not None
            left = profile_sampling.profile()
            left.__enter__()
            '''))
        self.assertIsNone(failed)
        self.assertEqual(total(_profile.end_block(first)), 1)
        self.assertTrue(profile_sampling.running())
        failed = _interpreters.exec(interp, 'left.__exit__()'.replace(
            '()', '(None, None, None)'))
        self.assertIsNone(failed)
        self.assertFalse(profile_sampling.running())
