"""How far the shares that a profiler gave to six lines are from the truth.

Errors are in percentage points of the burst.
"""

import itertools

from profile_sampling._data.losses import overhead_ns

HALF = 0.5
NS_PER_S = 1_000_000_000


def shares(values):
    """Each as a share of the sum."""
    total = sum(values)
    return [value / total for value in values]


def first_half(found, true):
    """The share of the first half of the burst, given shares of lines; one
    that lies in both halves counts with its part of the first."""
    half = 0
    for begin, end, share in zip(
            itertools.accumulate(true, initial=0),
            itertools.accumulate(true), found):
        inside = min(max(HALF - begin, 0), end - begin)
        half += share * inside / (end - begin)
    return half


class Score:
    """Of one clock.

    errors   of each line, in points
    worst    the largest, without its sign
    mean     of all, without their signs
    noise    what the worst line would vary by if its samples were drawn at
             random: one standard deviation, in points
    half     the share of the first half; the truth is 0.5
    """

    def __init__(self, weights, true, samples):
        found, true = shares(weights), shares(true)
        self.errors = [(own - due) * 100 for own, due in zip(found, true)]
        self.mean = sum(map(abs, self.errors)) / len(self.errors)
        self.worst, share = max([(abs(error), due) for error, due
                                 in zip(self.errors, true)])
        self.noise = (share * (1 - share) / samples) ** 0.5 * 100
        self.half = first_half(found, true)


def _score(weights, true, samples):
    """The Score, or None if there is nothing on the lines."""
    return Score(weights, true, samples) if sum(weights) else None


class Scores:
    """Of one run.

    wall, cpu  Score, or None; cpu also when the profiler does not tell
    samples    on the six lines
    whole      what all lines were given, of what they took; None for peers
    served     samples, of the ticks that fell into them; ours have deadlines
               in the program's own time, without that which ticks take of it
               (services_own_time.py), or None.  That is measured without a
               crowd: in one, whose time is in the bursts, too, up to 3 % too
               much are served
    biased     captures away from their tick, of all captures; None for peers
    late       deadlines that were answered with a later one, of all; None for
               peers
    hooks      CPU time that hooks at the GIL took, and
    ticks      that captures and drains took, of the service's, by the
               profiler's own account; None for peers
    own_cpu    CPU time of the profiler, of the service's: hooks and ticks,
               or the process of a peer
    """

    def __init__(self, result, rate_hz):
        found = result['found']
        self.samples = sum(found['count'])
        true_ns = result['true_wall_ns']
        stats = result.get('stats')
        own_share = result.get('own_share', 1)
        self.served = None
        if own_share is not None:
            self.served = self.samples / (
                sum(true_ns) * own_share / NS_PER_S * rate_hz)
        weights = found.get('wall_ns') or found['weight']
        self.wall = _score(weights, true_ns, self.samples)
        self.whole = (sum(found['wall_ns']) / sum(true_ns)
                      if 'wall_ns' in found else None)
        self.cpu = None
        if 'cpu_ns' in found:
            self.cpu = _score(found['cpu_ns'], result['calibrated_cpu_ns'],
                              self.samples)
        self.biased = self.late = self.hooks = self.ticks = None
        cpu_ns = result['cpu_ns']
        if stats is not None:
            biased = stats.get('captures_biased', 0)
            taken = (stats.get('captures', 0)
                     + stats.get('captures_merged', 0) + biased)
            self.biased = biased / max(taken, 1)
            late = stats.get('ticks_late', 0)
            self.late = late / max(stats.get('ticks', 0) + late, 1)
            self.own_cpu = overhead_ns(stats) / cpu_ns
            self.hooks = stats['overhead_hooks_ns'] / cpu_ns
            self.ticks = self.own_cpu - self.hooks
        else:
            self.own_cpu = found['own_cpu_ns'] / cpu_ns
