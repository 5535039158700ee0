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

    def test_self_ns(self):
        b = Builder().sample('a.f', cpu_ns=3, wall_ns=5)
        row, = self.rows(b)
        self.assertEqual((row.self_ns('cpu'), row.self_ns('wall')), (3, 5))

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
        b = Builder(names=3)
        for opname, count in (('BINARY_OP', 3), ('BINARY_OP_ADD_INT', 10),
                              ('BINARY_OP_ADD_FLOAT', 20)):
            b.sample(f'a.f:7@{opname}+2', count=count)
        row, = self.rows(b)
        self.assertEqual(
            (row.specialized_count, row.unspecialized_count,
             row.deoptimized_count), (30, 3, 3))
        self.assertEqual(row.opnames, (('BINARY_OP_ADD_FLOAT', 20),
                                       ('BINARY_OP_ADD_INT', 10)))

    def test_never_specialized_is_not_deoptimized(self):
        row, = self.rows(Builder(names=3).sample('a.f:7@BINARY_OP+2',
                                                 count=3))
        self.assertEqual(
            (row.specialized_count, row.unspecialized_count,
             row.deoptimized_count, row.opnames), (0, 3, 0, ()))

    def test_one_site_says_nothing_about_the_next(self):
        b = Builder(names=3)
        b.sample('a.f:7@BINARY_OP_ADD_INT+2')
        b.sample('a.f:7@BINARY_OP+6')
        self.assertEqual([row.deoptimized_count for row in self.rows(b)],
                         [0, 0])

    def test_what_cannot_be_specialized_is_not_unspecialized(self):
        row, = self.rows(Builder(names=3).sample('a.f:7@POP_TOP+2'))
        self.assertEqual((row.specialized_count, row.unspecialized_count),
                         (0, 0))

    def test_without_opcodes_nothing_is_unspecialized(self):
        # The core gives generic numbers then.
        row, = self.rows(Builder(names=1).sample('a.f:7@BINARY_OP+2'))
        self.assertEqual((row.base_opname, row.unspecialized_count),
                         ('BINARY_OP', 0))

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

    def test_every_name_has_its_number(self):
        for opname, number in (opcode.opmap
                               | opcode._specialized_opmap).items():
            if 0 < number < 256:
                self.assertEqual(_opcodes.number(opname), number)
                self.assertEqual(_opcodes.name(number), opname)

    def test_unknown_names(self):
        for opname in '', 'CACHE', 'JUMP', 'BINARY_OP_ADD_QUATERNION':
            self.assertEqual(_opcodes.number(opname), 0, opname)

    def test_families(self):
        number = _opcodes.number
        self.assertTrue(_opcodes.is_specialized(number('CALL_TYPE_1')))
        self.assertFalse(_opcodes.is_specialized(number('CALL')))
        self.assertTrue(_opcodes.can_specialize(number('CALL')))
        self.assertFalse(_opcodes.can_specialize(number('CALL_TYPE_1')))
        self.assertFalse(_opcodes.can_specialize(number('POP_TOP')))


if __name__ == '__main__':
    unittest.main()
