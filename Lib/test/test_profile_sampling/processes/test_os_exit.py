"""Programs that end themselves at once have a profile.  PITFALLS L4."""

import os
import shutil
import signal
import subprocess
import sys
import unittest

from ..support.sessions import environment
from .children import ChildrenTest


class EndTest(ChildrenTest):

    def run_code(self, code, status, *, profile=True):
        self.file('program.py', code)
        result = self.run_python('-Xsampleprof=out=p.pb.gz', 'program.py')
        self.assertEqual(result.status, status, result.err)
        self.assertEqual(self.files(),
                         ['p.pb.gz'] * bool(profile) + ['program.py'])
        said = result.said()
        # None: that there is none is said.
        self.assertEqual((result.err.splitlines(), len(said)),
                         (said, profile is not False))
        return result


# Where os._exit() is called with the status 9.
EXITS = {
    'thread': '''
import os, threading, time
threading.Thread(target=os._exit, args=(9,)).start()
time.sleep(60)''',
    'atexit': 'import atexit, os; atexit.register(os._exit, 9)',
    # The profile has been written by then.
    'finalization': '''
import os
class Last:
    def __del__(self, end=os._exit): end(9)
last = Last()''',
    'subinterpreter': '''
import _interpreters
i = _interpreters.create("legacy")
_interpreters.exec(i, "import os; os._exit(9)")''',
    'end of a recursion': '''
import os
def recurse():
    try:
        recurse()
    except RecursionError:
        os._exit(9)
recurse()''',
    'under a tracer': '''
import os, sys
sys.settrace(lambda *a: print("traced"))
os._exit(9)''',
    # Nothing is collected: finalizers of the program could wait for locks
    # that a fork has left behind.
    'before a collection': '''
import gc, os
class Cycle:
    def __init__(self): self.me = self
    def __del__(self, write=os.write):
        write(2, b"finalizer\\n")
gc.disable()
Cycle()
gc.set_threshold(1)
gc.enable(); os._exit(9)''',
}


class ExitTest(EndTest):
    """os._exit()."""

    def test_anywhere(self):
        for where, code in EXITS.items():
            with self.subTest(where):
                self.run_code(code, 9)
                os.unlink(os.path.join(self.directory, 'p.pb.gz'))

    def test_in_the_writer(self):
        # As a signal handler could, at any moment.
        hook = ('import os, sys\n'
                'def hook(event, arguments):\n'
                '    if event == "open" and ".tmp" in str(arguments[0]):\n'
                '        os._exit(9)\n'
                'sys.addaudithook(hook)\n')
        for end in 'os._exit(8)', 'sys.exit(8)':
            with self.subTest(end=end):
                self.run_code(hook + end, 9, profile=False)

    def test_a_handler_that_raises(self):
        # As a second SIGTERM does, while the profile is written.
        hook = ('import os, sys\n'
                'left = [%d]\n'
                'def hook(event, arguments):\n'
                '    if event == "open" and ".tmp" in str(arguments[0]):\n'
                '        if left[0]:\n'
                '            left[0] -= 1\n'
                '            sys.exit(7)\n'
                'sys.addaudithook(hook)\n')
        for end in 'os._exit(8)', 'sys.exit(8)':
            with self.subTest(end=end):
                self.run_code(hook % 2 + end, 8)
                os.unlink(os.path.join(self.directory, 'p.pb.gz'))
                result = self.run_code(hook % 9 + end, 8, profile=None)
                self.assertIn('an audit hook', result.err)

    def test_while_a_thread_imports(self):
        self.file('slow.py', 'import time\ntime.sleep(60)')
        self.file('program.py',
                  'import os, threading, time\n'
                  'threading.Thread(target=__import__, args=("slow",),'
                  ' daemon=True).start()\n'
                  'time.sleep(0.1)\nos._exit(9)')
        result = self.run_python('-Xsampleprof=out=p.pb.gz', 'program.py')
        self.assertEqual(result.status, 9, result.err)
        self.assertEqual(len(result.said()), 1)

    def test_where_nothing_can_be_written(self):
        os.mkdir(os.path.join(self.directory, 'no'))
        self.file('program.py', 'import os\nos.rmdir("no")\nos._exit(9)')
        result = self.run_python('-Xsampleprof=out=no/p.pb.gz', 'program.py')
        self.assertEqual(result.status, 9)
        self.assertEqual(len(result.said()), 1)
        self.assertIn('cannot write no/p.pb.gz', result.err)

    def test_nothing_is_imported(self):
        self.file('program.py', '''if True:
            import builtins, os, sys
            def refuse(*args, **kwargs):
                raise ImportError(args)
            def work():
                return sum([i * i for i in range(10 ** 6)])
            work()
            builtins.__import__ = refuse
            sys.meta_path.clear()
            sys.path.clear()
            for name in [*sys.modules]:
                if name not in ('os', 'sys', 'builtins'):
                    del sys.modules[name]
            os._exit(9)
            ''')
        for name in 'p.pb.gz', 'p.collapsed', 'p.txt':
            with self.subTest(name=name):
                result = self.run_python(f'-Xsampleprof=names=all,out={name}',
                                         'program.py')
                self.assertEqual(result.status, 9, result.err)
                self.assertIn('wrote', result.err)
                self.assertGreater(os.path.getsize(os.path.join(
                    self.directory, name)), 100)

    def test_without_the_package(self):
        self.file('profile_sampling.py', '1 / 0')
        self.file('program.py', 'import os\nos._exit(9)')
        result = self.run_python('-Xsampleprof=out=p.pb.gz', 'program.py',
                                 env=environment(PYTHONPATH=self.directory))
        self.assertEqual(result.status, 9)
        self.assertIn('not profiling: the writer of profiles cannot be '
                      'imported: ZeroDivisionError: division by zero',
                      result.err)
        self.assertNotIn('p.pb.gz', self.files())

    def test_session_of_the_program(self):
        self.file('program.py', 'import os, profile_sampling\n'
                  'profile_sampling.start()\nos._exit(9)')
        result = self.run_python('program.py')
        self.assertEqual((result.status, result.err, self.files()),
                         (9, '', ['program.py']))


class SignalTest(EndTest):
    """Signals that end the process by their default action."""

    def test_of_another_process(self):
        # Whatever the threads do meanwhile.
        for work in ('time.sleep(60)',
                     'while True: pass',
                     'threading.Thread(target=time.sleep, args=(60,)).start()'
                     '; time.sleep(0.1)',
                     'signal.sigwait([signal.SIGUSR2])'):
            with self.subTest(work=work):
                self.run_code(
                    'import os, signal, subprocess, sys, threading, time\n'
                    'shell = subprocess.Popen(["/bin/sh", "-c",'
                    ' f"sleep 0.3; kill {os.getpid()}"])\n'
                    f'def work():\n    {work}\nwork()', -signal.SIGTERM)
                self.assertIn('work', {
                    frame.function.qualname
                    for sample in self.load('p.pb.gz').samples
                    for frame in sample.stack})
                os.unlink(os.path.join(self.directory, 'p.pb.gz'))

    def test_no_thread_of_the_program_goes_on(self):
        # It would run Python code while the profile is written.
        code = ('import os, signal, sys, time\n'
                'def hook(event, arguments):\n'
                '    if event == "open" and ".tmp" in str(arguments[0]):\n'
                '        time.sleep(1)\n'
                'sys.addaudithook(hook)\n'
                'os.kill(os.getpid(), signal.SIGTERM)\n'
                'time.sleep(0.5)\nprint("went on")')
        self.assertEqual(self.run_code(code, -signal.SIGTERM).out, b'')

    def test_sent_more_than_once(self):
        # As timeout(1) does: to the process, and to its group.
        self.run_code('import os, signal, time\n'
                      'for _ in range(3):\n'
                      '    os.kill(os.getpid(), signal.SIGTERM)\n'
                      'time.sleep(60)', -signal.SIGTERM)

    def test_while_c_code_keeps_the_gil(self):
        # Nobody can write the profile; the process ends all the same.
        self.run_code('import ctypes, os, signal\n'
                      'libc = ctypes.PyDLL(None)\n'
                      'libc.kill(os.getpid(), signal.SIGTERM)\n'
                      'while True:\n    libc.sleep(60)', -signal.SIGTERM,
                      profile=False)

    def test_default_action_is_restored(self):
        self.run_code(
            'import os, signal, time\n'
            'assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL\n'
            'signal.signal(signal.SIGTERM, signal.SIG_IGN)\n'
            'os.kill(os.getpid(), signal.SIGTERM)\n'
            'old = signal.signal(signal.SIGTERM, signal.SIG_DFL)\n'
            'assert old is signal.SIG_IGN\n'
            'os.kill(os.getpid(), signal.SIGTERM)\n'
            'time.sleep(60)', -signal.SIGTERM)

    @unittest.skipUnless(
        os.geteuid() == 0 and shutil.which('unshare'), 'needs root, unshare')
    def test_first_process_of_a_container(self):
        # The kernel drops a signal that it does not handle: it goes on.
        self.file('program.py', 'import os, signal, time\n'
                  'assert os.getpid() == 1\n'
                  'os.kill(1, signal.SIGTERM)\n'
                  'end = time.monotonic() + 30\n'
                  'while not (is_there := os.path.exists("p.pb.gz"))'
                  ' and time.monotonic() < end:\n'
                  '    time.sleep(0.01)\n'
                  'os.kill(1, signal.SIGTERM)\n'
                  'print(is_there)')
        result = subprocess.run(
            ['unshare', '--fork', '--pid', sys.executable,
             '-Xsampleprof=out=p.pb.gz', 'program.py'],
            cwd=self.directory, capture_output=True, env=environment())
        if b'unshare failed' in result.stderr:
            self.skipTest(result.stderr)
        self.assertEqual((result.returncode, result.stdout), (0, b'True\n'),
                         result.stderr)
        self.assertIn('p.pb.gz', self.files())

    def test_that_ends_the_process(self):
        for signum in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP,
                       signal.SIGALRM, signal.SIGUSR1, signal.SIGUSR2,
                       signal.SIGXCPU):
            with self.subTest(signum=signum):
                self.run_code('import signal\n'
                              f'signal.signal({signum}, signal.SIG_DFL)\n'
                              f'signal.raise_signal({signum})', -signum)
                os.unlink(os.path.join(self.directory, 'p.pb.gz'))

    def test_broken_pipe(self):
        # PITFALLS L26.  The call does not return.
        code = ('import ctypes, os, signal\n'
                'signal.signal(signal.SIGPIPE, signal.SIG_DFL)\n'
                'reader, writer = os.pipe()\n'
                'os.close(reader)\n'
                'try:\n'
                '    %s\n'
                'finally:\n'
                '    print("went on", flush=True)\n')
        result = self.run_code(code % 'os.write(writer, b"x")',
                               -signal.SIGPIPE)
        self.assertEqual(result.out, b'')
        os.unlink(os.path.join(self.directory, 'p.pb.gz'))
        # C code that keeps the GIL keeps it from the writer, too.
        self.run_code(code % 'ctypes.PyDLL(None).write(writer, b"x", 1)',
                      -signal.SIGPIPE, profile=False)

    def test_in_a_thread(self):
        self.run_code('import signal, threading, time\n'
                      'threading.Thread(target=signal.raise_signal,'
                      ' args=(signal.SIGTERM,)).start()\n'
                      'time.sleep(60)', -signal.SIGTERM)

    def test_like_a_crash(self):
        for signum in signal.SIGKILL, signal.SIGABRT:
            with self.subTest(signum=signum):
                self.run_code('import signal\n'
                              f'signal.raise_signal({signum})', -signum,
                              profile=False)

    def test_that_ends_nothing(self):
        # All of the program is on the profile, to its end.
        code = ('import os, signal, time\n'
                'def after():\n    time.sleep(0.01)\n'
                '%s\nsignal.raise_signal(%s)\nafter()\nos._exit(9)')
        for before, signum in (
                ('', 'signal.SIGWINCH'),
                ('', 'signal.SIGCONT'),
                ('signal.signal(signal.SIGTERM, signal.SIG_IGN)',
                 'signal.SIGTERM'),
                ('signal.signal(signal.SIGTERM, lambda *args: None)',
                 'signal.SIGTERM'),
                ('signal.pthread_sigmask(signal.SIG_BLOCK,'
                 ' [signal.SIGTERM])', 'signal.SIGTERM')):
            with self.subTest(before=before, signum=signum):
                self.run_code(code % (before, signum), 9)
                self.assertIn('after', {
                    frame.function.qualname
                    for sample in self.load('p.pb.gz').samples
                    for frame in sample.stack})
