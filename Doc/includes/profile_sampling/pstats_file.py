"""A file for pstats, and for the viewers that read its files.

    stats = Stats()
    with profile_sampling.subscribe(stats):
        work()
    stats.dump_stats('work.prof')
    pstats.Stats('work.prof').sort_stats('tottime').print_stats(10)

Samples do not tell how often a function was called.  Where pstats has the
number of calls, there stands the number of samples with the function on the
stack; so a time "per call" is the time per sample, and tells nothing.
"""

import marshal


class Stats:
    """A callback for subscribe() that adds up time by function and caller.

    clock  'wall' or 'cpu': the one whose times are shown
    """

    def __init__(self, clock='wall'):
        self._clock = f'{clock}_ns'
        self._sums = {}

    def __call__(self, batch):
        for sample in batch:
            sums = self._sums.setdefault(sample.key, [sample, 0, 0])
            sums[1] += sample.count
            sums[2] += getattr(sample, self._clock)

    def create_stats(self):
        """Return {function: (samples, samples, own time, time, callers)}.

        The times are in seconds.  callers has the same four by caller.
        """
        functions = {}
        edges = {}
        for sample, count, ns in list(self._sums.values()):
            stack = [place(frame.function) for frame in sample.stack]
            if not stack:
                stack = [('~', 0, f'[{sample.state}]')]
            # By recursion a function, or a call, is on a stack repeatedly.
            for function in set(stack):
                add(functions, function, count, 0, ns)
            for edge in set(zip(stack, stack[1:])):
                add(edges, edge, count, 0, ns)
            add(functions, stack[0], 0, ns, 0)
            if len(stack) > 1:
                add(edges, (stack[0], stack[1]), 0, ns, 0)
        callers = {function: {} for function in functions}
        for (function, caller), sums in edges.items():
            callers[function][caller] = in_seconds(*sums)
        return {function: (*in_seconds(*sums), callers[function])
                for function, sums in functions.items()}

    def dump_stats(self, path):
        with open(path, 'wb') as file:
            marshal.dump(self.create_stats(), file)


def place(function):
    """How pstats writes a function: file, line, name."""
    if function.kind == 'python':
        return function.filename, function.first_line, function.qualname
    if function.kind == 'pseudo':
        return '~', 0, function.qualname
    # It is shown in braces, as cProfile's C functions are.
    return '~', 0, f'<{function.name}>'


def add(table, key, count, own_ns, ns):
    sums = table.setdefault(key, [0, 0, 0])
    for i, value in enumerate((count, own_ns, ns)):
        sums[i] += value


def in_seconds(count, own_ns, ns):
    return count, count, own_ns / 1e9, ns / 1e9
