/* Sampling profiler: where the interpreter reports that a thread runs.

   Owns the hooks of the eval loop, of detach, attach and exec: what has to
   happen there, and in which order.  Must not know how a nanosecond is
   recorded, a stack is walked or a signal is sent.  A name in parentheses is
   that of a macro, too, which asks first whether anybody profiles. */

#include "Python.h"

#include "pycore_ceval.h"             // _Py_unset_eval_breaker_bit()
#include "pycore_interp.h"            // PyInterpreterState.sampling
#include "pycore_pystate.h"           // _PyThreadState_GET()
#include "pycore_runtime.h"           // _PyRuntime
#include "pycore_tstate.h"            // _PyThreadStateImpl

#include "clock/clock.h"
#include "native/native.h"            // _PySampling_KeepCall()
#include "sample/buffer.h"            // _PySampling_HasCaptures()
#include "sample/sample.h"
#include "session/session.h"
#include "tables/labels.h"

#include <errno.h>

/* How often what it took to record the hooks is recorded in turn, at most.
   More than a few times only where that takes as long as a period. */
#define MAX_HOOK_RECORDS 8

/* The thread's record, if it takes part in the session.  Called without the
   GIL, too: the load pairs with the stores in session/threads.c. */
static _PySampling_Thread *
session_thread(PyThreadState *tstate)
{
    _PySampling_Thread *thread = _Py_atomic_load_ptr_acquire(
        &_PySampling_RECORD_OF(tstate));
    if (thread == NULL || !_PySampling_IN_EPOCH(thread)) {
        return NULL;
    }
    return thread;
}

static void
drain_and_answer(PyThreadState *tstate, _PySampling_Thread *thread)
{
    _Py_unset_eval_breaker_bit(tstate, _PY_SAMPLING_BIT);
    _PySampling_Drain(tstate, thread);
    if (_Py_atomic_load_uint64_relaxed(&thread->note_wall_ns) != 0) {
        // The clock left a note instead of sending a signal.
        _PySampling_RecordNote(tstate, thread);
    }
}

/* From here on the clock asks this thread for nothing more, and what it has
   asked is answered before a system call could be interrupted.  Returns
   whether that took time. */
static int
end_run(PyThreadState *tstate)
{
    _PySampling_Thread *thread = _PySampling_RECORD_OF(tstate);
    if (thread == NULL) {
        return 0;
    }
    _Py_atomic_store_ptr(&tstate->interp->sampling.running, NULL);
    return _PySampling_RunEnd(thread);
}

/* A tick is due soon, maybe still in the C function that gave the GIL up. */
static void
check_safepoints(PyThreadState *tstate, _PySampling_Thread *thread,
                 int is_in_c)
{
    _PySampling_KeepCall(is_in_c ? tstate->current_frame : NULL,
                         &thread->resumed);
    _Py_set_eval_breaker_bit(tstate, _PY_SAMPLING_BIT);
}

/* From here on the thread has the GIL, for its timer and for the clock.
   `at_once`: as in RunOpen(). */
static void
begin_run(PyThreadState *tstate, _PySampling_Thread *thread, int at_once)
{
    _PySampling_ENTER_HOOK(thread);
    int is_in_c = !thread->is_yielding;
    if (_PySampling_HAS_OVERDUE(thread)
        && _PySampling_RunAwaitsOverdue(thread))
    {
        check_safepoints(tstate, thread, is_in_c);
        at_once = 0;
    }
    int is_timed = _PySampling_RunOpen(thread, at_once);
    int recorded = (!at_once || thread->account.hook_ns != 0)
        && thread->account.detached_ns != 0
        && _PySampling_RecordHooks(tstate, thread, thread->attached_ns);
    for (int i = 0; recorded && i < MAX_HOOK_RECORDS; i++) {
        // It takes time to make a record: the run begins after that.  The last
        // one, if there are so many, is part of the run.
        is_timed = _PySampling_RunOpen(thread, 0);
        recorded = _PySampling_RecordHooksAgain(thread, thread->attached_ns);
    }
    _PySampling_AccountAttach(thread);
    thread->is_yielding = 0;
    if (is_timed && _PySampling_RunAwaitsDue(thread)) {
        check_safepoints(tstate, thread, is_in_c);
    }
    _PySampling_LEAVE_HOOK(thread);
    _Py_atomic_store_ptr(&tstate->interp->sampling.running, thread);
    _PySampling_ClockWake(is_timed);
}

void
_PySampling_BeforeExec(const char *path)
{
    PyThreadState *tstate = _PyThreadState_GET();
    if (tstate == NULL) {
        return;
    }
    _PySampling_WriteBeforeExec(tstate, path);
    if (_PySampling_ACTIVE()) {
        end_run(tstate);
    }
}

void
_PySampling_AfterFailedExec(void)
{
    PyThreadState *tstate = _PyThreadState_GET();
    if (_PySampling_ACTIVE() && tstate != NULL) {
        int saved_errno = errno;
        _PySampling_Thread *thread = session_thread(tstate);
        if (thread != NULL) {
            _PySampling_RunPrepare(thread);
            begin_run(tstate, thread, 1);
        }
        errno = saved_errno;
    }
}

/* If it blocks the signal now, one that came just before is not to be seen. */
void
(_PySampling_AfterSignalMask)(void)
{
    int saved_errno = errno;
    PyThreadState *tstate = _PyThreadState_GET();
    _PySampling_Thread *thread = session_thread(tstate);
    if (thread != NULL) {
        _PySampling_ReadMask(thread);
        end_run(tstate);
        _PySampling_RunPrepare(thread);
        begin_run(tstate, thread, 1);
    }
    errno = saved_errno;
}

/* Does the thread come only for a tick that is not due yet?  A signal that
   comes meanwhile finds it in no hook. */
static int
only_waits(PyThreadState *tstate, _PySampling_Thread *thread)
{
    return _Py_atomic_load_uint64_relaxed(&thread->note_wall_ns) == 0
        && !_PySampling_HasCaptures(tstate)
        && _PySampling_RunOnlyWaits(thread);
}

void
_PySampling_Safepoint(PyThreadState *tstate)
{
    int saved_errno = errno;
    _PySampling_Thread *thread = session_thread(tstate);
    if (thread == NULL) {
        // It was running, with a GIL of its own, when the session started.
        _Py_unset_eval_breaker_bit(tstate, _PY_SAMPLING_BIT);
        if (_PySampling_ACTIVE()) {
            end_run(tstate);
            _PySampling_AfterAttach(tstate);
        }
    }
    else if (only_waits(tstate, thread)) {
        thread->resumed.frame = NULL;
    }
    else if (!thread->in_hook) {
        _PySampling_ENTER_HOOK(thread);
        _PySampling_RunSayMask(thread);
        if (_PySampling_HAS_TICK(thread)) {
            _PySampling_CaptureDue(tstate, thread);
        }
        thread->resumed.frame = NULL;
        drain_and_answer(tstate, thread);
        if (_PySampling_HAS_OVERDUE(thread)
            || _PySampling_RunAwaitsDue(thread))
        {
            // At the next safepoint, maybe.
            _Py_set_eval_breaker_bit(tstate, _PY_SAMPLING_BIT);
        }
        _PySampling_LEAVE_HOOK(thread);
    }
    errno = saved_errno;
}

void
(_PySampling_BeforeYield)(PyThreadState *tstate)
{
    _PySampling_Thread *thread = _PySampling_RECORD_OF(tstate);
    if (thread != NULL) {
        thread->is_yielding = 1;
    }
}

void
(_PySampling_BeforeDetach)(PyThreadState *tstate)
{
    int saved_errno = errno;
    _PySampling_Thread *thread = session_thread(tstate);
    // Not a tick that is put off only now.
    int was_overdue = thread != NULL && _PySampling_HAS_OVERDUE(thread);
    int took_time = end_run(tstate);
    if (thread == NULL) {
        errno = saved_errno;
        return;
    }
    _PySampling_ENTER_HOOK(thread);
    if (_PySampling_HAS_TICK(thread)) {
        _PySampling_CaptureLast(tstate, thread, was_overdue,
                                !thread->is_yielding);
        took_time = 1;
    }
    if (_Py_atomic_load_uintptr_relaxed(&tstate->eval_breaker)
        & _PY_SAMPLING_BIT)
    {
        drain_and_answer(tstate, thread);
        took_time = 1;
    }
    if (thread->root_node == 0 && tstate->current_frame != NULL
        && !thread->excluded)
    {
        _PySampling_RecordRoot(tstate, thread);
        took_time = 1;
    }
    _Py_atomic_store_uint64_relaxed(&thread->waiting_since_ns, 0);
    _PySampling_ClockRunIsOver(thread);
    _PySampling_AccountDetach(thread, took_time);
    _PySampling_LEAVE_HOOK(thread);
    errno = saved_errno;
}

void
(_PySampling_BeforeGILWait)(PyThreadState *tstate)
{
    if (_PyThreadState_MustExit(tstate)) {
        return;     // a daemon thread at exit: its state may be gone
    }
    _PySampling_Thread *thread = session_thread(tstate);
    if (thread != NULL
        && _Py_atomic_load_uint64_relaxed(&thread->waiting_since_ns) == 0)
    {
        int saved_errno = errno;
        _Py_atomic_store_uint64_relaxed(&thread->waiting_since_ns,
                                        _PySampling_WallNow());
        errno = saved_errno;
    }
}

void
(_PySampling_AfterAttach)(PyThreadState *tstate)
{
    int saved_errno = errno;
    _PySampling_Thread *thread = session_thread(tstate);
    if (thread == NULL) {
        thread = _PySampling_ThreadOf(tstate);
    }
    if (thread != NULL && thread->native_id != _PySampling_OwnNativeId()) {
        thread = _PySampling_ThreadMoved(tstate);
    }
    if (thread == NULL) {
        errno = saved_errno;
        return;
    }
    if (_Py_atomic_load_int_relaxed(&_PyRuntime.sampling.parks_threads)
        && !thread->excluded
        && _Py_atomic_load_ptr_relaxed(&_PyRuntime.sampling.exit_writer)
           != tstate)
    {
        _PySampling_ParkAtEnding();
    }
    if (thread->shadowed) {
        _PySampling_SiblingsTakeOver(thread);
    }
    _PySampling_RunPrepare(thread);
    int at_once = thread->account.detached_ns == 0
        || _PySampling_AccountShort(thread, thread->attached_ns);
    if (!at_once) {
        _PySampling_ENTER_HOOK(thread);
        _PySampling_RecordOffGIL(tstate, thread, thread->attached_ns, 0);
        _PySampling_LEAVE_HOOK(thread);
    }
    _PySampling_HoldersTake(thread);
    _Py_atomic_store_uint64_relaxed(&thread->note_wall_ns, 0);
    _Py_atomic_store_int_relaxed(&thread->note_asleep, 0);
    _Py_atomic_store_uint64_relaxed(&thread->asleep_span_ns, 0);
    _Py_atomic_store_ptr_relaxed(&thread->sleeper.frame, NULL);
    // A question of an earlier session is void.  One that the clock is about
    // to ask is not: it may still find this thread running, as it was when it
    // chose it.
    if (_Py_atomic_load_int_relaxed(&thread->asked) == _PySampling_ASKED) {
        _Py_atomic_store_int_relaxed(&thread->asked, _PySampling_NOT_ASKED);
    }
    begin_run(tstate, thread, at_once);
    errno = saved_errno;
}
