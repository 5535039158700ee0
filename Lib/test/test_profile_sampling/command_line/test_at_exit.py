"""What a command-line session leaves, whatever the program has done."""

import errno
import os
import subprocess
import sys
import tempfile
import textwrap
import unittest

from profile_sampling import _formats
from profile_sampling._recording import at_exit as _at_exit

from ..support.builders import example
from ..support.imports import HEAVY, modules_loaded_by


class AtExitTest(unittest.TestCase):

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name

    def run_code(self, code, *, raw='example().raw()'):
        """Run code around write(); return (status, stdout, stderr)."""
        setup = (f'import os, sys\nsys.path[:0] = {sys.path!r}\n'
                 'from test.test_profile_sampling.support.builders import *\n'
                 f'raw = {raw}\n'
                 'from profile_sampling._recording.at_exit import write\n')
        result = subprocess.run(
            [sys.executable, '-c', setup + textwrap.dedent(code)],
            cwd=self.directory, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True)
        return result.returncode, result.stdout, result.stderr

    def files(self):
        return sorted(os.listdir(self.directory))

    def test_default(self):
        status, out, err = self.run_code(
            'print(os.getpid(), write(raw) > 0)')
        pid, result = out.split()
        name = f'sampleprof.{pid}.pb.gz'
        self.assertEqual((status, result), (0, 'True'))
        self.assertEqual(self.files(), [name])
        self.assertRegex(err, rf'^sampleprof: wrote {name} \(.*\)\. '
                              r'Look: .*report\n$')

    def test_what_is_said_of_the_profile(self):
        for raw, said in (
                ('example()', '2.0 s wall, 1,047 samples, 3 lost'),
                ("example(mode='cpu')", '0.9 s CPU, 1,047 samples, 3 lost'),
                ('Builder()', '2.0 s wall, 0 samples, 0 lost'),
                ("example(stats={'lost_a': 1, 'lost_threads': 2})",
                 '2.0 s wall, 1,047 samples, 1 lost, 2 threads not '
                 'profiled'),
                ("example(stats={'rate_lowered': 2, 'rate_raised': 1})",
                 '2.0 s wall, 1,047 samples at 500 to 1,000 Hz, 0 lost')):
            with self.subTest(raw=raw):
                _, _, err = self.run_code("write(raw, 'a.txt')",
                                          raw=f'{raw}.raw()')
                self.assertIn(f'({said}). Look', err)

    def test_formats(self):
        for out, format, name, look in (
                ("'a.txt'", 'None', 'a.txt', 'less a.txt'),
                ("'a.folded'", 'None', 'a.folded', 'flame graph'),
                ("'a.dat'", "'text'", 'a.dat', 'less a.dat'),
                ("b'b.txt'", 'None', 'b.txt', 'less b.txt'),
                ("'x{pid}.txt'", 'None', None, 'less x'),
                ('None', "'text'", None, 'less sampleprof.'),
                ('None', "'collapsed'", None, 'flame graph')):
            with self.subTest(out=out, format=format):
                _, _, err = self.run_code(f'write(raw, {out}, {format})')
                self.assertIn(look, err)
                self.assertEqual(err.count('\n'), 1)
                if name:
                    self.assertIn(name, self.files())

    def test_a_thread_changes_the_directory(self):
        elsewhere = os.path.join(self.directory, 'elsewhere')
        os.mkdir(elsewhere)
        self.run_code('''
            import threading
            start = os.getcwd()
            def wander():
                while True:
                    os.chdir('elsewhere')
                    os.chdir(start)
            threading.Thread(target=wander, daemon=True).start()
            for i in range(30):
                assert write(raw, f'{i:02}.txt', cwd=start, quiet=True)
            os._exit(0)
        ''')
        self.assertEqual(self.files(),
                         [*[f'{i:02}.txt' for i in range(30)], 'elsewhere'])
        self.assertEqual(os.listdir(elsewhere), [])

    def test_failures_are_one_line(self):
        os.mkdir(os.path.join(self.directory, 'dir.txt'))
        os.symlink('link.txt', os.path.join(self.directory, 'link.txt'))
        for out, format, reason in (
                ("'dir.txt'", 'None', 'is a directory'),
                ("'link.txt'", 'None', 'symbolic links'),
                ("'/dev/null'", "'text'", 'not a regular file'),
                ("'a.doc'", 'None', 'known extensions'),
                ("'a.txt'", "'doc'", 'known formats'),
                ('None', "'doc'", 'known formats'),
                ("'a\\0b.txt'", 'None', 'null')):
            with self.subTest(out=out):
                status, text, err = self.run_code(
                    f'print(write(raw, {out}, {format}) > 0)')
                self.assertEqual((status, text), (0, 'False\n'))
                self.assertRegex(
                    err, rf'^sampleprof: cannot write .*{reason}.*'
                    r'\. Name another file: record -o PATH, or '
                    r'-X sampleprof=out=PATH\n$')
        self.assertEqual(self.files(), ['dir.txt', 'link.txt'])

    def test_advice(self):
        for number, advice in (
                (errno.ENOSPC, 'Free some space, or name a file on'),
                (errno.EDQUOT, 'Free some space, or name a file on'),
                (errno.EROFS, 'Name a file on a disk that can be written'),
                (errno.EACCES, 'Name a file in a directory that the program'),
                (errno.ENOENT, 'Name a file in a directory that stays'),
                (errno.EMFILE, 'Raise the limit on open files: ulimit -n'),
                (errno.EIO, 'Name another file: record -o PATH')):
            with self.subTest(number=number):
                _, _, err = self.run_code(f'''
                    def fail(*args, **options):
                        raise OSError({number}, os.strerror({number}))
                    os.open = fail
                    write(raw, 'a.txt')
                    ''')
                self.assertIn(f'{os.strerror(number)}. {advice}', err)
                self.assertEqual(err.count('\n'), 1)

    def test_a_full_disk_is_tried_once(self):
        _, out, _ = self.run_code('''
            def full(*args, **options):
                print('write')
                raise OSError(28, 'full')
            os.replace = full
            write(raw, 'a.txt')
            ''')
        self.assertEqual(out, 'write\n')
        self.assertEqual(self.files(), [])

    def test_nothing_is_raised(self):
        for code in ("write({}, 'a.txt')",
                     "write(None, 'a.txt')",
                     'write(raw, 5)',
                     "write(raw | {'nodes': b''}, 'a.txt')",
                     "write(raw, 'a.txt') if os.__dict__.pop('replace') "
                     'else 0',
                     "write(raw, 'a.txt') if interrupt_at_rename() else 0"):
            with self.subTest(code=code):
                status, out, err = self.run_code(f'''
                    def interrupt_at_rename():
                        import signal
                        # Whoever runs the tests may ignore it.
                        signal.signal(2, signal.default_int_handler)
                        os.replace = lambda *args, **options: (
                            signal.raise_signal(2))
                        return True
                    print(bool({code}))
                ''')
                self.assertEqual((status, out), (0, 'False\n'))
                self.assertTrue(err.startswith('sampleprof: cannot write '))
                self.assertEqual(err.count('\n'), 1)
        self.assertEqual(self.files(), [])

    def test_imports_little(self):
        raw = repr(example().raw())
        for format in _formats.AT_EXIT:
            path = os.path.join(self.directory,
                                f'a{_formats.extension(format)}')
            loaded = modules_loaded_by(
                'from profile_sampling._recording import at_exit; '
                f'at_exit.write({raw}, {path!r})')
            self.assertEqual(loaded & HEAVY, set(), format)
            self.assertTrue(os.path.exists(path))


class QuotedTest(unittest.TestCase):

    NAMES = ['a', 'a b', "it's", '$HOME', '`x`', 'a;b', '*', '', '~', '\\',
             'a\nb', "'\n'", '\\\n', '\x1b[31m', 'naïve', '\udcff\n',
             '字\t', '#']

    def test_the_shell_reads_the_name_back(self):
        shell = '/bin/bash'
        if not os.path.exists(shell):
            self.skipTest('needs bash')
        for name in self.NAMES:
            quoted = _at_exit._quoted(name)
            self.assertTrue(quoted.isprintable(), quoted)
            result = subprocess.run(
                [shell, '-c', f'printf %s {quoted}'],
                stdout=subprocess.PIPE, check=True)
            self.assertEqual(result.stdout, os.fsencode(name), quoted)
