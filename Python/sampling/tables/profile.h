/* Sampling profiler: what a session, or a block of profile(), has got.

   Samples of the same key are added up, and what tasks did.  Each profile has
   rows of its own, so nothing that others had before need be subtracted; the
   stacks, labels and threads that these are about are rows of tables that all
   share.  Lock: tables_mutex, unless a profile is the caller's own. */

#ifndef Py_SAMPLING_PROFILE_H
#define Py_SAMPLING_PROFILE_H

#ifndef Py_BUILD_CORE
#  error "this header requires Py_BUILD_CORE define"
#endif

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
    int32_t state;              // _PySampling_State
    // Of a wait for the GIL, who had it: a thread, or _PySampling_NO_THREAD,
    // and its place, a stack.  Else 0 and 0.
    uint32_t holder_thread;
    uint32_t holder_node;
};

/* What they are added up by: a name, and the kind and unit by which profiles
   know it.  Another line here is another column of every profile. */
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

struct _sampling_sample_row {
    struct _sampling_key key;
    struct _sampling_values values;
};

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
   there did nothing.  When a profile is handed over, all are there. */
struct _sampling_task_table {
    struct _sampling_task_row *rows;
    uint32_t num_rows;
};

/* What the samples of a profile may take, in bytes: space for 400,000. */
#define _PySampling_PROFILE_LIMIT_BYTES ((size_t)32 << 20)

struct _sampling_profile {
    struct _sampling_profile *next;
    struct _sampling_profile *prev;
    int is_open;                // it gets samples: it is in the list
    _PySampling_Options options;
    struct _sampling_tables *tables;    // a reference
    struct _sampling_sample_row *samples;
    uint32_t num_samples;
    uint32_t cap_samples;
    struct _sampling_index sample_index;
    uint32_t num_held_samples;
    size_t bytes;               // of samples, with their index
    size_t limit_bytes;
    struct _sampling_task_table tasks;
    int64_t start_time_ns;      // time.time_ns()
    uint64_t start_wall_ns;     // monotonic; 0: its first sample is to come
    uint64_t duration_ns;       // until it was taken
    // While it gets samples those of the runtime at its start; of one that is
    // handed over what was counted since (_PySampling_CountProfile()).
    struct _sampling_counters counters;
};

// --- tables/profile.c

// NULL: no memory.
extern struct _sampling_profile *
_PySampling_ProfileNew(struct _sampling_tables *tables,
                       const _PySampling_Options *options);
// May be NULL.
extern void _PySampling_ProfileFree(struct _sampling_profile *profile);
// With a copy of all rows of the tables, which keep their numbers.  NULL: no
// memory.
extern struct _sampling_profile *
_PySampling_ProfileCopy(const struct _sampling_profile *profile);
extern size_t
_PySampling_ProfileBytes(const struct _sampling_profile *profile);

// A node of _PySampling_NO_NODE goes to "[lost]".  Returns 0 if it does, or if
// there was no memory.
extern int _PySampling_ProfileAdd(struct _sampling_profile *profile,
                                  struct _sampling_key key,
                                  const struct _sampling_values *values);

// A life, if `values` has one that finished, is of their lives_ns.  Returns 0
// if there is no memory.
extern int
_PySampling_TaskTableAdd(struct _sampling_task_table *table,
                         uint32_t coroutine,
                         const struct _sampling_task_values *values);
extern void _PySampling_TaskTableFree(struct _sampling_task_table *table);

static inline int
_PySampling_Weighs(const struct _sampling_values *v)
{
#define X(NAME, KIND, UNIT) v->NAME != 0 ||
    return _PySampling_VALUES(X) 0;
#undef X
}

// --- tables/extract.c

// A copy in tables of its own, with the rows that it uses.  NULL: no memory.
extern struct _sampling_profile *
_PySampling_ProfileExtract(const struct _sampling_profile *profile);

#endif  // !Py_SAMPLING_PROFILE_H
