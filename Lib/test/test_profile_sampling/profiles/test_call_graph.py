"""The tree and the graph that exports are made of, against sums by sample."""

import random
import unittest

import _profile
from profile_sampling._data.call_graph import CallGraph
from profile_sampling._data.call_paths import CallPaths
from profile_sampling._data.measures import measures
from profile_sampling._data.sums import packed
from profile_sampling._data.tables import FRAME_COLUMNS

from ..support.builders import Builder, example
from ..support.hard_profiles import recursive
from ..support.random_profiles import random_profile


class PathsTest(unittest.TestCase):

    def test_known_answer(self):
        b = Builder()
        b.sample('a.main:1 b.g:2', wall_ns=1)
        b.sample('a.main:3 a.f:4', wall_ns=2)
        b.sample('a.main:3 b.g:5', wall_ns=4)
        paths = CallPaths(b.profile()._tables)
        self.assertEqual([function.name for function, _ in paths.places],
                         ['a.f', 'a.main', 'b.g'])
        self.assertEqual(list(paths.parents), [0, 0, 1, 1])
        self.assertEqual(list(paths.place), [-1, 1, 0, 2])
        self.assertEqual(list(map(tuple, paths.stacks(range(4), 'abc'))),
                         [(), ('b',), ('b', 'a'), ('b', 'c')])
        self.assertEqual([*map(tuple, paths.stacks([0, 3], 'abc'))],
                         [(), ('b', 'c')])
        children = paths.children()
        self.assertEqual([list(children(node)) for node in range(4)],
                         [[1], [2, 3], [], []])
        _, _, wall = paths.self_sums()
        self.assertEqual(list(wall), [0, 0, 2, 5])
        self.assertEqual(list(paths.cumulative(wall)), [7, 7, 2, 5])
        self.assertEqual(paths.of_places(paths.cumulative(wall)), [2, 7, 5])
        paths = CallPaths(b.profile()._tables, by_line=True)
        self.assertEqual([(function.name, line)
                          for function, line in paths.places],
                         [('a.f', 4), ('a.main', 1), ('a.main', 3),
                          ('b.g', 2), ('b.g', 5)])
        self.assertEqual(list(paths.parents), [0, 0, 1, 0, 3, 3])

    def test_only_stacks_of_samples(self):
        # Who held the GIL is on no stack of a sample.
        paths = CallPaths(example().profile()._tables)
        names = [function.name for function, _ in paths.places]
        self.assertIn('app.spin', names)
        parents = set(paths.parents)
        own = paths.self_sums()
        for node in range(1, len(paths)):
            self.assertTrue(node in parents
                            or any(sums[node] for sums in own), node)


class GraphTest(unittest.TestCase):

    def profiles(self):
        rng = random.Random(5)
        yield recursive().profile()
        for _ in range(20):
            yield random_profile(rng, samples=60)

    def test_against_samples(self):
        for profile in self.profiles():
            paths = CallPaths(profile._tables)
            graph = CallGraph(paths, [function for function, _
                                      in paths.places])
            own = paths.self_sums()[2]
            cum = paths.cumulative(own)
            functions, alone, calls, ends, inner = {}, {}, {}, {}, {}
            for sample in profile.samples:
                stack = [frame.function for frame in sample.stack]
                pairs = list(zip(stack[1:], stack))
                innermost = {}
                for caller, called in pairs:
                    innermost.setdefault(caller, called)
                if stack and stack[0] in innermost:
                    # What it did itself was in its innermost frame.
                    del innermost[stack[0]]
                for table, keys in (
                        (functions, set(stack)), (alone, stack[:1]),
                        (calls, set(pairs)), (ends, pairs[:1]),
                        (inner, innermost.items())):
                    for key in keys:
                        table[key] = table.get(key, 0) + sample.wall_ns
            pairs = [(graph.keys[caller], graph.keys[called])
                     for caller, called in graph.calls]
            for expected, keys, sums in (
                    (functions, graph.keys, graph.of_functions(cum)),
                    (alone, graph.keys, graph.of_functions_alone(own)),
                    (calls, pairs, graph.of_calls(cum)),
                    (ends, pairs, graph.of_calls_alone(own)),
                    (inner, pairs, graph.of_innermost_calls(cum))):
                found = dict(zip(keys, sums, strict=True))
                self.assertEqual(
                    {key: value for key, value in found.items() if value},
                    {key: value for key, value in expected.items() if value})

    def test_many_functions(self):
        # Then calls are searched for, not found in a table.
        for profile in self.profiles():
            paths = CallPaths(profile._tables)
            functions = packed(range(len(paths.places)))
            few, many = [_profile.find_calls(
                paths.parents, paths.place, functions, number, False)
                for number in (len(functions), 1 << 20)]
            self.assertEqual(few, many)

    def test_what_a_function_called_adds_up(self):
        for profile in self.profiles():
            paths = CallPaths(profile._tables, by_line=True)
            graph = CallGraph(paths, [function for function, _
                                      in paths.places], by_place=True)
            own = paths.self_sums()[2]
            sums = dict(zip(graph.keys, graph.of_functions_alone(own)))
            for (place, _), value in zip(
                    graph.calls,
                    graph.of_innermost_calls(paths.cumulative(own))):
                self.assertGreaterEqual(value, 0)
                sums[paths.places[place][0]] += value
            self.assertEqual(sums, {row.function: row.cum_wall_ns
                                    for row in profile.functions()})


class BrokenTest(unittest.TestCase):
    """Columns that do not fit together are refused, not read beyond."""

    def setUp(self):
        tables = recursive().profile()._tables
        self.nodes, self.samples = tables.nodes, tables.samples
        self.n_frames = len(tables.frames_view()) // FRAME_COLUMNS
        self.zeros = packed([0] * self.n_frames)
        self.parents, self.places, _ = _profile.call_paths(
            self.nodes, self.samples, 3, self.zeros, 1)

    def assert_refused(self, call, *args):
        with self.assertRaises(ValueError):
            call(*args)

    def test_paths(self):
        for args in ((b'', self.samples, 3, self.zeros, 1),
                     (self.nodes[:-1], self.samples, 3, self.zeros, 1),
                     (self.nodes[:16], self.samples, 3, self.zeros, 1),
                     (self.nodes, self.samples[:-8], 3, self.zeros, 1),
                     (self.nodes, self.samples, 3, self.zeros[:-1], 1),
                     (self.nodes, self.samples, 3, self.zeros, 0),
                     (bytes(8), b'', 3, b'', -1)):
            self.assert_refused(_profile.call_paths, *args)
            self.assert_refused(_profile.sum_stacks, *args)

    def test_calls(self):
        one = packed([0])
        _profile.find_calls(self.parents, self.places, one, 1, False)
        later = packed([0, 0, 2])
        side = packed([0, 0, 0, 1])
        for args in ((b'', b'', one, 1, False),
                     (self.parents, self.places[:-4], one, 1, False),
                     (self.parents, self.places, packed([]), 1, False),
                     (self.parents, self.places, packed([1]), 1, False),
                     (later, packed([-1, 0, 0]), one, 1, False),
                     (side, packed([-1, 0, 0, 0]), one, 1, False),
                     (packed([0]), packed([-1]), b'', -1, False)):
            self.assert_refused(_profile.find_calls, *args)

    def test_sums(self):
        self.assert_refused(_profile.sum_subtrees, self.parents, bytes(8))
        self.assert_refused(_profile.sum_subtrees, packed([0, 1]), bytes(16))
        self.assert_refused(_profile.sum_by_key, packed([0, 1]), bytes(16), 1)
        self.assert_refused(_profile.sum_by_key, packed([0]), bytes(16), 1)
        self.assert_refused(_profile.sum_by_key, packed([0]), bytes(8), -1)

    def test_sums_that_no_memory_holds(self):
        one = packed([0])
        for n_keys in 1 << 59, 1 << 60, 1 << 61, 1 << 62, (1 << 63) - 1:
            with self.subTest(n_keys), self.assertRaises(MemoryError):
                _profile.sum_by_key(one, bytes(8), n_keys)
            with self.subTest(n_keys), self.assertRaises(MemoryError):
                _profile.sum_stacks(self.nodes, self.samples, 3, self.zeros,
                                    n_keys)
        for weights in 1 << 21, 1 << 56, 1 << 57, (1 << 63) - 1:
            for sums in _profile.sum_stacks, _profile.call_paths:
                self.assert_refused(sums, self.nodes, b'', weights,
                                    self.zeros, 32)

    def test_copies(self):
        n_nodes = len(self.nodes) // 8
        last, beyond = packed([n_nodes - 1]), packed([n_nodes])
        copy, n_frames = _profile.copy_stacks, self.n_frames
        copy(self.nodes, n_frames, last, last, b'', b'')
        for args in ((b'', n_frames, last, last, b'', b''),
                     (self.nodes, 0, last, last, b'', b''),
                     (self.nodes, -1, last, last, b'', b''),
                     (bytes(8), -1, b'', b'', b'', b''),
                     (self.nodes, n_frames, beyond, last, b'', b''),
                     (self.nodes, n_frames, last, beyond, b'', b''),
                     (self.nodes, n_frames, last, last, b'\1', b''),
                     (self.nodes, n_frames, last, last, b'', b'\1')):
            self.assert_refused(copy, *args)


class MeasuresTest(unittest.TestCase):

    def test_sums_are_the_totals(self):
        rng = random.Random(3)
        for _ in range(20):
            profile = random_profile(rng)
            found = measures(profile._tables)
            self.assertEqual(found[0].name, f'{profile.mode}_ns')
            sums = {measure.name: sum(measure.column) for measure in found}
            custom = sums.pop('custom', 0)
            self.assertEqual(sums, {
                value_type.name: profile.total(value_type.name)
                for value_type in profile.value_types})
            self.assertEqual(custom, sum([
                sample.count for sample in profile.samples
                if sample.state == 'custom']))


if __name__ == '__main__':
    unittest.main()
