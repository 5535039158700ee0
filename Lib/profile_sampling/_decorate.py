"""profile() as a decorator.

This file owns how a session goes with the kinds of functions.  It is apart
because inspect and functools are dear to import.
"""

import _thread
import functools
import inspect


def decorate(session, function):
    """Return *function* with a session around each call."""
    if not callable(function) or isinstance(function, type):
        raise TypeError('profile() decorates functions, not '
                        f'{_kind(function)}')
    if inspect.isasyncgenfunction(function):
        raise TypeError('profile() cannot decorate an async generator '
                        'function; use it as a context manager in it')
    # Held by the call that has the session.
    owner = _thread.allocate_lock()

    if inspect.iscoroutinefunction(function):
        @functools.wraps(function)
        async def wrapper(*args, **kwargs):
            if not owner.acquire(blocking=False):
                return await function(*args, **kwargs)
            with _Owned(session, owner, wrapper):
                return await function(*args, **kwargs)
    elif inspect.isgeneratorfunction(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            if not owner.acquire(blocking=False):
                return (yield from function(*args, **kwargs))
            with _Owned(session, owner, wrapper):
                return (yield from function(*args, **kwargs))
    else:
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            if not owner.acquire(blocking=False):
                return function(*args, **kwargs)
            with _Owned(session, owner, wrapper):
                return function(*args, **kwargs)

    wrapper.profile = None
    return wrapper


class _Owned:
    """The session of one call, and the lock that it holds."""

    def __init__(self, session, owner, wrapper):
        self._session = session
        self._owner = owner
        self._wrapper = wrapper

    def __enter__(self):
        try:
            self._session.__enter__()
        except BaseException:
            self._owner.release()
            raise

    def __exit__(self, *exc_info):
        try:
            self._session.__exit__(*exc_info)
            self._wrapper.profile = self._session.profile
        finally:
            self._owner.release()


def _kind(thing):
    if isinstance(thing, type):
        return f'the class {thing.__name__}'
    return f'a {type(thing).__name__}'
