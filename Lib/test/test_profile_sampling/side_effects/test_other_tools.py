"""Other tools that watch the program, all at once.  PITFALLS L13.

They say the same with and without the profiler, which takes no tool id, no
trace function and no hook from anybody.
"""

import importlib.util
import os
import unittest

from ..support.sessions import OPTION, ProgramTest, on_stack

WORK = '''
def leaf(n):
    return sum(range(n))
def work():
    total = 0
    for i in range(2000):
        total += leaf(i % 50)
        if i % 500 == 0:
            total += len(sorted(range(20_000), key=str))
    return total
'''

# Prints what each tool has counted, and nothing that depends on time.
PROGRAM = '''
import cProfile, faulthandler, io, pstats, sys, threading, tracemalloc
M = sys.monitoring
# The last id that is not the interpreter's own counts queries.
print([M.get_tool(i) for i in range(5)], sys.gettrace(), sys.getprofile())
faulthandler.enable()
faulthandler.dump_traceback_later(60)
tracemalloc.start(5)
lines = calls = 0
def on_line(code, line):
    global lines
    lines += code.co_name in ("leaf", "work")
def on_call(code, offset, function, argument):
    global calls
    calls += code.co_name == "work"
for tool in 3, 4:
    M.use_tool_id(tool, f"tool {tool}")
M.register_callback(3, M.events.LINE, on_line)
M.set_events(3, M.events.LINE)
M.register_callback(4, M.events.CALL, on_call)
M.set_events(4, M.events.CALL)
traced = set()
def trace(frame, event, argument):
    if frame.f_code.co_name in ("leaf", "work"):
        traced.add((frame.f_lineno, event))
    return trace
profile = cProfile.Profile()
sys.settrace(trace)
profile.enable()
first = work()
profile.disable()
sys.settrace(None)
print(first, lines, calls, sorted(traced))
stats = pstats.Stats(profile, stream=io.StringIO())
print(sorted((name, numbers[:2]) for (_, _, name), numbers
             in stats.stats.items() if name in ("leaf", "work")))
print([M.get_tool(i) for i in range(5)])
kept = [bytes(1000) for _ in range(100)]
taken = tracemalloc.take_snapshot().statistics("lineno")
print([(s.count, s.size) for s in taken if s.size > 100_000])
faulthandler.cancel_dump_traceback_later()
tracemalloc.stop()
for tool in 3, 4:
    M.free_tool_id(tool)
print(work() == first)
'''

DEBUGGER = '''
import io, pdb
commands = io.StringIO("break leaf\\ncontinue\\nwhere\\np n\\nclear 1\\n"
                       "continue\\n")
out = io.StringIO()
debugger = pdb.Pdb(stdin=commands, stdout=out, nosigint=True, readrc=False)
debugger.use_rawinput = False
try:
    debugger.run("work()", globals())
finally:
    print([line for line in out.getvalue().splitlines()
           if "bdb.py" not in line])
'''


class TogetherTest(ProgramTest):

    def check(self, program, *options):
        self.file('program.py', WORK + program)
        plain = self.run_python(*options, 'program.py')
        result = self.run_python(OPTION, *options, 'program.py')
        self.assertEqual(
            (result.status, result.out.decode().splitlines()),
            (plain.status, plain.out.decode().splitlines()), result.err)
        self.assertEqual(result.status, 0, result.err)
        self.assertEqual(result.err.splitlines(),
                         plain.err.splitlines() + result.said())
        profile = result.load('profile.pb.gz')
        self.assertTrue([s for s in profile.samples if on_stack(s, 'work')])

    def test_all(self):
        self.check(PROGRAM)

    def test_all_with_the_perf_trampoline(self):
        self.check('import sys\n'
                   'print(sys.is_stack_trampoline_active())\n'
                   'import atexit, os\n'
                   'def clean():\n'
                   '    path = f"/tmp/perf-{os.getpid()}.map"\n'
                   '    if os.path.exists(path): os.unlink(path)\n'
                   'atexit.register(clean)\n' + PROGRAM, '-Xperf')

    def test_debugger(self):
        self.check(DEBUGGER)

    def test_switched_on_and_off(self):
        # Tools come and go while the profiler samples their program.
        self.check('import cProfile, sys, tracemalloc\n'
                   'calls = 0\n'
                   'for i in range(40):\n'
                   '    profile = cProfile.Profile()\n'
                   '    if i % 2: sys.settrace(lambda *a: None)\n'
                   '    if i % 3: tracemalloc.start()\n'
                   '    profile.enable()\n'
                   '    leaf(100)\n'
                   '    profile.disable()\n'
                   '    sys.settrace(None); tracemalloc.stop()\n'
                   '    calls += sum(\n'
                   '        e.callcount for e in profile.getstats()\n'
                   '        if getattr(e.code, "co_name", 0) == "leaf")\n'
                   '    work()\n'
                   'print(calls)')

    @unittest.skipUnless(importlib.util.find_spec('coverage'),
                         'needs the package coverage')
    def test_coverage(self):
        import coverage
        package = os.path.dirname(os.path.dirname(coverage.__file__))
        for core in 'sysmon', 'ctrace', 'pytrace':
            with self.subTest(core=core):
                self.check(
                    'import os, sys\n'
                    f'sys.path.append({package!r})\n'
                    f'os.environ["COVERAGE_CORE"] = {core!r}\n'
                    'import coverage\n'
                    'cover = coverage.Coverage(data_file=None, '
                    'config_file=False)\n'
                    'cover.start()\n'
                    'import colorsys\n'
                    'colorsys.rgb_to_hls(1, 0.5, 0.2)\n'
                    'result = work()\n'
                    'cover.stop()\n'
                    'data = cover.get_data()\n'
                    'print(result, sorted((os.path.basename(name), '
                    'sorted(data.lines(name)))\n'
                    '      for name in data.measured_files()))\n')
