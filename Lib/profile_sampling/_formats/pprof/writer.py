"""Writer of pprof files: gzipped protocol buffers, encoded by hand.

This file owns the wire encoding and what each field of a pprof profile
means here.  It must not read anything but the tables of a profile.

Sample types are the profile's types of values, what it is about last and named
as the default: readers that know no default take the last.  A frame is a
Location of one Line.  system_name stays empty, because pprof takes names such
as <module> for C++ templates and erases them when both names are equal.  A
function that is not Python has a place that names its kind: '<C>',
'<operator>', and none for a pseudo function, whose name is in brackets.  The
instruction that the innermost Python frame had come to is in labels, not in
the address of its Location: addresses would have to be unique in the file.
Who held the GIL while a thread waited is in labels, too: 'gil holder' is what
people read, 'module.function (callee)', and with 'gil holder place',
'file:line', it tells which function that is.  Comments beginning with '#' are
not shown by pprof; in them is what only the reader of this package needs.
"""

from profile_sampling._data.losses import lost_counts, other_losses
from profile_sampling._data.sums import added
from profile_sampling._data.tables import (
    HOLDER_NODE, HOLDER_THREAD, KEY_COLUMNS, LABELS)
from profile_sampling._data.values import NAMES, OPCODES
from profile_sampling._formats.pprof import (
    HOLDER_INTERPRETER_LABEL, HOLDER_LABEL, HOLDER_PLACE_LABEL,
    HOLDER_THREAD_LABEL, KIND_PLACES, MARK, OFFSET_LABEL, OPCODE_LABEL,
    STATE_TEXTS)

DOC_URL = 'https://docs.python.org/3/library/profile_sampling.html'

# zlib's code for a gzip frame around the largest window; the header it
# writes has no time in it, so equal profiles are equal bytes.
_GZIP_WBITS = 31
_NO_INSTRUCTION = '', -1
# How many bytes of encoded stacks to remember while encoding others.
_STACK_CACHE_BYTES = 8 << 20


class Message:
    """A protocol buffer message being encoded."""

    __slots__ = ('data',)

    def __init__(self):
        self.data = bytearray()

    def number(self, field, value):
        """A varint field; zero is the default and is not written."""
        if value:
            self.data += varint(field << 3)
            self.data += varint(value)

    def payload(self, field, payload):
        """A length-delimited field: message, string or packed numbers."""
        self.data += varint(field << 3 | 2)
        self.data += varint(len(payload))
        self.data += payload

    def packed(self, field, values):
        self.payload(field, b''.join(map(varint, values)))


def varint(value):
    """Encode an integer; a negative one as 64 bits in two's complement."""
    if 0 <= value < 128:
        return _SMALL[value]
    value &= 0xFFFF_FFFF_FFFF_FFFF
    data = bytearray()
    while value > 127:
        data.append(value & 127 | 128)
        value >>= 7
    data.append(value)
    return bytes(data)


_SMALL = [bytes((value,)) for value in range(128)]


class Encoder:
    """Encodes one profile: a method per message of the format."""

    def __init__(self, tables):
        self._tables = tables
        self._strings = {'': 0}
        self._message = Message()

    def encode(self):
        tables = self._tables
        message = self._message
        *_, own = types = self._own_last(tables.value_types)
        for value_type in types:
            message.payload(1, self._value_type(value_type))
        location_of_frame, locations = self._locations()
        self._samples(location_of_frame)
        message.payload(3, self._mapping())
        for number, location in enumerate(locations, 1):
            message.payload(4, self._location(number, *location))
        for number, function in enumerate(tables.functions, 1):
            message.payload(5, self._function(number, function))
        tail = self._tail(own)
        # The table comes last, when every string has its number.
        for text in self._strings:
            message.payload(6, text.encode('utf-8', 'backslashreplace'))
        return bytes(message.data + tail.data)

    def _string(self, text):
        return self._strings.setdefault(text, len(self._strings))

    def _own_last(self, values):
        """Return values, or their types, in the order of the file."""
        own = self._tables.own
        return (*values[:own], *values[own + 1:], values[own])

    def _value_type(self, value_type):
        message = Message()
        message.number(1, self._string(value_type.kind))
        message.number(2, self._string(value_type.unit))
        return message.data

    def _locations(self):
        """Number the places; frames differ also in what pprof lacks."""
        numbers = {}
        location_of_frame = [
            numbers.setdefault((function, line, column), len(numbers) + 1)
            for function, line, column, _, _
            in self._tables.frame_tuples()]
        return location_of_frame, numbers

    def _samples(self, location_of_frame):
        """Write one Sample per (stack, thread, labels, state, holder of the
        GIL, instruction)."""
        stacks = _Stacks(self._tables, location_of_frame)
        instructions = self._instructions()
        same_labels = self._same_labels()
        weights = {}
        holders = self._holders()
        for row in self._tables.held_row_tuples():
            node, thread, labels, state, *holder = row[:KEY_COLUMNS]
            key = (stacks.same(node), thread, same_labels[labels], state,
                   holders[tuple(holder)], instructions[node])
            weight = row[KEY_COLUMNS:]
            known = weights.get(key)
            weights[key] = weight if known is None else added(known, weight)
        labels = {}
        instruction_labels = {}
        for (node, *about, instruction), weight in weights.items():
            message = Message()
            stack = stacks.encoded(node)
            if stack:
                message.payload(1, stack)
            message.packed(2, self._own_last(weight))
            key = tuple(about)
            if key not in labels:
                labels[key] = self._labels(*key)
            message.data += labels[key]
            if instruction not in instruction_labels:
                instruction_labels[instruction] = (
                    self._instruction_labels(*instruction))
            message.data += instruction_labels[instruction]
            self._message.payload(2, message.data)

    def _same_labels(self):
        """Return {label set: the first one that is equal}.

        Those of sample() are put on top, whatever their names.
        """
        known = {}
        same = {}
        for row in sorted(set(self._tables.column(LABELS))):
            labels, *task = self._tables.label_set(row)
            same[row] = known.setdefault((*labels.items(), *task), row)
        return same

    def _instructions(self):
        """Return per node the (name, offset) of the innermost Python
        frame's instruction; ('', -1) where nothing is known."""
        frames, _ = self._tables.innermost_python()
        if not self._tables.names & OPCODES:
            return [_NO_INSTRUCTION] * len(frames)
        from profile_sampling._data import opcodes
        known = [(opcodes.name(opcode) or '', offset) for *_, offset, opcode
                 in self._tables.frame_tuples()]
        # Index -1: a stack without a Python frame.
        known.append(_NO_INSTRUCTION)
        return [known[frame] for frame in frames]

    def _holders(self):
        """Return {columns of a holder: what its labels say}."""
        column = self._tables.column
        return {key: self._holder(self._tables.gil_holder(*key))
                for key in sorted(set(zip(column(HOLDER_THREAD),
                                          column(HOLDER_NODE))))}

    @staticmethod
    def _holder(holder):
        if holder is None:
            return None
        place = None
        if holder.function.kind == 'python':
            place = f'{holder.function.filename}:{holder.line}'
        return holder.name, place, holder.thread

    def _labels(self, thread, labels, state, holder):
        thread = self._tables.threads[thread]
        labels, task_name, task_id = self._tables.label_set(labels)
        message = Message()
        for key, value in labels.items():
            self._label(message, key, value)
        if task_name is not None:
            self._label(message, 'task name', task_name)
        if task_id is not None:
            self._label(message, 'task id', number=task_id)
        self._label(message, 'thread id', number=thread.ident)
        self._label(message, 'thread native id', number=thread.native_id)
        if thread.name:
            self._label(message, 'thread name', thread.name)
        self._label(message, 'interpreter', number=thread.interpreter_id)
        self._label(message, 'state', STATE_TEXTS[state])
        if holder is not None:
            self._holder_labels(message, thread, *holder)
        return message.data

    def _holder_labels(self, message, waiter, name, place, thread):
        self._label(message, HOLDER_LABEL, name)
        if place is not None:
            self._label(message, HOLDER_PLACE_LABEL, place)
        if thread is None:
            return
        prefix = HOLDER_THREAD_LABEL
        if thread.name:
            self._label(message, prefix, thread.name)
        self._label(message, f'{prefix} id', number=thread.ident)
        self._label(message, f'{prefix} native id', number=thread.native_id)
        if thread.interpreter_id != waiter.interpreter_id:
            self._label(message, HOLDER_INTERPRETER_LABEL,
                        number=thread.interpreter_id)

    def _instruction_labels(self, name, offset):
        message = Message()
        if name:
            self._label(message, OPCODE_LABEL, name)
        if offset >= 0:
            self._label(message, OFFSET_LABEL, number=offset)
        return message.data

    def _label(self, message, key, text='', number=0):
        label = Message()
        label.number(1, self._string(key))
        label.number(2, self._string(text))
        label.number(3, number)
        message.payload(3, label.data)

    def _mapping(self):
        """One mapping that says names are complete: else pprof looks for
        the binary to find them."""
        version = self._tables.python_version.split('.')
        message = Message()
        message.number(1, 1)
        message.number(5, self._string('python' + '.'.join(version[:2])))
        for field in (7, 8, 9):
            message.number(field, 1)
        return message.data

    def _location(self, number, function, line, column):
        place = Message()
        place.number(1, function + 1)
        place.number(2, line)
        place.number(3, column)
        message = Message()
        message.number(1, number)
        message.number(2, 1)
        message.payload(4, place.data)
        return message.data

    def _function(self, number, function):
        message = Message()
        message.number(1, number)
        message.number(2, self._string(function.name))
        message.number(4, self._string(
            KIND_PLACES.get(function.kind, function.filename)))
        message.number(5, function.first_line)
        return message.data

    def _tail(self, own):
        tables = self._tables
        message = Message()
        message.number(9, tables.start_time_ns)
        message.number(10, tables.duration_ns)
        message.payload(11, self._value_type(own))
        if tables.rate_hz:
            message.number(12, 1_000_000_000 // tables.rate_hz)
        for comment in self._comments():
            message.number(13, self._string(comment))
        message.number(14, self._string(own.kind))
        message.number(15, self._string(DOC_URL))
        return message

    def _comments(self):
        tables = self._tables
        yield (f'Python {tables.python_version or "?"}, '
               f'mode {tables.mode}, {tables.rate_hz} Hz, '
               f'depth {tables.depth_frames} frames')
        for reason, count in lost_counts(tables.stats).items():
            yield (f'lost {count} samples'
                   + (f': {reason.replace("_", " ")}' if reason else ''))
        yield from other_losses(tables.stats)
        yield MARK
        yield f'# python {tables.python_version}'
        if tables.pid is not None:
            yield f'# pid {tables.pid}'
        yield f'# mode {tables.mode}'
        yield f'# rate_hz {tables.rate_hz}'
        yield f'# depth_frames {tables.depth_frames}'
        yield f'# names {NAMES[tables.names]}'
        for name, value in tables.stats.items():
            yield f'# stat {name} {value}'
        # A name alone does not tell where the module ends.
        for module in dict.fromkeys([function.module for function
                                     in tables.functions]):
            if module is not None:
                yield f'# module {module}'


class _Stacks:
    """The stacks of a profile as lists of locations, encoded."""

    def __init__(self, tables, location_of_frame):
        nodes = tables.nodes_view()
        self._parents = nodes[0::2].tolist()
        self._locations = [location_of_frame[frame]
                           for frame in nodes[3::2].tolist()]
        self._locations.insert(0, 0)
        self._varints = {location: varint(location)
                         for location in set(location_of_frame)}
        self._known = {0: b''}
        self._known_bytes = 0
        # Nodes that differ only in what pprof lacks are one stack.
        self._same = [0]
        numbers = {}
        for node in range(1, len(self._parents)):
            key = self._same[self._parents[node]], self._locations[node]
            self._same.append(numbers.setdefault(key, node))

    def same(self, node):
        return self._same[node]

    def encoded(self, node):
        """Return the packed location ids of a stack, leaf first.

        Callers are shared by many stacks, so the encoding of a stack's
        caller is remembered, within bounds: deep stacks are long.
        """
        if not node:
            return b''
        known = self._known
        caller = self._parents[node]
        if caller not in known:
            path = []
            above = caller
            while above not in known:
                path.append(self._varints[self._locations[above]])
                above = self._parents[above]
            path.append(known[above])
            encoded = b''.join(path)
            self._known_bytes += len(encoded)
            if self._known_bytes > _STACK_CACHE_BYTES:
                self._known = known = {0: b''}
                self._known_bytes = len(encoded)
            known[caller] = encoded
        return self._varints[self._locations[node]] + known[caller]


def encode(tables, *, compress=True):
    """Return the bytes of the pprof file of a profile."""
    data = Encoder(tables).encode()
    if not compress:
        return data
    try:
        import zlib
    except ImportError:
        # An interpreter can be built without it; readers of pprof take
        # the plain message as well.
        return data
    gzip = zlib.compressobj(wbits=_GZIP_WBITS)
    return gzip.compress(data) + gzip.flush()
