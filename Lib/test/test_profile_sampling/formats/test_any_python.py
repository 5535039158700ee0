"""Profiles are read, reported, merged and converted by any Python.

The package without the core, on the stock Pythons that this machine has from
3.11 on, and on this one as it would be on Windows: without what only Unix has,
and with a code page of 8 bits.
"""

import functools
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import profile_sampling
from profile_sampling import Profile, _formats
from profile_sampling._data import opcodes

from ..support.builders import Builder

_PACKAGE = os.path.dirname(profile_sampling.__file__)
_VERSIONS = range(11, 20)
# What neither another Python nor Windows has.
_PRELUDE = '''
import argparse, os, shutil, sys, time
for name in ("_profile", "resource", "fcntl", "pwd", "grp", "termios",
             "_interpreters", "_colorize"):
    sys.modules[name] = None
for name in ("fork", "register_at_fork", "uname", "sysconf", "geteuid",
             "getuid", "statvfs", "fchmod", "ST_RDONLY", "O_NOFOLLOW",
             "O_CLOEXEC", "O_DIRECTORY", "O_PATH", "waitid", "WNOHANG"):
    delattr(os, name)
for name in "clock_gettime", "clock_gettime_ns", "CLOCK_MONOTONIC":
    delattr(time, name)
import signal
for name in "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGCHLD", "pthread_sigmask":
    delattr(signal, name)
sys.platform = "win32"
'''
_MAIN = ('import sys; from profile_sampling._cli.main import main; '
         'sys.exit(main())')


@functools.cache
def stock_pythons():
    """Return the Pythons of this machine that do not sample themselves."""
    found = {}
    for minor in _VERSIONS:
        path = shutil.which(f'python3.{minor}')
        # Some names stand for no Python, until one has been chosen.
        if path and not subprocess.run(
                [path, '-c', 'import sys; "_profile" in '
                 'sys.builtin_module_names and sys.exit(1)'],
                stderr=subprocess.DEVNULL).returncode:
            found[minor] = path
    return list(found.values())


def a_profile():
    b = Builder(names=3, pid=7)
    b.thread('né 中')
    view = b.function('shop', 'view', 'C:\\srv\\shop.py', 3)
    # Of no Python but 3.13, a specialized instruction.
    b.sample([(view, 9, 1, 4, opcodes.number('BINARY_OP_ADD_INT')), 'C:zlib.compress'],
             wall_ns=30_000_000, cpu_ns=1_000_000, count=30,
             labels={'route': '/x'})
    b.sample('shop.main:2', wall_ns=70_000_000, state='waiting')
    return b.profile()


class AnyPython:

    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        os.symlink(_PACKAGE, os.path.join(self.folder, 'profile_sampling'))
        self.profile = a_profile()
        self.profile.save(self.path('a.pb.gz'))

    def path(self, name):
        return os.path.join(self.folder, name)

    def run_code(self, code, *arguments, status=0):
        results = []
        for python, prelude in self.pythons():
            with self.subTest(python):
                result = subprocess.run(
                    [python, '-c', prelude + code, *arguments],
                    cwd=self.folder, capture_output=True, env={
                        'PYTHONPATH': self.folder, 'PATH': os.defpath,
                        'PYTHONDONTWRITEBYTECODE': '1',
                        'PYTHONIOENCODING': 'cp1252'})
                self.assertNotIn(b'Traceback', result.stderr)
                self.assertEqual(result.returncode, status, result.stderr)
                results.append(result)
        self.assertEqual(len(results), len(self.pythons()))
        return results

    def cli(self, *arguments, **options):
        return self.run_code(_MAIN, *arguments, **options)

    def test_report(self):
        expected = subprocess.run(
            [sys.executable, '-m', 'profile_sampling', 'report',
             self.path('a.pb.gz')], capture_output=True).stdout
        for result in self.cli('report', self.path('a.pb.gz')):
            self.assertEqual(result.stdout, expected)

    def test_instructions(self):
        for result in self.cli('report', '--opcodes', 'a.pb.gz'):
            # It is known to be the specialized form of another one.
            self.assertRegex(result.stdout, br' 100\.0%   0\.0%  BINARY_OP ')

    def test_tables(self):
        for result in self.cli('report', 'a.pb.gz', '--by', 'route', '--tree',
                               '--functions', '--where', 'file=shop',
                               '--format', 'json'):
            self.assertIn(b'shop.view', result.stdout)

    def test_formats(self):
        for format in _formats.FORMATS:
            for _ in self.cli('report', 'a.pb.gz', '--format', format, '-o',
                              f'out.{format}'):
                self.assertGreater(os.path.getsize(
                    self.path(f'out.{format}')), 0)

    def test_page(self):
        for _ in self.cli('report', '--html', 'a.pb.gz'):
            self.assertEqual(Profile.load(self.path('a.html')),
                             Profile.load(self.path('a.pb.gz')))

    def test_merge_and_diff(self):
        other = Builder(names=3, pid=8)
        other.sample('shop.main:2', wall_ns=5)
        other.profile().save(self.path('b.pb.gz'))
        for _ in self.cli('merge', '-o', 'all.pb.gz', 'a.pb.gz', 'b.pb.gz'):
            self.assertEqual(
                Profile.load(self.path('all.pb.gz')).total_wall_ns,
                self.profile.total_wall_ns + 5)
        for result in self.cli('diff', 'a.pb.gz', 'b.pb.gz'):
            self.assertIn(b'shop.main', result.stdout)

    def test_api(self):
        for result in self.run_code(
                'import profile_sampling as p; f = p.Profile.load("a.pb.gz"); '
                'f.save("again.pb.gz"); f.report(); '
                'print(f.functions()[0].function.name)'):
            self.assertIn(b'shop.main', result.stdout)
            self.assertEqual(Profile.load(self.path('again.pb.gz')),
                             Profile.load(self.path('a.pb.gz')))

    def test_version(self):
        for result in self.cli('--version'):
            self.assertRegex(result.stdout, br'^profile_sampling on Python '
                                            br'3\.\d+\.\d+, reading only\n$')

    def test_recording_says_where_to_go(self):
        for result in self.cli('record', '--', 'x.py', status=1):
            self.assertIn(b'no sampling profiler: it can read and report '
                          b'profiles, not record them', result.stderr)
            self.assertEqual(result.stderr.count(b'\n'), 1)


@unittest.skipUnless(stock_pythons(), 'no stock Python from 3.11 on')
class StockTest(AnyPython, unittest.TestCase):

    @staticmethod
    def pythons():
        return [(python, '') for python in stock_pythons()]


class WindowsTest(AnyPython, unittest.TestCase):
    """As it would be there; the file system is that of this machine."""

    @staticmethod
    def pythons():
        return [(sys.executable, _PRELUDE)]
