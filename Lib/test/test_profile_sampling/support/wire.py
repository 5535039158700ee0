"""Protocol buffers, written and taken apart by hand.

For tests that make files which no writer makes, or damage those that one did.
"""

VARINT, FIXED_64, BYTES, FIXED_32 = 0, 1, 2, 5
_MASK_64 = 0xFFFF_FFFF_FFFF_FFFF


def message(*fields):
    """Encode a message of (number, value): an integer, text or bytes, or a
    list of integers, which are packed.  Zero is the default, not written."""
    result = bytearray()
    for number, value in fields:
        if isinstance(value, int):
            if value:
                result += varint(number << 3) + varint(value)
            continue
        if isinstance(value, list):
            value = b''.join(map(varint, value))
        elif isinstance(value, str):
            value = value.encode()
        result += varint(number << 3 | BYTES) + varint(len(value)) + value
    return bytes(result)


def varint(value):
    """Encode an integer; a negative one as 64 bits in two's complement."""
    value &= _MASK_64
    data = bytearray()
    while value > 127:
        data.append(value & 127 | 128)
        value >>= 7
    data.append(value)
    return bytes(data)


def read_varint(data, position):
    """Return the varint at *position* and the position after it."""
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value & _MASK_64, position
        shift += 7


def fields(data):
    """Yield (field number, wire type, number or bytes) of a good message."""
    position = 0
    sizes = {FIXED_64: 8, FIXED_32: 4}
    while position < len(data):
        key, position = read_varint(data, position)
        field, wire_type = key >> 3, key & 7
        if wire_type == VARINT:
            value, position = read_varint(data, position)
        else:
            size = sizes.get(wire_type)
            if size is None:
                size, position = read_varint(data, position)
            value = data[position:position + size]
            position += size
        yield field, wire_type, value
