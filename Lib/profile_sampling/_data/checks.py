"""Checks of what a user gives to a public function.

A wrong type is a TypeError, a wrong value a ValueError; both name the argument.
"""


def text(name, value):
    if not isinstance(value, str):
        raise TypeError(f'{name} must be a str, not {type(value).__name__}')
    return value


def one_of(name, value, known):
    """Return a text that has to be one of those known."""
    if text(name, value) not in known:
        raise ValueError(f'{name} must be '
                         f'{", ".join(map(repr, known[:-1]))} or '
                         f'{known[-1]!r}, not {value!r}')
    return value


def texts(name, value):
    """Return several texts or patterns as a list; one stands for itself."""
    if isinstance(value, str) or hasattr(value, 'pattern'):
        return [value]
    try:
        return list(value)
    except TypeError:
        raise TypeError(f'{name} must be a str or several, not '
                        f'{type(value).__name__}') from None


def whole(name, value, least=1, most=None):
    # True is an int, but never a number anyone means here.
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f'{name} must be an int, not {type(value).__name__}')
    if value < least or most is not None and value > most:
        raise ValueError(
            f'{name} must be ' + (
                f'at least {least}' if most is None else
                f'from {least} to {most}') + f', not {value}')
    return int(value)


def share(name, value):
    """Return a part of a whole, from 0 to 1."""
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise TypeError(f'{name} must be a number, not {type(value).__name__}')
    if not 0 <= value <= 1:
        raise ValueError(f'{name} must be from 0 to 1, not {value}')
    return value
