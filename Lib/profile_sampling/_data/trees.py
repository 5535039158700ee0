"""Stacks as a tree of nodes: how it is built, and built anew.

A node is known by its caller and by its key: the number of a frame, or of
whatever else stands for one.
"""

from array import array

_NONE = -1


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
        for key in keys[depth:]:
            node = self.child(node, key)
            nodes.append(node)
        self._spend(24 * (len(self.parents) - before))
        return node

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
        """Add the stacks of packed *nodes*; return the node here of each.

        Left out are frames with a negative key and nodes with 1 in
        *is_hidden*; with *is_folded*, what has the key of its caller.  With
        *leaves*, only their stacks are added, and a dict is returned.
        """
        parents, frames = nodes
        if leaves is None:
            used, found = range(1, len(parents)), [0] * len(parents)
        else:
            used, found = _on_stacks(parents, leaves), {0: 0}
        child, keys = self.child, self.keys
        for node in used:
            number = found[parents[node]]
            key = key_of_frame[frames[node]]
            if key >= 0 and not (is_hidden and is_hidden[node]
                                 or is_folded and keys[number] == key):
                number = child(number, key)
            found[node] = number
        return found

    def packed(self):
        nodes = array('I', bytes(8 * len(self.parents)))
        nodes[::2] = self.parents
        nodes[3::2] = array('I', self.keys[1:])
        return nodes.tobytes()


def _on_stacks(parents, leaves):
    """Return the nodes on the stacks of *leaves*, callers first."""
    used = {0}
    for node in leaves:
        while node not in used:
            used.add(node)
            node = parents[node]
    used.discard(0)
    return sorted(used)


def sum_subtrees(parents, values):
    """Return the values, each with those of all nodes below."""
    sums = array('q', values)
    for node in range(len(sums) - 1, 0, -1):
        sums[parents[node]] += sums[node]
    return sums


def in_preorder(parents, rank):
    """Return the nodes in preorder, siblings by *rank*, and the place of each
    there."""
    sizes = [1] * len(parents)
    for node in range(len(parents) - 1, 0, -1):
        sizes[parents[node]] += sizes[node]
    # Where each begins, from its caller on: an only one, right behind it.
    siblings = [node for node, parent in enumerate(parents)
                if sizes[node] + 1 < sizes[parent]]
    siblings.sort(key=rank.__getitem__)
    place = [1] * len(parents)
    free = [1] * len(parents)
    for node in siblings:
        parent = parents[node]
        place[node] = free[parent]
        free[parent] += sizes[node]
    place[0] = 0
    for node in range(1, len(parents)):
        place[node] += place[parents[node]]
    order = [0] * len(parents)
    for node, number in enumerate(place):
        order[number] = node
    return order, place
