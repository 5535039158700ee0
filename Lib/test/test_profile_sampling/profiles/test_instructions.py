"""Instructions: what they cost, and how they were specialized."""

import opcode
import pickle
import unittest

from profile_sampling._data import opcodes as _opcodes
from profile_sampling._data.rows import CalleeRow
from profile_sampling._data.values import MEASURED, Frame, Function

from ..support.builders import Builder, example


class InstructionsTest(unittest.TestCase):

    def rows(self, builder):
        return builder.profile().instructions()

    def test_where_and_how_much(self):
        b = Builder(names=3)
        b.sample('a.main:1@CALL+2 a.f:7@BINARY_OP_ADD_INT+12', count=2,
                 cpu_ns=3, wall_ns=5)
        row, = self.rows(b)
        self.assertEqual(
            (row.function.name, row.line, row.column, row.instruction_offset,
             row.base_opcode, row.base_opname),
            ('a.f', 7, 0, 12, opcode.opmap['BINARY_OP'], 'BINARY_OP'))
        self.assertEqual(
            (row.self_count, row.self_cpu_ns, row.self_wall_ns), (2, 3, 5))

    def test_callees_are_included(self):
        b = Builder(names=3)
        b.sample('a.f:7@CALL+2', count=1, cpu_ns=1, wall_ns=1)
        b.sample('a.f:7@CALL+2 C:time.sleep', count=2, cpu_ns=2, wall_ns=2)
        b.sample('a.f:7@CALL+2 C:time.sleep [waiting]', count=4, wall_ns=4)
        b.sample('a.f:7@CALL+2 [GIL~wait]', count=8, wall_ns=8)
        row, = self.rows(b)
        self.assertEqual(
            (row.self_count, row.self_cpu_ns, row.self_wall_ns), (15, 3, 15))
        self.assertEqual(row.callees, (
            CalleeRow(Function(None, '[GIL wait]', '', 0, 'pseudo'), MEASURED,
                      (8, 0, 8)),
            CalleeRow(Function('time', 'sleep', '', 0, 'C'), MEASURED,
                      (6, 2, 6))))

    def test_only_the_innermost_python_frame(self):
        b = Builder(names=3)
        b.sample('a.f:1@CALL+2 C:builtins.sorted a.key:5@LOAD_ATTR_SLOT+8',
                 wall_ns=1)
        row, = self.rows(b)
        self.assertEqual(row.function.name, 'a.key')
        self.assertEqual(row.callees, ())

    def test_stacks_without_python_have_no_row(self):
        b = Builder(names=3)
        b.sample('', wall_ns=1, state='unsampled')
        b.sample('[lost]', wall_ns=1, state='lost')
        b.sample('C:time.sleep [waiting]', wall_ns=1, state='waiting')
        self.assertEqual(self.rows(b), [])

    def test_specialized_unspecialized_and_deoptimized(self):
        add, float_ = 'BINARY_OP_ADD_INT', 'BINARY_OP_ADD_FLOAT'
        for names, counts, expected in (
                (3, {'BINARY_OP+2': 3, f'{add}+2': 10, f'{float_}+2': 20},
                 [(30, 3, 3, ((float_, 20), (add, 10)))]),
                (3, {'BINARY_OP+2': 3}, [(0, 3, 0, ())]),
                # One place says nothing of the next.
                (3, {f'{add}+2': 1, 'BINARY_OP+6': 1},
                 [(1, 0, 0, ((add, 1),)), (0, 1, 0, ())]),
                # There are no such instructions of it.
                (3, {'POP_TOP+2': 1}, [(0, 0, 0, ())]),
                # The core gives generic numbers then.
                (1, {'BINARY_OP+2': 1}, [(0, 0, 0, ())])):
            with self.subTest(names=names, counts=counts):
                b = Builder(names=names)
                for instruction, count in counts.items():
                    b.sample(f'a.f:7@{instruction}', count=count)
                self.assertEqual(
                    [(row.specialized_count, row.unspecialized_count,
                      row.deoptimized_count, row.opnames)
                     for row in self.rows(b)], expected)

    def test_unknown_instructions(self):
        b = Builder(names=3).sample('a.f:7', wall_ns=3)
        row, = self.rows(b)
        self.assertEqual((row.base_opcode, row.base_opname,
                          row.instruction_offset), (0, None, -1))

    def test_order_is_by_the_modes_own_weight(self):
        for mode, lines in (('wall', [2, 1]), ('cpu', [1, 2])):
            b = Builder(mode=mode)
            b.sample('a.f:1', cpu_ns=9, wall_ns=1)
            b.sample('a.f:2', cpu_ns=1, wall_ns=9)
            self.assertEqual([row.line for row in self.rows(b)], lines)

    def test_rows_are_values(self):
        row = example().profile().instructions()[0]
        self.assertEqual(pickle.loads(pickle.dumps(row)), row)
        self.assertIsInstance(hash(row), int)
        with self.assertRaises(AttributeError):
            row.opnames = ()


class OpcodesTest(unittest.TestCase):

    def test_names(self):
        for opname, base in (('BINARY_OP_ADD_INT', 'BINARY_OP'),
                             ('BINARY_OP', 'BINARY_OP'),
                             ('RESUME_CHECK', 'RESUME'),
                             ('FOR_ITER_RANGE', 'FOR_ITER'),
                             ('POP_TOP', 'POP_TOP')):
            with self.subTest(opname=opname):
                frame = Frame(None, 0, 0, -1, _opcodes.number(opname))
                self.assertEqual((frame.opname, frame.base_opname),
                                 (opname, base))

    def test_unknown_numbers(self):
        # 0 is CACHE, which is never executed; 256 is the compiler's.
        for number in 0, -1, 256, 10 ** 9:
            with self.subTest(number=number):
                frame = Frame(None, 0, 0, -1, number)
                self.assertIsNone(frame.opname)
                self.assertIsNone(frame.base_opname)
