/* Sampling profiler: the engine, on and off.

   Owns when the clock runs, at which rate, and which tables there are.  Must
   not know why it is to run (session/session.c), or how a stack is walked, a
   nanosecond is recorded or a row is laid out.

   The engine is off, or it runs; between the regions of a deferred session its
   time stands still. */

#include "Python.h"

#include "pycore_interp.h"            // PyInterpreterState.sampling
#include "pycore_pystate.h"           // _PyThreadState_GET()
#include "pycore_runtime.h"           // _PyRuntime
#include "pycore_tstate.h"            // _PyThreadStateImpl

#include "../alloc/alloc.h"
#include "../clock/clock.h"
#include "../native/native.h"         // _PySampling_MemoryInit()
#include "../sample/sample.h"
#include "../task/task.h"
#include "session.h"

#include <errno.h>
#include <unistd.h>                   // getpid()

#define STATE (&_PyRuntime.sampling)


/* Tables. */

struct _sampling_tables *
_PySampling_EngineNewTables(void)
{
    struct _sampling_tables *tables =
        _PySampling_TablesNew(_PySampling_TABLE_LIMIT_BYTES);
    if (tables != NULL) {
        tables->serial = ++STATE->tables_serial;
    }
    return tables;
}

/* Threads of other GILs may be reading. */
static void
next_epoch(void)
{
    _Py_atomic_store_uint_relaxed(&STATE->epoch, STATE->epoch + 1);
}

/* Threads of other GILs may be counting. */
static void
reset_counters(void)
{
#define X(name) _Py_atomic_store_uint64_relaxed(&STATE->counters.name, 0);
    _PySampling_COUNTERS(X)
#undef X
    STATE->session_counters = (struct _sampling_counters){0};
}

/* Puts tables in the place of others, which are returned.  It is an epoch of
   its own, so that no thread of another GIL adds to them what it knows by the
   numbers of rows in the others. */
static struct _sampling_tables *
set_tables(struct _sampling_tables *tables)
{
    _PySampling_LockTables();
    struct _sampling_tables *old = STATE->tables;
    if (old != NULL && tables != NULL) {
        _PySampling_AllocMove(tables, old);
    }
    // _PySampling_ForkedWithoutHooks() takes no lock.
    _Py_atomic_store_ptr_relaxed(&STATE->tables, tables);
    for (struct _sampling_sink *sink = STATE->sinks;
         sink != NULL && tables != NULL; sink = sink->next)
    {
        // Without memory it gets nothing until the tables are replaced.
        (void)_PySampling_SinkTurn(sink);
    }
    next_epoch();
    _PySampling_UnlockTables();
    return old;
}

_PySampling_Status
_PySampling_EnginePrepare(const _PySampling_Options *options)
{
    if (STATE->tables != NULL) {
        return _PySampling_OK;
    }
    struct _sampling_tables *tables = _PySampling_EngineNewTables();
    if (tables == NULL) {
        return _PySampling_ERR_NO_MEMORY;
    }
    reset_counters();
    STATE->options = *options;
    STATE->owner_pid = (int)getpid();
    STATE->is_child_of_c_code = 0;
    _PySampling_WatchForks();
    _PySampling_ClocksBegin(options->manual);
    _PySampling_MemoryInit();
    (void)set_tables(tables);
    STATE->flushed_wall_ns = 0;
    return _PySampling_OK;
}


/* On. */

static _PySampling_Status
start_locked(PyThreadState *tstate)
{
    uint64_t now_ns = _PySampling_WallNow();
    // No hook said who detached, or what died, while the engine rested.
    for (struct _sampling_interpreter_state *s = STATE->interpreters;
         s != NULL; s = s->next)
    {
        s->task_rate = (struct _sampling_task_rate){0};
        s->tasks_since_ns = now_ns;
    }
    _PySampling_LockTables();
    _PySampling_TablesForgetAddresses(STATE->tables);
    next_epoch();
    _PySampling_UnlockTables();
    if (STATE->clock == NULL) {
        // Before threads count any.
        STATE->deadline_seed = _PySampling_MonotonicNow();
    }
    uint64_t wall_ns = _PySampling_WallNow();
    // Profiles and the threads in them begin at the same moment.
    _PySampling_SinksBegin(wall_ns);
    if (!_PySampling_RegisterExisting(tstate, wall_ns)) {
        return _PySampling_ERR_NO_MEMORY;
    }
    _PySampling_Status status = STATE->clock != NULL
        ? _PySampling_ClockResume()
        : _PySampling_ClockStart(_PySampling_SignalHandler);
    if (status != _PySampling_OK) {
        return status;
    }
    _PySampling_ReadMask(_PySampling_RECORD_OF(tstate));
    _Py_atomic_store_uint8(&STATE->active, 1);
    _PySampling_WakeOthers(tstate);
    _PySampling_ClockWake();
    return _PySampling_OK;
}

static _PySampling_Status
start(PyThreadState *tstate)
{
    _PySampling_LockRegistry();
    _PySampling_Status status = start_locked(tstate);
    int saved_errno = errno;
    if (status != _PySampling_OK) {
        // The records just made belong to none.
        next_epoch();
    }
    _PySampling_UnlockRegistry();
    errno = saved_errno;
    return status;
}


/* Off. */

/* None of them takes part any more.  Returns the moment. */
static uint64_t
stop_threads(PyThreadState *tstate)
{
    uint64_t now_ns = _PySampling_ThreadEnsure(tstate) != NULL
        ? _PySampling_FlushThreads(tstate, _PySampling_RecordAll)
        : _PySampling_WallNow();
    _PySampling_RecordLostThreads(tstate, now_ns);
    _Py_atomic_store_uint8(&STATE->active, 0);
    _PySampling_LockTables();
    next_epoch();
    _PySampling_UnlockTables();
    return now_ns;
}

uint64_t
_PySampling_EngineOff(PyThreadState *tstate)
{
    // Without the registry locked: the clock needs it to finish.
    _PySampling_ClockStop(_PySampling_RECORD_OF(tstate));
    uint64_t now_ns =
        STATE->active ? stop_threads(tstate) : _PySampling_WallNow();
    if (STATE->tables != NULL) {
        _PySampling_TablesFree(set_tables(NULL));
    }
    return now_ns;
}


/* What is wanted. */

static int
wanted_rate(void)
{
    int rate_hz = 0;
    for (struct _sampling_sink *sink = STATE->sinks; sink != NULL;
         sink = sink->next)
    {
        rate_hz = Py_MAX(rate_hz, sink->options.rate_hz);
    }
    return rate_hz;
}

static void
set_rate(int rate_hz)
{
    STATE->options.rate_hz = rate_hz;
    uint64_t period_ns = 1000000000u / (uint64_t)rate_hz;
    if (period_ns != STATE->period_ns) {
        _PySampling_ClockSetPeriod(period_ns);
    }
}

int
_PySampling_IsLast(const struct _sampling_sink *sink)
{
    return (STATE->session == NULL || STATE->session == sink)
        && (STATE->sinks == NULL
            || (STATE->sinks == sink && sink->next == NULL));
}

/* Between the regions of a deferred session, if nobody else samples. */
static int
is_to_stand_still(void)
{
    return STATE->session != NULL && STATE->session->options.is_deferred
        && STATE->num_regions == 0 && _PySampling_IsLast(STATE->session);
}

static void
set_clocks(int stand_still)
{
    if (stand_still != _PySampling_STANDS_STILL(_PySampling_PAUSES())) {
        (stand_still ? _PySampling_ClocksStop : _PySampling_ClocksGoOn)();
    }
}

/* Of threads only the caller is concerned: the others find it out when they
   attach next, and their time stands still meanwhile. */
static void
stop_or_go_on(PyThreadState *tstate, int stand_still)
{
    _PySampling_Thread *own = _PySampling_ThreadEnsure(tstate);
    if (stand_still) {
        _PySampling_ClockRest(own);
    }
    set_clocks(stand_still);
    if (own != NULL) {
        _PySampling_ENTER_HOOK(own);
        _PySampling_Drain(tstate, own);
        _PySampling_RecordPause(own);
        if (stand_still) {
            _PySampling_RunBegin(own, _PySampling_PENDING);
        }
        _PySampling_LEAVE_HOOK(own);
    }
    if (!stand_still) {
        (void)_PySampling_ClockResume();
    }
}

_PySampling_Status
_PySampling_EngineReconfigure(PyThreadState *tstate)
{
    int rate_hz = wanted_rate();
    if (rate_hz == 0) {
        (void)_PySampling_EngineOff(tstate);
        return _PySampling_OK;
    }
    int stand_still = is_to_stand_still();
    if (!STATE->active || rate_hz != STATE->options.rate_hz) {
        if (!_PySampling_Flush(tstate)) {
            return _PySampling_ERR_NO_MEMORY;
        }
        set_rate(rate_hz);
    }
    if (!STATE->active) {
        set_clocks(stand_still);
        _PySampling_Status status = start(tstate);
        if (status != _PySampling_OK || !stand_still) {
            return status;
        }
        stop_or_go_on(tstate, 1);
    }
    else if (stand_still != _PySampling_STANDS_STILL(_PySampling_PAUSES())) {
        stop_or_go_on(tstate, stand_still);
    }
    return _PySampling_OK;
}


/* Anew. */

/* The tables begin anew; the threads that stand still get new rows. */
void
_PySampling_EngineExchange(PyThreadState *tstate,
                           struct _sampling_tables *fresh)
{
    if (STATE->active) {
        _PySampling_RecordLostThreads(tstate, _PySampling_WallNow());
    }
    // Locked all the while: a thread that registers gets a row in the tables
    // of the epoch that it gets.
    _PySampling_LockRegistry();
    // Threads of other GILs see that their rows are gone.
    struct _sampling_tables *old = set_tables(fresh);
    for (struct _sampling_interpreter_state *s = STATE->interpreters;
         s != NULL; s = s->next)
    {
        if (_PySampling_SharesGIL(s, tstate)) {
            _PySampling_TasksMove(s, STATE->epoch - 1, STATE->epoch);
        }
        for (_PySampling_Thread *t = s->threads; t != NULL; t = t->next) {
            if (_PySampling_SharesGIL(s, tstate)
                && t->epoch == STATE->epoch - 1)
            {
                uint32_t old_index = t->thread_index;
                _Py_atomic_store_uint(&t->epoch,
                                      _PySampling_EnterTables(t, 0));
                _PySampling_TablesMoveName(fresh, t->thread_index,
                                           old, old_index);
            }
        }
    }
    _PySampling_UnlockRegistry();
    if (STATE->active) {
        _PySampling_WakeOthers(tstate);
    }
    // What has been taken, or waits to be, may keep it.
    _PySampling_TablesFree(old);
}
