"""What a user may ask of the core.

This file owns the checks of options that sessions and subscriptions have in
common.  It must not start anything.
"""

from profile_sampling._data.values import MODES

MAX_RATE_HZ = 10_000
MAX_DEPTH_FRAMES = 16_384
ALL_NAMES = 'calls,opcodes'


def checked(mode='wall', rate_hz=1000, depth_frames=512, names=ALL_NAMES,
            signal=None):
    """Return the arguments of the core's start(), or raise."""
    if not isinstance(mode, str):
        hint = '; write @profile()' if callable(mode) else ''
        raise TypeError(
            f'mode must be a str, not {type(mode).__name__}{hint}')
    check_mode(mode)
    options = {
        'mode': mode,
        'rate_hz': integer('rate_hz', rate_hz, MAX_RATE_HZ),
        'depth_frames': integer('depth_frames', depth_frames,
                                MAX_DEPTH_FRAMES),
        'names': names_bits(names)}
    if signal is not None:
        options['signal'] = signal_number(signal)
    return options


def check_mode(mode):
    if mode not in MODES:
        raise ValueError('mode must be '
                         f'{" or ".join(map(repr, MODES))}, not {mode!r}')


def signal_number(signal):
    import _signal
    return integer('signal', signal, _signal.NSIG - 1)


def names_bits(names):
    """Return the bits by which the core knows what to name."""
    bits = {'calls': 1, 'opcodes': 2}
    if not isinstance(names, str):
        raise TypeError(f'names must be a str, not {type(names).__name__}')
    if names == 'off':
        return 0
    try:
        return sum({bits[name] for name in names.split(',')})
    except KeyError:
        raise ValueError("names must be 'calls', 'opcodes', 'calls,opcodes' "
                         f"or 'off', not {names!r}") from None


def integer(name, value, maximum):
    # True is an int, but never a number anyone means here.
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f'{name} must be an int, not {type(value).__name__}')
    if not 1 <= value <= maximum:
        raise ValueError(f'{name} must be from 1 to {maximum}, not {value}')
    return int(value)
