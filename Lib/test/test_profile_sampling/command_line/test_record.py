"""python -m profile_sampling record."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import unittest

from profile_sampling import Profile
from profile_sampling._data import by_wait

from ..support.compiling import compile_extension
from ..support.sessions import environment
from .recorded import PROG, WORK, WORK_NS, RecordTest


class PythonTest(RecordTest):
    """What runs in our place."""

    def test_script(self):
        result = self.record('-o', 'p.pb.gz', 'work.py', '-r', '5', '-o')
        self.assertEqual(result.status, 3, result.err)
        pid, argv, path, variables = json.loads(result.out)
        self.assertEqual(argv, ['work.py', '-r', '5', '-o'])
        self.assertEqual(os.path.realpath(path),
                         os.path.realpath(self.directory))
        self.assertEqual(variables, ['PYTHONSAMPLEPROF_OWNER'])
        profile = self.load('p.pb.gz')
        self.assertEqual((profile.pid, profile.mode, profile.rate_hz),
                         (pid, 'wall', 1000))
        self.check_work(profile)
        self.assertEqual(len(result.said()), 1)

    def test_module_and_code(self):
        for arguments, argv in (
                (['-m', 'work', '-m', 'x'], ['-m', 'x']),
                (['-c', 'from work import *; import runpy; '
                  'runpy.run_module("work", run_name="__main__", '
                  'alter_sys=False)', '--', '-q'], ['--', '-q'])):
            with self.subTest(arguments=arguments[0]):
                result = self.record('-o', 'p.pb.gz', *arguments)
                self.assertEqual(result.status, 3, result.err)
                self.assertEqual(json.loads(result.out)[1][1:], argv)
                self.check_work(self.load('p.pb.gz'))

    def test_a_module_with_the_name_of_a_mode(self):
        self.file('wall.py', 'print(__name__)')
        result = self.record('-q', '-o', 'p.pb.gz', '-m', 'wall')
        self.assertEqual((result.status, result.out, result.err),
                         (0, b'__main__\n', ''))

    def test_options(self):
        result = self.record(
            '--mode', 'cpu', '-r', '500', '--depth', '7', '--names', 'off',
            '-q', '--output', 'p.pb.gz', 'work.py')
        self.assertEqual((result.status, result.err), (3, ''))
        profile = self.load('p.pb.gz')
        self.assertEqual(
            (profile.mode, profile.rate_hz, profile.depth_frames,
             profile.names), ('cpu', 500, 7, 'off'))

    def test_our_own_options_are_the_programs(self):
        code = ('import sys; f = sys.flags; print(f.optimize, f.dev_mode, '
                'sys.stdout.write_through, f.hash_randomization, '
                'sorted(sys._xoptions), sys.warnoptions)')
        said = (f"1 True True 1 ['dev', 'frozen_modules', 'sampleprof'] "
                "['default', 'error::FutureWarning']\n".encode())
        for options in (['-Ou', '-X', 'dev', '-Xfrozen_modules=off', '-W',
                         'error::FutureWarning', '--check-hash-based-pycs',
                         'default', '-m'],
                        ['-Xdev', '-X', 'frozen_modules',
                         '-Werror::FutureWarning', '-Oum']):
            with self.subTest(options=options):
                result = self.run_python(
                    *options, 'profile_sampling', 'record', '-q', '-o',
                    'p.pb.gz', '-c', code)
                self.assertEqual((result.out, result.err), (said, ''))

    def test_a_program_that_fails_or_is_interrupted(self):
        for code, status in (('1 / 0', 1),
                             ('raise KeyboardInterrupt', -signal.SIGINT)):
            with self.subTest(code=code):
                result = self.record('-o', 'p.pb.gz', '-c',
                                     f'import work; work.work(); {code}')
                self.assertEqual(result.status, status)
                self.check_work(self.load('p.pb.gz'))

    def test_children_that_are_left_out_are_told(self):
        # Half of their time is more than enough to be worth a word.
        code = ('import os, work\n'
                'for _ in range(2):\n'
                '    if not os.fork():\n'
                '        work.work()\n'
                '        os._exit(0)\n'
                '    os.wait()\n')
        for name, is_told in ('p.pb.gz', True), ('{pid}.pb.gz', False):
            with self.subTest(name=name):
                result = self.record('-o', name, '-c', code)
                self.assertEqual((result.status, len(result.said())), (0, 1))
                told = re.findall(
                    r'\)\. Not in it: (0\.\d\d) s CPU of child processes; '
                    r'for those of Python use record -- COMMAND, or \{pid\} '
                    r'in the name\. Look: ', result.err)
                self.assertEqual(len(told), is_told, result.err)
                for seconds in told:
                    self.assertGreater(float(seconds), WORK_NS / 1e9)

    def test_threads_that_run_no_python(self):
        # PITFALLS U5.
        path = compile_extension('native_threads', self.directory)
        code = ('import ctypes\n'
                f'library = ctypes.CDLL({path!r})\n'
                'library.compute_in_a_thread(%d)\n')
        for cpu_ms, is_said in (400, True), (10, False):
            with self.subTest(cpu_ms=cpu_ms):
                result = self.record('-o', 'p.pb.gz', '-c', code % cpu_ms)
                self.assertEqual((result.status, len(result.said())), (0, 1))
                said = re.findall(
                    r'\)\. Not in it: (0\.\d\d) s CPU of threads that run no '
                    r'Python\. Look: ', result.err)
                self.assertEqual(len(said), is_said, result.err)
                for seconds in said:
                    self.assertAlmostEqual(float(seconds), 0.4, delta=0.05)
                    # The report says it, too.
                    profile = Profile.load(
                        os.path.join(self.directory, 'p.pb.gz'))
                    self.assertIn('native', [
                        finding.rule for finding in profile.findings()])

    def test_who_waits_for_threads_that_run_no_python(self):
        """But for one that says what it waits for, and for threads of
        Python."""
        path = compile_extension('native_threads', self.directory)
        code = ('import ctypes, threading, time, zlib\n'
                f'library = ctypes.CDLL({path!r})\n'
                'def wait():\n'
                '    library.compute_in_a_thread(400)\n'
                'def sleep():\n'
                '    time.sleep(0.3)\n'
                'def compress():\n'
                '    while not is_done:\n'
                '        zlib.compress(data)\n'
                'def pause():\n'
                '    ctypes.CDLL(None).usleep(400_000)\n'
                'data, is_done = bytes(range(256)) * 8000, False\n'
                'other = threading.Thread(target=sleep)\n'
                'other.start()\n'
                'wait()\n'
                'other.join()\n'
                'other = threading.Thread(target=compress)\n'
                'other.start()\n'
                'pause()\n'
                'is_done = True\n'
                'other.join()\n')
        result = self.record('-o', 'p.pb.gz', '-c', code)
        self.assertEqual(result.status, 0, result.err)
        tables = self.load('p.pb.gz')._tables
        rows = {(row.kind, row.function.qualname): row.ns
                for row in by_wait.of_threads(tables)
                if row.function is not None}
        native = [(name, ns) for (kind, name), ns in rows.items()
                  if kind == by_wait.NATIVE]
        self.assertEqual([name for name, _ in native], ['wait'], rows)
        self.assertGreater(native[0][1], 300_000_000, rows)
        self.assertGreater(rows[by_wait.SLEEP, 'sleep'], 200_000_000, rows)

    def test_threads_of_another_namespace_of_processes(self):
        """The outer /proc knows them by other numbers."""
        command = ['unshare', '--pid', '--fork', '--kill-child']
        if subprocess.run([*command, 'true'], check=False,
                          stderr=subprocess.DEVNULL).returncode:
            self.skipTest('no namespaces of processes here')
        done = subprocess.run(
            [*command, sys.executable, '-X', 'sampleprof=out=p.pb.gz', '-c',
             'import time\nwhile time.thread_time() < 0.4: pass'],
            cwd=self.directory, env=environment(), check=True, text=True,
            stderr=subprocess.PIPE)
        self.assertNotIn('run no Python', done.stderr)

    def test_what_is_left_out_is_said_once(self):
        path = compile_extension('native_threads', self.directory)
        result = self.record(
            '-o', 'p.pb.gz', '-c', 'import ctypes, os, work\n'
            'if not os.fork():\n'
            '    work.work()\n'
            '    os._exit(0)\n'
            'os.wait()\n'
            f'ctypes.CDLL({path!r}).compute_in_a_thread(400)\n')
        self.assertRegex(
            result.err, r'Not in it: 0\.\d\d s CPU of child processes; .* in '
            r'the name\. Nor 0\.\d\d s CPU of threads that run no Python\. '
            'Look: ')

    def test_a_signal_is_the_programs(self):
        process = self.start('-q', '-o', 'p.pb.gz', '-c',
                             'print("ready", flush=True); '
                             'import time; time.sleep(60)')
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(), -signal.SIGINT)
        self.assertTrue(self.load('p.pb.gz').samples)


class StdoutTest(RecordTest):

    def test_a_report(self):
        for output in '-', '/dev/stdout':
            with self.subTest(output=output):
                result = self.record('-q', '-o', output, 'work.py')
                self.assertEqual((result.status, result.err), (3, ''))
                # The program's own line comes first.
                said, profile = result.out.decode().split('\n', 1)
                self.assertEqual(json.loads(said)[1], ['work.py'])
                self.assertTrue(profile.startswith('Wall profile of'))
                self.assertIn('__main__.work:', profile)
                self.assertEqual(self.files(), ['work.py'])


class SourceTest(RecordTest):

    def test_pages_have_the_text_of_functions(self):
        for options, command, has_source in (
                ([], ['work.py'], True),
                (['--no-source'], ['work.py'], False),
                (['--no-source'], ['--', sys.executable, 'work.py'], False)):
            with self.subTest(options=options, command=command):
                result = self.record('-q', '-o', 'p.html', *options, *command)
                self.assertEqual(result.status, 3, result.err)
                path = os.path.join(self.directory, 'p.html')
                self.check_work(Profile.load(path))
                with open(path, 'rb') as file:
                    self.assertEqual(b'id="sources"' in file.read(),
                                     has_source)


class TurnsTest(RecordTest):

    def test_turns(self):
        for name in 'old', 'new':
            with open(os.path.join(self.directory, f'{name}.py'),
                      'w') as file:
                file.write(f'print("{name}", flush=True)\n')
        result = self.record('--alternate', '--repeat', '3', '-o', 'app',
                             'old.py', '--', 'new.py with arguments')
        self.assertEqual(result.status, 0, result.err)
        self.assertEqual(result.out.split(), [
            b'old', b'new', b'new', b'old', b'old', b'new'])
        self.assertIn('diff app.before.*.pb.gz -- app.after.*.pb.gz',
                      result.err)
        for side, name in ('before', 'old'), ('after', 'new'):
            for number in '123':
                profile = Profile.load(os.path.join(
                    self.directory, f'app.{side}.{number}.pb.gz'))
                self.assertIn(f'{name}.py', profile.meta['command'])

    def test_refused(self):
        for arguments, said in (
                (['-o', 'app', 'old.py'], 'name both programs'),
                (['-o', 'app', '--', 'new.py'], 'name both programs'),
                (['work.py', '--', 'work.py'], 'with -o NAME')):
            result = self.record('--alternate', *arguments)
            self.assertEqual(result.status, 2)
            self.assertIn(said, result.err)

    def test_a_run_that_fails_is_the_last(self):
        result = self.record('--alternate', '-o', 'app', '-c', 'pass', '--',
                             '-c', 'raise SystemExit(3)')
        self.assertEqual(result.status, 3)
        self.assertIn('run 1 of after', result.err)


class RepeatTest(RecordTest):

    def test_files_of_all_runs(self):
        """Their numbers sort."""
        result = self.record('-q', '--repeat', '10', '-o', 'a.{n}.pb.gz',
                             '-c', 'import work; work.work()')
        self.assertEqual((result.status, result.err), (0, ''))
        names = [name for name in self.files() if name.startswith('a.')]
        self.assertEqual(names, [f'a.{number:02}.pb.gz'
                                 for number in range(1, 11)])
        for name in names:
            self.check_work(self.load(name))

    def test_a_run_that_fails(self):
        result = self.record('-q', '--repeat', '3', '-o', '{n}.pb.gz',
                             'work.py')
        self.assertEqual(result.status, 3)
        self.assertEqual(result.err, f'{PROG}: run 1 of "work.py" failed: no '
                                     'more are begun\n')
        self.assertIn('1.pb.gz', self.files())


class UsageTest(RecordTest):

    def test_what_is_wrong_is_said(self):
        for arguments, status, message in (
                ([], 2, 'name a script, -m MODULE, -c CODE or -- COMMAND'),
                (['--'], 2, 'there is no command after --'),
                (['--', ''], 2, 'there is no command after --'),
                (['-m'], 2, 'argument -m: expected a value'),
                (['-c'], 2, 'argument -c: expected a value'),
                (['-r', '0', 'work.py'], 2, 'from 1 to 10000'),
                (['-r', 'x', 'work.py'], 2, 'from 1 to 10000'),
                (['--depth', '99999', 'work.py'], 2, 'from 1 to 16384'),
                (['--mode', 'gpu', 'work.py'], 2, "'gpu'"),
                (['-m', 'cpu', 'work.py'], 2, 'no module cpu; the mode is '
                 'given by --mode cpu'),
                (['--nonsense', 'work.py'], 2, '--nonsense'),
                (['-o', 'p.doc', 'work.py'], 2, "'p.doc'"),
                (['-o', 'a,b.pb.gz', 'work.py'], 2, 'a comma'),
                (['-o', 'no/p.pb.gz', 'work.py'], 1,
                 'cannot write no/p.pb.gz: '),
                (['--repeat', '2', '-o', 'p.pb.gz', 'work.py'], 2,
                 'p.pb.gz has no {n} in it'),
                (['--no-source', '-o', 'p.pb.gz', 'work.py'], 2,
                 'only pages have sources, not pprof'),
                (['--timeline', '-o', 'a.txt', 'work.py'], 2,
                 'choose one of pprof, html'),
                (['nosuch.py'], 2, 'cannot run nosuch.py: No such file'),
                (['-q', '--repeat', '2', '-o', '{n}.pb.gz', 'nosuch.py'], 2,
                 'cannot run nosuch.py: No such file'),
                (['-o', 'no/p.pb.gz', '--', 'true'], 1,
                 'cannot write no/p.pb.gz: ')):
            with self.subTest(arguments=arguments):
                result = self.record(*arguments)
                self.assertEqual((result.status, result.out), (status, b''))
                self.assertIn(message, result.err)
                self.assertEqual(result.err.count('\n'), 1, result.err)
        self.assertEqual(self.files(), ['work.py'])


class MetaTest(RecordTest):

    def test_command_and_host(self):
        expected = {'host': os.uname().nodename}
        for words, command in (
                (['work.py', 'a', 'b  c'], 'work.py a b c'),
                (['-c', 'import work;\nwork.work()'],
                 '-c import work; work.work()'),
                (['--', sys.executable, 'work.py'],
                 f'{sys.executable} work.py')):
            with self.subTest(words=words):
                self.record('-q', '-o', 'p.pb.gz', *words)
                meta = self.load('p.pb.gz').meta
                meta.pop('revision', None)
                self.assertEqual(meta, expected | {'command': command})

    def test_a_long_command(self):
        result = self.record('-q', '-o', 'p.pb.gz', '-c', 'pass',
                             *['x' * 100] * 9000)
        self.assertEqual((result.status, result.err), (0, ''))
        command = self.load('p.pb.gz').meta['command']
        self.assertTrue(command.endswith(' xxx...') or
                        command.endswith('x...'))
        self.assertLess(len(command), 5000)

    @unittest.skipUnless(shutil.which('git'), 'needs git')
    def test_revision(self):
        def git(*arguments):
            return subprocess.run(
                ['git', '-c', 'user.name=x', '-c', 'user.email=x@y',
                 *arguments], cwd=self.directory, check=True,
                env=environment(GIT_CONFIG_GLOBAL=os.devnull),
                stdout=subprocess.PIPE, text=True).stdout.strip()
        git('init', '-q')
        git('add', 'work.py')
        git('commit', '-qm', 'first')
        commit = git('rev-parse', '--short=12', 'HEAD')
        for expected in commit, f'{commit}-dirty':
            self.record('-q', '-o', 'p.pb.gz', 'work.py')
            self.assertEqual(self.load('p.pb.gz').meta['revision'], expected)
            self.file('work.py', WORK + '# changed\n')
