"""When the samples of a profile were taken.

A record is part of a sample: it has a moment, which is when the time that it
weighs ended, and so it lies from its moment back over its wall time.  A range
that has a part of that has the same part of what it weighs; the count, which
cannot be divided, is where the moment is.  So ranges that meet add up to
their whole, to the nanosecond.
"""

from array import array
from itertools import compress

from profile_sampling._data.sums import added
from profile_sampling._data.values import MEASURED

# More are made fewer, by having neighbours be one: four minutes of a thread at
# 1,000 Hz are there in full.
MAX_RECORDS = 1 << 18
# The first span of time in which they are.
FIRST_RESOLUTION_NS = 1_000_000


class Timeline:
    """Records in the order of their moments.  Immutable.

    time_ns        moments in nanoseconds since the profile's start_time_ns,
                   from 1 on; each record weighs time that ended there
    sample         numbers in Profile.samples
    count, cpu_ns, wall_ns
                   what records weigh; of a sample never more than it does
    resolution_ns  records of a sample that lie so near to each other may be
                   one, at the last of their moments; 0: none are
    is_stale       whether there was a time line that does not belong to these
                   samples, as another tool has written them; then there are
                   no records

    The columns are memoryviews of 64-bit numbers, not to be written: users get
    this object, and a copy of it may be of megabytes.  What a sample weighs
    more than its records was at a moment that is not known.
    """

    __slots__ = ('time_ns', 'sample', 'count', 'cpu_ns', 'wall_ns',
                 'resolution_ns', 'is_stale')

    def __init__(self, columns, resolution_ns=0, is_stale=False):
        (self.time_ns, self.sample, self.count, self.cpu_ns, self.wall_ns) = [
            memoryview(column).toreadonly() for column in columns]
        self.resolution_ns = resolution_ns
        self.is_stale = is_stale

    def __len__(self):
        return len(self.time_ns)

    def __repr__(self):
        return f'<Timeline of {len(self)} records>'

    def __eq__(self, other):
        if type(other) is not Timeline:
            return NotImplemented
        return self._content() == other._content()

    def __hash__(self):
        return hash(self._content())

    def _content(self):
        return (self.resolution_ns, self.is_stale,
                *[column.tobytes() for column in self.columns])

    def __reduce__(self):
        # Views cannot be pickled.
        columns = [array('q', column.tobytes()) for column in self.columns]
        return Timeline, (columns, self.resolution_ns, self.is_stale)

    @property
    def columns(self):
        return self.time_ns, self.sample, self.count, self.cpu_ns, self.wall_ns

    def untimed(self, tables):
        """Return the (count, cpu_ns, wall_ns) that no record has."""
        columns = tables.value_columns
        return tuple([
            sum(columns[number]) - sum(column) for number, column
            in zip(value_numbers(tables), self.columns[2:])])

    def of_rows(self, numbers):
        """Return the same of some samples: *numbers* has their new numbers
        by their old ones."""
        kept = bytes([row in numbers for row in self.sample])
        time_ns, sample, *values = [
            array('q', compress(column, kept)) for column in self.columns]
        sample = array('q', [numbers[row] for row in sample])
        return Timeline((time_ns, sample, *values), self.resolution_ns,
                        is_stale=self.is_stale)

    def _parted(self, parts, whole):
        """Return the same of samples that gave a part of their time away:
        *parts* has (part of *whole*, the sample that got it) by number."""
        records, sums = [], {}
        for time_ns, row, count, *values in zip(*self.columns):
            if row in parts:
                part, number = parts[row]
                before = sums.get(row, (0, 0))
                sums[row] = added(before, values)
                # Together never more than the sample gave.
                given = [its * part // whole - old * part // whole
                         for its, old in zip(sums[row], before)]
                values = map(int.__sub__, values, given)
                if any(given):
                    records.append((time_ns, number, 0, *given))
            records.append((time_ns, row, count, *values))
        return of_records(records, self.resolution_ns,
                          is_stale=self.is_stale)


def nothing(*, is_stale=False):
    """Return a time line without a record."""
    return Timeline([array('q') for _ in range(5)], is_stale=is_stale)


def of_records(records, resolution_ns=0, *, is_stale=False):
    """Return a Timeline of (time_ns, sample, count, cpu_ns, wall_ns)."""
    ranked = sorted(records)
    columns = zip(*ranked) if ranked else [()] * 5
    return Timeline([array('q', column) for column in columns],
                    resolution_ns, is_stale=is_stale)


def bounded(records, resolution_ns=0, *, is_stale=False):
    """Return the same of at most MAX_RECORDS.

    There may be more if there are more samples.
    """
    last_ns = max([record[0] for record in records], default=0)
    while len(records) > MAX_RECORDS and resolution_ns <= last_ns:
        resolution_ns = max(2 * resolution_ns, FIRST_RESOLUTION_NS)
        records = together(records, resolution_ns)
    return of_records(records, resolution_ns, is_stale=is_stale)


def value_numbers(tables):
    """Return which of the values of *tables* are those of records, or None if
    they are not all there."""
    if not set(MEASURED) <= set(tables.value_types):
        return None
    return [tables.value_types.index(value_type) for value_type in MEASURED]


def fitting(timeline, tables):
    """Return whether no sample weighs less than its records."""
    numbers = value_numbers(tables)
    if numbers is None:
        return False
    columns = tables.value_columns
    for number, column in zip(numbers, timeline.columns[2:]):
        left = columns[number].tolist()
        for row, value in zip(timeline.sample, column):
            left[row] -= value
        if left and min(left) < 0 and any(
                [left[row] < 0 for row in set(timeline.sample)]):
            return False
    return True


def together(records, resolution_ns):
    """Return records of which those of one key in one span of time are one.

    *records* are (time_ns, key, count, cpu_ns, wall_ns).
    """
    sums = {}
    for record in records:
        time_ns, key, count, cpu_ns, wall_ns = record
        place = time_ns // resolution_ns, key
        known = sums.get(place)
        if known is None:
            sums[place] = record
        else:
            sums[place] = (max(time_ns, known[0]), key, count + known[2],
                           cpu_ns + known[3], wall_ns + known[4])
    return list(sums.values())


def between(timeline, begin_ns, end_ns):
    """Return the Timeline of a range, after *begin_ns* until *end_ns*."""
    return of_records(list(_parts(timeline, begin_ns, end_ns)),
                      timeline.resolution_ns, is_stale=timeline.is_stale)


def _parts(timeline, begin_ns, end_ns):
    for record in zip(*timeline.columns):
        time_ns, row, count, cpu_ns, wall_ns = record
        first_ns = max(0, time_ns - wall_ns)
        is_moment_in = begin_ns < time_ns <= end_ns
        if is_moment_in and first_ns >= begin_ns:
            yield record
        elif first_ns < end_ns and time_ns > begin_ns:
            length_ns = time_ns - first_ns
            before_ns = max(begin_ns - first_ns, 0)
            until_ns = min(end_ns - first_ns, length_ns)
            values = [value * until_ns // length_ns
                      - value * before_ns // length_ns
                      for value in (cpu_ns, wall_ns)]
            if not is_moment_in:
                count = 0
            if count or any(values):
                yield (min(time_ns, end_ns), row, count, *values)


def by_thread(tables, name):
    """Return, for each thread, [(begin_ns, sample, value, cpu_ns, wall_ns),
    ...] in the order of time, with the value of that *name*; what is at no
    known moment is at the end, with None.

    Return None if the profile has no time line, or that has no such value.
    """
    line = tables.timeline
    numbers = value_numbers(tables)
    names = [value_type.name for value_type in MEASURED]
    if (line is None or not len(line) or numbers is None
            or name not in names):
        return None
    place = names.index(name)
    threads = tables.column('thread')
    columns = tables.value_columns
    rest = [columns[number].tolist() for number in numbers]
    found = [[] for _ in tables.threads]
    for time_ns, row, *values in zip(*line.columns):
        _, cpu_ns, wall_ns = values
        found[threads[row]].append((max(time_ns - wall_ns, 0), row,
                                    values[place], cpu_ns, wall_ns))
        for column, value in zip(rest, values):
            column[row] -= value
    for rows in found:
        rows.sort()
    for row, values in enumerate(zip(*rest)):
        if any(values):
            found[threads[row]].append((None, row, values[place],
                                        *values[1:]))
    return found


def sums(timeline):
    """Return {sample: (count, cpu_ns, wall_ns)}."""
    result = {}
    for _, row, *values in zip(*timeline.columns):
        known = result.get(row)
        result[row] = values if known is None else added(known, values)
    return result
