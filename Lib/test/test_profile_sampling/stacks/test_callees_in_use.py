"""Names of C code in programs that use well-known modules."""

import contextlib
import math
import sys
import threading
import time
from collections import Counter

from test.support import import_helper

from ..support.packages import contained
from ..support.sessions import (
    Session, SessionTest, need_prompt_signals, on_stack)

RATE_HZ = 2000
WORK_S = 0.3

setUpModule = need_prompt_signals


class ModulesTest(SessionTest):

    def shares(self, work):
        """{name of C function or operator: its share of work()'s time}."""
        work()                              # imports, caches, specialization
        with Session(rate_hz=RATE_HZ, names=3) as session:
            end = time.perf_counter() + WORK_S
            while time.perf_counter() < end:
                work()
        found, total = Counter(), 0
        for sample in session.profile.samples:
            frames = [frame.function for frame in sample.stack]
            if any(f.qualname == work.__qualname__ for f in frames):
                total += sample.wall_ns
                for name in {f.name for f in frames
                             if f.kind in ('C', 'operator')}:
                    found[name] += sample.wall_ns
        self.assertGreater(total, WORK_S * 0.7e9)
        return {name: ns / total for name, ns in found.items()}

    def test_json(self):
        import json
        value = {str(i): [i, i / 3, str(i) * 5, None] for i in range(2000)}

        def work():
            json.loads(json.dumps(value))
        shares = self.shares(work)
        self.assertGreater(shares['_json.Encoder.__call__'], 0.1)
        self.assertGreater(shares['_json.Scanner.__call__'], 0.1)

    def test_sqlite3(self):
        sqlite3 = import_helper.import_module('sqlite3')
        rows = [(i, str(i)) for i in range(3000)]
        connection = sqlite3.connect(':memory:')
        self.addCleanup(connection.close)
        connection.execute('create table numbers (n, text)')

        def work():
            with contextlib.closing(connection.cursor()) as cursor:
                cursor.executemany('insert into numbers values (?, ?)', rows)
                cursor.execute('select * from numbers '
                               'order by text || n, n % 7')
                cursor.fetchall()
            connection.rollback()
        shares = self.shares(work)
        self.assertGreater(shares['sqlite3.Cursor.executemany'], 0.1)
        self.assertGreater(shares['sqlite3.Cursor.execute'], 0.03)
        self.assertGreater(shares['sqlite3.Cursor.fetchall'], 0.05)

    def test_numpy(self):
        with contained():
            numpy = import_helper.import_module('numpy')
        a = numpy.random.default_rng(1).random((200, 200))

        def work():
            a @ a
            for _ in range(10):
                a + a
                a.copy().sort()
        shares = self.shares(work)
        self.assertGreater(shares['numpy.ndarray.__matmul__'], 0.05)
        self.assertGreater(shares['numpy.ndarray.sort'], 0.05)
        self.assertIn('numpy.ndarray.__add__', shares)


class YieldsTest(SessionTest):

    def test_no_callee_between_two_instructions(self):
        # What getattr() returns lies where getattr() lay, and could be called
        # too.  The other thread wants the GIL for a moment, and has given it
        # back when this one, which had no CPU meanwhile, asks for it.
        self.addCleanup(sys.setswitchinterval, sys.getswitchinterval())
        sys.setswitchinterval(1e-5)
        done = threading.Event()

        def ask():
            while not done.is_set():
                time.sleep(1e-5)

        def compute():
            end = time.monotonic() + 3 * WORK_S
            while time.monotonic() < end:
                for _ in range(100):
                    getattr(math, 'sqrt')
        asking = threading.Thread(target=ask)
        with Session(rate_hz=10_000, names=1) as session:
            asking.start()
            compute()
            done.set()
            asking.join()
        off_gil = [sample for sample in session.profile.samples
                   if sample.state in ('waiting', 'gil_wait')
                   and on_stack(sample, compute.__qualname__)]
        self.assertTrue(off_gil)
        self.assertEqual([sample for sample in off_gil
                          if on_stack(sample, 'sqrt')], [])
