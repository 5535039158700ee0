"""Which share of a service's time is its own, and which is that of ticks.

Ticks are due in what bursts would take without them.  A tick takes a loop in
warm caches 15 to 25 us, and services two or three times as much: a burst of
0.1 ms, of which it meets every tenth, is a twentieth longer for it.  So it is
measured in the service itself, while the engine ticks and does not tick by
turns: machines change their speed from one second to the next.

Without ticks hardly any run sets a timer, either.  What timers cost a burst in
caches counts as taken by ticks here, but not for the engine, which cannot see
it: a service most of whose runs have a timer is served 2 to 3 % too much.
"""

import statistics
import time

import profile_sampling
from steady import TRIAL_S

TURN_NS = 50_000_000
# A subscriber has a thread that delivers, which starts and ends.
SETTLE_NS = 10_000_000
# A session that all but never ticks.
IDLE_RATE_HZ = 1
# Nothing is delivered meanwhile.
BATCH_SAMPLES, BATCH_SECONDS = 1_000_000, 3600
# Of services_burst.LENGTHS: several would be the larger part of the noise.
LENGTH = 1.0


class _Turns:
    """Has the engine tick at the rate, and not tick, by turns.

    begin() begins the first, which is without ticks; between_bursts() is to
    be called between bursts from then on, and close() at the end.  tick() and
    close() do as they say outside turns, too.

    burst_ns   of each turn, what its bursts took on average; those with
               ticks are at odd places
    """

    def __init__(self, bursts, rate_hz):
        self.burst_ns = []
        self._bursts = bursts
        self._rate_hz = rate_hz
        self._subscription = None

    def begin(self):
        self._before = None     # not settled yet
        self._end_ns = time.perf_counter_ns() + SETTLE_NS

    def between_bursts(self):
        now_ns = time.perf_counter_ns()
        if now_ns < self._end_ns:
            return
        bursts = self._bursts
        if self._before is None:
            self._end_ns = now_ns + TURN_NS
            self._before = bursts.total_ns, bursts.count
        elif bursts.count > self._before[1]:
            total_ns, count = self._before
            self.burst_ns.append((bursts.total_ns - total_ns)
                                 / (bursts.count - count))
            if self._subscription is None:
                self.tick()
            else:
                self.close()
            self.begin()

    def tick(self):
        self._subscription = profile_sampling.subscribe(
            lambda batch: None, rate_hz=self._rate_hz,
            batch_samples=BATCH_SAMPLES, batch_seconds=BATCH_SECONDS)

    def close(self):
        if self._subscription is not None:
            self._subscription.close()
            self._subscription = None

    def own_share(self):
        """None if there were too few turns.

        A median, as now and then somebody else has the CPU for as long as
        twenty bursts take."""
        turns = self.burst_ns
        ratios = [(before_ns + after_ns) / 2 / ticked_ns
                  for before_ns, ticked_ns, after_ns
                  in zip(turns[::2], turns[1::2], turns[2::2])]
        return statistics.median(ratios) if ratios else None


def own_share(service, rate_hz, seconds, longest_s):
    """What a burst takes without ticks, of what it takes with them."""
    profile_sampling.start('wall', rate_hz=IDLE_RATE_HZ)
    turns = _Turns(service.bursts, rate_hz)
    turns.tick()
    # Until threads have timers.
    service.run(TRIAL_S, longest_s, (LENGTH,))
    turns.close()
    turns.begin()
    service.run(seconds, longest_s, (LENGTH,), turns.between_bursts)
    turns.close()
    profile_sampling.stop()
    return turns.own_share()
