"""Checks that hold for every profile and every pprof file we write.

Independent of the writer: the decoding below is its own, and the field
names are those of the format's documentation.  PITFALLS F4.
"""

import gzip
import opcode

STATES = {'running', 'waiting', 'gil_wait', 'gc', 'lost', 'unsampled',
          'custom', 'asleep_with_gil', 'awaiting', 'loop_wait', 'native',
          'cpu_wait', 'idle'}
# As files spell them.
STATE_TEXTS = {state.replace('_', ' ') for state in STATES}
KINDS = {'python', 'C', 'operator', 'pseudo'}
NAMES = {'off', 'calls', 'opcodes', 'all'}
OPNAMES = set(opcode.opmap) | set(opcode._specialized_opmap)
LABELS = {'thread id', 'thread native id', 'interpreter', 'state'}
MORE_LABELS = {'thread name', 'task name', 'task id', 'opcode',
               'instruction offset', 'gil holder', 'gil holder place',
               'gil holder thread', 'gil holder thread id',
               'gil holder thread native id', 'gil holder interpreter'}

N, S, M = 'number', 'string', 'message'
# Per message: field number: (name, repeated, type); a string is an index.
SCHEMA = {
    'Profile': {
        1: ('sample_type', True, 'ValueType'),
        2: ('sample', True, 'Sample'),
        3: ('mapping', True, 'Mapping'),
        4: ('location', True, 'Location'),
        5: ('function', True, 'Function'),
        6: ('string_table', True, 'bytes'),
        7: ('drop_frames', False, S), 8: ('keep_frames', False, S),
        9: ('time_nanos', False, N), 10: ('duration_nanos', False, N),
        11: ('period_type', False, 'ValueType'), 12: ('period', False, N),
        13: ('comment', True, S), 14: ('default_sample_type', False, S),
        15: ('doc_url', False, S)},
    'ValueType': {1: ('type', False, S), 2: ('unit', False, S)},
    'Sample': {1: ('location_id', True, N), 2: ('value', True, N),
               3: ('label', True, 'Label')},
    'Label': {1: ('key', False, S), 2: ('str', False, S),
              3: ('num', False, N), 4: ('num_unit', False, S)},
    'Mapping': {
        1: ('id', False, N), 2: ('memory_start', False, N),
        3: ('memory_limit', False, N), 4: ('file_offset', False, N),
        5: ('filename', False, S), 6: ('build_id', False, S),
        7: ('has_functions', False, N), 8: ('has_filenames', False, N),
        9: ('has_line_numbers', False, N),
        10: ('has_inline_frames', False, N)},
    'Location': {1: ('id', False, N), 2: ('mapping_id', False, N),
                 3: ('address', False, N), 4: ('line', True, 'Line'),
                 5: ('is_folded', False, N)},
    'Line': {1: ('function_id', False, N), 2: ('line', False, N),
             3: ('column', False, N)},
    'Function': {1: ('id', False, N), 2: ('name', False, S),
                 3: ('system_name', False, S), 4: ('filename', False, S),
                 5: ('start_line', False, N)},
}


def check(condition, *what):
    if not condition:
        raise AssertionError(' '.join(map(str, what)))


def _varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value += (byte % 128) * 2 ** shift
        shift += 7
        if byte < 128:
            check(value < 2 ** 64, 'varint beyond 64 bits')
            return value, at


def decode(data, kind='Profile', strings=None):
    """Decode a message to a dict; strings are resolved at the end."""
    schema = SCHEMA[kind]
    result = {name: [] if repeated else 0
              for name, repeated, _ in schema.values()}
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        check(key >> 3 in schema, kind, 'has unknown field', key >> 3)
        name, repeated, type_ = schema[key >> 3]
        if key & 7 == 0:
            check(type_ in (N, S), kind, name, 'is a varint')
            value, at = _varint(data, at)
            values = [value]
        else:
            check(key & 7 == 2, kind, name, 'has wire type', key & 7)
            size, at = _varint(data, at)
            check(at + size <= len(data), kind, name, 'is cut off')
            payload, at = data[at:at + size], at + size
            if type_ == 'bytes':
                values = [payload]
            elif type_ in (N, S):
                check(repeated, kind, name, 'is packed but single')
                values, inner = [], 0
                while inner < len(payload):
                    value, inner = _varint(payload, inner)
                    values.append(value)
            else:
                values = [decode(payload, type_)]
        if repeated:
            result[name] += values
        else:
            check(not result[name], kind, name, 'is there twice')
            result[name] = values[0]
    return result


def _resolve(message, kind, strings):
    for name, repeated, type_ in SCHEMA[kind].values():
        values = message[name] if repeated else [message[name]]
        if type_ == S:
            for index in values:
                check(index < len(strings), kind, name, 'string', index)
            values = [strings[index] for index in values]
        elif type_ in SCHEMA:
            for value in values:
                if value:
                    _resolve(value, type_, strings)
        message[name] = values if repeated else values[0]


def signed(value):
    return value - 2 ** 64 if value >= 2 ** 63 else value


def check_pprof(data):
    """Check a pprof file's bytes; return it decoded, strings resolved."""
    if data[:2] == b'\x1f\x8b':
        check(data[4:8] == bytes(4), 'gzip header has a time')
        data = gzip.decompress(data)
    profile = decode(data)
    table = profile['string_table']
    check(table and table[0] == b'', 'string 0 is not empty')
    check(len(set(table)) == len(table), 'strings are repeated')
    strings = [text.decode('utf-8') for text in table]
    _resolve(profile, 'Profile', strings)
    types = [(t['type'], t['unit']) for t in profile['sample_type']]
    check(types and len(set(types)) == len(types), 'sample types', types)
    check(profile['default_sample_type'] == types[-1][0], 'default type')
    plain = {text.removeprefix('# key ') for text in strings
             if text.startswith('# key ')}
    ids = {}
    for kind in ('mapping', 'location', 'function'):
        ids[kind] = [row['id'] for row in profile[kind]]
        check(0 not in ids[kind], kind, 'id 0')
        check(len(set(ids[kind])) == len(ids[kind]), kind, 'ids repeated')
        ids[kind] = set(ids[kind])
    for location in profile['location']:
        check(location['mapping_id'] in ids['mapping'], 'location mapping')
        check(len(location['line']) == 1, 'one line per location')
        for line in location['line']:
            check(line['function_id'] in ids['function'], 'line function')
    for function in profile['function']:
        check(function['system_name'] == '', 'system_name is set')
    names_opcodes = any('opcodes' in comment for comment in profile['comment']
                        if comment.startswith('# names '))
    seen = set()
    for sample in profile['sample']:
        check(len(sample['value']) == len(types), 'values per sample')
        check(set(sample['location_id']) <= ids['location'],
              'sample refers to a missing location')
        sample['value'] = [signed(value) for value in sample['value']]
        _check_labels(sample['label'], names_opcodes, plain)
        key = repr((sample['location_id'], sample['label']))
        check(key not in seen, 'two samples with one key', key)
        seen.add(key)
    return profile


def _check_labels(labels, names_opcodes, plain):
    keys = [label['key'] for label in labels]
    check(len(set(keys)) == len(keys), 'label keys repeated', keys)
    check(LABELS <= set(keys), 'label keys', keys)
    for label in labels:
        if label['key'] not in LABELS | MORE_LABELS | plain:
            # The program's own: always a text, if only an empty one.
            check(not label['num'], 'label is a number', label['key'])
        check(not (label['str'] and label['num']), 'label is str and num')
        if label['key'] == 'state':
            check(label['str'] in STATE_TEXTS, 'state', label['str'])
        elif label['key'] == 'task id':
            check(not label['str'] and label['num'], 'task id')
        elif not names_opcodes:
            # They may be another tool's, read and written again.
            continue
        elif label['key'] == 'opcode':
            check(label['str'] in OPNAMES, 'opcode', label['str'])
        elif label['key'] == 'instruction offset':
            check(not label['str'] and label['num'] < 2 ** 31, 'offset')


def check_profile(profile):
    """Check a Profile by its public interface."""
    types = profile.value_types
    check(profile.mode in [value_type.kind for value_type in types], 'mode',
          profile.mode)
    check(profile.names in NAMES, 'names', profile.names)
    totals = dict.fromkeys([value_type.name for value_type in types], 0)
    held = [0] * len(types)
    seen = set()
    threads = set(profile.threads)
    for sample in profile.samples:
        check(sample.state in STATES, 'state', sample.state)
        check(sample.thread in threads, 'thread', sample.thread)
        for name, value in zip(totals, sample.values, strict=True):
            # What the program counts is no number of samples.
            if not (name == 'count' and sample.state == 'custom'):
                totals[name] += value
        if sample.gil_holder is not None:
            held = [a + b for a, b in zip(held, sample.values)]
        for frame in sample.stack:
            check(frame.line >= 0 and frame.column >= 0, frame)
            check(frame.function.kind in KINDS, frame.function)
            seen.add(frame.function)
    check(held == _sums([row.values for row in profile.gil_holders()], types),
          'holders of the GIL')
    check(totals == {name: profile.total(name) for name in totals}, 'totals',
          totals)
    rows = profile.functions(idle=True)
    functions = [row.function for row in rows]
    check(len(set(functions)) == len(functions), 'functions repeated')
    check(seen == set(functions), 'functions of stacks and of rows differ')
    places = [(row.function, row.line) for row in profile.lines(idle=True)]
    check(len(set(places)) == len(places), 'lines repeated')
    check(set(function for function, _ in places) == set(functions),
          'lines and functions disagree')
    check_instructions(profile)


def _sums(rows, types):
    return [sum([row[i] for row in rows]) for i in range(len(types))]


def check_instructions(profile):
    """Check that the instructions share out all that Python frames have."""
    rows = profile.instructions(idle=True)
    types = profile.value_types
    check(_sums([row.self_values for row in rows], types)
          == _sums([sample.values for sample in profile.samples
                    if any(frame.function.kind == 'python'
                           for frame in sample.stack)], types),
          'instructions')
    sites = [(row.function, row.line, row.column, row.instruction_offset,
              row.base_opcode) for row in rows]
    check(len(set(sites)) == len(sites), 'instructions repeated')
    for row in rows:
        check(row.function.kind == 'python', 'an instruction of', row)
        check(sum(count for _, count in row.opnames)
              == row.specialized_count, 'specializations', row)
        callees = [callee.function for callee in row.callees]
        check(len(set(callees)) == len(callees), 'callees repeated', row)
        check('python' not in {callee.kind for callee in callees},
              'a callee with a frame', row)


def check_gil_holders(profile):
    """Check what holds of the core's profiles: each wait has a holder."""
    for sample in profile.samples:
        holder = sample.gil_holder
        check((sample.state == 'gil_wait') == (holder is not None),
              'holder of the GIL', sample, holder)
        if holder is not None:
            check(sample.stack[0].function.qualname == '[GIL wait]', sample)
            check(holder.thread is None
                  or holder.thread in profile.threads, holder)
