"""python -m profile_sampling diff: output, messages, statuses."""

import json
import os

from profile_sampling import Profile

from ..support.builders import Builder
from .test_cli import ForkedCommandLineTest

MS = 1_000_000


class DiffTest(ForkedCommandLineTest):

    def save(self, name, f=100, g=300, **facts):
        b = Builder(**{'rate_hz': 1000} | facts)
        for function, ms in ('f', f), ('g', g):
            b.sample(f'm.main:1 m.{function}:5', wall_ns=round(ms * MS),
                     cpu_ns=round(ms * MS / 2), count=max(round(ms), 1),
                     labels={'route': f'/{function}:x'})
        b.sample('m.main:2', state='custom', count=10,
                 labels={'event': 'done'})
        b.profile().save(os.path.join(self.directory, name))
        return name

    def series(self, prefix, f, runs=5):
        return [self.save(f'{prefix}{number}.pb.gz', f=f + number / 10)
                for number in range(runs)]

    def diff(self, *arguments, status=0):
        result = self.run_cli('diff', *arguments)
        self.assertEqual((result[0], result[2]), (status, ''))
        return result[1].decode()

    def pair(self):
        return self.save('a.pb.gz'), self.save('b.pb.gz', f=200)

    def sides(self, before=100, after=200, runs=5):
        return [*self.series('a', before, runs), '--',
                *self.series('b', after, runs)]


class PageTest(DiffTest):

    def test_pages(self):
        sides = self.sides()
        self.diff(*sides, '-o', 'o.html')
        after = Profile.merge(*[
            Profile.load(os.path.join(self.directory, name))
            for name in sides[sides.index('--') + 1:]])
        page = os.path.join(self.directory, 'o.html')
        self.assertEqual(Profile.load(page), after)
        for block in 'base', 'document', 'sources':
            self.assertTrue(f'id="{block}"'.encode() in self.read('o.html'))
        self.diff(*sides, '-o', 'p.html', '--no-source')
        self.assertNotIn(b'id="sources"', self.read('p.html'))
        # Gates have their say, too.
        self.diff(*sides, '-o', 'o.html', '--gate', 'total:3%', status=3)

    def test_beside_the_profile(self):
        a, b = self.pair()
        self.assertEqual(self.diff(a, b, '--html'), 'b.diff.html\n')
        self.assertEqual(self.diff(a, b, '--html', '-o', 'o'), 'o\n')
        self.assertEqual(self.read('o'), self.read('b.diff.html'))
        self.assertFails(2, 'a page is not json', 'diff', a, b, '--html',
                         '--format', 'json')
        # There is no terminal.
        status, out, err = self.run_cli('diff', a, b, '--open')
        self.assertEqual((status, out), (0, b'b.diff.html\n'))
        self.assertIn('no browser is opened', err)


class OutputTest(DiffTest):

    def test_two_files(self):
        text = self.diff(*self.pair())
        self.assertRegex(text, r'\n400\.00ms +500\.00ms +\+100\.00ms +'
                               r'- +\+25\.0 % +~  total\n')
        self.assertRegex(text, r'\n100\.00ms +200\.00ms +\+100\.00ms +'
                               r'\d\d\.\d\dms +\+100\.0 % +~  m\.f:5\n')
        self.assertRegex(text, r'300\.00ms +- +\d\d\.\d\dms +\+0\.0 % '
                               r'+~  m\.g:5\n')
        self.assertIn('one run each: run-to-run variation unknown', text)
        self.assertIn('line of my code, by wall time', text)
        self.assertIn('line, by wall time', self.diff(*self.pair(), '--all'))

    def test_sides(self):
        text = self.diff(*self.sides(), '--gate', 'total:3%', status=3)
        self.assertRegex(text, r'total \(3 %\) +\+25\.0 % +0\.1 % +'
                               'REGRESSION\n')
        self.assertRegex(text, r'\+99\.8 %     m\.f:5\n')
        self.assertRegex(text, r'before  5 runs, [0-9.]+ m?s each, ')
        self.assertIn("5 and 5 runs: ± is from how runs differ (95 %): "
                      "Student's t", text)

    def test_what_is_compared(self):
        pair = self.pair()
        for expected, options in (
                (r'60\.0 % +-15\.0 % .*m\.g', ['--share']),
                (r'10\.00ms +20\.00ms +\+10\.00ms', ['--per', 'custom']),
                (r'10\.00ms +20\.00ms', ['--per', 'event=done']),
                (r'50\.00ms +100\.00ms.*m\.f:5\n',
                 ['--value', 'cpu_ns']),
                (r'50\.00ms +100\.00ms.*m\.f:5\n', ['--value', 'cpu']),
                (r'100 +200 +\+100 .*m\.f:5\n', ['--value', 'samples']),
                # What rows were called before.
                (r'm\.f:5\n', ['--by', 'site']),
                (r'm\.f:5\n', ['--by', 'mine']),
                (r'm\.f\n', ['--by', 'function']),
                (r'/f:x\n', ['--by', 'route']),
                (r'- +\+25\.0 % +~  running\n', ['--by', 'state']),
                (r'- +\+25\.0 % +~  MainThread\n', ['--by', 'thread']),
                (r'/m\.py\n', ['--by', 'file']),
                (r'500\.00ms.*m\.main\n', ['--cum'])):
            with self.subTest(options=options):
                self.assertRegex(self.diff(*pair, *options), expected)

    def test_names_differ(self):
        # It is said above the rows, and no row is sure.
        for options, said in (
                ({'names': 0}, 'names differ (off, all): C functions'),
                ({'names': 3, 'depth_frames': 8},
                 'depth_frames differ (8, 512): what is deeper')):
            text = self.diff(self.save('a.pb.gz', f=100, **options),
                             self.save('b.pb.gz', f=900, names=3))
            head, rows = text.split('\n\n')[:2]
            self.assertIn(said, head)
            changed, = [row for row in rows.splitlines() if 'm.f:5' in row]
            self.assertIn('  ~  ', changed)
        text = self.diff(self.save('a.pb.gz', f=100),
                         self.save('b.pb.gz', f=900))
        self.assertNotIn('differ', text)
        self.assertRegex(text, r'\+800\.0 %  ~  m\.f:5\n')

    def test_shares_have_no_total(self):
        for format in 'text', 'markdown':
            text = self.diff(*self.pair(), '--share', '--format', format)
            self.assertNotIn('total', text)

    def test_json(self):
        # The fields are those that profile_sampling-json.rst names.
        document = json.loads(self.diff(*self.sides(), '--format', 'json',
                                        '--gate', 'total', status=3))
        change = {'before', 'after', 'change', 'margin', 'relative',
                  'runs_before', 'runs_after'}
        self.assertEqual(set(document), {
            'schema', 'mode', 'value', 'unit', 'by', 'cum', 'share',
            'per', 'method', 'before', 'after', 'total', 'gates', 'verdict',
            'rows'})
        self.assertEqual(set(document['after']), {
            'runs', 'rates_hz', 'durations_ns', 'python_versions', 'work'})
        judged = change | {'may_be_chance'}
        self.assertEqual(set(document['total']), judged)
        gate, = document['gates']
        self.assertEqual(set(gate), change | {
            'target', 'least', 'least_bytes', 'verdict'})
        first = document['rows'][0]
        self.assertEqual(set(first), judged | {'name', 'kind', 'file', 'line',
                                               'called'})
        self.assertFalse(first['may_be_chance'])
        self.assertEqual(
            (document['schema'], document['verdict'], gate['target'],
             document['before']['runs'], first['name'], first['called']),
            ('profile_sampling.diff/2', 'regression', 'total', 5, 'm.f', ''))
        self.assertEqual(first['runs_before'],
                         [(100 + number / 10) * MS for number in range(5)])
        self.assertLess(first['margin'], MS)
        # Of single runs all may be, as the signs in the text say.
        document = json.loads(self.diff(*self.pair(), '--format', 'json'))
        self.assertEqual({row['may_be_chance'] for row in document['rows']},
                         {True})

    def test_tsv(self):
        head, *rows = [line.split('\t') for line in self.diff(
            *self.pair(), '--format', 'tsv').splitlines()]
        total, first = [dict(zip(head, row)) for row in rows[:2]]
        self.assertEqual(
            (first['name'], first['kind'], first['before'], first['after'],
             first['relative']),
            ('m.f', 'python', '100000000', '200000000', '1'))
        self.assertEqual((total['name'], total['margin']), ('total', '0'))
        self.assertEqual({len(row) for row in rows}, {len(head)})

    def test_markdown(self):
        b = Builder(rate_hz=1000)
        b.sample([b.function('m', '<b>|`*')], wall_ns=5 * MS, count=5)
        b.profile().save(os.path.join(self.directory, 'c.pb.gz'))
        text = self.diff(self.save('a.pb.gz'), 'c.pb.gz', '--format',
                         'markdown')
        self.assertTrue(text.startswith('### Wall time in all: -98.8 %\n'))
        self.assertIn('| `` m.<b>\\|`* `` |', text)
        for line in text.splitlines():
            if line.startswith('|'):
                self.assertEqual(line.replace('\\|', '').count('|'), 9, line)

    def test_names_that_are_hostile(self):
        b = Builder(rate_hz=1000)
        b.sample([b.function('m', 'x\n\x1b[31m\ty')], wall_ns=5 * MS)
        b.profile().save(os.path.join(self.directory, 'c.pb.gz'))
        for format in 'text', 'markdown', 'tsv':
            text = self.diff('c.pb.gz', self.save('a.pb.gz'), '--format',
                             format)
            self.assertIn(r'm.x\n\x1b[31m\ty', text)
            self.assertNotIn('\x1b', text)

    def test_output(self):
        pair = self.pair()
        for name, begins in (('o.json', b'{'), ('o.md', b'###'),
                             ('o.tsv', b'before\t'), ('o.txt', b'before ')):
            self.assertEqual(self.diff(*pair, '-o', name), '')
            self.assertTrue(self.read(name).startswith(begins), name)
        self.assertEqual(self.diff(*pair, '-o', '/dev/stdout'),
                         self.diff(*pair))

    def test_color(self):
        os.environ['FORCE_COLOR'] = '1'
        self.addCleanup(os.environ.pop, 'FORCE_COLOR')
        os.environ.pop('NO_COLOR', None)
        text = self.diff(*self.sides())
        self.assertRegex(text, r'\x1b\[1[;\d]*mm\.f:5\x1b\[0m')
        # What may be chance is neither better nor worse.
        worse = r'\x1b\[1;[;\d]+m\+[^\x1b]+\x1b\[0m'
        self.assertRegex(text, worse)
        self.assertNotRegex(self.diff(*self.pair()), worse)


class StatusTest(DiffTest):

    def test_gates(self):
        slower = self.sides()
        same = [*self.series('a', 100), '--', *self.series('c', 100)]
        for status, gates in (
                (3, ['total']), (3, ['function:f']), (3, ['function:m.f']),
                (3, ['label:route=/f:x']), (3, ['label:route=/f:x:20%']),
                (0, ['function:g']), (0, ['label:route=/f:x:150%']),
                (0, ['total:30%']), (3, ['function:g', 'total'])):
            options = [text for gate in gates for text in ('--gate', gate)]
            with self.subTest(gates=gates):
                self.diff(*slower, *options, '--strict', status=status)
                self.diff(*same, *options, '--strict')

    def test_gates_that_cannot_tell(self):
        pair = self.pair()
        text = self.diff(*pair, '--gate', 'total')
        self.assertIn('inconclusive', text)
        self.assertIn('gates need two runs a side or more', text)
        self.diff(*pair, '--gate', 'total', '--strict', status=4)
        self.diff(*pair, '--strict')

    def test_usage(self):
        a, b = self.pair()
        cpu = self.save('c.pb.gz', mode='cpu')
        for message, arguments in (
                ('give two files', [a]), ('give two files', [a, b, a]),
                ('give two files', [a, '--']),
                ('give two files', [a, '--', b, '--', a]),
                ('is no gate', [a, b, '--gate', 'most']),
                ('is no gate', [a, b, '--gate', 'function:']),
                ('is no gate', [a, b, '--gate', 'label:route']),
                ('no sample of any profile is in function:x',
                 [a, b, '--gate', 'function:x']),
                ('in label:x=1', [a, b, '--gate', 'label:x=1']),
                ('share of the total', [a, b, '--gate', 'total', '--share']),
                ("the label 'x'", [a, b, '--by', 'x']),
                ("a.pb.gz: no sample has the label 'x'",
                 [a, b, '--per', 'x']),
                ('counted nothing', [a, b, '--per', 'event=x']),
                ("no value 'x'", [a, b, '--value', 'x']),
                ('known extensions: .txt, .json', [a, b, '-o', 'o.svg']),
                ('different modes: cpu and wall', [cpu, b]),
                ('not allowed with', [a, b, '--share', '--per', 'custom']),
                ('positive number', [a, b, '--top', '0'])):
            with self.subTest(arguments=arguments):
                self.assertFails(2, message, 'diff', *arguments)
        with open(os.path.join(self.directory, 'bad.pb.gz'), 'wb'):
            pass
        for message, arguments in (
                ('cannot read no.pb.gz', [a, 'no.pb.gz']),
                ('bad.pb.gz: is empty', ['bad.pb.gz', b]),
                ('cannot write no/x.md', [a, b, '-o', 'no/x.md'])):
            self.assertFails(1, message, 'diff', *arguments)

    def test_the_files_that_are_compared_stay_as_they_are(self):
        a, b = self.pair()
        self.diff(a, b, '-o', 'b.diff.html')
        for files, options in (
                ([a, b], ['-o', b]), ([a, b], ['-o', f'./{a}']),
                ([a, b], ['--format', 'json', '-o', a]),
                ([a, b], ['--html', '-o', b]),
                # It has the name of the page that is written by default.
                (['b.diff.html', b], ['--html'])):
            with self.subTest(files=files, options=options):
                before = [self.read(name) for name in files]
                self.assertFails(2, 'is to be read and to be written', 'diff',
                                 *files, *options)
                self.assertEqual([self.read(name) for name in files], before)
