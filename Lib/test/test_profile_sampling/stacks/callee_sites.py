"""Call sites and operators, and the name that a sample there is to have.

One row: the expected name, the statement that is executed again and again,
and the base opcode of the instruction that does the work.  SLOW are those that
take so long that the few instructions around the work hardly matter.
"""

import _opcode_metadata
import opcode

SETUP = '''
import abc, array, collections, datetime, decimal, functools, hashlib, io
import itertools, json, math, operator, os, re, struct, threading, time
import xxsubtype, zlib
from decimal import Decimal

data = [i * 7919 % 20011 for i in range(20000)]
words = [str(i) for i in data]
text = ' '.join(words)
raw = text.encode()
pair = (1, 2)
small = [3, 1, 2]
mapping = {i: i for i in range(20000)}
other = {-i: i for i in range(20000)}
group, group2 = set(data), set(range(0, 60000, 3))
big, big2 = 3 ** 4000, 3 ** 4001
huge = 7 ** 20000
same_big = 3 ** 4000 + 0 * big
same_data, equal_data = list(data), list(data)
same_text = text[:1] + text[1:]
deque, queue = collections.deque(data), collections.deque(maxlen=50)
price, price2 = Decimal('1.25'), Decimal('3.5')
precise = decimal.Context(prec=400)
pattern = re.compile(r'(\\d+) (\\d+)')
slow_pattern = re.compile(r'(a+)+b')
found = pattern.match(text)
point = struct.Struct('<idq')
packed = point.pack(1, 2.0, 3)
counts = array.array('i', data)
today = datetime.datetime(2026, 1, 2, 3, 4, 5)
hour = datetime.timedelta(hours=1)
x, y, n, k = 1.5, 2.5, 12345, 0
lock = threading.Lock()
bytes_stream = io.BytesIO()
digest = hashlib.sha256()
view = memoryview(raw)
buffer = bytearray(raw)
first = operator.itemgetter(0)
real = operator.attrgetter('real')
bound = small.count
half = functools.partial(pow, 3, 2)
cached = functools.lru_cache(lambda: 1)
chain_forever = itertools.cycle(small)
spam = xxsubtype.spamlist()


class StrictDict(dict, metaclass=abc.ABCMeta):
    pass


class Numbered(int, metaclass=abc.ABCMeta):
    pass


class Slots:
    __slots__ = ('value',)

    def __init__(self):
        self.value = 1


class Keyed:
    def __init__(self, key):
        self.key = key


slots = Slots()
keyed = Keyed(1)
nothing = object()
'''

SLOW = [
    # Functions of modules.
    ('builtins.sorted', 'sorted(data)', 'CALL'),
    ('builtins.sorted', 'sorted(data, reverse=True)', 'CALL_KW'),
    ('builtins.min', 'min(*data)', 'CALL_FUNCTION_EX'),
    ('math.factorial', 'math.factorial(900)', 'CALL'),
    ('zlib.compress', 'zlib.compress(raw)', 'CALL'),
    ('_functools.reduce', 'functools.reduce(operator.add, data)', 'CALL'),
    ('_json.encode_basestring_ascii', 'json.encoder.c_encode_basestring_ascii'
     '(text)', 'CALL'),
    # Methods.
    ('list.sort', 'data.sort()', 'CALL'),
    ('list.index', 'data.index(data[-1])', 'CALL'),
    ('str.join', '"".join(words)', 'CALL'),
    ('str.replace', 'text.replace("1", "22")', 'CALL'),
    ('dict.update', 'mapping.copy().update(other)', 'CALL'),
    ('set.union', 'group.union(group2)', 'CALL'),
    ('array.array.count', 'counts.count(5)', 'CALL'),
    ('re.Pattern.match', 'slow_pattern.match("a" * 12)', 'CALL'),
    ('_hashlib.HASH.update', 'digest.update(raw[:2000])', 'CALL'),
    ('decimal.Context.sqrt', 'precise.sqrt(2)', 'CALL'),
    # Class methods, static methods, constructors.
    ('dict.fromkeys', 'dict.fromkeys(data)', 'CALL'),
    ('int.from_bytes', 'Numbered.from_bytes(raw)', 'CALL'),
    ('int.from_bytes', 'int.from_bytes(raw)', 'CALL'),
    ('str.maketrans', 'str.maketrans(text[:1500], text[:1500])', 'CALL'),
    ('list', 'list(mapping)', 'CALL'),
    ('dict', 'dict(**dict.fromkeys(words[:300]))', 'CALL_FUNCTION_EX'),
    ('int', 'int("f" * 900, base=16)', 'CALL_KW'),
    ('collections.deque', 'collections.deque(data)', 'CALL'),
    # What is called is an object, which is gone at the drain.
    ('functools.partial.__call__', 'functools.partial(sorted, data)()',
     'CALL'),
    # Operators.
    ('int.__mul__', 'big * big2', 'BINARY_OP'),
    ('int.__pow__', 'big ** 3', 'BINARY_OP'),
    ('int * list', '3 * data', 'BINARY_OP'),
    ('list.__add__', 'data + data', 'BINARY_OP'),
    ('str.__mod__', '"%d" % huge if k else "%s" % data', 'BINARY_OP'),
    ('set.__and__', 'group & group2', 'BINARY_OP'),
    ('dict.__or__', 'mapping | other', 'BINARY_OP'),
    ('list.__eq__', 'same_data == equal_data', 'COMPARE_OP'),
    ('list.__contains__', '-1 in data', 'CONTAINS_OP'),
    ('collections.deque.__contains__', '-1 in deque', 'CONTAINS_OP'),
    ('list.__getitem__', 'data[10:19000]', 'BINARY_SLICE'),
    ('str.__getitem__', 'text[::2]', 'BINARY_SUBSCR'),
    ('list.__setitem__', 'data[10:19000] = data[10:19000]', 'STORE_SLICE'),
    ('list.extend', '[*mapping]', 'LIST_EXTEND'),
    ('set.update', '{*data}', 'SET_UPDATE'),
    ('dict.update', '{**mapping}', 'DICT_UPDATE'),
    ('list.__repr__', 'f"{data!r}"', 'CONVERT_VALUE'),
    ('list.__iter__', 'a, *b = data', 'UNPACK_EX'),
]

FAST = [
    ('type.mro', 'Slots.mro()', 'CALL'),
    ('type.__subclasses__', 'StrictDict.__subclasses__()', 'CALL'),
    ('builtins.len', 'len(data)', 'CALL'),
    ('builtins.isinstance', 'isinstance(n, str)', 'CALL'),
    ('builtins.divmod', 'divmod(n, 7)', 'CALL'),
    ('builtins.getattr', 'getattr(keyed, "key")', 'CALL'),
    ('builtins.setattr', 'setattr(keyed, "key", 2)', 'CALL'),
    ('builtins.__import__', 'import math', 'IMPORT_NAME'),
    ('math.sqrt', 'math.sqrt(x)', 'CALL'),
    ('time.monotonic', 'time.monotonic()', 'CALL'),
    ('posix.stat', 'os.stat("/")', 'CALL'),
    ('_struct.pack', 'struct.pack("<id", 1, 2.0)', 'CALL'),
    ('_struct.Struct.unpack', 'point.unpack(packed)', 'CALL'),
    ('list.append', 'data.append(1)', 'CALL'),
    ('list.count', 'bound(3)', 'CALL'),
    ('list.append', '[q for q in small]', 'LIST_APPEND'),
    ('set.add', '{q for q in small}', 'SET_ADD'),
    ('dict.__setitem__', '{q: q for q in small}', 'MAP_ADD'),
    ('dict.get', 'mapping.get(5)', 'CALL'),
    ('str.encode', '"abc".encode()', 'CALL'),
    ('str.format', '"{} {}".format(n, x)', 'CALL'),
    ('int.to_bytes', 'n.to_bytes(4)', 'CALL'),
    ('datetime.datetime.now', 'datetime.datetime.now()', 'CALL'),
    ('decimal.Decimal.sqrt', 'price.sqrt()', 'CALL'),
    ('_io.BytesIO.getvalue', 'bytes_stream.getvalue()', 'CALL'),
    ('operator.itemgetter.__call__', 'first(pair)', 'CALL'),
    ('operator.attrgetter.__call__', 'real(n)', 'CALL'),
    ('builtins.pow', 'half()', 'CALL'),
    ('sites.<lambda>', 'cached()', 'CALL'),
    ('object', 'object()', 'CALL'),
    ('xxsubtype.spamlist', 'xxsubtype.spamlist()', 'CALL'),
    ('xxsubtype.spamlist.getstate', 'spam.getstate()', 'CALL'),
    ('list.append', 'spam.append(1)', 'CALL'),
    ('xxsubtype.spamlist.classmeth', 'xxsubtype.spamlist.classmeth()', 'CALL'),
    ('xxsubtype.spamlist.staticmeth', 'spam.staticmeth()', 'CALL'),
    ('decimal.Decimal', 'Decimal("1.5")', 'CALL'),
    ('object.__init__', 'nothing.__init__()', 'CALL'),
    ('int.__add__', 'n.__add__(5)', 'CALL'),
    ('_thread.lock.__enter__', 'with lock: pass', 'BEFORE_WITH'),
    ('_thread.lock.__exit__', 'with lock: pass', 'CALL'),
    # Operators.
    ('int.__add__', 'n + n', 'BINARY_OP'),
    ('int.__truediv__', 'n / 7', 'BINARY_OP'),
    ('int + float', 'n + x', 'BINARY_OP'),
    ('float.__add__', 'x + n', 'BINARY_OP'),
    ('str.__add__', 'words[0] + words[1]', 'BINARY_OP'),
    ('str.__mod__', '"%d %s" % (n, n)', 'BINARY_OP'),
    ('list.__iadd__', 's = small; s += ()', 'BINARY_OP'),
    ('decimal.Decimal.__add__', 'price + price2', 'BINARY_OP'),
    ('int + decimal.Decimal', '1 + price', 'BINARY_OP'),
    ('datetime.datetime.__add__', 'today + hour', 'BINARY_OP'),
    ('int.__neg__', '-big', 'UNARY_NEGATIVE'),
    ('int.__invert__', '~big', 'UNARY_INVERT'),
    ('int.__eq__', 'big == same_big', 'COMPARE_OP'),
    ('int < float', 'n < x', 'COMPARE_OP'),
    ('str.__eq__', 'text == same_text', 'COMPARE_OP'),
    ('tuple.__lt__', 'pair < pair', 'COMPARE_OP'),
    ('dict.__contains__', '5 in mapping', 'CONTAINS_OP'),
    ('set.__contains__', '-5 in group', 'CONTAINS_OP'),
    ('dict.__getitem__', 'mapping[5]', 'BINARY_SUBSCR'),
    ('list.__getitem__', 'data[5]', 'BINARY_SUBSCR'),
    ('memoryview.__getitem__', 'view[5:9]', 'BINARY_SLICE'),
    ('dict.__setitem__', 'mapping[5] = 5', 'STORE_SUBSCR'),
    ('bytearray.__setitem__', 'buffer[5] = 5', 'STORE_SUBSCR'),
    ('int.numerator', 'n.numerator', 'LOAD_ATTR'),
    ('re.Match.string', 'found.string', 'LOAD_ATTR'),
    ('sites.Slots.value', 'slots.value', 'LOAD_ATTR'),
    ('sites.Slots.value', 'slots.value = 1', 'STORE_ATTR'),
    ('int.__bool__', 'big and 1', 'TO_BOOL'),
    ('dict.__len__', 'mapping and 1', 'TO_BOOL'),
    ('list_iterator.__next__', 'for a in small: pass', 'FOR_ITER'),
    ('enumerate.__next__', 'for a in enumerate(data): pass', 'FOR_ITER'),
    ('itertools.islice.__next__',
     'for a in itertools.islice(chain_forever, 500): pass', 'FOR_ITER'),
    ('collections.deque.__iter__', 'for a in queue: break', 'GET_ITER'),
    ('int.__format__', 'f"{n:>20}"', 'FORMAT_WITH_SPEC'),
    ('float.__format__', 'f"{x}"', 'FORMAT_SIMPLE'),
    ('str.join', 'f"{words[0]} and {words[1]} and {words[2]}"',
     'BUILD_STRING'),
    ('list.__len__', 'match small:\n            case [_, _]: pass', 'GET_LEN'),
]

try:
    import _testcapi
except ImportError:     # installed without the test extensions
    pass
else:
    SETUP += 'import _testcapi\n'
    FAST += [('_testcapi.HeapGcCType', '_testcapi.HeapGcCType()', 'CALL')]
    del _testcapi


def opcode_names():
    """{number: name of the base instruction}."""
    bases = {number: name for name, number in opcode.opmap.items()}
    for base, specialized in _opcode_metadata._specializations.items():
        for name in specialized:
            bases[_opcode_metadata._specialized_opmap[name]] = base
    return bases


BASE_NAMES = opcode_names()


def python_frame(sample):
    """The innermost Python frame, and the frame it calls or None."""
    for i, frame in enumerate(sample.stack):
        if frame.function.kind == 'python':
            callee = sample.stack[i - 1] if i > 0 else None
            return frame, callee
    return None, None
