"""What it costs to count calls, beside cProfile and yappi.

A way counts or does not, by turns, in one process: what a call takes more, and
how much longer whole programs of the standard library take.
"""

import statistics

import children

WAYS = 'queries', 'python', 'all', 'cProfile', 'yappi'
# What a call may take more, in ns, and programs, as a factor.
MOST_NS = {
    'queries': {name: 1 for name in ('f()', 'A()', 'len')},
    'python': {'f()': 35, 'f(); f()': 55},
    'all': {'f()': 60, 'A()': 140, 'len': 50, 'append': 50, 'min': 50}}
MOST_TIMES = {'python': 1.15, 'all': 1.45}


def measure(report, options):
    rounds = 3 if options.quick else 7
    found = {}
    for way in WAYS:
        try:
            found[way] = children.run_json('calls_child.py', way, rounds)
        except children.Unavailable as exc:
            if way != 'yappi':
                raise
            report.say(f'yappi is left out: {str(exc).splitlines()[-1]}')
    report.data['ways'] = found
    _loops(report, found)
    _programs(report, found)


def _loops(report, found):
    off = found['python']['loops']
    rows = [['off', *[f'{alone:.0f}' for alone, _ in off.values()]]]
    rows += [[way, *[f'{added:+.0f}' for _, added in result['loops'].values()]]
             for way, result in found.items()]
    report.table('CPU time of a call, ns: alone, and what is added',
                 ['', *off], rows)
    for way, limits in MOST_NS.items():
        for name, limit in limits.items():
            report.bar(f'calls: {way}, {name}',
                       found[way]['loops'][name][1], limit, 'ns',
                       either_way=False)


def _programs(report, found):
    names = list(found['python']['programs'])
    means = {way: statistics.geometric_mean(result['programs'].values())
             for way, result in found.items()}
    report.table(
        'CPU time of programs, times that without', ['', *names, 'mean'],
        [[way, *[f'{result["programs"][name]:.2f}' for name in names],
          f'{means[way]:.2f}'] for way, result in found.items()])
    for way, limit in MOST_TIMES.items():
        report.bar(f'calls: {way}, programs', means[way], limit, 'times')
