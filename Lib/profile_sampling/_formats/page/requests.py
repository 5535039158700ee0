"""How long the requests of a profile took, for a page."""

from profile_sampling._data import by_await, by_task
from profile_sampling._data.histogram import bounds

_ROUTE = 'route'


def requests(tables, sites, places):
    """Return what the document says of requests, or None: there were none, or
    they are not those of this part of a profile."""
    key = by_await.request_key(tables)
    if key is None or by_task.is_part(tables):
        return None
    latencies = [row for row in tables.latencies if row.key == key]
    latencies.sort(key=lambda row: (-row.sum_ns, row.value))
    lives = _lives(tables, sites)
    awaited = lives.of_values if lives else {}
    threads = lives.in_threads() if lives else {}
    rows = [dict(zip(('value', 'count', 'mean_ns', 'p50_ns', 'p99_ns',
                      'longest_ns', 'times', 'spent', 'awaited', 'threads'),
                     (row.value, *by_task.durations(row), _times(row.times),
                      _spent(row), [_await(its, places) for its
                                    in awaited.get(row.value, ())],
                      threads.get(row.value, {})))) for row in latencies]
    return {'key': key, 'rows': rows,
            'has_loop': any([row.roots for row in latencies])}


def awaited(tables, sites, places):
    """Return what tasks or requests awaited, or None without tasks."""
    lives = _lives(tables, sites)
    return lives and {
        'of_requests': lives.are_requests, 'took_ns': lives.took_ns,
        'rows': [_await(row, places) for row in lives.awaited],
        'left_out': lives.left_out}


def _lives(tables, sites):
    return (by_await.Lives(tables, sites.mine) if by_task.has_tasks(tables)
            else None)


def _await(row, places):
    return {'kind': row.kind, 'what': row.what, 'inside': row.inside,
            'place': -1 if row.function is None else places.setdefault(
                (row.function, row.line), len(places)), 'ns': row.ns}


def route(tables, label_keys):
    """Return the number of the label that requests have, or -1."""
    key = by_await.request_key(tables) or _ROUTE
    return label_keys.index(key) if key in label_keys else -1


def _times(histogram):
    return [[*bounds(number, histogram.bits), count]
            for number, count in enumerate(histogram.counts) if count]


def _spent(row):
    return [[*bounds(bucket, row.times.bits), *sums]
            for bucket, *sums in row.spent]
