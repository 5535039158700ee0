"""What the counters of a session say was lost."""

# Ticks at which no signal could reach the thread that was running.  It is no
# news below this share of all.
TICKS_NO_SIGNAL = 'ticks_no_signal'
NO_SIGNAL_CAUSES = {'ticks_blocked': 'signals are blocked',
                    'ticks_refused': 'no signal can be sent',
                    'ticks_unprobed': '/proc cannot be read'}
# What it cost, in the threads that were sampled, and in one of its own.
OVERHEAD = 'overhead_capture_ns', 'overhead_drain_ns', 'overhead_hooks_ns'
OVERHEAD_CLOCK = 'overhead_clock_ns'
NO_SIGNAL_SHARE = 0.1

# Counters of something lost that do not count samples, and what they do.
LOST_THREADS = 'lost_threads'
LOST_LABELS = {'lost_labels': 'labels', 'lost_tasks': 'task',
               'lost_holders': 'holder of the GIL'}
# Of a profile in segments, how many files were removed for newer ones since the
# one before, how many could not be written, and which was the last one.
SPOOL_DROPPED, SPOOL_UNWRITTEN = 'spool_dropped', 'spool_unwritten'
SPOOL_ENDED = 'spool_ended'

# What counters were called in older files.
RENAMED = {'ticks_unheard': TICKS_NO_SIGNAL,
           'tasks_unheard': 'tasks_untracked',
           'captures_no_room': 'captures_no_space'}
# Counters that are no sums: how much there is at a moment.
GAUGES = frozenset({'memory_bytes'})


def add_counter(stats, name, value):
    """Add a counter of another profile to *stats*.

    Of a gauge the largest counts: the sum over hours of snapshots, or over
    processes that did not run at the same time, would never have been there.
    """
    known = stats.get(name)
    if known is not None:
        value = max(known, value) if name in GAUGES else known + value
    stats[name] = value


def lost_counts(stats):
    """Return {reason: count} of the nonzero counters of lost samples.

    These are all whose names begin with lost_, but for times and what is
    named above.
    """
    return {key.removeprefix('lost_'): value for key, value in stats.items()
            if key.startswith('lost_') and not key.endswith('_ns')
            and key != LOST_THREADS and key not in LOST_LABELS and value}


# The rate gave way: it was halved, and doubled again.
RATE_LOWERED, RATE_RAISED = 'rate_lowered', 'rate_raised'


def rate_came_to(tables):
    """Return the rate at the end, of what was asked for; None: it is not
    known, of several processes."""
    stats = tables.stats
    if not stats.get(RATE_LOWERED):
        return tables.rate_hz or None
    steps = stats[RATE_LOWERED] - stats.get(RATE_RAISED, 0)
    return (None if len(tables.processes) > 1
            else round(tables.rate_hz / 2 ** min(max(steps, 0), 30)))


def overhead_ns(stats):
    """Return the CPU time that the profiler took itself."""
    return sum([stats.get(name, 0) for name in (*OVERHEAD, OVERHEAD_CLOCK)])


def ticks_per_answer(stats):
    """Return how many ticks were due for each that a thread was asked at.

    It is 1 or more: ticks that come late, and those at which the last one
    was not answered yet, have their time in the next sample.
    """
    asked = stats.get('signals_sent', 0) + stats.get('ticks_noted', 0)
    due = (stats.get('ticks', 0) + stats.get('ticks_late', 0)
           - stats.get('ticks_idle', 0))
    return max(1.0, due / asked) if asked else 1.0


def other_losses(stats):
    """Return, in words, the nonzero losses that are not lost samples."""
    texts = [f'{_counted(stats[key], "sample")} without '
             f'{"its" if stats[key] == 1 else "their"} {what}'
             for key, what in LOST_LABELS.items() if stats.get(key)]
    for key, what in ((SPOOL_DROPPED, 'removed for newer ones (keep=)'),
                      (SPOOL_UNWRITTEN, 'that could not be written')):
        if stats.get(key):
            texts.append(f'{_counted(stats[key], "segment")} {what}')
    if stats.get(LOST_THREADS):
        texts.append(f'{_counted(stats[LOST_THREADS], "thread")} not profiled')
    unanswered = stats.get(TICKS_NO_SIGNAL, 0)
    if unanswered > NO_SIGNAL_SHARE * stats.get('ticks', 0):
        causes = ' and '.join([words for key, words in NO_SIGNAL_CAUSES.items()
                               if stats.get(key)])
        texts.append(f'{_counted(unanswered, "tick")} answered late'
                     + (f', as {causes}' if causes else ''))
    return texts


def _counted(number, one):
    return f'{number:,} {one if number == 1 else one + "s"}'
