"""Exact calls: who called whom, how often and how deep."""

import _interpreters
import asyncio
import cProfile
import dis
import functools
import os
import subprocess
import sys
import textwrap
import threading
import unittest
from collections import Counter

from test import support
from test.support import os_helper, script_helper, threading_helper

import profile_sampling
from profile_sampling import Profile, profile

from ..support.counted_programs import PROGRAMS
from ..support.packages import optional
from ..support.sessions import SessionTest

coverage = optional('coverage')
yappi = optional('yappi')


def tearDownModule():
    asyncio.set_event_loop_policy(None)     # as it was


def counted(function, calls='all', **options):
    """Return the Profile of one call of a function."""
    with profile(calls=calls, **options) as block:
        function()
    return block.profile


def numbers(found):
    """{name of the callee: (calls, outermost, resumes)}"""
    sums = Counter()
    for row in found.calls:
        for place, number in enumerate((row.calls, row.outermost,
                                        row.resumes)):
            sums[row.callee.qualname, place] += number
    return {name: tuple([sums[name, place] for place in range(3)])
            for name, _ in sums}


def deepest(found, name):
    return max([row.deepest for row in found.calls
                if row.callee.qualname == name])


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def even(n):
    return True if n == 0 else odd(n - 1)


def odd(n):
    return False if n == 0 else even(n - 1)


def count(n):
    for number in range(n):
        yield number


def negative(x):
    return -x


def fail():
    raise ValueError


class Thing:
    def __init__(self):
        self.value = 1

    def __getattr__(self, name):
        return 7

    def __eq__(self, other):
        return True

    def __call__(self):
        return 1

    @property
    def twice(self):
        return 2 * self.value


class Meta(type):
    def __call__(cls):
        return super().__call__()


class Made(metaclass=Meta):
    def __init__(self):
        pass


class ExactTest(SessionTest):

    def test_as_cprofile_counts(self):
        # Functions of Python, with resumes: cProfile does not tell them from
        # calls.  Primitive calls, too.
        for program in PROGRAMS:
            with self.subTest(program.__name__):
                program()
                program()
                self.assertEqual(*self.both(program))

    def both(self, program):
        other = cProfile.Profile(builtins=True)
        other.enable()
        program()
        other.disable()
        expected = {}
        for entry in other.getstats():
            if not isinstance(entry.code, str):
                code = entry.code
                self.add(expected, (code.co_filename, code.co_firstlineno,
                                    code.co_qualname), entry.callcount,
                         entry.callcount - entry.reccallcount)
        found = {}
        for row in counted(program).calls:
            if row.callee.kind == 'python':
                n = row.calls + row.resumes
                self.add(found, (row.callee.filename, row.callee.first_line,
                                 row.callee.qualname), n,
                         n - row.recursive - row.recursive_resumes)
        return found, expected

    def add(self, sums, key, *values):
        sums[key] = tuple(map(sum, zip(sums.get(key, (0, 0)), values)))

    def test_c_functions_as_cprofile_counts(self):
        def program():
            items = []
            for number in range(30):
                items.append(len(str(number)))
            sorted(items, key=negative)
            'x'.upper()
            isinstance(items, list)
            list(map(len, ['']))
        other = cProfile.Profile()
        other.enable()
        program()
        other.disable()
        expected = {}
        for entry in other.getstats():
            if isinstance(entry.code, str):
                name = entry.code.strip('<>').split(' ')
                key = (name[-1].removeprefix('builtins.') if name[0] ==
                       'built-in' else f"{name[3].strip(chr(39))}."
                                       f"{name[1].strip(chr(39))}")
                expected[key] = entry.callcount
        expected = {key: n for key, n in expected.items()
                    if 'disable' not in key}
        found = {name: calls for name, (calls, *_)
                 in numbers(counted(program)).items()}
        self.assertEqual({key: found.get(key) for key in expected}, expected)

    def test_recursion(self):
        found = counted(lambda: fib(20))
        self.assertEqual(numbers(found)['fib'], (21_891, 1, 0))
        self.assertEqual(deepest(found, 'fib'), 20)

    def test_recursion_of_init(self):
        # A class that is called with "all" goes through C, as with cProfile:
        # so deep a stack of C is refused, whatever setrecursionlimit() says.
        class Chain:

            def __init__(self, n):
                self.rest = Chain(n - 1) if n else None

        levels = 5000
        few = support.get_c_recursion_limit() // 10
        with support.set_recursion_limit(3 * levels):
            for calls, is_refused in ('python', False), ('all', True):
                found = counted(lambda: Chain(few), calls)
                self.assertEqual(numbers(found)[Chain.__init__.__qualname__],
                                 (few + 1, 1, 0))
                with profile(calls=calls) as block:
                    if is_refused:
                        self.assertRaises(RecursionError, Chain, levels)
                    else:
                        Chain(levels)
                self.assertEqual(
                    numbers(block.profile)[Chain.__init__.__qualname__][0]
                    <= levels, is_refused)
            profiler = cProfile.Profile()
            with profiler:
                self.assertRaises(RecursionError, Chain, levels)

    def test_mutual_recursion(self):
        found = numbers(counted(lambda: (even(51), even(50))))
        self.assertEqual(found['even'], (52, 2, 0))
        self.assertEqual(found['odd'], (51, 2, 0))

    def test_generators(self):
        def program():
            list(count(10))
            first = count(3)
            next(first)
            first.close()
            count(3)        # never begun: no call
        # Each value but the first is a resume, and so is the end.
        self.assertEqual(numbers(counted(program))['count'], (2, 2, 10))

    def test_thrown_into(self):
        def program():
            generator = count(3)
            next(generator)
            with self.assertRaises(KeyError):
                generator.throw(KeyError)
        self.assertEqual(numbers(counted(program))['count'], (1, 1, 1))

    def test_coroutines(self):
        async def inner():
            await asyncio.sleep(0)

        async def outer():
            for _ in range(3):
                await inner()
        found = numbers(counted(lambda: asyncio.run(outer())))
        prefix = f'{type(self).__name__}.test_coroutines.<locals>.'
        self.assertEqual(found[prefix + 'outer'], (1, 1, 3))
        self.assertEqual(found[prefix + 'inner'], (3, 3, 3))

    def test_called_by_c_code(self):
        line = negative.__code__.co_firstlineno
        self.assertGreater(line, 0)

        def program():
            sorted([3, 1, 2], key=negative)
            list(map(negative, [1, 2]))
        found = counted(program)
        self.assertEqual(numbers(found)['negative'], (5, 5, 0))
        first = program.__code__.co_firstlineno
        self.assertEqual(
            {(row.line - first, row.calls) for row in found.calls
             if row.callee.qualname == 'negative'}, {(1, 3), (2, 2)})

    def test_special_methods(self):
        def program():
            thing = Thing()
            thing.missing
            thing.twice
            thing == 1
            thing()
            Made()
            Made()
        found = counted(program)
        calls = numbers(found)
        for name, n in {'Thing.__init__': 1, 'Thing.__getattr__': 1,
                        'Thing.twice': 1, 'Thing.__eq__': 1,
                        'Thing.__call__': 1, 'Meta.__call__': 2,
                        'Made.__init__': 2}.items():
            self.assertEqual(calls[name], (n, n, 0), name)
        self.assertEqual(calls['Thing'], (1, 1, 0))     # the class

    def test_caller_of_init(self):
        # The frame that checks what __init__ returned is nobody's.
        def program():
            for _ in range(100):
                Thing()
        for calls in 'python', 'all':
            program()
            [row] = [row for row in counted(program, calls).calls
                     if row.callee.qualname == 'Thing.__init__']
            self.assertEqual(row.caller.qualname.rpartition('.')[2],
                             'program')
            self.assertEqual(row.calls, 100)

    def test_exceptions(self):
        def program():
            for _ in range(3):
                try:
                    fail()
                except ValueError:
                    pass
        found = counted(program)
        self.assertEqual(numbers(found)['fail'], (3, 3, 0))
        self.assertEqual(deepest(found, 'fail'), 1)

    def test_what_is_called_by_its_type(self):
        call = functools.partial(negative, 1)

        def program():
            call()
            call()
        found = numbers(counted(program))
        self.assertEqual(found['partial'], (2, 2, 0))
        self.assertEqual(found['negative'], (2, 2, 0))

    def test_cost(self):
        found = counted(lambda: fib(18), 'python')
        cost_ns = found._tables.counts.cost_ns
        # 8,361 calls, of 1 to 1,000 ns.
        self.assertTrue(8_000 < cost_ns < 9_000_000, cost_ns)
        parts = Profile.merge(found, found)
        self.assertEqual(parts._tables.counts.cost_ns, 2 * cost_ns)

    def test_python_alone(self):
        kinds = {row.callee.kind for row
                 in counted(lambda: sorted([fib(3)]), 'python').calls}
        self.assertEqual(kinds, {'python'})

    def test_threads(self):
        def work():
            for number in range(2000):
                negative(number)
                len('')

        def program():
            threads = [threading.Thread(target=work) for _ in range(4)]
            with threading_helper.start_threads(threads):
                pass
        interval = sys.getswitchinterval()
        self.addCleanup(sys.setswitchinterval, interval)
        sys.setswitchinterval(1e-5)
        found = counted(program)
        calls = numbers(found)
        prefix = f'{type(self).__name__}.test_threads.<locals>.'
        self.assertEqual(calls[prefix + 'work'], (4, 4, 0))
        self.assertEqual(deepest(found, prefix + 'work'), 1)
        self.assertEqual(calls['negative'], (8000, 8000, 0))
        self.assertEqual(sum([
            row.calls for row in found.calls if row.callee.qualname == 'len'
            and row.caller.qualname == prefix + 'work']), 8000)

    def test_begun_in_a_recursion(self):
        blocks = []

        def dive(depth):
            if depth == 5:
                blocks.append(profile(calls='python').__enter__())
            if depth:
                dive(depth - 1)
        dive(10)
        blocks[0].__exit__(None, None, None)
        found = blocks[0].profile
        [row] = [row for row in found.calls
                 if row.callee.qualname.endswith('dive')]
        # Calls are counted from the block on; what ran already makes them no
        # outermost ones.
        self.assertEqual((row.calls, row.outermost), (5, 0))
        self.assertEqual(row.deepest, 11)

    def test_begun_in_a_loop(self):
        block = profile(calls='all')
        for number in range(100):
            if number == 50:
                block.__enter__()
            negative(number)
            len('')
        block.__exit__(None, None, None)
        found = numbers(block.profile)
        self.assertEqual(found['negative'][0], 50)
        self.assertEqual(found['len'][0], 50)

    def test_block_within_a_session(self):
        profile_sampling.start(calls='python')
        negative(1)
        found = counted(lambda: negative(2), 'all')
        negative(3)
        whole = profile_sampling.stop()
        self.assertEqual(numbers(found)['negative'][0], 1)
        self.assertEqual(numbers(whole)['negative'][0], 3)

    def test_snapshots(self):
        profile_sampling.start(calls='python')
        negative(1)
        first = profile_sampling.snapshot(clear=True)
        negative(2)
        negative(3)
        second = profile_sampling.stop()
        self.assertEqual(numbers(first)['negative'][0], 1)
        self.assertEqual(numbers(second)['negative'][0], 2)

    def test_interpreters(self):
        # Each has counters of its own, and counts if it asks.
        script = """if True:
            from profile_sampling import profile
            def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
            with profile(calls='python') as block:
                fib(15)
            found = [sum(numbers) for numbers in zip(*[
                (row.calls, row.outermost) for row in block.profile.calls
                if row.callee.qualname == 'fib'])]
            assert found == [1973, 1], found
            """
        for config in 'legacy', 'isolated':
            interpreter = _interpreters.create(config)
            self.addCleanup(_interpreters.destroy, interpreter)
            failures = []

            def program():
                fib(12)
                failures.append(_interpreters.exec(interpreter, script))
                fib(13)
            found = numbers(counted(program, 'python'))
            self.assertEqual(failures, [None])
            self.assertEqual(found['fib'], (465 + 753, 2, 0))

    def test_code_that_dies(self):
        # A function at the address of one that died has its own callers.
        def program():
            for number in range(10_000):
                names = {}
                exec(f'def f{number % 7}(): pass', names)
                names[f'f{number % 7}']()
        found = numbers(counted(program, 'python'))
        self.assertEqual(
            {name: n for name, (n, *_) in found.items()
             if name[0] == 'f' and name[1:].isdigit()},
            {f'f{rest}': len(range(rest, 10_000, 7)) for rest in range(7)})

    def test_callers_that_die(self):
        def program():
            for number in range(1000):
                exec(compile('\n' * (number % 7) + 'negative(1)', 'x', 'exec'))
        lines = Counter()
        for row in counted(program, 'python').calls:
            if row.callee.qualname == 'negative':
                lines[row.line] += row.calls
        self.assertEqual(lines, {
            rest + 1: len(range(rest, 1000, 7)) for rest in range(7)})

    def test_types_that_die(self):
        def program():
            for number in range(300):
                type(f'T{number % 3}', (), {})()
        found = numbers(counted(program))
        self.assertEqual([found[f'T{rest}'][0] for rest in range(3)],
                         [100] * 3)

    def test_memory_does_not_grow(self):
        # Nothing of a function that died stays but its name.
        def program():
            for _ in range(3000):
                eval('1 + 1')
        found = counted(program, 'python')
        self.assertLess(len(found.calls), 50)


class BesideOthersTest(SessionTest):

    def check(self, around):
        def program():
            fib(12)
            for _ in range(10):
                len('')
        found = numbers(counted(lambda: around(program)))
        self.assertEqual(found['fib'], (465, 1, 0))
        self.assertGreaterEqual(found['len'][0], 10)

    def test_cprofile(self):
        other = cProfile.Profile()
        self.check(other.runcall)
        [entry] = [entry for entry in other.getstats()
                   if getattr(entry.code, 'co_name', '') == 'fib']
        self.assertEqual(entry.callcount, 465)

    @unittest.skipIf(coverage is None, 'needs the PyPI package coverage')
    def test_coverage(self):
        # Of its own process: it leaves local events.
        result = subprocess.run([sys.executable, '-c', textwrap.dedent("""
            import coverage, sys
            from test.test_profile_sampling.recording import test_counts
            cover = coverage.Coverage(data_file=None, include=['*test_counts*'])

            def program():
                with cover.collect():
                    assert sys.monitoring.get_tool(1) == 'coverage.py'
                    test_counts.fib(12)
            print(test_counts.numbers(test_counts.counted(program))['fib'],
                  [cover.get_data().lines(name) for name
                   in cover.get_data().measured_files()])
            """)], env={**os.environ, 'COVERAGE_CORE': 'sysmon',
                        'PYTHONPATH': os.pathsep.join(sys.path)},
            capture_output=True, text=True)
        self.assertEqual(result.stdout,
                         f'(465, 1, 0) [[{fib.__code__.co_firstlineno + 1}]]\n',
                         result.stderr)

    @unittest.skipIf(yappi is None, 'needs the PyPI package yappi')
    def test_yappi(self):
        def profiled(program):
            yappi.start(builtins=True)
            try:
                program()
            finally:
                yappi.stop()
            [row] = [row for row in yappi.get_func_stats()
                     if row.name == 'fib']
            yappi.clear_stats()
            self.assertEqual((row.ncall, row.nactualcall), (465, 1))
        self.check(profiled)

    def test_trace_function(self):
        def traced(program):
            events = Counter()

            def trace(frame, event, arg):
                events[event] += 1
                return trace
            before = sys.gettrace()
            sys.settrace(trace)
            try:
                program()
            finally:
                sys.settrace(before)
            self.assertGreater(events['line'], 400)
        self.check(traced)

    def test_profile_function(self):
        def profiled(program):
            before = sys.getprofile()
            sys.setprofile(lambda frame, event, arg: None)
            try:
                program()
            finally:
                sys.setprofile(before)
        self.check(profiled)

    def test_tool_that_disables(self):
        events = sys.monitoring.events

        def disabled(program):
            sys.monitoring.use_tool_id(1, 'test')
            for event in events.PY_START, events.CALL:
                sys.monitoring.register_callback(
                    1, event, lambda *args: sys.monitoring.DISABLE)
            sys.monitoring.set_events(1, events.PY_START | events.CALL)
            try:
                program()
            finally:
                sys.monitoring.set_events(1, 0)
                sys.monitoring.free_tool_id(1)
        self.check(disabled)

    def test_local_events(self):
        events = sys.monitoring.events

        def local(program):
            lines = []
            sys.monitoring.use_tool_id(1, 'test')
            sys.monitoring.register_callback(
                1, events.LINE, lambda code, line: lines.append(line))
            sys.monitoring.set_local_events(1, fib.__code__, events.LINE)
            try:
                program()
            finally:
                sys.monitoring.set_local_events(1, fib.__code__, 0)
                sys.monitoring.free_tool_id(1)
            self.assertGreaterEqual(len(lines), 465)
        self.check(local)

    def test_no_free_id(self):
        free = [number for number in range(6)
                if sys.monitoring.get_tool(number) is None]
        for number in free:
            sys.monitoring.use_tool_id(number, f'tool{number}')
            self.addCleanup(sys.monitoring.free_tool_id, number)
        with self.assertRaisesRegex(RuntimeError, r'no free id .*5 tool5'):
            profile(calls='python').__enter__()
        with self.assertRaisesRegex(RuntimeError, 'no free id'):
            profile_sampling.start(calls='python')
        self.assertFalse(profile_sampling.running())
        counted(lambda: None, 'off')

    def of_another(self, events):
        """Return how often a tool is called that takes the id of ours while
        fib(12) is called a second time."""
        called = []
        with profile(calls='python') as block:
            fib(12)
            tool = max([number for number in range(6) if sys.monitoring
                        .get_tool(number) == 'profile_sampling'])
            if events:
                sys.monitoring.free_tool_id(tool)
                sys.monitoring.use_tool_id(tool, 'another')
                self.addCleanup(sys.monitoring.free_tool_id, tool)
                sys.monitoring.register_callback(
                    tool, events, lambda *args: called.append(args))
            sys.monitoring.set_events(tool, events)
            fib(12)
            sys.monitoring.set_events(tool, 0)
        if events:
            self.assertEqual(sys.monitoring.get_tool(tool), 'another')
            sys.monitoring.register_callback(tool, events, None)
        ended_ns = block.profile._tables.counts.ended_ns
        self.assertTrue(0 < ended_ns < block.profile.duration_ns, ended_ns)
        self.assertEqual(numbers(block.profile)['fib'], (465, 1, 0))
        return called

    def test_tool_that_takes_the_id(self):
        # From then on events are its own.
        called = self.of_another(sys.monitoring.events.PY_START)
        self.assertEqual([code for code, _ in called].count(fib.__code__),
                         465)
        self.assertEqual(numbers(counted(lambda: fib(12)))['fib'],
                         (465, 1, 0))

    def test_tool_that_takes_the_events(self):
        self.of_another(0)

    def test_leaves_nothing(self):
        before = [sys.monitoring.get_tool(number) for number in range(6)]
        counted(lambda: fib(3))
        self.assertEqual(before, [sys.monitoring.get_tool(number)
                                  for number in range(6)])
        fib(3)
        self.assertNotIn('INSTRUMENTED', ' '.join(self.opcodes(fib)))

    def opcodes(self, function):
        return [instruction.opname for instruction
                in dis.get_instructions(function, adaptive=True)]

    def test_calls_stay_specialized(self):
        def hot():
            for number in range(1000):
                negative(number)
                len('')

        def calls():
            return [name for name in self.opcodes(hot) if 'CALL' in name]
        for _ in range(10):
            hot()
        specialized = calls()
        self.assertIn('CALL_PY_EXACT_ARGS', specialized)
        with profile(calls='python'):
            hot()
            self.assertEqual(calls(), specialized)
        with profile(calls='all'):
            hot()
        for _ in range(10):
            hot()
        self.assertEqual(calls(), specialized)


class ArgumentsTest(SessionTest):

    def test_wrong_ones(self):
        for calls, error in ('yes', ValueError), (True, TypeError):
            with self.assertRaises(error):
                profile(calls=calls)
            with self.assertRaises(error):
                profile_sampling.start(calls=calls)

    def test_not_deferred(self):
        with self.assertRaisesRegex(ValueError, 'deferred'):
            profile_sampling.start(defer=True, calls='python')

    def test_not_counted(self):
        with profile() as block:
            fib(3)
        self.assertIsNone(block.profile.calls)


class FileTest(SessionTest):

    def setUp(self):
        super().setUp()
        self.path = os_helper.TESTFN + '.pb.gz'
        self.addCleanup(os_helper.unlink, self.path)

    def saved(self, found):
        found.save(self.path)
        return Profile.load(self.path)

    def test_saved_and_loaded(self):
        found = counted(lambda: (fib(5), list(count(2))))
        self.assertEqual(self.saved(found).calls, found.calls)

    def test_parts_have_those_of_the_whole(self):
        found = counted(lambda: fib(15))
        self.assertEqual(found.focus('fib').calls, found.calls)

    def test_merged(self):
        found = counted(lambda: fib(5))
        both = self.saved(Profile.merge(found, found))
        self.assertEqual(numbers(both)['fib'], (30, 2, 0))

    def test_damaged(self):
        from profile_sampling._formats.pprof import budget, counts
        text = next(counts.comments(counted(lambda: fib(5))._tables))
        text = text.partition('calls ')[2]
        known = budget.Budget(1 << 24)
        self.assertIsNotNone(counts.read([text], known))
        for damaged in (text[:len(text) // 2], text.replace(' all ', ' some '),
                        text.replace(' 0 ', ' x ', 1)):
            with self.assertRaisesRegex(ValueError, 'table of calls'):
                counts.read([damaged], known)


class CommandLineTest(unittest.TestCase):

    def setUp(self):
        self.path = os.path.abspath(os_helper.TESTFN + '.pb.gz')
        self.addCleanup(os_helper.unlink, self.path)

    def run_program(self, text, calls='python'):
        script_helper.assert_python_ok(
            '-X', f'sampleprof=wall,out={self.path},calls={calls}',
            '-c', textwrap.dedent(text))
        return Profile.load(self.path)

    def test_program(self):
        found = self.run_program('''
            def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
            fib(15)
            ''')
        self.assertEqual(numbers(found)['fib'], (1973, 1, 0))

    @support.requires_fork()
    def test_child_counts_from_0(self):
        path = os.path.abspath(os_helper.TESTFN)
        script_helper.assert_python_ok(
            '-X', f'sampleprof=wall,out={path}.{{pid}}.pb.gz,calls=python',
            '-c', textwrap.dedent('''
                import os
                def f(n): return n and f(n - 1)
                def work(n):
                    f(9)
                    pid = os.fork()
                    f(4)
                    if pid: os.waitpid(pid, 0)
                work(1)
                '''))
        folder = os.path.dirname(path)
        paths = [os.path.join(folder, name) for name in os.listdir(folder)
                 if name.startswith(os.path.basename(path) + '.')]
        for each in paths:
            self.addCleanup(os_helper.unlink, each)
        self.assertEqual(sorted([numbers(Profile.load(each))['f']
                                 for each in paths]), [(5, 1, 0), (15, 2, 0)])

    def test_ends_with_the_session(self):
        found = self.run_program('''
            import sys, time
            def f(): pass
            f()
            while sys.monitoring.get_tool(5):
                time.sleep(0.01)
            f()
            ''', calls='python,duration_s=1')
        self.assertEqual(numbers(found)['f'], (1, 1, 0))

    def test_no_free_id(self):
        # The session begins before any other code of Python: only a program
        # that embeds Python can have taken them.
        _, _, err = script_helper.assert_python_ok('-c', textwrap.dedent(f"""
            import sys
            from profile_sampling._recording import command_line
            for number in range(6):
                sys.monitoring.use_tool_id(number, f'tool{{number}}')
            assert not command_line.begin(
                {f'wall,out={self.path},calls=python'!r}, True)
            def work(): return sum(range(1000))
            for _ in range(5000): work()
            """))
        self.assertIn(
            b'sampleprof: calls are not counted: sys.monitoring has no free '
            b'id (2 tool2, 3 tool3, 4 tool4, 5 tool5). Sampling goes on', err)
        found = Profile.load(self.path)
        self.assertIsNone(found.calls)
        self.assertIn('work', [row.function.qualname
                               for row in found.functions()])

    def test_unknown_mode(self):
        status, _, err = script_helper.assert_python_failure(
            '-X', 'sampleprof=wall,calls=yes', '-c', 'pass')
        self.assertEqual(status, 2)
        self.assertIn(b'calls=yes: expected off, queries, python or all', err)

    def test_record(self):
        result = subprocess.run(
            [sys.executable, '-m', 'profile_sampling', 'record', '--calls',
             'python', '-o', self.path, '-c',
             'def f(): pass\nfor _ in range(50): f()'],
            capture_output=True, text=True)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(numbers(Profile.load(self.path))['f'], (50, 50, 0))
