/* Sampling profiler: how the sampler thread sleeps.

   Owns its waits, what ends them early, and how soon it gets a CPU.  Must not
   know what it waits for. */

#include "Python.h"

#include "pycore_runtime.h"           // _PyRuntime

#include "inside.h"

#include <linux/futex.h>
#include <sched.h>                    // SCHED_OTHER
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define STATE (&_PyRuntime.sampling)

/* The shortest slice that Linux gives. */
#define SLICE_NS 100000

/* 32-bit systems have a call of its own for times of 64 bits. */
#ifdef SYS_futex_time64
#  define FUTEX \
    (sizeof(time_t) > sizeof(long) ? SYS_futex_time64 : SYS_futex)
#else
#  define FUTEX SYS_futex
#endif


/* Lets the sampler thread preempt whoever has its CPU when it wakes up: else
   it gets the CPU when the program blocks, and finds nobody running.  Linux
   6.12 and later do that for a thread with a short slice, which anyone may
   have; ticks_late shows it where they do not.  Not where system calls are
   filtered: systemd's SystemCallFilter=~@resources ends the process for this
   one. */
void
_PySampling_AskForPromptWakeUps(void)
{
    // struct sched_attr of the kernel, which the C library may not declare.
    struct {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime_ns, deadline_ns, period_ns;
    } attr = {.size = sizeof(attr)};
    if (prctl(PR_GET_SECCOMP) != 0) {
        return;
    }
    if (syscall(SYS_sched_getattr, 0, &attr, sizeof(attr), 0) != 0
        || (attr.policy != SCHED_OTHER && attr.policy != SCHED_BATCH))
    {
        return;         // as the program was started
    }
    attr.runtime_ns = SLICE_NS;
    (void)syscall(SYS_sched_setattr, 0, &attr, 0);
}

/* Waits until the deadline, or until the clock gets an order.  0: no
   deadline. */
void
_PySampling_WaitUntil(uint64_t deadline_ns, uint32_t seen_wakeups)
{
    if (deadline_ns != 0) {
        deadline_ns +=
            _Py_atomic_load_uint64_relaxed(&STATE->skipped_ns);
    }
    struct timespec ts = {
        .tv_sec = (time_t)(deadline_ns / 1000000000u),
        .tv_nsec = (long)(deadline_ns % 1000000000u),
    };
    syscall(FUTEX, &STATE->clock_wakeups, FUTEX_WAIT_BITSET_PRIVATE,
            seen_wakeups, deadline_ns != 0 ? &ts : NULL, NULL,
            FUTEX_BITSET_MATCH_ANY);
}

void
_PySampling_WakeUpSampler(void)
{
    (void)_Py_atomic_add_uint32(&STATE->clock_wakeups, 1);
    syscall(FUTEX, &STATE->clock_wakeups, FUTEX_WAKE_PRIVATE, 1, NULL,
            NULL, 0);
}

/* A thread is to get ticks. */
void
_PySampling_ClockWake(void)
{
    if (_Py_atomic_load_int(&STATE->clock_rests)
        && _Py_atomic_exchange_int(&STATE->clock_rests, 0))
    {
        _PySampling_WakeUpSampler();
    }
}
