"""How true the profiler's answers are.

Programs that know the answer: each call of a name is timed by the program
itself, and the sums are compared with what Profile.lines() says of the line
of the call.  Errors are relative to the truth of the name, so that a small
name counts as much as a large one.
"""

import json
import pathlib
import random
import statistics
import sys
import tempfile

import children
from report import percentile
from truth_work import CALLEES

RATE_HZ = 1000
MODES = ('wall', 'cpu')
SEEDS = (1, 2, 3)
QUICK_SEEDS = (1,)
SHORTEST_MS, LONGEST_MS = 10, 100
CALLS = 15          # of each name
QUICK_CALLS = 8
NAMES = 6           # of each thread

MEAN_BAR_PERCENT = 1
P95_BAR_PERCENT = 3
MAX_BAR_PERCENT = 6
CONSERVATION_BAR_PERCENT = 0.2
SLEEP_CPU_BAR_PERCENT = 0.2

# Which kinds of work a scenario of a family draws from.
FAMILIES = {
    'python': ('python_loop', 'python_calls'),
    'c with GIL': ('hash_small', 'power', 'sort'),
    'c without GIL': ('hash_large',),
    'sleep with GIL': ('sleep_holding', 'python_loop'),
    'sleep': ('sleep_releasing', 'python_loop'),
    'C functions': tuple(CALLEES),
    'mixed': ('python_loop', 'python_calls', 'hash_small', 'power', 'sort',
              'hash_large', 'sleep_holding', 'sleep_releasing', 'mixed'),
}
SLEEPING = ('sleep_holding', 'sleep_releasing', 'call_sleep')
# Kinds whose threads compete for the GIL, as far as they want it.
THREADED = ('python_loop', 'hash_small', 'sleep_releasing', 'hash_large')
N_THREADS = 4


def _thread(rng, prefix, kinds, names, calls):
    """A thread's names and the order of its calls."""
    drawn = [kinds[i % len(kinds)] for i in range(names)]
    slots = [(f'{prefix}_{i}_{kind}', kind,
              rng.randint(SHORTEST_MS, LONGEST_MS))
             for i, kind in enumerate(drawn)]
    order = [i for i in range(names) for _ in range(calls)]
    rng.shuffle(order)
    return {'slots': slots, 'order': order}


def _scenario(family, seed, mode, calls):
    rng = random.Random(f'{family} {seed}')
    if family == 'threads':
        threads = [_thread(rng, f't{i}', THREADED, len(THREADED), calls)
                   for i in range(N_THREADS)]
    else:
        kinds = FAMILIES[family]
        threads = [_thread(rng, 'main', kinds, max(NAMES, len(kinds)), calls)]
    return {'family': family, 'seed': seed, 'mode': mode,
            'rate_hz': RATE_HZ, 'threads': threads}


def _run(scenario, directory):
    path = pathlib.Path(directory, 'scenario.json')
    path.write_text(json.dumps(scenario))
    return children.run_json('truth_child.py', path)


class Errors:
    """What one family got wrong, in percent of the truth."""

    def __init__(self):
        self.wall, self.cpu = [], []
        self.life, self.life_cpu = [], []
        # Of sleeping lines: percent per line; nanoseconds of all of them.
        self.sleep_cpu, self.sleep_cpu_ns, self.sleep_wall_ns = [], [], []
        self.names = []             # (error, clock, name, mode, seed)

    def add(self, scenario, result):
        where = scenario['mode'], scenario['seed']
        for name in result['names']:
            wall = _percent(name['wall_ns'], name['true_wall_ns'])
            self.wall.append(abs(wall))
            self.names.append((wall, 'wall', name, *where))
            if name['kind'] in SLEEPING:
                # To fall asleep and to wake up costs CPU time, too.
                wrong = name['cpu_ns'] - name['true_cpu_ns']
                slept = name['true_wall_ns']
                self.sleep_cpu.append(abs(wrong) / slept * 100)
                self.sleep_cpu_ns.append(wrong)
                self.sleep_wall_ns.append(slept)
            else:
                cpu = _percent(name['cpu_ns'], name['true_cpu_ns'])
                self.cpu.append(abs(cpu))
                self.names.append((cpu, 'cpu', name, *where))
        for thread in result['threads']:
            self.life.append(abs(_percent(thread['sum_wall_ns'],
                                          thread['life_ns'])))
            self.life_cpu.append(abs(_percent(thread['sum_cpu_ns'],
                                              thread['cpu_ns'])))

    def row(self, title):
        def three(values):
            if not values:
                return ['-'] * 3
            return [f'{statistics.fmean(values):.2f}',
                    f'{percentile(values, 95):.2f}', f'{max(values):.2f}']
        return [title, str(len(self.wall)), *three(self.wall),
                *three(self.cpu), f'{max(self.life):.3f}',
                f'{max(self.life_cpu):.3f}',
                *([f'{max(self.sleep_cpu):.3f}', f'{self.all_sleep_cpu():.3f}']
                  if self.sleep_cpu else ['-', '-'])]

    def all_sleep_cpu(self):
        """CPU time recorded on sleeping lines that they did not burn, or less
        than they did, in percent of their wall time."""
        return abs(sum(self.sleep_cpu_ns)) / sum(self.sleep_wall_ns) * 100

    def merge(self, other):
        for key, values in vars(other).items():
            getattr(self, key).extend(values)


def _percent(found, true):
    return (found / true - 1) * 100 if true else float('inf')


def _worst_rows(total, count):
    worst = sorted(total.names, key=lambda name: -abs(name[0]))[:count]
    return [[name['name'], mode, str(seed), clock, f'{error:+.2f}',
             f'{name[f"true_{clock}_ns"] / 1e6:.1f}',
             f'{name[f"{clock}_ns"] / 1e6:.1f}', str(name['calls'])]
            for error, clock, name, mode, seed in worst]


def _bars(report, total, families):
    report.say()
    for clock, errors in (('wall', total.wall), ('cpu', total.cpu)):
        report.bar(f'truth: mean error, {clock}', statistics.fmean(errors),
                   MEAN_BAR_PERCENT, '%')
        report.bar(f'truth: p95 error, {clock}', percentile(errors, 95),
                   P95_BAR_PERCENT, '%')
        report.bar(f'truth: largest error, {clock}', max(errors),
                   MAX_BAR_PERCENT, '%')
    report.bar('truth: wall time of a thread, largest gap', max(total.life),
               CONSERVATION_BAR_PERCENT, '%')
    report.bar('truth: CPU time of a thread, largest gap',
               max(total.life_cpu), CONSERVATION_BAR_PERCENT, '%')
    # One line is too short for the bar: a single sample on it would be more.
    report.bar('truth: wrong CPU time of the sleeping lines of a family, of '
               'their wall',
               max([errors.all_sleep_cpu() for errors in families
                    if errors.sleep_cpu]), SLEEP_CPU_BAR_PERCENT, '%')


def _losses(stats):
    """Counters that tell of trouble, by name; the rest is in the JSON."""
    return {key: value for key, value in stats.items()
            if value and key.startswith(('lost', 'ticks_late', 'ticks_busy',
                                         'signals_late', 'signals_un',
                                         'captures_biased'))}


def measure(report, options):
    seeds = QUICK_SEEDS if options.quick else SEEDS
    calls = QUICK_CALLS if options.quick else CALLS
    total, families, rows, losses = Errors(), [], [], []
    report.data['scenarios'] = []
    with tempfile.TemporaryDirectory(prefix='bench') as directory:
        for family in [*FAMILIES, 'threads']:
            print(f'running {family} ...', file=sys.stderr, flush=True)
            errors, sums = Errors(), {}
            for seed in seeds:
                for mode in MODES:
                    scenario = _scenario(family, seed, mode, calls)
                    result = _run(scenario, directory)
                    report.data['scenarios'].append(
                        {'scenario': scenario, 'result': result})
                    errors.add(scenario, result)
                    for key, value in _losses(result['stats']).items():
                        sums[key] = sums.get(key, 0) + value
            rows.append(errors.row(family))
            losses.append([family, ', '.join([f'{key} {value}' for key, value
                                              in sums.items()]) or 'none'])
            total.merge(errors)
            families.append(errors)
    rows.append(total.row('all'))
    report.table(
        f'Truth at {RATE_HZ} Hz, {len(seeds)} seed(s), modes '
        f'{" and ".join(MODES)}: errors in % of the truth of each name',
        ['family', 'names', 'wall mean', 'p95', 'max', 'cpu mean', 'p95',
         'max', 'life gap', 'cpu gap', 'sleep cpu', 'of all'], rows)
    report.say('  gap: of a thread, its samples against its life; sleep cpu: '
               'wrong on a')
    report.say('  sleeping line, of its wall (largest of each); of all: on '
               'all of them')
    report.table('The largest errors (ms)',
                 ['name', 'mode', 'seed', 'clock', 'error %', 'true', 'found',
                  'calls'], _worst_rows(total, 10))
    report.table('Counters', ['family', 'not zero'], losses)
    _bars(report, total, families)
