/* Sampling profiler: what does a thread do that holds the GIL?

   Owns the questions to the kernel: is the thread on a CPU, does it wait for
   one, does it sleep in a system call.  Must not know what the clock makes of
   the answer.

   A thread whose CPU clock moves is on a CPU.  One whose CPU clock stands
   still sleeps, waits for a CPU, or has been moved aside by the sampler thread
   just now; on one CPU it always is one of these.  /proc shows the first, and
   how long the thread has waited for a CPU up to when it last got one.  What
   remains of the time since the last check is a wait that goes on.  One that
   was asleep, and has had no CPU since, is still in its system call, woken or
   not: a signal would cut that short.  Where the
   kernel does not say, a thread that is off its CPU may be asleep: no system
   call is interrupted for want of an answer.

   All of this runs on the sampler thread, or, in a manual session, on the
   thread that ticks itself, and with runtime->sampling.mutex held. */

#include "Python.h"

#include "pycore_runtime.h"           // _PyRuntime

#include "../base/common.h"
#include "inside.h"

#include <fcntl.h>                    // open()
#include <sched.h>                    // sched_getaffinity()
#include <stdio.h>                    // snprintf()
#include <sys/syscall.h>
#include <unistd.h>

/* After a sleep with the GIL a thread gets notes for that many checks that
   find it on a CPU, or nothing unexplained since the check before. */
#define SLEEPY_TICKS 4

/* A thread that was moved aside has been off its CPU for less than this and a
   sixteenth of the time since the last check: the clocks are not read at once,
   and the kernel's are no finer. */
#define DISPLACED_NS 20000
#define DISPLACED_DIVISOR 16


/* Files. */

void
_PySampling_ProcOpen(struct _sampling_proc *proc)
{
    // A table of descriptors of its own, empty, so that no number is taken
    // from the program.  An old glibc has no SYS_ name for a call that the
    // kernel's headers know.
#if defined(__NR_close_range)
    proc->can_read =
        syscall(__NR_close_range, 0, ~0U, 2 /* CLOSE_RANGE_UNSHARE */) == 0;
#endif
}

static void
close_file(struct _sampling_proc_file *file)
{
    if (file->native_id != 0) {
        if (file->state_fd >= 0) {
            close(file->state_fd);
        }
        if (file->delay_fd >= 0) {
            close(file->delay_fd);
        }
        file->native_id = 0;
    }
}

void
_PySampling_ProcClose(struct _sampling_proc *proc)
{
    for (int i = 0; i < _PySampling_PROC_FILES; i++) {
        close_file(&proc->files[i]);
    }
}

static int
open_of_thread(int native_id, const char *name)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/self/task/%d/%s", native_id, name);
    return open(path, O_RDONLY | O_CLOEXEC);
}

static struct _sampling_proc_file *
file_of(struct _sampling_proc *proc, int native_id)
{
    struct _sampling_proc_file *file =
        &proc->files[native_id % _PySampling_PROC_FILES];
    if (file->native_id != native_id) {
        close_file(file);
        file->native_id = native_id;
        // "stat" takes the kernel three times as long; "syscall" is not there
        // everywhere.
        file->state_fd = open_of_thread(native_id, "syscall");
        if (file->state_fd < 0) {
            file->state_fd = open_of_thread(native_id, "stat");
        }
        file->delay_fd = open_of_thread(native_id, "schedstat");
    }
    return file;
}

/* Reads a file from its beginning.  Returns 0 if that is not possible. */
static int
read_text(int fd, char *text, size_t size)
{
    ssize_t got = fd < 0 ? -1 : pread(fd, text, size - 1, 0);
    if (got <= 0) {
        return 0;
    }
    text[got] = '\0';
    return 1;
}


/* Questions. */

/* Does it sleep?  -1 if the kernel does not say. */
static int
is_asleep(const struct _sampling_proc_file *file)
{
    char text[512];
    if (!read_text(file->state_fd, text, sizeof(text))) {
        return -1;
    }
    // stat: "tid (name) S ppid ..."; the name may hold anything.
    const char *end = strrchr(text, ')');
    if (end != NULL) {
        return strlen(end) > 2 && (end[2] == 'S' || end[2] == 'D');
    }
    // syscall: "running", or the number and arguments of the call.
    return strncmp(text, "running", 7) != 0;
}

/* How long it has waited for a CPU in its life, up to when it got one last,
   and how often it got one.  Returns 0 if the kernel does not say. */
static int
read_delay(const struct _sampling_proc_file *file, uint64_t *delay_ns,
           uint64_t *num_slices)
{
    char text[128];
    unsigned long long run, delay, slices;
    if (!read_text(file->delay_fd, text, sizeof(text))
        || sscanf(text, "%llu %llu %llu", &run, &delay, &slices) != 3)
    {
        return 0;
    }
    *delay_ns = delay;
    *num_slices = slices;
    return 1;
}

/* Time since the last check, or since the thread has the GIL if that is less,
   in which it neither ran nor waited for a CPU that it has got since. */
static uint64_t
unexplained(_PySampling_Thread *thread, uint64_t wall_ns, uint64_t cpu_ns,
            uint64_t delayed_ns, uint64_t *elapsed_ns)
{
    uint64_t from_ns = thread->seen_wall_ns;
    uint64_t from_cpu_ns = thread->seen_cpu_ns;
    uint64_t attached_ns =
        _Py_atomic_load_uint64_relaxed(&thread->attached_ns);
    if (from_ns < attached_ns) {
        // It read its CPU clock as it gave the GIL up, or a little before.
        from_ns = attached_ns;
        from_cpu_ns = Py_MAX(
            from_cpu_ns,
            _Py_atomic_load_uint64_relaxed(&thread->account.cpu_ns));
    }
    *elapsed_ns = wall_ns > from_ns ? wall_ns - from_ns : 0;
    uint64_t known_ns = delayed_ns
                        + (cpu_ns > from_cpu_ns ? cpu_ns - from_cpu_ns : 0);
    return *elapsed_ns > known_ns ? *elapsed_ns - known_ns : 0;
}

/* A thread that sleeps again and again while it holds the GIL may enter a
   system call before a signal reaches it. */
static int
is_sleepy(_PySampling_Thread *thread, int has_slept, int has_run)
{
    if (has_slept) {
        thread->sleepy_ticks = SLEEPY_TICKS;
    }
    else if (has_run && thread->sleepy_ticks > 0) {
        thread->sleepy_ticks--;
    }
    return thread->sleepy_ticks > 0;
}

/* Has the thread, which is off its CPU, no other CPU to go on?  Then it has
   run until the sampler thread took it, as far as can be known. */
static int
is_held(const _PySampling_Thread *thread)
{
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    return sched_getaffinity(thread->native_id, sizeof(cpus), &cpus) == 0
        && CPU_COUNT(&cpus) == 1 && CPU_ISSET(sched_getcpu(), &cpus);
}

/* What does the thread do, whose CPU clock showed `cpu_ns` at the tick? */
_PySampling_RunState
_PySampling_ProbeThread(_PySampling_Thread *thread,
                        struct _sampling_proc *proc, uint64_t wall_ns,
                        uint64_t cpu_ns)
{
    if (_PyRuntime.sampling.options.manual) {
        return _PySampling_ON_CPU;      // the thread ticks itself
    }
    struct _sampling_proc_file none = {.state_fd = -1, .delay_fd = -1};
    struct _sampling_proc_file *file =
        proc->can_read ? file_of(proc, thread->native_id) : &none;
    // Reading a running thread's clock brings it up to date.
    int is_elsewhere = _PySampling_CpuNow(thread) != cpu_ns;
    int has_run = is_elsewhere || cpu_ns != thread->seen_cpu_ns;
    int sleeps_on = thread->seen_asleep && !has_run;
    int asleep = 0;
    if (!is_elsewhere) {
        asleep = sleeps_on ? 1 : is_asleep(file);
    }
    if (asleep < 0 && file != &none) {
        // The file may be of a thread that has ended, whose number is used
        // again.
        close_file(file);
        file = file_of(proc, thread->native_id);
        asleep = is_asleep(file);
    }
    uint64_t delay_ns = thread->seen_delay_ns;
    uint64_t num_slices = thread->seen_slices;
    int knows_delay = read_delay(file, &delay_ns, &num_slices);
    // It has had a CPU all the time, and not slept.  What is not explained
    // then is time that a virtual machine did not get of its host.
    int has_stayed = knows_delay && num_slices == thread->seen_slices;
    uint64_t elapsed_ns;
    uint64_t rest_ns = unexplained(thread, wall_ns, cpu_ns,
                                   delay_ns - thread->seen_delay_ns,
                                   &elapsed_ns);
    thread->seen_wall_ns = wall_ns;
    thread->seen_cpu_ns = cpu_ns;
    thread->seen_delay_ns = delay_ns;
    thread->seen_slices = num_slices;
    thread->seen_asleep = asleep > 0;
    if (asleep > 0) {
        thread->sleepy_ticks = SLEEPY_TICKS;
        return _PySampling_ASLEEP;
    }
    if (asleep < 0) {
        thread->sleepy_ticks = SLEEPY_TICKS;
        return _PySampling_UNKNOWN;
    }
    // All the time, or it has waited for a CPU that it has got since.
    int has_run_on =
        rest_ns < DISPLACED_NS + elapsed_ns / DISPLACED_DIVISOR;
    // Held or not, it may be in the kernel, on its way to sleep.
    if (is_sleepy(thread,
                  is_elsewhere && !has_stayed
                      && rest_ns > DISPLACED_NS + elapsed_ns / 2,
                  is_elsewhere
                      || (has_run && (has_run_on || is_held(thread)))))
    {
        return _PySampling_SLEEPY;
    }
    if (is_elsewhere) {
        return _PySampling_ON_CPU;
    }
    if (!knows_delay) {
        return rest_ns < elapsed_ns / 8
            ? _PySampling_ON_CPU : _PySampling_OFF_CPU;
    }
    return has_run_on ? _PySampling_ON_CPU : _PySampling_OFF_CPU;
}
