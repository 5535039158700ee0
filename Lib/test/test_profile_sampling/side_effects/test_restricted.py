"""Places that allow less than usual.  PITFALLS L14.

In each the program runs as it does without the profiler: same status, same
output.  The profile is whole, or one line says what is missing.
"""

import os
import resource
import tempfile
import unittest

from ..support.compiling import compile_extension
from ..support.sessions import (
    OPTION, SANITIZER, ProgramTest, by_state, environment, names, on_stack)
from . import restrictions

# Two threads that compute by turns and sleep; status 3.  There is less to do
# where nobody samples it.
WORK_S = 0.15
PROGRAM = f'''
import sys, threading, time
def work():
    end = time.thread_time() + ({WORK_S} if "sampleprof" in sys._xoptions
                                else 0.01)
    while time.thread_time() < end:
        sorted(range(300), key=str)
def other():
    work()
thread = threading.Thread(target=other)
thread.start()
work()
thread.join()
time.sleep(0.05)
print("worked")
sys.exit(3)
'''
# Without threads; says how many calls were interrupted, which hold the GIL.
CALLS = '''
import ctypes
library = ctypes.PyDLL(None)
poll = library.poll
poll.argtypes = [ctypes.c_void_p, ctypes.c_ulong, ctypes.c_int]
print(sum([poll(None, 0, 1) != 0 for _ in range(300)]))
'''
# When the sampler thread has begun: the scheduling policies of all threads.
POLICIES = '''
import os, time
time.sleep(0.2)
found = set()
for thread in os.listdir("/proc/self/task"):
    with open(f"/proc/self/task/{thread}/comm") as file:
        found.add((file.read().strip(), os.sched_getscheduler(int(thread))))
print({("sampleprof" if name == "sampleprof" else "python", policy)
       for name, policy in found} == {("python", 0), ("sampleprof", 0)}
      or found)
'''
LATE = 'ticks answered late'


class RestrictedTest(ProgramTest):

    def check(self, program, restriction, option=OPTION, profile=True):
        """Run with and without the profiler: the same.  Returns the line that
        the profiler says, and the profile."""
        plain = self.run_python('-c', program, **restriction)
        result = self.run_python(option, '-c', program, **restriction)
        self.assertEqual((result.status, result.out),
                         (plain.status, plain.out), result.err)
        lines = [line for line in result.err.splitlines()
                 if line not in plain.err.splitlines()]
        self.assertEqual(len(lines), 1, result.err)
        self.assertRegex(lines[0], '^(sampleprof|-X sampleprof): ')
        if not profile:
            self.assertEqual(self.files(), [])
            return lines[0], None
        self.assertEqual(self.files(), ['profile.pb.gz'])
        return lines[0], result.load('profile.pb.gz')

    def check_whole(self, profile):
        """The threads' work is there, under its name, with its time."""
        self.check_times(profile)
        samples = [s for s in profile.samples if on_stack(s, 'work')]
        # It sleeps for 50 ms; to wake up is CPU time.
        self.assertGreater(by_state(profile.samples)['waiting'], 0.049e9)
        named = [s for s in samples if on_stack(s, 'sorted')]
        self.assertGreater(sum([s.cpu_ns for s in named]), WORK_S * 1e9)

    def check_times(self, profile):
        """The same, but for names: a call is over when a late sample is
        taken."""
        samples = [s for s in profile.samples if on_stack(s, 'work')]
        # Of both; a tenth for what the clock's own lines take.
        self.assertGreater(sum([s.cpu_ns for s in samples]),
                           0.9 * 2 * WORK_S * 1e9)

    def check_calls(self, restriction):
        result = self.run_python(OPTION, '-c', CALLS, **restriction)
        self.assertEqual((result.status, result.out), (0, b'0\n'), result.err)
        _, profile = self.check(PROGRAM, restriction)
        self.check_times(profile)


class SystemCallsTest(RestrictedTest):

    def test_reading_memory(self):
        # Names of C functions are found by another way.
        line, profile = self.check(
            PROGRAM, restrictions.without_system_calls('process_vm_readv'))
        self.assertNotIn(LATE, line)
        self.check_whole(profile)

    def test_timers(self):
        line, profile = self.check(PROGRAM, restrictions.without_system_calls(
            'timer_create', 'timer_settime', 'timer_delete', 'setitimer'))
        self.assertNotIn(LATE, line)
        self.check_whole(profile)

    def test_signals(self):
        # The clock can ask nobody: samples are late, not missing.
        line, profile = self.check(
            PROGRAM,
            restrictions.without_system_calls('tgkill', 'timer_create'))
        self.assertIn(f'{LATE}, as no signal can be sent)', line)
        self.assertEqual(profile.stats['signals_sent'], 0)
        self.assertGreater(profile.stats['captures_biased'], 20)
        self.check_times(profile)

    def test_all_of_them(self):
        line, profile = self.check(PROGRAM, restrictions.without_system_calls(
            'timer_create', 'tgkill', 'process_vm_readv', 'close_range'))
        self.assertIn(LATE, line)
        self.check_times(profile)

    def test_descriptors(self):
        # No table of descriptors of the clock's own, so it asks /proc
        # nothing, and does not know who sleeps.
        self.check_calls(restrictions.without_system_calls('close_range'))

    def test_a_call_that_ends_the_process(self):
        # As in a unit of systemd with SystemCallFilter=~@resources.
        _, profile = self.check(PROGRAM, restrictions.without_system_calls(
            'sched_setattr', action=restrictions.SECCOMP_RET_KILL_PROCESS))
        self.check_whole(profile)

    def test_no_real_time_policy(self):
        # Not even for root, where no short slice is to be had.
        result = self.run_python(
            OPTION, '-c', POLICIES,
            **restrictions.without_system_calls('sched_setattr'))
        self.assertEqual(result.out, b'True\n', result.err)


class StacksTest(RestrictedTest):

    def test_thread_local_storage(self):
        # The C library takes it from the stack of each thread.
        directory = self.enterContext(tempfile.TemporaryDirectory())
        library = compile_extension('large_tls', directory)
        if SANITIZER:
            self.skipTest('a sanitizer has to be loaded first')
        result = self.run_python(OPTION, '-c', PROGRAM,
                                 env=environment(LD_PRELOAD=library))
        self.assertEqual((result.status, result.out), (3, b'worked\n'),
                         result.err)
        self.check_times(result.load('profile.pb.gz'))


class FilesTest(RestrictedTest):

    def test_no_proc(self):
        # A call that begins while a signal is on its way may be interrupted.
        self.check_calls(
            restrictions.with_mounts('mount -t tmpfs none /proc'))

    def test_read_only_disk(self):
        restriction = restrictions.with_mounts(
            'mount -t tmpfs -o ro none "$PWD"')
        result = self.run_python(OPTION, '-c', PROGRAM, **restriction)
        self.assertEqual((result.status, result.out, self.files()),
                         (2, b'', []))
        self.assertIn("out=profile.pb.gz: Read-only file system: '.'",
                      result.err)

    def test_full_disk(self):
        restriction = restrictions.with_mounts(
            'mount -t tmpfs -o size=4k none "$PWD"',
            'head -c 4096 /dev/zero >"$PWD/fill"')
        line, _ = self.check(PROGRAM, restriction, profile=False)
        self.assertIn('No space left on device', line)


class UsersTest(RestrictedTest):

    def test_nobody(self):
        # Who may not enter the directory above, so that no path leads here.
        os.chmod(self.directory, 0o700)
        self.directory = os.path.join(self.directory, 'inside')
        os.mkdir(self.directory)
        line, profile = self.check(
            PROGRAM, restrictions.as_nobody(self.directory))
        self.assertNotIn(LATE, line)
        self.check_whole(profile)
        status = os.stat(os.path.join(self.directory, 'profile.pb.gz'))
        self.assertEqual((status.st_uid, status.st_mode & 0o777),
                         (restrictions.NOBODY, 0o644))

    @unittest.skipIf(SANITIZER, 'a sanitizer starts a thread')
    def test_no_more_processes(self):
        # A thread counts as a process: there can be no sampler.
        restriction = restrictions.as_nobody(
            self.directory, [(resource.RLIMIT_NPROC, 1)])
        program = 'import sys; print("alone"); sys.exit(4)'
        line, _ = self.check(program, restriction, profile=False)
        self.assertRegex(line, 'not profiling: .*thread.* limit')
        result = self.run_python('-c', (
            'import profile_sampling\n'
            'try: profile_sampling.start()\n'
            'except OSError as exc: print(exc)\n'
            'print(profile_sampling.running())'), **restriction)
        self.assertRegex(result.out.decode(),
                         'thread cannot be started .*limit.*\nFalse\n$')

    def test_queue_of_signals_is_full(self):
        # The kernel then does not say who sent a signal.
        line, profile = self.check(PROGRAM, restrictions.with_limit(
            resource.RLIMIT_SIGPENDING, 0))
        self.assertNotIn(LATE, line)
        self.check_whole(profile)
        self.assertGreater(profile.stats['captures'], 20)

    def test_queue_is_full_of_real_time_signals(self):
        # Of these, the kernel takes none at all.
        line, profile = self.check(
            PROGRAM,
            restrictions.with_limit(resource.RLIMIT_SIGPENDING, 0),
            option=OPTION + ',signal=64')
        self.assertIn(LATE, line)
        # But for those of runs that ended before it was sent.
        self.assertLessEqual(profile.stats['captures'],
                             profile.stats['signals_overdue'])
        self.check_times(profile)


class ThreadsTest(RestrictedTest):

    def test_all_signals_blocked(self):
        # In the first thread, so in the other one as well.
        line, profile = self.check(
            'import signal\n'
            'every = signal.valid_signals()\n'
            'signal.pthread_sigmask(signal.SIG_BLOCK, every)\n' + PROGRAM, {})
        self.assertIn(f'{LATE}, as signals are blocked)', line)
        self.check_times(profile)

    def test_small_stacks(self):
        # The smallest that threading allows.  The handler needs some KiB of
        # it, most of which is what the kernel saves of the processor.
        line, profile = self.check(
            'import threading\nthreading.stack_size(32768)\n' + PROGRAM, {},
            option='-Xsampleprof=rate_hz=10000,out=profile.pb.gz')
        self.check_whole(profile)

    @unittest.skipIf(SANITIZER, 'its frames are several times larger')
    def test_smallest_stacks(self):
        # Of threads in C, which run C code while they hold the GIL.
        compile_extension('attaching_pool', self.directory)
        program = (
            'import functools, os, sys\n'
            f'sys.path.append({self.directory!r})\n'
            'import attaching_pool\n'
            'job = functools.partial(sorted, list(range(20_000)))\n'
            'attaching_pool.run(4, 4000, job,\n'
            '                   os.sysconf("SC_THREAD_STACK_MIN"))\n')
        plain = self.run_python('-c', program)
        self.assertEqual(plain.status, 0, plain.err)
        result = self.run_python(OPTION, '-c', program)
        self.assertEqual((result.status, result.out), (0, b''), result.err)
        profile = result.load('profile.pb.gz')
        # They have no Python frames.  A thread state of such a thread is made
        # for each job: most of its time lies before and behind its ticks.
        workers = [sample for sample in profile.samples
                   if sample.thread.name != 'MainThread']
        self.assertEqual(len({sample.thread for sample in workers}), 4)
        self.assertEqual({names(sample) for sample in workers
                          if sample.state == 'running'}, {()})
        self.assertGreater(sum([sample.cpu_ns for sample in workers]), 0.1e9)
        self.assertGreater(profile.stats['captures'], 50)

    def test_handlers_have_a_stack_of_their_own(self):
        # Smaller than that of faulthandler; the program's, so it stays.
        line, profile = self.check(ALTERNATE_STACK + PROGRAM, {})
        self.check_whole(profile)


# Sets an alternate stack, and at the end looks whether it is still in place,
# and how much of it was ever used.
ALTERNATE_STACK = '''
import atexit, ctypes
class stack_t(ctypes.Structure):
    _fields_ = [("sp", ctypes.c_void_p), ("flags", ctypes.c_int),
                ("size", ctypes.c_size_t)]
libc = ctypes.CDLL(None, use_errno=True)
SIZE = 16384
memory = ctypes.create_string_buffer(SIZE)
ctypes.memset(memory, 0xaa, SIZE)
stack = stack_t(ctypes.addressof(memory), 0, SIZE)
assert libc.sigaltstack(ctypes.byref(stack), None) == 0
def look():
    now = stack_t()
    assert libc.sigaltstack(None, ctypes.byref(now)) == 0
    untouched = len(memory.raw) - len(memory.raw.lstrip(b"\\xaa"))
    print(now.sp == stack.sp, now.size, untouched > SIZE // 4)
atexit.register(look)
'''
