"""Writer of a page that compares two profiles, or the runs of two versions.

This file owns what such a page has beside that of one profile: the sums of
both sides, and what the command diff says of them.  It must not compute
anything: that is _data's.
"""

from profile_sampling._data import compare
from profile_sampling._data.merge import Merger
from profile_sampling._data.runs import Question, usual_rows
from profile_sampling._data.tables import Tables
from profile_sampling._formats import changes, changes_data, html


def encode(before, after, comparison, *, max_bytes=None, **options):
    """Return the bytes of the page; *options* are as of html.encode().

    *before* and *after* are lists of the Tables of runs, of which there is a
    Comparison.  The sum of each may take *max_bytes* of memory.
    """
    document = changes_data.document(comparison)
    return html.encode(
        _sum(after, max_bytes), base=_sum(before, max_bytes),
        changes=document | {'words': changes.words(comparison)}, **options)


def of_two(before, after, *, normalized=False, **options):
    """Return the bytes of the page of two Tables."""
    own = after.value_types[after.own].name
    comparison = compare.of_tables(
        [before], [after], Question(
            usual_rows(before), False, own, None, ()),
        compare.SHARE if normalized else compare.PLAIN)
    return encode([before], [after], comparison, **options)


def _sum(runs, max_bytes):
    if len(runs) == 1:
        return runs[0]
    merger = Merger(max_bytes)
    for tables in runs:
        merger.add(tables)
    return Tables(merger.raw())
