"""The text report: what it says, and that it fits."""

import textwrap
import unittest

from profile_sampling._formats import text as _text

from ..support.builders import Builder, example


def report(builder, **options):
    return _text.render(builder.profile()._tables, **options)


class ReportTest(unittest.TestCase):

    maxDiff = None

    def test_known_answer(self):
        b = Builder(python_version='3.13.5', stats={
            'late': 0, 'lost_ring_full': 2, 'lost_stale': 1,
            'lost_wall_ns': 1_200_000})
        main = b.thread('MainThread')
        worker = b.thread('worker')
        b.sample('app.main:3 app.work:11', count=900, cpu_ns=900_000_000,
                 wall_ns=1_000_000_000, thread=main)
        b.sample('app.main:4 C:time.sleep [blocked]', count=2,
                 wall_ns=3_000_000_000, thread=worker, state='blocked')
        # A tilde is a gap: the lines are 100 columns, these are not.
        self.assertEqual(report(b), textwrap.dedent('''\
            Wall profile of Python 3.13.5

            Mode       wall, 1,000 Hz
            Started    2023-11-14 22:13:20 UTC
            Duration   2.000 s
            Threads    2
            Wall time  4.000 s in all threads together
            CPU time   900.000 ms in all threads together
            Samples    902
            Lost       3 samples (ring full 2, stale 1); 1.200 ms wall

            State              wall    share          CPU    share      count
            running         1.000 s   25.0 %   900.000 ms  100.0 %        900
            blocked         3.000 s   75.0 %     0.000 ms    0.0 %          2

            Functions by self wall time
                time    share    count  function~      place or kind
             3.000 s   75.0 %        2  [blocked]~     pseudo-frame
             1.000 s   25.0 %      900  app.work~      /src/app.py:1

            Functions by cumulative wall time
                time    share    count  function~      place or kind
             4.000 s  100.0 %      902  app.main~      /src/app.py:1
             3.000 s   75.0 %        2  [blocked]~     pseudo-frame
             3.000 s   75.0 %        2  time.sleep~    C function
             1.000 s   25.0 %      900  app.work~      /src/app.py:1

            Counters
              lost_ring_full 2, lost_stale 1, lost_wall_ns 1,200,000
            ''').replace('~', 30 * ' '))

    def test_kinds(self):
        b = Builder().sample('a.f:1 C:time.sleep op:int.__mul__ [blocked]',
                             wall_ns=1)
        kinds = {line[28:70].strip(): line[72:]
                 for line in report(b).splitlines()}
        for name, kind in (('a.f', '/src/a.py:1'),
                           ('time.sleep', 'C function'),
                           ('int.__mul__', 'operator'),
                           ('[blocked]', 'pseudo-frame')):
            self.assertEqual(kinds[name], kind)

    def test_cpu_mode_ranks_by_cpu(self):
        b = Builder(mode='cpu')
        b.sample('a.waits', cpu_ns=1_000_000, wall_ns=9_000_000)
        b.sample('a.works', cpu_ns=3_000_000, wall_ns=3_000_000)
        text = report(b)
        self.assertIn('Functions by self CPU time', text)
        self.assertLess(text.index('a.works'), text.index('a.waits'))
        self.assertIn('3.000 ms   75.0 %', text)

    def test_states(self):
        text = report(example())
        rows = {line[:10].strip(): line[10:].split()
                for line in text.splitlines()}
        self.assertEqual(rows['GIL wait'][:4], ['0.060', 's', '2.9', '%'])
        self.assertEqual(rows['GC'][-1], '1')
        self.assertEqual(rows['running'][:4], ['1.000', 's', '48.8', '%'])
        self.assertIn('unsampled', rows)

    def test_every_lost_counter_is_named(self):
        stats = {'lost_a': 1, 'lost_b_c': 2, 'lost_zero': 0,
                 'lost_cpu_ns': 5_000_000_000, 'lost_wall_ns': 7_000_000}
        b = Builder(stats=stats).sample('a.f', wall_ns=1)
        line, = [line for line in report(b).splitlines()
                 if line.startswith('Lost')]
        self.assertEqual(line, 'Lost       3 samples (a 1, b c 2); '
                               '5.000 s CPU; 7.000 ms wall')

    def test_lost_threads_are_not_samples(self):
        b = Builder(stats={'lost_a': 1, 'lost_threads': 2})
        self.assertIn('Lost       1 sample (a 1); 2 threads not profiled\n',
                      report(b))
        b = Builder(stats={'lost_threads': 2})
        self.assertIn('Lost       0 samples; 2 threads not profiled\n',
                      report(b))

    def test_lost_labels_are_not_samples(self):
        b = Builder(stats={'lost_labels': 1200, 'lost_tasks': 2,
                           'lost_threads': 3})
        b.sample('a.f', wall_ns=1)
        self.assertIn('Lost       0 samples; 1,200 samples without their '
                      'labels; 2 samples without their task; 3 threads not '
                      'profiled\n', report(b))

    def test_missed_ticks(self):
        def text(missed):
            stats = {'ticks_missed': missed, 'signals_sent': 800,
                     'ticks_noted': 150, 'ticks_busy': 50, 'ticks_idle': 9000}
            return report(Builder(stats=stats).sample('a.f', wall_ns=1))
        self.assertNotIn('Missed', text(10))        # 1.0 %, rounded up
        self.assertIn('\nMissed     2.0 % of the ticks: ', text(20))
        self.assertIn('\nLost       nothing\n', text(20))
        self.assertIn('\nLost       0 samples; 20% of the ticks missed\n',
                      text(250))

    def test_asleep_with_the_gil(self):
        b = Builder().sample('a.f', wall_ns=6_000_000)
        self.assertNotIn('Asleep', report(b))
        b.sample('a.f [asleep with GIL]', wall_ns=2_000_000,
                 state='asleep_with_gil')
        text = report(b)
        self.assertIn('\nAsleep     2.000 ms with the GIL held, 25.0 %: ',
                      text)
        self.assertIn('\nasleep with GIL', text)

    def test_custom_samples(self):
        b = Builder().sample('a.f', wall_ns=1)
        self.assertNotIn('ustom', report(b))
        b.sample('a.f', count=12, state='custom')
        text = report(b)
        self.assertIn('\nCustom     12 counted by sample(), which weigh no '
                      'time and are not in the samples above\n', text)
        self.assertRegex(text, r'\ncustom  .* 12\n')

    def test_time_of_subscribers(self):
        b = Builder(stats={'subscribers_wall_ns': 2_500_000})
        b.sample('a.f', wall_ns=1)
        self.assertIn('\nAside      2.500 ms wall, 0.000 ms CPU of serving '
                      'subscribers, not in the times above\n', report(b))

    def test_labels(self):
        b = Builder()
        b.sample('a.f', wall_ns=6_000_000, labels={'route': '/a', 'u': 'x'},
                 task=('Task-1', 5))
        b.sample('a.f', wall_ns=3_000_000, labels={'route': '/b'})
        b.sample('a.f', wall_ns=1_000_000)
        text = report(b)
        self.assertIn(textwrap.dedent('''
            Values of label route by wall time
                time    share    count  value
            6.000 ms   60.0 %        1  /a
            3.000 ms   30.0 %        1  /b
            1.000 ms   10.0 %        1  [without]

            Tasks by wall time
                time    share    count  value
            6.000 ms   60.0 %        1  Task-1
            4.000 ms   40.0 %        2  [without]

            Values of label u by wall time
            '''), text)

    def test_labels_are_bounded(self):
        b = Builder()
        for key in range(300):
            b.sample('a.f', wall_ns=key + 1,
                     labels={f'{key:03}' + 'k' * 200: '\x1b' + 'v' * 200})
            b.sample('a.f', wall_ns=1, labels={'000': str(key)})
        lines = report(b).splitlines()
        self.assertLessEqual(max(map(len, lines)), 100)
        self.assertLess(len(lines), 100)
        self.assertIn('Values of label 000 by wall time, 10 of 301', lines)
        [others] = [line for line in lines if line.startswith('Other')]
        self.assertTrue(others.startswith('Other labels: 004k'), others)
        self.assertNotIn('\x1b', ''.join(lines))

    def test_nothing_lost(self):
        self.assertIn('\nLost       nothing\n',
                      report(Builder().sample('a.f', wall_ns=1)))

    def test_a_total_of_losses_is_not_counted_twice(self):
        b = Builder(stats={'lost': 3, 'lost_a': 1, 'lost_b': 2})
        self.assertIn('Lost       3 samples (a 1, b 2)\n', report(b))
        b = Builder(stats={'lost': 3, 'lost_a': 3})
        self.assertIn('Lost       3 samples (a 3)\n', report(b))

    def test_a_total_of_losses_alone(self):
        self.assertIn('Lost       3 samples\n',
                      report(Builder(stats={'lost': 3})))

    def test_one_lost_sample(self):
        self.assertIn('Lost       1 sample (a 1)\n',
                      report(Builder(stats={'lost_a': 1})))

    def test_top(self):
        b = Builder()
        for number in range(60):
            b.sample(f'a.f{number:02}', wall_ns=1_000 * (number + 1))
        text = report(b)
        self.assertEqual(text.count('a.f59'), 2)
        self.assertEqual(text.count('a.f10'), 2)
        self.assertEqual(text.count('a.f09'), 0)
        self.assertIn('Functions by self wall time, 50 of 60', text)
        self.assertEqual(report(b, top=3).count('a.f'), 6)

    def test_self_table_has_only_what_has_time_of_its_own(self):
        b = Builder().sample('a.main a.f', wall_ns=1)
        b.sample('a.uncounted', wall_ns=1, count=0)
        own, cumulative = report(b).split('Functions by cumulative')
        self.assertNotIn('a.main', own)
        self.assertIn('a.uncounted', own)
        self.assertIn('a.main', cumulative)

    def test_width(self):
        b = Builder(stats={f'counter_{n}': 10 ** n for n in range(19)})
        b.sample([b.function('package.' * 20, 'f' * 200, '/d' * 200, 99)],
                 wall_ns=10 ** 15, count=10 ** 9)
        for line in report(b).splitlines():
            self.assertLessEqual(len(line), 100, line)

    def test_long_names_keep_their_end(self):
        for name, shown in (
                ('package.' * 9 + 'Class.method',
                 '...package.package.package.Class.method'),
                ('x' * 90, '...' + 'x' * 39),
                # Not at the cost of most of it.
                ('x' * 30 + '.' + 'y' * 20, '...' + 'x' * 18 + '.'
                 + 'y' * 20)):
            b = Builder().sample(f'm.{name}', wall_ns=1)
            self.assertIn(f' {shown} ', report(b))

    def test_long_places_keep_their_end(self):
        for filename, place in (
                ('/usr/lib/python3.13/json/decoder.py',
                 '.../json/decoder.py:340'),
                ('/x/decoder.py', '/x/decoder.py:340'),
                ('x' * 90, '...' + 'x' * 21 + ':340')):
            b = Builder()
            b.sample([b.function('m', 'f', filename, 340)], wall_ns=1)
            self.assertIn(f' {place}\n', report(b))

    def test_facts_that_are_missing(self):
        b = Builder(start_time_ns=0, rate_hz=0, python_version='')
        b.sample('a.f', wall_ns=1)
        text = report(b)
        self.assertTrue(text.startswith('Wall profile\n'))
        self.assertIn('Mode       wall\n', text)
        self.assertIn('Started    not known\n', text)
        for start in (2 ** 63 - 1, -2 ** 63):
            report(Builder(start_time_ns=start))

    def test_deterministic(self):
        self.assertEqual(report(example()), report(example()))


# A tilde is a gap, as above.
INSTRUCTIONS = '''\
by self wall time, C functions and operators included
    time    share    count spec/un/deopt  instruction~mostly in~   place
 4.000 s   79.2 %        1       0/100/0  CALL       ~time.sleep~  /src/a.py:8
 1.000 s   19.8 %      100      90/10/10  BINARY_OP  ~int.__add__~ /src/a.py:7
 0.050 s    1.0 %        5             -  POP_TOP    ~           ~ /src/a.py:9
  spec: % of samples that saw the instruction specialized; un: that did not;
  deopt: that did not, although others did
'''.replace('~', 8 * ' ')


class InstructionsTest(unittest.TestCase):

    maxDiff = None

    def section(self, builder, **options):
        _, found, text = report(builder, **options).partition(
            '\nTop instructions ')
        return text.partition('\n\nCounters')[0] if found else None

    def test_known_answer(self):
        b = Builder(names=3)
        b.sample('a.f:7@BINARY_OP_ADD_INT+8 op:int.__add__', count=60,
                 wall_ns=600_000_000)
        b.sample('a.f:7@BINARY_OP_ADD_FLOAT+8 op:float.__add__', count=30,
                 wall_ns=300_000_000)
        b.sample('a.f:7@BINARY_OP+8', count=10, wall_ns=100_000_000)
        b.sample('a.f:8@CALL+20 C:time.sleep [blocked]', count=1,
                 wall_ns=4_000_000_000)
        b.sample('a.f:9@POP_TOP+30', count=5, wall_ns=50_000_000)
        self.assertEqual(self.section(b), INSTRUCTIONS)

    def test_mostly_in_the_bytecode(self):
        b = Builder(names=3)
        b.sample('a.f:1@LOAD_ATTR+2', wall_ns=5)
        b.sample('a.f:1@LOAD_ATTR+2 op:int.real', wall_ns=4)
        self.assertNotIn('int.real', self.section(b))

    def test_only_when_opcodes_are_named(self):
        for names, there in enumerate((False, False, True, True)):
            b = example(names=names)
            self.assertEqual(self.section(b) is not None, there)

    def test_only_when_python_ran(self):
        b = Builder(names=3).sample('[lost]', wall_ns=1, state='lost')
        self.assertIsNone(self.section(b))

    def test_top(self):
        b = Builder(names=3)
        for number in range(30):
            b.sample(f'a.f{number}:1@POP_TOP+2', wall_ns=1_000)
        for top, shown in ((3, 3), (50, 10)):
            section = self.section(b, top=top)
            self.assertEqual(section.count('POP_TOP'), shown)
            self.assertIn(f', {shown} of 30\n', section)

    def test_width(self):
        b = Builder(names=3)
        f = b.function('package.' * 20, 'f' * 200, '/d' * 200, 99)
        g = b.function('package.' * 20, 'g' * 200, kind=1)
        b.sample([(f, 10 ** 9, 0, 8, 1), g], wall_ns=10 ** 15, count=10 ** 9)
        for line in self.section(b).splitlines():
            self.assertLessEqual(len(line), 100, line)


class NothingTest(unittest.TestCase):

    def assertSays(self, why, builder):
        text = report(builder)
        self.assertIn('Nothing was sampled: ', text)
        self.assertRegex(text, why)
        self.assertNotIn('Functions', text)

    def test_too_short(self):
        self.assertSays(r'shorter \(0.400 ms\) than one period \(1.000 ms\)',
                        Builder(duration_ns=400_000))

    def test_all_lost(self):
        self.assertSays('all 7 samples were lost',
                        Builder(stats={'lost_ring_full': 7}))

    def test_no_tick(self):
        self.assertSays('never ticked', Builder(stats={'ticks': 0}))

    def test_no_cpu(self):
        self.assertSays('no thread used CPU time',
                        Builder(mode='cpu', stats={'ticks': 5}))

    def test_nothing_ran(self):
        self.assertSays('no thread ran', Builder(stats={'ticks': 5}))


if __name__ == '__main__':
    unittest.main()
