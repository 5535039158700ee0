/* Packed tables, and rows that are found by their keys.

   All memory here is the caller's own: no lock is needed. */

#ifndef Py_PROFILE_PPROF_H
#define Py_PROFILE_PPROF_H

#include "Python.h"

/* Columns of the packed tables; see Lib/profile_sampling/_data/tables.py. */
enum { FRAME_COLUMNS = 5, NODE_COLUMNS = 2, KEY_COLUMNS = 6 };

/* An array of items that grows. */
struct pprof_array {
    char *items;
    size_t num;
    size_t cap;
    size_t item_bytes;
};

// Makes room for `more` items.  -1: an exception is set.
extern int _PyPprof_Reserve(struct pprof_array *array, size_t more);
extern int _PyPprof_Append(struct pprof_array *array, const void *items,
                           size_t num);
extern void _PyPprof_FreeArray(struct pprof_array *array);
extern PyObject *_PyPprof_ArrayBytes(const struct pprof_array *array);

/* Rows of numbers that are found by their first `num_keys`.  The others begin
   as 0. */
struct pprof_rows {
    struct pprof_array cells;       // of whole rows
    size_t num_columns;
    size_t num_keys;
    uint32_t *slots;                // row + 1; 0: free
    size_t num_slots;               // a power of two, or 0
    size_t num_indexed;             // slots that are taken
    int is_tree;                    // see _PyPprof_Child()
};

extern void _PyPprof_InitRows(struct pprof_rows *rows, size_t num_columns,
                              size_t num_keys);
// When no more rows are to be found.
extern void _PyPprof_FreeSlots(struct pprof_rows *rows);
extern void _PyPprof_FreeRows(struct pprof_rows *rows);
// The number of the row with these keys, a new one if there is none.  -1: an
// exception is set.
extern Py_ssize_t _PyPprof_Intern(struct pprof_rows *rows,
                                  const int64_t *keys);

// Of a tree, whose rows are a parent and an item: the child of a node with
// that item, a new one if there is none.  The root is 0 and has no row; a node
// is the number of its row + 1.  -1: an exception is set.
extern int64_t _PyPprof_Child(struct pprof_rows *tree, int64_t parent,
                              int64_t item);

static inline int64_t *
pprof_row(const struct pprof_rows *rows, size_t row)
{
    return (int64_t *)rows->cells.items + row * rows->num_columns;
}

/* The packed tables of a profile, and how many rows of others they may refer
   to; see Lib/profile_sampling/_data/tables.py. */
struct packed_tables {
    const int32_t *frames;
    const uint32_t *nodes;
    const int64_t *samples;
    Py_ssize_t num_frames;
    Py_ssize_t num_nodes;
    Py_ssize_t num_samples;
    Py_ssize_t num_weights;         // of each row of samples
    Py_ssize_t num_functions;
    Py_ssize_t num_labels;
    Py_ssize_t num_threads;
    Py_ssize_t num_states;
};

// Is there such a row in a table of `num`?
static inline int
is_row(int64_t row, Py_ssize_t num)
{
    return row >= 0 && row < num;
}

// packed.c.  -1 with ValueError if a caller says that there are less than none.
extern int _PyProfile_CheckCount(const char *name, Py_ssize_t num);
// Takes rows from buffers; -1 with ValueError if one is broken or refers to
// one that does not exist.
extern int _PyProfile_CheckTables(struct packed_tables *t,
                                  const Py_buffer *frames,
                                  const Py_buffer *nodes,
                                  const Py_buffer *samples);

extern int _PyProfile_CheckNodes(struct packed_tables *t,
                                 const Py_buffer *nodes);
extern int _PyProfile_CheckStacks(struct packed_tables *t,
                                  const Py_buffer *keys, Py_ssize_t num_keys,
                                  const Py_buffer *nodes,
                                  const Py_buffer *samples);

#endif  // !Py_PROFILE_PPROF_H
