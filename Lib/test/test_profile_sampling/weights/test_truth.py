"""Is what a profile says true?  PITFALLS T1-T3, T6, T8, T9, T11, T12.

Each test knows the answer beforehand or measures it beside the profiler, on
the thread's own CPU clock where the machine's load could change it.  Shares
are compared, not speeds.
"""

import os
import random
import threading
import time
import unittest
from collections import Counter

from ..support.sessions import (
    SANITIZER, THOROUGH, Session, SessionTest, _profile, medians, names,
    on_stack, own, python_leaf, weight)
from ..support.work import busy

RATE_HZ = 2000


def share(samples, selected, what='cpu_ns'):
    total = weight(samples, what)
    return weight([s for s in samples if selected(s)], what) / total


def on_cpus(cpus):
    """Let all threads of the process run there, those of the profiler, too."""
    for native_id in os.listdir('/proc/self/task'):
        os.sched_setaffinity(int(native_id), cpus)


class LinesTest(SessionTest):

    def test_operator_on_its_own_line(self):
        # T1.  The multiplication takes 200 us or more, everything around it
        # less than 1 us: more than 99 % belongs to its line, and under a
        # sanitizer, where Python code is slower, more than 95 %.  A profiler
        # that looks when the operator is done sees the caller.
        big = 3 ** 30000

        def leaf():
            return big * big

        place = leaf.__qualname__, leaf.__code__.co_firstlineno + 1

        def run():
            with Session(rate_hz=RATE_HZ) as session:
                for _ in range(800):
                    leaf()
            return [share(own(session.profile), lambda s: place == (
                s.stack[0].function.qualname, s.stack[0].line))]
        [found] = medians(run)
        self.assertGreater(found, 0.95 if SANITIZER else 0.99)

    @unittest.skipIf(len(os.sched_getaffinity(0)) < 2, 'needs two CPUs')
    def test_sampler_on_a_cpu_of_its_own_or_not(self):
        # PITFALLS T51.  A tick that takes its CPU away from a thread has found
        # it there, though the tick before was on another one.
        cpus = os.sched_getaffinity(0)
        self.addCleanup(on_cpus, cpus)

        def beside_it():
            busy(0.01)

        def on_its_cpu():
            busy(0.01)

        def run():
            with Session(mode='cpu', rate_hz=1000) as session:
                for _ in range(50):
                    on_cpus(cpus)
                    beside_it()
                    on_cpus({min(cpus)})
                    on_its_cpu()
            samples = own(session.profile)
            return [share(samples, lambda s: on_stack(
                s, on_its_cpu.__qualname__))]
        [found] = medians(run, rounds=3)
        self.assertAlmostEqual(found, 0.5, delta=0.04)

    def test_equal_calls_that_keep_the_gil(self):
        # PITFALLS T50.  Sixteen lines that call sorted(), some 20 ms each: one
        # tick that goes wrong loses none of them.
        lines, rng = 16, random.Random(3)
        namespace = {'numbers': [rng.random() for _ in range(60_000)]}
        exec('def work():\n' + '    sorted(numbers)\n' * lines, namespace)
        for _ in range(3):
            with Session(mode='cpu', rate_hz=5000) as session:
                namespace['work']()
            cpu_ns = Counter()
            for sample in own(session.profile):
                for frame in sample.stack:
                    if frame.function.qualname == 'work':
                        cpu_ns[frame.line] += sample.cpu_ns
            mean_ns = sum(cpu_ns.values()) / lines
            self.assertEqual(len(cpu_ns), lines)
            self.assertGreater(min(cpu_ns.values()), mean_ns / 2)

    def test_two_operators(self):
        # Two lines whose lengths are measured: the shares agree.  Calls of
        # thread_time() around each cost 1 us of 300; scheduling does not
        # count, as all of it is CPU time.  3 percentage points allow for
        # caches and for a sampling error of 1 / sqrt(3000) = 1.8 (one
        # standard deviation is half of that at a share of 0.3).
        clock = time.thread_time_ns
        a = 3 ** 60000
        b = 5 ** 60000

        def both():
            spent = [0, 0]
            while sum(spent) < 1_500_000_000:
                t0 = clock()
                a * a
                t1 = clock()
                b * b
                t2 = clock()
                spent[0] += t1 - t0
                spent[1] += t2 - t1
            return spent
        with Session(rate_hz=RATE_HZ) as session:
            spent = both()
        first = both.__code__.co_firstlineno
        samples = [s for s in own(session.profile)
                   if s.stack[0].function.qualname == both.__qualname__
                   and s.stack[0].line in (first + 4, first + 6)]
        self.assertAlmostEqual(
            share(samples, lambda s: s.stack[0].line == first + 4),
            spent[0] / sum(spent), delta=0.03)

    def test_long_call_holding_the_gil(self):
        # T2.  1 %: the call begins and ends between two ticks, 1 ms apart,
        # and takes 2 s; the rest is for a sampler that gets no CPU.
        def call():
            t0 = time.thread_time_ns()
            pow(3, exponent)
            return time.thread_time_ns() - t0
        exponent = 400_000
        while True:
            t0 = time.thread_time()
            pow(3, exponent)
            if (took := time.thread_time() - t0) > 0.1:
                break
            exponent *= 2
        # Karatsuba: time goes with the power 1.58.
        exponent = int(exponent * (2.5 / took) ** (1 / 1.585))
        with Session(rate_hz=1000) as session:
            took_ns = call()
        line = call.__code__.co_firstlineno + 2
        there = [s for s in own(session.profile)
                 if python_leaf(s).function.qualname == call.__qualname__
                 and python_leaf(s).line == line]
        self.assertGreater(took_ns, 1_000_000_000)
        self.assertAlmostEqual(weight(there, 'cpu_ns') / took_ns, 1,
                               delta=0.01)
        # It never gave up the GIL, whether or not it had a CPU.
        self.assertLessEqual({s.state for s in there},
                             {'running', 'cpu_wait'})
        self.assertGreaterEqual(
            weight(there) / took_ns, 0.99)


class TimeTest(SessionTest):

    def test_same_seconds_at_every_rate(self):
        # T6.  Weights are measured, so the rate changes nothing in sums.
        # Within one tick of the thread's own clock, and 2 ms for what runs
        # between reading the clock here and in start() and stop(), when
        # another process may get the CPU (no CPU time passes then).
        for rate_hz in 10, 100, 1000:
            with self.subTest(rate_hz=rate_hz):
                t0 = time.thread_time_ns()
                with Session(rate_hz=rate_hz) as session:
                    busy(0.5)
                    used_ns = time.thread_time_ns() - t0
                    profile = session.snapshot()
                tick_ns = 1_000_000_000 // rate_hz
                samples = own(profile)
                self.assertAlmostEqual(weight(samples, 'cpu_ns'), used_ns,
                                       delta=tick_ns + 2_000_000)
                # The session began and ends between two ticks.
                self.assertAlmostEqual(weight(samples), profile.duration_ns,
                                       delta=tick_ns)
                there = [s for s in samples if on_stack(s, 'busy')]
                self.assertGreater(weight(there, 'cpu_ns') + tick_ns,
                                   0.97 * used_ns)

    def test_each_session_has_its_own_rate(self):
        for rate_hz in 1000, 100, 5000, 1000:
            with Session(rate_hz=rate_hz) as session:
                busy(0.2)
            profile = session.profile
            self.assertEqual(profile.rate_hz, rate_hz)
            expected = rate_hz * profile.duration_ns / 1e9
            counters = profile.stats
            self.assertLess(counters['ticks'], 1.2 * expected + 2)
            # On a busy machine some come together, as one.
            self.assertGreater(counters['ticks'] + counters['ticks_late'],
                               0.6 * expected - 2)

    def test_short_threads(self):
        # T8.  Threads of 2 ms, in sequence, at 500 Hz: about one tick each.
        # They have at least what they measure themselves, and at most what
        # the process spent and the main thread did not; between the two are
        # their start and end, about 50 us of 2 ms, and the sampler thread.
        spent = []

        def short():
            t0 = time.thread_time_ns()
            busy(0.002)
            spent.append(time.thread_time_ns() - t0)
        count = 10_000 if THOROUGH else 600
        with Session(rate_hz=500) as session:
            process_ns, own_ns = time.process_time_ns(), time.thread_time_ns()
            for _ in range(count):
                thread = threading.Thread(target=short)
                thread.start()
                thread.join()
            own_ns = time.thread_time_ns() - own_ns
            process_ns = time.process_time_ns() - process_ns
        profile = session.profile
        main = threading.get_native_id()
        samples = [s for s in profile.samples
                   if s.thread.native_id != main]
        self.assertEqual(profile.stats['lost_threads'], 0)
        self.assertGreaterEqual(weight(samples, 'cpu_ns'), sum(spent))
        self.assertLessEqual(weight(samples, 'cpu_ns'), process_ns - own_ns)
        self.assertGreaterEqual(len(profile.threads), count)

    def test_what_short_threads_do_first(self):
        # Threads of four periods, the first half of it in one function and
        # the second in another.  Samples that looked back only would give
        # half a period of each thread to the second: 37 % instead of 50.
        # 6 percentage points are four standard deviations of the sampling
        # error.
        spent = [0, 0]

        def first():
            busy(0.004)

        def second():
            busy(0.004)

        def job():
            moments = [time.thread_time_ns()]
            for work in first, second:
                work()
                moments.append(time.thread_time_ns())
            for i in range(2):
                spent[i] += moments[i + 1] - moments[i]
        with Session(rate_hz=500) as session:
            for _ in range(300):
                thread = threading.Thread(target=job)
                thread.start()
                thread.join()
        found = [weight([s for s in session.profile.samples
                         if on_stack(s, work.__qualname__)], 'cpu_ns')
                 for work in (first, second)]
        self.assertAlmostEqual(found[0] / sum(found), spent[0] / sum(spent),
                               delta=0.06)


class RecursionTest(SessionTest):

    def test_counted_once(self):
        # T9.
        def down(n):
            if n:
                return down(n - 1)
            busy(0.3)
        with Session(rate_hz=RATE_HZ) as session:
            down(500)
        profile = session.profile
        for rows in profile.functions(), profile.lines():
            for row in rows:
                self.assertLessEqual(row.cum_wall_ns, profile.total_wall_ns)
                self.assertLessEqual(row.cum_count, profile.total_count)
                self.assertLessEqual(row.self_wall_ns, row.cum_wall_ns)
        row, = [row for row in profile.functions()
                if row.function.qualname == down.__qualname__]
        self.assertGreater(row.cum_cpu_ns, 290_000_000)


# T3: two chains that never mix.  Names of one start with a, of the other
# with b; calls, generators, throw(), failing calls, destructors.

CHAINS = '''
class {x}Error(Exception):
    pass

def {x}leaf(n):
    return n + 1

def {x}fail(one, two):
    return one

def {x}inner():
    try:
        while True:
            try:
                yield {x}leaf(1)
            except {x}Error:
                {x}leaf(2)
    finally:
        {x}leaf(3)

def {x}outer():
    yield from {x}inner()

class {x}Dies:
    def __del__(self):
        {x}leaf(4)

    def __init__(self):
        {x}leaf(4)

async def {x}awaited():
    return {x}leaf(5)

async def {x}awaits():
    return await {x}awaited()

def {x}mid(n):
    g = {x}outer()
    next(g)
    g.throw({x}Error())
    try:
        {x}fail(1)              # its frame cannot be set up
    except TypeError:
        pass
    try:
        {x}fail(1, 2, *range(3), three=3)
    except TypeError:
        pass
    try:
        {x}awaits().send(None)
    except StopIteration:
        pass
    sum({x}leaf(i) for i in range(3))
    {x}Dies()
    sorted([2, 1], key={x}leaf)
    g.close()
    if n:
        {x}mid(n - 1)

def {x}top(n):
    {x}mid(n)
'''


class Spliced(Exception):
    """A stack that the program never had."""


class SplicingTest(SessionTest):

    def mixed(self, seconds, samples=None):
        namespace = {'__name__': 'chains'}
        for letter in 'ab':
            exec(compile(CHAINS.format(x=letter), f'<{letter}>', 'exec'),
                 namespace)
        stop = time.monotonic() + seconds
        taken = 0

        def run(first, second):
            nonlocal taken
            with Session(rate_hz=10_000) as session:
                while time.monotonic() < stop:
                    for n in range(50):
                        first(n % 4)
                        second(n % 3)
                    if samples is not None and (
                            _profile.stats()['captures'] > samples):
                        break
            for sample in session.profile.samples:
                stack = [name for frame in sample.stack
                         if frame.function.filename in ('<a>', '<b>')
                         for name in (frame.function.qualname,)]
                if len({name[0] for name in stack}) > 1:
                    raise Spliced(names(sample))
                # Every caller-callee pair is one the program makes.
                for callee, caller in zip(stack, stack[1:]):
                    pair = (caller[1:].rpartition('.')[2],
                            callee[1:].rpartition('.')[2])
                    if pair not in PAIRS:
                        raise Spliced(names(sample))
                taken += sample.count
        run(namespace['atop'], namespace['btop'])
        return taken

    def test_two_chains(self):
        # As many samples as fit.
        self.assertGreater(self.mixed(8), 1000)

    @unittest.skipUnless(THOROUGH, 'takes minutes of CPU: -u cpu')
    def test_two_chains_a_million_samples(self):
        self.assertGreater(self.mixed(3600, 1_000_000), 1_000_000)


PAIRS = {
    ('top', 'mid'), ('mid', 'mid'), ('mid', 'outer'), ('outer', 'inner'),
    ('inner', 'leaf'), ('mid', 'leaf'), ('mid', '__init__'),
    ('mid', '__del__'), ('__init__', 'leaf'), ('__del__', 'leaf'),
    ('mid', 'awaits'), ('awaits', 'awaited'), ('awaited', 'leaf'),
    ('mid', '<genexpr>'), ('<genexpr>', 'leaf'), ('mid', 'fail'),
    # close() of a generator runs what it delegates to without its frame.
    ('mid', 'inner'),
}
