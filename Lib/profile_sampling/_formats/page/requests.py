"""How long the requests of a profile took, for a page.

This file owns which requests are shown and in which form.  It must not know
how they were counted.
"""

from profile_sampling._data import by_task
from profile_sampling._data.histogram import bounds

_ROUTE = 'route'


def requests(tables):
    """Return what the document says of requests, or None: there were none, or
    they are not those of this part of a profile."""
    key = _key(tables)
    if key is None or by_task.is_part(tables):
        return None
    latencies = [row for row in tables.latencies if row.key == key]
    latencies.sort(key=lambda row: (-row.sum_ns, row.value))
    rows = [dict(zip(('value', 'count', 'mean_ns', 'p50_ns', 'p99_ns',
                      'longest_ns', 'times', 'spent'),
                     (row.value, *by_task.durations(row), _times(row.times),
                      _spent(row)))) for row in latencies]
    return {'key': key, 'rows': rows,
            'has_loop': any([row.roots for row in latencies])}


def route(tables, label_keys):
    """Return the number of the label that requests have, or -1."""
    key = _key(tables) or _ROUTE
    return label_keys.index(key) if key in label_keys else -1


def _key(tables):
    """Return the label whose requests took longest; None without any."""
    sums = {}
    for row in tables.latencies:
        if row.count:
            sums[row.key] = sums.get(row.key, 0) + row.sum_ns
    return min(sums, key=lambda key: (-sums[key], key), default=None)


def _times(histogram):
    return [[*bounds(number, histogram.bits), count]
            for number, count in enumerate(histogram.counts) if count]


def _spent(row):
    return [[*bounds(bucket, row.times.bits), *sums]
            for bucket, *sums in row.spent]
