"""How long requests took, kept while they end.

A handler of signals may end a request while another one is being counted, in
the same thread: so a request is put into a queue, which is one step, and counted
by who does not disturb anybody.

Nothing is kept while nobody collects.  What writes the profile of -X
sampleprof has modules of its own, this one too: what all of them share hangs
on a module that is always there.
"""

import _thread
import _weakref
import os
from _collections import deque

from profile_sampling._data.histogram import BITS, Histogram, bucket
from profile_sampling._data.lives import Latency
from profile_sampling._data.sums import added

# Values of labels, beyond which requests are of others; and roots of a value.
_MAX_VALUES, _MAX_ROOTS = 1024, 16
# Requests that wait to be counted.
_MAX_PENDING = 256
OTHERS = '[others]'


class _Shared:
    """Who collects in this interpreter.

    lock        held while requests are counted
    collectors  list of weak references to Collectors: a block that is dropped
                ends without a word
    session     the Collector of the session, or None
    """

    def __init__(self):
        self.lock = _thread.RLock()
        self.collectors = []
        self.session = None


def _find_shared():
    found = getattr(_thread, '_sampled_requests', None)
    if found is None:
        found = _thread._sampled_requests = _Shared()
    return found


_shared = _find_shared()


class Collector:
    """What has ended since it began; see collect()."""

    def __init__(self):
        # By (key, value): count, sum, longest, {bucket: count}, {root},
        # {bucket: [count, sum, running, loop wait, GIL wait]}.
        self.rows = {}
        # (what, nanoseconds, root, what it spent) that are not in there yet.
        self.pending = deque()
        self.is_counting = False

    def count(self):
        """Count what is pending; the lock is held."""
        if self.is_counting:
            # By what was interrupted here.
            return
        self.is_counting = True
        try:
            while self.pending:
                self._add(*self.pending.popleft())
        finally:
            self.is_counting = False

    def _add(self, what, ns, root, spent):
        key, _ = what
        if what not in self.rows and len(self.rows) >= _MAX_VALUES:
            what = key, OTHERS
        row = self.rows.setdefault(what, [0, 0, 0, {}, set(), {}])
        row[0] += 1
        row[1] += ns
        row[2] = max(row[2], ns)
        number = bucket(ns, BITS)
        row[3][number] = row[3].get(number, 0) + 1
        if root is not None and len(row[4]) < _MAX_ROOTS:
            row[4].add(root)
        if spent is not None:
            row[5][number] = added(row[5].get(number, (0,) * 5),
                                   (1, ns, *spent))


def collect():
    """Return a Collector of what ends from now on."""
    collector = Collector()
    reference = _weakref.ref(collector, _forget)
    with _shared.lock:
        _shared.collectors.append(reference)
    return collector


def _forget(reference):
    # It may happen at any moment, also while this thread has the lock.
    try:
        _shared.collectors.remove(reference)
    except ValueError:
        pass


def taken(collector, *, clear=False):
    """Return a list of Latency: what it has collected."""
    with _shared.lock:
        collector.count()
        found = [_latency(what, row) for what, row in collector.rows.items()]
        if clear:
            collector.rows = {}
    return found


def taken_as_bytes(collector):
    """Return what has ended since the last time, as a literal of Python."""
    return repr([(row.key, row.value, row.roots, row.count, row.sum_ns,
                  row.longest_ns, row.times.counts, row.spent)
                 for row in taken(collector, clear=True)]).encode(
                     'utf-8', 'backslashreplace')


def end(collector):
    """Return the same, and collect no more."""
    with _shared.lock:
        _shared.collectors[:] = [
            reference for reference in _shared.collectors
            if reference() is not collector]
    return taken(collector)


def _latency(what, row):
    count, sum_ns, longest_ns, counts, roots, spent = row
    return Latency(*what, tuple(sorted(roots)), count, sum_ns, longest_ns,
                   Histogram(BITS, [counts.get(number, 0) for number
                                    in range(max(counts) + 1)]),
                   tuple([(number, *sums) for number, sums
                          in sorted(spent.items())]))


def is_collecting():
    return bool(_shared.collectors)


def add(labels, ns, root, spent):
    """Add a request: its labels, how long it took, the name of the function
    that its task runs, or None, and what it spent, or None."""
    for reference in list(_shared.collectors):
        collector = reference()
        if collector is None:
            continue
        for key, value in labels.items():
            if value is not None:
                collector.pending.append(((key, value), max(ns, 0), root,
                                          spent))
        if len(collector.pending) > _MAX_PENDING and (
                _shared.lock.acquire(blocking=False)):
            try:
                collector.count()
            finally:
                _shared.lock.release()


def begin_session():
    end_session()
    _shared.session = collect()


def of_session(*, clear=False):
    """Return a list of Latency, of the session so far."""
    if _shared.session is None:
        return []
    return taken(_shared.session, clear=clear)


def end_session():
    """Return the same, of a session that is over."""
    collector, _shared.session = _shared.session, None
    return [] if collector is None else end(collector)


def _begin_in_child():
    """The child of a fork has ended no request.

    Blocks that were in progress are its parent's, and end as such.
    """
    _shared.lock = _thread.RLock()
    if _shared.session is not None:
        _shared.session.__init__()


if hasattr(os, 'register_at_fork'):
    os.register_at_fork(after_in_child=_begin_in_child)
