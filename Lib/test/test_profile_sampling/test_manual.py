"""Sessions whose clock the test itself ticks: everything is exact.

tick(wall_ns, cpu_ns) moves the clocks and asks the calling thread at once, so
a sample stands at the line and column of the call of tick, and its weights
are the arguments.  Nothing here has a tolerance.
"""

import gc
import threading
import unittest

from .sessions import (
    Session, SessionTest, _profile, checked, names, of_thread, on_stack)
from . import sessions

tick = _profile.tick


def _manual(**options):
    return Session(manual=True, **options)


def rows(profile):
    """{(names root first, state): (count, cpu_ns, wall_ns)}, cut at here.

    Frames of the test's callers are left out.
    """
    result = {}
    for sample in profile.samples:
        stack = names(sample)
        for i, name in reversed(list(enumerate(stack))):
            if '.test_' in name:
                stack = stack[i + 1:]
                break
        key = stack, sample.state
        assert key not in result, key
        result[key] = sample.count, sample.cpu_ns, sample.wall_ns
    return result


def line_of(function, offset):
    return function.__code__.co_firstlineno + offset


def leaf(wall_ns, cpu_ns=0):
    tick(wall_ns, cpu_ns)


class TestWeights(SessionTest):

    def test_nothing(self):
        with _manual() as session:
            pass
        self.assertEqual(len(session.profile.samples), 0)
        self.assertEqual(session.profile.duration_ns, 0)
        self.assertEqual(session.profile.mode, 'wall')

    def test_one_tick(self):
        with _manual() as session:
            leaf(1_000_001, 999_999)
        profile = session.profile
        self.assertEqual(rows(profile),
                         {(('leaf',), 'running'): (1, 999_999, 1_000_001)})
        self.assertEqual(profile.duration_ns, 1_000_001)
        stats = profile.stats
        self.assertEqual((stats['ticks'], stats['signals_sent'],
                          stats['captures'], stats['samples']), (1, 1, 1, 1))

    def test_line_and_column(self):
        def place():
            tick(1, 50)
            x = [0,
                 tick(2, 60)]
            tick(3, 0); tick(4, 80)
        with _manual() as session:
            place()
        places = {(sample.stack[0].line, sample.stack[0].column):
                  (sample.wall_ns, sample.cpu_ns)
                  for sample in session.profile.samples}
        self.assertEqual(places, {
            (line_of(place, 1), 13): (1, 50),
            (line_of(place, 3), 18): (2, 60),
            (line_of(place, 4), 13): (3, 0),
            (line_of(place, 4), 25): (4, 80)})

    def test_lines_of_callers(self):
        def outer():
            pass
            inner(); pass

        def inner():
            tick(1, 1)
        with _manual() as session:
            outer()
        sample, = session.profile.samples
        self.assertEqual(
            [(frame.function.qualname.rpartition('.')[2], frame.line,
              frame.column) for frame in sample.stack[:2]],
            [('inner', line_of(inner, 1), 13),
             ('outer', line_of(outer, 2), 13)])
        self.assertEqual(sample.stack[0].function.first_line,
                         line_of(inner, 0))
        self.assertEqual(sample.stack[0].function.module, __name__)
        self.assertEqual(sample.stack[0].function.filename,
                         inner.__code__.co_filename)

    def test_same_place_is_one_row(self):
        with _manual() as session:
            for i in range(100):
                leaf(10, i)
        self.assertEqual(rows(session.profile),
                         {(('leaf',), 'running'): (100, sum(range(100)),
                                                   1000)})

    def test_ticks_between_safepoints_merge(self):
        # map() in C: no safepoint of this frame between the ticks.
        with _manual() as session:
            list(map(tick, range(1, 11), range(10)))
        sample, = session.profile.samples
        self.assertEqual((sample.count, sample.wall_ns, sample.cpu_ns),
                         (10, 55, 45))
        stats = session.profile.stats
        self.assertEqual(stats['captures'] + stats['captures_merged'], 10)
        self.assertEqual(stats['captures_merged'], 9)

    def test_straight_line_code(self):
        # More ticks without a safepoint than captures fit: the time of those
        # that found no room goes to the next sample, and they are counted.
        n = 200
        source = 'def straight():\n' + '    tick(1, 1)\n' * n
        namespace = {'tick': tick}
        exec(source, namespace)
        with _manual() as session:
            namespace['straight']()
            tick(1, 1)
        profile = session.profile
        stats = profile.stats
        self.assertEqual(profile.total_wall_ns, n + 1)
        self.assertEqual(profile.total_cpu_ns, n + 1)
        self.assertEqual(profile.total_count + stats['captures_no_room'],
                         n + 1)

    def test_zero_and_huge_weights(self):
        year_ns = 365 * 86400 * 10**9
        with _manual() as session:
            leaf(0, 0)
            leaf(year_ns, year_ns)
        self.assertEqual(session.profile.total_wall_ns, year_ns)
        self.assertEqual(session.profile.total_cpu_ns, year_ns)

    def test_cpu_mode(self):
        with _manual(mode='cpu') as session:
            leaf(5, 3)
        self.assertEqual(session.profile.mode, 'cpu')
        self.assertEqual(session.profile.total_cpu_ns, 3)

    def test_conservation(self):
        # A program that does a bit of everything; every tick is different,
        # so that a weight booked twice or not at all shows in the sum.
        wall = cpu = 0
        with _manual() as session:
            for i in range(1, 2000):
                wall += i * i
                cpu += i
                if i % 3 == 0:
                    leaf(i * i, i)
                elif i % 3 == 1:
                    [tick(i * i, i) for _ in '1']
                else:
                    next(tick(i * i, i) for _ in '1')
                if i % 500 == 0:
                    self.assertEqual(session.snapshot().total_wall_ns, wall)
        self.assertEqual(session.profile.total_wall_ns, wall)
        self.assertEqual(session.profile.total_cpu_ns, cpu)
        self.assertEqual(session.profile.total_count, 1999)
        self.assertEqual(session.profile.duration_ns, wall)


class TestArguments(SessionTest):

    def test_tick_needs_a_manual_session(self):
        with self.assertRaises(RuntimeError):
            tick(1, 1)
        with Session():
            with self.assertRaises(RuntimeError):
                tick(1, 1)

    def test_bad_arguments(self):
        with _manual() as session:
            for arguments in (-1, 1), (1, -1), (2**64, 0), (1,), (), \
                    ('1', 1), (1.5, 1), (None, 1):
                with self.subTest(arguments=arguments):
                    with self.assertRaises((TypeError, ValueError,
                                            OverflowError)):
                        tick(*arguments)
        self.assertEqual(len(session.profile.samples), 0)

    def test_bad_options(self):
        for options in (dict(mode='x'), dict(mode=''), dict(mode=1),
                        dict(rate_hz=0), dict(rate_hz=10_001),
                        dict(rate_hz=-5), dict(rate_hz='9'),
                        dict(depth_frames=0), dict(depth_frames=16_385),
                        dict(signal=-1), dict(signal=10_000)):
            with self.subTest(options=options):
                with self.assertRaises((TypeError, ValueError)):
                    _profile.start(**options)
                self.assertFalse(_profile.running())

    def test_unfit_signals(self):
        # Nobody may take these: they cannot be caught, or a fault would
        # come back for ever.
        import signal
        for signum in (signal.SIGKILL, signal.SIGSTOP, signal.SIGSEGV,
                       signal.SIGBUS, signal.SIGFPE, signal.SIGILL):
            sessions.end_session()
            with self.subTest(signum=signum):
                with self.assertRaises((ValueError, RuntimeError)):
                    _profile.start(signal=signum, manual=True)


class TestStacks(SessionTest):

    def test_recursion(self):
        def down(n):
            if n:
                down(n - 1)
            else:
                tick(7, 7)
        with _manual() as session:
            for n in (0, 3, 50):
                down(n)
        name = down.__qualname__
        self.assertEqual(
            sorted([names(s).count(name) for s in session.profile.samples]),
            [1, 4, 51])
        row, = [row for row in session.profile.functions()
                if row.function.qualname == name]
        # On the stack 56 times in all; counted once for each sample.
        self.assertEqual((row.cum_count, row.cum_wall_ns), (3, 21))

    def test_generator(self):
        def gen():
            tick(1, 0)
            yield
            tick(10, 0)
            yield
            tick(100, 0)

        def first(g):
            next(g)

        def second(g):
            next(g)

        g = gen()
        with _manual() as session:
            first(g)
            second(g)
            list(g)
        prefix = f'{type(self).__name__}.test_generator.<locals>.'
        found = {}
        for sample in session.profile.samples:
            stack = names(sample)
            self.assertEqual(stack[-1], prefix + 'gen')
            found[sample.wall_ns] = stack[-2].removeprefix(prefix)
        self.assertEqual(found, {1: 'first', 10: 'second',
                                 100: 'TestStacks.test_generator'})

    def test_yield_from_throw_and_close(self):
        def inner():
            try:
                yield 1
            except KeyError:
                tick(2, 0)
                yield 2
            finally:
                tick(4, 0)

        def outer():
            yield from inner()

        def use():
            g = outer()
            next(g)
            g.throw(KeyError())
            g.close()
        with _manual() as session:
            use()
        stacks = {sample.wall_ns: [name.rpartition('.')[2]
                                   for name in names(sample)[-3:]]
                  for sample in session.profile.samples}
        # close() of a generator runs what it delegates to without a frame
        # of its own: so says sys._getframe(), too.
        self.assertEqual(stacks[2], ['use', 'outer', 'inner'])
        self.assertEqual(stacks[4][-2:], ['use', 'inner'])

    def test_coroutines(self):
        async def inner():
            tick(1, 0)
            await pause()
            tick(2, 0)

        async def outer():
            await inner()

        class pause:
            def __await__(self):
                tick(4, 0)
                yield

        def drive():
            coroutine = outer()
            coroutine.send(None)
            try:
                coroutine.send(None)
            except StopIteration:
                pass
        with _manual() as session:
            drive()
        stacks = {sample.wall_ns: [name.rpartition('.')[2]
                                   for name in names(sample)]
                  for sample in session.profile.samples}
        at = stacks[1].index('drive')
        self.assertEqual({ns: stack[at:] for ns, stack in stacks.items()}, {
            1: ['drive', 'outer', 'inner'],
            2: ['drive', 'outer', 'inner'],
            4: ['drive', 'outer', 'inner', '__await__']})

    def test_async_generator(self):
        async def items():
            tick(1, 0)
            yield 1
            tick(2, 0)

        async def use():
            async for _ in items():
                tick(4, 0)

        def drive():
            try:
                use().send(None)
            except StopIteration:
                pass
        with _manual() as session:
            drive()
        stacks = {sample.wall_ns: names(sample)[-1].rpartition('.')[2]
                  for sample in session.profile.samples}
        self.assertEqual(stacks, {1: 'items', 2: 'items', 4: 'use'})

    def test_comprehensions(self):
        def comprehend():
            [tick(1, 0) for _ in '12']          # inlined: no frame
            {tick(10, 0) for _ in '12'}
            {tick(100, 0): 0 for _ in '12'}
            list(tick(1000, 0) for _ in '12')   # a generator: a frame
        with _manual() as session:
            comprehend()
        found = {}
        for sample in session.profile.samples:
            frame = sample.stack[0]
            found[frame.function.qualname.rpartition('.')[2], frame.line,
                  sample.count] = sample.wall_ns
        self.assertEqual(found, {
            ('comprehend', line_of(comprehend, 1), 2): 2,
            ('comprehend', line_of(comprehend, 2), 2): 20,
            ('comprehend', line_of(comprehend, 3), 2): 200,
            ('<genexpr>', line_of(comprehend, 4), 2): 2000})

    def test_class_body_lambda_and_decorator(self):
        with _manual() as session:
            class Body:
                tick(1, 0)
                method = lambda self: tick(2, 0)
            Body().method()
        found = {sample.wall_ns: names(sample)[-1].rpartition('.')[2]
                 for sample in session.profile.samples}
        self.assertEqual(found, {1: 'Body', 2: '<lambda>'})

    def test_init_has_no_shim(self):
        # The shim that checks what __init__ returned is no frame of the
        # program.  Specialised only after some calls, so call it often.
        class Made:
            def __init__(self):
                tick(1, 0)

        def make():
            for _ in range(50):
                Made()
        with _manual() as session:
            make()
        sample, = session.profile.samples
        self.assertEqual([name.rpartition('.')[2]
                          for name in names(sample)[-2:]],
                         ['make', '__init__'])
        self.assertEqual(sample.count, 50)

    def test_callbacks_from_c(self):
        def key(x):
            tick(1, 0)
            return x
        with _manual() as session:
            sorted([3, 1, 2], key=key)
        sample, = session.profile.samples
        self.assertEqual(names(sample)[-2:],
                         ('TestStacks.test_callbacks_from_c',
                          key.__qualname__))
        self.assertEqual(sample.count, 3)

    def test_exec(self):
        namespace = {'tick': tick, '__name__': 'made.up'}
        with _manual() as session:
            exec(compile('\n\ntick(1, 0)\ndef f():\n    tick(2, 0)\nf()',
                         '<some text>', 'exec'), namespace)
        found = {sample.wall_ns: (sample.stack[0].function.name,
                                  sample.stack[0].function.filename,
                                  sample.stack[0].line)
                 for sample in session.profile.samples}
        self.assertEqual(found, {
            1: ('made.up.<module>', '<some text>', 3),
            2: ('made.up.f', '<some text>', 5)})

    def test_globals_without_a_name(self):
        # A key that is equal to '__name__' cannot be compared with it
        # without running its code, which no profiler may do.
        class Hostile:
            def __eq__(self, other):
                asked.append(other)
                return False
            __hash__ = lambda self: hash('__name__')
        asked = []
        code = compile('asked.clear()\ntick(3, 0)\nx = 1\ncount = len(asked)',
                       '<nameless>', 'exec')
        for namespace in ({}, {'__name__': 5}, {'__name__': None},
                          {Hostile(): 1}):
            with self.subTest(namespace=list(namespace.items())):
                namespace['asked'] = asked
                namespace['tick'] = tick
                with _manual() as session:
                    exec(code, namespace)
                sample, = session.profile.samples
                self.assertIsNone(sample.stack[0].function.module)
                self.assertEqual(sample.stack[0].function.qualname,
                                 '<module>')
                self.assertEqual(namespace['count'], 0)

    def test_hostile_names(self):
        names_ = ['x' * 100_000, 'a;b c', '\ud800', '\0', '\n', '[blocked]',
                  '\U0001F600' * 5000, '']
        code = compile('tick(3, 0)', '<hostile>', 'exec')
        for name in names_:
            with self.subTest(name=ascii(name[:20])):
                with _manual() as session:
                    exec(code.replace(co_name=name, co_qualname=name,
                                      co_filename=name),
                         {'tick': tick, '__name__': name})
                sample, = session.profile.samples
                function = sample.stack[0].function
                self.assertEqual(function.kind, 'python')
                if len(name) < 1000:
                    self.assertEqual(function.qualname, name)
                    self.assertEqual(function.filename, name)
                else:
                    # Cut, at 4096 bytes of UTF-8, with a mark.
                    self.assertTrue(function.qualname.endswith('...'))
                    self.assertLessEqual(
                        len(function.qualname.encode()), 4096)
                    self.assertTrue(name.startswith(
                        function.qualname.removesuffix('...')))

    def test_code_without_positions(self):
        # One entry of the location table (code 15: no location) says that
        # nothing is known about the first 8 instructions, and so on.
        code = compile('tick(3, 0)', '<bare>', 'exec')
        bare = code.replace(co_linetable=b'\xff' * 8)
        self.assertEqual({position[0] for position in bare.co_positions()},
                         {None})
        with _manual() as session:
            exec(bare, {'tick': tick})
        sample, = session.profile.samples
        self.assertEqual((sample.stack[0].line, sample.stack[0].column),
                         (0, 0))

    def test_same_text_compiled_again_is_one_function(self):
        with _manual() as session:
            for _ in range(100):
                exec(compile('tick(1, 0)', '<again>', 'exec'),
                     {'tick': tick, '__name__': 'again'})
        sample, = session.profile.samples
        self.assertEqual((sample.count, sample.wall_ns), (100, 100))


class TestDepth(SessionTest):

    def cut(self, depth_frames, n):
        """(stack root first, n frames below the test's own)."""
        def down(n):
            if n > 1:
                down(n - 1)
            else:
                tick(1, 1)

        def bottom():
            down(n - 1)
        # A thread of its own: its root is known whatever runs this test.
        result = []

        def run():
            with _manual(depth_frames=depth_frames) as session:
                exec('bottom()', {'bottom': bottom, '__name__': 'root'})
            sample, = of_thread(session.profile, threading.get_native_id())
            result.append((sample, session.profile.stats))
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        return result[0]

    def test_no_cut_at_the_limit(self):
        # _bootstrap, _bootstrap_inner, run, run, <module>, bottom, 10 x down
        sample, stats = self.cut(16, 11)
        self.assertEqual(len(sample.stack), 16)
        self.assertFalse([name for name in names(sample)
                          if name.startswith('[')])

    def test_one_frame_more(self):
        sample, stats = self.cut(16, 12)
        # The thread that waits has a stack, too.
        self.assertGreaterEqual(stats['frames_truncated'], 1)
        stack = names(sample)
        # A quarter of the frames is kept at the root, the rest at the leaf.
        self.assertEqual(len(stack), 17)
        self.assertEqual(stack[4], '[truncated 1+ frames]')
        self.assertEqual(stack[0], 'Thread._bootstrap')
        self.assertTrue(stack[-1].endswith('down'))

    def test_size_of_the_cut(self):
        # Exact up to 15; then rounded down by less than an eighth, so that
        # not every depth makes a stack of its own.
        for n in 20, 100, 500, 900:
            with self.subTest(n=n):
                sample, stats = self.cut(8, n)
                stack = names(sample)
                marks = [name for name in stack if name.startswith('[')]
                self.assertEqual(len(marks), 1)
                named = int(marks[0].removeprefix('[truncated ')
                            .removesuffix('+ frames]'))
                exact = n + 5 - 8
                self.assertLessEqual(named, exact)
                self.assertGreater(named, exact * 7 / 8)
                if exact < 16:
                    self.assertEqual(named, exact)

    def test_depths_with_one_mark_share_a_stack(self):
        def down(n):
            if n > 1:
                down(n - 1)
            else:
                tick(1, 1)
        with _manual(depth_frames=8) as session:
            for n in range(512, 512 + 60):
                down(n)
        self.assertLess(len(session.profile.samples), 5)
        self.assertEqual(session.profile.total_count, 60)

    def test_root_and_leaf_at_every_limit(self):
        for depth_frames in 2, 3, 4, 5, 7, 64, 255, 256, 257:
            with self.subTest(depth_frames=depth_frames):
                sample, stats = self.cut(depth_frames, 600)
                stack = names(sample)
                self.assertEqual(len(stack), depth_frames + 1)
                self.assertEqual(stack[0], 'Thread._bootstrap')
                self.assertTrue(stack[-1].endswith('down'))

    def test_limit_of_one(self):
        sample, stats = self.cut(1, 20)
        self.assertEqual(len(sample.stack), 2)
        self.assertTrue(names(sample)[-1].endswith('down'))

    def test_weights_survive_the_cut(self):
        sample, stats = self.cut(5, 700)
        self.assertEqual((sample.count, sample.wall_ns, sample.cpu_ns),
                         (1, 1, 1))


class TestCollector(SessionTest):

    def setUp(self):
        super().setUp()
        self.enterContext(sessions.collector_disabled())

    def test_del_is_under_the_collection(self):
        class Loop:
            def __del__(self):
                tick(3, 2)

        def collect():
            gc.collect(1)
            tick(1, 1)
        loop = Loop()
        loop.loop = loop
        del loop
        with _manual() as session:
            collect()
        found = {sample.wall_ns: (sample.state,
                                  [name.rpartition('.')[2]
                                   for name in names(sample)[-3:]])
                 for sample in session.profile.samples}
        self.assertEqual(found[3],
                         ('gc', ['collect', '[GC gen1]', '__del__']))
        self.assertEqual(found[1][0], 'running')
        self.assertNotIn('[GC gen1]', found[1][1])

    def test_callbacks(self):
        def callback(phase, info):
            tick(10, 7)
        with _manual() as session:
            gc.callbacks.append(callback)
            self.addCleanup(gc.callbacks.clear)
            for generation in range(3):
                gc.collect(generation)
            gc.callbacks.remove(callback)
        found = {names(sample)[-2]: (sample.state, sample.count,
                                     sample.cpu_ns, sample.wall_ns)
                 for sample in session.profile.samples}
        self.assertEqual(found, {
            f'[GC gen{generation}]': ('gc', 2, 14, 20)
            for generation in range(3)})

    def test_clear_in_a_collection(self):
        def callback(phase, info):
            tick(10, 10)
            taken.append(checked(_profile.snapshot(clear=True)))
        taken = []
        gc.callbacks.append(callback)
        self.addCleanup(gc.callbacks.clear)
        with _manual() as session:
            gc.collect()
            gc.callbacks.remove(callback)
            leaf(1)
        self.assertEqual([[(s.state, s.wall_ns) for s in profile.samples]
                          for profile in taken], [[('gc', 10)]] * 2)
        sample, = session.profile.samples
        self.assertEqual((sample.state, sample.wall_ns), ('running', 1))

    def test_start_in_a_collection(self):
        def callback(phase, info):
            if phase == 'start':
                _profile.start(manual=True)
        gc.callbacks.append(callback)
        self.addCleanup(gc.callbacks.clear)
        gc.collect()
        gc.callbacks.remove(callback)
        leaf(1)
        sample, = checked(_profile.stop()).samples
        self.assertEqual(sample.state, 'running')

    def test_stop_in_a_collection(self):
        def callback(phase, info):
            if _profile.running():
                _profile.stop()
        gc.callbacks.append(callback)
        self.addCleanup(gc.callbacks.clear)
        _profile.start(manual=True)
        gc.collect()
        gc.callbacks.remove(callback)
        self.assertFalse(_profile.running())
        with _manual() as session:
            leaf(1)
        sample, = session.profile.samples
        self.assertEqual(sample.state, 'running')
        self.assertFalse(on_stack(sample, '[GC gen2]'))


class TestSnapshots(SessionTest):

    def test_snapshot_goes_on(self):
        with _manual() as session:
            leaf(1, 1)
            first = session.snapshot()
            leaf(2, 2)
            second = session.snapshot()
        self.assertEqual([p.total_wall_ns for p in
                          (first, second, session.profile)], [1, 3, 3])

    def test_clear(self):
        with _manual() as session:
            leaf(1, 1)
            first = session.snapshot(clear=True)
            second = session.snapshot(clear=True)
            leaf(2, 2)
            third = session.snapshot(clear=True)
            leaf(4, 4)
        taken = first, second, third, session.profile
        self.assertEqual([p.total_wall_ns for p in taken], [1, 0, 2, 4])
        self.assertEqual([p.duration_ns for p in taken], [1, 0, 2, 4])
        self.assertEqual([p.stats['ticks'] for p in taken], [1, 0, 1, 1])
        for profile in first, third, session.profile:
            self.assertEqual(list(rows(profile)), [(('leaf',), 'running')])

    def test_clear_often(self):
        # New tables may lie where old ones lay: nothing remembered about
        # those may be used.
        def down(n, ns):
            if n:
                down(n - 1, ns)
            else:
                tick(ns, 0)
        with _manual() as session:
            for i in range(1, 60):
                down(5, i)
                for _ in range(i % 12):
                    profile = session.snapshot(clear=True)
                down(5, i)
                profile = session.snapshot(clear=True)
                sample, *others = profile.samples
                self.assertFalse(others and i % 12)
                self.assertEqual(profile.total_wall_ns,
                                 i if i % 12 else 2 * i)
                self.assertEqual(names(sample).count(down.__qualname__), 6)

    def test_threads_keep_rows_and_names(self):
        with _manual() as session:
            with sessions.parked_thread(name='sleeper') as thread:
                session.snapshot(clear=True)
                tick(5, 5)
            profile = session.snapshot()
        sample, = of_thread(profile, thread.native_id)
        self.assertEqual((sample.state, sample.wall_ns, sample.thread.name),
                         ('blocked', 5, 'sleeper'))


class TestAttachAndDetach(SessionTest):

    def test_blocked_thread(self):
        # The other thread sleeps in lock.acquire() while this one ticks.
        with _manual() as session:
            with sessions.parked_thread() as thread:
                tick(100, 7)
                profile = session.snapshot()
        sample, = of_thread(profile, thread.native_id)
        self.assertEqual((sample.state, sample.wall_ns, sample.cpu_ns),
                         ('blocked', 100, 0))
        self.assertEqual(names(sample)[-1], '[blocked]')
        self.assertTrue(names(sample)[-2].endswith('parked'))
        own = of_thread(profile, threading.get_native_id())
        self.assertEqual([(s.state, s.wall_ns, s.cpu_ns) for s in own],
                         [('running', 100, 7)])

    def test_each_snapshot_adds_what_is_new(self):
        with _manual() as session:
            with sessions.parked_thread() as thread:
                for ns in 1, 10, 100:
                    tick(ns, 0)
                    profile = session.snapshot()
        sample, = of_thread(profile, thread.native_id)
        self.assertEqual((sample.state, sample.wall_ns), ('blocked', 111))

    def test_every_thread_sums_to_the_clock(self):
        # 20 threads, each registered at time 0, wait; time passes; some of
        # them tick.  Off the GIL or on it: each one's wall weights are the
        # whole time, its CPU weights its own ticks.
        started = threading.Barrier(21)
        turns = [threading.Lock() for _ in range(20)]
        for lock in turns:
            lock.acquire()
        done = threading.Semaphore(0)

        def worker(number):
            with turns[number]:
                tick(10 ** 6, number)
                done.release()

        def begin(number):
            started.wait()
            worker(number)
        threads = [threading.Thread(target=begin, args=(number,))
                   for number in range(20)]
        for thread in threads:
            thread.start()
        started.wait()
        with _manual() as session:
            for number in 3, 1, 15:
                turns[number].release()
                done.acquire()
            tick(5, 5)
            profile = session.snapshot()
            for number in set(range(20)) - {3, 1, 15}:
                turns[number].release()
            for thread in threads:
                thread.join()
        total = 3 * 10 ** 6 + 5
        self.assertEqual(profile.duration_ns, total)
        for number, thread in enumerate(threads):
            samples = of_thread(profile, thread.native_id)
            if number not in (3, 1, 15):
                self.assertEqual(sessions.weight(samples), total, number)
                self.assertEqual(sessions.weight(samples, 'cpu_ns'), 0)

    def test_thread_that_ends(self):
        # It lives for one tick of its own; what it was given is not lost.
        def short():
            tick(1000, 100)
        with _manual() as session:
            thread = threading.Thread(target=short)
            thread.start()
            thread.join()
            tick(1, 0)
        samples = of_thread(session.profile, thread.native_id)
        self.assertEqual(sessions.weight(samples), 1000)
        self.assertEqual(sessions.weight(samples, 'cpu_ns'), 100)
        # This one waited for it meanwhile.
        own = of_thread(session.profile, threading.get_native_id())
        self.assertEqual(sessions.weight(own), 1001)


if __name__ == '__main__':
    unittest.main()
