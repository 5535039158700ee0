"""The report of memory: what it says, from rows written by hand."""

import contextlib
import io
import json
import os
import tempfile
import textwrap
import unittest

from profile_sampling import Profile, _cgroup
from profile_sampling._cli.main import main
from profile_sampling._data.histogram import BITS, Histogram
from profile_sampling._data.lives import Latency

from ..support.allocating import add_rows
from ..support.builders import Builder

_MB = 1 << 20
_PERIOD = 512 * 1024


def small(samples):
    """What so many samples of objects of 100 bytes stand for."""
    size = samples * _PERIOD
    return size // 100, size, size * _PERIOD // 256


def large(number, size):
    return number, number * size, 0


def service(mode='alloc', **facts):
    b = Builder(mode=mode, python_version='3.13.5', duration_ns=60_000_000_000,
                stats={'allocated_bytes': 22_300_000_000}, **facts)
    main_thread, worker = b.thread('MainThread'), b.thread('worker')
    frame = large(1, 96 * _MB)
    add_rows(b, [
        ('shop.main:3 shop.quote:107 C:json.dumps', main_thread,
         {'route': '/q'}, small(240), small(239), small(239)),
        ('shop.main:3 shop.images:18 C:numpy.empty', main_thread,
         {'route': '/i'}, large(12, 96 * _MB), frame, large(3, 96 * _MB)),
        ('shop.main:3 shop.orders:58', worker, {}, small(40_000), small(96),
         small(90)),
        ('shop.main:3 shop.little:5', worker, {}, small(50), small(3),
         small(3)),
        ('shop.main:3 shop.little:6', worker, {}, small(50), small(2),
         small(2)),
        ('[native~thread]', worker, {}, small(5), small(5), small(5))],
        peak_ns=41_200_000_000, resident={
            'rss': 849 * _MB, 'files': 61 * _MB, 'arenas': 250 * _MB,
            'arenas_used': 214 * _MB, 'malloc_used': 180 * _MB,
            'malloc_free': 190 * _MB, 'large': 100 * _MB,
            'large_variance': 0, 'has_malloc': 1})
    return b


def growing(*, full=False, seconds=3600, lines=(107,), **facts):
    """An hour in which quote() keeps 1 MB of each 30 s, at its *lines* by
    turns, and orders() frees what it allocates within a second; *full*: until
    half of the time."""
    b = Builder(mode='alloc', python_version='3.13.5',
                duration_ns=seconds * 1_000_000_000,
                start_time_ns=1_700_000_000 << 30, **facts)
    thread = b.thread('MainThread')
    rows, moments, readings = [], [], []
    none = 0, 0, 0
    for begun in range(0, seconds, 30):
        if not (full and begun > seconds / 2):
            line = lines[begun // 30 % len(lines)]
            rows.append((f'shop.main:3 shop.quote:{line} C:json.dumps', thread,
                         {}, small(2), small(2), small(2)))
            moments.append((begun, None, 0))
        rows.append(('shop.main:3 shop.orders:58', thread, {}, small(40),
                     none, none))
        moments.append((begun, None, 0))
        rows.append(('shop.main:3 shop.orders:58', thread, {}, small(40),
                     none, none))
        moments.append((begun, begun, 2))
        readings.append((b.facts['start_time_ns'] + begun * 10 ** 9, 0,
                         begun // 400, (200 + begun // 30) * _MB, 61 * _MB,
                         90 * _MB, 80 * _MB, 100 * _MB, 10 * _MB))
    add_rows(b, rows, moments=moments, readings=readings, resident={
        'rss': 320 * _MB, 'files': 61 * _MB, 'arenas': 90 * _MB,
        'arenas_used': 80 * _MB, 'malloc_used': 100 * _MB,
        'malloc_free': 10 * _MB, 'large': 60 * _MB, 'large_variance': 0,
        'has_malloc': 1})
    profile = b.profile()
    return profile.__class__._from_tables(profile._tables.with_facts(
        meta=profile._tables.meta | {'memory_limit': str(512 * _MB)}))


class MemoryReport(unittest.TestCase):

    maxDiff = None

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.enterContext(contextlib.chdir(directory.name))
        self.save(service())

    def save(self, builder, name='p.pb.gz'):
        (builder.profile() if isinstance(builder, Builder)
         else builder).save(name)

    def report(self, *arguments, path='p.pb.gz', status=0):
        return self.run_command('report', path, *arguments, status=status)

    def run_command(self, *arguments, status=0):
        streams = [io.TextIOWrapper(io.BytesIO(), 'utf-8', newline='\n')
                   for _ in range(2)]
        with contextlib.redirect_stdout(streams[0]), \
                contextlib.redirect_stderr(streams[1]):
            try:
                its_status = main([*arguments]) or 0
            except SystemExit as exc:
                its_status = exc.code
        out, err = [stream.buffer.getvalue().decode() for stream in streams
                    if stream.flush() is None]
        self.assertEqual(its_status, status, err)
        return err if status == 2 else out

    def test_known_answer(self):
        self.assertEqual(self.report(), textwrap.dedent('''\
            Memory of p.pb.gz, 60.0 s, Python 3.13.5, a sample per 512 KB
            In use 268.5 ± 18.2 MB at the end, 457.5 MB at the peak (at 41.2 s); RSS 849.0 MB
            44.5 % of it, 119.5 ± 15.2 MB, at shop.quote:107 (json.dumps)
            Allocated: 20.77 GB, counted; 20.82 ± 0.19 GB by samples

            * The peak: at 41.2 s /i had 288 MB in use, 192 MB more than at the end. Without that moment the
              highest is 268 MB
            * 190 MB of RSS is free in C's malloc: --rss

             in use      ±  survived  allocated  line                     in
            119.5MB   15.2    99.6 %     0.12GB  shop.quote:107           json.dumps
             96.0MB  exact     8.3 %     1.12GB  shop.images:18           numpy.empty
             48.0MB    9.6     0.2 %    19.53GB  shop.orders:58
              2.5MB    2.2     5.0 %     0.05GB  2 more lines under 2 MB
              2.5MB    2.2     100 %    <0.01GB  Outside my code
            268.5MB   18.2     1.3 %    20.82GB  all

            ±: 95 %. survived: of all that was allocated there. exact: each of these blocks is so large that it
              was sampled for certain.
            Also: --value in_use | allocated | peak, --by type | thread | route, --rss, --collections, --html
            '''))

    def test_file_says_the_same(self):
        # What a profile is about comes last in a file.
        for mode in 'alloc', 'wall':
            b = service(mode)
            if mode == 'wall':
                b.sample('shop.main:3 shop.quote:107', wall_ns=500_000_000)
            profile = b.profile()
            self.save(profile)
            loaded = Profile.load('p.pb.gz')
            self.assertEqual(loaded, profile)
            self.assertEqual(hash(loaded), hash(profile))

    def test_widths(self):
        for width, heading in (
                (120, ' in use      ±  survived  allocated  line'),
                (80, ' in use      ±  survived  line'),
                (60, ' in use      ±  line')):
            with self.subTest(width=width):
                lines = self.report('--width', str(width)).splitlines()
                self.assertLessEqual(max(map(len, lines)), width)
                head = lines[lines.index('', lines.index('') + 1) + 1]
                self.assertEqual(head[:len(heading)], heading)
                self.assertEqual(' in' in head[8:], width > 100)

    def test_only_signs_that_are_there(self):
        self.assertIn('survived:', self.report('--width', '80'))
        self.assertNotIn('survived', self.report('--width', '60'))

    def test_nothing_was_counted(self):
        """As in a file of Go's: samples are all that there is."""
        self.save(Profile._from_tables(
            service().profile()._tables.with_facts(stats={})))
        self.assertNotIn('counted', self.report())

    def test_amounts(self):
        for options, expected in (
                (('--value', 'allocated'),
                 '20.82 ± 0.19 GB were allocated; 268.5 ± 18.2 MB of it is '
                 'in use at the end'),
                (('--value', 'peak'),
                 'In use 457.5 ± 18.0 MB at the peak (at 41.2 s); 268.5 ± '
                 '18.2 MB at the end'),
                (('--by', 'route'), '119.5MB   15.2    99.6 %     0.12GB  /q'),
                (('--by', 'thread'), '53.0MB  10.1     0.3 %    19.58GB  '
                 'worker'),
                (('--where', 'route=/q'), '119.5MB  15.2    99.6 %    '
                 '120.0MB  all'),
                (('--rss',), ' 80.0MB    9.4 %  exact  C libraries')):
            with self.subTest(options=options):
                self.assertIn(expected, self.report(*options))

    def test_parts_have_no_rss(self):
        report = self.report('--where', 'route=/q')
        self.assertIn('In use 119.5 ± 15.2 MB at the end, 119.5 MB at the '
                      'peak (at 41.2 s)\n', report)
        self.assertNotIn('counted', report)
        self.assertNotIn('malloc', report)
        self.assertIn('--rss is of the whole process', self.report(
            '--rss', '--focus', 'quote', status=2))

    def test_types(self):
        b = Builder(mode='alloc', duration_ns=10 ** 9)
        thread = b.thread('main')
        add_rows(b, [('a.f:1', thread, {'block type': name}, *[small(size)] * 3)
                     for name, size in (('str', 90), ('dict', 80),
                                        ('set', 10))])
        self.save(b)
        self.assertIn('  a.f:1  str, dict\n', self.report('--width', '120'))
        self.assertNotIn('dict', self.report('--width', '100'))

    def test_rss_adds_up(self):
        document = json.loads(self.report('--rss', '--format', 'json'))
        *parts, whole = [row['bytes'] for row
                         in document['tables'][0]['rows']]
        self.assertEqual(sum(parts), whole)

    def test_json(self):
        document = json.loads(self.report('--format', 'json'))
        [table] = document['tables']
        first = table['rows'][0]
        self.assertEqual(first['inuse_bytes'], 239 * _PERIOD)
        self.assertEqual((first['function'], first['line'], first['in']),
                         ('shop.quote', 107, 'json.dumps'))
        self.assertEqual(table['rows'][-1]['function'], 'all')

    def test_beside_time(self):
        b = service(mode='wall')
        b.sample('shop.main:3 shop.quote:107', count=400, wall_ns=500_000_000)
        self.save(b)
        report = self.report()
        self.assertIn('Memory: in use 268.5 MB at the end, 457.5 MB at the '
                      'peak (at 41.2 s); 355 MB a second allocated: '
                      '--memory', report.replace('\n  ', ' '))
        self.assertNotIn('shop.orders', report)
        self.assertIn('shop.orders:58', self.report('--memory'))

    def test_growth(self):
        self.save(growing())
        for options, expected in (
                ((), 'RSS 320.0 MB of 512 MB\n'
                 'It grows by 119 MB an hour, 100.0 % of it at '
                 'shop.quote:107, and has not stopped\n'),
                ((), '* From 21:00:16 to 21:45:00 it grew by 89.0 ± 13.1 MB. '
                 'Of what shop.quote:107 allocated nothing was\n  freed, while '
                 '8 full collections ran. At this pace RSS reaches the limit '
                 'of 512 MB in about 97\n  minutes\n'),
                ((), '120.0MB  15.2  +89.0     100 %  '
                 'shop.quote:107  json.dumps'),
                (('--value', 'grew'), '89.0MB  13.1  31.0MB     120.0MB   '
                 '  100 %  shop.quote:107'),
                (('--value', 'survived'), '120.0 ± 15.2 MB of 2.46 ± 0.07 '
                 'GB that were allocated are in use'),
                (('--value', 'churn'), '683 KB a second were allocated and '
                 'freed again within a second: 95.2 %'),
                (('--value', 'churn'), '682.7KB  19.3  1 ms to 10 ms  shop.orders:58'),
                (('--rss',), '12.5 %  exact  -60.0MB  C libraries'),
                (('--rss',), '100.0 %         +88.0MB  RSS')):
            with self.subTest(options=options, expected=expected):
                self.assertIn(expected, self.report(*options))

    def test_growth_at_several_lines(self):
        for lines, expected in (
                ((107, 108), '100.0 % of it at shop.quote (lines 108, 107),'),
                # What is at 108 is not worth a name.
                ((107,) * 39 + (108,), '96.6 % of it at shop.quote:107,')):
            self.save(growing(lines=lines))
            self.assertIn(f'It grows by 119 MB an hour, {expected}',
                          self.report())

    def test_growth_that_has_stopped(self):
        self.save(growing(full=True))
        report = self.report()
        self.assertIn('It grew by 30.0 MB until ', report)
        self.assertIn(' and has not since\n', report)
        self.assertNotIn('*', report)

    def test_two_snapshots(self):
        self.save(growing(pid=1, seconds=1800), 'a.pb.gz')
        self.save(growing(pid=1), 'b.pb.gz')
        report = self.run_command('diff', 'a.pb.gz', 'b.pb.gz')
        self.assertIn('It grew by 60.0 ± 10.7 MB, 120.0 MB an hour: 100.0 % '
                      'at shop.quote:107\n', report)
        self.assertIn('60.0MB  120.0MB   +60.0  10.7     100 %  '
                      'shop.quote:107', report)
        # Of another process, or the wrong way round, nothing grew.
        self.save(growing(pid=2), 'c.pb.gz')
        for names in ('a.pb.gz', 'c.pb.gz'), ('b.pb.gz', 'a.pb.gz'):
            self.assertNotIn('grew', self.run_command('diff', *names))

    def save_runs(self, name, sizes, *, peak=None):
        """Save a run of each size in MB: that a line has in use."""
        names = []
        for number, size in enumerate(sizes):
            b = Builder(mode='alloc', pid=100 * ord(name) + number,
                        duration_ns=10 ** 9)
            its = small(2 * size)
            add_rows(b, [('shop.main:3 shop.quote:107', b.thread('main'), {},
                          its, its, small(2 * (peak or size)))])
            self.save(b, f'{name}{number}.pb.gz')
            names.append(f'{name}{number}.pb.gz')
        return names

    def test_gates(self):
        """A gate of memory knows what is chance: of runs, and of samples."""
        before = self.save_runs('a', (5000, 5010, 5020, 5005, 5015))
        same = self.save_runs('b', (5006, 5011, 5012, 5007, 5019))
        more = self.save_runs('c', (5800, 5810, 5820, 5805, 5815))
        alike = self.save_runs('d', (20, 20, 20, 20, 20))
        hardly = self.save_runs('e', (22, 22, 22, 22, 22))
        high = self.save_runs('f', (5000, 5010, 5020, 5005, 5015), peak=6000)
        for sides, gate, status in (
                ((before, more), 'in_use:5%', 3),
                ((before, same), 'in_use:5%', 0),
                ((before, more), 'in_use:500MB', 3),
                ((before, same), 'in_use:500MB', 0),
                ((before, more), 'in_use:1GB', 0),
                ((before, high), 'in_use', 0),
                ((before, high), 'peak:10%', 3),
                ((before, more), 'line:shop.quote:107:500MB', 3),
                ((before, more), 'line:shop.quote:107:20%', 0),
                ((before, more), 'allocated', 3),
                # Runs do not differ, but samples say no more than that.
                ((alike, hardly), 'in_use:1MB', 4),
                # What one run says of the next is not known.
                ((before[:1], more[:1]), 'in_use:5%', 4)):
            with self.subTest(gate, status=status):
                self.run_command(
                    'diff', '--strict', '--gate', gate, *sides[0], '--',
                    *sides[1], status=status)
        self.assertRegex(self.run_command(
            'diff', '--gate', 'in_use:500MB', *before, '--', *same),
            r'in_use \(500 MB\) +\S+ % +\S+ % +no regression')

    def test_gates_of_other_profiles(self):
        b = Builder()
        b.sample('shop.main:3', wall_ns=500_000_000)
        for name in 'ab':
            self.save(b, f'{name}.pb.gz')
        for gate, expected in (
                ('in_use:5%', 'has no memory; record it with --alloc'),
                ('total:20MB', 'total is of wall, which is not counted in '
                 'bytes'), ('in_use:5kg', "'in_use:5kg' is no gate")):
            self.assertIn(expected, self.run_command(
                'diff', '--gate', gate, 'a.pb.gz', 'b.pb.gz', status=2))
        self.assertIn('nothing grew from the one to the other',
                      self.run_command('diff', '--value', 'grew', 'p.pb.gz',
                                       'p.pb.gz', status=2))

    def test_no_growth(self):
        self.save(growing(seconds=299))
        self.assertNotIn('grew', self.report())
        self.save(growing(pid=1), '1.pb.gz')
        self.save(growing(pid=2), '2.pb.gz')
        self.assertIn('2 processes: nothing grew', self.report(
            '--value', 'grew', path='[12].pb.gz', status=2))

    def test_few_samples(self):
        b = Builder(mode='alloc', duration_ns=1_000_000_000)
        add_rows(b, [('tool.load:14', b.thread('main'), {}, small(18),
                      small(18), small(18))])
        self.save(b)
        self.assertIn('Quality: few samples (18): only what is 2 MB or more '
                      'can be named. alloc=64K makes it ± 1.5 MB',
                      self.report())

    def test_moments(self):
        """Blocks come and go at known times."""
        b = Builder(mode='alloc', duration_ns=3600 * 10 ** 9,
                    start_time_ns=1_700_000_000 << 30)
        thread = b.thread('MainThread')
        size = large(1, 100 * _MB)
        none = 0, 0, 0
        # Line 1 for the first half, 2 from a quarter on, 3 within a second.
        rows = [('a.f:1', thread, {}, size, none, size),
                ('a.f:1', thread, {}, size, none, none),
                ('a.f:2', thread, {}, size, size, size),
                ('a.f:3', thread, {}, size, none, none),
                ('a.f:3', thread, {}, size, none, none)]
        add_rows(b, rows, peak_ns=960 * 10 ** 9, moments=[
            (64, None, 0), (64, 1856, 7), (960, None, 0), (2720, None, 0),
            (2720, 2720, 2)], readings=[
                (b.facts['start_time_ns'] + at * 10 ** 9, 0, 0, 900 * _MB,
                 0, 0, 0, 500 * _MB, at * _MB // 64) for at in
                (640, 1280, 3584)], resident={
                    'rss': 900 * _MB, 'files': 0, 'arenas': 0,
                    'arenas_used': 0, 'malloc_used': 500 * _MB,
                    'malloc_free': 56 * _MB, 'large': 100 * _MB,
                    'large_variance': 0, 'has_malloc': 1})
        self.save(b)
        for options, expected in (
                ('--at 600', 'In use 100.0 MB at 20:55:00'),
                ('--at 600', '100.0 MB at the peak (20:4'),
                ('--at 600', '100.0MB  exact     100 %    100.0MB  a.f:1'),
                ('--at 21:05:00', 'In use 200.0 MB at 21:05:00'),
                ('--at peak', 'In use 200.0 MB at the peak (21:01:00)'),
                ('--at end', '100.0MB  exact  +100.0     100 %  '
                 'a.f:2'),
                ('--time 600..1200 --value grew', 'It grew by 100.0 MB from'),
                ('--time 1200..3000 --value grew', '-100.0MB  exact'),
                ('--time 0..1200 --value survived',
                 '100.0 MB of 200.0 MB that were allocated from'),
                ('--time 2000..3000 --value allocated',
                 '100.0 MB were allocated from 21:18:20 to 21:35:00; 0 B'),
                ('--time 2000..3000 --value churn', '102 KB a second'),
                ('--time 2000..3000 --value peak', 'In use 100.0 MB at the '
                 'peak from 21:18:20 to 21:35:00 (21:18:20)'),
                ('--min-age 600', '100.0 MB of what was in use at 21:45:00 had '
                 'been allocated 600 s before'),
                ('--at 3000 --rss', '20.0MB    2.2 %'),
                ('--at 3000 --rss', '400.0MB   44.4 %  exact')):
            with self.subTest(options=options):
                self.assertIn(expected, self.report(*options.split()))
        self.assertIn('0 B of what was in use', self.report(
            '--min-age', '2700'))
        for options, expected in (
                ('--at 3601', 'not in the recording, which is from 2'),
                ('--at soon', "invalid moment: peak, end, 14:21:30 (UTC) or"),
                ('--at 600 --time 0..1', 'give --at or --time'),
                ('--at 600 --value churn', '--at is of what is in use, and '
                 'churn is of a time: --time BEGIN..END'),
                ('--min-age 1 --value grew', '--min-age is of what is in use'),
                ('--time 60..70 --value grew', 'grew needs two moments that '
                 'are further apart: memory is known by intervals of 32 s, '
                 'this is 10 s'),
                ('--time 70..60', 'ends before it begins'),
                ('--at 600 --format pprof', '--at changes nothing')):
            with self.subTest(options=options):
                self.assertIn(expected, self.report(*options.split(),
                                                    status=2))

    def test_in_use_of_an_age(self):
        """As --min-age says it: 1 MB of each 30 s is kept."""
        for profile in growing(), self.loaded(growing()):
            self.assertEqual(profile.in_use().total('inuse_space'), 120 * _MB)
            # Of blocks only an interval of 32 s is known.
            old = profile.in_use(min_age_s=600)
            self.assertEqual(old.value_type.name, 'inuse_space_bytes')
            self.assertIn(old.total('inuse_space') // _MB, (98, 99))
            self.assertEqual({sample.stack[1].function.name
                              for sample in old.samples}, {'shop.quote'})
            self.assertNotIn('RSS', str(old))
            self.assertEqual(len(profile.in_use(min_age_s=7200).samples), 0)
        self.save(growing())
        self.assertIn(f"{old.total('inuse_space') / _MB:.1f} ±",
                      self.report('--min-age', '600'))
        with self.assertRaisesRegex(ValueError, 'min_age_s'):
            profile.in_use(min_age_s=-1)
        b = Builder()
        b.sample('shop.main:3', wall_ns=500_000_000)
        with self.assertRaisesRegex(ValueError, 'inuse_space'):
            b.profile().in_use()
        both = Profile.merge(*[service(pid=pid).profile() for pid in (1, 2)])
        with self.assertRaisesRegex(ValueError, '2 processes'):
            both.in_use()

    def loaded(self, profile):
        self.save(profile, 'loaded.pb.gz')
        return Profile.load('loaded.pb.gz')

    def test_older_than_the_recording(self):
        """What was there when a session was attached has no line."""
        profile = service().profile()
        more = {f'memory_{name}': str(800 * _MB)
                for name in ('arenas', 'arenas_used')}
        self.save(Profile._from_tables(profile._tables.with_facts(
            meta=profile._tables.meta | more)))
        # What is in use and no large block is in arenas, too.
        self.assertIn('* 580 MB of small objects are older than the '
                      'recording, without a line: --rss', self.report())

    def test_two_processes(self):
        """What differs has the margin of both sides' samples."""
        self.save_runs('a', [100])
        self.save_runs('b', [140])
        report = self.run_command('diff', 'a0.pb.gz', 'b0.pb.gz')
        # 1.96 times the root of 100 and 140 MB by 512 KB.
        self.assertRegex(report, r'100\.0 MB  140\.0 MB  \+40\.0 MB  21\.5 MB')
        self.run_command('merge', 'a0.pb.gz', 'b0.pb.gz', '-o',
                               'both.pb.gz')
        self.assertNotIn(' at the peak', self.report(path='both.pb.gz'))

    def test_no_moments(self):
        b = Builder()
        b.sample('shop.main:3', wall_ns=500_000_000)
        self.save(b, 'time.pb.gz')
        for options in '--at 0', '--time 0..1', '--min-age 1':
            self.assertIn('time.pb.gz has no memory: it was recorded as wall '
                          'time', self.report(*options.split(),
                                              path='time.pb.gz', status=2))
        for name in '12':
            self.save(service(pid=int(name)), f'{name}.pb.gz')
        self.assertIn('2 processes have no moments in common', self.report(
            '--at', '3', path='[12].pb.gz', status=2))

    def test_routes(self):
        profile = service().profile()
        times = Histogram(BITS, [1])
        self.save(profile.__class__._from_tables(profile._tables.with_facts(
            latencies=tuple([
                Latency('route', route, (), number, 1, 1, times, ())
                for route, number in (('/q', 1200), ('/i', 12), ('/none', 3))
                ]))))
        report = self.report('--by', 'route')
        self.assertEqual(report.splitlines()[-8:-3], [
            '  by one      ±  requests  allocated  at peak  grew by one  route  '
            '     most at',
            '  96.0MB  exact        12     1.12GB  288.0MB       +8.0MB  /i     '
            '     shop.images:18',
            ' 102.4KB   13.0     1,200     0.12GB  119.5MB     +102.0KB  /q     '
            '     shop.quote:107',
            '<512.0KB                3          -        -            -  /none',
            '                             19.58GB   50.0MB               no '
            'request  shop.orders:58'])
        self.assertNotIn('grew', self.report('--by', 'route', '--width', '80'))
        self.assertIn('* 96.0 MB for one request of /i, most at '
                      'shop.images:18', report)
        document = json.loads(self.report('--by', 'route', '--format', 'json'))
        [table] = document['tables']
        self.assertEqual([(row['route'], row['requests'], row['alloc_bytes'])
                          for row in table['rows'][:2]],
                         [('/i', 12, 12 * 96 * _MB), ('/q', 1200, 120 * _MB)])

    def test_refusals(self):
        b = Builder()
        b.sample('shop.main:3', wall_ns=500_000_000)
        self.save(b, 'time.pb.gz')
        self.assertIn('time.pb.gz has no memory: it was recorded as wall',
                      self.report('--memory', path='time.pb.gz', status=2))
        for name in '12':
            self.save(service(pid=int(name)), f'{name}.pb.gz')
        self.assertIn('the peaks of 2 processes were at as many moments',
                      self.report('--value', 'peak', path='[12].pb.gz',
                                  status=2))
        self.assertIn('537.0 ± 25.7 MB at the end',
                      self.report(path='[12].pb.gz'))

    def test_saved_and_loaded(self):
        profile = service().profile()
        again = Profile.load('p.pb.gz')
        self.assertEqual(again._tables.meta, profile._tables.meta)
        self.assertEqual(sorted(again.value_types, key=repr),
                         sorted(profile.value_types, key=repr))
        self.assertEqual(again.total('inuse_space_bytes'),
                         profile.total('inuse_space_bytes'))


class Limits(unittest.TestCase):

    def test_groups(self):
        with tempfile.TemporaryDirectory() as root:
            def write(path, text):
                path = os.path.join(root, path)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, 'w') as file:
                    file.write(text)
                return path

            def limit(groups):
                return _cgroup.limit_bytes(root, write('cgroup', groups))

            self.assertIsNone(limit('0::/a/b\n'))
            write('a/memory.max', '1000\n')
            write('a/b/memory.max', 'max\n')
            # That of any group above holds, too.
            self.assertEqual(limit('0::/a/b\n'), 1000)
            write('memory/memory.limit_in_bytes', '9223372036854771712\n')
            write('memory/c/memory.limit_in_bytes', '500\n')
            self.assertEqual(limit('4:cpu,memory:/c\n0::/a\n'), 500)
            # In a container, a path that is not there.
            self.assertIsNone(limit('4:memory:/../elsewhere\n'))


if __name__ == '__main__':
    unittest.main()
