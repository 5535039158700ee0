"""Parser of pprof messages."""

from array import array

from profile_sampling._formats.pprof.encoder import (
    COMMENT, DEFAULT_TYPE, DURATION_NS, FUNCTION, LABEL, LOCATION, PERIOD,
    SAMPLE, SAMPLE_TYPE, STRING, TIME_NS)
from profile_sampling._formats.pprof.wire import (
    BYTES, VARINT, fault, field_at, fields, numbers_of, signed, unpacked,
    varint, wrong_type)

_FACTS = TIME_NS, DURATION_NS, PERIOD, DEFAULT_TYPE
_LABEL_KEY = LABEL << 3 | BYTES
# Of a sample; more than there can be types.
_MOST_VALUES = 1 << 12
_MOST_VALUE_BYTES = 10 * _MOST_VALUES


class Message:
    """A message taken apart.

    strings     list of str
    types       list of (kind, unit), numbers of strings
    functions   list of (number, name, file, first line)
    locations   list of (number, address, lines); a line is (function's number,
                line, column)
    comments    list of numbers of strings
    facts       {field: number} of those that are single numbers
    labels      list of encoded labels without duplicates
    label_sets  list of tuples of numbers of labels, without duplicates
    stacks      list of packed numbers of locations, the innermost first,
                without duplicates
    samples     list of (number of a stack, number of a label set)
    values      array of the values of all samples, added up
    num_values  how many a sample has, None if there are no samples
    """

    def __init__(self, data, budget):
        self.strings = []
        self.types = []
        self.functions = []
        self.locations = []
        self.comments = []
        self.facts = dict.fromkeys(_FACTS, 0)
        self.num_values = None
        self.values = array('q')
        self._budget = budget
        self._labels = {}
        self._label_sets = {}
        # The label sets of samples, by all that comes from their first label.
        self._tails = {}
        self._stacks = {}
        self._samples = {}
        parts = {SAMPLE_TYPE: self._add_type, SAMPLE: self._add_sample,
                 LOCATION: self._add_location, FUNCTION: self._add_function,
                 STRING: self._add_string}
        for field, wire_type, value in fields(data):
            if field <= STRING and wire_type != BYTES or (
                    field in _FACTS and wire_type != VARINT):
                raise wrong_type(field)
            if field in parts:
                parts[field](value)
            elif field in _FACTS:
                self.facts[field] = signed(value)
            elif field == COMMENT:
                self._budget.spend(_cost_of_numbers(value))
                self.comments += _numbers(field, wire_type, value)
        self.labels = list(self._labels)
        self.label_sets = list(self._label_sets)
        self.stacks = list(self._stacks)
        self.samples = list(self._samples)

    def _add_string(self, data):
        self._budget.spend(80 + 4 * len(data))
        try:
            self.strings.append(data.decode())
        except UnicodeDecodeError:
            raise fault('a string is not UTF-8') from None

    def _add_type(self, data):
        self._budget.spend(200)
        self.types.append(tuple(numbers_of(data, (1, 2))))

    def _add_function(self, data):
        self._budget.spend(300)
        self.functions.append(tuple(numbers_of(data, (1, 2, 4, 5))))

    def _add_location(self, data):
        self._budget.spend(300)
        numbers = {1: 0, 3: 0}
        lines = []
        for field, wire_type, value in fields(data):
            if field == 4 and wire_type == BYTES:
                self._budget.spend(200)
                lines.append(tuple(numbers_of(value, (1, 2, 3))))
            elif field in numbers and wire_type == VARINT:
                numbers[field] = value
            elif field == 4 or field in numbers:
                raise fault('a location has a field of the wrong wire type')
        self.locations.append((*map(signed, numbers.values()), lines))

    def _add_sample(self, data):
        stack, values, labels = [], [], []
        label_set = tail = None
        at = 0
        while at < len(data):
            if tail is None and data[at] == _LABEL_KEY:
                # Most samples end with the labels of another.
                tail = data[at:]
                label_set = self._tails.get(tail)
                if label_set is not None:
                    break
            field, wire_type, value, at = field_at(data, at)
            if field == 1:
                if wire_type == VARINT:
                    value = varint(value)
                elif wire_type != BYTES:
                    raise fault('a number has the wrong wire type')
                stack.append(value)
            elif field == 2:
                values += _values(wire_type, value)
                if len(values) > _MOST_VALUES:
                    raise fault(f'a sample has more than {_MOST_VALUES} '
                                'values')
            elif field == LABEL:
                if wire_type != BYTES:
                    raise fault('a label has the wrong wire type')
                labels.append(self._known(self._labels, value, len(value)))
            if field != LABEL and tail is not None:
                tail = b''
        if label_set is None:
            label_set = self._known(self._label_sets, tuple(labels),
                                    8 * len(labels))
            if tail:
                self._budget.spend(200 + len(tail))
                self._tails[tail] = label_set
        stack = self._known(self._stacks, b''.join(stack), len(data))
        self._add_values((stack, label_set), values)

    def _known(self, rows, key, n_bytes):
        """Return the number of a row, a new one if there is none."""
        number = rows.get(key)
        if number is None:
            self._budget.spend(250 + n_bytes)
            number = rows[key] = len(rows)
        return number

    def _add_values(self, key, values):
        num = self.num_values
        if num is None:
            num = self.num_values = len(self.types) or len(values)
        if len(values) != num:
            raise fault(f'a sample has {len(values)} values for {num} '
                        'sample types')
        start = num * self._known(self._samples, key, 100 + 8 * num)
        if start == len(self.values):
            self.values.extend(values)
            return
        try:
            for place, value in enumerate(values, start):
                self.values[place] += value
        except OverflowError:
            raise fault('the weight of a stack is beyond 64 bits') from None


def _values(wire_type, value):
    if wire_type == BYTES and len(value) > _MOST_VALUE_BYTES:
        raise fault(f'a sample has more than {_MOST_VALUES} values')
    return _numbers(2, wire_type, value)


def _numbers(field, wire_type, value):
    """Return the numbers of a repeated field, packed or not."""
    if wire_type == VARINT:
        return [signed(value)]
    if wire_type == BYTES:
        return unpacked(value)
    raise wrong_type(field)


def _cost_of_numbers(value):
    return 40 * (len(value) if isinstance(value, bytes) else 1)
