"""Input that is damaged or hostile.  PITFALLS F5."""

import gzip
import io
import os
import random
import subprocess
import sys
import textwrap
import time
import tracemalloc
import zlib
from unittest import mock

from test import support

try:
    import resource
except ImportError:
    resource = None

from profile_sampling import Profile
from profile_sampling._formats.pprof import writer as _pprof

from ..support.builders import example, facts_of
from ..support.validator import check_profile
from ..support.wire import message, varint
from .test_pprof_read import FilesTest


def broken(*, strings=('', 'cpu', 'nanoseconds'), types=((1, 2),),
           functions=(), locations=(), samples=(), more=b''):
    """A small file that one argument makes wrong."""
    types = [message((1, kind), (2, unit)) for kind, unit in types]
    return message(*[
        (field, data) for field, all_data in (
            (1, types), (2, samples), (4, locations), (5, functions),
            (6, strings)) for data in all_data]) + more


F1 = b'\x08\x01'                     # id = 1
L1 = b'\x08\x01\x22\x02\x08\x01'     # id = 1, line {function = 1}
S1 = b'\x0a\x01\x01\x12\x01\x07'     # location 1, value 7


class MalformedTest(FilesTest):

    def test_the_small_file_is_good(self):
        profile = self.load(broken(functions=[F1], locations=[L1],
                                   samples=[S1]))
        self.assertEqual(profile.total_cpu_ns, 7)

    def test_each_fault_is_named(self):
        good = {'functions': [F1], 'locations': [L1], 'samples': [S1]}
        huge = b'\xff' * 9 + b'\x01'
        for what, fault in (
                ('first string', {'strings': ['x', '', 'nanoseconds']}),
                ('is not a pprof file', {'strings': ['x', 'cpu', 'ns']}),
                ('is not a pprof file', {'strings': []}),
                ('no sample types', {'types': []}),
                ('string 9', {'types': [(9, 2)]}),
                ('not UTF-8', {'strings': [
                    '', 'cpu', 'nanoseconds', b'\xff']}),
                ('function has number 0', {'functions': [b'']}),
                ('two functions have number 1', {'functions': [F1, F1]}),
                ('string 7', {'functions': [F1 + b'\x10\x07']}),
                ('begins at line -1', {'functions': [F1 + b'\x28' + huge]}),
                ('location has number 0', {'locations': [L1[2:]]}),
                ('two locations have number 1', {'locations': [L1, L1]}),
                ('function 2, which does not', {
                    'locations': [L1[:-1] + b'\x02']}),
                ('has line -1', {'locations': [
                    b'\x08\x01\x22\x0d\x08\x01\x10' + huge]}),
                ('has line 2147483648', {'locations': [
                    b'\x08\x01\x22\x08\x08\x01\x10\x80\x80\x80\x80\x08']}),
                ('column -1', {'locations': [
                    b'\x08\x01\x22\x0d\x08\x01\x18' + huge]}),
                ('location 2, which does not', {
                    'samples': [b'\x0a\x01\x02\x12\x01\x07']}),
                ('0 values for 1', {'samples': [S1[:3]]}),
                ('2 values for 1', {'samples': [S1 + S1[3:]]}),
                ('beyond 64 bits', {'samples': [
                    S1[:3] + b'\x10' + b'\xff' * 8 + b'\x7f'] * 2}),
                ('label has the wrong', {'samples': [S1 + b'\x18\x01']}),
                ('string 5', {'samples': [S1 + b'\x1a\x02\x08\x05']}),
                ('is cut off', {'more': b'\x30'}),
                ('longer than what holds', {'more': b'\x32\x05a'}),
                ('longer than what holds', {'more': b'\x32' + huge}),
                ('longer than 64 bits', {'more': b'\x48' + b'\xff' * 11}),
                ('field has number 0', {'more': b'\x00\x00'}),
                ('wire type 3', {'more': b'\x0b'}),
                ('wire type 7', {'more': b'\x0f'}),
                ('field 6 has the wrong', {'more': b'\x30\x01'}),
                ('field 2 has the wrong', {'more': b'\x10\x01'}),
                ('field 9 has the wrong', {'more': b'\x4a\x00'}),
                ('string 9', {'more': b'\x68\x09'}),
                ('string -1', {'more': b'\x70' + huge})):
            with self.subTest(what=what, fault=fault):
                self.assertRefused(what, broken(**(good | fault)))

    def test_our_comments(self):
        for what, comment in (('unknown mode', 'mode sideways'),
                              ('unknown names', 'names everything'),
                              ('for a number', 'stat x 1_0'),
                              ('for a number', 'stat x'),
                              ('for a number', f'stat x {"9" * 5000}'),
                              ('for a number', 'rate_hz \u0663')):
            with self.subTest(comment=comment):
                self.assertRefused(what, broken(
                    strings=['', 'cpu', 'nanoseconds', _pprof.MARK,
                             f'# {comment}'], more=b'\x68\x03\x68\x04'))

    def test_an_offset_beyond_a_frame(self):
        # A label {key = 5, num = 2 ** 31} in a file that says it is ours.
        label = b'\x1a\x08\x08\x05\x18\x80\x80\x80\x80\x08'
        self.assertRefused('offset 2147483648', broken(
            strings=['', 'cpu', 'nanoseconds', _pprof.MARK,
                     '# names opcodes', 'instruction offset'],
            functions=[F1], locations=[L1], samples=[S1 + label],
            more=b'\x68\x03\x68\x04'))

    def test_not_a_profile(self):
        for what, data in (('empty', b''),
                           ('', b'hello world\n'),
                           ('', b'app.main;app.f 12\n'),
                           ('', b'\x7fELF\x02\x01\x01'),
                           ('', bytes(100)),
                           ('cut off', b'\x1f\x8b'),
                           ('compressed', b'\x1f\x8b\x08\xff' + bytes(50)),
                           ('compressed', gzip.compress(b'') + b'junk')):
            with self.subTest(data=data):
                self.assertRefused(what, data)

    def test_no_file(self):
        with self.assertRaises(FileNotFoundError):
            Profile.load(self.path)
        with self.assertRaises(IsADirectoryError):
            Profile.load(os.path.dirname(self.path))

    def test_every_truncation(self):
        data = _pprof.encode(example().profile()._tables)
        for size in range(len(data)):
            self.assertRefused('', data[:size])

    def check_damaged(self, data):
        """Refused in our words, or a whole profile."""
        try:
            profile = self.load(data)
        except ValueError as exc:
            self.assertTrue(str(exc).startswith(f'{self.path}: '), exc)
            return None
        check_profile(profile)
        _pprof.encode(profile._tables)
        return profile

    def test_every_truncation_without_compression(self):
        # Only whole fields at the end can be missing.
        data = _pprof.encode(example().profile()._tables, compress=False)
        for size in range(len(data)):
            self.check_damaged(data[:size])

    def test_every_bit_of_a_compressed_file(self):
        profile = example().profile()
        data = _pprof.encode(profile._tables)
        for bit in range(8 * len(data)):
            damaged = bytearray(data)
            damaged[bit // 8] ^= 1 << bit % 8
            loaded = self.check_damaged(damaged)
            if loaded is not None:
                # What the checksum leaves out changes nothing.
                self.assertEqual(facts_of(loaded), facts_of(profile))

    def test_random_damage(self):
        data = _pprof.encode(example().profile()._tables, compress=False)
        rng = random.Random(3_13_5)
        outcomes = set()
        for _ in range(2000):
            damaged = bytearray(data)
            for _ in range(rng.choice([1, 1, 2, 8])):
                damaged[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
            outcomes.add(self.check_damaged(damaged) is None)
        self.assertEqual(outcomes, {True, False})


def bombs():
    """Small files that want much memory, as (name, parts) pairs."""
    head = broken(functions=[F1], locations=[L1])
    many = 1 << 16
    line = b'\x22\x02\x08\x01'
    long_location = b'\x08\x02' + line * 20_000
    location = message((4, long_location))
    lines = message((4, b'\x08\x02' + line * (3 << 19)))
    one_stack = message((2, message((1, [1] * 300_000), (2, [7]))))
    deep = message((2, message((1, [2] * 1000), (2, [7]))))
    wide = message((2, b'\x10\xac\x02' * (5 << 18)))
    labels = message((2, S1 + b'\x1a\x02\x08\x00' * (1 << 20)))
    unique = b''.join([
        b'\x2a' + varint(1 + len(number)) + b'\x08' + number
        for number in map(varint, range(2, 400_000))])
    rng = random.Random(5)
    stacks = [b'\x0a\x40' + bytes(rng.choices((1, 3), k=64))
              + b'\x12\x01\x07' for _ in range(4000)]
    paths = b'\x22\x08\x08\x03\x22\x04\x08\x01\x10\x01'
    paths += b''.join([b'\x12' + bytes([len(stack)]) + stack
                       for stack in stacks])
    return label_bombs(head) | {
        'zeros': [bytes(1 << 20)] * 300,
        'strings': [head, *[b'\x32\x00' * many] * 400],
        'samples': [head, *[b'\x12\x00' * many] * 400],
        'good samples': [head, *[b'\x12\x06' + S1] * (1 << 20)],
        'functions': [head, unique],
        'comments': [head, *[b'\x68\x00' * many] * 400],
        'packed comments': [head, b'\x6a' + varint(32 << 20),
                            bytes(32 << 20)],
        'inlined': [head, location, deep * 50],
        'lines': [head, lines],
        'one deep stack': [head, one_stack],
        'values': [head, wide],
        'labels': [head, labels],
        'paths': [head, paths],
        'long string': [head, b'\x32' + varint(100 << 20),
                        bytes(100 << 20)],
    }


def label(key, *, text=0, number=0, more=b''):
    """A field of a sample, of string numbers and a number."""
    return message((3, message((1, key), (2, text), (3, number)) + more))


def samples(*all_labels):
    """Encoded samples, each of some labels."""
    return message(*[(2, S1 + b''.join(labels)) for labels in all_labels])


def label_bombs(head):
    """The same of labels; strings 1 and 2 may be names of them."""
    rng = random.Random(7)
    few = [label(1, number=number) for number in range(1, 1000)]
    keys = [label(key, number=1) for key in range(1, 20_000)]
    # Strings 3 to 202.
    texts = b''.join([b'\x32\x90\x4e' + b'%010000d' % number
                      for number in range(200)])
    long = [label(1, text=text) for text in range(3, 203)]
    junk = bytes(1000)
    return {
        'label values': [head, *[
            samples(*[[label(1, number=10 * sample + number)
                       for number in range(1, 10)]])
            for sample in range(15_000)]],
        'label keys': [head, b''.join([b'\x32\x05%05d' % number
                                       for number in range(20_000)]),
                       *[samples(keys[at:at + 500])
                         for at in range(0, 19_000, 15)]],
        'label sets': [head, *[samples(rng.sample(few, 200))
                               for _ in range(3000)]],
        'label texts': [head, texts, *[samples(long[:-at])
                                       for at in range(1, 100)]],
        'label junk': [head, *[
            samples([label(1, number=number, more=b'\x4a\xe8\x07' + junk)])
            for number in range(1, 20_000)]],
        'task ids': [head, b'\x32\x07task id', *[
            samples([label(3, number=10 * sample + number)])
            for sample in range(6000) for number in range(1, 10)]],
    }


class MemoryTest(FilesTest):
    LIMIT = 24 << 20

    def test_bombs(self):
        if support.check_sanitizer(address=True, memory=True, thread=True):
            self.skipTest('sanitizers reserve address space of their own')
        if resource is None:
            self.skipTest('needs the module resource')
        code = textwrap.dedent('''
            import resource, sys
            sys.path[:0] = {path!r}
            from profile_sampling import Profile
            from profile_sampling._formats.pprof import reader
            import zlib
            with open('/proc/self/statm') as file:
                used = int(file.read().split()[0]) * resource.getpagesize()
            limit = used + {limit} * 3 // 2
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
            try:
                profile = Profile.load(sys.argv[1], max_bytes={limit})
            except ValueError as exc:
                print(exc)
            else:
                print('loaded', profile.total_cpu_ns)
        ''').format(path=sys.path, limit=self.LIMIT)
        if not os.path.exists('/proc/self/statm'):
            self.skipTest('needs /proc')
        for name, parts in bombs().items():
            with self.subTest(name):
                self.write(parts)
                result = subprocess.run(
                    [sys.executable, '-c', code, self.path],
                    stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                    text=True)
                self.assertEqual(result.stderr, '')
                self.assertEqual(result.returncode, 0)
                # What they say may be little enough to be kept, or wrong.
                self.assertRegex(
                    result.stdout, r'p\.pb\.gz: needs more than 25,165,824 '
                    r'bytes|damaged: a (field|sample) has|loaded \d+$')

    def test_functions_that_share_a_long_name(self):
        # Taken apart for each function, the name was there 1,000 times.
        functions = [b'\x08' + varint(number) + b'\x10\x03'
                     for number in range(1, 1000)]
        self.write([broken(
            strings=['', 'cpu', 'nanoseconds', 'x.' + 'a' * 1_000_000,
                     _pprof.MARK, '# module x'],
            functions=functions, locations=[L1], samples=[S1],
            more=b'\x68\x04\x68\x05')])
        tracemalloc.start()
        self.addCleanup(tracemalloc.stop)
        profile = Profile.load(self.path, max_bytes=self.LIMIT)
        self.assertLess(tracemalloc.get_traced_memory()[1], self.LIMIT)
        self.assertEqual(profile.functions()[0].function.module, 'x')

    def test_a_name_of_dots(self):
        # Looking for a module in it took hours: the square of its length.
        # In a second now.
        for more in b'', b'\x68\x04\x68\x05':
            self.write([broken(
                strings=['', 'cpu', 'nanoseconds', '.' * 4_000_000,
                         _pprof.MARK, '# module ' + '.' * 4_000_000],
                functions=[F1 + b'\x10\x03'], locations=[L1],
                samples=[S1], more=more)])
            before = time.process_time()
            self.assertEqual(Profile.load(self.path).total_cpu_ns, 7)
            self.assertLess(time.process_time() - before, 60)

    def write(self, parts):
        compress = zlib.compressobj(1, wbits=31)
        with open(self.path, 'wb') as file:
            for part in parts:
                file.write(compress.compress(part))
            file.write(compress.flush())
        self.assertLess(os.path.getsize(self.path), 8 << 20)

    def test_default_limit(self):
        self.write([b'\x32\x01a' * (1 << 20)] * 8)
        with self.assertRaisesRegex(ValueError, 'needs more than '
                                    '536,870,912 bytes .* max_bytes'):
            Profile.load(self.path)

    def test_every_limit(self):
        # Whatever it is that does not fit any more.
        file = io.BytesIO()
        example().profile().save(file)
        n_refused = 0
        for limit in range(0, 100_000, 50):
            file.seek(0)
            try:
                Profile.load(file, max_bytes=limit)
            except ValueError as exc:
                self.assertIn(f'more than {limit:,} bytes', str(exc))
                n_refused += 1
        self.assertIn(n_refused, range(1000, 2000))

    def test_an_endless_file(self):
        if not os.path.exists('/dev/zero'):
            self.skipTest('needs /dev/zero')
        with self.assertRaisesRegex(ValueError, 'more than 1,000,000'):
            Profile.load('/dev/zero', max_bytes=1_000_000)

    def test_an_endless_message(self):
        for endless in b'\x32\x01a', b'\x68\x00', b'\x2a\x02\x08\x01':
            file = mock.Mock(spec=io.RawIOBase)
            file.read.side_effect = lambda size: endless * size
            with self.assertRaisesRegex(ValueError, 'more than 1,000,000'):
                Profile.load(file, max_bytes=1_000_000)
