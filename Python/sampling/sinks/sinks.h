/* Sampling profiler: samples on their way to whoever subscribed.

   A record comes in from the thread it is about and goes to every sink: the
   profiles of sessions and blocks, and the subscriptions.  Each sink gets
   all of them, at the highest rate that any of them wants; so their weights
   add up to the threads' clocks.

   Lock of everything here, unless it says otherwise: tables_mutex. */

#ifndef Py_SAMPLING_SINKS_H
#define Py_SAMPLING_SINKS_H

#ifndef Py_BUILD_CORE
#  error "this header requires Py_BUILD_CORE define"
#endif

#include "../tables/profile.h"

typedef enum {
    _PySampling_EVENT_SAMPLE = 0,
    _PySampling_EVENT_THREAD_START,
    _PySampling_EVENT_THREAD_END,   // weights: what its last tick left over
    _PySampling_EVENT_GC,           // a collection ended; count: generation
    _PySampling_EVENT_FORK,         // the process forked; this is the parent
    _PySampling_EVENT_RATE,         // count: the subscription's rate, in Hz
    _PySampling_EVENT_LOST,         // count: records that were dropped
    _PySampling_EVENT_TASK,         // a task waited; wall_ns: of its life
    _PySampling_EVENT_DELAY,        // wall_ns: tasks waited because of this
} _PySampling_EventKind;

#define _PySampling_MIN_EVENTS 16       // capacity of a subscription
#define _PySampling_MAX_EVENTS (1 << 24)

#define _PySampling_FLAG_RESIDUE 1  // count is 0: no tick had hit it, or it is
                                    // of a sample that counts in another state
#define _PySampling_FLAG_MERGED 2   // of several samples: the ring was full

struct _sampling_event {
    uint64_t time_ns;           // monotonic: of its last tick, or when the
                                // interval that it weighs ended
    uint32_t node;
    uint32_t thread;
    uint32_t labels;
    uint8_t kind;               // _PySampling_EventKind
    uint8_t state;              // _PySampling_State
    uint16_t flags;             // of _PySampling_FLAG_*
    uint64_t count;
    uint64_t cpu_ns;
    uint64_t wall_ns;
    // As in struct _sampling_key.
    uint32_t holder_thread;
    uint32_t holder_node;
};

/* --- Subscriptions (sinks/subscription.c). */

typedef struct {
    int rate_hz;
    uint32_t max_events;        // capacity of the ring
    uint32_t batch_events;      // wakes the helper when that many wait
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

struct _sampling_subscription_stats {
    uint64_t samples;           // delivered, or waiting
    uint64_t wall_ns;
    uint64_t cpu_ns;
    uint64_t merged;            // records that went into others
    uint64_t lost;              // records that were dropped
    uint64_t lost_wall_ns;
    uint64_t lost_cpu_ns;
};

struct _sampling_batch;

/* How far a subscription has got the rows of the tables. */
struct _sampling_cursor {
    unsigned int serial;        // of the tables
    uint32_t strings;
    uint32_t functions;
    uint32_t frames;
    uint32_t nodes;
    uint32_t labels;
    uint32_t threads;
};

struct _sampling_subscription {
    struct _sampling_subscription *next;
    struct _sampling_subscription *prev;
    int rate_hz;
    int64_t interpreter_id;
    int is_linked;              // in the list
    int is_open;                // and samples come in
    int gets_tasks;             // and what they wait for
    int gets_task_table;        // it gets all samples, so all that tasks did
    struct _sampling_task_table tasks;  // since it began, in these tables
    int ended_by_fork;
    uint32_t max_events;
    uint32_t batch_events;
    uint64_t *thread_idents;
    uint32_t num_thread_idents;
    char **label_texts;
    uint32_t num_labels;
    // By row of labels, of the tables `match_serial`: 0 not known yet, 1 does
    // not match, 2 matches.
    uint8_t *label_matches;
    uint32_t num_label_matches;
    unsigned int match_serial;
    struct _sampling_wakeup *wakeup;        // NULL: it is polled
    // Batches, oldest first; the last one is being filled.  More than one
    // only if the tables were replaced meanwhile, or one was put back.
    struct _sampling_batch *first;
    struct _sampling_batch *last;
    struct _sampling_batch *spare;
    struct _sampling_event lost;        // what the next batch begins with
    struct _sampling_cursor cursor;
    // Functions sent without their module, and the names of threads as sent.
    uint32_t *nameless;
    uint32_t num_nameless;
    uint32_t cap_nameless;
    uint32_t *thread_names;
    uint32_t cap_thread_names;
    struct _sampling_subscription_stats stats;
};

struct _sampling_batch {
    struct _sampling_batch *next;
    struct _sampling_tables *tables;    // a reference; NULL while it is empty
    // For who gets it, once nothing more comes into it: the task table as it
    // was then.
    struct _sampling_task_table tasks;
    uint32_t num_events;
    struct _sampling_event events[];
};

/* A batch as it is taken, with copies of the rows that are new. */
struct _sampling_taken {
    struct _sampling_batch *batch;
    struct _sampling_event lost;        // count 0: nothing was
    struct _sampling_cursor from;
    struct _sampling_tables rows;       // the new rows alone, as arrays
    uint32_t num_coroutines;
    uint32_t *coroutine_functions;      // what tasks run
    uint32_t *changed_functions;        // rows before `from` that changed
    struct _sampling_function_row *changed_function_rows;
    uint32_t num_changed_functions;
    uint32_t *changed_threads;
    struct _sampling_thread_row *changed_thread_rows;
    uint32_t num_changed_threads;
};

// Space for that many events; NULL: no memory.
extern struct _sampling_batch *_PySampling_BatchNew(uint32_t max_events);
extern void _PySampling_BatchClear(struct _sampling_batch *batch);
// Neither needs the lock.
extern struct _sampling_subscription *
_PySampling_SubscriptionNew(const _PySampling_SubscribeOptions *options);
extern void
_PySampling_SubscriptionFree(struct _sampling_subscription *sub);

extern void _PySampling_SubscriptionAdd(struct _sampling_subscription *sub,
                                        const struct _sampling_event *event);
extern void _PySampling_SubscriptionEnd(struct _sampling_subscription *sub);
extern void _PySampling_SubscriptionForget(struct _sampling_subscription *sub);
// Nothing more comes into the batch: the task table stays as it is now.
// Returns 0 if there is no memory.
extern int _PySampling_BatchComplete(const struct _sampling_subscription *sub,
                                     struct _sampling_batch *batch);
// Before the tables go: batches keep them alive.
extern void _PySampling_SubscriptionsComplete(void);
extern size_t _PySampling_SubscriptionsBytes(void);

/* --- Taking (sinks/batch.c).  Each takes the lock itself. */

// Takes what waits: 1, 0 (nothing waits) or -1 (no memory; nothing is lost).
extern int _PySampling_BatchDrain(struct _sampling_subscription *sub,
                                  struct _sampling_taken *taken);
// Gives back what was taken.
extern void
_PySampling_SubscriptionGiveBack(struct _sampling_subscription *sub,
                                 struct _sampling_taken *taken);
// There was no memory to pass it on: it waits again, with all that is in it.
extern void
_PySampling_SubscriptionPutBack(struct _sampling_subscription *sub,
                                struct _sampling_taken *taken);
// How many records wait, and in how many batches, the one that is being filled
// included.
extern uint32_t
_PySampling_SubscriptionWaiting(struct _sampling_subscription *sub);
extern uint32_t
_PySampling_SubscriptionBatches(struct _sampling_subscription *sub);

/* --- Where records come in (sinks/dispatch.c). */

// A sample.  The first one asks whether the thread serves a subscriber; the
// second one knows that it does not.
extern void _PySampling_Emit(_PySampling_Thread *thread,
                             const struct _sampling_event *record);
extern void
_PySampling_EmitOfProgram(const struct _sampling_event *record);
// Time of a task's life, in wall_ns.  It is on no thread's clock, so only
// subscribers get it who asked for it.
extern void _PySampling_EmitOfTask(const struct _sampling_event *record);
// The same for time, in wall_ns, that a task waited for its loop because of
// this.
extern void _PySampling_EmitDelay(const struct _sampling_event *record);
// What tasks that run the same did.
extern void
_PySampling_EmitTaskValues(uint32_t coroutine,
                           const struct _sampling_task_values *values);
// Any other record.
extern void _PySampling_EmitRecord(_PySampling_EventKind kind,
                                   uint32_t thread, uint64_t count,
                                   uint64_t cpu_ns, uint64_t wall_ns);

#endif  // !Py_SAMPLING_SINKS_H
