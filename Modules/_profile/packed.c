/* The packed tables of a profile: whether every row refers to others that
   exist.

   What is checked here may be read without a look at any index. */

#ifndef Py_BUILD_CORE_BUILTIN
#  define Py_BUILD_CORE_MODULE 1
#endif

#include "Python.h"

#include "pprof.h"

/* More than any file has kinds of values: so that the size of a row is no
   overflow, and a loop over them ends. */
#define MAX_WEIGHTS (1 << 20)

static int
num_rows(const char *what, const Py_buffer *buffer, Py_ssize_t row_bytes,
         Py_ssize_t *num)
{
    if (buffer->len % row_bytes != 0) {
        PyErr_Format(PyExc_ValueError, "the table of %s has a broken row",
                     what);
        return -1;
    }
    *num = buffer->len / row_bytes;
    return 0;
}

int
_PyProfile_CheckCount(const char *name, Py_ssize_t num)
{
    if (num < 0) {
        PyErr_Format(PyExc_ValueError, "%s must not be negative", name);
        return -1;
    }
    return 0;
}

static int
missing(const char *what)
{
    PyErr_Format(PyExc_ValueError, "a row refers to %s that do not exist",
                 what);
    return -1;
}

static int
check_frames(const struct packed_tables *t)
{
    for (Py_ssize_t frame = 0; frame < t->num_frames; frame++) {
        if (!is_row(t->frames[FRAME_COLUMNS * frame], t->num_functions)) {
            return missing("functions");
        }
    }
    return 0;
}

static int
check_nodes(const struct packed_tables *t)
{
    if (t->num_nodes == 0 || t->nodes[0] != 0) {
        PyErr_SetString(PyExc_ValueError, "the table of nodes has no root");
        return -1;
    }
    for (Py_ssize_t node = 1; node < t->num_nodes; node++) {
        const uint32_t *row = &t->nodes[NODE_COLUMNS * node];
        if (row[0] >= (size_t)node) {
            PyErr_SetString(PyExc_ValueError,
                            "a node comes before its parent");
            return -1;
        }
        if (!is_row(row[1], t->num_frames)) {
            return missing("frames");
        }
    }
    return 0;
}

/* node, thread, labels, state, thread and node of a holder */
static int
check_samples(const struct packed_tables *t)
{
    Py_ssize_t width = KEY_COLUMNS + t->num_weights;
    for (Py_ssize_t i = 0; i < t->num_samples; i++) {
        const int64_t *row = &t->samples[width * i];
        if (!is_row(row[0], t->num_nodes) || !is_row(row[5], t->num_nodes)) {
            return missing("nodes");
        }
        // -1: a holder that is not known; 0: none, where there is no thread.
        if (!is_row(row[1], t->num_threads)
            || (row[4] != -1 && row[4] != 0
                && !is_row(row[4], t->num_threads)))
        {
            return missing("threads");
        }
        if (!is_row(row[2], t->num_labels)) {
            return missing("labels");
        }
        if (!is_row(row[3], t->num_states)) {
            return missing("states");
        }
    }
    return 0;
}

/* No sum of weights is to overflow, whatever is added up. */
static int
check_weights(const struct packed_tables *t)
{
    Py_ssize_t width = KEY_COLUMNS + t->num_weights;
    for (Py_ssize_t weight = 0; weight < t->num_weights; weight++) {
        uint64_t sum = 0;
        for (Py_ssize_t i = 0; i < t->num_samples; i++) {
            int64_t value = t->samples[width * i + KEY_COLUMNS + weight];
            sum += value < 0 ? -(uint64_t)value : (uint64_t)value;
            if (sum > INT64_MAX) {
                PyErr_SetString(PyExc_ValueError, "the weights of all samples "
                                "add up to more than 64 bits");
                return -1;
            }
        }
    }
    return 0;
}

int
_PyProfile_CheckNodes(struct packed_tables *t, const Py_buffer *nodes)
{
    t->nodes = nodes->buf;
    if (num_rows("nodes", nodes, NODE_COLUMNS * sizeof(uint32_t),
                 &t->num_nodes) < 0)
    {
        return -1;
    }
    return check_nodes(t);
}

/* `num_weights` is set. */
static int
take_samples(struct packed_tables *t, const Py_buffer *samples)
{
    if (t->num_weights < 0 || t->num_weights > MAX_WEIGHTS) {
        PyErr_Format(PyExc_ValueError, "a sample cannot have %zd weights",
                     t->num_weights);
        return -1;
    }
    t->samples = samples->buf;
    Py_ssize_t width = KEY_COLUMNS + t->num_weights;
    return num_rows("samples", samples, width * sizeof(int64_t),
                    &t->num_samples);
}

int
_PyProfile_CheckStacks(struct packed_tables *t, const Py_buffer *keys,
                       Py_ssize_t num_keys, const Py_buffer *nodes,
                       const Py_buffer *samples)
{
    const int32_t *key_of_frame = keys->buf;
    if (_PyProfile_CheckCount("the number of keys", num_keys) < 0) {
        return -1;
    }
    t->num_frames = keys->len / (Py_ssize_t)sizeof(int32_t);
    for (Py_ssize_t frame = 0; frame < t->num_frames; frame++) {
        if (!is_row(key_of_frame[frame], num_keys)) {
            return missing("keys");
        }
    }
    if (_PyProfile_CheckNodes(t, nodes) < 0 || take_samples(t, samples) < 0) {
        return -1;
    }
    Py_ssize_t width = KEY_COLUMNS + t->num_weights;
    for (Py_ssize_t i = 0; i < t->num_samples; i++) {
        if (!is_row(t->samples[width * i], t->num_nodes)) {
            return missing("nodes");
        }
    }
    return check_weights(t);
}

int
_PyProfile_CheckTables(struct packed_tables *t, const Py_buffer *frames,
                       const Py_buffer *nodes, const Py_buffer *samples)
{
    t->frames = frames->buf;
    if (num_rows("frames", frames, FRAME_COLUMNS * sizeof(int32_t),
                 &t->num_frames) < 0
        || check_frames(t) < 0
        || _PyProfile_CheckNodes(t, nodes) < 0
        || take_samples(t, samples) < 0
        || check_samples(t) < 0)
    {
        return -1;
    }
    return check_weights(t);
}
