"""Tables of instructions, of source and of counters."""

from profile_sampling._data import by_function, by_instruction, match
from profile_sampling._data.counts import place_key
from profile_sampling._data.values import COUNT, OPCODES, STATES
from profile_sampling._formats import header, source_text
from profile_sampling._formats.sites import (
    calls_by_line, place_cells, place_columns)
from profile_sampling._formats.table import Column, Table
from profile_sampling._formats.words import not_shown

_RUNNING = STATES.index('running')
_QUALITY = (
    ('biased', 'the captures: taken at the next safe point, not at the tick'),
    ('unsampled', 'the time: too short to meet a tick'),
    ('overhead', 'the CPU time: the profiler\'s own in sampled threads'))
# Instructions below a line of source: of all time, and how many.
_LEAST_SHARE, _INSTRUCTIONS = 0.005, 5


def opcodes(tables, top):
    """The Table of instructions, C functions and operators included.

    Raise ValueError if the session did not name them.
    """
    if not tables.names & OPCODES:
        raise ValueError('the profile has no instructions; record it with '
                         'names=all or names=opcodes')
    rows = by_instruction.rows(tables)
    own = tables.own
    total = tables.totals[own]
    value_type = tables.value_types[own]
    suffix = '_ns' if value_type.unit == 'nanoseconds' else ''
    columns = [
        Column('self_share', 'self', 'share'),
        Column(f'self{suffix}', 'self', 'value'),
        Column('specialized_share', 'spec', 'share'),
        Column('deoptimized_share', 'deopt', 'share'),
        Column('instruction', 'instruction', 'text'),
        *place_columns('line'),
        Column('column', '', 'count', 'data'),
        Column('instruction_offset', '', 'count', 'data'),
        Column('in', 'in', 'name')]
    cells = [(row.self_values[own] / total if total else 0.0,
              row.self_values[own], *_specialized(row),
              row.base_opname or '?', *place_cells(row.function, row.line),
              row.column, row.instruction_offset, _callee(row, own))
             for row in rows[:top]]
    notes = ['spec: samples that saw it specialized; deopt: that did not, '
             'although others did']
    return Table('opcodes', 'Instructions by self time, with the C functions '
                 'and operators they were in', columns, cells,
                 value_type=value_type, notes=notes,
                 more=(len(rows) - len(cells), 'instruction'))


def _specialized(row):
    seen = row.specialized_count + row.unspecialized_count
    if not seen:
        return None, None
    return row.specialized_count / seen, row.deoptimized_count / seen


def _callee(row, own):
    """What most of the time was spent in, if not in the bytecode itself."""
    times = [callee.values[own] for callee in row.callees]
    if not times or times[0] <= row.self_values[own] - sum(times):
        return '', ''
    function = row.callees[0].function
    return function.module or '', function.qualname


def quality(tables, sites):
    """The Table of what says how far a profile can be trusted."""
    facts = header.quality(tables, sites)
    rows = [(f'{100 * facts[f"{name}_share"]:.1f} %', name, what)
            for name, what in _QUALITY
            if facts[f'{name}_share'] is not None]
    if facts['achieved_hz'] is not None:
        rows.insert(0, (f'{facts["achieved_hz"]:,} of '
                        f'{facts["rate_hz"]:,} Hz', 'rate',
                        'records per second of running time'))
    rows.append((', '.join(header.losses(tables)) or '0', 'lost', 'samples'))
    return Table('quality', 'Quality', [
        Column('value', 'value', 'text'), Column('fact', 'fact', 'text'),
        Column('meaning', 'of', 'text')], rows, value_type=COUNT)


def counters(tables):
    """The Table of all counters of the session, as they are."""
    return Table(
        'stats', 'Counters', [Column('value', 'value', 'count'),
                              Column('counter', 'counter', 'text')],
        [(value, name) for name, value in tables.stats.items()],
        value_type=COUNT)


def source(tables, sites, top, pattern):
    """The Tables of functions that match, line by line: a list.

    The first *top* functions by cumulative time have one.

    Raise ValueError for a pattern that is none, or that nothing matches.
    """
    own = tables.own
    rows = _matching(by_function.functions(tables), pattern)
    if not rows:
        raise ValueError('no Python function and no file has a name like '
                         f'{pattern!r}')
    rows.sort(key=lambda row: -row.cum_values[own])
    wanted = {row.function for row in rows}
    found = bytearray([function in wanted for function in tables.functions])
    lines = by_function.lines_of(tables, found)
    site_sums = {(row.function, row.line): row.sums for row in sites.rows
                 if row.function in lines}
    instructions = {}
    if tables.names & OPCODES:
        for row in by_instruction.rows(tables, found):
            key = row.function, row.line
            instructions.setdefault(key, []).append(row)
    shown = [_Listing(tables, sites, row.function, lines[row.function],
                      site_sums, instructions).table()
             for row in rows[:top]]
    shown[-1].notes += not_shown(len(rows), top, 'function that matches',
                                 'functions that match')
    return shown


def _matching(rows, pattern):
    """Return the rows of functions in Python that are called so; if there are
    none, whose name matches, or else whose file does: paths have many names
    in them."""
    wanted = match.compiled(pattern)
    rows = [row for row in rows if row.function.kind == 'python']
    return ([row for row in rows
             if f'.{row.function.name}'.endswith(f'.{pattern}')]
            or [row for row in rows if wanted.search(row.function.name)]
            or [row for row in rows if wanted.search(row.function.filename)])


class _Listing:
    """One function, its lines and what each cost."""

    def __init__(self, tables, sites, function, cum, sums, instructions):
        self._tables = tables
        self._sites = sites
        self._function = function
        self._cum = cum
        self._sums = sums
        self._instructions = instructions
        self._calls = calls_by_line(tables)

    def table(self):
        function = self._function
        value_type = self._tables.value_types[self._tables.own]
        suffix = '_ns' if value_type.unit == 'nanoseconds' else ''
        margin = 'both' if self._sites.precision.is_known else 'data'
        columns = [
            Column(f'self{suffix}', 'self', 'value'),
            Column(f'running{suffix}', 'run', 'value'),
            Column(f'running_margin{suffix}', '\N{PLUS-MINUS SIGN}',
                   'margin', margin),
            Column(f'cum{suffix}', 'cum', 'value'),
            Column('calls', 'calls', 'count',
                   'both' if self._calls else 'data'),
            Column('line', 'line', 'count'),
            Column('source', 'source', 'code'),
            Column('instruction_offset', '', 'count', 'data')]
        text, notes = source_text.read(
            self._tables, function, self._cum,
            source_text.Files(self._tables))
        rows = []
        for line in sorted(text.keys() | self._cum.keys()):
            rows += self._rows(line, text.get(line, ''))
        return Table('source', f'{function.name} in {function.filename}',
                     columns, rows, value_type=value_type, notes=notes)

    def _rows(self, line, text):
        sums = self._sums.get((self._function, line))
        cum = self._cum.get(line)
        if sums is None:
            numbers = (None,) * 3 if cum is None else (0, 0, 0)
        else:
            numbers = (sums.total, sums.by_state[_RUNNING],
                       self._sites.precision.margin_ns(sums.running_records))
        made = self._calls.get((place_key(self._function), line))
        yield *numbers, cum, made, line, text, None
        own = self._tables.own
        least = _LEAST_SHARE * self._sites.busy
        for row in self._instructions.get((self._function, line), ()
                                          )[:_INSTRUCTIONS]:
            if row.self_values[own] >= least and (row.base_opname
                                                  or row.callees):
                yield (row.self_values[own], None, None, None, None, None,
                       ' ' * max(0, row.column - 1) + f'^ {_named(row, own)}',
                       row.instruction_offset)


def _named(row, own):
    parts = [row.base_opname or '?']
    specialized, deoptimized = _specialized(row)
    if specialized is not None:
        parts.append(f'{100 * specialized:.0f}% specialized')
        if row.opnames:
            parts[-1] += f' ({row.opnames[0][0]})'
        if deoptimized:
            parts.append(f'{100 * deoptimized:.0f}% deoptimized')
    callee = '.'.join(filter(None, _callee(row, own)))
    return ', '.join([*parts, f'in {callee}'] if callee else parts)
