/* The Subscription type: a subscriber that is Python code.

   Owns the passage of batches into Python objects.  The thread that delivers
   them, and everything friendly, is in Lib/profile_sampling. */

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
    struct _sampling_sink *sub;
    struct _sampling_profile *taken;    // not passed on yet
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
        _PySampling_ACTIVE() ? _PySampling_ThreadEnsure(tstate) : NULL;
    if (thread != NULL) {
        _PySampling_ENTER_HOOK(thread);
        _PySampling_Drain(tstate, thread);
        _PySampling_RecordExclude(thread, (_PySampling_Exclusion)excluded);
        _PySampling_LEAVE_HOOK(thread);
    }
    return before;
}

PyObject *
_PyProfile_CallExcluded(PyObject *callback, PyObject *arg)
{
    int before = set_excluded(_PySampling_EXCLUDED);
    PyObject *result = PyObject_CallOneArg(callback, arg);
    PyObject *exc = PyErr_GetRaisedException();
    (void)set_excluded(before);
    PyErr_SetRaisedException(exc);
    return result;
}

int
_PyProfile_IsExcluded(void)
{
    return ((_PyThreadStateImpl *)_PyThreadState_GET())->sampling.is_excluded
        != _PySampling_NOT_EXCLUDED;
}

/* Only what is started in here inherits what a helper is; no other code of
   Python's runs meanwhile. */
PyObject *
_PyProfile_StartHelper(PyObject *start, PyObject *run, int is_daemon)
{
    PyObject *names = Py_BuildValue("(s)", "daemon");
    if (names == NULL) {
        return NULL;
    }
    PyObject *args[] = {run, is_daemon ? Py_True : Py_False};
    _PyThreadStateImpl *impl = (_PyThreadStateImpl *)_PyThreadState_GET();
    int before = impl->sampling.is_excluded;
    impl->sampling.is_excluded = _PySampling_HELPER;
    PyObject *result = PyObject_Vectorcall(start, args, 1, names);
    impl->sampling.is_excluded = before;
    Py_DECREF(names);
    return result;
}


/* Methods. */

static PyObject *
subscription_take(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    SubscriptionObject *self = (SubscriptionObject *)op;
    if (self->taken == NULL) {
        int result = _PySampling_SinkDrain(self->sub, &self->taken);
        if (result < 0) {
            return PyErr_NoMemory();
        }
        if (result == 0) {
            Py_RETURN_NONE;
        }
        _PySampling_ReadCounters(&self->taken->counters);
    }
    struct _sampling_profile *taken = self->taken;
    self->taken = NULL;         // others may run meanwhile
    PyObject *batch = _PyProfile_Export(taken, self->sub->gets_task_table);
    if (batch == NULL && self->taken == NULL) {
        self->taken = taken;    // no memory: it is passed on the next time
    }
    else {
        _PySampling_ProfileFree(taken);
    }
    return batch;
}

static PyObject *
subscription_close(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    return _PyProfile_RaiseStatus(_PySampling_Unsubscribe(
        _PyThreadState_GET(), ((SubscriptionObject *)op)->sub));
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
    _PySampling_LockTables();
    const struct _sampling_sink *sub = ((SubscriptionObject *)op)->sub;
    struct _sampling_sink_stats stats = sub->stats;
    uint64_t rows = stats.taken
        + (sub->rows != NULL ? sub->rows->num_samples : 0);
    _PySampling_UnlockTables();
    return Py_BuildValue("{s:K,s:K,s:K,s:K,s:K,s:K,s:K}",
                         "samples", stats.samples,
                         "wall_ns", stats.wall_ns,
                         "cpu_ns", stats.cpu_ns,
                         "merged", stats.samples - Py_MIN(rows, stats.samples),
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
        _PySampling_SinkWaiting(((SubscriptionObject *)op)->sub));
}

static PyObject *
get_batches(PyObject *op, void *Py_UNUSED(closure))
{
    const SubscriptionObject *self = (const SubscriptionObject *)op;
    return PyLong_FromUnsignedLong(_PySampling_SinkBatches(self->sub)
                                   + (self->taken != NULL));
}

static PyObject *
get_rate_hz(PyObject *op, void *Py_UNUSED(closure))
{
    return PyLong_FromLong(((SubscriptionObject *)op)->sub->options.rate_hz);
}

static PyMethodDef subscription_methods[] = {
    {"take", subscription_take, METH_NOARGS,
     PyDoc_STR("What has come in since the last time, or None.")},
    {"close", subscription_close, METH_NOARGS,
     PyDoc_STR("End it.  What waits can still be taken.")},
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
    return 0;
}

static void
subscription_dealloc(PyObject *op)
{
    SubscriptionObject *self = (SubscriptionObject *)op;
    PyTypeObject *type = Py_TYPE(op);
    PyObject_GC_UnTrack(op);
    if (self->sub != NULL) {
        PyObject *exc = PyErr_GetRaisedException();
        (void)_PySampling_Unsubscribe(_PyThreadState_GET(), self->sub);
        PyErr_SetRaisedException(exc);
        _PySampling_SinkFree(self->sub);
    }
    _PySampling_ProfileFree(self->taken);
    type->tp_free(op);
    Py_DECREF(type);
}

static PyType_Slot subscription_slots[] = {
    {Py_tp_dealloc, subscription_dealloc},
    {Py_tp_traverse, subscription_traverse},
    {Py_tp_methods, subscription_methods},
    {Py_tp_getset, subscription_getset},
    {Py_tp_doc, (void *)PyDoc_STR("Samples on their way.")},
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
                     const _PySampling_Options *options)
{
    PyTypeObject *type = state->subscription_type;
    SubscriptionObject *self =
        (SubscriptionObject *)type->tp_alloc(type, 0);
    if (self == NULL) {
        return NULL;
    }
    self->sub = _PySampling_SinkOfSubscriber(options, what);
    if (self->sub == NULL) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    self->sub->wakeup = &state->wakeup;
    _PySampling_Status status =
        _PySampling_Subscribe(_PyThreadState_GET(), self->sub, options);
    if (status != _PySampling_OK) {
        (void)_PyProfile_RaiseStatus(status);
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}


/* Life. */

int
_PyProfile_InitSubscriptions(PyObject *module, profile_state *state)
{
    state->wakeup.lock = PyThread_allocate_lock();
    if (state->wakeup.lock == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    PyThread_acquire_lock(state->wakeup.lock, NOWAIT_LOCK);
    state->subscription_type = (PyTypeObject *)PyType_FromModuleAndSpec(
        module, &subscription_spec, NULL);
    if (state->subscription_type == NULL) {
        return -1;
    }
    _PyInterpreterState_GET()->sampling.wakeup = &state->wakeup;
    return 0;
}

void
_PyProfile_ForgetSubscriptions(profile_state *state)
{
    struct _sampling_interpreter_state *s =
        &_PyInterpreterState_GET()->sampling;
    if (s->wakeup == &state->wakeup) {
        s->wakeup = NULL;
    }
}
