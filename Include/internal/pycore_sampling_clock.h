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

extern int _PySampling_SignalTake(struct _sampling_signal *signal);
extern void _PySampling_SignalKeep(struct _sampling_signal *signal);
extern void _PySampling_SignalLeave(struct _sampling_signal *signal);
extern void _PySampling_SignalGiveBack(struct _sampling_signal *signal);

/* --- Is the thread asleep (sampling_asleep.c)?  Lock:
   --- runtime->sampling.mutex. */

typedef enum {
    _PySampling_ON_CPU,
    _PySampling_DISPLACED,      // ran until the sampler thread took its CPU
    _PySampling_OFF_CPU,        // waits for a CPU
    _PySampling_SLEEPY,         // likely to enter a system call at once
    _PySampling_ASLEEP,         // in a system call
    _PySampling_UNKNOWN,        // off its CPU, and the kernel does not say why
} _PySampling_Wakefulness;

// On the sampler thread, at its start.  May /proc be read?
extern int _PySampling_UnshareFiles(void);

extern _PySampling_Wakefulness
_PySampling_LookAt(_PySampling_Thread *thread, int can_read_proc,
                   uint64_t wall_ns, uint64_t cpu_ns);

#endif  // _PySampling_SUPPORTED

#ifdef __cplusplus
}
#endif
#endif  // !Py_INTERNAL_SAMPLING_CLOCK_H
