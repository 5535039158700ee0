"""Call graphs, as Graphviz reads them."""

import json
import re
import shutil
import subprocess
import unittest

from profile_sampling._formats import dot as _dot

from ..support import hard_profiles
from ..support.builders import Builder, example


def written(builder, **options):
    return _dot.encode(builder.profile()._tables, **options).decode()


class ContentTest(unittest.TestCase):

    def test_known_answer(self):
        b = Builder(python_version='3.13.5')
        b.sample('a.main:3 b.f:9', wall_ns=250_000)
        b.sample('a.main:4 C:time.sleep', wall_ns=500_000, state='waiting')
        b.sample('', wall_ns=250_000, state='unsampled')
        text = written(b)
        self.assertIn(r'label="wall profile of Python 3.13.5\n1.000 ms wall '
                      'time"', text)
        nodes = re.findall(r'(\w+) \[label="(.*?)".*(own=.*)\]', text)
        self.assertEqual(nodes, [
            ('f0', r'a.main\n/src/a.py:1\n75.0 % (0.0 %)\n0.750 ms',
             'own=0, cum=750000'),
            ('f1', r'b.f\n/src/b.py:1\n25.0 % (25.0 %)\n0.250 ms',
             'own=250000, cum=250000'),
            ('f2', r'time.sleep\n50.0 % (50.0 %)\n0.500 ms',
             'own=500000, cum=500000'),
            ('none', r'[no frames]\n25.0 % (25.0 %)\n0.250 ms',
             'own=250000, cum=250000')])
        self.assertIn('f0 -> f1 [label="25.0 %", penwidth=2.00, cum=250000]',
                      text)
        self.assertIn('f0 -> f2 [label="50.0 %", penwidth=4.00, cum=500000]',
                      text)

    def test_what_is_left_out_is_counted(self):
        b = Builder().sample('a.main', wall_ns=1_000_000)
        for number in range(3):
            b.sample(f'a.main a.g{number} a.h', wall_ns=2_000)
        for number in range(7):
            b.sample(f'a.main a.f{number}', wall_ns=100)
        text = written(b)
        # 7 calls of what is left out; h is called for 0.2 % by each.
        self.assertIn(r'\nLeft out: 10 functions below 0.5 %, 13 calls of '
                      'these or below 0.1 %"', text)
        text = written(b, min_share=0)
        self.assertNotIn('Left out', text)
        self.assertEqual(text.count(' -> '), 13)
        self.assertIn('Left out: 11 functions below 100 %',
                      written(b, min_share=1))

    def test_a_difference_that_comes_to_nothing(self):
        """As go tool pprof -proto -diff_base -normalize writes it."""
        b = Builder(value_types=[('wall', 'nanoseconds')])
        b.sample('a.f', values=(5,)).sample('a.g', values=(-5,))
        text = written(b)
        self.assertIn('own=5, cum=5]', text)
        self.assertIn('own=-5, cum=-5]', text)

    def test_long_paths(self):
        b = Builder()
        b.sample([b.function('a', 'f', '/usr/lib/python/a/b.py', 3)],
                 wall_ns=1)
        text = written(b)
        self.assertIn(r'label="a.f\n…/a/b.py:3\n', text)
        self.assertIn(r'tooltip="a.f\n/usr/lib/python/a/b.py:3"', text)


@unittest.skipIf(shutil.which('dot') is None,
                 'no dot in PATH, of the package graphviz')
class GraphvizTest(unittest.TestCase):

    def read(self, builder, **options):
        """Return the graph, {name: node} and {(caller, callee): edge}."""
        result = subprocess.run(
            ['dot', '-Tjson'], input=written(builder, **options),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            encoding='utf-8')
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertNotIn('syntax', result.stderr)
        graph = json.loads(result.stdout)
        nodes = graph.get('objects', [])
        # What is drawn first is the name, as people see it.
        names = [next(drawn['text'] for drawn in node['_ldraw_']
                      if drawn['op'] == 'T') for node in nodes]
        edges = {(names[edge['tail']], names[edge['head']]): edge
                 for edge in graph.get('edges', [])}
        return graph, dict(zip(names, nodes, strict=True)), edges

    def test_self_and_cumulative_times(self):
        for builder in example(), hard_profiles.recursive():
            profile = builder.profile()
            graph, nodes, _ = self.read(builder, min_share=0)
            self.assertEqual(int(graph['total']), profile.total_wall_ns)
            self.assertEqual(sum([int(node['own'])
                                  for node in nodes.values()]),
                             profile.total_wall_ns)
            self.assertEqual(
                {name: (int(node['own']), int(node['cum']))
                 for name, node in nodes.items() if name != '[no frames]'},
                {row.function.name: (row.self_wall_ns, row.cum_wall_ns)
                 for row in profile.functions()})

    def test_recursion(self):
        _, _, edges = self.read(hard_profiles.recursive(), min_share=0)
        self.assertEqual(
            {names: int(edge['cum']) for names, edge in edges.items()},
            {('a.main', 'a.f'): 321_000, ('a.f', 'a.f'): 20_000,
             ('a.f', 'a.g'): 1_000, ('a.g', 'a.f'): 1_000})

    def test_hard_profiles(self):
        names = set()
        for builder in hard_profiles.hostile(), hard_profiles.deep():
            graph, nodes, _ = self.read(builder, min_share=0)
            self.assertEqual(int(graph['total']),
                             builder.profile().total_wall_ns)
            names.update(nodes)
        self.assertLessEqual(
            {r'[a\nb]', '[a"b\'c]', '[<b>&amp;</b>]', '[]]>]', r'[\udc80]',
             '[%s]'}, names)

    def test_no_samples(self):
        graph, nodes, _ = self.read(Builder())
        self.assertIn('There are no samples.', graph['label'])
        self.assertEqual(nodes, {})
