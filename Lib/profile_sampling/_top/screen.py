"""The live screen, as lines at a width and a height."""

import time
from collections import Counter

from profile_sampling._data.values import IDLE, STATES
from profile_sampling._formats.words import CUT
from profile_sampling._reach import look as looking
from profile_sampling._reach import text as dumps
from profile_sampling._reach.look import Answer, seconds
from profile_sampling._top import lines, views
from profile_sampling._top.answers import (
    SLOW_S, Choices, answers, place_text, threads)
from profile_sampling._top.lines import letters, share
from profile_sampling._top.order import SMALL, Order
from profile_sampling._top.windows import Windows

_WINDOWS = {5: '5 s', 60: '1 min', 300: '5 min'}
# Of the last slices, rows are put in order.
_ORDER_S = 10
_FROZEN_S = 15.0
_MOST_ROWS, _LITTLE = 14, 1e-9
_BARS = '▁▂▃▄▅▆▇█'
_KEYS = (
    '1-7 view  ↑↓ row  Enter open  ←→ sort  / find  Space pause  d dump  '
    's save  ? help  q quit',
    '1-7 view  Enter open  / find  Space pause  d dump  s save  ? help  '
    'q quit',
    'Enter open  Space pause  d dump  s save  ? help  q quit',
    'Space pause  ? help  q quit', '? help  q quit')
_HELP = '''\
Keys of top                               Letters in the bars
 1-7      views                           r running    on a CPU
 ↑ ↓      row (also j k, PgUp PgDn)       n native     on a CPU, GIL released
 Enter    open: source, what it calls     w waiting    socket, file, lock, ...
 Esc      one step back                   G GIL wait   another thread holds it
 ← →      sort by the next column         C CPU wait   the machine gave none
 o        put the rows in order now       S asleep with GIL: nobody can run
 /        find a name; Esc clears         x GC         garbage collector
 w        5 s, 1 min, 5 min               L loop wait  the event loop was busy
 a        my code, or all functions       Q no worker  all threads are busy
 i        with idle, or without           r n w: it works, or waits for the
 Space    pause: nothing is written       world. The others: have a look.
 d        dump of this moment             Figures
 s        save what was seen              % 5 s  of thread time, last 5 s
 c        this screen as a command        % all  of it since you came
 Tab      next process (--children)       Idle is left out of both.
 t        light or dark                   Rows move every 5 s at most.
 q        quit; the screen stays

No key changes the program. It pays for the samples while you look.

Esc back'''


class Screen:
    """What is seen, and what was chosen.

    view, window_s     of views.NAMES, and of 5, 60 and 300
    is_all, is_idle, is_paused, is_open
    find               what names must have, or ''
    prompt             None, or what is typed: 'find' or 'save'
    overlay            None, 'help', 'command' or the lines of a dump
    ended              None, or why there is no more to come
    silent_since       None, or since when there is no answer
    note               what the last line says once
    """

    def __init__(self, process, *, mine=(), view='line', sources=None,
                 slow_s=SLOW_S, clock=time.time):
        self.process = process
        self.windows = Windows(mine)
        self.view = view
        self.window_s = 5
        self.is_all = self.is_idle = self.is_paused = self.is_open = False
        self.find = self.typed = ''
        self.prompt = self.overlay = self.ended = self.silent_since = None
        self.note = ''
        self.look = None
        self.interval_s = 1
        self._sources = sources
        self._slow_s = slow_s
        self._clock = clock
        self._choices = Choices()
        self._orders = {}
        self._chosen = None
        self._moved_at = float('-inf')
        self._sort = None
        self._scroll = 0
        self._objects = {}
        self.at = clock()
        self._shown = []
        self._said = None
        # What came in while nothing was to change.
        self._held = []

    # What comes in.

    def add(self, tables, look=None):
        """Take in the Tables of one more second, and a Look, or None."""
        if self.is_paused:
            self._held.append((tables, look))
            return
        if tables is not None:
            self.windows.add(tables, 1 + self.process.num_children)
        if look is not None:
            self.look = look
            for thread in look.threads:
                self.windows.names[thread.native_id] = thread.name
                self._learn(thread)
        self.at = self._clock()
        self._said = None

    def _learn(self, thread):
        """Keep whether a thread waits for work, and what a line of mine waits
        for."""
        wait, line = thread.waits_for, thread.innermost
        if thread.is_idle and line is not None:
            self.windows.waits_for_work.add((
                thread.native_id, line.function.filename, line.line))
        elif wait is not None and wait.name and thread.mine is not None:
            its = thread.mine
            self._objects[its.function.filename, its.line] = wait.object

    # What the three lines and the table are.

    def answers(self):
        if self._said is None:
            self._said = self.answers_of(self.windows.last(self.window_s))
        return self._said

    def answers_of(self, window):
        """Return the three lines about a window, by their names."""
        if len(self.windows):
            return answers(window, self._choices, self.at, look=self.look,
                           objects=self._objects, slow_s=self._slow_s)
        if self.look is not None:
            return looking.answers(self.look)
        return dict.fromkeys(('slow', 'where', 'gil'),
                             Answer('silent', 'not known'))

    def facts(self, width, seconds=None):
        return views.Facts(
            self.windows.last(seconds or self.window_s), self.windows.all,
            label=_WINDOWS[self.window_s], look=self.look,
            names=self.windows.names, sources=self._sources,
            is_all=self.is_all, is_idle=self.is_idle, width=width)

    @property
    def _shown_view(self):
        """One look knows no shares, but what threads do now."""
        return self.view if len(self.windows) else 'thread'

    def _table(self, width):
        """Return the Table of the view, its rows in the order of the screen,
        and the Facts it is made of."""
        facts = self.facts(width)
        table = views.table(self._shown_view, facts)
        whole = table.whole or sum([row.value for row in table.rows]) or 1
        order = self._orders.setdefault((self._shown_view, self.is_all),
                                        Order())
        frozen = (self.is_open or self.is_paused
                  or self._clock() - self._moved_at < _FROZEN_S)
        ranks = None
        if self._sort is not None:
            table.rows.sort(key=lambda row: -_number(row, self._sort))
            keys = [row.key for row in table.rows]
        else:
            if len(self.windows) > self.window_s:
                recent = views.table(self.view, self.facts(width, max(
                    _ORDER_S, self.window_s)))
                ranks = {row.key: row.value / (recent.whole or whole)
                         for row in recent.rows}
            # Where nothing is a share, what is there is shown.
            least = 0 if table.whole else _LITTLE
            keys = order.update({row.key: max(row.value / whole, least)
                                 for row in table.rows}, self.at,
                                is_frozen=frozen, ranks=ranks)
        by_key = {row.key: row for row in table.rows}
        table.rows = [by_key[key] for key in keys if key in by_key]
        if self.find:
            wanted = self.find.lower()
            table.rows = [row for row in table.rows
                          if wanted in row.text.lower()]
            table.last = []
        return table, facts

    # Lines.

    def render(self, width, height):
        """Return the lines of the screen, each at most *width* wide."""
        width = max(width, 1)
        if isinstance(self.overlay, list):
            found = self.overlay[self._scroll:][:height - 1]
            found = [*found, *[[] for _ in range(height - 1 - len(found))],
                     [('Esc back  ↑↓ scroll', 'quiet')]]
        elif self.overlay == 'help':
            found = [[(text, '')] for text in _HELP.split('\n')][:height]
        else:
            found = self._main(width, height)
        found = [lines.fitting(line, width) for line in found[:height]]
        return found + [[] for _ in range(height - len(found))]

    def block(self, width):
        """Return the screen as --once prints it: all rows, no keys."""
        found = self._head(width) + self._bar(width)
        table, facts = self._table(width)
        return ([lines.fitting(line, width) for line in
                 [*found, [], *self._rows(table, facts, width, None)[0],
                  *table.below]])

    def _head(self, width):
        state = 'live '
        if self.ended is not None:
            state = 'ended '
        elif self.is_paused:
            state = 'paused '
        elif self.silent_since is not None:
            silent_s = seconds(self._clock() - self.silent_since)
            state = f'no answer for {silent_s}  '
        elif self.interval_s > 1:
            state = f'live, every {self.interval_s:g} s  '
        head = dumps.head(self.process, self.at, width, right=state)
        three = []
        for name, key in ('Slow', 'slow'), ('Where', 'where'), ('GIL', 'gil'):
            answer = self.answers()[key]
            said = lines.clean(answer.fitting(width - 7))
            first, colon, rest = said.partition(':')
            is_bad = key == 'slow' and answer.kind in ('deadlock', 'all')
            three.append([(f'{name:<7}', 'strong'),
                          (first, 'warn' if is_bad else ''),
                          (colon + rest, '')])
        return [[(head, '')], *three]

    def _bar(self, width):
        if not len(self.windows):
            said = ('' if self.look is None else
                    'One look. Shares come after a second.')
            return [[], [(said, 'quiet')]]
        window = self.windows.last(self.window_s)
        states = window.states(idle=self.is_idle)
        whole = sum(states)
        bar = lines.bar(letters(states), width)
        shown = {text[0] for text, _ in bar}
        idle = f'idle {seconds(window.idle_ns / 1e9)}'
        if width >= 120:
            all_ns = whole + window.idle_ns * (not self.is_idle)
            idle += f' of {seconds(all_ns / 1e9)} left out'
        for has_names, has_idle in ((True, True), (True, False),
                                    (False, True), (False, False)):
            legend = []
            for letter, ns in letters(states).items():
                if letter in shown:
                    name = f' {lines.WORDS[letter]}' if has_names else ''
                    legend += [(letter, lines.style_of(letter)), (
                        f'{name} {share(ns, whole)} %  ', '')]
            has_idle = has_idle and not self.is_idle
            if lines.width_of(legend) + has_idle * len(idle) <= width:
                break
        if has_idle:
            legend = [*lines.padded(legend, width - len(idle)),
                      (idle, 'quiet')]
        return [[], bar, legend]

    def _history(self, width):
        seconds_ = list(self.windows.history)[-(width - 7):]
        busy, doing = [], []
        for states, length_ns in seconds_:
            states = [0 if number == IDLE else ns
                      for number, ns in enumerate(states)]
            busy.append(sum(states) / (length_ns or 1))
            its = letters(states)
            doing.append(max(its, key=its.get) if its else ' ')
        top = max([self.process.threads, *busy, 1])
        bars = ''.join([_BARS[min(7, int(8 * number / top))]
                        for number in busy])
        line = [('Busy   ', 'strong'), (bars, '')]
        line.append((f'  {threads(busy[-1])} of {self.process.threads}'
                     if busy else '', 'quiet'))
        since = time.strftime('%H:%M:%S', time.localtime(
            self.at - len(self.windows.history)))
        return [line, [('Doing  ', 'strong'),
                       *[(letter, lines.style_of(letter))
                         for letter in doing],
                       (f'  mostly, each second since {since}', 'quiet')]]

    def _views(self, width):
        line = []
        for number, (name, long, short) in enumerate(views.TITLES, 1):
            title = f'{number} {long if width >= 80 else short}'
            line.append((f'[{title}]', 'chosen') if name == self.view
                        else (title, ''))
            line.append(('  ' if width >= 80 else ' ', ''))
        line.pop()
        since = seconds(self.windows.all.length_ns / 1e9)
        more = (f'window {_WINDOWS[self.window_s]}, beside {since} since you '
                'came')
        if width >= 120:
            line = [*lines.padded(line, width - len(more)), (more, 'quiet')]
        return line

    def _main(self, width, height):
        head = self._head(width)
        if height < 6:
            return head[1:]
        keys = self._keys(width)
        rest = height - len(head) - len(keys)
        if height >= 20:
            head += self._bar(width)
            if height >= 32 and len(self.windows):
                head += self._history(width)
            head.append(self._views(width))
            rest = height - len(head) - len(keys)
        body = (self._opened(width, rest) if self.is_open else
                self._body(width, rest, height))
        body = body[:rest]
        return [*head, *body, *[[] for _ in range(rest - len(body))], *keys]

    def _body(self, width, rest, height):
        table, facts = self._table(width)
        below = table.below if height >= 20 else []
        space = min(rest, 1 + _MOST_ROWS)
        space = max(min(space, rest - len(below)), min(rest, 5))
        found, chosen = self._rows(table, facts, width, space - 1)
        found += below
        if (height >= 32 and self._shown_view == 'line'
                and chosen is not None):
            found = [*found, [], *self._source(chosen, facts, width,
                                               rest - len(found) - 1)]
        return found

    def _rows(self, table, facts, width, most):
        """Return the lines of a table, at most *most* rows (None: all of some
        size), and the Row that is chosen."""
        heads = [[(column.head, 'underline' if number == self._sort
                   else 'strong')]
                 for number, column in enumerate(table.columns)]
        found = [lines.row(table.columns, heads, width)]
        if self.find:
            found[0] = [(lines.clean(f'has "{self.find}"  '), 'quiet'),
                        *found[0]]
        whole = table.whole
        order = self._orders.get((self._shown_view, self.is_all), Order())
        shown = [row for row in table.rows
                 if whole is None or row.value >= SMALL * whole
                 or row.key == self._chosen or order.keeps(row.key, self.at)]
        last = [row for row in table.last
                if row.value >= SMALL * (whole or 1)]
        if most is not None:
            space = most - len(last)
            if len(shown) > space or len(shown) < len(table.rows):
                space -= 1
            shown = self._in_sight(shown, max(space, 1))
        self._shown = [row.key for row in shown]
        if self._chosen not in self._shown and self._shown and (
                most is not None):
            self._chosen = self._shown[0]
        chosen = None
        for row in shown:
            mark = ' '
            if row.key == self._chosen and most is not None:
                mark, chosen = '>', row
            elif order.is_new(row.key, self.at):
                mark = '+'
            line = lines.row(table.columns, row.cells, width, mark)
            found.append([(text, style or 'row') for text, style in line]
                         if mark == '>' else line)
        rest = [row for row in table.rows if row not in shown]
        if rest:
            found.append(self._more(table, rest, width))
        found += [lines.row(table.columns, row.cells, width) for row in last]
        if len(found) == 1:
            found.append([(f'No {table.noun} has "{self.find}". Esc clears.'
                           if self.find else '', 'quiet')])
        return found, chosen

    def _in_sight(self, rows, space):
        keys = [row.key for row in rows]
        at = keys.index(self._chosen) if self._chosen in keys else 0
        begin = max(0, min(at - space + 1, len(rows) - space)
                    if at >= space else 0)
        return rows[begin:begin + space]

    def _more(self, table, rest, width):
        value = sum([row.value for row in rest])
        noun = table.noun + 's' * (len(rest) != 1)
        is_small = table.whole and all([row.value < SMALL * table.whole
                                        for row in rest])
        text = f'{len(rest)} more {noun}' + ' under 0.5 %' * bool(is_small)
        cells = [''] * len(table.columns)
        if table.whole:
            cells[0] = share(value, table.whole)
        shown = [number for number in lines.widths(table.columns, width)
                 if not table.columns[number].right
                 and table.columns[number].head not in ('Doing', 'Did',
                                                        'With it')]
        cells[shown[0]] = [(text, 'quiet')]
        return lines.row(table.columns, cells, width)

    def _source(self, chosen, facts, width, space):
        """Return the source around the line of a row of the view of lines."""
        function, line = chosen.key
        if self._sources is None or not line or space < 3:
            return []
        texts = self._sources.lines(function.filename)
        name = (f'{place_text(function, line).rpartition(":")[0]}  '
                f'{views.short_name(function)}')
        if not texts:
            return [[(f'The source cannot be read here ({name}).', 'quiet')]]
        states = {its: row for (its_function, its), row
                  in facts.window.by(facts.place).items()
                  if its_function == function}
        whole = sum(facts.window.states(idle=self.is_idle))
        largest = max(map(sum, states.values()), default=0)
        cells = views.bar_width(width)
        found = [[(name, 'strong')]]
        begin = max(function.first_line, line - space * 2 // 3)
        for number in range(begin, min(begin + space - 1, len(texts) + 1)):
            its = states.get(number, [0] * len(STATES))
            ns = sum(its)
            mark = '>' if number == line else ' '
            bar = lines.padded(lines.bar_of(letters(its), largest, cells),
                               cells)
            found.append([(f'{mark}{share(ns, whole) if ns else "":>5}  ',
                           'strong' if mark == '>' else ''), *bar,
                          (f'  {number:>4}  ', 'quiet'),
                          (lines.clean(texts[number - 1].expandtabs(4)), '')])
        return found

    def _opened(self, width, rest):
        """Return a line over the whole screen."""
        table, facts = self._table(width)
        row = next((row for row in table.rows if row.key == self._chosen),
                   None)
        if row is None:
            return [[('It has no time now.', 'quiet')]]
        bar = lines.bar(letters(row.states), width)
        found = [[('> ', 'strong'), (row.text, 'mine')], bar, []]
        called = facts.window.callees(facts.place).get(row.key)
        bottom = [[], [('Called', 'strong')]] if called else []
        for (library, leaf), ns in (called or Counter()).most_common(4):
            name = f'{library} {CUT} {leaf.qualname}' if library else leaf.name
            bottom.append([(f'{share(ns, row.value):>5} %  ', ''),
                           (lines.clean(name), '')])
        return [*found, *self._source(row, facts, width, rest - len(found)
                                      - len(bottom)), *bottom]

    def _keys(self, width):
        pid = self.process.pid
        if self.prompt == 'save':
            return [[(f'Save {seconds(self.windows.all.length_ns / 1e9)} as: '
                      f'{self.typed}', 'strong')]]
        if self.prompt == 'find':
            return [[(lines.clean(f'/{self.typed}'), 'strong')]]
        if self.overlay == 'command':
            return [[(self.command(), 'strong')],
                    [('Enter: back. Mark it with the mouse.', 'quiet')]]
        if self.ended is not None:
            return [[(f'PID {pid} {self.ended}', 'warn')],
                    [('s save what was seen  q quit', '')]]
        if self.note:
            return [[(lines.clean(self.note), 'strong')]]
        if self.is_paused:
            clock = time.strftime('%H:%M:%S', time.localtime(self.at))
            return [[(f'Paused at {clock}; recording goes on.  Space go on  '
                      's save  q quit', '')]]
        if self.silent_since is not None:
            return [[('Still trying. If the program hangs:  d dump', 'warn')]]
        if self.is_open:
            return [[('Esc back  a all frames  Space pause  c as a command  '
                      '? help  q quit', 'quiet')]]
        return [[(next((keys for keys in _KEYS if len(keys) <= width),
                       _KEYS[-1]), 'quiet')]]

    def command(self):
        text = f'python -m profile_sampling top -p {self.process.pid}'
        if self.view != 'line':
            text += f' --by {self.view}'
        text += ' --children' * bool(self.process.num_children)
        return text + ' --all' * self.is_all + ' --idle' * self.is_idle

    # Keys.

    def key(self, key):
        """Do what a key does; return 'quit', 'dump', 'save', 'theme' or
        None."""
        self.note = ''
        if self.prompt is not None:
            return self._type(key)
        if key in ('q', 'F10', '\x03'):
            return 'quit'
        if key in ('Esc', 'Enter') and (self.overlay or self.is_open
                                        or self.find and key == 'Esc'):
            if self.overlay:
                self.overlay = None
            elif self.is_open:
                self.is_open = False
            else:
                self.find = ''
            return None
        if key in 'd':
            return 'dump'
        if key in 'sS':
            self.prompt = 'save'
            self.typed = f'{self.process.name}.{self.process.pid}.pb.gz'
            return None
        if key == 't':
            return 'theme'
        if isinstance(self.overlay, list):
            self._scroll = max(0, min(len(self.overlay) - 1, self._scroll
                                      + _STEPS.get(key, 0)))
        else:
            self._press(key)
        return None

    def _press(self, key):
        if key in '1234567':
            self.view = views.NAMES[int(key) - 1]
            self._sort = self._chosen = None
            self.is_open = False
        elif key in _STEPS:
            self._move(_STEPS[key])
        elif key in ('Left', 'Right', '<', '>', 'F6'):
            columns = [number for number, column in enumerate(
                self._table(200)[0].columns) if column.right]
            places = [None, *columns]
            step = -1 if key in ('Left', '<') else 1
            self._sort = places[(places.index(self._sort) + step)
                                % len(places)]
        elif key == 'Enter':
            self.is_open = self._chosen is not None and self.view == 'line'
        elif key == 'o':
            for order in self._orders.values():
                order.again()
        elif key in ('/', '\\', 'F3', 'F4'):
            self.prompt, self.typed = 'find', self.find
        elif key == 'w':
            kept = list(_WINDOWS)
            self.window_s = kept[(kept.index(self.window_s) + 1) % len(kept)]
            self._said = None
        elif key == 'a':
            self.is_all = not self.is_all
        elif key == 'i':
            self.is_idle = not self.is_idle
        elif key in (' ', 'p', 'z', 'Z'):
            self.is_paused = not self.is_paused
            held, self._held = self._held, []
            for second in held:
                self.add(*second)
        elif key == 'c':
            self.overlay = 'command'
        elif key in ('?', 'h', 'F1'):
            self.overlay = 'help'
        elif key in ('K', 'F9'):
            self.note = 'top never stops a process.'

    def _move(self, step):
        if self._shown:
            keys = [row.key for row in self._table(80)[0].rows]
            at = keys.index(self._chosen) if self._chosen in keys else 0
            if keys:
                self._chosen = keys[max(0, min(len(keys) - 1, at + step))]
            self._moved_at = self._clock()

    def _type(self, key):
        """A key of what is typed; return 'save' when that is to be done."""
        prompt = self.prompt
        if key == 'Esc':
            self.prompt = None
            self.find = '' if prompt == 'find' else self.find
        elif key == 'Enter':
            self.prompt = None
            return 'save' if prompt == 'save' else None
        elif key == 'Backspace':
            self.typed = self.typed[:-1]
        elif len(key) == 1 and key.isprintable():
            self.typed += key
        if prompt == 'find' and self.prompt:
            self.find = self.typed
        return None

    def show(self, overlay):
        """Show lines over the screen."""
        self.overlay, self._scroll = overlay, 0


_FAR = 1 << 20
_STEPS = {'Up': -1, 'k': -1, 'Down': 1, 'j': 1, 'PgUp': -10, 'PgDn': 10,
          'g': -_FAR, 'Home': -_FAR, 'G': _FAR, 'End': _FAR}


def _number(row, column):
    """Return the number behind a cell: columns of numbers and numbers of the
    JSON are in the same order."""
    numbers = [value for key, value in row.json.items()
               if isinstance(value, (int, float)) and key not in (
                   'line', 'native_id')]
    return numbers[min(column, len(numbers) - 1)] if numbers else 0
