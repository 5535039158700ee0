"""What one run of a program says of the rows that are compared.

This file owns what a row is (a function, a call site, a value of a label),
what it weighs in a run, and how much work the run did.  It must not know any
other run.

Functions are known by name, as in diff.py.  So are call sites, with the line
counted from the head of the function: what was written above it moves none.
"""

from array import array

from profile_sampling._data import by_label, by_site, origins, select
from profile_sampling._data.diff import function_sums
from profile_sampling._data.label_names import label_of
from profile_sampling._data.on_clocks import on_clocks
from profile_sampling._data.sums import sums_by
from profile_sampling._data.tables import (
    KEY_COLUMNS, LABELS, NODE, STATE, THREAD, Tables, function_row,
    thread_row)
from profile_sampling._data.values import (
    COUNT, NAMES, OF_TASKS, STATES, WALL, Value)

# What is compared other than the values of a label.
MINE, FUNCTION, SITE, STATE_NAME, THREAD_NAME = (
    'mine', 'function', 'site', 'state', 'thread')
CUSTOM = 'custom'
# Of a row: its value, the part of it that is of running code, and how many
# records of running code there are.
NOTHING = 0, 0, 0
_RUNNING, _CUSTOM = STATES.index('running'), STATES.index('custom')
_CPU_WAIT = STATES.index('cpu_wait')
# Types of values that no file has.
_RUNNING_VALUE = 'value of running code'
_RECORDS = 'records of running code', 'count'


class Question(Value):
    """What is asked of each run.

    by          'mine' for lines of the user's own code, 'function', 'site',
                'state', 'thread' or the name of a label; 'label:thread' is a
                label, too
    cumulative  whether functions are charged what they called
    value       name of the value that is compared, such as 'cpu_ns'
    per         the unit of work: None, 'custom' for what sample() counted,
                (key, value) for what it counted with that label, or (key,)
                for how many values of a label there are
    targets     tuple of Target
    """

    __slots__ = 'by', 'cumulative', 'value', 'per', 'targets'


class Target(Value):
    """What a gate watches.

    name      as it is shown
    function  the name of a function, for what it costs with all it calls
    label     key and value, for what samples with that label cost.  With
              neither it is the total
    least     the increase that counts, as a share of what it was before
    """

    __slots__ = 'name', 'function', 'label', 'least'


class Place(Value):
    """What a row is of.

    name      of a function, a state or a thread, or the value of a label;
              None for samples without it
    function  Function, or None for what is none
    line      of a call site, else 0
    callee    what a call site is in: the name of a C function, an operator
              or a pseudo function; of a line of one's own, what was called;
              or None
    measured  whether its values are sums of what clocks said, and no samples
              of running code decide about them
    """

    __slots__ = 'name', 'function', 'line', 'callee', 'measured'

    def with_callee(self, callee):
        """Return the same that calls what has this name, or ''."""
        return Place(self.name, self.function, self.line, callee or None,
                     self.measured)


class Run:
    """A run, reduced to what was asked.

    value_type
             the ValueType of what is compared
    total    (value, the part of running code, its records) of all samples
    rows     {key: the same of a row}
    places   {key: Place}
    targets  the same of each of the targets, in order
    work     how many units of work it did, or None if none were asked for
    cpu_wait_share
             of its wall time, if that is compared

    What is not of running code is measured; running code is known by samples.
    *mine* are patterns of what is the user's own code, too.

    Raise ValueError if the profile does not have what was asked for.
    """

    def __init__(self, tables, question, mine=()):
        self.mode = tables.mode
        self.rate_hz = tables.rate_hz
        self.duration_ns = tables.duration_ns
        self.python_version = tables.python_version
        self.names = NAMES[tables.names]
        self.value_type = _value_type(tables, question.value)
        reduced = _reduced(tables, self.value_type)
        self.total = reduced.totals
        self.rows, self.places = (
            _mine(reduced, mine) if question.by == MINE
            else _ROWS.get(question.by, _labels)(reduced, question))
        self.targets = [_target(reduced, target) for target
                        in question.targets]
        self.work = _work(tables, question.per)
        self.cpu_wait_share = (_cpu_wait_share(tables)
                               if self.value_type == WALL else 0)


def _cpu_wait_share(tables):
    walls = tables.column(tables.value_column(WALL.name))
    waited = sum([ns for ns, state in zip(walls, tables.column(STATE))
                  if state == _CPU_WAIT])
    return waited / sum(walls) if waited else 0


def usual_rows(tables, mine=()):
    """Return what rows are if nothing is asked for: MINE, if there are any."""
    return (MINE if by_site.sites_of(on_clocks(tables), mine).is_mine
            else FUNCTION)


_ALL = dict.fromkeys(
    ['function', 'file', 'state', 'thread', 'task', 'labels'])


def _value_type(tables, name):
    for value_type in tables.value_types:
        if value_type.name == name:
            return value_type
    raise ValueError(
        f'there is no value {name!r}; those of this profile are: '
        + ', '.join([value_type.name for value_type in tables.value_types]))


def _reduced(tables, value_type):
    """Return Tables with the values of a row: that one, and those of running
    code.

    So all sums have them.
    """
    if value_type not in OF_TASKS:
        tables = on_clocks(tables)
    value = tables.value_column(value_type.name)
    count = None
    if COUNT in tables.value_types:
        count = tables.value_column(COUNT.name)
    packed = array('q')
    for row in tables.row_tuples():
        packed.extend(row[:KEY_COLUMNS])
        packed.append(row[value])
        if row[STATE] in (_RUNNING, _CPU_WAIT):
            packed.append(row[value])
            packed.append(0 if count is None else row[count])
        else:
            packed.extend([0, 0])
    return Tables(tables.facts() | {
        'mode': value_type.kind, 'samples': packed.tobytes(),
        'value_types': [(value_type.kind, value_type.unit),
                        (_RUNNING_VALUE, value_type.unit), _RECORDS],
        'functions': [*map(function_row, tables.functions)],
        'threads': [*map(thread_row, tables.threads)],
        'frames': tables.frames, 'nodes': tables.nodes,
        'labels': tables.labels})


def _functions(reduced, question):
    rows, places = {}, {}
    for key, ((function,), sums) in function_sums(reduced).items():
        rows[key] = sums[question.cumulative]
        places[key] = Place(function.name, function, 0, None,
                            function.kind == 'pseudo')
    return rows, places


def _sites(reduced, question):
    """Add up by the innermost Python frame and what is called there."""
    frames = list(reduced.frame_tuples())
    functions = reduced.functions
    innermost, callees = reduced.innermost_python()
    keys, places = {}, {}
    key_of_sample = []
    for node in reduced.column(NODE):
        key, place = _site(functions, frames, innermost[node], callees[node])
        key_of_sample.append(keys.setdefault(key, len(keys)))
        places.setdefault(key, place)
    sums = zip(*sums_by(reduced, key_of_sample, len(keys)))
    return dict(zip(keys, sums)), places


def _site(functions, frames, frame, callee):
    """Return the key and the Place of a call site; -1 for no frame."""
    called = None if callee < 0 else functions[frames[callee][0]].name
    if frame < 0:
        return (None, None, called), Place(called or '(no stack)', None, 0,
                                           None, False)
    number, line, *_ = frames[frame]
    function = functions[number]
    return ((function.name, line - function.first_line, called),
            Place(function.name, function, line, called, False))


def _mine(reduced, patterns):
    """Add up by the innermost line that is mine."""
    keys, sites = by_site.my_sites(reduced, origins.mine(reduced, patterns))
    places = {}
    for function, line, called in sites:
        key = function.name, line - function.first_line
        places[key] = Place(
            function.name,
            None if by_site.is_outside(function) else function, line,
            called or None, False)
    # Functions of one name may be several, which are compared as one.
    numbers = {key: number for number, key in enumerate(places)}
    of_sites = [numbers[function.name, line - function.first_line]
                for function, line, _ in sites]
    sums = zip(*sums_by(reduced, [of_sites[key] for key in keys],
                        len(places)))
    return dict(zip(places, sums)), places


def _labels(reduced, question):
    rows, places = {}, {}
    for row in by_label.rows_of(reduced, label_of(question.by)):
        rows[row.value] = tuple(row.values)
        places[row.value] = Place(row.value, None, 0, None, False)
    return rows, places


def _states(reduced, question):
    return _measured(reduced, STATE, STATES)


def _threads(reduced, question):
    # Numbers of threads are others in each run.
    return _measured(reduced, THREAD,
                     [thread.name for thread in reduced.threads])


def _measured(reduced, column, names):
    """Add up by a name for each number in a column of samples."""
    numbers = {}
    keys = [numbers.setdefault(names[value], len(numbers))
            for value in reduced.column(column)]
    sums = zip(*sums_by(reduced, keys, len(numbers)))
    return dict(zip(numbers, sums)), {
        name: Place(name, None, 0, None, True) for name in numbers}


_ROWS = {FUNCTION: _functions, SITE: _sites, STATE_NAME: _states,
         THREAD_NAME: _threads}
NOT_LABELS = MINE, *_ROWS


def _target(reduced, target):
    if target.function is None and target.label is None:
        return reduced.totals
    labels = None
    if target.label is not None:
        key, _ = target.label
        if key not in by_label.keys(reduced):
            return NOTHING
        labels = dict([target.label])
    return select.filtered(reduced, **_ALL | {
        'function': target.function, 'labels': labels}).totals


def _work(tables, per):
    if per is None:
        return None
    if per == CUSTOM or len(per) == 2:
        work = _counted(tables, None if per == CUSTOM else per)
    else:
        work = len([row for row in by_label.rows(tables, *per)
                    if row.value is not None])
    if not work:
        raise ValueError('sample() counted nothing of what is to be the '
                         'unit of work')
    return work


def _counted(tables, label):
    count = tables.value_column(COUNT.name)
    values = None
    if label is not None:
        key, wanted = label
        values = by_label.values(tables.labels, key)
    return sum([
        row[count] for row in tables.row_tuples() if row[STATE] == _CUSTOM
        and (values is None or values[row[LABELS]] == wanted)])
