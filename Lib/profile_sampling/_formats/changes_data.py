"""What changed between runs, for programs: JSON and tables of tabs.

This file owns the names of fields, which stay what they are: see "The
difference" in Doc/library/profile_sampling-json.rst.  It must not
compute anything: that is _data's.
"""

import json as _json

from profile_sampling._data.values import printable

SCHEMA = 'profile_sampling.diff/1'
_COLUMNS = ('name', 'kind', 'file', 'line', 'in', 'before', 'after',
            'change', 'low', 'high', 'relative', 'p', 'verdict',
            'records_before', 'records_after')


def json(comparison):
    """Return a JSON document with everything, all rows included."""
    return _json.dumps(document(comparison), indent=1) + '\n'


def document(comparison):
    """Return the same as a dict."""
    question = comparison.question
    return {
        'schema': SCHEMA,
        'mode': comparison.before[0].mode,
        'value': question.value,
        'unit': comparison.value_type.unit,
        'by': question.by,
        'cumulative': question.cumulative,
        'scale': comparison.scale,
        'per': _per(question.per),
        'method': comparison.method,
        'before': _side(comparison.before),
        'after': _side(comparison.after),
        'total': _change(comparison.total),
        'gates': [{'target': gate.target.name,
                   'least': gate.target.least,
                   'verdict': gate.verdict} | _change(gate.change)
                  for gate in comparison.gates],
        'verdict': comparison.verdict(),
        'rows': [_place(row.place) | _change(row) | {'verdict': row.verdict}
                 for row in comparison.rows],
    }


def tsv(comparison):
    """Return a line of names and one for each row; empty: not known."""
    lines = [_COLUMNS]
    for row in comparison.rows:
        fields = _place(row.place) | _change(row) | {'verdict': row.verdict}
        lines.append([_cell(fields[column]) for column in _COLUMNS])
    return ''.join(['\t'.join(line) + '\n' for line in lines])


def _side(runs):
    return {
        'runs': len(runs),
        'rates_hz': [run.rate_hz for run in runs],
        'durations_ns': [run.duration_ns for run in runs],
        'python_versions': [run.python_version for run in runs],
        'work': [run.work for run in runs],
    }


def _per(per):
    return per if per is None or isinstance(per, str) else '='.join(per)


def _place(place):
    function = place.function
    return {
        'name': place.name,
        'kind': None if function is None else function.kind,
        'file': function.filename if function is not None else None,
        'line': (None if function is None
                 else place.line or function.first_line),
        'in': place.callee,
    }


def _change(change):
    return {name: getattr(change, name) for name in (
        'before', 'after', 'change', 'low', 'high', 'relative', 'p',
        'runs_before', 'runs_after', 'records_before', 'records_after',
        'other')}


def _cell(value):
    if value is None:
        return ''
    if isinstance(value, float):
        return f'{value:.6g}'
    # What is printable has no tab and no line break.
    return printable(str(value))
