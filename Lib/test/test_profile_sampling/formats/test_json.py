"""Profiles as JSON: all of a profile can be made again from it."""

import json
import pathlib
import random
import re
import unittest

from profile_sampling import Profile
from profile_sampling._data import opcodes as _opcodes
from profile_sampling._formats import json as _json

from ..support import hard_profiles
from ..support.builders import STATES, Builder, example
from ..support.random_profiles import random_profile

KINDS = 'python', 'C', 'operator', 'pseudo'
PAGE = 'Doc/library/profile_sampling-json.rst'


def written(profile):
    return json.loads(_json.encode(profile._tables))


def rebuilt(data):
    """Return the profile that a file says, by what is documented of it."""
    b = Builder(**{
        name: data[name] for name in (
            'mode', 'rate_hz', 'depth_frames', 'start_time_ns',
            'duration_ns', 'pid', 'python_version')},
        stats=data['counters'],
        names=('off', 'calls', 'opcodes', 'all').index(data['names']),
        value_types=[(type_['kind'], type_['unit'])
                     for type_ in data['value_types']])
    for thread in data['threads']:
        b.thread(thread['name'], ident=thread['ident'],
                 native_id=thread['native_id'],
                 interpreter=thread['interpreter_id'])
    functions = [
        b.function(row['module'], row['qualname'], row['filename'],
                   row['first_line'], KINDS.index(row['kind']))
        for row in data['functions']]
    columns = data['frames']
    frames = [
        (functions[function], line, column, offset,
         0 if opname is None else _opcodes.number(opname))
        for function, line, column, offset, opname in zip(
            columns['function'], columns['line'], columns['column'],
            columns['instruction_offset'], columns['opname'], strict=True)]

    def stack(number):
        found = []
        while data['stacks']['parent'][number] >= 0:
            found.append(frames[data['stacks']['frame'][number]])
            number = data['stacks']['parent'][number]
        return found[::-1]

    rows = data['samples']
    names = [type_['name'] for type_ in data['value_types']]
    for at, number in enumerate(rows['stack']):
        labels = data['labels'][rows['labels'][at]]
        task = None
        if labels['task_name'] is not None:
            task = labels['task_name'], labels['task_id'] or 0
        holder = None
        if rows['gil_holder_stack'][at] >= 0:
            holder = (rows['gil_holder_thread'][at],
                      stack(rows['gil_holder_stack'][at]))
        b.sample(stack(number), thread=rows['thread'][at],
                 state=rows['state'][at], labels=labels['labels'], task=task,
                 holder=holder,
                 values=tuple([rows['values'][name][at] for name in names]))
    return Profile._from_raw(b.raw())


class JSONTest(unittest.TestCase):

    def test_known_answer(self):
        b = Builder(pid=7, python_version='3.13.5', names=3,
                    stats={'ticks': 5})
        thread = b.thread('worker', ident=5, native_id=6, interpreter=2)
        b.sample('a.main:3 C:time.sleep', count=1, cpu_ns=2, wall_ns=3,
                 state='waiting', labels={'route': '/'}, task=('T', 9))
        b.sample('a.main:4@CALL+8', count=4, wall_ns=5, state='gil_wait',
                 holder=(thread, 'a.main:3'))
        self.assertEqual(written(b.profile()), {
            'format': 'profile_sampling', 'version': 1, 'mode': 'wall',
            'value_types': [
                {'name': 'count', 'kind': 'samples', 'unit': 'count',
                 'total': 5},
                {'name': 'cpu_ns', 'kind': 'cpu', 'unit': 'nanoseconds',
                 'total': 2},
                {'name': 'wall_ns', 'kind': 'wall', 'unit': 'nanoseconds',
                 'total': 8}],
            'own_value': 2, 'rate_hz': 1000, 'depth_frames': 512,
            'names': 'all', 'start_time_ns': 1_700_000_000_000_000_000,
            'duration_ns': 2_000_000_000, 'pid': 7,
            'python_version': '3.13.5', 'counters': {'ticks': 5},
            'threads': [{'name': 'worker', 'ident': 5, 'native_id': 6,
                         'interpreter_id': 2}],
            'functions': [
                {'name': 'a.main', 'module': 'a', 'qualname': 'main',
                 'filename': '/src/a.py', 'first_line': 1,
                 'kind': 'python'},
                {'name': 'time.sleep', 'module': 'time',
                 'qualname': 'sleep', 'filename': '', 'first_line': 0,
                 'kind': 'C'}],
            'frames': {'function': [0, 1, 0], 'line': [3, 0, 4],
                       'column': [0, 0, 0],
                       'instruction_offset': [-1, -1, 8],
                       'opname': [None, None, 'CALL']},
            'stacks': {'parent': [-1, 0, 1, 0], 'frame': [-1, 0, 1, 2]},
            'labels': [
                {'labels': {}, 'task_name': None, 'task_id': None},
                {'labels': {'route': '/'}, 'task_name': 'T', 'task_id': 9}],
            'samples': {
                'stack': [2, 3], 'thread': [0, 0],
                'state': ['waiting', 'gil_wait'], 'labels': [1, 0],
                'gil_holder_stack': [-1, 1], 'gil_holder_thread': [-1, 0],
                'values': {'count': [1, 4], 'cpu_ns': [2, 0],
                           'wall_ns': [3, 5]}}})

    def test_nothing_gets_lost(self):
        rng = random.Random(11)
        for profile in (Builder().profile(), example().profile(),
                        hard_profiles.recursive().profile(),
                        *[random_profile(rng) for _ in range(20)]):
            again = rebuilt(written(profile))
            self.assertEqual(again, profile)
            self.assertEqual(again.stats, profile.stats)

    def test_what_the_program_counted_is_not_in_the_total(self):
        b = Builder().sample('a.f', count=3).sample('a.f', count=100,
                                                    state='custom')
        data = written(b.profile())
        self.assertEqual(data['value_types'][0]['total'], 3)
        self.assertEqual(data['samples']['values']['count'], [3, 100])
        self.assertEqual(data['samples']['state'], ['running', 'custom'])

    def test_hostile_names(self):
        text = _json.encode(hard_profiles.hostile().profile()._tables)
        # Every reader of JSON takes ASCII.
        self.assertTrue(text.isascii())
        names = {row['qualname'] for row in json.loads(text)['functions']}
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
        data = written(example().profile())
        fields = set(data)
        for part in (data['value_types'][0], data['threads'][0],
                     data['functions'][0], data['frames'], data['stacks'],
                     data['labels'][0], data['samples']):
            fields.update(part)
        self.assertEqual(fields - documented, set())
        states = set(STATES)
        self.assertLessEqual(set(data['samples']['state']), states)


if __name__ == '__main__':
    unittest.main()
