"""What differs between the runs, and which differences have a reason.

Pure functions over the attempts of each test file.
"""

import collections
import fnmatch

from testfile import has_ended_itself

MISSING = 'missing'

# kind: 'differs', 'flaky' or 'listed'; stock and run are sets of verdicts.
Difference = collections.namedtuple(
    'Difference', 'kind test case stock run reason')


def read_exceptions(path):
    """The list of exceptions as {pattern: reason}."""
    exceptions = {}
    for line in path.read_text('utf-8').splitlines():
        if line and not line.startswith('#'):
            pattern, reason = line.split('\t')
            exceptions[pattern] = reason
    return exceptions


def verdicts(attempts):
    """{case: [a verdict per attempt]}; the file as a whole is None."""
    names = {name for attempt in attempts for name in attempt['cases']}
    table = {name: [attempt['cases'].get(name, MISSING)
                    for attempt in attempts] for name in names}
    table[None] = [attempt['state'] for attempt in attempts]
    return table


def reason_for(test, case, exceptions):
    for pattern, reason in exceptions.items():
        if pattern == test or (case is not None
                               and fnmatch.fnmatchcase(case, pattern)):
            return reason
    return None


def has_broken_down(states):
    return not all(has_ended_itself(state) for state in states)


def differences(test, stock_attempts, run_attempts, exceptions):
    """The differences of one test file, a list of Difference.

    Verdicts that a case has had in both runs are no difference, but the case
    is flaky if it has had another one as well.  A crash or a hang that stock
    never had is a difference, however often the file has run besides.
    """
    stock, run = verdicts(stock_attempts), verdicts(run_attempts)
    found = []
    for case in stock.keys() | run.keys():
        seen_stock = set(stock.get(case, [MISSING]))
        seen_run = set(run.get(case, [MISSING]))
        if len(seen_stock | seen_run) == 1:
            continue
        reason = reason_for(test, case, exceptions)
        if case is None and has_broken_down(seen_run - seen_stock):
            kind = 'differs'
        elif seen_stock & seen_run:
            kind = 'flaky'
        else:
            kind = 'differs' if reason is None else 'listed'
        found.append(Difference(kind, test, case, seen_stock, seen_run,
                                reason))
    return sorted(found, key=lambda difference: difference.case or '')
