"""The three lines of the live screen: Slow, Where and GIL.

None changes for chance.  What a look at one moment proves, a circle of locks
or a call that keeps the GIL, comes before all sums.
"""

from collections import Counter

from profile_sampling._data.by_site import is_outside
from profile_sampling._data.states import TABLE
from profile_sampling._data.values import STATES
from profile_sampling._reach import look as looking
from profile_sampling._reach.look import (
    SLOW_S, Answer, file_of, seconds, under_way)
from profile_sampling._top.lines import NO_WORKER, clean
from profile_sampling._top.requests import of_window, quantile, under_way_of
from profile_sampling._top.windows import GIL_WAIT, HOLDING

RUNNING, WAITING, CPU_WAIT = map(STATES.index,
                                 ('running', 'waiting', 'cpu_wait'))
# Of the time of a window.
_CPU_WAIT, _LITTLE = 0.2, 0.05
# Requests that wait for a worker, on average; a thread at one line.
_QUEUED, _STUCK_S = 0.5, 5.0
# What leads is replaced by what is larger by a fifth, after two seconds.
_LEAD, _HOLD_S = 1.2, 2.0


class Choices:
    """What the lines were about, so that chance changes none."""

    def __init__(self):
        self._chosen = {}

    def pick(self, name, sums, now):
        """Return the key of *sums* that a line is about, or None."""
        if not sums:
            return None
        best = max(sums, key=sums.get)
        last, since = self._chosen.get(name, (None, 0.0))
        if last != best and sums.get(last, 0) > 0 and (
                now - since < _HOLD_S
                or sums[best] < _LEAD * sums[last]):
            return last
        if last != best:
            self._chosen[name] = best, now
        return best


def answers(window, choices, now, *, look=None, objects=None, slow_s=SLOW_S):
    """Return {'slow': Answer, 'where': Answer, 'gil': Answer} of the Sums
    *window*, and of the newest Look, or None.

    *objects* has what lines wait for, by (file, line).
    """
    if look is not None and (look.circles or look.is_stuck):
        return looking.answers(look)
    slow, is_about = _slow(window, choices, now, look, slow_s)
    return {'slow': slow,
            'where': _where(window, is_about, choices, now, objects or {},
                            (CPU_WAIT,) if slow.kind == 'machine' else
                            range(len(STATES))),
            'gil': _gil(window, choices, now)}


# Who is slow.

def _slow(window, choices, now, look, slow_s):
    """Return the Answer, and which (spot, thread, route) it is about."""
    requests = of_window(window, look)
    alive = _alive(look)
    slow = {route: sum(did.values()) for route, did in requests.items()
            if _takes_s(window, route, did, alive.get(route, ())) >= slow_s
            or _queued(window, did) >= _QUEUED}
    route = choices.pick('route', slow, now)
    if route is not None:
        return _slow_route(window, route, requests[route], alive), (
            lambda spot, thread, its: its == route)
    thread = look and _stuck_thread(look)
    if thread:
        since = seconds(thread.since_s)
        return Answer(
            'thread', f'{thread.name}: at the same line for {since}',
            f'{thread.name}: same line, {since}', thread=thread.native_id,
            since_s=thread.since_s
        ), lambda spot, its, _: its == thread.native_id
    states = window.states()
    busy = sum(states)
    if states[CPU_WAIT] >= _CPU_WAIT * busy > 0:
        share = _percent(states[CPU_WAIT], busy)
        return Answer(
            'machine', f'the machine: threads got no CPU for {share} of the '
            "time (other processes, or a container's limit)",
            f'the machine: threads got no CPU for {share} of the time',
            f'the machine: no CPU for {share}',
            share=states[CPU_WAIT] / busy), _anywhere
    if requests and window.knows_ends:
        done = sum([row.count for row in window.latencies.values()])
        longest_s = max([row.longest_ns for row
                         in window.latencies.values()], default=0) / 1e9
        its = [request for its in alive.values() for request in its]
        average = number(sum([under_way_of(did, window)
                              for did in requests.values()]))
        now_ = (under_way(its, 'requests ') if its
                else f'{average} requests under way')
        return Answer(
            'nothing', f'nothing: {now_}, {done} done, the longest took '
            f'{seconds(longest_s)}', f'nothing: {now_}, {done} done',
            f'nothing: {now_}', 'nothing', done=done), _anywhere
    if requests:
        route = choices.pick('any route', {
            route: sum(did.values()) for route, did in requests.items()}, now)
        return _slow_route(window, route, requests[route], alive), (
            lambda spot, thread, its: its == route)
    return _entry(window, choices, now)


def _alive(look):
    """Return {route: Requests under way}, the oldest first."""
    found = {}
    for request in look.requests if look is not None else ():
        found.setdefault(request.route, []).append(request)
    return found


def _takes_s(window, route, did, alive):
    """Return how long a request takes: those that are under way, those at the
    end, or on average; 0 if that is not known."""
    oldest_s = alive[0].age_s if alive else 0
    if not window.knows_ends:
        return oldest_s
    latency = window.latencies.get(route)
    done = latency.count if latency else 0
    return max(oldest_s, (quantile(latency, 0.99) or 0) / 1e9,
               sum(did.values()) / max(done, 1) / 1e9)


def _queued(window, did):
    """Return how many requests wait for a worker, on average."""
    return did.get(NO_WORKER, 0) / (window.length_ns or 1)


def _slow_route(window, route, did, alive):
    latency = window.latencies.get(route)
    queued = _queued(window, did)
    wait = (f'; {number(queued)} wait for a free worker' if queued >= _QUEUED
            else '')
    its = alive.get(route, ())
    more = {'route': route, 'under_way': len(its) or under_way_of(did, window),
            'queued': queued}
    said = f'{route}: {number(under_way_of(did, window))} under way'
    if its:
        said = f'{route}: {under_way(its)}'
        more['oldest_s'] = its[0].age_s
    elif not window.knows_ends:
        return Answer('route', f'{said}{wait}; their age is not known',
                      f'{said}{wait}', said, **more)
    done = latency.count if latency else 0
    more['done'] = done
    if not done:
        return Answer('route', f'{said}, none done{wait}' if window.knows_ends
                      else f'{said}{wait}', said, **more)
    p50, p99 = [quantile(latency, share) / 1e9 for share in (0.5, 0.99)]
    return Answer(
        'route', f'{said}, {done} done, p50 {seconds(p50)}, p99 '
        f'{seconds(p99)}{wait}', f'{said}, p99 {seconds(p99)}{wait}',
        f'{said}, p99 {seconds(p99)}', said, **more, p50_s=p50, p99_s=p99)


def _anywhere(*_):
    return True


def _stuck_thread(look):
    """Return a thread of mine that has not moved for long, or None."""
    found = [thread for thread in look.busy if thread.mine is not None
             and (thread.since_s or 0) >= _STUCK_S
             and not looking.waits_for_others(thread, look)]
    return max(found, key=lambda thread: thread.since_s, default=None)


def _entry(window, choices, now):
    """No request is known: the outermost function of mine."""
    sums = _totals(window.by(lambda spot, *_: spot.outermost))
    function = choices.pick('entry', sums, now)
    if function is None:
        return Answer('nothing', 'nothing: no thread is in code of mine',
                      'nothing'), _anywhere
    name = f'{_short(function)} ({file_of(function)})'
    inside = threads(sums[function] / window.length_ns)
    return Answer(
        'entry', f'{name}: {inside} in it; requests are not known',
        f'{name}: {inside} in it', function=function.qualname,
        threads=sums[function] / window.length_ns
    ), lambda spot, *_: spot.outermost == function


# Where that is.

def _where(window, is_about, choices, now, objects, ranking):
    """Return the line that is longest in the states *ranking*."""
    rows = window.by(lambda spot, *about: spot.place
                     if is_about(spot, *about) else None)
    mine = {place: row for place, row in rows.items()
            if not is_outside(place[0])}
    outside = ''
    if not mine:
        outside = ', outside my code'
        mine = window.by(lambda spot, *about: spot.inner
                         if is_about(spot, *about) else None)
    sums = {place: sum([row[state] for state in ranking])
            for place, row in mine.items()}
    place = choices.pick('where', sums, now)
    if place is None:
        return Answer('idle', 'all threads wait for work', 'idle')
    states = mine[place]
    most = sorted(range(len(states)), key=lambda state: -states[state])[:2]
    parts, short, long = [], [], []
    for state in most:
        if states[state] >= _LITTLE * sum(states):
            what = _object(window, place, state, objects)
            share = _percent(states[state], sum(states))
            parts.append(f'{what} {share}')
            short.append(f'{what.partition(" ")[0]} {share}'
                         if state == WAITING else parts[-1])
            long.append(f'{_PHRASES.get(state, "{}").format(what)} ({share})')
    name = f'{place_text(*place)} {_short(place[0])}'.strip()
    said = ' and '.join(long)
    if said.count('waits for ') > 1:
        said = said.replace('and waits for', 'and for')
    return Answer(
        'line', f'{name}{outside}: {said}',
        f'{name}{outside}: {", ".join(parts)}',
        f'{place_text(*place)}: {", ".join(parts)}',
        f'{place_text(*place)}: {", ".join(short)}', name,
        place_text(*place), **place_json(place),
        states=states_json(states))


_PHRASES = {WAITING: 'waits for {}', GIL_WAIT: 'waits for the GIL'}


def _object(window, place, state, objects):
    """Return what a line waits for, or does, in a few words."""
    if state != WAITING:
        return TABLE[state].word
    function, line = place
    known = function is not None and objects.get((function.filename, line))
    if known:
        return known
    waits = Counter()
    for (spot, _, _, its), ns in window.cells.items():
        if its == WAITING and spot.wait and place in (spot.place, spot.inner):
            waits[spot.wait] += ns
    if not waits:
        return 'waiting'
    (name, kind), _ = waits.most_common(1)[0]
    return name if kind == 'other' else f'{kind} {name}'.strip()


# Who has the GIL.

def _gil(window, choices, now):
    length_ns = window.gils_ns or 1
    held = {place: sum([row[state] for state in HOLDING]) for place, row
            in window.by(lambda spot, *_: spot.place).items()}
    waiting = window.states()[GIL_WAIT] / (window.length_ns or 1)
    of = (f' in {window.num_gils} processes' if window.num_gils > 1 else '')
    wait = (f'{threads(waiting)} wait{"s" * (threads(waiting) == "1 thread")}'
            if waiting >= _LITTLE else 'no thread waits')
    if sum(held.values()) < _LITTLE * length_ns:
        return Answer('free', f'free; {wait} for it', f'free; {wait}',
                      held=sum(held.values()) / length_ns, waiting=waiting)
    place = choices.pick('gil', held, now)
    share = _percent(held[place], length_ns)
    text = place_text(*place)
    name = f'{text} {_short(place[0])}' if place[1] else text.lower()
    called = window.callees(lambda spot, *_: spot.place).get(place)
    callee = f' ({_called(*max(called, key=called.get))})' if called else ''
    return Answer(
        'share', f'held {share} of the time{of} by {name}{callee}; {wait} for '
        'it',
        f'held {share} by {name}{callee}; {wait}',
        f'held {share} by {name}; {wait}', f'held {share} by {text}; {wait}',
        **place_json(place), held=held[place] / length_ns, waiting=waiting)


# Words.

def number(its):
    """Return a number that is an average, no finer than it is sure."""
    return f'{its:.0f}' if its >= 10 else f'{its:.1f}'.removesuffix('.0')


def threads(its):
    """Return how many threads that is, on average."""
    return f'{number(its)} thread{"s" * (number(its) != "1")}'


def place_text(function, line):
    """Return file:line of a place, or what it is called."""
    if function is None:
        return 'No Python code'
    if not function.filename:
        return clean(function.name)
    return clean(f'{file_of(function)}:{line}')


def place_json(place):
    function, line = place
    if function is None or not function.filename:
        return {'function': place_text(*place)}
    return {'file': function.filename, 'line': line,
            'function': function.qualname}


def states_json(states):
    """Return seconds by the word of a state."""
    return {name.replace('_', ' '): ns / 1e9
            for name, ns in zip(STATES, states) if ns}


def _totals(rows):
    return {key: sum(states) for key, states in rows.items()}


def _called(library, leaf):
    return f'{library} {_short(leaf)}' if library else leaf.name


def _short(function):
    return ('' if function is None or not function.filename
            and function.kind == 'outside'
            else function.qualname.rpartition('.')[2])


def _percent(part, whole):
    return f'{100 * part / whole:.0f} %' if whole else '0 %'
