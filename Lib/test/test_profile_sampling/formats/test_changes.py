"""How figures of a difference are written, and how they fit."""

import unittest

from profile_sampling import ProfileDiff

from ..support.builders import Builder

MS = 1_000_000


def compared(*sides, **options):
    """The text of a difference of two lists of (labels, name, ms)."""
    profiles = []
    for rows in sides:
        b = Builder(rate_hz=1000)
        for labels, name, ms in rows:
            b.sample(f'm.{name}:5', wall_ns=ms * MS, count=ms, labels=labels)
        profiles.append(b.profile())
    return str(ProfileDiff(*profiles, **options))


class WordsTest(unittest.TestCase):

    def test_no_record_is_not_never(self):
        text = compared(*[
            [({}, name, ms) for name, ms in (('f', 100), (most, 90),
                                             (little, 1))]
            for most, little in (('was', 'rare'), ('became', 'odd'))],
            by='function')
        self.assertRegex(text, r' gone  ~  m\.was\n')
        self.assertRegex(text, r' new  ~  m\.became\n')
        for name in 'rare', 'odd':
            self.assertRegex(text, rf'ms +-  ~  m\.{name}\n')


class SignsTest(unittest.TestCase):

    def notes(self, *sides, **options):
        """What is said below the table of a difference by route."""
        return compared(*[
            [({'route': route} if route else {}, 'f', ms)
             for route, ms in times.items()] for times in sides],
            by='label:route', **options).rpartition('\n\n')[2]

    def test_only_signs_that_are_there(self):
        error = ('one run each: run-to-run variation unknown; ± is the error '
                 'of sampling alone (95 %)\n')
        measured = '± -: measured by clocks, without an error of sampling'
        chance = ('~: may be chance; several runs of each, in turns: record '
                  '--alternate BEFORE -- AFTER')
        self.assertEqual(self.notes({'/a': 900}, {'/a': 100}),
                         f'{error}{measured}\n{chance}')
        self.assertEqual(
            self.notes({'/a': 900, '': 9}, {'/a': 905, '': 80}),
            f'{error}{measured}\n[without]: time that has no route\n'
            f'{chance}')
        # Where shares are compared there is no total.
        self.assertNotIn('measured', self.notes(
            {'/a': 900, '/b': 9}, {'/a': 100, '/b': 90}, share=True))


class BusyTest(unittest.TestCase):

    def test_a_side_without_a_cpu(self):
        sides = []
        for running, waited in (100, 1), (100, 40):
            b = Builder(rate_hz=1000)
            b.sample('m.f:5', wall_ns=running * MS, cpu_ns=running * MS)
            b.sample('m.f:5 [CPU~wait]', wall_ns=waited * MS,
                     state='cpu_wait')
            sides.append(b.profile())
        for value, is_said in ('wall_ns', True), ('cpu_ns', False):
            text = ' '.join(str(ProfileDiff(
                *sides, by='function', value=value)).split())
            self.assertEqual('CPU wait is up to 1% of the time before and 29% '
                             'after: the machine was busy.' in text, is_said)
