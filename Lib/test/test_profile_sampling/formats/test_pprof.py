"""The pprof writer: the bytes, the fields, and the official decoder."""

import gzip
import os
import subprocess
import sys
import unittest
from unittest import mock

from profile_sampling._formats.pprof import writer as _pprof

from ..support import official
from ..support.builders import Builder, example
from ..support.validator import check_pprof


class WireTest(unittest.TestCase):

    def test_varint(self):
        # The examples of the encoding's documentation, and the edges.
        for value, encoded in ((0, '00'), (1, '01'), (127, '7f'),
                               (128, '8001'), (150, '9601'), (16383, 'ff7f'),
                               (16384, '808001'),
                               (-1, 'ff' * 9 + '01'),
                               (-2, 'fe' + 'ff' * 8 + '01'),
                               (2 ** 63 - 1, 'ff' * 8 + '7f')):
            b = Builder().sample('', count=1, cpu_ns=2, wall_ns=value)
            data = _pprof.encode(b.profile()._tables, compress=False)
            values = bytes.fromhex('0102' + encoded)
            self.assertIn(b'\x12' + bytes([len(values)]) + values, data)


class EncodeTest(unittest.TestCase):

    def decoded(self, builder):
        return check_pprof(_pprof.encode(builder.profile()._tables))

    def test_sample_types(self):
        for mode, other in (('wall', 'cpu'), ('cpu', 'wall')):
            profile = self.decoded(example(mode=mode))
            self.assertEqual(
                [(t['type'], t['unit']) for t in profile['sample_type']],
                [('samples', 'count'), (other, 'nanoseconds'),
                 (mode, 'nanoseconds')])
            # PITFALLS F2.
            self.assertEqual(profile['default_sample_type'], mode)
            self.assertEqual(profile['period_type'],
                             {'type': mode, 'unit': 'nanoseconds'})
            order = slice(None) if mode == 'wall' else slice(None, None, -1)
            b = Builder(mode=mode).sample('', count=2, cpu_ns=3, wall_ns=5)
            sample, = self.decoded(b)['sample']
            self.assertEqual(sample['value'], [2, *(3, 5)[order]])
            self.assertEqual(sample['location_id'], [])

    def test_header(self):
        profile = self.decoded(example(rate_hz=250))
        self.assertEqual(profile['time_nanos'], 1_700_000_000_000_000_000)
        self.assertEqual(profile['duration_nanos'], 2_000_000_000)
        self.assertEqual(profile['period'], 4_000_000)
        self.assertEqual(
            profile['doc_url'],
            'https://docs.python.org/3/library/profile_sampling.html')
        mapping, = profile['mapping']
        self.assertEqual(mapping['filename'],
                         'python%d.%d' % sys.version_info[:2])
        self.assertEqual(
            [mapping['has_functions'], mapping['has_filenames'],
             mapping['has_line_numbers'], mapping['has_inline_frames']],
            [1, 1, 1, 0])

    def test_comments(self):
        b = example(rate_hz=250, depth_frames=64, names=1,
                    python_version='3.13.5')
        comments = self.decoded(b)['comment']
        self.assertEqual(comments[:2], [
            'Python 3.13.5, mode wall, 250 Hz, depth 64 frames',
            'lost 3 samples: ring full'])
        self.assertIn('# stat lost_wall_ns 1000000', comments)
        self.assertIn('# stat ticks 2000', comments)
        self.assertIn('# names calls', comments)
        # pprof shows all that does not begin with '#'.
        self.assertTrue(all(comment.startswith('# ')
                            for comment in comments[2:]))

    def test_stack(self):
        b = Builder()
        f = b.function('a', 'f', '/a.py', 10)
        b.sample([(f, 12, 5, 8, 1), 'a.g:3', 'C:time.sleep', '[waiting]'],
                 wall_ns=1)
        profile = self.decoded(b)
        locations = {row['id']: row for row in profile['location']}
        functions = {row['id']: row for row in profile['function']}
        sample, = profile['sample']
        stack = []
        for number in sample['location_id']:
            line, = locations[number]['line']
            function = functions[line['function_id']]
            stack.append((function['name'], function['filename'],
                          function['start_line'], line['line'],
                          line['column']))
        self.assertEqual(stack, [
            ('[waiting]', '', 0, 0, 0),
            ('time.sleep', '<C>', 0, 0, 0),
            ('a.g', '/src/a.py', 1, 3, 0),
            ('a.f', '/a.py', 10, 12, 5)])

    def test_labels(self):
        b = Builder()
        one = b.thread('MainThread', ident=2 ** 64 - 5, native_id=77)
        two = b.thread(None, ident=9, native_id=78, interpreter=3)
        b.sample('a.f', thread=one)
        b.sample('a.f', thread=two, state='gil_wait')
        labels = [
            [(label['key'], label['str'] or label['num'])
             for label in sample['label']]
            for sample in self.decoded(b)['sample']]
        self.assertEqual(labels, [
            [('thread id', 2 ** 64 - 5), ('thread native id', 77),
             ('thread name', 'MainThread'), ('interpreter', 0),
             ('state', 'running')],
            [('thread id', 9), ('thread native id', 78),
             ('interpreter', 3), ('state', 'gil wait')]])

    def test_instructions(self):
        """Of the innermost Python frame; callers' make no more samples."""
        for names, samples, expected in (
                (3, ['a.main:1@CALL+4 a.f:2@BINARY_OP_ADD_INT+6'],
                 [('BINARY_OP_ADD_INT', 6, 1)]),
                (3, ['a.main:1@CALL_BUILTIN_O+4 C:time.sleep [waiting]'],
                 [('CALL_BUILTIN_O', 4, 1)]),
                (3, [f'a.main:1@{caller} a.f:2@NOP+6'
                     for caller in ('CALL+4', 'CALL_KW+8')],
                 [('NOP', 6, 2)]),
                (0, ['a.f:2@BINARY_OP+6', 'a.f:2@BINARY_OP+10'],
                 [(None, None, 2)]),
                (1, ['a.f:2@BINARY_OP+6', 'a.f:2@BINARY_OP+10'],
                 [(None, None, 2)]),
                # It is not known.
                (3, ['a.f:2', '[lost]', ''], [(None, None, 1)] * 3)):
            with self.subTest(names=names, samples=samples):
                b = Builder(names=names)
                for stack in samples:
                    b.sample(stack, wall_ns=1)
                found = []
                for sample in self.decoded(b)['sample']:
                    labels = {label['key']: label['str'] or label['num']
                              for label in sample['label']}
                    found.append((labels.get('opcode'),
                                  labels.get('instruction offset'),
                                  sample['value'][-1]))
                self.assertEqual(found, expected)

    def test_samples_of_one_stack_differ_by_instruction(self):
        b = Builder(names=2)
        for instruction in ('BINARY_OP+6', 'BINARY_OP_ADD_INT+6',
                            'BINARY_OP_ADD_INT+10'):
            b.sample(f'a.f:2@{instruction} op:int.__add__', wall_ns=3)
        profile = self.decoded(b)
        self.assertEqual(len(profile['location']), 2)
        self.assertEqual(len(profile['sample']), 3)
        self.assertEqual(
            len({tuple(sample['location_id'])
                 for sample in profile['sample']}), 1)

    def test_frames_that_pprof_cannot_tell_apart_are_one(self):
        b = Builder()
        f = b.function('a', 'f')
        g = b.function('a', 'g')
        for offset in (2, 8):
            b.sample([(f, 5, 1, offset, 0), (g, 9, 0, 0, 0)], wall_ns=3)
        profile = self.decoded(b)
        self.assertEqual(len(profile['location']), 2)
        sample, = profile['sample']
        self.assertEqual(sample['value'], [2, 0, 6])

    def test_other_tools_profile_without_rate_or_version(self):
        profile = self.decoded(Builder(rate_hz=0, python_version=''))
        self.assertEqual(profile['period'], 0)
        self.assertEqual(profile['mapping'][0]['filename'], 'python')

    def test_deterministic(self):
        code = ('import sys; sys.path[:0] = {path!r}\n'
                'from test.test_profile_sampling.support.builders '
                'import example\n'
                'from profile_sampling._formats.pprof import writer\n'
                'print(writer.encode(example().profile()._tables).hex())')
        code = code.format(path=sys.path)
        outputs = {
            subprocess.run([sys.executable, '-c', code], check=True,
                           env=os.environ | {'PYTHONHASHSEED': seed},
                           stdout=subprocess.PIPE).stdout
            for seed in '123'}
        self.assertEqual(len(outputs), 1)
        self.assertEqual(bytes.fromhex(outputs.pop().decode()),
                         _pprof.encode(example().profile()._tables))

    def test_without_zlib(self):
        profile = example().profile()
        with mock.patch.object(_pprof, 'zlib', None):
            data = _pprof.encode(profile._tables)
        self.assertEqual(data, gzip.decompress(_pprof.encode(profile._tables)))


@unittest.skipIf(official.descriptor_pb2 is None, official.WHY_SKIPPED)
class OfficialDecoderTest(unittest.TestCase):

    def test_it_writes_the_same_bytes(self):
        b = Builder().sample('', count=-1, cpu_ns=-2, wall_ns=-3)
        for builder in example(), example(mode='cpu'), Builder(), b:
            data = _pprof.encode(builder.profile()._tables, compress=False)
            message = official.profile_class()()
            message.ParseFromString(data)
            # What is outside of the schema.
            message.DiscardUnknownFields()
            self.assertEqual(message.SerializeToString(), data)
