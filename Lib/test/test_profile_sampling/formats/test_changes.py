"""How figures of a difference are written, and how they fit."""

import unittest

from profile_sampling._data import compare
from profile_sampling._data.runs import Question
from profile_sampling._formats import changes
from profile_sampling._formats.amounts import Amounts, percent

from ..support.builders import Builder

MS = 1_000_000


class AmountsTest(unittest.TestCase):

    def test_units(self):
        for unit, greatest, value, expected in (
                ('nanoseconds', 3.2e9, 1.5e9, '1.500 s'),
                ('nanoseconds', 123e9, 1.5e9, '1.5 s'),
                ('nanoseconds', 12e6, 1.5e6, '1.50 ms'),
                ('nanoseconds', 12e3, 1.5e3, '1.50 \N{MICRO SIGN}s'),
                ('nanoseconds', 0, 0, '0.000 ns'),
                ('bytes', 4e6, 1.5e6, '1.500 MB'),
                ('share', 0.5, 0.0123, '1.23 %'),
                ('count', 4321, 12, '12'),
                ('widgets', 4321, 1234, '1,234')):
            with self.subTest(unit=unit, greatest=greatest):
                self.assertEqual(Amounts(unit, greatest).text(value),
                                 expected)

    def test_signs(self):
        amounts = Amounts('nanoseconds', 3e9)
        for value, expected in ((1e9, '+1.000 s'), (-1e9, '-1.000 s'),
                                (4e5, '0.000 s'), (-4e5, '0.000 s')):
            self.assertEqual(amounts.signed(value), expected)
        self.assertEqual(Amounts('share', 1).signed(-0.1), '-10.00 pp')

    def test_percent(self):
        for ratio, expected in ((0.0321, '+3.2 %'), (-1, '-100.0 %'),
                                (9.5, '+950.0 %'), (39, 'x 40')):
            self.assertEqual(percent(ratio), expected)


class WordsTest(unittest.TestCase):

    def text(self, *functions):
        sides = []
        for times in functions:
            b = Builder(rate_hz=1000)
            for name, ms in times.items():
                b.sample(f'm.{name}:5', wall_ns=ms * MS, count=ms)
            sides.append([b.profile()._tables])
        return changes.text(compare.of_tables(
            *sides, Question('function', False, 'wall_ns', None, ())))

    def test_no_record_is_not_never(self):
        text = self.text({'f': 100, 'was': 90, 'rare': 1},
                         {'f': 100, 'became': 90, 'odd': 1})
        self.assertRegex(text, r' gone +m\.was\n')
        self.assertRegex(text, r' new +m\.became\n')
        for name in 'rare', 'odd':
            self.assertRegex(text, rf' ms +-  ~  m\.{name}\n')


class SignsTest(unittest.TestCase):

    def notes(self, before, after, **options):
        """What is said below the table of a difference by route."""
        sides = []
        for times in before, after:
            b = Builder(rate_hz=1000)
            for route, ms in times.items():
                b.sample('m.f:5', wall_ns=ms * MS, count=ms,
                         labels={'route': route} if route else {})
            sides.append([b.profile()._tables])
        comparison = compare.of_tables(*sides, Question(
            'label:route', False, 'wall_ns', None, ()), **options)
        text = changes.text(comparison, width=60)
        self.assertLessEqual(max(map(len, text.splitlines())), 60)
        return text.rpartition('\n\n')[2]

    def test_only_signs_that_are_there(self):
        error = ('one run each: run-to-run variation unknown; ± is the error\n'
                 '  of sampling alone (95 %)\n')
        measured = 'measured: by clocks, without an error of sampling\n'
        self.assertEqual(self.notes({'/a': 900}, {'/a': 100}),
                         error + measured)
        self.assertEqual(
            self.notes({'/a': 900, '': 9}, {'/a': 905, '': 80}),
            f'{error}{measured}without the label: time that has no route\n'
            '~: may be chance\n')
        # Where shares are compared there is no total.
        self.assertNotIn('measured', self.notes(
            {'/a': 900, '/b': 9}, {'/a': 100, '/b': 90},
            scale=compare.SHARE))


class BusyTest(unittest.TestCase):

    def test_a_side_without_a_cpu(self):
        sides = []
        for running, waited in (100, 1), (100, 40):
            b = Builder(rate_hz=1000)
            b.sample('m.f:5', wall_ns=running * MS, cpu_ns=running * MS)
            b.sample('m.f:5 [CPU~wait]', wall_ns=waited * MS,
                     state='cpu_wait')
            sides.append([b.profile()._tables])
        for value, is_said in ('wall_ns', True), ('cpu_ns', False):
            text = changes.text(compare.of_tables(
                *sides, Question('function', False, value, None, ())))
            self.assertEqual('CPU wait is up to 1% of the time before and 29% '
                             'after: the machine was busy.' in text, is_said)


class WidthTest(unittest.TestCase):

    def text(self, **options):
        sides = []
        for ms in 100, 300:
            b = Builder(rate_hz=1000)
            b.sample('m.a_function_whose_name_is_not_cut:5 C:m.call',
                     wall_ns=ms * MS, count=ms)
            b.sample('m.g:5', wall_ns=50 * MS, count=50)
            sides.append([b.profile()._tables])
        return changes.text(compare.of_tables(
            *sides, Question('site', False, 'wall_ns', None, ())), **options)

    def test_narrow(self):
        lines = self.text(width=60).splitlines()
        head, row = [line for line in lines if line.endswith(
            ('wall time', 'm.call'))]
        self.assertEqual(head.split()[:3], ['after', 'change', 'change'])
        self.assertRegex(row, r'  m\.a_fun.*….* in m\.call$')
        self.assertEqual(row.split()[0], '300.0')
        for width in 60, 70, 80, 100:
            self.assertLessEqual(max(map(
                len, self.text(width=width).splitlines())), width)
        # Sentences are broken at words.
        self.assertIn('sampling alone (95 %)', ' '.join(' '.join(
            lines[-3:]).split()))
        self.assertTrue(all([len(line) <= 60 for line in lines[-3:]]))

    def test_wide_characters(self):
        sides = []
        for ms in 100, 300:
            b = Builder(rate_hz=1000)
            for label in 'ascii', '注文' * 20, 'e\u0301' * 3:
                b.sample('m.f:5', wall_ns=ms * MS, count=ms,
                         labels={'route': label})
            sides.append([b.profile()._tables])
        for width in 60, 80, 200:
            lines = changes.text(compare.of_tables(*sides, Question(
                'label:route', False, 'wall_ns', None, ())),
                width=width).splitlines()
            for line in lines:
                self.assertLessEqual(len(line) + line.count('注')
                                     + line.count('文')
                                     - line.count('\u0301'), width)
            [wide] = [line for line in lines if '注' in line]
            [plain] = [line for line in lines if 'ascii' in line]
            self.assertEqual(wide.index('注'), plain.index('ascii'))

    def test_wide(self):
        for width in 80, 200, None:
            text = self.text(width=width)
            self.assertRegex(text, r'\n100\.0 ms +300\.0 ms ')
            self.assertNotIn('\x1b', text)


if __name__ == '__main__':
    unittest.main()
