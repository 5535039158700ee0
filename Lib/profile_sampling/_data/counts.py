"""Exact calls, beside the samples.

Counts are of a whole profile: no part of its samples has a part of them.
"""

from operator import add, sub

from profile_sampling._data.values import (
    FUNCTION_KINDS, NO_FRAMES, Function, Value)

# What is counted, by the core's numbers.
MODES = OFF, QUERIES, PYTHON, ALL = 'off', 'queries', 'python', 'all'

_NOTHING = 0, 0, 0, 0, 0
# Of rounds from the least on: others that ran meanwhile only add to one.
_USUAL = 1
# The label that tells requests apart, and the name of all functions.
ROUTE, TOTAL = 'route', 'total'


def place_key(function):
    """What is the same of a function that was sampled and one that was
    counted: of the former the module may not be known."""
    if function is None:
        return None
    if function.kind == 'python':
        return function.filename, function.first_line, function.qualname
    return function.module, function.qualname


class CallCount(Value):
    """How often one line called one function.

    caller     the Function, or None: no Python called it
    line       of the caller, 0 when not known
    callee     the Function
    route      None; of a query the value of the label route, or ''
    calls      how often it began to run, or, of a C function, was called
    recursive  how many of these found another call of it on their stack
    resumes    how often it went on after a yield or an await
    recursive_resumes
               how many of these did
    deepest    the most calls of it on one stack at a time, of any caller; 0 of
               C functions
    """

    __slots__ = ('caller', 'line', 'callee', 'route', 'calls', 'recursive',
                 'resumes', 'recursive_resumes', 'deepest')

    @property
    def key(self):
        return self.caller, self.line, self.callee, self.route

    @property
    def numbers(self):
        return (self.calls, self.recursive, self.resumes,
                self.recursive_resumes, self.deepest)

    @property
    def outermost(self):
        return self.calls - self.recursive


class Counts(Value):
    """All that was counted.

    mode  'queries', 'python' or 'all'
    rows  tuple of CallCount, in an order that follows from what they say
    lost  how many events no memory was left for
    python_cost_ns, c_cost_ns
          what counting calls of functions in Python and in C took of the
          program's CPU time, as measured when it began; 0: not known
    uncounted
          of a sum, how many profiles in it have no calls
    ended_ns
          how long after the beginning another tool was seen to have taken the
          id of sys.monitoring; 0: calls were counted to the end
    least_call_ns, most_call_ns
          what one call of a function in Python took more, by rounds of the
          measurement; 0: not known
    """

    __slots__ = ('mode', 'rows', 'lost', 'python_cost_ns', 'c_cost_ns',
                 'uncounted', 'ended_ns', 'least_call_ns', 'most_call_ns')

    def __init__(self, mode, rows, lost, *more):
        missing = len(self.__slots__) - 3 - len(more)
        super().__init__(mode, rows, lost, *more, *[0] * missing)

    def with_rows(self, rows):
        return Counts(self.mode, tuple(rows), *self._fields()[2:])

    @property
    def cost_ns(self):
        return self.python_cost_ns + self.c_cost_ns

    def entered(self):
        """Return how often functions in Python and in C began or went on."""
        sums = [0, 0]
        for row in self.calls:
            sums[row.callee.kind != 'python'] += row.calls + row.resumes
        return sums

    def costs_of(self, rows):
        """Return what counting each of some of its rows took."""
        each_ns = {is_python: cost_ns / (number or 1)
                   for is_python, number, cost_ns in zip(
                       (True, False), self.entered(),
                       (self.python_cost_ns, self.c_cost_ns))}
        return [round((row.calls + row.resumes)
                      * each_ns[row.callee.kind == 'python']) for row in rows]

    @property
    def calls(self):
        """The rows that are no queries."""
        return [row for row in self.rows if row.route is None]

    @property
    def queries(self):
        return [row for row in self.rows if row.route is not None]

    @property
    def has_calls(self):
        return self.mode in (PYTHON, ALL)


def from_core(raw):
    """Return the Counts of what the core has read; None: nobody counts."""
    if raw is None:
        return None
    mode, functions, rows, lost, _ = raw
    functions = [Function(*names, FUNCTION_KINDS[kind])
                 for *names, kind in functions]
    return united([Counts(MODES[mode], tuple([
        CallCount(None if caller < 0 else functions[caller], line,
                  functions[callee], route, *numbers)
        for caller, line, callee, route, *numbers in rows]), lost)])


def united(all_counts):
    """Return the Counts of all that are not None; None: there are none."""
    found = [counts for counts in all_counts if counts is not None]
    if not found:
        return None
    with_calls = [counts for counts in found if counts.has_calls]
    mode = min([MODES.index(counts.mode) for counts in with_calls or found])
    return _made(MODES[mode],
                 _sums([row for counts in found for row in counts.rows],
                       lambda row: row.key),
                 sum([counts.lost for counts in found]),
                 sum([counts.python_cost_ns for counts in found]),
                 sum([counts.c_cost_ns for counts in found]),
                 sum([counts.uncounted for counts in found])
                 + len(all_counts) - len(with_calls) if with_calls else 0,
                 max([counts.ended_ns for counts in found]),
                 min([counts.least_call_ns for counts in found
                      if counts.least_call_ns], default=0),
                 max([counts.most_call_ns for counts in found]))


def difference(after, before, mode):
    """Return what was counted between two readings; *before* may be None."""
    if before is None:
        return Counts(mode, after.rows, after.lost)
    sums = _sums(after.rows, lambda row: row.key)
    for row in before.rows:
        its = sums.get(row.key, _NOTHING)
        *numbers, _ = row.numbers
        # How deep it was before cannot be taken out.
        sums[row.key] = (*map(sub, its, numbers), its[-1])
    return _made(mode, sums, after.lost - before.lost)


def without(counts, is_left_out):
    """Return the counts of all other functions, as callers and as callees."""
    return counts.with_rows([
        row for row in counts.rows if not is_left_out(row.callee)
        and (row.caller is None or not is_left_out(row.caller))])


def with_cost(counts, python_ns, c_ns, ended_ns):
    """Return the counts with what they took, of what one call took in rounds
    that measured it, and when they ended."""
    of_python, of_c = counts.entered()
    return Counts(counts.mode, counts.rows, counts.lost,
                  round(of_python * python_ns[_USUAL]),
                  round(of_c * c_ns[_USUAL]), 0, ended_ns,
                  round(python_ns[0]), round(python_ns[-1]))


def _made(mode, sums, lost, *more):
    rows = [CallCount(*key, *numbers) for key, numbers in sums.items()
            if numbers[0] or numbers[2]]
    if mode == QUERIES:
        rows = [row for row in rows if row.route is not None]
    return Counts(mode, tuple(sorted(rows, key=_order)), lost, *more)


def _order(row):
    caller = () if row.caller is None else _rank(row.caller)
    return (caller, row.line, _rank(row.callee), row.route is not None,
            row.route or '')


def _rank(function):
    return (function.name, function.filename, function.first_line,
            function.kind)


def _sums(rows, key_of):
    """Return {key: the numbers of its rows}."""
    sums = {}
    for row in rows:
        key = key_of(row)
        *numbers, deepest = row.numbers
        known = sums.get(key)
        if known is not None:
            numbers = map(add, known, numbers)
            deepest = max(known[-1], deepest)
        sums[key] = (*numbers, deepest)
    return sums


def by_function(counts):
    """Return {function: CallCount of all its callers}, as of no line."""
    sums = _sums(counts.calls, lambda row: row.callee)
    return {function: CallCount(None, 0, function, None, *numbers)
            for function, numbers in sums.items()}


def by_line(counts):
    """Return {(function, line): how many calls it made}."""
    sums = {}
    for row in counts.calls:
        key = row.caller, row.line
        sums[key] = sums.get(key, 0) + row.calls
    return sums


def of_target(tables, kind, name):
    """Return how often a function was called ('calls' and its name, or
    'total': all functions in Python), or how many queries there were for a
    request of a route ('queries').

    Raise ValueError if that was not counted.
    """
    counts = tables.counts
    if kind == 'calls':
        if counts is None or not counts.has_calls:
            raise ValueError('it has no calls; record it with --calls python')
        return sum([row.calls for row in counts.calls
                    if name in (row.callee.name, row.callee.qualname)
                    or name == TOTAL and row.callee.kind == 'python'])
    requests = sum([row.count for row in tables.latencies
                    if (row.key, row.value) == (ROUTE, name)])
    found = sum([row.calls for row in counts.queries if row.route == name]
                if counts is not None else ())
    return found / (requests or 1)


class Calls:
    """The calls of a profile, to be compared with those of others.

    mode      what was counted
    requests  how many requests there were
    numbers   {key: how many calls}; keys are equal for the same line of
              another version, and end in the kind of what is called
    places    {key: (name of the caller, its Function or None, line, name of
              what is called)}

    Raise ValueError if none were counted.
    """

    def __init__(self, tables):
        counts = tables.counts
        if counts is None or not counts.has_calls:
            raise ValueError('it has no calls; record it with --calls python')
        self.mode = counts.mode
        self.requests = sum([row.count for row in tables.latencies
                             if row.key == ROUTE])
        self.numbers, self.places = {}, {}
        for row in counts.calls:
            name, line = NO_FRAMES, 0
            if row.caller is not None:
                name = row.caller.name
                line = row.line and row.line - row.caller.first_line
            key = name, line, row.callee.name, row.callee.kind
            self.numbers[key] = self.numbers.get(key, 0) + row.calls
            self.places[key] = name, row.caller, row.line, row.callee.name
