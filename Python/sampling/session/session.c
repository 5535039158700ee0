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
set_session(struct _sampling_sink *sink)
{
    _Py_atomic_store_ptr_relaxed(&STATE->session, sink);
}

/* Without records, until somebody enters a region. */
static _PySampling_Status
begin_deferred(struct _sampling_sink *session)
{
    _PySampling_LockTables();
    int is_ready = _PySampling_SinkReady(session);
    _PySampling_UnlockTables();
    _PySampling_BeginSink(session, _PySampling_WallNow());
    return is_ready ? _PySampling_OK : _PySampling_ERR_NO_MEMORY;
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
    status = _PySampling_TablesEnsureOrCheck(options);
    if (status != _PySampling_OK) {
        return status;
    }
    struct _sampling_sink *session = _PySampling_SinkNew(options);
    if (session == NULL) {
        (void)_PySampling_EngineReconfigure(tstate);
        return _PySampling_ERR_NO_MEMORY;
    }
    set_session(session);
    // Where others sample it gets nothing until somebody enters a region.
    status = options->is_deferred && STATE->num_regions == 0
             && STATE->sinks != NULL
        ? begin_deferred(session) : _PySampling_OpenSink(tstate, session);
    if (status != _PySampling_OK) {
        int saved_errno = errno;
        set_session(NULL);
        _PySampling_SinkFree(session);
        (void)_PySampling_EngineReconfigure(tstate);
        errno = saved_errno;
        return status;
    }
    STATE->session_options = *options;
    STATE->session_counters = session->counters;
    return _PySampling_OK;
}

/* The rate gives way to that share of the CPU time from now on; 0: no more. */
void
_PySampling_LimitOverhead(int percent)
{
    // A child of a fork begins with those of the session.
    STATE->session_options.overhead_percent = percent;
    _Py_atomic_store_int_relaxed(&STATE->options.overhead_percent, percent);
}

_PySampling_Status
_PySampling_Start(PyThreadState *tstate, const _PySampling_Options *options)
{
    _PySampling_LockControl();
    _PySampling_Status status = start_locked(tstate, options);
    _PySampling_UnlockControl();
    return status;
}

/* The session, or the block that began first. */
static struct _sampling_sink *
first_sink(void)
{
    struct _sampling_sink *found = STATE->session;
    for (struct _sampling_sink *sink = STATE->sinks;
         sink != NULL && STATE->session == NULL; sink = sink->next)
    {
        if (!sink->is_subscription) {
            found = sink;
        }
    }
    return found;
}

static _PySampling_Status
snapshot_locked(PyThreadState *tstate, struct _sampling_taken *taken)
{
    struct _sampling_sink *sink = first_sink();
    if (sink == NULL || !_PySampling_IsRunning()) {
        return _PySampling_ERR_NOT_RUNNING;
    }
    return _PySampling_Flush(tstate)
            && _PySampling_TakeSoFar(sink, _PySampling_FlushedNow(), taken)
        ? _PySampling_OK : _PySampling_ERR_NO_MEMORY;
}

/* Blocks that are in use go on: with them, the tables are exchanged only when
   they have become twice as large as what is in use takes. */
#define SMALL_TABLES_BYTES ((size_t)1 << 20)

static int
want_fresh_tables(const struct _sampling_sink *session)
{
    const struct _sampling_tables *tables = STATE->tables;
    return _PySampling_IsLast(session)
        && (session->allocations.period_bytes == 0
            || tables->bytes > 2 * tables->moved_bytes + SMALL_TABLES_BYTES);
}

/* The session goes on with nothing, in tables of its own if nobody else uses
   these. */
static _PySampling_Status
clear_locked(PyThreadState *tstate, struct _sampling_taken *taken)
{
    struct _sampling_sink *session = STATE->session;
    if (session == NULL || !_PySampling_IsRunning()) {
        return _PySampling_ERR_NOT_RUNNING;
    }
    if (!_PySampling_Flush(tstate)) {
        return _PySampling_ERR_NO_MEMORY;
    }
    uint64_t end_ns = _PySampling_FlushedNow();
    if (!_PySampling_TakeSoFar(session, end_ns, taken)) {
        return _PySampling_ERR_NO_MEMORY;
    }
    struct _sampling_tables *fresh = want_fresh_tables(session)
        ? _PySampling_EngineNewTables() : NULL;
    if (fresh != NULL) {
        // What threads of other GILs have added meanwhile goes with the rows.
        _PySampling_EngineExchange(tstate, fresh);
        if (!session->is_linked) {
            _PySampling_LockTables();
            (void)_PySampling_SinkTurn(session);
            _PySampling_UnlockTables();
        }
    }
    _PySampling_BeginSinkAnew(session, end_ns);
    STATE->session_counters = session->counters;
    return _PySampling_OK;
}

_PySampling_Status
_PySampling_Snapshot(PyThreadState *tstate, int clear,
                     struct _sampling_profile **result)
{
    *result = NULL;
    struct _sampling_taken taken;
    _PySampling_LockControl();
    // No tick meanwhile: it would wait in rows of tables that are gone.
    _PySampling_Thread *own =
        STATE->active ? _PySampling_ThreadEnsure(tstate) : NULL;
    if (own != NULL) {
        _PySampling_ENTER_HOOK(own);
    }
    _PySampling_Status status = clear ? clear_locked(tstate, &taken)
                                      : snapshot_locked(tstate, &taken);
    if (own != NULL) {
        _PySampling_LEAVE_HOOK(own);
    }
    _PySampling_UnlockControl();
    return status == _PySampling_OK
        ? _PySampling_HandOver(&taken, result) : status;
}

static _PySampling_Status
stop_locked(PyThreadState *tstate, struct _sampling_taken *taken)
{
    struct _sampling_sink *session = STATE->session;
    if (session == NULL || !_PySampling_IsRunning()) {
        return _PySampling_ERR_NOT_RUNNING;
    }
    uint64_t end_ns = _PySampling_SinkEnd(tstate, session);
    if (end_ns == 0) {
        return _PySampling_ERR_NO_MEMORY;   // it goes on
    }
    _PySampling_TakeAll(session, end_ns, taken);
    set_session(NULL);
    STATE->exit_session = 0;
    if (session->is_open) {
        (void)_PySampling_CloseSink(tstate, session);
    }
    _PySampling_SinkFree(session);
    return _PySampling_OK;
}

_PySampling_Status
_PySampling_Stop(PyThreadState *tstate, struct _sampling_profile **result)
{
    *result = NULL;
    struct _sampling_taken taken;
    _PySampling_LockControl();
    _PySampling_Status status = stop_locked(tstate, &taken);
    _PySampling_UnlockControl();
    return status == _PySampling_OK
        ? _PySampling_HandOver(&taken, result) : status;
}

void
_PySampling_GetCounters(struct _sampling_counters *counters)
{
    if (_PySampling_ACTIVE()) {
        _PySampling_UpdateMemoryBytes();
    }
    _PySampling_LockControl();
    _PySampling_ReadCounters(counters);
    _PySampling_CountersSince(counters, &STATE->session_counters);
    _PySampling_UnlockControl();
}


/* Subscriptions. */

static _PySampling_Status
subscribe_locked(PyThreadState *tstate, struct _sampling_sink *sub,
                 const _PySampling_Options *options)
{
    _PySampling_Status status = _PySampling_MayBegin();
    if (status == _PySampling_OK) {
        status = _PySampling_TablesEnsureOrCheck(options);
    }
    if (status == _PySampling_OK) {
        status = _PySampling_OpenSink(tstate, sub);
    }
    if (status != _PySampling_OK) {
        int saved_errno = errno;
        (void)_PySampling_EngineReconfigure(tstate);
        errno = saved_errno;
    }
    return status;
}

_PySampling_Status
_PySampling_Subscribe(PyThreadState *tstate, struct _sampling_sink *sub,
                      const _PySampling_Options *options)
{
    _PySampling_LockControl();
    _PySampling_Status status = subscribe_locked(tstate, sub, options);
    _PySampling_UnlockControl();
    return status;
}

_PySampling_Status
_PySampling_Unsubscribe(PyThreadState *tstate, struct _sampling_sink *sub)
{
    _PySampling_Status status = _PySampling_OK;
    _PySampling_LockControl();
    if (sub->is_open) {
        (void)_PySampling_Flush(tstate);
        status = _PySampling_CloseSink(tstate, sub);
    }
    else if (sub->is_linked) {
        // In a child that C code has forked.
        _PySampling_LockTables();
        _PySampling_SinkUnlink(sub);
        _PySampling_UnlockTables();
    }
    _PySampling_UnlockControl();
    return status;
}

static struct _sampling_sink *
any_subscription(void)
{
    struct _sampling_sink *sink = STATE->sinks;
    while (sink != NULL && !sink->is_subscription) {
        sink = sink->next;
    }
    return sink;
}

void
_PySampling_EndSubscriptions(PyThreadState *tstate)
{
    _PySampling_LockControl();
    struct _sampling_sink *sink;
    while (!_PySampling_ForkedWithoutHooks()
           && (sink = any_subscription()) != NULL)
    {
        (void)_PySampling_Flush(tstate);
        (void)_PySampling_CloseSink(tstate, sink);
    }
    _PySampling_UnlockControl();
}

_PySampling_Status
_PySampling_FlushSubscription(PyThreadState *tstate,
                              struct _sampling_sink *sub)
{
    _PySampling_Status status = _PySampling_OK;
    _PySampling_LockControl();
    if (sub->is_open && !_PySampling_Flush(tstate)) {
        status = _PySampling_ERR_NO_MEMORY;
    }
    _PySampling_UnlockControl();
    return status;
}

_PySampling_Status
_PySampling_SetSubscriptionRate(PyThreadState *tstate,
                                struct _sampling_sink *sub, int rate_hz)
{
    _PySampling_Status status = _PySampling_OK;
    _PySampling_LockControl();
    if (sub->is_open) {
        sub->options.rate_hz = rate_hz;
        status = _PySampling_EngineReconfigure(tstate);
    }
    if (sub->is_open && status == _PySampling_OK) {
        _PySampling_LockTables();
        _PySampling_SinkAddEvent(sub, &(PySampling_Event){
            .time_ns = _PySampling_WallNow() + STATE->skipped_ns,
            .count = (uint64_t)rate_hz,
            .kind = PySampling_RATE,
            .thread = PySampling_NO_THREAD,
        });
        _PySampling_UnlockTables();
    }
    _PySampling_UnlockControl();
    return status;
}

/* Rows that no session needs are let go: what a subscriber in Python keeps of
   them is ten times as large. */
#define RENEWAL_BYTES (2 << 20)

static int
is_due_for_renewal(const struct _sampling_tables *tables)
{
    return tables->bytes > RENEWAL_BYTES
        || tables->num_tasks > _PySampling_MAX_TASKS / 2
        || tables->num_labels - tables->num_tasks
           > _PySampling_MAX_LABEL_SETS / 2
        || tables->num_threads > _PySampling_MAX_THREADS / 2;
}

static _PySampling_Status
renew_locked(PyThreadState *tstate)
{
    if (_PySampling_IsRunning() || !STATE->active
        || !is_due_for_renewal(STATE->tables))
    {
        return _PySampling_OK;
    }
    _PySampling_Thread *own = _PySampling_ThreadEnsure(tstate);
    if (own == NULL) {
        return _PySampling_ERR_NO_MEMORY;
    }
    _PySampling_ENTER_HOOK(own);
    struct _sampling_tables *fresh = _PySampling_EngineNewTables();
    int is_done = fresh != NULL && _PySampling_Flush(tstate);
    if (is_done) {
        _PySampling_EngineExchange(tstate, fresh);
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
    if (_PySampling_ACTIVE()
        && !_PySampling_STANDS_STILL(_PySampling_PAUSES()))
    {
        thread = _PySampling_ThreadEnsure(tstate);
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
    if (!STATE->active || !STATE->options.manual
        || _PySampling_STANDS_STILL(_PySampling_PAUSES()))
    {
        return _PySampling_ERR_NOT_RUNNING;
    }
    _PySampling_Thread *own = _PySampling_ThreadEnsure(tstate);
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
    if (_PySampling_IsEndingHandler(handler)
        || _PySampling_IsArmedHandler(handler))
    {
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
