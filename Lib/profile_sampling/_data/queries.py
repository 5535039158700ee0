"""Queries by the line of the user's own that makes them, and by route.

Neither figure follows from the other: the time is that of the line for this
route, with all that it calls.
"""

from profile_sampling._data import by_label, origins, watched
from profile_sampling._data.by_site import Sites
from profile_sampling._data.counts import ROUTE, place_key
from profile_sampling._data.values import IDLE, STATES, Value, printable

_WAITING = STATES.index('waiting')


class QueryRow(Value):
    """What a line asked for.

    function, line  the line; None, 0 if no line of the user's did
    route           a value of the label route, or ''
    kind            of watched.KINDS
    calls           how many there were
    requests        how many requests of the route there were; 0: not known
    requests_ns     what these took, all together
    callers         how often the function was called; 0: not known
    sums            StateSums of the line for the route; None: no sample
    """

    __slots__ = ('function', 'line', 'route', 'kind', 'calls', 'requests',
                 'requests_ns', 'callers', 'sums')

    @property
    def ns(self):
        return self.sums.total if self.sums is not None else 0

    @property
    def waited_ns(self):
        return (self.sums.by_state[_WAITING] if self.sums is not None else 0)

    @property
    def per(self):
        """Of how many requests, or calls of its function, they are."""
        return self.requests or self.callers


def rows(tables, sites):
    """Return a list of QueryRow, most calls first."""
    counts = tables.counts
    if counts is None or not counts.queries:
        return []
    sums = {}
    for row in counts.queries:
        key = row.caller, row.line, row.route, watched.kind(row.callee)
        sums[key] = sums.get(key, 0) + row.calls
    times = _times(tables, sites, {route for _, _, route, _ in sums})
    requests = {row.value: row for row in tables.latencies
                if row.key == ROUTE}
    callers = _callers(counts)
    found = []
    for (function, line, route, kind), calls in sums.items():
        its = requests.get(route)
        found.append(QueryRow(
            function, line, route, kind, calls, its.count if its else 0,
            its.sum_ns if its else 0, callers.get(place_key(function), 0),
            times[route].get((place_key(function), line))))
    found.sort(key=lambda row: (-row.calls, row.route, row.line, row.kind,
                                str(place_key(row.function))))
    return found


def _callers(counts):
    """Return how often each function was called."""
    found = {}
    for row in counts.calls:
        key = place_key(row.callee)
        found[key] = found.get(key, 0) + row.calls
    return found


def _times(tables, sites, routes):
    """Return {route: {(function, line): StateSums}}."""
    if not sites.is_mine:
        # However little of the time is mine.
        sites = Sites(sites.tables, origins.mine(sites.tables), True)
    of_rows = by_label.values(sites.tables.labels, ROUTE)
    of_samples = [of_rows[row] or ''
                  for row in sites.tables.column('labels')]
    return {route: {
        (place_key(row.function), row.line): row.sums
        for row in sites.rows_of([
            its_route == route and state != IDLE for its_route, state
            in zip(of_samples, sites.tables.column('state'))])}
        for route in routes}


def in_words(row):
    """Return what a line does for a request or a call, as the beginning of a
    sentence; '' if it is not known how many there were."""
    if not row.per or row.function is None:
        return ''
    each = row.calls / row.per
    is_whole = each == int(each)
    one, several, does = watched.KINDS[row.kind]
    of = row.route if row.requests else f'call of {row.function.name}'
    return (f'{"Each" if is_whole else "A"} {printable(of)} {does} '
            f'{each:,.{0 if is_whole else 1}f} '
            f'{one if each == 1 else several}')
