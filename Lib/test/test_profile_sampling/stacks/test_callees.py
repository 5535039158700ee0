"""C functions and operators: what runs where no frame tells."""

import _opcode_metadata
import functools
import gc
import mmap
import operator
import re
import time
from collections import Counter

from test import support

from ..support.manual import tick
from ..support.sessions import (
    Session, SessionTest, below, need_prompt_signals, own, parked_thread)
from .callee_sites import BASE_NAMES, python_frame

setUpModule = need_prompt_signals


class Text(str):
    """A class whose operator is Python code."""

    def __mod__(self, other):
        tick(1, 1)
        return self

    def __call__(self):
        tick(2, 2)


class StacksTest(SessionTest):
    """Where callees stand, by manual ticks: each is exact."""

    def check(self, work, expected, **options):
        with Session(manual=True, names=options.pop('names', 3)) as session:
            work()
        self.assertEqual(dict(below(session.profile, work)), expected)
        return session.profile

    def test_kinds(self):
        def work():
            tick(5, 5)
        profile = self.check(work, {('_profile.tick',): 5})
        sample, = [s for s in profile.samples if s.wall_ns]
        frame = sample.stack[0]
        self.assertEqual(
            (frame.function.kind, frame.function.module, frame.line,
             frame.function.filename, frame.instruction_offset),
            ('C', '_profile', 0, '', -1))

    def test_off(self):
        def work():
            tick(5, 5)
        self.check(work, {(): 5}, names=0)

    def test_opcodes_only(self):
        def work():
            tick(5, 5)
        profile = self.check(work, {(): 5}, names=2)
        sample, = [s for s in profile.samples if s.wall_ns]
        self.assertEqual(BASE_NAMES[sample.stack[0].opcode], 'CALL')

    def test_specialized_opcode(self):
        def work():
            for _ in range(100):
                tick(5, 5)
        profile = self.check(work, {('_profile.tick',): 500})
        specialized = {
            number: name for name, number
            in _opcode_metadata._specialized_opmap.items()}
        opcodes = Counter()
        for sample in profile.samples:
            frame, callee = python_frame(sample)
            if callee is not None:
                opcodes[specialized.get(frame.opcode)] += sample.count
        # It takes a few calls to specialize one; tick() takes two arguments
        # by position.
        self.assertGreaterEqual(opcodes['CALL_BUILTIN_FAST'], 90)
        self.assertEqual(opcodes.total(), 100)

    def test_callbacks_in_callbacks(self):
        def inner(match):
            tick(1, 1)
            return ''

        def outer(text):
            return re.compile('b').sub(inner, text)

        def work():
            list(map(outer, ['abc', 'abd']))
        self.check(work, {(
            'list', f'{__name__}.{outer.__qualname__}', 're.Pattern.sub',
            f'{__name__}.{inner.__qualname__}', '_profile.tick'): 2})

    def test_constructor_and_init(self):
        class Thing:
            def __init__(self, **values):
                tick(1, 1)

        def work():
            Thing(**{})
        name = f'{__name__}.{Thing.__qualname__}'
        self.check(work, {(name, f'{name}.__init__', '_profile.tick'): 1})

    def test_special_methods_in_python(self):
        # They have a frame: nothing stands between the operator and it.
        text = Text('%')

        def work():
            text % 1
            text()
        self.check(work, {
            (f'{__name__}.Text.__mod__', '_profile.tick'): 1,
            (f'{__name__}.Text.__call__', '_profile.tick'): 2})

    def test_first_sample_of_a_code_object(self):
        # There may be no second one: a single call of five seconds.
        for size in 1, 500, 2000:
            with self.subTest(size=size):
                space = {'tick': tick}
                exec('def work():\n    tick(1, 1)\n'
                     + '    x = [1, (2,)]\n' * size, space)
                space['work'].__qualname__ = 'work'
                self.check(space['work'], {('_profile.tick',): 1})

    def alternating(self, count, size):
        """Functions that nobody has sampled, each called by C code that the
        one before has called, in turns; the last one ticks."""
        functions = []
        for i in range(count):
            space = {'tick': tick, 'functions': functions}
            exec(f'def work{i}(n):\n'
                 f'    if n:\n'
                 f'        list(map(functions[(n - 1) % {count}], (n - 1,)))\n'
                 f'    else:\n'
                 f'        tick(1, 1)\n'
                 + '    x = 1\n' * size, space)
            functions.append(space[f'work{i}'])
        return functions

    def ticked(self, count, size, depth):
        """The stats of a tick in them, then those of a second one, and the
        names of what each function was in at the two."""
        functions = self.alternating(count, size)
        with Session(manual=True, names=1) as session:
            functions[depth % count](depth)
            first = session.snapshot(clear=True)
            functions[depth % count](depth)
        named = []
        for profile in first, session.profile:
            [sample] = profile.samples
            named.append([
                sample.stack[i - 1].function.kind != 'python'
                for i, frame in enumerate(sample.stack)
                if re.fullmatch(r'work\d+', frame.function.qualname)])
            self.assertEqual(len(named[-1]), depth + 1)
        return first.stats, session.profile.stats, named

    def test_functions_that_take_turns(self):
        # Each is worked out once, however often it is on the stack.
        # Debug builds allow no more calls through C.
        first, second, named = self.ticked(
            count=2, size=3500, depth=200 if support.Py_DEBUG else 300)
        self.assertLess(first['overhead_capture_ns'], 30_000_000)
        self.assertEqual(first['callees_put_off'], 0)
        self.assertTrue(all(named[0]))

    def test_more_than_the_handler_works_out(self):
        # It names what it can; the rest is there at the next sample.
        for count, size in (200, 1), (8, 3500):
            with self.subTest(count=count):
                first, second, named = self.ticked(count, size, depth=200)
                self.assertLess(first['overhead_capture_ns'], 30_000_000)
                self.assertGreater(named[0].count(True), 0)
                self.assertGreater(named[0].count(False), 0)
                self.assertGreater(named[1].count(True),
                                   named[0].count(True))
                for stats, is_named in zip((first, second), named):
                    # And of the callers of this test, which are beyond.
                    beyond = stats['callees_put_off'] - is_named.count(False)
                    self.assertIn(beyond, range(100))

    def test_deep_on_the_evaluation_stack(self):
        for depth in 1, 100, 240, 300:
            with self.subTest(depth=depth):
                # All left operands are on the stack before tick is called.
                space = {'tick': tick, 'x': 1}
                exec('def work():\n    '
                     + 'x ** ' * depth + '(tick(1, 1) or 1)\n', space)
                # A byte holds up to 253: beyond, there is no name.
                expected = ('_profile.tick',) if depth < 250 else ()
                self.check(space['work'], {expected: 1})

    def test_many_arguments(self):
        # The opcode's argument does not fit in one byte.
        def take(*args):
            return args[0]

        space = {'tick': tick, 'take': take, 'format': '{}'.format}
        arguments = ', '.join(['0'] * 400)
        exec(f'def work():\n    format(tick(1, 1), {arguments})\n', space)
        self.check(space['work'], {('_profile.tick',): 1})

    def test_collection_asked_for(self):
        class Dying:
            def __del__(self):
                tick(1, 1)

        def work():
            dying = Dying()
            dying.self = dying
            del dying
            gc.collect()
        name = f'{__name__}.{Dying.__qualname__}.__del__'
        gc.collect()
        self.check(work, {
            ('gc.collect', '[GC gen2]', name, '_profile.tick'): 1})

    def test_collection_asked_for_in_a_frame_that_is_left_out(self):
        # The most entries that a stack can have: all frames that are kept are
        # in C code, and so is the one that is not.
        class Dying:
            def __del__(self):
                call_in_c(1)

        def call_in_c(n):
            if n:
                list(map(call_in_c, [n - 1]))
            else:
                tick(1, 1)

        def work():
            dying = Dying()
            dying.self = dying
            del dying
            gc.collect()

        for depth in 1, 2:
            with self.subTest(depth=depth):
                gc.collect()
                with Session(manual=True, names=3,
                             depth_frames=depth) as session:
                    work()
                sample, = [s for s in session.profile.samples if s.wall_ns]
                names = [frame.function.name for frame in sample.stack]
                self.assertEqual(names[:4], [
                    '_profile.tick', f'{__name__}.{call_in_c.__qualname__}',
                    '[GC gen2]', 'gc.collect'])

    def test_exception_handlers_and_with(self):
        class Manager:
            def __enter__(self):
                return self

            def __exit__(self, *args):
                tick(1, 1)
                return True

        def work():
            with Manager():
                raise ValueError
            try:
                raise KeyError
            except KeyError:
                tick(2, 2)
            finally:
                tick(4, 4)
        self.check(work, {
            (f'{__name__}.{Manager.__qualname__}.__exit__',
             '_profile.tick'): 1, ('_profile.tick',): 2 + 4})


class TypesTest(SessionTest):

    def test_long_name_is_cut_between_characters(self):
        # In UTF-8 each of them takes more than one byte.
        class Number:
            def __int__(self):
                tick(1, 1)
                return 1

        for start in '', 'a', 'aa', 'aaa':
            for character in '\xe9', '\u20ac', '\U0001f40d':
                text = start + character * 2000
                cls = type(text, (int,), {'__module__': text})
                with self.subTest(start=start, character=character):
                    with Session(manual=True, names=3) as session:
                        cls(Number())
                    sample, = [s for s in session.profile.samples
                               if s.wall_ns]
                    name, = [frame.function.qualname for frame in sample.stack
                             if text.startswith(frame.function.qualname)]
                    self.assertGreater(len(name), 60)

    def test_class_that_dies(self):
        # The address of a dead class may become another's: no name of one
        # must be told of the other.
        def work(i):
            cls = type(f'Number{i}', (int,), {'__slots__': ()})
            number = cls(3 ** 20000)
            for _ in range(20):
                number * number
            return None

        with Session(rate_hz=10_000, names=3) as session:
            end = time.monotonic() + 1
            i = 0
            while time.monotonic() < end:
                work(i)
                i += 1
        found = below(session.profile, work)
        names = {path[0]: ns for path, ns in found.items() if path}
        # The operator is int's own, whatever the subclass.
        self.assertGreater(names['int.__mul__'], 0.9 * sum(found.values()))
        self.assertLessEqual({name for name in names
                              if not name.startswith('test.')},
                             {'int.__mul__', 'int.__pow__', 'type',
                              'range_iterator.__next__', 'range.__iter__',
                              'range',
                              'dict.__getitem__', 'str.join',
                              'int.__format__', '[GC gen0]', '[GC gen1]',
                              '[GC gen2]'})

    def test_objects_that_are_called_need_no_memory_each(self):
        partials = [functools.partial(tick, 1) for _ in range(100_000)]

        def resident_bytes():
            with open('/proc/self/statm') as file:
                return int(file.read().split()[1]) * mmap.PAGESIZE

        with Session(manual=True, names=3):
            before = resident_bytes()
            for partial in partials:
                partial(7)
            grown = resident_bytes() - before
        self.assertLess(grown, 1_000_000)

    def test_polymorphic_site(self):
        # T4: what was called first is not what is called next.
        first, second = operator.countOf, operator.indexOf
        items = list(range(200))

        def work():
            for i in range(4000):
                f = first if i % 2 else second
                f(items, 199)
        with Session(rate_hz=10_000, names=3) as session:
            for _ in range(10):
                work()
        expected = self.share_of(first, second, items)
        found = below(session.profile, work, 'cpu_ns')
        counted = found['_operator.countOf',]
        both = counted + found['_operator.indexOf',]
        self.assertGreater(both, 0.8 * sum(found.values()))
        # One name for both would be a share of 0 or 1.
        self.assertAlmostEqual(counted / both, expected, delta=0.1)

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
        # Four standard deviations: 20,000 samples, or what a busy machine has,
        # on which C functions have up to a point too little.
        n = sum(sample.count for sample in own(session.profile))
        self.assertAlmostEqual(
            found['re.Pattern.match'] / total_ns, heavy_ns / total_ns,
            delta=0.01 + 4 * 0.5 / n ** 0.5)
        # Else the share says nothing.  It is about a half, but Python code may
        # be ten times slower (sanitizers) while this C code is not.
        self.assertGreater(heavy_ns / total_ns, 0.05)

    def share_of(self, first, second, items):
        """How much of the time of both functions the first one takes."""
        took_ns = []
        for function in first, second:
            before_ns = time.thread_time_ns()
            for _ in range(20_000):
                function(items, 199)
            took_ns.append(time.thread_time_ns() - before_ns)
        return took_ns[0] / sum(took_ns)


class ThreadsTest(SessionTest):

    def test_waiting(self):
        with parked_thread() as thread:
            with Session(names=3) as session:
                time.sleep(0.05)
        paths = {tuple([f.function.name for f in s.stack[:2]]): s.wall_ns
                 for s in session.profile.samples
                 if s.thread.native_id == thread.native_id}
        self.assertGreater(
            paths['[waiting]', '_thread.lock.acquire'], 45_000_000)
        here = [s for s in own(session.profile)
                if s.state == 'waiting']
        self.assertEqual({s.stack[1].function.name for s in here},
                         {'time.sleep'})
