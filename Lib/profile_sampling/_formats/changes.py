"""What changed between runs, for people: text and Markdown.

This file owns what is said of a comparison and how it is laid out.  It must
not compute anything: that is _data's.
"""

from profile_sampling._data import chance, compare
from profile_sampling._data.label_names import label_of
from profile_sampling._data.runs import (
    FUNCTION, MINE, NOT_LABELS, SITE, STATE_NAME)
from profile_sampling._data.values import printable
from profile_sampling._formats.amounts import Amounts, percent
from profile_sampling._formats.words import (
    long_title, padded, state_name, text_width, without_middle, wrapped)

TOP = 20
# Characters of a name for which other columns are left out.
_NAME = 30
# Colours of what is more, less, and what may be chance.
_RED, _GREEN, _FAINT, _RESET = '\x1b[31m', '\x1b[32m', '\x1b[2m', '\x1b[0m'
_COLOURS = {compare.MORE: _RED, compare.LESS: _GREEN,
            compare.UNCLEAR: _FAINT}
_GATE_COLOURS = {compare.REGRESSION: _RED, compare.PASSED: _GREEN,
                 compare.INCONCLUSIVE: ''}
_GATE_WORDS = {compare.REGRESSION: 'REGRESSION',
               compare.PASSED: 'no regression',
               compare.INCONCLUSIVE: 'inconclusive'}
_UNKNOWN, _MEASURED = '?', 'measured'
_WITHOUT_LABEL = 'without the label'
# Of the time that is compared.
_BUSY = 0.05


def text(comparison, *, top=TOP, width=None, color=False):
    """Return the report as text; no *width* has room for everything."""
    view = _View(comparison, top)
    lines = [*_wrapped(view.heading(), width)]
    if comparison.scale != compare.SHARE:
        lines += ['', *_total(view, width)]
    if comparison.gates:
        lines += ['', *_gates(view, width, color)]
    lines += ['', *_table(view, width, color)]
    lines += [*view.rest(), '', *_wrapped(view.notes(), width)]
    return '\n'.join(lines) + '\n'


def markdown(comparison, *, top=TOP):
    """Return the report for a pull request."""
    view = _View(comparison, top)
    lines = [f'### {_escaped(view.summary())}', '',
             *[f'- {_escaped(line)}' for line in view.heading()], '']
    if comparison.gates:
        lines += [*_markdown_table(
            ['gate', 'change', '±', 'p', 'verdict'], 'lrrrl',
            [view.gate(gate) for gate in comparison.gates]), '']
    columns = view.columns
    rows = [*map(view.cells, view.rows)]
    if comparison.scale != compare.SHARE:
        rows.insert(0, view.total_cells())
    lines += _markdown_table(columns, 'r' * (len(columns) - 1) + 'l', rows)
    lines += ['', *map(_escaped, view.rest())]
    lines += ['', *[f'> {_escaped(note)}  ' for note in view.notes()]]
    return '\n'.join(lines) + '\n'


def words(comparison):
    """Return what is said of a comparison beside its rows, as a dict."""
    view = _View(comparison, TOP)
    return {'what': view.what(), 'heading': [*view.heading()],
            'gates': [view.gate(gate) for gate in comparison.gates],
            'notes': [*view.notes()]}


class _View:
    """A comparison in words and figures."""

    def __init__(self, comparison, top):
        self.comparison = comparison
        self.rows = comparison.rows[:top]
        changes = [comparison.total, *self.rows]
        share = comparison.scale == compare.SHARE
        unit = 'share' if share else comparison.value_type.unit
        self.total_amounts = Amounts(unit, _greatest([comparison.total]))
        self.amounts = Amounts(unit, _greatest(self.rows or changes))
        self.columns = ['before', 'after', 'change', '±', 'change %']
        if comparison.method == compare.TEST:
            self.columns.append('p')
        self.columns += ['', self.what()]

    def what(self):
        """What rows are, and what of them is compared."""
        question = self.comparison.question
        title = long_title(self.comparison.value_type)
        if question.by == FUNCTION:
            which = 'cumulative' if question.cumulative else 'self'
            return f'function, by {which} {title}'
        if question.by == MINE:
            return f'line of my code, by {title}'
        if question.by == SITE:
            return f'call site, by {title}'
        if question.by in NOT_LABELS:
            return f'{question.by}, by {title}'
        return f'label {printable(label_of(question.by))}, by {title}'

    def summary(self):
        change = self.comparison.total
        text = f'{long_title(self.comparison.value_type)} in all'
        if self.comparison.scale == compare.SHARE:
            return f'Shares of the {long_title(self.comparison.value_type)}'
        if self.comparison.scale == compare.WORK:
            text += ' per unit of work'
        return f'{text[:1].upper()}{text[1:]}: {_relative(change)}'

    def heading(self):
        comparison = self.comparison
        for name, runs in (('before', comparison.before),
                           ('after', comparison.after)):
            seconds = sum([run.duration_ns for run in runs]) / 1e9
            rates = sorted({run.rate_hz for run in runs})
            versions = sorted({run.python_version for run in runs})
            facts = [f'{len(runs):,} run{"s" * (len(runs) > 1)}',
                     f'{seconds:,.3f} s']
            facts += [f'{rate:,} Hz' for rate in rates if rate]
            facts += [f'Python {printable(version)}'
                      for version in versions if version]
            if comparison.scale == compare.WORK:
                work = sum([run.work for run in runs])
                facts.append(f'{work:,} units of work')
            yield f'{name:6}  {", ".join(facts)}'

    def total_cells(self):
        return self._cells(self.comparison.total, self.total_amounts,
                           ['total'])

    def cells(self, change):
        return self._cells(change, self.amounts, [self.name(change)])

    def _cells(self, change, amounts, name):
        cells = [amounts.text(change.before), amounts.text(change.after),
                 amounts.signed(change.change),
                 self._error(change, amounts),
                 _relative(change)]
        if self.comparison.method == compare.TEST:
            cells.append(_chance(change.p))
        return [*cells, _mark(change), *name]

    def _error(self, change, amounts):
        if change.low is None:
            return _UNKNOWN
        if (self.comparison.method == compare.SAMPLING
                and change.low == change.high):
            return _MEASURED
        return amounts.signed(_half(change)).removeprefix('+')

    def name(self, change):
        place = change.place
        by = self.comparison.question.by
        if place.name is None:
            return ('without a name' if by in NOT_LABELS
                    else _WITHOUT_LABEL)
        if by == STATE_NAME:
            return state_name(place.name)
        text = printable(place.name)
        if place.function is None:
            return text
        if place.line:
            text += f':{place.line}'
        if place.callee:
            text += f' in {printable(place.callee)}'
        if change.other is not None and (
                change.is_clear() and change.verdict != compare.UNCLEAR):
            text += f' ({self._other(change)})'
        return text

    def _other(self, change):
        """The change by the scale that has another sign."""
        if self.comparison.scale == compare.SHARE:
            unit = self.comparison.value_type.unit
            return ('but ' + Amounts(unit, change.other).signed(change.other)
                    + ' in all')
        return f'but {percent(change.other, 2)} of the total'

    def gate(self, gate):
        change = gate.change
        return [f'{printable(gate.target.name)} '
                f'({100 * gate.target.least:g} %)', _relative(change),
                self._relative_error(change), _chance(change.p),
                _GATE_WORDS[gate.verdict]]

    def _relative_error(self, change):
        # What one run says of the next is not known.
        if (self.comparison.method == compare.SAMPLING
                or not change.before):
            return _UNKNOWN
        return f'{100 * _half(change) / abs(change.before):,.1f} %'

    def rest(self):
        more = len(self.comparison.rows) - len(self.rows)
        return [f'... {more:,} more row{"s" * (more > 1)}'] if more else []

    def notes(self):
        comparison = self.comparison
        runs = len(comparison.before), len(comparison.after)
        match comparison.method:
            case compare.SAMPLING:
                each = 'one run each' if runs == (1, 1) else (
                    'one run on a side')
                yield (f'{each}: run-to-run variation unknown; ± is the '
                       'error of sampling alone (95 %)')
            case compare.SPREAD:
                yield (f'fewer than {compare.MIN_RUNS} runs a side: ± is '
                       'from how runs differ (95 %); nothing is judged')
            case compare.TEST:
                yield (f"{runs[0]} and {runs[1]} runs: Welch's t test; p is "
                       'adjusted by Benjamini and Hochberg')
                yield ('more, less: p <= '
                       f'{chance.ALPHA:g}, and by '
                       f'{100 * compare.LEAST_OF_TOTAL:g} % of the total '
                       f'and {100 * compare.LEAST_OF_ROW:g} % of the row at '
                       'least; '
                       'smaller rows are not tested')
        names = {run.names for run in comparison.before + comparison.after}
        if len(names) > 1:
            yield (f'names are {" and ".join(sorted(names))}: C functions '
                   'and operators are rows of their own in some runs only')
        if comparison.gates and comparison.method != compare.TEST:
            yield f'gates need {compare.MIN_RUNS} runs a side'
        if any([row.low is None for row in self.rows]):
            yield ('± ?: the rate is not known, as in sums of profiles of '
                   'several rates')
        yield from self._busy()
        yield from self._signs()

    def _signs(self):
        """Say what signs in the tables mean that need not be there."""
        shown = {cell for change in self.rows for cell in self.cells(change)}
        if self.comparison.scale != compare.SHARE:
            shown.update(self.total_cells())
        if _MEASURED in shown:
            yield f'{_MEASURED}: by clocks, without an error of sampling'
        if _WITHOUT_LABEL in shown:
            label = printable(label_of(self.comparison.question.by))
            yield f'{_WITHOUT_LABEL}: time that has no {label}'
        if '~' in shown:
            yield '~: may be chance'

    def _busy(self):
        """Say so if a side had too little of the machine."""
        shares = [max([run.cpu_wait_share for run in side]) for side in
                  (self.comparison.before, self.comparison.after)]
        if max(shares) >= _BUSY:
            yield ('CPU wait is up to {:.0%} of the time before and {:.0%} '
                   'after: the machine was busy. CPU time does not depend on '
                   'that: --value cpu'.format(*shares))


def _wrapped(notes, width):
    if width is None:
        return notes
    # No break between a figure and its unit.
    return [line.replace('\0', ' ') for note in notes for line in wrapped(
        note.replace(' %', '\0%').split(' '), width, ' ')]


def _greatest(changes):
    return max([max(abs(change.before), abs(change.after))
                for change in changes])


def _half(change):
    """The longer half of an interval."""
    return max(change.high - change.change, change.change - change.low)


def _relative(change):
    if change.before and change.after:
        return percent(change.relative)
    # No record is less than some four periods, and not never.
    if not change.is_clear() or change.verdict == compare.UNCLEAR:
        return '-'
    return 'new' if change.after else 'gone'


def _chance(p):
    if p is None:
        return '-'
    return f'{p:.3f}' if p >= 0.001 else '<.001'


def _mark(change):
    """One word: whether it is more or less, or may be chance."""
    if change.verdict in (compare.MORE, compare.LESS):
        return change.verdict
    if change.verdict == compare.UNCLEAR or not change.is_clear():
        return '~'
    return ''


def _total(view, width):
    return _fitted([['', *view.columns[:-2], ''],
                    ['total', *view.total_cells()[:-1]]], 0, width)


def _gates(view, width, color):
    lines = _fitted([['gate', 'change', '±', 'p', ''],
                     *map(view.gate, view.comparison.gates)], 0, width)
    colours = ['', *[_GATE_COLOURS[gate.verdict]
                     for gate in view.comparison.gates]]
    return [_coloured(line, colour if color else '')
            for line, colour in zip(lines, colours)]


def _table(view, width, color):
    rows = [view.columns, *map(view.cells, view.rows)]
    lines = _fitted(rows, len(view.columns) - 1, width)
    colours = ['']
    for row in view.rows:
        clear = row.verdict or (None if row.is_clear() else compare.UNCLEAR)
        colours.append(_COLOURS.get(clear, ''))
    return [_coloured(line, colour if color else '')
            for line, colour in zip(lines, colours)]


def _coloured(line, colour):
    return f'{colour}{line}{_RESET}' if colour else line


def _fitted(rows, name, width):
    """Return lines of columns that are no longer than *width*, if there is
    one.

    Margins and what was before, which the change says in percent, are left
    out for names; the column *name* loses what is in its middle.
    """
    heading = rows[0][name]
    for left_out in '±', 'before':
        if width is None or _length(rows, heading, _NAME) <= width:
            break
        if left_out in rows[0]:
            at = rows[0].index(left_out)
            rows = [[*row[:at], *row[at + 1:]] for row in rows]
    if width is not None:
        at = rows[0].index(heading)
        room = max(width - _length(rows, heading, 0), 1)
        rows = [[*row[:at], without_middle(row[at], room), *row[at + 1:]]
                for row in rows]
    return _aligned(rows, left={
        number for number, text in enumerate(rows[0])
        if text == '' or number == (0 if name == 0 else len(rows[0]) - 1)})


def _length(rows, heading, most):
    """Return the length of lines if the column *heading* has *most* at
    most."""
    at = rows[0].index(heading)
    lengths = [max(map(text_width, column)) for column in zip(*rows)]
    lengths[at] = min(lengths[at], most)
    return sum(lengths) + 2 * (len(lengths) - 1)


def _aligned(rows, left):
    """Return lines of columns, those that are not *left* to the right."""
    widths = [max(map(text_width, column)) for column in zip(*rows)]
    return ['  '.join([
        padded(cell, width, left=number in left)
        for number, (cell, width) in enumerate(zip(row, widths))]).rstrip()
        for row in rows]


def _markdown_table(columns, sides, rows):
    marks = {'l': ':--', 'r': '--:'}
    yield _markdown_row(columns)
    yield _markdown_row([marks[side] for side in sides])
    for row in rows:
        yield _markdown_row([*map(_escaped, row[:-1]), _code(row[-1])])


def _markdown_row(cells):
    return f'| {" | ".join(cells)} |'


# What means something in Markdown or would be HTML.
_SPECIAL = str.maketrans({char: f'\\{char}' for char in '\\`*_[]<>|#~'})


def _escaped(text):
    return text.translate(_SPECIAL).replace('&', '&amp;')


def _code(text):
    """Text in which nothing means anything, in a table's cell."""
    return f'<code>{_html(text)}</code>' if text else ''


def _html(text):
    import html
    # A bar ends the cell even here.
    return html.escape(text).replace('|', '&#124;')
