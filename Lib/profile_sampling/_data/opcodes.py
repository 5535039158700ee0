"""Numbers and names of instructions.

This file owns what this interpreter's own tables say about opcodes.  It must
not know where the numbers come from.
"""

from _opcode_metadata import _specializations, _specialized_opmap, opmap

# The number that stands for an instruction that is not known.  It is that of
# CACHE, which is data between instructions and never runs.
UNKNOWN = 0
# The bytecode has one byte for it; what is above exists in the compiler.
_LAST = 255

_NUMBERS = {name: number
            for name, number in (opmap | _specialized_opmap).items()
            if UNKNOWN < number <= _LAST}
_NAMES = {number: name for name, number in _NUMBERS.items()}
_BASES = {_NUMBERS[specialized]: _NUMBERS[base]
          for base, names in _specializations.items()
          for specialized in names}
_FAMILIES = frozenset(_BASES.values())


def name(number):
    """Return the name of an instruction, or None."""
    return _NAMES.get(number)


def number(name):
    """Return the number of an instruction, or UNKNOWN.

    Names are of all versions of Python, numbers of this one.
    """
    return _NUMBERS.get(name, UNKNOWN)


def base(number):
    """Return the number of the generic form of an instruction."""
    if number not in _NAMES:
        return UNKNOWN
    return _BASES.get(number, number)


def is_specialized(number):
    """Return whether it is a specialized form of another instruction."""
    return number in _BASES


def can_specialize(number):
    """Return whether it is the generic form of specialized ones."""
    return number in _FAMILIES
