"""What reports say of exact calls and of queries, beside samples."""

import io
import json
import unittest

from profile_sampling import Profile
from profile_sampling._data import diff
from profile_sampling._data.by_site import sites_of
from profile_sampling._data.counts import CallCount, Counts
from profile_sampling._data.histogram import BITS, Histogram
from profile_sampling._data.lives import Latency
from profile_sampling._data.timeline import of_records
from profile_sampling._data.values import Function
from profile_sampling._formats import (
    callgrind, changes, pstats, tables_of, tables_of_code, tables_of_cost,
    tables_of_counts, text)
from profile_sampling._formats.findings import findings
from profile_sampling._formats.sites import site_table
from profile_sampling._formats.tables_of_calls import neighbours

from ..support.builders import Builder

MS = 1_000_000


def shop(mode='python', route='GET /orders', requests=40, queries=4800,
         cost_ns=0, ended_ns=0, **facts):
    """A service whose orders() asks a database at line 12."""
    builder = Builder(duration_ns=10 ** 12, **facts)
    builder.thread('MainThread')
    labels = {'route': route} if route else {}
    library = builder.function(
        'sql', 'first', '/usr/lib/python3/dist-packages/sql.py')
    builder.sample(['shop.orders:12', (library, 5)], wall_ns=900 * MS,
                   cpu_ns=900 * MS, count=900, labels=labels)
    builder.sample('shop.orders:14 shop.price:20', wall_ns=100 * MS,
                   cpu_ns=100 * MS, count=100, labels=labels)
    functions = {function.name: function
                 for function in builder.profile()._tables.functions}
    orders, price, first = [functions[name] for name in (
        'shop.orders', 'shop.price', 'sql.first')]
    driver = Function('pymysql.cursors', 'Cursor.execute', '/p.py', 1,
                      'python')
    rows = [CallCount(orders, 12, driver, route, queries, 0, 0, 0, 0)]
    if mode != 'queries':
        rows += [CallCount(None, 0, orders, None, requests, 0, 0, 0, 1),
                 CallCount(orders, 12, first, None, queries, 0, 0, 0, 1),
                 CallCount(orders, 14, price, None, 50, 40, 7, 0, 5),
                 CallCount(price, 20, Function(
                     'shop', 'is_eur', '/shop.py', 99, 'python'), None,
                     2000, 0, 0, 0, 1)]
    builder.facts['counts'] = Counts(
        mode, tuple(rows), 0, cost_ns, 0, 0, ended_ns, 9800, 10_900)
    if route:
        builder.facts['latencies'] = [Latency(
            'route', route, (), requests, 1250 * MS, 50 * MS,
            Histogram(BITS), ())]
    return builder.profile()._tables


def rows_of(table, *keys):
    numbers = [[column.key for column in table.columns].index(key)
               for key in keys]
    return [tuple([row[number] for number in numbers]) for row in table.rows]


class QueriesTest(unittest.TestCase):

    def finding(self, tables):
        found = {finding.rule: finding
                 for finding in findings(tables, sites_of(tables))}
        return found['queries'].text if 'queries' in found else None

    def test_of_requests(self):
        self.assertEqual(
            self.finding(shop()),
            'Each GET /orders runs 120 queries at shop.orders:12: 4,800 in '
            '40 requests, 900 ms, 72.0 % of the 1.25 s that they took')

    def test_mean_is_no_whole_number(self):
        self.assertTrue(self.finding(shop(queries=4790)).startswith(
            'A GET /orders runs 119.8 queries at'))

    def test_few_of_a_request(self):
        self.assertIsNone(self.finding(shop(queries=390)))

    def test_of_calls(self):
        self.assertEqual(
            self.finding(shop(route='')),
            'Each call of shop.orders runs 120 queries at shop.orders:12: '
            '4,800 in 40 calls, 900 ms, 90.0 % of the time')

    def test_of_neither(self):
        self.assertEqual(
            self.finding(shop('queries', route='')),
            'shop.orders:12 runs 4,800 queries, 900 ms, 90.0 % of the time')
        self.assertIsNone(self.finding(shop('queries', '', queries=99)))

    def test_table(self):
        tables = shop('queries')
        table, = tables_of_counts.calls(tables, sites_of(tables), 30)
        self.assertEqual(
            rows_of(table, 'calls', 'per_request', 'time_ns', 'each_ns',
                    'function', 'line', 'what', 'route'),
            [(4800, '120.0', 900 * MS, 187500.0, 'shop.orders', 12, 'query',
              'GET /orders'),
             (4800, '', 900 * MS, None, 'all', 0, '', '')])

    def test_nothing_counted(self):
        tables = Builder().profile()._tables
        with self.assertRaisesRegex(ValueError, 'no calls were counted'):
            tables_of_counts.calls(tables, sites_of(tables), 30)


class CallsTest(unittest.TestCase):

    def test_by_line(self):
        tables = shop()
        _, table = tables_of_counts.calls(tables, sites_of(tables), 30)
        self.assertEqual(rows_of(table, 'calls', 'function', 'line'), [
            (4800, 'shop.orders', 12), (2000, 'shop.price', 20),
            (50, 'shop.orders', 14), (40, 'Outside my code', 0),
            (6890, 'all', 0)])

    def test_column_of_lines(self):
        tables = shop()
        table = site_table(tables, sites_of(tables), 30)
        self.assertEqual(rows_of(table, 'calls', 'line'),
                         [(4800, 12), (2000, 20)])

    def test_cost(self):
        report = text.render(shop(cost_ns=70 * MS), width=200)
        self.assertIn('6,890 calls of Python functions counted; counting took '
                      '70.0ms, 7.0 % of the CPU time', report)
        self.assertNotIn('counting calls took', report)
        report = text.render(shop(cost_ns=120 * MS), width=200)
        self.assertIn('Quality: counting calls took 12.0 % of the CPU time',
                      report)

    def test_another_tool(self):
        self.assertIn(
            'Quality: calls were counted until 400.0ms: then another tool '
            'took the id of sys.monitoring',
            text.render(shop(ended_ns=400 * MS), width=200))

    def test_some_without_calls(self):
        tables = Profile.merge(*[
            Profile._from_tables(its) for its in (
                shop(), shop('queries'), Builder().sample(
                    'a.f:1', wall_ns=MS).profile()._tables)])._tables
        self.assertEqual((tables.counts.mode, tables.counts.uncounted),
                         ('python', 2))
        self.assertIn('counted; 2 more profiles without calls',
                      text.render(tables, width=200))
        table = tables_of.functions(tables, sites_of(tables), 30, 'calls')
        self.assertEqual(rows_of(table, 'calls_text', 'per_call_text')[0],
                         ('4,800', ''))

    def test_no_column_without(self):
        report = text.render(shop('queries'))
        self.assertNotIn('counted', report)
        self.assertNotIn('  calls', report)

    def test_functions(self):
        tables = shop()
        table = tables_of.functions(tables, sites_of(tables), 30, 'calls')
        self.assertEqual(
            rows_of(table, 'calls_text', 'resumes', 'deepest',
                    'per_call_text', 'self_ns', 'cum_ns', 'function'),
            [('4,800', None, 1, '187.5us', 900 * MS, 900 * MS, 'sql.first'),
             ('2,000', None, 1, '< 1.5us', 0, 0, 'shop.is_eur'),
             ('50/10', 7, 5, '10.0ms', 100 * MS, 100 * MS, 'shop.price'),
             ('40', None, 1, '25.0ms', 0, 1000 * MS, 'shop.orders'),
             ('6,890', None, None, '', 1000 * MS, 0, 'all')])

    def test_sorted_by_calls_that_are_none(self):
        tables = shop('queries')
        with self.assertRaisesRegex(ValueError, 'no calls were counted'):
            tables_of.functions(tables, sites_of(tables), 30, 'calls')

    def test_callers(self):
        tables = shop()
        table = neighbours(tables, sites_of(tables), 30, 'is_eur|first', True)
        self.assertEqual(
            rows_of(table, 'calls', 'of_calls', 'cum_ns', 'per_call_ns',
                    'function', 'line'),
            [(4800, 4800 / 6800, 900 * MS, 187500.0, 'shop.orders', 12),
             (2000, 2000 / 6800, 0, None, 'shop.price', 20)])

    def test_callers_are_told_apart_by_their_time(self):
        builder = Builder(duration_ns=10 ** 12)
        builder.sample('a.quick:3 C:map a.render:9', wall_ns=60 * MS)
        builder.sample('a.slow:5 a.render:9 a.render:9', wall_ns=940 * MS)
        function = {its.qualname: its for its
                    in builder.profile()._tables.functions}
        render = function['render']
        builder.facts['counts'] = Counts('python', tuple([
            CallCount(caller, line, render, None, calls, 0, 0, 0, 2)
            for caller, line, calls in ((function['quick'], 3, 990),
                                        (function['slow'], 5, 10),
                                        (render, 9, 4), (None, 0, 1))]),
            0, 0, 0)
        tables = builder.profile()._tables
        sites = sites_of(tables)
        table = neighbours(tables, sites, 30, 'render', True)
        self.assertEqual(
            rows_of(table, 'calls', 'cum_ns', 'function', 'line'),
            [(10, 940 * MS, 'a.slow', 5), (990, 60 * MS, 'a.quick', 3),
             (4, 0, 'a.render', 9), (1, 0, '[no caller]', 0)])
        table = neighbours(tables, sites, 30, 'slow', False)
        self.assertEqual(
            rows_of(table, 'calls', 'cum_ns', 'callee', 'line'),
            [(10, 940 * MS, ('a', 'render'), 5)])

    def test_source(self):
        tables = shop()
        table, = tables_of_code.source(tables, sites_of(tables), 1, 'orders')
        self.assertEqual(
            [row for row in rows_of(table, 'line', 'calls') if row[1]],
            [(12, 4800), (14, 50)])

    def test_width(self):
        tables = shop()
        for width in 60, 80, 200:
            for line in text.render(tables, width=width).splitlines():
                self.assertLessEqual(len(line), width)


class OftenTest(unittest.TestCase):

    def texts(self, calls, callers=1, mine='/src/a.py'):
        builder = Builder(duration_ns=10 ** 12)
        builder.sample(['a.run:3', (builder.function('a', 'tiny', mine), 9)],
                       wall_ns=100 * MS, count=1000)
        builder.sample('a.run:4', wall_ns=900 * MS, count=9000)
        functions = builder.profile()._tables.functions
        run, tiny = [next(its for its in functions if its.qualname == name)
                     for name in ('run', 'tiny')]
        builder.facts['counts'] = Counts('python', tuple([
            CallCount(run, 3 + number, tiny, None, calls // callers, 0, 0, 0,
                      1) for number in range(callers)]), 0, 0, 0)
        tables = builder.profile()._tables
        return [finding.text for finding in findings(tables, sites_of(tables))
                if finding.rule == 'often']

    def test_said(self):
        self.assertEqual(self.texts(200_000), [
            'a.tiny is called 200,000 times, 100.0 % by a.run:3; one takes '
            '0.5us, all 10.0 % of the time'])

    def test_not_said(self):
        for calls, callers, mine in (
                (40_000, 1, '/src/a.py'),       # 2.5 us each
                (200_000, 2, '/src/a.py'),      # by two lines
                (200_000, 1, '/usr/lib/python3/dist-packages/a.py')):
            self.assertEqual(self.texts(calls, callers, mine), [])


class CountingCostTest(unittest.TestCase):
    # 4,800 of the 6,897 calls and resumes are of first(), 57 of price().

    def setUp(self):
        self.tables = shop(cost_ns=68_970_000)

    def values(self, tables):
        return {row.function.name: row.sums.total
                for row in sites_of(tables, all=True).rows}

    def test_of_lines(self):
        self.assertEqual(self.values(shop()), {
            'sql.first': 900 * MS, 'shop.price': 100 * MS})
        # Nothing of is_eur(), which has no time.
        expected = {'sql.first': 852 * MS, 'shop.price': 99_430_000,
                    'Counting calls': 48_570_000}
        for name, ns in self.values(self.tables).items():
            self.assertAlmostEqual(ns, expected[name], delta=2, msg=name)
        for name in 'wall_ns', 'cpu_ns', 'count':
            self.assertEqual(self.tables.total(name), shop().total(name))

    def test_of_lines_of_mine(self):
        *_, last = sites_of(self.tables).rows
        self.assertEqual(last.function.name, 'Counting calls')
        self.assertIn('Counting calls', text.render(self.tables))

    def test_no_more_than_a_line_has(self):
        values = self.values(shop(cost_ns=10_000 * MS))
        self.assertEqual(values['sql.first'], 0)
        self.assertAlmostEqual(values['Counting calls'], 982_644_628, delta=2)

    def test_once(self):
        file = io.BytesIO()
        Profile._from_tables(self.tables).save(file)
        file.seek(0)
        self.assertEqual(self.values(Profile.load(file)._tables),
                         self.values(self.tables))

    def test_time_line(self):
        tables = shop(cost_ns=68_970_000, timeline=lambda _: of_records(
            [(100 * MS * number, 0, 100, 100 * MS, 100 * MS)
             for number in range(1, 10)]))
        line = tables.timeline
        self.assertFalse(line.is_stale)
        self.assertEqual(sum(line.wall_ns), 900 * MS)
        by_row = [0] * len(tables)
        for row, ns in zip(line.sample, line.wall_ns):
            by_row[row] += ns
        walls = tables.value('wall_ns')
        self.assertEqual(by_row[0], walls[0])
        self.assertTrue(all([ns <= wall for ns, wall in zip(by_row, walls)]))

    def test_table(self):
        table, *_ = tables_of_cost.cost(self.tables, sites_of(self.tables))
        self.assertIn(
            (68_970_000, 'of that counting 6,897 calls of Python, 10000 ns '
             'each (at the start 9800 to 10900)'), rows_of(table, 'ns', 'part'))

    def test_rough(self):
        table = tables_of.functions(
            shop(cost_ns=800 * MS), sites_of(shop()), 30, 'calls')
        self.assertIn(('sql.first', '~71.5us'), rows_of(
            table, 'function', 'per_call_text'))


class FilesTest(unittest.TestCase):

    def test_pstats(self):
        found = {name: (row[:2], {key[-1]: its[:2]
                                  for key, its in row[4].items()})
                 for (_, _, name), row in pstats.stats(shop()).items()}
        self.assertEqual(found['first'],
                         ((4800, 4800), {'orders': (4800, 4800)}))
        # Primitive calls come first, but of callers all calls do.
        self.assertEqual(found['price'], ((17, 57), {'orders': (57, 17)}))
        # What was not sampled is there, too.
        self.assertEqual(found['is_eur'],
                         ((2000, 2000), {'price': (2000, 2000)}))

    def test_pstats_of_what_was_not_counted(self):
        builder = Builder()
        builder.thread('MainThread')
        builder.sample('a.f:1 C:time.sleep', wall_ns=MS)
        builder.facts['counts'] = Counts('python', (), 0, 0, 0)
        rows = pstats.stats(builder.profile()._tables)
        self.assertEqual({row[:2] for row in rows.values()}, {(0, 0)})

    def test_callgrind(self):
        lines = callgrind.encode(shop()).decode().splitlines()
        self.assertIn('desc: Calls: counted (python)', lines)
        self.assertEqual([line for line in lines if line[:6] == 'calls='],
                         ['calls=4800 0', 'calls=57 0'])
        lines = callgrind.encode(shop('queries')).decode().splitlines()
        self.assertIn('desc: Calls: not counted, 1 stands for any '
                      'number', lines)
        self.assertEqual([line for line in lines if line[:6] == 'calls='],
                         ['calls=1 0', 'calls=1 0'])


class DifferenceTest(unittest.TestCase):

    def difference(self, before, after, **options):
        return diff.of_tables(before, after, diff.Question(**options))

    def verdicts(self, before, after, *gates):
        return [gate.verdict for gate in self.difference(
            before, after, gates=gates).gates]

    def test_gates(self):
        before, after = [shop()], [shop(queries=4801)]
        self.assertEqual(self.verdicts(
            before, after, 'calls:sql.first', 'calls:sql.first:1%',
            'calls:shop.is_eur', 'calls:total', 'queries:GET /orders'),
            ['regression', 'passed', 'passed', 'regression', 'regression'])
        self.assertEqual(self.verdicts(after, before, 'calls:first'),
                         ['passed'])

    def test_runs_that_differ(self):
        before = [shop(queries=4800), shop(queries=4810)]
        after = [shop(queries=4805), shop(queries=4830)]
        self.assertEqual(self.verdicts(before, after, 'calls:first'),
                         ['inconclusive'])

    def test_queries_of_one_request(self):
        # Twice as many requests are no more queries for one.
        self.assertEqual(self.verdicts(
            [shop()], [shop(requests=80, queries=9600)],
            'queries:GET /orders'), ['passed'])

    def test_not_counted(self):
        with self.assertRaisesRegex(ValueError, 'record it with --calls'):
            self.verdicts([shop('queries')], [shop()], 'calls:first')
        with self.assertRaisesRegex(ValueError, 'no call of any profile'):
            self.verdicts([shop()], [shop()], 'calls:nothing')

    def test_table(self):
        found = self.difference([shop()], [shop(queries=4900)], calls=True)
        report = changes.text(found)
        self.assertIn('6,890 \N{RIGHTWARDS ARROW} 6,990 (+1.5 %) calls, '
                      'counted', report)
        self.assertRegex(report, r'\n +4,800 +4,900 +\+100 +shop.orders:12 '
                                 r'+sql.first\n')
        self.assertRegex(report, r'\n +2,090 +2,090 +0 +3 lines as before\n')
        for width in 60, 80:
            for line in changes.text(found, width=width).splitlines():
                self.assertLessEqual(len(line), width)

    def test_table_of_one_request(self):
        found = self.difference([shop()], [shop(requests=50, queries=6000)],
                                calls=True)
        report = changes.text(found)
        self.assertIn('calls of one request, counted', report)
        # 120 each; what is called as often is less for each.
        self.assertNotIn('sql.first', report)

    def test_as_json(self):
        found = self.difference([shop()], [shop(queries=4900)], calls=True)
        document = json.loads(changes.encode(found, 'json'))
        self.assertEqual(document['calls'][0]['change'], 100)
        self.assertEqual(document['calls_total']['after'], 6990)
        self.assertIn(b'sql.first', changes.encode(found, 'tsv'))
