"""What stacks say, by a clock that the test ticks: nothing has a tolerance."""

import gc
import threading

from test.support import threading_helper

from ..support.manual import line_of, manual, tick
from ..support.sessions import SessionTest, names, of_thread


class StacksTest(SessionTest):

    def test_recursion(self):
        def down(n):
            if n:
                down(n - 1)
            else:
                tick(7, 7)
        with manual() as session:
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
            tick(1, 1)
            yield
            tick(10, 10)
            yield
            tick(100, 100)

        def first(g):
            next(g)

        def second(g):
            next(g)

        g = gen()
        with manual() as session:
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
                                 100: 'StacksTest.test_generator'})

    def test_yield_from_throw_and_close(self):
        def inner():
            try:
                yield 1
            except KeyError:
                tick(2, 2)
                yield 2
            finally:
                tick(4, 4)

        def outer():
            yield from inner()

        def use():
            g = outer()
            next(g)
            g.throw(KeyError())
            g.close()
        with manual() as session:
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
            tick(1, 1)
            await pause()
            tick(2, 2)

        async def outer():
            await inner()

        class pause:
            def __await__(self):
                tick(4, 4)
                yield

        def drive():
            coroutine = outer()
            coroutine.send(None)
            try:
                coroutine.send(None)
            except StopIteration:
                pass
        with manual() as session:
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
            tick(1, 1)
            yield 1
            tick(2, 2)

        async def use():
            async for _ in items():
                tick(4, 4)

        def drive():
            try:
                use().send(None)
            except StopIteration:
                pass
        with manual() as session:
            drive()
        stacks = {sample.wall_ns: names(sample)[-1].rpartition('.')[2]
                  for sample in session.profile.samples}
        self.assertEqual(stacks, {1: 'items', 2: 'items', 4: 'use'})

    def test_comprehensions(self):
        def comprehend():
            [tick(1, 1) for _ in '12']          # inlined: no frame
            {tick(10, 10) for _ in '12'}
            {tick(100, 100): 0 for _ in '12'}
            list(tick(1000, 1000) for _ in '12')   # a generator: a frame
        with manual() as session:
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
        with manual() as session:
            class Body:
                tick(1, 1)
                method = lambda self: tick(2, 2)
            Body().method()
        found = {sample.wall_ns: names(sample)[-1].rpartition('.')[2]
                 for sample in session.profile.samples}
        self.assertEqual(found, {1: 'Body', 2: '<lambda>'})

    def test_init_has_no_shim(self):
        # The shim that checks what __init__ returned is no frame of the
        # program.  Specialized only after some calls, so call it often.
        class Made:
            def __init__(self):
                tick(1, 1)

        def make():
            for _ in range(50):
                Made()
        with manual() as session:
            make()
        sample, = session.profile.samples
        self.assertEqual([name.rpartition('.')[2]
                          for name in names(sample)[-2:]],
                         ['make', '__init__'])
        self.assertEqual(sample.count, 50)

    def test_exec(self):
        namespace = {'tick': tick, '__name__': 'made.up'}
        with manual() as session:
            exec(compile('\n\ntick(1, 1)\ndef f():\n    tick(2, 2)\nf()',
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
        code = compile('asked.clear()\ntick(3, 3)\nx = 1\ncount = len(asked)',
                       '<nameless>', 'exec')
        for namespace in ({}, {'__name__': 5}, {'__name__': None},
                          {Hostile(): 1}):
            with self.subTest(namespace=list(namespace.items())):
                namespace['asked'] = asked
                namespace['tick'] = tick
                with manual() as session:
                    exec(code, namespace)
                sample, = session.profile.samples
                self.assertIsNone(sample.stack[0].function.module)
                self.assertEqual(sample.stack[0].function.qualname,
                                 '<module>')
                self.assertEqual(namespace['count'], 0)

    def test_hostile_names(self):
        names_ = ['x' * 100_000, 'a;b c', '\ud800', '\0', '\n', '[waiting]',
                  '\U0001F600' * 5000, '']
        code = compile('tick(3, 3)', '<hostile>', 'exec')
        for name in names_:
            with self.subTest(name=ascii(name[:20])):
                with manual() as session:
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
        code = compile('tick(3, 3)', '<bare>', 'exec')
        bare = code.replace(co_linetable=b'\xff' * 8)
        self.assertEqual({position[0] for position in bare.co_positions()},
                         {None})
        with manual() as session:
            exec(bare, {'tick': tick})
        sample, = session.profile.samples
        self.assertEqual((sample.stack[0].line, sample.stack[0].column),
                         (0, 0))

    def test_same_text_compiled_again_is_one_function(self):
        with manual() as session:
            for _ in range(100):
                exec(compile('tick(1, 1)', '<again>', 'exec'),
                     {'tick': tick, '__name__': 'again'})
        sample, = session.profile.samples
        self.assertEqual((sample.count, sample.wall_ns), (100, 100))


class DepthTest(SessionTest):

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
            with manual(depth_frames=depth_frames) as session:
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

    def collecting(self, depth_frames):
        """Names of a stack, root first, with a collection amid its frames."""
        class Dying:
            def __del__(self):
                down(20)

        def down(n):
            if n > 1:
                down(n - 1)
            else:
                tick(1, 1)

        def collect():
            dying = Dying()
            dying.itself = dying
            del dying
            gc.collect()
        found = []

        def run():
            gc.collect()
            with manual(depth_frames=depth_frames) as session:
                collect()
            sample, = [
                sample for sample in
                of_thread(session.profile, threading.get_native_id())
                if sample.wall_ns]
            found.extend([name.rpartition('.')[2] for name in names(sample)])
        with threading_helper.start_threads([threading.Thread(target=run)]):
            pass
        return found

    def test_a_collection_keeps_its_place(self):
        whole = self.collecting(100)
        self.assertEqual(whole[-24:], ['run', 'collect', '[GC gen2]',
                                       '__del__', *['down'] * 20])
        frames = [name for name in whole if not name.startswith('[')]
        for depth_frames in range(2, len(frames) + 1):
            with self.subTest(depth_frames=depth_frames):
                stack = self.collecting(depth_frames)
                marks = [name for name in stack
                         if name.startswith('[truncated')]
                self.assertEqual(bool(marks), depth_frames < len(frames))
                root = stack.index(marks[0]) if marks else 0
                leaf = stack[root + len(marks):]
                # Amid the frames that are cut out it stands next to the cut.
                if leaf[0] == '[GC gen2]':
                    self.assertEqual(whole[-len(leaf) + 1:], leaf[1:])
                else:
                    self.assertEqual(whole[-len(leaf):], leaf)
                self.assertEqual(whole[:root], stack[:root])
                self.assertEqual(stack.count('[GC gen2]'), 1)

    def test_depths_with_one_mark_share_a_stack(self):
        def down(n):
            if n > 1:
                down(n - 1)
            else:
                tick(1, 1)
        with manual(depth_frames=8) as session:
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
