"""Runs test suites of third parties, plain and sampled, and compares.

    PYTHON Tools/third_parties/run.py [--out DIR] [SUITE ...]

PYTHON is of an environment with what requirements.txt lists; run.sh makes
one.  A test passes if its verdict is the same while each process is sampled
at 5000 Hz, and if the profiles that it leaves can be read.  Where verdicts
differ, both runs are repeated, so that a test that fails now and then is
named as such.  The exit status is 1 if a difference stays, if a sampled run
crashes or hangs once as no plain one does, and if nothing was tested or
sampled.
"""

import argparse
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter, namedtuple

import compare
from profile_sampling import Profile
from suites import SUITES

RUNS = 'plain', 'sampled'
REPEATS = 2
COMMAND_TIMEOUT_S = 1500
TOTALS = 'samples', 'signals_sent', 'captures'

# Of a command: its verdicts when plain; three times {test: (plain, sampled)};
# and what the profiles of the first sampled run add up to.
Result = namedtuple('Result', 'verdicts differ at_times lacks totals')


def environment(run, profiles):
    env = {name: value for name, value in os.environ.items()
           if not name.startswith('PYTHON')}
    if run == 'sampled':
        env['PYTHONSAMPLEPROF'] = (
            f'wall,rate_hz=5000,quiet=1,out={profiles}/{{pid}}.pb.gz')
    return env


def cases(junit):
    """{test: verdict} of a file that pytest or unittest_junit.py wrote."""
    verdicts = {}
    for case in ElementTree.parse(junit).iter('testcase'):
        kinds = {child.tag for child in case}
        verdict = next((kind for kind in ('error', 'failure', 'skipped')
                        if kind in kinds), 'passed')
        verdicts[f'{case.get("classname")}.{case.get("name")}'] = verdict
    return verdicts


def read_profiles(profiles):
    """Totals over the profiles of a run, and what is wrong with them."""
    totals, bad = Counter(), {}
    for path in profiles.glob('*.pb.gz'):
        try:
            stats = Profile.load(path).stats
        except Exception as exc:
            bad[path.name] = 'none', f'unreadable ({exc})'
        else:
            totals['profiles'] += 1
            totals.update({name: stats.get(name, 0) for name in TOTALS})
    return totals, bad


def run_once(command, run, directory):
    """{test: verdict}, and of the command as one, if it has no report by test
    or does not come to its end."""
    junit = directory / f'{run}.xml'
    junit.unlink(missing_ok=True)
    with open(directory / f'{run}.txt', 'w') as output:
        try:
            status = subprocess.run(
                [sys.executable, *command, f'--junitxml={junit}'],
                cwd=directory,
                env=environment(run, directory / 'profiles'), stdout=output,
                stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                timeout=COMMAND_TIMEOUT_S).returncode
        except subprocess.TimeoutExpired:
            status = 'timeout'
    verdicts = cases(junit) if junit.exists() else {}
    if not verdicts or status not in (0, 1):
        verdicts[compare.COMMAND] = (compare.PASSED if status == 0
                                     else f'exit status {status}')
    return verdicts


def run_both(command, directory):
    return [run_once(command, run, directory) for run in RUNS]


def run_and_compare(command, directory):
    profiles = directory / 'profiles'
    shutil.rmtree(profiles, ignore_errors=True)
    profiles.mkdir(parents=True)
    attempts = [run_both(command, directory)]
    totals, bad = read_profiles(profiles)
    while compare.judge(attempts)[0] and len(attempts) <= REPEATS:
        attempts.append(run_both(command, directory))
    differ, at_times = compare.judge(attempts)
    # Its name has a process id, which no repetition would give again.
    return Result(attempts[0][0], differ | bad, at_times,
                  compare.lacks(attempts[0], totals), totals)


def report(name, result, seconds):
    counts = ', '.join(f'{count} {verdict}' for verdict, count
                       in sorted(Counter(result.verdicts.values()).items()))
    print(f'{name}: {counts}; {len(result.differ)} differ; {seconds:.0f} s',
          flush=True)
    print('    ' + ', '.join(f'{result.totals[total]:,} {total}' for total
                             in ('profiles', *TOTALS)), flush=True)
    for kind, tests in (('differs', result.differ),
                        ('differs at times', result.at_times),
                        ('lacks', result.lacks)):
        for test, (plain, sampled) in sorted(tests.items()):
            print(f'    {kind}: {test}: {plain}, sampled: {sampled}',
                  flush=True)


def main():
    parser = argparse.ArgumentParser(
        description='Run test suites of third parties, plain and sampled.')
    parser.add_argument('suites', nargs='*', metavar='SUITE',
                        help=f'of: {", ".join(SUITES)} (default: all)')
    parser.add_argument('--out', type=pathlib.Path, metavar='DIR',
                        default=pathlib.Path('build/third_parties'))
    options = parser.parse_args()
    unknown = set(options.suites) - SUITES.keys()
    if unknown:
        parser.error(f'no such suite: {", ".join(sorted(unknown))}')
    # Shells ignore it for what runs in the background, and tests that press
    # Ctrl-C would hang.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
        # By nohup.  What is caught here has its default in what is started.
        signal.signal(signal.SIGHUP, lambda signum, frame: None)
    out = options.out.resolve()
    failed = 0
    for name in options.suites or SUITES:
        directory = out / name
        directory.mkdir(parents=True, exist_ok=True)
        for part, command in SUITES[name](directory).items():
            started = time.monotonic()
            result = run_and_compare(command, directory / 'runs' / part)
            failed += len(result.differ) + len(result.lacks)
            report(f'{name} {part}', result, time.monotonic() - started)
    print(f'{failed} differ or are not there')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
