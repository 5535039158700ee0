/* Sampling profiler: samples for another process.

   Owns a thread that exists while somebody watches, and the profile that it
   hands over, a slice at a time.  Must not know how a slice is written.

       the first request   at a safepoint: the thread is started, and begins
       each other one      the handler gives it an order: it hands over what
                           there is since the last, and goes on
       the last one        and ends

   What asks no more for LEASE_NS has died, and is not missed: the thread ends
   the profile.  At the end of the process the last slice goes to where the
   first answer went. */

#include "Python.h"

#include "pycore_interp.h"            // PyInterpreterState.sampling
#include "pycore_pystate.h"           // _PyInterpreterState_Main()
#include "pycore_runtime.h"           // _PyRuntime
#include "pycore_tstate.h"            // _PyThreadStateImpl

#include "../session/control.h"
#include "../tables/profile.h"
#include "door.h"
#include "reach.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define STATE (&_PyRuntime.sampling)

#define LEASE_NS 5000000000u
#define STACK_BYTES (512 * 1024)
#define POLL_US 1000
/* At the end of the process nobody waits longer. */
#define MAX_END_NS 1000000000u

struct _sampling_watch {
    sem_t orders;
    // Atomic.
    int is_on;                  // there is a thread
    int is_ending;              // the process is
    uint64_t request;           // the order; 0: none
    // Owner: the thread, or who starts it.
    uint64_t first_request;
    struct _sampling_sink *block;
    PyObject *collector;        // of requests that end; NULL: there is none
    PyObject *ended;            // bytes: those that have ended, or NULL
};

/* It stays: a handler may be about to give an order. */
static struct _sampling_watch *
the_watch(void)
{
    struct _sampling_watch *watch = STATE->reach.watch;
    if (watch == NULL) {
        watch = calloc(1, sizeof(*watch));
        if (watch != NULL) {
            sem_init(&watch->orders, 0, 0);
            _Py_atomic_store_ptr(&STATE->reach.watch, watch);
        }
    }
    return watch;
}


/* Requests that end.  The library measures them, where the program has its
   middleware: nothing is imported, and no code of the program's runs. */

static void
read_ended(struct _sampling_watch *watch)
{
    Py_CLEAR(watch->ended);
    PyObject *name =
        PyUnicode_FromString("profile_sampling._recording.latencies");
    PyObject *module = name != NULL ? PyImport_GetModule(name) : NULL;
    if (module != NULL && watch->collector == NULL) {
        watch->collector = PyObject_CallMethod(module, "collect", NULL);
    }
    else if (module != NULL) {
        watch->ended = PyObject_CallMethod(module, "taken_as_bytes", "O",
                                           watch->collector);
    }
    PyErr_Clear();      // they are not known
    Py_XDECREF(module);
    Py_XDECREF(name);
}


/* Slices. */

struct slice {
    const struct _sampling_profile *profile;
    PyObject *ended;
};

static void
say_slice(struct _sampling_records *r, const void *arg)
{
    const struct slice *slice = arg;
    if (slice->profile == NULL) {
        return;
    }
    _PySampling_PutProfile(r, slice->profile);
    if (slice->ended != NULL && PyBytes_Check(slice->ended)) {
        _PySampling_PutPart(r, "latencies", PyBytes_AS_STRING(slice->ended),
                            (size_t)PyBytes_GET_SIZE(slice->ended));
    }
}

/* With the GIL or without. */
static int
hand_over(struct _sampling_watch *watch, uint64_t request,
          _PySampling_Status status, struct _sampling_profile *profile)
{
    struct slice slice = {profile, watch->ended};
    int is_there = _PySampling_AnswerWith(
        request,
        status == _PySampling_OK ? _PySampling_ANSWERED : _PySampling_BUSY, 1,
        say_slice, &slice);
    _PySampling_ProfileFree(profile);
    return is_there;
}

static _PySampling_Status
begin_block(PyThreadState *tstate, struct _sampling_watch *watch)
{
    _PySampling_Options options = {
        .mode = _PySampling_ANY_MODE,
        // Who samples already decides.
        .rate_hz = _PySampling_IsRunning()
            ? 0 : Py_MAX(1, _PySampling_RateOf(watch->first_request)),
        .names = -1,
        .has_timeline = _PySampling_HasMoments(watch->first_request),
    };
    return _PySampling_BlockBegin(tstate, &options, &watch->block);
}

static void
end_block(PyThreadState *tstate, struct _sampling_watch *watch,
          uint64_t request)
{
    struct _sampling_profile *slice = NULL;
    _PySampling_Status status =
        _PySampling_BlockEnd(tstate, watch->block, &slice);
    _PySampling_BlockFree(tstate, watch->block);
    watch->block = NULL;
    if (request != 0) {
        read_ended(watch);
        (void)hand_over(watch, request, status, slice);
    }
    else {
        _PySampling_ProfileFree(slice);
    }
}


/* The thread. */

/* Returns the order; 0: the time is over, or the process ends. */
static uint64_t
wait_for_order(struct _sampling_watch *watch)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += LEASE_NS / 1000000000u;
    for (;;) {
        int is_posted = sem_timedwait(&watch->orders, &until) == 0;
        uint64_t request = _Py_atomic_exchange_uint64(&watch->request, 0);
        if (request != 0 || _Py_atomic_load_int(&watch->is_ending)) {
            return request;
        }
        if (!is_posted && errno == ETIMEDOUT) {
            return 0;
        }
    }
}

static void
serve(PyThreadState *tstate, struct _sampling_watch *watch)
{
    _PySampling_Status status = begin_block(tstate, watch);
    read_ended(watch);
    if (!hand_over(watch, watch->first_request, status, NULL)
        && watch->block != NULL)
    {
        end_block(tstate, watch, 0);    // the client did not wait
    }
    while (watch->block != NULL) {
        PyEval_SaveThread();
        uint64_t request = wait_for_order(watch);
        PyEval_RestoreThread(tstate);
        if (request != 0
            && _PySampling_VerbOf(request) == _PySampling_ASK_WATCH
            && !_Py_atomic_load_int(&watch->is_ending))
        {
            struct _sampling_profile *slice;
            status = _PySampling_BlockRenew(tstate, watch->block, &slice);
            read_ended(watch);
            PyEval_SaveThread();
            (void)hand_over(watch, request, status, slice);
            PyEval_RestoreThread(tstate);
        }
        else {
            end_block(tstate, watch,
                      _Py_atomic_load_int(&watch->is_ending)
                      ? watch->first_request : request);
        }
    }
}

static void *
run_watch(void *arg)
{
    struct _sampling_watch *watch = arg;
    prctl(PR_SET_NAME, "sampleprof");
    PyThreadState *tstate = PyThreadState_New(_PyInterpreterState_Main());
    if (tstate != NULL) {
        // It is no part of the profile.
        ((_PyThreadStateImpl *)tstate)->sampling.is_excluded =
            _PySampling_HELPER;
        PyEval_AcquireThread(tstate);
        serve(tstate, watch);
        Py_CLEAR(watch->collector);
        Py_CLEAR(watch->ended);
        PyThreadState_Clear(tstate);
        PyThreadState_DeleteCurrent();
    }
    else {
        (void)_Py_atomic_add_int(&STATE->num_helpers, -1);
    }
    _Py_atomic_store_int(&watch->is_on, 0);
    return NULL;
}

/* At a safepoint. */
void
_PySampling_WatchBegin(uint64_t request)
{
    struct _sampling_watch *watch = the_watch();
    pthread_t thread;
    if (watch == NULL || _Py_atomic_load_int(&watch->is_ending)
        || _Py_atomic_load_int(&watch->is_on))
    {
        (void)_PySampling_AnswerWith(request, _PySampling_BUSY, 1, NULL, NULL);
        return;
    }
    watch->first_request = request;
    _Py_atomic_store_int(&watch->is_on, 1);
    // Here, so that no fork warns of a thread that the program has not made.
    (void)_Py_atomic_add_int(&STATE->num_helpers, 1);
    if (_PySampling_StartThread(&thread, STACK_BYTES, run_watch, watch) != 0) {
        (void)_Py_atomic_add_int(&STATE->num_helpers, -1);
        _Py_atomic_store_int(&watch->is_on, 0);
        (void)_PySampling_AnswerWith(request, _PySampling_NO_SPACE, 1, NULL,
                                     NULL);
        return;
    }
    pthread_detach(thread);
}

/* Async-signal-safe.  Returns 0 if nobody takes orders. */
int
_PySampling_WatchOrder(uint64_t request)
{
    struct _sampling_watch *watch =
        _Py_atomic_load_ptr(&STATE->reach.watch);
    if (watch == NULL || !_Py_atomic_load_int(&watch->is_on)) {
        return 0;
    }
    if (_PySampling_ClientOf(request)
            != _PySampling_ClientOf(watch->first_request))
    {
        (void)_PySampling_AnswerWith(request, _PySampling_BUSY, 1, NULL, NULL);
        return -1;
    }
    _Py_atomic_store_uint64(&watch->request, request);
    sem_post(&watch->orders);
    return 1;
}

/* The process is about to end. */
void
_PySampling_WatchEnd(void)
{
    struct _sampling_watch *watch = STATE->reach.watch;
    if (watch == NULL) {
        return;
    }
    _Py_atomic_store_int(&watch->is_ending, 1);
    sem_post(&watch->orders);
    uint64_t end_ns = _PySampling_MonotonicNow() + MAX_END_NS;
    Py_BEGIN_ALLOW_THREADS
    while (_Py_atomic_load_int(&watch->is_on)
           && _PySampling_MonotonicNow() < end_ns)
    {
        usleep(POLL_US);
    }
    Py_END_ALLOW_THREADS
}
