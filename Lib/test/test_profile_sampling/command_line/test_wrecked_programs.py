"""Programs that leave the interpreter in a state nobody expects."""

import os
import subprocess
import sys
import unittest

from profile_sampling import Profile

from ..support.sessions import ProgramTest, checked, environment


class WreckedProgramTest(ProgramTest):

    def check(self, code):
        plain = self.run_python('-c', code)
        result = self.run_python('-Xsampleprof=out=x.pb.gz', '-c', code)
        self.assertEqual((result.status, result.out),
                         (plain.status, plain.out), result.err)
        result.load('x.pb.gz')

    def test_written_nevertheless(self):
        for code in (
                'import sys; sys.path[:] = []',
                'import sys; del sys.path',
                'import sys; sys.path = None',
                'import sys; sys.meta_path.clear()',
                'import sys; sys.modules["os"] = None',
                'import sys; sys.modules["profile_sampling"] = None',
                'import builtins; builtins.__import__ = None',
                'import sys; sys.stderr = None; sys.stdout = None',
                'import sys; sys.stderr = sys.stdout = object()',
                'import sys; sys.stderr.close()',
                'import os; os.close(2)',
                'import os; os.close(1); os.close(0)',
                'import sys; sys.argv = None; del sys.orig_argv',
                'import sys; sys.setrecursionlimit(60)',
                'import sys; sys.exit = None; sys.excepthook = None',
                'import os; os.environ.clear()',
                'import gc; gc.set_threshold(1)',
                'import gc; gc.disable()',
                'import locale, os; os.environ["LC_ALL"] = "nonsense"',
                'import signal; [signal.signal(s, signal.SIG_IGN) for s in '
                '(signal.SIGTERM, signal.SIGINT, signal.SIGPIPE)]',
                'import warnings; warnings.simplefilter("error")',
                'import sys; sys.dont_write_bytecode = True',
                'import threading; threading.Thread = None',
                'import os; os.umask(0o777)',
                'import sys; sys.settrace(lambda *a: 1/0)',
                'import sys; sys.setprofile(lambda f, e, a: None)',
                'import builtins; builtins.print = None'):
            with self.subTest(code=code):
                self.check(code)

    def test_a_file_in_the_place_of_stderr(self):
        code = ('import os; '
                'fd = os.open("own.txt", os.O_CREAT | os.O_WRONLY); '
                'fd == 2 or os.dup2(fd, 2); os.write(2, b"mine")')
        result = self.run_python(
            '-Xsampleprof=out=profile.pb.gz', '-c', code,
            prefix=['sh', '-c', 'exec "$@" 2>&-', 'sh'])
        self.assertEqual(result.status, 0)
        self.load('profile.pb.gz')
        with open(os.path.join(self.directory, 'own.txt'), 'rb') as file:
            self.assertEqual(file.read(), b'mine')

    def test_main_after_initialize(self):
        # The second configuration has no module search path.
        builddir = os.path.dirname(os.path.realpath(sys.executable))
        program = os.path.join(builddir, 'Programs', '_testembed')
        if not os.path.exists(program):
            self.skipTest('needs a build directory')
        out = os.path.join(self.directory, 'profile.pb.gz')
        result = subprocess.run(
            [program, 'test_initialize_pymain'], cwd=builddir,
            env=environment(PYTHONSAMPLEPROF=f'out={out},quiet=1'),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual((result.returncode, result.stderr), (0, ''))
        checked(Profile.load(out))

    def test_modules_of_the_program(self):
        # A program may have modules with the names of the library's.
        for name in 'gzip', 'zlib', 'array', 'io':
            with self.subTest(name=name):
                if name not in sys.builtin_module_names:
                    self.file(f'{name}.py', 'wrong = True\n')
                result = self.run_python(
                    '-Xsampleprof=out=x.pb.gz', '-c',
                    f'import {name}; print(1)')
                self.assertEqual((result.status, result.out), (0, b'1\n'))
                self.assertEqual(len(result.said()), 1, result.err)

    def test_closed_stderr(self):
        for option in '-Xsampleprof=out=x.pb.gz', '-Xsampleprof=bad':
            command = ('import os, sys; os.close(2); '
                       f'os.execv(sys.executable, [sys.executable, '
                       f'{option!r}, "-c", "print(1)"])')
            result = self.run_python('-c', command)
            good = 'bad' not in option
            self.assertEqual((result.status, result.out),
                             (0, b'1\n') if good else (2, b''))

    def test_full_disk(self):
        result = self.run_python(
            '-Xsampleprof=out=x.pb.gz', '-c',
            'import resource, signal\n'
            'signal.signal(signal.SIGXFSZ, signal.SIG_DFL)\n'
            'resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))')
        self.assertEqual(result.status, 0)
        self.assertIn('cannot write', result.said()[0])
        self.assertEqual(self.files(), [])

    def test_no_descriptors_left(self):
        result = self.run_python(
            '-Xsampleprof=out=x.pb.gz', '-c',
            'import os\n'
            'try:\n'
            '    while True: os.dup(0)\n'
            'except OSError: print("full")')
        self.assertEqual((result.status, result.out), (0, b'full\n'))
        self.assertTrue(result.err)
        self.assertEqual(self.files(), [])


if __name__ == '__main__':
    unittest.main()
