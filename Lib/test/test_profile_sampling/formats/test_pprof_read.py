"""The pprof reader: what it restores, and other tools' files."""

import gzip
import os
import random
import tempfile
import unittest
from _opcode_metadata import _specializations, _specialized_opmap, opmap

from profile_sampling import Profile
from profile_sampling._data import opcodes
from profile_sampling._formats.pprof import writer as _pprof

from ..support.builders import Builder, example, facts_of, reloaded
from ..support.random_profiles import random_profile
from ..support.validator import check_profile, decode
from ..support.wire import message, varint


class FilesTest(unittest.TestCase):

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.path = os.path.join(directory.name, 'p.pb.gz')

    def load(self, data):
        # A new file each time: file systems flush one that is rewritten.
        if os.path.exists(self.path):
            os.unlink(self.path)
        with open(self.path, 'wb') as file:
            file.write(data)
        return Profile.load(self.path)

    def assertRefused(self, what, data):
        with self.assertRaisesRegex(ValueError, what) as caught:
            self.load(data)
        self.assertTrue(str(caught.exception).startswith(f'{self.path}: '),
                        caught.exception)


class RoundTripTest(FilesTest):

    def assertKept(self, builder):
        profile = builder.profile()
        profile.save(self.path)
        loaded = Profile.load(self.path)
        check_profile(loaded)
        self.assertEqual(facts_of(loaded), facts_of(profile))
        # And nothing is lost the second time.
        self.assertEqual(_pprof.encode(loaded._tables),
                         _pprof.encode(profile._tables))
        return loaded

    def test_counters_of_older_files(self):
        stats = {'ticks_unheard': 3, 'tasks_unheard': 4, 'captures_no_room': 5}
        Builder(stats=stats).profile().save(self.path)
        self.assertEqual(Profile.load(self.path).stats, {
            'ticks_no_signal': 3, 'tasks_untracked': 4,
            'captures_no_space': 5})

    def test_modules(self):
        b = Builder()
        for module, qualname in (('a', 'f'), ('a.b', 'C.f'), ('a.bc', 'f'),
                                 ('__main__', 'C.<locals>.f'), (None, 'f'),
                                 ('', 'f'), (None, '<module>')):
            b.sample([b.function(module, qualname, f'/{module}.py')],
                     wall_ns=1)
        profile = b.profile()
        self.assertEqual(
            {row.function for row in self.assertKept(b).functions()},
            {row.function for row in profile.functions()})

    def test_kinds(self):
        b = Builder()
        b.sample('a.f:1 C:time.sleep [waiting]', wall_ns=1)
        b.sample('a.f:1 op:int.__mul__', wall_ns=1)
        # Python code is told from the rest by its first line.
        b.sample([b.function('m', 'f', '<C>'),
                  b.function('m', 'f', '<operator>'),
                  b.function(None, '[f]', '')], wall_ns=1)
        kinds = {row.function.name + row.function.filename:
                 row.function.kind for row in self.assertKept(b).functions()}
        self.assertEqual(kinds, {
            'a.f/src/a.py': 'python', 'time.sleep': 'C',
            '[waiting]': 'pseudo', 'int.__mul__': 'operator',
            'm.f<C>': 'python', 'm.f<operator>': 'python', '[f]': 'python'})

    def test_instructions(self):
        b = Builder(names=3)
        b.sample('a.main:1@CALL+4 a.f:2@BINARY_OP+6', wall_ns=1)
        b.sample('a.main:1@CALL+4 a.f:2@BINARY_OP_ADD_INT+6 op:int.__add__',
                 wall_ns=2)
        b.sample('a.main:1@CALL+4 a.f:2@BINARY_OP_ADD_INT+10', wall_ns=4)
        b.sample('a.main:1@CALL_KW+4 C:time.sleep [waiting]', wall_ns=8)
        b.sample('a.f:9', wall_ns=16)
        b.sample('[lost]', wall_ns=32)
        self.assertEqual(self.assertKept(b).instructions(),
                         b.profile().instructions())

    def test_instructions_of_stacks_that_are_not_packed(self):
        # Some encoders write a field per location.
        b = Builder(names=3)
        b.sample('a.main:1 a.f:2@CALL+6 C:time.sleep', wall_ns=1)
        data = _pprof.encode(b.profile()._tables, compress=False)
        strings = decode(data)['string_table']
        label = message((1, strings.index(b'opcode')),
                        (2, strings.index(b'CALL')))
        sample = message((1, 3), (1, 2), (1, 1), (2, [1, 0, 1]), (3, label))
        packed, unpacked = self.load(data + message((2, sample))).samples
        self.assertEqual([frame.opname for frame in unpacked.stack],
                         [None, 'CALL', None])
        self.assertEqual([frame.function for frame in unpacked.stack],
                         [frame.function for frame in packed.stack])

    def test_a_task_without_an_id(self):
        b = Builder().sample('a.f:1', wall_ns=1, task=('t', 0))
        sample, = self.assertKept(b).samples
        self.assertEqual((sample.task_name, sample.task_id), ('t', None))

    def test_callers_have_no_instructions(self):
        b = Builder(names=3).sample('a.main:1@CALL+4 a.f:2@NOP+6')
        f, main = self.assertKept(b).samples[0].stack
        self.assertEqual((f.instruction_offset, f.opname), (6, 'NOP'))
        self.assertEqual((main.instruction_offset, main.opname), (-1, None))

    def test_an_instruction_of_another_version(self):
        b = Builder(names=3).sample('a.f:2@BINARY_OP_ADD_INT+6', wall_ns=1)
        data = _pprof.encode(b.profile()._tables, compress=False).replace(
            b'BINARY_OP_ADD_INT', b'BINARY_OP_ADD_NEW')
        frame, = self.load(data).samples[0].stack
        self.assertEqual(
            (frame.instruction_offset, frame.opname, frame.base_opname),
            (6, 'BINARY_OP_ADD_NEW', 'BINARY_OP'))
        # A file cannot take more than some memory by names.
        for name in 'X' * 65, 'lower', 'NO-NAME', '':
            self.assertEqual(opcodes.number(name), opcodes.UNKNOWN)

    def test_families(self):
        self.assertEqual(
            {name for name in _specialized_opmap
             if not opcodes.is_specialized(opcodes.number(name))}, set())
        self.assertEqual(
            {opcodes.name(opcodes.base(opcodes.number(name)))
             for name in _specialized_opmap}, set(_specializations))
        self.assertEqual(
            {name for name, number in opmap.items()
             if 0 < number < 256 and opcodes.is_specialized(number)}, set())

    def test_facts(self):
        for builder in (
                *[example(mode=mode, names=names, rate_hz=7, depth_frames=9,
                          python_version='3.13.99')
                  for mode in ('wall', 'cpu') for names in range(4)],
                Builder(stats={'ticks': 0, 'late': 3}),
                Builder(names=3).sample(f'a.f:2@NOP+{2 ** 31 - 1}',
                                        wall_ns=1)):
            self.assertKept(builder)

    def test_numbers_at_the_edges(self):
        b = Builder(start_time_ns=2 ** 63 - 1, duration_ns=2 ** 63 - 1,
                    stats={'max': 2 ** 63 - 1, 'minus': -5})
        thread = b.thread('t', ident=2 ** 64 - 1, native_id=2 ** 31 - 1,
                          interpreter=2 ** 40)
        f = b.function('a', 'f', '/a.py', 2 ** 31 - 1)
        b.sample([(f, 2 ** 31 - 1, 2 ** 31 - 1, -1, 0)], count=2 ** 62,
                 cpu_ns=-2 ** 62, wall_ns=2 ** 63 - 1, thread=thread)
        # Ids of one, two and three bytes.
        for line in range(1, 20_000, 37):
            b.sample([(f, line), (f, line + 1), 'a.g:7'], cpu_ns=line)
        self.assertKept(b)

    def test_random_profiles(self):
        rng = random.Random(13)
        for _ in range(30):
            profile = random_profile(rng)
            self.assertEqual(facts_of(reloaded(profile)), facts_of(profile))

    def test_counts_for_the_margins_of_older_versions(self):
        """They are ignored, with the samples that have nothing else."""
        b = Builder(value_types=[
            ('samples', 'count'), ('cpu', 'nanoseconds'), *[
                (f'same_{place}{which}', 'count') for which in ('', '_2')
                for place in ('leaf', 'line', 'call')],
            ('wall', 'nanoseconds')])
        b.sample('a.main:1 a.f:2', values=(3, 2, 1, 1, 1, 0, 0, 0, 4))
        b.sample('a.main:1', values=(0, 0, 0, 0, 2, 0, 0, 1, 0))
        expected = Builder().sample('a.main:1 a.f:2', count=3, cpu_ns=2,
                                    wall_ns=4).profile()
        self.assertEqual(self.load(_pprof.encode(b.profile()._tables)),
                         expected)

    def test_blocked_of_older_versions(self):
        """It was the state of all that had given the GIL up."""
        for cpu_ns, state in (40, 'waiting'), (60, 'native'):
            b = Builder().sample('a.main:1', cpu_ns=cpu_ns, wall_ns=100,
                                 state='waiting')
            data = _pprof.encode(b.profile()._tables, compress=False)
            self.assertEqual(data.count(b'waiting'), 1)
            sample, = self.load(data.replace(b'waiting', b'blocked')).samples
            self.assertEqual(sample.state, state)

    def test_plain_and_joined_members(self):
        profile = example().profile()
        plain = _pprof.encode(profile._tables, compress=False)
        half = len(plain) // 2
        for data in (plain,
                     gzip.compress(plain[:half]) + gzip.compress(plain[half:]),
                     gzip.compress(plain) + bytes(100)):
            self.assertEqual(facts_of(self.load(data)), facts_of(profile))


def foreign(types, values, *, strings=(), default=0):
    """A file as another tool might write it."""
    table = ['', 'main', '/m.go', *strings]
    value_types = []
    for kind, unit in types:
        table += [kind, unit]
        value_types.append(message((1, len(table) - 2), (2, len(table) - 1)))
    line = message((1, 9), (2, 42))
    return message(
        *[(1, value_type) for value_type in value_types],
        # Not packed, as older encoders do.
        (2, message((1, 5), *[(2, value) for value in values])),
        (4, message((1, 5), (4, line))),
        (5, message((1, 9), (2, 1), (3, 1), (4, 2))),
        *[(6, text) for text in table], (14, default))


def sample_with_labels(*labels):
    """A sample of foreign(): a label is the string of its key, the field of
    its value (2 a text, 3 a number), the value."""
    return message((2, message((1, [5]), (2, [8]), *[
        (3, message((1, key), (field, value)))
        for key, field, value in labels])))


class OtherToolsTest(FilesTest):

    def test_types(self):
        """What each is called and counted in; the last one, or the default,
        is what the profile is about."""
        for types, values, default, expected in (
                ([('samples', 'count'), ('cpu', 'nanoseconds')], [3, 30], 0,
                 ('cpu', 3, 30, 0)),
                ([('wall-time', 'milliseconds'), ('cpu-time', 'microseconds'),
                  ('exception-samples', 'count'), ('wall-samples', 'count')],
                 [2, 3, 99, 5], 0, ('wall', 5, 3_000, 2_000_000)),
                ([('wall', 'nanoseconds'), ('samples', 'count'),
                  ('cpu', 'nanoseconds')], [1, 2, 3], 0, ('cpu', 2, 3, 1)),
                # String 3 is the name of the first type.
                ([('wall', 'nanoseconds'), ('cpu', 'nanoseconds')], [1, 2], 3,
                 ('wall', 0, 2, 1))):
            with self.subTest(types=types):
                profile = self.load(foreign(types, values, default=default))
                check_profile(profile)
                self.assertEqual(
                    (profile.mode, profile.total_count, profile.total_cpu_ns,
                     profile.total_wall_ns), expected)

    def test_types_that_are_refused(self):
        for what, types in (
                ('has 257 sample types; at most 256',
                 [(f't{i}', 'count') for i in range(257)]),
                ("two types of values have the name 'a'",
                 [('a', 'count'), ('a', 'count')]),
                ("unknown unit 'parsecs'", [('cpu', 'parsecs')])):
            self.assertRefused(what, foreign(types, [1] * len(types)))

    def test_places_and_facts(self):
        profile = self.load(foreign([('cpu', 'nanoseconds')], [30]))
        sample, = profile.samples
        frame, = sample.stack
        self.assertEqual((frame.function.name, frame.function.filename,
                          frame.line), ('main', '/m.go', 42))
        self.assertEqual((sample.state, profile.python_version,
                          profile.rate_hz), ('running', '', 0))

    def test_values_that_are_no_times(self):
        types = [('alloc_objects', 'count'), ('alloc_space', 'bytes')]
        profile = self.load(foreign(types, [3, 4096]))
        check_profile(profile)
        self.assertEqual([(value_type.kind, value_type.unit)
                          for value_type in profile.value_types], types)
        self.assertEqual(profile.mode, 'alloc_space')
        self.assertEqual(profile.total('alloc_objects'), 3)
        row, = profile.functions()
        self.assertEqual((row.self_alloc_objects, row.cum_alloc_space_bytes),
                         (3, 4096))
        with self.assertRaisesRegex(AttributeError, "'cpu_ns'.*: alloc_obj"):
            profile.samples[0].cpu_ns

    def test_times_and_other_values(self):
        # A clock brings all three with it; the rest follows.
        profile = self.load(foreign(
            [('exceptions', 'count'), ('cpu', 'microseconds')], [3, 4]))
        self.assertEqual(
            [value_type.name for value_type in profile.value_types],
            ['count', 'cpu_ns', 'wall_ns', 'exceptions'])
        self.assertEqual(profile.samples[0].values, (0, 4_000, 0, 3))
        self.assertEqual(profile.mode, 'cpu')

    def test_inlined_calls_and_bare_addresses(self):
        # Location 6: main inlined into itself; location 7: no names.
        profile = self.load(
            foreign([('cpu', 'nanoseconds')], [7]) + message(
                (4, message((1, 6), *[(4, message((1, 9), (2, number)))
                                      for number in (10, 20)])),
                (4, message((1, 7), (3, 0xbeef))),
                (2, message((1, [6, 7]), (2, [8])))))
        stack = [(frame.function.name, frame.line, frame.column)
                 for frame in profile.samples[1].stack]
        self.assertEqual(stack, [('main', 10, 0), ('main', 20, 0),
                                 ('0xbeef', 0, 0)])
        self.assertEqual(profile.samples[1].stack[-1].function.kind, 'C')

    def test_labels_of_our_names_are_not_ours(self):
        # String 2 is the file's name, no instruction.
        profile = self.load(
            foreign([('cpu', 'nanoseconds')], [7],
                    strings=['opcode', 'CALL', 'instruction offset'])
            + sample_with_labels((3, 2, 4), (5, 3, 2 ** 40)))
        self.assertEqual(profile.names, 'off')
        frame, = profile.samples[0].stack
        self.assertEqual((frame.instruction_offset, frame.opcode), (-1, 0))

    def test_several_values_of_a_label(self):
        # String 2 is the file's name.
        profile = self.load(
            foreign([('cpu', 'nanoseconds')], [7], strings=['tag', 'x', 'y'])
            + sample_with_labels((3, 2, 4), (3, 2, 5), (3, 2, 4), (3, 3, 7),
                                 (4, 3, 9)))
        self.assertIn({'tag': 'x, y, 7', 'x': '9'},
                      [sample.labels for sample in profile.samples])
        profile.save(self.path)
        self.assertEqual(facts_of(Profile.load(self.path))['samples'],
                         facts_of(profile)['samples'])

    def test_labels_that_are_called_as_ours(self):
        # Of another tool's file they are the program's, also once saved.
        profile = self.load(
            foreign([('cpu', 'nanoseconds')], [7],
                    strings=['state', 'waiting', 'thread id', 'mine', 'opcode',
                             'label:x'])
            + sample_with_labels((3, 2, 4), (5, 2, 6), (7, 3, 9), (8, 3, 1)))
        profile.save(self.path)
        with gzip.open(self.path) as file:
            self.assertIn(b'label:state', file.read())
        for profile in profile, Profile.load(self.path):
            of_all = [sample for sample in profile.samples if sample.labels]
            self.assertEqual(
                [sample.labels for sample in of_all],
                [{'state': 'waiting', 'thread id': 'mine', 'opcode': '9',
                  'label:x': '1'}])
            self.assertEqual(of_all[0].state, 'running')
            self.assertEqual(
                {row.value for row in profile.label_values(
                    'label:state')},
                {None, 'waiting'})

    def test_unknown_fields_are_skipped(self):
        more = (message((99, 5), (98, b'abc'))
                + varint(97 << 3 | 1) + bytes(8)
                + varint(96 << 3 | 5) + bytes(4))
        data = foreign([('cpu', 'nanoseconds')], [7])
        self.assertEqual(self.load(data + more).total_cpu_ns, 7)

    def test_what_is_no_pprof_file(self):
        with open(__file__, 'rb') as file:
            self.assertRefused('is not a pprof file', file.read())
        self.assertRefused('is not a pprof file', gzip.compress(b'text'))
        self.assertRefused('is not a pprof file, or is damaged: ',
                           b'\x7fELF' + bytes(60))
        self.assertRefused('zstd', b'\x28\xb5\x2f\xfd' + bytes(40))
