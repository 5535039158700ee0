"""python -m profile_sampling record."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import unittest

from profile_sampling import Profile
from test import support

from ..support.sessions import (
    ProgramTest, Run, environment, on_stack, weight)

PROG = 'python -m profile_sampling'
WORK_NS = 30_000_000
# Its two ends fall between ticks, and what few samples share of the start-up's
# time varies: each by some half of a sample.
SAMPLED_NS = WORK_NS - 3_000_000
WORK = f'''\
import json, os, sys, time
def work():
    end = time.thread_time() + {WORK_NS / 1e9}
    while time.thread_time() < end:
        pass
if __name__ == '__main__':
    work()
    print(json.dumps([os.getpid(), sys.argv, sys.path[0],
                      [name for name in os.environ if 'SAMPLEPROF' in name]]))
    sys.exit(3)
'''


class RecordTest(ProgramTest):

    def setUp(self):
        super().setUp()
        self.file('work.py', WORK)

    def record(self, *arguments, **options):
        return self.run_python('-m', 'profile_sampling', 'record', *arguments,
                               **options)

    def start(self, *arguments):
        """Start a program that prints a line when it is ready."""
        process = subprocess.Popen(
            [sys.executable, '-m', 'profile_sampling', 'record', *arguments],
            cwd=self.directory, env=environment(), stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), 'ready\n')
        return process

    def check_work(self, profile):
        there = [s for s in profile.samples if on_stack(s, 'work')]
        # The program has that much of it, whatever else the machine does.
        self.assertGreaterEqual(weight(there), SAMPLED_NS)


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

    def test_the_process_is_our_own(self):
        process = subprocess.run(
            [sys.executable, '-m', 'profile_sampling', 'record', '-q', '-o',
             '{pid}.pb.gz', 'work.py'], cwd=self.directory,
            env=environment(), stdout=subprocess.PIPE)
        pid = json.loads(process.stdout)[0]
        self.assertEqual(self.files(), [f'{pid}.pb.gz', 'work.py'])
        self.assertEqual(self.load(f'{pid}.pb.gz').pid, pid)

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

    def test_formats(self):
        for arguments, name, begins in (
                (['-o', 'p.txt'], 'p.txt', 'Wall profile'),
                (['--format', 'collapsed'], '.collapsed', ''),
                (['--format', 'text', '-o', 'p.pb.gz'], 'p.pb.gz',
                 'Wall profile')):
            with self.subTest(arguments=arguments):
                result = self.record(*arguments, 'work.py')
                self.assertEqual(result.status, 3, result.err)
                name, = [file for file in self.files() if file.endswith(name)]
                path = os.path.join(self.directory, name)
                with open(path, encoding='utf-8') as file:
                    text = file.read()
                self.assertTrue(text.startswith(begins))
                self.assertIn('__main__.work', text)
                os.unlink(path)

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

    def test_a_recorder_that_is_profiled(self):
        result = self.run_python(
            '-X', 'sampleprof=out=recorder.pb.gz', '-m', 'profile_sampling',
            'record', '-o', 'p.pb.gz', 'work.py')
        self.assertEqual(result.status, 3, result.err)
        self.check_work(self.load('p.pb.gz'))

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

    def test_children_that_do_nothing_are_not_told(self):
        result = self.record('-o', 'p.pb.gz', '-c',
                             'import os; os.system("true")')
        self.assertNotIn('Not in it', result.err)

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

    def test_another_format(self):
        result = self.record('-o', '-', '--format', 'collapsed',
                             '-c', 'sum(range(3_000_000))')
        self.assertEqual(result.status, 0, result.err)
        self.assertRegex(result.out, rb'\A([^\n]+ \d+\n)+\Z')
        self.assertEqual(result.err,
                         f'{PROG}: wrote /dev/stdout, of 1 process\n')


class SourceTest(RecordTest):
    """The text of functions, in pages that are written at exit."""

    def has_source(self, *arguments, **options):
        result = self.record('-q', '-o', 'p.html', *arguments, **options)
        self.assertEqual(result.status, 3, result.err)
        self.check_work(Profile.load(os.path.join(self.directory, 'p.html')))
        with open(os.path.join(self.directory, 'p.html'), 'rb') as file:
            return b'id="sources"' in file.read()

    def test_it_is_in_the_page(self):
        self.assertTrue(self.has_source('work.py'))

    def test_without(self):
        self.assertFalse(self.has_source('--no-source', 'work.py'))
        self.assertFalse(self.has_source(
            '--no-source', '--', sys.executable, 'work.py'))

    def test_by_the_environment(self):
        result = self.run_python(
            '-X', 'sampleprof=out=p.html', 'work.py',
            env=environment(PYTHONSAMPLEPROF_SOURCE='0'))
        self.assertEqual(result.status, 3, result.err)
        with open(os.path.join(self.directory, 'p.html'), 'rb') as file:
            self.assertNotIn(b'id="sources"', file.read())

    def test_other_formats_have_none(self):
        result = self.record('--no-source', '-o', 'p.pb.gz', 'work.py')
        self.assertEqual(result.status, 2)
        self.assertIn('only pages have sources, not pprof', result.err)


class CommandTest(RecordTest):
    """What runs as a child: any command."""

    def test_all_processes(self):
        code = f'"{sys.executable}" work.py'
        result = self.record('-o', 'p.pb.gz', '--', 'sh', '-c',
                             f'{code} a & {code} b; wait; exit 5')
        self.assertEqual(result.status, 5, result.err)
        pids = {json.loads(line)[0] for line in result.out.splitlines()}
        self.assertEqual(len(pids), 2)
        profile = self.load('p.pb.gz')
        rows = {row.value: row.wall_ns for row in profile.label_values('pid')}
        self.assertEqual(set(rows), set(map(str, pids)))
        self.assertGreater(min(rows.values()), SAMPLED_NS)
        self.assertEqual(result.err,
                         f'{PROG}: wrote p.pb.gz, of 2 processes\n')
        self.assertEqual(self.files(), ['p.pb.gz', 'work.py'])

    def test_one_process(self):
        result = self.record('-q', '-o', 'p.pb.gz', '--', sys.executable,
                             'work.py')
        self.assertEqual((result.status, result.err), (3, ''))
        profile = self.load('p.pb.gz')
        self.assertEqual(profile.pid, json.loads(result.out)[0])
        self.assertNotIn('pid', profile.label_keys)
        self.check_work(profile)

    def test_ends_by_a_signal(self):
        for number in signal.SIGTERM, signal.SIGKILL, signal.SIGINT:
            with self.subTest(number):
                result = self.record(
                    '-q', '-o', 'p.pb.gz', '--', 'sh', '-c',
                    f'"{sys.executable}" work.py; kill -{int(number)} $$')
                self.assertEqual(result.status, -number, result.err)
                self.check_work(self.load('p.pb.gz'))

    def test_signals_are_sent_on(self):
        self.file('wait.py', '''if True:
            import os, signal, sys, time
            def end(number, frame):
                os.write(1, b'%d\\n' % number)
                sys.exit(7)
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP,
                           signal.SIGUSR1):
                signal.signal(number, end)
            os.write(1, b'ready\\n')
            time.sleep(60)
            ''')
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP,
                       signal.SIGUSR1):
            with self.subTest(number):
                process = self.start('-q', '-o', 'p.pb.gz', '--',
                                     sys.executable, 'wait.py')
                process.send_signal(number)
                status = process.wait()
                self.assertEqual(status, 7, process.stderr.read())
                self.assertEqual(process.stdout.read(), f'{int(number)}\n')
                self.assertTrue(self.load('p.pb.gz').samples)

    def test_what_a_terminal_sends_is_not_sent_twice(self):
        import pty
        self.file('count.py', '''if True:
            import signal, time
            got = []
            signal.signal(signal.SIGINT, lambda *args: got.append(args))
            print('ready', flush=True)
            end = time.monotonic() + 30
            while not got and time.monotonic() < end:
                time.sleep(0.01)
            time.sleep(0.3)
            print('got', len(got), flush=True)
            ''')
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(self.directory)
            os.execve(sys.executable, [
                sys.executable, '-m', 'profile_sampling', 'record', '-q',
                '-o', 'p.pb.gz', '--', sys.executable, 'count.py'],
                environment())
        with open(terminal, 'r+b', buffering=0) as file:
            text = self.read_until(file, b'ready')
            file.write(b'\x03')
            text += self.read_until(file, b'got')
            text += self.read_until(file, b'\n')
            self.assertIn(b'got 1', text)
            self.assertEqual(support.wait_process(pid, exitcode=0), None)

    def read_until(self, file, end):
        text = b''
        deadline = time.monotonic() + 30
        while end not in text:
            self.assertLess(time.monotonic(), deadline, text)
            text += file.read(1)
        return text

    def test_a_signal_when_it_has_ended(self):
        # What it has left is put in order nevertheless.
        self.file('git', '#!/bin/sh\nsleep 0.5\n')
        os.chmod(os.path.join(self.directory, 'git'), 0o700)
        process = subprocess.Popen(
            [sys.executable, '-m', 'profile_sampling', 'record', '-q', '-o',
             'p.pb.gz', '--', sys.executable, '-c', 'print("done")'],
            cwd=self.directory, stdout=subprocess.PIPE, text=True,
            env=environment(PATH=f'{self.directory}:{os.environ["PATH"]}'))
        self.addCleanup(process.stdout.close)
        self.assertEqual(process.stdout.readline(), 'done\n')
        for _ in range(4):
            time.sleep(0.1)
            process.send_signal(signal.SIGTERM)
        self.assertIn(process.wait(), (0, -signal.SIGTERM))
        self.assertEqual(self.files(), ['git', 'p.pb.gz', 'work.py'])

    def test_names_with_a_meaning(self):
        for name in 'a,b', 'a{pid}':
            self.file(f'{name}/work.py', WORK)
            result = Run('-m', 'profile_sampling', 'record', '-q', '-o',
                         'p.pb.gz', '--', sys.executable, 'work.py',
                         directory=os.path.join(self.directory, name))
            self.assertEqual(result.status, 3, result.err)
            self.check_work(self.load(f'{name}/p.pb.gz'))

    def test_nothing_recorded(self):
        for command, status in ((['true'], 1), (['false'], 1),
                                (['sh', '-c', 'exit 9'], 9)):
            with self.subTest(command=command):
                result = self.record('-o', 'p.pb.gz', '--', *command)
                self.assertEqual(result.status, status)
                self.assertIn(f'nothing was recorded: no process of '
                              f'"{" ".join(command)}" ran', result.err)
                self.assertEqual(self.files(), ['work.py'])

    def test_a_command_that_cannot_be_run(self):
        self.file('plain.txt', '')
        for command, status in (('./nosuch', 127), ('./plain.txt', 126)):
            with self.subTest(command=command):
                result = self.record('--', command)
                self.assertEqual(result.status, status)
                self.assertIn(f'cannot run {command}: ', result.err)
                self.assertEqual(self.files(), ['plain.txt', 'work.py'])

    def test_nothing_is_lost_if_the_sum_cannot_be_written(self):
        # A directory takes the place of the file meanwhile.
        result = self.record(
            '-o', 'p.pb.gz', '--', 'sh', '-c',
            f'"{sys.executable}" work.py; mkdir p.pb.gz')
        self.assertEqual(result.status, 1)
        self.assertIn('The profiles of its processes are in ', result.err)
        parts = result.err.split(' are in ')[1].strip()
        self.assertEqual(len(os.listdir(parts)), 1)

    def check_silent(self, processes, *command, wrote=1):
        """So many processes leave no profile, others do."""
        result = self.record('-q', '-o', 'p.pb.gz', '--', *command)
        said = (f'{PROG}: {processes} left no profile: ended by a signal, '
                'replaced by another program, or unable to write\n')
        if not wrote:
            said += f'{PROG}: nothing was recorded\n'
        self.assertEqual(result.err, said if processes else '')
        self.assertEqual(os.path.exists(
            os.path.join(self.directory, 'p.pb.gz')), bool(wrote))
        return result

    def test_processes_that_leave_no_profile_are_told(self):
        # Three children of a fork: they are ended, write, and run another
        # program.
        self.file('forks.py', '''if True:
            import os, signal, work
            for end in (lambda: os.kill(os.getpid(), signal.SIGKILL),
                        lambda: os._exit(0),
                        lambda: os.execlp('true', 'true')):
                if not os.fork():
                    end()
                os.wait()
            ''')
        result = self.check_silent('2 processes', sys.executable, 'forks.py')
        self.assertEqual(result.status, 0)
        self.assertEqual(len(self.load('p.pb.gz').label_values('pid')), 2)
        self.assertEqual(
            [name for name in self.files() if 'sampleprof' in name], [])

    def test_processes_that_are_terminated(self):
        self.file('processes.py', '''if True:
            import multiprocessing, os, time
            if __name__ == '__main__':
                for begun, method in (2, 'fork'), (3, 'spawn'):
                    process = multiprocessing.get_context(method).Process(
                        target=time.sleep, args=(60,))
                    process.start()
                    while len(os.listdir(os.environ['MARKS'])) < begun:
                        time.sleep(0.01)
                    process.terminate()
                    process.join()
            ''')
        # Which directory it is, only the text of the session tells.
        self.check_silent(
            '2 processes', 'sh', '-c',
            'out=${PYTHONSAMPLEPROF#*out=}; '
            'export MARKS="${out%/*}/.sampleprof-begun"; '
            f'"{sys.executable}" processes.py')

    def test_a_process_that_cannot_write_is_no_process_of_another_python(self):
        result = self.check_silent(
            '1 process', 'sh', '-c', f'"{sys.executable}" -c "import resource;'
            ' resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))" 2>&-',
            wrote=False)
        self.assertEqual(result.status, 1)

    def test_children_that_are_not_profiled_have_nothing_to_leave(self):
        # The time is over when the child begins.
        self.file('late.py', '''if True:
            import os, profile_sampling, time
            while profile_sampling.running():
                time.sleep(0.01)
            if not os.fork():
                os.kill(os.getpid(), 9)
            os.wait()
            ''')
        result = self.record('-q', '-d', '1', '-o', 'p.pb.gz', '--',
                             sys.executable, 'late.py')
        self.assertEqual((result.status, result.err), (0, ''))

    def test_the_status_if_the_sum_cannot_be_written(self):
        # The program removes the directory, with or without what is in it.
        work = f'"{sys.executable}" work.py'
        for command, message in (
                ('rm -r gone', 'nothing was recorded: cannot read '),
                (f'{work}; rm -r gone', 'nothing was recorded: cannot read '),
                (f'{work}; mkdir gone/p.pb.gz', 'The profiles of its ')):
            for end, status in ('exit 3', 3), ('kill -9 $$', -9), ('', 1):
                with self.subTest(command=command, end=end):
                    os.mkdir(os.path.join(self.directory, 'gone'))
                    result = self.record('-o', 'gone/p.pb.gz', '--', 'sh',
                                         '-c', f'{command}\n{end}')
                    self.assertEqual(result.status, status, result.err)
                    self.assertIn(message, result.err)
                    self.assertNotIn('Traceback', result.err)
                    shutil.rmtree(os.path.join(self.directory, 'gone'),
                                  ignore_errors=True)


class RepeatTest(RecordTest):

    ORDER = ('file = open("order", "a"); file.write("%s"); file.close(); '
             'import work; work.work()')

    def check_files(self, pattern, runs, command):
        for run in range(1, runs + 1):
            profile = self.load(pattern % run)
            self.check_work(profile)
            self.assertEqual(profile.meta['command'], command)

    def test_two_in_turns(self):
        versus = f'"{sys.executable}" -c \'{self.ORDER % "b"}\''
        result = self.record('-q', '--repeat', '3', '-o', 'a.{n}.pb.gz',
                             '--versus', versus, '--versus-output',
                             'b.{n}.pb.gz', '-c', self.ORDER % 'a')
        self.assertEqual((result.status, result.err), (0, ''))
        with open(os.path.join(self.directory, 'order')) as file:
            self.assertEqual(file.read(), 'abbaab')
        self.check_files('a.%d.pb.gz', 3, f'-c {self.ORDER % "a"}')
        self.check_files('b.%d.pb.gz', 3,
                         f'{sys.executable} -c {self.ORDER % "b"}')

    def test_numbers_sort(self):
        result = self.record('-q', '--repeat', '10', '-o', '{n}.pb.gz',
                             '-c', 'pass')
        self.assertEqual(result.status, 0, result.err)
        self.assertEqual(self.files()[:10], [
            f'{number:02}.pb.gz' for number in range(1, 11)])

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
                (['--versus', 'true', 'work.py'], 2, '--repeat N'),
                (['--versus', '"', 'work.py'], 2, 'invalid command'),
                (['--repeat', '2', '--versus', 'true', '-o', '{n}.pb.gz',
                  'work.py'], 2, '--versus-output'),
                (['--repeat', '2', '--versus', 'true', '-o', '{n}.pb.gz',
                  '--versus-output', '{n}.pb.gz', 'work.py'], 2,
                 'the same files'),
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

    def test_none(self):
        for words in ['work.py'], ['--', sys.executable, 'work.py']:
            self.record('--no-meta', '-o', 'p.pb.gz', *words)
            self.assertEqual(self.load('p.pb.gz').meta, {})

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


if __name__ == '__main__':
    unittest.main()
