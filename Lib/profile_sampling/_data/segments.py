"""Segments of a profile that never ends: what their files are called.

    20261129T030240.000123Z+10000ms-shop-web-0-41.segment.pb.gz

Names sort by when segments began.
"""

from time import gmtime, strftime

from profile_sampling._data.values import Value

SUFFIX = '.segment.pb.gz'
_IN_NAMES = frozenset('abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ'
                      '0123456789._-')
_LONGEST_HOST = 64
_MS, _SECOND = 1_000_000, 1_000_000_000


class Segment(Value):
    """What a name says.

    begin_ns, end_ns  since the epoch
    host, pid         whose it is
    """

    __slots__ = ('begin_ns', 'end_ns', 'host', 'pid')


def name(begin_ns, duration_ns, host, pid):
    """Return the name of the file of a segment."""
    seconds, ns = divmod(begin_ns, _SECOND)
    host = ''.join([char if char in _IN_NAMES else '_' for char in host])
    return (f'{strftime("%Y%m%dT%H%M%S", gmtime(seconds))}.{ns // 1000:06}Z'
            f'+{duration_ns // _MS}ms-{host[:_LONGEST_HOST]}-{pid}{SUFFIX}')


def parsed(name):
    """Return the Segment that a name says, or None."""
    from datetime import UTC, datetime
    moment, _, rest = name.removesuffix(SUFFIX).partition('Z+')
    length_ms, _, rest = rest.partition('ms-')
    host, _, pid = rest.rpartition('-')
    if not (name.endswith(SUFFIX) and host and length_ms.isdecimal()
            and pid.isdecimal()):
        return None
    try:
        begin = datetime.strptime(moment, '%Y%m%dT%H%M%S.%f')
    except ValueError:
        return None
    begin_ns = (int(begin.replace(microsecond=0, tzinfo=UTC).timestamp())
                * _SECOND + begin.microsecond * 1000)
    return Segment(begin_ns, begin_ns + int(length_ms) * _MS, host, int(pid))
