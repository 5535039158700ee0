"""One look at a process: what each thread does at a moment, and since when."""

import copy
import time
from collections import Counter

from profile_sampling._data import idle, origins
from profile_sampling._reach import door, kernel, locks, records
from profile_sampling._reach.processes import Refusal, Sleep

RUNNING, NATIVE, WAITING, GIL_WAIT, ASLEEP = (
    'running', 'native', 'waiting', 'gil wait', 'asleep with gil')
LETTERS = {RUNNING: 'r', NATIVE: 'n', WAITING: 'w', GIL_WAIT: 'G',
           ASLEEP: 'S'}
# Names of the labels of requests, the first one that there is.
ROUTES = 'route', 'job'
# A call that keeps the GIL so long holds everybody up; a thread that has not
# moved for so long is slow.
_HELD_S, _SLOW_S = 1.0, 5.0
# So is a request; see --slow of top.
SLOW_S = 1.0
# What gives a thread something to do.
_FETCHES = frozenset({
    'queue.Queue.get', '_queue.SimpleQueue.get', 'queue.LifoQueue.get',
    '_socket.socket._accept', 'selectors.EpollSelector.select',
    'multiprocessing.queues.Queue.get'})
# Tasks cannot be read while a thread keeps the GIL in one call.
_TASKS_S = 0.25


class Line:
    """A place on a stack: a Function, its line, and whether it is mine."""

    def __init__(self, function, line, is_mine):
        self.function = function
        self.line = line
        self.is_mine = is_mine


class Thread:
    """A thread at a moment.

    state       of LETTERS
    since_s     how long it has been in it; None: not known
    since_is    'at-least'; None: not known
    is_idle     it waits for work
    labels      {key: value} of what runs in it; {}: none, or not known
    lines       Line objects and LeftOut, the innermost first
    waits_for   kernel.Wait, or None
    request     the Request that it works for, or None
    has, wants  Lock objects, see locks.py
    is_sure     its stack stood still while it was read
    """

    def __init__(self, raw, name):
        self.native_id = raw.native_id
        self.ident = raw.ident
        self.has_gil = raw.has_gil
        self.is_sure = raw.is_sure
        self.name = name
        self.labels = raw.labels
        self.state = WAITING
        self.since_s = self.since_is = None
        self.is_idle = False
        self.lines = []
        self.waits_for = None
        self.request = None
        self.has = []
        self.wants = None

    @property
    def route(self):
        """The route or job that it works for, or None."""
        return route_of(self.labels)

    @property
    def mine(self):
        """The innermost line of mine, or None."""
        return next((line for line in self.lines
                     if isinstance(line, Line) and line.is_mine), None)

    @property
    def innermost(self):
        """The innermost line of Python code, or None."""
        return next((line for line in self.lines if isinstance(line, Line)
                     and line.function.kind == 'python'), None)

    @property
    def callee(self):
        """The innermost C function, or None."""
        first = self.lines[0] if self.lines else None
        if isinstance(first, Line) and first.function.kind == 'C':
            return first.function
        return None


class Request:
    """A request or a job under way.

    route   of it, or its job or first label
    age_s   since when, by the middleware's own note
    thread  the Thread that works for it, or None
    task    the Task, or None
    """

    def __init__(self, raw):
        self.route = (route_of(raw.labels)
                      or next(iter(raw.labels.values()), 'a request'))
        self.age_s = raw.age_ns / 1e9
        self.native_id = raw.native_id
        self.thread = self.task = None


class Task:
    """A task of asyncio that has not ended.

    state       'running' or 'awaiting'
    lines       Line objects, the outermost first
    awaits      name of the type of what it awaits
    waits_for   another Task, or None
    """

    def __init__(self, raw, lines):
        self.number = raw.number
        self.name = raw.name
        self.state = 'running' if raw.is_running else 'awaiting'
        self.lines = lines
        self.awaits = raw.awaited_type
        self.waits_for = None


class Look:
    """All of a process at a moment.

    process     processes.Process
    at          Unix time
    threads     Thread objects, in the order of importance
    tasks       Task objects; None: they could not be read
    requests    Request objects, the oldest first
    holder      the Thread that has the GIL, or None
    held_s      no other thread has had it for so long; None: not known
    circles     lists of Thread objects that wait for each other for ever
    took_s, cost_s      of looking, and of the program's time
    num_other_gils      interpreters that are not here
    """

    def __init__(self, process):
        self.process = process
        self.at = time.time()
        self.threads = []
        self.tasks = None
        self.requests = []
        self.holder = self.held_s = None
        self.circles = []
        self.took_s = self.cost_s = 0.0
        self.is_cut = False
        self.num_other_gils = 0

    @property
    def waiters(self):
        return [thread for thread in self.threads if thread.state == GIL_WAIT]

    @property
    def busy(self):
        return [thread for thread in self.threads if not thread.is_idle]

    @property
    def is_stuck(self):
        """Whether one call keeps everybody from running Python."""
        return (self.holder is not None and self.held_s is not None
                and self.held_s >= _HELD_S and bool(self.waiters))


def joined(looks):
    """Return Looks at several processes as one: that of a process that hangs,
    or all threads and requests."""
    stuck = next((its for its in looks if its.circles or its.is_stuck), None)
    if stuck is not None or len(looks) == 1:
        return stuck or looks[0]
    found = Look(looks[0].process)
    for its in looks:
        for thread in its.threads:
            thread = copy.copy(thread)
            thread.name = f'{its.process.pid} {thread.name}'
            found.threads.append(thread)
    found.tasks = sum([its.tasks or [] for its in looks], [])
    found.requests = sorted(sum([its.requests for its in looks], []),
                            key=lambda request: -request.age_s)
    return found


def look(process, *, mine=(), with_tasks=True):
    """Look at a Process; return a Look or raise Refusal."""
    begin = time.monotonic()
    process.check()
    found = Look(process)
    before = process.threads_now()
    sleep = Sleep(before.values())
    answer = door.ask(process, door.DUMP, threads=before)
    said = _said(process, answer)
    # What was asked has run once, for the answer.
    since = {state.inside: sleep.since_s(state, state.inside == said.asked)
             for state in before.values()}
    tasks = None
    if with_tasks:
        tasks = _tasks(process, before, said)
    found.at = said.at_ns / 1e9
    found.is_cut = said.is_cut
    found.num_other_gils = said.num_other_gils
    if said.holder and said.held_ns:
        found.held_s = said.held_ns / 1e9
    is_mine = _mine(said, tasks, mine)
    hosts = kernel.hosts(process.pid)
    states = {state.inside: state for state in before.values()}
    for raw in said.threads:
        thread = Thread(raw, _name(raw, answer))
        thread.lines = _lines(raw.frames, is_mine)
        _give_state(thread, raw, said, states.get(raw.native_id), hosts)
        if thread.state == WAITING:
            thread.since_s = since.get(raw.native_id)
            thread.since_is = 'at-least'
        if thread.has_gil:
            found.holder = thread
            if found.held_s is not None:
                thread.since_s, thread.since_is = found.held_s, 'at-least'
        found.threads.append(thread)
    locks.connect(said, found.threads)
    found.circles = locks.circles(found.threads)
    if tasks is not None:
        found.tasks = [Task(raw, _lines(raw.frames, is_mine))
                       for raw in tasks.tasks]
        _connect(found.tasks, tasks.tasks)
    found.requests = _requests(said, found, tasks)
    found.threads.sort(key=lambda thread: _importance(thread, found))
    found.cost_s = answer.took_s
    found.took_s = time.monotonic() - begin
    return found


def _said(process, answer):
    try:
        return records.read(answer.records)
    except ValueError as exc:
        raise Refusal(process.pid, 'other-version',
                      f'PID {process.pid} says what is no answer: {exc}.'
                      ) from None


def _tasks(process, threads, said):
    """Return what is said of tasks; None: nobody comes to say it."""
    if not any(frame.function.filename.endswith('asyncio/base_events.py')
               for thread in said.threads for frame in thread.frames
               if isinstance(frame, records.Frame)):
        return records.Said()       # no event loop runs
    try:
        return _said(process, door.ask(process, door.TASKS, threads=threads,
                                       limit_s=_TASKS_S))
    except Refusal as exc:
        if exc.reason in ('no-answer', 'filtered', 'handler-taken'):
            return None
        raise


def _mine(said, tasks, patterns):
    """Return {Function: whether it is mine}."""
    frames = [frame for owner in [*said.threads,
                                  *(tasks.tasks if tasks else ())]
              for frame in owner.frames if isinstance(frame, records.Frame)]
    functions = {frame.function for frame in frames}
    of_code = origins.decide(functions, origins.HERE)
    found = {}
    for function in functions:
        found[function] = function.kind == 'python' and (
            of_code[origins.code_of(function)] == origins.MINE
            or any(pattern.search(function.name)
                   or pattern.search(function.filename)
                   for pattern in patterns))
    return found


def _lines(frames, is_mine):
    return [frame if isinstance(frame, records.LeftOut)
            else Line(frame.function, frame.line, is_mine[frame.function])
            for frame in frames]


def _name(raw, answer):
    name = raw.name or ('main' if raw.native_id == answer.pid
                        else f'thread {raw.native_id}')
    return (f'{name}, interpreter {raw.interpreter}' if raw.interpreter
            else name)


def _give_state(thread, raw, said, before, hosts):
    """Say what a thread does."""
    was_asleep = before is not None and before.state in 'SD'
    call = raw.call
    if raw.native_id == said.asked:
        # Its own call is one of those that answer.
        call = before.read_call() if was_asleep else None
    thread.waits_for = wait = kernel.wait(call, raw.file, hosts)
    if thread.has_gil:
        # What answers itself was asked because all others sleep, too.  It may
        # have woken up before.
        is_asleep = said.is_asleep or was_asleep and (
            raw.native_id == said.asked) and before.sleeps_on()
        thread.state = ASLEEP if is_asleep else RUNNING
        if not is_asleep:
            thread.waits_for = None
        return
    if raw.waits or wait is not None and wait.address in said.gil:
        thread.state = GIL_WAIT
        thread.waits_for = None
        if raw.waits_ns:
            thread.since_s, thread.since_is = raw.waits_ns / 1e9, 'at-least'
        return
    if wait is None and not (was_asleep and raw.native_id == said.asked):
        thread.state = NATIVE
        return
    thread.state = WAITING
    functions = [line.function for line in thread.lines
                 if isinstance(line, Line)]
    thread.is_idle = idle.waits_for_work(functions) or _fetches_work(
        [line for line in thread.lines if isinstance(line, Line)])


def _fetches_work(lines):
    """Return whether a thread's own function, and nothing that it calls of
    mine, waits for something to do."""
    mine = [number for number, line in enumerate(lines) if line.is_mine]
    if len(mine) != 1:
        return False
    inner, outer = lines[:mine[0]], lines[mine[0] + 1:]
    return (bool(outer) and outer[0].function.name == 'threading.Thread.run'
            and any(line.function.name in _FETCHES for line in inner))


def _connect(tasks, raw_tasks):
    """Say which tasks wait for which."""
    by_address = {}
    for task, raw in zip(tasks, raw_tasks):
        by_address[raw.number] = by_address[raw.coroutine] = task
    for task, raw in zip(tasks, raw_tasks):
        task.waits_for = by_address.get(raw.awaited)


def route_of(labels):
    """Return the route or job among labels, or None."""
    return next(filter(None, map(labels.get, ROUTES)), None)


def _requests(said, look, raw_tasks):
    """Return the Request objects, with who works for them: its task, or else
    the thread in which it began, while that has its label."""
    threads = {thread.native_id: thread for thread in look.threads}
    tasks = {} if raw_tasks is None else {
        raw.number: task for raw, task in zip(raw_tasks.tasks, look.tasks)}
    found = []
    for raw in sorted(said.requests, key=lambda raw: -raw.age_ns):
        request = Request(raw)
        request.task = tasks.get(raw.task)
        thread = threads.get(raw.native_id)
        if not raw.task and thread is not None and (
                thread.route == request.route):
            request.thread = thread
            thread.request = request
        found.append(request)
    return found


def _importance(thread, look):
    in_circle = any(thread in circle for circle in look.circles)
    return (not thread.has_gil, not in_circle, thread.wants is None,
            thread.state != GIL_WAIT, thread.is_idle, thread.mine is None,
            -(thread.since_s or 0), thread.native_id)


# What comes first.

class Answer:
    """One of the three lines.

    kind    what follows from which rule, as in the JSON
    forms   texts, the longest first
    more    what else the JSON says
    """

    def __init__(self, kind, *forms, **more):
        self.kind = kind
        self.forms = forms
        self.more = more

    def fitting(self, width):
        return next((form for form in self.forms if len(form) <= width),
                    self.forms[-1])


def answers(look):
    """Return {'slow': Answer, 'where': Answer, 'gil': Answer}."""
    slow, thread = _slow(look)
    if look.is_stuck and look.requests:
        count = len(look.requests)
        stand = ('1 request stands' if count == 1
                 else f'{count} requests stand')
        slow = Answer(slow.kind, *[f'{form}; {stand}' for form in slow.forms],
                      slow.forms[-1], **slow.more, under_way=count)
    return {'slow': slow, 'where': _where(thread), 'gil': _gil(look)}


def _slow(look):
    """Return what is slow, and the thread that it is about, or None."""
    if look.circles:
        circle = look.circles[0]
        since_s = min([thread.since_s or 0 for thread in circle])
        behind = locks.behind(look.threads, look.circles)
        more = f'; {len(behind)} more wait behind them' if behind else ''
        count = f'{len(circle)} threads'
        return Answer(
            'deadlock',
            f'deadlock: {count} can never go on, since {seconds(since_s)}'
            + more, f'deadlock: {count}, since {seconds(since_s)}{more}',
            f'deadlock: {count}, since {seconds(since_s)}',
            since_s=since_s), circle[0]
    if look.is_stuck:
        held = seconds(look.held_s)
        return Answer(
            'all', f'everything: no other thread has run Python for {held}',
            f'everything: no Python for {held}', since_s=look.held_s
        ), look.holder
    busy = [thread for thread in look.busy if thread.mine is not None]
    if look.requests and look.requests[0].age_s >= SLOW_S:
        oldest = look.requests[0]
        its = [request for request in look.requests
               if request.route == oldest.route]
        return Answer(
            'route', f'{oldest.route}: {under_way(its)}', route=oldest.route,
            under_way=len(its), oldest_s=oldest.age_s), _worker(oldest, look)
    slow = [thread for thread in busy if (thread.since_s or 0) >= _SLOW_S
            and not (len(busy) > 1 and waits_for_others(thread, look))]
    if slow:
        first = max(slow, key=lambda thread: thread.since_s)
        since = seconds(first.since_s)
        return Answer('thread',
                      f'{first.name}: at the same line for {since}',
                      f'{first.name}: same line, {since}',
                      thread=first.native_id, since_s=first.since_s), first
    if look.requests:
        return Answer(
            'nothing', 'nothing: ' + under_way(look.requests, 'requests '),
            under_way=len(look.requests),
            oldest_s=look.requests[0].age_s), _worker(look.requests[0], look)
    if busy:
        counts = Counter(map(outermost_mine, busy))
        first = max(busy, key=lambda thread: (counts[outermost_mine(thread)],
                                              thread.since_s or 0))
        function = outermost_mine(first)
        name = f'{function.qualname} ({file_of(function)})'
        count = counts[function]
        inside = f'{count} thread{"s" * (count != 1)} in it'
        routes = Counter([thread.route for thread in busy if thread.route])
        if routes:
            route, count = routes.most_common(1)[0]
            inside = f'{count} thread{"s" * (count != 1)} in it'
            first = next(thread for thread in busy if thread.route == route)
            return Answer(
                'route', f'{route}: {inside}; the age of requests is not '
                'known', f'{route}: {inside}', route=route,
                threads=count), first
        return Answer('entry', f'{name}: {inside}; requests are not known',
                      f'{name}: {inside}', function=function.qualname,
                      threads=count), first
    first = next(iter(look.busy), None)
    return Answer('nothing', 'nothing: no thread is in code of mine',
                  'nothing'), first


def waits_for_others(thread, look):
    """Return whether it is the main thread and waits for no socket or file:
    then it mostly waits for what other threads do."""
    return (thread.native_id == look.process.pid_inside
            and thread.state == WAITING
            and (thread.waits_for is None
                 or thread.waits_for.kind not in ('socket', 'file')))


def under_way(requests, noun=''):
    """Say how many there are, and the age of the oldest."""
    if len(requests) == 1:
        return (f'1 {noun.rstrip("s ")}{" " * bool(noun)}under way, for '
                f'{seconds(requests[0].age_s)}')
    oldest_s = max([request.age_s for request in requests])
    return (f'{len(requests)} {noun}under way, the oldest '
            f'{seconds(oldest_s)}')


def _worker(request, look):
    """Return the thread that works for a request, or for one of its route, or
    the first that is busy."""
    return request.thread or next(
        (thread for thread in look.busy if thread.route == request.route),
        next(iter(look.busy), None))


def _where(thread):
    """Return where that thread is, and what it waits for."""
    if thread is None:
        return Answer('idle', 'all threads wait for work', 'idle')
    line = thread.mine or thread.innermost
    if line is None:
        return Answer('no-python', f'{thread.name}: no Python code is running')
    place = f'{file_of(line.function)}:{line.line}'
    function = line.function.qualname.rpartition('.')[2]
    outside = '' if line.is_mine else ', outside my code'
    what = object_of(thread)
    since = (f', since {seconds(thread.since_s)}'
             if thread.since_s is not None and thread.state == WAITING else '')
    more = {'file': line.function.filename, 'line': line.line,
            'function': line.function.qualname, 'state': thread.state}
    if thread.callee is not None:
        more['callee'] = thread.callee.name
    return Answer('line', f'{place} {function}{outside}: {what}{since}',
                  f'{place} {function}: {what}', f'{place} {function}', place,
                  **more)


def object_of(thread):
    """Return what a thread does, by its state, in a few words."""
    callee = thread.callee
    match thread.state:
        case 'running':
            return f'in C: {callee.name}' if callee else 'on a CPU'
        case 'native':
            return (f'native, {callee.name}' if callee
                    else 'native, without the GIL')
        case 'gil wait':
            return 'GIL wait'
        case 'asleep with gil':
            return f'asleep with the GIL{", " + callee.name if callee else ""}'
    if thread.wants is not None:
        return f'lock {thread.wants.name}'
    if thread.waits_for is not None and thread.waits_for.name:
        return thread.waits_for.object
    if callee is not None:
        return callee.name
    return thread.waits_for.object if thread.waits_for else 'waits'


def _gil(look):
    count = len(look.waiters)
    wait = (f'{count} threads wait' if count > 1 else
            '1 thread waits' if count else 'no thread waits')
    if look.holder is None:
        return Answer('free', f'free; {wait} for it', f'free; {wait}',
                      waiters=count)
    name = look.holder.name
    more = {'thread': look.holder.native_id, 'waiters': count}
    if look.held_s is None or not count:
        return Answer('held', f'held by {name}; {wait} for it',
                      f'held by {name}', **more)
    more |= {'since_s': look.held_s}
    held = seconds(look.held_s)
    if look.holder.state == ASLEEP:
        callee = look.holder.callee
        call = f' in {callee.name}' if callee else ''
        return Answer(
            'held', f'held {held} by {name}, asleep with it{call}: nearly '
            'always a fault in that extension',
            f'held {held} by {name}, asleep with it{call}',
            f'held {held} by {name}, asleep', **more)
    return Answer('held', f'held for {held} by {name}; {wait} for it',
                  f'held {held} by {name}; {wait}', **more)


def outermost_mine(thread):
    """Return the outermost function of mine on a stack."""
    return [line for line in thread.lines
            if isinstance(line, Line) and line.is_mine][-1].function


def file_of(function):
    return function.filename.rpartition('/')[2] or function.filename


def seconds(value):
    """A time as it is read aloud."""
    if value < 0.001:
        return '<1 ms'
    if value < 1:
        return f'{value * 1e3:.0f} ms'
    if value < 100:
        return f'{value:.1f} s'
    if value < 7200:
        return f'{value / 60:.0f} min'
    if value < 172800:
        return f'{int(value // 3600)} h {int(value // 60 % 60)} min'
    return f'{value / 86400:.0f} d'
