/* Sampling profiler: which task a thread is in.

   Owns the hooks of asyncio's tasks.  Must not know what a sample makes of it
   (tables/labels.c).

   Nothing is kept while nobody profiles.  Who starts a session enters the task
   it is in (_give_task() of profile_sampling/_core.py); what other threads are
   in, or loops around its own, is seen when they enter their next task. */

#include "Python.h"

#include "pycore_pystate.h"           // _PyThreadState_GET()
#include "pycore_tstate.h"            // _PyThreadStateImpl

#include "base/common.h"

/* A task in whose step the thread runs another loop. */
struct _sampling_outer_task {
    PyObject *task;                         // owned
    PyObject **name;
    struct _sampling_outer_task *outer;     // owned
};

static int
is_entered(const _PyThreadStateImpl *impl, PyObject *task)
{
    if (impl->sampling.task == task) {
        return 1;
    }
    const struct _sampling_outer_task *outer = impl->sampling.outer_tasks;
    while (outer != NULL && outer->task != task) {
        outer = outer->outer;
    }
    return outer != NULL;
}

/* Without memory the outer task is forgotten: its samples will have none. */
static void
enter_task(_PyThreadStateImpl *impl, PyObject *task, PyObject **name)
{
    PyObject *current = impl->sampling.task;
    if (current != NULL) {
        struct _sampling_outer_task *outer = malloc(sizeof(*outer));
        if (outer != NULL) {
            *outer = (struct _sampling_outer_task){
                Py_NewRef(current), impl->sampling.task_name,
                impl->sampling.outer_tasks};
            impl->sampling.outer_tasks = outer;
        }
    }
    impl->sampling.task_name = name;
    Py_XSETREF(impl->sampling.task, Py_NewRef(task));
}

static void
leave_task(_PyThreadStateImpl *impl)
{
    struct _sampling_outer_task *outer = impl->sampling.outer_tasks;
    if (outer == NULL) {
        Py_CLEAR(impl->sampling.task);
        return;
    }
    impl->sampling.outer_tasks = outer->outer;
    impl->sampling.task_name = outer->name;
    Py_SETREF(impl->sampling.task, outer->task);
    free(outer);
}

void
_PySampling_ForgetTasks(PyThreadState *tstate)
{
    _PyThreadStateImpl *impl = (_PyThreadStateImpl *)tstate;
    while (impl->sampling.task != NULL) {
        leave_task(impl);
    }
}

void
_PySampling_SwapTask(PyObject *left, PyObject *entered, PyObject **name)
{
    PyThreadState *tstate = _PyThreadState_GET();
    _PyThreadStateImpl *impl = (_PyThreadStateImpl *)tstate;
    if (!_PySampling_ACTIVE() && impl->sampling.task == NULL
        && !_Py_atomic_load_int_relaxed(&_PyRuntime.sampling.has_session))
    {
        return;
    }
    _PySampling_BeforeContextChange(tstate);
    if (left != NULL && left == impl->sampling.task) {
        leave_task(impl);
    }
    else if (entered == NULL) {
        // Not the one that was entered last, as where greenlets switch: no
        // name is better than a wrong one.
        _PySampling_ForgetTasks(tstate);
    }
    if (entered != NULL && !is_entered(impl, entered)) {
        enter_task(impl, entered, name);
    }
}
