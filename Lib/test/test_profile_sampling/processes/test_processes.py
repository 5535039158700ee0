"""Children of every kind, and the profile of each.  PITFALLS L3, L4.

With PROFILE_SAMPLING_CHILDREN=1000 there are that many of each kind.
"""

import os
import re
import signal
import subprocess
import sys
import time
import unittest

from ..support.sessions import Run, environment, loaded, on_stack, weight
from . import process_kinds
from .children import COUNT, NO_THREADS, OPTION, ChildrenTest
from .process_kinds import CHILD_CPU_S, EXECS, WITH_PROFILE, WITHOUT_PROFILE

# A program without a handler dies of this signal.  The profiler's own choice
# is one that it does not notice, whose coming too late changes no status.
DEADLY_OPTION = f'{OPTION},signal={int(signal.SIGPROF)}'
# At 5,000 Hz one exec in seven has such a signal on its way, if nobody takes
# care of that.
EXEC_COUNT = max(COUNT, 30)


@NO_THREADS
class KindsTest(ChildrenTest):
    """Programs of process_kinds: see there."""

    def run_kind(self, kind, count, **options):
        begun = time.monotonic_ns()
        pid = self.run_program(process_kinds.__file__, kind, str(count),
                               **options)
        took_ns = time.monotonic_ns() - begun
        profiles = self.profiles()
        parent = profiles.pop(pid)
        # Of the parent nothing is missing, however often it forked.
        main = weight([sample for sample in parent.samples
                       if sample.thread.name == 'MainThread'])
        self.assertAlmostEqual(main, parent.duration_ns, delta=5_000_000)
        self.assertLess(parent.duration_ns, took_ns)
        self.assertEqual(sum(count for name, count in parent.stats.items()
                             if name.startswith('lost')), 0)
        self.assertFalse([sample for sample in parent.samples
                          if on_stack(sample, 'in_child')])
        return profiles, took_ns

    def lives(self):
        """What each child knows that it lived, in ns."""
        lives = {}
        for name in self.files():
            pid, _, what = name.partition('.')
            if what == 'life':
                with open(os.path.join(self.directory, name)) as file:
                    lives[int(pid)] = int(file.read())
        return lives

    def check_child(self, profile, lived_ns, took_ns):
        self.assertLessEqual(lived_ns, profile.duration_ns)
        self.assertLessEqual(profile.duration_ns, took_ns)
        # It began anew: with no stack, no time and no thread of the parent.
        self.assertFalse([sample for sample in profile.samples
                          if on_stack(sample, 'in_parent')])
        for thread in profile.threads:
            spent_ns = weight([sample for sample in profile.samples
                               if sample.thread == thread])
            self.assertLessEqual(spent_ns, profile.duration_ns)
        self.assertGreaterEqual(profile.total_cpu_ns, CHILD_CPU_S * 1e9)

    def check_kind(self, kind):
        profiles, took_ns = self.run_kind(kind, COUNT)
        lives = self.lives()
        self.assertGreaterEqual(len(lives), 1 if kind == 'executor, fork'
                                else COUNT)
        self.assertLessEqual(set(lives), set(profiles))
        for pid, lived_ns in lives.items():
            with self.subTest(pid=pid):
                self.check_child(profiles[pid], lived_ns, took_ns)
        # Not of each: on a busy machine no tick may be in time for one.
        self.assertTrue([pid for pid in lives for sample
                         in profiles[pid].samples
                         if on_stack(sample, 'in_child')])

    def check_kind_without(self, kind):
        profiles, _ = self.run_kind(kind, COUNT)
        self.assertEqual(profiles, {})

    def check_exec(self, kind):
        profiles, _ = self.run_kind(kind, EXEC_COUNT, option=DEADLY_OPTION)
        self.assertEqual(profiles, {})


def _add_tests():
    for prefix, kinds, check in (
            ('', WITH_PROFILE, KindsTest.check_kind),
            ('', WITHOUT_PROFILE, KindsTest.check_kind_without),
            ('deadly_signal_', EXECS, KindsTest.check_exec)):
        for kind in kinds:
            name = f'test_{prefix}' + ''.join([
                char if char.isalnum() else '_' for char in kind])

            def test(self, kind=kind, check=check):
                check(self, kind)
            assert not hasattr(KindsTest, name), name
            test.__name__ = name
            test.__qualname__ = f'KindsTest.{name}'
            setattr(KindsTest, name, test)


_add_tests()


FORK = """
import os
if not (pid := os.fork()):
    %s
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
"""
END = 'os._exit(7)'


@NO_THREADS
class ForksTest(ChildrenTest):

    def test_options_go_on(self):
        self.run_code(
            FORK % END, option='-Xsampleprof=cpu,rate_hz=700,depth_frames=99,'
            'names=calls,out={pid}.pb.gz.x,format=pprof')
        profiles = self.profiles('.pb.gz.x')
        self.assertEqual(len(profiles), 2)
        for profile in profiles.values():
            self.assertEqual(
                (profile.mode, profile.rate_hz, profile.depth_frames,
                 profile.names), ('cpu', 700, 99, 'calls'))

    def test_default_name_and_variable(self):
        self.file('program.py', FORK % END)
        result = self.run_python(
            'program.py', env=environment(PYTHONSAMPLEPROF='wall'))
        self.assertEqual(result.status, 0)
        self.assertEqual(len(result.said()), 1)
        self.assertEqual(len(self.files()), 3)
        for name in self.files():
            if name != 'program.py':
                self.assertEqual(f'sampleprof.{self.load(name).pid}.pb.gz',
                                 name)

    def test_children_of_no_interest(self):
        pid = self.run_code(
            FORK % END, option='-Xsampleprof=out={pid}.pb.gz,children=0')
        self.assertEqual(list(self.profiles()), [pid])

    def test_one_file_is_for_one_process(self):
        self.file('program.py', FORK % END)
        result = self.run_python('-Xsampleprof=out=p.pb.gz', 'program.py')
        self.assertEqual(result.status, 0, result.err)
        self.assertEqual(self.files(), ['p.pb.gz', 'program.py'])
        self.assertEqual(len(result.said()), 1)

    def test_directory_of_the_start(self):
        os.mkdir(os.path.join(self.directory, 'sub'))
        self.run_code(
            FORK % f'os.chdir("sub"); {END}')
        self.assertEqual(len(self.profiles()), 2)

    def test_session_of_the_program_ends_with_the_fork(self):
        self.file('program.py', 'import profile_sampling\n'
                  'profile_sampling.start()\n'
                  + FORK % ('assert not profile_sampling.running()\n'
                            '    profile_sampling.start()\n'
                            '    assert profile_sampling.stop().pid '
                            '== os.getpid()\n'
                            f'    {END}')
                  + 'assert profile_sampling.stop().pid == os.getpid()\n')
        result = self.run_python('program.py')
        self.assertEqual((result.status, result.err), (0, ''))
        self.assertEqual(self.files(), ['program.py'])

    def test_session_of_the_command_line_goes_on(self):
        self.run_code(
            'import profile_sampling\n'
            + FORK % ('assert profile_sampling.running()\n'
                      '    try:\n'
                      '        profile_sampling.start()\n'
                      '    except RuntimeError:\n'
                      '        assert profile_sampling.snapshot().pid '
                      '== os.getpid()\n'
                      f'        {END}'))
        self.assertEqual(len(self.profiles()), 2)

    def test_no_warning_about_threads(self):
        # The child's sampler thread is none of its business either.
        self.run_code(
            'import warnings\nwarnings.simplefilter("error")\n'
            + FORK % ('if not (pid := os.fork()): os._exit(7)\n'
                      '    os.waitpid(pid, 0)\n'
                      f'    {END}'))
        self.assertEqual(len(self.profiles()), 3)

    def test_child_that_cannot_write(self):
        os.mkdir(os.path.join(self.directory, 'sub'))
        self.file('program.py', FORK % f'os.rmdir("sub"); {END}'
                  + 'os.mkdir("sub")')
        result = self.run_python(
            '-Xsampleprof=out=sub/{pid}.pb.gz', 'program.py')
        self.assertEqual(result.status, 0)
        failed, wrote = result.said()
        self.assertIn('cannot write sub/', failed)
        self.assertIn('wrote sub/', wrote)
        self.assertEqual(result.err.count('\n'), 2)

    @unittest.skipUnless(os.geteuid() == 0, 'needs a user for itself')
    def test_child_that_may_have_no_thread(self):
        os.chmod(self.directory, 0o777)
        self.file('program.py', 'import os, resource\n'
                  'os.setuid(1_234_567)\n'
                  # This process, two threads of the profiler's, the child.
                  'resource.setrlimit(resource.RLIMIT_NPROC, (4, 4))\n'
                  + FORK % END)
        result = self.run_python(OPTION, 'program.py')
        self.assertEqual(result.status, 0, result.err)
        failed, wrote = result.said()
        self.assertRegex(failed, 'not profiling process [0-9]+: the sampler '
                         'thread cannot be started')
        self.assertEqual(result.err.count('\n'), 2)

    def test_handler_of_the_program(self):
        # It took the profiler's signal after the start: both do without.
        self.run_code(
            'import signal\n'
            'got = []\n'
            'signal.signal(signal.SIGURG, lambda *a: got.append(a))\n'
            + FORK % ('signal.raise_signal(signal.SIGURG)\n'
                      '    assert len(got) == 1\n'
                      '    for i in range(10**5): pass\n'
                      '    assert len(got) == 1\n'
                      f'    {END}'),
            option='-Xsampleprof=rate_hz=5000,out={pid}.pb.gz,'
                   f'signal={int(signal.SIGURG)}')
        self.assertEqual(len(self.profiles()), 2)

    def test_threads_of_the_parent_are_not_in_the_child(self):
        pid = self.run_code(
            'import threading, warnings\n'
            'warnings.simplefilter("ignore")\n'
            'event = threading.Event()\n'
            'threads = [threading.Thread(target=event.wait)'
            ' for _ in range(3)]\n'
            '[thread.start() for thread in threads]\n'
            + FORK % END + 'event.set()\n')
        profiles = self.profiles()
        self.assertEqual(len(profiles.pop(pid).threads), 4)
        child, = profiles.values()
        self.assertEqual([thread.native_id for thread in child.threads],
                         [child.pid])

    def test_thread_in_the_loader(self):
        # It has a lock of the C library that nobody unlocks in the child.
        self.run_code(
            'import ctypes, threading, time, warnings\n'
            'import zlib                     # loaded before the fork\n'
            'warnings.simplefilter("ignore")\n'
            'inside, done = threading.Event(), threading.Event()\n'
            '@ctypes.CFUNCTYPE(ctypes.c_int, *3 * [ctypes.c_void_p])\n'
            'def callback(*args):\n'
            '    inside.set()\n'
            '    done.wait()\n'
            '    return 1\n'
            'function = ctypes.CDLL(None).dl_iterate_phdr\n'
            'threading.Thread(target=function, args=(callback, None)).start()'
            '\ninside.wait()\n'
            + FORK % END + 'done.set()\n')
        self.assertEqual(len(self.profiles()), 2)

    def test_thread_that_imports(self):
        # Its lock of a module that the writer needs stays locked.
        self.run_code(
            'import sys, threading, warnings\n'
            'from importlib.machinery import ModuleSpec\n'
            'warnings.simplefilter("ignore")\n'
            'inside, done = threading.Event(), threading.Event()\n'
            'class Importer:\n'
            '    def find_spec(self, name, *args):\n'
            '        if name == "zlib" and threading.current_thread() '
            'is thread:\n'
            '            return ModuleSpec(name, self)\n'
            '    def create_module(self, spec):\n'
            '        pass\n'
            '    def exec_module(self, module):\n'
            '        inside.set()\n'
            '        done.wait()\n'
            '        raise SystemExit\n'
            'sys.meta_path.insert(0, Importer())\n'
            'thread = threading.Thread(target=__import__, args=("zlib",))\n'
            'thread.start()\n'
            'inside.wait()\n'
            + FORK % END + 'done.set()\n')
        self.assertEqual(len(self.profiles()), 2)

    def test_merge_of_all(self):
        self.run_program(process_kinds.__file__, 'fork, os._exit', '5')
        profiles = self.profiles()
        merged = self.run_python('-m', 'profile_sampling', 'merge', '-o',
                                 'all.pb.gz', '*.pb.gz')
        self.assertEqual(merged.status, 0, merged.err)
        self.assertIn('merged 6 files of 6 processes into', merged.err)
        def totals(profile):
            return (profile.total_count, profile.total_cpu_ns,
                    profile.total_wall_ns)

        parts = self.load('all.pb.gz').group_by('pid')
        self.assertEqual(
            {int(pid): totals(part) for pid, part in parts.items()},
            {pid: totals(profile) for pid, profile in profiles.items()})


def start_of(pid):
    """When a process has begun, as /proc tells it."""
    with open(f'/proc/{pid}/stat') as file:
        return int(file.read().rpartition(')')[2].split()[19])


class ProgramsTest(ChildrenTest):
    """Children that are Python programs of their own."""

    def one_file(self, result):
        self.assertEqual(result.status, 0, result.err)
        self.assertEqual(self.files(), ['p.pb.gz', 'program.py'])
        self.assertEqual(len(result.said()), 1)
        return self.load('p.pb.gz')

    def test_variable_with_one_file(self):
        # The children do not overwrite it, however they are started.
        for options in '', ', env=os.environ', ', env={**os.environ}', \
                ', close_fds=False':
            for flags in '', '"-I", "-Xsampleprof=out=p.pb.gz", ':
                with self.subTest(options=options, flags=flags):
                    self.file('program.py',
                              'import os, subprocess, sys\n'
                              f'subprocess.run([sys.executable, {flags}"-c",'
                              f' "6 * 7"], check=True{options})\n'
                              'print(os.getpid())')
                    result = self.run_python('program.py', env=environment(
                        PYTHONSAMPLEPROF='out=p.pb.gz'))
                    self.assertEqual(self.one_file(result).pid,
                                     int(result.out))

    def test_other_file_of_a_child(self):
        self.file('program.py',
                  'import subprocess, sys\n'
                  'subprocess.run([sys.executable,'
                  ' "-Xsampleprof=out=child.pb.gz", "-c", "1"])')
        result = self.run_python('-Xsampleprof=out=p.pb.gz', 'program.py')
        self.assertEqual(result.status, 0)
        self.assertEqual(self.files(),
                         ['child.pb.gz', 'p.pb.gz', 'program.py'])

    def test_owner_that_is_gone(self):
        gone = subprocess.Popen([sys.executable, '-c', ''],
                                env=environment())
        gone.wait()
        path = os.path.join(self.directory, 'p.pb.gz')
        pid, start = os.getpid(), start_of(os.getpid())
        for owner in (f'{gone.pid} {start} {path}', f'{pid} {start} {path}.x',
                      # The number is that of another process by now.
                      f'{pid} {start - 1} {path}', f'{pid} 0 {path}',
                      '', 'nonsense', f'-1 1 {path}', f'{path}'):
            with self.subTest(owner=owner):
                self.file('program.py', '')
                result = self.run_python(
                    '-Xsampleprof=out=p.pb.gz', 'program.py',
                    env=environment(PYTHONSAMPLEPROF_OWNER=owner))
                self.one_file(result)
                os.unlink(path)

    def test_owner_that_lives(self):
        # A relative name is one file, whoever started the program.
        path = os.path.join(self.directory, 'p.pb.gz')
        result = self.run_python(
            '-Xsampleprof=out=p.pb.gz', '-c', 'print(6 * 7)',
            env=environment(PYTHONSAMPLEPROF_OWNER=(
                f'{os.getpid()} {start_of(os.getpid())} {path}')))
        self.assertEqual((result.status, result.out, result.err,
                          self.files()), (0, b'42\n', '', []))

    def test_program_that_execs_itself(self):
        self.file('program.py',
                  'import os, sys\n'
                  'if len(sys.argv) < 2:\n'
                  '    os.execv(sys.executable,'
                  ' [*sys.orig_argv, "again"])\n'
                  'print(os.getpid())')
        result = self.run_python('-Xsampleprof=out=p.pb.gz', 'program.py')
        first, last = result.said()
        self.assertIn('The process becomes another program.', first)
        self.assertNotIn('another program', last)
        profile = self.load('p.pb.gz')
        self.assertEqual(profile.pid, int(result.out))

    def test_program_that_execs_another(self):
        # Both are one process, and none overwrites the other's file.
        self.file('launcher.py', 'import os, sys\n'
                                 'def launch():\n'
                                 '    for i in range(10**6): pass\n'
                                 'launch()\n'
                                 'os.execv(sys.executable, '
                                 '[sys.executable, "program.py"])')
        self.file('program.py', 'import os\n'
                                'def work():\n'
                                '    for i in range(10**6): pass\n'
                                'work(); print(os.getpid())')
        result = self.run_python('launcher.py', env=environment(
            PYTHONSAMPLEPROF='wall'))
        pid = int(result.out)
        self.assertEqual(self.files(), [
            'launcher.py', 'program.py', f'sampleprof.{pid}.exec.pb.gz',
            f'sampleprof.{pid}.pb.gz'])
        self.assertEqual(len(result.said()), 2)
        for name, function in ('.exec', 'launch'), ('', 'work'):
            self.assertIn(f'__main__.{function}', [
                row.function.name for row in self.load(
                    f'sampleprof.{pid}{name}.pb.gz').functions()])

    def test_programs_that_are_started_in_other_directories(self):
        # Also in those that are gone when their programs end.
        self.file('program.py', """if True:
            import multiprocessing, os, subprocess, sys, tempfile
            def work():
                sum(range(100_000))
            if __name__ == '__main__':
                with tempfile.TemporaryDirectory() as directory:
                    subprocess.run([
                        sys.executable,
                        *subprocess._args_from_interpreter_flags(), '-c', '',
                        ], cwd=directory, check=True)
                    os.chdir(directory)
                    for method in 'spawn', 'fork':
                        process = multiprocessing.get_context(method).Process(
                            target=work)
                        process.start()
                        process.join()
                    os.mkdir('gone')
                    subprocess.run([
                        sys.executable,
                        *subprocess._args_from_interpreter_flags(), '-c',
                        'import os; os.rmdir(os.getcwd())'], cwd='gone',
                        check=True)
                    os.chdir('/')
            """)
        os.mkdir(os.path.join(self.directory, 'out'))
        for out in '{pid}.pb.gz', 'out/{pid}.pb.gz':
            for arguments, env in (([f'-Xsampleprof=out={out}'], {}),
                                   ([], {'PYTHONSAMPLEPROF': f'out={out}'})):
                with self.subTest(out=out, arguments=arguments):
                    result = self.run_python(*arguments, 'program.py',
                                             env=environment(**env))
                    self.assertEqual(result.status, 0, result.err)
                    self.assertIn(
                        ' Child processes with files of their own: 4. ',
                        result.err)
                    directory = os.path.join(self.directory,
                                             os.path.dirname(out))
                    names = [name for name in os.listdir(directory)
                             if name.endswith('.pb.gz')]
                    self.assertEqual(len(names), 5)
                    self.check_look(result, os.path.dirname(out))
                    for name in names:
                        self.load(os.path.join(directory, name))
                        os.unlink(os.path.join(directory, name))

    def check_look(self, result, directory):
        """What the line on stderr says to do shows all processes."""
        _, *command = result.err.rpartition('Look: ')[2].split()
        self.assertEqual(command, ['-m', 'profile_sampling', 'report',
                                   *filter(None, [directory])])
        report = self.run_python(*command)
        self.assertEqual(report.status, 0, report.err)
        self.assertIn('the newest run here has 5 processes: ', report.err)
        rows = report.out.decode().partition('  pid\n')[2].partition(
            '\n\n')[0].splitlines()
        self.assertEqual(len(rows), 5, report.out.decode())

    def test_directories_with_odd_names(self):
        """What children inherit leads to where their parent was started."""
        self.file('program.py', """if True:
            import multiprocessing, os
            if __name__ == '__main__':
                os.chdir('/')
                process = multiprocessing.get_context('spawn').Process(
                    target=sum, args=([],))
                process.start()
                process.join()
            """)
        # The last two look like the text that they are in.
        for name in ('a,b', ',', 'a=b,c=d', 'new\nline,', '"quo\'ted",', '{pid}',
                     b'\xff,', 'a:b', ',parent=1:2:3:/', ',quiet=1'):
            directory = os.path.join(os.fsencode(self.directory),
                                     os.fsencode(name))
            os.mkdir(directory)
            for arguments, env in (
                    (['-Xsampleprof=out=./{pid}.pb.gz'], {}),
                    ([], {'PYTHONSAMPLEPROF': 'wall'})):
                with self.subTest(name=name, arguments=arguments):
                    result = Run(*arguments, '../program.py',
                                 directory=directory, env=environment(**env))
                    self.assertEqual((result.status, result.out), (0, b''))
                    self.assertIn(' Child processes with files of their own: '
                                  '1. ', result.err)
                    self.assertEqual(result.err.splitlines(), result.said())
                    names = os.listdir(directory)
                    self.assertEqual(len(names), 2, names)
                    for each in names:
                        path = os.path.join(directory, each)
                        loaded(path)
                        os.unlink(path)

    def test_children_that_leave_no_file(self):
        # One that is ended, one that is not asked to profile itself, and one
        # that has a file.
        self.file('program.py', f"""if True:
            import os, subprocess, sys, time
            WORK = ('import time\\nend = time.process_time() + 0.2\\n'
                    'while time.process_time() < end: pass\\n')
            for flag, end in (('-E', ''), ('-B', ''), (
                    '-B', 'import os; os.kill(os.getpid(), 9)')):
                subprocess.run([sys.executable, flag, '-c', WORK + end])
            """)
        result = self.run_python('program.py', env=environment(
            PYTHONSAMPLEPROF='out={pid}.pb.gz'))
        said = re.search(
            r'\. Child processes with files of their own: 1\. Child processes '
            r'that left none: 1\. Not in them: (\d\.\d\d) s CPU of child '
            r'processes; how they began and ended, and other programs: for '
            r'those of Python use record -- COMMAND, or PYTHONSAMPLEPROF '
            r'instead of -X\. Look', result.err)
        self.assertGreaterEqual(float(said[1]), 0.4)
        self.assertLess(float(said[1]), 0.6)

    def test_children_that_take_long_to_end(self):
        # PITFALLS L34.  Their profiles are whole.
        self.file('program.py', """if True:
            import os, time
            class Slow:
                def __del__(self, clock=time.process_time):
                    end = clock() + 0.2
                    while clock() < end: pass
            if os.fork():
                os.wait()
            else:
                import builtins
                builtins.slow = Slow()
            """)
        result = self.run_python(OPTION, 'program.py')
        said = re.search(
            r'files of their own: 1\. Not in them: (\d\.\d\d) s CPU of child '
            r'processes; how they began and ended, and other programs',
            result.err)
        self.assertGreaterEqual(float(said[1]), 0.2)

    def test_children_that_still_run(self):
        # The fork server ends after the program.
        self.file('program.py', """if True:
            import multiprocessing
            def work():
                sum(range(100_000))
            if __name__ == '__main__':
                process = multiprocessing.get_context('forkserver').Process(
                    target=work)
                process.start()
                process.join()
            """)
        result = self.run_python(OPTION, 'program.py')
        self.assertIn('. Child processes with files of their own: 1. Child '
                      'processes that still run: 1. Look', result.err)

    def test_children_all_of_whom_leave_files(self):
        self.file('program.py', """if True:
            import os
            for _ in range(5):
                if not os.fork():
                    sum(range(3_000_000))
                    os._exit(0)
                os.wait()
            """)
        result = self.run_python(OPTION, 'program.py')
        self.assertIn('. Child processes with files of their own: 5. Look',
                      result.err)

    def test_environment_without_need(self):
        self.run_code('import os\n'
                      'assert "PYTHONSAMPLEPROF_OWNER" not in os.environ')

    def test_flags_are_handed_on_once(self):
        for text, expected in (
                ('', 'wall'), ('=cpu,rate_hz=50', 'cpu,rate_hz=50'),
                ('=rate_hz=50,quiet=1', 'rate_hz=50')):
            code = ('import subprocess; '
                    'print(*subprocess._args_from_interpreter_flags())')
            with self.subTest(text=text):
                result = self.run_python(f'-Xsampleprof{text}', '-c', code)
                flags = result.out.decode().split()
                self.assertEqual(flags[0], '-X')
                text, _, parent = flags[1].partition(',parent=')
                self.assertEqual(text, f'sampleprof={expected},quiet=1')
                self.assertTrue(parent.endswith(f':{self.directory}'))
                again = self.run_python(*flags, '-c', code)
                self.assertEqual((again.out, again.err), (result.out, ''))
        result = self.run_python('-c', code)
        self.assertEqual(result.out, b'\n')

    def test_off(self):
        for text in 'off', 'off,out={pid}.pb.gz', 'off,rate_hz=10':
            with self.subTest(text=text):
                result = self.run_python(
                    f'-Xsampleprof={text}', '-c',
                    'import _profile; print(_profile.running())',
                    env=environment(PYTHONSAMPLEPROF='wall'))
                self.assertEqual(
                    (result.status, result.out, result.err, self.files()),
                    (0, b'False\n', '', []))

    def test_resource_tracker_has_no_file(self):
        self.file('program.py',
                  'from multiprocessing import resource_tracker\n'
                  'resource_tracker.ensure_running()\n'
                  'resource_tracker._resource_tracker._stop()\n')
        for arguments, env in (
                ([], {'PYTHONSAMPLEPROF': 'out={pid}.pb.gz'}),
                (['-Xsampleprof=out={pid}.pb.gz'], {})):
            with self.subTest(arguments=arguments):
                result = self.run_python(*arguments, 'program.py',
                                         env=environment(**env))
                self.assertEqual(result.status, 0, result.err)
                [pid] = self.profiles()
                os.unlink(os.path.join(self.directory, f'{pid}.pb.gz'))

    def test_resource_tracker_while_nobody_profiles(self):
        # Programs that are frozen know it by its arguments.
        self.file('program.py', '''if True:
            import subprocess
            from multiprocessing import resource_tracker
            tracker = resource_tracker._resource_tracker
            tracker.ensure_running()
            command = ""
            while not command:      # as long as it is about to be executed
                with open(f"/proc/{tracker._pid}/cmdline") as file:
                    command = file.read()
            tracker._stop()
            arguments = command.split("\\0")[1:]
            flags = subprocess._args_from_interpreter_flags()
            print(arguments[:len(flags) + 1] == [*flags, "-c"])
            ''')
        for arguments, env in (([], {}), (['-X', 'dev'], {}),
                               (['-E'], {'PYTHONSAMPLEPROF': 'wall'})):
            with self.subTest(arguments=arguments):
                result = self.run_python(*arguments, 'program.py',
                                         env=environment(**env))
                self.assertEqual((result.out, result.err), (b'True\n', ''))


class TextTest(ChildrenTest):
    """What is wrong with children= on the command line."""

    def test_bad_texts(self):
        for text, message in (
                ('children=2', 'children=2: expected a whole number from 0 '
                               'to 1'),
                ('children=', 'children=: expected'),
                ('children=no', 'children=no: expected'),
                ('quiet=yes', 'quiet=yes: expected'),
                ('children=1,out=p.pb.gz',
                 'children=1 needs {pid} in out=p.pb.gz'),
                ('off,nonsense=1', "unknown key 'nonsense'"),
                ('wall,rate=100',
                 "unknown key 'rate'. Did you mean 'rate_hz='?"),
                ('timline=1', "unknown key 'timline'. Did you mean "
                              "'timeline='?"),
                ('timeline', "unknown mode 'timeline'. Did you mean "
                             "'timeline='?"),
                ('cpu,child', "no KEY=VALUE: 'child'. Did you mean "
                              "'children='?"),
                ('memory', "unknown mode 'memory': sampled allocations are "
                 'the mode alloc'),
                ('of', "unknown mode 'of': expected wall, cpu, alloc or off")):
            with self.subTest(text=text):
                result = self.run_python(f'-Xsampleprof={text}', '-c', '1')
                self.assertEqual(result.status, 2, result.err)
                self.assertIn(f'-X sampleprof: {message}', result.err)
                self.assertEqual(self.files(), [])
