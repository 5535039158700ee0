"""What the head of a page says: the program, when it ran, and how good the
profile is.
"""

import time

from profile_sampling._data.losses import overhead_ns
from profile_sampling._formats import header
from profile_sampling._formats.words import seconds

# Those of strftime() are in the language of the reader's system.
_MONTHS = ('Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep',
           'Oct', 'Nov', 'Dec')
_PYTHON = 'python'
# Options of Python that take the next word.
_WITH_VALUE = frozenset({'-X', '-W'})


def command(tables):
    return tables.meta.get('command', '')


def title(tables):
    """Return a short name of the program; '' if it is not known."""
    words = command(tables).split()
    while words:
        word = words.pop(0)
        if word == '-c':
            return f'{_PYTHON} -c'
        if word == '-m' and words:
            return _of_module(*words)
        if word in _WITH_VALUE:
            del words[:1]
        elif word[0] != '-' and not _is_python(word):
            return word.rpartition('/')[2] or word
    return ''


def _of_module(module, *words):
    """Return the name of what -m runs; a server is named by its app."""
    for word in words:
        app, _, name = word.partition(':')
        if name.isidentifier() and app.replace('.', '').isidentifier():
            return app.partition('.')[0]
    return module


def _is_python(word):
    name = word.rpartition('/')[2]
    return name.rstrip('0123456789.') == _PYTHON


def start(tables):
    """Return when it began, in UTC, such as '27 Nov, 09:40'."""
    try:
        moment = time.gmtime(tables.start_time_ns // 1_000_000_000)
    except (OverflowError, OSError, ValueError):
        return ''
    return (f'{moment.tm_mday} {_MONTHS[moment.tm_mon - 1]}, '
            f'{moment.tm_hour:02}:{moment.tm_min:02}'
            if tables.start_time_ns else '')


def margin(sites):
    """Return the margin of half of the running time, the largest there is, in
    per cent of all; None if it is not known."""
    ns = sites.precision.margin_ns(sites.whole.running_records / 2)
    return None if ns is None or not sites.busy else 100 * ns / sites.busy


def quality(tables, sites):
    """Return how good a profile is, in a word and in sentences."""
    faults = list(header.faults(tables, sites))
    texts = [_sentence(text) for _, text in faults]
    return {'word': faults[0][0] if faults else 'good',
            'texts': texts + list(_facts(tables, sites, dict(faults)))}


def _facts(tables, sites, faults):
    """Iterate over what is known that is in no fault."""
    facts = header.quality(tables, sites)
    if tables.rate_hz:
        yield f'Asked for {tables.rate_hz:,} samples a second.'
    if tables.stats and header.LOST not in faults:
        yield 'No sample was lost.'
    if facts['overhead_share'] is not None and header.COSTLY not in faults:
        yield (f'The profiler itself took {seconds(overhead_ns(tables.stats))}'
               f' of CPU time, {100 * facts["overhead_share"]:.1f} % of that '
               'of the program.')
    share = margin(sites)
    if share:
        yield f'Shares are right to about ± {share:.1f} %.'


def _sentence(text):
    return f'{text[:1].upper()}{text[1:]}.'
