/* pprof files: the message being taken apart.  Shared by pprof_wire.c and
   pprof_parse.c only. */

#ifndef Py_PROFILE_PPROF_PARSER_H
#define Py_PROFILE_PPROF_PARSER_H

#include "pprof.h"

/* Bytes of the message that are in the window. */
struct span {
    const uint8_t *at;
    const uint8_t *end;
};

struct field {
    uint64_t number;
    int wire_type;
    uint64_t value;             // of WIRE_VARINT
    struct span span;           // of all others
};

struct parser {
    PyObject *read;
    struct pprof_budget *budget;
    struct pprof_array window;
    size_t at;                  // in the window
    uint64_t window_offset;     // of the window in the message
    int is_at_end;              // `read` has no more

    PyObject *strings;
    struct pprof_array types;
    struct pprof_array functions;
    struct pprof_array locations;
    struct pprof_array lines;
    struct pprof_array comments;
    struct pprof_rows stacks;   // parent, number of a location
    struct pprof_rows labels;   // key, string, number
    struct pprof_rows label_sets;   // parent, label
    struct pprof_rows samples;  // stack, label set; values
    Py_ssize_t num_values;      // of each sample; -1: none seen yet
    int64_t time_ns;
    int64_t duration_ns;
    int64_t period;
    int64_t default_type;

    // Of one sample.
    struct pprof_array sample_locations;
    struct pprof_array sample_values;
    // Of the last one, root first: most stacks begin like the one before.
    struct pprof_array last_locations;
    struct pprof_array last_nodes;
};

// pprof_wire.c.  All: -1 with an exception set.

// Sets an error that says where.
extern int _PyPprof_Fault(struct parser *p, const uint8_t *at,
                          const char *format, ...);
extern int _PyPprof_WrongType(struct parser *p, const struct field *field);
// The key of a field, and its value or size.
extern int _PyPprof_GetFieldHead(struct parser *p, struct span *span,
                                 struct field *field, uint64_t *size);
// 1: there is a field; 0: the message is over.
extern int _PyPprof_GetField(struct parser *p, struct span *span,
                             struct field *field);
// A message of single numbers: values[i] is field numbers[i].
extern int _PyPprof_GetNumbers(struct parser *p, struct span span,
                               const int *numbers, int64_t *values, int num);
// Adds the values of a repeated number field, packed or not.
extern int _PyPprof_AddNumbers(struct parser *p, struct field *field,
                               struct pprof_array *array);
// Reads on, until the window has `size` bytes or there are no more.
extern int _PyPprof_Fill(struct parser *p, uint64_t size);
extern struct span _PyPprof_InWindow(struct parser *p);
// Goes on behind bytes that nobody wants.
extern int _PyPprof_Skip(struct parser *p, uint64_t size);

#endif  // !Py_PROFILE_PPROF_PARSER_H
