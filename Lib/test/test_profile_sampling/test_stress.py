"""A few seconds of what Tools/stress does for hours."""

import os
import subprocess
import sys
import unittest

from .sessions import SANITIZER, THOROUGH, environment

SCRIPT = os.path.normpath(os.path.join(
    os.path.realpath(__file__), '../../../../Tools/stress/run.py'))
if not os.path.exists(SCRIPT):
    raise unittest.SkipTest('Tools/stress is not here')

SECONDS = 300 if THOROUGH else 8
SEED = 'make test'


@unittest.skipIf(SANITIZER, 'by hand: it takes ten times as long')
class StressTest(unittest.TestCase):

    def test_stress(self):
        done = subprocess.run(
            [sys.executable, SCRIPT, '--seconds', str(SECONDS), '--seed',
             SEED, '--episode-seconds', '2'],
            env=environment(PYTHONDONTWRITEBYTECODE='1'),
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            timeout=20 * SECONDS + 600)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn(' 0 failures', done.stdout)


if __name__ == '__main__':
    unittest.main()
