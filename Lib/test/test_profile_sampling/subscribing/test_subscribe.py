"""Subscriptions: what a subscriber gets, and when.

See InternalDocs/profile_sampling/subscribers.md.
"""

import contextlib
import gc
import math
import os
import threading
import time
import unittest
from collections import Counter

from test import support

import profile_sampling

from ..support.frozen import frozen_time
from ..support.imports import modules_loaded_by
from ..support.manual import first, second, tick
from ..support.subscribers import (
    NO_TIME, Recorder, SubscriberTest, running, subscribe_manually)
from ..support.work import spin

subscribe = profile_sampling.subscribe


class BatchesTest(SubscriberTest):

    def record(self, work):
        recorder = Recorder()
        with subscribe_manually(recorder):
            work()
        return recorder

    def test_weights_are_exact(self):
        recorder = self.record(lambda: (first(), second(), first()))
        found = Counter()
        for sample in recorder.samples:
            found[sample.stack[0].function.qualname, sample.cpu_ns,
                  sample.wall_ns] += sample.count
        self.assertEqual(found, {('first', 4000, 3000): 2,
                                 ('second', 6000, 5000): 1})

    def test_moments_add_up_to_samples(self):
        recorder, moments = Recorder(), Recorder()
        with subscribe_manually(recorder), \
                subscribe_manually(moments, times=65536):
            for work in (first, second) * 20:
                work()
        sums = [Counter(), Counter()]
        for found, samples in zip(sums, (recorder.samples, moments.samples)):
            for sample in samples:
                if sample.count:
                    found[sample.key] += sample.wall_ns
        self.assertEqual(*sums)
        self.assertLess(len(recorder.samples), 10)
        self.assertEqual(sum([s.count == 1 for s in moments.samples]), 40)
        self.assertFalse([s for s in moments.samples if s.is_merged])

    def test_rows_have_the_same_numbers_in_all_batches(self):
        recorder = Recorder()
        with subscribe_manually(recorder) as subscription:
            for work in first, second, first:
                work()
                subscription.flush()
        one, two, three = [
            {sample.key: sample.stack for sample in batch if sample.count}
            for batch in recorder.batches[:3]]
        self.assertTrue(one)
        self.assertEqual(one, three)
        self.assertTrue(one.keys().isdisjoint(two))
        self.assertIs(recorder.batches[0].rows, recorder.batches[2].rows)

    def test_leaf(self):
        recorder = Recorder()
        with subscribe_manually(recorder, names=3):
            for _ in range(5):      # the interpreter specializes it
                first()
        *_, sample = [sample for sample in recorder.samples if sample.count]
        self.assertEqual(sample.callee.name, '_profile.tick')
        self.assertEqual(sample.opname, 'CALL_BUILTIN_FAST')
        self.assertEqual(sample.gil_wait_ns, 0)
        self.assertEqual(sample.thread.ident, threading.get_ident())
        self.assertEqual(sample.thread.native_id,
                         threading.get_native_id())

    def test_samples_of_a_state_are_in_order(self):
        recorder = Recorder()
        with subscribe(recorder, rate_hz=5000, batch_seconds=0.01,
                       moments=True):
            spin(0.2)
        own = [sample.time_ns for sample in recorder.samples
               if sample.thread.ident == threading.get_ident()
               and sample.state == 'running' and not sample.is_residue]
        self.assertEqual(own, sorted(own))
        self.assertGreater(len(own), 20)
        self.assertLess(abs(time.monotonic_ns() - own[-1]), 10**9)

    def test_batches_come_while_it_runs(self):
        recorder = Recorder()
        with subscribe(recorder, batch_samples=10, batch_seconds=3600):
            deadline = time.monotonic() + support.SHORT_TIMEOUT
            while not recorder.batches and time.monotonic() < deadline:
                spin(0.01)
            self.assertTrue(recorder.batches)
        self.assertNotEqual(recorder.threads[0], threading.get_ident())
        recorder = Recorder()
        with subscribe(recorder, batch_samples=60_000, batch_seconds=0.01):
            deadline = time.monotonic() + support.SHORT_TIMEOUT
            while not recorder.batches and time.monotonic() < deadline:
                spin(0.01)
            self.assertTrue(recorder.batches)

    def test_frozen_time(self):
        # PITFALLS L27.
        got = threading.Event()
        with frozen_time():
            with subscribe(lambda batch: got.set(),
                           batch_seconds=0.05) as subscription:
                self.assertTrue(got.wait(support.SHORT_TIMEOUT))
        self.assertLess(abs(time.time_ns() - subscription.start_time_ns),
                        3600 * 10**9)

    def test_blocked_threads_are_told_meanwhile(self):
        found = []

        def add(batch):
            found.append(sum([sample.wall_ns for sample in batch
                              if sample.state == 'waiting']))
        with subscribe(add, batch_seconds=0.05) as subscription:
            time.sleep(0.5)
            before = len(found)
        self.assertGreater(before, 3)
        self.assertLess(max(found), 0.4e9)
        self.assertAlmostEqual(
            sum(found), time.monotonic_ns() - subscription.start_ns,
            delta=0.1e9)


class NamesTest(SubscriberTest):

    def test_they_cost_nothing_before(self):
        modules = modules_loaded_by('import profile_sampling')
        self.assertIn('profile_sampling', modules)
        self.assertNotIn('profile_sampling._subscribing', modules)


class FullTest(SubscriberTest):
    """A buffer that is full: what has no space is lost, and says so."""

    def test_samples_of_one_stack_are_merged(self):
        recorder = Recorder()
        with subscribe_manually(recorder, max_events=16,
                                batch_events=16) as subscription:
            for _ in range(100):
                first()
            stats = subscription.stats()
        self.assertEqual(recorder.wall_ns(), 300_000)
        self.assertEqual(stats['lost'], 0)
        # The last 16 were not weighed yet when it was read.
        self.assertGreater(stats['merged'], 60)
        self.assertTrue([s for s in recorder.samples if s.is_merged])

    def test_what_is_lost_is_told(self):
        code = '\n'.join(['tick(1000, 1000)'] * 100)
        recorder = Recorder()
        with subscribe_manually(recorder, max_events=16,
                                batch_events=16) as subscription:
            exec(code)
        stats = subscription.stats()
        lost = [s for s in recorder.samples if s.state == 'lost']
        self.assertEqual({s.thread.ident for s in lost},
                         {threading.get_ident()})
        self.assertEqual(recorder.wall_ns(), 100_000)
        self.assertGreater(stats['lost'], 50)
        self.assertEqual(stats['lost_wall_ns'],
                         sum([s.wall_ns for s in lost]))

    def test_too_many_moments_become_coarser(self):
        recorder = Recorder()
        with subscribe_manually(recorder, max_events=16,
                                batch_events=16, times=16) as subscription:
            for _ in range(100):
                first()
        self.assertEqual(recorder.wall_ns(), 300_000)
        self.assertEqual(subscription.stats()['lost'], 0)
        self.assertLessEqual(len(recorder.samples), 16)
        self.assertGreater(len(recorder.samples), 1)

    def test_tables_begin_anew_when_they_are_full(self):
        # More tasks than half of what the tables hold, and than 2 MB.
        import asyncio
        recorder = Counter()
        serials = set()

        def add(batch):
            serials.add(batch.rows.serial)
            for sample in batch:
                recorder[sample.task_name] += sample.wall_ns

        async def task():
            tick(10, 10)

        async def main():
            for i in range(100_000):
                await asyncio.create_task(task(), name=f'task {i}')

        with subscribe_manually(add, batch_seconds=0.01):
            asyncio.run(main())
        asyncio.set_event_loop_policy(None)     # as it was
        self.assertGreater(len(serials), 1)
        self.assertLess(len(serials), 10)
        self.assertEqual([recorder[f'task {i}'] for i in range(100_000)],
                         [10] * 100_000)


class FiltersTest(SubscriberTest):

    def test_threads(self):
        recorder = Recorder()
        ready = threading.Event()
        done = threading.Event()

        def work():
            ready.wait()
            spin(0.1)
            done.set()
        with running(work, work) as threads:
            with subscribe(recorder, threads=threads[:1]):
                ready.set()
                done.wait()
                time.sleep(0.1)
        self.assertEqual({sample.thread.ident for sample in recorder.samples},
                         {threads[0].ident})

    def test_labels_that_nothing_can_have(self):
        for text in 'x' * 5000, '\u20ac' * 2000, 'a\0b':
            for labels in {'route': text}, {text: '/a'}:
                with self.subTest(text=text[:3]), \
                        self.assertRaisesRegex(ValueError, 'labels'):
                    subscribe(print, labels=labels)

    def test_labels(self):
        recorder = Recorder()
        with subscribe_manually(recorder, labels=('route', '/a')):
            first()
            with profile_sampling.label(route='/a', user='x'):
                second()
            with profile_sampling.label(route='/b'):
                first()
        found = [sample for sample in recorder.samples if sample.wall_ns]
        self.assertEqual([sample.labels for sample in found],
                         [{'route': '/a', 'user': 'x'}])
        self.assertEqual(found[0].wall_ns, 5000)

    def test_labels_that_are_hidden(self):
        with contextlib.ExitStack() as stack:
            recorders = {}
            for route in '/a', '/b':
                recorders[route] = Recorder()
                stack.enter_context(subscribe_manually(
                    recorders[route], labels=('route', route)))
            with profile_sampling.label(route='/a'):
                profile_sampling.sample(route='/b')
        custom = {route: [sample.labels for sample in recorder.samples
                          if sample.state == 'custom']
                  for route, recorder in recorders.items()}
        self.assertEqual(custom, {'/a': [], '/b': [{'route': '/b'}]})

    def test_no_thread_can_be_started(self):
        old = threading.stack_size(1 << 50)
        try:
            with self.assertRaisesRegex(RuntimeError, 'thread'):
                subscribe(Recorder())
        finally:
            threading.stack_size(old)
        self.assert_idle()
        recorder = Recorder()
        with subscribe(recorder):
            spin(0.02)
        self.assertTrue(recorder.samples)

    def test_wrong_arguments(self):
        cases = [
            (TypeError, 'callable', [1], {}),
            (ValueError, 'rate_hz', [print], {'rate_hz': 0}),
            (TypeError, 'rate_hz', [print], {'rate_hz': None}),
            (TypeError, 'rate_hz', [print], {'rate_hz': '9'}),
            (ValueError, 'max_samples', [print], {'max_samples': 1}),
            (ValueError, 'batch_seconds', [print], {'batch_seconds': 0}),
            (ValueError, 'batch_seconds', [print], {
                'batch_seconds': math.nan}),
            (TypeError, 'batch_seconds', [print], {'batch_seconds': '1'}),
            (TypeError, 'batch_seconds', [print], {'batch_seconds': None}),
            (ValueError, 'batch_samples', [print], {'batch_samples': 0}),
            (TypeError, 'threads', [print], {'threads': ['main']}),
            (TypeError, 'threads', [print], {'threads': 5}),
            (ValueError, 'threads', [print], {'threads': [-1]}),
            (ValueError, 'threads', [print], {'threads': [10 ** 30]}),
            (TypeError, 'labels', [print], {'labels': ['route']}),
            (ValueError, 'depth_frames', [print], {'depth_frames': 0}),
            (ValueError, 'names', [print], {'names': 'ALL'}),
        ]
        for error, pattern, args, options in cases:
            with self.subTest(**options):
                with self.assertRaisesRegex(error, pattern):
                    subscribe(*args, **options)
        self.assert_idle()


class RecordsTest(SubscriberTest):

    def test_threads_start_and_end(self):
        recorder = Recorder()
        with subscribe(recorder) as subscription:
            subscription.flush()
            with running(lambda: spin(0.02)) as threads:
                pass
        found = [(record.kind, record.thread.ident)
                 for record in recorder.records if record.thread]
        ident = threads[0].ident
        self.assertIn(('thread start', ident), found)
        self.assertIn(('thread end', ident), found)
        [end] = [record for record in recorder.records
                 if record.kind == 'thread end'
                 and record.thread.ident == ident]
        residue = sum([sample.wall_ns for sample in recorder.samples
                       if sample.thread.ident == ident
                       and sample.is_residue])
        self.assertLessEqual(end.wall_ns, residue)

    def test_collections(self):
        recorder = Recorder()
        with subscribe(recorder):
            gc.collect(1)
            gc.collect(2)
        found = [record for record in recorder.records if record.kind == 'gc'
                 and record.thread.ident == threading.get_ident()]
        generations = [record.count for record in found]
        self.assertIn(1, generations)
        self.assertIn(2, generations)
        full = max(found, key=lambda record: record.count)
        self.assertGreater(full.wall_ns, 1000)

    def test_rates(self):
        recorder = Recorder()
        with subscribe(recorder, rate_hz=100, moments=True) as subscription:
            self.assertEqual(subscription.rate_hz, 100)
            subscription.set_rate(5000)
            self.assertEqual(subscription.rate_hz, 5000)
            spin(0.1)
            with self.assertRaises(ValueError):
                subscription.set_rate(0)
        self.assertEqual([record.count for record in recorder.records
                          if record.kind == 'rate'], [5000])
        self.assertGreater(len(recorder.samples), 30)

    def test_counters_come_with_each_batch(self):
        recorder = Recorder()
        with subscribe(recorder):
            spin(0.2)
        self.assertGreater(recorder.batches[-1].stats['ticks'], 5)

    @unittest.skipUnless(hasattr(os, 'fork'), 'needs os.fork()')
    def test_fork(self):
        recorder = Recorder()
        subscription = subscribe(recorder, batch_seconds=3600)
        spin(0.02)
        pid = os.fork()
        if not pid:
            status = 1
            try:
                status = 10 * (not subscription.closed) \
                    + 20 * (not subscription.ended_by_fork)
                spin(0.02)
                subscription.close()
                status += 40 * bool(recorder.batches)
                again = Recorder()
                with subscribe(again, batch_seconds=NO_TIME):
                    spin(0.05)
                status += 80 * (not again.samples)
            finally:
                os._exit(status)
        _, status = os.waitpid(pid, 0)
        subscription.close()
        self.assertEqual(os.waitstatus_to_exitcode(status), 0)
        self.assertFalse(subscription.ended_by_fork)
        self.assertIn('fork', recorder.kinds())

    @unittest.skipUnless(hasattr(os, 'fork'), 'needs os.fork()')
    def test_fork_while_the_thread_wakes_up(self):
        # It has been rung, but waits for the GIL, which the fork has.
        with subscribe(Recorder(), rate_hz=5000, batch_samples=1,
                       batch_seconds=3600):
            for _ in range(5):
                spin(0.03)
                pid = os.fork()
                if not pid:
                    os._exit(self.is_woken_in_a_child())
                support.wait_process(pid, exitcode=1)

    def is_woken_in_a_child(self):
        recorder = Recorder()
        subscribe(recorder, rate_hz=5000, batch_samples=1, batch_seconds=3600)
        end = time.monotonic() + 20
        while not recorder.batches and time.monotonic() < end:
            spin(0.01)
        return bool(recorder.batches)

    @unittest.skipUnless(hasattr(os, 'fork'), 'needs os.fork()')
    def test_fork_while_another_thread_closes_it(self):
        began = threading.Event()
        done = threading.Event()

        def callback(batch):
            began.set()
            done.wait()
        subscription = subscribe(callback, batch_seconds=3600)
        spin(0.02)
        thread = threading.Thread(target=subscription.close)
        thread.start()
        began.wait()
        pid = os.fork()
        if not pid:
            # Who delivers is the parent's thread, and is not here.
            subscription.close()
            os._exit(0)
        done.set()
        thread.join()
        support.wait_process(pid, exitcode=0)

    @unittest.skipUnless(hasattr(os, 'fork'), 'needs os.fork()')
    def test_fork_while_a_callback_runs(self):
        began = threading.Event()
        done = threading.Event()

        def callback(batch):
            began.set()
            done.wait()
        with subscribe(callback, batch_seconds=NO_TIME) as subscription:
            spin(0.02)
            began.wait()
            pid = os.fork()
            if not pid:
                # Its lock is held for ever here.
                subscription.flush()
                subscription.close()
                os._exit(0)
            done.set()
        support.wait_process(pid, exitcode=0)
