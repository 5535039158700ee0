"""record -p and stat -p: samples of a process that was started without any
option."""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
import unittest
from test.support import os_helper

from profile_sampling import Profile
from profile_sampling._cli import attached
from profile_sampling._data import intake
from profile_sampling._data.values import COUNT, STATES, WALL
from profile_sampling._reach import door, slices, watch
from profile_sampling._reach.processes import Process, Refusal

from ..support import targets
from ..support.sessions import _profile
from ..support.targets import asleep, command, footprint, running, until

WORK = '''
def compute():
    while True:
        sum(range(1000))
def wait():
    while True:
        time.sleep(0.001)
thread(wait, "waits")
ready()
compute()
'''
MEMORY = '''
kept = []
def keep():
    while True:
        kept.append(bytearray(1 << 20))
        bytearray(1 << 20)
        time.sleep(0.02)
thread(keep)
ready()
while True:
    time.sleep(0.1)
'''
IDLE = '''
ready()
sys.stdin.read()
'''


def collect(program, seconds, rate_hz=200):
    """Return the Tables of all slices."""
    found = []
    with watch.Watch(Process(program.pid), rate_hz) as watched:
        assert watched.begin(10)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(0.3)
            found += watched.slices(5)
        found += watched.last()
    return found


def num_clients(program):
    """Return how many connections it keeps."""
    return sum(int(name) >= 200 for name
               in os.listdir(f'/proc/{program.pid}/fd'))


def is_watched(program):
    return any(thread.is_ours for thread
               in Process(program.pid).threads_now().values())


class WatchTest(unittest.TestCase):

    def test_each_slice_adds_up_to_the_nanosecond(self):
        with running(WORK) as program:
            before = footprint(program.pid)
            found = collect(program, 1.5)
            until(lambda: footprint(program.pid) == before)
        self.assertGreater(len(found), 3)
        for tables in found:
            threads = [thread.name for thread in tables.threads]
            times = dict.fromkeys(threads, 0)
            for thread, ns in zip(tables.column('thread'),
                                  tables.value(WALL.name)):
                times[threads[thread]] += ns
            # Both threads were there all the time.
            self.assertEqual(set(times), {'MainThread', 'waits'})
            for name, ns in times.items():
                self.assertEqual(ns, tables.duration_ns, name)
        # No moment is in two of them, or in none.
        ends = [tables.start_time_ns + tables.duration_ns for tables in found]
        for end, tables in zip(ends, found[1:]):
            self.assertLess(abs(end - tables.start_time_ns), 5_000_000)

    def test_with_a_session_of_the_program(self):
        with running('''
import profile_sampling
profile_sampling.start(rate_hz=500)
ready()
over = threading.Event()
thread(lambda: (sys.stdin.readline(), over.set()))
while not over.is_set():
    sum(range(1000))
profile = profile_sampling.stop()
print(sum(sample.wall_ns for sample in profile.samples
          if sample.thread.name == "MainThread"), profile.duration_ns,
      flush=True)
sys.stdin.read()
''') as program:
            found = collect(program, 0.8)
            program.stdin.write('\n')
            program.stdin.flush()
            total, duration = map(int, program.stdout.readline().split())
        # What others take is missing nowhere.
        self.assertEqual(total, duration)
        self.assertEqual({tables.rate_hz for tables in found}, {500})

    def test_several_clients(self):
        with running(WORK) as program, contextlib.ExitStack() as stack:
            before = footprint(program.pid)
            process = Process(program.pid)
            clients = [stack.enter_context(watch.Watch(process, 100))
                       for _ in range(4)]
            for client in clients:
                self.assertTrue(client.begin(10))
            with watch.Watch(process, 100) as fifth:
                with self.assertRaises(Refusal) as caught:
                    fifth.begin(10)
            self.assertEqual(caught.exception.reason, 'busy')
            self.assertIn(f'by 4 others: PIDs {os.getpid()}, ',
                          caught.exception.text)
            # It has taken nothing away, and each has all of its own time.
            self.assertTrue(door.ask(process, door.DUMP).records)
            for number, client in enumerate(clients):
                found = [*client.slices(5), *client.last()]
                self.assertEqual(len(found), 2)
                for tables in found:
                    total = tables.total(WALL.name)
                    self.assertEqual(total, 2 * tables.duration_ns, number)
            until(lambda: footprint(program.pid) == before)

    def test_commands_at_once(self):
        with running(WORK) as program, os_helper.temp_dir() as directory:
            before = footprint(program.pid)
            pid, path = str(program.pid), os.path.join(directory, 'a.pb.gz')
            clients = [subprocess.Popen(
                [sys.executable, '-m', 'profile_sampling', *arguments,
                 '-p', pid], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                text=True, env=targets._ENVIRONMENT) for arguments in (
                    ['record', '-d', '2', '-o', path], ['top', '--once'],
                    ['top', '--json', '--once', '--for', '2'],
                    ['stat', '-d', '2'], ['dump'], ['dump', '--json'])]
            for client in clients:
                said, _ = client.communicate(timeout=60)
                self.assertEqual(client.returncode, 0, said)
                self.assertIn('compute', said)
            until(lambda: footprint(program.pid) == before)

    def test_client_that_is_killed(self):
        with running(WORK) as program:
            before = footprint(program.pid)
            for _ in range(2):
                clients = [subprocess.Popen(
                    [sys.executable, '-m', 'profile_sampling', 'record', '-p',
                     str(program.pid), '-d', '1000', '-o', os.devnull,
                     '--format', 'pprof'], stderr=subprocess.DEVNULL)
                    for _ in range(4)]
                until(lambda: num_clients(program) == 4)
                for client in clients:
                    client.kill()
                    client.wait()
                killed = time.monotonic()
                with watch.Watch(Process(program.pid), 100) as watched:
                    until(lambda: num_clients(program) == 0)
                    self.assertTrue(watched.begin(10))
                    # Not a lease later; a busy machine has its share.
                    self.assertLess(time.monotonic() - killed, 2)
                    list(watched.last())
                until(lambda: footprint(program.pid) == before)
            self.assertIsNone(program.poll())

    def test_client_that_asks_no_more(self):
        with running(WORK) as program:
            before = footprint(program.pid)
            with watch.Watch(Process(program.pid), 100) as watched:
                self.assertTrue(watched.begin(10))
                until(lambda: footprint(program.pid) == before)
                # It may come back.
                self.assertTrue(until(lambda: list(watched.slices(5))))

    def test_client_that_never_reads(self):
        with running(WORK) as program:
            before = footprint(program.pid)
            with watch.Watch(Process(program.pid), 100) as watched:
                self.assertTrue(watched.begin(10))
                for _ in range(100):
                    watched._order(watch._SLICE)
                until(lambda: footprint(program.pid) == before)

    def test_orders_that_are_none(self):
        rng = random.Random(5)
        orders = [b'', b'x', bytes(32), bytes(1000),
                  watch._ORDER.pack(watch._SLICE, *[0] * 6),
                  watch._ORDER.pack(1, 3, 100, 0, -1, 0, 0),
                  watch._ORDER.pack(1, 0, 0, 0, -1, 0, 0),
                  watch._ORDER.pack(1, 0, 100, 0, -1, 0, 1 << 50),
                  *[rng.randbytes(32) for _ in range(9)]]
        with running(WORK) as program:
            before = footprint(program.pid)
            for order in orders:
                with watch.Watch(Process(program.pid), 100) as watched:
                    watched._begin = order
                    with contextlib.suppress(Refusal):
                        self.assertFalse(watched.begin(0.2))
            until(lambda: footprint(program.pid) == before)

    def test_program_closes_all_its_files(self):
        # And has the number of the connection for a file of its own.
        with running('''
import os
def last():
    return max(map(int, os.listdir("/proc/self/fd")))
begun, over = threading.Event(), threading.Event()
thread(lambda: [sys.stdin.readline() and its.set() for its in (begun, over)])
ready()
while not begun.is_set():
    pass
number = last()
os.closerange(3, 1000)
r, w = os.pipe()
os.dup2(r, number)
os.write(w, b"x")
while not over.is_set():
    pass
print(os.read(number, 1), flush=True)
''') as program:
            with watch.Watch(Process(program.pid), 100) as watched:
                self.assertTrue(watched.begin(10))
                program.stdin.write('\n')
                program.stdin.flush()
                until(lambda: not list(watched.slices(0.5)))
                # It begins anew.
                self.assertTrue(until(lambda: list(watched.slices(0.5))))
            program.stdin.write('\n')
            program.stdin.flush()
            self.assertEqual(program.stdout.readline(), "b'x'\n")

    def test_child_of_fork_has_no_connection(self):
        with running('''
import os
def last():
    return max(map(int, os.listdir("/proc/self/fd")))
ready()
while last() < 200:
    pass
if os.fork() == 0:
    print(last() < 200, flush=True)
    os._exit(0)
while True:
    sum(range(1000))
''') as program:
            with watch.Watch(Process(program.pid), 100) as watched:
                self.assertTrue(watched.begin(10))
                self.assertEqual(program.stdout.readline(), 'True\n')
                self.assertTrue(list(watched.slices(5)))

    def test_idle_program_is_not_woken(self):
        with running(IDLE) as program:
            asleep(program)
            before = footprint(program.pid)
            with watch.Watch(Process(program.pid), 100) as watched:
                self.assertFalse(watched.begin(1))
                self.assertEqual(list(watched.last()), [])
            self.assertEqual(footprint(program.pid), before)

    def test_fork_meanwhile(self):
        with running('''
import os
ready()
for _ in range(20):
    pid = os.fork()
    if pid == 0:
        sum(range(100000))
        os._exit(0)
    os.waitpid(pid, 0)
    time.sleep(0.02)
while True:
    sum(range(1000))
''') as program:
            self.assertTrue(collect(program, 1))


class IdleTest(unittest.TestCase):

    def test_a_wait_of_seconds_is_not_idle(self):
        # In a slice that looks like a thread that waits for work.
        with running('''
import socket
a, b = socket.socketpair()
def ask():
    while True:
        a.recv(1)
        sum(range(1000))
thread(ask, "asks")
ready()
while True:
    time.sleep(2)
    b.send(b"x")
''') as program:
            found = collect(program, 4)
        states = {STATES[state] for tables in found for state, thread
                  in zip(tables.column('state'), tables.column('thread'))
                  if tables.threads[thread].name == 'asks'}
        self.assertIn('waiting', states)
        self.assertNotIn('idle', states)


class RecordTest(unittest.TestCase):

    def setUp(self):
        self.directory = self.enterContext(os_helper.temp_dir())

    def path(self, name):
        return os.path.join(self.directory, name)

    def test_formats(self):
        with running(WORK) as program:
            for name in ('a.pb.gz', 'a.html', 'a.collapsed',
                         'a.speedscope.json'):
                path = self.path(name)
                done = command('record', '-p', program.pid, '-d', '1', '-o',
                               path)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn(f'Wrote {path}: PID {program.pid}, ',
                              done.stderr)
                self.assertIn('is as it was', done.stderr)
                self.assertGreater(os.path.getsize(path), 100)
        profile = Profile.load(self.path('a.pb.gz'))
        self.assertEqual(profile.rate_hz, attached.RATE_HZ)
        self.assertIn('compute', [row.function.qualname
                                  for row in profile.functions()])

    def test_memory(self):
        with running(MEMORY) as program:
            for name in 'a.pb.gz', 'a.html', 'a.txt':
                path = self.path(name)
                done = command('record', '-p', program.pid, '-d', '2',
                               '--alloc', '-o', path)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn(' samples, ', done.stderr)
            done = command('record', '-p', program.pid, '-d', '2',
                           '--alloc-bytes', '64K', '-o',
                           self.path('both.pb.gz'))
            self.assertEqual(done.returncode, 0, done.stderr)
        for name, period in ('a', 512 << 10), ('both', 64 << 10):
            profile = Profile.load(self.path(f'{name}.pb.gz'))
            self.assertEqual(profile.meta['alloc_bytes'], str(period))
            # 1 MB of each 20 ms is kept, and as much freed.
            kept, all = profile.total('inuse_space'), profile.total(
                'alloc_space')
            self.assertGreater(kept, 10 << 20)
            self.assertAlmostEqual(kept / all, 0.5, delta=0.15)
            self.assertIn(';', profile.meta['memory_readings'])
        self.assertGreater(profile.total('wall'), 0)
        with open(self.path('a.txt')) as file:
            self.assertIn('keep', file.read())

    def test_options_of_start(self):
        with running(WORK) as program:
            path = self.path('a.pb.gz')
            done = command('record', '-p', program.pid, '-d', '1', '--mode',
                           'cpu', '--depth', '7', '--names', 'calls',
                           '--timeline', '--rate', '77', '-o', path)
            self.assertEqual(done.returncode, 0, done.stderr)
        profile = Profile.load(path)
        self.assertEqual((profile.mode, profile.rate_hz,
                          profile.depth_frames), ('cpu', 77, 7))
        self.assertIsNotNone(profile.timeline)

    def test_process_that_ends(self):
        for how, source in [
                ('exit', 'while len(os.listdir("/proc/self/task")) < 2:\n'
                         '    sum(range(1000))\n'
                         'end = time.monotonic() + 3\n'
                         'while time.monotonic() < end: sum(range(1000))'),
                ('kill', 'while True: sum(range(1000))')]:
            with self.subTest(how), running(
                    f'import os, time\nready()\n{source}') as program:
                with subprocess.Popen(
                        [sys.executable, '-m', 'profile_sampling', 'record',
                         '-p', str(program.pid), '-d', '60', '-o',
                         self.path(how + '.pb.gz')],
                        stderr=subprocess.PIPE, text=True) as client:
                    if how == 'kill':
                        until(lambda: is_watched(program))
                        time.sleep(4)
                        program.kill()
                    _, said = client.communicate(timeout=30)
                self.assertEqual(client.returncode, 3, said)
                self.assertRegex(said, r'ended after [\d.]+ s, ' + (
                    'by signal 9' if how == 'kill' else 'with status'))
                for name in 'Slow', 'Where', 'GIL':
                    self.assertRegex(said, f'(?m)^{name} ')
                profile = Profile.load(self.path(how + '.pb.gz'))
                self.assertGreater(profile.total('wall'), 0)

    def test_interrupted(self):
        path = self.path('a.pb.gz')
        with running(WORK) as program:
            before = footprint(program.pid)
            for number, status in ((signal.SIGINT, 0),
                                   (signal.SIGTERM, -signal.SIGTERM)):
                with self.subTest(number), subprocess.Popen(
                        [sys.executable, '-m', 'profile_sampling', 'record',
                         '-p', str(program.pid), '-d', '60', '-o', path],
                        stderr=subprocess.PIPE, text=True) as client:
                    until(lambda: is_watched(program))
                    time.sleep(1.5)
                    client.send_signal(number)
                    _, said = client.communicate(timeout=30)
                    self.assertEqual(client.returncode, status, said)
                self.assertGreater(Profile.load(path).total('wall'), 0)
                os.remove(path)
                # Who comes next finds nobody here.
                self.assertEqual(footprint(program.pid), before)

    def test_nothing_recorded(self):
        with running(IDLE) as program:
            done = command('record', '-p', program.pid, '-d', '1', '-o',
                           self.path('a.pb.gz'))
        self.assertEqual(done.returncode, 1)
        self.assertIn('has run no Python', done.stderr)
        self.assertEqual(os.listdir(self.directory), [])

    def test_children(self):
        # Two from the beginning, and one that is started later.
        with running('''
import os
later = time.monotonic() + 4
for _ in range(2):
    if os.fork() == 0:
        break
else:
    ready()
    while time.monotonic() < later:
        sum(range(1000))
    os.fork()
while True:
    sum(range(1000))
    if os.getppid() == 1:
        sys.exit()
''') as program:
            path = self.path('a.pb.gz')
            done = command('record', '-p', program.pid, '--children', '-d',
                           '8', '-o', path)
            self.assertEqual(done.returncode, 0, done.stderr)
        profile = Profile.load(path)
        self.assertEqual(len({thread.process for thread in profile.threads
                              if thread.name == 'MainThread'}), 4)

    def test_stat(self):
        with running(WORK) as program:
            done = command('stat', '-p', program.pid, '-d', '1')
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn('running', done.stderr)
            self.assertEqual(command('stat', '-p', program.pid,
                                     '--alloc').returncode, 2)
            done = command('stat', '-p', program.pid, '-d', '1', '--format',
                           'json')
        said = json.loads(done.stderr)
        self.assertGreater(said['profile']['samples'], 0)
        self.assertGreater(said['user_s'], 0.1)

    def test_wrong_usage(self):
        for arguments, text in ((['script.py'], 'not both'),
                                (['--calls', 'all'], '--calls is of'),
                                (['--repeat', '2'], '--repeat is of')):
            done = command('record', '-p', 1, *arguments)
            self.assertEqual(done.returncode, 2)
            self.assertIn(text, done.stderr)


class SlicesTest(unittest.TestCase):

    def test_damaged(self):
        with running(WORK) as program:
            process = Process(program.pid)
            with watch.Watch(process, 200, alloc_bytes=64) as watched:
                self.assertTrue(watched.begin(10))
                time.sleep(0.3)
                # As slices() does, but for what becomes of them.
                watched._order(watch._SLICE)
                data = door.receive(process, watched._connection).records
                watched._unanswered = 0
                list(watched.last())
        self.assertTrue(intake.tables(slices.raw(data, 1)).total(COUNT.name))
        rng = random.Random(2)
        for _ in range(300):
            damaged = bytearray(data[:rng.randrange(len(data) + 1)])
            for _ in range(rng.randrange(1, 8)):
                if damaged:
                    damaged[rng.randrange(len(damaged))] = rng.randrange(256)
            try:
                intake.tables(slices.raw(bytes(damaged), 1))
            except (ValueError, TypeError, KeyError):
                pass


if __name__ == '__main__':
    unittest.main()
