"""What a thread waits for in the kernel, in words."""

import platform
import socket
import struct

_X86_64 = {
    0: 'read', 1: 'write', 7: 'poll', 17: 'pread', 18: 'pwrite', 19: 'readv',
    20: 'writev', 23: 'select', 34: 'pause', 35: 'sleep', 42: 'connect',
    43: 'accept', 44: 'send', 45: 'recv', 46: 'send', 47: 'recv', 61: 'wait',
    72: 'fcntl', 73: 'flock', 74: 'fsync', 75: 'fdatasync', 128: 'sigwait',
    202: 'futex', 230: 'sleep', 232: 'epoll', 247: 'wait', 257: 'open',
    270: 'select', 271: 'poll', 281: 'epoll', 288: 'accept', 441: 'epoll'}
_AARCH64 = {
    22: 'epoll', 25: 'fcntl', 32: 'flock', 56: 'open', 63: 'read',
    64: 'write', 65: 'readv', 66: 'writev', 67: 'pread', 68: 'pwrite',
    72: 'select', 73: 'poll', 82: 'fsync', 83: 'fdatasync', 95: 'wait',
    98: 'futex', 101: 'sleep', 115: 'sleep', 137: 'sigwait', 202: 'accept',
    203: 'connect', 206: 'send', 207: 'recv', 211: 'send', 212: 'recv',
    242: 'accept', 260: 'wait', 441: 'epoll'}
_CALLS = {'x86_64': _X86_64, 'aarch64': _AARCH64}.get(platform.machine(), {})
_KINDS = {'futex': 'lock', 'epoll': 'epoll', 'poll': 'epoll',
          'select': 'epoll', 'sleep': 'sleep', 'wait': 'process'}
# What usually answers at a port.
_SERVICES = {
    1433: 'database', 1521: 'database', 3306: 'database', 5432: 'database',
    6432: 'database', 27017: 'database', 9042: 'database', 5672: 'queue',
    9092: 'queue', 4222: 'queue', 6379: 'redis', 11211: 'cache',
    53: 'name server', 25: 'mail', 587: 'mail', 9200: 'search'}


class Wait:
    """A system call that a thread sleeps in.

    kind     socket, file, pipe, lock, epoll, sleep, process or other
    call     its name, or its number
    fd       the descriptor, or None
    name     of what is at the descriptor, or ''
    what     what usually is there, such as database, or ''
    address  of a lock, or 0
    """

    def __init__(self, number, arguments, file, hosts):
        self.call = _CALLS.get(number, f'system call {number}')
        self.kind = _KINDS.get(self.call, 'other')
        self.fd = None
        self.name = self.what = self.peer = ''
        self.address = arguments[0] if self.call == 'futex' else 0
        if file is not None:
            self.fd, target, peer = file
            self.kind, self.name = _named(target)
            if self.kind == 'socket':
                self._name_peer(peer, hosts)

    def _name_peer(self, data, hosts):
        address = _address(data)
        if address is None:
            return
        host, port = address
        self.peer = f'{host}:{port}' if port else host
        self.name = f'{hosts.get(host, host)}:{port}' if port else host
        self.what = _SERVICES.get(port, '')

    @property
    def object(self):
        """What it waits for, as short as can be."""
        if self.name:
            return f'{self.what} {self.name}'.strip()
        return {'lock': 'a lock', 'epoll': 'events', 'sleep': 'sleep',
                'process': 'a process', 'socket': 'a socket',
                'pipe': 'a pipe'}.get(self.kind, self.call)

    @property
    def text(self):
        of = f', fd {self.fd}' if self.fd is not None else ''
        name = f': {self.object}' if self.name else ''
        return f'{self.call}{of}{name}'

    def as_json(self):
        found = {'kind': self.kind, 'call': self.call, 'fd': self.fd,
                 'peer': self.peer, 'name': self.name, 'what': self.what}
        return {key: value for key, value in found.items()
                if value not in (None, '')}


def wait(line, file, hosts):
    """Return what a line of a file "syscall" says, a Wait; None: the thread
    does not sleep in a call."""
    words = (line or '').split()
    try:
        number = int(words[0])
        arguments = [int(word, 16) for word in words[1:7]]
    except (IndexError, ValueError):
        return None
    if number < 0 or len(arguments) < 6:
        return None
    return Wait(number, arguments, file, hosts)


def name_of(line):
    """Return the name of the system call of such a line, or ''."""
    number = line.split(maxsplit=1)[:1]
    return (_CALLS.get(int(number[0]), '')
            if number and number[0].isdecimal() else '')


def hosts(pid):
    """Return {address: name} of the file that a process looks hosts up in."""
    found = {}
    try:
        with open(f'/proc/{pid}/root/etc/hosts', encoding='utf-8',
                  errors='replace') as file:
            lines = file.read(1 << 20).splitlines()
    except OSError:
        return found
    for line in lines:
        address, *names = line.partition('#')[0].split() or ['']
        if names:
            found.setdefault(address, names[0])
    return found


def _named(target):
    """Return the kind of what a link in /proc/self/fd leads to, and a name."""
    if target.startswith('socket:'):
        return 'socket', ''
    if target.startswith('pipe:'):
        return 'pipe', ''
    if target.startswith('anon_inode:'):
        return 'other', target.removeprefix('anon_inode:').strip('[]')
    return 'file', target


def _address(data):
    """Return (host, port), or (path, 0); None: it is not known."""
    if len(data) < 2:
        return None
    family = int.from_bytes(data[:2], 'little')
    if family == socket.AF_INET and len(data) >= 8:
        port, = struct.unpack_from('!H', data, 2)
        return socket.inet_ntop(family, data[4:8]), port
    if family == socket.AF_INET6 and len(data) >= 24:
        port, = struct.unpack_from('!H', data, 2)
        host = socket.inet_ntop(family, data[8:24])
        return host.removeprefix('::ffff:'), port
    if family == socket.AF_UNIX:
        path = data[2:].rstrip(b'\0').decode('utf-8', 'replace')
        return (path.replace('\0', '@') or 'a unix socket'), 0
    return None
