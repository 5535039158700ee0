/* Sampling profiler: who counts calls, from when to when.

   Owns the tool of sys.monitoring and which events it gets.  Must not know
   what an event is counted as (calls/count.c). */

#include "Python.h"

#include "pycore_instruments.h"       // _PyMonitoring_SetEvents()
#include "pycore_interp.h"            // PyInterpreterState.sampling

#include "../calls/calls.h"
#include "control.h"

#define EVENT(NAME) (1 << PY_MONITORING_EVENT_##NAME)

#define PYTHON_EVENTS \
    (EVENT(PY_START) | EVENT(PY_RESUME) | EVENT(PY_THROW) \
     | EVENT(PY_RETURN) | EVENT(PY_YIELD) | EVENT(PY_UNWIND))

/* Those of all code.  Watched functions have events of their own. */
static _PyMonitoringEventSet
events_of(_PySampling_CountMode mode)
{
    switch (mode) {
    case _PySampling_COUNT_ALL:
        return PYTHON_EVENTS | EVENT(CALL);
    case _PySampling_COUNT_PYTHON:
        return PYTHON_EVENTS;
    default:
        return 0;
    }
}

/* 0 and 1 are for debuggers and coverage, 2 is cProfile's, which fails if it
   is taken, 5 is set aside for optimizers, and who wants just any takes 3 or
   4. */
static const int tools[] = {5, 4, 3, 2};

static int
tool_of(PyInterpreterState *interp)
{
    int tool = -1;
    for (unsigned int bit = interp->sampling.calls_tool; bit != 0; bit >>= 1) {
        tool++;
    }
    return tool;
}

static _PySampling_Status
take_tool(PyInterpreterState *interp, struct _sampling_calls *calls)
{
    for (size_t i = 0; i < Py_ARRAY_LENGTH(tools); i++) {
        PyObject **name = &interp->monitoring_tool_names[tools[i]];
        if (*name == NULL) {
            *name = PyUnicode_FromString("profile_sampling");
            if (*name == NULL) {
                PyErr_Clear();
                return _PySampling_ERR_NO_MEMORY;
            }
            interp->sampling.calls_tool = (uint8_t)(1 << tools[i]);
            calls->tool_slot = name;
            Py_XSETREF(calls->tool_name, Py_NewRef(*name));
            return _PySampling_OK;
        }
    }
    return _PySampling_ERR_NO_TOOL_ID;
}

/* Has another tool taken the id, or its events?  Of the former the events
   tell, too, if there are any. */
static void
look_for_loss(PyInterpreterState *interp, struct _sampling_calls *calls)
{
    uint8_t own = interp->sampling.calls_tool;
    if (own != 0
        && (_PySampling_CountLost(calls)
            || (calls->mode >= _PySampling_COUNT_PYTHON
                && !(interp->monitors.tools[PY_MONITORING_EVENT_PY_START]
                     & own))))
    {
        _PySampling_CountEndLost(interp);
    }
}

/* Another tool that took the id keeps it. */
static void
give_tool_back(PyInterpreterState *interp, struct _sampling_calls *calls)
{
    if (calls->tool_name != NULL && !_PySampling_CountLost(calls)) {
        Py_CLEAR(*calls->tool_slot);
    }
    Py_CLEAR(calls->tool_name);
    interp->sampling.calls_tool = 0;
}

static int
set_events(int tool, _PyMonitoringEventSet events)
{
    if (_PyMonitoring_SetEvents(tool, events) == 0) {
        return 1;
    }
    PyErr_Clear();
    return 0;
}

static int
set_local_events(PyCodeObject *code, int tool, _PyMonitoringEventSet events)
{
    if (_PyMonitoring_SetLocalEvents(code, tool, events) == 0) {
        return 1;
    }
    PyErr_Clear();
    return 0;
}

static _PySampling_CountMode
mode_of_users(const struct _sampling_calls *calls)
{
    int mode = _PySampling_COUNT_ALL;
    while (mode > _PySampling_COUNT_OFF && calls->num_users[mode] == 0) {
        mode--;
    }
    return mode;
}

static void
end_watches(struct _sampling_calls *calls, int tool)
{
    struct llist_node *node;
    llist_for_each(node, &calls->records) {
        struct _sampling_counted *record =
            llist_data(node, struct _sampling_counted, link);
        if (record->is_watched || record->is_import) {
            (void)set_local_events(record->code, tool, 0);
        }
    }
}

/* No other thread runs in between: the stacks are read as they are when the
   events begin. */
static _PySampling_Status
apply(PyThreadState *tstate, struct _sampling_calls *calls)
{
    PyInterpreterState *interp = tstate->interp;
    look_for_loss(interp, calls);
    _PySampling_CountMode mode = mode_of_users(calls);
    if (mode == _PySampling_COUNT_OFF) {
        int tool = tool_of(interp);
        if (tool >= 0) {
            (void)set_events(tool, 0);
            end_watches(calls, tool);
        }
        give_tool_back(interp, calls);
        _PySampling_CallsClear(calls);
        return _PySampling_OK;
    }
    if (!_PySampling_CallsBegin(calls)) {
        return _PySampling_ERR_NO_MEMORY;
    }
    if (interp->sampling.calls_tool == 0) {
        _PySampling_Status status = take_tool(interp, calls);
        if (status != _PySampling_OK) {
            return status;
        }
    }
    if (!set_events(tool_of(interp), events_of(mode))) {
        return _PySampling_ERR_NO_MEMORY;
    }
    _PySampling_CountSetMode(tstate, calls, mode);
    return _PySampling_OK;
}

_PySampling_Status
_PySampling_CountBegin(PyThreadState *tstate, int mode, PyObject *libraries,
                       unsigned int *token)
{
    struct _sampling_calls *calls = _PySampling_CallsOf(tstate->interp);
    if (calls == NULL || calls->extra_index < 0) {
        return _PySampling_ERR_NO_MEMORY;
    }
    Py_XSETREF(calls->libraries, Py_NewRef(libraries));
    calls->num_users[mode]++;
    *token = calls->serial;
    _PySampling_Status status = apply(tstate, calls);
    if (status != _PySampling_OK) {
        _PySampling_CountEnd(tstate, mode, *token);
    }
    return status;
}

void
_PySampling_CountEnd(PyThreadState *tstate, int mode, unsigned int token)
{
    struct _sampling_calls *calls = tstate->interp->sampling.calls;
    if (calls != NULL && calls->serial == token) {
        calls->num_users[mode]--;
        (void)apply(tstate, calls);
    }
}

static _PySampling_Status
watch(PyThreadState *tstate, PyFunctionObject *function,
      PyObject *on_import)
{
    struct _sampling_calls *calls = tstate->interp->sampling.calls;
    int tool = tool_of(tstate->interp);
    if (tool < 0) {
        return _PySampling_ERR_NOT_RUNNING;
    }
    struct _sampling_counted *record =
        _PySampling_CountedOfFunction(calls, function);
    if (record == NULL) {
        return _PySampling_ERR_NO_MEMORY;
    }
    if (on_import == NULL) {
        record->is_watched = 1;
    }
    else if (calls->on_import == NULL) {
        calls->on_import = Py_NewRef(on_import);
        record->is_import = 1;
    }
    return set_local_events(record->code, tool,
                            on_import == NULL ? EVENT(PY_START)
                                              : EVENT(PY_RETURN))
        ? _PySampling_OK : _PySampling_ERR_NO_MEMORY;
}

_PySampling_Status
_PySampling_CountWatch(PyThreadState *tstate, PyFunctionObject *function)
{
    return watch(tstate, function, NULL);
}

_PySampling_Status
_PySampling_CountWatchImports(PyThreadState *tstate,
                              PyFunctionObject *function, PyObject *callback)
{
    return watch(tstate, function, callback);
}

const struct _sampling_calls *
_PySampling_CountRead(PyThreadState *tstate)
{
    struct _sampling_calls *calls = tstate->interp->sampling.calls;
    if (calls == NULL || calls->names == NULL) {
        return NULL;
    }
    look_for_loss(tstate->interp, calls);
    _PySampling_FoldEdges(calls);
    return calls;
}

void
_PySampling_CountForget(PyThreadState *tstate)
{
    struct _sampling_calls *calls = tstate->interp->sampling.calls;
    if (calls != NULL && calls->names != NULL) {
        memset(calls->num_users, 0, sizeof(calls->num_users));
        (void)apply(tstate, calls);
    }
}

/* In the child, whose only thread stays as deep in its functions as it is. */
void
_PySampling_CountAfterFork(PyThreadState *tstate, int goes_on)
{
    struct _sampling_calls *calls = tstate->interp->sampling.calls;
    if (calls == NULL || calls->names == NULL) {
        return;
    }
    if (goes_on) {
        _PySampling_CallsReset(calls);
    }
    else {
        _PySampling_CountForget(tstate);
    }
}
