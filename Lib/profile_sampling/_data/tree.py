"""What called what, as a tree.

Stacks may be thousands of frames deep and trees may have a million nodes: no
function here calls itself, and nodes are made when they are asked for.
"""

from operator import eq

from profile_sampling._data import checks
from profile_sampling._data.call_paths import CallPaths
from profile_sampling._data.rows import function_rank
from profile_sampling._data.sums import sums_by
from profile_sampling._data.tables import FRAME_COLUMNS, NODE_COLUMNS
from profile_sampling._data.values import value_named

_KEYS = ('function', 'line')


def call_tree(tables, *, inverted, by):
    """Return the root of a tree; see Profile.call_tree()."""
    checks.one_of('by', by, _KEYS)
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

    def __eq__(self, other):
        """Whether both, and all that is below them, say the same."""
        if type(other) is not CallNode:
            return NotImplemented
        return self._content() == other._content() and all(
            map(eq, self._below(), other._below()))

    def __hash__(self):
        return hash(self._content())

    def _content(self):
        return (self.function, self.line, self.value_types, self.self_values,
                self.cum_values)

    def _below(self):
        """Iterate over what walk() has, and its end."""
        for depth, node in self.walk():
            yield depth, node._content()
        yield None

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


class _FromRoots:
    """The tree of the tables, all of it."""

    def __init__(self, tables, by):
        self._paths = paths = CallPaths(tables, by_line=by == 'line')
        self.value_types = tables.value_types
        self.own = tables.own
        self._own = paths.self_sums()
        self._cum = list(map(paths.cumulative, self._own))
        self._sizes = paths.sizes()

    def children(self, number):
        return self._paths.children(number, self._sizes)

    def place(self, number):
        """Return the function and the line of a node."""
        paths = self._paths
        return paths.places[paths.place[number]] if number else (None, 0)

    def self_values(self, number):
        return tuple([sums[number] for sums in self._own])

    def cum_values(self, number):
        return tuple([sums[number] for sums in self._cum])


class _Inverted:
    """Stacks from their leaves.

    A node stands for stacks; it is worked out when the one above it is
    opened.  Of a stack it has the node that the way to its root has come to,
    0 at the end, and its values.
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
        self._tables = tables
        self.value_types = tables.value_types
        self.own = tables.own
        # Per node here.
        self._key_of = []
        self._members = []
        self._children = []
        self._self_values = []
        self._cum_values = []
        self._add(None, list(_by_stack(tables).items()))

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
            nodes = self._tables.nodes_view()
            for node, values in self._members[number]:
                if node:
                    parent, frame = nodes[NODE_COLUMNS * node:
                                          NODE_COLUMNS * (node + 1)]
                    groups.setdefault(self._key_of_frame[frame], []).append(
                        (parent, values))
            first = len(self._key_of)
            for key, members in groups.items():
                self._add(key, members)
            self._children[number] = range(first, len(self._key_of))
        return self._children[number]

    def _add(self, key, members):
        self._key_of.append(key)
        self._members.append(members)
        self._children.append(None)
        self._self_values.append(
            self._sum([values for node, values in members if not node]))
        self._cum_values.append(self._sum([values for _, values in members]))

    def _sum(self, rows):
        return tuple(map(sum, zip(*rows))) or (0,) * len(self.value_types)


def _by_stack(tables):
    """Return {node: sums of the values of its samples}."""
    numbers = {}
    stacks = [numbers.setdefault(node, len(numbers))
              for node in tables.column('stack')]
    return dict(zip(numbers, zip(*sums_by(tables, stacks, len(numbers)))))
