"""Functions that ask a service, a disk or the system: what calls of them are.

A line of the list is what a call is, the module and the qualified name.  A
function that is not there is not counted; of several on one stack the
outermost counts, so a library and the driver below it may both be listed.
Drivers in C have no function here.
"""

# What is said of a call, of several, and before their number.
KINDS = {
    'query': ('query', 'queries', 'runs'),
    'command': ('command', 'commands', 'runs'),
    'http': ('HTTP request', 'HTTP requests', 'sends'),
    'file': ('file', 'files', 'opens'),
    'process': ('process', 'processes', 'starts'),
}

_LIST = '''
query aiomysql.cursors Cursor.execute
query aiosqlite.core Connection.execute
query aiosqlite.core Connection.executemany
query aiosqlite.cursor Cursor.execute
query aiosqlite.cursor Cursor.executemany
query asyncpg.connection Connection.execute
query asyncpg.connection Connection.executemany
query asyncpg.connection Connection.fetch
query asyncpg.connection Connection.fetchrow
query asyncpg.connection Connection.fetchval
query asyncpg.prepared_stmt PreparedStatement.fetch
query asyncpg.prepared_stmt PreparedStatement.fetchrow
query asyncpg.prepared_stmt PreparedStatement.fetchval
query django.db.backends.utils CursorWrapper.execute
query django.db.backends.utils CursorWrapper.executemany
query mysql.connector.cursor MySQLCursor.execute
query oracledb.cursor Cursor.execute
query peewee Database.execute_sql
query psycopg.cursor Cursor.execute
query psycopg.cursor Cursor.executemany
query psycopg.cursor_async AsyncCursor.execute
query psycopg.cursor_async AsyncCursor.executemany
query pymysql.cursors Cursor.execute
query sqlalchemy.engine.default DefaultDialect.do_execute
query sqlalchemy.engine.default DefaultDialect.do_execute_no_params
query sqlalchemy.engine.default DefaultDialect.do_executemany
command pymongo.asynchronous.pool AsyncConnection.command
command pymongo.pool Connection.command
command pymongo.synchronous.pool Connection.command
command redis.asyncio.client Pipeline.execute
command redis.asyncio.client Redis.execute_command
command redis.client Pipeline.execute
command redis.client Redis.execute_command
http aiohttp.client ClientSession._request
http http.client HTTPConnection.request
http httpx._client AsyncClient.send
http httpx._client Client.send
http requests.sessions Session.send
http urllib.request OpenerDirector.open
http urllib3.connection HTTPConnection.request
file pathlib._local Path.open
file tempfile NamedTemporaryFile
file tempfile TemporaryFile
process asyncio.subprocess create_subprocess_exec
process asyncio.subprocess create_subprocess_shell
process subprocess Popen.__init__
'''


def _read():
    lines = [line.split(' ') for line in _LIST.split('\n') if line]
    return {(module, name): kind for kind, module, name in lines}


KIND_OF = _read()


def kind(function):
    """Return the kind of calls of a Function: a key of KINDS."""
    return KIND_OF.get((function.module, function.qualname), 'query')
