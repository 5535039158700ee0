"""The counters of tasks and requests of a profile in its pprof file.

The text is

    # tasks 1 TOTAL SIZE KIND DATA

with the sum of all values of all samples, by which it is seen that another
tool has changed them, and lines of fields between tabs: a class of tasks is

    class KIND LINE MODULE QUALNAME FILE NUMBER... LIVES

and the latencies of a value of a label are

    label KEY VALUE COUNT SUM LONGEST TIMES ROOT...
    spent KEY VALUE BUCKET:COUNT:SUM:RUNNING:LOOP_WAIT:GIL_WAIT,...

A histogram is BUCKET:COUNT,...  Files that another tool has added up have a
comment of each: they belong together if their totals do.
"""

from profile_sampling._data.histogram import (
    BITS, CORE_BITS, Histogram, most_buckets)
from profile_sampling._data.lives import Latency, TaskClass, united
from profile_sampling._data.values import FUNCTION_KINDS, Function
from profile_sampling._formats.pprof import LIVES
from profile_sampling._formats.pprof.packed import number, pack, unpack

_VERSION = '1'
_WHAT = 'table of tasks'
_CLASS, _LABEL, _SPENT = 'class', 'label', 'spent'
# What a line takes as objects, for each of its bytes.
_COST = 40
_ESCAPES = {'\\\\': '\\', '\\t': '\t', '\\n': '\n'}


def comments(tables):
    """Iterate over the comments that have the counters: one, or none."""
    lines = [*map(_class_fields, tables.task_classes),
             *map(_label_fields, tables.latencies),
             *[_spent_fields(row) for row in tables.latencies if row.spent]]
    if lines:
        data = '\n'.join(['\t'.join(map(escaped, fields))
                          for fields in lines])
        data = data.encode('utf-8', 'backslashreplace')
        yield ' '.join(['#', LIVES, _VERSION, str(sum(tables.totals)),
                        str(len(data)), *pack(data)])


def _class_fields(row):
    function, *numbers, lives = row._fields()
    return (_CLASS, function.kind, str(function.first_line),
            function.module or '', function.qualname, function.filename,
            *map(str, numbers), _histogram_text(lives))


def _label_fields(row):
    return (_LABEL, row.key, row.value, str(row.count), str(row.sum_ns),
            str(row.longest_ns), _histogram_text(row.times), *row.roots)


def _spent_fields(row):
    return (_SPENT, row.key, row.value, ','.join(
        [':'.join(map(str, sums)) for sums in row.spent]))


def _histogram_text(histogram):
    return ','.join([f'{place}:{count}' for place, count
                     in enumerate(histogram.counts) if count])


def escaped(text):
    return (text.replace('\\', '\\\\').replace('\t', '\\t')
            .replace('\n', '\\n'))


def read(texts, tables, budget):
    """Return the (task classes, latencies) of the tables of a file; *texts*
    are what comments have behind the key.

    Raise ValueError if one is damaged.
    """
    classes, latencies = [], []
    rest = sum(tables.totals)
    for text in texts:
        fields = text.split(' ')
        if len(fields) != 5 or fields[0] != _VERSION:
            return (), ()
        _, total, size, kind, data = fields
        rest -= _signed(total)
        size = number(size, _WHAT)
        budget.spend(_COST * size)
        data = unpack(data, kind, size, _WHAT)
        for line in data.decode('utf-8', 'replace').split('\n'):
            _read_line(line.split('\t'), classes, latencies)
    if rest:
        # Other samples have been added, or some have been taken out.
        return (), ()
    return united(classes), united(latencies)


def _read_line(fields, classes, latencies):
    match fields:
        case [kind, *fields] if kind == _CLASS and len(fields) == 15:
            classes.append(_task_class(*fields))
        case [kind, *fields] if kind == _LABEL and len(fields) >= 6:
            latencies.append(_latency(*fields))
        case [kind, *fields] if kind == _SPENT and len(fields) == 3:
            latencies.append(_spent(*fields))
        case _:
            raise _damaged('a line is nothing that is known')


def _task_class(kind, line, module, qualname, filename, *numbers):
    *numbers, lives = numbers
    if kind not in FUNCTION_KINDS:
        raise _damaged(f'{kind[:40]!r} is no kind of function')
    function = Function(unescaped(module) or None, unescaped(qualname),
                        unescaped(filename), number(line, _WHAT), kind)
    return TaskClass(function, *_numbers(numbers),
                     _histogram(lives, CORE_BITS))


def _latency(key, value, count, sum_ns, longest_ns, times, *roots):
    return Latency(unescaped(key), unescaped(value),
                   tuple(map(unescaped, roots)),
                   *_numbers([count, sum_ns, longest_ns]),
                   _histogram(times, BITS), ())


def _spent(key, value, text):
    rows = [tuple(_numbers(item.split(':')))
            for item in filter(None, text.split(','))]
    places = [place for place, *_ in rows]
    if any([len(row) != 6 for row in rows]) or places != sorted(
            set(places)) or max(places, default=0) >= most_buckets(BITS):
        raise _damaged('there is no such bucket')
    # united() adds it to the latencies of the label.
    return Latency(unescaped(key), unescaped(value), (), 0, 0, 0,
                   Histogram(BITS), tuple(rows))


def _numbers(texts):
    return [number(text, _WHAT) for text in texts]


def _histogram(text, bits):
    most = most_buckets(bits)
    counts = []
    for item in filter(None, text.split(',')):
        place, _, count = item.partition(':')
        place = number(place, _WHAT)
        if not len(counts) <= place < most:
            raise _damaged('there is no such bucket')
        counts += [0] * (place - len(counts))
        counts.append(number(count, _WHAT))
    return Histogram(bits, counts)


def unescaped(text):
    if '\\' not in text:
        return text
    import re
    # What stands for half a surrogate pair stays.
    return re.sub(r'\\[\\tn]', lambda found: _ESCAPES[found[0]], text)


def _signed(text):
    return (-1 if text.startswith('-') else 1) * number(
        text.removeprefix('-'), _WHAT)


def _damaged(why):
    return ValueError(f'has a damaged {_WHAT}: {why}')
