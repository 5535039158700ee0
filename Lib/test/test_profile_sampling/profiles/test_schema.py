"""A value and a key that the core adds are everywhere, and nothing else is told.

A session that measures bytes in use, by the size of their blocks: the core, or
here the builder, says so in one place, and everything that knows rows shows it.
"""

import io
import json
import os
import random
import tempfile
import unittest

from profile_sampling import Profile, ProfileDiff
from profile_sampling._cli.main import main
from profile_sampling._data.schema import Key
from profile_sampling._formats import json as profile_json
from profile_sampling._formats.page.document import document

from ..support.builders import Builder, reloaded
from ..support.page_documents import Document
from ..support.timed import timed

_MIB = 1 << 20


def heap(large=3, pid=7, start_ns=0):
    """A heap: (stack, size class, bytes in use, blocks)."""
    b = Builder(pid=pid, mode='inuse', duration_ns=1_000_000,
                start_time_ns=1_700_000_000_000_000_000 + start_ns)
    b.more_keys = [Key('size_class')]
    b.more_values = [('inuse', 'bytes', 'level'), ('blocks', 'count')]
    for stack, size_class, n_bytes, blocks in (
            ('app.main:1 app.load:3', 4096, large * _MIB, 700),
            ('app.main:1 app.load:3', 64, 64_000, 1000),
            ('app.main:2 app.index:9', 64, 640_000, 10_000)):
        b.sample(stack, count=1, more=(n_bytes, blocks), key=(size_class,))
    return b.profile()


class SchemaTest(unittest.TestCase):

    def test_values(self):
        profile = heap()
        self.assertEqual([value.name for value in profile.value_types],
                         ['count', 'cpu_ns', 'wall_ns', 'inuse_bytes',
                          'blocks'])
        self.assertEqual(profile.total('inuse_bytes'), 3 * _MIB + 704_000)
        self.assertEqual({(sample.size_class, sample.inuse_bytes)
                          for sample in profile.samples},
                         {(4096, 3 * _MIB), (64, 64_000), (64, 640_000)})
        rows = {row.function.name: row.cum_inuse_bytes
                for row in profile.functions()}
        self.assertEqual(rows['app.load'], 3 * _MIB + 64_000)

    def test_report(self):
        for profile in heap(), reloaded(heap()):
            file = io.StringIO()
            profile.report(file)
            text = file.getvalue()
            self.assertRegex(text, r'inuse 3\.7 MB in use')
            self.assertRegex(text, r'app\.load')
            self.assertRegex(text, r'3\.1 MB')
            for word in 'running', 'run ', 'waiting', 'Quality', ' ns', '±':
                self.assertNotIn(word, text)

    def test_pprof(self):
        profile = heap()
        again = reloaded(profile)
        # What a profile is about is the last in its file.
        self.assertEqual(set(again.value_types), set(profile.value_types))
        self.assertEqual(again.value_types[again._tables.own].adds, 'level')
        self.assertEqual(reloaded(again), again)
        self.assertEqual(
            {(sample.size_class, sample.inuse_bytes, sample.blocks)
             for sample in again.samples},
            {(sample.size_class, sample.inuse_bytes, sample.blocks)
             for sample in profile.samples})
        self.assertEqual(again._tables.schema.keys,
                         profile._tables.schema.keys)

    def test_columns_and_json(self):
        profile = reloaded(heap())
        columns = profile.columns('samples')
        self.assertEqual(sorted(columns['size_class']), [64, 64, 4096])
        self.assertEqual(sum(columns['inuse_bytes']),
                         profile.total('inuse_bytes'))
        samples = json.loads(profile_json.encode(profile._tables))['tables'][
            'samples']
        for name in 'size_class', 'inuse_bytes':
            self.assertEqual(samples[name], columns[name])

    def test_parts(self):
        profile = reloaded(heap())
        parts = profile.group_by('size_class')
        self.assertEqual({key: part.total('inuse_bytes')
                          for key, part in parts.items()},
                         {'4096': 3 * _MIB, '64': 704_000})
        self.assertEqual(parts['64'].hide('load')._tables.schema,
                         profile._tables.schema)
        self.assertEqual(len(profile.where('size_class', '^64$').samples), 2)
        # Shaped, rows of one stack are still told apart by the key.
        self.assertEqual(len(profile.hide('app').samples), 2)

    def test_diff(self):
        diff = ProfileDiff(heap(), heap(large=5))
        [row] = [row for row in diff.rows if row.change]
        self.assertEqual((row.name, row.change), ('app.load', 2 * _MIB))
        diff = ProfileDiff(heap(), heap(large=5), by='size_class')
        [row] = [row for row in diff.rows if row.change]
        self.assertEqual((row.name, row.change), ('4096', 2 * _MIB))
        self.assertIn('2.0 MB', str(diff))
        # There is no clock and no sampling in it.
        self.assertIn('± -: taken as exact', str(diff))
        for word in 'clocks', 'error of sampling':
            self.assertNotIn(word, str(diff))

    def test_page(self):
        page = Document(document(heap()._tables))
        self.assertEqual((page.label_keys, page.label_sets), (
            ['size_class'], [[[0, '4096']], [[0, '64']]]))

    def test_parts_of_levels(self):
        profile = heap()
        parts = profile.group_by('size_class').values()
        for whole in sum(parts), Profile.merge(*parts):
            self.assertEqual(whole.total('inuse_bytes'),
                             profile.total('inuse_bytes'))
        self.assertEqual(sum(parts), profile)

    def test_levels_over_time(self):
        # Of one process what is there last; of several what is there in all.
        sums = heap(3) + heap(5, start_ns=9_000_000)
        self.assertEqual(sums.total('inuse_bytes'),
                         heap(5).total('inuse_bytes'))
        self.assertEqual(sums.total('blocks'), 2 * heap().total('blocks'))
        merged = Profile.merge(heap(5, start_ns=9_000_000), heap(3),
                               heap(1, pid=8))
        self.assertEqual(merged.total('inuse_bytes'),
                         heap(5).total('inuse_bytes')
                         + heap(1).total('inuse_bytes'))

    def test_with_a_profile_that_has_neither(self):
        b = Builder(pid=9)
        b.sample('app.main:1', wall_ns=5)
        both = Profile.merge(b.profile(), heap().by_value('wall'))
        self.assertEqual(both.total('inuse_bytes'), heap().total('inuse_bytes'))
        self.assertEqual({sample.size_class for sample in both.samples},
                         {0, 64, 4096})
        self.assertEqual(reloaded(both), both)

    def test_moments_with_a_profile_that_has_more_keys(self):
        b = Builder(pid=9)
        b.sample('app.main:1', wall_ns=500)
        plain = timed(b.profile(), random.Random(1))
        both = Profile.merge(plain, heap().by_value('wall'))
        self.assertEqual(sum(both.timeline.wall_ns), 500)
        self.assertEqual(sum(reloaded(both).timeline.wall_ns), 500)

    def test_command(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 'a.pb.gz')
            out = os.path.join(folder, 'out.txt')
            heap().save(path)
            main(['report', '--by', 'size_class', '-o', out, path])
            with open(out) as file:
                self.assertRegex(file.read(), r'3\.0 MB +4096')


class OtherToolsTest(unittest.TestCase):

    def test_delay_of_go(self):
        # F9: it is no delay of asyncio's tasks, before and after saving.
        b = Builder(value_types=[('contentions', 'count'),
                                 ('delay', 'nanoseconds')], mode='delay')
        b.sample('sync.(*Mutex).Unlock:9', values=(3, 3_000_000))
        for profile in b.profile(), reloaded(b.profile()):
            self.assertEqual(profile.loop_holders(), [])
            self.assertNotIn('tasks', str(profile))
