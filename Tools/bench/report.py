"""What a measurement found: tables, bars, and the two files they go to.

Knows nothing of what is measured.
"""

import json
import random
import statistics
import time

BOOTSTRAP_ROUNDS = 2000


def percentile(values, percent):
    """The value that `percent` of the values do not exceed."""
    ordered = sorted(values)
    rank = -(-len(ordered) * percent // 100)
    return ordered[max(int(rank) - 1, 0)]


def quartiles(values):
    """(lower quartile, median, upper quartile)."""
    if len(values) < 2:
        return values[0], values[0], values[0]
    return tuple(statistics.quantiles(values, n=4, method='inclusive'))


def interval95(samples, statistic):
    """95 % bootstrap interval of statistic(samples), a list of items that
    were measured together."""
    rng = random.Random(1)
    found = sorted([statistic(rng.choices(samples, k=len(samples)))
                    for _ in range(BOOTSTRAP_ROUNDS)])
    return (found[BOOTSTRAP_ROUNDS // 40],
            found[BOOTSTRAP_ROUNDS - 1 - BOOTSTRAP_ROUNDS // 40])


class Report:
    """Prints as it goes, and keeps what it printed."""

    def __init__(self, kind, facts):
        self.kind = kind
        self.started = time.strftime('%Y%m%d-%H%M%S')
        self.data = {'kind': kind, 'machine': facts, 'bars': []}
        self._lines = []
        self.say(f'== {kind} ==')
        for name, value in facts.items():
            self.say(f'{name + ":":<12} {value}')

    def say(self, line=''):
        print(line, flush=True)
        self._lines.append(line)

    def table(self, title, columns, rows):
        """Print rows of strings; the first column is flush left."""
        self.say()
        self.say(title)
        widths = [max(map(len, column)) for column in zip(columns, *rows)]
        for row in [columns, *rows]:
            first, *rest = [cell.ljust(width) if i == 0 else cell.rjust(width)
                            for i, (cell, width) in enumerate(zip(row,
                                                                  widths))]
            self.say('  ' + '  '.join([first, *rest]).rstrip())

    def bar(self, name, value, limit, unit, note='', either_way=True):
        """Hold |value| against its limit, or the value itself if less is no
        fault; None counts as missed."""
        passed = (value is not None
                  and (abs(value) if either_way else value) <= limit)
        found = 'not measured' if value is None else f'{value:.3f} {unit}'
        self.data['bars'].append({'name': name, 'value': value,
                                  'limit': limit, 'unit': unit,
                                  'passed': passed, 'note': note})
        self.say(f'{"PASS" if passed else "FAIL"}  {name}: {found} '
                 f'(bar {limit:g} {unit}){" " + note if note else ""}')

    def fail(self, reason):
        """A part that could not be measured at all."""
        self.bar(reason, None, 0, '')

    @property
    def failed(self):
        return not all([bar['passed'] for bar in self.data['bars']])

    def write(self, directory):
        directory.mkdir(parents=True, exist_ok=True)
        stem = directory / f'{self.kind}-{self.started}'
        text_path = stem.with_suffix('.txt')
        self.say()
        self.say(f'written: {text_path} and .json')
        text_path.write_text('\n'.join(self._lines) + '\n')
        stem.with_suffix('.json').write_text(
            json.dumps(self.data, indent=1) + '\n')
