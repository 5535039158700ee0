"""Writer of pprof files: gzipped protocol buffers.

Sample types are the profile's types of values, what it is about last and named
as the default: readers that know no default take the last.  A frame is a
Location of one Line.  system_name stays empty, because pprof takes names such
as <module> for C++ templates and erases them when both names are equal.  A
function that is not Python has a place that names its kind: '<C>',
'<operator>', and none for a pseudo function, whose name is in brackets.  The
instruction that the innermost Python frame had come to is in labels, not in
the address of its Location: addresses would have to be unique in the file.
Who held the GIL while a thread waited is in labels, too: 'gil holder' is what
people read, 'module.function (callee)', and with 'gil holder place',
'file:line', it tells which function that is; 'gil holder site' and its place
are the line of the program's own that had called that.  Comments beginning with '#' are
not shown by pprof; in them is what only the reader of this package needs.
"""

try:
    import zlib
except ImportError:
    # An interpreter can be built without it; readers of pprof take the plain
    # message as well.
    zlib = None

from profile_sampling._data.losses import lost_counts, other_losses
from profile_sampling._data.origins import code_of
from profile_sampling._data.values import NAMES
from profile_sampling._formats.pprof import (
    COVERED, HAS_MINE, IDLE, KEY, MARK, ORIGIN, PROCESS, VALUE, counts,
    lives, process_text)
from profile_sampling._formats.pprof.encoder import Encoder, Header

DOC_URL = 'https://docs.python.org/3/library/profile_sampling.html'

# zlib's code for a gzip frame around the largest window; the header it
# writes has no time in it, so equal profiles are equal bytes.
_GZIP_WBITS = 31


# What writes a time line, imported when it is known that there will be one.
_parts = []


def import_moments():
    """Have what writes time lines imported."""
    if not _parts:
        from profile_sampling._formats.pprof import moments
        _parts.append(moments.comment)
    return _parts[0]


def encode(tables, *, compress=True):
    """Return the bytes of the pprof file of a profile."""
    encoder = Encoder(tables)
    comments = [*lives.comments(tables), *counts.comments(tables)]
    if _has_moments(tables):
        comments.append(import_moments()(tables, encoder.rows))
    data = encoder.message(header(tables, comments))
    if not compress or zlib is None:
        return data
    return gzipped(data)


def _has_moments(tables):
    if not tables.has_timeline:
        return False
    # A stale one has records only if it was merged with another.  Without
    # them the values that records have need not be there.
    line = tables.timeline
    return len(line) > 0 or not line.is_stale


def gzipped(data, level=-1):
    """Return data in a gzip frame.

    Raise ModuleNotFoundError where there is no zlib.
    """
    if zlib is None:
        raise ModuleNotFoundError("No module named 'zlib'", name='zlib')
    return zlib.compress(data, level, _GZIP_WBITS)


def header(tables, more_comments=()):
    """Return what the message of a profile says of the whole."""
    version = tables.python_version.split('.')
    return Header(
        binary='python' + '.'.join(version[:2]),
        time_ns=tables.start_time_ns, duration_ns=tables.duration_ns,
        period_ns=1_000_000_000 // tables.rate_hz if tables.rate_hz else 0,
        comments=[*_comments(tables), *more_comments], doc_url=DOC_URL)


def _comments(tables):
    yield (f'Python {tables.python_version or "?"}, '
           f'mode {tables.mode}, {tables.rate_hz} Hz, '
           f'depth {tables.depth_frames} frames')
    for reason, count in lost_counts(tables.stats).items():
        yield f'lost {count} samples: {reason.replace("_", " ")}'
    yield from other_losses(tables.stats)
    yield MARK
    yield f'# {IDLE}'
    yield f'# {HAS_MINE} {int(tables.has_mine)}'
    for name in tables.schema.plain_keys:
        yield f'# {KEY} {name}'
    for its in tables.value_types:
        yield f'# {VALUE} {its.adds} {its.of} {its.name}'
    yield f'# python {tables.python_version}'
    if tables.pid is not None:
        yield f'# pid {tables.pid}'
    processes = tables.processes
    if len(processes) == 1 and None not in processes:
        yield f'# {PROCESS} {process_text(*processes)}'
    yield f'# mode {tables.mode}'
    yield f'# rate_hz {tables.rate_hz}'
    yield f'# depth_frames {tables.depth_frames}'
    yield f'# names {NAMES[tables.names]}'
    if tables.whole_cpu_ns is not None:
        yield f'# whole_cpu_ns {tables.whole_cpu_ns}'
    if len(tables.covered) > 1:
        yield f'# {COVERED} ' + ' '.join([
            str(ns) for span in tables.covered for ns in span])
    if tables.span_ns is not None:
        begin_ns, end_ns = tables.span_ns
        yield f'# span_ns {begin_ns} {end_ns}'
    for name, text in tables.meta.items():
        yield f'# meta {name} {text}'
    for name, value in tables.stats.items():
        yield f'# stat {name} {value}'
    # A name alone does not tell where the module ends.
    for module in dict.fromkeys([function.module for function
                                 in tables.functions]):
        if module is not None:
            yield f'# module {module}'
    for code in dict.fromkeys([code_of(function) for function
                               in tables.functions
                               if function.kind == 'python']):
        yield f'# {ORIGIN} {tables.origins[code]} {code}'
