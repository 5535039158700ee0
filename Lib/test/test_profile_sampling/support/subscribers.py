"""Subscribing in tests."""

import contextlib
import signal
import threading
import time

from test import support

import profile_sampling
from profile_sampling._subscribing import subscription as _subscribe

from .manual import first
from .sessions import SessionTest, _profile

NO_TIME = 1e-9                      # of waiting: deliver at once
LONG_SECONDS = 3600                 # deliver only what is flushed


class Recorder:
    """A callback that keeps the batches it gets."""

    def __init__(self):
        self.batches = []
        self.threads = []

    def __call__(self, batch):
        self.batches.append(batch)
        self.threads.append(threading.get_ident())

    @property
    def samples(self):
        return [sample for batch in self.batches for sample in batch]

    @property
    def records(self):
        return [record for batch in self.batches for record in batch.records]

    def kinds(self):
        return [record.kind for record in self.records]

    def wall_ns(self, *, thread=None):
        return sum([sample.wall_ns for sample in self.samples
                    if thread in (None, sample.thread.ident)])


def subscribe_manually(callback, *, batch_seconds=LONG_SECONDS, **options):
    """Subscribe with a clock that tick() moves."""
    return _subscribe._subscribe(callback, batch_seconds, {
        'rate_hz': 1000, 'manual': True,
        'interpreter_id': -1, 'batch_events': 4096, 'max_events': 65536,
        'threads': None, 'labels': None, 'names': 0} | options)


def fill_tables():
    """More than half of what tables may take: they may be renewed."""
    for i in range(4500):
        with profile_sampling.label(x=f'{i}{"x" * 20_000}'):
            first()


@contextlib.contextmanager
def helper_busy(**options):
    """The helper is in a callback until the function is called, or the end."""
    is_busy, released = threading.Event(), threading.Event()

    def wait(batch):
        is_busy.set()
        # A test that fails closes its own subscriptions first, which wait
        # for the helper.
        released.wait(support.SHORT_TIMEOUT)
    with subscribe_manually(wait, batch_events=1, **options):
        try:
            first()
            is_busy.wait()
            yield released.set
        finally:
            released.set()


@contextlib.contextmanager
def running(*targets):
    """Threads that run the targets, joined at the end."""
    threads = [threading.Thread(target=target) for target in targets]
    for thread in threads:
        thread.start()
    try:
        yield threads
    finally:
        for thread in threads:
            thread.join()


@contextlib.contextmanager
def closing(subscription):
    """It is closed, by a thread that waits for what the helper delivers."""
    with running(subscription.close):
        while not subscription.closed:
            time.sleep(0.001)
        yield


@contextlib.contextmanager
def handling(signum, handler):
    old = signal.signal(signum, handler)
    try:
        yield
    finally:
        signal.signal(signum, old)


def time_out(signum, frame):
    raise TimeoutError


class SubscriberTest(SessionTest):
    """A test that leaves no subscription behind when it fails."""

    def setUp(self):
        super().setUp()
        self.addCleanup(self.close_all)

    def close_all(self):
        from profile_sampling._subscribing import delivery as _delivery
        _delivery.close_all()

    def assert_idle(self):
        """Nobody samples any more."""
        before = _profile.stats()['ticks']
        time.sleep(0.02)
        self.assertEqual(_profile.stats()['ticks'], before)
