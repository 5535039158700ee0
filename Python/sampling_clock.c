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
   next safepoint. */

#include "Python.h"

#include "pycore_ceval.h"             // _Py_set_eval_breaker_bit()
#include "pycore_interp.h"            // PyInterpreterState.sampling
#include "pycore_runtime.h"           // _PyRuntime
#include "pycore_sampling_clock.h"
#include "pycore_sampling_parts.h"

#ifdef _PySampling_SUPPORTED

#include <errno.h>
#include <pthread.h>
#include <sched.h>                    // sched_yield()
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Ticks that are late by more periods than this are not made up for. */
#define MAX_LATE_PERIODS 2

/* The sampler thread wakes within some ten microseconds of its deadline,
   unless it has to wait for a CPU. */
#define LATE_TICK_NS 100000

/* How long a thread may take to answer.  It takes microseconds, unless the
   machine is overloaded or the thread blocks the signal. */
#define ANSWER_NS 20000000

/* Of ticks in a row that find a thread waiting for a CPU, this one counts as
   if it had one, so that CPU time is not put off for ever. */
#define OFF_CPU_TICKS 4

/* A thread that left a signal unanswered gets that many notes before the next
   one is tried. */
#define DEAF_TICKS 500

/* The sampler thread's stack: its deepest call is snprintf(). */
#define STACK_BYTES (128 * 1024)

struct _sampling_clock {
    pthread_t thread;
    pthread_mutex_t mutex;      // guards the next four
    pthread_cond_t wakeup;
    int stop;
    int rests;                  // no ticks until it is told to resume
    int is_changed;             // rests or the period
    uint64_t period_ns;
    int can_read_proc;
    int is_refused;             // the system lets no signal be sent
    int is_late;                // the tick that is under way
    uint64_t random;
    struct _sampling_signal signal;
};


/* Asking. */

static void
leave_note(_PySampling_Thread *thread, uint64_t wall_ns, int asleep)
{
    // A note that still waits tells that the thread has come to no safepoint:
    // if it slept then, it is still in the same call.
    if (asleep || _Py_atomic_load_uint64_relaxed(&thread->note_wall_ns) == 0) {
        _Py_atomic_store_int_relaxed(&thread->note_asleep, asleep);
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
            uint64_t wall_ns, uint64_t cpu_ns, int counts_cpu)
{
    struct _sampling_runtime_state *state = &_PyRuntime.sampling;
    _Py_atomic_store_uint64_relaxed(&thread->tick_wall_ns, wall_ns);
    _Py_atomic_store_uint64_relaxed(&thread->tick_cpu_ns,
                                    counts_cpu ? cpu_ns : 0);
    thread->asked_ns = wall_ns;
    thread->asked_cpu_ns = cpu_ns;
    if (syscall(SYS_tgkill, state->owner_pid, thread->native_id,
                state->signal) != 0)
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
    return wall_ns - thread->asked_ns >= ANSWER_NS
        && cpu_ns - thread->asked_cpu_ns >= ANSWER_NS / 2;
}

/* The last signal is unanswered.  Returns 1 if there is to be a note
   instead. */
static int
tick_unanswered(_PySampling_Thread *thread, uint64_t wall_ns)
{
    if (_Py_atomic_load_int_relaxed(&thread->deaf_ticks) > 0) {
        return 1;
    }
    if (!is_deaf(thread, wall_ns, _PySampling_CpuNow(thread))) {
        _PySampling_COUNT(ticks_busy, 1);
        return 0;
    }
    // The signal stays in the thread's queue: it takes it out when it
    // detaches, or answers it when it unblocks it.
    _Py_atomic_store_int_relaxed(&thread->deaf_ticks, DEAF_TICKS);
    _PySampling_COUNT(signals_unanswered, 1);
    return 1;
}

/* The thread holds the GIL, and waits for the end of this if it wants to give
   it up. */
static void
tick_asked(struct _sampling_clock *clock, _PySampling_Thread *thread,
           uint64_t wall_ns)
{
    if (_Py_atomic_load_int_relaxed(&thread->deaf_ticks) > 0
        || clock->signal.is_gone || clock->is_refused)
    {
        leave_note_instead(thread, wall_ns);
        end_asking(thread);
        return;
    }
    uint64_t cpu_ns = _PySampling_CpuNow(thread);
    _PySampling_Wakefulness found = _PySampling_LookAt(
        thread, clock->can_read_proc, wall_ns, cpu_ns);
    if (found == _PySampling_ASLEEP || found == _PySampling_SLEEPY) {
        leave_note(thread, wall_ns, found == _PySampling_ASLEEP);
        end_asking(thread);
        return;
    }
    if (found == _PySampling_UNKNOWN) {
        leave_note_instead(thread, wall_ns);
        end_asking(thread);
        return;
    }
    // A sampler thread that comes too late was kept waiting by the very thread
    // it displaces, until that one entered the kernel: the moment is the
    // thread's own choice, not the clock's.
    int is_chance = found == _PySampling_ON_CPU
        || (found == _PySampling_DISPLACED && !clock->is_late);
    thread->off_cpu_ticks = is_chance ? 0 : thread->off_cpu_ticks + 1;
    send_signal(clock, thread, wall_ns, cpu_ns,
                thread->off_cpu_ticks % OFF_CPU_TICKS == 0);
}

/* A tick for the interpreter's running thread. */
static void
tick_interpreter(struct _sampling_clock *clock,
                 struct _sampling_interpreter_state *interp,
                 uint64_t wall_ns)
{
    _PySampling_Thread *thread = _Py_atomic_load_ptr_acquire(&interp->running);
    if (thread == NULL) {
        _PySampling_COUNT(ticks_idle, 1);
        return;
    }
    if (_Py_atomic_load_int_acquire(&thread->asked) != _PySampling_NOT_ASKED) {
        if (tick_unanswered(thread, wall_ns)) {
            leave_note_instead(thread, wall_ns);
        }
    }
    else if (begin_asking(interp, thread)) {
        tick_asked(clock, thread, wall_ns);
    }
    else {
        _PySampling_COUNT(ticks_idle, 1);
    }
    int deaf_ticks = _Py_atomic_load_int_relaxed(&thread->deaf_ticks);
    if (deaf_ticks > 0) {
        _Py_atomic_store_int_relaxed(&thread->deaf_ticks, deaf_ticks - 1);
    }
}

/* A tick of all interpreters.  Caller holds runtime->sampling.mutex. */
static void
tick(struct _sampling_clock *clock, uint64_t wall_ns)
{
    struct _sampling_runtime_state *state = &_PyRuntime.sampling;
    _Py_atomic_store_uint64_relaxed(&state->last_tick_wall_ns, wall_ns);
    _PySampling_COUNT(ticks, 1);
    _PySampling_SignalKeep(&clock->signal);
    for (struct _sampling_interpreter_state *interp = state->interpreters;
         interp != NULL; interp = interp->next)
    {
        tick_interpreter(clock, interp, wall_ns);
    }
}

/* Takes back the signal that this thread blocks.  One that somebody else has
   sent is put back as it was. */
static void
take_back_signal(_PySampling_Thread *thread)
{
    struct _sampling_runtime_state *state = &_PyRuntime.sampling;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, state->signal);
    struct timespec now = {0, 0};
    siginfo_t info;
    // Not sigtimedwait(): glibc's reports SI_TKILL as SI_USER.
    if (syscall(SYS_rt_sigtimedwait, &set, &info, &now, _NSIG / 8)
            == state->signal
        && !_PySampling_IsFromClock(&info))
    {
        syscall(SYS_rt_tgsigqueueinfo, state->owner_pid, thread->native_id,
                state->signal, &info);
    }
}

/* On the thread, which has made itself invisible to the clock: returns when
   no signal is on its way to it. */
void
_PySampling_ClockSettle(_PySampling_Thread *thread)
{
    int asked = _Py_atomic_load_int(&thread->asked);
    while (asked == _PySampling_ASKING && !_PySampling_IsForkedUnheard()) {
        sched_yield();          // the clock is between two instructions
        asked = _Py_atomic_load_int(&thread->asked);
    }
    if (asked == _PySampling_NOT_ASKED) {
        return;
    }
    // The signal is in the kernel's queue.  Leaving the kernel delivers it.
    sched_yield();
    if (_Py_atomic_load_int(&thread->asked) != _PySampling_NOT_ASKED) {
        take_back_signal(thread);
        _Py_atomic_store_int_relaxed(&thread->deaf_ticks, DEAF_TICKS);
        _Py_atomic_store_int(&thread->asked, _PySampling_NOT_ASKED);
        _PySampling_COUNT(signals_unanswered, 1);
    }
}


/* The sampler thread. */

typedef enum {
    TICK,
    CHANGE,                     // the clock was told something
    STOP,
} Wakeup;

/* Sleeps until the deadline, or until the clock is told something. */
static Wakeup
sleep_until(struct _sampling_clock *clock, uint64_t deadline_ns)
{
    struct timespec ts = {
        .tv_sec = (time_t)(deadline_ns / 1000000000u),
        .tv_nsec = (long)(deadline_ns % 1000000000u),
    };
    Wakeup wakeup = TICK;
    pthread_mutex_lock(&clock->mutex);
    while (!clock->stop && !clock->is_changed) {
        if (pthread_cond_timedwait(&clock->wakeup, &clock->mutex, &ts)
            == ETIMEDOUT)
        {
            break;
        }
    }
    while (!clock->stop && clock->rests) {
        pthread_cond_wait(&clock->wakeup, &clock->mutex);
    }
    if (clock->stop) {
        wakeup = STOP;
    }
    else if (clock->is_changed) {
        clock->is_changed = 0;
        wakeup = CHANGE;
    }
    pthread_mutex_unlock(&clock->mutex);
    return wakeup;
}

/* Tells the clock something.  Called without runtime->sampling.mutex. */
static void
tell(struct _sampling_clock *clock, int stop, int rests, uint64_t period_ns)
{
    pthread_mutex_lock(&clock->mutex);
    clock->stop = stop;
    clock->rests = rests;
    clock->period_ns = period_ns;
    clock->is_changed = 1;
    pthread_cond_signal(&clock->wakeup);
    pthread_mutex_unlock(&clock->mutex);
}

/* Ticks, unless the clock was told meanwhile to rest. */
static void
tick_locked(struct _sampling_clock *clock, uint64_t wall_ns)
{
    struct _sampling_runtime_state *state = &_PyRuntime.sampling;
    PyMutex_LockFlags(&state->mutex, _Py_LOCK_DONT_DETACH);
    if (_PySampling_ACTIVE()) {
        tick(clock, wall_ns);
    }
    PyMutex_Unlock(&state->mutex);
}

static void *
run_clock(void *arg)
{
    struct _sampling_clock *clock = arg;
    prctl(PR_SET_NAME, "sampleprof");
    prctl(PR_SET_TIMERSLACK, 1);
    clock->can_read_proc = _PySampling_UnshareFiles();
    uint64_t period_ns = clock->period_ns;
    // The first tick falls anywhere in the first period.
    uint64_t deadline_ns = _PySampling_MonotonicNow() + 1
        + _PySampling_NextRandom(&clock->random) % period_ns;
    for (;;) {
        Wakeup wakeup = sleep_until(clock, deadline_ns);
        if (wakeup == STOP) {
            return NULL;
        }
        uint64_t now_ns = _PySampling_MonotonicNow();
        if (wakeup == CHANGE) {
            pthread_mutex_lock(&clock->mutex);
            period_ns = clock->period_ns;
            pthread_mutex_unlock(&clock->mutex);
            deadline_ns = now_ns + 1
                + _PySampling_NextRandom(&clock->random) % period_ns;
            continue;
        }
        clock->is_late = now_ns > deadline_ns + LATE_TICK_NS;
        tick_locked(clock, now_ns);
        deadline_ns += _PySampling_Jittered(period_ns, &clock->random);
        now_ns = _PySampling_MonotonicNow();
        if (now_ns > deadline_ns + MAX_LATE_PERIODS * period_ns) {
            _PySampling_COUNT(ticks_late, (now_ns - deadline_ns) / period_ns);
            deadline_ns = now_ns + period_ns;
        }
    }
}


/* Life. */

static int
start_thread(struct _sampling_clock *clock)
{
    pthread_condattr_t condattr;
    pthread_condattr_init(&condattr);
    pthread_condattr_setclock(&condattr, CLOCK_MONOTONIC);
    pthread_cond_init(&clock->wakeup, &condattr);
    pthread_condattr_destroy(&condattr);
    pthread_mutex_init(&clock->mutex, NULL);

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
    struct _sampling_runtime_state *state = &_PyRuntime.sampling;
    struct _sampling_clock *clock = calloc(1, sizeof(*clock));
    if (clock == NULL) {
        return _PySampling_ERR_NO_MEMORY;
    }
    if (!_PySampling_SignalTake(&clock->signal)) {
        free(clock);
        return _PySampling_ERR_SIGNAL_TAKEN;
    }
    state->clock = clock;
    clock->random = _PySampling_MonotonicNow() | 1;
    clock->period_ns = state->period_ns;
    if (state->options.manual) {
        return _PySampling_OK;
    }
    int err = start_thread(clock);
    if (err != 0) {
        _PySampling_SignalGiveBack(&clock->signal);
        free(clock);
        state->clock = NULL;
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
    struct _sampling_runtime_state *state = &_PyRuntime.sampling;
    if (!state->options.manual) {
        tell(state->clock, 0, 1, state->period_ns);
    }
    // A tick that is under way holds the registry.
    PyMutex_LockFlags(&state->mutex, _Py_LOCK_DONT_DETACH);
    PyMutex_Unlock(&state->mutex);
    if (caller != NULL) {
        _PySampling_ClockSettle(caller);
    }
}

_PySampling_Status
_PySampling_ClockResume(void)
{
    struct _sampling_runtime_state *state = &_PyRuntime.sampling;
    if (!state->options.manual) {
        tell(state->clock, 0, 0, state->period_ns);
    }
    return _PySampling_OK;
}

void
_PySampling_ClockSetPeriod(uint64_t period_ns)
{
    struct _sampling_runtime_state *state = &_PyRuntime.sampling;
    state->period_ns = period_ns;
    if (state->clock != NULL && !state->options.manual) {
        tell(state->clock, 0, state->clock->rests, period_ns);
    }
}

/* Called by an attached thread, whose own last signal is waited for. */
void
_PySampling_ClockStop(_PySampling_Thread *caller)
{
    struct _sampling_runtime_state *state = &_PyRuntime.sampling;
    struct _sampling_clock *clock = state->clock;
    if (clock == NULL) {
        return;
    }
    PyMutex_LockFlags(&state->mutex, _Py_LOCK_DONT_DETACH);
    state->clock = NULL;        // LeaveSignal may be looking at it
    PyMutex_Unlock(&state->mutex);
    if (!state->options.manual) {
        tell(clock, 1, 0, clock->period_ns);
        pthread_join(clock->thread, NULL);
        pthread_cond_destroy(&clock->wakeup);
        pthread_mutex_destroy(&clock->mutex);
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
    struct _sampling_runtime_state *state = &_PyRuntime.sampling;
    // In a child that C code has forked there is no thread to tell.
    if (state->clock != NULL && !state->options.manual
        && !_PySampling_IsForkedUnheard())
    {
        tell(state->clock, 1, 0, state->period_ns);
    }
}

/* In the child of a fork: the thread is not there any more. */
void
_PySampling_ClockForget(void)
{
    struct _sampling_runtime_state *state = &_PyRuntime.sampling;
    if (state->clock != NULL) {
        _PySampling_SignalGiveBack(&state->clock->signal);
        free(state->clock);
        state->clock = NULL;
    }
}

/* A tick of a manual session: the thread that calls asks itself. */
void
_PySampling_ClockTickAll(uint64_t wall_ns)
{
    tick(_PyRuntime.sampling.clock, wall_ns);
}

#endif  // _PySampling_SUPPORTED
