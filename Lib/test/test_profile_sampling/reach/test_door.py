"""Who is answered, when, and what is left of it."""

import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest
from test.support import import_helper, os_helper
from unittest import mock

from profile_sampling._reach import door
from profile_sampling._reach.processes import Process, Refusal
from profile_sampling._reach.watch import Watch

from ..support.sessions import _profile
from ..support.targets import (
    READY, asleep, command, footprint, running, running_with_child, until)

IDLE = '''
ready()
sys.stdin.read()
'''
BUSY = '''
thread(lambda: time.sleep(1000))
ready()
while True:
    sum(range(1000))
'''
NOBODY = 65534
# No socket() from now on: it fails, as in a strict container.
SECCOMP = '''
import ctypes, struct
NR_SOCKET = {"x86_64": 41, "aarch64": 198}[__import__("platform").machine()]
filter = b"".join(struct.pack("HBBI", *line) for line in (
    (0x20, 0, 0, 0), (0x15, 0, 1, NR_SOCKET), (0x06, 0, 0, 0x00050001),
    (0x06, 0, 0, 0x7fff0000)))
code = ctypes.create_string_buffer(filter)
program = ctypes.create_string_buffer(struct.pack(
    "HxxxxxxP", 4, ctypes.addressof(code)))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.c_void_p(ctypes.addressof(program)), 0, 0) == 0
'''


def hello(pid):
    process = Process(pid)
    process.check()
    return door.ask(process, door.HELLO)


class AnsweredTest(unittest.TestCase):

    def test_program_that_computes_or_sleeps_answers(self):
        for source in IDLE, BUSY:
            with self.subTest(source), running(source) as program:
                self.assertEqual(hello(program.pid).pid, program.pid)

    def test_nothing_is_left(self):
        for source in IDLE, BUSY:
            with self.subTest(source), running(source) as program:
                before = footprint(program.pid)
                for verb in door.HELLO, door.DUMP, door.TASKS:
                    door.ask(Process(program.pid), verb)
                until(lambda: footprint(program.pid) == before)

    def test_no_memory_in_advance(self):
        import_helper.import_module('ctypes')
        for field, limit, most_mb in (
                ('VmHWM', 'ctypes.CDLL(None).mlockall(2)', 100),
                ('VmPeak', 'resource.setrlimit(resource.RLIMIT_AS, '
                           '(1 << 30, 1 << 30))', 150)):
            with self.subTest(limit), running(f'''
import ctypes, resource, signal
def megabytes():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) >> 10 for line in file
                    if line.startswith("{field}:"))
def tell(*args):
    print(megabytes() - before, flush=True)
before = megabytes()
is_limited = not {limit}
signal.signal(signal.SIGUSR1, tell)
ready()
print(is_limited, flush=True)
while True:
    sum(range(1000))
''') as program:
                if program.stdout.readline() != 'True\n':
                    self.skipTest('no right to lock memory')
                with Watch(Process(program.pid), 250) as watch:
                    self.assertTrue(until(lambda: list(watch.slices(1))))
                program.send_signal(signal.SIGUSR1)
                self.assertLess(int(program.stdout.readline()), most_mb)

    def test_program_sees_no_handler(self):
        with running('''
import signal
ready()
print(signal.getsignal(signal.SIGURG) is signal.SIG_DFL,
      signal.signal(signal.SIGURG, lambda *args: None) is signal.SIG_DFL,
      flush=True)
sys.stdin.read()
''') as program:
            self.assertEqual(program.stdout.readline(), 'True True\n')

    def test_calls_go_on(self):
        # Each of them would fail, or end too early.
        for call in ('time.sleep(1)', 'select.select([], [], [], 1)',
                     'os.read(r, 1)', 'lock.acquire(timeout=1)',
                     'select.epoll().poll(1)', 'os.waitpid(pid, 0)'):
            with self.subTest(call), running(f'''
import os, select
r, w = os.pipe()
lock = threading.Lock()
lock.acquire()
thread(lambda: (time.sleep(1), os.write(w, b"x")))
pid = os.posix_spawn("/bin/sleep", ["sleep", "1"], os.environ)
ready()
began = time.monotonic()
{call}
print(time.monotonic() - began > 0.9, flush=True)
sys.stdin.read()
''') as program:
                for _ in range(20):
                    hello(program.pid)
                    door.ask(Process(program.pid), door.DUMP)
                self.assertEqual(program.stdout.readline(), 'True\n')

    def test_waits_for_signals_go_on(self):
        # The request would be what they return.
        for call in ('signal.sigwait({signal.SIGURG, signal.SIGUSR1})',
                     'signal.pause() or caught'):
            for others in '', 'thread(lambda: time.sleep(1000))':
                with self.subTest(call, others=others), running(f'''
import signal
caught = []
signal.signal(signal.SIGUSR1, lambda *args: caught.append(args[0]))
{others}
ready()
print({call}, flush=True)
''') as program:
                    asleep(program)
                    for verb in door.HELLO, door.DUMP:
                        if others:
                            door.ask(Process(program.pid), verb)
                        else:
                            with self.assertRaisesRegex(Refusal, 'wait for a'):
                                door.ask(Process(program.pid), verb)
                    os.kill(program.pid, signal.SIGUSR1)
                    self.assertIn(str(int(signal.SIGUSR1)),
                                  program.stdout.readline())

    def test_child_of_fork_answers(self):
        with running_with_child('fork()') as (_, child):
            self.assertEqual(until(lambda: hello(child)).pid, child)

    def test_with_session(self):
        source = '''
import profile_sampling, signal
profile_sampling.start()
ready()
sys.stdin.readline()
profile_sampling.stop()
print(signal.getsignal(signal.SIGURG) is signal.SIG_DFL, flush=True)
sys.stdin.read()
'''
        with running(source) as program:
            for _ in range(5):
                self.assertTrue(
                    door.ask(Process(program.pid), door.DUMP).records)
            program.stdin.write('\n')
            program.stdin.flush()
            self.assertEqual(program.stdout.readline(), 'True\n')
            hello(program.pid)

    def test_audit_event(self):
        source = '''
def hook(event, args):
    if event == "profile_sampling.reach":
        print(event, args, flush=True)
        {}
sys.addaudithook(hook)
ready()
while True:
    sum(range(1000))
'''
        with running(source.format('pass')) as program:
            self.assertTrue(
                door.ask(Process(program.pid), door.DUMP).at_safepoint)
            self.assertEqual(program.stdout.readline(),
                             f'profile_sampling.reach ({door.DUMP},)\n')
        with running(source.format('raise RuntimeError')) as program:
            with self.assertRaises(Refusal) as caught:
                door.ask(Process(program.pid), door.DUMP)
            self.assertEqual(caught.exception.reason, 'vetoed')

    def test_two_clients(self):
        with running(BUSY) as program:
            clients = [subprocess.Popen(
                [sys.executable, '-m', 'profile_sampling', 'dump', '--json',
                 '-p', str(program.pid)], stdout=subprocess.PIPE)
                for _ in range(4)]
            for client in clients:
                said, _ = client.communicate()
                self.assertEqual(client.returncode, 0)
                self.assertEqual(len(json.loads(said)['threads']), 2)


class RefusedTest(unittest.TestCase):

    def check(self, pid, reason):
        done = command('dump', '-p', pid, '--json')
        self.assertEqual(done.returncode, 1)
        self.assertEqual(json.loads(done.stdout)['reason'], reason)
        done = command('dump', '-p', pid)
        self.assertEqual((done.returncode, done.stdout), (1, ''))
        self.assertIn(str(pid), done.stderr)

    def test_switched_off(self):
        with running(IDLE, '-X', 'sampleprof-attach=0') as program:
            self.check(program.pid, 'off')
        with running(IDLE, env={'PYTHONSAMPLEPROFATTACH': '0'}) as program:
            self.check(program.pid, 'off')

    def test_no_python(self):
        with subprocess.Popen(['sleep', '100']) as program:
            self.check(program.pid, 'not-python')
            program.kill()

    def test_ended(self):
        with subprocess.Popen(['true']) as program:
            pass
        self.check(program.pid, 'no-such-pid')

    def test_handler_of_program(self):
        with running('''
import signal
count = 0
def handler(*args):
    global count
    count += 1
signal.signal(signal.SIGURG, handler)
ready()
sys.stdin.readline()
print(count, flush=True)
''') as program:
            with self.assertRaises(Refusal) as caught:
                hello(program.pid)
            self.assertIn(caught.exception.reason,
                          ('handler-taken', 'no-answer'))
            # It is not to be bothered.
            program.stdin.write('\n')
            program.stdin.flush()
            self.assertIn(int(program.stdout.readline()), range(1, 6))

    def test_seccomp(self):
        import_helper.import_module('ctypes')
        with running(SECCOMP + IDLE) as program:
            self.check(program.pid, 'filtered')

    @unittest.skipUnless(os.geteuid() == 0, 'needs to be root')
    def test_users_that_are_not_mapped(self):
        with subprocess.Popen(
                ['unshare', '--user', sys.executable, '-c', READY + IDLE],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL) as program:
            try:
                if program.stdout.readline() != b'ready\n':
                    self.skipTest('unshare is not allowed')
                with self.assertRaises(Refusal) as caught:
                    hello(program.pid)
                self.assertEqual(caught.exception.reason, 'unmapped-users')
            finally:
                program.kill()

    def test_each_refusal_of_the_process(self):
        # It connects to who asks; here that is this process itself.
        process = Process(os.getpid())
        for answer, version, reason in (
                (2, b'3', 'other-user'), (3, b'3', 'protected'),
                (4, b'3', 'unmapped-users'), (5, b'3', 'vetoed'),
                (6, b'3', 'ended'), (7, b'3', 'no-answer'),
                (8, b'3', 'busy'), (0, b'9.9.9', 'other-version')):
            with self.subTest(reason):
                ours, its = socket.socketpair(socket.AF_UNIX,
                                              socket.SOCK_SEQPACKET)
                with ours, its:
                    its.send(door._ANSWER.pack(
                        door._MAGIC, door.PROTOCOL + (reason ==
                                                      'other-version'),
                        answer, 1, 0, 0, 0, 0, version))
                    with self.assertRaises(Refusal) as caught:
                        door.receive(process, ours)
                self.assertEqual(caught.exception.reason, reason)
                self.assertIn(version.decode() if answer == 0 else '',
                              caught.exception.text)

    def test_other_user_is_told_before_anything_is_sent(self):
        with running(IDLE) as program:
            process = Process(program.pid)
            with mock.patch.object(os, 'geteuid', lambda: process.uid + 1):
                with self.assertRaises(Refusal) as caught:
                    process.check()
        self.assertEqual(caught.exception.reason, 'other-user')
        self.assertIn('As that user', caught.exception.remedy)

    def test_ends_while_it_is_asked(self):
        with running(IDLE) as program:
            process = Process(program.pid)
            program.kill()
            program.wait()
            with self.assertRaises(Refusal) as caught:
                door.ask(process, door.HELLO)
        self.assertEqual(caught.exception.reason, 'ended')

    @unittest.skipUnless(os.geteuid() == 0, 'needs to be root')
    def test_other_user(self):
        with running(IDLE) as program:
            asked = subprocess.run(
                [sys.executable, '-c', f'''
import os
os.setgid({NOBODY}); os.setuid({NOBODY})
from profile_sampling import _core
try:
    _core.load().send_request({program.pid}, {program.pid}, 1)
except PermissionError:
    print("refused")
'''], capture_output=True, text=True)
            self.assertEqual(asked.stdout, 'refused\n', asked.stderr)

    @unittest.skipUnless(os.geteuid() == 0, 'needs to be root')
    def test_root_asks_another_user_and_what_gave_up_rights(self):
        with running(f'''
import os
os.setgid({NOBODY}); os.setuid({NOBODY})
ready()
sys.stdin.read()
''') as program:
            # To change one's user makes one not dumpable.
            hello(program.pid)
            asked = subprocess.run(
                [sys.executable, '-c', f'''
import os
os.setgid({NOBODY}); os.setuid({NOBODY})
from profile_sampling._reach import door
from profile_sampling._reach.processes import Process, Refusal
try:
    door.ask(Process({program.pid}), door.HELLO)
except Refusal as exc:
    print(exc.reason)
'''], capture_output=True, text=True)
            self.assertEqual(asked.stdout, 'protected\n', asked.stderr)

    def test_name_that_fits_none(self):
        done = command('dump', '--json', 'no such program at all')
        self.assertEqual(json.loads(done.stdout)['reason'], 'no-such-pid')
        self.assertEqual(done.returncode, 1)


class HarmlessTest(unittest.TestCase):

    def test_any_request(self):
        rng = random.Random(3)
        with running(BUSY) as program:
            before = footprint(program.pid)
            for _ in range(2000):
                _profile.send_request(program.pid, program.pid,
                                      rng.getrandbits(64))
            hello(program.pid)
            until(lambda: footprint(program.pid) == before)

    def test_exec_again_and_again(self):
        with running('''
import os
ready()
left = int(os.environ.get("LEFT", 20))
if left:
    os.environ["LEFT"] = str(left - 1)
    os.execv(sys.executable, [sys.executable, "-c", sys.orig_argv[-1]])
sys.stdin.read()
''') as program:
            rest = threading.Thread(
                target=lambda: [program.stdout.readline() for _ in range(20)])
            rest.start()
            deadline = time.monotonic() + 60
            while rest.is_alive() and time.monotonic() < deadline:
                for verb in door.HELLO, door.DUMP, 4:
                    _profile.send_request(program.pid, program.pid,
                                          5 << 16 | verb)
                time.sleep(0.0002)      # without, all it does is to answer
            self.assertFalse(rest.is_alive())
            self.assertEqual(hello(program.pid).pid, program.pid)

    def test_clients_that_are_killed_at_any_moment(self):
        rng = random.Random(4)
        with running(BUSY) as program:
            before = footprint(program.pid)
            for number in range(12):
                arguments = (['dump'] if number % 2 else
                             ['record', '-d', '9', '-o', os.devnull,
                              '--format', 'pprof'])
                client = subprocess.Popen(
                    [sys.executable, '-m', 'profile_sampling', *arguments,
                     '-p', str(program.pid)], stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL)
                time.sleep(rng.uniform(0.05, 0.5))
                client.kill()
                client.wait()
            until(lambda: footprint(program.pid) == before)
            hello(program.pid)

    @unittest.skipUnless(os.geteuid() == 0, 'needs to be root')
    def test_another_root_directory(self):
        # Its /proc is not there, nor any directory that both can see.
        with os_helper.temp_dir() as root, running(f'''
import encodings.idna, os, socket
os.chroot({root!r})
os.chdir("/")
ready()
sys.stdin.read()
''') as program:
            self.assertTrue(
                door.ask(Process(program.pid), door.DUMP).records)
            done = command('dump', '-p', program.pid)
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_requests_without_client(self):
        # As of one that was killed, and stray signals of others.
        with running(BUSY) as program:
            before = footprint(program.pid)
            for number in range(3000):
                _profile.send_request(program.pid, program.pid,
                                      number << 16 | 1 + number % 4)
                os.kill(program.pid, signal.SIGURG)
            hello(program.pid)
            until(lambda: footprint(program.pid) == before)

    def test_squatter_is_not_taken_for_the_program(self):
        with running(IDLE) as program:
            process = Process(program.pid)
            with door.listener(process, 7 << 16 | 1) as listener:
                stranger = subprocess.Popen([sys.executable, '-c', '''
import socket
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.connect("\\0sampleprof-%016x" % (7 << 16 | 1))
s.send(b"x" * 88)
input()
'''], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
                connection, _ = listener.accept()
                with connection:
                    self.assertIsNone(
                        door.receive(process, connection))
                stranger.communicate()

    def test_exec_in_between(self):
        with running('''
import os
ready()
sys.stdin.readline()
os.execv("/bin/sleep", ["sleep", "100"])
''') as program:
            program.stdin.write('\n')
            program.stdin.flush()
            until(lambda: b'sleep' in open(
                f'/proc/{program.pid}/cmdline', 'rb').read())
            for _ in range(50):
                _profile.send_request(program.pid, program.pid, 1 << 16 | 1)
            self.assertIsNone(program.poll())

    def test_reader_that_never_reads(self):
        with running(BUSY) as program:
            process = Process(program.pid)
            before = footprint(program.pid)
            listeners = []
            for number in range(30):
                request = (number + 1) << 16 | door.DUMP
                listeners.append(door.listener(process, request))
                _profile.send_request(program.pid, program.pid, request)
            hello(program.pid)
            until(lambda: footprint(program.pid) == before)
            for listener in listeners:
                listener.close()

    @unittest.skipUnless(os.geteuid() == 0, 'needs to be root')
    def test_other_namespaces(self):
        for options in (['--net'], ['--pid', '--fork', '--mount-proc'],
                        ['--mount']):
            with self.subTest(options), subprocess.Popen(
                    ['unshare', '--kill-child', *options, sys.executable,
                     '-c', 'print("ready", flush=True)\nimport sys\n'
                           'sys.stdin.read()'] if '--fork' in options else
                    ['unshare', *options, sys.executable, '-c',
                     'print("ready", flush=True)\nimport sys\n'
                     'sys.stdin.read()'],
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE) as program:
                if program.stdout.readline() != b'ready\n':
                    self.skipTest('unshare is not allowed')
                children = f'/proc/{program.pid}/task/{program.pid}/children'
                with open(children) as file:
                    pid = int((file.read().split() or [program.pid])[0])
                self.assertTrue(door.ask(Process(pid), door.DUMP).records)
                program.stdin.close()


if __name__ == '__main__':
    unittest.main()
