"""What it costs to follow the lives of asyncio's tasks."""

import statistics

import children
from report import quartiles

# By event loop: what profiling may add to a cycle of suspend, wake and
# resume, in nanoseconds.
MOST_NS = {'asyncio': 150, 'uvloop': 120}
# Of 100,000 tasks at once.
MOST_MB = 40


def measure(report, options):
    measure_cycles(report, 6 if options.quick else 40)
    measure_many(report)


def measure_cycles(report, rounds):
    rows = []
    for loop, most_ns in MOST_NS.items():
        found = children.run_json('tasks_child.py', 'cycle', loop, rounds)
        report.data[loop] = found
        if not found:
            report.say(f'note: {loop} is not installed: not measured')
        for program, pairs in found.items():
            low, median, high = quartiles([on - off for off, on in pairs])
            off, on = zip(*pairs)
            # What disturbs only adds: the least is the program's own.
            added = min(on) - min(off)
            rows.append([f'{program}, {loop}',
                         f'{statistics.median(off):,.0f}',
                         f'{median:.0f} [{low:.0f} {high:.0f}]',
                         f'{added:.0f}'])
            report.bar(f'tasks: added to a cycle of {program} in {loop}',
                       max(added, 0), most_ns, 'ns')
    report.table('A cycle of suspend, wake and resume at 100 Hz, ns',
                 ['program', 'off', 'added: median [quartiles] of pairs',
                  'least on - least off'], rows)


def measure_many(report):
    off, on = [children.run_json('tasks_child.py', 'many', is_on)
               for is_on in (0, 1)]
    report.data['many'] = {'off': off, 'on': on}
    report.table('100,000 tasks at once, four times',
                 ['profiling', 'CPU s', 'resident MB after each'],
                 [[name, f'{found["cpu_s"]:.1f}',
                   ' '.join([f'{mb:.0f}' for mb in found['resident_mb']])]
                  for name, found in (('off', off), ('on', on))])
    report.bar('tasks: memory of 100,000 tasks',
               max(on['resident_mb']) - max(off['resident_mb']), MOST_MB,
               'MB')
    report.bar('tasks: memory that grows after the second time',
               on['resident_mb'][-1] - on['resident_mb'][1], 10, 'MB')
    report.bar('tasks: what is lost of their lives', on['lost'], 0, '')
