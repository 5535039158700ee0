"""What each thread of the program knows of its own time.

Owns the spans that profiles are held against.  It must not use the profiler.
"""

import threading
import time
from collections import defaultdict

FOREVER_NS = 1 << 62


class Span:
    """The life of a thread, from outside and from inside."""

    __slots__ = ('key', 'created_ns', 'begin_ns', 'end_ns', 'joined_ns',
                 'begin_cpu_ns', 'end_cpu_ns', 'travels')

    def __init__(self, travels=False):
        # It visits other interpreters.
        self.travels = travels
        self.key = None
        self.created_ns = time.monotonic_ns()
        self.begin_ns = self.end_ns = None
        self.joined_ns = FOREVER_NS

    def run(self, target, args):
        """Run *target* on the thread that the span is of."""
        self.key = threading.get_ident(), threading.get_native_id()
        self.begin_cpu_ns = time.thread_time_ns()
        self.begin_ns = time.monotonic_ns()
        try:
            target(*args)
        finally:
            self.end_ns = time.monotonic_ns()
            self.end_cpu_ns = time.thread_time_ns()

    def inner(self, begin_ns, end_ns):
        """How much of that time the thread surely lived."""
        last = FOREVER_NS if self.end_ns is None else self.end_ns
        return max(0, min(last, end_ns) - max(self.begin_ns, begin_ns))

    def outer(self, begin_ns, end_ns):
        """How much of that time it may have lived."""
        return max(0, min(self.joined_ns, end_ns)
                   - max(self.created_ns, begin_ns))


class Ledger:
    """All threads that the program has started, and the main one."""

    def __init__(self):
        # list.append() needs no lock, which a fork could find taken.
        self._spans = []
        main = Span()
        main.key = threading.get_ident(), threading.get_native_id()
        main.created_ns = 0
        main.begin_ns = time.monotonic_ns()
        main.begin_cpu_ns = time.thread_time_ns()
        self._spans.append(main)
        self.main_key = main.key

    def __len__(self):
        return len(self._spans)

    def thread(self, target, *args, **options):
        """A threading.Thread that keeps its span; start and join it."""
        return LedgerThread(self, target, args, **options)

    def spans(self):
        """Spans by (ident, native id); numbers of threads come back."""
        result = defaultdict(list)
        for span in self._spans.copy():
            if span.key is not None and span.begin_ns is not None:
                result[span.key].append(span)
        return result

    def add(self, span):
        self._spans.append(span)


class LedgerThread(threading.Thread):

    def __init__(self, ledger, target, args, travels=False, **options):
        super().__init__(**options)
        self._travels = travels
        self._ledger = ledger
        self._work = target, args

    def start(self):
        self.span = Span(self._travels)
        self._ledger.add(self.span)
        super().start()

    def run(self):
        self.span.run(*self._work)

    def join(self, timeout=None):
        super().join(timeout)
        if not self.is_alive():
            self.span.joined_ns = min(self.span.joined_ns,
                                      time.monotonic_ns())
