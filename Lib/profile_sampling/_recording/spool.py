"""A profile that never ends, in segments: a file each in one directory.

Each segment begins where the one before ends, so together they are all that
was sampled.  One thread of ours takes and writes them, which is not sampled
and runs none of the program's handlers of signals; what is left is written
when the process ends.  A file gets its name when it is whole: a process that
is killed loses what it had not written yet.

What goes wrong is never the program's fault, and so no exception of it: a
segment that cannot be written is counted in the next one, and said once.
"""

import _thread
import atexit
import os

from profile_sampling import _clock, _core
from profile_sampling._data.losses import (
    SPOOL_DROPPED, SPOOL_ENDED, SPOOL_UNWRITTEN)
from profile_sampling._data.segments import SUFFIX, name
from profile_sampling._recording import latencies

# For a write that is under way when the process ends.
_MAX_WAIT_S = 0.5
# How much may be written before files are looked at again, of what is kept,
# and for how long.
_PART, _LOOK_EVERY_S = 32, 60
# The clock of the machine has been set if it says that a segment begins so far
# from the end of the one before.
_JUMP_NS = 100_000_000
# What a process left that was killed while it wrote.
_TEMPORARY, _OLD_S = '.sampleprof-', 3600


class Spool:
    """Writes the segments of the command line's session.

    *put*(raw, path, is_known) writes the tables of one to a file and returns
    its size, 0 if it could not; *is_known* if that has been said.  *say*(line)
    prints a line.
    """

    def __init__(self, directory, every_s, keep_bytes, host, put, say):
        self._directory = directory
        self._every_s, self._keep_bytes = every_s, keep_bytes
        self._host, self._put, self._say = host, put, say
        # The program may take its modules out of sys.modules.
        self._core = _core.load()
        self.countings = []
        self._begin()

    def _begin(self):
        self._is_over = _thread.allocate_lock()
        self._is_over.acquire()
        # Held while a segment is taken and written.
        self._writing = _thread.allocate_lock()
        self._thread = None
        self._last = None, None
        # What our thread has taken and not written yet.
        self._pending = None
        self._end_ns = 0
        self._dropped = self._unwritten = 0
        self._since_look = self._keep_bytes
        self._looked_s = 0
        self.num_written = 0

    def start(self):
        """Begin, when the session has begun."""
        self._start_thread()
        # After all that the program will have registered.
        atexit.register(self._give_up)
        os.register_at_fork(after_in_child=self._begin_in_child)

    def _start_thread(self):
        try:
            self._thread = self._core.start_helper(
                _thread.start_joinable_thread, self._run, True)
        except RuntimeError as exc:
            self._say(f'sampleprof: process {os.getpid()} writes one segment, '
                      f'at its end: {exc}')

    def _begin_in_child(self):
        self._begin()
        for counting in self.countings:
            counting.begin_in_child()
        if self._core.is_written_at_exit():
            self._start_thread()
        else:
            atexit.unregister(self._give_up)

    def _give_up(self):
        self._is_over.release()
        if self._thread is not None:
            self._thread.join(_MAX_WAIT_S)

    def _run(self):
        _thread._set_sampled_name(_thread.get_ident(), 'profile_sampling')
        due_s = _clock.monotonic() + self._every_s
        while not self._is_over.acquire(
                timeout=max(0, due_s - _clock.monotonic())):
            due_s = max(due_s, _clock.monotonic()) + self._every_s
            self._core.call_excluded(self._take, None)

    def _take(self, _):
        with self._writing:
            try:
                raw = self._core.snapshot(True)
                self._complete(raw, goes_on=False)
            except RuntimeError:
                return      # the session has ended meanwhile
            except MemoryError:
                self._unwritten += 1
                return
            self._pending = raw
            self._write(raw)
            self._pending = None

    def write_last(self, raw, goes_on):
        """Write what is left.  If the process *goes_on*, it is written once
        more with what comes."""
        # A process that is ended at once has stopped our thread: what it was
        # about to write is written here, to a file of the same name.
        has_lock = self._writing.acquire(timeout=_MAX_WAIT_S)
        try:
            if self._pending is not None:
                self._write(self._pending)
            self._complete(raw, goes_on)
            raw['stats'][SPOOL_ENDED] = int(not goes_on)
            return self._write(raw)
        finally:
            if has_lock:
                self._writing.release()

    def _complete(self, raw, goes_on):
        """Put what the core does not know into tables."""
        if abs(raw['start_time_ns'] - self._end_ns) < _JUMP_NS:
            # It is read a little later than the segment begins.
            raw['start_time_ns'] = self._end_ns
        if not goes_on:
            self._end_ns = raw['start_time_ns'] + raw['duration_ns']
        raw['latencies'] = latencies.of_session(clear=not goes_on)
        for counting in self.countings:
            raw['counts'] = counting.so_far(clear=not goes_on)
        raw['stats'] = dict(raw['stats'])

    def _write(self, raw):
        begin_ns = raw['start_time_ns']
        for key, value in ((SPOOL_DROPPED, self._dropped),
                           (SPOOL_UNWRITTEN, self._unwritten)):
            if value:
                raw['stats'][key] = value
        path = os.path.join(self._directory, name(
            begin_ns, raw['duration_ns'], self._host, os.getpid()))
        size = self._put(raw, path, self._unwritten > 0)
        if not size:
            self._unwritten += 1
            return False
        self._dropped = self._unwritten = 0
        self.num_written += 1
        known_ns, known = self._last
        if known_ns == begin_ns and known != path:
            _remove(known)
        self._last = begin_ns, path
        self._since_look += size
        if (self._since_look >= self._keep_bytes // _PART
                or _clock.monotonic() > self._looked_s + _LOOK_EVERY_S):
            self._drop()
        return True

    def _drop(self):
        """Remove the oldest files of all processes, so that no more is kept
        than may be."""
        self._since_look, self._looked_s = 0, _clock.monotonic()
        try:
            found, total = [], 0
            with os.scandir(self._directory) as entries:
                for entry in entries:
                    if entry.name.endswith(SUFFIX):
                        size = entry.stat(follow_symlinks=False).st_size
                        found.append((entry.name, size))
                        total += size
                    elif (entry.name.startswith(_TEMPORARY) and
                          _clock.time_ns() - entry.stat().st_mtime_ns
                          > _OLD_S * 1_000_000_000):
                        _remove(entry.path)
        except OSError:
            return      # what cannot be read is looked at next time
        found.sort(reverse=True)
        while total > self._keep_bytes and len(found) > 1:
            oldest, size = found.pop()
            total -= size
            self._dropped += _remove(os.path.join(self._directory, oldest))


def _remove(path):
    """Return whether it was there: another process may have removed it."""
    try:
        os.unlink(path)
    except OSError:
        return False
    return True
