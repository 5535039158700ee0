/* Sampling profiler: of what the memory of the process consists.

   Owns the reading of what allocators and the kernel know of themselves.  Must
   not know of samples. */

#include "Python.h"

#include "pycore_interp.h"            // PyInterpreterState.obmalloc
#include "pycore_obmalloc.h"          // struct arena_object
#include "pycore_pystate.h"           // _PyInterpreterState_GET()

#include "alloc.h"

#include <fcntl.h>
#include <malloc.h>                   // mallinfo2()
#include <string.h>
#include <unistd.h>


/* What /proc/self/status says, in KiB. */
static uint64_t
status_bytes(const char *text, const char *name)
{
    const char *line = strstr(text, name);
    return line == NULL ? 0
        : (uint64_t)strtoull(line + strlen(name), NULL, 10) << 10;
}

static void
read_status(struct _sampling_resident *resident)
{
    char text[4096];
    int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    ssize_t size = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
    if (fd >= 0) {
        (void)close(fd);
    }
    if (size > 0) {
        text[size] = '\0';
        resident->rss_bytes = status_bytes(text, "\nVmRSS:");
        resident->peak_rss_bytes = status_bytes(text, "\nVmHWM:");
        resident->file_bytes = status_bytes(text, "\nRssFile:")
            + status_bytes(text, "\nRssShmem:");
    }
}

#ifdef WITH_PYMALLOC
/* Blocks in use of an arena, whose pools are carved off one after the other. */
static uint64_t
used_of_arena(const struct arena_object *arena)
{
    uint64_t bytes = 0;
    uintptr_t pool = (uintptr_t)_Py_ALIGN_UP(arena->address, POOL_SIZE);
    for (; pool < (uintptr_t)arena->pool_address; pool += POOL_SIZE) {
        const struct pool_header *header = (struct pool_header *)pool;
        if (header->ref.count != 0) {
            bytes += (uint64_t)header->ref.count
                * INDEX2SIZE(header->szidx);
        }
    }
    return bytes;
}

static void
read_arenas(struct _sampling_resident *resident)
{
    const struct _obmalloc_mgmt *mgmt =
        &_PyInterpreterState_GET()->obmalloc->mgmt;
    for (unsigned int i = 0; i < mgmt->maxarenas; i++) {
        const struct arena_object *arena = &mgmt->arenas[i];
        if (arena->address != 0) {
            resident->arenas_bytes += ARENA_SIZE;
            resident->arenas_used_bytes += used_of_arena(arena);
        }
    }
}
#else
static void
read_arenas(struct _sampling_resident *Py_UNUSED(resident))
{
}
#endif

static void
read_malloc(struct _sampling_resident *resident)
{
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 33)
    struct mallinfo2 info = mallinfo2();
    resident->malloc_used_bytes = info.uordblks + info.hblkhd;
    resident->malloc_free_bytes = info.fordblks;
    resident->has_malloc = 1;
#endif
}

/* Readings take a thousandth of the time at most: pools of a large heap are
   read one by one, and malloc goes through its free blocks. */
#define READING_SHARE 1000

void
_PySampling_KeepResident(struct _sampling_alloc *alloc,
                         PyInterpreterState *interp)
{
    uint64_t now_ns = _PySampling_WallNow();
    if (now_ns < alloc->next_reading_ns || !_Py_IsMainInterpreter(interp)) {
        return;
    }
    if (alloc->num_readings == _PySampling_MAX_READINGS) {
        alloc->num_readings /= 2;
        for (uint32_t i = 0; i < alloc->num_readings; i++) {
            alloc->readings[i] = alloc->readings[2 * i + 1];
        }
        alloc->reading_every_ns *= 2;
    }
    _PySampling_ReadResident(&alloc->readings[alloc->num_readings++]);
    uint64_t took_ns = _PySampling_WallNow() - now_ns;
    alloc->next_reading_ns = now_ns + Py_MAX(alloc->reading_every_ns,
                                             READING_SHARE * took_ns);
}

void
_PySampling_ReadResident(struct _sampling_resident *resident)
{
    memset(resident, 0, sizeof(*resident));
    resident->wall_ns = _PySampling_WallNow();
    resident->allocated_bytes = _PySampling_AllocTotalBytes();
    resident->full_collections = (uint64_t)_PyInterpreterState_GET()
        ->gc.generation_stats[NUM_GENERATIONS - 1].collections;
    read_status(resident);
    read_arenas(resident);
    read_malloc(resident);
}
