"""Tables that a report has on request: known answers."""

import os
import tempfile
import unittest

from profile_sampling._data.by_site import Sites
from profile_sampling._formats import (
    table, tables_of, tables_of_calls, tables_of_code, tables_of_gil)

from ..support.builders import Builder

MS = 1_000_000


def shown(builder, make, *arguments, width=100):
    """Return the lines of the table, or tables, that *make* makes."""
    made = make(builder.profile()._tables, *arguments)
    made = made if isinstance(made, list) else [made]
    return [line for one in made for line in table.lines(one, width)]


def with_sites(make):
    return lambda tables, *rest: make(tables, Sites(tables), *rest)


def build():
    b = Builder(duration_ns=10 ** 12)
    for name in 'MainThread', 'pool-1', 'pool-2':
        b.thread(name)
    b.sample('a.main:1 a.f:2', wall_ns=600 * MS, count=600)
    b.sample('a.main:1 a.f:3 C:json.loads', wall_ns=200 * MS, count=200)
    b.sample('a.main:4 a.g:5', wall_ns=200 * MS, count=200)
    return b


class FunctionsTest(unittest.TestCase):

    functions = staticmethod(with_sites(tables_of.functions))

    def test_self_and_cumulative_in_a_row(self):
        # The margins: 1.96 * sqrt(n * (1 - n / 1000)) ms.
        self.assertEqual(shown(build(), self.functions, 9), [
            'Functions by self time',
            ' self     cum   self      ±    cum      ±  function    place',
            '60.0%   80.0%  0.60s  0.03s  0.80s  0.02s  a.f         '
            '/src/a.py:1',
            '20.0%   20.0%  0.20s  0.02s  0.20s  0.02s  a.g         '
            '/src/a.py:1',
            '20.0%   20.0%  0.20s  0.02s  0.20s  0.02s  json.loads  '
            'C function',
            ' 0.0%  100.0%      -      -  1.00s      -  a.main      '
            '/src/a.py:1'])

    def test_what_has_no_frames_is_a_row(self):
        b = build().sample('', wall_ns=3000 * MS, count=3000)
        self.assertEqual(
            shown(b, self.functions, 1)[2].split(),
            ['75.0%', '75.0%', '3.00s', '0.05s', '3.00s', '0.05s', '[no',
             'frames]'])

    def test_only_running_records_make_margins(self):
        b = build()
        b.sample('a.main:1 a.f:2 [waiting]', wall_ns=1000 * MS, count=900,
                 state='waiting')
        row = [line for line in shown(b, self.functions, 9)
               if ' a.f ' in line][0].split()
        self.assertEqual(row[2:6], ['0.60s', '0.03s', '1.80s', '0.02s'])


class ByTest(unittest.TestCase):

    by = staticmethod(with_sites(tables_of.by_key))

    def test_label(self):
        b = build()
        b.sample('a.h:1', wall_ns=500 * MS, count=500,
                 labels={'route': '/a'}, thread=1)
        b.sample('a.h:2 C:x.recv [waiting]', wall_ns=2000 * MS, thread=1,
                 state='waiting', labels={'route': '/b'})
        self.assertEqual(shown(b, self.by, 9, 'route'), [
            '#   self    run      ±  waiting  route',
            '1  57.1%      -      -    2.00s  /b',
            '2  28.6%  1.00s  0.04s        -  [without]',
            '3  14.3%  0.50s  0.04s        -  /a'])

    def test_idle_time_has_a_column(self):
        b = build()
        b.sample('a.serve:5 C:_socket.socket._accept [waiting]',
                 wall_ns=3000 * MS, state='waiting', thread=1)
        self.assertEqual(shown(b, self.by, 9, 'thread'), [
            '#    self    run  ±   idle  thread',
            '1  100.0%  1.00s  -      -  MainThread',
            '2    0.0%      -  -  3.00s  pool-1'])

    def test_threads_of_one_name_are_told_apart(self):
        b = Builder()
        for number, name in enumerate(('main', 'worker', 'worker')):
            b.thread(name, native_id=70 + number)
            b.sample('a.f:1', wall_ns=(3 - number) * MS, thread=number)
        self.assertEqual([line.split('s  ')[-1] for line in shown(
            b, self.by, 9, 'thread')[1:]], ['main', 'worker', 'worker 2'])

    def test_events_are_counted(self):
        b = Builder()
        b.sample('a.f:1', wall_ns=5, count=1)
        b.sample('a.f:2', count=3, labels={'event': 'miss'}, state='custom')

        def by(tables, *rest):
            return self.by(tables.by_value('samples'), *rest)

        self.assertEqual(shown(b, by, 9, 'event'), [
            '#   self  samples  custom  event',
            '1  75.0%        -       3  miss',
            '2  25.0%        1       -  [without]'])


class CallsTest(unittest.TestCase):

    def test_recursion_in_the_tree(self):
        """Calls of a function by itself are one row, with their number."""
        b = Builder()
        b.sample('a.main ' + 'a.walk ' * 30, wall_ns=6 * MS)
        b.sample('a.main ' + 'a.walk ' * 10, wall_ns=MS)
        b.sample('a.main ' + 'a.walk ' * 20 + 'a.leaf', wall_ns=3 * MS)
        self.assertEqual(
            [line.split() for line in shown(b, tables_of_calls.tree, 9)[2:]],
            [['100.0%', '0.0%', '10.0ms', '-', 'a.main'],
             ['100.0%', '10.0%', '10.0ms', '1.0ms', 'a.walk', '(×20)'],
             ['60.0%', '60.0%', '6.0ms', '6.0ms', 'a.walk', '(×10)'],
             ['30.0%', '30.0%', '3.0ms', '3.0ms', 'a.leaf']])

    def test_mutual_recursion_in_the_tree(self):
        """So are calls of functions by each other in turns."""
        b = Builder()
        b.sample('a.main ' + 'a.even a.odd ' * 30, wall_ns=6 * MS)
        b.sample('a.main ' + 'a.even a.odd ' * 10 + 'a.even', wall_ns=MS)
        b.sample('a.main ' + 'a.even a.odd ' * 30 + 'a.leaf', wall_ns=3 * MS)
        self.assertEqual(
            [line.split() for line in shown(b, tables_of_calls.tree, 9)[2:]],
            [['100.0%', '0.0%', '10.0ms', '-', 'a.main'],
             ['100.0%', '10.0%', '10.0ms', '1.0ms', 'a.even', '(×30)'],
             ['100.0%', '60.0%', '10.0ms', '6.0ms', 'a.odd', '(×30)'],
             ['30.0%', '30.0%', '3.0ms', '3.0ms', 'a.leaf']])

    def test_what_has_no_frames_is_in_the_tree(self):
        b = build().sample('', wall_ns=3000 * MS, count=3000)
        self.assertEqual(
            [line.split() for line in shown(b, tables_of_calls.tree, 9)[2:4]],
            [['75.0%', '75.0%', '3.00s', '3.00s', '[no', 'frames]'],
             ['25.0%', '0.0%', '1.00s', '-', 'a.main']])

    def test_tree(self):
        self.assertEqual(shown(build(), tables_of_calls.tree, 9), [
            'Call tree',
            '   cum   self    cum   self  function',
            '100.0%   0.0%  1.00s      -  a.main',
            ' 80.0%  60.0%  0.80s  0.60s    a.f',
            ' 20.0%  20.0%  0.20s  0.20s      json.loads',
            ' 20.0%  20.0%  0.20s  0.20s    a.g'])

    def test_small_calls(self):
        b = build()
        for number in range(30):
            b.sample(f'a.main:1 s.f{number}', wall_ns=MS)
            b.sample('a.main:1 a.f:2 a.tiny', wall_ns=1)
        lines = shown(b, tables_of_calls.tree, 9)
        self.assertTrue(lines[-2].endswith('    [30 smaller calls]'), lines)
        self.assertEqual(lines[-1], '1 small call left out')

    def test_a_deep_stack(self):
        b = Builder().sample(''.join([
            f'a.f{number % 10} ' for number in range(3000)]), wall_ns=5)
        lines = shown(b, tables_of_calls.tree, 9)
        self.assertEqual(lines[-1], '... 2,991 more rows')

    def test_callers_and_callees(self):
        neighbours = with_sites(tables_of_calls.neighbours)
        self.assertEqual(shown(build(), neighbours, 9, '^a.f$', True), [
            'Callers of a.f, which have 800.0ms, 80.0 %',
            ' share  of all      cum  caller',
            '100.0%   80.0%  800.0ms  a.main'])
        self.assertEqual(shown(build(), neighbours, 9, 'a.f', False), [
            'Callees of a.f, which have 800.0ms, 80.0 %',
            'share  of all      cum  callee',
            '75.0%   60.0%  600.0ms  [itself]',
            '25.0%   20.0%  200.0ms  json.loads'])
        lines = shown(build(), neighbours, 1, 'a.main|json', True)
        self.assertEqual(lines[0], 'Callers of 2 functions, which have '
                                   '1.00s, 100.0 %')


class GILTest(unittest.TestCase):

    def test_known_answer(self):
        b = build()
        for thread, ns, holder in ((1, 300, (0, 'a.f:3 C:json.loads')),
                                   (2, 500, (0, 'a.f:3 C:json.loads')),
                                   (0, 200, (1, 'a.h:7'))):
            b.sample('a.h:7 [GIL~wait]', wall_ns=ns * MS, thread=thread,
                     state='gil_wait', holder=holder)
        self.assertEqual(shown(b, tables_of_gil.gil, 9), [
            'Threads that waited, by threads that held the GIL',
            'share  waiter \\ holder  MainThread   pool-*',
            '80.0%  pool-*              800.0ms        -',
            '20.0%  MainThread                -  200.0ms',
            'Waits for the GIL, and who held it',
            'share   waited  waiter  holder  in',
            '80.0%  800.0ms  a.h:7   a.f:3   json.loads',
            '20.0%  200.0ms  a.h:7   a.h:7'])

    def test_many_threads(self):
        b = build()
        self.assertEqual(shown(b, tables_of_gil.gil, 9),
                         ['No thread waited for the GIL.'])
        for letter in 'abcdefgh':
            b.sample('a.h:7 [GIL~wait]', wall_ns=MS, state='gil_wait',
                     holder=(b.thread(letter), 'a.g:1'))
        head, row = shown(b, tables_of_gil.gil, 9)[1:3]
        self.assertEqual(head.split()[4:],
                         ['a', 'b', 'c', 'd', 'e', '[others]'])
        self.assertEqual(row.split()[-1], '3.0ms')


class OpcodesTest(unittest.TestCase):

    def test_known_answer(self):
        b = Builder(names=3)
        b.sample('a.f:7@BINARY_OP_ADD_INT+8 op:int.__add__', count=60,
                 wall_ns=600 * MS)
        b.sample('a.f:7@BINARY_OP_ADD_FLOAT+8 op:float.__add__', count=30,
                 wall_ns=300 * MS)
        b.sample('a.f:7@BINARY_OP+8', count=10, wall_ns=100 * MS)
        b.sample('a.f:8@CALL+20 C:time.sleep [waiting]', count=1,
                 wall_ns=4000 * MS)
        self.assertEqual(shown(b, tables_of_code.opcodes, 9), [
            'Instructions by self time, with the C functions and operators '
            'they were in',
            ' self   self   spec  deopt  instruction  line   in',
            '80.0%  4.00s   0.0%   0.0%  CALL         a.f:8  time.sleep',
            '20.0%  1.00s  90.0%  10.0%  BINARY_OP    a.f:7  int.__add__',
            'spec: samples that saw it specialized; deopt: that did not, '
            'although others did'])
        self.assertIn('... 1 more instruction',
                      shown(b, tables_of_code.opcodes, 1))

    def test_what_most_of_the_time_was_not_in(self):
        b = Builder(names=3)
        b.sample('a.f:1@LOAD_ATTR+2', wall_ns=5)
        b.sample('a.f:1@LOAD_ATTR+2 op:int.real', wall_ns=4)
        self.assertNotIn('int.real',
                         ''.join(shown(b, tables_of_code.opcodes, 9)))


SOURCE = '''\
import json

def work(n):
    total = 0
    for i in range(n):
        total += i * i
    return total

def other():
    pass
'''


class SourceTest(unittest.TestCase):

    source = staticmethod(with_sites(tables_of_code.source))

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.path = os.path.join(directory.name, 'mod.py')

    def write(self, text=SOURCE, changed_s=1_600_000_000):
        with open(self.path, 'w', encoding='utf-8') as file:
            file.write(text)
        os.utime(self.path, (changed_s, changed_s))

    def build(self, line=6):
        b = Builder(names=3)
        work = b.function('mod', 'work', self.path, 3)
        b.sample([(work, 5)], wall_ns=100 * MS, count=100)
        b.sample([(work, line, 9, 20, 0), 'op:int.__mul__'], count=300,
                 wall_ns=300 * MS)
        b.sample([(work, line), '[GIL wait]'], wall_ns=600 * MS,
                 state='gil_wait')
        return b

    def test_known_answer(self):
        self.write()
        self.assertEqual(shown(self.build(), self.source, 9, 'work$'), [
            f'mod.work in {self.path}',
            '   self      run       ±      cum  line  source',
            '                                      3  def work(n):',
            '                                      4      total = 0',
            '100.0ms  100.0ms  17.0ms  100.0ms     5      '
            'for i in range(n):',
            '900.0ms  300.0ms  17.0ms  900.0ms     6          total += i * i',
            '600.0ms                                  ^ ?, in [GIL wait]',
            '300.0ms                                          ^ ?, in '
            'int.__mul__',
            '                                      7      return total'])

    def test_specialization(self):
        self.write()
        b = Builder(names=3)
        work = b.function('mod', 'work', self.path, 3)
        from profile_sampling._data import opcodes
        for name, count in ('BINARY_OP_ADD_INT', 90), ('BINARY_OP', 10):
            b.sample([(work, 6, 9, 20, opcodes.number(name))], count=count,
                     wall_ns=count * MS)
        [line] = [line for line in shown(b, self.source, 9, 'work', width=150)
                  if '^' in line]
        self.assertTrue(line.endswith(
            '        ^ BINARY_OP, 90% specialized (BINARY_OP_ADD_INT), 10% '
            'deoptimized'), line)

    def test_a_file(self):
        """Its functions are shown where none has such a name."""
        self.write()
        b = self.build()
        for number in range(4):
            b.sample([(b.function('mod', f'f{number}', self.path, 9), 9)],
                     wall_ns=number * MS)
        b.sample('C:mod.py', wall_ns=5 * MS)
        heads = [line for line in shown(b, self.source, 3, r'mod\.py$')
                 if line.startswith(('mod.', '...'))]
        self.assertEqual(heads, [
            f'mod.work in {self.path}', f'mod.f3 in {self.path}',
            f'mod.f2 in {self.path}', '... 2 more functions that match'])
        b.sample('mod.py:1', wall_ns=MS)
        self.assertEqual(shown(b, self.source, 3, r'mod\.py$')[0],
                         'mod.py in /src/mod.py')

    def test_no_file(self):
        lines = shown(self.build(), self.source, 9, 'work')
        self.assertEqual(lines[-1], 'There is no source: No such file or '
                                    'directory.')
        self.assertIn('  900.0ms     6', lines[3])

    def test_a_file_that_has_changed(self):
        self.write(changed_s=1_800_000_000)
        self.assertIn('The file has changed after the profile was begun: '
                      'lines may not be those that ran.',
                      shown(self.build(), self.source, 9, 'work'))
        self.write()
        self.assertEqual(shown(self.build(60), self.source, 9, 'work')[-1],
                         'The file has 10 lines: it is not the one that ran.')

    def test_a_file_that_is_no_python(self):
        with open(self.path, 'wb') as file:
            file.write(b'\xff\xfe\x00')
        # Below it goes on: it names the file.
        self.assertIn('The source cannot be read: ', '\n'.join(
            shown(self.build(), self.source, 9, 'work')))
