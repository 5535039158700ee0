"""python -m profile_sampling stat, exec, list and help."""

import json
import os
import resource
import shutil
import signal
import sys
import unittest

from profile_sampling._formats import summary

from ..support.builders import Builder, example
from ..support.sessions import ProgramTest

PROG = 'python -m profile_sampling'


class UsedTest(unittest.TestCase):
    """What is said, of known figures."""

    USED = {'real_s': 2.5, 'user_s': 0.25, 'sys_s': 0.0125,
            'peak_memory_bytes': 25 << 20, 'peak_memory_is_bound': False,
            'page_faults_minor': 5, 'page_faults_major': 1,
            'disk_read_bytes': 1 << 20, 'disk_written_bytes': 2 << 20}

    def test_units(self):
        usage = resource.struct_rusage((
            0.25, 0.0125, 25 << 10, 0, 0, 0, 5, 1, 0, 2048, 4096, 0, 0, 0,
            1000, 234))
        self.assertEqual(summary.used(usage, 2.5, 24 << 10), self.USED)
        used = summary.used(usage, 2.5, 25 << 10)
        self.assertIn(' 25.0 MB  peak memory of the largest process, at most',
                      summary.render('x', used, None))

    def test_without_a_profile(self):
        text = summary.render('x\n\x1b[31m', self.USED, None)
        self.assertEqual(text.splitlines(), [
            r'What x\n\x1b[31m used', '',
            '         2.50 s  real',
            '       250.0 ms  user',
            '        12.5 ms  sys', '',
            '        25.0 MB  peak memory of the largest process',
            '              6  page faults (1 from disk)',
            '         3.0 MB  from and to disks (1.0 MB read, 2.0 MB '
            'written)'])

    def test_losses_and_cost(self):
        tables = example(stats={
            'lost_table_full': 7, 'signals_sent': 75,
            'overhead_capture_ns': 1_500_000,
            'overhead_drain_ns': 500_000}).profile()._tables
        text = summary.render('x', self.USED, tables)
        self.assertIn('samples, 7 lost\n', text)
        self.assertIn('         2.0 ms  taken by the profiler', text)

    def test_one_of_each(self):
        tables = Builder(stats={
            'collections_gen0': 1, 'collections_gen1': 0,
            'collections_gen2': 0, 'lost_labels': 1, 'lost_threads': 1,
            'ticks_no_signal': 1, 'ticks_blocked': 1, 'ticks': 2}).sample(
                'm.f:1', wall_ns=1).profile()._tables
        text = summary.render('x', self.USED | {'page_faults_minor': 0},
                              tables, 200)
        for line in ('page fault (1 from disk)',
                     'garbage collection (1 of generation 0, 0 of generation '
                     '1, 0 of generation 2)'):
            self.assertIn(f'              1  {line}\n', text)
        self.assertIn('              1  sample, 0 lost, '
                      '1 sample without its labels, 1 thread not profiled, '
                      '1 tick answered late, as signals are blocked', text)


class CommandTest(ProgramTest):

    WORK = ('import threading, time\n'
            'def spin():\n'
            '    end = time.perf_counter() + 0.2\n'
            '    while time.perf_counter() < end: pass\n'
            'threads = [threading.Thread(target=spin) for _ in range(2)]\n'
            'for t in threads: t.start()\n'
            'for t in threads: t.join()\n'
            'time.sleep(0.1)\n'
            'print("done")\n')

    def setUp(self):
        super().setUp()
        self.file('work.py', self.WORK)

    def cli(self, *arguments, **options):
        return self.run_python('-m', 'profile_sampling', *arguments,
                               **options)

    def test_json(self):
        result = self.cli('stat', '--format', 'json', 'work.py')
        self.assertEqual((result.status, result.out), (0, b'done\n'))
        said = json.loads(result.err)
        self.assertEqual((said['program'], said['status']), ('work.py', 0))
        self.assertGreaterEqual(said['real_s'], 0.3)
        # Of a crowded machine it gets a part.
        self.assertGreater(said['user_s'] + said['sys_s'], 0.02)
        self.assertGreater(said['peak_memory_bytes'], 5 << 20)
        profile = said['profile']
        self.assertEqual((profile['threads'], profile['rate_hz']), (3, 1000))
        states = profile['states']
        # Two threads want one GIL for 0.2 s.
        self.assertGreater(states['gil_wait']['wall_ns'], 100_000_000)
        # Who starts them waits for the GIL for some turns of 5 ms.
        self.assertGreater(states['waiting']['wall_ns'], 280_000_000)
        self.assertEqual(self.files(), ['work.py'])

    def test_text(self):
        result = self.cli('stat', 'work.py')
        lines = result.err.splitlines()
        self.assertEqual(lines[0], 'What work.py used')
        for end in (' real', ' user', ' sys', ' of 3 threads:', ' running',
                    ' waiting', ' GIL wait'):
            self.assertEqual(len([line for line in lines
                                  if line.endswith(end)]), 1, end)
        self.assertIn(' MB  peak memory of the largest process', result.err)

    def test_collections(self):
        result = self.cli(
            'stat', '--format', 'json', '-c',
            'import gc\n'
            'gc.disable()\n'
            'for generation, times in enumerate((7, 5, 3)):\n'
            '    for _ in range(times): gc.collect(generation)\n')
        counters = json.loads(result.err)['profile']['counters']
        # And those of the interpreter's own start and end.
        for generation, times in enumerate((7, 5, 3)):
            found = counters[f'collections_gen{generation}']
            self.assertGreaterEqual(found, times)
            self.assertLess(found, times + 10)

    def test_children(self):
        result = self.cli(
            'stat', '--format', 'json', '--', 'sh', '-c',
            f'"{sys.executable}" work.py; "{sys.executable}" work.py; exit 4')
        self.assertEqual(result.status, 4, result.err)
        self.assertEqual(json.loads(result.err)['profile']['threads'], 6)

    def test_exec_reports(self):
        result = self.cli('exec', '-o', 'p.pb.gz', '--to', 'said.txt',
                          'work.py')
        self.assertEqual((result.status, result.err), (0, ''))
        with open(os.path.join(self.directory, 'said.txt'),
                  encoding='utf-8') as file:
            text = file.read()
        self.assertTrue(text.startswith('What work.py used\n'))
        self.assertIn('spin', text)
        profile = self.load('p.pb.gz')
        self.assertEqual(len(profile.threads), 3)
        self.assertEqual(profile.meta['command'], 'work.py')

    def test_signal(self):
        result = self.cli('stat', '-c', 'import os, time; time.sleep(0.05); '
                          'os.kill(os.getpid(), 9)')
        self.assertEqual(result.status, -signal.SIGKILL)
        self.assertIn(' real\n', result.err)
        self.assertIn('nothing was recorded', result.err)

    def test_the_status_if_the_profile_cannot_be_written(self):
        for end, status in ('exit(3)', 3), ('', 1):
            os.mkdir(os.path.join(self.directory, 'gone'))
            result = self.cli('stat', '-o', 'gone/p.pb.gz', '-c',
                              f'import os; os.rmdir("gone"); {end}')
            self.assertEqual(result.status, status, result.err)
            self.assertIn('cannot write gone/p.pb.gz: No such file',
                          result.err)
            parts = result.err.split(' are in ')[1].strip()
            self.addCleanup(shutil.rmtree, parts)


class ListTest(ProgramTest):

    def list(self, *arguments):
        return self.run_python('-m', 'profile_sampling', 'list', *arguments,
                               env=dict(os.environ, TZ='UTC'))

    def save(self, name, start_s, **meta):
        example(start_time_ns=start_s * 10**9, meta=meta).profile().save(
            os.path.join(self.directory, name))

    def test_by_revision_newest_first(self):
        self.save('a.pb.gz', 86400, revision='r1', command='x.py -a')
        self.save('b.pb.gz', 3 * 86400, revision='r2', command='x.py')
        self.save('c.pb', 2 * 86400, revision='r1')
        self.save('d.pb.gz', 4 * 86400)
        self.file('.hidden.pb.gz', 'x')
        result = self.list()
        self.assertEqual((result.status, result.err), (0, ''))
        lines = [line.split() for line in result.out.decode().splitlines()
                 if line]
        self.assertEqual([line[0] for line in lines[1:]], [
            'no', '1970-01-05', 'r2', '1970-01-04', 'r1', '1970-01-03',
            '1970-01-02'])
        self.assertEqual(lines[-1][-3:], ['a.pb.gz', 'x.py', '-a'])

    def test_files_that_are_none(self):
        self.save('a.pb.gz', 86400)
        self.file('b.pb', 'nonsense')
        result = self.list(self.directory)
        self.assertEqual(result.status, 1)
        self.assertIn(b' a.pb.gz', result.out)
        self.assertIn('b.pb: is not a pprof file', result.err)

    def test_a_pipe_is_no_profile(self):
        os.mkfifo(os.path.join(self.directory, 'a.pb.gz'))
        self.assertEqual(self.list().status, 1)

    def test_nothing_there(self):
        for arguments, message in (
                ([], 'no file in . ends in .pb.gz'),
                (['nosuch'], 'cannot read nosuch: No such file')):
            result = self.list(*arguments)
            self.assertEqual((result.status, result.out), (1, b''))
            self.assertIn(message, result.err)
