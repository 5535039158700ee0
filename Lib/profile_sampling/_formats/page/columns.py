"""The columns of a page's document: what there is for each sample and node."""

import sys
from array import array
from itertools import chain, compress, count, repeat
from operator import sub

from profile_sampling._data import (
    by_label, by_site, by_wait, culprits, keys, trees)
from profile_sampling._data.allocations import MOMENTS, VALUES, has_memory
from profile_sampling._data.label_names import TASKS
from profile_sampling._data.tables import FRAME_COLUMNS
from profile_sampling._data.values import DELAY, MEASURED, WALL

_ITEMS = {'u8': 'B', 'u16': 'H', 'u32': 'I', 'back': 'I', 'i32': 'i',
          'f64': 'd'}
_ALIGNED = 8
# Columns that are of small numbers.
_BYTES = 'state',


class Packed:
    """Columns as bytes; *index* is what the document's JSON says of them:
    {name: [type, offset, how many]}."""

    def __init__(self):
        self.index = {}
        self.data = bytearray()

    def add(self, name, type, values):
        if type == 'back':
            # Mostly 1: that compresses well.
            values = map(sub, count(), values)
        column = array(_ITEMS[type], values)
        if type == 'u32' and max(column, default=0) < 1 << 16:
            type = 'u16'
            column = array(_ITEMS[type], column)
        if sys.byteorder == 'big':
            column.byteswap()
        self.index[name] = [type, len(self.data), len(column)]
        self.data += column.tobytes()
        self.data += bytes(-len(self.data) % _ALIGNED)


class Columns:
    """The columns of the samples of Sites, and the lists that they have
    numbers of.

    packed     Packed
    places     {(Function, line): number}: lines that may be charged
    holders, waits
               lists of (package or C function, number of the place or -1, how)
               and of (name, kind); None is the first
    wait_of_samples, number_of
               for each sample the number of its wait, and of what it is in
               the document, or -1
    libraries, label_keys, label_sets, timeline
               as in the document
    """

    def __init__(self, sites):
        self._sites = sites
        self._tables = tables = sites.tables
        self._stacks = tables.column('stack')
        self._values = tables.own_column
        self._delays = (tables.value(DELAY.name)
                        if DELAY in tables.value_types
                        else [0] * len(self._values))
        self._weighs = [value != 0 or delay != 0 for value, delay
                        in zip(self._values, self._delays)]
        if has_memory(tables):
            self._weighs = list(map(any, zip(self._weighs, *[
                tables.value(its.name) for its in VALUES
                if its in tables.value_types])))
        self.packed = Packed()
        nodes = tables.tree()
        used = set(compress(self._stacks, self._weighs))
        # Holders of the GIL may be at places.
        paths = self._add_paths(nodes, used)
        self.waits, self.wait_of_samples = by_wait.waits(tables)
        self.number_of = self._add_samples({
            'node': self._add_nodes(nodes, used), 'path': paths,
            'thread': tables.column('thread'), 'labels': self._labels(),
            'state': tables.column('state'),
            **self._called(), **self._held(),
            'wait': self.wait_of_samples})
        self.timeline = self._add_timeline(self.number_of)

    def _add_nodes(self, nodes, used):
        """Add the tree by function; return for each sample its node there."""
        functions = self._tables.functions
        keys = [number if functions[number].kind in ('python', 'C') else -1
                for number in self._tables.frames_view()[0::FRAME_COLUMNS]]
        tree = trees.Tree()
        of_node = tree.add(nodes, keys, used)
        parents, keys = tree.parents, tree.keys
        of_samples = self._of_samples(of_node)
        values = array('q', bytes(8 * len(parents)))
        for node, value in zip(of_samples, self._values):
            values[node] += value
        # The most expensive callee comes first.
        sums = trees.sum_subtrees(parents, values)
        order, place = trees.in_preorder(parents, sums, reverse=True)
        keys[0] = 0
        self.packed.add('node_parent', 'back', map(
            place.__getitem__, map(parents.__getitem__, order)))
        self.packed.add('node_function', 'u32', map(keys.__getitem__, order))
        return map(place.__getitem__, of_samples)

    def _add_paths(self, nodes, used):
        """Add the tree of the lines that may be charged; return for each
        sample its path there."""
        places = self._sites.places
        self.places = {
            (by_site.OUTSIDE if self._sites.is_mine else None, 0): 0}
        keys = [self._place(places.of_frame(frame)) if is_charged else -1
                for frame, is_charged in enumerate(places.is_charged)]
        tree = trees.Tree()
        of_node = tree.add(nodes, keys, used, is_folded=True)
        parents, keys = tree.parents, tree.keys
        keys[0] = 0
        # What has no Python frame is charged to what is at its leaf.
        leaves = {0: 0}
        for node in used:
            if not of_node[node]:
                place = self._place(places.at(node))
                if place not in leaves:
                    leaves[place] = len(parents)
                    parents.append(0)
                    keys.append(place)
                of_node[node] = leaves[place]
        self.packed.add('path_parent', 'back', parents)
        self.packed.add('path_place', 'u32', keys)
        return self._of_samples(of_node)

    def _of_samples(self, of_node):
        return [of_node[node] if weighs else 0
                for node, weighs in zip(self._stacks, self._weighs)]

    def _place(self, place):
        return self.places.setdefault(place, len(self.places))

    def _labels(self):
        """Return the column of the numbers of sets."""
        tables = self._tables
        self.label_keys = [key for key in by_label.labels(tables)
                           if key != TASKS]
        rows = (list(zip(*[by_label.values(tables.labels, key)
                           for key in self.label_keys]))
                or [()] * len(tables.labels))
        # Other keys of the profile are chosen like labels.
        moments = [key.name for key in MOMENTS]
        others = [*[key for key in tables.schema.plain_keys
                    if key not in moments],
                  *['pid'] * (len(tables.processes) > 1)]
        self.label_keys += others
        others = zip(*[keys.values(tables, key) for key in others])
        numbers = {}
        found = [numbers.setdefault((*rows[row], *its), len(numbers))
                 for row, its in zip(tables.column('labels'),
                                     chain(others, repeat(())))]
        self.label_sets = [[[key, value] for key, value in enumerate(row)
                            if value is not None] for row in numbers]
        return found

    def _called(self):
        """Return the columns of libraries and of leaves."""
        called = {node: self._sites.places.called(node) or ('', -1)
                  for node in set(self._stacks)}
        libraries = dict.fromkeys(['', *[name for name, _ in called.values()]])
        self.libraries = list(libraries)
        numbers = dict(zip(libraries, range(len(libraries))))
        return {'library': [numbers[called[node][0]] for node in self._stacks],
                'leaf': [called[node][1] + 1 for node in self._stacks]}

    def _held(self):
        """Return the columns of who held the GIL, and the event loop."""
        places = culprits.Places(self._tables, self._sites.mine)
        numbers, gil, loop = {None: 0}, [], []
        for node, holder, state, delay in zip(
                self._stacks, *map(self._tables.column, ('holder', 'state')),
                self._delays):
            how = places.how(node, holder, state) if holder or delay else ''
            number = numbers.setdefault(
                self._holder(*places.holder(holder or node, how), how),
                len(numbers)) if how else 0
            gil.append(number if holder else 0)
            loop.append(number)
        self.holders = list(numbers)
        return {'holder': gil} | ({'loop_holder': loop} if any(loop) else {})

    def _holder(self, function, line, inside, how):
        """Return (name, number of the place or -1, how); None: not seen."""
        if function is None:
            return (inside, -1, how) if inside else None
        return inside, self._place((function, line)), how

    def _add_samples(self, columns):
        """Add the samples that weigh something, equal ones as one; return
        the number of each there, -1 for those that are not."""
        # The collector would look at tuples again and again.
        width = len(columns)
        keys = array('I', bytes(4 * width * len(self._values)))
        for place, column in enumerate(columns.values()):
            keys[place::width] = array('I', column)
        keys = keys.tobytes()
        numbers, number_of = {}, []
        values, delays = [], []
        for begin, weighs, value, delay in zip(
                range(0, len(keys), 4 * width), self._weighs, self._values,
                self._delays):
            if not weighs:
                number_of.append(-1)
                continue
            number = numbers.setdefault(keys[begin:begin + 4 * width],
                                        len(numbers))
            number_of.append(number)
            if number == len(values):
                values.append(value)
                delays.append(delay)
            else:
                values[number] += value
                delays[number] += delay
        keys = array('I', b''.join(numbers))
        for place, name in enumerate(columns):
            self.packed.add(f'sample_{name}',
                            'u8' if name in _BYTES else 'u32',
                            keys[place::width])
        self.packed.add('sample_value', 'f64', values)
        if any(delays):
            self.packed.add('sample_delay', 'f64', delays)
        return number_of

    def _add_timeline(self, number_of):
        """Add the records of these samples; return what the document says of
        the time line."""
        line = self._tables.timeline
        own = self._tables.value_types[self._tables.own]
        if line is None or own not in MEASURED:
            return None
        kept = bytes([number_of[sample] >= 0 for sample in line.sample])
        time_ns, samples, *values = [list(compress(column, kept))
                                     for column in line.columns]
        self.packed.add('record_time', 'f64', time_ns)
        self.packed.add('record_sample', 'u32',
                        map(number_of.__getitem__, samples))
        self.packed.add('record_wall', 'f64', values[MEASURED.index(WALL)])
        if own != WALL:
            self.packed.add('record_value', 'f64', values[MEASURED.index(own)])
        return {'resolution_ns': line.resolution_ns,
                'is_stale': line.is_stale}
