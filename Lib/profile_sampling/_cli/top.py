"""The command top: what a process does, second by second."""

import argparse
import contextlib
import os
import re
import sys
import time

from profile_sampling._cli import reached
from profile_sampling._cli.common import (
    Failure, add_idle, add_mine, lose_stdout, write_text)
from profile_sampling._cli.screen import screen_of
from profile_sampling._formats import style as styles
from profile_sampling._reach import look as looking
from profile_sampling._reach import processes
from profile_sampling._reach import text as dumps
from profile_sampling._reach.sources import Sources
from profile_sampling._top import as_json, lines, loop, terminal, views
from profile_sampling._top.answers import SLOW_S
from profile_sampling._top.feed import Family, Feed, Member
from profile_sampling._top.screen import Screen

_DESCRIPTION = '''\
Show what a process does, now and since you came: who is slow, at which line,
who holds the GIL; then its lines, functions, C calls, routes, tasks, threads
and waits.  Shares are of the time of all threads, idle ones left out.  The
process needs no option, nothing of it runs, and nothing stays in it.
'''
_ENDED = 3


def add(commands):
    parser = commands.add_parser(
        'top', help='watch a process that runs', description=_DESCRIPTION)
    reached.add_process(parser)
    parser.add_argument('--children', action='store_true',
                        help='with the Python processes that it has started: '
                             'first their sum, Tab shows each')
    parser.add_argument('--by', choices=views.NAMES, default='line',
                        help='which table is shown first (default: line)')
    parser.add_argument('--once', action='store_true',
                        help='print one screen and end')
    parser.add_argument('--for', metavar='SECONDS', type=_seconds, default=5.0,
                        dest='for_s', help='of how long that is (default: 5; '
                                           '0: of a moment)')
    parser.add_argument('--json', action='store_true',
                        help='one object of JSON a second, or with --once one')
    parser.add_argument('--page', action='store_true',
                        help='show it in a browser: print the address of a '
                             'page that this command serves')
    parser.add_argument('--every', metavar='SECONDS', type=_seconds,
                        default=1.0, help='how often the screen is written '
                                          '(default: 1)')
    parser.add_argument('--rate', metavar='HZ', type=_rate, default=100,
                        help='samples a second (default: 100)')
    parser.add_argument('--slow', metavar='SECONDS', type=_seconds,
                        default=SLOW_S, help='a request that takes so long is '
                                             'slow (default: 1)')
    add_mine(parser)
    add_idle(parser)
    reached.add_theme(parser)
    parser.set_defaults(run=lambda options: reached.or_refusal(_run, options))


def _seconds(text):
    try:
        value = float(text.removesuffix('s'))
    except ValueError:
        value = -1.0
    if not 0 <= value < 1e6:
        raise argparse.ArgumentTypeError(f'{text} is no number of seconds')
    return value


def _rate(text):
    if not text.isdecimal() or not 1 <= int(text) <= 1000:
        raise argparse.ArgumentTypeError('a rate is 1 to 1000')
    return int(text)


def _run(options):
    process = reached.process_of(options)
    process.check()
    if options.page:
        with reached.until_signal():
            return _serve(process, options)
    mine = [re.compile(pattern) for pattern in options.mine]
    ended_by = None
    with contextlib.ExitStack() as stack:
        feed = stack.enter_context(Feed(process, rate_hz=options.rate,
                                        mine=mine))
        stops = ([(_screen(process, options), feed)] if not options.children
                 else _stops_of_family(process, feed, options, mine, stack))
        screen = stops[0][0]
        try:
            ended_by = _show(stops, options, lambda process, width: _dump(
                process, mine, width))
        except KeyboardInterrupt:
            pass        # it has been seen
    if ended_by is not None:
        # Not before the process is left alone.
        loop.die_by(ended_by)
    return 0 if screen.ended is None else _ENDED


def _stops_of_family(process, feed, options, mine, stack):
    """Return the stops: the sum, the process, and those that it has started,
    to which come those that it starts."""
    members, feeds, stops = [process], [feed], []

    def grow():
        processes.add_children(process, members, add)

    def add(its):
        feeds.append(stack.enter_context(Feed(
            its, rate_hz=options.rate, mine=mine)))
        members.append(its)
        stops.append((_screen(its, options),
                      Member(family, len(members) - 1)))

    family = Family(feeds, grow)
    stops += [(_screen(processes.family(members), options), family),
              (_screen(process, options), Member(family, 0))]
    grow()
    return stops


def _screen(process, options):
    screen = Screen(process, mine=options.mine, view=options.by,
                    sources=Sources(process), slow_s=options.slow)
    screen.is_all, screen.is_idle = options.all, options.idle
    return screen


_PAGE = '''\
PID {pid} as a page:  {address}
Only this machine can open it, and only with the address as it stands.
From yours, if this is a container or a server:
    kubectl port-forward POD {port}        ssh -L {port}:127.0.0.1:{port} HOST
Ctrl-C ends it. A page that is open then keeps its figures and says so.
'''


def _serve(process, options):
    if options.json or options.once or options.children:
        raise Failure('--page has no --json, --once and --children', 2)
    from profile_sampling._live.seconds import Seconds
    from profile_sampling._live.server import Server
    seconds = Seconds(process, rate_hz=options.rate, mine=options.mine)
    server = Server(seconds)
    try:
        write_text(_PAGE.format(pid=process.pid, address=server.address,
                          port=server.port))
        seconds.run()
        if seconds.screen.ended is not None:
            write_text(f'PID {process.pid} {seconds.screen.ended}  '
                 'Its last figures are served until Ctrl-C.\n')
            while True:
                time.sleep(3600)
    except KeyboardInterrupt:
        pass        # it has been seen
    finally:
        server.close()
    return 0 if seconds.screen.ended is None else _ENDED


def _show(stops, options, show_dump):
    """Return the signal that ended it, or None."""
    screen, feed = stops[0]
    if options.json or options.once or not _is_terminal():
        if sys.stdout is None:
            raise Failure('cannot write to stdout: it is closed')
        _write_blocks(screen, feed, options)
        return None
    fd = (sys.stdin if sys.stdin is not None and sys.stdin.isatty()
          else sys.stdout).fileno()
    style, typed = _style(options, fd)
    shown = terminal.Terminal(fd, style, is_utf8=_is_utf8(), typed=typed)
    try:
        with shown:
            loop.interactive(stops, shown, every_s=options.every,
                             show_dump=show_dump)
    except EOFError:
        return None     # the terminal is lost
    finally:
        try:
            _write(loop.as_text(screen, reached.width(sys.stdout), style))
        except OSError:
            lose_stdout()
    return shown.ended_by


def _write_blocks(screen, feed, options):
    if options.json:
        loop.blocks(screen, feed, write_text, as_json.line,
                    every_s=options.for_s if options.once else loop.SECOND_S,
                    is_once=options.once)
        return
    if options.once:
        width, style = (reached.width(sys.stdout),
                        reached.style_of(options, sys.stdout))
    else:
        width, style = 120, None
        if sys.stdout.isatty():
            _write('This terminal cannot move its cursor: a block every 5 s.'
                   '  Ctrl-C ends.\n')
    loop.blocks(screen, feed, _write if options.once else
                lambda text: _write(text + '\n'),
                lambda screen: loop.as_text(screen, width, style),
                every_s=options.for_s if options.once else loop.BLOCK_S,
                is_once=options.once)


def _write(text):
    encoding = sys.stdout.encoding or 'utf-8'
    if not _is_utf8():
        text = lines.without_utf8(text)
    sys.stdout.buffer.write(
        screen_of(None).shown(text).encode(encoding))
    sys.stdout.buffer.flush()


def _is_terminal():
    return (sys.stdout is not None and sys.stdout.isatty()
            and os.environ.get('TERM', 'dumb') != 'dumb')


def _is_utf8():
    return (sys.stdout.encoding or '').lower().replace('-', '') == 'utf8'


def _style(options, fd):
    """Return the Style, and what was typed while the terminal was asked."""
    is_dark, typed = None, ''
    if (options.theme is None and screen_of(None).color
            and 'COLORFGBG' not in os.environ
            and os.environ.get('TERM') != 'linux'):
        is_dark, typed = terminal.ask_is_dark(fd)
    if is_dark is None:
        is_dark = styles.is_dark(options.theme)
    return styles.Style(styles.depth() if screen_of(None).color else 0,
                        is_dark), typed


def _dump(process, mine, width):
    text = dumps.render(looking.look(process, mine=mine), Sources(process),
                        width=width, style=lambda words, style='': words)
    return [[(line, '')] for line in text.splitlines()]
