"""Subscribing to samples.

This file owns the life of a subscription and the calls of its callback.
Which thread delivers batches, and when, is the business of delivery; what is
in them, of batch.
"""

import _thread
import os
import time

from profile_sampling import _core
from profile_sampling._options import (
    MAX_DEPTH_FRAMES, MAX_RATE_HZ, check_mode, integer, names_bits,
    signal_number)
from profile_sampling._subscribing.batch import Batch, Rows
from profile_sampling._subscribing.locks import locked

# So many exceptions in a row end a subscription.
MAX_ERRORS = 10
# The core cuts longer texts off.
MAX_TEXT_BYTES = 4090

# Threads that are in a callback: they wait for no other one.
_in_callback = set()


def subscribe(callback, *, mode='wall', rate_hz=1000, depth_frames=None,
              names=None, signal=None, batch_samples=1024, batch_seconds=1.0,
              max_samples=65_536, sync=False, threads=None, labels=None,
              all_interpreters=False):
    """Call *callback* with batches of samples; return a Subscription.

    The callback gets a Batch.  It is called on a thread of the profiler's
    own, one per interpreter, when *batch_samples* wait or *batch_seconds*
    have passed with any; or, with *sync*, on the thread that was sampled,
    before it goes on.  What it does is not sampled, but counted apart.  An
    exception goes to sys.unraisablehook; after ten in a row the
    subscription is closed with a RuntimeWarning.

    mode              'wall' or 'cpu': which clock the subscriber is about
    rate_hz           samples per second of each thread, 1 to 10000, at
                      least.  The clock ticks for whoever wants most, and
                      every subscriber gets all samples
    depth_frames, names, signal
                      as for start(); by default what holds already, or
                      what start() takes
    max_samples       room for samples that wait, 16 to 16777216.  When it
                      is used up, samples of one stack are merged; then the
                      oldest are dropped, and a record tells how many
    threads           only these, an iterable of threads or their idents
    labels            only samples that have all of these labels, a dict
    all_interpreters  also those of other interpreters; from the main one

    A session of start() may run meanwhile, or not.

    Raise TypeError or ValueError for a wrong argument, RuntimeError if
    sampling is under way with fewer depth_frames, fewer names or another
    signal than asked for, the interpreter is shutting down or the process was
    forked by C code that told nobody, NotImplementedError if the platform
    cannot.
    """
    if not callable(callback):
        raise TypeError(
            f'callback must be callable, not {type(callback).__name__}')
    check_mode(mode)
    if not 0 < batch_seconds <= 3600:
        raise ValueError('batch_seconds must be more than 0 and at most '
                         f'3600, not {batch_seconds}')
    options = {
        'mode': mode,
        'rate_hz': integer('rate_hz', rate_hz, MAX_RATE_HZ),
        'max_events': integer('max_samples', max_samples, 1 << 24),
        'sync': bool(sync),
        'interpreter_id': _interpreter(all_interpreters),
        'threads': _idents(threads),
        'labels': _label_texts(labels)}
    options['batch_events'] = min(
        integer('batch_samples', batch_samples, 1 << 24),
        options['max_events'])
    if depth_frames is not None:
        options['depth_frames'] = integer('depth_frames', depth_frames,
                                          MAX_DEPTH_FRAMES)
    if names is not None:
        options['names'] = names_bits(names)
    if signal is not None:
        options['signal'] = signal_number(signal)
    return _subscribe(callback, batch_seconds, options)


def _subscribe(callback, batch_seconds, options):
    made = []
    try:
        _core.load().call_uninterrupted(
            _make, (made, callback, batch_seconds, options))
        _core.give_names()
        return made[0]
    except BaseException:
        # A signal handler may have raised it: nobody would ever close it.
        for subscription in made:
            subscription.close()
        raise


def _make(args):
    made, callback, batch_seconds, options = args
    made.append(Subscription(callback, batch_seconds, options))


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
        self._is_sync = options['sync']
        self._batch_events = options['batch_events']
        # Held by who delivers what waits; by who reads a batch.  A finalizer
        # in the middle of that must be able to tell.
        self._delivering = _thread.RLock()
        self._reading = _thread.RLock()
        self._pid = os.getpid()
        self._rows = Rows(0)
        self._unread = []
        self._errors = 0
        self._total_errors = 0
        # When it is to be served next, whatever waits.
        self._due = time.monotonic() + batch_seconds
        self.start_time_ns = time.time_ns()
        self.start_ns = time.monotonic_ns()
        from profile_sampling._subscribing import delivery
        # A safepoint may come before subscribe() has returned.
        self._core = None
        self._core = _core.load().subscribe(_deliver_own, owner=self,
                                            **options)
        try:
            if self._is_sync:
                delivery.close_at_end(self)
                if self.closed:             # by its first call
                    self._forget()
            else:
                delivery.add(self)
        except BaseException:
            # No thread can be started, say.
            self._core.close()
            raise

    def close(self):
        """End it, after what waits has been delivered.

        Called again, it does nothing.
        """
        self._core.close()
        self._deliver_rest()

    def _forget(self):
        from profile_sampling._subscribing import delivery
        if self._is_sync:
            delivery.forget(self)
        else:
            delivery.remove(self)

    def flush(self):
        """Deliver all samples of the time until now, then return.

        Called from a callback, it leaves the delivery to others.
        """
        self._core.flush()
        if _thread.get_ident() in _in_callback:
            _core.load().ring()
        else:
            self._deliver_rest()

    def set_rate(self, rate_hz):
        """Want at least *rate_hz* samples per second from now on, 1 to 10000.

        Raise TypeError or ValueError for anything else.
        """
        self._core.set_rate(integer('rate_hz', rate_hz, MAX_RATE_HZ))

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
        lost, lost_wall_ns, lost_cpu_ns
                                  records that were dropped
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

    # Delivery.  All of it runs excluded from sampling, so that no safepoint
    # of it calls a subscriber again; and signal handlers wait, except in the
    # callback and in pauses, or what one raises would lose a batch.

    def _is_due(self, now):
        return (now >= self._due or self.closed
                or self._core.waiting >= self._batch_events)

    def _deliver(self, now):
        """Deliver what waits if it is time to; *now* is on monotonic()."""
        if not self._is_due(now):
            return
        self._due = now + self._batch_seconds
        try:
            self._deliver_rest()
        except Exception as exc:
            # No memory, say: it is delivered the next time.
            _core.load().write_unraisable(exc, self)

    def _deliver_rest(self):
        """Deliver what waits, unless somebody else does."""
        _core.load().call_excluded(_deliver_waiting, self)

    def _take(self, own_only):
        """Return the next batch, or None."""
        if self._reading._is_owned():
            return None     # in a finalizer, in the middle of this
        return locked(self._reading, self._read_next, own_only)

    def _read_next(self, own_only):
        # What could not be read, for want of memory or of stack, is read the
        # next time.
        self._core.take(own_only, self._unread)
        if not self._unread:
            return None
        raw = self._unread[0]
        if raw['serial'] != self._rows.serial:
            self._rows = Rows(raw['serial'])
        self._rows.add(raw)
        batch = Batch(raw, self._rows, self)
        self._unread.pop(0)
        return batch

    def _call(self, batch):
        ident = _thread.get_ident()
        is_outermost = ident not in _in_callback
        try:
            _in_callback.add(ident)
            _core.load().call_subscriber(self._callback, batch)
            self._errors = 0
        except BaseException as exc:
            if self._core.is_interrupt(exc):
                raise       # it is the program that is to be interrupted
            self._failed(exc)
        finally:
            if is_outermost:
                _in_callback.discard(ident)

    def _failed(self, exc):
        self._errors += 1
        self._total_errors += 1
        _core.load().write_unraisable(exc, self._callback)
        if self._errors >= MAX_ERRORS and not self.closed:
            self._core.close()
            try:
                _core.load().call_subscriber(_warn_of_errors, self._callback)
            except RuntimeWarning as warning:
                _core.load().write_unraisable(warning, self._callback)


def _warn_of_errors(callback):
    import warnings
    warnings.warn(
        f'{callback!r} raised {MAX_ERRORS} exceptions in a row: its '
        'subscription to samples is closed', RuntimeWarning, stacklevel=2)


def _deliver_own(subscription):
    """At a safepoint: the samples of this thread."""
    if subscription._core is None:
        return
    batch = subscription._take(True)
    if batch is not None:
        subscription._call(batch)
    if subscription.closed:
        # It closed itself, and left this to us.
        _deliver_waiting(subscription)


def _deliver_waiting(subscription):
    """Deliver all that waits, in order, one thread at a time.

    Called from a callback, or by a finalizer in the middle of this, it
    leaves that to whoever delivers.
    """
    if subscription._pid != os.getpid():
        # Nothing waits; who delivered in the parent holds the lock for ever.
        return
    lock = subscription._delivering
    if lock._is_owned():
        return
    is_last = False
    # Who closes it while this goes on may leave the rest to us.
    while not is_last:
        is_last = subscription.closed
        is_done = locked(lock, _deliver_batches, subscription,
                          waits=_thread.get_ident() not in _in_callback)
        if not is_done or not subscription.closed:
            return
    subscription._forget()


def _deliver_batches(subscription):
    # Not what callbacks cause, unless it is the last.
    n_batches = subscription._core.batches + len(subscription._unread)
    while n_batches > 0 or subscription.closed:
        batch = subscription._take(False)
        if batch is None:
            break
        subscription._call(batch)
        n_batches -= 1
    return True


def _after_fork():
    # New threads may get the idents of those that are gone.
    _in_callback.intersection_update([_thread.get_ident()])


def _interpreter(all_interpreters):
    if not all_interpreters:
        import _interpreters
        return _interpreters.get_current()[0]
    if not _core.is_main_interpreter():
        raise ValueError('all_interpreters: only the main interpreter may '
                         'see the samples of others')
    return -1


def _idents(threads):
    if threads is None:
        return None
    idents = []
    for thread in threads:
        ident = getattr(thread, 'ident', thread)
        if not isinstance(ident, int) or isinstance(ident, bool):
            raise TypeError('threads must be threads that have started, or '
                            f'their idents, not {thread!r}')
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


os.register_at_fork(after_in_child=_after_fork)
