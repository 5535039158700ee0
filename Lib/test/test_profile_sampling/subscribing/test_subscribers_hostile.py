"""Subscribers that misbehave: no deadlock, no recursion, no lost totals.
PITFALLS L8."""

import _thread
import gc
import logging
import os
import signal
import sys
import threading
import time
import unittest

from test import support
from test.support import threading_helper

import profile_sampling
from profile_sampling._subscribing import delivery as _delivery

from ..support.sessions import _profile
from ..support.subscribers import (
    Recorder, SubscriberTest, handling, running, subscribe_manually, time_out)
from ..support.work import spin

subscribe = profile_sampling.subscribe

SECONDS = 0.25


def end_program(signum, frame):
    raise SystemExit(3)


class HostileTest(SubscriberTest):
    """Each callback runs on the helper thread and at safepoints."""

    def setUp(self):
        # After all subscriptions are closed.
        self.enterContext(threading_helper.wait_threads_exit())
        super().setUp()

    def check(self, callback, *, sync, threads=2, most_ns=3e6, beside=()):
        """The totals of the threads are right beside such a callback.

        Meanwhile *beside* run as well, for SECONDS.
        """
        calls = []

        def called(batch):
            calls.append(threading.get_ident())
            return callback(batch)
        witness = Recorder()
        with subscribe(witness, rate_hz=1000):
            subscription = subscribe(called, sync=sync, rate_hz=2000,
                                     batch_samples=10, batch_seconds=0.02)
            lives = {}

            def work():
                started = time.perf_counter_ns()
                spin(SECONDS)
                lives[threading.get_ident()] = (
                    time.perf_counter_ns() - started)
            with running(*[work] * threads, *beside) as them:
                pass
            called_in = set(calls)
            subscription.close()
        if sync:
            self.assertLessEqual(set(lives), called_in)
        else:
            self.assertEqual(len(called_in), 1)
            self.assertFalse(called_in & {*lives, threading.get_ident()})
        for thread in them[:threads]:
            found = witness.wall_ns(thread=thread.ident)
            if sync:
                # The callback's own time is not the thread's.
                self.assertLess(found, lives[thread.ident] + most_ns)
                self.assertGreater(found, 0)
            else:
                self.assertAlmostEqual(found, lives[thread.ident],
                                       delta=most_ns + 0.02 * found)
        return calls

    def both(self, callback, **options):
        for sync in (False, True):
            with self.subTest(sync=sync):
                self.check(callback, sync=sync, **options)

    def test_it_allocates_and_collects(self):
        def callback(batch):
            cycle = []
            cycle.append(cycle)
            [[] for _ in range(1000)]
            gc.collect(0)
        self.both(callback)

    def test_it_logs(self):
        logger = logging.getLogger('hostile')
        logger.propagate = False
        logger.addHandler(logging.StreamHandler(open(os.devnull, 'w')))
        self.addCleanup(logger.handlers[0].stream.close)
        self.addCleanup(logger.handlers.clear)
        self.both(lambda batch: logger.error('%d samples', len(batch)))

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
        self.both(callback, beside=[locks])

    def test_it_waits_for_a_thread_that_is_sampled(self):
        def callback(batch):
            thread = threading.Thread(target=spin, args=(0.001,))
            thread.start()
            thread.join()
        # Not at safepoints: where a thread begins it holds a lock that every
        # new one needs.
        self.check(callback, sync=False)

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

    def check_signal_handler(self, signum, handler, error):
        """What the handler of a signal raises in the middle of a callback is
        raised in the program."""
        for sync in (False, True):
            calls = []
            is_expected = False

            def callback(batch):
                if not is_expected:
                    return
                calls.append(1)
                if len(calls) == 1:
                    signal.raise_signal(signum)
                    calls.append('not interrupted')
            subscription = subscribe(callback, sync=sync,
                                     batch_seconds=3600)
            with handling(signum, handler):
                with self.subTest(sync=sync), \
                        support.catch_unraisable_exception() as caught:
                    with self.assertRaises(error):
                        is_expected = True
                        spin(0.1)
                        subscription.flush()
                    if sync:
                        # Another safepoint may have called it since.
                        self.assertEqual(set(calls), {1})
                    else:
                        self.assertEqual(calls, [1])
                    self.assertIsNone(caught.unraisable)
                spin(0.1)
                subscription.flush()
            self.assertGreater(len(calls), 1)
            self.assertFalse(subscription.closed)
            subscription.close()
            self.assertEqual(subscription.stats()['errors'], 0)

    def test_the_user_interrupts_it(self):
        self.check_signal_handler(signal.SIGINT, signal.default_int_handler,
                                  KeyboardInterrupt)

    def test_signal_handlers_raise(self):
        self.check_signal_handler(signal.SIGTERM, end_program, SystemExit)
        self.check_signal_handler(signal.SIGALRM, time_out, TimeoutError)

    def test_a_timeout_ends_a_callback_that_hangs(self):
        calls = []

        def callback(batch):
            calls.append(1)
            if len(calls) == 1:
                time.sleep(support.LONG_TIMEOUT)
        with handling(signal.SIGALRM, time_out):
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            try:
                with self.assertRaises(TimeoutError), \
                        subscribe(callback, sync=True):
                    spin(support.SHORT_TIMEOUT)
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)

    def test_a_callback_serves_another_as_it_is_interrupted(self):
        calls, served = [], []
        other = subscribe_manually(served.append)

        def callback(batch):
            calls.append(1)
            try:
                if len(calls) == 1:
                    signal.raise_signal(signal.SIGALRM)
            finally:
                other.close()
        with handling(signal.SIGALRM, time_out), \
                subscribe_manually(callback) as subscription:
            _profile.tick(1000, 10)
            with self.assertRaises(TimeoutError):
                subscription.flush()
            self.assertEqual(subscription.stats()['errors'], 0)
        self.assertGreater(len(served), 0)

    def test_an_exception_in_the_place_of_a_handlers(self):
        # The handler's is gone, and the next may get its memory.
        def callback(batch):
            try:
                signal.raise_signal(signal.SIGALRM)
            except TimeoutError:
                pass
            raise TimeoutError('of the callback')
        with handling(signal.SIGALRM, time_out), \
                support.catch_unraisable_exception() as caught, \
                subscribe_manually(callback) as subscription:
            _profile.tick(1000, 10)
            subscription.flush()
            self.assertEqual(str(caught.unraisable.exc_value),
                             'of the callback')
            self.assertEqual(subscription.stats()['errors'], 1)

    def test_another_handler_raises_while_it_ends(self):
        calls = []

        def callback(batch):
            calls.append(1)
            if len(calls) > 1:
                return
            try:
                signal.raise_signal(signal.SIGTERM)
            finally:
                try:
                    signal.raise_signal(signal.SIGALRM)
                except TimeoutError:
                    pass
        with handling(signal.SIGALRM, time_out), \
                handling(signal.SIGTERM, end_program), \
                subscribe_manually(callback) as subscription:
            _profile.tick(1000, 10)
            with self.assertRaises(SystemExit):
                subscription.flush()
            self.assertEqual(subscription.stats()['errors'], 0)

    def test_what_it_leaves_behind_is_its_own_work(self):
        # The exception that it caught holds its frame, and what is there.
        dying, found = [], []

        class Left:
            def __del__(self):
                dying.append(1)
                _profile.tick(1000, 10)
                spin(0.001)
                dying.pop()

        def callback(batch):
            found.append(len(dying))
            left = Left()
            try:
                signal.raise_signal(signal.SIGALRM)
            except TimeoutError:
                del batch
            self.assertIsNotNone(left)
        with handling(signal.SIGALRM, time_out), \
                subscribe_manually(callback, sync=True) as subscription:
            _profile.tick(1000, 10)
            spin(0.01)
            self.assertEqual(subscription.stats()['errors'], 0)
        self.assertEqual(set(found), {0})

    def test_what_a_callback_makes_of_it_is_its_own(self):
        def callback(batch):
            try:
                signal.raise_signal(signal.SIGALRM)
            except TimeoutError as exc:
                raise ValueError from exc
        with handling(signal.SIGALRM, time_out), \
                support.catch_unraisable_exception() as caught, \
                subscribe_manually(callback, sync=True) as subscription:
            _profile.tick(1000, 10)
            subscription.flush()
            self.assertIs(caught.unraisable.exc_type, ValueError)
            self.assertGreater(subscription.stats()['errors'], 0)

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
        for sync in (False, True):
            with self.subTest(sync=sync):
                others = [subscribe(Recorder(), sync=n % 2) for n in range(4)]

                def callback(batch):
                    for other in others:
                        other.close()
                    subscription.close()
                subscription = subscribe(callback, sync=sync,
                                         batch_seconds=0.01)
                deadline = time.monotonic() + support.SHORT_TIMEOUT
                while (not subscription.closed
                       and time.monotonic() < deadline):
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
        for sync in (False, True):
            with self.subTest(sync=sync):
                self.check(callback, sync=sync)
                self.assertGreaterEqual(len(subscriptions), 5)
                while subscriptions:
                    subscriptions.pop().close()

    def test_it_flushes_itself(self):
        def callback(batch):
            subscription.flush()
        with subscribe(callback, batch_seconds=0.01) as subscription:
            spin(0.1)
        with subscribe(callback, sync=True) as subscription:
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
        self.both(callback)

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

    def test_it_recurses(self):
        depths = []

        def callback(batch):
            depths.append(callback.depth)
            callback.depth += 1
            spin(0.005)     # ticks fall into this
            callback.depth -= 1
        callback.depth = 0
        with subscribe(callback, sync=True, rate_hz=5000):
            spin(0.2)
        self.assertTrue(depths)
        self.assertEqual(max(depths), 0)

    @unittest.skipUnless(hasattr(os, 'fork'), 'needs os.fork()')
    def test_it_forks(self):
        pids = []

        def callback(batch):
            if len(pids) < 3:
                pid = os.fork()
                if not pid:
                    os._exit(0)
                pids.append(pid)
        for sync in (False, True):
            with self.subTest(sync=sync):
                self.check(callback, sync=sync)
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
                                   sync=_thread.get_ident() // 4096 % 2,
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

    def test_nothing_keeps_what_is_closed(self):
        kept = _delivery._synchronous
        before = list(kept)

        def close(batch):
            batch.subscription.close()
        for _ in range(100):
            subscription = subscribe(close, sync=True, rate_hz=10_000,
                                     max_samples=64, batch_samples=1)
            while not subscription.closed:
                spin(0.0001)
        for _ in range(20):
            subscription = subscribe(close, sync=True, rate_hz=1,
                                     max_samples=64, batch_samples=1)
            while not subscription.closed:
                subscription.flush()
        self.assertEqual(kept, before)


class SyncTest(SubscriberTest):

    def test_on_the_sampled_thread_before_it_goes_on(self):
        recorder = Recorder()
        where = []

        def callback(batch):
            recorder(batch)
            frame = sys._getframe(1)
            while frame is not None:
                where.append(frame.f_code.co_name)
                frame = frame.f_back
        with subscribe(callback, sync=True, rate_hz=2000):
            with running(lambda: spin(0.1)) as [thread]:
                pass
        own = [sample for batch, ident in zip(recorder.batches,
                                              recorder.threads)
               if ident == thread.ident for sample in batch]
        self.assertTrue(own)
        self.assertEqual({sample.thread.ident for sample in own},
                         {thread.ident})
        self.assertIn('spin', where)

    def test_work_of_subscribers_is_counted_apart(self):
        def burn(batch):
            spin(0.002)
        witness = Recorder()
        with subscribe(witness, rate_hz=1000), \
                subscribe(burn, sync=True, rate_hz=100):
            before = _profile.stats()['subscribers_wall_ns']
            started = time.perf_counter_ns()
            with running(lambda: spin(0.5)) as [thread]:
                pass
            life = time.perf_counter_ns() - started
            apart = _profile.stats()['subscribers_wall_ns'] - before
        found = witness.wall_ns(thread=thread.ident)
        self.assertGreater(apart, 0.03e9)
        self.assertLess(apart, life)
        self.assertAlmostEqual(found + apart, life, delta=0.05 * life)
        burned = [sample for sample in witness.samples
                  if any(frame.function.qualname.endswith('burn')
                         for frame in sample.stack)]
        self.assertEqual(burned, [])

    def test_a_helper_is_not_sampled(self):
        def burn(batch):
            spin(0.01)
        recorder = Recorder()
        with subscribe(recorder), \
                subscribe(burn, batch_samples=1, batch_seconds=0.01):
            spin(0.2)
        names = {frame.function.qualname for sample in recorder.samples
                 for frame in sample.stack}
        self.assertNotIn('SyncTest.test_a_helper_is_not_sampled.<locals>.burn',
                         names)
        self.assertGreater(recorder.batches[-1].stats['subscribers_wall_ns'],
                           0)


class RootsTest(SubscriberTest):

    def test_threads_that_only_served(self):
        # The outermost frames of a thread are noted when it first gives up
        # the GIL: for these, in the callback.
        self.addCleanup(sys.setswitchinterval, sys.getswitchinterval())
        sys.setswitchinterval(1e-5)
        done = threading.Event()

        def compete():
            while not done.is_set():
                pass

        def short():
            sum(range(100))
        profile_sampling.start(rate_hz=100)
        with running(compete, compete):
            with subscribe(lambda batch: time.sleep(0.0002), sync=True,
                           rate_hz=10_000, batch_samples=1):
                for _ in range(60):
                    with running(*[short] * 5):
                        pass
            done.set()
        profile = profile_sampling.stop()
        self.assertGreater(len(profile.threads), 300)
        # This one delivers the rest when it closes the subscription.
        own = threading.get_native_id()
        self.assertEqual(
            [sample for sample in profile.samples
             if sample.thread.native_id != own
             and any('deliver' in frame.function.qualname
                     for frame in sample.stack)], [])


if __name__ == '__main__':
    unittest.main()
