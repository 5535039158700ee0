"""The command run, for fingers that know cProfile."""

import os
import pstats
import re
import subprocess
import sys
import unittest

from test.support import os_helper, script_helper

from ..support.sessions import SessionTest  # noqa: F401, for builds without


class RunTest(unittest.TestCase):

    def setUp(self):
        self.folder = self.enterContext(os_helper.temp_cwd())
        self.script = script_helper.make_script(
            self.folder, 'fib', 'import sys\n'
            'def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)\n'
            'print(fib(15), *sys.argv[1:])\n'
            'sys.exit(3)\n')

    def run_command(self, *arguments):
        return subprocess.run(
            [sys.executable, '-m', 'profile_sampling', 'run', *arguments],
            capture_output=True, text=True)

    def test_table(self):
        result = self.run_command('-s', 'calls', self.script, 'a', '-s')
        self.assertEqual(result.returncode, 3, result.stderr)
        # The program's own output, and the arguments that are its own.
        self.assertTrue(result.stdout.startswith('610 a -s\n'))
        self.assertRegex(result.stdout, r'Ordered by: call count\n')
        self.assertRegex(result.stdout, r'\n +1973/1 .* fib\.py:2\(fib\)\n')
        self.assertRegex(result.stdout, r'\n +1 .* \{built-in method builtins\.print\}'
                                        r'\n')
        self.assertIn('Times are sampled', result.stdout)
        self.assertEqual(os.listdir(), ['fib.py'])

    def test_file(self):
        result = self.run_command('-o', 'a.prof', self.script)
        self.assertEqual((result.returncode, result.stdout), (3, '610\n'))
        rows = {name: row[:2] for (_, _, name), row
                in pstats.Stats('a.prof').stats.items()}
        self.assertEqual(rows['fib'], (1, 1973))

    def test_module(self):
        result = self.run_command('-m', 'fib', 'x')
        self.assertEqual(result.returncode, 3, result.stderr)
        self.assertTrue(result.stdout.startswith('610 x\n'))

    def test_wrong_key(self):
        result = self.run_command('-s', 'tiem', self.script)
        self.assertEqual((result.returncode, result.stdout), (2, ''))
        self.assertTrue(re.search("Did you mean 'time'", result.stderr))

    def test_no_script(self):
        result = self.run_command('nothing.py')
        self.assertEqual(result.returncode, 2)
        self.assertIn('nothing.py', result.stderr)
