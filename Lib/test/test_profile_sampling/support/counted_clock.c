/* To be loaded before libc by test_clocks.py: says at the end how often the
   main thread has read the monotonic clock. */

#include "profilers_clock.h"

#include <stdio.h>

static _Thread_local long num_readings;

static void
change(clockid_t clock, struct timespec *now)
{
    num_readings += clock == CLOCK_MONOTONIC;
}

__attribute__((destructor))
static void
report(void)
{
    fprintf(stderr, "readings: %ld\n", num_readings);
}
