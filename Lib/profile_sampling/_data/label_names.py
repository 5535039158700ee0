"""Names of the labels that the profiler itself puts on samples.

This file owns how they are spelt in pprof files, which programs cannot call
labels of their own.  It must not know what is in them.
"""

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
# What a sum of several processes has for the number of each.
PID_LABEL = 'pid'
# The name of the function that a task runs.
TASK_CLASS = 'task_class'
# What a request does after it was answered; see request().
ANSWERED = 'answered'
# What label_values() and group_by() call tasks; no file has it.
TASKS = 'task_name'

OF_SAMPLES = (STATE, PROCESS, INTERPRETER, THREAD_NAME, THREAD_ID, THREAD_NATIVE_ID,
              TASK_NAME, TASK_ID, HOLDER, HOLDER_PLACE, HOLDER_SITE,
              HOLDER_SITE_PLACE, HOLDER_INTERPRETER, HOLDER_THREAD,
              HOLDER_THREAD_ID, HOLDER_THREAD_NATIVE_ID)
OF_INSTRUCTIONS = OPCODE, OFFSET
OURS = *OF_SAMPLES, *OF_INSTRUCTIONS
RESERVED = (*OURS, TASK_CLASS, ANSWERED, TASKS)

# Before a name where keys and labels are named: it is a label's.
_LABEL = 'label:'


def filed(label):
    """Return how our files spell a label; label_of() is the way back.

    Another tool's file may have called one as we call ours.
    """
    return named(label, OURS)


def label_of(key):
    """Return the label that a key names, which is none of other meaning."""
    return key.removeprefix(_LABEL)


def named(label, others):
    """Return the key that names a label where *others* mean something else."""
    if label in others or label.startswith(_LABEL):
        return _LABEL + label
    return label
