"""Files for pstats, and what SnakeViz and gprof2dot make of them."""

import html
import io
import os
import pstats
import re
import subprocess
import sys
import tempfile
import unittest

from profile_sampling import Profile
from profile_sampling._data.counts import CallCount, Counts

from ..support import hard_profiles
from ..support.builders import C, Builder, example
from .test_count_tables import shop

SECOND_NS = 1_000_000_000


def name_of(text):
    """What C functions are called elsewhere."""
    text = text.strip('<>').removeprefix('built-in method ')
    return re.sub(r"^method '(.+)' of '(.+)' objects$", r'\2.\1', text)


class PstatsTest(unittest.TestCase):

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.path = os.path.join(directory.name, 'p.pstats')

    def saved(self, builder):
        profile = builder.profile()
        profile.save(self.path)
        return profile


class ContentTest(PstatsTest):

    def stats(self, builder):
        self.saved(builder)
        return pstats.Stats(self.path, stream=io.StringIO())

    def test_known_answer(self):
        b = Builder()
        b.sample('a.main:7 a.f:9', wall_ns=3 * SECOND_NS, count=30)
        b.sample('a.main:8 a.f:9 C:time.sleep [waiting]',
                 wall_ns=2 * SECOND_NS, count=1, state='waiting')
        b.sample('a.main:8 op:int.__add__', wall_ns=SECOND_NS, count=4)
        b.sample('', wall_ns=SECOND_NS // 2, count=1, state='unsampled')
        main, f = ('/src/a.py', 1, 'main'), ('/src/a.py', 1, 'f')
        sleep, blocked = ('~', 0, '<built-in method time.sleep>'), ('~', 0, '[waiting]')
        self.assertEqual(self.stats(b).stats, {
            main: (0, 0, 0, 6, {}),
            f: (0, 0, 3, 5, {main: (0, 0, 3, 5)}),
            sleep: (0, 0, 0, 2, {f: (0, 0, 0, 2)}),
            blocked: (0, 0, 2, 2, {sleep: (0, 0, 2, 2)}),
            ('~', 0, '<int.__add__>'): (0, 0, 1, 1, {main: (0, 0, 1, 1)}),
            ('~', 0, '[no frames]'): (0, 0, 0.5, 0.5, {})})

    def test_recursion(self):
        stats = self.stats(hard_profiles.recursive()).stats
        main, f, g = [('/src/a.py', 1, name) for name in ('main', 'f', 'g')]
        self.assertEqual(stats, {
            main: (0, 0, 4e-3, 4.321e-3, {}),
            f: (0, 0, 320e-6, 321e-6, {
                main: (0, 0, 300e-6, 321e-6), f: (0, 0, 20e-6, 20e-6),
                g: (0, 0, 0, 1e-6)}),
            g: (0, 0, 1e-6, 1e-6, {f: (0, 0, 1e-6, 1e-6)})})

    def test_all_functions(self):
        for mode in 'wall', 'cpu':
            builder = example(mode=mode)
            stats = self.stats(builder)
            profile = builder.profile()
            self.assertAlmostEqual(
                stats.total_tt, profile.total(f'{mode}_ns') / SECOND_NS, 9)
            rows = {name_of(name): row
                    for (_, _, name), row in stats.stats.items()}
            for row in profile.functions():
                function = row.function
                found = rows.pop(name_of(function.qualname)
                                 if function.kind == 'python'
                                 else function.name)
                self.assertEqual(found[:2], (0, 0))
                self.assertAlmostEqual(found[2],
                                       getattr(row, f'self_{mode}_ns')
                                       / SECOND_NS)
                self.assertAlmostEqual(found[3], getattr(
                    row, f'cum_{mode}_ns') / SECOND_NS)
            self.assertLessEqual(set(rows), {'[no frames]'})

    def test_functions_that_pstats_cannot_tell_apart(self):
        # The same file as two modules: recursion between them is recursion.
        b = Builder()
        one, two = [b.function(module, 'f', '/a.py', 1)
                    for module in ('a', '__main__')]
        b.sample([one, two, one], wall_ns=SECOND_NS)
        key = '/a.py', 1, 'f'
        self.assertEqual(self.stats(b).stats,
                         {key: (0, 0, 1, 1, {key: (0, 0, 1, 1)})})

    def test_names_of_c_functions(self):
        b = Builder()
        for module, name in (('builtins', 'len'), (None, 'list.append'),
                             ('_io', 'FileIO.read'), (None, 'range')):
            b.sample([(b.function(module, name, kind=C), 0)], wall_ns=1)
        self.assertEqual(sorted([name for *_, name in self.stats(b).stats]), [
            '<built-in method builtins.len>',
            "<method 'append' of 'list' objects>",
            "<method 'read' of '_io.FileIO' objects>", '<range>'])

    def test_operators_and_waits_are_of_the_function_that_is_counted(self):
        b = Builder()
        b.sample('a.f op:int.__add__', wall_ns=SECOND_NS)
        b.sample('a.f C:time.sleep [waiting]', wall_ns=2 * SECOND_NS,
                 state='waiting')
        f, = [its for its in b.profile()._tables.functions
              if its.kind == 'python']
        b.facts['counts'] = Counts('python', (
            CallCount(None, 0, f, None, 5, 2, 3, 1, 4),), 0)
        f, sleep = ('/src/a.py', 1, 'f'), (
            '~', 0, '<built-in method time.sleep>')
        self.assertEqual(self.stats(b).stats, {
            f: (5, 8, 1, 3, {}),
            sleep: (0, 0, 2, 2, {f: (0, 0, 2, 2)})})

    def test_values_that_are_no_times(self):
        b = Builder(mode='alloc', value_types=[('alloc', 'bytes')])
        b.sample('a.f', values=(4096,))
        stats = self.stats(b)
        self.assertEqual(stats.total_tt, 4096)
        stats.print_stats()
        self.assertRegex(stats.stream.getvalue(), r'4096\.000 .*\(f\)\n')

    def test_no_samples(self):
        # pstats refuses a file without any row.
        self.assertEqual(self.stats(Builder()).stats,
                         {('~', 0, '[no frames]'): (0, 0, 0, 0, {})})

    def test_report(self):
        stats = self.stats(example())
        stats.sort_stats('cumulative').print_stats()
        stats.print_callers('hook')
        stats.print_callees('work')
        text = stats.stream.getvalue()
        for line in ('app.py:1(<module>)', '{built-in method time.sleep}',
                     '[waiting]',
                     '{int.__mul__}'):
            self.assertIn(line, text)
        self.assertRegex(text, r'\(hook\) +<- +0 +0\.700 +0\.700 +'
                         r'\S+json\.py:1\(load\)')

    def test_hard_profiles(self):
        for builder in hard_profiles.hostile(), hard_profiles.deep():
            profile = builder.profile()
            stats = self.stats(builder)
            self.assertAlmostEqual(stats.total_tt,
                                   profile.total_wall_ns / SECOND_NS, 9)
            stats.print_stats()
            stats.print_callers()
            for filename, _, name in stats.stats:
                self.assertTrue((filename + name).isprintable())


class ViewersTest(PstatsTest):

    def test_gprof2dot(self):
        try:
            import gprof2dot
        except ImportError:
            self.skipTest('the PyPI package gprof2dot is not installed')
        for builder in (example(), hard_profiles.recursive(),
                        hard_profiles.hostile()):
            profile = self.saved(builder)
            result = subprocess.run(
                [sys.executable, gprof2dot.__file__, '-f', 'pstats', '-n',
                 '0', '-e', '0', self.path],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            self.assertEqual(result.returncode, 0)
            self.assertRegex(result.stderr, r'\A(warning: truncating .*\n)*\Z')
            # A node's label: module:line:name, cumulative, (own), calls.
            nodes = re.findall(r'label="([^"]*):\d+:([^"]*?)\\n([\d.]+)%'
                               r'\\n\(([\d.]+)%\)', result.stdout)
            found = {name_of(html.unescape(name)): (float(cum), float(own))
                     for _, name, cum, own in nodes}
            self.assertTrue(found)
            total = profile.total_wall_ns
            for row in profile.functions():
                name = (row.function.qualname
                        if row.function.kind == 'python'
                        else row.function.name)
                # What has no time is not drawn.
                if row.cum_wall_ns and name.isidentifier():
                    self.assertAlmostEqual(
                        found[name][0], 100 * row.cum_wall_ns / total,
                        delta=0.01, msg=name)
                    self.assertAlmostEqual(
                        found[name][1], 100 * row.self_wall_ns / total,
                        delta=0.01, msg=name)

    def test_snakeviz(self):
        try:
            from snakeviz.stats import json_stats, table_rows
        except ImportError:
            self.skipTest('the PyPI package snakeviz is not installed')
        self.saved(example())
        stats = pstats.Stats(self.path)
        rows = {row[-1]: row for row in table_rows(stats)}
        self.assertEqual(rows['/src/app.py:1(hook)'][:4],
                         [['0', 0], '0.7', 0, '0.7'])
        tree = json_stats(stats)
        self.assertEqual(tree['/src/json.py:1(load)']['children'],
                         {'/src/app.py:1(hook)': [0, 0, 0.7, 0.7]})
        # Counted calls: all, and outermost ones.
        Profile._from_tables(shop()).save(self.path)
        rows = {row[-1]: row for row in table_rows(pstats.Stats(self.path))}
        self.assertEqual(rows['/src/shop.py:1(price)'][:4],
                         [['57/17', 57], '0.1', '0.005882', '0.1'])
