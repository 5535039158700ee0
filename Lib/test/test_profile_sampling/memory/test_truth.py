"""Sampled allocations: whether estimates and their intervals are true."""

import gc
import itertools
import math
import textwrap
import threading
import tracemalloc
import unittest

import profile_sampling
from test import support

from ..support import sessions  # noqa: F401: it skips where there is no core
from ..support.allocating import (
    BYTES_OVERHEAD, amounts, block, mixed_sizes, sampled)

_SEEDS = 40 if sessions.THOROUGH else 8
_PERIOD = 64 * 1024


# Nothing else is allocated in them.

def keep(kept, size, number):
    size -= BYTES_OVERHEAD
    for _ in itertools.repeat(None, number):
        kept.append(bytes(size))


def churn(size, number):
    size -= BYTES_OVERHEAD
    for _ in itertools.repeat(None, number):
        bytes(size)


class Truth(unittest.TestCase):

    def test_mixed_sizes(self):
        # Tiny and huge blocks in turn, of which each size has a figure of its
        # own: a sample that stood for the bytes since the one before would
        # be off by a quarter.
        inside = number = 0
        errors = []
        for seed in range(_SEEDS):
            sizes = mixed_sizes(seed, 900)
            with sampled(_PERIOD) as taken:
                for size in sizes:
                    block(size)
            _, estimate, error = amounts(taken[0])['alloc']
            exact = taken[0].stats['allocated_bytes']
            self.assertGreaterEqual(exact, sum(sizes))
            errors.append((estimate - exact, error))
            inside += abs(estimate - exact) <= 1.96 * error
            number += 1
        off = sum([off for off, _ in errors])
        error = math.sqrt(sum([error ** 2 for _, error in errors]))
        self.assertLess(abs(off), 4 * error)
        # Of the binomial distribution, four standard deviations.
        self.assertGreater(inside, 0.95 * number - 4 * math.sqrt(
            number * 0.95 * 0.05))

    def test_each_size(self):
        # The same weights for each size, up to what is sampled for certain.
        for size in 64, 480, 4096, _PERIOD, 20 * _PERIOD:
            number = max(20, 400 * _PERIOD // size)
            with self.subTest(size=size), sampled(_PERIOD) as taken:
                churn(size, number)
            objects, estimate, error = amounts(taken[0], 'churn')['alloc']
            with self.subTest(size=size):
                self.assertLess(abs(estimate - size * number),
                                4 * error + 0.002 * size * number)
                self.assertAlmostEqual(objects * size, estimate,
                                       delta=0.01 * estimate + size)

    def test_exact_where_large(self):
        size = 40 * _PERIOD
        kept = []
        with sampled(_PERIOD) as taken:
            keep(kept, size, 10)
            del kept[:5]
        its = amounts(taken[0], 'keep')
        self.assertEqual(its['alloc'], (10, 10 * size, 0.0))
        self.assertEqual(its['inuse'], (5, 5 * size, 0.0))
        self.assertEqual(its['peak'], (10, 10 * size, 0.0))

    def test_in_use_is_taken_away_exactly(self):
        kept = []
        with sampled(512) as taken:
            for size in 64, 500, 600, 5000:
                keep(kept, size, 2000)
            kept.clear()
        its = amounts(taken[0], 'keep')
        self.assertGreater(its['alloc'][1], 10_000_000)
        # The list that held them, at most.
        self.assertLess(its['inuse'][1], 200_000)

    def test_peak(self):
        with sampled(4096) as taken:
            for height in 2, 10, 5:
                kept = []
                keep(kept, 1000, height * 1000)
                kept.clear()
                del kept
        _, estimate, error = amounts(taken[0], 'keep')['peak']
        self.assertAlmostEqual(estimate, 10_000_000,
                               delta=4 * error + 400_000)

    def test_leak(self):
        kept = []
        with sampled(4096) as taken:
            for _ in range(100):
                churn(1000, 200)
                keep(kept, 1000, 20)
        leaked = amounts(taken[0], 'keep')['inuse']
        churned = amounts(taken[0], 'churn')
        self.assertAlmostEqual(leaked[1], 2_000_000,
                               delta=4 * leaked[2] + 40_000)
        self.assertLess(churned['inuse'][1], 10_000)
        self.assertAlmostEqual(churned['alloc'][1], 20_000_000,
                               delta=4 * churned['alloc'][2])

    def test_tracemalloc(self):
        # By line, each block but one of 10 million.
        source = '\n'.join([
            'import json',
            'text = "[" + ",".join(map(str, range(100, 3100))) + "]"',
            'kept = json.loads(text)',
            'pairs = [(number, str(number)) for number in kept]',
            'by_text = {text: number for number, text in pairs}'])
        code = compile(source, '<lines>', 'exec')
        exec(code, {})
        gc.collect()
        gc.disable()
        self.addCleanup(gc.enable)
        tracemalloc.start()
        try:
            names = {}
            exec(code, names)
            taken = tracemalloc.take_snapshot()
        finally:
            tracemalloc.stop()
        expected = {stat.traceback[0].lineno: stat.size
                    for stat in taken.statistics('lineno')
                    if stat.traceback[0].filename == '<lines>'}
        names.clear()
        gc.collect()    # and free lists
        names = {}
        with sampled(1) as taken:
            exec(code, names)
        found = {}
        tables = taken[0]._tables
        for node, size in zip(tables.column('stack'),
                              tables.value('inuse_space_bytes')):
            frame = next((frame for frame in tables.stack(node)
                          if frame.function.kind == 'python'), None)
            if frame is not None and frame.function.filename == '<lines>':
                found[frame.line] = found.get(frame.line, 0) + size
        names.clear()
        for line, size in expected.items():
            if size > 10_000:
                self.assertAlmostEqual(found.get(line, 0), size,
                                       delta=0.02 * size, msg=line)


class Types(unittest.TestCase):

    def test_types(self):
        class Slotted:
            __slots__ = 'a', 'b'

        class Plain:
            pass

        def make(kept):
            for number in range(3000):
                kept.append(Slotted())
                kept.append(Plain())
                kept.append((number, number))
                kept.append(number + 0.5)
                kept.append(bytes(100))
                kept.append(chr(number % 26 + 97) * 9)
                kept.append({number: number})
                # Gone before anybody asks.
                bytearray(40)

        kept = []
        gc.collect()    # free lists, too
        with sampled(64) as taken:
            make(kept)
        kept.clear()
        sums = {}
        tables = taken[0]._tables
        for node, row, size in zip(
                tables.column('stack'), tables.column('labels'),
                tables.value('alloc_space_bytes')):
            if any([frame.function.qualname.endswith('make')
                    for frame in tables.stack(node)]):
                labels, _, _ = tables.label_set(row)
                # A collection has none.
                name = labels.get('block type', '').rpartition('.')[2]
                sums[name] = sums.get(name, 0) + size
        for name, least, most in (
                ('Slotted', 16, 48), ('Plain', 16, 120), ('tuple', 56, 56),
                ('float', 24, 24), ('bytes', 133, 133), ('str', 50, 50),
                ('dict', 64, 64),
                ('bytearray', 56, 56), ('int', 28, 32)):
            with self.subTest(name=name):
                # 64 bytes a sample: hardly any chance is left.
                self.assertGreater(sums.get(name, 0), 2500 * least)
                self.assertLess(sums[name], 3500 * most)
        # Keys of dicts, the list, and what bytearrays hold.
        self.assertIn('buffer', sums)


class Moves(unittest.TestCase):

    def test_realloc(self):
        # Small, large, and over the border between.
        def storm():
            for last in 200, 2000, 20_000:
                grown = []
                for item in range(last):
                    grown.append(None)
                while grown:
                    grown.pop()
                text = bytearray()
                for _ in range(last):
                    text += b'x'
                del text[10:]

        with sampled(64) as taken:
            for _ in range(20):
                storm()
        its = amounts(taken[0], 'storm')
        self.assertGreater(its['alloc'][1], 1_000_000)
        self.assertLess(its['inuse'][1], 20_000)

    def test_free_in_another_thread(self):
        kept = []
        with sampled(1024) as taken:
            threads = [threading.Thread(target=keep, args=(kept, size, 500))
                       for size in (100, 1000, 10_000)]
            for thread in threads:
                thread.start()
                thread.join()
            thread = threading.Thread(target=kept.clear)
            thread.start()
            thread.join()
        its = amounts(taken[0], 'keep')
        exact = 500 * (100 + 1000 + 10_000)
        # The list, ever longer, is some 100,000 bytes in all.
        self.assertAlmostEqual(its['alloc'][1], exact + 100_000,
                               delta=4 * its['alloc'][2] + 100_000)
        self.assertLess(its['inuse'][1], 50_000)

    def test_blocks_outlive_sessions(self):
        kept = []
        for number in range(20):
            with sampled(256) as taken:
                keep(kept, 200, 300)
                keep(kept, 2000, 30)
                # Of the session before.
                del kept[:300]
            its = amounts(taken[0], 'keep')['inuse']
            self.assertGreater(its[1], 0)
            self.assertLess(its[1], 400_000)
        kept.clear()

    def test_two_profiles(self):
        # The inner one is of the blocks since it began.
        outer, inner = [], []
        with sampled(1024) as taken:
            keep(outer, 1000, 500)
            with profile_sampling.profile(alloc_bytes=1024) as block_:
                keep(inner, 1000, 200)
                outer.clear()
            inner.clear()
        its = amounts(block_.profile, 'keep')['inuse']
        self.assertAlmostEqual(its[1], 200_000, delta=4 * its[2] + 10_000)
        its = amounts(taken[0], 'keep')
        self.assertLess(its['inuse'][1], 20_000)
        self.assertAlmostEqual(its['alloc'][1], 700_000,
                               delta=4 * its['alloc'][2] + 20_000)

    def test_snapshot_clear(self):
        kept = []
        profile_sampling.start('alloc', alloc_bytes=1024)
        try:
            keep(kept, 1000, 500)
            first = profile_sampling.snapshot(clear=True)
            del kept[:400]
            keep(kept, 1000, 100)
        finally:
            second = profile_sampling.stop()
        its = amounts(first, 'keep')['inuse']
        self.assertAlmostEqual(its[1], 500_000, delta=4 * its[2] + 20_000)
        # What was in use goes on, and is not allocated once more.
        for amount, size in ('inuse', 200_000), ('alloc', 100_000):
            its = amounts(second, 'keep')[amount]
            self.assertAlmostEqual(its[1], size, delta=4 * its[2] + 20_000)

    def test_segments_do_not_grow(self):
        # Stacks, labels and threads of their own in each segment, of which one
        # block each stays.
        kept, sizes, segments = [], [], []

        def run(number):
            names = {'kept': kept}
            exec(textwrap.dedent(f'''\
                def keep_{number}():
                    kept.append(bytes(200_000))
                ''') + ''.join([textwrap.dedent(f'''\
                def churn_{number}_{other}():
                    return bytes(9_000)
                ''') for other in range(300)]), names)
            with profile_sampling.label(segment=str(number)):
                for name, function in names.items():
                    if name.startswith(('keep', 'churn')):
                        function()

        profile_sampling.start('alloc', alloc_bytes=1024)
        try:
            for number in range(40):
                thread = threading.Thread(target=run, args=(number,))
                thread.start()
                thread.join()
                segments.append(profile_sampling.snapshot(clear=True))
                sizes.append(profile_sampling.stats()['memory_bytes'])
        finally:
            last = profile_sampling.stop()
        self.assertLess(sizes[-1], 1.5 * max(sizes[:15]))
        # Those of before are what they were.
        for number in range(40):
            # And the list that has them, where it has grown.
            self.assertAlmostEqual(
                amounts(last, f'keep_{number}')['inuse'][1],
                200_000 + BYTES_OVERHEAD, delta=4_000)
        tables = last._tables
        for node, row, size in zip(
                tables.column('stack'), tables.column('labels'),
                tables.value('inuse_space_bytes')):
            name = ''.join([frame.function.qualname
                            for frame in tables.stack(node)
                            if 'keep_' in frame.function.qualname])
            if size > 100_000 and name:
                labels, _, _ = tables.label_set(row)
                self.assertEqual(labels['segment'], name.partition('_')[2])
                self.assertEqual(labels['block type'], 'bytes')
        whole = profile_sampling.Profile.merge(*segments, last)
        for amount, its in amounts(whole, 'keep_7').items():
            self.assertAlmostEqual(its[1], 200_000 + BYTES_OVERHEAD,
                                   delta=4_000, msg=amount)

    @support.requires_fork()
    def test_child_frees(self):
        import os
        kept = []
        with sampled(64) as taken:
            keep(kept, 100, 1000)
            keep(kept, 1000, 1000)
            pid = os.fork()
            if pid == 0:
                kept.clear()
                keep(kept, 100, 1000)
                os._exit(0 if not profile_sampling.running() else 1)
            support.wait_process(pid, exitcode=0)
        its = amounts(taken[0], 'keep')['inuse']
        self.assertAlmostEqual(its[1], 1_100_000, delta=40_000)


if __name__ == '__main__':
    unittest.main()
