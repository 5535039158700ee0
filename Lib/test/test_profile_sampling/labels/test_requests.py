"""How long requests take: exactly, whatever was sampled."""

import asyncio
import ctypes
import functools
import os
import signal
import sys
import tempfile
import threading
import time
import types
import unittest
from unittest import mock

import profile_sampling
from profile_sampling import Profile, labels, profile, request
from profile_sampling._data import by_task
from profile_sampling._data.by_site import Sites
from profile_sampling._data.histogram import BITS, Histogram, bucket
from profile_sampling._data.lives import Latency
from profile_sampling._formats import tables_of_tasks
from profile_sampling._formats.table import lines
from profile_sampling._recording import latencies
from profile_sampling.middleware import ASGIMiddleware, WSGIMiddleware
from test.support.script_helper import assert_python_ok

from ..support.builders import Builder, reloaded
from ..support.frozen import frozen_time
from ..support.sessions import end_session

MS = 1_000_000
# What a loaded machine may add to a sleep of a request.
SLEEP_S = 0.02


def tearDownModule():
    asyncio.set_event_loop_policy(None)     # as it was


def known(profile):
    """{(key, value): Latency} of a profile."""
    return {row.what: row for row in profile._tables.latencies}


class Timed:
    """Runs requests, and measures them beside."""

    def __init__(self):
        self.taken_ns = []

    def run(self, seconds=0.0, **labels_):
        begin_ns = time.monotonic_ns()
        with request(**labels_):
            inner_ns = time.monotonic_ns()
            time.sleep(seconds)
            inner_ns = time.monotonic_ns() - inner_ns
        self.taken_ns.append((inner_ns, time.monotonic_ns() - begin_ns))

    def check(self, case, row):
        """A block takes more than what is in it, and less than all of it."""
        inner, outer = map(sum, zip(*self.taken_ns))
        case.assertEqual(row.count, len(self.taken_ns))
        case.assertTrue(inner <= row.sum_ns <= outer, row)
        inner, outer = map(max, zip(*self.taken_ns))
        case.assertTrue(inner <= row.longest_ns <= outer, row)


class BlockTest(unittest.TestCase):

    def test_durations(self):
        fast, slow = Timed(), Timed()
        with profile() as block:
            for number in range(100):
                fast.run(0.0005 * (1 + number % 10), route='/a',
                         user=number % 2)
            slow.run(SLEEP_S, route='/b')
            with self.assertRaises(KeyError), request(route='/c'):
                raise KeyError
        rows = known(block.profile)
        fast.check(self, rows['route', '/a'])
        slow.check(self, rows['route', '/b'])
        self.assertEqual(set(rows), {
            *[('route', f'/{name}') for name in 'abc'],
            ('user', '0'), ('user', '1')})
        self.assertEqual(rows['user', '1'].count, 50)
        self.assertEqual(rows['route', '/c'].count, 1)
        row, = [row for row in block.profile.tasks_by('route')
                if row.value == '/a']
        exact = sorted([outer for _, outer in fast.taken_ns])
        for found, number in ((row.p50_ns, 49), (row.p99_ns, 98)):
            around = exact[max(number - 2, 0)], exact[min(number + 1, 99)]
            self.assertGreater(found, 0.96 * around[0])
            self.assertLess(found, 1.04 * around[1])
        self.assertLessEqual(row.p99_ns, row.longest_ns)

    def test_frozen_time(self):
        # PITFALLS L27.
        with profile() as block, frozen_time():
            with request(job='frozen'):
                time.sleep(SLEEP_S)
        row = known(block.profile)['job', 'frozen']
        self.assertGreaterEqual(row.longest_ns, SLEEP_S * 1e9)

    def test_labels_hold(self):
        with request(route='/', shard=None) as block:
            self.assertEqual(labels(), {'route': '/'})
            with self.assertRaisesRegex(RuntimeError, 'in progress'):
                block.__enter__()
        self.assertEqual(labels(), {})
        with block:
            self.assertEqual(labels(), {'route': '/'})
        with self.assertRaisesRegex(ValueError, 'task_class'):
            request(task_class='x')

    def test_asyncio_is_being_imported(self):
        # By another thread, which has only just begun.
        with mock.patch.dict(sys.modules,
                             asyncio=types.ModuleType('asyncio')):
            with request(route='/x'):
                pass

    def test_answered(self):
        with profile() as block:
            begin_ns = time.monotonic_ns()
            with request(route='/') as inner:
                inner.answered()
                until_ns = time.monotonic_ns()
                self.assertEqual(labels(), {'route': '/', 'answered': 'yes'})
                time.sleep(SLEEP_S)
                inner.answered()
            self.assertEqual(labels(), {})
        row = known(block.profile)['route', '/']
        self.assertEqual(row.count, 1)
        self.assertLessEqual(row.sum_ns, until_ns - begin_ns)

    def test_decorator(self):
        @request(job='sync')
        def function(value):
            self.assertEqual(labels(), {'job': 'sync'})
            if value:
                function(value - 1)
            return value

        @request(job='async')
        async def coroutine():
            await asyncio.sleep(SLEEP_S)
            return 7

        async def main():
            return await asyncio.gather(*[coroutine() for _ in range(3)])

        with profile() as block:
            self.assertEqual(function(2), 2)
            self.assertEqual(asyncio.run(main()), [7] * 3)
        rows = known(block.profile)
        self.assertEqual(rows['job', 'sync'].count, 3)
        row = rows['job', 'async']
        self.assertEqual(row.count, 3)
        self.assertGreater(row.sum_ns, 3 * 0.99 * SLEEP_S * 1e9)

    def test_many_values(self):
        with profile() as block:
            for number in range(1100):
                with request(number=number):
                    pass
        rows = known(block.profile)
        self.assertEqual(len(rows), 1025)
        self.assertEqual(rows['number', latencies.OTHERS].count, 76)

    def test_roots_are_classes_of_tasks(self):
        @request(job='decorated')
        async def decorated():
            await asyncio.sleep(0)

        async def plain():
            with request(job='plain'):
                await asyncio.sleep(0)
                await asyncio.create_task(inner())

        async def inner():
            with request(job='inner'):
                await asyncio.sleep(0)

        async def main():
            await asyncio.gather(plain(), decorated())

        with profile() as block:
            asyncio.run(main())
        rows = known(block.profile)
        roots = {name: rows['job', name].roots
                 for name in ('plain', 'inner', 'decorated')}
        before = (f'{__name__}.BlockTest.test_roots_are_classes_of_tasks.'
                  '<locals>.')
        self.assertEqual(roots['plain'], (before + 'plain',))
        self.assertEqual(roots['inner'], (before + 'inner',))
        if 'task_ns' in [value_type.name for value_type
                         in block.profile.value_types]:
            known_names = {row.name for row in block.profile.tasks()}
            for names in roots.values():
                self.assertLessEqual(set(names), known_names)

    def test_handlers_of_signals(self):
        # A handler ends a request wherever another one is being counted.
        def handler(signum, frame):
            with request(route='handler'):
                pass
        saved = signal.signal(signal.SIGALRM, handler)
        self.addCleanup(signal.signal, signal.SIGALRM, saved)
        done = 0
        with profile() as block:
            signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
            try:
                until = time.monotonic() + 1
                while time.monotonic() < until:
                    with request(route='main'):
                        done += 1
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
        rows = known(block.profile)
        self.assertEqual(rows['route', 'main'].count, done)
        self.assertGreater(rows['route', 'handler'].count, 50)


class SessionTest(unittest.TestCase):

    def setUp(self):
        # Tests that end their sessions by the core's own stop() leave it.
        latencies.end_session()
        self.addCleanup(end_session)

    def request(self, route):
        with request(route=route):
            pass

    def counts(self, profile):
        return {row.value: row.count for row in profile._tables.latencies}

    def test_who_gets_what(self):
        self.request('before')
        profile_sampling.start()
        self.request('one')
        with profile() as block:
            self.request('two')
        self.assertEqual(self.counts(profile_sampling.snapshot()),
                         {'one': 1, 'two': 1})
        self.assertEqual(self.counts(profile_sampling.snapshot(clear=True)),
                         {'one': 1, 'two': 1})
        self.request('two')
        self.assertEqual(self.counts(profile_sampling.stop()), {'two': 1})
        self.assertEqual(self.counts(block.profile), {'two': 1})
        self.assertFalse(latencies.is_collecting())
        self.request('after')
        with profile() as block:
            pass
        self.assertEqual(self.counts(block.profile), {})

    def test_of_the_command_line(self):
        code = ('import os, profile_sampling\n'
                'for _ in range(3):\n'
                '    with profile_sampling.request(route="/"): pass\n'
                'pid = os.fork()\n'
                'if pid: os.waitpid(pid, 0)\n'
                'else:\n'
                '    with profile_sampling.request(route="/"): pass\n')
        directory = self.enterContext(tempfile.TemporaryDirectory())
        path = os.path.join(directory, 'p.{pid}.pb.gz')
        assert_python_ok('-X', f'sampleprof=out={path},children=1', '-c',
                         code)
        with os.scandir(directory) as entries:
            counts = [self.counts(Profile.load(entry.path))
                      for entry in entries]
        self.assertEqual(sorted([count.get('/', 0) for count in counts]),
                         [1, 3])

    def test_files_and_sums(self):
        with profile() as block:
            self.request('a\tb')
            self.request('ü\n')
        loaded = reloaded(block.profile)
        self.assertEqual(known(loaded), known(block.profile))
        total = Profile.merge(loaded, block.profile)
        self.assertEqual(self.counts(total), {'a\tb': 2, 'ü\n': 2})
        part = total.filter(state='running')
        self.assertIsNone(next(iter(part.tasks_by('route')), None))


class SlowTest(unittest.TestCase):
    """What the slowest requests did, by clocks beside."""

    def of(self, block, key):
        """Return the only SlowRequestsRow, also if it was in a file."""
        row, = block.profile.slow_requests(key)
        loaded = reloaded(block.profile)
        self.assertEqual(loaded.slow_requests(key), [row])
        self.assertEqual(Profile.merge(loaded, loaded)
                         .slow_requests(key)[0].slowest.count,
                         2 * row.slowest.count)
        for part in row.slowest, row.others:
            self.assertEqual(
                part.mean_ns, part.running_ns + part.loop_wait_ns
                + part.gil_wait_ns + part.waiting_ns)
        return row

    def test_loop_wait(self):
        """One of thirty is ready while another task keeps the loop."""
        async def wait():
            with request(route='/'):
                await asyncio.sleep(0.001)

        async def hold():
            await asyncio.sleep(0)
            time.sleep(0.2)

        async def main():
            for number in range(30):
                holder = [hold()] if number == 7 else []
                await asyncio.gather(wait(), *holder)
        with profile() as block:
            asyncio.run(main())
        row = self.of(block, 'route')
        self.assertEqual((row.slowest.count, row.others.count), (1, 29))
        self.assertGreater(row.slowest.loop_wait_ns, 190 * MS)
        self.assertLess(row.slowest.running_ns, 50 * MS)
        self.assertEqual(row.slowest.gil_wait_ns, 0)
        self.assertLess(row.others.loop_wait_ns, 50 * MS)

    def test_thread(self):
        """One of ten computes in a thread, the others sleep."""
        with profile() as block:
            for number in range(10):
                with request(job='bill'):
                    if number == 3:
                        end = time.thread_time() + 0.2
                        while time.thread_time() < end:
                            pass
                    else:
                        time.sleep(0.002)
        row = self.of(block, 'job')
        self.assertEqual((row.slowest.count, row.others.count), (1, 9))
        self.assertAlmostEqual(row.slowest.running_ns, 200 * MS,
                               delta=10 * MS)
        self.assertLess(row.others.running_ns, 1 * MS)
        self.assertGreaterEqual(row.others.waiting_ns, 1 * MS)

    def test_gil_wait(self):
        """Another thread has the GIL for 0.2 seconds."""
        usleep = ctypes.PyDLL(None).usleep
        go = threading.Event()
        thread = threading.Thread(target=lambda: (go.wait(), usleep(200_000)))
        thread.start()
        with profile() as block:
            for number in range(10):
                with request(job='bill'):
                    if number == 3:
                        go.set()
                        time.sleep(0.02)
        thread.join()
        row = self.of(block, 'job')
        self.assertGreater(row.slowest.gil_wait_ns, 150 * MS)

    def test_it_ends_in_another_thread(self):
        """Then nothing is known of it but how long it took."""
        blocks = [request(job='bill') for _ in range(3)]
        with profile() as block:
            for one in blocks:
                one.__enter__()
                thread = threading.Thread(target=one.answered)
                thread.start()
                thread.join()
                one.__exit__(None, None, None)
        self.assertEqual(known(block.profile)['job', 'bill'].count, 3)
        self.assertEqual(block.profile.slow_requests('job'), [])

    def test_report(self):
        spent = (5, 99, 990, 100, 90, 0), (9, 1, 500, 20, 400, 30)
        b = Builder()
        for name, ms in ('app.hold:3 C:time.sleep', 70), ('app.f:4', 25), (
                'app.g:5', 5):
            b.sample(name, wall_ns=ms * MS, delay_ns=ms * MS)
        b.sample('app.f:1', task_ns=100 * MS, state='loop_wait')
        raw = b.raw()
        raw['latencies'] = (Latency(
            'route', '/', (), 100, 1490, 500, Histogram(
                BITS, [0] * 5 + [99] + [0] * 3 + [1]), spent),)
        tables = Profile._from_raw(raw)._tables
        table, = tables_of_tasks.slow_requests(tables, Sites(tables), 10,
                                               'route')
        self.assertEqual(table.rows, [
            ('slowest', 1, 500, 20, 400, 30, 50, '/, slowest'),
            ('others', 99, 10, 1, 1, 0, 8, '/, others')])
        # What held the loop is known of all waits, not of those of a request.
        self.assertEqual(table.notes, [
            'Waits of all tasks for their loop: 70.0 % while app.hold:3 '
            '(time.sleep) ran in it, 25.0 % while app.f:4 ran in it'])


class ThreadsTest(unittest.TestCase):

    def test_what_a_thread_was_given(self):
        """It is awaited, not the library's function that waits for it."""
        # A file of no library.
        space = {'__name__': 'app', 'sleep': time.sleep}
        exec(compile(f'def work():\n    sleep({SLEEP_S})\n', '/srv/app.py',
                     'exec'), space)

        async def main():
            with request(route='/'):
                await asyncio.to_thread(
                    functools.partial(space['work']))
        with profile() as block:
            asyncio.run(main())
        row, = [row for row in block.profile.tasks_by('route')
                if row.value == '/']
        self.assertEqual(row.awaited[0].function.name, 'app.work')
        self.assertGreater(row.awaited[0].awaiting_ns, SLEEP_S * 1e9 / 2)


class RootsTest(unittest.TestCase):
    """Which tasks are part of a request, on made-up profiles."""

    def test_spawned(self):
        b = Builder()
        root, child = b.task_class('a.root:1'), b.task_class('a.child:1')
        route = {'route': '/'}
        for stack, state, ns, number, labels_ in (
                ('a.root:2 db.get:3 [awaiting]', 'awaiting', 30, root, route),
                ('a.root:2 [loop~wait]', 'loop_wait', 4, root, route),
                ('a.root:2', 'running', 2, root, route),
                ('a.root:3 a.later:3', 'running', 100, root,
                 route | {'answered': 'yes'}),
                ('a.child:3', 'running', 300, child, route),
                ('a.child:3 [awaiting]', 'awaiting', 500, child, route),
                ('a.root:3 [awaiting]', 'awaiting', 7, root, {})):
            b.sample(stack, task_ns=ns * MS, state=state, task_class=number,
                     labels=labels_)
        tables = b.profile()._tables
        tables.latencies = (latencies._latency(
            ('route', '/'),
            [2, 36 * MS, 20 * MS, {bucket(18 * MS, BITS): 2}, {'a.root'},
             {}]),)
        row, other = by_task.rows_of_label(tables, 'route')
        self.assertEqual((row.value, row.count, row.mean_ns, row.longest_ns),
                         ('/', 2, 18 * MS, 20 * MS))
        # The states of a request are what it took.
        self.assertEqual(row.life_ns, row.count * row.mean_ns)
        self.assertEqual((row.running_ns, row.loop_wait_ns, row.awaiting_ns),
                         (2 * MS, 4 * MS, 30 * MS))
        self.assertEqual(row.spawned_ns, 900 * MS)
        self.assertEqual([awaited.function.name for awaited in row.awaited],
                         ['db.get'])
        self.assertEqual((other.value, other.awaiting_ns, other.count),
                         (None, 7 * MS, None))
        table = tables_of_tasks.by_label(tables, 9, 'route')
        _, head, shown, *_, last = lines(table, 100)
        self.assertRegex(head, 'count  running  loop wait  awaiting  spawned')
        self.assertEqual(shown.split()[3:], [
            '2', '1.0ms', '2.0ms', '15.0ms', '450.0ms', '/'])
        self.assertEqual(last, 'Tasks in no request: 7.0ms')


class MiddlewareTest(unittest.TestCase):

    def setUp(self):
        latencies.end_session()

    def scope(self):
        return {'type': 'http', 'method': 'GET', 'path': '/'}

    def run_asgi(self, app, n=1):
        """Return the Latency of requests and how long answers took."""
        taken_ns = []

        async def one():
            begin_ns = time.monotonic_ns()

            async def send(message):
                if message['type'] == 'http.response.body' and (
                        not message.get('more_body')):
                    taken_ns.append(time.monotonic_ns() - begin_ns)
            await ASGIMiddleware(app, lambda scope: '/')(
                self.scope(), None, send)

        async def main():
            await asyncio.gather(*[
                asyncio.create_task(one()) for _ in range(n)])

        with profile() as block:
            asyncio.run(main())
        return known(block.profile)['route', 'GET /'], taken_ns

    def test_asgi(self):
        async def later():
            await asyncio.sleep(3 * SLEEP_S)

        async def app(scope, receive, send):
            await send({'type': 'http.response.start', 'status': 200})
            await asyncio.sleep(SLEEP_S)
            task = asyncio.create_task(later())
            await send({'type': 'http.response.body', 'more_body': True})
            await send({'type': 'http.response.body'})
            # What Starlette runs in the background.
            self.assertEqual(labels()['answered'], 'yes')
            await task

        row, taken_ns = self.run_asgi(app, 10)
        self.assertEqual(row.count, 10)
        self.assertAlmostEqual(row.sum_ns / sum(taken_ns), 1, delta=0.03)
        self.assertEqual(row.roots, (f'{__name__}.MiddlewareTest.run_asgi.'
                                     '<locals>.one',))

    def test_asgi_that_nobody_measures(self):
        seen = []

        async def send(message):
            pass

        async def app(scope, receive, given):
            seen.append(given)

        asyncio.run(ASGIMiddleware(app, lambda scope: '/')(
            self.scope(), None, send))
        self.assertEqual(seen, [send])

    def wsgi(self, app):
        environ = {'REQUEST_METHOD': 'GET', 'PATH_INFO': '/'}
        return WSGIMiddleware(app, lambda environ: '/')(environ, None)

    def test_wsgi(self):
        def listed(environ, start_response):
            time.sleep(SLEEP_S)
            return [b'']

        def streamed(environ, start_response):
            for _ in range(3):
                time.sleep(SLEEP_S)
                yield b''

        def failing(environ, start_response):
            raise KeyError

        # What is read of an answer, and how long that takes.
        for app, read, sleeps in ((listed, list, 1), (streamed, list, 3),
                                  (streamed, lambda body: next(iter(body)),
                                   1)):
            with self.subTest(app.__name__, sleeps=sleeps), \
                    profile() as block:
                begin_ns = time.monotonic_ns()
                body = self.wsgi(app)
                read(body)
                getattr(body, 'close', int)()
                taken_ns = time.monotonic_ns() - begin_ns
            row = known(block.profile)['route', 'GET /']
            self.assertEqual(row.count, 1)
            self.assertGreater(row.sum_ns, 0.99 * sleeps * SLEEP_S * 1e9)
            self.assertLessEqual(row.sum_ns, taken_ns)
        with profile() as block, self.assertRaises(KeyError):
            self.wsgi(failing)
        self.assertEqual(known(block.profile)['route', 'GET /'].count, 1)
