"""How far running time may be off, and which rows are apart."""

import io
import random
import unittest

from profile_sampling._data import by_state
from profile_sampling._data.confidence import Precision, ranks

from ..support.builders import Builder

MS = 1_000_000


def precision(records, each_ns=MS, **facts):
    """That of a profile of so many running records, of each_ns each."""
    tables = Builder(**facts).sample(
        'a.f', wall_ns=records * each_ns, count=records).profile()._tables
    return Precision(tables, by_state.whole(tables))


class MarginTest(unittest.TestCase):

    def test_known_answers(self):
        its = precision(1000)
        # 1.96 * 1 ms * sqrt(n * (1 - n / 1000))
        for records, margin_ms in (0, 0.0), (1, 1.959), (100, 18.594), (
                500, 30.990), (1000, 0.0):
            self.assertAlmostEqual(its.margin_ns(records) / MS, margin_ms,
                                   places=3)

    def test_nothing_finer_than_what_profiling_moves(self):
        """Half of the share that it took, if it took more than chance."""
        for cost, margin_ms in (0.2, 50.0), (0.01, 30.990):
            b = Builder(stats={'overhead_drain_ns': round(cost * 1000 * MS)})
            tables = b.sample('a.f', wall_ns=1000 * MS, cpu_ns=1000 * MS,
                              count=1000).profile()._tables
            its = Precision(tables, by_state.whole(tables))
            self.assertAlmostEqual(its.margin_ns(500) / MS, margin_ms,
                                   places=3)

    def test_counts_that_come_to_nothing(self):
        """Other tools write differences as profiles."""
        b = Builder()
        b.sample('a.f:1', wall_ns=5, count=3)
        b.sample('a.g:2', wall_ns=-5, count=-3)
        text = io.StringIO()
        b.profile().report(text)
        self.assertIn('a.f', text.getvalue())

    def test_what_was_achieved(self):
        """Half of the ticks came late: a sample stands for two periods."""
        stats = {'ticks': 1010, 'ticks_late': 1000, 'ticks_idle': 10,
                 'signals_sent': 900, 'ticks_noted': 100}
        normal = precision(1000).margin_ns(100)
        self.assertAlmostEqual(
            precision(1000, 2 * MS, stats=stats).margin_ns(100), 2 * normal,
            delta=1)
        # Counters are of more than the samples, and a sample may be long.
        for each_ns, counters in (MS, stats), (5 * MS, {}), (
                5 * MS, {'ticks': 900, 'signals_sent': 1000}):
            self.assertEqual(precision(1000, each_ns, stats=counters)
                             .margin_ns(100), normal)

    def test_not_known(self):
        self.assertIsNone(precision(1000, rate_hz=0).margin_ns(100))
        b = Builder(mode='alloc', value_types=[('alloc', 'bytes')])
        tables = b.sample('a.f', values=[5]).profile()._tables
        self.assertIsNone(
            Precision(tables, by_state.whole(tables)).margin_ns(10))

    def test_coverage(self):
        """95 of 100 intervals have the true value.

        Ticks fall anywhere, and a function has a tenth of the time.  Of 2,000
        intervals 93.5 to 96.5 % is three standard deviations.
        """
        chance = random.Random(7)
        share, ticks, runs = 0.1, 500, 2000
        its = precision(ticks)
        hits = 0
        for _ in range(runs):
            records = chance.binomialvariate(ticks, share)
            hits += (abs(records - share * ticks) * MS
                     <= its.margin_ns(records))
        self.assertTrue(0.93 <= hits / runs <= 0.97, hits / runs)


class RanksTest(unittest.TestCase):

    def test_measured_time_is_exact(self):
        rows = [(500 * MS, 0), (499 * MS, 0), (499 * MS, 0)]
        self.assertEqual(ranks(rows, precision(1000)), [
            (1, False), (2, True), (2, True)])

    def test_a_rank_is_not_passed_on(self):
        """Each row is compared with the first of a rank, not with the one
        above it: otherwise a long list would be one rank."""
        rows = [(n * MS, n) for n in range(1000, 100, -30)]
        found = [rank for rank, _ in ranks(rows, precision(16_000))]
        self.assertGreater(len(set(found)), 5)
