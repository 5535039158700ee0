/* To be loaded before libc by test_clocks.py: the time of day jumps by an
   hour, forth and back, each time somebody asks for it; the monotonic clock is
   ten seconds slow. */

#include "changed_clock.h"

static void
change(clockid_t clock, struct timespec *now)
{
    static atomic_uint asked;
    if (clock == CLOCK_REALTIME && atomic_fetch_add(&asked, 1) % 2) {
        now->tv_sec += 3600;
    }
    if (clock == CLOCK_MONOTONIC) {
        now->tv_sec -= 10;
    }
}
