"""Telling labels from options that were misspelt.

This file owns which names nobody means as a label.  It must not know what
the options do.  It is apart because most programs give profile() no labels.
"""

# What is likely to be meant by it, in the words of the message.
_MEANT = {
    'rate': 'rate_hz', 'hz': 'rate_hz', 'hertz': 'rate_hz',
    'freq': 'rate_hz', 'frequency': 'rate_hz',
    'samplerate': 'rate_hz', 'samplingrate': 'rate_hz',
    'interval': 'rate_hz, in samples per second',
    'period': 'rate_hz, in samples per second',
    'depth': 'depth_frames', 'frames': 'depth_frames',
    'maxdepth': 'depth_frames', 'stackdepth': 'depth_frames',
    'maxframes': 'depth_frames',
    'output': 'out', 'outfile': 'out', 'outputfile': 'out',
    'file': 'out', 'filename': 'out',
    'format': 'out, whose extension chooses the format',
    'clock': 'mode', 'timer': 'mode', 'modus': 'mode',
    'calls': "names='calls'", 'opcodes': "names='opcodes'",
    'signum': 'signal', 'signals': 'signal',
    'defer': 'start(defer=True)', 'deferred': 'start(defer=True)',
    'label': 'labels as arguments of their own, such as route=...',
    'labels': 'labels as arguments of their own, such as **labels',
    'tags': 'labels as arguments of their own, such as **tags',
}
# Short ones are too near to words that can be labels, such as "node".
_OPTIONS = ('rate_hz', 'depth_frames', 'signal')


def check(name):
    """Raise TypeError if the name of a label looks like an option."""
    plain = name.lower().replace('_', '')
    meant = _MEANT.get(plain)
    if meant is None:
        for option in (*_OPTIONS, 'mode', 'names', 'out'):
            its_plain = option.replace('_', '')
            if plain == its_plain or (
                    option in _OPTIONS and _is_one_edit(plain, its_plain)):
                meant = option
                break
        else:
            return
    raise TypeError(f'profile() has no option {name!r}; did you mean '
                    f'{meant}?  As a label, put it on with label()')


def _is_one_edit(a, b):
    """Are they a letter more, less or different, or two swapped, apart?"""
    if len(a) > len(b):
        a, b = b, a
    at = 0
    while at < len(a) and a[at] == b[at]:
        at += 1
    if len(a) < len(b):
        return a[at:] == b[at + 1:]
    return (a[at + 1:] == b[at + 1:]
            or (a[at + 1:at + 2] + a[at:at + 1] + a[at + 2:]) == b[at:])
