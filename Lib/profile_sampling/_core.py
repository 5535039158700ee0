"""The way to the built-in module that samples.

This file owns what to say where there is none, what the core cannot find out
by itself, and in which interpreter we are.  It must not know what is sampled,
nor for whom.
"""

import _thread
import sys


def load():
    """Return the module _profile; raise ImportError if there is none."""
    try:
        import _profile
    except ImportError:
        raise ImportError(
            f'this interpreter ({sys.executable}) was built without the '
            'module _profile: it can neither sample itself nor read or write '
            'profiles', name='_profile') from None
    return _profile


def give_names():
    """Give it what began before the session did: names, and our task."""
    _give_thread_names()
    _give_task()


def _give_thread_names():
    threading = sys.modules.get('threading')
    if threading is not None:
        for thread in threading.enumerate():
            if thread.ident is not None:    # else it has not begun
                _thread._set_sampled_name(thread.ident, thread.name)


def _give_task():
    asyncio = sys.modules.get('_asyncio')
    loop = asyncio and asyncio._get_running_loop()
    task = asyncio.current_task(loop) if loop is not None else None
    if task is not None:
        asyncio._swap_current_task(loop, task)


def is_main_interpreter():
    import _interpreters
    return _interpreters.get_current()[0] == _interpreters.get_main()[0]
