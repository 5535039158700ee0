"""Writer of a profile as JSON: all that it says.

This file owns our JSON schema, which Doc/library/profile_sampling-json.rst
documents.  It must not compute anything: tables are written as they are,
columns as arrays, and rows refer to rows of other tables by their number.

Nothing gets lost but halves of surrogate pairs in names, which no UTF-8 can
say: they become backslash escapes.  VERSION rises when the meaning of a field
changes; fields can be added without that.
"""

from profile_sampling._data import opcodes
from profile_sampling._data.histogram import Histogram
from profile_sampling._data.tables import FRAME_COLUMNS, NODE_COLUMNS
from profile_sampling._data.values import MEASURED, NAMES, STATES
from profile_sampling._formats import json_text
from profile_sampling._formats.json_text import known_text

NAME, VERSION = 'profile_sampling', 1
_NONE = -1


def encode(tables):
    """Return the bytes of the file of a profile."""
    return json_text.data({
        'format': NAME, 'version': VERSION, **_facts(tables),
        'threads': [_thread(thread) for thread in tables.threads],
        'functions': [_function(function) for function in tables.functions],
        'frames': _frames(tables), 'stacks': _stacks(tables),
        **_samples(tables), **_lives(tables), **_calls(tables)}) + b'\n'


def _facts(tables):
    types = tables.value_types
    return {
        'mode': known_text(tables.mode),
        'value_types': [{
            'name': known_text(value_type.name),
            'kind': known_text(value_type.kind),
            'unit': known_text(value_type.unit), 'adds': value_type.adds,
            'of': value_type.of, 'total': total}
            for value_type, total in zip(types, tables.totals)],
        'own_value': tables.own,
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
        'timeline': _timeline(tables.timeline)}


def _timeline(line):
    """Return the records of a time line, or None."""
    if line is None:
        return None
    names = 'time_ns', 'sample', *[its.name for its in MEASURED]
    return {'resolution_ns': line.resolution_ns, 'is_stale': line.is_stale,
            **{name: list(column)
               for name, column in zip(names, line.columns)}}


def _thread(thread):
    name = None if thread.name is None else known_text(thread.name)
    process = thread.process
    return {'name': name, 'ident': thread.ident,
            'native_id': thread.native_id,
            'interpreter_id': thread.interpreter_id,
            'process': process and {
                'pid': process.pid, 'host': known_text(process.host),
                'start_ns': process.start_ns}}


def _function(function):
    module = function.module
    return {'name': known_text(function.name),
            'module': None if module is None else known_text(module),
            'qualname': known_text(function.qualname),
            'filename': known_text(function.filename),
            'first_line': function.first_line, 'kind': function.kind}


def _frames(tables):
    view = tables.frames_view()
    function, line, column, offset, opcode = [
        view[number::FRAME_COLUMNS].tolist()
        for number in range(FRAME_COLUMNS)]
    names = {number: opcodes.name(number) for number in set(opcode)}
    return {'function': function, 'line': line, 'column': column,
            'instruction_offset': offset,
            'opname': [names[number] for number in opcode]}


def _stacks(tables):
    # Signed: the first is the stack without a frame.
    nodes = memoryview(bytearray(tables.nodes)).cast('i')
    nodes[0] = nodes[1] = _NONE
    return {name: json_text.array([json_text.numbers(column)])
            for name, column in (('parent', nodes[0::NODE_COLUMNS]),
                                 ('frame', nodes[1::NODE_COLUMNS]))}


def _samples(tables):
    rows = tables.column('labels')
    used = sorted(set(rows))
    numbers = {row: number for number, row in enumerate(used)}
    values = {known_text(value_type.name): column.tolist()
              for value_type, column
              in zip(tables.value_types, tables.value_columns)}
    # Nobody is a stack of its own here: 0 is one without a frame.
    held = tables.column('holder')
    return {'labels': [_labels(*tables.label_set(row)) for row in used],
            'samples': {
                'stack': tables.column('stack').tolist(),
                'thread': tables.column('thread').tolist(),
                'state': [STATES[state] for state in tables.column('state')],
                'labels': [numbers[row] for row in rows],
                'gil_holder_stack': [node or _NONE for node in held],
                'gil_holder_thread': [
                    thread if node else _NONE for thread, node
                    in zip(tables.column('holder_thread'), held)],
                **{name: tables.column(name).tolist()
                   for name in tables.schema.plain_keys},
                'values': values}}


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


def _labels(labels, task_name, task_id):
    return {'labels': {known_text(key): known_text(value)
                       for key, value in labels.items()},
            'task_name': None if task_name is None else known_text(task_name),
            'task_id': task_id}
