"""The C API: a profiler in C that drops its own sampler.

The extension is compiled here, against the headers as they are installed.
"""

import importlib.machinery
import importlib.util
import os
import pathlib
import shlex
import shutil
import subprocess
import sysconfig
import tempfile
import time
import unittest

from .subscribers import SubscriberTest, running, spin

SOURCE = pathlib.Path(__file__).with_name('capi_subscriber.c')


def compile_extension(directory):
    compiler = shlex.split(sysconfig.get_config_var('CC') or '')
    if not compiler or shutil.which(compiler[0]) is None:
        raise unittest.SkipTest('needs the C compiler of this build')
    includes = {sysconfig.get_path('include'),
                os.path.dirname(sysconfig.get_config_h_filename())}
    if sysconfig.is_python_build():
        includes.add(os.path.join(sysconfig.get_config_var('srcdir'),
                                  'Include'))
    path = os.path.join(directory, 'capi_subscriber.so')
    process = subprocess.run(
        [*compiler, '-shared', '-fPIC', '-O1', '-Wall', '-Werror',
         *[f'-I{include}' for include in sorted(includes)],
         *shlex.split(sysconfig.get_config_var('PY_CFLAGS_NODIST') or ''),
         '-o', path, str(SOURCE)], capture_output=True, text=True)
    if process.returncode:
        raise AssertionError(process.stderr)
    return path


def load(path):
    loader = importlib.machinery.ExtensionFileLoader('capi_subscriber', path)
    spec = importlib.util.spec_from_loader('capi_subscriber', loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


class CAPI(SubscriberTest):

    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        cls.capi = load(compile_extension(directory.name))

    def test_totals_and_shares(self):
        capi = self.capi
        started = time.perf_counter_ns()
        capi.start(1000, 65536)
        for _ in range(20):
            spin(0.02)
        life_ns = time.perf_counter_ns() - started
        totals, flat = capi.stop()
        self.assertEqual(totals['errors'], 0)
        self.assertEqual(totals['lost_wall_ns'], 0)
        self.assertGreater(totals['batches'], 10)
        self.assertGreater(totals['samples'], 100)
        self.assertAlmostEqual(totals['wall_ns'], life_ns,
                               delta=5e6 + 0.02 * life_ns)
        self.assertGreater(flat['spin'], 0.9 * life_ns)

    def test_threads_and_rates(self):
        capi = self.capi
        capi.start(100, 65536)
        capi.set_rate(2000)
        with running(lambda: spin(0.1), lambda: spin(0.1)):
            spin(0.1)
        with self.assertRaises(ValueError):
            capi.set_rate(0)
        totals, flat = capi.stop()
        self.assertEqual(totals['errors'], 0)
        self.assertGreater(totals['samples'], 50)
        self.assertGreater(flat['spin'], 0.2e9)

    def test_a_small_buffer(self):
        capi = self.capi
        capi.start(5000, 16)
        exec('\n'.join(['sum(range(20_000))'] * 200))
        totals, _ = capi.stop()
        self.assertEqual(totals['errors'], 0)
        self.assertGreater(totals['wall_ns'] + totals['lost_wall_ns'], 0)

    def test_wrong_options(self):
        with self.assertRaisesRegex(ValueError, 'rate_hz'):
            self.capi.start(100_000, 65536)
        with self.assertRaisesRegex(ValueError, 'max_records'):
            self.capi.start(100, 1)
        self.assert_idle()

    def test_beside_a_session(self):
        import profile_sampling
        profile_sampling.start()
        self.capi.start(1000, 65536)
        with running(lambda: spin(0.05)) as [thread]:
            pass
        totals, _ = self.capi.stop()
        profile = profile_sampling.stop()
        self.assertGreater(profile.total_wall_ns, 0.05e9)
        self.assertGreater(totals['wall_ns'], 0.05e9)
        self.assertLessEqual(totals['wall_ns'], profile.total_wall_ns)


if __name__ == '__main__':
    unittest.main()
