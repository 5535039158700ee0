"""What a report says in words: a rule, its numbers, and where it is silent."""

import unittest

from profile_sampling._data.by_site import Sites
from profile_sampling._formats.findings import findings

from ..support.builders import Builder

MS = 1_000_000


def found(builder):
    tables = builder.profile()._tables
    return {finding.rule: finding
            for finding in findings(tables, Sites(tables))}


def running(ms, count=1000):
    b = Builder(duration_ns=10 ** 12, names=3)
    b.thread('MainThread')
    return b.sample('a.main:1', wall_ns=ms * MS, count=count)


class FindingsTest(unittest.TestCase):

    def check(self, builder, rule, text, **numbers):
        finding = found(builder)[rule]
        self.assertEqual(finding.text, text)
        for name, number in numbers.items():
            self.assertEqual(finding.numbers[name], number)

    def test_nothing(self):
        self.assertEqual(found(running(100)), {})
        self.assertEqual(found(Builder()), {})

    def test_gil(self):
        b = running(370)
        b.sample('a.f:2 [GIL~wait]', wall_ns=510 * MS, state='gil_wait',
                 holder=(0, 'json.loads:9'))
        b.sample('a.f:3 [GIL~wait]', wall_ns=120 * MS, state='gil_wait',
                 holder=(0, 'a.g:1 C:zlib.compress'))
        self.check(b, 'gil', 'GIL wait is 63.0 % of the time; 81.0 % of it '
                   'while json.loads held the GIL', ns=630 * MS, share=0.63,
                   holder='json.loads', holder_share=510 / 630)
        few = running(910).sample('a.f [GIL~wait]', wall_ns=90 * MS,
                                  state='gil_wait')
        self.assertNotIn('gil', found(few))

    def test_gil_of_many_holders(self):
        """Functions of a library that had it for a little each."""
        b = running(400)
        for number in range(20):
            function = b.function('sql.orm', f'f{number}',
                                  '/usr/lib/python3/dist-packages/sql/orm.py')
            b.sample('a.f:2 [GIL~wait]', wall_ns=20 * MS, state='gil_wait',
                     holder=(0, [(function, 9)]))
        b.sample('a.f:3 [GIL~wait]', wall_ns=50 * MS, state='gil_wait',
                 holder=(0, 'a.g:1'))
        b.sample('a.f:2 [GIL~wait]', wall_ns=150 * MS, state='gil_wait')
        self.check(b, 'gil', 'GIL wait is 60.0 % of the time; 66.7 % of it '
                   'while functions of sql held the GIL')

    def test_gil_of_unknown_holders(self):
        b = running(500).sample('a.f:2 [GIL~wait]', wall_ns=500 * MS,
                                state='gil_wait')
        self.check(b, 'gil', 'GIL wait is 50.0 % of the time')

    def test_asleep_with_the_gil(self):
        b = running(960)
        b.sample('a.f:2 C:lib.call [asleep~with~GIL]', wall_ns=30 * MS,
                 state='asleep_with_gil')
        b.sample('a.g:2 [asleep~with~GIL]', wall_ns=10 * MS,
                 state='asleep_with_gil')
        self.check(b, 'gil_asleep', '40.0ms asleep with the GIL held, no '
                   'other thread could run: 75.0 % of it at a.f:2 (lib.call)',
                   ns=40 * MS, site='a.f:2 (lib.call)', site_share=0.75)

    def test_a_task_that_blocks_its_loop(self):
        b = running(900)
        b.sample('a.loop:1 a.handle:7 C:time.sleep [waiting]', count=2,
                 wall_ns=60 * MS, state='waiting', task=('Task-1', 1))
        b.sample('a.loop:1 a.other:2 [waiting]', wall_ns=40 * MS,
                 state='waiting', task=('Task-2', 2))
        # Without a task there is no loop.
        b.sample('a.f:2 [waiting]', wall_ns=50 * MS, state='waiting')
        self.check(b, 'loop_blocked', 'asyncio tasks blocked their event '
                   'loop for 100.0ms: 60.0 % of it at a.handle:7 '
                   '(time.sleep)', ns=100 * MS, site_share=0.6)

    def test_a_thread_that_works_for_a_task_blocks_no_loop(self):
        b = running(900)
        b.sample('a.loop:1 a.handle:7 C:time.sleep [waiting]', task=('T', 1),
                 wall_ns=40 * MS, task_ns=40 * MS, state='waiting')
        b.sample('a.worker:1 a.save:9 C:time.sleep [waiting]', task=('T', 1),
                 wall_ns=60 * MS, thread=b.thread('asyncio_0'),
                 state='waiting')
        self.check(b, 'loop_blocked', 'asyncio tasks blocked their event '
                   'loop for 40.0ms: 100.0 % of it at a.handle:7 '
                   '(time.sleep)', ns=40 * MS)

    def test_waiting(self):
        b = running(200)
        b.sample('a.f:2 C:time.sleep [waiting]', wall_ns=600 * MS,
                 state='waiting')
        b.sample('a.g:2 [waiting]', wall_ns=200 * MS, state='waiting')
        self.check(b, 'waiting', 'waiting is 80.0 % of the time; 75.0 % of '
                   'it at a.f:2 (time.sleep)')

    def test_idle_time_is_not_waiting(self):
        b = running(100)
        run_once = b.function('asyncio.base_events',
                              'BaseEventLoop._run_once')
        b.sample([(run_once, 9), 'selectors.E.select:4', '[waiting]'],
                 wall_ns=900 * MS, state='waiting')
        self.assertEqual(found(b), {})

    def test_gc(self):
        b = running(900)
        b.sample('a.f:2 [GC~gen2]', wall_ns=100 * MS, state='gc')
        self.check(b, 'gc', 'the garbage collector took 10.0 % of the time; '
                   '100.0 % of it at a.f:2', share=0.1)

    def test_generic_instructions(self):
        b = running(600)
        # What an instruction calls has its own time.
        b.sample('a.f:2@CALL+8 C:zlib.compress', wall_ns=100 * MS)
        b.sample('a.f:3@FOR_ITER+8 op:zip.__next__', wall_ns=50 * MS)
        b.sample('a.f:3@BINARY_OP_ADD_INT+8', wall_ns=50 * MS)
        b.sample('a.f:3@BINARY_OP+8', wall_ns=20 * MS)
        b.sample('a.f:3@BINARY_OP+20', wall_ns=130 * MS)
        b.sample('a.f:4@LOAD_ATTR+40', wall_ns=50 * MS)
        b.sample('a.f:4@LOAD_ATTR+40 [waiting]', wall_ns=100 * MS,
                 state='waiting')
        self.check(b, 'generic', 'instructions that were not specialized '
                   'took 20.0 % of running time; 75.0 % of it BINARY_OP at '
                   'a.f:3', ns=200 * MS, share=0.2,
                   instruction='BINARY_OP at a.f:3', instruction_share=0.75)
        b.sample('a.f:5', wall_ns=10 * MS)
        self.assertNotIn('generic', found(b))

    def test_generic_instructions_of_few_samples(self):
        for count, is_found in ((99, False), (100, True)):
            b = Builder(names=3)
            b.sample('a.f:4@LOAD_ATTR+40', wall_ns=MS * count, count=count)
            self.assertEqual('generic' in found(b), is_found)

    def test_few(self):
        self.check(running(99, count=99), 'few', 'only 99 running samples: '
                   'shares of running time are rough', count=99)
        self.assertNotIn('few', found(running(100, count=100)))

    def test_no_times_no_findings(self):
        b = Builder(mode='alloc', value_types=[('alloc', 'bytes')])
        b.sample('a.f [GIL~wait]', values=[5], state='gil_wait')
        self.assertEqual(found(b), {})
