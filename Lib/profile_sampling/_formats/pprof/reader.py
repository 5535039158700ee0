"""Reader of pprof files."""

import io
import os
from itertools import chain

from profile_sampling._data import checks, intake
from profile_sampling._files import check_binary
from profile_sampling._formats import embedded
from profile_sampling._formats.pprof import decoder, others
from profile_sampling._formats.pprof.budget import Budget

# What is kept of a file is counted, byte by byte, and it is little more than
# the tables that it was written from: no session of ours comes near this.
MAX_BYTES = 512 << 20
_CHUNK_BYTES = 1 << 16
# What tells files apart.
_HEAD_BYTES = 512


def read(path, max_bytes=None):
    """Return the tables of a pprof file, as the core would give them.

    *path* may be a binary file object.
    """
    budget = Budget(MAX_BYTES if max_bytes is None
                    else checks.whole('max_bytes', max_bytes, least=0))
    if not hasattr(path, 'read'):
        # Not the number of a file, which open() would close in the end.
        with open(os.fspath(path), 'rb') as file:
            return _read(file, os.fsdecode(path), budget)
    check_binary(path)
    name = getattr(path, 'name', None)
    return _read(path, name if isinstance(name, str) else 'the file', budget)


def tables(path, max_bytes=None):
    """The same as Tables, and nothing in them is still to be read."""
    raw = read(path, max_bytes)
    try:
        result = intake.tables(raw)
        result.read_timeline()
    except ValueError as exc:
        name = path if isinstance(path, str) else 'the file'
        raise ValueError(f'{name}: {exc}') from None
    return result


def _read(file, name, budget):
    head = b''
    try:
        head = file.read(_HEAD_BYTES)
        return decoder.decode(_message(head, file, budget), budget)
    except ValueError as exc:
        raise ValueError(f'{name}: {others.said(name, head) or exc}') from None


def decode(data, max_bytes=MAX_BYTES):
    """Return the tables of an encoded, uncompressed message."""
    return decoder.decode(bytes(data), Budget(max_bytes))


def _message(head, file, budget):
    """Return the message in a file; *head* has been read of it."""
    message = io.BytesIO()
    for chunk in _chunks(head, file):
        # It grows by an eighth, and may be copied.
        budget.spend(len(chunk))
        message.write(chunk)
    return message.getvalue()


def _chunks(head, file):
    """Iterate over the message in a file, decompressed."""
    if head[:2] == b'\x1f\x8b':
        return _decompressed(head, file)
    if head[:4] == b'\x28\xb5\x2f\xfd':
        raise ValueError('is compressed with zstd; decompress it first')
    if head[:1] == b'<':
        block = embedded.Block(head, file)
        return _chunks(block.read(_HEAD_BYTES), block)
    if not head:
        raise ValueError('is empty')
    return chain([head], iter(lambda: file.read(_CHUNK_BYTES), b''))


def _decompressed(chunk, file):
    """Iterate over the parts of the message."""
    import zlib
    inflate = zlib.decompressobj(wbits=31)
    try:
        while True:
            part = inflate.decompress(chunk, _CHUNK_BYTES)
            if part:
                yield part
            if inflate.eof:
                # Members may follow each other, and zeros fill blocks.
                chunk = (inflate.unused_data or file.read(_CHUNK_BYTES)
                         ).lstrip(b'\0')
                while not chunk:
                    chunk = file.read(_CHUNK_BYTES)
                    if not chunk:
                        return
                    chunk = chunk.lstrip(b'\0')
                inflate = zlib.decompressobj(wbits=31)
                continue
            chunk = inflate.unconsumed_tail or file.read(_CHUNK_BYTES)
            if not chunk and len(part) < _CHUNK_BYTES:
                raise ValueError('is cut off')
    except zlib.error as exc:
        raise ValueError(f'has damaged compressed data ({exc})') from None
