/* To be loaded before libc by test_clocks.py: on a slow machine, whose clock
   moves on by 200 us while somebody reads it. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <time.h>

static int (*real)(clockid_t, struct timespec *);

/* Once: dlsym() takes a lock, and signal handlers ask for the time. */
__attribute__((constructor))
static void
find_real(void)
{
    real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT,
                                                        "clock_gettime");
}

// Extensions are compiled to export nothing.
__attribute__((visibility("default")))
int
clock_gettime(clockid_t clock, struct timespec *now)
{
    static atomic_llong late_ns;
    int result = real(clock, now);
    if (clock == CLOCK_MONOTONIC) {
        long long ns = now->tv_nsec + atomic_fetch_add(&late_ns, 200000);
        now->tv_sec += ns / 1000000000;
        now->tv_nsec = ns % 1000000000;
    }
    return result;
}
