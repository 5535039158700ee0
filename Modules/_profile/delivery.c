/* The _profile module: what Lib/profile_sampling calls to subscribe to samples
   and to deliver them.

   Must not know how a subscription keeps what waits; that is in
   subscription.c. */

#ifndef Py_BUILD_CORE_BUILTIN
#  define Py_BUILD_CORE_MODULE 1
#endif

#include "Python.h"

#include "pycore_pystate.h"           // _PyThreadState_GET()
#include "pycore_runtime.h"           // _PyRuntime

#include "_profile.h"

#include <time.h>                     // nanosleep()

/*[clinic input]
module _profile
[clinic start generated code]*/
/*[clinic end generated code: output=da39a3ee5e6b4b0d input=c968e7bb6e08bc3b]*/

#include "clinic/delivery.c.h"

/*[clinic input]
_profile.subscribe

    deliver: object
    *
    owner: object
    mode: str = "wall"
    rate_hz: int = 1000
    depth_frames: int = 0
    names: int = -1
    signal: int = 0
    manual: bool = False
    max_events: unsigned_int = 65536
    batch_events: unsigned_int = 4096
    interpreter_id: long_long = -1
    sync: bool = False
    threads: object = None
    labels: object = None

Return a Subscription.

deliver is called with owner at safepoints if it is to be served there.
threads is a tuple of thread idents, labels one of str: key, value, ...
depth_frames 0 and names -1: what holds already, or the default.
[clinic start generated code]*/

static PyObject *
_profile_subscribe_impl(PyObject *module, PyObject *deliver, PyObject *owner,
                        const char *mode, int rate_hz, int depth_frames,
                        int names, int signal, int manual,
                        unsigned int max_events, unsigned int batch_events,
                        long long interpreter_id, int sync,
                        PyObject *threads, PyObject *labels)
/*[clinic end generated code: output=0cfb8fb5f06faad9 input=930d515019449706]*/
{
    _PySampling_Options options = {
        .rate_hz = rate_hz,
        .depth_frames = depth_frames,
        .names = names,
        .signal = signal,
        .manual = manual,
    };
    _PySampling_DefaultOptions(&options);
    if (_PyProfile_CheckOptions(&options, mode) < 0
        || _PyProfile_CheckRange("max_samples", max_events,
                                 _PySampling_MIN_EVENTS,
                                 _PySampling_MAX_EVENTS) < 0
        || _PyProfile_CheckRange("batch_samples", batch_events, 1,
                                 max_events) < 0)
    {
        return NULL;
    }
    Py_ssize_t num_threads =
        PyTuple_Check(threads) ? PyTuple_GET_SIZE(threads) : 0;
    Py_ssize_t num_texts =
        PyTuple_Check(labels) ? PyTuple_GET_SIZE(labels) : 0;
    uint64_t *idents = PyMem_New(uint64_t, num_threads + 1);
    const char **texts = PyMem_New(const char *, num_texts + 1);
    PyObject *result = NULL;
    if (idents == NULL || texts == NULL) {
        PyErr_NoMemory();
        goto done;
    }
    for (Py_ssize_t i = 0; i < num_threads; i++) {
        idents[i] = PyLong_AsUnsignedLongLong(PyTuple_GET_ITEM(threads, i));
        if (idents[i] == (uint64_t)-1 && PyErr_Occurred()) {
            goto done;
        }
    }
    for (Py_ssize_t i = 0; i < num_texts; i++) {
        texts[i] = PyUnicode_AsUTF8(PyTuple_GET_ITEM(labels, i));
        if (texts[i] == NULL) {
            goto done;
        }
    }
    result = _PyProfile_Subscribe(
        get_profile_state(module), &(_PySampling_SubscribeOptions){
            .mode = options.mode,
            .rate_hz = rate_hz,
            .max_events = max_events,
            .batch_events = batch_events,
            .interpreter_id = interpreter_id,
            .is_sync = sync,
            .thread_idents = threads == Py_None ? NULL : idents,
            .num_thread_idents = (uint32_t)num_threads,
            .labels = texts,
            .num_labels = (uint32_t)num_texts / 2,
        }, &options, deliver, owner);
done:
    PyMem_Free(idents);
    PyMem_Free(texts);
    return result;
}

/*[clinic input]
_profile.wait_for_batches -> bool

    timeout_ns: long_long
    /

Sleep until a batch of a subscription is worth taking, or the time is over.
[clinic start generated code]*/

static int
_profile_wait_for_batches_impl(PyObject *module, long long timeout_ns)
/*[clinic end generated code: output=7e2bc832be749f8b input=1f41023043373af1]*/
{
    struct _sampling_bell *bell = &get_profile_state(module)->bell;
    PyLockStatus status;
    Py_BEGIN_ALLOW_THREADS
    status = PyThread_acquire_lock_timed(
        bell->lock, (PY_TIMEOUT_T)Py_MAX(timeout_ns / 1000, 0), 0);
    Py_END_ALLOW_THREADS
    if (status == PY_LOCK_ACQUIRED) {
        _Py_atomic_store_int(&bell->rung, 0);
    }
    return status == PY_LOCK_ACQUIRED;
}

/*[clinic input]
_profile.pause

    time_ns: long_long
    /

Let others run for so long, or until a signal comes, and its handler run.
[clinic start generated code]*/

static PyObject *
_profile_pause_impl(PyObject *module, long long time_ns)
/*[clinic end generated code: output=b9f9be56b6567e8d input=a5258b24212ff00b]*/
{
    struct timespec time = {
        .tv_sec = (time_t)(time_ns / 1000000000),
        .tv_nsec = (long)(time_ns % 1000000000),
    };
    Py_BEGIN_ALLOW_THREADS
    nanosleep(&time, NULL);
    Py_END_ALLOW_THREADS
    PyThreadState *tstate = _PyThreadState_GET();
    int before = _PySampling_PutOffSignals(tstate, 0);
    int result = PyErr_CheckSignals();
    (void)_PySampling_PutOffSignals(tstate, before);
    if (result < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

/*[clinic input]
_profile.account_blocked

Make samples of the time that blocked threads have been blocked until now.
[clinic start generated code]*/

static PyObject *
_profile_account_blocked_impl(PyObject *module)
/*[clinic end generated code: output=6b78cd0825ef4a9c input=625da2227799fe9d]*/
{
    _PySampling_AccountForBlocked(_PyThreadState_GET());
    Py_RETURN_NONE;
}

/*[clinic input]
_profile.renew_if_full

Begin with new tables if those of subscriptions have grown large.
[clinic start generated code]*/

static PyObject *
_profile_renew_if_full_impl(PyObject *module)
/*[clinic end generated code: output=357bfe0803383ddb input=588ad325c52983d3]*/
{
    return _PyProfile_RaiseStatus(
        _PySampling_RenewIfFull(_PyThreadState_GET()));
}

/*[clinic input]
_profile.ring

Wake wait_for_batches().
[clinic start generated code]*/

static PyObject *
_profile_ring_impl(PyObject *module)
/*[clinic end generated code: output=980892c718066eda input=2b1578c01d3b2b67]*/
{
    _PySampling_Ring(&get_profile_state(module)->bell);
    Py_RETURN_NONE;
}

/*[clinic input]
_profile.call_excluded

    callback: object
    argument: object
    waiting: bool = False
    /

Call it; what this thread does meanwhile is not sampled.

It is counted apart, unless the thread mostly waits.
[clinic start generated code]*/

static PyObject *
_profile_call_excluded_impl(PyObject *module, PyObject *callback,
                            PyObject *argument, int waiting)
/*[clinic end generated code: output=3dd7d2b5a43447c9 input=4f74cb7bd058fe72]*/
{
    return _PyProfile_CallExcluded(callback, argument, waiting, NULL);
}

/*[clinic input]
_profile.call_subscriber

    callback: object
    batch: object
    /

Call it; signal handlers may interrupt it, as they may any call.
[clinic start generated code]*/

static PyObject *
_profile_call_subscriber_impl(PyObject *module, PyObject *callback,
                              PyObject *batch)
/*[clinic end generated code: output=66c082d03df8e555 input=50e0bc0dd4451402]*/

{
    return _PyProfile_CallWithSignals(callback, batch, 1);
}

/*[clinic input]
_profile.call_uninterrupted

    function: object
    argument: object
    /

Call it; signal handlers wait until it is over.
[clinic start generated code]*/

static PyObject *
_profile_call_uninterrupted_impl(PyObject *module, PyObject *function,
                                 PyObject *argument)
/*[clinic end generated code: output=42bec909f370698b input=7b82ef9798a521cd]*/

{
    return _PyProfile_CallWithSignals(function, argument, 0);
}

/*[clinic input]
_profile.write_unraisable

    exception: object
    where: object
    /

Pass an exception of a subscriber to sys.unraisablehook.
[clinic start generated code]*/

static PyObject *
_profile_write_unraisable_impl(PyObject *module, PyObject *exception,
                               PyObject *where)
/*[clinic end generated code: output=e536acefe62f0f0a input=337f7fbdc9e61c74]*/
{
    if (!PyExceptionInstance_Check(exception)) {
        PyErr_Format(PyExc_TypeError, "%R is no exception", exception);
        return NULL;
    }
    // The hook is the program's, but it drops what is raised in it: what has
    // come before goes on.
    PyThreadState *tstate = _PyThreadState_GET();
    int before = _PySampling_PutOffSignals(tstate, 0);
    int result = PyErr_CheckSignals();
    if (result == 0) {
        PyErr_SetRaisedException(Py_NewRef(exception));
        PyErr_WriteUnraisable(where);
    }
    (void)_PySampling_PutOffSignals(tstate, before);
    if (result < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

/*[clinic input]
_profile.count_helpers

    change: int
    /

Tell that a thread which serves subscribers is to begin (1), or cannot (-1).
[clinic start generated code]*/

static PyObject *
_profile_count_helpers_impl(PyObject *module, int change)
/*[clinic end generated code: output=1c15b5e3c0451dad input=b2dc7467a094114c]*/
{
    (void)_Py_atomic_add_int(&_PyRuntime.sampling.num_helpers, change);
    Py_RETURN_NONE;
}

/*[clinic input]
_profile.begin_to_serve

Tell that it is this thread, until it ends.
[clinic start generated code]*/

static PyObject *
_profile_begin_to_serve_impl(PyObject *module)
/*[clinic end generated code: output=e06739c088ec66ff input=0a6c00092edf5a3f]*/
{
    get_profile_state(module)->bell.helper = _PyThreadState_GET();
    Py_RETURN_NONE;
}

PyMethodDef _PyProfile_DeliveryMethods[] = {
    _PROFILE_SUBSCRIBE_METHODDEF
    _PROFILE_WAIT_FOR_BATCHES_METHODDEF
    _PROFILE_PAUSE_METHODDEF
    _PROFILE_ACCOUNT_BLOCKED_METHODDEF
    _PROFILE_RENEW_IF_FULL_METHODDEF
    _PROFILE_RING_METHODDEF
    _PROFILE_CALL_EXCLUDED_METHODDEF
    _PROFILE_CALL_SUBSCRIBER_METHODDEF
    _PROFILE_CALL_UNINTERRUPTED_METHODDEF
    _PROFILE_COUNT_HELPERS_METHODDEF
    _PROFILE_BEGIN_TO_SERVE_METHODDEF
    _PROFILE_WRITE_UNRAISABLE_METHODDEF
    {NULL, NULL}
};
