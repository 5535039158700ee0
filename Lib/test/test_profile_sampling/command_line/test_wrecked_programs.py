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
                'import sys; sys.stderr.close = sys.stderr.write = None',
                'import sys; del sys.stdout, sys.stderr, sys.stdin',
                'import os; os.close(2)',
                'import os; r, w = os.pipe(); os.dup2(w, 2); os.close(r)',
                'import os; os.close(1); os.close(0)',
                'import sys; sys.argv = None; del sys.orig_argv',
                'import sys; sys.setrecursionlimit(60)',
                'import sys; sys.setrecursionlimit(801)\n'
                'def depth(n):\n'
                '    try: return depth(n + 1)\n'
                '    except RecursionError: return n\n'
                'print(depth(0))',
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
                'import os; os.umask(0o177)',
                'import sys; sys.settrace(lambda *a: 1/0)',
                'import sys; sys.setprofile(lambda f, e, a: None)',
                'import builtins, io; builtins.open = io.open = None',
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
        self.assertIn('cannot write x.pb.gz: File too large. Raise the limit '
                      'on the size of files: ulimit -f', result.said()[0])
        self.assertEqual(self.files(), [])

    def take_all(self, before, after='', **options):
        return self.run_python(
            '-Xsampleprof=out=x.pb.gz', '-c',
            'import os, resource\n'
            f'{before}\n'
            'try:\n'
            '    while True: os.dup(0)\n'
            'except OSError: print("full", flush=True)\n'
            f'{after}', **options)

    def test_no_descriptors_left(self):
        # A program that lowers the limit so far that the number which is kept
        # is of no use any more, may raise it again.
        for limit in 2000, (1200, 2000), (100, 2000):
            with self.subTest(limit=limit):
                soft, hard = limit if isinstance(limit, tuple) else (
                    limit, limit)
                result = self.take_all(
                    'resource.setrlimit(resource.RLIMIT_NOFILE, '
                    f'({soft}, {hard}))')
                self.assertEqual((result.status, result.out), (0, b'full\n'))
                self.assertIn('wrote x.pb.gz', result.err)
                self.load('x.pb.gz')

    def test_no_descriptors_left_by_a_limit_that_cannot_be_raised(self):
        # However the process ends, and also if the limit was there before.
        limit = 'resource.setrlimit(resource.RLIMIT_NOFILE, (%d, %d))'
        for end, status in (('', 0), ('os._exit(3)', 3),
                            ('os.kill(os.getpid(), 15)', -15),
                            ('os.execv("/bin/true", ["true"])', 0)):
            for before, prefix in (
                    (limit % (100, 100), ()),
                    ('', ('sh', '-c', 'ulimit -n 64; exec "$@"', 'sh')),
                    (limit % (1010, 1010), ()),
                    # The file is on the way to its process's children, too.
                    ('', ('sh', '-c', 'ulimit -n 1024; exec "$@"', 'sh'))):
                with self.subTest(end=end, before=before, prefix=prefix):
                    result = self.take_all(before, end, prefix=prefix)
                    self.assertEqual((result.status, result.out),
                                     (status, b'full\n'), result.err)
                    self.assertEqual(len(result.said()), 1, result.err)
                    self.assertIn('wrote x.pb.gz', result.err)
                    self.load('x.pb.gz')
                    self.assertEqual(self.files(), ['x.pb.gz'])
                    os.unlink(os.path.join(self.directory, 'x.pb.gz'))

    def test_no_descriptor_is_allowed(self):
        result = self.take_all(
            'resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))')
        self.assertEqual((result.status, result.out), (0, b'full\n'))
        self.assertEqual(result.err, (
            'sampleprof: cannot write x.pb.gz: Too many open files. Raise '
            'the limit on open files: ulimit -n\n'))
        self.assertEqual(self.files(), [])

    def test_what_is_open_stays_open(self):
        # The file is written before exec, which fails: what the program
        # closes then is closed.  So it is before the next, which does not:
        # what is inherited is not closed.
        os.chmod(self.file('nothing', ''), 0o755)
        result = self.take_all(
            'resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))\n'
            'reader, writer = os.pipe()\n'
            'os.dup2(writer, 63)\n'
            'os.close(writer)',
            'try: os.execv("./nothing", ["nothing"])\n'
            'except OSError as exc: print(exc.strerror)\n'
            'os.write(63, b"x")\n'
            'os.close(63)\n'
            'print(os.read(reader, 9), os.read(reader, 9), flush=True)\n'
            'os.dup2(1, 63)\n'
            'os.execv("/bin/sh", ["sh", "-c", "echo open >/proc/self/fd/63"])')
        self.assertEqual(len(result.said()), 2, result.err)
        self.assertEqual(
            result.out, b"full\nExec format error\nb'x' b''\nopen\n")

    def test_programs_that_close_all_descriptors(self):
        for code in ('os.closerange(3, 2000)',
                     # Then others have their numbers.
                     'os.closerange(3, 2000)\n'
                     'for number in range(1000, 1020):\n'
                     '    os.dup2(0, number)',
                     'os.closerange(3, 2000)\n'
                     'fd = os.open("other", os.O_RDONLY)\n'
                     'for number in range(1000, 1020):\n'
                     '    os.dup2(fd, number)'):
            with self.subTest(code=code):
                os.makedirs(os.path.join(self.directory, 'other'),
                            exist_ok=True)
                result = self.run_python(
                    '-Xsampleprof=out={pid}.pb.gz', '-c',
                    f'import os\n{code}\nprint(os.getpid())')
                self.assertIn('wrote ', result.err)
                self.load(f'{int(result.out)}.pb.gz')
        self.assertEqual(os.listdir(os.path.join(self.directory, 'other')),
                         [])

    @unittest.skipUnless(os.geteuid() == 0, 'only root may change the root')
    def test_another_root(self):
        os.mkdir(os.path.join(self.directory, 'root'))
        result = self.run_python(
            '-Xsampleprof=out=x.pb.gz', '-c',
            'import os; os.chroot("root"); os.chdir("/")')
        self.assertIn('wrote x.pb.gz', result.err)
        self.load('x.pb.gz')

    def test_a_directory_that_has_moved(self):
        os.mkdir(os.path.join(self.directory, 'one'))
        result = self.run_python(
            '-Xsampleprof=out=one/x.pb.gz', '-c',
            'import os; os.rename("one", "two")')
        self.assertEqual(result.status, 0)
        self.load('two/x.pb.gz')

    def test_a_directory_that_is_removed(self):
        for again in False, True:
            with self.subTest(again=again):
                os.mkdir(os.path.join(self.directory, 'one'))
                result = self.run_python(
                    '-Xsampleprof=out=one/x.pb.gz', '-c',
                    'import os; os.rmdir("one")'
                    + ('; os.mkdir("one")' if again else ''))
                if again:
                    self.load('one/x.pb.gz')
                else:
                    self.assertIn('Name a file in a directory that stays: ',
                                  result.err)
