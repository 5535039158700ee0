/* Sampling profiler: WHAT a sample's stack is.

   Owns the signal handler and what it copies.  Must not know how the clock
   chooses its moments, how a stack is walked (sample/walk.c) or what becomes
   of the copy (sample/record.c).

   A capture is taken in a signal handler on the thread that holds the GIL, so
   that (code, instruction) of every frame is exact: nothing moves while the
   handler runs.  It only copies pointers.  Naming them waits for the drain,
   which runs on the same thread at its next safepoint, before it gives up the
   GIL and before any code object or context dies; so the borrowed pointers
   are alive. */

#include "Python.h"

#include "pycore_ceval.h"             // _Py_set_eval_breaker_bit()
#include "pycore_frame.h"             // _PyInterpreterFrame
#include "pycore_interp.h"            // PyInterpreterState.sampling
#include "pycore_pystate.h"           // _PyThreadState_GET()
#include "pycore_runtime.h"           // _PyRuntime
#include "pycore_tstate.h"            // _PyThreadStateImpl

#include "../clock/clock.h"
#include "buffer.h"
#include "sample.h"
#include "walk.h"

#include <errno.h>
#include <signal.h>

/* A walk of this many frames costs some ten microseconds; for each of them a
   tick is skipped, so that deep recursion is sampled thinner, not slowed
   down. */
#define FRAMES_PER_SKIPPED_TICK 4096

/* What takes longer than this is not the capture alone. */
#define MAX_CAPTURE_NS 100000

/* At the first safepoint of a run that began in C: the call is over, but what
   is due is due since it was under way.  NULL: the leaf is in no such call. */
static const struct _sampling_call *
call_that_was_resumed(const _PySampling_Thread *thread,
                      const _PyInterpreterFrame *frame,
                      const _Py_CODEUNIT *instr, int is_in_c)
{
    return !is_in_c && frame != NULL && thread->resumed.frame == frame
        && thread->resumed.instr == instr ? &thread->resumed : NULL;
}

/* Runs in the signal handler, on the thread, or at a safepoint. */
int
_PySampling_Capture(PyThreadState *tstate, _PySampling_Thread *thread,
                    uint64_t wall_ns, uint64_t cpu_ns, int is_in_c)
{
    struct _sampling_buffer *buffer = tstate->interp->sampling.buffer;
    _PyInterpreterFrame *frame = tstate->current_frame;
    _Py_CODEUNIT *instr = NULL;
    if (frame != NULL && frame->owner != FRAME_OWNED_BY_CSTACK) {
        instr = frame->instr_ptr;
    }

    struct _sampling_capture *last = NULL;
    if (buffer->epoch != thread->epoch) {
        // What is left of another epoch may refer to dead code objects.
        buffer->epoch = thread->epoch;
        buffer->num_captures = 0;
        buffer->used = 0;
    }
    if (buffer->num_captures > 0) {
        last = &buffer->captures[buffer->num_captures - 1];
        if (last->frame != frame || last->instr != instr
            || last->context != tstate->context
            || last->gc_generation != thread->gc_generation)
        {
            last = NULL;
        }
    }
    if (last == NULL) {
        if (buffer->num_captures == _PySampling_MAX_CAPTURES
            || buffer->capacity - buffer->used
               < _PySampling_MaxEntries(buffer->depth_frames))
        {
            _PySampling_COUNT(captures_no_space, 1);
            return 0;
        }
        last = &buffer->captures[buffer->num_captures];
        *last = (struct _sampling_capture){
            .first = buffer->used,
            .gc_generation = thread->gc_generation,
            .frame = frame,
            .instr = instr,
            .context = tstate->context,
        };
        const struct _sampling_call *call = call_that_was_resumed(
            thread, frame, instr, is_in_c);
        struct _sampling_walk w = {
            .interp = tstate->interp,
            .slots = buffer->slots,
            .names = _PyRuntime.sampling.options.names,
            .call = call,
            .out = buffer->frames + buffer->used,
        };
        int walked =
            _PySampling_Walk(&w, thread, frame, buffer->depth_frames,
                             is_in_c || call != NULL);
        assert(w.num_entries <= _PySampling_MaxEntries(buffer->depth_frames));
        last->depth = w.num_entries;
        thread->skip_ticks = walked / FRAMES_PER_SKIPPED_TICK;
        buffer->used += last->depth;
        buffer->num_captures++;
        _PySampling_COUNT(captures, 1);
    }
    else {
        _PySampling_COUNT(captures_merged, 1);
    }
    _PySampling_AddTime(&last->spent,
                        _PySampling_AccountRun(thread, wall_ns, cpu_ns));
    _PySampling_AddTime(&last->span, _PySampling_TakeSpan(thread));
    last->time_ns = thread->account.wall_ns;
    last->count++;
    _Py_set_eval_breaker_bit(tstate, _PY_SAMPLING_BIT);
    return 1;
}

/* A capture that took very long has lost its CPU meanwhile: where others want
   the CPU, too, the kernel likes to take it in a system call, and no call of
   the program's comes as often as the handler's. */
static void
count_overhead(uint64_t from_ns)
{
    uint64_t took_ns = _PySampling_MonotonicNow() - from_ns;
    _PySampling_COUNT(overhead_capture_ns, Py_MIN(took_ns, MAX_CAPTURE_NS));
}

/* If the signal took long, the thread stood at the instruction that the
   handler finds: the time since the tick is of that instruction. */
static void
capture_tick(PyThreadState *tstate, _PySampling_Thread *thread)
{
    uint64_t now_ns = _PySampling_MonotonicNow();
    uint64_t wall_ns = _Py_atomic_load_uint64_relaxed(&thread->tick_wall_ns);
    uint64_t cpu_ns = _Py_atomic_load_uint64_relaxed(&thread->tick_cpu_ns);
    if (now_ns - wall_ns > _PySampling_LATE_NS
        && !_PyRuntime.sampling.options.manual)
    {
        wall_ns = now_ns;
        cpu_ns = _PySampling_CpuNow(thread);
    }
    _PySampling_Capture(tstate, thread, wall_ns, cpu_ns, 1);
    count_overhead(now_ns);
}

/* Is the stack so deep that this tick is left out?  What it stands for goes to
   the next capture. */
static int
is_skipped(_PySampling_Thread *thread)
{
    if (thread->skip_ticks <= 0) {
        return 0;
    }
    thread->skip_ticks--;
    _PySampling_COUNT(captures_skipped, 1);
    return 1;
}

void
_PySampling_CaptureDue(PyThreadState *tstate, _PySampling_Thread *thread)
{
    uint64_t now_ns = _PySampling_WallNow();
    if (_PySampling_RunTakeDue(thread, now_ns) && !is_skipped(thread)) {
        _PySampling_Capture(tstate, thread, now_ns,
                            _PySampling_CpuNow(thread), 0);
    }
}

void
_PySampling_CaptureLast(PyThreadState *tstate, _PySampling_Thread *thread,
                        int was_overdue, int is_in_c)
{
    if (_PySampling_RunTakeLast(thread, was_overdue) && !is_skipped(thread)) {
        uint64_t end_ns = _PySampling_AccountRunEnd(thread);
        _PySampling_Capture(tstate, thread, end_ns,
                            _PySampling_CpuAt(thread, end_ns), is_in_c);
    }
}

/* May this signal capture the thread?  Counts why not. */
static int
may_capture(_PySampling_Thread *thread)
{
    if (thread->in_hook) {
        _PySampling_COUNT(captures_in_hook, 1);
        return 0;
    }
    return !is_skipped(thread);
}

/* The clock has asked. */
static void
handle_question(PyThreadState *tstate, _PySampling_Thread *thread)
{
    if (!may_capture(thread)) {
        // What the tick stands for goes to the next capture.
    }
    else if (thread->is_leaving) {
        _PySampling_RunPutOff(thread);
    }
    else {
        capture_tick(tstate, thread);
        _PySampling_RunWasAsked(
            thread, _Py_atomic_load_uint64_relaxed(&thread->tick_wall_ns));
    }
}

/* The thread's own timer has fired. */
static void
handle_timer(PyThreadState *tstate, _PySampling_Thread *thread, void *context)
{
    uint64_t now_ns = _PySampling_MonotonicNow();
    uint64_t stopped_ns = _PySampling_RunHear(thread, now_ns);
    if (stopped_ns == 0) {
        _Py_set_eval_breaker_bit(tstate, _PY_SAMPLING_BIT);
        return;
    }
    _PySampling_MetCall met = _PySampling_SignalMet(context);
    if (met != _PySampling_NO_CALL) {
        _PySampling_TimersEnd(met == _PySampling_CALL_CUT);
    }
    if (met == _PySampling_CALL_CUT) {
        _PySampling_COUNT(calls_interrupted, 1);
    }
    if (may_capture(thread)) {
        // Late, and it had no CPU.
        int is_read = stopped_ns == now_ns
            || _PySampling_AccountWantsCpu(thread, now_ns);
        uint64_t cpu_ns = is_read ? _PySampling_CpuNow(thread) : 0;
        _PySampling_Capture(tstate, thread, now_ns, cpu_ns, 1);
    }
    _PySampling_RunGoOn(thread, stopped_ns);
    count_overhead(stopped_ns);
}

/* Runs on whatever thread the signal reached.  No lock, no allocation, no
   system call but clock_gettime(), sigaction() and those of the timer. */
void
_PySampling_SignalHandler(int signum, void *siginfo, void *context)
{
    int saved_errno = errno;
    const siginfo_t *info = siginfo;
    PyThreadState *tstate = _PyThreadState_GET();
    if (tstate == NULL) {
        _PySampling_COUNT(signals_late, 1);
        return;
    }
    _PySampling_Thread *thread = _PySampling_RECORD_OF(tstate);
    int is_timer = info->si_code == SI_TIMER;
    if (thread == NULL || !_PySampling_IsFromClock(info)
        || (!is_timer && _Py_atomic_load_int_acquire(&thread->asked)
                         == _PySampling_NOT_ASKED))
    {
        _PySampling_COUNT(signals_stray, 1);
        errno = saved_errno;
        return;
    }
    if (!_PySampling_ACTIVE()
        || !_PySampling_IN_EPOCH(thread))
    {
        _PySampling_COUNT(signals_late, 1);
    }
    else if (is_timer) {
        handle_timer(tstate, thread, context);
    }
    else {
        handle_question(tstate, thread);
    }
    if (!is_timer) {
        _Py_atomic_store_int_release(&thread->asked, _PySampling_NOT_ASKED);
    }
    errno = saved_errno;
}
