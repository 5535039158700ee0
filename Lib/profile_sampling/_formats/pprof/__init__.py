"""pprof files: what their writer and their reader agree on."""

from profile_sampling._data.values import STATES, Process

# The state of older files for what is waiting or native by now.
BLOCKED = -1
# States as files spell them, by their numbers.
STATE_TEXTS = tuple([state.replace('_', ' ') for state in STATES])
KIND_PLACES = {'C': '<C>', 'operator': '<operator>', 'pseudo': ''}
# The first hidden comment; the number rises if their meaning changes.
MARK = '# profile_sampling 1'
# The key of the hidden comment that has the time line.
TIMELINE = 'timeline'
# The same of counters of tasks and requests.
LIVES = 'tasks'
# And of exact calls.
CALLS = 'calls'
# The same that says that samples that are idle have that state.
IDLE = 'idle is a state'
# The keys of those that say whose code a file is, and whether lines of mine
# are shown.
ORIGIN, HAS_MINE = 'origin', 'has_mine'
# The keys of those that name a key whose numbers are labels, and that say how
# values add up and what they are of.
KEY, VALUE = 'key', 'value'
# That of the one that says which process it was, if it was one.
PROCESS = 'process'
# That of the one that says when sessions were running.
COVERED = 'covered'


def process_text(process):
    """Return a Process as labels and comments spell it."""
    return f'{process.pid} {process.start_ns} {process.host}'.rstrip()


def process_of(text):
    """Return the Process of such a text; None if it is none."""
    pid, start_ns, host = [*text.split(' ', 2), '', ''][:3]
    numbers = [int(number) if number.isascii() and number.isdigit()
               and len(number) < 20 else 0 for number in (pid, start_ns)]
    return Process(numbers[0], host, numbers[1]) if numbers[0] else None
