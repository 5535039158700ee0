"""The states of samples: what they are called and how they are shown.

The one table of them, which reports, help, viewers and the page read (`make
page` hands it to the page's script).  It is loaded before a program runs, and
so needs nothing else.
"""


class State:
    """A state.

    name     in the API and, with spaces, in files
    word     what people read
    heading  of its column in the report; None: it has none
    order    its place where states are shown
    css      the class of its colour on the page
    color    its colour in the Firefox Profiler; None: that of the function
    letter   its letter in bars of a terminal; None: it is in none
    tip      what it means
    of       'threads'; 'tasks', which are on no clock of a thread; 'nothing':
             it is on no line of the program's
    """

    def __init__(self, name, word, heading, order, css, color, letter, tip,
                 of='threads'):
        self.name = name
        self.word = word
        self.heading = heading
        self.order = order
        self.css = css
        self.color = color
        self.letter = letter
        self.tip = tip
        self.of = of


# In the order of the core's numbers, which "idle" is behind: see idle.py.
TABLE = (
    State('running', 'running', 'run', 0, 'run', None, 'r',
          'On a CPU, in Python or in C code that keeps the GIL.'),
    State('waiting', 'waiting', 'waiting', 2, 'wait', 'brown', 'w',
          'Not on a CPU and without the GIL: waits for a socket, a disk, a '
          'lock or a sleep.'),
    State('gil_wait', 'GIL wait', 'GIL', 3, 'gil', 'red', 'G',
          'Could run, but another thread held the GIL.'),
    State('gc', 'GC', 'GC', 6, 'gc', 'orange', 'x',
          "Python's garbage collector."),
    State('lost', 'lost', None, 10, 'queue', 'darkgrey', None,
          'The stacks were lost, as the tables were full or the thread could '
          'not be reached.', 'nothing'),
    State('unsampled', 'unsampled', None, 9, 'queue', 'transparent', None,
          'Ran too shortly to be sampled: only how long is known.',
          'nothing'),
    State('custom', 'counted', None, 11, 'queue', 'green', None,
          'What the program counted itself; it weighs no time.', 'nothing'),
    State('asleep_with_gil', 'asleep with GIL', 'asleep', 5, 'slp', 'purple',
          'S',
          'Waits while it keeps the GIL, so that no thread can run Python. '
          'Nearly always a fault in a C extension.'),
    State('awaiting', 'awaiting', None, 7, 'wait', None, 'w',
          'A task that waits for something, and for no thread.', 'tasks'),
    State('loop_wait', 'loop wait', None, 8, 'loop', None, 'L',
          'A task that is ready to go on, but another one kept the event loop '
          'busy.', 'tasks'),
    State('native', 'native', 'native', 1, 'nat', 'magenta', 'n',
          'On a CPU, in C code that released the GIL (NumPy, zlib). Other '
          'threads can run Python meanwhile.'),
    State('cpu_wait', 'CPU wait', 'CPU wait', 4, 'cpu', 'lightred', 'C',
          'Could run, but the machine gave it no CPU: other processes, or a '
          "container's limit."),
    State('idle', 'idle', 'idle', 12, 'idle', None, '-',
          'Waits because there is nothing to do: a worker without work, an '
          'event loop without requests. Left out unless it is asked for.'))
SHOWN = tuple(sorted(TABLE, key=lambda state: state.order))


def names_of(what):
    """Return the names of the states that are of threads, tasks or nothing,
    in the order in which they are shown."""
    return [state.name for state in SHOWN if state.of == what]
