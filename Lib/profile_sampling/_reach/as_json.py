"""A look at a process, as JSON.

What is not known is absent; new keys may come.
"""

import platform
import time

from profile_sampling._reach.look import Line, answers

VERSION = 1


def dump(look, sources):
    """Return the object of a Look."""
    process = look.process
    numbers = {id(thread): thread.native_id for thread in look.threads}
    found = {
        'format': 'sampleprof-dump', 'version': VERSION,
        'at': timestamp(look.at), 'host': platform.node(),
        'process': {'pid': process.pid, 'pid_inside': process.pid_inside,
                    'name': process.name, 'command': process.command,
                    'python': platform.python_version(),
                    'up_s': round(process.up_s, 2)},
        'answered_by': 'handler', 'exact': True,
        'took_s': round(look.took_s, 9), 'cost_s': round(look.cost_s, 9),
        'not_known': _not_known(look),
        'answers': {key: {'kind': answer.kind} | answer.more
                    | {'text': answer.forms[0]}
                    for key, answer in answers(look).items()},
        'gil': _gil(look),
        'threads': [_thread(thread, sources) for thread in look.threads],
        'locks': _locks(look),
        'circles': [[numbers[id(thread)] for thread in circle]
                    for circle in look.circles]}
    if look.tasks is not None:
        found['tasks'] = [_task(task, sources) for task in look.tasks]
    if look.requests:
        found['requests'] = [_request(request) for request in look.requests]
    return found


def timestamp(at):
    whole = time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(at))
    return f'{whole}.{int(at % 1 * 1000):03d}Z'


def _not_known(look):
    found = []
    if look.tasks is None:
        found.append('tasks: the GIL is held')
    if look.num_other_gils:
        found.append(f'interpreters with a GIL of their own: '
                     f'{look.num_other_gils}')
    if look.is_cut:
        found.append('not all threads and frames: too many')
    return found


def _gil(look):
    found = {'held': look.holder is not None,
             'waiters': [thread.native_id for thread in look.waiters]}
    if look.holder is not None:
        found['thread'] = look.holder.native_id
        if look.held_s is not None:
            found |= {'since_s': look.held_s, 'since_is': 'at-least'}
    return found


def _thread(thread, sources):
    found = {'id': thread.native_id, 'native_id': thread.native_id,
             'name': thread.name, 'state': thread.state,
             'idle': thread.is_idle, 'has_gil': thread.has_gil}
    if thread.since_s is not None:
        found |= {'since_s': thread.since_s, 'since_is': thread.since_is}
    if thread.labels:
        found['labels'] = thread.labels
    if thread.route is not None:
        found['route'] = thread.route
    if thread.request is not None:
        found['under_way_s'] = thread.request.age_s
    if thread.waits_for is not None:
        found['waits_for'] = thread.waits_for.as_json()
    if thread.has:
        found['has_locks'] = [lock.name for lock in thread.has]
    if thread.wants is not None:
        found['wants_lock'] = thread.wants.name
    found['frames'] = [_frame(line, sources) for line in thread.lines]
    return found


def _frame(line, sources):
    if not isinstance(line, Line):
        return {'left_out': line.count}
    function = line.function
    if function.kind != 'python':
        return {'function': function.name, 'c': True}
    found = {'file': function.filename, 'line': line.line,
             'function': function.qualname, 'mine': line.is_mine}
    if function.module:
        found['module'] = function.module
    source = sources.line(function.filename, line.line)
    return found | ({'source': source} if source else {})


def _task(task, sources):
    found = {'id': task.number, 'name': task.name, 'state': task.state,
             'awaits': [_frame(line, sources) for line in task.lines]}
    if task.waits_for is not None:
        found['waits_for'] = {'kind': 'task', 'task': task.waits_for.number}
    elif task.awaits:
        found['waits_for'] = {'kind': 'other', 'name': task.awaits}
    return found


def _request(request):
    found = {'route': request.route, 'under_way_s': request.age_s}
    if request.task is not None:
        found['task'] = request.task.number
    elif request.thread is not None:
        found['thread'] = request.thread.native_id
    return found


def _locks(look):
    found = {}
    for thread in look.threads:
        if thread.wants is not None:
            lock = found.setdefault(thread.wants.address, {
                'id': thread.wants.name, 'waiters': []})
            lock['waiters'].append(thread.native_id)
            if thread.wants.owner is not None:
                lock['owner'] = thread.wants.owner.native_id
    return list(found.values())
