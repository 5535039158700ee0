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

#include "base/frame.h"
#include "clock/clock.h"
#include "native/native.h"            // _PySampling_KeepCall()
#include "reach/door.h"
#include "sample/buffer.h"            // _PySampling_HasCaptures()
#include "sample/sample.h"
#include "session/session.h"
#include "tables/labels.h"

#include <errno.h>

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

/* What its flags say that is to be done before the thread gives the GIL up, or
   at a safepoint. */
static void
answer(PyThreadState *tstate, _PySampling_Thread *thread, int flags)
{
    _PySampling_Drain(tstate, thread);
    if (flags & _PySampling_NOTED) {
        _PySampling_RecordNote(tstate, thread, _PySampling_RUNS,
                               _PySampling_WallNow(), 0);
    }
    if (thread->root_node == 0 && _PySampling_CurrentFrame(tstate) != NULL
        && !thread->excluded)
    {
        _PySampling_RecordRoot(tstate, thread);
    }
}

/* From here on the thread gets no tick, and no signal is on its way that
   could interrupt a system call. */
static void
end_run(PyThreadState *tstate, _PySampling_Thread *thread)
{
    _PySampling_ENTER_HOOK(thread);
    // What the end of this run meets is not due in it.
    _PySampling_CaptureOverdue(tstate, thread, !thread->is_yielding);
    int flags = _PySampling_RunEnd(thread);
    _Py_unset_eval_breaker_bit(tstate, _PY_SAMPLING_BIT);
    answer(tstate, thread, flags);
    if (flags & (_PySampling_ASKED | _PySampling_SENDING)) {
        _PySampling_RecordRunEnd(thread);
    }
    _PySampling_LEAVE_HOOK(thread);
}

void
_PySampling_BeforeExec(const char *path)
{
    PyThreadState *tstate = _PyThreadState_GET();
    if (tstate == NULL) {
        return;
    }
    _PySampling_WriteBeforeExec(tstate, path);
    if (_PySampling_ACTIVE() && session_thread(tstate) != NULL) {
        end_run(tstate, session_thread(tstate));
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
            _PySampling_RunBegin(thread, 0);
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
        end_run(tstate, thread);
        _PySampling_RunBegin(thread, 0);
    }
    errno = saved_errno;
}

void
_PySampling_BeforeChange(PyThreadState *tstate)
{
    int saved_errno = errno;
    _PySampling_Thread *thread = session_thread(tstate);
    if (thread == NULL
        || (!thread->in_hook && _PySampling_STATE_OF(
                _PySampling_WORD(thread)) >= _PySampling_DETACHED))
    {
        // It was running, with a GIL of its own, when the session started.
        _Py_unset_eval_breaker_bit(tstate, _PY_SAMPLING_BIT);
        if (_PySampling_ACTIVE()) {
            _PySampling_AfterAttach(tstate);
        }
    }
    else if (!thread->in_hook
             && (_PySampling_HasCaptures(tstate)
                 || !_PySampling_RunAwaitsOverdue(thread)))
    {
        _PySampling_ENTER_HOOK(thread);
        _PySampling_RunCheckMask(thread);
        _PySampling_CaptureOverdue(tstate, thread, 0);
        // Before the word is read: who sets a flag then sets the bit.
        _Py_unset_eval_breaker_bit(tstate, _PY_SAMPLING_BIT);
        int flags = (int)_PySampling_WORD(thread) & _PySampling_NOTED;
        answer(tstate, thread, flags);
        // Not before: the next tick writes what a note is about.
        flags |= _PySampling_PENDING;
        _Py_atomic_and_uint64(&thread->word, ~(uint64_t)flags);
        if (thread->overdue.after_ns != 0) {
            // At the next safepoint, maybe; or at the end of the run.
            _Py_atomic_or_uint64(&thread->word, _PySampling_PENDING);
            _Py_set_eval_breaker_bit(tstate, _PY_SAMPLING_BIT);
        }
        _PySampling_LEAVE_HOOK(thread);
    }
    errno = saved_errno;
}

void
_PySampling_Safepoint(PyThreadState *tstate)
{
    _PySampling_BeforeChange(tstate);
    _PySampling_AnswerPending(tstate);
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
    _PySampling_Thread *thread = session_thread(tstate);
    if (thread == NULL
        || _PySampling_RunChange(thread, _PySampling_DETACHED))
    {
        return;
    }
    int saved_errno = errno;
    end_run(tstate, thread);
    (void)_PySampling_RunSet(thread, _PySampling_DETACHED);
    errno = saved_errno;
}

/* The moment is that of the second call that finds the same holder, by one who
   has waited: the first would cost each wait a clock.  A dump reads it
   meanwhile. */
static void
note(struct _sampling_gil_note *note, const struct _gil_runtime_state *gil)
{
    if (note->switches != gil->switch_number + 1) {
        _Py_atomic_store_uint64_relaxed(&note->since_ns, 0);
        _Py_atomic_store_uint64_release(&note->switches,
                                        gil->switch_number + 1);
    }
    else if (note->since_ns == 0) {
        _Py_atomic_store_uint64_relaxed(&note->since_ns,
                                        _PySampling_MonotonicNow());
    }
}

void
_PySampling_BeforeGILWait(PyThreadState *tstate)
{
    if (_PyThreadState_MustExit(tstate)) {
        return;     // a daemon thread at exit: its state may be gone
    }
    const struct _gil_runtime_state *gil = tstate->interp->ceval.gil;
    note(&((_PyThreadStateImpl *)tstate)->sampling.waits, gil);
    if (_Py_IsMainInterpreter(tstate->interp)) {
        note(&_PyRuntime.sampling.reach.holds, gil);
    }
    if (!_PySampling_ACTIVE()) {
        return;
    }
    _PySampling_Thread *thread = session_thread(tstate);
    if (thread == NULL || _PySampling_STATE_OF(_PySampling_WORD(thread))
                          != _PySampling_DETACHED)
    {
        return;
    }
    if (_PySampling_WORD(thread) & _PySampling_NOTED) {
        // Before others see that it waits: they may record it meanwhile.
        int saved_errno = errno;
        if (thread->waiting_since_sleeps == 0
            && _Py_atomic_load_uint64_relaxed(&thread->tick.sleeps) != 0)
        {
            thread->waiting_since_sleeps = _PySampling_OwnSleeps();
        }
        _Py_atomic_store_uint64_relaxed(
            &thread->waiting_since_tick,
            _Py_atomic_load_uint64_relaxed(&_PyRuntime.sampling.tick_number));
        _Py_atomic_store_uint64_relaxed(&thread->waiting_since_ns,
                                        _PySampling_WallNow());
        errno = saved_errno;
    }
    _Py_atomic_or_uint64(&thread->word, _PySampling_WAITS);
}

/* It has the GIL, and something is to be done before its run begins. */
static void
begin_run(PyThreadState *tstate, _PySampling_Thread *thread)
{
    if (_Py_atomic_load_int_relaxed(&_PyRuntime.sampling.parks_threads)
        && !thread->excluded
        && _Py_atomic_load_ptr_relaxed(&_PyRuntime.sampling.exit_writer)
           != tstate)
    {
        _PySampling_ParkAtEnding();
    }
    if (thread->inactive_on_os_thread) {
        _PySampling_SiblingsTakeOver(thread);
    }
    uint64_t word = _PySampling_WORD(thread);
    while (!(word & _PySampling_NOTED)) {
        // Nobody is to note it from here on.
        uint64_t out = _PySampling_NextWord(word, _PySampling_INACTIVE);
        if (_Py_atomic_compare_exchange_uint64(&thread->word, &word, out)) {
            break;
        }
    }
    if (word & _PySampling_NOTED) {
        _PySampling_ENTER_HOOK(thread);
        uint64_t now_ns = _PySampling_WallNow();
        _PySampling_RecordNote(
            tstate, thread, _PySampling_STATE_OF(word), now_ns,
            _PySampling_OthersComputed(thread, now_ns, 0));
        _PySampling_LEAVE_HOOK(thread);
    }
    else if (thread->pauses != _PySampling_PAUSES()) {
        _PySampling_ENTER_HOOK(thread);
        _PySampling_RecordPause(thread);
        _PySampling_LEAVE_HOOK(thread);
    }
    if (thread->overdue.after_ns != 0) {
        _PySampling_KeepCall(
            thread->is_yielding ? NULL : _PySampling_CurrentFrame(tstate),
            &thread->resumed);
    }
    thread->is_yielding = 0;
    _PySampling_RunBegin(thread,
                         thread->root_node == 0 ? _PySampling_PENDING : 0);
    if (word & _PySampling_NOTED) {
        thread->recorded_run = _PySampling_RUN_OF(_PySampling_WORD(thread));
        _PySampling_RunReturned(thread);
    }
}

void
(_PySampling_AfterAttach)(PyThreadState *tstate)
{
    _PySampling_Thread *thread = session_thread(tstate);
    if (thread != NULL && thread->native_id == _PySampling_OwnNativeId()
        && thread->mask == _PySampling_TAKES_SIGNAL
        && thread->overdue.after_ns == 0 && !thread->inactive_on_os_thread
        && thread->pauses == _PySampling_PAUSES()
        && !_Py_atomic_load_int_relaxed(&_PyRuntime.sampling.parks_threads)
        && _PySampling_RunChange(thread, _PySampling_RUNS))
    {
        thread->is_yielding = 0;
        return;
    }
    int saved_errno = errno;
    if (thread == NULL) {
        thread = _PySampling_ThreadEnsure(tstate);
    }
    else if (thread->native_id != _PySampling_OwnNativeId()) {
        thread = _PySampling_ThreadMoved(tstate);
    }
    if (thread != NULL) {
        begin_run(tstate, thread);
    }
    errno = saved_errno;
}

void
_PySampling_Finalize(PyThreadState *tstate)
{
    if (_Py_IsMainInterpreter(tstate->interp)) {
        _PySampling_WatchEnd();
    }
    _PySampling_EndAutostart(tstate);
}

PyStatus
_PySampling_InitFromConfig(PyThreadState *tstate)
{
    _PySampling_ReachBegin(tstate);
    return _PySampling_Autostart(tstate);
}
