"""Writer of collapsed stacks: a line 'root;...;leaf N' per stack.

N is what the profile is about: whole microseconds on the mode's own clock.
Counts would be wrong: a second off the GIL is one record.  Values that are no
times are as they are.  What rounding leaves of one line is
carried to the next, so that the file's sum is the profile's total to within
1 us; a stack that comes to no whole microsecond has no line.

The format has no escapes, and readers differ in what confuses them.  In a
frame, ';' becomes ':', because it separates frames; white space other than
a space, control characters and whatever cannot be shown or encoded become
backslash escapes; a '{' in front becomes '(', because some readers take it
for JSON; a space before digits at the end becomes '_', because some readers
take them for a second weight; an empty name becomes '[no name]'.
"""

from profile_sampling._data.values import NO_FRAMES, printable

# How much of a unit is 1 in the file.
_PER_UNIT = {'nanoseconds': 1000}
_NUMBER = '0123456789.'


def encode(tables, **options):
    """Return what render() does as bytes."""
    return render(tables, **options).encode()


def render(tables, *, threads=False):
    """Return the lines, sorted; with *threads* a thread is the root."""
    names = [frame_text(function.name) for function in tables.functions]
    frames = [names[function] for function, *_ in tables.frame_tuples()]
    nodes = tables.nodes_view()
    parents = nodes[0::2].tolist()
    frame_of_node = nodes[1::2].tolist()
    values = tables.own_column
    weights = {}
    for node, thread, value in zip(tables.column('stack'),
                                   tables.column('thread'), values):
        stack = []
        while node:
            stack.append(frames[frame_of_node[node]])
            node = parents[node]
        if not stack:
            stack.append(NO_FRAMES)
        if threads:
            stack.append(_thread_text(tables.threads[thread]))
        stack.reverse()
        line = ';'.join(stack)
        weights[line] = weights.get(line, 0) + value
    per_unit = _PER_UNIT.get(tables.value_types[tables.own].unit, 1)
    lines = []
    carried = 0
    for line in sorted(weights):
        units, carried = divmod(weights[line] + carried, per_unit)
        if units:
            lines.append(f'{line} {units}\n')
    return ''.join(lines)


def frame_text(name):
    """Spell a name so that every reader takes it for one frame."""
    text = printable(name).replace(';', ':').strip()
    if not text:
        return '[no name]'
    if text[0] == '{':
        text = '(' + text[1:]
    head = text.rstrip(_NUMBER)
    if head and head[-1] == ' ' and len(head) < len(text):
        text = f'{head[:-1]}_{text[len(head):]}'
    return text


def _thread_text(thread):
    if thread.name is None:
        return f'thread ({thread.ident})'
    return frame_text(f'thread ({thread.ident}): {thread.name}')
