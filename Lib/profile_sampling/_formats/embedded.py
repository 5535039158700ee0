"""A pprof file as a block of data in a page, and other blocks.

A browser that saves a page writes it anew; the block stays what it is.
"""

import binascii
import re

BEGIN = b'<script type="application/octet-stream" id="profile">'
# What browsers may make of it.
_BEGIN = re.compile(rb'<script\b[^<>]*\bid="?profile\b[^<>]*>')
# It is in the head of the page; our style is some thousand bytes.
_MOST_BEFORE = 1 << 20
_CHUNK_BYTES = 1 << 16


def block(name, data):
    """Return a block of data with a name, as the text of a page has it."""
    begin = BEGIN.replace(b'profile', name.encode())
    return b'%b%b</script>\n' % (begin, encoded(data))


def encoded(data):
    """Return the text of a block, without its begin and end."""
    return binascii.b2a_base64(data, newline=False)


class Block:
    """The file in the block of a page, read as a binary file is.

    *page* is the page, of which *head* has been read.  Raise ValueError if
    there is none.
    """

    def __init__(self, head, page):
        self._page = page
        self._bytes = b''
        while (found := _BEGIN.search(head)) is None:
            more = page.read(_CHUNK_BYTES)
            if not more or len(head) > _MOST_BEFORE:
                raise ValueError('is a page without a profile in it')
            head += more
        self._text = head[found.end():]
        self._is_at_end = False

    def read(self, size):
        """Return *size* bytes, or less at the end."""
        while len(self._bytes) < size and not self._is_at_end:
            self._decode()
        result, self._bytes = self._bytes[:size], self._bytes[size:]
        return result

    def _decode(self):
        text, end, _ = self._text.partition(b'<')
        more = b'' if end else self._page.read(_CHUNK_BYTES)
        if end or not more:
            self._is_at_end = True
            if not end:
                raise ValueError('is cut off')
        text = b''.join(text.split())
        whole = len(text) if end else len(text) - len(text) % 4
        try:
            self._bytes += binascii.a2b_base64(text[:whole], strict_mode=True)
        except binascii.Error as exc:
            raise ValueError(f'has damaged base64 in it ({exc})') from None
        self._text = text[whole:] + more
