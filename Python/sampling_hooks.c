/* Sampling profiler: where the interpreter tells that a thread runs.

   Owns the hooks of the eval loop, of detach, attach and exec: what has to
   happen there, and in which order.  Must not know how a nanosecond is booked,
   a stack is walked or a signal is sent. */

#include "Python.h"

#include "pycore_ceval.h"             // _Py_unset_eval_breaker_bit()
#include "pycore_interp.h"            // PyInterpreterState.sampling
#include "pycore_pystate.h"           // _PyThreadState_GET()
#include "pycore_runtime.h"           // _PyRuntime
#include "pycore_sampling_callee.h"   // _PySampling_KeepCall()
#include "pycore_sampling_clock.h"    // _PySampling_WAKE_UP_NS
#include "pycore_sampling_events.h"
#include "pycore_sampling_labels.h"
#include "pycore_sampling_parts.h"
#include "pycore_tstate.h"            // _PyThreadStateImpl

#ifdef _PySampling_SUPPORTED

#include <errno.h>

/* The thread's record, if it takes part in the session.  Called without the
   GIL, too: the load pairs with the stores in sampling_registry.c. */
static _PySampling_Thread *
session_thread(PyThreadState *tstate)
{
    _PySampling_Thread *thread = _Py_atomic_load_ptr_acquire(
        &((_PyThreadStateImpl *)tstate)->sampling);
    if (thread == NULL || !_PySampling_IN_SESSION(thread)) {
        return NULL;
    }
    return thread;
}

/* The clock left a note instead of sending a signal.  If the thread slept
   while it held the GIL, it has come to a safepoint now, still at the
   instruction that slept.  If it does not answer signals, this is the best
   that can be had: what it does now, not what it did at the tick. */
static void
answer_note(PyThreadState *tstate, _PySampling_Thread *thread)
{
    struct _sampling_runtime_state *state = &_PyRuntime.sampling;
    uint64_t note_ns = _Py_atomic_exchange_uint64(&thread->note_wall_ns, 0);
    int ticks_asleep = _Py_atomic_exchange_int(&thread->note_asleep, 0);
    struct _sampling_time asleep = {
        .wall_ns = _Py_atomic_exchange_uint64(&thread->asleep_span_ns, 0)};
    if (ticks_asleep == 0 && note_ns <= thread->account.wall_ns) {
        return;         // it has been captured since
    }
    uint64_t now_ns = _PySampling_WallNow();
    struct _sampling_time spent =
        _PySampling_AccountRun(thread, now_ns, _PySampling_CpuNow(thread));
    PyMutex_LockFlags(&state->tables_mutex, _Py_LOCK_DONT_DETACH);
    struct _sampling_tables *tables = _PySampling_TABLES_OF(thread);
    if (tables != NULL) {
        // The call that slept has returned.
        uint32_t node = ticks_asleep != 0
            ? _PySampling_SleeperNode(tstate, thread)
            : _PySampling_WalkNode(tstate, thread, 0);
        _PySampling_HoldersSaw(thread, node, now_ns);
        int sample_state = thread->gc_generation >= 0
            ? _PySampling_GC : _PySampling_RUNNING;
        if (ticks_asleep != 0) {
            node = _PySampling_TablesPseudoChild(
                tables, node, _PySampling_PSEUDO_ASLEEP, 0);
            sample_state = _PySampling_ASLEEP_WITH_GIL;
        }
        _PySampling_Weigh(thread, _PySampling_ON_GIL,
                          &(struct _sampling_pending){
            .time_ns = now_ns,
            .count = ticks_asleep != 0 ? (uint64_t)ticks_asleep : 1,
            .span = ticks_asleep != 0 ? asleep : _PySampling_TakeSpan(thread),
            .node = node,
            .labels = _PySampling_LabelsOf(tables, tstate, tstate->context),
            .state = sample_state,
        }, spent);
    }
    PyMutex_Unlock(&state->tables_mutex);
    if (ticks_asleep == 0) {
        _PySampling_COUNT(captures_biased, 1);
    }
}

static void
drain_and_answer(PyThreadState *tstate, _PySampling_Thread *thread)
{
    _Py_unset_eval_breaker_bit(tstate, _PY_SAMPLING_BIT);
    _PySampling_Drain(tstate, thread);
    if (_Py_atomic_load_uint64_relaxed(&thread->note_wall_ns) != 0) {
        answer_note(tstate, thread);
    }
}

/* From here on the clock asks this thread for nothing more, and what it has
   asked is answered before a system call could be interrupted. */
static void
settle(PyThreadState *tstate)
{
    _PySampling_Thread *thread = ((_PyThreadStateImpl *)tstate)->sampling;
    if (thread != NULL) {
        _Py_atomic_store_ptr(&tstate->interp->sampling.running, NULL);
        _PySampling_ClockSettle(thread);
    }
}

/* From here on the thread has the GIL, for the clock and for its timer. */
static void
begin_run(PyThreadState *tstate, _PySampling_Thread *thread, uint64_t from_ns)
{
    int is_timed = _PySampling_TimerBegin(thread, from_ns);
    if (is_timed && _PySampling_TimerIsSoon(thread)) {
        _Py_set_eval_breaker_bit(tstate, _PY_SAMPLING_BIT);
    }
    _Py_atomic_store_ptr(&tstate->interp->sampling.running, thread);
    _PySampling_ClockWake(is_timed);
}

void
_PySampling_BeforeExec(void)
{
    PyThreadState *tstate = _PyThreadState_GET();
    if (_PySampling_ACTIVE() && tstate != NULL) {
        settle(tstate);
    }
}

void
_PySampling_AfterFailedExec(void)
{
    PyThreadState *tstate = _PyThreadState_GET();
    if (_PySampling_ACTIVE() && tstate != NULL) {
        _PySampling_Thread *thread = session_thread(tstate);
        if (thread != NULL) {
            begin_run(tstate, thread, _PySampling_MonotonicNow());
        }
    }
}

/* What waits on this thread becomes samples.  Allocates no Python object and
   runs no Python code. */
void
_PySampling_RecordNow(PyThreadState *tstate)
{
    int saved_errno = errno;
    _PySampling_Thread *thread = session_thread(tstate);
    if (thread == NULL) {
        // It was running, with a GIL of its own, when the session started.
        _Py_unset_eval_breaker_bit(tstate, _PY_SAMPLING_BIT);
        if (_PySampling_ACTIVE()) {
            settle(tstate);
            _PySampling_AfterAttach(tstate);
        }
    }
    else if (!thread->in_hook) {
        _PySampling_ENTER_HOOK(thread);
        int is_due = thread->overdue_ns == 0
            || _PySampling_CaptureOverdue(tstate, thread, 0);
        _PySampling_CaptureDue(tstate, thread);
        thread->resumed.frame = NULL;
        drain_and_answer(tstate, thread);
        if (!is_due || _PySampling_TimerIsSoon(thread)) {
            // At the next safepoint, maybe.
            _Py_set_eval_breaker_bit(tstate, _PY_SAMPLING_BIT);
        }
        _PySampling_LEAVE_HOOK(thread);
    }
    errno = saved_errno;
}

int
_PySampling_Safepoint(PyThreadState *tstate)
{
    _PySampling_RecordNow(tstate);
    if (_Py_atomic_load_int_relaxed(&_PyRuntime.sampling.num_sync)) {
        return _PySampling_DeliverSync(tstate);
    }
    return 0;
}

/* Once per thread: under which frames its time goes if no tick hits it. */
static void
note_root(PyThreadState *tstate, _PySampling_Thread *thread)
{
    struct _sampling_runtime_state *state = &_PyRuntime.sampling;
    PyMutex_LockFlags(&state->tables_mutex, _Py_LOCK_DONT_DETACH);
    if (_PySampling_TABLES_OF(thread) != NULL) {
        uint32_t node = _PySampling_RootNode(tstate, thread);
        if (node != _PySampling_NO_NODE) {
            thread->root_node = node;
            _PySampling_HoldersSawRoot(thread);
        }
    }
    PyMutex_Unlock(&state->tables_mutex);
}

void
_PySampling_BeforeYield(PyThreadState *tstate)
{
    _PySampling_Thread *thread = ((_PyThreadStateImpl *)tstate)->sampling;
    if (thread != NULL) {
        thread->is_yielding = 1;
    }
}

/* The run is over before the overdue tick was due: it goes on to the next. */
static void
put_off_further(_PySampling_Thread *thread)
{
    uint64_t ran_ns = _PySampling_WallNow() - thread->attached_ns;
    thread->overdue_ns =
        thread->overdue_ns > ran_ns ? thread->overdue_ns - ran_ns : 1;
}

/* The clock has let a deadline in the run that ends now go by.  Not if it may
   still be waking up: as often, then, it meets a run that began after the
   deadline.  Nor if the run has a timer. */
static void
count_missed(const _PySampling_Thread *thread)
{
    uint64_t deadline_ns = _Py_atomic_load_uint64_relaxed(
        &_PyRuntime.sampling.deadline_ns);
    uint64_t end_ns = thread->account.detached_ns;
    if (!thread->is_timed
        && deadline_ns >= thread->attached_ns && deadline_ns < end_ns
        && end_ns - deadline_ns > _PySampling_WAKE_UP_NS)
    {
        _PySampling_COUNT(ticks_missed, 1);
    }
}

void
_PySampling_BeforeDetach(PyThreadState *tstate)
{
    int saved_errno = errno;
    _PySampling_Thread *thread = session_thread(tstate);
    // Not one that is put off only now.
    int is_overdue = thread != NULL && thread->overdue_ns != 0;
    settle(tstate);
    if (thread == NULL) {
        errno = saved_errno;
        return;
    }
    _PySampling_ENTER_HOOK(thread);
    if (is_overdue
        && !_PySampling_CaptureOverdue(tstate, thread, !thread->is_yielding))
    {
        put_off_further(thread);
    }
    _PySampling_CaptureLast(tstate, thread, !thread->is_yielding);
    if (_Py_atomic_load_uintptr_relaxed(&tstate->eval_breaker)
        & _PY_SAMPLING_BIT)
    {
        drain_and_answer(tstate, thread);
    }
    if (thread->root_node == 0 && tstate->current_frame != NULL
        && !thread->excluded)
    {
        note_root(tstate, thread);
    }
    _Py_atomic_store_uint64_relaxed(&thread->waiting_since_ns, 0);
    _PySampling_AccountDetach(thread);
    count_missed(thread);
    _PySampling_LEAVE_HOOK(thread);
    errno = saved_errno;
}

void
_PySampling_BeforeGILWait(PyThreadState *tstate)
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

/* A tick was put off to the run that begins: it is due at once, still in the C
   function that gave the GIL up, or at a safepoint after. */
static void
begin_overdue(PyThreadState *tstate, _PySampling_Thread *thread, int is_in_c)
{
    _PySampling_ENTER_HOOK(thread);
    if (!_PySampling_CaptureOverdue(tstate, thread, is_in_c)) {
        _PySampling_KeepCall(is_in_c ? tstate->current_frame : NULL,
                             &thread->resumed);
        _Py_set_eval_breaker_bit(tstate, _PY_SAMPLING_BIT);
    }
    _PySampling_LEAVE_HOOK(thread);
}

void
_PySampling_AfterAttach(PyThreadState *tstate)
{
    int saved_errno = errno;
    _PySampling_Thread *thread = _PySampling_ThreadOf(tstate);
    if (thread == NULL) {
        errno = saved_errno;
        return;
    }
    if (thread->shadowed) {
        _PySampling_SiblingsTakeOver(thread);
    }
    if (thread->account.detached_ns != 0) {
        _PySampling_ENTER_HOOK(thread);
        _PySampling_AccountAttach(tstate, thread);
        _PySampling_LEAVE_HOOK(thread);
    }
    _PySampling_HoldersTake(thread);
    int is_in_c = !thread->is_yielding;
    thread->is_yielding = 0;
    _Py_atomic_store_uint64_relaxed(&thread->note_wall_ns, 0);
    _Py_atomic_store_int_relaxed(&thread->note_asleep, 0);
    _Py_atomic_store_uint64_relaxed(&thread->asleep_span_ns, 0);
    _Py_atomic_store_ptr_relaxed(&thread->sleeper.frame, NULL);
    if (thread->overdue_ns != 0) {
        begin_overdue(tstate, thread, is_in_c);
    }
    // A question of an earlier session is void.  One that the clock is about
    // to ask is not: it may still find this thread running, as it was when it
    // chose it.
    if (_Py_atomic_load_int_relaxed(&thread->asked) == _PySampling_ASKED) {
        _Py_atomic_store_int_relaxed(&thread->asked, _PySampling_NOT_ASKED);
    }
    begin_run(tstate, thread, thread->attached_ns);
    errno = saved_errno;
}

#endif  // _PySampling_SUPPORTED
