"""Decoder of pprof messages, ours and other tools', trusted or not.

This file owns what a pprof profile means to us.  Input may be hostile:
everything wrong is a ValueError that names the fault, and memory is bounded
(see wire.Budget).

Several values of one label in a sample of another tool's file become one, with
commas between.

The instructions of our files are named, because their numbers differ between
versions of Python: one that this version does not have is not known here.
"""

from profile_sampling._data import opcodes
from profile_sampling._data.build import NO_INSTRUCTION, Builder
from profile_sampling._data.values import (
    NAMES, NOBODY, NOT_KNOWN, OF_SAMPLES, OPCODES)
from profile_sampling._formats.pprof import (
    HOLDER_INTERPRETER_LABEL, HOLDER_LABEL, HOLDER_PLACE_LABEL,
    HOLDER_THREAD_LABEL, KIND_PLACES, MARK, OFFSET_LABEL, OPCODE_LABEL,
    STATE_TEXTS)
from profile_sampling._formats.pprof.types import Columns
from profile_sampling._formats.pprof.wire import (
    BYTES, VARINT, NotTheFormat, fields, message, numbers, signed, varint)

# Objects made of one byte of a sample take at most so many, for a moment.
_TRANSIENT = 64
# No package is that deep; a name of a million dots is to cost no hours.
_MAX_MODULE_DEPTH = 64
# How much memory to remember stacks in, and what one takes beside its
# bytes.
_STACK_CACHE_BYTES = 8 << 20
_KNOWN_STACK_BYTES = 200
# No clock of a profiler ticks faster; other tools give a period of 1 ns.
_SHORTEST_PERIOD_NS = 1000

_C, _OPERATOR, _PSEUDO = 1, 2, 3
# Fields of Profile, and those of it that hold one number.
_SAMPLE_TYPE, _SAMPLE, _MAPPING, _LOCATION, _FUNCTION, _STRING = range(1, 7)
_TIME, _DURATION, _PERIOD, _COMMENT, _DEFAULT_TYPE = 9, 10, 12, 13, 14
_SINGLE = (_TIME, _DURATION, _PERIOD, _DEFAULT_TYPE)


def decode(data, budget):
    """Return the tables of an encoded message, as the core would give them.

    Raise ValueError if it needs more than *budget*, a wire.Budget.
    """
    return _Decoder(data, budget).decode()


class _Decoder:
    """Turns one encoded Profile message into tables."""

    def __init__(self, data, budget):
        self._data = data
        self._budget = budget
        self._tables = Builder(budget)
        self._strings = []
        self._top = {field: [] for field in (
            _SAMPLE_TYPE, _SAMPLE, _MAPPING, _LOCATION, _FUNCTION, _COMMENT)}
        self._numbers = dict.fromkeys(_SINGLE, 0)
        self._names = None

    def decode(self):
        try:
            self._scan()
        except NotTheFormat as exc:
            raise ValueError(
                f'is not a pprof file, or is damaged: {exc}') from None
        if not self._strings or self._strings[0]:
            raise ValueError('is not a pprof file (its first string is not '
                             'the empty one)')
        types = [self._value_type(*span) for span in self._top[_SAMPLE_TYPE]]
        if not types:
            raise ValueError('is not a pprof file (it has no sample types)')
        comments = [self._string(index) for index in self._top[_COMMENT]]
        columns = Columns(types, is_ours=MARK in comments)
        facts = self._facts(comments, columns)
        self._names = _Names(facts.pop('modules'), self._budget)
        self._read_functions()
        self._read_locations()
        self._read_samples(columns, bool(facts['names'] & OPCODES))
        return self._tables.raw(facts)

    def _scan(self):
        """Note where each part begins and ends; order is not fixed."""
        data = self._data
        for field, wire_type, value, end in fields(data, 0, len(data)):
            if field == _STRING:
                if wire_type != BYTES:
                    raise NotTheFormat('a string has the wrong wire type')
                self._budget.spend(80 + 4 * (end - value))
                try:
                    self._strings.append(data[value:end].decode())
                except UnicodeDecodeError:
                    raise ValueError('a string is not UTF-8') from None
            elif field == _COMMENT:
                self._budget.spend(40 * (end - value
                                         if wire_type == BYTES else 1))
                self._top[field] += numbers(data, wire_type, value, end)
            elif field in self._top:
                if wire_type != BYTES:
                    raise NotTheFormat(
                        f'field {field} has the wrong wire type')
                self._budget.spend(160)
                self._top[field].append((value, end))
            elif field in self._numbers:
                if wire_type != VARINT:
                    raise NotTheFormat(
                        f'field {field} has the wrong wire type')
                self._numbers[field] = signed(value)

    def _string(self, index):
        if not 0 <= index < len(self._strings):
            raise ValueError(f'refers to string {index}, which does not '
                             'exist')
        return self._strings[index]

    def _value_type(self, position, end):
        fields_ = message(self._data, position, end, {1: VARINT, 2: VARINT})
        return (self._string(fields_.get(1, 0)),
                self._string(fields_.get(2, 0)))

    def _facts(self, comments, columns):
        """What is true of the whole profile."""
        default = self._string(self._numbers[_DEFAULT_TYPE])
        period = self._numbers[_PERIOD]
        facts = {
            'mode': columns.mode(default),
            'value_types': columns.value_types,
            'rate_hz': (1_000_000_000 // period
                        if period >= _SHORTEST_PERIOD_NS else 0),
            'depth_frames': 0, 'names': 0,
            'start_time_ns': self._numbers[_TIME],
            'duration_ns': self._numbers[_DURATION],
            'python_version': '',
            'stats': {}, 'modules': set(), 'pids': set(),
        }
        if MARK in comments:
            for comment in comments:
                self._budget.spend(200)
                _take_comment(comment, facts)
        # Of files that another tool has merged there are several.
        pids = facts.pop('pids')
        facts['pid'] = pids.pop() if len(pids) == 1 else None
        return facts

    def _read_functions(self):
        wanted = {1: VARINT, 2: VARINT, 4: VARINT, 5: VARINT}
        for span in self._top[_FUNCTION]:
            function = message(self._data, *span, wanted)
            self._tables.function(
                function.get(1, 0), *_function(
                    self._string(function.get(2, 0)),
                    self._string(function.get(4, 0)),
                    signed(function.get(5, 0)), self._names))

    def _read_locations(self):
        for span in self._top[_LOCATION]:
            number = address = 0
            lines = []
            for field, wire_type, value, end in fields(self._data, *span):
                if field in (1, 3) and wire_type != VARINT or (
                        field == 4 and wire_type != BYTES):
                    raise ValueError('a location has a field of the wrong '
                                     'wire type')
                if field == 1:
                    number = value
                elif field == 3:
                    address = value
                elif field == 4:
                    self._budget.spend(200)
                    line = message(self._data, value, end,
                                   {1: VARINT, 2: VARINT, 3: VARINT})
                    lines.append((line.get(1, 0), signed(line.get(2, 0)),
                                  signed(line.get(3, 0))))
            self._tables.location(number, address, lines)

    def _read_samples(self, columns, instructions):
        data = self._data
        n_types = columns.n_types
        places = columns.places
        stacks = _Stacks(self._tables)
        labels = _Labels(self._string, self._tables, self._budget,
                         instructions, self._names.split)
        for span in self._top[_SAMPLE]:
            self._budget.check(_TRANSIENT * (span[1] - span[0]))
            packed = []
            values = []
            spans = []
            for field, wire_type, value, end in fields(data, *span):
                if field == 1:
                    packed.append((wire_type, value, end))
                elif field == 2:
                    values += numbers(data, wire_type, value, end)
                elif field == 3:
                    if wire_type != BYTES:
                        raise ValueError('a label has the wrong wire type')
                    spans.append(data[value:end])
            if len(values) != n_types:
                raise ValueError(f'a sample has {len(values)} values for '
                                 f'{n_types} sample types')
            *about, instruction = labels.read(spans)
            self._tables.sample(
                stacks.node(data, packed, instruction), *about,
                [signed(values[place]) * factor if factor else 0
                 for place, factor in places])


class _Labels:
    """Finds what the labels of samples name.

    Most samples share theirs with others, those of the instruction apart:
    so these are remembered one by one, the others together.
    """

    def __init__(self, string, tables, budget, instructions, split):
        self._split = split
        self._string = string
        self._tables = tables
        self._budget = budget
        # Labels of these names in other tools' files are not ours.
        self._instruction_keys = (
            (OPCODE_LABEL, OFFSET_LABEL) if instructions else ())
        # Numbers of labels as they are encoded, and what they mean.
        self._numbers = {}
        self._meanings = []
        self._known = {}

    def read(self, encoded_labels):
        """Return the thread, the labels, the state, the two columns of the
        GIL's holder, and the instruction."""
        offset, opcode = NO_INSTRUCTION
        others = []
        for encoded in encoded_labels:
            label = self._number(encoded)
            key, text, number = self._meanings[label]
            if key not in self._instruction_keys:
                others.append(label)
            elif key == OFFSET_LABEL:
                offset = _offset(number)
            else:
                opcode = _opcode(text)
        others = tuple(others)
        known = self._known.get(others)
        if known is None:
            self._budget.spend(350 + 8 * len(others))
            known = self._known[others] = self._about(others)
        instruction = offset, opcode
        # The same object, so that it is quick to tell.
        return *known, (NO_INSTRUCTION if instruction == NO_INSTRUCTION
                        else instruction)

    def _number(self, encoded):
        label = self._numbers.get(encoded)
        if label is None:
            self._budget.spend(300 + len(encoded))
            fields_ = message(encoded, 0, len(encoded),
                              {1: VARINT, 2: VARINT, 3: VARINT})
            label = self._numbers[encoded] = len(self._meanings)
            self._meanings.append((
                self._string(fields_.get(1, 0)),
                self._string(fields_.get(2, 0)), fields_.get(3, 0)))
        return label

    def _about(self, numbers):
        """Return the numbers of the thread, the labels, the state and the
        GIL's holder."""
        texts = {}
        values = {}
        labels = {}
        for label in numbers:
            key, text, number = self._meanings[label]
            if key not in OF_SAMPLES:
                # Other tools have labels that are numbers.
                value = text or (str(signed(number)) if number else '')
                labels.setdefault(key, {})[value] = None
            elif text:
                texts[key] = text
            else:
                values[key] = number
        thread = (values.get('thread id', 0),
                  signed(values.get('thread native id', 0)),
                  texts.get('thread name'),
                  values.get('interpreter', 0))
        state = texts.get('state', 'running')
        # Other tools have states of their own.
        number = STATE_TEXTS.index(state) if state in STATE_TEXTS else 0
        task_id = values.get('task id')
        task_name = texts.get('task name', '' if 'task name' in values
                              else None)
        return (self._tables.thread(thread),
                self._tables.labels(
                    [(key, self._joined(labels[key]))
                     for key in sorted(labels)], task_name, task_id),
                number, *self._holder(texts, values, thread))

    def _holder(self, texts, values, waiter):
        name = texts.get(HOLDER_LABEL, '' if HOLDER_LABEL in values else None)
        if name is None:
            return NOBODY
        prefix = HOLDER_THREAD_LABEL
        thread = NOT_KNOWN
        if f'{prefix} id' in values:
            *_, interpreter = waiter
            thread = self._tables.thread((
                values[f'{prefix} id'],
                signed(values.get(f'{prefix} native id', 0)),
                texts.get(prefix),
                values.get(HOLDER_INTERPRETER_LABEL, interpreter)))
        return thread, self._tables.holder(
            name, texts.get(HOLDER_PLACE_LABEL), self._split)

    def _joined(self, values):
        """Return one text for what other tools give several values."""
        if len(values) == 1:
            return next(iter(values))
        self._budget.spend(sum([80 + 4 * (len(value) + 2)
                                for value in values]))
        return ', '.join(values)


class _Stacks:
    """Finds the nodes of encoded stacks.

    Callers are shared by many stacks, so those met lately are remembered
    as they are encoded: most of a file need not be decoded.
    """

    def __init__(self, tables):
        self._tables = tables
        self._known = {}
        self._known_bytes = 0

    def node(self, data, parts, instruction):
        """Return the node of a sample's location fields.

        *instruction* is that of the innermost Python location.
        """
        if len(parts) == 1 and parts[0][0] == BYTES:
            _, position, end = parts[0]
            inner = []
            while position < end:
                location, position = varint(data, position, end)
                inner.append(location)
                if self._ends(location, instruction):
                    caller = self._caller(data[position:end])
                    return self._tables.stack(caller, inner, instruction)
            return self._tables.stack(0, inner)
        locations = []
        for part in parts:
            locations += numbers(data, *part)
        for i, location in enumerate(locations, 1):
            if self._ends(location, instruction):
                caller = self._tables.stack(0, locations[i:])
                return self._tables.stack(caller, locations[:i], instruction)
        return self._tables.stack(0, locations)

    def _ends(self, location, instruction):
        """Return whether what is above a location is its caller only."""
        return (instruction is NO_INSTRUCTION
                or self._tables.is_python(location))

    def _caller(self, packed):
        node = self._known.get(packed)
        if node is None:
            node = self._tables.stack(0, numbers(packed, BYTES, 0,
                                                 len(packed)))
            self._known_bytes += len(packed) + _KNOWN_STACK_BYTES
            if self._known_bytes > _STACK_CACHE_BYTES:
                self._known.clear()
                self._known_bytes = 0
            self._known[packed] = node
        return node


def _take_comment(comment, facts):
    """Take what the writer hid in a comment (see writer)."""
    if not comment.startswith('# '):
        return
    key, _, text = comment[2:].partition(' ')
    if key == 'module':
        facts['modules'].add(text)
    elif key == 'python':
        facts['python_version'] = text
    elif key == 'pid':
        facts['pids'].add(_number(text))
    elif key == 'mode':
        if text not in [kind for kind, _ in facts['value_types']]:
            raise ValueError(f'has the unknown mode {text[:40]!r}')
        facts['mode'] = text
    elif key == 'names':
        if text not in NAMES:
            raise ValueError(f'has the unknown names {text[:40]!r}')
        # Of merged files, what any of them names.
        facts['names'] |= NAMES.index(text)
    elif key in ('rate_hz', 'depth_frames'):
        facts[key] = _number(text)
    elif key == 'stat':
        name, _, value = text.rpartition(' ')
        # Tools that merge files keep the comments of all.
        facts['stats'][name] = facts['stats'].get(name, 0) + _number(value)


def _number(text):
    # 64 bits are at most 20 digits; int() would take much else.
    digits = text.removeprefix('-')
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 20):
        raise ValueError(f'a comment has {text[:40]!r} for a number')
    return int(text)


def _offset(number):
    if number >= 1 << 31:
        raise ValueError(f'an instruction has offset {signed(number)}')
    return number


def _opcode(name):
    """Return the number of an instruction, 0 for another version's."""
    return opcodes.number(name)


def _function(name, filename, first_line, names):
    """Undo what the writer does to a function."""
    kind = 0
    if not first_line:
        if filename == KIND_PLACES['C']:
            kind = _C
        elif filename == KIND_PLACES['operator']:
            kind = _OPERATOR
        elif not filename and name[:1] == '[' and name[-1:] == ']':
            kind = _PSEUDO
    module = None
    if kind != _PSEUDO:
        module, name = names.split(name)
    return module, name, filename, first_line, kind


class _Names:
    """Tells the module from the qualified name in a function's name.

    Many functions may share a name: each one is taken apart once.
    """

    def __init__(self, modules, budget):
        self._modules = modules
        self._budget = budget
        self._longest = max(map(len, modules), default=-1)
        self._known = {}

    def split(self, name):
        parts = self._known.get(name)
        if parts is None:
            self._budget.spend(250 + 4 * len(name))
            parts = self._known[name] = self._split(name)
        return parts

    def _split(self, name):
        dots = []
        at = name.find('.', 0, self._longest + 1)
        while at >= 0 and len(dots) < _MAX_MODULE_DEPTH:
            dots.append(at)
            at = name.find('.', at + 1, self._longest + 1)
        # The longest that fits: 'a.b' before 'a'.
        for at in reversed(dots):
            if name[:at] in self._modules:
                return name[:at], name[at + 1:]
        return None, name
