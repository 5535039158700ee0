/* Sampling profiler: events of sys.monitoring as counts.

   Owns what an event means: which call it is, of whom, how deep, and whether
   it is a query of a line of the user's own.  Must not know names or rows.

   A call is counted when a function begins to run, so also if C code calls it;
   the caller is the innermost frame of Python below.  The call instruction
   itself is of interest for C functions only. */

#include "Python.h"

#include "pycore_instruments.h"       // PY_MONITORING_EVENT_CALL
#include "pycore_interp.h"            // PyInterpreterState.sampling
#include "pycore_pystate.h"           // PyThreadState.interp
#include "pycore_runtime.h"           // _PyRuntime
#include "pycore_tstate.h"            // _PyThreadStateImpl

#include "../base/frame.h"
#include "../tables/labels.h"
#include "../tables/store.h"
#include "calls.h"


/* How deep.  The number in the record is of the thread that was last in the
   function; what other threads have on their stacks waits in a list. */

static Py_NO_INLINE void
change_thread(struct _sampling_calls *calls, struct _sampling_counted *record,
              uint64_t thread)
{
    struct _sampling_parked_depth *spare = NULL, **at = &record->parked;
    uint64_t depth = 0;
    while (*at != NULL && (*at)->thread != thread) {
        at = &(*at)->next;
    }
    if (*at != NULL) {
        spare = *at;
        depth = spare->depth;
        *at = spare->next;
    }
    if (record->depth != 0 && spare == NULL) {
        spare = malloc(sizeof(*spare));
    }
    if (record->depth != 0 && spare != NULL) {
        *spare = (struct _sampling_parked_depth){
            record->parked, record->thread, record->depth};
        record->parked = spare;
    }
    else {
        calls->num_lost += record->depth != 0;
        free(spare);
    }
    record->thread = thread;
    record->depth = depth;
}

static inline void
go_in(struct _sampling_calls *calls, struct _sampling_counted *record,
      uint64_t thread)
{
    if (record->thread != thread) {
        change_thread(calls, record, thread);
    }
    record->depth++;
    if (record->depth > record->deepest) {
        record->deepest = record->depth;
    }
}

static inline void
go_out(struct _sampling_calls *calls, struct _sampling_counted *record,
       uint64_t thread)
{
    if (record->thread != thread) {
        change_thread(calls, record, thread);
    }
    // Else it began where no events are seen, as in a trace function.
    if (record->depth > 0) {
        record->depth--;
    }
}

static void
forget_depths(struct _sampling_calls *calls)
{
    struct llist_node *node;
    llist_for_each(node, &calls->records) {
        struct _sampling_counted *record =
            llist_data(node, struct _sampling_counted, link);
        record->depth = record->deepest = record->thread = 0;
        _PySampling_ForgetParked(record);
    }
}

/* A stack as it is now.  Threads without the GIL stand still. */
static void
read_depths(struct _sampling_calls *calls, PyThreadState *tstate)
{
    _PyInterpreterFrame *frame = _PySampling_CurrentFrame(tstate);
    for (; frame != NULL; frame = _PySampling_FramePrevious(frame)) {
        if (_PySampling_IsArtificial(frame)) {
            continue;
        }
        struct _sampling_counted *record = _PySampling_CountedOf(calls, frame);
        if (record != NULL) {
            go_in(calls, record, tstate->id);
        }
        else {
            calls->num_lost++;
        }
    }
}

/* A thread state is freed with its GIL, or has no frame any more. */
static void
read_all_depths(struct _sampling_calls *calls, PyInterpreterState *interp)
{
    PyThreadState *tstate = PyInterpreterState_ThreadHead(interp);
    for (; tstate != NULL; tstate = PyThreadState_Next(tstate)) {
        read_depths(calls, tstate);
    }
}


/* Calls. */

static inline _PyInterpreterFrame *
caller_of(_PyInterpreterFrame *frame)
{
    do {
        frame = _PySampling_FramePrevious(frame);
    } while (frame != NULL && _PySampling_IsArtificial(frame));
    return frame;
}

static inline struct _sampling_edge *
edge_to(struct _sampling_calls *calls, struct _sampling_counted *record,
        _PyInterpreterFrame *frame)
{
    _PyInterpreterFrame *caller = caller_of(frame);
    _Py_CODEUNIT *site =
        caller != NULL ? _PySampling_FrameInstr(caller) : NULL;
    if (record->last_site != site) {
        struct _sampling_edge *edge = _PySampling_FindEdge(
            calls, caller, site, record->key, record, NULL,
            _PySampling_NO_QUERY);
        if (edge == NULL) {
            return NULL;
        }
        record->last_site = site;
        record->last = edge;
    }
    return record->last;
}

/* What identifies something in C that is called; NULL: it is Python code,
   whose beginning is counted. */
static void *
key_of(PyObject *callable)
{
    if (PyMethod_Check(callable)) {
        callable = PyMethod_GET_FUNCTION(callable);
    }
    PyTypeObject *type = Py_TYPE(callable);
    if (type == &PyFunction_Type) {
        return NULL;
    }
    if (type == &PyCFunction_Type || type == &PyCMethod_Type) {
        return ((PyCFunctionObject *)callable)->m_ml;
    }
    if (type == &PyMethodDescr_Type || type == &PyClassMethodDescr_Type) {
        return ((PyMethodDescrObject *)callable)->d_method;
    }
    if (PyType_Check(callable)) {
        return callable;
    }
    if (type == &PyWrapperDescr_Type
        && !PyType_HasFeature(((PyDescrObject *)callable)->d_type,
                              Py_TPFLAGS_HEAPTYPE))
    {
        return callable;    // it stays, as its type does
    }
    if (PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE)) {
        PyObject *call = _PyType_Lookup(type, &_Py_ID(__call__));
        if (call != NULL && PyFunction_Check(call)) {
            return NULL;
        }
    }
    return type;
}

static inline void
count_c_call(struct _sampling_calls *calls, _PyInterpreterFrame *frame,
             _Py_CODEUNIT *instr, PyObject *callable)
{
    void *key = key_of(callable);
    if (key == NULL) {
        return;
    }
    struct _sampling_edge *edge = _PySampling_FindEdge(
        calls, frame, instr, key, NULL, callable, _PySampling_NO_QUERY);
    if (edge != NULL) {
        edge->calls++;
    }
}


/* Queries. */

/* As profile_sampling/_data/origins.py says of files. */
static int
is_of_library(struct _sampling_calls *calls, _PyInterpreterFrame *frame)
{
    PyObject *path = _PySampling_FrameCode(frame)->co_filename;
    if (PyUnicode_READ_CHAR(path, 0) == '<') {
        PyObject *name = _PySampling_DictGet(_PySampling_FrameGlobals(frame),
                                             &_Py_ID(__name__));
        return name == NULL || !PyUnicode_Check(name)
            || !_PyUnicode_Equal(name, &_Py_ID(__main__));
    }
    Py_ssize_t n = calls->libraries != NULL
        ? PyTuple_GET_SIZE(calls->libraries) : 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *folder = PyTuple_GET_ITEM(calls->libraries, i);
        if (PyUnicode_Find(path, folder, 0, PY_SSIZE_T_MAX, 1) >= 0) {
            return 1;
        }
    }
    return 0;
}

static inline int
is_mine(struct _sampling_calls *calls, struct _sampling_counted *record,
        _PyInterpreterFrame *frame)
{
    if (record->origin == _PySampling_UNKNOWN) {
        record->origin = is_of_library(calls, frame)
            ? _PySampling_NOT_MINE : _PySampling_MINE;
    }
    return record->origin == _PySampling_MINE;
}

static uint32_t
route_now(struct _sampling_calls *calls, PyThreadState *tstate)
{
    PyObject *pairs = _PySampling_PairsOf(tstate, tstate->context);
    for (Py_ssize_t i = 0;
         pairs != NULL && i + 1 < PyTuple_GET_SIZE(pairs); i += 2)
    {
        if (_PyUnicode_EqualToASCIIString(PyTuple_GET_ITEM(pairs, i),
                                          "route"))
        {
            uint32_t text = _PySampling_InternText(
                calls->names, PyTuple_GET_ITEM(pairs, i + 1));
            return text != NO_ROW ? text + 2 : _PySampling_NO_ROUTE;
        }
    }
    return _PySampling_NO_ROUTE;
}

/* A query is of the innermost line of mine.  One that another query makes is
   part of that. */
static Py_NO_INLINE void
count_query(struct _sampling_calls *calls, PyThreadState *tstate,
            struct _sampling_counted *watched, _PyInterpreterFrame *frame)
{
    while ((frame = caller_of(frame)) != NULL) {
        struct _sampling_counted *record = _PySampling_CountedOf(calls, frame);
        if (record == NULL) {
            calls->num_lost++;
            return;
        }
        if (record->is_watched) {
            return;
        }
        if (is_mine(calls, record, frame)) {
            break;
        }
    }
    struct _sampling_edge *edge = _PySampling_FindEdge(
        calls, frame, frame != NULL ? _PySampling_FrameInstr(frame) : NULL,
        watched->key, watched, NULL, route_now(calls, tstate));
    if (edge != NULL) {
        edge->calls++;
    }
}


/* As a callback of sys.monitoring: no event is seen in it. */
static Py_NO_INLINE void
tell_import(PyThreadState *tstate, struct _sampling_calls *calls)
{
    PyObject *callback = Py_XNewRef(calls->on_import);
    if (callback == NULL) {
        return;
    }
    PyThreadState_EnterTracing(tstate);
    PyObject *result = PyObject_CallNoArgs(callback);
    if (result == NULL) {
        PyErr_FormatUnraisable("Exception ignored while looking for functions "
                               "that make queries");
    }
    Py_XDECREF(result);
    Py_DECREF(callback);
    PyThreadState_LeaveTracing(tstate);
}


/* Events. */

static void
count_start(struct _sampling_calls *calls, PyThreadState *tstate,
            struct _sampling_counted *record, _PyInterpreterFrame *frame)
{
    if (record->is_watched) {
        count_query(calls, tstate, record, frame);
    }
    if (calls->mode < _PySampling_COUNT_PYTHON) {
        return;
    }
    struct _sampling_edge *edge = edge_to(calls, record, frame);
    go_in(calls, record, tstate->id);
    if (edge != NULL) {
        edge->calls++;
        edge->recursive += record->depth > 1;
    }
}

static void
count_resume(struct _sampling_calls *calls, PyThreadState *tstate,
             struct _sampling_counted *record, _PyInterpreterFrame *frame)
{
    struct _sampling_edge *edge = edge_to(calls, record, frame);
    go_in(calls, record, tstate->id);
    if (edge != NULL) {
        edge->resumes++;
        edge->recursive_resumes += record->depth > 1;
    }
}

int
(_PySampling_CountCall)(PyThreadState *tstate, int event,
                        _PyInterpreterFrame *frame, _Py_CODEUNIT *instr,
                        PyObject *callable, uint8_t tools)
{
    uint8_t own = tstate->interp->sampling.calls_tool;
    struct _sampling_calls *calls = tstate->interp->sampling.calls;
    if (!(tools & own)) {
        return 0;
    }
    if (_PySampling_CountLost(calls)) {
        // The event is the other tool's, which has a callback for it.
        _PySampling_CountEndLost(tstate->interp);
        return 0;
    }
    if (((_PyThreadStateImpl *)tstate)->sampling.is_excluded) {
        return tools == own;
    }
    if (event == PY_MONITORING_EVENT_CALL) {
        count_c_call(calls, frame, instr, callable);
        return tools == own;
    }
    if (event == PY_MONITORING_EVENT_C_RETURN
        || event == PY_MONITORING_EVENT_C_RAISE)
    {
        return tools == own;
    }
    // A function that calls none ends next.
    struct _sampling_counted *record = calls->last;
    if (record == NULL || record->key != _PySampling_FrameCode(frame)) {
        record = calls->last = _PySampling_CountedOf(calls, frame);
    }
    if (record == NULL) {
        calls->num_lost++;
        return tools == own;
    }
    switch (event) {
    case PY_MONITORING_EVENT_PY_START:
        count_start(calls, tstate, record, frame);
        break;
    case PY_MONITORING_EVENT_PY_RESUME:
    case PY_MONITORING_EVENT_PY_THROW:
        count_resume(calls, tstate, record, frame);
        break;
    case PY_MONITORING_EVENT_PY_RETURN:
    case PY_MONITORING_EVENT_PY_YIELD:
    case PY_MONITORING_EVENT_PY_UNWIND:
        go_out(calls, record, tstate->id);
        if (record->is_import && event == PY_MONITORING_EVENT_PY_RETURN) {
            // It may end the counting, and with that the record.
            tell_import(tstate, calls);
        }
        break;
    }
    return tools == own;
}

/* Who counts next takes another id, and reads the stacks anew. */
void
_PySampling_CountEndLost(PyInterpreterState *interp)
{
    interp->sampling.calls_tool = 0;
    interp->sampling.calls->mode = _PySampling_COUNT_OFF;
    interp->sampling.calls->taken_ns = _PySampling_MonotonicNow();
}

void
_PySampling_CountSetMode(PyThreadState *tstate, struct _sampling_calls *calls,
                         _PySampling_CountMode mode)
{
    int begins = calls->mode < _PySampling_COUNT_PYTHON
        && mode >= _PySampling_COUNT_PYTHON;
    calls->mode = mode;
    if (begins) {
        forget_depths(calls);
        read_all_depths(calls, tstate->interp);
    }
}
