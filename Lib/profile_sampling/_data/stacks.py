"""Stacks as a tree of nodes: whether it is whole, and its sums.

A table of nodes has two columns, the parent of each node, which comes before
it, and its frame; node 0 is the root and has neither.
"""

from _operator import lt

_NONE = -1
_MOST = (1 << 63) - 1


def check_nodes(nodes, n_frames):
    """Raise ValueError unless packed nodes are a tree."""
    if not len(nodes) or nodes[0]:
        raise ValueError('the table of nodes has no root')
    if not all(map(lt, nodes[2::2], range(1, len(nodes)))):
        raise ValueError('a node comes before its parent')
    check_rows('frames', nodes[3::2], n_frames)


def check_rows(what, numbers, n_rows, least=0):
    """Raise ValueError unless there are rows of these numbers."""
    if len(numbers) and not least <= min(numbers) <= max(numbers) < n_rows:
        raise ValueError(f'a row refers to {what} that do not exist')


def check_values(values):
    """Raise ValueError if a sum of these could be beyond 64 bits."""
    if sum(map(abs, values)) > _MOST:
        raise ValueError('the weights of all samples add up to more than 64 '
                         'bits')


def below(nodes, wanted, leaves):
    """Iterate over the nodes of stacks from the innermost frame that has 1 in
    *wanted* down to each of the *leaves*: each once, callers first."""
    parents, frames = nodes
    seen = {0}
    for node in leaves:
        way = []
        while node not in seen:
            seen.add(node)
            way.append(node)
            if wanted[frames[node]]:
                break
            node = parents[node]
        yield from reversed(way)


def innermost(nodes, wanted, leaves):
    """Return two dicts: per node of below(), the innermost of the frames that
    are wanted, and the frame that this one calls; -1 where there is none."""
    parents, frames = nodes
    found, called = {0: _NONE}, {0: _NONE}
    for node in below(nodes, wanted, leaves):
        frame = frames[node]
        if wanted[frame]:
            found[node] = frame
            called[node] = _NONE
        else:
            parent = parents[node]
            found[node] = found[parent]
            callee = called[parent]
            called[node] = frame if callee < 0 else callee
    return found, called


def innermost_of_all(nodes, wanted):
    """Return a list: per node, the innermost of the frames that are wanted; -1
    where there is none."""
    found = [_NONE]
    parents, frames = nodes
    for parent, frame in zip(parents[1:], frames[1:]):
        found.append(frame if wanted[frame] else found[parent])
    return found


def sums_of_keys(nodes, samples, key_of_frame, n_keys):
    """Return {key: (own sums, sums with callees)} of the keys on stacks.

    *samples* are tuples of a node and values.  A key that is on a stack more
    than once counts once.  Takes time in proportion to the nodes, however deep
    the stacks are.
    """
    samples = list(samples)
    if not samples:
        return {}
    of_samples, *columns = zip(*samples)
    parents = nodes[::2].tolist()
    keys = [_NONE, *[key_of_frame[frame] for frame in nodes[3::2]]]
    outermost = outermost_nodes(parents, keys, set(of_samples), n_keys)
    own, cum = [], []
    for column in columns:
        its_own, its_cum = [0] * n_keys, [0] * n_keys
        for node, value in zip(of_samples, column):
            if node:
                its_own[keys[node]] += value
        sums = sums_of_nodes(parents, of_samples, column)
        for node in outermost:
            its_cum[keys[node]] += sums[node]
        own.append(its_own)
        cum.append(its_cum)
    own, cum = list(zip(*own)), list(zip(*cum))
    return {key: (own[key], cum[key])
            for key in sorted({keys[node] for node in outermost})}


def sums_of_nodes(parents, leaves, values):
    """Return a list: per node, the sum of the values of all stacks that go
    through it."""
    sums = [0] * len(parents)
    for node, value in zip(leaves, values):
        sums[node] += value
    for node in range(len(parents) - 1, 0, -1):
        value = sums[node]
        if value:
            sums[parents[node]] += value
    return sums


def outermost_nodes(parents, keys, leaves, n_keys):
    """Return the nodes on the stacks of *leaves* whose key no node above them
    has."""
    used = bytearray(len(parents))
    for node in leaves:
        used[node] = 1
    first_callee, beside = [0] * len(parents), [0] * len(parents)
    for node in range(len(parents) - 1, 0, -1):
        if used[node]:
            parent = parents[node]
            used[parent] = 1
            beside[node] = first_callee[parent]
            first_callee[parent] = node
    found, above = [], [0] * n_keys
    node = first_callee[0]
    while node:
        if not above[keys[node]]:
            found.append(node)
        above[keys[node]] += 1
        callee = first_callee[node]
        while node and not callee:
            above[keys[node]] -= 1
            callee = beside[node]
            node = parents[node]
        node = callee
    return found


class Calls:
    """The calls in a tree in preorder.

    pairs       {(caller, function that is called): number of the call}; a
                caller is a function or, with *by_place*, a place
    function, call
                per node, its number; -1 for none
    first_function, first_call
                the same, -1 where it is on the stack already
    outer_call  per node, what the function's frame above had called
    """

    def __init__(self, parents, places, function_of_place, *, by_place):
        self.pairs = pairs = {}
        columns = [[_NONE] for _ in range(5)]
        (self.function, self.first_function, self.call, self.first_call,
         self.outer_call) = columns
        (add_function, add_first_function, add_call, add_first_call,
         add_outer_call) = [column.append for column in columns]
        # Per call, how often it is on the way down to a node.
        n_open = []
        # Per function, how deep on the way its innermost node is; 0: it is
        # not there.
        innermost = dict.fromkeys(function_of_place, 0)
        way, undo = [0], [None]
        for node in range(1, len(parents)):
            parent = parents[node]
            while way[-1] != parent:
                way.pop()
                function, outer, call = undo.pop()
                innermost[function] = outer
                if call >= 0:
                    n_open[call] -= 1
            function = function_of_place[places[node]]
            call = first_call = _NONE
            if parent:
                caller = (places[parent] if by_place
                          else self.function[parent])
                call = pairs.setdefault((caller, function), len(pairs))
                if call == len(n_open):
                    n_open.append(0)
                if not n_open[call]:
                    first_call = call
                n_open[call] += 1
            outer = innermost[function]
            innermost[function] = len(way)
            way.append(node)
            undo.append((function, outer, call))
            add_function(function)
            add_first_function(_NONE if outer else function)
            add_call(call)
            add_first_call(first_call)
            add_outer_call(self.call[way[outer + 1]] if outer else _NONE)


def sum_by_key(keys, values, n_keys):
    """Return the list of the sums of the values of each key; negative keys
    are left out."""
    sums = [0] * n_keys
    for key, value in zip(keys, values):
        if key >= 0:
            sums[key] += value
    return sums
