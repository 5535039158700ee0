"""Which services are measured where, and for how long.

All of them at 1,000 Hz.  At 100 and 10,000 Hz some: one that waits for
files, one with threads, one with tasks, in bursts of 1.2 ms, alone on one
and on two CPUs, and the first of them in a crowd on one.
"""

import fnmatch
import itertools
from collections import namedtuple

from services_waits import SERVICES

BURSTS_MS = (0.1, 1.2, 5)
CPUS = (1, 2)
CROWDS = (0, 2)         # processes that spin beside it
RATE_HZ = 1000
OTHER_RATES_HZ = (100, 10_000)
OTHER_BURST_MS = 1.2
OTHER_SERVICES = ('poll', 'hand_over', 'tasks')
CROWDED_SERVICE = 'poll'

# Of peers, at 1,000 Hz, 5,000 samples, whose noise is 0.5 points: enough to
# compare.  Bars of 1.2 points for the worst of six lines, and of 0.5 for the
# mean, which noise alone makes 0.4 of so few, need less in dozens of cells.
# At 100 Hz it is a thousand, in a minute for each run.
BURST_S = {100: 10, 1000: 5.3, 10_000: 2}
OUR_BURST_S = {100: 10, 1000: 24, 10_000: 4}
# Requests take longer than short bursts, and a crowd takes the CPU: there ours
# go on for 5,000 samples of bursts of 0.1 ms.
LONGEST_S, OUR_LONGEST_S, OUR_LONGEST_CROWDED_S = 75, 120, 240
QUICK_SHARE = 0.1


class Cell(namedtuple('Cell', 'service burst_ms cpus crowd rate_hz')):
    __slots__ = ()

    @property
    def name(self):
        crowd = 'crowd' if self.crowd else 'alone'
        return (f'{self.service}/{self.burst_ms:g}ms/{self.cpus}cpu/{crowd}/'
                f'{self.rate_hz}hz')

    @property
    def group(self):
        """What a table is about: everything but service and burst."""
        return self.cpus, self.crowd, self.rate_hz

    def lengths(self, is_ours, quick):
        """(seconds of bursts, seconds after which a run ends anyway)."""
        share = QUICK_SHARE if quick else 1
        seconds = OUR_BURST_S if is_ours else BURST_S
        longest_s = LONGEST_S
        if is_ours:
            longest_s = (OUR_LONGEST_CROWDED_S if self.crowd
                         else OUR_LONGEST_S)
        return seconds[self.rate_hz] * share, longest_s * share


def matches(name, pattern):
    """A part of the family that is not a cell has a name, too."""
    return pattern is None or fnmatch.fnmatch(name, pattern)


def cells(pattern):
    """The cells with a name like the pattern; all of them if it is None."""
    found = [Cell(service, burst_ms, cpus, crowd, RATE_HZ)
             for cpus, crowd, service, burst_ms in itertools.product(
                 CPUS, CROWDS, SERVICES, BURSTS_MS)]
    for rate_hz, cpus, crowd, service in itertools.product(
            OTHER_RATES_HZ, CPUS, CROWDS, OTHER_SERVICES):
        if not crowd or (service == CROWDED_SERVICE and cpus == 1):
            found.append(Cell(service, OTHER_BURST_MS, cpus, crowd, rate_hz))
    return [cell for cell in found if matches(cell.name, pattern)]
