"""What threads waited for: a socket, a lock, a child process and so on.

The C function at the leaf says what it waits for.  The functions of Python
that call it say it better: queue.Queue.get() waits in a lock.  So the
outermost function that is known to wait counts, of those in a row from the
leaf on; but a pool is named by who waits for it, whatever asked the pool.
"""

from profile_sampling._data import culprits
from profile_sampling._data.tables import FRAME_COLUMNS, NODE_COLUMNS
from profile_sampling._data.values import IDLE, WAITING, Value

_WAITS = frozenset({WAITING, IDLE})
SOCKET, FILE, LOCK, QUEUE, SLEEP, CHILD, LOOP, DATABASE, OTHER = (
    'socket', 'file or pipe', 'lock', 'queue', 'sleep', 'child process', 'event loop',
    'database', 'other')
POOL, HTTP, WORKER, OTHER_THREADS, OTHER_TASKS, NATIVE = (
    'pool', 'HTTP', 'worker thread', 'other threads', 'other tasks',
    'threads without Python')
# On top of a stack whose thread waited while such threads computed: that is
# what it waited for unless a function says something else.
_NATIVE = f'[{NATIVE}]'
# Functions, modules and packages; what is nearer to a function's name counts.
_KIND_OF = {name: kind for kind, names in (
    (SOCKET, '_socket _ssl._SSLSocket anyio._backends._asyncio.SocketStream '
             'anyio._backends._asyncio.UNIXSocketStream anyio.streams.tls '
             'asyncio.streams select selectors socket ssl.SSLObject '
             'ssl.SSLSocket'),
    # A descriptor does not say which: a pipe of a child, or a terminal.
    (FILE, '_io mmap posix'),
    (LOCK, '_multiprocessing _thread asyncio.locks '
           'anyio._backends._asyncio.Event anyio._backends._asyncio.Lock '
           'anyio._backends._asyncio.Semaphore '
           'anyio._core._synchronization fcntl '
           'multiprocessing.synchronize threading'),
    (QUEUE, '_queue anyio.streams.memory asyncio.queues '
            'multiprocessing.connection multiprocessing.queues queue '
            'sqlalchemy.util.queue'),
    (SLEEP, 'asyncio.tasks.sleep threading.Timer.run time'),
    (CHILD, '_posixsubprocess asyncio.subprocess multiprocessing.popen_fork '
            'posix.wait posix.wait3 posix.wait4 posix.waitid posix.waitpid '
            'subprocess'),
    (LOOP, 'asyncio.base_events.BaseEventLoop._run_once gevent.hub trio._core '
           'uvloop'),
    (DATABASE, 'MySQLdb _sqlite3 aiosqlite asyncpg cassandra '
               'clickhouse_driver cx_Oracle duckdb mysql oracledb psycopg '
               'psycopg2 psycopg_binary psycopg_c pymongo pymssql pymysql '
               'pyodbc redis sqlite3'),
    (POOL, 'aiohttp.connector.BaseConnector._wait_for_available_connection '
           'asyncpg.pool.Pool._acquire asyncpg.pool.Pool.acquire '
           'httpcore._async.connection_pool.AsyncPoolRequest.'
           'wait_for_connection '
           'httpcore._sync.connection_pool.PoolRequest.wait_for_connection '
           'psycopg_pool redis.connection.BlockingConnectionPool '
           'redis.asyncio.connection.BlockingConnectionPool '
           'sqlalchemy.pool.impl.AsyncAdaptedQueuePool '
           'sqlalchemy.pool.impl.QueuePool._do_get '
           'urllib3.connectionpool.HTTPConnectionPool._get_conn'),
    (HTTP, 'aiohttp.client aiohttp.client_proto aiohttp.client_reqrep '
           'aiohttp.connector http.client httpcore httpx requests urllib '
           'urllib3'),
    (WORKER, 'anyio._backends._asyncio.AsyncIOBackend.'
             'run_sync_in_worker_thread anyio.to_thread '
             'asyncio.base_events.BaseEventLoop.getaddrinfo '
             'asyncio.base_events.BaseEventLoop.getnameinfo asyncio.threads '
             'starlette.concurrency.run_in_threadpool'),
    (OTHER_THREADS, 'concurrent.futures._base multiprocessing.pool '
                    'threading.Thread.join threading._shutdown'),
    (OTHER_TASKS, 'anyio._backends._asyncio.TaskGroup asyncio.taskgroups '
                  'asyncio.queues.Queue.join '
                  'asyncio.tasks._GatheringFuture asyncio.tasks.gather '
                  'asyncio.tasks.wait '
                  'sqlalchemy.ext.asyncio.base._run_to_completion '
                  'starlette.middleware.base'),
    ) for name in names.split()}
_MOST_PARTS = max([name.count('.') + 1 for name in _KIND_OF])
# They run what a thread or a process is for, and wait for nothing themselves.
_RUN = frozenset(['threading.Thread.' + name for name in (
    'run', '_bootstrap', '_bootstrap_inner')])
# What is awaited through them is meant.
_THROUGH = frozenset({
    'asyncio.tasks.wait_for', 'asyncio.timeouts.Timeout.__aexit__',
    'async_timeout.Timeout.__aexit__', 'sqlalchemy.util.compat.wait_for'})
# A pool of SQLAlchemy's waits in a greenlet, whose frames are in no chain of
# awaits: for a queue, below one of these.
_GREENLETS = frozenset({
    'sqlalchemy.util.concurrency', 'sqlalchemy.util._concurrency_py3k'})
_SA_POOL = 'sqlalchemy.pool.QueuePool'
_LIMITER, FREE_WORKER = 'anyio._backends._asyncio.CapacityLimiter', 'a free one'
# Modules of C that Python shows under another name.
_PUBLIC = {'posix': 'os', '_thread': 'threading'}


class WaitRow(Value):
    """How long one line of mine waited for one thing.

    kind      what for: one of the above
    what      the function that waited for it, as people know it
    function  the Function that is mine; None: outside of my code
    line      where in it, or 0
    inside    what the line called, or what is outside of my code
    ns        how long, all together
    """

    __slots__ = ('kind', 'what', 'function', 'line', 'inside', 'ns')


def waits(tables):
    """Return ([None, (name, kind), ...], for each sample the number of its
    wait): 0 for a thread that does not wait."""
    wait_at = Waits(tables).at
    numbers, found = {None: 0}, []
    for node, state in zip(tables.column('stack'), tables.column('state')):
        found.append(numbers.setdefault(wait_at(node), len(numbers))
                     if state in _WAITS else 0)
    return list(numbers), found


def of_threads(tables, mine=None):
    """Return a list of WaitRow: what threads waited for that were not idle."""
    return _rows(tables, mine, [
        ns if state == WAITING else 0 for state, ns in zip(
            tables.column('state'), tables.own_column)])


def _rows(tables, mine, values):
    sums = {}
    for node, ns in zip(tables.column('stack'), values):
        if ns:
            sums[node] = sums.get(node, 0) + ns
    wait_at, places = Waits(tables).at, culprits.Places(tables, mine)
    return ranked([(*wait_at(node), *places.at(node), ns)
                   for node, ns in sums.items()])


def ranked(found):
    """Return a list of WaitRow of (what, kind, function, line, package, ns),
    the longest first; those of one line are one."""
    sums = {}
    for what, kind, function, line, package, ns in found:
        key = kind, what, function, line, '' if function else package
        its_ns, _ = sums.get(key, (0, ''))
        sums[key] = its_ns + ns, package
    rows = [WaitRow(*key[:4], package, ns)
            for key, (ns, package) in sums.items()]
    rows.sort(key=lambda row: (
        -row.ns, row.kind, row.what,
        row.function.name if row.function else row.inside, row.line))
    return rows


class Waits:
    """What is waited for at the nodes of some Tables."""

    def __init__(self, tables):
        self._functions = tables.functions
        self._kinds = [_kind(function) for function in tables.functions]
        self._of_frames = tables.frames_view()[0::FRAME_COLUMNS].tolist()
        self._nodes = tables.nodes_view()
        self._known = {}

    def at(self, node):
        """Return (name, kind)."""
        found = self._known.get(node)
        if found is None:
            found = self._known[node] = self._find(node)
        return found

    def _find(self, node):
        last, if_not_known = None, OTHER
        while node:
            number = self._of_frames[self._nodes[NODE_COLUMNS * node + 1]]
            node = self._nodes[NODE_COLUMNS * node]
            function, kind = self._functions[number], self._kinds[number]
            if function.kind in ('pseudo', 'operator') or (
                    function.name in _THROUGH):
                if function.name == _NATIVE:
                    if_not_known = NATIVE
                continue
            if function.name.startswith(_LIMITER):
                return FREE_WORKER, WORKER
            if last is not None and function.module in _GREENLETS and (
                    self._kinds[last] == QUEUE):
                return _SA_POOL, POOL
            if last is not None and kind is None:
                break
            # A reader of C waits for what its file of Python waits for.
            if last is None or function.kind == 'python':
                last = number
            if kind in (None, LOOP, POOL):
                break
        if last is None:
            return '', if_not_known
        kind = self._kinds[last]
        return _name(self._functions[last], kind), kind or if_not_known


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
