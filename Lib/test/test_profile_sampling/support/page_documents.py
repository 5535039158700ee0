"""The document of a page, read as its script reads it."""

import base64
import gzip
import json
import re
from array import array

from profile_sampling._formats.page import document

_ITEMS = {'u8': 'B', 'u16': 'H', 'u32': 'I', 'back': 'I', 'i32': 'i',
          'f64': 'd'}
_BLOCK = (r'<script type="application/octet-stream" id="%s">'
          r'([A-Za-z0-9+/=]*)</script>')


def block(page, name):
    """Return the bytes of a block of a page."""
    found, = re.findall(_BLOCK % name, page.decode())
    return base64.b64decode(found)


class Document:
    """What a document says: .title and so on, and columns as lists:
    .sample_value; sample_ columns are empty where they are left out."""

    def __init__(self, data):
        raw = gzip.decompress(data)
        begin = 4 + int.from_bytes(raw[:4], 'little')
        assert begin % 8 == 0, begin
        self.facts = json.loads(raw[4:begin])
        self._columns = {}
        end = 0
        for name, (type, offset, length) in self.facts['columns'].items():
            assert offset % 8 == 0 and offset >= end, (name, offset, end)
            column = array(_ITEMS[type])
            end = offset + length * column.itemsize
            column.frombytes(raw[begin + offset:begin + end])
            assert len(column) == length, name
            self._columns[name] = (
                [number - its for number, its in enumerate(column)]
                if type == 'back' else column.tolist())

    def __getattr__(self, name):
        if name in self._columns:
            return self._columns[name]
        try:
            return self.facts[name]
        except KeyError:
            raise AttributeError(name) from None

    @property
    def states_of_samples(self):
        return [self.states[number] for number in self.sample_state]

    def name(self, number):
        module, qualname = [self.functions[key][number]
                            for key in ('module', 'qualname')]
        return f'{module}.{qualname}' if module else qualname

    def place(self, number):
        """Return (name, line) of a place."""
        function, line = [self.places[key][number]
                          for key in ('function', 'line')]
        special = {-1: 'Outside my code' if self.is_mine else None,
                   -2: 'Imports'}
        return (special[function] if function < 0 else self.name(function),
                line)

    def stack(self, node):
        """Return the names of a stack in the tree by function."""
        names = []
        while node:
            names.append(self.name(self.node_function[node]))
            node = self.node_parent[node]
        return tuple(names[::-1])

    def sums(self, keys, wanted=None):
        """Return {key: sum of the values} of samples, which have these keys.
        """
        found = {}
        for number, (key, value) in enumerate(zip(
                keys, self.sample_value, strict=True)):
            if wanted is None or wanted[number]:
                found[key] = found.get(key, 0) + value
        return {key: value for key, value in found.items() if value}


def document_of(profile, **options):
    return Document(document(profile._tables, **options))
