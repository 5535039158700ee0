"""Lines of a screen: spans of text with styles, and bars of letters.

No line is wider than it may be, and no figure is cut.
"""

from profile_sampling._data.states import SHOWN
from profile_sampling._data.values import STATES
from profile_sampling._formats.words import CUT, text_width

# In the order of bars: (number of the state, letter, word).
LETTERS = [(STATES.index(state.name), state.letter, state.word)
           for state in SHOWN if state.letter and state.name != 'awaiting']
# Of time that is no thread's: requests that wait for a worker.
NO_WORKER = 'Q'
_ORDER = ''.join([letter for _, letter, _ in LETTERS]) + NO_WORKER
WORDS = {letter: word for _, letter, word in LETTERS} | {
    NO_WORKER: 'no worker'}
# Where UTF-8 is not to be had.
_PLAIN = str.maketrans({
    **{char: str(number) for number, char in enumerate('▁▂▃▄▅▆▇█')},
    '→': '->', CUT: '..', '├': '|', '└': '|', '–': '-', '≥': '>=',
    '↑': '^', '↓': 'v', '←': '<'})


def clean(text):
    """Return a text that drives no terminal."""
    return text if text.isprintable() else ''.join(
        [char if char.isprintable() else '?' for char in text])


def cut(text, width):
    """Return what of a text fits; an ellipsis is in place of the rest."""
    if text_width(text) <= width:
        return text
    while text and text_width(text) >= width:
        text = text[:-1]
    return text + CUT if width > 0 else ''


def width_of(line):
    return sum([text_width(text) for text, _ in line])


def fitting(line, width):
    """Return a line cut at a width."""
    found = []
    for text, style in line:
        text = cut(text, width)
        width -= text_width(text)
        if text:
            found.append((text, style))
    return found


def padded(line, width, *, right=False):
    """Return a line of exactly that width."""
    line = fitting(line, width)
    blanks = (' ' * (width - width_of(line)), '')
    return [blanks, *line] if right else [*line, blanks]


def plain(lines):
    """Return lines without styles, as one text."""
    return ''.join([''.join([text for text, _ in line]).rstrip() + '\n'
                    for line in lines])


def painted(lines, style):
    """Return the same with colours; *style* as in _formats/style.py."""
    return ''.join([''.join([style(text, name) for text, name in line]
                            ).rstrip(' ') + '\n' for line in lines])


def without_utf8(text):
    return text.translate(_PLAIN)


def letters(states):
    """Return {letter: value}, in the order of bars, of values by state."""
    return {letter: states[number] for number, letter, _ in LETTERS
            if states[number] > 0}


def bar(values, cells):
    """Return the spans of a bar of so many cells, of {letter: value}.

    What has half a cell has one; the rest goes to the largest remainders.
    """
    whole = sum(values.values())
    if not whole or cells <= 0:
        return []
    exact = {letter: cells * value / whole for letter, value
             in values.items() if 2 * cells * value >= whole}
    exact = exact or {max(values, key=values.get): cells}
    got = {letter: max(1, int(part)) for letter, part in exact.items()}
    while sum(got.values()) != cells:
        step = 1 if sum(got.values()) < cells else -1
        changed = max([letter for letter in got if got[letter] + step >= 0],
                      key=lambda its: step * (exact[its] - got[its]))
        got[changed] += step
    return [(letter * got[letter], style_of(letter))
            for letter in _ORDER if letter in got]


def style_of(letter):
    """Return the style of a letter; what is idle has no colour."""
    return f'state {letter}' if letter.isalpha() else ''


def bar_of(values, largest, cells):
    """Return the same of a row beside others, of which the largest fills all
    cells."""
    whole = sum(values.values())
    return bar(values, min(cells, round(cells * whole / largest))
               if largest else 0)


class Column:
    """A column of a table.

    head    what is above it
    widths  its width in 60, 80, 120 and 200 columns: 0 where it is left out,
            REST for what is left
    right   whether it is of numbers; then the gap before it is in its width
    """

    def __init__(self, head, *widths, right=False):
        self.head = head
        self._widths = widths
        self.right = right

    def width(self, screen_width):
        return self._widths[(screen_width >= 80) + (screen_width >= 120)
                            + (screen_width >= 200)]


REST = -1
_GAP = 2


def widths(columns, width):
    """Return {number of a column: its width} of those that are shown."""
    found = {number: column.width(width)
             for number, column in enumerate(columns) if column.width(width)}
    fixed = sum([0 if its == REST else its for its in found.values()])
    gaps = sum([_GAP * (not columns[number].right) for number in found])
    return {number: max(8, width - fixed - gaps) if its == REST else its
            for number, its in found.items()}


def row(columns, cells, width, mark=' '):
    """Return a line of cells: each a text, or spans."""
    line = []
    for number, its in widths(columns, width).items():
        cell = cells[number]
        cell = [(cell, '')] if isinstance(cell, str) else cell
        column = columns[number]
        if not column.right:
            line.append((' ' * _GAP, ''))
        line += padded(cell, its, right=column.right)
    line = fitting(line, width)
    if mark != ' ' and line:
        # The first column is of numbers, with a blank before them.
        text, style = line[0]
        line[0:1] = [(mark, 'strong'), (text[1:], style)]
    return line


def share(part, whole):
    """Return a share in whole per cents, as a figure alone."""
    if not whole or not part:
        return '–'
    percent = 100 * part / whole
    return '<1' if percent < 0.5 else f'{percent:.0f}'
