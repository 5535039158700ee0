"""The command top, of a process that runs, on a terminal."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import termios
import time
import unittest

from ..support import targets
from ..support.screens import Pty

# Two threads that want the GIL, one that waits for a socket, one idle.
SERVICE = '''
import queue, socket
def spin(n=20_000):
    return sum([i * i for i in range(n)])
def compute():
    while True:
        spin()
def talk():
    a, b = socket.socketpair()
    while True:
        a.settimeout(0.2)
        try:
            a.recv(1)
        except TimeoutError:
            spin(100)
thread(compute, "one"); thread(compute, "two"); thread(talk, "talker")
thread(queue.Queue().get, "worker")
ready()
sys.stdin.read()
'''
LIMIT_S = 60


def arguments(*more):
    return [sys.executable, '-m', 'profile_sampling', 'top', *map(str, more)]


@contextlib.contextmanager
def top(terminal, pid, *more, **env):
    """Run top on a terminal until the block ends."""
    with subprocess.Popen(
            arguments('-p', pid, *more), stdin=terminal.slave,
            stdout=terminal.slave, stderr=terminal.slave,
            env=targets._ENVIRONMENT | {
                'TERM': 'xterm-256color', 'COLORFGBG': '15;0',
                'PYTHONIOENCODING': 'utf-8'} | env,
            start_new_session=True) as process:
        try:
            yield process
        finally:
            process.kill()


class TopTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        from test.support import os_helper
        path = cls.enterClassContext(os_helper.temp_dir()) + '/service.py'
        with open(path, 'w') as file:
            file.write(SERVICE)
        cls.target = cls.enterClassContext(targets.running(
            f'exec(compile(open({path!r}).read(), {path!r}, "exec"))'))

    def test_three_sizes(self):
        before = targets.footprint(self.target.pid)
        for width, height, themes, texts in [
                (60, 12, ['light'], ['% 5 s  Doing']),
                (80, 24, ['light', 'dark'],
                 ['[1 My code]', '% all', '→ ', 'r running']),
                (200, 50, ['dark'], ['service.py', 'Source', 'Busy ', 'Doing  ',
                           'return sum([i * i for i in range(n)])'])]:
            for theme in themes:
                with self.subTest(width), Pty(width, height) as terminal, top(
                        terminal, self.target.pid, '--theme', theme) as client:
                    terminal.until('% 5 s', LIMIT_S)
                    terminal.until('spin', LIMIT_S)
                    for text in 'Slow', 'Where', 'GIL', 'live', *texts:
                        terminal.until(text)
                    self.assertTrue(terminal.shown.is_other)
                    self.assertTrue(terminal.shown.is_cursor_hidden)
                    self.leave(terminal, client, 'q')
        self.assertEqual(targets.footprint(self.target.pid), before)

    def leave(self, terminal, client, key=None, *, status=0):
        if key is not None:
            terminal.type(key)
        deadline = time.monotonic() + LIMIT_S
        while client.poll() is None:
            self.assertLess(time.monotonic(), deadline)
            terminal.read(0.05)
        terminal.read(0.05)
        self.assertEqual(client.returncode, status)
        self.assertFalse(terminal.shown.is_other)
        self.assertFalse(terminal.shown.is_cursor_hidden)
        self.assertEqual(termios.tcgetattr(terminal.slave), terminal.modes)

    def test_ways_out(self):
        for number, key, status in (
                (None, 'q', 0), (None, '\x03', 0), (signal.SIGINT, None, 0),
                (signal.SIGTERM, None, -signal.SIGTERM),
                (signal.SIGHUP, None, -signal.SIGHUP)):
            with self.subTest(number=number, key=key), Pty(
                    80, 24) as terminal, top(
                        terminal, self.target.pid) as client:
                terminal.until('[1 My code]', LIMIT_S)
                if number is not None:
                    client.send_signal(number)
                self.leave(terminal, client, key, status=status)
                # The last screen stays.
                self.assertIn('Slow', terminal.shown.text)
                self.assertNotIn('Traceback', terminal.shown.text)

    def test_a_terminal_that_is_lost(self):
        terminal = Pty(80, 24)
        with top(terminal, self.target.pid) as client:
            terminal.until('[1 My code]', LIMIT_S)
            os.close(terminal.slave)
            os.close(terminal.master)
            self.assertEqual(client.wait(LIMIT_S), 0)

    def test_keys(self):
        with Pty(80, 24) as terminal, top(terminal, self.target.pid) as client:
            terminal.until('% 5 s', LIMIT_S)
            terminal.type('6')
            terminal.until('[6 Threads]')
            terminal.until('talker')
            terminal.until('idle: no work')
            terminal.type('7')
            terminal.until('Who held the GIL')
            terminal.type('d')
            terminal.until('Threads  ')
            terminal.type('\x1b')
            terminal.until('[7 Waits]')
            terminal.type(' ')
            terminal.until('Paused at')
            self.assertEqual(terminal.read(2.5), 0)
            terminal.resize(100, 30)
            client.send_signal(signal.SIGWINCH)
            terminal.until('Paused at')
            terminal.type(' ')
            terminal.until('live ')
            # The difference between two seconds, not the screen.
            terminal.read(1)
            self.assertLess(terminal.read(3), 3 * 2048)
            self.leave(terminal, client, 'q')

    def test_save(self):
        from test.support import os_helper
        with os_helper.temp_cwd(), Pty(80, 24) as terminal, top(
                terminal, self.target.pid) as client:
            terminal.until('% 5 s', LIMIT_S)
            terminal.type('s' + '\x7f' * 30 + 'seen.pb.gz\r')
            terminal.until('Saved seen.pb.gz')
            self.leave(terminal, client, 'q')
            found = targets.command('report', 'seen.pb.gz')
            self.assertIn('spin', found.stdout, found.stderr)

    def test_a_terminal_that_does_not_read(self):
        with Pty(80, 24) as terminal, top(terminal, self.target.pid) as client:
            terminal.until('% 5 s', LIMIT_S)
            # More than a terminal holds; then it has the newest screen.
            for _ in range(200):
                terminal.type('t')
            time.sleep(3)
            terminal.type('2')
            terminal.until('[2 Functions]', LIMIT_S)
            self.leave(terminal, client, 'q')

    def test_the_process_ends(self):
        with targets.running(SERVICE) as target, Pty(
                80, 24) as terminal, top(terminal, target.pid) as client:
            terminal.until('% 5 s', LIMIT_S)
            target.kill()
            terminal.until(f'PID {target.pid} ended', LIMIT_S)
            terminal.until('s save what was seen')
            self.leave(terminal, client, 'q', status=3)

    def test_a_process_that_does_not_answer(self):
        with targets.running(SERVICE) as target, Pty(80, 24) as terminal:
            target.send_signal(signal.SIGSTOP)
            with top(terminal, target.pid) as client:
                terminal.until('no answer for', LIMIT_S)
                terminal.until('Still trying')
                target.send_signal(signal.SIGCONT)
                terminal.until('% 5 s', LIMIT_S)
                terminal.until('live ')
                self.leave(terminal, client, 'q')

    def test_no_terminal(self):
        found = targets.command('top', '-p', self.target.pid, '--once',
                                '--for', '1.5')
        self.assertEqual((found.returncode, found.stderr), (0, ''))
        self.assertNotIn('\033', found.stdout)
        self.assertRegex(found.stdout, '(?m)^GIL +held')
        self.assertIn('spin', found.stdout)
        found = targets.command('top', '-p', self.target.pid, '--once',
                                '--for', '0')
        self.assertIn('Now, at this moment', found.stdout)
        with subprocess.Popen(
                arguments('-p', self.target.pid, '--json'),
                stdout=subprocess.PIPE, text=True,
                env=targets._ENVIRONMENT) as client:
            its = [json.loads(client.stdout.readline()) for _ in range(3)]
            client.send_signal(signal.SIGINT)
            client.stdout.read()
        self.assertEqual(client.returncode, 0)
        window = its[-1]['window']
        self.assertGreater(window['busy_s'], 0.5)
        self.assertAlmostEqual(sum(window['states'].values()),
                               window['busy_s'])
        self.assertAlmostEqual(sum([row['window_s'] for row
                                    in its[-1]['rows']]), window['busy_s'])

    def test_children(self):
        with targets.running('''
import os
parent = os.getpid()
children = [os.fork() for _ in range(2) if os.getpid() == parent]
def first():
    while True: sum(range(1000))
def second():
    while os.getppid() == parent: time.sleep(0.001)
if os.getpid() == parent:
    ready()
    first()
second()
''') as target:
            found = targets.command('top', '-p', target.pid, '--children',
                                    '--once', '--for', '2')
            self.assertEqual((found.returncode, found.stderr), (0, ''))
            self.assertRegex(found.stdout, f'PID {target.pid} and 2 children')
            for name in 'first', 'second':
                self.assertIn(name, found.stdout)
            with Pty(80, 24) as terminal, top(
                    terminal, target.pid, '--children') as client:
                terminal.until('and 2 children', LIMIT_S)
                terminal.until('% 5 s', LIMIT_S)
                terminal.type('\t')
                terminal.until(f'PID {target.pid}  1 thread', LIMIT_S)
                terminal.type('\t')
                terminal.until('second', LIMIT_S)
                self.leave(terminal, client, 'q')
            self.assertEqual(targets.command(
                'top', '-p', target.pid, '--children', '--page').returncode, 2)

    def test_child_that_is_started_later(self):
        with targets.running('''
import os
parent = os.getpid()
def work():
    while os.getppid() == parent: sum(range(1000))
    os._exit(0)
ready()
sys.stdin.readline()
if os.fork() == 0:
    work()
while True: time.sleep(0.1)
''') as target:
            with Pty(80, 24) as terminal, top(
                    terminal, target.pid, '--children') as client:
                terminal.until(f'PID {target.pid} ', LIMIT_S)
                target.stdin.write('\n')
                target.stdin.flush()
                terminal.until('and 1 child', LIMIT_S)
                terminal.until('work', LIMIT_S)
                self.leave(terminal, client, 'q')

    def test_a_terminal_that_is_dumb(self):
        with Pty(80, 24) as terminal, top(terminal, self.target.pid,
                                          TERM='dumb') as client:
            terminal.until('This terminal cannot move its cursor', LIMIT_S)
            terminal.until('Slow', LIMIT_S)
            client.send_signal(signal.SIGINT)
            self.leave(terminal, client)

    def test_refusals(self):
        with subprocess.Popen(['sleep', '60']) as other:
            self.addCleanup(other.kill)
            found = targets.command('top', '-p', other.pid, '--json')
            other.kill()
        self.assertEqual(found.returncode, 1)
        self.assertEqual(json.loads(found.stdout)['format'],
                         'sampleprof-refusal')
        for more in ['--for', 'x'], ['--rate', '0'], ['--by', 'x']:
            self.assertEqual(targets.command(
                'top', '-p', self.target.pid, *more).returncode, 2)


if __name__ == '__main__':
    unittest.main()
