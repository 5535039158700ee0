"""Profiles against profiles: which rows belong together, how far changes may
be off, and what gates say."""

import io
import math
import pickle
import random
import unittest

from profile_sampling import ProfileDiff
from profile_sampling._data import diff as _diff

from ..support.builders import Builder
from ..support.random_profiles import random_profile
from .test_task_rows import service

MS = 1_000_000


def run(times, **facts):
    """A run of functions that take so many milliseconds at 1,000 Hz."""
    b = Builder(**{'rate_hz': 1000} | facts)
    period = 1000 / (b.profile().rate_hz or 1000)
    for name, ms in times.items():
        b.sample(f'm.main:1 m.{name}:5', wall_ns=round(ms * MS),
                 cpu_ns=round(ms * MS), count=max(round(ms / period), 1))
    return b.profile()


def diff(before, after, **options):
    """Compare two lists of {name: ms}, by functions."""
    return ProfileDiff(*[map(run, side) for side in (before, after)],
                       **{'by': 'function'} | options)


def row(difference, name):
    found, = [row for row in difference.rows if row.name == name]
    return found


class OneRunTest(unittest.TestCase):

    def test_values(self):
        d = diff([{'f': 100, 'g': 300}], [{'f': 150, 'g': 300}])
        f = row(d, 'm.f')
        self.assertEqual((f.before, f.after, f.change, f.relative),
                         (100 * MS, 150 * MS, 50 * MS, 0.5))
        self.assertEqual((f.runs_before, f.runs_after),
                         ((100 * MS,), (150 * MS,)))
        self.assertEqual(d.method, 'sampling')
        # 1.96 periods times the root of 101 * 299/400 + 151 * 299/450.
        self.assertAlmostEqual(f.margin / MS, 1.96 * (
            101 * 299 / 400 + 151 * 299 / 450) ** 0.5, 3)
        self.assertTrue(f.is_clear)
        self.assertFalse(row(d, 'm.g').is_clear)

    def test_total_is_measured(self):
        total = diff([{'f': 100}], [{'f': 101}]).total
        self.assertEqual((total.change, total.margin), (MS, 0))
        self.assertTrue(total.is_clear)

    def test_waiting_is_measured(self):
        sides = []
        for ms in 10, 11:
            b = Builder(rate_hz=1000)
            b.sample('m.f:1', wall_ns=100 * MS, count=100)
            b.sample('m.g:1', wall_ns=100 * MS, count=100)
            b.sample('m.f:1 C:time.sleep [waiting]', wall_ns=ms * MS,
                     state='waiting')
            sides.append(b.profile())
        d = ProfileDiff(*sides, by='function')
        waits = row(d, '[waiting]')
        self.assertEqual((waits.change, waits.margin), (MS, 0))
        self.assertGreater(row(d, 'm.f').margin, 18 * MS)

    def test_what_one_side_does_not_have(self):
        d = diff([{'f': 100}], [{'f': 100, 'few': 5, 'some': 6, 'bulk': 40}])
        few = row(d, 'm.few')
        self.assertEqual((few.before, few.relative), (0, None))
        # Of 5 that fall on two sides by chance all are on one in 1 of 16
        # cases, of 6 in 1 of 32.
        self.assertFalse(few.is_clear)
        self.assertTrue(row(d, 'm.some').is_clear)
        self.assertTrue(row(d, 'm.bulk').is_clear)

    def test_rates_differ(self):
        # The variance is that of each: 1,000 Hz and 100 Hz.
        f = row(ProfileDiff(run({'f': 1000, 'g': 1000}),
                            run({'f': 1000, 'g': 1000}, rate_hz=100),
                            by='function'), 'm.f')
        self.assertAlmostEqual(
            f.margin / MS, 1.96 * (1 ** 2 * 500 + 10 ** 2 * 50) ** 0.5,
            delta=3)

    def test_no_rate_no_margin(self):
        d = ProfileDiff(run({'f': 10, 'g': 10}),
                        run({'f': 90, 'g': 10}, rate_hz=0), by='function')
        self.assertEqual((row(d, 'm.f').margin, row(d, 'm.f').is_clear),
                         (None, False))

    def test_clear_rows_come_first(self):
        d = diff([{'f': 1000, 'g': 1000, 'h': 0.4}],
                 [{'f': 1040, 'g': 1000, 'h': 30}])
        self.assertEqual([row.name for row in d.rows],
                         ['m.h', 'm.f', 'm.g'])

    def test_margins_have_the_truth(self):
        # 95 % of 2,000 pairs; the standard deviation of that is 0.5 %.
        source = random.Random(5)
        for hits in 3, 50, 600:
            found = 0
            for _ in range(2000):
                pair = [source.binomialvariate(1000, hits / 1000)
                        for _ in range(2)]
                error = sum([(k + 1) * (999 - k) / 1000 for k in pair]) ** 0.5
                found += abs(pair[1] - pair[0]) <= 1.96 * error
            f = row(diff([{'f': pair[0], 'g': 1000 - pair[0]}],
                         [{'f': pair[1], 'g': 1000 - pair[1]}]), 'm.f')
            with self.subTest(hits=hits):
                self.assertAlmostEqual(f.margin / MS, 1.96 * error, 3)
                self.assertTrue(0.93 <= found / 2000 <= 0.99, found / 2000)


class RunsTest(unittest.TestCase):

    def runs(self, mean, spread=1.0, g=500):
        return [{'f': mean + spread * off, 'g': g}
                for off in (-2, -1, 0, 1, 2)]

    def test_slower(self):
        d = diff(self.runs(100), self.runs(150), gates=['total'])
        f = row(d, 'm.f')
        # A standard error of 1 ms, 4 degrees of freedom.
        self.assertAlmostEqual(f.margin / MS, 2.776, delta=0.01)
        self.assertEqual((f.is_clear, d.method), (True, 'runs'))
        self.assertFalse(row(d, 'm.g').is_clear)
        self.assertEqual(d.verdict, 'regression')

    def test_student_of_gates(self):
        # What they share the chance of: exact for one and two degrees of
        # freedom, of which there are closed forms, and else of tables.
        for freedom in 1, 2:
            for chance in 0.05, 0.05 / 10, 0.05 / 1000:
                angle = (1 - chance) * math.pi / 2
                p = 1 - chance / 2
                exact = (math.tan(angle) if freedom == 1 else
                         (2 * p - 1) * (2 / (4 * p * (1 - p))) ** 0.5)
                with self.subTest(freedom=freedom, chance=chance):
                    self.assertAlmostEqual(_diff._t(freedom, chance) / exact,
                                           1, delta=1e-9)
        for freedom, chance, t in ((3, 0.001, 12.924), (4, 0.005, 5.598),
                                   (9, 0.01, 3.250), (10, 0.002, 4.144),
                                   (60, 0.001, 3.460)):
            self.assertAlmostEqual(_diff._t(freedom, chance), t, delta=6e-4)

    def test_student(self):
        # Of the tables that are in any textbook.
        for runs, t in ((2, 12.706), (3, 4.303), (4, 3.182), (5, 2.776),
                        (8, 2.365), (11, 2.228), (31, 2.042)):
            side = [{'f': 100 + number} for number in range(runs)]
            error = (runs * (runs + 1) / 12 * 2 / runs) ** 0.5
            with self.subTest(runs=runs):
                self.assertAlmostEqual(
                    diff(side, side).total.margin / MS / error / t, 1,
                    delta=0.0005)

    def test_gates(self):
        slow = [{'f': 100}], [{'f': 900}]
        for sides, gate, verdict in (
                ((self.runs(100, 0.1), self.runs(112, 0.1)), 'total',
                 'regression'),
                ((self.runs(100, 0.1), self.runs(112, 0.1)), 'total:1.9%',
                 'regression'),
                ((self.runs(100, 0.1), self.runs(112, 0.1)), 'total:3%',
                 'passed'),
                ((self.runs(150), self.runs(100)), 'total', 'passed'),
                # It cannot tell: they vary too much, or there are too few.
                ((self.runs(100, 20), self.runs(105, 20)), 'total',
                 'inconclusive'),
                (slow, 'total', 'inconclusive')):
            with self.subTest(gate, verdict=verdict):
                self.assertEqual(diff(*sides, gates=[gate]).verdict, verdict)

    def test_gates_of_other_settings(self):
        """Only of the total it is sure that nothing has moved."""
        before, after = [[run({'f': ms + number, 'g': 500}, names=names)
                          for number in range(5)]
                         for ms, names in ((100, 0), (900, 3))]
        found = ProfileDiff(before, after, by='function',
                            gates=['total', 'function:f'])
        self.assertEqual([gate.verdict for gate in found.gates],
                         ['regression', 'inconclusive'])

    def test_gate_of_a_function_is_cumulative(self):
        d = diff(self.runs(100), self.runs(200), gates=['function:main'])
        gate, = d.gates
        self.assertEqual((gate.target, gate.least, gate.row.before),
                         ('function:main', 0.05, 600 * MS))
        self.assertEqual(d.verdict, 'regression')

    def test_more_gates_have_wider_margins(self):
        alone, many = [
            diff(self.runs(100), self.runs(104), gates=gates).gates
            for gates in (['function:f:1%'],
                          [f'function:{name}:1%' for name
                           in ('f', 'g', 'm.g', 'main')])]
        # 5 %, and 5 % of four, with 4 degrees of freedom.
        self.assertAlmostEqual(
            many[0].row.margin / alone[0].row.margin, 4.315 / 2.776, 1)
        self.assertEqual((alone[0].verdict, many[0].verdict),
                         ('regression', 'inconclusive'))


class ScaleTest(unittest.TestCase):

    def test_share(self):
        d = diff([{'f': 100, 'g': 300}], [{'f': 100, 'g': 900}], share=True)
        f = row(d, 'm.f')
        self.assertEqual((f.before, f.after), (0.25, 0.1))
        self.assertEqual(d.total.change, 0)
        with self.assertRaisesRegex(ValueError, 'the total cannot change'):
            diff([{'f': 1}], [{'f': 1}], share=True, gates=['total:3%'])

    def test_per_unit_of_work(self):
        def one(requests, ms):
            b = Builder()
            b.sample('m.f:1', wall_ns=ms * MS, count=ms,
                     labels={'request': '0'})
            for number in range(requests):
                b.sample('m.f:2', count=1, state='custom',
                         labels={'event': 'done', 'request': str(number)})
            b.sample('m.f:2', count=5, state='custom',
                     labels={'event': 'failed'})
            return b.profile()

        for per, before, after in (
                ('event=done', 10, 5), ('request', 10, 5),
                ('custom', 100 / 15, 100 / 25)):
            with self.subTest(per=per):
                f = row(one(20, 100).diff(one(10, 100), by='function',
                                          per=per), 'm.f')
                self.assertAlmostEqual(f.before, before * MS)
                self.assertAlmostEqual(f.after, after * MS)
        for per, message in (('event=lost', 'counted nothing'),
                             ('x', "no sample has the label 'x'")):
            with self.assertRaisesRegex(ValueError, message):
                one(1, 1).diff(one(1, 1), per=per)


class RowsTest(unittest.TestCase):

    def profile(self, head, ms):
        b = Builder()
        work = b.function('m', 'work', first_line=head)
        f = b.function('m', 'f', first_line=head + 9)
        b.sample([(work, head + 2), (f, head + 11)], wall_ns=ms * MS,
                 count=ms, labels={'route': '/a'})
        loads = b.function('json', 'loads', kind=1)
        b.sample([(work, head + 3), loads], wall_ns=5 * MS, count=5)
        return b.profile()

    def rows(self, **options):
        d = self.profile(101, 30).diff(self.profile(1, 10), **options)
        return [(row.name, row.line, row.called, row.before / MS,
                 row.after / MS) for row in d.rows]

    def test_functions_that_moved(self):
        self.assertEqual(self.rows(by='function'), [
            ('m.f', 0, '', 10, 30), ('json.loads', 0, '', 5, 5)])
        self.assertEqual(self.rows(by='function', cum=True), [
            ('m.work', 0, '', 15, 35), ('m.f', 0, '', 10, 30),
            ('json.loads', 0, '', 5, 5)])

    def test_lines_that_moved(self):
        expected = [('m.f', 112, '', 10, 30),
                    ('m.work', 104, 'json.loads', 5, 5)]
        self.assertEqual(self.rows(), expected)
        self.assertEqual(self.rows(all=True), expected)

    def test_the_first_run_decides_whose_lines_are_rows(self):
        profiles = []
        for own_ms in 50, 1:
            b = Builder(rate_hz=1000)
            view, query = [
                b.function(module, 'f', path + '/x.py', first_line=3)
                for module, path in (('shop', '/home/me'),
                                     ('orm', '/site-packages'))]
            b.sample([(view, 4)], wall_ns=own_ms * MS, count=own_ms)
            b.sample([(query, 4)], wall_ns=500 * MS, count=500)
            profiles.append(b.profile())
        for one, other, names in (
                (*profiles, {'shop.f', 'Outside my code'}),
                (*profiles[::-1], {'shop.f', 'orm.f'})):
            self.assertEqual({row.name for row in other.diff(one).rows},
                             names)

    def test_labels(self):
        self.assertEqual(self.rows(by='route'), [
            ('/a', 0, '', 10, 30), (None, 0, '', 5, 5)])

    def test_a_label_that_only_one_has(self):
        before = Builder().sample('a.f', wall_ns=3).profile()
        after = Builder().sample('a.f', wall_ns=4,
                                 labels={'route': '/'}).profile()
        self.assertEqual([(row.name, row.change) for row
                          in after.diff(before, by='route').rows],
                         [('/', 4), (None, -3)])
        with self.assertRaisesRegex(ValueError, "has the label 'rout'"):
            after.diff(before, by='rout')

    def test_states_and_threads(self):
        def one(ms):
            b = Builder()
            worker = b.thread('worker')
            b.sample('m.f:1', wall_ns=ms * MS, count=ms, thread=worker)
            b.sample('m.f:1 [GIL~wait]', wall_ns=5 * MS, thread=b.thread(),
                     state='gil_wait')
            return b.profile()

        for by, names in (('state', ['running', 'gil_wait']),
                          ('thread', ['worker', None])):
            d = one(30).diff(one(10), by=by)
            with self.subTest(by=by):
                self.assertEqual([row.name for row in d.rows], names)
                # Clocks say how long a thread was in a state.
                self.assertEqual((d.rows[0].change, d.rows[0].margin),
                                 (20 * MS, 0))

    def test_threads_that_had_nothing_to_do(self):
        def one(ms):
            b = Builder()
            b.sample('m.f:1', wall_ns=5 * MS, count=5)
            b.sample('concurrent.futures.thread._worker:1 C:get [waiting]',
                     wall_ns=ms * MS, state='waiting', thread=b.thread('w'))
            return b.profile()

        d = one(900).diff(one(100))
        self.assertEqual((d.total.before, d.total.after), (5 * MS, 5 * MS))
        self.assertEqual([row.name for row in d.rows], ['m.f'])

    def test_functions_are_known_by_name(self):
        # Another checkout, and further down in its file.
        before, after = Builder(), Builder()
        before.sample([before.function('a', 'f', '/old/a.py', 10)],
                      wall_ns=3)
        after.sample([after.function('a', 'f', '/new/a.py', 20)], wall_ns=4)
        for by in 'line', 'function':
            row, = after.profile().diff(before.profile(), by=by).rows
            self.assertEqual((row.function.filename, row.before, row.change),
                             ('/new/a.py', 3, 1))

    def test_several_of_one_name_are_one(self):
        b = Builder()
        one = b.function('a', '<lambda>', first_line=1)
        two = b.function('a', '<lambda>', first_line=2)
        b.sample([one, two], wall_ns=3)
        b.sample([two], wall_ns=4)
        # One of them calls the other: its time counts once.
        for cumulative in False, True:
            row, = b.profile().diff(b.profile(), by='function',
                                    cum=cumulative).rows
            self.assertEqual((row.before, row.function.first_line), (7, 1))

    def test_tasks(self):
        plain = Builder()
        plain.sample('app.main:1 C:select.poll [waiting]', wall_ns=MS,
                     state='waiting')
        d = service().profile().diff(plain.profile(), by='function',
                                     cum=True)
        self.assertNotIn('db.fetch', [row.name for row in d.rows])
        d = service().profile().diff(service().profile(), by='function',
                                     cum=True, value='task')
        self.assertIn('db.fetch', [row.name for row in d.rows])
        with self.assertRaisesRegex(ValueError, "no value 'task'"):
            service().profile().diff(plain.profile(), value='task')

    def test_rows_add_up(self):
        for seed in range(8):
            source = random.Random(seed)
            one, two = [random_profile(source, mode='wall')
                        for _ in range(2)]
            with self.subTest(seed=seed):
                for by in 'function', 'line', 'state':
                    forth = two.diff(one, by=by, all=True)
                    back = one.diff(two, by=by, all=True)
                    same = one.diff(one, by=by)
                    self.assertEqual({row.change for row in same.rows}
                                     - {0}, set())
                    if by != 'line':
                        self.assertEqual(
                            {row.name: -row.change for row in back.rows},
                            {row.name: row.change for row in forth.rows})
                self.assertEqual(sum([row.change for row in forth.rows]),
                                 forth.total.change)


class ValueTest(unittest.TestCase):

    def test_operator(self):
        before, after = run({'f': 1}), run({'f': 3})
        d = after - before
        self.assertEqual((d.before, d.after), ((before,), (after,)))
        self.assertEqual(d.total.change, 2 * MS)
        self.assertEqual(pickle.loads(pickle.dumps(d)).rows, d.rows)

    def test_file_objects(self):
        d = diff([{'f': 1}], [{'f': 3}])
        for format, begins in (('json', b'{'), ('text', b'before '),
                               (None, b'<!DOCTYPE')):
            file = io.BytesIO()
            d.save(file, format)
            self.assertTrue(file.getvalue().startswith(begins), format)
        with self.assertRaises(TypeError):
            d.save(io.StringIO())

    def test_what_is_asked_stays_as_it_is(self):
        # F18: runs wrote into it, so that the order of runs decided.
        question = _diff.Question(by='function')
        asked = dict(vars(question))
        for names in ('ab', 'ba'):
            for name in names:
                _diff.Run(run({name: 1})._tables, question)
            self.assertEqual(vars(question), asked)

    def test_what_cannot_be_compared(self):
        with self.assertRaisesRegex(ValueError, 'modes: wall and cpu'):
            run({'f': 1}, mode='cpu').diff(run({'f': 1}))
        with self.assertRaisesRegex(ValueError, 'a profile on each side'):
            ProfileDiff([], [run({'f': 1})])
        for wrong in 'a.pb.gz', ['a.pb.gz']:
            with self.assertRaisesRegex(TypeError, 'must be a Profile'):
                run({'f': 1}).diff(wrong)
        with self.assertRaisesRegex(ValueError, "'most' is no gate"):
            diff([{'f': 1}], [{'f': 1}], gates=['most'])
