"""Data in a hidden comment of a pprof file: compressed, and as text."""

import binascii

try:
    import zlib
except ImportError:
    # See writer.
    zlib = None

_PLAIN, _PACKED = 'plain', 'zlib'


def pack(data):
    """Return (kind, text)."""
    kind = _PLAIN
    if zlib is not None:
        kind, data = _PACKED, zlib.compress(data)
    return kind, binascii.b2a_base64(data, newline=False).decode()


def unpack(text, kind, size, what):
    """Return the *size* bytes of a text, or raise ValueError."""
    try:
        data = binascii.a2b_base64(text, strict_mode=True)
    except ValueError as exc:
        raise ValueError(f'has a damaged {what} ({exc})') from None
    if kind == _PACKED:
        data = _unpacked(data, size, what)
    if kind not in (_PACKED, _PLAIN) or len(data) != size:
        raise ValueError(f'has a damaged {what}: it has another length')
    return data


def _unpacked(data, size, what):
    import zlib
    try:
        return zlib.decompressobj().decompress(data, size + 1)
    except zlib.error as exc:
        raise ValueError(f'has a damaged {what} ({exc})') from None


def number(text, what):
    """Return a number of 64 bits, or raise ValueError."""
    # They are at most 20 digits.
    if not (text.isascii() and text.isdigit() and len(text) <= 20):
        raise ValueError(f'has a damaged {what}: {text[:40]!r} is no number')
    return int(text)
