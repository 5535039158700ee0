"""The rows of what a profile adds up to.

This file owns what a row says and how rows compare and print.  It must not
know how they come about.
"""

from profile_sampling._data.values import Value


class _FlatRow(Value):
    __slots__ = ()

    def flat_ns(self, mode):
        """Own time on the clock of *mode*, in nanoseconds."""
        return self.flat_cpu_ns if mode == 'cpu' else self.flat_wall_ns


class _Row(_FlatRow):
    __slots__ = ()

    def cum_ns(self, mode):
        """Time including callees on the clock of *mode*, in nanoseconds."""
        return self.cum_cpu_ns if mode == 'cpu' else self.cum_wall_ns


_FLAT = ('flat_count', 'flat_cpu_ns', 'flat_wall_ns')
_WEIGHTS = (*_FLAT, 'cum_count', 'cum_cpu_ns', 'cum_wall_ns')


class FunctionRow(_Row):
    """What a function cost: flat is its own, cum includes its callees.

    C functions, operators and pseudo functions are callees like any other:
    the flat time of a Python function is that of its bytecode alone.
    """

    __slots__ = ('function', *_WEIGHTS)


class LineRow(_Row):
    """What a line cost: flat is its own, cum includes what it called.

    As for functions, flat is the time of the line's bytecode alone; what
    its C functions and operators took is in cum.  line is 0 for what is
    not Python.
    """

    __slots__ = ('function', 'line', *_WEIGHTS)


class CalleeRow(Value):
    """What was directly below an instruction, and for how long.

    function  a C function, an operator or a pseudo function
    count     records of samples
    cpu_ns    CPU time, in nanoseconds
    wall_ns   wall-clock time, in nanoseconds
    """

    __slots__ = ('function', 'count', 'cpu_ns', 'wall_ns')

    def ns(self, mode):
        """Time on the clock of *mode*, in nanoseconds."""
        return self.cpu_ns if mode == 'cpu' else self.wall_ns


class LabelRow(Value):
    """What the samples with one value of a label cost.

    value    the text; None for the samples without the label
    count    records of samples, and the weights of sample()
    cpu_ns   CPU time, in nanoseconds
    wall_ns  wall-clock time, in nanoseconds
    """

    __slots__ = ('value', 'count', 'cpu_ns', 'wall_ns')

    def ns(self, mode):
        """Time on the clock of *mode*, in nanoseconds."""
        return self.cpu_ns if mode == 'cpu' else self.wall_ns


class GILHolderRow(Value):
    """How long a place in a thread waited while another held the GIL.

    thread    the Thread that waited
    function  its innermost Python function, or None if there was none
    line      where in it; 0 when there is none
    holder    the GILHolder
    count     records of samples
    wall_ns   wall-clock time, in nanoseconds
    """

    __slots__ = ('thread', 'function', 'line', 'holder', 'count', 'wall_ns')


class InstructionRow(_FlatRow):
    """What an instruction of a Python function cost.

    function, line, column, instruction_offset
                         where it is, as in Frame
    base_opcode          number of the generic instruction, 0 when not known
    flat_count, flat_cpu_ns, flat_wall_ns
                         all samples whose innermost Python frame was at
                         it, in whatever C function, operator or state
    specialised_count    how many of the records saw it specialised
    unspecialised_count  how many saw it generic although the interpreter
                         has specialisations of it.  Both are 0 when it has
                         none, or the session did not name opcodes
    opnames              the specialisations that were seen, as a tuple of
                         (name, count), the most frequent first
    callees              tuple of CalleeRow, the most expensive first.  What
                         they leave of the flat weights was in the bytecode
                         itself
    """

    __slots__ = ('function', 'line', 'column', 'instruction_offset',
                 'base_opcode', *_FLAT, 'specialised_count',
                 'unspecialised_count', 'opnames', 'callees')

    @property
    def base_opname(self):
        """Name of the generic instruction, or None when not known."""
        from profile_sampling._data import opcodes
        return opcodes.name(self.base_opcode)

    @property
    def deoptimised_count(self):
        """Records that saw it generic, if any saw it specialised."""
        return self.unspecialised_count if self.specialised_count else 0
