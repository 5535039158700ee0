"""Files of speedscope: the format's own schema, and its own importer."""

import json
import os
import tempfile
import unittest

from profile_sampling._formats import speedscope as _speedscope

from ..support import hard_profiles
from ..support.builders import Builder, example
from ..support.speedscope import (
    check_schema, imported, needs_node, needs_speedscope)
from ..support.timed import with_records


def written(builder):
    return json.loads(_speedscope.encode(builder.profile()._tables))


def stacks(file, profile):
    """{names of a stack: weight}"""
    names = [frame['name'] for frame in file['shared']['frames']]
    return {tuple([names[frame] for frame in stack]): weight
            for stack, weight in zip(profile['samples'], profile['weights'],
                                     strict=True)}


def with_moments():
    """f, g, nothing, f; and 5 ns of g at a moment that is not known."""
    b = Builder()
    b.sample('a.f:1', count=2, wall_ns=30)
    b.sample('a.g:1', count=1, wall_ns=25)
    return with_records(b.profile(), [
        (10, 0, 1, 0, 10), (30, 1, 1, 0, 20), (80, 0, 1, 0, 20)])


class ContentTest(unittest.TestCase):

    def test_no_moments_of_tasks(self):
        b = Builder(mode='task')
        b.sample('a.f:1', count=2, wall_ns=30, task_ns=30)
        b.sample('a.g:1', count=1, wall_ns=25, task_ns=20,
                 thread=b.thread('worker'))
        profile = with_records(b.profile(), [(30, 0, 1, 0, 30)])
        file = json.loads(_speedscope.encode(profile._tables))
        self.assertEqual([part['weights'] for part in file['profiles']
                          if part['name'].startswith('life of tasks')],
                         [[30, 20], [30], [20]])

    def test_moments(self):
        file = json.loads(_speedscope.encode(with_moments()._tables))
        names = [frame['name'] for frame in file['shared']['frames']]
        *_, thread = file['profiles']
        self.assertEqual(
            [([names[frame] for frame in stack], weight) for stack, weight
             in zip(thread['samples'], thread['weights'], strict=True)],
            [(['a.f'], 10), (['a.g'], 20), ([], 30), (['a.f'], 20),
             (['a.g'], 5)])

    def test_known_answer(self):
        b = Builder(pid=7, python_version='3.13.5')
        b.sample('a.main:1 a.f:2', wall_ns=5, cpu_ns=3, count=2)
        b.sample('a.main:4 a.f:9', wall_ns=10)
        b.sample('a.main:1 C:time.sleep [waiting]', wall_ns=7,
                 state='waiting')
        b.sample('', wall_ns=1, state='unsampled')
        self.assertEqual(written(b), {
            '$schema': 'https://www.speedscope.app/file-format-schema.json',
            'name': 'wall profile of Python 3.13.5, process 7',
            'exporter': 'profile_sampling', 'activeProfileIndex': 0,
            'shared': {'frames': [
                {'name': '[waiting]'},
                {'name': 'a.f', 'file': '/src/a.py', 'line': 1},
                {'name': 'a.main', 'file': '/src/a.py', 'line': 1},
                {'name': 'time.sleep'}, {'name': '[no frames]'}]},
            'profiles': [
                {'type': 'sampled', 'name': 'wall time, all threads',
                 'unit': 'nanoseconds', 'startValue': 0, 'endValue': 23,
                 'samples': [[4], [2, 1], [2, 3, 0]],
                 'weights': [1, 15, 7]},
                {'type': 'sampled', 'name': 'samples, all threads',
                 'unit': 'none', 'startValue': 0, 'endValue': 5,
                 'samples': [[4], [2, 1], [2, 3, 0]],
                 'weights': [1, 3, 1]},
                {'type': 'sampled', 'name': 'CPU time, all threads',
                 'unit': 'nanoseconds', 'startValue': 0, 'endValue': 3,
                 'samples': [[2, 1]], 'weights': [3]}]})

    def test_threads(self):
        file = written(example())
        self.assertEqual(
            [(part['name'], part['endValue']) for part
             in file['profiles'][3:]],
            [('wall time, MainThread (4000)', 1_990_000_001),
             ('wall time, thread (4001)', 61_001_999)])

    def test_what_the_program_counted_is_apart(self):
        b = Builder().sample('a.f', count=3, wall_ns=9)
        b.sample('a.g', count=1_000, state='custom')
        file = written(b)
        found = {part['name']: stacks(file, part)
                 for part in file['profiles']}
        self.assertEqual(found['samples, all threads'], {('a.f',): 3})
        self.assertEqual(found['counted by sample(), all threads'],
                         {('a.g',): 1_000})

    def test_other_values(self):
        b = Builder(mode='alloc', value_types=[
            ('samples', 'count'), ('alloc', 'bytes'), ('power', 'watts')])
        b.sample('a.f', values=(3, 4096, 5))
        self.assertEqual([(part['name'], part['unit'], part['weights'])
                          for part in written(b)['profiles']],
                         [('alloc, all threads', 'bytes', [4096]),
                          ('samples, all threads', 'none', [3]),
                          ('power, all threads', 'none', [5])])

    def test_hostile_names(self):
        file = written(hard_profiles.hostile())
        names = [frame['name'] for frame in file['shared']['frames']]
        names += [part['name'] for part in file['profiles']]
        self.assertIn('[a\\nb]', names)
        self.assertIn('[\\udc80]', names)
        for name in names:
            self.assertTrue(name.isprintable() and name, name)


@needs_speedscope
class SchemaTest(unittest.TestCase):

    def test_schema(self):
        for make in (Builder, example, hard_profiles.recursive,
                     hard_profiles.hostile, hard_profiles.deep):
            with self.subTest(make.__name__):
                check_schema(written(make()))
        check_schema(json.loads(_speedscope.encode(with_moments()._tables)))


@needs_speedscope
@needs_node
class ImporterTest(unittest.TestCase):

    def imported(self, builder):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, 'p.speedscope.json')
            builder.profile().save(path)
            return imported(path)

    def test_self_and_cumulative_times(self):
        for builder in example(), hard_profiles.recursive():
            profile = builder.profile()
            group = self.imported(builder)
            self.assertEqual(group['shown'], 0)
            for part, value in zip(group['profiles'],
                                   ('wall_ns', 'count', 'cpu_ns')):
                self.assertEqual(part['total'], profile.total(value))
                found = {name: (self_, cum) for name, _, _, self_, cum
                         in part['frames'] if name != '[no frames]'}
                expected = {
                    row.function.name: (getattr(row, f'self_{value}'),
                                        getattr(row, f'cum_{value}'))
                    for row in profile.functions()
                    if getattr(row, f'cum_{value}')}
                self.assertEqual(found, expected, part['name'])

    def test_places(self):
        b = Builder()
        b.sample([b.function('a', 'f', '/a b.py', 12)], wall_ns=3)
        part = self.imported(b)['profiles'][0]
        self.assertEqual(part['frames'], [['a.f', '/a b.py', 12, 3, 3]])

    def test_hard_profiles(self):
        # Its importer calls itself per frame: 5,000 are too many for it.
        for builder in (Builder(), hard_profiles.hostile(),
                        hard_profiles.deep(2000)):
            with self.subTest(builder=builder):
                part = self.imported(builder)['profiles'][0]
                self.assertEqual(part['total'],
                                 builder.profile().total_wall_ns)
