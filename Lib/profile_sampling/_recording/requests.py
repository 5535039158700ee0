"""Requests and jobs of the program: labels, and how long they took."""

import _thread
import sys

from profile_sampling import _clock, _core
from profile_sampling._data.label_names import ANSWERED
from profile_sampling._recording import latencies
from profile_sampling._recording.labels import label


class request:
    """Labels for a request or a job, whose latency is measured as well.

        with request(route='GET /users/{id}') as block:
            ...

    The labels are those of label().  How long the block took is counted for
    each of them, exactly: of each value the profile knows how many blocks
    have ended, their mean, their percentiles and the longest, whatever was
    sampled; see Profile.tasks_by().  Tasks that are started inside have the
    labels, too, but nothing that they do is part of a latency.

    answered() ends the latency before the block does: what comes then is
    work for later.  As a decorator it does so for each call, as label().

    A block that is in progress cannot be entered once more: each request has
    one of its own.  Raise what label() raises.
    """

    __slots__ = ('_labels', '_changes', '_watch')

    def __init__(self, /, **labels):
        self._labels = label(**labels)
        self._changes = self._labels._changes
        self._watch = None

    def __enter__(self):
        if self._watch is not None:
            raise RuntimeError('this request() is in progress; another '
                               'request needs one of its own')
        self._watch = Watch(self._changes)
        self._labels.__enter__()
        return self

    def answered(self):
        """End the latency: what the block still does comes later.

        Samples of that have the label 'answered' in addition.
        """
        if self._watch is not None:
            self._watch.answered()

    def __exit__(self, exc_type, exc, traceback):
        watch, self._watch = self._watch, None
        watch.stop()
        self._labels.__exit__(exc_type, exc, traceback)

    def __call__(self, function):
        from profile_sampling._recording import wrap
        changes = self._changes
        return wrap.within('request', lambda: request(**changes), function)


class Watch:
    """The time of one request, from the beginning to stop()."""

    __slots__ = ('_changes', '_begin_ns', '_task', '_root', '_thread',
                 '_times', '_mark')

    def __init__(self, changes, begin_ns=None):
        self._changes = changes
        self._begin_ns = (_clock.monotonic_ns() if begin_ns is None
                          else begin_ns)
        self._root = self._times = None
        self._task = _current_task()
        # For another process that asks what is under way.
        self._mark = _core.load().begin_request(changes, self._begin_ns,
                                                self._task)
        if latencies.is_collecting():
            self._root = _root(self._task)
            self._thread = _thread.get_ident()
            self._times = _core.load().times_of(self._task)

    def stop(self):
        """Return whether it had not been stopped yet."""
        if self._begin_ns is None:
            return False
        if latencies.is_collecting():
            latencies.add(self._changes,
                          _clock.monotonic_ns() - self._begin_ns, self._root,
                          self._spent())
        self._begin_ns = self._task = self._mark = None
        return True

    def _spent(self):
        """Return what it ran, waited for its loop and waited for the GIL, in
        nanoseconds, or None if that is not known.

        A task may have ended, and what is in no task may end in another
        thread.
        """
        if self._times is None or (
                self._task is None and self._thread != _thread.get_ident()):
            return None
        times = _core.load().times_of(self._task)
        return times and [max(now - then, 0)
                          for now, then in zip(times, self._times)]

    def answered(self):
        """The same; what comes then is labelled as work for later."""
        task = self._task
        if self.stop():
            _answered.set()
            if task is not None and task is not _current_task():
                _mark_answered(task)


def _mark_answered(task):
    """Label what another task does from now on as work for later.

    A framework may send the answer from a task that it has started, such as
    Starlette does with one that is streamed.
    """
    _core.load().flush_task(task)
    try:
        task.get_context().run(_answered.set)
    except (AttributeError, RuntimeError):
        # It is no task of asyncio's, or another thread runs it.
        pass


def _current_task():
    # Another thread may be importing it.
    current_task = getattr(sys.modules.get('asyncio'), 'current_task', None)
    if current_task is None:
        return None
    try:
        return current_task()
    except RuntimeError:
        # No loop runs here.
        return None


def _root(task):
    """Return the name of the function that a task runs, or None.

    It is that of the class of the task, as the core has it.
    """
    if task is None:
        return None
    coroutine = task.get_coro()
    function = _core.load().function_of(coroutine)
    if function is None:
        return getattr(coroutine, '__qualname__', None)
    qualname = function.__code__.co_qualname
    module = function.__globals__.get('__name__')
    return qualname if module is None else f'{module}.{qualname}'


_answered = label._of({ANSWERED: 'yes'})
