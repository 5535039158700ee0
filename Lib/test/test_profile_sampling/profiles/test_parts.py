"""Parts of a profile: which samples they have, and that none is lost."""

import pathlib
import random
import re
import time
import unittest


from ..support import validator
from ..support.builders import Builder, example
from ..support.random_profiles import contents, random_profile, sum_of

SEEDS = range(12)


def small():
    """One sample for each thing that can be asked for."""
    b = Builder(pid=7)
    main, worker = b.thread('MainThread'), b.thread('worker', native_id=99)
    b.sample('app.main:1 app.view:2', wall_ns=1, thread=main,
             labels={'route': '/a'})
    b.sample('app.main:1 db.query:5 C:time.sleep', wall_ns=2, thread=main,
             state='waiting', labels={'route': '/b', 'shard': '1'})
    b.sample('app.main:1 db.query:5', wall_ns=4, thread=worker, state='gc')
    b.sample('app.main:3', wall_ns=8, thread=worker, task=('T1', 5))
    b.sample('', wall_ns=16, thread=worker, state='unsampled')
    b.sample('app.spin:9', wall_ns=32, thread=worker, state='gil_wait',
             holder=(main, 'db.query:5'))
    return b.profile()


class PartsTest(unittest.TestCase):

    def assertParts(self, whole, *parts):
        """The parts are valid, and add up to the whole."""
        for part in parts:
            validator.check_profile(part)
        self.assertEqual(sum_of(map(contents, parts)), contents(whole))


class FilterTest(PartsTest):

    def test_weights(self):
        whole = small()
        query = next(row.function for row in whole.functions()
                     if row.function.name == 'db.query')
        for name, expected in {
                'function': [
                    ('db.query', 6), ('query', 6), ('time.sleep', 2),
                    ('quer', 0), (re.compile('quer|view'), 7), (query, 6)],
                # What is not Python is in no file.
                'file': [
                    ('/src/db.py', 6), (pathlib.Path('/src/db.py'), 6),
                    (re.compile(r'/db\.py$'), 6), ('db.py', 0), ('', 0),
                    (re.compile(''), 47)],
                'state': [
                    ('waiting', 2), (['waiting', 'gc'], 6),
                    ({'waiting', 'gc'}, 6), ([], 0), ('gil_wait', 32),
                    ('GIL wait', 32), ('gil wait', 32)],
                'thread': [
                    ('MainThread', 3), (99, 60), (whole.threads[1], 60),
                    ('nobody', 0)],
                'task': [('T1', 8), ('T2', 0)],
                'labels': [
                    ({'route': '/b'}, 2), ({'route': '/b', 'shard': '1'}, 2),
                    ({'route': '/a', 'shard': '1'}, 0),
                    ({'route': '/a', 'shard': None}, 1),
                    ({'route': '/c'}, 0), ({}, 63)]}.items():
            for wanted, ns in expected:
                with self.subTest(name, wanted=wanted):
                    self.assertEqual(
                        whole.filter(**{name: wanted}).total_wall_ns, ns)
        # All have to match; function and file are of one frame.
        for criteria, ns in (
                ({'function': 'query', 'file': '/src/db.py'}, 6),
                ({'function': 'query', 'file': '/src/app.py'}, 0),
                ({'function': 'db.query', 'thread': 'worker'}, 4),
                ({'function': 'db.query', 'state': 'running'}, 0)):
            self.assertEqual(whole.filter(**criteria).total_wall_ns, ns)

    def test_what_is_no_criterion(self):
        for criteria, error, message in (
                ({'state': 'runing'}, ValueError, "'runing'.*running"),
                ({'state': ['gc', 'GCC']}, ValueError, "'GCC'"),
                ({'state': 3}, TypeError, 'not 3'),
                ({'state': [3]}, ValueError, 'no state 3'),
                ({'function': 3}, TypeError, 'function must be'),
                ({'function': re.compile(b'x')}, TypeError, 'function must'),
                ({'file': 3}, TypeError, 'file must be'),
                ({'file': re.compile(b'x')}, TypeError, 'file must be'),
                ({'thread': 1.5}, TypeError, 'thread must be'),
                ({'thread': True}, TypeError, 'thread must be'),
                ({'task': 11}, TypeError, 'task must be'),
                ({'labels': 'route'}, TypeError, 'labels must be'),
                ({'labels': 5}, TypeError, 'labels must be'),
                ({'labels': {'route': 5}}, TypeError, "not 5, as for 'route"),
                ({'labels': {'rout': '/a'}}, ValueError,
                 "'rout'.*route, shard")):
            with self.subTest(criteria=criteria), \
                    self.assertRaisesRegex(error, message):
                small().filter(**criteria)

    def test_nothing_more_than_the_samples_use(self):
        part = small().filter(thread='MainThread', state='waiting')
        self.assertEqual(
            {row.function.name for row in part.functions()},
            {'app.main', 'db.query', 'time.sleep'})
        self.assertEqual([thread.name for thread in part.threads],
                         ['MainThread'])
        self.assertEqual(part.label_keys, ('route', 'shard'))
        self.assertLess(len(part._tables.nodes), len(small()._tables.nodes))

    def test_facts_are_those_of_the_session(self):
        whole = example(pid=3, mode='cpu').profile()
        part = whole.filter(state='waiting')
        for name in ('mode', 'rate_hz', 'depth_frames', 'names', 'pid',
                     'start_time_ns', 'duration_ns', 'python_version',
                     'stats', 'value_types'):
            with self.subTest(name):
                self.assertEqual(getattr(part, name), getattr(whole, name))

    def test_an_empty_part(self):
        part = small().filter(function='nobody')
        validator.check_profile(part)
        self.assertEqual((len(part.samples), part.threads, part.functions()),
                         (0, (), []))

    def test_matches_and_rest_are_the_whole(self):
        # By hand: which samples match, looked at one by one.
        pattern = re.compile('f$')
        for seed in SEEDS:
            whole = random_profile(random.Random(seed))
            for criteria, matches in (
                    ({'function': 'a.f'}, lambda s: any(
                        [f.function.name == 'a.f' for f in s.stack])),
                    ({'function': pattern}, lambda s: any(
                        [pattern.search(f.function.name) for f in s.stack])),
                    ({'file': '/src/b.py'}, lambda s: any(
                        [f.function.filename == '/src/b.py'
                         for f in s.stack])),
                    ({'state': ['running', 'gil_wait']},
                     lambda s: s.state in ('running', 'gil_wait')),
                    ({'thread': 'worker'},
                     lambda s: s.thread.name == 'worker'),
                    ({'task': 'T1'}, lambda s: s.task_name == 'T1'),
                    ({'labels': {'route': '/x', 'shard': None}},
                     lambda s: s.labels.get('route') == '/x'
                     and 'shard' not in s.labels)):
                with self.subTest(seed=seed, criteria=criteria):
                    part = whole.filter(**criteria)
                    validator.check_profile(part)
                    self.assertEqual(
                        sum([sample.values[2] for sample in whole.samples
                             if matches(sample)]), part.total('wall_ns'))
                    self.assertTrue(all(map(matches, part.samples)))
                    self.assertLessEqual(contents(part).items(),
                                         contents(whole).items())


class FocusTest(PartsTest):

    def test_focus_and_ignore(self):
        for pattern, expected in (
                ('quer', 6), ('^db[.]', 6), ('/db', 6), ('sleep', 2),
                (re.compile('QUERY', re.IGNORECASE), 6), ('nobody', 0),
                ('', 47)):
            with self.subTest(pattern=pattern):
                whole = small()
                focus, ignore = whole.focus(pattern), whole.ignore(pattern)
                self.assertEqual(focus.total_wall_ns, expected)
                self.assertParts(whole, focus, ignore)
                self.assertEqual(focus + ignore, whole)

    def test_what_is_no_pattern(self):
        for method in 'focus', 'ignore', 'hide':
            method = getattr(small(), method)
            with self.assertRaisesRegex(ValueError, r"'\(' is no regular"):
                method('(')
            for wrong in 5, None, b'x', re.compile(b'x'):
                with self.assertRaisesRegex(TypeError, 'pattern must be'):
                    method(wrong)


class HideTest(PartsTest):

    def stacks(self, profile):
        return {tuple([frame.function.name
                       for frame in reversed(sample.stack)]):
                sample.wall_ns for sample in profile.samples}

    def test_the_weight_goes_to_the_caller(self):
        hidden = small().hide('db[.]')
        self.assertEqual(self.stacks(hidden), {
            ('app.main', 'app.view'): 1, ('app.main', 'time.sleep'): 2,
            ('app.main',): 8, (): 16, ('app.spin',): 32} | {
                # In another state than the other at that place.
                ('app.main',): 8})
        main = next(row for row in hidden.functions()
                    if row.function.name == 'app.main')
        self.assertEqual((main.self_wall_ns, main.cum_wall_ns), (12, 15))

    def test_all_is_hidden(self):
        hidden = small().hide('')
        validator.check_profile(hidden)
        self.assertEqual(set(self.stacks(hidden)), {()})
        self.assertEqual(hidden.total_wall_ns, 63)

    def test_deep_recursion(self):
        b = Builder()
        b.sample('a.f:1 ' * 16_384 + 'b.g:1', wall_ns=3)
        sample, = b.profile().hide('a.f').samples
        self.assertEqual([f.function.name for f in sample.stack], ['b.g'])

    def test_totals_stay(self):
        for seed in SEEDS:
            whole = random_profile(random.Random(seed))
            for pattern in 'f', 'sleep|waiting', '/a', 'nobody':
                with self.subTest(seed=seed, pattern=pattern):
                    hidden = whole.hide(pattern)
                    validator.check_profile(hidden)
                    self.assertEqual(
                        [hidden.total(t.name) for t in hidden.value_types],
                        [whole.total(t.name) for t in whole.value_types])
                    # What is left has the weights it had.
                    left = {row.function: row.cum_values
                            for row in hidden.functions()}
                    self.assertEqual(left, {
                        row.function: row.cum_values
                        for row in whole.functions() if not (
                            re.search(pattern, row.function.name)
                            or re.search(pattern, row.function.filename))})


class ShapeTest(PartsTest):
    """What report has as --fold, --collapse, --root and --where."""

    def stacks(self, profile):
        return {tuple([frame.function.name for frame in sample.stack])
                for sample in profile.samples}

    def test_fold(self):
        whole = small()
        self.assertIn(('time.sleep', 'db.query', 'app.main'),
                      self.stacks(whole))
        folded = whole.fold('C')
        self.assertNotIn('time.sleep', str(self.stacks(folded)))
        self.assertEqual(folded.total_wall_ns, whole.total_wall_ns)
        with self.assertRaisesRegex(ValueError, "fold 'c'.*operators"):
            whole.fold('c')

    def test_collapse(self):
        self.assertEqual(self.stacks(small().collapse('^app.main$')),
                         {('app.main',), ('app.spin',), ()})

    def test_root(self):
        self.assertEqual(
            self.stacks(small().root('^db')),
            {('time.sleep', 'db.query'), ('db.query',), ()})

    def test_where(self):
        for key, pattern, expected in (
                ('route', '^/[ab]$', 3), ('thread', 'work', 60),
                ('task', 'T1', 8), ('state', 'gc|waiting', 6),
                ('file', 'db', 6)):
            with self.subTest(key):
                self.assertEqual(small().where(key, pattern).total_wall_ns,
                                 expected)
        with self.assertRaisesRegex(ValueError, "has the label 'rout'"):
            small().where('rout', '/')


class GroupTest(PartsTest):

    def test_keys(self):
        whole = small()
        for key, expected in (
                ('state', {'gil_wait': 32, 'unsampled': 16, 'running': 9,
                           'gc': 4, 'waiting': 2}),
                ('task', {None: 55, 'T1': 8}),
                ('file', {'/src/app.py': 41, None: 16, '/src/db.py': 6}),
                ('route', {None: 60, '/b': 2, '/a': 1}),
                ('shard', {None: 61, '1': 2})):
            with self.subTest(key):
                groups = whole.group_by(key)
                self.assertEqual({value: part.total_wall_ns for value, part
                                  in groups.items()}, expected)
                # The most expensive first.
                self.assertEqual(list(groups), list(expected))
                self.assertParts(whole, *groups.values())

    def test_threads(self):
        whole = small()
        groups = whole.group_by('thread')
        self.assertEqual(list(groups), list(reversed(whole.threads)))
        for thread, part in groups.items():
            self.assertEqual(part.threads[0], thread)

    def test_functions_are_those_at_the_leaf(self):
        whole = small()
        groups = whole.group_by('function')
        self.assertEqual(
            {function and function.name: part.total_wall_ns
             for function, part in groups.items()},
            {'app.spin': 32, None: 16, 'app.main': 8, 'db.query': 4,
             'time.sleep': 2, 'app.view': 1})
        for row in whole.functions():
            if row.self_wall_ns:
                self.assertEqual(groups[row.function].total_wall_ns,
                                 row.self_wall_ns)

    def test_many_groups(self):
        # The time grows as they do: four times as many took 16 times as long.
        def seconds(groups):
            b = Builder()
            for number in range(groups):
                b.sample(f'a.f{number}:1 a.g:{number + 1}', wall_ns=1,
                         labels={'test': str(number)})
            profile = b.profile()
            begin = time.thread_time()
            self.assertEqual(len(profile.group_by('test')), groups)
            return time.thread_time() - begin

        seconds(10)
        self.assertLess(seconds(2000), 8 * max(seconds(500), 0.01))

    def test_unknown_keys(self):
        for key in 'stat', '':
            with self.subTest(key=key), self.assertRaisesRegex(
                    ValueError, 'thread, state, file, pid, route, shard, task'):
                small().group_by(key)

    def test_labels_with_names_of_other_keys(self):
        b = Builder()
        b.sample('app.f:1', wall_ns=1, labels={
            'thread': 'a', 'file': 'b', 'task': 'c', 'label:task': 'd'},
            task=('T1', 1))
        profile = b.profile()
        for key, value in (('thread', profile.threads[0]),
                           ('file', '/src/app.py'), ('task', 'T1'),
                           ('label:thread', 'a'),
                           ('label:file', 'b'), ('label:task', 'c'),
                           ('label:label:task', 'd')):
            with self.subTest(key=key):
                self.assertEqual(list(profile.group_by(key)), [value])
        with self.assertRaisesRegex(ValueError, (
                'thread, state, file, pid, label:file, label:label:task, '
                'label:task, label:thread, task$')):
            profile.group_by('nix')

    def test_empty(self):
        self.assertEqual(Builder().profile().group_by('thread'), {})

    def test_together_they_are_the_whole(self):
        for seed in SEEDS:
            whole = random_profile(random.Random(seed))
            for key in ('thread', 'state', 'task', 'function', 'file',
                        'route', 'shard'):
                with self.subTest(seed=seed, key=key):
                    parts = whole.group_by(key).values()
                    self.assertParts(whole, *parts)
                    self.assertEqual(sum(parts), whole)
