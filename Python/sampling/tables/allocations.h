/* Sampling profiler: what was allocated, in a profile.

   A row is a stack of a thread with its labels, and the interval of time in
   which blocks were allocated there.  It has sums of these: of all, of those in
   use, and of those in use at the moment when most were, the peak.  Sums are
   whole numbers, so that a block that ends takes away exactly what it has
   added.  What ended has rows of its own, which also say in which interval,
   and after how long.  So have collections of the garbage collector, by the
   stack that started them, of which the leaf says of which generation.  Lock:
   that of the tables. */

#ifndef Py_SAMPLING_ALLOCATIONS_H
#define Py_SAMPLING_ALLOCATIONS_H

#ifndef Py_BUILD_CORE
#  error "this header requires Py_BUILD_CORE define"
#endif

#include "move.h"

struct _sampling_alloc_key {
    uint32_t node;
    uint32_t thread;
    uint32_t labels;
    uint32_t begun;             // in which interval
    uint32_t ended;             // or one of those below
    uint32_t lifetime;          // of blocks that ended; see below
};

#define _PySampling_IN_USE UINT32_MAX
#define _PySampling_COLLECTIONS (UINT32_MAX - 1)    // it is of these

/* Intervals of one length, from the first sample on; when there would be more,
   two become one.  They begin at multiples of their length since the epoch, so
   that those of several tables fit. */
#define _PySampling_MAX_INTERVALS 128
#define _PySampling_FIRST_INTERVAL_NS 125000000

/* Lifetimes by decades: under 100 us, 1 ms, ..., 100 s, and longer. */
#define _PySampling_SHORTEST_LIFETIME_NS 100000
#define _PySampling_LIFETIMES 8

/* What sampled blocks stand for. */
struct _sampling_amount {
    uint64_t objects;           // in parts of an object, see below
    uint64_t bytes;
    uint64_t variance;          // of `bytes`, in the unit below
};
typedef struct _sampling_amount _PySampling_Amount;

#define _PySampling_OBJECT_PARTS 65536
/* Bytes, squared.  A thousandth of it is a sample of 512 bytes. */
#define _PySampling_VARIANCE_UNIT 256

/* What collections did. */
struct _sampling_collections {
    uint64_t number;
    uint64_t pause_ns;
    uint64_t freed;             // objects
    uint64_t uncollectable;
};
typedef struct _sampling_collections _PySampling_Collections;

struct _sampling_alloc_row {
    struct _sampling_alloc_key key;
    unsigned int peak_number;   // `peak` is of that one; of a later one, this
                                // row has not changed since
    union {
        struct {
            struct _sampling_amount allocated;  // or, if they ended, freed
            struct _sampling_amount in_use;
            struct _sampling_amount peak;
        };
        struct _sampling_collections collections;
    };
};

#define _PySampling_GENERATIONS 3

#define _PySampling_SINCE_BEGIN UINT64_MAX

struct _sampling_alloc_table {
    struct _sampling_alloc_row *allocs;
    uint32_t num_allocs;
    uint32_t cap_allocs;
    struct _sampling_index alloc_index;
    uint64_t period_bytes;      // 0: the profile is of none
    uint64_t since;             // blocks of later samples alone are of it;
                                // until it begins, _PySampling_SINCE_BEGIN
    int64_t base_time_ns;       // time.time_ns() of interval 0
    int64_t base_wall_ns;       // of the clock of samples, then
    uint64_t interval_ns;       // 0: not begun
    uint32_t first_interval;
    uint64_t in_use_bytes;
    struct _sampling_amount large;      // in use, in no arena of pymalloc
    uint64_t peak_bytes;
    uint64_t peak_wall_ns;
    unsigned int peak_number;   // how often there was a new one
    uint64_t longest_pause_ns[_PySampling_GENERATIONS];
};

/* Rows of a profile, of 112 bytes each. */
#define _PySampling_MAX_ALLOC_ROWS ((uint32_t)1 << 17)

// What a block stands for that was sampled at `period_bytes`.
extern _PySampling_Amount
_PySampling_AmountOf(size_t size_bytes, uint64_t period_bytes);
// `key` is of a stack; its interval follows from the moment.  Returns 0 if
// there is no memory for its row: it is on that of `lost`.
extern int _PySampling_AllocTableAdd(struct _sampling_alloc_table *table,
                                     const struct _sampling_alloc_key *key,
                                     const struct _sampling_amount *amount,
                                     int is_large, uint64_t wall_ns);
extern void
_PySampling_AllocTableRemove(struct _sampling_alloc_table *table,
                             const struct _sampling_alloc_key *key,
                             const struct _sampling_amount *amount,
                             int is_large, uint64_t begun_ns,
                             uint64_t ended_ns);
// A collection has ended.  Returns 0 if there is no memory for its row.
extern int
_PySampling_AllocTableAddCollection(struct _sampling_alloc_table *table,
                                    const struct _sampling_alloc_key *key,
                                    int generation,
                                    const struct _sampling_collections *its,
                                    uint64_t wall_ns);
// In use at the peak.
extern _PySampling_Amount
_PySampling_PeakOf(const struct _sampling_alloc_table *table,
                   const struct _sampling_alloc_row *row);
// Row 0 is made, for what has no space.  Returns 0 if there is no memory.
extern int _PySampling_AllocTableInit(struct _sampling_alloc_table *table,
                                      uint64_t period_bytes,
                                      uint32_t lost_node);
// Its time begins, if it has not: of two clocks.
extern void _PySampling_AllocTableBegin(struct _sampling_alloc_table *table,
                                        int64_t time_ns, uint64_t wall_ns);
// It begins anew, with what is in use.
extern void _PySampling_AllocTableClear(struct _sampling_alloc_table *table);
// Its rows are of other tables from now on; those with nothing in use are left
// behind.  Their nodes are wanted before.
extern void
_PySampling_AllocTableWants(const struct _sampling_alloc_table *table,
                            struct _sampling_move *move);
extern void _PySampling_AllocTableMove(struct _sampling_alloc_table *table,
                                       struct _sampling_move *move);
extern void _PySampling_AllocKeyMove(struct _sampling_alloc_key *key,
                                     struct _sampling_move *move);
// Rows of its own, with the same numbers.  Returns 0 if there is no memory.
extern int _PySampling_AllocTableCopy(struct _sampling_alloc_table *copy,
                                      const struct _sampling_alloc_table *from);
extern void _PySampling_AllocTableFree(struct _sampling_alloc_table *table);

#endif  // !Py_SAMPLING_ALLOCATIONS_H
