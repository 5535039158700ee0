"""The summary of the runs as text."""

import collections

VERDICTS = 'passed', 'skipped', 'failed as expected', 'failed', \
    'passed unexpectedly'
RAN = 'ran'
HEADINGS = {
    'differs': 'Differences without a reason',
    'listed': 'Differences with a reason',
    'flaky': 'Flaky: the same verdict in both, and another one now and then',
}


def brief(attempt):
    counts = collections.Counter(attempt['cases'].values())
    told = [f'{counts[verdict]} {verdict}' for verdict in VERDICTS
            if counts[verdict]]
    if attempt['state'] != RAN:
        told.insert(0, attempt['state'])
    return f'{", ".join(told) or "no cases"}, {attempt["seconds"]} s'


def make(runs, tests, rows, exceptions):
    """Return (text, whether all is as it has to be)."""
    lines = ['', f'CPython\'s test suite: {len(tests)} test files', '']
    lines += table(runs, tests)
    good = True
    for kind, heading in HEADINGS.items():
        found = [(name, row) for name in rows for row in rows[name]
                 if row.kind == kind]
        if found:
            lines += ['', f'{heading}: {len(found)}']
            lines += [line for name, row in found
                      for line in tell(name, row)]
            good = good and kind != 'differs'
    used = {row.reason for name in rows for row in rows[name]}
    idle = [pattern for pattern, reason in exceptions.items()
            if reason not in used]
    if idle:
        lines += ['', 'Listed as an exception, but no difference seen:']
        lines += [f'  {pattern}' for pattern in idle]
    told, valid = tell_profiles(runs['sampled'], tests)
    return '\n'.join([*lines, '', *told]), good and valid


def table(runs, tests):
    lines = [f'{"run":8} {"files":>6} {"cases":>7} {"passed":>7} '
             f'{"skipped":>7} {"failed":>7} {"other":>7} {"hours":>6}  '
             'files that did not just run']
    for run in runs.values():
        # The last attempt: it was alone if there was more than one.
        last = [run.attempts(test)[-1] for test in tests]
        counts = collections.Counter(
            verdict for attempt in last
            for verdict in attempt['cases'].values())
        total = counts.total()
        other = total - sum(counts[verdict] for verdict in
                            ('passed', 'skipped', 'failed'))
        states = collections.Counter(attempt['state'] for attempt in last)
        del states[RAN]
        hours = sum(attempt['seconds'] for attempt in last) / 3600
        lines.append(
            f'{run.name:8} {len(last):6,} {total:7,} '
            f'{counts["passed"]:7,} {counts["skipped"]:7,} '
            f'{counts["failed"]:7,} {other:7,} {hours:6.2f}  '
            + ', '.join(f'{count} {state}'
                        for state, count in sorted(states.items())))
    return lines


def tell(name, row):
    where = row.case or f'{row.test} (the file)'
    yield (f'  {name}: {where}: {" / ".join(sorted(row.run))}, stock: '
           f'{" / ".join(sorted(row.stock))}')
    if row.kind == 'listed':
        yield f'      {row.reason}'


def tell_profiles(run, tests):
    totals = collections.Counter()
    invalid = []
    for test in tests:
        for attempt in run.attempts(test):
            found = attempt['profiles']
            for key in 'files', 'samples', 'checked':
                totals[key] += found[key]
            invalid += [f'  {test} {name}: {why}'
                        for name, why in found['invalid'].items()]
    lines = [f'Profiles: {totals["files"]:,} written, '
             f'{totals["samples"]:,} samples; {totals["checked"]:,} checked, '
             f'{len(invalid)} invalid']
    return lines + invalid, totals['files'] > 0 and not invalid
