"""A command of record is a job of its shell as if it ran alone: what is typed
at its terminal, what is sent to it or to its process group, and what it leaves
behind."""

import contextlib
import os
import pty
import re
import select
import signal
import sys
import termios
import time

from test.support import LONG_TIMEOUT, sleeping_retry

from ..support.sessions import ProgramTest, environment
from .recorded import RecordTest

# What a shell does for a job in the foreground, and for one that stops: fg.
SHELL = '''\
import os, signal, subprocess, sys
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
job = subprocess.Popen(sys.argv[2:], process_group=0, preexec_fn=lambda: (
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)))
os.tcsetpgrp(0, job.pid)
print('job', job.pid, flush=True)
while True:
    _, status = os.waitpid(job.pid, os.WUNTRACED)
    os.tcsetpgrp(0, os.getpgrp())
    if not os.WIFSTOPPED(status):
        break
    print('stopped by', os.WSTOPSIG(status), flush=True)
    os.tcsetpgrp(0, job.pid)
    getattr(os, sys.argv[1])(job.pid, signal.SIGCONT)
print('ended', os.waitstatus_to_exitcode(status), flush=True)
'''
# It does what is typed, and says which signals it gets.
JOB = '''\
import os, select, signal, sys
def got(number, frame):
    os.write(1, b'got %d\\n' % number)
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1,
               signal.SIGCONT):
    signal.signal(number, got)
signal.signal(signal.SIGQUIT, signal.SIG_IGN)
os.write(1, b'ready\\n')
while True:
    # A signal just before a read that blocks would wait for it.
    if not select.select([0], [], [], 0.05)[0]:
        continue
    match os.read(0, 100).decode().strip():
        case 'stop':
            os.kill(os.getpid(), signal.SIGSTOP)
        case 'stop all':
            os.kill(0, signal.SIGTSTP)
        case 'take control-z':
            signal.signal(signal.SIGTSTP, got)
        case 'end':
            sys.exit(5)
    os.write(1, b'done\\n')
'''
RECORD = [sys.executable, '-m', 'profile_sampling', 'record', '-q', '-o',
          'p.pb.gz', '--']
INTERRUPT, SUSPEND = '\x03', '\x1a'
# A second signal, if there is one, has come by then.
SETTLE_S = 0.2
INT, TERM, USR1, CONT, TSTP, STOP = map(int, (
    signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGCONT,
    signal.SIGTSTP, signal.SIGSTOP))


class Terminal:
    """A shell with one job, and who sits before it."""

    def __init__(self, directory, command, goes_on=os.killpg):
        pid, self._fd = pty.fork()
        if pid == 0:
            os.chdir(directory)
            os.execve(sys.executable, [
                sys.executable, '-c', SHELL, goes_on.__name__, *command],
                environment())
        self._shell = pid
        self._text = ''
        self._seen = 0
        attributes = termios.tcgetattr(self._fd)
        attributes[3] &= ~termios.ECHO
        termios.tcsetattr(self._fd, termios.TCSANOW, attributes)
        self.job = int(self.wait_for(r'job (\d+)')[1])

    def wait_for(self, pattern):
        """Read until there is another line that matches."""
        deadline = time.monotonic() + LONG_TIMEOUT
        while True:
            match = re.compile(rf'{pattern}\r?\n').search(self._text,
                                                          self._seen)
            if match:
                self._seen = match.end()
                return match
            rest_s = max(0.0, deadline - time.monotonic())
            if not select.select([self._fd], [], [], rest_s)[0]:
                raise TimeoutError(f'no {pattern!r} in {self._text!r}')
            self._text += os.read(self._fd, 1000).decode()

    def type(self, text, *answers):
        os.write(self._fd, text.encode())
        self.expect(*answers)

    def expect(self, *answers):
        for answer in answers:
            self.wait_for(answer)
        time.sleep(SETTLE_S)

    def end(self):
        """Have the job end; return all lines but the first."""
        self.type('end\n', r'ended \d+')
        return self._text.split()[2:]

    def close(self):
        """End all that still runs."""
        for kill, number in (os.killpg, self.job), (os.kill, self._shell):
            try:
                kill(number, signal.SIGKILL)
            except ProcessLookupError:
                pass
        os.waitpid(self._shell, 0)
        os.close(self._fd)


def unique(words):
    """Lines without those that are equal to the one before."""
    lines = re.sub(' (got|ended)', r'\n\1', ' '.join(words)).splitlines()
    return [line for line, before in zip(lines, [None, *lines])
            if line != before]


class JobTest(ProgramTest):

    def check(self, use, seen_as=list):
        """What is seen must be the same with and without record."""
        self.file('job.py', JOB)
        command = [sys.executable, 'job.py']
        seen = []
        for before in [], RECORD:
            with contextlib.closing(Terminal(self.directory,
                                             before + command)) as terminal:
                terminal.wait_for('ready')
                use(terminal)
                seen.append(terminal.end())
        self.assertEqual(*map(seen_as, seen))
        self.assertEqual(seen[1][-2:], ['ended', '5'])
        self.assertTrue(self.load('p.pb.gz').samples)
        self.assertEqual(self.files(), ['job.py', 'p.pb.gz'])

    def test_a_signal_to_the_group(self):
        # It may come to the program a second time, since it is not known
        # that it was not sent to the command alone.
        def use(terminal):
            for number in TERM, TERM, USR1:
                os.killpg(terminal.job, number)
                terminal.expect(f'got {number}')
        self.check(use, unique)

    def test_a_signal_to_the_command_alone(self):
        def use(terminal):
            terminal.type(INTERRUPT, f'got {INT}')
            for number in INT, TERM, INT:
                os.kill(terminal.job, number)
                terminal.expect(f'got {number}')
        self.check(use)

    def test_a_command_that_is_told_to_go_on_alone(self):
        # By somebody who knows no more than its number.
        self.file('job.py', JOB)
        with contextlib.closing(Terminal(self.directory, [
                *RECORD, sys.executable, 'job.py'], goes_on=os.kill)
                ) as terminal:
            terminal.wait_for('ready')
            terminal.type(SUSPEND, f'stopped by {TSTP}', f'got {CONT}')
            terminal.type('x\n', 'done')
            self.assertEqual(terminal.end()[-2:], ['ended', '5'])

    def test_stopped_by_a_signal_to_the_command(self):
        def use(terminal):
            for _ in range(2):
                os.kill(terminal.job, signal.SIGTSTP)
                terminal.expect(f'stopped by {TSTP}', f'got {CONT}')
        self.check(use)

    def test_what_is_typed(self):
        """Keys and lines, with what is seen of each."""
        stopped = f'stopped by {TSTP}', f'got {CONT}'
        for typed in (
                [(INTERRUPT, f'got {INT}')] * 2,
                [(SUSPEND, *stopped)] * 2 + [('x\n', 'done')],
                # The program stops itself, its group, or takes Control-Z.
                [('stop\n', f'stopped by {STOP}', f'got {CONT}', 'done')],
                [('stop all\n', *stopped, 'done')],
                [('take control-z\n', 'done'), (SUSPEND, f'got {TSTP}'),
                 ('x\n', 'done')]):
            with self.subTest(typed=typed):
                self.check(lambda terminal: [terminal.type(*step)
                                             for step in typed])


class LateTest(RecordTest):

    def test_processes_that_outlive_it(self):
        self.file('daemon.py', '''if True:
            import os, sys, time, work
            work.work()
            if os.fork():
                sys.exit(4)
            work.work()
            os.setsid()
            for number in range(3):
                os.dup2(os.open(os.devnull, os.O_RDWR), number)
            while not os.path.exists('end'):
                time.sleep(0.01)
            ''')
        result = self.record('-q', '-o', 'p.pb.gz', '--', sys.executable,
                             'daemon.py')
        self.assertEqual(result.status, 4, result.err)
        self.assertNotIn('pid', self.load('p.pb.gz').label_keys)
        line, = result.err.splitlines()
        daemon, left = re.search(
            r'still running after the command: (\d+); .* will be in (.*) '
            'when they end', line).groups()
        self.assertEqual(os.listdir(left), [])
        self.file('end', '')
        name = os.path.join(left, f'{daemon}.pb.gz')
        for _ in sleeping_retry(LONG_TIMEOUT):
            if os.path.exists(name):
                break
        for path in 'p.pb.gz', name:
            self.check_work(self.load(path))
