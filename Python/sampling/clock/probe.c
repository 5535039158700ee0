/* Sampling profiler: does a thread that holds the GIL sleep?

   Owns the question to the kernel.  A signal would cut a system call short
   that does not go on by itself.  Must not know what becomes of the answer. */

#include "Python.h"

#include "inside.h"

#include <fcntl.h>                    // open()
#include <stdio.h>                    // snprintf()
#include <sys/syscall.h>
#include <unistd.h>


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
forget_file(struct _sampling_proc *proc, unsigned i)
{
    if (proc->files[i].key != 0 && proc->files[i].fd >= 0) {
        close(proc->files[i].fd);
    }
    proc->files[i].key = 0;
}

void
_PySampling_ProcClose(struct _sampling_proc *proc)
{
    for (unsigned i = 0; i < _PySampling_PROC_FILES; i++) {
        forget_file(proc, i);
    }
}

typedef enum { SYSCALL = 0, STATUS } proc_file;

/* Returns how many bytes of the thread's file there are, 0 of a fault. */
static size_t
read_file(struct _sampling_proc *proc, int native_id, proc_file file,
          char *bytes, size_t size)
{
    static const char *const names[] = {"syscall", "status"};
    unsigned key = 2 * (unsigned)native_id + file;
    unsigned i = key % _PySampling_PROC_FILES;
    if (proc->files[i].key != key) {
        forget_file(proc, i);
        char path[64];
        snprintf(path, sizeof(path), "/proc/self/task/%d/%s", native_id,
                 names[file]);
        proc->files[i].key = key;
        proc->files[i].fd = open(path, O_RDONLY | O_CLOEXEC);
    }
    ssize_t num_bytes = pread(proc->files[i].fd, bytes, size, 0);
    if (num_bytes <= 0) {
        // Of a thread that has ended: its number comes back.
        forget_file(proc, i);
        return 0;
    }
    return num_bytes;
}

uint64_t
_PySampling_ProbeSleeps(struct _sampling_proc *proc,
                        _PySampling_Thread *thread)
{
    static const char name[] = "\nvoluntary_ctxt_switches:\t";
    if (proc == NULL || !proc->can_read) {
        return 0;
    }
    char text[4096];
    text[read_file(proc, thread->native_id, STATUS, text,
                   sizeof(text) - 1)] = '\0';
    const char *found = strstr(text, name);
    return found == NULL
        ? 0 : 1 + strtoull(found + sizeof(name) - 1, NULL, 10);
}

/* Its CPU clock moves if it is on a CPU.  Else the file says "running", of a
   thread that waits for a CPU, or the number and arguments of the call that it
   sleeps in; -1 of a fault. */
_PySampling_Sleep
_PySampling_Probe(struct _sampling_proc *proc, _PySampling_Thread *thread,
                  uint64_t *cpu_ns)
{
    uint64_t before_ns = _PySampling_CpuNow(thread);
    *cpu_ns = _PySampling_CpuNow(thread);
    if (*cpu_ns != before_ns) {
        return _PySampling_ON_CPU;
    }
    if (proc == NULL || !proc->can_read) {
        return _PySampling_MAYBE_ASLEEP;
    }
    char first;
    if (read_file(proc, thread->native_id, SYSCALL, &first, 1) == 0) {
        return _PySampling_MAYBE_ASLEEP;
    }
    return first >= '0' && first <= '9' ? _PySampling_ASLEEP
                                        : _PySampling_WANTS_CPU;
}
