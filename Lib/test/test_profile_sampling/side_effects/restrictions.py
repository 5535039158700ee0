"""Ways to run a program with less than it is used to.

Each is a dict of options for ProgramTest.run_python(), or raises SkipTest
where the machine or the rights for it are missing.
"""

import ctypes
import errno
import os
import platform
import resource
import shutil
import struct
import subprocess
import sys
import unittest

# Of Linux, by machine: what the kernel calls the system calls.
SYSTEM_CALLS = {
    'x86_64': {
        'setitimer': 38, 'timer_create': 222, 'timer_settime': 223,
        'timer_delete': 226, 'tgkill': 234, 'process_vm_readv': 310,
        'sched_setattr': 314, 'close_range': 436},
    'aarch64': {
        'setitimer': 103, 'timer_create': 107, 'timer_settime': 110,
        'timer_delete': 111, 'tgkill': 131, 'process_vm_readv': 270,
        'sched_setattr': 274, 'close_range': 436},
}
PR_SET_SECCOMP = 22
PR_SET_NO_NEW_PRIVS = 38
SECCOMP_MODE_FILTER = 2
SECCOMP_RET_ALLOW = 0x7fff0000
SECCOMP_RET_ERRNO = 0x00050000
SECCOMP_RET_KILL_PROCESS = 0x80000000
FORBIDS = SECCOMP_RET_ERRNO | errno.EPERM
# Instructions of the kernel's packet filter.
BPF_LOAD_WORD = 0x20
BPF_JUMP_IF_EQUAL = 0x15
BPF_RETURN = 0x06

NOBODY = 65534


class Filter(ctypes.Structure):
    _fields_ = [('length', ctypes.c_ushort), ('code', ctypes.c_void_p)]


def filter_code(numbers, action):
    """A filter that does this to system calls of these numbers."""
    instructions = [(BPF_LOAD_WORD, 0, 0, 0)]       # the system call's number
    for i, number in enumerate(numbers):
        instructions.append(
            (BPF_JUMP_IF_EQUAL, len(numbers) - i, 0, number))
    instructions += [(BPF_RETURN, 0, 0, SECCOMP_RET_ALLOW),
                     (BPF_RETURN, 0, 0, action)]
    return b''.join([struct.pack('=HBBI', *i) for i in instructions])


def without_system_calls(*names, action=FORBIDS):
    known = SYSTEM_CALLS.get(platform.machine())
    if known is None:
        raise unittest.SkipTest('knows no system calls of this machine')
    numbers = [known[name] for name in names]
    buffer = ctypes.create_string_buffer(filter_code(numbers, action))
    program = Filter(len(numbers) + 3, ctypes.addressof(buffer))
    prctl = ctypes.CDLL(None, use_errno=True).prctl

    def forbid():
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
                or prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER,
                         ctypes.byref(program), 0, 0)):
            raise OSError(ctypes.get_errno(), 'no seccomp')
        # Referred to, so that it lives as long as the function.
        assert buffer
    return tried(preexec_fn=forbid)


def with_limit(what, number):
    def limit():
        resource.setrlimit(what, (number, number))
    return {'preexec_fn': limit}


def as_nobody(directory, limits=()):
    """As a user without rights, who may write the directory."""
    if os.geteuid() != 0:
        raise unittest.SkipTest('needs root')
    os.chown(directory, NOBODY, NOBODY)

    def become_nobody():
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        for what, number in limits:
            resource.setrlimit(what, (number, number))
    return tried(preexec_fn=become_nobody)


def with_mounts(*commands):
    """In a name space of mounts of its own, after shell commands."""
    if shutil.which('unshare') is None or os.geteuid() != 0:
        raise unittest.SkipTest('needs unshare and root')
    script = ' && '.join([*commands, 'cd "$PWD"', 'exec "$@"'])
    return tried(prefix=('unshare', '--mount', 'sh', '-c', script, 'sh'))


def tried(prefix=(), preexec_fn=None):
    """These options, if the interpreter can run under them at all."""
    try:
        result = subprocess.run([*prefix, sys.executable, '-c', ''],
                                capture_output=True, preexec_fn=preexec_fn)
    except (OSError, subprocess.SubprocessError) as exc:
        raise unittest.SkipTest(f'not possible here: {exc}') from None
    if result.returncode:
        raise unittest.SkipTest(
            f'not possible here: {result.stderr.decode()[-200:]}')
    return {'prefix': prefix, 'preexec_fn': preexec_fn}
