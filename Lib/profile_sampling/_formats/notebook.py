"""A profile as the output of a notebook's cell.

A notebook keeps its outputs, and servers hold back what is sent too fast, by
default a megabyte in a second: beyond that there is the report as text.

What does not trust a notebook leaves the frame out.  Then what is behind it is
seen.
"""

import html as _html

from profile_sampling._formats import html, text

_MOST_BYTES = 1_000_000
_HEIGHT = '600px'
_SAVE = "Its method save('profile.html') writes a page that shows all of it."


def output(tables):
    """Return HTML that shows a profile."""
    return _output(text.render(tables), lambda with_source: html.encode(
        tables, with_source=with_source))


def difference(encode, report):
    """Return HTML that compares profiles; *report* is the same as text."""
    return _output(report,
                   lambda with_source: encode(with_source=with_source))


def _output(report, encode):
    """Return a page in a frame, or the report as text.

    encode(with_source) makes the page.
    """
    instead = f'<pre>{_html.escape(report)}</pre>'
    for with_source in True, False:
        page = encode(with_source)
        if len(page) <= _MOST_BYTES:
            return _frame(page.decode(), instead)
    return (f'{instead}<p>The profile is too large for a notebook. '
            f'{_SAVE}</p>')


def _frame(page, instead):
    # Base64 has nothing to be escaped.
    return (
        f'<div style="position: relative; height: {_HEIGHT}; '
        'overflow: hidden"><div style="height: 100%; overflow: auto">'
        '<p>The page of this profile is not shown: the notebook is not '
        f'trusted, or this viewer leaves frames out. {_SAVE}</p>{instead}'
        '</div><iframe title="profile" sandbox="allow-scripts" '
        'style="position: absolute; inset: 0; width: 100%; height: 100%; '
        'border: 0; background: Canvas" '
        f'srcdoc="{_html.escape(page)}"></iframe></div>')
