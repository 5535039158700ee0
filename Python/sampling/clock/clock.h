/* Sampling profiler: WHEN to sample: what others ask of the clock, of the word
   of a thread and of the signal. */

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
// A tick for all threads: in a manual session by the thread that calls.
extern void _PySampling_ClockTick(void);
// The program's handler of the signal, where that is the clock's.
extern PyOS_sighandler_t
_PySampling_ClockHandlerOfProgram(PyOS_sighandler_t handler);
// A thread has ended: if nobody takes part any more, the sampler thread must
// not keep the process.  Returns whether nobody does.
extern int _PySampling_ClockAbandon(void);
// A thread takes part: there is a sampler thread again if that has happened.
extern void _PySampling_ClockRevive(void);
// Leaves the signal to the program and takes another.
extern void _PySampling_ClockLeaveSignal(void);
// Called without it.
extern void _PySampling_ClockStop(_PySampling_Thread *caller);
extern void _PySampling_ClockRest(_PySampling_Thread *caller);
extern void _PySampling_ClockSetPeriod(uint64_t period_ns);
extern void _PySampling_ClockForget(void);
// The clock has a thread of its own: the session is not manual.
extern int _PySampling_ClockHasThread(void);

// clock/wakeup.c.  With the mutex or without.
extern void _PySampling_ClockWake(void);

// clock/tick.c.  With runtime->sampling.mutex.  The thread gets ticks from now
// on, or no more.
extern void _PySampling_TicksBegin(_PySampling_Thread *thread);
extern void _PySampling_TicksEnd(_PySampling_Thread *thread);
// A thread without its GIL, which the caller has, is noted as by a tick.
extern void _PySampling_TickStill(_PySampling_Thread *thread,
                                  uint64_t now_ns);

// clock/others.c.  With runtime->sampling.mutex.  The CPU time of threads that
// run no Python, since some moment; 0: not known, or to read it now takes too
// much.
extern uint64_t _PySampling_OthersCpu(void);
// Did they compute while the thread waited, since a tick noted it?  With the
// mutex or without.
extern int _PySampling_OthersComputed(_PySampling_Thread *thread,
                                      uint64_t now_ns, int is_locked);
extern void _PySampling_OthersThreadEnd(_PySampling_Thread *thread);

/* --- The word of a thread (clock/run.c).  On the thread. */

#define _PySampling_WORD(THREAD) _Py_atomic_load_uint64(&(THREAD)->word)
#define _PySampling_STATE_OF(WORD) ((int)(WORD) & _PySampling_STATES)

static inline uint64_t
_PySampling_NextWord(uint64_t word, int state)
{
    return _PySampling_RUN_OF(word) + _PySampling_GENERATION + (uint64_t)state;
}

// Changes the state unless there is a flag.  Returns whether it did.
static inline int
_PySampling_RunChange(_PySampling_Thread *thread, int state)
{
    uint64_t word = _Py_atomic_load_uint64_relaxed(&thread->word);
    return (word & _PySampling_FLAGS) == 0
        && _Py_atomic_compare_exchange_uint64(
               &thread->word, &word, _PySampling_NextWord(word, state));
}

// Changes it whatever the flags are, which are returned.
static inline int
_PySampling_RunSet(_PySampling_Thread *thread, int state)
{
    uint64_t word = _Py_atomic_load_uint64_relaxed(&thread->word);
    return (int)_Py_atomic_exchange_uint64(
        &thread->word, _PySampling_NextWord(word, state));
}

// The run ends: the thread is INACTIVE, and no signal is on its way.  What one
// stood for is overdue.  Returns the word before, with its flags.
extern int _PySampling_RunEnd(_PySampling_Thread *thread);
// It begins, or goes on, unless it is INACTIVE for good.
extern void _PySampling_RunBegin(_PySampling_Thread *thread, int flags);
// The thread is no longer noted: it is to get ticks again.
extern void _PySampling_RunReturned(_PySampling_Thread *thread);
// At a safepoint: is a tick overdue, and due by now?
extern int _PySampling_RunTakeOverdue(_PySampling_Thread *thread,
                                      uint64_t now_ns);
extern int _PySampling_RunAwaitsOverdue(_PySampling_Thread *thread);
// At a safepoint: takes back a signal that the thread blocks.
extern void _PySampling_RunCheckMask(_PySampling_Thread *thread);
// What the deadlines since the last call stand for, up to a tick that took
// place at `tick_ns` and that has its answer at `now_ns`.  Async-signal-safe.
extern uint64_t _PySampling_RunTakeSpan(_PySampling_Thread *thread,
                                        uint64_t tick_ns, uint64_t now_ns);

// clock/deadlines.c.
extern uint64_t _PySampling_DeadlinesUntil(uint64_t moment_ns);

// clock/signal.c.  May a program ask for this signal?  Async-signal-safe.
extern int _PySampling_IsUsableSignal(int signum);

// SIGURG that carries a word goes to `answer` from now on, with or without a
// clock, unless the program has a handler for it.
extern void _PySampling_SignalArm(void (*answer)(const void *siginfo));
// Is it the handler that waits for such a signal while there is no clock?
extern int _PySampling_IsArmedHandler(PyOS_sighandler_t handler);

// On the thread itself, not in its signal handler: does it block the signal?
extern void _PySampling_ReadMask(_PySampling_Thread *thread);
// Async-signal-safe.
extern int _PySampling_IsFromClock(const siginfo_t *info);
// Has the signal cut a system call short, as far as registers show?
extern int _PySampling_HasCutCall(void *context);

/* A signal takes some ten microseconds.  If it took longer, the thread was in
   the kernel (page faults, a large munmap()) or without a CPU. */
#define _PySampling_LATE_NS 100000

#endif  // !Py_SAMPLING_CLOCK_H
