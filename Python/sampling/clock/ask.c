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
       no:  asked = NOT_ASKED           wait while asked == ASKING
       yes: does it sleep?
            tgkill()  ----------------> handler: capture; asked = NOT_ASKED
            asked = ASKED if not yet    asked == ASKED: it blocks the signal,
                                        so it takes it out of its queue

   Either the clock sees that the thread is leaving, or the thread sees that
   a signal is on its way and waits for it, which takes microseconds.

   A thread that holds the GIL while it sleeps in a system call would be woken
   too early.  So the clock first looks whether the thread is asleep or likely
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

/* A look stands for a period for each deadline that is over, but for no more
   than this, unless the thread has run for longer: the process may have been
   stopped, or the machine asleep. */
#define MAX_SPAN_PERIODS 2

/* A thread that left a signal unanswered gets that many notes before the next
   one is tried. */
#define DEAF_TICKS 500

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
    _PySampling_COUNT(ticks_unheard, 1);
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
}

static void
send_signal(struct _sampling_asking *asking, _PySampling_Thread *thread,
            uint64_t tick_ns, uint64_t met_ns, uint64_t cpu_ns)
{
    _Py_atomic_store_uint64_relaxed(&thread->tick_wall_ns, tick_ns);
    _Py_atomic_store_uint64_relaxed(&thread->tick_cpu_ns, cpu_ns);
    thread->asked_ns = met_ns;
    thread->asked_cpu_ns = cpu_ns;
    thread->asked_signal = STATE->signal;
    thread->sent_ns = _PySampling_WallNow();
    if (syscall(SYS_tgkill, STATE->owner_pid, thread->native_id,
                thread->asked_signal) != 0)
    {
        take_refusal(asking, thread, met_ns, errno);
        end_asking(thread);
        return;
    }
    // Unless the handler has run already.
    int expected = _PySampling_ASKING;
    _Py_atomic_compare_exchange_int(&thread->asked, &expected,
                                    _PySampling_ASKED);
    _PySampling_COUNT(signals_sent, 1);
}

/* The handler of the last signal has not run.  Is that because the thread
   blocks the signal?  Not as long as it gets no CPU time either; and the kernel
   may keep it for long, as it gives memory back. */
static int
is_deaf(const struct _sampling_asking *asking, _PySampling_Thread *thread,
        uint64_t met_ns, uint64_t cpu_ns)
{
    return met_ns - thread->asked_ns >= _PySampling_ANSWER_NS
        && cpu_ns - thread->asked_cpu_ns >= _PySampling_ANSWER_NS / 2
        && _PySampling_ThreadBlocks(thread, &asking->proc,
                                    thread->asked_signal);
}

/* The thread blocks the signal. */
static void
take_for_deaf(_PySampling_Thread *thread)
{
    _Py_atomic_store_int_relaxed(&thread->deaf_ticks, DEAF_TICKS);
    _PySampling_COUNT(signals_unanswered, 1);
}

/* What this look stands for is added to what the thread has not captured. */
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
   kernel, or it blocks the signal.  Then it gets a note instead. */
static void
tick_unanswered(const struct _sampling_asking *asking,
                _PySampling_Thread *thread, uint64_t met_ns, uint64_t cpu_ns)
{
    if (_Py_atomic_load_int_relaxed(&thread->deaf_ticks) == 0) {
        if (!is_deaf(asking, thread, met_ns, cpu_ns)) {
            _PySampling_COUNT(ticks_busy, 1);
            return;
        }
        // The signal stays in the thread's queue: it takes it out when it
        // detaches, or answers it when it unblocks it.
        take_for_deaf(thread);
    }
    leave_note_instead(thread, met_ns);
}

/* The thread holds the GIL, and waits for the end of this if it wants to give
   it up.  What it captures is of the tick's moment; a note is of the one at
   which it was met, or it could be of an earlier run. */
static void
tick_asked(struct _sampling_asking *asking, _PySampling_Thread *thread,
           uint64_t tick_ns, uint64_t met_ns, uint64_t cpu_ns,
           _PySampling_RunState found)
{
    if (_Py_atomic_load_int_relaxed(&thread->deaf_ticks) > 0
        || asking->signal.is_gone || asking->is_refused
        || found == _PySampling_UNKNOWN)
    {
        leave_note_instead(thread, met_ns);
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
_PySampling_IsTimed(const struct _sampling_asking *asking,
                    _PySampling_Thread *thread, uint64_t wall_ns)
{
    return _Py_atomic_load_int_relaxed(&thread->is_timed)
        && (!_PySampling_TimerIsUnheard(thread, wall_ns)
            || !_PySampling_ThreadBlocks(thread, &asking->proc,
                                         STATE->signal));
}

/* A look at the interpreter's running thread. */
_PySampling_Found
_PySampling_Ask(struct _sampling_asking *asking,
                 struct _sampling_interpreter_state *interp,
                 uint64_t wall_ns, struct _sampling_time span)
{
    _PySampling_Thread *thread = _Py_atomic_load_ptr_acquire(&interp->running);
    if (thread != NULL && _PySampling_IsTimed(asking, thread, wall_ns)) {
        return _PySampling_FOUND_TIMED;
    }
    if (thread != NULL && _PySampling_TimerGiveUp(thread, wall_ns)) {
        take_for_deaf(thread);
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
    int num_ticks = _PySampling_OwnTicksAt(thread, met_ns);
    if (num_ticks == 0) {
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
        _PySampling_TimerTrial(
            found == _PySampling_ON_CPU || found == _PySampling_OFF_CPU,
            Py_MIN(span.wall_ns, MAX_SPAN_PERIODS * STATE->period_ns));
    }
    if (found == _PySampling_ASLEEP
        && (_Py_atomic_load_uint64_relaxed(&thread->note_wall_ns) == 0
            || _Py_atomic_load_ptr_relaxed(&thread->sleeper.frame) == NULL))
    {
        see_sleeper(thread, cpu_ns);
    }
    if (found == _PySampling_ASLEEP || found == _PySampling_OFF_CPU) {
        // Else, as far as is known, the sampler thread has moved it aside, and
        // has found it where it was at its own deadline: one moment of the
        // run.
        span.wall_ns *= num_ticks;
    }
    add_span(thread, met_ns, span, found);
    if (is_answered) {
        tick_asked(asking, thread, wall_ns, met_ns, cpu_ns, found);
    }
    else {
        tick_unanswered(asking, thread, met_ns, cpu_ns);
    }
    int deaf_ticks = _Py_atomic_load_int_relaxed(&thread->deaf_ticks);
    if (deaf_ticks > 0) {
        _Py_atomic_store_int_relaxed(&thread->deaf_ticks, deaf_ticks - 1);
    }
    return _PySampling_FOUND_ASKED;
}

/* Does the calling thread block the signal?  One that has not come may be late,
   too: timers of a virtual machine are that gets no CPU of its host. */
static int
blocks(int signum)
{
    sigset_t blocked;
    return pthread_sigmask(SIG_BLOCK, NULL, &blocked) == 0
        && sigismember(&blocked, signum) == 1;
}

/* Takes back the signal that was sent to this thread, which blocks it.  The
   clock may have moved to another one since, because C code has installed a
   handler of its own: that handler must not get ours.  One that somebody else
   has sent is put back as it was.  Returns 0 if none of ours waited. */
static int
take_back_signal(_PySampling_Thread *thread, int signum)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signum);
    struct timespec now = {0, 0};
    siginfo_t info;
    // Not sigtimedwait(): glibc's reports SI_TKILL as SI_USER.
    if (syscall(SYS_rt_sigtimedwait, &set, &info, &now, _NSIG / 8)
            != signum)
    {
        return 0;
    }
    if (_PySampling_IsFromClock(&info)) {
        return 1;
    }
    syscall(SYS_rt_tgsigqueueinfo, STATE->owner_pid, thread->native_id,
            signum, &info);
    return 0;
}

/* One of each timer, before they are cleared: the kernel drops them with the
   timer, or has them wait on, as it is newer or older than Linux 6.13. */
static void
take_back_timers_signals(_PySampling_Thread *thread)
{
    while (take_back_signal(thread, thread->timer_signal)) {
        _PySampling_COUNT(signals_sent, 1);
        take_for_deaf(thread);
    }
}

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

static void
await_answer(_PySampling_Thread *thread)
{
    int asked = _Py_atomic_load_int(&thread->asked);
    if (asked == _PySampling_NOT_ASKED) {
        return;
    }
    for (int i = 0; asked == _PySampling_ASKING
                    && !_PySampling_ForkedWithoutHooks(); i++)
    {
        // The clock asks the kernel, by a few short calls, or sends already.
        let_clock_go_on(i);
        asked = _Py_atomic_load_int(&thread->asked);
    }
    if (asked == _PySampling_NOT_ASKED) {
        return;
    }
    // The signal is in the kernel's queue.  Leaving the kernel delivers it.
    sched_yield();
    if (_Py_atomic_load_int(&thread->asked) != _PySampling_NOT_ASKED) {
        (void)take_back_signal(thread, thread->asked_signal);
        if (blocks(thread->asked_signal)) {
            take_for_deaf(thread);
        }
        else {
            _PySampling_COUNT(signals_unanswered, 1);
        }
        _Py_atomic_store_int(&thread->asked, _PySampling_NOT_ASKED);
    }
}

/* On the thread, which has made itself invisible to the clock: returns when
   no signal is on its way to it. */
void
_PySampling_AwaitSignal(_PySampling_Thread *thread)
{
    thread->run_end_ns = _PySampling_WallNow();
    thread->drained_ns = 0;
    thread->is_leaving = 1;
    _PySampling_FENCE();
    if (_PySampling_TimerIsLate(thread) && blocks(thread->timer_signal)) {
        take_back_timers_signals(thread);
    }
    _PySampling_TimerEnd(thread);
    await_answer(thread);
    _PySampling_FENCE();
    thread->is_leaving = 0;
}
