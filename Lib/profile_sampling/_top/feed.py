"""Seconds of a process that runs."""

import contextlib
import functools

from profile_sampling._data.merge import Merger
from profile_sampling._data.tables import Tables
from profile_sampling._profile import Profile
from profile_sampling._reach import look as looking
from profile_sampling._reach.processes import Refusal
from profile_sampling._reach.watch import Watch

# A process that hangs answers later; the first screen does not wait.
_LIMIT_S, _AT_ONCE_S = 0.3, 0.01
# Seconds that are added up at once.
_CHUNK = 60


class Feed:
    """Samples of a Process, and a look at it each second; a context."""

    def __init__(self, process, *, rate_hz, mine=(), timeline=False):
        self._watch = Watch(process, rate_hz, timeline=timeline)
        self._look = functools.partial(looking.look, process, mine=mine)
        self._first = None
        self._seconds = []

    def __enter__(self):
        try:
            self._first = self._look()
        except Refusal as exc:
            # What hangs may go on.
            if exc.reason != 'no-answer':
                raise
        self._watch.__enter__()
        self._watch.begin(_AT_ONCE_S)
        return self

    def __exit__(self, *exc):
        # Whoever comes next finds nobody here.
        try:
            with contextlib.suppress(Refusal):
                for _ in self._watch.last():
                    pass
        finally:
            self._watch.__exit__(*exc)

    def take(self):
        """Return the Tables since the last time, or None, and a Look; raise
        Refusal if there is no answer."""
        look, self._first = self._first, None
        if look is not None:
            return None, look
        if not self._watch.is_begun:
            self._watch.begin(_LIMIT_S)
        found = list(self._watch.slices(_LIMIT_S))
        tables = summed(found) if found else None
        if found:
            self._seconds.append(tables)
            if len(self._seconds) >= _CHUNK:
                self._seconds = [summed(self._seconds)]
        try:
            return tables, self._look()
        except Refusal:
            if tables is None:
                raise
            return tables, None

    @property
    def ending(self):
        return self._watch.ending

    @property
    def has_any(self):
        return bool(self._seconds)

    def save(self, path):
        """Write what was seen; raise ValueError if that is nothing."""
        Profile._from_tables(self.all()).save(path)

    def all(self, *, timeline=True):
        """Return the Tables of all seconds; raise ValueError if there are
        none."""
        if not self._seconds:
            raise ValueError('nothing was seen yet')
        return summed(self._seconds, timeline=timeline)


def summed(parts, *, timeline=True):
    """Return the sum of Tables of one process, with their time line or
    without, which is less work."""
    merger = Merger()
    for tables in parts:
        merger.add(tables if timeline else tables.with_timeline(None))
    return Tables(merger.raw() | {'pid': parts[0].pid})


class Family:
    """The Feeds of several processes, asked at once: as a Feed, their sum.

    *grow*() is called first each time, and may add some.

    each  for each of them what take() returned or raised last
    """

    def __init__(self, feeds, grow):
        self.feeds = feeds
        self.each = []
        self._grow = grow

    def take(self):
        self._grow()
        self.each = [_taken(feed) for feed in self.feeds]
        found = [its for its in self.each if not isinstance(its, Refusal)]
        if not found:
            raise self.each[0]
        tables = [its for its, _ in found if its is not None]
        looks = [look for _, look in found if look is not None]
        return (summed(tables) if tables else None,
                looking.joined(looks) if looks else None)

    @property
    def ending(self):
        return self.feeds[0].ending

    def save(self, path):
        Profile._from_tables(summed([feed.all() for feed in self.feeds
                                     if feed.has_any])).save(path)


class Member:
    """One of a Family, which is asked before."""

    def __init__(self, family, number):
        self._family = family
        self._number = number
        self.save = family.feeds[number].save

    def take(self):
        found = self._family.each[self._number]
        if isinstance(found, Refusal):
            raise found
        return found

    @property
    def ending(self):
        return self._family.feeds[self._number].ending


def _taken(feed):
    try:
        return feed.take()
    except Refusal as exc:
        return exc
