/* Sampling profiler: the run of a thread, from taking the GIL to giving it up.

   Owns what a thread does with its word when a tick has set a flag, or when it
   takes part in no ticks for a while.  Must not know what a capture is.

   state      flag       set by        what the thread does
   INACTIVE              the thread    nothing: it gets no ticks
   RUNS       none       the thread    detaches by one compare-and-exchange
              ASKED      a tick        takes the tick as it detaches
              SENDING    a tick        its handler captures; as it detaches it
                                       waits for the signal
              NOTED      a tick        answers, at a safepoint or as it detaches
              PENDING    the thread    drains captures, at a safepoint or as it
                                       detaches
   DETACHED   none       the thread    attaches by one compare-and-exchange
   WAITS      NOTED      a tick        records that when it attaches

   The thread changes its state by an exchange, or by a compare-and-exchange
   that fails if there is a flag; a tick sets a flag by one that fails if the
   state has changed: the generation differs.  All are sequentially consistent.
   Whoever has set a flag has written thread->tick before; it is the thread's
   as long as the flag is there.

   An overdue tick: one that met a run which ended before its signal came.  All
   signals come some ten microseconds after the tick, on the axis of the
   thread's own time; so this one is due as long after the beginning of the
   next run as it would have come after the end of that one.  Without it, the
   ends of runs had too many ticks and their beginnings none. */

#include "Python.h"

#include "pycore_ceval.h"             // _Py_set_eval_breaker_bit()
#include "pycore_runtime.h"           // _PyRuntime

#include "inside.h"

#include <sched.h>                    // sched_yield()

#define STATE (&_PyRuntime.sampling)

/* A thread that waits for its signal yields so often before it asks whether
   that has been sent: to one of a real-time policy, yielding is not to let one
   of lower priority have the CPU, which the sampler thread may be. */
#define MAX_YIELDS 20

/* How long signals are on their way is averaged over so many. */
#define AVERAGE_FLIGHTS 16


uint64_t
_PySampling_RunTakeSpan(_PySampling_Thread *thread, uint64_t tick_ns,
                        uint64_t now_ns)
{
    // A deadline just before is one that the sampler thread is still late for:
    // it will find what comes now.
    uint64_t late_ns = _Py_atomic_load_uint64_relaxed(&STATE->late_ns);
    uint64_t until_ns = _PySampling_DeadlinesUntil(
        Py_MAX(tick_ns, now_ns - Py_MIN(now_ns, late_ns)));
    uint64_t from_ns = thread->account.counted_ns;
    if (until_ns <= from_ns) {
        return 0;
    }
    thread->account.counted_ns = until_ns;
    return until_ns - from_ns;
}

/* The sampler thread is about to send the signal, or has: then leaving the
   kernel delivers it, unless the thread blocks it or somebody has taken it
   over meanwhile. */
static void
await_signal(_PySampling_Thread *thread)
{
    for (int i = 0; i < MAX_YIELDS; i++) {
        if (_Py_atomic_load_int(&thread->signal_came)
            || _PySampling_ForkedWithoutHooks())
        {
            return;
        }
        sched_yield();
    }
    // Whoever sends it holds that.
    _PySampling_LockRegistry();
    _PySampling_UnlockRegistry();
    sched_yield();
    if (_Py_atomic_load_int(&thread->signal_came)) {
        return;
    }
    if (_PySampling_BlocksSignal(thread->tick.signal)) {
        (void)_PySampling_TakeBackSignal(thread, thread->tick.signal);
        _Py_atomic_store_int(&thread->mask, _PySampling_BLOCKS_SIGNAL);
    }
    _PySampling_COUNT(signals_unanswered, 1);
}

/* How long signals are on their way, on average. */
static void
see_flight(_PySampling_Thread *thread, uint64_t way_ns)
{
    if (way_ns < _PySampling_LATE_NS) {
        uint64_t usual_ns = thread->flight_ns != 0 ? thread->flight_ns : way_ns;
        thread->flight_ns = usual_ns - usual_ns / AVERAGE_FLIGHTS
                            + way_ns / AVERAGE_FLIGHTS;
    }
}

/* The run has ended at `end_ns`; the signal has come at `come_ns`, or 0: it was
   not sent. */
static void
put_off(_PySampling_Thread *thread, uint64_t end_ns, uint64_t come_ns)
{
    struct _sampling_overdue *overdue = &thread->overdue;
    if (come_ns != 0) {
        see_flight(thread, come_ns - thread->tick.at_ns);
    }
    if (overdue->after_ns == 0) {
        uint64_t at_ns = come_ns != 0
            ? come_ns : thread->tick.at_ns + thread->flight_ns;
        overdue->after_ns = Py_MIN(1 + at_ns - Py_MIN(at_ns, end_ns),
                                   _PySampling_LATE_NS);
    }
    overdue->span_ns +=
        _PySampling_RunTakeSpan(thread, thread->tick.at_ns, end_ns);
    _PySampling_COUNT(signals_overdue, 1);
}

/* If the thread ends, it has no next run: the tick's time stays, the sample is
   lost. */
int
_PySampling_RunEnd(_PySampling_Thread *thread)
{
    _Py_atomic_store_int(&thread->signal_came, 0);
    int word = _PySampling_RunSet(thread, _PySampling_INACTIVE);
    struct _sampling_overdue *overdue = &thread->overdue;
    int was_overdue = overdue->after_ns != 0;
    int is_met = word & (_PySampling_ASKED | _PySampling_SENDING);
    if (was_overdue || is_met) {
        uint64_t end_ns = _PySampling_WallNow();
        if (was_overdue) {      // and is still, unless it is due by now
            overdue->after_ns =
                1 + overdue->at_ns - Py_MIN(overdue->at_ns, end_ns);
        }
        if (word & _PySampling_SENDING) {
            await_signal(thread);
        }
        if (is_met && !(word & _PySampling_NOTED)) {
            put_off(thread, end_ns, word & _PySampling_SENDING
                                    ? _PySampling_WallNow() : 0);
        }
    }
    return word;
}

void
_PySampling_RunBegin(_PySampling_Thread *thread, int flags)
{
    if (thread->mask != _PySampling_TAKES_SIGNAL) {
        _PySampling_ReadMask(thread);
    }
    if (thread->overdue.after_ns != 0
        && _PySampling_STANDS_STILL(_PySampling_PAUSES()))
    {
        // It would be due when time goes on, somewhere else.
        thread->overdue.at_ns = 0;
        (void)_PySampling_RunTakeOverdue(thread, 0);
    }
    if (thread->overdue.after_ns != 0) {
        thread->overdue.at_ns =
            _PySampling_WallNow() + thread->overdue.after_ns;
        _Py_set_eval_breaker_bit(thread->tstate, _PY_SAMPLING_BIT);
        flags |= _PySampling_PENDING;
    }
    (void)_PySampling_RunSet(thread, _PySampling_RUNS | flags);
}

int
_PySampling_RunTakeOverdue(_PySampling_Thread *thread, uint64_t now_ns)
{
    struct _sampling_overdue *overdue = &thread->overdue;
    if (overdue->after_ns == 0 || now_ns < overdue->at_ns) {
        return 0;
    }
    _PySampling_AddTime(&thread->span, (struct _sampling_time){
        overdue->span_ns, overdue->span_ns});
    *overdue = (struct _sampling_overdue){0};
    return 1;
}

/* The thread has come to a safepoint: only for a tick that is not due yet?
   What safepoints take of the run is none of it: the clock is read twice, and
   that is all they do. */
int
_PySampling_RunAwaitsOverdue(_PySampling_Thread *thread)
{
    struct _sampling_overdue *overdue = &thread->overdue;
    if (overdue->after_ns == 0
        || (_PySampling_WORD(thread) & _PySampling_FLAGS) != _PySampling_PENDING)
    {
        return 0;
    }
    uint64_t came_ns = _PySampling_WallNow();
    if (came_ns >= overdue->at_ns) {
        return 0;
    }
    overdue->at_ns += 2 * (_PySampling_WallNow() - came_ns);
    return 1;
}

/* The tick that has noted it may be at work still: it takes it off its list
   before anybody looks who has returned. */
void
_PySampling_RunReturned(_PySampling_Thread *thread)
{
    _PySampling_Thread *first = _Py_atomic_load_ptr(&STATE->returned);
    do {
        thread->next_returned = first;
    } while (!_Py_atomic_compare_exchange_ptr(&STATE->returned, &first, thread));
    _PySampling_ClockWake();
}

void
_PySampling_RunCheckMask(_PySampling_Thread *thread)
{
    if (thread->mask == _PySampling_BLOCKS_SIGNAL) {
        _PySampling_ReadMask(thread);
    }
    if (!(_PySampling_WORD(thread) & _PySampling_SENDING)) {
        return;
    }
    // If the signal comes meanwhile, that is of the next tick, maybe.
    uint64_t at_ns = _Py_atomic_load_uint64_relaxed(&thread->tick.at_ns);
    int blocks = _PySampling_BlocksSignal(thread->tick.signal);
    if (!blocks && _PySampling_WallNow() - at_ns < _PySampling_ANSWER_NS)
    {
        return;
    }
    // It has been sent by then; or another handler has it.
    _PySampling_LockRegistry();
    _PySampling_UnlockRegistry();
    if (blocks) {
        (void)_PySampling_TakeBackSignal(thread, thread->tick.signal);
        _Py_atomic_store_int(&thread->mask, _PySampling_BLOCKS_SIGNAL);
    }
    if (_Py_atomic_and_uint64(&thread->word, ~(uint64_t)_PySampling_SENDING)
        & _PySampling_SENDING)
    {
        _PySampling_COUNT(signals_unanswered, 1);
    }
}
