"""Student's t distribution, against printed tables, identities and SciPy."""

import math
import unittest

from profile_sampling._data import student

# Abramowitz & Stegun, table 26.10: the t that |T| exceeds with a probability
# of 0.2, 0.05 and 0.01.
_TABLE = {
    1: (3.078, 12.706, 63.657), 2: (1.886, 4.303, 9.925),
    4: (1.533, 2.776, 4.604), 8: (1.397, 2.306, 3.355),
    18: (1.330, 2.101, 2.878), 30: (1.310, 2.042, 2.750),
    120: (1.289, 1.980, 2.617),
}


class TableTest(unittest.TestCase):

    def test_quantiles(self):
        for freedom, row in _TABLE.items():
            for probability, t in zip((0.2, 0.05, 0.01), row):
                with self.subTest(freedom=freedom, probability=probability):
                    self.assertEqual(
                        round(student.quantile(probability, freedom), 3), t)

    def test_closed_forms(self):
        # One degree of freedom is Cauchy's distribution, two have a root.
        for t in 1e-6, 0.3, 1, 2.5, 40, 1e6:
            with self.subTest(t=t):
                self.assertAlmostEqual(
                    student.two_sided(t, 1) / (2 / math.pi
                                               * math.atan2(1, t)), 1, 11)
                self.assertAlmostEqual(
                    student.two_sided(t, 2),
                    1 - t / math.sqrt(2 + t * t), 11)

    def test_normal_in_the_limit(self):
        for t in 0.5, 1.96, 4:
            self.assertAlmostEqual(student.two_sided(t, 1e8),
                                   math.erfc(t / math.sqrt(2)), 7)

    def test_ends(self):
        self.assertEqual(student.two_sided(0, 5), 1)
        self.assertEqual(student.two_sided(math.inf, 5), 0)
        self.assertEqual(student.two_sided(-3, 5), student.two_sided(3, 5))
        self.assertEqual(student.incomplete_beta(2, 3, 0), 0)
        self.assertEqual(student.incomplete_beta(2, 3, 1), 1)

    def test_incomplete_beta(self):
        # With whole numbers it is a sum of a binomial distribution (26.5.24).
        for a, n, x in (3, 7, 0.25), (10, 12, 0.9), (1, 40, 0.01):
            expected = sum([math.comb(n, k) * x ** k * (1 - x) ** (n - k)
                            for k in range(a, n + 1)])
            self.assertAlmostEqual(
                student.incomplete_beta(a, n - a + 1, x), expected, 12)

    def test_wrong_arguments(self):
        for call in (lambda: student.two_sided(1, 0),
                     lambda: student.quantile(0, 5),
                     lambda: student.quantile(1, 5),
                     lambda: student.incomplete_beta(1, 1, 1.5)):
            self.assertRaises(ValueError, call)

    def test_scipy(self):
        try:
            from scipy import stats
        except ImportError:
            self.skipTest('needs scipy')
        for freedom in 1, 1.7, 4, 7.3, 18, 250, 1e4:
            for t in 1e-3, 0.4, 2, 9, 30:
                with self.subTest(freedom=freedom, t=t):
                    expected = 2 * stats.t.sf(t, freedom)
                    self.assertAlmostEqual(
                        student.two_sided(t, freedom) / expected, 1, 9)


if __name__ == '__main__':
    unittest.main()
