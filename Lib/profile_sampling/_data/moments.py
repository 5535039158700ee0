"""Records with their moments, kept while they come.

A record takes 36 bytes.  When there are too many, those of one key in one span
of time become one.
"""

from array import array

from profile_sampling._data import timeline
from profile_sampling._data.numbering import number_of

# No session is as long.
_MAX_RESOLUTION_NS = 1 << 62


class Moments:
    """Records of a time line that grows."""

    def __init__(self):
        # Numbers of (rows, key).
        self._keys = {}
        # Moments, numbers of keys, and the three weights.
        self._columns = _empty()
        self._bound = timeline.MAX_RECORDS
        self.resolution_ns = 0

    def __len__(self):
        return len(self._columns[0])

    def add_records(self, records):
        """Add (time_ns, (rows, key), count, cpu_ns, wall_ns)."""
        if not records:
            return
        times, keys, *weights = zip(*records)
        numbers = [number_of(self._keys, key) for key in keys]
        for column, more in zip(self._columns, (times, numbers, *weights)):
            column.extend(more)
        if len(self) > self._bound:
            self._make_fewer()

    def _make_fewer(self):
        """Make them be half of the bound, however coarse they become.

        There are more only if there are more samples.
        """
        times, keys, *_ = self._columns
        n_keys = len(self._keys)
        resolution_ns = self.resolution_ns
        length = None
        while length is None or (length > timeline.MAX_RECORDS // 2
                                 and resolution_ns < _MAX_RESOLUTION_NS):
            resolution_ns = min(_MAX_RESOLUTION_NS, max(
                2 * resolution_ns, timeline.FIRST_RESOLUTION_NS))
            length = len({time_ns // resolution_ns * n_keys + key
                          for time_ns, key in zip(times, keys)})
        records = timeline.together(zip(*self._columns), resolution_ns)
        self.resolution_ns = resolution_ns
        self._columns = _empty()
        for column, numbers in zip(self._columns, zip(*records)):
            column.extend(numbers)
        self._bound = max(timeline.MAX_RECORDS, 2 * len(self))

    def timeline(self, tables, rows, start_ns):
        """Return the Timeline of the samples of *tables*.

        *rows* has the number of each sample by its rows and its key;
        *start_ns* is when the profile began, on the clock of the records.
        Those of other samples are left out.
        """
        of_keys = list(map(rows.get, self._keys))
        records = [
            (max(time_ns - start_ns, 1), of_keys[key], *values)
            for time_ns, key, *values in zip(*self._columns)
            if of_keys[key] is not None]
        return timeline.bounded(timeline.settled(records, tables),
                                self.resolution_ns)


def _empty():
    return [array(item) for item in 'QIQQQ']
