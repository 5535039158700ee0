"""The cards of a page: what stands out, each with its cost.

Names are between backquotes.
"""

from profile_sampling._data import by_wait
from profile_sampling._data.by_site import called_name
from profile_sampling._data.values import STATES, printable
from profile_sampling._formats.findings import MOST, Figure, Finding, Name
from profile_sampling._formats.words import said, share, state_name

# Of the time; a line is worth a card from there on.
_LEAST_OF_LINE = 0.25
# Of the time of a line: states with less are not named.
_SAID = 0.05
# What waits for these for most of its time is said otherwise.
_FOR_WORK, _MOSTLY = frozenset({
    by_wait.QUEUE, by_wait.LOOP, by_wait.OTHER_THREADS}), 0.5
_PLACE = 'place'
# What a click leads to is called.
_LINKS = {_PLACE: 'See the line', 'loop': 'Who held the event loop',
          'gil': 'Who held the GIL', 'timeline': 'See when',
          'waits': 'What was waited for', 'tasks': 'What was awaited'}


def cards(sites, found, columns):
    """Return what is on the cards of a list of Findings, at most three, and
    what is only named below them."""
    shown = [*found, *_of_line(sites, columns)][:MOST]
    return {'cards': [_card(finding, columns) for finding in shown],
            'also': [_card(finding, columns) for finding in found[MOST:]]}


def _card(finding, columns):
    go = finding.go
    if go == 'timeline' and columns.timeline is None:
        go = ''
    name = next((part for part in finding.parts if isinstance(part, Name)
                 and part.function is not None), None)
    return {
        'rule': finding.rule, 'title': finding.title,
        'figure': said(finding.ns).replace(' ', '\N{NO-BREAK SPACE}'),
        'text': f'{"".join(map(_text, finding.parts))}.', 'go': go,
        'place': -1 if name is None else columns.places.get(
            (name.function, name.line), -1),
        'link': _LINKS.get(go, '')}


def _text(part):
    if isinstance(part, str):
        return part
    if isinstance(part, Figure):
        return part.text
    return f'`{_at(part)}`'


def _of_line(sites, columns):
    """Iterate over what is said of the line that took most, if it did."""
    tables = sites.tables
    if tables.value_types[tables.own].unit != 'nanoseconds' or sites.busy <= 0:
        return
    row = next((row for row in sites.rows if row.line
                and row.sums.total >= _LEAST_OF_LINE * sites.busy
                and not _is_for_work(sites, columns, row)), None)
    if row is None:
        return
    called = called_name(row)
    states = sorted(zip(row.sums.by_state, STATES), reverse=True)
    yield Finding('line', 'The line with the most time', [
        Name('', row.function, row.line),
        f' (`{printable(called)}`)' * bool(called), ' is ',
        share(row.sums.total, sites.busy), ' of the time: ', ', '.join([
            f'{state_name(state)} {share(ns, row.sums.total)}'
            for ns, state in states if ns >= _SAID * row.sums.total]),
        ' of that'], row.sums.total, row.sums.total / sites.busy, _PLACE)


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


def _at(row):
    """Return where a name or a row is, as orders.py:62."""
    function = row.function
    if function is None or not row.line:
        return row.text
    file = function.filename.replace('\\', '/').rpartition('/')[2]
    return printable(f'{file or function.name}:{row.line}')

