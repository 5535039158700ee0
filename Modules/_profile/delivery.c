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

/*[clinic input]
module _profile
[clinic start generated code]*/
/*[clinic end generated code: output=da39a3ee5e6b4b0d input=c968e7bb6e08bc3b]*/

#include "clinic/delivery.c.h"

/*[clinic input]
_profile.subscribe

    *
    rate_hz: int = 1000
    depth_frames: int = 0
    names: int = -1
    signal: int = 0
    manual: bool = False
    max_events: unsigned_int = 65536
    times: unsigned_int = 0
    batch_events: unsigned_int = 4096
    interpreter_id: long_long = -1
    threads: object = None
    labels: object = None
    task: bool = False
    alloc_bytes: unsigned_long_long = 0

Return a Subscription.

threads is a tuple of thread idents, labels one of str: key, value, ...
task: it gets what tasks wait for, too.
depth_frames 0 and names -1: what holds already, or the default.
[clinic start generated code]*/

static PyObject *
_profile_subscribe_impl(PyObject *module, int rate_hz, int depth_frames,
                        int names, int signal, int manual,
                        unsigned int max_events, unsigned int times,
                        unsigned int batch_events, long long interpreter_id,
                        PyObject *threads, PyObject *labels, int task,
                        unsigned long long alloc_bytes)
/*[clinic end generated code: output=f5e285f9dee36bc5 input=7b426308de9e3524]*/
{
    _PySampling_Options options = {
        .rate_hz = rate_hz,
        .depth_frames = depth_frames,
        .names = names,
        .signal = signal,
        .manual = manual,
        .alloc_bytes = alloc_bytes,
    };
    _PySampling_DefaultOptions(&options);
    if (_PyProfile_CheckOptions(&options) < 0
        || _PyProfile_CheckRange("max_samples", max_events,
                                 _PySampling_MIN_SAMPLES,
                                 _PySampling_MAX_SAMPLES) < 0
        || _PyProfile_CheckRange("times", times, 0,
                                 _PySampling_MAX_SAMPLES) < 0
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
            .max_samples = max_events,
            .max_moments = times,
            .wake_records = batch_events,
            .interpreter_id = interpreter_id,
            .thread_idents = threads == Py_None ? NULL : idents,
            .num_thread_idents = (uint32_t)num_threads,
            .labels = texts,
            .num_labels = (uint32_t)num_texts / 2,
            .tasks = task,
        }, &options);
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
    struct _sampling_wakeup *wakeup = &get_profile_state(module)->wakeup;
    PyLockStatus status;
    Py_BEGIN_ALLOW_THREADS
    status = PyThread_acquire_lock_timed(
        wakeup->lock, (PY_TIMEOUT_T)Py_MAX(timeout_ns / 1000, 0), 0);
    Py_END_ALLOW_THREADS
    if (status == PY_LOCK_ACQUIRED) {
        _Py_atomic_store_int(&wakeup->is_pending, 0);
    }
    return status == PY_LOCK_ACQUIRED;
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
_profile.wake

Wake wait_for_batches().
[clinic start generated code]*/

static PyObject *
_profile_wake_impl(PyObject *module)
/*[clinic end generated code: output=8e54e7c5a7dc245d input=72b7d937a9be0c8f]*/
{
    _PySampling_Wake(&get_profile_state(module)->wakeup);
    Py_RETURN_NONE;
}

/*[clinic input]
_profile.call_excluded

    callback: object
    argument: object
    /

Call it; what this thread does meanwhile is not sampled, but counted apart.
[clinic start generated code]*/

static PyObject *
_profile_call_excluded_impl(PyObject *module, PyObject *callback,
                            PyObject *argument)
/*[clinic end generated code: output=891a146a751fe52b input=ffc210db5317603d]*/
{
    return _PyProfile_CallExcluded(callback, argument);
}

/*[clinic input]
_profile.is_excluded -> bool

Does this thread serve subscribers, or has one started it?
[clinic start generated code]*/

static int
_profile_is_excluded_impl(PyObject *module)
/*[clinic end generated code: output=fccdae0c52b74bdf input=2ad525db47f38ffa]*/
{
    return _PyProfile_IsExcluded();
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
    PyErr_SetRaisedException(Py_NewRef(exception));
    PyErr_WriteUnraisable(where);
    Py_RETURN_NONE;
}

/*[clinic input]
_profile.start_helper

    start: object
    run: object
    daemon: bool
    /

Return start(run, daemon=daemon), which starts a thread to serve subscribers.

It is counted as such from the beginning, until it ends.
[clinic start generated code]*/

static PyObject *
_profile_start_helper_impl(PyObject *module, PyObject *start, PyObject *run,
                           int daemon)
/*[clinic end generated code: output=82ce7e803e0fc0ff input=4de911201dcfe6ac]*/
{
    return _PyProfile_StartHelper(start, run, daemon);
}

PyMethodDef _PyProfile_DeliveryMethods[] = {
    _PROFILE_SUBSCRIBE_METHODDEF
    _PROFILE_WAIT_FOR_BATCHES_METHODDEF
    _PROFILE_ACCOUNT_BLOCKED_METHODDEF
    _PROFILE_RENEW_IF_FULL_METHODDEF
    _PROFILE_WAKE_METHODDEF
    _PROFILE_CALL_EXCLUDED_METHODDEF
    _PROFILE_IS_EXCLUDED_METHODDEF
    _PROFILE_START_HELPER_METHODDEF
    _PROFILE_WRITE_UNRAISABLE_METHODDEF
    {NULL, NULL}
};
