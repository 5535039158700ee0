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
        # time that none of the samples' looks did: it goes to where the
        # thread was found last.
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
                         [(0, 1000), (800, 3000)])

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
    """Thousands of waits, each of which has met a tick.

    The waits are those of one thread; another moves the clock.  Who waits for
    the GIL never gets it but by the other's wait.
    """

    def setUp(self):
        super().setUp()
        self.addCleanup(sys.setswitchinterval, sys.getswitchinterval())
        sys.setswitchinterval(1000)

    def test_alternately(self):
        short_ns, long_ns, rounds = 10_000, 150_000, 15_000
        gate, ready = threading.Semaphore(0), threading.Semaphore(0)

        def short():
            gate.acquire()

        def long():
            gate.acquire()

        def wait():
            for _ in range(rounds):
                ready.release()
                short()
                ready.release()
                long()
        with manual() as session:
            thread = threading.Thread(target=wait)
            thread.start()
            for _ in range(rounds):
                for ns in short_ns, long_ns:
                    ready.acquire()
                    tick(ns, 0)
                    gate.release()
            thread.join()
        samples = of_thread(session.profile, thread.native_id)
        self.assertEqual(weight(samples), rounds * (short_ns + long_ns))
        found = weight([s for s in samples
                        if on_stack(s, short.__qualname__)])
        # What is left in the end is shared by the last sixteen.
        self.assertAlmostEqual(found / weight(samples), 1 / 16, delta=0.001)
