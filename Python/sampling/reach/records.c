/* Sampling profiler: records in memory that another process reads.

   Owns the layout: each record is its size, its kind and fields; a field is a
   number of 8 bytes, or a size of 4 and so many bytes.  Must not know what is
   said.

   The memory is a file without a name, so that sending it costs the program
   nothing, however slowly it is read; only the pages that are written are
   there.  Async-signal-safe. */

#include "Python.h"

#include "../native/native.h"         // _PySampling_SlotsSize()
#include "../tables/store.h"
#include "reach.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* At the beginning of the memory; a power of two. */
#define MAX_KNOWN 16384
#define KNOWN_BYTES (MAX_KNOWN * sizeof(void *))

/* So that what is left out can be said. */
#define KEPT_BYTES 64

static size_t
bytes_before_records(void)
{
    return KNOWN_BYTES + _PySampling_SCRATCH_BYTES + _PySampling_SlotsSize();
}


int
_PySampling_RecordsOpen(struct _sampling_records *r, size_t max_bytes)
{
    struct rlimit limit;
    // A program whose address space is limited needs it for itself.
    if (getrlimit(RLIMIT_AS, &limit) == 0) {
        max_bytes = Py_MIN(max_bytes, limit.rlim_cur / 64);
    }
    size_t size = bytes_before_records() + max_bytes;
    // A larger file would be a signal.
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur < size) {
        return 0;
    }
    r->fd = (int)syscall(SYS_memfd_create, "sampleprof", 1 /* CLOEXEC */);
    if (r->fd < 0) {
        return 0;
    }
    // mlockall(MCL_FUTURE) would have all of it there, but for pages that
    // nobody may read.
    void *memory = ftruncate(r->fd, (off_t)size) != 0 ? MAP_FAILED
        : mmap(NULL, size, PROT_NONE, MAP_SHARED, r->fd, 0);
    if (memory == MAP_FAILED) {
        close(r->fd);
        return 0;
    }
    if (munlock(memory, size) != 0
        || mprotect(memory, size, PROT_READ | PROT_WRITE) != 0)
    {
        munmap(memory, size);
        close(r->fd);
        return 0;
    }
    r->known = memory;
    r->scratch = (char *)memory + KNOWN_BYTES;
    r->slots = (void *)(r->scratch + _PySampling_SCRATCH_BYTES);
    r->first = r->at = (char *)memory + bytes_before_records();
    r->end = (char *)memory + size - KEPT_BYTES;
    r->all_bytes = size;
    r->is_full = 0;
    return 1;
}

void
_PySampling_RecordsClose(struct _sampling_records *r)
{
    munmap(r->known, r->all_bytes);
    close(r->fd);
}

static int
has_space(struct _sampling_records *r, size_t size)
{
    r->is_full |= size > (size_t)(r->end - r->at);
    return !r->is_full;
}

static void
put(struct _sampling_records *r, const void *bytes, size_t size)
{
    if (has_space(r, size)) {
        memcpy(r->at, bytes, size);
        r->at += size;
    }
}

void
_PySampling_RecordBegin(struct _sampling_records *r,
                        _PySampling_RecordKind kind)
{
    uint32_t head[2] = {0, (uint32_t)kind};
    r->begin = r->at;
    put(r, head, sizeof(head));
}

void
_PySampling_RecordEnd(struct _sampling_records *r)
{
    if (r->is_full) {
        r->at = r->begin;       // not half of one
        return;
    }
    uint32_t size = (uint32_t)(r->at - r->begin);
    memcpy(r->begin, &size, sizeof(size));
}

void
_PySampling_RecordCut(struct _sampling_records *r)
{
    r->end += KEPT_BYTES;
    r->is_full = 0;
    _PySampling_RecordBegin(r, _PySampling_RECORD_CUT);
    _PySampling_RecordEnd(r);
}

void
_PySampling_PutNumber(struct _sampling_records *r, uint64_t n)
{
    put(r, &n, sizeof(n));
}

void
_PySampling_PutBytes(struct _sampling_records *r, const void *bytes,
                     size_t size)
{
    uint32_t head = (uint32_t)size;
    put(r, &head, sizeof(head));
    put(r, bytes, size);
}

void
_PySampling_PutText(struct _sampling_records *r, PyObject *text)
{
    if (has_space(r, sizeof(uint32_t) + _PySampling_MAX_STRING_BYTES)) {
        uint32_t size = text == NULL || !PyUnicode_Check(text)
            ? 0 : _PySampling_EncodeText(text, r->at + sizeof(size),
                                         _PySampling_MAX_STRING_BYTES);
        memcpy(r->at, &size, sizeof(size));
        r->at += sizeof(size) + size;
    }
}

int
_PySampling_IsNew(struct _sampling_records *r, const void *address)
{
    uint32_t i = (uint32_t)(((uintptr_t)address >> 4)
                            * 0x9E3779B97F4A7C15u >> 40);
    for (int tries = 0; tries < 64; tries++, i++) {
        const void **at = &r->known[i % MAX_KNOWN];
        if (*at == address) {
            return 0;
        }
        if (*at == NULL) {
            *at = address;
            return 1;
        }
    }
    return 1;       // it is said twice
}
