/* The C API of subscriptions: what Include/cpython/sampling.h promises.

   Owns the options of extensions.  It makes no Python object but the capsule. */

#ifndef Py_BUILD_CORE_BUILTIN
#  define Py_BUILD_CORE_MODULE 1
#endif

#include "Python.h"
#include "cpython/sampling.h"

#include "pycore_pystate.h"           // _PyThreadState_GET()
#include "pycore_runtime.h"           // _PyRuntime

#include "_profile.h"


/* Subscribing. */

static int
is_in_range(const char *name, long long value, long long min, long long max)
{
    return _PyProfile_CheckRange(name, value, min, max) == 0;
}

/* No version of the options will be as large: it is not their size. */
#define MAX_OPTIONS_BYTES 4096

/* Are there options, beyond those known here, that ask for something? */
static int
asks_for_more(const PySampling_Options *options)
{
    const char *bytes = (const char *)options;
    for (size_t i = sizeof(*options); i < options->size; i++) {
        if (bytes[i] != 0) {
            return 1;
        }
    }
    return 0;
}

static void
raise_later_version(void)
{
    PyErr_SetString(PyExc_ValueError,
                    "PySampling_Options asks for what only a later "
                    "version has");
}

/* The options of an extension that was compiled for another version, maybe.
   Returns 0 with an exception if they cannot be understood. */
static int
read_options(const PySampling_Options *given, PySampling_Options *options)
{
    if (!PySampling_HAS(given->size, PySampling_Options, rate_hz)
        || given->size > MAX_OPTIONS_BYTES)
    {
        PyErr_Format(PyExc_ValueError,
                     "PySampling_Options cannot be of %zu bytes: use "
                     "PySampling_OPTIONS_INIT", given->size);
        return 0;
    }
    if (asks_for_more(given)) {
        raise_later_version();
        return 0;
    }
    *options = (PySampling_Options)PySampling_OPTIONS_INIT;
#define READ(FIELD) \
    if (PySampling_HAS(given->size, PySampling_Options, FIELD)) { \
        options->FIELD = given->FIELD; \
    }
    READ(rate_hz)
    READ(depth_frames)
    READ(names)
    READ(max_samples)
    READ(interpreter_id)
    READ(flags)
    READ(max_moments)
#undef READ
    if (options->flags & ~(uint64_t)(PySampling_WITH_TASKS
                                     | PySampling_WITH_MOMENTS))
    {
        raise_later_version();
        return 0;
    }
    return 1;
}

/* Checked as they are given: what stands for a default is one number. */
static int
are_in_range(const PySampling_Options *options)
{
    return is_in_range("rate_hz", options->rate_hz, 1,
                       _PySampling_MAX_RATE_HZ)
        && is_in_range("depth_frames", options->depth_frames, 0,
                       _PySampling_MAX_DEPTH_FRAMES)
        && is_in_range("names", options->names, -1, _PySampling_ALL_NAMES)
        && is_in_range("max_samples", options->max_samples,
                       _PySampling_MIN_SAMPLES, _PySampling_MAX_SAMPLES)
        && is_in_range("max_moments", options->max_moments,
                       _PySampling_MIN_SAMPLES, _PySampling_MAX_SAMPLES)
        // Of an interpreter that is not there: it may come.
        && is_in_range("interpreter_id", options->interpreter_id, -1,
                       INT64_MAX);
}

static PySampling_Subscription *
capi_subscribe(const PySampling_Options *given)
{
    PySampling_Options options;
    if (!read_options(given, &options) || !are_in_range(&options)) {
        return NULL;
    }
    _PySampling_Options engine = {
        .rate_hz = options.rate_hz,
        .depth_frames = options.depth_frames,
        .names = options.names,
    };
    _PySampling_DefaultOptions(&engine);
    PySampling_Subscription *sub =
        _PySampling_SinkOfSubscriber(&engine, &(_PySampling_SubscribeOptions){
            .max_samples = options.max_samples,
            .max_moments = options.flags & PySampling_WITH_MOMENTS
                ? options.max_moments : 0,
            .interpreter_id = options.interpreter_id,
            .tasks = (options.flags & PySampling_WITH_TASKS) != 0,
        });
    if (sub == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    _PySampling_Status status =
        _PySampling_Subscribe(_PyThreadState_GET(), sub, &engine);
    if (status != _PySampling_OK) {
        _PySampling_SinkFree(sub);
        (void)_PyProfile_RaiseStatus(status);
        return NULL;
    }
    return sub;
}

static int
result_of(_PySampling_Status status)
{
    if (status == _PySampling_OK) {
        return 0;
    }
    (void)_PyProfile_RaiseStatus(status);
    return -1;
}

static int
capi_flush(PySampling_Subscription *sub)
{
    PyThreadState *tstate = _PyThreadState_GET();
    _PySampling_Status status = _PySampling_FlushSubscription(tstate, sub);
    return result_of(status != _PySampling_OK
                     ? status : _PySampling_RenewIfFull(tstate));
}

static int
capi_set_rate(PySampling_Subscription *sub, int rate_hz)
{
    if (!is_in_range("rate_hz", rate_hz, 1, _PySampling_MAX_RATE_HZ)) {
        return -1;
    }
    return result_of(_PySampling_SetSubscriptionRate(_PyThreadState_GET(),
                                                     sub, rate_hz));
}

static int
capi_close(PySampling_Subscription *sub)
{
    return result_of(_PySampling_Unsubscribe(_PyThreadState_GET(), sub));
}


/* Draining. */

static void
capi_release(PySampling_Batch *batch)
{
    _PySampling_ProfileFree((struct _sampling_profile *)(
        (char *)batch - offsetof(struct _sampling_profile, batch)));
}

static int
capi_drain(PySampling_Subscription *sub, PySampling_Batch **batch)
{
    struct _sampling_profile *profile;
    *batch = NULL;
    int result = _PySampling_SinkDrain(sub, &profile);
    if (result == 1) {
        *batch = &profile->batch;
    }
    return result;
}

static const PySampling_API capi = {
    .version = 2,
    .size = sizeof(PySampling_API),
    .subscribe = capi_subscribe,
    .flush = capi_flush,
    .set_rate = capi_set_rate,
    .close = capi_close,
    .drain = capi_drain,
    .release = capi_release,
    .free = _PySampling_SinkFree,
};

int
_PyProfile_InitCAPI(PyObject *module)
{
    PyObject *capsule =
        PyCapsule_New((void *)&capi, PySampling_CAPSULE_NAME, NULL);
    return PyModule_Add(module, "C_API", capsule);
}
