"""The model: what is added up, and how often."""

import copy
import io
import pickle
import random
import unittest

import profile_sampling
from profile_sampling import CallSiteRow, Profile
from profile_sampling._data.values import Frame, Function, Thread

from ..support.builders import Builder, example

MS = 1_000_000


def weights(rows):
    """{name: (self, cum) in wall ms}"""
    return {row.function.name: (row.self_wall_ns // MS, row.cum_wall_ns // MS)
            for row in rows}


class CallSitesTest(unittest.TestCase):

    def profile(self):
        b = Builder(rate_hz=1000)
        lib = b.function('sql.orm', 'get', '/x/site-packages/sql/orm.py', 3)
        b.sample(['app.view:7', (lib, 4), 'C:db.fetch', '[waiting]'],
                 count=1, wall_ns=900 * MS, state='waiting')
        b.sample(['app.view:7', (lib, 5)], count=60, wall_ns=60 * MS)
        b.sample([(lib, 9)], count=40, wall_ns=40 * MS)
        return b.profile()

    def rows(self, **options):
        rows = self.profile().call_sites(**options)
        self.assertTrue(all([type(row) is CallSiteRow for row in rows]))
        self.assertTrue(all([row.total == sum(row.states.values())
                             for row in rows]))
        return [(row.function.name, row.line, row.called, row.states)
                for row in rows]

    def test_mine(self):
        self.assertEqual(self.rows(), [
            ('app.view', 7, 'sql \N{HORIZONTAL ELLIPSIS} fetch',
             {'waiting': 900 * MS, 'running': 60 * MS}),
            ('Outside my code', 0, 'sql.orm.get', {'running': 40 * MS})])

    def test_a_worker_of_a_pool_is_not_where_it_was_forked(self):
        b = Builder()
        boot, worker, get = [
            b.function('multiprocessing.' + module, name,
                       f'/usr/lib/python3.13/multiprocessing/{module}.py')
            for module, name in (('process', 'BaseProcess._bootstrap'),
                                 ('pool', 'worker'), ('queues', 'get'))]
        for leaf in [(get, 4), 'C:_pickle.loads'], ['app.work:9']:
            b.sample(['app.main:7', (boot, 1), (worker, 2), *leaf],
                     wall_ns=60 * MS)
        self.assertEqual({(row.function.name, row.line)
                          for row in b.profile().call_sites()},
                         {('Outside my code', 0), ('app.work', 9)})

    def test_all(self):
        self.assertEqual(
            [(name, line) for name, line, *_ in self.rows(all=True)],
            [('sql.orm.get', 4), ('sql.orm.get', 5), ('sql.orm.get', 9)])
        self.assertEqual(self.rows(mine=['sql']),
                         self.rows(all=True))

    def test_findings(self):
        found = self.profile().findings()
        self.assertEqual([finding.rule for finding in found], ['waited'])
        self.assertIn('app.view:7', found[0].text)
        self.assertEqual(found[0].ns, 900 * MS)

    def test_classes_can_be_named(self):
        for name in profile_sampling._ROWS + profile_sampling._VALUES:
            self.assertIs(type(getattr(profile_sampling, name)), type)
            self.assertIn(name, dir(profile_sampling))


class FunctionsTest(unittest.TestCase):

    def test_sums_of_random_stacks(self):
        # Against sums over each stack, as they are defined.
        rng = random.Random(4)
        for _ in range(50):
            b = Builder()
            own, cum = {}, {}
            for _ in range(rng.randrange(1, 30)):
                stack = rng.choices(('a.f', 'a.g', 'a.h', 'a.i'),
                                    k=rng.randrange(1, 9))
                wall_ns = rng.randrange(100) * MS
                b.sample(' '.join(stack), wall_ns=wall_ns)
                leaf = stack[-1]
                own[leaf] = own.get(leaf, 0) + wall_ns // MS
                for name in set(stack):
                    cum[name] = cum.get(name, 0) + wall_ns // MS
            self.assertEqual(
                weights(b.profile().functions()),
                {name: (own.get(name, 0), cum[name]) for name in cum})

    def test_self_and_cumulative(self):
        # {stack: wall ms}, {function: (self, cumulative)}
        for stacks, expected in (
                ({'a.main': 1, 'a.main a.f': 10, 'a.main a.f a.g': 100,
                  'a.main a.h a.g': 1000},
                 {'a.main': (1, 1111), 'a.f': (10, 110), 'a.g': (1100, 1100),
                  'a.h': (0, 1000)}),
                # PITFALLS T9: recursion counts once per stack.
                ({'a.main ' + 'a.f ' * 500: 7, 'a.main ' + 'a.f ' * 250: 2},
                 {'a.f': (9, 9), 'a.main': (0, 9)}),
                ({'a.f a.g a.f a.g a.h': 1, 'a.g a.f': 2, 'a.g a.h a.f': 4},
                 {'a.f': (6, 7), 'a.h': (1, 5), 'a.g': (0, 7)}),
                # f in one branch must not hide f in the next.
                ({'a.main a.f a.g': 1, 'a.main a.f a.f': 2,
                  'a.main a.h a.f': 4, 'a.f a.main': 8},
                 {'a.f': (6, 15), 'a.g': (1, 1), 'a.h': (0, 4),
                  'a.main': (8, 15)}),
                # What is not Python has rows of its own.
                ({'a.f': 1, 'a.f op:int.__mul__': 2,
                  'a.f C:time.sleep [waiting]': 4},
                 {'a.f': (1, 7), 'int.__mul__': (2, 2), 'time.sleep': (0, 4),
                  '[waiting]': (4, 4)}),
                ({'a.key C:builtins.sorted ' * 3 + 'a.key op:int.__lt__': 5},
                 {'a.key': (0, 5), 'builtins.sorted': (0, 5),
                  'int.__lt__': (5, 5)})):
            with self.subTest(expected=expected):
                b = Builder()
                for stack, ms in stacks.items():
                    b.sample(stack, wall_ns=ms * MS)
                self.assertEqual(weights(b.profile().functions()), expected)

    def test_order(self):
        """By the mode's own self weight, the cumulative one, the name."""
        for mode, expected in (
                ('wall', ['a.z', 'a.x', 'a.b', 'a.y', 'a.deep', 'a.c']),
                ('cpu', ['a.x', 'a.y', 'a.z', 'a.b', 'a.deep', 'a.c'])):
            b = Builder(mode=mode)
            for name, wall_ns, cpu_ns in (
                    ('y', 4, 4), ('x', 5, 7), ('z', 9, 3), ('b', 4, 2)):
                b.sample(f'a.{name}', wall_ns=wall_ns, cpu_ns=cpu_ns)
            b.sample('a.c a.deep', wall_ns=1, cpu_ns=1)
            with self.subTest(mode):
                self.assertEqual([row.function.name for row
                                  in b.profile().functions()], expected)

    def test_equal_functions_are_one(self):
        # A module loaded twice gives two code objects.
        b = Builder()
        b.sample('a.f a.g', wall_ns=1 * MS)
        raw = b.raw()
        raw['functions'] = raw['functions'][:1] * 2
        self.assertEqual(weights(Profile._from_raw(raw).functions()),
                         {'a.f': (1, 1)})


class LinesTest(unittest.TestCase):

    def test_lines(self):
        """All places of a line are one row, with the time of its bytecode."""
        b = Builder(names=3)
        f = b.function('a', 'f')
        b.sample([(f, 1, 1, 0, 0)], wall_ns=1)
        b.sample([(f, 1, 9, 8, 0)], wall_ns=2)
        b.sample('a.f:2@BINARY_OP+8', wall_ns=4)
        b.sample('a.f:2@BINARY_OP_ADD_INT+8', wall_ns=8)
        b.sample('a.f:2@CALL+20 op:int.__mul__', wall_ns=16)
        b.sample('a.f:2@CALL+20 C:time.sleep [waiting]', wall_ns=32)
        b.sample('a.f:3 ' * 3 + 'a.g:7', wall_ns=64)
        self.assertEqual(
            [(row.function.name, row.line, row.self_wall_ns, row.cum_wall_ns)
             for row in b.profile().lines()],
            [('a.g', 7, 64, 64), ('[waiting]', 0, 32, 32),
             ('int.__mul__', 0, 16, 16), ('a.f', 2, 12, 60),
             ('a.f', 1, 3, 3), ('a.f', 3, 0, 64), ('time.sleep', 0, 0, 32)])


class ProfileTest(unittest.TestCase):

    def test_what_is_named(self):
        for bits, names in enumerate(('off', 'calls', 'opcodes', 'all')):
            self.assertEqual(Builder(names=bits).profile().names, names)
        self.assertEqual(Builder().profile().names, 'off')

    def test_unknown_kinds_of_names(self):
        for bits in -1, 4:
            with self.assertRaisesRegex(ValueError, 'kinds of names'):
                Builder(names=bits).profile()

    def test_samples(self):
        b = Builder()
        worker = b.thread('worker', ident=5, native_id=6, interpreter=3)
        f = b.function('a', 'f', '/a.py', 10)
        b.sample([(f, 12, 4, 8, 99), '[waiting]'], count=1, cpu_ns=2,
                 wall_ns=3, thread=worker, state='waiting')
        sample, = b.profile().samples
        self.assertEqual(sample.stack, (
            Frame(Function(None, '[waiting]', '', 0, 'pseudo'),
                  0, 0, -1, 0),
            Frame(Function('a', 'f', '/a.py', 10, 'python'), 12, 4, 8, 99)))
        self.assertEqual(sample.thread, Thread(5, 6, 'worker', 3))
        self.assertEqual(sample.state, 'waiting')
        self.assertEqual((sample.count, sample.cpu_ns, sample.wall_ns),
                         (1, 2, 3))

    def test_only_python_has_a_place(self):
        b = Builder()
        b.sample([b.function('m', 'f', 'f.c', 3, kind=1)], wall_ns=1)
        function = b.profile().functions()[0].function
        self.assertEqual((function.filename, function.first_line), ('', 0))

    def test_immutable(self):
        profile = example().profile()
        sample = profile.samples[0]
        for thing, name in ((profile, 'mode'), (profile, 'stats'),
                            (profile, 'new'), (sample.stack[0], 'line'),
                            (sample.thread, 'name'),
                            (profile.functions()[0], 'self_count')):
            with self.assertRaises(AttributeError):
                setattr(thing, name, 1)
        with self.assertRaises(AttributeError):
            del sample.thread.name
        for values in lambda: profile.stats, profile.functions:
            values().clear()
            self.assertTrue(values())

    def test_samples_are_a_sequence_of_values(self):
        profile, other = example().profile(), example().profile()
        for i, sample in enumerate(profile.samples):
            self.assertIn(sample, profile.samples)
            self.assertEqual(profile.samples.index(sample), i)
            self.assertEqual(other.samples.count(sample), 1)
            self.assertEqual({sample: i}[other.samples[i]], i)
        self.assertNotEqual(*profile.samples[:2])
        self.assertNotEqual(profile.samples[0], profile.samples[0].values)
        self.assertEqual(list(reversed(profile.samples)),
                         profile.samples[::-1])
        self.assertEqual(copy.copy(sample), sample)
        with self.assertRaises(ValueError):
            Builder().profile().samples.index(sample)

    def test_samples_differ_in_all_that_they_say(self):
        def of(stack='a.f:1', **facts):
            b = Builder()
            b.thread('one')
            b.thread('two')
            return b.sample(stack, **facts).profile().samples[0]
        samples = [of(), of('a.f:2'), of(thread=1), of(state='gc'),
                   of(labels={'a': 'b'}), of(task=('t', 1)), of(cpu_ns=1),
                   of(state='gil_wait'),
                   of(state='gil_wait', holder=(0, 'a.f:1')),
                   of(state='gil_wait', holder=(0, 'a.f:2'))]
        for i, one in enumerate(samples):
            self.assertEqual([one == other for other in samples],
                             [i == j for j in range(len(samples))])

    def test_what_the_program_counts_is_no_number_of_samples(self):
        b = Builder()
        b.sample('a.f:1', count=94, wall_ns=9)
        b.sample('a.f:1', count=10_000_000, state='custom')
        profile = b.profile()
        self.assertEqual((profile.total_count, profile.total('count')),
                         (94, 94))
        self.assertIn(' samples=94 ', repr(profile))

    def test_functions_that_no_sample_was_in_have_no_row(self):
        # The core keeps such nodes, and so do those who held the GIL.
        b = Builder().sample('a.f:1', wall_ns=9)
        b.node('a.main:1 [lost]')
        profile = b.profile()
        for rows in profile.functions(), profile.lines():
            self.assertEqual([row.function.name for row in rows], ['a.f'])

    def test_it_stays_as_it_is(self):
        def saved():
            file = io.BytesIO()
            profile.save(file)
            return file.getvalue()
        profile, other = example().profile(), example(names=0).profile()
        before = saved()
        for _ in range(2):
            for diff in profile - other, other - profile, profile.diff(
                    other, by='state', all=True):
                str(diff)
            for name in ('profile-json', 'html', 'text', 'gecko'):
                profile.save(io.BytesIO(), name)
            for its in (profile.by_value('cpu'), profile + other,
                        Profile.merge(profile, other), profile.hide('.'),
                        *profile.group_by('thread').values()):
                str(its)
                its.call_tree(), its.findings(), its.quality(), its.tables()
            self.assertEqual(saved(), before)

    def test_no_constructor(self):
        with self.assertRaisesRegex(TypeError, 'Profile.load'):
            Profile()

    def test_values_compare_and_pickle(self):
        frame = example().profile().samples[0].stack[0]
        self.assertEqual(pickle.loads(pickle.dumps(frame)), frame)
        self.assertEqual(hash(pickle.loads(pickle.dumps(frame))),
                         hash(frame))
        self.assertNotEqual(frame, frame.function)
        self.assertIn("qualname='hook'", repr(frame))
        with self.assertRaises(ValueError):
            Frame(frame.function, 1, 2)

    def test_a_deep_stack(self):
        # Nothing may recurse over the depth.
        b = Builder()
        b.sample('a.f:1 ' * 50_000, wall_ns=3)
        profile = b.profile()
        self.assertEqual(profile.functions()[0].cum_wall_ns, 3)
        self.assertEqual(len(profile.samples[0].stack), 50_000)


class ReferencesTest(unittest.TestCase):
    # PITFALLS F4: what refers to nothing is refused, not carried on.

    def test_missing_rows(self):
        for what, table, *changes in (
                ('functions', 'frames', ('i', 0, 2), ('i', 0, -1)),
                ('frames', 'nodes', ('I', 5, 2)),
                ('parent', 'nodes', ('I', 4, 2)),
                ('root', 'nodes', ('I', 0, 1)),
                ('nodes', 'samples', ('q', 0, 3), ('q', 0, -1), ('q', 5, 3)),
                ('threads', 'samples', ('q', 1, 1)),
                ('labels', 'samples', ('q', 2, 1)),
                ('states', 'samples', ('q', 3, 13))):
            for item, index, value in changes:
                with self.subTest(what, table=table, index=index):
                    b = Builder()
                    b.sample('a.f:1 a.g:2', wall_ns=1)
                    raw = b.raw()
                    changed = bytearray(raw[table])
                    memoryview(changed).cast(item)[index] = value
                    with self.assertRaisesRegex(ValueError, what):
                        Profile._from_raw(raw | {table: bytes(changed)})

    def test_broken_tables(self):
        raw = Builder().raw()
        for name, table in (('frames', b'1234'), ('nodes', b''),
                            ('nodes', b'12'), ('samples', b'12345678')):
            with self.assertRaisesRegex(ValueError, name):
                Profile._from_raw(raw | {name: table})

    def test_unknown_kind(self):
        b = Builder()
        b.functions['a', 'f', '', 0, 4] = 0
        with self.assertRaisesRegex(ValueError, 'kind'):
            b.profile()
