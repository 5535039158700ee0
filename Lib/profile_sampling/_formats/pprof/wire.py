"""Decoding of protocol buffer messages that may be hostile.

This file owns the wire format and the account of memory spent.  It must
not know what the messages mean.  Everything wrong with the data is a
ValueError that says what.
"""

_MASK_64 = 0xFFFF_FFFF_FFFF_FFFF
VARINT, FIXED_64, BYTES, FIXED_32 = 0, 1, 2, 5


class Budget:
    """What reading a file may cost, in bytes of memory.

    Sizes of objects are estimates on the high side: what counts is that
    nothing in the file can make the reader spend memory without limit.
    """

    __slots__ = ('_limit', '_left')

    def __init__(self, limit):
        self._limit = self._left = limit

    def spend(self, n_bytes):
        """Account for memory that stays in use."""
        self.check(n_bytes)
        self._left -= n_bytes

    def check(self, n_bytes):
        """Refuse memory that is used for a moment, if it is too much."""
        if n_bytes > self._left:
            raise ValueError(
                f'needs more than {self._limit:,} bytes of memory to '
                'read; pass a larger max_bytes if you trust the file')


class NotTheFormat(ValueError):
    """What no encoder of protocol buffers writes, or not of this message."""


def varint(data, position, end):
    """Return the varint at *position* and the position after it."""
    value = shift = 0
    while True:
        if position >= end:
            raise NotTheFormat('a number is cut off')
        byte = data[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value & _MASK_64, position
        shift += 7
        if shift > 63:
            raise NotTheFormat('a number is longer than 64 bits')


def signed(value):
    """Read the 64 bits of *value* as a signed number."""
    return value - (1 << 64) if value >> 63 else value


def fields(data, position, end):
    """Yield (field number, wire type, value, end of value) of a message.

    The value of a BYTES field is the position of its first byte.
    """
    while position < end:
        key, position = varint(data, position, end)
        field, wire_type = key >> 3, key & 7
        if not field:
            raise NotTheFormat('a field has number 0')
        if wire_type == VARINT:
            value, position = varint(data, position, end)
            yield field, VARINT, value, position
            continue
        if wire_type == BYTES:
            size, position = varint(data, position, end)
        elif wire_type == FIXED_64:
            size = 8
        elif wire_type == FIXED_32:
            size = 4
        else:
            raise NotTheFormat(
                f'a field has the unknown wire type {wire_type}')
        if size > end - position:
            raise NotTheFormat('a field is longer than what holds it')
        yield field, wire_type, position, position + size
        position += size


def numbers(data, wire_type, value, end):
    """Return the values of a repeated number field, packed or not."""
    if wire_type == VARINT:
        return [value]
    if wire_type != BYTES:
        raise NotTheFormat('a number has the wrong wire type')
    packed = data[value:end]
    if packed.isascii():
        # Every byte is a number of its own.
        return list(packed)
    result = []
    position = value
    while position < end:
        number, position = varint(data, position, end)
        result.append(number)
    return result


def message(data, position, end, wanted):
    """Return {field: value} of a message of single fields.

    *wanted* gives the wire type of each field of interest; the last value
    counts.  A BYTES value is a (start, end) pair.
    """
    result = {}
    for field, wire_type, value, value_end in fields(data, position, end):
        expected = wanted.get(field)
        if expected is None:
            continue
        if wire_type != expected:
            raise NotTheFormat(f'field {field} has the wrong wire type')
        result[field] = (value, value_end) if wire_type == BYTES else value
    return result
