"""A terminal that shows a screen and gives keys.

What was there before is there again, whatever happens, and nothing is written
that is on the screen already.
"""

import os
import select
import signal
import termios
import tty

from profile_sampling._formats.words import text_width
from profile_sampling._top import lines

_ENTER, _LEAVE = '\033[?1049h\033[?25l', '\033[?25h\033[?1049l'
# A refresh is shown at once.
_BEGIN, _END = '\033[?2026h', '\033[?2026l'
_KEYS = {'A': 'Up', 'B': 'Down', 'C': 'Right', 'D': 'Left', 'H': 'Home',
         'F': 'End', '5~': 'PgUp', '6~': 'PgDn', '11~': 'F1', 'P': 'F1',
         'R': 'F3', 'S': 'F4', '17~': 'F6', '20~': 'F9', '21~': 'F10'}
_NAMES = {'\r': 'Enter', '\n': 'Enter', '\x7f': 'Backspace',
          '\b': 'Backspace', '\t': 'Tab'}
# What follows an Esc that begins a sequence.
_ESCAPE_S = 0.05
# Three refreshes in a row that a terminal does not take: half as many; ten
# that it does: as before.
_SLOW, _FAST, _MOST_S = 3, 10, 10
_WIDTH, _HEIGHT = 80, 24
# How long the last words may take.
_LAST_S = 1.0


def cells(line, width, style):
    """Return the cells of a line: (character, codes); None is the second half
    of a wide one."""
    found = []
    for text, name in line:
        code = style.code(name)
        for char in text:
            columns = text_width(char)
            if columns:
                found += [(char, code), *[None] * (columns - 1)]
            elif found and found[-1]:
                found[-1] = found[-1][0] + char, found[-1][1]
    blank = ' ', ''
    return (found + [blank] * (width - len(found)))[:width]


def changes(before, after):
    """Return the text that makes rows of cells *after* of those *before*."""
    parts = []
    for number, (old, new) in enumerate(zip(before, after)):
        if old == new:
            continue
        at, code = -1, ''
        for column, cell in enumerate(new):
            if cell is None or column < len(old) and old[column] == cell and (
                    at != column or old[column + 1:] == new[column + 1:]):
                continue
            if at != column:
                parts.append(f'\033[{number + 1};{column + 1}H')
            char, its = cell
            if its != code:
                parts.append(f'\033[0;{its}m' if its else '\033[0m')
                code = its
            parts.append(char)
            at = column + text_width(char)
        if code:
            parts.append('\033[0m')
    return ''.join(parts)


class Terminal:
    """A terminal while a screen is on it; a context.

    is_resized  whether all is to be drawn anew
    interval_s  how often it takes a refresh, 1 or more
    ended_by    a signal that says to end, or None
    """

    def __init__(self, fd, style, *, is_utf8=True, typed=''):
        self.style = style
        self.interval_s = 1
        self._fd = fd
        self._is_utf8 = is_utf8
        self._has_marks = os.environ.get('TERM') not in ('linux', 'dumb')
        self._shown = None
        self._typed = typed
        self._pending = b''
        self._missed = self._taken = 0
        self.ended_by = None

    def __enter__(self):
        self._modes = termios.tcgetattr(self._fd)
        self._wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._old_wake = signal.set_wakeup_fd(self._wake[1],
                                              warn_on_full_buffer=False)
        self._handlers = {number: signal.signal(number, self._note)
                          for number in (signal.SIGWINCH, signal.SIGTERM,
                                         signal.SIGHUP, signal.SIGCONT)}
        self._out = _opened(self._fd)
        self._open()
        return self

    def __exit__(self, *exc):
        self._close()
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._old_wake)
        for fd in *self._wake, self._out:
            os.close(fd)

    def _open(self):
        tty.setcbreak(self._fd, termios.TCSADRAIN)
        modes = termios.tcgetattr(self._fd)
        # Ctrl-C and Ctrl-Z are keys.
        modes[3] &= ~termios.ISIG
        termios.tcsetattr(self._fd, termios.TCSADRAIN, modes)
        self._pending += _ENTER.encode()
        self._flush()
        self._shown = None

    def _close(self):
        # A sequence that was cut short is given up.
        self._pending = f'\x18\033[0m{_LEAVE}'.encode()
        try:
            self._flush(_LAST_S)
            termios.tcsetattr(self._fd, termios.TCSANOW, self._modes)
        except (OSError, EOFError, termios.error):
            pass        # the terminal is lost

    def _note(self, number, _):
        if number in (signal.SIGTERM, signal.SIGHUP):
            self.ended_by = number
        elif number in (signal.SIGWINCH, signal.SIGCONT):
            self._shown = None

    def suspend(self):
        """Give the terminal back until the shell lets this process go on."""
        self._close()
        os.kill(os.getpid(), signal.SIGSTOP)
        self._open()

    @property
    def is_resized(self):
        return self._shown is None

    @property
    def size(self):
        """Return (width, height)."""
        try:
            size = os.get_terminal_size(self._fd)
        except OSError:
            return _WIDTH, _HEIGHT
        return size.columns or _WIDTH, size.lines or _HEIGHT

    def forget(self):
        """Draw all of the next screen."""
        self._shown = None

    def draw(self, screen):
        """Show lines, if the terminal takes them now."""
        if not self._flush():
            self._missed, self._taken = self._missed + 1, 0
            if self._missed % _SLOW == 0:
                self.interval_s = min(2 * self.interval_s, _MOST_S)
            return
        width, height = self.size
        if not self._is_utf8:
            screen = [[(lines.without_utf8(text), style)
                       for text, style in line] for line in screen]
        rows = [cells(line, width, self.style) for line in screen[:height]]
        before, text = self._shown, ''
        if before is None or len(before) != len(rows):
            before = [[(' ', '')] * width for _ in rows]
            text = '\033[0m\033[H\033[2J'
        text += changes(before, rows)
        if text:
            if self._has_marks:
                text = f'{_BEGIN}{text}{_END}'
            self._pending = text.encode('utf-8', 'replace')
            self._shown = rows
            if self._flush():
                self._missed, self._taken = 0, self._taken + 1
                if self._taken >= _FAST:
                    self.interval_s = 1

    def _flush(self, timeout_s=0):
        """Write what is pending; return whether the terminal has it."""
        while self._pending:
            _, ready, _ = select.select([], [self._out], [], timeout_s)
            if not ready:
                return False
            try:
                written = os.write(self._out, self._pending)
            except BlockingIOError:
                written = 0
            except OSError:
                raise EOFError from None
            if not written and not timeout_s:
                return False
            self._pending = self._pending[written:]
        return True

    def keys(self, timeout_s):
        """Return the names of keys that are typed; none after that time.

        Raise EOFError if the terminal is lost.
        """
        ready = []
        if not self._typed:
            ready, _, _ = select.select([self._fd, self._wake[0]], [], [],
                                        max(timeout_s, 0))
        if self._wake[0] in ready:
            os.read(self._wake[0], 512)
        if self._fd in ready:
            try:
                data = os.read(self._fd, 1024)
            except OSError:
                data = b''
            if not data:
                raise EOFError
            self._typed += data.decode('utf-8', 'replace')
        found = []
        while self._typed:
            key, self._typed = self._key(self._typed)
            if key:
                found.append(key)
        return found

    def _key(self, text):
        """Return the first key of what was typed, and the rest."""
        if text[0] != '\033':
            return _NAMES.get(text[0], text[0]), text[1:]
        if len(text) == 1:
            ready, _, _ = select.select([self._fd], [], [], _ESCAPE_S)
            if not ready:
                return 'Esc', ''
            text += os.read(self._fd, 64).decode('utf-8', 'replace')
        if text[1] not in '[O':
            return 'Esc', text[1:]
        end = 2
        while end < len(text) and not (text[end].isalpha()
                                       or text[end] == '~'):
            end += 1
        return _KEYS.get(text[2:end + 1], ''), text[end + 1:]


def _opened(fd):
    """Return a descriptor of the same terminal that never blocks, and of
    which the shell knows nothing; or one that may."""
    try:
        return os.open(os.ttyname(fd),
                       os.O_RDWR | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return os.dup(fd)       # it is not in this container


def ask_is_dark(fd):
    """Ask the terminal for its ground; return None if it does not say.

    What was typed meanwhile is returned, too.
    """
    modes = termios.tcgetattr(fd)
    try:
        tty.setcbreak(fd, termios.TCSANOW)
        # Each terminal answers the second question.
        os.write(fd, b'\033]11;?\033\\\033[c')
        said = b''
        while b'c' not in said.rpartition(b'\033[?')[2] or b'\033[?' not in (
                said):
            ready, _, _ = select.select([fd], [], [], 0.1)
            if not ready:
                break
            said += os.read(fd, 1024)
    finally:
        termios.tcsetattr(fd, termios.TCSANOW, modes)
    return ground(said.decode('latin-1'))


def ground(said):
    """Return (whether the ground is dark or None, what was typed) of what a
    terminal has said."""
    is_dark = None
    before, found, rest = said.partition('\033]11;rgb:')
    if found:
        color = rest.split('\033')[0].split('\a')[0]
        try:
            parts = [int(part, 16) / (16 ** len(part) - 1)
                     for part in color.split('/')]
            is_dark = sum(parts) < 1.5 if len(parts) == 3 else None
        except ValueError:
            pass        # it is no color
        rest = rest[len(color):].removeprefix('\033\\').removeprefix('\a')
    head, mark, tail = (before + rest).partition('\033[?')
    if mark:
        tail = tail.partition('c')[2]
    return is_dark, head + tail
