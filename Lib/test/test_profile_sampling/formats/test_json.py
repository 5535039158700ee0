"""Profiles as JSON: all of a profile can be made again from it."""

import json
import pathlib
import random
import re
import unittest
from test.support import import_helper

from profile_sampling import Process, Profile
from profile_sampling._data import opcodes as _opcodes
from profile_sampling._formats import json as _json

from ..support import hard_profiles
from ..support.builders import STATES, Builder, example
from ..support.random_profiles import random_profile
from ..support.timed import timed

KINDS = 'python', 'C', 'operator', 'pseudo'
PAGE = 'Doc/library/profile_sampling-json.rst'


def written(profile):
    return json.loads(_json.encode(profile._tables))


def rows(columns):
    """Return the rows of a table as dicts."""
    return [dict(zip(columns, row))
            for row in zip(*columns.values(), strict=True)]


def rebuilt(data):
    """Return the profile that a file says, by what is documented of it."""
    tables = {name: rows(columns)
              for name, columns in data['tables'].items()}
    b = Builder(**{
        name: data[name] for name in (
            'mode', 'rate_hz', 'depth_frames', 'start_time_ns',
            'duration_ns', 'pid', 'python_version')},
        stats=data['counters'],
        names=('off', 'calls', 'opcodes', 'all').index(data['names']),
        value_types=[(type_['kind'], type_['unit'], type_['adds'],
                      type_['of']) for type_ in tables['value_types']])
    for thread in tables['threads']:
        b.thread(thread['name'], ident=thread['ident'],
                 native_id=thread['native_id'],
                 interpreter=thread['interpreter_id'],
                 process=thread['pid'] and Process(
                     thread['pid'], thread['host'], thread['process_start_ns'])
                 or None)
    functions = [
        b.function(row['module'], row['qualname'], row['filename'],
                   row['first_line'], KINDS.index(row['kind']))
        for row in tables['functions']]
    frames = [
        (functions[row['function']], row['line'], row['column'],
         row['instruction_offset'],
         0 if row['opname'] is None else _opcodes.number(row['opname']))
        for row in tables['frames']]

    def stack(number):
        found = []
        while tables['stacks'][number]['parent'] >= 0:
            found.append(frames[tables['stacks'][number]['frame']])
            number = tables['stacks'][number]['parent']
        return found[::-1]

    labels = [{} for _ in tables['label_sets']]
    for row in tables['labels']:
        labels[row['label_set']][row['key']] = row['value']
    names = [type_['name'] for type_ in tables['value_types']]
    for row in tables['samples']:
        task = tables['label_sets'][row['label_set']]
        b.sample(stack(row['stack']), thread=row['thread'],
                 state=tables['states'][row['state']]['name'],
                 labels=labels[row['label_set']],
                 task=None if task['task_name'] is None else (
                     task['task_name'], task['task_id']),
                 holder=None if row['gil_holder_stack'] < 0 else (
                     row['gil_holder_thread'], stack(row['gil_holder_stack'])),
                 values=tuple(map(row.get, names)))
    return Profile._from_raw(b.raw())


class JSONTest(unittest.TestCase):

    def test_nothing_gets_lost(self):
        rng = random.Random(11)
        for profile in (Builder().profile(), example().profile(),
                        hard_profiles.recursive().profile(),
                        hard_profiles.deep().profile(),
                        *[random_profile(rng) for _ in range(20)]):
            again = rebuilt(written(profile))
            self.assertEqual(again, profile)
            self.assertEqual(again.stats, profile.stats)

    def test_what_is_said_of_the_whole(self):
        rng = random.Random(5)
        second = 1_000_000_000
        profile = timed(Builder(
            meta={'command': 'x.py'}, duration_ns=4 * second).sample(
                'a.f:1', wall_ns=second, cpu_ns=7).profile(), rng)
        data = written(profile)
        self.assertEqual(data['meta'], {'command': 'x.py'})
        self.assertEqual(data['covered_ns'], [[0, 4 * second]])
        self.assertIsNone(data['span_ns'])
        self.assertIsNone(data['whole_cpu_ns'])
        records = data['tables']['records']
        self.assertEqual(records['time_ns'], list(profile.timeline.time_ns))
        self.assertEqual(sum(records['wall_ns']), second)
        part = written(profile.between(second, 2 * second))
        self.assertEqual(part['span_ns'], [second, 2 * second])
        self.assertEqual(part['whole_cpu_ns'], 7)

    def test_what_the_program_counted_is_not_in_the_total(self):
        b = Builder().sample('a.f', count=3).sample('a.f', count=100,
                                                    state='custom')
        tables = written(b.profile())['tables']
        self.assertEqual(tables['value_types']['total'][0], 3)
        self.assertEqual(tables['samples']['count'], [3, 100])
        self.assertEqual([STATES[state] for state in tables['samples'][
            'state']], ['running', 'custom'])

    def test_hostile_names(self):
        text = _json.encode(hard_profiles.hostile().profile()._tables)
        # Every reader of JSON takes ASCII.
        self.assertTrue(text.isascii())
        names = {*json.loads(text)['tables']['functions']['qualname']}
        expected = {name.replace('\udc80', '\\udc80')
                    for name in hard_profiles.NAMES}
        self.assertLessEqual(expected, names)


class DocumentTest(unittest.TestCase):

    def test_every_field_is_documented(self):
        for folder in pathlib.Path(__file__).resolve().parents:
            if (folder / PAGE).exists():
                break
        else:
            self.skipTest('the documentation is not there')
        page = (folder / PAGE).read_text()
        section = page.partition('\nThe profile\n')[2].partition(
            '\nThe difference\n')[0]
        documented = set(re.findall('``([a-z_]+)``', section))
        data = written(timed(example().profile(), random.Random(1)))
        fields = {*data, *data['tables'], *data['timeline']}
        for columns in data['tables'].values():
            fields.update(columns)
        self.assertEqual(fields - documented, set())


class TablesTest(unittest.TestCase):

    def test_they_are_those_of_the_file(self):
        for seed in range(5):
            profile = timed(random_profile(random.Random(seed)),
                            random.Random(seed))
            tables = profile.tables()
            data = written(profile)['tables']
            self.assertEqual({
                table: {name: list(column) for name, column
                        in columns.items()}
                for table, columns in tables.items()}, data)
            for value_type in profile.value_types:
                self.assertEqual(
                    sum(tables['samples'][value_type.name]),
                    sum([getattr(sample, value_type.name)
                         for sample in profile.samples]))

    def test_they_go_into_a_database(self):
        sqlite3 = import_helper.import_module('sqlite3')
        database = sqlite3.connect(':memory:')
        for table, columns in example().profile().tables().items():
            names = ', '.join([f'"{name}"' for name in columns])
            database.execute(f'create table {table} ({names})')
            database.executemany(
                f'insert into {table} values ({", ".join("?" * len(columns))})',
                zip(*columns.values()))
        self.assertEqual(dict(database.execute(
            'select functions.name, sum(wall_ns) from samples'
            ' join stacks on stacks.rowid = stack + 1'
            ' join frames on frames.rowid = frame + 1'
            ' join functions on functions.rowid = function + 1'
            ' group by functions.name').fetchall()), {
                row.function.name: row.self_wall_ns
                for row in example().profile().functions(idle=True)
                if row.self_wall_ns})

    def test_a_value_that_is_called_as_a_key(self):
        b = Builder(value_types=[('cpu', 'nanoseconds'), ('state', 'count')],
                    mode='cpu')
        b.sample('a.f:1', values=(1, 2))
        samples = b.profile().tables()['samples']
        self.assertEqual(list(samples['value_state']), [2])
        self.assertEqual(list(samples['state']), [0])
