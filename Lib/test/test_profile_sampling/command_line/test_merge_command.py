"""python -m profile_sampling merge."""

import contextlib
import io
import os
import shutil

from profile_sampling import Profile, _formats
from profile_sampling._cli.main import main

from ..support import validator
from ..support.builders import example, facts_of, process
from .test_cli import PROG, ForkedCommandLineTest


class CommandTest(ForkedCommandLineTest):

    def setUp(self):
        super().setUp()
        for pid in 11, 12, 13:
            self.save(process(pid), f'{pid}.pb.gz')

    def save(self, profile, name):
        profile.save(os.path.join(self.directory, name))

    def load(self, name):
        path = os.path.join(self.directory, name)
        with open(path, 'rb') as file:
            validator.check_pprof(file.read())
        return Profile.load(path)

    def files(self):
        return sorted(os.listdir(self.directory))

    def test_to_a_file(self):
        self.assertEqual(
            self.run_cli('merge', '-o', 'all.pb.gz', '11.pb.gz', '12.pb.gz',
                         '13.pb.gz'),
            (0, b'', f'{PROG}: merged 3 files of 3 processes into all.pb.gz: '
             '0.003 ms wall, 0.002 ms CPU, 3 samples in all threads together, '
             '0 lost\n'))
        self.assertEqual(
            facts_of(self.load('all.pb.gz')),
            facts_of(Profile.merge(*[process(pid) for pid in (11, 12, 13)])))

    def test_what_takes_much_memory(self):
        """The option that the message names lets it be read."""
        for arguments, size, message in (
                (['report', '11.pb.gz'], '1K', '11.pb.gz: needs more than '
                 '1,024 bytes of memory to read; pass a larger --max-bytes'),
                (['list'], '1K', 'pass a larger --max-bytes'),
                (['merge', '11.pb.gz', '12.pb.gz'], '10000',
                 'needs? more than 10,000 bytes of memory.*'
                 'pass a larger --max-bytes'),
                (['diff', '11.pb.gz', '12.pb.gz'], '1k',
                 'pass a larger --max-bytes')):
            with self.subTest(arguments=arguments):
                status, _, err = self.run_cli(*arguments, '--max-bytes', size)
                self.assertEqual(status, 1)
                self.assertRegex(err, message)
                status, _, err = self.run_cli(*arguments, '--max-bytes', '1G')
                self.assertEqual(status, 0, err)
        self.assertFails(2, 'invalid size such as', 'report', '11.pb.gz',
                         '--max-bytes', '1T')

    def test_to_stdout(self):
        status, data, err = self.run_cli('merge', '11.pb.gz', '12.pb.gz')
        self.assertEqual((status, self.files()),
                         (0, ['11.pb.gz', '12.pb.gz', '13.pb.gz']), err)
        self.assertIn('merged 2 files of 2 processes: ', err)
        validator.check_pprof(data)
        self.assertEqual(data, _formats.encode(
            Profile.merge(process(11), process(12))._tables, 'pprof'))

    def test_name_that_looks_like_a_pattern(self):
        self.save(process(99), '[1]*.pb.gz')
        status, _, err = self.run_cli('merge', '-o', 'a.pb.gz', '[1]*.pb.gz')
        self.assertEqual(status, 0)
        self.assertIn('merged 1 file of 1 process into', err)
        self.assertEqual(list(self.load('a.pb.gz').group_by('pid')), ['99'])

    def test_many_files(self):
        for pid in range(1000, 1300):
            self.save(process(pid), f'{pid}.pb')
        status, _, err = self.run_cli('merge', '-o', 'all.pb.gz', '*.pb')
        self.assertEqual(status, 0)
        self.assertIn('merged 300 files of 300 processes', err)
        merged = self.load('all.pb.gz')
        self.assertEqual(merged.total_count, 300)
        self.assertEqual(len(merged._tables.functions), 2)

    def test_files_without_pid(self):
        self.save(example().profile(), 'old.pb.gz')
        status, _, err = self.run_cli('merge', '-o', 'all.pb.gz', 'old.pb.gz',
                                      '11.pb.gz')
        self.assertEqual(status, 0)
        self.assertIn('merged 2 files of 1 process', err)
        self.assertIn('; 1 file without the number of a process\n', err)
        # A sum of profiles has the numbers in its labels.
        _, _, err = self.run_cli('merge', '-o', 'more.pb.gz', 'all.pb.gz',
                                 '12.pb.gz')
        self.assertNotIn('without', err)

    def assertRefused(self, status, message, *arguments):
        before = self.files()
        self.assertFails(status, message, 'merge', *arguments)
        self.assertEqual(self.files(), before)

    def test_copies(self):
        # PITFALLS F10.
        shutil.copy(os.path.join(self.directory, '11.pb.gz'),
                    os.path.join(self.directory, 'copy.pb.gz'))
        self.assertRefused(2, 'copy.pb.gz is a copy of 11.pb.gz',
                           '11.pb.gz', '12.pb.gz', 'copy.pb.gz')

    def test_usage(self):
        os.symlink('12.pb.gz', os.path.join(self.directory, 'link.pb.gz'))
        for message, arguments in (
                ('FILE', []),
                ('FILE', ['-o', 'all.pb.gz']),
                ('doc', ['11.pb.gz', '--format', 'doc']),
                ('known extensions', ['11.pb.gz', '-o', 'all.doc']),
                ('11.pb.gz is named twice', ['11.pb.gz', './11.pb.gz']),
                ('12.pb.gz is named twice', ['12.pb.gz', '1*.pb.gz']),
                ('is to be read and to be written',
                 ['-o', '12.pb.gz', 'link.pb.gz']),
                ('12.pb.gz is to be read and to be written',
                 ['-o', '12.pb.gz', '11.pb.gz', '12.pb.gz'])):
            with self.subTest(arguments=arguments):
                self.assertRefused(2, message, *arguments)

    def test_bad_files(self):
        with open(os.path.join(self.directory, 'bad'), 'wb') as file:
            file.write(self.read('11.pb.gz')[:100])
        os.mkdir(os.path.join(self.directory, 'dir'))
        self.save(process(14, mode='cpu'), 'cpu.pb.gz')
        self.save(process(15, ns=2 ** 63 - 1), 'huge.pb.gz')
        for message, arguments in (
                ('cannot read nothing: No such file', ['nothing']),
                ('cannot read dir: Is a directory', ['dir']),
                ('no file has a name like z\\*', ['z*']),
                ('bad: is cut off', ['bad']),
                ('cpu.pb.gz: cannot merge a profile of mode cpu with one of '
                 'mode wall', ['cpu.pb.gz']),
                ('huge.pb.gz: the weights of all samples add up to more than '
                 '64 bits', ['huge.pb.gz']),
                ('cannot write no/o.txt: No such file', ['-o', 'no/o.txt'])):
            with self.subTest(arguments=arguments):
                self.assertRefused(1, message, '11.pb.gz', *arguments)

    def test_no_stdout_nor_stderr(self):
        # What is said must not get into the file by mistake.
        out = io.StringIO()
        with (contextlib.redirect_stdout(out),
              contextlib.redirect_stderr(None),
              contextlib.chdir(self.directory)):
            self.assertEqual(main(['merge', '11.pb.gz', '-o', 'a.pb.gz']), 0)
        self.assertEqual(out.getvalue(), '')
        with (contextlib.redirect_stdout(None),
              contextlib.redirect_stderr(out),
              contextlib.chdir(self.directory)):
            self.assertEqual(main(['merge', '11.pb.gz']), 1)
        self.assertEqual(out.getvalue(), f'{PROG}: cannot write to stdout: '
                                         'it is closed\n')
