"""Samples of a process, a slice at a time.

No slice is lost: whatever the process has handed over is taken, in whichever
order and however late it comes.
"""

import os
import secrets
import select
import time

from profile_sampling import _core
from profile_sampling._data import intake
from profile_sampling._reach import door, processes, slices
from profile_sampling._reach.processes import Refusal, ended

WATCH, STOP = 4, 5
MAX_RATE_HZ = 2047
# A signal is sent again after so long: its thread may have ended, or one of
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

    pid_inside  its number in its own namespace, once it has answered
    is_begun    it takes samples
    is_over     it has ended
    ending      how, such as 'by signal 9'; '': not known
    """

    def __init__(self, process, rate_hz, *, timeline=False):
        self.process = process
        self.pid_inside = None
        self.is_begun = self.is_over = False
        self.ending = ''
        client = secrets.randbits(24) << 40
        self._watch = (client | secrets.randbits(24) << 16
                       | timeline << 15 | min(rate_hz, MAX_RATE_HZ) << 4 | WATCH)
        self._stop = client | secrets.randbits(24) << 16 | STOP
        self._listeners = {}
        self._pidfd = -1
        self._is_stopped = False

    def __enter__(self):
        try:
            self._pidfd = os.pidfd_open(self.process.pid)
        except OSError:
            raise ended(self.process.pid) from None
        try:
            for request in self._watch, self._stop:
                self._listeners[request] = door.listener(self.process,
                                                         request)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exc):
        try:
            if self._listeners and not self.is_over and not self._is_stopped:
                self._signal(self._stop)
        finally:
            for listener in self._listeners.values():
                listener.close()
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
            self._signal(self._watch)
            for _ in self._answers(min(left_s, _AGAIN_S)):
                pass
        return self.is_begun

    def slices(self, limit_s):
        """Ask for what there is; yield the Tables that come within *limit_s*,
        of which there may be none."""
        end = time.monotonic() + limit_s
        while (left_s := end - time.monotonic()) > 0 and not self.is_over:
            self._signal(self._watch)
            found = list(self._answers(min(left_s, _AGAIN_S)))
            yield from found
            if found:
                return

    def last(self):
        """End it; yield all Tables that are still to come."""
        end = time.monotonic() + _LAST_S
        self._is_stopped = True
        is_done = False
        while not self.is_over and not is_done:
            left_s = end - time.monotonic()
            if left_s <= 0:
                return
            self._signal(self._stop)
            for tables in self._answers(min(left_s, _AGAIN_S)):
                yield tables
            is_done = self._is_done
        yield from self._answers(0)

    def _signal(self, request):
        """Send a request to the thread that it harms least."""
        threads = self.process.threads_now()
        for thread in door.by_harm(self.process, threads)[:1]:
            try:
                _core.load().send_request(self.process.pid, thread.number,
                                          request)
            except ProcessLookupError:
                pass        # it has ended, or the process
            except PermissionError:
                raise door.no_right(self.process) from None

    _is_done = False

    def _answers(self, limit_s):
        """Yield the Tables of all answers that are there, or of the first that
        comes."""
        is_waited = False
        while True:
            ready, _, _ = select.select(
                [*self._listeners.values(), self._pidfd], [], [],
                0 if is_waited else limit_s)
            is_waited = True
            listeners = [item for item in ready if item is not self._pidfd]
            for listener in listeners:
                connection, _ = listener.accept()
                with connection:
                    tables = self._take(
                        connection,
                        listener is self._listeners[self._stop])
                if tables is not None:
                    yield tables
            if not listeners:
                if self._pidfd in ready:
                    self.is_over = True
                    self.ending = processes.ending(self.process.pid,
                                                   self._pidfd)
                return

    def _take(self, connection, is_last):
        answer = door.receive(self.process, connection,
                              (door.NOT_WATCHED,) if is_last else ())
        if answer is None:
            return None
        self.pid_inside = answer.pid
        self.is_begun = True
        self._is_done |= is_last
        if not answer.records:
            return None
        try:
            return intake.tables(slices.raw(answer.records, answer.pid))
        except (ValueError, TypeError, KeyError) as exc:
            raise Refusal(self.process.pid, 'other-version',
                          f'PID {self.process.pid} says what is no profile: '
                          f'{exc}.') from None
