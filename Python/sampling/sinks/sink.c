/* Sampling profiler: a sink.

   Owns what a session, a block of profile() and a subscription have in common:
   rows that fill up, and are swapped for empty ones when they are taken.  Must
   not know where records come from, or when a sink is opened and closed
   (session/). */

#include "Python.h"

#include "pycore_runtime.h"           // _PyRuntime

#include "sinks.h"

#define STATE (&_PyRuntime.sampling)


/* Life. */

struct _sampling_sink *
_PySampling_SinkNew(const _PySampling_Options *options)
{
    struct _sampling_sink *sink = calloc(1, sizeof(*sink));
    if (sink != NULL) {
        sink->options = *options;
        sink->gets_tasks = sink->gets_task_table = 1;
        sink->max_samples = UINT32_MAX;
        sink->max_moments =
            options->has_timeline ? _PySampling_MAX_MOMENTS : 0;
    }
    return sink;
}

struct _sampling_sink *
_PySampling_SinkOfSubscriber(const _PySampling_Options *options,
                             const _PySampling_SubscribeOptions *wanted)
{
    struct _sampling_sink *sink = _PySampling_SinkNew(options);
    int ok = sink != NULL;
    if (ok) {
        sink->is_subscription = 1;
        sink->gets_events = 1;
        sink->max_samples = wanted->max_samples;
        sink->max_moments = wanted->max_moments;
        sink->wake_records = wanted->wake_records;
        sink->gets_tasks = wanted->tasks;
        // Who gets a part of the samples has no use for what all tasks did.
        sink->gets_task_table = wanted->tasks
            && wanted->thread_idents == NULL && wanted->num_labels == 0;
        sink->filter = _PySampling_FilterNew(wanted, &ok);
    }
    if (!ok) {
        _PySampling_SinkFree(sink);
        return NULL;
    }
    return sink;
}

void
_PySampling_SinkForget(struct _sampling_sink *sink)
{
    _PySampling_RowsFree(sink->rows);
    _PySampling_RowsFree(sink->taken);
    sink->rows = sink->taken = NULL;
    _PySampling_AllocTableFree(&sink->allocations);
}

void
_PySampling_SinkFree(struct _sampling_sink *sink)
{
    if (sink != NULL) {
        _PySampling_SinkForget(sink);
        _PySampling_FilterFree(sink->filter);
        free(sink);
    }
}

static struct _sampling_rows *
new_rows(const struct _sampling_sink *sink)
{
    return _PySampling_RowsNew(STATE->tables, sink->max_samples,
                               sink->max_moments);
}

int
_PySampling_SinkReady(struct _sampling_sink *sink)
{
    if (sink->rows == NULL) {
        sink->rows = new_rows(sink);
    }
    return sink->rows != NULL
        && (sink->options.alloc_bytes == 0
            || sink->allocations.period_bytes != 0
            || _PySampling_AllocTableInit(&sink->allocations,
                                          sink->options.alloc_bytes,
                                          STATE->tables->lost_node));
}

void
_PySampling_SinkLink(struct _sampling_sink *sink)
{
    _PySampling_LINK(STATE->sinks, sink);
    STATE->num_profiles += !sink->is_subscription;
    sink->is_linked = 1;
    _Py_atomic_store_int_relaxed(&sink->is_open, 1);
}

static void
wake(struct _sampling_sink *sink)
{
    if (sink->wakeup != NULL) {
        _PySampling_Wake(sink->wakeup);
    }
}

void
_PySampling_SinkUnlink(struct _sampling_sink *sink)
{
    _PySampling_UNLINK(STATE->sinks, sink);
    STATE->num_profiles -= !sink->is_subscription;
    sink->is_linked = 0;
    _Py_atomic_store_int_relaxed(&sink->is_open, 0);
    wake(sink);
}

size_t
_PySampling_SinksBytes(void)
{
    size_t bytes = 0;
    for (struct _sampling_sink *sink = STATE->sinks; sink != NULL;
         sink = sink->next)
    {
        bytes += sizeof(*sink) + _PySampling_FilterBytes(sink->filter);
        for (struct _sampling_rows *r = sink->rows; r != NULL; r = r->older) {
            bytes += r->bytes;
        }
        for (struct _sampling_rows *r = sink->taken; r != NULL; r = r->older) {
            bytes += r->bytes;
        }
    }
    return bytes;
}


/* What comes in. */

static int
passes(struct _sampling_sink *sink, uint32_t thread, uint32_t labels)
{
    return sink->filter == NULL
        || (_PySampling_FilterWantsThread(sink->filter, thread)
            && _PySampling_FilterWantsLabels(sink->filter, labels));
}

static int
wants(struct _sampling_sink *sink, uint32_t thread, uint32_t labels)
{
    return sink->rows != NULL && sink->rows->tables == STATE->tables
        && passes(sink, thread, labels);
}

int
_PySampling_SinkWantsBlock(struct _sampling_sink *sink,
                           const struct _sampling_alloc_key *key)
{
    return sink->allocations.period_bytes != 0
        && sink->allocations.since != _PySampling_SINCE_BEGIN
        && passes(sink, key->thread, key->labels);
}

static void
wake_if_due(struct _sampling_sink *sink)
{
    if (sink->rows->num_records >= sink->wake_records) {
        wake(sink);
    }
}

void
_PySampling_SinkAdd(struct _sampling_sink *sink,
                    const _PySampling_Record *record)
{
    const struct _sampling_values *values = &record->values;
    if ((!sink->gets_tasks && !_PySampling_IsOfThreads(values))
        || !wants(sink, record->key.thread, record->key.labels))
    {
        return;
    }
    int is_kept = _PySampling_RowsAdd(sink->rows, record);
    sink->stats.samples++;
    sink->stats.wall_ns += values->wall_ns;
    sink->stats.cpu_ns += values->cpu_ns;
    if (!is_kept) {
        sink->stats.lost++;
        sink->stats.lost_wall_ns += values->wall_ns;
        sink->stats.lost_cpu_ns += values->cpu_ns;
    }
    wake_if_due(sink);
}

void
_PySampling_SinkAddEvent(struct _sampling_sink *sink,
                         const PySampling_Event *event)
{
    if (sink->gets_events && sink->rows != NULL
        && sink->rows->tables == STATE->tables
        && (event->thread == PySampling_NO_THREAD || sink->filter == NULL
            || _PySampling_FilterWantsThread(sink->filter, event->thread)))
    {
        _PySampling_RowsAddEvent(sink->rows, event);
        wake_if_due(sink);
    }
}


/* Taking. */

int
_PySampling_SinkTurn(struct _sampling_sink *sink)
{
    struct _sampling_rows *fresh = new_rows(sink);
    if (fresh == NULL) {
        return 0;
    }
    struct _sampling_rows *old = sink->rows;
    sink->rows = fresh;
    if (old != NULL && sink->is_subscription && old->num_records == 0
        && old->tasks.num_rows == 0)
    {
        _PySampling_RowsFree(old);      // no batch of nothing
    }
    else if (old != NULL) {
        old->older = sink->taken;
        sink->taken = old;
        sink->stats.taken += old->num_samples;
    }
    return 1;
}

/* The oldest that waits. */
static struct _sampling_rows *
take_oldest(struct _sampling_sink *sink)
{
    struct _sampling_rows **link = &sink->taken;
    while (*link != NULL && (*link)->older != NULL) {
        link = &(*link)->older;
    }
    struct _sampling_rows *rows = *link;
    *link = NULL;
    return rows;
}

static void
put_back(struct _sampling_sink *sink, struct _sampling_rows *rows)
{
    struct _sampling_rows **link = &sink->taken;
    while (*link != NULL) {
        link = &(*link)->older;
    }
    *link = rows;
}

/* Tables that are gone may have been the last: then nothing more comes. */
static int
take(struct _sampling_sink *sink, struct _sampling_rows **rows)
{
    if (sink->taken == NULL) {
        struct _sampling_rows *filled = sink->rows;
        if (filled == NULL || filled->num_records == 0) {
            return 0;
        }
        if (!sink->is_linked) {
            sink->rows = NULL;
            *rows = filled;
            return 1;
        }
        if (!_PySampling_SinkTurn(sink)) {
            return -1;
        }
    }
    *rows = take_oldest(sink);
    return 1;
}

/* What was allocated and freed since they were taken last; they are rows of the
   newest tables that it got samples of. */
static void
take_allocations(struct _sampling_sink *sink, const struct _sampling_rows *rows,
                 struct _sampling_alloc_table *taken)
{
    if (sink->allocations.period_bytes != 0
        && (sink->rows == NULL || sink->rows->tables == rows->tables)
        && _PySampling_AllocTableCopy(taken, &sink->allocations))
    {
        _PySampling_AllocTableClear(&sink->allocations);
    }
}

int
_PySampling_SinkDrain(struct _sampling_sink *sink,
                      struct _sampling_profile **profile)
{
    struct _sampling_rows *rows;
    struct _sampling_alloc_table allocations = {0};
    _PySampling_LockTables();
    int result = take(sink, &rows);
    if (result == 1) {
        take_allocations(sink, rows, &allocations);
    }
    _PySampling_UnlockTables();
    if (result != 1) {
        return result;
    }
    uint32_t num_allocs = allocations.num_allocs;
    *profile = _PySampling_ProfileExtract(rows, &allocations);
    _PySampling_AllocTableFree(&allocations);
    if (*profile == NULL) {
        _PySampling_COUNT(lost_allocations, num_allocs);
        _PySampling_LockTables();
        put_back(sink, rows);
        _PySampling_UnlockTables();
        return -1;
    }
    _PySampling_RowsFree(rows);
    (*profile)->options = sink->options;
    return 1;
}

uint32_t
_PySampling_SinkWaiting(struct _sampling_sink *sink)
{
    _PySampling_LockTables();
    uint32_t waiting = sink->rows != NULL ? sink->rows->num_records : 0;
    for (struct _sampling_rows *r = sink->taken; r != NULL; r = r->older) {
        waiting += r->num_records;
    }
    _PySampling_UnlockTables();
    return waiting;
}

uint32_t
_PySampling_SinkBatches(struct _sampling_sink *sink)
{
    _PySampling_LockTables();
    uint32_t num = sink->rows != NULL;
    for (struct _sampling_rows *r = sink->taken; r != NULL; r = r->older) {
        num++;
    }
    _PySampling_UnlockTables();
    return num;
}
