"""The public interface: what it checks, and sessions around code."""

import asyncio
import os
import signal
import sys
import tempfile
import threading
import unittest
from unittest import mock

import profile_sampling
from profile_sampling import Profile, profile

from ..support.imports import HEAVY, modules_loaded_by
from ..support.sessions import SessionTest


def tearDownModule():
    asyncio.set_event_loop_policy(None)     # as it was


class FunctionsTest(SessionTest):

    def test_options(self):
        for names in 'off', 'calls', 'opcodes', 'all':
            self.assertIs(profile_sampling.running(), False)
            self.assertIsNone(profile_sampling.start(
                'cpu', rate_hz=1, depth_frames=16384, names=names,
                signal=signal.SIGRTMAX))
            self.assertIs(profile_sampling.running(), True)
            result = profile_sampling.stop()
            self.assertEqual((result.mode, result.rate_hz,
                              result.depth_frames, result.names),
                             ('cpu', 1, 16384, names))
        profile_sampling.start()
        result = profile_sampling.snapshot()
        self.assertEqual((result.mode, result.rate_hz), ('wall', 1000))

    def test_checks(self):
        for error, message, options in (
                (ValueError, "^mode must be 'wall', 'cpu' or 'alloc', not 'x'$",
                 {'mode': 'x'}),
                (ValueError, "not 'WALL'$", {'mode': 'WALL'}),
                (TypeError, '^mode must be a str, not int$', {'mode': 1}),
                (TypeError, '^mode must be a str, not bytes$',
                 {'mode': b'cpu'}),
                (ValueError, '^rate_hz must be from 1 to 10000, not 0$',
                 {'rate_hz': 0}),
                (ValueError, 'not 10001$', {'rate_hz': 10001}),
                (ValueError, 'not -1$', {'rate_hz': -1}),
                (TypeError, '^rate_hz must be an int, not float$',
                 {'rate_hz': 100.0}),
                (TypeError, 'not bool$', {'rate_hz': True}),
                (TypeError, 'not str$', {'rate_hz': '1000'}),
                (ValueError, '^depth_frames must be from 1 to 16384, not 0$',
                 {'depth_frames': 0}),
                (ValueError, 'not 16385$', {'depth_frames': 16385}),
                (TypeError, '^depth_frames must be an int, not bool$',
                 {'depth_frames': False}),
                (ValueError, '^signal must be from 1 to ', {'signal': 0}),
                (ValueError, '^signal must be from 1 to ',
                 {'signal': int(signal.NSIG)}),
                (TypeError, '^signal must be an int, not str$',
                 {'signal': 'SIGURG'}),
                (ValueError, 'names must be', {'names': ''}),
                (ValueError, 'names must be', {'names': 'All'}),
                (ValueError, 'names must be', {'names': 'calls,opcodes'}),
                (TypeError, 'names must be a str', {'names': 3})):
            for function in profile_sampling.start, profile:
                with self.subTest(options=options, function=function):
                    with self.assertRaisesRegex(error, message):
                        function(**options)
        self.assertFalse(profile_sampling.running())

    def test_without_the_core(self):
        with mock.patch.dict(sys.modules, _profile=None):
            for function in (profile_sampling.start, profile_sampling.stop,
                             profile_sampling.snapshot,
                             profile_sampling.running,
                             profile_sampling.stats,
                             profile().__enter__,
                             profile_sampling.region):
                with self.assertRaisesRegex(ImportError,
                                            'has no sampling profiler: it '
                                    'can read and report'):
                    function()


class ContextManagerTest(SessionTest):

    def test_profile(self):
        session = profile('cpu', rate_hz=50)
        with self.assertRaises(ZeroDivisionError):
            with session:
                self.assertTrue(profile_sampling.running())
                self.assertIsNone(session.profile)
                with self.assertRaisesRegex(RuntimeError, 'one of its own'):
                    session.__enter__()
                1 / 0
        self.assertFalse(profile_sampling.running())
        first = session.profile
        self.assertEqual((first.mode, first.rate_hz), ('cpu', 50))
        with session:
            pass
        self.assertIsNot(session.profile, first)

    def test_options_only(self):
        for name in 'rate', 'route', 'defer', 'manual':
            with self.assertRaisesRegex(TypeError, f"'{name}'"):
                profile(**{name: 1})

    def test_the_first_word_of_an_option_is_told_the_rest(self):
        for function in (profile_sampling.start, profile,
                         profile_sampling.subscribe):
            for given, meant in (('rate', 'rate_hz'), ('ratehz', 'rate_hz'),
                                 ('depth', 'depth_frames')):
                with self.subTest(function=function, given=given):
                    with self.assertRaisesRegex(
                            TypeError, rf"{given}.*Did you mean '{meant}'\?"):
                        function(**{given: 3})

    def test_a_bad_name_is_known_at_once(self):
        with self.assertRaisesRegex(ValueError, 'known extensions'):
            profile(out='p.doc')
        self.assertFalse(profile_sampling.running())

    def test_a_place_that_cannot_be_is_known_at_once(self):
        with tempfile.TemporaryDirectory() as directory:
            file = os.path.join(directory, 'file.txt')
            link = os.path.join(directory, 'link.txt')
            with open(file, 'w'):
                pass
            os.symlink(link, link)
            for error, out in (
                    (FileNotFoundError, os.path.join(directory, 'no/p.txt')),
                    (NotADirectoryError, os.path.join(file, 'p.txt')),
                    (OSError, link)):
                with self.subTest(out=out):
                    with self.assertRaisesRegex(error, directory):
                        with profile(out=out):
                            self.fail('the block ran')
                    with self.assertRaisesRegex(error, directory):
                        profile(out=out)(self.fail)()
        self.assertFalse(profile_sampling.running())

    @unittest.skipIf(os.geteuid() == 0, 'root may write anywhere')
    def test_a_directory_that_cannot_be_written(self):
        with self.assertRaisesRegex(PermissionError, 'denied'):
            with profile(out='/proc/p.txt'):
                self.fail('the block ran')

    def test_a_failed_write_keeps_the_profile(self):
        with tempfile.TemporaryDirectory() as directory:
            place = os.path.join(directory, 'place')
            os.mkdir(place)
            session = profile(out=os.path.join(place, 'p.txt'))
            with self.assertRaises(OSError):
                with session:
                    os.rmdir(place)
        self.assertIsInstance(session.profile, Profile)
        self.assertFalse(profile_sampling.running())


class DecoratorTest(SessionTest):

    def test_function(self):
        """Recursion is one block, and an exception ends it."""
        @profile('cpu')
        def divide(a, *, by):
            """Divide."""
            result = divide(a, by=by - 1) if by > 1 else a / by
            self.assertTrue(profile_sampling.running())
            self.assertIs(divide.profile, before)
            return result

        before = None
        self.assertEqual(divide(1, by=5), 1)
        self.assertFalse(profile_sampling.running())
        before = divide.profile
        self.assertEqual(before.mode, 'cpu')
        self.assertEqual((divide.__name__, divide.__doc__),
                         ('divide', 'Divide.'))
        with self.assertRaises(ZeroDivisionError):
            divide(1, by=0)
        self.assertIsNot(divide.profile, before)
        self.assertFalse(profile_sampling.running())

    def test_a_call_in_another_thread_only_runs(self):
        inside = threading.Event()
        leave = threading.Event()

        @profile()
        def work(wait):
            if wait:
                inside.set()
                leave.wait(60)
            return wait

        thread = threading.Thread(target=work, args=(True,))
        thread.start()
        try:
            inside.wait(60)
            self.assertIs(work(False), False)
            self.assertIsNone(work.profile)
            self.assertTrue(profile_sampling.running())
        finally:
            leave.set()
            thread.join()
        self.assertFalse(profile_sampling.running())

    def test_coroutine(self):
        @profile()
        async def work(n):
            self.assertTrue(profile_sampling.running())
            await asyncio.sleep(0.001 * n)
            self.assertTrue(n or profile_sampling.running())
            return n

        async def main():
            return await asyncio.gather(*[work(n) for n in range(3)])

        coroutine = work(0)
        self.assertFalse(profile_sampling.running())
        self.assertEqual(asyncio.run(coroutine), 0)
        self.assertIsInstance(work.profile, Profile)
        self.assertEqual(asyncio.run(main()), [0, 1, 2])
        self.assertFalse(profile_sampling.running())

    def test_generator(self):
        @profile()
        def numbers(n):
            got = yield profile_sampling.running()
            yield got
            return n

        generator = numbers(5)
        self.assertFalse(profile_sampling.running())
        self.assertIs(next(generator), True)
        self.assertTrue(profile_sampling.running())
        self.assertEqual(generator.send('sent'), 'sent')
        with self.assertRaises(StopIteration) as caught:
            next(generator)
        self.assertEqual(caught.exception.value, 5)
        self.assertFalse(profile_sampling.running())
        self.assertIsInstance(numbers.profile, Profile)

    def test_what_cannot_be_decorated(self):
        async def generator():
            yield

        for decorator, thing, message in (
                (profile(), generator, 'async generator'),
                (profile(), DecoratorTest, 'the class DecoratorTest'),
                (profile(), 5, 'a int'),
                (profile(), classmethod(len), 'a classmethod'),
                # Forgotten parentheses.
                (profile, lambda: None, r'write @profile\(\)')):
            with self.subTest(message), \
                    self.assertRaisesRegex(TypeError, message):
                decorator(thing)


class ImportTest(unittest.TestCase):

    def test_import_is_light(self):
        loaded = modules_loaded_by('import profile_sampling')
        self.assertEqual(loaded & HEAVY, set())
        self.assertNotIn('profile_sampling._formats', loaded)
        self.assertNotIn('profile_sampling._data.rows', loaded)

    def test_a_session_is_light(self):
        loaded = modules_loaded_by('from profile_sampling import profile; '
                                   'profile()')
        self.assertEqual(loaded & HEAVY, set())

    def test_public_names(self):
        for name in profile_sampling.__all__:
            self.assertTrue(getattr(profile_sampling, name).__doc__, name)
        self.assertLessEqual(set(profile_sampling.__all__),
                             set(dir(profile_sampling)))
        space = {}
        exec('from profile_sampling import *', space)
        self.assertEqual(set(space) - {'__builtins__'},
                         set(profile_sampling.__all__))
        with self.assertRaisesRegex(AttributeError, 'nothing'):
            profile_sampling.nothing
