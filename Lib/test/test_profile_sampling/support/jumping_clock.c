/* To be loaded before libc by test_clocks.py: the time of day jumps by an
   hour, forth and back, each time somebody asks for it. */

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
    static atomic_uint asked;
    int result = real(clock, now);
    if (clock == CLOCK_REALTIME && atomic_fetch_add(&asked, 1) % 2) {
        now->tv_sec += 3600;
    }
    return result;
}
