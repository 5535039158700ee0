"""Runs CPython's test suite on three interpreters and compares the results.

    ./python Tools/regrtest/run.py [--again] [--jobs N] [TEST...]

stock    the same CPython without our patches
off      this interpreter, not profiling
sampled  this interpreter, with every process of the tests being sampled

Each test file runs in a process of its own.  What is finished is kept in
build/regrtest and not run again while the interpreter stays as it is, so the
command can be interrupted and given again.  Where results differ, the file is
run up to two more times, alone.  Status 1 if they still do and the list of
exceptions has no reason for it, or if a file has crashed or hung once as it
never does on stock.
"""

import argparse
import concurrent.futures
import os
import pathlib
import signal
import sys
import time

import compare
import report
import runs
import testfile

MAX_ATTEMPTS = 3
EXCEPTIONS = runs.ROOT / 'Tools' / 'regrtest' / 'under_sampling.txt'


def parse(args):
    parser = argparse.ArgumentParser(
        description="Run CPython's test suite on stock, off and sampled, and "
                    'compare.')
    parser.add_argument('tests', nargs='*', metavar='TEST',
                        help='test files (default: all)')
    parser.add_argument('--again', action='store_true',
                        help='forget earlier results')
    parser.add_argument('--compare-only', action='store_true',
                        help='run nothing, tell what is known')
    parser.add_argument('--jobs', type=int, default=os.cpu_count(),
                        metavar='N', help='how many test files at a time')
    parser.add_argument('--wrapper', default='', metavar='COMMAND',
                        help='what each test file is to be started by, '
                             'such as "nice"')
    parser.add_argument('--python', type=pathlib.Path, metavar='PATH',
                        default=pathlib.Path(sys.executable),
                        help='the interpreter to test (default: this one)')
    parser.add_argument('--stock', type=pathlib.Path, metavar='PATH',
                        default=runs.ROOT / 'build' / 'stock' / 'python',
                        help='the interpreter to compare with')
    parser.add_argument('--out', type=pathlib.Path, metavar='DIR',
                        default=runs.ROOT / 'build' / 'regrtest',
                        help='where results are kept '
                             '(default: build/regrtest)')
    return parser.parse_args(args)


class Driver:
    def __init__(self, options):
        self.options = options
        self.runs = runs.three_runs(options.python.resolve(),
                                    options.stock.resolve(),
                                    options.out.resolve())
        self.tests = options.tests or self.runs['stock'].test_names()
        self.exceptions = compare.read_exceptions(EXCEPTIONS)
        self.running = testfile.Running()

    def run_all(self, jobs, tasks):
        """Run (run, test) pairs, some at a time."""
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            futures = {pool.submit(self.attempt, *task): task
                       for task in tasks}
            try:
                done = concurrent.futures.as_completed(futures)
                for count, future in enumerate(done, 1):
                    future.result()
                    run, test = futures[future]
                    last = run.attempts(test)[-1]
                    print(f'{time.strftime("%H:%M:%S")} '
                          f'[{count}/{len(futures)}] {run.name} {test}: '
                          f'{report.brief(last)}', flush=True)
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                self.running.stop()
                raise

    def attempt(self, run, test):
        run.attempt(test, self.options.wrapper, self.running)

    def first_attempts(self):
        # All runs of a file one after the other: what is known early can
        # be compared early.
        tasks = [(run, test) for test in self.tests
                 for run in self.runs.values()]
        if self.options.again:
            for run, test in tasks:
                run.forget(test)
        self.run_all(self.options.jobs,
                     [(run, test) for run, test in tasks
                      if not run.attempts(test)])

    def differences(self, test, name):
        return compare.differences(
            test, self.runs['stock'].attempts(test),
            self.runs[name].attempts(test), self.exceptions)

    def to_repeat(self):
        """The pairs that another attempt may tell more about."""
        tasks = {}
        for test in self.tests:
            for name in ('off', 'sampled'):
                kinds = {row.kind for row in self.differences(test, name)}
                if 'differs' in kinds:
                    for run in self.runs['stock'], self.runs[name]:
                        if len(run.attempts(test)) < MAX_ATTEMPTS:
                            tasks[run, test] = True
        return list(tasks)

    def repeat(self):
        while tasks := self.to_repeat():
            print(f'{len(tasks)} once more, each alone')
            self.run_all(1, tasks)

    def tell(self):
        known = [test for test in self.tests
                 if all(run.attempts(test) for run in self.runs.values())]
        rows = {name: [row for test in known
                       for row in self.differences(test, name)]
                for name in ('off', 'sampled')}
        text, good = report.make(self.runs, known, rows, self.exceptions)
        print(text)
        path = self.options.out / 'summary.txt'
        path.write_text(text + '\n')
        return good and len(known) == len(self.tests)


def main():
    options = parse(sys.argv[1:])
    if not options.stock.exists():
        print(f'no stock interpreter at {options.stock}: run "make stock", '
              'or give its path with --stock', file=sys.stderr)
        return 2
    # Shells ignore it for what runs in the background, and the tests would
    # inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    driver = Driver(options)
    if not options.compare_only:
        try:
            driver.first_attempts()
            driver.repeat()
        except KeyboardInterrupt:
            print('interrupted; the same command goes on from here',
                  file=sys.stderr)
            return 130
    return 0 if driver.tell() else 1


if __name__ == '__main__':
    sys.exit(main())
