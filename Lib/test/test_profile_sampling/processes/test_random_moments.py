"""Programs that end at a random moment."""

import os
import random
import signal
import subprocess
import sys
import time

from ..support.sessions import ProgramTest, environment


RANDOM_PROGRAM = '''
import gc, signal, sys, threading, time, zlib
class Node: pass
def cycles():
    while True:
        node = Node(); node.node = node
def compute():
    while True:
        sorted(range(3000), key=str)
def compress():
    data = bytes(200_000)
    while True:
        zlib.compress(data)
def threads():
    while True:
        t = threading.Thread(target=sum, args=(range(500),), daemon=True)
        t.start(); t.join()
def code():
    i = 0
    while True:
        i += 1
        # Not exec(text): that forgets an unhandled KeyboardInterrupt.
        exec(compile(f"def f{i}(): return sum(range(100))\\nf{i}()",
                     "<made>", "exec"))
def generators():
    def g():
        yield from range(10)
    while True:
        for _ in g(): pass
how = sys.argv[1]
if how == "handled":
    signal.signal(signal.SIGTERM, lambda *a: sys.exit(11))
signal.signal(signal.SIGINT, signal.default_int_handler)
for target in cycles, compute, compress, threads, code, generators:
    threading.Thread(target=target, daemon=True).start()
print("begun", flush=True)
time.sleep(float(sys.argv[2]))
if how == "exception":
    raise ValueError("on purpose")
# Short sleeps: a signal that arrives between the interpreter's last look and
# the system call does not end that call, profiled or not.
while how != "return":
    time.sleep(0.05)
'''


class RandomMomentsTest(ProgramTest):

    # How it ends: (signal sent, statuses that are right, has a profile).
    ENDS = {
        'return': (None, 0, True),
        'exception': (None, 1, True),
        'handled': (signal.SIGTERM, 11, True),
        'SIGINT': (signal.SIGINT, -signal.SIGINT, True),
        'SIGTERM': (signal.SIGTERM, -signal.SIGTERM, True),
        'SIGKILL': (signal.SIGKILL, -signal.SIGKILL, False),
    }

    def run_once(self, how, seconds, rate_hz):
        signum, status, has_profile = self.ENDS[how]
        if 'profile.pb.gz' in self.files():
            os.unlink(os.path.join(self.directory, 'profile.pb.gz'))
        option = f'-Xsampleprof=rate_hz={rate_hz},out=profile.pb.gz'
        program = subprocess.Popen(
            [sys.executable, option, 'program.py', how, str(seconds)],
            cwd=self.directory, env=environment(),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            self.assertEqual(program.stdout.readline(), b'begun\n')
            if signum is not None:
                time.sleep(seconds)
                program.send_signal(signum)
            out, err = program.communicate(timeout=60)
        finally:
            program.kill()
            program.communicate()
        err = err.decode()
        self.assertEqual(program.returncode, status, err)
        if has_profile:
            self.assertIn('sampleprof: wrote', err)
        self.assertEqual(self.files(),
                         ['profile.pb.gz', 'program.py'] if has_profile
                         else ['program.py'])

    def test_random_moments(self):
        self.file('program.py', RANDOM_PROGRAM)
        runs = int(os.environ.get('PROFILE_SAMPLING_RUNS', 24))
        seed = int(os.environ.get('PROFILE_SAMPLING_SEED', 1))
        numbers = random.Random(seed)
        for run in range(runs):
            how = list(self.ENDS)[run % len(self.ENDS)]
            seconds = numbers.choice([0, 0.1 * numbers.random()])
            rate_hz = numbers.choice([100, 1000, 10_000])
            with self.subTest(run=run, seed=seed, how=how, seconds=seconds,
                              rate_hz=rate_hz):
                self.run_once(how, seconds, rate_hz)
