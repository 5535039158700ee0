"""pprof files: what their writer and their reader agree on.

This package owns the meaning of pprof's fields here.  It must not know how
sums over samples are made.
"""

from profile_sampling._data.values import STATES

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
# The same that says that samples that are idle have that state.
IDLE = 'idle is a state'
# The keys of those that say whose code a file is, and whether lines of mine
# are shown.
ORIGIN, HAS_MINE = 'origin', 'has_mine'
# The keys of those that name a key whose numbers are labels, and that say how
# values add up and what they are of.
KEY, VALUE = 'key', 'value'
# That of the one that says when sessions were running.
COVERED = 'covered'
