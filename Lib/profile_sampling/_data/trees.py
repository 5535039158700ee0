"""Stacks put together as another tree of nodes.

This file owns how stacks that begin alike share nodes.  It must not know whose
stacks these are.
"""

from array import array

_NONE = -1
# A place as bytes that are in the order of places.
_PLACE_BYTES = 4


class Tree:
    """Nodes that are added stack by stack, each once.

    Most nodes come right after their parents.  They are found there, and by
    nothing else: that saves most of the memory of a dictionary of all.
    *spend* is called with the bytes of memory that are needed.
    """

    def __init__(self, spend=int):
        self._spend = spend
        self.parents = array('I', [0])
        self.frames = array('I', [0])
        self._others = {}
        # The last stack, the outermost first: the next one begins like it.
        self._last = []
        self._last_nodes = []

    def node(self, frames):
        """Return the node of a stack, the outermost frame first."""
        depth = 0
        for frame, last in zip(frames, self._last):
            if frame != last:
                break
            depth += 1
        nodes = self._last_nodes
        del nodes[depth:]
        self._last = frames
        node = nodes[-1] if nodes else 0
        for frame in frames[depth:]:
            child = self._child(node, frame)
            if child is None:
                self._add(node, frames[len(nodes):])
                break
            nodes.append(child)
            node = child
        return nodes[-1] if nodes else 0

    def _child(self, node, frame):
        beside = node + 1
        if beside == len(self.parents):
            return None
        if self.parents[beside] == node and self.frames[beside] == frame:
            return beside
        return self._others.get(node << 32 | frame)

    def _add(self, node, frames):
        """Add a branch of the tree, and its nodes to those of the stack."""
        first = len(self.parents)
        if first != node + 1:
            self._spend(150)
            self._others[node << 32 | frames[0]] = first
        self._spend(24 * len(frames))
        added = range(first, first + len(frames))
        self.parents.append(node)
        self.parents.extend(added[:-1])
        self.frames.extend(frames)
        self._last_nodes.extend(added)

    def packed(self):
        nodes = array('I', bytes(8 * len(self.parents)))
        nodes[::2] = self.parents
        nodes[1::2] = self.frames
        return nodes.tobytes()


def copied(nodes, leaves, places, hidden_frames=b'', hidden_nodes=b''):
    """Return (a Tree, {leaf: its node}, {place: its node}) of some stacks.

    *places* are nodes of which nothing is hidden.
    """
    tree = Tree()
    places, leaves = sorted(places), sorted(leaves)
    of_places = {place: tree.node(frames) for place, frames
                 in zip(places, _frames_of(nodes, places))}
    if hidden_nodes:
        stacks = _shown(nodes, leaves, hidden_frames, hidden_nodes)
    else:
        stacks = _frames_of(nodes, leaves)
        if hidden_frames:
            stacks = ([frame for frame in stack if not hidden_frames[frame]]
                      for stack in stacks)
    return tree, dict(zip(leaves, map(tree.node, stacks))), of_places


def _shown(nodes, leaves, hidden_frames, hidden_nodes):
    for node in leaves:
        stack = []
        while node:
            frame = nodes[2 * node + 1]
            if not (hidden_nodes[node]
                    or hidden_frames and hidden_frames[frame]):
                stack.append(frame)
            node = nodes[2 * node]
        stack.reverse()
        yield stack


def _frames_of(nodes, leaves):
    """Iterate over the frames of stacks, the outermost first."""
    parents = nodes[::2].tolist()
    frames = nodes[1::2].tolist()
    for node in leaves:
        stack = []
        add_frame = stack.append
        while node:
            add_frame(frames[node])
            node = parents[node]
        stack.reverse()
        yield stack


def call_paths(nodes, leaves, place_of_frame):
    """Return (parents, places, {leaf: its node}) of the tree of the stacks of
    *leaves*, in preorder, siblings by place.

    Stacks that are written root first, their places as bytes, are in the
    order of their leaves when they are sorted.
    """
    encoded = [place.to_bytes(_PLACE_BYTES) for place in place_of_frame]
    stacks = {}
    for leaf, frames in zip(leaves, _frames_of(nodes, leaves)):
        stack = b''.join([encoded[frame] for frame in frames])
        stacks.setdefault(stack, []).append(leaf)
    parents, places = array('I', [0]), array('i', [_NONE])
    of_leaf = {}
    way = [0]
    last = b''
    for stack in sorted(stacks):
        same = _common(last, stack) // _PLACE_BYTES
        del way[same + 1:]
        new = stack[same * _PLACE_BYTES:]
        if new:
            first = len(parents)
            added = range(first, first + len(new) // _PLACE_BYTES)
            parents.append(way[-1])
            parents.extend(added[:-1])
            items = array('I', new)
            items.byteswap()
            places.extend(array('i', items))
            way.extend(added)
        for leaf in stacks[stack]:
            of_leaf[leaf] = way[-1]
        last = stack
    return parents, places, of_leaf


def _common(one, other):
    """Return how many bytes two texts have in common where they begin."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def sum_subtrees(parents, values):
    """Return the values, each with those of all nodes below."""
    sums = array('q', values)
    for node in range(len(sums) - 1, 0, -1):
        sums[parents[node]] += sums[node]
    return sums


def used_nodes(nodes, leaves):
    """Return which nodes are on the stacks of *leaves*: bytes."""
    used = bytearray(len(nodes) // 2)
    for leaf in leaves:
        used[leaf] = 1
    parents = nodes[::2].tolist()
    for node in range(len(used) - 1, 0, -1):
        if used[node]:
            used[parents[node]] = 1
    return used


def joined(nodes, used, key_of_frame, *, is_folded=False):
    """Return (parents, keys, for each node its new one) of a tree in which
    the callees of a node that have one key are one.

    Left out are frames with a negative key and nodes without 1 in *used*;
    with *is_folded* a frame with the key of its caller is one with it.
    """
    parents, keys, of_node = [0], [_NONE], [0]
    add_parent, add_key, add_number = (
        parents.append, keys.append, of_node.append)
    # As in Tree: most nodes are right behind their parents.
    others = {}
    end = 1
    for parent, key, its_used in zip(
            nodes[2::2], map(key_of_frame.__getitem__, nodes[3::2]),
            used[1:]):
        number = of_node[parent]
        if key >= 0 and its_used and not (is_folded and keys[number] == key):
            beside = number + 1
            if beside < end and (
                    keys[beside] != key or parents[beside] != number):
                beside = others.setdefault(number << 32 | key, end)
            if beside == end:
                add_parent(number)
                add_key(key)
                end += 1
            number = beside
        add_number(number)
    return parents, keys, of_node


def in_preorder(parents, values):
    """Return the nodes in preorder, and the place of each there; of callees,
    the first has most of *values* with those of all nodes below."""
    sums, sizes = list(values), [1] * len(parents)
    for node, parent in zip(range(len(parents) - 1, 0, -1),
                            reversed(parents)):
        sums[parent] += sums[node]
        sizes[parent] += sizes[node]
    # Where each begins, from its caller on: an only one, right behind it.
    siblings = [node for node, parent in enumerate(parents)
                if sizes[node] + 1 < sizes[parent]]
    siblings.sort(key=sums.__getitem__, reverse=True)
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
