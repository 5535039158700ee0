"""Forks by C code that does not call PyOS_AfterFork_Child().

PITFALLS L4.  What the sampler thread was about to do, and what other threads
had locked, is as it was, for ever; nothing may wait for it.
"""


from ..support.sessions import ProgramTest
from ..support.work import SPIN
from .children import NO_THREADS, ChildrenTest

# The more forks, the more of them fall into a tick.
COUNT = 60

# libc.fork() runs no hook.  It is called with the GIL held, or by CDLL as a
# thread that is detached.
FORK = SPIN + '''
import ctypes, os, sys, threading, time
import profile_sampling
libc = ctypes.PyDLL(None)

def wait(pid):
    end = time.monotonic() + 30
    while time.monotonic() < end:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            status = os.waitstatus_to_exitcode(status)
            assert status == 7, f'child {pid} ended with {status}'
            return
        time.sleep(0.001)
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    raise AssertionError(f'child {pid} does not end')

def check(count, live):
    for _ in range(count):
        spin(0.002)
        pid = libc.fork()
        if pid == 0:
            live()
            sys.exit(7)
        wait(pid)

def refused(begin):
    try:
        begin()
    except RuntimeError as exc:
        return 'forked by C code' in str(exc)
'''


@NO_THREADS
class ForksByCCodeTest(ChildrenTest):

    def check(self, code):
        """No child leaves a profile, and of the parent's nothing is missing.
        """
        pid = self.run_code(FORK + code)
        [(found, profile)] = self.profiles().items()
        self.assertEqual(found, pid)
        self.assertEqual(sum(count for name, count in profile.stats.items()
                             if name.startswith('lost')), 0)

    def test_threads(self):
        self.check(f'''
def live():
    for _ in range(3):
        thread = threading.Thread(target=int)
        thread.start()
        thread.join()
check({COUNT}, live)
''')

    def test_os_exit(self):
        self.check(f'check({COUNT}, lambda: os._exit(7))')

    def test_by_a_thread_that_is_detached(self):
        self.check(f'''
libc = ctypes.CDLL(None)
def live():
    thread = threading.Thread(target=int)
    thread.start()
    thread.join()
check({COUNT}, live)
''')

    def test_the_childs_own_child(self):
        # A whole process again, since this fork tells everybody.
        pid = self.run_code(FORK + '''
def live():
    pid = os.fork()
    if not pid:
        spin(0.05)
        os._exit(7)
    wait(pid)
check(3, live)
''')
        profiles = self.profiles()
        self.assertIn(pid, profiles)
        self.assertEqual(len(profiles), 4)

    def test_subscriptions(self):
        self.check('''
calls = []
subscription = profile_sampling.subscribe(
    calls.append, rate_hz=5000, batch_seconds=0.01)
def live():
    calls.clear()
    spin(0.02)
    subscription.flush()
    assert not calls
    assert subscription.closed and subscription.ended_by_fork
check(20, live)
subscription.close()
assert calls
''')


@NO_THREADS
class WithoutOptionTest(ProgramTest):

    def check(self, code):
        result = self.run_python('-c', FORK + code)
        self.assertEqual((result.status, result.err), (0, ''))

    def test_what_begins_there_is_refused(self):
        self.check('''
def live():
    assert refused(profile_sampling.start)
    assert refused(lambda: profile_sampling.subscribe(print))
    assert not profile_sampling.running()
check(1, lambda: None)
profile_sampling.start()
check(1, live)
profile_sampling.stop()
with profile_sampling.subscribe(len):
    check(1, live)
''')

    def test_a_subscription_that_is_dropped(self):
        self.check('''
def live():
    subscription.close()
    del globals()['subscription']
    kept = [bytes(size) for size in range(0, 6000, 40)]
    pid = os.fork()
    if not pid:
        os._exit(7)
    wait(pid)
subscription = profile_sampling.subscribe(len, max_samples=64)
check(1, live)
subscription.close()
''')

    def test_a_deferred_session(self):
        self.check('''
@profile_sampling.region()
def work():
    return 3
def live():
    assert work() == 3
profile_sampling.start(defer=True)
check(5, live)
assert work() == 3
profile_sampling.stop()
''')
