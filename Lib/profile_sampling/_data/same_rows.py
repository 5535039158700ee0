"""Which rows of two tables of the core are the same thing.

This file owns what tells rows apart that have other numbers elsewhere: what
is in them.  It must not know what refers to them.

The profile of a block in a longer session has rows of its own, without those
that it does not need; records of a subscription have the session's numbers.
"""

from profile_sampling._data.numbering import number_of
from profile_sampling._data.tables import FRAME_COLUMNS, NODE_COLUMNS
from profile_sampling._data.values import FUNCTION_KINDS, NOT_KNOWN

NO_STRING = 0xFFFFFFFF
# Of batches: module, qualname, filename, first line, kind.
FUNCTION_COLUMNS = 5
# Parent, key, value, task id, class of the task + 1, is it work.
LABEL_COLUMNS = 6
_LABEL_CONTENT = 4      # of them, here and in tables
_PYTHON = FUNCTION_KINDS.index('python')


class Reported:
    """Rows as batches of a subscription have them."""

    def __init__(self):
        self.serial = None
        self._begin()

    def _begin(self):
        self._strings = []
        self._functions = []
        self._frames = []
        self._nodes = []
        self._labels = []
        self._threads = []

    def add(self, raw):
        """Add what is new with a batch of the core."""
        if raw['serial'] != self.serial:
            self.serial = raw['serial']
            self._begin()
        strings, functions, frames, nodes, labels, threads = raw['first']
        self._strings[strings:] = raw['strings']
        self._functions[functions:] = unpacked(raw['functions'], 'I',
                                               FUNCTION_COLUMNS)
        self._frames[frames:] = unpacked(raw['frames'], 'i', FRAME_COLUMNS)
        self._nodes[nodes:] = unpacked(raw['nodes'], 'I', NODE_COLUMNS)
        self._labels[labels:] = unpacked(raw['labels'], 'Q', LABEL_COLUMNS)
        self._threads[threads:] = raw['threads']

    def contents(self, known):
        """Return the Contents of these rows."""
        strings = self._strings

        def text(row):
            return None if row == NO_STRING else strings[row]
        functions = [(*map(text, names), line, kind)
                     for *names, line, kind in self._functions]
        labels = [(parent, text(key), text(value), task_id)
                  for parent, key, value, task_id, *_ in self._labels]
        return Contents(known, functions, self._frames, self._nodes, labels,
                        self._threads)


def of_tables(known, raw):
    """Return the Contents of the rows in tables of the core."""
    return Contents(known, raw['functions'],
                    unpacked(raw['frames'], 'i', FRAME_COLUMNS),
                    unpacked(raw['nodes'], 'I', NODE_COLUMNS),
                    [row[:_LABEL_CONTENT] for row in raw['labels']],
                    raw['threads'])


class Contents:
    """For each row a number that all rows with the same content have.

    *known* is a dict that those share whose numbers are to be compared.
    """

    def __init__(self, known, functions, frames, nodes, labels, threads):
        def numbered(kind, *content):
            return number_of(known, (kind, *content))
        functions = [numbered('function', *_function(*row))
                     for row in functions]
        frames = [numbered('frame', functions[function], *place)
                  for function, *place in frames]
        self._nodes = [0]
        for parent, frame in nodes[1:]:
            self._nodes.append(numbered('node', self._nodes[parent],
                                        frames[frame]))
        self._labels = [0]
        for parent, *content in labels[1:]:
            self._labels.append(numbered('label', self._labels[parent],
                                         *content))
        # Their names may have changed meanwhile.
        self._threads = [numbered('thread', ident, native_id, interpreter)
                         for ident, native_id, _, interpreter in threads]

    def key(self, node, thread, labels, state, holder_thread, holder_node):
        """Return what all samples have that are the same, whatever their
        numbers are; None: there is no such row."""
        if (max(node, holder_node) >= len(self._nodes)
                or thread >= len(self._threads)
                or labels >= len(self._labels)):
            return None
        holder = NOT_KNOWN
        if holder_node and 0 <= holder_thread < len(self._threads):
            holder = self._threads[holder_thread]
        return (self._nodes[node], self._threads[thread],
                self._labels[labels], state, holder,
                self._nodes[holder_node])


def _function(module, qualname, filename, first_line, kind):
    # The module of a Python function may become known later.
    return (None if kind == _PYTHON else module, qualname, filename,
            first_line, kind)


def unpacked(data, item, width):
    """Return the rows of so many numbers of that type, as tuples."""
    numbers = iter(memoryview(data).cast('B').cast(item).tolist())
    return list(zip(*[numbers] * width))
