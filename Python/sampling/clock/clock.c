/* Sampling profiler: WHEN to sample.

   Owns the sampler thread, its deadlines, when it ticks and when it rests.
   Must not know what a tick does, frames, stacks or tables.

   The sampler thread is no Python thread: it has no thread state, takes no
   GIL and allocates nothing through Python.  Each deadline is a
   tick for all threads that may have changed since the last (clock/tick.c).
   Where there are none it rests: it costs a program that waits nothing.  A
   thread that is to get ticks again wakes it; the deadlines were there all the
   while, so that no moment is favoured. */

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

/* After that many ticks in a row for nobody the clock rests.  Threads that wait
   for shorter need not wake it. */
#define IDLE_TICKS 4

/* How late ticks are is averaged over so many. */
#define AVERAGE_TICKS 16

/* The sampler thread's stack: its deepest call is snprintf(). */
#define STACK_BYTES (128 * 1024)

/* What the profiler takes is compared with the CPU time of the program so
   often; less than so much harms nobody. */
#define CHECK_NS 1000000000u
#define LEAST_OWN_NS 10000000u
#define PARTS 1000000u

/* The period doubles so often at most, a sixteenth of the rate; and it is
   halved again after so many checks with so little: two fifths of what may be
   taken, as it will be twice as much. */
#define MAX_STEPS 4
#define CALM_CHECKS 10
#define CALM_FIFTHS 2

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
    int idle_ticks;             // in a row
    uint64_t counted_cpu_ns;    // of its own thread
    struct {
        uint64_t checked_ns;    // the last check; 0: there was none
        uint64_t cpu_ns;        // of the process, then
        uint64_t own_ns;        // of the profiler, by its own account
        int steps;              // that the period has been doubled
        uint64_t was_part;      // taken before a step that is not judged yet
        int in_vain;            // the last step lowered it by too little
        int calm_checks;        // in a row
    } bound;
    struct _sampling_ticker ticker;
};


/* The sampler thread. */

static uint64_t
own_ns(void)
{
    return _Py_atomic_load_uint64_relaxed(
               &STATE->counters.overhead_capture_ns)
           + _Py_atomic_load_uint64_relaxed(
               &STATE->counters.overhead_drain_ns)
           + _Py_atomic_load_uint64_relaxed(
               &STATE->counters.overhead_hooks_ns)
           + _Py_atomic_load_uint64_relaxed(
               &STATE->counters.overhead_clock_ns);
}

static void
count_own_cpu(struct _sampling_clock *clock)
{
    uint64_t cpu_ns = _PySampling_OwnCpuNow();
    _PySampling_COUNT(overhead_clock_ns, cpu_ns - clock->counted_cpu_ns);
    clock->counted_cpu_ns = cpu_ns;
}

static void
step(struct _sampling_clock *clock, uint64_t now_ns, int is_slower)
{
    _PySampling_LockRegistry();
    uint64_t period_ns = _PySampling_PeriodNow();
    _PySampling_DeadlinesChange(is_slower ? 2 * period_ns : period_ns / 2);
    _PySampling_UnlockRegistry();
    clock->bound.steps += is_slower ? 1 : -1;
    clock->bound.calm_checks = 0;
    clock->deadline_ns = _PySampling_DeadlineAfter(now_ns);
    _PySampling_COUNT(rate_lowered, is_slower);
    _PySampling_COUNT(rate_raised, !is_slower);
}

/* What the profiler takes is to be no more than a share of the CPU time: the
   rate gives way.  Weights are times, and true at each rate.  What it takes
   need not fall with the rate, where threads wait for a CPU: after a step that
   lowered it by less than a fifth there is none until it is within bounds. */
static void
keep_bound(struct _sampling_clock *clock, uint64_t now_ns)
{
    uint64_t percent = (uint64_t)_Py_atomic_load_int_relaxed(
        &STATE->options.overhead_percent);
    if (percent == 0 || now_ns - clock->bound.checked_ns < CHECK_NS) {
        return;
    }
    uint64_t cpu_ns = _PySampling_ProcessCpuNow() - clock->bound.cpu_ns;
    uint64_t took_ns = own_ns();
    int is_known = clock->bound.checked_ns != 0
        && took_ns >= clock->bound.own_ns;      // else counted anew
    took_ns -= clock->bound.own_ns;
    clock->bound.checked_ns = now_ns;
    clock->bound.cpu_ns += cpu_ns;
    clock->bound.own_ns += took_ns;
    if (!is_known) {
        return;
    }
    if (took_ns > LEAST_OWN_NS && 100 * took_ns > percent * cpu_ns) {
        uint64_t part = PARTS * took_ns / Py_MAX(cpu_ns, 1);
        if (clock->bound.was_part != 0) {
            clock->bound.in_vain = 5 * part > 4 * clock->bound.was_part;
            clock->bound.was_part = 0;
        }
        clock->bound.calm_checks = 0;
        if (!clock->bound.in_vain && clock->bound.steps < MAX_STEPS) {
            clock->bound.was_part = part;
            step(clock, now_ns, 1);
        }
        return;
    }
    clock->bound.was_part = 0;
    clock->bound.in_vain = 0;
    if (clock->bound.steps == 0
        || 500 * took_ns > CALM_FIFTHS * percent * cpu_ns)
    {
        clock->bound.calm_checks = 0;
    }
    else if (++clock->bound.calm_checks >= CALM_CHECKS) {
        step(clock, now_ns, 0);
    }
}

static void
tick(struct _sampling_clock *clock, uint64_t now_ns)
{
    uint64_t late_ns = now_ns - clock->deadline_ns;
    if (late_ns < _PySampling_LATE_NS) {
        uint64_t usual_ns = STATE->late_ns;
        _Py_atomic_store_uint64_relaxed(
            &STATE->late_ns,
            usual_ns - usual_ns / AVERAGE_TICKS + late_ns / AVERAGE_TICKS);
    }
    else {
        // A clock that gets its CPU late has one tick for all that was due.
        uint64_t due_ns = _PySampling_DeadlinesUntil(now_ns);
        uint64_t first_ns = _PySampling_DeadlinesUntil(clock->deadline_ns);
        _PySampling_COUNT(ticks_late, (due_ns - Py_MIN(due_ns, first_ns))
                                      / _PySampling_PeriodNow());
    }
    clock->deadline_ns = _PySampling_DeadlineAfter(now_ns);
    int num_ticked = 0;
    _PySampling_LockRegistry();
    if (_PySampling_ACTIVE() && !_Py_atomic_load_int(&clock->is_paused)) {
        _PySampling_SignalCheckOwner(&clock->ticker.signal);
        num_ticked = _PySampling_TickAll(&clock->ticker);
        _PySampling_COUNT(ticks, 1);
        _PySampling_COUNT(ticks_idle, num_ticked == 0);
    }
    _PySampling_UnlockRegistry();
    clock->idle_ticks = num_ticked == 0 ? clock->idle_ticks + 1 : 0;
    count_own_cpu(clock);
    keep_bound(clock, now_ns);
}

static int
is_idle(void)
{
    _PySampling_LockRegistry();
    int is_idle = STATE->ticked == NULL
        && _Py_atomic_load_ptr(&STATE->returned) == NULL;
    _PySampling_UnlockRegistry();
    return is_idle;
}

/* Until a thread is to get ticks, or the clock gets an order. */
static void
rest(struct _sampling_clock *clock, uint32_t seen_wakeups)
{
    // Who is to get ticks says so, then asks whether the clock rests; here
    // it is the other way round.  One of both sees the other.
    _Py_atomic_store_int(&STATE->clock_rests, 1);
    if (is_idle()) {
        _PySampling_WaitUntil(0, seen_wakeups);
    }
    _Py_atomic_store_int(&STATE->clock_rests, 0);
    clock->idle_ticks = 0;
    clock->deadline_ns =
        _PySampling_DeadlineAfter(_PySampling_WallNow());
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
    _PySampling_ProcOpen(&clock->ticker.proc);
    clock->deadline_ns =
        _PySampling_DeadlineAfter(_PySampling_WallNow());
    for (;;) {
        uint32_t seen_wakeups = _Py_atomic_load_uint32(&STATE->clock_wakeups);
        uint64_t now_ns = _PySampling_WallNow();
        if (_Py_atomic_load_int(&clock->stop)
            || (_Py_atomic_exchange_int(&clock->is_abandoned, 0)
                && is_to_end(clock)))
        {
            break;
        }
        if (_Py_atomic_exchange_int(&clock->is_changed, 0)) {
            clock->deadline_ns = _PySampling_DeadlineAfter(now_ns);
        }
        else if (_Py_atomic_load_int(&clock->is_paused)) {
            _PySampling_WaitUntil(0, seen_wakeups);
        }
        else if (clock->idle_ticks >= IDLE_TICKS) {
            rest(clock, seen_wakeups);
        }
        else if (now_ns < clock->deadline_ns) {
            _PySampling_WaitUntil(clock->deadline_ns, seen_wakeups);
        }
        else {
            tick(clock, now_ns);
        }
    }
    _PySampling_ProcClose(&clock->ticker.proc);
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
    if (!_PySampling_SignalTake(&clock->ticker.signal)) {
        free(clock);
        return _PySampling_ERR_SIGNAL_TAKEN;
    }
    STATE->clock = clock;
    STATE->late_ns = 0;
    if (STATE->options.manual) {
        return _PySampling_OK;
    }
    int err = start_thread(clock);
    if (err != 0) {
        _PySampling_SignalGiveBack(&clock->ticker.signal);
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
    // Else the sampler thread may change it meanwhile.
    PyMutex_LockFlags(&STATE->mutex, _Py_LOCK_DONT_DETACH);
    _PySampling_DeadlinesChange(period_ns);
    if (STATE->clock != NULL) {
        STATE->clock->bound.steps = 0;
    }
    PyMutex_Unlock(&STATE->mutex);
    if (_PySampling_ClockHasThread()) {
        order(STATE->clock, 0, STATE->clock->is_paused);
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
    PyMutex_Unlock(&STATE->mutex);
    if (has_thread) {
        order(clock, 1, 0);
        pthread_join(clock->thread, NULL);
    }
    if (caller != NULL) {
        _PySampling_RunEnd(caller);
    }
    _PySampling_SignalGiveBack(&clock->ticker.signal);
    free(clock);
}

void
_PySampling_ClockLeaveSignal(void)
{
    struct _sampling_clock *clock = _PyRuntime.sampling.clock;
    if (clock != NULL) {
        _PySampling_SignalLeave(&clock->ticker.signal);
    }
}

PyOS_sighandler_t
_PySampling_ClockHandlerOfProgram(PyOS_sighandler_t handler)
{
    struct _sampling_clock *clock = _PyRuntime.sampling.clock;
    return clock == NULL ? handler
        : _PySampling_SignalHandlerOfProgram(&clock->ticker.signal, handler);
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
    STATE->clock_rests = 0;
    if (STATE->clock != NULL) {
        _PySampling_SignalGiveBack(&STATE->clock->ticker.signal);
        free(STATE->clock);
        STATE->clock = NULL;
    }
}

/* A tick of a manual session. */
void
_PySampling_ClockTick(void)
{
    _PySampling_SignalCheckOwner(&STATE->clock->ticker.signal);
    (void)_PySampling_TickAll(&STATE->clock->ticker);
    _PySampling_COUNT(ticks, 1);
}
