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

// Is the handler in place that was?  Async-signal-safe.
extern int _PySampling_SignalIsOurs(void);

#if defined(__x86_64__) || defined(__aarch64__)
#  define _PySampling_SEES_CALLS 1
#else
#  define _PySampling_SEES_CALLS 0
#endif

extern int _PySampling_SignalTake(struct _sampling_signal *signal);
extern void _PySampling_SignalKeep(struct _sampling_signal *signal);
extern void _PySampling_SignalLeave(struct _sampling_signal *signal);
extern PyOS_sighandler_t _PySampling_SignalHandlerOfProgram(
    const struct _sampling_signal *signal, PyOS_sighandler_t handler);
extern void _PySampling_SignalGiveBack(struct _sampling_signal *signal);

/* Unanswered for so long, the thread is to say whether it blocks the signal.
   It takes microseconds, unless the machine is overloaded or the thread is in
   the kernel, which frees much memory for it. */
#define _PySampling_ANSWER_NS 20000000

/* --- Deadlines (clock/deadlines.c).  Async-signal-safe. */

typedef enum {
    _PySampling_OF_CLOCK,       // of runs without a timer
    _PySampling_OF_TIMERS,
} _PySampling_Deadlines;

// The first that is not before the moment.
extern uint64_t _PySampling_DeadlineFrom(_PySampling_Deadlines whose,
                                         uint64_t moment_ns);
// What a deadline and all others until now stand for: counts these as late.
extern uint64_t _PySampling_DeadlineSpan(_PySampling_Deadlines whose,
                                         uint64_t first_ns, uint64_t now_ns);

/* --- The thread's mask (clock/signal.c). */

extern int _PySampling_BlocksSignal(int signum);
// Returns 0 if none of ours waited.
extern int _PySampling_TakeBackSignal(_PySampling_Thread *thread,
                                      int signum);

/* --- What does the thread do (clock/probe.c)?  Lock:
   --- runtime->sampling.mutex. */

typedef enum {
    _PySampling_ON_CPU,         // or was, until the sampler thread took it
    _PySampling_OFF_CPU,        // waits for a CPU
    _PySampling_SLEEPY,         // on a CPU, likely to enter a system call
    _PySampling_ASLEEP,         // in a system call
    _PySampling_UNKNOWN,        // off its CPU, and the kernel does not say why
} _PySampling_RunState;

/* Files of /proc that the sampler thread keeps open, by thread.  A file of a
   thread that has ended cannot be read any more. */
#define _PySampling_PROC_FILES 16

struct _sampling_proc_file {
    int native_id;              // 0: none
    int state_fd;               // -1: cannot be opened
    int delay_fd;               // the same
};

struct _sampling_proc {
    int can_read;
    struct _sampling_proc_file files[_PySampling_PROC_FILES];
};

// On the sampler thread, at its start and its end.
extern void _PySampling_ProcOpen(struct _sampling_proc *proc);
extern void _PySampling_ProcClose(struct _sampling_proc *proc);

extern _PySampling_RunState
_PySampling_ProbeThread(_PySampling_Thread *thread,
                        struct _sampling_proc *proc, uint64_t wall_ns,
                        uint64_t cpu_ns);

/* --- Asking (clock/ask.c).  Lock: runtime->sampling.mutex. */

struct _sampling_asking {
    int is_refused;             // the system lets no signal be sent
    struct _sampling_proc proc;
    struct _sampling_signal signal;
};

typedef enum {
    _PySampling_FOUND_NOBODY = 0,
    _PySampling_FOUND_TIMED,    // a thread that asks itself
    _PySampling_FOUND_ASKED,
} _PySampling_Found;

// A check of the interpreter's running thread, which stands for `span`.
extern _PySampling_Found
_PySampling_Ask(struct _sampling_asking *asking,
                struct _sampling_interpreter_state *interp,
                uint64_t wall_ns, struct _sampling_time span);
// Does the thread's own timer do?  It is to say so if not.
extern int _PySampling_IsTimed(_PySampling_Thread *thread, uint64_t wall_ns);
// On the thread: the clock asks nothing of it any more.
extern void _PySampling_AwaitAnswer(_PySampling_Thread *thread);
extern void _PySampling_TakeBackIfBlocked(_PySampling_Thread *thread);
// Whether threads have timers.
extern void _PySampling_TimersStart(void);

/* --- Sleeping (clock/wakeup.c).  On the sampler thread, but for the last. */

extern void _PySampling_AskForPromptWakeUps(void);
// Until the moment (0: there is none), or until somebody wakes it who was not
// among those seen.
extern void _PySampling_WaitUntil(uint64_t deadline_ns,
                                  uint32_t seen_wakeups);
extern void _PySampling_WakeUpSampler(void);

#endif  // !Py_SAMPLING_INSIDE_H
