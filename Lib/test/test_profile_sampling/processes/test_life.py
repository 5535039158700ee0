"""Every way a program, a thread or a session can end.  PITFALLS L5, L4.

What the program does - its status, its output - must be what it would be
without a profiler; and wherever an orderly end is possible, there is a
profile.
"""

import os
import threading
import time

from test import support
from test.support import threading_helper

from ..support.sessions import (
    OPTION, ProgramTest, Session, SessionTest, _profile, by_state, checked,
    on_stack, weight)
from ..support.work import busy

# Threads in Python code, in C code with the GIL and without, all alive.
DAEMONS = '''
import threading, time, zlib
def python():
    while True:
        pass
def with_gil():
    numbers = list(range(100_000))
    while True:
        sorted(numbers, key=str)
def without_gil():
    data = bytes(1_000_000)
    while True:
        zlib.crc32(data)
def asleep():
    time.sleep(1000)
def start():
    for target in python, with_gil, without_gil, asleep:
        threading.Thread(target=target, daemon=True).start()
start()
time.sleep(0.05)
'''

ENDS = {
    'return': 'x = sum(range(100))',
    **{f'exit({argument})': f'import sys; sys.exit({argument})'
       for argument in ('3', '"text"', 'None', '256', 'True', '-1')},
    'exit in atexit': 'import atexit, sys; atexit.register(sys.exit, 3)',
    'uncaught exception': 'def f():\n    1/0\nf()',
    'recursion error': '''
def f():
    f()
try:
    f()
except RecursionError:
    print("deep")''',
    # The thread's number is in the message: name it.
    'exception in a thread': '''
import threading
thread = threading.Thread(target=lambda: 1/0, name="t")
thread.start(); thread.join()''',
    'exit in a thread': '''
import sys, threading
thread = threading.Thread(target=sys.exit)
thread.start(); thread.join()''',
    'SIGINT': '''
import os, signal, time
os.kill(os.getpid(), signal.SIGINT)
time.sleep(10)''',
    'SIGINT caught': '''
import os, signal, time
try:
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(10)
except KeyboardInterrupt:
    print("caught")''',
    # It ends nothing, though nobody has a handler.
    'SIGTERM waited for': '''
import os, signal, threading
thread = threading.Thread(
    target=os.kill, args=(os.getpid(), signal.SIGTERM))
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
thread.start()
print(signal.sigwait([signal.SIGTERM]))
thread.join()''',
}


class EndsTest(ProgramTest):

    def check(self, code, *, profile=True, setup='', **options):
        """Run with and without the profiler: the same, or fail."""
        if 'signal.SIG' in code + setup:
            # Whatever runs the tests may ignore SIGINT.
            code = ('import signal\n'
                    'signal.signal(signal.SIGINT, '
                    'signal.default_int_handler)\n') + code
        code = f'print("begun", flush=True)\n{setup}\n{code}\n'
        plain = self.run_python('-c', code, **options)
        profiled = self.run_python(OPTION, '-c', code, **options)
        self.assertEqual(profiled.status, plain.status, profiled.err)
        self.assertEqual(profiled.out, plain.out)
        self.assertIn(b'begun', profiled.out)
        said = profiled.said()
        kept = [line for line in profiled.err.splitlines()
                if line not in said]
        self.assertEqual(kept, plain.err.splitlines())
        if not profile:
            self.assertEqual(said, [])
            self.assertEqual(self.files(), [])
            return profiled
        self.assertEqual(len(said), 1, profiled.err)
        result = profiled.load('profile.pb.gz')
        self.assertEqual(self.files(), ['profile.pb.gz'])
        return result

    def test_ends(self):
        for name, code in ENDS.items():
            with self.subTest(name):
                self.check(code)
                os.unlink(os.path.join(self.directory, 'profile.pb.gz'))

    @support.skip_if_sanitizer('its report tells addresses and the pid',
                               address=True, memory=True, ub=True,
                               thread=True)
    def test_segfault(self):
        with support.SuppressCrashReport():
            self.check('import ctypes; ctypes.string_at(0)', profile=False)

    def test_daemon_threads(self):
        profile = self.check('', setup=DAEMONS)
        states = by_state(profile.samples)
        for name in 'python', 'with_gil', 'without_gil', 'asleep':
            self.assertTrue([s for s in profile.samples
                             if on_stack(s, name)], name)
        self.assertGreater(states['waiting'], 0)

    def test_daemon_threads_and_os_exit(self):
        self.check('import os; os._exit(6)', setup=DAEMONS)

    def test_os_exit_while_main_writes(self):
        # Without a profile to write, the thread would not come to run.
        for delay_ms in range(1, 25, 4):
            self.check(f'''
import _thread, atexit, os, threading, time
ended = _thread.allocate_lock()
ended.acquire()
def watch():
    ended.acquire()
    time.sleep({delay_ms / 1000})
    os._exit(9)
threading.Thread(target=watch, daemon=True).start()
atexit.register(ended.release)
''')

    def test_os_exit_while_signals_arrive(self):
        # Each of them ends the main thread's wait for the writer.
        self.check('''
import os, signal, threading, time
from profile_sampling._recording import at_exit as _at_exit
write = _at_exit.write
def write_slowly(*args):
    time.sleep(2)
    return write(*args)
_at_exit.write = write_slowly
signal.signal(signal.SIGALRM, lambda *args: None)
signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
threading.Thread(target=os._exit, args=(3,), daemon=True).start()
time.sleep(0.1)
''')

    def test_threads_that_outlive_main(self):
        profile = self.check(
            'import threading, time\n'
            'def late():\n'
            '    end = time.monotonic() + 0.2\n'
            '    while time.monotonic() < end: pass\n'
            'threading.Thread(target=late).start()')
        there = [s for s in profile.samples if on_stack(s, 'late')]
        # The thread's own 0.2 s, and the main thread waiting for it.
        self.assertGreater(weight(there), 190_000_000)

    def test_atexit_is_in_the_profile(self):
        profile = self.check(
            'import atexit, time\n'
            '@atexit.register\n'
            'def last():\n'
            '    end = time.monotonic() + 0.1\n'
            '    while time.monotonic() < end: pass')
        self.assertTrue([s for s in profile.samples if on_stack(s, 'last')])

    def test_exec_ends_the_session(self):
        # The new program has no handler, stray signals or descriptors.
        busy = ('import os, sys\n'
                'def launch():\n'
                '    for i in range(5 * 10**6): pass\n'
                'launch()\n')
        for call in ('os.execv("/bin/sh", command)',
                     'os.execve("/bin/sh", command, {"A": "1"})',
                     'os.execve(os.open("/bin/sh", os.O_RDONLY), command, {})',
                     # Looks for it in all of PATH.
                     'os.environ["PATH"] = f"/no:/such:{os.environ["PATH"]}";'
                     'os.execvp("sh", command)'):
            with self.subTest(call):
                profile = self.check(
                    f'{busy}command = ["sh", "-c", "ls /proc/self/fd; '
                    f'grep ^Sig[^Q] /proc/self/status; env | grep -v PYTHON"]\n'
                    f'{call}')
                self.assertTrue([s for s in profile.samples
                                 if on_stack(s, 'launch')])

    def test_exec_that_fails(self):
        profile = self.check(
            'import os\n'
            'def late():\n'
            '    for i in range(10**6): pass\n'
            'try:\n'
            '    os.execvp("no-such-program", ["x"])\n'
            'except FileNotFoundError:\n'
            '    late()')
        self.assertTrue([s for s in profile.samples if on_stack(s, 'late')])

    def test_interpreter_in_a_thread(self):
        self.check('import _interpreters, threading\n'
                   'def run():\n'
                   '    i = _interpreters.create()\n'
                   '    _interpreters.exec(i, "sum(range(10**6))")\n'
                   '    _interpreters.destroy(i)\n'
                   'ts = [threading.Thread(target=run) for _ in range(3)]\n'
                   '[t.start() for t in ts]\n[t.join() for t in ts]')


class ForksTest(ProgramTest):

    def check(self, code, lines):
        result = self.run_python(OPTION, '-W', 'error', '-c', code)
        self.assertEqual((result.status, result.out.split()),
                         (0, lines.encode().split()), result.err)
        self.assertEqual(len(result.said()), 1, result.err)
        self.assertEqual(self.files(), ['profile.pb.gz'])
        return result.load('profile.pb.gz')

    def test_child_is_not_profiled(self):
        self.check('import os, _profile, sys\n'
                   'pid = os.fork()\n'
                   'if not pid:\n'
                   '    print(_profile.running(), flush=True)\n'
                   '    sys.exit(7)\n'
                   'status = os.waitpid(pid, 0)[1]\n'
                   'print(os.waitstatus_to_exitcode(status),'
                   ' _profile.running())',
                   'False 7 True')

    def test_warning_about_the_programs_threads(self):
        self.check('import os, threading, warnings\n'
                   'lock = threading.Lock(); lock.acquire()\n'
                   't = threading.Thread(target=lock.acquire); t.start()\n'
                   'with warnings.catch_warnings(record=True) as caught:\n'
                   '    warnings.simplefilter("always")\n'
                   '    if not (pid := os.fork()): os._exit(0)\n'
                   '    os.waitpid(pid, 0)\n'
                   'lock.release()\n'
                   'print(*[w.category.__name__ for w in caught])',
                   'DeprecationWarning')

    def test_fork_in_a_busy_program(self):
        # Forks at any moment, out of several threads, children that fork.
        self.check('import os, threading, warnings\n'
                   'warnings.simplefilter("ignore")\n'
                   'def work():\n'
                   '    for _ in range(15):\n'
                   '        sorted(range(2000), key=str)\n'
                   '        if not (pid := os.fork()):\n'
                   '            if not (pid := os.fork()):\n'
                   '                sum(range(1000)); os._exit(0)\n'
                   '            os._exit(os.waitpid(pid, 0)[1])\n'
                   '        assert os.waitpid(pid, 0)[1] == 0\n'
                   'ts = [threading.Thread(target=work) for _ in range(4)]\n'
                   '[t.start() for t in ts]; [t.join() for t in ts]\n'
                   'print("fine")', 'fine')


class SessionsTest(SessionTest):

    def test_start_and_stop_200_times(self):
        with Session():
            pass            # a sanitizer starts a thread with the first one
        threads = threading.active_count()
        tasks = len(os.listdir('/proc/self/task'))
        for i in range(200):
            with Session(rate_hz=10_000, mode=('wall', 'cpu')[i % 2]):
                sorted(range(2000), key=str)
        self.assertEqual(threading.active_count(), threads)
        self.assertEqual(len(os.listdir('/proc/self/task')), tasks)

    def test_start_and_stop_among_threads(self):
        # Threads come and go, compute and sleep, whatever the session does.
        done = threading.Event()

        def work():
            while not done.is_set():
                sorted(range(500), key=str)
                thread = threading.Thread(target=sum, args=(range(500),))
                thread.start()
                thread.join()
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        self.addCleanup(done.set)
        for i in range(60):
            with Session(rate_hz=10_000, depth_frames=1 + i % 9) as session:
                time.sleep(0.003)
                session.snapshot(clear=i % 3 == 0)
                time.sleep(0.003)
        done.set()
        for thread in threads:
            thread.join()

    def test_start_and_stop_from_several_threads(self):
        wrong = []

        def work():
            for _ in range(50):
                for function in _profile.start, _profile.snapshot, \
                        _profile.stop:
                    try:
                        function()
                    except RuntimeError:
                        pass
                    except BaseException as exc:
                        wrong.append(exc)
        threads = [threading.Thread(target=work) for _ in range(4)]
        with threading_helper.start_threads(threads):
            pass
        self.assertEqual(wrong, [])

    def test_stopped_by_another_thread(self):
        _profile.start(rate_hz=1000)
        thread = threading.Thread(target=busy, args=(0.1,))
        thread.start()
        raw = []
        stopper = threading.Thread(
            target=lambda: raw.append(_profile.stop()))
        busy(0.05)
        stopper.start()
        stopper.join()
        thread.join()
        profile = checked(raw[0])
        self.assertGreater(weight([s for s in profile.samples
                                   if on_stack(s, 'busy')]), 40_000_000)


# A program with a bit of everything, that may end at any moment.
