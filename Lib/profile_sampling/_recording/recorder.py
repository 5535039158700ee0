"""The moments of a session or a block, for its time line.

This file owns the subscription that has them, and the thread that collects
them.  It must not know what becomes of the profile.

The thread is no helper of the subscriptions that the program may have: a
program that takes all modules out of sys.modules has others than we.  As
theirs it is none of threading's, and what it does is not sampled, but counted.
"""

import _thread
import atexit
import os

from profile_sampling import _clock, _core
from profile_sampling._data import timeline
from profile_sampling._data.intake import rows_on_clocks
from profile_sampling._data.moments import Moments, key_of
from profile_sampling._data.same_rows import Reported, of_tables

_PAUSE_S = 0.25
# Until the session has begun, which it is about to when we are called.
_SHORT_PAUSE_S = 0.0005
_MAX_WAIT_S = 1.0
_OPTIONS = {'rate_hz': 1, 'max_events': 65_536, 'batch_events': 65_536}


class _Collector:
    """Collects records of a session as they come, on a thread of its own."""

    def __init__(self):
        # The program may take its modules out of sys.modules.
        self._core = _core.load()

    def _begin(self):
        self._moments = Moments()
        self._subscription = None
        self._serial = 0
        self._before = ()
        self._is_over = _thread.allocate_lock()
        self._is_over.acquire()
        self._has_given_up = False
        # Held while records are taken.
        self._taking = _thread.allocate_lock()

    def _start_thread(self):
        return self._core.start_helper(
            _thread.start_joinable_thread, self._run, True)

    def _give_up(self):
        # Once: a lock that is locked may have been handed to the thread, and
        # would be taken from it.
        if not self._has_given_up:
            self._has_given_up = True
            self._is_over.release()

    def _subscribe(self):
        self._subscription = self._core.subscribe(**_OPTIONS)
        self._epoch_ns = _clock.time_ns()
        self._clock_ns = _clock.monotonic_ns()

    def _look_back(self):
        """Take what has been recorded so far: the beginning of the session."""
        self._before = list(rows_on_clocks(self._core.snapshot(False)))

    def _collect(self, _):
        with self._taking:
            try:
                if self._subscription is None:
                    self._subscribe()
                    self._look_back()
                self._take()
            except RuntimeError:
                # The session has ended meanwhile; what there is is taken then.
                return

    def _take(self):
        while (raw := self._subscription.take()) is not None:
            self._add(raw)

    def _add(self, raw):
        self._serial = raw['serial']
        self._moments.add(self._serial, raw['kind'], raw)

    def _add_beginning(self):
        self._moments.add_records([
            (self._clock_ns,
             (self._serial, *key_of(*key)), *values)
            for _, key, values in self._before if any(values)])
        self._before = ()

    def _begin_ns(self, raw):
        """Return when tables of the core begin, on the clock of records."""
        return self._clock_ns - (self._epoch_ns - raw['start_time_ns'])

    def _give(self, raw, moments):
        """Give tables of the core the time line of such moments."""
        start_ns = self._begin_ns(raw)
        samples = self._samples(raw, moments)
        raw['timeline'] = lambda tables: moments.timeline(tables, samples,
                                                          start_ns)

    def _samples(self, raw, moments):
        """Return the number of the sample that a key of records is of."""
        # Tables may number rows of labels anew, but not samples.
        return {(self._serial, *key_of(*key)): number for number, key, _
                in rows_on_clocks(raw)}


class Recorder(_Collector):
    """Collects from the beginning of the command line's session to its end.

    In a child of a fork, too, if it is profiled.
    """

    def __init__(self):
        super().__init__()
        self._begin()
        # After all that the program will have registered.
        atexit.register(self._give_up)
        os.register_at_fork(after_in_child=self._begin_in_child)

    def _begin(self):
        super()._begin()
        self._start_thread()

    def _begin_in_child(self):
        if self._core.is_written_at_exit():
            self._begin()
        else:
            atexit.unregister(self._give_up)

    def _run(self):
        _thread._set_sampled_name(_thread.get_ident(), 'profile_sampling')
        pause_s = _SHORT_PAUSE_S
        until_s = _clock.monotonic() + _MAX_WAIT_S
        while not self._is_over.acquire(timeout=pause_s):
            if self._core.is_written_at_exit():
                pause_s = _PAUSE_S
                self._core.call_excluded(self._collect, None)
            elif _clock.monotonic() > until_s:
                # It could not be begun.
                return

    def finish(self, raw):
        """Give tables of the core their time line, and end."""
        self._give_up()
        has_lock = self._taking.acquire(timeout=_MAX_WAIT_S)
        try:
            if not has_lock:
                return
            if self._subscription is None:
                # It was too short for the thread to begin.
                raw['timeline'] = _at_the_end
                return
            self._take()
            self._subscription.close()
            self._add_beginning()
        finally:
            if has_lock:
                self._taking.release()
        self._give(raw, self._moments)


class BlockRecorder(_Collector):
    """Collects what start() or profile() asked for with timeline=True.

    It is made when the session or the block has begun, or, if others sample
    already (*is_first* False), before that: what came earlier than the block
    follows from what its samples weigh.
    """

    def __init__(self, *, is_first):
        super().__init__()
        self._begin()
        self._reported = Reported()
        self._subscribe()
        if is_first:
            self._look_back()
        self._thread = self._start_thread()

    def _add(self, raw):
        super()._add(raw)
        self._reported.add(raw)

    def _samples(self, raw, moments):
        # What is of a block, or of a session in which others had begun, may
        # have numbers of its own.
        known = {}
        own = of_tables(known, raw)
        reported = self._reported.contents(known)
        rows = [(number, key_of(*key))
                for number, key, _ in rows_on_clocks(raw)]
        if all([reported.key(*key) == own.key(*key) for _, key in rows]):
            return super()._samples(raw, moments)
        numbers = {own.key(*key): number for number, key in rows}
        return {(serial, *key): numbers.get(reported.key(*key))
                for serial, *key in moments.keys
                if serial == self._reported.serial}

    def _run(self):
        _thread._set_sampled_name(_thread.get_ident(), 'profile_sampling')
        while not self._is_over.acquire(timeout=_PAUSE_S):
            self._core.call_excluded(self._collect, None)

    def so_far(self, raw, *, clear):
        """Give tables of the core that are a snapshot their time line."""
        self._core.call_excluded(self._collect, None)
        with self._taking:
            self._add_beginning()
            end_ns = self._begin_ns(raw) + raw['duration_ns']
            moments, later = self._moments.parted(end_ns)
            if clear:
                self._moments = later
            self._give(raw, moments)

    def close(self):
        """Collect no more."""
        self._give_up()
        self._thread.join()
        self._subscription.close()

    def finish(self, raw):
        """Give tables of the core their time line, and end."""
        self._give_up()
        self._thread.join()
        self._core.call_excluded(self._collect, None)
        self._subscription.close()
        self._add_beginning()
        self._give(raw, self._moments)


def _at_the_end(tables):
    """Return a Timeline that has one moment."""
    numbers = timeline.value_numbers(tables)
    rows = [(row, [values[number] for number in numbers])
            for row, values in enumerate(tables.values())]
    return timeline.of_records([
        (max(tables.duration_ns, 1), number, *values)
        for number, values in rows if any(values)])
