"""Samples of a process, a slice at a time.

The first request is a signal, which the process answers by a connection; all
others are orders over that.
"""

import os
import secrets
import select
import struct
import time

from profile_sampling import _core, _options
from profile_sampling._data import intake
from profile_sampling._data.allocations import MODE as ALLOC
from profile_sampling._data.values import MODES
from profile_sampling._reach import door, processes, slices
from profile_sampling._reach.processes import Refusal, ended

WATCH = 4
# struct _sampling_order of Python/sampling/reach/reach.h.
_ORDER = struct.Struct('=IiiiiIQ')
_BEGIN, _SLICE, _END = 1, 2, 3
# The signal is sent again after so long: its thread may have ended, or one of
# the profiler's clock was pending there, and signals of one number are not
# queued.
_AGAIN_S = 0.1
# How long the last slice may take.
_LAST_S = 3.0


class Watch:
    """Have a process sampled until this is left.

        with Watch(process, 250) as watch:
            while not watch.is_over:
                for tables in watch.slices(1.0):
                    ...
            for tables in watch.last():
                ...

    *options*: those of start(), as far as they are not None.

    pid_inside  its number in its own namespace, once it has answered
    is_begun    it takes samples
    is_over     it has ended
    ending      how, such as 'by signal 9'; '': not known
    """

    def __init__(self, process, rate_hz, *, timeline=False, **options):
        self.process = process
        self.pid_inside = None
        self.is_begun = self.is_over = False
        self.ending = ''
        self._request = secrets.randbits(60) << 4 | WATCH
        self._begin = _order(timeline, rate_hz, **options)
        self._listener = self._connection = None
        self._pidfd = -1
        # Orders that are not answered yet.
        self._unanswered = 0

    def __enter__(self):
        try:
            self._pidfd = os.pidfd_open(self.process.pid)
        except OSError:
            raise ended(self.process.pid) from None
        try:
            self._listener = door.listener(self.process, self._request)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exc):
        # The process sees that, and ends it.
        self._close()
        if self._listener is not None:
            self._listener.close()
        os.close(self._pidfd)

    def begin(self, limit_s=door.LIMIT_S):
        """Wait until samples are taken; return whether they are.

        A process that runs no Python code begins when it does.
        """
        end = time.monotonic() + limit_s
        while not self.is_begun and not self.is_over:
            left_s = end - time.monotonic()
            if left_s <= 0:
                return False
            if self._connection is None:
                self._signal()
            self._wait(min(left_s, _AGAIN_S))
        return self.is_begun

    def slices(self, limit_s):
        """Ask for what there is; yield the Tables that come within *limit_s*,
        of which there may be none."""
        end = time.monotonic() + limit_s
        if not self.begin(limit_s):
            return
        if not self._unanswered:
            self._order(_SLICE)
        yield from self._answers(end)

    def last(self):
        """End it; yield all Tables that are still to come."""
        self._order(_END)
        yield from self._answers(time.monotonic() + _LAST_S)
        self._close()

    def _answers(self, end):
        """Yield the Tables of all orders, or those that come until then."""
        while self._unanswered and (left_s := end - time.monotonic()) > 0:
            tables = self._wait(left_s)
            if tables is not None:
                yield tables

    def _signal(self):
        """Send the request to the thread that it harms least."""
        threads = self.process.threads_now()
        for thread in door.by_harm(self.process, threads)[:1]:
            try:
                _core.load().send_request(self.process.pid, thread.number,
                                          self._request)
            except ProcessLookupError:
                pass        # it has ended, or the process
            except PermissionError:
                raise door.no_right(self.process) from None

    def _order(self, verb):
        if self._connection is not None:
            try:
                self._connection.send(self._begin if verb == _BEGIN else
                                      _ORDER.pack(verb, *[0] * 6))
            except OSError:
                pass        # it has closed it, which is seen next
            self._unanswered += 1

    def _wait(self, limit_s):
        """Wait for what the process says or does; return the Tables, if that
        is some."""
        source = self._connection or self._listener
        ready, _, _ = select.select([source, self._pidfd], [], [], limit_s)
        if source not in ready:
            if ready:
                self.is_over = True
                self._unanswered = 0
                self.ending = processes.ending(self.process.pid, self._pidfd)
            return None
        if self._connection is None:
            self._connection, _ = self._listener.accept()
        try:
            answer = door.receive(self.process, self._connection)
        except ConnectionError:
            answer = None
        if answer is None:
            self._close()
            return None
        return self._take(answer)

    def _take(self, answer):
        if not self._unanswered:
            self.pid_inside = answer.pid
            self._order(_BEGIN)
            return None
        self._unanswered -= 1
        self.is_begun = True
        if not answer.records:
            return None
        try:
            return intake.tables(slices.raw(answer.records, answer.pid))
        except (ValueError, TypeError, KeyError) as exc:
            raise Refusal(self.process.pid, 'other-version',
                          f'PID {self.process.pid} says what is no profile: '
                          f'{exc}.') from None

    def _close(self):
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        self.is_begun = False
        self._unanswered = 0


def _order(timeline, rate_hz, mode=None, depth_frames=None, names=None,
           alloc_bytes=None):
    asked = _options.checked(mode, rate_hz, depth_frames, names, None,
                             alloc_bytes)
    return _ORDER.pack(
        _BEGIN, -1 if mode is None else (*MODES, ALLOC).index(mode),
        asked['rate_hz'], asked.get('depth_frames', 0),
        asked.get('names', -1), timeline, asked.get('alloc_bytes', 0))
