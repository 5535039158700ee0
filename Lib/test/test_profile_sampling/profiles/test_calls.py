"""What called what: call trees, callers and callees."""

import random
import re
import time
import unittest

from ..support.builders import Builder
from ..support.random_profiles import random_profile

SEEDS = range(12)


def shape(node):
    """{name: (self, cum, children)} in wall ns; the tree must be shallow."""
    return {child.function.name: (child.self_wall_ns, child.cum_wall_ns,
                                  shape(child)) for child in node.children}


def small():
    b = Builder()
    b.sample('a.main:1 a.f:1 a.g:1', wall_ns=1)
    b.sample('a.main:1 a.f:2 a.g:2', wall_ns=2)
    b.sample('a.main:2 a.f:2', wall_ns=4)
    b.sample('a.main:3 a.g:1', wall_ns=8)
    return b.profile()


def sums(rows):
    rows = list(rows)
    return tuple(map(sum, zip(*rows)))


class CallTreeTest(unittest.TestCase):

    def test_from_roots(self):
        self.assertEqual(shape(small().call_tree()), {
            'a.main': (0, 15, {'a.g': (8, 8, {}),
                               'a.f': (4, 7, {'a.g': (3, 3, {})})})})

    def test_inverted(self):
        self.assertEqual(shape(small().call_tree(inverted=True)), {
            'a.g': (0, 11, {'a.main': (8, 8, {}),
                            'a.f': (0, 3, {'a.main': (3, 3, {})})}),
            'a.f': (0, 4, {'a.main': (4, 4, {})})})

    def test_by_line(self):
        root = small().call_tree(by='line')
        self.assertEqual(
            [(depth, node.function.name, node.line, node.cum_wall_ns)
             for depth, node in root.walk() if depth],
            [(1, 'a.main', 3, 8), (2, 'a.g', 1, 8),
             (1, 'a.main', 2, 4), (2, 'a.f', 2, 4),
             (1, 'a.main', 1, 3), (2, 'a.f', 2, 2), (3, 'a.g', 2, 2),
             (2, 'a.f', 1, 1), (3, 'a.g', 1, 1)])

    def test_root(self):
        for inverted in False, True:
            root = small().call_tree(inverted)
            self.assertEqual((root.function, root.line), (None, 0))
            self.assertEqual(root.self_values, (0, 0, 0))
            self.assertEqual(root.cum_values, (4, 0, 15))
            self.assertEqual(repr(root), '<CallNode all: count=4, cpu_ns=0, '
                                         'wall_ns=15>')
            for name in 'cum_bogus', 'self_bogus', 'bogus':
                with self.assertRaisesRegex(AttributeError, 'bogus'):
                    getattr(root, name)

    def test_samples_without_a_stack_are_the_root(self):
        b = Builder()
        b.sample('', wall_ns=5, state='unsampled')
        for inverted in False, True:
            root = b.profile().call_tree(inverted)
            self.assertEqual((root.self_wall_ns, root.cum_wall_ns), (5, 5))
            self.assertEqual(root.children, [])

    def test_places_of_holders_are_not_in_the_tree(self):
        b = Builder()
        b.sample('a.f:1', wall_ns=1, state='gil_wait',
                 holder=(0, 'b.only_held:1'))
        for inverted in False, True:
            self.assertEqual(shape(b.profile().call_tree(inverted)),
                             {'a.f': (1, 1, {})})

    def test_deep_stacks(self):
        # The deepest that a session keeps; nothing may call itself.
        b = Builder()
        b.sample('a.f:1 ' * 16_384, wall_ns=3)
        for inverted in False, True:
            nodes = list(b.profile().call_tree(inverted).walk())
            self.assertEqual(nodes[-1][0], 16_384)
            self.assertEqual({node.cum_wall_ns for _, node in nodes}, {3})

    def test_trees_add_up(self):
        for seed in SEEDS:
            profile = random_profile(random.Random(seed))
            for inverted in False, True:
                for by in 'function', 'line':
                    with self.subTest(seed=seed, inverted=inverted, by=by):
                        self.check(profile, inverted, by)

    def check(self, profile, inverted, by):
        root = profile.call_tree(inverted, by=by, idle=True)
        nodes = [node for _, node in root.walk()]
        self.assertEqual(root.cum_values,
                         sums([sample.values for sample in profile.samples]))
        for node in nodes:
            parts = [node.self_values,
                     *[child.cum_values for child in node.children]]
            self.assertEqual(node.cum_values, sums(parts))
            own = [child.cum_values[profile._tables.own]
                   for child in node.children]
            self.assertEqual(own, sorted(own, reverse=True))
        rows = (profile.functions(idle=True) if by == 'function'
                else profile.lines(idle=True))
        if inverted:
            # The first level is what ran: the self values of all rows.
            found = {(node.function, node.line): node.cum_values
                     for node in root.children}
        else:
            found = {}
            for node in nodes[1:]:
                key = node.function, node.line
                found[key] = sums([found.get(key, (0, 0, 0)),
                                   node.self_values])
        expected = {(row.function, getattr(row, 'line', 0)): row.self_values
                    for row in rows}
        zero = 0, 0, 0
        for key in {*found, *expected}:
            self.assertEqual(found.get(key, zero), expected.get(key, zero))

    def test_large_trees(self):
        # Some 170,000 nodes take 0.2 s; if time grew with their square, or
        # with that of the depth, it would be minutes.
        rng = random.Random(1)
        b = Builder()
        for _ in range(5_000):
            b.sample(' '.join([f'm.f{rng.randrange(40)}'
                               for _ in range(35)]), wall_ns=1)
        profile = b.profile()
        for inverted in False, True:
            began = time.process_time()
            root = profile.call_tree(inverted)
            self.assertTrue(root.children)
            self.assertLess(time.process_time() - began, 5)


class NeighboursTest(unittest.TestCase):

    def names(self, rows):
        return [(row.function and row.function.name, row.wall_ns)
                for row in rows]

    def test_callers(self):
        self.assertEqual(self.names(small().callers('a.g')),
                         [('a.main', 8), ('a.f', 3)])
        self.assertEqual(self.names(small().callers('main')), [(None, 15)])
        self.assertEqual(small().callers('nobody'), [])

    def test_callees(self):
        self.assertEqual(self.names(small().callees('a.main')),
                         [('a.g', 8), ('a.f', 7)])
        self.assertEqual(self.names(small().callees('a.f')),
                         [(None, 4), ('a.g', 3)])
        self.assertEqual(self.names(small().callees('a.g')), [(None, 11)])

    def test_recursion(self):
        b = Builder()
        b.sample('a.main a.f a.g a.f a.h', wall_ns=1)
        b.sample('a.main a.f a.f', wall_ns=2)
        profile = b.profile()
        self.assertEqual(self.names(profile.callers('a.f')), [('a.main', 3)])
        self.assertEqual(self.names(profile.callees('a.f')),
                         [(None, 2), ('a.h', 1)])

    def test_several_that_match_are_one(self):
        profile = small()
        pattern = re.compile('[fg]$')
        self.assertEqual(self.names(profile.callers(pattern)),
                         [('a.main', 15)])
        self.assertEqual(self.names(profile.callees(pattern)), [(None, 15)])

    def test_what_is_no_function(self):
        for method in small().callers, small().callees:
            with self.assertRaisesRegex(TypeError, 'not 5'):
                method(5)

    def test_rows_add_up(self):
        for seed in SEEDS:
            profile = random_profile(random.Random(seed))
            for row in profile.functions():
                with self.subTest(seed=seed, function=row.function.name):
                    callers = profile.callers(row.function)
                    callees = profile.callees(row.function)
                    self.assertEqual(
                        sums([one.values for one in callers]),
                        row.cum_values)
                    self.assertEqual(
                        sums([one.values for one in callees]),
                        row.cum_values)
                    self.assertEqual(
                        [one.values for one in callees
                         if one.function is None] or [(0, 0, 0)],
                        [row.self_values])
                    self.assertNotIn(row.function, [
                        one.function for one in (*callers, *callees)])
