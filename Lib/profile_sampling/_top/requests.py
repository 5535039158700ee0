"""What the requests of a route did in a window."""

from collections import Counter

from profile_sampling._data.values import STATES
from profile_sampling._top.lines import NO_WORKER, letters
from profile_sampling._top.windows import ELSE, LOOP, THREAD


def of_window(window, look=None):
    """Return {route: {letter: ns}} of what requests did, their life; the most
    first, and those that are under way in a Look.

    A request that waits for a worker thread waits as long as no such thread
    works for it.
    """
    states = window.by(lambda spot, thread, route: route)
    found = {}
    for route in {*states, *window.latencies,
                  *[route for route, _ in window.tasks],
                  *[request.route for request in
                    (look.requests if look is not None else ())]} - {None}:
        did = Counter(letters(states.get(route) or [0] * len(STATES)))
        did['L'] += window.tasks[route, LOOP]
        did['w'] += window.tasks[route, ELSE]
        did[NO_WORKER] += max(0, window.tasks[route, THREAD]
                              - window.in_threads[route])
        found[route] = {letter: ns for letter, ns in did.items() if ns > 0}
    return dict(sorted(found.items(), key=lambda item: (
        -sum(item[1].values()), item[0])))


def under_way_of(did, window):
    """Return how many requests were under way, on average."""
    return sum(did.values()) / window.length_ns if window.length_ns else 0.0


def quantile(latency, share):
    """Return what that share of requests took at most, in ns, or None."""
    if latency is None or not latency.count:
        return None
    return min(latency.times.quantile(share), latency.longest_ns)
