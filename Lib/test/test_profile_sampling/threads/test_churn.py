"""Code and threads that come and go while they are sampled.

PITFALLS L6 and L7.  The long versions are for -u cpu.
"""

import tempfile
import threading
import time
import unittest

from ..support.compiling import load_extension
from ..support.sessions import (
    SANITIZER, THOROUGH, Session, SessionTest, checked, _profile, names)

SECONDS = 60 if THOROUGH else 3


def made(number, depth):
    """Run a chain of functions that exist for this call only."""
    namespace = {}
    exec(compile(
        f'def made{number}(n):\n'
        f'    return made{number}(n - 1) if n else sum(range(400))\n'
        f'made{number}({depth})', f'<made {number}>', 'exec'), namespace)


class CodeTest(SessionTest):

    def test_recursion_that_grows_and_shrinks(self):
        # Freed code at the leaf, in the middle and at the root; stacks of
        # all depths; several threads take turns between capture and record.
        end = time.monotonic() + SECONDS / 2
        rounds, profiles = [], []

        def churn(first):
            number = first
            while time.monotonic() < end:
                for depth in *range(0, 200, 17), *range(200, 0, -17):
                    number += 3
                    made(number, depth)
            rounds.append(number)
        with Session(rate_hz=10_000, names=3) as session:
            threads = [threading.Thread(target=churn, args=(i,))
                       for i in range(3)]
            for thread in threads:
                thread.start()
            while threads[0].is_alive() or len(profiles) < 2:
                profiles.append(session.snapshot(clear=True))
                time.sleep(0.02)
            for thread in threads:
                thread.join()
        self.assertEqual(len(rounds), 3)
        stacks = set()
        for profile in *profiles, session.profile:
            for sample in profile.samples:
                mine = {name for name in names(sample)
                        if name.startswith('made') and name != 'made'}
                self.assertLessEqual(len(mine), 1, mine)
                stacks |= mine
        self.assertGreater(len(stacks), 10)


class ThreadsTest(SessionTest):

    @unittest.skipIf(SANITIZER, 'creating thread states takes too long')
    def test_pool_in_c(self):
        # Threads of a pool attach for each job, and are never gone.
        directory = self.enterContext(tempfile.TemporaryDirectory())
        pool = load_extension('attaching_pool', directory)
        jobs = int(10_000 * SECONDS / 3)
        called = []
        _profile.start(rate_hz=10_000)
        pool.run(4, jobs, lambda: called.append(None))
        profile = checked(_profile.stop())
        self.assertEqual(len(called), 4 * (jobs // 4))
        self.assertEqual(profile.stats['lost_threads'], 0)
        workers = {s.thread.native_id for s in profile.samples}
        self.assertGreaterEqual(len(workers), 4)
