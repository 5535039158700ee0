"""Numbers and names of instructions.

Numbers are those of this interpreter.  Files have names, as numbers differ
between versions: one that this version does not have gets a number of its own.
"""

try:
    from _opcode_metadata import _specialized_opmap, opmap
except ImportError:
    # Before 3.13: names in files are all that is known.
    opmap, _specialized_opmap = {}, {}

# The number that stands for an instruction that is not known.  It is that of
# CACHE, which is data between instructions and never runs.
UNKNOWN = 0
# The bytecode has one byte for it; what is above exists in the compiler.
_LAST = 255
# Of names of other versions: how many, and how long.  A file may be hostile.
_MOST, _LONGEST = 1024, 64
_31_BITS = (1 << 31) - 1
# The generic instructions of 3.13 that have specialized forms, whose names
# begin with theirs, and what begins so and is none.
_FAMILIES = frozenset({
    'BINARY_OP', 'BINARY_SUBSCR', 'CALL', 'COMPARE_OP', 'CONTAINS_OP',
    'FOR_ITER', 'LOAD_ATTR', 'LOAD_GLOBAL', 'LOAD_SUPER_ATTR', 'RESUME',
    'SEND', 'STORE_ATTR', 'STORE_SUBSCR', 'TO_BOOL', 'UNPACK_SEQUENCE'})
_NO_FORMS = frozenset({'CALL_FUNCTION_EX', 'CALL_INTRINSIC_1',
                       'CALL_INTRINSIC_2', 'CALL_KW'})

_NUMBERS = {name: number
            for name, number in (opmap | _specialized_opmap).items()
            if UNKNOWN < number <= _LAST}
_NAMES = {number: name for name, number in _NUMBERS.items()}


def name(number):
    """Return the name of an instruction, or None."""
    return _NAMES.get(number)


def number(name):
    """Return the number of an instruction, or UNKNOWN."""
    known = _NUMBERS.get(name)
    if known is None:
        return _add(name) if _is_name(name) else UNKNOWN
    return known


def _is_name(name):
    return (len(name) <= _LONGEST and name.isascii() and name.isupper()
            and name.isidentifier())


def _add(name):
    # FNV-1a, the same in every process: frames may be pickled.
    number = 2166136261
    for byte in name.encode():
        number = (number ^ byte) * 16777619 & _31_BITS
    if number <= _LAST or number in _NAMES or len(_NAMES) >= _MOST:
        return UNKNOWN
    _NAMES[number] = name
    _NUMBERS[name] = number
    return number


def _base_name(name):
    if name in _NO_FORMS:
        return name
    at = len(name)
    while at > 0:
        if name[:at] in _FAMILIES:
            return name[:at]
        at = name.rfind('_', 0, at)
    return name


def base(number):
    """Return the number of the generic form of an instruction."""
    its = _NAMES.get(number)
    if its is None:
        return UNKNOWN
    name = _base_name(its)
    return number if name == its else _NUMBERS.get(name) or _add(name)


def is_specialized(number):
    """Return whether it is a specialized form of another instruction."""
    return number in _NAMES and base(number) != number


def can_specialize(number):
    """Return whether it is the generic form of specialized ones."""
    return _NAMES.get(number) in _FAMILIES
