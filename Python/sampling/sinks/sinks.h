/* Sampling profiler: records on their way to whoever wants them.

   A record comes in from the thread it is about and goes to every sink: a
   session, a block of profile(), a subscription are one each.  Each sink gets
   all of them, at the highest rate that any of them wants; so their weights
   add up to the threads' clocks.

   Lock of everything here, unless it says otherwise: tables_mutex. */

#ifndef Py_SAMPLING_SINKS_H
#define Py_SAMPLING_SINKS_H

#ifndef Py_BUILD_CORE
#  error "this header requires Py_BUILD_CORE define"
#endif

#include "../tables/profile.h"

#define _PySampling_MIN_SAMPLES 16      // capacity of a subscription
#define _PySampling_MAX_SAMPLES (1 << 24)

// Of a session or a block that keeps them.
#define _PySampling_MAX_MOMENTS (1 << 18)

/* --- Sinks (sinks/sink.c). */

typedef struct {
    uint32_t max_samples;       // rows
    uint32_t max_moments;       // 0: none are kept
    uint32_t wake_records;      // wakes the helper when that many wait
    int64_t interpreter_id;     // -1: all interpreters
    const uint64_t *thread_idents;      // only these; NULL: all threads
    uint32_t num_thread_idents;
    const char *const *labels;          // key, value, ...: all of them must
    uint32_t num_labels;                // match; how many pairs
    int tasks;                  // it gets what tasks wait for, too
} _PySampling_SubscribeOptions;

/* What a helper thread waits for.  Owned by its interpreter. */
struct _sampling_wakeup {
    PyThread_type_lock lock;    // released: something waits
    int is_pending;
};

// It may be woken in vain, never too late.
static inline void
_PySampling_Wake(struct _sampling_wakeup *wakeup)
{
    if (_Py_atomic_exchange_int(&wakeup->is_pending, 1) == 0) {
        PyThread_release_lock(wakeup->lock);
    }
}

struct _sampling_sink_stats {
    uint64_t samples;           // records of time that came in
    uint64_t wall_ns;
    uint64_t cpu_ns;
    uint64_t taken;             // rows that they became, of those taken
    uint64_t lost;              // records that went to "[lost]"
    uint64_t lost_wall_ns;
    uint64_t lost_cpu_ns;
};

/* Which records a subscriber wants (sinks/filter.c). */
struct _sampling_filter;

struct _sampling_sink {
    struct _sampling_sink *next;
    struct _sampling_sink *prev;
    int is_linked;              // in the list
    int is_open;                // and records come in; atomic
    _PySampling_Options options;
    // What it gets.
    struct _sampling_filter *filter;    // NULL: all
    int gets_tasks;             // what they wait for
    int gets_task_table;        // it gets all samples, so all that tasks did
    int gets_events;            // what is no sample
    uint32_t max_samples;
    uint32_t max_moments;
    // What it has got: being filled; NULL without memory.
    struct _sampling_rows *rows;
    // Of a session or a block: what snapshots have taken so far.  Of a
    // subscription: what is of tables that have been replaced, and waits.  The
    // newest first.
    struct _sampling_rows *taken;
    // What of it is in use: taken by a copy.
    struct _sampling_alloc_table allocations;
    // From when on.  Lock: control_mutex.
    int64_t start_time_ns;      // time.time_ns()
    uint64_t start_wall_ns;     // 0: its first sample is to come
    uint64_t start_skipped_ns;
    struct _sampling_counters counters; // of the runtime then
    // Of a subscription.
    int is_subscription;
    int ended_by_fork;
    uint32_t wake_records;
    struct _sampling_wakeup *wakeup;    // NULL: it is polled
    struct _sampling_sink_stats stats;
};

// NULL: no memory.  None of the first three needs the lock.
extern struct _sampling_sink *
_PySampling_SinkNew(const _PySampling_Options *options);
extern struct _sampling_sink *
_PySampling_SinkOfSubscriber(const _PySampling_Options *options,
                             const _PySampling_SubscribeOptions *wanted);
// May be NULL.
extern void _PySampling_SinkFree(struct _sampling_sink *sink);
extern int _PySampling_SinkWantsBlock(struct _sampling_sink *sink,
                                      const struct _sampling_alloc_key *key);
// It has rows in the current tables.  Returns 0 without memory.
extern int _PySampling_SinkReady(struct _sampling_sink *sink);
extern void _PySampling_SinkLink(struct _sampling_sink *sink);
extern void _PySampling_SinkUnlink(struct _sampling_sink *sink);
extern void _PySampling_SinkAdd(struct _sampling_sink *sink,
                                const _PySampling_Record *record);
extern void _PySampling_SinkAddEvent(struct _sampling_sink *sink,
                                     const PySampling_Event *event);
// What it has got is taken, or waits to be; it goes on with empty rows in the
// current tables.  Returns 0 without memory: then nothing has changed.
extern int _PySampling_SinkTurn(struct _sampling_sink *sink);
// In the child of a fork: what waits is the parent's.
extern void _PySampling_SinkForget(struct _sampling_sink *sink);
extern size_t _PySampling_SinksBytes(void);

// Each of these takes the lock itself.  Needs no GIL.
// Takes what a subscription has got: 1, 0 (nothing waits) or -1 (no memory;
// nothing is lost).
extern int _PySampling_SinkDrain(struct _sampling_sink *sink,
                                 struct _sampling_profile **profile);
// How many records wait, and in how many batches, the one that is being filled
// included.
extern uint32_t _PySampling_SinkWaiting(struct _sampling_sink *sink);
extern uint32_t _PySampling_SinkBatches(struct _sampling_sink *sink);

/* --- Filters (sinks/filter.c). */

// NULL: all is wanted, or, with *ok 0, there is no memory.
extern struct _sampling_filter *
_PySampling_FilterNew(const _PySampling_SubscribeOptions *wanted, int *ok);
extern void _PySampling_FilterFree(struct _sampling_filter *filter);
extern int _PySampling_FilterWantsThread(const struct _sampling_filter *f,
                                         uint32_t thread);
extern int _PySampling_FilterWantsLabels(struct _sampling_filter *filter,
                                         uint32_t labels);
extern size_t _PySampling_FilterBytes(const struct _sampling_filter *filter);

/* --- Where records come in (sinks/dispatch.c). */

// A sample.  The first one asks whether the thread serves a subscriber; the
// second one knows that it does not.
extern void _PySampling_Emit(_PySampling_Thread *thread,
                             const _PySampling_Record *record);
extern void
_PySampling_EmitOfProgram(const _PySampling_Record *record);
// What tasks that run the same did.
extern void
_PySampling_EmitTaskValues(uint32_t coroutine,
                           const struct _sampling_task_values *values);
// What is no time.
extern void _PySampling_EmitEvent(PySampling_Kind kind, uint32_t thread,
                                  uint64_t count, uint64_t cpu_ns,
                                  uint64_t wall_ns);

#endif  // !Py_SAMPLING_SINKS_H
