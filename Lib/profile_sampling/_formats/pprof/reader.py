"""Reader of pprof files.

This file owns how a file becomes an encoded message, compressed or not, and
what is said of a file that cannot be read.  It must not know what the message
means.
"""

import os

from profile_sampling._files import check_binary
from profile_sampling._formats.pprof import decoder
from profile_sampling._formats.pprof.wire import Budget

MAX_BYTES = 512 << 20
_CHUNK_BYTES = 1 << 16


def read(path, max_bytes=None):
    """Return the tables of a pprof file, as the core would give them.

    *path* may be a binary file object.
    """
    budget = Budget(MAX_BYTES if max_bytes is None else max_bytes)
    if not hasattr(path, 'read'):
        with open(path, 'rb') as file:
            return _read(file, os.fsdecode(path), budget)
    check_binary(path)
    name = getattr(path, 'name', None)
    return _read(path, name if isinstance(name, str) else 'the file', budget)


def _read(file, name, budget):
    try:
        data = _content(file, budget)
        if 0 not in data:
            # Each one has an empty string in it.
            raise ValueError('is not a pprof file')
        return decoder.decode(data, budget)
    except ValueError as exc:
        raise ValueError(f'{name}: {exc}') from None


def decode(data, max_bytes=MAX_BYTES):
    """Return the tables of an encoded, uncompressed message."""
    return decoder.decode(data, Budget(max_bytes))


def _content(file, budget):
    """Return the message in a file, decompressed."""
    head = file.read(4)
    if head[:2] == b'\x1f\x8b':
        return _decompressed(head, file, budget)
    if head == b'\x28\xb5\x2f\xfd':
        raise ValueError('is compressed with zstd; decompress it first')
    data = bytearray(head)
    while chunk := file.read(_CHUNK_BYTES):
        # Twice: a buffer that grows may be copied.
        budget.spend(2 * len(chunk))
        data += chunk
    if not data:
        raise ValueError('is empty')
    return bytes(data)


def _decompressed(chunk, file, budget):
    import zlib
    data = bytearray()
    inflate = zlib.decompressobj(wbits=31)
    try:
        while True:
            part = inflate.decompress(chunk, _CHUNK_BYTES)
            budget.spend(2 * len(part))
            data += part
            if inflate.eof:
                # Members may follow each other, and zeros fill blocks.
                chunk = (inflate.unused_data or file.read(_CHUNK_BYTES)
                         ).lstrip(b'\0')
                while not chunk:
                    chunk = file.read(_CHUNK_BYTES)
                    if not chunk:
                        return bytes(data)
                    chunk = chunk.lstrip(b'\0')
                inflate = zlib.decompressobj(wbits=31)
                continue
            chunk = inflate.unconsumed_tail or file.read(_CHUNK_BYTES)
            if not chunk and len(part) < _CHUNK_BYTES:
                raise ValueError('is cut off')
    except zlib.error as exc:
        raise ValueError(f'has damaged compressed data ({exc})') from None
