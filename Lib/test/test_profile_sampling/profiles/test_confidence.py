"""How far running time may be off, and which rows are apart."""

import io
import math
import random
import unittest

from profile_sampling._data import by_state
from profile_sampling._data.chance import variance_left
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

    def test_counts_that_come_to_nothing(self):
        """Other tools write differences as profiles."""
        b = Builder()
        b.sample('a.f:1', wall_ns=5, count=3)
        b.sample('a.g:2', wall_ns=-5, count=-3)
        text = io.StringIO()
        b.profile().report(text)
        self.assertIn('a.f', text.getvalue())

    def test_a_lower_rate_is_less_sure(self):
        self.assertEqual(precision(1000, rate_hz=100).margin_ns(100),
                         185_941_926)

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


class VisitsTest(unittest.TestCase):
    """Of long visits only the ends fall by chance."""

    def test_independent(self):
        for hits, after, second in (
                (100, 0, 0), (100, 10, 10), (100, 12, 9), (1, 0, 0),
                (500, 500 * 500 // 1000, 240)):
            with self.subTest(hits=hits, after=after):
                self.assertEqual(
                    variance_left(hits, 1000, (after, second)), 1.0)

    def test_long_visits(self):
        """Each has two ends, of a sixth of a squared period each."""
        for hits, visits in (100, 1), (400, 4), (600, 6), (900, 1):
            with self.subTest(hits=hits):
                left = variance_left(
                    hits, 1000, (hits - visits, hits - 2 * visits))
                variance = left * hits * (1 - hits / 1000)
                self.assertGreaterEqual(variance, visits / 3 - 1e-9)
                self.assertLess(variance, visits / 3 * 1.3)

    def test_phases_of_short_visits(self):
        """What is slow does not say that what is fast is known better."""
        # In half of all the time each tick is a hit by a toss of a coin.
        self.assertAlmostEqual(variance_left(250, 1000, (125, 125)),
                               0.5 / 0.75, delta=0.1)

    def test_visits_of_a_period(self):
        # exp(-1) of what two moments have in common is left after a period.
        common = (1 - math.exp(-1)) ** 2
        share, records = 0.25, 1_000_000
        draws = share * (1 - share) * records
        stays = [round(share * share * records + draws * common * decay)
                 for decay in (1, math.exp(-1))]
        self.assertAlmostEqual(
            variance_left(share * records, records, stays),
            2 * math.exp(-1) - 1 + 2 * (1 - 2 * math.exp(-1)), delta=0.01)

    def test_nothing_and_all(self):
        self.assertEqual(variance_left(0, 1000, (0, 0)), 1.0)
        self.assertEqual(variance_left(1000, 1000, (999, 998)), 0.0)
        its = precision(1000)
        self.assertEqual(its.margin_ns(1000, (999, 998)), 0)
        self.assertEqual(its.margin_ns(0, (0, 0)), 0)

    def test_no_row_is_sure(self):
        """A row of some records has the error of one visit at least."""
        its = precision(1000)
        for hits in range(1, 1000, 37):
            for after in {0, hits // 2, hits - 1}:
                for second in {0, max(after - 1, 0), hits - 1}:
                    self.assertGreaterEqual(
                        its.margin_ns(hits, (after, second)),
                        round(1.96 * MS * (1 / 3) ** 0.5))

    def test_whatever_a_file_says(self):
        for hits, after, second in (
                (5, 500, 0), (5, -10, 3), (5, 4, 10**12), (5, 0, -7)):
            with self.subTest(after=after, second=second):
                left = variance_left(hits, 1000, (after, second))
                self.assertTrue(0 <= left <= 1, left)

    def test_ranks(self):
        rows = [(300 * MS, 300, (299, 298)), (290 * MS, 290, (289, 288))]
        self.assertEqual(ranks(rows, precision(1000)),
                         [(1, False), (2, False)])
        rows = [(*row[:2], (0, 0)) for row in rows]
        self.assertEqual(ranks(rows, precision(1000)),
                         [(1, True), (1, True)])


class RanksTest(unittest.TestCase):

    def test_rows_that_overlap_share_a_rank(self):
        rows = [(500 * MS, 500), (480 * MS, 480), (100 * MS, 100),
                (95 * MS, 95), (40 * MS, 40)]
        self.assertEqual(ranks(rows, precision(1215)), [
            (1, True), (1, True), (3, True), (3, True), (5, False)])

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

    def test_without_margins_the_values_decide(self):
        rows = [(500, 5), (499, 5), (499, 4)]
        self.assertEqual(ranks(rows, precision(14, rate_hz=0)), [
            (1, False), (2, True), (2, True)])

    def test_none(self):
        self.assertEqual(ranks([], precision(0)), [])


if __name__ == '__main__':
    unittest.main()
