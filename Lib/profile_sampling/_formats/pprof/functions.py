"""The functions of a pprof file, and how names become functions again."""

from bisect import bisect

from profile_sampling._formats.pprof import KIND_PLACES

_PYTHON, _C, _OPERATOR, _PSEUDO = range(4)
_INT32 = 1 << 31
# No package is that deep; a name of a million dots is to cost no hours.
_MAX_MODULE_DEPTH = 64


class Functions:
    """Functions as the core would give them; `rows` is the list of all.

    Those of the file come first, in its order.
    """

    def __init__(self, names, budget):
        self.rows = []
        self.holders = []
        self._names = names
        self._budget = budget
        self._holder_numbers = {}
        self._native_of_address = {}
        # Functions that are not Python; those that are: (name, file).
        self._by_name = None
        self._by_place = None

    def add(self, name, filename, first_line):
        """Undo what the writer does to a function; return if it is Python."""
        if not 0 <= first_line < _INT32:
            raise ValueError(f'a function begins at line {first_line}')
        self._budget.spend(400)
        kind = _PYTHON
        if not first_line:
            if filename == KIND_PLACES['C']:
                kind = _C
            elif filename == KIND_PLACES['operator']:
                kind = _OPERATOR
            elif not filename and name[:1] == '[' and name[-1:] == ']':
                kind = _PSEUDO
        module = None
        if kind != _PSEUDO:
            module, name = self._names.split(name)
        self.rows.append((module, name, filename, first_line, kind))
        return kind == _PYTHON

    def native(self, address):
        """Return the number of a function that has only an address."""
        number = self._native_of_address.get(address)
        if number is None:
            self._budget.spend(400)
            number = self._native_of_address[address] = len(self.rows)
            self.rows.append((None, f'{address:#x}', '', 0, _C))
        return number

    def holder(self, text, place, site, site_place):
        """Return the number of a holder of the GIL, counted from 1.

        *text* is 'function (callee)', and *place* 'file:line' if the
        function is Python; so are *site* and *site_place*, of a line of mine,
        or None.
        """
        key = text, place, site, site_place
        number = self._holder_numbers.get(key)
        if number is None:
            self._budget.spend(1300 + sum([8 * len(its or '') for its in key]))
            self.holders.append(self._holder(*key))
            number = self._holder_numbers[key] = len(self.holders)
        return number

    def _holder(self, text, place, site, site_place):
        """Return ([(function, line) of Python, the outermost first], callee
        or -1)."""
        if place is None:
            return [(self._named(text), 0)], -1
        name, callee = text, -1
        if text.endswith(')') and ' (' in text:
            name, _, callee = text[:-1].rpartition(' (')
            callee = self._named(callee)
        places = [(name, place)]
        if site is not None and site_place is not None:
            places.insert(0, (site, site_place))
        return [self._at(*its) for its in places], callee

    def _at(self, name, place):
        filename, _, line = place.rpartition(':')
        line = int(line) if _is_line(line) else 0
        return self._python(name, filename, line), line

    def _python(self, name, filename, line):
        """Return the function that begins last before a line of a file."""
        self._index_names()
        found = self._by_place.setdefault((name, filename), [])
        if not found:
            found.append((0, len(self.rows)))
            self.rows.append((*self._names.split(name), filename, 0,
                              _PYTHON))
        at = bisect(found, (line, len(self.rows)))
        return found[max(at - 1, 0)][1]

    def _named(self, name):
        """Return the function of that name that is not Python."""
        self._index_names()
        number = self._by_name.setdefault(name, len(self.rows))
        if number == len(self.rows):
            if name[:1] == '[' and name[-1:] == ']':
                self.rows.append((None, name, '', 0, _PSEUDO))
            else:
                self.rows.append((*self._names.split(name), '', 0, _C))
        return number

    def _index_names(self):
        """Make functions found by name; only who held the GIL needs it."""
        if self._by_name is not None:
            return
        self._budget.spend(300 * len(self.rows))
        self._by_name = {}
        self._by_place = {}
        for number, (module, name, filename, line, kind) in enumerate(
                self.rows):
            if module is not None:
                self._budget.spend(4 * (len(module) + len(name)))
                name = f'{module}.{name}'
            if kind == _PYTHON:
                self._by_place.setdefault((name, filename), []).append(
                    (line, number))
            else:
                self._by_name.setdefault(name, number)
        for found in self._by_place.values():
            found.sort()


class Names:
    """Tells the module from the qualified name in a function's name.

    Many functions may share a name: each one is taken apart once.
    """

    def __init__(self, modules, budget):
        self._modules = modules
        self._budget = budget
        self._longest = max(map(len, modules), default=-1)
        self._known = {}

    def split(self, name):
        parts = self._known.get(name)
        if parts is None:
            self._budget.spend(250 + 4 * len(name))
            parts = self._known[name] = self._split(name)
        return parts

    def _split(self, name):
        dots = []
        at = name.find('.', 0, self._longest + 1)
        while at >= 0 and len(dots) < _MAX_MODULE_DEPTH:
            dots.append(at)
            at = name.find('.', at + 1, self._longest + 1)
        # The longest that fits: 'a.b' before 'a'.
        for at in reversed(dots):
            if name[:at] in self._modules:
                return name[:at], name[at + 1:]
        return None, name


def _is_line(text):
    return text.isascii() and text.isdigit() and len(text) < 10
