"""What dump says of programs that work, wait and hang."""

import json
import os
import time
import unittest
from test.support import import_helper
from unittest import mock

from profile_sampling._reach import door, look, processes, records, text
from profile_sampling._reach.processes import Process
from profile_sampling._reach.sources import Sources

from ..support.sessions import _profile
from ..support.targets import (
    asleep, command, running, running_with_child, until)

LOCKS = '''
BOOK, PAGE = threading.RLock(), threading.Lock()
both = threading.Barrier(2)
def transfer():
    with BOOK:
        both.wait()
        with PAGE:
            pass
def close_day():
    with PAGE:
        both.wait()
        with BOOK:
            pass
thread(transfer, "one")
thread(close_day, "two")
ready()
time.sleep(0.3)
with BOOK:
    pass
'''


def look_at(program):
    return look.look(Process(program.pid))


def state_of_main(program):
    """Return what the main thread does for a while: a signal that comes as it
    is about to sleep would wake it."""
    states = set()
    for _ in range(10):
        states.add(Process(program.pid).state)
        time.sleep(0.01)
    return states.pop() if len(states) == 1 else ''


def by_name(found):
    return {thread.name: thread for thread in found.threads}


class LabelsTest(unittest.TestCase):

    def test_routes_of_threads(self):
        with running('''
import profile_sampling
def serve(route):
    with profile_sampling.label(route=route, user="x"):
        while True:
            time.sleep(60)
for name in "first", "second":
    thread(lambda: serve("GET /é"), name)
ready()
sys.stdin.read()
''') as program:
            asleep(program)
            found = look_at(program)
            threads = by_name(found)
            self.assertEqual(threads['first'].labels,
                             {'route': 'GET /é', 'user': 'x'})
            self.assertIsNone(threads['main' if 'main' in threads
                                      else 'MainThread'].route)
            said = command('dump', '-p', program.pid)
            self.assertRegex(said.stdout, r"(?m)^w .*(first|second), \w+   "
                             r"GET /é$")
            self.assertRegex(said.stdout,
                             '(?m)^Slow +GET /é: 2 threads in it')
            said = json.loads(command('dump', '-p', program.pid,
                                      '--json').stdout)
            self.assertEqual([thread.get('route') for thread
                              in said['threads']].count('GET /é'), 2)


class RequestsTest(unittest.TestCase):

    def test_under_way(self):
        with running('''
from profile_sampling.middleware import WSGIMiddleware
def slow(environ, start):
    time.sleep(1000 / len(environ["PATH_INFO"]))
app = WSGIMiddleware(slow, route=lambda environ: environ["PATH_INFO"])
def serve(path):
    app({"REQUEST_METHOD": "GET", "PATH_INFO": path}, None)
thread(lambda: serve("/old"), "first")
time.sleep(0.5)
thread(lambda: serve("/new"), "second")
try:
    app({"REQUEST_METHOD": "GET", "PATH_INFO": ""}, None)
except ZeroDivisionError:
    pass        # it has ended
ready()
sys.stdin.read()
''') as program:
            asleep(program)
            first = look_at(program)
            said = text.render(first, Sources(first.process), width=120)
            time.sleep(1)
            found = look_at(program)
            done = command('dump', '-p', program.pid, '--json')
        self.assertEqual([request.route for request in found.requests],
                         ['GET /old', 'GET /new'])
        self.assertEqual([request.thread.name for request in found.requests],
                         ['first', 'second'])
        for before, after in zip(first.requests, found.requests):
            self.assertGreater(after.age_s, before.age_s + 0.9)
        self.assertGreater(found.requests[0].age_s,
                           found.requests[1].age_s + 0.4)
        self.assertRegex(said, r'first   GET /old, under way [\d.]+ m?s\n')
        self.assertRegex(look.answers(found)['slow'].forms[0],
                         r'^GET /old: 1 under way, for [\d.]+ s$')
        requests = json.loads(done.stdout)['requests']
        self.assertEqual(requests[0]['route'], 'GET /old')
        self.assertGreater(requests[0]['under_way_s'], 1)

    def test_of_tasks(self):
        with running('''
import asyncio
from profile_sampling.middleware import ASGIMiddleware
async def app(scope, receive, send):
    await asyncio.sleep(1000)
app = ASGIMiddleware(app, route=lambda scope: scope["path"])
async def main():
    tasks = [asyncio.create_task(app(
        {"type": "http", "method": "GET", "path": "/x"}, None, None))
        for _ in range(3)]
    await asyncio.sleep(0.1)
    tasks.pop().cancel()
    await asyncio.sleep(0.1)
    ready()
    await asyncio.gather(*tasks)
asyncio.run(main())
''') as program:
            found = until(lambda: (f := look_at(program)).tasks and f)
            said = text.render(found, Sources(found.process), width=120)
        self.assertEqual([request.task.lines[-1].function.qualname
                          for request in found.requests], ['sleep'] * 2)
        self.assertIn('3: 2 of requests', said)
        self.assertRegex(said, r'(?m)^   2  GET /x, ')

    def test_child_of_fork_has_none_of_its_parents(self):
        with running_with_child('''
from profile_sampling import request
with request(route="/x"):
    fork()
''') as (program, child):
            asleep(program)
            self.assertEqual(len(look_at(program).requests), 1)
            self.assertEqual(look.look(Process(child)).requests, [])


class InterpretersTest(unittest.TestCase):

    def test_those_that_share_the_gil(self):
        import_helper.import_module('_interpreters')
        source = '''
import _interpreters
def run(config, name):
    id = _interpreters.create(config)
    _interpreters.run_string(id, "import time\\ntime.sleep(1000)")
thread(lambda: run("{}", "x"), "Owner")
while len(_interpreters.list_all()) < 2:
    time.sleep(0.01)
ready()
sys.stdin.read()
'''
        with running(source.format('legacy')) as program:
            asleep(program)
            found = look_at(program)
        self.assertEqual(found.num_other_gils, 0)
        self.assertTrue(any(thread.name.endswith('interpreter 1')
                            for thread in found.threads), by_name(found))
        with running(source.format('isolated')) as program:
            asleep(program)
            found = look_at(program)
            said = text.render(found, Sources(found.process))
        self.assertEqual(found.num_other_gils, 1)
        self.assertIn('1 interpreter with a GIL of its own', said)


# One thread sleeps again and again, another one all the time.
NAPS = '''
def nap():
    while True:
        time.sleep(0.005)
thread(nap, "naps")
thread(lambda: time.sleep(1000), "sleeps")
ready()
sys.stdin.read()
'''


class StacksTest(unittest.TestCase):

    def test_c_functions_lines_and_peers(self):
        def received(threads):
            # What it waits for until the call is the GIL.
            return len(threads) == 3 and threads if all([
                threads[name].state == look.WAITING
                for name in ('Receiver', 'Worker') if name in threads]) else {}
        with running('''
import queue, socket
def receive():
    server = socket.create_server(("127.0.0.1", 0))
    client = socket.create_connection(server.getsockname())
    print(client.getpeername()[1], flush=True)
    client.recv(1)
def work():
    while True:
        q.get()
q = queue.Queue()
ready()
thread(receive, "Receiver")
thread(work, "Worker")
def compute():
    while True:
        sum(range(10000))
compute()
''') as program:
            port = int(program.stdout.readline())
            threads = until(lambda: received(by_name(look_at(program))))
        self.assertEqual(sorted(threads), ['Receiver', 'Worker', 'main'])
        receiver = threads['Receiver']
        self.assertEqual(receiver.state, look.WAITING)
        self.assertEqual(receiver.callee.name, '_socket.socket.recv')
        self.assertEqual(receiver.waits_for.peer, f'127.0.0.1:{port}')
        self.assertEqual(receiver.mine.function.qualname, 'receive')
        self.assertTrue(threads['Worker'].is_idle)
        main = threads['main']
        # It may have given the GIL up, and not have asked for it yet.
        self.assertIn(main.state, (look.RUNNING, look.NATIVE, look.GIL_WAIT))
        self.assertEqual(main.mine.function.qualname, 'compute')

    def test_since(self):
        with running('''
def wait():
    threading.Event().wait()
thread(wait, "W")
ready()
sys.stdin.read()
''') as program:
            asleep(program)
            first = by_name(look_at(program))['W']
            if first.since_s is None:
                self.skipTest('the kernel does not say when a thread ran')
            # It may not have slept all the while.
            second = until(lambda: next(
                (its for its in look_at(program).threads
                 if its.name == 'W' and its.since_s is not None), None))
        # The kernel's clock goes on once a tick of its timer.
        self.assertGreater(second.since_s, first.since_s - 0.011)
        self.assertLess(second.since_s, 30)

    def test_since_of_what_has_not_run_yet(self):
        # The kernel says 0, which was long ago.
        notes = 'se.exec_start : 0.000000\nnr_switches : 0\n'
        with mock.patch.object(processes, '_read', lambda path: notes):
            self.assertIsNone(processes._ran('self'))

    def test_since_of_what_has_run_while_it_was_asked(self):
        with running(NAPS) as program:
            ask = door.ask

            def ask_late(*args, **options):
                time.sleep(0.5)
                return ask(*args, **options)
            look_at(program)
            with mock.patch.object(door, 'ask', ask_late):
                threads = by_name(look_at(program))
        self.assertIsNone(threads['naps'].since_s)
        if threads['main'].since_s is not None:
            self.assertIsNotNone(threads['sleeps'].since_s)

    def test_native_code_that_answers(self):
        # A thread that runs is asked first.
        with running('''
import hashlib
digest = hashlib.pbkdf2_hmac
thread(lambda: digest("sha256", b"", b"", 1 << 30), "digest")
ready()
sys.stdin.read()
''') as program:
            until(lambda: by_name(look_at(program))['digest'].callee)
            for _ in range(5):
                thread = by_name(look_at(program))['digest']
                self.assertEqual(thread.state, 'native')
                self.assertIsNone(thread.waits_for)

    def test_main_thread_that_waits_for_others(self):
        with running('''
def serve():
    while True:
        time.sleep(0.02)
thread(serve, "one")
last = thread(serve, "two")
ready()
last.join()
''') as program:
            time.sleep(1.5)
            with mock.patch.object(look, '_SLOW_S', 1):
                slow = look.answers(look_at(program))['slow']
        self.assertEqual(slow.forms[0], 'serve (<string>): 2 threads in it; '
                         'requests are not known')

    def test_deep_stack_is_cut_in_the_middle(self):
        with running('''
def down(n):
    if n:
        return down(n - 1)
    time.sleep(1000)
sys.setrecursionlimit(5000)
thread(lambda: down(2000), "deep")
ready()
sys.stdin.read()
''') as program:
            asleep(program)
            lines = by_name(look_at(program))['deep'].lines
        left_out = [line.count for line in lines
                    if isinstance(line, records.LeftOut)]
        self.assertEqual(len(left_out), 1)
        self.assertEqual(lines[-1].function.qualname, 'Thread._bootstrap')
        self.assertEqual(sum(left_out) + sum(
            isinstance(line, look.Line) and line.function.kind == 'python'
            for line in lines), 2001 + 4)

    def test_many_threads(self):
        with running('''
for number in range(150):
    thread(lambda: time.sleep(1000), f"T{number}")
ready()
time.sleep(1000)
''') as program:
            found = look_at(program)
            self.assertEqual(len(found.threads), 151)
            said = text.render(found, Sources(found.process), width=80)
        self.assertIn('and 146 more', said)
        self.assertLess(len(said.splitlines()), 30)

    def test_names_that_are_no_ascii(self):
        with running('''
def größe():
    time.sleep(1000)
thread(größe, "Fäden \\x1b[31m")
ready()
größe()
''') as program:
            asleep(program)
            found = look_at(program)
            said = text.render(found, Sources(found.process))
        self.assertIn('größe', said)
        self.assertNotIn('\x1b', said)


class HangTest(unittest.TestCase):

    def check(self, source, state, callee):
        with running('''
def other():
    while True:
        time.sleep(0.001)
thread(other, "other")
ready()
''' + source) as program:
            if state == look.ASLEEP:
                until(lambda: state_of_main(program) == 'S')
            found = until(lambda: (f := look_at(program)).is_stuck and f)
            said = text.render(found, Sources(found.process), width=120)
            done = command('dump', '-p', program.pid, '--json')
        self.assertEqual(found.holder.name, 'main')
        self.assertEqual(found.holder.state, state)
        self.assertEqual(found.holder.callee.qualname, callee)
        self.assertEqual([t.name for t in found.waiters], ['other'])
        self.assertTrue(found.holder.is_sure)
        self.assertRegex(said, r'Slow   everything: no other thread has run '
                               r'Python for \d+\.\d s')
        self.assertIn('runs no Python now', said)
        self.assertIn('Threads  2: 1 holds the GIL, 1 waits for it\n', said)
        answers = json.loads(done.stdout)['answers']
        self.assertEqual(answers['slow']['kind'], 'all')
        self.assertEqual(answers['gil']['waiters'], 1)

    def test_c_function_that_computes_with_the_gil(self):
        self.check('import re; re.match(r"(a+)+$", "a" * 40 + "b")',
                   look.RUNNING, 'Pattern.match')

    def test_c_function_that_sleeps_with_the_gil(self):
        # It is not woken: sleep() would return.
        self.check('import ctypes; ctypes.PyDLL(None).sleep(1000)',
                   look.ASLEEP, 'sleep')

    def test_deadlock(self):
        with running(LOCKS) as program:
            found = until(lambda: (f := look_at(program)).circles and f)
            said = text.render(found, Sources(found.process))
        circle, = found.circles
        self.assertEqual({thread.name for thread in circle}, {'one', 'two'})
        self.assertTrue(look.answers(found)['slow'].forms[0].startswith(
            'deadlock: 2 threads can never go on'))
        self.assertRegex(said, r'Circle   \w+ has [AB], wants [AB] at')

    def test_owner_that_is_not_known_makes_no_circle(self):
        # acquire() leaves no trace on a stack.
        source = LOCKS.replace('with PAGE:\n        both', 'if PAGE.acquire()'
                               ':\n        both')
        with running(source) as program:
            until(lambda: any(thread.wants for thread
                              in look_at(program).threads))
            self.assertEqual(look_at(program).circles, [])


class TasksTest(unittest.TestCase):

    def test_await_chains(self):
        with running('''
import asyncio
async def inner():
    await asyncio.sleep(1000)
async def outer():
    await inner()
async def main():
    first = asyncio.create_task(outer(), name="first")
    second = asyncio.create_task(waits(first), name="second")
    await asyncio.sleep(0.01)
    ready()
    await asyncio.sleep(1000)
async def waits(task):
    await task
asyncio.run(main())
''') as program:
            found = until(lambda: (f := look_at(program)).tasks and f)
            said = text.render(found, Sources(found.process), width=120)
        tasks = {task.name: task for task in found.tasks}
        self.assertEqual(len(tasks), 3)
        self.assertEqual(
            [line.function.qualname for line in tasks['first'].lines],
            ['outer', 'inner', 'sleep'])
        self.assertIs(tasks['second'].waits_for, tasks['first'])
        self.assertIn('Tasks  3', said)

    def test_loop_that_computes(self):
        with running('''
import asyncio
async def rest():
    await asyncio.sleep(1000)
async def main():
    task = asyncio.create_task(rest(), name="rest")
    await asyncio.sleep(0.01)
    ready()
    while True:
        sum(range(1000))
asyncio.run(main())
''') as program:
            found = look_at(program)
        self.assertEqual({task.name: task.state for task in found.tasks},
                         {'rest': 'awaiting', 'Task-1': 'running'})


class CommandTest(unittest.TestCase):

    def test_json_adds_up_and_file(self):
        import os
        from test.support import os_helper
        with running(LOCKS) as program, os_helper.temp_dir() as directory:
            path = os.path.join(directory, 'a.json')
            done = command('dump', '-p', program.pid, '-o', path)
            self.assertEqual((done.returncode, done.stdout), (0, ''))
            self.assertRegex(done.stderr, '^Slow   ')
            with open(path) as file:
                said = json.load(file)
            again = command('dump', '-p', program.pid, '--again', '0.1')
        self.assertEqual(said['format'], 'sampleprof-dump')
        self.assertEqual(said['process']['pid'], program.pid)
        self.assertEqual(len(said['threads']), 3)
        ids = {thread['id'] for thread in said['threads']}
        self.assertTrue(set(sum(said['circles'], [])) <= ids)
        self.assertIn('same place, same call', again.stdout)

    def test_another_call_of_the_same_place(self):
        with running(NAPS) as program:
            asleep(program)
            said = command('dump', '-p', program.pid, '--again', '0.5').stdout
        self.assertRegex(said, '(?m)naps   (same place|moved)$')
        self.assertRegex(said, '(?m)sleeps   same place, same call$')

    def test_no_line_is_too_wide(self):
        with running(LOCKS) as program:
            found = until(lambda: (f := look_at(program)).circles and f)
            sources = Sources(found.process)
            for width in range(40, 200, 7):
                lines = text.render(found, sources, width=width).splitlines()
                # Of the rest, what names things is never cut.
                head, end = lines[:4], lines[-4:]
                self.assertLessEqual(max(map(len, [*head, *end])), width)

    def test_by_name(self):
        with running('''
name = "unmistakable-program"
ready()
sys.stdin.read()
''') as program:
            done = command('dump', 'unmistakable-program')
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(f'PID {program.pid}', done.stdout)


class RecordsTest(unittest.TestCase):
    """The process may be anybody's: what it says is not believed."""

    def test_damaged_records(self):
        import random
        with running(LOCKS) as program:
            from profile_sampling._reach import door
            process = Process(program.pid)
            data = door.ask(process, door.DUMP).records
        rng = random.Random(1)
        self.assertGreater(len(records.read(data).threads), 0)
        for _ in range(3000):
            damaged = bytearray(data[:rng.randrange(len(data) + 1)])
            for _ in range(rng.randrange(1, 8)):
                if damaged:
                    damaged[rng.randrange(len(damaged))] = rng.randrange(256)
            try:
                records.read(bytes(damaged))
            except ValueError:
                pass


if __name__ == '__main__':
    unittest.main()
