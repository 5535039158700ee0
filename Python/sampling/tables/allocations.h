/* Sampling profiler: what was allocated, in a profile.

   A row is a stack of a thread with its labels, and has sums of the blocks
   that were allocated there: of all, of those in use, and of those in use at
   the moment when most were, the peak.  Sums are whole numbers, so that a
   block that ends takes away exactly what it has added.  Lock: that of the
   tables. */

#ifndef Py_SAMPLING_ALLOCATIONS_H
#define Py_SAMPLING_ALLOCATIONS_H

#ifndef Py_BUILD_CORE
#  error "this header requires Py_BUILD_CORE define"
#endif

#include "tables.h"

struct _sampling_alloc_key {
    uint32_t node;
    uint32_t thread;
    uint32_t labels;
};

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

struct _sampling_alloc_row {
    struct _sampling_alloc_key key;
    unsigned int peak_number;   // `peak` is of that one; of a later one, this
                                // row has not changed since
    struct _sampling_amount allocated;
    struct _sampling_amount in_use;
    struct _sampling_amount peak;
};

#define _PySampling_SINCE_BEGIN UINT64_MAX

struct _sampling_alloc_table {
    struct _sampling_alloc_row *allocs;
    uint32_t num_allocs;
    uint32_t cap_allocs;
    struct _sampling_index alloc_index;
    uint64_t period_bytes;      // 0: the profile is of none
    uint64_t since;             // blocks of later samples alone are of it;
                                // until it begins, _PySampling_SINCE_BEGIN
    uint64_t in_use_bytes;
    struct _sampling_amount large;      // in use, in no arena of pymalloc
    uint64_t peak_bytes;
    uint64_t peak_wall_ns;
    unsigned int peak_number;   // how often there was a new one
};

/* Rows of a profile, of 100 bytes each. */
#define _PySampling_MAX_ALLOC_ROWS ((uint32_t)1 << 17)

// What a block stands for that was sampled at `period_bytes`.
extern _PySampling_Amount
_PySampling_AmountOf(size_t size_bytes, uint64_t period_bytes);
// Returns 0 if there is no memory for its row: it is on that of `lost`.
extern int _PySampling_AllocTableAdd(struct _sampling_alloc_table *table,
                                     const struct _sampling_alloc_key *key,
                                     const struct _sampling_amount *amount,
                                     int is_large, uint64_t wall_ns);
extern void
_PySampling_AllocTableRemove(struct _sampling_alloc_table *table,
                             const struct _sampling_alloc_key *key,
                             const struct _sampling_amount *amount,
                             int is_large);
// In use at the peak.
extern _PySampling_Amount
_PySampling_PeakOf(const struct _sampling_alloc_table *table,
                   const struct _sampling_alloc_row *row);
// Row 0 is made, for what has no space.  Returns 0 if there is no memory.
extern int _PySampling_AllocTableInit(struct _sampling_alloc_table *table,
                                      uint64_t period_bytes,
                                      uint32_t lost_node);
// It begins anew, with what is in use.
extern void _PySampling_AllocTableClear(struct _sampling_alloc_table *table);
// Rows of its own, with the same numbers.  Returns 0 if there is no memory.
extern int _PySampling_AllocTableCopy(struct _sampling_alloc_table *copy,
                                      const struct _sampling_alloc_table *from);
extern void _PySampling_AllocTableFree(struct _sampling_alloc_table *table);

#endif  // !Py_SAMPLING_ALLOCATIONS_H
