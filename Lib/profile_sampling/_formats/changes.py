"""What changed between profiles: a report, for people and for programs.

The fields of the JSON are in Doc/library/profile_sampling-json.rst; a change
of what is there is a new number in SCHEMA.
"""

from profile_sampling._data import diff
from profile_sampling._data.label_names import without_mark
from profile_sampling._data.values import STATES, value_type
from profile_sampling._formats import report_files
from profile_sampling._formats.memory import round_figure
from profile_sampling._formats.table import WIDTH, Column, Table, lines
from profile_sampling._formats.words import (
    counted, long_title, percent, seconds, state_name, wrapped)

SCHEMA = 'profile_sampling.diff/2'
TOP, TOP_SHORT = 20, 8
_BEFORE_AND_AFTER = (
    Column('before', 'before', 'value'), Column('after', 'after', 'value'),
    Column('change', 'change', 'change'), Column('margin', '±', 'value'),
    Column('', 'change %', 'word', 'text'),
    Column('relative', '', 'share', 'data'), Column('', '', 'chance', 'text'))
_SHARES = value_type('share', '%')
_VERDICTS = {diff.REGRESSION: 'REGRESSION', diff.PASSED: 'no regression',
             diff.INCONCLUSIVE: 'inconclusive'}
_MOVED = {'names': 'C functions and operators are rows of their own',
          'depth_frames': 'what is deeper is in rows of its own'}
# Of the time that is compared, from which on the machine is called busy.
_BUSY = 0.05


def encode(difference, format, *, top=TOP, width=WIDTH, color=False):
    """Return the report in a format as bytes; *top* is of rows for people."""
    match format:
        case 'json':
            import json
            report = json.dumps(document(difference), indent=1) + '\n'
        case 'tsv':
            *_, table = _tables(difference, None)
            report = report_files.as_tsv([table])
        case 'markdown':
            report = markdown(difference, top=top)
        case 'text':
            report = text(difference, top=top, width=width, color=color)
    return report.encode()


def text(difference, *, top=TOP, width=WIDTH, color=False):
    """Return the report for people."""
    result = [line for fact in _heading(difference)
              for line in wrapped(fact.split(' '), width, ' ')]
    for table in _tables(difference, top):
        result += ['', *lines(table, width, color)]
    # No break between a figure and its unit.
    notes = [line.replace('\xa0', ' ') for note in _notes(difference)
             for line in wrapped(note.replace(' %', '\xa0%').split(' '),
                                 width, ' ')]
    result += ['', *notes] if notes else []
    return '\n'.join(result) + '\n'


def markdown(difference, *, top=TOP):
    """Return the report for a pull request."""
    change = difference.total
    title = long_title(difference.value_type)
    per = ' per unit of work' if difference.question.per else ''
    heading = (f'{title[:1].upper()}{title[1:]} in all{per}: '
               f'{_relative(change)}')
    if difference.question.share:
        heading = f'Shares of the {title}'
    return report_files.markdown(
        heading, _heading(difference), _tables(difference, top),
        _notes(difference))


def words(difference):
    """Return what is said of a difference beside its rows, as a dict."""
    return {'what': _what(difference),
            'notes': [*_mixed(difference), *_notes(difference)]}


def may_be_chance(row, difference):
    """Return whether a change need not be one: within its margin, or whatever
    it is, of single runs and of runs that had too little CPU."""
    return not row.is_clear or is_doubtful(difference)


def is_doubtful(difference):
    """Return whether that is so of each row."""
    return difference.method == diff.SAMPLING or _is_busy(difference)


def _is_busy(difference):
    return (difference.value_type.kind == 'wall'
            and max(_cpu_waits(difference)) >= _BUSY)


def _cpu_waits(difference):
    return [max([run.cpu_wait_share for run in side])
            for side in (difference.before, difference.after)]


def tag(row):
    """Return 'new' or 'gone' for a row of which one side surely has nothing,
    '' for any other."""
    if not row.is_clear or row.before and row.after:
        return ''
    return 'new' if row.after else 'gone'


def document(difference):
    """Return everything, all rows included, as a dict."""
    question = difference.question
    return {
        'schema': SCHEMA,
        'mode': difference.before[0].mode,
        'value': difference.value_type.name,
        'unit': difference.value_type.unit,
        'by': question.by,
        'cum': question.cum,
        'share': question.share,
        'per': question.per,
        'method': difference.method,
        'before': _side(difference.before),
        'after': _side(difference.after),
        'total': _judged(difference.total, difference),
        'gates': [{'target': gate.target, 'least': gate.least,
                   'least_bytes': gate.least_bytes,
                   'verdict': gate.verdict} | _change(gate.row)
                  for gate in difference.gates],
        'verdict': difference.verdict(),
        **_calls_document(difference),
        'rows': [_place(row) | _judged(row, difference)
                 for row in difference.rows]}


def _calls_document(difference):
    if not difference.question.calls:
        return {}
    rows, total, is_per = difference.calls()
    return {'calls': [_place(row) | _change(row) for row in rows],
            'calls_total': _change(total), 'calls_per_request': is_per}


def _side(runs):
    return {'runs': len(runs), 'rates_hz': [run.rate_hz for run in runs],
            'durations_ns': [run.duration_ns for run in runs],
            'python_versions': [run.python_version for run in runs],
            'work': [run.work for run in runs]}


def _change(row):
    return {name: getattr(row, name) for name in (
        'before', 'after', 'change', 'margin', 'relative', 'runs_before',
        'runs_after')}


def _judged(row, difference):
    return _change(row) | {'may_be_chance': may_be_chance(row, difference)}


def _place(row):
    function = row.function
    if function is None:
        return {'name': row.name, 'kind': None, 'file': None, 'line': None,
                'called': row.called}
    return {'name': row.name, 'kind': function.kind,
            'file': function.filename,
            'line': row.line or function.first_line, 'called': row.called}


def _heading(difference):
    for name, runs in ('before', difference.before), (
            'after ', difference.after):
        facts = [counted(len(runs), 'run'),
                 seconds(sum([run.duration_ns for run in runs]) / len(runs))
                 + ' each' * (len(runs) > 1)]
        facts += [f'{rate:,} Hz' for rate in sorted(
            {run.rate_hz for run in runs}) if rate]
        facts += [f'Python {version}' for version in sorted(
            {run.python_version for run in runs}) if version]
        if difference.question.per:
            facts.append(f'{sum([run.work for run in runs]):,} units of work')
        yield f'{name}  {", ".join(facts)}'
    yield from _mixed(difference)


def _mixed(difference):
    """Say which settings differ, and what that does to rows."""
    for name, texts in difference.other_settings.items():
        yield (f'{name} differ ({", ".join(texts)}): {_MOVED[name]} in some '
               'runs only. Record all alike; any row may be chance (~)')


def _what(difference):
    """What rows are, and what of them is compared."""
    question = difference.question
    which, what = '', question.by
    if what == diff.LINE and difference.before[0].is_mine:
        what = 'line of my code'
    if what == diff.FUNCTION:
        which = 'cumulative ' if question.cum else 'self '
    per = ' per unit of work' if question.per else ''
    return f'{what}, by {which}{long_title(difference.value_type)}{per}'


def _tables(difference, top):
    if difference.gates:
        yield Table('gates', '', [
            Column('gate', 'gate', 'text'),
            Column('relative', 'change', 'word'),
            Column('margin', '±', 'word'),
            Column('verdict', '', 'word')],
            [_gate(gate, difference) for gate in difference.gates],
            value_type=difference.value_type)
    yield (_calls(difference, top) if difference.question.calls
           else _table(difference, top))


def _gate(gate, difference):
    row = gate.row
    if _is_counted(gate):
        change = ' \N{RIGHTWARDS ARROW} '.join(map(_count, (row.before,
                                                           row.after)))
        if row.before and row.after:
            change += f' ({percent(row.relative)})'
        return (f'{gate.target} ({100 * gate.least:g} %)', change, 'counted',
                _VERDICTS[gate.verdict])
    # What one run says of the next is not known.
    margin = ('?' if difference.method == diff.SAMPLING or not row.before
              else f'{100 * row.margin / abs(row.before):,.1f} %')
    least = (f'{100 * gate.least:g} %' if gate.least_bytes is None
             else round_figure(gate.least_bytes))
    return (f'{gate.target} ({least})', _relative(row), margin,
            _VERDICTS[gate.verdict])


def _is_counted(gate):
    return gate.target.partition(':')[0] in diff.COUNTED


def _count(number):
    return f'{number:,.0f}' if number == int(number) else f'{number:,.1f}'


def _table(difference, top):
    share = difference.question.share
    cells = [_cells(row, difference) for row in _shown(difference, top)]
    columns = [*_BEFORE_AND_AFTER,
               Column('', difference.question.by, 'name', 'text'),
               Column('name', '', 'text', 'data'),
               Column('kind', '', 'text', 'data'),
               Column('file', '', 'text', 'data'),
               Column('line', '', 'count', 'data'),
               Column('called', 'in', 'name')]
    return Table('changes', _what(difference), columns, cells, is_exact=True,
                 value_type=_SHARES if share else difference.value_type,
                 more=(len(difference.rows) - len(difference.rows[:top]),
                       'row'))


def _calls(difference, top):
    """The Table of what changed of exact calls."""
    rows, total, is_per = difference.calls()
    changed = [row for row in rows if row.change]
    columns = [Column(f'{name}_text', name, 'word', 'text')
               for name in ('before', 'after', 'change')]
    columns += [Column(name, '', 'count', 'data')
                for name in ('before', 'after', 'change')]
    columns += [Column('', '', 'chance', 'text'),
                Column('', 'line', 'name', 'text'),
                Column('name', '', 'text', 'data'),
                Column('file', '', 'text', 'data'),
                Column('line', '', 'count', 'data'),
                Column('called', 'calls', 'text'),
                Column('tag', '', 'word', 'text')]
    same = [row for row in rows if not row.change]
    cells = [_calls_cells(row) for row in changed[:top]]
    if same:
        number = sum([row.after for row in same])
        cells.append((*[_count(number)] * 2, '0', number, number, 0, False,
                      ('', counted(len(same), 'line') + ' as before'), '', '',
                      0, '', ''))
    cells.append(_calls_cells(total))
    return Table('calls', calls_title(total, is_per), columns, cells,
                 value_type=difference.value_type,
                 more=(len(changed) - len(changed[:top]), 'line'))


def calls_title(total, is_per):
    text = ' \N{RIGHTWARDS ARROW} '.join(
        map(_count, (total.before, total.after)))
    if total.before and total.change:
        text += f' ({percent(total.relative)})'
    return f'{text} calls{" of one request" if is_per else ""}, counted'


def calls_notes(difference):
    """Return what is said of the signs of exact calls."""
    rows, total, _ = difference.calls()
    return (['~: its count differs from run to run']
            if any([row.margin is None for row in (*rows, total)]) else [])


def calls_tag(row):
    """Return 'new' or 'gone' for what one side never called, '' otherwise."""
    return '' if row.before and row.after else 'new' if row.after else 'gone'


def _calls_cells(row):
    numbers = row.before, row.after, row.change
    *texts, change = [_count(number) if number else '-' for number in numbers]
    if row.change > 0:
        change = f'+{change}'
    name = '', row.name
    if row.function is not None:
        name = (row.function.module or '',
                f'{row.function.qualname}:{row.line}')
    return (*texts, change, *numbers, row.margin is None, name, row.name,
            row.function.filename if row.function is not None else '',
            row.line, row.called, calls_tag(row) if row.called else '')


def _shown(difference, top):
    """Return the rows that are shown; shares have no total."""
    rows = difference.rows[:top]
    return rows if difference.question.share else [difference.total, *rows]


def _cells(row, difference):
    values = [row.before, row.after, row.change, row.margin]
    question = difference.question
    if question.share:
        values = [None if value is None else 100 * value for value in values]
    is_whole = not question.share and (
        not question.per or difference.value_type.unit == 'nanoseconds')
    place = _place(row)
    name = row.name
    if name is None:
        shown = '', '[without]'
    elif row.function is None:
        shown = '', state_name(name) if name in STATES else name
    else:
        shown = (row.function.module or '', row.function.qualname
                 + (f':{row.line}' if row.line else ''))
    digits = None if is_whole else 2
    values = [value if value is None else round(value, digits)
              for value in values]
    return (*values, _relative(row), row.relative,
            may_be_chance(row, difference), shown, *list(place.values())[:-1],
            ('', row.called))


def _relative(row):
    if row.before and row.after:
        return percent(row.relative)
    # No sample is less than some four periods, and not never.
    return tag(row) or '-'


def _notes(difference):
    if difference.question.calls:
        yield from calls_notes(difference)
        if not all(map(_is_counted, difference.gates)):
            yield 'gates need two runs a side or more, but for calls'
        return
    before, after = len(difference.before), len(difference.after)
    if difference.method == diff.SAMPLING:
        each = 'each' if before == after == 1 else 'on a side'
        yield f'one run {each}: run-to-run variation unknown' + (
            '; ± is the error of sampling alone (95 %)'
            if _is_time(difference) else '')
        if not all(map(_is_counted, difference.gates)):
            yield 'gates need two runs a side or more, but for calls'
    else:
        yield (f'{before} and {after} runs: ± is from how runs differ (95 %): '
               "Student's t")
    if not difference.other_settings and any(
            [row.margin is None for row in difference.rows]):
        yield ('no ±: it is not known of what is no time, and of sums of '
               'profiles of several rates')
    waits = _cpu_waits(difference)
    if max(waits) >= _BUSY:
        yield ('CPU wait is up to {:.0%} of the time before and {:.0%} after: '
               'the machine was busy. CPU time does not depend on that: '
               '--value cpu'.format(*waits))
    # Rows that are not shown, too: otherwise what is said changes with them.
    yield from _signs(difference, _shown(difference, None))


def _is_time(difference):
    return difference.value_type.unit == 'nanoseconds'


def _signs(difference, rows):
    """Say what signs in the table mean that need not be there."""
    if any([row.margin == 0 for row in rows]):
        yield ('± -: measured by clocks, without an error of sampling'
               if _is_time(difference) else
               '± -: taken as exact, as no error of it is known')
    if any([row.name is None for row in rows]):
        what = 'time that' if _is_time(difference) else 'what'
        yield (f'[without]: {what} has no '
               f'{without_mark(difference.question.by)}')
    if any([may_be_chance(row, difference) for row in rows]):
        yield '~: may be chance' + (
            '; several runs of each, in turns: record --alternate BEFORE -- '
            'AFTER' if difference.method == diff.SAMPLING else '')
