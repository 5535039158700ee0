"""The cards of a page: what is wrong with the program, each with its cost.

This file owns what a card says.  It must not know the rules of findings, nor
how a card looks.

Names are between backquotes.
"""

from profile_sampling._data import by_wait
from profile_sampling._data.by_site import called_name
from profile_sampling._data.values import DELAY, STATES, printable
from profile_sampling._formats.findings import FUNCTIONS_OF
from profile_sampling._formats.words import brief, share, state_name

_MOST = 3
# Of the time; a line is worth a card from there on.
_LEAST, _LEAST_OF_LINE = 0.03, 0.25
# Of the time of a line: states with less are not named.
_SAID = 0.05
# What a share of the time is called that is less.
_SHARES = ((0.3, 'a quarter'), (0.42, 'a third'), (0.6, 'half'),
           (0.72, 'two thirds'), (0.9, 'three quarters'),
           (float('inf'), 'nearly all'))
# What waits for these for most of its time has nothing to do.
_FOR_WORK, _MOSTLY = frozenset({by_wait.QUEUE, by_wait.LOOP}), 0.5
_PLACE, _SEE_LINE, _LOOP = 'place', 'See the line', 'loop'


def cards(sites, found, columns):
    """Return what is on the cards of a list of Findings, at most three."""
    tables = sites.tables
    if tables.value_types[tables.own].unit != 'nanoseconds' or sites.busy <= 0:
        return []
    rows = list(_of_line(sites, columns))
    rules = {finding.rule: finding for finding in found}
    for rule, (title, go, link, text) in _CARDS.items():
        finding = rules.get(rule)
        ns = finding.numbers['ns'] if finding is not None else 0
        # One about the loop says enough.
        if ns < _LEAST * sites.busy or go == _LOOP and any(
                [card['go'] == _LOOP for _, card in rows]):
            continue
        if go == 'timeline' and columns.timeline is None:
            go = link = ''
        rows.append((ns, {
            'rule': rule, 'title': title, 'figure': _figure(ns),
            'text': text(sites, finding), 'go': go,
            'place': _place(columns, finding.row), 'link': link}))
    rows.sort(key=lambda row: -row[0])
    return [card for _, card in rows[:_MOST]]


def _of_line(sites, columns):
    """Iterate over the card of the line that took most, if it took much."""
    row = next((row for row in sites.rows if row.line
                and row.sums.total >= _LEAST_OF_LINE * sites.busy
                and not _is_for_work(sites, columns, row)), None)
    if row is None:
        return
    ratio = row.sums.total / sites.busy
    name = next(name for below, name in _SHARES if ratio < below)
    called = called_name(row)
    text = f'`{_at(row)}`' + (f' calls `{printable(called)}`' * bool(called))
    states = sorted(zip(row.sums.by_state, STATES), reverse=True)
    text += ': ' + ', '.join([
        f'{state_name(state)} {share(ns, row.sums.total)}'
        for ns, state in states if ns >= _SAID * row.sums.total])
    yield row.sums.total, {
        'rule': 'line', 'title': f'One line is {name} of the time',
        'figure': share(row.sums.total, sites.busy), 'text': f'{text}.',
        'go': _PLACE, 'place': _place(columns, row), 'link': _SEE_LINE}


def _is_for_work(sites, columns, row):
    """Return whether a line waits for more work most of the time."""
    tables, number = sites.tables, sites.places.places.index(
        (row.function, row.line))
    is_for_work = [wait is not None and wait[1] in _FOR_WORK
                   for wait in columns.waits]
    ns = sum([ns for place, wait, ns in zip(
        sites.places.of_samples, columns.wait_of_samples,
        tables.own_column)
        if place == number and is_for_work[wait]])
    return ns > _MOSTLY * row.sums.total


def _place(columns, row):
    return (-1 if row is None
            else columns.places.get((row.function, row.line), -1))


def _at(row):
    """Return where a row is, as orders.py:62."""
    function = row.function
    if function is None or not row.line:
        return '[no line]' if function is None else printable(function.name)
    file = function.filename.replace('\\', '/').rpartition('/')[2]
    return printable(f'{file or function.name}:{row.line}')


def _figure(ns):
    """Return a time with a space before its unit that is no line's end."""
    text = brief(ns)
    number = text.rstrip('smu')
    return f'{number}\N{NO-BREAK SPACE}{text[len(number):]}'


def _most_at(finding, does):
    called = called_name(finding.row)
    return (f'{share(finding.numbers["site_share"], 1)} of it {does} at '
            f'`{_at(finding.row)}`'
            + (f' (`{printable(called)}`)' if called else ''))


def _loop_blocked(sites, finding):
    text = _most_at(finding, 'in a task') + '.'
    ns = loop_wait_ns(sites.tables)
    if ns:
        text += f' Other tasks waited {_figure(ns)} for the loop in all.'
    return text


def loop_wait_ns(tables):
    """Return how long tasks waited for their loop; None: it is not known."""
    if DELAY not in tables.value_types:
        return None
    # What they waited for the GIL has a holder.
    return sum([ns for ns, holder in zip(
        tables.value(DELAY.name),
        tables.column('holder')) if not holder])


def _held(finding, did):
    numbers = finding.numbers
    if 'holder' not in numbers:
        return ''
    name = numbers['holder']
    whose = FUNCTIONS_OF if name.startswith(FUNCTIONS_OF) else ''
    return (f'{share(numbers["holder_share"], 1)} of it while {whose}'
            f'`{printable(name.removeprefix(whose))}` {did}.')


def _loop_wait(sites, finding):
    return _held(finding, 'had it')


def _gil(sites, finding):
    return (f'{_held(finding, "held it")} `{_at(finding.row)}` waited '
            'most.').strip()


def _gil_asleep(sites, finding):
    return f'{_most_at(finding, "was")}: no other thread could run.'


def _gc(sites, finding):
    return f'{_most_at(finding, "was")}.'


def _cpu_wait(sites, finding):
    return ('Other processes had the CPUs, or a container has a limit. '
            '`--value cpu` shows what the program itself took.')


def _queries(sites, finding):
    return f'{finding.text}.'


# By rule: title, where a click leads, what it is called, and the text.
_CARDS = {
    'queries': ('Many queries for one request', _PLACE, _SEE_LINE, _queries),
    'loop_blocked': ('A blocking call held the event loop', _LOOP,
                     'Who held the event loop', _loop_blocked),
    'loop_wait': ('Tasks waited for the event loop', _LOOP,
                  'Who held the event loop', _loop_wait),
    'gil': ('Threads waited for the GIL', 'gil', 'Who held the GIL', _gil),
    'gil_asleep': ('A C extension sleeps with the GIL', _PLACE, _SEE_LINE,
                   _gil_asleep),
    'cpu_wait': ('The machine gave too little CPU', 'timeline', 'See when',
                 _cpu_wait),
    'gc': ('The garbage collector took long', _PLACE, _SEE_LINE, _gc),
}
