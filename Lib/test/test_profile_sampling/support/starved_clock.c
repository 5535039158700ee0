/* To be loaded before libc by test_clocks.py: each reading comes 2 ms late, as
   for a thread that has lost its CPU. */

#include "changed_clock.h"

static void
change(clockid_t clock, struct timespec *now)
{
    static atomic_llong late_ns;
    if (clock == CLOCK_MONOTONIC) {
        long long ns = now->tv_nsec + atomic_fetch_add(&late_ns, 2000000);
        now->tv_sec += ns / 1000000000;
        now->tv_nsec = ns % 1000000000;
    }
}
