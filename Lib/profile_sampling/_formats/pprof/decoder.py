"""Decoder of pprof messages, ours and other tools', trusted or not.

Input may be hostile: everything wrong is a ValueError that names the fault,
and memory is bounded (see Budget).
"""

from operator import add

from profile_sampling._data.label_names import OF_INSTRUCTIONS, OF_SAMPLES
from profile_sampling._data.losses import RENAMED, add_counter
from profile_sampling._data.origins import ORIGINS
from profile_sampling._data.schema import CORE_KEYS, Key, of_rows
from profile_sampling._data.values import (
    NAMES, NATIVE, OPCODES, WAITING, Process)
from profile_sampling._formats.pprof import (
    BLOCKED, CALLS, COVERED, HAS_MINE, IDLE, KEY, LIVES, MARK, ORIGIN,
    PROCESS, TIMELINE, VALUE, counts, lives, moments, process_of)
from profile_sampling._formats.pprof.builder import Builder
from profile_sampling._formats.pprof.encoder import (
    DEFAULT_TYPE, DURATION_NS, PERIOD, TIME_NS)
from profile_sampling._formats.pprof.functions import Functions, Names
from profile_sampling._formats.pprof.labels import Labels
from profile_sampling._formats.pprof.parser import Message
from profile_sampling._formats.pprof.types import Columns
from profile_sampling._formats.pprof.wire import numbers_of

# No clock of a profiler ticks faster; other tools give a period of 1 ns.
_SHORTEST_PERIOD_NS = 1000
# Columns that a file may name beside ours.
_MOST_KEYS = 16
_NO_KEYS = frozenset([*[key.name for key in CORE_KEYS], *OF_SAMPLES,
                      *OF_INSTRUCTIONS])


def decode(data, budget):
    """Return the tables of an encoded message, as the core would give them.

    Raise ValueError if it needs more than *budget*.
    """
    return _Decoder(Message(data, budget), budget).decode()


class _Decoder:
    """Turns the parts of one Profile message into tables."""

    def __init__(self, message, budget):
        self._message = message
        self._budget = budget
        self._strings = message.strings

    def decode(self):
        message = self._message
        if not self._strings or self._strings[0]:
            raise ValueError('is not a pprof file (its first string is not '
                             'the empty one)')
        types = [(self._string(kind), self._string(unit))
                 for kind, unit in message.types]
        if not types:
            raise ValueError('is not a pprof file (it has no sample types)')
        if message.num_values not in (None, len(types)):
            raise ValueError(f'a sample has {message.num_values} values for '
                             f'{len(types)} sample types')
        comments = [self._string(number) for number in message.comments]
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
        calls = facts.pop('calls')
        if calls:
            facts['counts'] = counts.read(calls, self._budget)
        functions = Functions(Names(facts.pop('modules'), self._budget),
                              self._budget)
        is_python = [functions.add(self._string(name), self._string(filename),
                                   first_line)
                     for _, name, filename, first_line in message.functions]
        natives = [None if lines else
                   functions.native(address & 0xFFFF_FFFF_FFFF_FFFF)
                   for _, address, lines in message.locations]
        labels = Labels(self._labels(), functions, self._budget,
                        is_ours=MARK in comments,
                        instructions=bool(facts['names'] & OPCODES),
                        process=facts.pop('process'),
                        plain=facts.pop('plain'))
        about = list(map(labels.read, message.label_sets))
        builder = Builder(message, is_python, natives, self._budget)
        samples = self._samples(about, functions, builder, columns,
                                len(facts['keys']) + len(columns.places))
        frames, nodes = builder.tables()
        return {**facts, 'functions': functions.rows, 'frames': frames,
                'nodes': nodes, 'labels': labels.rows, 'columns': samples,
                'threads': labels.threads}

    def _labels(self):
        """Return the key, the text and the number of each label."""
        meanings = []
        for label in self._message.labels:
            self._budget.spend(250)
            key, text, number = numbers_of(label, (1, 2, 3))
            meanings.append((self._string(key), self._string(text), number))
        return meanings

    def _samples(self, about, functions, builder, columns, width):
        """Return the columns of samples, with those that are the same to us as
        one."""
        nodes = [0, *[builder.holder(*holder)
                      for holder in functions.holders]]
        rows = {}
        values = iter(self._message.values)
        values = zip(*[values] * (self._message.num_values or 0))
        for (stack, label_set), its_values in zip(self._message.samples,
                                                  values):
            its_values = [its_values[place] * factor if factor else 0
                          for place, factor in columns.places]
            if columns.is_older and not any(its_values):
                continue
            (thread, labels, state, holder_thread, holder, *plain,
             instruction) = about[label_set]
            if state == BLOCKED:
                state = (NATIVE if columns.is_computing(its_values)
                         else WAITING)
            key = (builder.node(stack, instruction), thread, labels, state,
                   holder_thread, nodes[holder], *plain)
            known = rows.get(key)
            if known is None:
                self._budget.spend(400 + 40 * len(its_values))
            else:
                its_values = list(map(add, known, its_values))
            rows[key] = its_values
        try:
            self._budget.need(8 * len(rows) * width)
            return of_rows(rows, width)
        except OverflowError:
            raise ValueError(
                'the weight of a stack is beyond 64 bits') from None

    def _string(self, index):
        if not 0 <= index < len(self._strings):
            raise ValueError(f'refers to string {index}, which does not '
                             'exist')
        return self._strings[index]

    def _facts(self, comments, columns):
        """What is true of the whole profile."""
        default = self._string(self._message.facts[DEFAULT_TYPE])
        period = self._message.facts[PERIOD]
        facts = {
            'mode': columns.mode(default),
            'value_types': columns.value_types,
            'rate_hz': (1_000_000_000 // period
                        if period >= _SHORTEST_PERIOD_NS else 0),
            'depth_frames': 0, 'names': 0,
            'start_time_ns': self._message.facts[TIME_NS],
            'duration_ns': self._message.facts[DURATION_NS],
            'python_version': '',
            'stats': {}, 'meta': {}, 'modules': set(), 'pids': set(),
            'spans': set(),
            'timelines': [], 'counters': [], 'calls': [], 'plain': [], 'said': {},
            'covered': set(), 'origins': {}, 'processes': set(),
        }
        if MARK in comments:
            facts['is_idle_known'] = f'# {IDLE}' in comments
            for comment in comments:
                _take_comment(comment, facts)
        # Of files that another tool has added up there are several.
        covered = facts['covered']
        facts['covered'] = (_spans(covered.pop()) if len(covered) == 1
                            else None)
        said = facts.pop('said')
        facts['value_types'] = tuple([
            its.which(*said.get(its.name, ())) for its in columns.value_types])
        facts['keys'] = (*CORE_KEYS, *map(Key, facts['plain']))
        # Of files that another tool has merged there are several.
        pids = facts.pop('pids')
        facts['pid'] = pids.pop() if len(pids) == 1 else None
        processes = facts.pop('processes')
        facts['process'] = processes.pop() if len(processes) == 1 else None
        if facts['process'] is None and facts['pid'] is not None:
            # Earlier versions knew no more.
            facts['process'] = Process(facts['pid'], '', 0)
        spans = facts.pop('spans')
        facts['span_ns'] = spans.pop() if len(spans) == 1 else None
        facts['meta'] = {name: texts.pop() for name, texts
                         in facts['meta'].items() if len(texts) == 1}
        return facts


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
    elif key == PROCESS:
        facts['processes'].add(process_of(text))
    elif key == 'mode':
        if text not in [its.kind for its in facts['value_types']]:
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
    elif key == ORIGIN:
        origin, _, code = text.partition(' ')
        if origin in ORIGINS:
            facts['origins'].setdefault(code, origin)
    elif key == HAS_MINE:
        # Of merged files, if any has.
        facts[HAS_MINE] = facts.get(HAS_MINE, False) or text == '1'
    elif key == KEY:
        if (text not in facts['plain'] and text not in _NO_KEYS
                and len(facts['plain']) < _MOST_KEYS):
            facts['plain'].append(text)
    elif key == COVERED:
        facts['covered'].add(tuple(map(_number, text.split(' '))))
    elif key == VALUE:
        adds, of, name = [*text.split(' ', 2), '', ''][:3]
        facts['said'][name] = adds, of
    elif key == TIMELINE:
        facts['timelines'].append(text)
    elif key == LIVES:
        facts['counters'].append(text)
    elif key == CALLS:
        facts['calls'].append(text)
    elif key == 'stat':
        name, _, value = text.rpartition(' ')
        # Tools that merge files keep the comments of all.
        add_counter(facts['stats'], RENAMED.get(name, name), _number(value))


def _spans(numbers):
    if len(numbers) % 2 or numbers[0] < 0 or list(numbers) != sorted(numbers):
        raise ValueError('has spans of time that are none')
    return tuple(zip(numbers[::2], numbers[1::2]))


def _number(text):
    # 64 bits are at most 20 digits; int() would take much else.
    digits = text.removeprefix('-')
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 20):
        raise ValueError(f'a comment has {text[:40]!r} for a number')
    return int(text)
