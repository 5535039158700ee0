"""Labels in tests: what was sampled by labels, and none left behind."""

import threading
from collections import Counter

from profile_sampling import labels

from .sessions import SessionTest


def sums(profile):
    """{labels and the task's name: wall_ns} of what weighs anything.

    Other tests may have left threads behind, which wait without labels.
    """
    result = Counter()
    for row in profile.samples:
        if (row.state == 'waiting' and not row.labels
                and row.thread.ident != threading.get_ident()):
            continue
        key = tuple(row.labels.items())
        if row.task_name is not None:
            key += ('task', row.task_name),
        result[key] += row.wall_ns
    return {key: ns for key, ns in result.items() if ns}


def labelled(**values):
    return tuple(sorted(values.items()))


class LabelTest(SessionTest):

    def setUp(self):
        super().setUp()
        self.assertEqual(labels(), {})
        self.addCleanup(self.assertEqual, {}, labels())
