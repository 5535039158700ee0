"""Adding up profiles: Profile.merge() and python -m profile_sampling merge.

PITFALLS F7: profiles of different modes are never added.
"""

import contextlib
import io
import os
import unittest
from unittest import mock

from profile_sampling import Profile, _formats, _pprof, _pprof_read
from profile_sampling.__main__ import main

from . import validator
from .builders import Builder, example, facts_of
from .test_cli import PROG, CommandLineTest


def process(pid, stack='app.main:1 app.f:2', *, ns=1_000, **facts):
    b = Builder(pid=pid, **facts)
    b.thread('MainThread', native_id=pid)
    return b.sample(stack, wall_ns=ns, cpu_ns=ns // 2).profile()


def loaded(profile):
    """As it comes back from a file."""
    data = _formats.encode(profile, 'pprof')
    validator.check_pprof(data)
    with mock.patch('builtins.open', lambda *a: io.BytesIO(data)):
        return Profile.load('p.pb.gz')


def weights_by(profile, key):
    """Weights per value of *key*(sample)."""
    sums = {}
    for sample in profile.samples:
        weights = sums.setdefault(key(sample), [0, 0, 0])
        for i, weight in enumerate((sample.count, sample.cpu_ns,
                                    sample.wall_ns)):
            weights[i] += weight
    return sums


class MergeTest(unittest.TestCase):

    def merge(self, *profiles, **options):
        merged = Profile.merge(*profiles, **options)
        validator.check_profile(merged)
        self.assertEqual(facts_of(loaded(merged)), facts_of(merged))
        return merged

    def test_pid_of_each_sample(self):
        merged = self.merge(process(11, ns=100), process(12, ns=1_000))
        self.assertEqual(
            {row.value: (row.count, row.cpu_ns, row.wall_ns)
             for row in merged.label_values('pid')},
            {'11': (1, 50, 100), '12': (1, 500, 1_000)})
        self.assertIsNone(merged.pid)

    def test_sums(self):
        # The same stack, thread, labels and state: one row.
        profile = example(pid=7).profile()
        merged = self.merge(profile, profile, profile)
        self.assertEqual(len(merged.samples), len(profile.samples))
        self.assertEqual(
            weights_by(merged, lambda s: (s.stack, s.thread, s.state)),
            {key: [3 * weight for weight in weights] for key, weights
             in weights_by(profile, lambda s: (s.stack, s.thread,
                                               s.state)).items()})
        self.assertEqual(merged.stats, {name: 3 * value for name, value
                                        in profile.stats.items()})

    def test_one(self):
        profile = example(pid=7).profile()
        merged = self.merge(profile)
        facts = facts_of(profile)
        facts['pid'] = None
        facts['samples'] = {
            (stack, thread, state, (*labels, ('pid', '7')), *more): weights
            for (stack, thread, state, labels, *more), weights
            in facts['samples'].items()}
        self.assertEqual(facts_of(merged), facts)

    def test_tables_of_profiles_that_share_nothing(self):
        one = process(11, 'a.x:1 C:time.sleep [blocked]')
        two = process(12, 'b.y:2 b.z:3')
        merged = self.merge(one, two)
        for profile, pid in (one, '11'), (two, '12'):
            self.assertEqual(
                [sample.stack for sample in merged.samples
                 if sample.labels['pid'] == pid],
                [sample.stack for sample in profile.samples])

    def test_empty_profile(self):
        merged = self.merge(Builder(pid=1).profile(), process(2))
        self.assertEqual([row.value for row in merged.label_values('pid')],
                         ['2'])

    def test_own_labels_and_tasks(self):
        b = Builder(pid=5)
        b.sample('a.f:1', labels={'route': '/x', 'a': 'b'}, task=('T', 9))
        b.sample('a.f:1', labels={'pid': 'mine'})
        merged = self.merge(b.profile())
        self.assertEqual(
            [(s.labels, s.task_name, s.task_id) for s in merged.samples],
            [({'a': 'b', 'pid': '5', 'route': '/x'}, 'T', 9),
             # What the program calls pid is its own business.
             ({'pid': 'mine'}, None, None)])

    def test_merged_once_more(self):
        profiles = [process(pid, ns=pid) for pid in range(1, 6)]
        at_once = self.merge(*profiles)
        in_steps = self.merge(
            loaded(self.merge(*profiles[:2])),
            self.merge(profiles[2]), self.merge(*profiles[3:]))
        self.assertEqual(facts_of(in_steps), facts_of(at_once))

    def test_order_does_not_matter(self):
        one, two = example(pid=1).profile(), process(2)
        self.assertEqual(facts_of(self.merge(one, two)),
                         facts_of(self.merge(two, one)))

    def test_without_pid(self):
        # As in files of earlier versions and of other tools.
        profile = example().profile()
        self.assertIsNone(loaded(profile).pid)
        merged = self.merge(profile, process(3))
        self.assertEqual([row.value for row in merged.label_values('pid')],
                         [None, '3'])

    def test_modes(self):
        with self.assertRaisesRegex(ValueError, 'mode cpu with one of mode '
                                                'wall'):
            Profile.merge(process(1), process(2, mode='cpu'))

    def test_cpu_mode(self):
        merged = self.merge(process(1, mode='cpu'), process(2, mode='cpu'))
        self.assertEqual((merged.mode, merged.total_cpu_ns), ('cpu', 1_000))

    def test_rates(self):
        for rates, expected in ((1000, 1000), 1000), ((1000, 100), 0), \
                ((0, 100), 0):
            with self.subTest(rates=rates):
                merged = self.merge(*[
                    process(pid, rate_hz=rate, ns=500)
                    for pid, rate in enumerate(rates, 1)])
                self.assertEqual(merged.rate_hz, expected)
                # Weights are times: no rate changes what they add up to.
                self.assertEqual(merged.total_wall_ns, 1_000)

    def test_facts(self):
        merged = self.merge(
            process(1, depth_frames=100, names=1, python_version='3.13.5'),
            process(2, depth_frames=512, names=2, python_version='3.13.5'),
            process(3, python_version=''), process(4, python_version='3.14'))
        self.assertEqual(
            (merged.depth_frames, merged.names, merged.python_version),
            (512, 'calls,opcodes', '3.13.5, 3.14'))

    def test_time_and_duration(self):
        for spans, start, duration in (
                # In one another, one after the other, with a gap, the same.
                ([(100, 50), (110, 10)], 100, 50),
                ([(120, 10), (100, 10)], 100, 20),
                ([(100, 20), (110, 30)], 100, 40),
                ([(100, 7), (100, 7)], 100, 7),
                ([(100, 10), (200, 10), (105, 10)], 100, 25),
                # When it began is not known.
                ([(0, 30), (100, 7)], 100, 30),
                ([(0, 30), (0, 40)], 0, 40)):
            with self.subTest(spans=spans):
                merged = self.merge(*[
                    process(1, start_time_ns=start, duration_ns=duration)
                    for start, duration in spans])
                self.assertEqual(
                    (merged.start_time_ns, merged.duration_ns),
                    (start, duration))

    def test_losses(self):
        merged = self.merge(
            process(1, stats={'lost_ring_full': 3, 'ticks': 1}),
            process(2, stats={'lost_ring_full': 2, 'lost_wall_ns': 9}))
        self.assertEqual(merged.stats, {
            'lost_ring_full': 5, 'ticks': 1, 'lost_wall_ns': 9})

    def test_too_large_a_sum(self):
        huge = process(1, ns=2 ** 62)
        with self.assertRaisesRegex(ValueError, 'beyond 64 bits'):
            Profile.merge(huge, huge)

    def test_memory_is_bounded(self):
        profiles = [process(pid, f'a.f{pid}:1') for pid in range(1, 101)]
        with self.assertRaisesRegex(ValueError, 'more than 100,000 bytes'):
            Profile.merge(*profiles, max_bytes=100_000)
        # What is the same takes memory once.
        same = [process(1, 'a.f:1')] * 100
        self.merge(*same, max_bytes=100_000)

    def test_nothing(self):
        with self.assertRaisesRegex(ValueError, 'no profiles'):
            Profile.merge()

    def test_sources_are_unchanged(self):
        profile = example(pid=4).profile()
        before = facts_of(profile)
        self.merge(profile, process(5))
        self.assertEqual(facts_of(profile), before)

    def test_pid_in_a_file(self):
        self.assertEqual(loaded(process(4321)).pid, 4321)

    def test_pids_of_another_tool(self):
        # It keeps the comments of all files: then no single one is right.
        data = _formats.encode(process(11), 'pprof', compress=False)
        more = _pprof.Message()
        more.number(13, len(validator.decode(data)['string_table']))
        for pid, expected in (11, 11), (12, None):
            with self.subTest(pid=pid):
                text = _pprof.Message()
                text.payload(6, b'# pid %d' % pid)
                tables = _pprof_read.decode(data + text.data + more.data)
                self.assertEqual(tables['pid'], expected)

    def test_bad_pid_in_a_file(self):
        data = _formats.encode(process(11), 'pprof', compress=False)
        with self.assertRaisesRegex(ValueError, "'x1' for a number"):
            _pprof_read.decode(data.replace(b'# pid 11', b'# pid x1'))


class CommandTest(CommandLineTest):

    def setUp(self):
        super().setUp()
        for pid in 11, 12, 13:
            self.save(process(pid), f'{pid}.pb.gz')

    def save(self, profile, name):
        profile.save(os.path.join(self.directory, name))

    def load(self, name):
        path = os.path.join(self.directory, name)
        with open(path, 'rb') as file:
            validator.check_pprof(file.read())
        return Profile.load(path)

    def files(self):
        return sorted(os.listdir(self.directory))

    def test_to_a_file(self):
        self.assertEqual(
            self.run_cli('merge', '-o', 'all.pb.gz', '11.pb.gz', '12.pb.gz',
                         '13.pb.gz'),
            (0, b'', f'{PROG}: merged 3 files of 3 processes into all.pb.gz: '
             '0.0 s wall and 0.0 s CPU in all threads together, 3 samples, '
             '0 lost\n'))
        self.assertEqual(
            facts_of(self.load('all.pb.gz')),
            facts_of(Profile.merge(*[process(pid) for pid in (11, 12, 13)])))

    def test_to_stdout(self):
        status, data, err = self.run_cli('merge', '11.pb.gz', '12.pb.gz')
        self.assertEqual((status, self.files()),
                         (0, ['11.pb.gz', '12.pb.gz', '13.pb.gz']), err)
        self.assertIn('merged 2 files of 2 processes: ', err)
        validator.check_pprof(data)
        self.assertEqual(data, _formats.encode(
            Profile.merge(process(11), process(12)), 'pprof'))

    def test_formats(self):
        for arguments, begins in ((['-o', 'all.txt'], b'Wall profile'),
                                  (['-o', 'all.folded'], b'app.main;app.f '),
                                  (['--format', 'collapsed'], b'app.main;')):
            with self.subTest(arguments=arguments):
                status, data, err = self.run_cli(
                    'merge', '11.pb.gz', '12.pb.gz', *arguments)
                self.assertEqual(status, 0, err)
                if arguments[0] == '-o':
                    data = self.read(arguments[1])
                self.assertTrue(data.startswith(begins), data)

    def test_text_report_tells_the_processes(self):
        status, text, _ = self.run_cli('merge', '--format', 'text',
                                       '11.pb.gz', '12.pb.gz')
        self.assertEqual(status, 0)
        rows = [line.split()[-1] for line in text.decode().splitlines()
                if line.strip()]
        self.assertIn('11', rows)
        self.assertIn('12', rows)

    def test_pattern(self):
        # For more files than a command line can hold.
        status, _, err = self.run_cli('merge', '-o', 'all.pb.gz', '1*.pb.gz')
        self.assertEqual(status, 0)
        self.assertIn('merged 3 files of 3 processes', err)

    def test_name_that_looks_like_a_pattern(self):
        self.save(process(99), '[1]*.pb.gz')
        status, _, err = self.run_cli('merge', '-o', 'a.pb.gz', '[1]*.pb.gz')
        self.assertEqual(status, 0)
        self.assertIn('merged 1 file of 1 process into', err)
        self.assertEqual([row.value for row
                          in self.load('a.pb.gz').label_values('pid')],
                         ['99'])

    def test_many_files(self):
        for pid in range(1000, 1300):
            self.save(process(pid), f'{pid}.pb')
        status, _, err = self.run_cli('merge', '-o', 'all.pb.gz', '*.pb')
        self.assertEqual(status, 0)
        self.assertIn('merged 300 files of 300 processes', err)
        merged = self.load('all.pb.gz')
        self.assertEqual(merged.total_count, 300)
        self.assertEqual(len(merged._functions), 2)

    def test_files_without_pid(self):
        self.save(example().profile(), 'old.pb.gz')
        status, _, err = self.run_cli('merge', '-o', 'all.pb.gz', 'old.pb.gz',
                                      '11.pb.gz')
        self.assertEqual(status, 0)
        self.assertIn('merged 2 files of 1 process', err)
        self.assertIn('; 1 file without the number of a process\n', err)
        # A sum of profiles has the numbers in its labels.
        _, _, err = self.run_cli('merge', '-o', 'more.pb.gz', 'all.pb.gz',
                                 '12.pb.gz')
        self.assertNotIn('without', err)

    def test_losses_are_told(self):
        self.save(process(9, stats={'lost_ring_full': 1234}), 'lossy.pb.gz')
        _, _, err = self.run_cli('merge', '-o', 'a.pb.gz', '1*.pb.gz',
                                 'lossy.pb.gz')
        self.assertIn('1,234 lost\n', err)

    def assertRefused(self, status, message, *arguments):
        before = self.files()
        self.assertFails(status, message, 'merge', *arguments)
        self.assertEqual(self.files(), before)

    def test_usage(self):
        for message, arguments in (
                ('FILE', []),
                ('FILE', ['-o', 'all.pb.gz']),
                ('svg', ['11.pb.gz', '--format', 'svg']),
                ('known extensions', ['11.pb.gz', '-o', 'all.svg']),
                ('11.pb.gz is named twice', ['11.pb.gz', './11.pb.gz']),
                ('12.pb.gz is named twice', ['12.pb.gz', '1*.pb.gz']),
                ('12.pb.gz is to be read and to be written',
                 ['-o', '12.pb.gz', '11.pb.gz', '12.pb.gz'])):
            with self.subTest(arguments=arguments):
                self.assertRefused(2, message, *arguments)

    def test_link_to_the_output(self):
        os.symlink('12.pb.gz', os.path.join(self.directory, 'link.pb.gz'))
        self.assertRefused(2, 'is to be read and to be written', '-o',
                           '12.pb.gz', 'link.pb.gz')

    def test_bad_files(self):
        with open(os.path.join(self.directory, 'bad'), 'wb') as file:
            file.write(self.read('11.pb.gz')[:100])
        os.mkdir(os.path.join(self.directory, 'dir'))
        self.save(process(14, mode='cpu'), 'cpu.pb.gz')
        self.save(process(15, ns=2 ** 63 - 1), 'huge.pb.gz')
        self.save(process(15, ns=2 ** 63 - 1), 'huge2.pb.gz')
        for message, arguments in (
                ('cannot read nothing: No such file', ['nothing']),
                ('cannot read dir: Is a directory', ['dir']),
                ('no file has a name like z\\*', ['z*']),
                ('bad: is cut off', ['bad']),
                ('cpu.pb.gz: cannot merge a profile of mode cpu with one of '
                 'mode wall', ['cpu.pb.gz']),
                ('huge2.pb.gz: the weight of a stack is beyond 64 bits',
                 ['huge.pb.gz', 'huge2.pb.gz']),
                ('cannot write no/o.txt: No such file', ['-o', 'no/o.txt'])):
            with self.subTest(arguments=arguments):
                self.assertRefused(1, message, '11.pb.gz', *arguments)

    def test_no_stdout_nor_stderr(self):
        # What is said must not get into the file by mistake.
        out = io.StringIO()
        with (contextlib.redirect_stdout(out), contextlib.redirect_stderr(None),
              contextlib.chdir(self.directory)):
            self.assertEqual(main(['merge', '11.pb.gz', '-o', 'a.pb.gz']), 0)
        self.assertEqual(out.getvalue(), '')
        with (contextlib.redirect_stdout(None), contextlib.redirect_stderr(out),
              contextlib.chdir(self.directory)):
            self.assertEqual(main(['merge', '11.pb.gz']), 1)
        self.assertEqual(out.getvalue(), f'{PROG}: cannot write to stdout: '
                                         'it is closed\n')

    def test_a_terminal_gets_no_binary(self):
        import pty
        leader, follower = pty.openpty()
        self.addCleanup(os.close, leader)
        try:
            status, _, err = self.run_cli('merge', '11.pb.gz',
                                          stdout=follower)
        finally:
            os.close(follower)
        self.assertEqual(status, 2)
        self.assertIn('name a file with -o', err)

    def test_help(self):
        status, text, err = self.run_cli('merge', '--help')
        self.assertEqual((status, err), (0, ''))
        self.assertIn(f'usage: {PROG} merge', text.decode())


if __name__ == '__main__':
    unittest.main()
