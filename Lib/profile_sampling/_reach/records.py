"""Records that a process has written, as Python values.

The layout is that of Python/sampling/reach/records.c.  What does not have it is
refused: the process may be anybody's.
"""

import struct

from profile_sampling._data.values import Function

(_MOMENT, _GIL, _CODE, _THREAD, _FRAME, _CALLEE, _LEFT_OUT, _LOCK, _CALL,
 _FILE, _LABEL, _TASK, _CUT, _UNSURE, _PART, _REQUEST) = range(1, 17)
_HEAD = struct.Struct('=II')
# Of each kind its fields: a number, bytes or a text.
_FIELDS = {
    _MOMENT: 'nn', _GIL: 'nnnnnn', _CODE: 'nnttt', _THREAD: 'nnnnnnt',
    _FRAME: 'nn', _CALLEE: 'ntt', _LEFT_OUT: 'n', _LOCK: 'nnn', _CALL: 't',
    _FILE: 'ntb', _LABEL: 'tt', _TASK: 'nnntntt', _CUT: '',
    _UNSURE: '', _REQUEST: 'nnn'}


class Frame:
    """A place on a stack: a Function, and the line (0: none)."""

    def __init__(self, function, line):
        self.function = function
        self.line = line


class LeftOut:
    """So many frames are not said."""

    def __init__(self, count):
        self.count = count


class RawThread:
    """A thread: its numbers, its name and its frames, innermost first.

    waits   for the GIL; waits_ns, at least, or 0
    call    the line of its file "syscall", or None
    file    (descriptor, what it is, address of the peer), or None
    is_sure it has not run while its stack was read
    """

    def __init__(self, native_id, ident, interpreter, has_gil, waits, waits_ns,
                 name):
        self.native_id = native_id
        self.ident = ident
        self.interpreter = interpreter
        self.has_gil = bool(has_gil)
        self.waits = bool(waits)
        self.waits_ns = waits_ns
        self.name = name
        self.frames = []
        self.locks = []
        self.labels = {}
        self.is_sure = True
        self.call = None
        self.file = None


class RawTask:
    """A task: its coroutines, outermost first, and what the last awaits."""

    def __init__(self, number, coroutine, is_running, name, awaited, module,
                 qualname):
        self.number = number
        self.coroutine = coroutine
        self.is_running = bool(is_running)
        self.name = name
        self.awaited = awaited
        self.awaited_type = f'{module}.{qualname}' if module else qualname
        self.frames = []


class RawRequest:
    """A request under way: for how long, the native id of the thread in which
    it began, and the address of its task, or 0."""

    def __init__(self, age_ns, native_id, task):
        self.age_ns = age_ns
        self.native_id = native_id
        self.task = task
        self.labels = {}


class Said:
    """All that records say.

    at_ns         Unix time
    asked         native id of the thread that wrote them
    holder        native id of the thread that holds the GIL, or 0
    held_ns       since when no other one has had it; 0: not known
    gil           range of addresses at which one sleeps that waits for it
    is_asleep     the holder is, in a system call
    num_other_gils
                  interpreters that have a GIL of their own: they are not here
    threads, tasks, requests
    is_cut        not all is there
    """

    def __init__(self):
        self.at_ns = 0
        self.asked = self.holder = self.held_ns = 0
        self.gil = range(0)
        self.is_asleep = False
        self.num_other_gils = 0
        self.threads = []
        self.tasks = []
        self.requests = []
        self.is_cut = False


def read(data):
    """Return what records say; raise ValueError if they are none."""
    said = Said()
    functions = {}
    owner = None
    for kind, fields in _records(data):
        if kind == _MOMENT:
            said.at_ns, said.asked = fields
        elif kind == _GIL:
            (said.holder, said.held_ns, begin, end, said.is_asleep,
             said.num_other_gils) = fields
            said.gil = range(begin, end)
        elif kind == _CODE:
            address, line, module, filename, qualname = fields
            functions[address] = Function(module or None, qualname, filename,
                                          line, 'python')
        elif kind == _THREAD:
            owner = RawThread(*fields)
            said.threads.append(owner)
        elif kind == _TASK:
            owner = RawTask(*fields)
            said.tasks.append(owner)
        elif kind == _REQUEST:
            owner = RawRequest(*fields)
            said.requests.append(owner)
        elif kind == _CUT:
            said.is_cut = True
        elif owner is None:
            raise ValueError('records of nobody')
        else:
            _add(owner, kind, fields, functions)
    return said


def _add(owner, kind, fields, functions):
    if isinstance(owner, RawRequest):
        if kind != _LABEL:
            raise ValueError('records of a thread')
        key, value = fields
        owner.labels[key] = value
    elif kind == _FRAME:
        address, line = fields
        if address not in functions:
            raise ValueError('a frame without code')
        owner.frames.append(Frame(functions[address], line))
    elif kind == _CALLEE:
        is_operator, module, qualname = fields
        owner.frames.append(Frame(Function(
            module or None, qualname, '', 0,
            'operator' if is_operator else 'C'), 0))
    elif kind == _LEFT_OUT:
        owner.frames.append(LeftOut(*fields))
    elif not isinstance(owner, RawThread):
        raise ValueError('records of a thread')
    elif kind == _UNSURE:
        owner.is_sure = False
    elif kind == _CALL:
        owner.call, = fields
    elif kind == _FILE:
        owner.file = fields
    elif kind == _LOCK:
        owner.locks.append(fields)
    else:
        key, value = fields
        owner.labels[key] = value


def parts(data):
    """Yield (name, bytes) of each part of a profile; raise ValueError if they
    are none."""
    at = 0
    while at < len(data):
        if at + _HEAD.size > len(data):
            raise ValueError('half a record')
        size, kind = _HEAD.unpack_from(data, at)
        end = at + size
        begin = at + _HEAD.size + 4
        if begin > end or end > len(data) or kind not in (_PART, _CUT):
            raise ValueError('no record of a profile')
        if kind == _CUT:
            raise ValueError('a profile that is not whole')
        named = begin + int.from_bytes(data[begin - 4:begin], 'little')
        if named > end:
            raise ValueError('half a field')
        yield data[begin:named].decode('ascii', 'replace'), data[named:end]
        at = end


def byte_fields(data):
    """Return the fields of bytes that are nothing but such."""
    found = []
    at = 0
    while at < len(data):
        begin = at + 4
        at = begin + int.from_bytes(data[begin - 4:begin], 'little')
        if begin > len(data) or at > len(data):
            raise ValueError('half a field')
        found.append(data[begin:at])
    return found


def _records(data):
    at = 0
    while at < len(data):
        if at + _HEAD.size > len(data):
            raise ValueError('half a record')
        size, kind = _HEAD.unpack_from(data, at)
        end = at + size
        if size < _HEAD.size or end > len(data) or kind not in _FIELDS:
            raise ValueError('no record')
        yield kind, _fields(data, at + _HEAD.size, end, _FIELDS[kind])
        at = end


def _fields(data, at, end, types):
    fields = []
    for type in types:
        if type == 'n':
            size, first = 8, at
        else:
            if at + 4 > end:
                raise ValueError('half a field')
            size, first = int.from_bytes(data[at:at + 4], 'little'), at + 4
        at = first + size
        if at > end:
            raise ValueError('half a field')
        value = data[first:at]
        fields.append(int.from_bytes(value, 'little') if type == 'n'
                      else value if type == 'b'
                      else value.decode('utf-8', 'replace'))
    if at != end:
        raise ValueError('more than its fields')
    return fields
