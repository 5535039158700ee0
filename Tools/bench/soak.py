"""Does memory grow?  A long run with code, labels, threads and tasks that are
new each time.  PITFALLS L10."""

import concurrent.futures
import statistics

import children

KINDS = {
    'off': 'nobody samples: what the program itself does',
    'full': 'a session whose tables are full',
    'alone': 'a session, cleared by a snapshot every 10 s',
    'labels': 'the same with labels that are new each time',
    'subscriber': 'a subscriber and no session',
    'tasks': 'a session, cleared, of 100,000 tasks at once, which come and go',
}
LIMIT_MB_PER_MINUTE = 0.2
# The part of the run in which tables fill, caches and arenas reach the size
# that they keep.
WARM_UP = 1 / 3


def slope(points):
    """Least squares, in megabytes per minute, of (seconds, bytes)."""
    x, y = zip(*[(seconds / 60, size / 1e6) for seconds, size in points])
    return statistics.linear_regression(x, y).slope


def measure(report, options):
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        runs = {kind: pool.submit(
            children.run_json, 'soak_child.py', kind, options.soak_seconds,
            timeout_s=3 * options.soak_seconds + 600) for kind in KINDS}
        found = {kind: run.result() for kind, run in runs.items()}
    rows = []
    for kind, run in found.items():
        readings = run['readings']
        after = [reading for reading in readings
                 if reading[0] >= WARM_UP * options.soak_seconds]
        stats = run['stats']
        run['slope_mb_per_minute'] = slope(
            [(seconds, resident) for seconds, resident, *_ in after])
        rows.append([
            kind, f'{run["made"]:,}', f'{readings[0][1] / 1e6:.1f}',
            f'{after[0][1] / 1e6:.1f}', f'{after[-1][1] / 1e6:.1f}',
            f'{run["slope_mb_per_minute"]:+.3f}',
            f'{stats["memory_bytes"] / 1e6:.1f}',
            f'{stats["lost_table_full"]:,}'])
    report.data['soak'] = found
    report.table(f'memory in {options.soak_seconds / 60:.0f} minutes at '
                 '10,000 Hz, MB',
                 ['kind', 'things made', 'first', 'warmed up', 'last',
                  'MB/min', 'profiler', 'lost_table_full'], rows)
    for kind, what in KINDS.items():
        if kind != 'off':
            report.bar(f'growth, {kind} ({what})',
                       max(found[kind]['slope_mb_per_minute'], 0),
                       LIMIT_MB_PER_MINUTE, 'MB/min')
