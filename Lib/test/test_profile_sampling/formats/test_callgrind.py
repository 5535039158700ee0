"""Files of Callgrind, as callgrind_annotate of valgrind reads them."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest
from types import SimpleNamespace

from profile_sampling import Profile
from profile_sampling._formats import callgrind as _callgrind

from ..support import hard_profiles
from ..support.builders import Builder, example
from .test_count_tables import shop


def written(builder):
    return _callgrind.encode(builder.profile()._tables).decode()


def body(text):
    return text.partition('\nsummary: ')[2].partition('\n')[2]


class ContentTest(unittest.TestCase):

    def test_known_answer(self):
        b = Builder(pid=7, python_version='3.13.5')
        b.sample('a.main:3 b.f:9', wall_ns=5, cpu_ns=4, count=2)
        b.sample('a.main:3 b.f:10', wall_ns=1)
        b.sample('a.main:4 C:time.sleep', wall_ns=7, state='waiting')
        b.sample('a.main:4', wall_ns=2)
        b.sample('', wall_ns=3, state='unsampled')
        text = written(b)
        self.assertIn('\npid: 7\ndesc: Trigger: wall profile of Python '
                      '3.13.5\ndesc: Calls: not counted, 1 stands for any '
                      'number\npositions: line\n', text)
        self.assertIn('\nevents: WallNs Samples CpuNs\nsummary: 18 6 4\n',
                      text)
        self.assertEqual(body(text).splitlines(), [
            'fl=(1) ???', 'fn=(1) [no frames]', '0 3 1 0',
            # Each call has the line it is on, and what it cost.
            'fl=(2) /src/a.py', 'fn=(2) a.main',
            'cfi=(3) /src/b.py', 'cfn=(3) b.f', 'calls=1 0', '3 6 3 4',
            '4 2 1 0',
            'cfi=(1)', 'cfn=(4) time.sleep', 'calls=1 0', '4 7 1 0',
            'fl=(3)', 'fn=(3)', '9 5 2 4', '10 1 1 0',
            'fl=(1)', 'fn=(4)', '0 7 1 0', 'totals: 18 6 4'])

    def test_the_command(self):
        b = Builder(pid=7, meta={'command': 'work.py -a\n--b'})
        self.assertIn('\npid: 7\ncmd: work.py -a\\n--b\ndesc: ', written(b))
        for meta in {}, {'command': ' '}, {'host': 'here'}:
            self.assertNotIn('cmd:', written(Builder(meta=meta)))

    def test_functions_of_one_name(self):
        b = Builder()
        for line in 3, 8:
            b.sample([(b.function('a', '<lambda>', '/a.py', line), line)],
                     wall_ns=line)
        self.assertEqual(body(written(b)), 'fl=(1) /a.py\n'
                         'fn=(1) a.<lambda>:3\n3 3 1 0\nfl=(1)\n'
                         'fn=(2) a.<lambda>:8\n8 8 1 0\ntotals: 11 2 0\n')

    def test_other_values(self):
        b = Builder(mode='alloc space', value_types=[
            ('alloc space', 'bytes'), ('9 lives', 'cats'),
            ('alloc-space', 'bytes')])
        b.sample('a.f', values=(4096, 9, 5))
        text = written(b)
        self.assertIn('event: AllocSpaceBytes : alloc space (bytes)\n', text)
        self.assertIn('\nevents: AllocSpaceBytes Event9LivesCats '
                      'AllocSpaceBytesx\n', text)

    def test_hostile_names(self):
        text = written(hard_profiles.hostile())
        for line in text.splitlines():
            self.assertRegex(line, r'^(# callgrind format|[a-z]+: .*|'
                             r'c?f[nil]=\(\d+\)( \S.*)?|calls=\d+ 0|'
                             r'\d+( \d+){3})$')
        self.assertIn('fn=(1) ', text)
        self.assertIn(') (1) x', text)


@unittest.skipIf(shutil.which('callgrind_annotate') is None,
                 'no callgrind_annotate in PATH, of the package valgrind')
class AnnotateTest(unittest.TestCase):

    def annotated(self, builder, *options):
        """Return the total, {function: cost} and {(caller, callee): cost},
        of the first event."""
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, 'callgrind.out.1')
            builder.profile().save(path)
            result = subprocess.run(
                ['callgrind_annotate', '--threshold=100', '--auto=no',
                 '--tree=calling', *options, path], stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, text=True)
        self.assertEqual((result.returncode, result.stderr), (0, ''))
        self.output = result.stdout
        row = re.compile(r'^ *([\d,]+|\.) (?:\( ?[\d.]+%\))? .*?'
                         r' ([*>])  +(?:\S+?:|\?\?\?:)(.*?)(?: \([\d,]+x\))?'
                         r'(?: \[\])?$')
        functions, calls = {}, {}
        for line in result.stdout.splitlines():
            found = row.match(line)
            if found is None:
                continue
            cost, kind, name = found.groups()
            cost = int(cost.replace(',', '').replace('.', '0'))
            if kind == '*':
                caller = name
                functions[name] = cost
            else:
                calls[caller, name] = cost
        total = re.search(r'^ *([\d,]+) .*PROGRAM TOTALS', result.stdout,
                          re.M)
        return (int(total[1].replace(',', '')) if total else 0, functions,
                calls)

    def test_self_and_cumulative_times(self):
        for builder in (example(), example(mode='cpu'),
                        hard_profiles.recursive()):
            profile = builder.profile()
            for option, what in (('no', f'self_{profile.mode}_ns'),
                                 ('yes', f'cum_{profile.mode}_ns')):
                total, functions, _ = self.annotated(
                    builder, f'--inclusive={option}')
                self.assertEqual(total, profile.total(f'{profile.mode}_ns'))
                for row in profile.functions():
                    self.assertEqual(functions.get(row.function.name, 0),
                                     getattr(row, what), row.function.name)

    def test_counted_calls(self):
        profile = Profile._from_tables(shop())
        _, _, calls = self.annotated(SimpleNamespace(profile=lambda: profile))
        self.assertEqual(calls, {('shop.orders', 'sql.first'): 900_000_000,
                                 ('shop.orders', 'shop.price'): 100_000_000})
        self.assertEqual(sorted(re.findall(r'(\w+) \(([\d,]+)x\)', self.output)),
                         [('first', '4,800'), ('price', '57')])

    def test_recursion(self):
        _, functions, calls = self.annotated(hard_profiles.recursive(),
                                             '--inclusive=yes')
        self.assertEqual(functions, {
            name: cum for name, (_, cum)
            in hard_profiles.RECURSIVE_NS.items()})
        self.assertEqual(calls, {('a.main', 'a.f'): 321_000,
                                 ('a.f', 'a.g'): 1_000})

    def test_hard_profiles(self):
        for builder in hard_profiles.hostile(), hard_profiles.deep():
            total, _, _ = self.annotated(builder)
            self.assertEqual(total, builder.profile().total_wall_ns)
