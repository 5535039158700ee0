"""One episode: some workloads and some profiling, for some seconds.

    ./python Tools/stress/episode.py --seed 7 --seconds 3

Everything that chance decides follows from the seed; threads still take turns
as the machine lets them.  Faults go to standard error, as they are found, and
counts to the file named by --result.
"""

import argparse
# It wants to be called at forks: so not to be imported during one.
import concurrent.futures.thread  # noqa: F401
import contextlib
import faulthandler
import importlib.util
import json
import os
import random
import sys
import threading
import time
import warnings

import checks
from callgraph import CallGraph
from moments import Moments
from program import Run

NAMES = ('calls', 'generators', 'coroutines', 'threads', 'churn',
         'collector', 'processes', 'interpreters', 'signals', 'labelling',
         'greenlets')
# What CPython itself does not survive beside interpreters with GILs of their
# own, profiled or not: forks, and tracemalloc.
NOT_WITH_INTERPRETERS = {'processes', 'signals'}
SETTLE_SECONDS = 120
# To look at all that was sampled, which hangs nowhere but may be much.
JUDGING_SECONDS = 600


class Plan:
    """What chance decides about an episode as a whole."""

    def __init__(self, seed, only=()):
        rng = random.Random(f'{seed} plan')
        available = [name for name in only or NAMES if is_available(name)]
        names = rng.sample(available, min(len(available),
                                          rng.randrange(3, 7)))
        if 'interpreters' in names:
            if rng.random() < 0.5:
                names.remove('interpreters')
            else:
                names = [name for name in names
                         if name not in NOT_WITH_INTERPRETERS]
        self.names = names
        self.threads = {name: 1 if name in (
            'signals', 'interpreters', 'churn') else rng.randrange(1, 3)
            for name in names}
        self.controllers = rng.randrange(1, 4)
        self.deferred = rng.random() < 0.15
        # The whole process is one session, as -X sampleprof asks for.
        self.whole = not self.deferred and rng.random() < 0.15
        self.exit = rng.choice(('return', 'return', 'sys.exit', 'exception',
                                'daemons'))
        self.switch_interval = rng.choice((0.005, 0.005, 0.00005))
        # Whether signal handlers and finalizers profile as well.
        self.elsewhere = rng.random() < 0.5
        # Whether subinterpreters do.
        self.profiled_inside = ('interpreters' in names
                                and rng.random() < 0.3)
        # Whether a subscriber is left open.
        self.leaves_open = rng.random() < 0.3
        # A deferred session samples no allocations.
        self.alloc_bytes = (None if self.deferred else
                            rng.choice((None, None, 1024, 64 * 1024)))

    @property
    def status(self):
        return {'sys.exit': 7, 'exception': 1}.get(self.exit, 0)

    def options(self):
        """Options for the interpreter."""
        if self.whole:
            # Children of forks have sessions of their own here.
            return ['-X', 'sampleprof=rate_hz=10000,quiet=1,children=0,'
                    'out=whole.pb.gz']
        return []


def is_available(name):
    return name != 'greenlets' or importlib.util.find_spec('greenlet')


def load_families(names):
    families = [importlib.import_module(f'families.{name}')
                for name in names]
    return families


def call_graph(names):
    families = load_families(names)
    if 'interpreters' in names:
        families.append(importlib.import_module('families.inside'))
    return CallGraph(families)


class Expected(Exception):
    """How some episodes are to end."""


def leave_subscriber():
    """One that is called until the interpreter ends."""
    import profile_sampling
    profile_sampling.subscribe(lambda batch: None, rate_hz=10_000,
                               batch_samples=1)


def leave_daemons(run):
    """Threads that still run when the interpreter ends."""
    def spin():
        while True:
            sum(range(100))

    def sleep():
        time.sleep(3600)
    for target in spin, sleep, spin:
        run.ledger.thread(target, daemon=True).start()


def episode(options):
    plan = Plan(options.seed, options.only)
    if options.unprofiled:
        plan.profiled_inside = False
    run = Run(options.seed, options.seconds, plan)
    graph = call_graph(plan.names)
    judge = checks.Judge(run, graph)
    if plan.whole and not options.unprofiled:
        judge.began_before()
    sys.setswitchinterval(plan.switch_interval)
    threads = []
    on_main_thread = None
    for family in load_families(plan.names):
        if getattr(family, 'ON_MAIN_THREAD', False):
            on_main_thread = family.work
            continue
        threads += [run.ledger.thread(family.work, run)
                    for _ in range(plan.threads[family.__name__[9:]])]
    stack = contextlib.ExitStack()
    if not options.unprofiled:
        threads += controllers(run, judge, plan, stack)
    for thread in threads:
        thread.start()
    if on_main_thread is not None:
        on_main_thread(run)
    for thread in threads:
        thread.join()
    stack.close()
    if not options.unprofiled:
        end_session(judge)
        allow(JUDGING_SECONDS)
        judge.judge()
    if plan.leaves_open and not options.unprofiled:
        leave_subscriber()
    if plan.exit == 'daemons':
        leave_daemons(run)
    with open(options.result, 'w') as file:
        json.dump(run.result(), file)
    return plan.exit


def controllers(run, judge, plan, stack):
    """Threads that profile; *stack* is to be closed after they have ended."""
    import control
    import elsewhere
    threads = [run.ledger.thread(
        control.Controller(run, judge, number).work)
        for number in range(plan.controllers)]
    if plan.elsewhere:
        places = elsewhere.Elsewhere(
            run, control.Controller(run, judge, 'elsewhere').act)
        stack.callback(places.close)
        threads.append(run.ledger.thread(places.work))
    return threads


def end_session(judge):
    import profile_sampling
    if profile_sampling.running():
        ending = Moments()
        try:
            with ending:
                profile = profile_sampling.stop()
        except RuntimeError:
            # It is the command line's.
            with ending:
                profile = profile_sampling.snapshot()
            judge.session(profile, ending, is_complete=False)
        else:
            judge.session(profile, ending, is_complete=True)


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument('--seed', required=True)
    parser.add_argument('--seconds', type=float, default=3)
    parser.add_argument('--only', nargs='*', default=())
    parser.add_argument('--unprofiled', action='store_true')
    parser.add_argument('--result', default=os.devnull)
    return parser.parse_args()


def allow(seconds):
    """End the program, with a traceback, if it takes longer."""
    faulthandler.dump_traceback_later(seconds, exit=True)


def on_unraisable(args):
    if args.exc_type.__name__ != 'ExpectedError':
        sys.__unraisablehook__(args)
        print('fault: an exception that nobody could catch',
              file=sys.stderr, flush=True)
        os._exit(61)


def on_thread_failure(args):
    threading.__excepthook__(args)
    print('fault: a thread ended by an exception', file=sys.stderr,
          flush=True)
    os._exit(60)


def main():
    options = parse()
    # The parent's time begins here: it may have waited for its turn.
    print('started', flush=True)
    faulthandler.enable()
    allow(10 * options.seconds + SETTLE_SECONDS)
    warnings.simplefilter('ignore', DeprecationWarning)     # of os.fork()
    warnings.simplefilter('ignore', RuntimeWarning)
    threading.excepthook = on_thread_failure
    sys.unraisablehook = on_unraisable
    how = episode(options)
    faulthandler.cancel_dump_traceback_later()
    if how == 'sys.exit':
        sys.exit(7)
    if how == 'exception':
        raise Expected


if __name__ == '__main__':
    main()
