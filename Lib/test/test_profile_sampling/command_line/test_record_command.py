"""python -m profile_sampling record -- COMMAND: what runs as a child."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time


from ..support.sessions import Run, environment
from .recorded import PROG, SAMPLED_NS, WORK, WORK_NS, RecordTest


class CommandTest(RecordTest):

    def test_all_processes(self):
        code = f'"{sys.executable}" work.py'
        result = self.record('-o', 'p.pb.gz', '--', 'sh', '-c',
                             f'{code} a & {code} b; wait; exit 5')
        self.assertEqual(result.status, 5, result.err)
        pids = {json.loads(line)[0] for line in result.out.splitlines()}
        self.assertEqual(len(pids), 2)
        profile = self.load('p.pb.gz')
        rows = {pid: part.total_wall_ns
                for pid, part in profile.group_by('pid').items()}
        self.assertEqual(set(rows), set(map(str, pids)))
        self.assertGreater(min(rows.values()), SAMPLED_NS)
        self.assertEqual(result.err,
                         f'{PROG}: wrote p.pb.gz, of 2 processes\n')
        self.assertEqual(self.files(), ['p.pb.gz', 'work.py'])

    def on_path(self, name, text):
        """Make a command; return the environment that has it."""
        self.file(f'bin/{name}', text)
        os.chmod(os.path.join(self.directory, 'bin', name), 0o700)
        return environment(
            PATH=f'{self.directory}/bin:{os.environ["PATH"]}')

    def test_commands_of_python(self):
        # Their processes are one profile, as after --.  pip has the first line
        # of a long path in the second one.
        for head in (f'#!{sys.executable}\n',
                     f"#!/bin/sh\n'''exec' \"{sys.executable}\" \"$0\" "
                     '"$@"\n\' \'\'\'\n'):
            with self.subTest(head=head):
                variables = self.on_path('serve', head + '''if True:
                    import os, sys
                    sys.path.insert(0, os.curdir)
                    import work
                    pid = os.fork()
                    work.work()
                    if pid:
                        os.wait()
                        print(sys.argv[1:])
                    ''')
                result = self.record('-o', 'p.pb.gz', 'serve', '-w', '2',
                                     env=variables)
                self.assertEqual(
                    (result.status, result.out, result.err),
                    (0, b"['-w', '2']\n",
                     f'{PROG}: wrote p.pb.gz, of 2 processes\n'))
                rows = self.load('p.pb.gz').group_by('pid')
                self.assertEqual(len(rows), 2)
                self.assertGreater(min([part.total_wall_ns
                                        for part in rows.values()]),
                                   SAMPLED_NS)

    def test_python_itself(self):
        os.mkdir(os.path.join(self.directory, 'bin'))
        python = os.path.join(self.directory, 'bin', 'python')
        os.symlink(sys.executable, python)
        variables = environment(
            PATH=f'{self.directory}/bin:{os.environ["PATH"]}')
        for name in 'python', python:
            with self.subTest(name=name):
                result = self.record('-q', '-o', 'p.pb.gz', name, 'work.py',
                                     'a', env=variables)
                self.assertEqual(result.status, 3, result.err)
                self.check_work(self.load('p.pb.gz'))

    def test_a_script_of_a_virtual_environment_is_not_mine(self):
        """Its folder is known before site has been imported."""
        subprocess.run([sys.executable, '-m', 'venv', '--without-pip', 'venv'],
                       cwd=self.directory, check=True)
        self.file('venv/bin/serve', """if True:
            import sys
            sys.path.insert(0, '.')
            import work
            for _ in range(20):
                sum(range(300_000))
            work.work()
            """)
        subprocess.run(
            ['venv/bin/python', '-X', 'sampleprof=out=p.pb.gz,quiet=1',
             'venv/bin/serve'], cwd=self.directory, check=True)
        modules = {row.function and row.function.module
                   for row in self.load('p.pb.gz').call_sites()}
        self.assertIn('work', modules)
        self.assertNotIn('__main__', modules)

    def test_a_wrapper_that_is_named_by_its_path(self):
        """It is no script of Python, though the file is there."""
        self.on_path('serve', f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
        result = self.record('-q', '-o', 'p.pb.gz', './bin/serve', 'work.py')
        self.assertEqual(result.status, 3, result.err)
        self.check_work(self.load('p.pb.gz'))
        self.on_path('other', '#!/usr/bin/env awk\nBEGIN {print 1}\n')
        result = self.record('-o', 'p.pb.gz', './bin/other')
        self.assertEqual((result.status, result.out), (2, b''))
        self.assertIn('./bin/other is no program of Python', result.err)

    def test_no_program_of_python(self):
        # What is run is not tried, since its profile would be of nothing.
        self.file('other/python', 'ELF')
        for head, said in (
                ('#!/usr/bin/env awk\n', 'serve is no program of Python. The '
                 'processes of this Python that it starts: record -- serve a'),
                (f'#!{self.directory}/other/python\n', 'and not this Python: '
                 'install it for this one, or try record -m serve a')):
            with self.subTest(head=head):
                result = self.record(
                    '-o', 'p.pb.gz', 'serve', 'a',
                    env=self.on_path('serve', head + 'print("run")\n'))
                self.assertEqual((result.status, result.out), (2, b''))
                self.assertIn(said, result.err)
                self.assertEqual(result.err.count('\n'), 1)

    def test_the_name_of_the_file_after_the_program(self):
        result = self.record('-q', 'work.py', '-o', 'p.pb.gz')
        self.assertEqual(json.loads(result.out)[1],
                         ['work.py', '-o', 'p.pb.gz'])
        self.assertIn('-o p.pb.gz is given to work.py, as is all that stands '
                      'after a program. For the profile put it first: '
                      '-o p.pb.gz work.py\n', result.err)

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

    def test_a_signal_while_profiles_are_merged(self):
        # They stay where they are, and what is said to do works.
        self.file('git', '#!/bin/sh\nexec sleep 60\n')
        os.chmod(os.path.join(self.directory, 'git'), 0o700)
        for number in signal.SIGTERM, signal.SIGINT:
            with self.subTest(number):
                process = subprocess.Popen(
                    [sys.executable, '-m', 'profile_sampling', 'record', '-o',
                     'p.pb.gz', '--', sys.executable, '-c', 'print("done")'],
                    cwd=self.directory, stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE, text=True, env=environment(
                        PATH=f'{self.directory}:{os.environ["PATH"]}'))
                self.assertEqual(process.stdout.readline(), 'done\n')
                # The command ends, and what is asked of git takes long.
                time.sleep(1)
                process.send_signal(number)
                _, err = process.communicate()
                self.assertEqual(process.returncode, -number)
                self.assertNotIn('Traceback', err)
                parts, command = re.search(
                    rf'ended by {number.name}: the profile was not written. '
                    'The profiles of its processes are in (.*); to merge '
                    'them: python (.*)\n', err).groups()
                self.assertEqual(len(os.listdir(parts)), 1)
                result = self.run_python(
                    *shlex.split(command.replace('OUT', 'merged.pb.gz')))
                self.assertEqual(result.status, 0, result.err)
                self.load('merged.pb.gz')
                self.assertNotIn('p.pb.gz', self.files())

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

    def check_silent(self, processes, *command, wrote=1):
        """So many processes leave no profile, others do."""
        result = self.record('-q', '-o', 'p.pb.gz', '--', *command)
        said = (rf'{PROG}: {processes} left no profile \(PID \d+(, \d+)*\): '
                'ended by a signal, replaced by another program, or unable '
                'to write\n')
        if not wrote:
            said += f'{PROG}: nothing was recorded\n'
        self.assertRegex(result.err, rf'\A{said if processes else ""}\Z')
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
        self.assertEqual(len(self.load('p.pb.gz').group_by('pid')), 2)
        self.assertEqual(
            [name for name in self.files() if 'sampleprof' in name], [])

    def test_a_process_that_becomes_another_program(self):
        self.file('launcher.py', '''if True:
            import os, sys
            def launch():
                for i in range(10**6): pass
            launch()
            os.execv(sys.executable, [sys.executable, '-c',
                                      'for i in range(10**6): pass'])
            ''')
        result = self.record('-o', 'p.pb.gz', '--', sys.executable,
                             'launcher.py')
        self.assertEqual(result.err, f'{PROG}: wrote p.pb.gz, of 1 process\n')
        names = [row.function.name for row in self.load('p.pb.gz').functions()]
        self.assertIn('__main__.launch', names)
        self.assertIn('__main__.<module>', names)

    def test_processes_that_are_terminated(self):
        self.file('processes.py', '''if True:
            import multiprocessing, time
            def wait(is_there):
                is_there.set()
                time.sleep(60)
            if __name__ == '__main__':
                for method in 'fork', 'spawn':
                    context = multiprocessing.get_context(method)
                    is_there = context.Event()
                    process = context.Process(target=wait, args=(is_there,))
                    process.start()
                    is_there.wait()
                    process.terminate()
                    process.join()
            ''')
        # SIGTERM leaves them time to write.
        self.check_silent('', sys.executable, 'processes.py')
        self.assertEqual(len(self.load('p.pb.gz').group_by('pid')), 3)

    def test_cpu_time_that_is_in_no_profile(self):
        # Of a process that ends by a signal, and of one without our text.
        for code in 'os.kill(os.getpid(), 9)', 'os._exit(0)':
            with self.subTest(code=code):
                self.file('forks.py', f'''if True:
                    import os, work
                    if not os.fork():
                        work.work()
                        {code}
                    os.wait()
                    ''')
                result = self.record('-o', 'p.pb.gz', '--', sys.executable,
                                     'forks.py')
                told = re.findall(r'wrote p\.pb\.gz, of .* process.*; '
                                  r'(0\.\d\d) s of the CPU time of all '
                                  'processes is not in it\n', result.err)
                self.assertEqual(len(told), '9' in code, result.err)
                for seconds in told:
                    self.assertGreaterEqual(float(seconds), WORK_NS / 1e9)

    def test_cpu_time_of_ends_is_no_process_without_a_profile(self):
        # To free the objects takes longer than what is worth a word.
        code = 'import builtins; builtins.kept = [[] for _ in range(10**6)]'
        for options in [], ['-d', '1']:
            result = self.record('-o', 'p.pb.gz', *options, '--',
                                 sys.executable, '-c', code)
            self.assertEqual(result.err,
                             f'{PROG}: wrote p.pb.gz, of 1 process\n')
        # A command that is no Python is seen to have none.
        result = self.record('-o', 'p.pb.gz', '--', 'sh', '-c',
                             'i=0; while [ $i -lt 100000 ]; do i=$((i+1)); '
                             f'done; "{sys.executable}" -c pass; true')
        self.assertRegex(result.err, r'of 1 process; \d+\.\d\d s of the CPU '
                                     'time of all processes is not in it\n')

    def test_a_process_that_cannot_write_is_no_process_of_another_python(self):
        result = self.check_silent(
            '1 process', 'sh', '-c', f'"{sys.executable}" -c "import resource;'
            ' resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))" 2>&-',
            wrote=False)
        self.assertEqual(result.status, 1)

    def test_a_process_says_what_helps(self):
        # As it does if it is profiled by -X.
        code = 'import resource; resource.setrlimit(resource.%s, (%d, %d))'
        for limit, value, advice in (
                ('RLIMIT_FSIZE', 10, 'File too large. Raise the limit on the '
                                     'size of files: ulimit -f\n'),
                ('RLIMIT_NOFILE', 0, 'Too many open files. Raise the limit on '
                                     'open files: ulimit -n\n')):
            for how in (['-Xsampleprof=out=p.pb.gz'],
                        ['-m', 'profile_sampling', 'record', '-o', 'p.pb.gz',
                         '--', sys.executable]):
                with self.subTest(limit=limit, how=how):
                    result = self.run_python(
                        *how, '-c', code % (limit, value, value))
                    self.assertIn(advice, result.err)

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
