"""How much of a difference may be chance.

This file owns intervals and tests.  It must not know what a profile is.

An interval is a pair of distances: how far down and how far up of the
estimate the truth may be.  All are of 95 %.
"""

from math import hypot, sqrt

from profile_sampling._data import student

ALPHA = 0.05
# A normal variable is farther off than that in 5 % of cases.
_Z = 1.959963984540054


def of_records(hits, records):
    """Return the interval of *hits* among *records* that fell by chance.

    Wilson's interval (J. Am. Stat. Assoc. 22, 1927): the textbook's error
    sqrt(hits * (1 - share)), but asked of the truth, not of what was seen.
    So it is right for few hits as well: 0 hits are from 0 to about 4.
    """
    if not records:
        return 0.0, 0.0
    share = hits / records
    spread = _Z * _Z / records
    middle = (share + spread / 2) / (1 + spread)
    half = sqrt(spread * share * (1 - share) + spread * spread / 4) / (
        1 + spread)
    return (max(share - middle + half, 0.0) * records,
            max(middle + half - share, 0.0) * records)


def of_difference(before, after):
    """Return the interval of a difference of two that have intervals.

    The squares of the distances that matter are added (Newcombe, Statistics
    in Medicine 17, 1998).
    """
    return (hypot(after[0], before[1]), hypot(after[1], before[0]))


def of_mean(intervals):
    """Return the interval of the mean of independent estimates."""
    down, up = zip(*intervals)
    return hypot(*down) / len(down), hypot(*up) / len(up)


def welch(before, after, floor=0.0):
    """Return (half the interval, p) of the difference of two means.

    Welch's t test (Biometrika 34, 1947), with two sides.  *floor* is the
    variance that a single run has at least: five runs may agree by chance.
    """
    parts = [max(_variance(runs), floor) / len(runs)
             for runs in (before, after)]
    change = _mean(after) - _mean(before)
    error = sqrt(sum(parts))
    if error == 0:
        return 0.0, float(change == 0)
    freedom = 1 / sum([
        (part / sum(parts)) ** 2 / (len(runs) - 1)
        for part, runs in zip(parts, (before, after))])
    return (error * student.quantile(ALPHA, freedom),
            student.two_sided(change / error, freedom))


def benjamini_hochberg(chances):
    """Return p values adjusted for the share of false ones among those found.

    Benjamini & Hochberg, J. R. Stat. Soc. B 57, 1995: of the rows whose
    adjusted p is at most 0.05, 5 % are expected to be false.
    """
    adjusted = [0.0] * len(chances)
    least = 1.0
    for rank, place in sorted(enumerate(_order(chances), 1), reverse=True):
        least = min(least, chances[place] * len(chances) / rank)
        adjusted[place] = least
    return adjusted


def _order(chances):
    return sorted(range(len(chances)), key=chances.__getitem__)


def _mean(values):
    return sum(values) / len(values)


def _variance(values):
    mean = _mean(values)
    return sum([(value - mean) ** 2 for value in values]) / (
        len(values) - 1)
