/* Sampling profiler: rows of tables that go on in others, which take their
   place, so that what nothing refers to any more is left behind. */

#ifndef Py_SAMPLING_MOVE_H
#define Py_SAMPLING_MOVE_H

#ifndef Py_BUILD_CORE
#  error "this header requires Py_BUILD_CORE define"
#endif

#include "tables.h"

/* First all nodes are wanted, then they are moved.  What there is no memory for
   is lost. */
struct _sampling_move {
    struct _sampling_tables *to;
    const struct _sampling_tables *from;
    // What those of `from` are in `to`; NULL: there is no memory.
    uint32_t *nodes;
    uint32_t *frames;           // + 1; 0: not there yet
    uint32_t *labels;           // the same
};
typedef struct _sampling_move _PySampling_Move;

extern void _PySampling_MoveBegin(struct _sampling_move *move,
                                  struct _sampling_tables *to,
                                  const struct _sampling_tables *from);
extern void _PySampling_MoveWants(struct _sampling_move *move, uint32_t node);
extern void _PySampling_MoveNodes(struct _sampling_move *move);
extern void _PySampling_MoveEnd(struct _sampling_move *move);

// What it is in the others.
extern uint32_t _PySampling_MovedNode(const struct _sampling_move *move,
                                      uint32_t node);
extern uint32_t _PySampling_MovedLabels(struct _sampling_move *move,
                                        uint32_t labels);
extern uint32_t _PySampling_MovedThread(struct _sampling_move *move,
                                        uint32_t thread);

// tables/frames.c.  UINT32_MAX: the limit is reached.
extern uint32_t _PySampling_CopyString(struct _sampling_tables *to,
                                       const struct _sampling_tables *from,
                                       uint32_t string);
extern uint32_t
_PySampling_CopyFunction(struct _sampling_tables *to,
                         const struct _sampling_tables *from,
                         uint32_t function);
extern uint32_t _PySampling_CopyFrame(struct _sampling_tables *to,
                                      const struct _sampling_tables *from,
                                      uint32_t frame);
// tables/labels.c.  A task has no id any more: it may be over.
extern uint32_t _PySampling_CopyLabels(struct _sampling_tables *to,
                                       const struct _sampling_tables *from,
                                       uint32_t labels);

#endif  // !Py_SAMPLING_MOVE_H
