"""What a file is that is no pprof file, as far as that is plain."""

from profile_sampling import _formats

_KINDS = {'collapsed': 'collapsed stacks', 'speedscope': 'a speedscope file',
          'gecko': 'a file of the Firefox Profiler',
          'gecko-gz': 'a file of the Firefox Profiler',
          'callgrind': 'a Callgrind file', 'dot': 'a graph in DOT',
          'pstats': 'a pstats file', 'profile-json': 'JSON'}
# A message of pprof has other bytes where it begins: it is of small numbers.
_TEXT = bytes([*b'\t\n\v\f\r\x1b', *range(0x20, 0x7f), *range(0x80, 0x100)])
# How marshal begins a dictionary.
_MARSHALLED = b'{', b'\xfb'


def said(name, head):
    """Return what to say of a file with these first bytes, or None."""
    head = _uncompressed(head)
    if not head:
        return None
    if head.translate(None, _TEXT):
        if not head.startswith(_MARSHALLED):
            return None
        kind = _KINDS['pstats']
    elif name.endswith('.py'):
        return 'is not a pprof file but a Python program; record profiles it'
    else:
        kind = _kind_of_text(name, head.lstrip())
    return kind and (f'is not a pprof file but {kind}; only pprof files '
                     '(.pb.gz) and pages (.html) can be read')


def _uncompressed(head):
    if not head.startswith(b'\x1f\x8b'):
        return head
    import zlib
    try:
        return zlib.decompressobj(wbits=31).decompress(head, len(head))
    except zlib.error:
        return b''


def _kind_of_text(name, head):
    if head.startswith(b'<'):
        # What is wrong with a page is known better.
        is_svg = head.startswith((b'<svg', b'<?xml')) and b'<svg' in head
        return 'an SVG image' if is_svg else None
    try:
        format = _formats.choose(name)
    except ValueError:
        format = None
    return _KINDS.get(format) or (
        'JSON' if head.startswith((b'{', b'[')) else 'text')
