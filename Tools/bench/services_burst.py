"""The work of a service: a burst of six lines that know how long they took.

The lines follow each other without a gap: each begins with a look at the
clock and ends with the look of the next one.  With time.perf_counter_ns(),
which needs no system call, nothing in a burst invites the kernel to take
the CPU away.

The CPU clock of a thread cannot be read without a system call.  So one
burst in a few is not of the truth but for calibration: the same code under
another file name, which the clock of CPU time is read in.  It is drawn at
random, and tells how the CPU time of all bursts is shared by their lines.
"""

import random
import statistics
import time
import types

from truth_work import Work

# Kinds of work in truth_work, and shares of the burst.  In a burst of 1.2 ms
# they take 60 to 400 us.  The first three take half of it.
KINDS = ('python_loop', 'hash_small', 'call_sum', 'python_calls',
         'call_fullmatch', 'call_sorted')
SHARES = (0.18, 0.07, 0.25, 0.12, 0.33, 0.05)
# Bursts are of several lengths, so that they and ticks keep no step.
LENGTHS = (0.8, 0.9, 1.0, 1.1, 1.2)
PLAN_ROUNDS = 3
PLAN_BURSTS = 25
CALIBRATION_SHARE = 0.2     # of the bursts


def burst(clock, functions, arguments):
    """Run the six lines; return what each took on the clock, in ns."""
    first, second, third, fourth, fifth, sixth = functions
    a, b, c, d, e, f = arguments
    t0, _ = clock(), first(a)
    t1, _ = clock(), second(b)
    t2, _ = clock(), third(c)
    t3, _ = clock(), fourth(d)
    t4, _ = clock(), fifth(e)
    t5, _ = clock(), sixth(f)
    t6 = clock()
    return t1 - t0, t2 - t1, t3 - t2, t4 - t3, t5 - t4, t6 - t5


FUNCTION = burst.__name__
FILENAME = burst.__code__.co_filename
_FIRST_LINE = burst.__code__.co_firstlineno + 4
LINES = tuple(range(_FIRST_LINE, _FIRST_LINE + len(SHARES)))

_calibration_burst = types.FunctionType(
    burst.__code__.replace(co_filename='<calibration>'), globals())


def _clock_cost_ns(clock):
    """What of the time between two looks at a clock is the clock's own."""
    costs_ns = []
    for _ in range(1000):
        before_ns, after_ns = clock(), clock()
        costs_ns.append(after_ns - before_ns)
    return statistics.median(costs_ns)


class Bursts:
    """Bursts of about `ms`; each call runs one, two threads may not call at
    a time.

    count     how many there were, without those for calibration
    wall_ns   what the lines took in these
    total_ns  the sum
    cpu_ns    CPU time of the lines in those for calibration
    """

    def __init__(self, ms, seed):
        self._rng = random.Random(seed)
        self._cost_ns = _clock_cost_ns(time.thread_time_ns)
        self._plan(Work(), ms)
        self.begin()

    def _plan(self, work, ms):
        """Make arguments with which the lines take their shares of `ms`.
        What Work calibrates is calls that are far longer, and follow each
        other: so adjust them in bursts."""
        self._functions = [work.plan(kind, 1)[0] for kind in KINDS]
        planned = due = [ms * share for share in SHARES]
        for _ in range(PLAN_ROUNDS):
            self._planned = {
                length: [work.plan(kind, own_ms * length)[1]
                         for kind, own_ms in zip(KINDS, planned)]
                for length in LENGTHS}
            self.begin()
            while self.count < PLAN_BURSTS:
                self()
            planned = [own_ms * due_ms * self.count * 1e6 / took_ns
                       for own_ms, due_ms, took_ns
                       in zip(planned, due, self.wall_ns)]

    def begin(self, lengths=LENGTHS):
        """Forget what there was; bursts have these lengths now."""
        self._arguments = [self._planned[length] for length in lengths]
        self.count = self.total_ns = 0
        self.wall_ns = [0] * len(SHARES)
        self.cpu_ns = [0] * len(SHARES)

    def __call__(self):
        arguments = self._rng.choice(self._arguments)
        if self._rng.random() < CALIBRATION_SHARE:
            for i, ns in enumerate(_calibration_burst(
                    time.thread_time_ns, self._functions, arguments)):
                self.cpu_ns[i] += ns - self._cost_ns
            return
        for i, ns in enumerate(burst(time.perf_counter_ns, self._functions,
                                     arguments)):
            self.wall_ns[i] += ns
            self.total_ns += ns
        self.count += 1
