"""Runs against runs: which rows belong together, and what is said of them."""

import random
import unittest

from profile_sampling._data import compare
from profile_sampling._data.runs import Question, Run, Target

from ..support.builders import Builder

MS = 1_000_000
_TOTAL = Target('total', None, None, 0.01)


def question(**changes):
    fields = {'by': 'function', 'cumulative': False, 'value': 'wall_ns',
              'per': None, 'targets': ()} | changes
    return Question(*fields.values())


def run(asked, times, **facts):
    """A run of functions that take so many milliseconds at 1,000 Hz."""
    b = Builder(rate_hz=1000, **facts)
    for name, ms in times.items():
        b.sample(f'm.main:1 m.{name}:5', wall_ns=round(ms * MS),
                 cpu_ns=round(ms * MS), count=max(round(ms), 1))
    return Run(b.profile()._tables, asked)


def compared(before, after, scale=compare.PLAIN, **changes):
    """Compare two lists of {name: ms}."""
    asked = question(**changes)
    return compare.Comparison(
        *[[run(asked, times) for times in side] for side in (before, after)],
        asked, scale)


def row(comparison, name):
    found, = [row for row in comparison.rows if row.place.name == name]
    return found


class OneRunTest(unittest.TestCase):

    def test_values(self):
        c = compared([{'f': 100, 'g': 300}], [{'f': 150, 'g': 300}])
        f = row(c, 'm.f')
        self.assertEqual((f.before, f.after, f.change, f.relative),
                         (100 * MS, 150 * MS, 50 * MS, 0.5))
        self.assertEqual((f.records_before, f.records_after), (100, 150))
        self.assertEqual((f.p, f.verdict, c.method),
                         (None, None, compare.SAMPLING))
        # 1.96 periods times the root of 100 * 3/4 + 150 * 2/3, about.
        for end in f.change - f.low, f.high - f.change:
            self.assertAlmostEqual(end / (25.9 * MS), 1, delta=0.03)
        self.assertTrue(f.is_clear())
        self.assertFalse(row(c, 'm.g').is_clear())

    def test_total_is_measured(self):
        c = compared([{'f': 100}], [{'f': 101}])
        self.assertEqual((c.total.low, c.total.change, c.total.high),
                         (MS, MS, MS))

    def test_waiting_is_measured(self):
        asked = question()
        runs = []
        for ms in 10, 11:
            b = Builder(rate_hz=1000)
            b.sample('m.f:1', wall_ns=100 * MS, count=100)
            b.sample('m.g:1', wall_ns=100 * MS, count=100)
            b.sample('m.f:1 C:time.sleep [waiting]', wall_ns=ms * MS,
                     state='waiting')
            runs.append(Run(b.profile()._tables, asked))
        c = compare.Comparison(runs[:1], runs[1:], asked)
        waits = row(c, '[waiting]')
        self.assertEqual((waits.low, waits.high), (MS, MS))
        self.assertLess(row(c, 'm.f').low, -18 * MS)

    def test_what_one_side_does_not_have(self):
        c = compared([{'f': 100}], [{'f': 100, 'new': 3, 'bulk': 40}])
        new = row(c, 'm.new')
        self.assertEqual((new.before, new.relative), (0, None))
        # No record is less than some four periods, not nothing.
        self.assertFalse(new.is_clear())
        self.assertTrue(row(c, 'm.bulk').is_clear())

    def test_rates_differ(self):
        # The variance is that of each: 1,000 Hz and 100 Hz.
        asked = question()
        fast = run(asked, {'f': 1000, 'g': 1000})
        b = Builder(rate_hz=100)
        for name in 'fg':
            b.sample(f'm.main:1 m.{name}:5', wall_ns=1000 * MS, count=100)
        slow = Run(b.profile()._tables, asked)
        f = row(compare.Comparison([fast], [slow], asked), 'm.f')
        self.assertAlmostEqual(
            (f.high - f.change) / MS,
            1.96 * (1 ** 2 * 500 + 10 ** 2 * 50) ** 0.5, delta=3)

    def test_no_rate_no_interval(self):
        asked = question()
        runs = [run(asked, {'f': 10, 'g': 10}, stats={}) for _ in range(2)]
        runs[1].rate_hz = 0
        c = compare.Comparison(runs[:1], runs[1:], asked)
        self.assertEqual((row(c, 'm.f').low, row(c, 'm.f').high),
                         (None, None))

    def test_never_gates(self):
        c = compared([{'f': 100}], [{'f': 900}], targets=(_TOTAL,))
        self.assertEqual(c.verdict(), compare.INCONCLUSIVE)

    def test_clear_rows_come_first(self):
        c = compared([{'f': 1000, 'g': 1000, 'h': 0.4}],
                     [{'f': 1040, 'g': 1000, 'h': 30}])
        self.assertEqual([row.place.name for row in c.rows],
                         ['m.h', 'm.f', 'm.g'])


class ManyRunsTest(unittest.TestCase):

    def runs(self, mean, spread=1.0, g=500):
        return [{'f': mean + spread * off, 'g': g}
                for off in (-2, -1, 0, 1, 2)]

    def test_slower(self):
        c = compared(self.runs(100), self.runs(150), targets=(_TOTAL,))
        f = row(c, 'm.f')
        self.assertEqual((f.verdict, c.method), ('more', compare.TEST))
        # Welch: a standard error of 1 ms, 8 degrees of freedom.
        self.assertAlmostEqual((f.high - f.change) / MS, 2.306, delta=0.03)
        self.assertEqual(row(c, 'm.g').verdict, 'unclear')
        self.assertEqual(c.verdict(), compare.REGRESSION)

    def test_faster(self):
        c = compared(self.runs(150), self.runs(100), targets=(_TOTAL,))
        self.assertEqual(row(c, 'm.f').verdict, 'less')
        self.assertEqual(c.verdict(), compare.PASSED)

    def test_too_small_to_count(self):
        # 0.8 % of the total, and 4 % of the row.
        for before, after, g in (100, 105, 550), (400, 416, 100):
            c = compared(self.runs(before, 0.1, g), self.runs(after, 0.1, g))
            f = row(c, 'm.f')
            with self.subTest(before=before):
                self.assertLess(f.p, 1e-6)
                self.assertEqual(f.verdict, 'unclear')

    def test_what_cannot_matter_is_not_tested(self):
        # 1 % of the total is 6 ms: of what has that, f alone differs.
        before, after = self.runs(100), self.runs(108, 3)
        alone = row(compared(before, after), 'm.f').p
        for side in before, after:
            for number, times in enumerate(side):
                times.update({f'tiny{name}': 0.4 + number / 10
                              for name in range(200)})
        c = compared(before, after)
        self.assertAlmostEqual(row(c, 'm.f').p, alone, 3)
        self.assertEqual((row(c, 'm.tiny7').p, row(c, 'm.tiny7').verdict),
                         (None, 'unclear'))

    def test_gate_with_a_threshold(self):
        before, after = self.runs(100, 0.1), self.runs(112, 0.1)
        for least, verdict in ((0.01, compare.REGRESSION),
                               (0.03, compare.PASSED)):
            target = Target('total', None, None, least)
            c = compared(before, after, targets=(target,))
            self.assertEqual(c.verdict(), verdict)

    def test_gate_that_cannot_tell(self):
        c = compared(self.runs(100, 20), self.runs(105, 20),
                     targets=(_TOTAL,))
        self.assertEqual(c.verdict(), compare.INCONCLUSIVE)

    def test_gate_of_a_function_is_cumulative(self):
        main = Target('function:main', 'main', None, 0.05)
        c = compared(self.runs(100), self.runs(200), targets=(main,))
        self.assertEqual(c.gates[0].change.before, 600 * MS)
        self.assertEqual(c.verdict(), compare.REGRESSION)

    def test_gates_are_adjusted(self):
        # The more gates there are, the less each may be chance.
        before, after = self.runs(100), self.runs(102.3)
        targets = [Target(f'function:{name}', name, None, 0.01)
                   for name in ('f', 'g', 'm.g', 'main')]
        alone = compared(before, after, targets=tuple(targets[:1]))
        many = compared(before, after, targets=tuple(targets))
        self.assertLess(alone.gates[0].change.p, 0.06)
        # The p of f and main is the second of four; g does not change.
        self.assertAlmostEqual(many.gates[0].change.p,
                               4 / 2 * alone.gates[0].change.p)

    def test_fewer_than_five(self):
        c = compared(self.runs(100)[:4], self.runs(150), targets=(_TOTAL,))
        self.assertEqual(c.method, compare.SPREAD)
        self.assertEqual((c.total.p, c.total.verdict), (None, None))
        self.assertGreater(c.total.low, 40 * MS)
        self.assertEqual(c.verdict(), compare.INCONCLUSIVE)

    def test_one_against_many(self):
        c = compared(self.runs(100)[:1], self.runs(150))
        self.assertEqual(c.method, compare.SAMPLING)


class ScaleTest(unittest.TestCase):

    def test_share(self):
        c = compared([{'f': 100, 'g': 300}], [{'f': 100, 'g': 900}],
                     compare.SHARE)
        f = row(c, 'm.f')
        self.assertEqual((f.before, f.after), (0.25, 0.1))
        self.assertEqual(c.total.change, 0)

    def test_signs_differ(self):
        # More seconds, but a smaller part of them.
        c = compared([{'f': 100, 'g': 300}], [{'f': 200, 'g': 1800}])
        self.assertAlmostEqual(row(c, 'm.f').other, -0.15)
        self.assertIsNone(row(c, 'm.g').other)

    def test_per_unit_of_work(self):
        def one(requests, ms, per):
            asked = question(per=per)
            b = Builder()
            b.sample('m.f:1', wall_ns=ms * MS, count=ms,
                     labels={'request': '0'})
            for number in range(requests):
                b.sample('m.f:2', count=1, state='custom',
                         labels={'event': 'done', 'request': str(number)})
            b.sample('m.f:2', count=5, state='custom',
                     labels={'event': 'failed'})
            return Run(b.profile()._tables, asked)

        for per, before, after in (
                (('event', 'done'), 10, 5), (('request',), 10, 5),
                ('custom', 100 / 15, 100 / 25)):
            with self.subTest(per=per):
                c = compare.Comparison(
                    [one(10, 100, per)], [one(20, 100, per)],
                    question(per=per), compare.WORK)
                self.assertAlmostEqual(row(c, 'm.f').before, before * MS)
                self.assertAlmostEqual(row(c, 'm.f').after, after * MS)
        with self.assertRaisesRegex(ValueError, 'counted nothing'):
            one(10, 100, ('event', 'lost'))
        with self.assertRaisesRegex(ValueError, "no sample has the label 'x'"):
            one(10, 100, ('x',))


class RowsTest(unittest.TestCase):

    def tables(self, head, ms):
        b = Builder()
        work = b.function('m', 'work', first_line=head)
        f = b.function('m', 'f', first_line=head + 9)
        b.sample([(work, head + 2), (f, head + 11)], wall_ns=ms * MS,
                 count=ms, labels={'route': '/a'})
        loads = b.function('json', 'loads', kind=1)
        b.sample([(work, head + 3), loads], wall_ns=5 * MS, count=5)
        return b.profile()._tables

    def rows(self, by, cumulative=False):
        c = compare.of_tables([self.tables(1, 10)], [self.tables(101, 30)],
                              question(by=by, cumulative=cumulative))
        return [(row.place.name, row.place.line, row.place.callee,
                 row.before / MS, row.after / MS) for row in c.rows]

    def test_functions_that_moved(self):
        self.assertEqual(self.rows('function'), [
            ('m.f', 0, None, 10, 30), ('json.loads', 0, None, 5, 5)])
        self.assertEqual(self.rows('function', True), [
            ('m.work', 0, None, 15, 35), ('m.f', 0, None, 10, 30),
            ('json.loads', 0, None, 5, 5)])

    def test_sites_that_moved(self):
        self.assertEqual(self.rows('site'), [
            ('m.f', 112, None, 10, 30),
            ('m.work', 104, 'json.loads', 5, 5)])

    def test_labels(self):
        self.assertEqual(self.rows('route'), [
            ('/a', 0, None, 10, 30), (None, 0, None, 5, 5)])

    def test_states_and_threads(self):
        def one(ms):
            b = Builder()
            worker = b.thread('worker')
            b.sample('m.f:1', wall_ns=ms * MS, count=ms, thread=worker)
            b.sample('m.f:1 [GIL~wait]', wall_ns=5 * MS, thread=b.thread(),
                     state='gil_wait')
            return b.profile()._tables

        for by, names in (('state', ['running', 'gil_wait']),
                          ('thread', ['worker', None])):
            c = compare.of_tables([one(10)], [one(30)], question(by=by))
            with self.subTest(by=by):
                self.assertEqual([row.place.name for row in c.rows], names)
                # Clocks say how long a thread was in a state.
                self.assertEqual((c.rows[0].low, c.rows[0].high),
                                 (20 * MS, 20 * MS))

    def test_nothing_on_the_stack(self):
        b = Builder()
        b.sample('', wall_ns=MS, state='unsampled')
        b.sample('[lost]', wall_ns=MS, state='lost')
        asked = question(by='site')
        only = Run(b.profile()._tables, asked)
        self.assertEqual(
            sorted([place.name for place in only.places.values()]),
            ['(no stack)', '[lost]'])


class RefusedTest(unittest.TestCase):

    def test_modes(self):
        asked = question()
        with self.assertRaisesRegex(ValueError, 'modes: wall and cpu'):
            compare.Comparison([run(asked, {'f': 1})],
                               [run(asked, {'f': 1}, mode='cpu')], asked)

    def test_value(self):
        with self.assertRaisesRegex(ValueError, "no value 'x'.*cpu_ns"):
            run(question(value='x'), {'f': 1})


class SimulatedTest(unittest.TestCase):
    """A few of what Tools/bench/difference.py does with many."""

    def noisy(self, source, slower=1.0):
        speed = source.gauss(1, 0.02) * slower
        return {name: ms * speed * source.gauss(1, 0.03)
                for name, ms in (('f', 600), ('g', 300), ('h', 80),
                                 ('i', 20))}

    def verdicts(self, slower, runs, times=40):
        source = random.Random(17)
        found = []
        for _ in range(times):
            sides = [[self.noisy(source, factor) for _ in range(runs)]
                     for factor in (1.0, slower)]
            c = compared(*sides, targets=(_TOTAL,))
            found.append((c.verdict(), any([row.verdict != 'unclear'
                                            for row in c.rows])))
        return found

    def test_itself(self):
        found = self.verdicts(1.0, 5)
        self.assertLessEqual([verdict for verdict, _ in found].count(
            compare.REGRESSION), 2)
        self.assertLessEqual(sum([any_row for _, any_row in found]), 3)

    def test_slower(self):
        found = self.verdicts(1.06, 10, times=20)
        self.assertGreaterEqual([verdict for verdict, _ in found].count(
            compare.REGRESSION), 18)


if __name__ == '__main__':
    unittest.main()
