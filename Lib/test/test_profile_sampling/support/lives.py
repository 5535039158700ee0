"""Lives of tasks, on the clock that the tests themselves tick."""

from .manual import tick


def lives(profile):
    """{name of the coroutine: (running, loop wait, awaiting), in ns}."""
    return {row.name.rpartition('.')[2]:
            (row.running_ns, row.loop_wait_ns, row.awaiting_ns)
            for row in profile.tasks()}


def spend(ns):
    """So much time passes on the wall clock."""
    tick(ns, 0)
