"""What each instruction cost, and how the interpreter had specialised it.

This file owns the sums per instruction.  It must not know any file format.
"""

from profile_sampling._data import opcodes
from profile_sampling._data.rows import CalleeRow, InstructionRow
from profile_sampling._data.values import OPCODES


def rows(tables):
    """Return the InstructionRows of a profile, the most expensive first."""
    # Without opcodes every number is that of a generic instruction: it says
    # nothing about how the instruction was specialised.
    specialisation = bool(tables.names & OPCODES)
    frames = list(tables.frame_tuples())
    frame_of_node, callee_of_node = tables.innermost_python()
    sites = {}
    for node, _, _, _, count, cpu_ns, wall_ns in tables.row_tuples():
        if frame_of_node[node] < 0:
            continue
        function, line, column, offset, opcode = frames[frame_of_node[node]]
        key = function, line, column, offset, opcodes.base(opcode)
        site = sites.get(key)
        if site is None:
            site = sites[key] = _Site()
        site.add(count, cpu_ns, wall_ns)
        if specialisation:
            site.add_opcode(opcode, count)
        callee = callee_of_node[node]
        if callee >= 0:
            site.add_callee(frames[callee][0], count, cpu_ns, wall_ns)
    functions = tables.functions
    mode = tables.mode
    result = [site.row(functions, key, mode) for key, site in sites.items()]
    result.sort(key=lambda row: (
        -row.flat_ns(mode), *_by_name(row.function), row.line, row.column,
        row.instruction_offset, row.base_opcode))
    return result


class _Site:
    """The sums of one instruction."""

    __slots__ = ('_weights', '_specialised', '_unspecialised', '_callees')

    def __init__(self):
        self._weights = 0, 0, 0
        self._specialised = {}
        self._unspecialised = 0
        self._callees = {}

    def add(self, *weights):
        self._weights = _sum(self._weights, weights)

    def add_opcode(self, opcode, count):
        if opcodes.is_specialised(opcode):
            self._specialised[opcode] = (
                self._specialised.get(opcode, 0) + count)
        elif opcodes.can_specialise(opcode):
            self._unspecialised += count

    def add_callee(self, function, *weights):
        self._callees[function] = _sum(
            self._callees.get(function, (0, 0, 0)), weights)

    def row(self, functions, key, mode):
        function, *place = key
        opnames = [(opcodes.name(opcode), count)
                   for opcode, count in self._specialised.items()]
        opnames.sort(key=lambda item: (-item[1], item[0]))
        callees = [CalleeRow(functions[callee], *weights)
                   for callee, weights in self._callees.items()]
        callees.sort(key=lambda callee: (-callee.ns(mode),
                                         *_by_name(callee.function)))
        return InstructionRow(
            functions[function], *place, *self._weights,
            sum(self._specialised.values()), self._unspecialised,
            tuple(opnames), tuple(callees))


def _sum(one, other):
    return tuple([a + b for a, b in zip(one, other)])


def _by_name(function):
    return (function.name, function.filename, function.first_line,
            function.kind)
