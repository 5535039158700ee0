/* Sampling profiler: the deadlines of ticks.

   Owns at which moments a tick is due, and what it stands for.  Must not know
   what is done at them.

   They are the same for all threads: one in each period on average, each
   anywhere in SPREAD periods, so that no rhythm of a program or of the kernel
   meets them more often.  They follow from a number alone: nobody has to keep
   them, and what a program does cannot move them.  Each stands for a period, so
   the deadlines up to a moment are a clock that is off by some periods at most:
   who has counted up to one moment, and takes what has come since, has each
   deadline once. */

#include "Python.h"

#include "pycore_runtime.h"           // _PyRuntime

#include "inside.h"

#define STATE (&_PyRuntime.sampling)


/* Deadlines lie anywhere in so many periods.  In one, the next is never soon
   after the last: and where others want the CPUs, too, runs begin when the
   sampler thread has had one, so that their beginnings were met too rarely.
   In many, that there was a deadline says little about the next; but the number
   of them in a long interval has a variance of SPREAD / 3. */
#define SPREAD 4

/* A number that looks random for each k (Steele, Lea and Flood, "Fast
   Splittable Pseudorandom Number Generators", 2014). */
static uint64_t
mix(uint64_t k)
{
    k *= 0x9E3779B97F4A7C15u;
    k = (k ^ (k >> 30)) * 0xBF58476D1CE4E5B9u;
    k = (k ^ (k >> 27)) * 0x94D049BB133111EBu;
    return k ^ (k >> 31);
}

static uint64_t
deadline_of(uint64_t k, uint64_t period_ns)
{
    return k * period_ns
           + mix(k + STATE->deadline_seed) % (SPREAD * period_ns);
}

/* The first one after the moment. */
uint64_t
_PySampling_DeadlineAfter(uint64_t moment_ns)
{
    uint64_t period_ns = _PySampling_PeriodNow();
    uint64_t k = moment_ns / period_ns;
    uint64_t first_ns = UINT64_MAX;
    for (k -= Py_MIN(k, SPREAD - 1); k * period_ns < first_ns; k++) {
        uint64_t deadline_ns = deadline_of(k, period_ns);
        if (deadline_ns > moment_ns && deadline_ns < first_ns) {
            first_ns = deadline_ns;
        }
    }
    return first_ns;
}

static uint64_t
until(uint64_t moment_ns, uint64_t period_ns)
{
    uint64_t k = moment_ns / period_ns;
    uint64_t num = k - Py_MIN(k, SPREAD - 1);
    for (uint64_t i = num; i <= k; i++) {
        num += deadline_of(i, period_ns) <= moment_ns;
    }
    return (num + SPREAD / 2) * period_ns;
}

/* What all deadlines up to the moment stand for.  In a manual session each
   nanosecond is one. */
uint64_t
_PySampling_DeadlinesUntil(uint64_t moment_ns)
{
    return STATE->options.manual ? moment_ns
        : until(moment_ns, _PySampling_PeriodNow())
          + _Py_atomic_load_uint64_relaxed(&STATE->counted_before_ns);
}

/* Those of both periods are some periods off, either way: what threads have
   counted goes on from here. */
void
_PySampling_DeadlinesChange(uint64_t period_ns)
{
    uint64_t now_ns = _PySampling_WallNow();
    uint64_t counted_ns = STATE->period_ns == 0 ? now_ns
        : until(now_ns, STATE->period_ns) + STATE->counted_before_ns;
    _Py_atomic_store_uint64_relaxed(&STATE->counted_before_ns,
                                    counted_ns - until(now_ns, period_ns));
    _Py_atomic_store_uint64_relaxed(&STATE->period_ns, period_ns);
}
