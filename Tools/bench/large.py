"""What a profile costs whose tables are full: to save, to load, to report,
with each option, and to export in each format.

The reader that others would use, the package protobuf, parses the same file,
each time right after ours.
"""

import statistics
import tempfile
from pathlib import Path

import children
from profile_sampling._formats import FORMATS
from report import quartiles

SAVE_BAR_S = 2
LOAD_BAR_S = 4
REPORT_BAR_S = 6
REPORT_BAR_MB = 500
_COLUMNS = ('save', 'load', 'report', 'protobuf')
# One of the functions; see large_child.py.
_NAME = 'f7$'
_REPORTS = (
    ('--functions',), ('--tree',), ('--callers', _NAME), ('--callees', _NAME),
    ('--by', 'thread'), ('--by', 'route'), ('--gil',), ('--tasks',),
    ('--opcodes',), ('--listing', _NAME), ('--stats',), ('--focus', _NAME),
    ('--focus', '.'), ('--ignore', _NAME), ('--where', 'route=1'),
    ('--hide', _NAME), ('--hide', _NAME, '--tree'), ('--value', 'cpu'),
    *[('--format', format) for format in ('json', *FORMATS)])


def measure(report, options):
    rounds = 2 if options.quick else 7
    with tempfile.TemporaryDirectory() as directory:
        path = str(Path(directory, 'full.pb.gz'))
        made = children.run_json('large_child.py', 'make', path)
        report.say(', '.join([f'{value:,} {name}' for name, value
                              in made.items()]))
        found = {what: [] for what in _COLUMNS}
        for _ in range(rounds):
            for what in _COLUMNS:
                found[what].append(
                    children.run_json('large_child.py', what, path))
        once = {f'report {" ".join(options)}': children.run_json(
                    'large_child.py', 'report', path, *options)
                for options in _REPORTS}
        once['diff'] = children.run_json('large_child.py', 'diff', path)
    report.data['large'] = {'profile': made, 'runs': found, 'once': once}
    rows = [[what, *[_text([run[column] for run in runs]) for column
                     in ('wall_s', 'cpu_s', 'peak_mb')]]
            for what, runs in found.items() if runs[0] is not None]
    report.table('A profile with full tables: median [quartiles]',
                 ['', 'seconds', 'CPU seconds', 'MB at most'], rows)
    for what, bar in (('save', SAVE_BAR_S), ('load', LOAD_BAR_S),
                      ('report', REPORT_BAR_S)):
        report.bar(f'large: {what}',
                   statistics.median([run['wall_s'] for run in found[what]]),
                   bar, 's')
    report.bar('large: memory of a report',
               max([run['peak_mb'] for run in found['report']]),
               REPORT_BAR_MB, 'MB')
    # Once each, so that it is CPU time: others may use the machine.
    for what, run in once.items():
        report.bar(f'large: {what}', run['cpu_s'], REPORT_BAR_S, 's',
                   f'{run["peak_mb"]:.0f} MB')
    report.bar('large: memory of any of these',
               max([run['peak_mb'] for run in once.values()]),
               REPORT_BAR_MB, 'MB')


def _text(values):
    low, median, high = quartiles(values)
    return f'{median:.2f} [{low:.2f} {high:.2f}]'
