"""What must be true of all that the profiler gives.

Owns the verdicts: clocks, counters, stacks, files.  It must not know what the
program did beyond its ledger and call graph.
"""

import os
import tempfile
import time
from collections import Counter

from moments import History, wall_clock_offset_ns
from profile_sampling import Profile, _formats
from test.test_profile_sampling import builders, validator

# What a thread's own readings of the clock may be away from the profiler's:
# nearly nothing, for what is held against each other are moments between which
# a reading of the profiler's must lie, however busy the machine is.
TOLERANCE_NS = 100_000
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
        """A block has been entered and left; a deferred session samples."""
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
        offset_ns = wall_clock_offset_ns()
        spans = self._run.ledger.spans()
        last = time.monotonic() + VALIDATING_SECONDS
        for number, (profile, ending, is_complete) in enumerate(
                self._sessions):
            self._run.count('samples', profile.total_count)
            self._judge_stacks(profile)
            beginning = self._beginning(profile.start_time_ns - offset_ns)
            if beginning is not None:
                self._judge_clocks(profile, beginning, ending, spans)
            if is_complete:
                self._judge_counters(profile)
            if (number < VALIDATED and time.monotonic() < last
                    and sum([len(sample.stack) for sample in profile.samples])
                    < FRAMES_VALIDATED):
                validate(self._run, profile, number < FILES_WRITTEN)
        for subscriber in self._subscribers:
            self._judge_subscriber(subscriber, spans)
        wrong = len(self._wrong_leaves)
        self._run.count('wrong_leaves', wrong)
        if wrong > 5 + WRONG_LEAVES * len(self._judged_stacks):
            self._run.fault('too many wrong leaves: '
                            f'{Counter(self._wrong_leaves)}')

    def _judge_stacks(self, profile):
        for sample in profile.samples:
            self.look_at(sample.stack)

    def _beginning(self, claimed_ns):
        beginning = self._history.beginning(claimed_ns)
        if beginning is None:
            self._run.fault('a profile begins where nobody began a session')
        return beginning

    def _judge_clocks(self, profile, beginning, ending, spans):
        outer = beginning.before_ns, ending.after_ns
        self._at_most('duration', profile.duration_ns, outer[1] - outer[0])
        self._at_least('duration', profile.duration_ns,
                       ending.before_ns - beginning.after_ns)
        sums = sums_by_thread(profile)
        away = {key for key, found in spans.items()
                if any(span.travels for span in found)}
        for key in sums.keys() - away:
            if key not in spans and self._run.interpreters_at_once:
                continue                # started where the ledger is not
            wall_ns, cpu_ns = sums[key]
            self._at_most(f'wall time of thread {key}', wall_ns,
                          upper(spans.get(key), *outer))
            self._at_most(f'CPU time of thread {key}', cpu_ns, wall_ns)
        inner = [(beginning.after_ns, ending.before_ns)]
        if self._run.deferred:
            # A block that has a session of its own was entered with it.
            inner = list(self._history.inside(beginning, ending))
        self._judge_lacks('wall', profile.stats['subscribers_wall_ns'], {
            key: lack(sums.get(key, (0, 0))[0], lower(spans[key], inner))
            for key in spans.keys() - away})
        self._judge_lacks('CPU', profile.stats['subscribers_cpu_ns'], {
            key: lack(sums.get(key, (0, 0))[1], lower_cpu(spans[key], inner))
            for key in spans.keys() - away})

    def _judge_lacks(self, what, excluded_ns, lacks):
        """Nothing is missing but what subscribers took, of all threads."""
        key = max(lacks, key=lacks.get)
        self._at_most(f'{what} time missing, most of it of thread {key}',
                      sum(lacks.values()), excluded_ns)

    def _judge_counters(self, profile):
        stats = profile.stats
        outcomes = sum([stats[name] for name in (
            'captures', 'captures_merged', 'captures_in_hook',
            'captures_skipped', 'captures_no_room')])
        slack = SIGNALS_UNDER_WAY * (1 + self._run.interpreters_at_once)
        if outcomes > stats['signals_sent'] + slack:
            self._run.fault(f'more captures than signals: {stats}')
        more = stats['signals_late'] + stats['signals_unanswered']
        if stats['signals_sent'] > outcomes + more + slack:
            self._run.fault(f'signals without an outcome: {stats}')
        if not self._run.interpreters_at_once and (
                profile.total_count != stats['samples']):
            self._run.fault(f'{profile.total_count} records of '
                            f'{stats["samples"]} samples')
        if stats['lost_table_full'] or stats['signals_stray']:
            self._run.count('lost', stats['lost_table_full'])
            self._run.count('stray', stats['signals_stray'])

    def _judge_subscriber(self, subscriber, spans):
        for key, wall_ns in subscriber.wall_ns.items():
            if any(span.travels for span in spans.get(key, ())):
                continue
            self._at_most(f"a subscriber's time of thread {key}", wall_ns,
                          upper(spans.get(key),
                                subscriber.opening.before_ns,
                                subscriber.closing.after_ns))
        if (subscriber.is_partial or subscriber.fails_at is not None
                or self._run.sync):
            return
        # A session that wants deeper stacks or more names than there were
        # makes all sampling begin anew.
        inner = list(self._history.between_beginnings(
            subscriber.opening.after_ns, subscriber.closing.before_ns))
        for key, found in spans.items():
            if any(span.serves or span.travels for span in found):
                continue
            least = lower(found, inner)
            self._at_least(f"a subscriber's time of thread {key}",
                           subscriber.wall_ns.get(key, 0)
                           + subscriber.lost_wall_ns, least)

    def _at_most(self, what, found_ns, most_ns):
        if found_ns > most_ns + TOLERANCE_NS:
            self._run.fault(f'{what}: {found_ns:,} ns, which is '
                            f'{found_ns - most_ns:,} too much')

    def _at_least(self, what, found_ns, least_ns):
        if found_ns < least_ns - TOLERANCE_NS:
            self._run.fault(f'{what}: {found_ns:,} ns, which is '
                            f'{least_ns - found_ns:,} too little')


def sums_by_thread(profile):
    """Wall and CPU time by (ident, native id)."""
    sums = {}
    for sample in profile.samples:
        key = sample.thread.ident, sample.thread.native_id
        wall_ns, cpu_ns = sums.get(key, (0, 0))
        sums[key] = wall_ns + sample.wall_ns, cpu_ns + sample.cpu_ns
    return sums


def lack(found_ns, least_ns):
    """What is missing; a trifle of each of many threads is not."""
    missing_ns = least_ns - found_ns
    return missing_ns if missing_ns > TOLERANCE_NS else 0


def lower(spans, inner):
    """How long threads of one number surely lived in those times."""
    return sum([span.inner(*times) for span in spans for times in inner])


def lower_cpu(spans, inner):
    """The CPU time of those that began and ended in those times."""
    return sum([span.end_cpu_ns - span.begin_cpu_ns
                for span in spans if span.end_ns is not None
                and any(begin_ns <= span.begin_ns and span.end_ns <= end_ns
                        for begin_ns, end_ns in inner)])


def upper(spans, begin_ns, end_ns):
    """How long threads of one number may have lived in that time."""
    if spans is None:
        return end_ns - begin_ns
    return sum([span.outer(begin_ns, end_ns) for span in spans])


def validate(run, profile, with_file):
    """Hold a profile, and a file of it, against the format's rules."""
    try:
        validator.check_profile(profile)
        validator.check_pprof(_formats.encode(profile, 'pprof'))
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
