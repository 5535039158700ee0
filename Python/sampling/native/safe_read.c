/* Sampling profiler: reading memory that may be gone.

   Owns the question whether an address can be read.  Must not know what lies
   there.

   Three answers, cheapest first:
   - The interpreter's own image (static types, small integers, singletons,
     the names of built-in functions) stays as long as the process.
   - Arenas of the object allocator are unmapped only by a thread that holds
     the interpreter's GIL, so not while the caller does.  A signal handler
     may have interrupted that very thread: it marks an arena as gone before
     it unmaps it.
   - For all else the kernel copies: process_vm_readv() on this process reports
     a bad address instead of raising a signal.  Where that is forbidden, as in
     some containers, rt_sigprocmask() with an invalid request shows whether
     the address can be read, and it is read then. */

#include "Python.h"

#include "pycore_interp.h"            // PyInterpreterState.obmalloc
#include "pycore_obmalloc.h"          // arena_map_bot_t
#include "pycore_runtime.h"           // _PyRuntime

#include "native.h"

#include <dlfcn.h>                    // _dl_find_object()
#include <errno.h>
#include <link.h>                     // dl_iterate_phdr()
#include <sys/syscall.h>
#include <sys/uio.h>                  // struct iovec
#include <unistd.h>

/* No object lies below: Linux maps nothing there. */
#define LOWEST_ADDRESS 4096

#define PAGE_BYTES 4096


/* The interpreter's image. */

/* Called for each loaded object; takes the segments of the one that holds the
   runtime. */
static int
note_image(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct _sampling_memory *memory = arg;
    uintptr_t runtime = (uintptr_t)&_PyRuntime;
    int found = 0;
    memory->num_ranges = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type != PT_LOAD
            || memory->num_ranges == _PySampling_MAX_IMAGE_RANGES)
        {
            continue;
        }
        uintptr_t from = info->dlpi_addr + segment->p_vaddr;
        uintptr_t to = from + segment->p_memsz;
        memory->ranges[memory->num_ranges].from = from;
        memory->ranges[memory->num_ranges].to = to;
        memory->num_ranges++;
        found |= from <= runtime && runtime < to;
    }
    return found;       // 1 ends the search
}

static inline int
is_in_image(const struct _sampling_memory *memory, uintptr_t from, size_t size)
{
    for (int i = 0; i < memory->num_ranges; i++) {
        if (memory->ranges[i].from <= from
            && from + size <= memory->ranges[i].to)
        {
            return 1;
        }
    }
    return 0;
}


/* Arenas. */

/* As _PyObject_Free() asks, whose function is private to obmalloc.c. */
static inline int
is_in_arena(PyInterpreterState *interp, uintptr_t address)
{
#if defined(WITH_PYMALLOC) && WITH_PYMALLOC_RADIX_TREE
    const struct _obmalloc_state *state = interp->obmalloc;
    if (state == NULL) {
        return 0;
    }
#  ifdef USE_INTERIOR_NODES
    const arena_map_mid_t *mid =
        state->usage.arena_map_root.ptrs[MAP_TOP_INDEX(address)];
    if (mid == NULL) {
        return 0;
    }
    const arena_map_bot_t *bottom = mid->ptrs[MAP_MID_INDEX(address)];
    if (bottom == NULL) {
        return 0;
    }
#  else
    const arena_map_bot_t *bottom = &state->usage.arena_map_root;
#  endif
    const arena_coverage_t *arena = &bottom->arenas[MAP_BOT_INDEX(address)];
    int32_t tail = (int32_t)(address & ARENA_SIZE_MASK);
    return tail < arena->tail_lo
        || (arena->tail_hi != 0 && tail >= arena->tail_hi);
#else
    return 0;
#endif
}


/* The kernel. */

static int
can_probe(uintptr_t address)
{
    // A set of signals is 8 bytes; -1 is no way to apply it, which the kernel
    // finds out after it has copied the set.
    uintptr_t aligned = address & ~(uintptr_t)7;
    return syscall(SYS_rt_sigprocmask, -1, aligned, NULL, 8) != 0
        && errno == EINVAL;
}

// The address may be poisoned: it is known to be readable, no more.
#if defined(__clang__) || defined(__GNUC__)
__attribute__((no_sanitize("address", "thread")))
#endif
static void
copy(uintptr_t from, void *to, size_t size)
{
    if ((from | (uintptr_t)to | size) % sizeof(uintptr_t) == 0) {
        const volatile uintptr_t *words = (const uintptr_t *)from;
        for (size_t i = 0; i < size / sizeof(uintptr_t); i++) {
            ((uintptr_t *)to)[i] = words[i];
        }
        return;
    }
    const volatile unsigned char *bytes = (const unsigned char *)from;
    for (size_t i = 0; i < size; i++) {
        ((unsigned char *)to)[i] = bytes[i];
    }
}

static int
ask_kernel(const struct _sampling_memory *memory, uintptr_t from, void *to,
           size_t size)
{
    if (memory->can_readv) {
        struct iovec local = {to, size};
        struct iovec remote = {(void *)from, size};
        if (syscall(SYS_process_vm_readv, memory->pid, &local, 1, &remote, 1,
                    0) == (long)size)
        {
            return 1;
        }
        if (errno != EPERM && errno != ENOSYS) {
            return 0;       // else: forbidden since the session started
        }
    }
    if (!can_probe(from) || !can_probe(from + size - 1)) {
        return 0;
    }
    copy(from, to, size);
    return 1;
}


void
_PySampling_MemoryInit(void)
{
    struct _sampling_memory *memory = &_PyRuntime.sampling.memory;
    // Once: in the child of a fork, where the image is the same, a thread that
    // is no more may have the loader's lock.
    if (memory->pid == 0 && !dl_iterate_phdr(note_image, memory)) {
        memory->num_ranges = 0;
    }
    memory->pid = (int)getpid();
    int pid;
    struct iovec local = {&pid, sizeof(pid)};
    struct iovec remote = {&memory->pid, sizeof(pid)};
    memory->can_readv = syscall(SYS_process_vm_readv, memory->pid, &local, 1,
                                &remote, 1, 0) == sizeof(pid);
}

int
_PySampling_ReadMemory(PyInterpreterState *interp, const void *from, void *to,
                       size_t size)
{
    const struct _sampling_memory *memory = &_PyRuntime.sampling.memory;
    uintptr_t address = (uintptr_t)from;
    assert(size > 0 && size <= PAGE_BYTES);
    if (address < LOWEST_ADDRESS || address > UINTPTR_MAX - size) {
        return 0;
    }
    if (is_in_image(memory, address, size)
        || (interp != NULL && is_in_arena(interp, address)
            && is_in_arena(interp, address + size - 1)))
    {
        copy(address, to, size);
        return 1;
    }
    // A probe says nothing of the moment after it.
    return (interp != NULL || memory->can_readv)
        && ask_kernel(memory, address, to, size);
}

int
_PySampling_IsLoaded(const void *address)
{
    if (is_in_image(&_PyRuntime.sampling.memory, (uintptr_t)address, 1)) {
        return 1;
    }
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 35)
    // Takes no lock.
    struct dl_find_object object;
    return _dl_find_object((void *)address, &object) == 0;
#else
    return 0;
#endif
}

int
_PySampling_ReadString(PyInterpreterState *interp, const char *from, char *to,
                       int size)
{
    for (int done = 0; done < size; ) {
        // Never across the end of a page: the next one may not be there.
        uintptr_t left = PAGE_BYTES - ((uintptr_t)(from + done) % PAGE_BYTES);
        int chunk = (int)Py_MIN(left, (uintptr_t)Py_MIN(size - done, 64));
        if (!_PySampling_ReadMemory(interp, from + done, to + done,
                                    (size_t)chunk))
        {
            return -1;
        }
        const char *end = memchr(to + done, '\0', (size_t)chunk);
        if (end != NULL) {
            return (int)(end - to);
        }
        done += chunk;
    }
    return -1;
}
