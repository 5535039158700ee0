"""Writer of speedscope's own files, *.speedscope.json.

The format is defined by https://www.speedscope.app/file-format-schema.json,
which the npm package speedscope has as well (file-format-schema.json).

A file has a list of profiles, of which the viewer shows one at a time: here
one of all threads for each type of values, what the profile is about first,
and then one for each thread.  All are of the type "sampled": a list of
stacks, root first, and the weight of each, as it is in our unit.  A frame is a
function with the place of its definition.

What gets lost: lines, columns and instructions; labels, tasks and who held
the GIL; states but for the pseudo-frames, such as [waiting], that stand on
stacks; counters; when the session was.  If the profile has a time line, those
of threads are in the order of time.  Else stacks are in the order of their
names, so that "Time Order" shows each function once below its caller.
"""

from profile_sampling._data import timeline
from profile_sampling._data.call_paths import CallPaths
from profile_sampling._data.measures import measures
from profile_sampling._data.values import NO_FRAMES, WALL, printable
from profile_sampling._formats import json_text

SCHEMA = 'https://www.speedscope.app/file-format-schema.json'
# Units that the format knows; all others are plain numbers.
_UNITS = ('nanoseconds', 'microseconds', 'milliseconds', 'seconds', 'bytes')


def encode(tables):
    """Return the bytes of the file of a profile."""
    paths = CallPaths(tables)
    frames = [_frame(function) for function, _ in paths.places]
    nodes = [paths.of_node[node] for node in tables.column('stack')]
    # As text: each is in several profiles.
    used = sorted(set(nodes))
    stacks = {node: f'[{",".join(stack)}]' for node, stack in zip(
        used, paths.stacks(used, list(map(str, range(len(frames))))))}
    if 0 in stacks:
        stacks[0] = f'[{len(frames)}]'
        frames.append({'name': NO_FRAMES})
    all_measures = measures(tables)
    profiles = [
        _profile(measure, f'{measure.title}, all threads', stacks,
                 zip(nodes, measure.column)) for measure in all_measures]
    profiles += _of_threads(tables, all_measures[0], stacks, nodes)
    return json_text.data({
        '$schema': SCHEMA, 'name': _name(tables), 'exporter':
        'profile_sampling', 'activeProfileIndex': 0,
        'shared': {'frames': frames}, 'profiles': profiles})


def thread_text(thread):
    """What a thread is called: its name, and its number in the system."""
    name = 'thread' if thread.name is None else printable(thread.name)
    return f'{name} ({thread.native_id or thread.ident})'


def _name(tables):
    version = printable(tables.python_version)
    pid = '' if tables.pid is None else f', process {tables.pid}'
    return f'{tables.mode} profile of Python {version}{pid}'


def _frame(function):
    frame = {'name': printable(function.name) or '[no name]'}
    if function.filename:
        frame['file'] = printable(function.filename)
    if function.first_line:
        frame['line'] = function.first_line
    return frame


def _of_threads(tables, measure, stacks, nodes):
    """Return the profiles of the threads if there are several."""
    rows = {}
    for thread, node, value in zip(tables.column('thread'), nodes,
                                   measure.column):
        rows.setdefault(thread, []).append((node, value))
    records = timeline.by_thread(tables, measure.name)
    if records is None and len(rows) < 2:
        return []
    found = []
    has_processes = len(tables.processes) > 1
    for number, its_rows in rows.items():
        thread = tables.threads[number]
        title = f'{measure.title}, {thread_text(thread)}'
        if has_processes and thread.process is not None:
            title += f', process {thread.process.pid}'
        total = sum([value for _, value in its_rows])
        profile = (_profile(measure, title, stacks, its_rows)
                   if records is None else
                   _in_time(measure, title, stacks, nodes, records[number]))
        found.append((-total, title, thread.ident, thread.native_id,
                      thread.interpreter_id, profile))
    # The most expensive first.
    found.sort(key=lambda row: row[:-1])
    return [profile for *_, profile in found]


def _profile(measure, title, stacks, rows):
    """Return a profile of (node, value) of samples."""
    weights = {}
    for node, value in rows:
        if value:
            weights[node] = weights.get(node, 0) + value
    nodes = sorted(weights)
    return _sampled(measure, title, [stacks[node] for node in nodes],
                    [weights[node] for node in nodes])


def _in_time(measure, title, stacks, nodes, records):
    """Return the same of the records of a time line, in their order.  Where
    there is none a thread was idle, or not there yet: an empty stack."""
    found = []
    now_ns = 0
    for begin_ns, row, value, _, wall_ns in records:
        if begin_ns is not None and begin_ns > now_ns:
            if measure.name == WALL.name:
                found.append(['[]', begin_ns - now_ns])
            now_ns = begin_ns
        now_ns += wall_ns
        stack = stacks[nodes[row]]
        if found and found[-1][0] == stack:
            found[-1][1] += value
        elif value:
            found.append([stack, value])
    return _sampled(measure, title, *(zip(*found) if found else ([], [])))


def _sampled(measure, title, samples, weights):
    return {'type': 'sampled', 'name': title,
            'unit': measure.unit if measure.unit in _UNITS else 'none',
            'startValue': 0, 'endValue': sum(weights),
            'samples': json_text.array(list(samples)),
            'weights': list(weights)}
