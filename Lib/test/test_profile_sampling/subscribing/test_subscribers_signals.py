"""Signal handlers of the program beside subscribers.  PITFALLS L8.

They run on the main thread, and deliveries on the helper: no batch is lost,
whatever a handler raises, and wherever.
"""

import signal
import threading
import time
import unittest

from test import support
from test.support import script_helper


from ..support.manual import first
from ..support.subscribers import (
    Recorder, SubscriberTest, handling, helper_busy, subscribe_manually,
    time_out)


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

    def test_they_flush(self):
        self.check('kept.flush()')

    RAISING = '''
import faulthandler, random, signal, threading, time
import profile_sampling
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
batches = []
subscription = profile_sampling.subscribe(
    batches.append, rate_hz=5000, batch_samples=1, batch_seconds=0.001)
interrupt(300, subscription.flush)
subscription.close()
stats = subscription.stats()
assert stats['errors'] == 0, stats
found = sum([sample.wall_ns for batch in batches for sample in batch])
assert found == stats['wall_ns'], (found, stats)
assert stats['wall_ns'] > 0
''')

    def test_nothing_stays_open_when_they_raise(self):
        script_helper.assert_python_ok('-c', self.RAISING % """
kept = []
def act():
    kept.append(profile_sampling.subscribe(len))
    while kept:
        kept[-1].close()
        kept.pop()
interrupt(200, act)
for subscription in kept:
    subscription.close()
deadline = time.monotonic() + 10
before, ticks = None, 0
while before != ticks:      # some were closed, but not waited for
    assert time.monotonic() < deadline
    time.sleep(0.05)
    before, ticks = ticks, profile_sampling.stats()['ticks']
assert not profile_sampling.running()
""")


class WaitTest(SubscriberTest):
    """Handlers while the program waits for deliveries."""

    def raise_signal_in(self, seconds, handler):
        self.enterContext(handling(signal.SIGALRM, handler))
        signal.setitimer(signal.ITIMER_REAL, seconds)
        self.addCleanup(signal.setitimer, signal.ITIMER_REAL, 0)

    def test_they_run_and_it_waits_on(self):
        recorder, handled = Recorder(), []
        with subscribe_manually(recorder) as subscription, \
                helper_busy() as release:
            first()

            def handle(*_):
                handled.append(len(recorder.batches))
                release()
            self.raise_signal_in(0.1, handle)
            subscription.flush()
            self.assertEqual(handled, [0])
            self.assertEqual(recorder.wall_ns(),
                             subscription.stats()['wall_ns'])

    def test_they_end_it_by_an_exception(self):
        # What was asked for comes later all the same.
        recorder = Recorder()
        with subscribe_manually(recorder) as subscription:
            with helper_busy() as release:
                first()
                self.raise_signal_in(0.1, time_out)
                with self.assertRaises(TimeoutError):
                    subscription.flush()
                self.assertEqual(recorder.batches, [])
                release()
            deadline = time.monotonic() + support.SHORT_TIMEOUT
            while not recorder.batches and time.monotonic() < deadline:
                time.sleep(0.01)
            self.assertTrue(recorder.batches)
        self.assertEqual(recorder.wall_ns(), subscription.stats()['wall_ns'])

    def test_they_wait_for_deliveries_themselves(self):
        recorder, flushed = Recorder(), []
        with subscribe_manually(recorder) as subscription, \
                helper_busy() as release:
            first()

            def handle(*_):
                release()
                subscription.flush()
                flushed.append(len(recorder.batches))
            self.raise_signal_in(0.1, handle)
            subscription.flush()
        self.assertGreater(flushed[0], 0)

    def test_they_interrupt_no_callback(self):
        handled_by, ended = [], []

        def callback(batch):
            if not handled_by:
                signal.raise_signal(signal.SIGALRM)
                time.sleep(0.1)
            ended.append(threading.get_ident())

        def handle(*_):
            handled_by.append(threading.get_ident())
            raise TimeoutError
        self.enterContext(handling(signal.SIGALRM, handle))
        with subscribe_manually(callback) as subscription:
            first()
            with self.assertRaises(TimeoutError):
                subscription.flush()
            subscription.flush()
            self.assertEqual(handled_by, [threading.get_ident()])
            self.assertGreater(len(ended), 0)
            self.assertNotIn(threading.get_ident(), ended)
            self.assertEqual(subscription.stats()['errors'], 0)
