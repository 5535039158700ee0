"""What the live screen shows, of profiles that are known."""

import json
import random
import unittest
from types import SimpleNamespace

from profile_sampling._data.histogram import BITS, Histogram, bucket
from profile_sampling._data.lives import Latency
from profile_sampling._data.values import Function
from profile_sampling._formats.style import Style
from profile_sampling._top import as_json, lines, terminal, views
from profile_sampling._top.order import Order
from profile_sampling._top.screen import Screen

from ..support.builders import Builder
from ..support.screens import SECOND_NS, Process, Shown, Sources, second

MEAN = 'app.handle:3 images.mean:21'
QUERY = 'app.handle:4 orders.list:62 C:psycopg.recv'
SHOP = [
    ('Worker 1', 'running', 620, MEAN), ('Worker 1', 'gil_wait', 380, MEAN,
                                         {'holder': ('Worker 1', QUERY)}),
    ('Worker 2', 'waiting', 850, QUERY), ('Worker 2', 'running', 150, QUERY),
    ('Worker 3', 'native', 300, 'app.handle:5 images.pack:9 C:zlib.compress'),
    ('Worker 3', 'gil_wait', 690, QUERY, {'holder': ('Worker 1', MEAN)}),
    ('Worker 3', 'gc', 10, QUERY),
    ('exporter', 'idle', 1000, 'C:time.sleep')]


class Clock:
    now = 1_700_000_000.0

    def __call__(self):
        return self.now


def screen_of(*seconds, clock=None, **options):
    clock = clock or Clock()
    screen = Screen(Process, sources=Sources(), clock=clock, **options)
    for tables in seconds:
        clock.now += 1
        screen.add(tables)
    return screen


def texts(screen, width=80, height=24):
    return lines.plain(screen.render(width, height)).splitlines()


def said(screen, key):
    return screen.answers()[key].forms[0]


def latency(route, *took_ms):
    buckets = [bucket(int(ms * 1e6), BITS) for ms in took_ms]
    return Latency('route', route, (), len(took_ms), int(sum(took_ms) * 1e6),
                   int(max(took_ms) * 1e6), Histogram(BITS, [
                       buckets.count(number)
                       for number in range(max(buckets) + 1)]), ())


class ScreenTest(unittest.TestCase):

    def test_the_first_screen(self):
        shown = texts(screen_of(*[second(SHOP)] * 5))
        self.assertEqual(len(shown), 24)
        self.assertRegex(shown[0], '^shop  PID 41  6 threads .* live ')
        self.assertEqual(
            shown[2], 'Where  orders.py:62 list: database psycopg.recv 50 %, '
            'GIL wait 41 %')
        self.assertEqual(
            shown[3], 'GIL    held 62 % of the time by images.py:21 mean; 1.1 '
            'threads wait for it')
        self.assertEqual(shown[6], 'r running 26 %  n native 10 %  w waiting '
                         '28 %  G GIL wait 36 %        idle 5.0 s')
        self.assertEqual(shown[8:12], [
            ' % 5 s  % all  Doing           Line of my code → called',
            '>   57     57  rwwwwwwwGGGGGG  orders.py:62 list → psycopg.recv',
            '    33     33  rrrrrGGG        images.py:21 mean',
            '    10     10  nn              images.py:9 pack → zlib.compress'])
        self.assertEqual(set(shown[5]), set('rnwG'))

    def test_any_size(self):
        hostile = '\033]0;x\007\033[2J'
        b = Builder(duration_ns=SECOND_NS)
        b.thread(hostile)
        b.sample([(b.function(hostile, hostile, f'/src/{hostile}.py'), 3)],
                 wall_ns=SECOND_NS)
        screen = screen_of(second(SHOP), b.profile()._tables)
        for width in (*range(20, 130, 7), 200, 250):
            for height in 4, 6, 12, 20, 24, 32, 50:
                for key in '1234567?':
                    screen.overlay = None
                    screen.key(key)
                    shown = screen.render(width, height)
                    self.assertLessEqual(
                        max(map(lines.width_of, shown)), width)
                    self.assertLessEqual(len(shown), height)
                    if height > 6:
                        self.assertEqual(len(shown), height)
                    text = lines.plain(shown)
                    self.assertTrue(text.replace('\n', '').isprintable())

    def test_sums_of_every_view_are_the_bar(self):
        screen = screen_of(*[second(SHOP)] * 3)
        for is_idle in False, True:
            screen.is_idle = is_idle
            for is_all in False, True:
                screen.is_all = is_all
                facts = screen.facts(80)
                busy = sum(facts.window.states(idle=is_idle))
                for view in 'line', 'function', 'thread':
                    table = views.table(view, facts)
                    if view == 'thread' and is_idle:
                        continue        # it says how busy threads were
                    self.assertEqual(sum([row.value for row in [
                        *table.rows, *table.last]]), busy, (view, is_all))
        self.assertEqual(busy, 12 * SECOND_NS)

    def test_windows(self):
        clock = Clock()
        screen = screen_of(*[second(SHOP)] * 4, clock=clock)
        texts(screen)
        quick = second([('main', 'running', 1000, 'app.other:1')])
        for _ in range(5):
            screen.add(quick)
        self.assertIn('  100     29  rrrrrrrrrrrrrr  app.py:1 other',
                      '\n'.join(texts(screen)))
        # What fell to nothing keeps its place for a while.
        self.assertIn('    –     40                  orders.py:62 list',
                      '\n'.join(texts(screen)))
        self.assertEqual(screen.windows.last(5).length_ns, 5 * SECOND_NS)
        self.assertEqual(screen.windows.all.length_ns, 9 * SECOND_NS)
        self.assertEqual(len(screen.windows.history), 9)

    def test_paused(self):
        screen = screen_of(*[second(SHOP)] * 2)
        before = texts(screen)
        screen.key(' ')
        screen.add(second([('main', 'running', 1000, 'app.other:1')]))
        paused = texts(screen)
        self.assertEqual(paused[1:-1], before[1:-1])
        self.assertIn('Paused at', paused[-1])
        screen.key(' ')
        self.assertIn('app.py:1', '\n'.join(texts(screen)))
        self.assertEqual(screen.windows.all.length_ns, 3 * SECOND_NS)

    def test_the_cursor_is_on_a_row(self):
        clock = Clock()
        screen = screen_of(*[second(SHOP)] * 5, clock=clock)
        texts(screen)
        screen.key('Down')
        self.assertTrue(texts(screen)[10].startswith('>'))
        # What it is on passes the other one, when that is due.
        for _ in range(20):
            clock.now += 1
            screen.add(second([('Worker 1', 'running', 1000, MEAN)]))
            shown = texts(screen)
        self.assertRegex(shown[9], '^> +100 .* images.py:21 mean')

    def test_keys(self):
        screen = screen_of(*[second(SHOP)] * 2)
        texts(screen)
        for key in '/', *'pack', 'Enter':
            screen.key(key)
        shown = '\n'.join(texts(screen))
        self.assertIn('pack', shown)
        self.assertNotIn('images.py:21', shown.split('\n', 8)[-1])
        for key in '/', *'nothing', 'Enter':
            screen.key(key)
        self.assertIn('No line has', '\n'.join(texts(screen)))
        screen.key('Esc')
        for key, shows in [
                ('w', '% 1 min'), ('i', 'time.sleep'), ('4', 'No routes'),
                ('?', 'Keys of top'), ('Esc', '[4 Routes]'),
                ('c', 'top -p 41 --by route'), ('Esc', '[4 Routes]'),
                ('F9', 'top never stops a process'), ('1', 'handle')]:
            self.assertIsNone(screen.key(key))
            if key == 'i':
                screen.key('a')
            self.assertIn(shows, '\n'.join(texts(screen)), key)
        screen.key('s')
        self.assertIn('Save 2.0 s as: shop.41.pb.gz', texts(screen)[-1])
        self.assertEqual(screen.key('Enter'), 'save')
        for key, does in ('d', 'dump'), ('t', 'theme'), ('q', 'quit'), (
                '\x03', 'quit'):
            self.assertEqual(screen.key(key), does)

    def test_a_row_opened(self):
        screen = screen_of(*[second(SHOP)] * 2)
        texts(screen)
        screen.key('Enter')
        shown = '\n'.join(texts(screen))
        self.assertRegex(shown, r'(?m)^> +57 .* 62  +line 62$')
        self.assertRegex(shown, r'(?m)^ +100 %  psycopg.recv$')
        screen.key('Esc')
        self.assertIn('[1 My code]', '\n'.join(texts(screen)))

    def test_sorting_by_a_column(self):
        screen = screen_of(*[second(SHOP)] * 5)
        # Of all time mean() has more, of the window list().
        for _ in range(20):
            screen.windows.all.add(screen_of(second(
                [('t', 'running', 1000, MEAN)])).windows.all)
        screen.windows._lasts.clear()
        self.assertIn('orders.py:62', texts(screen)[9])
        screen.key('Right')
        self.assertIn('orders.py:62', texts(screen)[9])
        screen.key('Right')
        self.assertIn('images.py:21', texts(screen)[9])
        screen.key('Left')
        screen.key('Left')
        self.assertIn('orders.py:62', texts(screen)[9])

    def test_a_look(self):
        line = SimpleNamespace(line=3, is_mine=True, function=Function(
            'jobs', 'work', '/src/jobs.py', 1, 'python'))

        def thread(number, name, **more):
            return SimpleNamespace(**{
                'native_id': number, 'name': name, 'mine': line,
                'innermost': line, 'lines': [line], 'callee': None,
                'wants': None, 'waits_for': None, 'is_idle': False,
                'since_s': None, 'state': 'running', **more})
        worker = thread(4001, 'worker', is_idle=True, state='waiting')
        main = thread(Process.pid, 'main', waits_for=SimpleNamespace(
            name='db:5432', object='database db:5432', kind='socket'),
            state='waiting')
        look = SimpleNamespace(
            threads=[main, worker], busy=[main], circles=[], is_stuck=False,
            requests=[],
            holder=None, tasks=[], process=Process)
        b = Builder(duration_ns=SECOND_NS)
        for number, ms in (Process.pid, 600), (4001, 1000):
            b.sample('jobs.work:3 C:x.wait', wall_ns=ms * 10**6,
                     thread=b.thread(native_id=number), state='waiting')
        screen = screen_of(view='thread')
        screen.add(b.profile()._tables, look)
        shown = '\n'.join(texts(screen))
        # What a look knows as idle is, and names are of now.
        self.assertRegex(shown, r'   0 %   0 % +worker +idle: waits for work')
        self.assertRegex(shown, r' 60 %   0 % +w+ +main +w jobs.py:3 work '
                                'database db:')
        self.assertIn('idle 1.0 s', shown)
        self.assertEqual(said(screen, 'where'), 'jobs.py:3 work: waits for '
                         'database db:5432 (100 %)')
        main.since_s = 7.0
        screen.add(None, look)
        self.assertEqual(said(screen, 'slow'),
                         'main: at the same line for 7.0 s')
        main.waits_for.kind = 'lock'
        screen.add(None, look)
        self.assertIn('work (jobs.py)', said(screen, 'slow'))
        screen.key('5')
        self.assertIn('No event loop runs here', '\n'.join(texts(screen)))

    def test_ended_and_silent(self):
        screen = screen_of(second(SHOP))
        screen.silent_since = screen.at - 6
        self.assertIn('no answer for 6.0 s', texts(screen)[0])
        self.assertIn('d dump', texts(screen)[-1])
        screen.ended = 'ended at 03:14:02.'
        self.assertIn('ended ', texts(screen)[0])
        self.assertIn('PID 41 ended at 03:14:02.', texts(screen)[-2])

    def test_json(self):
        screen = screen_of(*[second(SHOP)] * 3)
        for view in views.NAMES:
            screen.view = view
            found = json.loads(as_json.line(screen))
            self.assertEqual(found['window']['busy_s'], 9.0)
            self.assertAlmostEqual(
                sum(found['window']['states'].values()), 9.0)
            self.assertEqual(found['window']['idle_s'], 3.0)
        screen.view = 'line'
        found = json.loads(as_json.line(screen))
        self.assertAlmostEqual(
            sum([row['window_s'] for row in found['rows']]), 9.0)
        self.assertEqual(found['answers']['where']['line'], 62)
        self.assertEqual(found['answers']['gil']['held'], 0.62)

    def test_colors_change_no_text(self):
        screen = screen_of(*[second(SHOP)] * 2)
        block = screen.block(100)
        for style in Style(256), Style(16), Style(256, False):
            shown = Shown(100, len(block))
            shown.feed(lines.painted(block, style).replace(
                '\n', '\r\n')[:-2].encode())
            self.assertEqual(shown.text, '\n'.join(
                lines.plain(block).splitlines()))
        self.assertEqual(lines.painted(block, Style(0)), lines.plain(block))


class AnswersTest(unittest.TestCase):

    def test_who_is_slow(self):
        run = ('main', 'running', 500, 'app.handle:1')
        for rows, latencies, expected in [
                ([run], [], 'handle (app.py): 0.5 threads in it; requests are '
                            'not known'),
                ([('main', 'idle', 1000, 'C:time.sleep')], [],
                 'nothing: no thread is in code of mine'),
                ([run, ('main', 'cpu_wait', 500, 'app.handle:1')], [],
                 "the machine: threads got no CPU for 50 % of the time (other "
                 "processes, or a container's limit)"),
                ([(*run, {'route': 'GET /'})], [latency('GET /', 20, 30)],
                 'nothing: 0.5 requests under way, 2 done, the longest took '
                 '30 ms'),
                ([(*run, {'route': 'GET /'})],
                 [latency('GET /', *[20] * 50, *[2900] * 50)],
                 'GET /: 0.5 under way, 100 done, p50 20 ms, p99 2.9 s'),
                ([(*run, {'route': 'GET /'}), ('t', 'waiting', 1000,
                                              QUERY, {'route': 'GET /'})],
                 [], 'GET /: 1.5 under way; their age is not known'),
                ([(*run, {'route': 'GET /'}), ('t', 'waiting', 1000, QUERY,
                                              {'route': 'POST /'})],
                 [latency('GET /', 20)],
                 'POST /: 1 under way, none done')]:
            with self.subTest(expected):
                screen = screen_of(second(rows, latencies=latencies))
                self.assertEqual(said(screen, 'slow'), expected)

    def test_gil_of_several_processes(self):
        class Family(Process):
            num_children = 2
        screen = Screen(Family, sources=Sources(), clock=Clock())
        screen.add(second(SHOP))
        self.assertEqual(said(screen, 'gil'), 'held 21 % of the time in 3 '
                         'processes by images.py:21 mean; 1.1 threads wait '
                         'for it')
        self.assertIn('PID 41 and 2 children', texts(screen)[0])
        self.assertIn('-p 41 --children', screen.command())

    def test_where_and_gil(self):
        for rows, where, gil in [
                (SHOP, 'orders.py:62 list: waits for database psycopg.recv '
                 '(50 %) and for the GIL (41 %)',
                 'held 62 % of the time by images.py:21 mean; 1.1 threads '
                 'wait for it'),
                ([('t', 'waiting', 960, 'app.f:2 C:_socket.socket.recv'),
                  ('t', 'running', 40, 'app.f:2')],
                 'app.py:2 f: waits for socket socket.recv (96 %)',
                 'free; no thread waits for it'),
                ([('t', 'waiting', 700, 'app.mail:2 C:time.sleep'),
                  ('u', 'cpu_wait', 300, 'app.pack:5')],
                 'app.py:5 pack: CPU wait (100 %)',
                 'free; no thread waits for it'),
                ([('t', 'idle', 900, 'C:time.sleep')],
                 'all threads wait for work', 'free; no thread waits for it')]:
            with self.subTest(where):
                screen = screen_of(second(rows))
                self.assertEqual(said(screen, 'where'), where)
                self.assertEqual(said(screen, 'gil'), gil)

    def test_lines_do_not_change_by_chance(self):
        clock = Clock()
        screen = screen_of(second([('t', 'running', 510, 'a.f:1'),
                                   ('t', 'running', 490, 'a.f:2')]),
                           clock=clock)
        self.assertIn('a.py:1', said(screen, 'where'))
        for more, line in (0, 1), (50, 1), (490, 2):
            clock.now += 3
            screen.add(second([('t', 'running', 490 - more, 'a.f:1'),
                               ('t', 'running', 510 + more, 'a.f:2')]))
            self.assertIn(f'a.py:{line}', said(screen, 'where'), more)

    def test_requests_that_wait_for_a_worker(self):
        b = Builder(duration_ns=SECOND_NS)
        loop, worker = b.thread('loop'), b.thread('worker')
        route = {'route': 'GET /'}
        its = b.task_class('app.main', finished=1, awaiting_ns=9 * SECOND_NS,
                           loop_wait_ns=SECOND_NS)
        b.sample('app.main:1 x.to_thread:2', thread=loop, state='awaiting',
                 labels=route, task=('t', 1), task_class=its,
                 task_ns=9 * SECOND_NS)
        b.sample('app.main:1', thread=loop, state='loop_wait', labels=route,
                 task=('t', 1), task_class=its, task_ns=SECOND_NS)
        b.sample('app.work:7', thread=worker, wall_ns=SECOND_NS, labels=route)
        screen = screen_of(b.profile()._tables, view='route')
        self.assertEqual(said(screen, 'slow'),
                         'GET /: 10 under way; 8 wait for a free worker; '
                         'their age is not known')
        shown = '\n'.join(texts(screen))
        self.assertRegex(shown, '>       10 +– +– .*r+LQ{11,}  GET /')
        self.assertRegex(shown, 'Q no worker +80 %   all workers were busy')


class PartsTest(unittest.TestCase):

    def test_bars(self):
        for values, cells, expected in [
                ({'r': 1, 'w': 1}, 4, 'rrww'), ({'r': 1}, 0, ''),
                ({'r': 98, 'G': 2}, 10, 'rrrrrrrrrr'),
                ({'r': 92, 'G': 8}, 10, 'rrrrrrrrrG'), ({}, 5, ''),
                ({'r': 1, 'n': 1, 'w': 1}, 1, 'r'),
                ({'Q': 2, 'r': 1, 'L': 1}, 4, 'rLQQ')]:
            self.assertEqual(''.join([text for text, _ in
                                      lines.bar(values, cells)]), expected)
        rand = random.Random(1)
        for _ in range(500):
            values = {letter: rand.randrange(1, 1000) for letter in
                      rand.sample('rnwGCSxLQ', rand.randrange(1, 9))}
            cells = rand.randrange(1, 90)
            self.assertEqual(lines.width_of(lines.bar(values, cells)), cells)

    def test_order(self):
        order = Order()
        self.assertEqual(order.update({'a': .4, 'b': .3, 'c': .1}, 0),
                         ['a', 'b', 'c'])
        # Not enough, and not yet.
        for now, shares, expected in [
                (1, {'a': .3, 'b': .4}, 'abc'), (2, {'b': .9}, 'abc'),
                (3, {'b': .5, 'a': .48, 'd': .2}, 'abcd'),
                (4, {'b': .5, 'a': .48, 'd': .2, 'e': .01}, 'abcd'),
                (5, {'b': .5, 'a': .48, 'd': .2, 'e': .01}, 'abdce'),
                (20, {'b': .9, 'a': .1, 'd': .2, 'e': .01}, 'abde')]:
            self.assertEqual(''.join(order.update(shares, now)), expected,
                             now)
        for now in range(21, 30):
            order.update({'a': .1, 'b': .9}, now, is_frozen=True)
        self.assertEqual(order.update({'a': .1, 'b': .9}, 30)[:2],
                         ['b', 'a'])

    def test_rows_keep_their_places(self):
        rand = random.Random(2)
        screen = screen_of(second(SHOP))
        seen = set()
        for _ in range(5):
            screen.add(second([(*row[:2], row[2] + rand.randrange(-5, 5),
                                *row[3:]) for row in SHOP]))
            seen.add(tuple([row[31:] for row in texts(screen)[9:12]]))
        self.assertEqual(len(seen), 1)

    def test_only_changes_are_written(self):
        rand = random.Random(3)
        style = Style(256)
        shown, before = Shown(30, 5), [[(' ', '')] * 30 for _ in range(5)]
        for _ in range(200):
            screen = [[(''.join(rand.choices('ab é', k=rand.randrange(12))),
                        rand.choice(['', 'mine', 'state r']))
                       for _ in range(2)] for _ in range(5)]
            after = [terminal.cells(line, 30, style) for line in screen]
            shown.feed(terminal.changes(before, after).encode())
            self.assertEqual(shown.text, '\n'.join(
                lines.plain(screen).splitlines()))
            before = after
        self.assertEqual(terminal.changes(after, after), '')

    def test_wide_characters(self):
        cells = terminal.cells([('a漢b', '')], 6, Style(0))
        self.assertEqual([cell and cell[0] for cell in cells],
                         ['a', '漢', None, 'b', ' ', ' '])
        self.assertIn('\033[1;4Hc', terminal.changes(
            [cells], [terminal.cells([('a漢c', '')], 6, Style(0))]))

    def test_ground(self):
        for said, expected in [
                ('\033]11;rgb:ffff/ffff/ffff\033\\\033[?62;4c',
                 (False, '')),
                ('q\033]11;rgb:0000/2b2b/3636\007\033[?6c', (True, 'q')),
                ('ab', (None, 'ab')), ('\033[?6c', (None, '')),
                ('\033]11;rgb:zz/1/1\033\\', (None, ''))]:
            self.assertEqual(terminal.ground(said), expected, said)


if __name__ == '__main__':
    unittest.main()
