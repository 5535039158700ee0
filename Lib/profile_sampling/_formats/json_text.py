"""Values as JSON text, without the package json.

This file owns how JSON is written where a profile is saved while the
interpreter ends: json imports re and more, which then cannot be had.  It must
not know what is written.

The text is ASCII and has no spaces.
"""

try:
    from _json import encode_basestring_ascii, make_encoder
except ImportError:
    # An interpreter can be built without it.
    from json import dumps as _dumps

    def text(value):
        """Return the JSON text of a value."""
        return _dumps(value, separators=(',', ':'), allow_nan=False)
else:
    def _refuse(value):
        raise TypeError(f'{value!r} has no JSON text')

    # No check for circles, no indent, in the order of dicts, no NaN.
    _encode = make_encoder(None, _refuse, encode_basestring_ascii, None,
                           ':', ',', False, False, False)

    def text(value):
        """Return the JSON text of a value."""
        return ''.join(_encode(value, 0))


def known_text(name):
    """Return *name* with what no UTF-8 can say as backslash escapes.

    Readers of JSON differ in what they do with half a surrogate pair.
    """
    return name.encode('utf-8', 'backslashreplace').decode()
