"""What runs in subinterpreters; see interpreters.py."""

OPERATORS = {'builtins.__import__', 'dict.__getitem__', 'float.__add__',
             'float.__lt__', 'int.__bool__', 'int.__eq__', 'int.__lt__',
             'int.__sub__', 'list.__iter__', 'list_iterator.__next__',
             'module.__getattribute__', 'range.__iter__',
             'range_iterator.__next__'}
ENTRIES = {'<module>', 'worker', 'Finalized.__del__'}
INTERRUPTS = {'Finalized.__del__'}
CALLS = {
    '<module>': {'_frozen_importlib.*', '_frozen_importlib_external.*',
                 'run_inside', 'builtins.__build_class__'},
    'builtins.__build_class__': {'Finalized', 'Thrown'},
    'run_inside': {'toggle', 'recurse', 'throw', 'cycles', 'churn',
                   'threading.*', 'time.*', '_thread.*', 'range'},
    'worker': {'range', 'recurse', 'throw', 'churn'},
    'recurse': {'recurse', 'leaf'},
    'leaf': {'builtins.sum', 'range'},
    'throw': {'throw', 'inside.Thrown'},
    'cycles': {'inside.Finalized', 'Finalized.__del__', 'range'},
    'Finalized.__del__': {'leaf'},
    'churn': {'builtins.exec', 'builtins.compile', '<module>', 'range'},
    'builtins.exec': {'<module>'},
    'toggle': {'_frozen_importlib.*', 'importlib.*', 'profile_sampling.*',
               '_profile.*'},
}
GENERATED = '<inside>'

import threading
import time


class Thrown(Exception):
    pass


class Finalized:
    def __del__(self):
        leaf()


def leaf():
    return sum(range(100))


def recurse(n):
    if n:
        return recurse(n - 1)
    return leaf()


def throw(n):
    if n == 0:
        raise Thrown
    try:
        throw(n - 1)
    except Thrown:
        if n < 20:
            raise


def cycles(n):
    for _ in range(n):
        one = Finalized()
        one.itself = one


def churn(n):
    for _ in range(n):
        exec(compile('x = 1 + 1', '<inside>', 'exec'))


def worker():
    for _ in range(20):
        recurse(50)
        throw(30)
        churn(5)


def toggle():
    """Start or stop a session, of all interpreters."""
    import profile_sampling     # not in each interpreter: it takes long
    try:
        if profile_sampling.running():
            profile_sampling.stop()
        else:
            profile_sampling.start(rate_hz=10_000)
    except RuntimeError:
        pass                    # others were quicker


def run_inside(seconds, profiles):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if profiles:
            toggle()
        recurse(100)
        throw(50)
        cycles(20)
        churn(10)
        threads = [threading.Thread(target=worker) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        time.sleep(0.0002)


if __name__ == 'inside':
    run_inside(SECONDS, PROFILES)               # noqa: F821
