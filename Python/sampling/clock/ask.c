/* Sampling profiler: asking a thread to capture itself.

   Owns what the sampler thread does to the thread that holds a GIL, and what
   that thread does when it gives the GIL up.  Must not know when it is asked
   (clock/clock.c), how a signal is come by (clock/signal.c) or how the kernel
   is asked what a thread does (clock/probe.c).

   Asking is a small protocol, so that no signal ends a system call:

     clock                              thread
     asked = ASKING
     (fence)                            running = NULL        about to detach
     running still this thread?         (fence)
       no:  asked = NOT_ASKED           wait while asked == ASKING, for 1 ms at
       yes: does it sleep?              most: then it takes the question back
            asked = SENDING if ASKING   wait while asked == SENDING
            tgkill()  ----------------> handler: capture; asked = NOT_ASKED
            asked = ASKED if SENDING    asked == ASKED: it blocks the signal,
                                        so it takes it out of its queue

   A thread that blocks the signal is not sent it.  Only the thread itself can
   read its mask, so it says what it finds (`mask`): at the beginning of its
   first run, when Python code has changed the mask, when a signal is not
   answered for long, and, as long as it blocks the signal, at each run and
   each note.  C code may block it unseen: then one signal stays unanswered.

   Either the clock sees that the thread is leaving, or the thread sees that
   a signal is on its way and waits for it, which takes microseconds.

   A thread that holds the GIL while it sleeps in a system call would be woken
   too early.  So the clock first checks whether the thread is asleep or likely
   to be so at once: then it only leaves a note, which the thread finds at its
   next safepoint. */

#include "Python.h"

#include "pycore_ceval.h"             // _Py_set_eval_breaker_bit()
#include "pycore_interp.h"            // PyInterpreterState.sampling
#include "pycore_runtime.h"           // _PyRuntime

#include "../native/native.h"         // _PySampling_ReadSleeper()
#include "inside.h"

#include <errno.h>
#include <sched.h>                    // sched_yield()
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define STATE (&_PyRuntime.sampling)

/* A check stands for a period for each deadline that is over, but for no more
   than this, unless the thread has run for longer: the process may have been
   stopped, or the machine asleep. */
#define MAX_SPAN_PERIODS 2

/* Checks that stand for this much time have to find running threads awake, one
   after the other. */
#define TRIAL_NS 500000000

/* A thread that gives the GIL up waits for the clock no longer than this.  It
   takes microseconds if that has a CPU. */
#define MAX_ASKING_NS 1000000

/* A thread that waits for the clock yields so often, and then sleeps. */
#define MAX_YIELDS 20
#define YIELD_SLEEP_NS 20000


static void
leave_note(_PySampling_Thread *thread, uint64_t wall_ns, int asleep)
{
    if (asleep) {
        (void)_Py_atomic_add_int(&thread->note_asleep, 1);
    }
    _Py_atomic_store_uint64_relaxed(&thread->note_wall_ns, wall_ns);
    // The thread state lives: ThreadEnd needs the lock the caller holds.
    _Py_set_eval_breaker_bit(thread->tstate, _PY_SAMPLING_BIT);
    _PySampling_COUNT(ticks_noted, 1);
}

/* No signal can reach the thread, or none may. */
static void
leave_note_instead(_PySampling_Thread *thread, uint64_t wall_ns)
{
    leave_note(thread, wall_ns, 0);
    _PySampling_COUNT(ticks_no_signal, 1);
}

/* The thread waits from here on if it wants to give the GIL up, so that the
   tick is its own however short it runs.  Returns 0 if it is gone already.

   Sequentially consistent, as are the two of a thread that ends its run
   (hooks.c): one of both sides sees the other. */
static int
begin_asking(struct _sampling_interpreter_state *interp,
             _PySampling_Thread *thread)
{
    _Py_atomic_store_int(&thread->asked, _PySampling_ASKING);
    if (_Py_atomic_load_ptr(&interp->running) == thread) {
        return 1;
    }
    _Py_atomic_store_int(&thread->asked, _PySampling_NOT_ASKED);
    return 0;
}

static void
end_asking(_PySampling_Thread *thread)
{
    _Py_atomic_store_int(&thread->asked, _PySampling_NOT_ASKED);
}

/* The kernel did not take the signal.  A sandbox may forbid it, once and for
   all; of real-time signals no more can be pending than RLIMIT_SIGPENDING
   says. */
static void
take_refusal(struct _sampling_asking *asking, _PySampling_Thread *thread,
             uint64_t met_ns, int err)
{
    if (err == ESRCH) {
        _PySampling_COUNT(signals_unanswered, 1);
        return;
    }
    asking->is_refused = err != EAGAIN;
    leave_note_instead(thread, met_ns);
    _PySampling_COUNT(ticks_refused, 1);
}

static void
send_signal(struct _sampling_asking *asking, _PySampling_Thread *thread,
            uint64_t tick_ns, uint64_t met_ns, uint64_t cpu_ns)
{
    int expected = _PySampling_ASKING;
    if (!_Py_atomic_compare_exchange_int(&thread->asked, &expected,
                                         _PySampling_SENDING))
    {
        return;         // taken back
    }
    _Py_atomic_store_uint64_relaxed(&thread->tick_wall_ns, tick_ns);
    _Py_atomic_store_uint64_relaxed(&thread->tick_cpu_ns, cpu_ns);
    thread->asked_ns = met_ns;
    thread->asked_signal = STATE->signal;
    _Py_atomic_store_uint64_relaxed(&thread->sent_ns, _PySampling_WallNow());
    if (syscall(SYS_tgkill, STATE->owner_pid, thread->native_id,
                thread->asked_signal) != 0)
    {
        take_refusal(asking, thread, met_ns, errno);
        end_asking(thread);
        return;
    }
    // Unless the handler has run already.
    expected = _PySampling_SENDING;
    _Py_atomic_compare_exchange_int(&thread->asked, &expected,
                                    _PySampling_ASKED);
    _PySampling_COUNT(signals_sent, 1);
}

/* The thread says at its next safepoint whether it blocks the signal.  If it
   does not, its handler has run by then. */
static void
ask_for_mask(_PySampling_Thread *thread)
{
    // The thread state lives: ThreadEnd needs the lock the caller holds.
    _Py_set_eval_breaker_bit(thread->tstate, _PY_SAMPLING_BIT);
}

/* What this check stands for is added to what the thread has not captured. */
static void
add_span(_PySampling_Thread *thread, uint64_t wall_ns,
         struct _sampling_time span, _PySampling_RunState found)
{
    uint64_t attached_ns =
        _Py_atomic_load_uint64_relaxed(&thread->attached_ns);
    uint64_t most_ns = MAX_SPAN_PERIODS * STATE->period_ns;
    if (wall_ns > attached_ns) {
        most_ns = Py_MAX(most_ns, wall_ns - attached_ns);
    }
    span.wall_ns = Py_MIN(span.wall_ns, most_ns);
    span.cpu_ns = Py_MIN(span.cpu_ns, most_ns);
    if (found == _PySampling_ASLEEP) {
        (void)_Py_atomic_add_uint64(&thread->asleep_span_ns, span.wall_ns);
        return;
    }
    if (found != _PySampling_ON_CPU && found != _PySampling_SLEEPY) {
        // A tick that finds it off its CPU says nothing about where CPU time
        // is burnt: kernels take the CPU away at places they prefer.
        span.cpu_ns = 0;
    }
    _PySampling_AddSpan(thread, span);
}

/* The last signal is unanswered: the thread waits for a CPU or is in the
   kernel, or it blocks the signal.  This tick is its next capture's. */
static void
tick_unanswered(_PySampling_Thread *thread, uint64_t met_ns)
{
    if (met_ns - thread->asked_ns >= _PySampling_ANSWER_NS) {
        ask_for_mask(thread);
    }
    _PySampling_COUNT(ticks_busy, 1);
}

/* The thread holds the GIL, and waits for the end of this if it wants to give
   it up.  What it captures is of the tick's moment; a note is of the one at
   which it was met, or it could be of an earlier run. */
static void
tick_asked(struct _sampling_asking *asking, _PySampling_Thread *thread,
           uint64_t tick_ns, uint64_t met_ns, uint64_t cpu_ns,
           _PySampling_RunState found)
{
    int mask = _Py_atomic_load_int(&thread->mask);
    int is_refused = asking->signal.is_gone || asking->is_refused;
    if (mask != _PySampling_TAKES_SIGNAL || is_refused
        || found == _PySampling_UNKNOWN)
    {
        leave_note_instead(thread, met_ns);
        _PySampling_COUNT(ticks_blocked, mask == _PySampling_BLOCKS_SIGNAL);
        _PySampling_COUNT(ticks_refused, is_refused);
        _PySampling_COUNT(ticks_unprobed, found == _PySampling_UNKNOWN);
        end_asking(thread);
    }
    else if (found == _PySampling_ASLEEP || found == _PySampling_SLEEPY) {
        leave_note(thread, met_ns, found == _PySampling_ASLEEP);
        end_asking(thread);
    }
    else {
        send_signal(asking, thread, tick_ns, met_ns, cpu_ns);
    }
}

/* Do threads have timers?  One that sleeps in a system call with the GIL held
   would be woken by its timer.  So they have when checks of running threads
   have found none asleep for a while, until a timer's signal meets one that
   is. */

/* While a thread of another GIL runs, timers could not be deleted. */
int
_PySampling_HasOneGIL(void)
{
    struct _sampling_interpreter_state *first = STATE->interpreters;
    for (struct _sampling_interpreter_state *s = first;
         s != NULL; s = s->next)
    {
        if (_Py_atomic_load_ptr_acquire(&s->gil)
            != _Py_atomic_load_ptr_acquire(&first->gil))
        {
            return 0;
        }
    }
    return 1;
}

/* A check that stands for `time_ns` has found a running thread awake, or
   not. */
static void
try_timers(int is_awake, uint64_t time_ns)
{
    uint64_t trial_ns =
        is_awake
        ? _Py_atomic_load_uint64_relaxed(&STATE->trial_ns) + time_ns : 0;
    _Py_atomic_store_uint64_relaxed(&STATE->trial_ns, trial_ns);
    if (trial_ns >= TRIAL_NS
        && !_Py_atomic_load_int_relaxed(&STATE->has_no_timers)
        && _PySampling_SEES_CALLS && _PySampling_HasOneGIL()
        && !_Py_atomic_exchange_int(&STATE->uses_timers, 1))
    {
        _PySampling_COUNT(timers_begun, 1);
    }
}

void
_PySampling_TimersEnd(int for_good)
{
    if (for_good) {
        _Py_atomic_store_int_relaxed(&STATE->has_no_timers, 1);
    }
    _Py_atomic_store_uint64_relaxed(&STATE->trial_ns, 0);
    if (_Py_atomic_exchange_int(&STATE->uses_timers, 0)) {
        _PySampling_COUNT(timers_ended, 1);
    }
}

void
_PySampling_TimersStart(void)
{
    STATE->uses_timers = 0;
    STATE->trial_ns = 0;
    STATE->has_no_timers = STATE->options.manual;
    STATE->last_run_ns = 0;
    STATE->runs_apart_ns = 0;
}


/* Checks. */

/* Names what the thread sleeps in, if it sleeps on while its stack is read. */
static void
see_sleeper(_PySampling_Thread *thread, uint64_t cpu_ns)
{
    _Py_atomic_store_ptr_relaxed(&thread->sleeper.frame, NULL);
    // Pairs with the acquire fence in _PySampling_SleeperNode().
    _Py_atomic_fence_release();
    struct _PyInterpreterFrame *frame =
        _PySampling_ReadSleeper(thread->tstate, &thread->sleeper);
    if (frame != NULL && _PySampling_CpuNow(thread) == cpu_ns) {
        _Py_atomic_store_ptr_release(&thread->sleeper.frame, frame);
    }
}

int
_PySampling_IsTimed(_PySampling_Thread *thread, uint64_t wall_ns)
{
    if (!_Py_atomic_load_int_relaxed(&thread->is_timed)) {
        return 0;
    }
    uint64_t deadline_ns =
        _Py_atomic_load_uint64_relaxed(&thread->timer_deadline_ns);
    if (deadline_ns != 0 && wall_ns >= deadline_ns + _PySampling_ANSWER_NS) {
        ask_for_mask(thread);
    }
    return 1;
}

/* A check of the interpreter's running thread. */
_PySampling_Found
_PySampling_Ask(struct _sampling_asking *asking,
                 struct _sampling_interpreter_state *interp,
                 uint64_t wall_ns, struct _sampling_time span)
{
    _PySampling_Thread *thread = _Py_atomic_load_ptr_acquire(&interp->running);
    if (thread != NULL && _PySampling_IsTimed(thread, wall_ns)) {
        return _PySampling_FOUND_TIMED;
    }
    int is_answered = thread != NULL
        && _Py_atomic_load_int_acquire(&thread->asked)
           == _PySampling_NOT_ASKED;
    if (thread == NULL || (is_answered && !begin_asking(interp, thread))) {
        _PySampling_COUNT(ticks_idle, 1);
        return _PySampling_FOUND_NOBODY;
    }
    // It was still there after the tick.  Were the moment of that what counts,
    // runs would lose what lies between.
    uint64_t met_ns = _PySampling_WallNow();
    if (_Py_atomic_load_ptr(&interp->running) != thread) {
        // It wants to give the GIL up: maybe its run was over before that.
        met_ns = wall_ns;
    }
    if (met_ns < _Py_atomic_load_uint64_relaxed(&thread->attached_ns)) {
        if (is_answered) {
            end_asking(thread);
        }
        _PySampling_COUNT(ticks_idle, 1);
        return _PySampling_FOUND_NOBODY;
    }
    uint64_t cpu_ns = _PySampling_CpuNow(thread);
    _PySampling_RunState found =
        _PySampling_ProbeThread(thread, &asking->proc, met_ns, cpu_ns);
    if (found != _PySampling_SLEEPY) {
        // Maybe it slept, but a virtual machine that gets no CPU of its host
        // looks like that as well.
        try_timers(
            found == _PySampling_ON_CPU || found == _PySampling_OFF_CPU,
            Py_MIN(span.wall_ns, MAX_SPAN_PERIODS * STATE->period_ns));
    }
    if (found == _PySampling_ASLEEP
        && (_Py_atomic_load_uint64_relaxed(&thread->note_wall_ns) == 0
            || _Py_atomic_load_ptr_relaxed(&thread->sleeper.frame) == NULL))
    {
        see_sleeper(thread, cpu_ns);
    }
    add_span(thread, met_ns, span, found);
    if (is_answered) {
        tick_asked(asking, thread, wall_ns, met_ns, cpu_ns, found);
    }
    else {
        tick_unanswered(thread, met_ns);
    }
    return _PySampling_FOUND_ASKED;
}

/* The thread's side. */

/* To a thread of a real-time policy, yielding is not to let one of lower
   priority have the CPU, which the clock's may be. */
static void
let_clock_go_on(int num_tries)
{
    if (num_tries < MAX_YIELDS) {
        sched_yield();
    }
    else {
        nanosleep(&(struct timespec){.tv_nsec = YIELD_SLEEP_NS}, NULL);
    }
}

/* The clock asks the kernel, by a few short calls.  If that takes too long, it
   has no CPU, and the question is taken back. */
static int
await_question(_PySampling_Thread *thread)
{
    uint64_t from_ns = _PySampling_MonotonicNow();
    int asked = _Py_atomic_load_int(&thread->asked);
    for (int i = 0; (asked == _PySampling_ASKING
                     || asked == _PySampling_SENDING)
                    && !_PySampling_ForkedWithoutHooks(); i++)
    {
        let_clock_go_on(i);
        asked = _Py_atomic_load_int(&thread->asked);
        if (asked == _PySampling_ASKING
            && _PySampling_MonotonicNow() - from_ns > MAX_ASKING_NS
            && _Py_atomic_compare_exchange_int(&thread->asked, &asked,
                                               _PySampling_NOT_ASKED))
        {
            _PySampling_COUNT(ticks_withdrawn, 1);
            return _PySampling_NOT_ASKED;
        }
    }
    return asked;
}

/* The signal is in the thread's queue: a thread that blocks it takes it
   back. */
static void
take_back_question(_PySampling_Thread *thread)
{
    (void)_PySampling_TakeBackSignal(thread, thread->asked_signal);
    if (_PySampling_BlocksSignal(thread->asked_signal)) {
        _Py_atomic_store_int(&thread->mask, _PySampling_BLOCKS_SIGNAL);
    }
    _PySampling_COUNT(signals_unanswered, 1);
    end_asking(thread);
}

void
_PySampling_AwaitAnswer(_PySampling_Thread *thread)
{
    if (_Py_atomic_load_int(&thread->asked) == _PySampling_NOT_ASKED
        || await_question(thread) == _PySampling_NOT_ASKED)
    {
        return;
    }
    // Leaving the kernel delivers the signal.
    sched_yield();
    if (_Py_atomic_load_int(&thread->asked) != _PySampling_NOT_ASKED) {
        take_back_question(thread);
    }
}

/* Is the question pending because the thread blocks its signal?  A note has
   the tick. */
void
_PySampling_TakeBackIfBlocked(_PySampling_Thread *thread)
{
    if (_Py_atomic_load_int(&thread->asked) == _PySampling_ASKED
        && _PySampling_BlocksSignal(thread->asked_signal))
    {
        leave_note_instead(
            thread, _Py_atomic_load_uint64_relaxed(&thread->tick_wall_ns));
        _PySampling_COUNT(ticks_blocked, 1);
        take_back_question(thread);
    }
}
