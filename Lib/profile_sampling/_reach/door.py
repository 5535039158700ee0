"""A question to a process, and its answer.

The way there and back is a signal that carries a number, a socket of that
name, to which the process connects, and memory that it hands over.
"""

import os
import secrets
import select
import socket
import stat
import struct
import time

from profile_sampling import _core
from profile_sampling._reach import kernel, records
from profile_sampling._reach.processes import Process, Refusal, ended

HELLO, DUMP, TASKS = 1, 2, 3
PROTOCOL = 2
# struct _sampling_answer of Python/sampling/reach/reach.h.
_ANSWER = struct.Struct('=8sIIIIQQQ32s')
_MAGIC = b'sampleng'
(_ANSWERED, _AGAIN, _NOT_YOURS, _PROTECTED, _UNMAPPED, _VETOED, _ENDS,
 _NO_SPACE, _BUSY) = range(9)
_MAX_BYTES = 256 << 20
# System calls that go on after a handler, and those that Python makes again.
_GOES_ON = frozenset({'futex', 'read', 'recv', 'accept', 'write', 'send',
                      'wait', 'flock'})
_GOES_ON_IN_PYTHON = frozenset({'epoll', 'poll', 'select', 'sleep'})
# They wait for a signal: the request would be what they return.
_WAITS_FOR_SIGNAL = frozenset({'pause', 'sigwait'})
# How long a process may take, and one signal of several.
LIMIT_S = 2.0
_TRY_S = 0.1
# And one that the thread has taken: our handler is at work, or the program's
# is, which is not to be called often.
_TAKEN_S = 0.4
_PAUSE_S = 0.001


class Answer:
    """What a process has said.

    pid           its number in its own namespace
    at_safepoint  where its thread stood; else it was in a signal handler
    took_s        how long nobody else could run Python code
    records       bytes
    thread        ThreadState of the thread that was signalled, as before
    """

    def __init__(self, pid, at_safepoint, took_s, records, thread):
        self.pid = pid
        self.at_safepoint = at_safepoint
        self.took_s = took_s
        self.records = records
        self.thread = thread


def ask(process, verb, *, threads=None, limit_s=LIMIT_S):
    """Ask a Process; return an Answer or raise Refusal."""
    threads = threads or process.threads_now()
    deadline = time.monotonic() + limit_s
    try:
        pidfd = os.pidfd_open(process.pid)
    except OSError:
        raise ended(process.pid) from None
    try:
        for thread in _candidates(process, threads):
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                break
            answer = _try(process, verb, thread, pidfd,
                          min(left_s, _TRY_S))
            if answer is not None:
                return answer
    finally:
        os.close(pidfd)
    raise _silent(process, limit_s)


def _candidates(process, threads):
    """Return threads to signal, again and again: one that runs, so that no
    system call is cut short, then one whose call goes on."""
    able = by_harm(process, threads)
    for _ in range(round(LIMIT_S / _TRY_S / 2)):
        yield from able[:1]
    while able:
        yield from able[:4]


def by_harm(process, threads):
    """Return ThreadState objects, those that a signal harms least first.

    Raise Refusal if all of them wait for a signal.
    """
    able = [thread for thread in threads.values()
            if not thread.is_ours and not _waits_for_signal(thread)]
    if threads and not able:
        raise Refusal(
            process.pid, 'no-answer', f'PID {process.pid} does nothing but '
            'wait for a signal (pause, sigwait), which a request would end.')
    # One that blocks it now may be answering somebody else.
    return sorted(able, key=lambda thread: (thread.blocks,
                                            _harm(process, thread)))


def _waits_for_signal(thread):
    line = thread.read_call()
    if line:
        return kernel.name_of(line) in _WAITS_FOR_SIGNAL
    # Who may not trace it may read where it waits.
    place = thread.waits_in()
    return 'sys_pause' in place or 'do_sigtimedwait' in place


def _harm(process, thread):
    """Return how likely it is that a signal ends a call too early: of one that
    Python makes it never does."""
    if thread.state == 'R':
        return 0
    line = thread.read_call()
    if not line:
        return 4 if thread.number == process.pid else 3
    if line.startswith('running'):
        return 0
    call = kernel.name_of(line)
    return 1 if call in _GOES_ON else 2 if call in _GOES_ON_IN_PYTHON else 5


def _try(process, verb, thread, pidfd, limit_s):
    request = secrets.randbits(60) << 4 | verb
    with listener(process, request) as answers:
        try:
            _core.load().send_request(process.pid, thread.number, request)
        except ProcessLookupError:
            return None
        except PermissionError:
            raise no_right(process) from None
        ready, _, _ = select.select([answers, pidfd], [], [], limit_s)
        if not ready and not thread.has_pending():
            ready, _, _ = select.select([answers, pidfd], [], [], _TAKEN_S)
        if pidfd in ready:
            raise ended(process.pid)
        if not ready:
            return None
        connection, _ = answers.accept()
    with connection:
        return receive(process, connection, thread=thread)


def no_right(process):
    return Refusal(
        process.pid, 'no-right', f'No right to signal PID {process.pid}: same '
        'user, but the system forbids it.',
        'From a shell in the same container it works; or as root.')


def listener(process, request):
    name = f'\0sampleprof-{request:016x}'
    with _network_of(process):
        found = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            found.bind(name)
            found.listen(16)
        except OSError:
            found.close()
            raise
    return found


class _network_of:
    """In the process's namespace of networks: names of sockets end there."""

    def __init__(self, process):
        self._process = process
        self._own = None

    def __enter__(self):
        theirs = f'/proc/{self._process.pid}/ns/net'
        try:
            if os.path.samestat(os.stat(theirs), os.stat('/proc/self/ns/net')):
                return
        except OSError:
            return          # this user may not know
        try:
            self._own = os.open('/proc/thread-self/ns/net', os.O_RDONLY)
            with open(theirs, 'rb') as file:
                os.setns(file.fileno(), os.CLONE_NEWNET)
        except OSError:
            self.__exit__()
            raise Refusal(
                self._process.pid, 'namespace',
                f'PID {self._process.pid} is PID {self._process.pid_inside} '
                'in its namespace; you see it from outside.',
                'As root it works; or from a shell in its container.'
            ) from None

    def __exit__(self, *exc):
        if self._own is not None:
            try:
                os.setns(self._own, os.CLONE_NEWNET)
            except OSError:
                pass        # it was never left
            os.close(self._own)
            self._own = None


def receive(process, connection, *, thread=None):
    """Return the Answer that a connection brings; None: it is of somebody
    else, comes later, or no more."""
    peer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    pid, _, _ = struct.unpack('3i', peer)
    if pid != process.pid:
        return None         # somebody else has guessed the name
    connection.settimeout(LIMIT_S)
    message, fds, _, _ = socket.recv_fds(connection, _ANSWER.size, 1)
    try:
        return _read(process, message, fds, thread) if message else None
    finally:
        for fd in fds:
            os.close(fd)


def _read(process, message, fds, thread):
    if len(message) != _ANSWER.size:
        raise _other_version(process, '?')
    (magic, protocol, answer, pid, at_safepoint, first, size, took_ns,
     version) = _ANSWER.unpack(message)
    version = version.rstrip(b'\0').decode('ascii', 'replace')
    if magic != _MAGIC or protocol != PROTOCOL:
        raise _other_version(process, version)
    if answer == _AGAIN:
        time.sleep(_PAUSE_S)
        return None
    data = b''
    if fds:
        # Not mapped: it might be cut while it is read.
        if not stat.S_ISREG(os.fstat(fds[0]).st_mode) or size > _MAX_BYTES:
            raise _other_version(process, version)
        data = os.pread(fds[0], size, first)
    if answer != _ANSWERED:
        raise _refused(process, answer, data)
    return Answer(pid, bool(at_safepoint), took_ns / 1e9, data, thread)


def _refused(process, answer, data):
    pid = process.pid
    match answer:
        case _ if answer == _NOT_YOURS:
            return Refusal(pid, 'other-user', f'PID {pid} belongs to another '
                           'user.', 'As that user, or as root, it works.')
        case _ if answer == _PROTECTED:
            return Refusal(pid, 'protected', f'PID {pid} is protected (not '
                           'dumpable: it gave up rights).',
                           'As root it works.')
        case _ if answer == _UNMAPPED:
            return Refusal(
                pid, 'unmapped-users', 'The users of this container are not '
                'mapped: all of them look like 65534, so the program cannot '
                'tell who asks.', 'As root of the container it works.')
        case _ if answer == _VETOED:
            return Refusal(pid, 'vetoed', f'PID {pid} said no: an audit hook '
                           'of the program forbids it.')
        case _ if answer == _BUSY and data:
            clients = _clients(process, data)
            return Refusal(
                pid, 'busy', f'PID {pid} is being looked at by {len(clients)} '
                f'others: PIDs {", ".join(map(str, clients))}.',
                'For top and record that is the limit; dump still works.')
        case _ if answer == _BUSY:
            return Refusal(pid, 'busy', f'PID {pid} is being sampled with '
                           'other options, or cannot be sampled now.',
                           'Without --depth, --names and sizes of --alloc it '
                           'may work; dump does.')
        case _ if answer == _ENDS:
            return Refusal(pid, 'ended', f'PID {pid} is about to end.')
    return Refusal(pid, 'no-answer', f'PID {pid} has no memory or descriptor '
                   'left for an answer.')


def _clients(process, data):
    """Return the numbers of processes that watch, as the process sees them."""
    try:
        (_, numbers), = records.parts(data)
        numbers, = records.byte_fields(numbers)
        return [number for number, in struct.iter_unpack('=I', numbers)]
    except (ValueError, struct.error):
        raise _other_version(process, '?') from None


def _other_version(process, version):
    import sys
    own = '.'.join(map(str, sys.version_info[:3]))
    return Refusal(
        process.pid, 'other-version', f'PID {process.pid} runs another '
        f'version: sampleprof {version}, this is {own}.',
        f'Use its own:  {process.exe or "its python"} -m profile_sampling …')


def _silent(process, limit_s):
    """Return why a process has not answered."""
    pid = process.pid
    try:
        process = Process(pid)
    except Refusal:
        return ended(pid)
    if process.state in 'ZX':
        return ended(pid)
    if not process.is_ours():
        return Refusal(
            pid, 'handler-taken', f'PID {pid} has a handler of its own for '
            'SIGURG.', 'A profile can be had by starting it with '
                       '-X sampleprof=wall.')
    if process.has_filter():
        return Refusal(pid, 'filtered', f'PID {pid} may not open sockets '
                       '(seccomp), or does not answer.',
                       'Start it with -X sampleprof=wall,spool=DIR to see '
                       'what it does.')
    states = {thread.state for thread in process.threads_now().values()}
    why = ('state D: disk or NFS' if 'D' in states else
           'stopped' if states & set('Tt') else
           'they block it, or a handler of the program\'s is in its place')
    return Refusal(pid, 'no-answer', f'PID {pid} does not answer: its threads '
                   f'have not taken a signal for {limit_s:.0f} s ({why}).',
                   'Try again, or any Python:  py-spy dump -p '
                   f'{pid} (needs the right to trace it).')
