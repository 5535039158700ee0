"""What must be true of all that the profiler gives.

What must be true of times is in clocks.py.
"""

import os
import tempfile
import time
from collections import Counter

from clocks import Clocks
from moments import History
from profile_sampling import Profile, _formats
from test.test_profile_sampling.support import builders, validator

# Signals that were under way when counters began anew or were read.
SIGNALS_UNDER_WAY = 4
FRAMES_SHOWN = 12
# Of different stacks.
WRONG_LEAVES = 0.005
# Beyond so many profiles in an episode only sums are looked at.
FILES_WRITTEN = 3
VALIDATED = 12
FRAMES_VALIDATED = 200_000
VALIDATING_SECONDS = 10


class Judge:
    """Collects profiles while the program runs, and judges them after."""

    def __init__(self, run, graph):
        self._run = run
        self._graph = graph
        self._sessions = []
        self._history = History()
        self._subscribers = []
        self._judged_stacks = set()
        self._wrong_leaves = []

    def began(self, moments):
        """A session has begun, or begun anew."""
        self._history.began(moments)

    def began_before(self):
        """A session has begun before the program has."""
        self._history.began_before()

    def was_inside(self, entering, leaving):
        """A deferred session sampled, as something was entered and left."""
        self._history.was_inside(entering, leaving)

    def session(self, profile, ending, is_complete):
        self._sessions.append((profile, ending, is_complete))

    def subscriber(self, subscriber):
        self._subscribers.append(subscriber)

    def look_at(self, stack):
        self._run.count('stacks')
        if stack in self._judged_stacks:
            return
        self._judged_stacks.add(stack)
        if leaf := self._graph.wrong_leaf(stack):
            self._wrong_leaves.append(leaf)
        for fault in self._graph.faults(stack):
            names = [frame.function.name for frame in reversed(stack)]
            self._run.fault(f'impossible stack: {fault}; '
                            + ' > '.join(names[-FRAMES_SHOWN:]))

    def judge(self):
        clocks = Clocks(self._run, self._history)
        last = time.monotonic() + VALIDATING_SECONDS
        for number, (profile, ending, is_complete) in enumerate(
                self._sessions):
            self._run.count('samples', profile.total_count)
            self._judge_stacks(profile)
            clocks.judge_session(profile, ending)
            if is_complete:
                self._judge_counters(profile)
            if (number < VALIDATED and time.monotonic() < last
                    and sum([len(sample.stack) for sample in profile.samples])
                    < FRAMES_VALIDATED):
                validate(self._run, profile, number < FILES_WRITTEN)
        for subscriber in self._subscribers:
            clocks.judge_subscriber(subscriber)
        wrong = len(self._wrong_leaves)
        self._run.count('wrong_leaves', wrong)
        if wrong > 5 + WRONG_LEAVES * len(self._judged_stacks):
            self._run.fault('too many wrong leaves: '
                            f'{Counter(self._wrong_leaves)}')

    def _judge_stacks(self, profile):
        for sample in profile.samples:
            self.look_at(sample.stack)

    def _judge_counters(self, profile):
        stats = profile.stats
        outcomes = sum([stats[name] for name in (
            'captures', 'captures_merged', 'captures_in_hook',
            'captures_skipped', 'captures_no_space')])
        # A thread that is waiting owes the capture of an overdue signal.
        slack = (SIGNALS_UNDER_WAY * (1 + self._run.interpreters_at_once)
                 + len({sample.thread for sample in profile.samples}))
        asked = stats['signals_sent']
        # A run that ends before the signal is sent owes a capture, too.
        if outcomes > asked + stats['signals_overdue'] + slack:
            self._run.fault(f'more captures than ticks: {stats}')
        more = stats['signals_late'] + stats['signals_unanswered']
        if asked > outcomes + more + slack:
            self._run.fault(f'ticks without an outcome: {stats}')
        # The total leaves out what sample() has counted; the counter does
        # not.
        records = sum([sample.count for sample in profile.samples])
        if not self._run.interpreters_at_once and (
                records != stats['samples']):
            self._run.fault(f'{records} records of '
                            f'{stats["samples"]} samples')
        if stats['lost_table_full'] or stats['signals_stray']:
            self._run.count('lost', stats['lost_table_full'])
            self._run.count('stray', stats['signals_stray'])


def validate(run, profile, with_file):
    """Hold a profile, and a file of it, against the format's rules."""
    try:
        validator.check_profile(profile)
        validator.check_pprof(_formats.encode(profile._tables, 'pprof'))
        if with_file:
            with tempfile.TemporaryDirectory() as directory:
                path = os.path.join(directory, 'p.pb.gz')
                profile.save(path)
                loaded = Profile.load(path)
            if builders.facts_of(loaded) != builders.facts_of(profile):
                run.fault('a profile is not what was saved of it')
    except (AssertionError, ValueError) as exc:
        run.fault(f'{type(exc).__name__} from the validator: {exc}')
    run.count('validated')
