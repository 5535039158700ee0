"""A page as one file: the shell, and blocks with what it shows.

The first block is the profile as a pprof file, which Profile.load() reads and
the page does not.  The policy lets the one script and the one style be used
that are in the page, by their digests, and nothing be fetched.
"""

import hashlib
import os

from profile_sampling._formats import embedded, json_text, sources
from profile_sampling._formats.page.document import document
from profile_sampling._formats.pprof import writer


_FOLDER = os.path.join(os.path.dirname(os.path.dirname(__file__)), '_page')


def encode(tables, *, with_source=True, source_roots=None, base=None,
           changes=None, mine=(), all=False):
    """Return the bytes of the page of a profile.

    *with_source*: with the text of its functions, as it is now.
    *source_roots*: of a profile that was read, only of files in these
    directories; see sources.py.  *base*: the Tables of another profile that
    it is compared with, and *changes*: the Difference from that.  *mine* and
    *all*: whose lines are shown; see by_site.sites_of().
    """
    shown = sources.found(tables, source_roots) if with_source else None
    blocks = {'profile': writer.encode(tables),
              'document': document(tables, mine, all, changes=changes,
                                   sources=shown, base=base)}
    if base is not None:
        blocks['base'] = document(base, mine, all)
    if shown is not None:
        blocks['sources'] = writer.gzipped(json_text.data(shown), 9)
    return b''.join([_HEAD, *[embedded.block(name, data)
                              for name, data in blocks.items()], _TAIL])


def live():
    """Return the bytes of a page that asks whoever served it."""
    return b''.join([_HEAD.replace(
        b"default-src 'none'", b"default-src 'none'; connect-src 'self'", 1),
        embedded.block('live', b''), _TAIL])


def _shell():
    """Return what is before and behind the blocks of a page."""
    html, style, script = map(_text, ('page.html', 'page.css', 'page.js'))
    policy = (f"default-src 'none'; script-src '{_digest(script)}'; "
              f"style-src '{_digest(style)}'; img-src data:; "
              "base-uri 'none'; form-action 'none'")
    # The script comes last: it may have braces in it.
    head, _, tail = html.partition('{blocks}')
    head = head.replace('{policy}', policy).replace('{style}', style)
    return head.encode(), tail.replace('{script}', script).encode()


def _digest(text):
    digest = hashlib.sha256(text.encode()).digest()
    return f'sha256-{embedded.encoded(digest).decode()}'


def _text(name):
    with open(os.path.join(_FOLDER, name), encoding='utf-8') as file:
        return file.read()


_HEAD, _TAIL = _shell()
