"""Directories of segments, which -X sampleprof=spool= has written."""

import os
import time

from profile_sampling._cli import common
from profile_sampling._cli.common import Failure, say
from profile_sampling._data import segments
from profile_sampling._data.losses import SPOOL_ENDED
from profile_sampling._data.values import Value
from profile_sampling._formats.words import counted, date

_SECOND = 1_000_000_000
_UNITS = {'s': 1, 'm': 60, 'h': 3600, 'd': 86_400}
_DAY_NS = 86_400 * _SECOND
# Whoever wrote none for the time of so many was killed.
_SEGMENTS_MISSING = 3


class Moment(Value):
    """A time of day, in nanoseconds, and its day, or None: the last one."""

    __slots__ = ('of_day_ns', 'day')


def moment(text):
    """Return the Moment of '03:08', '03:08:40' or '2026-11-29T03:08:40'."""
    from datetime import UTC, datetime
    day, separator, clock = text.rpartition('T')
    parts = datetime.strptime(
        clock, '%H:%M:%S.%f' if '.' in clock else
        '%H:%M:%S' if clock.count(':') > 1 else '%H:%M')
    of_day_ns = ((parts.hour * 3600 + parts.minute * 60 + parts.second)
                 * _SECOND + parts.microsecond * 1000)
    if not separator:
        return Moment(of_day_ns, None)
    start = datetime.strptime(day, '%Y-%m-%d').replace(tzinfo=UTC)
    return Moment(of_day_ns, int(start.timestamp()) * _SECOND)


moment.__name__ = 'time such as 03:08:40 (UTC)'


def _duration(text):
    """Return nanoseconds."""
    unit = text[-1:]
    if unit not in _UNITS:
        raise ValueError
    return round(float(text[:-1]) * _UNITS[unit] * _SECOND)


_duration.__name__ = 'duration such as 10m'


def add(parser, *, has_range=False):
    """Add the options; unless *has_range*, those of a range of time, too."""
    group = parser.add_argument_group(
        'segments', 'Of a directory that -X sampleprof=spool= writes, which '
        'segments are added up: whole ones.')
    group.add_argument('--last', metavar='TIME', type=_duration,
                       dest='last_ns', help='those of the last 10m, 2h, 1d')
    if not has_range:
        group.add_argument('--from', metavar='TIME', type=moment,
                           dest='begin_ns', help='what is later than 03:08:40 '
                           'or 2026-11-29T03:08:40 (UTC)')
        group.add_argument('--to', metavar='TIME', type=moment,
                           dest='end_ns', help='what is earlier than that')
    group.add_argument('--host', metavar='NAME', help='of this host')
    group.add_argument('--pid', metavar='PID', type=int,
                       help='of the process of this number')


def _parted(path):
    """Return the directory and the two times of 'DIR@03:00..03:10', either
    of which may be missing; None for any other path."""
    directory, _, times = path.rpartition('@')
    begin, dots, end = times.partition('..')
    if not (directory and dots) or os.path.lexists(path):
        return path, None
    try:
        return directory, [moment(text) if text else None
                           for text in (begin, end)]
    except ValueError:
        return path, None


def is_one(path):
    """Return whether a path is a directory of segments."""
    try:
        with os.scandir(_parted(path)[0]) as entries:
            return any([segments.parsed(entry.name) for entry in entries])
    except OSError:
        return False


def _all(directory):
    """Return {path: Segment}, oldest first."""
    found = {}
    for name in sorted(os.listdir(directory)):
        segment = segments.parsed(name)
        if segment is not None:
            found[os.path.join(directory, name)] = segment
    return found


def _chosen(directory, found, options, times):
    """Return those that are asked for."""
    newest_ns = max([segment.end_ns for segment in found.values()])
    begin_ns, end_ns = [_ns(given, newest_ns) for given in times or (
        options.begin_ns, options.end_ns)]
    if options.last_ns is not None:
        begin_ns = newest_ns - options.last_ns
    result = {
        path: segment for path, segment in found.items()
        if (begin_ns is None or segment.end_ns > begin_ns)
        and (end_ns is None or segment.begin_ns < end_ns)
        and options.host in (None, segment.host)
        and options.pid in (None, segment.pid)}
    if not result:
        first_ns = min([segment.begin_ns for segment in found.values()])
        raise Failure(f'no segment in {directory} is like that; it has '
                      f'{date(first_ns)} to {date(newest_ns)}', 2)
    return result


def of_day(given, first_ns):
    """Return a Moment in nanoseconds since the epoch: the first such time of
    day that is not before another moment, if it has no day."""
    if given.day is not None:
        return given.day + given.of_day_ns
    ns = first_ns // _DAY_NS * _DAY_NS + given.of_day_ns
    # A clock has minutes, where the recording began within one.
    return ns if ns > first_ns - 60 * _SECOND else ns + _DAY_NS


def _ns(given, newest_ns):
    """Return nanoseconds since the epoch, or None."""
    if given is None:
        return None
    if not isinstance(given, Moment):
        raise Failure('a range of segments is of times, such as --from '
                      '03:08:40', 2)
    if given.day is not None:
        return given.day + given.of_day_ns
    ns = newest_ns // _DAY_NS * _DAY_NS + given.of_day_ns
    return ns if ns <= newest_ns else ns - _DAY_NS


def refuse_options(options):
    """Fail if what is read are files, of which there are no segments."""
    for name, option in (('last_ns', '--last'), ('host', '--host'),
                         ('pid', '--pid'), ('begin_ns', '--from'),
                         ('end_ns', '--to')):
        value = getattr(options, name)
        if value is not None and (isinstance(value, Moment) or name not in (
                'begin_ns', 'end_ns')):
            raise Failure(f'{option} chooses segments of a directory', 2)


def loaded(path, options, history=None):
    """Iterate over (path, tables) of the segments that are asked for; say
    which they were, and what is missing.  They are added to a History."""
    directory, times = _parted(path)
    everything = _all(directory)
    found = _chosen(directory, everything, options, times)
    faults, ended = [], set()
    for path, segment in found.items():
        try:
            tables = common.load(path, options.max_bytes)
        except Failure as exc:
            # Meanwhile it may have been removed for a newer one.
            if os.path.lexists(path):
                faults.append(str(exc))
            continue
        if history is not None:
            history.add(segment, tables)
        if tables.stats.get(SPOOL_ENDED):
            ended.add((segment.host, segment.pid))
        yield path, tables
    say(_summary(directory, found.values()))
    for line in [*_killed(everything, found, ended), *faults]:
        say(line)


def load(path, options, history=None):
    """Return the tables of their sum."""
    return common.summed(loaded(path, options, history),
                         options.max_bytes)


def _summary(directory, found):
    processes = {(segment.host, segment.pid) for segment in found}
    hosts = {host for host, _ in processes}
    return (f'{directory}: {date(min([its.begin_ns for its in found]))} to '
            f'{date(max([its.end_ns for its in found]))}, '
            f'{counted(len(processes), "process", "processes")} on '
            f'{counted(len(hosts), "host")}, '
            f'{counted(len(found), "segment")}')


def _killed(everything, found, ended):
    """Iterate over what is said of processes whose last segment is there, and
    is not what a process writes at its end."""
    last = {(its.host, its.pid): path for path, its in everything.items()}
    for (host, pid), path in last.items():
        segment = everything[path]
        length_ns = segment.end_ns - segment.begin_ns
        if (path in found and (host, pid) not in ended and time.time_ns()
                > segment.end_ns + _SEGMENTS_MISSING * length_ns):
            yield (f'process {pid} of {host} has left nothing after '
                   f'{date(segment.end_ns)}: it was killed, or could not '
                   'write')
