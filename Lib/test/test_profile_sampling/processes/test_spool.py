"""spool=: a profile that never ends, in segments."""

import os
import random
import signal
import subprocess
import sys
import time
import unittest

from profile_sampling import Profile
from profile_sampling._cli.history import History
from profile_sampling._data.segments import SUFFIX, Segment, name, parsed

from ..support.builders import Builder
from ..support.sessions import ProgramTest, environment

OPTION = '-Xsampleprof=rate_hz=1000,spool=spool,every=0.1'
WORK = '''
import os, sys, threading, time

def work(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sum(range(500))
        time.sleep(0.001)

'''
SECOND = 1_000_000_000


class SpoolTest(ProgramTest):

    def run_program(self, code, *, option=OPTION, status=0, **options):
        result = self.run_python(option, '-c', WORK + code, **options)
        self.assertEqual(result.status, status, result.err)
        return result

    def segments(self):
        """{pid: [profiles]}, each read and as its name says."""
        directory = os.path.join(self.directory, 'spool')
        found = {}
        for file in sorted(os.listdir(directory)):
            segment = parsed(file)
            if segment is None:
                self.assertTrue(file.endswith('.tmp'), file)
                continue
            profile = Profile.load(os.path.join(directory, file))
            self.assertEqual(segment, Segment(
                profile.start_time_ns // 1000 * 1000,
                profile.start_time_ns // 1000 * 1000
                + profile.duration_ns // 1_000_000 * 1_000_000,
                profile.meta['host'], profile.pid))
            found.setdefault(profile.pid, []).append(profile)
        return found

    def command(self, *arguments):
        return subprocess.run(
            [sys.executable, '-m', 'profile_sampling', *arguments],
            cwd=self.directory, env=environment(), capture_output=True,
            text=True)


class SegmentsTest(SpoolTest):

    def test_they_add_up(self):
        result = self.run_program('''
threading.Thread(target=work, args=(1.2,)).start()
work(1)
''')
        [profiles] = self.segments().values()
        self.assertGreater(len(profiles), 3)
        self.assertRegex(result.err, rf'^sampleprof: wrote {len(profiles)} '
                         r'segments to .*/spool\. Look: .* report .*/spool\n')
        for one, following in zip(profiles, profiles[1:]):
            self.assertEqual(one.start_time_ns + one.duration_ns,
                             following.start_time_ns)
        # A thread that is there before a segment and after it has all of its
        # time.
        times = []
        for profile in profiles:
            times.append({})
            for sample in profile.samples:
                times[-1][sample.thread.ident] = (
                    times[-1].get(sample.thread.ident, 0) + sample.wall_ns)
        checked = 0
        for before, its, after, profile in zip(times, times[1:], times[2:],
                                               profiles[1:]):
            for ident in before.keys() & after.keys():
                self.assertEqual(its[ident], profile.duration_ns)
                checked += 1
        self.assertGreater(checked, 2)
        whole = Profile.merge(*profiles)
        self.assertEqual(whole.total_wall_ns,
                         sum([its.total_wall_ns for its in profiles]))
        self.assertEqual(whole.duration_ns,
                         sum([its.duration_ns for its in profiles]))

    def test_counts_of_segments(self):
        self.run_program('''
def tiny():
    pass
def call(seconds):
    end = time.monotonic() + seconds
    n = 0
    while time.monotonic() < end:
        tiny()
        n += 1
        time.sleep(0.001)
    return n
before = call(0.4)
pid = os.fork()
n = call(0.3)
open(str(os.getpid()), 'w').write(str(n + before * bool(pid)))
if pid:
    os.waitpid(pid, 0)
''', option=f'{OPTION},calls=python')
        found = self.segments()
        self.assertEqual(len(found), 2)
        for pid, profiles in found.items():
            with open(os.path.join(self.directory, str(pid))) as file:
                number = int(file.read())
            counted = [sum([row.calls for row in profile.calls
                            if row.callee.qualname == 'tiny'])
                       for profile in profiles]
            self.assertEqual(sum(counted), number)
            self.assertGreater(len([n for n in counted if n]), 1)

    def test_children(self):
        self.run_program('''
import multiprocessing
pid = os.fork()
if not pid:
    work(0.35)
    os._exit(0)
work(0.3)
os.waitpid(pid, 0)
context = multiprocessing.get_context('spawn')
child = context.Process(target=time.sleep, args=(0.3,))
child.start()
child.join()
''')
        found = self.segments()
        self.assertEqual(len(found), 3)
        for profiles in found.values():
            self.assertGreater(len(profiles), 1)

    def test_a_program_that_cannot_be_executed(self):
        # What was written before exec() is in the next segment, too.
        self.run_program('''
work(0.05)
open('no.program', 'w').write('?')
os.chmod('no.program', 0o755)
try:
    os.execv('./no.program', ['no.program'])
except OSError:
    pass
work(0.3)
''', option=OPTION.replace('0.1', '0.2'))
        [profiles] = self.segments().values()
        for one, following in zip(profiles, profiles[1:]):
            self.assertEqual(one.start_time_ns + one.duration_ns,
                             following.start_time_ns)

    def test_ended_by_a_signal(self):
        program = subprocess.Popen(
            [sys.executable, OPTION, '-c', WORK + 'work(60)'],
            cwd=self.directory, env=environment(), stderr=subprocess.PIPE)
        time.sleep(0.5)
        program.send_signal(signal.SIGTERM)
        _, err = program.communicate(timeout=60)
        self.assertEqual(program.returncode, -signal.SIGTERM, err)
        self.assertIn(b'segments to', err)
        [[*_, last]] = self.segments().values()
        self.assertEqual(last.stats['spool_ended'], 1)

    def test_killed_at_random_moments(self):
        runs = int(os.environ.get('PROFILE_SAMPLING_RUNS', 5))
        numbers = random.Random(1)
        for _ in range(runs):
            program = subprocess.Popen(
                [sys.executable, OPTION.replace('0.1', '0.05'), '-c',
                 WORK + 'work(60)'], cwd=self.directory, env=environment())
            time.sleep(0.1 + 0.4 * numbers.random())
            program.kill()
            program.wait()
        for profiles in self.segments().values():
            for profile in profiles:
                self.assertNotIn('spool_ended', profile.stats)
        if not self.segments():
            self.skipTest('the machine was too busy to write one')
        result = self.command('merge', '-o', 'all.pb.gz', 'spool')
        self.assertEqual(result.returncode, 0, result.stderr)
        self.load('all.pb.gz')


class TroubleTest(SpoolTest):

    def test_no_space(self):
        result = self.run_program('''
import resource
work(0.25)
_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (10, hard))
work(0.5)
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
work(0.25)
print('done')
''')
        self.assertEqual(result.out, b'done\n')
        said = [line for line in result.err.splitlines() if 'cannot' in line]
        # Once, however many segments it was.
        self.assertEqual(len(said), 1, result.err)
        self.assertIn('File too large', said[0])
        [profiles] = self.segments().values()
        lost = sum([profile.stats.get('spool_unwritten', 0)
                    for profile in profiles])
        self.assertGreater(lost, 0)
        result = self.command('report', 'spool')
        self.assertRegex(' '.join(result.stdout.split()),
                         f'{lost} segments? that could not be written')

    def test_quota(self):
        self.run_program('work(1.5)', option=f'{OPTION},keep=8K')
        [profiles] = self.segments().values()
        directory = os.path.join(self.directory, 'spool')
        sizes = [os.path.getsize(os.path.join(directory, file))
                 for file in os.listdir(directory)]
        self.assertLessEqual(sum(sizes), 8192)
        dropped = sum([profile.stats.get('spool_dropped', 0)
                       for profile in profiles])
        self.assertGreater(dropped, 0)

    def test_the_directory_is_removed(self):
        result = self.run_program('''
import shutil
work(0.25)
shutil.rmtree('spool')
work(0.3)
os.mkdir('spool')
work(0.25)
''')
        [profiles] = self.segments().values()
        self.assertGreater(sum([its.stats.get('spool_unwritten', 0)
                                for its in profiles]), 0)

    def test_wrong_options(self):
        for text, reason in (
                ('spool=', 'needs a value'), ('every=1', 'every= needs spool='),
                ('keep=1G', 'keep= needs spool='),
                ('spool=a,out=b.pb.gz', 'out= is not for spool='),
                ('spool=a,timeline=1', 'timeline= is not for spool='),
                ('spool=a,every=0', 'every=0: expected seconds'),
                ('spool=a,every=1.2.3', 'every=1.2.3: expected seconds'),
                ('spool=a,keep=many', 'keep=many: expected a size'),
                ('spool=/dev/null/a', 'spool=/dev/null/a: ')):
            with self.subTest(text):
                result = self.run_python(f'-Xsampleprof={text}', '-c', '1')
                self.assertEqual(result.status, 2)
                self.assertIn(reason, result.err)


class CommandsTest(SpoolTest):

    def setUp(self):
        super().setUp()
        self.run_program('work(0.5)')
        self.run_program('work(0.3)')
        self.pids = list(self.segments())
        self.spool = os.path.join(self.directory, 'spool')

    def test_report(self):
        result = self.command('report', 'spool', '--format', 'json')
        self.assertRegex(result.stderr,
                         r'spool: .* to .*, 2 processes on 1 host, \d+ segm')
        part = self.command('report', 'spool', '--pid', str(self.pids[0]))
        self.assertIn('1 process on 1 host', part.stderr)
        self.assertIn('work', part.stdout)
        self.assertRegex(part.stdout, r'\nBusy    .*\nDoing   ')
        result = self.command('report', 'spool', '--html')
        self.assertIn('spool.html', os.listdir(self.directory), result.stderr)

    def test_times(self):
        [first] = [its[0] for pid, its in self.segments().items()
                   if pid == self.pids[0]]
        moment = time.gmtime(first.start_time_ns // SECOND + 3600)
        for options, status in (
                (['--last', '1h'], 0), (['--last', '1s'], 0),
                (['--from', time.strftime('%Y-%m-%dT%H:%M:%S', moment)], 2),
                (['--to', time.strftime('%Y-%m-%dT%H:%M:%S', moment)], 0),
                (['--host', 'nowhere'], 2), (['--from', '5'], 2)):
            with self.subTest(options):
                result = self.command('report', 'spool', *options)
                self.assertEqual(result.returncode, status, result.stderr)

    def test_two_times(self):
        last = self.segments()[self.pids[1]][0]
        seconds, ns = divmod(last.start_time_ns, SECOND)
        moment = time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))
        moment += f'.{ns // 1000:06}'
        result = self.command('diff', f'spool@..{moment}', f'spool@{moment}..')
        self.assertEqual(result.returncode, 0, result.stderr)
        first, second = result.stderr.splitlines()
        self.assertIn(f'{len(self.segments()[self.pids[0]])} segments', first)
        result = self.command('report', 'spool@1..2')
        self.assertEqual(result.returncode, 1)

    def test_merge_and_diff(self):
        merged = self.command('merge', '-o', 'm.pb.gz', 'spool')
        self.assertEqual(merged.returncode, 0, merged.stderr)
        self.assertEqual(self.load('m.pb.gz').total_wall_ns, sum([
            profile.total_wall_ns for its in self.segments().values()
            for profile in its]))
        result = self.command('diff', 'spool', 'm.pb.gz')
        self.assertEqual(result.returncode, 0, result.stderr)
        result = self.command('report', 'm.pb.gz', '--last', '1s')
        self.assertEqual(result.returncode, 2)
        self.assertIn('of a directory', result.stderr)

    def test_what_is_missing(self):
        paths = sorted(os.listdir(self.spool))
        self.file('spool/.sampleprof-12.tmp', 'half')
        os.unlink(os.path.join(self.spool, paths[-1]))
        self.file(f'spool/{paths[0]}', 'damaged')
        time.sleep(0.5)
        result = self.command('report', 'spool')
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn(f'process {self.pids[1]} of ', result.stderr)
        self.assertIn('it was killed, or could not write', result.stderr)
        self.assertIn(paths[0], result.stderr)
        self.assertNotIn(f'process {self.pids[0]} of ', result.stderr)


class HistoryTest(unittest.TestCase):

    def test_rows(self):
        history = History()
        for number, (pid, state, ns) in enumerate((
                (41, 'running', SECOND), (41, 'gil_wait', 2 * SECOND),
                (42, 'waiting', SECOND // 2))):
            b = Builder().sample('a.f:1', wall_ns=ns, state=state)
            history.add(Segment(number * SECOND, (number + 1) * SECOND, 'web',
                                pid), b.profile()._tables)
        self.assertEqual(history.lines(), [
            '        00:00:00       00:00:00       00:00:01       00:00:02',
            f'Busy    {"▅" * 20}{"█" * 20}{"▃" * 20}',
            f'Doing   {"r" * 20}{"G" * 20}{"w" * 20}', '',
            '    PID  Host       Time  Doing',
            '     41  web         2 s  rrrrGGGGGGGG',
            '     42  web         1 s  wwwwwwwwwwww',
            'Busy: up to 2.0 threads, without what is idle',
            'Doing: r running, w waiting, G GIL wait'])

    def test_one_segment(self):
        history = History()
        history.add(Segment(0, SECOND, 'web', 1), Builder().profile()._tables)
        self.assertEqual(history.lines(), [])


class NamesTest(unittest.TestCase):

    def test_names(self):
        for host in 'shop-web-0', 'a.b_c', 'x-1-2':
            begin_ns = 1_795_919_196_606_799_000
            text = name(begin_ns, 10_000_400_000, host, 41)
            self.assertEqual(parsed(text), Segment(
                begin_ns, begin_ns + 10_000 * 1_000_000, host, 41))
        self.assertEqual(parsed(name(0, 0, 'ä/b' * 40, 1)).host,
                         ('__b' * 40)[:64])

    def test_others(self):
        good = name(0, 0, 'a', 1)
        for text in ('', SUFFIX, 'a.pb.gz', f'.{good}', f'{good}.tmp',
                     good.replace('Z', ''), good.replace('ms', ''),
                     good.replace('19700101', '19701301'),
                     good.replace('-1.', '-x.'), good.replace('-a-', '--')):
            self.assertIsNone(parsed(text), text)


if __name__ == '__main__':
    unittest.main()
