"""Builds the tables of a profile row by row, for readers of files.

This file owns the interning of what a reader finds, under a memory budget.
It must not know the format that the rows come from.
"""

from array import array
from bisect import bisect

from profile_sampling._data.values import EMPTY_LABELS

_INT32 = 1 << 31
_INT64 = 1 << 63
# An entry of the tree of stacks, with its key and its share of the dict.
_NODE_BYTES = 250
# Where the instruction of a frame is not known: offset, opcode.
NO_INSTRUCTION = -1, 0
_PYTHON, _C, _PSEUDO = 0, 1, 3


class Builder:
    """Functions and locations by the file's numbers; samples merged."""

    def __init__(self, budget):
        self._budget = budget
        self._functions = []
        self._function_of_number = {}
        self._native_of_address = {}
        self._frames = {}
        self._frame_rows = []
        self._location_of_number = {}
        self._nodes = {}
        self._threads = {}
        self._samples = {}
        self._labels = {EMPTY_LABELS: 0}
        self._holders = {}
        # Functions that are not Python; those that are: (name, file).
        self._by_name = None
        self._by_place = None

    def function(self, number, module, qualname, filename, first_line, kind):
        if not number:
            raise ValueError('a function has number 0')
        if number in self._function_of_number:
            raise ValueError(f'two functions have number {number}')
        if not 0 <= first_line < _INT32:
            raise ValueError(f'a function begins at line {first_line}')
        self._budget.spend(400)
        self._function_of_number[number] = len(self._functions)
        self._functions.append((module, qualname, filename, first_line,
                                kind))

    def location(self, number, address, lines):
        """A place: (function number, line, column) per inlined call."""
        if not number:
            raise ValueError('a location has number 0')
        if number in self._location_of_number:
            raise ValueError(f'two locations have number {number}')
        self._budget.spend(300 + 200 * len(lines))
        frames = []
        for function, line, column in lines:
            index = self._function_of_number.get(function)
            if index is None:
                raise ValueError(f'refers to function {function}, which '
                                 'does not exist')
            if not (0 <= line < _INT32 and 0 <= column < _INT32):
                raise ValueError(f'a location has line {line}, '
                                 f'column {column}')
            frames.append(self._frame(index, line, column))
        if not frames:
            frames.append(self._frame(self._native_function(address), 0, 0))
        # Root first, as stacks are built; a file has leaves first.
        frames.reverse()
        self._location_of_number[number] = frames

    def thread(self, thread):
        """Return the index of (ident, native_id, name, interpreter)."""
        index = self._threads.get(thread)
        if index is None:
            self._budget.spend(300)
            index = self._threads[thread] = len(self._threads)
        return index

    def is_python(self, location):
        """Return whether the innermost function of a location is Python."""
        frames = self._location_of_number.get(location)
        if frames is None:
            return False
        function, *_ = self._frame_rows[frames[-1]]
        return self._functions[function][-1] == _PYTHON

    def stack(self, node, locations, instruction=NO_INSTRUCTION):
        """Return the node of *locations*, leaf first, called from *node*.

        *instruction* is what the outermost of them had come to.
        """
        nodes = self._nodes
        before = len(nodes)
        self._budget.check(_NODE_BYTES * len(locations))
        for number in reversed(locations):
            frames = self._location_of_number.get(number)
            if frames is None:
                raise ValueError(f'refers to location {number}, which does '
                                 'not exist')
            if len(frames) > 1:
                # Inlined calls make much work of few bytes: bound both.
                self._budget.spend(len(frames))
                self._budget.check(
                    _NODE_BYTES * (len(nodes) - before + len(frames)))
            if instruction is not NO_INSTRUCTION:
                *outer, frame = frames
                frames = [*outer, self._at(frame, instruction)]
                instruction = NO_INSTRUCTION
            for frame in frames:
                node = nodes.setdefault((node, frame), len(nodes) + 1)
        self._budget.spend(_NODE_BYTES * (len(nodes) - before))
        return node

    def labels(self, pairs, task_name=None, task_id=None):
        """Return the row of a label set: pairs of texts, keys ascending."""
        row = 0
        for key, value in pairs:
            row = self._label((row, key, value, 0))
        if task_id is not None or task_name is not None:
            row = self._label((row, None, task_name, task_id or 0))
        return row

    def _label(self, key):
        row = self._labels.get(key)
        if row is None:
            self._budget.spend(250)
            row = self._labels[key] = len(self._labels)
        return row

    def holder(self, text, place, split):
        """Return the node of a place: *text* is 'function (callee)', and
        *place* 'file:line' if the function is Python.

        *split* tells the module from the name of a function.
        """
        node = self._holders.get((text, place))
        if node is None:
            self._budget.spend(2 * _NODE_BYTES + 800 + 8 * len(text)
                               + 8 * len(place or ''))
            node = self._holders[text, place] = self._holder(
                text, place, split)
        return node

    def _holder(self, text, place, split):
        if place is None:
            return self._child(0, self._native(text, split), 0)
        name, callee = text, None
        if text.endswith(')') and ' (' in text:
            name, _, callee = text[:-1].rpartition(' (')
        filename, _, line = place.rpartition(':')
        line = int(line) if _is_line(line) else 0
        node = self._child(0, self._python(name, filename, line, split),
                           line)
        if callee is not None:
            node = self._child(node, self._native(callee, split), 0)
        return node

    def _child(self, node, function, line):
        frame = self._frame(function, line, 0)
        return self._nodes.setdefault((node, frame), len(self._nodes) + 1)

    def _python(self, name, filename, line, split):
        """Return the function that begins last before a line of a file."""
        self._index_names()
        found = self._by_place.setdefault((name, filename), [])
        if not found:
            found.append((0, len(self._functions)))
            self._functions.append((*split(name), filename, 0, _PYTHON))
        at = bisect(found, (line, len(self._functions)))
        return found[max(at - 1, 0)][1]

    def _native(self, name, split):
        self._index_names()
        number = self._by_name.setdefault(name, len(self._functions))
        if number == len(self._functions):
            if name[:1] == '[' and name[-1:] == ']':
                self._functions.append((None, name, '', 0, _PSEUDO))
            else:
                self._functions.append((*split(name), '', 0, _C))
        return number

    def _index_names(self):
        """Make functions found by name; only who held the GIL needs it."""
        if self._by_name is not None:
            return
        self._budget.spend(300 * len(self._functions))
        self._by_name = {}
        self._by_place = {}
        for number, (module, name, filename, line, kind) in enumerate(
                self._functions):
            if module is not None:
                self._budget.spend(4 * (len(module) + len(name)))
                name = f'{module}.{name}'
            if kind == _PYTHON:
                self._by_place.setdefault((name, filename), []).append(
                    (line, number))
            else:
                self._by_name.setdefault(name, number)
        for found in self._by_place.values():
            found.sort()

    def sample(self, node, thread, labels, state, holder_thread, holder_node,
               weights):
        """Add a row, or its weights to the row it has."""
        key = node, thread, labels, state, holder_thread, holder_node
        known = self._samples.get(key)
        if known is not None:
            weights = [a + b for a, b in zip(known, weights)]
        else:
            self._budget.spend(280 + 40 * len(weights))
        if not all([-_INT64 <= weight < _INT64 for weight in weights]):
            raise ValueError('the weight of a stack is beyond 64 bits')
        self._samples[key] = weights

    def raw(self, facts):
        """Return the tables with *facts* about the whole profile."""
        n_values = len(next(iter(self._samples.values()), ()))
        self._budget.spend(60 * (len(self._frames) + len(self._nodes))
                           + 20 * len(self._labels)
                           + (180 + 40 * n_values) * len(self._samples))
        nodes = array('I', (0, 0))
        for parent, frame in self._nodes:
            nodes.append(parent)
            nodes.append(frame)
        frames = array('i')
        for row in self._frames:
            frames.extend(row)
        samples = array('q')
        for key, weights in self._samples.items():
            samples.extend((*key, *weights))
        return {**facts, 'functions': self._functions,
                'frames': frames.tobytes(), 'nodes': nodes.tobytes(),
                'labels': list(self._labels),
                'samples': samples.tobytes(),
                'threads': list(self._threads)}

    def _frame(self, function, line, column, instruction=NO_INSTRUCTION):
        row = function, line, column, *instruction
        number = self._frames.setdefault(row, len(self._frames))
        if number == len(self._frame_rows):
            self._frame_rows.append(row)
        return number

    def _at(self, frame, instruction):
        """Return the frame of the same place at an instruction."""
        self._budget.check(_NODE_BYTES)
        before = len(self._frames)
        function, line, column, *_ = self._frame_rows[frame]
        number = self._frame(function, line, column, instruction)
        self._budget.spend(_NODE_BYTES * (len(self._frames) - before))
        return number

    def _native_function(self, address):
        """A function for a place that has only an address."""
        index = self._native_of_address.get(address)
        if index is None:
            self._budget.spend(400)
            index = self._native_of_address[address] = len(self._functions)
            self._functions.append((None, f'{address:#x}', '', 0, 1))
        return index


def _is_line(text):
    return text.isascii() and text.isdigit() and len(text) < 10
