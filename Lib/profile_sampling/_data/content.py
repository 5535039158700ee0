"""Whether two profiles say the same."""

from profile_sampling._data.numbering import frame_numbers, number_of
from profile_sampling._data.schema import LABELS, NODES, THREADS
from profile_sampling._data.sums import added
from profile_sampling._data.trees import Tree
from profile_sampling._data.values import NOT_KNOWN

_TABLES = 'columns', 'nodes', 'frames', 'functions', 'labels', 'threads'


def same(one, other):
    """Return whether two Tables say the same."""
    if one is other:
        return True
    if _facts(one) != _facts(other):
        return False
    if (one.value_types == other.value_types
            and all([getattr(one, table) == getattr(other, table)
                     for table in _TABLES])):
        return True
    numbers = _Numbers()
    return numbers.samples(one) == numbers.samples(other)


def _facts(tables):
    """Return what is said of the whole; files have values in another order."""
    return tables.facts() | {
        'value_types': dict(zip(tables.value_types, tables.totals))}


def digest(tables):
    """Return a hash that is equal for tables that say the same."""
    return hash((tables.mode, tables.rate_hz, tables.start_time_ns,
                 tables.covered, tables.pid, sum(tables.totals)))


class _Numbers:
    """Numbers for what rows say, the same in all tables."""

    def __init__(self):
        self._frames = {}
        self._tree = Tree()
        self._threads = {}
        self._labels = {}

    def samples(self, tables):
        """Return {what a sample is of: its values}."""
        nodes = self._tree.add(tables.tree(), frame_numbers(
            tables, tables.functions, self._frames))
        threads = [number_of(self._threads, thread)
                   for thread in tables.threads]
        labels = {row: self._label(tables, row)
                  for row in set(tables.column('labels'))}
        keys = tables.renumbered({
            NODES: nodes, LABELS: labels, THREADS: [*threads, NOT_KNOWN]})
        samples = {}
        columns = [column for _, column in sorted(
            zip(tables.value_types, tables.value_columns),
            key=lambda item: item[0].name)]
        for key, values in zip(zip(*keys), zip(*columns)):
            known = samples.get(key)
            samples[key] = values if known is None else added(known, values)
        return samples

    def _label(self, tables, row):
        labels, *task = tables.label_set(row)
        return number_of(self._labels, (*labels.items(), *task))
