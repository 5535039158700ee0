"""How Tools/dist makes, packs and judges a tree.

The trees here are small and made by hand: what a real one does is tried by
`make dist-test`, on a build that takes too long for this.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

TOOLS = pathlib.Path(os.path.realpath(__file__)).parents[4] / 'Tools' / 'dist'
if not TOOLS.is_dir():
    raise unittest.SkipTest('Tools/dist is not here')

DATE = 1_700_000_000
BUILD = '/home/someone/build'


class WheelTest(unittest.TestCase):

    def wheel(self, top):
        made = subprocess.run(
            [sys.executable, TOOLS / 'wheel.py', top], check=True, text=True,
            stdout=subprocess.PIPE,
            env=os.environ | {'SOURCE_DATE_EPOCH': str(DATE)}).stdout
        return pathlib.Path(made.strip())

    def test_wheel(self):
        with tempfile.TemporaryDirectory() as one, \
                tempfile.TemporaryDirectory() as other:
            wheel = self.wheel(one)
            self.assertRegex(
                wheel.name, r'^profile_sampling-3[\d.]+\.post20231114-'
                            r'py3-none-any\.whl$')
            self.assertEqual(wheel.read_bytes(),
                             self.wheel(other).read_bytes())
            subprocess.run([sys.executable, '-m', 'venv', f'{other}/venv'],
                           check=True)
            subprocess.run([f'{other}/venv/bin/pip', 'install', '--quiet',
                            '--no-index', '--no-deps', wheel], check=True)
            said = subprocess.run(
                [f'{other}/venv/bin/profile-sampling', '--version'],
                check=True, text=True, stdout=subprocess.PIPE).stdout
            self.assertIn('CPython 3', said)


class TreeTest(unittest.TestCase):

    def setUp(self):
        self.top = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.top)
        self.tree = self.top / 'python'
        self.tree.mkdir()

    def write(self, name, text, mode=0o644):
        path = self.tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)
        return path

    def tool(self, name, *arguments):
        return subprocess.run(
            [sys.executable, '-s', '-E', TOOLS / name, *arguments],
            text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env=os.environ | {'SOURCE_DATE_EPOCH': str(DATE)})


class PackTest(TreeTest):

    def pack(self, name):
        done = self.tool('pack.py', self.tree, self.top / name)
        self.assertEqual(done.returncode, 0, done.stdout)
        return (self.top / name).read_bytes()

    def test_same_files_same_bytes(self):
        first = self.write('b/x', 'x', 0o755)
        self.write('a', 'a')
        (self.tree / 'link').symlink_to('a')
        packed = self.pack('one.tar.gz')
        first.touch()
        os.utime(self.tree, (1, 1))
        first.chmod(0o700)
        self.assertEqual(packed, self.pack('two.tar.gz'))

    def test_owner_mode_and_date(self):
        self.write('a', 'a', 0o600)
        self.pack('one.tar.gz')
        with tarfile.open(self.top / 'one.tar.gz') as tar:
            info = tar.getmember('python/a')
        self.assertEqual((info.uid, info.gid, info.mode, info.mtime),
                         (0, 0, 0o644, DATE))

    def test_digest_is_what_sha256sum_reads(self):
        self.write('a', 'a')
        self.pack('one.tar.gz')
        subprocess.run(['sha256sum', '--quiet', '-c', 'one.tar.gz.sha256'],
                       check=True, cwd=self.top)


class RelocateTest(TreeTest):

    VARIABLES = {
        'prefix': '/opt/built',
        'INCLUDEPY': '/opt/built/include/python3.13',
        'CC': f'gcc --sysroot={BUILD}/dist/sysroot '
              f'-B{BUILD}/dist/sysroot/usr/lib/ -pthread',
        'srcdir': f'{BUILD}/src',
        'INSTALL': '/usr/bin/install -c',
        'HAVE_FORK': 1,
    }

    def relocate(self):
        self.write('bin/python3.13', '', 0o755)
        self.sysconfig = self.write(
            'lib/python3.13/_sysconfigdata__linux_.py',
            f'# header\nbuild_time_vars = {self.VARIABLES!r}')
        done = self.tool('relocate.py', self.tree, '/opt/built', BUILD)
        self.assertEqual(done.returncode, 0, done.stdout)

    def variables(self, path):
        found = {'__file__': str(path)}
        exec(path.read_text(), found)
        return found['build_time_vars']

    def test_sysconfig_follows_the_tree(self):
        self.relocate()
        for place in ('moved', 'with a space'):
            path = self.top / place
            self.tree = self.tree.rename(path)
            variables = self.variables(
                path / 'lib/python3.13/_sysconfigdata__linux_.py')
            self.assertEqual(variables['prefix'], str(path))
            self.assertEqual(variables['INCLUDEPY'],
                             f'{path}/include/python3.13')
            self.assertEqual(variables['INSTALL'], '/usr/bin/install -c')
            self.assertEqual(variables['HAVE_FORK'], 1)

    def test_nothing_of_the_build_is_left(self):
        self.relocate()
        variables = self.variables(self.sysconfig)
        self.assertEqual(variables['CC'], 'gcc -pthread')
        self.assertNotIn(BUILD, self.sysconfig.read_text())

    def test_script_of_a_build_for_debugging_starts_its_short_name(self):
        # Whichever of the two a directory names first.
        for name in 'python3.13d', 'python3.13':
            self.write(f'bin/{name}', '', 0o755)
        script = self.write('bin/tool', '#!/opt/built/bin/python3.13d\n',
                            0o755)
        self.relocate()
        self.assertIn('/python3.13"', script.read_text())

    def test_script_starts_what_is_beside_it(self):
        script = self.write('bin/tool', '#!/opt/built/bin/python3.13\n'
                            'import sys; print(sys.argv[1:])\n', 0o755)
        self.relocate()
        (self.tree / 'bin/python3.13').unlink()
        # Whatever it is started with, Python has to read it as its own.
        self.write('bin/python3.13',
                   f'#!/bin/sh\nexec {sys.executable} "$@"\n', 0o755)
        link = self.top / 'a link'
        link.symlink_to(script)
        for path in (script, link):
            output = subprocess.run([path, 'a b', 'c'], check=True, text=True,
                                    stdout=subprocess.PIPE).stdout
            self.assertEqual(output, "['a b', 'c']\n")


class AliasTest(TreeTest):

    def test_no_file_is_there_under_two_names(self):
        self.write('bin/python3.13', 'the interpreter', 0o755)
        os.link(self.tree / 'bin/python3.13', self.tree / 'bin/python3.13d')
        done = subprocess.run(
            [sys.executable, '-c', 'import pathlib, stage, sys;'
             'stage.add_aliases(pathlib.Path(sys.argv[1]))', self.tree],
            cwd=TOOLS, text=True, capture_output=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(os.readlink(self.tree / 'bin/python3.13d'),
                         'python3.13')
        self.assertTrue(os.path.isfile(self.tree / 'bin/python3.13d'))


class CheckTest(TreeTest):

    def setUp(self):
        super().setUp()
        if shutil.which('readelf') is None or shutil.which('cc') is None:
            self.skipTest('needs a compiler and readelf')
        # The interpreter that is asked for its modules.
        self.write('bin/python3', f'#!/bin/sh\nexec {sys.executable} "$@"\n',
                   0o755)

    def compile(self, text, *options):
        path = self.tree / 'bin' / 'program'
        subprocess.run(['cc', '-x', 'c', '-', '-o', path, *options],
                       input=text, text=True, check=True)

    def faults(self, floor='9.9'):
        done = self.tool('check.py', self.tree, BUILD, floor)
        self.assertNotEqual(done.returncode, 0)
        return done.stdout

    def test_symbol_of_a_later_glibc(self):
        self.compile('#include <stdio.h>\nint main(void)'
                     '{ return puts("x"); }')
        self.assertIn('bin/program asks for puts of glibc 2.2.5',
                      self.faults('2.1'))
        self.assertNotIn('puts', self.faults('2.2.5'))

    def test_library_that_is_not_glibcs(self):
        library = self.tree / 'bin' / 'libother.so'
        subprocess.run(['cc', '-shared', '-x', 'c', '-', '-o', library],
                       input='int f(void) { return 1; }', text=True,
                       check=True)
        self.compile('int f(void); int main(void) { return f(); }',
                     f'-L{library.parent}', '-lother')
        self.assertIn('bin/program needs libother.so', self.faults())

    def test_what_was_linked_in_is_seen(self):
        self.compile('int deflate(void) { return 1; } '
                     'int main(void) { return deflate(); }', '-rdynamic')
        self.assertIn('bin/program shows deflate', self.faults())

    def test_place_of_the_build(self):
        self.write('lib/x.py', f'where = "{BUILD}/src"')
        self.assertIn(f'lib/x.py names {BUILD}', self.faults())

    def test_link_that_leads_out(self):
        (self.tree / 'out').symlink_to('/etc/passwd')
        (self.tree / 'nowhere').symlink_to('not/there')
        faults = self.faults()
        self.assertIn('out leads out of the tree', faults)
        self.assertIn('nowhere leads nowhere', faults)

    def test_empty_tree_is_no_distribution(self):
        self.assertIn('has 0 binaries', self.faults())


class RebaseTest(unittest.TestCase):

    def test_bad_versions_are_refused(self):
        root = TOOLS.parents[1]
        for version in ('', '3.14.1', '3.13.', '3.13.x', '3..13', 'main'):
            done = subprocess.run(
                ['sh', 'Tools/patches/rebase.sh', version], cwd=root,
                text=True, stderr=subprocess.PIPE)
            self.assertNotEqual(done.returncode, 0, version)
            self.assertIn('make rebase UPSTREAM=3.13.x',
                          ' '.join(done.stderr.split()))
