/* Sampling profiler: what records are made with.  Between sample/record.c and
   sample/leftover.c, which record time; of no concern to others. */

#ifndef Py_SAMPLING_RECORD_H
#define Py_SAMPLING_RECORD_H

#ifndef Py_BUILD_CORE
#  error "this header requires Py_BUILD_CORE define"
#endif

#include "sample.h"

/* Where time goes: a stack of a thread, and its labels; who held the GIL, if
   it waited for it. */
struct _sampling_place {
    _PySampling_Thread *thread;
    uint32_t node;
    uint32_t labels;
    struct _sampling_wait_part holder;
};

// What functions return: CPython's Tools/c-analyzer reads no struct there.
typedef struct _sampling_place _PySampling_Place;

// Time that was measured: the record has its weight.
extern void _PySampling_Record(const struct _sampling_place *place,
                               _PySampling_State state, uint64_t count,
                               uint64_t cpu_ns, uint64_t wall_ns);

// Time off the GIL: of it the thread was on a CPU, in C code, for `native_ns`,
// and waited for the rest.  `cpu_ns` of that may be known later.  Returns
// where most of it went: the place itself is native, and what is below it
// waits.
extern _PySampling_Place
_PySampling_RecordNoGIL(const struct _sampling_place *place, uint64_t count,
                        uint64_t cpu_ns, uint64_t native_ns, uint64_t wall_ns);

extern _PySampling_Place
_PySampling_PlaceBelow(const struct _sampling_place *place,
                       _PySampling_Pseudo pseudo);

#endif  // !Py_SAMPLING_RECORD_H
