"""The plugin of pytest."""

import importlib.util
import os
import subprocess
import sys
import unittest

from profile_sampling import Profile

from ..support.sessions import ProgramTest, environment

TESTS = '''\
import threading, time, pytest

def spin(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass

@pytest.fixture
def slow():
    spin(0.1)
    yield
    spin(0.1)

def test_fixture(slow):
    pass

def test_sleep():
    time.sleep(0.3)

class TestIt:
    def test_gil(self):
        other = threading.Thread(target=spin, args=(0.1,))
        other.start()
        spin(0.1)
        other.join()

@pytest.mark.parametrize('n', [1, 2])
def test_quick(n):
    spin(0.05)
    assert n == 1
'''

MEMORY_TESTS = '''\
import pytest

KEPT = []

def make(number):
    return [bytes(1000) for _ in range(number)]

def test_big():
    small = make(4_000)
    big = bytearray(60 << 20)

def test_leaves():
    KEPT.append(bytearray(20 << 20))

def test_little():
    make(10)

@pytest.mark.sampleprof(peak='5 MB')
def test_limit():
    bytearray(16 << 20)

@pytest.mark.sampleprof(peak='50 MB')
def test_within():
    bytearray(16 << 20)
'''

# Other plugins that are installed take longer to import than pytest.
OURS_ALONE = environment(PYTEST_DISABLE_PLUGIN_AUTOLOAD='1')


def has(*modules):
    return all([importlib.util.find_spec(name) for name in modules])


@unittest.skipUnless(has('pytest'), 'needs pytest')
class PluginTest(ProgramTest):

    def setUp(self):
        super().setUp()
        self.file('test_it.py', TESTS)

    def pytest(self, *arguments, option=()):
        return subprocess.run(
            [sys.executable, *option, '-m', 'pytest', '-p',
             'no:cacheprovider', '-p', 'profile_sampling.pytest_plugin',
             '--basetemp', 'tmp', *arguments],
            cwd=self.directory, env=OURS_ALONE, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def test_tests_that_change_the_directory(self):
        self.file('test_it.py', 'import os\n'
                  'def test_one(tmp_path):\n'
                  '    os.chdir(tmp_path)\n'
                  '    sum(range(1_000_000))\n')
        # The name of a file is reason enough to profile.
        result = self.pytest('--sampleprof-out=p.pb.gz')
        self.assertIn('The profile is in p.pb.gz.', result.stdout)
        self.assertIn('test_it.py::test_one', self.by_test('p.pb.gz'))

    def test_memory(self):
        self.file('test_it.py', MEMORY_TESTS)
        for workers in [(), ('-p', 'xdist', '-n', '2')][:1 + has('xdist')]:
            result = self.pytest('--sampleprof-memory', *workers)
            with self.subTest(workers=workers):
                self.assertIn('1 failed, 4 passed', result.stdout)
                self.assertIn('4 largest of 5 tests, by peak', result.stdout)
                # Blocks as large as these are known exactly.
                self.assertRegex(result.stdout, (
                    r'1 +6[0-9]\.\dMB .* - +test_it.py::test_big\n +most at '
                    r'test_it.test_big:10 \(bytearray\) 60\.0MB\n'
                    r'2 +20\.\dMB .* \+20\.\dMB +test_it.py::test_leaves\n'))
                self.assertIn('peak 16.0 MB, limit 5 MB', result.stdout)
                self.assertIn('1 test had a peak under 2 MB: too small',
                              result.stdout)
                self.assertIn('1 test left more than 2 MB behind: test_it.py::'
                              'test_leaves, 20.0 MB of it from test_it.'
                              'test_leaves:13 (bytearray)', result.stdout)

    def test_options_of_memory(self):
        for arguments, expected in (
                (['--sampleprof-memory=64X'], '64X: a size such as 512K'),
                (['--sampleprof', '--sampleprof-memory'], 'give --sampleprof '
                 'or --sampleprof-memory')):
            self.assertIn(expected, self.pytest(*arguments).stdout)

    def by_test(self, name):
        """{test: {state: wall ns}} of a profile."""
        profile = Profile.load(os.path.join(self.directory, name))
        found = {}
        for test, part in profile.group_by('test').items():
            found[test] = {state: whole.total_wall_ns for state, whole
                           in part.group_by('state').items()}
        return found

    def check_tests(self, found):
        found.pop(None)
        self.assertEqual(set(found), {
            'test_it.py::test_fixture', 'test_it.py::test_sleep',
            'test_it.py::TestIt::test_gil', 'test_it.py::test_quick[1]',
            'test_it.py::test_quick[2]'})
        # Of 200 ms, while other tests run, too.
        self.assertGreater(
            found['test_it.py::test_fixture']['running'], 170_000_000)
        self.assertGreater(
            found['test_it.py::test_sleep']['waiting'], 290_000_000)
        self.assertGreater(
            found['test_it.py::TestIt::test_gil']['gil_wait'], 30_000_000)

    def check_summary(self, text):
        lines = text.splitlines()
        head = [number for number, line in enumerate(lines)
                if '3 slowest of 5 sampled tests' in line]
        self.assertEqual(len(head), 1, text)
        # A row and the line that took most of it, three times.
        names = [line.split()[-1]
                 for line in [lines[head[0] + 1],
                              *lines[head[0] + 2:head[0] + 8:2]]]
        self.assertEqual(names[0], 'test')
        self.assertEqual(set(names[1:]), {
            'test_it.py::test_fixture', 'test_it.py::test_sleep',
            'test_it.py::TestIt::test_gil'})
        at = names.index('test_it.py::test_sleep')
        self.assertRegex(lines[head[0] + 2 * at + 1],
                         r'^ +most at test_it.test_sleep:18 \(time.sleep\) '
                         r'\d+\.\dms$')

    def test_summary_and_profile(self):
        # With a session of the command line, too.
        for option in (), ('-X', 'sampleprof=out=all.pb.gz'):
            with self.subTest(option=option):
                result = self.pytest('--sampleprof', '--sampleprof-out',
                                     'p.pb.gz', '--sampleprof-top', '3',
                                     option=option)
                self.assertEqual(result.returncode, 1, result.stdout)
                self.check_summary(result.stdout)
                self.check_tests(self.by_test('p.pb.gz'))

    @unittest.skipUnless(has('xdist'), 'needs pytest-xdist')
    def test_workers(self):
        result = self.pytest('-p', 'xdist', '-n', '2', '--sampleprof',
                             '--sampleprof-out', 'p.pb.gz',
                             '--sampleprof-top', '3')
        self.assertEqual(result.returncode, 1, result.stdout)
        self.check_summary(result.stdout)
        self.check_tests(self.by_test('p.pb.gz'))

    def test_not_asked_for(self):
        result = self.pytest('-q')
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertNotIn('sampled', result.stdout)

    def test_wrong_options(self):
        for arguments, message in (
                (['--sampleprof-out', 'p.doc'], "'p.doc'"),
                (['--sampleprof-out', 'no/p.txt'], 'No such file'),
                (['--sampleprof-rate', '0'], 'rate_hz')):
            with self.subTest(arguments=arguments):
                result = self.pytest('--sampleprof', *arguments)
                self.assertEqual(result.returncode, 4, result.stdout)
                self.assertIn(f'--sampleprof: ', result.stdout)
                self.assertIn(message, result.stdout)
