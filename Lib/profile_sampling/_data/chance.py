"""How much of a difference may be chance.

This file owns intervals and tests.  It must not know what a profile is.

An interval is a pair of distances: how far down and how far up of the
estimate the truth may be.  All are of 95 %.
"""

from math import ceil, hypot, log, sqrt

from profile_sampling._data import student

ALPHA = 0.05
# A normal variable is farther off than that in 5 % of cases.
_Z = 1.959963984540054
# It is below that in 90 % of cases.
_Z_FOUND = 1.2815515655446004
# So many standard errors of what follows by chance are taken off: what is left
# of a variance is not to be too little on average.
_NOISE = 0.7
# Nearer to 1 than that nothing is left of the digits of 1 - decay.
_NO_DECAY = 1 - 1e-6


def of_records(hits, records, stays=(0, 0)):
    """Return the interval of *hits* among *records* that fell by chance.

    *stays* are as in variance_left().

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
    left = sqrt(variance_left(hits, records, stays))
    return (max(share - middle + half, 0.0) * records * left,
            max(middle + half - share, 0.0) * records * left)


def variance_left(hits, records, stays):
    """Return how much of the variance of independent draws *hits* has.

    One record is drawn in each period, at random in it, so only what changes
    within a period falls by chance: of a long visit its ends.  How likely a
    moment is a hit if one at some distance is, hits that follow each other
    say.  *stays* are how many came after a hit, and how many had one two
    records before.  What they have in common beyond chance is taken for

        likeness * exp(-distance / length)

    of which the likeness is less than 1 if there is something faster.  What
    two moments of one period, which are a third of one apart on average, have
    in common does not vary.

    InternalDocs/profile_sampling/accounting.md has where this is from.
    """
    draws = hits * (1 - hits / records)
    if draws <= 0:
        return float(hits == 0)
    after, second = stays
    # The first of a visit comes after none.
    visits = max(hits - after, 1)
    ends = min(visits / draws, 1.0)
    # Of independent draws some follow each other, too.
    noise = _NOISE * ends * sqrt(visits * hits / records) / draws
    near = 1 - ends - noise
    if near <= 0:
        return 1.0
    far = (second - hits * hits / records) / draws - noise
    decay = min(max(far / near, 0.0), 1.0)
    if decay > _NO_DECAY:
        return 1 - near
    length = -1 / log(decay) if decay else 0.0
    # Of exp(-distance / length), the mean of two neighbours is its square.
    mean = length * (1 - decay)
    if mean * mean <= near:
        mean = sqrt(near)
        return (1 - mean) * _left_of_visits(mean)
    return max(1 - near / (mean * mean) * 2 * length * (1 - mean), ends / 3)


def _left_of_visits(mean):
    """(1 - 2 * length * (1 - mean)) / (1 - mean) for the length that has
    this *mean* = length * (1 - exp(-1 / length)): within 0.2 %."""
    return 1 + mean * (-1.036 + mean * (1.634 + mean * (
        -1.403 + mean * 0.472)))


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


def runs_needed(half, runs, effect):
    """Return how many runs a side would tell an *effect* in 90 % of cases.

    *half* is that of the interval that so many *runs* a side gave.
    """
    error = half / student.quantile(ALPHA, 2 * runs - 2)
    return ceil(runs * ((_Z + _Z_FOUND) * error / effect) ** 2)


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


def holm(chances):
    """Return p values adjusted for a single false one among all.

    Holm, Scandinavian Journal of Statistics 6, 1979.
    """
    adjusted = [0.0] * len(chances)
    most = 0.0
    for rank, place in enumerate(_order(chances)):
        most = max(most, min(chances[place] * (len(chances) - rank), 1.0))
        adjusted[place] = most
    return adjusted


def _order(chances):
    return sorted(range(len(chances)), key=chances.__getitem__)


def _mean(values):
    return sum(values) / len(values)


def _variance(values):
    mean = _mean(values)
    return sum([(value - mean) ** 2 for value in values]) / (
        len(values) - 1)
