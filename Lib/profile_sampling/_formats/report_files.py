"""A report for other programs: JSON, TSV and Markdown.

Doc/library/profile_sampling-report.rst is the schema of the JSON; a change of
what is there is a new number in SCHEMA.
"""

from profile_sampling._data.values import STATES, printable
from profile_sampling._formats import header
from profile_sampling._formats.findings import Name, findings
from profile_sampling._formats.table import below, number

SCHEMA = 'profile_sampling.report/1'


def as_json(tables, sites, shown, name):
    """Return the report as a JSON document."""
    import json
    value_types = tables.value_types
    document = {
        'schema': SCHEMA,
        'file': name,
        'profile': {
            'mode': tables.mode,
            'rate_hz': tables.rate_hz or None,
            'python_version': tables.python_version or None,
            'pid': tables.pid,
            'start_time_ns': tables.start_time_ns or None,
            'duration_ns': tables.duration_ns,
            'threads': tables.n_sampled_threads,
            'totals': {value_type.name: total for value_type, total
                       in zip(value_types, tables.totals)},
            'value': value_types[tables.own].name,
            'busy': sites.busy,
            'idle': sites.idle,
            'idle_threads': sites.idle_threads,
            'states': {state: value for state, value
                       in zip(STATES, sites.whole.by_state) if value},
        },
        'quality': header.quality(tables, sites),
        'findings': [{'rule': finding.rule, 'title': finding.title,
                      'text': finding.text, 'ns': finding.ns,
                      'share': finding.share,
                      'parts': [_part(part) for part in finding.parts if part]}
                     for finding in findings(tables, sites)],
        'tables': [_table(table) for table in shown],
    }
    # Lone surrogates of hostile names stay escaped.
    return json.dumps(document, indent=1) + '\n'


def _part(part):
    """A part of a sentence: a text, a name, or a figure and its cell."""
    if isinstance(part, str):
        return part
    if isinstance(part, Name):
        return {'name': part.text}
    return {'figure': part.text, 'value': part.value, 'table': part.table,
            'row': dict(part.row), 'column': part.column}


def _table(table):
    columns = [(number, column.key)
               for number, column in enumerate(table.columns)
               if column.where != 'text']
    return {'name': table.key, 'title': table.title,
            'value_unit': table.value_type.unit,
            'columns': [key for _, key in columns],
            'rows': [{key: _plain(row[number]) for number, key in columns}
                     for row in table.rows],
            'notes': table.all_notes()}


def _plain(cell):
    if isinstance(cell, list):
        return [{'name': name, 'ns': ns} for name, ns in cell]
    return '.'.join(filter(None, cell)) if isinstance(cell, tuple) else cell


def as_tsv(shown):
    """Return tables, an empty line between them: a head and a line a row.

    Numbers are as they are; a name has no tab or line break.
    """
    parts = []
    for table in shown:
        columns = [(number, column.key)
                   for number, column in enumerate(table.columns)
                   if column.where != 'text']
        lines = ['\t'.join([printable(key) for _, key in columns])]
        lines += ['\t'.join([_field(row[number]) for number, _ in columns])
                  for row in table.rows]
        parts.append('\n'.join(lines) + '\n')
    return '\n'.join(parts)


def _field(cell):
    if isinstance(cell, list):
        return ', '.join([f'{printable(name)} {ns}' for name, ns in cell])
    match _plain(cell):
        case None:
            return ''
        case bool():
            return str(int(cell))
        case float():
            return f'{cell:.6g}'
    return printable(str(_plain(cell)))


def as_markdown(tables, sites, shown, name):
    """Return the report for a pull request or an issue."""
    def wrap(parts, separator=', '):
        return [separator.join(parts)]
    lines = [f'**{_escaped(name)}**', ''] if name else []
    for line in header.lines(tables, sites, wrap):
        lines += [_escaped(line) + '  ']
    found = findings(tables, sites)
    if found:
        lines += ['', *[f'- {_escaped(finding.text)}' for finding in found]]
    return _with_tables(lines, shown)


def markdown(heading, facts, shown, notes):
    """Return tables below a heading and facts about them, above notes."""
    return _with_tables([f'### {_escaped(heading)}', '', *[
        f'- {_escaped(fact)}' for fact in facts]], shown) + '\n' + ''.join(
            [f'> {_escaped(note)}  \n' for note in notes])


def _with_tables(lines, shown):
    for table in shown:
        lines += ['', *_markdown(table)]
    return '\n'.join(lines) + '\n'


def _markdown(table):
    rows, notes = table.for_people()
    columns = [(number, column) for number, column in enumerate(table.columns)
               if column.where != 'data']
    if table.title:
        yield f'### {_escaped(table.title)}'
        yield ''
    if columns:
        texts = 'name', 'text', 'path', 'tree', 'code'
        yield _line([column.heading for _, column in columns])
        yield _line(['---' if column.kind in texts else '---:'
                     for _, column in columns])
        for row in rows:
            yield _line([_shown(row[number], column, table)
                         for number, column in columns])
    for note in notes:
        yield ''
        yield _escaped(note)


def _line(cells):
    return '| ' + ' | '.join(cells) + ' |'


def _shown(cell, column, table):
    match column.kind:
        case 'flag':
            return '=' if cell else ''
        case 'chance':
            return '\\~' if cell else ''
        case 'word':
            return _escaped(cell)
        case 'name':
            return _code('.'.join(filter(None, cell)))
        case 'tree':
            depth, text = cell
            return '&ensp;' * depth + _code(text)
        case 'text' | 'path' | 'code':
            return _code(cell)
        case 'below':
            return ', '.join(map(_code, below(cell)))
    return number(cell, column, table)


def _code(text):
    """A name as code: no character in it means anything."""
    text = printable(text).replace('|', '\\|').rstrip()
    if not text:
        return ''
    longest = max(map(len, ''.join([
        char if char == '`' else ' ' for char in text]).split()), default=0)
    fence = '`' * (longest + 1)
    space = ' ' if longest else ''
    return f'{fence}{space}{text}{space}{fence}'


def _escaped(text):
    """A text in which no character has a meaning in Markdown."""
    return ''.join([f'\\{char}' if char in '\\`*_[]<>|#&' else char
                    for char in printable(text)])
