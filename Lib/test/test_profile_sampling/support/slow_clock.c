/* To be loaded before libc by test_clocks.py: on a slow machine, whose clock
   moves on by 200 us while somebody reads it. */

#include "changed_clock.h"

#include <string.h>

/* The profiler asks the C library itself: here, whoever comes first. */
__attribute__((visibility("default")))
void *
dlopen(const char *file, int mode)
{
    void *(*open)(const char *, int) =
        (void *(*)(const char *, int))dlsym(RTLD_NEXT, "dlopen");
    int is_libc = file != NULL && strcmp(file, "libc.so.6") == 0;
    return open(is_libc ? NULL : file, mode);
}

static void
change(clockid_t clock, struct timespec *now)
{
    static atomic_llong late_ns;
    if (clock == CLOCK_MONOTONIC) {
        long long ns = now->tv_nsec + atomic_fetch_add(&late_ns, 200000);
        now->tv_sec += ns / 1000000000;
        now->tv_nsec = ns % 1000000000;
    }
}
