/* Sampling profiler: allocations of a profile as numbers.

   Owns the columns, which Python and other processes get alike. */

#include "Python.h"

#include "pycore_runtime.h"           // _PyRuntime

#include "alloc.h"

static int64_t
objects_of(const struct _sampling_amount *amount)
{
    return (int64_t)((amount->objects + _PySampling_OBJECT_PARTS / 2)
                     / _PySampling_OBJECT_PARTS);
}

static int64_t
moment_of(const struct _sampling_alloc_table *table, uint32_t interval)
{
    return table->base_time_ns + (int64_t)(interval * table->interval_ns);
}

/* When they were; how many, the sum of their pauses, and the objects that they
   freed, and could not. */
static int64_t *
put_collections(int64_t *out, const struct _sampling_alloc_table *table,
                const struct _sampling_alloc_row *row)
{
    *out++ = moment_of(table, row->key.begun);
    *out++ = (int64_t)row->collections.number;
    *out++ = (int64_t)row->collections.pause_ns;
    *out++ = (int64_t)row->collections.freed;
    *out++ = (int64_t)row->collections.uncollectable;
    return out;
}

/* When they were allocated, and freed, since the epoch, or 0; the decade of
   their lifetime; objects, bytes and variance that were allocated, or freed, in
   use and in use at the peak. */
static int64_t *
put_blocks(int64_t *out, const struct _sampling_alloc_table *table,
           const struct _sampling_alloc_row *row)
{
    const struct _sampling_amount peak = _PySampling_PeakOf(table, row);
    const struct _sampling_amount *amounts[] = {
        &row->allocated, &row->in_use, &peak};
    *out++ = moment_of(table, row->key.begun);
    *out++ = row->key.ended == _PySampling_IN_USE
        ? 0 : moment_of(table, row->key.ended);
    *out++ = row->key.lifetime;
    for (size_t i = 0; i < Py_ARRAY_LENGTH(amounts); i++) {
        *out++ = objects_of(amounts[i]);
        *out++ = (int64_t)amounts[i]->bytes;
        *out++ = (int64_t)amounts[i]->variance;
    }
    return out;
}

uint32_t
_PySampling_AllocWords(const struct _sampling_alloc_table *table,
                       uint32_t number, int of_collections,
                       int64_t out[_PySampling_BLOCK_WORDS])
{
    const struct _sampling_alloc_row *row = &table->allocs[number];
    if (of_collections != (row->key.ended == _PySampling_COLLECTIONS)) {
        return 0;
    }
    int64_t *at = out;
    *at++ = row->key.node;
    *at++ = row->key.thread;
    *at++ = row->key.labels;
    at = of_collections ? put_collections(at, table, row)
                        : put_blocks(at, table, row);
    return (uint32_t)(at - out);
}

const struct _sampling_resident *
_PySampling_NextReading(const struct _sampling_profile *profile,
                        const struct _sampling_resident *reading,
                        const struct _sampling_resident *now)
{
    if (reading == now) {
        return NULL;
    }
    const struct _sampling_alloc *alloc = _PyRuntime.sampling.alloc;
    const struct _sampling_resident *next =
        reading == NULL ? alloc->readings : reading + 1;
    const struct _sampling_resident *end =
        alloc->readings + alloc->num_readings;
    while (next < end && next->wall_ns < profile->start_wall_ns) {
        next++;
    }
    return next < end ? next : now;
}

void
_PySampling_ReadingWords(const struct _sampling_profile *profile,
                         const struct _sampling_resident *reading,
                         int64_t out[_PySampling_READING_WORDS])
{
    *out++ = (int64_t)reading->wall_ns + profile->start_time_ns
        - (int64_t)profile->start_wall_ns;
    *out++ = (int64_t)reading->allocated_bytes;
    *out++ = (int64_t)reading->full_collections;
    *out++ = (int64_t)reading->rss_bytes;
    *out++ = (int64_t)reading->file_bytes;
    *out++ = (int64_t)reading->arenas_bytes;
    *out++ = (int64_t)reading->arenas_used_bytes;
    *out++ = (int64_t)reading->malloc_used_bytes;
    *out++ = (int64_t)reading->malloc_free_bytes;
}
