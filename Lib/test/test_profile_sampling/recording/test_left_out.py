"""Builds without the profiler: who asks for samples is told what is missing,
and everything else works.

These builds are made by --without-sampling-profiler, by --disable-gil, and
wherever there is no Linux.
"""

import asyncio
import os
import sys
import sysconfig
import tempfile
import unittest
from test.support import import_helper, script_helper

import profile_sampling

from ..support.builders import example
from ..support.compiling import load_extension

_profile = import_helper.import_module('_profile')

if sysconfig.get_config_var('WITH_SAMPLING_PROFILER'):
    raise unittest.SkipTest('this build has the profiler')

# What is missing, and what to do.
if sys.platform != 'linux':
    MISSING = 'needs Linux; run the program there'
elif sysconfig.get_config_var('Py_GIL_DISABLED'):
    MISSING = ('needs the GIL, and this is a free-threaded build of Python; '
               'run the program with a build that has the GIL')
else:
    MISSING = ('this Python was built --without-sampling-profiler; run the '
               'program with one that was built with it')


def tearDownModule():
    asyncio.set_event_loop_policy(None)     # as it was


class AskingTest(unittest.TestCase):

    def refused(self):
        return self.assertRaisesRegex(NotImplementedError, MISSING)

    def test_start(self):
        with self.refused():
            profile_sampling.start()
        with self.refused():
            profile_sampling.start('cpu', rate_hz=100, depth_frames=10,
                                   names='off', signal=10, defer=True)
        self.assertFalse(profile_sampling.running())

    def test_a_wrong_argument_is_told_first(self):
        with self.assertRaisesRegex(ValueError, 'mode'):
            profile_sampling.start('bogus')

    def test_region(self):
        # It does nothing without a session, and there is never one.
        with profile_sampling.region():
            self.assertFalse(profile_sampling.running())

    def test_profiled_function(self):
        @profile_sampling.profile()
        def function():
            self.fail('it runs')
        with self.refused():
            function()

    def test_subscribe(self):
        threads = len(os.listdir('/proc/self/task'))
        with self.refused():
            profile_sampling.subscribe(print)
        self.assertEqual(len(os.listdir('/proc/self/task')), threads)

    def test_c_api(self):
        with tempfile.TemporaryDirectory() as directory:
            capi = load_extension('capi_subscriber', directory)
            with self.refused():
                capi.start(100, 65536)

    def test_no_session(self):
        for end in profile_sampling.stop, profile_sampling.snapshot:
            with self.assertRaisesRegex(
                    RuntimeError, f'no sampling session is .*{MISSING}'):
                end()

    def test_nobody_samples(self):
        self.assertFalse(profile_sampling.running())
        self.assertIs(profile_sampling.sample(7, bytes=10), False)
        stats = profile_sampling.stats()
        self.assertIn('samples', stats)
        self.assertEqual(set(stats.values()), {0})


class LabelsTest(unittest.TestCase):

    def test_blocks(self):
        with profile_sampling.label(route='/', user=7):
            with profile_sampling.label(route='/in', user=None):
                self.assertEqual(profile_sampling.labels(), {'route': '/in'})
            self.assertEqual(profile_sampling.labels(),
                             {'route': '/', 'user': '7'})
        self.assertEqual(profile_sampling.labels(), {})

    def test_wrong_ones(self):
        with self.assertRaisesRegex(ValueError, "'state'"):
            profile_sampling.label(state='x')
        with self.assertRaises(TypeError):
            profile_sampling.label(route=[])
        with self.assertRaises(TypeError):
            _profile.enter_labels(None)

    def test_tasks_inherit_and_never_mix(self):
        async def child(number):
            with profile_sampling.label(child=number):
                await asyncio.sleep(0)
                return profile_sampling.labels()

        async def parent():
            with profile_sampling.label(route='/'):
                return await asyncio.gather(*map(child, range(5)))
        self.assertEqual(
            asyncio.run(parent()),
            [{'route': '/', 'child': str(n)} for n in range(5)])

    def test_subinterpreter(self):
        interpreters = import_helper.import_module('_interpreters')
        interpreter = interpreters.create()
        self.addCleanup(interpreters.destroy, interpreter)
        error = interpreters.exec(interpreter, '''if True:
            import profile_sampling
            with profile_sampling.label(route='/'):
                assert profile_sampling.labels() == {'route': '/'}
            ''')
        self.assertIsNone(error)


class ProfilesTest(unittest.TestCase):
    """Those that were recorded elsewhere."""

    def test_load_merge_and_report(self):
        profile = example().profile()
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, 'a.pb.gz')
            merged = os.path.join(directory, 'merged.pb.gz')
            profile.save(path)
            loaded = profile_sampling.Profile.load(path)
            self.assertEqual(loaded.total_wall_ns, profile.total_wall_ns)
            self.assertGreater(loaded.total_wall_ns, 0)
            self.command('merge', path, '-o', merged)
            report = self.command('report', merged)
        self.assertIn('app.hook:7', report)

    def command(self, *arguments):
        _, out, _ = script_helper.assert_python_ok(
            '-m', 'profile_sampling', *arguments)
        return out.decode()


class CommandLineTest(unittest.TestCase):
    """The program runs, and its status is its own; one line says why there is
    no profile."""

    def said(self, *arguments, **environment):
        status, out, err = script_helper.assert_python_failure(
            *arguments, '-c', 'print("ran"); raise SystemExit(3)',
            **environment)
        self.assertEqual(status, 3)
        self.assertEqual(out.strip(), b'ran')
        return err.decode()

    def assert_told(self, err, source):
        self.assertRegex(
            err, f'\\A{source}: not profiling: .*{MISSING}.*\\n\\Z')

    def test_option(self):
        for option in 'sampleprof', 'sampleprof=cpu,rate_hz=100,out=a.txt':
            self.assert_told(self.said(f'-X{option}'), '-X sampleprof')

    def test_variable(self):
        err = self.said(PYTHONSAMPLEPROF='wall')
        self.assert_told(err, 'PYTHONSAMPLEPROF')

    def test_off(self):
        for text in 'off', 'off,quiet=1':
            self.assertEqual(self.said(f'-Xsampleprof={text}'), '')
            self.assertEqual(self.said(PYTHONSAMPLEPROF=text), '')
        # The option beats the variable.
        self.assertEqual(
            self.said('-Xsampleprof=off', PYTHONSAMPLEPROF='wall'), '')
        self.assertEqual(self.said('-E', PYTHONSAMPLEPROF='wall'), '')

    def test_no_file(self):
        with tempfile.TemporaryDirectory() as directory:
            script_helper.assert_python_ok(
                '-Xsampleprof', '-c', 'pass', __cwd=directory)
            self.assertEqual(os.listdir(directory), [])
