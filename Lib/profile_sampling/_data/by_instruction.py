"""What each instruction cost, and how the interpreter had specialized it."""

from profile_sampling._data import opcodes
from profile_sampling._data.rows import (
    CalleeRow, InstructionRow, function_rank)
from profile_sampling._data.sums import added, sums_by
from profile_sampling._data.values import COUNT, OPCODES, STATES

_RUNNING = STATES.index('running')


def rows(tables, wanted=None):
    """Return the InstructionRows of a profile, the most expensive first.

    *wanted*, if given, has 1 for each function whose rows these are.
    """
    types = tables.value_types
    # Without opcodes every number is that of a generic instruction: it says
    # nothing about how the instruction was specialized.
    specialization = bool(tables.names & OPCODES) and COUNT in types
    counts = types.index(COUNT) if specialization else None
    frames = list(tables.frame_tuples())
    sites = {}
    nothing = (0,) * len(types)
    for (frame, callee), values in _summed(tables).items():
        if frame < 0:
            continue
        function, line, column, offset, opcode = frames[frame]
        if wanted is not None and not wanted[function]:
            continue
        key = function, line, column, offset, opcodes.base(opcode)
        site = sites.get(key)
        if site is None:
            site = sites[key] = _Site(nothing)
        site.values = added(site.values, values)
        if specialization:
            site.add_opcode(opcode, values[counts])
        if callee >= 0:
            function = frames[callee][0]
            site.callees[function] = added(
                site.callees.get(function, nothing), values)
    result = [site.row(tables, key) for key, site in sites.items()]
    own = tables.own
    result.sort(key=lambda row: (
        -row.self_values[own], *function_rank(row.function), row.line,
        row.column, row.instruction_offset, row.base_opcode))
    return result


def generic(tables):
    """Return {(function, line, opcode): value} of the running time of
    instructions that could have been specialized and were not.

    What they called is not theirs: it takes as long from a specialized one.
    """
    if not tables.names & OPCODES:
        return {}
    frames = list(tables.frame_tuples())
    generic = [opcodes.can_specialize(frame[-1]) for frame in frames]
    innermost, called = tables.innermost_python()
    sums = {}
    for node, state, value in zip(
            tables.column('stack'), tables.column('state'),
            tables.own_column):
        frame = innermost[node]
        if (state == _RUNNING and frame >= 0 and generic[frame]
                and called[node] < 0):
            sums[frame] = sums.get(frame, 0) + value
    result = {}
    for frame, value in sums.items():
        function, line, _, _, opcode = frames[frame]
        key = tables.functions[function], line, opcode
        result[key] = result.get(key, 0) + value
    return result


def _summed(tables):
    """Return {(innermost Python frame, what it calls): values}."""
    frame_of_node, callee_of_node = tables.innermost_python()
    numbers = {}
    number_of_sample = [
        numbers.setdefault((frame_of_node[node], callee_of_node[node]),
                           len(numbers))
        for node in tables.column('stack')]
    sums = sums_by(tables, number_of_sample, len(numbers))
    return dict(zip(numbers, zip(*sums)))


class _Site:
    """The sums of one instruction, and of what it called."""

    __slots__ = ('values', 'callees', '_specialized', '_unspecialized')

    def __init__(self, nothing):
        self.values = nothing
        self.callees = {}
        self._specialized = {}
        self._unspecialized = 0

    def add_opcode(self, opcode, count):
        if opcodes.is_specialized(opcode):
            self._specialized[opcode] = (
                self._specialized.get(opcode, 0) + count)
        elif opcodes.can_specialize(opcode):
            self._unspecialized += count

    def row(self, tables, key):
        functions = tables.functions
        types = tables.value_types
        function, *place = key
        opnames = [(opcodes.name(opcode), count)
                   for opcode, count in self._specialized.items()]
        opnames.sort(key=lambda item: (-item[1], item[0]))
        callees = [CalleeRow(functions[callee], types, values)
                   for callee, values in self.callees.items()]
        callees.sort(key=lambda callee: (-callee.values[tables.own],
                                         *function_rank(callee.function)))
        return InstructionRow(
            functions[function], *place, types, self.values,
            sum(self._specialized.values()), self._unspecialized,
            tuple(opnames), tuple(callees))
