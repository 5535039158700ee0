"""Marks of processes whose sessions have begun.

This file owns how a process leaves one.  It must not know who counts them.

A process that a signal ends leaves no profile.  So whoever gathers profiles
makes a directory beside them, in which each process leaves an empty file when
it begins, with its number for a name.
"""

import os

from profile_sampling import _core

DIRECTORY = '.sampleprof-begun'


def mark(out):
    """Leave a mark beside the file *out* if anybody wants one.

    In each child of a fork that is profiled, too.
    """
    # A relative name would lead elsewhere later.
    if out is None or not os.path.isabs(out):
        return
    directory = os.path.join(os.path.dirname(out), DIRECTORY)
    if not _leave(directory):
        return
    # The program may take its modules out of sys.modules.
    core = _core.load()

    def mark_child():
        if core.is_written_at_exit():
            _leave(directory)

    os.register_at_fork(after_in_child=mark_child)


def _leave(directory):
    """Make the file; return whether it is there."""
    try:
        os.close(os.open(os.path.join(directory, str(os.getpid())),
                         os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        # Of the program that exec has replaced by this one.
        return True
    except OSError:
        return False
    return True
