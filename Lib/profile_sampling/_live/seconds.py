"""The last seconds of a process, for whoever asks."""

import contextlib
import re
import threading
import time
from collections import deque

from profile_sampling._reach.sources import Sources
from profile_sampling._top import loop
from profile_sampling._top.feed import Feed, summed
from profile_sampling._top.screen import Screen

# Seconds that a window may have; 0: all since it was begun.
WINDOWS = 10, 60, 300, 0
RATE_HZ = 100
MAX_SECONDS = max(WINDOWS)
# So many are kept one by one: the page's history, and a window before it.
_KEPT_S = 360 + MAX_SECONDS
# A process that runs no Python code hands nothing over.
_LATE_S = 3.0


class Seconds:
    """A process, second by second, from run() to stop().

    process   the Process
    screen    the Screen of top, which says the three lines
    at        when the last second ended, on time.time()'s clock; 0: none has
    mine      patterns of names of files that are mine
    sources   the text of its files
    """

    def __init__(self, process, *, rate_hz=RATE_HZ, mine=(), lease_s=None):
        """*lease_s*: end when nobody has asked for so long."""
        self.process = process
        self.mine = mine
        self.sources = Sources(process)
        self.screen = Screen(process, mine=mine)
        self.at = 0.0
        self._feed = Feed(process, rate_hz=rate_hz, timeline=True,
                          mine=[re.compile(pattern) for pattern in mine])
        self._lease_s = lease_s
        self._asked_at = time.monotonic()
        self._num_asking = 0
        self._last = deque(maxlen=_KEPT_S)
        self._taken = 0
        self._is_over = False
        self._changed = threading.Condition()
        self._sums = {}

    def run(self):
        """Take seconds until there are no more; raise Refusal."""
        try:
            with self._feed:
                due = time.monotonic()
                while not self._is_done():
                    with self._changed:
                        loop.take(self.screen, self)
                        due = max(due + loop.SECOND_S, time.monotonic())
                        self._changed.wait_for(
                            lambda: self._is_over, due - time.monotonic())
        finally:
            self.stop()

    def _is_done(self):
        return (self._is_over or self.screen.ended is not None
                or self._lease_s is not None and not self._num_asking
                and time.monotonic() - self._asked_at > self._lease_s)

    def take(self):
        """Take one more second, as a Feed does."""
        tables, look = self._feed.take()
        if tables is not None:
            self._last.append(tables)
            self._taken += 1
            self._sums = {}
            self.at = time.time()
            self._changed.notify_all()
        return tables, look

    @property
    def ending(self):
        return self._feed.ending

    def stop(self):
        with self._changed:
            self._is_over = True
            self._changed.notify_all()

    @contextlib.contextmanager
    def _asking(self):
        """Hold the lock, and the lease while it is waited."""
        with self._changed:
            self._num_asking += 1
            try:
                yield
            finally:
                self._num_asking -= 1
                self._asked_at = time.monotonic()

    @property
    def is_over(self):
        return self._is_over

    def window(self, seconds, *, timeline=False):
        """Return the Tables of the last *seconds* (0: of all), or None; wait
        a moment for the first one."""
        with self._asking():
            self._changed.wait_for(lambda: self._taken or self._is_over,
                                   _LATE_S)
            if not self._taken:
                return None
            key = seconds, timeline
            if key not in self._sums:
                self._sums[key] = (
                    self._feed.all(timeline=timeline)
                    if not seconds or seconds >= self._taken
                    else summed(list(self._last)[-seconds:],
                                timeline=timeline))
            return self._sums[key]

    def sides(self, moment, seconds):
        """Return the Tables of as many seconds before a moment (Unix time) as
        after, at most *seconds* (0: as many as there are), up to now; None:
        there are none on one side."""
        with self._asking():
            last = list(self._last)
        number = sum([tables.start_time_ns + tables.end_ns <= moment * 1e9
                      for tables in last])
        count = min(number, len(last) - number, seconds or len(last))
        if not count:
            return None
        return [summed(part, timeline=False) for part in (
            last[number - count:number], last[-count:])]

    def answers(self, seconds):
        """Return the three lines about a window, and its Sums."""
        with self._changed:
            windows = self.screen.windows
            window = windows.last(seconds) if seconds else windows.all
            return self.screen.answers_of(window), window

    def next(self, seconds):
        """Wait for so many more seconds; return their Tables, or None if
        there came none."""
        end = time.monotonic() + seconds + _LATE_S
        with self._asking():
            begin = self._taken
            while (self._taken < begin + seconds and not self._is_over
                   and time.monotonic() < end):
                self._changed.wait(loop.SECOND_S)
            found = list(self._last)[-(self._taken - begin):]
            return summed(found) if self._taken > begin else None

