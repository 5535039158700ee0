/* Sampling profiler: the session.

   Owns start, stop and snapshot, and the hooks of the collector, of code
   objects, of signals and of fork.  Must not know how a thread comes to take
   part, a stack is walked, a nanosecond is booked or a row is laid out. */

#include "Python.h"

#include "pycore_frame.h"             // _PyInterpreterFrame
#include "pycore_interp.h"            // PyInterpreterState.sampling
#include "pycore_pystate.h"           // _PyThreadState_GET()
#include "pycore_runtime.h"           // _PyRuntime
#include "pycore_sampling_callee.h"
#include "pycore_time.h"              // PyTime_TimeRaw()
#include "pycore_tstate.h"            // _PyThreadStateImpl

#ifdef _PySampling_SUPPORTED

#include <errno.h>
#include <unistd.h>                   // getpid()

#define STATE (&_PyRuntime.sampling)


/* Hooks of the collector and of code objects. */

void
_PySampling_GCStart(PyThreadState *tstate, int generation)
{
    _PySampling_Thread *thread = _PySampling_ThreadOf(tstate);
    if (thread != NULL) {
        _PySampling_ENTER_HOOK(thread);
        thread->gc_frame = tstate->current_frame;
        thread->gc_generation = generation;
        _PySampling_LEAVE_HOOK(thread);
    }
}

void
_PySampling_GCEnd(PyThreadState *tstate)
{
    _PySampling_Thread *thread = ((_PyThreadStateImpl *)tstate)->sampling;
    if (thread != NULL) {
        thread->gc_generation = -1;
    }
}

/* Before something dies that captures may refer to: what waits becomes
   samples, and the tables forget it. */
static void
forget(void (*forget_it)(struct _sampling_tables *tables, void *it), void *it)
{
    PyThreadState *tstate = _PyThreadState_GET();
    _PySampling_Thread *thread = ((_PyThreadStateImpl *)tstate)->sampling;
    int saved_errno = errno;
    if (thread != NULL) {
        _PySampling_ENTER_HOOK(thread);
        if (thread->session == STATE->session) {
            _PySampling_Drain(tstate, thread);
        }
    }
    PyMutex_LockFlags(&STATE->tables_mutex, _Py_LOCK_DONT_DETACH);
    if (STATE->tables != NULL) {
        forget_it(STATE->tables, it);
    }
    PyMutex_Unlock(&STATE->tables_mutex);
    if (thread != NULL) {
        _PySampling_LEAVE_HOOK(thread);
    }
    errno = saved_errno;
}

static void
forget_code(struct _sampling_tables *tables, void *code)
{
    struct _sampling_buffer *buffer =
        _PyInterpreterState_GET()->sampling.buffer;
    if (buffer != NULL) {
        _PySampling_BufferForgetCode(buffer, code);
    }
    _PySampling_TablesForgetCode(tables, code);
}

static void
forget_type(struct _sampling_tables *tables, void *type)
{
    _PySampling_TablesForgetType(tables, type);
}

void
_PySampling_CodeEnd(PyCodeObject *code)
{
    forget(forget_code, code);
}

void
_PySampling_TypeEnd(PyTypeObject *type)
{
    forget(forget_type, type);
}


/* Start. */

static struct _sampling_tables *
new_tables(void)
{
    struct _sampling_tables *tables =
        _PySampling_TablesNew(_PySampling_TABLE_LIMIT_BYTES);
    if (tables != NULL) {
        tables->serial = ++STATE->tables_serial;
    }
    return tables;
}

/* Puts tables in the place of others, which are returned.  It is a session of
   its own, so that no thread of another GIL adds to them what it knows by the
   numbers of rows in the others. */
static struct _sampling_tables *
set_tables(struct _sampling_tables *tables)
{
    PyMutex_LockFlags(&STATE->tables_mutex, _Py_LOCK_DONT_DETACH);
    struct _sampling_tables *old = STATE->tables;
    STATE->tables = tables;
    STATE->session++;
    PyMutex_Unlock(&STATE->tables_mutex);
    return old;
}

static _PySampling_Status
start_locked(PyThreadState *tstate, const _PySampling_Options *options)
{
    if (STATE->active) {
        return _PySampling_ERR_RUNNING;
    }
    struct _sampling_tables *tables = new_tables();
    if (tables == NULL) {
        return _PySampling_ERR_NO_MEMORY;
    }
    memset(&STATE->counters, 0, sizeof(STATE->counters));
    STATE->options = *options;
    _PySampling_MemoryInit();
    STATE->period_ns = 1000000000u / (uint64_t)options->rate_hz;
    STATE->owner_pid = (int)getpid();
    (void)set_tables(tables);
    STATE->manual_wall_ns = 1;
    STATE->start_wall_ns = _PySampling_WallNow();
    PyTime_t now = 0;
    (void)PyTime_TimeRaw(&now);
    STATE->start_time_ns = now;

    // Nobody told who detached while no session was running.
    for (struct _sampling_interpreter_state *s = STATE->interpreters;
         s != NULL; s = s->next)
    {
        _Py_atomic_store_ptr(&s->running, NULL);
    }
    _PySampling_Status status = _PySampling_ERR_NO_MEMORY;
    if (_PySampling_RegisterExisting(tstate, STATE->start_wall_ns)) {
        status = _PySampling_ClockStart();
    }
    if (status != _PySampling_OK) {
        // The records just made belong to no session.
        _PySampling_TablesFree(set_tables(NULL));
        return status;
    }
    _Py_atomic_store_int(&STATE->active, 1);
    _PySampling_WakeOthers(tstate);
    _Py_atomic_store_ptr_release(&tstate->interp->sampling.running,
                                 ((_PyThreadStateImpl *)tstate)->sampling);
    return _PySampling_OK;
}

_PySampling_Status
_PySampling_Start(PyThreadState *tstate, const _PySampling_Options *options)
{
    PyMutex_LockFlags(&STATE->control_mutex, _Py_LOCK_DONT_DETACH);
    _PySampling_LockRegistry();
    _PySampling_Status status = start_locked(tstate, options);
    int saved_errno = errno;
    _PySampling_UnlockRegistry();
    PyMutex_Unlock(&STATE->control_mutex);
    errno = saved_errno;
    return status;
}


/* Snapshot and stop. */

/* Every nanosecond up to now goes to a sample: the caller's, and those of all
   threads that its GIL keeps from running.  A thread of another GIL accounts
   for itself when it attaches. */
static void
flush_threads(PyThreadState *tstate, uint64_t now_ns)
{
    _PySampling_Thread *own = ((_PyThreadStateImpl *)tstate)->sampling;
    _PySampling_ENTER_HOOK(own);
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
                _PySampling_AccountFlush(t, now_ns);
            }
        }
    }
    _PySampling_UnlockRegistry();
    _PySampling_Measure();
    _PySampling_LEAVE_HOOK(own);
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
            uint64_t wall_ns =
                _Py_atomic_load_uint64_relaxed(&t->account.wall_ns);
            if (t->session == STATE->session && !t->shadowed
                && now_ns > wall_ns)
            {
                _PySampling_TablesAddLost(STATE->tables, t->thread_index,
                                          now_ns - wall_ns);
                _PySampling_COUNT(lost_threads, 1);
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
    for (struct _sampling_interpreter_state *s = STATE->interpreters;
         s != NULL; s = s->next)
    {
        if (s->buffer != NULL) {
            bytes += _PySampling_BufferBytes(s->buffer);
        }
        for (_PySampling_Thread *t = s->threads; t != NULL; t = t->next) {
            bytes += sizeof(*t);
        }
    }
    PyMutex_LockFlags(&STATE->tables_mutex, _Py_LOCK_DONT_DETACH);
    if (STATE->tables != NULL) {
        bytes += STATE->tables->bytes;
    }
    PyMutex_Unlock(&STATE->tables_mutex);
    _PySampling_UnlockRegistry();
    _Py_atomic_store_uint64_relaxed(&STATE->counters.memory_bytes, bytes);
}

static void
describe(struct _sampling_tables *tables, uint64_t now_ns)
{
    tables->options = STATE->options;
    tables->start_time_ns = STATE->start_time_ns;
    tables->duration_ns = now_ns - STATE->start_wall_ns;
#define X(name) \
    tables->counters.name = \
        _Py_atomic_load_uint64_relaxed(&STATE->counters.name);
    _PySampling_COUNTERS(X)
#undef X
}

/* The tables begin anew; the threads that stand still get new rows. */
static struct _sampling_tables *
exchange_tables(PyThreadState *tstate, struct _sampling_tables *fresh,
                uint64_t now_ns)
{
    // Locked all the while: a thread that registers gets a row in the tables
    // of the session it is told.
    _PySampling_LockRegistry();
    // Threads of other GILs see that their rows are gone.
    struct _sampling_tables *old = set_tables(fresh);
    memset(&STATE->counters, 0, sizeof(STATE->counters));
    PyTime_t now = 0;
    (void)PyTime_TimeRaw(&now);
    STATE->start_time_ns = now;
    STATE->start_wall_ns = now_ns;
    for (struct _sampling_interpreter_state *s = STATE->interpreters;
         s != NULL; s = s->next)
    {
        for (_PySampling_Thread *t = s->threads; t != NULL; t = t->next) {
            if (_PySampling_SharesGIL(s, tstate)
                && t->session == STATE->session - 1)
            {
                uint32_t old_index = t->thread_index;
                t->session = STATE->session;
                t->account.detached_ticks = 0;  // the counters began anew
                _PySampling_EnterTables(t);
                _PySampling_TablesMoveName(fresh, t->thread_index,
                                           old, old_index);
            }
        }
    }
    _PySampling_UnlockRegistry();
    _PySampling_WakeOthers(tstate);
    return old;
}

static _PySampling_Status
snapshot_locked(PyThreadState *tstate, int clear,
                struct _sampling_tables **copy)
{
    if (!STATE->active || STATE->owner_pid != (int)getpid()) {
        return _PySampling_ERR_NOT_RUNNING;
    }
    _PySampling_Thread *own = _PySampling_ThreadOf(tstate);
    struct _sampling_tables *fresh = NULL;
    if (clear) {
        fresh = new_tables();
    }
    if (own == NULL || (clear && fresh == NULL)) {
        _PySampling_TablesFree(fresh);
        return _PySampling_ERR_NO_MEMORY;
    }
    _PySampling_ENTER_HOOK(own);
    uint64_t now_ns = _PySampling_WallNow();
    flush_threads(tstate, now_ns);
    if (clear) {
        book_lost_threads(tstate, now_ns);
        describe(STATE->tables, now_ns);
        *copy = exchange_tables(tstate, fresh, now_ns);
    }
    else {
        PyMutex_LockFlags(&STATE->tables_mutex, _Py_LOCK_DONT_DETACH);
        describe(STATE->tables, now_ns);
        *copy = _PySampling_TablesCopy(STATE->tables);
        PyMutex_Unlock(&STATE->tables_mutex);
    }
    _PySampling_LEAVE_HOOK(own);
    return *copy != NULL ? _PySampling_OK : _PySampling_ERR_NO_MEMORY;
}

_PySampling_Status
_PySampling_Snapshot(PyThreadState *tstate, int clear,
                     struct _sampling_tables **copy)
{
    PyMutex_LockFlags(&STATE->control_mutex, _Py_LOCK_DONT_DETACH);
    _PySampling_Status status = snapshot_locked(tstate, clear, copy);
    PyMutex_Unlock(&STATE->control_mutex);
    return status;
}

static _PySampling_Status
stop_locked(PyThreadState *tstate, struct _sampling_tables **result)
{
    if (!STATE->active || STATE->owner_pid != (int)getpid()) {
        return _PySampling_ERR_NOT_RUNNING;
    }
    _PySampling_Thread *own = _PySampling_ThreadOf(tstate);
    if (own == NULL) {
        return _PySampling_ERR_NO_MEMORY;
    }
    // Without the registry locked: the clock needs it to finish.
    _PySampling_ClockStop(own);
    uint64_t now_ns = _PySampling_WallNow();
    flush_threads(tstate, now_ns);
    book_lost_threads(tstate, now_ns);
    describe(STATE->tables, now_ns);
    _Py_atomic_store_int(&STATE->active, 0);
    _Py_atomic_store_ptr(&tstate->interp->sampling.running, NULL);
    *result = set_tables(NULL);
    STATE->exit_session = 0;
    return _PySampling_OK;
}

_PySampling_Status
_PySampling_Stop(PyThreadState *tstate, struct _sampling_tables **result)
{
    PyMutex_LockFlags(&STATE->control_mutex, _Py_LOCK_DONT_DETACH);
    _PySampling_Status status = stop_locked(tstate, result);
    PyMutex_Unlock(&STATE->control_mutex);
    return status;
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
    STATE->manual_wall_ns += wall_ns;
    own->manual_cpu_ns += cpu_ns;
    _PySampling_ClockTickAll(STATE->manual_wall_ns);
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
    _PySampling_LockRegistry();
    if (tstate != NULL && ((_PyThreadStateImpl *)tstate)->sampling != NULL) {
        _PySampling_ClockSettle(((_PyThreadStateImpl *)tstate)->sampling);
    }
    if (signum == STATE->signal) {
        _PySampling_ClockLeaveSignal();
    }
    _PySampling_UnlockRegistry();
    errno = saved_errno;
}


/* Fork. */

void
_PySampling_BeforeFork(void)
{
    // So that the child finds lists and tables whole.
    PyMutex_LockFlags(&STATE->control_mutex, _Py_LOCK_DONT_DETACH);
    _PySampling_LockRegistry();
    PyMutex_LockFlags(&STATE->tables_mutex, _Py_LOCK_DONT_DETACH);
}

void
_PySampling_AfterForkParent(void)
{
    PyMutex_Unlock(&STATE->tables_mutex);
    _PySampling_UnlockRegistry();
    PyMutex_Unlock(&STATE->control_mutex);
}

/* The child is not profiled: it has one thread and no clock. */
void
_PySampling_AfterForkChild(void)
{
    _PyMutex_at_fork_reinit(&STATE->control_mutex);
    _PyMutex_at_fork_reinit(&STATE->mutex);
    _PyMutex_at_fork_reinit(&STATE->tables_mutex);
    if (!STATE->active) {
        return;
    }
    _PySampling_ClockForget();
    STATE->active = 0;
    STATE->exit_session = 0;
    STATE->session++;
    PyThreadState *tstate = _PyThreadState_GET();
    tstate->interp->sampling.running = NULL;
    _PySampling_Thread *own = ((_PyThreadStateImpl *)tstate)->sampling;
    if (own != NULL) {
        own->asked = _PySampling_NOT_ASKED;
    }
    _PySampling_TablesFree(STATE->tables);
    STATE->tables = NULL;
}

int
_PySampling_OwnThreads(void)
{
    return STATE->clock != NULL && !STATE->options.manual;
}

#else  // !_PySampling_SUPPORTED

_PySampling_Status
_PySampling_Start(PyThreadState *tstate, const _PySampling_Options *options)
{
    return _PySampling_ERR_UNSUPPORTED;
}

int
_PySampling_IsUsableSignal(int signum)
{
    return 1;       // start() says what is really missing
}

_PySampling_Status
_PySampling_Stop(PyThreadState *tstate, struct _sampling_tables **result)
{
    return _PySampling_ERR_NOT_RUNNING;
}

_PySampling_Status
_PySampling_Snapshot(PyThreadState *tstate, int clear,
                     struct _sampling_tables **copy)
{
    return _PySampling_ERR_NOT_RUNNING;
}

_PySampling_Status
_PySampling_ManualTick(PyThreadState *tstate, uint64_t wall_ns,
                       uint64_t cpu_ns)
{
    return _PySampling_ERR_NOT_RUNNING;
}

void
_PySampling_Measure(void)
{
}

void
_PySampling_SetThreadName(unsigned long ident, PyObject *name)
{
}

int
_PySampling_OwnThreads(void)
{
    return 0;
}

// Never reached: active stays 0.
void _PySampling_Safepoint(PyThreadState *tstate) {}
void _PySampling_BeforeDetach(PyThreadState *tstate) {}
void _PySampling_BeforeGILWait(PyThreadState *tstate) {}
void _PySampling_AfterAttach(PyThreadState *tstate) {}
void _PySampling_ThreadEnd(PyThreadState *tstate) {}
void _PySampling_InterpreterEnd(PyInterpreterState *interp) {}
void _PySampling_GCStart(PyThreadState *tstate, int generation) {}
void _PySampling_GCEnd(PyThreadState *tstate) {}
void _PySampling_CodeEnd(PyCodeObject *code) {}
void _PySampling_TypeEnd(PyTypeObject *type) {}
void _PySampling_BeforeSetSignal(int signum) {}
void _PySampling_BeforeExec(void) {}
void _PySampling_AfterFailedExec(void) {}
void _PySampling_BeforeFork(void) {}
void _PySampling_AfterForkParent(void) {}
void _PySampling_AfterForkChild(void) {}

#endif  // _PySampling_SUPPORTED
