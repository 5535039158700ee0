"""Does the state of a sample say what the thread did?

A C function computes and sleeps, with the GIL and without it, for times that
it is given, and says what it took on its CPU clock.
"""

import contextlib
import ctypes
import tempfile
import threading
import time
import unittest

from ..support.compiling import compile_extension
from ..support.sessions import (
    Session, SessionTest, by_state, medians, names, on_stack, one_cpu, own,
    spinning_processes)

US, MS = 1_000, 1_000_000


def delayed_ns():
    """How long this thread has waited for a CPU, says the kernel."""
    path = f'/proc/self/task/{threading.get_native_id()}/schedstat'
    try:
        with open(path) as file:
            return int(file.read().split()[1])
    except OSError:
        raise unittest.SkipTest(f'needs {path}') from None


class StatesTest(SessionTest):

    @classmethod
    def setUpClass(cls):
        directory = cls.enterClassContext(tempfile.TemporaryDirectory())
        cls.path = compile_extension('states', directory)

    def function(self, library):
        function = library(self.path).compute_and_sleep
        function.argtypes = ctypes.c_int64, ctypes.c_int64
        function.restype = ctypes.c_int64
        return function

    def run_calls(self, library, times, compute_ns, sleep_ns, rate_hz=1000):
        """Return the profile of its calls, their wall and their CPU time, and
        how long the thread waited for a CPU."""
        function = self.function(library)
        wall_ns = cpu_ns = 0
        before_ns = delayed_ns()
        with Session(rate_hz=rate_hz) as session:
            for _ in range(times):
                began_ns = time.monotonic_ns()
                cpu_ns += function(compute_ns, sleep_ns)
                wall_ns += time.monotonic_ns() - began_ns
        return session.profile, wall_ns, cpu_ns, delayed_ns() - before_ns

    def assertNear(self, value, expected, share):
        self.assertAlmostEqual(value / expected, 1, delta=share)

    def test_long_calls_without_the_gil(self):
        def run():
            profile, wall_ns, cpu_ns, _ = self.run_calls(
                ctypes.CDLL, 50, 3 * MS, 7 * MS)
            states = by_state(own(profile))
            cpu = by_state(own(profile), 'cpu_ns')
            self.assertEqual(cpu['waiting'], 0)
            self.assertEqual({names(sample)[-1] for sample in own(profile)
                              if sample.state == 'waiting'}, {'[waiting]'})
            return (states['native'] / cpu_ns,
                    states['waiting'] / (wall_ns - cpu_ns),
                    cpu['native'] / cpu_ns)
        # Four standard deviations of 150 ticks in the shorter parts, whose
        # ends alone are left to chance.
        for found in medians(run):
            self.assertNear(found, 1, 0.04)

    def test_short_calls_without_the_gil(self):
        # They are half a period: ticks find some of them.  To give the GIL up
        # and take it back takes CPU time, too, some 10 us.  Four standard
        # deviations of 1,000 ticks, four of ten of which find it.
        profile, wall_ns, cpu_ns, _ = self.run_calls(
            ctypes.CDLL, 2000, 400 * US, 600 * US, rate_hz=500)
        states = by_state(own(profile))
        self.assertNear(states['native'], cpu_ns, 0.16)
        self.assertNear(states['native'] + states['waiting'], wall_ns, 0.05)

    def test_calls_with_the_gil(self):
        # On one CPU the sampler thread never sees the caller run.
        for cpus in contextlib.nullcontext, one_cpu:
            with self.subTest(cpus=cpus.__name__), cpus():
                self.check_calls_with_the_gil()

    def check_calls_with_the_gil(self):
        profile, wall_ns, cpu_ns, delayed = self.run_calls(
            ctypes.PyDLL, 100, 6 * MS, 14 * MS)
        states = by_state(own(profile))
        # To fall asleep and to wake up.
        self.assertLess(
            by_state(own(profile), 'cpu_ns')['asleep_with_gil'],
            0.02 * states['asleep_with_gil'])
        self.assertNear(states['running'], cpu_ns, 0.1)
        # What it waits for a CPU as it wakes up is in either.
        self.assertNear(states['asleep_with_gil'] + states['cpu_wait'],
                        wall_ns - cpu_ns, 0.1)
        self.assertLess(states['cpu_wait'], delayed + 0.03 * wall_ns)
        self.assertLess(states['native'] + states['waiting'], 0.01 * wall_ns)

    def test_no_cpu(self):
        with one_cpu(), spinning_processes(3):
            profile, wall_ns, _, delayed = self.run_calls(
                ctypes.PyDLL, 10, 50 * MS, 0)
        states = by_state(own(profile))
        self.assertGreater(delayed, 0.5 * wall_ns)
        self.assertNear(states['cpu_wait'], delayed, 0.05)
        self.assertEqual(by_state(own(profile), 'cpu_ns')['cpu_wait'], 0)
        # A thread that waits for a CPU is not captured: samples are of what
        # ran, one at least in two of its periods.
        counts = by_state(own(profile), 'count')
        self.assertEqual(counts['cpu_wait'], 0)
        self.assertGreater(counts['running'], 0.5 * 10 * 50)

    def test_no_cpu_without_the_gil(self):
        # What a tick finds awake has not slept.
        with one_cpu(), spinning_processes(3):
            profile, wall_ns, cpu_ns, delayed = self.run_calls(
                ctypes.CDLL, 10, 50 * MS, 0)
        states = by_state(own(profile))
        self.assertGreater(delayed, 0.5 * wall_ns)
        self.assertGreater(states['cpu_wait'], 0.8 * delayed)
        self.assertLess(states['waiting'], 0.2 * delayed)
        self.assertNear(states['native'], cpu_ns, 0.1)

    def test_yielding_without_a_cpu(self):
        # A thread that is made to give the GIL up waits until another one has
        # it, which may have to wait for a CPU.
        def work():
            end = time.monotonic() + 1
            while time.monotonic() < end:
                pass
        threads = [threading.Thread(target=work) for _ in range(3)]
        with one_cpu(), spinning_processes(3), Session() as session:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        states = by_state([s for s in session.profile.samples
                           if on_stack(s, work.__qualname__)])
        self.assertGreater(states['gil_wait'], 1_000 * MS)
        self.assertLess(states['waiting'], 0.02 * sum(states.values()))

    def test_always_a_cpu(self):
        profile, wall_ns, _, delayed = self.run_calls(
            ctypes.PyDLL, 20, 50 * MS, 0)
        self.assertAlmostEqual(by_state(own(profile))['cpu_wait'], delayed,
                               delta=0.02 * wall_ns)
