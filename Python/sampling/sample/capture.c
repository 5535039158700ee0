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
#include "pycore_interp.h"            // PyInterpreterState.sampling
#include "pycore_pystate.h"           // _PyThreadState_GET()
#include "pycore_runtime.h"           // _PyRuntime
#include "pycore_tstate.h"            // _PyThreadStateImpl

#include "../base/frame.h"
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

/* What takes longer than this is maybe not the capture alone. */
#define MAX_CAPTURE_NS 100000

/* Which part of ticks finds a thread on a CPU is averaged over so many. */
#define AVERAGE_TICKS 16

/* At the first safepoint of a run that began in C: the call is over, but what
   is due is due since it was under way.  NULL: the leaf is in no such call. */
static const struct _sampling_call *
call_that_was_resumed(const _PySampling_Thread *thread,
                      const _PyInterpreterFrame *frame,
                      const _Py_CODEUNIT *instr)
{
    return frame != NULL && thread->resumed.frame == frame
        && thread->resumed.instr == instr ? &thread->resumed : NULL;
}

/* Runs in the signal handler, on the thread, or at a safepoint.  `now` is what
   its two clocks say. */
static int
capture(PyThreadState *tstate, _PySampling_Thread *thread,
        struct _sampling_time now, struct _sampling_time span,
        uint64_t asleep_ns, int is_in_c)
{
    struct _sampling_buffer *buffer = tstate->interp->sampling.buffer;
    _PyInterpreterFrame *frame = _PySampling_CurrentFrame(tstate);
    _Py_CODEUNIT *instr = NULL;
    if (frame != NULL && !_PySampling_IsEntry(frame)) {
        instr = _PySampling_FrameInstr(frame);
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
            .first_tick =
                _Py_atomic_load_uint64_relaxed(&thread->tick.number),
            .gc_generation = thread->gc_generation,
            .frame = frame,
            .instr = instr,
            .context = tstate->context,
        };
        const struct _sampling_call *call = is_in_c ? NULL
            : call_that_was_resumed(thread, frame, instr);
        struct _sampling_walk w = {
            .interp = tstate->interp,
            .slots = buffer->slots,
            .names = _PyRuntime.sampling.options.names,
            .call = call,
            .out = buffer->frames + buffer->used,
        };
        int walked = _PySampling_Walk(&w, thread, frame,
                                      buffer->depth_frames,
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
                        _PySampling_AccountSpent(thread, now.wall_ns,
                                                 now.cpu_ns));
    _PySampling_AddTime(&last->span, span);
    _PySampling_AddTime(&last->span, thread->span);
    thread->span = (struct _sampling_time){0};
    last->asleep_ns += asleep_ns;
    last->time_ns = thread->account.wall_ns;
    thread->recorded_run = _PySampling_RUN_OF(_PySampling_WORD(thread));
    last->count++;
    _Py_set_eval_breaker_bit(tstate, _PY_SAMPLING_BIT);
    return 1;
}

/* A capture that took very long has lost its CPU meanwhile: where others want
   the CPU, too, the kernel likes to take it in a system call, and no call of
   the program's comes as often as the handler's.  Or the stack is very deep:
   then its CPU time counts. */
static void
count_overhead(_PySampling_Thread *thread, uint64_t from_ns,
               uint64_t from_cpu_ns)
{
    uint64_t took_ns = _PySampling_MonotonicNow() - from_ns;
    if (took_ns > MAX_CAPTURE_NS) {
        took_ns = Py_MAX(MAX_CAPTURE_NS,
                         _PySampling_CpuNow(thread) - from_cpu_ns);
    }
    _PySampling_COUNT(overhead_capture_ns, took_ns);
}

/* On a CPU until the tick?  Then that took it away, where there is but one. */
static int
was_on_cpu(const _PySampling_Thread *thread)
{
    const struct _sampling_account *a = &thread->account;
    uint64_t wall_ns =
        thread->tick.at_ns - Py_MIN(thread->tick.at_ns, a->wall_ns);
    uint64_t cpu_ns =
        thread->tick.cpu_ns - Py_MIN(thread->tick.cpu_ns, a->cpu_ns);
    return wall_ns < cpu_ns + _PySampling_TICK_TAKES_NS;
}

/* Which part of the tick found the thread on a CPU, of ALWAYS_ON_CPU?  Of a
   thread that has one beside the sampler thread the kernel says so.  Else the
   tick took it away, or the thread waited for one; which of both is not sure if
   it has had no record in this run: then it is as of ticks that are sure. */
static int
part_on_cpu(_PySampling_Thread *thread)
{
    if (thread->tick.is_on_cpu) {
        return _PySampling_ALWAYS_ON_CPU;
    }
    int part = was_on_cpu(thread) ? _PySampling_ALWAYS_ON_CPU : 0;
    if (thread->recorded_run == _PySampling_RUN_OF(_PySampling_WORD(thread))) {
        thread->usual_part_on_cpu +=
            (part - thread->usual_part_on_cpu) / AVERAGE_TICKS;
        return part;
    }
    return part != 0 ? part : thread->usual_part_on_cpu;
}

/* What a signal stands for that comes now: as CPU time, what the thread has
   burnt of the time since its last record; a period at least. */
static struct _sampling_time
span_of_signal(_PySampling_Thread *thread, struct _sampling_time now)
{
    const struct _sampling_account *a = &thread->account;
    uint64_t way_ns = now.wall_ns - thread->tick.at_ns;
    struct _sampling_time span = {
        .wall_ns = _PySampling_RunTakeSpan(thread, thread->tick.at_ns,
                                           now.wall_ns)};
    struct _sampling_time spent = {
        now.wall_ns - Py_MIN(now.wall_ns, a->wall_ns),
        now.cpu_ns - Py_MIN(now.cpu_ns, a->cpu_ns)};
    if (_PyRuntime.sampling.options.manual) {
        span.cpu_ns = spent.cpu_ns;
    }
    else {
        int part = part_on_cpu(thread);
        if (way_ns >= _PySampling_LATE_NS       // it was in the kernel
            && now.cpu_ns - thread->tick.cpu_ns > way_ns / 2)
        {
            part = _PySampling_ALWAYS_ON_CPU;
        }
        uint64_t cpu_ns = Py_MIN(span.wall_ns, Py_MAX(
            _PySampling_PeriodNow(),
            _PySampling_PartOf(span.wall_ns, spent.cpu_ns, spent.wall_ns)));
        span.cpu_ns = cpu_ns * (uint64_t)part / _PySampling_ALWAYS_ON_CPU;
    }
    return span;
}

/* May the thread be captured now?  If not, what the tick stands for goes to
   the next capture.  Counts why. */
static int
may_capture(_PySampling_Thread *thread)
{
    if (thread->in_hook) {
        _PySampling_COUNT(captures_in_hook, 1);
        return 0;
    }
    if (thread->skip_ticks > 0) {
        // The stack is that deep.
        thread->skip_ticks--;
        _PySampling_COUNT(captures_skipped, 1);
        return 0;
    }
    return 1;
}

void
_PySampling_CaptureOverdue(PyThreadState *tstate, _PySampling_Thread *thread,
                           int is_in_c)
{
    if (thread->overdue.after_ns == 0) {
        return;
    }
    struct _sampling_time now = {.wall_ns = _PySampling_WallNow()};
    if (_PySampling_RunTakeOverdue(thread, now.wall_ns)) {
        now.cpu_ns = _PySampling_CpuNow(thread);
        (void)capture(tstate, thread, now, (struct _sampling_time){0}, 0,
                      is_in_c);
        thread->resumed.frame = NULL;
    }
}

/* The signal of a tick.  If one has noted the thread before, asleep with the GIL,
   that was in the call that it is in still. */
static void
handle_tick(PyThreadState *tstate, _PySampling_Thread *thread, uint64_t word)
{
    uint64_t from_ns = _PySampling_MonotonicNow();
    struct _sampling_time now = {_PySampling_WallAt(from_ns),
                                 _PySampling_CpuNow(thread)};
    int is_noted = (word & _PySampling_NOTED) != 0;
    struct _sampling_time span = {0};
    uint64_t asleep_ns = 0;
    int may = may_capture(thread);
    if (thread->in_hook) {
        // The deadlines are those of the next record: the hook counts, too.
    }
    else if (!is_noted) {
        span = span_of_signal(thread, now);
    }
    else if (may) {
        uint64_t span_ns = _PySampling_RunTakeSpan(
            thread, thread->tick.at_ns, now.wall_ns);
        span.cpu_ns = span.wall_ns = _PySampling_AccountOnCpu(
            thread, span_ns, now.wall_ns, now.cpu_ns);
        asleep_ns = span_ns - span.wall_ns;
    }
    word &= ~(uint64_t)_PySampling_SENDING;
    if (may && capture(tstate, thread, now, span, asleep_ns, 1)) {
        word &= ~(uint64_t)_PySampling_NOTED;
        word |= _PySampling_PENDING;
    }
    else if (!thread->in_hook) {
        span.wall_ns += asleep_ns;
        _PySampling_AddTime(&thread->span, span);
    }
    _Py_atomic_store_uint64(&thread->word, word);
    count_overhead(thread, from_ns, now.cpu_ns);
}

/* Runs on whatever thread the signal reached.  No lock, no allocation, no
   system call but clock_gettime(). */
void
_PySampling_SignalHandler(int signum, void *siginfo, void *context)
{
    int saved_errno = errno;
    PyThreadState *tstate = _PyThreadState_GET();
    if (tstate == NULL) {
        _PySampling_COUNT(signals_late, 1);
        return;
    }
    _PySampling_Thread *thread = _PySampling_RECORD_OF(tstate);
    uint64_t word = thread != NULL ? _PySampling_WORD(thread) : 0;
    if (thread == NULL || !_PySampling_IsFromClock(siginfo)) {
        _PySampling_COUNT(signals_stray, 1);
    }
    else if (_PySampling_STATE_OF(word) == _PySampling_INACTIVE) {
        // As its run ended: it waits for this.
        _Py_atomic_store_int(&thread->signal_came, 1);
    }
    else if (!(word & _PySampling_SENDING)) {
        _PySampling_COUNT(signals_stray, 1);
    }
    else if (!_PySampling_ACTIVE() || !_PySampling_IN_EPOCH(thread)) {
        _Py_atomic_store_uint64(&thread->word,
                                word & ~(uint64_t)_PySampling_SENDING);
        _PySampling_COUNT(signals_late, 1);
    }
    else {
        _PySampling_COUNT(calls_interrupted, _PySampling_HasCutCall(context));
        handle_tick(tstate, thread, word);
    }
    errno = saved_errno;
}
