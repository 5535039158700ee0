"""Which ticks find a thread where the ticks before did, by a manual clock."""

import re
import unittest

from profile_sampling import label
from profile_sampling._data import by_function, by_site, stays

from ..support import builders
from ..support.manual import leaf, line_of, manual, tick
from ..support.sessions import SessionTest


def stayed(profile, name):
    """(self, cumulative) of a function: each (records, (those after one of
    its own, those two ticks after one))."""
    for function, sums in by_function.running_records(profile._tables).items():
        if function.qualname.rpartition('.')[2] == name:
            return sums
    return None


def on_lines(profile):
    return {row.line: (row.sums.running_records, row.sums.stays)
            for row in by_site.Sites(profile._tables).rows}


class StaysTest(SessionTest):

    def test_at_one_place(self):
        with manual() as session:
            for _ in range(5):
                leaf(1)
        its = 5, (4, 3)
        self.assertEqual(stayed(session.profile, 'leaf'), (its, its))
        self.assertEqual([*on_lines(session.profile).values()], [its])

    def test_ticks_without_a_safepoint_between(self):
        with manual() as session:
            list(map(tick, [1] * 10, [1] * 10))
            list(map(tick, [1] * 2, [1] * 2))
        self.assertEqual([*on_lines(session.profile).values()],
                         [(10, (9, 8)), (2, (1, 0))])

    def test_lines_of_a_function(self):
        def place():
            tick(1, 1)
            tick(1, 1); tick(1, 1)
        with manual() as session:
            place()
        # The function stayed, the second line did once.
        its = 3, (2, 1)
        self.assertEqual(stayed(session.profile, 'place'), (its, its))
        self.assertEqual(on_lines(session.profile), {
            line_of(place, 1): (1, (0, 0)), line_of(place, 2): (2, (1, 0))})

    def test_callers_go_on(self):
        def one():
            tick(1, 1)

        def other():
            tick(1, 1)

        def caller():
            for _ in range(3):
                one()
                other()
        with manual() as session:
            caller()
        profile = session.profile
        self.assertEqual(stayed(profile, 'caller'),
                         ((0, (0, 0)), (6, (5, 4))))
        # The tick before was never there, the one before that was.
        for name in 'one', 'other':
            self.assertEqual(stayed(profile, name),
                             ((3, (0, 2)), (3, (0, 2))))

    def test_into_a_call_and_back(self):
        def inner():
            tick(1, 1)

        def outer():
            tick(1, 1)
            inner()
            tick(1, 1)
        with manual() as session:
            outer()
        self.assertEqual(stayed(session.profile, 'outer'),
                         ((2, (0, 1)), (3, (2, 1))))

    def test_other_labels_are_another_visit(self):
        with manual() as session:
            for value in 'aabb':
                with label(key=value):
                    leaf(1)
        self.assertEqual(stayed(session.profile, 'leaf')[0], (4, (2, 0)))
        part = session.profile.filter(labels={'key': 'a'})
        self.assertEqual(stayed(part, 'leaf')[0], (2, (1, 0)))

    def test_a_new_session_knows_nothing(self):
        with manual():
            leaf(1)
        with manual() as session:
            leaf(1)
        self.assertEqual(stayed(session.profile, 'leaf')[0], (1, (0, 0)))


class CarriedTest(SessionTest):
    """They are no values, and go wherever the samples go."""

    def profile(self):
        def one():
            tick(1, 1)
            tick(1, 1)
            tick(1, 1)

        def other():
            tick(1, 1)
        with manual() as session:
            for _ in range(2):
                one()
                other()
        return session.profile

    def all_of(self, profile):
        return {function.name: sums for function, sums
                in by_function.running_records(profile._tables).items()}

    def test_not_among_the_values(self):
        profile = self.profile()
        self.assertEqual([value_type.name for value_type
                          in profile.value_types],
                         ['count', 'cpu_ns', 'wall_ns'])
        self.assertNotIn(0, [sample.wall_ns for sample in profile.samples])
        self.assertTrue(len(profile._tables.stays().column(0)))

    def test_files(self):
        profile = self.profile()
        self.assertEqual(self.all_of(builders.reloaded(profile)),
                         self.all_of(profile))

    def test_sums(self):
        profile = self.profile()
        twice = profile + builders.reloaded(profile)
        one = self.all_of(profile)
        for name, sums in self.all_of(twice).items():
            self.assertEqual(
                sums, tuple([(2 * records, (2 * after, 2 * second))
                             for records, (after, second) in one[name]]))

    def test_parts(self):
        profile = self.profile()
        part = profile.filter(function=re.compile('one$'))
        self.assertEqual(stayed(part, 'one'), stayed(profile, 'one'))
        self.assertIsNone(stayed(part, 'other'))

    def test_without_them(self):
        b = builders.Builder().sample('a.f:1', count=3, wall_ns=3)
        self.assertEqual(stayed(b.profile(), 'f'), ((3, stays.NONE),) * 2)

    def test_rows_that_weigh_nothing_are_no_samples(self):
        b = builders.Builder()
        b.sample('a.main:1', count=0, stays=(0, 0, 2, 0, 0, 1))
        b.sample('a.main:1 a.f:2', count=3, wall_ns=3,
                 stays=(1, 1, 1, 0, 0, 0))
        profile = b.profile()
        self.assertEqual([sample.count for sample in profile.samples], [3])
        for its in profile, builders.reloaded(profile):
            self.assertEqual(stayed(its, 'main'),
                             ((0, (0, 0)), (3, (3, 1))))
            self.assertEqual(stayed(its, 'f'), ((3, (1, 0)),) * 2)


if __name__ == '__main__':
    unittest.main()
