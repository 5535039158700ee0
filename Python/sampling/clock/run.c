/* Sampling profiler: the run of a thread, from taking the GIL to giving it up.

   Owns which ticks are due in a run, and the thread's timer.  All of this is
   the thread's own, in its hooks or in the signal handler; what the sampler
   thread does with a run is in clock/ask.c.  Must not know what a capture is.

   A run has one of three kinds of ticks:

   * A run with a timer (`is_timed`).  The thread sets a timer of the kernel
     for the next deadline when the run begins, sets it again at each tick, and
     clears it before the run ends, so no signal meets a system call off the
     GIL.  The timer's interrupt stops the thread at the deadline.  However
     long the signal then takes, the thread stands where it was.
   * A run without one.  The sampler thread asks: most runs of less than
     SHORT_RUN_NS, for to set and to clear a timer takes a few microseconds.
   * An overdue tick, in either.  The sampler thread asked in a run, and that
     had ended when the signal came.  All such ticks reach a thread some
     microseconds after the sampler thread's question, on the axis of the
     thread's own time; so this one is due as long after the beginning of the
     next run as the signal would have come after the end of that one.  Without
     it, the ends of runs had too many ticks and their beginnings none, and
     time off the GIL between short runs was 7 % off.

   Whatever the profiler does is no part of a run: it begins when its timer is
   set, and ends before that is cleared. */

#include "Python.h"

#include "pycore_runtime.h"           // _PyRuntime

#include "inside.h"

#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define STATE (&_PyRuntime.sampling)

/* A thread that usually runs for less gives the GIL up before a timer is worth
   setting: to set one and to clear it takes some microseconds. */
#define SHORT_RUN_NS 20000

/* So many runs of a period may set a timer, on average: that bounds what
   timers cost.  More of them in a crowd, where the sampler thread is late. */
#define RUNS_PER_PERIOD 2
#define CROWDED_RUNS_PER_PERIOD 8

/* How far the beginnings of runs are apart is averaged over so many, and a
   wait counts for so many periods at most. */
#define AVERAGE_DISTANCES 64
#define MAX_DISTANCE_PERIODS 4

/* How long signals are on their way is averaged over so many. */
#define AVERAGE_FLIGHTS 16

/* In how many runs an overdue tick is waited for at safepoints.  If they are
   all too short for it, the end of the first that is not has it. */
#define MAX_OVERDUE_RUNS 1000

/* Timers are later than this only if the thread is, which then is in the
   kernel or waits for a CPU. */
#define MAX_TIMER_LATE_NS 60000

/* To set a timer takes a part of a period, if a small one: the next deadline
   may be over, too. */
#define MAX_TRIES 3

/* Not in every C library's header. */
#ifndef sigev_notify_thread_id
#  define sigev_notify_thread_id _sigev_un._tid
#endif

/* 32-bit systems have a call of its own for times of 64 bits. */
#ifdef SYS_timer_settime64
#  define TIMER_SETTIME SYS_timer_settime64
#else
#  define TIMER_SETTIME SYS_timer_settime
#endif


/* The kernel's timer of a thread. */

/* The kernel counts it against RLIMIT_SIGPENDING, so none is made before it is
   used. */
static int
has_timer(_PySampling_Thread *thread)
{
    struct _sampling_kernel_timer *timer = &thread->timer;
    if (thread->timer_signal != STATE->signal) {
        _PySampling_TimerDelete(thread);
        thread->timer_signal = STATE->signal;
    }
    if (timer->state == _PySampling_NO_TIMER) {
        struct sigevent event = {
            .sigev_notify = SIGEV_THREAD_ID,
            .sigev_signo = thread->timer_signal,
            .sigev_value.sival_ptr = STATE,
        };
        event.sigev_notify_thread_id = thread->native_id;
        int err = (int)syscall(SYS_timer_create, CLOCK_MONOTONIC, &event,
                               &timer->id);
        timer->state =
            err == 0 ? _PySampling_HAS_TIMER : _PySampling_TIMER_REFUSED;
    }
    return timer->state == _PySampling_HAS_TIMER;
}

static int
set_moment(const struct _sampling_kernel_timer *timer, uint64_t moment_ns)
{
    struct {
        int64_t interval_s, interval_ns, value_s, value_ns;
    } value = {
        .value_s = (int64_t)(moment_ns / 1000000000u),
        .value_ns = (int64_t)(moment_ns % 1000000000u),
    };
    return syscall(TIMER_SETTIME, timer->id, TIMER_ABSTIME, &value, NULL) == 0;
}

static void
clear_timer(_PySampling_Thread *thread)
{
    // A child of vfork() has no timers, and shares this memory.
    if (thread->timer.set_ns != 0 && set_moment(&thread->timer, 0)) {
        thread->timer.set_ns = 0;
    }
}

void
_PySampling_TimerForget(_PySampling_Thread *thread)
{
    thread->timer = (struct _sampling_kernel_timer){0};
    _Py_atomic_store_uint64_relaxed(&thread->timer_deadline_ns, 0);
}

void
_PySampling_TimerDelete(_PySampling_Thread *thread)
{
    if (thread->timer.state == _PySampling_HAS_TIMER) {
        syscall(SYS_timer_delete, thread->timer.id);
    }
    _PySampling_TimerForget(thread);
}


/* Deadlines of a run with a timer. */

static uint64_t
deadline_set(const _PySampling_Thread *thread)
{
    return _Py_atomic_load_uint64_relaxed(&thread->timer_deadline_ns);
}

static int
is_due(const _PySampling_Thread *thread, uint64_t now_ns)
{
    uint64_t deadline_ns = deadline_set(thread);
    return deadline_ns != 0 && deadline_ns <= now_ns;
}

/* The deadline is the caller's from here on: 0 if it is somebody else's. */
static uint64_t
take_deadline(_PySampling_Thread *thread)
{
    // One instruction: the signal may come before it or after.
    return _Py_atomic_exchange_uint64(&thread->timer_deadline_ns, 0);
}

static void
set_timer(_PySampling_Thread *thread, uint64_t from_ns)
{
    uint64_t deadline_ns =
        _PySampling_DeadlineFrom(_PySampling_OF_TIMERS, from_ns);
    uint64_t now_ns = _PySampling_MonotonicNow();
    thread->timer_fires_ns = Py_MAX(deadline_ns, now_ns);
    // Before the signal may come.
    _Py_atomic_store_uint64_relaxed(&thread->timer_deadline_ns, deadline_ns);
    _PySampling_FENCE();
    if (!set_moment(&thread->timer, thread->timer_fires_ns)) {
        thread->timer.state = _PySampling_TIMER_REFUSED;
        _Py_atomic_store_uint64_relaxed(&thread->timer_deadline_ns, 0);
        _Py_atomic_store_int_relaxed(&thread->is_timed, 0);
        return;
    }
    thread->timer.set_ns = thread->timer_fires_ns;
}

/* A tick is about to be captured: says what it stands for.  A thread that is
   found late had no CPU at the deadline, as far as can be known: kernels take
   the CPU away at places they prefer, so that says nothing about where CPU
   time is burnt. */
static void
add_span(_PySampling_Thread *thread, uint64_t deadline_ns, uint64_t now_ns)
{
    uint64_t span_ns =
        _PySampling_DeadlineSpan(_PySampling_OF_TIMERS, deadline_ns, now_ns);
    int is_late = now_ns >= deadline_ns + _PySampling_LATE_NS;
    _PySampling_AddSpan(thread, (struct _sampling_time){
        .wall_ns = span_ns, .cpu_ns = is_late ? 0 : span_ns});
    _PySampling_COUNT(ticks, 1);
    _PySampling_COUNT(ticks_timed, 1);
}


/* Which runs have a timer. */

/* A thread whose runs are short is left to the clock until one of them has
   lasted for a while. */
static int
is_short(const _PySampling_Thread *thread, uint64_t now_ns)
{
    return thread->usual_run_ns < SHORT_RUN_NS
        && now_ns - thread->attached_ns < SHORT_RUN_NS;
}

/* Is the run that begins now one of those that may set a timer?  That is
   drawn, by the nanosecond: a choice that depends on how many did so just
   before depends on what ticks took, and one that depends on how near the
   deadline is shortens runs that are near it. */
static int
is_drawn(uint64_t now_ns)
{
    uint64_t period_ns = _PySampling_PeriodNow();
    uint64_t apart_ns = Py_MIN(now_ns - STATE->last_run_ns,
                               MAX_DISTANCE_PERIODS * period_ns);
    STATE->last_run_ns = now_ns;
    STATE->runs_apart_ns -= STATE->runs_apart_ns / AVERAGE_DISTANCES;
    STATE->runs_apart_ns += apart_ns / AVERAGE_DISTANCES;
    int is_crowded = now_ns < _Py_atomic_load_uint64_relaxed(
        &STATE->crowded_until_ns);
    uint64_t part_ns = period_ns / (is_crowded ? CROWDED_RUNS_PER_PERIOD
                                               : RUNS_PER_PERIOD);
    return _PySampling_NextRandom(&now_ns) % part_ns < STATE->runs_apart_ns;
}

/* Sets the timer for the first deadline from that moment on, if the run is to
   have one; `begins`: it begins then, and that has to be drawn, too. */
static void
choose_timer(_PySampling_Thread *thread, uint64_t from_ns, int begins)
{
    int is_timed = _Py_atomic_load_int_relaxed(&STATE->uses_timers)
        && thread->mask != _PySampling_BLOCKS_SIGNAL
        && !is_short(thread, from_ns) && (!begins || is_drawn(from_ns))
        && _PySampling_SignalIsOurs() && has_timer(thread);
    _Py_atomic_store_int_relaxed(&thread->is_timed, is_timed);
    if (is_timed) {
        set_timer(thread, from_ns);
    }
    else {
        _Py_atomic_store_uint64_relaxed(&thread->timer_deadline_ns, 0);
    }
}


/* The run begins. */

/* Sets the timer before that: it is no part of the run.  Until RunOpen() no
   signal captures anything. */
void
_PySampling_RunPrepare(_PySampling_Thread *thread)
{
    thread->is_leaving = 1;
    if (thread->mask != _PySampling_TAKES_SIGNAL) {
        _PySampling_ReadMask(thread);
    }
    uint64_t now_ns = _PySampling_WallNow();
    _Py_atomic_store_uint64_relaxed(&thread->attached_ns, now_ns);
    thread->resumed.frame = NULL;
    thread->visits_ns = 0;
    choose_timer(thread, now_ns, 1);
}

/* A deadline that is over by now is nobody's: it fell into the profiler's own
   work.  `at_once`: nothing was done since RunPrepare() that took time.
   Returns 0 if the clock has to check the run. */
int
_PySampling_RunOpen(_PySampling_Thread *thread, int at_once)
{
    if (at_once && !_Py_atomic_load_int_relaxed(&thread->is_timed)) {
        thread->is_leaving = 0;
        return 0;
    }
    uint64_t now_ns = _PySampling_MonotonicNow();
    for (int i = 0; _Py_atomic_load_int_relaxed(&thread->is_timed)
                    && i < MAX_TRIES && is_due(thread, now_ns); i++)
    {
        set_timer(thread, now_ns);
        now_ns = _PySampling_MonotonicNow();
    }
    _Py_atomic_store_uint64_relaxed(&thread->attached_ns,
                                    _PySampling_WallAt(now_ns));
    thread->is_leaving = 0;
    return _Py_atomic_load_int_relaxed(&thread->is_timed);
}

/* Is the thread to come to its next safepoint for its overdue tick?  Asked
   once a run, before it opens. */
int
_PySampling_RunAwaitsOverdue(_PySampling_Thread *thread)
{
    return thread->overdue.num_runs++ < MAX_OVERDUE_RUNS;
}

/* Is it to come there for a tick whose signal met the profiler's own work? */
int
_PySampling_RunAwaitsDue(const _PySampling_Thread *thread)
{
    uint64_t deadline_ns = deadline_set(thread);
    return deadline_ns != 0 && deadline_ns < thread->timer_fires_ns;
}

/* The run goes on, after a fork or with another signal. */
void
_PySampling_RunResume(_PySampling_Thread *thread)
{
    uint64_t from_ns = take_deadline(thread);
    if (from_ns == 0) {
        from_ns = _PySampling_MonotonicNow();
    }
    choose_timer(thread, from_ns, 0);
    _PySampling_ClockWake(_Py_atomic_load_int_relaxed(&thread->is_timed));
}

/* The clock has checked the thread, which holds the GIL: a run that is long
   need not be checked for ever.  In this period the deadline was the
   clock's: the timer's is in the next.  Async-signal-safe. */
void
_PySampling_RunWasAsked(_PySampling_Thread *thread, uint64_t ticked_ns)
{
    if (!_Py_atomic_load_int_relaxed(&thread->is_timed)) {
        uint64_t period_ns = _PySampling_PeriodNow();
        uint64_t next_ns =
            _PySampling_DeadlineFrom(_PySampling_OF_CLOCK, ticked_ns + 1);
        choose_timer(thread, next_ns / period_ns * period_ns, 0);
    }
}


/* Ticks in the run. */

/* The run goes on after a tick of its timer, for which the thread stopped at
   `ticked_ns`.  A deadline that is over since then is the next one all the
   same. */
void
_PySampling_RunGoOn(_PySampling_Thread *thread, uint64_t ticked_ns)
{
    if (_Py_atomic_load_int_relaxed(&STATE->uses_timers)
        && thread->mask != _PySampling_BLOCKS_SIGNAL)
    {
        set_timer(thread, ticked_ns + 1);
    }
    else {
        clear_timer(thread);
        _Py_atomic_store_int_relaxed(&thread->is_timed, 0);
    }
    if (!_Py_atomic_load_int_relaxed(&thread->is_timed)) {
        // From now on the clock has to check.
        _PySampling_ClockWake(0);
    }
}

/* The timer's signal has come.  Returns the moment at which the thread stopped
   for it, or 0 if there is nothing to capture. */
uint64_t
_PySampling_RunHear(_PySampling_Thread *thread, uint64_t now_ns)
{
    if (now_ns >= thread->timer_fires_ns
        && (thread->is_leaving || thread->in_hook)
        && _Py_atomic_load_int_relaxed(&thread->is_timed))
    {
        // The end of the run takes the tick, if it is due, or a safepoint.
        thread->timer_fires_ns = now_ns + 1;
        return 0;
    }
    _PySampling_COUNT(signals_sent, 1);
    uint64_t deadline_ns = 0;
    if (now_ns >= thread->timer_fires_ns) {
        deadline_ns = take_deadline(thread);
    }
    if (deadline_ns == 0) {
        // It is of a tick that was taken at a safepoint just now.
        _PySampling_COUNT(signals_late, 1);
        return 0;
    }
    int is_late = now_ns >= deadline_ns + _PySampling_LATE_NS;
    uint64_t stopped_ns = is_late ? now_ns : deadline_ns;
    add_span(thread, deadline_ns, stopped_ns);
    return stopped_ns;
}

/* The clock's signal meets a thread that gives the GIL up: its tick is
   overdue.  How long a signal is on its way before it stops the thread is seen
   of those that are when a run ends.  Runs end at any moment, so on average
   half of the way is behind a signal then. */
void
_PySampling_RunPutOff(_PySampling_Thread *thread)
{
    uint64_t end_ns = thread->run_end_ns;
    uint64_t sent_ns = _Py_atomic_load_uint64_relaxed(&thread->sent_ns);
    uint64_t way_ns = end_ns - Py_MIN(end_ns, sent_ns);
    if (way_ns != 0 && way_ns < _PySampling_LATE_NS) {
        if (thread->flight_ns == 0) {
            thread->flight_ns = 2 * way_ns;
        }
        thread->flight_ns -= thread->flight_ns / AVERAGE_FLIGHTS;
        thread->flight_ns += 2 * way_ns / AVERAGE_FLIGHTS;
    }
    uint64_t stopped_ns = sent_ns + thread->flight_ns;
    uint64_t after_ns = stopped_ns > end_ns ? stopped_ns - end_ns : 1;
    // Longer, and the sampler thread had no CPU.
    thread->overdue.after_ns = Py_MIN(after_ns, _PySampling_LATE_NS);
    thread->overdue.num_runs = 0;
    // What is captured until then stands for itself.
    _PySampling_AddTime(&thread->overdue.span, _PySampling_TakeSpan(thread));
    _PySampling_COUNT(signals_overdue, 1);
}

/* In this run. */
static uint64_t
overdue_ns(const _PySampling_Thread *thread)
{
    return thread->attached_ns + thread->visits_ns + thread->overdue.after_ns;
}

static int
take_overdue(_PySampling_Thread *thread, uint64_t now_ns)
{
    if (!_PySampling_HAS_OVERDUE(thread) || now_ns < overdue_ns(thread)) {
        return 0;
    }
    _PySampling_AddSpan(thread, thread->overdue.span);
    thread->overdue = (struct _sampling_overdue){0};
    return 1;
}

/* The thread has come to a safepoint: does it only wait for a tick that is not
   due yet?  What safepoints take of the run is none of it: the clock is read
   twice, and that is all they do. */
int
_PySampling_RunOnlyWaits(_PySampling_Thread *thread)
{
    if (!_PySampling_HAS_OVERDUE(thread) && !_PySampling_RunAwaitsDue(thread))
    {
        return 0;
    }
    uint64_t came_ns = _PySampling_MonotonicNow();
    if (is_due(thread, came_ns)
        || (_PySampling_HAS_OVERDUE(thread)
            && came_ns >= overdue_ns(thread)))
    {
        return 0;
    }
    thread->visits_ns += 2 * (_PySampling_MonotonicNow() - came_ns);
    return 1;
}

/* At a safepoint: is a tick due?  Then it is the caller's to capture. */
int
_PySampling_RunTakeDue(_PySampling_Thread *thread, uint64_t now_ns)
{
    if (take_overdue(thread, now_ns)) {
        return 1;
    }
    if (!is_due(thread, now_ns)) {
        return 0;
    }
    uint64_t deadline_ns = take_deadline(thread);
    if (deadline_ns == 0) {
        return 0;       // the signal came just before
    }
    if (deadline_ns <= now_ns) {
        add_span(thread, deadline_ns, now_ns);
        _PySampling_COUNT(ticks_own, 1);
    }
    // Else the signal came first, and has set the timer again.
    _PySampling_RunGoOn(thread, now_ns);
    return deadline_ns <= now_ns;
}


/* The run ends. */

/* Has a signal not come that is due for long?  The thread would have set the
   timer again. */
static int
timer_is_late(const _PySampling_Thread *thread)
{
    uint64_t fired_ns = thread->timer.set_ns;
    return fired_ns != 0
        && _PySampling_MonotonicNow() > fired_ns + MAX_TIMER_LATE_NS;
}

/* Takes back a signal of the timer that the thread blocks.  Not once the timer
   is clear: the kernel drops it then, or has it wait on, as it is newer or
   older than Linux 6.13. */
static void
take_back_signal(_PySampling_Thread *thread)
{
    if (thread->timer.set_ns != 0
        && (thread->mask == _PySampling_BLOCKS_SIGNAL
            || timer_is_late(thread))
        && _PySampling_BlocksSignal(thread->timer_signal))
    {
        _Py_atomic_store_int(&thread->mask, _PySampling_BLOCKS_SIGNAL);
        while (_PySampling_TakeBackSignal(thread, thread->timer_signal)) {
            _PySampling_COUNT(signals_sent, 1);
            _PySampling_COUNT(signals_unanswered, 1);
        }
    }
}

/* At a safepoint the thread says whether it blocks a pending signal. */
void
_PySampling_RunSayMask(_PySampling_Thread *thread)
{
    if (thread->mask == _PySampling_BLOCKS_SIGNAL) {
        _PySampling_ReadMask(thread);
    }
    take_back_signal(thread);
    _PySampling_TakeBackIfBlocked(thread);
}

/* On the thread, which has made itself invisible to the clock: returns when
   no signal is on its way to it, and whether one may have been. */
int
_PySampling_RunEnd(_PySampling_Thread *thread)
{
    thread->run_end_ns = _PySampling_WallNow();
    thread->drained_ns = 0;
    thread->is_leaving = 1;
    _PySampling_FENCE();
    int is_timed = thread->timer.set_ns != 0;
    if (is_timed) {
        take_back_signal(thread);
        clear_timer(thread);
    }
    int is_asked = _Py_atomic_load_int(&thread->asked)
                   != _PySampling_NOT_ASKED;
    if (is_asked) {
        _PySampling_AwaitAnswer(thread);
    }
    _PySampling_FENCE();
    thread->is_leaving = 0;
    return is_timed || is_asked;
}

/* After RunEnd(): is a tick due that no signal came for?  It is the caller's
   to capture.  An overdue tick that is not due, and was not put off in this
   very run, goes on to the next run. */
int
_PySampling_RunTakeLast(_PySampling_Thread *thread, int was_overdue)
{
    uint64_t end_ns = thread->run_end_ns;
    int num_due = was_overdue && take_overdue(thread, end_ns);
    if (was_overdue && num_due == 0) {
        uint64_t left_ns =
            overdue_ns(thread) - Py_MIN(overdue_ns(thread), end_ns);
        thread->overdue.after_ns =
            Py_MAX(Py_MIN(left_ns, thread->overdue.after_ns), 1);
    }
    uint64_t deadline_ns = take_deadline(thread);
    if (deadline_ns != 0 && deadline_ns <= end_ns) {
        add_span(thread, deadline_ns, end_ns);
        _PySampling_COUNT(ticks_own, 1);
        num_due++;
    }
    return num_due != 0;
}
