"""Our tests, and some of CPython's, where a mistake in memory shows itself.

    python3 Tools/sanitize/run.py asan|tsan|refleaks|valgrind [TEST...]

asan       build/asan: AddressSanitizer and UndefinedBehaviorSanitizer
tsan       build/tsan: ThreadSanitizer, with CPython's own suppressions
refleaks   build/debug: references and memory blocks that each run of a test
           leaves behind, by regrtest's -R 3:3
valgrind   build/release under valgrind's memcheck

TEST is the name of a test file, for regrtest; CPython's are run while every
process of them is sampled.  Reports go to build/sanitize/KIND.  Status 1 if a
test failed, or there is a report with a function of ours in it or one that is
not known.  What CPython does without us is counted: ThreadSanitizer has reports
of subinterpreters and of daemon threads at the end, AddressSanitizer of
drop_gil(), which such a thread calls with its state freed, valgrind of
wmemcmp(), which reads whole vectors.
"""

import argparse
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
OURS = 'test_profile_sampling'
OUR_TESTS = ROOT / 'Lib' / 'test' / OURS
RATE_HZ = 1000
TIMEOUT_SECONDS = 1800
VARIANTS = {'asan': 'asan', 'tsan': 'tsan', 'refleaks': 'debug',
            'valgrind': 'release'}

# Where the hooks run; under ThreadSanitizer what its own list in libregrtest
# has of them.
CPYTHON_TESTS = {
    'asan': ('test_threading', 'test_gc', 'test_generators', 'test_fork1',
             'test_signal', 'test_context', 'test_sys', 'test_thread'),
    'tsan': ('test_thread', 'test_threading_local', 'test_threadsignals',
             'test_queue', 'test_weakref', 'test_signal', 'test_functools')}
# These run in one process, without waiting for other programs: what they
# leave behind is ours.
IN_PROCESS = (
    'formats.test_collapsed', 'formats.test_files', 'formats.test_hostile',
    'formats.test_names', 'formats.test_pprof', 'formats.test_pprof_read',
    'formats.test_text', 'labels.test_label_decorator', 'labels.test_labels',
    'profiles.test_instructions', 'profiles.test_merge',
    'profiles.test_model', 'recording.test_api', 'recording.test_deferred',
    'stacks.test_stacks', 'subscribing.test_subscribe',
    'weights.test_manual', 'weights.test_spans')
# Fifty times slower there.
SHORT = ('formats.test_collapsed', 'formats.test_names',
         'formats.test_pprof', 'formats.test_text',
         'labels.test_label_decorator', 'profiles.test_instructions',
         'recording.test_api', 'recording.test_deferred',
         'weights.test_manual', 'weights.test_spans')

# The lines of a report that name a function: "#1 f ../src/Python/x.c:12", or
# valgrind's "==9==    by 0x1F: f (x.c:12)".
FRAME = re.compile(r'^(?:\s+#\d+|==\d+==\s+(?:at|by) 0x\w+:) .*',
                   re.MULTILINE)
INNERMOST = re.compile(r'\s+#0 |==\d+==\s+at ')
# Between two reports.
RULE = re.compile(r'^(?:={18,}|==\d+== )\n', re.MULTILINE)
OUR_FRAME = re.compile(r'sampling|_profile\b|_PyProfile')
# What CPython does by itself, by a frame; first what may have frames of ours
# besides.  At the end a thread's state and record are freed, and its
# interpreter cleared, while the thread may wait for the GIL; each interpreter
# makes the static types ready again.
CPYTHONS_BESIDE_OURS = {
    'tsan': re.compile(r'_PyThreadState_DeleteList |#0 interpreter_clear '
                       r'|#0 _?PyType_HasFeature ')}
CPYTHONS = {'tsan': re.compile(''), 'asan': re.compile(r' in drop_gil '),
            'valgrind': re.compile(r' __wmemcmp_')}
# What it says of itself: how much there was, a thread after a fork.
NOTICE = re.compile(r'(?:==\d+==)?ThreadSanitizer: ')
# Only where memory was used, not where it or its thread came from.
ORIGIN = re.compile(r'^  (Location|Thread T|As if synchronized|Mutex)'
                    r'|^==\d+==  Address ', re.MULTILINE)


def tests_of(kind):
    """All of our test files by default: each a test of its own to regrtest."""
    if kind in ('asan', 'tsan'):
        names = [f'{path.parent.name}.{path.stem}'
                 for path in OUR_TESTS.glob('*/test_*.py')]
    else:
        names = SHORT if kind == 'valgrind' else IN_PROCESS
    return [f'{OURS}.{name}' for name in sorted(names)]


def options(kind, directory):
    """Settings of the sanitizers.  Reports go to files, since a test may read
    what a program says."""
    reports = directory / 'report'
    if kind == 'asan':
        return {'ASAN_OPTIONS': 'detect_leaks=0:allocator_may_return_null=1:'
                                f'handle_segv=0:log_path={reports}',
                'UBSAN_OPTIONS': f'print_stacktrace=1:log_path={reports}'}
    if kind == 'tsan':
        suppressions = ROOT / 'build/src/Tools/tsan/suppressions.txt'
        return {'TSAN_OPTIONS': f'suppressions={suppressions}:exitcode=0:'
                                'die_after_fork=0:'
                                f'log_path={reports}'}
    if kind == 'valgrind':
        return {'PYTHONMALLOC': 'malloc'}
    return {}


def environment(kind, directory, *, sampled):
    env = {name: value for name, value in os.environ.items()
           if not name.startswith('PYTHON')}
    env |= options(kind, directory)
    if sampled:
        profiles = directory / 'profiles'
        profiles.mkdir(exist_ok=True)
        env['PYTHONSAMPLEPROF'] = (
            f'wall,rate_hz={RATE_HZ},quiet=1,out={profiles}/{{pid}}.pb.gz')
    return env


def command(kind, python, tests, jobs, directory):
    regrtest = ['-m', 'test', '-W', f'-j{jobs}', '--timeout',
                str(TIMEOUT_SECONDS), *tests]
    if kind == 'refleaks':
        return [python, *regrtest, '-R', '3:3']
    if kind == 'valgrind':
        suppressions = ROOT / 'build/src/Misc/valgrind-python.supp'
        return ['valgrind', '-q', '--error-exitcode=99',
                f'--suppressions={suppressions}',
                f'--log-file={directory}/report.%p', python, '-m', 'unittest',
                '-q', *[f'test.{test}' for test in tests]]
    return [python, *regrtest]


def run(kind, python, tests, jobs, directory, *, sampled):
    if not tests:
        return 0
    # A shell may have started this with SIGINT ignored.
    return subprocess.run(
        command(kind, python, tests, jobs, directory),
        env=environment(kind, directory, sampled=sampled), cwd=directory,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)
    ).returncode


def innermost(frames):
    """Of each stack the frames below the eval loop: further out are calls of
    Python code, which is not ours whoever called it."""
    is_inside = True
    for frame in frames:
        is_inside = is_inside or INNERMOST.match(frame) is not None
        is_inside = is_inside and '_PyEval_EvalFrameDefault' not in frame
        if is_inside:
            yield frame


def verdict(kind, text):
    frames = list(innermost(FRAME.findall(ORIGIN.split(text)[0])))
    beside = CPYTHONS_BESIDE_OURS.get(kind)
    if beside is not None and any(map(beside.search, frames)):
        return "CPython's"
    if any(map(OUR_FRAME.search, frames)):
        return 'ours'
    if not frames and kind == 'asan':
        return 'cut off'        # the program ended in the middle of it
    known = CPYTHONS.get(kind)
    if known is not None and any(map(known.search, frames)):
        return "CPython's"
    return 'not known'


def judge(kind, directory):
    """Print what there is to say; return whether that is a failure."""
    verdicts, summaries = Counter(), Counter()
    for path in sorted(directory.glob('report*')):
        for text in RULE.split(path.read_text(errors='replace')):
            if not text.strip() or NOTICE.match(text.strip()):
                continue
            found = verdict(kind, text)
            verdicts[found] += 1
            summary = re.search('SUMMARY: .*', text)
            line = summary[0] if summary else text.strip().split('\n')[0]
            summaries[re.sub(r'==\d+==|0x\w+', '', line)] += 1
            if found in ('ours', 'not known'):
                print(text)
    for line, count in sorted(summaries.items()):
        print(f'{count:6} {line}')
    print('reports:', ', '.join([f'{count} {found}' for found, count
                                 in sorted(verdicts.items())]) or 'none')
    return verdicts['ours'] + verdicts['not known'] > 0


def main():
    parser = argparse.ArgumentParser(
        description='Run tests under a sanitizer.')
    parser.add_argument('kind', choices=VARIANTS)
    parser.add_argument('tests', nargs='*', metavar='TEST',
                        help='test files (default: ours, then some of '
                             "CPython's, sampled)")
    parser.add_argument('--jobs', type=int, default=os.cpu_count(),
                        metavar='N', help='how many test files at a time')
    args = parser.parse_intermixed_args()
    python = ROOT / 'build' / VARIANTS[args.kind] / 'python'
    if not python.exists():
        sys.exit(f'{python} does not exist. Run '
                 f'"make {VARIANTS[args.kind]}" first.')
    if args.kind == 'valgrind' and shutil.which('valgrind') is None:
        sys.exit('there is no valgrind. Install the package "valgrind".')
    # Some tests run as another user, who may not come to build/.
    directory = pathlib.Path(tempfile.mkdtemp(prefix=f'{args.kind}_'))
    directory.chmod(0o1777)

    def failed(tests, *, sampled):
        return run(args.kind, python, tests, args.jobs, directory,
                   sampled=sampled) != 0
    ours = [test for test in args.tests if test.startswith(OURS)]
    theirs = [test for test in args.tests if test not in ours]
    if not args.tests:
        ours, theirs = tests_of(args.kind), CPYTHON_TESTS.get(args.kind, ())
    has_failed = failed(ours, sampled=False)
    has_failed |= failed(theirs, sampled=True)
    has_failed |= judge(args.kind, directory)
    kept = ROOT / 'build' / 'sanitize' / args.kind
    shutil.rmtree(kept, ignore_errors=True)
    shutil.move(directory, kept)
    if has_failed:
        sys.exit(1)
    print(f'{args.kind}: all passed')


if __name__ == '__main__':
    main()
