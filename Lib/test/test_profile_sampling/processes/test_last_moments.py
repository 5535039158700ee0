"""From the last line of a program to the whole file nothing is lost.

A signal comes while the file is written: an audit hook sends it when the file
is opened.  Or at random.  PITFALLS L44.
"""

import os
import random
import re
import signal
import subprocess
import sys
import time

from ..support.sessions import environment
from .children import NO_THREADS, ChildrenTest

ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGALRM,
          signal.SIGUSR1, signal.SIGUSR2, signal.SIGXCPU)
RUNS = int(os.environ.get('PROFILE_SAMPLING_RUNS', 24))

# Sends a signal when the file is opened, and maybe only then is there one.
SENDS = '''if True:
    import os, signal, sys
    signum = int(sys.argv[1])
    def hook(event, arguments):
        if event == 'open' and '.tmp' in str(arguments[0]):
            os.kill(os.getpid(), signum)
    sys.addaudithook(hook)
    '''


class LastMomentsTest(ChildrenTest):

    def check(self, code, signum, *, status=None, options=''):
        self.file('program.py', f'{SENDS}\n{code}')
        result = self.run_python(f'-Xsampleprof=out=p.pb.gz{options}',
                                 'program.py', str(int(signum)))
        self.assertEqual(result.status, -signum if status is None else status,
                         result.err)
        self.assertEqual(self.files(), ['p.pb.gz', 'program.py'])
        self.load('p.pb.gz')
        os.unlink(os.path.join(self.directory, 'p.pb.gz'))
        return result

    def test_a_signal_that_ends_the_process(self):
        default = 'signal.signal(signum, signal.SIG_DFL)'
        for signum in ENDING:
            for code in default, f'{default}\nsys.exit(3)':
                with self.subTest(signum=signum, code=code):
                    result = self.check(code, signum)
                    self.assertEqual(result.err.splitlines(), result.said())

    def test_at_other_ends(self):
        term = signal.SIGTERM
        for code, options, status in (
                # It has ended by then, without us.
                ('os._exit(3)', '', 3),
                # The program goes on.
                ('import time; time.sleep(60)', ',duration_s=1', -term),
                ('os.execv(sys.executable, [sys.executable, "-c", '
                 '"import time; time.sleep(60)"])', '', -term)):
            with self.subTest(code=code):
                self.check(code, term, options=options, status=status)

    def test_a_handler_of_the_program(self):
        """It runs when the file is whole, and not in the writer."""
        # As often as the file is tried to be written.
        for code in ('signal.signal(signum, signal.default_int_handler)',
                     'signal.signal(signum, lambda *args: 1 / 0)',
                     'signal.signal(signum, signal.SIG_IGN)'):
            with self.subTest(code=code):
                result = self.check(code, signal.SIGINT, status=0)
                self.assertEqual(len(result.said()), 1)
                self.assertIn('wrote p.pb.gz', result.err)

    def test_a_key_that_is_held_down(self):
        """Ctrl-C, thirty times a second, as long as the program lives."""
        numbers = random.Random(1)
        for run in range(max(2, RUNS // 12)):
            program = subprocess.Popen(
                [sys.executable, '-Xsampleprof=out=p.pb.gz', '-c',
                 'print("begun", flush=True)\nwhile True: sum(range(1000))'],
                cwd=self.directory, env=environment(),
                stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            program.stdout.readline()
            time.sleep(numbers.random() * 0.1)
            while program.poll() is None:
                program.send_signal(signal.SIGINT)
                time.sleep(1 / 30)
            _, err = program.communicate()
            with self.subTest(run=run, err=err):
                self.assertEqual(program.returncode, -signal.SIGINT)
                self.assertEqual(self.files(), ['p.pb.gz'])
                self.load('p.pb.gz')
                os.unlink(os.path.join(self.directory, 'p.pb.gz'))

    def test_a_signal_at_random(self):
        """Within 40 ms after the last line."""
        numbers = random.Random(2)
        for run in range(RUNS):
            signum = ENDING[run % len(ENDING)]
            program = subprocess.Popen(
                [sys.executable, '-Xsampleprof=out=p.pb.gz', '-c',
                 'import signal\n'
                 f'signal.signal({signum}, signal.SIG_DFL)\n'
                 'print("end", flush=True)'],
                cwd=self.directory, env=environment(),
                stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            program.stdout.readline()
            time.sleep(numbers.random() * 0.04)
            program.send_signal(signum)
            _, err = program.communicate()
            with self.subTest(run=run, signum=signum, err=err):
                self.assertIn(program.returncode, (0, -signum))
                self.assertEqual(self.files(), ['p.pb.gz'])
                self.load('p.pb.gz')
                os.unlink(os.path.join(self.directory, 'p.pb.gz'))

    def test_nobody_reads_what_is_said(self):
        """SIGPIPE of the line that says where the file is ends nothing."""
        for end, status in (('', 0), ('signal.raise_signal(signal.SIGTERM)',
                                      -signal.SIGTERM)):
            reader, writer = os.pipe()
            os.close(reader)
            program = subprocess.Popen(
                [sys.executable, '-Xsampleprof=out=p.pb.gz', '-c',
                 'import signal, sys\n'
                 'signal.signal(signal.SIGPIPE, signal.SIG_DFL)\n'
                 f'print(1, flush=True)\n{end}'],
                cwd=self.directory, env=environment(),
                stdout=subprocess.PIPE, stderr=writer)
            os.close(writer)
            program.stdout.readline()
            program.communicate()
            with self.subTest(end=end):
                self.assertEqual(program.returncode, status)
                self.assertEqual(self.files(), ['p.pb.gz'])
                self.load('p.pb.gz')
                os.unlink(os.path.join(self.directory, 'p.pb.gz'))

    def test_nothing_begins_any_more(self):
        """While the end waits for the writer, a daemon thread may run."""
        self.file('program.py', """if True:
            import _profile, os, sys, threading, time
            def begin():
                while True:
                    try:
                        _profile.start()
                    except RuntimeError:
                        pass
            for _ in range(3):
                threading.Thread(target=begin, daemon=True).start()
            class Last:
                def __init__(self): self.parts = os.write, _profile.running
                def __del__(self):
                    write, running = self.parts
                    write(1, str(running()).encode())
            sys.last = Last()
            time.sleep(0.05)
            """)
        for _ in range(4):
            result = self.run_python('-Xsampleprof=out=p.pb.gz', 'program.py')
            self.assertEqual((result.status, result.out), (0, b'False'),
                             result.err)

    # How a pool ends: its workers are asked to end, and terminated.
    POOL = '''if True:
        import concurrent.futures, multiprocessing, os, sys
        def work(n):
            sum(range(n))
            return os.getpid()
        if __name__ == '__main__':
            context = multiprocessing.get_context(sys.argv[1])
            if sys.argv[2] == 'pool':
                with context.Pool(3) as pool:
                    print(*pool.map(work, [100_000] * 4))
            else:
                with concurrent.futures.ProcessPoolExecutor(
                        3, mp_context=context) as executor:
                    print(*executor.map(work, [100_000] * 4))
        '''

    @NO_THREADS
    def test_pools(self):
        self.file('program.py', self.POOL)
        for method in 'spawn', 'forkserver', 'fork':
            for how in 'pool', 'executor':
                for run in range(max(1, RUNS // 24)):
                    with self.subTest(method=method, how=how, run=run):
                        self.check_pool(method, how)
                    for name in self.files():
                        if name != 'program.py':
                            os.unlink(os.path.join(self.directory, name))

    def names(self):
        return [name for name in self.files() if name.endswith('.pb.gz')]

    def check_pool(self, method, how):
        result = self.run_python('-Xsampleprof=out={pid}.pb.gz', 'program.py',
                                 method, how)
        self.assertEqual(result.status, 0, result.err)
        self.assertEqual(result.err.splitlines(), result.said())
        self.assertNotIn('left none', result.err)
        # The server of forks ends when it sees that it is alone.
        children = sum(map(int, re.findall(r'Child processes .*?: (\d+)\.',
                                           result.err)))
        end = time.monotonic() + 10
        while (len(names := self.names()) < 1 + children
               and time.monotonic() < end):
            time.sleep(0.01)
        self.assertEqual([*names, 'program.py'], self.files(), result.err)
        self.assertEqual(len(names), 1 + children, result.err)
        # A worker that is ended before it begins leaves none; whoever has
        # worked has left one.
        self.assertLessEqual(
            {f'{pid}.pb.gz' for pid in result.out.decode().split()},
            set(names), result.err)
        for name in names:
            self.load(name)
