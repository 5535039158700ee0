/* The Subscription type: a subscriber that is Python code.

   Owns the passage of batches into Python objects and the calls of subscribers
   at safepoints.  Threads that deliver, and everything friendly, are in
   Lib/profile_sampling. */

#ifndef Py_BUILD_CORE_BUILTIN
#  define Py_BUILD_CORE_MODULE 1
#endif

#include "Python.h"

#include "pycore_interp.h"            // PyInterpreterState.sampling
#include "pycore_pystate.h"           // _PyThreadState_GET()
#include "pycore_runtime.h"           // _PyRuntime
#include "../../Python/sampling/sample/sample.h"
#include "../../Python/sampling/session/session.h"
#include "pycore_tstate.h"            // _PyThreadStateImpl

#include "_profile.h"

typedef struct {
    PyObject_HEAD
    struct _sampling_subscription *sub;
    PyObject *deliver;          // called with the owner; NULL: nobody
    PyObject *owner;
} SubscriptionObject;


/* A subscriber's own work. */

/* Returns what it was before. */
static int
set_excluded(int excluded)
{
    PyThreadState *tstate = _PyThreadState_GET();
    _PyThreadStateImpl *impl = (_PyThreadStateImpl *)tstate;
    int before = impl->sampling.is_excluded;
    impl->sampling.is_excluded = excluded;
    _PySampling_Thread *thread =
        _PySampling_ACTIVE() ? _PySampling_ThreadOf(tstate) : NULL;
    if (thread != NULL) {
        _PySampling_ENTER_HOOK(thread);
        _PySampling_Drain(tstate, thread);
        _PySampling_AccountExclude(thread, (_PySampling_Exclusion)excluded);
        _PySampling_LEAVE_HOOK(thread);
    }
    return before;
}

/* With 0, signal handlers of the program wait until the call is over. */
PyObject *
_PyProfile_CallWithSignals(PyObject *callback, PyObject *arg, int with)
{
    PyThreadState *tstate = _PyThreadState_GET();
    int before = _PySampling_PutOffSignals(tstate, !with);
    PyObject *result = PyObject_CallOneArg(callback, arg);
    (void)_PySampling_PutOffSignals(tstate, before);
    return result;
}

/* Did a signal handler raise it, in the middle of this thread's callback?
   Then it is the program's. */
static int
is_interrupt(PyObject *exc)
{
    PyObject *interrupts =
        ((_PyThreadStateImpl *)_PyThreadState_GET())->sampling.interrupts;
    Py_ssize_t count = interrupts != NULL ? PyList_GET_SIZE(interrupts) : 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        if (PyList_GET_ITEM(interrupts, i) == exc) {
            return 1;
        }
    }
    return 0;
}

PyObject *
_PyProfile_CallExcluded(PyObject *callback, PyObject *arg, int is_waiting,
                        int *is_interrupted)
{
    _PyThreadStateImpl *impl = (_PyThreadStateImpl *)_PyThreadState_GET();
    // Of the outermost call: a callback that such an exception ends may call
    // another.
    PyObject *interrupts = NULL;
    if (impl->sampling.interrupts == NULL) {
        interrupts = impl->sampling.interrupts = PyList_New(0);
        if (interrupts == NULL) {
            return NULL;
        }
    }
    int before = set_excluded(is_waiting ? _PySampling_WAITING
                                         : _PySampling_EXCLUDED);
    PyObject *result = _PyProfile_CallWithSignals(callback, arg, 0);
    PyObject *exc = PyErr_GetRaisedException();
    if (is_interrupted != NULL) {
        *is_interrupted = is_interrupt(exc);
    }
    if (interrupts != NULL) {
        // What the callback's frames held goes now, as part of its work.
        impl->sampling.interrupts = NULL;
        Py_DECREF(interrupts);
    }
    (void)set_excluded(before);
    PyErr_SetRaisedException(exc);
    return result;
}


/* Methods. */

/* Appends what waits to a list, so that no signal handler comes between. */
static PyObject *
take(SubscriptionObject *self, uint32_t only_thread, PyObject *batches)
{
    struct _sampling_taken taken;
    int result = _PySampling_SubscriptionTake(self->sub, only_thread, &taken);
    if (result < 0) {
        return PyErr_NoMemory();
    }
    if (result == 0) {
        Py_RETURN_NONE;
    }
    PyObject *batch = _PyProfile_ExportBatch(&taken);
    if (batch == NULL || PyList_Append(batches, batch) < 0) {
        Py_XDECREF(batch);
        _PySampling_SubscriptionPutBack(self->sub, &taken);
        return NULL;
    }
    Py_DECREF(batch);
    _PySampling_SubscriptionGiveBack(self->sub, &taken);
    Py_RETURN_NONE;
}

/* The row of the calling thread; UINT32_MAX: it has none. */
static uint32_t
own_row(void)
{
    _PySampling_Thread *thread = _PySampling_RECORD_OF(_PyThreadState_GET());
    if (thread == NULL || !_PySampling_IN_SESSION(thread)) {
        return UINT32_MAX;
    }
    return thread->thread_index;
}

static PyObject *
subscription_take(PyObject *op, PyObject *args)
{
    int own_only;
    PyObject *batches;
    if (!PyArg_ParseTuple(args, "pO!:take", &own_only, &PyList_Type,
                          &batches))
    {
        return NULL;
    }
    return take((SubscriptionObject *)op, own_only ? own_row() : UINT32_MAX,
                batches);
}

static int
remove_sync(PyObject *op)
{
    profile_state *state = PyType_GetModuleState(Py_TYPE(op));
    if (state->sync_subscriptions == NULL) {
        return 0;
    }
    Py_ssize_t i = PySequence_Index(state->sync_subscriptions, op);
    if (i < 0) {
        PyErr_Clear();          // it is closed already
        return 0;
    }
    return PySequence_DelItem(state->sync_subscriptions, i);
}

static PyObject *
subscription_close(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    SubscriptionObject *self = (SubscriptionObject *)op;
    _PySampling_Status status =
        _PySampling_Unsubscribe(_PyThreadState_GET(), self->sub);
    if (self->sub->is_sync && remove_sync(op) < 0) {
        return NULL;
    }
    return _PyProfile_RaiseStatus(status);
}

static PyObject *
subscription_is_interrupt(PyObject *Py_UNUSED(op), PyObject *exc)
{
    return PyBool_FromLong(is_interrupt(exc));
}

static PyObject *
subscription_flush(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    return _PyProfile_RaiseStatus(_PySampling_FlushSubscription(
        _PyThreadState_GET(), ((SubscriptionObject *)op)->sub));
}

static PyObject *
subscription_set_rate(PyObject *op, PyObject *arg)
{
    int rate_hz = PyLong_AsInt(arg);
    if ((rate_hz == -1 && PyErr_Occurred())
        || _PyProfile_CheckRange("rate_hz", rate_hz, 1,
                                 _PySampling_MAX_RATE_HZ) < 0)
    {
        return NULL;
    }
    return _PyProfile_RaiseStatus(_PySampling_SetSubscriptionRate(
        _PyThreadState_GET(), ((SubscriptionObject *)op)->sub, rate_hz));
}

static PyObject *
subscription_stats(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    struct _sampling_runtime_state *runtime = &_PyRuntime.sampling;
    PyMutex_LockFlags(&runtime->tables_mutex, _Py_LOCK_DONT_DETACH);
    struct _sampling_subscription_stats stats =
        ((SubscriptionObject *)op)->sub->stats;
    PyMutex_Unlock(&runtime->tables_mutex);
    return Py_BuildValue("{s:K,s:K,s:K,s:K,s:K,s:K,s:K}",
                         "samples", stats.samples,
                         "wall_ns", stats.wall_ns,
                         "cpu_ns", stats.cpu_ns,
                         "merged", stats.merged,
                         "lost", stats.lost,
                         "lost_wall_ns", stats.lost_wall_ns,
                         "lost_cpu_ns", stats.lost_cpu_ns);
}

static PyObject *
get_is_open(PyObject *op, void *Py_UNUSED(closure))
{
    // The main interpreter ends those of others, too.
    return PyBool_FromLong(_Py_atomic_load_int_relaxed(
        &((SubscriptionObject *)op)->sub->is_open));
}

static PyObject *
get_ended_by_fork(PyObject *op, void *Py_UNUSED(closure))
{
    return PyBool_FromLong(((SubscriptionObject *)op)->sub->ended_by_fork);
}

static PyObject *
get_waiting(PyObject *op, void *Py_UNUSED(closure))
{
    return PyLong_FromUnsignedLong(
        _PySampling_SubscriptionWaiting(((SubscriptionObject *)op)->sub));
}

static PyObject *
get_batches(PyObject *op, void *Py_UNUSED(closure))
{
    return PyLong_FromUnsignedLong(
        _PySampling_SubscriptionBatches(((SubscriptionObject *)op)->sub));
}

static PyObject *
get_rate_hz(PyObject *op, void *Py_UNUSED(closure))
{
    return PyLong_FromLong(((SubscriptionObject *)op)->sub->rate_hz);
}

static PyMethodDef subscription_methods[] = {
    {"take", subscription_take, METH_VARARGS,
     PyDoc_STR("take(own_only, batches): append the batch that waits, if any, "
               "to a list.\nWith True, of this thread only.")},
    {"close", subscription_close, METH_NOARGS,
     PyDoc_STR("End it.  What waits can still be taken.")},
    {"is_interrupt", subscription_is_interrupt, METH_O,
     PyDoc_STR("Did a signal handler raise this exception in the callback?")},
    {"flush", subscription_flush, METH_NOARGS,
     PyDoc_STR("Make a record of all time up to now.")},
    {"set_rate", subscription_set_rate, METH_O,
     PyDoc_STR("Samples per second from now on.")},
    {"stats", subscription_stats, METH_NOARGS,
     PyDoc_STR("A dict of counters.")},
    {NULL, NULL}
};

static PyGetSetDef subscription_getset[] = {
    {"is_open", get_is_open, NULL, PyDoc_STR("Do records still come?")},
    {"ended_by_fork", get_ended_by_fork, NULL,
     PyDoc_STR("Is it the parent process that goes on with it?")},
    {"waiting", get_waiting, NULL, PyDoc_STR("How many records wait.")},
    {"batches", get_batches, NULL, PyDoc_STR("In how many batches.")},
    {"rate_hz", get_rate_hz, NULL, PyDoc_STR("Samples per second.")},
    {NULL}
};


/* The type. */

static int
subscription_traverse(PyObject *op, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(op));
    Py_VISIT(((SubscriptionObject *)op)->deliver);
    Py_VISIT(((SubscriptionObject *)op)->owner);
    return 0;
}

static int
subscription_clear(PyObject *op)
{
    Py_CLEAR(((SubscriptionObject *)op)->deliver);
    Py_CLEAR(((SubscriptionObject *)op)->owner);
    return 0;
}

static void
subscription_dealloc(PyObject *op)
{
    SubscriptionObject *self = (SubscriptionObject *)op;
    PyTypeObject *type = Py_TYPE(op);
    PyObject_GC_UnTrack(op);
    (void)subscription_clear(op);
    if (self->sub != NULL) {
        PyObject *exc = PyErr_GetRaisedException();
        (void)_PySampling_Unsubscribe(_PyThreadState_GET(), self->sub);
        PyErr_SetRaisedException(exc);
        _PySampling_SubscriptionFree(self->sub);
    }
    type->tp_free(op);
    Py_DECREF(type);
}

static PyType_Slot subscription_slots[] = {
    {Py_tp_dealloc, subscription_dealloc},
    {Py_tp_traverse, subscription_traverse},
    {Py_tp_clear, subscription_clear},
    {Py_tp_methods, subscription_methods},
    {Py_tp_getset, subscription_getset},
    {Py_tp_doc, (void *)PyDoc_STR("Records of samples on their way.")},
    {0, NULL}
};

static PyType_Spec subscription_spec = {
    .name = "_profile.Subscription",
    .basicsize = sizeof(SubscriptionObject),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC
             | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = subscription_slots,
};

PyObject *
_PyProfile_Subscribe(profile_state *state,
                     const _PySampling_SubscribeOptions *what,
                     const _PySampling_Options *options, PyObject *deliver,
                     PyObject *owner)
{
    PyTypeObject *type = state->subscription_type;
    SubscriptionObject *self =
        (SubscriptionObject *)type->tp_alloc(type, 0);
    if (self == NULL) {
        return NULL;
    }
    self->deliver = Py_NewRef(deliver);
    self->owner = Py_NewRef(owner);
    self->sub = _PySampling_SubscriptionNew(what);
    if (self->sub == NULL) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    if (!what->is_sync) {
        self->sub->bell = &state->bell;
    }
    _PySampling_Status status =
        _PySampling_Subscribe(_PyThreadState_GET(), self->sub, options);
    if (status != _PySampling_OK) {
        (void)_PyProfile_RaiseStatus(status);
        Py_DECREF(self);
        return NULL;
    }
    if (what->is_sync
        && PyList_Append(state->sync_subscriptions, (PyObject *)self) < 0)
    {
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}


/* Subscribers that are called at safepoints. */

/* Calls those of this interpreter, on the thread that was sampled.  A callback
   is not sampled, and never called again by what it does itself.  -1: a signal
   handler raised an exception meanwhile, which is for the program. */
int
_PySampling_DeliverSync(PyThreadState *tstate)
{
    PyObject *list = tstate->interp->sampling.sync_subscriptions;
    _PyThreadStateImpl *impl = (_PyThreadStateImpl *)tstate;
    if (list == NULL || PyList_GET_SIZE(list) == 0
        || impl->sampling.is_excluded
        // A callback may be interrupted; what goes on here may not.
        || impl->sampling.signals)
    {
        return 0;
    }
    PyObject *exc = PyErr_GetRaisedException();
    PyObject *interrupt = NULL;
    // Callbacks may subscribe and close.
    PyObject *called = PyList_GetSlice(list, 0, PyList_GET_SIZE(list));
    if (called == NULL) {
        PyErr_WriteUnraisable(NULL);
    }
    for (Py_ssize_t i = 0;
         called != NULL && interrupt == NULL && i < PyList_GET_SIZE(called);
         i++)
    {
        SubscriptionObject *self =
            (SubscriptionObject *)PyList_GET_ITEM(called, i);
        if (self->deliver != NULL
            && _PySampling_SubscriptionHasOwn(self->sub, own_row()))
        {
            PyObject *deliver = Py_NewRef(self->deliver);
            PyObject *owner = Py_NewRef(self->owner);
            int is_interrupted = 0;
            PyObject *result = _PyProfile_CallExcluded(deliver, owner, 0,
                                                       &is_interrupted);
            if (result == NULL && is_interrupted) {
                interrupt = PyErr_GetRaisedException();
            }
            else if (result == NULL) {
                PyErr_WriteUnraisable(deliver);
            }
            Py_XDECREF(result);
            Py_DECREF(owner);
            Py_DECREF(deliver);
        }
    }
    Py_XDECREF(called);
    if (interrupt == NULL) {
        PyErr_SetRaisedException(exc);
        return 0;
    }
    Py_XDECREF(exc);
    PyErr_SetRaisedException(interrupt);
    return -1;
}


/* Life. */

int
_PyProfile_InitSubscriptions(PyObject *module, profile_state *state)
{
    state->bell.lock = PyThread_allocate_lock();
    if (state->bell.lock == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    PyThread_acquire_lock(state->bell.lock, NOWAIT_LOCK);
    state->sync_subscriptions = PyList_New(0);
    state->subscription_type = (PyTypeObject *)PyType_FromModuleAndSpec(
        module, &subscription_spec, NULL);
    if (state->sync_subscriptions == NULL
        || state->subscription_type == NULL)
    {
        return -1;
    }
    struct _sampling_interpreter_state *s =
        &_PyInterpreterState_GET()->sampling;
    s->sync_subscriptions = state->sync_subscriptions;
    s->bell = &state->bell;
    return 0;
}

void
_PyProfile_ForgetSubscriptions(profile_state *state)
{
    struct _sampling_interpreter_state *s =
        &_PyInterpreterState_GET()->sampling;
    if (state->sync_subscriptions != NULL
        && s->sync_subscriptions == state->sync_subscriptions)
    {
        s->sync_subscriptions = NULL;
        s->bell = NULL;
    }
}
