"""The text report: what it says, and that it fits."""

import json
import textwrap
import unittest

from profile_sampling._data.by_site import Sites
from profile_sampling._formats import report_files
from profile_sampling._formats import text as _text

from ..support.builders import Builder, example


def whole_report(builder, **options):
    return _text.render(builder.profile()._tables, **options)


def report(builder, **options):
    """The report without its last line, which says what signs mean."""
    text = whole_report(builder, **options)
    head, gap, last = text.rstrip('\n').rpartition('\n\n')
    return f'{head}\n' if last[:2] in ('± ', '= ') else text


class ReportTest(unittest.TestCase):

    maxDiff = None

    def test_known_answer(self):
        b = Builder(python_version='3.13.5', stats={
            'late': 0, 'lost_ring_full': 2, 'lost_stale': 1,
            'lost_wall_ns': 1_200_000, 'captures': 400,
            'captures_merged': 95, 'captures_biased': 5,
            'overhead_drain_ns': 9_000_000})
        main = b.thread('MainThread')
        worker = b.thread('worker')
        b.sample('app.main:3 app.work:11', count=400, cpu_ns=400_000_000,
                 wall_ns=500_000_000, thread=main)
        b.sample('app.main:3 app.work:11 C:json.loads', count=500,
                 cpu_ns=500_000_000, wall_ns=500_000_000, thread=main)
        b.sample('app.main:3 app.work:11 [GIL~wait]', count=3,
                 wall_ns=250_000_000, thread=main, state='gil_wait')
        b.sample('app.main:3 app.work:12', count=100, cpu_ns=100_000_000,
                 wall_ns=100_000_000, thread=main)
        b.sample('app.main:4 C:time.sleep [waiting]', count=2,
                 wall_ns=1_700_000_000, thread=worker, state='waiting')
        # 1.96 * 1 ms * sqrt(900 * (1 - 900 / 1000)): 18.6 ms.
        self.assertEqual(report(b, width=67), textwrap.dedent('''\
            Wall profile of Python 3.13.5, 2.00s, 2 threads,
              2023-11-14 22:13:20 UTC
            wall 3.05s in all threads; CPU 1.00s; 1,005 samples
            running 36.1 %, waiting 55.7 %, GIL wait 8.2 %
            Quality: 3 samples lost (ring full 2, stale 1), 1.200 ms wall lost:
              a lower rate or a smaller --depth loses less

            * Threads waited 1.70 s, 55.7 % of the time: 100.0 % of it for a
              sleep at app.main:4.
            * Threads waited 250 ms for the GIL, 8.2 % of the time: 100.0 % of
              it while it was not seen who held it.

            #   self    run      ±  waiting    GIL  line         in
            1  55.7%      -      -    1.70s      -  app.main:4   time.sleep
            2  41.0%  1.00s  0.02s        -  0.25s  app.work:11  json.loads 40%
            3   3.3%  0.10s  0.02s        -      -  app.work:12
            '''))

    def test_waiting_is_charged_to_the_line_that_waits(self):
        b = Builder()
        b.sample('a.main:1 a.f:2 C:time.sleep [waiting]', wall_ns=3_000_000,
                 state='waiting')
        b.sample('a.main:1 a.f:2 [asleep~with~GIL]', wall_ns=2_000_000,
                 state='asleep_with_gil')
        b.sample('a.main:1 a.f:2 [GC~gen0]', wall_ns=1_000_000, state='gc')
        heading, row = report(b).splitlines()[-2:]
        self.assertEqual(heading.split(), [
            '#', 'self', 'run', '±', 'waiting', 'asleep', 'GC', 'line', 'in'])
        self.assertEqual(row.split(), [
            '1', '100.0%', '-', '-', '3.0ms', '2.0ms', '1.0ms', 'a.f:2',
            'time.sleep', '50%'])

    def test_what_is_on_no_line(self):
        text = report(example())
        self.assertIn('\n[lost] 1.0ms: on no line\n'
                      '[unsampled] 0.5us: on no line\n', text)

    def test_ties(self):
        b = Builder()
        for line, count in (1, 500), (2, 480), (3, 100), (4, 90), (5, 95):
            b.sample(f'a.f:{line}', count=count, wall_ns=count * 1_000_000)
        rows = [line.split() for line in report(b).splitlines()[-5:]]
        self.assertEqual([row[:2] for row in rows], [
            ['1', '='], ['1', '='], ['3', '='], ['3', '='], ['3', '=']])
        # Ten seconds later they are apart.
        b = Builder()
        for line, count in (1, 50_000), (2, 48_000):
            b.sample(f'a.f:{line}', count=count, wall_ns=count * 1_000_000)
        rows = [line.split() for line in report(b).splitlines()[-2:]]
        self.assertEqual([row[0] for row in rows], ['1', '2'])
        self.assertNotIn('=', rows[0])

    def test_merged_rates_have_no_margins(self):
        b = Builder(rate_hz=0).sample('a.f:1', wall_ns=1, count=500)
        text = report(b)
        self.assertNotIn('±', text)
        self.assertIn('Quality: good\n', text)

    def test_threads_that_only_held_the_gil_are_not_counted(self):
        b = Builder()
        main, other = b.thread('MainThread'), b.thread()
        b.sample('a.f [GIL~wait]', wall_ns=1, thread=main, state='gil_wait',
                 holder=(other, '[unknown]'))
        self.assertIn(', 1 thread,', report(b))
        self.assertIn(', 1 thread,', str(b.profile()))
        tables = b.profile()._tables
        document = json.loads(report_files.as_json(
            tables, Sites(tables), [], ''))
        self.assertEqual(document['profile']['threads'], 1)

    def test_what_is_aside(self):
        b = Builder(stats={'subscribers_wall_ns': 2_500_000})
        b.sample('a.f', wall_ns=1)
        text = report(b)
        self.assertIn('\nAside: 2.500 ms wall, 0.000 ms CPU of serving '
                      'subscribers, not in the times above\n', text)
        self.assertNotIn('ustom', text)
        for count, said in ((12, 'which weigh no time and are not in'),
                            (1, 'which weighs no time and is not in')):
            b = Builder().sample('a.f', count=count, state='custom')
            self.assertIn(f'\nCustom: {count} counted by sample(), {said} '
                          'the samples above\n', report(b))

    def test_losses(self):
        """Threads and labels are no samples, and a total is no counter."""
        for stats, expected in (
                ({}, 'good\n'),
                ({'lost_a': 1, 'lost_b_c': 2, 'lost_zero': 0,
                  'lost_cpu_ns': 5_000_000_000, 'lost_wall_ns': 7_000_000},
                 '3 samples lost (a 1, b c 2), 5.000 s CPU lost, 7.000 ms '
                 'wall lost:'),
                ({'lost_a': 1, 'lost_threads': 2},
                 '1 sample lost (a 1), 2 threads not profiled:'),
                ({'lost_threads': 2}, '2 threads not profiled\n'),
                ({'lost_labels': 1200, 'lost_tasks': 2, 'lost_threads': 3},
                 '1,200 samples without their labels, 2 samples without '
                 'their task, 3 threads not profiled')):
            with self.subTest(stats=stats):
                b = Builder(stats=stats).sample('a.f', count=100, wall_ns=1)
                self.assertIn(f'\nQuality: {expected}', report(b, width=200))

    def test_top(self):
        b = Builder()
        for number in range(60):
            b.sample(f'a.f{number:02}', wall_ns=1_000 * (number + 1))
        text = report(b)
        self.assertEqual(text.count('a.f59'), 1)
        self.assertEqual(text.count('a.f30'), 1)
        self.assertEqual(text.count('a.f29'), 0)
        self.assertTrue(text.endswith('\n... 30 more lines, 25.4 % in all\n'), text)
        self.assertEqual(report(b, top=3).count('a.f'), 3)

    def test_facts_that_are_missing(self):
        b = Builder(start_time_ns=0, rate_hz=0, python_version='')
        b.sample('a.f', wall_ns=1)
        self.assertTrue(report(b).startswith(
            'Wall profile, 2.00s, 1 thread, at a time not known\n'))
        for start in (2 ** 63 - 1, -2 ** 63):
            report(Builder(start_time_ns=start))


class WidthTest(unittest.TestCase):

    def assertFits(self, text, width):
        for line in text.splitlines():
            self.assertLessEqual(len(line), width, line)

    def test_packages_and_classes_are_left_out_and_names_are_not(self):
        name = 'Class.' + 'm' * 36
        b = Builder()
        b.sample([(b.function('package.module', name), 7)], wall_ns=1)
        for width, shown in ((200, f'package.module.{name}:7'),
                             (76, f'…module.{name}:7'), (71, f'{name}:7'),
                             (60, f'{name}:7')):
            with self.subTest(width=width):
                line = report(b, width=width).splitlines()[-1]
                self.assertTrue(line.endswith(f'  {shown}'), line)

    def test_a_name_that_nobody_wrote(self):
        b = Builder().sample('m.' + 'x' * 70_000, wall_ns=10 ** 15)
        for width in 75, 100, 200:
            with self.subTest(width=width):
                text = report(b, width=width)
                self.assertFits(text, width)
                self.assertRegex(text, 'x+…x+')

    def test_a_small_state_is_left_out_before_what_was_called(self):
        b = Builder()
        for state, ms in (('waiting', 40), ('gil_wait', 40), ('native', 2)):
            b.sample('package.module.waits_for:7 C:lib.call_it', state=state,
                     wall_ns=ms * 1_000_000)
        b.sample('package.module.other:7', wall_ns=20_000_000)
        for width, head in ((100, ['run', 'native', 'waiting', 'GIL', 'line',
                                   'in']),
                            (70, ['run', 'waiting', 'GIL', 'line', 'in']),
                            (60, ['run', 'waiting', 'GIL', 'line'])):
            with self.subTest(width=width):
                text = report(b, width=width)
                self.assertFits(text, width)
                shown = text.splitlines()[-3].split()
                self.assertEqual([name for name in shown
                                  if name not in ('#', 'self', '±')], head)

    def test_signs_are_explained(self):
        b = Builder().sample('a.f:1', count=500, wall_ns=500_000_000)
        text = whole_report(b)
        self.assertTrue(text.endswith(
            '\n\n± how far it may be off, in 95 of 100 profiles\n'), text)
        b.sample('a.f:2', count=480, wall_ns=480_000_000)
        text = whole_report(b)
        self.assertTrue(text.endswith(
            '95 of 100 profiles; = chance may have ranked these rows\n'), text)
        text = whole_report(Builder(rate_hz=0).sample('a.f:1', wall_ns=1))
        self.assertNotIn('chance', text)
        self.assertNotIn('±', text)

    def test_small_rows_are_one_line(self):
        b = Builder()
        for number in range(9):
            b.sample(f'a.f{number}', wall_ns=1_000_000 + number, count=1_000)
        for number in range(50):
            b.sample(f'a.small{number}', wall_ns=1_000)
        text = report(b)
        self.assertNotIn('small', text)
        self.assertTrue(text.endswith(
            '\n50 more lines under 0.5 %, 0.6 % in all\n'), text)
        # Unless so many are asked for.
        text = report(b, top=20)
        self.assertEqual(text.count('small'), 11)
        self.assertTrue(text.endswith(
            '\n... 39 more lines, 0.4 % in all\n'), text)

    def test_a_flat_profile_has_rows(self):
        b = Builder()
        b.sample('a.first', wall_ns=700_000, count=1)
        for number in range(993):
            b.sample(f'a.f{number}', wall_ns=100_000, count=1)
        text = report(b)
        # The first and 14 others; a row is 0.1 %.
        self.assertEqual(text.count(' a.f'), 15)
        self.assertTrue(text.endswith(
            '\n979 more lines under 0.5 %, 97.9 % in all\n'), text)

    def test_few_rows_where_the_rest_is_little(self):
        b = Builder()
        b.sample('a.first', wall_ns=960_000, count=1)
        for number in range(40):
            b.sample(f'a.f{number}', wall_ns=1_000, count=1)
        self.assertTrue(report(b).endswith(
            '\n36 more lines under 0.5 %, 3.6 % in all\n'))

    def test_quality_is_not_good_where_the_machine_was_busy(self):
        # 5 % of the time that threads wanted a CPU, waits not counted.
        for wait_ms, ms, is_busy in (
                (100, 1900, True), (100, 2000, False), (40, 400, False)):
            b = Builder()
            b.sample('a.f', count=ms, wall_ns=ms * 1_000_000)
            b.sample('a.f [CPU wait]', wall_ns=wait_ms * 1_000_000,
                     state='cpu_wait')
            b.sample('a.f C:time.sleep [waiting]', wall_ns=10 ** 11,
                     state='waiting')
            text = report(b, width=200)
            self.assertEqual('\nQuality: good\n' in text, not is_busy, text)
            self.assertEqual(
                '\nQuality: the machine was busy: threads got no CPU for 5.0 %'
                ' of the time that they wanted one; ' in text, is_busy)

    def test_quality_says_what_helps(self):
        b = Builder(stats={'captures': 100, 'captures_biased': 10,
                           'overhead_capture_ns': 10_000_000})
        b.sample('a.f', count=100, wall_ns=200_000_000, cpu_ns=100_000_000)
        b.sample('', wall_ns=5_000_000, state='unsampled')
        self.assertIn('\nQuality: the machine was busy, with 500 of 1,000 '
                      'samples a second: profile again when it is not; 2.4 % '
                      'of the time met no tick: a higher rate meets more; the '
                      'profiler took 10.0 % of the CPU time: a lower rate '
                      'takes less; 9.1 % of the samples came late: single '
                      'lines are less certain\n', report(b, width=500))

    def test_wrong_numbers(self):
        for options in {'width': 59}, {'top': 0}, {'sort': 'x'}:
            with self.subTest(options=options), \
                    self.assertRaisesRegex(ValueError, 'must be'):
                report(example(), **options)


class IdleTest(unittest.TestCase):
    """Threads that have nothing to do are one line."""

    def build(self):
        b = Builder(duration_ns=2_000_000_000)
        b.thread('MainThread')
        return b

    def tail(self, builder):
        return report(builder).partition('\n#')[2].splitlines()[1:]

    def test_executor_worker_is_idle_and_its_work_is_not(self):
        b = self.build()
        worker = b.thread('pool_0')
        at = (b.function('concurrent.futures.thread', '_worker'), 90)
        b.sample([at, 'C:_queue.SimpleQueue.get', '[waiting]'],
                 wall_ns=700_000_000, thread=worker, state='waiting')
        b.sample([at, 'a.job:3', 'C:_socket.socket.recv', '[waiting]'],
                 wall_ns=300_000_000, thread=worker, state='waiting')
        # Waiting for the GIL is nothing that it chose.
        b.sample([at, '[GIL wait]'], wall_ns=100_000_000, thread=worker,
                 state='gil_wait')
        rows = self.tail(b)
        self.assertEqual([row.split()[1] for row in rows[:2]],
                         ['75.0%', '25.0%'])
        self.assertTrue(rows[2].startswith('[idle] 700.0ms in 1 thread '))

    def test_a_thread_that_does_nothing_but_wait(self):
        for name, ns, is_idle in (('consumer', 1_990_000_000, True),
                                  ('late', 900_000_000, False),
                                  ('MainThread', 1_990_000_000, False)):
            with self.subTest(name=name):
                b = self.build()
                b.sample('a.main:1', wall_ns=2_000_000_000)
                thread = b.thread(name)
                b.sample('a.consume:4 C:_socket.socket.recv [waiting]',
                         wall_ns=ns, thread=thread, state='waiting')
                b.sample('a.consume:5', wall_ns=1_000_000, thread=thread)
                self.assertEqual(self.tail(b)[-1].startswith('[idle]'),
                                 is_idle)

    def in_one_place(self, *stacks, cpu_ns=0):
        """Whether a thread that was always there is idle."""
        b = self.build()
        b.sample('a.main:1', wall_ns=2_000_000_000)
        thread = b.thread('other')
        for stack in stacks:
            b.sample(stack, wall_ns=2_000_000_000 // len(stacks),
                     cpu_ns=cpu_ns, thread=thread, state='waiting')
        return '[idle]' in report(b)

    def test_the_next_job_of_a_queue(self):
        recv = 'redis.connection.Connection.read:9 C:_socket.socket.recv'
        for module, name, below, is_idle in (
                ('rq.worker.base', 'BaseWorker.dequeue_job_and_maintain_ttl',
                 recv, True),
                ('rq.worker.worker_classes', 'Worker.monitor_work_horse',
                 'C:posix.waitpid', True),
                ('billiard.pool',
                 'Worker._make_recv_method.<locals>._recv', 'C:posix.read',
                 True),
                ('kombu.asynchronous.hub', 'Hub.create_loop',
                 'C:select.epoll.poll', True),
                ('kombu.transport.redis', 'MultiChannelPoller.get',
                 'C:select.epoll.poll', True),
                # A worker that lets its last messages go out as it ends.
                ('billiard.pool', 'Worker._do_exit', 'C:time.sleep', True),
                # Jobs, and what others ask for that know no queue.
                ('billiard.pool', 'Worker.workloop', f'a.job:3 {recv}', False),
                ('kombu.asynchronous.hub', 'Hub.create_loop',
                 f'a.job:3 {recv}', False),
                ('redis.commands.core', 'BasicKeyCommands.brpop', recv,
                 False)):
            with self.subTest(name, below=below):
                self.assertEqual(self.is_idle(module, name, below), is_idle)

    def test_a_thread_that_computes_without_the_gil(self):
        for share, is_idle in ((0.97, False), (0.11, False), (0.09, True)):
            for stack in 'a.crunch:4 [waiting]', 'threading.Thread.run:995':
                with self.subTest(stack, share=share):
                    self.assertEqual(self.in_one_place(
                        stack, cpu_ns=round(share * 2e9)), is_idle)

    def test_what_is_no_wait_does_something(self):
        for call, is_idle in (
                ('_queue.SimpleQueue.get', True), ('select.poll.poll', True),
                ('time.sleep', True), ('sqlite3.Cursor.execute', False),
                ('_thread.lock.acquire', False), ('posix.fsync', False)):
            for function in 'a.work:4', 'threading.Thread.run:995':
                with self.subTest(call, function=function):
                    self.assertEqual(self.in_one_place(
                        f'{function} C:{call} [waiting]'), is_idle)
        self.assertTrue(self.in_one_place(
            'a.work:4 threading.Condition.wait:359 C:_thread.lock.acquire '
            '[waiting]'))
        self.assertTrue(self.in_one_place(
            'a.serve:5 socket.socket.accept:2 C:_socket.socket._accept '
            '[waiting]'))
        # A worker that waits in two places of its work.
        self.assertFalse(self.in_one_place(*[
            f'a.work:{line} C:lib.query [waiting]' for line in (4, 5)]))

    def is_idle(self, module, name, below):
        b = self.build()
        b.sample([(b.function(module, name), 9), *below.split(),
                  '[waiting]'], wall_ns=1_000_000_000, state='waiting')
        return '[idle]' in report(b)

    def test_what_waits_for_work(self):
        """Loops, supervisors and workers are idle in calls of their own, and
        not in what they call."""
        select = 'selectors.E.select:4 C:select.epoll.poll'
        get = 'C:_queue.SimpleQueue.get'
        lock = 'C:_thread.lock.acquire'
        for module, name, *idle in (
                ('asyncio.base_events', 'BaseEventLoop._run_once', select),
                ('concurrent.futures.thread', '_worker', get),
                ('gunicorn.arbiter', 'Arbiter.wait_for_signals', get),
                ('gunicorn.workers.gthread',
                 'ThreadWorker.wait_for_and_dispatch_events', select),
                ('uvicorn.supervisors.multiprocess', 'Multiprocess.run',
                 f'threading.Event.wait:6 {lock}'),
                ('uvicorn.supervisors.multiprocess', 'Process.pong',
                 'socket.read:3 C:posix.read'),
                *[(*worker, get, f'queue.Queue.get:171 {lock}') for worker in (
                    ('aiosqlite.core', '_connection_worker_thread'),
                    ('anyio._backends._asyncio', 'WorkerThread.run'),
                    ('concurrent.futures.process', '_process_worker'),
                    ('multiprocessing.pool', 'worker'))]):
            for below in idle:
                with self.subTest(name, below=below):
                    self.assertTrue(self.is_idle(module, name, below))
                    self.assertFalse(self.is_idle(
                        module, name, f'a.handle:7 {below}'))
            if len(idle) > 1:
                for below in ('C:functools.partial.__call__ '
                              'C:sqlite3.Connection.execute',
                              'C:_contextvars.Context.run C:time.sleep', ''):
                    with self.subTest(name, below=below):
                        self.assertFalse(self.is_idle(module, name, below))


class NothingTest(unittest.TestCase):

    def test_it_says_why(self):
        for why, builder in (
                (r'shorter \(0.400 ms\) than one period \(1.000 ms\)',
                 Builder(duration_ns=400_000)),
                ('the only sample was lost',
                 Builder(stats={'lost_ring_full': 1})),
                ('all 7 samples were lost',
                 Builder(stats={'lost_ring_full': 7})),
                ('never ticked', Builder(stats={'ticks': 0})),
                ('no thread used CPU time',
                 Builder(mode='cpu', stats={'ticks': 5})),
                ('no thread ran', Builder(stats={'ticks': 5}))):
            with self.subTest(why):
                text = report(builder, width=200)
                self.assertRegex(text, f'Nothing was sampled: .*{why}')
                self.assertNotIn('self', text)
