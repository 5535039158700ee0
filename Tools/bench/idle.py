"""Whether a tick costs more when there are many threads that sleep."""

import statistics

import children
from report import quartiles

RATE_HZ = 1000
IDLE_THREADS = (0, 100, 1000)
MOST_TIMES = 1.2


def measure(report, options):
    rounds = 3 if options.quick else 11
    seconds = 0.5 if options.quick else 3
    found = {count: [] for count in IDLE_THREADS}
    # Interleaved, since the machine is shared.
    for _ in range(rounds):
        for count in IDLE_THREADS:
            result = children.run_json('idle_child.py', count, RATE_HZ,
                                       seconds)
            found[count].append(result['tick_us'])
    report.data['tick_us'] = found
    rows = []
    for count in IDLE_THREADS:
        low, median, high = quartiles(found[count])
        rows.append([f'{count:,}', f'{median:.1f} [{low:.1f} {high:.1f}]'])
    report.table(f'CPU time of a tick at {RATE_HZ:,} Hz, two busy threads, '
                 'us: median [quartiles]', ['idle threads', 'a tick'], rows)
    report.bar('idle: a tick with 1,000 idle threads, against none',
               statistics.median(found[1000]) / statistics.median(found[0]),
               MOST_TIMES, '')
