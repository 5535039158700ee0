"""The live screen, as JSON.

What is not known is absent; new keys may come.
"""

import json

from profile_sampling._reach.as_json import timestamp
from profile_sampling._top.answers import states_json
from profile_sampling._top import views

VERSION = 1


def line(screen):
    """Return one object, as a line."""
    windows = screen.windows
    window = windows.last(screen.window_s)
    table = views.table(screen.view, screen.facts(80))
    return json.dumps({
        'format': 'sampleprof-top', 'version': VERSION,
        'at': timestamp(screen.at), 'pid': screen.process.pid,
        'state': 'live' if screen.ended is None else 'ended',
        'since_s': windows.all.length_ns / 1e9,
        'window_s': window.length_ns / 1e9,
        'threads': screen.process.threads,
        'answers': {key: {'kind': answer.kind} | answer.more
                    | {'text': answer.forms[0]}
                    for key, answer in screen.answers().items()},
        'window': _sums(window), 'all': _sums(windows.all),
        'rows': [row.json for row in [*table.rows, *table.last]]}) + '\n'


def _sums(sums):
    states = sums.states()
    return {'busy_s': sum(states) / 1e9, 'idle_s': sums.idle_ns / 1e9,
            'states': states_json(states)}
