/* Sampling profiler: is a thread that holds the GIL asleep?

   Owns the questions to the kernel: is the thread on a CPU, does it sleep in a
   system call, has it slept since the last tick.  Must not know what the clock
   makes of the answer.

   The thread's CPU clock is read twice.  If it stands still, the kernel is
   asked what the thread does; if not, how long it was off its CPU of its own
   will since the last tick.  Where the kernel does not tell, a thread that is
   off its CPU may be asleep: no system call is interrupted for want of an
   answer.

   All of this runs on the sampler thread, or, in a manual session, on the
   thread that ticks itself, and with runtime->sampling.mutex held. */

#include "Python.h"

#include "pycore_runtime.h"           // _PyRuntime
#include "pycore_sampling_clock.h"
#include "pycore_sampling_parts.h"

#ifdef _PySampling_SUPPORTED

#include <fcntl.h>                    // open()
#include <sched.h>                    // sched_getcpu()
#include <stdio.h>                    // snprintf()
#include <sys/syscall.h>
#include <unistd.h>

/* After a sleep with the GIL a thread gets notes for that many ticks. */
#define SLEEPY_TICKS 4


/* A table of descriptors of its own, empty, so that reading /proc never takes
   a number from the program.  Returns 0 if the kernel cannot do that. */
int
_PySampling_UnshareFiles(void)
{
#if defined(SYS_close_range)
    return syscall(SYS_close_range, 0, ~0U, 2 /* CLOSE_RANGE_UNSHARE */) == 0;
#else
    return 0;
#endif
}

/* Reads /proc/self/task/TID/NAME into `text`.  Returns 0 if that is not
   possible. */
static int
read_proc(const _PySampling_Thread *thread, const char *name,
          char *text, size_t size)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/self/task/%d/%s",
             thread->native_id, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return 0;
    }
    ssize_t got = read(fd, text, size - 1);
    close(fd);
    if (got <= 0) {
        return 0;
    }
    text[got] = '\0';
    return 1;
}

/* Why is the thread not on a CPU?  It may sleep in the kernel, or have been
   moved aside by the sampler thread itself, which runs where it ran.  Returns
   0 if the answer cannot be had. */
static int
ask_kernel(const _PySampling_Thread *thread, int can_read_proc,
           int *is_asleep, int *is_displaced)
{
    *is_asleep = *is_displaced = 0;
    char text[512];
    if (!can_read_proc
        || !read_proc(thread, "stat", text, sizeof(text)))
    {
        return 0;
    }
    // "tid (name) S ppid ...": the name may hold anything, so search
    // backwards.  The state is field 3, the CPU it ran on last is field 39.
    const char *field = strrchr(text, ')');
    for (int number = 2; field != NULL && number < 39; number++) {
        field = strchr(field + 1, ' ');
        if (field != NULL && number == 2) {
            *is_asleep = field[1] == 'S' || field[1] == 'D';
        }
    }
    if (field != NULL) {
        *is_displaced = !*is_asleep && atoi(field + 1) == sched_getcpu();
    }
    return 1;
}

/* Did the thread, which is on a CPU, sleep with the GIL for most of the time
   since the last tick?  Time for which the kernel let it wait for a CPU is no
   sleep; the kernel adds that up when the thread gets its CPU. */
static int
has_slept(_PySampling_Thread *thread, int can_read_proc,
          uint64_t wall_ns, uint64_t cpu_ns)
{
    uint64_t from_ns = thread->seen_wall_ns;
    uint64_t ran = cpu_ns - thread->seen_cpu_ns;
    thread->seen_wall_ns = wall_ns;
    thread->seen_cpu_ns = cpu_ns;
    if (from_ns == 0
        || from_ns < _Py_atomic_load_uint64_relaxed(&thread->attached_ns)
        || from_ns >= wall_ns || ran >= (wall_ns - from_ns) / 2)
    {
        // Nothing to compare with, off the GIL meanwhile, or busy.
        return 0;
    }
    char text[128];
    unsigned long long run_ns, delay_ns;
    if (!can_read_proc
        || !read_proc(thread, "schedstat", text, sizeof(text))
        || sscanf(text, "%llu %llu", &run_ns, &delay_ns) != 2)
    {
        return 1;       // for all that is known
    }
    // If the last such reading is older than the last tick, some of the delay
    // may be too; then the next tick will know.  To take a delay for sleep
    // would falsify the samples of every thread that competes for a CPU.
    uint64_t delayed = delay_ns - thread->seen_delay_ns;
    thread->seen_delay_ns = delay_ns;
    return ran + delayed < (wall_ns - from_ns) / 2;
}

/* A thread that sleeps again and again while it holds the GIL is likely to
   enter a system call before a signal reaches it. */
static int
is_sleepy(_PySampling_Thread *thread, int can_read_proc, int on_cpu,
          uint64_t wall_ns, uint64_t cpu_ns)
{
    if (!on_cpu) {
        return thread->sleepy_ticks > 0;    // nothing new is known
    }
    if (has_slept(thread, can_read_proc, wall_ns, cpu_ns)) {
        thread->sleepy_ticks = SLEEPY_TICKS;
    }
    else if (thread->sleepy_ticks > 0) {
        thread->sleepy_ticks--;
    }
    return thread->sleepy_ticks > 0;
}

/* Did the thread run until now?  One that waits for a CPU because of other
   threads did not: it has run for less than what passed since it was asked
   last, if it has held the GIL since. */
static int
was_running(const _PySampling_Thread *thread, uint64_t wall_ns,
            uint64_t cpu_ns)
{
    uint64_t from_ns = thread->asked_ns;
    if (from_ns < _Py_atomic_load_uint64_relaxed(&thread->attached_ns)) {
        return 1;       // as far as is known
    }
    uint64_t elapsed = wall_ns - from_ns;
    return cpu_ns - thread->asked_cpu_ns >= elapsed - elapsed / 8;
}

/* What does the thread do, whose CPU clock showed `cpu_ns` at the tick? */
_PySampling_Wakefulness
_PySampling_LookAt(_PySampling_Thread *thread, int can_read_proc,
                   uint64_t wall_ns, uint64_t cpu_ns)
{
    int is_asleep = 0, is_displaced = 0;
    if (_PyRuntime.sampling.options.manual) {
        return _PySampling_ON_CPU;      // the thread ticks itself
    }
    // Reading a running thread's clock brings it up to date.
    int on_cpu = _PySampling_CpuNow(thread) != cpu_ns;
    if (!on_cpu
        && !ask_kernel(thread, can_read_proc, &is_asleep, &is_displaced))
    {
        thread->sleepy_ticks = SLEEPY_TICKS;
        return _PySampling_UNKNOWN;
    }
    if (is_asleep) {
        thread->sleepy_ticks = SLEEPY_TICKS;
        return _PySampling_ASLEEP;
    }
    if (is_sleepy(thread, can_read_proc, on_cpu, wall_ns, cpu_ns)) {
        return _PySampling_SLEEPY;
    }
    if (on_cpu) {
        return _PySampling_ON_CPU;
    }
    return is_displaced && was_running(thread, wall_ns, cpu_ns)
        ? _PySampling_DISPLACED : _PySampling_OFF_CPU;
}

#endif  // _PySampling_SUPPORTED
