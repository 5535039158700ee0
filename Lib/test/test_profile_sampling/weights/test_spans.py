"""What a tick stands for when its answer is late, and what short waits weigh.

By a clock that the test ticks, as in test_manual.
"""

import ctypes
import itertools
import signal
import sys
import threading

from ..support.manual import manual, tick
from ..support.sessions import SessionTest, of_thread, on_stack, weight

SAMPLES_THAT_WAIT = 16      # of a thread, to share its time


def change_mask(how, signum):
    """As C code does it, which the profiler does not notice."""
    ctypes.PyDLL(None).pthread_sigmask(
        how, (1 << signum - 1).to_bytes(128, 'little'), None)


class SpansTest(SessionTest):
    """A tick weighs the time since the clock's look before it, not the time
    since the last capture.

    Both are the same as long as each look is answered at once.  So a thread
    holds the signal of the first of two looks back, as one does that waits for
    a CPU: the sample has only the time up to the first, the next sample has
    the rest.
    """

    SIGNAL = signal.SIGUSR2

    def setUp(self):
        super().setUp()
        self.addCleanup(change_mask, signal.SIG_UNBLOCK, self.SIGNAL)

    def manual(self):
        return manual(signal=self.SIGNAL)

    def answer_late(self, *looks):
        change_mask(signal.SIG_BLOCK, self.SIGNAL)
        for look in looks:
            tick(*look)
        change_mask(signal.SIG_UNBLOCK, self.SIGNAL)

    # A burst of 3 us: the first of its functions takes 2 us of them.
    def begin(self):
        self.answer_late((1000, 10), (1000, 10))

    def end(self):
        tick(1000, 10)

    def sums(self, profile, *functions):
        """[(cpu_ns, wall_ns)] below each of the functions."""
        below = [[s for s in profile.samples
                  if on_stack(s, function.__qualname__)]
                 for function in functions]
        return [(weight(samples, 'cpu_ns'), weight(samples))
                for samples in below]

    def test_bursts_between_waits(self):
        # 1 %: of 2,000 samples, sixteen have not been weighed by what follows
        # them.  By the time since the last capture the shares of both would
        # be the other way round.
        bursts = 1000

        def work():
            for _ in range(bursts):
                self.begin()
                self.end()
                ready.release()
                gate.acquire()
        gate, ready = threading.Semaphore(0), threading.Semaphore(0)
        with self.manual() as session:
            thread = threading.Thread(target=work)
            thread.start()
            for _ in range(bursts):
                ready.acquire()
                tick(1700, 0)
                gate.release()
            thread.join()
        samples = [s for s in of_thread(session.profile, thread.native_id)
                   if s.state in ('running', 'cpu_wait')]
        there = [weight([s for s in samples
                         if on_stack(s, function.__qualname__)])
                 for function in (self.begin, self.end)]
        self.assertEqual(sum(there), 3000 * bursts)
        self.assertAlmostEqual(there[0] / sum(there), 2 / 3, delta=0.01)

    def test_sums_are_exact_at_every_point(self):
        # However many samples wait, and have left: what a snapshot takes is
        # the time that has passed.
        with self.manual() as session:
            for bursts in range(1, SAMPLES_THAT_WAIT + 4):
                for _ in range(bursts):
                    self.begin()
                    self.end()
                profile = session.snapshot(clear=True)
                self.assertEqual(
                    (profile.total_cpu_ns, profile.total_wall_ns),
                    (30 * bursts, 3000 * bursts))

    def test_more_samples_than_wait(self):
        # Each one stands for its own time: they share nothing.
        n = 3 * SAMPLES_THAT_WAIT
        source = 'def straight():\n' + ''.join(
            [f'    for _ in "1": tick({i}, {i * i})\n'
             for i in range(1, n + 1)])
        namespace = {'tick': tick}
        exec(source, namespace)
        with manual() as session:
            namespace['straight']()
        self.assertEqual(
            {sample.stack[0].line - 1: (sample.wall_ns, sample.cpu_ns)
             for sample in session.profile.samples},
            {i: (i, i * i) for i in range(1, n + 1)})

    def test_cpu_time_goes_to_looks_that_found_it(self):
        # The CPU time of the late answer is on the clock only later, when a
        # look finds the thread without it.
        def late():
            self.answer_late((1000, 0), (1000, 600))

        def busy():
            tick(1000, 600)

        def idle():
            tick(1000, 0)
        with self.manual() as session:
            busy()
            late()
            idle()
        self.assertEqual(self.sums(session.profile, busy, late, idle),
                         [(600, 1000), (600, 2000), (0, 1000)])

    def test_cpu_time_that_no_look_found(self):
        # A look in the kernel's queue when the session ends has found CPU
        # time that none of the samples' looks did: it goes as wall time does.
        def short():
            tick(1000, 0)

        def long():
            tick(3000, 0)
        with self.manual() as session:
            short()
            long()
            change_mask(signal.SIG_BLOCK, self.SIGNAL)
            tick(0, 800)
        self.assertEqual(self.sums(session.profile, short, long),
                         [(200, 1000), (600, 3000)])

    def test_a_flush_shares(self):
        # What passed since the last capture is shared by all that wait.
        def short():
            tick(1000, 10)

        def long():
            tick(3000, 30)
        for functions in itertools.permutations((short, long)):
            with self.manual() as session:
                for function in functions:
                    function()
                change_mask(signal.SIG_BLOCK, self.SIGNAL)
                tick(4000, 40)
            change_mask(signal.SIG_UNBLOCK, self.SIGNAL)
            self.assertEqual(self.sums(session.profile, short, long),
                             [(20, 2000), (60, 6000)])

    def test_a_thread_that_ends_shares(self):
        def short():
            tick(1000, 10)

        def long():
            tick(3000, 30)

        def work():
            long()
            short()
            change_mask(signal.SIG_BLOCK, self.SIGNAL)
            tick(4000, 40)
        with self.manual() as session:
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
        self.assertEqual(self.sums(session.profile, short, long),
                         [(20, 2000), (60, 6000)])


class ShortWaitsTest(SessionTest):
    """Thousands of waits, each of which is shorter than half a period.

    The waits are those of one thread; another moves the clock.  Who waits for
    the GIL never gets it but by the other's wait.
    """

    def setUp(self):
        super().setUp()
        self.addCleanup(sys.setswitchinterval, sys.getswitchinterval())
        sys.setswitchinterval(1000)

    def sites(self):
        def one():
            self.gate.acquire()

        def other():
            self.gate.acquire()
        return one, other

    def run_waits(self, plan, **options):
        """The profile of waits [(where, wall_ns, cpu_ns)], and whose."""
        self.gate = threading.Semaphore(0)
        ready = threading.Semaphore(0)

        def wait():
            for where, _, cpu_ns in plan:
                if cpu_ns != 0:
                    # It is known only when the wait is over.
                    tick(0, cpu_ns)
                ready.release()
                where()
        with manual(**options) as session:
            thread = threading.Thread(target=wait)
            thread.start()
            for _, wall_ns, _ in plan:
                ready.acquire()
                tick(wall_ns, 0)
                self.gate.release()
            thread.join()
        return session.profile, thread.native_id

    def check(self, plan, *, delta, what=1, **options):
        """The first site's share of the wall (1) or CPU time (2)."""
        profile, native_id = self.run_waits(plan, **options)
        samples = of_thread(profile, native_id)
        for i, name in (1, 'wall_ns'), (2, 'cpu_ns'):
            self.assertEqual(weight(samples, name),
                             sum([wait[i] for wait in plan]), name)
        # A record per point, a period apart on average, however many waits.
        periods = (sum([wait[1] for wait in plan])
                   * options.get('rate_hz', 1000) / 1e9)
        self.assertLess(sum([s.count for s in samples
                             if s.state != 'running']), 1.2 * periods + 3)
        name = ('wall_ns', 'cpu_ns')[what - 1]
        first = plan[0][0]
        due = sum([wait[what] for wait in plan if wait[0] is first])
        found = weight([s for s in samples
                        if on_stack(s, first.__qualname__)], name)
        self.assertAlmostEqual(found / weight(samples, name),
                               due / sum([wait[what] for wait in plan]),
                               delta=delta)

    # About 2,400 points on the axis of short waits say which are recorded.  A
    # share of 1/16 varies by 0.5 percentage points then, one of a half by 1.0:
    # three standard deviations are allowed.

    def test_alternately(self):
        one, other = self.sites()
        self.check([(one, 10_000, 0), (other, 150_000, 0)] * 15_000,
                   delta=0.015)

    def test_cpu_time(self):
        # One burns CPU time twice as fast as the other.  Both are longer than
        # the CPU clock is left unread.
        one, other = self.sites()
        self.check([(one, 1_000_000, 500_000),
                    (other, 1_000_000, 1_000_000)] * 5000,
                   what=2, rate_hz=100, delta=0.03)

    def test_cpu_time_of_a_few(self):
        # All of it, though most of the points lie in what burns none.
        one, other = self.sites()
        self.check([(one, 200_000, 200_000), (other, 1_800_000, 0)] * 5000,
                   what=2, rate_hz=100, delta=0.02)
