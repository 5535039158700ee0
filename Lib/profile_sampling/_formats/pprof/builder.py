"""Parts of a pprof message put together as tables.

The parts come from a file: what they refer to may not exist.
"""

import re
from array import array
from itertools import chain

from profile_sampling._data.trees import Tree
from profile_sampling._formats.pprof.wire import fault, unpacked

_INT32 = 1 << 31
# Of an instruction that is not known: offset, opcode.
UNKNOWN = -1, 0
# The numbers of a packed field, each with its last byte.
_split = re.compile(rb'[\x80-\xff]*[\x00-\x7f]').findall


class Builder:
    """Frames and nodes of a message.

    *functions* has, for each of the message, whether it is Python; *natives*
    the function of each location without lines.
    """

    def __init__(self, message, functions, natives, budget):
        self._budget = budget
        self._is_python = functions
        # Rows of frames, and their numbers.
        self._frames = []
        self._frame_numbers = {}
        self._function_numbers = _numbered('function', message.functions)
        numbers = _numbered('location', message.locations)
        self._locations = _Locations(numbers, [
            self._location(lines, native) for (_, _, lines), native
            in zip(message.locations, natives)], budget)
        self._stacks = message.stacks
        self._nodes = {}
        self._tree = Tree(budget.spend)

    def _location(self, lines, native):
        """Return the frames of a location, the innermost first."""
        if not lines:
            return (self._frame(native, 0, 0),)
        frames = []
        for number, line, column in lines:
            function = self._function_numbers.get(number)
            if function is None:
                raise _missing('function', number)
            if not (0 <= line < _INT32 and 0 <= column < _INT32):
                raise ValueError(
                    f'a location has line {line}, column {column}')
            frames.append(self._frame(function, line, column))
        return tuple(frames)

    def _frame(self, function, line, column, instruction=UNKNOWN):
        frame = (function, line, column, *instruction)
        number = self._frame_numbers.get(frame)
        if number is None:
            self._budget.spend(400)
            number = self._frame_numbers[frame] = len(self._frames)
            self._frames.append(frame)
        return number

    def node(self, stack, instruction):
        """Return the node of a stack, given by its number, whose innermost
        frame of Python had come to an instruction."""
        key = stack, instruction
        node = self._nodes.get(key)
        if node is None:
            self._budget.spend(300)
            frames = self._locations.frames(self._stacks[stack])
            if instruction != UNKNOWN:
                self._set_instruction(frames, instruction)
            frames.reverse()
            node = self._nodes[key] = self._tree.node(frames)
        return node

    def _set_instruction(self, frames, instruction):
        for at, number in enumerate(frames):
            function, line, column, *_ = self._frames[number]
            if (function < len(self._is_python)
                    and self._is_python[function]):
                frames[at] = self._frame(function, line, column, instruction)
                break

    def holder(self, places, callee):
        """Return the node of a holder of the GIL."""
        frames = [self._frame(*place, 0) for place in places]
        if callee >= 0:
            frames.append(self._frame(callee, 0, 0))
        return self._tree.node(frames)

    def tables(self):
        """Return packed (frames, nodes)."""
        self._budget.spend(20 * len(self._frames))
        frames = array('i', chain.from_iterable(self._frames))
        return frames.tobytes(), self._tree.packed()


class _Locations:
    """The frames of each location.

    *numbers* are {its number: its row}, *frames* what rows have.
    """

    def __init__(self, numbers, frames, budget):
        self._budget = budget
        self._is_plain = all([len(its) == 1 for its in frames])
        if self._is_plain:
            frames = list(chain.from_iterable(frames))
        self._numbers = numbers
        self._frames = frames
        # By encoded number.
        self._known = {}

    def frames(self, stack):
        """Return the frames of an encoded stack, the innermost first."""
        if stack[-1:] > b'\x7f':
            raise fault('a number is cut off')
        self._budget.need(64 * len(stack))
        numbers = _split(stack)
        try:
            found = list(map(self._known.__getitem__, numbers))
        except KeyError:
            found = list(map(self._find, numbers))
        if self._is_plain:
            return found
        # Inlined calls make much work of few bytes.
        self._budget.spend(8 * sum(map(len, found)))
        return list(chain.from_iterable(found))

    def _find(self, encoded):
        found = self._known.get(encoded)
        if found is None:
            [number] = unpacked(encoded)
            if number not in self._numbers:
                raise _missing('location', number)
            self._budget.spend(200)
            found = self._frames[self._numbers[number]]
            self._known[encoded] = found
        return found


def _numbered(what, rows):
    """Return {number: row} of rows that begin with their numbers."""
    found = {}
    for row, (number, *_) in enumerate(rows):
        if not number:
            raise ValueError(f'a {what} has number 0')
        if found.setdefault(number, row) != row:
            raise ValueError(f'two {what}s have number {number}')
    return found


def _missing(what, number):
    return ValueError(f'refers to {what} {number}, which does not exist')
