"""What the lives of tasks, or requests, were spent in, and what they awaited.

What tasks do that belong to no request is left out where there are requests;
without any, what rests is: a consumer that waits for its next item.
"""

from profile_sampling._data import by_label, by_task, by_wait, culprits
from profile_sampling._data.label_names import ANSWERED, TASK_CLASS
from profile_sampling._data.tables import NODE_COLUMNS
from profile_sampling._data.values import (
    AWAITING, LOOP_WAIT, STATES, TASK, WALL)

# What tasks that rest wait for, and others outside of my code.
_RESTING, _RESTING_OUTSIDE = by_wait.QUEUE, frozenset({
    by_wait.SLEEP, by_wait.SOCKET, by_wait.OTHER, by_wait.LOCK})


# Tasks that a framework starts for a request and awaits until they have
# ended, and where it awaits them.
_WHOLLY = frozenset({'starlette.middleware.base.BaseHTTPMiddleware.__call__.'
                     '<locals>.call_next.<locals>.coro'})
_WHOLLY_IN = 'starlette.middleware.base'


class Lives:
    """What requests took, or without any the lives of tasks.

    are_requests  which of these it is
    took_ns       all of it
    awaited       list of WaitRow, the longest first; what of what runs in a
                  worker thread for requests is their value
    parts         list of (name, ns): they add up to took_ns
    left_out      list of (name, ns)
    of_values     {value of the label of requests: the same as awaited}
    """

    def __init__(self, tables, mine=None):
        self._tables = tables
        self.key = request_key(tables)
        self.are_requests = self.key is not None and not by_task.is_part(
            tables)
        values = (by_label.values(tables.labels, self.key)
                  if self.are_requests else [None] * len(tables.labels))
        its_own = (own_of(tables, self.key) if self.are_requests
                   else [True] * len(tables.labels))
        inside = _inside(tables)
        sums, running, waited = {}, 0, 0
        for node, labels, state, ns in zip(
                *map(tables.column, ('stack', 'labels', 'state')),
                tables.value(TASK.name)):
            if not ns or not (its_own[labels] or inside[node]
                              and values[labels] is not None):
                continue
            if state == AWAITING:
                key = node, values[labels]
                sums[key] = sums.get(key, 0) + ns
            elif state == LOOP_WAIT:
                waited += ns
            else:
                running += ns
        self._add_up(sums, mine)
        self.awaited_ns = sum([row.ns for row in self.awaited])
        self.parts = [('awaited', self.awaited_ns),
                      ('waited for the event loop', waited), ('ran', running)]
        self.took_ns = sum([ns for _, ns in self.parts])
        if self.are_requests:
            others = sum([ns for _, ns in self.left_out])
            if others:
                self.parts.append((by_wait.OTHER_TASKS, others))
            rest = sum([row.sum_ns for row in tables.latencies
                        if row.key == self.key]) - self.took_ns - others
            if rest > 0:
                self.parts.append(('not sampled', rest))
            self.took_ns = sum([ns for _, ns in self.parts])

    def _add_up(self, sums, mine):
        wait_at = by_wait.Waits(self._tables).at
        places = culprits.Places(self._tables, mine)
        found, left_out = {}, {}
        for (node, value), ns in sums.items():
            what, kind = wait_at(node)
            function, line, package = places.at(node)
            if kind == by_wait.OTHER_TASKS:
                if self.are_requests and what.startswith(_WHOLLY_IN):
                    # What that does is the request's own.
                    continue
                left_out[kind] = left_out.get(kind, 0) + ns
            elif not self.are_requests and (
                    kind == _RESTING
                    or function is None and kind in _RESTING_OUTSIDE):
                left_out['resting'] = left_out.get('resting', 0) + ns
            else:
                found.setdefault(value, []).append(
                    (what, kind, function, line, package, ns))
        self.left_out = sorted(left_out.items(), key=lambda item: -item[1])
        self.of_values = {value: by_wait.ranked(its)
                          for value, its in found.items()}
        self.awaited = by_wait.ranked([
            (value if value is not None and row.kind == by_wait.WORKER
             and row.what != by_wait.FREE_WORKER else row.what, row.kind,
             row.function, row.line, row.inside, row.ns)
            for value, rows in self.of_values.items() for row in rows])

    def in_threads(self):
        """Return {value: {state: ns}}: what threads did for its requests that
        ran none of their tasks."""
        tables = self._tables
        if not self.are_requests or WALL not in tables.value_types:
            return {}
        values = by_label.values(tables.labels, self.key)
        found = {}
        for labels, state, task_ns, ns in zip(
                *map(tables.column, ('labels', 'state')),
                tables.value(TASK.name), tables.value(WALL.name)):
            value = values[labels]
            if ns and not task_ns and value is not None:
                its = found.setdefault(value, {})
                name = STATES[state]
                its[name] = its.get(name, 0) + ns
        return found


def _inside(tables):
    """Return which nodes are below a function of _WHOLLY, as bytes."""
    nodes, of_frames = tables.nodes_view(), tables.frame_functions()
    wanted = {number for number, function in enumerate(tables.functions)
              if function.name in _WHOLLY}
    found = bytearray(len(nodes) // NODE_COLUMNS)
    if wanted:
        # Parents have smaller numbers.
        for node, (parent, frame) in enumerate(zip(
                nodes[NODE_COLUMNS::NODE_COLUMNS],
                nodes[NODE_COLUMNS + 1::NODE_COLUMNS]), 1):
            found[node] = found[parent] or of_frames[frame] in wanted
    return found


def request_key(tables):
    """Return the label whose requests took longest; None without any."""
    sums = {}
    for row in tables.latencies:
        if row.count:
            sums[row.key] = sums.get(row.key, 0) + row.sum_ns
    return min(sums, key=lambda key: (-sums[key], key), default=None)


def own_of(tables, key):
    """Return for each row of labels whether it is of a request itself, of
    that label: not of what it started, nor of what it did when answered."""
    roots = {row.value: row.roots for row in tables.latencies
             if row.key == key}
    return [value is not None and later is None and not (
                roots.get(value) and its_class not in roots[value])
            for value, its_class, later in zip(
                by_label.values(tables.labels, key),
                by_label.values(tables.labels, TASK_CLASS),
                by_label.values(tables.labels, ANSWERED))]
