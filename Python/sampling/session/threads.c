/* Sampling profiler: who takes part.

   Owns the lists of interpreters and threads, their lock, and the record of
   each thread from its first moment in a session to its last.  Must not know
   when a session starts or ends, how a stack is walked, a nanosecond is
   recorded or a row is laid out. */

#include "Python.h"

#include "pycore_ceval.h"             // _Py_set_eval_breaker_bit()
#include "pycore_interp.h"            // PyInterpreterState.sampling
#include "pycore_pystate.h"           // HEAD_LOCK()
#include "pycore_runtime.h"           // _PyRuntime
#include "pycore_tstate.h"            // _PyThreadStateImpl

#include "../alloc/alloc.h"
#include "../calls/calls.h"
#include "../clock/clock.h"
#include "../sample/sample.h"
#include "../sinks/sinks.h"
#include "../task/task.h"
#include "session.h"

#include <errno.h>

#define STATE (&_PyRuntime.sampling)

/* clockid_t of a thread's CPU clock, as Linux encodes it: the complement of
   the thread's id, three bits for the kind.  pthread_getcpuclockid() gives the
   same, but may not be asked about a thread that has ended. */
#define THREAD_CPU_CLOCK(TID) ((long)(~(clockid_t)(TID) << 3 | 6))


/* Interpreters. */

/* Do threads of the interpreter stand still while the caller runs? */
int
_PySampling_SharesGIL(struct _sampling_interpreter_state *s,
                      PyThreadState *caller)
{
    return _Py_atomic_load_ptr_acquire(&s->gil)
           == caller->interp->sampling.gil;
}

/* With the registry locked. */
static int
register_interpreter(PyInterpreterState *interp)
{
    struct _sampling_interpreter_state *s = &interp->sampling;
    s->buffer = _PySampling_BufferEnsure(s->buffer);
    if (s->buffer == NULL || !_PySampling_HoldersInit(interp)) {
        return 0;
    }
    if (!s->registered) {
        _PySampling_LINK(STATE->interpreters, s);
        s->registered = 1;
    }
    return 1;
}

void
_PySampling_InterpreterEnd(PyInterpreterState *interp)
{
    struct _sampling_interpreter_state *s = &interp->sampling;
    // No session that begins before they are deleted may register them.
    HEAD_LOCK(&_PyRuntime);
    for (PyThreadState *t = interp->threads.head; t != NULL; t = t->next) {
        _Py_atomic_store_int_relaxed(
            &((_PyThreadStateImpl *)t)->sampling.is_bound, 0);
    }
    HEAD_UNLOCK(&_PyRuntime);
    // What is cleared last comes after the end of its thread, which may have
    // come to take part once more.
    while (s->threads != NULL) {
        _PySampling_ThreadEnd(s->threads->tstate);
    }
    _PySampling_LockRegistry();
    if (s->registered) {
        _PySampling_UNLINK(STATE->interpreters, s);
        s->registered = 0;
    }
    _PySampling_HoldersFini(interp);
    _PySampling_UnlockRegistry();
    _PySampling_AllocInterpreterEnd(interp);
    _PySampling_BufferFree(s->buffer);
    s->buffer = NULL;
    _PySampling_CallsFree(interp);
}


/* Threads. */

/* A row in the tables for a thread; subscribers are notified if it is new.
   Returns the epoch of these tables: a thread of another GIL may begin the
   next one at any moment. */
unsigned int
_PySampling_EnterTables(_PySampling_Thread *thread, int is_new)
{
    PyThreadState *tstate = thread->tstate;
    _PySampling_LockTables();
    if (STATE->tables != NULL) {
        thread->thread_index = _PySampling_TablesAddThread(
            STATE->tables, thread->ident, thread->native_id,
            PyInterpreterState_GetID(tstate->interp));
        if (thread->ident == _PyRuntime.main_thread
            && _Py_IsMainInterpreter(tstate->interp))
        {
            _PySampling_TablesNameMainThread(STATE->tables,
                                             thread->thread_index);
        }
        PyObject *name = ((_PyThreadStateImpl *)tstate)->sampling.name;
        if (name != NULL) {
            // What it was called before anybody sampled.
            _PySampling_TablesNameThread(STATE->tables, thread->thread_index,
                                         name);
        }
        _PySampling_WeighNothing(thread);
        thread->last_node = 0;
        thread->last_labels = 0;
        thread->root_node = 0;
        thread->held_node = 0;
        if (is_new) {
            _PySampling_EmitEvent(PySampling_THREAD_START,
                                   thread->thread_index, 0, 0, 0);
        }
    }
    unsigned int epoch = STATE->epoch;
    _PySampling_UnlockTables();
    return epoch;
}

static void
record_end(_PySampling_Thread *thread)
{
    _PySampling_LockTables();
    if (_PySampling_TABLES_OF(thread) != NULL) {
        _PySampling_EmitEvent(PySampling_THREAD_END,
                               thread->thread_index, 0,
                               thread->residue_cpu_ns,
                               thread->residue_wall_ns);
    }
    _PySampling_UnlockTables();
}

/* A thread state remembers the OS thread that made it. */
static void
set_os_thread(_PySampling_Thread *thread)
{
    PyThreadState *tstate = thread->tstate;
    thread->ident = tstate->thread_id;
    thread->native_id = (int)tstate->native_thread_id;
    if (tstate == _PyThreadState_GET()
        && thread->native_id != _PySampling_OwnNativeId())
    {
        thread->ident = PyThread_get_thread_ident();
        thread->native_id = _PySampling_OwnNativeId();
        STATE->has_moved_thread = 1;
    }
    thread->cpu_clock = THREAD_CPU_CLOCK(thread->native_id);
}

/* threading and PyGILState_Ensure() make a thread state only where there is
   none.  But one of another interpreter, made later, may have a record before,
   and C code may move one to another thread.  With the registry locked. */
static int
is_alone_on_os_thread(PyThreadState *tstate)
{
    return STATE->interpreters->next == NULL && !STATE->has_moved_thread
        && (tstate->_whence == _PyThreadState_WHENCE_THREADING
            || tstate->_whence == _PyThreadState_WHENCE_GILSTATE);
}

/* With the registry locked. */
static _PySampling_Thread *
register_thread(PyThreadState *tstate, uint64_t wall_ns)
{
    _PyThreadStateImpl *impl = (_PyThreadStateImpl *)tstate;
    if (!register_interpreter(tstate->interp)) {
        return NULL;
    }
    _PySampling_Thread *thread = impl->sampling.record;
    if (thread == NULL) {
        thread = calloc(1, sizeof(*thread));
        if (thread == NULL) {
            return NULL;
        }
        thread->tstate = tstate;
        thread->interp = &tstate->interp->sampling;
        _PySampling_LINK(thread->interp->threads, thread);
    }
    set_os_thread(thread);
    thread->manual_cpu_ns = 1;
    thread->mask = _PySampling_MASK_UNKNOWN;
    thread->skip_ticks = 0;
    thread->sleepy_ticks = 0;
    thread->usual_part_on_cpu = _PySampling_ALWAYS_ON_CPU;
    thread->span = (struct _sampling_time){0};
    thread->overdue = (struct _sampling_overdue){0};
    thread->resumed.frame = NULL;
    // It may have yielded to who ended the session before.
    thread->is_yielding = 0;
    thread->gc_generation = -1;
    thread->gc_frame = NULL;
    thread->num_woken = 0;
    _PySampling_AccountStart(thread, wall_ns);
    thread->begin_cpu_ns = thread->account.cpu_ns;
    _PySampling_SiblingsLink(thread, is_alone_on_os_thread(tstate));
    (void)_PySampling_RunSet(thread, thread->inactive_on_os_thread
                                     ? _PySampling_INACTIVE
                                     : _PySampling_DETACHED);
    _PySampling_TicksBegin(thread);
    thread->excluded = (_PySampling_Exclusion)impl->sampling.is_excluded;
    _Py_atomic_store_uint(&thread->epoch,
                          _PySampling_EnterTables(thread, 1));
    _Py_atomic_store_ptr_release(&impl->sampling.record, thread);
    return thread;
}

/* The thread's record; a thread seen for the first time in this session is
   registered.  NULL: no session, no memory, or the thread is at its end.
   Called by the thread itself, attached. */
_PySampling_Thread *
_PySampling_ThreadEnsure(PyThreadState *tstate)
{
    _PySampling_Thread *thread = _PySampling_RECORD_OF(tstate);
    if (thread != NULL && _PySampling_IN_EPOCH(thread)) {
        return thread;
    }
    if (tstate->_status.cleared || tstate->native_thread_id == 0) {
        return NULL;
    }
    _PySampling_LockRegistry();
    thread = NULL;
    if (_PySampling_ACTIVE()) {
        thread = register_thread(tstate, _PySampling_WallNow());
        if (thread == NULL) {
            _PySampling_COUNT(lost_threads, 1);
        }
        else {
            _PySampling_ClockRevive();
            _PySampling_ClockWake();
        }
    }
    _PySampling_UnlockRegistry();
    return thread;
}

/* Every thread that exists takes part from now on.  With the registry
   locked; the caller is attached, all other threads that its GIL keeps from
   running are detached.  Threads of other GILs join when they attach next. */
int
_PySampling_RegisterExisting(PyThreadState *caller, uint64_t wall_ns)
{
    int ok = 1;
    HEAD_LOCK(&_PyRuntime);
    for (PyInterpreterState *interp = PyInterpreterState_Head();
         interp != NULL; interp = PyInterpreterState_Next(interp))
    {
        if (!_PySampling_SharesGIL(&interp->sampling, caller)) {
            continue;
        }
        for (PyThreadState *t = interp->threads.head; t != NULL; t = t->next) {
            int *is_bound = &((_PyThreadStateImpl *)t)->sampling.is_bound;
            if (t != caller && !_Py_atomic_load_int_acquire(is_bound)) {
                continue;       // no thread has taken it yet, or it is over
            }
            _PySampling_Thread *thread = register_thread(t, wall_ns);
            if (thread == NULL) {
                ok = 0;
                break;
            }
        }
    }
    HEAD_UNLOCK(&_PyRuntime);
    if (ok) {
        _PySampling_Thread *own = _PySampling_RECORD_OF(caller);
        _PySampling_SiblingsChoose(own);
        (void)_PySampling_RunSet(own, _PySampling_RUNS | _PySampling_PENDING);
    }
    return ok;
}

/* A thread that runs with a GIL of its own may not attach for long: it joins
   at its next safepoint. */
void
_PySampling_WakeOthers(PyThreadState *caller)
{
    HEAD_LOCK(&_PyRuntime);
    for (PyInterpreterState *interp = PyInterpreterState_Head();
         interp != NULL; interp = PyInterpreterState_Next(interp))
    {
        if (_PySampling_SharesGIL(&interp->sampling, caller)) {
            continue;
        }
        for (PyThreadState *t = interp->threads.head; t != NULL; t = t->next) {
            _Py_set_eval_breaker_bit(t, _PY_SAMPLING_BIT);
        }
    }
    HEAD_UNLOCK(&_PyRuntime);
}

void
_PySampling_AfterBind(PyThreadState *tstate)
{
    _Py_atomic_store_int_release(
        &((_PyThreadStateImpl *)tstate)->sampling.is_bound, 1);
}

void
_PySampling_ThreadStart(PyThreadState *tstate)
{
    int excluded =
        ((_PyThreadStateImpl *)_PyThreadState_GET())->sampling.is_excluded;
    ((_PyThreadStateImpl *)tstate)->sampling.is_excluded = excluded;
    if (excluded == _PySampling_HELPER) {
        (void)_Py_atomic_add_int(&STATE->num_helpers, 1);
    }
}

/* In the child of a fork the states of threads that are not there are cleared:
   those are counted no more. */
static void
forget_helper(PyThreadState *tstate)
{
    if (((_PyThreadStateImpl *)tstate)->sampling.is_excluded
            == _PySampling_HELPER
        && _Py_atomic_load_int(&STATE->num_helpers) > 0)
    {
        (void)_Py_atomic_add_int(&STATE->num_helpers, -1);
    }
}

static void
end_record(_PySampling_Thread *thread)
{
    PyThreadState *tstate = thread->tstate;
    PyThreadState *caller = _PyThreadState_GET();
    _PySampling_Thread *own =
        caller != NULL ? _PySampling_RECORD_OF(caller) : NULL;
    if (tstate == caller) {
        _PySampling_RunEnd(thread);
    }
    _PySampling_LockRegistry();
    if (_PySampling_ACTIVE() && _PySampling_IN_EPOCH(thread)) {
        // Flushing another thread walks its stack into the caller's buffer.
        if (own != NULL) {
            _PySampling_ENTER_HOOK(own);
            _PySampling_Drain(caller, own);
        }
        _PySampling_RecordAll(thread, _PySampling_WallNow());
        record_end(thread);
        _PySampling_OthersThreadEnd(thread);
        if (own != NULL) {
            _PySampling_LEAVE_HOOK(own);
        }
    }
    _PySampling_TasksForgetThread(thread);
    _PySampling_TicksEnd(thread);
    _PySampling_UNLINK(thread->interp->threads, thread);
    _PySampling_SiblingsUnlink(thread);
    _Py_atomic_store_ptr_release(
        &((_PyThreadStateImpl *)tstate)->sampling.record, NULL);
    if (_PySampling_ClockAbandon()) {
        _PySampling_EndingAbandon();
    }
    _PySampling_UnlockRegistry();
    free(thread->window);
    free(thread->delays);
    free(thread);
}

void
_PySampling_ThreadEnd(PyThreadState *tstate)
{
    _PyThreadStateImpl *impl = (_PyThreadStateImpl *)tstate;
    _Py_atomic_store_int_relaxed(&impl->sampling.is_bound, 0);
    Py_CLEAR(impl->sampling.name);
    forget_helper(tstate);
    if (impl->sampling.record != NULL) {
        int saved_errno = errno;
        end_record(impl->sampling.record);
        errno = saved_errno;
    }
}

/* C code goes on with the thread state on another OS thread, whose clocks and
   signals are others: in the profile it is another thread from here on. */
_PySampling_Thread *
_PySampling_ThreadMoved(PyThreadState *tstate)
{
    end_record(_PySampling_RECORD_OF(tstate));
    return _PySampling_ThreadEnsure(tstate);
}

static void
name_thread(unsigned long ident, PyObject *name)
{
    PyThreadState *tstate = _PyThreadState_GET();
    _PySampling_Thread *own = _PySampling_ThreadEnsure(tstate);
    if (own == NULL) {
        return;
    }
    _PySampling_ENTER_HOOK(own);
    for (_PySampling_Thread *thread = tstate->interp->sampling.threads;
         thread != NULL; thread = thread->next)
    {
        if (thread->ident == ident && _PySampling_IN_EPOCH(thread))
        {
            _PySampling_LockTables();
            if (_PySampling_TABLES_OF(thread) != NULL) {
                _PySampling_TablesNameThread(STATE->tables,
                                             thread->thread_index, name);
            }
            _PySampling_UnlockTables();
            break;
        }
    }
    _PySampling_LEAVE_HOOK(own);
}

/* For who asks later; of another thread, the list of them is looked through. */
static void
keep_name(unsigned long ident, PyObject *name)
{
    PyThreadState *tstate = _PyThreadState_GET();
    HEAD_LOCK(&_PyRuntime);
    if (tstate->thread_id != ident) {
        tstate = tstate->interp->threads.head;
        while (tstate != NULL && tstate->thread_id != ident) {
            tstate = tstate->next;
        }
    }
    PyObject *old = NULL;
    if (tstate != NULL) {
        PyObject **at = &((_PyThreadStateImpl *)tstate)->sampling.name;
        old = *at;
        *at = Py_NewRef(name);
    }
    HEAD_UNLOCK(&_PyRuntime);
    Py_XDECREF(old);
}

PyObject *
_PySampling_SetThreadName(PyObject *Py_UNUSED(module), PyObject *args)
{
    unsigned long ident;
    PyObject *name;
    if (PyArg_ParseTuple(args, "kU", &ident, &name)) {
        keep_name(ident, name);
        if (_PySampling_ACTIVE()) {
            name_thread(ident, name);
        }
    }
    else {
        // The program may have set any attribute of its thread to anything.
        PyErr_Clear();
    }
    Py_RETURN_NONE;
}


/* How much memory all takes. */

void
_PySampling_UpdateMemoryBytes(void)
{
    size_t bytes = 0;
    _PySampling_LockRegistry();
    // Threads of other GILs make their windows with it.
    _PySampling_LockTables();
    for (struct _sampling_interpreter_state *s = STATE->interpreters;
         s != NULL; s = s->next)
    {
        if (s->buffer != NULL) {
            bytes += _PySampling_BufferBytes(s->buffer);
        }
        bytes += _PySampling_HoldersBytes(s);
        bytes += (size_t)_Py_atomic_load_int_relaxed(&s->num_tasks)
            * sizeof(struct _sampling_task);
        for (_PySampling_Thread *t = s->threads; t != NULL; t = t->next) {
            bytes += sizeof(*t);
            bytes += _PySampling_WeightsBytes(t);
            bytes += _PySampling_DelaysBytes(t);
        }
    }
    if (STATE->tables != NULL) {
        bytes += STATE->tables->bytes;
    }
    bytes += _PySampling_SinksBytes();
    _PySampling_UnlockTables();
    _PySampling_UnlockRegistry();
    _Py_atomic_store_uint64_relaxed(&STATE->counters.memory_bytes, bytes);
}
