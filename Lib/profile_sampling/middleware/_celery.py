"""Labels for the tasks of Celery."""

from profile_sampling._recording import labels
from profile_sampling._recording.requests import request


def label_celery_tasks(label='job'):
    """Label the samples of each Celery task with its name.

    Call it where the application is made, so that the processes of a pool
    inherit it; called again, it changes nothing.  The label holds from
    task_prerun to task_postrun, which Celery sends however the task ends.

    Raise ValueError if *label* is a name that is the profiler's own.
    """
    from celery import signals
    labels.label(**{label: ''})
    running = {}            # by id of the request, which is alive meanwhile

    def begin(task, **_):
        block = request(**{label: task.name})
        block.__enter__()
        running[id(task.request)] = block

    def end(task, **_):
        block = running.pop(id(task.request), None)
        if block is not None:
            block.__exit__(None, None, None)

    for signal, receiver in ((signals.task_prerun, begin),
                             (signals.task_postrun, end)):
        signal.connect(receiver, weak=False, dispatch_uid=__name__)
