"""timeline=True of start() and profile(): when samples were taken."""

import _thread
import asyncio
import os
import pickle
import time
import unittest

import profile_sampling

from ..support.sessions import ProgramTest, SessionTest, on_stack

MS = 1_000_000
SPIN_S = 0.04


def tearDownModule():
    asyncio.set_event_loop_policy(None)     # as it was


def spin():
    end = time.thread_time() + SPIN_S
    while time.thread_time() < end:
        pass


def first():
    spin()


def last():
    spin()


def work():
    first()
    last()


class TimelineTest(SessionTest):

    def check(self, profile):
        """first() was before last(), and hardly anything at no moment."""
        self.assertFalse(profile.timeline.is_stale)
        _, cpu_ns, wall_ns = profile.timeline.untimed(profile._tables)
        self.assertLessEqual(wall_ns, profile.total_wall_ns // 50)
        self.assertLessEqual(cpu_ns, profile.total_cpu_ns // 50)
        self.assertLessEqual(profile.timeline.time_ns[-1],
                             profile.duration_ns + SPIN_S * 1e9)
        middle_ns = max([0] + [
            time_ns for time_ns, row, count, *_
            in zip(*profile.timeline.columns)
            # What no tick had met is with another sample.
            if count and on_stack(profile.samples[row], 'first')])
        self.assertGreater(middle_ns, 0)
        before = profile.between(0, middle_ns)
        after = profile.between(middle_ns, 1 << 62)
        half_ns = SPIN_S * 1e9 / 2
        for part, there, not_there in ((before, 'first', 'last'),
                                       (after, 'last', 'first')):
            self.assertGreater(self.cpu_ns(part, there), half_ns)
            self.assertLess(self.cpu_ns(part, not_there), half_ns)

    def cpu_ns(self, profile, name):
        return sum([sample.cpu_ns for sample in profile.samples
                    if on_stack(sample, name)])

    def test_a_session(self):
        profile_sampling.start(timeline=True)
        work()
        profile = profile_sampling.stop()
        self.check(profile)
        profile_sampling.start()
        first()
        self.assertIsNone(profile_sampling.stop().timeline)

    def test_a_block_in_a_session(self):
        profile_sampling.start()
        last()
        with profile_sampling.profile(timeline=True) as block:
            work()
        last()
        self.assertIsNone(profile_sampling.stop().timeline)
        self.check(block.profile)

    def test_a_session_in_a_block(self):
        with profile_sampling.profile(timeline=True) as block:
            spin()
            profile_sampling.start(timeline=True)
            work()
            profile = profile_sampling.stop()
        self.check(profile)
        self.check(block.profile)

    def test_snapshots(self):
        profile_sampling.start(timeline=True)
        work()
        so_far = profile_sampling.snapshot()
        cleared = profile_sampling.snapshot(clear=True)
        work()
        rest = profile_sampling.stop()
        for profile in so_far, cleared, rest:
            self.check(profile)
        self.assertGreaterEqual(len(cleared.timeline), len(so_far.timeline))

    def test_a_snapshot_that_clears_beside_a_block(self):
        profile_sampling.start(timeline=True)
        with profile_sampling.profile() as block:
            spin()
            profile_sampling.snapshot(clear=True)
            work()
            self.check(profile_sampling.stop())
        self.assertIsNone(block.profile.timeline)

    def test_one_that_nobody_has_read_pickles(self):
        with profile_sampling.profile(timeline=True) as block:
            sum(range(1_000_000))
        for profile in block.profile, block.profile.filter(state='running'):
            copy = pickle.loads(pickle.dumps(profile))
            self.assertEqual(copy, profile)
            self.assertEqual(*[one.between(0, profile.duration_ns // 2)
                               for one in (copy, profile)])
            self.assertGreater(len(copy.timeline), 0)

    def test_nothing_is_left(self):
        threads = _thread._count()
        for _ in range(3):
            profile_sampling.start(timeline=True)
            profile_sampling.stop()
            with profile_sampling.profile(timeline=True):
                pass
        self.assertEqual(_thread._count(), threads)

    def test_a_session_that_runs_already(self):
        threads = _thread._count()
        profile_sampling.start(timeline=True)
        work()
        with self.assertRaises(RuntimeError):
            profile_sampling.start(timeline=True)
        with self.assertRaises(RuntimeError):
            with profile_sampling.profile(rate_hz=77, timeline=True):
                pass
        self.assertEqual(_thread._count(), threads)
        self.check(profile_sampling.stop())

    def test_a_deferred_session_has_none(self):
        with self.assertRaisesRegex(ValueError, 'deferred'):
            profile_sampling.start(defer=True, timeline=True)
        self.assertFalse(profile_sampling.running())

    @unittest.skipUnless(hasattr(os, 'fork'), 'needs fork')
    def test_a_child(self):
        profile_sampling.start(timeline=True)
        with profile_sampling.profile(timeline=True) as block:
            pid = os.fork()
            if not pid:
                status = 1
                try:
                    block.__exit__(None, None, None)
                    with profile_sampling.profile(timeline=True) as own:
                        work()
                    status = 2 * (not len(own.profile.timeline))
                finally:
                    os._exit(status)
            work()
            self.assertEqual(os.waitpid(pid, 0)[1], 0)
        self.check(block.profile)
        self.check(profile_sampling.stop())


class ProgramsTest(ProgramTest):

    def test_a_session_that_is_never_stopped(self):
        run = self.run_python('-c', 'import profile_sampling\n'
                              'profile_sampling.start(timeline=True)\n'
                              'print("end")')
        self.assertEqual((run.status, run.out, run.err), (0, b'end\n', ''))

    def test_a_block_in_the_session_of_the_command_line(self):
        run = self.run_python(
            '-X', 'sampleprof=quiet=1,out=p.pb.gz', '-c',
            'import profile_sampling, time\n'
            'with profile_sampling.profile(timeline=True) as block:\n'
            '    time.sleep(0.1)\n'
            'asleep = [row for *_, row in zip(*block.profile.timeline.columns)'
            ' if row > 50_000_000]\n'
            'print(len(asleep))')
        self.assertEqual((run.status, run.out, run.err), (0, b'1\n', ''))
        self.assertIsNone(self.load('p.pb.gz').timeline)
