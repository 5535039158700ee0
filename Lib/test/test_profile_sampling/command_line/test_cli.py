"""python -m profile_sampling: output, messages, statuses."""

import os
import re
import signal
import subprocess
import sys
import tempfile
import traceback
import unittest

from profile_sampling import Profile, _formats
from profile_sampling._cli.main import main

from ..support.builders import Builder, example

PROG = 'python -m profile_sampling'


class CommandLineTest(unittest.TestCase):
    """A test that runs the command line in a directory of its own."""

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name

    def run_cli(self, *arguments, **options):
        """Return (status, stdout as bytes, stderr)."""
        environment = os.environ | {
            'PYTHONPATH': os.pathsep.join(filter(None, sys.path))}
        result = subprocess.run(
            [sys.executable, '-m', 'profile_sampling', *arguments],
            cwd=self.directory, env=environment, stderr=subprocess.PIPE,
            **{'stdout': subprocess.PIPE} | options)
        return result.returncode, result.stdout, result.stderr.decode()

    def read(self, name):
        with open(os.path.join(self.directory, name), 'rb') as file:
            return file.read()

    def assertFails(self, status, message, *arguments, **options):
        result = self.run_cli(*arguments, **options)
        self.assertEqual(result[:2], (status, b''))
        self.assertRegex(result[2], message)
        self.assertTrue(result[2].startswith(PROG), result[2])
        self.assertEqual(result[2].count('\n'), 1, result[2])


class EndsTest(CommandLineTest):

    def test_control_c(self):
        """As a shell wants it: one line, and the end by the signal."""
        os.mkfifo(os.path.join(self.directory, 'p.pb.gz'))
        path = os.path.join(self.directory, 'p.pb.gz')
        process = subprocess.Popen(
            [sys.executable, '-m', 'profile_sampling', 'report', path],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        # It reads as soon as this can be opened.
        with open(path, 'wb'):
            process.send_signal(signal.SIGINT)
            out, err = process.communicate()
        self.assertEqual((process.returncode, out, err.decode()),
                         (-signal.SIGINT, b'', f'{PROG}: interrupted\n'))


class ForkedCommandLineTest(CommandLineTest):
    """The same in forks of this process, which has imported it all: most of
    the time of a command goes into its start."""

    def run_cli(self, *arguments, **options):
        if options:
            return super().run_cli(*arguments, **options)
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            pid = os.fork()
            if not pid:
                self.become_command(arguments, out, err)
            _, status = os.waitpid(pid, 0)
            out.seek(0)
            err.seek(0)
            return (os.waitstatus_to_exitcode(status), out.read(),
                    err.read().decode())

    def become_command(self, arguments, out, err):
        status = 1
        try:
            os.chdir(self.directory)
            os.dup2(out.fileno(), 1)
            os.dup2(err.fileno(), 2)
            sys.stdout = open(1, 'w', closefd=False)
            sys.stderr = open(2, 'w', closefd=False)
            status = main(list(arguments))
        except SystemExit as exc:
            status = exc.code or 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)


class OtherWordsTest(ForkedCommandLineTest):
    """Words of other profilers: one sentence says what there is instead."""

    def test_commands(self):
        for name, said in (
                ('attach', 'of a process that runs: record -p PID'),
                ('watch', 'what a process that runs does, second by second: '
                          'top -p PID'),
                ('flame', 'a page with a flame graph: report --html FILE'),
                ('help', '--help, or COMMAND --help')):
            self.assertFails(2, f'there is no command {name}: {said}', name,
                             '4126')

    def test_options(self):
        for option, said, *arguments in (
                ('--pid', 'of a process that runs: record', 'list', '4126'),
                ('-p', 'of a process that runs: record', 'list', '4126'),
                ('--memory', 'sampled allocations are the mode', 'record',
                 'app.py'),
                ('--gil', 'who held the GIL is in every profile', 'record',
                 'app.py')):
            command, *rest = arguments
            self.assertFails(2, f'there is no option {option}: {said}',
                             command, option, *rest)

    def test_kinds_of_values(self):
        example().profile().save(os.path.join(self.directory, 'p.pb.gz'))
        self.assertFails(2, 'sampled allocations are the mode alloc', 'report',
                         'p.pb.gz', '--value', 'memory')


class ReportTest(CommandLineTest):

    def setUp(self):
        super().setUp()
        self.profile = example().profile()
        self.profile.save(os.path.join(self.directory, 'p.pb.gz'))

    def test_the_newest_run(self):
        # Of the three newest files two are of one run; an old one is damaged.
        for number, name, run in ((4, 'child', '1.7'), (3, 'other', '9.9'),
                                  (2, 'first', '1.7'), (1, 'alone', None)):
            meta = {'run': run} if run else {}
            if name == 'first':
                meta['command'] = 'serve'
            path = os.path.join(self.directory, f'{name}.pb.gz')
            Builder(pid=number, meta=meta, start_time_ns=1).sample(
                f'a.{name}:1', wall_ns=10 ** 9).profile().save(path)
            os.utime(path, (number * 1000, number * 1000))
        with open(os.path.join(self.directory, 'x.pb.gz'), 'wb') as file:
            file.write(b'x')
        os.utime(file.name, (10, 10))
        os.unlink(os.path.join(self.directory, 'p.pb.gz'))
        for names in [], ['.']:
            status, out, err = self.run_cli('report', *names)
            self.assertEqual(status, 0, err)
            self.assertIn('the newest run here has 2 processes: child.pb.gz '
                          'and 1 more\n', err)
            self.assertEqual(out.count(b' a.'), 2)
            self.assertIn(b'2 processes', out)
            self.assertEqual(
                [line.split()[-1] for line in out.decode().partition(
                    '  pid\n')[2].split('\n\n')[0].splitlines()],
                ['2', '4'])
        path = os.path.join(self.directory, 'all.pb')
        self.assertEqual(self.run_cli('report', '-o', path)[0], 0)
        self.assertEqual(Profile.load(path).meta, {'command': 'serve'})
        # Neither the sum nor a copy is one more process.
        copy = os.path.join(self.directory, 'copy.pb.gz')
        Profile.load(os.path.join(self.directory, 'child.pb.gz')).save(copy)
        os.utime(path, (11, 11))
        os.utime(copy, (9000, 9000))
        status, out, err = self.run_cli('report')
        self.assertIn('2 processes: copy.pb.gz and 1 more\n', err)
        self.assertIn(b'wall 2.00s', out)

    def test_several_files(self):
        for name in 'abc':
            Builder(pid=ord(name)).sample(
                f'{name}.f:1', wall_ns=10 ** 9).profile().save(
                os.path.join(self.directory, f'{name}.run.pb.gz'))
        for names in (['*.run.pb.gz'],
                      ['a.run.pb.gz', 'b.run.pb.gz', 'c.run.pb.gz']):
            status, out, err = self.run_cli('report', *names)
            self.assertEqual((status, err), (0, ''))
            self.assertIn(b'a.run.pb.gz and 2 more\n', out)
            self.assertIn(b'wall 3.00s', out)
        self.assertFails(2, 'a.run.pb.gz is named twice', 'report',
                         'a.run.pb.gz', 'a.run.pb.gz')

    def test_formats_on_stdout(self):
        for arguments, begin in (
                ([], b'p.pb.gz\nWall profile'),
                (['--format', 'collapsed'], b'[lost] 1000\n'),
                (['--format', 'pprof'], self.read('p.pb.gz')),
                (['-o', '/dev/stdout', '--format', 'pprof'],
                 self.read('p.pb.gz'))):
            with self.subTest(arguments=arguments):
                status, data, err = self.run_cli('report', 'p.pb.gz',
                                                 *arguments)
                self.assertEqual((status, err), (0, ''))
                self.assertTrue(data.startswith(begin), data)

    def test_pages(self):
        for arguments, name in ((['--html', 'p.pb.gz'], 'p.html'),
                                (['--open', 'p.pb.gz'], 'p.html'),
                                (['p.pb.gz', '--html', '-o', 'q'], 'q'),
                                (['--html'], 'p.html')):
            with self.subTest(arguments=arguments):
                status, out, err = self.run_cli('report', *arguments)
                self.assertEqual((status, out), (0, f'{name}\n'.encode()))
                self.assertTrue(self.read(name).startswith(b'<!DOCTYPE html>'))
                if '--open' in arguments:
                    self.assertIn('no browser is opened: stdout is no '
                                  'terminal', err)
                os.unlink(os.path.join(self.directory, name))

    def test_a_page_is_a_profile(self):
        self.assertEqual(self.run_cli('report', 'p.pb.gz', '-o', 'p.html'),
                         (0, b'', ''))
        self.assertEqual(
            self.run_cli('report', 'p.html', '--format', 'pprof'),
            (0, self.read('p.pb.gz'), ''))
        self.assertFails(2, 'p.html is a page; name another file', 'report',
                         '--html', 'p.html')
        self.assertFails(2, 'name a file for the page with -o', 'report',
                         '--html', '-')
        self.assertFails(2, 'a page is not svg', 'report', '--html',
                         '--format', 'svg', 'p.pb.gz')

    def test_stdin_and_stdout(self):
        with open(os.path.join(self.directory, 'p.pb.gz'), 'rb') as file:
            self.assertEqual(
                self.run_cli('report', '-', '--format', 'pprof', '-o', '-',
                             stdin=file), (0, self.read('p.pb.gz'), ''))
        self.assertEqual(os.listdir(self.directory), ['p.pb.gz'])
        with open(os.path.join(self.directory, 'p.pb.gz'), 'rb') as file:
            status, _, err = self.run_cli('merge', '-', '-o', 'o.pb.gz',
                                          stdin=file)
        self.assertEqual(status, 0, err)
        self.assertFails(1, '<stdin>: is empty', 'report', '-',
                         stdin=subprocess.DEVNULL)

    def test_what_is_refused(self):
        with open(os.path.join(self.directory, 'bad'), 'wb') as file:
            file.write(self.read('p.pb.gz')[:100])
        os.mkdir(os.path.join(self.directory, 'dir'))
        Builder().sample('a.f', wall_ns=-5).profile().save(
            os.path.join(self.directory, 'n.pb.gz'))
        before = sorted(os.listdir(self.directory))
        for status, message, arguments in (
                (2, 'COMMAND', []), (2, 'nonsense', ['nonsense']),
                (2, 'doc', ['report', 'p.pb.gz', '--format', 'doc']),
                (2, 'positive number', ['report', 'p.pb.gz', '--top', '0']),
                (2, 'positive number', ['report', 'p.pb.gz', '--top', 'x']),
                (2, 'is no regular expression',
                 ['report', 'p.pb.gz', '--html', '--focus', '(']),
                # No beginnings of options.
                (2, 'unrecognized arguments: --func',
                 ['report', '--func', 'p.pb.gz']),
                (1, 'cannot read nothing: No such file',
                 ['report', 'nothing']),
                (1, r'cannot read a\\nb\\x1b: No such file',
                 ['report', 'a\nb\x1b']),
                (2, 'there is no profile in dir; name a FILE',
                 ['report', 'dir']),
                (1, 'bad: is cut off', ['report', 'bad']),
                (1, 'cannot write no/o.txt: No such file',
                 ['report', 'p.pb.gz', '-o', 'no/o.txt']),
                (1, 'cannot write /dev/null: is not a regular file',
                 ['report', 'p.pb.gz', '-o', '/dev/null', '--format',
                  'text']),
                (1, 'cannot show the negative values',
                 ['report', 'n.pb.gz', '-o', 'n.svg'])):
            with self.subTest(arguments=arguments):
                self.assertFails(status, message, *arguments)
        self.assertEqual(sorted(os.listdir(self.directory)), before)

    def test_files_in_other_formats(self):
        """It is said what they are, and nothing of their bytes."""
        kinds = {'collapsed': 'collapsed stacks', 'text': 'text',
                 'speedscope': 'a speedscope file', 'pstats': 'a pstats file',
                 'svg': 'an SVG image', 'profile-json': 'JSON',
                 'callgrind': 'a Callgrind file', 'dot': 'a graph in DOT',
                 'gecko': 'a file of the Firefox Profiler',
                 'gecko-gz': 'a file of the Firefox Profiler'}
        self.assertEqual({*kinds, 'pprof', 'html'}, {*_formats.FORMATS})
        hint = re.escape('; only pprof files (.pb.gz) and pages (.html) can '
                         'be read\n')
        for format, kind in kinds.items():
            with self.subTest(format=format):
                name = f'o{_formats.extension(format)}'
                self.run_cli('report', 'p.pb.gz', '-o', name)
                self.assertFails(
                    1, f'{name}: is not a pprof file but {kind}{hint}',
                    'report', name)
        for name, begin, said in (
                ('o', '{"a": 1}', f'but JSON{hint}'),
                ('o.pb.gz', 'text', f'but text{hint}'),
                ('o.py', '# \xe9', 'but a Python program; record profiles it'),
                ('o.html', '<html><svg/>', 'is a page without a profile')):
            with self.subTest(name=name):
                with open(os.path.join(self.directory, name), 'w',
                          encoding='latin-1') as file:
                    file.write(begin)
                self.assertFails(1, said, 'report', name)

    def test_a_reader_that_leaves(self):
        read, write = os.pipe()
        os.close(read)
        try:
            status, _, err = self.run_cli('report', 'p.pb.gz', stdout=write)
        finally:
            os.close(write)
        self.assertEqual((status, err), (0, ''))

    def test_a_full_disk(self):
        if not os.path.exists('/dev/full'):
            self.skipTest('needs /dev/full')
        with open('/dev/full', 'wb') as full:
            status, _, err = self.run_cli('report', 'p.pb.gz', stdout=full)
        self.assertEqual(status, 1)
        self.assertIn('cannot write to stdout: No space left', err)
        self.assertEqual(err.count('\n'), 1)

    def test_a_terminal_gets_no_binary(self):
        import pty
        leader, follower = pty.openpty()
        self.addCleanup(os.close, leader)
        self.addCleanup(os.close, follower)
        for format in 'pprof', 'pstats':
            status, _, err = self.run_cli('report', 'p.pb.gz', '--format',
                                          format, stdout=follower)
            self.assertEqual(status, 2)
            self.assertIn(f'a {format} file is binary; name a file with -o',
                          err)

    def test_all_formats(self):
        tables = Profile.load(os.path.join(self.directory, 'p.pb.gz'))._tables
        for format in _formats.FORMATS:
            extension = _formats.extension(format)
            self.assertEqual(
                self.run_cli('report', 'p.pb.gz', '-o', f'o{extension}'),
                (0, b'', ''))
            self.assertEqual(self.read(f'o{extension}'),
                             _formats.encode(tables, format))
        self.assertEqual(
            self.run_cli('report', 'p.pb.gz', '--no-source', '-o', 'o.html'),
            (0, b'', ''))
        self.assertEqual(self.read('o.html'),
                         _formats.encode(tables, 'html', with_source=False))

    def test_formats_that_are_named(self):
        """What is refused is told all that is not."""
        for known, arguments in (
                (_formats.FORMATS | _formats.REPORTS, ['report', 'p.pb.gz']),
                (_formats.FORMATS, ['merge', 'p.pb.gz']),
                (_formats.FORMATS, ['record', 'p.pb.gz']),
                (_formats.CHANGES, ['diff', 'p.pb.gz', 'p.pb.gz'])):
            extensions = ', '.join(_formats.by_extension(known))
            self.assertFails(
                2, re.escape(f"the name 'o.doc'; known extensions: "
                             f'{extensions}; or give a format: '
                             f'{", ".join(known)}\n'),
                arguments[0], '-o', 'o.doc', *arguments[1:])

    def test_the_loaded_file_is_not_ours_to_change(self):
        before = self.read('p.pb.gz')
        for arguments in (['p.pb.gz', '-o', './p.pb.gz'],
                          ['p.pb.gz', '--format', 'text', '-o', 'p.pb.gz'],
                          ['p.pb.gz', '--html', '-o', 'p.pb.gz']):
            with self.subTest(arguments=arguments):
                self.assertFails(2, 'p.pb.gz is to be read and to be written',
                                 'report', *arguments)
                self.assertEqual(self.read('p.pb.gz'), before)
        status, out, err = self.run_cli('report', '-o', 'p.pb.gz')
        self.assertEqual((status, out), (2, b''))
        self.assertIn('p.pb.gz is to be read and to be written', err)
        self.assertEqual(self.read('p.pb.gz'), before)
