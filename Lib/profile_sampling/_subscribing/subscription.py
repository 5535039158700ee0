"""Subscriptions: how one begins and ends, and the calls of its callback."""

import _interpreters
import os

from profile_sampling import _clock, _core
from profile_sampling._data.checks import whole
from profile_sampling._options import (
    checked, checked_rate, with_hints)
from profile_sampling._subscribing import delivery
from profile_sampling._subscribing.batch import Batch, Rows

# So many exceptions in a row end a subscription.
MAX_ERRORS = 10
# The core cuts longer texts off.
MAX_TEXT_BYTES = 4090
_MAX_IDENTS = 1 << 64


@with_hints
def subscribe(callback, *, rate_hz=1000, depth_frames=None, names=None,
              signal=None, batch_samples=1024, batch_seconds=1.0,
              max_samples=65_536, threads=None, labels=None,
              all_interpreters=False, tasks=False, moments=False,
              alloc_bytes=None):
    """Call *callback* with batches of samples; return a Subscription.

    The callback gets a Batch.  It is called on a thread of the profiler's
    own, one per interpreter, when *batch_samples* wait or *batch_seconds*
    have passed with any.  What it does is not sampled, but counted apart.
    An exception goes to sys.unraisablehook; after ten in a row the
    subscription is closed with a RuntimeWarning.

    rate_hz           samples per second of each thread, 1 to 10000, at
                      least.  The clock ticks for whoever wants most, and
                      every subscriber gets all samples
    depth_frames, names, signal
                      as for start(); by default what holds already, or
                      what start() takes
    max_samples       how many samples that differ may wait, 16 to 16777216;
                      further ones are of the stack '[lost]' of their thread
    threads           only these, an iterable of threads or their idents
    labels            only samples that have all of these labels, a dict
    all_interpreters  also those of other interpreters; from the main one
    tasks             also what asyncio's tasks wait for, and because of
                      what; see Batch.task_waits() and Batch.delays()
    moments           a SampleRecord for each moment; else one for all
                      samples of one key in a batch.  When *max_samples*
                      moments wait, they become fewer, and coarser
    alloc_bytes       also what was allocated and freed, a sample per so many
                      bytes, as for start(); see Batch.allocations()

    A session of start() may run meanwhile, or not.

    Raise TypeError or ValueError for a wrong argument, RuntimeError if
    sampling is under way with fewer depth_frames, fewer names, another signal
    or other alloc_bytes than asked for, the interpreter is shutting down or the process was
    forked by C code without the fork hooks, NotImplementedError if the
    platform cannot.
    """
    if not callable(callback):
        raise TypeError(
            f'callback must be callable, not {type(callback).__name__}')
    options = checked(None, checked_rate(rate_hz), depth_frames, names,
                      signal, alloc_bytes)
    batch_seconds = _seconds(batch_seconds)
    max_events = whole('max_samples', max_samples, most=1 << 24)
    options |= {
        'max_events': max_events,
        'batch_events': min(
            max_events, whole('batch_samples', batch_samples, most=1 << 24)),
        'interpreter_id': _interpreter(all_interpreters),
        'threads': _idents(threads),
        'labels': _label_texts(labels),
        'task': bool(tasks),
        'times': max_events if moments else 0}
    return _subscribe(callback, batch_seconds, options)


def _subscribe(callback, batch_seconds, options):
    subscription = Subscription(callback, batch_seconds, options)
    try:
        delivery.add(subscription)
        _core.give_task()
        return subscription
    except BaseException:
        # No thread can be started, or a signal handler has raised it: nobody
        # would ever close it.
        subscription.close()
        raise


class Subscription:
    """Samples that go to a callback; see subscribe().

    As a context manager it is closed at the end of the block.

    start_time_ns  when it began, since the epoch (time.time_ns())
    start_ns       the same moment on time.monotonic_ns(), which the times of
                   samples are on
    """

    def __init__(self, callback, batch_seconds, options):
        self._callback = callback
        self._batch_seconds = batch_seconds
        self._batch_events = options['batch_events']
        self._pid = os.getpid()
        self._gets_tasks = (options.get('task') and options['threads'] is None
                            and options['labels'] is None)
        self._rows = Rows(0)
        self._unread = None
        self._errors = 0
        self._total_errors = 0
        # When it is to be served next, whatever waits.
        self._due = _clock.monotonic() + batch_seconds
        # Locks that are released when what waits has been delivered.
        self._asked = []
        self.start_time_ns = _clock.time_ns()
        self.start_ns = _clock.monotonic_ns()
        self._core = _core.load().subscribe(**options)

    def close(self):
        """End it; return when what waits has been delivered.

        Called in a callback, or on a thread that one has started, it returns
        before.  Called again, it does nothing.
        """
        self._core.close()
        self._have_delivered()

    def flush(self):
        """Return when all samples of the time until now have been delivered.

        Called in a callback, or on a thread that one has started, it returns
        before.
        """
        self._core.flush()
        self._have_delivered()

    def _have_delivered(self):
        delivery.deliver(self)

    def set_rate(self, rate_hz):
        """Want at least *rate_hz* samples per second from now on, 1 to 10000.

        Raise TypeError or ValueError for anything else.
        """
        self._core.set_rate(checked_rate(rate_hz))

    @property
    def rate_hz(self):
        """Samples per second of each thread that it wants at least."""
        return self._core.rate_hz

    @property
    def closed(self):
        """True when no more samples come in."""
        return not self._core.is_open

    @property
    def ended_by_fork(self):
        """True in the child of a fork: the parent goes on with it."""
        return self._core.ended_by_fork

    def stats(self):
        """Return counters of the subscription as a dict.

        samples, wall_ns, cpu_ns  that came in, whatever became of them;
                                  residues are samples too
        merged                    samples that went into others
        lost                      samples that went to '[lost]'
        lost_wall_ns, lost_cpu_ns what they weighed
        errors                    exceptions of the callback
        """
        return {**self._core.stats(), 'errors': self._total_errors}

    def __enter__(self):
        return self

    def __exit__(self, exc_type, exc, traceback):
        self.close()

    def __repr__(self):
        state = 'closed' if self.closed else f'{self.rate_hz} Hz'
        return f'<Subscription {state}>'

    # Delivery, on the helper thread.

    def _is_due(self, now):
        return (self._asked or now >= self._due or self.closed
                or self._core.waiting >= self._batch_events)

    def _deliver(self, now):
        """Deliver all that waits, in order; *now* is on monotonic().

        Return whether it was the last time.
        """
        self._due = now + self._batch_seconds
        is_last = self.closed
        # Not what callbacks cause, unless it is the last.
        n_batches = self._core.batches + (self._unread is not None)
        while ((is_last or n_batches > 0)
               and (batch := self._next_batch()) is not None):
            self._call(batch)
            n_batches -= 1
        return is_last

    def _next_batch(self):
        # What could not be read, for want of memory or of stack, is read the
        # next time.
        if self._unread is None:
            self._unread = self._core.take()
            if self._unread is None:
                return None
        raw = self._unread
        raw['gets_tasks'] = self._gets_tasks
        if raw['serial'] != self._rows.serial:
            self._rows = Rows(raw['serial'])
        batch = Batch(raw, self._rows, self)
        self._unread = None
        return batch

    def _call(self, batch):
        try:
            self._callback(batch)
            self._errors = 0
        except BaseException as exc:
            self._failed(exc)

    def _failed(self, exc):
        self._errors += 1
        self._total_errors += 1
        _core.load().write_unraisable(exc, self._callback)
        if self._errors >= MAX_ERRORS and not self.closed:
            self._core.close()
            try:
                _warn_of_errors(self._callback)
            except RuntimeWarning as warning:
                _core.load().write_unraisable(warning, self._callback)


def _warn_of_errors(callback):
    import warnings
    warnings.warn(
        f'{callback!r} raised {MAX_ERRORS} exceptions in a row: its '
        'subscription to samples is closed', RuntimeWarning, stacklevel=2)


def _seconds(batch_seconds):
    if not hasattr(batch_seconds, '__float__'):
        raise TypeError('batch_seconds must be a number, not '
                        f'{type(batch_seconds).__name__}')
    if not 0 < batch_seconds <= 3600:
        raise ValueError('batch_seconds must be more than 0 and at most '
                         f'3600, not {batch_seconds}')
    return float(batch_seconds)


def _interpreter(all_interpreters):
    if not all_interpreters:
        return _interpreters.get_current()[0]
    if not delivery.is_main_interpreter():
        raise ValueError('all_interpreters: only the main interpreter may '
                         'see the samples of others')
    return -1


def _idents(threads):
    if threads is None:
        return None
    try:
        threads = iter(threads)
    except TypeError:
        raise TypeError('threads must be an iterable of threads or their '
                        f'idents, not {type(threads).__name__}') from None
    idents = []
    for thread in threads:
        ident = getattr(thread, 'ident', thread)
        if not isinstance(ident, int) or isinstance(ident, bool):
            raise TypeError('threads must be threads that have started, or '
                            f'their idents, not {thread!r}')
        if not 0 <= ident < _MAX_IDENTS:
            raise ValueError(f'threads: no thread has the ident {ident}')
        idents.append(ident)
    return tuple(idents)


def _label_texts(labels):
    if labels is None:
        return None
    if not isinstance(labels, dict):
        raise TypeError(
            f'labels must be a dict, not {type(labels).__name__}')
    texts = tuple([str(text) for pair in labels.items() for text in pair])
    for text in texts:
        if '\0' in text or len(text.encode(errors='replace')) > MAX_TEXT_BYTES:
            raise ValueError(
                'labels to filter by must have no NUL character and at most '
                f'{MAX_TEXT_BYTES} bytes of UTF-8, not {text[:40]!a}...')
    return texts
