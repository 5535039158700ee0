"""Calls of functions that ask a service: of whose line, for which route."""

import asyncio
import os
import sys
import textwrap
import threading
import unittest
from collections import Counter

from test.support import os_helper, script_helper

from profile_sampling import Profile, label, profile

from ..support.sessions import SessionTest

# A driver as the list has it, with a library above it.  Where it is says that
# it is not the program's own.
_DRIVER = '''
class Cursor:
    def execute(self, text):
        return self.send(text)

    def send(self, text):
        return len(text)
'''
_LIBRARY = '''
import pymysql.cursors

def first(text):
    return helper(text, 3)

def helper(text, depth):
    if depth:
        return helper(text, depth - 1)
    return pymysql.cursors.Cursor().execute(text)

class DefaultDialect:
    def do_execute(self, text):
        return first(text)
'''


def tearDownModule():
    asyncio.set_event_loop_policy(None)     # as it was


def write_packages(folder):
    """Return the folder that is to be in sys.path."""
    path = os.path.join(folder, 'site-packages')
    for package, module, text in (
            ('pymysql', 'cursors', _DRIVER),
            ('sqlalchemy', 'orm', _LIBRARY),
            ('sqlalchemy.engine', 'default', _LIBRARY)):
        its_path = os.path.join(path, *package.split('.'))
        os.makedirs(its_path, exist_ok=True)
        open(os.path.join(its_path, '__init__.py'), 'a').close()
        with open(os.path.join(its_path, f'{module}.py'), 'w') as file:
            file.write(text)
    return path


def mine(text, **names):
    """Return what a module of the user's own defines."""
    exec(compile(textwrap.dedent(text), '/srv/shop.py', 'exec'), names)
    return names


def rows_of(found):
    """{(name of the caller, of the callee, route): calls}"""
    sums = Counter()
    for row in found.queries:
        caller = row.caller and row.caller.qualname.rpartition('.')[2]
        sums[caller, row.callee.qualname, row.route] += row.calls
    return dict(sums)


class QueriesTest(SessionTest):

    def setUp(self):
        super().setUp()
        folder = self.enterContext(os_helper.temp_dir())
        before = dict(sys.modules)

        def forget():
            for name in sys.modules.keys() - before.keys():
                if name.partition('.')[0] in ('pymysql', 'sqlalchemy'):
                    del sys.modules[name]
        self.addCleanup(forget)
        sys.path.insert(0, write_packages(folder))
        self.addCleanup(sys.path.pop, 0)

    def test_lines_of_mine(self):
        import sqlalchemy.orm

        shop = mine('''\
            def orders():
                for _ in range(12):
                    first('a')
                first('b')
            ''', first=sqlalchemy.orm.first)
        with profile(calls='queries') as block:
            shop['orders']()
        self.assertEqual(rows_of(block.profile), {
            ('orders', 'Cursor.execute', ''): 13})
        self.assertEqual({row.line: row.calls
                          for row in block.profile.queries}, {3: 12, 4: 1})
        self.assertIsNone(block.profile.calls)

    def test_imported_later(self):
        with profile(calls='queries') as block:
            import sqlalchemy.orm
            sqlalchemy.orm.first('a')
        self.assertEqual([row.calls for row in block.profile.queries], [1])

    def test_outermost_counts(self):
        from sqlalchemy.engine import default

        shop = mine('def orders(): execute("a")',
                    execute=default.DefaultDialect().do_execute)
        with profile(calls='queries') as block:
            shop['orders']()
        self.assertEqual(rows_of(block.profile), {
            ('orders', 'DefaultDialect.do_execute', ''): 1})

    def test_routes(self):
        import sqlalchemy.orm

        handle = mine('''
            def handle(times):
                for _ in range(times):
                    first('a')
            ''', first=sqlalchemy.orm.first)['handle']

        async def task():
            await asyncio.sleep(0)
            await asyncio.to_thread(handle, 5)

        async def serve():
            with label(route='GET /c'):
                await asyncio.create_task(task())
        with profile(calls='queries') as block:
            for route, times in ('GET /a', 3), ('GET /b', 2), ('GET /a', 1):
                with label(route=route, other='x'):
                    handle(times)
            threads = [threading.Thread(target=handle, args=[7])]
            threads[0].start()
            threads[0].join()
            asyncio.run(serve())
        self.assertEqual(rows_of(block.profile), {
            ('handle', 'Cursor.execute', 'GET /a'): 4,
            ('handle', 'Cursor.execute', 'GET /b'): 2,
            ('handle', 'Cursor.execute', 'GET /c'): 5,
            ('handle', 'Cursor.execute', ''): 7})

    def test_nobody_of_mine(self):
        # No line but one that is generated, which is a library's.
        names = {'__name__': 'generated'}
        import sqlalchemy.orm
        names['first'] = sqlalchemy.orm.first
        thread = threading.Thread(target=eval(
            compile('lambda: first("a")', '<generated>', 'eval'), names))
        with profile(calls='queries') as block:
            thread.start()
            thread.join()
        self.assertEqual(rows_of(block.profile), {
            (None, 'Cursor.execute', ''): 1})

    def test_also_with_calls(self):
        import sqlalchemy.orm
        with profile(calls='python') as block:
            for _ in range(4):
                sqlalchemy.orm.first('a')
        self.assertEqual([row.calls for row in block.profile.queries], [4])
        self.assertEqual(sum([
            row.calls for row in block.profile.calls
            if row.callee.qualname == 'Cursor.execute']), 4)

    def test_rest_of_the_program_has_no_events(self):
        import dis

        import sqlalchemy.orm
        import pymysql.cursors

        def instrumented(function):
            return [instruction.opname for instruction in dis.get_instructions(
                        function, adaptive=True)
                    if instruction.opname.startswith('INSTRUMENTED')]
        with profile(calls='queries'):
            sqlalchemy.orm.first('a')
            self.assertEqual(instrumented(sqlalchemy.orm.helper), [])
            self.assertEqual(instrumented(pymysql.cursors.Cursor.execute),
                             ['INSTRUMENTED_RESUME'])
        sqlalchemy.orm.first('a')
        self.assertEqual(instrumented(pymysql.cursors.Cursor.execute), [])

    def test_files_and_processes(self):
        import pathlib
        import subprocess
        with profile(calls='queries') as block:
            pathlib.Path(__file__).read_text()
            subprocess.run([sys.executable, '-c', ''])
        self.assertEqual(
            sorted([row.callee.qualname for row in block.profile.queries]),
            ['Path.open', 'Popen.__init__'])

    def test_saved_and_loaded(self):
        import sqlalchemy.orm
        with profile(calls='queries') as block, label(route='GET /\t\n\\'):
            sqlalchemy.orm.first('a')
        path = os_helper.TESTFN + '.pb.gz'
        self.addCleanup(os_helper.unlink, path)
        block.profile.save(path)
        self.assertEqual(Profile.load(path).queries, block.profile.queries)


class CommandLineTest(unittest.TestCase):

    def run_program(self, option=''):
        folder = self.enterContext(os_helper.temp_cwd())
        packages = write_packages(folder)
        script = script_helper.make_script(
            folder, 'shop', 'import sqlalchemy.orm\n'
            'def orders():\n'
            '    for _ in range(120):\n'
            '        sqlalchemy.orm.first("a")\n'
            'orders()\n')
        script_helper.assert_python_ok(
            '-X', f'sampleprof=wall,out=a.pb.gz{option}', script,
            PYTHONPATH=packages)
        return Profile.load('a.pb.gz')

    def test_on_by_default(self):
        [row] = self.run_program().queries
        self.assertEqual((row.caller.name, row.line, row.calls),
                         ('__main__.orders', 4, 120))

    def test_watch(self):
        # What it calls is part of its own queries.
        found = self.run_program(',watch=sqlalchemy.orm.first,watch=a.b.c')
        self.assertEqual([(row.callee.name, row.calls)
                          for row in found.queries],
                         [('sqlalchemy.orm.first', 120)])

    def test_wrong_watch(self):
        for option, message in (
                ('watch=first', b'with its module'),
                ('watch=a.-', b'with its module'),
                ('calls=off,watch=a.b', b'no calls are counted')):
            status, _, err = script_helper.assert_python_failure(
                '-X', f'sampleprof=wall,{option}', '-c', 'pass')
            self.assertEqual(status, 2)
            self.assertIn(message, err)

    def test_off(self):
        self.assertEqual(self.run_program(',calls=off').queries, ())
