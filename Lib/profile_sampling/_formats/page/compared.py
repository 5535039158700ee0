"""What changed, for a page that compares two profiles."""

from profile_sampling._data.by_site import NO_LINES
from profile_sampling._data.diff import LINE
from profile_sampling._formats import changes as words_of
from profile_sampling._formats import memory_changes
from profile_sampling._formats.json_text import known_text
from profile_sampling._formats.page import words
from profile_sampling._formats.words import counted

# Rows of exact calls.
_CALLS = 200


def changes(difference, columns, sources=None, growth=None):
    """Return what the document says of a Difference; *columns* are those of
    the profile after.  *growth* is what memory_changes.for_page() says of one
    process."""
    value_type = difference.value_type
    lines = {(its['name'], its['filename'], its['first_line']): its['lines']
             for its in (sources or {}).get('functions', ())}
    is_by_line = difference.question.by == LINE
    said = words_of.words(difference)
    lead, total, rows = growth or (
        '', difference.total, [(row, '') for row in difference.rows])
    if growth:
        is_by_line, said['notes'] = True, [memory_changes.NOTE]
    return {
        'lead': lead,
        'what': said['what'], 'notes': said['notes'],
        'value': {'name': value_type.name, 'kind': value_type.kind,
                  'unit': value_type.unit},
        'method': difference.method,
        'is_doubtful': not growth and words_of.is_doubtful(difference),
        'before': _side(difference.before), 'after': _side(difference.after),
        'total': _amounts(total),
        'rows': [_amounts(row) | _place(row, columns, lines, is_by_line)
                 | {'survived': survived} for row, survived in rows],
        'calls': _calls(difference, columns)}


def _calls(difference, columns):
    """Return what changed of exact calls; None: not all runs have them."""
    if not difference.has_calls:
        return None
    rows, total, is_per = difference.calls()
    changed = [row for row in rows if row.change]
    found = [_call(row, columns) for row in changed[:_CALLS]]
    for text, rest in (
            ('more', changed[_CALLS:]),
            ('as before', [row for row in rows if not row.change])):
        if rest:
            before, after = [sum([getattr(row, side) for row in rest])
                             for side in ('before', 'after')]
            found.append({
                'name': f'{counted(len(rest), "line")} {text}', 'file': '',
                'line': 0, 'called': '', 'before': before, 'after': after,
                'change': after - before, 'is_sure': True, 'tag': '',
                'place': -1})
    return {'lead': words_of.calls_title(total, is_per),
            'is_first': difference.question.calls, 'rows': found,
            'total': _call(total, columns),
            'notes': words_of.calls_notes(difference)}


def _call(row, columns):
    return {'name': row.name, 'line': row.line,
            'file': '' if row.function is None else row.function.filename,
            'called': row.called, 'before': row.before, 'after': row.after,
            'change': row.change, 'is_sure': row.margin is not None,
            'tag': words_of.calls_tag(row) if row.called else '',
            'place': columns.places.get((row.function, row.line), -1)}


def _side(runs):
    return {'runs': len(runs),
            'duration_ns': sum([run.duration_ns for run in runs]),
            'start': words.start(runs[0])}


def _amounts(row):
    return {'before': row.before, 'after': row.after, 'change': row.change,
            'margin': row.margin, 'is_clear': row.is_clear,
            'tag': words_of.tag(row)}


def _place(row, columns, lines, is_by_line):
    function = row.function
    # Rows that are on no line have no function, but a name.
    place = {its.name: its for its in NO_LINES}.get(
        row.name) if function is None else function
    text = {} if function is None else lines.get(
        (known_text(function.name), known_text(function.filename),
         function.first_line), {})
    return {
        'name': row.name, 'called': row.called,
        'file': '' if function is None else function.filename,
        'line': row.line, 'source': text.get(str(row.line), ''),
        'qualname': '' if function is None else function.qualname,
        'place': (columns.places.get((place, row.line), -1)
                  if is_by_line and row.after else -1)}
