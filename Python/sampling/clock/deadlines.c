/* Sampling profiler: the deadlines of ticks.

   Owns at which moments a tick is due, and what it stands for.  Must not know
   who checks them.

   They are the same for all threads: one in each period, anywhere in it, so
   that no rhythm of a program or of the kernel meets them more often.  They
   follow from a number alone: nobody has to keep them, and what a program does
   cannot move them.

   Timers have others than the clock.  Where others want the CPU, too, a clock
   that wakes up has the kernel choose anew who runs, so runs begin just after
   the clock's deadlines; were these the timers' as well, short runs would have
   too few. */

#include "Python.h"

#include "pycore_runtime.h"           // _PyRuntime

#include "inside.h"

#define STATE (&_PyRuntime.sampling)


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
deadline_of(_PySampling_Deadlines whose, uint64_t k, uint64_t period_ns)
{
    uint64_t seed = STATE->deadline_seed;
    seed = whose == _PySampling_OF_TIMERS ? ~seed : seed;
    return k * period_ns + mix(k + seed) % period_ns;
}

uint64_t
_PySampling_DeadlineFrom(_PySampling_Deadlines whose, uint64_t moment_ns)
{
    uint64_t period_ns = _PySampling_PeriodNow();
    uint64_t k = moment_ns / period_ns;
    uint64_t deadline_ns = deadline_of(whose, k, period_ns);
    return deadline_ns >= moment_ns
        ? deadline_ns : deadline_of(whose, k + 1, period_ns);
}

/* A period for each deadline, as each is anywhere in its own.  The first
   counts as over. */
uint64_t
_PySampling_DeadlineSpan(_PySampling_Deadlines whose, uint64_t first_ns,
                         uint64_t now_ns)
{
    uint64_t period_ns = _PySampling_PeriodNow();
    uint64_t first = first_ns / period_ns;
    uint64_t last = now_ns / period_ns;
    if (deadline_of(whose, last, period_ns) > now_ns) {
        last--;
    }
    uint64_t num_ticks = last > first ? last - first + 1 : 1;
    _PySampling_COUNT(ticks_late, num_ticks - 1);
    return num_ticks * period_ns;
}
