"""The text report, for people at a terminal.

This file owns whether there is colour, and how text gets to a file that
cannot show all of it.  It must not know what the report says.
"""

import sys

from profile_sampling._formats import text

COLORS = 'auto', 'always', 'never'


def write(tables, file, *, sort, limit, width, color):
    """Write the report of *tables*; see Profile.report()."""
    if file is None:
        file = sys.stdout
        if file is None:
            raise ValueError('sys.stdout is closed; name a file')
    if not hasattr(file, 'write'):
        raise TypeError(f'file must be open for text, not {file!r}; save() '
                        'takes a path')
    if color not in COLORS:
        raise ValueError(f'color must be {", ".join(COLORS[:-1])} or '
                         f'{COLORS[-1]}, not {color!r}')
    options = {'sort': sort, 'bold': _is_colored(file, color)}
    for name, number in ('top', limit), ('width', width):
        if number is not None:
            if not isinstance(number, int):
                raise TypeError(f'limit and width are ints, not {number!r}')
            options[name] = number
    file.write(_showable(text.render(tables, **options), file))


def _is_colored(file, color):
    if color != 'auto':
        return color == 'always'
    import _colorize
    return _colorize.can_colorize(file=file)


def _showable(report, file):
    encoding = getattr(file, 'encoding', None)
    if encoding is None:
        return report
    return report.encode(encoding, 'backslashreplace').decode(encoding)
