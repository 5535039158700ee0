"""Whether two profiles say the same.

This file owns what is compared: the facts about the whole, and the values of
each stack of a thread in a state with its labels and its holder of the GIL.
It must not know in which order tables have their rows, which says nothing.
"""

from profile_sampling._data.numbering import number_nodes, number_of
from profile_sampling._data.sums import added
from profile_sampling._data.values import NOT_KNOWN

_TABLES = 'samples', 'nodes', 'frames', 'functions', 'labels', 'threads'


def same(one, other):
    """Return whether two Tables say the same."""
    if one is other:
        return True
    if one.facts() != other.facts() or one.totals != other.totals:
        return False
    if all([getattr(one, table) == getattr(other, table)
            for table in _TABLES]):
        return True
    numbers = _Numbers()
    return numbers.samples(one) == numbers.samples(other)


def digest(tables):
    """Return a hash that is equal for tables that say the same."""
    return hash((tables.mode, tables.rate_hz, tables.start_time_ns,
                 tables.duration_ns, tables.pid, tables.totals))


class _Numbers:
    """Numbers for what rows say, the same in all tables."""

    def __init__(self):
        self._frames = {}
        self._nodes = {}
        self._threads = {}
        self._labels = {}

    def samples(self, tables):
        """Return {what a sample is of: its values}."""
        nodes = number_nodes(tables, tables.functions, self._frames,
                             self._nodes)
        threads = [number_of(self._threads, thread)
                   for thread in tables.threads]
        labels = {}
        samples = {}
        for (node, thread, label, state, holder_thread, holder_node,
             *values) in tables.row_tuples():
            if label not in labels:
                labels[label] = self._label(tables, label)
            holder = None
            if holder_node:
                holder = (None if holder_thread == NOT_KNOWN
                          else threads[holder_thread], nodes[holder_node])
            key = nodes[node], threads[thread], labels[label], state, holder
            values = tuple(values)
            known = samples.get(key)
            samples[key] = values if known is None else added(known, values)
        return samples

    def _label(self, tables, row):
        labels, *task = tables.label_set(row)
        return number_of(self._labels, (*labels.items(), *task))
