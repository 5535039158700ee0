/* Sampling profiler: which task a thread is in, or works for.

   Owns the hooks of asyncio's loops and of executors.  Must not know what a
   sample makes of it (tables/labels.c), or what is known of a task
   (task/life.c).

   What a task gives to an executor takes a copy of what is known of the task
   along, and no reference: neither lives longer for it.

   Nothing is kept while nobody profiles.  Who starts a session enters the task
   it is in (_give_task() of profile_sampling/_core.py); what other threads are
   in, or loops around its own, is seen when they enter their next task. */

#include "Python.h"

#include "pycore_pystate.h"           // _PyThreadState_GET()
#include "pycore_tstate.h"            // _PyThreadStateImpl

#include "sample/buffer.h"            // _PySampling_HasCaptures()
#include "tables/labels.h"
#include "task/task.h"

/* The thread's record, if it is sampled now. */
static _PySampling_Thread *
sampled_thread(PyThreadState *tstate)
{
    _PySampling_Thread *thread = _PySampling_RECORD_OF(tstate);
    if (!_PySampling_ACTIVE() || thread == NULL
        || !_PySampling_IN_EPOCH(thread) || thread->excluded)
    {
        return NULL;
    }
    return thread;
}

/* A task in whose step the thread runs another loop. */
struct _sampling_outer_task {
    struct _sampling_task_info info;        // owned
    struct _sampling_outer_task *outer;     // owned
};

static int
is_entered(const _PyThreadStateImpl *impl, PyObject *task)
{
    if (impl->sampling.entered.task == task) {
        return 1;
    }
    const struct _sampling_outer_task *outer = impl->sampling.outer_tasks;
    while (outer != NULL && outer->info.task != task) {
        outer = outer->outer;
    }
    return outer != NULL;
}

/* Without memory the outer task is forgotten: its samples will have none.
   Returns it then; the reference is the caller's. */
static PyObject *
push_task(_PyThreadStateImpl *impl, const _PySampling_TaskInfo *info)
{
    PyObject *forgotten = impl->sampling.entered.task;
    if (forgotten != NULL) {
        struct _sampling_outer_task *outer = malloc(sizeof(*outer));
        if (outer != NULL) {
            *outer = (struct _sampling_outer_task){
                impl->sampling.entered, impl->sampling.outer_tasks};
            impl->sampling.outer_tasks = outer;
            forgotten = NULL;       // it has the reference now
        }
    }
    impl->sampling.entered = *info;
    Py_INCREF(info->task);
    return forgotten;
}

/* Returns what was entered last; the reference is the caller's. */
static PyObject *
pop_task(_PyThreadStateImpl *impl)
{
    PyObject *left = impl->sampling.entered.task;
    struct _sampling_outer_task *outer = impl->sampling.outer_tasks;
    if (outer == NULL) {
        impl->sampling.entered.task = NULL;
    }
    else {
        impl->sampling.outer_tasks = outer->outer;
        impl->sampling.entered = outer->info;
        free(outer);
    }
    return left;
}

void
_PySampling_ForgetTasks(PyThreadState *tstate)
{
    _PyThreadStateImpl *impl = (_PyThreadStateImpl *)tstate;
    while (impl->sampling.entered.task != NULL) {
        Py_DECREF(pop_task(impl));
    }
}

/* Their death may run code of the program, which may enter others. */
static void
drop_abandoned(_PyThreadStateImpl *impl)
{
    while (impl->sampling.entered.task != NULL
           && _PySampling_IsAbandoned(&impl->sampling.entered))
    {
        Py_DECREF(pop_task(impl));
    }
}

/* Nobody profiles, and the thread is in no task of a session before. */
static int
is_idle(const _PyThreadStateImpl *impl)
{
    return !_PySampling_ACTIVE() && impl->sampling.entered.task == NULL
        && _Py_atomic_load_ptr_relaxed(&_PyRuntime.sampling.session) == NULL;
}

/* What waits to be recorded belongs to the task before.  Returns the thread's
   record, in a hook; NULL: it is not sampled. */
static _PySampling_Thread *
begin_switch(PyThreadState *tstate)
{
    _PySampling_DrainBeforeContextChange(tstate);
    _PySampling_Thread *thread = sampled_thread(tstate);
    if (thread != NULL) {
        _PySampling_ENTER_HOOK(thread);
        // A signal may have come since.
        if (_PySampling_HasCaptures(tstate)) {
            _PySampling_Drain(tstate, thread);
        }
    }
    return thread;
}

/* The death of a task may run code of the program: not in the hook. */
static void
end_switch(_PySampling_Thread *thread, PyObject *dropped)
{
    if (thread != NULL) {
        _PySampling_LEAVE_HOOK(thread);
    }
    Py_XDECREF(dropped);
}

/* Of memory alone nobody asks what a task spends its life on. */
static void
task_entered(PyThreadState *tstate, _PySampling_Thread *thread,
             const _PySampling_TaskInfo *task)
{
    if (_PyRuntime.sampling.times_tasks) {
        _PySampling_TaskEntered(tstate, thread, task);
    }
}

static void
task_left(_PySampling_Thread *thread, const _PySampling_TaskInfo *task)
{
    if (_PyRuntime.sampling.times_tasks) {
        _PySampling_TaskLeft(thread, task);
    }
}

/* A task that runs another loop is not running meanwhile. */
static void
enter(PyThreadState *tstate, const _PySampling_TaskInfo *task)
{
    _PyThreadStateImpl *impl = (_PyThreadStateImpl *)tstate;
    drop_abandoned(impl);
    if (is_entered(impl, task->task)) {
        return;
    }
    _PySampling_Thread *thread = begin_switch(tstate);
    if (thread != NULL) {
        if (impl->sampling.entered.task != NULL) {
            task_left(thread, &impl->sampling.entered);
        }
        task_entered(tstate, thread, task);
    }
    end_switch(thread, push_task(impl, task));
}

void
(_PySampling_EnterTask)(const _PySampling_TaskInfo *task)
{
    PyThreadState *tstate = _PyThreadState_GET();
    if (!is_idle((_PyThreadStateImpl *)tstate)) {
        enter(tstate, task);
    }
}

/* Returns 0 if it is not the one that was entered last. */
static int
leave(PyThreadState *tstate, const _PySampling_TaskInfo *task)
{
    _PyThreadStateImpl *impl = (_PyThreadStateImpl *)tstate;
    drop_abandoned(impl);
    _PySampling_Thread *thread = begin_switch(tstate);
    if (thread != NULL && task != NULL) {
        task_left(thread, task);
    }
    if (task == NULL || task->task != impl->sampling.entered.task) {
        end_switch(thread, NULL);
        return 0;
    }
    PyObject *left = pop_task(impl);
    if (thread != NULL && impl->sampling.entered.task != NULL) {
        task_entered(tstate, thread, &impl->sampling.entered);
    }
    end_switch(thread, left);
    return 1;
}

void
(_PySampling_LeaveTask)(const _PySampling_TaskInfo *task)
{
    PyThreadState *tstate = _PyThreadState_GET();
    if (!is_idle((_PyThreadStateImpl *)tstate) && !leave(tstate, task)) {
        // As where greenlets switch: no name is better than a wrong one.
        _PySampling_ForgetTasks(tstate);
    }
}

/* The thread may run another loop in the task that is left: then it stays
   there. */
void
(_PySampling_SwapTask)(const _PySampling_TaskInfo *left,
                       const _PySampling_TaskInfo *entered)
{
    PyThreadState *tstate = _PyThreadState_GET();
    _PyThreadStateImpl *impl = (_PyThreadStateImpl *)tstate;
    if (left->task == entered->task
        && impl->sampling.entered.task == entered->task
        && _PySampling_TaskRuns(entered))
    {
        return;     // who begins to profile says what it is in
    }
    if (!is_idle(impl)) {
        // Once only: the thread may be in no task now, and a session that
        // begins later is to find the one that is entered.
        (void)leave(tstate, left);
        enter(tstate, entered);
    }
}


/* Work that a task gives to other threads. */

/* What waits to be recorded belongs to what the thread worked for before. */
static void
set_work(const struct _sampling_work *work)
{
    PyObject *exc = PyErr_GetRaisedException();
    PyThreadState *tstate = _PyThreadState_GET();
    _PySampling_DrainBeforeContextChange(tstate);
    _PySampling_Thread *thread = sampled_thread(tstate);
    if (thread != NULL) {
        _PySampling_ENTER_HOOK(thread);
        _PySampling_Drain(tstate, thread);
    }
    ((_PyThreadStateImpl *)tstate)->sampling.work = *work;
    if (thread != NULL) {
        _PySampling_LEAVE_HOOK(thread);
    }
    PyErr_SetRaisedException(exc);
}

/* A function with the task that has given it away: (work, function). */
static PyObject *
call_for_task(PyObject *self, PyObject *args, PyObject *kwargs)
{
    struct _sampling_work before =
        ((_PyThreadStateImpl *)_PyThreadState_GET())->sampling.work;
    struct _sampling_work work;
    memcpy(&work, PyBytes_AS_STRING(PyTuple_GET_ITEM(self, 0)), sizeof(work));
    set_work(&work);
    PyObject *result = PyObject_Call(PyTuple_GET_ITEM(self, 1), args, kwargs);
    set_work(&before);
    return result;
}

static PyMethodDef CALL_FOR_TASK = {
    "_for_sampled_task", (PyCFunction)(void (*)(void))call_for_task,
    METH_VARARGS | METH_KEYWORDS, NULL};

PyObject *
_PySampling_ForTask(PyObject *Py_UNUSED(module), PyObject *function)
{
    PyThreadState *tstate = _PyThreadState_GET();
    _PyThreadStateImpl *impl = (_PyThreadStateImpl *)tstate;
    _PySampling_Thread *thread = sampled_thread(tstate);
    if (thread == NULL || (impl->sampling.entered.task == NULL
                           && impl->sampling.work.serial == 0))
    {
        return Py_NewRef(function);
    }
    struct _sampling_work work = {0};
    _PySampling_ENTER_HOOK(thread);
    struct _sampling_tables *tables = _PySampling_OpenTables(thread);
    if (tables != NULL) {
        work = _PySampling_WorkOf(tables, tstate);
        _PySampling_CloseTables();
    }
    _PySampling_LEAVE_HOOK(thread);
    PyObject *self = Py_BuildValue("(y#O)", &work, (Py_ssize_t)sizeof(work),
                                   function);
    if (self == NULL) {
        return NULL;
    }
    PyObject *result = PyCFunction_New(&CALL_FOR_TASK, self);
    Py_DECREF(self);
    return result;
}
