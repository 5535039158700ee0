"""What a report says in words: a rule, its numbers, and where it is silent."""

import json
import os
import tempfile
import unittest

from profile_sampling._cli import main
from profile_sampling._formats import text
from profile_sampling._formats.words import said, share

from ..profiles.test_task_rows import service
from ..support.builders import Builder

MS = 1_000_000


def found(builder):
    return {finding.rule: finding
            for finding in builder.profile().findings()}


def running(ms, count=1000):
    b = Builder(duration_ns=10 ** 12, names=3)
    b.thread('MainThread')
    return b.sample('a.main:1', wall_ns=ms * MS, count=count)


class FindingsTest(unittest.TestCase):

    def check(self, builder, rule, text, ns=None):
        finding = found(builder)[rule]
        self.assertEqual(finding.text, text)
        if ns is not None:
            self.assertEqual(finding.ns, ns)

    def test_nothing(self):
        self.assertEqual(found(running(100)), {})
        self.assertEqual(found(Builder()), {})

    def test_gil(self):
        b = running(370)
        b.sample('a.f:2 [GIL~wait]', wall_ns=510 * MS, state='gil_wait',
                 holder=(0, 'json.loads:9'))
        b.sample('a.f:3 [GIL~wait]', wall_ns=120 * MS, state='gil_wait',
                 holder=(0, 'a.g:1 C:zlib.compress'))
        self.check(b, 'gil', 'Threads waited 630 ms for the GIL, 63.0 % of '
                   'the time: 81.0 % of it while json.loads:9 held it',
                   ns=630 * MS)
        b.sample('a.f:3 [GIL~wait]', wall_ns=300 * MS, state='gil_wait',
                 holder=(0, 'a.g:1 C:zlib.compress'))
        self.check(b, 'gil', 'Threads waited 930 ms for the GIL, 71.5 % of '
                   'the time: 54.8 % of it while json.loads:9 held it, '
                   '45.2 % while a.g:1 (zlib.compress) did')
        few = running(971).sample('a.f [GIL~wait]', wall_ns=29 * MS,
                                  state='gil_wait')
        self.assertNotIn('gil', found(few))

    def test_gil_held_below_a_line_of_mine(self):
        """The line that called, not what the library was in."""
        b = running(400)
        library = '/usr/lib/python3/dist-packages/sql/orm.py'
        for number in range(20):
            function = b.function('sql.orm', f'f{number}', library)
            b.sample('a.f:2 [GIL~wait]', wall_ns=20 * MS, state='gil_wait',
                     holder=(0, ['shop.customers:61', (function, 9),
                                 f'C:db.c{number}']))
        b.sample('a.f:3 [GIL~wait]', wall_ns=50 * MS, state='gil_wait',
                 holder=(0, 'a.g:1'))
        b.sample('a.f:2 [GIL~wait]', wall_ns=150 * MS, state='gil_wait')
        self.check(b, 'gil', 'Threads waited 600 ms for the GIL, 60.0 % of '
                   'the time: 66.7 % of it while shop.customers:61 (sql) '
                   'held it')

    def test_gil_held_outside_of_my_code(self):
        b = running(500)
        orm = b.function('sql.orm', 'f',
                         '/usr/lib/python3/dist-packages/sql/orm.py')
        b.sample('a.f:2 [GIL~wait]', wall_ns=500 * MS, state='gil_wait',
                 holder=(0, [(orm, 9), 'C:db.fetch']))
        self.check(b, 'gil', 'Threads waited 500 ms for the GIL, 50.0 % of '
                   'the time: 100.0 % of it while sql, outside my code, held '
                   'it')

    def test_gil_of_many_holders(self):
        b = running(500)
        for line in range(4):
            b.sample('a.f:2 [GIL~wait]', wall_ns=125 * MS, state='gil_wait',
                     holder=(0, f'a.g:{line + 1}'))
        self.check(b, 'gil', 'Threads waited 500 ms for the GIL, 50.0 % of '
                   'the time: 4 lines held it, none for more than 25.0 % of '
                   'it')

    def test_gil_of_unknown_holders(self):
        b = running(500).sample('a.f:2 [GIL~wait]', wall_ns=500 * MS,
                                state='gil_wait')
        self.check(b, 'gil', 'Threads waited 500 ms for the GIL, 50.0 % of '
                   'the time: 100.0 % of it while it was not seen who held '
                   'it')

    def test_asleep_with_the_gil(self):
        b = running(960)
        b.sample('a.f:2 C:lib.call [asleep~with~GIL]', wall_ns=30 * MS,
                 state='asleep_with_gil')
        # Nobody waited for it.
        self.assertNotIn('asleep', found(b))
        b.sample('a.g:2 [GIL~wait]', wall_ns=20 * MS, state='gil_wait',
                 holder=(0, 'a.f:2 C:lib.call'))
        self.check(b, 'asleep', 'lib.call slept with the GIL for 30.0 ms at '
                   'a.f:2; others waited 20.0 ms while that line held the '
                   'GIL', ns=30 * MS)

    def test_an_import_reads_from_disk(self):
        b = running(900)
        find = b.function('importlib._bootstrap', '_find_and_load',
                          '<frozen importlib._bootstrap>')
        b.sample(['a.main:1', (find, 9), 'C:marshal.loads',
                  '[asleep with GIL]'], wall_ns=100 * MS,
                 state='asleep_with_gil')
        b.sample('a.g:2 [GIL~wait]', wall_ns=100 * MS, state='gil_wait',
                 holder=(0, ['a.main:1', (find, 9)]))
        self.assertNotIn('asleep', found(b))

    def test_waited(self):
        b = running(200)
        b.sample('a.f:2 C:time.sleep [waiting]', wall_ns=600 * MS,
                 state='waiting')
        join = b.function('threading', 'Thread.join',
                          '/usr/lib/python3.13/threading.py')
        b.sample(['a.g:2', (join, 9), '[waiting]'], wall_ns=200 * MS,
                 state='waiting')
        self.check(b, 'waited', 'Threads waited 800 ms, 80.0 % of the time: '
                   '75.0 % of it for a sleep at a.f:2')

    def test_threads_that_wait_for_each_other(self):
        # What else they waited for is hardly anything: it says nothing.
        b = running(200)
        join = b.function('threading', 'Thread.join',
                          '/usr/lib/python3.13/threading.py')
        b.sample(['a.g:2', (join, 9), '[waiting]'], wall_ns=760 * MS,
                 state='waiting')
        b.sample('a.f:2 C:time.sleep [waiting]', wall_ns=40 * MS,
                 state='waiting')
        self.assertNotIn('waited', found(b))

    def test_certificates_are_no_socket(self):
        b = running(200)
        create = b.function('ssl', 'create_default_context',
                            '/usr/lib/python3.13/ssl.py')
        b.sample(['a.f:2', (create, 9),
                  'C:_ssl._SSLContext.set_default_verify_paths', '[waiting]'],
                 wall_ns=800 * MS, state='waiting')
        self.assertNotIn('socket', found(b)['waited'].text)
        read = b.function('ssl', 'SSLSocket.read',
                          '/usr/lib/python3.13/ssl.py')
        b.sample(['a.f:3', (read, 9), 'C:_ssl._SSLSocket.read', '[waiting]'],
                 wall_ns=800 * MS, state='waiting')
        self.assertIn('50.0 % for a socket', found(b)['waited'].text)

    def test_a_socket_of_anyio_waits_for_no_lock(self):
        b = running(200)
        wait = b.function('asyncio.locks', 'Event.wait',
                          '/usr/lib/python3.13/asyncio/locks.py')
        receive = b.function('anyio._backends._asyncio',
                             'SocketStream.receive',
                             '/x/site-packages/anyio/a.py')
        read = b.function('httpcore._backends.anyio', 'AnyIOStream.read',
                          '/x/site-packages/httpcore/b.py')
        b.sample(['a.call:3', (read, 1), (receive, 5), (wait, 9),
                  '[awaiting]'], task_ns=600 * MS, state='awaiting',
                 task_class=b.task_class('a.call:1'))
        said = found(b)
        self.assertNotIn('pool', said)
        self.assertIn('for HTTP (httpcore', said['awaited'].text)

    def test_tasks_wait_for_a_lock_and_each_other(self):
        b = running(200)
        enter = b.function('asyncio.locks', '_ContextManagerMixin.__aenter__',
                           '/usr/lib/python3.13/asyncio/locks.py')
        task_class = b.task_class('a.call:1')
        b.sample(['a.call:3', (enter, 9), '[awaiting]'], task_ns=600 * MS,
                 state='awaiting', task_class=task_class)
        b.sample('a.main:7 C:asyncio.tasks._GatheringFuture [awaiting]',
                 task_ns=1000 * MS, state='awaiting', task_class=task_class)
        said = found(b)
        self.assertEqual(said['pool'].text, 'Tasks waited 600 ms for a lock '
                         'at a.call:3: 100.0 % of the 600 ms of their lives')
        self.assertNotIn('awaited', said)

    def test_waited_for_a_free_connection(self):
        b = running(800)
        get = b.function('sqlalchemy.pool.impl', 'QueuePool._do_get',
                         '/x/site-packages/sqlalchemy/pool/impl.py')
        queue = b.function('sqlalchemy.util.queue', 'Queue.get',
                           '/x/site-packages/sqlalchemy/util/queue.py')
        b.sample(['a.f:2', (get, 1), (queue, 1), 'C:_thread.lock.acquire',
                  '[waiting]'], wall_ns=200 * MS, state='waiting')
        self.check(b, 'pool', 'Threads waited 200 ms for a free connection '
                   'at a.f:2: 20.0 % of the time', ns=200 * MS)

    def test_idle_time_is_not_waiting(self):
        b = running(100)
        run_once = b.function('asyncio.base_events',
                              'BaseEventLoop._run_once')
        b.sample([(run_once, 9), 'selectors.E.select:4', '[waiting]'],
                 wall_ns=900 * MS, state='waiting')
        self.assertEqual(found(b), {})

    def test_gc(self):
        b = running(900)
        b.sample('a.f:2 [GC~gen2]', wall_ns=100 * MS, state='gc')
        self.check(b, 'gc', 'The garbage collector took 100 ms, 10.0 % of '
                   'the time: 100 ms of it at a.f:2')

    def test_native_threads(self):
        b = running(500)
        b.facts['stats'] = {'native_threads': 3,
                            'native_threads_cpu_ns': 500 * MS,
                            'native_threads_wait_ns': 100 * MS}
        b.sample('a.f:2', cpu_ns=500 * MS)
        self.check(b, 'native', '3 threads without Python computed 500 ms, '
                   '50.0 % of the CPU time; it is in no sample', ns=500 * MS)
        b.facts['stats']['native_threads_wait_ns'] = 500 * MS
        self.check(b, 'native', '3 threads without Python computed 500 ms, '
                   '50.0 % of the CPU time, and waited 500 ms for a CPU; it '
                   'is in no sample')
        self.assertIn('no CPU for 50.0 %', text.render(b.profile()._tables))

    def test_a_line_that_waits_for_native_threads(self):
        b = running(200)
        b.sample('a.f:2 C:numpy.linalg.svd [threads~without~Python]',
                 wall_ns=600 * MS, state='waiting')
        # What says itself what it waits for does so meanwhile.
        b.sample('a.f:3 C:time.sleep [threads~without~Python]',
                 wall_ns=200 * MS, state='waiting')
        while_it_waited = ('While a.f:2 (numpy.linalg.svd) waited 600 ms, '
                           'threads without Python computed')
        self.check(b, 'native', while_it_waited, ns=600 * MS)
        self.assertNotIn('waited', found(b))
        b.facts['stats'] = {'native_threads': 3,
                            'native_threads_cpu_ns': 500 * MS,
                            'native_threads_wait_ns': 500 * MS}
        b.sample('a.f:2', cpu_ns=500 * MS)
        self.check(b, 'native', while_it_waited + ': 3 of them took 500 ms '
                   'in all, 50.0 % of the CPU time, and waited 500 ms for a '
                   'CPU; it is in no sample', ns=500 * MS)

    def test_a_loop_that_waits_for_its_timers_is_not_held(self):
        b = running(100)
        loop = [b.function(
            'asyncio.base_events', 'BaseEventLoop._run_once',
            '/usr/lib/python3.13/asyncio/base_events.py'), b.function(
            'selectors', 'EpollSelector.select',
            '/usr/lib/python3.13/selectors.py')]
        stack = [(function, 9) for function in loop] + ['C:select.epoll.poll',
                                                        '[waiting]']
        task_class = b.task_class('a.call:1')
        b.sample('a.call:3 C:asyncio.tasks.sleep [awaiting]',
                 task_ns=1000 * MS, state='awaiting', task_class=task_class)
        b.sample('a.call:3 [loop~wait]', task_ns=100 * MS,
                 state='loop_wait', task_class=task_class)
        b.sample(stack, wall_ns=100 * MS, delay_ns=60 * MS, state='waiting')
        self.assertNotIn('loop', found(b))
        b.sample('a.main:2', wall_ns=100 * MS, delay_ns=40 * MS)
        self.check(b, 'loop', 'Tasks that could go on waited 100 ms for the '
                   'event loop: 60.0 % of it for its own timers, which are '
                   'due to the millisecond, 40.0 % while a.main:2 ran in it')

    def test_tasks_that_want_to_sleep_are_said_last(self):
        b = running(900)
        b.sample('a.f:2 [GIL~wait]', wall_ns=100 * MS, state='gil_wait')
        b.sample('a.call:3 asyncio.tasks.sleep:9 [awaiting]',
                 task_ns=1000 * MS, state='awaiting',
                 task_class=b.task_class('a.call:1'))
        self.assertEqual(list(found(b)), ['gil', 'awaited'])

    def test_names_are_looked_up_by_worker_threads(self):
        # What those do, or who has them all, is said of threads.
        b = running(900)
        look_up = b.function('asyncio.base_events',
                             'BaseEventLoop.getaddrinfo',
                             '/usr/lib/python3.13/asyncio/base_events.py')
        b.sample(['a.call:3', (look_up, 9), '[awaiting]'],
                 task_ns=1000 * MS, state='awaiting',
                 task_class=b.task_class('a.call:1'))
        self.assertNotIn('awaited', found(b))

    def test_cpu(self):
        b = running(500)
        b.sample('a.f:2 [CPU~wait]', wall_ns=250 * MS, state='cpu_wait')
        b.sample('a.f:2 C:time.sleep [waiting]', wall_ns=100 * MS,
                 state='waiting')
        self.check(b, 'cpu', 'Threads got no CPU for 33.3 % of the time that '
                   'they wanted one, 250 ms; --value cpu shows what they '
                   'took')

    def test_imports(self):
        b = running(100)
        find = b.function('importlib._bootstrap', '_find_and_load',
                          '<frozen importlib._bootstrap>')
        pandas = b.function('pandas', '<module>',
                            '/x/site-packages/pandas/__init__.py')
        numpy = b.function('numpy', '<module>',
                           '/x/site-packages/numpy/__init__.py')
        b.sample(['a.main:1', (find, 9), 'C:marshal.loads'],
                 wall_ns=100 * MS)
        b.sample(['a.main:1', (find, 9), (pandas, 3), (find, 9), (numpy, 1),
                  'C:numpy.init'], wall_ns=300 * MS)
        b.sample(['a.main:1', (find, 9), (pandas, 4)], wall_ns=200 * MS)
        b.sample(['a.main:2', (find, 9), (numpy, 1)], wall_ns=100 * MS)
        self.check(b, 'imports', 'Imports are 87.5 % of the time, 700 ms: '
                   'pandas 600 ms, numpy 100 ms')
        b.sample(['a.main:2', (find, 9), 'C:builtins.compile'],
                 wall_ns=700 * MS)
        self.check(b, 'imports', 'Imports are 93.3 % of the time, 1.40 s: '
                   'numpy 800 ms, pandas 600 ms; 700 ms of it compiled '
                   'modules without a .pyc')

    def test_a_module_that_is_not_there(self):
        """It is looked for again and again: who does that is said."""
        b = running(100)
        find = b.function('importlib._bootstrap', '_find_and_load',
                          '<frozen importlib._bootstrap>')
        get = b.function('httpx', 'get', '/x/site-packages/httpx/api.py')
        core = b.function('httpcore', 'backend',
                          '/x/site-packages/httpcore/a.py')
        b.sample(['a.main:1', (get, 5), (core, 7), (find, 9),
                  'C:posix.stat'], wall_ns=300 * MS)
        self.check(b, 'imports', 'Imports are 75.0 % of the time, 300 ms: '
                   'not known, by httpcore 300 ms')

    def test_a_module_of_mine_is_compiled(self):
        """No code of it has run, and it is in no package."""
        b = running(100)
        find = b.function('importlib._bootstrap', '_find_and_load',
                          '<frozen importlib._bootstrap>')
        b.sample(['a.main:1', (find, 9), 'C:builtins.compile'],
                 wall_ns=300 * MS)
        self.check(b, 'imports', 'Imports are 75.0 % of the time, 300 ms: '
                   'not known, by a.main 300 ms; 300 ms of it compiled modules '
                   'without a .pyc')

    def test_a_flat_profile(self):
        b = Builder()
        for line in range(50):
            b.sample(f'a.f:{line + 1}', wall_ns=20 * MS)
        self.check(b, 'flat', 'No line stands out: the first has 2.0 % of '
                   'the time')

    def test_order(self):
        """Near equals keep the order of the rules."""
        b = running(400)
        for gil_ms, waited_ms in ((300, 320), (320, 300)):
            b = running(400)
            b.sample('a.f:2 [GIL~wait]', wall_ns=gil_ms * MS,
                     state='gil_wait')
            b.sample('a.f:2 C:time.sleep [waiting]',
                     wall_ns=waited_ms * MS, state='waiting')
            self.assertEqual(list(found(b)), ['gil', 'waited'])

    def test_no_times_no_findings(self):
        b = Builder(mode='alloc', value_types=[('alloc', 'bytes')])
        b.sample('a.f [GIL~wait]', values=[5], state='gil_wait')
        self.assertEqual(found(b), {})


def everything():
    """A profile of which nearly all rules say something."""
    b = service()
    b.thread('MainThread')
    b.sample('app.f:2 [GIL~wait]', wall_ns=50 * MS, state='gil_wait',
             holder=(0, 'app.g:1 C:zlib.compress'))
    b.sample('app.f:2 C:lib.call [asleep~with~GIL]', wall_ns=30 * MS,
             state='asleep_with_gil')
    b.sample('app.g:2 [GIL~wait]', wall_ns=40 * MS, state='gil_wait',
             holder=(0, 'app.f:2 C:lib.call'))
    b.sample('app.f:3 [CPU~wait]', wall_ns=60 * MS, state='cpu_wait')
    b.sample('app.f:3 [GC~gen2]', wall_ns=20 * MS, state='gc')
    b.sample('app.main:1 [awaiting]', wall_ns=0, task_ns=20 * MS,
             state='awaiting')
    b.sample('app.handle:3 C:time.sleep [waiting]', wall_ns=90 * MS,
             delay_ns=70 * MS, state='waiting')
    find = b.function('importlib._bootstrap', '_find_and_load',
                      '<frozen importlib._bootstrap>')
    b.sample(['app.main:2', (find, 9), 'C:builtins.compile'],
             wall_ns=150 * MS)
    return b.profile()


class CellsTest(unittest.TestCase):
    """A sentence is a row of a table, read aloud."""

    def test_each_figure_is_in_a_table(self):
        document = self.report(everything(), [], [
            '--waits', '--by', 'state', '--cost', '--imports'],
            ['--waits', '--tasks'])
        tables = {table['name']: table for table in document['tables']}
        rules = [finding['rule'] for finding in document['findings']]
        self.assertEqual(sorted(rules), [
            'asleep', 'awaited', 'cpu', 'gc', 'gil', 'imports', 'loop',
            'waited'])
        for finding in document['findings']:
            joined = ''
            for part in finding['parts']:
                if isinstance(part, str):
                    self.assertNotRegex(part, '[0-9]')
                    joined += part
                elif 'name' in part:
                    joined += part['name']
                else:
                    joined += part['figure']
                    with self.subTest(finding['rule'], part=part):
                        self.assertAlmostEqual(
                            self.cell(tables, part), part['value'])
                        self.assertEqual(part['figure'], self.written(part))
            self.assertEqual(joined, finding['text'])

    def written(self, part):
        value = part['value']
        return said(value) if part['column'].endswith('ns') else (
            share(value, 1))

    def cell(self, tables, part):
        rows = [row for row in tables[part['table']]['rows'] if all([
            row[column] == value for column, value in part['row'].items()])]
        self.assertEqual(len(rows), 1)
        return rows[0][part['column']]

    def report(self, profile, *options):
        """The report, with the tables of all these."""
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, 'p.pb.gz')
            profile.save(path)
            found = []
            for more in options:
                output = os.path.join(directory, 'r.json')
                self.assertEqual(main.main(['report', path, '--format', 'json',
                                       '-o', output, *more]), 0)
                with open(output) as file:
                    found.append(json.load(file))
        tables = [table for document in found for table in document['tables']]
        return found[0] | {'tables': tables}

    def test_tables_add_up(self):
        document = self.report(everything(), ['--waits', '--imports',
                                              '--cost'], ['--waits', '--tasks'])
        for table in document['tables']:
            if table['name'] == 'cost':
                # The second row is a part of the first.
                continue
            *rows, last = table['rows']
            self.assertIn('all', last.values(), table['name'])
            for column in 'waited_ns', 'awaited_ns', 'ns', 'share':
                if column in last:
                    self.assertAlmostEqual(
                        sum([row[column] for row in rows]), last[column])
