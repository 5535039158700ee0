"""What stands out in a profile, in words with their numbers.

This file owns the rules: each looks at one thing, and says nothing where that
is small.  It must not know how they are shown.

rule           says                                        from
gil            how much of the time threads waited for     10 % of the time
               the GIL, and who held it longest
gil_asleep     how long threads slept with the GIL held    1 %
loop_blocked   how long a task kept its event loop from    1 %
               running others, by a blocking call
loop_wait      how much of their lives tasks waited for    10 % of them
               their loop, and which line held it
waiting        which line threads waited at                50 %
cpu_wait       how long threads had no CPU                 10 %
gc             how much the collector took                 5 %
generic        how much of running time instructions took  20 % of it, in 100
               that could have been specialized            samples or more
queries        which line made many queries for a request,  10 a request and
               or many at all                              3 % of its time, or
                                                           100 and 3 % of all
few            that there are few running samples          less than 100
"""

from profile_sampling._data import (
    by_gil_holder, by_instruction, by_task, opcodes, queries, watched)
from profile_sampling._data.label_names import TASKS
from profile_sampling._data.by_label import values as label_values
from profile_sampling._data.by_site import OUTSIDE
from profile_sampling._data.values import (
    DELAY, STATES, TASK, WAITING, Value, printable)
from profile_sampling._formats.sites import site_text
from profile_sampling._formats.words import brief, counted, share

_LOOP_WAIT_SHARE = 0.1
_GIL_SHARE, _ASLEEP_SHARE, _LOOP_SHARE = 0.1, 0.01, 0.01
_WAITING_SHARE, _CPU_WAIT_SHARE, _GC_SHARE = 0.5, 0.1, 0.05
_GENERIC_SHARE = 0.2
_FEW = 100
# For a request, or a call; of its time; and of a line without either.
_QUERIES, _QUERIES_SHARE, _MANY_QUERIES = 10, 0.03, 100
# Of the time that threads waited.
_ONE_HOLDER = 0.1
_HELD_GIL = 'held the GIL'
# Before the name of a library in place of a holder's.
FUNCTIONS_OF = 'functions of '


class Finding(Value):
    """What one rule found.

    rule     its name
    text     a sentence
    numbers  those in it, by name
    """

    # The SiteRow that has most of it, if there is one.
    __slots__ = ('rule', 'text', 'numbers', 'row')

    def __init__(self, rule, text, row=None, **numbers):
        super().__init__(rule, text, numbers, row)

    def _fields(self):
        return self.rule, self.text, tuple(self.numbers.items())

    def __reduce__(self):
        return _finding, (self.rule, self.text, self.numbers)

    def __repr__(self):
        return (f'Finding(rule={self.rule!r}, text={self.text!r}, '
                f'numbers={self.numbers!r})')


def _finding(rule, text, numbers):
    return Finding(rule, text, **numbers)


def findings(tables, sites):
    """Return a list of Finding, in the order of the rules."""
    if tables.value_types[tables.own].unit != 'nanoseconds' or not sites.busy:
        return []
    found = [rule(tables, sites) for rule in (
        _queries, _gil, _gil_asleep, _loop_blocked, _loop_wait, _waiting,
        _cpu_wait, _gc, _generic, _few)]
    return [finding for finding in found if finding is not None]


def _of_state(sites, state, least):
    """Return the time in a state, or 0 if it is less than a share."""
    ns = sites.whole.by_state[STATES.index(state)]
    return ns if ns >= least * sites.busy else 0


def _gil(tables, sites):
    ns = _of_state(sites, 'gil_wait', _GIL_SHARE)
    if not ns:
        return None
    text = f'GIL wait is {share(ns, sites.busy)} of the time'
    numbers = {'ns': ns, 'share': ns / sites.busy}
    held, libraries = by_gil_holder.held(tables)
    if libraries and max(held.values()) < _ONE_HOLDER * ns:
        # Many did, each for a little.
        held = {f'{FUNCTIONS_OF}{name}': value
                for name, value in libraries.items()}
    if held:
        said, more = _holder({(name, _HELD_GIL): value
                              for name, value in held.items()}, ns)
        text += said
        numbers |= more
    row, _ = _site(sites, 'gil_wait')
    return Finding('gil', text, row, **numbers)


def _holder(held, total):
    """Return what to say of the one that held most, and its numbers.

    *held* is by a name and what that did.
    """
    (name, did), longest = min(held.items(),
                               key=lambda item: (-item[1], item[0]))
    return (f'; {share(longest, total)} of it while {printable(name)} {did}',
            {'holder': name, 'holder_share': longest / total})


def _site(sites, state):
    """Return the row with most time in a state, and that time."""
    number = STATES.index(state)
    row = max(sites.rows, key=lambda row: row.sums.by_state[number])
    return row, row.sums.by_state[number]


def _mostly_at(sites, rule, state, least, says):
    """A state that took at least a share, and the line that had most of it.

    says(ns) is the sentence up to there.
    """
    ns = _of_state(sites, state, least)
    if not ns:
        return None
    row, its_ns = _site(sites, state)
    return Finding(
        rule, f'{says(ns)}{share(its_ns, ns)} of it at {site_text(row)}', row,
        ns=ns, share=ns / sites.busy, site=site_text(row),
        site_share=its_ns / ns)


def _gil_asleep(tables, sites):
    return _mostly_at(
        sites, 'gil_asleep', 'asleep_with_gil', _ASLEEP_SHARE,
        lambda ns: f'{brief(ns)} asleep with the GIL held, no other thread '
                   'could run: ')


def _loop_blocked(tables, sites):
    wanted = [state == WAITING and runs_task for state, runs_task in zip(
        sites.tables.column('state'), _run_tasks(sites.tables))]
    rows = sites.rows_of(wanted) if any(wanted) else []
    ns = sum([row.sums.total for row in rows])
    if not ns or ns < _LOOP_SHARE * sites.busy:
        return None
    row = max(rows, key=lambda row: row.sums.total)
    name, longest = site_text(row), row.sums.total
    return Finding(
        'loop_blocked', f'asyncio tasks blocked their event loop for '
        f'{brief(ns)}: {share(longest, ns)} of it at {name}', row,
        ns=ns, share=ns / sites.busy, site=name, site_share=longest / ns)


def _run_tasks(tables):
    """Return, for each sample, whether the thread runs a task in its loop."""
    if by_task.has_tasks(tables):
        # A thread of an executor has the labels of the task that it works
        # for, but is no part of that task's life.
        return tables.value(TASK.name)
    tasks = label_values(tables.labels, TASKS)
    return [tasks[labels] is not None for labels in tables.column('labels')]


def _loop_wait(tables, sites):
    states = by_task.life(tables)
    _, ns, _ = states
    if not ns or ns < _LOOP_WAIT_SHARE * sum(states):
        return None
    text = (f'asyncio tasks waited for their loop for '
            f'{share(ns, sum(states))} of their lives')
    numbers = {'ns': ns, 'share': ns / sum(states)}
    held = loop_holders(tables, sites)
    if held:
        said, more = _holder(held, tables.total(DELAY.name))
        text += said
        numbers |= more
    return Finding('loop_wait', text, **numbers)


def loop_holders(tables, sites):
    """Return how long tasks waited for their loop, by (name of what held it,
    what that did)."""
    held = {}
    for row in by_task.holders(tables):
        if row.is_gil_wait:
            key = row.function.name, _HELD_GIL
            held[key] = held.get(key, 0) + row.delay_ns
    if DELAY in tables.value_types:
        for row in sites.rows_about(DELAY.kind, tables, [
                not holder for holder in tables.column('holder')]):
            name, ns = site_text(row), row.sums.total
            if row.function is OUTSIDE and row.callees:
                # It has no line; name what ran there most.
                function, ns = row.callees[0]
                name = function.name
            held[name, 'ran in it'] = ns
    return {key: ns for key, ns in held.items() if ns}


def _waiting(tables, sites):
    return _mostly_at(
        sites, 'waiting', 'waiting', _WAITING_SHARE,
        lambda ns: f'waiting is {share(ns, sites.busy)} of the time; ')


def _cpu_wait(tables, sites):
    ns = _of_state(sites, 'cpu_wait', _CPU_WAIT_SHARE)
    if not ns:
        return None
    return Finding(
        'cpu_wait', f'CPU wait is {share(ns, sites.busy)} of the time: the '
        'machine gave its CPUs to other processes, or a container has a '
        'limit; --value cpu shows what the program itself took',
        ns=ns, share=ns / sites.busy)


def _gc(tables, sites):
    return _mostly_at(
        sites, 'gc', 'gc', _GC_SHARE,
        lambda ns: f'the garbage collector took {share(ns, sites.busy)} of '
                   'the time; ')


def _generic(tables, sites):
    running_ns = sites.whole.by_state[STATES.index('running')]
    if sites.whole.running_records < _FEW:
        return None
    sums = by_instruction.generic(tables)
    ns = sum(sums.values())
    if not ns or ns < _GENERIC_SHARE * running_ns:
        return None
    names = {}
    for (function, line, opcode), value in sums.items():
        name = f'{opcodes.name(opcode)} at {function.name}:{line}'
        names[name] = names.get(name, 0) + value
    name, most_ns = min(names.items(), key=lambda item: (-item[1], item[0]))
    return Finding(
        'generic', f'instructions that were not specialized took '
        f'{share(ns, running_ns)} of running time; {share(most_ns, ns)} of '
        f'it {printable(name)}',
        ns=ns, share=ns / running_ns, instruction=name,
        instruction_share=most_ns / ns)


def _queries(tables, sites):
    found = [finding for row in queries.rows(tables, sites)
             if row.function is not None
             and (finding := _many_queries(row, sites)) is not None]
    return max(found, key=lambda finding: finding.numbers['ns'], default=None)


def _many_queries(row, sites):
    place = f'{printable(row.function.name)}:{row.line}'
    one, several, does = watched.KINDS[row.kind]
    numbers = {'ns': row.ns, 'calls': row.calls, 'place': place}
    line = next((its for its in sites.rows if its.line == row.line and
                 queries.place_key(its.function)
                 == queries.place_key(row.function)), None)
    if row.requests:
        each, whole_ns = row.calls / row.requests, row.requests_ns
        if each < _QUERIES or row.ns < _QUERIES_SHARE * whole_ns:
            return None
        route = printable(row.route)
        who = f'Each {route}' if each == int(each) else f'A {route}'
        text = (f'{who} {does} {_number(each)} {several} at {place}: '
                f'{row.calls:,} in {counted(row.requests, "request")}, '
                f'{brief(row.ns)}, {share(row.ns, whole_ns)} of the '
                f'{brief(whole_ns)} that they took')
        numbers |= {'route': row.route, 'requests': row.requests,
                    'per_request': each, 'share': row.ns / whole_ns}
        return Finding('queries', text, line, **numbers)
    if row.ns < _QUERIES_SHARE * sites.busy:
        return None
    each = row.calls / row.callers if row.callers > 1 else 0
    if each >= _QUERIES:
        who = 'Each call' if each == int(each) else 'A call'
        text = (f'{who} of {printable(row.function.name)} {does} '
                f'{_number(each)} {several} at {place}: {row.calls:,} in '
                f'{row.callers:,} calls')
    elif row.calls >= _MANY_QUERIES:
        text = f'{place} {does} {row.calls:,} {several}'
    else:
        return None
    return Finding('queries', f'{text}, {brief(row.ns)}, '
                   f'{share(row.ns, sites.busy)} of the time', line,
                   share=row.ns / sites.busy, **numbers)


def _number(number):
    return f'{number:,.0f}' if number == int(number) else f'{number:,.1f}'


def _few(tables, sites):
    records = sites.whole.running_records
    if not sites.precision.is_known or not 0 < records < _FEW:
        return None
    return Finding(
        'few', f'only {counted(records, "running sample")}: shares of '
        'running time are rough', count=records)
