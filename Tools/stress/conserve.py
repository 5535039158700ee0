"""The hunt for time that is missing, or too much, to the nanosecond.

    ./python Tools/stress/conserve.py --seconds 150 --seed 7 --beside 2

Runs processes of six short programs each, every second one of them under
-X sampleprof, whose files are read as well; some 20 programs a second on two
CPUs.  A fault is shown with the seed of its process; --process repeats it, as
far as chance is not the machine's.  The status is 0 if there was none.
"""

import argparse
import concurrent.futures
import itertools
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from collections import Counter

from profile_sampling import Profile

from short import sums

PROGRAM = pathlib.Path(__file__).resolve().with_name('short.py')
# How far a share may be off beside the sampling, for each process that
# computes all the time and one more.
SLACK_MS = 25
HANGS_SECONDS = 120


def run(seed, slack_ms):
    """Run a process; return counts, and texts on what was wrong."""
    counts = Counter()
    is_whole = seed[-1] in '02468'
    with tempfile.TemporaryDirectory(prefix='conserve') as directory:
        arguments = [seed, 'whole' if is_whole else 'parts', f'{slack_ms}']
        if is_whole:
            arguments = ['-X', f'sampleprof=quiet=1,out={directory}/'
                         '{pid}.pb.gz', PROGRAM, *arguments]
        else:
            arguments = [PROGRAM, *arguments]
        done = subprocess.run(
            [sys.executable, *arguments], stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, timeout=HANGS_SECONDS)
        faults = [done.stderr] if done.stderr or done.returncode else []
        for line in done.stdout.splitlines():
            kinds, found = json.loads(line)
            counts.update(['programs', *kinds])
            faults += [f'{" and ".join(kinds)}: {fault}' for fault in found]
        for entry in os.scandir(directory):
            counts['files'] += 1
            profile = Profile.load(entry.path)
            walls_ns = [wall_ns for wall_ns, _ in
                        sums(profile.samples).values()]
            if profile.duration_ns not in walls_ns:
                faults.append(f'file: {profile.duration_ns:,} is the time of '
                              f'none of its threads: {walls_ns}')
    return seed, counts, faults


def main():
    parser = argparse.ArgumentParser(
        description='Hold short programs against their own clocks.')
    parser.add_argument('--seconds', type=float, default=60)
    parser.add_argument('--seed', default='1')
    parser.add_argument('--jobs', type=int, default=2)
    parser.add_argument('--beside', type=int, default=0, metavar='N',
                        help='processes that compute all the time')
    parser.add_argument('--process', metavar='SEED',
                        help='the programs of this process only')
    options = parser.parse_args()
    total = Counter()
    end = time.monotonic() + options.seconds
    slack_ms = SLACK_MS * (1 + options.beside)
    seeds = ([options.process] if options.process else
             (f'{options.seed}/{number}' for number in itertools.count()))
    beside = [subprocess.Popen([sys.executable, '-c', 'while True: pass'])
              for _ in range(options.beside)]
    try:
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            while time.monotonic() < end and (batch := list(
                    itertools.islice(seeds, 4 * options.jobs))):
                for seed, counts, faults in pool.map(
                        run, batch, itertools.repeat(slack_ms)):
                    total += counts
                    total['faults'] += len(faults)
                    for fault in faults:
                        print(f'{seed}: {fault}', flush=True)
    finally:
        for process in beside:
            process.kill()
            process.wait()
    print(', '.join([f'{count:,} {what}' for what, count in total.items()]))
    return total['faults'] > 0


if __name__ == '__main__':
    sys.exit(main())
