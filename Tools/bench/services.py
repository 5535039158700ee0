"""How true the profiler's answers are for services, which wait and work.

Programs that know the answer: bursts of six lines between waits of several
kinds, on one CPU and on two, alone and beside processes that spin.  What
each line took is measured by the program itself (services_burst.py); its
share of the burst is compared with the share that a profiler gives it, in
percentage points.  Other profilers look at the same programs in the same
cells, in runs of their own.  All of it takes some four hours.

Two more parts: services_off_gil.py and services_cost.py.
"""

import signal
import sys

import services_cells
import services_cost
import services_off_gil
import services_peers
import services_run
from children import Unavailable
from services_score import Scores

OURS = services_run.OURS
WORST_BAR_POINTS = 1.2
SHORT_MS, SHORT_WORST_BAR_POINTS = 0.1, 2
MEAN_BAR_POINTS = 0.5
HALF_BAR = 0.02
WHOLE_BAR_PERCENT = 3
SERVED_BAR_PERCENT = 3
BIASED_BAR_PERCENT = 2
CROWDED_WORST_BAR_POINTS = 3
# The bars are for so many.
MIN_SAMPLES = 5000
# A peer is better if it is so by more than this many standard deviations.
PEER_SIGMAS = 2


def _find_peers(report, options):
    """{peer: path} of those that are there."""
    found = {}
    for name in services_peers.PEERS:
        try:
            found[name] = services_peers.find(name, options.peers)
        except Unavailable as exc:
            report.fail(f'services: {exc}')
    return found


def _measure_cell(report, cell, paths, quick):
    """{profiler: Scores}; one that failed is missing, and a bar tells."""
    scores = {}
    for profiler in (OURS, *paths):
        print(f'running {cell.name} {profiler} ...', file=sys.stderr,
              flush=True)
        try:
            result = services_run.run(cell, profiler, paths.get(profiler),
                                      *cell.lengths(profiler == OURS, quick))
            scores[profiler] = Scores(result, cell.rate_hz)
        except Unavailable as exc:
            report.fail(f'services: {cell.name}, {profiler}: {exc}')
            continue
        report.data['cells'].append({
            'cell': cell._asdict(), 'profiler': profiler, 'result': result,
            'scores': {key: value and vars(value) if key in ('wall', 'cpu')
                       else value
                       for key, value in vars(scores[profiler]).items()}})
    return scores


def _percent(share):
    return '-' if share is None else f'{share * 100:.1f}'


def _beyond_all(share):
    """In %; None if it is not known."""
    return None if share is None else (share - 1) * 100


def _clock(score):
    if score is None:
        return ['-'] * 4
    return [f'{score.worst:.2f}', f'{score.noise:.2f}', f'{score.mean:.2f}',
            f'{score.half:.3f}']


def _our_row(cell, scores):
    return [f'{cell.service} {cell.burst_ms:g} ms', *_clock(scores.wall),
            *_clock(scores.cpu), f'{scores.samples:,}',
            _percent(scores.whole), _percent(scores.served),
            _percent(scores.biased), _percent(scores.late),
            _percent(scores.hooks), _percent(scores.ticks)]


def _peers_row(cell, scores, names):
    row = [f'{cell.service} {cell.burst_ms:g} ms']
    for name in names:
        if name not in scores:
            row += ['-'] * 6
            continue
        worst, noise, _, half = _clock(scores[name].wall)
        row += [worst, noise, half, f'{scores[name].samples:,}',
                _percent(scores[name].served),
                _percent(scores[name].own_cpu)]
    return row


def _tables(report, found, paths):
    """For each group of cells one of ours, and one of all profilers."""
    groups = {}
    for cell, scores in found.items():
        groups.setdefault(cell.group, []).append((cell, scores))
    for (cpus, crowd, rate_hz), members in groups.items():
        where = (f'{cpus} CPU{"s" if cpus > 1 else ""}, '
                 f'{"beside two that spin" if crowd else "alone"}, '
                 f'{rate_hz:,} Hz')
        report.table(
            f'Services, {where}: errors in points of the burst',
            ['burst', 'wall worst', 'noise', 'mean', 'half', 'cpu worst',
             'noise', 'mean', 'half', 'samples', 'whole %', 'served %',
             'biased %', 'late %', 'hooks %', 'ticks %'],
            [_our_row(cell, scores[OURS]) for cell, scores in members
             if OURS in scores])
        report.table(
            f'Services, {where}: all profilers, wall clock',
            ['burst', *[column for name in (OURS, *paths)
                        for column in (name, 'noise', 'half', 'samples',
                                       'served %', 'CPU %')]],
            [_peers_row(cell, scores, (OURS, *paths))
             for cell, scores in members])
    report.say('  whole: time that the burst was given beside all other code, '
               'of what it took')
    report.say('  half: share of the first half of the burst, where 0.5 is '
               'true; noise: standard')
    report.say('  deviation if samples were drawn at random; served: samples '
               'of those due; the')
    report.say('  truth of the CPU clock is calibrated by every fifth burst; '
               'hooks, ticks, CPU: what')
    report.say('  the profiler took, of the CPU time of the service')


def _worst_of(report, title, values, limit, unit):
    """A bar for the cell that is the farthest off; None is the farthest."""
    if not values:
        return
    value, name = max(values, key=lambda pair: (
        pair[0] is None, abs(pair[0] or 0)))
    report.bar(f'services: {title}', value, limit, unit, f'({name})')


def _bars(report, found, cpus, quick):
    """Of ours, at 1,000 Hz, on so many CPUs."""
    ours = {cell: scores[OURS] for cell, scores in found.items()
            if OURS in scores and cell.cpus == cpus
            and cell.rate_hz == services_cells.RATE_HZ}
    alone = {cell: own for cell, own in ours.items() if not cell.crowd}
    where = f'{cpus} CPU{"s" if cpus > 1 else ""}'

    def hold(title, cells, value, limit, unit):
        _worst_of(report, f'{where}, {title}',
                  [(value(own), cell.name) for cell, own in cells.items()],
                  limit, unit)

    for clock in ('wall', 'cpu'):
        def of(key, less=0):
            def value(own):
                score = getattr(own, clock)
                return score and getattr(score, key) - less
            return value

        for title, is_short, limit in (
                (f'bursts of {SHORT_MS} ms', True, SHORT_WORST_BAR_POINTS),
                ('longer bursts', False, WORST_BAR_POINTS)):
            hold(f'worst line, {clock}, {title}',
                 {cell: own for cell, own in alone.items()
                  if (cell.burst_ms == SHORT_MS) is is_short},
                 of('worst'), limit, 'points')
        hold(f'mean error, {clock}', alone, of('mean'), MEAN_BAR_POINTS,
             'points')
        hold(f'first half of bursts, {clock}', alone, of('half', 0.5),
             HALF_BAR, 'of the burst')
        hold(f'worst line, {clock}, beside two that spin',
             {cell: own for cell, own in ours.items() if cell.crowd},
             of('worst'), CROWDED_WORST_BAR_POINTS, 'points')
    hold('time of the burst as a whole', ours,
         lambda own: _beyond_all(own.whole), WHOLE_BAR_PERCENT, '%')
    hold('samples beyond those due', alone,
         lambda own: _beyond_all(own.served), SERVED_BAR_PERCENT, '%')
    hold('biased captures', alone, lambda own: own.biased * 100,
         BIASED_BAR_PERCENT, '%')
    if not quick:
        hold(f'samples that lack to {MIN_SAMPLES:,}', ours,
             lambda own: max(0, MIN_SAMPLES - own.samples), 0, '')


def _lead(scores, names):
    """By how many points the best of the peers is better than ours, beyond
    what noise explains; None if there is no peer."""
    leads = []
    for name in names:
        if name in scores and scores[name].wall is not None:
            ours, peer = scores[OURS].wall, scores[name].wall
            if ours is None:
                return None
            noise = (ours.noise ** 2 + peer.noise ** 2) ** 0.5
            leads.append(ours.worst - peer.worst - PEER_SIGMAS * noise)
    return max(*leads, 0, 0) if leads else None


def _measure_cells(report, options):
    cells = services_cells.cells(options.cells)
    if not cells:
        return
    paths = _find_peers(report, options)
    report.data['cells'] = []
    found = {cell: _measure_cell(report, cell, paths, options.quick)
             for cell in cells}
    _tables(report, found, paths)
    report.say()
    for cpus in services_cells.CPUS:
        _bars(report, found, cpus, options.quick)
    _worst_of(report, 'worst line, wall, worse than the best peer\'s',
              [(_lead(scores, paths), cell.name)
               for cell, scores in found.items() if OURS in scores],
              0, 'points')


def measure(report, options):
    # What it has started ends with it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    _measure_cells(report, options)
    for name, part in (('off_gil', services_off_gil), ('cost', services_cost)):
        if services_cells.matches(name, options.cells):
            part.measure(report, options)
