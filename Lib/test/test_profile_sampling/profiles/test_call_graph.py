"""The tree and the graph that exports are made of, against sums by sample."""

import random
import unittest

from profile_sampling._data.call_graph import CallGraph
from profile_sampling._data.call_paths import CallPaths
from profile_sampling._data.measures import measures

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
