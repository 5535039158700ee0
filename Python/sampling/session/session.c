/* Sampling profiler: the session.

   Owns what users ask for (start, stop and snapshot, subscriptions) and the
   hooks of signals.  Must not know how the engine is turned on and off
   (session/engine.c), a thread comes to take part, a stack is walked, a
   nanosecond is recorded or a row is laid out. */

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

/* Read without the lock by tasks.c. */
static void
set_session(struct _sampling_profile *profile)
{
    _Py_atomic_store_ptr_relaxed(&STATE->session, profile);
}

static _PySampling_Status
start_locked(PyThreadState *tstate, const _PySampling_Options *options)
{
    _PySampling_Status status = _PySampling_MayBegin();
    if (status != _PySampling_OK) {
        return status;
    }
    if (STATE->session != NULL) {
        return _PySampling_ERR_RUNNING;
    }
    status = _PySampling_Share(options);
    if (status != _PySampling_OK) {
        return status;
    }
    struct _sampling_profile *session =
        _PySampling_ProfileNew(STATE->tables, options);
    if (session == NULL) {
        (void)_PySampling_EngineReconfigure(tstate);
        return _PySampling_ERR_NO_MEMORY;
    }
    set_session(session);
    if (!options->is_deferred || STATE->num_regions > 0) {
        status = _PySampling_OpenProfile(tstate, session);
    }
    else {
        // Without samples, until somebody enters a region.
        _PySampling_BeginProfile(session, _PySampling_WallNow());
    }
    if (status != _PySampling_OK) {
        int saved_errno = errno;
        set_session(NULL);
        _PySampling_ProfileFree(session);
        (void)_PySampling_EngineReconfigure(tstate);
        errno = saved_errno;
        return status;
    }
    STATE->session_options = *options;
    STATE->session_counters = session->counters;
    return _PySampling_OK;
}

_PySampling_Status
_PySampling_Start(PyThreadState *tstate, const _PySampling_Options *options)
{
    _PySampling_LockControl();
    _PySampling_Status status = start_locked(tstate, options);
    _PySampling_UnlockControl();
    return status;
}

static _PySampling_Status
snapshot_locked(PyThreadState *tstate, struct _sampling_profile **result)
{
    struct _sampling_profile *profile = STATE->session;
    if (profile == NULL) {
        // Of the block that began first.
        profile = STATE->profiles;
        while (profile != NULL && profile->next != NULL) {
            profile = profile->next;
        }
    }
    if (profile == NULL || !_PySampling_IsRunning()) {
        return _PySampling_ERR_NOT_RUNNING;
    }
    if (!_PySampling_Flush(tstate)) {
        return _PySampling_ERR_NO_MEMORY;
    }
    return _PySampling_FinishProfile(_PySampling_CopyOf(profile, 1),
                                     _PySampling_FlushedNow(), result);
}

/* The profile of a session that has ended, itself or a copy of it. */
static _PySampling_Status
hand_over(struct _sampling_profile *ended, struct _sampling_profile *taken,
          uint64_t end_ns, struct _sampling_profile **result)
{
    if (taken != ended) {
        _PySampling_ProfileFree(ended);
    }
    else {
        _PySampling_CountProfile(taken);
    }
    return _PySampling_FinishProfile(taken, end_ns, result);
}

static void
replace_session(PyThreadState *tstate, struct _sampling_profile *fresh)
{
    struct _sampling_profile *old = STATE->session;
    int is_open = old->is_open;
    int has_own_tables = fresh->tables != STATE->tables;
    _PySampling_LockTables();
    if (is_open) {
        _PySampling_LINK(STATE->profiles, fresh);
        fresh->is_open = 1;
    }
    if (has_own_tables) {
        // Threads of other GILs add to the one or the other.
        _PySampling_UnlockTables();
        _PySampling_EngineExchange(tstate, fresh->tables);
        _PySampling_LockTables();
    }
    if (is_open) {
        _PySampling_UNLINK(STATE->profiles, old);
        old->is_open = 0;
    }
    _PySampling_UnlockTables();
    set_session(fresh);
    STATE->session_counters = fresh->counters;
}

/* The session goes on with a profile that has nothing yet, in tables of its
   own if nobody else uses these. */
static _PySampling_Status
clear_locked(PyThreadState *tstate, struct _sampling_profile **result)
{
    struct _sampling_profile *old = STATE->session;
    if (old == NULL || !_PySampling_IsRunning()) {
        return _PySampling_ERR_NOT_RUNNING;
    }
    struct _sampling_tables *tables =
        _PySampling_IsLast(old) ? _PySampling_EngineNewTables()
                                : STATE->tables;
    struct _sampling_profile *fresh = tables != NULL
        ? _PySampling_ProfileNew(tables, &old->options) : NULL;
    struct _sampling_profile *taken = NULL;
    if (fresh != NULL && _PySampling_Flush(tstate)) {
        taken = tables == STATE->tables ? _PySampling_CopyOf(old, 1) : old;
    }
    if (taken == NULL) {
        _PySampling_ProfileFree(fresh);
        if (tables != STATE->tables) {
            _PySampling_TablesFree(tables);
        }
        return _PySampling_ERR_NO_MEMORY;
    }
    uint64_t end_ns = _PySampling_FlushedNow();
    _PySampling_BeginProfile(fresh, end_ns);
    replace_session(tstate, fresh);
    return hand_over(old, taken, end_ns, result);
}

_PySampling_Status
_PySampling_Snapshot(PyThreadState *tstate, int clear,
                     struct _sampling_profile **result)
{
    *result = NULL;
    _PySampling_LockControl();
    // No tick meanwhile: it would wait in rows of tables that are gone.
    _PySampling_Thread *own =
        STATE->active ? _PySampling_ThreadOf(tstate) : NULL;
    if (own != NULL) {
        _PySampling_ENTER_HOOK(own);
    }
    _PySampling_Status status = clear ? clear_locked(tstate, result)
                                      : snapshot_locked(tstate, result);
    if (own != NULL) {
        _PySampling_LEAVE_HOOK(own);
    }
    _PySampling_UnlockControl();
    return status;
}

static _PySampling_Status
stop_locked(PyThreadState *tstate, struct _sampling_profile **result)
{
    struct _sampling_profile *session = STATE->session;
    if (session == NULL || !_PySampling_IsRunning()) {
        return _PySampling_ERR_NOT_RUNNING;
    }
    uint64_t end_ns = _PySampling_ProfileEnd(tstate, session);
    struct _sampling_profile *taken = session;
    if (STATE->tables != NULL) {
        // Others go on with them.
        taken = end_ns != 0 ? _PySampling_CopyOf(session, 1) : NULL;
        if (taken == NULL) {
            return _PySampling_ERR_NO_MEMORY;   // it goes on
        }
    }
    set_session(NULL);
    STATE->exit_session = 0;
    if (session->is_open) {
        _PySampling_CloseProfile(tstate, session);
    }
    return hand_over(session, taken, end_ns, result);
}

_PySampling_Status
_PySampling_Stop(PyThreadState *tstate, struct _sampling_profile **result)
{
    *result = NULL;
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
    _PySampling_ReadCounters(counters);
    _PySampling_CountersSince(counters, &STATE->session_counters);
    _PySampling_UnlockControl();
}


/* Subscriptions. */

static void
link_subscription(struct _sampling_subscription *sub)
{
    _PySampling_LockTables();
    _PySampling_LINK(STATE->subscriptions, sub);
    sub->is_linked = 1;
    sub->is_open = 1;
    _PySampling_UnlockTables();
}

static void
unlink_subscription(struct _sampling_subscription *sub)
{
    _PySampling_LockTables();
    if (sub->is_open) {
        _PySampling_SubscriptionEnd(sub);
    }
    _PySampling_UNLINK(STATE->subscriptions, sub);
    _Py_atomic_store_int_relaxed(&sub->is_open, 0);
    sub->is_linked = 0;
    _PySampling_UnlockTables();
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
    if (!_PySampling_Flush(tstate)) {
        return _PySampling_ERR_NO_MEMORY;
    }
    link_subscription(sub);
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
        _PySampling_LockTables();
        _PySampling_SubscriptionAdd(sub, &(struct _sampling_event){
            .time_ns = _PySampling_WallNow(),
            .kind = _PySampling_EVENT_RATE,
            .count = (uint64_t)rate_hz,
        });
        _PySampling_UnlockTables();
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
    struct _sampling_tables *fresh = _PySampling_EngineNewTables();
    int is_done = fresh != NULL && _PySampling_Flush(tstate);
    if (is_done) {
        _PySampling_EngineExchange(tstate, fresh);
        STATE->renewed_ns = _PySampling_MonotonicNow();
    }
    else {
        _PySampling_TablesFree(fresh);
    }
    _PySampling_LEAVE_HOOK(own);
    return is_done ? _PySampling_OK : _PySampling_ERR_NO_MEMORY;
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
    _PySampling_RecordCustom(tstate, thread, weight, pairs);
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
    (void)_PySampling_ClocksMove(own, (struct _sampling_time){wall_ns, cpu_ns});
    _PySampling_ClockTick();
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
    if (thread != NULL) {
        _PySampling_RunEnd(thread);
    }
    _PySampling_LockRegistry();
    if (signum == STATE->signal) {
        _PySampling_ClockLeaveSignal();
    }
    _PySampling_UnlockRegistry();
    if (thread != NULL) {
        _PySampling_RunBegin(thread, _PySampling_PENDING);
    }
    errno = saved_errno;
}

PyOS_sighandler_t
_PySampling_BeforeSetSignal(int signum, PyOS_sighandler_t handler)
{
    _PySampling_BeforeUseOfSignal(signum);
    return _PySampling_EndingHandlerFor(signum, handler);
}
