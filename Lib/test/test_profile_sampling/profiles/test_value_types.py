"""Types of values: a profile with more than the three that are measured."""

import os
import tempfile
import unittest

from profile_sampling import Profile
from profile_sampling._data.values import ValueType
from profile_sampling._formats import text

from ..support.builders import Builder, facts_of
from ..support.validator import check_pprof, check_profile

TIMES = ('samples', 'count'), ('cpu', 'nanoseconds'), ('wall', 'nanoseconds')
ALLOC = 'alloc', 'bytes'


def four(mode='wall', **facts):
    b = Builder(mode=mode, value_types=(*TIMES, ALLOC), **facts)
    b.sample('a.main:1 a.f:2', values=(1, 2, 3, 4_096), labels={'r': '/a'})
    b.sample('a.main:1 a.f:2 a.f:2', values=(1, 2, 30, 512))
    b.sample('a.main:1 C:time.sleep [waiting]', values=(2, 0, 5_000, 0),
             state='waiting')
    b.sample('a.main:1 [GIL~wait]', values=(1, 0, 700, 7), state='gil_wait',
             holder=(0, 'a.f:2'))
    return b


class ValueTypesTest(unittest.TestCase):

    def saved(self, profile):
        """Save, check and load a profile."""
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, 'p.pb.gz')
            profile.save(path)
            with open(path, 'rb') as file:
                self.file = check_pprof(file.read())
            loaded = Profile.load(path)
        check_profile(loaded)
        return loaded

    def test_samples(self):
        profile = four().profile()
        self.assertEqual(profile.value_types[3],
                         ValueType('alloc_bytes', 'alloc', 'bytes'))
        sample = profile.samples[0]
        self.assertEqual(sample.values, (1, 2, 3, 4_096))
        self.assertEqual((sample.count, sample.cpu_ns, sample.wall_ns,
                          sample.alloc_bytes), sample.values)
        self.assertEqual(repr(sample), '<Sample running count=1 cpu_ns=2 '
                                       'wall_ns=3 alloc_bytes=4096>')

    def test_a_value_that_is_not_there(self):
        profile = four().profile()
        with self.assertRaisesRegex(ValueError, "'bogus'.*wall, alloc"):
            profile.total('bogus')
        for values in profile.samples[0], profile.functions()[0]:
            with self.assertRaisesRegex(AttributeError, 'bogus'):
                values.bogus
        with self.assertRaisesRegex(AttributeError, "'bogus'.*alloc_bytes"):
            profile.functions()[0].self_bogus

    def test_functions_and_lines(self):
        profile = four().profile()
        for rows in profile.functions(), profile.lines():
            rows = {row.function.name: row for row in rows}
            self.assertEqual(rows['a.f'].self_values, (2, 4, 33, 4_608))
            self.assertEqual(rows['a.f'].cum_values, (2, 4, 33, 4_608))
            self.assertEqual(rows['a.main'].self_alloc_bytes, 0)
            self.assertEqual(rows['a.main'].cum_alloc_bytes, 4_615)
            self.assertIn('cum_alloc_bytes=4615', repr(rows['a.main']))

    def test_labels_holders_and_instructions(self):
        profile = four().profile()
        rows = {row.value: row.alloc_bytes
                for row in profile.label_values('r')}
        self.assertEqual(rows, {'/a': 4_096, None: 519})
        row, = profile.gil_holders()
        self.assertEqual((row.wall_ns, row.alloc_bytes), (700, 7))
        row = max(profile.instructions(), key=lambda row: row.self_wall_ns)
        self.assertEqual(row.self_values, (3, 0, 5_700, 7))
        self.assertEqual([callee.alloc_bytes for callee in row.callees],
                         [0, 7])

    def test_files(self):
        for mode in 'wall', 'cpu', 'alloc', 'samples':
            with self.subTest(mode=mode):
                profile = four(mode).profile()
                loaded = self.saved(profile)
                self.assertEqual(facts_of(loaded), facts_of(profile))
                self.assertEqual(loaded.value_types, profile.value_types)
                self.assertEqual(self.file['default_sample_type'], mode)

    def test_a_file_without_times(self):
        b = Builder(mode='alloc', value_types=(('samples', 'count'), ALLOC))
        profile = b.sample('a.f:1', values=(1, 10)).profile()
        loaded = self.saved(profile)
        self.assertEqual(loaded.value_types, profile.value_types)
        with self.assertRaisesRegex(AttributeError, "'wall_ns'.*: count, al"):
            loaded.samples[0].wall_ns
        with self.assertRaisesRegex(AttributeError, "'cpu_ns'.*: count, al"):
            loaded.functions()[0].self_cpu_ns
        self.assertIn(' samples=1 ', repr(loaded))
        loaded = Builder(mode='alloc', value_types=[ALLOC]).sample(
            'a.f:1', values=(10,), labels={'a': 'b'}).profile()
        self.assertIn(' alloc_bytes=10 ', repr(loaded))
        self.assertEqual(loaded.label_values('a')[0].values, (10,))
        self.assertIn('\nalloc 10 B in all threads\n',
                      text.render(loaded._tables))

    def test_order_is_by_what_the_profile_is_about(self):
        for mode, first in ('wall', '[waiting]'), ('alloc', 'a.f'):
            profile = four(mode).profile()
            self.assertEqual(profile.functions()[0].function.name, first)
        self.assertEqual([row.value for row in profile.label_values('r')],
                         ['/a', None])

    def test_merge_with_fewer_and_in_another_order(self):
        b = Builder(pid=3, value_types=(ALLOC, *reversed(TIMES)))
        b.sample('a.f:2', values=(1, 20, 300, 4_000))
        profiles = [Builder(pid=1).sample('a.f:2', wall_ns=9).profile(),
                    four(pid=2).profile(), b.profile()]
        for profiles in profiles, profiles[::-1]:
            merged = Profile.merge(*profiles)
            check_profile(merged)
            self.assertEqual(
                {value_type.name: merged.total(value_type.name)
                 for value_type in merged.value_types},
                {'count': 4_006, 'cpu_ns': 304, 'wall_ns': 5_762,
                 'alloc_bytes': 4_616})

    def test_text(self):
        report = text.render(four('alloc').profile()._tables)
        for line in ('Alloc profile of Python ',
                     '\nalloc 4.5 KB in all threads; wall 5.7us; CPU ',
                     '\n#   self   alloc  line',
                     '\n1  99.8%  4.5 KB  a.f:2\n'):
            self.assertIn(line, report)
        self.assertLessEqual(max(map(len, report.splitlines())), 100)

    def test_what_cannot_be(self):
        for facts, message in (
                ({'mode': 'alloc'}, "mode 'alloc' .* there are: samples, cpu"),
                ({'value_types': (*TIMES, ('wall_ns', 'count'))},
                 "two types of values have the name 'wall_ns'")):
            with self.assertRaisesRegex(ValueError, message):
                Builder(**facts).profile()
