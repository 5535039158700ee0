"""Protocol buffers: numbers and fields, written and read.

What is read may be hostile: everything wrong is a ValueError that names the
fault.
"""

VARINT, FIXED_64, BYTES, FIXED_32 = 0, 1, 2, 5

_MASK_64 = 0xFFFF_FFFF_FFFF_FFFF
_SIGN_64 = 1 << 63
_MAX_VARINT_BYTES = 10
_FIXED_BYTES = {FIXED_64: 8, FIXED_32: 4}
_SHORT = tuple([bytes((number,)) for number in range(128)])


def varint(number):
    """Return an encoded number; a negative one is in two's complement."""
    if 0 <= number < 128:
        return _SHORT[number]
    number &= _MASK_64
    data = []
    while number > 127:
        data.append(number & 127 | 128)
        number >>= 7
    data.append(number)
    return bytes(data)


def number(field, value):
    """Return a field that is a number; 0, the default, is not written."""
    return varint(field << 3 | VARINT) + varint(value) if value else b''


def payload(field, data):
    """Return a field of bytes: a string, a message or packed numbers."""
    return varint(field << 3 | BYTES) + varint(len(data)) + data


def fault(what):
    return ValueError(f'is not a pprof file, or is damaged: {what}')


def wrong_type(field):
    return fault(f'field {field} has the wrong wire type')


def _varint_at(data, at):
    """Return the number that begins there, and where it ends."""
    value = shift = 0
    for byte in data[at:at + _MAX_VARINT_BYTES]:
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value & _MASK_64, at
        shift += 7
    if shift < 7 * _MAX_VARINT_BYTES:
        raise fault('a number is cut off')
    raise fault('a number is longer than 64 bits')


def fields(data):
    """Iterate over the (number, wire type, value) of a message's fields."""
    at = 0
    end = len(data)
    while at < end:
        field, wire_type, value, at = field_at(data, at)
        yield field, wire_type, value


def field_at(data, at):
    """Return the number, the wire type and the value of the field that begins
    there, and where it ends.

    A value is a number without a sign, or bytes.
    """
    end = len(data)
    key = data[at]
    at += 1
    if key > 127:
        key, at = _varint_at(data, at - 1)
    wire_type = key & 7
    if key < 8:
        raise fault('a field has number 0')
    if wire_type == BYTES or wire_type == VARINT:
        value = data[at] if at < end else 128
        at += 1
        if value > 127:
            value, at = _varint_at(data, at - 1)
        if wire_type == VARINT:
            return key >> 3, wire_type, value, at
    else:
        value = _FIXED_BYTES.get(wire_type)
        if value is None:
            raise fault(f'a field has the unknown wire type {wire_type}')
    if value > end - at:
        raise fault('a field is longer than what holds it')
    return key >> 3, wire_type, data[at:at + value], at + value


def numbers_of(data, wanted):
    """Return some fields of a message of numbers, 0 for those it lacks."""
    found = dict.fromkeys(wanted, 0)
    for field, wire_type, value in fields(data):
        if field in found:
            if wire_type != VARINT:
                raise wrong_type(field)
            found[field] = value
    return list(map(signed, found.values()))


def signed(value):
    """Return a number of 64 bits with its sign."""
    return value if value < _SIGN_64 else value - _MASK_64 - 1


def unpacked(data):
    """Return the numbers of a packed field."""
    numbers = []
    value = shift = 0
    for byte in data:
        value |= (byte & 127) << shift
        if byte < 128:
            numbers.append(signed(value & _MASK_64))
            value = shift = 0
        else:
            shift += 7
            if shift == 7 * _MAX_VARINT_BYTES:
                raise fault('a number is longer than 64 bits')
    if shift:
        raise fault('a number is cut off')
    return numbers
