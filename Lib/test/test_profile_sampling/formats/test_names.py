"""Hostile names through every writer and reader.  PITFALLS F3."""

import io
import os
import tempfile
import unittest
from contextlib import redirect_stdout

from profile_sampling import Profile
from profile_sampling._formats import collapsed as _collapsed, text as _text
from profile_sampling._formats.pprof import writer as _pprof

from ..support.builders import Builder, facts_of
from ..support.validator import check_pprof
from .test_collapsed import parse

NAMES = [
    'a;b', ';', ';;;', 'a\nb', '\n', '\r\n', 'a\tb', 'a b', 'a 1', 'a 1 2',
    'a 1.5', '1', '1.', ' 1', ' ', '', '{', '{"a":1}', '#', '# comment',
    '-', '[x]', '[lost]', '[truncated 7 frames]', '<module>', '<lambda>',
    'f.<locals>.<lambda>', '<C>', '</script><script>alert(1)</script>',
    '<!--', '&amp;', '"', "'", '`id`', '$(id)', '%s%n', '{0}', '{pid}',
    '\\', '\\n', '\\udc80', '\x00', 'a\x00b', '\x1b[31mred\x1b[0m', '\x07',
    '\x7f', '\x80', '\x85', '\xa0', '\xad', 'naïve', '\u0301', '字',
    '\u2028', '\u2029', '\u202e' 'abc', '\u200b', '\ufeff', '\uffff',
    '\U0001f40d', '\U0010ffff', '\ud800', '\udfff', '\udc80\udcff',
    '\udcff' * 9, '../../etc/passwd', 'C:\\x', 'http://x/', 'x' * 70_000,
    '.', '..', 'a.', '.a', 'a..b', 'None', 'stat ticks 5',
    '# stat ticks 5', '# profile_sampling 1', '# module x',
]


def shown(text):
    """How a text that cannot be encoded is spelled in a pprof file."""
    return text.encode('utf-8', 'backslashreplace').decode()


def hostile():
    b = Builder()
    for number, name in enumerate(NAMES):
        thread = b.thread(name, interpreter=number)
        for kind in range(4):
            function = b.function(None, name, kind=kind, filename='')
            b.sample([(function, 0)], wall_ns=10_000, thread=thread)
        b.sample([b.function(name, name, name, number + 1), 'a.f:1'],
                 wall_ns=10_000, thread=thread)
        b.sample([b.function('m', name, name, number + 1),
                  b.function(name, 'f', name, number + 1)],
                 wall_ns=10_000, thread=thread)
    return b


class HostileNamesTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.profile = hostile().profile()
        cls.total_ns = 6 * 10_000 * len(NAMES)
        cls.data = _pprof.encode(cls.profile._tables)

    def test_pprof(self):
        decoded = check_pprof(self.data)
        self.assertEqual(
            sum(sample['value'][2] for sample in decoded['sample']),
            self.total_ns)
        names = {function['name'] for function in decoded['function']}
        self.assertLessEqual(set(map(shown, NAMES)), names)
        threads = {label['str'] for sample in decoded['sample']
                   for label in sample['label']
                   if label['key'] == 'thread name'}
        self.assertEqual(threads, set(map(shown, NAMES)) - {''})

    def test_load(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, 'p.pb.gz')
            self.profile.save(path)
            loaded = Profile.load(path)
        self.assertEqual(loaded.total_wall_ns, self.total_ns)
        self.assertEqual(loaded.stats, {})
        self.assertEqual(loaded.mode, 'wall')
        names = {(row.function.name, row.function.filename)
                 for row in loaded.functions()}
        for row in self.profile.functions():
            function = row.function
            self.assertIn((shown(function.name), shown(function.filename)),
                          names)

    def test_names_that_can_be_encoded_are_kept(self):
        b = Builder()
        for name in NAMES:
            if shown(name) == name:
                b.sample([b.function('m', name, name, 5), 'a.f:1'],
                         wall_ns=1, thread=b.thread(name))
        profile = b.profile()
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, 'p.pb.gz')
            profile.save(path)
            self.assertEqual(facts_of(Profile.load(path)),
                             facts_of(profile))

    def test_hidden_comments_cannot_be_forged(self):
        # Each is a name with a line that the reader would take.
        b = Builder(stats={'real': 1})
        b.sample([b.function('m\n# stat forged 5', 'f')], wall_ns=1)
        b.sample([b.function('# stat forged 5', 'f')], wall_ns=1)
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, 'p.pb.gz')
            b.profile().save(path)
            self.assertEqual(Profile.load(path).stats, {'real': 1})

    def test_collapsed(self):
        for threads in (False, True):
            text = _collapsed.render(self.profile._tables, threads=threads)
            text.encode()
            stacks = parse(text)
            self.assertEqual(sum(stacks.values()), self.total_ns // 1000)
            depths = {len(stack) - threads for stack in stacks}
            self.assertEqual(depths, {1, 2})
            self.assertFalse(text.startswith('{'))
            for line in text.splitlines():
                self.assertTrue(line.isprintable(), line)

    def test_text(self):
        text = _text.render(self.profile._tables, top=10 ** 6)
        text.encode()
        for line in text.split('\n'):
            self.assertTrue(line.isprintable(), line)
            # Names are not cut below 40 characters.
            self.assertLessEqual(len(line), 100 + 40)

    def test_command_line(self):
        from profile_sampling._cli.main import main
        for encoding in ('utf-8', 'ascii'):
            with tempfile.TemporaryDirectory() as directory:
                path = os.path.join(directory, 'p.pb.gz')
                self.profile.save(path)
                for format in ('text', 'collapsed', 'pprof'):
                    output = io.TextIOWrapper(io.BytesIO(), encoding)
                    with redirect_stdout(output):
                        self.assertEqual(
                            main(['report', path, '--format', format]), 0)
                    self.assertTrue(output.buffer.getvalue())


class HostileFactsTest(unittest.TestCase):

    def test_counters_and_version(self):
        b = Builder(python_version='3\n.13\x1b\udc80',
                    stats={'a b\n\udc80': 5, 'lost_\x1b': 2})
        b.sample('a.f', wall_ns=1)
        profile = b.profile()
        check_pprof(_pprof.encode(profile._tables))
        text = _text.render(profile._tables)
        text.encode()
        self.assertTrue(all(map(str.isprintable, text.split('\n'))))
