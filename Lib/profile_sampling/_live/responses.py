"""What is answered to whom."""

from collections import namedtuple
from urllib.parse import parse_qs

from profile_sampling._data import by_state, diff, idle
from profile_sampling._data.on_clocks import on_clocks
from profile_sampling._data.values import IDLE
from profile_sampling._formats import html, json_text, sources
from profile_sampling._formats.page import compared
from profile_sampling._formats.page.document import document
from profile_sampling._formats.pprof import writer
from profile_sampling._live.seconds import MAX_SECONDS, WINDOWS
from profile_sampling._reach.look import object_of
from profile_sampling._top.answers import number, place_json, place_text
from profile_sampling._top.windows import AWAIT_THREADS

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
# Of longer windows moments are a lot: they are there if asked for.
_TIMED_S = 60
# What changes by less is as before.
_LEAST_THREADS = 0.02
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
        moment = _number(query, 'since', 0, range(1 << 40))
    except ValueError as exc:
        return refusal(400, str(exc))
    tables = seconds.window(window, timeline=0 < window <= _TIMED_S
                            or 'time' in query)
    if tables is None:
        return _nothing(seconds)
    lines, sums = seconds.answers(window)
    process = seconds.process
    look = seconds.screen.look
    return _response(document(
        tables, seconds.mine, more=lambda columns: {
            'title': process.name, 'command': ' '.join(process.command),
            'pid': process.pid, 'cards': _cards(lines, sums, columns.places),
            'also': [],
            'live': {'at': seconds.at, 'threads': process.threads,
                     'up_s': process.up_s, 'window': window,
                     'changes': moment and _changes(seconds, moment, window,
                                                    columns),
                     'requests': [_under_way(request, columns.places)
                                  for request in look.requests]
                     if look is not None else [],
                     'ended': seconds.screen.ended or (
                         'is no longer watched' if seconds.is_over else ''),
                     'silent_since': seconds.screen.silent_since,
                     'history': _history(seconds)}}), _BYTES)


def _changes(seconds, moment, window, columns):
    """Return what changed since a moment, in threads; None: nothing was seen
    before it, or since."""
    sides = seconds.sides(moment, window)
    if sides is None:
        return None
    lengths = [tables.length_ns or 1 for tables in sides]
    found = compared.changes(
        diff.of_tables(*[[tables] for tables in sides],
                       diff.Question(mine=seconds.mine)), columns)
    for row in found['rows']:
        row['source'] = seconds.sources.line(row['file'], row['line'])
    for row in (found['total'], *found['rows']):
        row['before'] /= lengths[0]
        row['after'] /= lengths[1]
        row['change'] = row['after'] - row['before']
        row['margin'] /= min(lengths)
        row['is_clear'] &= (
            abs(row['change']) > max(row['margin'], _LEAST_THREADS))
    found['rows'].sort(key=lambda row: -abs(row['change']))
    return found | {
        'value': {'name': 'threads', 'kind': 'wall', 'unit': 'threads'},
        # Both are of one run; how far they may be off is said.
        'is_doubtful': False,
        'moment': moment, 'length_s': lengths[1] / 1e9, 'states': [
            [ns / length_ns for ns in by_state.whole(
                idle.shown(on_clocks(tables))).by_state]
            for tables, length_ns in zip(sides, lengths)]}


def _under_way(request, places):
    """Return what a request does now: its age, route, the number of its line
    of mine or -1, a state, and words."""
    thread, task = request.thread, request.task
    state, line = '', None
    if thread is not None:
        line = thread.mine
        state = thread.state.replace(' ', '_')
        words = f'{thread.name}: {object_of(thread)}'
    elif task is not None:
        line = next((its for its in reversed(task.lines) if its.is_mine), None)
        awaited = task.lines[-1].function.qualname if task.lines else ''
        words = ('runs' if task.state == 'running' else
                 'has not begun' if not awaited else
                 'in a worker thread, or waits for one'
                 if awaited.rpartition('.')[2] in AWAIT_THREADS else
                 f'awaits {awaited}')
    else:
        words = ''
    place = -1
    if line is not None:
        place = places.get((line.function, line.line), -1)
        if place < 0:
            words = f'{place_text(line.function, line.line)} {words}'
    return [request.age_s, request.route, place, state, words]


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
