"""Student's t distribution.

This file owns its probabilities and its quantiles.  It must not know what is
tested.

P(|T| > t) with n degrees of freedom is the regularised incomplete beta
function I_x(n/2, 1/2) at x = n / (n + t*t) (Abramowitz & Stegun, Handbook of
Mathematical Functions, 26.7.1 and 26.5.27), and that is a continued fraction
(26.5.8), worked out from its front by Lentz's method as Thompson & Barnett
describe it (J. Comput. Phys. 64, 1986).
"""

from math import exp, isinf, lgamma, log, log1p

# As near as floats come, and terms enough for it: about the square root of
# the larger argument is needed.
_EPSILON = 1e-15
_MAX_TERMS = 10_000
# In place of a denominator that is 0.
_TINY = 1e-300


def two_sided(t, freedom):
    """Return the probability of a |T| of at least |t|.

    *freedom*, the degrees of freedom, need not be a whole number.
    """
    if freedom <= 0:
        raise ValueError(f'degrees of freedom must be positive: {freedom}')
    if isinf(t):
        return 0.0
    square = t * t
    return incomplete_beta(freedom / 2, 0.5, freedom / (freedom + square),
                           square / (freedom + square))


def quantile(probability, freedom):
    """Return the t that |T| exceeds with a *probability*."""
    if not 0 < probability < 1:
        raise ValueError(f'a probability is between 0 and 1: {probability}')
    low, high = 0.0, 1.0
    while two_sided(high, freedom) > probability:
        low, high = high, 2 * high
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        if two_sided(middle, freedom) > probability:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def incomplete_beta(a, b, x, rest=None):
    """Return I_x(a, b); *rest* is 1 - x, if that is known better."""
    if rest is None:
        rest = 1 - x
    if not (0 <= x <= 1 and 0 <= rest <= 1):
        raise ValueError(f'x must be from 0 to 1, but is {x}')
    if x == 0 or rest == 0:
        return float(rest == 0)
    # The fraction converges fast on one side of the mean only.
    if x > (a + 1) / (a + b + 2):
        return 1 - incomplete_beta(b, a, rest, x)
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b)
                + a * (log(x) if x < 0.5 else log1p(-rest))
                + b * (log1p(-x) if x < 0.5 else log(rest)))
    return front / a * _fraction(a, b, x)


def _fraction(a, b, x):
    """Return 1/(1+ d1/(1+ d2/(1+ ...)))."""
    value = above = 1.0
    below = 0.0
    for term in range(1, _MAX_TERMS):
        m, odd = divmod(term, 2)
        if odd:
            factor = -(a + m) * (a + b + m) / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            factor = m * (b - m) / ((a + 2 * m - 1) * (a + 2 * m))
        factor *= x
        below = 1 / (1 + factor * below or _TINY)
        above = 1 + factor / above or _TINY
        value *= above * below
        if abs(above * below - 1) < _EPSILON:
            return 1 / value
    raise ArithmeticError(f'no value of I_{x}({a}, {b}) was found')
