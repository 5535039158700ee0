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
// At the end of the thread's run.
extern void _PySampling_ClockRunIsOver(_PySampling_Thread *thread);
// Called without it.
extern void _PySampling_ClockStop(_PySampling_Thread *caller);
extern void _PySampling_ClockRest(_PySampling_Thread *caller);
extern void _PySampling_ClockSetPeriod(uint64_t period_ns);
extern void _PySampling_ClockForget(void);
// The clock has a thread of its own: the session is not manual.
extern int _PySampling_ClockHasThread(void);
// Leaves the signal to the program and takes another.  On a thread that is
// invisible to the clock, with runtime->sampling.mutex held.
extern void _PySampling_ClockLeaveSignal(void);

// clock/run.c.  The thread's run, from RunPrepare() and RunOpen(), last of
// all, to RunEnd(), when no signal is on its way any more.  Who takes a tick
// captures it.
extern void _PySampling_RunPrepare(_PySampling_Thread *thread);
extern int _PySampling_RunAwaitsOverdue(_PySampling_Thread *thread);
extern int _PySampling_RunOpen(_PySampling_Thread *thread, int at_once);
extern int _PySampling_RunAwaitsDue(const _PySampling_Thread *thread);
extern void _PySampling_RunResume(_PySampling_Thread *thread);
extern int _PySampling_RunEnd(_PySampling_Thread *thread);
extern int _PySampling_RunTakeLast(_PySampling_Thread *thread,
                                   int was_overdue);
// At a safepoint.
extern void _PySampling_RunSayMask(_PySampling_Thread *thread);
extern int _PySampling_RunOnlyWaits(_PySampling_Thread *thread);
extern int _PySampling_RunTakeDue(_PySampling_Thread *thread,
                                  uint64_t now_ns);
// In the signal handler.
extern uint64_t _PySampling_RunHear(_PySampling_Thread *thread,
                                    uint64_t now_ns);
extern void _PySampling_RunGoOn(_PySampling_Thread *thread,
                                uint64_t ticked_ns);
extern void _PySampling_RunWasAsked(_PySampling_Thread *thread,
                                    uint64_t ticked_ns);
extern void _PySampling_RunPutOff(_PySampling_Thread *thread);
// With runtime->sampling.mutex.
extern void _PySampling_TimerDelete(_PySampling_Thread *thread);
extern void _PySampling_TimerForget(_PySampling_Thread *thread);
#define _PySampling_HAS_OVERDUE(THREAD) ((THREAD)->overdue.after_ns != 0)
// Maybe one is due.
#define _PySampling_HAS_TICK(THREAD) \
    (_PySampling_HAS_OVERDUE(THREAD) \
     || _Py_atomic_load_uint64_relaxed(&(THREAD)->timer_deadline_ns) != 0)

// clock/ask.c.  Threads have no timers for now, or none any more.
// Async-signal-safe.
extern void _PySampling_TimersEnd(int for_good);
extern int _PySampling_HasOneGIL(void);

// clock/signal.c.  May a program ask for this signal?  Async-signal-safe.
extern int _PySampling_IsUsableSignal(int signum);

// On the thread itself, not in its signal handler: does it block the signal?
extern void _PySampling_ReadMask(_PySampling_Thread *thread);
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
