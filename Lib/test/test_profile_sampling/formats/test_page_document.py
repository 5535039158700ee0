"""The document of a page: it adds up to what Profile says."""

import random
import re
import unittest

from profile_sampling import Profile, ProfileDiff
from profile_sampling._data import histogram
from profile_sampling._data.lives import Latency

from ..profiles.test_task_rows import service
from ..support import hard_profiles
from ..support.builders import Builder, example
from ..support.page_documents import document_of
from ..support.pages import idle_threads
from ..support.random_profiles import random_profile
from ..support.timed import timed, with_records
from .test_count_tables import shop

MS = 1_000_000
# What one call takes, in test_calls().
FIRST, PRICE = (
    text.replace(' ', '\N{NO-BREAK SPACE}') for text in (
        '188 \N{MICRO SIGN}s \N{PLUS-MINUS SIGN} 3.87 \N{MICRO SIGN}s',
        '10.0 ms \N{PLUS-MINUS SIGN} 1.86 ms'))
NOWHERE = 'lost', 'unsampled', 'custom'


def latency(value, roots, times, key='route'):
    """How long requests took, of which each is known."""
    counts = [0] * histogram.most_buckets(histogram.BITS)
    for ns in times:
        counts[histogram.bucket(ns, histogram.BITS)] += 1
    return Latency(key, value, tuple(roots), len(times), sum(times),
                   max(times), histogram.Histogram(histogram.BITS, counts), ())


def requests(*, most=60):
    """Two routes, a background task of one, and what is in no request."""
    rng = random.Random(5)
    b = service()
    mailer = b.task_class('app.mail:50', lives=[4 * MS], steps=3)
    b.sample('app.main:1 app.mail:51 smtp.send:3 [awaiting]',
             task_ns=11 * MS, state='awaiting', task_class=mailer,
             labels={'route': '/'})
    b.sample('app.main:1 app.handle:12', wall_ns=MS, task_ns=MS,
             task_class=1, labels={'route': '/late', 'answered': 'yes'})
    raw = b.raw()
    raw['latencies'] = (
        latency('/', ['app.handle'], [rng.randrange(MS, 90 * MS)
                                      for _ in range(most)]),
        latency('/late', ['app.handle'], [7 * MS + 1]),
        # No sample has met one.
        latency('/never', [], [3]), latency('x', [], [5], key='job'))
    return Profile._from_raw(raw)


def profiles():
    yield 'example', example().profile()
    yield 'recursive', hard_profiles.recursive().profile()
    yield 'hostile', hard_profiles.hostile().profile()
    yield 'idle', idle_threads()
    yield 'nothing', Builder().profile()
    yield 'libraries', in_libraries(mine_ns=500).profile()
    yield 'hardly mine', in_libraries(mine_ns=1).profile()
    for seed in range(6):
        yield f'random {seed}', random_profile(
            random.Random(seed), samples=60, tasks=seed % 2)


def in_libraries(mine_ns):
    """Lines of mine above packages and the standard library, and an import.
    """
    b = Builder(names=3)
    packages = '/usr/lib/python3/dist-packages/'
    main = b.function('app', 'main', '/src/app.py'), 3
    query = b.function('sql.orm', 'query', packages + 'sql/orm.py')
    text = b.function('json.encoder', 'encode',
                      '/usr/lib/python3.13/json/encoder.py')
    load = b.function('importlib', '_load', '<frozen importlib._bootstrap>')
    b.sample([main], wall_ns=mine_ns)
    b.sample([main, (query, 7), 'C:_socket.socket.recv', '[waiting]'],
             wall_ns=3 * mine_ns, state='waiting')
    b.sample([main, (text, 8), (query, 7), (text, 9)], wall_ns=mine_ns)
    b.sample([main, (load, 1), 'C:posix.stat'], wall_ns=mine_ns)
    b.sample([(query, 8), 'C:_socket.socket.recv'], wall_ns=5000)
    return b


def named(function):
    """Return the name of a Function; no module is like one without a name."""
    return (f'{function.module}.{function.qualname}' if function.module
            else function.qualname)


class SumsTest(unittest.TestCase):

    def test_call_sites(self):
        for name, profile in profiles():
            with self.subTest(name):
                its = document_of(profile)
                places = [its.place(its.path_place[path])
                          for path in its.sample_path]
                wanted = [state not in (*NOWHERE, 'idle')
                          for state in its.states_of_samples]
                expected = {}
                for row in profile.call_sites():
                    key = row.function and named(row.function), row.line
                    for state, ns in row.states.items():
                        if ns:
                            expected[key, state] = (
                                ns + expected.get((key, state), 0))
                self.assertEqual(
                    its.sums(zip(places, its.states_of_samples), wanted),
                    expected)

    def test_trees(self):
        """Every stack is there, without states and operators."""
        for name, profile in profiles():
            with self.subTest(name):
                its = document_of(profile)
                expected = {}
                for sample in profile.samples:
                    stack = tuple([named(frame.function) for frame
                                   in reversed(sample.stack)
                                   if frame.function.kind in ('python', 'C')])
                    value = getattr(sample, f'{profile.mode}_ns')
                    expected[stack] = expected.get(stack, 0) + value
                self.assertEqual(
                    its.sums([its.stack(node) for node in its.sample_node]),
                    {stack: value for stack, value in expected.items()
                     if value})
                self.check_preorder(its)

    def check_preorder(self, its):
        sums = [0] * len(its.node_parent)
        for node, value in zip(its.sample_node, its.sample_value):
            sums[node] += value
        for node in range(len(sums) - 1, 0, -1):
            sums[its.node_parent[node]] += sums[node]
        way, last = [0], {}
        for node in range(1, len(sums)):
            parent = its.node_parent[node]
            while way[-1] != parent:
                way.pop()
            way.append(node)
            self.assertGreaterEqual(last.get(parent, sums[node]), sums[node])
            last[parent] = sums[node]

    def test_path_of_my_frames(self):
        b = Builder()
        library = b.function('lib', 'g', '/usr/lib/python3/dist-packages/l.py')
        b.sample(['a.f:1', 'a.f:1', (library, 5), 'a.f:1', 'a.h:2',
                  'C:builtins.len'], wall_ns=7)
        its = document_of(b.profile())
        path, = its.sample_path
        found = []
        while path:
            found.append(its.place(its.path_place[path]))
            path = its.path_parent[path]
        self.assertEqual(found, [('a.h', 2), ('a.f', 1)])
        self.assertEqual(its.path_place[0], 0)
        self.assertEqual(its.place(0), ('Outside my code', 0))

    def test_totals_and_labels(self):
        for name, profile in profiles():
            with self.subTest(name):
                its = document_of(profile)
                self.assertEqual(sum(its.sample_value),
                                 profile.total(its.value['name']))
                rows = [{its.label_keys[key]: value for key, value in row}
                        for row in its.label_sets]
                for key in its.label_keys:
                    expected = {
                        row.value: getattr(row, f'{profile.mode}_ns')
                        for row in profile.label_values(key, idle=True)
                        if getattr(row, f'{profile.mode}_ns')}
                    self.assertEqual(its.sums(
                        [rows[number].get(key)
                         for number in its.sample_labels]), expected)
                self.assertEqual(
                    set(its.label_keys),
                    set(profile.label_keys) - {'task'})

    def test_equal_samples_are_one(self):
        b = Builder()
        for task in range(9):
            b.sample('a.f:1 C:len', wall_ns=5, task=(f'T{task}', task))
        b.sample('a.f:2', wall_ns=0, count=3)
        its = document_of(b.profile())
        self.assertEqual(its.sample_value, [45])

    def test_threads(self):
        b = Builder()
        for name in 'pool', 'main', 'pool', None:
            b.sample('a.f:1', wall_ns=1, thread=b.thread(name, native_id=7))
        self.assertEqual(document_of(b.profile()).threads,
                         ['pool', 'main', 'pool 2', 'thread 7'])

    def test_delay(self):
        b = Builder()
        b.sample('a.f:1', wall_ns=9, delay_ns=4)
        b.sample('a.f:1 [GIL~wait]', wall_ns=1, delay_ns=1, state='gil_wait',
                 holder=(-1, 'b.g:3 C:json.dumps'))
        b.sample('a.g:2 [awaiting]', task_ns=50, state='awaiting')
        b.sample('a.g:2 [loop~wait]', task_ns=5, state='loop_wait')
        its = document_of(b.profile())
        self.assertEqual(its.sample_delay, [4, 1])
        holders = [its.holders[number] for number in its.sample_loop_holder]
        self.assertEqual(
            [(row['name'], its.place(row['place']), row['how'])
             for row in holders],
            [('', ('a.f', 1), 'ran in it'),
             ('json.dumps', ('b.g', 3), 'held the GIL')])

    def test_holders(self):
        b = Builder()
        b.sample('a.f:3', wall_ns=9)
        for place in 'a.f:3', 'lib.g:4', 'profile_sampling._recording.r:5':
            module, _, rest = place.rpartition('.')
            name, _, line = rest.partition(':')
            b.sample('a.h:1 [GIL~wait]', wall_ns=1, state='gil_wait', holder=(
                -1, [(b.function(module, name, (
                    f'/usr/lib/python3.13/{module.replace(".", "/")}.py'
                    if module != 'a' else None)), int(line))]))
        its = document_of(b.profile())
        self.assertEqual(
            [row and (row['name'], row['place'] >= 0 and its.place(
                row['place'])) for row in its.holders],
            [None, ('', ('a.f', 3)), ('lib', False),
             ('the profiler', False)])
        self.assertEqual(its.sums(its.sample_holder), {0: 9, 1: 1, 2: 1, 3: 1})


class WaitsTest(unittest.TestCase):

    def test_kinds(self):
        loop = 'asyncio.base_events', 'BaseEventLoop._run_once'
        for stack, expected in (
                ('a.f:1 C:_socket.socket.recv', ('socket.recv', 'socket')),
                ('a.f:1 C:time.sleep', ('time.sleep', 'sleep')),
                ('threading.Timer.run:3 threading.Event.wait:6 '
                 'C:_thread.lock.acquire', ('threading.Timer.run', 'sleep')),
                ('subprocess.Popen.communicate:3 C:posix.read',
                 ('subprocess.Popen.communicate', 'child process')),
                ('a.f:1 C:posix.read', ('os.read', 'file or pipe')),
                ('a.f:1 C:posix.fsync', ('os.fsync', 'file or pipe')),
                ('a.f:1 C:posix.waitpid', ('os.waitpid', 'child process')),
                ('a.f:1 C:_thread.lock.acquire',
                 ('threading.lock.acquire', 'lock')),
                ('a.f:1 queue.Queue.get:9 threading.Condition.wait:3 '
                 'C:_thread.lock.acquire', ('queue.Queue.get', 'queue')),
                ('threading.Thread.run:9 queue.SimpleQueue.get:4',
                 ('queue.SimpleQueue.get', 'queue')),
                ('a.f:1 subprocess.run:5 selectors._PollLikeSelector.select:4 '
                 'C:select.poll.poll', ('subprocess.run', 'child process')),
                ('a.f:1 pymysql.Cursor.execute:4 C:_io.BufferedReader.read '
                 'socket.SocketIO.readinto:2 '
                 'C:_socket.socket.recv_into',
                 ('pymysql.Cursor.execute', 'database')),
                ('http.client.parse:1 C:_io.BufferedReader.readline '
                 'socket.SocketIO.readinto:2 C:_socket.socket.recv_into',
                 ('http.client.parse', 'HTTP')),
                ('a.f:1 threading.Thread.join:9 C:_thread.lock.acquire',
                 ('threading.Thread.join', 'other threads')),
                ('a.f:1 sqlalchemy.pool.impl.QueuePool._do_get:1 '
                 'sqlalchemy.util.queue.Queue.get:4 '
                 'C:_thread.lock.acquire',
                 ('sqlalchemy.pool.impl.QueuePool._do_get', 'pool')),
                ('a.f:1 C:vendor.ask', ('vendor.ask', 'other')),
                ('a.f:1', ('a.f', 'other')), ('', ('', 'other'))):
            with self.subTest(stack):
                its = document_of(Builder().sample(
                    f'{stack} [waiting]', wall_ns=5,
                    state='waiting').profile())
                self.assertEqual(its.waits, [None, dict(zip(
                    ('name', 'kind'), expected))])
                self.assertEqual(its.sample_wait, [1])
        b = Builder()
        b.sample([b.function(*loop), 'selectors.EpollSelector.select',
                  'C:select.epoll.poll', '[waiting]'], wall_ns=5,
                 state='waiting')
        self.assertEqual(document_of(b.profile()).waits[1],
                         {'name': 'asyncio', 'kind': 'event loop'})


class TimelineTest(unittest.TestCase):

    def test_records(self):
        self.assertIsNone(document_of(example().profile()).timeline)
        for mode in 'wall', 'cpu':
            profile = timed(random_profile(
                random.Random(3), mode=mode), random.Random(3))
            its = document_of(profile)
            line = profile.timeline
            kept = [row for row in zip(*line.columns) if getattr(
                profile.samples[row[1]], f'{mode}_ns')]
            self.assertEqual(its.record_time, [row[0] for row in kept])
            self.assertEqual(its.record_wall, [row[4] for row in kept])
            of_threads = {}
            for _, sample, _, cpu_ns, wall_ns in kept:
                name = profile.samples[sample].state
                of_threads[name] = of_threads.get(name, 0) + (
                    cpu_ns if mode == 'cpu' else wall_ns)
            found = {}
            for sample, ns in zip(its.record_sample, getattr(
                    its, 'record_value' if mode == 'cpu' else 'record_wall')):
                name = its.states_of_samples[sample]
                found[name] = found.get(name, 0) + ns
            self.assertEqual(found, of_threads)
        self.assertEqual(its.timeline, {'resolution_ns': 0,
                                        'is_stale': False})

    def test_part(self):
        b = Builder().sample('a.f:1', wall_ns=500)
        profile = with_records(b.profile(), [
            (100, 0, 1, 0, 100), (900, 0, 1, 0, 400)])
        its = document_of(profile.between(500, 900))
        self.assertEqual((its.length_ns, sum(its.sample_value)), (400, 400))
        self.assertEqual(len(its.notes), 1)


class FactsTest(unittest.TestCase):

    def test_head(self):
        profile = example(pid=7).profile()
        for command, title in (
                ('', ''), ('python -m uvicorn shop.main:app', 'shop'),
                ('-m pytest tests/test_a.py', 'pytest'),
                ('python3.13 -X dev /srv/orders.py --fast', 'orders.py'),
                ('python -c print(1)', 'python -c'), ('bin/serve', 'serve')):
            profile._tables.meta['command'] = command
            its = document_of(profile)
            self.assertEqual((its.title, its.command), (title, command))
        self.assertEqual(
            (its.mode, its.value, its.duration_ns, its.start, its.rate_hz,
             its.pid, its.n_threads, its.n_samples),
            ('wall', {'name': 'wall_ns', 'kind': 'wall',
                      'unit': 'nanoseconds'}, 2_000_000_000,
             '14 Nov, 22:13', 1000, 7, 2, 1047))

    def test_quality(self):
        its = document_of(example().profile())
        self.assertEqual(its.quality['word'], 'samples lost')
        self.assertIn('lower rate', its.quality['texts'][0])
        b = Builder(stats={'ticks': 900, 'signals_sent': 900})
        b.sample('a.f:1', wall_ns=800 * MS, count=800)
        b.sample('a.g:1', wall_ns=100 * MS, count=100)
        its = document_of(b.profile())
        self.assertEqual(its.quality, {'word': 'good', 'texts': [
            'Asked for 1,000 samples a second.', 'No sample was lost.',
            'Shares are right to about ± 3.3 %.']})
        self.assertAlmostEqual(its.margin, 3.27, places=2)
        few = Builder().sample('a.f:1', wall_ns=9 * MS, count=9).profile()
        self.assertEqual(document_of(few).quality['word'], 'few samples')

    def test_cards(self):
        b = Builder()
        b.sample('a.f:7 C:time.sleep [waiting]', wall_ns=300 * MS,
                 state='waiting', task=('T', 1), task_ns=300 * MS)
        b.sample('a.g:8', wall_ns=600 * MS, count=600)
        b.sample('a.h:9 [GIL~wait]', wall_ns=290 * MS, state='gil_wait',
                 holder=(0, 'a.g:8'))
        b.sample('a.k:1 [waiting]', wall_ns=20 * MS, state='asleep_with_gil')
        its = document_of(b.profile())
        self.assertEqual(
            [(card['rule'], card['figure'], card['go'],
              its.place(card['place'])) for card in its.cards],
            [('gil', '290\xa0ms', 'gil', ('a.g', 8)),
             ('line', '600\xa0ms', 'place', ('a.g', 8))])
        self.assertEqual(its.cards[0]['text'],
                         'Threads waited 290 ms for the GIL, 24.0 % of the '
                         'time: 100.0 % of it while `a.py:8` held it.')
        self.assertEqual(its.cards[1]['title'], 'The line with the most time')

    def test_cards_say_what_the_report_does(self):
        """They differ in how lines are named."""
        for name, profile in profiles():
            with self.subTest(name):
                found = profile.findings()
                its = document_of(profile)
                cards = [card for card in its.cards if card['rule'] != 'line']
                self.assertEqual([card['title'] for card in [*cards, *its.also]],
                                 [finding.title for finding in found])
                for card, finding in zip(cards, found):
                    self.assertEqual(card['title'], finding.title)
                    self.assertEqual(
                        re.findall(r'[0-9.,]+ (?:%|s|ms|\N{MICRO SIGN}s)\b',
                                   card['text']),
                        re.findall(r'[0-9.,]+ (?:%|s|ms|\N{MICRO SIGN}s)\b',
                                   finding.text))

    def test_a_line_that_waits_for_work_has_no_card(self):
        b = Builder()
        get = b.function('queue', 'Queue.get', '/usr/lib/python3.13/queue.py')
        b.sample(['a.f:7', (get, 3), '[waiting]'], wall_ns=600 * MS,
                 state='waiting')
        b.sample('a.f:8 a.g:3', wall_ns=400 * MS, count=400)
        its = document_of(b.profile())
        self.assertEqual([(card['rule'], its.place(card['place']))
                          for card in its.cards],
                         [('waited', ('a.f', 7)), ('line', ('a.g', 3))])

    def test_requests(self):
        profile = requests()
        its = document_of(profile)
        self.assertEqual(its.label_keys[its.route], 'route')
        self.assertEqual(its.requests['key'], 'route')
        self.assertTrue(its.requests['has_loop'])
        expected = {
            row.value: (row.count, row.mean_ns, row.p50_ns, row.p99_ns,
                        row.longest_ns)
            for row in profile.tasks_by('route') if row.count}
        self.assertEqual({
            row['value']: tuple([row[key] for key in (
                'count', 'mean_ns', 'p50_ns', 'p99_ns', 'longest_ns')])
            for row in its.requests['rows']}, expected)
        for row in its.requests['rows']:
            self.assertEqual(sum([count for *_, count in row['times']]),
                             row['count'])
        part = document_of(profile.filter(state='running'))
        self.assertIsNone(part.requests)

    def test_calls(self):
        its = document_of(Profile._from_tables(shop()))
        self.assertEqual([
            (its.name(function), line, calls, of_function, callees)
            for function, line, calls, of_function, callees
            in its.calls['lines']], [
                ('shop.orders', 12, 4800, 40, [
                    ['sql.first', 4800, 4800, FIRST]]),
                # Ten of the fifty were no calls within another.
                ('shop.orders', 14, 50, 40, [['shop.price', 50, 50, PRICE]]),
                # No sample was in it.
                ('shop.price', 20, 2000, 50, [
                    ['shop.is_eur', 2000, 2000, '']])])
        self.assertEqual(
            {its.name(number): more for number, *more
             in its.calls['functions']},
            {'sql.first': [4800, FIRST], 'shop.orders': [40, '25.0\xa0ms'],
             'shop.price': [50, PRICE]})
        query, = its.calls['queries']
        self.assertEqual(its.place(query['place']), ('shop.orders', 12))
        self.assertEqual((query['calls'], query['per'], query['ns'],
                          query['text']),
                         (4800, 120, 900 * MS, 'Each GET /orders runs 120 '
                          'queries'))
        self.assertIsNone(document_of(example().profile()).calls)


    def test_calls_that_changed(self):
        def changed(before, **after):
            sides = [Profile._from_tables(tables)
                     for tables in (before, shop(**after))]
            difference = ProfileDiff(*sides)._difference
            return document_of(sides[1], changes=difference).changes['calls']

        its = changed(shop(), queries=4900)
        self.assertEqual(its['lead'], '6,890 \u2192 6,990 (+1.5 %) calls, '
                         'counted')
        row, same = its['rows']
        self.assertEqual(
            [row[key] for key in ('name', 'line', 'called', 'before', 'after',
                                  'change', 'is_sure', 'tag')],
            ['shop.orders', 12, 'sql.first', 4800, 4900, 100, True, ''])
        self.assertEqual(
            (same['name'], same['before'], same['after'], same['place']),
            ('3 lines as before', 2090, 2090, -1))
        self.assertEqual(its['total']['change'], 100)
        self.assertIs(its['is_first'], False)
        self.assertIsNone(changed(shop('queries')))


class OtherProfilesTest(unittest.TestCase):

    def test_names_are_kept(self):
        profile = hard_profiles.hostile().profile()
        its = document_of(profile)
        self.assertEqual(
            {(module, qualname) for module, qualname in zip(
                its.functions['module'], its.functions['qualname'])},
            {(function.module or '', function.qualname)
             for row in profile.functions() for function in [row.function]})
        self.assertEqual(
            {tuple(label) for row in its.label_sets for label in row},
            {(number, name) for number, key in enumerate(its.label_keys)
             for name in hard_profiles.NAMES if key == (name or 'empty')})
        self.assertLessEqual(set(hard_profiles.NAMES) - {''},
                             set(its.threads))


class DifferenceTest(unittest.TestCase):

    def difference(self, **options):
        before, after = Builder(), Builder()
        before.sample('a.main:3 a.f:12', wall_ns=500 * MS, count=500)
        before.sample('a.main:4 a.old:5', wall_ns=300 * MS, count=300)
        after.sample('a.main:3 a.f:12', wall_ns=900 * MS, count=900)
        after.sample('a.main:5 a.new:2 C:len', wall_ns=200 * MS, count=200)
        return before.profile(), after.profile()

    def test_changes(self):
        before, after = self.difference()
        diff = ProfileDiff(before, after)
        its = document_of(after, changes=diff._difference)
        self.assertEqual(
            [(row['name'], row['line'], row['before'], row['after'],
              row['change'], row['margin'], row['is_clear'], row['called'])
             for row in its.changes['rows']],
            [(row.name, row.line, row.before, row.after, row.change,
              row.margin, row.is_clear, row.called) for row in diff.rows])
        self.assertTrue(its.changes['is_doubtful'])
        self.assertEqual(
            {row['name']: (row['tag'], row['place'] >= 0
                           and its.place(row['place']))
             for row in its.changes['rows']},
            {'a.f': ('', ('a.f', 12)), 'a.old': ('gone', False),
             'a.new': ('new', ('a.new', 2))})
        self.assertEqual(its.changes['total']['change'], 300 * MS)
        self.assertEqual(its.changes['value']['unit'], 'nanoseconds')
        self.assertEqual(its.changes['before'], {
            'runs': 1, 'duration_ns': 2_000_000_000, 'start': '14 Nov, 22:13'})
        self.assertIsNone(document_of(after).changes)
