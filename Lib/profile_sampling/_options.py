"""What a user may ask of the core."""

from profile_sampling._data import checks
from profile_sampling._data.allocations import (
    DEFAULT_BYTES, MODE as ALLOC)
from profile_sampling._data.counts import MODES as COUNT_MODES, OFF
from profile_sampling._data.values import MODES, NAMES

MAX_RATE_HZ = 10_000
MAX_DEPTH_FRAMES = 16_384
MAX_DURATION_S = 999_999_999
MAX_ALLOC_BYTES = 1 << 40
# What others call a profile of memory, and what is said of it.
MEMORY_MODES = 'memory', 'mem'
NO_MEMORY = ('sampled allocations are the mode alloc, and --memory shows '
             'them: -X sampleprof=alloc, report --memory')


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


def checked(mode, rate_hz, depth_frames, names, signal, alloc_bytes=None):
    """Return the arguments of the core for those that are not None."""
    options = {}
    if mode is not None:
        check_mode(mode)
        options['mode'] = mode
    if rate_hz is not None:
        options['rate_hz'] = checked_rate(rate_hz)
    if mode == ALLOC:
        # Nobody wants to know its time.
        options['rate_hz'] = 1
        if alloc_bytes is None:
            alloc_bytes = DEFAULT_BYTES
    if alloc_bytes is not None:
        options['alloc_bytes'] = checks.whole('alloc_bytes', alloc_bytes,
                                              most=MAX_ALLOC_BYTES)
    return options | checked_capture(depth_frames, names, signal)


def checked_capture(depth_frames, names, signal):
    """The same for what says how samples are taken, not which."""
    options = {}
    if depth_frames is not None:
        options['depth_frames'] = checks.whole(
            'depth_frames', depth_frames, most=MAX_DEPTH_FRAMES)
    if names is not None:
        options['names'] = names_bits(names)
    if signal is not None:
        options['signal'] = signal_number(signal)
    return options


def checked_rate(rate_hz):
    return checks.whole('rate_hz', rate_hz, most=MAX_RATE_HZ)


def check_mode(mode):
    if not isinstance(mode, str):
        hint = '; write @profile()' if callable(mode) else ''
        raise TypeError(
            f'mode must be a str, not {type(mode).__name__}{hint}')
    checks.one_of('mode', mode, (*MODES, ALLOC))


def signal_number(signal):
    import _signal
    return checks.whole('signal', signal, most=_signal.NSIG - 1)


def names_bits(names):
    """Return the bits by which the core knows what to name."""
    return NAMES.index(checks.one_of('names', names, NAMES))


def size_bytes(text):
    """Return the bytes of a size such as 512K, 64KiB or 1M; None: it is none.
    """
    number = text.upper().removesuffix('IB').removesuffix('B')
    exponent = 'KMG'.find(number[-1:]) + 1 if number else 0
    number = number[:-1] if exponent else number
    # int() would take blanks and signs as well.
    if not (number.isascii() and number.isdigit() and len(number) < 14):
        return None
    size = int(number) << 10 * exponent
    return size if 1 <= size <= MAX_ALLOC_BYTES else None


def checked_calls(calls):
    """Return what of calls is to be counted, as a text."""
    return OFF if calls is None else checks.one_of('calls', calls, COUNT_MODES)
