/* Sums over the tree of stacks.

   Owns what is added up per node rather than per sample and frame.  Must not
   know what is added up, nor by what. */

#ifndef Py_BUILD_CORE_BUILTIN
#  define Py_BUILD_CORE_MODULE 1
#endif

#include "Python.h"

#include "stacks.h"

struct sums {
    const struct packed_tables *t;
    const int32_t *key_of_frame;
    Py_ssize_t num_keys;
    uint32_t *first_child;          // 0: none
    uint32_t *next_sibling;
    char *is_sampled;               // per node: it is on the stack of a sample
    char *is_outermost;             // no caller of it has its key
    char *is_open;                  // per key, while the tree is walked
    int64_t *subtree;               // per node, of one weight
};

static uint32_t
parent_of(const struct sums *s, size_t node)
{
    return s->t->nodes[NODE_COLUMNS * node];
}

static int32_t
key_of(const struct sums *s, size_t node)
{
    return s->key_of_frame[s->t->nodes[NODE_COLUMNS * node + 1]];
}

static const int64_t *
sample_row(const struct sums *s, Py_ssize_t sample)
{
    return &s->t->samples[(KEY_COLUMNS + s->t->num_weights) * sample];
}

/* Those of who held the GIL need not be sampled, nor those that the core
   keeps. */
char *
_PyProfile_SampledNodes(const struct packed_tables *t)
{
    char *is_sampled = PyMem_RawCalloc((size_t)t->num_nodes, 1);
    if (is_sampled == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    Py_ssize_t width = KEY_COLUMNS + t->num_weights;
    for (Py_ssize_t i = 0; i < t->num_samples; i++) {
        is_sampled[t->samples[width * i]] = 1;
    }
    for (size_t node = (size_t)t->num_nodes - 1; node > 0; node--) {
        if (is_sampled[node]) {
            is_sampled[t->nodes[NODE_COLUMNS * node]] = 1;
        }
    }
    return is_sampled;
}

static void
enter(struct sums *s, size_t node)
{
    int32_t key = key_of(s, node);
    if (!s->is_open[key]) {
        s->is_open[key] = 1;
        s->is_outermost[node] = 1;
    }
}

static void
leave(struct sums *s, size_t node)
{
    if (s->is_outermost[node]) {
        s->is_open[key_of(s, node)] = 0;
    }
}

/* Where a key occurs first on its stack: only there does the subtree count, so
   that recursion is not counted twice. */
static void
mark_outermost(struct sums *s)
{
    for (size_t node = (size_t)s->t->num_nodes - 1; node > 0; node--) {
        uint32_t parent = parent_of(s, node);
        s->next_sibling[node] = s->first_child[parent];
        s->first_child[parent] = (uint32_t)node;
    }
    size_t node = 0;
    for (;;) {
        if (s->first_child[node] != 0) {
            node = s->first_child[node];
        }
        else {
            while (node != 0 && s->next_sibling[node] == 0) {
                leave(s, node);
                node = parent_of(s, node);
            }
            if (node == 0) {
                return;
            }
            leave(s, node);
            node = s->next_sibling[node];
        }
        enter(s, node);
    }
}

/* Adds up one weight: `own` is what the keys took themselves, `with_callees`
   is with all that they called. */
static void
sum_weight(struct sums *s, Py_ssize_t weight, int64_t *own,
           int64_t *with_callees)
{
    size_t num_nodes = (size_t)s->t->num_nodes;
    memset(s->subtree, 0, num_nodes * sizeof(int64_t));
    for (Py_ssize_t i = 0; i < s->t->num_samples; i++) {
        const int64_t *row = sample_row(s, i);
        s->subtree[row[0]] += row[KEY_COLUMNS + weight];
    }
    for (size_t node = 1; node < num_nodes; node++) {
        own[key_of(s, node)] += s->subtree[node];
    }
    for (size_t node = num_nodes - 1; node > 0; node--) {
        s->subtree[parent_of(s, node)] += s->subtree[node];
        if (s->is_outermost[node]) {
            with_callees[key_of(s, node)] += s->subtree[node];
        }
    }
}

PyObject *
_PyProfile_NewSums(Py_ssize_t num_keys, Py_ssize_t num_each)
{
    // Half of it leaves room for the head of the object.
    size_t most = PY_SSIZE_T_MAX / 2 / sizeof(int64_t);
    if (num_each != 0 && (size_t)num_keys > most / (size_t)num_each) {
        return PyErr_NoMemory();
    }
    size_t bytes = (size_t)num_keys * (size_t)num_each * sizeof(int64_t);
    PyObject *sums = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)bytes);
    if (sums != NULL) {
        memset(PyBytes_AS_STRING(sums), 0, bytes);
    }
    return sums;
}

static PyObject *
sum_all(struct sums *s)
{
    mark_outermost(s);
    PyObject *seen = PyBytes_FromStringAndSize(NULL, s->num_keys);
    PyObject *own = _PyProfile_NewSums(s->num_keys, s->t->num_weights);
    PyObject *with_callees =
        _PyProfile_NewSums(s->num_keys, s->t->num_weights);
    if (seen == NULL || own == NULL || with_callees == NULL) {
        Py_XDECREF(seen);
        Py_XDECREF(own);
        Py_XDECREF(with_callees);
        return NULL;
    }
    memset(PyBytes_AS_STRING(seen), 0, (size_t)s->num_keys);
    for (size_t node = 1; node < (size_t)s->t->num_nodes; node++) {
        if (s->is_sampled[node]) {
            PyBytes_AS_STRING(seen)[key_of(s, node)] = 1;
        }
    }
    for (Py_ssize_t i = 0; i < s->t->num_weights; i++) {
        sum_weight(s, i,
                   (int64_t *)PyBytes_AS_STRING(own) + i * s->num_keys,
                   (int64_t *)PyBytes_AS_STRING(with_callees)
                   + i * s->num_keys);
    }
    return Py_BuildValue("(NNN)", seen, own, with_callees);
}

PyObject *
_PyProfile_SumStacks(const struct packed_tables *t,
                     const int32_t *key_of_frame, Py_ssize_t num_keys)
{
    size_t num_nodes = (size_t)t->num_nodes;
    struct sums s = {
        .t = t, .key_of_frame = key_of_frame, .num_keys = num_keys,
        .first_child = PyMem_RawCalloc(num_nodes, sizeof(uint32_t)),
        .next_sibling = PyMem_RawCalloc(num_nodes, sizeof(uint32_t)),
        .is_sampled = _PyProfile_SampledNodes(t),
        .is_outermost = PyMem_RawCalloc(num_nodes, 1),
        .is_open = PyMem_RawCalloc((size_t)num_keys + 1, 1),
        .subtree = PyMem_RawCalloc(num_nodes, sizeof(int64_t)),
    };
    PyObject *result;
    if (s.first_child == NULL || s.next_sibling == NULL
        || s.is_sampled == NULL || s.is_outermost == NULL
        || s.is_open == NULL || s.subtree == NULL)
    {
        result = PyErr_NoMemory();
    }
    else {
        result = sum_all(&s);
    }
    PyMem_RawFree(s.first_child);
    PyMem_RawFree(s.next_sibling);
    PyMem_RawFree(s.is_sampled);
    PyMem_RawFree(s.is_outermost);
    PyMem_RawFree(s.is_open);
    PyMem_RawFree(s.subtree);
    return result;
}

PyObject *
_PyProfile_Innermost(const struct packed_tables *t, const char *is_wanted)
{
    Py_ssize_t bytes = t->num_nodes * (Py_ssize_t)sizeof(int32_t);
    PyObject *innermost = PyBytes_FromStringAndSize(NULL, bytes);
    PyObject *callees = PyBytes_FromStringAndSize(NULL, bytes);
    if (innermost == NULL || callees == NULL) {
        Py_XDECREF(innermost);
        Py_XDECREF(callees);
        return NULL;
    }
    int32_t *frame_of = (int32_t *)PyBytes_AS_STRING(innermost);
    int32_t *callee_of = (int32_t *)PyBytes_AS_STRING(callees);
    frame_of[0] = callee_of[0] = -1;
    for (size_t node = 1; node < (size_t)t->num_nodes; node++) {
        uint32_t parent = t->nodes[NODE_COLUMNS * node];
        uint32_t frame = t->nodes[NODE_COLUMNS * node + 1];
        if (is_wanted[frame]) {
            frame_of[node] = (int32_t)frame;
            callee_of[node] = -1;
        }
        else {
            frame_of[node] = frame_of[parent];
            callee_of[node] = callee_of[parent] < 0
                ? (int32_t)frame : callee_of[parent];
        }
    }
    return Py_BuildValue("(NN)", innermost, callees);
}
