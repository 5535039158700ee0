"""Numbers of a column, all in the unit that is right for the greatest.

This file owns units and digits.  It must not know what is counted.
"""

# Steps of a unit: the name, and how much of the value it is.
_STEPS = {
    'nanoseconds': [('s', 1e9), ('ms', 1e6), ('\N{MICRO SIGN}s', 1e3),
                    ('ns', 1.0)],
    'bytes': [('GB', 1e9), ('MB', 1e6), ('kB', 1e3), ('B', 1.0)],
    'share': [('%', 0.01)],
}
_DIGITS = 4
# From here on percents are longer than they are plain.
_TIMES = 10


class Amounts:
    """Writes values of a unit so that they compare at a glance.

    unit      'nanoseconds', 'bytes', 'share' or another text
    greatest  of all values that are to be written
    """

    def __init__(self, unit, greatest):
        steps = _STEPS.get(unit, [('', 1.0)])
        greatest = abs(greatest)
        self.name, self._size = next(
            (step for step in steps if greatest >= step[1]), steps[-1])
        whole = len(str(int(greatest / self._size)))
        self._decimals = max(_DIGITS - whole, 0)
        if unit == 'share':
            self._decimals = 2

    def number(self, value):
        return f'{value / self._size:,.{self._decimals}f}'

    def text(self, value):
        return f'{self.number(value)} {self.name}'.rstrip()

    def signed(self, value):
        """A change, with its sign; that of a share is in points."""
        text = self.text(value).replace('%', 'pp')
        # What rounds to nothing has no sign.
        if not text.strip('-0.,').startswith(tuple('123456789')):
            return text.removeprefix('-')
        return text if text.startswith('-') else f'+{text}'


def percent(ratio, decimals=1):
    """A change as text, such as '+3.2 %', or 'x 40' if it is as large."""
    if ratio >= _TIMES:
        return f'x {1 + ratio:,.0f}'
    return f'{100 * ratio:+,.{decimals}f} %'
