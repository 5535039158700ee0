/* Sampling profiler: WHEN to sample.

   Owns the sampler thread, its deadlines, when it checks and when it rests.
   Must not know how a thread is asked (clock/ask.c), frames, stacks or
   tables.

   The sampler thread is no Python thread: it has no thread state, takes no
   GIL and allocates nothing through Python.  At each tick it checks, for every
   interpreter, at who holds the GIL, and asks that thread by a signal to
   capture itself.  Threads without the GIL are never disturbed: their stacks
   stand still, and they account for themselves when they attach.

   A thread that has set a timer of its own (clock/run.c) is not asked.
   When nobody else holds a GIL for some checks, the clock rests: it costs a
   program that waits nothing.  A thread that attaches without a timer wakes
   it: its deadlines were there all the while, so that no run is favoured.
   While there are timers it only watches. */

#include "Python.h"

#include "pycore_interp.h"            // PyInterpreterState.sampling
#include "pycore_runtime.h"           // _PyRuntime

#include "inside.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#define STATE (&_PyRuntime.sampling)

/* After that many checks in a row with nobody who held a GIL at any of them or
   between, the clock rests.  Threads that wait for shorter need not wake
   it. */
#define IDLE_CHECKS 4

/* As often the clock checks whether threads answer the signals of their own
   timers. */
#define WATCH_NS 200000000

/* A check that is late says for so long that others want the CPU, too. */
#define CROWD_NS 1000000000

/* How long a thread usually runs is averaged over so many runs. */
#define AVERAGE_RUNS 8

/* Of a clock that rests. */
#define NO_DEADLINE UINT64_MAX

/* The sampler thread's stack: its deepest call is snprintf(). */
#define STACK_BYTES (128 * 1024)

typedef enum {
    NO_THREAD = 0,              // the clock is manual
    THREAD_RUNS,
    THREAD_ENDS,                // nobody took part: it takes no lock any more
    THREAD_LACKS,               // another one could not be started
} Life;

struct _sampling_clock {
    // Lock: runtime->sampling.mutex.
    pthread_t thread;
    Life life;
    // Orders to it.  Written before clock_wakeups rises, read after.
    int stop;
    int is_abandoned;           // maybe nobody takes part any more
    int is_paused;              // no ticks until it is to resume
    int is_changed;             // paused or the period
    // Owner: the sampler thread.
    uint64_t deadline_ns;
    int idle_checks;            // in a row
    struct _sampling_asking asking;
};


/* A check of all interpreters.  Returns whether a thread was found that needs
   checks.  Caller holds runtime->sampling.mutex. */
static int
tick(struct _sampling_clock *clock, uint64_t wall_ns,
     struct _sampling_time span)
{
    _PySampling_SignalKeep(&clock->asking.signal);
    int num_asked = 0;
    int num_timed = 0;
    for (struct _sampling_interpreter_state *interp = STATE->interpreters;
         interp != NULL; interp = interp->next)
    {
        _PySampling_Found found = _PySampling_Ask(&clock->asking, interp,
                                                  wall_ns, span);
        num_asked += found == _PySampling_FOUND_ASKED;
        num_timed += found == _PySampling_FOUND_TIMED;
    }
    if (num_timed == 0) {
        _PySampling_COUNT(ticks, 1);
    }
    return num_asked != 0;
}

/* The sampler thread. */

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
    set_deadline(clock,
                 _PySampling_DeadlineFrom(_PySampling_OF_CLOCK, from_ns));
    clock->idle_checks = 0;
}

/* Ticks, unless the clock was ordered meanwhile to rest. */
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
    clock->idle_checks = is_idle ? clock->idle_checks + 1 : 0;
}

static void
check(struct _sampling_clock *clock, uint64_t now_ns)
{
    // A clock that gets its CPU late checks once for all that was due.
    uint64_t span_ns = _PySampling_DeadlineSpan(
        _PySampling_OF_CLOCK, clock->deadline_ns, now_ns);
    if (now_ns - clock->deadline_ns > _PySampling_LATE_NS) {
        _Py_atomic_store_uint64_relaxed(&STATE->crowded_until_ns,
                                        now_ns + CROWD_NS);
    }
    // Before it checks: a run that ends after this is not one it has missed.
    set_deadline(clock,
                 _PySampling_DeadlineFrom(_PySampling_OF_CLOCK, now_ns + 1));
    tick_locked(clock, now_ns, span_ns);
}

static _PySampling_Found
who_runs(struct _sampling_clock *clock, uint64_t now_ns)
{
    _PySampling_Found found = _PySampling_FOUND_NOBODY;
    PyMutex_LockFlags(&STATE->mutex, _Py_LOCK_DONT_DETACH);
    _PySampling_SignalKeep(&clock->asking.signal);
    for (struct _sampling_interpreter_state *interp = STATE->interpreters;
         interp != NULL && found != _PySampling_FOUND_ASKED;
         interp = interp->next)
    {
        _PySampling_Thread *thread = _Py_atomic_load_ptr(&interp->running);
        if (thread != NULL) {
            found = _PySampling_IsTimed(thread, now_ns)
                ? _PySampling_FOUND_TIMED : _PySampling_FOUND_ASKED;
        }
    }
    PyMutex_Unlock(&STATE->mutex);
    return found;
}

/* Until somebody holds a GIL without a timer, or the clock gets an order.
   If somebody holds it with a timer, it comes back now and then. */
static void
rest(struct _sampling_clock *clock, uint32_t seen_wakeups)
{
    // A thread that attaches stores what it does, then checks whether the
    // clock rests; here it is the other way round.  One of both sees the
    // other.
    _Py_atomic_store_int(&STATE->clock_rests, _PySampling_RESTS);
    uint64_t from_ns = _PySampling_MonotonicNow();
    _PySampling_Found found = who_runs(clock, from_ns);
    if (_Py_atomic_exchange_int(&STATE->somebody_timed, 0)
        || found == _PySampling_FOUND_TIMED)
    {
        _Py_atomic_store_int(&STATE->clock_rests, _PySampling_WATCHES);
        set_deadline(clock, NO_DEADLINE);
        if (found != _PySampling_FOUND_ASKED) {
            _PySampling_WaitUntil(from_ns + WATCH_NS, seen_wakeups);
        }
    }
    else if (found == _PySampling_FOUND_NOBODY) {
        set_deadline(clock, NO_DEADLINE);
        _PySampling_WaitUntil(0, seen_wakeups);
    }
    // Ticks reach a thread that much after the deadline.  So some whose
    // deadlines were before the run reach it, and the beginnings of runs that
    // wake the clock get as many as any place.
    uint64_t now_ns = _PySampling_MonotonicNow();
    uint64_t woken_ns = now_ns;
    if (!_Py_atomic_exchange_int(&STATE->clock_rests, _PySampling_AWAKE)) {
        woken_ns = _Py_atomic_load_uint64(&STATE->clock_woken_ns);
    }
    if (found == _PySampling_FOUND_ASKED
        || _Py_atomic_load_int_relaxed(&STATE->somebody_ran))
    {
        begin_anew(clock, woken_ns - Py_MIN(now_ns - woken_ns,
                                            _PySampling_WAKE_UP_NS));
    }
}

/* Has the clock let a deadline in the run that ends go by?  Not if it may
   still be waking up: as often, then, it meets a run that began after the
   deadline.  Nor if the run has a timer. */
static int
has_missed(const _PySampling_Thread *thread)
{
    uint64_t from_ns = thread->attached_ns;
    uint64_t end_ns = thread->run_end_ns;
    if (end_ns <= from_ns + _PySampling_WAKE_UP_NS
        || thread->is_timed || STATE->options.manual)
    {
        return 0;
    }
    uint64_t deadline_ns = _Py_atomic_load_uint64_relaxed(&STATE->deadline_ns);
    if (deadline_ns == NO_DEADLINE || deadline_ns < from_ns) {
        // It has had no CPU since the run woke it, or since before the run.
        deadline_ns = _PySampling_DeadlineFrom(_PySampling_OF_CLOCK, from_ns);
    }
    return deadline_ns < end_ns
        && end_ns - deadline_ns > _PySampling_WAKE_UP_NS;
}

void
_PySampling_ClockRunIsOver(_PySampling_Thread *thread)
{
    if (has_missed(thread)) {
        _PySampling_COUNT(ticks_missed, 1);
    }
    uint64_t ran_ns = thread->run_end_ns - thread->attached_ns;
    thread->usual_run_ns -= thread->usual_run_ns / AVERAGE_RUNS;
    thread->usual_run_ns += ran_ns / AVERAGE_RUNS;
}

/* With the registry locked. */
static int
has_threads(void)
{
    for (struct _sampling_interpreter_state *s = STATE->interpreters;
         s != NULL; s = s->next)
    {
        if (s->threads != NULL) {
            return 1;
        }
    }
    return 0;
}

/* Does nobody take part any more?  Then the sampler thread ends, or it would
   keep a process whose last thread has ended: a child that was forked in a
   thread.  If the session goes on, the next thread that takes part starts
   another one. */
static int
is_to_end(struct _sampling_clock *clock)
{
    PyMutex_LockFlags(&STATE->mutex, _Py_LOCK_DONT_DETACH);
    int is_over = !has_threads();
    if (is_over) {
        clock->life = THREAD_ENDS;
    }
    PyMutex_Unlock(&STATE->mutex);
    return is_over;
}

static void *
run_clock(void *arg)
{
    struct _sampling_clock *clock = arg;
    prctl(PR_SET_NAME, "sampleprof");
    prctl(PR_SET_TIMERSLACK, 1);
    _PySampling_AskForPromptWakeUps();
    _PySampling_ProcOpen(&clock->asking.proc);
    begin_anew(clock, _PySampling_MonotonicNow());
    for (;;) {
        uint32_t seen_wakeups = _Py_atomic_load_uint32(&STATE->clock_wakeups);
        uint64_t now_ns = _PySampling_MonotonicNow();
        if (_Py_atomic_load_int(&clock->stop)
            || (_Py_atomic_exchange_int(&clock->is_abandoned, 0)
                && is_to_end(clock)))
        {
            break;
        }
        if (_Py_atomic_exchange_int(&clock->is_changed, 0)) {
            begin_anew(clock, now_ns);
        }
        else if (_Py_atomic_load_int(&clock->is_paused)) {
            _PySampling_WaitUntil(0, seen_wakeups);
        }
        else if (clock->idle_checks >= IDLE_CHECKS) {
            rest(clock, seen_wakeups);
        }
        else if (now_ns < clock->deadline_ns) {
            _PySampling_WaitUntil(clock->deadline_ns, seen_wakeups);
        }
        else {
            check(clock, now_ns);
        }
    }
    _PySampling_ProcClose(&clock->asking.proc);
    return NULL;
}

/* Does not wait until the clock has seen it. */
static void
order(struct _sampling_clock *clock, int stop, int is_paused)
{
    _Py_atomic_store_int(&clock->stop, stop);
    _Py_atomic_store_int(&clock->is_paused, is_paused);
    _Py_atomic_store_int(&clock->is_changed, 1);
    _PySampling_WakeUpSampler();
}


/* Life. */

static int
start_thread(struct _sampling_clock *clock)
{
    return _PySampling_StartThread(&clock->thread, STACK_BYTES, run_clock,
                                   clock);
}

_PySampling_Status
_PySampling_ClockStart(void (*handler)(int, void *, void *))
{
    struct _sampling_clock *clock = calloc(1, sizeof(*clock));
    if (clock == NULL) {
        return _PySampling_ERR_NO_MEMORY;
    }
    STATE->handler = handler;
    if (!_PySampling_SignalTake(&clock->asking.signal)) {
        free(clock);
        return _PySampling_ERR_SIGNAL_TAKEN;
    }
    STATE->clock = clock;
    _PySampling_TimersStart();
    STATE->deadline_seed = _PySampling_MonotonicNow();
    set_deadline(clock, NO_DEADLINE);
    if (STATE->options.manual) {
        return _PySampling_OK;
    }
    int err = start_thread(clock);
    if (err != 0) {
        _PySampling_SignalGiveBack(&clock->asking.signal);
        free(clock);
        STATE->clock = NULL;
        errno = err;
        return _PySampling_ERR_THREAD;
    }
    clock->life = THREAD_RUNS;
    return _PySampling_OK;
}

int
_PySampling_ClockHasThread(void)
{
    return STATE->clock != NULL && STATE->clock->life != NO_THREAD;
}

/* A thread takes part. */
void
_PySampling_ClockRevive(void)
{
    struct _sampling_clock *clock = STATE->clock;
    if (clock == NULL) {
        return;
    }
    if (clock->life == THREAD_ENDS) {
        pthread_join(clock->thread, NULL);
        clock->life = THREAD_LACKS;
    }
    if (clock->life == THREAD_LACKS && start_thread(clock) == 0) {
        // Else the next one tries again; meanwhile time has no ticks.
        clock->life = THREAD_RUNS;
    }
}

/* No ticks from now on.  Called by an attached thread, whose own last signal
   is waited for. */
void
_PySampling_ClockRest(_PySampling_Thread *caller)
{
    if (_PySampling_ClockHasThread()) {
        order(STATE->clock, 0, 1);
    }
    // A tick that is under way holds the registry.
    PyMutex_LockFlags(&STATE->mutex, _Py_LOCK_DONT_DETACH);
    PyMutex_Unlock(&STATE->mutex);
    if (caller != NULL) {
        _PySampling_RunEnd(caller);
    }
}

_PySampling_Status
_PySampling_ClockResume(void)
{
    if (_PySampling_ClockHasThread()) {
        order(STATE->clock, 0, 0);
        _PySampling_ClockRevive();
    }
    return _PySampling_OK;
}

void
_PySampling_ClockSetPeriod(uint64_t period_ns)
{
    _Py_atomic_store_uint64_relaxed(&STATE->period_ns, period_ns);
    if (_PySampling_ClockHasThread()) {
        order(STATE->clock, 0, STATE->clock->is_paused);
    }
}

/* `is_child`: after a fork, which leaves the child none. */
static void
delete_timers(int is_child)
{
    STATE->uses_timers = 0;
    for (struct _sampling_interpreter_state *s = STATE->interpreters;
         s != NULL; s = s->next)
    {
        for (_PySampling_Thread *t = s->threads; t != NULL; t = t->next) {
            if (is_child) {
                _PySampling_TimerForget(t);
            }
            else {
                _PySampling_TimerDelete(t);
            }
        }
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
    // LeaveSignal, Abandon and Revive may be reading it.
    STATE->clock = NULL;
    int has_thread =
        clock->life == THREAD_RUNS || clock->life == THREAD_ENDS;
    delete_timers(0);
    PyMutex_Unlock(&STATE->mutex);
    if (has_thread) {
        order(clock, 1, 0);
        pthread_join(clock->thread, NULL);
    }
    if (caller != NULL) {
        _PySampling_RunEnd(caller);
    }
    _PySampling_SignalGiveBack(&clock->asking.signal);
    free(clock);
}

void
_PySampling_ClockLeaveSignal(void)
{
    struct _sampling_clock *clock = _PyRuntime.sampling.clock;
    if (clock != NULL) {
        _PySampling_SignalLeave(&clock->asking.signal);
    }
}

PyOS_sighandler_t
_PySampling_ClockHandlerOfProgram(PyOS_sighandler_t handler)
{
    struct _sampling_clock *clock = _PyRuntime.sampling.clock;
    return clock == NULL ? handler
        : _PySampling_SignalHandlerOfProgram(&clock->asking.signal, handler);
}

int
_PySampling_ClockAbandon(void)
{
    struct _sampling_clock *clock = STATE->clock;
    // In a child that C code has forked there is no thread to wake.
    if (clock == NULL || clock->life != THREAD_RUNS || has_threads()
        || _PySampling_ForkedWithoutHooks())
    {
        return 0;
    }
    _Py_atomic_store_int(&clock->is_abandoned, 1);
    _PySampling_WakeUpSampler();
    return 1;
}

/* In the child of a fork: the thread is not there any more. */
void
_PySampling_ClockForget(void)
{
    STATE->clock_rests = _PySampling_AWAKE;
    delete_timers(1);
    if (STATE->clock != NULL) {
        _PySampling_SignalGiveBack(&STATE->clock->asking.signal);
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
