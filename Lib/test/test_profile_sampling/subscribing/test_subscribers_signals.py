"""Signal handlers of the program beside subscribers.  PITFALLS L8.

A handler interrupts a callback, which is the program's, but not a delivery: no
batch is lost and no lock stays taken, whatever it raises.
"""

import _thread
import signal
import unittest
from unittest import mock

from test import support
from test.support import script_helper

from profile_sampling._subscribing import (
    batch as _batch, delivery as _delivery, subscription as _subscribe)

from ..support.manual import first
from ..support.sessions import _profile
from ..support.subscribers import (
    Recorder, SubscriberTest, handling, subscribe_manually, time_out)


class HandlersTest(unittest.TestCase):
    """Signal handlers do what they interrupt the thread in."""

    PROGRAM = '''
import faulthandler, signal, sys, time
import profile_sampling
faulthandler.dump_traceback_later(60, exit=True)
calls = is_handling = 0
kept = profile_sampling.subscribe(len, rate_hz=1000, batch_seconds=0.001)

def act():
    %s

def handle(*_):
    global calls, is_handling
    if not is_handling:
        is_handling = 1
        act()
        is_handling = 0
        calls += 1

signal.signal(signal.SIGALRM, handle)
signal.setitimer(signal.ITIMER_REAL, 0.002, 0.0013)
end = time.monotonic() + 60
while calls < 200 and time.monotonic() < end:
    act()
signal.setitimer(signal.ITIMER_REAL, 0)
kept.close()
assert calls >= 200
'''

    def check(self, act):
        script_helper.assert_python_ok('-c', self.PROGRAM % act)

    def test_they_subscribe_and_close(self):
        self.check('profile_sampling.subscribe(len, rate_hz=1000).close()')

    def test_they_subscribe_and_close_synchronous_ones(self):
        self.check('profile_sampling.subscribe(len, sync=True).close()')

    def test_they_flush(self):
        self.check('kept.flush()')

    # Callbacks in C, which no handler interrupts: they get everything.
    RAISING = '''
import faulthandler, random, signal, threading, time
import profile_sampling
from profile_sampling._subscribing import delivery as _delivery
faulthandler.dump_traceback_later(100, exit=True)

class Timeout(RuntimeError):
    pass

is_armed = False

def raise_(*_):
    if is_armed:
        raise Timeout

def repeat(act):
    end = time.monotonic() + 1      # if a finalizer has swallowed it
    while time.monotonic() < end:
        act()

def interrupt(count, act):
    """Let the handler raise so often, in the middle of act()."""
    global is_armed
    timeouts = 0
    while timeouts < count:
        try:
            is_armed = True
            signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-4, 4e-3))
            # The jump at a loop's end is in no "try".
            repeat(act)
        except Timeout:
            timeouts += 1
        is_armed = False

signal.signal(signal.SIGALRM, raise_)
done = threading.Event()

def work():
    while not done.is_set():
        exec(f'def f{random.randrange(10**9)}(): return 1')

threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads:
    thread.start()
%s
done.set()
for thread in threads:
    thread.join()
'''

    def test_no_batch_is_lost_when_they_raise(self):
        script_helper.assert_python_ok('-c', self.RAISING % '''
batches = [], []
subscriptions = [
    profile_sampling.subscribe(batches[sync].append, sync=sync, rate_hz=5000,
                               batch_samples=1, batch_seconds=0.001)
    for sync in (False, True)]
interrupt(300, subscriptions[0].flush)
for got, subscription in zip(batches, subscriptions):
    subscription.close()
    stats = subscription.stats()
    assert stats['errors'] == 0, stats
    told = sum([wall_ns for batch in got
                for kind, wall_ns in zip(batch.kind, batch.wall_ns)
                if kind == 0])      # a sample
    assert told + stats['lost_wall_ns'] == stats['wall_ns'], (told, stats)
    assert stats['wall_ns'] > 0
''')

    def test_nothing_stays_open_when_they_raise(self):
        # Nor beside a subscriber that may be interrupted at any safepoint.
        for sync in (False, True):
            with self.subTest(sync=sync):
                script_helper.assert_python_ok('-c', self.RAISING % f'''
def note(batch):
    for _ in range(10):
        sorted(range(10))
other = profile_sampling.subscribe(note, sync=True, rate_hz=5000,
                                   batch_samples=1)
kept = []
def act():
    kept.append(profile_sampling.subscribe(len, sync={sync}))
    while kept:
        kept[-1].close()
        kept.pop()
interrupt(200, act)
for subscription in [*kept, other]:
    subscription.close()
assert not _delivery._subscriptions and not _delivery._synchronous
assert not profile_sampling.running()
time.sleep(0.05)
ticks = profile_sampling.stats()['ticks']
time.sleep(0.05)
assert profile_sampling.stats()['ticks'] == ticks
''')


class MomentsTest(SubscriberTest):
    """Things that happen in the middle of a delivery."""

    def test_handlers_wait_for_its_end(self):
        inside, calls = [], []
        add = _batch.Rows.add

        def add_beside_signals(rows, raw):
            inside.append(1)
            signal.raise_signal(signal.SIGALRM)
            add(rows, raw)
            inside.pop()

        def handle(*_):
            calls.append(list(inside))
            raise TimeoutError
        self.enterContext(handling(signal.SIGALRM, handle))
        got = []
        with subscribe_manually(got.append) as subscription:
            _profile.tick(1000, 10)
            with mock.patch.object(_batch.Rows, 'add', add_beside_signals), \
                    self.assertRaises(TimeoutError):
                subscription.flush()
            self.assertEqual(calls, [[]])
            self.assertEqual(sum([sum(batch.wall_ns) for batch in got]),
                             subscription.stats()['wall_ns'])

    def test_a_handler_interrupts_the_hook_of_exceptions(self):
        # It is the program's as well.
        calls = []

        def hook(unraisable):
            calls.append(1)
            signal.raise_signal(signal.SIGALRM)
            calls.append(2)

        def handle(*_):
            calls.append('handler')
        self.enterContext(handling(signal.SIGALRM, handle))
        with mock.patch('sys.unraisablehook', hook), \
                subscribe_manually(lambda batch: 1 / 0) as subscription:
            _profile.tick(1000, 10)
            subscription.flush()
        self.assertEqual(calls[:3], [1, 'handler', 2])

    def test_the_hook_swallows_nothing_that_came_before(self):
        failed = _subscribe.Subscription._failed

        def failed_beside_signals(subscription, exc):
            signal.raise_signal(signal.SIGALRM)
            failed(subscription, exc)

        self.enterContext(handling(signal.SIGALRM, time_out))
        with support.catch_unraisable_exception(), \
                subscribe_manually(lambda batch: 1 / 0) as subscription:
            _profile.tick(1000, 10)
            with mock.patch.object(_subscribe.Subscription, '_failed',
                                   failed_beside_signals), \
                    self.assertRaises(TimeoutError):
                subscription.flush()
            self.assertEqual(subscription.stats()['errors'], 1)

    def test_it_is_closed_when_all_was_taken(self):
        # By a thread in another callback, which leaves the rest to us.
        recorder = Recorder()
        deliver = _subscribe._deliver_batches
        closed = []

        def deliver_and_close(subscription):
            is_done = deliver(subscription)
            if not closed:
                closed.append(1)
                first()
                subscription._core.close()
            return is_done
        with subscribe_manually(recorder) as subscription:
            first()
            with mock.patch.object(_subscribe, '_deliver_batches',
                                   deliver_and_close):
                subscription.flush()
            self.assertTrue(subscription.closed)
            self.assertEqual(recorder.wall_ns(),
                             subscription.stats()['wall_ns'])
            self.assertNotIn(subscription, _delivery._subscriptions)

    def test_a_finalizer_subscribes_as_the_helper_is_started(self):
        started, inner = [], []
        start = _delivery._start

        def start_beside_finalizer(run):
            started.append(1)
            if not inner:
                inner.append(subscribe_manually(len))
            return start(run)
        self.assertIsNone(_delivery._helper)
        threads = _thread._count()
        with mock.patch.object(_delivery, '_start', start_beside_finalizer):
            outer = subscribe_manually(len)
        self.assertEqual(started, [1])
        self.assertEqual(_delivery._subscriptions, [*inner, outer])
        helper = _delivery._helper
        outer.close()
        inner[0].close()
        helper.join()
        self.assertEqual(_thread._count(), threads)

    def test_no_helper_can_be_started_for_a_finalizers(self):
        inner = []

        def fail(run):
            inner.append(subscribe_manually(len))
            raise RuntimeError("can't start new thread")
        with mock.patch.object(_delivery, '_start', fail), \
                self.assertRaisesRegex(RuntimeError, 'start new thread'):
            subscribe_manually(len)
        self.assertTrue(inner[0].closed)
        self.assertEqual(_delivery._subscriptions, [])
        self.assert_idle()


if __name__ == '__main__':
    unittest.main()
