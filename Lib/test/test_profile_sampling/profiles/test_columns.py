"""Profiles as columns, for libraries that compute with tables."""

import random
import unittest

from ..support.builders import Builder
from ..support.random_profiles import random_profile

TABLES = ('samples', 'functions', 'lines', 'instructions', 'labels',
          'threads', 'states', 'gil_holders')


class ColumnsTest(unittest.TestCase):

    def small(self):
        b = Builder(names=3, pid=7)
        main = b.thread('MainThread', ident=5, native_id=6)
        b.thread('idle', ident=7, native_id=8, interpreter=1)
        b.sample('a.f:3@CALL+8 C:time.sleep', count=1, cpu_ns=2, wall_ns=4,
                 state='waiting', labels={'route': '/x'}, task=('T', 9))
        b.sample('', count=1, wall_ns=8, state='unsampled')
        b.sample('a.f:4@CALL+20', count=1, wall_ns=16, state='gil_wait',
                 holder=(main, 'a.g:7 C:time.sleep'))
        return b.profile()

    def test_samples(self):
        self.assertEqual(self.small().columns('samples'), {
            'stack': [('time.sleep', 'a.f'), (), ('a.f',)],
            'function': ['time.sleep', None, 'a.f'],
            'kind': ['C', None, 'python'], 'file': ['', None, '/src/a.py'],
            'first_line': [0, None, 1], 'line': [0, 0, 4],
            'thread': ['MainThread'] * 3, 'thread_id': [5] * 3,
            'native_id': [6] * 3, 'interpreter_id': [0] * 3,
            'pid': [7] * 3,
            'state': ['waiting', 'unsampled', 'gil_wait'],
            'task_name': ['T', None, None], 'task_id': [9, None, None],
            'gil_holder': [None, None, 'a.g (time.sleep)'],
            'label_route': ['/x', None, None],
            'count': [1, 1, 1], 'cpu_ns': [2, 0, 0],
            'wall_ns': [4, 8, 16]})

    def test_functions(self):
        self.assertEqual(self.small().columns('functions'), {
            'function': ['a.f', 'time.sleep'], 'kind': ['python', 'C'],
            'file': ['/src/a.py', ''], 'first_line': [1, 0],
            'self_count': [1, 1], 'self_cpu_ns': [0, 2],
            'self_wall_ns': [16, 4], 'cum_count': [2, 1],
            'cum_cpu_ns': [2, 2], 'cum_wall_ns': [20, 4]})

    def test_labels(self):
        self.assertEqual(self.small().columns('labels'), {
            'key': ['route'] * 2 + ['task'] * 2,
            'value': [None, '/x', None, 'T'], 'count': [2, 1, 2, 1],
            'cpu_ns': [0, 2, 0, 2], 'wall_ns': [24, 4, 24, 4]})

    def test_threads_and_states(self):
        self.assertEqual(self.small().columns('threads'), {
            'thread': ['MainThread', 'idle'], 'thread_id': [5, 7],
            'native_id': [6, 8], 'interpreter_id': [0, 1],
            'pid': [7, 7], 'count': [3, 0],
            'cpu_ns': [2, 0], 'wall_ns': [28, 0]})
        self.assertEqual(self.small().columns('states'), {
            'state': ['waiting', 'gil_wait', 'unsampled'],
            'count': [1, 1, 1], 'cpu_ns': [2, 0, 0], 'wall_ns': [4, 16, 8]})

    def test_gil_holders(self):
        columns = self.small().columns('gil_holders')
        self.assertEqual(
            {name: column[0] for name, column in columns.items()},
            {'thread': 'MainThread', 'thread_id': 5, 'native_id': 6,
             'interpreter_id': 0, 'pid': 7,
             'function': 'a.f', 'kind': 'python',
             'file': '/src/a.py', 'first_line': 1, 'line': 4,
             'holder_thread': 'MainThread', 'holder_thread_id': 5,
             'holder_native_id': 6, 'holder_interpreter_id': 0,
             'holder_pid': 7,
             'holder_function': 'a.g', 'holder_kind': 'python',
             'holder_file': '/src/a.py', 'holder_first_line': 1,
             'holder_line': 7, 'holder_callee': 'time.sleep',
             'count': 1, 'cpu_ns': 0, 'wall_ns': 16})

    def test_of_an_empty_profile(self):
        for what in TABLES:
            with self.subTest(what):
                columns = Builder().profile().columns(what)
                self.assertIn(
                    'self_wall_ns' if what in ('functions', 'lines',
                                               'instructions') else 'wall_ns',
                    columns)
                self.assertEqual([*columns.values()], [[]] * len(columns))

    def test_lengths_and_totals(self):
        for seed in range(12):
            profile = random_profile(random.Random(seed))
            for what in TABLES:
                with self.subTest(seed=seed, what=what):
                    columns = profile.columns(what)
                    lengths = {len(column) for column in columns.values()}
                    self.assertEqual(len(lengths), 1)
            for what in 'samples', 'threads', 'states':
                columns = profile.columns(what, idle=True)
                for value_type in profile.value_types:
                    self.assertEqual(
                        sum(columns[value_type.name]),
                        sum(profile.columns('samples')[value_type.name]))
