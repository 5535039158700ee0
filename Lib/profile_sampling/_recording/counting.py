"""Exact calls of a session or a block."""

import os

from profile_sampling import _clock, _core
from profile_sampling._data import counts
from profile_sampling._recording.watching import Watch

# What begins and ends a block, and what a snapshot is made of, is not the
# program's.
_OWN = ('profile_sampling._core', 'profile_sampling._data.',
        'profile_sampling._profile', *[
            f'profile_sampling._recording.{name}'
            for name in ('counting', 'latencies', 'session',
                         'watching')])
# In names of files: code that is not the user's own, as
# profile_sampling._data.origins says of files.
_LIBRARIES = tuple(filter(None, (
    '/site-packages/', '/dist-packages/',
    # The folder of the standard library; none if we are frozen.
    globals().get('__file__', '').rpartition(f'profile_sampling{os.sep}')[0])))

# Of the measurement of what a call takes; 0.3 ms in all.
_ROUNDS, _CALLS = 5, 500
# Rounds that others ran in are left out.
_KEPT = 3


class Counting:
    """Calls are counted from when it is made until end().

    *watch* are functions, 'module.qualname', whose calls are queries, too.
    Raise RuntimeError if sys.monitoring has no id left for a tool.
    """

    def __init__(self, mode, watch=()):
        self._is_over = True
        self._before = None
        # What one call of Python, and of C, takes more; not known where
        # others count already.
        self._cost_ns = (0,) * _KEPT, (0,) * _KEPT
        self._begin_ns = _clock.monotonic_ns()
        # The program may take its modules out of sys.modules.
        self._core = _core.load()
        self._mode = mode
        self._number = counts.MODES.index(mode)
        if not self._number:
            return
        # Who counts first begins at 0, and the child of a fork does.
        is_first = self._core.read_calls() is None
        is_measured = is_first and mode != counts.QUERIES
        before_ns = _costs_ns() if is_measured else ()
        self._token = self._core.begin_counting(self._number, _LIBRARIES)
        self._is_over = False
        self._before = None if is_first else self._read()
        try:
            Watch(self._core, watch)
            if is_measured:
                self._cost_ns = [
                    [max(0, ns - before[0]) for ns in after[:_KEPT]]
                    for after, before in zip(_costs_ns(), before_ns)]
        except BaseException:
            self.close()
            raise

    def so_far(self, *, clear=False):
        """Return the Counts since the beginning, or None.

        With *clear*, the next ones are those from now on.
        """
        found = self._since(now := self._read())
        if clear:
            self._before = now
        return found

    def begin_in_child(self):
        """The core counts from 0 in the child of a fork."""
        self._before = None

    def end(self):
        """Count no more; return the Counts, or None."""
        now = self._read()
        self.close()
        return self._since(now)

    def close(self):
        if not self._is_over:
            self._is_over = True
            self._core.end_counting(self._number, self._token)

    def __del__(self):
        # A block that is dropped ends without a word.
        self.close()

    def _read(self):
        return None if self._is_over else self._core.read_calls()

    def _since(self, now):
        if now is None:
            return None     # it is the parent's, or there are none
        found = counts.without(
            counts.difference(counts.from_core(now),
                              counts.from_core(self._before), self._mode),
            lambda function: (function.module or '').startswith(_OWN))
        if found.has_calls:
            *_, taken_ns = now
            return counts.with_cost(found, *self._cost_ns,
                                    max(0, taken_ns - self._begin_ns))
        # They are looked for without being asked.
        return found if found.rows else None


def _costs_ns():
    """Return what a call of a function took in each round, and one in C."""
    return [sorted([_measured_ns(calls) for _ in range(_ROUNDS)])
            for calls in (_python_calls, _c_calls)]


def _measured_ns(calls):
    begin_ns = _clock.monotonic_ns()
    calls()
    return (_clock.monotonic_ns() - begin_ns) / _CALLS


def _python_calls():
    for _ in range(_CALLS):
        _nothing()


def _nothing():
    pass


def _c_calls():
    for _ in range(_CALLS):
        len(_OWN)
