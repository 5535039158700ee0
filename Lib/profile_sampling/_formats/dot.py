"""Writer of call graphs for Graphviz.

The format is the DOT language, https://graphviz.org/doc/info/lang.html.

A node is a function with its share of what the profile is about, in all
threads, and in parentheses that of the function itself; an edge is a call.
What is on a stack more than once, by recursion, counts once.  The attributes
"own" and "cum" have the values as they are.  A function with a smaller share
than *min_share* is left out with its calls, and so is a call with less than a
fifth of that; the graph's label says how many.

What gets lost: stacks beyond one call, the other types of values, lines,
columns and instructions, threads, states but for pseudo-frames, labels, tasks,
who held the GIL and counters.
"""

from profile_sampling._data.call_graph import CallGraph
from profile_sampling._data.call_paths import ROOT, CallPaths
from profile_sampling._data.measures import own_measure
from profile_sampling._data.on_clocks import on_clocks
from profile_sampling._data.values import NO_FRAMES, printable
from profile_sampling._formats.words import amount

MIN_SHARE = 0.005
# What of it a call must have.
_CALL = 0.2
_WIDEST = 8
# Of the colour of what has all, and of what has nothing: red, green, blue.
_HOT, _COLD = (0xf0, 0x93, 0x2b), (0xff, 0xf8, 0xec)


def encode(tables, *, min_share=MIN_SHARE):
    """Return the bytes of the graph of a profile."""
    return '\n'.join([
        'digraph profile {',
        '  node [shape=box, style=filled, fontname="monospace", '
        'fontsize=10];',
        '  edge [fontname="monospace", fontsize=9, color="#00000080"];',
        *_Graph(tables, min_share).lines(), '}\n']).encode()


class _Graph:

    def __init__(self, tables, min_share):
        self._tables = tables = on_clocks(tables)
        self._min_share = min_share
        self._measure = own_measure(tables)
        paths = CallPaths(tables)
        own, = paths.self_sums([self._measure.column])
        cum = paths.cumulative(own)
        self._functions = [function for function, _ in paths.places]
        self._graph = graph = CallGraph(paths, range(len(paths.places)))
        self._total = cum[ROOT]
        self._without_frames = own[ROOT]
        self._own = graph.of_functions_alone(own)
        self._cum = graph.of_functions(cum)
        self._calls = graph.of_calls(cum)

    def lines(self):
        """Return the lines of the graph, its label first."""
        nodes = [number for number, cum in enumerate(self._cum)
                 if self._is_shown(cum, self._min_share)]
        shown = set(nodes)
        edges = [(caller, called, cum) for (caller, called), cum
                 in zip(self._graph.calls, self._calls)
                 if caller in shown and called in shown
                 and self._is_shown(cum, _CALL * self._min_share)]
        edges.sort()
        lines = [self._label(len(self._cum) - len(nodes),
                             len(self._calls) - len(edges))]
        lines += [self._node(f'f{number}', _texts(self._functions[number]),
                             self._own[number], self._cum[number])
                  for number in nodes]
        if self._is_shown(self._without_frames, self._min_share):
            lines.append(self._node('none', (NO_FRAMES, ''),
                                    *[self._without_frames] * 2))
        return lines + [self._edge(*edge) for edge in edges]

    def _is_shown(self, value, min_share):
        # What has no share at all is nothing to be shown.
        return value and abs(value) >= min_share * abs(self._total)

    def _label(self, n_functions, n_calls):
        tables, measure = self._tables, self._measure
        texts = [f'{printable(tables.mode)} profile of Python '
                 f'{printable(tables.python_version)}',
                 f'{amount(self._total, measure)} {measure.title}'
                 if self._total else 'There are no samples.']
        if n_functions or n_calls:
            texts.append(
                f'Left out: {n_functions:,} functions below '
                f'{100 * self._min_share:g} %, {n_calls:,} calls of these or '
                f'below {100 * _CALL * self._min_share:g} %')
        return (f'  graph [label={_quoted(texts)}, labelloc=t, '
                f'fontname="monospace", fontsize=12, total={self._total}];')

    def _node(self, name, texts, own, cum):
        measure = self._measure
        name_text, place = texts
        label = [name_text, _file(place), f'{self._share(cum)} '
                 f'({self._share(own)})', amount(cum, measure)]
        heat = min(1, max(0, own / self._total)) ** 0.5 if self._total else 0
        color = '#' + ''.join([
            f'{round(cold + heat * (hot - cold)):02x}'
            for hot, cold in zip(_HOT, _COLD)])
        return (f'  {name} [label={_quoted(label)}, tooltip='
                f'{_quoted(texts)}, fillcolor="{color}", own={own}, '
                f'cum={cum}];')

    def _edge(self, caller, called, cum):
        width = max(0.5, _WIDEST * abs(cum / self._total)
                    if self._total else 0)
        return (f'  f{caller} -> f{called} [label="{self._share(cum)}", '
                f'penwidth={width:.2f}, cum={cum}];')

    def _share(self, value):
        return f'{100 * value / self._total:.1f} %' if self._total else '-'


def _texts(function):
    """Return two texts that say which function it is, in full."""
    place = printable(function.filename)
    return (printable(function.name) or '[no name]',
            place and f'{place}:{function.first_line}')


def _file(path):
    """A path without the folders that say least."""
    parts = path.rsplit('/', 2)
    if len(parts) < 3 or not parts[0]:
        return path
    return f'…/{parts[1]}/{parts[2]}'


def _quoted(texts):
    """Return lines as a string that Graphviz takes for nothing else."""
    return '"' + r'\n'.join([
        text.replace('\\', r'\\').replace('"', r'\"').replace('&', '&amp;')
        for text in texts if text]) + '"'
