"""Protocol buffers, written and taken apart by hand.

For tests that make files which no writer makes, or damage those that one did.
"""

VARINT, FIXED_64, BYTES, FIXED_32 = 0, 1, 2, 5
_MASK_64 = 0xFFFF_FFFF_FFFF_FFFF


class Message:
    """A message being encoded."""

    def __init__(self):
        self.data = bytearray()

    def number(self, field, value):
        """A varint field; zero is the default and is not written."""
        if value:
            self.data += varint(field << 3)
            self.data += varint(value)

    def payload(self, field, payload):
        """A length-delimited field: message, string or packed numbers."""
        self.data += varint(field << 3 | BYTES)
        self.data += varint(len(payload))
        self.data += payload

    def packed(self, field, values):
        self.payload(field, b''.join(map(varint, values)))


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
