"""Adding up profiles: Profile.merge().

PITFALLS F7: profiles of different modes are never added.
"""

import io
import itertools
import unittest

from profile_sampling import Process, Profile, _formats
from profile_sampling._data.by_site import sites_of
from profile_sampling._formats import tables_of
from profile_sampling._formats.pprof import reader as _pprof_read
from profile_sampling._formats.pprof import writer as _pprof

from ..support import validator
from ..support.builders import (
    Builder, example, facts_of, process, reloaded)
from ..support.page_documents import document_of
from ..support.wire import fields, message


class MergeTest(unittest.TestCase):

    def merge(self, *profiles, **options):
        merged = Profile.merge(*profiles, **options)
        validator.check_profile(merged)
        self.assertEqual(facts_of(reloaded(merged)), facts_of(merged))
        return merged

    def test_pid_of_each_sample(self):
        merged = self.merge(process(11, ns=100), process(12, ns=1_000))
        self.assertEqual(
            {pid: (part.total_count, part.total_cpu_ns, part.total_wall_ns)
             for pid, part in merged.group_by('pid').items()},
            {'11': (1, 50, 100), '12': (1, 500, 1_000)})
        self.assertIsNone(merged.pid)
        # It is no label.
        self.assertEqual(merged.label_keys, ())

    def test_one(self):
        profile = example(pid=7).profile()
        merged = self.merge(profile)
        facts = facts_of(profile)
        facts['pid'] = None
        self.assertEqual(facts_of(merged), facts)

    def test_own_labels_and_tasks(self):
        b = Builder(pid=5)
        b.sample('a.f:1', labels={'route': '/x', 'a': 'b'}, task=('T', 9))
        b.sample('a.f:1', labels={'pid': 'mine'})
        merged = self.merge(b.profile())
        self.assertEqual(
            [(s.labels, s.task_name, s.task_id) for s in merged.samples],
            [({'a': 'b', 'route': '/x'}, 'T', 9),
             # What the program calls pid is its own business.
             ({'pid': 'mine'}, None, None)])
        self.assertEqual(list(merged.group_by('pid')), ['5'])
        self.assertEqual(list(merged.group_by('label:pid')), [None, 'mine'])

    def test_threads_of_processes(self):
        # Forks in containers have threads of equal names and numbers.
        parts = []
        for pid in 11, 12:
            b = Builder(pid=pid)
            b.thread('MainThread', ident=1, native_id=1)
            parts.append(b.sample('a.f:1', wall_ns=100 * pid).profile())
        merged = self.merge(*parts)
        for its in merged, reloaded(merged):
            groups = its.group_by('thread')
            self.assertEqual(
                {thread.process.pid: part.total_wall_ns
                 for thread, part in groups.items()}, {11: 1100, 12: 1200})
            table = tables_of.by_key(its._tables, sites_of(its._tables), 9,
                                     'thread')
            self.assertEqual([row[-1] for row in table.rows],
                             ['MainThread, process 12',
                              'MainThread, process 11'])
            self.assertCountEqual(document_of(its).threads, [
                'MainThread, process 11', 'MainThread, process 12'])

    def test_one_number_of_two_processes(self):
        profiles = []
        for ns, (host, start_ns) in enumerate((('a', 1), ('a', 2), ('b', 1)),
                                              5):
            b = Builder(value_types=[('wall', 'nanoseconds')], pid=1)
            b.thread('MainThread', ident=1, native_id=1,
                     process=Process(1, host, start_ns))
            b.sample('a.f:1', values=(ns,))
            profiles.append(b.profile())
        merged = self.merge(*profiles)
        for its in merged, reloaded(merged):
            self.assertEqual(len(its.group_by('thread')), 3)
            self.assertEqual(
                {name: part.total_wall_ns
                 for name, part in its.group_by('pid').items()},
                {'1 on a #1': 5, '1 on a #2': 6, '1 on b': 7})
            self.assertEqual(
                its.where('pid', 'on b').total_wall_ns, 7)
        again = self.merge(profiles[0], reloaded(profiles[0]))
        self.assertEqual(len(again.group_by('thread')), 1)

    def test_merged_once_more(self):
        profiles = [process(pid, ns=pid) for pid in range(1, 6)]
        at_once = self.merge(*profiles)
        in_steps = self.merge(
            reloaded(self.merge(*profiles[:2])),
            self.merge(profiles[2]), self.merge(*profiles[3:]))
        self.assertEqual(facts_of(in_steps), facts_of(at_once))

    def test_whose_code_it_is(self):
        # Whoever knows that it is installed is believed, in any order.
        profiles = []
        for pid, origin in enumerate(('mine', 'packages', 'mine'), 1):
            profile = process(pid)
            tables = profile._tables
            tables.origins = {code: origin for code in tables.origins}
            profiles.append(profile)
        for those in itertools.permutations(profiles):
            merged = self.merge(*those)
            self.assertEqual(set(merged._tables.origins.values()),
                             {'packages'})
            self.assertEqual(
                set(self.merge(self.merge(*those[:2]), those[2])
                    ._tables.origins.values()), {'packages'})

    def test_without_pid(self):
        # As in files of earlier versions and of other tools.
        profile = example().profile()
        self.assertIsNone(reloaded(profile).pid)
        merged = self.merge(profile, process(3))
        self.assertEqual(list(merged.group_by('pid')), [None, '3'])

    def test_modes(self):
        with self.assertRaisesRegex(ValueError, 'mode cpu with one of mode '
                                                'wall'):
            Profile.merge(process(1), process(2, mode='cpu'))

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
            (512, 'all', '3.13.5, 3.14'))

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

    def test_gauges_are_no_sums(self):
        parts = [process(1, stats={'memory_bytes': size, 'ticks': 1})
                 for size in (3, 7, 5)]
        for merged in (self.merge(*parts), parts[0] + parts[1] + parts[2],
                       sum(parts)):
            self.assertEqual(merged.stats, {'memory_bytes': 7, 'ticks': 3})

    def test_gauges_in_files_that_others_added_up(self):
        """Such files have the comments of all."""
        data = _pprof.encode(process(1, stats={'memory_bytes': 7})._tables,
                            compress=False)
        data += bytes([6 << 3 | 2, 21]) + b'# stat memory_bytes 5'
        strings = [value for field, _, value in fields(data) if field == 6]
        data += bytes([13 << 3, len(strings) - 1])
        self.assertEqual(Profile.load(io.BytesIO(data)).stats,
                         {'memory_bytes': 7})

    def test_too_large_a_sum(self):
        huge = process(1, ns=2 ** 62)
        other = process(2, 'a.other:1', ns=2 ** 62)
        for profiles in (huge, huge), (huge, other):
            with self.assertRaisesRegex(ValueError, 'more than 64 bits'):
                Profile.merge(*profiles)

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

    def test_what_is_no_profile(self):
        profile = process(1)
        for wrong in None, 5, [profile], profile._tables:
            for profiles in (wrong,), (profile, wrong):
                with self.assertRaisesRegex(TypeError, 'must be a Profile, '
                                            f'not {type(wrong).__name__}'):
                    Profile.merge(*profiles)

    def test_pids_of_another_tool(self):
        # It keeps the comments of all files: then no single one is right.
        data = _formats.encode(process(11)._tables, 'pprof', compress=False)
        more = message((13, len(validator.decode(data)['string_table'])))
        for pid, expected in (11, 11), (12, None):
            with self.subTest(pid=pid):
                text = message((6, f'# pid {pid}'))
                tables = _pprof_read.decode(data + text + more)
                self.assertEqual(tables['pid'], expected)

    def test_bad_pid_in_a_file(self):
        data = _formats.encode(process(11)._tables, 'pprof', compress=False)
        with self.assertRaisesRegex(ValueError, "'x1' for a number"):
            _pprof_read.decode(data.replace(b'# pid 11', b'# pid x1'))
