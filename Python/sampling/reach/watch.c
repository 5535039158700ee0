/* Sampling profiler: samples for other processes.

   Owns who watches, each with a thread and a profile of its own, of which it
   gets a slice at a time.  Must not know how a slice is written.

   A request, at a safepoint, starts a thread, which connects to the client and
   takes orders from then on.  Who has gone, even by a signal, has closed the
   connection, which ends the thread at once; so does who asks no more for
   LEASE_MS, and who does not take what it asked for.  At the end of the process
   the last slice comes without an order. */

#include "Python.h"

#include "pycore_interp.h"            // PyInterpreterState.sampling
#include "pycore_pystate.h"           // _PyInterpreterState_Main()
#include "pycore_runtime.h"           // _PyRuntime
#include "pycore_tstate.h"            // _PyThreadStateImpl

#include "../alloc/alloc.h"
#include "../session/control.h"
#include "../tables/profile.h"
#include "door.h"
#include "reach.h"

#include <pthread.h>
#include <sys/prctl.h>
#include <unistd.h>

#define STATE (&_PyRuntime.sampling)

#define MAX_WATCHERS 4
#define LEASE_MS 5000
#define STACK_BYTES (512 * 1024)
#define POLL_US 1000
/* At the end of the process nobody waits longer. */
#define MAX_END_NS 1000000000u
/* What an order may ask for. */
#define MAX_RATE_HZ 10000
#define MAX_DEPTH_FRAMES 16384

struct watcher {
    int is_on;                  // there is a thread; atomic
    // Owner: the thread, or who starts it.
    uint64_t request;
    struct _sampling_client client;
    struct _sampling_sink *block;
    PyObject *collector;        // of requests that end; NULL: there is none
    PyObject *ended;            // bytes: those that have ended, or NULL
};

struct _sampling_watch {
    int is_ending;              // the process is; atomic
    struct watcher watchers[MAX_WATCHERS];
};

static int
is_ending(void)
{
    return _Py_atomic_load_int(&STATE->reach.watch->is_ending);
}

static int
is_on(const struct watcher *watcher)
{
    return _Py_atomic_load_int(&watcher->is_on);
}


/* Requests that end.  The library measures them, where the program has its
   middleware: nothing is imported, and no code of the program's runs. */

static void
read_ended(struct watcher *watcher)
{
    Py_CLEAR(watcher->ended);
    PyObject *name =
        PyUnicode_FromString("profile_sampling._recording.latencies");
    PyObject *module = name != NULL ? PyImport_GetModule(name) : NULL;
    if (module != NULL && watcher->collector == NULL) {
        watcher->collector = PyObject_CallMethod(module, "collect", NULL);
    }
    else if (module != NULL) {
        watcher->ended = PyObject_CallMethod(module, "taken_as_bytes", "O",
                                           watcher->collector);
    }
    PyErr_Clear();      // they are not known
    Py_XDECREF(module);
    Py_XDECREF(name);
}


/* Slices. */

struct slice {
    const struct _sampling_profile *profile;
    const struct _sampling_resident *resident;
    PyObject *ended;
};

static void
say_slice(struct _sampling_records *r, const void *arg)
{
    const struct slice *slice = arg;
    _PySampling_PutProfile(r, slice->profile, slice->resident);
    if (slice->ended != NULL && PyBytes_Check(slice->ended)) {
        _PySampling_PutPart(r, "latencies", PyBytes_AS_STRING(slice->ended),
                            (size_t)PyBytes_GET_SIZE(slice->ended));
    }
}

/* Returns 0 if the client has gone. */
static int
hand_over(struct watcher *watcher, _PySampling_Status status,
          struct _sampling_profile *profile)
{
    read_ended(watcher);
    struct _sampling_resident resident;
    struct slice slice = {profile, &resident, watcher->ended};
    // Readings of memory are of who has the GIL.
    int has_memory = profile != NULL && profile->allocations.period_bytes != 0;
    if (has_memory) {
        _PySampling_ReadResident(&resident);
    }
    PyThreadState *tstate = has_memory ? NULL : PyEval_SaveThread();
    int is_there = _PySampling_ClientAnswer(
        &watcher->client,
        status == _PySampling_OK ? _PySampling_ANSWERED : _PySampling_BUSY,
        profile != NULL ? say_slice : NULL, &slice);
    if (tstate != NULL) {
        PyEval_RestoreThread(tstate);
    }
    _PySampling_ProfileFree(profile);
    return is_there;
}

static int
is_sound(const struct _sampling_order *order)
{
    return order->mode >= _PySampling_ANY_MODE
        && order->mode <= _PySampling_ALLOC
        && order->rate_hz > 0 && order->rate_hz <= MAX_RATE_HZ
        && order->depth_frames >= 0 && order->depth_frames <= MAX_DEPTH_FRAMES
        && order->names >= -1 && order->names <= _PySampling_ALL_NAMES
        && order->alloc_bytes >> 40 == 0;
}

static int
begin_block(PyThreadState *tstate, struct watcher *watcher,
            const struct _sampling_order *order)
{
    if (watcher->block != NULL || !is_sound(order)) {
        return 0;
    }
    _PySampling_Options options = {
        .mode = order->mode,
        // Who samples already decides.
        .rate_hz = _PySampling_IsRunning() ? 0 : order->rate_hz,
        .depth_frames = order->depth_frames,
        .names = order->names,
        .has_timeline = order->has_moments != 0,
        .alloc_bytes = order->alloc_bytes,
    };
    _PySampling_Status status =
        _PySampling_BlockBegin(tstate, &options, &watcher->block);
    return hand_over(watcher, status, NULL) && watcher->block != NULL;
}

static int
renew_block(PyThreadState *tstate, struct watcher *watcher)
{
    struct _sampling_profile *slice = NULL;
    _PySampling_Status status = watcher->block != NULL
        ? _PySampling_BlockRenew(tstate, watcher->block, &slice)
        : _PySampling_ERR_NOT_RUNNING;
    return hand_over(watcher, status, slice);
}

static void
end_block(PyThreadState *tstate, struct watcher *watcher, int is_wanted)
{
    struct _sampling_profile *slice = NULL;
    if (watcher->block != NULL) {
        _PySampling_Status status =
            _PySampling_BlockEnd(tstate, watcher->block, &slice);
        _PySampling_BlockFree(tstate, watcher->block);
        watcher->block = NULL;
        if (is_wanted) {
            (void)hand_over(watcher, status, slice);
            return;
        }
    }
    _PySampling_ProfileFree(slice);
}


/* The thread. */

/* Returns 0 if there was none: the client has gone, or the process ends. */
static int
take_order(struct watcher *watcher, struct _sampling_order *order)
{
    int is_taken;
    Py_BEGIN_ALLOW_THREADS
    is_taken = !is_ending()
        && _PySampling_ClientTake(&watcher->client, order, LEASE_MS);
    Py_END_ALLOW_THREADS
    return is_taken;
}

static void
serve(PyThreadState *tstate, struct watcher *watcher)
{
    int goes_on = _PySampling_ClientConnect(&watcher->client,
                                            watcher->request)
        && hand_over(watcher, _PySampling_OK, NULL);
    int is_wanted = 0;
    struct _sampling_order order;
    while (goes_on && take_order(watcher, &order)) {
        switch (order.verb) {
        case _PySampling_ORDER_BEGIN:
            goes_on = begin_block(tstate, watcher, &order);
            break;
        case _PySampling_ORDER_SLICE:
            goes_on = renew_block(tstate, watcher);
            break;
        default:
            is_wanted = order.verb == _PySampling_ORDER_END;
            goes_on = 0;
        }
    }
    end_block(tstate, watcher, is_wanted || is_ending());
    _PySampling_ClientClose(&watcher->client);
}

static void *
run_watcher(void *arg)
{
    struct watcher *watcher = arg;
    prctl(PR_SET_NAME, "sampleprof");
    PyThreadState *tstate = PyThreadState_New(_PyInterpreterState_Main());
    if (tstate != NULL) {
        // It is no part of the profile.
        ((_PyThreadStateImpl *)tstate)->sampling.is_excluded =
            _PySampling_HELPER;
        PyEval_AcquireThread(tstate);
        serve(tstate, watcher);
        Py_CLEAR(watcher->collector);
        Py_CLEAR(watcher->ended);
        PyThreadState_Clear(tstate);
        PyThreadState_DeleteCurrent();
    }
    else {
        (void)_Py_atomic_add_int(&STATE->num_helpers, -1);
    }
    _Py_atomic_store_int(&watcher->is_on, 0);
    return NULL;
}

/* Which processes watch. */
static void
say_watchers(struct _sampling_records *r, const void *arg)
{
    const struct _sampling_watch *watch = arg;
    uint32_t pids[MAX_WATCHERS];
    for (int i = 0; i < MAX_WATCHERS; i++) {
        pids[i] = watch->watchers[i].client.pid;
    }
    _PySampling_PutPart(r, "clients", pids, sizeof(pids));
}

static void
start_thread(struct watcher *watcher, uint64_t request)
{
    pthread_t thread;
    *watcher = (struct watcher){.request = request, .client.fd = -1};
    _Py_atomic_store_int(&watcher->is_on, 1);
    // Here, so that no fork warns of a thread that the program has not made.
    (void)_Py_atomic_add_int(&STATE->num_helpers, 1);
    if (_PySampling_StartThread(&thread, STACK_BYTES, run_watcher, watcher)
            != 0)
    {
        (void)_Py_atomic_add_int(&STATE->num_helpers, -1);
        _Py_atomic_store_int(&watcher->is_on, 0);
        (void)_PySampling_AnswerWith(request, _PySampling_NO_SPACE, 1, NULL,
                                     NULL);
        return;
    }
    pthread_detach(thread);
}

/* At a safepoint. */
void
_PySampling_WatchBegin(uint64_t request)
{
    struct _sampling_watch *watch = STATE->reach.watch;
    if (watch == NULL) {
        watch = STATE->reach.watch = calloc(1, sizeof(*watch));
    }
    if (watch == NULL || is_ending()) {
        (void)_PySampling_AnswerWith(request, watch == NULL
                                     ? _PySampling_NO_SPACE : _PySampling_ENDS,
                                     1, NULL, NULL);
        return;
    }
    struct watcher *free = NULL;
    for (struct watcher *w = watch->watchers;
         w < watch->watchers + MAX_WATCHERS; w++)
    {
        if (!is_on(w)) {
            free = w;
        }
        else if (w->request == request) {
            return;     // it was sent twice
        }
    }
    if (free != NULL) {
        start_thread(free, request);
    }
    else {
        (void)_PySampling_AnswerWith(request, _PySampling_BUSY, 1,
                                     say_watchers, watch);
    }
}


/* The process is about to end, or to be another one. */

static int
has_thread(const struct _sampling_watch *watch)
{
    int found = 0;
    for (int i = 0; i < MAX_WATCHERS; i++) {
        found |= is_on(&watch->watchers[i]);
    }
    return found;
}

void
_PySampling_WatchEnd(void)
{
    struct _sampling_watch *watch = STATE->reach.watch;
    if (watch == NULL) {
        return;
    }
    _Py_atomic_store_int(&watch->is_ending, 1);
    for (int i = 0; i < MAX_WATCHERS; i++) {
        if (is_on(&watch->watchers[i])) {
            _PySampling_ClientWake(&watch->watchers[i].client);
        }
    }
    uint64_t end_ns = _PySampling_MonotonicNow() + MAX_END_NS;
    Py_BEGIN_ALLOW_THREADS
    while (has_thread(watch) && _PySampling_MonotonicNow() < end_ns) {
        usleep(POLL_US);
    }
    Py_END_ALLOW_THREADS
}

void
_PySampling_WatchForget(void)
{
    struct _sampling_watch *watch = STATE->reach.watch;
    STATE->reach.watch = NULL;
    for (int i = 0; watch != NULL && i < MAX_WATCHERS; i++) {
        if (is_on(&watch->watchers[i])) {
            _PySampling_ClientForget(&watch->watchers[i].client);
        }
    }
    free(watch);
}
