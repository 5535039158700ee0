/* Sampling profiler: the engine, on and off.

   Owns when the clock runs, at which rate, and the moments at which every
   thread's time has to be on a sample.  Must not know why it is to run
   (session/session.c), or how a stack is walked, a nanosecond is booked or a row is
   laid out.

   The engine is off, or runs, or rests: the tables of a deferred session are
   kept, but no thread takes part and the clock stands still. */

#include "Python.h"

#include "pycore_interp.h"            // PyInterpreterState.sampling
#include "pycore_pystate.h"           // _PyThreadState_GET()
#include "pycore_runtime.h"           // _PyRuntime
#include "pycore_time.h"              // PyTime_TimeRaw()
#include "pycore_tstate.h"            // _PyThreadStateImpl

#include "../clock/clock.h"
#include "../native/native.h"         // _PySampling_MemoryInit()
#include "../sample/sample.h"
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

/* Threads of other GILs may be looking. */
static void
next_session(void)
{
    _Py_atomic_store_uint_relaxed(&STATE->session, STATE->session + 1);
}

/* Threads of other GILs may be counting. */
static void
reset_counters(void)
{
#define X(name) _Py_atomic_store_uint64_relaxed(&STATE->counters.name, 0);
    _PySampling_COUNTERS(X)
#undef X
}

/* Puts tables in the place of others, which are returned.  It is a session of
   its own, so that no thread of another GIL adds to them what it knows by the
   numbers of rows in the others. */
static struct _sampling_tables *
set_tables(struct _sampling_tables *tables)
{
    PyMutex_LockFlags(&STATE->tables_mutex, _Py_LOCK_DONT_DETACH);
    struct _sampling_tables *old = STATE->tables;
    if (old != NULL) {
        _PySampling_SubscriptionsSeal();
    }
    STATE->tables = tables;
    next_session();
    PyMutex_Unlock(&STATE->tables_mutex);
    return old;
}

static void
start_clocks(uint64_t wall_ns)
{
    PyTime_t now = 0;
    (void)PyTime_TimeRaw(&now);
    STATE->start_time_ns = now;
    STATE->start_wall_ns = wall_ns;
}

/* All time before this moment is on samples, if anybody flushed just now. */
static uint64_t
flushed_ns(void)
{
    return STATE->active ? STATE->flushed_wall_ns : _PySampling_WallNow();
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
    STATE->is_unheard_child = 0;
    _PySampling_WatchForks();
    _Py_atomic_store_uint64_relaxed(&STATE->manual_wall_ns,
                                    options->manual != 0);
    _PySampling_MemoryInit();
    (void)set_tables(tables);
    start_clocks(_PySampling_WallNow());
    STATE->flushed_wall_ns = 0;
    return _PySampling_OK;
}

static void
describe(struct _sampling_tables *tables, uint64_t now_ns)
{
    tables->options = STATE->session_options;
    tables->start_time_ns = STATE->start_time_ns;
    tables->duration_ns = now_ns - STATE->start_wall_ns;
#define X(name) \
    tables->counters.name = \
        _Py_atomic_load_uint64_relaxed(&STATE->counters.name);
    _PySampling_COUNTERS(X)
#undef X
}

void
_PySampling_EngineDescribe(struct _sampling_tables *tables)
{
    describe(tables, flushed_ns());
}


/* Every nanosecond up to now. */

/* For the caller, and all threads that its GIL keeps from running.  A thread
   of another GIL accounts for itself when it attaches.  Returns the moment,
   which is one for all. */
static uint64_t
for_threads(PyThreadState *tstate,
            void (*account)(_PySampling_Thread *thread, uint64_t now_ns))
{
    _PySampling_Thread *own = _PySampling_RECORD_OF(tstate);
    _PySampling_ENTER_HOOK(own);
    // Not before: a tick in between would book the caller beyond it.
    uint64_t now_ns = _PySampling_WallNow();
    // Stacks are walked into the buffer in which captures wait.
    _PySampling_Drain(tstate, own);
    _PySampling_LockRegistry();
    for (struct _sampling_interpreter_state *s = STATE->interpreters;
         s != NULL; s = s->next)
    {
        if (!_PySampling_SharesGIL(s, tstate)) {
            continue;
        }
        for (_PySampling_Thread *t = s->threads; t != NULL; t = t->next) {
            if (t->session == STATE->session) {
                account(t, now_ns);
            }
        }
    }
    _PySampling_UnlockRegistry();
    _PySampling_LEAVE_HOOK(own);
    return now_ns;
}

static uint64_t
flush_threads(PyThreadState *tstate,
              void (*account)(_PySampling_Thread *thread, uint64_t now_ns))
{
    uint64_t now_ns = for_threads(tstate, account);
    STATE->flushed_wall_ns = now_ns;
    _PySampling_Measure();
    return now_ns;
}

void
_PySampling_AccountForBlocked(PyThreadState *tstate)
{
    PyMutex_LockFlags(&STATE->control_mutex, _Py_LOCK_DONT_DETACH);
    if (STATE->active && _PySampling_ThreadOf(tstate) != NULL) {
        (void)for_threads(tstate, _PySampling_BookBlocked);
    }
    PyMutex_Unlock(&STATE->control_mutex);
}

int
_PySampling_EngineFlush(PyThreadState *tstate)
{
    if (!STATE->active) {
        return 1;
    }
    if (_PySampling_ThreadOf(tstate) == NULL) {
        return 0;
    }
    (void)flush_threads(tstate, _PySampling_BookAll);
    return 1;
}

/* What threads of other GILs have not accounted for yet is lost with the
   tables they did not get to. */
static void
book_lost_threads(PyThreadState *caller, uint64_t now_ns)
{
    _PySampling_LockRegistry();
    PyMutex_LockFlags(&STATE->tables_mutex, _Py_LOCK_DONT_DETACH);
    for (struct _sampling_interpreter_state *s = STATE->interpreters;
         s != NULL; s = s->next)
    {
        if (_PySampling_SharesGIL(s, caller)) {
            continue;
        }
        for (_PySampling_Thread *t = s->threads; t != NULL; t = t->next) {
            if (_PySampling_IN_SESSION(t)) {
                _PySampling_BookLost(t, now_ns);
            }
        }
    }
    PyMutex_Unlock(&STATE->tables_mutex);
    _PySampling_UnlockRegistry();
}

void
_PySampling_Measure(void)
{
    size_t bytes = 0;
    _PySampling_LockRegistry();
    // Threads of other GILs make their windows with it.
    PyMutex_LockFlags(&STATE->tables_mutex, _Py_LOCK_DONT_DETACH);
    for (struct _sampling_interpreter_state *s = STATE->interpreters;
         s != NULL; s = s->next)
    {
        if (s->buffer != NULL) {
            bytes += _PySampling_BufferBytes(s->buffer);
        }
        bytes += _PySampling_HoldersBytes(s);
        for (_PySampling_Thread *t = s->threads; t != NULL; t = t->next) {
            bytes += sizeof(*t);
            bytes += _PySampling_WeightsBytes(t);
        }
    }
    if (STATE->tables != NULL) {
        bytes += STATE->tables->bytes;
    }
    bytes += _PySampling_SubscriptionsBytes();
    PyMutex_Unlock(&STATE->tables_mutex);
    _PySampling_UnlockRegistry();
    _Py_atomic_store_uint64_relaxed(&STATE->counters.memory_bytes, bytes);
}


/* On. */

static _PySampling_Status
start_locked(PyThreadState *tstate)
{
    // Nobody told who detached, or what died, while the engine rested.
    for (struct _sampling_interpreter_state *s = STATE->interpreters;
         s != NULL; s = s->next)
    {
        _Py_atomic_store_ptr(&s->running, NULL);
    }
    PyMutex_LockFlags(&STATE->tables_mutex, _Py_LOCK_DONT_DETACH);
    _PySampling_TablesForgetAddresses(STATE->tables);
    next_session();
    PyMutex_Unlock(&STATE->tables_mutex);
    // After a restart there is no moment of these threads that nobody is told
    // of; those of other GILs begin when they join.
    uint64_t wall_ns = STATE->is_restarting ? STATE->rested_wall_ns
                                            : _PySampling_WallNow();
    if (STATE->flushed_wall_ns == 0
        && !(STATE->has_session && STATE->is_deferred))
    {
        // For the first time with these tables: they and their threads begin
        // at the same moment.
        start_clocks(wall_ns);
    }
    if (!_PySampling_RegisterExisting(tstate, wall_ns,
                                      STATE->is_restarting))
    {
        return _PySampling_ERR_NO_MEMORY;
    }
    _PySampling_Status status = STATE->clock != NULL
        ? _PySampling_ClockResume()
        : _PySampling_ClockStart(_PySampling_SignalHandler);
    if (status != _PySampling_OK) {
        return status;
    }
    _PySampling_HoldersTake(_PySampling_RECORD_OF(tstate));
    _Py_atomic_store_int(&STATE->active, 1);
    _PySampling_WakeOthers(tstate);
    _Py_atomic_store_ptr(&tstate->interp->sampling.running,
                         _PySampling_RECORD_OF(tstate));
    _PySampling_ClockWake(0);
    return _PySampling_OK;
}

static _PySampling_Status
start(PyThreadState *tstate)
{
    _PySampling_LockRegistry();
    _PySampling_Status status = start_locked(tstate);
    int saved_errno = errno;
    if (status != _PySampling_OK) {
        // The records just made belong to none.  If there were some before, it
        // is tried again with other options.
        STATE->rested_session = STATE->session;
        next_session();
    }
    _PySampling_UnlockRegistry();
    errno = saved_errno;
    return status;
}


/* Off. */

/* No thread takes part any more. */
static void
rest(PyThreadState *tstate)
{
    uint64_t now_ns = _PySampling_ThreadOf(tstate) != NULL
        ? flush_threads(tstate, _PySampling_BookEnd)
        : _PySampling_WallNow();
    book_lost_threads(tstate, now_ns);
    STATE->rested_session = STATE->session;
    STATE->rested_wall_ns = now_ns;
    _Py_atomic_store_int(&STATE->active, 0);
    _Py_atomic_store_ptr(&tstate->interp->sampling.running, NULL);
    PyMutex_LockFlags(&STATE->tables_mutex, _Py_LOCK_DONT_DETACH);
    next_session();
    PyMutex_Unlock(&STATE->tables_mutex);
}

struct _sampling_tables *
_PySampling_EngineOff(PyThreadState *tstate)
{
    // Without the registry locked: the clock needs it to finish.
    _PySampling_ClockStop(_PySampling_RECORD_OF(tstate));
    int was_active = STATE->active;
    if (was_active) {
        rest(tstate);
    }
    struct _sampling_tables *tables = STATE->tables;
    if (tables != NULL) {
        describe(tables, was_active ? STATE->rested_wall_ns
                                    : _PySampling_WallNow());
        (void)set_tables(NULL);
    }
    return tables;
}


/* What is wanted. */

static int
session_samples(void)
{
    return STATE->has_session
        && (!STATE->is_deferred || STATE->num_inside > 0);
}

static int
wanted_rate(void)
{
    int rate_hz = session_samples() ? STATE->session_options.rate_hz : 0;
    for (struct _sampling_subscription *sub = STATE->subscriptions;
         sub != NULL; sub = sub->next)
    {
        rate_hz = Py_MAX(rate_hz, sub->rate_hz);
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

/* Threads of other GILs look at it while they emit. */
void
_PySampling_EngineSetAggregating(int is_aggregating)
{
    PyMutex_LockFlags(&STATE->tables_mutex, _Py_LOCK_DONT_DETACH);
    STATE->is_aggregating = is_aggregating;
    PyMutex_Unlock(&STATE->tables_mutex);
}

_PySampling_Status
_PySampling_EngineFit(PyThreadState *tstate)
{
    int rate_hz = wanted_rate();
    if (rate_hz == 0 && !STATE->has_session) {
        _PySampling_EngineSetAggregating(0);
        _PySampling_TablesFree(_PySampling_EngineOff(tstate));
        return _PySampling_OK;
    }
    if (!_PySampling_EngineFlush(tstate)) {
        return _PySampling_ERR_NO_MEMORY;
    }
    if (STATE->active && session_samples() && !STATE->is_deferred
        && !STATE->is_aggregating)
    {
        // Beside subscribers: what was before is theirs.
        start_clocks(flushed_ns());
    }
    _PySampling_EngineSetAggregating(session_samples());
    if (rate_hz != 0) {
        // There are none if a restart has failed.
        _PySampling_Options options = STATE->options;
        _PySampling_Status status = _PySampling_EnginePrepare(&options);
        if (status != _PySampling_OK) {
            return status;
        }
        set_rate(rate_hz);
        return STATE->active ? _PySampling_OK : start(tstate);
    }
    if (STATE->active) {
        _PySampling_ClockRest(_PySampling_RECORD_OF(tstate));
        rest(tstate);
    }
    return _PySampling_OK;
}

_PySampling_Status
_PySampling_EngineRestart(PyThreadState *tstate,
                          const _PySampling_Options *options)
{
    // Manual clocks begin anew with the tables.
    int was_active = STATE->active && !STATE->options.manual;
    _PySampling_TablesFree(_PySampling_EngineOff(tstate));
    _PySampling_Status status = _PySampling_EnginePrepare(options);
    if (status != _PySampling_OK) {
        return status;
    }
    // If it failed before, it goes on where it then rested.
    STATE->is_restarting |= was_active;
    status = _PySampling_EngineFit(tstate);
    if (status == _PySampling_OK) {
        STATE->is_restarting = 0;
    }
    return status;
}


/* Anew. */

void
_PySampling_EngineClearSamples(void)
{
    PyMutex_LockFlags(&STATE->tables_mutex, _Py_LOCK_DONT_DETACH);
    _PySampling_TablesClearSamples(STATE->tables);
    PyMutex_Unlock(&STATE->tables_mutex);
    reset_counters();
    start_clocks(flushed_ns());
}

/* The tables begin anew; the threads that stand still get new rows. */
struct _sampling_tables *
_PySampling_EngineExchange(PyThreadState *tstate,
                           struct _sampling_tables *fresh)
{
    if (STATE->active) {
        book_lost_threads(tstate, _PySampling_WallNow());
    }
    _PySampling_EngineDescribe(STATE->tables);
    // Locked all the while: a thread that registers gets a row in the tables
    // of the session it is told.
    _PySampling_LockRegistry();
    // Threads of other GILs see that their rows are gone.
    struct _sampling_tables *old = set_tables(fresh);
    reset_counters();
    start_clocks(flushed_ns());
    for (struct _sampling_interpreter_state *s = STATE->interpreters;
         s != NULL; s = s->next)
    {
        for (_PySampling_Thread *t = s->threads; t != NULL; t = t->next) {
            if (_PySampling_SharesGIL(s, tstate)
                && t->session == STATE->session - 1)
            {
                uint32_t old_index = t->thread_index;
                _Py_atomic_store_uint(&t->session,
                                      _PySampling_EnterTables(t, 0));
                _PySampling_TablesMoveName(fresh, t->thread_index,
                                           old, old_index);
            }
        }
    }
    if (STATE->active) {
        // The log of holders begins anew with the rows.
        _PySampling_HoldersTake(_PySampling_RECORD_OF(tstate));
    }
    _PySampling_UnlockRegistry();
    if (STATE->active) {
        _PySampling_WakeOthers(tstate);
    }
    return old;
}
