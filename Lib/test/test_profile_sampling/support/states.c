/* Computes, then sleeps: as much of each as is asked for. */

#include <stdint.h>
#include <time.h>

static int64_t
cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* Returns the CPU time of all of it. */
__attribute__((visibility("default")))
int64_t
compute_and_sleep(int64_t compute_ns, int64_t sleep_ns)
{
    int64_t began_ns = cpu_ns();
    while (cpu_ns() - began_ns < compute_ns) {
    }
    struct timespec rest = {sleep_ns / 1000000000, sleep_ns % 1000000000};
    if (sleep_ns != 0) {
        nanosleep(&rest, NULL);
    }
    return cpu_ns() - began_ns;
}
