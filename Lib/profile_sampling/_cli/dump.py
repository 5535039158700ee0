"""The command dump: what each thread of a process does at this moment."""

import json
import re
import sys
import time

from profile_sampling._cli import reached, screen
from profile_sampling._cli.common import (
    _pattern, file_name, show, write_text)
from profile_sampling._reach import as_json, look, text
from profile_sampling._reach.sources import Sources

_DESCRIPTION = '''\
Show what each thread of a process does now: its stack with C functions, its
state and since when, who holds the GIL, what a thread that waits waits for,
and the tasks of asyncio.  The process needs no option and nothing of it runs;
it answers while it hangs, too.
'''
# A file is as wide as that.
_FILE_WIDTH = 120
# The kernel's clock of when a thread ran goes on once a tick of its timer.
_TICK_S = 0.01


def add(commands):
    parser = commands.add_parser(
        'dump', help='show what a process that runs does at this moment',
        description=_DESCRIPTION)
    reached.add_process(parser)
    parser.add_argument('--json', action='store_true',
                        help='as one object of JSON')
    parser.add_argument('--all', action='store_true', dest='everything',
                        help='show each frame')
    parser.add_argument('--mine', metavar='PATTERN', action='append',
                        default=[], type=_pattern,
                        help='this is my code, too, by names of functions or '
                             'files')
    parser.add_argument('--again', metavar='SECONDS', type=float,
                        help='look once more after so long, and say which '
                             'threads have moved')
    parser.add_argument('-o', '--output', metavar='FILE', type=file_name,
                        help='write it to a file, as JSON if its name ends in '
                             '.json; the first three lines are shown, too')
    reached.add_theme(parser)
    parser.set_defaults(run=lambda options: reached.or_refusal(_run, options))


def _run(options):
    process = reached.process_of(options)
    sources = Sources(process)
    mine = [re.compile(pattern) for pattern in options.mine]
    found = look.look(process, mine=mine)
    if options.again is not None:
        time.sleep(max(0.0, options.again))
        before, found = found, look.look(process, mine=mine)
        _say_again(before, found, options.again)
    if options.output is not None:
        reached.write(options.output, _as_text(found, sources, options)
                      if not options.output.endswith('.json')
                      else _as_json(found, sources))
        said = text.three_lines(look.answers(found),
                                reached.width(sys.stderr), text.plain)
        show('\n'.join(said) + '\n')
    elif options.json:
        write_text(_as_json(found, sources))
    else:
        style = reached.style_of(options, sys.stdout)
        said = text.render(found, sources, width=reached.width(sys.stdout),
                           everything=options.everything, style=style)
        sys.stdout.buffer.write(screen.showable(said, None))
        sys.stdout.buffer.flush()


def _as_json(found, sources):
    return json.dumps(as_json.dump(found, sources)) + '\n'


def _as_text(found, sources, options):
    return text.render(found, sources, width=_FILE_WIDTH,
                       everything=options.everything)


def _say_again(before, found, apart_s):
    """Say behind the name of each thread whether it has moved, and whether
    it is still in the call that it was in so long before."""
    places = {thread.native_id: _place(thread) for thread in before.threads}
    for thread in found.threads:
        known = places.get(thread.native_id)
        is_still = (thread.since_s is not None
                    and thread.since_s >= apart_s - _TICK_S)
        thread.name += ('   new' if known is None else
                        '   moved' if known != _place(thread) else
                        '   same place, same call' if is_still else
                        '   same place')


def _place(thread):
    return [(line.function, line.line) for line in thread.lines
            if isinstance(line, look.Line)]
