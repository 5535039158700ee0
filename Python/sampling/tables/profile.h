/* Sampling profiler: what comes in for a sink, and what it is handed over as.

   Records of the same key are added up in *rows* of the sink's own.  Taking
   them is to swap them for empty ones: from then on nobody changes them, so
   they are read without a lock.  They refer to tables that all sinks share,
   and keep these alive.  A *profile* is such rows with the names that they
   use: what a session, a block of profile() and a batch
   of a subscription all are when they are handed over. */

#ifndef Py_SAMPLING_PROFILE_H
#define Py_SAMPLING_PROFILE_H

#ifndef Py_BUILD_CORE
#  error "this header requires Py_BUILD_CORE define"
#endif

#include "cpython/sampling.h"         // PySampling_Batch
#include "allocations.h"
#include "tables.h"

/* Samples that differ in who held the GIL, in one profile: a row for each
   stack that waits with each place that it waits for.  Later ones have an
   unknown holder. */
#define _PySampling_MAX_HELD_SAMPLES 65536

/* What samples that are added up have in common. */
struct _sampling_key {
    uint32_t node;
    uint32_t thread;
    uint32_t labels;            // label
    uint32_t state;             // PySampling_State
    // Of a wait for the GIL, who had it: a thread, or _PySampling_NO_THREAD,
    // and its place, a stack of lines.  Else 0 and 0.
    uint32_t holder_thread;
    uint32_t holder_node;
};

/* What they are added up by: a name, and the kind and unit by which profiles
   know it.  Another line here is another column of every profile, and another
   field of PySampling_Sample. */
#define _PySampling_VALUES(X) \
    X(count, "samples", "count") \
    X(cpu_ns, "cpu", "nanoseconds") \
    X(wall_ns, "wall", "nanoseconds") \
    X(task_ns, "task", "nanoseconds")   /* of tasks' lives while they wait */ \
    X(delay_ns, "delay", "nanoseconds") /* tasks waited for their loop because
                                           of this: a proportion */

struct _sampling_values {
#define X(NAME, KIND, UNIT) uint64_t NAME;
    _PySampling_VALUES(X)
#undef X
};

/* A record: what happened at a moment, on its way to sinks.  There it becomes a
   row: all records of one key, added up, and the last of their moments. */
struct _sampling_sample_row {
    struct _sampling_key key;
    uint64_t time_ns;           // monotonic: of its last tick, or when the
                                // interval that it weighs ended
    struct _sampling_values values;     // the last: more may come
};

typedef struct _sampling_sample_row _PySampling_Record;

/* Lives, by their length: eight buckets for each power of two nanoseconds. */
#define _PySampling_LIFE_BUCKETS 400

/* What tasks that run the same did. */
struct _sampling_task_values {
    uint64_t running_ns;
    uint64_t loop_wait_ns;
    uint64_t awaiting_ns;
    uint64_t num_steps;
    uint64_t num_finished;
    uint64_t num_cancelled;     // of these
    uint64_t longest_step_ns;
    uint64_t longest_life_ns;
    uint64_t lives_ns;          // of those that finished
};

struct _sampling_task_row {
    struct _sampling_task_values values;
    uint32_t lives[_PySampling_LIFE_BUCKETS];   // of those that finished
};

/* By the row of what they run, in tables/coroutines.c; those that are not
   there did nothing. */
struct _sampling_task_table {
    struct _sampling_task_row *rows;
    uint32_t num_rows;
};

/* What the samples of a sink may take, in bytes: space for 400,000. */
#define _PySampling_PROFILE_LIMIT_BYTES ((size_t)32 << 20)

/* What has come in since the last hand-over.  Lock: tables_mutex, until it is
   taken; then it is never changed again. */
struct _sampling_rows {
    int references;             // atomic
    struct _sampling_rows *older;       // a reference: of the same sink
    struct _sampling_tables *tables;    // a reference
    struct _sampling_sample_row *samples[_PySampling_NUM_CHUNKS];
    uint32_t num_samples;
    uint32_t max_samples;
    struct _sampling_index sample_index;
    uint32_t num_held_samples;
    uint32_t num_records;       // that came in, of any kind
    size_t bytes;               // of all that is here
    size_t limit_bytes;
    struct _sampling_task_table tasks;
    // Of samples, as they came; `sample` is a row.  More than the bound are
    // made fewer.
    PySampling_Moment *moments;
    uint32_t num_moments;
    uint32_t cap_moments;
    uint32_t max_moments;       // 0: none are kept
    uint64_t resolution_ns;
    // What is no sample, as it came; `thread` is a row.  The newest are kept.
    PySampling_Event *events;
    uint32_t num_events;
    uint32_t cap_events;
};

_PySampling_DEFINE_AT(rows, sample)

// --- tables/profile.c

// NULL: no memory.
extern struct _sampling_rows *
_PySampling_RowsNew(struct _sampling_tables *tables, uint32_t max_samples,
                    uint32_t max_moments);
extern void _PySampling_RowsKeep(struct _sampling_rows *rows);
// Drops a reference.  May be NULL.
extern void _PySampling_RowsFree(struct _sampling_rows *rows);

// A node of _PySampling_NO_NODE goes to "[lost]".  Returns 0 if it does, or if
// there was no memory.
extern int _PySampling_RowsAdd(struct _sampling_rows *rows,
                               const _PySampling_Record *record);
extern void _PySampling_RowsAddEvent(struct _sampling_rows *rows,
                                     const PySampling_Event *event);
// A life, if `values` has one that finished, is of their lives_ns.  Returns 0
// if there is no memory.
extern int
_PySampling_RowsAddTasks(struct _sampling_rows *rows, uint32_t coroutine,
                         const struct _sampling_task_values *values);

// Adds to rows that nobody else has.  Returns 0 without memory: then nothing
// has changed.
extern int _PySampling_RowsMerge(struct _sampling_rows *to,
                                 const struct _sampling_rows *from);

// Rows that were taken, and all older ones, as one.  Needs no lock.  NULL: no
// memory.
extern struct _sampling_rows *
_PySampling_RowsMerged(const struct _sampling_rows *rows);

// Time of threads, or samples of it; not what is of tasks alone.
static inline int
_PySampling_IsOfThreads(const struct _sampling_values *v)
{
    return v->count != 0 || v->cpu_ns != 0 || v->wall_ns != 0;
}

static inline int
_PySampling_Weighs(const struct _sampling_values *v)
{
#define X(NAME, KIND, UNIT) v->NAME != 0 ||
    return _PySampling_VALUES(X) 0;
#undef X
}

// --- tables/extract.c

/* What is handed over.  The memory is its own, but for texts and histograms,
   which are of the rows. */
struct _sampling_profile {
    struct _sampling_rows *rows;        // a reference
    _PySampling_Options options;
    int64_t start_time_ns;      // time.time_ns()
    uint64_t start_wall_ns;     // the same moment, on the clock of records
    uint64_t duration_ns;
    struct _sampling_counters counters;
    struct _sampling_alloc_table allocations;   // keys are rows of the batch
    PySampling_Batch batch;
};

// From rows that have no older ones.  Needs neither a lock nor the GIL.  NULL:
// no memory.  `allocations`, which may be NULL, is handed over, too.
extern struct _sampling_profile *
_PySampling_ProfileExtract(struct _sampling_rows *rows,
                           struct _sampling_alloc_table *allocations);
// May be NULL.
extern void _PySampling_ProfileFree(struct _sampling_profile *profile);

#endif  // !Py_SAMPLING_PROFILE_H
