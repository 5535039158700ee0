"""Time lines in pprof files."""

import binascii
import gzip
import io
import json
import random
import unittest
import zlib
from array import array

from profile_sampling import Profile
from profile_sampling._formats.pprof import moments, packed, writer

from ..support import hard_profiles
from ..support.builders import (
    Builder, example, facts_of, message_with, reloaded)
from ..support.random_profiles import random_profile
from ..support.timed import timed, with_records


def str_of(profile):
    """The text report."""
    text = io.StringIO()
    profile.report(text, color='never')
    return text.getvalue()


def what(profile):
    """What records say, in words that do not depend on the order of rows."""
    line = profile.timeline
    samples = profile.samples
    return sorted([
        (time_ns, *values, samples[row].thread.ident, samples[row].state,
         # A file has no surrogates.
         ascii([(frame.function.name, frame.line, frame.column)
                for frame in samples[row].stack]).replace('\\\\', '\\'),
         ascii(samples[row].labels).replace('\\\\', '\\'),
         str(samples[row].task_id))
        for time_ns, row, *values in zip(*line.columns)])


class RoundTripTest(unittest.TestCase):

    def check(self, profile):
        loaded = reloaded(profile)
        self.assertFalse(loaded.timeline.is_stale)
        self.assertEqual(loaded.timeline.resolution_ns,
                         profile.timeline.resolution_ns)
        self.assertEqual(what(loaded), what(profile))
        self.assertEqual(loaded.timeline.untimed(loaded._tables),
                         profile.timeline.untimed(profile._tables))
        # Written again it is the same, to the byte.
        data = writer.encode(loaded._tables)
        self.assertEqual(
            writer.encode(reloaded(loaded)._tables), data)
        return loaded

    def test_random_profiles(self):
        for seed in range(20):
            rng = random.Random(seed)
            with self.subTest(seed):
                profile = timed(random_profile(rng), rng)
                loaded = self.check(profile)
                self.assertEqual(facts_of(loaded), facts_of(profile))

    def test_hard_profiles(self):
        rng = random.Random(1)
        for make in (hard_profiles.recursive, hard_profiles.hostile,
                     hard_profiles.deep):
            with self.subTest(make.__name__):
                self.check(timed(make().profile(), rng))

    def test_no_records(self):
        self.check(with_records(Builder().profile(), []))
        self.check(with_records(example().profile(), []))

    def test_resolution(self):
        b = Builder()
        b.sample('a.f:1', wall_ns=5)
        self.check(with_records(b.profile(), [(10, 0, 1, 0, 5)], 4_000_000))

    def test_samples_that_a_file_has_as_one(self):
        b = Builder(names=0)
        for place in ('a.f:1@CALL+2', 'a.f:1@CALL+8'):
            b.sample(f'{place} a.g:1', wall_ns=3, cpu_ns=1)
        b.sample('a.h:1', wall_ns=9)
        profile = with_records(b.profile(), [
            (10, 1, 1, 1, 3), (20, 0, 1, 1, 3), (30, 2, 1, 0, 9)])
        loaded = reloaded(profile)
        self.assertEqual(len(loaded.samples), 2)
        self.assertEqual(list(loaded.timeline.sample), [0, 0, 1])
        self.assertEqual(list(loaded.timeline.wall_ns), [3, 3, 9])

    def test_other_formats(self):
        profile = timed(example().profile(), random.Random(2))
        for format in 'collapsed', 'svg', 'profile-json', 'text':
            plain, with_line = io.BytesIO(), io.BytesIO()
            example().profile().save(plain, format)
            profile.save(with_line, format)
            plain, with_line = plain.getvalue(), with_line.getvalue()
            if format == 'text':
                self.assertIn(b'Time line: ', with_line)
            elif format == 'profile-json':
                plain, with_line = json.loads(plain), json.loads(with_line)
                self.assertIsNone(plain.pop('timeline'))
                with_line.pop('timeline')
                self.assertEqual(
                    with_line['tables'].pop('records')['time_ns'],
                    list(profile.timeline.time_ns))
                self.assertEqual(with_line, plain)
            else:
                self.assertEqual(with_line, plain)


class DamagedTest(unittest.TestCase):

    def setUp(self):
        b = Builder()
        b.sample('a.f:1', wall_ns=10, cpu_ns=4, count=2)
        b.sample('a.g:1', wall_ns=5, cpu_ns=0, count=1)
        self.profile = with_records(
            b.profile(), [(6, 0, 1, 2, 5), (9, 1, 1, 0, 5), (12, 0, 1, 2, 5)])
        self.message = writer.encode(self.profile._tables, compress=False)
        self.comment = moments.comment(self.profile._tables, [0, 1])

    def load(self, comment):
        """Read the file with another comment of the same profile."""
        tables = self.profile._tables.with_timeline(None)
        message = message_with(tables, [comment])
        return Profile.load(io.BytesIO(gzip.compress(message)))

    def changed(self, number, value):
        fields = self.comment.split(' ')
        fields[number] = value
        return ' '.join(fields)

    def columns(self, *columns):
        data = b''.join([moments._planes(array('q', column))
                         for column in columns])
        fields = self.comment.split(' ')
        fields[-3:] = [str(len(columns[0])), 'plain',
                       binascii.b2a_base64(data, newline=False).decode()]
        return ' '.join(fields)

    def test_what_is_written(self):
        self.assertEqual(what(self.load(self.comment)), what(self.profile))
        self.assertEqual(
            what(self.load(self.columns([6, 3, 3], [0, 1, 0], [1, 1, 1],
                                        [2, 0, 2], [5, 5, 5]))),
            what(self.profile))

    def test_another_tool_has_changed_the_file(self):
        for comment in (self.changed(2, '2'), self.changed(3, '3'),
                        self.changed(4, '4'), self.changed(6, '16'),
                        # Its samples are in another order.
                        self.columns([6, 3, 3], [1, 0, 1], [1, 1, 1],
                                     [2, 0, 2], [5, 5, 5])):
            line = self.load(comment).timeline
            self.assertTrue(line.is_stale, comment)
            self.assertEqual(len(line), 0)

    def test_files_that_were_added_up(self):
        tables = self.profile._tables.with_timeline(None)
        message = message_with(tables, [self.comment, self.comment])
        loaded = Profile.load(io.BytesIO(gzip.compress(message)))
        self.assertTrue(loaded.timeline.is_stale)
        self.assertIn('left out', str_of(loaded))
        with self.assertRaisesRegex(ValueError, 'another tool'):
            loaded.between(0, 10)

    def test_values_that_another_tool_has_renamed(self):
        data = self.message.replace(b'\x07samples', b'\x07records')
        self.assertNotEqual(data, self.message)
        stale = Profile.load(io.BytesIO(gzip.compress(data)))
        self.assertTrue(stale.timeline.is_stale)
        # Written again it has none.
        for format in 'pprof', 'html':
            with self.subTest(format):
                file = io.BytesIO()
                stale.save(file, format)
                file.seek(0)
                loaded = Profile.load(file)
                self.assertIsNone(loaded.timeline)
                self.assertEqual(loaded, stale)

    def test_damage(self):
        good = [6, 3, 3], [0, 1, 0], [1, 1, 1], [2, 0, 2], [5, 5, 5]
        bad = {
            'cut off': self.comment.rpartition(' ')[0],
            'another length': self.changed(8, '4'),
            'no number': self.changed(8, '-1'),
            'is no number': self.changed(7, '٣'),
            'time line': self.changed(10, 'A' * 41),
            'damaged': self.changed(10, 'AAAA'),
            'negative': self.columns([6, -3, 3], *good[1:]),
            'nowhere': self.columns([6, 3, 3], [0, 2, 0], *good[2:]),
            'is nowhere': self.columns([0, 3, 3], *good[1:]),
            'too long': self.columns([1 << 62, 1 << 62, 3], *good[1:]),
            'another': self.changed(9, 'lzma')}
        for message, comment in bad.items():
            with (self.subTest(message), self.assertRaisesRegex(
                    ValueError, message)):
                self.load(comment)

    def test_what_unpacks_to_much(self):
        bomb = zlib.compress(bytes(100_000_000))
        text = binascii.b2a_base64(bomb, newline=False).decode()
        with self.assertRaisesRegex(ValueError, 'another length'):
            self.load(self.changed(10, text))
        fields = self.changed(10, text).split(' ')
        fields[8] = str(1 << 50)
        with self.assertRaisesRegex(ValueError, 'bytes of memory'):
            self.load(' '.join(fields))

    def test_damage_at_random(self):
        rng = random.Random(9)
        for _ in range(300):
            text = list(self.comment)
            for _ in range(rng.randrange(1, 4)):
                text[rng.randrange(len('# timeline '), len(text))] = (
                    rng.choice('0123456789AZaz+/= -.'))
            try:
                profile = self.load(''.join(text))
            except ValueError:
                continue
            self.assertLessEqual(
                0, min(profile.timeline.untimed(profile._tables)))

    def test_a_file_without_zlib(self):
        saved = packed.zlib
        self.addCleanup(setattr, packed, 'zlib', saved)
        packed.zlib = None
        comment = moments.comment(self.profile._tables, [0, 1])
        self.assertIn(' plain ', comment)
        self.assertEqual(what(self.load(comment)), what(self.profile))
