"""Time lines as values: ranges, parts, sums, bounds."""

import copy
import io
import pickle
import random
import unittest
from unittest import mock

from profile_sampling import Profile, _formats
from profile_sampling._data import timeline

from ..support.builders import Builder, example, process, reloaded
from ..support.page_documents import document_of
from ..support.random_profiles import contents, random_profile, sum_of
from ..support.timed import timed, with_records

MS = 1_000_000


def two_samples():
    """a.f has 10 ms wall and 4 CPU, in two records; a.g 5 ms, in one."""
    b = Builder(duration_ns=20 * MS)
    b.sample('a.f:1', wall_ns=10 * MS, cpu_ns=4 * MS, count=7)
    b.sample('a.g:2', wall_ns=5 * MS, cpu_ns=0, count=1, state='waiting')
    return with_records(b.profile(), [
        (6 * MS, 0, 3, MS, 6 * MS), (15 * MS, 0, 4, 3 * MS, 4 * MS),
        (11 * MS, 1, 1, 0, 5 * MS)])


def values(profile):
    return {sample.stack[0].function.name: sample.values
            for sample in profile.samples}


def untimed(profile):
    return profile.timeline.untimed(profile._tables)


class RangeTest(unittest.TestCase):

    def test_whole_records(self):
        part = two_samples().between(6 * MS, 15 * MS)
        self.assertEqual(values(part), {
            'a.f': (4, 3 * MS, 4 * MS), 'a.g': (1, 0, 5 * MS)})

    def test_a_record_that_is_partly_in_it(self):
        profile = two_samples()
        # It is from 0 to 6 ms; its moment is not in the range.
        self.assertEqual(values(profile.between(MS, 4 * MS)),
                         {'a.f': (0, MS // 2, 3 * MS)})
        self.assertEqual(values(profile.between(4 * MS, 6 * MS)),
                         {'a.f': (3, MS - 4 * MS // 6, 2 * MS)})

    def test_what_it_is_after_and_until(self):
        b = Builder()
        b.sample('a.f:1', wall_ns=0, count=3)
        profile = with_records(b.profile(), [(5, 0, 1, 0, 0), (6, 0, 2, 0, 0)])
        self.assertEqual(values(profile.between(4, 5)), {'a.f': (1, 0, 0)})
        self.assertEqual(values(profile.between(5, 6)), {'a.f': (2, 0, 0)})

    def test_one_that_began_before_the_session(self):
        b = Builder()
        b.sample('a.f:1', wall_ns=10 * MS, cpu_ns=MS)
        profile = with_records(b.profile(), [(4 * MS, 0, 1, MS, 10 * MS)])
        self.assertEqual(values(profile.between(0, MS)),
                         {'a.f': (0, MS // 4, 10 * MS // 4)})

    def test_ranges_that_meet_add_up(self):
        rng = random.Random(5)
        for seed in range(20):
            profile = timed(random_profile(random.Random(seed)), rng)
            with self.subTest(seed):
                cuts = sorted({0, 1 << 62, *[
                    rng.randrange(profile.duration_ns) for _ in range(9)]})
                parts = [profile.between(*pair)
                         for pair in zip(cuts, cuts[1:])]
                self.assertEqual(sum_of(map(contents, parts)), {
                    key: row for key, row in contents(profile).items()
                    if any(row)})
                # Cut anew, what is cut is the same.
                whole = profile.between(cuts[2], cuts[6])
                self.assertEqual(sum_of([contents(part) for part
                                         in parts[2:6]]), contents(whole))

    def test_a_part_has_its_records(self):
        profile = two_samples()
        part = profile.filter(state='waiting')
        self.assertEqual([list(column) for column in part.timeline.columns],
                         [[11 * MS], [0], [1], [0], [5 * MS]])
        self.assertEqual(values(part.between(10 * MS, 11 * MS)),
                         {'a.g': (1, 0, MS)})
        self.assertEqual(
            values(profile.between(10 * MS, 11 * MS).filter(state='waiting')),
            {'a.g': (1, 0, MS)})
        self.assertEqual(untimed(part), (0, 0, 0))

    def test_a_range_of_a_range(self):
        profile = two_samples()
        part = profile.between(2 * MS, 14 * MS)
        self.assertEqual(part._tables.span_ns, (2 * MS, 14 * MS))
        self.assertEqual(values(part.between(7 * MS, 10 * MS)),
                         values(profile.between(7 * MS, 10 * MS)))

    def test_a_file_knows_its_range(self):
        part = two_samples().between(2 * MS, 14 * MS)
        for name in 'p.pb.gz', 'p.html':
            file = io.BytesIO()
            part.save(file, 'html' if name.endswith('html') else 'pprof')
            file.seek(0)
            loaded = Profile.load(file)
            self.assertEqual(loaded._tables.span_ns, (2 * MS, 14 * MS))
            self.assertEqual(values(loaded.between(7 * MS, 10 * MS)),
                             values(part.between(7 * MS, 10 * MS)))

    def test_a_damaged_range(self):
        tables = two_samples().between(2 * MS, 14 * MS)._tables
        for begin_ns, end_ns in (3, 2), (-1, 2), ('x', 2), (2, ''):
            tables.span_ns = begin_ns, end_ns
            with self.assertRaises(ValueError):
                Profile.load(io.BytesIO(_formats.encode(tables, 'pprof')))

    def test_hidden_frames(self):
        b = Builder()
        b.sample('a.f:1 a.x:1', wall_ns=5)
        b.sample('a.f:1', wall_ns=6)
        profile = with_records(b.profile(), [(10, 0, 1, 0, 5), (20, 1, 1, 0, 6)
                                             ]).hide(r'^a\.x$')
        self.assertEqual(len(profile.samples), 1)
        self.assertEqual(values(profile.between(0, 10)), {'a.f': (1, 0, 5)})

    def test_what_has_no_moments(self):
        b = Builder(value_types=[('samples', 'count'), ('cpu', 'nanoseconds'),
                                 ('alloc', 'bytes'), ('wall', 'nanoseconds')])
        b.sample('a.f:1', values=(1, 2, 4096, 8))
        profile = with_records(b.profile(), [(10, 0, 1, 2, 8)])
        part = profile.between(0, 10)
        self.assertEqual([value_type.name for value_type in part.value_types],
                         ['count', 'cpu_ns', 'wall_ns'])
        self.assertEqual(values(part), {'a.f': (1, 2, 8)})

    def test_no_time_line(self):
        profile = example().profile()
        self.assertIsNone(profile.timeline)
        with self.assertRaisesRegex(ValueError, '--timeline'):
            profile.between(0, 1)

    def test_a_range_that_is_none(self):
        for begin, end in (1, 1), (2, 1):
            with self.assertRaisesRegex(ValueError, 'before it begins'):
                two_samples().between(begin, end)

    def test_an_idle_thread_of_a_range(self):
        b = Builder(duration_ns=1000 * MS)
        main, pool = b.thread('MainThread'), b.thread('pool')
        b.sample('a.main:1', wall_ns=1000 * MS, thread=main)
        b.sample('a.wait:1', wall_ns=1000 * MS, thread=pool, state='waiting')
        profile = with_records(b.profile(), [
            (1000 * MS, 0, 1, 0, 1000 * MS), (1000 * MS, 1, 1, 0, 1000 * MS)])
        for part in profile, profile.between(100 * MS, 200 * MS):
            self.assertRegex(str(part), 'of it idle and left out')


class ValueTest(unittest.TestCase):

    def test_a_profile_is_immutable(self):
        profile = two_samples()
        for made in (profile, profile.between(0, 7 * MS),
                     profile.filter(state='waiting'), reloaded(profile)):
            for column in made.timeline.columns:
                with self.assertRaises(TypeError):
                    column[0] = 7

    def test_copies(self):
        line = two_samples().timeline
        for again in (pickle.loads(pickle.dumps(line)), copy.deepcopy(line),
                      copy.copy(line)):
            self.assertEqual(again.columns, line.columns)
            self.assertEqual(again.resolution_ns, line.resolution_ns)
            self.assertIs(again.is_stale, line.is_stale)
        self.assertTrue(
            copy.copy(timeline.nothing(is_stale=True)).is_stale)


class SumTest(unittest.TestCase):

    def test_merged_profiles(self):
        start = 1_700_000_000_000_000_000
        first = with_records(process(1, start_time_ns=start),
                             [(500, 0, 1, 500, 1000)])
        later = with_records(process(2, start_time_ns=start + 7_000),
                             [(900, 0, 1, 500, 1000)])
        both = Profile.merge(later, first)
        self.assertEqual(
            sorted(zip(both.timeline.time_ns,
                       [both.samples[row].thread.process.pid
                        for row in both.timeline.sample])),
            [(500, 1), (7900, 2)])
        self.assertEqual(untimed(both), (0, 0, 0))
        # 6,900 to 7,900 ns is that of the second.
        self.assertEqual(values(both.between(6_900, 8_000)),
                         {'app.f': (1, 500, 1000)})

    def test_gap(self):
        # A second of one process, two of nothing, a second of another.
        start = 1_700_000_000_000_000_000
        second = 1_000_000_000
        parts = [with_records(
            process(pid, ns=second, start_time_ns=start + after,
                    duration_ns=second),
            [(second, 0, 1, second // 2, second)])
            for pid, after in ((1, 0), (2, 3 * second))]
        both = Profile.merge(*parts)
        for its in both, reloaded(both):
            self.assertEqual(its.duration_ns, 2 * second)
            self.assertEqual(list(its.timeline.time_ns),
                             [second, 4 * second])
            part = its.between(2 * second, 3_500_000_000)
            self.assertEqual(part.total_wall_ns, second // 2)
            self.assertEqual(part._tables.length_ns, second // 2)
            self.assertIn('from 2.000 s to 3.500 s of 4.000 s', str(part))
            page = document_of(its)
            self.assertEqual((page.duration_ns, page.length_ns),
                             (4 * second, 2 * second))

    def test_too_many_records(self):
        profile = timed(random_profile(random.Random(3)), random.Random(2), 30)
        with mock.patch.object(timeline, 'MAX_RECORDS', 100):
            both = Profile.merge(profile, profile)
        line = both.timeline
        self.assertLessEqual(len(line), 100)
        self.assertGreaterEqual(line.resolution_ns,
                                timeline.FIRST_RESOLUTION_NS)
        self.assertEqual(untimed(both), (0, 0, 0))
        self.assertEqual(contents(both.between(0, 1 << 62)), {
            key: row for key, row in contents(both).items() if any(row)})
