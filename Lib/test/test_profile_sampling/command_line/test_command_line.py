"""python -X sampleprof=... and PYTHONSAMPLEPROF.

Programs are run with and without the option; but for the profile and one
line on stderr nothing may differ.
"""

import io
import os

from profile_sampling import Profile, _formats

from ..support.sessions import (
    ProgramTest, checked, environment, on_stack, weight)

# Says all it can see of how it was started.
SHOW = '''
import sys
print(sys.argv, sys.path, sys.flags, sys.warnoptions)
print({k: v for k, v in sys._xoptions.items() if k != "sampleprof"})
print(sorted(sys.modules))
print(__name__, globals().get("__file__"), __builtins__ is not None)
print(sys.gettrace(), sys.getprofile(), sys.getrecursionlimit())
import gc, signal, threading
print(gc.get_threshold(), gc.callbacks, threading.enumerate().__len__())
print(signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM))
print(signal.getitimer(signal.ITIMER_REAL))
print(sys.stdin.read() if len(sys.argv) > 1 else "")
import os
# What the profiler keeps has numbers that programs do not come to.
print([fd for fd in map(int, os.listdir("/proc/self/fd")) if fd < 1000],
      sorted(os.listdir(".")))
sys.exit(len(sys.argv))
'''


# Two lines of 60 and 40 %, below a deep stack.
RATES = '''
import time

def one(): spin(0.006)
def other(): spin(0.004)

def spin(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass

def below(depth):
    if depth:
        return below(depth - 1)
    end = time.thread_time() + 1.5
    begin = time.monotonic()
    while time.thread_time() < end or time.monotonic() < begin + 3.5:
        one()
        other()

below(400)
print(time.thread_time())
'''


# Once the rate is lowered, there is much less than half as much to take a part
# of.
LAZIER = '''
import time
import profile_sampling

end = time.monotonic() + 10
while (time.monotonic() < end
       and not profile_sampling.stats()['rate_lowered']):
    sum(range(1000))
end = time.monotonic() + 4.5
while time.monotonic() < end:
    time.sleep(0.0003)
    sum(range(1000))
'''


class RateTest(ProgramTest):

    def test_no_steps_that_do_not_help(self):
        self.file('lazier.py', LAZIER)
        result = self.run_python(
            '-Xsampleprof=rate_hz=10000,overhead=1,out=p.pb.gz', 'lazier.py')
        stats = result.load('p.pb.gz').stats
        # On a busy machine a second that got little CPU may look cheaper.
        self.assertIn(stats['rate_lowered'], (1, 2), stats)

    def test_it_gives_way_and_weights_stay_true(self):
        self.file('rates.py', RATES)
        for overhead, is_lowered in ('1', True), ('0', False):
            with self.subTest(overhead=overhead):
                result = self.run_python(
                    f'-Xsampleprof=rate_hz=10000,overhead={overhead},'
                    'out=p.pb.gz', 'rates.py')
                profile = result.load('p.pb.gz')
                self.assertEqual(profile.stats['rate_lowered'] > 0,
                                 is_lowered, profile.stats)
                # What came before main() is in the clock alone.
                cpu_ns = 1e9 * float(result.out)
                self.assertAlmostEqual(profile.total_cpu_ns / cpu_ns, 1,
                                       delta=0.05)
                one, other = [weight([
                    sample for sample in profile.samples
                    if on_stack(sample, name)], 'cpu_ns')
                    for name in ('one', 'other')]
                self.assertAlmostEqual(one / (one + other), 0.6, delta=0.04)
                report = io.StringIO()
                profile.report(report)
                self.assertEqual('Rate: 10,000 Hz was asked for'
                                 in report.getvalue(), is_lowered)


class SameProgramTest(ProgramTest):

    def check(self, arguments, *, xoption='-Xsampleprof=rate_hz=2000',
              env=None, **options):
        plain = self.run_python(*arguments, **options)
        profiled = self.run_python(
            *[xoption] if xoption else [], *arguments,
            env=environment(**env or {}), **options)
        self.assertEqual(profiled.out, plain.out)
        self.assertEqual(profiled.status, plain.status, profiled.err)
        said = profiled.said()
        self.assertEqual(len(said), 1, profiled.err)
        self.assertEqual([line for line in profiled.err.splitlines()
                          if line not in said], plain.err.splitlines())
        made = [name for name in self.files()
                if name.startswith('sampleprof.')]
        self.assertEqual(len(made), 1)
        return profiled.load(made[0])

    def test_ways_to_run_a_program(self):
        for name, text in (('script.py', SHOW), ('sub/script.py', SHOW),
                           ('package/__main__.py', SHOW),
                           ('package/__init__.py', ''),
                           ('bad.py', 'x = = 1\n')):
            self.file(name, text)
        on_stdin = SHOW.replace('sys.stdin.read()', '0')
        for arguments, text in (
                (['script.py', '-a', 'b c', ''], 'text'),
                ([os.path.join('sub', 'script.py')], ''), (['package'], ''),
                (['-m', 'package', 'x'], ''), (['-c', SHOW, 'x'], ''),
                ([], SHOW), (['-', 'x', 'y'], on_stdin),
                (['no_such_file.py'], ''), (['bad.py'], ''),
                *[([*options.split(), '-c', SHOW], '') for options in (
                    '-O', '-B', '-u', '-W error', '-X dev', '-P', '-s',
                    '-X faulthandler', '-X tracemalloc=2')]):
            with self.subTest(arguments=arguments):
                profile = self.check(arguments, input=text.encode())
                if arguments[0:1] == ['script.py']:
                    self.assertTrue([s for s in profile.samples
                                     if on_stack(s, '<module>')])
                self.remove_profiles()

    def remove_profiles(self):
        for name in self.files():
            if name.startswith('sampleprof.'):
                os.unlink(os.path.join(self.directory, name))

    def test_version_and_help(self):
        # Nothing runs, so there is nothing to profile.
        for option in '--version', '-VV', '--help-env':
            with self.subTest(option=option):
                result = self.run_python('-Xsampleprof', option)
                self.assertEqual(result.status, 0)
                self.assertEqual(result.said(), [])
                self.assertEqual(self.files(), [])

    def test_environment_variable(self):
        self.check(['-c', SHOW.replace('sys.flags', '0')], xoption=None,
                   env={'PYTHONSAMPLEPROF': 'cpu,rate_hz=500'})

    def test_one_and_zero(self):
        for value, is_on in (('1', True), ('1,rate_hz=100', True),
                             ('0', False), ('', False), ('off', False)):
            result = self.run_python(
                '-c', 'import profile_sampling as p; print(p.running())',
                env=environment(PYTHONSAMPLEPROF=value))
            self.assertEqual((result.status, result.out),
                             (0, f'{is_on}\n'.encode()), result.err)
            self.assertEqual(len(self.files()), is_on)
            for name in self.files():
                self.assertEqual(self.load(name).mode, 'wall')
                os.unlink(os.path.join(self.directory, name))

    def test_isolated_options_ignore_the_variable(self):
        for option in '-E', '-I':
            for text in 'wall', 'nonsense':
                with self.subTest(option=option, text=text):
                    result = self.run_python(
                        option, '-c', 'print(1)',
                        env=environment(PYTHONSAMPLEPROF=text))
                    self.assertEqual((result.status, result.out, result.err),
                                     (0, b'1\n', ''))
                    self.assertEqual(self.files(), [])

    def test_isolated_options_keep_the_option(self):
        for option in '-E', '-I', '-S':
            with self.subTest(option=option):
                result = self.run_python(option, '-Xsampleprof=out=x.txt',
                                         '-c', '1')
                self.assertEqual(result.status, 0)
                self.assertEqual(len(result.said()), 1, result.err)

    def test_option_beats_the_variable(self):
        result = self.run_python(
            '-Xsampleprof=cpu,out=option.pb.gz', '-c', '1',
            env=environment(PYTHONSAMPLEPROF='wall,out=variable.pb.gz'))
        self.assertEqual(self.files(), ['option.pb.gz'])
        self.assertEqual(result.load('option.pb.gz').mode, 'cpu')

    def test_imports_are_in_the_profile(self):
        self.file('slow_import.py',
                  'import time\n'
                  'def at_import():\n'
                  '    end = time.thread_time() + 0.1\n'
                  '    while time.thread_time() < end: pass\n'
                  'at_import()\n')
        profile = self.check(['-c', 'import slow_import'])
        there = [s for s in profile.samples if on_stack(s, 'at_import')]
        # All of it but for one tick, and what a busy machine takes.
        self.assertGreater(weight(there, 'cpu_ns'), 90_000_000)

    def test_start_up_is_in_the_profile(self):
        profile = self.check(['-c', 'import asyncio'],
                             xoption='-Xsampleprof=rate_hz=10000')
        modules = {frame.function.module for sample in profile.samples
                   for frame in sample.stack}
        self.assertIn('_frozen_importlib', modules)


class KeysTest(ProgramTest):

    def run_with(self, text, code='sum(range(10**6))'):
        result = self.run_python(f'-Xsampleprof={text}', '-c', code)
        self.assertEqual(result.status, 0, result.err)
        self.assertEqual(len(result.said()), 1, result.err)
        return result

    def test_mode_rate_and_depth(self):
        for text, expected in (
                ('cpu,rate_hz=77,depth_frames=9', ('cpu', 77, 9)),
                ('rate_hz=1', ('wall', 1, 512)),
                ('wall,rate_hz=10000', ('wall', 10_000, 512)),
                ('depth_frames=1', ('wall', 1000, 1)),
                ('depth_frames=16384', ('wall', 1000, 16_384))):
            with self.subTest(text=text):
                profile = self.run_with(f'{text},out=x.pb.gz').load('x.pb.gz')
                self.assertEqual((profile.mode, profile.rate_hz,
                                  profile.depth_frames), expected)

    def test_nothing_but_the_option(self):
        result = self.run_python('-Xsampleprof', '-c', 'sum(range(10**6))')
        self.assertEqual(result.status, 0)
        name, = self.files()
        self.assertRegex(name, r'\Asampleprof\.\d+\.pb\.gz\Z')
        profile = result.load(name)
        self.assertEqual((profile.mode, profile.rate_hz,
                          profile.depth_frames), ('wall', 1000, 512))
        # What the line on stderr says to do works.
        command = result.said()[0].partition('Look: ')[2].split()
        self.assertEqual(command[1:], ['-m', 'profile_sampling', 'report'])
        report = self.run_python(*command[1:])
        self.assertEqual(report.status, 0, report.err)
        self.assertIn(b'<module>', report.out)

    def test_signal(self):
        import signal
        code = ('import _profile, signal\nfor i in range(10**6): pass\n'
                'print(_profile.stats()["captures"] > 0)')
        result = self.run_with(f'signal={int(signal.SIGUSR2)},out=x.txt',
                               code)
        self.assertEqual(result.out, b'True\n')

    def test_formats(self):
        begins = {'pprof': b'\x1f\x8b', 'text': b'Wall profile',
                  'collapsed': b''}
        for extension, format in _formats.by_extension().items():
            for text, name in ((f'out=a{extension}', f'a{extension}'),
                               (f'format={format},out=any.name', 'any.name')):
                with self.subTest(text=text):
                    if format not in _formats.AT_EXIT:
                        self.check_refused(text, format)
                        continue
                    self.run_with(text)
                    path = os.path.join(self.directory, name)
                    with open(path, 'rb') as file:
                        data = file.read()
                    self.assertTrue(data)
                    if format == 'pprof':
                        checked(Profile.load(path))
                    if not name.endswith(('.pb', '.pprof')):
                        self.assertTrue(data.startswith(begins[format]))
                    if format == 'collapsed':
                        self.assertRegex(data, rb'\A([^\n]+ \d+\n)+\Z')

    def check_refused(self, text, format):
        """The program does not start, and it is said what to do instead."""
        result = self.run_python(f'-Xsampleprof={text}', '-c', 'print(1)')
        self.assertEqual((result.status, result.out), (2, b''))
        self.assertIn(f'does not write {format}, but pprof, collapsed, text: '
                      'write a .pb.gz file, and convert it by python -m '
                      'profile_sampling report -o', result.err)

    def test_pid(self):
        result = self.run_with('out=a.{pid}.b.{pid}.txt',
                               'import os; print(os.getpid())')
        pid = result.out.decode().strip()
        self.assertEqual(self.files(), [f'a.{pid}.b.{pid}.txt'])

    def test_relative_to_where_it_started(self):
        self.run_with('out=x.txt', 'import os; os.chdir("/")')
        self.assertEqual(self.files(), ['x.txt'])

    def test_start_directory_is_gone(self):
        gone = os.path.join(self.directory, 'gone')
        os.mkdir(gone)
        result = self.run_python(
            '-c', 'import os, subprocess, sys\n'
            f'os.chdir({gone!r}); os.rmdir({gone!r})\n'
            'sys.exit(subprocess.run([sys.executable, "-Xsampleprof",'
            ' "-c", "import sys; sys.exit(3)"]).returncode)')
        self.assertEqual(result.status, 3, result.err)
        self.assertEqual(len(result.said()), 1, result.err)
        self.assertIn('cannot write', result.said()[0])

    # out: what the message says of it.
    UNWRITABLE = {'none/x.txt': "No such file or directory: 'none'",
                  '{pid}/x.txt': 'No such file',
                  '/none/x.txt': "No such file or directory: '/none'",
                  '.': 'is a directory', 'link.txt': 'not a regular file',
                  'file/x.txt': 'Not a directory',
                  '/dev/full/x.txt': 'Not a directory'}

    def test_unwritable(self):
        self.file('file', 'precious')
        os.symlink('/dev/null', os.path.join(self.directory, 'link.txt'))
        for out, reason in self.UNWRITABLE.items():
            text = f'format=text,out={out}'
            with self.subTest(out=out):
                result = self.run_python(f'-Xsampleprof={text}', '-c',
                                         'print(1); raise SystemExit(4)')
                self.assertEqual((result.status, result.out), (2, b''))
                self.assertRegex(
                    result.err, fr'\A-X sampleprof: out={out}: .*{reason}')
                self.assertEqual(result.err.count('\n'), 1)
                self.assertEqual(self.files(), ['file', 'link.txt'])

    def test_unwritable_and_inherited(self):
        # The parent may have been in another directory.
        for out in 'none/x.txt', 'none/{pid}.txt':
            for arguments, env in (
                    ((), {'PYTHONSAMPLEPROF': f'out={out}'}),
                    ((f'-Xsampleprof=out={out},quiet=1',), {})):
                result = self.run_python(
                    *arguments, '-c', 'print(1); raise SystemExit(4)',
                    env=environment(**env))
                self.assertEqual((result.status, result.out), (4, b'1\n'))
                self.assertRegex(result.err, f'out={out}: .*No such file')
                self.assertEqual(result.err.count('\n'), 1)
                self.assertEqual(self.files(), [])

    def test_unusual_names(self):
        for name in ' x .txt', "it's.txt", '$(x).txt', '\u00e9.txt', \
                '-x.txt', 'a\nb.txt', '{}.txt', '{pid.txt', '%s.txt':
            with self.subTest(name=name):
                result = self.run_with(f'out={name}')
                self.assertIn(name, self.files())
                self.assertEqual(len(result.err.splitlines()), 1)
                os.unlink(os.path.join(self.directory, name))


class BadTextsTest(ProgramTest):

    # text: what the message must name.
    TEXTS = {
        '': 'mode', 'x': "'x'", 'WALL': 'WALL', 'wall ': "'wall '",
        ' wall': "' wall'", 'alloc=512X': 'alloc=512X: a size such',
        'wall,alloc=': 'alloc=: a size', 'rate': "'rate'",
        'wall,cpu': "'cpu'", 'wall,': "''", ',': "''", ',rate_hz=5': "''",
        'wall,,rate_hz=5': "''", 'wall,x=1': "'x'", '=1': "''",
        'rate=5': "'rate'", 'depth=5': "'depth'", 'Rate_hz=5': "'Rate_hz'",
        **{f'rate_hz={value}': f'rate_hz={value}' for value in (
            '', '0', '-1', '10001', '1.5', '1e3', '0x10', '9' * 20, '5 ',
            ' 5', '+5', '1_0')},
        'rate_hz=\u0665': 'rate_hz=',
        **{f'depth_frames={value}': f'depth_frames={value}'
           for value in ('0', '16385', 'x')},
        **{f'duration_s={value}': f'duration_s={value}: expected a whole '
           'number from 1 to 999999999'
           for value in ('0', '-1', '1.5', 'x', '1000000000', '')},
        'signal=0': 'signal=0', 'signal=-1': '-1',
        'signal=65': 'signal=65', 'signal=SIGURG': 'signal=SIGURG',
        'signal=9': 'signal', 'signal=11': 'signal',
        'format=nonsense': "'nonsense'", 'format=': 'format=',
        'format=PPROF': "'PPROF'", 'out=': 'out=', 'out=x.doc': "'x.doc'",
        'wall,rate_hz=5,depth_frames=3,bogus': "'bogus'",
        'manual=1': "'manual'", 'defer=2': 'defer=2', '2': "'2'",
        'wall=cpu': "'wall'", 'wall;rate_hz=5': "'wall;rate_hz'",
        'names=': 'names=', 'names=ALL': 'names=ALL',
        'names=calls,opcodes': "'opcodes'", 'calls': "'calls'",
        '\u00e9': '\u00e9', '\udcff': '', 'rate_hz=\udcff': 'rate_hz=',
        '\udcff=1': '', 'x\ny': 'x',
    }

    def check(self, result, source, part):
        self.assertEqual(result.status, 2, result.err)
        self.assertEqual(result.out, b'')
        self.assertEqual(self.files(), [])
        self.assertTrue(result.err.startswith(f'{source}: '), result.err)
        self.assertTrue(result.err.endswith('\n'), result.err)
        self.assertEqual(result.err.count('\n'), 1, result.err)
        self.assertIn(part, result.err)

    def test_option(self):
        for text, part in self.TEXTS.items():
            with self.subTest(text=text):
                result = self.run_python(f'-Xsampleprof={text}', '-c',
                                         'print("started")')
                self.check(result, '-X sampleprof', part)

    def test_variable(self):
        for text, part in self.TEXTS.items():
            if text:
                with self.subTest(text=text):
                    result = self.run_python(
                        '-c', 'print("started")',
                        env=environment(PYTHONSAMPLEPROF=text))
                    self.check(result, 'PYTHONSAMPLEPROF', part)

    def test_in_the_c_locale(self):
        for text in '\u00e9', 'out=x.txt,\u00e9=1', '\udcff':
            with self.subTest(text=text):
                result = self.run_python(
                    f'-Xsampleprof={text}', '-c', 'print("started")',
                    env=environment(LC_ALL='C', PYTHONCOERCECLOCALE='0',
                                    PYTHONUTF8='0'))
                self.check(result, '-X sampleprof', '')

    def test_signal_that_nobody_can_take(self):
        for number in 9, 19, 32, 33:
            with self.subTest(number=number):
                result = self.run_python(f'-Xsampleprof=signal={number}',
                                         '-c', 'print("started")')
                # Refused before the program starts, or the program runs and
                # is told that it is not profiled; it never dies of it.
                self.assertIn(result.status, (0, 2))
                self.assertIn('signal', result.err)
                self.assertEqual(self.files(), [])
