"""Collections of the garbage collector, in profiles of memory."""

import contextlib
import gc
import io
import json
import os
import tempfile
import unittest

import profile_sampling
from profile_sampling import Profile
from profile_sampling._cli.main import main
from profile_sampling._data import by_collection
from profile_sampling._data.by_site import sites_of
from test.support import import_helper

from ..support import sessions  # noqa: F401: it skips where there is no core
from ..support.allocating import add_rows, sampled
from ..support.builders import Builder

_MS = 1_000_000


def rows(profile):
    tables = profile._tables
    return by_collection.rows(tables, sites_of(tables, all=True))


def place(row):
    return row.function and row.function.qualname.rpartition('.')[2]


class Cycle:
    def __init__(self):
        self.own = self


class Finalised(Cycle):
    def __del__(self):
        pass


class Kept(Cycle):
    again = []

    def __del__(self):
        self.again.append(self)


def collect(generation, number, kind=None):
    for _ in range(number):
        if kind is not None:
            kind()
        gc.collect(generation)


class Collections(unittest.TestCase):
    """Beside what the collector says of itself."""

    def setUp(self):
        gc.collect()
        gc.disable()
        self.addCleanup(gc.enable)
        self.addCleanup(Kept.again.clear)
        self.told = []
        gc.callbacks.append(self.tell)
        self.addCleanup(gc.callbacks.remove, self.tell)

    def tell(self, phase, info):
        if phase == 'stop' and profile_sampling.running():
            self.told.append((info['generation'], info['collected'],
                              info['uncollectable']))

    def check_all(self, profile):
        """All is as the collector says."""
        generations, by_line = rows(profile)
        self.assertEqual(
            {row.generation: (row.number, row.freed, row.uncollectable)
             for row in generations},
            {generation: (len(its), *map(sum, list(zip(*its))[1:]))
             for generation in {told[0] for told in self.told}
             for its in [[told for told in self.told
                          if told[0] == generation]]})
        for field in 'number', 'pause_ns', 'freed', 'uncollectable':
            self.assertEqual(*[sum([getattr(row, field) for row in its])
                               for its in (generations, by_line)])
        for row in generations:
            self.assertLessEqual(row.longest_ns, row.pause_ns)
            self.assertGreaterEqual(row.longest_ns * row.number, row.pause_ns)
        return generations, by_line

    def test_in_a_loop(self):
        with sampled(1 << 20) as taken:
            collect(2, 5)
            collect(0, 3)
        generations, by_line = self.check_all(taken[0])
        self.assertEqual([(row.generation, row.number, place(row))
                          for row in generations],
                         [(0, 3, 'collect'), (2, 5, 'collect')])
        [row] = by_line
        line = collect.__code__.co_firstlineno + 4
        self.assertEqual((place(row), row.line, row.number),
                         ('collect', line, 8))

    def test_finalisers(self):
        with sampled(1 << 20) as taken:
            for kind in Cycle, Finalised:
                collect(2, 10, kind)
            before = sum([freed for _, freed, _ in self.told])
            collect(2, 10, Kept)
        self.assertGreaterEqual(before, 20)
        # They have come back to life.
        self.assertEqual(sum([freed for _, freed, _ in self.told]), before)
        self.check_all(taken[0])

    def test_uncollectable(self):
        with_tp_del = import_helper.import_module('_testcapi').with_tp_del

        @with_tp_del
        class Legacy(Cycle):
            def __tp_del__(self):
                pass

        self.addCleanup(gc.garbage.clear)
        with sampled(1 << 20) as taken:
            collect(2, 4, Legacy)
        [row], _ = self.check_all(taken[0])
        self.assertGreaterEqual(row.uncollectable, 4)
        for one in gc.garbage:
            one.own = None

    def test_saved_all(self):
        # gc counts them as collected, and so do we.
        gc.set_debug(gc.DEBUG_SAVEALL)
        self.addCleanup(gc.garbage.clear)
        self.addCleanup(gc.set_debug, 0)
        with sampled(1 << 20) as taken:
            collect(2, 3, Cycle)
        [row], _ = self.check_all(taken[0])
        self.assertGreaterEqual(row.freed, 3)

    def test_started_by_allocations(self):
        def allocate(kept):
            for number in range(20_000):
                kept.append([number])

        with sampled(1 << 20) as taken:
            gc.enable()
            allocate([])
            gc.disable()
        generations, by_line = self.check_all(taken[0])
        self.assertEqual({row.generation for row in generations} & {0}, {0})
        self.assertEqual({place(row) for row in by_line}, {'allocate'})

    def test_time_alone_has_none(self):
        profile_sampling.start()
        collect(2, 3)
        profile = profile_sampling.stop()
        self.assertEqual(rows(profile), ([], []))

    def test_beside_time(self):
        with sampled(1 << 20, 'wall') as taken:
            collect(1, 3)
        self.check_all(taken[0])

    def test_segments(self):
        profile_sampling.start('alloc')
        collect(2, 4, Cycle)
        first = profile_sampling.snapshot(clear=True)
        collect(1, 2, Cycle)
        second = profile_sampling.stop()
        found = [rows(its)[0] for its in (first, second, first + second)]
        self.assertEqual([[(row.generation, row.number) for row in its]
                          for its in found],
                         [[(2, 4)], [(1, 2)], [(1, 2), (2, 4)]])
        self.assertEqual([row.longest_ns for row in found[2]],
                         [found[1][0].longest_ns, found[0][0].longest_ns])
        self.check_all(first + second)

    def test_file(self):
        with sampled(1 << 20) as taken:
            collect(2, 3, Cycle)
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, 'p.pb.gz')
            taken[0].save(path)
            self.assertEqual(rows(Profile.load(path)), rows(taken[0]))


class Report(unittest.TestCase):

    def report(self, builder, *options):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, 'p.pb.gz')
            builder.profile().save(path)
            out = io.TextIOWrapper(io.BytesIO(), 'utf-8', newline='\n')
            with contextlib.redirect_stdout(out):
                main(['report', path, '--width', '120', *options])
            out.flush()
            return out.buffer.getvalue().decode()

    def service(self):
        b = Builder(mode='alloc', duration_ns=60_000_000_000)
        thread = b.thread('MainThread')
        add_rows(b, [('shop.main:3 shop.quote:107', thread, {},
                      *[(100, 80 << 20, 0)] * 3)], collections=[
            ('shop.main:3 shop.quote:107 [GC~gen0]', thread, {}, 1, 900,
             90 * _MS, 4000, 0),
            ('shop.main:3 shop.quote:107 [GC~gen2]', thread, {}, 2, 6,
             600 * _MS, 1_000_000, 12),
            ('shop.main:3 shop.tidy:9 [GC~gen2] C:gc.collect', thread, {}, 2,
             2, 150 * _MS, 3, 0)], longest_ns=(2 * _MS, 0, 139 * _MS))
        return b

    def test_tables(self):
        report = self.report(self.service(), '--collections')
        for expected in (
                'generation  collections   pauses  longest      freed  '
                'uncollectable  most at',
                '         0          900   90.0ms    2.0ms      4,000'
                '              0  shop.quote:107',
                '         2            8  750.0ms  139.0ms  1,000,003'
                '             12  shop.quote:107',
                '          2  150.0ms          3              0  shop.tidy:9'):
            with self.subTest(expected=expected):
                self.assertIn(expected, report)

    def test_said(self):
        report = ' '.join(self.report(self.service()).split())
        self.assertIn('* The garbage collector stopped the program 908 times '
                      'for 840 ms, 139 ms at most; 82.1 % of that was started '
                      'at shop.quote:107: --collections', report)
        self.assertIn('* 12 objects were uncollectable: --collections', report)

    def test_json(self):
        document = json.loads(self.report(
            self.service(), '--collections', '--format', 'json'))
        by_generation, by_line = document['tables']
        self.assertEqual(
            [(row['generation'], row['collections'], row['pause_ns'],
              row['longest_ns'], row['freed'], row['uncollectable'])
             for row in by_generation['rows']],
            [(0, 900, 90 * _MS, 2 * _MS, 4000, 0),
             (2, 8, 750 * _MS, 139 * _MS, 1_000_003, 12)])
        self.assertEqual([row['collections'] for row in by_line['rows']],
                         [906, 2])

    def test_none(self):
        b = Builder(mode='alloc')
        add_rows(b, [('shop.main:3', b.thread('t'), {},
                      *[(1, 1 << 20, 0)] * 3)])
        self.assertIn('No collection ended meanwhile.',
                      self.report(b, '--collections'))


if __name__ == '__main__':
    unittest.main()
