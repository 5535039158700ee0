"""The exact calls of a profile in its pprof file.

A comment they are, and no values of samples, because viewers would add them to
those of whole stacks.  The text is

    # calls 3 MODE LOST COST COST UNCOUNTED ENDED LEAST MOST SIZE KIND DATA

and DATA has lines of fields between tabs, first the functions and then, after
an empty line, the counts:

    KIND LINE MODULE QUALNAME FILE
    CALLER LINE CALLEE CALLS RECURSIVE RESUMES RECURSIVE DEEPEST [ROUTE]

The two of COST are of functions in Python and in C, ENDED, LEAST and MOST are
as Counts has them; CALLER and CALLEE are numbers of functions from 1; 0 is
none.  With a ROUTE, which may be empty, it is a query.  Version 2 has no ENDED,
LEAST and MOST.  Files that another tool has added up have
a comment of each, which are added up here.
"""

from profile_sampling._data.counts import MODES, CallCount, Counts, united
from profile_sampling._data.numbering import number_of
from profile_sampling._data.values import FUNCTION_KINDS, Function
from profile_sampling._formats.pprof import CALLS
from profile_sampling._formats.pprof.lives import escaped, unescaped
from profile_sampling._formats.pprof.packed import number, pack, unpack

# How many fields each version has, DATA left out.
_VERSIONS = {'2': 8, '3': 11}
_VERSION = '3'
_WHAT = 'table of calls'
# What a line takes as objects, for each of its bytes.
_COST = 20
_FIELDS = 8


def comments(tables):
    """Iterate over the comments that have the calls: one, or none."""
    counts = tables.counts
    if counts is None:
        return
    numbers = {None: 0}
    rows = [_row_fields(row, numbers) for row in counts.rows]
    functions = [_function_fields(function) for function in numbers
                 if function is not None]
    data = '\n'.join(['\t'.join(map(escaped, fields))
                      for fields in [*functions, (), *rows]])
    data = data.encode('utf-8', 'backslashreplace')
    yield ' '.join(['#', CALLS, _VERSION, counts.mode, str(counts.lost),
                    str(counts.python_cost_ns), str(counts.c_cost_ns),
                    str(counts.uncounted), str(counts.ended_ns),
                    str(counts.least_call_ns), str(counts.most_call_ns),
                    str(len(data)), *pack(data)])


def _function_fields(function):
    return (function.kind, str(function.first_line), function.module or '',
            function.qualname, function.filename)


def _row_fields(row, numbers):
    fields = (number_of(numbers, row.caller), row.line,
              number_of(numbers, row.callee), *row.numbers)
    return (*map(str, fields), *([] if row.route is None else [row.route]))


def read(texts, budget):
    """Return the Counts; *texts* are what comments have behind the key.

    Raise ValueError if one is damaged.
    """
    return united([_read(text, budget) for text in texts])


def _read(text, budget):
    fields = text.split(' ')
    if len(fields) - 1 != _VERSIONS.get(fields[0]):
        return None
    _, mode, *numbers, size, kind, data = fields
    if mode not in MODES:
        raise _damaged(f'{mode[:40]!r} is no kind of calls')
    size = number(size, _WHAT)
    budget.spend(_COST * size)
    data = unpack(data, kind, size, _WHAT).decode('utf-8', 'replace')
    functions, _, rows = data.partition('\n\n')
    if data.startswith('\n'):
        functions, rows = '', data[1:]
    functions = [None, *map(_function, filter(None, functions.split('\n')))]
    return Counts(mode, tuple([_row(line.split('\t'), functions)
                               for line in filter(None, rows.split('\n'))]),
                  *[number(field, _WHAT) for field in numbers])


def _function(line):
    fields = line.split('\t')
    if len(fields) != 5 or fields[0] not in FUNCTION_KINDS:
        raise _damaged('there is no such function')
    kind, first_line, *names = fields
    module, qualname, filename = map(unescaped, names)
    return Function(module or None, qualname, filename,
                    number(first_line, _WHAT), kind)


def _row(fields, functions):
    if len(fields) not in (_FIELDS, _FIELDS + 1):
        raise _damaged('a line is cut off')
    caller, line, callee, *numbers = [number(field, _WHAT)
                                      for field in fields[:_FIELDS]]
    if not (caller < len(functions) and 0 < callee < len(functions)):
        raise _damaged('it refers to a function that does not exist')
    route = unescaped(fields[-1]) if len(fields) > _FIELDS else None
    row = CallCount(functions[caller], line, functions[callee], route,
                    *numbers)
    if row.recursive > row.calls or row.recursive_resumes > row.resumes:
        raise _damaged('more calls are recursive than there are')
    return row


def _damaged(why):
    return ValueError(f'has a damaged {_WHAT}: {why}')
