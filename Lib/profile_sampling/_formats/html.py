"""Writer of a page: one HTML file that shows the profile in it.

This file owns how the parts in _page/ become one file.  It must not know what
the page shows: that is the page's own business, in JavaScript.

The profile in a page is a pprof file, in a block of data that no browser runs
(see embedded.py).  The program is that of all modules that main.js imports,
those that are imported first.  What is only for people who read the code stays
out: comments, indents and empty lines.  No two modules may give one name to
two things.  It is compressed; loader.js, which starts it, is not.

The page's policy lets these two scripts and the one style be used that are in
it, by their digests, and nothing be fetched.
"""

import hashlib
import os
import re

from profile_sampling._data import idle, losses, origins
from profile_sampling._data.by_site import sites_of
from profile_sampling._formats import embedded, findings, json_text, sources
from profile_sampling._formats.pprof import writer

_FOLDER = os.path.join(os.path.dirname(os.path.dirname(__file__)), '_page')
_IMPORT = re.compile(r"^import \{[^}]*\} from '\./([a-z_]+\.js)';$",
                     re.MULTILINE)
_EXPORT = re.compile(r'^export (?:\{\};\n)?', re.MULTILINE)
_BLOCK = '</script>\n<script type="application/octet-stream" id="%s">'
# No text of ours has what begins a comment in it.
_COMMENT = re.compile(r'^[ \t]*//[^\n]*|/\*(?:(?!\*/).)*\*/',
                      re.MULTILINE | re.DOTALL)
_BLANKS = re.compile(r'\s*\n\s*')


def encode(tables, *, with_source=True, source_roots=None, base=None,
           changes=None):
    """Return the bytes of the page of a profile.

    *with_source*: with the text of its functions, as it is now.
    *source_roots*: of a profile that was read, only of files in these
    directories; see sources.py.  *base*: the
    Tables of another profile that it is compared with.  *changes*: what is
    known of how the runs of both differ, as changes_data.document() has it.
    """
    parts = [_HEAD, embedded.encoded(writer.encode(tables))]
    found = [{'rule': finding.rule, 'text': finding.text}
             for finding in findings.findings(tables, sites_of(tables))]
    if found:
        parts += _block('findings', _packed(json_text.data(found)))
    if base is not None:
        parts += _block('base', writer.encode(base))
    if changes is not None:
        parts += _block('changes', _packed(json_text.data(changes)))
    if with_source:
        parts += _block('sources', _packed(
            sources.encode(tables, source_roots)))
    return b''.join([*parts, _TAIL])


def _block(name, data):
    return (_BLOCK % name).encode(), embedded.encoded(data)


def _packed(data):
    return writer.gzipped(data, 9)


def _shell():
    """Return what is before and behind the profile in a page."""
    style = _compact(_COMMENT.sub('', _text('page.css')))
    loader = _script('loader.js')
    program = _script('main.js')
    policy = (f"default-src 'none'; script-src '{_digest(loader)}' "
              f"'{_digest(program)}'; style-src '{_digest(style)}'; "
              "img-src data:; base-uri 'none'; form-action 'none'")
    # Before there is a script: that may have braces in it.
    head, _, tail = _text('page.html').partition('{profile}')
    head = head.replace('{policy}', policy).replace('{style}', style)
    packed = embedded.encoded(_packed(program.encode())).decode()
    tail = tail.replace('{program}', packed).replace('{loader}', loader)
    return head.encode() + embedded.BEGIN, tail.encode()


def _script(main):
    """Return the script of a module and of all that it needs."""
    sources = {}
    order = []
    pending = [main]
    while pending:
        name = pending[-1]
        if name not in sources:
            sources[name] = _text(name)
            pending += reversed([needed for needed
                                 in _IMPORT.findall(sources[name])
                                 if needed not in sources])
            continue
        pending.pop()
        if name not in order:
            order.append(name)
    return _compact('\n'.join([
        _EXPORT.sub('', _IMPORT.sub('', _COMMENT.sub('', sources[name])))
        for name in order]))


def _compact(text):
    return _BLANKS.sub('\n', text).strip()


def _digest(text):
    digest = hashlib.sha256(text.encode()).digest()
    return f'sha256-{embedded.encoded(digest).decode()}'


def _text(name):
    with open(os.path.join(_FOLDER, name), encoding='utf-8') as file:
        text = file.read()
    # No rule has a quote or a backslash in it.
    return text.replace('{rules}', json_text.data(
        idle.RULES | origins.RULES | losses.RULES).decode())


_HEAD, _TAIL = _shell()
