"""What subscribers cost, and how many samples they keep up with."""

import statistics

import children
from report import quartiles

RATE_HZ = 10_000
COST_THREADS = 1
# What each run has subscribed to, beside the first: a session, for scale.
CROWDS = ([], ['none'], ['none'] * 2, ['none'] * 4, ['numbers'], ['objects'])
LOAD_THREADS = 8
LOADS = (['numbers'], ['objects'])


def _run(n_threads, seconds, names):
    return children.run_json('events_child.py', n_threads, RATE_HZ, seconds,
                             *names)


def _title(names):
    if not names:
        return 'no subscriber: a session'
    if len(names) > 1:
        return f'{len(names)} x {names[0]}'
    return names[0]


def _costs(report, rounds, seconds):
    """Interleaved, since the machine is shared."""
    found = {i: [] for i in range(len(CROWDS))}
    for _ in range(rounds):
        for i, names in enumerate(CROWDS):
            core = (result := _run(COST_THREADS, seconds, names))['core']
            samples = max(core['samples'] or sum(
                [one['samples'] for one in result['subscriptions']])
                / max(len(names), 1), 1)
            captures = max(core['captures'], 1)
            found[i].append((core['overhead_drain_ns'] / captures / 1000,
                             core['subscribers_cpu_ns'] / samples / 1000))
    report.data['costs'] = {_title(names): found[i]
                            for i, names in enumerate(CROWDS)}
    rows = []
    for i, names in enumerate(CROWDS):
        row = [_title(names)]
        for column in (0, 1):
            low, median, high = quartiles([run[column] for run in found[i]])
            row.append(f'{median:.2f} [{low:.2f} {high:.2f}]')
        rows.append(row)
    report.table(
        f'Cost of a sample at {RATE_HZ:,} Hz, depth 20, us: median '
        '[quartiles]', ['subscribers', 'drain', 'their own CPU'], rows)


def _loads(report, rounds, seconds):
    rows = []
    report.data['loads'] = {}
    for names in LOADS:
        results = [_run(LOAD_THREADS, seconds, names) for _ in range(rounds)]
        report.data['loads'][_title(names)] = results
        stats = [result['subscriptions'][0] for result in results]
        per_second = statistics.median(
            [one['samples'] / result['seconds']
             for one, result in zip(stats, results)])
        lost = sum([one['lost'] for one in stats])
        merged = sum([one['merged'] for one in stats])
        cpu = statistics.median(
            [result['core']['subscribers_cpu_ns'] / result['seconds'] / 1e7
             for result in results])
        rows.append([_title(names), f'{per_second:,.0f}', f'{merged:,}',
                     f'{lost:,}', f'{cpu:.1f} %'])
        # Nothing may vanish: what was not delivered was counted.
        report.bar(f'events: records lost by a subscriber to '
                   f'{LOAD_THREADS} threads, {_title(names)}', lost, 0, '')
    report.table(
        f'{LOAD_THREADS} threads at {RATE_HZ:,} Hz, {rounds} runs',
        ['subscriber', 'samples/s', 'merged', 'lost', 'of a CPU'], rows)


def measure(report, options):
    rounds = 3 if options.quick else 9
    seconds = 0.5 if options.quick else 2
    _costs(report, rounds, seconds)
    _loads(report, max(rounds // 3, 1), seconds)
