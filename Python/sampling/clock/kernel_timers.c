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


enum {NEXT, AHEAD};

static int
set_moment(int id, uint64_t moment_ns)
{
    struct {
        int64_t interval_s, interval_ns, value_s, value_ns;
    } value = {
        .value_s = (int64_t)(moment_ns / 1000000000u),
        .value_ns = (int64_t)(moment_ns % 1000000000u),
    };
    return syscall(TIMER_SETTIME, id, TIMER_ABSTIME, &value, NULL) == 0;
}

/* Each counts against RLIMIT_SIGPENDING, so none is made before it is used. */
static int
has_timer(_PySampling_Thread *thread, struct _sampling_kernel_timer *timer)
{
    if (timer->state == _PySampling_NO_TIMER) {
        struct sigevent event = {
            .sigev_notify = SIGEV_THREAD_ID,
            .sigev_signo = thread->timer_signal,
            .sigev_value.sival_ptr = STATE,
        };
        event.sigev_notify_thread_id = thread->native_id;
        int err = (int)syscall(SYS_timer_create, CLOCK_MONOTONIC, &event,
                               &timer->id);
        timer->state =
            err == 0 ? _PySampling_HAS_TIMER : _PySampling_TIMER_REFUSED;
    }
    return timer->state == _PySampling_HAS_TIMER;
}

/* Returns 0, and the timer is not used any more, if there is none. */
static int
set_timer(struct _sampling_kernel_timer *timer, uint64_t moment_ns)
{
    if (!set_moment(timer->id, moment_ns)) {
        timer->state = _PySampling_TIMER_REFUSED;
        return 0;
    }
    timer->set_ns = moment_ns;
    return 1;
}

static void
clear_timer(struct _sampling_kernel_timer *timer)
{
    // A child of vfork() has no timers, and shares this memory.
    if (timer->set_ns != 0 && set_moment(timer->id, 0)) {
        timer->set_ns = 0;
    }
}

int
_PySampling_HasKernelTimer(_PySampling_Thread *thread)
{
    if (thread->timer_signal != STATE->signal) {
        _PySampling_KernelTimersDelete(thread);
        thread->timer_signal = STATE->signal;
    }
    return has_timer(thread, &thread->timers[NEXT]);
}

int
_PySampling_KernelTimerSet(_PySampling_Thread *thread, uint64_t moment_ns)
{
    clear_timer(&thread->timers[AHEAD]);
    return set_timer(&thread->timers[NEXT], moment_ns);
}

/* Nothing is lost without it: then it is set when the other has fired. */
void
_PySampling_KernelTimerSetAhead(_PySampling_Thread *thread,
                                uint64_t moment_ns)
{
    struct _sampling_kernel_timer *timer = &thread->timers[AHEAD];
    if (has_timer(thread, timer)) {
        (void)set_timer(timer, moment_ns);
    }
}

uint64_t
_PySampling_KernelTimerNext(const _PySampling_Thread *thread)
{
    return thread->timers[NEXT].set_ns;
}

uint64_t
_PySampling_KernelTimerAhead(const _PySampling_Thread *thread)
{
    return thread->timers[AHEAD].set_ns;
}

void
_PySampling_KernelTimerTakeAhead(_PySampling_Thread *thread)
{
    struct _sampling_kernel_timer fired = thread->timers[NEXT];
    thread->timers[NEXT] = thread->timers[AHEAD];
    thread->timers[AHEAD] = fired;
}

void
_PySampling_KernelTimersClear(_PySampling_Thread *thread)
{
    clear_timer(&thread->timers[AHEAD]);
    clear_timer(&thread->timers[NEXT]);
}

void
_PySampling_KernelTimersForget(_PySampling_Thread *thread)
{
    memset(thread->timers, 0, sizeof(thread->timers));
}

void
_PySampling_KernelTimersDelete(_PySampling_Thread *thread)
{
    for (int i = NEXT; i <= AHEAD; i++) {
        if (thread->timers[i].state == _PySampling_HAS_TIMER) {
            syscall(SYS_timer_delete, thread->timers[i].id);
        }
    }
    _PySampling_KernelTimersForget(thread);
}
