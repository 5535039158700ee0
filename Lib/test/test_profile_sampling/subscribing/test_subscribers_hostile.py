"""Subscribers that misbehave: no deadlock, no recursion, no lost totals.
PITFALLS L8."""

import gc
import os
import sys
import threading
import time
import unittest

from test import support
from test.support import threading_helper

import profile_sampling

from ..support.sessions import _profile
from ..support.subscribers import (
    Recorder, SubscriberTest, running, subscribe_manually)
from ..support.work import spin

subscribe = profile_sampling.subscribe

SECONDS = 0.25


class HostileTest(SubscriberTest):

    def setUp(self):
        # After all subscriptions are closed.
        self.enterContext(threading_helper.wait_threads_exit())
        super().setUp()

    def check(self, callback, *, threads=2, most_ns=3e6, beside=()):
        """The totals of the threads are right beside such a callback.

        Meanwhile *beside* run as well, for SECONDS.
        """
        calls = []

        def called(batch):
            calls.append(threading.get_ident())
            return callback(batch)
        witness = Recorder()
        with subscribe(witness, rate_hz=1000):
            subscription = subscribe(called, rate_hz=2000, batch_samples=10,
                                     batch_seconds=0.02)
            lives = {}

            def work():
                started = time.perf_counter_ns()
                spin(SECONDS)
                lives[threading.get_ident()] = (
                    time.perf_counter_ns() - started)
            with running(*[work] * threads, *beside) as them:
                pass
            subscription.close()
        called_in = set(calls)
        self.assertEqual(len(called_in), 1)
        self.assertFalse(called_in & {*lives, threading.get_ident()})
        for thread in them[:threads]:
            found = witness.wall_ns(thread=thread.ident)
            self.assertAlmostEqual(found, lives[thread.ident],
                                   delta=most_ns + 0.02 * found)
        return calls

    def test_it_allocates_and_collects(self):
        def callback(batch):
            cycle = []
            cycle.append(cycle)
            [[] for _ in range(1000)]
            gc.collect(0)
        self.check(callback)

    def test_it_takes_locks_of_the_program(self):
        lock = threading.RLock()

        def callback(batch):
            with lock:
                time.sleep(0.001)

        def locks():
            end = time.monotonic() + SECONDS
            while time.monotonic() < end:
                with lock:
                    sum(range(100))
        self.check(callback, beside=[locks])

    def test_it_waits_for_a_thread_that_is_sampled(self):
        def callback(batch):
            thread = threading.Thread(target=spin, args=(0.001,))
            thread.start()
            thread.join()
        self.check(callback)

    def test_it_waits_for_a_thread_that_waits_for_deliveries(self):
        # Nobody waits for the helper that it waits for itself.
        found = []

        def flush_and_close(batch):
            batch.subscription.flush()
            batch.subscription.close()
            found.append(batch.subscription.closed)

        def callback(batch):
            thread = threading.Thread(target=flush_and_close, args=(batch,))
            thread.start()
            thread.join()
        with subscribe(callback, batch_seconds=3600) as subscription:
            spin(0.01)
            subscription.flush()
            self.assertTrue(subscription.closed)
        self.assertTrue(found)

    def test_it_raises(self):
        for error in (ValueError, SystemExit, KeyboardInterrupt):
            with support.catch_unraisable_exception() as caught:
                def callback(batch):
                    raise error('hostile')
                with self.subTest(error=error), \
                        self.assertWarnsRegex(RuntimeWarning, 'closed'):
                    subscription = subscribe_manually(callback)
                    for _ in range(10):
                        self.assertFalse(subscription.closed)
                        _profile.tick(1000, 10)
                        subscription.flush()
                self.assertIs(caught.unraisable.exc_type, error)
                self.assertIs(caught.unraisable.object, callback)
            self.assertTrue(subscription.closed)
            self.assertEqual(subscription.stats()['errors'], 10)

    def test_it_raises_now_and_then(self):
        numbers = iter(range(1000))

        def callback(batch):
            if next(numbers) % 10:
                raise ValueError
        with support.catch_unraisable_exception(), \
                subscribe_manually(callback) as subscription:
            for _ in range(50):
                _profile.tick(1000, 10)
                subscription.flush()
            self.assertFalse(subscription.closed)

    def test_warnings_are_errors(self):
        import warnings
        told = []

        def callback(batch):
            raise ValueError
        with support.swap_attr(sys, 'unraisablehook',
                               lambda args: told.append(args.exc_type)), \
                warnings.catch_warnings():
            warnings.simplefilter('error')
            subscription = subscribe_manually(callback)
            for _ in range(10):
                _profile.tick(1000, 10)
                subscription.flush()
        # What waited as it was closed may come after it.
        self.assertEqual(told.count(RuntimeWarning), 1)
        self.assertTrue(subscription.closed)

    def test_it_closes_itself_and_others(self):
        others = [subscribe(Recorder()) for _ in range(4)]

        def callback(batch):
            for other in others:
                other.close()
            subscription.close()
        subscription = subscribe(callback, batch_seconds=0.01)
        deadline = time.monotonic() + support.SHORT_TIMEOUT
        while not subscription.closed and time.monotonic() < deadline:
            spin(0.01)
        self.assertTrue(subscription.closed)
        self.assertTrue(all(other.closed for other in others))

    def test_it_subscribes_and_changes_rates(self):
        subscriptions = []

        def callback(batch):
            if len(subscriptions) < 5:
                subscriptions.append(
                    subscribe(Recorder(), rate_hz=10 + len(subscriptions)))
            for subscription in subscriptions:
                subscription.set_rate(100)
                subscription.flush()
        self.check(callback)
        self.assertGreaterEqual(len(subscriptions), 5)
        while subscriptions:
            subscriptions.pop().close()

    def test_it_flushes_itself(self):
        def callback(batch):
            subscription.flush()
        with subscribe(callback, batch_seconds=0.01) as subscription:
            spin(0.1)

    def test_two_flush_each_other(self):
        subscriptions = []

        def callback(batch):
            for subscription in list(subscriptions):
                subscription.flush()
        for _ in range(2):
            subscriptions.append(subscribe(callback, batch_seconds=0.01))

        def flush():
            end = time.monotonic() + SECONDS
            while time.monotonic() < end:
                for subscription in subscriptions:
                    subscription.flush()
        with running(flush, flush):
            pass
        for subscription in subscriptions:
            subscription.close()

    def test_it_starts_and_stops_sessions(self):
        def callback(batch):
            try:
                profile_sampling.start(names='off')
                profile_sampling.stop()
            except RuntimeError:
                pass        # another thread's callback has it
        self.check(callback)

    def test_it_sleeps_for_seconds(self):
        recorder = Recorder()

        def callback(batch):
            recorder(batch)
            time.sleep(1)
        with subscribe(callback, rate_hz=5000, max_samples=64,
                       batch_samples=16, batch_seconds=0.01) as subscription:
            with running(lambda: spin(0.5)):
                pass
        stats = subscription.stats()
        self.assertGreater(stats['merged'], 0)
        self.assertEqual(
            sum([sample.wall_ns for sample in recorder.samples])
            + stats['lost_wall_ns'], stats['wall_ns'])

    @unittest.skipUnless(hasattr(os, 'fork'), 'needs os.fork()')
    def test_it_forks(self):
        pids = []

        def callback(batch):
            if len(pids) < 3:
                pid = os.fork()
                if not pid:
                    os._exit(0)
                pids.append(pid)
        self.check(callback)
        self.assertGreaterEqual(len(pids), 3)
        while pids:
            _, status = os.waitpid(pids.pop(), 0)
            self.assertEqual(status, 0)

    def test_threads_race(self):
        """Subscribe, close, change the rate at any time from any thread."""
        errors = []

        def race():
            end = time.monotonic() + 2 * SECONDS
            try:
                while time.monotonic() < end:
                    with subscribe(Recorder(), rate_hz=500,
                                   batch_seconds=0.001) as subscription:
                        spin(0.003)
                        subscription.set_rate(2000)
                        spin(0.003)
                        subscription.flush()
            except BaseException as exc:
                errors.append(exc)
                raise
        with running(*[race] * 6):
            for _ in range(10):
                try:
                    profile_sampling.start()
                    spin(0.02)
                    profile_sampling.stop()
                except RuntimeError as exc:
                    errors.append(exc)
        self.assertEqual(errors, [])
        self.assert_idle()


class WorkTest(SubscriberTest):

    def test_it_is_counted_apart(self):
        burned_ns = []

        def burn(batch):
            started_ns = time.perf_counter_ns()
            spin(0.02)
            burned_ns.append(time.perf_counter_ns() - started_ns)
        witness = Recorder()
        with subscribe(witness, rate_hz=1000) as subscription:
            before_ns = _profile.stats()['subscribers_wall_ns']
            with subscribe(burn, batch_samples=1, batch_seconds=0.01):
                spin(0.5)
            subscription.flush()
            apart_ns = _profile.stats()['subscribers_wall_ns'] - before_ns
        self.assertGreater(len(burned_ns), 3)
        self.assertGreaterEqual(apart_ns, sum(burned_ns))
        # What delivers batches is a subscriber's work as well.
        self.assertLess(apart_ns, 1.5 * sum(burned_ns))

    def test_a_helper_is_not_sampled(self):
        def burn(batch):
            spin(0.01)
        recorder = Recorder()
        with subscribe(recorder), \
                subscribe(burn, batch_samples=1, batch_seconds=0.01):
            spin(0.2)
        names = {frame.function.qualname for sample in recorder.samples
                 for frame in sample.stack}
        self.assertNotIn('WorkTest.test_a_helper_is_not_sampled.<locals>.burn',
                         names)
        counters = recorder.batches[-1].stats
        self.assertGreater(counters['subscribers_wall_ns'], 0)
