"""Files: whole or not at all, and nobody else's.  PITFALLS F6 and F8."""

import errno
import io
import os
import pathlib
import random
import re
import signal
import stat
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest
from unittest import mock

from profile_sampling import Profile, _files, _formats

from ..support.builders import example, facts_of


class DirectoryTest(unittest.TestCase):

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name
        self.path = os.path.join(self.directory, 'p.txt')

    def content(self):
        with open(self.path, 'rb') as file:
            return file.read()

    def assertOnly(self, *names):
        self.assertEqual(sorted(os.listdir(self.directory)), sorted(names))


class FileObjectTest(DirectoryTest):

    def setUp(self):
        super().setUp()
        self.profile = example().profile()

    def test_saved_and_loaded(self):
        file = io.BytesIO()
        self.profile.save(file)
        self.assertEqual(file.getvalue(), _formats.encode(
            self.profile._tables, 'pprof'))
        file.seek(0)
        self.assertEqual(facts_of(Profile.load(file)),
                         facts_of(self.profile))
        self.assertFalse(file.closed)

    def test_formats(self):
        file = io.BytesIO()
        self.profile.save(file, 'collapsed')
        self.assertTrue(file.getvalue().startswith(b'[lost] 1000\n'))
        with self.assertRaisesRegex(ValueError, "unknown format 'doc'"):
            self.profile.save(file, 'doc')

    def test_text_is_refused(self):
        for use in self.profile.save, Profile.load:
            with self.assertRaisesRegex(TypeError, 'binary mode'):
                use(io.StringIO())

    def test_errors_name_the_file(self):
        with open(self.path, 'w+b') as file:
            for name, file in (self.path, file), ('the file', io.BytesIO()):
                with self.assertRaisesRegex(
                        ValueError, f'^{re.escape(name)}: is empty'):
                    Profile.load(file)

    def test_short_writes(self):
        class Short(io.RawIOBase):
            def writable(self):
                return True

            def write(self, data):
                parts.append(bytes(data[:1000]))
                return len(parts[-1])

        parts = []
        self.profile.save(Short())
        self.assertGreater(len(parts), 1)
        Profile.load(io.BytesIO(b''.join(parts)))

    def test_a_file_that_is_not_ready(self):
        read, write = os.pipe()
        self.addCleanup(os.close, read)
        os.set_blocking(write, False)
        with (open(write, 'wb', buffering=0) as file,
              self.assertRaises(BlockingIOError)):
            _files.write_to(file, bytes(10_000_000))


class OpenFilesTest(DirectoryTest):

    def save(self, name, format='collapsed', **options):
        path = os.path.join(self.directory, 'p.pb.gz')
        example().profile().save(path)
        code = (f'import sys; sys.path[:0] = {sys.path!r}\n'
                'from profile_sampling import Profile\n'
                f'Profile.load({path!r}).save({name!r}, {format!r})')
        return subprocess.run([sys.executable, '-c', code], check=True,
                              **options)

    def test_pipes(self):
        for name, stream in (('/dev/stdout', 'stdout'),
                             ('/dev/stderr', 'stderr'),
                             ('/dev/fd/1', 'stdout'),
                             ('/proc/self/fd/2', 'stderr')):
            result = self.save(name, **{stream: subprocess.PIPE})
            self.assertTrue(getattr(result, stream).startswith(
                b'[lost] 1000\n'), name)

    def test_pprof_if_nothing_else_is_said(self):
        result = self.save('/dev/stdout', None, stdout=subprocess.PIPE)
        self.assertEqual(facts_of(Profile.load(io.BytesIO(result.stdout))),
                         facts_of(example().profile()))

    def test_what_is_in_a_file_stays(self):
        with open(self.path, 'wb') as file:
            file.write(b'before\n')
            file.flush()
            self.save('/dev/stdout', stdout=file)
        self.assertTrue(self.content().startswith(b'before\n[lost] 1000\n'))

    def test_one_that_is_not_open(self):
        fd = os.open(os.devnull, os.O_RDONLY)
        os.close(fd)
        with self.assertRaises(OSError) as caught:
            _files.replace(f'/dev/fd/{fd}', b'data')
        self.assertEqual(caught.exception.errno, errno.EBADF)

    def test_names_that_only_look_like_it(self):
        for name in ('/dev/fd/x', '/dev/fd/1/a', '/dev/fd/-1',
                     self.directory + '/dev/stdout'):
            with self.assertRaises(OSError):
                _files.replace(name, b'data')


class ReplaceTest(DirectoryTest):

    def test_new_and_replaced(self):
        for data in (b'old', b'new', b'', b'x' * (1 << 20)):
            _files.replace(self.path, data)
            self.assertEqual(self.content(), data)
            self.assertOnly('p.txt')

    def test_modes(self):
        self.addCleanup(os.umask, os.umask(0o027))
        _files.replace(self.path, b'')
        self.assertEqual(stat.S_IMODE(os.stat(self.path).st_mode), 0o640)
        os.chmod(self.path, 0o604)
        _files.replace(self.path, b'again')
        self.assertEqual(stat.S_IMODE(os.stat(self.path).st_mode), 0o604)

    def test_kinds_of_names(self):
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.directory)
        for name in ('a.txt', b'b.txt', pathlib.Path('c.txt'),
                     'n' * 255, os.fsdecode(b'\xff.txt')):
            _files.replace(name, b'data')
            self.assertTrue(os.path.exists(name))

    def test_links_are_followed(self):
        there = os.path.join(self.directory, 'there')
        os.mkdir(there)
        os.symlink('there/next', self.path)
        os.symlink('file', os.path.join(there, 'next'))
        for data in b'new', b'replaced':
            _files.check(self.path)
            _files.replace(self.path, data)
            self.assertEqual(self.content(), data)
            self.assertEqual(sorted(os.listdir(there)), ['file', 'next'])
            self.assertOnly('p.txt', 'there')
        fd = os.open(self.directory, os.O_RDONLY)
        self.addCleanup(os.close, fd)
        _files.replace('p.txt', b'from there', dir_fd=fd)
        self.assertEqual(self.content(), b'from there')

    def test_a_loop_of_links(self):
        os.symlink('p.txt', self.path)
        for function in _files.check, lambda path: _files.replace(path, b''):
            with self.assertRaises(OSError) as caught:
                function(self.path)
            self.assertEqual(caught.exception.errno, errno.ELOOP)
        self.assertOnly('p.txt')

    @unittest.skipUnless(os.geteuid() == 0, 'needs to be root')
    def test_another_users_link_is_refused(self):
        target = os.path.join(self.directory, 'target')
        with open(target, 'wb') as file:
            file.write(b'precious')
        os.symlink(target, self.path)
        os.lchown(self.path, 65534, -1)
        for function in _files.check, lambda path: _files.replace(path, b''):
            with self.assertRaisesRegex(PermissionError, 'link of another'):
                function(self.path)
        self.assertEqual(self.content(), b'precious')
        self.assertOnly('p.txt', 'target')

    def test_a_link_made_meanwhile_is_replaced(self):
        target = os.path.join(self.directory, 'target')
        with open(target, 'wb') as file:
            file.write(b'precious')
        write = os.write

        def plant(fd, data):
            os.symlink(target, self.path)
            return write(fd, data)
        with mock.patch('os.write', plant):
            _files.replace(self.path, b'data')
        self.assertEqual(self.content(), b'data')
        with open(target, 'rb') as file:
            self.assertEqual(file.read(), b'precious')
        self.assertOnly('p.txt', 'target')

    def test_another_users_file_is_refused(self):
        _files.replace(self.path, b'precious')
        if os.geteuid() == 0:
            os.chown(self.path, 65534, -1)
        else:
            patch = mock.patch('os.geteuid', return_value=os.geteuid() + 1)
            patch.start()
            self.addCleanup(patch.stop)
        with self.assertRaisesRegex(PermissionError, 'another user'):
            _files.replace(self.path, b'data')
        self.assertEqual(self.content(), b'precious')
        self.assertOnly('p.txt')

    def test_what_is_no_file_is_refused(self):
        os.mkdir(self.path)
        with self.assertRaises(IsADirectoryError):
            _files.replace(self.path, b'data')
        os.rmdir(self.path)
        os.mkfifo(self.path)
        with self.assertRaisesRegex(OSError, 'not a regular file'):
            _files.replace(self.path, b'data')
        with self.assertRaisesRegex(OSError, 'not a regular file'):
            _files.replace(os.devnull, b'data')
        self.assertTrue(stat.S_ISCHR(os.stat(os.devnull).st_mode))

    def test_no_directory(self):
        path = os.path.join(self.directory, 'no', 'p.txt')
        with self.assertRaises(FileNotFoundError) as caught:
            _files.replace(path, b'data')
        # The name the caller gave, not ours.
        self.assertEqual(caught.exception.filename, path)
        _files.replace(self.path, b'')
        with self.assertRaises(NotADirectoryError):
            _files.replace(os.path.join(self.path, 'p.txt'), b'data')

    def test_unwritable_directory(self):
        if os.geteuid() == 0:
            self.skipTest('everything is writable for root')
        os.chmod(self.directory, 0o500)
        self.addCleanup(os.chmod, self.directory, 0o700)
        with self.assertRaises(PermissionError) as caught:
            _files.replace(self.path, b'data')
        self.assertEqual(caught.exception.filename, self.path)

    def test_failures_leave_nothing(self):
        _files.replace(self.path, b'old')
        for function in 'os.write', 'os.replace':
            for error in (OSError(errno.ENOSPC, 'No space left'),
                          KeyboardInterrupt()):
                with mock.patch(function, side_effect=error):
                    with self.assertRaises(type(error)):
                        _files.replace(self.path, b'new')
                self.assertEqual(self.content(), b'old')
                self.assertOnly('p.txt')

    def test_a_planted_temporary_file_is_not_used(self):
        target = os.path.join(self.directory, 'target')
        with open(target, 'wb') as file:
            file.write(b'precious')
        with mock.patch('os.urandom', return_value=b'known'):
            planted = os.path.join(
                self.directory, f'.sampleprof-{b"known".hex()}.tmp')
            os.symlink(target, planted)
            with self.assertRaises(FileExistsError):
                _files.replace(self.path, b'data')
        with open(target, 'rb') as file:
            self.assertEqual(file.read(), b'precious')

    def test_descriptors_are_closed(self):
        fd = os.open(os.devnull, os.O_RDONLY)
        os.close(fd)
        for function in None, 'os.write', 'os.replace':
            if function is None:
                _files.replace(self.path, b'data')
            else:
                with (mock.patch(function, side_effect=OSError),
                      self.assertRaises(OSError)):
                    _files.replace(self.path, b'data')
            again = os.open(os.devnull, os.O_RDONLY)
            os.close(again)
            self.assertEqual(again, fd, function)


class KillTest(DirectoryTest):
    # PITFALLS F6.

    def test_sigkill_leaves_a_whole_file(self):
        size = 1 << 18
        code = textwrap.dedent(f'''
            import sys
            sys.path[:0] = {sys.path!r}
            from profile_sampling import _files
            path = sys.argv[1]
            _files.replace(path, b'a' * {size})
            print('ready', flush=True)
            while True:
                for letter in b'bcdefgh':
                    _files.replace(path, bytes([letter]) * {size})
        ''')
        rng = random.Random(6)
        seen = set()
        for _ in range(25):
            child = subprocess.Popen([sys.executable, '-c', code, self.path],
                                     stdout=subprocess.PIPE)
            child.stdout.readline()
            time.sleep(rng.uniform(0, 0.03))
            child.send_signal(signal.SIGKILL)
            child.wait()
            child.stdout.close()
            data = self.content()
            self.assertEqual(len(data), size)
            self.assertEqual(data, data[:1] * size)
            seen.add(data[:1])
        self.assertGreater(len(seen), 1, 'never killed at work')


class FormatsTest(DirectoryTest):

    BEGINS = {
        b'\x1f\x8b': 'p.pb.gz P.PB.GZ', b'Wall profile': 'p.txt',
        b'[lost] 1000\n': 'p.collapsed p.folded a.txt.folded',
        b'{"$schema":': 'p.speedscope.json', b'{"meta":': 'p.gecko.json',
        b'{"format":"profile_sampling",': 'p.json', b'<?xml ': 'p.svg',
        b'<!DOCTYPE html>\n': 'p.HTML p.htm', b'digraph ': 'p.dot p.gv',
        b'# callgrind format\n': 'p.callgrind callgrind.out.77',
        b'{': 'p.pstats p.prof'}

    def save(self, name, *format, **options):
        path = os.path.join(self.directory, name)
        example().profile().save(path, *format, **options)
        with open(path, 'rb') as file:
            return file.read()

    def test_names(self):
        for begin, names in self.BEGINS.items():
            for name in names.split():
                with self.subTest(name):
                    self.assertTrue(self.save(name).startswith(begin))
        self.assertEqual(self.save('p.pb'), self.save('p.pprof'))

    def test_a_format_beats_the_name(self):
        for name, format, begin in (('q.txt', 'collapsed', b'[lost] 1000'),
                                    ('p', 'text', b'Wall profile'),
                                    ('p.txt', 'pprof', b'\x1f\x8b')):
            self.assertTrue(self.save(name, format).startswith(begin))

    def test_unknown(self):
        for name in 'p', 'p.gz', 'p.doc', 'pprof', 'a.txt/p':
            with self.assertRaisesRegex(ValueError, r'\.pb\.gz.*\.txt.*'
                                        'pprof, collapsed, text'):
                self.save(name)
        with self.assertRaisesRegex(ValueError, "'doc'; known formats: "
                                    'pprof, collapsed, text'):
            self.save('p.txt', 'doc')
        self.assertOnly()
