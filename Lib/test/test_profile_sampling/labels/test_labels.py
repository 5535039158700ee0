"""Labels: what samples belong to.  Most tests tick the clock themselves."""

import asyncio
import contextlib
import contextvars
import gc
import os
import sys
import threading
import unittest
from collections import Counter

from test.support import threading_helper

import profile_sampling
from profile_sampling import label, labels, sample

from ..support.builders import Builder
from ..support.labelling import LabelTest, labelled, sums
from ..support.manual import manual, tick
from ..support.sessions import (
    SANITIZER, Session, _profile, checked)
from ..support.subscribers import subscribe_manually


def tearDownModule():
    asyncio.set_event_loop_policy(None)     # as it was


class BlocksTest(LabelTest):

    def test_ticks(self):
        with manual() as session:
            tick(1, 0)
            with label(route='/a'):
                tick(10, 0)
                with self.assertRaises(KeyError), label(user=7, route='/b'):
                    tick(100, 0)
                    raise KeyError
                tick(1000, 0)
            with label(user=7), label(route='/b'):
                tick(200, 0)
            tick(10_000, 0)
        self.assertEqual(sums(session.profile), {
            (): 10_001, labelled(route='/a'): 1010,
            labelled(route='/b', user='7'): 300})

    def test_names_that_are_no_texts(self):
        # The core is asked itself: keywords are texts.
        for name in None, 1, b'a', ('a',):
            with label(a=1):
                for call in (_profile.enter_labels,
                             lambda labels: _profile.sample(1, labels)):
                    with self.assertRaisesRegex(TypeError, 'must be str, not'):
                        call({'b': 2, name: 3})
                self.assertEqual(labels(), {'a': '1'})

    def test_set(self):
        def run():
            label(a=1).set()
            label(b=2).set()
            with label(a=3):
                self.assertEqual(labels(), {'a': '3', 'b': '2'})
            with label(a=None, c=None):
                self.assertEqual(labels(), {'b': '2'})
                tick(5, 0)
            tick(7, 0)
        with manual() as session:
            contextvars.copy_context().run(run)
        self.assertEqual(sums(session.profile),
                         {labelled(b='2'): 5, labelled(a='1', b='2'): 7})

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
        self.assertEqual(labels(), {'b': '2'})
        second.close()
        self.assertEqual(labels(), {})

    def test_reserved_names(self):
        for name in ('state', 'interpreter', 'task name', 'task id',
                     'thread id', 'thread name', 'thread native id',
                     'opcode', 'instruction offset', 'gil holder',
                     'gil holder place', 'gil holder interpreter',
                     'gil holder thread', 'gil holder thread id',
                     'gil holder thread native id'):
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
        [key] = sums(session.profile)
        self.assertTrue(dict(key)['key'].startswith('a'), key)

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
                tick(5_000_000, 0)
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
            tick(1_000_000, 0)
        self.assertEqual(found, [{}])
        self.assertEqual(sums(session.profile)[()], 5_000_000)

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
        with threading_helper.start_threads(threads):
            pass
        self.assertEqual(wrong, [])


class RecursionTest(LabelTest):

    def test_no_level_of_recursion_left(self):
        # To look a variable up in a context may take one, where another
        # variable lies in its place.
        with label(a=1):
            pass
        steps = range(200_000)
        errors = []

        def dive(item):
            nonlocal is_deepest
            try:
                max(items, key=dive)
            except RecursionError:
                if is_deepest:
                    is_deepest = False
                    for _ in steps:     # calls nothing
                        pass
            except Exception as error:
                errors.append(error)

        class Shifted:
            def __init__(self, shift):
                self.shift = shift

            def __repr__(self):
                if self.shift:
                    repr(Shifted(self.shift - 1))
                else:
                    dive(None)
                return ''

        def work(shift):
            for variable in variables:
                variable.set(None)
            repr(Shifted(shift))
        items = [None]
        self.addCleanup(sys.setrecursionlimit, sys.getrecursionlimit())
        sys.setrecursionlimit(1_000_000)
        with Session(rate_hz=10_000):
            for _ in range(20):
                variables = [contextvars.ContextVar(f'v{i}')
                             for i in range(12)]
                # max() and a call of Python code take three, repr() one more.
                for shift in range(3):
                    is_deepest = True
                    contextvars.Context().run(work, shift)
                    self.assertFalse(is_deepest)
        self.assertEqual(errors, [])


class SampleTest(LabelTest):

    def rows(self, profile):
        return {(tuple(row.labels.items()), row.state): (
            row.count, row.cpu_ns, row.wall_ns) for row in profile.samples}

    def test_weights(self):
        def event():
            for _ in range(3):
                self.assertIs(sample(7, kind='x'), True)
            sample()

        with manual() as session:
            with label(a=1):
                event()
                tick(5, 5)
            sample(0)
            sample(2**40, a=2)
        self.assertEqual(self.rows(session.profile), {
            (labelled(a='1', kind='x'), 'custom'): (21, 0, 0),
            (labelled(a='1'), 'custom'): (1, 0, 0),
            (labelled(a='1'), 'running'): (1, 5, 5),
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


class RowsTest(unittest.TestCase):

    def test_values(self):
        b = Builder(mode='cpu')
        b.sample('a.f:1', wall_ns=3, cpu_ns=6, labels={'route': '/a'})
        b.sample('a.f:1', wall_ns=6, cpu_ns=3,
                 labels={'route': '/b', 'user': '1'})
        b.sample('a.f:1', count=5, state='custom',
                 labels={'route': '/b', 'user': '1'})
        b.sample('a.f:1', wall_ns=1, cpu_ns=1, task=('T', 1))
        profile = b.profile()
        rows = profile.label_values('route')
        self.assertEqual(
            [(row.value, row.count, row.wall_ns, row.cpu_ns)
             for row in rows],
            [('/a', 1, 3, 6), ('/b', 6, 6, 3), (None, 1, 1, 1)])
        self.assertEqual(
            [(row.value, row.wall_ns) for row
             in profile.label_values('task')], [(None, 9), ('T', 1)])
        self.assertEqual(profile.label_keys, ('route', 'task', 'user'))
        for key in 'nothing', 'state':
            with self.assertRaisesRegex(ValueError, f"'{key}'.*: route, "):
                profile.label_values(key)
        with self.assertRaisesRegex(ValueError, 'there are no labels'):
            Builder().profile().label_values('a')


def resident_bytes():
    with open('/proc/self/statm') as file:
        return int(file.read().split()[1]) * os.sysconf('SC_PAGE_SIZE')


class ScaleTest(LabelTest):

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
        if not SANITIZER:
            self.assertLess(grown, 16 << 20)
        self.assertLess(stats['memory_bytes'], 16 << 20)
        self.assertEqual(stats['lost_labels'], 0)
        rows = session.profile.label_values('number')
        self.assertEqual(len([row for row in rows if row.value]), 10_000)

    @unittest.skipIf(SANITIZER, 'freed memory is kept')
    @unittest.skipUnless(os.path.exists('/proc/self/statm'), 'needs /proc')
    def test_changes_of_changes(self):
        """Each set is made from one that never comes again."""
        def change(numbers):
            for number in numbers:
                label(number=number).set()

        def nest(users):
            for user in users:
                with label(user=user):
                    for number in range(200):
                        with label(number=number):
                            pass
        for function in change, nest:
            with self.subTest(function=function.__name__):
                context = contextvars.Context()
                context.run(function, range(100))
                gc.collect()
                before = resident_bytes()
                context.run(function, range(1000 if function is nest
                                            else 200_000))
                gc.collect()
                self.assertLess(resident_bytes() - before, 16 << 20)

    def test_too_many_label_sets(self):
        """What there is no room for says so, and no time is lost."""
        names = [f'{number}' for number in range(270_000)]
        _profile.start(manual=True, names=0)
        for name in names:
            with label(number=name):
                tick(1, 1)
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
