"""A profile that a process hands over, as the dict that its own core makes.

The columns are those of Python/sampling/reach/parts.c.
"""

import ast
import struct

from profile_sampling._data.allocations import MODE as ALLOC
from profile_sampling._data.histogram import BITS, Histogram
from profile_sampling._data.lives import Latency
from profile_sampling._data.values import MODES
from profile_sampling._reach import records

_NO_STRING = _NO_CLASS = 0xFFFFFFFF
# The structs of Include/cpython/sampling.h.
_FUNCTION = struct.Struct('=IIIii')
_LABEL = struct.Struct('=IIIxxxxQII')
_THREAD = struct.Struct('=QqqIxxxx')
_TASK_NUMBERS = struct.Struct('=10Q')
_OF_ALLOCATIONS = 'blocks', 'collections', 'readings'


def raw(data, pid):
    """Return the dict of a profile; raise ValueError if it is none."""
    measured, columns = [], {}
    named = {'head': {}, 'stats': {}, 'memory': {}}
    for name, value in records.parts(data):
        if name in named:
            key, number = _named(value)
            named[name][key] = number
        elif name == 'measured':
            measured.append(tuple(_named(value)[0].split(' ')))
        else:
            columns[name] = value
    try:
        return _made(**named, measured=measured, columns=columns, pid=pid)
    except (KeyError, IndexError, struct.error) as exc:
        raise ValueError(f'a profile without {exc}') from None


def _named(value):
    size = int.from_bytes(value[:4], 'little')
    if len(value) != size + 12:
        raise ValueError('no name and number')
    return (value[4:4 + size].decode('ascii', 'replace'),
            int.from_bytes(value[4 + size:], 'little'))


def _made(head, stats, memory, measured, columns, pid):
    strings = [text.decode('utf-8', 'surrogatepass')
               for text in records.byte_fields(columns['strings'])]

    def text(row):
        return None if row == _NO_STRING else strings[row]

    def rows(name, layout):
        data = column(name)
        if len(data) % layout.size:
            raise ValueError('half a row')
        return layout.iter_unpack(data)

    def column(name):
        value, = records.byte_fields(columns[name])
        return value

    return {
        'is_slice': True, 'start_ns': head['start_ns'], 'resolution_ns': head['resolution_ns'],
        'moments': column('moments') if 'moments' in columns else None,
        'latencies': _latencies(columns.get('latencies')),
        'mode': (*MODES, ALLOC)[head['mode']],
        'rate_hz': head['rate_hz'], 'depth_frames': head['depth_frames'],
        'names': head['names'], 'pid': pid,
        'start_time_ns': head['start_time_ns'],
        'duration_ns': head['duration_ns'],
        'functions': [
            (text(module), text(qualname), text(filename), line, kind)
            for module, qualname, filename, line, kind
            in rows('functions', _FUNCTION)],
        'frames': column('frames'), 'nodes': column('nodes'),
        'labels': [
            (parent, text(key), text(value), task_id,
             0 if task_class == _NO_CLASS else task_class + 1, is_work)
            for parent, key, value, task_id, task_class, is_work
            in rows('labels', _LABEL)],
        'samples': columns['samples'], 'measured': tuple(measured),
        'task_classes': _tasks(columns['tasks']),
        'threads': [(ident, native_id, text(name), interpreter)
                    for ident, native_id, interpreter, name
                    in rows('threads', _THREAD)],
        'stats': stats,
        'allocations': memory | {
            name: columns[name] for name in _OF_ALLOCATIONS}
        if memory else None}


def _latencies(data):
    """Return the Latency of each route; raise ValueError."""
    if data is None:
        return ()
    text, = records.byte_fields(data)
    try:
        return tuple([
            Latency(str(key), str(value), tuple(map(str, roots)), int(count),
                    int(sum_ns), int(longest_ns),
                    Histogram(BITS, map(int, counts)),
                    tuple([tuple(map(int, row)) for row in spent]))
            for key, value, roots, count, sum_ns, longest_ns, counts, spent
            in ast.literal_eval(text.decode())])
    except (TypeError, SyntaxError, RecursionError, MemoryError) as exc:
        raise ValueError(f'no latencies: {exc}') from None


def _tasks(data):
    fields = records.byte_fields(data)
    return [(*_TASK_NUMBERS.unpack(numbers), lives)
            for numbers, lives in zip(fields[::2], fields[1::2])]
