"""How much time C functions and operators take."""

import re
import time
import unittest
from collections import Counter

from ..support.sessions import (
    SANITIZER, Session, SessionTest, below, need_prompt_signals, own)

setUpModule = need_prompt_signals


class SharesTest(SessionTest):

    def test_light_line_beside_a_heavy_call(self):
        # Two things in one loop, one of them in C: its true share is its own.
        match = re.compile('(a+)+b').match
        clock = time.thread_time_ns
        text = 'a' * 14
        heavy_ns = 0

        def work():
            nonlocal heavy_ns
            a = 0
            for _ in range(2000):
                before = clock()
                match(text)
                heavy_ns += clock() - before
                for _ in range(20_000):
                    a += 1
        begin = clock()
        with Session(rate_hz=10_000, names=3) as session:
            work()
        total_ns = clock() - begin
        found = Counter()
        for sample in own(session.profile):
            for frame in sample.stack:
                found[frame.function.name] += sample.cpu_ns
        self.assertAlmostEqual(
            found['re.Pattern.match'] / total_ns, heavy_ns / total_ns,
            delta=0.01)
        # Else the share says nothing.  It is about a half, but Python code may
        # be ten times slower (sanitizers) while this C code is not.
        self.assertGreater(heavy_ns / total_ns, 0.05)

    def test_operator_on_its_own_line(self):
        # T1, by the operator's name.
        big = 3 ** 30000

        def leaf():
            return big * big

        def work():
            for _ in range(2000):
                leaf()
        with Session(rate_hz=1000, names=3) as session:
            work()
        found = below(session.profile, leaf, 'cpu_ns')
        # 99 % as in test_truth, and less under a sanitizer.
        self.assertGreater(
            found['int.__mul__',], (0.95 if SANITIZER else 0.98) * sum(
                below(session.profile, work, 'cpu_ns').values()))

    def test_long_call(self):
        # T2: one call that holds the GIL is one sample of its whole length.
        def work():
            return 3 ** 4_000_000
        begin = time.monotonic_ns()
        with Session(rate_hz=1000, names=3) as session:
            work()
        elapsed = time.monotonic_ns() - begin
        found = below(session.profile, work)
        self.assertGreater(found['int.__pow__',], 0.97 * elapsed)


if __name__ == '__main__':
    unittest.main()
