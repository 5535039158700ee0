"""What a user may ask of the core.

This file owns the checks of options that sessions and subscriptions have in
common.  It must not start anything.
"""

from profile_sampling._data.counts import MODES as COUNT_MODES, OFF
from profile_sampling._data.values import MODES, NAMES

MAX_RATE_HZ = 10_000
MAX_DEPTH_FRAMES = 16_384
MAX_DURATION_S = 999_999_999
# What others call a profile of memory, and what is said of it.
MEMORY_MODES = 'memory', 'mem', 'alloc'
NO_MEMORY = ('there are no profiles of memory: stat says how much a program '
             'used, and tracemalloc or memray which lines')


def with_hints(function):
    """Make *function* tell the name of an argument whose first word was given.

    The interpreter does so for names that are spelt alike; to it 'rate' is too
    far from 'rate_hz'.
    """
    code = function.__code__
    names = code.co_varnames[:code.co_argcount + code.co_kwonlyargcount]

    def hinting(*arguments, **options):
        for given in options.keys() - set(names):
            for name in names:
                if name.startswith(f'{given}_'):
                    raise TypeError(
                        f'{function.__qualname__}() got an unexpected keyword '
                        f'argument {given!r}. Did you mean {name!r}?')
        return function(*arguments, **options)
    # Not functools.wraps(): that module takes longer to import than this one.
    for attribute in '__module__', '__name__', '__qualname__', '__doc__':
        setattr(hinting, attribute, getattr(function, attribute))
    hinting.__wrapped__ = function
    return hinting


def checked(mode, rate_hz, depth_frames, names, signal):
    """Return the arguments of the core for those that are not None."""
    options = {}
    if mode is not None:
        check_mode(mode)
        options['mode'] = mode
    if rate_hz is not None:
        options['rate_hz'] = checked_rate(rate_hz)
    return options | checked_capture(depth_frames, names, signal)


def checked_capture(depth_frames, names, signal):
    """The same for what says how samples are taken, not which."""
    options = {}
    if depth_frames is not None:
        options['depth_frames'] = integer('depth_frames', depth_frames,
                                          MAX_DEPTH_FRAMES)
    if names is not None:
        options['names'] = names_bits(names)
    if signal is not None:
        options['signal'] = signal_number(signal)
    return options


def checked_rate(rate_hz):
    return integer('rate_hz', rate_hz, MAX_RATE_HZ)


def check_mode(mode):
    if not isinstance(mode, str):
        hint = '; write @profile()' if callable(mode) else ''
        raise TypeError(
            f'mode must be a str, not {type(mode).__name__}{hint}')
    if mode not in MODES:
        raise ValueError('mode must be '
                         f'{" or ".join(map(repr, MODES))}, not {mode!r}')


def signal_number(signal):
    import _signal
    return integer('signal', signal, _signal.NSIG - 1)


def _choice(name, value, known):
    """Return the text *value*, which has to be one of those known."""
    if not isinstance(value, str):
        raise TypeError(f'{name} must be a str, not {type(value).__name__}')
    if value not in known:
        raise ValueError(f'{name} must be '
                         f'{", ".join(map(repr, known[:-1]))} or '
                         f'{known[-1]!r}, not {value!r}')
    return value


def names_bits(names):
    """Return the bits by which the core knows what to name."""
    return NAMES.index(_choice('names', names, NAMES))


def integer(name, value, maximum):
    # True is an int, but never a number anyone means here.
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f'{name} must be an int, not {type(value).__name__}')
    if not 1 <= value <= maximum:
        raise ValueError(f'{name} must be from 1 to {maximum}, not {value}')
    return int(value)


def checked_calls(calls):
    """Return what of calls is to be counted, as a text."""
    return OFF if calls is None else _choice('calls', calls, COUNT_MODES)
