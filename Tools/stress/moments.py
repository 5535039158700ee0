"""When the program did what its profiles are held against.

Owns the moments around calls of the profiler, as the callers read them.  In
any call a busy machine may give the CPU to others, and another thread may get
the GIL; so what a call takes counts neither for the least that a profile must
hold nor against the most.  It must not use the profiler, or take its word.
"""

import time

# Between the clock that a profile's beginning is told by and the monotonic
# one, which may be slewed by 500 ppm against each other.
CLOCKS_APART_NS = 2_000_000
OFFSET_READINGS = 20


class Moments:
    """The clock right before something was done, and right after."""

    __slots__ = ('before_ns', 'after_ns')

    def __init__(self, before_ns=None, after_ns=None):
        self.before_ns = before_ns
        self.after_ns = after_ns

    def __enter__(self):
        self.before_ns = time.monotonic_ns()
        return self

    def __exit__(self, *exc_info):
        self.after_ns = time.monotonic_ns()


class History:
    """When sessions began, and when blocks and regions were entered."""

    def __init__(self):
        # list.append() needs no lock, which a fork could find taken.
        self._beginnings = []
        self._blocks = []

    def began(self, moments):
        self._beginnings.append(moments)

    def began_before(self):
        """The command line has begun one; only its profile knows when."""
        self.began(Moments(None, time.monotonic_ns()))

    def was_inside(self, entering, leaving):
        self._blocks.append((entering, leaving))

    def beginning(self, claimed_ns):
        """Moments around what began then, or None if nothing did."""
        first_ns = claimed_ns - CLOCKS_APART_NS
        last_ns = claimed_ns + CLOCKS_APART_NS
        found = [moments for moments in self._beginnings
                 if (moments.before_ns or 0) <= last_ns
                 and first_ns <= moments.after_ns]
        if not found:
            return None
        # It may have been any of those.
        return Moments(min([moments.before_ns or first_ns
                            for moments in found]),
                       max([moments.after_ns for moments in found]))

    def inside(self, beginning, ending):
        """Disjoint times of a session with somebody surely inside."""
        times = sorted([
            (max(entering.after_ns, beginning.after_ns),
             min(leaving.before_ns, ending.before_ns))
            for entering, leaving in self._blocks
            # What was entered before is inside of another session.
            if entering.before_ns >= beginning.after_ns
            or entering.after_ns == beginning.after_ns])
        last_ns = 0
        for begin_ns, end_ns in times:
            begin_ns = max(begin_ns, last_ns)
            if begin_ns < end_ns:
                yield begin_ns, end_ns
                last_ns = end_ns


def wall_clock_offset_ns():
    """What to add to the monotonic clock to get time.time_ns()."""
    def read():
        with Moments() as moments:
            now_ns = time.time_ns()
        return (moments.after_ns - moments.before_ns,
                now_ns - moments.before_ns)
    # Between some two readings nobody took the CPU away.
    return min([read() for _ in range(OFFSET_READINGS)])[1]
