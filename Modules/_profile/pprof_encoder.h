/* pprof files: the message being written.  Shared by pprof_put.c,
   pprof_labels.c and pprof_encode.c only. */

#ifndef Py_PROFILE_PPROF_ENCODER_H
#define Py_PROFILE_PPROF_ENCODER_H

#include "pprof.h"

/* Keys of a row of `samples`; weights follow. */
enum { KEY_STACK, KEY_THREAD, KEY_LABELS, KEY_STATE, KEY_HOLDER_THREAD,
       KEY_HOLDER, KEY_OPNAME, KEY_OFFSET, NUM_KEYS };

/* What is said of a sample beyond its stack, once per row of a table: its
   labels and task, its thread, its state; the thread that held the GIL, and
   where (a node). */
enum piece_kind { PIECE_LABELS, PIECE_THREAD, PIECE_STATE,
                  PIECE_HOLDER_THREAD, PIECE_HOLDER, NUM_PIECE_KINDS };

/* Encoded pieces of messages, by number. */
struct pieces {
    struct pprof_array bytes;
    struct pprof_array starts;      // size_t; one more than there are pieces
};

struct encoder {
    const struct pprof_profile *profile;
    PyObject *strings;              // dict: str -> number
    struct pprof_array out;         // the message
    struct pprof_array scratch;     // one that goes into it
    struct pprof_array label;       // one that goes into that
    struct pprof_rows locations;    // function, line, column
    struct pprof_rows samples;
    uint32_t *location_of_frame;
    uint32_t *frames_at;            // per location, how many
    char *has_doubles;              // per node: other nodes may be the same
    // Per node: one that is the same to pprof, the bytes of the numbers
    // of its stack's locations, and the innermost Python frame (-1: none).
    uint32_t *same_stack;
    uint64_t *stack_bytes;
    int32_t *python_frame;
    struct pieces pieces;
    PyObject *known_pieces;         // dict: bytes -> number
    int64_t *piece_of[NUM_PIECE_KINDS];     // per row; -1: not encoded yet
    // Strings: keys of labels of instructions; 0: not there yet.
    uint64_t opcode_key;
    uint64_t offset_key;
};

// pprof_put.c.  All: -1 with an exception set.  A varint field of zero, the
// default, is not written.
extern int _PyPprof_PutVarint(struct pprof_array *out, uint64_t value);
extern int _PyPprof_PutNumber(struct pprof_array *out, int field,
                              uint64_t value);
extern int _PyPprof_PutPayload(struct pprof_array *out, int field,
                               const void *bytes, size_t num);
// Moves what is in scratch to the message.
extern int _PyPprof_PutScratch(struct encoder *e, int field);
extern int64_t _PyPprof_StringNumber(struct encoder *e, PyObject *text);
extern int _PyPprof_PutString(struct encoder *e, struct pprof_array *out,
                              int field, PyObject *text);
extern int _PyPprof_PutStrings(struct encoder *e);

// pprof_labels.c.  The number of a piece, or -1.
extern int64_t _PyPprof_Piece(struct encoder *e, enum piece_kind kind,
                              Py_ssize_t row);
extern int _PyPprof_IsPython(struct encoder *e, Py_ssize_t function);
// The labels of a row of `samples`, into scratch.
extern int _PyPprof_PutSampleLabels(struct encoder *e, const int64_t *key);

#endif  // !Py_PROFILE_PPROF_ENCODER_H
