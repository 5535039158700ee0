"""Screens of top: what is on them, and a terminal that shows them."""

import fcntl
import os
import re
import select
import struct
import termios
import time

from .builders import PYTHON, Builder

SECOND_NS = 1_000_000_000
_SEQUENCE = re.compile(r'\033\[(\??)([\d;]*)([A-Za-z])|\033\[?\Z|\x18')


class Process:
    """What a screen wants to know of a process."""

    name, pid, pid_inside, threads, up_s = 'shop', 41, 41, 6, 22324
    num_children = 0


class Sources:
    def line(self, filename, number):
        return f'line {number}'

    def lines(self, filename):
        return [f'    line {number}' for number in range(1, 100)]


def second(rows, *, latencies=(), names=()):
    """Return the Tables of a second: *rows* of (thread, state, ms, stack,
    keywords of sample()), a stack as of a Builder."""
    b = Builder(duration_ns=SECOND_NS, latencies=latencies)
    threads = {}
    for thread, state, ms, stack, *more in rows:
        if thread not in threads:
            threads[thread] = b.thread(thread)
        its = dict(*more)
        route = its.pop('route', None)
        if 'holder' in its:
            its['holder'] = threads[its['holder'][0]], its['holder'][1]
        b.sample(stack, wall_ns=ms * 1_000_000, thread=threads[thread],
                 state=state, labels={'route': route} if route else {}, **its)
    return b.profile()._tables


def library(b, name, filename='/x/site-packages/a.py'):
    module, _, qualname = name.partition('.')
    return b.function(module, qualname, filename, kind=PYTHON)


class Shown:
    """What a terminal of that size shows of what is written to it."""

    def __init__(self, width, height):
        self.size = width, height
        self.rows = [[' '] * width for _ in range(height)]
        self.is_other = False       # the alternate screen
        self.is_cursor_hidden = False
        self.rest = ''
        self._at = 0, 0

    @property
    def text(self):
        return '\n'.join([''.join(row).rstrip() for row in self.rows])

    def feed(self, data):
        text, at = self.rest + data.decode(), 0
        for found in _SEQUENCE.finditer(text):
            self._print(text[at:found.start()])
            at = found.end()
            if found[3]:
                self._do(*found.groups())
        self.rest = text[at:] if '\033' in text[at:] else ''
        self._print(text[at:] if not self.rest else '')

    def _print(self, text):
        for char in text:
            row, column = self._at
            if char == '\n':
                self._at = min(row + 1, self.size[1] - 1), 0
            elif char == '\r':
                self._at = row, 0
            else:
                assert char.isprintable(), repr(char)
                if column < self.size[0]:
                    self.rows[row][column] = char
                self._at = row, column + 1

    def _do(self, private, numbers, letter):
        if private:
            if numbers == '1049':
                self.is_other = letter == 'h'
            elif numbers == '25':
                self.is_cursor_hidden = letter == 'l'
            else:
                assert numbers == '2026', numbers
        elif letter == 'H':
            row, column = map(int, numbers.split(';')) if numbers else (1, 1)
            self._at = row - 1, column - 1
        elif letter == 'J':
            self.rows = [[' '] * self.size[0] for _ in range(self.size[1])]
        else:
            assert letter == 'm', letter


class Pty:
    """The two ends of a terminal of that size."""

    def __init__(self, width, height):
        self.master, self.slave = os.openpty()
        self.resize(width, height)
        self.modes = termios.tcgetattr(self.slave)

    def resize(self, width, height):
        self.shown = Shown(width, height)
        fcntl.ioctl(self.master, termios.TIOCSWINSZ,
                    struct.pack('HHHH', height, width, 0, 0))

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        os.close(self.master)
        os.close(self.slave)

    def read(self, for_s):
        """Return how many bytes were written in that time."""
        count, end = 0, time.monotonic() + for_s
        while (left_s := end - time.monotonic()) > 0:
            if select.select([self.master], [], [], left_s)[0]:
                data = os.read(self.master, 1 << 16)
                self.shown.feed(data)
                count += len(data)
        return count

    def until(self, text, limit_s=30):
        """Read until a text is shown."""
        end = time.monotonic() + limit_s
        while text not in self.shown.text:
            assert time.monotonic() < end, (text, self.shown.text)
            self.read(0.05)

    def type(self, text):
        os.write(self.master, text.encode())
