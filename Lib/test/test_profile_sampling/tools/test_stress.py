"""A few seconds of what Tools/stress does for hours, and how it judges."""

import contextlib
import io
import os
import re
import subprocess
import sys
import types
import unittest
from unittest import mock

from test.support import import_helper

import profile_sampling

from ..support.sessions import (
    SANITIZER, THOROUGH, SessionTest, environment)
from ..support.work import busy

DIRECTORY = os.path.normpath(os.path.join(
    os.path.realpath(__file__), '../../../../../Tools/stress'))
if not os.path.exists(DIRECTORY):
    raise unittest.SkipTest('Tools/stress is not here')

with import_helper.DirsOnSysPath(DIRECTORY):
    import checks
    import episode
    from moments import Moments
    from program import Run

SECONDS = 300 if THOROUGH else 8
SEED = 'make test'
# Of CPU time, in a session that is to be judged.
BUSY_SECONDS = 0.05


@unittest.skipIf(SANITIZER, 'by hand: it takes ten times as long')
class StressTest(unittest.TestCase):

    def test_stress(self):
        done = subprocess.run(
            [sys.executable, os.path.join(DIRECTORY, 'run.py'),
             '--seconds', str(SECONDS), '--seed', SEED,
             '--episode-seconds', '2'],
            env=environment(PYTHONDONTWRITEBYTECODE='1'),
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            timeout=20 * SECONDS + 600)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn(' 0 failures', done.stdout)
        turns = re.search('^families: (.*)$', done.stdout, re.MULTILINE)[1]
        self.assertEqual({turn.split()[0] for turn in turns.split(', ')},
                         set(filter(episode.is_available, episode.NAMES)))


class Reweighted:
    """A profile of which every weight is multiplied."""

    def __init__(self, profile, factor):
        self._profile = profile
        self.samples = [types.SimpleNamespace(
            thread=sample.thread, stack=sample.stack, count=sample.count,
            wall_ns=int(sample.wall_ns * factor),
            cpu_ns=int(sample.cpu_ns * factor))
            for sample in profile.samples]

    def __getattr__(self, name):
        return getattr(self._profile, name)


class ClocksTest(SessionTest):
    """Time that is lost, or made up, in a session too short for doubts."""

    def setUp(self):
        super().setUp()
        # It would find some of it by other rules.
        self.enterContext(mock.patch.object(checks, 'validate'))

    def faults(self, factor, deferred=False):
        """What is said of a session when its weights are multiplied."""
        plan = types.SimpleNamespace(deferred=deferred, names=(),
                                     profiled_inside=False, alloc_bytes=None)
        run = Run('clocks', 0, plan)
        judge = checks.Judge(run, mock.Mock(**{
            'faults.return_value': [], 'wrong_leaf.return_value': ''}))
        with Moments() as beginning:
            profile_sampling.start(defer=deferred)
        judge.began(beginning)
        if deferred:
            self.work_in_a_block(judge)
        else:
            busy(BUSY_SECONDS)
        with Moments() as ending:
            profile = profile_sampling.stop()
        judge.session(Reweighted(profile, factor), ending, is_complete=True)
        with contextlib.redirect_stderr(io.StringIO()) as said:
            judge.judge()
        self.assertEqual(bool(said.getvalue()), run.result()['faults'] > 0)
        return said.getvalue()

    def work_in_a_block(self, judge):
        block = profile_sampling.profile()
        with Moments() as entering:
            block.__enter__()
        busy(BUSY_SECONDS)
        with Moments() as leaving:
            block.__exit__(None, None, None)
        judge.was_inside(entering, leaving)

    def test_truth(self):
        self.assertEqual(self.faults(1), '')
        self.assertEqual(self.faults(1, deferred=True), '')

    def test_lost(self):
        # What start() and stop() take counts neither way; on a busy machine
        # that may be half of such a session.
        self.assertIn('wall time missing', self.faults(0.2))
        self.assertIn('wall time missing', self.faults(0, deferred=True))

    def test_made_up(self):
        self.assertIn('too much', self.faults(100))
