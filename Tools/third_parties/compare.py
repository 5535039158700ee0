"""What differs between the plain and the sampled run of a command.

Pure functions over {test: verdict}.  An attempt is a pair of these, plain and
sampled; an attempt is repeated if it differs.
"""

# The command as a whole: whether it came to its end.
COMMAND = 'command'
PASSED = 'passed'
# In every sampled run; without them nothing was sampled.
NEEDED_TOTALS = 'profiles', 'samples'


def differences(plain, sampled):
    return {test: (plain.get(test, 'missing'), sampled.get(test, 'missing'))
            for test in plain.keys() | sampled.keys()
            if plain.get(test) != sampled.get(test)}


def breakdowns(attempts):
    """How the command ended when sampled, as it never did when plain."""
    plain, sampled = [[run.get(COMMAND, PASSED) for run in runs]
                      for runs in zip(*attempts)]
    new = set(sampled) - {*plain, PASSED}
    if not new:
        return {}
    return {COMMAND: (' / '.join(sorted(set(plain))), ' / '.join(sorted(new)))}


def judge(attempts):
    """Return what differs in all attempts and what does at times.

    A crash or a hang under sampling is not excused by attempts without one.
    """
    first, *others = [differences(*attempt) for attempt in attempts]
    always = {test: verdicts for test, verdicts in first.items()
              if all(test in other for other in others)}
    always |= breakdowns(attempts)
    at_times = {test: verdicts for test, verdicts in first.items()
                if test not in always}
    return always, at_times


def lacks(attempt, totals):
    """What is missing of a comparison that means something.

    Two runs may well agree that there are no tests.
    """
    passed = [list(run.values()).count(PASSED) for run in attempt]
    found = {}
    if not all(passed):
        found['passed tests'] = tuple(passed)
    for total in NEEDED_TOTALS:
        if not totals[total]:
            found[total] = 'none', 0
    return found
