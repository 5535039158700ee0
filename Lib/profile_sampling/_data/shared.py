"""How samples share what is known exactly of tasks.

This file owns the arithmetic of Python/sampling/tables/coroutines.c, for
profiles that are made of a subscription: what the tasks of a class ran is
shared by the class's samples, as wall time is, and all loop wait of a thread
by the thread's samples, as they caused it.  It must not know where samples
come from.

A sample is a list of a key (node, thread, labels, state, ...) and values:
count, CPU time, wall time, time of tasks, and delay.
"""

from profile_sampling._data.values import LOOP_WAIT, OFF_CLOCKS, STATES

_THREAD, _LABELS, _STATE = 1, 2, 3
_WALL, _TASK, _DELAY = -3, -2, -1
_CUSTOM = STATES.index('custom')


def share_steps(samples, classes_of_labels, running_ns):
    """Give samples in tasks their part of what tasks ran.

    *classes_of_labels* has the class of tasks for each row of labels, None
    where there is none; *running_ns* what the tasks of each class ran.
    Return the classes that no sample is of.
    """
    steps = {}
    for sample in samples:
        if sample[_STATE] not in OFF_CLOCKS and sample[_STATE] != _CUSTOM:
            its_class = classes_of_labels[sample[_LABELS]]
            if its_class in running_ns and sample[_WALL]:
                steps.setdefault(its_class, []).append(sample)
    for its_class, its_samples in steps.items():
        _share(running_ns[its_class], its_samples, _WALL, _TASK)
    return running_ns.keys() - steps


def share_delays(samples):
    """Give samples their part of what tasks waited for the loop."""
    threads = {}
    for sample in samples:
        threads.setdefault(sample[_THREAD], []).append(sample)
    for its_samples in threads.values():
        loop_wait_ns = sum([sample[_TASK] for sample in its_samples
                            if sample[_STATE] == LOOP_WAIT])
        # If none is charged with it, all are.
        charged = any([sample[_DELAY] for sample in its_samples])
        _share(loop_wait_ns, its_samples, _DELAY if charged else _WALL, _DELAY)


def _share(ns, samples, weight, value):
    """Set a value of samples so that they add up to *ns*."""
    weights = [sample[weight] for sample in samples]
    total = sum(weights)
    seen = given = 0
    for sample, own in zip(samples, weights):
        seen += own
        until = ns
        if seen != total:
            until = max(min(int(ns * (seen / total)), ns), given)
        sample[value] = until - given if own else 0
        given = until if own else given
