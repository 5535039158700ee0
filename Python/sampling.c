/* Sampling profiler: the session.

   Owns start, stop and snapshot, who takes part (threads, interpreters), and
   the hooks of the collector, of code objects and of fork.  Must not know how
   a stack is walked, a nanosecond is booked or a row is laid out. */

#include "Python.h"

#include "pycore_ceval.h"             // _Py_set_eval_breaker_bit()
#include "pycore_frame.h"             // _PyInterpreterFrame
#include "pycore_interp.h"            // PyInterpreterState.sampling
#include "pycore_pystate.h"           // HEAD_LOCK()
#include "pycore_runtime.h"           // _PyRuntime
#include "pycore_sampling_tables.h"
#include "pycore_time.h"              // PyTime_TimeRaw()
#include "pycore_tstate.h"            // _PyThreadStateImpl

#ifdef _PySampling_SUPPORTED

#include <errno.h>
#include <unistd.h>                   // getpid()

#define STATE (&_PyRuntime.sampling)

/* clockid_t of a thread's CPU clock, as Linux encodes it: the complement of
   the thread's id, three bits for the kind.  pthread_getcpuclockid() gives the
   same, but may not be asked about a thread that has ended. */
#define THREAD_CPU_CLOCK(TID) ((long)(~(clockid_t)(TID) << 3 | 6))


/* Who takes part. */

static void
lock_registry(void)
{
    PyMutex_LockFlags(&STATE->mutex, _Py_LOCK_DONT_DETACH);
}

static void
unlock_registry(void)
{
    PyMutex_Unlock(&STATE->mutex);
}

/* With the registry locked. */
static int
register_interpreter(PyInterpreterState *interp)
{
    struct _sampling_interpreter_state *s = &interp->sampling;
    if (s->buffer == NULL) {
        s->buffer = _PySampling_BufferNew(STATE->options.depth_frames);
        if (s->buffer == NULL) {
            return 0;
        }
    }
    if (!s->registered) {
        s->prev = NULL;
        s->next = STATE->interpreters;
        if (s->next != NULL) {
            s->next->prev = s;
        }
        STATE->interpreters = s;
        s->registered = 1;
    }
    return 1;
}

static void
link_thread(PyInterpreterState *interp, _PySampling_Thread *thread)
{
    thread->interp = &interp->sampling;
    thread->prev = NULL;
    thread->next = interp->sampling.threads;
    if (thread->next != NULL) {
        thread->next->prev = thread;
    }
    interp->sampling.threads = thread;
}

static void
unlink_thread(_PySampling_Thread *thread)
{
    if (thread->prev != NULL) {
        thread->prev->next = thread->next;
    }
    else {
        thread->interp->threads = thread->next;
    }
    if (thread->next != NULL) {
        thread->next->prev = thread->prev;
    }
}

/* A row in the tables for a thread that takes part from `wall_ns` on. */
static void
enter_tables(_PySampling_Thread *thread)
{
    PyThreadState *tstate = thread->tstate;
    PyMutex_LockFlags(&STATE->tables_mutex, _Py_LOCK_DONT_DETACH);
    if (STATE->tables != NULL) {
        thread->thread_index = _PySampling_TablesAddThread(
            STATE->tables, tstate->thread_id, thread->native_id,
            PyInterpreterState_GetID(tstate->interp));
        if (tstate->thread_id == _PyRuntime.main_thread
            && _Py_IsMainInterpreter(tstate->interp))
        {
            _PySampling_TablesNameMainThread(STATE->tables,
                                             thread->thread_index);
        }
        thread->last_node = 0;
        thread->last_blocked_node = 0;
        thread->root_node = 0;
    }
    PyMutex_Unlock(&STATE->tables_mutex);
}

/* With the registry locked. */
static _PySampling_Thread *
register_thread(PyThreadState *tstate, uint64_t wall_ns)
{
    _PyThreadStateImpl *impl = (_PyThreadStateImpl *)tstate;
    if (!register_interpreter(tstate->interp)) {
        return NULL;
    }
    _PySampling_Thread *thread = impl->sampling;
    if (thread == NULL) {
        thread = calloc(1, sizeof(*thread));
        if (thread == NULL) {
            return NULL;
        }
        thread->tstate = tstate;
        link_thread(tstate->interp, thread);
    }
    thread->native_id = (int)tstate->native_thread_id;
    thread->cpu_clock = THREAD_CPU_CLOCK(tstate->native_thread_id);
    thread->manual_cpu_ns = 0;
    thread->note_wall_ns = 0;
    thread->deaf_ticks = 0;
    thread->skip_ticks = 0;
    thread->sleepy_ticks = 0;
    thread->off_cpu_ticks = 0;
    thread->seen_wall_ns = 0;
    thread->gc_generation = -1;
    thread->gc_frame = NULL;
    thread->waiting_since_ns = 0;
    _PySampling_AccountStart(thread, wall_ns);
    enter_tables(thread);
    thread->session = STATE->session;
    _PySampling_FENCE();
    impl->sampling = thread;
    return thread;
}

/* The thread's record; a thread seen for the first time in this session is
   registered.  NULL: no session, no memory, or the thread is at its end.
   Called by the thread itself, attached. */
_PySampling_Thread *
_PySampling_ThreadOf(PyThreadState *tstate)
{
    _PySampling_Thread *thread = ((_PyThreadStateImpl *)tstate)->sampling;
    if (thread != NULL && thread->session == STATE->session) {
        return thread;
    }
    if (tstate->_status.cleared || tstate->native_thread_id == 0) {
        return NULL;
    }
    lock_registry();
    thread = NULL;
    if (_PySampling_ACTIVE()) {
        thread = register_thread(tstate, _PySampling_WallNow());
        if (thread == NULL) {
            _PySampling_COUNT(lost_threads, 1);
        }
    }
    unlock_registry();
    return thread;
}

void
_PySampling_ThreadEnd(PyThreadState *tstate)
{
    _PyThreadStateImpl *impl = (_PyThreadStateImpl *)tstate;
    _PySampling_Thread *thread = impl->sampling;
    if (thread == NULL) {
        return;
    }
    int saved_errno = errno;
    PyThreadState *caller = _PyThreadState_GET();
    _PySampling_Thread *own =
        caller != NULL ? ((_PyThreadStateImpl *)caller)->sampling : NULL;
    if (tstate == caller) {
        _Py_atomic_store_ptr(&tstate->interp->sampling.running, NULL);
        _PySampling_ClockSettle(thread);
    }
    if (_PySampling_ACTIVE() && thread->session == STATE->session) {
        // Flushing another thread walks its stack into the caller's buffer.
        if (own != NULL) {
            _PySampling_ENTER_HOOK(own);
            _PySampling_Drain(caller, own);
        }
        _PySampling_AccountFlush(thread, _PySampling_WallNow());
        if (own != NULL) {
            _PySampling_LEAVE_HOOK(own);
        }
    }
    lock_registry();
    if (_Py_atomic_load_ptr(&thread->interp->running) == thread) {
        _Py_atomic_store_ptr(&thread->interp->running, NULL);
    }
    unlink_thread(thread);
    impl->sampling = NULL;
    unlock_registry();
    free(thread);
    errno = saved_errno;
}

void
_PySampling_InterpreterEnd(PyInterpreterState *interp)
{
    struct _sampling_interpreter_state *s = &interp->sampling;
    lock_registry();
    if (s->registered) {
        if (s->prev != NULL) {
            s->prev->next = s->next;
        }
        else {
            STATE->interpreters = s->next;
        }
        if (s->next != NULL) {
            s->next->prev = s->prev;
        }
        s->registered = 0;
    }
    s->running = NULL;
    unlock_registry();
    _PySampling_BufferFree(s->buffer);
    s->buffer = NULL;
}


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

void
_PySampling_CodeEnd(PyCodeObject *code)
{
    PyThreadState *tstate = _PyThreadState_GET();
    _PySampling_Thread *thread = ((_PyThreadStateImpl *)tstate)->sampling;
    int saved_errno = errno;
    if (thread != NULL && thread->session == STATE->session) {
        _PySampling_ENTER_HOOK(thread);
        _PySampling_Drain(tstate, thread);
        _PySampling_LEAVE_HOOK(thread);
    }
    if (thread != NULL) {
        _PySampling_ENTER_HOOK(thread);
    }
    PyMutex_LockFlags(&STATE->tables_mutex, _Py_LOCK_DONT_DETACH);
    if (STATE->tables != NULL) {
        _PySampling_TablesForgetCode(STATE->tables, code);
    }
    PyMutex_Unlock(&STATE->tables_mutex);
    if (thread != NULL) {
        _PySampling_LEAVE_HOOK(thread);
    }
    errno = saved_errno;
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

static PyInterpreterState *
interpreter_of(struct _sampling_interpreter_state *s)
{
    return _Py_CONTAINER_OF(s, PyInterpreterState, sampling);
}

/* Do threads of the interpreter stand still while the caller runs? */
static int
shares_gil(PyInterpreterState *interp, PyThreadState *caller)
{
    return interp->ceval.gil == caller->interp->ceval.gil;
}

/* Every thread that exists takes part from now on.  With the registry
   locked; the caller is attached, all other threads that its GIL keeps from
   running are detached.  Threads of other GILs join when they attach next. */
static int
register_existing_threads(PyThreadState *caller, uint64_t wall_ns)
{
    int ok = 1;
    HEAD_LOCK(&_PyRuntime);
    for (PyInterpreterState *interp = PyInterpreterState_Head();
         interp != NULL; interp = PyInterpreterState_Next(interp))
    {
        if (!shares_gil(interp, caller)) {
            continue;
        }
        for (PyThreadState *t = interp->threads.head; t != NULL; t = t->next) {
            if (t->native_thread_id == 0 || t->_status.cleared) {
                continue;       // no thread has taken it yet
            }
            _PySampling_Thread *thread = register_thread(t, wall_ns);
            if (thread == NULL) {
                ok = 0;
                break;
            }
            thread->account.detached_ns = t == caller ? 0 : wall_ns;
            thread->account.detached_ticks = 0;
        }
    }
    HEAD_UNLOCK(&_PyRuntime);
    return ok;
}

/* A thread that runs with a GIL of its own may not attach for long: it joins
   at its next safepoint. */
static void
wake_other_interpreters(PyThreadState *caller)
{
    HEAD_LOCK(&_PyRuntime);
    for (PyInterpreterState *interp = PyInterpreterState_Head();
         interp != NULL; interp = PyInterpreterState_Next(interp))
    {
        if (shares_gil(interp, caller)) {
            continue;
        }
        for (PyThreadState *t = interp->threads.head; t != NULL; t = t->next) {
            _Py_set_eval_breaker_bit(t, _PY_SAMPLING_BIT);
        }
    }
    HEAD_UNLOCK(&_PyRuntime);
}

static _PySampling_Status
start_locked(PyThreadState *tstate, const _PySampling_Options *options)
{
    if (STATE->active) {
        return _PySampling_ERR_RUNNING;
    }
    STATE->tables = new_tables();
    if (STATE->tables == NULL) {
        return _PySampling_ERR_NO_MEMORY;
    }
    memset(&STATE->counters, 0, sizeof(STATE->counters));
    STATE->options = *options;
    STATE->period_ns = 1000000000u / (uint64_t)options->rate_hz;
    STATE->owner_pid = (int)getpid();
    STATE->session++;
    STATE->manual_wall_ns = 1;
    STATE->start_wall_ns = _PySampling_WallNow();
    PyTime_t now = 0;
    (void)PyTime_TimeRaw(&now);
    STATE->start_time_ns = now;

    _PySampling_BufferFree(tstate->interp->sampling.buffer);
    tstate->interp->sampling.buffer = NULL;
    // Nobody told who detached while no session was running.
    for (struct _sampling_interpreter_state *s = STATE->interpreters;
         s != NULL; s = s->next)
    {
        _Py_atomic_store_ptr(&s->running, NULL);
    }
    _PySampling_Status status = _PySampling_ERR_NO_MEMORY;
    if (register_existing_threads(tstate, STATE->start_wall_ns)) {
        status = _PySampling_ClockStart();
    }
    if (status != _PySampling_OK) {
        _PySampling_TablesFree(STATE->tables);
        STATE->tables = NULL;
        STATE->session++;       // the records just made belong to no session
        return status;
    }
    _Py_atomic_store_int(&STATE->active, 1);
    wake_other_interpreters(tstate);
    _Py_atomic_store_ptr_release(&tstate->interp->sampling.running,
                                 ((_PyThreadStateImpl *)tstate)->sampling);
    return _PySampling_OK;
}

_PySampling_Status
_PySampling_Start(PyThreadState *tstate, const _PySampling_Options *options)
{
    PyMutex_LockFlags(&STATE->control_mutex, _Py_LOCK_DONT_DETACH);
    lock_registry();
    _PySampling_Status status = start_locked(tstate, options);
    int saved_errno = errno;
    unlock_registry();
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
    lock_registry();
    for (struct _sampling_interpreter_state *s = STATE->interpreters;
         s != NULL; s = s->next)
    {
        if (!shares_gil(interpreter_of(s), tstate)) {
            continue;
        }
        for (_PySampling_Thread *t = s->threads; t != NULL; t = t->next) {
            if (t->session == STATE->session) {
                _PySampling_AccountFlush(t, now_ns);
            }
        }
    }
    unlock_registry();
    _PySampling_LEAVE_HOOK(own);
}

/* What threads of other GILs have not accounted for yet is lost with the
   tables they did not get to. */
static void
book_lost_threads(PyThreadState *caller, uint64_t now_ns)
{
    lock_registry();
    PyMutex_LockFlags(&STATE->tables_mutex, _Py_LOCK_DONT_DETACH);
    for (struct _sampling_interpreter_state *s = STATE->interpreters;
         s != NULL; s = s->next)
    {
        if (shares_gil(interpreter_of(s), caller)) {
            continue;
        }
        for (_PySampling_Thread *t = s->threads; t != NULL; t = t->next) {
            uint64_t wall_ns =
                _Py_atomic_load_uint64_relaxed(&t->account.wall_ns);
            if (t->session == STATE->session && now_ns > wall_ns) {
                _PySampling_TablesAddLost(STATE->tables, t->thread_index,
                                          now_ns - wall_ns);
                _PySampling_COUNT(lost_threads, 1);
            }
        }
    }
    PyMutex_Unlock(&STATE->tables_mutex);
    unlock_registry();
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
    PyMutex_LockFlags(&STATE->tables_mutex, _Py_LOCK_DONT_DETACH);
    struct _sampling_tables *old = STATE->tables;
    STATE->tables = fresh;
    PyMutex_Unlock(&STATE->tables_mutex);
    if (fresh == NULL) {
        return old;
    }
    memset(&STATE->counters, 0, sizeof(STATE->counters));
    PyTime_t now = 0;
    (void)PyTime_TimeRaw(&now);
    STATE->start_time_ns = now;
    STATE->start_wall_ns = now_ns;
    // Threads of other GILs see that their rows are gone.
    STATE->session++;
    lock_registry();
    for (struct _sampling_interpreter_state *s = STATE->interpreters;
         s != NULL; s = s->next)
    {
        for (_PySampling_Thread *t = s->threads; t != NULL; t = t->next) {
            if (shares_gil(interpreter_of(s), tstate)
                && t->session == STATE->session - 1)
            {
                uint32_t old_index = t->thread_index;
                t->session = STATE->session;
                t->account.detached_ticks = 0;  // the counters began anew
                enter_tables(t);
                _PySampling_TablesMoveName(fresh, t->thread_index,
                                           old, old_index);
            }
        }
    }
    unlock_registry();
    wake_other_interpreters(tstate);
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
    *result = exchange_tables(tstate, NULL, now_ns);
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
    lock_registry();
    STATE->manual_wall_ns += wall_ns;
    own->manual_cpu_ns += cpu_ns;
    _PySampling_ClockTickAll(STATE->manual_wall_ns);
    unlock_registry();
    return _PySampling_OK;
}

void
_PySampling_SetThreadName(unsigned long ident, PyObject *name)
{
    if (!_PySampling_ACTIVE()) {
        return;
    }
    PyThreadState *tstate = _PyThreadState_GET();
    _PySampling_Thread *own = _PySampling_ThreadOf(tstate);
    if (own == NULL) {
        return;
    }
    _PySampling_ENTER_HOOK(own);
    for (_PySampling_Thread *thread = tstate->interp->sampling.threads;
         thread != NULL; thread = thread->next)
    {
        if (thread->tstate->thread_id == ident
            && thread->session == STATE->session)
        {
            PyMutex_LockFlags(&STATE->tables_mutex, _Py_LOCK_DONT_DETACH);
            if (STATE->tables != NULL) {
                _PySampling_TablesNameThread(STATE->tables,
                                             thread->thread_index, name);
            }
            PyMutex_Unlock(&STATE->tables_mutex);
            break;
        }
    }
    _PySampling_LEAVE_HOOK(own);
}

void
_PySampling_BeforeSetSignal(int signum)
{
    if (!_PySampling_ACTIVE() || signum != STATE->signal) {
        return;
    }
    int saved_errno = errno;
    PyThreadState *tstate = _PyThreadState_GET();
    lock_registry();
    if (tstate != NULL && ((_PyThreadStateImpl *)tstate)->sampling != NULL) {
        _PySampling_ClockSettle(((_PyThreadStateImpl *)tstate)->sampling);
    }
    if (signum == STATE->signal) {
        _PySampling_ClockLeaveSignal();
    }
    unlock_registry();
    errno = saved_errno;
}


/* Fork. */

void
_PySampling_BeforeFork(void)
{
    // So that the child finds lists and tables whole.
    PyMutex_LockFlags(&STATE->control_mutex, _Py_LOCK_DONT_DETACH);
    lock_registry();
    PyMutex_LockFlags(&STATE->tables_mutex, _Py_LOCK_DONT_DETACH);
}

void
_PySampling_AfterForkParent(void)
{
    PyMutex_Unlock(&STATE->tables_mutex);
    unlock_registry();
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
void _PySampling_BeforeAttach(PyThreadState *tstate) {}
void _PySampling_AfterAttach(PyThreadState *tstate) {}
void _PySampling_ThreadEnd(PyThreadState *tstate) {}
void _PySampling_InterpreterEnd(PyInterpreterState *interp) {}
void _PySampling_GCStart(PyThreadState *tstate, int generation) {}
void _PySampling_GCEnd(PyThreadState *tstate) {}
void _PySampling_CodeEnd(PyCodeObject *code) {}
void _PySampling_BeforeSetSignal(int signum) {}
void _PySampling_BeforeExec(void) {}
void _PySampling_AfterFailedExec(void) {}
void _PySampling_BeforeFork(void) {}
void _PySampling_AfterForkParent(void) {}
void _PySampling_AfterForkChild(void) {}

#endif  // _PySampling_SUPPORTED
