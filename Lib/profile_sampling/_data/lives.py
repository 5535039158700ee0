"""What is counted of tasks and of requests, exactly, beside the samples.

A class of tasks is the function that they run, the outermost coroutine.
Counters are of a whole profile: no part of its samples has a part of them.
"""

from profile_sampling._data.histogram import CORE_BITS, Histogram
from profile_sampling._data.sums import added
from profile_sampling._data.values import FUNCTION_KINDS, Function, Value


class TaskClass(Value):
    """Counters of the tasks that run one function.

    function         the Function; '[other tasks]' stands for many
    finished         how many have ended
    cancelled        how many of these by being cancelled
    running_ns, loop_wait_ns, awaiting_ns
                     what they spent their lives in
    longest_step_ns  the longest that one ran without giving way to others
    longest_life_ns  of those that ended
    steps            how often they were run
    lives_ns         the lives of those that ended, all together
    lives            Histogram of the lives of those that ended
    """

    __slots__ = ('function', 'finished', 'cancelled', 'running_ns',
                 'loop_wait_ns', 'awaiting_ns', 'longest_step_ns',
                 'longest_life_ns', 'steps', 'lives_ns', 'lives')

    @property
    def what(self):
        return self.function

    def plus(self, other):
        """Return the counters of both."""
        return TaskClass(
            self.function, self.finished + other.finished,
            self.cancelled + other.cancelled,
            self.running_ns + other.running_ns,
            self.loop_wait_ns + other.loop_wait_ns,
            self.awaiting_ns + other.awaiting_ns,
            max(self.longest_step_ns, other.longest_step_ns),
            max(self.longest_life_ns, other.longest_life_ns),
            self.steps + other.steps, self.lives_ns + other.lives_ns,
            self.lives.plus(other.lives))


class Latency(Value):
    """How long requests took: blocks of one value of a label.

    key, value  the label
    roots       tuple of the names of the functions of tasks in which the
                blocks were: other tasks with the label were started there
    count       how many there were
    sum_ns      all of them together
    longest_ns  the longest one
    times       Histogram of them
    spent       tuple of (bucket, count, sum_ns, running_ns, loop_wait_ns,
                gil_wait_ns), by bucket: of the blocks of a bucket of which it
                is known, how many they are, how long they took and what they
                did
    """

    __slots__ = ('key', 'value', 'roots', 'count', 'sum_ns', 'longest_ns',
                 'times', 'spent')

    @property
    def what(self):
        return self.key, self.value

    def plus(self, other):
        """Return the counters of both."""
        return Latency(
            self.key, self.value,
            tuple(sorted({*self.roots, *other.roots})),
            self.count + other.count, self.sum_ns + other.sum_ns,
            max(self.longest_ns, other.longest_ns),
            self.times.plus(other.times),
            _united(self.spent, other.spent))

    def split(self, share):
        """Return the sums of *spent*, count first, of the slowest and of all
        others.

        The slowest are those of whole buckets, until they are at least that
        share of all.
        """
        slowest, others = (0,) * 5, (0,) * 5
        wanted = share * sum([count for _, count, *_ in self.spent])
        for _, *sums in sorted(self.spent, reverse=True):
            if slowest[0] < wanted:
                slowest = added(slowest, sums)
            else:
                others = added(others, sums)
        return slowest, others


def _united(one, other):
    found = {}
    for bucket, *sums in (*one, *other):
        found[bucket] = added(found.get(bucket, (0,) * len(sums)), sums)
    return tuple([(bucket, *sums) for bucket, sums in sorted(found.items())])


def of_core(function, *counters):
    """Return the TaskClass of a row of the core; *function* is one, too."""
    *names, kind = function
    *numbers, lives = counters
    return TaskClass(Function(*names, FUNCTION_KINDS[kind]), *numbers,
                     Histogram.of_bytes(CORE_BITS, lives))


def united(rows):
    """Return a tuple of rows of which those of one thing are one."""
    found = {}
    for row in rows:
        known = found.get(row.what)
        found[row.what] = row if known is None else known.plus(row)
    return tuple(found.values())
