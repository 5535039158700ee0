"""How values, names and places are written for people."""

import time
import unicodedata

from profile_sampling._data import states
from profile_sampling._data.values import printable

_CLOCKS = {'wall': 'wall', 'cpu': 'CPU'}
# Units that are not written out, and characters of other tools' kinds.
_UNITS = {'count': ''}
_SIZES = 'KB', 'MB', 'GB', 'TB'     # of 1,024
_KIND = 16
_STATE_NAMES = {state.name: state.word for state in states.TABLE}
# Characters of packages that are looked at; what is longer no person has
# written.
_PACKAGES = 200
# What takes two columns of a terminal, and what takes none.
_WIDE, _COMBINING = frozenset('WF'), frozenset(['Mn', 'Me'])
CUT = '\N{HORIZONTAL ELLIPSIS}'


def seconds(ns, scale=None):
    """A time as text: '12.345 s', or in ms below a second.

    With *scale*, a time in ns, in the unit that is right for that one:
    the figures of a column are to be comparable at a glance.
    """
    if abs(ns if scale is None else scale) < 1_000_000_000:
        return f'{ns / 1e6:.3f} ms'
    return f'{ns / 1e9:,.3f} s'


def brief(ns, scale=None, digits=2):
    """A time in few characters: '8.76s', '0.4ms'; *scale* as above, *digits*
    of a second, and one less of a millisecond."""
    size = abs(ns if scale is None else scale)
    if size >= 1_000_000_000:
        return f'{ns / 1e9:,.{digits}f}s'
    if size >= 1_000_000:
        return f'{ns / 1e6:.{digits - 1}f}ms'
    return f'{ns / 1e3:.1f}us'


def said(ns):
    """A time in a sentence, in three digits: '15.8 s', '347 ms', '0.21 ms'."""
    for unit, size in ('s', 1e9), ('ms', 1e6), ('\N{MICRO SIGN}s', 1e3):
        value = abs(ns) / size
        if value >= 0.9995 or size == 1e3:
            digits = 2 if value < 9.995 else 1 if value < 99.95 else 0
            return f'{ns / size:,.{digits}f} {unit}'


def share(part, total):
    return f'{100 * part / total:.1f} %' if total else '-'


def percent(ratio):
    """A change as text, such as '+3.2 %', or 'x 40' if it is as large."""
    return f'x {1 + ratio:,.0f}' if ratio >= 10 else f'{100 * ratio:+,.1f} %'


def amount(value, value_type, scale=None):
    """A value as text, with its unit; *scale* as for seconds().

    *value_type* may be a Measure.
    """
    if value_type.unit == 'nanoseconds':
        return seconds(value, scale)
    return _in_unit(value, value_type, scale)


def brief_amount(value, value_type, scale=None, digits=2):
    """The same in few characters."""
    if value_type.unit == 'nanoseconds':
        return brief(value, scale, digits)
    return _in_unit(value, value_type, scale)


def size(value, scale=None):
    """Bytes as text; *scale* as for seconds()."""
    of, unit = abs(value if scale is None else scale), 'B'
    divisor = 1
    for more in _SIZES:
        if of < 1024:
            break
        of, divisor, unit = of / 1024, divisor * 1024, more
    return (f'{value:,} B' if unit == 'B' else
            f'{value / divisor:,.1f} {unit}')


def _in_unit(value, value_type, scale):
    if value_type.unit == 'bytes':
        return size(value, scale)
    unit = _UNITS.get(value_type.unit)
    if unit is None:
        unit = f' {start(printable(value_type.unit), _KIND)}'
    return f'{value:,}{unit}'


def state_name(state):
    """What a state is called in the report."""
    return _STATE_NAMES[state]


def title(value_type):
    """What a type of values is called in the report."""
    return _CLOCKS.get(value_type.kind,
                       start(printable(value_type.kind), _KIND))


def long_title(value_type):
    """What the report ranks by, in words."""
    text = title(value_type)
    return f'{text} time' if value_type.kind in _CLOCKS else text


def shown_order(tables):
    """Return the numbers of the values: the clocks and what the profile is
    about come first, counts last."""
    types = tables.value_types
    return sorted(reversed(range(len(types))), key=lambda number: (
        number != tables.own and types[number].kind not in _CLOCKS))


def counted(number, one, more=None):
    return f'{number:,} {one if number == 1 else more or one + "s"}'


def not_shown(rows, top, one, more=None):
    """Return the notes of a table of which only *top* rows are shown."""
    rest = rows - top
    if rest <= 0:
        return []
    return [f'... {counted(rest, f"more {one}", more and f"more {more}")}']


def date(ns):
    if not ns:
        return 'at a time not known'
    try:
        moment = time.gmtime(ns // 1_000_000_000)
    except (OverflowError, OSError, ValueError):
        return 'at a time not known'
    return time.strftime('%Y-%m-%d %H:%M:%S UTC', moment)


def clock(ns):
    """Return the time of day."""
    return time.strftime('%H:%M:%S', time.gmtime(ns // 1_000_000_000))


def text_width(text):
    """Return how many columns of a terminal a text takes."""
    return len(text) if text.isascii() else sum(map(_columns, text))


def _columns(char):
    if unicodedata.category(char) in _COMBINING:
        return 0
    return 1 + (unicodedata.east_asian_width(char) in _WIDE)


def padded(text, width, *, left=True):
    """Return a text with blanks behind it, or before it: *width* columns."""
    blanks = ' ' * (width - text_width(text))
    return text + blanks if left else blanks + text


def _beginning(text, width):
    """Return as much of a text as fits *width* columns."""
    if text.isascii():
        return text[:width]
    end = 0
    for end, char in enumerate(text):
        width -= _columns(char)
        if width < 0:
            return text[:end]
    return text


def _end(text, width):
    """Return the same of its end, which combines with nothing before it."""
    if text.isascii():
        return text[max(len(text) - width, 0):]
    begin = len(text)
    for place in reversed(range(len(text))):
        its = _columns(text[place])
        width -= its
        if width < 0:
            break
        if its:
            begin = place
    return text[begin:]


def start(text, width):
    return (text if text_width(text) <= width
            else _beginning(text, width - 3) + '...')


def short_end(text, width, separator):
    """Return the end of a text, from a separator on if that is near."""
    if text_width(text) <= width:
        return text
    end = _end(text, width - 3)
    end = end[max(end.find(separator, 0, width // 3), 0):]
    return '...' + end.removeprefix('.')


def short_name(module, name, width):
    """Return 'module.name' in *width* columns.

    Packages are left out from the left, then classes and outer functions, then
    the library before an ellipsis.
    What is left is cut in the middle.  A list of several loses its end.
    """
    if not module and ', ' in name:
        return start(name, width)
    module = module[-_PACKAGES:]
    text = f'{module}.{name}' if module else name
    while text_width(text) > width and module:
        module = module.partition('.')[2]
        text = f'{CUT}{module}.{name}' if module else name
    if text_width(text) <= width:
        return text
    library, gap, name = name.rpartition(f' {CUT} ')
    last = name.rpartition('.')[2]
    if gap and text_width(library + gap + last) <= width:
        return library + gap + last
    dot = name.find('.', len(name) - len(_end(name, width - 1)))
    if dot < 0:
        dot = name.rfind('.')
    last = name[dot + 1:]
    if dot >= 0 and last:
        name = f'{CUT}{last}'
    return without_middle(name, width)


def without_middle(text, width):
    if text_width(text) <= width:
        return text
    half = max(width - 1, 0) // 2
    return _beginning(text, width - 1 - half) + CUT + _end(text, half)


def wrapped(parts, width, separator=', ', indent='  '):
    """Return lines of parts that are not broken apart; one that is longer
    than a line loses its middle, a path its beginning."""
    lines = []
    line = ''
    space = width - len(indent) - len(separator)
    for number, part in enumerate(parts):
        if text_width(part) > space:
            part = (short_end(part, space, '/') if '/' in part
                    else without_middle(part, space))
        if number + 1 < len(parts):
            part += separator
        if line.strip() and text_width(line + part.rstrip()) > width:
            lines.append(line.rstrip())
            line = indent
        line += part
    return [*lines, line.rstrip()]
