"""profile(), region() and label() as decorators.

It is apart because inspect and functools are dear to import.
"""

import _thread
import functools
import inspect

from profile_sampling import _core


def profiled(session, function):
    """Return *function* with a block of *session* around each call."""
    # Held by the call that is being profiled.
    owner = _thread.allocate_lock()
    wrapper = within('profile', lambda: _Call(session, owner, wrapper),
                       function)
    wrapper.profile = None
    return wrapper


def inside(region, function):
    """Return *function* with each call in *region*."""
    return within('region', lambda: region, function)


def within(decorator, block, function):
    """Return *function* with what block() returns entered for each call."""
    _check(decorator, function)
    if inspect.isasyncgenfunction(function):
        raise TypeError(f'{decorator}() cannot decorate an async generator '
                        'function; use it as a context manager in it')

    if inspect.iscoroutinefunction(function):
        @functools.wraps(function)
        async def wrapper(*args, **kwargs):
            with block():
                return await function(*args, **kwargs)
    elif inspect.isgeneratorfunction(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            with block():
                return (yield from function(*args, **kwargs))
    else:
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            with block():
                return function(*args, **kwargs)
    return wrapper


class _Call:
    """One call of a profiled function, in progress."""

    def __init__(self, session, owner, wrapper):
        self._session = session
        self._owner = owner
        self._wrapper = wrapper
        self._block = None

    def __enter__(self):
        if not self._owner.acquire(blocking=False):
            return
        try:
            self._block = self._session._begin()
        except BaseException:
            self._owner.release()
            raise

    def __exit__(self, *exc_info):
        if self._block is None:
            return
        try:
            self._session._end(self._block)
            self._wrapper.profile = self._session.profile
        finally:
            self._owner.release()


def labelled(changes, function):
    """Return *function* with labels on while a call of it runs.

    *changes* is what enter_labels() of the core takes.
    """
    _check('label', function)
    core = _core.load()
    enter, leave = core.enter_labels, core.exit_labels

    if inspect.iscoroutinefunction(function):
        @functools.wraps(function)
        async def wrapper(*args, **kwargs):
            token = enter(changes)
            try:
                return await function(*args, **kwargs)
            finally:
                leave(token)
    elif inspect.isasyncgenfunction(function):
        wrapper = _labelled_async_generator(enter, leave, changes, function)
    elif inspect.isgeneratorfunction(function):
        wrapper = _labelled_generator(enter, leave, changes, function)
    else:
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            token = enter(changes)
            try:
                return function(*args, **kwargs)
            finally:
                leave(token)
    return wrapper


def _labelled_generator(enter, leave, changes, function):
    # What is yielded is popped, and exceptions are forgotten, so that no
    # more is kept alive than without labels.
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        generator = function(*args, **kwargs)
        resume, given = generator.send, None
        while True:
            token = enter(changes)
            try:
                values = [resume(given)]
            except StopIteration as stop:
                return stop.value
            finally:
                given = None
                leave(token)
            try:
                given = yield values.pop()
                resume = generator.send
            # GeneratorExit too: the generator may have an answer to it.
            except BaseException as exc:
                resume, given = generator.throw, exc
    return wrapper


def _labelled_async_generator(enter, leave, changes, function):
    # As above.  While it awaits, its task belongs to the labels.
    @functools.wraps(function)
    async def wrapper(*args, **kwargs):
        generator = function(*args, **kwargs)
        resume, given = generator.asend, None
        while True:
            token = enter(changes)
            try:
                values = [await resume(given)]
            except StopAsyncIteration:
                return
            finally:
                given = None
                leave(token)
            try:
                given = yield values.pop()
                resume = generator.asend
            except BaseException as exc:
                resume, given = generator.athrow, exc
    return wrapper


def _check(decorator, function):
    if isinstance(function, type):
        kind = f'the class {function.__name__}'
    elif not callable(function):
        kind = f'a {type(function).__name__}'
    else:
        return
    raise TypeError(f'{decorator}() decorates functions, not {kind}')
