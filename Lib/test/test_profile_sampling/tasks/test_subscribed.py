"""Tasks as subscribers see them: the reference aggregator makes the profile
that the engine makes itself."""

import asyncio
from collections import Counter
from unittest import mock

from test.support import import_helper

import profile_sampling
from profile_sampling import label

from ..support.aggregator import Aggregator
from ..support.lives import lives, spend
from ..support.manual import first, manual
from ..support.sessions import _profile, checked
from ..support.subscribers import (
    SubscriberTest, closing, fill_tables, helper_busy, subscribe_manually)
from ..support.work import spin

_testcapi = import_helper.import_module('_testcapi')


def tearDownModule():
    asyncio.set_event_loop_policy(None)     # as it was


def told(profile):
    """{all that a sample is of: [values]}, of a profile."""
    found = {}
    for row in profile.samples:
        key = (row.stack, row.thread, row.state,
               tuple(row.labels.items()), row.task_name, row.task_id)
        values = found.setdefault(key, [0] * 5)
        for i, value in enumerate((
                row.count, row.cpu_ns, row.wall_ns,
                getattr(row, 'task_ns', 0), getattr(row, 'delay_ns', 0))):
            values[i] += value
    return {key: values for key, values in found.items() if any(values)}


def counted(profile):
    """What is known exactly: all rows but what samples say."""
    return {row.name: (row.finished, row.cancelled, row.steps, row.mean_ns,
                       row.p50_ns, row.p99_ns, row.longest_ns,
                       row.longest_step_ns) for row in profile.tasks()}


async def child(ns):
    with label(ns=ns):
        spend(ns)
        await asyncio.sleep(0)
        spend(ns)


async def unseen():
    await asyncio.sleep(0)


async def main():
    future = asyncio.get_running_loop().create_future()
    waiting = asyncio.create_task(parked(future), name='parked')
    await asyncio.gather(*[child(ns) for ns in (1, 10, 3_000_000)],
                         unseen())
    await asyncio.to_thread(spend, 1000)
    future.set_result(None)
    spend(7)
    await waiting


async def parked(future):
    await future


def begin_session():
    """Beside a subscription, so that what is counted begins anew."""
    _profile.start(manual=True, names=0)
    asyncio.run(main())
    _profile.stop()


def fail_to_take(subscription):
    """Ask for what waits, without memory: it is put back."""
    for n_allocations in 1, 5, 20:
        _testcapi.set_nomemory(n_allocations, n_allocations + 1)
        try:
            subscription._core.take()
        except MemoryError:
            continue
        finally:
            _testcapi.remove_mem_hooks()
        raise AssertionError('there was memory')


def stacks(profile):
    """{names of functions of this file, leaf first: wall time}."""
    found = Counter()
    for sample in profile.samples:
        found[tuple(frame.function.qualname for frame in sample.stack
                    if frame.function.filename == __file__
                    and '.test_' not in frame.function.qualname)
              ] += sample.wall_ns
    return found


class SubscribedTest(SubscriberTest):

    def assert_equal(self, found, table):
        """To the nanosecond in sum; what is shared may be rounded in
        another order."""
        found_rows, table_rows = told(found), told(table)
        self.assertEqual(found_rows.keys(), table_rows.keys())
        for key, values in table_rows.items():
            self.assertEqual(found_rows[key][:3], values[:3])
            for own, other in zip(found_rows[key][3:], values[3:]):
                self.assertAlmostEqual(own, other, delta=2, msg=key)
        self.assertEqual(lives(found), lives(table))
        self.assertEqual(counted(found), counted(table))
        for name in 'task_ns', 'delay_ns':
            self.assertEqual(found.total(name), table.total(name))
        self.assertEqual(
            [row.name for row in found.tasks()],
            [row.name for row in table.tasks()])

    def test_the_aggregator_equals_the_table_exactly(self):
        aggregator = Aggregator()
        with subscribe_manually(aggregator, task=True) as subscription:
            _profile.start(manual=True, names=0)
            asyncio.run(main())
            table = checked(_profile.snapshot())
            subscription.flush()
            found = checked(aggregator.profile())
            _profile.stop()
        self.assert_equal(found, table)
        self.assertEqual(lives(found)['child'][0], 2 * 3_000_011)
        self.assertGreater(found.total('delay_ns'), 0)

    def test_the_aggregator_equals_the_table(self):
        async def hog():
            for _ in range(10):
                spin(0.004)
                await asyncio.sleep(0.001)

        async def sleeper():
            for _ in range(20):
                await asyncio.sleep(0.002)

        async def work():
            await asyncio.gather(hog(), sleeper(), sleeper(), sleeper())
            await asyncio.to_thread(spin, 0.02)
        aggregator = Aggregator()
        with profile_sampling.subscribe(
                aggregator, tasks=True, batch_seconds=0.02):
            _profile.start()
            asyncio.run(work())
            table = checked(_profile.stop())
        found = checked(aggregator.profile())
        self.assertEqual(counted(found), counted(table))
        self.assertEqual(lives(found), lives(table))
        for name in 'task_ns', 'delay_ns':
            self.assertEqual(found.total(name), table.total(name))
        held = [self.held(profile) for profile in (found, table)]
        self.assertEqual(held[0].keys(), held[1].keys())
        for place, delay_ns in held[1].items():
            self.assertAlmostEqual(held[0][place], delay_ns, delta=100)

    def held(self, profile):
        """{place: delay}; the engine guesses modules that it has not met."""
        found = Counter()
        for row in profile.loop_holders():
            place = row.function.qualname, row.function.filename, row.line
            found[place] += row.delay_ns
        return found

    def test_what_was_before_is_none_of_its_business(self):
        aggregator = Aggregator()
        with manual():
            asyncio.run(main())
            with subscribe_manually(aggregator, task=True) as subscription:
                asyncio.run(main())
                subscription.flush()
                found = checked(aggregator.profile())
        with manual() as session:
            asyncio.run(main())
        self.assertEqual(lives(found), lives(session.profile))
        for name in 'task_ns', 'delay_ns':
            self.assertEqual(found.total(name), session.profile.total(name))

    def test_a_snapshot_clears_the_session_only(self):
        aggregator = Aggregator()
        with subscribe_manually(aggregator, task=True) as subscription:
            _profile.start(manual=True, names=0)
            asyncio.run(main())
            first = checked(_profile.snapshot(clear=True))
            asyncio.run(main())
            second = checked(_profile.stop())
            subscription.flush()
            found = checked(aggregator.profile())
        both = [tuple(map(sum, zip(lives(first)[name], lives(second)[name])))
                for name in lives(first)]
        self.assertEqual([lives(found)[name] for name in lives(first)], both)
        [finished] = {row.finished for row in found.tasks()
                      if row.name.endswith('.main')}
        self.assertEqual(finished, 2)

    def test_new_tables(self):
        aggregator = Aggregator()
        with subscribe_manually(aggregator, task=True) as subscription:
            for _ in range(3):
                asyncio.run(main())
                _profile.start(manual=True, names=0)
                _profile.stop()
            subscription.flush()
            found = checked(aggregator.profile())
        self.assertEqual(lives(found)['child'][0], 3 * 2 * 3_000_011)

    def closed_and_waiting(self, after):
        """What is told of main(), twice before and once while somebody
        subscribes to tasks, who gets it when `after` has run."""
        aggregator = Aggregator()
        with helper_busy() as release:
            asyncio.run(main())
            asyncio.run(main())
            subscription = subscribe_manually(aggregator, task=True)
            asyncio.run(main())
            with closing(subscription):
                after(subscription)
                release()
        return checked(aggregator.profile())

    def test_what_is_after_its_end_is_none_of_its_business(self):
        def work(_):
            asyncio.run(main())

        def fail_and_begin(subscription):
            fail_to_take(subscription)
            begin_session()
        with manual() as session:
            asyncio.run(main())
        for after in (id, work, fail_to_take, fail_and_begin,
                      lambda _: begin_session()):
            with self.subTest(after=after):
                found = self.closed_and_waiting(after)
                self.assertEqual(lives(found), lives(session.profile))
                self.assertEqual(counted(found), counted(session.profile))

    def test_taken_again(self):
        # It waits again with all that is in it, and more comes.
        aggregator = Aggregator()
        with manual() as session:
            for _ in range(3):
                asyncio.run(main())
        with subscribe_manually(aggregator, task=True) as subscription:
            for fails in False, True, True:
                asyncio.run(main())
                subscription._core.flush()
                if fails:
                    fail_to_take(subscription)
                else:
                    subscription.flush()
        found = checked(aggregator.profile())
        self.assertEqual(lives(found), lives(session.profile))
        self.assertEqual(counted(found), counted(session.profile))
        self.assertEqual(stacks(found), stacks(session.profile))

    def test_tables_that_begin_anew_while_a_batch_waits(self):
        renew = _profile.renew_if_full
        # Not by the thread that delivers.
        self.enterContext(mock.patch.object(_profile, 'renew_if_full'))
        aggregator = Aggregator()
        with manual() as session:
            for _ in range(3):
                asyncio.run(main())
        with helper_busy() as release:
            with manual():
                fill_tables()
                asyncio.run(main())
                subscription = subscribe_manually(aggregator, task=True)
            asyncio.run(main())
            subscription._core.flush()
            renew()
            asyncio.run(main())
            begin_session()
            self.assertEqual(subscription._core.batches, 2)
            release()
            subscription.close()
        found = aggregator.profile()    # its rows are of two tables
        self.assertEqual(lives(found), lives(session.profile))
        self.assertEqual(counted(found), counted(session.profile))

    def test_the_longest_are_kept(self):
        aggregator = Aggregator()
        with subscribe_manually(aggregator, task=True) as subscription:
            asyncio.run(main())
            subscription.flush()
            before = counted(aggregator.profile())
            _profile.start(manual=True, names=0)
            _profile.stop()
            first()
        self.assertEqual(counted(aggregator.profile()), before)

    def test_one_aggregator_of_two_subscriptions(self):
        aggregator = Aggregator()
        with manual() as session:
            asyncio.run(main())
            asyncio.run(main())
        with subscribe_manually(lambda batch: None):    # keeps the tables
            for _ in range(2):
                with subscribe_manually(aggregator, task=True):
                    asyncio.run(main())
        found = aggregator.profile()
        self.assertEqual(lives(found), lives(session.profile))
        self.assertEqual(counted(found), counted(session.profile))

    def test_who_subscribes_in_a_task_changes_nothing_of_it(self):
        async def subscribes(times):
            for _ in range(times):
                with subscribe_manually(lambda batch: None):
                    spend(1000)
            spend((3 - times) * 1000)
        for times in range(3):
            aggregator = Aggregator()
            with subscribe_manually(aggregator, task=True):
                asyncio.run(subscribes(times))
            [row] = [row for row in aggregator.profile().tasks()
                     if row.name.endswith('.subscribes')]
            self.assertEqual((row.steps, row.longest_step_ns), (1, 3000))

    def test_who_does_not_ask_gets_none(self):
        aggregator, batches = Aggregator(), []

        def add(batch):
            aggregator(batch)
            batches.append(batch)
        with subscribe_manually(add) as subscription:
            asyncio.run(main())
            subscription.flush()
        found = checked(aggregator.profile())
        self.assertEqual(
            [value_type.name for value_type in found.value_types],
            ['count', 'cpu_ns', 'wall_ns'])
        self.assertEqual(found.tasks(), [])
        for batch in batches:
            self.assertIsNone(batch.task_classes)
            self.assertEqual([*batch.task_waits(), *batch.delays()], [])
        # But whose samples they are.
        self.assertIn(f'{__name__}.child', {
            row.task_class for row in found.samples})
        self.assertIn(f'{__name__}.child', {
            sample.task_class for batch in batches for sample in batch})

    def test_filters_keep_waits_and_no_counters(self):
        batches = []
        with subscribe_manually(batches.append, task=True,
                                labels=('ns', '1')) as subscription:
            asyncio.run(main())
            subscription.flush()
        waits = [record for batch in batches for record in batch.task_waits()]
        self.assertEqual({record.labels['ns'] for record in waits},
                         {'1'})
        self.assertEqual({batch.task_classes for batch in batches}, {None})

    def test_batches(self):
        batches = []
        with subscribe_manually(batches.append, task=True) as subscription:
            asyncio.run(main())
            subscription.flush()
        classes = {row.function.qualname: row
                   for row in batches[-1].task_classes}
        self.assertEqual(classes['child'].finished, 3)
        self.assertEqual(classes['child'].running_ns, 2 * 3_000_011)
        self.assertEqual(classes['child'].lives.count, 3)
        self.assertEqual(
            sum(record.wall_ns for batch in batches
                for record in batch.task_waits()),
            sum(row.loop_wait_ns + row.awaiting_ns
                for row in classes.values()))
        self.assertGreater(sum(record.wall_ns for batch in batches
                               for record in batch.delays()), 0)
        of_work = {is_work for *_, function, is_work
                   in batches[-1].rows.labels.values() if function is not None}
        self.assertEqual(of_work, {True, False})
