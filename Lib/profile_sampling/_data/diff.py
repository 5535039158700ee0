"""What changed from one profile to another, or from some runs to others.

Functions are compared by name, since a new version moves them to other lines,
and another checkout to other files.  So are lines, which count from the head
of their function.

How far a change may be off is known in one of two ways (Difference.method):

SAMPLING  one run on a side: by as much as samples may be off; see
          confidence.py.  A sample more on each side than there was (Agresti &
          Caffo, The American Statistician 54, 2000) makes that right for few
          samples, too.  How much runs differ is not known: no gate is judged
RUNS      by as much as the runs of each side differ: the standard error of
          the difference of two means, times Student's t for the side with
          fewer runs.  Welch's estimate of the degrees of freedom is never
          less, so the margin is rather too wide; with two runs on a side it
          holds 93 % of the time at worst, instead of 95
"""

import re
from math import cos, hypot, pi, sin, sqrt, tan

from profile_sampling._data import (
    allocations, by_function, by_label, by_site, by_state, checks, counts, idle, keys,
    origins, select)
from profile_sampling._data.label_names import OWN_KEYS, label_of
from profile_sampling._data.on_clocks import on_clocks
from profile_sampling._data.rows import DiffRow, Gate, function_rank
from profile_sampling._data.tables import FRAME_COLUMNS
from profile_sampling._data.values import (
    COUNT, NAMES, NO_FRAMES, STATES, did_you_mean)

# What rows are, other than the values of a key; see keys.py.
LINE, FUNCTION = 'line', 'function'
SAMPLING, RUNS = 'sampling', 'runs'
REGRESSION, PASSED, INCONCLUSIVE = 'regression', 'passed', 'inconclusive'
# The work that sample() counted, whatever its labels are.
CUSTOM = 'custom'
# Margins are exceeded by chance in this share of cases.
_CHANCE = 0.05
# A change that counts: this share of the total, and of anything else.
LEAST_OF_TOTAL, LEAST_OF_ROW = 0.01, 0.05
_TARGET = re.compile(
    r'(total|in_use|peak|allocated|(?:function|line|calls|queries):.+?'
    r'|label:[^=]+=.*?)(?::(\d+(?:\.\d+)?) ?(%|[KMG]?B))?', re.DOTALL)
# What is of sampled memory, whatever is compared.
MEMORY = {'in_use': allocations.IN_USE, 'peak': allocations.PEAK,
          'allocated': allocations.ALLOCATED}
_SIZES = {'B': 1, 'KB': 1 << 10, 'MB': 1 << 20, 'GB': 1 << 30}
# What is counted, exactly, so that any increase counts.
COUNTED = frozenset({'calls', 'queries'})
# The value of a row, and how many of its samples are of running code.
_NOTHING = 0, 0
_ANY = dict.fromkeys(('function', 'file', 'state', 'thread', 'task',
                      'labels'))


class Question:
    """What is asked of each run; see Profile.diff() for the arguments.

    targets  for each gate its text, what it is of in two parts, and the
             increase that counts: a share, and bytes or None
    """

    def __init__(self, *, by=LINE, cum=False, value=None, share=False,
                 per=None, gates=(), mine=(), all=False,
                 idle=False, calls=False):
        self.by = checks.text('by', by)
        self.cum = cum
        self.value = value
        self.share = share
        self.per = None if per is None else checks.text('per', per)
        self.targets = [_target(text)
                        for text in checks.texts('gates', gates)]
        self.mine = mine
        self.all = all
        self.idle = idle
        self.calls = calls
        if share and per:
            raise ValueError('shares of a run are no values per unit of work')
        if share and any([text == 'total' for text, *_ in self.targets]):
            raise ValueError('the share of the total cannot change: gate it '
                             'without shares')


def _target(text):
    found = _TARGET.fullmatch(checks.text('a gate', text))
    if found is None:
        raise ValueError(
            f'{text!r} is no gate: that is total, function:NAME, '
            'line:NAME:LINE, label:KEY=VALUE, calls:NAME, calls:total, '
            'queries:ROUTE, in_use, peak or allocated, and may end in the '
            'increase that counts, such as :3%, or :20MB of memory')
    kind, _, name = found[1].partition(':')
    least, least_bytes = (0.0 if kind in COUNTED else LEAST_OF_TOTAL
                          if kind == 'total' else LEAST_OF_ROW), None
    if found[3] == '%':
        least = float(found[2]) / 100
    elif found[2]:
        least, least_bytes = 0.0, round(float(found[2]) * _SIZES[found[3]])
    return found[1], kind, name, least, least_bytes


class Run:
    """A run, reduced to what was asked.

    total    (value, how many samples of running code) of all that is shown
    rows     {key: the same of a row}
    places   {key: (name, Function or None, line, what is called there)}
    targets  the same as of rows for each of the gates
    margins  of those of memory, how far samples may be off; else 0
    work     how many units of work it did; 1 if that was not asked
    cpu_wait_share
             of its time
    calls    counts.Calls; None: none were counted

    *first* is the first run, which decides whose lines are compared.  Raise
    ValueError if the profile does not have what was asked for.
    """

    def __init__(self, tables, question, first=None):
        self.mode = tables.mode
        self.rate_hz = tables.rate_hz
        self.start_time_ns = tables.start_time_ns
        self.duration_ns = tables.duration_ns
        self.python_version = tables.python_version
        self.names = NAMES[tables.names]
        self.calls = (counts.Calls(tables) if question.calls
                      or tables.counts is not None and tables.counts.has_calls
                      else None)
        self.depth_frames = tables.depth_frames
        self.work = _work(tables, question.per)
        whole = tables
        if question.value is not None:
            tables = tables.by_value(question.value)
        tables = on_clocks(tables)
        self.value_type = tables.value_types[tables.own]
        self.is_memory = allocations.variance_column(tables) is not None
        self.is_mine = (not question.all and bool(
            tables.has_mine or question.mine) if first is None
            else first.is_mine)
        sites = by_site.Sites(
            tables, origins.mine(tables, question.mine), self.is_mine,
            question.idle)
        self.precision = sites.precision
        busy = idle.shown(tables, question.idle)
        self.total = _sums(sites.whole)
        if question.by == LINE:
            self.rows, self.places = _lines(sites)
        elif question.by == FUNCTION:
            self.rows, self.places = _functions(busy, question.cum)
        else:
            self.rows, self.places = _values(busy, question.by)
        self.targets = [
            _of_line(sites, name) if kind == 'line' else _of_target(
                busy if kind not in MEMORY else whole, kind, name)
            for _, kind, name, *_ in question.targets]
        self.margins = [margin_of(whole, MEMORY[kind]) if kind in MEMORY else 0
                        for _, kind, *_ in question.targets]
        waits = sites.whole.by_state[STATES.index('cpu_wait')]
        self.cpu_wait_share = waits / self.total[0] if waits else 0

    def margin(self, sums):
        """Return how far the value of a row may be off; None if that is not
        known."""
        value, records = sums
        if self.is_memory:
            # Of functions it is not added up.
            return None if records is None else allocations.margin_bytes(
                max(0, records))
        return self.precision.margin_ns(records + 1)


def _sums(row):
    return row.total, row.running_records


def _lines(sites):
    rows, places = {}, {}
    for row in sites.rows:
        function = row.function
        name = NO_FRAMES if function is None else function.name
        key = name, row.line and row.line - function.first_line
        rows[key] = _added(rows.get(key, _NOTHING), _sums(row.sums))
        places.setdefault(key, (
            name, None if function is None or by_site.is_outside(function)
            else function, row.line, by_site.called_name(row)))
    return rows, places


def _functions(tables, cum):
    numbers = {}
    of_functions = [
        numbers.setdefault((function.name, function.kind), len(numbers))
        for function in tables.functions]
    of_frames = [of_functions[function] for function
                 in tables.frames_view()[0::FRAME_COLUMNS]]
    found = by_function.sums_of_frames(tables, of_frames, len(numbers))
    records = by_function.running_sums(tables, of_frames, len(numbers))
    names = list(numbers)
    first = {}
    for function in sorted(tables.functions, key=function_rank):
        first.setdefault((function.name, function.kind), function)
    rows, places = {}, {}
    for number, values in found:
        key = names[number]
        rows[key] = (values[cum][tables.own],
                     None if allocations.variance_column(tables) is not None
                     else records.get(number, _NOTHING)[cum])
        places[key] = key[0], first[key], 0, ''
    return rows, places


def _values(tables, key):
    # Numbers of threads are others in each run.
    found = [value if value is None or isinstance(value, str) else value.name
             for value in keys.values(tables, key)]
    numbers = {}
    of_samples = [numbers.setdefault(value, len(numbers)) for value in found]
    sums = by_state.sums(tables, of_samples, len(numbers))
    rows = {value: _sums(row) for value, row in zip(numbers, sums)}
    if key in keys.MEASURED:
        rows = {value: (total, 0) for value, (total, _) in rows.items()}
    return rows, {value: (value, None, 0, '') for value in numbers}


def margin_of(tables, amount):
    """Return how far the sum of an amount of memory may be off, in bytes."""
    return allocations.margin_bytes(max(0, sum([
        total for its, total in zip(tables.value_types, tables.totals)
        if its.kind == f'{amount}_variance'])))


def _of_line(sites, name):
    function, _, line = name.rpartition(':')
    return _added(_NOTHING, next((
        _sums(row.sums) for row in sites.rows if row.function is not None
        and function in (row.function.name, row.function.qualname)
        and str(row.line) == line), _NOTHING))


def _of_target(tables, kind, name):
    if kind in COUNTED:
        return counts.of_target(tables, kind, name), 0
    if kind in MEMORY:
        if not allocations.has_memory(tables):
            raise ValueError('it has no memory; record it with --alloc')
        return tables.total(allocations.space(MEMORY[kind]).name), 0
    if kind == 'function':
        wanted = {'function': name}
    elif kind == 'label':
        key, _, value = name.partition('=')
        if key not in by_label.labels(tables):
            return _NOTHING
        wanted = {'labels': {key: value}}
    else:
        wanted = {}
    return _sums(by_state.whole(select.filtered(tables, **_ANY | wanted)))


def _work(tables, per):
    """Return how many units of work a run did: what sample() counted, in all
    or with a label (KEY=VALUE), or how many values a label has (KEY)."""
    if per is None:
        return 1
    key, equals, wanted = per.partition('=')
    if per == CUSTOM or equals:
        values = by_label.values(tables.labels, label_of(key))
        counts = tables.value(COUNT.name)
        work = sum([
            count for count, state, labels in zip(
                counts, tables.column('state'), tables.column('labels'))
            if STATES[state] == 'custom'
            and (not equals or values[labels] == wanted)])
    else:
        work = len([row for row in by_label.rows(tables, key)
                    if row.value is not None])
    if not work:
        raise ValueError('sample() counted nothing of what is to be the '
                         'unit of work')
    return work


def _added(one, other):
    return one[0] + other[0], one[1] + other[1]


class Difference:
    """Runs of one program against those of another.

    before, after  lists of Run for the same Question

    value_type     what is compared
    method         SAMPLING or RUNS
    total          the DiffRow of the total
    rows           list of DiffRow, first what is clear and at least 1 % of
                   the total, each part by size
    gates          list of Gate, one for each target
    other_settings {setting: its texts in the runs}, of those that differ and
                   make time go to other rows: of no row it is sure then that
                   it has changed

    Raise ValueError for runs that measure different things.
    """

    def __init__(self, before, after, question):
        self.question = question
        self.before, self.after = before, after
        _check(before + after, question)
        self.value_type = after[0].value_type
        self.method = SAMPLING if 1 in (len(before), len(after)) else RUNS
        self.other_settings = _other_settings(before + after)
        self.total = self._row(('total', None, 0, ''),
                               lambda run: run.total)
        self.rows = self._rows()
        self.gates = [
            self._counted_gate(number, text, least) if kind in COUNTED
            else self._gate(number, text, kind, least, least_bytes)
            for number, (text, kind, _, least, least_bytes)
            in enumerate(question.targets)]
        self._check_bytes()

    @property
    def has_calls(self):
        """Whether all runs have exact calls."""
        return all([run.calls for run in (*self.before, *self.after)])

    def calls(self):
        """Return (rows, the total, whether they are of one request): what
        changed of exact calls, DiffRows by lines and what they called, a
        margin of None where it may be chance."""
        runs = [run.calls for run in self.before + self.after]
        is_python = any([its.mode == counts.PYTHON for its in runs])
        requests = {its.requests for its in runs}
        is_per = len(requests) > 1 and 0 not in requests
        places = {}
        for its in runs:
            places |= {key: place for key, place in its.places.items()
                       if not is_python or key[-1] == 'python'}
        rows = []
        for key, place in places.items():
            sides = [tuple([run.calls.numbers.get(key, 0)
                            / (run.calls.requests if is_per else 1)
                            for run in side])
                     for side in (self.before, self.after)]
            rows.append(_counted_row(place, *sides))
        total = _counted_row(
            ('all', None, 0, ''), *[
                tuple(map(sum, zip(*[getattr(row, name) for row in rows])))
                for name in ('runs_before', 'runs_after')])
        rows.sort(key=lambda row: (-abs(row.change), -row.after, row.name,
                                   row.line, row.called))
        return rows, total, is_per

    def verdict(self):
        """Return the worst of what the gates say, or None without any."""
        said = [gate.verdict for gate in self.gates]
        for verdict in REGRESSION, INCONCLUSIVE, PASSED:
            if verdict in said:
                return verdict
        return None

    def _rows(self):
        places, called = {}, {}
        for run in [*self.before, *self.after]:
            places |= run.places
            # A line may call something else in each: what took most.
            for key, place in run.places.items():
                called.setdefault(key, []).append((run.rows[key], place[-1]))
        places = {key: (*place[:-1], max(called[key])[1])
                  for key, place in places.items()}
        rows = [self._row(place, lambda run: run.rows.get(key, _NOTHING),
                          is_sure=not self.other_settings)
                for key, place in places.items()]
        rows = [row for row in rows
                if any(row.runs_before + row.runs_after)]
        least = LEAST_OF_TOTAL * abs(self.total.before)
        rows.sort(key=lambda row: (
            not row.is_clear or abs(row.change) < least, -abs(row.change),
            -row.after, row.name is not None, row.name or '', row.line))
        return rows

    def _check_bytes(self):
        for text, kind, *_, least_bytes in self.question.targets:
            if least_bytes is not None and kind not in MEMORY and (
                    self.value_type.unit != 'bytes'):
                raise ValueError(f'{text} is of {self.value_type.kind}, which '
                                 'is not counted in bytes: take --value '
                                 'in_use, or a share such as :5%')

    def _gate(self, number, text, kind, least, least_bytes):
        # The more gates there are, the less each may be chance (Bonferroni).
        row = self._row((text, None, 0, ''), lambda run: run.targets[number],
                        _CHANCE / len(self.question.targets))
        if kind in MEMORY and row.margin is not None:
            # Runs that happen to be alike have no smaller one.
            row = DiffRow(*row._fields()[:6], max(row.margin, hypot(*[
                run.margins[number] / run.work / len(side)
                for side in (self.before, self.after) for run in side])),
                *row._fields()[7:])
        enough = (least * abs(row.before) if least_bytes is None
                  else least_bytes)
        verdict = INCONCLUSIVE
        # Time of a function may have gone to another one, of all it has not.
        is_sure = (kind == 'total' or kind in MEMORY
                   or not self.other_settings)
        if self.method == RUNS and is_sure:
            if row.is_clear and row.change >= enough:
                verdict = REGRESSION
            elif row.change + row.margin < enough:
                verdict = PASSED
        return Gate(text, least, row, verdict, least_bytes)

    def _counted_gate(self, number, text, least):
        """Counts are compared as they are: one run of each side is enough.

        Where runs of a side differ among themselves, and the two sides meet,
        it may be chance.
        """
        before, after = [tuple([run.targets[number][0] / run.work
                                for run in runs])
                         for runs in (self.before, self.after)]
        row = _counted_row((text, None, 0, ''), before, after)
        verdict = PASSED
        if row.change > least * row.before:
            verdict = INCONCLUSIVE if row.margin is None else REGRESSION
        return Gate(text, least, row, verdict, None)

    def _row(self, place, sums_of, chance=_CHANCE, *, is_sure=True):
        sides = [[(run, sums_of(run)) for run in runs]
                 for runs in (self.before, self.after)]
        values = [tuple([sums[0] / self._unit(run) for run, sums in side])
                  for side in sides]
        before, after = map(_mean, values)
        if not is_sure:
            margin = None
        elif self.method == RUNS:
            margin = _t(min(map(len, values)) - 1, chance) * sqrt(
                sum([_variance(runs) / len(runs) for runs in values]))
        else:
            margin = self._sampling_margin(sides)
        return DiffRow(*place, before, after, margin, *values)

    def _sampling_margin(self, sides):
        found = [pair for side in sides for pair in side]
        # The total is measured, and so is what is not running.
        if not found[0][0].is_memory and (
                all([sums == run.total for run, sums in found])
                or not any([sums[1] for _, sums in found])):
            return 0.0
        margins = []
        for side in sides:
            for run, sums in side:
                margin = run.margin(sums)
                if margin is None:
                    return None
                margins.append(margin / self._unit(run) / len(side))
        return hypot(*margins)

    def _unit(self, run):
        # Nothing has no shares.
        return run.total[0] or 1 if self.question.share else run.work


def _counted_row(place, before, after):
    """Return the DiffRow of exact numbers: no margin, unless runs of a side
    differ among themselves and the sides meet."""
    meet = (min(after) <= max(before) and min(before) <= max(after)
            and len({*before, *after}) > 1)
    return DiffRow(*place, _mean(before) if before else 0,
                   _mean(after) if after else 0, None if meet else 0.0,
                   before, after)


def _other_settings(runs):
    settings = {'names': [run.names for run in runs],
                # Of other tools' files it is not known.
                'depth_frames': [f'{run.depth_frames:,}' for run in runs
                                 if run.depth_frames]}
    return {name: list(dict.fromkeys(texts)) for name, texts
            in settings.items() if len(set(texts)) > 1}


def of_tables(before, after, question):
    """Return the Difference of two iterables of Tables, one for each run."""
    sides, first = [], None
    for side in before, after:
        sides.append([])
        for tables in side:
            run = Run(tables, question, first)
            first = first or run
            sides[-1].append(run)
    return Difference(*sides, question)


def _check(runs, question):
    for what, words in ('mode', 'modes'), ('value_type', 'values'):
        first, *others = [getattr(run, what) for run in runs]
        for other in others:
            if other != first:
                raise ValueError(
                    f'cannot compare profiles of different {words}: '
                    f'{getattr(first, "name", first)} and '
                    f'{getattr(other, "name", other)}')
    if question.by not in (LINE, FUNCTION, *OWN_KEYS) and not any(
            [value is not None for run in runs for value in run.rows]):
        raise ValueError(
            f'no sample of any profile has the label {question.by!r}'
            + did_you_mean(question.by, (LINE, FUNCTION, *sorted(OWN_KEYS))))
    for number, (text, kind, *_) in enumerate(question.targets):
        if all([run.targets[number] == _NOTHING for run in runs]):
            what = 'call' if kind in COUNTED else 'sample'
            raise ValueError(f'no {what} of any profile is in {text}')


def _mean(values):
    return sum(values) / len(values)


def _variance(values):
    mean = _mean(values)
    return sum([(value - mean) ** 2 for value in values]) / (len(values) - 1)


def _t(freedom, chance):
    """Return what Student's t exceeds with this chance, on both sides."""
    low, high = 0.0, pi / 2
    while low < (middle := (low + high) / 2) < high:
        if _t_within(middle, freedom) < 1 - chance:
            low = middle
        else:
            high = middle
    return tan(high) * sqrt(freedom)


def _t_within(angle, freedom):
    """Return the chance that t is no further from 0 than tan(angle) times the
    root of the degrees of freedom (Abramowitz & Stegun, 26.7.3 and 26.7.4)."""
    is_odd = freedom % 2
    term = cos(angle) if is_odd else 1.0
    total = 0.0
    for k in range(1 + is_odd, freedom, 2):
        total += term
        term *= k / (k + 1) * cos(angle) ** 2
    total *= sin(angle)
    return 2 / pi * (angle + total) if is_odd else total
