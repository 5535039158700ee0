"""Stress: random mixes of workloads, profiled by everybody at once.

    ./python Tools/stress/run.py --seconds 60 --seed 7 --jobs 1

Runs episodes of a few seconds, each in a process of its own with a seed of
its own, so that a crash or a hang is one episode's.  The first few have every
family of workloads between them, however short the time.  A failed one is
shown with its output and the command that repeats it.  The status is 0 if
none failed.  An interrupt lets the episodes under way end, and tells the
totals; the status is 130 then, if none failed.
"""

import argparse
import concurrent.futures
import itertools
import json
import os
import pathlib
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter

import episode

HERE = pathlib.Path(__file__).resolve().parent
# Beyond what an episode allows itself before it tells where it hangs.
GRACE_SECONDS = 30
OUTPUT_SHOWN = 12_000
# To choose from the few that have every family: three, as a rule.
SEEDS_LOOKED_AT = 100


class Outcome:
    """How one episode ended."""

    def __init__(self, seed, counts, reason, output):
        self.seed = seed
        self.counts = counts
        self.reason = reason            # '' if all is well
        self.output = output


def parse(arguments=None):
    parser = argparse.ArgumentParser(
        description='Stress the profiler with random mixes of workloads.')
    parser.add_argument('--seconds', type=float, default=60,
                        help='for how long (default: 60), but until every '
                             'family has had its turn')
    parser.add_argument('--episode-seconds', type=float, default=3,
                        metavar='N', help='of one mix (default: 3)')
    parser.add_argument('--seed', default='1',
                        help='what all chance follows from (default: 1)')
    parser.add_argument('--jobs', type=int, default=1,
                        help='episodes at a time (default: 1)')
    parser.add_argument('--only', nargs='*', default=(), metavar='NAME',
                        choices=episode.NAMES, help='families of workloads')
    parser.add_argument('--episode', metavar='SEED',
                        help='repeat the one episode of this seed')
    parser.add_argument('--unprofiled', action='store_true',
                        help='the workloads alone, to see what is theirs')
    parser.add_argument('--wrap', default='', metavar='COMMAND',
                        help='run each episode by this command, such as '
                             '"nice -n 5"')
    return parser.parse_args(arguments)


def command(options, seed, result):
    plan = episode.Plan(seed, options.only)
    arguments = [sys.executable, '-B', *plan.options(),
                 str(HERE / 'episode.py'), '--seed', seed,
                 '--seconds', f'{options.episode_seconds:g}']
    if options.only:
        arguments += ['--only', *options.only]
    if options.unprofiled:
        arguments.append('--unprofiled')
    return arguments + ['--result', result]


def run_episode(options, seed):
    with tempfile.TemporaryDirectory(prefix='stress') as directory:
        result = os.path.join(directory, 'result.json')
        process = subprocess.Popen(
            shlex.split(options.wrap) + command(options, seed, result),
            cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env={key: value for key, value in os.environ.items()
                 if not key.startswith('PYTHON')},
            start_new_session=True)
        # Its time begins when it has had its turn.
        output = process.stdout.readline()
        more, hangs = finish(process, 10 * options.episode_seconds
                             + episode.SETTLE_SECONDS
                             + episode.JUDGING_SECONDS + GRACE_SECONDS)
        output = (output + more).decode(errors='backslashreplace')
        reason = judge(options, seed, process.returncode, hangs, output,
                       directory)
        try:
            with open(result) as file:
                found = json.load(file)
        except (OSError, ValueError) as exc:
            found = {'counts': {}, 'faults': 0}
            reason = reason or f'no result: {exc}'
        if found['faults']:
            reason = f'{found["faults"]} faults'
        return Outcome(seed, Counter(found['counts']), reason, output)


def finish(process, seconds):
    """Return the rest of the output, and whether it had to be killed."""
    for number in None, signal.SIGABRT, signal.SIGKILL:
        if number is not None:
            os.killpg(process.pid, number)
        try:
            output, _ = process.communicate(timeout=seconds)
            return output, number is not None
        except subprocess.TimeoutExpired:
            seconds = GRACE_SECONDS
    raise AssertionError('SIGKILL killed nobody')


def judge(options, seed, status, hangs, output, directory):
    """Return why the episode failed, or an empty text."""
    plan = episode.Plan(seed, options.only)
    if hangs or 'Timeout (' in output:
        return 'it hung'
    if status != plan.status:
        return f'status {status} instead of {plan.status}'
    if 'fault: ' in output or 'Fatal Python error' in output:
        return 'a fault'
    if plan.whole:
        return judge_file(plan, os.path.join(directory, 'whole.pb.gz'))
    return ''


def judge_file(plan, path):
    """The same of what -X sampleprof has written."""
    from profile_sampling import Profile
    from test.test_profile_sampling.support import validator
    try:
        with open(path, 'rb') as file:
            validator.check_pprof(file.read())
        profile = Profile.load(path)
        validator.check_profile(profile)
    except (OSError, ValueError, AssertionError) as exc:
        return f'its file: {type(exc).__name__}: {exc}'
    graph = episode.call_graph(plan.names)
    for sample in profile.samples:
        for fault in graph.faults(sample.stack):
            return f'its file has an impossible stack: {fault}'
    return ''


def show(options, outcome):
    print(f'\nFAILED: episode {outcome.seed}: {outcome.reason}')
    print(outcome.output[-OUTPUT_SHOWN:])
    repeat = [sys.executable, str(HERE / 'run.py'), '--episode',
              outcome.seed, '--episode-seconds',
              f'{options.episode_seconds:g}']
    if options.only:
        repeat += ['--only', *options.only]
    print(f'again: {shlex.join(repeat)}\n', flush=True)


class Interrupt:
    """The first SIGINT asks for an end, the second is as usual."""

    def __init__(self):
        self.came = False
        signal.signal(signal.SIGINT, self.handle)

    def handle(self, signum, frame):
        self.came = True
        signal.signal(signal.SIGINT, signal.default_int_handler)


def families(options, seed):
    return set(episode.Plan(seed, options.only).names)


def covering_seeds(options):
    """A few seeds whose episodes have every family between them."""
    found = {seed: families(options, seed) for seed in
             [f'{options.seed}-{n}' for n in range(SEEDS_LOOKED_AT)]}
    missing = set().union(*found.values())
    while missing:
        seed = max(found, key=lambda seed: len(found[seed] & missing))
        missing -= found[seed]
        yield seed


def seeds(options, interrupt):
    """Seeds of episodes, until the time is over."""
    if options.episode is not None:
        yield options.episode
        return
    end = time.monotonic() + options.seconds
    first = list(covering_seeds(options))
    others = (seed for n in itertools.count()
              if (seed := f'{options.seed}-{n}') not in first)
    for seed in itertools.chain(first, others):
        is_late = time.monotonic() >= end and seed not in first
        if is_late or interrupt.came:
            return
        yield seed


def outcomes(options, interrupt):
    """Outcomes of all episodes, some at a time."""
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        under_way = set()
        for seed in seeds(options, interrupt):
            under_way.add(pool.submit(run_episode, options, seed))
            while len(under_way) >= options.jobs:
                done, under_way = concurrent.futures.wait(
                    under_way,
                    return_when=concurrent.futures.FIRST_COMPLETED)
                yield from [future.result() for future in done]
        for future in under_way:
            yield future.result()


def main():
    options = parse()
    totals = Counter()
    turns = Counter()
    number = failures = 0
    began = time.monotonic()
    interrupt = Interrupt()
    for outcome in outcomes(options, interrupt):
        number += 1
        totals.update(outcome.counts)
        turns.update(families(options, outcome.seed))
        if outcome.reason:
            failures += 1
            show(options, outcome)
        elif options.episode is not None:
            print(outcome.output)
    print(f'seed {options.episode or options.seed}, '
          f'{time.monotonic() - began:.0f} s')
    print(f'{number:,} episodes, {failures:,} failures')
    print('families: ' + ', '.join([f'{name} {turns[name]:,}'
                                    for name in sorted(turns)]))
    print(', '.join([f'{totals[name]:,} {name.replace("_", " ")}'
                     for name in sorted(totals)]))
    if failures:
        return 1
    return 130 if interrupt.came else 0


if __name__ == '__main__':
    sys.exit(main())
