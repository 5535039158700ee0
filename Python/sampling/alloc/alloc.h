/* Sampling profiler: sampled allocations.

   A block of `size` bytes is sampled with the probability
   p = 1 - exp(-size / alloc_bytes), each one independently of all others: a
   budget of bytes is drawn from the exponential distribution, every block
   takes its size from it, and the one that finds less than its size is
   sampled.  What is left says how many bytes there were, exactly.  A sample
   stands for 1 / p objects and size / p bytes.

   The functions that allocate only copy pointers, as the signal handler does:
   no Python code runs, no object is made, no GIL is taken or given up.  What
   they saw waits in a log, and becomes rows when a thread that has the GIL
   drains it, with the captures of time. */

#ifndef Py_SAMPLING_ALLOC_H
#define Py_SAMPLING_ALLOC_H

#ifndef Py_BUILD_CORE
#  error "this header requires Py_BUILD_CORE define"
#endif

#include "pycore_interp.h"            // PyInterpreterState.sampling
#include "../native/native.h"         // _PySampling_Frame
#include "../tables/profile.h"

/* One address may be of a block in each of them. */
typedef enum {
    _PySampling_SMALL_BLOCK = 0,    // in an arena of pymalloc
    _PySampling_LARGE_BLOCK = 1,    // any other of Python's allocators
    _PySampling_FOREIGN_BLOCK = 2,  // reported to tracemalloc: + its domain
} _PySampling_BlockKind;

/* The object is at the beginning of its block, or behind what the collector,
   or its attributes, have before it. */
#define _PySampling_TYPE_CANDIDATES 3
#define _PySampling_TYPE_WORDS 6

/* A block that was sampled, until its end has been drained. */
struct _sampling_block {
    uintptr_t address;
    size_t size_bytes;
    unsigned int kind;          // _PySampling_BlockKind
    unsigned int domain;        // of a large block, of the library whose it is
    int has_types;              // it has ended, before it was drained
    uint32_t next;              // in the chain of its bucket, or of free ones
    uint32_t capture;           // its stack is still to be named there; or
                                // _PySampling_NO_CAPTURE
    struct _sampling_alloc_key key;     // then
    uint64_t number;            // of the samples; 0: not drained yet
    uint64_t begun_ns;          // of the wall clock
    uint64_t ended_ns;          // if its end is in the log
    PyTypeObject *types[_PySampling_TYPE_CANDIDATES];   // maybe
};

#define _PySampling_NO_BLOCK UINT32_MAX
#define _PySampling_NO_CAPTURE UINT32_MAX

/* The stack of blocks that were allocated by one instruction. */
struct _sampling_alloc_capture {
    PyInterpreterState *interp; // whose GIL names it; NULL: no Python thread
    PyThreadState *tstate;
    PyObject *context;          // borrowed
    const void *frame;          // compared, never followed
    const void *instr;
    int gc_generation;
    uint32_t first;             // of the frames, leaf first
    uint32_t depth;
    uint32_t thread;            // row
    unsigned long ident;        // of a thread that is not Python's
    int native_id;
    int is_named;               // `key` is known
    struct _sampling_alloc_key key;
};

/* Buckets of the filter: 250 large blocks that are sampled leave 15 of 16 others
   without a look-up.  A larger one takes the place of the program's data in the
   cache. */
#define _PySampling_FILTER_BUCKETS 4096

/* What was read together at a moment. */
struct _sampling_resident {
    uint64_t wall_ns;
    uint64_t allocated_bytes;   // of all allocators since the first session
    uint64_t full_collections;  // of the interpreter
    uint64_t rss_bytes;         // 0: not known
    uint64_t peak_rss_bytes;
    uint64_t file_bytes;        // of it: programs, libraries, mmap, shared
    uint64_t arenas_bytes;      // of pymalloc
    uint64_t arenas_used_bytes; // by blocks in them
    uint64_t malloc_used_bytes; // of C's malloc, whoever asked
    uint64_t malloc_free_bytes; // kept by it
    int has_malloc;
};

#define _PySampling_MAX_READINGS 128

/* Made by the first session that samples allocations, and kept: functions of
   ours may be called as long as the process lives. */
struct _sampling_alloc {
    // Read without the lock.
    int active;
    int64_t no_gil_budget;      // of blocks of threads without one; atomic
    uint64_t no_gil_drawn;      // atomic; the budget less than that was used
    uint8_t filter[_PySampling_FILTER_BUCKETS];     // large blocks; relaxed
    void *last_raw;             // of any thread; relaxed
    unsigned int raw_domain;    // + 1: that of a library which allocates what
                                // it reports through Python; relaxed
    PyMemAllocatorEx inner[3];  // by PyMemAllocatorDomain: what ours call
    // The lock of all else, a leaf: nothing is locked, and no hook called,
    // with it.
    PyMutex mutex;
    uint64_t period_bytes;      // alloc_bytes
    unsigned int session;       // rises when all blocks are forgotten
    uint64_t random;
    unsigned int serial;        // of the tables that keys are rows of
    uint64_t num_samples;
    struct _sampling_block *blocks;
    uint32_t num_blocks;
    uint32_t cap_blocks;
    uint32_t free_block;
    uint32_t *buckets;          // block, by address
    uint32_t bucket_mask;
    uint32_t num_live;          // whose end is not in the log
    // In the order in which it happened: block << 1, + 1 at its end.
    uint32_t *log;
    uint32_t num_log;
    uint32_t cap_log;
    struct _sampling_alloc_capture *captures;
    uint32_t num_captures;
    uint32_t cap_captures;
    _PySampling_Frame *frames;
    uint32_t num_frames;
    uint32_t cap_frames;
    // By who has the GIL of the main interpreter; no lock.  When they are full,
    // every other one goes.
    struct _sampling_resident readings[_PySampling_MAX_READINGS];
    uint32_t num_readings;
    uint64_t reading_every_ns;
    uint64_t next_reading_ns;
    int wrapped;                // bits of domains: ours are in the vector, or
                                // below what another tool has put there
};

// Called with nothing but the lock of the block's own allocator: takes
// alloc->mutex only, and allocates with malloc().  `interp` has its GIL.
// Returns whether the block is sampled.
extern int _PySampling_AllocGil(PyInterpreterState *interp, unsigned int kind,
                                void *block, size_t size_bytes);
// A sampled block ends, if it is one.  Returns whether it was.
extern int _PySampling_AllocEnd(unsigned int kind, void *block);
// The same of a block that may go on: it is out of the table, and comes back,
// or has ended.
typedef struct {
    uint32_t block;
    unsigned int session;
} _PySampling_TakenBlock;
extern _PySampling_TakenBlock _PySampling_AllocTake(unsigned int kind,
                                                    void *block);
extern void _PySampling_AllocPutBack(_PySampling_TakenBlock taken);
extern void _PySampling_AllocEndTaken(_PySampling_TakenBlock taken);
// A library has reported a block that it has from Python.
extern void _PySampling_AllocOwned(unsigned int domain, void *block);
// Is there one?
extern int _PySampling_AllocHas(unsigned int kind, void *block);
// A block of a thread without a GIL.
extern void _PySampling_AllocNoGil(unsigned int kind, void *block,
                                   size_t size_bytes);

static inline uint32_t
_PySampling_FilterBucket(const void *block)
{
    return (uint32_t)(((uintptr_t)block >> 4) * 0x9E3779B97F4A7C15u >> 32)
        % _PySampling_FILTER_BUCKETS;
}

// May it be a sampled one?
static inline int
_PySampling_AllocMayHave(const struct _sampling_alloc *alloc,
                         const void *block)
{
    return block != NULL && _Py_atomic_load_uint8_relaxed(
        &alloc->filter[_PySampling_FilterBucket(block)]) != 0;
}

// alloc/types.c.  What may be the type of the object in a block that begins
// with these words.
extern void
_PySampling_AllocFindTypes(const uintptr_t *words, size_t size_bytes,
                           PyTypeObject *types[_PySampling_TYPE_CANDIDATES]);
// The labels with the type of the block.
extern uint32_t _PySampling_AllocLabels(struct _sampling_tables *tables,
                                        PyInterpreterState *interp,
                                        struct _sampling_block *block,
                                        uint32_t labels);

// alloc/functions.c.  The allocators of all domains are ours from now on, or
// as before.
extern void _PySampling_AllocInstall(struct _sampling_alloc *alloc);
extern void _PySampling_AllocUninstall(struct _sampling_alloc *alloc);
// They are, if another tool has taken them away with its own.
extern void _PySampling_AllocCheck(struct _sampling_alloc *alloc);

// alloc/pymalloc.h, in obmalloc.c.  Exchanges pymalloc's functions.  Returns
// whether it has them, or ours in their place.
extern int _PySampling_AllocExchange(PyMemAllocatorEx *allocator, int is_on);
// Is it one of Python's own, with nothing around it?
extern int _PySampling_AllocIsPlain(const PyMemAllocatorEx *allocator);

// alloc/samples.c.  With the GIL of any interpreter, and tables_mutex.
// NULL: no memory.
extern struct _sampling_alloc *_PySampling_AllocState(void);
extern void _PySampling_AllocBegin(struct _sampling_alloc *alloc,
                                   uint64_t period_bytes);
extern void _PySampling_AllocStop(struct _sampling_alloc *alloc);
// No block that was sampled is known any more.  With the lock.
extern void _PySampling_AllocForgetBlocks(struct _sampling_alloc *alloc);
// Before its state goes.
extern void _PySampling_AllocInterpreterEnd(PyInterpreterState *interp);
// Requested of all allocators since ours were first installed.
extern uint64_t _PySampling_AllocTotalBytes(void);
// In the child of a fork.  Async-signal-safe.
extern void _PySampling_AllocForget(void);

// alloc/drain.c.  What the log has becomes rows.  Like _PySampling_Drain(), of
// which it is a part.
extern void _PySampling_AllocDrain(PyThreadState *tstate,
                                   _PySampling_Thread *thread);
// Tables are to take the place of others: all that is in use goes on in them.
// With tables_mutex.
extern void _PySampling_AllocMove(struct _sampling_tables *to,
                                  const struct _sampling_tables *from);
// alloc/collections.c.  The thread's collection has just ended.  In a hook.
extern void
_PySampling_AllocCollection(PyThreadState *tstate, _PySampling_Thread *thread,
                            const _PySampling_Collections *its);

// alloc/words.c.  What a profile has of allocations, in the columns that
// Lib/profile_sampling/_data/allocations.py knows.
#define _PySampling_BLOCK_WORDS 15
#define _PySampling_COLLECTION_WORDS 8
#define _PySampling_READING_WORDS 9
// Their names and values, of `table`, `profile` and `now`.
#define _PySampling_FACTS_OF_ALLOCATIONS(X) \
    X(period_bytes, table->period_bytes) \
    X(peak_ns, table->peak_wall_ns == 0 || profile->start_wall_ns == 0 \
               ? 0 : table->peak_wall_ns - profile->start_wall_ns) \
    X(variance_unit, _PySampling_VARIANCE_UNIT) \
    X(longest_gen0_ns, table->longest_pause_ns[0]) \
    X(longest_gen1_ns, table->longest_pause_ns[1]) \
    X(longest_gen2_ns, table->longest_pause_ns[2]) \
    X(large, table->large.bytes) \
    X(large_variance, table->large.variance) \
    X(peak_rss, now->peak_rss_bytes) \
    X(has_malloc, now->has_malloc)
// Returns how many words it has written: none if the row is of the other kind.
extern uint32_t
_PySampling_AllocWords(const struct _sampling_alloc_table *table, uint32_t row,
                       int of_collections,
                       int64_t out[_PySampling_BLOCK_WORDS]);
// Readings of the time of a profile, one after the other: NULL is before the
// first and after the last, which is `now`.  With the GIL.
extern const struct _sampling_resident *
_PySampling_NextReading(const struct _sampling_profile *profile,
                        const struct _sampling_resident *reading,
                        const struct _sampling_resident *now);
extern void
_PySampling_ReadingWords(const struct _sampling_profile *profile,
                         const struct _sampling_resident *reading,
                         int64_t out[_PySampling_READING_WORDS]);

// alloc/resident.c.  With the GIL, whose interpreter's arenas are counted.
extern void _PySampling_ReadResident(struct _sampling_resident *resident);
// It is read and kept if the last reading is long ago, in the main interpreter.
extern void _PySampling_KeepResident(struct _sampling_alloc *alloc,
                                     PyInterpreterState *interp);

#endif  // !Py_SAMPLING_ALLOC_H
