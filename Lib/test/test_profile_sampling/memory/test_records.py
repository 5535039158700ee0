"""Records of allocations that a subscriber gets."""

import itertools
import time
import unittest

import profile_sampling

from ..support import sessions  # noqa: F401: it skips where there is no core
from ..support.allocating import BYTES_OVERHEAD


def keep(kept, size, number):
    size -= BYTES_OVERHEAD
    for _ in itertools.repeat(None, number):
        kept.append(bytes(size))


class Records(unittest.TestCase):

    def setUp(self):
        self.records = []

    def take(self, batch):
        for record in batch.allocations():
            if any(frame.function.qualname == 'keep'
                   for frame in record.stack):
                self.records.append((
                    record.bytes, record.freed_ns, record.allocated_ns,
                    record.margin_bytes, record.thread, record.labels,
                    record.key))

    def bytes(self, *, freed):
        return sum([size for size, freed_ns, *_ in self.records
                    if (freed_ns is not None) == freed])

    def test_allocated_and_freed(self):
        # Large blocks are sampled for certain: nothing is an estimate.
        kept = []
        size = 1 << 20
        began_ns = time.time_ns()
        with profile_sampling.subscribe(
                self.take, alloc_bytes=4096) as subscription:
            with profile_sampling.label(route='/a'):
                keep(kept, size, 10)
            subscription.flush()
            self.assertAlmostEqual(self.bytes(freed=False), 10 * size,
                                   delta=20_000)
            self.assertEqual(self.bytes(freed=True), 0)
            del kept[:4]
            subscription.flush()
            self.assertAlmostEqual(self.bytes(freed=True), 4 * size,
                                   delta=20_000)
            self.records.clear()
            keep(kept, size, 1)
            kept.clear()
        # Nothing is reported twice, and what remained was freed: 6, and 1 more.
        self.assertAlmostEqual(self.bytes(freed=False), size, delta=20_000)
        self.assertAlmostEqual(self.bytes(freed=True), 7 * size, delta=20_000)
        for size, freed_ns, allocated_ns, margin, thread, labels, key in (
                self.records):
            self.assertLess(abs(allocated_ns - began_ns), 20e9)
            self.assertIn(margin, range(20_000))
            self.assertEqual(thread.name, 'MainThread')
            hash(key)
            if freed_ns is not None:
                self.assertGreaterEqual(freed_ns, allocated_ns)
        self.assertIn('/a', {labels.get('route')
                             for *_, labels, _ in self.records})

    def test_only_some(self):
        kept = []
        with profile_sampling.subscribe(self.take, alloc_bytes=4096,
                                        labels={'route': '/a'}):
            keep(kept, 1 << 20, 5)
            with profile_sampling.label(route='/a'):
                keep(kept, 1 << 20, 2)
            kept.clear()
        for freed in False, True:
            self.assertAlmostEqual(self.bytes(freed=freed), 2 << 20,
                                   delta=20_000)

    def test_beside_a_session(self):
        kept = []
        with profile_sampling.profile('alloc', alloc_bytes=4096) as block:
            with profile_sampling.subscribe(self.take, alloc_bytes=4096):
                keep(kept, 1 << 20, 3)
            # The subscription has ended; the profile goes on.
            keep(kept, 1 << 20, 2)
            with self.assertRaisesRegex(RuntimeError, 'alloc_bytes'):
                profile_sampling.subscribe(self.take, alloc_bytes=512)
        self.assertAlmostEqual(self.bytes(freed=False), 3 << 20, delta=20_000)
        self.assertAlmostEqual(
            block.profile.in_use().total('inuse_space'), 5 << 20,
            delta=100_000)

    def test_not_asked_for(self):
        batches = []
        with profile_sampling.profile(alloc_bytes=4096), \
                profile_sampling.subscribe(batches.append):
            keep([], 1 << 20, 3)
        self.assertTrue(batches)
        for batch in batches:
            self.assertEqual(list(batch.allocations()), [])
        with self.assertRaisesRegex(ValueError, 'alloc_bytes'):
            profile_sampling.subscribe(batches.append, alloc_bytes=0)


if __name__ == '__main__':
    unittest.main()
