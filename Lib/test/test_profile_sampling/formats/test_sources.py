"""What of the disk gets into pages and reports of profiles from elsewhere."""

import os
import pickle
import random
import sys
import tempfile
import unittest
import zipfile
from test import support

from profile_sampling import Profile
from profile_sampling._data.by_site import Sites
from profile_sampling._formats import tables_of_code

from ..command_line.test_cli import ForkedCommandLineTest
from ..support import foreign
from ..support.builders import Builder
from ..support.sessions import THOROUGH

PROFILES = 3000 if THOROUGH else 150
NOT_THERE = 'The source is not shown: the file has no such function in line 2.'
NOT_KNOWN = ('The source is not shown: the profile does not know its file '
             'well enough; --source-root trusts a directory.')
ELSEWHERE = ('The source is not shown: no such file is in a directory that '
             'this Python imports from; --source-root names others.')


class ForeignTest(unittest.TestCase):

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.files = foreign.Files(os.path.realpath(directory.name))
        self.addCleanup(self.files.close)

    def importable(self):
        """Let modules be imported from the directory, and from its own."""
        return support.swap_attr(sys, 'path', [self.files.inside, *sys.path])

    def shown(self, *functions, source=True):
        """Return [(numbers of lines, notes)] of the source in a page of
        functions: (file name, qualified name, first line, line)."""
        page = foreign.page_of(foreign.profile(functions), source=source)
        return [([*map(int, function['lines'])], function['notes'])
                for function in reversed(foreign.embedded(page))]

    def listing(self, *function):
        """Return what report --listing prints: lines and notes."""
        tables = foreign.profile([function])._tables
        table, = tables_of_code.source(tables, Sites(tables), 9, '')
        number = [column.key for column in table.columns].index('line')
        return [row[number] for row in table.rows], table.notes


class PageTest(ForeignTest):

    def test_a_file_that_the_profile_knows(self):
        known = self.files.known
        functions = (known, 'f', 1, 2), (known, 'C.g', 6, 7)
        self.assertEqual(self.shown(*functions), [([], [ELSEWHERE])] * 2)
        with self.importable():
            self.assertEqual(self.shown(*functions), [
                ([1, 2], []), ([6, 7], [])])
            # Of a profile that knows it, code without a name, too.
            self.assertEqual(
                self.shown(*functions, (known, '<module>', 1, 5))[2],
                ([*range(1, 8)], []))

    def test_a_file_that_it_does_not_know(self):
        known = self.files.known
        with self.importable():
            for functions in ([(known, '<module>', 1, 5)],
                              [(known, 'f', 2, 2)],
                              [(known, 'f', 1, 2), (known, 'C.h', 6, 7)],
                              # One guess for a file, not for each of its
                              # names.
                              [(known, 'f', 1, 2), (os.path.join(
                                  self.files.inside, '.', 'known.py'),
                                  'f', 3, 3)]):
                with self.subTest(functions=functions):
                    self.assertEqual(self.shown(*functions),
                                     [([], [NOT_KNOWN])] * len(functions))

    def test_directories_that_are_named(self):
        function = self.files.private, '<module>', 1, 1
        with self.importable():
            self.assertEqual(self.shown(function), [([], [ELSEWHERE])])
            for source in self.files.outside, [self.files.outside]:
                self.assertEqual(self.shown(function, source=source),
                                 [([1, 2, 3], [])])
            self.assertEqual(
                self.shown((self.files.known, 'f', 2, 2),
                           source=self.files.inside), [([], [NOT_THERE])])
            # They are all that there are.
            self.assertEqual(
                self.shown((self.files.known, 'f', 1, 2),
                           source=self.files.outside),
                [([], ['The source is not shown: no such file is in a '
                       'directory of --source-root.'])])

    def test_a_file_that_is_not_there(self):
        with self.importable():
            for path in self.files.inside, '/nowhere':
                self.assertEqual(
                    self.shown((f'{path}/gone.py', 'f', 1, 1)),
                    [([], [ELSEWHERE])])

    def test_links_lead_nowhere(self):
        link = os.path.join(self.files.inside, 'link.py')
        with self.importable():
            self.assertEqual(self.shown((link, 'connect', 2, 3)),
                             [([], [ELSEWHERE])])

    def test_it_is_as_foreign_in_parts_and_sums(self):
        profile = foreign.profile([(self.files.private, 'connect', 2, 3)])
        own = Builder().sample('a.f:3', wall_ns=1).profile()
        for one in (profile, profile.focus('connect'), profile + own,
                    Profile.merge(own, profile), profile.by_value('cpu'),
                    pickle.loads(pickle.dumps(profile)),
                    *profile.group_by('state').values(),
                    profile.hide('nothing')):
            self.assertNotIn(foreign.SECRET,
                             str(foreign.embedded(foreign.page_of(one))))
        self.assertNotIn('HUSH', profile._repr_html_())
        self.assertEqual(own + own, own + foreign.loaded(own))

    def test_what_was_recorded_here_is_shown(self):
        b = Builder()
        for path in self.files.private, os.path.join(self.files.outside,
                                                     'key'):
            b.sample([(b.function('m', '<module>', path, 1), 1)], wall_ns=1)
        for profile in b.profile(), b.profile().focus('m'):
            for function in foreign.embedded(foreign.page_of(profile)):
                self.assertIn(foreign.SECRET, function['lines']['1'])


class ListingTest(ForeignTest):

    def test_the_function_must_be_there(self):
        for function, expected in (
                ((self.files.private, 'connect', 2, 3), ([2, 3], [])),
                ((self.files.private, 'f', 2, 3), ([3], [NOT_THERE]))):
            self.assertEqual(self.listing(*function), expected)

    def test_only_regular_files_of_python(self):
        inside, outside = self.files.inside, self.files.outside
        for path, note in (
                ('/dev/zero', 'it is not a regular file'),
                (f'{inside}/fifo.py', 'it is not a regular file'),
                (f'{inside}/s.py', 'it is not a regular file'),
                (inside, 'it is not a regular file'),
                (f'{inside}/huge.py', 'it has more than 4,194,304 bytes'),
                (f'{inside}/loop.py', 'Too many levels of symbolic links'),
                (f'{inside}/binary.py', 'this Python cannot compile it'),
                (f'{inside}/codec.py', 'this Python cannot compile it'),
                (f'{outside}/key', 'the file is not Python'),
                (f'{outside}/.env', 'the file is not Python'),
                ('/etc/passwd', 'the file is not Python'),
                ('/proc/self/environ', 'the file is not Python'),
                ('a\0.py', 'embedded null character'),
                ('/' + 'a' * 5000, 'the name is too long')):
            with self.subTest(path=path):
                lines, (text,) = self.listing(path, '<module>', 1, 1)
                self.assertEqual(lines, [1])
                self.assertIn(note, text)

    def test_scripts_without_an_extension(self):
        path = os.path.join(self.files.outside, 'tool')
        with open(path, 'w') as file:
            file.write('#!/usr/bin/env python3\nx = 1\n')
        self.assertEqual(self.listing(path, '<module>', 1, 2), ([1, 2], []))

    def test_of_a_module_what_is_near(self):
        path = os.path.join(self.files.outside, 'long.py')
        with open(path, 'w') as file:
            file.write('x = 1\n' * 150_005)
        lines, notes = self.listing(path, '<module>', 1, 70_000)
        self.assertEqual(lines, [*range(69_992, 70_009)])
        self.assertEqual(notes, [
            'Only lines within 8 of one with samples are shown.'])

    def test_no_warnings_of_what_is_compiled(self):
        path = os.path.join(self.files.outside, 'warns.py')
        with open(path, 'w') as file:
            file.write(r'x = "\d"' '\n')
        with self.assertNoLogs(), support.captured_stderr() as stderr:
            self.assertEqual(self.listing(path, '<module>', 1, 1),
                             ([1], []))
        self.assertEqual(stderr.getvalue(), '')

    def test_form_feeds_end_no_line(self):
        path = os.path.join(self.files.outside, 'feed.py')
        with open(path, 'w') as file:
            file.write('x = 1\n\f\ndef f():\n    return "\x1c"\n')
        lines, _ = self.listing(path, 'f', 3, 4)
        self.assertEqual(lines, [3, 4])


class ZipTest(ForeignTest):

    def archive(self, name, **options):
        path = os.path.join(self.files.inside, name)
        with zipfile.ZipFile(path, 'w', **options) as file:
            file.writestr('p/__init__.py', '')
            file.writestr('p/known.py', foreign.KNOWN)
            file.writestr('p/huge.py', ' ' * (5 << 20))
        return path

    def test_modules_in_zip_files(self):
        path = self.archive('a.zip', compression=zipfile.ZIP_DEFLATED)
        known = os.path.join(path, 'p', 'known.py')
        self.assertEqual(self.listing(known, 'f', 1, 2), ([1, 2], []))
        with self.importable():
            self.assertEqual(self.shown((known, 'f', 1, 2)), [([1, 2], [])])

    def test_what_is_not_there(self):
        path = self.archive('a.zip', compression=zipfile.ZIP_DEFLATED)
        for member, note in (('gone.py', 'There is no item named'),
                             ('p/huge.py', 'more than 4,194,304 bytes')):
            _, (text,) = self.listing(f'{path}/{member}', '<module>', 1, 1)
            self.assertIn(note, text)
        path = self.archive('b.zip', compression=zipfile.ZIP_BZIP2)
        _, (text,) = self.listing(f'{path}/p/known.py', 'f', 1, 1)
        self.assertIn('its compression is unknown', text)
        _, (text,) = self.listing(f'{self.files.known}/p.py', 'f', 1, 1)
        self.assertIn('File is not a zip file', text)

    def test_of_a_program_that_imports_from_one(self):
        path = self.archive('a.zip')
        known = os.path.join(path, 'p', 'known.py')
        b = Builder()
        b.sample([(b.function('p.known', 'f', known, 1), 2)], wall_ns=1)
        with support.swap_attr(sys, 'path', [path, *sys.path]):
            import p.known
            self.addCleanup(sys.modules.pop, 'p.known')
            self.addCleanup(sys.modules.pop, 'p')
            function, = foreign.embedded(foreign.page_of(b.profile()))
        self.assertEqual([*function['lines'].values()],
                         ['def f(x):', '    return x + 1'])


class CommandTest(ForkedCommandLineTest):
    """All commands that write pages."""

    def setUp(self):
        super().setUp()
        os.mkdir(os.path.join(self.directory, 'files'))
        self.files = foreign.Files(os.path.realpath(
            os.path.join(self.directory, 'files')))
        self.addCleanup(self.files.close)
        for name in 'a.pb.gz', 'b.pb.gz':
            foreign.profile([(self.files.private, 'connect', 2, 3),
                             ('/dev/zero', '<module>', 1, 1)]).save(
                os.path.join(self.directory, name))

    def test_pages(self):
        for arguments in (['report', 'a.pb.gz'], ['report', '--html',
                          'a.pb.gz'], ['merge', 'a.pb.gz', 'b.pb.gz'],
                          ['diff', 'a.pb.gz', 'b.pb.gz']):
            for roots, is_shown in (([], False), (
                    ['--source-root', self.files.inside, '--source-root',
                     self.files.outside], True)):
                with self.subTest(arguments=arguments, roots=roots):
                    status, _, err = self.run_cli(*arguments, '-o', 'x.html',
                                                  *roots)
                    self.assertEqual(status, 0, err)
                    self.assertEqual(foreign.SECRET in str(foreign.embedded(
                        self.read('x.html'))), is_shown)

    def test_one_or_the_other(self):
        self.assertFails(2, 'not allowed with argument', 'report', 'a.pb.gz',
                         '--html', '--no-source', '--source-root', '.')


class FuzzTest(ForeignTest):

    def test_names(self):
        outcomes = set()
        with self.importable():
            for seed in range(PROFILES):
                profile, source = foreign.any_profile(random.Random(seed),
                                                      self.files)
                with self.subTest(seed=seed):
                    outcomes.add(foreign.judge(profile, source, self.files))
        self.assertEqual(outcomes, {True, False})
