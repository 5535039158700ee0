/* Stacks: what is added up along packed tables and copied from them. */

#ifndef Py_PROFILE_STACKS_H
#define Py_PROFILE_STACKS_H

#include "pprof.h"

// glue, stacks.c
extern PyMethodDef _PyProfile_StackMethods[];

// stack_sums.c.  New bytes of int64_t, all 0: so many for each key.
// MemoryError if these are more than any memory has.
extern PyObject *_PyProfile_NewSums(Py_ssize_t num_keys, Py_ssize_t num_each);
// For tables that are checked.  Returns (whether a key is on
// the stack of a sample, a byte each; own sums; sums with callees: int64_t,
// weight by weight).
extern PyObject *_PyProfile_SumStacks(const struct packed_tables *t,
                                      const int32_t *key_of_frame,
                                      Py_ssize_t num_keys);
// Returns per node the innermost frame that is wanted, and the frame that this
// one calls: int32_t, -1 where there is none.
extern PyObject *_PyProfile_Innermost(const struct packed_tables *t,
                                      const char *is_wanted);
// New memory: per node a byte, whether it is on the stack of a sample.  NULL:
// an exception is set.
extern char *_PyProfile_SampledNodes(const struct packed_tables *t);

/* A tree in preorder: what _PyProfile_CallPaths() returns. */
struct tree {
    const uint32_t *parents;        // the root's is the root, 0
    const int32_t *places;          // -1: the root
    Py_ssize_t num_nodes;
};

// call_paths.c.  Returns (parents, places, new node of each node; 0 where it
// is on the stack of no sample).
extern PyObject *_PyProfile_CallPaths(const struct packed_tables *t,
                                      const int32_t *place_of_frame);

/* Columns of a tree that say which function and which call a node is; -1: it
   is none. */
enum {
    FUNCTION,
    FIRST_FUNCTION,                 // where it comes first on its stack
    CALL,
    FIRST_CALL,                     // the same
    OUTER_CALL,                     // what its function's frame above called
    NUM_CALL_COLUMNS
};

// Returns (pairs of a caller and a function that it calls, a list of columns).
// With `by_place` a caller is a place, else a function.
extern PyObject *_PyProfile_FindCalls(const struct tree *tree,
                                      const int32_t *function_of_place,
                                      Py_ssize_t num_places,
                                      Py_ssize_t num_functions, int by_place);
// Each value with those of all nodes below.
extern PyObject *_PyProfile_SumSubtrees(const struct tree *tree,
                                        const int64_t *values);
// The sums of the values of each key; what has a negative one is left out.
extern PyObject *_PyProfile_SumByKey(const int32_t *keys,
                                     const int64_t *values, Py_ssize_t num,
                                     Py_ssize_t num_keys);

struct node_list {
    const uint32_t *nodes;
    Py_ssize_t num;
};

// stack_part.c.  Returns (nodes, the old numbers of their frames, numbers of
// the nodes of `stacks`, the same of `places`); nothing of these is hidden.
extern PyObject *_PyProfile_CopyStacks(const struct packed_tables *t,
                                       const struct node_list *stacks,
                                       const struct node_list *places,
                                       const char *hidden_frames,
                                       const char *hidden_nodes);

#endif  // !Py_PROFILE_STACKS_H
