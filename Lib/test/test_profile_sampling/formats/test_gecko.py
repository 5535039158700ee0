"""Files of the Firefox Profiler: its rules, and its own command line."""

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import unittest

from profile_sampling._formats import gecko as _gecko

from ..support import hard_profiles
from ..support.builders import Builder, example
from ..support.timed import with_records

COLORS = {'transparent', 'purple', 'green', 'orange', 'yellow', 'lightblue',
          'blue', 'brown', 'magenta', 'red', 'lightred', 'darkgrey', 'grey'}
# Columns of version 60, as src/types/profile.ts had them.
COLUMNS = {
    'stackTable': {'frame', 'prefix'},
    'frameTable': {'address', 'inlineDepth', 'category', 'subcategory',
                   'func', 'nativeSymbol', 'innerWindowID', 'line',
                   'column'},
    'funcTable': {'name', 'isJS', 'relevantForJS', 'resource', 'source',
                  'lineNumber', 'columnNumber'},
    'resourceTable': {'lib', 'name', 'host', 'type'},
    'nativeSymbols': {'libIndex', 'address', 'name', 'functionSize'},
    'sources': {'uuid', 'filename'}}
# Columns that refer to rows, and whether they may refer to none.
REFERENCES = (('stackTable', 'frame', 'frameTable', False),
              ('stackTable', 'prefix', 'stackTable', True),
              ('frameTable', 'func', 'funcTable', False),
              ('funcTable', 'source', 'sources', True))


def written(builder):
    return json.loads(_gecko.encode(builder.profile()._tables))


class Checked(unittest.TestCase):

    def check(self, file):
        """Fail unless a file keeps the format's rules."""
        shared = file['shared']
        self.assertEqual(file['meta']['preprocessedProfileVersion'], 60)
        for name, columns in COLUMNS.items():
            self.check_table(shared[name], columns)
        for table, column, other, optional in REFERENCES:
            for row, number in enumerate(shared[table][column]):
                if number is None and optional:
                    continue
                end = row if table == other else shared[other]['length']
                self.assertTrue(0 <= number < end, (table, column, row))
        for number in [*shared['funcTable']['name'],
                       *shared['sources']['filename']]:
            self.assertIsInstance(shared['stringArray'][number], str)
        categories = file['meta']['categories']
        self.assertIn('grey', [row['color'] for row in categories])
        for row in categories:
            self.assertIn(row['color'], COLORS)
            self.assertEqual(row['subcategories'][0], 'Other')
        for category in shared['frameTable']['category']:
            self.assertTrue(0 <= category < len(categories))
        for thread in file['threads']:
            self.check_thread(thread, shared, len(categories))

    def check_table(self, table, columns):
        self.assertEqual(set(table), columns | {'length'})
        for column in columns:
            self.assertEqual(len(table[column]), table['length'], column)

    def check_thread(self, thread, shared, n_categories):
        self.assertIsInstance(thread['pid'], str)
        samples = thread['samples']
        weight_type = samples.pop('weightType')
        self.check_table(samples, {'stack', 'time', 'weight',
                                   'threadCPUDelta'})
        samples['weightType'] = weight_type
        self.assertIn(weight_type, ('samples', 'tracing-ms', 'bytes'))
        self.assertEqual(samples['time'], sorted(samples['time']))
        self.assertIsNone(samples['stack'][0])
        for stack in samples['stack'][1:]:
            self.assertTrue(0 <= stack < shared['stackTable']['length'])
        markers = thread['markers']
        self.check_table(markers, {'data', 'name', 'startTime', 'endTime',
                                   'phase', 'category'})
        for name, start, end, phase, category in zip(
                markers['name'], markers['startTime'], markers['endTime'],
                markers['phase'], markers['category']):
            self.assertIn(name, range(len(shared['stringArray'])))
            self.assertLessEqual(start, end)
            self.assertEqual(phase, 1)
            self.assertLess(category, n_categories)


def stack_of(file, number):
    """Return [(name, line)], root first, and the name of the category."""
    shared = file['shared']
    frames = shared['frameTable']
    category = file['meta']['categories'][
        frames['category'][shared['stackTable']['frame'][number]]]['name']
    found = []
    while number is not None:
        frame = shared['stackTable']['frame'][number]
        function = frames['func'][frame]
        found.append((shared['stringArray'][
            shared['funcTable']['name'][function]], frames['line'][frame]))
        number = shared['stackTable']['prefix'][number]
    return found[::-1], category


class ContentTest(Checked):

    def test_rules(self):
        for make in (Builder, example, hard_profiles.recursive,
                     hard_profiles.hostile, hard_profiles.deep):
            with self.subTest(make.__name__):
                self.check(written(make()))

    def test_moments(self):
        b = Builder()
        b.sample('a.f:1', count=2, wall_ns=3_000_000)
        b.sample('a.g:1', count=1, wall_ns=2_500_000)
        profile = with_records(b.profile(), [
            (1_000_000, 0, 1, 0, 1_000_000), (3_000_000, 1, 1, 0, 2_000_000),
            (8_000_000, 0, 1, 0, 2_000_000)])
        file = json.loads(_gecko.encode(profile._tables))
        self.check(file)
        samples = file['threads'][0]['samples']
        self.assertEqual(samples['time'], [0, 1, 3, 8, 8.5])
        self.assertEqual(
            [stack_of(file, stack)[0][0][0] for stack in samples['stack'][1:]],
            ['a.f', 'a.g', 'a.f', 'a.g'])

    def test_known_answer(self):
        b = Builder(pid=4000, stats={'ticks': 5})
        b.thread('MainThread', native_id=4000)
        b.sample('a.main:3 a.f:9', wall_ns=2_000_000, cpu_ns=1_000_000)
        b.sample('a.main:3 a.f:9', wall_ns=3_000_000, state='waiting')
        b.sample('a.main:3 a.f:9 C:time.sleep', wall_ns=4_000_000,
                 state='running')
        b.sample('', wall_ns=500_000, state='unsampled')
        file = written(b)
        thread, = file['threads']
        self.assertEqual((thread['name'], thread['pid'], thread['tid'],
                          thread['isMainThread']),
                         ('MainThread', '4000', 4000, True))
        samples = thread['samples']
        self.assertEqual(
            [stack_of(file, stack) for stack in samples['stack'][1:]],
            [([('[no frames]', None)], 'unsampled'),
             ([('a.main', 3), ('a.f', 9)], 'python'),
             ([('a.main', 3), ('a.f', 9)], 'waiting'),
             ([('a.main', 3), ('a.f', 9), ('time.sleep', None)], 'C')])
        self.assertEqual(samples['time'], [0, 0.5, 2.5, 5.5, 9.5])
        self.assertEqual(samples['weight'], [0, 0.5, 2, 3, 4])
        self.assertEqual(samples['threadCPUDelta'], [0, 0, 1_000_000, 0, 0])
        self.assertEqual(samples['weightType'], 'tracing-ms')
        self.assertEqual(file['meta']['extra'], [
            {'label': 'Counters', 'entries': [
                {'label': 'ticks', 'format': 'integer', 'value': 5}]}])

    def test_totals(self):
        for mode in 'wall', 'cpu':
            profile = example(mode=mode).profile()
            threads = written(example(mode=mode))['threads']
            self.assertAlmostEqual(
                sum([sum(thread['samples']['weight'])
                     for thread in threads]) * 1e6,
                profile.total(f'{mode}_ns'), delta=1)
            self.assertEqual(
                sum([sum(thread['samples']['threadCPUDelta'])
                     for thread in threads]), profile.total_cpu_ns)

    def test_labels_are_markers(self):
        b = Builder()
        b.sample('a.f', wall_ns=1_000_000, labels={'route': '/b'})
        b.sample('a.f', wall_ns=2_000_000)
        b.sample('a.g', wall_ns=4_000_000, labels={'route': '/b'})
        b.sample('a.f', wall_ns=8_000_000, task=('T', 1),
                 labels={'route': '/a'})
        thread, = written(b)['threads']
        markers = thread['markers']
        self.assertEqual(
            [(data['labels'], start, end) for data, start, end in zip(
                markers['data'], markers['startTime'], markers['endTime'])],
            [('route=/a, task=T', 2, 10), ('route=/b', 10, 15)])

    def test_values_that_are_no_times(self):
        for unit, weight_type in ('bytes', 'bytes'), ('cats', 'samples'):
            b = Builder(mode='x', value_types=[('x', unit)])
            b.sample('a.f', values=(4096,))
            samples = written(b)['threads'][0]['samples']
            self.assertEqual(samples['weight'], [0, 4096])
            self.assertEqual(samples['weightType'], weight_type)


@unittest.skipIf(shutil.which('profiler-cli') is None,
                 'no profiler-cli in PATH, of the npm package '
                 '@firefox-devtools/profiler-cli')
class ViewerTest(unittest.TestCase):
    """The Firefox Profiler without a browser."""

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name
        self.environment = os.environ | {
            'PROFILER_CLI_SESSION_DIR': self.directory,
            'PROFILER_CLI_NO_SYMBOLICATE': '1'}

    def call(self, *arguments):
        return subprocess.run(
            ['profiler-cli', *arguments], env=self.environment, text=True,
            cwd=self.directory, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, timeout=300)

    def run_cli(self, *arguments):
        result = self.call(*arguments)
        self.assertEqual(result.returncode, 0, result.stderr[-2000:])
        return result.stdout

    def load(self, builder, name='p.gecko.json'):
        path = os.path.join(self.directory, name)
        builder.profile().save(path)
        for _ in range(10):
            # It leaves a process behind, which answers the commands.
            result = self.call('load', path)
            late = re.search(r'did not become ready[^$]*"kill (\d+)"',
                             result.stderr)
            if late is None:
                break
            try:
                os.kill(int(late[1]), signal.SIGTERM)
            except ProcessLookupError:
                pass        # it has given up by itself
        else:
            self.skipTest('profiler-cli does not start within its 500 ms')
        self.addCleanup(self.run_cli, 'stop')
        self.assertEqual(result.returncode, 0, result.stderr[-2000:])

    def functions(self, thread):
        """{name: (self, total)} of a thread, in ns."""
        self.run_cli('thread', 'select', f't-{thread}')
        data = json.loads(self.run_cli('thread', 'functions',
                                       '--include-idle', '--json'))
        return {row['name']: (round(row['selfSamples'] * 1e6),
                              round(row['totalSamples'] * 1e6))
                for row in data['functions']}

    def test_self_and_cumulative_times(self):
        self.load(example())
        threads = json.loads(self.run_cli('thread', 'list', '--json'))
        groups = example().profile().group_by('thread')
        self.assertEqual(len(threads['threads']), len(groups))
        for thread, profile in groups.items():
            number, = [row['threadIndex'] for row in threads['threads']
                       if row['tid'] == thread.native_id]
            cpu_ms, = [row['cpuMs'] for row in threads['threads']
                       if row['threadIndex'] == number]
            self.assertAlmostEqual(cpu_ms * 1e6, profile.total_cpu_ns, 1)
            found = self.functions(number)
            without = found.pop('[no frames]', (0, 0))[0]
            self.assertEqual(
                found, {row.function.name: (row.self_wall_ns, row.cum_wall_ns)
                        for row in profile.functions()})
            self.assertEqual(sum([own for own, _ in found.values()])
                             + without, profile.total_wall_ns)

    def test_compressed(self):
        self.load(hard_profiles.recursive(), 'p.gecko.json.gz')
        self.assertEqual(self.functions(0), hard_profiles.RECURSIVE_NS)

    def test_hostile_names(self):
        builder = hard_profiles.hostile()
        self.load(builder)
        # Threads have the native ids 1, 2, ...; each has one stack.
        found = self.functions(0)
        self.assertEqual(set(found), {r'a\nb.a\nb', r'a\nb', r'.a\nb',
                                      r'[a\nb]'})
        self.assertEqual(found[r'[a\nb]'], (1_000_000, 1_000_000))
