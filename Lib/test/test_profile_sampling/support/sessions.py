"""Running sessions of the core in tests, and reading what they sampled.

Importing this file skips the importing test file where the profiler is left
out; there, test_left_out says what must hold.  Every profile taken through it
is validated (PITFALLS F4).
"""

import contextlib
import os
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
import unittest
from collections import Counter

from test import support
from test.support import import_helper

_profile = import_helper.import_module('_profile')

from profile_sampling import Profile, _core, _formats  # noqa: E402

from . import validator  # noqa: E402

if not sysconfig.get_config_var('WITH_SAMPLING_PROFILER'):
    raise unittest.SkipTest('this build has no sampling profiler')

try:
    _profile.start(manual=True)
    _profile.stop()
except RuntimeError:
    # The whole test run is being profiled: there is no second session.
    raise unittest.SkipTest('a session is running already') from None

# Hours of CPU time are for those who ask: -u cpu.  Without the -u of
# regrtest, as under pytest, support takes every resource for enabled.
THOROUGH = (support.use_resources is not None
            and support.is_resource_enabled('cpu'))
# Python code is ten times slower then, C code less so; freed memory is kept.
SANITIZER = support.check_sanitizer(address=True, memory=True, thread=True)


def need_prompt_signals():
    """For setUpModule() of tests whose samples name what runs right now."""
    if support.check_sanitizer(thread=True):
        raise unittest.SkipTest('ThreadSanitizer holds signals back until '
                                'the next system call or atomic operation')


def checked(raw):
    """The Profile of the core's tables, validated."""
    profile = raw if isinstance(raw, Profile) else Profile._from_raw(raw)
    validator.check_profile(profile)
    validator.check_gil_holders(profile)
    validator.check_pprof(_formats.encode(profile._tables, 'pprof'))
    return profile


class Session:
    """A session for a block; afterwards *profile* is its profile.

    It tells Python frames only, unless *names* says otherwise: C functions and
    operators are the subject of test_callees.
    """

    def __init__(self, **options):
        self.options = {'names': 0} | options
        self.profile = None

    def __enter__(self):
        _profile.start(**self.options)
        _core.give_task()
        return self

    def snapshot(self, clear=False):
        return checked(_profile.snapshot(clear=clear))

    def __exit__(self, *exc_info):
        raw = _profile.stop()
        if exc_info[0] is None:
            self.profile = checked(raw)


def medians(measure, rounds=5):
    """Of each figure that *measure* returns the median over some rounds.

    A round in which other work takes the CPU away does not change it.
    """
    return [statistics.median(figures)
            for figures in zip(*[measure() for _ in range(rounds)])]


class SessionTest(unittest.TestCase):
    """A test that leaves no session behind when it fails."""

    def setUp(self):
        super().setUp()
        self.addCleanup(end_session)


def end_session():
    if _profile.running():
        _profile.stop()


def names(sample):
    """Qualified names of a sample's stack, root first."""
    return tuple([frame.function.qualname
                  for frame in reversed(sample.stack)])


def on_stack(sample, qualname):
    return any(frame.function.qualname == qualname for frame in sample.stack)


def python_leaf(sample):
    """The innermost Python frame, or None."""
    for frame in sample.stack:
        if frame.function.kind == 'python':
            return frame
    return None


def weight(samples, what='wall_ns'):
    return sum([getattr(sample, what) for sample in samples])


def of_thread(profile, native_id):
    return [sample for sample in profile.samples
            if sample.thread.native_id == native_id]


def own(profile):
    return of_thread(profile, threading.get_native_id())


def below(profile, function, what='wall_ns'):
    """{names of the frames below a function, root first: weight}.

    What the machine kept from it is its own.
    """
    found = Counter()
    for sample in profile.samples:
        stack = [frame.function for frame in sample.stack]
        for i, there in enumerate(stack):
            if there.qualname == function.__qualname__:
                path = tuple([f.name for f in reversed(stack[:i])
                              if f.name != '[CPU wait]'])
                found[path] += getattr(sample, what)
                break
    return found


def by_state(samples, what='wall_ns'):
    sums = Counter()
    for sample in samples:
        sums[sample.state] += getattr(sample, what)
    return sums


@contextlib.contextmanager
def one_cpu():
    """The calling thread has one CPU, and what it starts meanwhile: the
    sampler thread of a session, or a process."""
    cpus = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cpus)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cpus)


@contextlib.contextmanager
def spinning_processes(count=1):
    """Others that want the CPUs that this process may run on."""
    processes = [subprocess.Popen([sys.executable, '-IS', '-c',
                                   'print(flush=True)\nwhile True: pass'],
                                  stdout=subprocess.PIPE)
                 for _ in range(count)]
    try:
        for process in processes:
            process.stdout.readline()
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()
            process.stdout.close()


# Programs.

# Asks a program to profile itself.
OPTION = '-Xsampleprof=rate_hz=5000,out=profile.pb.gz'


def environment(**changes):
    """The environment of this process, without any request to profile."""
    env = {key: value for key, value in os.environ.items()
           if not key.startswith('PYTHON') or key == 'PYTHONHOME'}
    env |= changes
    return env


def loaded(path):
    """The Profile in a file, validated."""
    with open(path, 'rb') as file:
        validator.check_pprof(file.read())
    return checked(Profile.load(path))


class Run:
    """A finished program: status, out, err, and its files in *directory*."""

    def __init__(self, *arguments, directory, input=None, env=None,
                 timeout=60, check=None, prefix=(), **options):
        command = [*prefix, sys.executable, *arguments]
        result = subprocess.run(
            command, cwd=directory, env=environment() if env is None else env,
            input=input, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            timeout=timeout, **options)
        self.directory = directory
        self.status = result.returncode
        self.out = result.stdout
        self.err = result.stderr.decode('utf-8', 'backslashreplace')

    def said(self):
        """The lines on stderr that are the profiler's."""
        return [line for line in self.err.splitlines()
                if line.startswith('sampleprof: ')]

    def load(self, name):
        return loaded(os.path.join(self.directory, name))


class ProgramTest(unittest.TestCase):
    """A test that runs programs in a directory of its own."""

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name

    def run_python(self, *arguments, **options):
        return Run(*arguments, directory=self.directory, **options)

    def file(self, name, text):
        path = os.path.join(self.directory, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, 'w', encoding='utf-8') as file:
            file.write(text)
        return path

    def files(self):
        return sorted(os.listdir(self.directory))

    def load(self, name):
        return loaded(os.path.join(self.directory, name))


# Threads and the collector.

@contextlib.contextmanager
def collector_disabled():
    """No collection but those the test asks for."""
    import gc
    was = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


@contextlib.contextmanager
def computing_threads(count=1):
    """Threads that want the GIL all the time, in compute()."""
    done = threading.Event()

    def compute():
        while not done.is_set():
            pass
    threads = [threading.Thread(target=compute) for _ in range(count)]
    for thread in threads:
        thread.start()
    try:
        yield threads
    finally:
        done.set()
        for thread in threads:
            thread.join()


@contextlib.contextmanager
def parked_thread(name=None):
    """A thread that sleeps in lock.acquire(), without the GIL."""
    gate = threading.Lock()
    gate.acquire()

    def parked():
        gate.acquire()
    thread = threading.Thread(target=parked, name=name)
    thread.start()
    wait_until_asleep(thread.native_id)
    try:
        yield thread
    finally:
        gate.release()
        thread.join()


def wait_until_asleep(native_id, timeout=30):
    """Until the kernel says that the thread sleeps, twice in a row."""
    end = time.monotonic() + timeout
    seen = 0
    while seen < 2:
        with open(f'/proc/self/task/{native_id}/stat') as file:
            state = file.read().rpartition(')')[2].split()[0]
        seen = seen + 1 if state == 'S' else 0
        if time.monotonic() > end:
            raise TimeoutError(f'thread {native_id} does not sleep: {state}')
        time.sleep(0.002)
