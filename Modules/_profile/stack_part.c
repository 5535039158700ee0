/* Some of the stacks of a profile, as a table of nodes of their own.

   Owns how they are copied with no more nodes and frames than they have, and
   without those that are to be hidden.  Must not know whose stacks these
   are. */

#ifndef Py_BUILD_CORE_BUILTIN
#  define Py_BUILD_CORE_MODULE 1
#endif

#include "Python.h"

#include "stacks.h"

struct part {
    const struct packed_tables *t;
    const char *hidden_frames;      // a byte each; NULL: none is
    const char *hidden_nodes;       // the same
    struct pprof_rows nodes;        // with frames by their old numbers
    uint32_t *way;                  // down to a node
};

static int
is_hidden(const struct part *p, size_t node)
{
    uint32_t frame = p->t->nodes[NODE_COLUMNS * node + 1];
    return (p->hidden_nodes != NULL && p->hidden_nodes[node])
        || (p->hidden_frames != NULL && p->hidden_frames[frame]);
}

/* Copies a stack; `copies` has, per node, its number here + 1, or 0. */
static int
copy_stack(struct part *p, uint32_t node, int hides, uint32_t *copies)
{
    size_t depth = 0;
    while (copies[node] == 0) {
        p->way[depth++] = node;
        node = p->t->nodes[NODE_COLUMNS * node];
    }
    int64_t number = copies[node] - 1;
    while (depth > 0) {
        node = p->way[--depth];
        if (!hides || !is_hidden(p, node)) {
            number = _PyPprof_Child(&p->nodes, number,
                                    p->t->nodes[NODE_COLUMNS * node + 1]);
            if (number < 0) {
                return -1;
            }
        }
        copies[node] = (uint32_t)number + 1;
    }
    return 0;
}

/* Copies stacks; returns the numbers of their nodes here. */
static PyObject *
copy_stacks(struct part *p, const struct node_list *wanted, int hides)
{
    PyObject *result = PyBytes_FromStringAndSize(
        NULL, wanted->num * (Py_ssize_t)sizeof(uint32_t));
    if (result == NULL) {
        return NULL;
    }
    uint32_t *copies = PyMem_RawCalloc((size_t)p->t->num_nodes,
                                       sizeof(uint32_t));
    if (copies == NULL) {
        Py_DECREF(result);
        return PyErr_NoMemory();
    }
    copies[0] = 1;
    uint32_t *numbers = (uint32_t *)PyBytes_AS_STRING(result);
    for (Py_ssize_t i = 0; i < wanted->num; i++) {
        if (copy_stack(p, wanted->nodes[i], hides, copies) < 0) {
            Py_CLEAR(result);
            break;
        }
        numbers[i] = copies[wanted->nodes[i]] - 1;
    }
    PyMem_RawFree(copies);
    return result;
}

/* Frames get numbers in the order in which nodes have them.  Returns the
   packed nodes; `frames` gets the old numbers. */
static PyObject *
number_frames(const struct part *p, struct pprof_array *frames)
{
    size_t num_nodes = p->nodes.cells.num + 1;
    PyObject *result = PyBytes_FromStringAndSize(
        NULL, (Py_ssize_t)(num_nodes * NODE_COLUMNS * sizeof(uint32_t)));
    if (result == NULL) {
        return NULL;
    }
    uint32_t *numbers = PyMem_RawCalloc((size_t)p->t->num_frames + 1,
                                        sizeof(uint32_t));
    if (numbers == NULL) {
        Py_DECREF(result);
        return PyErr_NoMemory();
    }
    uint32_t *row = (uint32_t *)PyBytes_AS_STRING(result);
    row[0] = row[1] = 0;
    for (size_t node = 1; node < num_nodes; node++) {
        const int64_t *copy = pprof_row(&p->nodes, node - 1);
        uint32_t frame = (uint32_t)copy[1];
        if (numbers[frame] == 0) {
            if (_PyPprof_Append(frames, &frame, 1) < 0) {
                Py_CLEAR(result);
                break;
            }
            numbers[frame] = (uint32_t)frames->num;
        }
        row += NODE_COLUMNS;
        row[0] = (uint32_t)copy[0];
        row[1] = numbers[frame] - 1;
    }
    PyMem_RawFree(numbers);
    return result;
}

PyObject *
_PyProfile_CopyStacks(const struct packed_tables *t,
                      const struct node_list *stacks,
                      const struct node_list *places,
                      const char *hidden_frames, const char *hidden_nodes)
{
    struct part p = {
        .t = t, .hidden_frames = hidden_frames, .hidden_nodes = hidden_nodes,
        .way = PyMem_RawMalloc((size_t)t->num_nodes * sizeof(uint32_t)),
    };
    if (p.way == NULL) {
        return PyErr_NoMemory();
    }
    _PyPprof_InitRows(&p.nodes, 2, 2);
    p.nodes.is_tree = 1;
    PyObject *of_stacks = copy_stacks(&p, stacks, 1);
    PyObject *of_places = of_stacks == NULL ? NULL
        : copy_stacks(&p, places, 0);
    _PyPprof_FreeSlots(&p.nodes);
    PyMem_RawFree(p.way);
    struct pprof_array frames = {.item_bytes = sizeof(uint32_t)};
    PyObject *nodes = of_places == NULL ? NULL : number_frames(&p, &frames);
    PyObject *result = nodes == NULL ? NULL : Py_BuildValue(
        "(ONOO)", nodes, _PyPprof_ArrayBytes(&frames), of_stacks, of_places);
    Py_XDECREF(nodes);
    Py_XDECREF(of_stacks);
    Py_XDECREF(of_places);
    _PyPprof_FreeArray(&frames);
    _PyPprof_FreeRows(&p.nodes);
    return result;
}
