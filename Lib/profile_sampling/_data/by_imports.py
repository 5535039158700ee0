"""What imports took, by the package that the program asked for.

A sample is of an import if a frame of the import system is below the innermost
line of mine.  Its package is that of the outermost module that ran below it;
until one runs, that of the line of mine that imports.
"""

from profile_sampling._data import origins
from profile_sampling._data.by_site import is_loop
from profile_sampling._data.tables import FRAME_COLUMNS, NODE_COLUMNS
from profile_sampling._data.values import IDLE, NOWHERE, Value

_COMPILE = 'builtins.compile'
_UNKNOWN = 'not known'


class ImportRow(Value):
    """What the import of a package took.

    package      its name
    function     the Function of mine that imported it most; None: none did
    line         where in it, or 0
    ns           how long, with all that it imports itself
    compiled_ns  of that, compiling modules that had no .pyc
    inside       list of (package, ns): whose code ran, itself among them; they
                 add up to ns
    """

    __slots__ = ('package', 'function', 'line', 'ns', 'compiled_ns', 'inside')

    @property
    def own_ns(self):
        return dict(self.inside).get(self.package, 0)


def rows(tables, mine=None):
    """Return a list of ImportRow, the longest first."""
    importing = _below_imports(tables)
    sums = {}
    for node, state, ns in zip(tables.column('stack'), tables.column('state'),
                               tables.own_column):
        if (importing[node] and ns and state != IDLE
                and state not in NOWHERE):
            sums[node] = sums.get(node, 0) + ns
    import_at = _Imports(tables, mine).at
    found = [(*place, ns) for node, ns in sums.items()
             for place in [import_at(node)] if place is not None]
    # What no module has run of yet is of the package of most of the line.
    of_lines = {}
    for package, _, line, _, _, ns in found:
        if package:
            its = of_lines.setdefault(line, {})
            its[package] = its.get(package, 0) + ns
    packages = {}
    for package, own, line, is_compiled, importer, ns in found:
        its = of_lines.get(line)
        package = package or (
            min(its, key=lambda name: (-its[name], name)) if its
            else f'{_UNKNOWN}, by {importer}' if importer else _UNKNOWN)
        row = packages.setdefault(package, [0, 0, {}, {}])
        row[0] += ns
        row[1] += ns * is_compiled
        row[2][line] = row[2].get(line, 0) + ns
        own = own or package
        row[3][own] = row[3].get(own, 0) + ns
    return sorted([ImportRow(
        package, *_most(lines), ns, compiled_ns,
        sorted(inside.items(), key=lambda item: (-item[1], item[0])))
        for package, (ns, compiled_ns, lines, inside) in packages.items()],
        key=lambda row: (-row.ns, row.package))


def _below_imports(tables):
    """Return for each node whether its stack has the import system."""
    is_importing = list(map(origins.is_importing, tables.functions))
    of_frames = [is_importing[function]
                 for function in tables.frame_functions()]
    found = [False]
    parents, frames = tables.node_columns()
    for parent, frame in zip(parents[1:], frames[1:]):
        found.append(of_frames[frame] or found[parent])
    return found


def _most(lines):
    """Return the (Function or None, line) that has most."""
    function, line = min(lines, key=lambda place: (
        -lines[place], place[0].name if place[0] else '', place[1]))
    return function, line


class _Imports:

    def __init__(self, tables, mine):
        self._functions = tables.functions
        self._mine = origins.mine(tables) if mine is None else mine
        self._frames = tables.frames_view()
        self._nodes = tables.nodes_view()

    def at(self, node):
        """Return (package or '', package whose code is innermost or '', (my
        Function or None, line), whether a module is compiled, the package
        that imports or my function); None: it is no import."""
        package = own = importer = ''
        # Modules that run outside of the outermost import do not count.
        is_import = is_compiled = False
        pending = ''
        while node:
            frame = FRAME_COLUMNS * self._nodes[NODE_COLUMNS * node + 1]
            node = self._nodes[NODE_COLUMNS * node]
            number, line = self._frames[frame:frame + 2]
            function = self._functions[number]
            if self._mine[number] and not origins.is_importing(function):
                break
            if is_loop(function):
                function = None
                break
            if origins.is_importing(function):
                is_import = True
                package = pending or package
                importer = ''
            elif function.kind == 'python':
                pending = origins.library(function)
                own = own or pending
                importer = importer or pending
            elif function.name == _COMPILE:
                is_compiled = True
        else:
            function, line = None, 0
        if not is_import:
            return None
        if function:
            importer = importer or function.name
        return package, own if package else '', (
            function, line if function else 0), is_compiled, importer
