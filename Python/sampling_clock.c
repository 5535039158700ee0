/* Sampling profiler: WHEN to sample.

   Owns the sampler thread, its deadlines, and the choice of whom to ask.  Must
   not know frames, stacks or tables, how a signal is come by
   (sampling_signal.c) or how the kernel is asked what a thread does
   (sampling_asleep.c).

   The sampler thread is no Python thread: it has no thread state, takes no
   GIL and allocates nothing through Python.  At each tick it looks, for every
   interpreter, at who holds the GIL, and asks that thread by a signal to
   capture itself.  Threads without the GIL are never disturbed: their stacks
   stand still, and they account for themselves when they attach.

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
   next safepoint.

   A thread that has set a timer of its own (sampling_timer.c) is not asked.
   When nobody else holds a GIL for some looks, the clock rests: it costs a
   program that waits nothing.  A thread that attaches without a timer wakes
   it: its deadlines were there all the while, so that no run is favoured.  While there are timers it only watches. */

#include "Python.h"

#include "pycore_ceval.h"             // _Py_set_eval_breaker_bit()
#include "pycore_interp.h"            // PyInterpreterState.sampling
#include "pycore_runtime.h"           // _PyRuntime
#include "pycore_sampling_callee.h"   // _PySampling_ReadSleeper()
#include "pycore_sampling_clock.h"
#include "pycore_sampling_parts.h"

#ifdef _PySampling_SUPPORTED

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>                    // sched_yield()
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define STATE (&_PyRuntime.sampling)

/* A look stands for a period for each deadline that is over, but for no more
   than this, unless the thread has run for longer: the process may have been
   stopped, or the machine asleep. */
#define MAX_SPAN_PERIODS 2

/* After that many looks in a row with nobody who held a GIL at any of them or
   between, the clock rests.  Threads that wait for shorter need not wake it. */
#define IDLE_LOOKS 4

/* As often the clock looks whether threads answer the signals of their own
   timers. */
#define WATCH_NS 50000000

/* A thread that left a signal unanswered gets that many notes before the next
   one is tried. */
#define DEAF_TICKS 500

/* The shortest slice that Linux gives. */
#define SLICE_NS 100000

/* The sampler thread's stack: its deepest call is snprintf(). */
#define STACK_BYTES (128 * 1024)

/* 32-bit systems have a call of its own for times of 64 bits. */
#ifdef SYS_futex_time64
#  define FUTEX \
    (sizeof(time_t) > sizeof(long) ? SYS_futex_time64 : SYS_futex)
#else
#  define FUTEX SYS_futex
#endif

struct _sampling_clock {
    pthread_t thread;
    // What it is told.  Written before clock_wakeups rises, read after.
    int stop;
    int is_paused;              // no ticks until it is told to resume
    int is_changed;             // paused or the period
    // Owner: the sampler thread.
    uint64_t deadline_ns;
    int idle_looks;             // in a row
    int is_refused;             // the system lets no signal be sent
    struct _sampling_proc proc;
    struct _sampling_signal signal;
};


/* Asking. */

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

   Sequentially consistent, as are the two of a thread that settles
   (sampling_hooks.c): one of both sides sees the other. */
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
take_refusal(struct _sampling_clock *clock, _PySampling_Thread *thread,
             uint64_t wall_ns, int err)
{
    if (err == ESRCH) {
        _PySampling_COUNT(signals_unanswered, 1);
        return;
    }
    clock->is_refused = err != EAGAIN;
    leave_note_instead(thread, wall_ns);
}

static void
send_signal(struct _sampling_clock *clock, _PySampling_Thread *thread,
            uint64_t wall_ns, uint64_t cpu_ns)
{
    _Py_atomic_store_uint64_relaxed(&thread->tick_wall_ns, wall_ns);
    _Py_atomic_store_uint64_relaxed(&thread->tick_cpu_ns, cpu_ns);
    thread->asked_ns = wall_ns;
    thread->asked_cpu_ns = cpu_ns;
    if (syscall(SYS_tgkill, STATE->owner_pid, thread->native_id,
                STATE->signal) != 0)
    {
        take_refusal(clock, thread, wall_ns, errno);
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
   blocks the signal?  Not as long as it gets no CPU time either. */
static int
is_deaf(_PySampling_Thread *thread, uint64_t wall_ns, uint64_t cpu_ns)
{
    return wall_ns - thread->asked_ns >= _PySampling_ANSWER_NS
        && cpu_ns - thread->asked_cpu_ns >= _PySampling_ANSWER_NS / 2;
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
         struct _sampling_time span, _PySampling_Wakefulness found)
{
    uint64_t attached_ns =
        _Py_atomic_load_uint64_relaxed(&thread->attached_ns);
    uint64_t most_ns = MAX_SPAN_PERIODS * STATE->period_ns;
    if (wall_ns > attached_ns) {
        most_ns = Py_MAX(most_ns, wall_ns - attached_ns);
    }
    uint64_t *span_ns = found == _PySampling_ASLEEP
        ? &thread->asleep_span_ns : &thread->span.wall_ns;
    (void)_Py_atomic_add_uint64(span_ns, Py_MIN(span.wall_ns, most_ns));
    // A tick that finds it off its CPU says nothing about where CPU time is
    // burnt: kernels take the CPU away at places they prefer.
    if (found == _PySampling_ON_CPU || found == _PySampling_SLEEPY) {
        (void)_Py_atomic_add_uint64(&thread->span.cpu_ns,
                                    Py_MIN(span.cpu_ns, most_ns));
    }
}

/* The last signal is unanswered: the thread waits for a CPU or is in the
   kernel, or it blocks the signal.  Then it gets a note instead. */
static void
tick_unanswered(_PySampling_Thread *thread, uint64_t wall_ns, uint64_t cpu_ns)
{
    if (_Py_atomic_load_int_relaxed(&thread->deaf_ticks) == 0) {
        if (!is_deaf(thread, wall_ns, cpu_ns)) {
            _PySampling_COUNT(ticks_busy, 1);
            return;
        }
        // The signal stays in the thread's queue: it takes it out when it
        // detaches, or answers it when it unblocks it.
        take_for_deaf(thread);
    }
    leave_note_instead(thread, wall_ns);
}

/* The thread holds the GIL, and waits for the end of this if it wants to give
   it up. */
static void
tick_asked(struct _sampling_clock *clock, _PySampling_Thread *thread,
           uint64_t wall_ns, uint64_t cpu_ns, _PySampling_Wakefulness found)
{
    if (_Py_atomic_load_int_relaxed(&thread->deaf_ticks) > 0
        || clock->signal.is_gone || clock->is_refused
        || found == _PySampling_UNKNOWN)
    {
        leave_note_instead(thread, wall_ns);
        end_asking(thread);
    }
    else if (found == _PySampling_ASLEEP || found == _PySampling_SLEEPY) {
        leave_note(thread, wall_ns, found == _PySampling_ASLEEP);
        end_asking(thread);
    }
    else {
        send_signal(clock, thread, wall_ns, cpu_ns);
    }
}

/* Names what the thread sleeps in, if it sleeps on while its stack is read. */
static void
see_sleeper(_PySampling_Thread *thread, uint64_t cpu_ns)
{
    _Py_atomic_store_ptr_relaxed(&thread->sleeper.frame, NULL);
    struct _PyInterpreterFrame *frame =
        _PySampling_ReadSleeper(thread->tstate, &thread->sleeper);
    if (frame != NULL && _PySampling_CpuNow(thread) == cpu_ns) {
        _Py_atomic_store_ptr_release(&thread->sleeper.frame, frame);
    }
}

typedef enum {
    NOBODY,
    TIMED,                      // a thread that asks itself
    ASKED,
} Found;

static int
is_timed(_PySampling_Thread *thread, uint64_t wall_ns)
{
    return _Py_atomic_load_int_relaxed(&thread->is_timed)
        && !_PySampling_TimerIsUnheard(thread, wall_ns);
}

/* A look at the interpreter's running thread. */
static Found
tick_interpreter(struct _sampling_clock *clock,
                 struct _sampling_interpreter_state *interp,
                 uint64_t wall_ns, struct _sampling_time span)
{
    _PySampling_Thread *thread = _Py_atomic_load_ptr_acquire(&interp->running);
    if (thread != NULL && is_timed(thread, wall_ns)) {
        return TIMED;
    }
    if (thread != NULL && _PySampling_TimerGiveUp(thread)) {
        take_for_deaf(thread);
    }
    int is_answered = thread != NULL
        && _Py_atomic_load_int_acquire(&thread->asked)
           == _PySampling_NOT_ASKED;
    if (thread == NULL || (is_answered && !begin_asking(interp, thread))) {
        _PySampling_COUNT(ticks_idle, 1);
        return NOBODY;
    }
    uint64_t cpu_ns = _PySampling_CpuNow(thread);
    _PySampling_Wakefulness found =
        _PySampling_LookAt(thread, &clock->proc, wall_ns, cpu_ns);
    _PySampling_TimerTrial(
        found == _PySampling_ON_CPU || found == _PySampling_OFF_CPU,
        Py_MIN(span.wall_ns, MAX_SPAN_PERIODS * STATE->period_ns));
    if (found == _PySampling_ASLEEP
        && (_Py_atomic_load_uint64_relaxed(&thread->note_wall_ns) == 0
            || thread->sleeper.frame == NULL))
    {
        see_sleeper(thread, cpu_ns);
    }
    add_span(thread, wall_ns, span, found);
    if (is_answered) {
        tick_asked(clock, thread, wall_ns, cpu_ns, found);
    }
    else {
        tick_unanswered(thread, wall_ns, cpu_ns);
    }
    int deaf_ticks = _Py_atomic_load_int_relaxed(&thread->deaf_ticks);
    if (deaf_ticks > 0) {
        _Py_atomic_store_int_relaxed(&thread->deaf_ticks, deaf_ticks - 1);
    }
    return ASKED;
}

/* A look at all interpreters.  Returns whether a thread was found that needs
   looks.  Caller holds runtime->sampling.mutex. */
static int
tick(struct _sampling_clock *clock, uint64_t wall_ns,
     struct _sampling_time span)
{
    _PySampling_SignalKeep(&clock->signal);
    int num_asked = 0;
    int num_timed = 0;
    for (struct _sampling_interpreter_state *interp = STATE->interpreters;
         interp != NULL; interp = interp->next)
    {
        Found found = tick_interpreter(clock, interp, wall_ns, span);
        num_asked += found == ASKED;
        num_timed += found == TIMED;
    }
    if (num_timed == 0) {
        _PySampling_COUNT(ticks, 1);
    }
    return num_asked != 0;
}

/* Takes back the signal that this thread blocks.  One that somebody else has
   sent is put back as it was.  Returns 0 if none of ours waited. */
static int
take_back_signal(_PySampling_Thread *thread)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, STATE->signal);
    struct timespec now = {0, 0};
    siginfo_t info;
    // Not sigtimedwait(): glibc's reports SI_TKILL as SI_USER.
    if (syscall(SYS_rt_sigtimedwait, &set, &info, &now, _NSIG / 8)
            != STATE->signal)
    {
        return 0;
    }
    if (_PySampling_IsFromClock(&info)) {
        return 1;
    }
    syscall(SYS_rt_tgsigqueueinfo, STATE->owner_pid, thread->native_id,
            STATE->signal, &info);
    return 0;
}

static void
settle_question(_PySampling_Thread *thread)
{
    int asked = _Py_atomic_load_int(&thread->asked);
    if (asked == _PySampling_NOT_ASKED) {
        return;
    }
    uint64_t from_ns = _PySampling_MonotonicNow();
    while (asked == _PySampling_ASKING && !_PySampling_IsForkedUnheard()) {
        sched_yield();          // the clock is between two instructions
        thread->settling_ns = _PySampling_MonotonicNow() - from_ns;
        asked = _Py_atomic_load_int(&thread->asked);
    }
    if (asked == _PySampling_NOT_ASKED) {
        return;
    }
    // The signal is in the kernel's queue.  Leaving the kernel delivers it.
    sched_yield();
    if (_Py_atomic_load_int(&thread->asked) != _PySampling_NOT_ASKED) {
        (void)take_back_signal(thread);
        take_for_deaf(thread);
        _Py_atomic_store_int(&thread->asked, _PySampling_NOT_ASKED);
    }
}

/* On the thread, which has made itself invisible to the clock: returns when
   no signal is on its way to it. */
void
_PySampling_ClockSettle(_PySampling_Thread *thread)
{
    thread->settling_ns = 0;
    thread->is_settling = 1;
    _PySampling_FENCE();
    if (_PySampling_TimerEnd(thread) && take_back_signal(thread)) {
        _PySampling_COUNT(signals_sent, 1);
        take_for_deaf(thread);
    }
    settle_question(thread);
    _PySampling_FENCE();
    thread->is_settling = 0;
}


/* The sampler thread. */

/* Lets the sampler thread preempt whoever has its CPU when it wakes up: else
   it gets the CPU when the program blocks, and finds nobody running.  Linux
   6.12 and later do that for a thread with a short slice, which anyone may
   have; a real-time policy does it everywhere, where it is permitted.  For
   others, ticks_missed tells. */
static void
ask_for_prompt_wakeups(void)
{
    // struct sched_attr of the kernel, which the C library may not declare.
    struct {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime_ns, deadline_ns, period_ns;
    } attr = {.size = sizeof(attr)};
    if (syscall(SYS_sched_getattr, 0, &attr, sizeof(attr), 0) != 0
        || (attr.policy != SCHED_OTHER && attr.policy != SCHED_BATCH))
    {
        return;         // as the program was started
    }
    attr.runtime_ns = SLICE_NS;
    if (syscall(SYS_sched_setattr, 0, &attr, 0) == 0
        && syscall(SYS_sched_getattr, 0, &attr, sizeof(attr), 0) == 0
        && attr.runtime_ns == SLICE_NS)
    {
        return;
    }
    const struct sched_param lowest = {.sched_priority = 1};
    (void)sched_setscheduler(0, SCHED_FIFO, &lowest);
}

/* Waits until the deadline, or until the clock is told something.  0: no
   deadline. */
static void
wait_until(uint64_t deadline_ns, uint32_t seen_wakeups)
{
    struct timespec ts = {
        .tv_sec = (time_t)(deadline_ns / 1000000000u),
        .tv_nsec = (long)(deadline_ns % 1000000000u),
    };
    syscall(FUTEX, &STATE->clock_wakeups, FUTEX_WAIT_BITSET_PRIVATE,
            seen_wakeups, deadline_ns != 0 ? &ts : NULL, NULL,
            FUTEX_BITSET_MATCH_ANY);
}

static void
wake_up(void)
{
    (void)_Py_atomic_add_uint32(&STATE->clock_wakeups, 1);
    syscall(FUTEX, &STATE->clock_wakeups, FUTEX_WAKE_PRIVATE, 1, NULL,
            NULL, 0);
}

void
_PySampling_ClockWakeUp(void)
{
    // Written by others, too, if they hold other GILs: it is the same moment.
    _Py_atomic_store_uint64(&STATE->clock_woken_ns,
                            _PySampling_MonotonicNow());
    if (_Py_atomic_exchange_int(&STATE->clock_rests, 0)) {
        wake_up();
    }
}

static void
set_deadline(struct _sampling_clock *clock, uint64_t deadline_ns)
{
    clock->deadline_ns = deadline_ns;
    _Py_atomic_store_uint64_relaxed(&STATE->deadline_ns, deadline_ns);
}

/* What wakes the clock does not choose the moment of the next deadline. */
static void
begin_anew(struct _sampling_clock *clock, uint64_t from_ns)
{
    set_deadline(clock, _PySampling_DeadlineFrom(from_ns));
    clock->idle_looks = 0;
}

/* Ticks, unless the clock was told meanwhile to rest. */
static void
tick_locked(struct _sampling_clock *clock, uint64_t wall_ns,
            uint64_t span_ns)
{
    int is_needed = 0;
    PyMutex_LockFlags(&STATE->mutex, _Py_LOCK_DONT_DETACH);
    if (_PySampling_ACTIVE()) {
        is_needed = tick(clock, wall_ns, (struct _sampling_time){
            .wall_ns = span_ns, .cpu_ns = span_ns});
    }
    PyMutex_Unlock(&STATE->mutex);
    int is_idle = !is_needed
        && !_Py_atomic_exchange_int(&STATE->somebody_ran, 0);
    clock->idle_looks = is_idle ? clock->idle_looks + 1 : 0;
}

static void
look(struct _sampling_clock *clock, uint64_t now_ns)
{
    // A clock that gets its CPU late looks once for all that was due.
    uint64_t span_ns = _PySampling_DeadlineSpan(clock->deadline_ns, now_ns);
    // Before it looks: a run that ends after this is not one it has missed.
    set_deadline(clock, _PySampling_DeadlineFrom(now_ns + 1));
    tick_locked(clock, now_ns, span_ns);
}

static Found
who_runs(struct _sampling_clock *clock, uint64_t now_ns)
{
    Found found = NOBODY;
    PyMutex_LockFlags(&STATE->mutex, _Py_LOCK_DONT_DETACH);
    _PySampling_SignalKeep(&clock->signal);
    for (struct _sampling_interpreter_state *interp = STATE->interpreters;
         interp != NULL && found != ASKED; interp = interp->next)
    {
        _PySampling_Thread *thread = _Py_atomic_load_ptr(&interp->running);
        if (thread != NULL) {
            found = is_timed(thread, now_ns) ? TIMED : ASKED;
        }
    }
    PyMutex_Unlock(&STATE->mutex);
    return found;
}

/* Until somebody holds a GIL without a timer, or the clock is told something.
   If somebody holds it with a timer, it comes back now and then. */
static void
rest(struct _sampling_clock *clock, uint32_t seen_wakeups)
{
    // A thread that attaches stores what it does, then looks whether the clock
    // rests; here it is the other way round.  One of both sees the other.
    _Py_atomic_store_int(&STATE->clock_rests, _PySampling_RESTS);
    uint64_t from_ns = _PySampling_MonotonicNow();
    Found found = who_runs(clock, from_ns);
    if (_Py_atomic_exchange_int(&STATE->somebody_timed, 0)
        || found == TIMED)
    {
        _Py_atomic_store_int(&STATE->clock_rests, _PySampling_WATCHES);
        set_deadline(clock, UINT64_MAX);
        if (found != ASKED) {
            wait_until(from_ns + WATCH_NS, seen_wakeups);
        }
    }
    else if (found == NOBODY) {
        set_deadline(clock, UINT64_MAX);
        wait_until(0, seen_wakeups);
    }
    // Ticks reach a thread that much after the deadline.  So some whose
    // deadlines were before the run reach it, and the beginnings of runs that
    // wake the clock get as many as any place.
    uint64_t now_ns = _PySampling_MonotonicNow();
    uint64_t woken_ns = now_ns;
    if (!_Py_atomic_exchange_int(&STATE->clock_rests, _PySampling_AWAKE)) {
        woken_ns = _Py_atomic_load_uint64(&STATE->clock_woken_ns);
    }
    if (found == ASKED
        || _Py_atomic_load_int_relaxed(&STATE->somebody_ran))
    {
        begin_anew(clock, woken_ns - Py_MIN(now_ns - woken_ns,
                                            _PySampling_WAKE_UP_NS));
    }
}

static void *
run_clock(void *arg)
{
    struct _sampling_clock *clock = arg;
    prctl(PR_SET_NAME, "sampleprof");
    prctl(PR_SET_TIMERSLACK, 1);
    ask_for_prompt_wakeups();
    _PySampling_ProcOpen(&clock->proc);
    begin_anew(clock, _PySampling_MonotonicNow());
    for (;;) {
        uint32_t seen_wakeups = _Py_atomic_load_uint32(&STATE->clock_wakeups);
        uint64_t now_ns = _PySampling_MonotonicNow();
        if (_Py_atomic_load_int(&clock->stop)) {
            break;
        }
        if (_Py_atomic_exchange_int(&clock->is_changed, 0)) {
            begin_anew(clock, now_ns);
        }
        else if (_Py_atomic_load_int(&clock->is_paused)) {
            wait_until(0, seen_wakeups);
        }
        else if (clock->idle_looks >= IDLE_LOOKS) {
            rest(clock, seen_wakeups);
        }
        else if (now_ns < clock->deadline_ns) {
            wait_until(clock->deadline_ns, seen_wakeups);
        }
        else {
            look(clock, now_ns);
        }
    }
    _PySampling_ProcClose(&clock->proc);
    return NULL;
}

/* Tells the clock something.  Called without runtime->sampling.mutex. */
static void
tell(struct _sampling_clock *clock, int stop, int is_paused)
{
    _Py_atomic_store_int(&clock->stop, stop);
    _Py_atomic_store_int(&clock->is_paused, is_paused);
    _Py_atomic_store_int(&clock->is_changed, 1);
    wake_up();
}


/* Life. */

static int
start_thread(struct _sampling_clock *clock)
{
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    // No signal of the program may be handled on this thread.
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int err = pthread_create(&clock->thread, &attr, run_clock, clock);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attr);
    return err;
}

_PySampling_Status
_PySampling_ClockStart(void)
{
    struct _sampling_clock *clock = calloc(1, sizeof(*clock));
    if (clock == NULL) {
        return _PySampling_ERR_NO_MEMORY;
    }
    if (!_PySampling_SignalTake(&clock->signal)) {
        free(clock);
        return _PySampling_ERR_SIGNAL_TAKEN;
    }
    STATE->clock = clock;
    _PySampling_TimersStart();
    set_deadline(clock, UINT64_MAX);
    if (STATE->options.manual) {
        return _PySampling_OK;
    }
    int err = start_thread(clock);
    if (err != 0) {
        _PySampling_SignalGiveBack(&clock->signal);
        free(clock);
        STATE->clock = NULL;
        errno = err;
        return _PySampling_ERR_THREAD;
    }
    return _PySampling_OK;
}

/* No ticks from now on.  Called by an attached thread, whose own last signal
   is waited for. */
void
_PySampling_ClockRest(_PySampling_Thread *caller)
{
    if (!STATE->options.manual) {
        tell(STATE->clock, 0, 1);
    }
    // A tick that is under way holds the registry.
    PyMutex_LockFlags(&STATE->mutex, _Py_LOCK_DONT_DETACH);
    PyMutex_Unlock(&STATE->mutex);
    if (caller != NULL) {
        _PySampling_ClockSettle(caller);
    }
}

_PySampling_Status
_PySampling_ClockResume(void)
{
    if (!STATE->options.manual) {
        tell(STATE->clock, 0, 0);
    }
    return _PySampling_OK;
}

void
_PySampling_ClockSetPeriod(uint64_t period_ns)
{
    _Py_atomic_store_uint64_relaxed(&STATE->period_ns, period_ns);
    if (STATE->clock != NULL && !STATE->options.manual) {
        tell(STATE->clock, 0, STATE->clock->is_paused);
    }
}

/* Called by an attached thread, whose own last signal is waited for. */
void
_PySampling_ClockStop(_PySampling_Thread *caller)
{
    struct _sampling_clock *clock = STATE->clock;
    if (clock == NULL) {
        return;
    }
    PyMutex_LockFlags(&STATE->mutex, _Py_LOCK_DONT_DETACH);
    STATE->clock = NULL;        // LeaveSignal may be looking at it
    _PySampling_TimersEnd(0);
    PyMutex_Unlock(&STATE->mutex);
    if (!STATE->options.manual) {
        tell(clock, 1, 0);
        pthread_join(clock->thread, NULL);
    }
    if (caller != NULL) {
        _PySampling_ClockSettle(caller);
    }
    _PySampling_SignalGiveBack(&clock->signal);
    free(clock);
}

void
_PySampling_ClockLeaveSignal(void)
{
    struct _sampling_clock *clock = _PyRuntime.sampling.clock;
    if (clock != NULL) {
        _PySampling_SignalLeave(&clock->signal);
    }
}

void
_PySampling_ClockAbandon(void)
{
    // In a child that C code has forked there is no thread to tell.
    if (STATE->clock != NULL && !STATE->options.manual
        && !_PySampling_IsForkedUnheard())
    {
        tell(STATE->clock, 1, 0);
    }
}

/* In the child of a fork: the thread is not there any more. */
void
_PySampling_ClockForget(void)
{
    STATE->clock_rests = _PySampling_AWAKE;
    _PySampling_TimersEnd(1);
    if (STATE->clock != NULL) {
        _PySampling_SignalGiveBack(&STATE->clock->signal);
        free(STATE->clock);
        STATE->clock = NULL;
    }
}

/* A tick of a manual session, which stands for `span`: the thread that calls
   asks itself. */
void
_PySampling_ClockTickAll(uint64_t wall_ns, struct _sampling_time span)
{
    (void)tick(STATE->clock, wall_ns, span);
}

#endif  // _PySampling_SUPPORTED
