/* Sampling profiler: how a session or a block is handed over.

   Owns when its time begins, and what becomes of what was taken.  Must not
   know whose it is (session/session.c, session/blocks.c), nor when it gets
   records. */

#include "Python.h"

#include "pycore_runtime.h"           // _PyRuntime
#include "pycore_time.h"              // PyTime_TimeRaw()

#include "../alloc/alloc.h"
#include "session.h"

#define STATE (&_PyRuntime.sampling)


/* Counters. */

void
_PySampling_ReadCounters(struct _sampling_counters *counters)
{
#define X(name) \
    counters->name = \
        _Py_atomic_load_uint64_relaxed(&STATE->counters.name);
    _PySampling_COUNTERS(X)
#undef X
    counters->allocated_bytes = _PySampling_AllocTotalBytes();
}

void
_PySampling_CountersSince(struct _sampling_counters *counters,
                          const struct _sampling_counters *before)
{
    uint64_t memory_bytes = counters->memory_bytes;     // it is no sum
#define X(name) counters->name -= before->name;
    _PySampling_COUNTERS(X)
#undef X
    counters->memory_bytes = memory_bytes;
}


/* Begin. */

void
_PySampling_BeginSink(struct _sampling_sink *sink, uint64_t wall_ns)
{
    PyTime_t now = 0;
    (void)PyTime_TimeRaw(&now);
    sink->start_time_ns = now;
    sink->start_wall_ns = wall_ns;
    sink->start_skipped_ns = _PySampling_SkippedNow();
    _PySampling_ReadCounters(&sink->counters);
    _PySampling_AllocTableBegin(&sink->allocations, now, wall_ns);
    if (sink->allocations.since == _PySampling_SINCE_BEGIN) {
        sink->allocations.since =
            STATE->alloc != NULL ? STATE->alloc->num_samples : 0;
    }
    else if (sink->allocations.period_bytes != 0) {
        _PySampling_AllocTableClear(&sink->allocations);
    }
}

void
_PySampling_BeginSinkAnew(struct _sampling_sink *sink, uint64_t wall_ns)
{
    _PySampling_LockTables();
    struct _sampling_rows *old = sink->taken;
    sink->taken = NULL;
    _PySampling_UnlockTables();
    _PySampling_RowsFree(old);
    _PySampling_BeginSink(sink, wall_ns);
}

void
_PySampling_SinksBegin(uint64_t wall_ns)
{
    for (struct _sampling_sink *sink = STATE->sinks; sink != NULL;
         sink = sink->next)
    {
        if (sink->start_wall_ns == 0) {
            _PySampling_BeginSink(sink, wall_ns);
        }
    }
}


/* Taking, with the lock of control. */

static int
describe(const struct _sampling_sink *sink, uint64_t end_ns,
         struct _sampling_taken *taken)
{
    taken->options = sink->options;
    taken->start_time_ns = sink->start_time_ns;
    taken->start_wall_ns = sink->start_wall_ns + sink->start_skipped_ns;
    taken->duration_ns = end_ns + _PySampling_SkippedNow()
                         - taken->start_wall_ns;
    _PySampling_ReadCounters(&taken->counters);
    _PySampling_CountersSince(&taken->counters, &sink->counters);
    return _PySampling_AllocTableCopy(&taken->allocations,
                                      &sink->allocations);
}

/* Other threads run meanwhile if a hand-over takes longer than to give the GIL
   up and to get it again. */
#define MANY_SAMPLES 4096

/* A few samples more than snapshots have taken so far, which nobody reads any
   more: at once, so that no hand-over has to go through all that there is. */
static void
merge_few(struct _sampling_sink *sink)
{
    struct _sampling_rows *rows = sink->taken, *older = rows->older;
    if (older == NULL || older->older != NULL
        || rows->num_samples > MANY_SAMPLES
        || _Py_atomic_load_int(&older->references) != 1
        || !_PySampling_RowsMerge(older, rows))
    {
        return;
    }
    _PySampling_LockTables();
    rows->older = NULL;
    sink->taken = older;
    _PySampling_UnlockTables();
    _PySampling_RowsFree(rows);
}

int
_PySampling_TakeSoFar(struct _sampling_sink *sink, uint64_t end_ns,
                      struct _sampling_taken *taken)
{
    _PySampling_LockTables();
    int ok = _PySampling_SinkTurn(sink);
    if (ok) {
        // With the lock: what is counted is on it.
        ok = describe(sink, end_ns, taken);
    }
    _PySampling_UnlockTables();
    if (ok) {
        merge_few(sink);
        taken->rows = sink->taken;
        _PySampling_RowsKeep(taken->rows);
    }
    return ok;
}

void
_PySampling_TakeAll(struct _sampling_sink *sink, uint64_t end_ns,
                    struct _sampling_taken *taken)
{
    _PySampling_LockTables();
    // Without memory it has no allocations.
    (void)describe(sink, end_ns, taken);
    taken->rows = sink->rows;
    if (taken->rows != NULL) {
        taken->rows->older = sink->taken;
    }
    else {
        taken->rows = sink->taken;
    }
    sink->rows = sink->taken = NULL;
    _PySampling_UnlockTables();
}


/* What was taken becomes a profile, without any lock. */

/* The next snapshot need not merge them again. */
static void
keep_merged(struct _sampling_rows *rows, struct _sampling_rows *merged)
{
    _PySampling_LockControl();
    _PySampling_LockTables();
    struct _sampling_sink *sink = STATE->session;
    if (sink == NULL || sink->taken != rows) {
        sink = STATE->sinks;
        while (sink != NULL && sink->taken != rows) {
            sink = sink->next;
        }
    }
    if (sink != NULL) {
        sink->taken = merged;
        _PySampling_RowsKeep(merged);
    }
    _PySampling_UnlockTables();
    _PySampling_UnlockControl();
    if (sink != NULL) {
        _PySampling_RowsFree(rows);
    }
}

static struct _sampling_profile *
extract(struct _sampling_rows *rows, struct _sampling_alloc_table *allocations)
{
    if (rows->older == NULL) {
        return _PySampling_ProfileExtract(rows, allocations);
    }
    struct _sampling_rows *merged = _PySampling_RowsMerged(rows);
    if (merged == NULL) {
        return NULL;
    }
    struct _sampling_profile *profile = _PySampling_ProfileExtract(merged, allocations);
    keep_merged(rows, merged);
    _PySampling_RowsFree(merged);
    return profile;
}

_PySampling_Status
_PySampling_HandOver(struct _sampling_taken *taken,
                     struct _sampling_profile **result)
{
    uint32_t num_samples = 0;
    for (const struct _sampling_rows *r = taken->rows; r != NULL; r = r->older)
    {
        num_samples += r->num_samples;
    }
    if (num_samples > MANY_SAMPLES) {
        Py_BEGIN_ALLOW_THREADS
        *result = extract(taken->rows, &taken->allocations);
        Py_END_ALLOW_THREADS
    }
    else {
        *result = taken->rows != NULL
            ? extract(taken->rows, &taken->allocations) : NULL;
    }
    _PySampling_RowsFree(taken->rows);
    _PySampling_AllocTableFree(&taken->allocations);
    if (*result == NULL) {
        return _PySampling_ERR_NO_MEMORY;
    }
    (*result)->options = taken->options;
    (*result)->start_time_ns = taken->start_time_ns;
    (*result)->start_wall_ns = taken->start_wall_ns;
    (*result)->duration_ns = taken->duration_ns;
    (*result)->counters = taken->counters;
    return _PySampling_OK;
}
