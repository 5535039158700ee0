"""Where blocks are seen: all domains, threads without a GIL, other allocators
and other tools."""

import contextlib
import ctypes
import os
import tempfile
import textwrap
import threading
import tracemalloc
import unittest

import profile_sampling
from test import support
from test.support import import_helper
from test.support.script_helper import assert_python_ok

from ..support import sessions  # noqa: F401: it skips where there is no core
from ..support.allocating import amounts, sampled
from ..support.compiling import run_compiler

# It keeps 100 blocks of each size, and frees as many more.
_PROGRAM = '''
import profile_sampling, sys
from profile_sampling._data import allocations

def keep(kept):
    for size in 100, 400, 1000, 100_000:
        for _ in range(100):
            kept.append(bytearray(size))
            bytearray(size)

kept = []
profile_sampling.start('alloc', alloc_bytes=1)
keep(kept)
tables = profile_sampling.stop()._tables
for amount in 'alloc', 'inuse':
    print(sum([size for node, size in zip(
        tables.column('stack'), tables.value(f'{amount}_space_bytes'))
        if any([frame.function.qualname == 'keep'
                for frame in tables.stack(node)])]))
'''


class Raw(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        directory = cls.enterClassContext(tempfile.TemporaryDirectory())
        path = run_compiler('raw_allocations.c',
                            os.path.join(directory, 'raw.so'),
                            '-shared', '-fPIC')
        cls.raw = ctypes.CDLL(path).raw_allocations
        cls.raw.argtypes = [ctypes.c_long, ctypes.c_size_t]

    def test_threads_that_are_not_pythons(self):
        with sampled(64 * 1024) as taken:
            self.assertEqual(self.raw(5000, 1000), 0)
        tables = taken[0]._tables
        its = [0, 0]
        for node, *values in zip(tables.column('stack'),
                                 tables.value('alloc_space_bytes'),
                                 tables.value('inuse_space_bytes')):
            if tables.stack(node)[0].function.name == '[native thread]':
                its = [one + more for one, more in zip(its, values)]
        exact = 4 * 5000 * (1000 + 1001)
        _, _, error = amounts(taken[0])['alloc']
        self.assertAlmostEqual(its[0], exact, delta=4 * error)
        self.assertEqual(its[1], 0)
        self.assertGreaterEqual(taken[0].stats['allocated_bytes'], exact)
        self.assertLess(taken[0].stats['allocated_bytes'], 1.1 * exact)

    def test_beside_start_and_stop(self):
        thread = threading.Thread(target=self.raw, args=(
            300_000 if sessions.THOROUGH else 30_000, 3000))
        thread.start()
        n_sessions = 0
        while thread.is_alive():
            with sampled(4096):
                thread.join(0.002)
            n_sessions += 1
        self.assertGreater(n_sessions, 0)

    def test_thread_that_is_detached(self):
        # The call gives the GIL up: its own frames are on the stack.
        library = ctypes.CDLL(None)
        library.PyMem_RawMalloc.restype = ctypes.c_void_p
        library.PyMem_RawFree.argtypes = [ctypes.c_void_p]

        def detached():
            return library.PyMem_RawMalloc(1_000_000)

        with sampled(1024) as taken:
            block = detached()
            within = profile_sampling.snapshot()
            library.PyMem_RawFree(block)
        self.assertAlmostEqual(amounts(within, 'detached')['inuse'][1],
                               1_000_000, delta=50_000)
        self.assertLess(amounts(taken[0], 'detached')['inuse'][1], 50_000)


class OtherAllocators(unittest.TestCase):

    def test_sizes(self):
        overhead = bytearray.__basicsize__
        most = 100 * (100 + 400 + 1000 + 100_000)
        for name in ('pymalloc', 'malloc', 'debug', 'malloc_debug',
                     'mimalloc'):
            with self.subTest(name=name):
                if name == 'mimalloc' and not support.with_mimalloc():
                    self.skipTest('no mimalloc')
                _, out, _ = assert_python_ok('-c', _PROGRAM,
                                             PYTHONMALLOC=name)
                allocated, in_use = map(int, out.split())
                for value, factor in (allocated, 2), (in_use, 1):
                    self.assertGreater(value, factor * most)
                    # The list that holds them is one of ever larger ones.
                    self.assertLess(value, factor * (
                        most + 400 * (overhead + 16)) + 60_000)

    def test_tracemalloc(self):
        # Before, during and after.
        for begins, ends in (
                ('tracemalloc.start()', 'tracemalloc.stop()'),
                ('', 'tracemalloc.start(); keep([]); tracemalloc.stop()'),
                ('', 'tracemalloc.start(); later = tracemalloc.stop')):
            with self.subTest(begins=begins, ends=ends):
                program = textwrap.dedent(f'''
                    import tracemalloc, profile_sampling
                    def keep(kept):
                        for size in 100, 1000:
                            for _ in range(500):
                                kept.append(bytearray(size))
                    kept = []
                    later = lambda: None
                    {begins}
                    profile_sampling.start('alloc', alloc_bytes=64)
                    keep(kept)
                    {ends}
                    keep(kept)
                    kept.clear()
                    profile_sampling.stop()
                    later()
                    keep(kept)
                    profile_sampling.start('alloc', alloc_bytes=64)
                    kept.clear()
                    keep(kept)
                    profile = profile_sampling.stop()
                    print(profile.total('inuse_space_bytes'))
                    ''')
                _, out, _ = assert_python_ok('-c', program)
                # 550,000 bytes, and what 1,000 bytearrays have beside it.
                self.assertAlmostEqual(int(out), 620_000, delta=40_000)

    def test_tracked_blocks(self):
        # As NumPy reports its buffers, whether tracemalloc runs or not.
        testcapi = import_helper.import_module('_testcapi')

        def track(address, size):
            testcapi.tracemalloc_track(5, address, size)

        with sampled(1024) as taken:
            for place in range(100):
                try:
                    track(4096 * (place + 1), 100_000)
                except RuntimeError:
                    pass        # tracemalloc does not run
            for place in range(40):
                try:
                    testcapi.tracemalloc_untrack(5, 4096 * (place + 1))
                except RuntimeError:
                    pass
        its = amounts(taken[0], 'track')
        self.assertAlmostEqual(its['alloc'][1], 10_000_000, delta=200_000)
        self.assertAlmostEqual(its['inuse'][1], 6_000_000, delta=200_000)

    @unittest.skipIf(support.Py_DEBUG,
                     'what is reported is no object, which debug hooks move')
    def test_reported_blocks_of_python(self):
        # NumPy 2.5 allocates with PyMem_RawMalloc(), and reports that.
        testcapi = import_helper.import_module('_testcapi')

        def track(size):
            block = bytes(size)
            with contextlib.suppress(RuntimeError):     # without tracemalloc
                testcapi.tracemalloc_track(6, id(block), size)
            return block

        with sampled(1024) as taken:
            kept = [track(100_000) for _ in range(50)]
        its = amounts(taken[0], 'track')
        self.assertAlmostEqual(its['alloc'][1], 5_000_000, delta=100_000)
        del kept


class Interpreters(unittest.TestCase):

    def test_own_gil(self):
        interpreters = import_helper.import_module('_interpreters')
        source = textwrap.dedent('''
            def inner():
                return [bytearray(1000) for _ in range(1000)]
            kept = inner()
            ''')
        with sampled(4096) as taken:
            for config in 'isolated', 'legacy':
                with self.subTest(config=config):
                    number = interpreters.create(config)
                    interpreters.exec(number, source)
                    within = profile_sampling.snapshot()
                    interpreters.destroy(number)
                    its = amounts(within, 'inner')
                    self.assertGreater(its['alloc'][1], 900_000)
        self.assertGreater(amounts(taken[0], 'inner')['alloc'][1], 1_800_000)


if __name__ == '__main__':
    unittest.main()
