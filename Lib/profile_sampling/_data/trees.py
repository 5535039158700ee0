"""Stacks as a tree of nodes: how it is built, and built anew.

A node is known by its caller and by its key: the number of a frame, or of
whatever else stands for one.
"""

from array import array
from itertools import compress

_NONE = -1
# With fewer leaves than one in so many nodes, a part costs what its stacks do.
_FEW = 64


class Tree:
    """Nodes, each once; callers come before their callees.

    Most nodes come right after their callers.  They are found there, and by
    nothing else: that saves most of the memory of a dictionary of all.
    *spend* is called with the bytes of memory that are needed.
    """

    def __init__(self, spend=int):
        self._spend = spend
        self.parents = array('I', [0])
        self.keys = array('i', [_NONE])
        self._others = {}
        # The last stack, the outermost first: the next one begins like it.
        self._last = []
        self._last_nodes = []

    def __len__(self):
        return len(self.parents)

    def node(self, keys):
        """Return the node of a stack, the outermost first."""
        depth = 0
        for key, last in zip(keys, self._last):
            if key != last:
                break
            depth += 1
        nodes = self._last_nodes
        del nodes[depth:]
        self._last = keys
        node = nodes[-1] if nodes else 0
        before = len(self.parents)
        for depth in range(depth, len(keys)):
            node = self.child(node, keys[depth])
            nodes.append(node)
            if node == before:
                # What is new has no callees yet.
                below = array('i', keys[depth + 1:])
                last = node + len(below)
                self.parents.extend(range(node, last))
                self.keys.extend(below)
                nodes += range(node + 1, last + 1)
                break
        self._spend(24 * (len(self.parents) - before))
        return nodes[-1] if nodes else 0

    def child(self, node, key):
        """Return the callee of a node that has a key; it is made if there is
        none."""
        parents = self.parents
        child = node + 1
        end = len(parents)
        if child < end and (self.keys[child] != key
                            or parents[child] != node):
            child = self._others.setdefault(node << 32 | key, end)
            if child == end:
                self._spend(150)
        if child == end:
            parents.append(node)
            self.keys.append(key)
        return child

    def add(self, nodes, key_of_frame, leaves=None, *, is_hidden=b'',
            is_folded=False):
        """Add the stacks of *nodes*, (callers, frames); return the node here
        of each.

        Left out are frames with a negative key and nodes with 1 in
        *is_hidden*; with *is_folded*, what has the key of its caller.  With
        *leaves*, only their stacks are added, and what is returned has no
        others.
        """
        parents, frames = nodes
        used, found = _on_stacks(parents, leaves)
        new_parents, keys, others = self.parents, self.keys, self._others
        end = len(keys)
        for node in used:
            number = found[parents[node]]
            key = key_of_frame[frames[node]]
            if key >= 0 and not (is_hidden and is_hidden[node]
                                 or is_folded and keys[number] == key):
                # As child(), whose call would cost as much again.
                caller, number = number, number + 1
                if number < end and (keys[number] != key
                                     or new_parents[number] != caller):
                    number = others.setdefault(caller << 32 | key, end)
                    if number == end:
                        self._spend(150)
                if number == end:
                    new_parents.append(caller)
                    keys.append(key)
                    end += 1
            found[node] = number
        return found

    def packed(self):
        nodes = array('I', bytes(8 * len(self.parents)))
        nodes[::2] = self.parents
        nodes[3::2] = array('I', self.keys[1:])
        return nodes.tobytes()


def _on_stacks(parents, leaves):
    """Return the nodes on the stacks of *leaves*, callers first, and what has
    room for a number of each; without *leaves*, of all."""
    if leaves is None:
        return range(1, len(parents)), array('I', bytes(4 * len(parents)))
    if _FEW * len(leaves) < len(parents):
        used = {0}
        for node in leaves:
            while node not in used:
                used.add(node)
                node = parents[node]
        used.discard(0)
        return sorted(used), {0: 0}
    is_used = bytearray(len(parents))
    is_used[0] = 1
    for node in leaves:
        while not is_used[node]:
            is_used[node] = 1
            node = parents[node]
    is_used[0] = 0
    return (compress(range(len(parents)), is_used),
            array('I', bytes(4 * len(parents))))


def sum_subtrees(parents, values):
    """Return the values, each with those of all nodes below."""
    sums = array('q', values)
    for node in range(len(sums) - 1, 0, -1):
        value = sums[node]
        if value:
            sums[parents[node]] += value
    return sums


def in_preorder(parents, rank, *, reverse=False):
    """Return the nodes in preorder, siblings by *rank*, with *reverse* the
    highest first, and the place of each there."""
    sizes = array('I', [1]) * len(parents)
    for node in range(len(parents) - 1, 0, -1):
        sizes[parents[node]] += sizes[node]
    # Where each begins, from its caller on: an only one, right behind it.
    siblings = [node for node, parent in enumerate(parents)
                if sizes[node] + 1 < sizes[parent]]
    siblings.sort(key=rank.__getitem__, reverse=reverse)
    place = array('I', [1]) * len(parents)
    free = array('I', place)
    for node in siblings:
        parent = parents[node]
        place[node] = free[parent]
        free[parent] += sizes[node]
    place[0] = 0
    for node in range(1, len(parents)):
        place[node] += place[parents[node]]
    order = free
    for node, number in enumerate(place):
        order[number] = node
    return order, place
