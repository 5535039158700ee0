/* Sampling profiler: the kernel's timers that send a thread its signals.

   Owns a pair of them for each thread that has any.  Must not know for which
   deadlines they are set.

   To set the timer that fires next is to set the clock of the CPU, which on a
   virtual machine is the hypervisor's to do, and takes 2 to 5 microseconds.
   The kernel does so, too, for what fires next when a timer has fired.  So the
   thread's other timer is set a deadline ahead: when one has fired, the CPU's
   clock is set already, and the one that is set then fires later, which is no
   more than an entry in a list. */

#include "Python.h"

#include "pycore_runtime.h"           // _PyRuntime

#include "inside.h"

#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define STATE (&_PyRuntime.sampling)

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

/* The kernel gave none: it knows of no such timer. */
#define NO_ID (-1)


/* Clears it if the moment is 0.  Returns 0 if there is no such timer. */
static int
set_timer(int timer_id, uint64_t moment_ns)
{
    struct {
        int64_t interval_s, interval_ns, value_s, value_ns;
    } value = {
        .value_s = (int64_t)(moment_ns / 1000000000u),
        .value_ns = (int64_t)(moment_ns % 1000000000u),
    };
    return syscall(TIMER_SETTIME, timer_id, TIMER_ABSTIME, &value, NULL) == 0;
}

/* Each counts against RLIMIT_SIGPENDING. */
static int
create_timer(const _PySampling_Thread *thread)
{
    int timer_id;
    struct sigevent event = {
        .sigev_notify = SIGEV_THREAD_ID,
        .sigev_signo = thread->timer_signal,
        .sigev_value.sival_ptr = STATE,
    };
    event.sigev_notify_thread_id = thread->native_id;
    return syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, &timer_id) == 0
        ? timer_id : NO_ID;
}

int
_PySampling_HasKernelTimers(_PySampling_Thread *thread)
{
    if (thread->timer == _PySampling_HAS_TIMER
        && thread->timer_signal != STATE->signal)
    {
        _PySampling_KernelTimersDelete(thread);
    }
    if (thread->timer == _PySampling_NO_TIMER) {
        thread->timer_signal = STATE->signal;
        thread->timer_id = create_timer(thread);
        thread->ahead_id = create_timer(thread);
        thread->timer = thread->timer_id != NO_ID
            ? _PySampling_HAS_TIMER : _PySampling_TIMER_REFUSED;
    }
    return thread->timer == _PySampling_HAS_TIMER;
}

int
_PySampling_KernelTimerSet(_PySampling_Thread *thread, uint64_t moment_ns)
{
    return set_timer(thread->timer_id, moment_ns);
}

/* Nothing is lost without it: then it is set when the other has fired. */
void
_PySampling_KernelTimerSetAhead(_PySampling_Thread *thread,
                                uint64_t deadline_ns)
{
    thread->ahead_ns = set_timer(thread->ahead_id, deadline_ns)
        ? deadline_ns : 0;
}

void
_PySampling_KernelTimerClearAhead(_PySampling_Thread *thread)
{
    // A child of vfork() has no timers, and shares this memory.
    if (thread->ahead_ns != 0 && set_timer(thread->ahead_id, 0)) {
        thread->ahead_ns = 0;
    }
}

uint64_t
_PySampling_KernelTimerTakeAhead(_PySampling_Thread *thread)
{
    uint64_t deadline_ns = thread->ahead_ns;
    int fired_id = thread->timer_id;
    thread->timer_id = thread->ahead_id;
    thread->ahead_id = fired_id;
    thread->ahead_ns = 0;
    return deadline_ns;
}

void
_PySampling_KernelTimersDelete(_PySampling_Thread *thread)
{
    if (thread->timer == _PySampling_HAS_TIMER) {
        syscall(SYS_timer_delete, thread->timer_id);
        syscall(SYS_timer_delete, thread->ahead_id);
    }
    thread->timer = _PySampling_NO_TIMER;
    thread->ahead_ns = 0;
}
