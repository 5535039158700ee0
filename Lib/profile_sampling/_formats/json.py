"""Writer of a profile as JSON: all that it says.

Doc/library/profile_sampling-json.rst documents the schema; the tables are those
of Profile.tables().  VERSION rises when the meaning of a field changes; fields
can be added without that.
"""

from array import array

from profile_sampling._data.exported import exported
from profile_sampling._data.histogram import Histogram
from profile_sampling._data.values import NAMES
from profile_sampling._formats import json_text
from profile_sampling._formats.json_text import known_text

NAME, VERSION = 'profile_sampling', 2


def encode(tables):
    """Return the bytes of the file of a profile."""
    return json_text.data({
        'format': NAME, 'version': VERSION, **_facts(tables),
        'tables': {table: {known_text(name): _column(column)
                           for name, column in columns.items()}
                   for table, columns in exported(tables).items()},
        **_lives(tables), **_calls(tables)}) + b'\n'


def _column(values):
    if isinstance(values, array):
        return json_text.array([json_text.numbers(values)])
    return [None if text is None else known_text(text) for text in values]


def _facts(tables):
    line = tables.timeline
    return {
        'mode': known_text(tables.mode), 'own_value': tables.own,
        'rate_hz': tables.rate_hz, 'depth_frames': tables.depth_frames,
        'names': NAMES[tables.names], 'start_time_ns': tables.start_time_ns,
        'duration_ns': tables.duration_ns,
        'covered_ns': tables.covered, 'span_ns': tables.span_ns,
        'whole_cpu_ns': tables.whole_cpu_ns, 'pid': tables.pid,
        'python_version': known_text(tables.python_version),
        'meta': {known_text(name): known_text(text)
                 for name, text in tables.meta.items()},
        'counters': {known_text(name): value
                     for name, value in tables.stats.items()},
        'timeline': None if line is None else {
            'resolution_ns': line.resolution_ns, 'is_stale': line.is_stale}}


def _function(function):
    module = function.module
    return {'name': known_text(function.name),
            'module': None if module is None else known_text(module),
            'qualname': known_text(function.qualname),
            'filename': known_text(function.filename),
            'first_line': function.first_line, 'kind': function.kind}


def _lives(tables):
    """Counters of tasks and of requests, where there are any."""
    found = {}
    if tables.task_classes:
        found['task_classes'] = [
            _counters(row) | {'function': _function(row.function)}
            for row in tables.task_classes]
    if tables.latencies:
        found['latencies'] = [
            _counters(row) | {'key': known_text(row.key),
                              'value': known_text(row.value),
                              'roots': list(map(known_text, row.roots))}
            for row in tables.latencies]
    return found


def _calls(tables):
    """Exact calls, if they were counted."""
    counts = tables.counts
    if counts is None:
        return {}
    return {'calls_mode': counts.mode, 'calls': [
        _counters(row) | {
            'caller': None if row.caller is None else _function(row.caller),
            'callee': _function(row.callee),
            'route': None if row.route is None else known_text(row.route)}
        for row in counts.rows]}


def _counters(row):
    values = {name: getattr(row, name) for name in row.__slots__}
    return {name: {'bits': value.bits, 'counts': value.counts}
            if isinstance(value, Histogram) else value
            for name, value in values.items()}
