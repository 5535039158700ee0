"""How Tools/regrtest and Tools/third_parties judge what they ran.

A crash that they excuse would be one that nobody hears of.
"""

import importlib
import os
import pathlib
import tempfile
import unittest

from test.support import import_helper

TOOLS = pathlib.Path(os.path.realpath(__file__)).parents[4] / 'Tools'
if not (TOOLS / 'regrtest').is_dir():
    raise unittest.SkipTest('Tools/regrtest is not here')


def load(tool, module):
    """A module of a tool: more than one tool has a compare.py."""
    with import_helper.DirsOnSysPath(str(TOOLS / tool)), \
            import_helper.isolated_modules():
        return importlib.import_module(module)


regrtest = load('regrtest', 'compare')
runs = load('regrtest', 'runs')
third_parties = load('third_parties', 'compare')


def attempts(*states, **cases):
    return [{'state': state, 'cases': cases} for state in states]


class RegrtestTest(unittest.TestCase):

    def kinds(self, stock, run, **exceptions):
        return [difference.kind for difference in regrtest.differences(
            'test_x', stock, run, exceptions)]

    def test_same(self):
        both = attempts('ran', test_a='passed')
        self.assertEqual(self.kinds(both, both), [])

    def test_case_that_fails_now_and_then(self):
        stock = attempts('ran', test_a='passed')
        run = attempts('ran', test_a='failed') + stock
        self.assertEqual(self.kinds(stock, run), ['flaky'])

    def test_case_that_always_fails(self):
        stock = attempts('ran', 'ran', test_a='passed')
        run = attempts('ran', 'ran', test_a='failed')
        self.assertEqual(self.kinds(stock, run), ['differs'])
        self.assertEqual(self.kinds(stock, run, test_a='why'), ['listed'])

    def test_breakdown_that_does_not_come_back(self):
        for state in 'killed by SIGSEGV', 'does not end', 'status 1':
            for reasons in {}, {'test_x': 'why'}:
                with self.subTest(state=state, reasons=reasons):
                    self.assertEqual(
                        self.kinds(attempts('ran', 'ran'),
                                   attempts(state, 'ran'), **reasons),
                        ['differs'])

    def test_breakdown_of_stock_too(self):
        killed = 'killed by SIGSEGV'
        self.assertEqual(self.kinds(attempts(killed, 'ran'),
                                    attempts('ran', killed)), ['flaky'])

    def test_other_end_that_does_not_come_back(self):
        self.assertEqual(
            self.kinds(attempts('ran', 'ran'),
                       attempts('environment changed', 'ran')), ['flaky'])


class KeptTest(unittest.TestCase):
    """Results are kept until something changes that they depend on."""

    FILES = {
        'variant/python': 'the executable',
        'variant/Makefile': 'VERSION=\t3\nsrcdir=\t\t../tree\n',
        'variant/pybuilddir.txt': 'lib',
        'variant/lib/zlib.so': 'an extension module',
        'tree/.recipe': 'a digest of upstream and the patches',
        'tree/Lib/profile_sampling/_profile.py': 'a module of ours',
    }

    def setUp(self):
        directory = self.enterContext(tempfile.TemporaryDirectory())
        self.directory = pathlib.Path(directory)
        for name, text in self.FILES.items():
            path = self.directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def digest(self):
        return runs.Run('off', self.directory / 'variant/python',
                        self.directory / 'results').interpreter

    def test_nothing_changed(self):
        self.assertEqual(self.digest(), self.digest())

    def test_each_file(self):
        for name in self.FILES:
            if name.endswith(('Makefile', 'pybuilddir.txt')):
                continue
            with self.subTest(name=name):
                before = self.digest()
                (self.directory / name).write_text('changed')
                self.assertNotEqual(self.digest(), before)


class ThirdPartiesTest(unittest.TestCase):

    GOOD = {'test_a': 'passed'}
    BAD = {'test_a': 'failure'}
    TOTALS = {'profiles': 1, 'samples': 1}

    def test_difference_that_stays(self):
        always, at_times = third_parties.judge(3 * [(self.GOOD, self.BAD)])
        self.assertEqual((always, at_times),
                         ({'test_a': ('passed', 'failure')}, {}))

    def test_difference_that_does_not_come_back(self):
        always, at_times = third_parties.judge(
            [(self.GOOD, self.BAD), (self.GOOD, self.GOOD)])
        self.assertEqual((always, at_times),
                         ({}, {'test_a': ('passed', 'failure')}))

    def test_breakdown_that_does_not_come_back(self):
        for status in '-11', '134', 'timeout':
            killed = {third_parties.COMMAND: f'exit status {status}'}
            for others in [], [(self.GOOD, self.GOOD)]:
                # In the first attempt, and in the one after a difference.
                for one in (self.GOOD, killed), (self.BAD, killed):
                    with self.subTest(status=status, others=others, one=one):
                        always, _ = third_parties.judge([*others, one])
                        self.assertIn(third_parties.COMMAND, always)

    def test_breakdown_of_plain_too(self):
        killed = {third_parties.COMMAND: 'exit status -11'}
        always, at_times = third_parties.judge(
            [(self.GOOD, killed), (killed, self.GOOD),
             (self.GOOD, self.GOOD)])
        self.assertNotIn(third_parties.COMMAND, always)
        self.assertIn(third_parties.COMMAND, at_times)

    def test_no_test_passed(self):
        for run in ({third_parties.COMMAND: 'exit status 5'},
                    {'test_a': 'skipped'}, self.BAD):
            with self.subTest(run=run):
                self.assertEqual(
                    third_parties.lacks((run, run), self.TOTALS),
                    {'passed tests': (0, 0)})

    def test_nothing_sampled(self):
        for total in self.TOTALS:
            with self.subTest(total=total):
                self.assertEqual(
                    third_parties.lacks((self.GOOD, self.GOOD),
                                        self.TOTALS | {total: 0}),
                    {total: ('none', 0)})
