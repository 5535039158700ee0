"""Tables of tasks: known answers, in text and in other formats."""

import json
import os
import random
import re
import tempfile
import unittest

from profile_sampling import Profile
from profile_sampling._cli import main
from profile_sampling._data import by_await
from profile_sampling._data.by_site import sites_of
from profile_sampling._formats import tables_of_tasks, text
from profile_sampling._formats.table import lines

from ..profiles.test_task_rows import MS, beside_a_hog, service
from ..support.builders import Builder, example
from ..support.timed import timed
from .test_page_document import latency


def shown(profile, make=tables_of_tasks.tasks, *arguments, width=100):
    tables = profile._tables
    if make is tables_of_tasks.tasks:
        arguments = sites_of(tables), *arguments
    return [line for table in make(tables, *arguments)
            for line in lines(table, width)]


class TasksTest(unittest.TestCase):

    def test_wide(self):
        self.assertEqual(shown(service().profile(), tables_of_tasks.tasks, 9), [
            'Tasks by how long they lived',
            '  life  ended     mean      p99  running  loop wait  awaiting  '
            '  step  task',
            '52.0ms      4  270.0ms  900.0ms    9.0ms      8.0ms    35.0ms  '
            '48.0ms  app.handle',
            '        awaited db.fetch 30.0ms, lock.acquire 5.0ms',
            ' 2.0ms      0                          -          -     2.0ms  '
            ' 1.0ms  app.worker',
            '        awaited app.worker 2.0ms',
            ' 1.0ms                                 -          -     1.0ms  '
            '        [unknown]',
            '        awaited app.main 1.0ms',
            'Who held the event loop while other tasks could go on',
            'waited   share  held by        in',
            ' 6.0ms   75.0%  app.handle:12  json.dumps',
            ' 2.0ms   25.0%  app.main:1     select.poll',
            ' 8.0ms  100.0%  all'])

    def test_another_thread_that_held_the_gil(self):
        found = shown(beside_a_hog().profile(), tables_of_tasks.tasks, 9)
        self.assertEqual(found[found.index(
            'Who held the event loop while other tasks could go on') + 1:], [
            'waited   share  held by        how           in',
            '14.0ms   60.9%  app.hog:7      held the GIL  builtins.sum',
            ' 6.0ms   26.1%  app.handle:12  ran in it     json.dumps',
            ' 2.0ms    8.7%  app.main:1     ran in it     select.poll',
            ' 1.0ms    4.3%  not seen       held the GIL',
            '23.0ms  100.0%  all'])

    def test_fewer_rows(self):
        found = shown(service().profile(), tables_of_tasks.tasks, 1)
        self.assertIn('... 2 more classes of tasks', found)
        self.assertIn(' 2.0ms   25.0%  1 more row', found)

    def test_no_tasks(self):
        self.assertEqual(
            shown(example().profile(), tables_of_tasks.tasks, 9),
            ['There are no tasks in this profile.'])
        # They are in no time line.
        profile = timed(service().profile(), random.Random(1))
        self.assertEqual(
            shown(profile.between(0, profile.duration_ns),
                  tables_of_tasks.tasks, 9),
            ['There are no tasks in this profile.'])


class RequestsTest(unittest.TestCase):

    def test_what_they_awaited(self):
        """At lines of mine; of a worker thread, what that did."""
        b = Builder()
        b.thread('MainThread')
        worker = b.thread('AnyIO worker thread')
        task = b.task_class('app.handle:1')
        anyio = b.function('anyio.to_thread', 'run_sync',
                           '/x/site-packages/anyio/to_thread.py')
        labels = {'labels': {'route': '/a'}}
        acquire = b.function('asyncpg.pool', 'Pool.acquire',
                             '/x/site-packages/asyncpg/pool.py')
        get = b.function('asyncio.queues', 'Queue.get',
                         '/usr/lib/python3.13/asyncio/queues.py')
        b.sample(['app.handle:3', (acquire, 9), (get, 5), '[awaiting]'],
                 task_ns=40 * MS, state='awaiting', task_class=task, **labels)
        b.sample([(b.function('fastapi.routing', 'run',
                              '/x/site-packages/fastapi/routing.py'), 1),
                  (anyio, 2), '[awaiting]'], task_ns=30 * MS,
                 state='awaiting', task_class=task, **labels)
        b.sample('app.work:7 [GIL~wait]', wall_ns=18 * MS, thread=worker,
                 state='gil_wait', **labels)
        b.sample('app.work:7', wall_ns=12 * MS, thread=worker, **labels)
        raw = b.raw()
        raw['latencies'] = latency('/a', ['app.handle'], [72 * MS]),
        found = lines(tables_of_tasks.by_label(
            Profile._from_raw(raw)._tables, 9, 'route'), 100)
        self.assertIn(
            'awaited pool at app.handle:3 40.0ms, worker thread (GIL wait '
            '60.0 %, running 40.0 %) 30.0ms', ' '.join(' '.join(found).split()))


    def test_a_middleware_that_runs_the_request_in_another_task(self):
        """Starlette's base class awaits that task, whose waits are meant."""
        b = Builder()
        base = b.function('starlette.middleware.base',
                          'BaseHTTPMiddleware.__call__.<locals>.call_next',
                          '/x/site-packages/starlette/middleware/base.py')
        coro = b.function('starlette.middleware.base', 'BaseHTTPMiddleware.'
                          '__call__.<locals>.call_next.<locals>.coro',
                          '/x/site-packages/starlette/middleware/base.py')
        receive = b.function('anyio.streams.memory', 'Receive.receive',
                             '/x/site-packages/anyio/streams/memory.py')
        outer = b.task_class('app.root:1')
        inner = b.task_class('anyio.TaskHandle:9')
        labels = {'labels': {'route': '/a'}}
        b.sample([(base, 3), (receive, 4), '[awaiting]'], task_ns=50 * MS,
                 state='awaiting', task_class=outer, **labels)
        b.sample([(coro, 3), 'app.handle:7', 'C:db.get', '[awaiting]'],
                 task_ns=45 * MS, state='awaiting', task_class=inner, **labels)
        raw = b.raw()
        raw['latencies'] = latency('/a', ['app.root'], [50 * MS]),
        lives = by_await.Lives(Profile._from_raw(raw)._tables)
        self.assertEqual([(row.function.name, row.line, row.ns)
                          for row in lives.awaited],
                         [('app.handle', 7, 45 * MS)])
        self.assertEqual(lives.took_ns, 50 * MS)


class ReportTest(unittest.TestCase):

    def test_summary(self):
        report = text.render(service().profile()._tables)
        self.assertIn('\nTasks: 4 ended, running 16.4 %, loop wait 14.5 %, '
                      'awaiting 69.1 %: --tasks\n', report)
        self.assertIn('\nwall 49.0ms in all threads; CPU 8.0ms; 13 samples\n',
                      report)
        self.assertIn('\nrunning 18.4 %, waiting 81.6 %\n', report)
        self.assertNotIn('Tasks: ', text.render(example().profile()._tables))

    def test_summary_of_a_part(self):
        part = service().profile().filter(labels={'route': '/'})
        self.assertIn('\nTasks: running 19.1 %, loop wait 17.0 %, '
                      'awaiting 63.8 %: --tasks\n',
                      text.render(part._tables))

    def test_finding(self):
        def found(profile):
            return [finding for finding in profile.findings()
                    if finding.rule == 'loop']
        [finding] = found(service().profile())
        self.assertEqual(
            finding.text, 'Tasks that could go on waited 8.00 ms for the '
            'event loop: 75.0 % of it while app.handle:12 (json.dumps) ran '
            'in it')
        self.assertEqual(finding.ns, 8 * MS)
        [finding] = found(beside_a_hog().profile())
        self.assertTrue(finding.text.endswith(
            ': 60.9 % of it while app.hog:7 (builtins.sum) held the GIL'))
        b = service()
        b.sample('app.main:1 [awaiting]', task_ns=300 * MS, state='awaiting')
        self.assertEqual(found(b.profile()), [])

    def test_who_held_the_loop_is_a_line_of_mine(self):
        b = service()
        library = '/venv/lib/python3.13/site-packages/orm/x.py'
        handle = b.function('app', 'handle', '/app/app.py')
        load = b.function('orm.engine', 'load', library)
        for line in 5, 9:
            b.sample([(handle, 20), (load, line), 'C:db.Cursor.fetchall'],
                     task_ns=5 * MS, delay_ns=5 * MS)
        for options in [], ['--all']:
            with self.subTest(options=options):
                self.assertIn('55.6 % of it while app.handle:20 (orm) ran in '
                              'it', ' '.join(
                                  self.report(*options, builder=b).split()))
        # What serves the loop is on no line of what runs it.
        run_once = b.function('asyncio.base_events', 'BaseEventLoop._run_once',
                              '/usr/lib/python3.13/asyncio/base_events.py')
        b.sample([(handle, 30), (run_once, 3),
                  (b.function('orm.pool', 'ping', library), 7),
                  'C:socket.recv'], wall_ns=20 * MS, task_ns=MS,
                 delay_ns=20 * MS)
        report = ' '.join(self.report(builder=b).split())
        self.assertIn('52.6 % of it while orm, outside my code, ran in it',
                      report)
        self.assertNotIn('app.handle:30', report)

    def report(self, *arguments, builder=None):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, 'p.pb.gz')
            (builder or service()).profile().save(path)
            output = os.path.join(directory, 'out')
            if '--format' not in arguments:
                arguments += '--format', 'text'
            self.assertFalse(main.main(['report', path, '-o', output,
                                        *arguments]))
            with open(output) as file:
                return file.read()

    def test_json(self):
        document = json.loads(self.report('--tasks', '--format', 'json'))
        tasks, holders = document['tables']
        self.assertEqual((tasks['name'], holders['name']),
                         ('tasks', 'loop_held'))
        row = tasks['rows'][0]
        self.assertEqual(
            (row['task_class'], row['life_ns'], row['awaiting_ns'],
             row['finished'], row['cancelled'], row['awaited']),
            ('app.handle', 52 * MS, 35 * MS, 4, 1,
             [{'name': 'db.fetch', 'ns': 30 * MS},
              {'name': 'lock.acquire', 'ns': 5 * MS}]))
        self.assertIsNone(tasks['rows'][2]['task_class'])
        self.assertEqual(holders['rows'][0]['waited_ns'], 6 * MS)

    def test_other_formats(self):
        table = self.report('--tasks', '--format', 'tsv')
        self.assertIn(f'\tdb.fetch {30 * MS}, lock.acquire {5 * MS}\n', table)
        table = self.report('--tasks', '--format', 'markdown')
        self.assertIn(' | `db.fetch 30.0ms`, `lock.acquire 5.0ms` |\n', table)

    def test_keys(self):
        report = self.report('--by', 'task_class')
        self.assertRegex(report, r'18\.4% .* app\.handle\n')
        self.assertNotIn('app.worker', report)
        report = self.report('--where', 'task_class=worker', '--tasks')
        self.assertIn('app.worker', report)
        self.assertNotIn('app.handle', report)
        report = self.report('--tasks', '--by', 'route', '--by', 'task_class')
        self.assertEqual(re.findall('^Tasks by .*', report, re.MULTILINE),
                         ['Tasks by route', 'Tasks by task_class'])
