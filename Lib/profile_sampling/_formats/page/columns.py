"""The columns of a page's document: what there is for each sample and node.

This file owns what is in them and how they are packed.  It must not know the
facts beside them, nor how they are shown.
"""

import sys
from array import array
from itertools import compress

from profile_sampling._data import by_label, by_site, by_wait, trees
from profile_sampling._data.label_names import TASKS
from profile_sampling._data.tables import (
    FRAME_COLUMNS, HOLDER_NODE, KEY_COLUMNS, LABELS, NODE, STATE, THREAD)
from profile_sampling._data.values import DELAY, MEASURED, NOT_KNOWN, WALL

_ITEMS = {'u8': 'B', 'u32': 'I', 'i32': 'i', 'f64': 'd'}
_ALIGNED = 8
_OUTSIDE, _IMPORTS = -1, -2
# Whose code it is when our own holds the GIL.
_OURS = frozenset({'profile_sampling', '_profile'})
_PROFILER = 'the profiler'


class Packed:
    """Columns as bytes; *index* is what the document's JSON says of them:
    {name: [type, offset, how many]}."""

    def __init__(self):
        self.index = {}
        self.data = bytearray()

    def add(self, name, type, values):
        column = array(_ITEMS[type], values)
        if sys.byteorder == 'big':
            column.byteswap()
        self.index[name] = [type, len(self.data), len(column)]
        self.data += column.tobytes()
        self.data += bytes(-len(self.data) % _ALIGNED)


class Columns:
    """The columns of the samples of Sites, and the lists that they have
    numbers of.

    packed      Packed
    places      {(Function, line): number}: lines that may be charged
    libraries, waits, holders, label_keys, label_sets, timeline
                as in the document
    wait_of_samples
                for each sample the number of its wait
    """

    def __init__(self, sites):
        self._tables = tables = sites.tables
        self._sites = sites
        self.packed = Packed()
        self._numbers = {function: number for number, function
                         in enumerate(tables.functions)}
        nodes = tables.nodes_view()
        weighs = list(map(bool, tables.column(KEY_COLUMNS + tables.own)))
        delays = None
        if DELAY in tables.value_types:
            delays = tables.column(tables.value_column(DELAY.name))
            weighs = [its or delay != 0 for its, delay in zip(weighs, delays)]
        self._stacks = tables.column(NODE)
        used = trees.used_nodes(nodes, compress(self._stacks, weighs))
        of_path = self._add_paths(nodes, used)
        of_node = self._add_nodes(nodes, used)
        keys = [
            map(of_node.__getitem__, self._stacks),
            map(of_path.__getitem__, self._stacks), tables.column(THREAD),
            self._label_sets(), tables.column(STATE), sites.is_idle,
            *self._called(), self._holders(), self._waits()]
        number_of = self._add_samples(keys, weighs, delays)
        self.timeline = self._add_timeline(number_of)

    def _of_frames(self):
        return self._tables.frames_view()[0::FRAME_COLUMNS].tolist()

    def _add_nodes(self, nodes, used):
        """Add the tree by function; return for each node its number there."""
        tables = self._tables
        functions = tables.functions
        shown = [number if function.kind in ('python', 'C') else -1
                 for number, function in enumerate(functions)]
        parents, keys, of_node = trees.joined(
            nodes, used, [shown[number] for number in self._of_frames()])
        values = [0] * len(parents)
        for node, value in zip(self._stacks,
                               tables.column(KEY_COLUMNS + tables.own)):
            values[of_node[node]] += value
        order, place = trees.in_preorder(parents, values)
        self.packed.add('node_parent', 'u32',
                        [place[parents[node]] for node in order])
        # The root has no function.
        self.packed.add('node_function', 'u32',
                        [max(keys[node], 0) for node in order])
        return [place[number] for number in of_node]

    def _add_paths(self, nodes, used):
        """Add the tree of the lines that may be charged; return for each node
        its number there."""
        places = self._sites.places
        nowhere = by_site.OUTSIDE if self._sites.is_mine else None
        self.places = {(nowhere, 0): 0}
        keys = [self.places.setdefault(places.of_frame(frame),
                                       len(self.places)) if charged else -1
                for frame, charged in enumerate(places.is_charged)]
        self._place_of_frame = keys
        parents, keys, of_node = trees.joined(nodes, used, keys,
                                              is_folded=True)
        # What has no Python frame is charged to what is at its leaf.
        leaves = {0: 0}
        for node in set(self._stacks):
            if used[node] and not of_node[node]:
                number = self.places.setdefault(places.at(node),
                                                len(self.places))
                if number not in leaves:
                    leaves[number] = len(parents)
                    parents.append(0)
                    keys.append(number)
                of_node[node] = leaves[number]
        keys[0] = 0
        self.packed.add('path_parent', 'u32', parents)
        self.packed.add('path_place', 'u32', keys)
        return of_node

    def place_rows(self):
        """Return the places as the document has them."""
        numbers = self._numbers | {by_site.OUTSIDE: _OUTSIDE, None: _OUTSIDE,
                                   by_site.IMPORTS: _IMPORTS}
        return {'function': [numbers[function] for function, _ in self.places],
                'line': [line for _, line in self.places]}

    def _label_sets(self):
        tables = self._tables
        self.label_keys = [key for key in by_label.keys(tables)
                           if key != TASKS]
        values = [by_label.values(tables.labels, key)
                  for key in self.label_keys]
        numbers = {}
        of_rows = [numbers.setdefault(row, len(numbers)) for row
                   in (zip(*values) if values else [()] * len(tables.labels))]
        self.label_sets = [[[key, value] for key, value in enumerate(row)
                            if value is not None] for row in numbers]
        return [of_rows[row] for row in tables.column(LABELS)]

    def _called(self):
        """Return the columns of libraries and of leaves."""
        called = self._sites.places.called
        libraries = {'': 0}
        of_node = {}
        for node in set(self._stacks):
            library, leaf = called(node) or ('', -1)
            of_node[node] = (libraries.setdefault(library, len(libraries)),
                             leaf + 1)
        self.libraries = list(libraries)
        return zip(*map(of_node.__getitem__, self._stacks)) if of_node else (
            (), ())

    def _holders(self):
        tables = self._tables
        self.holders = [None]
        numbers, of_node, found = {}, {0: 0}, []
        for node in tables.column(HOLDER_NODE):
            if node not in of_node:
                row = self._holder(node)
                of_node[node] = numbers.setdefault(row, len(numbers) + 1)
            found.append(of_node[node])
        self.holders += [{'name': name, 'place': place}
                         for name, place in numbers]
        return found

    def _holder(self, node):
        holder = self._tables.gil_holder(NOT_KNOWN, node)
        if (holder.function.module or '').partition('.')[0] in _OURS:
            return _PROFILER, -1
        return holder.name, self.places.get(
            (holder.function, holder.line), -1)

    def _waits(self):
        waits, found = by_wait.waits(self._tables)
        self.wait_of_samples = found
        self.waits = [None, *[{'name': name, 'kind': kind}
                              for name, kind in waits[1:]]]
        return found

    def _add_samples(self, keys, weighs, delays):
        """Add the samples that weigh something, equal ones as one; return
        {number of a sample: its number there}."""
        values = self._tables.column(KEY_COLUMNS + self._tables.own)
        numbers, number_of = {}, {}
        sums, delayed = [], []
        for sample, (key, value, delay, its) in enumerate(zip(
                zip(*keys), values, delays or [0] * len(values), weighs)):
            if not its:
                continue
            number = number_of[sample] = numbers.setdefault(key, len(numbers))
            if number == len(sums):
                sums.append(value)
                delayed.append(delay)
            else:
                sums[number] += value
                delayed[number] += delay
        columns = zip(*numbers) if numbers else [()] * len(_SAMPLE_COLUMNS)
        for (name, type), column in zip(_SAMPLE_COLUMNS, columns):
            self.packed.add(f'sample_{name}', type, column)
        self.packed.add('sample_value', 'f64', sums)
        if any(delayed):
            self.packed.add('sample_delay', 'f64', delayed)
        return number_of

    def _add_timeline(self, number_of):
        tables = self._tables
        own = tables.value_types[tables.own]
        line = tables.timeline
        if line is None or own not in MEASURED:
            return None
        kept = bytes([sample in number_of for sample in line.sample])
        columns = [list(compress(column, kept)) for column in line.columns]
        time_ns, samples, *values = columns
        self.packed.add('record_time', 'f64', time_ns)
        self.packed.add('record_sample', 'u32',
                        map(number_of.__getitem__, samples))
        self.packed.add('record_wall', 'f64', values[MEASURED.index(WALL)])
        if own != WALL:
            self.packed.add('record_value', 'f64',
                            values[MEASURED.index(own)])
        return {'resolution_ns': line.resolution_ns,
                'is_stale': line.is_stale}


_SAMPLE_COLUMNS = (
    ('node', 'u32'), ('path', 'u32'), ('thread', 'u32'), ('labels', 'u32'),
    ('state', 'u8'), ('idle', 'u8'), ('library', 'u32'), ('leaf', 'u32'),
    ('holder', 'u32'), ('wait', 'u32'))
