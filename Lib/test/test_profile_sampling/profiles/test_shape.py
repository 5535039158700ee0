"""Stacks with frames left out: folded, collapsed, above a root."""

import os
import tempfile
import unittest

from profile_sampling import Profile
from profile_sampling._data import origins, select, shape
from profile_sampling._data.by_site import Sites
from profile_sampling._data.on_clocks import on_clocks
from profile_sampling._data.values import Function

from ..support.builders import Builder
from ..support.timed import with_records


def cum(tables):
    return {row.function.name: row.cum_wall_ns
            for row in Profile._from_tables(tables).functions()}


class ShapeTest(unittest.TestCase):

    def shaped(self, builder, **asked):
        tables = builder.profile()._tables
        shaped = shape.shaped(tables, **asked)
        self.assertEqual(shaped.totals, tables.totals)
        return cum(shaped)

    def stacks(self):
        b = Builder()
        b.sample('a.main a.f a.g C:c.sort a.key', wall_ns=1)
        b.sample('a.main a.g a.f [waiting]', wall_ns=10)
        b.sample('a.main', wall_ns=100)
        return b

    def test_all_at_once(self):
        self.assertEqual(
            self.shaped(self.stacks(), hide=['key', r'a\.f'], root=[r'a\.f'],
                        collapse=['sort'], fold=['pseudo']),
            {'a.g': 1, 'c.sort': 1})

    def test_libraries(self):
        b = Builder()
        mine = b.function('m', 'f', '/home/me/m.py')
        first, inner = [b.function('json', name, '/lib/python3.13/json/x.py')
                        for name in ('loads', 'scan')]
        c = b.function('_json', 'scan', kind=1)
        blocked = b.function(None, '[waiting]', '', kind=3)
        b.sample([mine, first, inner, c, inner], wall_ns=1)
        b.sample([mine, first, inner, mine, inner, blocked], wall_ns=10)
        self.assertEqual(self.shaped(b, fold=['stdlib']), {
            'm.f': 11, 'json.loads': 11, 'json.scan': 10, '[waiting]': 10})
        self.assertEqual(self.shaped(b, fold=['packages']), self.shaped(b))

    def waits(self):
        """An idle wait, and one that is the same without its frames."""
        b = Builder(duration_ns=1000)
        loop = b.function('asyncio.base_events', 'BaseEventLoop._run_once',
                          '/lib/python3.13/asyncio/base_events.py')
        select = b.function('selectors', 'E.select',
                            '/lib/python3.13/selectors.py')
        own = b.function('asyncio.base_events', 'BaseEventLoop.run_forever',
                         '/lib/python3.13/asyncio/base_events.py')
        blocked = b.function(None, '[waiting]', '', kind=3)
        b.sample(['a.main:1', own, loop, select, blocked], wall_ns=600,
                 state='waiting')
        b.sample(['a.main:1', own, 'a.f:2', blocked], wall_ns=30,
                 state='waiting')
        b.sample(['a.main:1', own, own, blocked], wall_ns=10,
                 state='waiting')
        b.sample('a.main:1', wall_ns=100)
        return b.profile()

    def test_what_is_idle_stays_idle(self):
        profile = self.waits()
        for asked in ({'fold': ['stdlib']}, {'hide': ['select', 'run_once']},
                      {'root': [r'a\.f']}, {'collapse': ['run_forever']},
                      {'fold': ['pseudo'], 'hide': ['E|asyncio|f']}):
            tables = shape.shaped(profile._tables, **asked)
            with self.subTest(**asked):
                sites = Sites(tables)
                self.assertEqual((sites.idle, sites.busy), (600, 140))
                again = shape.shaped(tables, hide=['main'])
                self.assertEqual(Sites(again).idle, 600)
                for part in (tables.by_value('samples').by_value('wall'),
                             select.where(tables, 'state', 'waiting|idle'),
                             on_clocks(tables)):
                    self.assertEqual(Sites(part).idle, 600)
                part = select.grouped(tables, 'thread')
                self.assertEqual([Sites(one).idle for one in part.values()],
                                 [600])

    def test_moments_of_what_is_idle(self):
        profile = with_records(self.waits(), [
            (700, 0, 1, 0, 600), (740, 1, 1, 0, 30), (750, 2, 1, 0, 10)])
        hidden = profile.hide('asyncio|selectors|a.f')
        self.assertEqual(
            [hidden.samples[row].wall_ns for row in hidden.timeline.sample],
            [600, 40, 40])
        self.assertEqual(Sites(hidden.between(0, 800)._tables).idle, 600)


class OriginsTest(unittest.TestCase):

    def test_places(self):
        for module, filename, expected in (
                ('m', '/home/me/m.py', 'mine'),
                ('m', '/lib/python3.13/site-packages/m.py', 'packages'),
                ('m', '/usr/lib/python3/dist-packages/m.py', 'packages'),
                ('m', '/usr/lib/python3.13/m.py', 'stdlib'),
                ('m', r'C:\Python313\Lib\m.py', 'stdlib'),
                ('m', '<frozen importlib._bootstrap>', 'stdlib'),
                # Where a module is that is known, others are, too.
                ('json.decoder', '/src/Lib/json/decoder.py', 'stdlib'),
                ('re', '/src/Lib/re/__init__.py', 'stdlib'),
                ('m', '/src/Lib/m.py', 'stdlib'),
                # A file of that name elsewhere says nothing.
                ('enum', '/site-packages/enum.py', 'packages'),
                ('enum', '/home/me/other.py', 'mine'),
                # Programs that came with a package, and others.
                ('__main__', '/venv/bin/uvicorn', 'packages'),
                ('__main__', '/venv/bin/mine.py', 'mine'),
                ('__main__', '/home/me/bin/tool', 'mine'),
                ('__main__', r'C:\v\Scripts\x.exe\__main__.py', 'packages'),
                # Code without a file: of -c, and of what generates some.
                ('__main__', '<string>', 'mine'),
                ('app', '<string>', 'stdlib'),
                ('namedtuple_P', '<string>', 'stdlib'),
                ('lib', '<internals>', 'packages')):
            with self.subTest(module=module, filename=filename):
                functions = [
                    Function(*place, 1, 'python') for place in (
                        (module, 'f', filename),
                        ('re', 'g', '/src/Lib/re/__init__.py'),
                        ('app', 'h', '/home/me/app.py'),
                        ('lib', 'i', '/venv/lib/python3.13/site-packages/l'))]
                found = origins.decide(functions, origins.guessed(functions))
                self.assertEqual(
                    [found[origins.code_of(function)]
                     for function in functions],
                    [expected, 'stdlib', 'mine', 'packages'])

    def test_where_the_interpreter_is(self):
        # A folder that looks like a library is none if that is known.
        for filename, expected in (
                ('/home/me/python311/lib/app.py', 'mine'),
                ('/home/me/lib/python3.9/app.py', 'mine'),
                ('/opt/py/Lib/json/decoder.py', 'stdlib'),
                ('/opt/py/Lib/site-packages/x.py', 'packages'),
                ('/opt/venv/bin/uvicorn', 'packages'),
                ('/opt/venv/bin/mine.py', 'mine')):
            with self.subTest(filename):
                function = Function('m', 'f', filename, 1, 'python')
                self.assertEqual(origins.decide(
                    [function], origins.Installed(
                        ('/opt/py/Lib/',), ('/opt/venv/bin/',), True)),
                    {filename: expected})

    def test_packages_of_pip_install_target(self):
        """In a folder of sys.path, which may have a program of mine, too."""
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(f'{folder}/lib-1.0.dist-info')
            with open(f'{folder}/lib-1.0.dist-info/RECORD', 'w') as file:
                file.write('../../bin/lib,,\nlib/__init__.py,sha256=x,9\n'
                           'lib-1.0.dist-info/RECORD,,\nsingle.py,,\n')
            installed = origins.Installed((), (), True, (folder, '/none', 3))
            for name, expected in (
                    ('lib/a/b.py', 'packages'), ('single.py', 'packages'),
                    ('handler.py', 'mine'), ('library.py', 'mine')):
                with self.subTest(name):
                    path = f'{folder}/{name}'
                    self.assertEqual(origins.decide(
                        [Function('m', 'f', path, 1, 'python')], installed),
                        {path: expected})

    def test_here(self):
        self.assertTrue(os.__file__.startswith(origins.HERE.folders[0]))

    def test_what_is_not_python(self):
        b = Builder().sample('[waiting]', wall_ns=1)
        self.assertEqual(origins.of_functions(b.profile()._tables), [None])
