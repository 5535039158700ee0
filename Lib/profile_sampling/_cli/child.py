"""A program that runs as a child, as if it had been started without us.

The child shares our terminal and process group, as with perf and strace: what
is typed there, such as Control-C, reaches it by itself.  What a process sends
to us we send on, since that may have been sent to us alone.  We stop when the
child stops, as by Control-Z, so that our shell sees it, and end as it did:
with its status, or by its signal.
"""

import os
import resource
import signal
import time

from profile_sampling._cli.common import Failure, flush

# What asks a program to end or to stop, or means something of its own to it.
_SENT_ON = frozenset({
    signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT,
    signal.SIGUSR1, signal.SIGUSR2, signal.SIGTSTP})
# What else would stop us at another moment than the child.
_BLOCKED = _SENT_ON | {signal.SIGTTIN, signal.SIGTTOU, signal.SIGCHLD}
_FROM_PROCESSES = 0         # SI_USER and SI_QUEUE are not positive
_NOT_FOUND, _NOT_EXECUTABLE = 127, 126
# All processes of a group have got a signal by then.
_SETTLE_S = 0.01


class Ended:
    """How a child ended, and what it used.

    pid         its number
    status      as of subprocess: negative for a signal
    real_s      seconds from its start to its end
    usage       resource.struct_rusage of it and its children
    least_kb    what usage.ru_maxrss is at least: the kernel counts what we
                took ourselves when we made the child
    """

    def __init__(self, pid, status, real_s, usage, least_kb):
        self.pid = pid
        self.status = status
        self.real_s = real_s
        self.usage = usage
        self.least_kb = least_kb


def run(command, environment):
    """Run a command to its end; return an Ended.

    Until then no signal but SIGKILL ends us: we are to end as it does.
    """
    if signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN:
        # As inherited; then there would be nothing to wait for.
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, _BLOCKED)
    try:
        start_s = time.monotonic()
        least_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        pid = _spawn(command, environment, mask)
        status, usage = _wait(pid)
        real_s = time.monotonic() - start_s
        # What the child has had, too, is over with it.
        while signal.sigtimedwait(_BLOCKED, 0):
            pass
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    return Ended(pid, os.waitstatus_to_exitcode(status), real_s, usage,
                 least_kb)


def _spawn(command, environment, mask):
    try:
        return os.posix_spawnp(
            command[0], command, environment, setsigmask=mask,
            setsigdef=_changed_by_python())
    except OSError as exc:
        status = (_NOT_FOUND if isinstance(exc, FileNotFoundError)
                  else _NOT_EXECUTABLE)
        raise Failure(f'cannot run {command[0]}: {exc.strerror}',
                      status) from None


def _changed_by_python():
    """Return the signals that Python itself ignores."""
    return [number for number in (signal.SIGPIPE, signal.SIGXFSZ)
            if signal.getsignal(number) == signal.SIG_IGN]


def _wait(pid):
    """Send signals on until the child has ended; return (status, usage)."""
    while True:
        ended, status, usage = os.wait4(pid, os.WNOHANG | os.WUNTRACED)
        if ended and not os.WIFSTOPPED(status):
            return status, usage
        if ended:
            _stop_by(os.WSTOPSIG(status), pid)
            continue
        info = signal.sigwaitinfo(_BLOCKED)
        if info.si_signo in _SENT_ON and info.si_code <= _FROM_PROCESSES:
            # It is still there, or a zombie: its number is no other's.
            os.kill(pid, info.si_signo)


def _stop_by(number, pid):
    """Stop as the child did, until somebody wants us to go on."""
    os.kill(os.getpid(), number)
    mask = signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    time.sleep(_SETTLE_S)
    # What a shell does reaches the child as well.
    if os.waitid(os.P_PID, pid, os.WCONTINUED | os.WNOHANG) is None:
        os.kill(pid, signal.SIGCONT)


def end_as(status):
    """Return the exit status of a child; end by its signal if it did."""
    if status >= 0:
        return status
    flush()
    # One file of what memory held is enough.
    resource.setrlimit(resource.RLIMIT_CORE,
                       (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    number = -status
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    os.kill(os.getpid(), number)
    # A signal that does not end a process.
    return 128 + number
