/* Sampling profiler: whether threads have timers of their own.

   Owns the trial that a session begins with, and what timers need to know of
   the machine.  Must not know for which deadlines a timer is set.

   A thread that sleeps in a system call with the GIL held would be woken by
   its timer.  So timers are used when the sampler thread has looked at running
   threads for a while and found none asleep, and no more once one of their
   signals has cut a call short.

   Lock: runtime->sampling.mutex. */

#include "Python.h"

#include "pycore_runtime.h"           // _PyRuntime

#include "clock.h"
#include "inside.h"

#include <sched.h>                    // sched_getaffinity()

#define STATE (&_PyRuntime.sampling)

/* Looks that stand for this much time have to find running threads awake, one
   after the other. */
#define TRIAL_NS 500000000


/* While a thread of another GIL runs, timers could not be deleted. */
int
_PySampling_HasOneGIL(void)
{
    struct _sampling_interpreter_state *first = STATE->interpreters;
    for (struct _sampling_interpreter_state *s = first;
         s != NULL; s = s->next)
    {
        if (_Py_atomic_load_ptr_acquire(&s->gil)
            != _Py_atomic_load_ptr_acquire(&first->gil))
        {
            return 0;
        }
    }
    return 1;
}

/* A look that stands for `time_ns` has found a running thread awake, or
   not. */
void
_PySampling_TimerTrial(int is_awake, uint64_t time_ns)
{
    STATE->trial_ns = is_awake ? STATE->trial_ns + time_ns : 0;
    if (STATE->trial_ns >= TRIAL_NS
        && !_Py_atomic_load_int_relaxed(&STATE->has_no_timers)
        && _PySampling_SEES_CALLS && _PySampling_HasOneGIL())
    {
        _Py_atomic_store_int_relaxed(&STATE->uses_timers, 1);
    }
}

/* A thread slept with the GIL, or there is a second GIL: from now on the clock
   looks first, until the session ends.  Async-signal-safe. */
void
_PySampling_TimersNoMore(void)
{
    _Py_atomic_store_int_relaxed(&STATE->has_no_timers, 1);
    _Py_atomic_store_int_relaxed(&STATE->uses_timers, 0);
}

static int
has_one_cpu(void)
{
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    return sched_getaffinity(0, sizeof(cpus), &cpus) == 0
        && CPU_COUNT(&cpus) == 1;
}

void
_PySampling_TimersStart(void)
{
    STATE->uses_timers = 0;
    STATE->trial_ns = 0;
    STATE->has_no_timers = 0;
    STATE->last_run_ns = 0;
    STATE->runs_apart_ns = 0;
    STATE->put_off_ns = 0;
    STATE->has_one_cpu = has_one_cpu();
    _PySampling_OwnStart();
    _PySampling_DeadlinesBegin();
}

/* `is_child`: after a fork, which leaves the child none. */
void
_PySampling_TimersEnd(int is_child)
{
    STATE->uses_timers = 0;
    for (struct _sampling_interpreter_state *s = STATE->interpreters;
         s != NULL; s = s->next)
    {
        for (_PySampling_Thread *t = s->threads; t != NULL; t = t->next) {
            if (is_child) {
                _PySampling_KernelTimersForget(t);
            }
            _PySampling_TimerDelete(t);
        }
    }
}
