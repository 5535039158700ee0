"""Programs that embed Python, and what is still alive when it ends.

PITFALLS L5.  embedding.c initialises and finalises Python many times in one
process; some threads are in C, some in Python, and nobody tells them to end.
"""

import os
import subprocess
import sys
import tempfile
import unittest

from ..support.compiling import compile_program
from ..support.sessions import (
    SANITIZER, THOROUGH, ProgramTest, Run, environment)

ROUNDS = 100 if THOROUGH else 8
# A good part of the ticks falls into the end of the interpreter.
OPTION = 'sampleprof=rate_hz=10000,out=profile.pb.gz'

COMPUTE = '''
def compute():
    for _ in range(100):
        sorted(range(300), key=str)
compute()
'''
DAEMONS = '''
import threading, time
def forever():
    while True:
        sorted(range(300), key=str)
for target in forever, forever, forever:
    threading.Thread(target=target, daemon=True).start()
''' + COMPUTE
# One ends with samples that wait, one is left to the end of the process.
SUBINTERPRETERS = '''
import _interpreters
for config in 'isolated', 'legacy':
    for is_destroyed in True, False:
        interpreter = _interpreters.create(config)
        _interpreters.exec(interpreter, "for i in range(3000): str(i)")
        if is_destroyed:
            _interpreters.destroy(interpreter)
''' + COMPUTE

# drop_gil() of stock CPython reads the state of its thread after another
# thread has got the GIL, which may have finalised and freed it.
OUTLIVED = unittest.skipIf(
    SANITIZER, 'CPython itself reads thread states that are freed')


class EmbeddingTest(ProgramTest):

    @classmethod
    def setUpClass(cls):
        directory = cls.enterClassContext(tempfile.TemporaryDirectory())
        cls.program = compile_program('embedding', directory)

    def embed(self, text, *, rounds=ROUNDS, threads=0, option='', **env):
        result = subprocess.run(
            [self.program, str(rounds), str(threads), option, text,
             *[path for path in sys.path if path]],
            cwd=self.directory, env=environment(**env), timeout=300,
            capture_output=True, text=True)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout.splitlines()[-1], f'{rounds} rounds')
        return result

    def check(self, text, *, rounds=ROUNDS, **options):
        """Each round leaves a profile."""
        result = self.embed(text, rounds=rounds, **options)
        said = [line for line in result.stderr.splitlines()
                if line.startswith('sampleprof: wrote profile.pb.gz')]
        self.assertEqual(result.stderr.splitlines(), said)
        self.assertEqual(len(said), rounds)
        profile = Run.load(self, 'profile.pb.gz')
        self.assertGreater(profile.total_wall_ns, 0)
        return profile

    def test_option(self):
        self.check(COMPUTE, option=OPTION)

    def test_variable(self):
        self.check(COMPUTE, PYTHONSAMPLEPROF=OPTION.partition('=')[2])

    @OUTLIVED
    def test_asleep_for_ever(self):
        # A thread that never wakes up, so there can be no second round.
        for _ in range(5):
            self.check('import threading, time\n'
                       'threading.Thread(target=time.sleep, args=(1000,),\n'
                       '                 daemon=True).start()' + DAEMONS,
                       rounds=1, threads=2, option=OPTION)

    @OUTLIVED
    def test_threads_in_c(self):
        profile = self.check(COMPUTE, option=OPTION, threads=4)
        self.assertGreaterEqual(
            len({sample.thread.native_id for sample in profile.samples}), 5)

    def test_subinterpreters(self):
        self.check(SUBINTERPRETERS, option=OPTION)

    @OUTLIVED
    def test_session_that_is_stopped(self):
        result = self.embed(
            'import profile_sampling\n'
            'with profile_sampling.profile(rate_hz=10_000) as session:\n'
            + COMPUTE.replace('\n', '\n    ') +
            '\nassert session.profile.total_wall_ns > 0\n', threads=2)
        self.assertEqual(result.stderr, '')

    @OUTLIVED
    def test_session_that_nobody_stops(self):
        # It ends with the interpreter; the next one can start its own.
        result = self.embed(
            'import profile_sampling\n'
            'profile_sampling.start(rate_hz=10_000)\n' + DAEMONS, threads=2)
        self.assertEqual(result.stderr, '')

    @OUTLIVED
    def test_subscription_that_nobody_closes(self):
        # More rounds than there are signals for the profiler to take.
        result = self.embed('''
import profile_sampling
subscription = profile_sampling.subscribe(
    lambda batch: None, rate_hz=10_000)
with open('/proc/self/status') as file:
    print(*[line for line in file if line.startswith('SigCgt')], end='')
''' + DAEMONS, rounds=70, threads=2)
        self.assertEqual(result.stderr, '')
        caught = set(result.stdout.splitlines()[:-1])
        self.assertEqual(len(caught), 1, caught)

    @OUTLIVED
    def test_now_and_then(self):
        # Rounds with and without a session, in one process.
        self.embed('import os, profile_sampling\n'
                   'name = "rounds"\n'
                   'with open(name, "ab+") as file:\n'
                   '    file.write(b"x")\n'
                   '    number = file.tell()\n'
                   'if number % 2:\n'
                   '    profile_sampling.start(rate_hz=10_000)\n' + DAEMONS,
                   threads=1)
        self.assertEqual(
            os.path.getsize(os.path.join(self.directory, 'rounds')), ROUNDS)
