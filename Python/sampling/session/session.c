/* Sampling profiler: the session.

   Owns what users ask for (start, stop and snapshot, deferred profiling,
   subscriptions) and the hooks of signals.  Must not know how the engine is
   turned on and off (session/engine.c), a thread comes to take part, a stack
   is walked, a nanosecond is booked or a row is laid out. */

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

#define STATE (&_PyRuntime.sampling)

static void
lock_control(void)
{
    PyMutex_LockFlags(&STATE->control_mutex, _Py_LOCK_DONT_DETACH);
}

static void
unlock_control(void)
{
    PyMutex_Unlock(&STATE->control_mutex);
}

static _PySampling_Status
may_begin(void)
{
    if (_PySampling_IsForkedUnheard()) {
        return _PySampling_ERR_FORKED;
    }
    return _PyRuntimeState_GetFinalizing(&_PyRuntime) == NULL
        ? _PySampling_OK : _PySampling_ERR_ENDING;
}


/* Sessions. */

/* Which the clock has, or will take; 0: any. */
static int
clock_signal(void)
{
    return STATE->clock != NULL ? STATE->signal : STATE->options.signal;
}

/* The options that hold, but for a signal that the program has taken
   meanwhile: any other will do then. */
static _PySampling_Options
current_options(void)
{
    _PySampling_Options options = STATE->options;
    if (options.signal != clock_signal()) {
        options.signal = 0;
    }
    return options;
}

/* Subscriptions go on, even if the session cannot begin. */
static _PySampling_Status
restart(PyThreadState *tstate, const _PySampling_Options *options)
{
    _PySampling_Options before = current_options();
    _PySampling_Status status = _PySampling_EngineRestart(tstate, options);
    if (status != _PySampling_OK) {
        int saved_errno = errno;
        (void)_PySampling_EngineRestart(tstate, &before);
        STATE->is_restarting = 0;
        errno = saved_errno;
    }
    return status;
}

static _PySampling_Status
start_locked(PyThreadState *tstate, const _PySampling_Options *options)
{
    _PySampling_Status status = may_begin();
    if (status != _PySampling_OK) {
        return status;
    }
    if (STATE->has_session) {
        return _PySampling_ERR_RUNNING;
    }
    if (STATE->tables == NULL) {
        status = _PySampling_EnginePrepare(options);
    }
    else {
        // For subscribers it goes on with what it tells them, and more.
        _PySampling_Options wider = current_options();
        if (options->signal != 0 && options->signal != clock_signal()) {
            wider.signal = options->signal;
        }
        wider.depth_frames = Py_MAX(wider.depth_frames,
                                    options->depth_frames);
        wider.names |= options->names;
        if (options->manual != wider.manual) {
            return _PySampling_ERR_OPTIONS;
        }
        if (memcmp(&wider, &STATE->options, sizeof(wider)) != 0) {
            status = restart(tstate, &wider);
        }
        else if (_PySampling_EngineFlush(tstate)) {
            _PySampling_EngineClearSamples();
        }
        else {
            status = _PySampling_ERR_NO_MEMORY;
        }
    }
    if (status != _PySampling_OK) {
        return status;
    }
    _Py_atomic_store_int_relaxed(&STATE->has_session, 1);
    STATE->is_deferred = options->is_deferred;
    STATE->num_inside = 0;
    STATE->session_options = *options;
    status = _PySampling_EngineFit(tstate);
    if (status != _PySampling_OK) {
        int saved_errno = errno;
        _Py_atomic_store_int_relaxed(&STATE->has_session, 0);
        _PySampling_EngineSetAggregating(0);
        if (STATE->subscriptions == NULL) {
            _PySampling_TablesFree(_PySampling_EngineOff(tstate));
        }
        errno = saved_errno;
    }
    return status;
}

_PySampling_Status
_PySampling_Start(PyThreadState *tstate, const _PySampling_Options *options)
{
    lock_control();
    _PySampling_Status status = start_locked(tstate, options);
    unlock_control();
    return status;
}

static int
is_ours(void)
{
    return STATE->has_session && !_PySampling_IsForkedUnheard();
}

static struct _sampling_tables *
copy_tables(void)
{
    PyMutex_LockFlags(&STATE->tables_mutex, _Py_LOCK_DONT_DETACH);
    _PySampling_EngineDescribe(STATE->tables);
    struct _sampling_tables *copy = _PySampling_TablesCopy(STATE->tables);
    PyMutex_Unlock(&STATE->tables_mutex);
    return copy;
}

static _PySampling_Status
snapshot_locked(PyThreadState *tstate, int clear,
                struct _sampling_tables **result)
{
    if (!is_ours()) {
        return _PySampling_ERR_NOT_RUNNING;
    }
    struct _sampling_tables *fresh = NULL;
    int exchanges = clear && STATE->subscriptions == NULL;
    if (exchanges) {
        fresh = _PySampling_EngineNewTables();
        if (fresh == NULL) {
            return _PySampling_ERR_NO_MEMORY;
        }
    }
    // No tick from here on: what it captured would go with the tables, and
    // the time that it took counts for what follows.
    _PySampling_Thread *own =
        STATE->active ? _PySampling_ThreadOf(tstate) : NULL;
    if (own != NULL) {
        _PySampling_ENTER_HOOK(own);
    }
    if (!_PySampling_EngineFlush(tstate)) {
        _PySampling_TablesFree(fresh);
        *result = NULL;
    }
    else if (exchanges) {
        *result = _PySampling_EngineExchange(tstate, fresh);
    }
    else {
        *result = copy_tables();
        if (clear && *result != NULL) {
            _PySampling_EngineClearSamples();
        }
    }
    if (own != NULL) {
        _PySampling_LEAVE_HOOK(own);
    }
    return *result != NULL ? _PySampling_OK : _PySampling_ERR_NO_MEMORY;
}

_PySampling_Status
_PySampling_Snapshot(PyThreadState *tstate, int clear,
                     struct _sampling_tables **result)
{
    lock_control();
    _PySampling_Status status = snapshot_locked(tstate, clear, result);
    unlock_control();
    return status;
}

static _PySampling_Status
stop_locked(PyThreadState *tstate, struct _sampling_tables **result)
{
    if (!is_ours()) {
        return _PySampling_ERR_NOT_RUNNING;
    }
    if (STATE->subscriptions == NULL) {
        *result = _PySampling_EngineOff(tstate);
    }
    else {
        if (!_PySampling_EngineFlush(tstate)) {
            return _PySampling_ERR_NO_MEMORY;
        }
        *result = copy_tables();
        if (*result == NULL) {
            return _PySampling_ERR_NO_MEMORY;
        }
        _PySampling_EngineClearSamples();
    }
    _Py_atomic_store_int_relaxed(&STATE->has_session, 0);
    STATE->exit_session = 0;
    STATE->num_inside = 0;
    _PySampling_EngineSetAggregating(0);
    // Subscribers may want a lower rate.
    return STATE->subscriptions != NULL
        ? _PySampling_EngineFit(tstate) : _PySampling_OK;
}

_PySampling_Status
_PySampling_Stop(PyThreadState *tstate, struct _sampling_tables **result)
{
    lock_control();
    _PySampling_Status status = stop_locked(tstate, result);
    unlock_control();
    return status;
}

static _PySampling_Status
change_inside(PyThreadState *tstate, int change)
{
    if (_PySampling_IsForkedUnheard()) {
        return _PySampling_OK;      // the program goes on, unsampled
    }
    lock_control();
    _PySampling_Status status = _PySampling_OK;
    if (!is_ours() || !STATE->is_deferred || STATE->num_inside + change < 0) {
        status = _PySampling_ERR_NOT_RUNNING;
    }
    else {
        STATE->num_inside += change;
        if (STATE->num_inside == 0 || (STATE->num_inside == 1 && change > 0)) {
            status = _PySampling_EngineFit(tstate);
        }
    }
    unlock_control();
    return status;
}

_PySampling_Status
_PySampling_Enter(PyThreadState *tstate)
{
    return change_inside(tstate, 1);
}

_PySampling_Status
_PySampling_Leave(PyThreadState *tstate)
{
    return change_inside(tstate, -1);
}


/* Subscriptions. */

static void
link_subscription(struct _sampling_subscription *sub)
{
    PyMutex_LockFlags(&STATE->tables_mutex, _Py_LOCK_DONT_DETACH);
    sub->prev = NULL;
    sub->next = STATE->subscriptions;
    if (sub->next != NULL) {
        sub->next->prev = sub;
    }
    STATE->subscriptions = sub;
    sub->is_linked = 1;
    sub->is_open = 1;
    PyMutex_Unlock(&STATE->tables_mutex);
}

static void
unlink_subscription(struct _sampling_subscription *sub)
{
    PyMutex_LockFlags(&STATE->tables_mutex, _Py_LOCK_DONT_DETACH);
    if (sub->is_open) {
        _PySampling_SubscriptionEnd(sub);
    }
    if (sub->prev != NULL) {
        sub->prev->next = sub->next;
    }
    else {
        STATE->subscriptions = sub->next;
    }
    if (sub->next != NULL) {
        sub->next->prev = sub->prev;
    }
    _Py_atomic_store_int_relaxed(&sub->is_open, 0);
    sub->is_linked = 0;
    PyMutex_Unlock(&STATE->tables_mutex);
}

void
_PySampling_DefaultOptions(_PySampling_Options *options)
{
    lock_control();
    int is_on = STATE->tables != NULL;
    if (options->depth_frames == 0) {
        options->depth_frames = is_on
            ? STATE->options.depth_frames
            : _PySampling_DEFAULT_DEPTH_FRAMES;
    }
    if (options->names < 0) {
        options->names =
            is_on ? STATE->options.names : _PySampling_ALL_NAMES;
    }
    unlock_control();
}

static _PySampling_Status
subscribe_locked(PyThreadState *tstate, struct _sampling_subscription *sub,
                 const _PySampling_Options *options)
{
    _PySampling_Status status = may_begin();
    if (status != _PySampling_OK) {
        return status;
    }
    if (STATE->tables != NULL
        && (options->depth_frames > STATE->options.depth_frames
            || (options->names & ~STATE->options.names)
            || (options->signal != 0 && options->signal != clock_signal())
            || options->manual != STATE->options.manual))
    {
        return _PySampling_ERR_OPTIONS;
    }
    status = _PySampling_EnginePrepare(options);
    if (status != _PySampling_OK || !_PySampling_EngineFlush(tstate)) {
        return status != _PySampling_OK ? status : _PySampling_ERR_NO_MEMORY;
    }
    link_subscription(sub);
    status = _PySampling_EngineFit(tstate);
    if (status != _PySampling_OK) {
        int saved_errno = errno;
        unlink_subscription(sub);
        (void)_PySampling_EngineFit(tstate);
        errno = saved_errno;
    }
    return status;
}

_PySampling_Status
_PySampling_Subscribe(PyThreadState *tstate,
                      struct _sampling_subscription *sub,
                      const _PySampling_Options *options)
{
    lock_control();
    _PySampling_Status status = subscribe_locked(tstate, sub, options);
    unlock_control();
    return status;
}

_PySampling_Status
_PySampling_Unsubscribe(PyThreadState *tstate,
                        struct _sampling_subscription *sub)
{
    _PySampling_Status status = _PySampling_OK;
    lock_control();
    if (sub->is_open) {
        (void)_PySampling_EngineFlush(tstate);
        unlink_subscription(sub);
        status = _PySampling_EngineFit(tstate);
    }
    else if (sub->is_linked) {
        unlink_subscription(sub);   // in a child that C code has forked
    }
    unlock_control();
    return status;
}

void
_PySampling_EndSubscriptions(PyThreadState *tstate)
{
    lock_control();
    if (STATE->subscriptions != NULL && !_PySampling_IsForkedUnheard()) {
        (void)_PySampling_EngineFlush(tstate);
        while (STATE->subscriptions != NULL) {
            unlink_subscription(STATE->subscriptions);
        }
        (void)_PySampling_EngineFit(tstate);
    }
    unlock_control();
}

_PySampling_Status
_PySampling_FlushSubscription(PyThreadState *tstate,
                              struct _sampling_subscription *sub)
{
    _PySampling_Status status = _PySampling_OK;
    lock_control();
    if (sub->is_open) {
        if (!_PySampling_EngineFlush(tstate)) {
            status = _PySampling_ERR_NO_MEMORY;
        }
    }
    unlock_control();
    return status;
}

_PySampling_Status
_PySampling_SetSubscriptionRate(PyThreadState *tstate,
                                struct _sampling_subscription *sub,
                                int rate_hz)
{
    _PySampling_Status status = _PySampling_OK;
    lock_control();
    if (sub->is_open) {
        sub->rate_hz = rate_hz;
        status = _PySampling_EngineFit(tstate);
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
    unlock_control();
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
    if (STATE->has_session || !STATE->active
        || !is_due_for_renewal(STATE->tables))
    {
        return _PySampling_OK;
    }
    struct _sampling_tables *fresh = _PySampling_EngineNewTables();
    if (fresh == NULL || !_PySampling_EngineFlush(tstate)) {
        _PySampling_TablesFree(fresh);
        return _PySampling_ERR_NO_MEMORY;
    }
    _PySampling_Thread *own = _PySampling_RECORD_OF(tstate);
    _PySampling_ENTER_HOOK(own);
    // Batches that wait keep the old ones.
    _PySampling_TablesFree(_PySampling_EngineExchange(tstate, fresh));
    _PySampling_LEAVE_HOOK(own);
    STATE->renewed_ns = _PySampling_MonotonicNow();
    return _PySampling_OK;
}

_PySampling_Status
_PySampling_RenewIfFull(PyThreadState *tstate)
{
    lock_control();
    _PySampling_Status status = renew_locked(tstate);
    unlock_control();
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
    wall_ns += _PySampling_WallNow();
    _Py_atomic_store_uint64_relaxed(&STATE->manual_wall_ns, wall_ns);
    own->manual_cpu_ns += cpu_ns;
    _PySampling_ClockTickAll(wall_ns, distance);
    _PySampling_UnlockRegistry();
    return _PySampling_OK;
}

void
_PySampling_BeforeSetSignal(int signum)
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
        _PySampling_ClockSettle(thread);
    }
    if (signum == STATE->signal) {
        _PySampling_ClockLeaveSignal();
    }
    _PySampling_UnlockRegistry();
    if (thread != NULL) {
        _PySampling_TimerResume(thread);
    }
    errno = saved_errno;
}
