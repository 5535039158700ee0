"""A look at a process, as text for people: the lines of `dump`."""

import time

from profile_sampling._data import origins
from profile_sampling._data.values import printable
from profile_sampling._formats import words
from profile_sampling._reach import locks
from profile_sampling._reach.look import (
    GIL_WAIT, LETTERS, NATIVE, Line, answers, file_of, seconds)

# Columns of a thread's head, of a place and of a function.
_HEAD, _PLACE, _FUNCTION = 20, 16, 16
_INDENT = '    '
# In less the text of lines goes, and in less than that the function.
_SOURCE_WIDTH, _FUNCTION_WIDTH = 80, 60
# Lines of mine on a stack: outer ones, and inner ones.
_OUTER, _INNER = 3, 5
# Names of threads with the same stack; idle ones.
_NAMES = 4
_TASKS = 20


def plain(text, style=''):
    """A style without colours."""
    return text


def render(look, sources, *, width=80, everything=False, style=plain):
    """Return the text of a Look.

    *style* is called with a text and the name of a style, and returns the
    text as it is written: see _formats/style.py.
    """
    return _Text(look, sources, width, everything, style).render()


def head(process, at, width, right=''):
    """Return the first line: who it is, and when that was."""
    threads = f'{process.threads} threads' if process.threads != 1 else (
        '1 thread')
    pid = f'PID {process.pid}'
    if process.num_children:
        pid += f' and {words.counted(process.num_children, "child", "children")}'
    parts = [process.name, pid, threads,
             f'up {seconds(process.up_s)}']
    clock = f'{right}{time.strftime("%H:%M:%S", time.localtime(at))}'
    while len(parts) > 2 and len('  '.join(parts)) + len(clock) + 2 > width:
        parts.pop()
    text = printable('  '.join(parts))
    return words.padded(words.start(text, width - len(clock) - 2),
                        width - len(clock)) + clock


def three_lines(found, width, style):
    """Return the lines Slow, Where and GIL."""
    lines = []
    for name, key in ('Slow', 'slow'), ('Where', 'where'), ('GIL', 'gil'):
        answer = found[key]
        text = words.start(printable(answer.fitting(width - 7)), width - 7)
        if key == 'slow' and answer.kind in ('deadlock', 'all'):
            first, colon, rest = text.partition(':')
            text = style(first, 'warn') + colon + rest
        lines.append(f'{style(f"{name:<7}", "strong")}{text}')
    return lines


class _Text:

    def __init__(self, look, sources, width, everything, style):
        self._look = look
        self._sources = sources
        self._width = width
        self._everything = everything
        self._style = style
        self._lines = []

    def render(self):
        look = self._look
        self._add(head(look.process, look.at, self._width))
        self._lines += three_lines(answers(look), self._width, self._style)
        self._add('')
        self._circles()
        self._threads()
        self._tasks()
        self._end()
        return '\n'.join(self._lines) + '\n'

    def _add(self, line):
        self._lines.append(line.rstrip())

    # Locks.

    def _circles(self):
        look = self._look
        for circle in look.circles:
            for number, thread in enumerate(circle):
                held = next(lock for lock in thread.has
                            if any(other.wants is lock for other in circle))
                line = thread.mine or thread.innermost
                place = _place(line) if line else '?'
                self._add(f'{"Circle" if not number else "":<9}'
                          f'{printable(thread.name)} has {held.name}, wants '
                          f'{thread.wants.name} at {place}')
        behind = locks.behind(look.threads, look.circles)
        if behind:
            names = _names(behind)
            self._add(f'{"Behind":<9}{names} wait{"s" * (len(behind) == 1)} '
                      'for these locks')
        if look.circles:
            self._add('')

    # Threads.

    def _threads(self):
        look = self._look
        holds, waiting = look.holder is not None, len(look.waiters)
        more = ' more' if holds or waiting else ''
        # Each thread once.
        mine = [thread for thread in look.busy if thread.mine is not None
                and not thread.has_gil and thread not in look.waiters]
        counts = [(int(holds), ' holds the GIL'),
                  (waiting, f' wait{"s" * (waiting == 1)} for '
                            + ('it' if holds else 'the GIL')),
                  (len(mine), f'{more} in my code'),
                  (len(look.threads) - len(look.busy), ' idle')]
        said = ', '.join([f'{count}{text}' for count, text in counts if count])
        self._add(f'{self._style("Threads", "strong")}  {len(look.threads)}'
                  + (f': {said}' if said else ''))
        for group in self._groups(look.busy):
            self._add('')
            self._thread(group)
        idle = [thread for thread in look.threads if thread.is_idle]
        if idle:
            self._add('')
            self._idle(idle)
        self._add('')

    def _groups(self, threads):
        """Return lists of threads that stand at the same place."""
        groups = {}
        for thread in threads:
            key = (thread.state, thread.has_gil, tuple([
                (line.function, line.line) if isinstance(line, Line) else line
                for line in thread.lines]),
                thread.route, thread.wants and thread.wants.address)
            groups.setdefault(key, []).append(thread)
        return groups.values()

    def _thread(self, group):
        thread = group[0]
        since = [t.since_s for t in group if t.since_s is not None]
        state = words_of(thread.state)
        if since:
            sign = '≥ ' if thread.since_is == 'at-least' else ''
            state += f' {sign}{seconds(max(since))}'
        letter = LETTERS[thread.state]
        text = (self._style(letter, f'state {letter}')
                + ' ' + words.padded(state, _HEAD - 2))
        if not text.endswith(' '):
            text += '  '
        text += self._style(_names(group), 'strong')
        if thread.route is not None:
            text += '   ' + self._style(printable(thread.route), 'mine')
        ages_s = [its.request.age_s for its in group if its.request]
        if ages_s:
            text += (f', under way {seconds(max(ages_s))}'
                     if len(group) == 1 else
                     f', {len(group)} of them, the oldest '
                     f'{seconds(max(ages_s))}')
        if thread.has_gil:
            text += '   ' + self._style('holds the GIL', 'warn')
        self._add(text)
        begin = len(self._lines)
        self._stack(thread)
        if not thread.is_sure:
            self._lines[begin:] = ['~' + line[1:]
                                   for line in self._lines[begin:]]

    def _stack(self, thread):
        rows = self._everything_of(thread) if self._everything else (
            self._rows_of(thread))
        for place, function, source, style in rows:
            self._row(place, function, source, style)
        wait = thread.waits_for
        if thread.wants is not None:
            owner = thread.wants.owner
            who = (f', which {owner.name} has' if owner is not None
                   else ', owner not known')
            self._row('waits for', f'lock {thread.wants.name}{who}')
        elif wait is not None and (wait.name or thread.callee is None):
            self._row('waits for', wait.text)

    def _row(self, place, function, source='', style=None):
        text = _INDENT + (self._style(words.padded(place, _PLACE), style)
                          if style else words.padded(place, _PLACE))
        has_function = self._width >= _FUNCTION_WIDTH or not style
        if has_function:
            text += f' {function}' if len(place) >= _PLACE else function
        if source and self._width >= _SOURCE_WIDTH:
            used = len(_INDENT) + max(len(place) + 1, _PLACE)
            gap = max(1, _FUNCTION - len(function))
            left = self._width - used - len(function) - gap
            if left > 8:
                text += ' ' * gap + _cut(source, left)
        self._add(text if style else _cut(text, self._width))

    def _everything_of(self, thread):
        """Return the rows of all frames."""
        rows = []
        for line in reversed(thread.lines):
            if not isinstance(line, Line):
                rows.append(('', f'{line.count} more', '', None))
            elif line.function.kind != 'python':
                rows.append(('', f'{line.function.name} (C)', '', None))
            else:
                rows.append(self._python(line))
        return rows

    def _rows_of(self, thread):
        """Return the rows of a stack: callers first."""
        lines = [line for line in thread.lines if isinstance(line, Line)]
        mine = [line for line in lines if line.is_mine]
        inner = lines[:lines.index(mine[0])] if mine else lines
        rows = []
        shown = list(reversed(mine))
        left_out = len(shown) - _OUTER - _INNER
        for number, line in enumerate(shown):
            if left_out > 1 and _OUTER <= number < _OUTER + left_out:
                if number == _OUTER:
                    rows.append(('', f'{left_out} more of mine', '', None))
                continue
            rows.append(self._python(line, line is mine[0]))
        runs = self._runs(list(reversed(inner)))
        if not mine:
            runs = runs[-3:]
        return rows + [(_cut(library, _PLACE - 1), text, '', None)
                       for library, text in runs]

    def _python(self, line, is_innermost=True):
        return (_place(line), printable(line.function.qualname.rpartition(
            '.<locals>.')[2].rpartition('.')[2]),
            printable(self._sources.line(line.function.filename, line.line)),
            'mine' if line.is_mine and is_innermost else
            'place' if line.is_mine else None)

    def _runs(self, lines):
        """Return (package, functions) of libraries, one after the other."""
        runs = []
        for line in lines:
            function = line.function
            package = ((function.module or '').partition('.')[0]
                       or file_of(function) or 'builtins')
            is_c = function.kind != 'python'
            name = function.qualname + (' (C)' if is_c else '')
            if function.kind == 'operator':
                continue
            package = package.lstrip('_') or package
            if runs and runs[-1][0] == package:
                runs[-1][1].append(name)
            else:
                runs.append((package, [name]))
        return [(printable(package), printable(
            ', '.join(names) if len(names) < 4 else
            f'{names[0]}, {len(names) - 2} more, {names[-1]}'))
            for package, names in runs]

    def _idle(self, threads):
        kinds = {}
        for thread in threads:
            kinds.setdefault(idle_words(thread), []).append(thread)
        for number, (what, group) in enumerate(sorted(
                kinds.items(), key=lambda item: -len(item[1]))):
            begin = '  idle   ' if not number else ' ' * 9
            self._add(_cut(f'{begin}{_names(group)}: {what}', self._width))

    # Tasks.

    def _tasks(self):
        tasks = self._look.tasks
        if tasks is None:
            self._add(f'{self._style("Tasks", "strong")}  not known: nobody '
                      'comes to say it while the GIL is held')
            self._add('')
        elif tasks:
            of_requests = sum(request.task is not None for request
                              in self._look.requests)
            more = f': {of_requests} of requests' if of_requests else ''
            self._add(f'{self._style("Tasks", "strong")}  {len(tasks)}{more}')
            self._add('')
            self._task_rows(tasks)
            self._add('')

    def _task_rows(self, tasks):
        ages_s = {request.task: request.age_s
                  for request in self._look.requests}
        routes = {request.task: request.route
                  for request in self._look.requests}
        groups = {}
        for task in tasks:
            groups.setdefault((routes.get(task), self._task_words(task)),
                              []).append(task)
        rows = sorted(groups.items(), key=lambda item: (
            -max([ages_s.get(task, 0) for task in item[1]]), -len(item[1])))
        for (route, text), group in rows[:_TASKS]:
            names = ', '.join([printable(task.name) for task in group[:2]])
            if route is not None:
                oldest_s = max([ages_s[task] for task in group])
                names = f'{printable(route)}, {seconds(oldest_s)}'
            elif len(group) > 2:
                names += f' and {len(group) - 2} more'
            names = words.padded(_cut(names, 24), 24)
            self._add(_cut(f'{len(group):>4}  {names}  '
                           f'{text}', self._width))
        if len(rows) > _TASKS:
            self._add(f'{"":4}  {len(rows) - _TASKS} more rows: --all')

    def _task_words(self, task):
        mine = [line for line in task.lines if line.is_mine]
        parts = []
        if mine:
            parts.append(f'{_place(mine[-1])} {_short(mine[-1])}')
        elif task.lines:
            parts.append(f'{_place(task.lines[0])} {_short(task.lines[0])}')
        if task.lines and mine and task.lines[-1] is not mine[-1]:
            last = task.lines[-1].function
            package = (last.module or '').partition('.')[0]
            parts.append(f'{package} {last.qualname}'.strip())
        if task.state == 'running':
            parts.append('runs')
        elif task.waits_for is not None:
            parts.append(f'task {task.waits_for.name}')
        elif task.awaits and not task.awaits.endswith('.Future'):
            parts.append(task.awaits)
        return printable(' → '.join(parts) or 'has not begun')

    # The end.

    def _end(self):
        look = self._look
        pid = look.process.pid
        looked = f'Looked for {look.took_s * 1e3:.1f} ms'
        if not all(thread.is_sure for thread in look.threads):
            self._say('Lines with ~ may be wrong: that thread sleeps with '
                      'the GIL and was read while it could wake up.')
        if look.num_other_gils:
            its = words.counted(look.num_other_gils, 'interpreter')
            self._say(f'{its} with a GIL of its own: not shown here.')
        if look.is_cut:
            self._say('Not all is here: it was too much for one look.')
        if look.circles:
            self._say('Times of waiting are the kernel\'s: when the thread '
                      'last ran.')
            self._say(f'Only a restart of PID {pid} frees them. First keep '
                      f'this:  dump -p {pid} -o {pid}.json')
        elif look.is_stuck:
            self._say(f'PID {pid} runs no Python now. Its signal handler '
                      'answered; all stacks stood still.')
            self._say(f'Will it end? Look again:  dump -p {pid} --again 5')
        else:
            self._say(f'All stacks stood still. {looked}; the program lost '
                      f'{look.cost_s * 1e3:.1f} ms.')
            self._say('All frames: --all    Machine-readable: --json')

    def _say(self, sentences):
        self._lines += words.wrapped(sentences.split(' '), self._width, ' ')


def words_of(state):
    return {GIL_WAIT: 'GIL wait', 'asleep with gil': 'asleep with GIL'}.get(
        state, state)


def idle_words(thread):
    """Return what an idle thread waits for."""
    names = {line.function.name for line in thread.lines
             if isinstance(line, Line)}
    if any(name.startswith('selectors.') or name.startswith('select.')
           for name in names):
        return 'no event'
    if any(name.startswith(('queue.', '_queue.')) or '_worker' in name
           for name in names):
        return 'no work (queue)'
    wait = thread.waits_for
    return wait.object if wait is not None else 'waits for work'


def _names(threads):
    names = [printable(thread.name) for thread in threads]
    if len(names) > _NAMES:
        return f'{", ".join(names[:_NAMES])} and {len(names) - _NAMES} more'
    return ', '.join(names)


def _place(line):
    return printable(f'{file_of(line.function)}:{line.line}')


def _short(line):
    return line.function.qualname.rpartition('.')[2]


def _cut(text, width):
    if words.text_width(text) <= width:
        return text
    return words.start(text, width + 2)[:-3] + words.CUT
