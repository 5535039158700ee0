/* Sampling profiler: do threads without Python compute?

   Owns what the kernel says of the CPU time of all threads, less that of those
   that have a record: what is left is of threads of C, such as those of BLAS.
   Must not know who waits for them. */

#include "Python.h"

#include "pycore_runtime.h"           // _PyRuntime

#include "clock.h"

#define STATE (&_PyRuntime.sampling)

/* Each thread's clock is read, which takes so long: no more than 1/100 of the
   time. */
#define READ_NS 300
#define LEAST_REST 100

/* What was read so lately is as good. */
#define FRESH_NS 200000

/* A shorter wait is not asked about. */
#define LEAST_WAIT_NS 5000000

static uint64_t
cpu_since_begin(_PySampling_Thread *thread)
{
    uint64_t last_ns =
        _Py_atomic_load_uint64_relaxed(&thread->account.cpu_ns);
    uint64_t cpu_ns = _PySampling_CpuNow(thread);   // of one that ended, 0
    cpu_ns = Py_MAX(cpu_ns, last_ns);
    return cpu_ns - Py_MIN(cpu_ns, thread->begin_cpu_ns);
}

static void
read_others(struct _sampling_others *others)
{
    others->rest_ns = 0;
    others->cpu_ns = 0;
    uint64_t others_ns = _PySampling_ProcessCpuNow() - others->ended_ns;
    for (struct _sampling_interpreter_state *s = STATE->interpreters;
         s != NULL; s = s->next)
    {
        for (_PySampling_Thread *t = s->threads; t != NULL; t = t->next) {
            if (t->sibling != NULL) {
                return;         // whose clock is it?
            }
            others->rest_ns += LEAST_REST * READ_NS;
            if (_PySampling_IN_EPOCH(t)) {
                others_ns -= cpu_since_begin(t);
            }
        }
    }
    others->cpu_ns = others_ns;
}

static uint64_t
read_at_most_so_old(uint64_t old_ns)
{
    struct _sampling_others *others = &STATE->others;
    uint64_t now_ns = _PySampling_MonotonicNow();
    uint64_t age_ns = now_ns - others->read_ns;
    if (STATE->options.manual) {
        return 0;
    }
    if (age_ns > old_ns) {
        if (age_ns < others->rest_ns) {
            return 0;
        }
        read_others(others);
        others->read_ns = now_ns;
    }
    return others->cpu_ns;
}

uint64_t
_PySampling_OthersCpu(void)
{
    return read_at_most_so_old(FRESH_NS);
}

void
_PySampling_OthersThreadEnd(_PySampling_Thread *thread)
{
    STATE->others.ended_ns += cpu_since_begin(thread);
}

/* A quarter of the time: they may wait for a CPU as well. */
#define LEAST_PART 4

/* What was read in the last eighth of a wait tells enough of it: many threads
   that wait for 20 ms ask hundreds of times a second. */
#define LATE_PART 8

int
_PySampling_OthersComputed(_PySampling_Thread *thread, uint64_t now_ns,
                           int is_locked)
{
    uint64_t wait_ns = now_ns - Py_MIN(now_ns, thread->tick.at_ns);
    uint64_t before_ns =
        _Py_atomic_load_uint64_relaxed(&thread->tick.others_cpu_ns);
    if (before_ns == 0 || wait_ns < LEAST_WAIT_NS) {
        return 0;
    }
    if (!is_locked) {
        _PySampling_LockRegistry();
    }
    uint64_t cpu_ns = read_at_most_so_old(wait_ns / LATE_PART);
    if (!is_locked) {
        _PySampling_UnlockRegistry();
    }
    return cpu_ns != 0
        && (int64_t)(cpu_ns - before_ns) >= (int64_t)wait_ns / LEAST_PART;
}
