"""Subscriptions: each gets all the weight, and a session beside them too.

See InternalDocs/profile_sampling/subscribers.md.
"""

import gc
import os
import signal
import threading
import time
from collections import Counter

from test import support

import profile_sampling

from ..support.aggregator import Aggregator
from ..support.manual import first, second
from ..support.sessions import _profile, checked, names, parked_thread
from ..support.subscribers import (
    Recorder, SubscriberTest, closing, running, subscribe_manually)
from ..support.work import spin

subscribe = profile_sampling.subscribe


def weights(samples):
    """{(names root first, state, labels): [count, cpu_ns, wall_ns]}."""
    sums = {}
    for sample in samples:
        key = (names(sample), sample.state, tuple(sample.labels.items()),
               sample.thread.ident)
        row = sums.setdefault(key, [0, 0, 0])
        for i, weight in enumerate(
                (sample.count, sample.cpu_ns, sample.wall_ns)):
            row[i] += weight
    return sums


class SumsTest(SubscriberTest):

    def assert_whole(self, recorder, thread):
        own = [sample for sample in recorder.samples
               if sample.thread.ident == thread.ident]
        begun_ns = own[0].time_ns - own[0].wall_ns
        self.assertEqual(sum([sample.wall_ns for sample in own]),
                         own[-1].time_ns - begun_ns, 'to the nanosecond')

    def test_weights_sum_up_at_every_rate(self):
        recorders = {rate: Recorder() for rate in (2000, 500, 37)}
        subscriptions = [subscribe(recorder, rate_hz=rate, moments=True)
                         for rate, recorder in recorders.items()]
        with running(lambda: spin(0.3), lambda: time.sleep(0.2)) as threads:
            spin(0.3)
        for subscription in subscriptions:
            subscription.flush()
        for thread in threads:
            sums = {recorder.wall_ns(thread=thread.ident)
                    for recorder in recorders.values()}
            self.assertEqual(len(sums), 1, 'to the nanosecond')
            self.assertGreater(sums.pop(), 0.2e9)
        # A rate is the least that a subscriber gets: each has every record.
        counts = {len([sample for sample in recorder.samples
                       if sample.thread.ident == threads[0].ident])
                  for recorder in recorders.values()}
        self.assertEqual(len(counts), 1)
        # On a machine that others use a tick waits for others.
        self.assertGreater(counts.pop(), 0.2 * 500)

    def test_the_aggregator_equals_the_table(self):
        aggregator = Aggregator()
        with subscribe(aggregator, rate_hz=2000, batch_seconds=0.02):
            _profile.start(rate_hz=2000)
            with running(lambda: spin(0.2), lambda: time.sleep(0.1),
                         lambda: [gc.collect() for _ in range(5)]) as threads:
                spin(0.1)
            table = checked(_profile.stop())
        found = checked(aggregator.profile())
        idents = {thread.ident for thread in threads}

        def of_threads(profile):
            return {key: row for key, row in weights(profile.samples).items()
                    if key[-1] in idents}
        self.assertEqual(of_threads(found), of_threads(table))
        self.assertTrue(of_threads(table))

    def test_the_aggregator_gives_profiles_while_it_adds(self):
        aggregator = Aggregator()
        before_ns = 0
        with subscribe(aggregator, batch_samples=1) as subscription:
            for _ in range(10):
                spin(0.002)
                total_ns = aggregator.profile().total_wall_ns
                self.assertGreaterEqual(total_ns, before_ns)
                before_ns = total_ns
            subscription.flush()
            self.assertGreater(aggregator.profile().total_wall_ns, 0)

    def test_a_session_comes_and_goes(self):
        recorder = Recorder()
        with subscribe_manually(recorder):
            first()
            _profile.start(manual=True, names=0)
            second()
            profile = checked(_profile.stop())
            first()
        self.assertEqual(profile.total_wall_ns, 5000)
        self.assertEqual(recorder.wall_ns(), 11_000)

    def test_a_snapshot_clears_the_session_only(self):
        recorder = Recorder()
        with subscribe_manually(recorder) as subscription:
            _profile.start(manual=True, names=0)
            first()
            self.assertEqual(
                checked(_profile.snapshot(clear=True)).total_wall_ns, 3000)
            second()
            self.assertEqual(checked(_profile.stop()).total_wall_ns, 5000)
            subscription.flush()
        self.assertEqual(recorder.wall_ns(), 8000)

    def test_a_session_with_more_depth(self):
        recorder = Recorder()
        with subscribe_manually(recorder, depth_frames=4):
            first()
            for options in {'depth_frames': 5}, {'names': 3}:
                with self.assertRaisesRegex(RuntimeError, 'fewer depth_fram'):
                    _profile.start(manual=True, **options)
                self.assertFalse(profile_sampling.running())
            _profile.start(manual=True)
            second()
            profile = checked(_profile.stop())
            with self.assertRaisesRegex(RuntimeError, 'fewer depth_frames'):
                subscribe_manually(recorder, depth_frames=65)
        self.assertEqual(profile.total_wall_ns, 5000)
        self.assertEqual((profile.depth_frames, profile.names), (4, 'off'))
        self.assertEqual(recorder.wall_ns(), 8000)
        self.assertEqual(len({b.rows.serial for b in recorder.batches}), 1)

    def test_nothing_is_missing_where_sessions_begin(self):
        recorder = Recorder()
        with (parked_thread() as thread,
              subscribe(recorder, depth_frames=4)):
            for depth_frames in 1, 2, 3, 4, None:
                profile_sampling.start(depth_frames=depth_frames)
                spin(0.005)
                profile_sampling.stop()
        self.assert_whole(recorder, thread)

    def test_a_session_begins_though_the_program_has_taken_the_signal(self):
        recorder = Recorder()
        old = signal.getsignal(signal.SIGUSR2)
        self.addCleanup(signal.signal, signal.SIGUSR2, old)
        with subscribe(recorder, depth_frames=4, signal=signal.SIGUSR2):
            signal.signal(signal.SIGUSR2, lambda *args: None)
            profile_sampling.start()
            spin(0.1)
            profile = profile_sampling.stop()
        self.assertGreater(profile.total_wall_ns, 0.09e9)
        self.assertGreater(recorder.wall_ns(), 0.09e9)

    def test_subscriptions_go_on_if_a_session_cannot_begin(self):
        recorder = Recorder()
        with (parked_thread() as thread,
              subscribe(recorder, depth_frames=4)):
            spin(0.02)
            for options in ({'depth_frames': 64},
                            {'signal': int(signal.SIGUSR2)}):
                with self.assertRaisesRegex(RuntimeError, 'than asked for'):
                    profile_sampling.start(**options)
                self.assertFalse(profile_sampling.running())
                spin(0.02)
        self.assertGreater(recorder.wall_ns(thread=threading.get_ident()),
                           0.05e9)
        self.assert_whole(recorder, thread)

    def test_a_session_lasts_as_long_as_its_threads(self):
        # To the nanosecond, whenever the process is made to wait.
        def check(profile):
            own = [sample.wall_ns for sample in profile.samples
                   if sample.thread.ident == threading.get_ident()]
            self.assertEqual(sum(own), profile.duration_ns)
        profile_sampling.start()
        for clear in (False, True, True):
            spin(0.005)
            check(profile_sampling.snapshot(clear=clear))
        spin(0.005)
        check(profile_sampling.stop())
        with subscribe(len, depth_frames=4):
            spin(0.005)
            profile_sampling.start()
            spin(0.005)
            check(profile_sampling.snapshot())
            check(profile_sampling.stop())

    def test_no_tick_is_lost_between_snapshots(self):
        # Some of the ticks fall into the calls of snapshot(), and on one CPU
        # their signals, too.
        cpus = os.sched_getaffinity(0)
        self.addCleanup(os.sched_setaffinity, 0, cpus)
        os.sched_setaffinity(0, {min(cpus)})
        profile_sampling.start(rate_hz=10_000)
        self.addCleanup(profile_sampling.stop)
        for _ in range(5000):
            profile = profile_sampling.snapshot(clear=True)
            own = [sample.wall_ns for sample in profile.samples
                   if sample.thread.ident == threading.get_ident()]
            self.assertEqual(sum(own), profile.duration_ns)

    def test_all_use_one_signal(self):
        with subscribe(Recorder(), signal=signal.SIGUSR2):
            for options in {}, {'signal': int(signal.SIGUSR2)}:
                profile_sampling.start(**options)
                with subscribe(len, **options):
                    spin(0.05)
                profile_sampling.stop()
            with self.assertRaisesRegex(RuntimeError, 'another signal'):
                subscribe(len, signal=signal.SIGUSR1)
            with self.assertRaisesRegex(RuntimeError, 'another signal'):
                profile_sampling.start(signal=int(signal.SIGUSR1))
            profile_sampling.start()
            # It is the program's now; sampling goes on by another.
            old = signal.signal(signal.SIGUSR2, lambda *args: None)
            self.addCleanup(signal.signal, signal.SIGUSR2, old)
            spin(0.05)
            profile = profile_sampling.stop()
            self.assertEqual(profile.stats['signals_moved'], 1)
        self.assertGreater(profile.total_wall_ns, 0.04e9)

    def test_a_session_outlives_the_last_subscription(self):
        _profile.start(manual=True, names=0)
        with subscribe_manually(Recorder()):
            first()
        second()
        self.assertEqual(checked(_profile.stop()).total_wall_ns, 8000)

    def test_nothing_samples_when_all_is_closed(self):
        with subscribe(Recorder()):
            spin(0.01)
        self.assert_idle()
        self.assertFalse(profile_sampling.running())


class TakenTest(SubscriberTest):
    """Records wait while the tables that they refer to are given away."""

    def test_by_a_block_that_began_later(self):
        recorder = Recorder()
        is_busy, released = threading.Event(), threading.Event()
        self.addCleanup(released.set)

        def callback(batch):
            recorder(batch)
            is_busy.set()
            released.wait(support.SHORT_TIMEOUT)

        subscription = subscribe_manually(callback, batch_events=1)
        outer = _profile.begin_block(manual=True, names=0)
        first()
        is_busy.wait()
        inner = _profile.begin_block(manual=True, names=0)
        second()
        with (support.catch_unraisable_exception() as caught,
              closing(subscription)):
            _profile.end_block(outer)
            found = checked(_profile.end_block(inner))
            released.set()
            subscription.close()
            self.assertIsNone(caught.unraisable)
        self.assertEqual(found.total_wall_ns, 5000, 'without first()')
        spent_ns = Counter()
        for sample in recorder.samples:
            spent_ns[sample.stack[0].function.qualname] += sample.wall_ns
        self.assertEqual((spent_ns['first'], spent_ns['second']),
                         (3000, 5000))
