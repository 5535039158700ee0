/* Sampling profiler: short intervals laid end to end, and points on that axis
   which say which of them are recorded.

   Points lie a period apart on average, so an interval covers one in
   proportion to its length: recorded with the distance to the point before,
   that is unbiased, and the cost is bounded.  Must not know what the intervals
   are of. */

#ifndef Py_SAMPLING_AXIS_H
#define Py_SAMPLING_AXIS_H

#ifndef Py_BUILD_CORE
#  error "this header requires Py_BUILD_CORE define"
#endif

#include "common.h"

/* Intervals of a period divided by this, or longer, are recorded one by one.
   Shorter ones never cover two points, which are three quarters of a period
   apart at the least. */
#define LONG_PERIOD_DIVISOR 2

static inline int
_PySampling_IsLong(uint64_t length_ns, uint64_t period_ns)
{
    return length_ns >= period_ns / LONG_PERIOD_DIVISOR;
}

/* A short interval at the end of its axis.  Returns 0 if it covers a point, or
   the first has yet to be drawn: then nothing is done. */
static inline int
_PySampling_Carry(uint64_t *to_go_ns, uint64_t *carried_ns,
                  uint64_t length_ns)
{
    if (length_ns >= *to_go_ns) {
        return 0;
    }
    *to_go_ns -= length_ns;
    *carried_ns += length_ns;
    return 1;
}

/* A short interval at the end of its axis.  Returns how much is recorded on
   it: if it covers a point, the distance to the point before.  What lies
   behind the point is carried. */
static inline uint64_t
_PySampling_Cover(uint64_t *to_go_ns, uint64_t *carried_ns,
                  uint64_t length_ns, uint64_t period_ns, uint64_t *random)
{
    if (*to_go_ns == 0) {
        // The first point lies anywhere in the first period.
        *to_go_ns = 1 + _PySampling_NextRandom(random) % period_ns;
    }
    if (_PySampling_Carry(to_go_ns, carried_ns, length_ns)) {
        return 0;
    }
    uint64_t recorded_ns = *carried_ns + *to_go_ns;
    *carried_ns = length_ns - *to_go_ns;
    uint64_t distance_ns = _PySampling_Jittered(period_ns, random);
    // A point of a longer period may lie that near.
    *to_go_ns = distance_ns > *carried_ns ? distance_ns - *carried_ns : 1;
    return recorded_ns;
}

#endif  // !Py_SAMPLING_AXIS_H
