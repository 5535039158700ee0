"""The stacks of samples as one tree in one order, as columns.

This file owns which nodes of the tables become one and how they are ordered.
It must not know what is made of them.

Equal profiles have equal trees, whatever the order of their rows: a node's
number follows from the functions above it, not from when it was recorded.
Stacks may be thousands of frames deep: no function here calls itself.
"""

from profile_sampling._data.rows import function_rank
from profile_sampling._data.sums import sums_by
from profile_sampling._data.tables import FRAME_COLUMNS, NODE, NODE_COLUMNS

ROOT = 0


class CallPaths:
    """A tree in preorder: callers before callees, siblings by their names.

    places   list of (Function, line), sorted; lines are 0 unless asked for
    parents  per node, that of its caller; 0, the root, is its own
    place    per node, its number in *places*; -1 for the root
    of_node  per node of the tables its node here; 0 where no sample is
    """

    def __init__(self, tables, *, by_line=False):
        self._tables = tables
        nodes = tables.nodes_view()
        parents = nodes[0::NODE_COLUMNS].tolist()
        frames = nodes[1::NODE_COLUMNS].tolist()
        used = _on_stacks(tables, parents)
        place_of_frame = self._number_places(
            {frame for frame, is_used in zip(frames[1:], used[1:])
             if is_used}, by_line)
        # A node is one number: that of its caller, and its place.
        merged = {}
        n_places = len(self.places)
        of_node = [ROOT] * len(parents)
        for node in range(1, len(parents)):
            if used[node]:
                key = (of_node[parents[node]] * n_places
                       + place_of_frame[frames[node]])
                of_node[node] = merged.setdefault(key, len(merged) + 1)
        numbers = self._put_in_order(
            [ROOT, *[key // n_places for key in merged]],
            [-1, *[key % n_places for key in merged]])
        self.of_node = [numbers[node] for node in of_node]

    def __len__(self):
        return len(self.parents)

    def function(self, node):
        return self.places[self.place[node]][0]

    def self_sums(self, columns=None):
        """Return, per column of samples, the list of the sums of nodes.

        Without *columns*, of the types of values.
        """
        of_node = self.of_node
        keys = [of_node[node] for node in self._tables.column(NODE)]
        if columns is None:
            return sums_by(self._tables, keys, len(self))
        result = []
        for column in columns:
            sums = [0] * len(self)
            for key, value in zip(keys, column):
                sums[key] += value
            result.append(sums)
        return result

    def cumulative(self, sums):
        """Return self sums with those of all that was called."""
        sums = sums.copy()
        # Callees come after their callers; the root calls nobody.
        for node in range(len(sums) - 1, 0, -1):
            sums[self.parents[node]] += sums[node]
        return sums

    def depths(self):
        """Return per node how many frames its stack has."""
        depths = [0]
        for parent in self.parents[1:]:
            depths.append(depths[parent] + 1)
        return depths

    def stack(self, node):
        """Return the places of a node's stack, root first."""
        parents, place = self.parents, self.place
        stack = []
        while node:
            stack.append(place[node])
            node = parents[node]
        stack.reverse()
        return stack

    def _number_places(self, frames, by_line):
        """Fill *places*; return {frame: its place}."""
        functions = self._tables.functions
        view = self._tables.frames_view()
        pairs = {}
        for frame in frames:
            start = frame * FRAME_COLUMNS
            pairs[frame] = view[start], view[start + 1] if by_line else 0
        # Names alone may be those of two functions.
        ranked = sorted(set(pairs.values()), key=lambda pair: (
            *function_rank(functions[pair[0]]),
            functions[pair[0]].module or '', pair[1]))
        self.places = [(functions[number], line) for number, line in ranked]
        numbers = {pair: number for number, pair in enumerate(ranked)}
        return {frame: numbers[pair] for frame, pair in pairs.items()}

    def _put_in_order(self, parents, place):
        """Fill the columns; return the number of each merged node."""
        first_child = [ROOT] * len(parents)
        next_sibling = first_child.copy()
        # So that the last of the siblings becomes the first of their list,
        # and is the last to be taken from those that are pending.
        for node in sorted(range(1, len(parents)), key=place.__getitem__):
            parent = parents[node]
            next_sibling[node] = first_child[parent]
            first_child[parent] = node
        numbers = [ROOT] * len(parents)
        order = [ROOT]
        pending = []
        node = first_child[ROOT]
        while node or pending:
            while node:
                pending.append(node)
                node = next_sibling[node]
            node = pending.pop()
            numbers[node] = len(order)
            order.append(node)
            node = first_child[node]
        self.parents = [numbers[parents[node]] for node in order]
        self.place = [place[node] for node in order]
        return numbers


def _on_stacks(tables, parents):
    """Return per node whether it is on the stack of a sample.

    Those of who held the GIL need not be.
    """
    used = bytearray(len(parents))
    for node in tables.column(NODE):
        used[node] = 1
    # Callers come before their callees.
    for node in range(len(parents) - 1, 0, -1):
        if used[node]:
            used[parents[node]] = 1
    return used
