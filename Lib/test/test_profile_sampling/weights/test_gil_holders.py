"""Who held the GIL while others waited for it."""

import _interpreters
import contextlib
import ctypes
import sys
import threading
import time
import unittest

from profile_sampling._formats import text as _text

from ..support import sessions
from ..support.builders import reloaded
from ..support.manual import manual, tick
from ..support.sessions import (
    SANITIZER, _profile, Session, SessionTest, checked, of_thread, weight)
from ..support.subscribers import Recorder, SubscriberTest, subscribe_manually
from ..support.work import SPIN

MS = 1_000_000
PLACES = 256        # that the core remembers
MAX_PAIRS = 65536   # of stacks that wait and of holders
# Whatever is called through it keeps the GIL.
libc = ctypes.PyDLL(None)


def sleep_with_gil(seconds):
    libc.usleep(int(seconds * 1e6))


def status(native_id):
    """State, and how often it has gone to sleep; without giving the GIL up.
    """
    fd = libc.open(b'/proc/self/task/%d/status' % native_id, 0)
    buffer = ctypes.create_string_buffer(8192)
    libc.read(fd, buffer, len(buffer))
    libc.close(fd)
    fields = dict(line.partition(b':')[::2]
                  for line in buffer.value.splitlines())
    return (fields[b'State'].split()[0],
            int(fields[b'voluntary_ctxt_switches']))


class Waiter:
    """A thread that waits for the GIL from let() on, and then does work()."""

    def __init__(self, work=None):
        self.work = work
        self.gate = threading.Lock()
        self.gate.acquire()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()
        self.native_id = self.thread.native_id
        sessions.wait_until_asleep(self.native_id)

    def run(self):
        self.gate.acquire()
        if self.work is not None:
            self.work()

    def let(self):
        """Until it waits for the GIL, which stays with the caller."""
        _, before = status(self.native_id)
        self.gate.release()
        seen = 0
        while seen < 2:
            state, sleeps = status(self.native_id)
            seen = seen + 1 if state == b'S' and sleeps > before else 0
            sleep_with_gil(0.002)


@contextlib.contextmanager
def only_given_up():
    """Nobody is asked for the GIL."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def first(ns):
    tick(ns, 0)


def second(ns):
    tick(ns, 0)


def through_c(ns):
    any(map(tick, [ns], [0]))


def named(holder):
    """What tests tell holders by."""
    name = holder.function.qualname.rpartition('.')[2]
    callee = holder.callee.name if holder.callee is not None else None
    return name, callee


def waits(profile, native_id):
    """{(thread of the holder, function, callee): wall_ns} of a waiter."""
    result = {}
    for row in profile.gil_holders():
        if row.thread.native_id == native_id:
            thread = row.holder.thread
            key = (thread and thread.native_id, *named(row.holder))
            result[key] = result.get(key, 0) + row.wall_ns
    return result


class PatternTest(SubscriberTest):
    """By a clock that the test ticks: exact."""

    def setUp(self):
        super().setUp()
        self.enterContext(only_given_up())
        self.own_id = threading.get_native_id()

    def test_one_after_the_other(self):
        # Of two that held it meanwhile the tick that is drawn says who.
        order = []

        def work():
            order.append(threading.get_native_id())
            if len(order) == 1:
                through_c(4 * MS)
        with manual(names=1) as session:
            waiters = [Waiter(work), Waiter(work)]
            for waiter in waiters:
                waiter.let()
            first(6 * MS)
            for waiter in waiters:
                waiter.thread.join()
        profile = session.profile
        early, late = order
        main = self.own_id, 'first', '_profile.tick'
        self.assertEqual(waits(profile, early), {main: 6 * MS})
        # The thread that held it after that has ended by then.
        held, = waits(profile, late).items()
        self.assertIn(held, [
            (main, 10 * MS), ((early, 'through_c', 'builtins.any'), 10 * MS)])
        for waiter in waiters:
            self.assertEqual(
                sum(waits(profile, waiter.native_id).values()),
                weight([s for s in of_thread(profile, waiter.native_id)
                        if s.state == 'gil_wait']))

    def test_each_as_often_as_it_held(self):
        # Of eight ticks of each wait six find the holder in one function and
        # two in the other.
        rounds, ticks = 400, [first] * 3 + [second] * 2 + [first] * 3
        gate, ready = threading.Lock(), threading.Lock()
        gate.acquire()
        ready.acquire()

        def wait():
            for _ in range(rounds):
                gate.acquire()
                ready.release()
        thread = threading.Thread(target=wait)
        with manual() as session:
            thread.start()
            for _ in range(rounds):
                gate.release()
                sleep_with_gil(0.0005)      # until it waits for the GIL
                for place in ticks:
                    place(1000)
                ready.acquire()
            thread.join()
        found = waits(session.profile, thread.native_id)
        total = sum(found.values())
        self.assertGreater(total, 0.9 * 8000 * rounds)
        # Four standard deviations.
        self.assertAlmostEqual(found[self.own_id, 'second', None] / total,
                               2 / 8, delta=0.09)

    def test_place_of_both(self):
        with manual() as session:
            waiter = Waiter()
            waiter.let()
            first(1 * MS)
            waiter.thread.join()
        row, = [row for row in session.profile.gil_holders()
                if row.thread.native_id == waiter.native_id]
        self.assertEqual(row.function.qualname, 'Waiter.run')
        self.assertEqual(row.line, Waiter.run.__code__.co_firstlineno + 1)
        self.assertEqual(row.holder.thread.native_id, self.own_id)
        self.assertEqual(row.holder.function.qualname, 'first')
        self.assertEqual(row.holder.line, first.__code__.co_firstlineno + 1)
        self.assertIsNone(row.holder.callee)
        self.assertEqual((row.count, row.wall_ns), (1, MS))

    def test_line_of_mine(self):
        # Of the program's own, below what libraries call; these tests are in
        # the standard library.
        scope = {'call': lambda: first(1 * MS)}
        exec(compile('def mine():\n\n    call()', '/app/mine.py', 'exec'),
             scope)
        with manual() as session:
            waiter = Waiter()
            waiter.let()
            scope['mine']()
            waiter.thread.join()
        for profile in session.profile, reloaded(session.profile):
            holder, = [row.holder for row in profile.gil_holders()
                       if row.thread.native_id == waiter.native_id]
            self.assertEqual(holder.function.qualname, 'first')
            self.assertEqual((holder.site.function.qualname,
                              holder.site.function.filename, holder.site.line),
                             ('mine', '/app/mine.py', 3))

    def test_only_what_was_waited(self):
        with manual() as session:
            waiter = Waiter()
            first(5 * MS)
            second(1 * MS)
            waiter.let()
            second(2 * MS)
            waiter.thread.join()
        self.assertEqual(waits(session.profile, waiter.native_id),
                         {(self.own_id, 'second', None): 2 * MS})
        waited = [s for s in of_thread(session.profile, waiter.native_id)
                  if s.state == 'waiting']
        self.assertEqual(weight(waited), 6 * MS)

    def test_snapshots(self):
        with manual() as session:
            waiter = Waiter()
            waiter.let()
            first(3 * MS)
            early = _profile.snapshot()
            second(2 * MS)
            both_parts = _profile.snapshot()
            waiter.thread.join()
        # Not before: to check a profile gives the GIL up.
        early, both_parts = checked(early), checked(both_parts)
        held = (self.own_id, 'first', None), (self.own_id, 'second', None)
        self.assertEqual(waits(early, waiter.native_id), {held[0]: 3 * MS})
        for profile in both_parts, session.profile:
            self.assertEqual(waits(profile, waiter.native_id),
                             {held[0]: 3 * MS, held[1]: 2 * MS})

    def test_clear(self):
        with manual() as session:
            waiter = Waiter()
            waiter.let()
            first(3 * MS)
            early = _profile.snapshot(clear=True)
            second(2 * MS)
            late = _profile.snapshot(clear=True)
            first(1 * MS)
            waiter.thread.join()
        for profile, name, ns in ((checked(early), 'first', 3),
                                  (checked(late), 'second', 2),
                                  (session.profile, 'first', 1)):
            self.assertEqual(waits(profile, waiter.native_id),
                             {(self.own_id, name, None): ns * MS})

    def test_session_begins_while_it_waits(self):
        waiter = Waiter()
        waiter.let()
        with manual() as session:
            first(3 * MS)
            waiter.thread.join()
        # That it waits is told when it asks again, or never.
        waited = [s for s in of_thread(session.profile, waiter.native_id)
                  if s.state == 'gil_wait']
        self.assertEqual(sum(waits(session.profile,
                                   waiter.native_id).values()),
                         weight(waited))

    def test_more_than_is_remembered(self):
        lost = 50
        with manual() as session:
            waiter = Waiter()
            waiter.let()
            for i in range(PLACES + lost):
                (first, second)[i % 2](10_000)
            waiter.thread.join()
        (holder, ns), = waits(session.profile, waiter.native_id).items()
        self.assertEqual(ns, (PLACES + lost) * 10_000)
        self.assertIn(holder, [(self.own_id, 'first', None),
                               (self.own_id, 'second', None),
                               (None, '[unknown]', None)])

    @unittest.skipIf(SANITIZER, 'takes minutes')
    def test_more_pairs_than_rows(self):
        # Each line waits for each line: of more than MAX_PAIRS pairs the
        # holder is unknown, and the sums are right all the same.
        lines, places, groups = 1100, 8, 61
        gate, ready = threading.Lock(), threading.Lock()
        gate.acquire()
        ready.acquire()
        namespace = {'tick': tick, 'gate': gate, 'ready': ready}
        exec('def wait():\n'
             + '    gate.acquire(); ready.release()\n' * lines, namespace)
        for group in range(groups):
            exec('def hold():\n' + '    tick(100_000, 0)\n' * places,
                 namespace)
            code = namespace['hold'].__code__
            namespace[group] = type(namespace['hold'])(
                code.replace(co_qualname=f'hold_{group}'), namespace)

        def run():
            for _ in range(groups):
                namespace['wait']()
        thread = threading.Thread(target=run)
        with manual() as session:
            thread.start()
            for group in range(groups):
                for _ in range(lines):
                    gate.release()
                    sleep_with_gil(50e-6)
                    namespace[group]()
                    ready.acquire()
            thread.join()
        profile = session.profile
        self.assertGreater(profile.stats['lost_holders'], 0)
        waited = [s for s in of_thread(profile, thread.native_id)
                  if s.state == 'gil_wait']
        self.assertAlmostEqual(
            len([s for s in waited if s.gil_holder.thread is not None]),
            MAX_PAIRS, delta=10)
        found = waits(profile, thread.native_id)
        self.assertEqual(sum(found.values()), weight(waited))
        self.assertGreater(found[None, '[unknown]', None], 0)
        self.assertIn('samples without their holder of the GIL',
                      _text.render(profile._tables))

    def test_subscriber(self):
        recorder = Recorder()
        with subscribe_manually(recorder, names=1) as subscription:
            waiter = Waiter()
            waiter.let()
            first(6 * MS)
            second(2 * MS)
            waiter.thread.join()
            subscription.flush()
        found = {}
        for batch in recorder.batches:
            for sample in batch:
                self.assertEqual(sample.gil_holder is not None,
                                 sample.state == 'gil_wait')
                if sample.thread.native_id == waiter.native_id and (
                        sample.gil_holder is not None):
                    self.assertEqual(sample.gil_wait_ns, sample.wall_ns)
                    key = named(sample.gil_holder)
                    found[key] = found.get(key, 0) + sample.wall_ns
        (holder, ns), = found.items()
        self.assertIn(holder, [('first', '_profile.tick'),
                               ('second', '_profile.tick')])
        self.assertEqual(ns, 8 * MS)


class RealTest(SessionTest):

    def test_c_function_that_keeps_the_gil(self):
        numbers = [(i * 7919) % 1_000_003 for i in range(300_000)]
        done = threading.Event()

        def sort_all():
            while not done.is_set():
                sorted(numbers)
        thread = threading.Thread(target=sort_all)
        with Session(names=1) as session:
            thread.start()
            end = time.monotonic() + 1
            while time.monotonic() < end:
                time.sleep(0.001)
            done.set()
            thread.join()
        found = waits(session.profile, threading.get_native_id())
        total = sum(found.values())
        self.assertGreater(total, 300 * MS)
        # What is missing: ends of threads, other threads of the machine.
        sorting = found[thread.native_id, 'sort_all', 'builtins.sorted']
        self.assertGreater(sorting, 0.8 * total, found)

    def test_subinterpreter(self):
        # It shares the GIL.
        interpreter = _interpreters.create('legacy')
        self.addCleanup(_interpreters.destroy, interpreter)

        def run():
            _interpreters.exec(interpreter, SPIN + 'spin(0.5)')
        thread = threading.Thread(target=run)
        with Session() as session:
            thread.start()
            while thread.is_alive():
                time.sleep(0.001)
        held = {}
        for row in session.profile.gil_holders():
            if row.thread.native_id == threading.get_native_id():
                at = row.holder.thread and row.holder.thread.interpreter_id
                key = at, row.holder.function.qualname
                held[key] = held.get(key, 0) + row.wall_ns
        self.assertGreater(held[interpreter, 'spin'],
                           0.8 * sum(held.values()))
