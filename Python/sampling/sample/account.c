/* Sampling profiler: a thread's clocks.

   Owns up to which moment, and which CPU time, all of a thread is on records
   or waits in its window.  Must not know stacks, tables or records
   (sample/record.c), nor how samples share time (sample/weights.c). */

#include "Python.h"

#include "pycore_runtime.h"           // _PyRuntime

#include "../clock/clock.h"
#include "sample.h"

/* A part of a note that is less of it has no record of its own. */
#define LEAST_PART 32


/* Atomic for a thread of another GIL that ends the session, and for the
   sampler thread. */
static void
set_clocks(struct _sampling_account *a, uint64_t wall_ns, uint64_t cpu_ns)
{
    _Py_atomic_store_uint64_relaxed(&a->wall_ns, wall_ns);
    _Py_atomic_store_uint64_relaxed(&a->cpu_ns, cpu_ns);
}

void
_PySampling_AccountStart(_PySampling_Thread *thread, uint64_t wall_ns)
{
    thread->account = (struct _sampling_account){
        .counted_ns = _PySampling_DeadlinesUntil(wall_ns),
        .random = _PySampling_RandomSeed(thread),
    };
    thread->pauses = _PySampling_PAUSES();
    set_clocks(&thread->account, wall_ns, _PySampling_CpuNow(thread));
}

_PySampling_Time
_PySampling_AccountSpent(_PySampling_Thread *thread, uint64_t wall_ns,
                         uint64_t cpu_ns)
{
    struct _sampling_account *a = &thread->account;
    uint64_t from_cpu_ns = a->cpu_ns;
    if (_PySampling_STANDS_STILL(thread->pauses)) {
        // What it has burnt meanwhile is not of the session; since a tick has
        // noted it, it is.
        uint64_t tick_cpu_ns = _Py_atomic_load_uint64(&thread->tick.cpu_ns);
        from_cpu_ns = (_PySampling_WORD(thread) & _PySampling_NOTED)
                      && tick_cpu_ns != 0 ? tick_cpu_ns : cpu_ns;
    }
    thread->pauses = _PySampling_PAUSES();
    wall_ns = Py_MAX(wall_ns, a->wall_ns);
    cpu_ns = Py_MAX(cpu_ns, from_cpu_ns);   // else the thread has ended
    struct _sampling_time spent = {wall_ns - a->wall_ns, cpu_ns - from_cpu_ns};
    set_clocks(a, wall_ns, cpu_ns);
    return spent;
}

/* Of deadlines that stand for `span_ns`, from the tick on: what those stand for
   that found the thread on a CPU.  For the first, which stands for its period,
   that is what the kernel has said; the others share the CPU time after
   that. */
uint64_t
_PySampling_AccountOnCpu(_PySampling_Thread *thread, uint64_t span_ns,
                         uint64_t until_ns, uint64_t cpu_ns)
{
    uint64_t tick_cpu_ns = _Py_atomic_load_uint64(&thread->tick.cpu_ns);
    int is_asleep = _Py_atomic_load_int(&thread->tick.is_asleep);
    uint64_t first_ns = Py_MIN(span_ns, _PySampling_PeriodNow());
    uint64_t wall_ns = until_ns - Py_MIN(until_ns, thread->tick.at_ns);
    uint64_t run_ns = cpu_ns - Py_MIN(cpu_ns, tick_cpu_ns);
    // Neither asleep nor on a CPU: it waits for one.
    int has_none = tick_cpu_ns != 0 && run_ns < wall_ns / 2
        && wall_ns - run_ns > _PySampling_TICK_TAKES_NS;
    uint64_t on_ns = is_asleep || has_none ? 0 : first_ns;
    if (tick_cpu_ns != 0 && wall_ns != 0) {
        double part = (double)run_ns / (double)wall_ns;
        on_ns += (uint64_t)(Py_MIN(part, 1.0) * (double)(span_ns - first_ns));
    }
    return on_ns < span_ns / LEAST_PART ? 0
        : span_ns - on_ns < span_ns / LEAST_PART ? span_ns : on_ns;
}

/* From now on the OS thread that both records share runs `to`. */
void
_PySampling_AccountHandOver(_PySampling_Thread *from, _PySampling_Thread *to)
{
    set_clocks(&to->account, from->account.wall_ns, from->account.cpu_ns);
    to->account.counted_ns = from->account.counted_ns;
    to->pauses = from->pauses;
    to->manual_cpu_ns = from->manual_cpu_ns;
}

int
_PySampling_ThreadTimes(PyThreadState *tstate, uint64_t *cpu_ns,
                        uint64_t *gil_wait_ns)
{
    _PySampling_Thread *thread = _PySampling_RECORD_OF(tstate);
    if (thread == NULL || !_PySampling_IN_EPOCH(thread)) {
        return 0;
    }
    *cpu_ns = _PySampling_CpuNow(thread);
    *gil_wait_ns = thread->account.gil_wait_ns;
    return 1;
}
