"""What the profile of one process leaves out: its children."""

import resource

from profile_sampling._recording.ledger import is_running

# A child that starts this interpreter takes more, helpers of the system less,
# and so does what a child does when its profile is written.
_LEAST_NS = 10_000_000


class Children:
    """Those of this process, from now on.

    *ledger* is what they say, or None if they are not profiled.  Nothing is
    imported later.
    """

    def __init__(self, ledger):
        self._ledger = ledger
        self._begin_ns = _children_ns()
        # As far as said() has learned.
        self.have_files = False

    def said(self):
        """Return what is worth a word, or ''."""
        ns = _children_ns() - self._begin_ns
        if self._ledger is None:
            return not_in_it(ns, 'for those of Python use record -- COMMAND, '
                                 'or {pid} in the name')
        found = self._ledger.read()
        if found is None:
            return (f'Children took {seconds(ns)} s CPU, and may have files '
                    'of their own. ' if ns >= _LEAST_NS else '')
        left = [cpu_ns for cpu_ns in found.values() if cpu_ns is not None]
        self.have_files = bool(left)
        late = len([pid for pid, cpu_ns in found.items()
                    if cpu_ns is None and is_running(pid)])
        said = ''.join([f'Child processes {what}: {number}. ' for what, number
                        in (('with files of their own', len(left)),
                            ('that left none', len(found) - len(left) - late),
                            ('that still run', late)) if number])
        advice = ('for those of Python use record -- COMMAND, or '
                  'PYTHONSAMPLEPROF instead of -X')
        if left:
            advice = ('how they began and ended, and other programs: '
                      f'{advice}')
        return said + not_in_it(uncovered_ns(ns, left), advice,
                                'them' if left else 'it')


def uncovered_ns(ns, covered):
    """Return how much of the CPU time *ns* of processes is in none of their
    profiles, each of which covers so much; 0 for what they take to begin and
    to end."""
    ns -= sum(covered)
    return ns if ns >= _LEAST_NS * (1 + len(covered)) else 0


def not_in_it(ns, advice, it='it'):
    """Return the sentence about so much CPU time of children, or ''."""
    if ns < _LEAST_NS:
        return ''
    return (f'Not in {it}: {seconds(ns)} s CPU of child processes; '
            f'{advice}. ')


def seconds(ns):
    return f'{ns / 1e9:.2f}'


def own_ns():
    """Return the CPU time of this process, without its children."""
    return _ns(resource.RUSAGE_SELF)


def _children_ns():
    """Return the CPU time of all children that have been waited for."""
    return _ns(resource.RUSAGE_CHILDREN)


def _ns(whose):
    usage = resource.getrusage(whose)
    return round((usage.ru_utime + usage.ru_stime) * 1e9)
