"""The processes of this machine, as /proc shows them."""

import contextlib
import fcntl
import os
import re
import signal
import sys

# What a user cannot change without the kernel.
_OVERFLOW_UID = 65534
_PYTHON = re.compile(r'^(?:lib)?python(\d\.\d+)?')
# ioctl(PIDFD_GET_INFO) with the first version of struct pidfd_info, whose last
# field is the status of wait().
_PIDFD_INFO_EXIT, _PIDFD_INFO_BYTES = 1 << 3, 64
_PIDFD_GET_INFO = 3 << 30 | _PIDFD_INFO_BYTES << 16 | 0xFF << 8 | 11
_OFF_OPTION = '-Xsampleprof-attach=0'
_OFF_VARIABLE = b'PYTHONSAMPLEPROFATTACH=0'
# Words of a command line that name no program.
_RUNNERS = re.compile(r'^(?:python[\d.]*|-[a-zA-Z].*)$')


# What the kernel calls the thread that hands samples over.
OUR_THREAD = 'sampleprof\n'


class Refusal(Exception):
    """A process that cannot be asked: why, and what to do.

    reason  one word, as in the JSON
    text    what is so
    remedy  one thing to do, or ''
    """

    def __init__(self, pid, reason, text, remedy=''):
        super().__init__(text)
        self.pid = pid
        self.reason = reason
        self.text = text
        self.remedy = remedy

    def as_json(self):
        said = {'format': 'sampleprof-refusal', 'version': 1, 'pid': self.pid,
                'reason': self.reason, 'text': self.text}
        return said | ({'do': self.remedy} if self.remedy else {})


class Process:
    """A process, as it was when this was made.

    pid         its number here
    pid_inside  in its own namespace
    parent      number of its parent
    uid         of its user, the one that files are opened as
    threads     how many it has, but for ours
    num_children  how many are watched with it
    """

    num_children = 0

    def __init__(self, pid):
        self.pid = pid
        try:
            self._status = _fields(_read(f'{pid}/status'))
            stat = _read(f'{pid}/stat')
        except OSError:
            raise Refusal(
                pid, 'no-such-pid', f'PID {pid}: there is none here.',
                'Inside a container processes have other numbers:  '
                'list --processes') from None
        fields = stat.rpartition(')')[2].split()
        self.state = fields[0]
        self.parent = int(fields[1])
        self._command = []
        self.cpu_ticks = int(fields[11]) + int(fields[12])
        self._start_ticks = int(fields[19])
        self.uid = int(self._status['Uid'].split()[1])
        self.pid_inside = int(self._status.get('NSpid', str(pid)).split()[-1])

    @property
    def up_s(self):
        """Seconds since it began."""
        boot_s = float(_read('uptime').split()[0])
        return max(0.0, boot_s - self._start_ticks / os.sysconf('SC_CLK_TCK'))

    @property
    def threads(self):
        ours = 0
        with contextlib.suppress(OSError):
            self._status = _fields(_read(f'{self.pid}/status'))
            for number in os.listdir(f'/proc/{self.pid}/task'):
                ours += _read(f'{self.pid}/task/{number}/comm') == OUR_THREAD
        return int(self._status.get('Threads', 1)) - ours

    @property
    def command(self):
        """Its words; of one that has ended, those that were read last."""
        with contextlib.suppress(OSError):
            words = _read(f'{self.pid}/cmdline').split('\0')
            if len(words) > 1 or words[0]:
                self._command = words[:-1] if words[-1] == '' else words
        return self._command

    @property
    def exe(self):
        """The path of its program, or '' if that may not be known."""
        try:
            return os.readlink(f'/proc/{self.pid}/exe').removesuffix(
                ' (deleted)')
        except OSError:
            return ''

    @property
    def name(self):
        """What its command line calls it."""
        words = self.command
        for number, word in enumerate(words):
            if number and words[number - 1] in ('-m', '-c'):
                return word if words[number - 1] == '-m' else 'python -c'
            base = os.path.basename(word)
            if word and not _RUNNERS.match(base) and word != '-':
                return base.removesuffix('.py').removesuffix(':')
        return self._status.get('Name', '?')

    def catches(self):
        """Return whether it has a handler for the signal of requests."""
        return _has_signal(self._status.get('SigCgt', '0'))

    def has_filter(self):
        return self._status.get('Seccomp', '0') != '0'

    def is_python(self):
        """Return whether it looks like Python, of whatever version."""
        return (self.is_ours() or bool(_PYTHON.match(os.path.basename(
            self.exe or self._status.get('Name', '')))))

    def is_ours(self):
        """Return whether it runs the very program that this process runs."""
        try:
            return os.path.samestat(os.stat(f'/proc/{self.pid}/exe'),
                                    os.stat('/proc/self/exe'))
        except OSError:
            return False

    def check(self):
        """Raise Refusal if it is known that it cannot be asked."""
        pid = self.pid
        if self.state in 'ZX':
            raise ended(pid)
        if not self.may_signal():
            raise Refusal(
                pid, 'other-user',
                f'PID {pid} belongs to user {user_name(self.uid)}, you are '
                f'{user_name(os.geteuid())}.',
                f'As that user:  su -s /bin/sh {user_name(self.uid, False)} '
                '-c \'…\'     or as root.')
        if self.catches():
            return
        if not self.is_python():
            raise Refusal(pid, 'not-python', f'PID {pid} is no Python process '
                          f'({self._status.get("Name", "?")}).')
        if self._is_switched_off():
            raise Refusal(
                pid, 'off', f'PID {pid} switched it off: started with '
                '-X sampleprof-attach=0 or PYTHONSAMPLEPROFATTACH=0.',
                'It can be had after a restart without that.')
        if self.is_ours():
            raise Refusal(
                pid, 'off', f'PID {pid} takes no requests: it has no handler '
                'for SIGURG, as a program that embeds Python without signal '
                'handlers, or that ignores SIGURG.',
                'A profile can be had by starting it with -X sampleprof=wall.')
        raise self._other_python()

    def may_signal(self):
        return os.geteuid() in (0, self.uid)

    def _other_python(self):
        version = _PYTHON.match(os.path.basename(self.exe) or '')
        version = version and version[1]
        return Refusal(
            self.pid, 'other-python', f'PID {self.pid} is not ours: it runs '
            f'Python {version + " " if version else ""}without this profiler.',
            f'Any Python: py-spy dump -p {self.pid} (needs the right to trace '
            'it).')

    def _is_switched_off(self):
        if _OFF_OPTION in ''.join(self.command[:20]):
            return True
        try:
            with open(f'/proc/{self.pid}/environ', 'rb') as file:
                return _OFF_VARIABLE in file.read().split(b'\0')
        except OSError:
            return False

    def threads_now(self):
        """Return {number: ThreadState} of its threads."""
        found = {}
        try:
            numbers = os.listdir(f'/proc/{self.pid}/task')
        except OSError:
            return found
        for number in numbers:
            try:
                found[int(number)] = ThreadState(self.pid, int(number),
                                                 self.pid_inside != self.pid)
            except (OSError, ValueError, IndexError):
                pass        # it has ended
        return found


class ThreadState:
    """What the kernel says of a thread.

    state       R, S, D or another letter of the kernel's
    number      its number here
    path        of what the kernel says of it
    is_ours     the profiler has started it, and it takes no signals
    inside      its number in its own namespace
    cpu         on which it ran last
    blocks      whether it blocks the signal of requests
    """

    def __init__(self, pid, number, is_inside):
        path = f'{pid}/task/{number}'
        self._pid = pid
        self.number = number
        name, _, rest = _read(f'{path}/stat').rpartition(')')
        fields = rest.split()
        self.is_ours = name.endswith('(sampleprof')
        self.state = fields[0]
        self.cpu = int(fields[36])
        status = _fields(_read(f'{path}/status'))
        self.blocks = _has_signal(status.get('SigBlk', '0'))
        self.inside = (int(status['NSpid'].split()[-1])
                       if is_inside and 'NSpid' in status else number)
        self.path = path
        self._call = None

    def sleeps_on(self):
        """Return whether it sleeps in the same call as then."""
        try:
            now = ThreadState(self._pid, self.number, False)
        except (OSError, ValueError, IndexError):
            return False        # it has ended
        return now.state in 'SD' and now.read_call() == self.read_call()

    def read_call(self):
        """Return the line of its file "syscall", as when it was first asked
        for; '' if that may not be read."""
        if self._call is None:
            try:
                self._call = _read(f'{self.path}/syscall')
            except OSError:
                self._call = ''
        return self._call

    def has_pending(self):
        """Return whether a signal that it was sent waits to be taken."""
        try:
            status = _fields(_read(f'{self.path}/status'))
        except OSError:
            return False        # it has ended
        return _has_signal(status.get('SigPnd', '0'))

    def waits_in(self):
        """Return the function of the kernel that it sleeps in, or ''."""
        try:
            return _read(f'{self.path}/wchan')
        except OSError:
            return ''


class Sleep:
    """How long threads have slept, by the kernel's notes of when they ran.

    Each CPU notes that on a clock of its own, which leaves out time that the
    CPU did not have: so what lies between two of its readings is at least as
    long.
    """

    def __init__(self, threads):
        """Read the notes of ThreadStates, and then the clocks."""
        self._ran = {thread: _ran(thread.path) for thread in threads}
        self._now_ms = {cpu: _now_ms(cpu)
                        for cpu in {thread.cpu for thread in threads}}

    def since_s(self, thread, times=0):
        """Return for how long a ThreadState had slept then, at least; None:
        it has run since, more than so many times, or that is not known."""
        ran, now_ms = self._ran[thread], self._now_ms[thread.cpu]
        again = _ran(thread.path)
        if None in (ran, now_ms, again) or again[1] - ran[1] > times:
            return None
        return max(0.0, now_ms - ran[0]) / 1e3


def _now_ms(cpu):
    """Return the clock of a CPU; None: this process may not run there."""
    allowed = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {cpu})
    except OSError:
        return None
    try:
        ran = _ran('thread-self')
        return ran and ran[0]
    finally:
        os.sched_setaffinity(0, allowed)


def _ran(path):
    """Return when a thread ran last, in milliseconds, and how often it was
    switched away from; None: that may not be read, or it has never slept."""
    try:
        text = _read(f'{path}/sched')
    except OSError:
        return None
    found = re.search(r'^se\.exec_start\s*:\s*([\d.]+)$.*?'
                      r'^nr_switches\s*:\s*(\d+)$', text,
                      re.MULTILINE | re.DOTALL)
    return (float(found[1]), int(found[2])) if found and int(
        found[2]) else None


def all_processes():
    """Return all processes that can be seen, by number."""
    found = []
    for name in os.listdir('/proc'):
        if name.isdecimal():
            try:
                found.append(Process(int(name)))
            except (Refusal, ValueError, IndexError, KeyError):
                pass        # it has ended
    return sorted(found, key=lambda process: process.pid)


def pythons():
    """Return those that look like Python, but for this one."""
    return [process for process in all_processes()
            if process.pid != os.getpid() and process.is_python()
            and process.state not in 'ZX']


def add_children(process, known, add):
    """Call add() of each Python process below one that is not *known* yet,
    but for those that cannot be asked."""
    known = {its.pid for its in known}
    below = {process.pid}
    for other in pythons():
        if other.parent in below:
            below.add(other.pid)
            if other.pid not in known:
                with contextlib.suppress(Refusal):
                    other.check()
                    add(other)


def family(members):
    """Return a Process that stands for several, the first of which has
    started the others; there may come more."""
    found = _Family(members[0].pid)
    found.members = members
    return found


class _Family(Process):

    @property
    def num_children(self):
        return len(self.members) - 1

    @property
    def threads(self):
        return sum([its.threads for its in self.members])


def named(name):
    """Return the process of a name or raise Refusal."""
    found = [process for process in pythons()
             if process.may_signal() and name in ' '.join(process.command)]
    if len(found) == 1:
        return found[0]
    numbers = ', '.join([str(process.pid) for process in found])
    if not found:
        raise Refusal(None, 'no-such-pid', f'"{name}" fits no process.',
                      'Which there are:  list --processes')
    raise Refusal(None, 'ambiguous',
                  f'"{name}" fits {len(found)} processes: {numbers}.',
                  f'-p {found[0].pid}')


def ended(pid):
    import time
    return Refusal(pid, 'ended', f'PID {pid} ended while it was asked, at '
                                 f'{time.strftime("%H:%M:%S")}.')


def user_name(uid, with_number=True):
    import pwd
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
    return f'{name} ({uid})' if with_number else name


def _has_signal(mask):
    return bool(int(mask, 16) >> (signal.SIGURG - 1) & 1)


def _fields(text):
    return {name: value.strip() for name, _, value in
            [line.partition(':') for line in text.splitlines()]}


def _read(path):
    with open(f'/proc/{path}', encoding='utf-8', errors='replace') as file:
        return file.read()


def ending(pid, pidfd):
    """Return how a process has ended, such as 'by signal 9', or '' if that is
    not known.

    Linux tells whoever has a descriptor of it, since 6.15; the same is in
    /proc until its parent has asked.
    """
    status = None
    data = bytearray(_PIDFD_INFO_BYTES)
    data[:8] = _PIDFD_INFO_EXIT.to_bytes(8, sys.byteorder)
    with contextlib.suppress(OSError):
        fcntl.ioctl(pidfd, _PIDFD_GET_INFO, data)
        if data[0] & _PIDFD_INFO_EXIT:
            status = int.from_bytes(data[-4:], sys.byteorder)
    with contextlib.suppress(OSError):
        fields = _read(f'{pid}/stat').rpartition(')')[2].split()
        if status is None and fields[0] == 'Z':
            status = int(fields[-1])
    if status is None:
        return ''
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        return (f'by signal {-code}'
                + ' (often: out of memory)' * (code == -signal.SIGKILL))
    return f'with status {code}'
