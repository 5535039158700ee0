"""Profiles as values: equal or not, and their sums."""

import pickle
import random
import unittest


from ..support import validator
from ..support.builders import Builder, example, process
from ..support.random_profiles import contents, random_profile, sum_of

SEEDS = range(12)


class EqualTest(unittest.TestCase):

    def test_equal(self):
        one, other = example(pid=1).profile(), example(pid=1).profile()
        self.assertEqual(one, one)
        self.assertEqual(one, other)
        self.assertEqual(hash(one), hash(other))
        self.assertEqual(len({one, other}), 1)
        self.assertEqual(pickle.loads(pickle.dumps(one)), one)

    def test_other_facts(self):
        one = example(pid=1).profile()
        for facts in ({'mode': 'cpu'}, {'rate_hz': 5}, {'depth_frames': 1},
                      {'start_time_ns': 5}, {'duration_ns': 5},
                      {'stats': {'ticks': 1}}, {'pid': 2}, {'names': 0},
                      {'python_version': '3.1'}):
            with self.subTest(facts=facts):
                self.assertNotEqual(example(**{'pid': 1} | facts).profile(),
                                    one)

    def test_other_samples(self):
        def profile(stack='a.f:1', **more):
            b = Builder()
            b.thread('MainThread')
            b.thread('other')
            more = {'wall_ns': 5} | more
            return b.sample('a.z', wall_ns=9).sample(stack, **more).profile()
        one = profile()
        self.assertEqual(profile(), one)
        waits = {'state': 'gil_wait', 'holder': (0, 'a.f:1')}
        for changes in ({'stack': 'a.f:2'}, {'stack': 'a.f:1 a.g:1'},
                        {'wall_ns': 6}, {'cpu_ns': 1}, {'count': 2},
                        {'thread': 1}, {'state': 'gc'},
                        {'labels': {'a': 'b'}}, {'task': ('T', 1)}, waits):
            with self.subTest(changes=changes):
                self.assertNotEqual(profile(**changes), one)
        for held in (1, 'a.f:1'), (-1, 'a.f:1'), (0, 'a.f:2'):
            with self.subTest(held=held):
                self.assertNotEqual(profile(**waits | {'holder': held}),
                                    profile(**waits))

    def test_other_types(self):
        profile = process(1)
        self.assertNotEqual(profile, 1)
        self.assertNotEqual(profile, None)
        self.assertIs(profile.__eq__(1), NotImplemented)


class SumTest(unittest.TestCase):

    def test_of_two_sessions_of_a_process(self):
        one = process(1, start_time_ns=100, stats={'ticks': 1}, ns=10)
        two = process(1, start_time_ns=10**12, stats={'ticks': 2}, ns=20)
        total = one + two
        self.assertEqual((total.pid, total.label_keys, total.stats,
                          total.total_wall_ns), (1, (), {'ticks': 3}, 30))

    def test_of_parts(self):
        whole = example(pid=1).profile()
        parts = list(whole.group_by('state').values())
        self.assertEqual(sum(parts), whole)
        self.assertEqual(sum(parts[1:], parts[0]), whole)
        self.assertEqual(sum(reversed(parts)), whole)
        # Counters are those of the session, not of a part.
        self.assertEqual(sum(parts).stats, whole.stats)

    def test_of_a_profile_and_itself(self):
        """Weights and counters go together: both are there twice."""
        whole = example(pid=1).profile()
        twice = whole + whole
        validator.check_profile(twice)
        self.assertEqual(twice.stats, {
            name: 2 * count for name, count in whole.stats.items()})
        for value_type in whole.value_types:
            self.assertEqual(twice.total(value_type.name),
                             2 * whole.total(value_type.name))
        self.assertEqual((twice.pid, twice.duration_ns, len(twice.samples)),
                         (1, whole.duration_ns, len(whole.samples)))
        parts = whole.group_by('state').values()
        self.assertEqual(sum([part + part for part in parts]), twice)
        self.assertEqual(sum(parts) + whole, twice)
        self.assertEqual(sum([whole] * 3), twice + whole)

    def test_of_parts_without_samples(self):
        whole = example(pid=1).profile()
        nothing = whole.focus('no such name')
        self.assertEqual(nothing + nothing, nothing)
        self.assertEqual(whole + nothing, whole)

    def test_of_parts_of_a_sum(self):
        whole = process(1) + process(2, 'b.x:1')
        self.assertEqual(sum(whole.group_by('pid').values()), whole)

    def test_with_something_else(self):
        one = process(1)
        for other in 1, None, 'x', 0.0:
            with self.subTest(other=other):
                for add in (lambda: one + other, lambda: other + one,
                            lambda: one - other):
                    with self.assertRaises(TypeError):
                        add()
        with self.assertRaises(TypeError):
            one + 0

    def test_versions_in_any_order(self):
        versions = '3.13.5', '3.14.1', '3.13.5'
        one, two, three = [process(pid, python_version=version)
                           for pid, version in enumerate(versions, 1)]
        for total in ((one + two) + three, three + (two + one),
                      (one + three) + two):
            self.assertEqual(total.python_version, '3.13.5, 3.14.1')

    def test_other_values(self):
        times = process(1)
        bytes_ = Builder(pid=1, value_types=(
            ('alloc', 'bytes'), ('cpu', 'nanoseconds'),
            ('wall', 'nanoseconds'))).sample('a.x', values=(1, 0, 7)).profile()
        total = times + bytes_
        self.assertEqual(total, bytes_ + times)
        self.assertEqual((total.total('alloc_bytes'), total.total_wall_ns,
                          total.total_count), (1, 1_007, 1))
        # Both have the clock that is compared.
        self.assertEqual((bytes_ - times).total.change, 7 - 1000)

    def test_sources_are_unchanged(self):
        one = process(1)
        one + process(2)
        self.assertEqual(one, process(1))

    def test_totals_and_order(self):
        for seed in SEEDS:
            rng = random.Random(seed)
            mode = rng.choice(['wall', 'cpu'])
            one, two, three = [random_profile(rng, mode=mode, pid=pid)
                               for pid in (5, 5, 6)]
            with self.subTest(seed=seed):
                self.assertEqual(one + two, two + one)
                self.assertEqual(one + three, three + one)
                self.assertEqual((one + two) + three, one + (two + three))
                self.assertEqual(
                    contents(one + two),
                    sum_of([contents(one), contents(two)]))
                for value_type in one.value_types:
                    self.assertEqual(
                        (one + three).total(value_type.name),
                        one.total(value_type.name)
                        + three.total(value_type.name))
