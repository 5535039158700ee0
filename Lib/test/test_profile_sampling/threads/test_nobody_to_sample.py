"""Sessions in which, for a moment, no thread takes part.

The sampler thread must not keep a process whose threads have all ended, and
must be there again as soon as a thread is to be sampled.
"""

import os
import unittest

from test import support

from ..support.sessions import ProgramTest, on_stack, weight
from ..support.work import BUSY

# The temporary thread state of exec() is the only one that takes part when it
# starts a session; those of another GIL join when they attach.
STARTED_ELSEWHERE = BUSY + '''
import _interpreters, _profile, sys, threading
import profile_sampling
interpreter = _interpreters.create()
def run_there(code):
    error = _interpreters.exec(interpreter, code)
    assert error is None, error
'''


class NobodyToSampleTest(ProgramTest):

    def run_code(self, code, **options):
        result = self.run_python('-c', code, **options)
        self.assertEqual((result.status, result.err), (0, ''))
        return result

    def check(self, code):
        """The main thread is busy for 0.3 s, and another one in other()."""
        self.run_code(STARTED_ELSEWHERE + code + '''
profile = profile_sampling.stop()
profile.save('profile.pb.gz')
''')
        profile = self.load('profile.pb.gz')
        self.assertGreater(profile.stats['captures'], 50)
        for name in 'busy', 'other':
            ticked = [s for s in profile.samples
                      if on_stack(s, name) and s.state == 'running']
            self.assertGreater(weight(ticked, 'count'), 50, name)
            self.assertGreater(weight(ticked, 'cpu_ns'), 0.2e9, name)

    def test_session_of_an_interpreter_that_nobody_is_in(self):
        self.check('''
run_there("import profile_sampling; profile_sampling.start()")
busy(0.3)
def other(): busy(0.6)
thread = threading.Thread(target=other); thread.start(); thread.join()
''')

    def test_deferred_session(self):
        # The clock stands still when its last thread ends.
        self.check('''
run_there("""if True:
    import profile_sampling
    profile_sampling.start(defer=True)
    with profile_sampling.profile():
        pass
    """)
with profile_sampling.profile():
    busy(0.3)
    def other(): busy(0.6)
    thread = threading.Thread(target=other); thread.start(); thread.join()
''')

    def test_interpreter_in_another_thread(self):
        # It ends while the main thread waits in C.
        self.check('''
def other(): busy(0.6)
thread = threading.Thread(target=run_there, args=(
    "import profile_sampling; profile_sampling.start()",))
thread.start(); thread.join()
busy(0.3)
other()
''')

    @support.skip_if_sanitizer('it allows no threads in a child',
                               thread=True)
    @unittest.skipUnless(hasattr(os, 'fork'), 'needs os.fork()')
    def test_child_ends_with_its_last_thread(self):
        # Its main thread is one that ends, not one that calls exit().
        self.run_code('''
import os, threading, time, warnings, profile_sampling
warnings.simplefilter("ignore")     # this is what it warns of
def work():
    if not os.fork():
        profile_sampling.start()
        end = time.monotonic() + 0.1
        while time.monotonic() < end: pass
        assert profile_sampling.stats()['captures'] > 0
thread = threading.Thread(target=work)
thread.start(); thread.join()
pid, status = os.wait()
assert os.waitstatus_to_exitcode(status) == 0, status
''', timeout=30)
