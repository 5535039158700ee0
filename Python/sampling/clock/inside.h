/* Sampling profiler: what the files of the clock share; of no concern to
   others. */

#ifndef Py_SAMPLING_INSIDE_H
#define Py_SAMPLING_INSIDE_H

#ifndef Py_BUILD_CORE
#  error "this header requires Py_BUILD_CORE define"
#endif

#include "clock.h"

#include <signal.h>               // struct sigaction

/* --- The signal (clock/signal.c).  Its number is
   --- runtime->sampling.signal, since the handler and hooks read that.
   --- Lock: runtime->sampling.mutex, or the clock is not shared any more. */

struct _sampling_signal {
    int is_gone;                // the program took it and no other is free
    struct sigaction old_action;
};

extern int _PySampling_SignalTake(struct _sampling_signal *signal);
extern int _PySampling_SignalIsOurs(void);
extern void _PySampling_SignalCheckOwner(struct _sampling_signal *signal);
extern void _PySampling_SignalLeave(struct _sampling_signal *signal);
extern PyOS_sighandler_t _PySampling_SignalHandlerOfProgram(
    const struct _sampling_signal *signal, PyOS_sighandler_t handler);
extern void _PySampling_SignalGiveBack(struct _sampling_signal *signal);
// On the thread.
extern int _PySampling_BlocksSignal(int signum);
// Returns 0 if none of ours waited.
extern int _PySampling_TakeBackSignal(_PySampling_Thread *thread,
                                      int signum);

/* --- Deadlines (clock/deadlines.c).  Async-signal-safe. */

extern uint64_t _PySampling_DeadlineAfter(uint64_t moment_ns);
// From now on they are due in another period.  Not async-signal-safe.
extern void _PySampling_DeadlinesChange(uint64_t period_ns);

/* --- What does the kernel say (clock/probe.c)?  Lock:
   --- runtime->sampling.mutex. */

/* Files of /proc that the sampler thread keeps open, by thread and name.  A
   file of a thread that has ended cannot be read any more. */
#define _PySampling_PROC_FILES 512

struct _sampling_proc {
    int can_read;
    struct { unsigned key; int fd; } files[_PySampling_PROC_FILES];
};

// On the sampler thread, at its start and its end.
extern void _PySampling_ProcOpen(struct _sampling_proc *proc);
extern void _PySampling_ProcClose(struct _sampling_proc *proc);
// Does the thread sleep in a system call?  Without files (NULL), or where they
// cannot be read, a thread that is on no CPU may.  What its CPU clock says goes
// to *cpu_ns.
typedef enum {
    _PySampling_ON_CPU = 0,
    _PySampling_WANTS_CPU,
    _PySampling_ASLEEP,
    _PySampling_MAYBE_ASLEEP,
} _PySampling_Sleep;
extern _PySampling_Sleep _PySampling_Probe(struct _sampling_proc *proc,
                                           _PySampling_Thread *thread,
                                           uint64_t *cpu_ns);

// How often it has gone to sleep, and 1; 0: not known.
extern uint64_t _PySampling_ProbeSleeps(struct _sampling_proc *proc,
                                        _PySampling_Thread *thread);

/* Unanswered for so long, the thread is to say whether it blocks the signal.
   It takes microseconds, unless the machine is overloaded or the thread is in
   the kernel, which frees much memory for it. */
#define _PySampling_ANSWER_NS 20000000

/* --- Ticks (clock/tick.c).  Lock: runtime->sampling.mutex. */

struct _sampling_ticker {
    int is_refused;             // the system lets no signal be sent
    int num_probes;             // of threads off their GIL, at this tick
    struct _sampling_proc proc;
    struct _sampling_signal signal;
};

// For all threads that get ticks.  Returns how many they are.
extern int _PySampling_TickAll(struct _sampling_ticker *ticker);

/* --- Sleeping (clock/wakeup.c).  On the sampler thread, but for the last. */

extern void _PySampling_AskForPromptWakeUps(void);
// Until the moment (0: there is none), or until somebody wakes it who was not
// among those seen.
extern void _PySampling_WaitUntil(uint64_t deadline_ns,
                                  uint32_t seen_wakeups);
extern void _PySampling_WakeUpSampler(void);

#endif  // !Py_SAMPLING_INSIDE_H
