/* Sampling profiler: WHEN to sample.

   Owns the sampler thread, its deadlines, the signal, and the choice of whom
   to ask.  Must not know frames, stacks or tables.

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
       yes: tgkill()  ----------------> handler: capture; asked = NOT_ASKED
            asked = ASKED if not yet    asked == ASKED: it blocks the signal,
                                        so it takes it out of its queue

   Either the clock sees that the thread is leaving, or the thread sees that
   a signal is on its way and waits for it, which takes microseconds.

   A thread that holds the GIL while it sleeps in a system call would be woken
   too early.  So the clock first reads the thread's CPU clock twice: if it
   stands still, the kernel is asked what the thread does, and if it sleeps, or
   has slept most of the time since the last tick, only a note is left, which
   the thread finds at its next safepoint. */

#include "Python.h"

#include "pycore_ceval.h"             // _Py_set_eval_breaker_bit()
#include "pycore_interp.h"            // PyInterpreterState.sampling
#include "pycore_runtime.h"           // _PyRuntime
#include "pycore_sampling.h"

#ifdef _PySampling_SUPPORTED

#include <errno.h>
#include <fcntl.h>                    // open()
#include <pthread.h>
#include <sched.h>                    // sched_yield()
#include <signal.h>
#include <stdio.h>                    // snprintf()
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Deadlines vary by a quarter of the period to both sides, so that a program
   with a rhythm of its own is not seen at the same beat each time. */
#define JITTER_DIVISOR 4

/* Ticks that are late by more periods than this are not made up for. */
#define MAX_LATE_PERIODS 2

/* How long a thread may take to answer.  It takes microseconds, unless the
   machine is overloaded or the thread blocks the signal. */
#define ANSWER_NS 20000000

/* After a sleep with the GIL a thread gets notes for that many ticks. */
#define SLEEPY_TICKS 4

/* Of ticks in a row that find a thread waiting for a CPU, this one counts as if
   it had one, so that CPU time is not put off for ever. */
#define OFF_CPU_TICKS 4

/* A thread that left a signal unanswered gets that many notes before the next
   one is tried. */
#define DEAF_TICKS 500

/* The sampler thread's stack: its deepest call is snprintf(). */
#define STACK_BYTES (128 * 1024)

struct _sampling_clock {
    pthread_t thread;
    pthread_mutex_t mutex;      // guards stop
    pthread_cond_t wakeup;
    int stop;
    int has_own_files;          // its own, empty, table of descriptors
    int signal_is_gone;         // the program took it and no other is free
    uint64_t random;
    struct sigaction old_action;
};


/* Asking. */

static int
is_on_cpu(_PySampling_Thread *thread, uint64_t cpu_ns)
{
    if (_PyRuntime.sampling.options.manual) {
        return 1;       // the thread ticks itself
    }
    // Reading a running thread's clock brings it up to date.
    return _PySampling_CpuNow(thread) != cpu_ns;
}

/* Reads /proc/self/task/TID/NAME into `text` through the sampler thread's own
   descriptors.  Returns 0 if that is not possible. */
static int
read_proc(const struct _sampling_clock *clock,
          const _PySampling_Thread *thread, const char *name,
          char *text, size_t size)
{
    if (!clock->has_own_files) {
        return 0;
    }
    char path[64];
    snprintf(path, sizeof(path), "/proc/self/task/%d/%s",
             thread->native_id, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return 0;
    }
    ssize_t got = read(fd, text, size - 1);
    close(fd);
    if (got <= 0) {
        return 0;
    }
    text[got] = '\0';
    return 1;
}

/* Why is the thread not on a CPU?  It may sleep in the kernel, or have been
   moved aside by the sampler thread itself, which runs where it ran.  Answers
   that cannot be had are no. */
static void
ask_kernel(const struct _sampling_clock *clock,
           const _PySampling_Thread *thread, int *is_asleep, int *is_displaced)
{
    *is_asleep = *is_displaced = 0;
    char text[512];
    if (!read_proc(clock, thread, "stat", text, sizeof(text))) {
        return;
    }
    // "tid (name) S ppid ...": the name may hold anything, so search
    // backwards.  The state is field 3, the CPU it ran on last is field 39.
    const char *field = strrchr(text, ')');
    for (int number = 2; field != NULL && number < 39; number++) {
        field = strchr(field + 1, ' ');
        if (field != NULL && number == 2) {
            *is_asleep = field[1] == 'S' || field[1] == 'D';
        }
    }
    if (field != NULL) {
        *is_displaced = !*is_asleep && atoi(field + 1) == sched_getcpu();
    }
}

/* Did the thread, which is on a CPU, sleep with the GIL for most of the time
   since the last tick?  Time for which the kernel let it wait for a CPU is no
   sleep; the kernel adds that up when the thread gets its CPU. */
static int
has_slept(const struct _sampling_clock *clock, _PySampling_Thread *thread,
          uint64_t wall_ns, uint64_t cpu_ns)
{
    uint64_t from_ns = thread->seen_wall_ns;
    uint64_t ran = cpu_ns - thread->seen_cpu_ns;
    thread->seen_wall_ns = wall_ns;
    thread->seen_cpu_ns = cpu_ns;
    if (from_ns == 0 || from_ns < _Py_atomic_load_uint64_relaxed(&thread->attached_ns)
        || from_ns >= wall_ns || ran >= (wall_ns - from_ns) / 2)
    {
        // Nothing to compare with, off the GIL meanwhile, or busy.
        return 0;
    }
    char text[128];
    unsigned long long run_ns, delay_ns;
    if (!read_proc(clock, thread, "schedstat", text, sizeof(text))
        || sscanf(text, "%llu %llu", &run_ns, &delay_ns) != 2)
    {
        return 0;
    }
    uint64_t delayed = delay_ns - thread->seen_delay_ns;
    thread->seen_delay_ns = delay_ns;
    return ran + delayed < (wall_ns - from_ns) / 2;
}

/* A thread that sleeps again and again while it holds the GIL is likely to
   enter a system call before a signal reaches it. */
static int
is_sleepy(const struct _sampling_clock *clock, _PySampling_Thread *thread,
          int on_cpu, uint64_t wall_ns, uint64_t cpu_ns)
{
    if (!on_cpu) {
        return thread->sleepy_ticks > 0;    // nothing new is known
    }
    if (has_slept(clock, thread, wall_ns, cpu_ns)) {
        thread->sleepy_ticks = SLEEPY_TICKS;
    }
    else if (thread->sleepy_ticks > 0) {
        thread->sleepy_ticks--;
    }
    return thread->sleepy_ticks > 0;
}

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

static void
send_signal(struct _sampling_interpreter_state *interp,
            _PySampling_Thread *thread, uint64_t wall_ns, uint64_t cpu_ns,
            int counts_cpu)
{
    struct _sampling_runtime_state *state = &_PyRuntime.sampling;
    _Py_atomic_store_uint64_relaxed(&thread->tick_wall_ns, wall_ns);
    _Py_atomic_store_uint64_relaxed(&thread->tick_cpu_ns,
                                    counts_cpu ? cpu_ns : 0);
    // Sequentially consistent, as are the two of a thread that settles
    // (sampling_account.c): one of both sides sees the other.
    _Py_atomic_store_int(&thread->asked, _PySampling_ASKING);
    if (_Py_atomic_load_ptr(&interp->running) != thread) {
        _Py_atomic_store_int(&thread->asked, _PySampling_NOT_ASKED);
        _PySampling_COUNT(ticks_idle, 1);
        return;
    }
    thread->asked_ns = wall_ns;
    thread->asked_cpu_ns = cpu_ns;
    if (syscall(SYS_tgkill, state->owner_pid, thread->native_id,
                state->signal) != 0)
    {
        _Py_atomic_store_int(&thread->asked, _PySampling_NOT_ASKED);
        _PySampling_COUNT(signals_unanswered, 1);
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
    uint64_t cpu_ns = _PySampling_CpuNow(thread);
    int deaf_ticks = _Py_atomic_load_int_relaxed(&thread->deaf_ticks);
    int is_asked = _Py_atomic_load_int_acquire(&thread->asked);
    if (is_asked && deaf_ticks == 0) {
        if (!is_deaf(thread, wall_ns, cpu_ns)) {
            _PySampling_COUNT(ticks_busy, 1);
            return;
        }
        // The signal stays in the thread's queue: it takes it out when it
        // detaches, or answers it when it unblocks it.
        deaf_ticks = DEAF_TICKS;
        _PySampling_COUNT(signals_unanswered, 1);
    }
    if (deaf_ticks > 0) {
        _Py_atomic_store_int_relaxed(&thread->deaf_ticks, deaf_ticks - 1);
        leave_note(thread, wall_ns, 0);
    }
    else if (clock->signal_is_gone) {
        leave_note(thread, wall_ns, 0);
    }
    else {
        int is_asleep = 0;
        int on_cpu = is_on_cpu(thread, cpu_ns);
        if (!on_cpu) {
            ask_kernel(clock, thread, &is_asleep, &on_cpu);
        }
        if (is_asleep) {
            thread->sleepy_ticks = SLEEPY_TICKS;
            leave_note(thread, wall_ns, 1);
        }
        else if (is_sleepy(clock, thread, on_cpu, wall_ns, cpu_ns)) {
            leave_note(thread, wall_ns, 0);
        }
        else {
            thread->off_cpu_ticks = on_cpu ? 0 : thread->off_cpu_ticks + 1;
            send_signal(interp, thread, wall_ns, cpu_ns,
                        thread->off_cpu_ticks % OFF_CPU_TICKS == 0);
        }
    }
}

static void keep_signal(struct _sampling_clock *clock);

/* A tick of all interpreters.  Caller holds runtime->sampling.mutex. */
static void
tick(struct _sampling_clock *clock, uint64_t wall_ns)
{
    struct _sampling_runtime_state *state = &_PyRuntime.sampling;
    _Py_atomic_store_uint64_relaxed(&state->last_tick_wall_ns, wall_ns);
    _PySampling_COUNT(ticks, 1);
    keep_signal(clock);
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
        && (info.si_code != SI_TKILL || info.si_pid != state->owner_pid))
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
    while (asked == _PySampling_ASKING) {
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

static uint64_t
next_random(struct _sampling_clock *clock)
{
    uint64_t x = clock->random;     // xorshift64, Marsaglia 2003
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return clock->random = x;
}

/* Sleeps until the deadline; returns 1 when it is time to stop. */
static int
sleep_until(struct _sampling_clock *clock, uint64_t deadline_ns)
{
    struct timespec ts = {
        .tv_sec = (time_t)(deadline_ns / 1000000000u),
        .tv_nsec = (long)(deadline_ns % 1000000000u),
    };
    pthread_mutex_lock(&clock->mutex);
    while (!clock->stop) {
        if (pthread_cond_timedwait(&clock->wakeup, &clock->mutex, &ts)
            == ETIMEDOUT)
        {
            break;
        }
    }
    int stop = clock->stop;
    pthread_mutex_unlock(&clock->mutex);
    return stop;
}

static void *
run_clock(void *arg)
{
    struct _sampling_clock *clock = arg;
    struct _sampling_runtime_state *state = &_PyRuntime.sampling;
    prctl(PR_SET_NAME, "sampleprof");
    prctl(PR_SET_TIMERSLACK, 1);
#if defined(SYS_close_range)
    // A table of descriptors of its own, empty, so that reading /proc never
    // takes a number from the program.
    clock->has_own_files =
        syscall(SYS_close_range, 0, ~0U, 2 /* CLOSE_RANGE_UNSHARE */) == 0;
#endif
    uint64_t period_ns = state->period_ns;
    uint64_t now_ns = _PySampling_MonotonicNow();
    // The first tick falls anywhere in the first period.
    uint64_t deadline_ns = now_ns + next_random(clock) % period_ns + 1;
    while (!sleep_until(clock, deadline_ns)) {
        now_ns = _PySampling_MonotonicNow();
        PyMutex_LockFlags(&state->mutex, _Py_LOCK_DONT_DETACH);
        tick(clock, now_ns);
        PyMutex_Unlock(&state->mutex);
        uint64_t spread = period_ns / JITTER_DIVISOR;
        deadline_ns += period_ns - spread
                       + next_random(clock) % (2 * spread + 1);
        now_ns = _PySampling_MonotonicNow();
        if (now_ns > deadline_ns + MAX_LATE_PERIODS * period_ns) {
            _PySampling_COUNT(ticks_late, (now_ns - deadline_ns) / period_ns);
            deadline_ns = now_ns + period_ns;
        }
    }
    return NULL;
}


/* Life. */

static void
handle_signal(int signum, siginfo_t *info, void *context)
{
    _PySampling_SignalHandler(signum, info, context);
}

/* Installs the handler for a signal that nobody uses. */
static int
install_handler(struct _sampling_clock *clock, int signum)
{
    struct sigaction action;
    if (sigaction(signum, NULL, &action) != 0
        || (action.sa_flags & SA_SIGINFO) != 0
        || (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN))
    {
        return -1;
    }
    clock->old_action = action;
    memset(&action, 0, sizeof(action));
    action.sa_sigaction = handle_signal;
    action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
    sigfillset(&action.sa_mask);
    return sigaction(signum, &action, NULL);
}

static int
handler_is_ours(int signum)
{
    struct sigaction action;
    return sigaction(signum, NULL, &action) == 0
        && (action.sa_flags & SA_SIGINFO) != 0
        && action.sa_sigaction == handle_signal;
}

/* The signals a program may name: those that report no fault of its own and
   that the kernel lets be handled. */
int
_PySampling_IsUsableSignal(int signum)
{
    switch (signum) {
    case SIGURG: case SIGUSR1: case SIGUSR2: case SIGPROF: case SIGVTALRM:
    case SIGIO: case SIGWINCH:
        return 1;
    default:
        return signum >= SIGRTMIN && signum <= SIGRTMAX;
    }
}

/* SIGURG is ignored by default, so that one that arrives after an exec harms
   nobody.  Next come real-time signals, from the top: what uses them starts at
   the bottom. */
static int
install_any_handler(struct _sampling_clock *clock)
{
    if (install_handler(clock, SIGURG) == 0) {
        return SIGURG;
    }
    for (int signum = SIGRTMAX; signum >= SIGRTMIN; signum--) {
        if (install_handler(clock, signum) == 0) {
            return signum;
        }
    }
    return 0;
}

static void
take_another_signal(struct _sampling_clock *clock)
{
    struct _sampling_runtime_state *state = &_PyRuntime.sampling;
    int signum = install_any_handler(clock);
    if (signum == 0) {
        clock->signal_is_gone = 1;
        return;
    }
    state->signal = signum;
    _PySampling_COUNT(signals_moved, 1);
}

/* Ignoring a signal drops what is pending of it, in all threads: the default
   action of most signals ends the process. */
static void
give_back(int signum, const struct sigaction *old_action)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigaction(signum, &ignore, NULL);
    sigaction(signum, old_action, NULL);
}

/* C code may install a handler of its own at any time: then the signal is the
   program's, and another one is used. */
static void
keep_signal(struct _sampling_clock *clock)
{
    if (!clock->signal_is_gone
        && !handler_is_ours(_PyRuntime.sampling.signal))
    {
        take_another_signal(clock);
    }
}

/* Python code tells beforehand, so that not one of our signals gets to its
   handler. */
void
_PySampling_ClockLeaveSignal(void)
{
    struct _sampling_runtime_state *state = &_PyRuntime.sampling;
    struct _sampling_clock *clock = state->clock;
    if (clock == NULL || clock->signal_is_gone) {
        return;
    }
    int signum = state->signal;
    struct sigaction old_action = clock->old_action;
    take_another_signal(clock);
    if (handler_is_ours(signum)) {
        give_back(signum, &old_action);
    }
}

/* Gives the signal back, unless someone has taken it over meanwhile. */
static void
remove_handler(struct _sampling_clock *clock, int signum)
{
    if (handler_is_ours(signum)) {
        give_back(signum, &clock->old_action);
    }
}

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
    int signum = state->options.signal;
    if (signum == 0) {
        signum = install_any_handler(clock);
    }
    else if (install_handler(clock, signum) != 0) {
        signum = 0;
    }
    if (signum == 0) {
        free(clock);
        return _PySampling_ERR_SIGNAL_TAKEN;
    }
    state->signal = signum;
    state->clock = clock;
    clock->random = _PySampling_MonotonicNow() | 1;
    if (state->options.manual) {
        return _PySampling_OK;
    }
    int err = start_thread(clock);
    if (err != 0) {
        remove_handler(clock, signum);
        free(clock);
        state->clock = NULL;
        errno = err;
        return _PySampling_ERR_THREAD;
    }
    return _PySampling_OK;
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
        pthread_mutex_lock(&clock->mutex);
        clock->stop = 1;
        pthread_cond_signal(&clock->wakeup);
        pthread_mutex_unlock(&clock->mutex);
        pthread_join(clock->thread, NULL);
        pthread_cond_destroy(&clock->wakeup);
        pthread_mutex_destroy(&clock->mutex);
    }
    _PySampling_ClockSettle(caller);
    remove_handler(clock, state->signal);
    free(clock);
}

/* In the child of a fork: the thread is not there any more. */
void
_PySampling_ClockForget(void)
{
    struct _sampling_runtime_state *state = &_PyRuntime.sampling;
    if (state->clock != NULL) {
        remove_handler(state->clock, state->signal);
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
