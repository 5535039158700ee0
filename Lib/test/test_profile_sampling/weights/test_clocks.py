"""What clocks, the collector and the machine do to weights.

PITFALLS T5, T7, T10, L15.  As in test_truth the answer is measured beside the
profiler, on the thread's own CPU clock.
"""

import gc
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

from ..support.compiling import run_compiler
from ..support.sessions import (
    OPTION, SANITIZER, THOROUGH, ProgramTest, Run, Session, SessionTest,
    environment, on_stack, own, spinning_processes, weight)


def spin_until(moment):
    while time.perf_counter() < moment:
        pass


def rhythm_work(moment):
    spin_until(moment)


def rhythm_rest(moment):
    spin_until(moment)


class RhythmTest(SessionTest):

    def test_lockstep(self):
        # T7.  A tenth of each period of the clock itself.  A clock without
        # jitter sees all of it or nothing; so the short version allows a
        # factor of 2.5, for machines that are busy.  The share of N ticks has
        # a standard deviation of 0.3 / sqrt(N): the long one allows four.
        rate_hz, ticks = (100, 9000) if THOROUGH else (1000, 2000)
        period = 1 / rate_hz
        cpu = [0, 0]
        with Session(rate_hz=rate_hz) as session:
            start = time.perf_counter()
            for i in range(ticks):
                begin = time.thread_time_ns()
                rhythm_work(start + (i + 0.1) * period)
                middle = time.thread_time_ns()
                rhythm_rest(start + (i + 1) * period)
                cpu[0] += middle - begin
                cpu[1] += time.thread_time_ns() - middle
        samples = own(session.profile)
        work = [s for s in samples if on_stack(s, 'rhythm_work')]
        rest = [s for s in samples if on_stack(s, 'rhythm_rest')]
        found = weight(work, 'cpu_ns')
        found /= found + weight(rest, 'cpu_ns')
        share = cpu[0] / sum(cpu)
        if THOROUGH:
            self.assertAlmostEqual(found, share, delta=0.013)
        else:
            self.assertLess(found, 2.5 * share)
            self.assertGreater(found, share / 2.5)


class CollectorTest(SessionTest):

    def test_as_long_as_the_callbacks_say(self):
        # T5.  5 %, and two ticks: the callbacks lie outside of what is
        # measured at one end and inside at the other.
        began = []
        spent_ns = 0

        def callback(phase, info):
            nonlocal spent_ns
            if phase == 'start':
                began.append(time.thread_time_ns())
            else:
                spent_ns += time.thread_time_ns() - began.pop()
        garbage = [[i] for i in range(300_000)]
        gc.callbacks.append(callback)
        self.addCleanup(gc.callbacks.remove, callback)
        with Session(rate_hz=1000) as session:
            t0 = time.thread_time_ns()
            while spent_ns < 500_000_000:
                gc.collect()
                sorted(range(20_000), key=str)
            used_ns = time.thread_time_ns() - t0
        samples = own(session.profile)
        collecting = [s for s in samples if s.state == 'gc']
        self.assertAlmostEqual(weight(collecting, 'cpu_ns'), spent_ns,
                               delta=0.05 * spent_ns + 2_000_000)
        # And nothing of it is counted twice.
        self.assertAlmostEqual(weight(samples, 'cpu_ns'), used_ns,
                               delta=0.01 * used_ns + 3_000_000)
        self.assertEqual(len(garbage), 300_000)

    def test_short_ones_in_bursts(self):
        # At the beginning of a burst and amid it: their share depends on
        # neither.
        spent_ns = {'first': 0, 'amid': 0}

        def collect(where):
            garbage = [[i] for i in range(3000)]
            begin_ns = time.thread_time_ns()
            gc.collect(0)
            spent_ns[where] += time.thread_time_ns() - begin_ns
            del garbage

        def first():
            collect('first')

        def amid():
            collect('amid')

        random_s = random.Random(5).uniform
        gc.disable()
        self.addCleanup(gc.enable)
        with Session(rate_hz=1000) as session:
            while sum(spent_ns.values()) < 500_000_000:
                time.sleep(random_s(0.0005, 0.003))
                first()
                sum([i * i for i in range(5000)])
                amid()
        samples = own(session.profile)
        for function in first, amid:
            due_ns = spent_ns[function.__name__]
            found_ns = weight([
                s for s in samples
                if s.state == 'gc' and on_stack(s, function.__qualname__)])
            # Four standard deviations of so many samples, 0.25, and 2 %.
            self.assertAlmostEqual(
                found_ns / due_ns, 1,
                delta=0.02 + 4 * (1_000_000 / due_ns) ** 0.5,
                msg=function.__name__)


def compute_strings():
    return sorted(range(3000), key=str)


def compute_numbers():
    return sum([i * i for i in range(9000)])


class ContentionTest(SessionTest):

    def test_spinners_beside(self):
        # T10.  Other processes take the CPUs: more wall time, the same CPU
        # time at the same places.  8 points: a sampling error of
        # 0.5 / sqrt(700) = 1.9 points is one standard deviation.
        spent = [0, 0]
        with (spinning_processes(os.cpu_count()),
              Session(rate_hz=1000) as session):
            start = time.thread_time_ns()
            while sum(spent) < 700_000_000:
                t0 = time.thread_time_ns()
                compute_strings()
                t1 = time.thread_time_ns()
                compute_numbers()
                spent[0] += t1 - t0
                spent[1] += time.thread_time_ns() - t1
            used_ns = time.thread_time_ns() - start
        samples = own(session.profile)
        found = [weight([s for s in samples if on_stack(s, function)],
                        'cpu_ns')
                 for function in ('compute_strings', 'compute_numbers')]
        self.assertAlmostEqual(weight(samples, 'cpu_ns'), used_ns,
                               delta=0.01 * used_ns + 3_000_000)
        self.assertAlmostEqual(found[0] / sum(found), spent[0] / sum(spent),
                               delta=0.08)


# How long it takes by a clock that nobody sets.
TIMED = '''
import sys, time
start = time.monotonic()
print("begun", flush=True)
def work():
    end = time.monotonic() + 0.4
    while time.monotonic() < end:
        sorted(range(300), key=str)
work()
time.sleep(0.2)
if len(sys.argv) > 1:
    before = time.time()
    print(abs(time.time() - before) > 1000, flush=True)
print(time.monotonic() - start)
'''


class JumpsTest(ProgramTest):
    # PITFALLS L15.

    def check_durations(self, took):
        profile = Run.load(self, 'profile.pb.gz')
        # A second more: start-up, and the end on a busy machine.
        self.assertGreaterEqual(profile.duration_ns / 1e9, took)
        self.assertLess(profile.duration_ns / 1e9, took + 1 + 0.5 * took)
        self.assertAlmostEqual(profile.total_wall_ns, profile.duration_ns,
                               delta=0.1 * profile.duration_ns + 2e7)
        self.assertLess(profile.total_cpu_ns, profile.duration_ns)
        return profile

    def with_clock(self, name, **changes):
        """The environment of a program with the clock of NAME.c."""
        directory = self.enterContext(tempfile.TemporaryDirectory())
        library = run_compiler(
            f'{name}.c', os.path.join(directory, 'clock.so'),
            '-shared', '-fPIC', '-ldl')
        if SANITIZER:
            self.skipTest('a sanitizer has to be loaded first')
        return environment(LD_PRELOAD=library, **changes)

    def test_time_of_day(self):
        result = self.run_python(OPTION, '-c', TIMED, 'jumps',
                                 env=self.with_clock('jumping_clock'))
        self.assertEqual(result.status, 0, result.err)
        _, jumped, took = result.out.decode().split()
        self.assertEqual(jumped, 'True')
        profile = self.check_durations(float(took))
        # The program's own clocks are not those that the kernel waits by.
        computing = [s for s in profile.samples if on_stack(s, 'work')]
        self.assertGreater(sum([s.count for s in computing]), 20)

    def test_clock_that_takes_a_period_to_read(self):
        # What it takes to make a record is no reason to make another, for
        # ever.
        result = self.run_python(
            '-Xsampleprof=rate_hz=10000,out=profile.pb.gz', '-c', 'import os\n'
            'for _ in range(1000): os.stat(".")\n',
            env=self.with_clock('slow_clock', LATE_NS='200000'))
        self.assertEqual((result.status, result.out), (0, b''), result.err)
        profile = Run.load(self, 'profile.pb.gz')
        self.assertAlmostEqual(profile.total_wall_ns, profile.duration_ns,
                               delta=0.1 * profile.duration_ns)

    def test_readings_where_the_gil_is_given_up(self):
        # None: what is read is read at ticks.
        calls = 20_000
        result = self.run_python(
            '-Xsampleprof=rate_hz=100,out=profile.pb.gz', '-c', 'import os\n'
            f'for _ in range({calls}): os.stat(".")\n',
            env=self.with_clock('counted_clock'))
        self.assertEqual((result.status, result.out), (0, b''), result.err)
        readings, = re.findall(r'readings: (\d+)', result.err)
        self.assertLess(int(readings) / calls, 0.1)

    def test_overhead_without_a_cpu(self):
        # PITFALLS T49.  What the profiler waits for a CPU is no work of its
        # own, as if each reading of the clock came late.
        result = self.run_python(
            '-Xsampleprof=out=profile.pb.gz', '-c', 'import os\n'
            'for _ in range(400): os.stat("."); sum(range(100_000))\n',
            env=self.with_clock('slow_clock', LATE_NS='2000000'))
        self.assertEqual(result.status, 0, result.err)
        counters = Run.load(self, 'profile.pb.gz').stats
        self.assertGreater(counters['overhead_drain_ns'], 0, counters)
        self.assertLessEqual(counters['overhead_drain_ns'],
                             counters['captures'] * 1_000_000)

    def test_overhead_of_the_clock(self):
        # As the kernel counts it.
        with Session(rate_hz=1000) as session:
            spin_until(time.perf_counter() + 0.5)
            found = []
            for thread in os.scandir('/proc/self/task'):
                with open(f'{thread.path}/comm') as file:
                    if file.read() == 'sampleprof\n':
                        with open(f'{thread.path}/schedstat') as file:
                            found.append(int(file.read().split()[0]))
        cpu_ns, = found
        self.assertAlmostEqual(
            session.profile.stats['overhead_clock_ns'], cpu_ns,
            delta=0.1 * cpu_ns + 500_000)

    def test_stopped_for_a_while(self):
        stopped_s = 1.5
        program = subprocess.Popen(
            [sys.executable, OPTION, '-c', TIMED], cwd=self.directory,
            env=environment(), stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True)
        try:
            program.stdout.readline()
            time.sleep(0.1)
            program.send_signal(signal.SIGSTOP)
            time.sleep(stopped_s)
            program.send_signal(signal.SIGCONT)
            out, err = program.communicate(timeout=60)
        finally:
            program.kill()
            program.communicate()
        self.assertEqual(program.returncode, 0, err)
        self.assertGreater(float(out), stopped_s)
        profile = self.check_durations(float(out))
        # Nobody computed meanwhile, and no tick is made up for: these would
        # be 7,500 more, and the clock errs by 5 % and 50 ms at most.
        self.assertLess(profile.total_cpu_ns / 1e9, float(out) - 1)
        went_on_s = profile.duration_ns / 1e9 - stopped_s
        self.assertLess(profile.stats['ticks'],
                        1.05 * profile.rate_hz * (went_on_s + 0.05))
        self.assertGreater(profile.stats['ticks_late'],
                           0.95 * profile.rate_hz * (stopped_s - 0.05))
