"""The graph that exports are made of, against sums by sample."""

import random
import unittest

from profile_sampling._data.call_graph import CallGraph
from profile_sampling._data.call_paths import CallPaths

from ..support.hard_profiles import recursive
from ..support.random_profiles import random_profile


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
