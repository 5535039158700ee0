"""Programs that python -m profile_sampling record runs, and their profiles."""

import subprocess
import sys

from ..support.sessions import ProgramTest, environment, on_stack, weight

PROG = 'python -m profile_sampling'
WORK_NS = 30_000_000
# Its two ends fall between ticks, and what few samples share of the start-up's
# time varies: each by some half of a sample.
SAMPLED_NS = WORK_NS - 3_000_000
WORK = f'''\
import json, os, sys, time
def work():
    end = time.thread_time() + {WORK_NS / 1e9}
    while time.thread_time() < end:
        pass
if __name__ == '__main__':
    work()
    print(json.dumps([os.getpid(), sys.argv, sys.path[0],
                      [name for name in os.environ if 'SAMPLEPROF' in name]]))
    sys.exit(3)
'''


class RecordTest(ProgramTest):

    def setUp(self):
        super().setUp()
        self.file('work.py', WORK)

    def record(self, *arguments, **options):
        return self.run_python('-m', 'profile_sampling', 'record', *arguments,
                               **options)

    def start(self, *arguments):
        """Start a program that prints a line when it is ready."""
        process = subprocess.Popen(
            [sys.executable, '-m', 'profile_sampling', 'record', *arguments],
            cwd=self.directory, env=environment(), stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), 'ready\n')
        return process

    def check_work(self, profile):
        there = [s for s in profile.samples if on_stack(s, 'work')]
        # The program has that much of it, whatever else the machine does.
        self.assertGreaterEqual(weight(there), SAMPLED_NS)
