"""Colours of the terminal, sparing: words that warn, and lines of mine."""

import os

# Of each letter: fill and ink, light and dark, as 256 colours.
_FILLS = {
    'r': ((172, 16), (172, 16)), 'n': ((221, 16), (179, 16)),
    'w': ((110, 16), (67, 16)), 'G': ((133, 231), (169, 16)),
    'C': ((247, 16), (245, 16)), 'S': ((53, 231), (139, 16)),
    'x': ((30, 231), (37, 16)), 'L': ((62, 231), (62, 231)),
    'Q': ((252, 16), (239, 255))}
_FILLS_16 = {'r': '43;30', 'n': '43;30', 'w': '44;37', 'G': '45;37',
             'C': '47;30', 'S': '41;37', 'x': '46;30', 'L': '44;37',
             'Q': '47;30'}
_MARKS = {'chosen': '7', 'underline': '1;4'}
# Light, dark.
_INKS = {'mine': (62, 147), 'place': (62, 147), 'warn': (130, 208),
         'quiet': (240, 249), 'live': (29, 79)}
_INKS_16 = {'mine': '1', 'place': '1', 'warn': '1;31', 'live': '32'}


class Style:
    """Paints texts; called with a text and the name of a style.

    depth    0 for no colours, 16 or 256
    is_dark  of the ground
    """

    def __init__(self, depth, is_dark=True):
        self.depth = depth
        self._ground = int(is_dark)

    def __call__(self, text, style=''):
        code = self.code(style)
        return f'\033[{code}m{text}\033[0m' if code and text else text

    def code(self, style):
        """Return the codes of a style, or ''."""
        if not self.depth:
            return ''
        if style.startswith('state '):
            return self._fill(style.removeprefix('state '))
        if style == 'strong':
            return '1'
        if style in _MARKS:
            return _MARKS[style]
        if self.depth == 16:
            return _INKS_16.get(style, '')
        ink = _INKS.get(style)
        bold = '1;' if style in ('mine', 'warn') else ''
        return f'{bold}38;5;{ink[self._ground]}' if ink else ''

    def other_ground(self):
        """Return the same for a light ground if this one is dark."""
        return Style(self.depth, not self._ground)

    def _fill(self, letter):
        if letter not in _FILLS:
            return ''
        if self.depth == 16:
            return f'1;{_FILLS_16[letter]}'
        fill, ink = _FILLS[letter][self._ground]
        return f'48;5;{fill};38;5;{ink}'


def depth():
    """Return how many colours the terminal has, by the environment."""
    term = os.environ.get('TERM', '')
    if os.environ.get('COLORTERM') in ('truecolor', '24bit') or (
            '256color' in term):
        return 256
    return 16


def is_dark(theme=None):
    """Return whether the ground is dark, if that is known; else yes."""
    if theme is not None:
        return theme == 'dark'
    ground = os.environ.get('COLORFGBG', '').rpartition(';')[2]
    return not (ground.isdecimal() and int(ground) in (7, 15))
