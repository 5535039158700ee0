"""Names of the labels that the profiler itself puts on samples."""

STATE = 'state'
PROCESS = 'process id'
INTERPRETER = 'interpreter'
THREAD_NAME = 'thread name'
THREAD_ID = 'thread id'
THREAD_NATIVE_ID = 'thread native id'
TASK_NAME = 'task name'
TASK_ID = 'task id'
HOLDER = 'gil holder'
HOLDER_PLACE = 'gil holder place'
HOLDER_SITE = 'gil holder site'
HOLDER_SITE_PLACE = 'gil holder site place'
HOLDER_INTERPRETER = 'gil holder interpreter'
HOLDER_THREAD = 'gil holder thread'
HOLDER_THREAD_ID = 'gil holder thread id'
HOLDER_THREAD_NATIVE_ID = 'gil holder thread native id'
OPCODE = 'opcode'
OFFSET = 'instruction offset'
# The name of the function that a task runs.
TASK_CLASS = 'task_class'
# What a request does after it was answered; see request().
ANSWERED = 'answered'
# Of which type the object in a sampled block is.
BLOCK_TYPE = 'block type'
# A row of labels without a key is an asyncio task.
TASKS = None

OF_SAMPLES = (STATE, PROCESS, INTERPRETER, THREAD_NAME, THREAD_ID, THREAD_NATIVE_ID,
              TASK_NAME, TASK_ID, HOLDER, HOLDER_PLACE, HOLDER_SITE,
              HOLDER_SITE_PLACE, HOLDER_INTERPRETER, HOLDER_THREAD,
              HOLDER_THREAD_ID, HOLDER_THREAD_NATIVE_ID)
OF_INSTRUCTIONS = OPCODE, OFFSET
OURS = *OF_SAMPLES, *OF_INSTRUCTIONS
RESERVED = (*OURS, TASK_CLASS, ANSWERED, BLOCK_TYPE)

# Keys that are no labels; a label of such a name is 'label:task'.
TASK_KEY = 'task'
OWN_KEYS = frozenset((TASK_KEY, 'thread', 'state', 'file', 'pid'))

# Before a name where keys and labels are named: it is a label's.
_LABEL = 'label:'


def filed(label):
    """Return how our files spell a label; without_mark() is the way back.

    Another tool's file may have called one as we call ours.
    """
    return named(label, OURS)


def without_mark(key):
    """Return the name of a label, which has no other meaning."""
    return key.removeprefix(_LABEL)


def label_of(key):
    """Return the label that a key of group_by() names, TASKS for tasks."""
    return TASKS if key == TASK_KEY else without_mark(key)


def key_of(label):
    """Return the key that names a label: the other way of label_of()."""
    return TASK_KEY if label == TASKS else named(label, OWN_KEYS)


def named(label, others):
    """Return the key that names a label where *others* mean something else."""
    if label in others or label.startswith(_LABEL):
        return _LABEL + label
    return label
