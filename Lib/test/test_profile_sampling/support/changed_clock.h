/* Stands before clock_gettime() of libc: a file that includes this one defines
   change(), which is given what libc says. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <time.h>

static int (*real)(clockid_t, struct timespec *);

static void change(clockid_t clock, struct timespec *now);

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
    int result = real(clock, now);
    change(clock, now);
    return result;
}
