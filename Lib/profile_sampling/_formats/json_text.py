"""Values as JSON text, without the package json.

This file owns how JSON is written where a profile is saved while the
interpreter ends: json imports re and more, which then cannot be had.  It must
not know what is written.

The text is ASCII and has no spaces.  What is large comes as text already, so
that there need not be an object for each number in it.
"""

try:
    from _json import encode_basestring_ascii, make_encoder
except ImportError:
    # An interpreter can be built without it.
    from json import dumps as _dumps

    def _text(value, default):
        return _dumps(value, separators=(',', ':'), allow_nan=False,
                      default=default)
else:
    def _text(value, default):
        # No check for circles, no indent, in the order of dicts, no NaN.
        encode = make_encoder(None, default, encode_basestring_ascii, None,
                              ':', ',', False, False, False)
        return ''.join(encode(value, 0))

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

    first, *rest = _text(value, put).split(_PLACE_TEXT)
    return b''.join([first.encode(), *[
        text.encode() for pair in zip(raws, rest) for text in pair]])


def known_text(name):
    """Return *name* with what no UTF-8 can say as backslash escapes.

    Readers of JSON differ in what they do with half a surrogate pair.
    """
    return name.encode('utf-8', 'backslashreplace').decode()
