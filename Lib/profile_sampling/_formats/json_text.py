"""Values as JSON text.

The text is ASCII and has no spaces.  What is large comes as text already, so
that there need not be an object for each number in it.
"""

import json

# What stands for a Raw, and its text: no dict of ours is like that, and in a
# text quotes are escaped.
_PLACE, _PLACE_TEXT = {'raw': None}, '{"raw":null}'
# How many numbers are objects at a time.
_CHUNK = 1 << 16


class Raw:
    """A value that is JSON text already."""

    __slots__ = ('text',)

    def __init__(self, text):
        self.text = text


def array(texts):
    """Return texts, of no value or of some each, as a Raw."""
    return Raw(f'[{",".join(filter(None, texts))}]')


def numbers(column, *, origin=0):
    """Return the text of a column of whole numbers, counted from *origin*."""
    return ','.join([
        str([number - origin for number in column[start:start + _CHUNK]]
            )[1:-1].replace(' ', '')
        for start in range(0, len(column), _CHUNK)])


def data(value):
    """Return the JSON text of a value, as bytes."""
    raws = []

    def put(part):
        if not isinstance(part, Raw):
            raise TypeError(f'{part!r} has no JSON text')
        raws.append(part.text)
        return _PLACE

    text = json.dumps(value, separators=(',', ':'), check_circular=False,
                      allow_nan=False, default=put)
    first, *rest = text.split(_PLACE_TEXT)
    return b''.join([first.encode(), *[
        text.encode() for pair in zip(raws, rest) for text in pair]])


def known_text(name):
    """Return *name* with what no UTF-8 can say as backslash escapes.

    Readers of JSON differ in what they do with half a surrogate pair.
    """
    return name.encode('utf-8', 'backslashreplace').decode()
