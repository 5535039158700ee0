"""What is answered to whom."""

from collections import namedtuple
from urllib.parse import parse_qs

from profile_sampling._data.values import IDLE
from profile_sampling._formats import html, json_text, sources
from profile_sampling._formats.page.document import document
from profile_sampling._formats.pprof import writer
from profile_sampling._live.seconds import MAX_SECONDS, WINDOWS
from profile_sampling._top.answers import number, place_json

# headers: list of (name, value).
Response = namedtuple('Response', 'status headers body')

_NO_STORE = ('Cache-Control', 'no-store')
_HEADERS = [_NO_STORE, ('X-Content-Type-Options', 'nosniff'),
            ('Referrer-Policy', 'no-referrer'), ('X-Frame-Options', 'DENY')]
_TEXT, _HTML, _BYTES = ('text/plain; charset=utf-8',
                        'text/html; charset=utf-8', 'application/octet-stream')
# What Go's server takes if nothing is said.
_PPROF_S = 30
# The page shows so much of its history.
_HISTORY_S = 360
_PPROF_INDEX = b'''<!DOCTYPE html><title>/debug/pprof/</title>
<p>Profiles: <a href="profile?seconds=10">profile</a>, the wall-clock and CPU
time of all threads; seconds=N says of how long, 30 by default.
'''


def respond(seconds, path, query):
    """Return the Response to a GET.

    *path* is relative to the page, *query* what is behind the question mark.
    """
    try:
        answer = _ANSWERS[path]
    except KeyError:
        return refusal(404, 'There is nothing at this address.')
    return answer(seconds, parse_qs(query))


def refusal(status, text):
    return _response((text + '\n').encode(), _TEXT, status=status)


def _response(body, kind, *more, status=200):
    return Response(status, [*_HEADERS, ('Content-Type', kind),
                             ('Content-Length', str(len(body))), *more], body)


def _number(query, name, otherwise, known):
    """Return what a query has; raise ValueError."""
    text = query.get(name, [str(otherwise)])[-1]
    if not text.isascii() or not text.isdecimal() or int(text) not in known:
        raise ValueError(f'{name} cannot be {text!r}')
    return int(text)


def _window(query):
    return _number(query, 'window', WINDOWS[0], WINDOWS)


def _page(seconds, query):
    return _response(html.live(), _HTML)


def _live(seconds, query):
    """The document of a window, with what is so now."""
    try:
        window = _window(query)
    except ValueError as exc:
        return refusal(400, str(exc))
    tables = seconds.window(window)
    if tables is None:
        return _nothing(seconds)
    lines, sums = seconds.answers(window)
    process = seconds.process
    return _response(document(
        tables, seconds.mine, more=lambda places: {
            'title': process.name, 'command': ' '.join(process.command),
            'pid': process.pid, 'cards': _cards(lines, sums, places),
            'live': {'at': seconds.at, 'threads': process.threads,
                     'up_s': process.up_s, 'window': window,
                     'ended': seconds.screen.ended or (
                         'is no longer watched' if seconds.is_over else ''),
                     'silent_since': seconds.screen.silent_since,
                     'history': _history(seconds)}}), _BYTES)


def _nothing(seconds):
    ended = seconds.screen.ended
    return refusal(503, f'PID {seconds.process.pid} ' + (
        ended or 'has run no Python code yet.'))


def _history(seconds):
    """Return [its length in seconds, threads by state...] of each of the last
    seconds: one is longer if the process did not answer at once."""
    found = []
    for states, length_ns in list(seconds.screen.windows.history)[
            -_HISTORY_S:]:
        found.append([length_ns / 1e9, *[
            0 if state == IDLE else round(ns / (length_ns or 1), 2)
            for state, ns in enumerate(states)]])
    return found


def _cards(lines, sums, places):
    """Return the three lines as cards."""
    slow, where, gil = [lines[name] for name in ('slow', 'where', 'gil')]
    at = {tuple(place_json(place).values()): number for place, number
          in places.items()}.get(tuple(where.more.get(key) for key in (
              'file', 'line', 'function')), -1)
    busy = sum(sums.states())
    own = sum(where.more.get('states', {}).values()) * 1e9
    waiting = gil.more.get('waiting')
    return [
        _card('slow', 'Slow', '', slow),
        _card('where', 'Where', f'{100 * own / busy:.0f} %' if busy and own
              else '', where, 'place' if at >= 0 else '', 'See the line', at),
        _card('gil', 'GIL', f'{number(waiting)} wait' if waiting else '', gil,
              'gil', 'Who held the GIL')]


def _card(rule, title, figure, answer, go='', link='', place=-1):
    return {'rule': rule, 'title': title, 'figure': figure,
            'text': f'{answer.forms[0]}.', 'go': go, 'link': link * bool(go),
            'place': place}


def _sources(seconds, query):
    tables = seconds.window(0)
    if tables is None:
        return _nothing(seconds)
    return _response(writer.gzipped(json_text.data(sources.found(tables)), 3),
                     _BYTES)


def _saved(kind):
    """Return what answers all that was seen as a file."""
    def answer(seconds, query):
        tables = seconds.window(0)
        if tables is None:
            return _nothing(seconds)
        tables = tables.with_facts(meta={
            'command': ' '.join(seconds.process.command)})
        return _response(
            html.encode(tables, mine=seconds.mine) if kind == 'html'
            else writer.encode(tables), _BYTES)
    return answer


def _pprof(seconds, query):
    """Answer as Go's net/http/pprof does."""
    try:
        wanted = _number(query, 'seconds', _PPROF_S,
                         range(1, MAX_SECONDS + 1))
    except ValueError as exc:
        return refusal(400, f'{exc}: it is 1 to {MAX_SECONDS}')
    tables = seconds.next(wanted)
    if tables is None:
        return _nothing(seconds)
    return _response(writer.encode(tables), _BYTES, (
        'Content-Disposition', 'attachment; filename="profile"'))


def _index(seconds, query):
    return _response(_PPROF_INDEX, _HTML)


_ANSWERS = {
    '': _page, 'live': _live, 'sources': _sources,
    'all.html': _saved('html'), 'all.pb.gz': _saved('pb.gz'),
    'debug/pprof/': _index, 'debug/pprof/profile': _pprof}
