"""The seven tables of the live screen."""

from collections import Counter

from profile_sampling._data import origins
from profile_sampling._data.by_site import NO_LINES, OUTSIDE, is_outside
from profile_sampling._data.values import STATES
from profile_sampling._formats.words import CUT
from profile_sampling._reach.look import LETTERS as LETTERS_OF_LOOK
from profile_sampling._reach.look import object_of, seconds
from profile_sampling._reach.text import idle_words
from profile_sampling._top import lines
from profile_sampling._top.answers import number, place_text, states_json
from profile_sampling._top.lines import REST, Column, letters, share
from profile_sampling._top.requests import of_window, quantile, under_way_of
from profile_sampling._top.windows import HOLDING

WAITING = STATES.index('waiting')
# Of a row: what it calls is named from here on.
_HARDLY = 0.1
TITLES = (('line', 'My code', 'Code'), ('function', 'Functions', 'Func'),
          ('callee', 'C calls', 'C'), ('route', 'Routes', 'Routes'),
          ('task', 'Tasks', 'Tasks'), ('thread', 'Threads', 'Thr'),
          ('waits', 'Waits', 'Waits'))
NAMES = tuple([name for name, *_ in TITLES])


class Row:
    """A row of a table.

    key     what it is about, the same in every second
    value   what rows are ranked by; least: of what is hardly there
    cells   one for each column
    text    what is searched for a name
    json    the same, as the JSON has it
    states  ns by state, of what has a share
    """

    def __init__(self, key, value, cells, text, json, states=()):
        self.states = states
        self.key = key
        self.value = value
        self.cells = cells
        self.text = text
        self.json = json


class Table:
    """A view.

    columns, rows  the rows in order of value
    last           Rows that come last, whatever they have
    whole          what values are shares of; None: of nothing
    noun           what a row is called
    below          lines under it
    """

    def __init__(self, columns, rows, *, last=(), whole=None, noun='line',
                 below=()):
        self.columns = columns
        self.rows = sorted(rows, key=lambda row: -row.value)
        self.last = list(last)
        self.whole = whole
        self.noun = noun
        self.below = list(below)


class Facts:
    """What a table is made of.

    window, all  Sums, of the window and of all
    label        what the window is called, such as '5 s'
    look         the newest Look, or None
    names        {native id: name of a thread}
    sources      Sources, or None
    is_all, is_idle
                 whether lines of libraries, and idle threads, are shown
    width        of the screen
    """

    def __init__(self, window, all, *, label='5 s', look=None, names=(),
                 sources=None, is_all=False, is_idle=False, width=80):
        self.window = window
        self.all = all
        self.label = label
        self.look = look
        self.names = dict(names)
        self.sources = sources
        self.is_idle = is_idle
        self.width = width
        mine = sum([sum(row) for (function, _), row in window.by(
            lambda spot, *_: spot.place).items() if not is_outside(function)])
        # As the report has it: with hardly any of mine, all code is shown.
        self.has_mine = mine >= 0.01 * sum(window.states()) and mine > 0
        self.is_all = is_all or not self.has_mine

    def place(self, spot, *_):
        return spot.inner if self.is_all else spot.place


def table(name, facts):
    """Return the Table of a view."""
    return {'line': _lines, 'function': _functions, 'callee': _callees,
            'route': _routes, 'task': _tasks, 'thread': _threads,
            'waits': _waits}[name](facts)


def bar_width(width):
    return _DOING.width(width)


_DOING = Column('Doing', 8, 14, 16, 24)


def _bar(states, largest, facts):
    return lines.bar_of(letters(states), largest, bar_width(facts.width))


def _ranked(facts, key, cells, noun, columns, below=()):
    """Return a Table of sums by a key of cells.

    cells(key) -> (list of cells behind the bar, text, JSON).
    """
    window, all = [sums.by(key, idle=facts.is_idle)
                   for sums in (facts.window, facts.all)]
    busy, all_busy = [sum(sums.states(idle=facts.is_idle))
                      for sums in (facts.window, facts.all)]
    largest = max(map(sum, window.values()), default=0)
    rows, last = [], []
    for its in {**window, **all}:
        now = window.get(its, [0] * len(STATES))
        ever = sum(all.get(its, now))
        behind, text, json = cells(its)
        found = Row(its, sum(now), [
            share(sum(now), busy), share(ever, all_busy), f'{ever / 1e9:.2f}',
            _bar(now, largest, facts), *behind], text, json | {
                'window_s': sum(now) / 1e9, 'all_s': ever / 1e9,
                'states': states_json(now)}, now)
        (last if its in _LAST else rows).append(found)
    return Table(columns, rows, last=last, whole=busy, noun=noun, below=below)


_LAST = [(function, 0) for function in NO_LINES]


def _figures(facts, *columns):
    head = f' % {facts.label}'
    return [Column(head.strip(), *[len(head)] * 4, right=True),
            Column('% all', 0, 7, 7, 7, right=True),
            Column('s all', 0, 0, 0, 8, right=True), _DOING, *columns]


def _lines(facts):
    called = facts.window.callees(facts.place)
    routes = facts.window.counters(facts.place, lambda _, route: route)
    heading = 'Line of my code' if not facts.is_all else 'Line'
    is_joined = 80 <= facts.width < 120
    columns = _figures(
        facts, Column(heading + ' → called' * is_joined,
                      REST, REST, 26, 34),
        Column('Called', 0, 0, 27, 34), Column('Source', 0, 0, REST, REST),
        Column('Route', 0, 0, 0, 12))

    def cells(place):
        function, line = place
        callee = (_libraries(facts) if function is OUTSIDE
                  else _called(called.get(place)))
        name = [(place_text(*place), 'mine' if line else 'quiet')]
        short = short_name(function)
        if line and short:
            name.append((f' {short}', ''))
        if is_joined and callee:
            name.append((f' → {callee}', 'quiet'))
        source = ('' if facts.sources is None or not line else
                  facts.sources.line(function.filename, line))
        route = routes.get(place)
        route = route.most_common(1)[0][0] if route else ''
        json = {'by': 'line', 'function': short or place_text(*place)}
        if line:
            json |= {'file': function.filename, 'line': line,
                     'function': function.qualname}
        if callee:
            json['callee'] = callee
        return ([name, [(callee, 'quiet')], lines.clean(source), route],
                f'{place_text(*place)} {short} {callee}', json)

    return _ranked(facts, facts.place, cells, 'line', columns)


def short_name(function):
    """Return the name of a function without its class, clean."""
    if function is None or is_outside(function):
        return ''
    return lines.clean(function.qualname.rpartition('.')[2])


def _called(counts):
    """Return the name of what a line calls most, as the report does."""
    if not counts:
        return ''
    groups = Counter()
    for (library, leaf), ns in counts.items():
        groups[library or leaf] += ns
    group, ns = groups.most_common(1)[0]
    if ns < _HARDLY * sum(counts.values()):
        return ''
    (library, leaf), _ = max(
        [item for item in counts.items() if (item[0][0] or item[0][1])
         == group], key=lambda item: item[1])
    return lines.clean(f'{library} {CUT} {leaf.qualname}' if library
                       else leaf.name)


def _libraries(facts):
    found = Counter()
    for (function, _), row in facts.window.by(
            lambda spot, *_: spot.inner if spot.place == (OUTSIDE, 0)
            else None).items():
        name = '' if function is None else origins.library(function)
        if name:
            found[name] += sum(row)
    return lines.clean(', '.join([name for name, _
                                  in found.most_common(3)]))


def _functions(facts):
    window, all = facts.window, facts.all

    def own(spot, *_):
        function, _ = facts.place(spot)
        return function

    totals = {}
    for (spot, thread, _, state), ns in window.cells.items():
        if facts.is_idle or not window.is_idle(spot, thread, state):
            for function, is_mine in spot.functions:
                if is_mine or facts.is_all:
                    totals[function] = totals.get(function, 0) + ns
    busy = sum(window.states(idle=facts.is_idle))
    selves = window.by(own, idle=facts.is_idle)
    largest = max(map(sum, selves.values()), default=0)
    columns = [Column('% self', 7, 7, 7, 7, right=True),
               Column('% total', 0, 9, 9, 9, right=True), _DOING,
               Column('Function', REST, REST, 40, 50),
               Column('File', 0, 0, REST, REST)]
    rows, last = [], []
    for function in {**selves, **totals}:
        now = selves.get(function, [0] * len(STATES))
        total = totals.get(function, sum(now))
        is_named = function is not None and not is_outside(function)
        name = (lines.clean(function.name) if is_named
                else place_text(function, 0))
        json = {'by': 'function', 'function': name, 'self_s': sum(now) / 1e9,
                'total_s': total / 1e9}
        if is_named and function.filename:
            json['file'] = function.filename
        found = Row(function, sum(now), [
            share(sum(now), busy), share(total, busy),
            _bar(now, largest, facts), [(name, 'mine' * is_named)],
            lines.clean(function.filename) if is_named else ''], name, json)
        (last if not is_named else rows).append(found)
    return Table(columns, rows, last=last, whole=busy, noun='function')


def _callees(facts):
    columns = _figures(facts, Column('C call', 20, 28, 34, 40),
                       Column('by line', REST, REST, REST, REST))

    def key(spot, *_):
        if spot.leaf is None or spot.leaf.kind != 'C':
            return None
        return spot.leaf, facts.place(spot)

    def cells(its):
        leaf, place = its
        name = lines.clean(leaf.name)
        by = f'{place_text(*place)} {short_name(place[0])}'.strip()
        return ([name, [(by, 'mine' if place[1] else 'quiet')]],
                f'{name} {by}', {'by': 'callee', 'callee': leaf.name,
                                 'line': by})

    return _ranked(facts, key, cells, 'call', columns)


# Requests.

def _routes(facts):
    window = facts.window
    found = of_window(window, facts.look)
    if not found:
        return _entries(facts)
    largest = max([sum(its.values()) for its in found.values()])
    ages_s = {}
    for request in facts.look.requests if facts.look is not None else ():
        ages_s.setdefault(request.route, []).append(request.age_s)
    columns = [Column('Under way', 10, 10, 10, 10, right=True),
               Column('Oldest', 8, 8, 8, 8, right=True),
               Column(f'Done {facts.label}', 0, 10, 10, 10, right=True),
               Column('p50', 0, 8, 8, 8, right=True),
               Column('p99', 8, 8, 8, 8, right=True),
               Column('Requests did', 8, 14, 20, 24),
               Column('Route', REST, REST, REST, REST)]
    rows = []
    for route, did in found.items():
        latency = window.latencies.get(route)
        times = [quantile(latency, its) for its in (0.5, 0.99)]
        ages = ages_s.get(route, ())
        its = len(ages) if ages_s else under_way_of(did, window)
        json = {'by': 'route', 'route': route, 'under_way': its,
                'did': {lines.WORDS[letter]: ns / 1e9
                        for letter, ns in did.items()}}
        if ages:
            json['oldest_s'] = max(ages)
        if window.knows_ends:
            json['done'] = latency.count if latency else 0
        if latency:
            json |= {'p50_s': times[0] / 1e9, 'p99_s': times[1] / 1e9}
        rows.append(Row(route, sum(did.values()), [
            number(its), seconds(max(ages)) if ages else '–',
            str(json.get('done', '–')),
            *['–' if ns is None else seconds(ns / 1e9) for ns in times],
            lines.bar_of(did, largest, columns[5].width(facts.width)),
            [(lines.clean(route), 'mine')]], route, json))
    whole = sum([row.value for row in rows])
    return Table(columns, rows, whole=whole, noun='route', below=_mean(
        max(rows, key=lambda row: row.value), found, window, facts))


def _mean(row, found, window, facts):
    """Say what the requests of a route did, and who is behind it."""
    did, latency = found[row.key], window.latencies.get(row.key)
    mean = ''
    if latency:
        took = seconds(latency.sum_ns / 1e9 / latency.count)
        mean = f', {latency.count} done in {took} on average'
    said = [[], [(row.key, 'mine'), (f': what its requests did{mean}', '')]]
    whole = sum(did.values())
    held = Counter()
    for (spot, route), ns in window.held.items():
        if route == row.key:
            held[spot.place] += ns
    delays = Counter()
    for spot, ns in window.delays.items():
        delays[spot.place] += ns
    because = {'Q': 'all workers were busy', 'G': _holder(held),
               'L': _holder(delays)}
    for letter, ns in sorted(did.items(), key=lambda item: -item[1])[:5]:
        said.append([('  ', ''), (letter, f'state {letter}'),
                     (f' {lines.WORDS[letter]:<24}', ''),
                     (f'{share(ns, whole):>3} %   ', ''),
                     (because.get(letter, ''), 'quiet')])
    return said


def _holder(held):
    if not held:
        return ''
    place, _ = held.most_common(1)[0]
    return f'{place_text(*place)} {short_name(place[0])}'.strip() + ' held it'


def _entries(facts):
    columns = _figures(facts, Column('First function of mine', REST, REST,
                                     REST, REST))

    def cells(function):
        name = short_name(function)
        text = f'{place_text(function, 0).rpartition(":")[0]} {name}'
        return [[(text, 'mine')]], text, {
            'by': 'entry', 'function': function.qualname,
            'file': function.filename}

    return _ranked(facts, lambda spot, *_: spot.outermost, cells,
                   'function', columns, [
        [], [('No routes were seen: the middleware is not mounted. In their '
              'place, what runs', 'quiet')],
        [('on each thread from the outside: the first function of yours.',
          'quiet')]])


# What a look says.

def _tasks(facts):
    columns = [Column('Tasks', 6, 6, 6, 6, right=True),
               Column('Task', 16, 24, 30, 40),
               Column('Awaits', REST, REST, REST, REST)]
    tasks = facts.look.tasks if facts.look is not None else None
    if not tasks:
        why = ('No event loop runs here.' if tasks is not None else
               'Tasks cannot be read: nobody comes to say it.')
        return Table(columns, [], noun='task', below=[[(why, 'quiet')]])
    groups = {}
    for task in tasks:
        groups.setdefault((_kind(task), _awaited(task)), []).append(task)
    rows = [Row(key, len(its), [str(len(its)), [(key[0], 'mine')], key[1]],
                ' '.join(key), {'by': 'task', 'task': key[0],
                                'awaits': key[1], 'count': len(its)})
            for key, its in groups.items()]
    return Table(columns, rows, noun='task', below=_loop(facts))


def _kind(task):
    """Return what a task is called: the function that it runs."""
    first = task.lines[0].function if task.lines else None
    return lines.clean(first.qualname if first else task.name)


def _awaited(task):
    mine = [line for line in task.lines if line.is_mine]
    parts = []
    if mine or task.lines:
        line = (mine or task.lines)[-1]
        parts.append(f'{place_text(line.function, line.line)}')
    if task.state == 'running':
        parts.append('runs now')
    elif task.waits_for is not None:
        parts.append(f'task {task.waits_for.name}')
    elif task.lines and mine and task.lines[-1] is not mine[-1]:
        parts.append(task.lines[-1].function.name)
    elif task.awaits:
        parts.append(task.awaits)
    return lines.clean(' → '.join(parts))


def _loop(facts):
    delays = Counter()
    for spot, ns in facts.window.delays.items():
        delays[spot.place] += ns
    if not delays:
        return []
    said = [[], [('Event loop', 'strong'), (
        f'  Tasks that were ready waited {seconds(sum(delays.values()) / 1e9)}'
        f' for it in {facts.label}, in all:', '')]]
    for place, ns in delays.most_common(4):
        name = f'{place_text(*place)} {short_name(place[0])}'.strip()
        said.append([(f'  {lines.cut(name, 28):<28}', 'mine'),
                     (f' {seconds(ns / 1e9):>8}', '')])
    return said


def _threads(facts):
    window = facts.window
    states = window.by(lambda spot, thread, route: thread)
    alive = window.by(lambda spot, thread, route: thread, idle=True)
    columns = [Column('Busy', 6, 6, 6, 6, right=True),
               Column('GIL', 6, 6, 6, 6, right=True),
               Column('Did', 8, 14, 16, 24),
               Column('Thread', 14, 16, 24, 30),
               Column('Now, at this moment', REST, REST, REST, REST)]
    now = {} if facts.look is None else {
        thread.native_id: thread for thread in facts.look.threads}
    rows = []
    for thread in {**dict.fromkeys(facts.names), **now}:
        did = states.get(thread, [0] * len(STATES))
        length_ns = window.length_ns or 1
        held = sum([did[state] for state in HOLDING])
        name = facts.names.get(thread) or now[thread].name
        if thread not in alive and not (thread in now and now[thread].lines):
            continue        # it has ended, or runs no Python
        moment = _moment(now.get(thread)) if now else []
        rows.append(Row(thread, sum(did), [
            f'{100 * sum(did) / length_ns:.0f} %',
            f'{100 * held / length_ns:.0f} %',
            lines.bar_of(letters(did), length_ns, columns[2].width(
                facts.width)), lines.clean(name), moment],
            f'{name} {lines.plain([moment])[:-1]}', {
                'by': 'thread', 'native_id': thread, 'name': name,
                'window_s': sum(did) / 1e9, 'held_s': held / 1e9}))
    return Table(columns, rows, noun='thread', below=[[], [(
        '"GIL" is how much of the time this thread held it.', 'quiet')]])


def _moment(thread):
    """Return the spans of what a thread does now."""
    if thread is None:
        return [('ended', 'quiet')]
    if thread.is_idle:
        return [(f'idle: {lines.clean(idle_words(thread))}', 'quiet')]
    letter = LETTERS_OF_LOOK[thread.state]
    line = thread.mine or thread.innermost
    place = '' if line is None else (
        f'{place_text(line.function, line.line)} {short_name(line.function)}')
    return [(letter, f'state {letter}'), (
        lines.clean(f' {place} {object_of(thread)}'), '')]


def _waits(facts):
    window = facts.window
    length_ns = window.gils_ns or 1
    states = window.by(facts.place)
    held = {place: sum([row[state] for state in HOLDING])
            for place, row in states.items()}
    waited = Counter()
    for (spot, _), ns in window.held.items():
        waited[facts.place(spot)] += ns
    waited_ns = sum(waited.values())
    called = window.callees(facts.place)
    largest = max(waited.values(), default=0)
    columns = [Column('% held', 7, 7, 7, 7, right=True),
               Column('Others waited', 0, 15, 15, 15, right=True),
               Column('% of it', 0, 9, 9, 9, right=True),
               Column('With it', 8, 14, 16, 24),
               Column('Who held the GIL', REST, REST, REST, REST)]
    rows = []
    for place in {**held, **waited}:
        ns = held.get(place, 0)
        if not ns and not waited[place]:
            continue
        callee = _called(called.get(place))
        name = f'{place_text(*place)} {short_name(place[0])}'.strip()
        did = {state: row for state, row in letters(
            states.get(place, [0] * len(STATES))).items() if state in 'rSx'}
        rows.append(Row(place, ns, [
            share(ns, length_ns), seconds(waited[place] / 1e9),
            f'{share(waited[place], waited_ns)} %',
            lines.bar_of(did, max(held.values(), default=0),
                         columns[3].width(facts.width)),
            [(name, 'mine' if place[1] else 'quiet'),
             (f' ({callee})' * bool(callee), 'quiet')]], f'{name} {callee}', {
                 'by': 'waits', 'line': name, 'held_s': ns / 1e9,
                 'waited_s': waited[place] / 1e9}))
    return Table(columns, rows, whole=length_ns, below=_waited_for(facts))


def _waited_for(facts):
    """Return the table of what was waited for."""
    found = Counter()
    for (spot, thread, _, state), ns in facts.window.cells.items():
        if state == WAITING and not facts.window.is_idle(spot, thread, state):
            found[facts.place(spot), spot.wait] += ns
    if not found:
        return []
    busy = sum(facts.window.states())
    said = [[(' % time  Seconds  By                    What was waited for',
              'strong')]]
    for (place, wait), ns in found.most_common(5):
        name, kind = wait or ('', 'other')
        what = f'{kind}, {name}' if kind != 'other' else name
        said.append([
            (f'{share(ns, busy):>7}  {ns / 1e9:5.2f} s  ', ''),
            (f'{lines.cut(place_text(*place), 20):<20}', 'mine'),
            (f'  {lines.clean(what)}', '')])
    return said
