"""Decoder of pprof messages, ours and other tools', trusted or not.

This file owns what a pprof profile means to us; the core's parse_pprof() and
build_pprof() own how it is encoded and how stacks are kept.  Input may be
hostile: everything wrong is a ValueError that names the fault, and memory is
bounded (see Budget).
"""

from array import array

import _profile
from profile_sampling._data.values import NAMES, OPCODES
from profile_sampling._formats.pprof import (
    LIVES, MARK, TIMELINE, lives, moments)
from profile_sampling._formats.pprof.functions import Functions, Names
from profile_sampling._formats.pprof.labels import Labels
from profile_sampling._formats.pprof.types import Columns

# No clock of a profiler ticks faster; other tools give a period of 1 ns.
_SHORTEST_PERIOD_NS = 1000

_NO_LINES = 0


def decode(read, budget):
    """Return the tables of an encoded message, as the core would give them.

    *read* returns some bytes more of it, none at its end.  Raise ValueError
    if it needs more than *budget*.
    """
    message = _profile.parse_pprof(read, budget.limit)
    budget.left = message['left']
    return _Decoder(message, budget).decode()


class _Decoder:
    """Turns the parts of one Profile message into tables."""

    def __init__(self, message, budget):
        self._message = message
        self._budget = budget
        self._strings = message['strings']

    def decode(self):
        if not self._strings or self._strings[0]:
            raise ValueError('is not a pprof file (its first string is not '
                             'the empty one)')
        types = [(self._string(kind), self._string(unit))
                 for kind, unit in self._rows('types', 2)]
        if not types:
            raise ValueError('is not a pprof file (it has no sample types)')
        num_values = self._message['num_values']
        if num_values not in (-1, len(types)):
            raise ValueError(f'a sample has {num_values} values for '
                             f'{len(types)} sample types')
        comments = self._comments()
        columns = Columns(types, is_ours=MARK in comments)
        facts = self._facts(comments, columns)
        timelines = facts.pop('timelines')
        if timelines:
            facts['timeline'] = lambda tables: moments.read(
                timelines, tables, self._budget)
        counters = facts.pop('counters')
        if counters:
            facts['lives'] = lambda tables: lives.read(
                counters, tables, self._budget)
        functions = Functions(Names(facts.pop('modules'), self._budget),
                              self._budget)
        is_python = self._read_functions(functions)
        natives = self._natives(functions)
        labels = self._labels(functions, bool(facts['names'] & OPCODES))
        about = labels.read(self._rows('label_sets', 2), self._used_sets())
        message = self._message
        frames, nodes, samples = _profile.build_pprof(
            array('q', self._column('functions', 4, 0)), is_python,
            message['locations'], natives, message['lines'],
            message['stacks'], about, _numbers(functions.holders),
            message['samples'], max(num_values, 0),
            _numbers(columns.places), self._budget.limit, self._budget.left)
        return {**facts, 'functions': functions.rows, 'frames': frames,
                'nodes': nodes, 'labels': labels.rows, 'samples': samples,
                'threads': labels.threads}

    def _column(self, name, width, column):
        return memoryview(self._message[name]).cast('q')[column::width]

    def _rows(self, name, width):
        """Return the rows of a part as tuples."""
        numbers = memoryview(self._message[name]).cast('q').tolist()
        self._budget.spend(40 * len(numbers) + 60 * len(numbers) // width)
        rows = iter(numbers)
        return list(zip(*[rows] * width))

    def _string(self, index):
        if not 0 <= index < len(self._strings):
            raise ValueError(f'refers to string {index}, which does not '
                             'exist')
        return self._strings[index]

    def _comments(self):
        numbers = self._column('comments', 1, 0)
        self._budget.spend(200 * len(numbers))
        return [self._string(number) for number in numbers]

    def _facts(self, comments, columns):
        """What is true of the whole profile."""
        default = self._string(self._message['default_type'])
        period = self._message['period']
        facts = {
            'mode': columns.mode(default),
            'value_types': columns.value_types,
            'rate_hz': (1_000_000_000 // period
                        if period >= _SHORTEST_PERIOD_NS else 0),
            'depth_frames': 0, 'names': 0,
            'start_time_ns': self._message['time_ns'],
            'duration_ns': self._message['duration_ns'],
            'python_version': '',
            'stats': {}, 'meta': {}, 'modules': set(), 'pids': set(),
            'spans': set(),
            'timelines': [], 'counters': [],
        }
        if MARK in comments:
            for comment in comments:
                _take_comment(comment, facts)
        # Of files that another tool has merged there are several.
        pids = facts.pop('pids')
        facts['pid'] = pids.pop() if len(pids) == 1 else None
        spans = facts.pop('spans')
        facts['span_ns'] = spans.pop() if len(spans) == 1 else None
        facts['meta'] = {name: texts.pop() for name, texts
                         in facts['meta'].items() if len(texts) == 1}
        return facts

    def _read_functions(self, functions):
        """Return which functions are Python, a byte for each."""
        return bytes([
            functions.add(self._string(name), self._string(filename),
                          first_line)
            for _, name, filename, first_line in self._rows('functions', 4)])

    def _natives(self, functions):
        """Return per location its function if it has only an address."""
        counts = self._column('locations', 4, 3)
        natives = array('q', bytes(8 * len(counts)))
        if _NO_LINES in counts:
            addresses = self._column('locations', 4, 1)
            for location, count in enumerate(counts):
                if count == _NO_LINES:
                    natives[location] = functions.native(
                        addresses[location] & 0xFFFF_FFFF_FFFF_FFFF)
        return natives

    def _labels(self, functions, instructions):
        meanings = [(self._string(key), self._string(text), number)
                    for key, text, number in self._rows('labels', 3)]
        self._budget.spend(60 * len(meanings))
        return Labels(meanings, functions, self._budget, instructions)

    def _used_sets(self):
        """Return the numbers of the label sets that samples have."""
        width = 2 + max(self._message['num_values'], 0)
        used = set(self._column('samples', width, 1))
        self._budget.spend(100 * len(used))
        return used


def _numbers(rows):
    return array('q', [number for row in rows for number in row])


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
    elif key in ('rate_hz', 'depth_frames', 'whole_cpu_ns'):
        facts[key] = _number(text)
    elif key == 'span_ns':
        begin, _, end = text.partition(' ')
        begin_ns, end_ns = _number(begin), _number(end)
        if not 0 <= begin_ns <= end_ns:
            raise ValueError(f'has the range of time {text[:40]!r}')
        facts['spans'].add((begin_ns, end_ns))
    elif key == 'meta':
        name, _, text = text.partition(' ')
        facts['meta'].setdefault(name, set()).add(text)
    elif key == TIMELINE:
        facts['timelines'].append(text)
    elif key == LIVES:
        facts['counters'].append(text)
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
