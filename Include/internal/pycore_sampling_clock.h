/* Sampling profiler: what the files of the clock (WHEN to sample) share.  Of
   no concern to capture, accounting, tables or the session. */

#ifndef Py_INTERNAL_SAMPLING_CLOCK_H
#define Py_INTERNAL_SAMPLING_CLOCK_H
#ifdef __cplusplus
extern "C" {
#endif

#ifndef Py_BUILD_CORE
#  error "this header requires Py_BUILD_CORE define"
#endif

#include "pycore_sampling.h"

#ifdef _PySampling_SUPPORTED

#include <signal.h>               // struct sigaction

/* --- The signal (sampling_signal.c).  Its number is
   --- runtime->sampling.signal, since the handler and hooks read that.
   --- Lock: runtime->sampling.mutex, or the clock is not shared any more. */

struct _sampling_signal {
    int is_gone;                // the program took it and no other is free
    struct sigaction old_action;
};

// Async-signal-safe.
extern int _PySampling_IsFromClock(const siginfo_t *info);

// Is the handler in place that was?  Async-signal-safe.
extern int _PySampling_SignalIsOurs(void);

// What the thread did that the signal met, as far as its registers tell.
typedef enum {
    _PySampling_NO_CALL,
    _PySampling_CALL_RESTARTED, // it slept in a call, and goes on
    _PySampling_CALL_CUT,       // it slept in a call, which fails with EINTR
} _PySampling_MetCall;
extern _PySampling_MetCall _PySampling_SignalMet(void *context);
#if defined(__x86_64__) || defined(__aarch64__)
#  define _PySampling_TELLS_CALLS 1
#else
#  define _PySampling_TELLS_CALLS 0
#endif

extern int _PySampling_SignalTake(struct _sampling_signal *signal);
extern void _PySampling_SignalKeep(struct _sampling_signal *signal);
extern void _PySampling_SignalLeave(struct _sampling_signal *signal);
extern void _PySampling_SignalGiveBack(struct _sampling_signal *signal);

/* A signal takes some ten microseconds.  If it took longer, the thread was in
   the kernel (page faults, a large munmap()) or without a CPU. */
#define _PySampling_LATE_NS 100000

/* How long a thread may take to answer.  It takes microseconds, unless the
   machine is overloaded or the thread blocks the signal. */
#define _PySampling_ANSWER_NS 20000000

/* --- Deadlines and timers (sampling_timer.c).  Lock:
   --- runtime->sampling.mutex, but for deadlines. */

extern uint64_t _PySampling_DeadlineFrom(uint64_t moment_ns);
// Of a deadline and all others until now: counts these as late.
extern uint64_t _PySampling_DeadlineSpan(uint64_t first_ns, uint64_t now_ns);

extern void _PySampling_TimersStart(void);
extern void _PySampling_TimersEnd(int is_child);
extern void _PySampling_TimerTrial(int is_awake, uint64_t time_ns);
extern int _PySampling_TimerIsUnheard(_PySampling_Thread *thread,
                                      uint64_t now_ns);
extern int _PySampling_TimerGiveUp(_PySampling_Thread *thread);

/* --- What does the thread do (sampling_asleep.c)?  Lock:
   --- runtime->sampling.mutex. */

/* The sampler thread wakes up within this time if it is given a CPU: 15 us on
   a CPU that runs, up to 50 on one that was idle. */
#define _PySampling_WAKE_UP_NS 60000

typedef enum {
    _PySampling_ON_CPU,         // or was, until the sampler thread took it
    _PySampling_OFF_CPU,        // waits for a CPU
    _PySampling_SLEEPY,         // on a CPU, likely to enter a system call
    _PySampling_ASLEEP,         // in a system call
    _PySampling_UNKNOWN,        // off its CPU, and the kernel does not say why
} _PySampling_Wakefulness;

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

extern _PySampling_Wakefulness
_PySampling_LookAt(_PySampling_Thread *thread, struct _sampling_proc *proc,
                   uint64_t wall_ns, uint64_t cpu_ns);

#endif  // _PySampling_SUPPORTED

#ifdef __cplusplus
}
#endif
#endif  // !Py_INTERNAL_SAMPLING_CLOCK_H
