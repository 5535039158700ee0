"""duration_s: the profile is written while the program goes on."""

import os
import signal
import subprocess
import sys

from ..support.sessions import (
    OPTION, ProgramTest, environment, on_stack, weight)

FIRST = f'{OPTION},duration_s=1'
LATER = f'{OPTION},duration_s=1000'
PREAMBLE = '''
import os, sys, time

def nap():
    time.sleep(0.01)

def wait_for(name, wait=nap):
    while not any([file.endswith(name) for file in os.listdir('.')]):
        wait()

def spin(seconds=0.01):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass

'''


class DurationTest(ProgramTest):

    def run_program(self, *options, code, **kwargs):
        return self.run_python('-W', 'error', *options, '-c', PREAMBLE + code,
                               **kwargs)

    def test_the_program_goes_on(self):
        result = self.run_program(FIRST, code='''
wait_for('profile.pb.gz', spin)
def afterwards():
    spin(0.2)
afterwards()
sys.exit(5)
''')
        self.assertEqual(result.status, 5, result.err)
        self.assertEqual(len(result.said()), 1, result.err)
        self.assertIn('wrote profile.pb.gz (1.', result.err)
        profile = self.load_checked()
        self.assertFalse([s for s in profile.samples
                          if on_stack(s, 'afterwards')])

    def load_checked(self, name='profile.pb.gz'):
        """A profile of one second of one thread."""
        profile = self.load(name)
        # The second begins before the session, and that of a child before it
        # runs.
        self.assertGreaterEqual(profile.duration_ns, 950_000_000)
        self.assertLess(profile.duration_ns, 5_000_000_000)
        # The session begins in the midst of the interpreter's own start.
        self.assertAlmostEqual(weight(profile.samples) / profile.duration_ns,
                               1, delta=0.02)
        self.assertEqual(len({s.thread for s in profile.samples}), 1)
        return profile

    def test_another_session_afterwards(self):
        result = self.run_program(FIRST, code='''
import profile_sampling
assert profile_sampling.running()
wait_for('profile.pb.gz')
while profile_sampling.running():
    nap()
profile_sampling.start()
spin(0.1)
profile = profile_sampling.stop()
assert profile.duration_ns >= 100_000_000
''')
        self.assertEqual((result.status, len(result.said())), (0, 1),
                         result.err)

    def test_blocks_go_on(self):
        result = self.run_program(FIRST, code='''
import profile_sampling
with profile_sampling.profile() as block:
    wait_for('profile.pb.gz')
    spin(0.3)
profile = block.profile
assert sum([s.wall_ns for s in profile.samples]) == profile.duration_ns
assert profile.duration_ns > 1_100_000_000
''')
        self.assertEqual((result.status, len(result.said())), (0, 1),
                         result.err)

    def test_a_program_that_ends_before(self):
        for end, status in (('', 0), ('sys.exit(3)', 3), ('os._exit(4)', 4),
                            ('raise KeyboardInterrupt', -signal.SIGINT)):
            with self.subTest(end=end):
                result = self.run_program(LATER, code=f'spin(0.1)\n{end}')
                self.assertEqual(result.status, status, result.err)
                self.assertEqual(len(result.said()), 1)
                self.assertLess(self.load('profile.pb.gz').duration_ns,
                                20_000_000_000)

    def test_the_program_sees_nothing_of_it(self):
        code = '''
import gc, threading
print([thread.name for thread in threading.enumerate()])
print(threading.active_count(), sorted(sys.modules))
print(gc.isenabled(), gc.callbacks)
if os.fork():
    os.wait()
'''
        plain = self.run_program(code=code)
        self.assertEqual(plain.status, 0, plain.err)
        result = self.run_program(LATER, code=code)
        self.assertEqual((result.status, result.out), (0, plain.out),
                         result.err)

    def test_children(self):
        """Of a fork: the same moment; those that come later, not at all."""
        result = self.run_program(
            '-Xsampleprof=out={pid}.pb.gz,duration_s=1', code='''
def child(begin):
    pid = os.fork()
    if pid:
        return pid
    begin()
    os._exit(0)

early = child(lambda: wait_for(f'{os.getpid()}.pb.gz'))
wait_for(f'{os.getpid()}.pb.gz')
late = child(spin)
print(os.getpid(), early, late)
for pid in early, late:
    assert os.waitpid(pid, 0)[1] == 0
''')
        self.assertEqual(result.status, 0, result.err)
        parent, early, late = result.out.split()
        self.assertEqual(self.files(), sorted([
            f'{parent.decode()}.pb.gz', f'{early.decode()}.pb.gz']))
        self.load_checked(f'{parent.decode()}.pb.gz')
        child = self.load(f'{early.decode()}.pb.gz')
        self.assertTrue(0 < child.duration_ns < 5_000_000_000)

    def test_the_end_while_it_is_written(self):
        for end, status in (('', 0), ('os._exit(7)', 7)):
            with self.subTest(end=end):
                result = self.run_program(FIRST, code=f'''
is_writing = False
def slow(event, args):
    global is_writing
    if event == 'os.rename' and not is_writing:
        is_writing = True
        time.sleep(0.5)
sys.addaudithook(slow)
while not is_writing:
    nap()
{end}
''')
                self.assertEqual(result.status, status, result.err)
                self.assertEqual(len(result.said()), 1, result.err)
                self.assertEqual(self.files(), ['profile.pb.gz'])
                self.load_checked()
                os.unlink(os.path.join(self.directory, 'profile.pb.gz'))

    def test_a_main_thread_that_waits(self):
        process = subprocess.Popen(
            [sys.executable, FIRST, '-c', 'input()'], cwd=self.directory,
            env=environment(), stdin=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True)
        with process:
            # It is written though nothing ever wakes the program.
            self.assertIn('wrote profile.pb.gz', process.stderr.readline())
            self.load('profile.pb.gz')
            self.assertIsNone(process.poll())
            process.stdin.write('\n')

    def test_commands(self):
        code = PREAMBLE + 'spin(1.5)'
        result = self.run_python('-m', 'profile_sampling', 'record', '-d',
                                 '1', '-o', 'profile.pb.gz', '-c', code)
        self.assertEqual(result.status, 0, result.err)
        self.load_checked()
        result = self.run_python('-m', 'profile_sampling', 'stat', '-d', '1',
                                 '-o', 'stat.pb.gz', '-c', code)
        self.assertEqual(result.status, 0, result.err)
        self.assertLess(self.load('stat.pb.gz').duration_ns, 1_400_000_000)
        result = self.run_python('-m', 'profile_sampling', 'record', '-d',
                                 '0', '-c', code)
        self.assertEqual(result.status, 2)
        self.assertIn('expected a whole number from 1', result.err)
