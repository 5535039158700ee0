"""The time line of a profile in its pprof file.

A comment it is because samples are to stay what they are: one for each stack,
of which every reader makes the same sums, as fast as before, whether the file
has a time line or not.  The text is

    # timeline 1 SAMPLES COUNT CPU WALL RESOLUTION RECORDS DATA

with the number of the file's samples and their sums, by which it is seen that
another tool has changed them, and five columns in base64, compressed by zlib
if there is one: moments as differences, numbers of the file's samples, and
what records weigh.  A column is of 64-bit numbers, little-endian, all their
first bytes before all their second: most of these are 0.
"""

import sys
from array import array
from itertools import accumulate

from profile_sampling._data import timeline
from profile_sampling._formats.pprof import TIMELINE
from profile_sampling._formats.pprof.packed import number, pack, unpack

_VERSION = '1'
_WHAT = 'time line'
_ITEM_BYTES = 8
_COLUMNS = 5
_MOST = 1 << 63


def comment(tables, rows):
    """Return the comment that has the time line.

    *rows* has the number in the file of each sample.
    """
    line = tables.timeline
    times = line.time_ns
    columns = [array('q', map(int.__sub__, times, [0, *times][:-1])),
               array('q', [rows[row] for row in line.sample]),
               *line.columns[2:]]
    kind, data = pack(b''.join(map(_planes, columns)))
    totals = [sum(column) for column in _values(tables)]
    return '# ' + ' '.join(map(str, (
        TIMELINE, _VERSION, len(set(rows)), *totals, line.resolution_ns,
        len(line), kind, data)))


def read(texts, tables, budget):
    """Return the Timeline of the tables of a file; *texts* are what comments
    have behind the key.

    Raise ValueError if it is damaged.
    """
    if len(texts) != 1:
        # Another tool has added files up.
        return timeline.nothing(is_stale=True)
    version, *head, kind, data = _fields(texts[0])
    n_samples, count, cpu_ns, wall_ns, resolution_ns, length = [
        number(field, _WHAT) for field in head]
    n_rows = len(tables)
    if version != _VERSION or n_rows != n_samples or (
            timeline.value_numbers(tables) is None) or (
            [sum(column) for column in _values(tables)]
            != [count, cpu_ns, wall_ns]):
        return timeline.nothing(is_stale=True)
    budget.spend(length * 5 * _ITEM_BYTES * _COLUMNS)
    columns = _columns(data, kind, length)
    if any([column and min(column) < 0 for column in columns]):
        raise ValueError('has a damaged time line: a number is negative')
    times, rows, *values = columns
    if (times and times[0] < 1) or (rows and max(rows) >= n_rows):
        raise ValueError('has a damaged time line: a record is nowhere')
    if sum(times) >= _MOST:
        raise ValueError('has a damaged time line: it is too long')
    line = timeline.Timeline(
        (array('q', accumulate(times)), rows, *values), resolution_ns)
    if not timeline.fitting(line, tables):
        return timeline.nothing(is_stale=True)
    return line


def _values(tables):
    """Return the columns of values that records have, in their order."""
    columns = tables.value_columns
    return [columns[number] for number in timeline.value_numbers(tables)]


def _fields(text):
    fields = text.split(' ')
    if len(fields) != 9:
        raise ValueError('has a damaged time line: it is cut off')
    return fields


def _columns(data, kind, length):
    data = unpack(data, kind, length * _ITEM_BYTES * _COLUMNS, _WHAT)
    width = length * _ITEM_BYTES
    return [_column(data[number * width:(number + 1) * width], length)
            for number in range(_COLUMNS)]


def _planes(column):
    """Return the bytes of a column, all first bytes before all second."""
    if sys.byteorder != 'little':
        column = array('q', column)
        column.byteswap()
    data = column.tobytes()
    return b''.join([data[place::_ITEM_BYTES]
                     for place in range(_ITEM_BYTES)])


def _column(planes, length):
    data = bytearray(len(planes))
    for place in range(_ITEM_BYTES):
        data[place::_ITEM_BYTES] = planes[place * length:
                                          (place + 1) * length]
    column = array('q', bytes(data))
    if sys.byteorder != 'little':
        column.byteswap()
    return column
