"""The screen from its beginning to its end.

A feed has take() -> (Tables or None, Look), which raises Refusal when the
process has ended or does not answer, save(path), and ending, which says how the
process has ended, or ''.
"""

import os
import signal
import time

from profile_sampling._reach.processes import Process, Refusal
from profile_sampling._top import lines

SECOND_S = 1.0
# Where the cursor cannot be moved.
BLOCK_S = 5.0


def interactive(stops, terminal, *, every_s=SECOND_S, show_dump):
    """Show a screen until it is left.

    *stops*: (Screen, feed) of each process; Tab goes from one to the next.
    Feeds are asked in this order.  *show_dump* returns the lines of a dump of
    a process at a width.
    """
    due = shown = time.monotonic()
    is_fresh = True
    at = 0
    while True:
        screen, feed = stops[at]
        now = time.monotonic()
        if now >= due and stops[0][0].ended is None:
            for its in stops:
                if its[0].ended is None:
                    take(*its)
            due = max(due + SECOND_S, now)
            is_fresh = True
        screen.interval_s = max(every_s, terminal.interval_s)
        if is_fresh and now >= shown and not screen.is_paused:
            terminal.draw(screen.render(*terminal.size))
            shown = now + (screen.interval_s if screen.interval_s > SECOND_S
                           else 0)
            is_fresh = False
        wait_s = due - time.monotonic() if stops[0][0].ended is None else 60.0
        keys = terminal.keys(wait_s)
        if terminal.ended_by is not None:
            return
        for key in keys:
            if key == 'Tab':
                at = (at + 1) % len(stops)
            elif not _do(*stops[at], terminal, key, show_dump):
                return
        if keys or terminal.is_resized:
            terminal.draw(stops[at][0].render(*terminal.size))


def take(screen, feed):
    """Have a screen take in one more second of a feed."""
    try:
        screen.add(*feed.take())
        screen.silent_since = None
    except Refusal as exc:
        pid = screen.process.pid
        if _has_ended(pid):
            how = f', {feed.ending}' if feed.ending else ''
            screen.ended = f'ended at {time.strftime("%H:%M:%S")}{how}.'
        elif exc.reason == 'no-answer':
            screen.silent_since = screen.silent_since or time.time()
        else:
            screen.ended = exc.text.removeprefix(f'PID {pid} ')


def _has_ended(pid):
    try:
        return Process(pid).state in 'ZX'
    except Refusal:
        return True


def _do(screen, feed, terminal, key, show_dump):
    """Do what a key says; return whether to go on."""
    if key in ('\x1a', '\x0c'):
        if key == '\x1a':
            terminal.suspend()
        terminal.forget()
        return True
    match screen.key(key):
        case 'quit':
            return False
        case 'dump':
            try:
                screen.show(show_dump(screen.process, terminal.size[0]))
            except Refusal as exc:
                screen.note = exc.text
        case 'save':
            try:
                feed.save(screen.typed)
                screen.note = f'Saved {screen.typed}.'
            except (OSError, ValueError) as exc:
                screen.note = f'Not saved: {exc}'
        case 'theme':
            terminal.style = terminal.style.other_ground()
            terminal.forget()
    return True


def blocks(screen, feed, write, text_of, *, every_s=BLOCK_S, is_once=False):
    """Write text_of(screen) every few seconds, or once after so many."""
    take(screen, feed)
    due = time.monotonic() + every_s
    while screen.ended is None:
        left_s = due - time.monotonic()
        if left_s > 0:
            time.sleep(min(left_s, SECOND_S))
            take(screen, feed)
        else:
            write(text_of(screen))
            if is_once:
                return
            due += every_s
    write(text_of(screen))


def die_by(number):
    """End as a signal ends a process."""
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def as_text(screen, width, style=None):
    """Return a block as text."""
    block = screen.block(width)
    return lines.plain(block) if style is None else lines.painted(block, style)
