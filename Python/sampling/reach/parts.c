/* Sampling profiler: a profile as records, for another process.

   Owns which record has which columns, in the shape that Modules/_profile/
   export.c gives Python.  Needs no GIL, as the profile is the caller's own,
   unless that has allocations: their readings are not. */

#include "Python.h"

#include "../alloc/alloc.h"
#include "../tables/profile.h"
#include "reach.h"

static void
begin_part(struct _sampling_records *r, const char *name)
{
    _PySampling_RecordBegin(r, _PySampling_RECORD_PART);
    _PySampling_PutBytes(r, name, strlen(name));
}

void
_PySampling_PutPart(struct _sampling_records *r, const char *name,
                    const void *bytes, size_t size)
{
    begin_part(r, name);
    _PySampling_PutBytes(r, bytes, size);
    _PySampling_RecordEnd(r);
}

/* Structs as they are. */
static void
put_rows(struct _sampling_records *r, const char *name,
         const PySampling_Rows *rows)
{
    _PySampling_PutPart(r, name, rows->rows,
                        (size_t)rows->num * rows->stride);
}

#define ROW(TYPE, ROWS, I) PySampling_ROW(PySampling_##TYPE, (ROWS), (I))

static void
put_strings(struct _sampling_records *r, const PySampling_Batch *batch)
{
    begin_part(r, "strings");
    for (uint32_t row = 0; row < batch->strings.num; row++) {
        const PySampling_String *s = ROW(String, batch->strings, row);
        _PySampling_PutBytes(r, s->utf8, s->size);
    }
    _PySampling_RecordEnd(r);
}

static void
put_samples(struct _sampling_records *r, const PySampling_Batch *batch)
{
    begin_part(r, "samples");
    for (uint32_t row = 0; row < batch->samples.num; row++) {
        const PySampling_Sample *s = ROW(Sample, batch->samples, row);
        _PySampling_PutNumber(r, s->node);
        _PySampling_PutNumber(r, s->thread);
        _PySampling_PutNumber(r, s->labels);
        _PySampling_PutNumber(r, s->state);
        _PySampling_PutNumber(
            r, s->holder_thread == PySampling_NO_THREAD
               ? UINT64_MAX : s->holder_thread);
        _PySampling_PutNumber(r, s->holder_node);
#define X(NAME, KIND, UNIT) _PySampling_PutNumber(r, s->NAME);
        _PySampling_VALUES(X)
#undef X
    }
    _PySampling_RecordEnd(r);
}

static void
put_tasks(struct _sampling_records *r, const PySampling_Batch *batch)
{
    begin_part(r, "tasks");
    for (uint32_t i = 0; i < batch->task_classes.num; i++) {
        const PySampling_TaskClass *c =
            ROW(TaskClass, batch->task_classes, i);
        uint32_t used = c->num_lives;
        while (used > 0 && c->lives[used - 1] == 0) {
            used--;
        }
        const uint64_t numbers[] = {
            c->function, c->finished, c->cancelled, c->running_ns,
            c->loop_wait_ns, c->awaiting_ns, c->longest_step_ns,
            c->longest_life_ns, c->steps, c->lives_ns};
        _PySampling_PutBytes(r, numbers, sizeof(numbers));
        _PySampling_PutBytes(r, c->lives, used * sizeof(*c->lives));
    }
    _PySampling_RecordEnd(r);
}

static void
put_named(struct _sampling_records *r, const char *part, const char *name,
          uint64_t value)
{
    begin_part(r, part);
    _PySampling_PutBytes(r, name, strlen(name));
    _PySampling_PutNumber(r, value);
    _PySampling_RecordEnd(r);
}

static void
put_words(struct _sampling_records *r, const int64_t *words, uint32_t num)
{
    for (uint32_t i = 0; i < num; i++) {
        _PySampling_PutNumber(r, (uint64_t)words[i]);
    }
}

static void
put_rows_of_allocations(struct _sampling_records *r, const char *name,
                        const struct _sampling_alloc_table *table,
                        int of_collections)
{
    begin_part(r, name);
    for (uint32_t row = 0; row < table->num_allocs; row++) {
        int64_t words[_PySampling_BLOCK_WORDS];
        put_words(r, words, _PySampling_AllocWords(table, row, of_collections,
                                                   words));
    }
    _PySampling_RecordEnd(r);
}

static void
put_allocations(struct _sampling_records *r,
                const struct _sampling_profile *profile,
                const struct _sampling_resident *now)
{
    const struct _sampling_alloc_table *table = &profile->allocations;
#define X(NAME, VALUE) put_named(r, "memory", #NAME, (uint64_t)(VALUE));
    _PySampling_FACTS_OF_ALLOCATIONS(X)
#undef X
    put_rows_of_allocations(r, "blocks", table, 0);
    put_rows_of_allocations(r, "collections", table, 1);
    begin_part(r, "readings");
    int64_t words[_PySampling_READING_WORDS];
    const struct _sampling_resident *reading = NULL;
    while ((reading = _PySampling_NextReading(profile, reading, now)) != NULL)
    {
        _PySampling_ReadingWords(profile, reading, words);
        put_words(r, words, _PySampling_READING_WORDS);
    }
    _PySampling_RecordEnd(r);
}

void
_PySampling_PutProfile(struct _sampling_records *r,
                       const struct _sampling_profile *profile,
                       const struct _sampling_resident *now)
{
    const PySampling_Batch *batch = &profile->batch;
    put_named(r, "head", "mode", (uint64_t)profile->options.mode);
    put_named(r, "head", "rate_hz", (uint64_t)profile->options.rate_hz);
    put_named(r, "head", "depth_frames",
              (uint64_t)profile->options.depth_frames);
    put_named(r, "head", "names", (uint64_t)profile->options.names);
    put_named(r, "head", "start_time_ns", (uint64_t)profile->start_time_ns);
    put_named(r, "head", "duration_ns", profile->duration_ns);
    put_named(r, "head", "start_ns", profile->start_wall_ns);
    put_named(r, "head", "resolution_ns", profile->rows->resolution_ns);
#define X(NAME, KIND, UNIT) put_named(r, "measured", KIND " " UNIT, 0);
    _PySampling_VALUES(X)
#undef X
#define X(NAME) put_named(r, "stats", #NAME, profile->counters.NAME);
    _PySampling_COUNTERS(X)
#undef X
    put_strings(r, batch);
    put_rows(r, "functions", &batch->functions);
    put_rows(r, "frames", &batch->frames);
    put_rows(r, "nodes", &batch->nodes);
    put_rows(r, "labels", &batch->labels);
    put_rows(r, "threads", &batch->threads);
    put_samples(r, batch);
    put_tasks(r, batch);
    if (profile->rows->max_moments != 0) {
        put_rows(r, "moments", &batch->moments);
    }
    if (profile->allocations.period_bytes != 0) {
        put_allocations(r, profile, now);
    }
}
