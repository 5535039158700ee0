/* Sampling profiler: a tick that reaches the thread by a timer of its own.

   Owns when the timers of threads (clock/kernel_timers.c) are set, for which
   deadlines (clock/deadlines.c), and who takes a tick that is due, of a timer
   or of the thread's own (clock/own.c).  Must not know what a capture is, how
   the sampler thread asks, or whether timers are used (clock/trial.c).

   The sampler thread has to get a CPU before it can ask.  On one CPU it takes
   that of the thread it wants to ask, and the kernel then chooses anew who
   runs; a run that has just begun has the CPU before it.  A timer's interrupt
   needs no CPU of anybody: it sends the signal to the thread wherever it
   stands.  So a thread that gets the GIL sets a timer for the next deadline,
   sets it again at each tick, and clears it before it gives the GIL up, which
   is why no system call off the GIL is ever cut short.

   The timer's interrupt stops the thread at the deadline.  However long the
   signal then takes, which is 15 to 50 microseconds on a virtual machine, the
   thread stands where it was; a timer set earlier by as much would stop runs
   that end before their deadlines, and they would be longer for it, and
   sampled too often.  To set and to clear a timer is no part of a run either,
   for the same reason.  A tick whose signal did not come before the end of the
   run is due at the end. */

#include "Python.h"

#include "pycore_runtime.h"           // _PyRuntime

#include "clock.h"
#include "inside.h"

#define STATE (&_PyRuntime.sampling)

/* Setting a timer takes 0.5 to 5 microseconds.  So many runs of a period may
   do that, on average. */
#define RUNS_PER_PERIOD 8

/* How far the beginnings of runs are apart is averaged over so many, and a wait
   counts for so many periods at most. */
#define AVERAGE_DISTANCES 64
#define MAX_DISTANCE_PERIODS 4

/* How long a thread usually runs is averaged over so many runs. */
#define AVERAGE_RUNS 8

/* Timers are later than this only if the thread is, which then is in the
   kernel or waits for a CPU. */
#define MAX_TIMER_LATE_NS 60000

/* To set a timer takes a part of a period, if a small one: the next deadline
   may be over, too. */
#define MAX_TRIES 3


/* A run. */

/* The thread's signal for that deadline is on its way. */
static void
await_deadline(_PySampling_Thread *thread, uint64_t deadline_ns,
               uint64_t fires_ns)
{
    thread->timer_fires_ns = fires_ns;
    // Before the signal may come.
    _Py_atomic_store_uint64_relaxed(&thread->timer_deadline_ns, deadline_ns);
    _PySampling_FENCE();
}

static void
set_timer(_PySampling_Thread *thread, uint64_t deadline_ns)
{
    uint64_t now_ns = _PySampling_MonotonicNow();
    await_deadline(thread, deadline_ns, Py_MAX(deadline_ns, now_ns));
    if (!_PySampling_KernelTimerSet(thread, thread->timer_fires_ns)) {
        _Py_atomic_store_uint64_relaxed(&thread->timer_deadline_ns, 0);
        _Py_atomic_store_int_relaxed(&thread->is_timed, 0);
    }
}

/* The deadline is the caller's from here on: 0 if it is somebody else's. */
static uint64_t
take_deadline(_PySampling_Thread *thread)
{
    // One instruction: the signal may come before it or after.
    return _Py_atomic_exchange_uint64(&thread->timer_deadline_ns, 0);
}

/* Deadlines are moments of the program's work: what timers take of its time
   puts off all that follow.  Else there would be the more of them at a place
   the more ticks were before it.  And to set and clear a timer takes longer if
   no other of the CPU's is due before it: so runs began later, and were met
   less often, the nearer the deadline was. */
static uint64_t
timer_deadline_from(_PySampling_Thread *thread, uint64_t from_ns)
{
    return _PySampling_DeadlineFrom(_PySampling_OF_TIMERS,
                                    from_ns - thread->put_off_ns)
           + thread->put_off_ns;
}

/* The handler has served a tick, which took so long.  When the run's next
   deadline was put off for it, that was not known. */
void
_PySampling_TimerTook(_PySampling_Thread *thread, uint64_t tick_ns)
{
    // Longer, and the thread waited for a CPU.
    if (tick_ns < _PySampling_LATE_NS) {
        thread->tick_ns = tick_ns;
        thread->timer_took_ns += tick_ns;
    }
}

/* A tick is about to be captured: says what it stands for.  Whether the run
   was timed is to be asked before the deadline is taken, since the clock may
   give the thread up at any moment.  A thread that is found late had no CPU at
   the deadline, as far as can be known: kernels take the CPU away at places
   they prefer, so that says nothing about where CPU time is burnt. */
static void
add_span(_PySampling_Thread *thread, int is_timed, uint64_t deadline_ns,
         uint64_t now_ns)
{
    uint64_t span_ns;
    if (is_timed) {
        uint64_t put_off_ns = thread->put_off_ns;
        span_ns = _PySampling_DeadlineSpan(_PySampling_OF_TIMERS,
                                           deadline_ns - put_off_ns,
                                           now_ns - put_off_ns);
    }
    else {
        // Those that follow are the clock's to look at.
        span_ns = _PySampling_DeadlineSpan(
            _PySampling_OF_CLOCK, deadline_ns,
            Py_MIN(now_ns, _PySampling_LookedAtFrom(thread) - 1));
    }
    int is_late = now_ns >= deadline_ns + _PySampling_LATE_NS;
    _PySampling_AddSpan(thread, (struct _sampling_time){
        .wall_ns = span_ns, .cpu_ns = is_late ? 0 : span_ns});
    _PySampling_COUNT(ticks, 1);
}

/* A thread whose runs are short is left to the clock until one of them has
   lasted for a while. */
static int
is_short(const _PySampling_Thread *thread, uint64_t now_ns)
{
    return thread->usual_run_ns < _PySampling_SHORT_RUN_NS
        && now_ns - thread->attached_ns < _PySampling_SHORT_RUN_NS;
}

/* Is the run that begins now one of those that may set a timer?  That is drawn,
   by the nanosecond.  A choice that depends on how many did so just before
   depends on what ticks took, and so a thread changes from the deadlines of
   the clock to those of timers when it has been looked at: in such a period it
   has too many. */
static int
is_drawn(uint64_t now_ns)
{
    uint64_t period_ns = _PySampling_PeriodNow();
    uint64_t apart_ns = Py_MIN(now_ns - STATE->last_run_ns,
                               MAX_DISTANCE_PERIODS * period_ns);
    STATE->last_run_ns = now_ns;
    STATE->runs_apart_ns -= STATE->runs_apart_ns / AVERAGE_DISTANCES;
    STATE->runs_apart_ns += apart_ns / AVERAGE_DISTANCES;
    uint64_t part_ns = period_ns / RUNS_PER_PERIOD;
    return _PySampling_NextRandom(&now_ns) % part_ns < STATE->runs_apart_ns;
}

/* A run whose deadlines have to be set once more. */
static void
set_deadline(_PySampling_Thread *thread, uint64_t from_ns)
{
    if (_Py_atomic_load_int_relaxed(&thread->is_timed)) {
        set_timer(thread, timer_deadline_from(thread, from_ns));
    }
    else {
        _PySampling_OwnSet(thread, from_ns);
    }
}

/* Does the thread have a timer from that moment on?  If it begins a run then,
   that has to be drawn, too. */
static int
choose_timer(_PySampling_Thread *thread, uint64_t from_ns, int begins)
{
    int is_timed = _Py_atomic_load_int_relaxed(&STATE->uses_timers)
        && _Py_atomic_load_int_relaxed(&thread->deaf_ticks) == 0
        && !is_short(thread, from_ns) && (!begins || is_drawn(from_ns))
        && _PySampling_SignalIsOurs() && _PySampling_HasKernelTimer(thread);
    _Py_atomic_store_int_relaxed(&thread->is_timed, is_timed);
    return is_timed;
}

/* Sets one for the first deadline from that moment on, if so. */
static void
begin_timer(_PySampling_Thread *thread, uint64_t from_ns, int begins)
{
    if (choose_timer(thread, from_ns, begins)) {
        thread->put_off_ns = STATE->put_off_ns;
        set_timer(thread, timer_deadline_from(thread, from_ns));
    }
}

/* The clock has looked at the thread, which holds the GIL: from now on it may
   have a timer, unless a deadline of its own is still to come.  In each period
   of the clock its deadlines hold, or those of timers: who changes from one to
   the other at a deadline has too many.  Async-signal-safe. */
void
_PySampling_TimerBeginAfter(_PySampling_Thread *thread, uint64_t ticked_ns)
{
    if (_PySampling_HAS_TICK(thread)) {
        return;
    }
    uint64_t period_ns = _PySampling_PeriodNow();
    uint64_t next_ns =
        _PySampling_DeadlineFrom(_PySampling_OF_CLOCK, ticked_ns + 1);
    begin_timer(thread, next_ns / period_ns * period_ns, 0);
}

/* Sets the timer before a run begins: that is no part of it.  Until
   TimerOpen() no signal captures anything. */
void
_PySampling_TimerBeginRun(_PySampling_Thread *thread)
{
    thread->is_leaving = 1;
    uint64_t now_ns = _PySampling_WallNow();
    _Py_atomic_store_uint64_relaxed(&thread->attached_ns, now_ns);
    begin_timer(thread, now_ns, 1);
}

/* The run begins, near a deadline of its own or not.  One that is over by now
   is nobody's: it fell into the profiler's own work.  Returns 0 if the clock
   has to look. */
int
_PySampling_TimerOpen(_PySampling_Thread *thread, int is_near)
{
    uint64_t now_ns = _PySampling_MonotonicNow();
    int is_timed = _Py_atomic_load_int_relaxed(&thread->is_timed);
    for (int i = 0; is_timed && i < MAX_TRIES
                    && _PySampling_TimerIsDue(thread, now_ns); i++)
    {
        set_deadline(thread, now_ns);
        now_ns = _PySampling_MonotonicNow();
    }
    uint64_t begin_ns = _PySampling_WallAt(now_ns);
    thread->timer_took_ns += begin_ns - thread->attached_ns;
    _Py_atomic_store_uint64_relaxed(&thread->attached_ns, begin_ns);
    if (is_near) {
        _PySampling_OwnSet(thread, now_ns);
    }
    else if (!is_timed) {
        _Py_atomic_store_uint64_relaxed(&thread->timer_deadline_ns, 0);
    }
    thread->is_leaving = 0;
    return _Py_atomic_load_int_relaxed(&thread->is_timed);
}

/* The next deadline is the one that a timer was set ahead for. */
static void
take_ahead(_PySampling_Thread *thread)
{
    uint64_t deadline_ns = _PySampling_KernelTimerAhead(thread);
    thread->put_off_ns = thread->ahead_put_off_ns;
    _PySampling_KernelTimerTakeAhead(thread);
    await_deadline(thread, deadline_ns, deadline_ns);
    uint64_t now_ns = _PySampling_MonotonicNow();
    if (now_ns >= deadline_ns) {
        // Its signal may have come just before it was awaited.
        thread->timer_fires_ns = now_ns + 1;
    }
}

/* A tick puts off the deadlines that follow, which are `next_ns` and so on if
   there are no ticks.  From the second tick of a run on, for most runs end
   before that, the other timer is set for the one after the next: as far off
   as it is if the next tick is in time, and takes what the last one took. */
static void
go_on_timed(_PySampling_Thread *thread, uint64_t ticked_ns)
{
    uint64_t put_off_ns = thread->put_off_ns;
    uint64_t next_ns = _PySampling_DeadlineFrom(_PySampling_OF_TIMERS,
                                                ticked_ns - put_off_ns + 1);
    if (_PySampling_KernelTimerAhead(thread)
        == next_ns + thread->ahead_put_off_ns)
    {
        take_ahead(thread);
    }
    else {
        thread->put_off_ns += thread->tick_ns;
        set_timer(thread, next_ns + thread->put_off_ns);
    }
    if (put_off_ns != STATE->put_off_ns
        && _PySampling_DeadlineSetFor(thread) != 0)
    {
        thread->ahead_put_off_ns = thread->put_off_ns + thread->tick_ns;
        _PySampling_KernelTimerSetAhead(
            thread,
            _PySampling_DeadlineFrom(_PySampling_OF_TIMERS, next_ns + 1)
                + thread->ahead_put_off_ns);
    }
}

/* The run goes on after a tick, for which the thread stopped at `ticked_ns`.
   A deadline that is over since then is the next one all the same. */
void
_PySampling_TimerGoOn(_PySampling_Thread *thread, uint64_t ticked_ns)
{
    int was_timed = _Py_atomic_load_int_relaxed(&thread->is_timed);
    if (was_timed && _Py_atomic_load_int_relaxed(&STATE->uses_timers)) {
        go_on_timed(thread, ticked_ns);
    }
    else {
        _PySampling_KernelTimersClear(thread);
        _Py_atomic_store_int_relaxed(&thread->is_timed, 0);
        _PySampling_OwnSet(thread, ticked_ns + 1);
    }
    if (was_timed && !_Py_atomic_load_int_relaxed(&thread->is_timed)) {
        // From now on the clock has to look.
        _PySampling_ClockWake(0);
    }
}

/* Was the deadline over when the timer was set? */
int
_PySampling_TimerIsSoon(_PySampling_Thread *thread)
{
    uint64_t deadline_ns = _PySampling_DeadlineSetFor(thread);
    return deadline_ns != 0 && deadline_ns < thread->timer_fires_ns;
}

/* At a safepoint: takes the tick that is due, whose signal comes too late.
   Returns 0 if none is. */
int
_PySampling_TimerTakeDue(_PySampling_Thread *thread, uint64_t now_ns)
{
    if (!_PySampling_TimerIsDue(thread, now_ns)) {
        return 0;
    }
    int is_timed = _Py_atomic_load_int_relaxed(&thread->is_timed);
    uint64_t deadline_ns = take_deadline(thread);
    if (deadline_ns == 0) {
        return 0;
    }
    if (deadline_ns > now_ns) {
        // The signal came first, and has set the timer again.
        _PySampling_TimerGoOn(thread, now_ns);
        return 0;
    }
    add_span(thread, is_timed, deadline_ns, now_ns);
    _PySampling_COUNT(ticks_own, 1);
    _PySampling_TimerGoOn(thread, now_ns);
    return 1;
}

/* The signal has come.  Returns the moment at which the thread stopped for it,
   or 0 if there is nothing to capture. */
uint64_t
_PySampling_TimerHear(_PySampling_Thread *thread, uint64_t now_ns)
{
    if (now_ns < thread->timer_fires_ns
        || !_Py_atomic_load_int_relaxed(&thread->is_timed))
    {
        // It is of a tick that was taken at a safepoint just now, or the
        // thread was late and its deadlines are the clock's.
        _PySampling_COUNT(signals_sent, 1);
        _PySampling_COUNT(signals_late, 1);
        return 0;
    }
    if (thread->is_leaving || thread->in_hook) {
        // The end of the run takes the tick, if it is due, or a safepoint.
        thread->timer_fires_ns = now_ns + 1;
        return 0;
    }
    uint64_t deadline_ns = take_deadline(thread);
    if (deadline_ns == 0) {
        _PySampling_COUNT(signals_sent, 1);
        _PySampling_COUNT(signals_late, 1);
        return 0;
    }
    int is_late = now_ns >= deadline_ns + _PySampling_LATE_NS;
    uint64_t stopped_ns = is_late ? now_ns : deadline_ns;
    add_span(thread, 1, deadline_ns, stopped_ns);
    _PySampling_COUNT(signals_sent, 1);
    return stopped_ns;
}

/* Has a signal not come that is due for long?  Heard of it, the thread would
   have set the timer again. */
int
_PySampling_TimerIsLate(const _PySampling_Thread *thread)
{
    uint64_t fired_ns = _PySampling_KernelTimerNext(thread);
    return fired_ns != 0
        && _PySampling_MonotonicNow() > fired_ns + MAX_TIMER_LATE_NS;
}

/* The run ends: no signal comes any more when this returns.  The clock may
   have taken the deadline, but does not know which timers are set.  The thread
   `is_leaving`. */
void
_PySampling_TimerEnd(_PySampling_Thread *thread)
{
    _PySampling_KernelTimersClear(thread);
}

/* After TimerEnd(): is a tick due that no signal came for?  It is the caller's
   to capture. */
int
_PySampling_TimerTakeLast(_PySampling_Thread *thread)
{
    int is_timed = _Py_atomic_load_int_relaxed(&thread->is_timed);
    uint64_t deadline_ns = take_deadline(thread);
    if (deadline_ns == 0 || deadline_ns > thread->run_end_ns) {
        return 0;
    }
    add_span(thread, is_timed, deadline_ns, thread->run_end_ns);
    _PySampling_COUNT(ticks_own, 1);
    return 1;
}

/* The thread is about to give the GIL up: learns how long it usually holds it,
   and what its timer has taken of the program's time.  All that is added here
   is over, so no deadline is met again. */
void
_PySampling_TimerRan(_PySampling_Thread *thread)
{
    uint64_t ran_ns = thread->run_end_ns - thread->attached_ns;
    thread->usual_run_ns -= thread->usual_run_ns / AVERAGE_RUNS;
    thread->usual_run_ns += ran_ns / AVERAGE_RUNS;
    if (_Py_atomic_load_int_relaxed(&thread->is_timed)) {
        STATE->put_off_ns += thread->timer_took_ns
                             + _PySampling_WallNow() - thread->run_end_ns;
    }
    thread->timer_took_ns = 0;
}

/* The run goes on all the same, after a fork or with another signal. */
void
_PySampling_TimerResume(_PySampling_Thread *thread)
{
    uint64_t from_ns = take_deadline(thread);
    if (from_ns == 0) {
        from_ns = _PySampling_MonotonicNow();
    }
    (void)choose_timer(thread, from_ns, 0);
    set_deadline(thread, from_ns);
    _PySampling_ClockWake(_Py_atomic_load_int_relaxed(&thread->is_timed));
}

/* Has the thread left a signal unanswered for long?  On the sampler thread. */
int
_PySampling_TimerIsUnheard(_PySampling_Thread *thread, uint64_t now_ns)
{
    uint64_t deadline_ns = _PySampling_DeadlineSetFor(thread);
    return deadline_ns != 0 && now_ns >= deadline_ns + _PySampling_ANSWER_NS
        && _PySampling_CpuNow(thread)
           >= _Py_atomic_load_uint64_relaxed(&thread->account.cpu_ns)
              + _PySampling_ANSWER_NS / 2;
}

/* Leaves such a thread, which holds the GIL, to the clock.  All deadlines that
   it has not heard of are its next tick's, and the CPU time since its last,
   which is not more than has passed.
   Returns 0 if it is left to the clock already. */
int
_PySampling_TimerGiveUp(_PySampling_Thread *thread, uint64_t now_ns)
{
    if (!_Py_atomic_load_int_relaxed(&thread->is_timed)) {
        return 0;
    }
    uint64_t deadline_ns = take_deadline(thread);
    _Py_atomic_store_int_relaxed(&thread->is_timed, 0);
    if (deadline_ns == 0) {
        return 0;
    }
    uint64_t span_ns =
        _PySampling_DeadlineSpan(_PySampling_OF_CLOCK, deadline_ns, now_ns);
    _PySampling_COUNT(ticks, 1);
    uint64_t wall_ns = now_ns
        - _Py_atomic_load_uint64_relaxed(&thread->account.wall_ns);
    uint64_t cpu_ns = _PySampling_CpuNow(thread)
        - _Py_atomic_load_uint64_relaxed(&thread->account.cpu_ns);
    _PySampling_AddSpan(thread, (struct _sampling_time){
        .wall_ns = span_ns, .cpu_ns = Py_MIN(wall_ns, cpu_ns)});
    return 1;
}

void
_PySampling_TimerDelete(_PySampling_Thread *thread)
{
    _PySampling_KernelTimersDelete(thread);
    (void)take_deadline(thread);
}
