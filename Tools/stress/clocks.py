"""How much time there must be in what the profiler gives, and may be."""

from moments import wall_clock_offset_ns

# What a thread's own readings of the clock may be away from the profiler's:
# nearly nothing, for what is held against each other are moments between which
# a reading of the profiler's must lie, however busy the machine is.
TOLERANCE_NS = 100_000
# Clocks of CPU time are not read each time that a thread gives the GIL up, but
# every 0.1 ms; what was used since then may come with the next session.  0.3 ms
# have been seen on a busy machine.
CPU_TOLERANCE_NS = 5_000_000


class Clocks:
    """Holds profiles and subscriptions against what threads know."""

    def __init__(self, run, history):
        self._run = run
        self._history = history
        self._spans = run.ledger.spans()
        # In other interpreters for a while, with thread states there.
        self._away = {key for key, found in self._spans.items()
                      if any(span.travels for span in found)}
        self._offset_ns = wall_clock_offset_ns()

    def judge_session(self, profile, ending):
        if self._run.profiled_inside:
            # One that a subinterpreter began, nobody knows when, counts the
            # threads of other GILs from when they had theirs last.
            return
        beginning = self._history.beginning(
            profile.start_time_ns - self._offset_ns)
        if beginning is None:
            self._run.fault('a profile begins where nobody began a session')
            return
        sums = sums_by_thread(profile)
        self._judge_most(profile.duration_ns, sums,
                         beginning.before_ns, ending.after_ns)
        inner = [(beginning.after_ns, ending.before_ns)]
        self._at_least('duration', profile.duration_ns,
                       ending.before_ns - beginning.after_ns)
        if self._run.deferred:
            # A block that has a session of its own was entered with it.
            inner = list(self._history.inside(beginning, ending))
        self._judge_least(sums, inner)

    def _judge_most(self, duration_ns, sums, begin_ns, end_ns):
        self._at_most('duration', duration_ns, end_ns - begin_ns)
        for key in sums.keys() - self._away:
            if key not in self._spans and self._run.interpreters_at_once:
                continue                # started where the ledger is not
            wall_ns, cpu_ns = sums[key]
            self._at_most(f'wall time of thread {key}', wall_ns,
                          upper(self._spans.get(key), begin_ns, end_ns))
            self._at_most(f'CPU time of thread {key}', cpu_ns,
                          wall_ns + CPU_TOLERANCE_NS)

    def _judge_least(self, sums, inner):
        lacks_wall_ns = {}
        lacks_cpu_ns = {}
        for key in self._spans.keys() - self._away:
            wall_ns, cpu_ns = sums.get(key, (0, 0))
            found = self._spans[key]
            lacks_wall_ns[key] = lack(wall_ns, lower(found, inner),
                                      TOLERANCE_NS)
            lacks_cpu_ns[key] = lack(cpu_ns, lower_cpu(found, inner),
                                     CPU_TOLERANCE_NS)
        self._judge_lacks('wall', lacks_wall_ns)
        self._judge_lacks('CPU', lacks_cpu_ns)

    def _judge_lacks(self, what, lacks_ns):
        """Nothing is missing, of all threads."""
        key = max(lacks_ns, key=lacks_ns.get)
        self._at_most(f'{what} time missing, most of it of thread {key}',
                      sum(lacks_ns.values()), 0)

    def judge_subscriber(self, subscriber):
        begin_ns = subscriber.opening.before_ns
        end_ns = subscriber.closing.after_ns
        for key in subscriber.wall_ns.keys() - self._away:
            self._at_most(f"a subscriber's time of thread {key}",
                          subscriber.wall_ns[key],
                          upper(self._spans.get(key), begin_ns, end_ns))
        if (subscriber.is_partial or subscriber.fails_at is not None
                or self._run.profiled_inside):
            return
        inner = [(subscriber.opening.after_ns, subscriber.closing.before_ns)]
        for key in self._spans.keys() - self._away:
            self._at_least(f"a subscriber's time of thread {key}",
                           subscriber.wall_ns.get(key, 0),
                           lower(self._spans[key], inner))

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


def lack(found_ns, least_ns, tolerance_ns):
    """What is missing; a trifle of each of many threads is not."""
    missing_ns = least_ns - found_ns
    return missing_ns if missing_ns > tolerance_ns else 0


def upper(spans, begin_ns, end_ns):
    """How long threads of one number may have lived in that time."""
    if spans is None:
        return end_ns - begin_ns
    return sum([span.outer(begin_ns, end_ns) for span in spans])


def lower(spans, inner):
    """How long they surely lived in those times."""
    return sum([span.inner(*times) for span in spans for times in inner])


def lower_cpu(spans, inner):
    """The CPU time of those that began and ended in those times."""
    return sum([span.end_cpu_ns - span.begin_cpu_ns
                for span in spans if span.end_ns is not None
                and any(begin_ns <= span.begin_ns and span.end_ns <= end_ns
                        for begin_ns, end_ns in inner)])
