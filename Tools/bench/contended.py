"""What being profiled costs threads that fight for the GIL.

Four threads on one CPU query SQLite in small steps, as an ORM does that loads
row by row: they give the GIL up and take it back ten thousand times a second.
CPU time of the program and the profiler, and the program's context switches,
with each profiler and without, in turns.
"""

import json
import statistics
import sys

import children
import services_peers
from report import quartiles
from services_run import OURS, Child, on_cpus

RATES_HZ = 100, 1000
STEPS = 300
# Of what the program takes without a profiler.
MOST_CPU = {100: 1.10, 1000: 1.15}
MOST_SWITCHES = 4 / 3        # at the lower rate


def _run(interpreter, steps, rate_hz=0, attach=None):
    """(CPU seconds, context switches) of the program, and of a profiler that
    attaches."""
    with Child(interpreter, 'contended_child.py', steps, rate_hz) as child:
        child.answer()
        attached = attach(child.pid) if attach is not None else None
        child.go_on()
        result = json.loads(child.answer())
        if attached is not None:
            result['cpu_s'] += attached.end()['own_cpu_ns'] / 1e9
    return result['cpu_s'], result['switches']


def _ratios(profiler, path, rate_hz, steps):
    """CPU and context switches with the profiler, against without, just
    before."""
    if profiler == OURS:
        interpreter, own_rate_hz, attach = sys.executable, rate_hz, None
    else:
        interpreter = services_peers.interpreter(profiler, path)
        own_rate_hz = 0

        def attach(pid):
            return services_peers.Attached(profiler, path, pid, rate_hz)
    off = _run(interpreter, steps)
    on = _run(interpreter, steps, own_rate_hz, attach)
    return [a / b for a, b in zip(on, off)], off


def _profilers(report, options):
    """{profiler: path of its executable}, without those that are missing."""
    found = {OURS: None}
    for peer in services_peers.PEERS:
        try:
            found[peer] = services_peers.find(peer, options.peers)
        except children.Unavailable as exc:
            report.say(f'without {peer}: {exc}')
    return found


def measure(report, options):
    rounds, steps = (3, STEPS // 3) if options.quick else (7, STEPS)
    found = {(profiler, path, rate_hz): []
             for profiler, path in _profilers(report, options).items()
             for rate_hz in RATES_HZ}
    without = []
    with on_cpus(1):
        for _ in range(rounds):
            for cell in list(found):
                try:
                    ratios, off = _ratios(*cell, steps)
                except children.Unavailable as exc:
                    report.say(f'without {cell[0]}: {exc}')
                    del found[cell]
                    continue
                found[cell].append(ratios)
                if cell[0] == OURS:
                    without.append(off)
    cpu_s, switches = map(statistics.median, zip(*without))
    report.data['ratios'] = {f'{profiler} {rate_hz}': ratios for
                             (profiler, _, rate_hz), ratios in found.items()}
    report.table(
        f'Four threads that fight for the GIL on one CPU, {cpu_s:.2f} s of '
        f'CPU and {switches:,.0f} context switches without a profiler; times '
        'that with one, median [quartiles]',
        ['profiler', 'Hz', 'CPU', 'switches'],
        [[profiler, f'{rate_hz:,}', *map(_spread, zip(*ratios))]
         for (profiler, _, rate_hz), ratios in found.items()])
    for rate_hz, most in MOST_CPU.items():
        cpu, switches = map(statistics.median,
                            zip(*found[OURS, None, rate_hz]))
        report.bar(f'contended: CPU at {rate_hz:,} Hz, against off', cpu, most,
                   '')
        if rate_hz == RATES_HZ[0]:
            report.bar(f'contended: context switches at {rate_hz:,} Hz, '
                       'against off', switches, MOST_SWITCHES, '')


def _spread(ratios):
    low, median, high = quartiles(ratios)
    return f'{median:.2f} [{low:.2f} {high:.2f}]'
