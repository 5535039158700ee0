"""Time off the GIL, in intervals from 5 us to 10 ms, mixed.

Sites of a program wait, or work in C, without the GIL; it times each call.
Of every site the time of its line is compared with that, as the session
tells it and as a subscriber does who wants a tenth of the samples.
"""

import sys

import children
from services_off_gil_child import SITES

RATE_HZ = 1000
SUBSCRIBER_RATE_HZ = 100
# Several processes, each of another order of the calls.
RUNS, QUICK_RUNS = 4, 1
RUN_S, QUICK_RUN_S = 55, 15

SESSION_BAR_PERCENT = 1.5
SUBSCRIBER_BAR_PERCENT = 3


def _sums(results, key):
    return [sum(values) for values in zip(*[r[key] for r in results])]


def _noise_percent(true_ns, length_ns, rate_hz):
    """One standard deviation: a deadline lies anywhere in four periods, so
    the number in a long interval has a variance of 4/3."""
    period_ns = 1e9 / rate_hz
    variance = min(length_ns / period_ns, 4 / 3) * true_ns / length_ns
    return variance ** 0.5 * period_ns / true_ns * 100


def measure(report, options):
    results = []
    seconds = QUICK_RUN_S if options.quick else RUN_S
    for seed in range(QUICK_RUNS if options.quick else RUNS):
        print(f'running off_gil {seed} ...', file=sys.stderr, flush=True)
        results.append(children.run_json(
            'services_off_gil_child.py', RATE_HZ, SUBSCRIBER_RATE_HZ,
            seconds, seed))
    report.data['off_gil'] = results
    true_ns, calls = _sums(results, 'true_ns'), _sums(results, 'calls')
    rows, worst = [], {}
    for i, name in enumerate(SITES):
        row = [name, f'{calls[i]:,}', f'{true_ns[i] / calls[i] / 1000:.1f}',
               f'{true_ns[i] / 1e6:.0f}']
        for who, rate_hz in (('session', RATE_HZ),
                             ('subscriber', SUBSCRIBER_RATE_HZ)):
            error = (_sums(results, f'{who}_ns')[i] / true_ns[i] - 1) * 100
            noise = _noise_percent(true_ns[i], true_ns[i] / calls[i], rate_hz)
            row += [f'{error:+.2f}', f'{noise:.2f}']
            worst[who] = max(worst.get(who, (0, 0, '')),
                             (abs(error), error, name))
        rows.append(row)
    report.table(
        f'Off the GIL, session at {RATE_HZ:,} Hz, subscriber at '
        f'{SUBSCRIBER_RATE_HZ} Hz: errors in % of the time of each site',
        ['site', 'calls', 'us each', 'ms', 'session', 'noise', 'subscriber',
         'noise'], rows)
    samples = sum([result['subscriber_samples'] for result in results])
    report.say('  samples a second that the subscriber got: '
               f'{samples / len(results) / seconds:.0f}')
    report.say()
    for who, limit in (('session', SESSION_BAR_PERCENT),
                       ('subscriber', SUBSCRIBER_BAR_PERCENT)):
        _, error, name = worst[who]
        report.bar(f'services: off the GIL, worst site, {who}', error, limit,
                   '%', f'({name})')
