"""Planted leaks, each found by the commands of the how-to page."""

import re
import subprocess
import sys
import tempfile
import textwrap
import unittest
from pathlib import Path

from ..support import sessions  # noqa: F401: it skips where there is no core
from .test_figures import is_there

# Something else comes and goes in each, and libraries allocate, too.
_LOOP = '''
import json, time

_BEGAN = time.monotonic()

def churn():
    return len(json.dumps([{'item': number} for number in range(500)]))

def rounds(least=200):
    # Growth is since a quarter of the time: what is imported is before.
    now = time.monotonic()
    end = now + 4 + 4 * (now - _BEGAN)
    while least > 0 or time.monotonic() < end:
        churn()
        yield
        least -= 1
        time.sleep(0.005)
'''


class LeaksTest(unittest.TestCase):

    maxDiff = None

    def check(self, program, line, types):
        """The program's line with this text is what grows; return what the
        collector did, as the report shows it."""
        text = textwrap.dedent(program)
        [number] = [number for number, its in enumerate(
            text.splitlines(), 1) if its.endswith(line)]
        with tempfile.TemporaryDirectory() as directory:
            place = Path(directory)
            (place / 'loop.py').write_text(_LOOP)
            (place / 'shop.py').write_text(text)

            def python(*arguments):
                done = subprocess.run(
                    [sys.executable, *arguments], cwd=place, timeout=600,
                    capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stderr)
                return done.stdout

            # Of a service of hours 512 KB a sample are enough.
            python('-X', 'sampleprof=alloc=4K,spool=prof,every=1', 'shop.py')
            report = python('-m', 'profile_sampling', 'report', 'prof',
                            '--value', 'grew')
            self.assertRegex(report, r'It grows by .*[\s\S]* of\s+it at\s+'
                             rf'__main__\.[\w.]+:{number},\s+and has not\s+'
                             'stopped')
            # It leads the table, with its margin.
            self.assertRegex(report, r'±.*\n *[\d.]+MB +\S+ .*'
                             rf'__main__\.[\w.]+:{number} ')
            # What the writer of segments asked for is in neither.
            counted, by_samples, off = map(float, re.search(
                r'Allocated: ([\d.]+) MB, counted; ([\d.]+) ± ([\d.]+) MB',
                report).groups())
            self.assertLess(abs(counted - by_samples), 4 * off, report)
            report = python('-m', 'profile_sampling', 'report', 'prof',
                            '--by', 'type')
            for type_ in types:
                self.assertIn(type_, report)
            return python('-m', 'profile_sampling', 'report', 'prof',
                          '--collections')

    def test_cache_without_a_bound(self):
        self.check('''\
            import functools
            from loop import rounds

            @functools.lru_cache(maxsize=None)
            def quote(number):
                return [str(number + its) for its in range(400)]  # here

            for number, _ in enumerate(rounds()):
                quote(1000 * number)
            ''', '# here', ['str'])

    def test_cycle_with_a_finaliser(self):
        # The finaliser brings it back to life.
        collected = self.check('''\
            import gc
            from loop import rounds

            zombies = []

            class Order:
                def __init__(self):
                    self.own = self
                    self.lines = [bytes(1000) for _ in range(20)]  # here

                def __del__(self):
                    zombies.append(self)

            for number, _ in enumerate(rounds()):
                Order()
                if number % 50 == 0:
                    gc.collect()
            ''', '# here', ['bytes'])
        self.assertIn('  __main__.<module>:', collected)

    @unittest.skipUnless(is_there('numpy'), 'needs the PyPI package numpy')
    def test_buffer_in_a_closure(self):
        self.check('''\
            from loop import rounds
            import numpy

            callbacks = []

            def watch():
                frame = numpy.ones(5000)  # here
                callbacks.append(lambda: frame.sum())

            for _ in rounds():
                watch()
            ''', '# here', ['numpy buffer'])

    @unittest.skipUnless(is_there('fastapi'), 'needs the PyPI package fastapi')
    def test_service(self):
        self.check('''\
            from loop import rounds
            import asyncio
            import fastapi

            app = fastapi.FastAPI()
            seen = []

            @app.get('/quote')
            def quote(number: int):
                seen.append([str(number + its) for its in range(400)])  # here
                return {'number': number}

            async def serve(number):
                async def receive():
                    return {'type': 'http.request', 'body': b''}

                async def send(message):
                    assert message.get('status', 200) == 200

                await app({'type': 'http', 'asgi': {'version': '3.0'},
                           'http_version': '1.1', 'method': 'GET',
                           'path': '/quote', 'raw_path': b'/quote',
                           'query_string': b'number=%d' % number,
                           'headers': [], 'client': ('127.0.0.1', 1),
                           'server': ('127.0.0.1', 80)}, receive, send)

            async def main():
                for number, _ in enumerate(rounds()):
                    await serve(number)

            asyncio.run(main())
            ''', '# here', ['str'])


if __name__ == '__main__':
    unittest.main()
