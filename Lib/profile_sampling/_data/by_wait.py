"""What threads waited for: a socket, a lock, a child process and so on.

This file owns which functions wait and what for.  It must not know how that
is shown.

The C function at the leaf says what it waits for.  The functions of Python
that call it say it better: queue.Queue.get() waits in a lock.  So the
outermost function that is known to wait counts, of those in a row from the
leaf on.
"""

from profile_sampling._data.tables import FRAME_COLUMNS, NODE_COLUMNS
from profile_sampling._data.values import IDLE, WAITING

_WAITS = frozenset({WAITING, IDLE})
SOCKET, FILE, LOCK, QUEUE, SLEEP, CHILD, LOOP, DATABASE, OTHER = (
    'socket', 'file or pipe', 'lock', 'queue', 'sleep', 'child process', 'event loop',
    'database', 'other')
# Functions, modules and packages; what is nearer to a function's name counts.
_KIND_OF = {name: kind for kind, names in (
    (SOCKET, '_socket _ssl select selectors socket ssl'),
    # A descriptor does not say which: a pipe of a child, or a terminal.
    (FILE, '_io mmap posix'),
    (LOCK, '_multiprocessing _thread concurrent.futures._base fcntl '
           'multiprocessing.synchronize threading'),
    (QUEUE, '_queue multiprocessing.connection multiprocessing.queues queue'),
    (SLEEP, 'threading.Timer.run time'),
    (CHILD, '_posixsubprocess multiprocessing.popen_fork posix.wait '
            'posix.wait3 posix.wait4 posix.waitid posix.waitpid subprocess'),
    (LOOP, 'asyncio.base_events.BaseEventLoop._run_once gevent.hub trio._core '
           'uvloop'),
    (DATABASE, 'MySQLdb _sqlite3 aiosqlite asyncpg cassandra '
               'clickhouse_driver cx_Oracle duckdb mysql oracledb psycopg '
               'psycopg2 psycopg_binary psycopg_c pymongo pymssql pymysql '
               'pyodbc redis sqlite3')) for name in names.split()}
_MOST_PARTS = max([name.count('.') + 1 for name in _KIND_OF])
# They run what a thread or a process is for, and wait for nothing themselves.
_RUN = frozenset(['threading.Thread.' + name for name in (
    'run', '_bootstrap', '_bootstrap_inner')])
# Modules of C that Python shows under another name.
_PUBLIC = {'posix': 'os', '_thread': 'threading'}


def waits(tables):
    """Return ([None, (name, kind), ...], for each sample the number of its
    wait): 0 for a thread that does not wait."""
    kinds = [_kind(function) for function in tables.functions]
    of_frames = tables.frames_view()[0::FRAME_COLUMNS].tolist()
    nodes = tables.nodes_view()
    numbers, of_node, found = {None: 0}, {}, []
    for node, state in zip(tables.column('stack'), tables.column('state')):
        if state in _WAITS and node not in of_node:
            wait = _wait(tables.functions, kinds, of_frames, nodes, node)
            of_node[node] = numbers.setdefault(wait, len(numbers))
        found.append(of_node[node] if state in _WAITS else 0)
    return list(numbers), found


def _wait(functions, kinds, of_frames, nodes, node):
    """Return (name, kind) of what is waited for at a node."""
    last = None
    while node:
        number = of_frames[nodes[NODE_COLUMNS * node + 1]]
        node = nodes[NODE_COLUMNS * node]
        kind = functions[number].kind
        if kind in ('pseudo', 'operator'):
            continue
        if last is not None and kinds[number] is None:
            break
        # A reader of C waits for what its file of Python waits for.
        if last is None or kind == 'python':
            last = number
        if kinds[number] in (None, LOOP):
            break
    if last is None:
        return '', OTHER
    return _name(functions[last], kinds[last]), kinds[last] or OTHER


def _kind(function):
    """Return what a function waits for; None: it is not known to wait."""
    if function.name in _RUN:
        return None
    parts = function.name.split('.', _MOST_PARTS)
    for end in range(min(len(parts), _MOST_PARTS), 0, -1):
        kind = _KIND_OF.get('.'.join(parts[:end]))
        if kind is not None:
            return kind
    return None


def _name(function, kind):
    """Return the name that people know: 'socket.recv'."""
    if kind == LOOP:
        return function.name.partition('.')[0]
    if function.kind == 'python' or function.module is None:
        return function.name
    module = _PUBLIC.get(function.module, function.module.lstrip('_'))
    name = function.qualname
    return name if name.startswith(f'{module}.') else f'{module}.{name}'
