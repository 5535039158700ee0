"""The way to the built-in module that samples."""

import sys

_NONE = ('this interpreter ({}) has no sampling profiler: it can read and '
         'report profiles, not record them (for one that can, see "Installing '
         'it for a project" in the documentation of profile_sampling)')

try:
    import _profile as _at_the_end
except ImportError:
    _at_the_end = None


def load():
    """Return the module _profile; raise ImportError if there is none."""
    try:
        import _profile
    except ImportError:
        if _is_ending() and _at_the_end is not None:
            return _at_the_end
        raise ImportError(_NONE.format(sys.executable),
                          name='_profile') from None
    return _profile


def is_there():
    """Return whether this interpreter has the module."""
    return _at_the_end is not None


def _is_ending():
    """Return whether finalizers are all that still runs: no import works."""
    return sys.meta_path is None


def check_goes_on():
    """Raise RuntimeError if the interpreter is shutting down."""
    if _is_ending():
        raise shutting_down()


def shutting_down():
    """Return the RuntimeError that the core raises, too."""
    return RuntimeError('the interpreter is shutting down: it cannot be '
                        'sampled any more')


def give_task():
    """Tell the engine which task runs here: it began before the session."""
    asyncio = sys.modules.get('_asyncio')
    loop = asyncio and asyncio._get_running_loop()
    task = asyncio.current_task(loop) if loop is not None else None
    if task is not None:
        asyncio._swap_current_task(loop, task)
