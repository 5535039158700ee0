"""The table of what imports took, by package."""

from profile_sampling._data import by_imports
from profile_sampling._formats.table import Column, Table
from profile_sampling._formats.tables_of_waits import ALL
from profile_sampling._formats.words import counted

# Of the time: from there on the table comes before the lines.
_FIRST, _NAMED = 0.5, 3


def imports(tables, sites, top):
    """Return the Tables of imports: one, or none without any."""
    rows = by_imports.rows(sites.tables, sites.mine)
    own = tables.value_types[tables.own]
    if not rows:
        return [Table('imports', 'Nothing was imported.', [], [],
                      value_type=own)]
    total = sum([row.ns for row in rows])
    compiled = sum([row.compiled_ns for row in rows])
    cells = [_cells(row, total, sites.busy) for row in rows[:top]]
    rest = rows[top:]
    if rest:
        cells.append(_sum(rest, total, sites.busy,
                          counted(len(rest), 'more package')))
    cells.append(_sum(rows, total, sites.busy, ALL))
    columns = [
        Column('ns', 'time', 'value'), Column('share', 'share', 'share'),
        Column('own_ns', 'own', 'value'),
        Column('compiled_ns', 'compiled', 'value',
               'both' if compiled else 'data'),
        Column('of_all', '', 'share', 'data'),
        Column('package', 'package', 'text'),
        Column('begun_at', 'begun at', 'name'),
        Column('with', 'with', 'below')]
    return [Table('imports', 'Imports, by what the program asked for',
                  columns, cells, value_type=own)]


def _cells(row, total, busy):
    place = f'{row.function.name}:{row.line}' if row.function else ''
    return (row.ns, row.ns / total, row.own_ns, row.compiled_ns,
            row.ns / busy if busy else 0.0, row.package, ('', place),
            [item for item in row.inside if item[0] != row.package][:_NAMED])


def _sum(rows, total, busy, name):
    ns = sum([row.ns for row in rows])
    return (ns, ns / total, sum([row.own_ns for row in rows]),
            sum([row.compiled_ns for row in rows]),
            ns / busy if busy else 0.0, name, ('', ''), [])


def come_first(tables, sites):
    """Return whether the program mostly imports."""
    return sum([row.ns for row in by_imports.rows(
        sites.tables, sites.mine)]) >= _FIRST * sites.busy > 0

