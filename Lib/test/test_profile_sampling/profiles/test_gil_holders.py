"""Who held the GIL, as values and in files."""

import unittest

from profile_sampling import Profile
from profile_sampling._formats.pprof import (
    MARK, reader as _pprof_read, writer as _pprof)

from ..support.builders import Builder, facts_of
from ..support.wire import message


class ValuesTest(unittest.TestCase):

    def build(self):
        b = Builder(names=1)
        main, worker = b.thread('MainThread'), b.thread('worker')
        b.sample('a.f:3 [GIL~wait]', wall_ns=7, thread=main,
                 state='gil_wait', holder=(worker, 'a.g:9 C:json.loads'))
        b.sample('a.f:3 C:time.sleep [GIL~wait]', wall_ns=2, thread=main,
                 state='gil_wait', holder=(worker, 'a.g:9 C:json.loads'))
        b.sample('a.f:3 [GIL~wait]', wall_ns=5, thread=main,
                 state='gil_wait', holder=(-1, '[unknown]'))
        b.sample('[GIL~wait]', wall_ns=4, thread=worker, state='gil_wait',
                 holder=(main, 'a.f:4'))
        b.sample('a.f:3', wall_ns=100, thread=main)
        return b.profile()

    def test_rows(self):
        profile = self.build()
        self.assertEqual(
            [(row.thread.name, row.function and row.function.name, row.line,
              row.holder.thread and row.holder.thread.name, row.holder.name,
              row.holder.line, row.count, row.wall_ns)
             for row in profile.gil_holders()],
            [('MainThread', 'a.f', 3, 'worker', 'a.g (json.loads)', 9, 2, 9),
             ('MainThread', 'a.f', 3, None, '[unknown]', 0, 1, 5),
             ('worker', None, 0, 'MainThread', 'a.f', 4, 1, 4)])

    def test_pprof(self):
        profile = self.build()
        again = Profile._from_raw(_pprof_read.decode(
            _pprof.encode(profile._tables, compress=False)))
        self.assertEqual(facts_of(again), facts_of(profile))
        self.assertEqual(again.gil_holders(), profile.gil_holders())

    def test_function_that_begins_before_the_line(self):
        # Of functions of one name in one file, such as lambdas.
        b = Builder()
        functions = [b.function('a', '<lambda>', first_line=line)
                     for line in (1, 10, 20)]
        b.thread('MainThread')
        for function in functions:
            b.sample([(function, 25)], wall_ns=1)
        b.sample('a.f:1 [GIL~wait]', wall_ns=3, state='gil_wait',
                 holder=(0, [(functions[1], 12)]))
        again = Profile._from_raw(_pprof_read.decode(
            _pprof.encode(b.profile()._tables, compress=False)))
        row, = again.gil_holders()
        self.assertEqual((row.holder.function.first_line, row.holder.line),
                         (10, 12))

    def test_file_without_the_function(self):
        # As tools leave it that drop functions which no stack has.
        for text, place, expected in (
                ('a.f (b.g)', '/src/a.py:7', ('a.f', '/src/a.py', 7, 'b.g')),
                ('a.f', '/src/a.py:7', ('a.f', '/src/a.py', 7, None)),
                ('a.f', ':', ('a.f', '', 0, None)),
                ('a.f', 'x', ('a.f', '', 0, None)),
                ('a.f', '/a:99999999999999', ('a.f', '/a', 0, None)),
                ('', None, ('', '', 0, None)),
                ('[unknown]', None, ('[unknown]', '', 0, None))):
            with self.subTest(text=text, place=place):
                profile = Profile._from_raw(_pprof_read.decode(
                    file_with_holder(text, place)))
                row, = profile.gil_holders()
                held = row.holder
                self.assertEqual(
                    (held.function.name, held.function.filename, held.line,
                     held.callee and held.callee.name), expected)
                self.assertEqual(facts_of(Profile._from_raw(
                    _pprof_read.decode(_pprof.encode(
                        profile._tables, compress=False)))), facts_of(profile))

    def test_merge(self):
        one, other = self.build(), self.build()
        merged = Profile.merge(one, other)
        self.assertEqual(
            [(row.holder, row.wall_ns) for row in merged.gil_holders()],
            [(row.holder, 2 * row.wall_ns) for row in one.gil_holders()])


def file_with_holder(text, place):
    """A message of ours of a sample that waits for the GIL, of which a tool
    has dropped the functions."""
    strings = ['', 'wall', 'nanoseconds', 'state', 'gil wait',
               'gil holder', text, 'gil holder place', place, MARK]
    labels = [message((1, key), (2, value if strings[value] else 0))
              for key, value in ((3, 4), (5, 6), (7, 8))
              if strings[value] is not None]
    sample = message((2, [5]), *[(3, label) for label in labels])
    return message((1, message((1, 1), (2, 2))), (2, sample),
                   (13, len(strings) - 1),
                   *[(6, string or '') for string in strings])
