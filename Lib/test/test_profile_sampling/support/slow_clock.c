/* To be loaded before libc by test_clocks.py: on a slow machine, whose clock
   moves on by LATE_NS, of the environment, while somebody reads it. */

#include "profilers_clock.h"

#include <stdlib.h>

static void
change(clockid_t clock, struct timespec *now)
{
    static atomic_llong late_ns;
    if (clock == CLOCK_MONOTONIC) {
        long long ns = now->tv_nsec + atomic_fetch_add(
            &late_ns, atoll(getenv("LATE_NS")));
        now->tv_sec += ns / 1000000000;
        now->tv_nsec = ns % 1000000000;
    }
}
