"""Latencies of a real server's routes, against what a client measures."""

import asyncio
import http.client
import time
import unittest

from profile_sampling import profile
from profile_sampling._data.histogram import BITS
from profile_sampling.middleware import ASGIMiddleware

from ..support.packages import contained
from .test_web_frameworks import fastapi, serving_asgi, uvicorn

with contained():
    try:
        import starlette.background
        import starlette.responses
    except ImportError:
        pass

N_REQUESTS = 30
NAP_S, LATER_S = 0.05, 0.03
# Of a mean, as a share; percentiles are in buckets in addition.
TOLERANCE, SHARE = 0.03, 0.9
# One of so many requests is slow: the slow ones are twice as many as are above
# the 99th percentile, so that it is the shortest of the upper half of them.
N_UNEVEN, ONE_SLOW_OF = 400, 50


def tearDownModule():
    asyncio.set_event_loop_policy(None)     # as it was


def make_app():
    app = fastapi.FastAPI()

    async def later():
        await asyncio.sleep(LATER_S)

    @app.get('/nothing')
    async def nothing():
        return {}

    @app.get('/nap/{n}')
    async def nap(n: int):
        await asyncio.sleep(NAP_S)
        return {}

    @app.get('/uneven/{n}')
    async def uneven(n: int):
        await asyncio.sleep(NAP_S if n % ONE_SLOW_OF == 0 else 0)
        return {}

    @app.get('/later')
    async def background():
        await asyncio.sleep(NAP_S)
        task = asyncio.create_task(later())
        tasks = starlette.background.BackgroundTask(later)
        response = starlette.responses.JSONResponse({}, background=tasks)
        response.task = task            # so that it is kept alive
        return response
    return app


def ask(port, paths):
    """Return {path: sorted nanoseconds of its requests}."""
    taken_ns = {path: [] for path in paths}
    for _ in range(N_REQUESTS):
        for path in paths:
            taken_ns[path].append(ask_one(port, path))
            time.sleep(LATER_S)
    return {path: sorted(numbers) for path, numbers in taken_ns.items()}


def ask_one(port, path):
    """Return how many nanoseconds a request takes."""
    connection = http.client.HTTPConnection('127.0.0.1', port)
    connection.connect()
    begin_ns = time.monotonic_ns()
    connection.request('GET', path)
    connection.getresponse().read()
    taken_ns = time.monotonic_ns() - begin_ns
    connection.close()
    return taken_ns


def timed(app, taken_ns):
    """Return an ASGI application that appends how long each answer took."""
    async def application(scope, receive, send):
        begin_ns = time.monotonic_ns()

        async def send_and_look(message):
            await send(message)
            if (message['type'] == 'http.response.body'
                    and not message.get('more_body')):
                taken_ns.append(time.monotonic_ns() - begin_ns)
        await app(scope, receive, send_and_look)
    return application


def mean(numbers):
    return sum(numbers) / len(numbers)


@unittest.skipUnless(fastapi and uvicorn,
                     'the fastapi or uvicorn package is not installed')
class LatencyTest(unittest.TestCase):

    def check(self, loop):
        with (profile() as block,
              serving_asgi(ASGIMiddleware(make_app()), loop) as port):
            ask(port, ['/nothing'])
            taken_ns = ask(port, ['/nothing', '/nap/7', '/later'])
        rows = {row.value: row for row in block.profile.tasks_by('route')}
        network_ns = (mean(taken_ns['/nothing'])
                      - rows['GET /nothing'].mean_ns)
        self.assertGreater(network_ns, 0)
        for path, route in (('/nap/7', 'GET /nap/{n}'),
                            ('/later', 'GET /later')):
            row, its_ns = rows[route], taken_ns[path]
            self.assertEqual(row.count, N_REQUESTS)
            self.assertAlmostEqual(
                row.mean_ns / (mean(its_ns) - network_ns), 1,
                delta=TOLERANCE)
            # Of so few the 99th percentile is what happened once.
            [times] = [latency.times for latency
                       in block.profile._tables.latencies
                       if latency.value == route]
            self.assertAlmostEqual(
                times.quantile(SHARE)
                / (its_ns[round(SHARE * N_REQUESTS) - 1] - network_ns), 1,
                delta=TOLERANCE + 2 ** -times.bits)
            if 'task_ns' in [value_type.name for value_type
                             in block.profile.value_types]:
                # What its task did is what it took, but for the lookup of
                # its route.
                self.assertAlmostEqual(
                    row.life_ns / row.count / row.mean_ns, 1,
                    delta=TOLERANCE)
                self.assertEqual(row.awaited[0].function.qualname, 'sleep')
        if 'task_ns' in [value_type.name for value_type
                         in block.profile.value_types]:
            # Both are there, beside the latency.
            self.assertAlmostEqual(
                rows['GET /later'].spawned_ns / N_REQUESTS / 1e9,
                2 * LATER_S, delta=0.3 * LATER_S)
            self.assertLess(rows['GET /nap/{n}'].spawned_ns, 1_000_000_000)

    def test_99th_percentile(self):
        """Of a route that is slow at times: the one of those durations that
        are read around the middleware, to within a bucket, which is a 32nd of
        an octave, and what is between the readings."""
        taken_ns = []
        with (profile() as block,
              serving_asgi(timed(ASGIMiddleware(make_app()), taken_ns)
                           ) as port):
            for n in range(N_UNEVEN):
                ask_one(port, f'/uneven/{n}')
        [row] = [row for row in block.profile.tasks_by('route')
                 if row.value == 'GET /uneven/{n}']
        self.assertEqual(row.count, len(taken_ns))
        taken_ns.sort()
        slack = 2 ** -BITS + TOLERANCE
        for found_ns, share in (row.p50_ns, 0.5), (row.p99_ns, 0.99):
            rank = round(share * N_UNEVEN)
            self.assertGreater(found_ns, (1 - slack) * taken_ns[rank - 2])
            self.assertLess(found_ns, (1 + slack) * taken_ns[rank])
        # One that napped, whatever the others took.
        self.assertGreater(row.p99_ns, (1 - 2 ** -BITS) * NAP_S * 1e9)

    def test_asyncio(self):
        self.check('asyncio')
