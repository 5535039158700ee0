"""record --timeline, and report --from and --to."""

import os
import sys

from profile_sampling import Profile

from ..support.sessions import (
    ProgramTest, environment, on_stack, weight)

SECOND = 1_000_000_000
# It blocks and works in turns, on two threads.
WORK = '''\
import sys, threading, time
def first():
    end = time.thread_time() + 0.1
    while time.thread_time() < end:
        pass
def rest():
    time.sleep(0.2)
def last():
    end = time.thread_time() + 0.1
    while time.thread_time() < end:
        pass
def main():
    first()
    rest()
    last()
thread = threading.Thread(target=main, name='other')
thread.start()
main()
thread.join()
'''
FORKS = '''\
import os, sys, time
def child():
    end = time.thread_time() + 0.05
    while time.thread_time() < end:
        pass
for number in range(2):
    if os.fork() == 0:
        child()
        os._exit(0) if number else sys.exit()
for number in range(2):
    os.wait()
'''


class TimelineTest(ProgramTest):

    def setUp(self):
        super().setUp()
        self.file('work.py', WORK)
        self.file('forks.py', FORKS)

    def cli(self, *arguments, status=0):
        run = self.run_python('-m', 'profile_sampling', *arguments)
        if status is not None:
            self.assertEqual(run.status, status, run.err)
        return run

    def check_whole(self, profile):
        """Each nanosecond has a moment, or hardly any has none."""
        self.assertFalse(profile.timeline.is_stale)
        count, cpu_ns, wall_ns = profile.timeline.untimed(profile._tables)
        self.assertLessEqual(wall_ns, profile.total_wall_ns // 100)
        self.assertLessEqual(cpu_ns, profile.total_cpu_ns // 100)
        # What is recorded last is recorded at the end.
        self.assertLess(
            abs(profile.timeline.time_ns[-1] - profile.duration_ns),
            SECOND // 10)
        whole = profile.between(0, 1 << 62)
        self.assertEqual(whole.total_wall_ns, profile.total_wall_ns - wall_ns)
        self.assertEqual(whole.total_cpu_ns, profile.total_cpu_ns - cpu_ns)

    def test_a_program(self):
        self.cli('record', '--timeline', '-o', 'a.pb.gz', 'work.py')
        profile = self.load('a.pb.gz')
        self.check_whole(profile)
        # The main thread sleeps once, between two functions.
        main = profile.filter(thread='MainThread')
        asleep = [(time_ns, wall_ns) for time_ns, row, _, _, wall_ns
                  in zip(*main.timeline.columns)
                  if on_stack(main.samples[row], 'rest')
                  and wall_ns > SECOND // 10]
        end_ns, length_ns = max(asleep, key=lambda pair: pair[1])
        before = main.between(0, end_ns - length_ns)
        after = main.between(end_ns, 1 << 62)
        for part, there, not_there in ((before, 'first', 'last'),
                                       (after, 'last', 'first')):
            self.assertGreater(weight(
                [s for s in part.samples if on_stack(s, there)]),
                SECOND // 20)
            self.assertLess(weight(
                [s for s in part.samples if on_stack(s, not_there)]),
                SECOND // 50)
        asleep = main.between(end_ns - length_ns // 2, end_ns)
        self.assertGreater(weight(
            [s for s in asleep.samples if on_stack(s, 'rest')]),
            length_ns // 2 - SECOND // 100)

    def test_what_has_no_time_line(self):
        for text, reason in (
                ('defer=1', 'a deferred session has no time line'),
                ('out=a.txt', 'a text file has no time line: choose one of '
                              'pprof, html')):
            run = self.run_python(f'-Xsampleprof=timeline=1,{text}', '-c',
                                  'print(1)')
            self.assertEqual((run.status, run.out), (2, b''))
            self.assertIn(reason, run.err)

    def test_without(self):
        self.cli('record', '-o', 'a.pb.gz', 'work.py')
        self.assertIsNone(self.load('a.pb.gz').timeline)
        run = self.cli('report', 'a.pb.gz', '--from', '1', status=2)
        self.assertIn('record it with --timeline', run.err)

    def test_processes_with_files_of_their_own(self):
        self.file('short.py', 'import os\nif not os.fork(): os._exit(0)\n'
                              'os.wait()')
        text = 'timeline=1,out={pid}.pb.gz'
        for arguments, env, count in (
                ([f'-Xsampleprof={text}', 'forks.py'], {}, 3),
                (['forks.py'], {'PYTHONSAMPLEPROF': text}, 3),
                (['-m', 'profile_sampling', 'record', '--timeline', '-o',
                  '{pid}.pb.gz', 'short.py'], {}, 2),
                (['-m', 'profile_sampling', 'record', '--timeline', '-o',
                  'a.html', 'work.py'], {}, 1)):
            with self.subTest(arguments=arguments):
                self.run_python(*arguments, env=environment(**env))
                names = [name for name in self.files()
                         if name.endswith(('.pb.gz', '.html'))]
                self.assertEqual(len(names), count)
                for name in names:
                    path = os.path.join(self.directory, name)
                    self.check_whole(Profile.load(path))
                    os.unlink(path)

    def test_a_command_with_children(self):
        self.cli('record', '--timeline', '-o', 'a.pb.gz', '--', 'sh', '-c',
                 f'{sys.executable} work.py & {sys.executable} forks.py; wait')
        profile = self.load('a.pb.gz')
        self.check_whole(profile)
        self.assertEqual(len(profile.group_by('pid')), 4)
        # The parent of a fork only waits: a wait is one record.
        for part in profile.group_by('pid').values():
            self.assertGreater(len(part.timeline), 2)
        self.assertGreater(len(profile.timeline), 40)

    def test_the_program_takes_a_part_of_it(self):
        self.file('clears.py', 'import profile_sampling as p, time\n'
                               'def f():\n'
                               '    end = time.thread_time() + 0.2\n'
                               '    while time.thread_time() < end: pass\n'
                               'f(); f(); p.snapshot(clear=True); f()')
        self.cli('record', '--timeline', '-o', 'a.pb.gz', 'clears.py')
        profile = self.load('a.pb.gz')
        self.assertFalse(profile.timeline.is_stale)
        self.assertLessEqual(0, min(profile.timeline.untimed(profile._tables)))
        self.assertGreater(sum(profile.timeline.wall_ns),
                           profile.total_wall_ns // 2)
        self.assertGreater(len(profile.timeline), 10)

    def test_subscribers_of_their_own(self):
        self.file('subscribes.py', '''\
import profile_sampling, threading
with profile_sampling.subscribe(lambda batch: None, rate_hz=3000):
    threads = [threading.Thread(target=sum, args=[range(3_000_000)])
               for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
''')
        self.cli('record', '--timeline', '-r', '100', '-o', 'a.pb.gz',
                 'subscribes.py')
        self.check_whole(self.load('a.pb.gz'))

    def test_report_of_a_range(self):
        self.cli('record', '--timeline', '-o', 'a.pb.gz', 'work.py')
        run = self.cli('report', 'a.pb.gz', '--from', '0.05', '--to', '0.15')
        self.assertIn('Time line: from 50.000 ms to 150.000 ms of ',
                      run.out.decode())
        self.cli('report', 'a.pb.gz', '--from', '0.05', '--to', '0.15', '-o',
                 'part.pb.gz')
        profile = self.load('a.pb.gz').between(50_000_000, 150_000_000)
        self.assertEqual(self.load('part.pb.gz').total_wall_ns,
                         profile.total_wall_ns)
        for range_, message in (
                (('--from', '50000'), 'nothing in this range'),
                (('--from', '2', '--to', '1'), 'before it begins'),
                (('--to', '-1'), 'invalid number of seconds'),
                (('--from', 'nan'), 'invalid number of seconds')):
            run = self.cli('report', 'a.pb.gz', *range_, status=None)
            self.assertIn(message, run.err)
            self.assertNotEqual(run.status, 0)
