"""Work for tests to sample: as functions, and as text for their programs."""

import inspect
import time


def busy(seconds):
    """Hold the GIL, in Python code, until that much CPU time is used."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def spin(seconds):
    """Want the GIL, in Python code, until that much time has passed."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


BUSY = f'import time\n{inspect.getsource(busy)}'
SPIN = f'import time\n{inspect.getsource(spin)}'
