/* Sampling profiler: the session.

   Owns what users ask for (start, stop and snapshot, subscriptions) and the
   hooks of signals.  Must not know how the engine is turned on and off
   (session/engine.c), a thread comes to take part, a stack is walked, a
   nanosecond is booked or a row is laid out. */

#include "Python.h"

#include "pycore_interp.h"            // PyInterpreterState.sampling
#include "pycore_pystate.h"           // _PyThreadState_GET()
#include "pycore_runtime.h"           // _PyRuntime
#include "pycore_tstate.h"            // _PyThreadStateImpl

#include "../clock/clock.h"
#include "../sample/sample.h"
#include "../tables/labels.h"
#include "session.h"

#include <errno.h>
#include <signal.h>                   // SIG_DFL

#define STATE (&_PyRuntime.sampling)


/* Sessions. */

/* Drops what was in the tables before the session began.  `origin` may be
   NULL. */
static _PySampling_Status
finish(const struct _sampling_mark *origin, struct _sampling_tables **tables)
{
    if (!_PySampling_TablesFinish(*tables, origin)) {
        _PySampling_TablesFree(*tables);
        *tables = NULL;
        return _PySampling_ERR_NO_MEMORY;
    }
    return _PySampling_OK;
}

/* The session begins here, in tables that blocks go on with: those of `copy`,
   or the engine's own. */
static int
set_origin(const struct _sampling_tables *copy)
{
    struct _sampling_mark *origin = calloc(1, sizeof(*origin));
    if (origin == NULL || !_PySampling_EngineMark(origin, copy)) {
        free(origin);
        return 0;
    }
    _PySampling_EngineForgetOrigin();
    STATE->origin = origin;
    return 1;
}

static _PySampling_Status
start_locked(PyThreadState *tstate, const _PySampling_Options *options)
{
    _PySampling_Status status = _PySampling_MayBegin();
    if (status != _PySampling_OK) {
        return status;
    }
    if (STATE->has_session) {
        return _PySampling_ERR_RUNNING;
    }
    if (STATE->blocks == NULL) {
        status = _PySampling_ShareAnew(tstate, options);
    }
    else {
        status = _PySampling_Share(options);
        if (status == _PySampling_OK
            && !(_PySampling_Flush(tstate) && set_origin(NULL)))
        {
            status = _PySampling_ERR_NO_MEMORY;
        }
    }
    if (status != _PySampling_OK) {
        return status;
    }
    _Py_atomic_store_int_relaxed(&STATE->has_session, 1);
    STATE->session_options = *options;
    status = _PySampling_EngineReconfigure(tstate);
    if (status != _PySampling_OK) {
        int saved_errno = errno;
        _Py_atomic_store_int_relaxed(&STATE->has_session, 0);
        (void)_PySampling_EngineReconfigure(tstate);
        errno = saved_errno;
    }
    return status;
}

_PySampling_Status
_PySampling_Start(PyThreadState *tstate, const _PySampling_Options *options)
{
    _PySampling_LockControl();
    _PySampling_Status status = start_locked(tstate, options);
    _PySampling_UnlockControl();
    return status;
}

static struct _sampling_tables *
exchange_tables(PyThreadState *tstate)
{
    struct _sampling_tables *fresh = _PySampling_EngineNewTables();
    if (fresh == NULL || !_PySampling_Flush(tstate)) {
        _PySampling_TablesFree(fresh);
        return NULL;
    }
    return _PySampling_EngineExchange(tstate, fresh);
}

/* The session begins anew, in tables of its own if nobody else uses them. */
static struct _sampling_tables *
take_and_clear(PyThreadState *tstate)
{
    if (STATE->blocks == NULL && STATE->subscriptions == NULL) {
        return exchange_tables(tstate);
    }
    struct _sampling_tables *copy;
    if (_PySampling_TakeTables(tstate, 1, &copy) != _PySampling_OK) {
        return NULL;
    }
    if (STATE->blocks == NULL) {
        _PySampling_EngineClearSamples();
    }
    else if (!set_origin(copy)) {
        _PySampling_TablesFree(copy);
        return NULL;
    }
    return copy;
}

static _PySampling_Status
snapshot_locked(PyThreadState *tstate, int clear,
                struct _sampling_tables **result)
{
    if (!_PySampling_IsRunning()) {
        return _PySampling_ERR_NOT_RUNNING;
    }
    if (!clear) {
        _PySampling_Status status =
            _PySampling_TakeTables(tstate, 1, result);
        return status == _PySampling_OK ? finish(STATE->origin, result)
                                        : status;
    }
    struct _sampling_mark *origin = STATE->origin;
    STATE->origin = NULL;
    // No tick from here on: what it captured would go with the tables, and
    // the time that it took counts for what follows.
    _PySampling_Thread *own =
        STATE->active ? _PySampling_ThreadOf(tstate) : NULL;
    if (own != NULL) {
        _PySampling_ENTER_HOOK(own);
    }
    *result = take_and_clear(tstate);
    if (own != NULL) {
        _PySampling_LEAVE_HOOK(own);
    }
    if (*result == NULL) {
        STATE->origin = origin;
        return _PySampling_ERR_NO_MEMORY;
    }
    _PySampling_Status status = _PySampling_OwnTables(result);
    if (status == _PySampling_OK) {
        status = finish(origin, result);
    }
    _PySampling_MarkFree(origin);
    return status;
}

_PySampling_Status
_PySampling_Snapshot(PyThreadState *tstate, int clear,
                     struct _sampling_tables **result)
{
    _PySampling_LockControl();
    _PySampling_Status status = snapshot_locked(tstate, clear, result);
    _PySampling_UnlockControl();
    return status;
}

static _PySampling_Status
stop_locked(PyThreadState *tstate, struct _sampling_tables **result)
{
    if (!_PySampling_IsRunning() || !STATE->has_session) {
        return _PySampling_ERR_NOT_RUNNING;
    }
    _PySampling_Status status =
        _PySampling_TakeTables(tstate, STATE->blocks != NULL, result);
    if (status == _PySampling_OK) {
        status = finish(STATE->origin, result);
    }
    if (status != _PySampling_OK && STATE->tables != NULL) {
        return status;      // it goes on
    }
    _Py_atomic_store_int_relaxed(&STATE->has_session, 0);
    STATE->exit_session = 0;
    if (STATE->origin != NULL && STATE->blocks == NULL) {
        _PySampling_MarkFreeRows(STATE->origin);
    }
    // The others may want a lower rate.
    return STATE->tables != NULL ? _PySampling_EngineReconfigure(tstate)
                                 : status;
}

_PySampling_Status
_PySampling_Stop(PyThreadState *tstate, struct _sampling_tables **result)
{
    _PySampling_LockControl();
    _PySampling_Status status = stop_locked(tstate, result);
    _PySampling_UnlockControl();
    return status;
}

void
_PySampling_GetCounters(struct _sampling_counters *counters)
{
    if (_PySampling_ACTIVE()) {
        _PySampling_Measure();
    }
    _PySampling_LockControl();
    _PySampling_EngineReadCounters(counters);
    if (STATE->origin != NULL) {
        _PySampling_CountersSince(counters, STATE->origin);
    }
    _PySampling_UnlockControl();
}


/* Subscriptions. */

static int
link_subscription(struct _sampling_subscription *sub)
{
    PyMutex_LockFlags(&STATE->tables_mutex, _Py_LOCK_DONT_DETACH);
    int may_begin = _PySampling_ToldBegin(sub);
    if (may_begin) {
        _PySampling_LINK(STATE->subscriptions, sub);
        sub->is_linked = 1;
        sub->is_open = 1;
    }
    PyMutex_Unlock(&STATE->tables_mutex);
    return may_begin;
}

static void
unlink_subscription(struct _sampling_subscription *sub)
{
    PyMutex_LockFlags(&STATE->tables_mutex, _Py_LOCK_DONT_DETACH);
    if (sub->is_open) {
        _PySampling_SubscriptionEnd(sub);
    }
    _PySampling_UNLINK(STATE->subscriptions, sub);
    _Py_atomic_store_int_relaxed(&sub->is_open, 0);
    sub->is_linked = 0;
    PyMutex_Unlock(&STATE->tables_mutex);
}

static _PySampling_Status
subscribe_locked(PyThreadState *tstate, struct _sampling_subscription *sub,
                 const _PySampling_Options *options)
{
    _PySampling_Status status = _PySampling_MayBegin();
    if (status == _PySampling_OK) {
        status = _PySampling_Share(options);
    }
    if (status != _PySampling_OK) {
        return status;
    }
    if (!_PySampling_Flush(tstate) || !link_subscription(sub)) {
        return _PySampling_ERR_NO_MEMORY;
    }
    status = _PySampling_EngineReconfigure(tstate);
    if (status != _PySampling_OK) {
        int saved_errno = errno;
        unlink_subscription(sub);
        (void)_PySampling_EngineReconfigure(tstate);
        errno = saved_errno;
    }
    return status;
}

_PySampling_Status
_PySampling_Subscribe(PyThreadState *tstate,
                      struct _sampling_subscription *sub,
                      const _PySampling_Options *options)
{
    _PySampling_LockControl();
    _PySampling_Status status = subscribe_locked(tstate, sub, options);
    _PySampling_UnlockControl();
    return status;
}

_PySampling_Status
_PySampling_Unsubscribe(PyThreadState *tstate,
                        struct _sampling_subscription *sub)
{
    _PySampling_Status status = _PySampling_OK;
    _PySampling_LockControl();
    if (sub->is_open) {
        (void)_PySampling_Flush(tstate);
        unlink_subscription(sub);
        status = _PySampling_EngineReconfigure(tstate);
    }
    else if (sub->is_linked) {
        unlink_subscription(sub);   // in a child that C code has forked
    }
    _PySampling_UnlockControl();
    return status;
}

void
_PySampling_EndSubscriptions(PyThreadState *tstate)
{
    _PySampling_LockControl();
    if (STATE->subscriptions != NULL && !_PySampling_ForkedWithoutHooks()) {
        (void)_PySampling_Flush(tstate);
        while (STATE->subscriptions != NULL) {
            unlink_subscription(STATE->subscriptions);
        }
        (void)_PySampling_EngineReconfigure(tstate);
    }
    _PySampling_UnlockControl();
}

_PySampling_Status
_PySampling_FlushSubscription(PyThreadState *tstate,
                              struct _sampling_subscription *sub)
{
    _PySampling_Status status = _PySampling_OK;
    _PySampling_LockControl();
    if (sub->is_open) {
        if (!_PySampling_Flush(tstate)) {
            status = _PySampling_ERR_NO_MEMORY;
        }
    }
    _PySampling_UnlockControl();
    return status;
}

_PySampling_Status
_PySampling_SetSubscriptionRate(PyThreadState *tstate,
                                struct _sampling_subscription *sub,
                                int rate_hz)
{
    _PySampling_Status status = _PySampling_OK;
    _PySampling_LockControl();
    if (sub->is_open) {
        sub->rate_hz = rate_hz;
        status = _PySampling_EngineReconfigure(tstate);
    }
    if (sub->is_open && status == _PySampling_OK) {
        PyMutex_LockFlags(&STATE->tables_mutex, _Py_LOCK_DONT_DETACH);
        _PySampling_SubscriptionAdd(sub, &(struct _sampling_event){
            .time_ns = _PySampling_WallNow(),
            .kind = _PySampling_EVENT_RATE,
            .count = (uint64_t)rate_hz,
        });
        PyMutex_Unlock(&STATE->tables_mutex);
    }
    _PySampling_UnlockControl();
    return status;
}

/* Rows that no session needs are let go.  What a subscriber in Python keeps of
   them is ten times as large, so tables that take this much are large enough;
   but a program may need more for what it does all the time. */
#define FIRST_RENEWAL_BYTES (2 << 20)
#define MIN_RENEWAL_INTERVAL_NS 60000000000u

static int
is_nearly_full(const struct _sampling_tables *tables)
{
    return tables->bytes > tables->limit_bytes / 2
        || tables->num_tasks > _PySampling_MAX_TASKS / 2
        || tables->num_labels - tables->num_tasks
           > _PySampling_MAX_LABEL_SETS / 2
        || tables->num_threads > _PySampling_MAX_THREADS / 2;
}

/* Tables that fill up again within a minute may become twice as large. */
static int
is_due_for_renewal(const struct _sampling_tables *tables)
{
    if (is_nearly_full(tables)) {
        return 1;
    }
    if (tables->bytes < Py_MAX(STATE->renewal_bytes, FIRST_RENEWAL_BYTES)) {
        return 0;
    }
    uint64_t age_ns = _PySampling_MonotonicNow() - STATE->renewed_ns;
    if (age_ns < MIN_RENEWAL_INTERVAL_NS) {
        STATE->renewal_bytes = 2 * tables->bytes;
        return 0;
    }
    return 1;
}

static _PySampling_Status
renew_locked(PyThreadState *tstate)
{
    if (_PySampling_IsRunning() || !STATE->active
        || !is_due_for_renewal(STATE->tables))
    {
        return _PySampling_OK;
    }
    _PySampling_Thread *own = _PySampling_ThreadOf(tstate);
    if (own == NULL) {
        return _PySampling_ERR_NO_MEMORY;
    }
    _PySampling_ENTER_HOOK(own);
    struct _sampling_tables *old = exchange_tables(tstate);
    _PySampling_LEAVE_HOOK(own);
    if (old == NULL) {
        return _PySampling_ERR_NO_MEMORY;
    }
    // Batches that wait keep the old ones.
    _PySampling_TablesFree(old);
    STATE->renewed_ns = _PySampling_MonotonicNow();
    return _PySampling_OK;
}

_PySampling_Status
_PySampling_RenewIfFull(PyThreadState *tstate)
{
    _PySampling_LockControl();
    _PySampling_Status status = renew_locked(tstate);
    _PySampling_UnlockControl();
    return status;
}


/* Samples that do not come from the clock. */

_PySampling_Status
_PySampling_Sample(PyThreadState *tstate, uint64_t weight, PyObject *pairs)
{
    _PySampling_Thread *thread = NULL;
    if (_PySampling_ACTIVE()) {
        thread = _PySampling_ThreadOf(tstate);
    }
    if (thread == NULL) {
        return _PySampling_ERR_NOT_RUNNING;
    }
    _PySampling_ENTER_HOOK(thread);
    _PySampling_Drain(tstate, thread);
    _PySampling_BookCustom(tstate, thread, weight, pairs);
    _PySampling_LEAVE_HOOK(thread);
    return _PySampling_OK;
}

_PySampling_Status
_PySampling_ManualTick(PyThreadState *tstate, uint64_t wall_ns,
                       uint64_t cpu_ns)
{
    if (!STATE->active || !STATE->options.manual) {
        return _PySampling_ERR_NOT_RUNNING;
    }
    _PySampling_Thread *own = _PySampling_ThreadOf(tstate);
    if (own == NULL) {
        return _PySampling_ERR_NO_MEMORY;
    }
    _PySampling_LockRegistry();
    const struct _sampling_time distance = {wall_ns, cpu_ns};
    _PySampling_ClockTickAll(_PySampling_ClocksMove(own, distance), distance);
    _PySampling_UnlockRegistry();
    return _PySampling_OK;
}

PyOS_sighandler_t
_PySampling_HandlerOfProgram(int signum, PyOS_sighandler_t handler)
{
    if (_PySampling_IsEndingHandler(handler)) {
        return SIG_DFL;
    }
    if (!_PySampling_ACTIVE() || signum != STATE->signal) {
        return handler;
    }
    _PySampling_LockRegistry();
    handler = _PySampling_ClockHandlerOfProgram(handler);
    _PySampling_UnlockRegistry();
    return handler;
}

void
_PySampling_BeforeUseOfSignal(int signum)
{
    if (!_PySampling_ACTIVE() || signum != STATE->signal) {
        return;
    }
    int saved_errno = errno;
    PyThreadState *tstate = _PyThreadState_GET();
    _PySampling_Thread *thread = tstate != NULL
        ? _PySampling_RECORD_OF(tstate) : NULL;
    _PySampling_LockRegistry();
    if (thread != NULL) {
        _PySampling_RunEnd(thread);
    }
    if (signum == STATE->signal) {
        _PySampling_ClockLeaveSignal();
    }
    _PySampling_UnlockRegistry();
    if (thread != NULL) {
        _PySampling_RunResume(thread);
    }
    errno = saved_errno;
}

PyOS_sighandler_t
_PySampling_BeforeSetSignal(int signum, PyOS_sighandler_t handler)
{
    _PySampling_BeforeUseOfSignal(signum);
    return _PySampling_EndingHandlerFor(signum, handler);
}
