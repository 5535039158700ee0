"""The stacks of samples as one tree in one order, as columns.

Equal profiles have equal trees, whatever the order of their rows: a node's
number follows from the functions above it, not from when it was recorded.
There may be millions of nodes: columns are packed.
"""

from array import array

from profile_sampling._data import stacks, trees
from profile_sampling._data.rows import function_rank
from profile_sampling._data.tables import FRAME_COLUMNS

ROOT = 0
_NO_PLACE = -1


class CallPaths:
    """A tree in preorder: callers before callees, siblings by their names.

    places   list of (Function, line), sorted; lines are 0 unless asked for
    parents  per node, that of its caller; 0, the root, is its own
    place    per node, its number in *places*; -1 for the root
    of_node  {node of the tables: its node here} of the stacks of samples
    """

    def __init__(self, tables, *, by_line=False):
        self._tables = tables
        tree = trees.Tree()
        leaves = set(tables.column('stack'))
        of_node = tree.add(tables.tree(), self._number_places(by_line),
                           leaves)
        order, number = trees.in_preorder(tree.parents, tree.keys)
        self.parents = array('I', [number[tree.parents[node]]
                                   for node in order])
        self.of_node = {node: number[of_node[node]] for node in leaves}
        self.place = self._without_unused(array(
            'i', map(tree.keys.__getitem__, order)))

    def __len__(self):
        return len(self.parents)

    def function(self, node):
        return self.places[self.place[node]][0]

    def self_sums(self, columns=None):
        """Return, per column of samples, the sums of nodes.

        Without *columns*, of the types of values.
        """
        of_node = self.of_node
        keys = [of_node[node] for node in self._tables.column('stack')]
        result = []
        for column in (self._tables.value_columns if columns is None
                       else columns):
            sums = [0] * len(self)
            for key, value in zip(keys, column):
                sums[key] += value
            result.append(sums)
        return result

    def cumulative(self, sums):
        """Return self sums with those of all that was called."""
        return trees.sum_subtrees(self.parents, sums)

    def sizes(self):
        """Return how many nodes there are from each down."""
        return self.cumulative([1] * len(self))

    @staticmethod
    def children(node, sizes):
        """Iterate over the callees of a node."""
        end = node + sizes[node]
        node += 1
        while node < end:
            yield node
            node += sizes[node]

    def of_places(self, sums):
        """Return the list of the sums of all nodes of each place."""
        return stacks.sum_by_key(self.place, sums, len(self.places))

    def stacks(self, nodes, shown):
        """Iterate over the stacks of sorted nodes, root first.

        *shown* has what stands for each place.  What is given is one list,
        which changes.
        """
        parents, place = self.parents, self.place
        way, stack = [ROOT], []
        last = ROOT
        for node in nodes:
            # All callers that are not after the last node are on its way.
            new = []
            caller = node
            while caller > last:
                new.append(caller)
                caller = parents[caller]
            depth = len(way)
            while way[depth - 1] != caller:
                depth -= 1
            new.reverse()
            way[depth:] = new
            stack[depth - 1:] = [shown[place[node]] for node in new]
            yield stack
            last = node

    def _number_places(self, by_line):
        """Fill *places*; return the place of each frame."""
        tables = self._tables
        view = tables.frames_view()
        functions = view[0::FRAME_COLUMNS].tolist()
        lines = (view[1::FRAME_COLUMNS].tolist() if by_line
                 else [0] * len(functions))
        pairs = list(zip(functions, lines))
        functions = tables.functions
        # Names alone may be those of two functions.
        ranked = sorted(set(pairs), key=lambda pair: (
            *function_rank(functions[pair[0]]),
            functions[pair[0]].module or '', pair[1]))
        self.places = [(functions[number], line) for number, line in ranked]
        numbers = {pair: number for number, pair in enumerate(ranked)}
        return [numbers[pair] for pair in pairs]

    def _without_unused(self, place):
        """Leave out places that are on no stack; return what nodes have."""
        used = sorted({_NO_PLACE, *place})
        if len(used) > len(self.places):
            return place
        self.places = [self.places[number] for number in used[1:]]
        numbers = dict(zip(used, range(_NO_PLACE, len(self.places))))
        return array('i', map(numbers.__getitem__, place))
