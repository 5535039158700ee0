"""What the lives of tasks add up to: rows, views and files."""

import io
import json
import random
import unittest

from profile_sampling import Profile
from profile_sampling._data import histogram
from profile_sampling._data.values import ValueType
from profile_sampling._formats import collapsed, text
from profile_sampling._formats.pprof import lives as lives_file
from profile_sampling._formats.pprof import packed, reader, writer

from ..support.builders import (
    Builder, facts_of, message_with, reloaded)
from ..support.random_profiles import random_profile

MS = 1_000_000


def service(**facts):
    """A loop with two classes of tasks, one of which holds it."""
    b = Builder(**facts)
    b.thread('MainThread')
    handle = b.task_class(
        'app.handle:10', lives=[50 * MS, 60 * MS, 70 * MS, 900 * MS],
        cancelled=1, steps=40, longest_step_ns=48 * MS)
    worker = b.task_class('app.worker:30', steps=2, longest_step_ns=MS)
    at = 'app.main:1 '
    b.sample(at + 'app.handle:12 C:json.dumps', count=9, wall_ns=9 * MS,
             cpu_ns=8 * MS, task_ns=9 * MS, delay_ns=6 * MS,
             task=('handle-1', 77), task_class=handle, labels={'route': '/'})
    b.sample(at + 'app.handle:13 db.fetch:7 [awaiting]', task_ns=30 * MS,
             count=3, state='awaiting', task_class=handle,
             labels={'route': '/'})
    b.sample(at + 'app.handle:14 lock.acquire:7 [awaiting]', task_ns=5 * MS,
             count=1, state='awaiting', task_class=handle)
    b.sample(at + 'app.handle:13 [loop~wait]', task_ns=8 * MS, count=2,
             state='loop_wait', task_class=handle, labels={'route': '/'})
    b.sample(at + 'app.worker:31 [awaiting]', task_ns=2 * MS,
             task=('named', 0), state='awaiting', task_class=worker)
    b.sample(at + '[awaiting]', task_ns=1 * MS, state='awaiting')
    b.sample(at + 'C:select.poll [waiting]', count=4, wall_ns=40 * MS,
             delay_ns=2 * MS, state='waiting')
    return b


def beside_a_hog():
    """The same, whose thread waits for the GIL, too: in the loop and in a
    task, for one line of another thread and for one that is not known."""
    b = service()
    hog = b.thread('hog')
    for stack, call, ms in (('app.main:1', 'C:builtins.sum', 9),
                            ('app.main:1 app.handle:12', '', 5)):
        b.sample(f'{stack} [GIL~wait]', wall_ns=ms * MS, delay_ns=ms * MS,
                 state='gil_wait', holder=(hog, f'app.hog:7 {call}'))
    b.sample('app.main:1 [GIL~wait]', wall_ns=MS, delay_ns=MS,
             state='gil_wait', holder=(-1, '[unknown]'))
    b.sample('app.main:1 [loop~wait]', task_ns=15 * MS, state='loop_wait')
    return b


class ValuesTest(unittest.TestCase):

    def test_only_where_there_are_any(self):
        b = Builder()
        b.sample('a.f:1', wall_ns=3)
        self.assertEqual(len(b.profile().value_types), 3)
        b.sample('a.f:1', task_ns=3)
        self.assertEqual(b.profile().value_types[3:],
                         (ValueType('task_ns', 'task', 'nanoseconds', of='tasks'),))
        b.sample('a.f:1', task_ns=3, state='loop_wait')
        b.sample('a.f:1', delay_ns=3)
        self.assertEqual(b.profile().value_types[4:],
                         (ValueType('delay_ns', 'delay', 'nanoseconds',
                                    of='tasks'),))

    def test_clocks_are_those_without_tasks(self):
        b = service()
        with_tasks = b.profile()
        b.samples = {key: (*values[:3], 0, 0)
                     for key, values in b.samples.items()
                     if any(values[1:3])}
        without = b.profile()
        for format in 'collapsed', 'pstats', 'dot', 'gecko':
            with self.subTest(format):
                one, other = io.BytesIO(), io.BytesIO()
                with_tasks.save(one, format)
                without.save(other, format)
                self.assertEqual(one.getvalue(), other.getvalue())
        file = io.BytesIO()
        with_tasks.save(file, 'svg')
        self.assertNotIn(b'db.fetch', file.getvalue())
        for name in 'count', 'cpu_ns', 'wall_ns':
            self.assertEqual(with_tasks.total(name), without.total(name))
        tables = [profile._tables for profile in (with_tasks, without)]
        one, other = map(text.render, tables)
        lines = [line for line in one.splitlines()
                 if line and not line.startswith(('Tasks: ', '* ', 'Also: ', '  '))]
        self.assertEqual(lines, [line for line in other.splitlines() if line
                                 and not line.startswith(('* ', '  '))])

    def test_about_tasks(self):
        profile = service().profile()
        about = profile.by_value('task')
        self.assertEqual((about.mode, about.total('task_ns')),
                         ('task', 55 * MS))
        self.assertEqual(profile.mode, 'wall')
        self.assertEqual(collapsed.render(about._tables), ''.join([
            f'app.main;{stack} {ms * 1000}\n' for stack, ms in (
                ('[awaiting]', 1), ('app.handle;[loop wait]', 8),
                ('app.handle;db.fetch;[awaiting]', 30),
                ('app.handle;json.dumps', 9),
                ('app.handle;lock.acquire;[awaiting]', 5),
                ('app.worker;[awaiting]', 2))]))
        report = text.render(about._tables)
        self.assertIn('\nrunning 16.4 %, awaiting 69.1 %, loop wait 14.5 %\n',
                      report)
        self.assertRegex(report, '54.5% .* 30.0ms .* db.fetch:7')
        self.assertNotIn('select.poll', report)
        with self.assertRaisesRegex(ValueError, "'bogus'.*task, delay"):
            profile.by_value('bogus')
        self.assertEqual(reloaded(about), about)


class ClassTest(unittest.TestCase):

    def test_is_a_label(self):
        profile = service().profile()
        self.assertEqual({row.value: row.task_ns for row
                          in profile.label_values('task_class')},
                         {'app.handle': 52 * MS, 'app.worker': 2 * MS,
                          None: 1 * MS})
        part = profile.filter(labels={'task_class': 'app.worker'})
        self.assertEqual([(sample.state, sample.task_name, sample.task_id,
                           sample.task_class, sample.labels)
                          for sample in part.samples],
                         [('awaiting', 'named', None, 'app.worker', {})])
        self.assertIsNone(profile.samples[-1].task_class)
        self.assertEqual(set(profile.group_by('task_class')),
                         {'app.handle', 'app.worker', None})
        self.assertEqual(profile.label_values('task')[0].value, None)

    def test_tables_of_the_core_that_are_damaged(self):
        for labels in ([(0, None, None, 0, 0), (1, None, 'a', 1, 1)],
                       [(0, None, None, 0, 0)]):
            raw = service().raw()
            raw['labels'] = labels
            with self.assertRaisesRegex(ValueError, 'label'):
                Profile._from_raw(raw)
        raw = service().raw()
        raw['samples'] = raw['samples'][:-8]
        with self.assertRaisesRegex(ValueError, 'samples has a broken row'):
            Profile._from_raw(raw)


class RowsTest(unittest.TestCase):

    def test_tasks(self):
        rows = service().profile().tasks()
        self.assertEqual([row.name for row in rows],
                         ['app.handle', 'app.worker', None])
        row = rows[0]
        self.assertEqual((row.running_ns, row.loop_wait_ns, row.awaiting_ns),
                         (9 * MS, 8 * MS, 35 * MS))
        self.assertEqual(row.life_ns, 52 * MS)
        self.assertEqual(row.function.first_line, 1)
        self.assertEqual((row.finished, row.cancelled, row.steps,
                          row.longest_ns, row.longest_step_ns),
                         (4, 1, 40, 900 * MS, 48 * MS))
        for ns, expected in ((row.mean_ns, 270), (row.p50_ns, 60),
                             (row.p99_ns, 900)):
            self.assertAlmostEqual(ns / MS / expected, 1, delta=0.07)
        self.assertEqual([(awaited.function.name, awaited.awaiting_ns)
                          for awaited in row.awaited],
                         [('db.fetch', 30 * MS), ('lock.acquire', 5 * MS)])
        self.assertEqual((rows[1].finished, rows[1].mean_ns), (0, None))
        self.assertEqual((rows[2].function, rows[2].finished), (None, None))

    def test_they_add_up_to_all_lives(self):
        for seed in range(9):
            profile = random_profile(random.Random(seed), tasks=True)
            for rows in profile.tasks(), profile.tasks_by('route'):
                self.assertEqual(sum([row.life_ns for row in rows]),
                                 profile.total('task_ns'))
                self.assertEqual(
                    sum([row.awaiting_ns for row in rows]),
                    sum([awaited.awaiting_ns for row in rows
                         for awaited in row.awaited]))
            self.assertEqual(sum([row.delay_ns for row
                                  in profile.loop_holders()]),
                             profile.total('delay_ns'))

    def test_of_a_part(self):
        part = service().profile().filter(state=['awaiting', 'loop_wait'])
        row = part.tasks()[0]
        self.assertEqual((row.running_ns, row.awaiting_ns), (0, 35 * MS))
        self.assertEqual((row.finished, row.mean_ns, row.longest_step_ns),
                         (None, None, None))
        self.assertEqual(reloaded(part).tasks(), part.tasks())

    def test_none(self):
        b = Builder()
        profile = b.sample('a.f:1', wall_ns=3).profile()
        self.assertEqual(profile.tasks(), [])
        self.assertEqual(profile.loop_holders(), [])

    def test_loop_holders(self):
        first, second = service().profile().loop_holders()
        self.assertEqual(
            (first.task_class, first.function.name, first.line,
             first.callee.name, first.delay_ns),
            ('app.handle', 'app.handle', 12, 'json.dumps', 6 * MS))
        self.assertEqual((second.task_class, second.function.name,
                          second.callee.name, second.delay_ns),
                         (None, 'app.main', 'select.poll', 2 * MS))

    def test_loop_holders_that_held_the_gil(self):
        profile = beside_a_hog().profile()
        rows = profile.loop_holders()
        self.assertEqual(
            [(row.function.name, row.line, row.delay_ns, row.is_gil_wait)
             for row in rows],
            [('app.hog', 7, 14 * MS, True),
             ('app.handle', 12, 6 * MS, False),
             ('app.main', 1, 2 * MS, False), ('[unknown]', 0, MS, True)])
        self.assertEqual((rows[0].callee.name, rows[0].task_class),
                         ('builtins.sum', None))
        self.assertEqual(sum([row.delay_ns for row in rows]),
                         profile.total('delay_ns'))
        self.assertEqual(reloaded(profile).loop_holders(), rows)

    def test_by_a_label(self):
        rows = service().profile().tasks_by('route')
        self.assertEqual([(row.value, row.life_ns, row.count)
                          for row in rows],
                         [('/', 47 * MS, None), (None, 8 * MS, None)])
        with self.assertRaisesRegex(ValueError, "'bogus'.*route, task, task_class"):
            service().profile().tasks_by('bogus')


class SumTest(unittest.TestCase):

    def test_parts_are_the_whole(self):
        for seed in range(9):
            profile = random_profile(random.Random(seed), tasks=True)
            for key in 'state', 'task_class', 'route':
                parts = profile.group_by(key)
                self.assertEqual(sum(parts.values()), profile)
                self.assertEqual(sum(parts.values()).tasks(),
                                 profile.tasks())

    def test_two_processes(self):
        one, two = service(pid=1).profile(), service(pid=2).profile()
        other = Builder(pid=3).sample('a.f:1', wall_ns=3).profile()
        for total in one + two, Profile.merge(one, two), one + other + two:
            row = total.tasks()[0]
            self.assertEqual((row.name, row.finished, row.steps,
                              row.longest_step_ns, row.awaiting_ns),
                             ('app.handle', 8, 80, 48 * MS, 70 * MS))
        self.assertEqual(total.total_wall_ns, 98 * MS + 3)

    def test_equality_looks_at_counters(self):
        b = service()
        profile = b.profile()
        self.assertEqual(service().profile(), profile)
        b.task_class('app.third:1')
        self.assertNotEqual(b.profile(), profile)


class FileTest(unittest.TestCase):

    def test_pprof(self):
        for seed in range(20):
            profile = random_profile(random.Random(seed), tasks=True)
            loaded = reloaded(profile)
            self.assertEqual(facts_of(loaded), facts_of(profile))
            self.assertEqual(set(loaded._tables.task_classes),
                             set(profile._tables.task_classes))
            self.assertEqual(loaded.tasks(), profile.tasks())
            self.assertEqual(writer.encode(reloaded(loaded)._tables),
                             writer.encode(loaded._tables))

    def test_hostile_names(self):
        names = ('a\tb', 'a\nb', 'a\\tb', '\ud800', 'a\\', '', '\u202e')
        b = Builder()
        for name in names:
            number = b.task_class(b.function('m', name, first_line=3),
                                  steps=1)
            b.sample('a.f:1 [awaiting]', task_ns=1, state='awaiting',
                     task_class=number)
        profile = b.profile()
        loaded = reloaded(profile)
        self.assertEqual(
            sorted([row.name.replace('\\ud800', '\ud800')
                    for row in loaded.tasks()]),
            sorted([f'm.{name}' for name in names]))
        self.assertEqual([row.steps for row in loaded.tasks()], [1] * 7)

    def comments(self, change):
        """Load a file whose table of tasks has been changed."""
        [comment] = lives_file.comments(service().profile()._tables)
        fields = change(comment.split(' '))
        tables = service().profile()._tables
        data = message_with(tables, [' '.join(fields)])
        return Profile._from_raw(reader.decode(data))

    def test_samples_that_another_tool_has_changed(self):
        def change(fields):
            fields[3] = str(int(fields[3]) + 1)
            return fields
        profile = self.comments(change)
        self.assertEqual(profile.tasks()[0].awaiting_ns, 35 * MS)
        self.assertIsNone(profile.tasks()[0].finished)

    def test_files_that_another_tool_has_added_up(self):
        one = service().profile()
        b = service()
        b.sample('a.f:1', wall_ns=5)
        two = b.profile()
        total = (one + Builder(pid=3).sample('a.f:1', wall_ns=5).profile()
                 + two)._tables
        comments = [comment for profile in (one, two) for comment
                    in lives_file.comments(profile._tables)]
        raw = reader.decode(message_with(total, comments))
        # A sample of the third has no comment, and weighs 1 and 5.
        self.assertIsNone(Profile._from_raw(raw).tasks()[0].finished)
        total = Profile.merge(one, two)._tables
        raw = reader.decode(message_with(total, comments))
        self.assertEqual(Profile._from_raw(raw).tasks()[0].finished, 8)

    def test_damaged(self):
        def with_data(lines):
            kind, data = packed.pack(lines)
            return lambda fields: [*fields[:4], str(len(lines)), kind, data]
        good = ('class\tpython\t1\ta\tf\tx.py\t1\t1\t1\t1\t1\t1\t1\t1\t1\t3:1')
        self.comments(with_data(good.encode()))
        for lines in (b'bogus', b'', good.encode()[:-4],
                      good.replace('python', 'pyth').encode(),
                      good.replace('3:1', '3:').encode(),
                      good.replace('3:1', '3:1,2:1').encode(),
                      good.replace('3:1', '99999:1').encode(),
                      good.replace('\t1\t', '\t-1\t').encode(),
                      b'label\tk\tv\t1', b'label\tk\tv\t1\t1\tx\t1:1'):
            with self.subTest(lines), self.assertRaisesRegex(
                    ValueError, 'damaged table of tasks'):
                self.comments(with_data(lines))
        for number, text_ in ((4, 'x'), (4, '9'), (5, 'bogus'), (6, '===')):
            def change(fields):
                fields[number] = text_
                return fields
            with self.subTest(text_), self.assertRaisesRegex(
                    ValueError, 'damaged table of tasks'):
                self.comments(change)

    def test_requests_that_cannot_be(self):
        for counts in '0\t5\t5\t3:1', '3\t5\t5\t':
            lines = f'label\troute\t/\t{counts}\ta.f'.encode()
            kind, data = packed.pack(lines)
            profile = self.comments(lambda fields: [
                *fields[:4], str(len(lines)), kind, data])
            self.assertIsNone(profile.tasks_by('route')[0].count)

    def test_json(self):
        profile = service().profile()
        file = io.BytesIO()
        profile.save(file, 'profile-json')
        data = json.loads(file.getvalue())
        tables = data['tables']
        self.assertEqual(tables['value_types']['name'], [
            'count', 'cpu_ns', 'wall_ns', 'task_ns', 'delay_ns'])
        states = tables['states']['name']
        self.assertEqual(
            sum([ns for ns, state in zip(tables['samples']['task_ns'],
                                         tables['samples']['state'])
                 if states[state] == 'awaiting']), 38 * MS)
        row = data['task_classes'][0]
        self.assertEqual((row['function']['name'], row['finished'],
                          row['steps'], sum(row['lives']['counts'])),
                         ('app.handle', 4, 40, 4))


class HistogramTest(unittest.TestCase):

    def test_buckets(self):
        for bits in 3, 5:
            # A bucket of its own for each small number, then 2 ** bits.
            self.assertEqual([histogram.bucket(value, bits)
                              for value in range(2 << bits)],
                             list(range(2 << bits)))
            last = -1
            for value in [*range(5_000), 10**9, 10**12, (1 << 63) - 1]:
                number = histogram.bucket(value, bits)
                first, behind = histogram.bounds(number, bits)
                self.assertTrue(first <= value < behind, value)
                self.assertLessEqual(behind - first - 1, value >> bits)
                self.assertGreaterEqual(number, last)
                last = number
