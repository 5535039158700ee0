/* asyncio's tasks, as the sampling profiler learns of them.

   Owns what the profiler has to know of a Task.  Must not know what becomes of
   it.  A part of Modules/_asynciomodule.c, which alone includes it, below the
   types that are its own. */

/* What a task waits for. */
static PyObject *
sampled_awaited(PyObject *task)
{
    asyncio_state *state = get_asyncio_state_by_def(task);
    PyObject *awaited = ((TaskObj *)task)->task_fut_waiter;
    int is_task = awaited != NULL && Task_Check(state, awaited);
    return is_task ? ((TaskObj *)awaited)->task_coro : awaited;
}

static const struct _sampling_task_layout sampled_layout = {
    .coroutine = offsetof(TaskObj, task_coro),
    .context = offsetof(TaskObj, task_context),
    .name = offsetof(TaskObj, task_name),
    .record = offsetof(TaskObj, task_sampled),
    .awaited = sampled_awaited,
};

/* A task, or NULL: of another type than ours, it is nothing but an object. */
static _PySampling_TaskInfo *
sampled_task(asyncio_state *state, PyObject *task, _PySampling_TaskInfo *info)
{
    info->task = task;
    if (task != NULL && Task_Check(state, task)) {
        info->layout = &sampled_layout;
        info->state = (int)((TaskObj *)task)->task_state;
    }
    return task != NULL ? info : NULL;
}

#define SAMPLED_TASK(STATE, TASK) \
    sampled_task(STATE, TASK, &(_PySampling_TaskInfo){0})

#define SAMPLED_ENTER(STATE, TASK) \
    do { \
        _PySampling_NoteTaskLayout(&sampled_layout); \
        _PySampling_EnterTask(SAMPLED_TASK(STATE, TASK)); \
    } while (0)
/* NULL: it was not left. */
#define SAMPLED_LEAVE(STATE, TASK) \
    do { \
        if ((TASK) != NULL) { \
            _PySampling_LeaveTask(SAMPLED_TASK(STATE, TASK)); \
        } \
    } while (0)

/* `LEFT` may be None; NULL: nothing was swapped. */
#define SAMPLED_SWAP(STATE, LEFT, ENTERED) \
    do { \
        if ((LEFT) != NULL) { \
            _PySampling_SwapTask(SAMPLED_TASK(STATE, LEFT), \
                                 SAMPLED_TASK(STATE, ENTERED)); \
        } \
    } while (0)

static PyMethodDef TaskWakeupDef;

/* `func` is to be called soon: every task that is new, or that its future
   wakes, passes here.  Both kinds of functions are of our own Task only. */
static void
sampled_call_soon(asyncio_state *state, PyObject *func)
{
    PyObject *task = NULL;
    if (Py_IS_TYPE(func, state->TaskStepMethWrapper_Type)) {
        task = (PyObject *)((TaskStepMethWrapper *)func)->sw_task;
    }
    else if (PyCFunction_Check(func)
             && ((PyCFunctionObject *)func)->m_ml == &TaskWakeupDef)
    {
        task = PyCFunction_GET_SELF(func);
    }
    if (task != NULL) {
        _PySampling_TaskInfo info = {
            .task = task, .layout = &sampled_layout};
        _PySampling_TaskWoken(&info);
    }
}
#define SAMPLED_CALL_SOON(STATE, FUNC) \
    _PySampling_IF_ACTIVE(sampled_call_soon(STATE, FUNC))
