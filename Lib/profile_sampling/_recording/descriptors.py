"""A file that is to be opened where the program has taken all descriptors."""

import errno
import os
import resource
# Now: a program may put another one in its place.
from _thread import start_joinable_thread

from profile_sampling import _core

# The number after those of streams, and how many are freed.
_FIRST, _FREED = 3, 4


def with_a_descriptor(function, *arguments):
    """Call a function that opens files and never raises.

    If this process has no descriptor left, it is called on a thread that has
    a table of its own, in which some are free.
    """
    try:
        os.close(os.dup(0))     # if 0 is closed, that one is free
    except OSError as exc:
        if exc.errno == errno.EMFILE:
            _on_own_table(function, arguments)
            return
    function(*arguments)


def _on_own_table(function, arguments):
    core = _core.load()
    end = resource.getrlimit(resource.RLIMIT_NOFILE)[0]

    def run():
        try:
            core.own_descriptors(max(_FIRST, end - _FREED), end)
        except OSError:
            pass        # the function says what is missing
        function(*arguments)

    try:
        core.start_helper(start_joinable_thread, run, True).join()
    except RuntimeError:
        function(*arguments)    # there can be no thread, either
