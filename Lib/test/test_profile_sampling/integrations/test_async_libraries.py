"""Real libraries of asyncio: a server and its client, a framework's
background tasks, a database.

What is expected is what the program measures itself, in the same loop: a
latency lies between a reading within the block and one around it, however busy
the machine is.
"""

import asyncio
import contextlib
import importlib.util
import pkgutil
import threading
import time
import unittest
from collections import Counter

from profile_sampling import profile, request
from profile_sampling._data import idle
from profile_sampling._data.by_site import Sites
from profile_sampling._data.values import STATES

from ..support.packages import contained, optional
from ..support.sessions import SessionTest
from ..support.work import spin

with contained():
    try:
        import aiohttp
        import aiohttp.web
    except ImportError:
        aiohttp = None
aiosqlite = optional('aiosqlite')

N_REQUESTS = 20
NAP_S, SPIN_S = 0.02, 0.005
# What a request's task ran is its share of the samples of all such tasks: so
# much of a latency the states may be off, where it waits and where it runs.
WAITING, RUNNING = 0.1, 0.3


class Measured:
    """What the program measures: {name: ns}."""

    def __init__(self):
        self.ns = Counter()

    @contextlib.contextmanager
    def __call__(self, name):
        begin_ns = time.monotonic_ns()
        try:
            yield
        finally:
            self.ns[name] += time.monotonic_ns() - begin_ns


def callees(run, qualname):
    """What a function was in that is not Python: idle, native and waiting."""
    sites = Sites(run.profile._tables)
    return tuple([{callee.name for row in rows
                   if row.function.qualname == qualname
                   and row.sums.by_state[STATES.index(state)]
                   for callee, _ in row.callees}
                  for rows, state in ((sites.idle_rows, 'idle'),
                                      (sites.rows, 'native'),
                                      (sites.rows, 'waiting'))])


class LibraryTest(SessionTest):

    def setUp(self):
        super().setUp()
        self.measured = Measured()

    @contextlib.contextmanager
    def request(self, name, **labels):
        """A request(), measured within and around."""
        with (self.measured(f'around {name}'), request(**labels),
              self.measured(f'within {name}')):
            yield

    def check_request(self, row, name, slack):
        """Its mean, and its states, which are all of it."""
        ns = self.measured.ns
        self.assertEqual(row.count, N_REQUESTS)
        latency_ns = row.mean_ns * row.count
        # The mean is rounded.
        self.assertGreaterEqual(latency_ns + row.count, ns[f'within {name}'])
        self.assertLessEqual(latency_ns - row.count, ns[f'around {name}'])
        self.assertAlmostEqual(row.life_ns / latency_ns, 1, delta=slack)
        self.assertEqual(row.spawned_ns, 0)

    def check_waits(self, row, name):
        """It waits in what is measured there, but for its own steps."""
        waits_ns = row.awaiting_ns + row.loop_wait_ns
        self.assertGreater(waits_ns, 0.8 * self.measured.ns[name])
        self.assertLess(waits_ns, row.life_ns + 1)

    def rows(self, run, label='route'):
        return {row.value: row for row in run.profile.tasks_by(label)}


@contextlib.contextmanager
def loop_in_thread():
    """A loop of its own; gives a function that runs a coroutine there."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield lambda coro: asyncio.run_coroutine_threadsafe(
            coro, loop).result()
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@unittest.skipUnless(aiohttp, 'the aiohttp package is not installed')
class AiohttpTest(LibraryTest):

    def make_app(self):
        measured = self.measured

        async def nap(_):
            with measured('nap'):
                await asyncio.sleep(NAP_S)
            return aiohttp.web.Response()

        async def work(_):
            with measured('work'):
                spin(SPIN_S)
            return aiohttp.web.Response()

        @aiohttp.web.middleware
        async def labelled(message, handler):
            resource = message.match_info.route.resource
            name = f'{message.method} {resource.canonical}'
            with self.request(name, route=name):
                return await handler(message)

        app = aiohttp.web.Application(middlewares=[labelled])
        app.router.add_get('/nap/{n}', nap)
        app.router.add_get('/work', work)
        return app

    async def serve(self):
        runner = aiohttp.web.AppRunner(self.make_app(), access_log=None)
        await runner.setup()
        site = aiohttp.web.TCPSite(runner, '127.0.0.1', 0)
        await site.start()
        return runner, runner.addresses[0][1]

    async def ask(self, port):
        async with aiohttp.ClientSession() as session:
            for _ in range(N_REQUESTS):
                for path in 'nap/7', 'work':
                    url = f'http://127.0.0.1:{port}/{path}'
                    name = f'asks {path}'
                    with self.request(name, call=name):
                        async with session.get(url) as response:
                            await response.read()

    def test_server_and_client(self):
        self.measured = Measured()
        with profile() as run, loop_in_thread() as call:
            runner, port = call(self.serve())
            asyncio.run(self.ask(port))
            call(runner.cleanup())
        routes, calls = self.rows(run), self.rows(run, 'call')
        self.check_request(routes['GET /nap/{n}'], 'GET /nap/{n}', WAITING)
        self.check_request(routes['GET /work'], 'GET /work', RUNNING)
        naps = routes['GET /nap/{n}']
        self.check_waits(naps, 'nap')
        self.assertEqual(naps.awaited[0].function.qualname, 'sleep')
        self.assertEqual(routes['GET /work'].awaiting_ns, 0)
        for path in 'nap/7', 'work':
            self.check_request(calls[f'asks {path}'], f'asks {path}', RUNNING)
        # The client awaits what the server does.
        self.assertGreater(calls['asks nap/7'].awaiting_ns,
                           0.8 * self.measured.ns['nap'])
        self.assertIn(
            'ClientResponse.start',
            [frame.function.qualname for row in run.profile.samples
             if row.state == 'awaiting'
             and row.labels.get('call') == 'asks nap/7'
             for frame in row.stack])


@unittest.skipUnless(aiosqlite, 'the aiosqlite package is not installed')
class DatabaseTest(LibraryTest):

    QUERY = ('with recursive numbers(n) as (select 1 union all '
             'select n + 1 from numbers where n < 100000) '
             'select count(*) from numbers')

    async def query(self, pause_s=0):
        async with aiosqlite.connect(':memory:') as database:
            for _ in range(N_REQUESTS):
                with self.request('query', query='numbers'):
                    async with database.execute(self.QUERY) as cursor:
                        [[number]] = await cursor.fetchall()
                await asyncio.sleep(pause_s)
        self.assertEqual(number, 100_000)

    def test_the_query_is_what_is_awaited(self):
        self.measured = Measured()
        with profile() as run:
            asyncio.run(self.query())
        row = self.rows(run, 'query')['numbers']
        self.check_request(row, 'query', WAITING)
        awaited = row.awaited[0]
        self.assertEqual(awaited.function.qualname, 'Connection._execute')
        self.assertGreater(awaited.awaiting_ns, 0.9 * row.awaiting_ns)
        # Behind it, the coroutines that the program wrote.
        stacks = [[frame.function.qualname for frame in sample.stack]
                  for sample in run.profile.samples
                  if sample.state == 'awaiting'
                  and sample.labels.get('query') == 'numbers'
                  and sample.task_ns]
        self.assertTrue(stacks)
        for stack in stacks:
            self.assertTrue(any(name.endswith('DatabaseTest.query')
                                for name in stack), stack)

    def test_its_thread_is_idle_between_queries(self):
        with profile() as run:
            # Nobody is idle in less than a second.
            asyncio.run(self.query(pause_s=1.5 / N_REQUESTS))
        idle, native, waiting = callees(run, '_connection_worker_thread')
        self.assertEqual(idle, {'_queue.SimpleQueue.get'})
        self.assertIn('sqlite3.Connection.execute', native)
        self.assertNotIn('_queue.SimpleQueue.get', waiting)


class IdleTest(unittest.TestCase):

    def test_functions_that_wait_for_something_to_do(self):
        """They are there, under the names that are looked for."""
        for package, name in (
                ('gunicorn', 'gunicorn.arbiter:Arbiter.wait_for_signals'),
                ('gunicorn', 'gunicorn.workers.gthread:ThreadWorker.'
                             'wait_for_and_dispatch_events'),
                ('uvicorn', 'uvicorn.supervisors.multiprocess:'
                            'Multiprocess.run'),
                ('uvicorn', 'uvicorn.supervisors.multiprocess:Process.pong')):
            if importlib.util.find_spec(package) is None:
                continue
            with self.subTest(name), contained():
                self.assertTrue(pkgutil.resolve_name(name))
                self.assertIn(name.replace(':', '.'), idle._LOOPS)
