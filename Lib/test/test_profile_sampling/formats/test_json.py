"""Profiles as JSON: all of a profile can be made again from it."""

import json
import pathlib
import random
import re
import unittest

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


def rebuilt(data):
    """Return the profile that a file says, by what is documented of it."""
    b = Builder(**{
        name: data[name] for name in (
            'mode', 'rate_hz', 'depth_frames', 'start_time_ns',
            'duration_ns', 'pid', 'python_version')},
        stats=data['counters'],
        names=('off', 'calls', 'opcodes', 'all').index(data['names']),
        value_types=[(type_['kind'], type_['unit'], type_['adds'],
                      type_['of'])
                     for type_ in data['value_types']])
    for thread in data['threads']:
        b.thread(thread['name'], ident=thread['ident'],
                 native_id=thread['native_id'],
                 interpreter=thread['interpreter_id'],
                 process=thread['process'] and Process(
                     *map(thread['process'].get, Process.__slots__)))
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
        line = data['timeline']
        self.assertEqual(line['time_ns'], list(profile.timeline.time_ns))
        self.assertEqual(sum(line['wall_ns']), second)
        part = written(profile.between(second, 2 * second))
        self.assertEqual(part['span_ns'], [second, 2 * second])
        self.assertEqual(part['whole_cpu_ns'], 7)

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
