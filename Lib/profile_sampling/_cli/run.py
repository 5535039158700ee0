"""One run of a program as a child, with a profile of all its processes.

This file owns what is done with the profile of a run.  It must not know how
a child is waited for, nor how profiles are added up.
"""

import os
import sys

from profile_sampling import _files
from profile_sampling._cli import child, gather, meta, program
from profile_sampling._cli.common import say


def profiled(wanted, options, parts):
    """Run a Program; return how it Ended, and the tables of its profile.

    There are none, None, if nothing was recorded; then that is said.
    """
    session = program.session_text(options, out=parts.out, quiet=True)
    ended = child.run(wanted.command(),
                      os.environ | {'PYTHONSAMPLEPROF': session})
    return ended, parts.merged(meta.of(wanted) if options.meta else {})


def to_file(wanted, options, format, output):
    """Run a program and write its profile.

    Return its status, or 1 if that is 0 and nothing was recorded.
    """
    parts = gather.Parts(None if _files.descriptor(output) is not None
                         else output)
    try:
        ended, tables = profiled(wanted, options, parts)
        if tables is None:
            say_nothing_written(wanted)
            return ended.status or 1
        parts.save(tables, output, format)
        files = len(parts.paths())
    finally:
        parts.remove()
    if not options.quiet:
        say(f'wrote {output}, of {files:,} '
            f'{"process" if files == 1 else "processes"}')
    return ended.status


def say_nothing_written(wanted):
    say(f'nothing was recorded: no process of "{wanted.name}" ran '
        f'{sys.executable} or another build of it that profiles, or all of '
        'them were killed')
