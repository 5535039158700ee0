"""What commands say of what rarely happens."""

import os
import random
import signal
import subprocess
import sys
from unittest import mock

from profile_sampling import Profile
from profile_sampling._cli import gather, page, record
from profile_sampling._cli.common import Failure
from profile_sampling._data import timeline

from ..support.builders import Builder, example
from ..support.sessions import ProgramTest, environment
from ..support.timed import records_of, timed, with_records
from .test_cli import PROG, ForkedCommandLineTest

MS = 1_000_000


class ReportTest(ForkedCommandLineTest):

    def save(self, name, profile):
        profile.save(os.path.join(self.directory, name))
        return name

    def report(self, *arguments):
        status, text, err = self.run_cli('report', *arguments)
        self.assertEqual((status, err), (0, ''))
        return ' '.join(text.decode().split())

    def test_no_stdin(self):
        result = subprocess.run(
            ['sh', '-c', f'"{sys.executable}" -m profile_sampling report - '
             '<&-'], capture_output=True, text=True)
        self.assertEqual((result.returncode, result.stdout), (1, ''))
        self.assertEqual(result.stderr, f'{PROG}: cannot read from stdin: it '
                                        'is closed\n')

    def test_no_browser(self):
        path = os.path.join(self.directory, 'p.html')
        with (mock.patch('webbrowser.open', return_value=False),
              mock.patch.dict(os.environ, {'DISPLAY': ':0'}, clear=True),
              mock.patch.object(sys, 'stdout') as stdout,
              mock.patch.object(page, 'say') as say):
            stdout.isatty.return_value = True
            page.save(example().profile()._tables, path, True)
        say.assert_called_once_with('no browser could be opened')

    def test_time_lines(self):
        profile = example().profile()
        text = self.report(self.save('p.pb.gz', with_records(
            profile, records_of(profile, random.Random(1))[:5], 2 * MS)))
        self.assertRegex(text, r'Time line: 5 records, those within 2\.000 ms '
                               r'are one, [\d.,]+ m?s at no moment')

    def test_a_time_line_that_another_tool_has_made_stale(self):
        tables = timed(example().profile(), random.Random(1))._tables
        stale = tables.with_timeline(timeline.nothing())
        with mock.patch.object(
                timeline, 'value_numbers', lambda tables: [2, 1, 0]):
            name = self.save('p.pb.gz', Profile._from_tables(stale))
        self.assertIn('Time line: left out, as another tool has changed the '
                      'samples that it was of', self.report(name))
        self.assertFails(2, 'another tool has changed them', 'report', name,
                         '--from', '1')

    def test_files_without_a_date(self):
        self.save('p.pb.gz', example(start_time_ns=0).profile())
        self.assertIn('at a time not known', self.report('p.pb.gz'))
        status, text, err = self.run_cli('list')
        self.assertEqual((status, err), (0, ''))
        self.assertRegex(text, rb'\n  - +wall .* p\.pb\.gz')


class DiffTest(ForkedCommandLineTest):

    def save(self, name, b):
        b.profile().save(os.path.join(self.directory, name))
        return name

    def one(self, name, ms, label='/x'):
        b = Builder()
        b.sample('m.main:1', wall_ns=ms * MS, count=ms,
                 labels={'route': label} if label else ())
        b.sample('m.main:2', wall_ns=300 * MS, count=300)
        b.sample('m.main:3', state='custom', count=10)
        return self.save(name, b)

    def runs(self, name, times):
        return [self.one(f'{name}{number}.pb.gz', ms)
                for number, ms in enumerate(times)]

    def diff(self, *arguments, status=0):
        result = self.run_cli('diff', *arguments)
        self.assertEqual((result[0], result[2]), (status, ''))
        return result[1].decode()

    def test_rows_without_a_label(self):
        text = self.diff(self.one('a.pb.gz', 100), self.one('b.pb.gz', 200),
                         '--by', 'route')
        self.assertIn('  [without]\n', text)

    def test_gates_in_markdown(self):
        text = self.diff(*self.runs('a', [100, 101, 102, 103, 104]), '--',
                         *self.runs('b', [200, 201, 202, 203, 204]),
                         '--format', 'markdown', '--gate', 'total:3%',
                         '--per', 'custom', status=3)
        self.assertRegex(text, r'### Wall time in all per unit of work: \+')
        self.assertRegex(
            text, r'\n\| <?.*total \(3 %\).* \| .*REGRESSION')


class RecordTest(ProgramTest):

    def record(self, *arguments, **options):
        return self.run_python('-m', 'profile_sampling', 'record', *arguments,
                               **options)

    def assertSays(self, result, status, message):
        self.assertEqual((result.status, result.out), (status, b''))
        self.assertIn(message, result.err)
        self.assertEqual(result.err.count('\n'), 1, result.err)

    def test_what_looks_like_an_option(self):
        self.assertSays(self.record('-q', '-5'), 2,
                        '-5 is no option of this command')

    def test_a_long_command(self):
        result = self.record('-o', 'p.pb.gz', '--', 'sh', '-c',
                             'exit 4; ' + 'x' * 300)
        begin = 'sh -c exit 4; '.ljust(200, 'x')
        self.assertSays(result, 4, f'"{begin}..." ran')

    def test_this_python_cannot_be_run(self):
        options = mock.Mock(
            format=None, output='p.pb.gz', no_source=False, timeline=False,
            repeat=None, alternate=False, program=None, words=['-'],
            pid=None,
            mode='wall', rate=1, depth=None, duration=None, names=None,
            calls=None, watch=(), quiet=False, meta=None)
        self.enterContext(mock.patch.dict(os.environ))
        self.enterContext(mock.patch.object(
            os, 'execv', side_effect=OSError(7, 'Argument list too long')))
        with self.assertRaisesRegex(Failure, 'cannot run .*: Argument list'):
            record._run(options)

    def test_no_room_for_the_profiles_of_processes(self):
        self.enterContext(mock.patch(
            'tempfile.mkdtemp', side_effect=OSError(28, 'No space left')))
        for output, where in ('/tmp/p.pb.gz', ' in /tmp'), (None, ''):
            with self.assertRaisesRegex(
                    Failure, f'cannot make a directory{where}: No space'):
                gather.Parts(output)

    def test_profiles_that_cannot_be_added_up(self):
        # Nothing is lost: they stay where they are.
        command = (f'"{sys.executable}" -c 1; '
                   'PYTHONSAMPLEPROF=cpu${PYTHONSAMPLEPROF#wall} '
                   f'"{sys.executable}" -c 1')
        for arguments in (['record', '-q', '-o', 'p.pb.gz'], ['stat']):
            with self.subTest(arguments=arguments):
                result = self.run_python(
                    '-m', 'profile_sampling', *arguments, '--', 'sh', '-c',
                    command, env=environment(TMPDIR=self.directory))
                self.assertSays(result, 1, 'cannot merge a profile of mode')
                parts = result.err.split(' are in ')[1].strip()
                self.assertEqual(
                    {Profile.load(os.path.join(parts, name)).mode
                     for name in os.listdir(parts)}, {'wall', 'cpu'})

    def test_a_parent_that_ignores_its_children(self):
        result = self.record(
            '-q', '-o', 'p.pb.gz', '--', sys.executable, '-c', 'exit(5)',
            preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
        self.assertEqual((result.status, result.err), (5, ''))
        self.assertEqual(self.files(), ['p.pb.gz'])
