"""Tasks of schedulers that are not asyncio's: trio's, and greenlets.

It imports neither of them: only who uses one has it.
"""

import sys

from profile_sampling import _core

_Task = _core.load().Task
# Between trio and Task.resume(): our method, and the one of trio that calls
# all instruments.
_TRIO_FRAMES = 2
# Between greenlet and Task.resume(): what it calls, and _resume().
_GREENLET_FRAMES = 2


class TrioInstrument:
    """What trio tells its instruments, for profiles.

    trio.run(main, instruments=[TrioInstrument()]) is all that is needed.
    Since when a task could have run is known from the moment that trio
    schedules it.
    """

    def __init__(self):
        self._tasks = {}

    def _of(self, task):
        found = self._tasks.get(task)
        if found is None:
            found = self._tasks[task] = _Task(task.coro, context=task.context)
        return found

    def task_scheduled(self, task):
        self._of(task).woken()

    def before_task_step(self, task):
        self._of(task).resume(skip_frames=_TRIO_FRAMES)

    def after_task_step(self, task):
        # One that ended in this step has been reported.
        found = self._tasks.get(task)
        if found is not None:
            found.suspend()

    def task_exited(self, task):
        found = self._tasks.pop(task, None)
        if found is not None:
            found.end()

    def after_run(self):
        self._tasks.clear()


class trace_greenlets:
    """Make greenlets of this thread tasks, for profiles, in a with block.

    For gevent, and for whoever else switches greenlets.  Since when a greenlet
    could have run is not known: it awaits until it is switched to.  gevent's
    hub, and what is no child of another greenlet, is no task.  Another
    function that was set by greenlet.settrace() is called as before.

    Raise RuntimeError when entered in a program that has not imported
    greenlet.
    """

    def __enter__(self):
        self._greenlet = sys.modules.get('greenlet')
        if self._greenlet is None:
            raise RuntimeError('nothing has imported greenlet: there are no '
                               'greenlets to trace')
        self._tasks = {}
        self._previous = self._greenlet.settrace(self._trace)
        self._resume(self._greenlet.getcurrent())
        return self

    def __exit__(self, *exc_info):
        self._greenlet.settrace(self._previous)
        for task in self._tasks.values():
            task.suspend()
        self._tasks.clear()

    def _is_task(self, greenlet):
        hub = sys.modules.get('gevent.hub')
        return greenlet.parent is not None and not (
            hub is not None and isinstance(greenlet, hub.Hub))

    def _resume(self, greenlet):
        if self._is_task(greenlet):
            task = self._tasks.get(greenlet)
            if task is None:
                task = self._tasks[greenlet] = _Task(_function_of(greenlet))
            task.resume(skip_frames=_GREENLET_FRAMES)

    def _leave(self, greenlet):
        task = self._tasks.get(greenlet)
        if task is None:
            return
        if greenlet.dead:
            del self._tasks[greenlet]
            task.end()
        else:
            task.suspend()

    def _trace(self, event, args):
        if event in ('switch', 'throw'):
            origin, target = args
            self._leave(origin)
            self._resume(target)
        if self._previous is not None:
            self._previous(event, args)


def _function_of(greenlet):
    """Return the function that it runs, or the greenlet if it hides it."""
    for name in '_run', 'run':
        function = getattr(greenlet, name, None)
        if function is not None:
            return getattr(function, '__func__', function)
    return greenlet
