"""Writer of flame graphs: one SVG image that needs nothing else.

The format is SVG 1.1, https://www.w3.org/TR/SVG11/.

A row is a depth of stacks, the roots on top; a frame is as wide as its share
of what the profile is about, in all threads.  Siblings are in the order of
their names, so that equal profiles are equal files and two profiles can be
laid side by side.  There is no script: what does not fit is in the title of a
frame, which viewers show when the mouse rests on it, with all types of
values.  Frames too narrow to be seen and rows below the last one that viewers
can draw are left out, and the image says how many.

What gets lost: threads, lines, columns and instructions, labels, tasks, who
held the GIL, states but for pseudo-frames, and counters.
"""

from html import escape

from profile_sampling._data.call_paths import ROOT, CallPaths
from profile_sampling._data.measures import measures
from profile_sampling._data.on_clocks import on_clocks
from profile_sampling._data.values import NO_FRAMES, printable
from profile_sampling._formats.words import amount, text_width

WIDTH, MARGIN, ROW = 1200, 10, 17
# The least width of a frame that is drawn, in pixels.
MIN_WIDTH = 0.5
# Viewers give up beyond 32,767 pixels.
MAX_ROWS = 1_900
# Of the font: what a character is wide, and how far it is from the edge.
_CHAR, _INSET = 7.23, 3
_TOP = 72
_LONG = 200
_SHADES = 5
_KINDS = {'C': 'c', 'operator': 'o', 'pseudo': 'x'}
# Pseudo-frames with a colour of their own, by how they begin.
_WAITS = {'[waiting': 'b', '[GIL wait': 'g', '[CPU wait': 'u',
          '[GC': 'm'}
# What is drawn, its class and its colour; all are distinct without red and
# green, and black is readable on them.
_LEGEND = (('Python', 'p2', '#f0b35a'), ('C', 'c', '#8ec3ea'),
           ('operator', 'o', '#7fd1c0'), ('waiting', 'b', '#c3c9d4'),
           ('GIL wait', 'g', '#e79ac6'), ('CPU wait', 'u', '#9aa0ac'),
           ('GC', 'm', '#b8a4e3'),
           ('other', 'x', '#d9d9d9'))
_SHADE_COLORS = '#f7cf8f', '#f5c274', '#f0b35a', '#ecc95c', '#e8a868'
_STYLE = ''.join([
    'svg{background:#fff}text{fill:#000;white-space:pre}'
    'rect{stroke:#fff;stroke-width:.5}g:hover>rect{stroke:#000}',
    *[f'.{name}{{fill:{color}}}' for _, name, color in _LEGEND],
    *[f'.p{shade}{{fill:{color}}}'
      for shade, color in enumerate(_SHADE_COLORS)],
    '@media(prefers-color-scheme:dark){svg{background:#1c1c1c}'
    '.h{fill:#eee}rect{stroke:#1c1c1c}g:hover>rect{stroke:#fff}}'])


def encode(tables):
    """Return the bytes of the image of a profile.

    Raise ValueError if it has negative values, which have no width.
    """
    tables = on_clocks(tables)
    paths = CallPaths(tables)
    all_measures = measures(tables)
    own = paths.self_sums([measure.column for measure in all_measures])
    if min(own[0]) < 0:
        raise ValueError('a flame graph cannot show the negative values of '
                         f'{all_measures[0].name}')
    drawing = _Drawing(paths, all_measures, own)
    if drawing.total:
        drawing.draw()
    return _image(tables, drawing).encode()


class _Drawing:
    """The frames, drawn; and how many are not."""

    def __init__(self, paths, all_measures, own):
        self._paths = paths
        self._measures = all_measures
        self._own = own
        self._cum = [paths.cumulative(sums) for sums in own]
        self.total = self._cum[0][ROOT]
        self.parts = []
        self.rows = 1
        self.n_narrow = self.n_deep = 0

    def heading(self):
        """The totals in words."""
        return ', '.join([f'{amount(cum[ROOT], measure)} {measure.title}'
                          for measure, cum
                          in zip(self._measures, self._cum)])

    def draw(self):
        paths, cum = self._paths, self._cum[0]
        self._frame(ROOT, 0, 0, 'all', None)
        n_wide = 0
        for node, depth, begin in self._wide():
            n_wide += 1
            if depth >= MAX_ROWS:
                self.n_deep += 1
            else:
                function = paths.function(node)
                self._frame(node, depth, begin,
                            printable(function.name) or '[no name]', function)
        self.n_narrow = sum(map(bool, cum)) - 1 - n_wide
        own = self._own[0][ROOT]
        if own:
            self._no_frames(self.total - own)

    def _wide(self):
        """Iterate over (node, depth, where it begins) of what can be seen.

        What is below a narrow frame is as narrow.
        """
        cum, sizes = self._cum[0], self._paths.sizes()
        least = MIN_WIDTH * self.total / (WIDTH - 2 * MARGIN)
        pending = [(ROOT, 0, 0)]
        while pending:
            node, depth, begin = pending.pop()
            if node:
                yield node, depth, begin
            callees = []
            for callee in self._paths.children(node, sizes):
                if cum[callee] and cum[callee] >= least:
                    callees.append((callee, depth + 1, begin))
                begin += cum[callee]
            pending += reversed(callees)

    def _no_frames(self, begin):
        value = self._own[0][ROOT]
        self._put(1, begin, value, 'x', NO_FRAMES, [NO_FRAMES, *[
            f'{measure.title}: {amount(own[ROOT], measure)}'
            for measure, own in zip(self._measures, self._own)]])

    def _frame(self, node, depth, begin, name, function):
        title = [name]
        if function is not None and function.filename:
            title.append(f'{printable(function.filename)}:'
                         f'{function.first_line}')
        for measure, own, cum in zip(self._measures, self._own, self._cum):
            text = f'{measure.title}: {amount(cum[node], measure)}'
            if cum[ROOT]:
                text += f' ({100 * cum[node] / cum[ROOT]:.1f} %)'
            if node != ROOT:
                text += f', self {amount(own[node], measure)}'
            title.append(text)
        self._put(depth, begin, self._cum[0][node], _class_of(function),
                  name, title, function)

    def _put(self, depth, begin, value, class_, name, title, function=None):
        self.rows = max(self.rows, depth + 1)
        scale = (WIDTH - 2 * MARGIN) / self.total
        x, y, width = MARGIN + begin * scale, _TOP + depth * ROW, value * scale
        shown = _fitting(name, function, width)
        text = (f'<text x="{x + _INSET:.2f}" y="{y + 12}">{escape(shown)}'
                '</text>' if shown else '')
        lines = '\n'.join([_cut(line, _LONG) for line in title])
        self.parts.append(
            f'<g><title>{escape(lines)}</title><rect class="{class_}" '
            f'x="{x:.2f}" y="{y}" width="{width:.2f}" height="{ROW - 1}" '
            f'rx="1"/>{text}</g>')


def _image(tables, drawing):
    name = (f'{printable(tables.mode)} profile of Python '
            f'{printable(tables.python_version)}')
    if tables.pid is not None:
        name += f', process {tables.pid}'
    notes = _notes(drawing)
    height = _TOP + drawing.rows * ROW + MARGIN + len(notes) * ROW
    below = _TOP + drawing.rows * ROW + 14
    return '\n'.join([
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" '
        f'height="{height}" viewBox="0 0 {WIDTH} {height}" role="img" '
        'font-family="monospace" font-size="12">',
        f'<title>{escape(name)}</title>',
        f'<style>{escape(_STYLE)}</style>',
        _text(MARGIN, 22, name, ' font-size="15"'),
        _text(MARGIN, 40, drawing.heading()),
        *_legend(),
        *drawing.parts,
        *[_text(MARGIN, below + number * ROW, note)
          for number, note in enumerate(notes)],
        '</svg>\n'])


def _notes(drawing):
    """What is not drawn, in words."""
    notes = []
    if not drawing.total:
        notes.append('There are no samples.')
    if drawing.n_narrow:
        notes.append(f'{drawing.n_narrow:,} frames narrower than {MIN_WIDTH} '
                     'px are not drawn.')
    if drawing.n_deep:
        notes.append(f'{drawing.n_deep:,} frames below row {MAX_ROWS:,} are '
                     'not drawn.')
    return notes


def _legend():
    x = MARGIN
    for name, class_, _ in _LEGEND:
        yield (f'<rect class="{class_}" x="{x}" y="50" width="12" '
               'height="12"/>')
        yield _text(x + 16, 60, name)
        x += 30 + int(len(name) * _CHAR)


def _text(x, y, text, more=''):
    return (f'<text class="h" x="{x}" y="{y}"{more}>'
            f'{escape(_cut(text, (WIDTH - 2 * MARGIN) / _CHAR))}</text>')


def _class_of(function):
    if function is None:
        return 'x'
    if function.kind == 'python':
        # Functions of a module are alike; hash() is not the same each time.
        shade = 0
        for char in function.module or function.filename:
            shade = (shade * 31 + ord(char)) & 0xffff
        return f'p{shade % _SHADES}'
    for begin, class_ in _WAITS.items():
        if function.kind == 'pseudo' and function.qualname.startswith(begin):
            return class_
    return _KINDS[function.kind]


def _fitting(name, function, width):
    """Return as much of a name as fits; its end says most of it."""
    space = (width - 2 * _INSET) / _CHAR
    if text_width(name) <= space:
        return name
    short = name if function is None else printable(function.qualname)
    cut = _cut(short, space)
    return cut if len(cut) > 2 or cut == short else ''


def _cut(text, space):
    """Return the beginning of a text, with '…' for what does not fit."""
    if text_width(text) <= space:
        return text
    kept = []
    for char in text:
        space -= text_width(char)
        if space < 1:
            break
        kept.append(char)
    return ''.join([*kept, '…'])
