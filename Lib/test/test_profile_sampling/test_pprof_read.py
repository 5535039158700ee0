"""The pprof reader: what it restores, and what it refuses."""

import gzip
import os
import random
import subprocess
import sys
import tempfile
import textwrap
import unittest
import zlib

from test import support

from profile_sampling import Profile, _pprof, _pprof_read

from .builders import Builder, example, facts_of
from .validator import check_profile

Message = _pprof.Message


class Files(unittest.TestCase):

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


class RoundTripTest(Files):

    def assertKept(self, builder):
        profile = builder.profile()
        profile.save(self.path)
        loaded = Profile.load(self.path)
        check_profile(loaded)
        self.assertEqual(facts_of(loaded), facts_of(profile))
        # And nothing is lost the second time.
        self.assertEqual(_pprof.encode(loaded), _pprof.encode(profile))
        return loaded

    def test_wall_and_cpu(self):
        for mode in ('wall', 'cpu'):
            self.assertKept(example(mode=mode, rate_hz=7, depth_frames=9,
                                    python_version='3.13.99'))

    def test_nothing_sampled(self):
        self.assertKept(Builder(stats={'ticks': 0, 'late': 3}))

    def test_modules(self):
        b = Builder()
        for module, qualname in (('a', 'f'), ('a.b', 'C.f'), ('a.bc', 'f'),
                                 ('__main__', 'C.<locals>.f'), (None, 'f'),
                                 (None, '<module>')):
            b.sample([b.function(module, qualname, f'/{module}.py')],
                     wall_ns=1)
        profile = b.profile()
        self.assertEqual(
            {row.function for row in self.assertKept(b).functions()},
            {row.function for row in profile.functions()})

    def test_kinds(self):
        b = Builder()
        b.sample('a.f:1 C:time.sleep [blocked]', wall_ns=1)
        b.sample('a.f:1 op:int.__mul__', wall_ns=1)
        # Python code is told from the rest by its first line.
        b.sample([b.function('m', 'f', '<C>'),
                  b.function('m', 'f', '<operator>'),
                  b.function(None, '[f]', '')], wall_ns=1)
        kinds = {row.function.name + row.function.filename:
                 row.function.kind for row in self.assertKept(b).functions()}
        self.assertEqual(kinds, {
            'a.f/src/a.py': 'python', 'time.sleep': 'C',
            '[blocked]': 'pseudo', 'int.__mul__': 'operator',
            'm.f<C>': 'python', 'm.f<operator>': 'python', '[f]': 'python'})

    def test_numbers_at_the_edges(self):
        b = Builder(start_time_ns=2 ** 63 - 1, duration_ns=2 ** 63 - 1,
                    stats={'max': 2 ** 63 - 1, 'minus': -5})
        thread = b.thread('t', ident=2 ** 64 - 1, native_id=2 ** 31 - 1,
                          interpreter=2 ** 40)
        f = b.function('a', 'f', '/a.py', 2 ** 31 - 1)
        b.sample([(f, 2 ** 31 - 1, 2 ** 31 - 1, -1, 0)], count=2 ** 62,
                 cpu_ns=-2 ** 62, wall_ns=2 ** 63 - 1, thread=thread)
        self.assertKept(b)

    def test_many_locations(self):
        # Ids of one, two and three bytes.
        b = Builder()
        for line in range(1, 20_000, 37):
            b.sample([(b.function('a', f'f{line % 300}'), n)
                      for n in (line, line + 1, 7)], wall_ns=line)
        self.assertKept(b)

    def test_random_profiles(self):
        rng = random.Random(13)
        for _ in range(30):
            b = Builder(mode=rng.choice(['wall', 'cpu']))
            threads = [b.thread(rng.choice([None, 'x', 'y']))
                       for _ in range(3)]
            for _ in range(rng.randrange(40)):
                stack = [(b.function(rng.choice('abc'), rng.choice('fgh')),
                          rng.randrange(5), rng.randrange(3), -1, 0)
                         for _ in range(rng.randrange(6))]
                b.sample(stack, count=rng.randrange(3),
                         cpu_ns=rng.randrange(10 ** 9),
                         wall_ns=rng.randrange(10 ** 9),
                         thread=rng.choice(threads),
                         state=rng.choice(['running', 'gc', 'lost']))
            self.assertKept(b)

    def test_plain_and_joined_members(self):
        profile = example().profile()
        plain = _pprof.encode(profile, compress=False)
        half = len(plain) // 2
        for data in (plain,
                     gzip.compress(plain[:half]) + gzip.compress(plain[half:]),
                     gzip.compress(plain) + bytes(100)):
            self.assertEqual(facts_of(self.load(data)), facts_of(profile))


def value_type(kind, unit):
    message = Message()
    message.number(1, kind)
    message.number(2, unit)
    return message.data


def foreign(types, values, *, strings=(), default=0):
    """A file as another tool might write it."""
    table = ['', 'main', '/m.go', *strings]
    message = Message()
    for kind, unit in types:
        table += [kind, unit]
        message.payload(1, value_type(len(table) - 2, len(table) - 1))
    sample = Message()
    # Not packed, as older encoders do.
    sample.data += b'\x08\x05'
    for value in values:
        sample.data += b'\x10' + _pprof.varint(value)
    message.payload(2, sample.data)
    line = Message()
    line.number(1, 9)
    line.number(2, 42)
    location = Message()
    location.number(1, 5)
    location.payload(4, line.data)
    message.payload(4, location.data)
    function = Message()
    function.number(1, 9)
    function.number(2, 1)
    function.number(3, 1)
    function.number(4, 2)
    message.payload(5, function.data)
    for text in table:
        message.payload(6, text.encode())
    message.number(14, default)
    return bytes(message.data)


class OtherToolsTest(Files):

    def totals(self, types, values):
        profile = self.load(foreign(types, values))
        check_profile(profile)
        return (profile.mode, profile.total_count, profile.total_cpu_ns,
                profile.total_wall_ns)

    def test_go_cpu_profile(self):
        types = [('samples', 'count'), ('cpu', 'nanoseconds')]
        self.assertEqual(self.totals(types, [3, 30]), ('cpu', 3, 30, 0))
        profile = Profile.load(self.path)
        sample, = profile.samples
        frame, = sample.stack
        self.assertEqual((frame.function.name, frame.function.filename,
                          frame.line), ('main', '/m.go', 42))
        self.assertEqual(sample.state, 'running')
        self.assertEqual(profile.python_version, '')
        self.assertEqual(profile.rate_hz, 0)

    def test_other_names_and_units(self):
        self.assertEqual(
            self.totals([('wall-time', 'milliseconds'),
                         ('cpu-time', 'microseconds'),
                         ('exception-samples', 'count'),
                         ('wall-samples', 'count')], [2, 3, 99, 5]),
            ('wall', 5, 3_000, 2_000_000))

    def test_order_of_types_does_not_matter(self):
        self.assertEqual(
            self.totals([('wall', 'nanoseconds'), ('samples', 'count'),
                         ('cpu', 'nanoseconds')], [1, 2, 3]),
            ('cpu', 2, 3, 1))

    def test_default_type_gives_the_mode(self):
        # String 4 is the name of the first type.
        data = foreign([('wall', 'nanoseconds'), ('cpu', 'nanoseconds')],
                       [1, 2], default=3)
        self.assertEqual(self.load(data).mode, 'wall')

    def test_nothing_we_understand(self):
        self.assertRefused(
            'no samples, cpu or wall values, only alloc_space/bytes',
            foreign([('alloc_space', 'bytes')], [1]))

    def test_unknown_unit(self):
        self.assertRefused("unknown unit 'parsecs'",
                           foreign([('cpu', 'parsecs')], [1]))

    def test_inlined_calls_and_bare_addresses(self):
        message = Message()
        data = foreign([('cpu', 'nanoseconds')], [7])
        # Location 6: main inlined into itself; location 7: no names.
        location = Message()
        location.number(1, 6)
        for number in (10, 20):
            line = Message()
            line.number(1, 9)
            line.number(2, number)
            location.payload(4, line.data)
        message.payload(4, location.data)
        location = Message()
        location.number(1, 7)
        location.number(3, 0xbeef)
        message.payload(4, location.data)
        sample = Message()
        sample.packed(1, [6, 7])
        sample.packed(2, [8])
        message.payload(2, sample.data)
        profile = self.load(data + message.data)
        stack = [(frame.function.name, frame.line)
                 for frame in profile.samples[1].stack]
        self.assertEqual(stack, [('main', 10), ('main', 20), ('0xbeef', 0)])

    def test_unknown_fields_are_skipped(self):
        message = Message()
        message.number(99, 5)
        message.payload(98, b'abc')
        message.data += _pprof.varint(97 << 3 | 1) + bytes(8)
        message.data += _pprof.varint(96 << 3 | 5) + bytes(4)
        data = foreign([('cpu', 'nanoseconds')], [7])
        self.assertEqual(self.load(data + message.data).total_cpu_ns, 7)

    def test_zstd(self):
        self.assertRefused('zstd', b'\x28\xb5\x2f\xfd' + bytes(40))


def broken(*, strings=('', 'cpu', 'nanoseconds'), types=((1, 2),),
           functions=(), locations=(), samples=(), more=b''):
    """A small file that one argument makes wrong."""
    message = Message()
    for kind, unit in types:
        message.payload(1, value_type(kind, unit))
    for data in samples:
        message.payload(2, data)
    for data in locations:
        message.payload(4, data)
    for data in functions:
        message.payload(5, data)
    for text in strings:
        message.payload(6, text if isinstance(text, bytes)
                        else text.encode())
    return bytes(message.data) + more


F1 = b'\x08\x01'                     # id = 1
L1 = b'\x08\x01\x22\x02\x08\x01'     # id = 1, line {function = 1}
S1 = b'\x0a\x01\x01\x12\x01\x07'     # location 1, value 7


class MalformedTest(Files):

    def test_the_small_file_is_good(self):
        profile = self.load(broken(functions=[F1], locations=[L1],
                                   samples=[S1]))
        self.assertEqual(profile.total_cpu_ns, 7)

    def test_each_fault_is_named(self):
        good = {'functions': [F1], 'locations': [L1], 'samples': [S1]}
        huge = b'\xff' * 9 + b'\x01'
        for what, fault in (
                ('first string', {'strings': ['x', 'cpu', 'nanoseconds']}),
                ('first string', {'strings': []}),
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
                ('string has the wrong', {'more': b'\x30\x01'}),
                ('field 2 has the wrong', {'more': b'\x10\x01'}),
                ('field 9 has the wrong', {'more': b'\x4a\x00'}),
                ('string 9', {'more': b'\x68\x09'}),
                ('string -1', {'more': b'\x70' + huge})):
            with self.subTest(what=what, fault=fault):
                self.assertRefused(what, broken(**(good | fault)))

    def test_our_comments(self):
        for what, comment in (('unknown mode', 'mode sideways'),
                              ('for a number', 'stat x 1_0'),
                              ('for a number', 'stat x'),
                              ('for a number', f'stat x {"9" * 5000}'),
                              ('for a number', 'rate_hz \u0663')):
            with self.subTest(comment=comment):
                self.assertRefused(what, broken(
                    strings=['', 'cpu', 'nanoseconds', _pprof.MARK,
                             f'# {comment}'], more=b'\x68\x03\x68\x04'))

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
        data = _pprof.encode(example().profile())
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
        _pprof.encode(profile)
        return profile

    def test_every_truncation_without_compression(self):
        # Only whole fields at the end can be missing.
        data = _pprof.encode(example().profile(), compress=False)
        for size in range(len(data)):
            self.check_damaged(data[:size])

    def test_every_bit_of_a_compressed_file(self):
        profile = example().profile()
        data = _pprof.encode(profile)
        for bit in range(8 * len(data)):
            damaged = bytearray(data)
            damaged[bit // 8] ^= 1 << bit % 8
            loaded = self.check_damaged(damaged)
            if loaded is not None:
                # What the checksum leaves out changes nothing.
                self.assertEqual(facts_of(loaded), facts_of(profile))

    def test_random_damage(self):
        data = _pprof.encode(example().profile(), compress=False)
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
    location = Message()
    location.payload(4, long_location)
    deep = Message()
    deep.packed(1, [2] * 1000)
    deep.packed(2, [7])
    sample = Message()
    sample.payload(2, deep.data)
    wide = Message()
    wide.payload(2, b'\x10\x00' * (8 << 20))
    labels = Message()
    labels.payload(2, S1 + b'\x1a\x00' * (8 << 20))
    unique = b''.join([
        b'\x2a' + _pprof.varint(1 + len(number)) + b'\x08' + number
        for number in map(_pprof.varint, range(2, 400_000))])
    rng = random.Random(5)
    stacks = [b'\x0a\x40' + bytes(rng.choices((1, 3), k=64))
              + b'\x12\x01\x07' for _ in range(4000)]
    paths = b'\x22\x08\x08\x03\x22\x04\x08\x01\x10\x01'
    paths += b''.join([b'\x12' + bytes([len(stack)]) + stack
                       for stack in stacks])
    return {
        'zeros': [bytes(1 << 20)] * 300,
        'strings': [head, *[b'\x32\x00' * many] * 400],
        'samples': [head, *[b'\x12\x00' * many] * 400],
        'good samples': [head, *[b'\x12\x06' + S1] * (1 << 20)],
        'functions': [head, unique],
        'comments': [head, *[b'\x68\x00' * many] * 400],
        'packed comments': [head, b'\x6a' + _pprof.varint(32 << 20),
                            bytes(32 << 20)],
        'inlined': [head, bytes(location.data), bytes(sample.data) * 50],
        'values': [head, bytes(wide.data)],
        'labels': [head, bytes(labels.data)],
        'paths': [head, paths],
        'long string': [head, b'\x32' + _pprof.varint(100 << 20),
                        bytes(100 << 20)],
    }


class MemoryTest(Files):
    # PITFALLS F5.

    LIMIT = 24 << 20

    def test_bombs(self):
        if support.check_sanitizer(address=True, memory=True, thread=True):
            self.skipTest('sanitizers reserve address space of their own')
        try:
            import resource
        except ImportError:
            self.skipTest('needs the module resource')
        code = textwrap.dedent('''
            import resource, sys
            sys.path[:0] = {path!r}
            from profile_sampling import Profile, _pprof_read
            import zlib
            with open('/proc/self/statm') as file:
                used = int(file.read().split()[0]) * resource.getpagesize()
            limit = used + 2 * {limit}
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
                self.assertRegex(result.stdout, r'p\.pb\.gz: needs more '
                                 'than 25,165,824 bytes')

    def write(self, parts):
        compress = zlib.compressobj(1, wbits=31)
        with open(self.path, 'wb') as file:
            for part in parts:
                file.write(compress.compress(part))
            file.write(compress.flush())
        self.assertLess(os.path.getsize(self.path), 8 << 20)

    def test_default_limit(self):
        self.write([bytes(1 << 20)] * 300)
        with self.assertRaisesRegex(ValueError, 'needs more than '
                                    '536,870,912 bytes .* max_bytes'):
            Profile.load(self.path)

    def test_limit_is_a_parameter(self):
        profile = example().profile()
        profile.save(self.path)
        with self.assertRaisesRegex(ValueError, 'more than 1,000 bytes'):
            Profile.load(self.path, max_bytes=1000)
        self.assertEqual(
            Profile.load(self.path, max_bytes=100_000).total_count,
            profile.total_count)

    def test_an_endless_file(self):
        if not os.path.exists('/dev/zero'):
            self.skipTest('needs /dev/zero')
        with self.assertRaisesRegex(ValueError, 'more than 1,000,000'):
            Profile.load('/dev/zero', max_bytes=1_000_000)


if __name__ == '__main__':
    unittest.main()
