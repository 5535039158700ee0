"""Writer of a page that compares profiles."""

from profile_sampling._data.merge import Merger
from profile_sampling._data.tables import Tables
from profile_sampling._formats import html


def encode(before, after, difference, *, max_bytes=None, **options):
    """Return the bytes of the page; *options* are as of html.encode().

    *before* and *after* are lists of the Tables of runs, of which there is a
    Difference.  The sum of each may take *max_bytes* of memory.
    """
    # Rows are of the same lines as those of the difference.
    return html.encode(
        _sum(after, max_bytes), base=_sum(before, max_bytes),
        changes=difference, mine=difference.question.mine,
        all=not difference.before[0].is_mine, **options)


def _sum(runs, max_bytes):
    if len(runs) == 1:
        return runs[0]
    merger = Merger(max_bytes)
    for tables in runs:
        merger.add(tables)
    return Tables(merger.raw())
