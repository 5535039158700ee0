"""What called what, as a tree.

This file owns how the stacks of samples become one tree, from their roots or
from their leaves.  It must not know how a tree is shown.

Stacks may be thousands of frames deep and trees may have a million nodes: no
function here calls itself, and nodes are made when they are asked for.
"""

from array import array

from profile_sampling._data.rows import function_rank
from profile_sampling._data.sums import sums_by
from profile_sampling._data.tables import FRAME_COLUMNS, NODE, NODE_COLUMNS
from profile_sampling._data.values import value_named

_KEYS = ('function', 'line')


def call_tree(tables, *, inverted, by):
    """Return the root of a tree; see Profile.call_tree()."""
    if by not in _KEYS:
        raise ValueError(f'a call tree is by {" or ".join(_KEYS)}, not '
                         f'by {by!r}')
    tree = (_Inverted if inverted else _FromRoots)(tables, by)
    return CallNode(tree, 0)


class CallNode:
    """A place in a call tree: a function, as called from those above it.

    function     the Function; None for the root, which is all samples
    line         in a tree by line where in it, else 0
    self_values  sums over the samples whose stacks end here
    cum_values   sums over all samples whose stacks come this way
    children     list of CallNode, the most expensive first

    The cumulative values are the self values and those of the children.
    self_wall_ns, cum_wall_ns and so on are single values by name.
    """

    __slots__ = ('_tree', '_number')

    def __init__(self, tree, number):
        self._tree = tree
        self._number = number

    @property
    def function(self):
        return self._tree.place(self._number)[0]

    @property
    def line(self):
        return self._tree.place(self._number)[1]

    @property
    def value_types(self):
        return self._tree.value_types

    @property
    def self_values(self):
        return self._tree.self_values(self._number)

    @property
    def cum_values(self):
        return self._tree.cum_values(self._number)

    @property
    def children(self):
        tree = self._tree
        children = [CallNode(tree, number)
                    for number in tree.children(self._number)]
        own = tree.own
        children.sort(key=lambda node: (
            -node.cum_values[own], *function_rank(node.function), node.line))
        return children

    def walk(self):
        """Iterate over (depth, node), this node and all below it.

        A node comes before its children, these in their order.
        """
        pending = [(0, self)]
        while pending:
            depth, node = pending.pop()
            yield depth, node
            pending += [(depth + 1, child)
                        for child in reversed(node.children)]

    def __getattr__(self, name):
        for prefix, values in (('self_', 'self_values'),
                               ('cum_', 'cum_values')):
            if name.startswith(prefix):
                return value_named(name.removeprefix(prefix),
                                   self.value_types, getattr(self, values))
        raise AttributeError(
            f'{type(self).__name__!r} object has no attribute {name!r}')

    def __repr__(self):
        name = 'all' if self.function is None else self.function.name
        values = ', '.join([
            f'{value_type.name}={value}' for value_type, value
            in zip(self.value_types, self.cum_values)])
        return f'<CallNode {name}: {values}>'


class _Tree:
    """What both kinds of trees have in common.

    A node stands for nodes of the tables; it is worked out when the one above
    it is opened.
    """

    def __init__(self, tables, by):
        view = tables.frames_view()
        functions = view[0::FRAME_COLUMNS].tolist()
        lines = (view[1::FRAME_COLUMNS].tolist() if by == 'line'
                 else [0] * len(functions))
        numbers = {}
        self._key_of_frame = [numbers.setdefault(place, len(numbers))
                              for place in zip(functions, lines)]
        self._places = [(tables.functions[function], line)
                        for function, line in numbers]
        self._nodes = tables.nodes_view()
        self.value_types = tables.value_types
        self.own = tables.own
        # Per node here.
        self._key_of = []
        self._members = []
        self._children = []
        self._self_values = []
        self._cum_values = []

    def place(self, number):
        """Return the function and the line of a node."""
        return self._places[self._key_of[number]] if number else (None, 0)

    def self_values(self, number):
        return self._self_values[number]

    def cum_values(self, number):
        return self._cum_values[number]

    def children(self, number):
        if self._children[number] is None:
            groups = {}
            for node, member in self._next_members(number):
                key = self._key_of_frame[
                    self._nodes[NODE_COLUMNS * node + 1]]
                groups.setdefault(key, []).append(member)
            first = len(self._key_of)
            for key, members in groups.items():
                self._add(key, members)
            self._children[number] = range(first, len(self._key_of))
        return self._children[number]

    def _append(self, key, members, self_values, cum_values):
        self._key_of.append(key)
        self._members.append(members)
        self._children.append(None)
        self._self_values.append(self_values)
        self._cum_values.append(cum_values)

    def _sum(self, rows):
        return tuple(map(sum, zip(*rows))) or (0,) * len(self.value_types)


class _FromRoots(_Tree):
    """The tree of the tables; a member is one of their nodes."""

    def __init__(self, tables, by):
        super().__init__(tables, by)
        parents = self._nodes[0::NODE_COLUMNS].tolist()
        self._own_values = _by_stack(tables)
        self._sums = sums_by(tables, tables.column(NODE), len(parents))
        # Callers come before their callees; node 0 calls nobody.
        upwards = range(len(parents) - 1, 0, -1)
        for sums in self._sums:
            for node, parent in zip(upwards, reversed(parents)):
                sums[parent] += sums[node]
        self._link_children(parents, self._own_values)
        self._add(None, [0])

    def _link_children(self, parents, sampled):
        """Link the nodes that are on the stack of a sample.

        Those of who held the GIL need not be.
        """
        n_nodes = len(parents)
        used = bytearray(n_nodes)
        for node in sampled:
            used[node] = 1
        self._first_child = array('I', bytes(4 * n_nodes))
        self._next_sibling = array('I', bytes(4 * n_nodes))
        first_child = self._first_child
        next_sibling = self._next_sibling
        for node, parent in zip(range(n_nodes - 1, 0, -1), reversed(parents)):
            if used[node]:
                used[parent] = 1
                next_sibling[node] = first_child[parent]
                first_child[parent] = node

    def _add(self, key, members):
        own = self._own_values
        self._append(
            key, members,
            self._sum([own[node] for node in members if node in own]),
            tuple([sum([sums[node] for node in members])
                   for sums in self._sums]))

    def _next_members(self, number):
        for parent in self._members[number]:
            node = self._first_child[parent]
            while node:
                yield node, node
                node = self._next_sibling[node]


class _Inverted(_Tree):
    """Stacks from their leaves.

    A member is a stack: the node that the way to its root has come to, 0 at
    the end, and its values.
    """

    def __init__(self, tables, by):
        super().__init__(tables, by)
        self._add(None, list(_by_stack(tables).items()))

    def _add(self, key, members):
        self._append(
            key, members,
            self._sum([values for node, values in members if not node]),
            self._sum([values for _, values in members]))

    def _next_members(self, number):
        nodes = self._nodes
        for node, values in self._members[number]:
            if node:
                yield node, (nodes[NODE_COLUMNS * node], values)


def _by_stack(tables):
    """Return {node: sums of the values of its samples}."""
    numbers = {}
    stacks = [numbers.setdefault(node, len(numbers))
              for node in tables.column(NODE)]
    return dict(zip(numbers, zip(*sums_by(tables, stacks, len(numbers)))))
