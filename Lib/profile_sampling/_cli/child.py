"""A program that runs as a child, as if it had been started without us.

This file owns signals and the end of the child.  It must not know what it is
run for.

The child shares our terminal and process group, so what is typed there, such
as Control-C, reaches it by itself.  What other processes send to us alone, we
send on.  We stop when it stops, as by Control-Z, so that our shell sees it,
and end as it did: with its status, or by its signal.
"""

import os
import resource
import signal
import time

from profile_sampling._cli.common import Failure, flush
from profile_sampling._cli.witness import Witness

# What asks a program to end, to stop or to go on, or means something of its
# own to it.
_SENT_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT,
            signal.SIGUSR1, signal.SIGUSR2, signal.SIGWINCH, signal.SIGALRM,
            signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU, signal.SIGCONT)
_FROM_PROCESSES = 0         # SI_USER and SI_QUEUE are not positive
_NOT_FOUND, _NOT_EXECUTABLE = 127, 126


# What was blocked before the first child, and then is in each.
_first_mask = None


class Ended:
    """How a child ended, and what it used.

    status      as of subprocess: negative for a signal
    real_s      seconds from its start to its end
    usage       resource.struct_rusage of it and its children
    least_kb    what usage.ru_maxrss is at least: the kernel counts what we
                took ourselves when we made the child
    """

    def __init__(self, status, real_s, usage, least_kb):
        self.status = status
        self.real_s = real_s
        self.usage = usage
        self.least_kb = least_kb


def run(command, environment):
    """Run a command to its end; return an Ended.

    From now on no signal that could end us does: what the child has left is
    still to be put in order, and we are to end as it did.
    """
    if signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN:
        # As inherited; then there would be nothing to wait for.
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    global _first_mask
    mask = signal.pthread_sigmask(signal.SIG_BLOCK,
                                  {*_SENT_ON, signal.SIGCHLD})
    if _first_mask is None:
        _first_mask = mask
    with Witness() as witness:
        start_s = time.monotonic()
        least_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        pid = _spawn(command, environment, _first_mask)
        status, usage = _wait(pid, witness)
        real_s = time.monotonic() - start_s
    return Ended(os.waitstatus_to_exitcode(status), real_s, usage, least_kb)


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


def _wait(pid, witness):
    """Send signals on until the child has ended; return (status, usage)."""
    while True:
        ended, status, usage = os.wait4(pid, os.WNOHANG | os.WUNTRACED)
        if ended and not os.WIFSTOPPED(status):
            return status, usage
        if ended:
            _stop_by(os.WSTOPSIG(status), witness)
            continue
        info = signal.sigwaitinfo({*_SENT_ON, signal.SIGCHLD})
        if info.si_signo == signal.SIGCHLD:
            continue
        if witness.saw(info.si_signo):
            # Who signals us and then all, as timeout does, means one.
            signal.sigtimedwait({info.si_signo}, 0)
        elif info.si_code <= _FROM_PROCESSES:
            # It is still there, or a zombie: its number is no other's.
            os.kill(pid, info.si_signo)


def _stop_by(number, witness):
    """Stop as the child did, until somebody wants us to go on.

    What that is reaches the child as any signal does.
    """
    os.kill(os.getpid(), number)
    mask = signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    witness.forget(number)


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
