"""Intervals and tests: known answers, and how often they are right."""

import random
import statistics
import unittest

from profile_sampling._data import chance


class WelchTest(unittest.TestCase):

    def test_by_hand(self):
        # Means 20 and 23, variances 2.5 and 10, five each: t = 3 / sqrt(2.5),
        # 5.882 degrees of freedom; p from the density by Simpson's rule.
        before = 18, 19, 20, 21, 22
        after = 19, 21, 23, 25, 27
        half, p = chance.welch(before, after)
        self.assertAlmostEqual(p, 0.10753119493, 9)
        self.assertAlmostEqual(half / 2.5 ** 0.5, 2.459, 3)

    def test_no_spread(self):
        self.assertEqual(chance.welch([3, 3], [3, 3]), (0, 1))
        self.assertEqual(chance.welch([3, 3], [4, 4]), (0, 0))

    def test_floor(self):
        # The runs agree by chance, and are known to no better than this.
        half, p = chance.welch([3] * 5, [4] * 5, 4.0)
        self.assertAlmostEqual(half, 2.306 * (8 / 5) ** 0.5, 3)
        self.assertGreater(p, 0.4)

    def test_scipy(self):
        try:
            from scipy import stats
        except ImportError:
            self.skipTest('needs scipy')
        source = random.Random(17)
        for sizes in (2, 2), (5, 5), (10, 6):
            before, after = [[source.gauss(100, size) for _ in range(size)]
                             for size in sizes]
            self.assertAlmostEqual(
                chance.welch(before, after)[1],
                stats.ttest_ind(before, after, equal_var=False).pvalue, 9)


class AdjustedTest(unittest.TestCase):

    def test_benjamini_hochberg(self):
        # The example of their paper, table 1: four are found at 5 %.
        chances = [.0001, .0004, .0019, .0095, .0201, .0278, .0298, .0344,
                   .0459, .3240, .4262, .5719, .6528, .7590, 1.0]
        mixed = random.Random(1).sample(chances, len(chances))
        adjusted = dict(zip(mixed, chance.benjamini_hochberg(mixed)))
        self.assertEqual([p for p in chances if adjusted[p] <= 0.05],
                         chances[:4])
        self.assertAlmostEqual(adjusted[.0095], .0095 * 15 / 4)
        # The sixth by itself is .0695, but the seventh is below that.
        self.assertAlmostEqual(adjusted[.0278], .0298 * 15 / 7)

    def test_one_and_none(self):
        self.assertEqual(chance.benjamini_hochberg([.9]), [.9])
        self.assertEqual(chance.benjamini_hochberg([]), [])


class OfRecordsTest(unittest.TestCase):

    def test_by_hand(self):
        # Wilson's interval of 10 of 100 is 0.0552 to 0.1744.
        down, up = chance.of_records(10, 100)
        self.assertAlmostEqual(down, 10 - 5.52, 2)
        self.assertAlmostEqual(up, 17.44 - 10, 2)

    def test_none(self):
        down, up = chance.of_records(0, 10_000)
        self.assertEqual(down, 0)
        self.assertAlmostEqual(up, 3.84, 2)
        self.assertEqual(chance.of_records(0, 0), (0, 0))

    def test_many_are_as_the_textbook_says(self):
        down, up = chance.of_records(40_000, 100_000)
        expected = 1.96 * (40_000 * 0.6) ** 0.5
        self.assertAlmostEqual(down / expected, 1, 2)
        self.assertAlmostEqual(up / expected, 1, 2)

    def test_of_difference_and_mean(self):
        self.assertEqual(chance.of_difference((3, 8), (6, 4)), (10, 5))
        self.assertEqual(chance.of_mean([(3, 6), (4, 8)]), (2.5, 5))


class CoverageTest(unittest.TestCase):
    """How often the truth is in an interval of 95 %."""

    def test_records(self):
        # 2,000 times: the standard deviation of the share is 0.5 %.
        source = random.Random(5)
        for hits, records in (3, 1000), (50, 1000), (600, 1000):
            found = 0
            for _ in range(2000):
                pair = [source.binomialvariate(records, hits / records)
                        for _ in range(2)]
                down, up = chance.of_difference(
                    *[chance.of_records(k, records) for k in pair])
                change = pair[1] - pair[0]
                found += change - down <= 0 <= change + up
            with self.subTest(hits=hits):
                self.assertTrue(0.93 <= found / 2000 <= 0.985,
                                found / 2000)

    def test_welch(self):
        source = random.Random(6)
        found = 0
        for _ in range(2000):
            before, after = [
                [source.gauss(mean, 1 + mean) for _ in range(runs)]
                for mean, runs in ((0, 5), (2, 8))]
            half, _ = chance.welch(before, after)
            change = statistics.mean(after) - statistics.mean(before)
            found += abs(change - 2) <= half
        self.assertTrue(0.935 <= found / 2000 <= 0.965, found / 2000)


if __name__ == '__main__':
    unittest.main()
