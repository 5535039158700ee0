"""Functions with their exact calls beside their time."""

from profile_sampling._data import by_function, counts
from profile_sampling._data.counts import place_key

# Samples that a function would have had, were it slower.
SAMPLES = 3
# Of its time: from there on it is not sure what a call takes.
_TAKEN = 0.25


class FunctionCalls:
    """A function that was sampled, counted or both.

    function     the Function
    calls, outermost, resumes, deepest
                 as in CallCount; None: not counted
    self, cum    of the values that the profile is about
    each_ns, margin_ns
                 what an outermost call takes; None: not known
    least_ns     without a sample: less than that
    is_rough     whether more than a quarter of its time was counting
    """

    def __init__(self, function):
        self.function = function
        self.calls = self.outermost = self.resumes = self.deepest = None
        self.self = self.cum = 0
        self.each_ns = self.margin_ns = self.least_ns = None
        self.is_rough = False
        self.rank = function.name, function.filename, function.first_line

    def _count(self, counted):
        self.calls, self.outermost = counted.calls, counted.outermost
        self.resumes = counted.resumes or None
        self.deepest = counted.deepest or None


def each(ns, number, precision, records):
    """Return what one of a number of calls took, and its margin; or None."""
    if not ns or not number:
        return None, None
    margin_ns = precision.margin_ns(records)
    return ns / number, None if margin_ns is None else margin_ns / number


def rows(tables, precision):
    """Return a list of FunctionCalls."""
    own = tables.own
    found = {}
    records = {}
    for function, its in by_function.running_records(tables).items():
        records[place_key(function)] = its[1]
    for sampled in by_function.functions(tables):
        row = found.setdefault(place_key(sampled.function),
                               FunctionCalls(sampled.function))
        row.self += sampled.self_values[own]
        row.cum += sampled.cum_values[own]
    counted = counts.by_function(tables.counts)
    costs = tables.counts.costs_of(counted.values())
    is_time = tables.value_types[own].unit == 'nanoseconds'
    for (function, its), cost_ns in zip(counted.items(), costs):
        row = found.setdefault(place_key(function), FunctionCalls(function))
        row._count(its)
        # Time of what was not counted is in no call.
        if is_time and row.outermost and not tables.counts.uncounted:
            row.each_ns, row.margin_ns = each(
                row.cum, row.outermost, precision,
                records.get(place_key(function), 0))
            row.is_rough = cost_ns > _TAKEN * (row.self + cost_ns)
            if row.each_ns is None and tables.rate_hz:
                row.least_ns = SAMPLES * 1e9 / tables.rate_hz / row.outermost
    return list(found.values())
