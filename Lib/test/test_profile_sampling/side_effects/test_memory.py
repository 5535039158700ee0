"""What the profiler keeps is bounded and its own.  PITFALLS L6, L10."""

import functools
import gc
import itertools
import sys
import threading
import time
import tracemalloc
import types
import unittest
import weakref

import profile_sampling

from ..support.sessions import (
    SANITIZER, ProgramTest, Session, SessionTest, _profile, checked)

tick = _profile.tick


resident = unittest.skipIf(
    SANITIZER, 'a sanitizer keeps the memory that was freed')


def resident_kib():
    with open('/proc/self/status') as file:
        for line in file:
            if line.startswith('VmRSS:'):
                return int(line.split()[1])


def churn(count):
    """Make, run and drop *count* pieces of code that say the same."""
    for _ in range(count):
        exec(compile('def f():\n    tick(1, 1)\nf()',
                     '<made>', 'exec'), {'tick': tick, '__name__': 'made'})


class CodeTest(SessionTest):

    def test_code_is_not_kept_alive(self):
        namespace = {'tick': tick}
        exec('def f():\n    tick(1, 1)', namespace)
        code = weakref.ref(namespace['f'].__code__)
        with Session(manual=True) as session:
            namespace['f']()
            references = sys.getrefcount(code())
            namespace['f']()
            self.assertEqual(sys.getrefcount(code()), references)
            del namespace['f']
            self.assertIsNone(code())
            profile = session.snapshot()
        # What was seen of it is still there.
        self.assertEqual([(s.stack[0].function.qualname, s.count)
                          for s in profile.samples], [('f', 1), ('f', 1)])

    def test_code_that_dies_before_the_safepoint(self):
        # The tick is taken inside f(); f and its code are gone before the
        # next safepoint of the caller.
        with Session(manual=True) as session:
            for i in range(500):
                namespace = {'tick': tick}
                exec(f'def f{i % 7}(): tick(1, 1)', namespace)
                namespace.pop(f'f{i % 7}')()
        found = {}
        for sample in session.profile.samples:
            name = sample.stack[0].function.qualname
            found[name] = found.get(name, 0) + sample.wall_ns
        self.assertEqual(set(found), {f'f{i}' for i in range(7)})
        self.assertEqual(sum(found.values()), 500)

    def test_new_code_at_an_old_address(self):
        # Addresses come back at once; names and lines must be the new ones.
        lines = {}
        with Session(manual=True) as session:
            for i in range(300):
                namespace = {'tick': tick}
                exec('\n' * i + f'def f{i}(): tick({i}, {i})', namespace)
                namespace[f'f{i}']()
                lines[f'f{i}'] = i + 1
        found = {s.stack[0].function.qualname:
                 (s.stack[0].line, s.stack[0].function.first_line, s.wall_ns)
                 for s in session.profile.samples}
        self.assertEqual(found, {f'f{i}': (i + 1, i + 1, i)
                                 for i in range(300)})

    def test_modules_that_are_told_late(self):
        # At the first sample the frame is gone by the safepoint, and so is
        # the name of its module; at the second it is still there.  Who
        # compiles the same text again and again adds nothing.
        class Ticking:
            __neg__ = staticmethod(functools.partial(tick, 1, 1))
        text = 'def f(a, stays):\n    -a\n    if stays: len("")\n'
        with Session(manual=True):
            kept = []
            for rounds in 3, 50:
                for _ in range(rounds):
                    namespace = {'__name__': 'made'}
                    exec(compile(text, '<made>', 'exec'), namespace)
                    namespace['f'](Ticking(), False)
                    namespace['f'](Ticking(), True)
                    kept.append(namespace)
                raw = _profile.snapshot()
                profile = checked(raw)
                rows = [row for row in raw['functions'] if row[1] == 'f']
                self.assertEqual(len(rows), len(set(rows)))
                found = {}
                for sample in profile.samples:
                    function = sample.stack[0].function
                    if function.qualname == 'f':
                        found[function.module] = (
                            found.get(function.module, 0) + sample.wall_ns)
                self.assertEqual(sum(found.values()), 2 * len(kept))
                # Of a code object whose module is known, every sample.
                self.assertGreaterEqual(found['made'], len(kept))
                self.assertLessEqual(set(found), {'made', None})
                numbers = len(rows), len(raw['frames']), len(raw['nodes'])
                if rounds == 3:
                    before = numbers
        self.assertEqual(numbers, before)

    def test_frames_objects_and_locals_are_not_kept(self):
        class Local:
            pass

        def f():
            local = Local()
            tick(1, 1)
            return weakref.ref(local)
        with Session(manual=True):
            reference = f()
            self.assertIsNone(reference())


class BoundsTest(SessionTest):

    @resident
    def test_sessions_leave_nothing(self):
        def use():
            for _ in range(20):
                with Session(manual=True, depth_frames=4000):
                    churn(5)
        use()
        gc.collect()
        before = resident_kib()
        for _ in range(5):
            use()
        gc.collect()
        # A leak of one session's buffer, 250 KB, would make 25 MB.
        self.assertLess(resident_kib() - before, 4096)

    def test_tracemalloc_sees_nothing(self):
        started_here = not tracemalloc.is_tracing()
        if started_here:
            tracemalloc.start()
            self.addCleanup(tracemalloc.stop)
        _profile.start(names=0, manual=True, depth_frames=16_384)
        churn(1)
        before = tracemalloc.get_traced_memory()[0]
        for i in range(2000):
            tick(1, 1)
        after = tracemalloc.get_traced_memory()[0]
        checked(_profile.stop())
        # The loop's own integer, and a counter or two of tracemalloc's.
        self.assertLess(after - before, 1000)

    def test_allocator_counts_are_the_programs(self):
        # sys.getallocatedblocks(): the leak checkers of regrtest read it.
        def work():
            for _ in range(100):
                tick(1, 1)
        with Session(manual=True):
            work()
            before = sys.getallocatedblocks()
            work()
            self.assertLessEqual(sys.getallocatedblocks() - before, 3)

    def test_collector_does_not_run_more(self):
        with Session(manual=True):
            was = gc.isenabled()
            gc.disable()
            self.addCleanup(gc.enable if was else gc.disable)
            before = gc.get_count()[0]
            for _ in range(1000):
                tick(1, 1)
            self.assertLess(gc.get_count()[0] - before, 50)


def work():
    tick(1, 1)


class RoundsTest(SessionTest):
    """Rounds of the same work, in which all has to be told apart.

    PITFALLS L10; "bench soak" goes on for half an hour with each of five
    programs.
    """

    ROUNDS = 40
    WARM_UP_ROUNDS = 5

    def setUp(self):
        super().setUp()
        self.numbers = itertools.count(1)

    def one_round(self):
        for _ in range(400):
            self.new_code()
            with profile_sampling.label(request=next(self.numbers)):
                work()
        for _ in range(100):
            thread = threading.Thread(
                target=work, name=f'thread {next(self.numbers)}')
            thread.start()
            thread.join()

    def new_code(self):
        # Another first line is another function.  A new name would be kept
        # for ever by the interpreter itself, which interns it.
        types.FunctionType(work.__code__.replace(
            co_firstlineno=next(self.numbers)), {'tick': tick})()

    def memory_bytes(self):
        """With the round's rows, and after they are cleared."""
        full = _profile.stats()['memory_bytes']
        raw = _profile.snapshot(clear=True)
        self.assertGreaterEqual(len(raw['functions']), 400)
        self.assertGreaterEqual(len(raw['labels']), 400)
        self.assertGreaterEqual(len(raw['threads']), 100)
        return full, _profile.stats()['memory_bytes']

    @resident
    def test_rounds_do_not_grow(self):
        with Session(manual=True):
            for number in range(self.ROUNDS):
                self.one_round()
                bytes_now = self.memory_bytes()
                if number == self.WARM_UP_ROUNDS:
                    gc.collect()
                    bytes_before, kib_before = bytes_now, resident_kib()
            gc.collect()
            kib_now = resident_kib()
        # 30,600 things were new since.  Three bytes of each would be seen in
        # what the profiler says of itself, and 70 in what the kernel says.
        for before, now in zip(bytes_before, bytes_now):
            self.assertLess(now - before, 64 * 1024)
        self.assertLess(kib_now - kib_before, 2048)


class OperandSlotsTest(SessionTest):
    """Where operands lie: one byte for each two bytes of sampled code."""

    TEXT = ('def work():\n    tick(1, 0)\n'
            + '    x = (1, 2, [3])\n' * 300)

    def setUp(self):
        super().setUp()
        space = {}
        exec(self.TEXT, space)
        self.code = space['work'].__code__

    def make(self):
        work = types.FunctionType(self.code.replace(), {'tick': tick})
        work()
        return work

    def test_freed_with_the_code(self):
        with Session(manual=True, names=3):
            for _ in range(10):
                self.make()
            before = _profile.stats()['memory_bytes']
            for _ in range(1000):
                self.make()
            after = _profile.stats()['memory_bytes']
        # 1,000 of them would be a megabyte.
        self.assertLess(after, before + 100_000)


class LargeTest(SessionTest):
    """What is handed over takes as long as it is large, and stops nobody."""

    def setUp(self):
        super().setUp()
        _profile.start(manual=True, names=0)

    @staticmethod
    def fill(rows, start=0):
        for i in range(start, start + rows):
            _profile.sample(1, {'number': str(i)})

    @staticmethod
    def shortest_ns(act):
        times = []
        for _ in range(20):
            before_ns = time.thread_time_ns()
            act()
            times.append(time.thread_time_ns() - before_ns)
        return min(times)

    def test_a_block_beside_many_rows(self):
        def block():
            _profile.end_block(_profile.begin_block())
        before_ns = self.shortest_ns(block)
        self.fill(100_000)
        self.assertLess(self.shortest_ns(block), 3 * before_ns)

    def test_modules_of_many_files(self):
        # Each is looked for once, in its own file.
        def sample():
            _profile.sample(1, {})

        def block(number):
            block = _profile.begin_block()
            for i in range(number):
                code = compile('sample()', f'{number}/{i}.html', 'exec')
                exec(code, {'sample': sample, '__builtins__': {}})
            before_ns = time.thread_time_ns()
            self.assertGreater(len(_profile.end_block(block)['functions']),
                               number)
            return time.thread_time_ns() - before_ns
        few_ns = min([block(1000 + i) for i in range(3)])
        many_ns = min([block(8000 + i) for i in range(3)])
        self.assertLess(many_ns, 24 * few_ns, 'it was 64')

    def test_others_run_during_a_snapshot(self):
        self.fill(20_000)
        self.addCleanup(sys.setswitchinterval, sys.getswitchinterval())
        ran, is_over = [0], threading.Event()

        def run():
            while not is_over.is_set():
                ran[0] += 1
                time.sleep(0)       # nobody else gives up the GIL
        thread = threading.Thread(target=run)
        thread.start()
        sys.setswitchinterval(60)
        before = ran[0]
        profile = _profile.snapshot()
        after = ran[0]
        is_over.set()
        thread.join()
        self.assertGreater(after - before, 2)
        self.assertGreater(len(profile['labels']), 20_000)

    def test_snapshots_add_up(self):
        for rows in 10, 6000, 10, 6000, 6000, 0:
            self.fill(rows, start=rows)
            first = _profile.snapshot()
            second = _profile.snapshot()
            self.assertEqual(len(first['samples']), len(second['samples']))
        samples = checked(_profile.stop()).samples
        self.assertEqual(sum([sample.count for sample in samples]), 18_020)

    def test_more_rows_than_there_was_space_for(self):
        self.fill(270_000)
        self.assertEqual(_profile.stats()['lost_table_full'], 0)
        profile = _profile.stop()
        self.assertGreater(len(profile['labels']), 250_000)


class LimitTest(ProgramTest):

    # Stacks that share nothing: 300 functions, called in every order.  A
    # program of its own: 64 MiB of tables are not for the test's process.
    PROGRAM = '''
import _profile, random, resource, sys
sys.setrecursionlimit(10_000)
tick = _profile.tick
namespace = {'tick': tick}
for i in range(300):
    exec(f'def f{i}(path):\\n'
         f'    if path: path.pop()(path)\\n'
         f'    else: tick(1000, 100)', namespace)
functions = [namespace[f'f{i}'] for i in range(300)]
numbers = random.Random(5)
_profile.start(names=0, manual=True)
n = 0
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
before = peak()
while n < 40_000:
    path = numbers.choices(functions, k=400)
    path.pop()(path)
    n += 1
    if n % 500 == 0 and _profile.stats()['lost_table_full'] > 1000:
        break
grown = peak() - before
def known():
    tick(7, 7)
first = _profile.stats()['lost_table_full']
raw = _profile.snapshot(clear=True)
known()
last = _profile.stop()
from test.test_profile_sampling.support.sessions import checked
# The columns themselves: millions of nodes take Profile a while.
stats = raw['stats']
rows = memoryview(raw['samples']).cast('q').tolist()
rows = list(zip(*[iter(rows)] * 11))
# The last samples of a thread are weighed at the snapshot.
assert first > 1000 and 0 <= stats['lost_table_full'] - first <= 16, stats
assert stats['ticks'] == n
assert sum(row[8] for row in rows) == n * 1000
assert sum(row[7] for row in rows) == n * 100
assert sum(row[6] for row in rows) == n
lost = [row for row in rows if row[3] == 4]     # state: lost
assert sum(row[8] for row in lost) == stats['lost_wall_ns'] > 0
assert sum(row[7] for row in lost) == stats['lost_cpu_ns']
assert sum(row[6] for row in lost) == stats['lost_table_full']
nodes = memoryview(raw['nodes']).cast('I')
frames = memoryview(raw['frames']).cast('i')
for row in lost:
    parent, frame = nodes[2 * row[0]], nodes[2 * row[0] + 1]
    assert parent == 0
    assert raw['functions'][frames[5 * frame]][1] == '[lost]'
# 64 MiB are stated; a table that grows is there twice for a moment.
assert grown < 130 * 1024, grown
# After a snapshot that clears there is room again.
sample, = checked(last).samples
assert (sample.wall_ns, sample.stack[0].function.qualname) == (7, 'known')
print('fine', n, grown)
'''

    def test_table_limit(self):
        result = self.run_python('-c', self.PROGRAM, timeout=200)
        self.assertEqual(result.status, 0, result.err)
        self.assertTrue(result.out.startswith(b'fine'))
