"""Options of python -m profile_sampling report: what each leads to."""

import base64
import contextlib
import io
import json
import os
import pty
import re
import subprocess
import sys
import tempfile
import unittest

from profile_sampling import Profile
from profile_sampling._cli.main import main

from ..support.builders import Builder, example
from ..support.page_documents import Document


def mixed(b):
    """Add what programs do: their own code, libraries below it, an import,
    and a library that nothing of theirs has called."""
    packages = '/venv/lib/python3.13/site-packages/'
    view = b.function('shop', 'view')
    query, load, worker = [
        b.function(module, name, packages + 'x.py') for module, name in (
            ('orm.query', 'Query.all'), ('orm.engine', 'load'),
            ('pool', 'work'))]
    to_json = b.function('json', 'dumps', '/usr/lib/python3.13/json/x.py')
    importing = b.function('importlib._bootstrap', '_find_and_load',
                           '<frozen importlib._bootstrap>')
    for stack, ms in (
            ([(view, 7), (query, 1), (load, 2), 'C:db.Cursor.fetchall'], 600),
            ([(view, 7), (query, 3)], 200),
            ([(view, 8), (to_json, 3), 'C:_json.encode'], 90),
            ([(view, 8)], 10),
            ([(view, 2), (importing, 4), (load, 9)], 50),
            ([(view, 2), (importing, 4), (view, 1)], 2),
            ([(worker, 5), 'C:db.ping'], 40)):
        b.sample(stack, wall_ns=ms * 1_000_000, count=ms)
    return b


class ReportCase(unittest.TestCase):
    """A test that has a profile, p.pb.gz, in a directory of its own."""

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.enterContext(contextlib.chdir(directory.name))
        self.save('p.pb.gz', example(pid=77).sample(
            'app.view:9', wall_ns=10_000_000, labels={'route': '/a'},
            task=('Task-1', 1)))

    def save(self, name, builder):
        builder.profile().save(name)

    def report(self, *arguments, command='report'):
        """Return (status, stdout, stderr)."""
        streams = [io.TextIOWrapper(io.BytesIO(), 'utf-8', newline='\n')
                   for _ in range(2)]
        with contextlib.redirect_stdout(streams[0]), \
                contextlib.redirect_stderr(streams[1]):
            try:
                status = main([command, *arguments]) or 0
            except SystemExit as exc:
                status = exc.code
        for stream in streams:
            stream.flush()
        return status, *[stream.buffer.getvalue().decode()
                         for stream in streams]

    def text(self, *arguments):
        status, text, err = self.report('p.pb.gz', *arguments)
        self.assertEqual((status, err), (0, ''))
        return text


class OptionsTest(ReportCase):

    def test_every_option_that_the_report_names(self):
        """Each option of its last line works."""
        _, last = self.text().split('\nAlso: ')
        last = ' '.join(last.split())
        options = re.findall(r'(--[a-z]+)( [A-Z]+)?', last)
        self.assertEqual(len(options), 14)
        # Of a file where a line of a library was the innermost.
        self.save('p.pb.gz', mixed(example(pid=77).sample(
            'app.view:9', wall_ns=10_000_000, labels={'route': '/a'},
            task=('Task-1', 1))))
        default = self.text()
        for option, argument in options:
            with self.subTest(option=option):
                text = self.text(option, *{
                    '': [], ' PATTERN': ['app.hook|app.work'],
                    ' KEY': ['route']}[argument])
                self.assertNotEqual(text, default)

    def rows(self, *arguments):
        """Return the name, the share and the callee of each row."""
        status, text, err = self.report('m.pb.gz', '--format', 'json',
                                        *arguments)
        self.assertEqual((status, err), (0, ''))
        self.tables = json.loads(text)['tables']
        return [(f'{row["function"]}:{row["line"]}',
                 round(100 * row['self_share'], 1), row['in'])
                for row in self.tables[0]['rows']]

    def test_my_code_is_charged_for_what_it_calls(self):
        b = mixed(Builder())
        self.save('m.pb.gz', b)
        rows = self.rows()
        self.assertEqual(rows, [
            ('shop.view:7', 80.6, 'orm \N{HORIZONTAL ELLIPSIS} '
                                  'Cursor.fetchall 75%'),
            ('shop.view:8', 10.1, 'json \N{HORIZONTAL ELLIPSIS} encode 90%'),
            ('shop.view:1', 0.2, ''),
            ('Imports:0', 5.0, 'orm 50.0ms'),
            ('Outside my code:0', 4.0, 'db.ping')])
        self.assertEqual((self.tables[0]['name'], self.tables[0]['notes']),
                         ('my_code', []))
        self.assertEqual(self.rows('--top', '1')[1:], rows[3:])
        for pattern in 'pool', 'packages/x.py$':
            self.assertIn(('pool.work:5', 4.0, 'db.ping'),
                          self.rows('--mine', pattern))
        self.assertEqual(self.rows('--all')[0],
                         ('orm.engine.load:2', 60.5, 'db.Cursor.fetchall'))
        self.assertEqual(self.tables[0]['name'], 'sites')
        wait = b.function('threading', 'Condition.wait',
                          '/usr/lib/python3.13/threading.py')
        b.sample(['shop.view:9', (wait, 3), 'C:_thread.lock.acquire',
                  '[waiting]'], wall_ns=2_000_000_000, state='waiting')
        self.save('m.pb.gz', b)
        # The same line, whatever rows are.
        for option in [], ['--all']:
            _, text, _ = self.report('m.pb.gz', *option)
            self.assertIn('of it for a lock (threading.Condition.wait) at '
                          'shop.view:9', ' '.join(text.split()))

    def test_none_of_it_is_mine(self):
        b = Builder()
        work = b.function('pool', 'work', '/venv/site-packages/pool.py')
        b.sample([(work, 5)], wall_ns=999_000, count=999)
        self.save('m.pb.gz', b)
        self.assertEqual(self.rows(), [('pool.work:5', 100.0, '')])
        self.assertEqual(
            self.tables[0]['title'], 'Hardly any of the time is in code of '
            'yours.  These are the library lines.  If some of it is yours: '
            '--mine PATTERN')
        b.sample('shop.f:1', wall_ns=1_000)
        self.save('m.pb.gz', b)
        self.assertEqual(len(self.rows()), 2)
        self.assertIn('Hardly any', self.tables[0]['title'])
        self.rows('--all')
        self.assertEqual(self.tables[0]['title'], '')
        # What is asked for is shown, however little.
        self.assertEqual([row[0] for row in self.rows('--mine', 'pool')],
                         ['pool.work:5', 'shop.f:1'])

    def test_a_name_that_would_be_a_finding(self):
        """A file's name is text, on one line and visible, and no more."""
        name = 'a\x1b[31m\n* All is fine.\u202e.pb.gz'
        shown = r'a\x1b[31m\n* All is fine.\u202e.pb.gz'
        os.link('p.pb.gz', name)
        for options in [], ['--functions'], ['--tasks']:
            _, *rest = self.text(*options).splitlines()
            status, text, err = self.report(name, *options)
            self.assertEqual((status, err), (0, ''))
            self.assertEqual(text.splitlines(), [shown, *rest])
        _, text, _ = self.report('.', command='list')
        self.assertIn(shown, text)
        self.assertNotIn('\x1b', text)

    def test_what_changes_nothing_is_refused(self):
        for output in 'x.html', 'x.pb.gz', 'x.collapsed', 'x.json', 'report':
            for option in (['--functions'], ['--tree'], ['--by', 'state'],
                           ['-n', '3'], ['--width', '80'], ['--gil'],
                           ['--callers', 'view'], ['--sort', 'cum'],
                           ['--stats']):
                with self.subTest(output=output, option=option):
                    status, _, err = self.report(
                        'p.pb.gz', '-o', output, *option, *(
                            ['--format', 'json'] if output == 'report'
                            else []))
                    if output == 'report':
                        self.assertEqual(status, 0)
                    else:
                        self.assertEqual(status, 2)
                        self.assertIn('changes nothing in a', err)
        for options in (['--html', '--idle'], ['--html', '--tasks'],
                        ['--html', '-n', '3'],
                        ['-o', 'x.pb.gz', '--mine', 'f'],
                        ['-o', 'x.collapsed', '--all']):
            with self.subTest(options):
                self.assertEqual(self.report('p.pb.gz', *options)[0], 2)
                self.assertNotIn('x.pb.gz', os.listdir())

    def test_page_of_lines_that_are_mine(self):
        b = Builder()
        pool = b.function('pool', 'work', '/venv/site-packages/pool.py')
        b.sample(['shop.f:1', (pool, 5)], wall_ns=1_000_000)
        self.save('m.pb.gz', b)
        for options, lines in (
                ([], [('shop.f', 1)]),
                (['--mine', 'pool.work'], [('pool.work', 5)]),
                (['--all'], [('pool.work', 5)])):
            self.assertEqual(self.report('m.pb.gz', '--html', *options)[0], 0)
            with open('m.html') as file:
                [text] = re.findall('id="document"[^>]*>([^<]+)<',
                                    file.read())
            page = Document(base64.b64decode(text))
            self.assertEqual(
                [page.place(page.path_place[path])
                 for path in page.sample_path], lines)
            self.assertEqual(page.options, options)

    def test_a_page_on_stdout(self):
        for options in ['--html'], ['--format', 'html']:
            status, out, _ = self.report('p.pb.gz', '-o', '-', *options)
            self.assertEqual(status, 0)
            self.assertTrue(out.startswith('<!DOCTYPE html>'), out[:99])
        self.assertNotIn('p.html', os.listdir())
        self.assertEqual(self.report('p.pb.gz', '--open', '-o', '-')[0], 2)

    def test_hostile_name_of_the_file(self):
        name = 'x\x1b]0;y\n* GIL wait is 99 % .pb.gz'
        self.save(name, Builder().sample('a.f:1', wall_ns=1_000_000))
        _, out, _ = self.report(name)
        self.assertNotIn('\x1b', out)
        self.assertTrue(out.startswith(
            'x\\x1b]0;y\\n* GIL wait is 99 % .pb.gz\n'), out)

    def test_none_of_a_part_is_mine(self):
        b = Builder()
        work = b.function('pool', 'work', '/venv/site-packages/pool.py')
        b.sample([(work, 5)], wall_ns=999_000, thread=b.thread('pool'))
        b.sample('shop.f:1', wall_ns=999_000, thread=b.thread('main'))
        self.save('m.pb.gz', b)
        [(name, _, _)] = self.rows('--where', 'thread=pool')
        self.assertEqual(name, 'Outside my code:0')
        self.assertIn('None of this is in code of yours.  The library lines: '
                      '--all', self.tables[0]['title'])

    def save_idle(self):
        b = Builder(duration_ns=1_000_000_000)
        b.thread('MainThread')
        b.sample('shop.main:3 shop.f:1', wall_ns=300_000_000, count=300)
        b.sample('concurrent.futures.thread._worker:3 '
                 'C:_queue.SimpleQueue.get [waiting]', state='waiting',
                 wall_ns=1_000_000_000, thread=b.thread('pool'))
        self.save('m.pb.gz', b)

    def test_idle_time_is_left_out_and_comes_back(self):
        self.save_idle()
        for options, row in (
                (['--functions'], r'100.0% 100.0% 300.0ms .* shop.f '),
                (['--tree'], r'100.0% 100.0% 300.0ms 300.0ms +shop.f'),
                (['--callers', 'shop.f'], r'100.0% 100.0% 300.0ms shop.main'),
                (['--listing', 'shop.f'], r'300.0ms 300.0ms .* 1 ')):
            for option, shown in ([], False), (['--idle'], True):
                with self.subTest(options=options + option):
                    status, text, _ = self.report('m.pb.gz', *options, *option)
                    text = ' '.join(text.split()) + ' '
                    self.assertEqual('of it idle and left out' in text,
                                     not shown)
                    if not shown:
                        self.assertRegex(text, row)
                        self.assertNotIn('SimpleQueue', text)
                    elif options != ['--listing', 'shop.f']:
                        self.assertIn('23.1%', text)

    def test_files_for_viewers_have_no_idle_time(self):
        self.save_idle()
        for name in ('o.collapsed', 'o.speedscope.json', 'o.svg',
                     'o.gecko.json', 'o.dot', 'o.callgrind'):
            with self.subTest(name=name):
                status, _, err = self.report('m.pb.gz', '-o', name)
                self.assertEqual(err, 'python -m profile_sampling: 1.00s of '
                                      '1.30s are idle and left out (--idle)\n')
                with open(name) as file:
                    self.assertNotIn('SimpleQueue', file.read())
                self.assertEqual(
                    self.report('m.pb.gz', '-o', name, '--idle'), (0, '', ''))
                with open(name) as file:
                    self.assertIn('SimpleQueue', file.read())
        for name in 'o.pb', 'o.json':
            self.assertEqual(self.report('m.pb.gz', '-o', name), (0, '', ''))
        self.assertEqual(Profile.load('o.pb').total_wall_ns, 1_300_000_000)
        with open('o.json') as file:
            self.assertIn('SimpleQueue', file.read())

    def test_no_line_is_longer_than_it_may_be(self):
        b = mixed(example(pid=77))
        long = 'package.' * 9 + 'a_name_that_is_long' * 4
        for task in 'T', 'U':
            b.sample(f'{long}:1 C:{long} [waiting]', wall_ns=400_000_000,
                     count=400, state='waiting', labels={'route': '/' + long},
                     task=(long, 1), task_ns=40_000_000,
                     task_class=b.task_class(long, lives=[90_000_000] * 2))
        b.sample(f'{long}:1', wall_ns=900_000_000, state='gil_wait',
                 holder=(0, f'{long}:2 C:{long}'))
        self.save('m.pb.gz', b)
        for options in ([], ['--all'], ['--functions'], ['--tree'],
                        ['--callers', 'name'], ['--callees', 'shop'],
                        ['--by', 'route'], ['--by', 'file'],
                        ['--by', 'thread'], ['--gil'], ['--tasks'],
                        ['--tasks', '--by', 'route'], ['--opcodes'],
                        ['--listing', 'name'], ['--stats']):
            for width in '60', '80', '100':
                with self.subTest(options=options, width=width):
                    _, text, err = self.report('m.pb.gz', '--width', width,
                                               *options)
                    self.assertEqual(err, '')
                    self.assertLessEqual(max(map(len, text.splitlines())),
                                         int(width), text)

    def test_wide_and_combining_characters(self):
        wide = '注文顧客情報を検索する非常に長い名前の関数\N{ROCKET}'
        b = Builder()
        for name in ('ascii', '注文', '顧客情報を検索する非常に長い名前の関数',
                     'e\u0301e\u0301e\u0301', '\N{ROCKET}' * 3):
            b.sample([(b.function('m', name, f'/注文/{name}.py'), 7),
                      'C:lib.call'], wall_ns=1_000_000, labels={'route': name},
                     thread=b.thread(f'注文{name}'))
        self.save('p.pb.gz', b)

        def columns(text):
            return sum([0 if char == '\u0301' else 1 + (char in wide)
                        for char in text])

        # A text that each row has where its column begins, and the column.
        for options, cell, heading in (
                ([], 'lib.call', 'in'), (['--functions'], '...', 'place'),
                (['--by', 'route'], None, 'route'),
                (['--by', 'thread'], '注文', 'thread'),
                (['--by', 'file'], None, 'file')):
            for width in 60, 80, 200:
                with self.subTest(options=options, width=width):
                    lines = self.text(*options, '--width',
                                      str(width)).splitlines()
                    self.assertLessEqual(max(map(columns, lines)), width)
                    [head] = [line for line in lines
                              if line.lstrip('# ').startswith('self ')]
                    place = head.rfind(heading)
                    rows = [line for line in lines
                            if cell and place > 0 and cell in line]
                    self.assertLessEqual(
                        {columns(row[:row.index(cell)]) for row in rows},
                        {place})

    def test_files_with_wide_names(self):
        os.remove('p.pb.gz')
        b = example(meta={'command': 'COMMAND'})
        for name in '注文.pb.gz', 'plain.pb.gz':
            self.save(name, b)
        _, text, _ = self.report(command='list')
        wide, plain = [line for line in text.splitlines()
                       if line.endswith('COMMAND')]
        self.assertEqual(abs(len(wide) - len(plain)), len('注文'))

    def test_list_and_report_name_the_same_moment(self):
        found = [re.findall(r'\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC', text)
                 for _, text, _ in (self.report(command='list'),
                                    self.report('p.pb.gz'))]
        self.assertEqual(found[0], found[1])
        self.assertEqual(len(found[0]), 1)

    def test_did_you_mean(self):
        for arguments, hint in (
                (['reprot'], "Did you mean 'report'?"),
                (['report', 'p.pb.gz', '--functons'],
                 "Did you mean '--functions'?"),
                (['report', 'p.pb.gz', '--by', 'rout'],
                 "Did you mean 'route'?"),
                (['report', 'p.pb.gz', '--sort', 'selv'],
                 "Did you mean 'self'?"),
                (['diff', 'p.pb.gz', 'p.pb.gz', '--by', 'functon'],
                 "Did you mean 'function'?")):
            with self.subTest(arguments=arguments):
                status, _, err = self.report(*arguments[1:],
                                             command=arguments[0])
                self.assertEqual(status, 2)
                self.assertIn(hint, err)
        status, _, err = self.report('p.pb.gz', '--no-such-thing')
        self.assertNotIn('Did you mean', err)
        # It is an option of report.
        status, _, err = self.report('p.pb.gz', 'p.pb.gz', '--width=80',
                                     command='diff')
        self.assertNotIn('Did you mean', err)

    def test_tables(self):
        for arguments, heading in (
                (['--functions'], 'Functions by self time'),
                (['--sort', 'cum'], 'Functions by cumulative time'),
                (['--tree'], 'Call tree'),
                (['--callers', 'hook'], 'Callers of app.hook, '),
                (['--callees', 'hook'], 'Callees of app.hook, '),
                (['--gil'], 'Waits for the GIL, and who held it'),
                (['--opcodes'], 'Instructions by self time'),
                (['--listing', 'app.hook'], 'app.hook in /src/app.py'),
                (['--listing', 'src/json.py'], 'json.load in /src/json.py'),
                (['--stats'], 'Counters')):
            with self.subTest(arguments=arguments):
                text = self.text(*arguments)
                self.assertIn(f'\n{heading}', text)
                self.assertNotIn('\n#', text)
        for key, value in (('route', '/a'), ('task', 'Task-1'),
                           ('thread', 'MainThread'), ('state', 'gil_wait'),
                           ('file', '/src/app.py'), ('pid', '77')):
            with self.subTest(key=key):
                text = self.text('--by', key)
                self.assertRegex(text, rf'(?m)^# .*  {key}$')
                self.assertRegex(text, rf'(?m)  {value}$')

    def test_a_listing_of_what_is_called_so(self):
        """A name is not searched for in others, such as __main__."""
        self.save('names.pb.gz', Builder().sample(
            '__main__.work:1 __main__.main:2 __main__.main_loop:3',
            wall_ns=1_000_000))
        _, text, _ = self.report('names.pb.gz', '--listing', 'main')
        self.assertEqual(re.findall(r'(?m)^(\S+) in /', text),
                         ['__main__.main'])

    def test_no_route(self):
        self.save('none.pb.gz', Builder().sample('a.f:1', wall_ns=1_000_000))
        for options in [], ['--tasks']:
            status, _, err = self.report('none.pb.gz', '--by', 'route',
                                         *options)
            self.assertEqual(status, 2)
            self.assertIn('app.add_middleware(ASGIMiddleware)', err)

    def test_top(self):
        for option in '-n', '--top':
            self.assertIn('\n... 4 more lines, 51.9 % in all\n',
                          self.text(option, '1'))

    def test_parts(self):
        self.assertNotIn('app.hook', self.text('--ignore', 'json'))
        focused = self.text('--focus', 'json')
        self.assertIn('app.hook', focused)
        self.assertNotIn('app.view', focused)
        self.assertIn('wall 700.0ms in all threads', focused)
        hidden = self.text('--hide', 'hook')
        self.assertIn('json.load:293', hidden)
        self.assertNotIn('app.hook', hidden)
        self.assertIn('wall 700.0ms in all',
                      self.text('--focus', 'work', '--focus', 'json'))
        folded = self.text('--fold', 'C', '--fold', 'pseudo')
        self.assertNotIn('json.load', folded)
        self.assertIn('wall 700.0ms in all', self.text(
            '--focus', 'json', '--collapse', 'work', '--root', 'work'))
        self.assertNotIn('app.hook', self.text('--collapse', 'json'))
        status, out, err = self.report('p.pb.gz', '--focus', 'nothing')
        self.assertEqual((status, out), (1, ''))
        self.assertIn('no sample is like that', err)

    def test_values(self):
        for values, begins in ((('cpu', 'cpu_ns'), 'CPU 900.0ms in all'),
                               (('samples', 'count'), '1,047 samples')):
            for value in values:
                with self.subTest(value=value):
                    text = self.text('--value', value, '--where', 'route=out')
                    self.assertTrue(text.splitlines()[2].startswith(begins))
        # A name comes before a kind.
        b = Builder(mode='alloc', value_types=[
            ('alloc', 'count'), ('alloc', 'bytes')])
        self.save('m.pb.gz', b.sample('a.f:1', values=(3, 5)))
        for file, value, status, shown, said in (
                ('m.pb.gz', 'alloc', 0, 'alloc 3 in all', ''),
                ('m.pb.gz', 'alloc_bytes', 0, 'alloc 5 B in all', ''),
                ('m.pb.gz', 'alloc_count', 2, '', ''),
                ('p.pb.gz', 'gpu', 2, '', 'there are: samples, cpu, wall')):
            with self.subTest(file=file, value=value):
                result = self.report(file, '--value', value)
                self.assertEqual(result[0], status)
                self.assertIn(shown, result[1])
                self.assertIn(said, result[2])

    def test_where(self):
        without = r'route=^\[without\]$'
        for conditions, total in (
                (['thread=^Main'], '2.00s'),
                (['thread=interpreter 2'], '61.0ms'),
                (['state=running|waiting'], '2.00s'),
                # As in the tables that show them.
                (['state=GIL wait'], '60.0ms'),
                (['state=^gil wait$'], '60.0ms'),
                (['state=^(?!GIL wait|run|wait)'], '1.0ms'),
                ([without], '2.05s'), ([without, 'route=out'], '2.05s'),
                (['route=^(?!/a)'], '2.05s'), (['route=/a'], '10.0ms'),
                (['route='], '2.06s'),
                (['state=running', 'thread=Main'], '1.01s')):
            with self.subTest(conditions=conditions):
                text = self.text('--by', 'route', *[
                    word for condition in conditions
                    for word in ('--where', condition)])
                self.assertIn(f'wall {total} in all', text)
                if without in conditions:
                    # A part that is without a label has one row.
                    self.assertRegex(text,
                                     r'\n1 +100\.0%.*  \[without\]\n\n')
        for conditions in (['state=nothing'], [without, 'route=/a']):
            status, out, err = self.report('p.pb.gz', *[
                word for condition in conditions
                for word in ('--where', condition)])
            self.assertEqual((status, out), (1, ''))
            self.assertIn('no sample is like that', err)

    def test_wrong_arguments(self):
        for message, arguments in (
                ("no sample has the label 'nix'; there are: thread, state, "
                 'file, pid, route, task', ['--by', 'nix']),
                ("no function has a name like 'nix'", ['--callers', 'nix']),
                ("no function has a name like 'nix'", ['--callees', 'nix']),
                ("no Python function and no file has a name like 'nix'",
                 ['--listing', 'nix']),
                ("'(' is no regular expression", ['--focus', '(']),
                ("'(' is no regular expression", ['--listing', '(']),
                ("argument --mine: '(' is no regular expr", ['--mine', '(']),
                ("'(' is no regular expression", ['--where', 'state=(']),
                ("no sample has the label 'nix'", ['--where', 'nix=x']),
                ("invalid KEY=PATTERN value: 'x'", ['--where', 'x']),
                ("invalid KEY=PATTERN value: '=x'", ['--where', '=x']),
                ('calls are not counted by thread',
                 ['--calls', '--by', 'thread']),
                ('calls are of the whole recording',
                 ['--calls', '--from', '0.1']),
                ("argument --sort: invalid choice: 'x'", ['--sort', 'x']),
                ('at least 60', ['--width', '59']),
                ("argument --fold: invalid choice: 'x'", ['--fold', 'x']),
                ("'(' is no regular expression", ['--collapse', '(']),
                ("'(' is no regular expression", ['--root', '('])):
            with self.subTest(arguments=arguments):
                status, text, err = self.report('p.pb.gz', *arguments)
                self.assertEqual((status, text), (2, ''))
                self.assertIn(message, err)
        self.save('plain.pb.gz', example(names=1))
        status, _, err = self.report('plain.pb.gz', '--opcodes')
        self.assertEqual(status, 2)
        self.assertIn('record it with names=all', err)

    def test_the_newest(self):
        for name, seconds in (('p.pb.gz', 1), ('a.pb.gz', 5),
                              ('B.PPROF', 7), ('c.pb', 6), ('d.txt', 9)):
            with open('p.pb.gz', 'rb') as file:
                data = file.read()
            with open(name, 'wb') as file:
                file.write(data)
            os.utime(name, (seconds, seconds))
        status, text, err = self.report()
        self.assertEqual(status, 0)
        self.assertTrue(text.startswith('B.PPROF\nWall profile'), text)
        self.assertEqual(err, 'python -m profile_sampling: the newest '
                              'profile here is B.PPROF\n')
        for name in 'p.pb.gz', 'a.pb.gz', 'B.PPROF', 'c.pb':
            os.unlink(name)
        status, text, err = self.report()
        self.assertEqual((status, text), (2, ''))
        self.assertIn('there is no profile in this directory', err)


class FormatsTest(ReportCase):

    def test_json(self):
        document = json.loads(self.text('--format', 'json'))
        self.assertEqual(list(document), [
            'schema', 'file', 'profile', 'quality', 'findings', 'tables'])
        self.assertEqual(document['schema'], 'profile_sampling.report/1')
        self.assertEqual(document['file'], 'p.pb.gz')
        profile = Profile.load('p.pb.gz')
        self.assertEqual(document['quality'], profile.quality())
        self.assertEqual(document['profile']['totals'], {
            value_type.name: profile.total(value_type.name)
            for value_type in profile.value_types})
        [table] = document['tables']
        self.assertEqual(table['name'], 'my_code')
        rows = table['rows']
        self.assertEqual(list(rows[0]), table['columns'])
        self.assertEqual(
            (rows[0]['function'], rows[0]['file'], rows[0]['line'],
             rows[0]['in'], rows[0]['waiting_ns']),
            ('app.<module>', '/src/app.py', 2, 'time.sleep', 990_000_000))
        # What is on no line is in states: [lost] and [unsampled].
        on_no_line = 1_000_000 + 499
        self.assertEqual(sum([row['self_ns'] for row in rows]),
                         profile.total_wall_ns - on_no_line)
        self.assertEqual(sum(document['profile']['states'].values()),
                         profile.total_wall_ns)

    def test_json_of_all_tables(self):
        document = json.loads(self.text(
            '--format', 'json', '--functions', '--tree', '--callers', 'hook',
            '--callees', 'hook', '--by', 'route', '--gil', '--opcodes',
            '--listing', 'app.hook', '--stats'))
        self.assertEqual([table['name'] for table in document['tables']], [
            'functions', 'tree', 'callers', 'callees', 'by_route',
            'gil_threads', 'gil', 'opcodes', 'source', 'quality', 'stats'])
        for table in document['tables']:
            self.assertTrue(table['rows'], table)

    def test_tables_for_programs(self):
        head, *rows = self.text('--format', 'tsv').splitlines()
        first = dict(zip(head.split('\t'), rows[0].split('\t'), strict=True))
        self.assertEqual((first['function'], first['waiting_ns'], len(rows)),
                         ('app.<module>', '990000000', 5))
        two = self.text('--format', 'tsv', '--functions', '--stats')
        self.assertEqual(two.count('\n\n'), 2)
        text = self.text('--format', 'markdown', '--functions')
        self.assertIn('\n| self | cum | self | ± | cum | ± | function | place '
                      '|\n| ---: | ---: |', text)
        self.assertIn(' | `app.hook` | `/src/app.py:1` |\n', text)
        text = self.text('--format', 'markdown', '--tree')
        self.assertIn('| &ensp;&ensp;', text)

    def test_names_that_mean_something(self):
        b = Builder()
        b.sample([(b.function('m', 'a|b`c``d\t\n<x>'), 1)], wall_ns=1)
        self.save('p.pb.gz', b)
        line = self.text('--format', 'markdown').splitlines()[-1]
        self.assertTrue(line.endswith(
            '| ``` m.a\\|b`c``d\\t\\n<x>:1 ``` |  |'), line)
        self.assertEqual(self.text('--format', 'tsv').count('\n'), 2)
        [table] = json.loads(self.text('--format', 'json'))['tables']
        self.assertEqual(table['rows'][0]['function'], 'm.a|b`c``d\t\n<x>')


class TerminalTest(unittest.TestCase):
    """What a terminal of some width is shown."""

    def run_in_terminal(self, columns, **environment):
        with tempfile.TemporaryDirectory() as directory:
            example().profile().save(os.path.join(directory, 'p.pb.gz'))
            leader, follower = pty.openpty()
            unset = 'NO_COLOR', 'FORCE_COLOR', 'PYTHON_COLORS', 'COLUMNS'
            environ = {name: value for name, value in os.environ.items()
                       if name not in unset}
            environ |= {'TERM': 'xterm', 'PYTHONPATH': os.pathsep.join(
                filter(None, sys.path))} | environment
            import fcntl
            import struct
            import termios
            fcntl.ioctl(follower, termios.TIOCSWINSZ,
                        struct.pack('4H', 24, columns, 0, 0))
            result = subprocess.Popen(
                [sys.executable, '-m', 'profile_sampling', 'report',
                 'p.pb.gz'], cwd=directory, env=environ, stdout=follower)
            os.close(follower)
            data = b''
            with contextlib.suppress(OSError):
                while chunk := os.read(leader, 65536):
                    data += chunk
            os.close(leader)
            self.assertEqual(result.wait(), 0)
        return data.decode().replace('\r\n', '\n')

    def test_width_and_color(self):
        for columns in 60, 80, 200:
            with self.subTest(columns=columns):
                text = self.run_in_terminal(columns)
                self.assertIn('\x1b[1;31m', text)
                plain = re.sub('\x1b\\[[0-9;]*m', '', text)
                lines = plain.splitlines()[:-2]
                self.assertLessEqual(max(map(len, lines)), columns)
                self.assertGreater(max(map(len, lines)), min(columns, 110)
                                   - 12)

    def test_no_color(self):
        self.assertNotIn('\x1b', self.run_in_terminal(80, NO_COLOR='1'))
