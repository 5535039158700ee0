"""Those who profile: sessions, snapshots and subscriptions at random moments.

Owns what is done to the profiler; what came of it goes to checks.Judge.
"""

import threading
import time

import profile_sampling
from moments import Moments
from profile_sampling._recording import labels as _labels

RATES_HZ = (10_000, 10_000, 10_000, 10_000, 7000, 1000, 100)
DEPTHS = (1, 2, 17, 512, 512, 512, 2000, 16_384)
NAMES = ('all', 'all', 'calls', 'opcodes', 'off')
# Callbacks that look at everything would leave no time for the program.
SAMPLES_LOOKED_AT = 100


class Subscriber:
    """One subscription and what it was given."""

    def __init__(self, judge, rng):
        self._judge = judge
        self.wall_ns = {}
        self.fails_at = rng.randrange(40) if rng.random() < 0.1 else None
        self.flushes = rng.random() < 0.1
        options = {'rate_hz': rng.choice(RATES_HZ),
                   'max_samples': rng.choice((64, 1024, 65536)),
                   'batch_samples': rng.choice((1, 50, 1024)),
                   'batch_seconds': rng.choice((0.001, 0.01, 1.0)),
                   'all_interpreters': rng.random() < 0.5}
        self.is_partial = False
        if rng.random() < 0.2:
            options['labels'] = {'parity': '1'}
            self.is_partial = True
        if rng.random() < 0.2:
            options['threads'] = [threading.current_thread()]
            self.is_partial = True
        with Moments() as self.opening:
            self.subscription = profile_sampling.subscribe(self, **options)

    def __call__(self, batch):
        if self.fails_at is not None:
            self.fails_at -= 1
            if self.fails_at == 0:
                raise ExpectedError
        if self.flushes:
            batch.subscription.flush()
        self.add(batch)
        looked_at = 0
        for sample in batch:
            self._judge.look_at(sample.stack)
            looked_at += 1
            if looked_at == SAMPLES_LOOKED_AT:
                break

    def add(self, batch):
        sums = self.wall_ns
        for (_, thread, *_), (_, _, wall_ns, *_), _ in batch.samples():
            row = batch.rows.thread(thread)
            key = row.ident, row.native_id
            sums[key] = sums.get(key, 0) + wall_ns

    def close(self):
        with Moments() as self.closing:
            self.subscription.close()


class ExpectedError(Exception):
    """What a hostile subscriber raises."""


class Controller:
    """What one thread does to the profiler."""

    def __init__(self, run, judge, number):
        self._run = run
        self._judge = judge
        self._rng = run.rng('control', number)
        self._subscribers = []

    def work(self):
        rng = self._rng
        actions = (self._toggle, self._toggle, self._snapshot, self._clear,
                   self._subscribe, self._unsubscribe, self._set_rate,
                   self._flush, self._block, self._stats)
        while not self._run.over():
            rng.choice(actions)()
            time.sleep(rng.random() ** 2 / 10)
        while self._subscribers:
            self._unsubscribe()

    def act(self):
        """One thing that is quickly done, from anywhere, amid another."""
        if not self._run.over():
            self._rng.choice((self._toggle, self._snapshot, self._clear))()

    def _toggle(self):
        """Start or stop, whichever the others leave possible."""
        rng = self._rng
        if profile_sampling.running():
            self._stop()
            return
        try:
            with Moments() as beginning:
                profile_sampling.start(
                    rng.choice(('wall', 'cpu')),
                    rate_hz=rng.choice(RATES_HZ),
                    depth_frames=rng.choice(DEPTHS),
                    names=rng.choice(NAMES), defer=self._run.deferred,
                    alloc_bytes=self._run.alloc_bytes)
        except RuntimeError as exc:
            self._expect(exc, 'running', 'depth', 'names')
        else:
            self._judge.began(beginning)
            self._run.count('sessions')

    def _stop(self):
        try:
            with Moments() as ending:
                profile = profile_sampling.stop()
        except RuntimeError as exc:
            self._expect(exc, 'no session', '-X sampleprof', 'not running',
                         'is running')
        else:
            self._judge.session(profile, ending, is_complete=True)

    def _expect(self, exc, *texts):
        """Others may have been quicker; anything else is a fault."""
        if not any(text in str(exc) for text in texts):
            self._run.fault(f'unexpected {exc!r}')

    def _snapshot(self, clear=False):
        try:
            with Moments() as ending:
                profile = profile_sampling.snapshot(clear=clear)
        except RuntimeError as exc:
            self._expect(exc, 'no session', 'not running', 'is running')
        else:
            self._run.count('snapshots')
            self._judge.session(profile, ending, is_complete=clear)
            if clear:
                self._judge.began(ending)

    def _clear(self):
        self._snapshot(clear=True)

    def _subscribe(self):
        if len(self._subscribers) < 3:
            try:
                subscriber = Subscriber(self._judge, self._rng)
            except RuntimeError as exc:
                self._expect(exc, 'depth', 'names')
                return
            self._subscribers.append(subscriber)
            self._run.count('subscriptions')

    def _unsubscribe(self):
        if self._subscribers:
            number = self._rng.randrange(len(self._subscribers))
            subscriber = self._subscribers.pop(number)
            subscriber.close()
            self._judge.subscriber(subscriber)

    def _set_rate(self):
        if self._subscribers:
            subscriber = self._rng.choice(self._subscribers)
            subscriber.subscription.set_rate(self._rng.choice(RATES_HZ))
            self._run.count('rate_changes')

    def _flush(self):
        if self._subscribers:
            self._rng.choice(self._subscribers).subscription.flush()

    def _block(self):
        """A block with a profile of its own, or a region."""
        has_profile = not self._run.deferred or self._rng.random() < 0.5
        block = (profile_sampling.profile(alloc_bytes=self._run.alloc_bytes)
                 if has_profile
                 else profile_sampling.region())
        with profile_sampling.label(controller='block'):
            with Moments() as entering:
                block.__enter__()
            if has_profile:
                # Sampling may begin here, or the profile.
                self._judge.began(entering)
            time.sleep(self._rng.random() / 50)
            with Moments() as leaving:
                block.__exit__(None, None, None)
        self._judge.was_inside(entering, leaving)
        self._run.count('blocks')
        if has_profile:
            self._judge.session(block.profile, leaving, is_complete=True)

    def _stats(self):
        before = profile_sampling.stats()
        if min(before.values()) < 0:
            self._run.fault(f'a counter is negative: {before}')
        if _labels.labels():
            self._run.fault(f'labels were left: {_labels.labels()}')
