/* pprof files: what their writer and their reader share.

   All memory here is the caller's own: no lock is needed.  A reader counts
   what it keeps against a limit, so that no file can make it keep more. */

#ifndef Py_PROFILE_PPROF_H
#define Py_PROFILE_PPROF_H

#include "Python.h"

/* Fields of Profile, the outermost message. */
enum {
    FIELD_SAMPLE_TYPE = 1,
    FIELD_SAMPLE,
    FIELD_MAPPING,
    FIELD_LOCATION,
    FIELD_FUNCTION,
    FIELD_STRING,
    FIELD_TIME_NS = 9,
    FIELD_DURATION_NS,
    FIELD_PERIOD_TYPE,
    FIELD_PERIOD,
    FIELD_COMMENT,
    FIELD_DEFAULT_TYPE,
    FIELD_DOC_URL,
};

enum { WIRE_VARINT = 0, WIRE_FIXED_64 = 1, WIRE_BYTES = 2, WIRE_FIXED_32 = 5 };

/* Columns of the packed tables; see Lib/profile_sampling/_data/tables.py. */
enum { FRAME_COLUMNS = 5, NODE_COLUMNS = 2, KEY_COLUMNS = 6 };

/* What may still be kept, in bytes. */
struct pprof_budget {
    size_t limit;
    size_t left;
};

// pprof_rows.c.  -1: an exception is set, saying how much is too much.
extern int _PyPprof_Spend(struct pprof_budget *budget, size_t bytes);

/* An array of items that grows.  `budget` is NULL: as much as there is. */
struct pprof_array {
    char *items;
    size_t num;
    size_t cap;
    size_t item_bytes;
    struct pprof_budget *budget;
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
                              size_t num_keys, struct pprof_budget *budget);
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

// glue, pprof.c
extern PyMethodDef _PyProfile_PprofMethods[];

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

/* Facts of a whole file. */
struct pprof_header {
    PyObject *binary;               // str
    uint64_t time_ns;
    uint64_t duration_ns;
    PyObject *period_type;          // (type, unit)
    uint64_t period;
    PyObject *comments;             // list of str
    PyObject *default_type;         // str
    PyObject *doc_url;              // str
};

/* What there is to be written.  All references are borrowed. */
struct pprof_profile {
    PyObject *value_types;          // list of (type, unit), as in the file
    PyObject *functions;            // list of (name, place, first line, bool:
                                    // is it Python?)
    PyObject *labels;               // list, see Tables.labels
    PyObject *threads;              // list of (ident, native id, name, interp)
    PyObject *states;               // list of str
    PyObject *opnames;              // list: opcode -> name or None; NULL:
                                    // leave instructions out
    struct packed_tables t;
    const Py_ssize_t *columns;      // which weight each value type is
    Py_ssize_t num_columns;
    Py_ssize_t num_measures;        // weights, the first, that weigh
    struct pprof_header header;
};

// pprof_encode.c.  The message as bytes.
extern PyObject *_PyPprof_Encode(const struct pprof_profile *profile);

// pprof_parse.c.  `read` returns some bytes more of the message, none at its
// end; the result is a dict, see there.
extern PyObject *_PyPprof_Parse(PyObject *read,
                                struct pprof_budget *budget);

/* What label sets say: thread, row of labels, state, thread that held the GIL,
   holder + 1 (0: none), offset and opcode of the instruction (-1 and 0: not
   known). */
enum { ABOUT_THREAD, ABOUT_LABELS, ABOUT_STATE, ABOUT_HOLDER_THREAD,
       ABOUT_HOLDER, ABOUT_OFFSET, ABOUT_OPCODE, ABOUT_COLUMNS };

/* A parsed message, of columns of int64_t, with what its reader knows. */
struct pprof_message {
    const int64_t *functions;       // numbers
    Py_ssize_t num_functions;
    const char *is_python;          // per function
    const int64_t *locations;       // number, address, first line, lines
    Py_ssize_t num_locations;
    const int64_t *lines;           // function's number, line, column
    Py_ssize_t num_lines;
    const int64_t *natives;         // per location: its function if it has no
                                    // line, as an index
    const int64_t *stacks;          // parent, location's number
    Py_ssize_t num_stacks;
    const int64_t *about;           // per label set: see ABOUT_COLUMNS
    Py_ssize_t num_about;
    const int64_t *holders;         // function, line, callee or -1: indices
    Py_ssize_t num_holders;
    const int64_t *samples;         // stack, label set, values
    Py_ssize_t num_samples;
    Py_ssize_t num_values;
    const int64_t *columns;         // value and factor of each weight
    Py_ssize_t num_columns;
};

// pprof_build.c.  (frames, nodes, samples) as packed tables have them.
extern PyObject *_PyPprof_Build(const struct pprof_message *message,
                                struct pprof_budget *budget);

#endif  // !Py_PROFILE_PPROF_H
