/* Sampling profiler: WHEN to sample: what others ask of the clock, of
   threads' timers and of the signal. */

#ifndef Py_SAMPLING_CLOCK_H
#define Py_SAMPLING_CLOCK_H

#ifndef Py_BUILD_CORE
#  error "this header requires Py_BUILD_CORE define"
#endif

#include "../base/common.h"

#include <signal.h>                   // siginfo_t

// clock/clock.c.  Called with runtime->sampling.mutex held.
// `handler`: what the signal does.
extern _PySampling_Status
_PySampling_ClockStart(void (*handler)(int signum, void *siginfo,
                                       void *context));
extern _PySampling_Status _PySampling_ClockResume(void);
extern void _PySampling_ClockTickAll(uint64_t wall_ns,
                                     struct _sampling_time span);
// The program's handler of the signal, where that is the clock's.
extern PyOS_sighandler_t
_PySampling_ClockHandlerOfProgram(PyOS_sighandler_t handler);
// A thread has ended: if nobody takes part any more, the sampler thread must
// not keep the process.
// Returns whether nobody does.
extern int _PySampling_ClockAbandon(void);
// A thread takes part: there is a sampler thread again if that has happened.
extern void _PySampling_ClockRevive(void);
// Somebody holds a GIL: the clock does not rest any more, unless it only needs
// to watch a run with a timer.
typedef enum {
    _PySampling_AWAKE = 0,
    _PySampling_WATCHES,        // now and then, whether signals are answered
    _PySampling_RESTS,
} _PySampling_Rest;
extern void _PySampling_ClockWakeUp(void);
static inline void
_PySampling_ClockWake(int is_timed)
{
    struct _sampling_runtime_state *state = &_PyRuntime.sampling;
    int *ran = is_timed ? &state->somebody_timed : &state->somebody_ran;
    if (!_Py_atomic_load_int_relaxed(ran)) {
        _Py_atomic_store_int_relaxed(ran, 1);
    }
    int wakes_up = is_timed ? _PySampling_RESTS : _PySampling_WATCHES;
    if (_Py_atomic_load_int(&state->clock_rests) >= wakes_up) {
        _PySampling_ClockWakeUp();
    }
}
// At the end of the thread's run: has the clock let a deadline in it go by?
extern int _PySampling_ClockMissed(const _PySampling_Thread *thread);
// Called without it.
extern void _PySampling_ClockStop(_PySampling_Thread *caller);
extern void _PySampling_ClockRest(_PySampling_Thread *caller);
extern void _PySampling_ClockSetPeriod(uint64_t period_ns);
extern void _PySampling_ClockForget(void);
// The clock has a thread of its own: the session is not manual.
extern int _PySampling_ClockHasThread(void);
// On the thread itself: returns when no signal is on its way to it.
extern void _PySampling_AwaitSignal(_PySampling_Thread *thread);
// Leaves the signal to the program and takes another.  On a thread that is
// invisible to the clock, with runtime->sampling.mutex held.
extern void _PySampling_ClockLeaveSignal(void);

// clock/timer.c.  A timer is set at the beginning of a run, by TimerBeginRun()
// and, last of all, TimerOpen(), or by TimerBeginAfter() a look, until
// TimerEnd().  What is taken in between, or last, is the caller's to capture.
extern void _PySampling_TimerBeginAfter(_PySampling_Thread *thread,
                                        uint64_t ticked_ns);
// Of a timer, or of the thread's own; 0: none.
static inline uint64_t
_PySampling_DeadlineSetFor(const _PySampling_Thread *thread)
{
    return _Py_atomic_load_uint64_relaxed(&thread->timer_deadline_ns);
}
#define _PySampling_HAS_TICK(THREAD) (_PySampling_DeadlineSetFor(THREAD) != 0)
// Is that one over?
static inline int
_PySampling_TimerIsDue(const _PySampling_Thread *thread, uint64_t now_ns)
{
    uint64_t deadline_ns = _PySampling_DeadlineSetFor(thread);
    return deadline_ns != 0 && deadline_ns <= now_ns;
}
extern void _PySampling_TimerBeginRun(_PySampling_Thread *thread);
extern int _PySampling_TimerOpen(_PySampling_Thread *thread, int is_near);
// From when on the clock may ask the thread, if its run has no timer.
static inline uint64_t
_PySampling_LookedAtFrom(const _PySampling_Thread *thread)
{
    return _Py_atomic_load_uint64_relaxed(&thread->attached_ns)
           + _PyRuntime.sampling.own_ns;
}
// When the tick that was put off is due in the thread's run, if there is one.
static inline uint64_t
_PySampling_OverdueFrom(const _PySampling_Thread *thread)
{
    return _PySampling_LookedAtFrom(thread) + thread->visits_ns
           + thread->overdue.after_ns;
}
extern int _PySampling_TimerIsSoon(_PySampling_Thread *thread);
extern int _PySampling_TimerTakeDue(_PySampling_Thread *thread,
                                    uint64_t now_ns);
extern uint64_t _PySampling_TimerHear(_PySampling_Thread *thread,
                                      uint64_t now_ns);
extern void _PySampling_TimerTook(_PySampling_Thread *thread,
                                  uint64_t tick_ns);
extern void _PySampling_TimerGoOn(_PySampling_Thread *thread,
                                  uint64_t ticked_ns);
extern int _PySampling_TimerIsLate(const _PySampling_Thread *thread);
extern void _PySampling_TimerEnd(_PySampling_Thread *thread);
extern int _PySampling_TimerTakeLast(_PySampling_Thread *thread);
extern void _PySampling_TimerRan(_PySampling_Thread *thread);
extern void _PySampling_TimerResume(_PySampling_Thread *thread);
extern void _PySampling_TimerDelete(_PySampling_Thread *thread);
// clock/own.c
extern int _PySampling_OwnIsNear(const _PySampling_Thread *thread,
                                 uint64_t now_ns);
extern void _PySampling_OwnVisited(_PySampling_Thread *thread,
                                   uint64_t came_ns);
// clock/kernel_timers.c.  In the child of a fork, which has none.
extern void _PySampling_KernelTimersForget(_PySampling_Thread *thread);

// clock/trial.c
extern void _PySampling_TimersNoMore(void);
extern int _PySampling_HasOneGIL(void);

// clock/signal.c.  May a program ask for this signal?  Async-signal-safe.
extern int _PySampling_IsUsableSignal(int signum);

// Async-signal-safe.
extern int _PySampling_IsFromClock(const siginfo_t *info);

// What the thread did that the signal met, as far as its registers show.
typedef enum {
    _PySampling_NO_CALL,
    _PySampling_CALL_RESTARTED, // it slept in a call, and goes on
    _PySampling_CALL_CUT,       // it slept in a call, which fails with EINTR
} _PySampling_MetCall;
extern _PySampling_MetCall _PySampling_SignalMet(void *context);
/* A signal takes some ten microseconds.  If it took longer, the thread was in
   the kernel (page faults, a large munmap()) or without a CPU. */
#define _PySampling_LATE_NS 100000

/* The sampler thread wakes up within this time if it is given a CPU: 15 us on
   a CPU that runs, up to 50 on one that was idle. */
#define _PySampling_WAKE_UP_NS 60000

#endif  // !Py_SAMPLING_CLOCK_H
