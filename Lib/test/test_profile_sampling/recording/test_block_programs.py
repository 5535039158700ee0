"""Programs with blocks of profile(): sampled as a whole, forking, exiting."""

import os
import unittest

from ..processes.children import NO_THREADS
from ..support.sessions import ProgramTest

PROGRAM = '''\
import time
from profile_sampling import profile
def spin():
    end = time.monotonic() + 0.05
    while time.monotonic() < end: pass
'''


class CommandLineTest(ProgramTest):

    def test_the_file_of_a_block(self):
        result = self.run_python(
            '-X', 'sampleprof=out=x.pb.gz', '-c', PROGRAM
            + 'spin()\nwith profile(out="{pid}.block.pb"): spin()')
        self.assertEqual(result.status, 0, result.err)
        [name] = [name for name in self.files() if 'block' in name]
        self.assertLess(result.load(name).duration_ns,
                        result.load('x.pb.gz').duration_ns - 50_000_000)

    def test_a_block_that_changes_the_directory(self):
        for begin, end in (('with profile(out="x.pb.gz"):\n'
                            '    spin()', ''),
                           ('@profile(out="x.pb.gz")\n'
                            'def work():\n'
                            '    spin()', 'work()')):
            for change in ('os.chdir("other")',
                           'os.chdir("other"); os.rmdir("../other")'):
                with self.subTest(begin=begin, change=change):
                    os.makedirs(os.path.join(self.directory, 'other'),
                                exist_ok=True)
                    result = self.run_python(
                        '-c', f'{PROGRAM}\nimport os\n{begin}\n'
                        f'    {change}\n{end}')
                    self.assertEqual(result.status, 0, result.err)
                    self.load('x.pb.gz')
                    os.unlink(os.path.join(self.directory, 'x.pb.gz'))

    def test_a_directory_that_looks_like_a_number(self):
        os.mkdir(os.path.join(self.directory, '{pid}'))
        result = self.run_python(
            '-c', f'{PROGRAM}\nimport os\nos.chdir("{{pid}}")\n'
            'with profile(out="x.pb.gz"): spin()')
        self.assertEqual(result.status, 0, result.err)
        self.load('{pid}/x.pb.gz')

    def test_blocks_that_do_not_end(self):
        for end in '', 'import os; os._exit(0)', 'import sys; sys.exit(0)':
            with self.subTest(end=end):
                result = self.run_python(
                    '-X', 'sampleprof=out=x.pb.gz', '-c', PROGRAM
                    + 'block = profile(); block.__enter__(); spin()\n' + end)
                self.assertEqual(result.status, 0, result.err)
                self.assertIn('wrote', result.err)
                result.load('x.pb.gz')

    def test_a_daemon_thread_in_a_block(self):
        result = self.run_python(
            '-X', 'sampleprof=out=x.pb.gz', '-c', PROGRAM + '''
import threading
def work():
    while True:
        with profile():
            spin()
threading.Thread(target=work, daemon=True).start()
spin()
''')
        self.assertEqual(result.status, 0, result.err)
        result.load('x.pb.gz')


@unittest.skipUnless(hasattr(os, 'fork'), 'needs os.fork()')
@NO_THREADS
class ForkTest(ProgramTest):

    CODE = PROGRAM + '''
import os, warnings, profile_sampling
warnings.simplefilter("ignore")
block = profile(out="block.{pid}.pb")
was_running = profile_sampling.running()
with block:
    spin()
    pid = os.fork()
    if not pid:
        assert profile_sampling.running() == was_running
        with profile() as own:
            spin()
        assert own.profile.total_wall_ns > 40_000_000
    spin()
if pid:
    assert block.profile.duration_ns > 90_000_000
    status = os.waitpid(pid, 0)[1]
    assert os.waitstatus_to_exitcode(status) == 0, status
else:
    # It began in the parent, which has its profile.
    assert block.profile is None
    assert profile_sampling.running() == was_running
'''

    def test_fork(self):
        for options, count in ((), 1), (('-Xsampleprof=out={pid}.x.pb',), 3):
            with self.subTest(options=options):
                result = self.run_python(*options, '-c', self.CODE)
                self.assertEqual(result.status, 0, result.err)
                self.assertEqual(len(self.files()), count)
                for name in self.files():
                    self.load(name)
                    os.unlink(os.path.join(self.directory, name))


# Its finalizer runs when the interpreter ends, and no import works.
LATE = '''\
import profile_sampling
from profile_sampling import profile, start
class Late:
    def __del__(self):
        %s
late = Late()
'''


class FinalizerTest(ProgramTest):

    def run_late(self, *lines):
        result = self.run_python(
            '-c', LATE % '\n        '.join(lines))
        self.assertEqual(result.err, '')
        return result.out.decode()

    def test_blocks(self):
        # There may be a module to be imported here for the first time.
        for block in ('label(phase="end")', 'region()', 'label(), '
                      'profile_sampling.region()'):
            with self.subTest(block):
                self.assertEqual(self.run_late(
                    f'with profile_sampling.{block}:',
                    '    print(profile_sampling.labels())'),
                    "{'phase': 'end'}\n" if 'phase' in block else '{}\n')

    def test_what_nobody_listens_to(self):
        self.assertEqual(self.run_late(
            'print(profile_sampling.sample(3, kind="late"),',
            '      profile_sampling.running(),',
            '      profile_sampling.stats()["samples"])'), 'False False 0\n')

    def test_what_is_refused(self):
        for call in ('start()', 'start(timeline=True)',
                     'profile().__enter__()',
                     'profile(timeline=True).__enter__()'):
            with self.subTest(call):
                out = self.run_late('try:', f'    {call}',
                                    'except RuntimeError as exc:',
                                    '    print(exc)')
                self.assertIn('the interpreter is shutting down', out)
