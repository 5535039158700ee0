/* The stacks of samples as one tree in one order, and the calls in it.

   Owns which nodes of the tables become one, how they are ordered, and what
   is added up along the way.  Must not know what a place stands for, nor what
   is added up.

   In the new tree callers come before their callees and each stack is a run
   of nodes: it is in preorder.  Its root is 0. */

#ifndef Py_BUILD_CORE_BUILTIN
#  define Py_BUILD_CORE_MODULE 1
#endif

#include "Python.h"

#include "stacks.h"

#define NO_KEY (-1)
#define MAX_KNOWN (1 << 22)           // pairs: 16 MiB

/* --- The tree. */

struct paths {
    const struct packed_tables *t;
    const int32_t *place_of_frame;
    struct pprof_rows merged;       // in the order of the tables
    uint32_t *first_child;          // 0: none
    uint32_t *next_sibling;
    uint32_t *numbers;              // per merged node, its place in preorder
    uint64_t *siblings;             // room for all of them
};

static size_t
parent_of(const struct paths *p, size_t node)
{
    return (size_t)pprof_row(&p->merged, node - 1)[0];
}

static int64_t
place_of(const struct paths *p, size_t node)
{
    return pprof_row(&p->merged, node - 1)[1];
}

/* Nodes of one caller and one place become one.  Nodes that are on the stack
   of no sample are left out: `of_node` stays 0. */
static int
merge(struct paths *p, uint32_t *of_node)
{
    const struct packed_tables *t = p->t;
    char *is_sampled = _PyProfile_SampledNodes(t);
    if (is_sampled == NULL) {
        return -1;
    }
    int64_t number = 0;
    for (size_t node = 1; node < (size_t)t->num_nodes && number >= 0; node++) {
        if (is_sampled[node]) {
            const uint32_t *row = &t->nodes[NODE_COLUMNS * node];
            number = _PyPprof_Child(&p->merged, of_node[row[0]],
                                    p->place_of_frame[row[1]]);
            of_node[node] = (uint32_t)number;
        }
    }
    PyMem_RawFree(is_sampled);
    _PyPprof_FreeSlots(&p->merged);
    return number < 0 ? -1 : 0;
}

static int
compare(const void *one, const void *other)
{
    uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;
    return (a > b) - (a < b);
}

/* Puts the children of a node in the order of their places. */
static void
sort_children(struct paths *p, size_t parent)
{
    uint64_t *siblings = p->siblings;
    size_t num = 0;
    for (uint32_t node = p->first_child[parent]; node != 0;
         node = p->next_sibling[node])
    {
        siblings[num++] = (uint64_t)place_of(p, node) << 32 | node;
    }
    qsort(siblings, num, sizeof(uint64_t), compare);
    uint32_t next = 0;
    while (num > 0) {
        uint32_t node = (uint32_t)siblings[--num];
        p->next_sibling[node] = next;
        next = node;
    }
    p->first_child[parent] = next;
}

static void
link_children(struct paths *p, size_t num_nodes)
{
    for (size_t node = num_nodes - 1; node > 0; node--) {
        size_t parent = parent_of(p, node);
        p->next_sibling[node] = p->first_child[parent];
        p->first_child[parent] = (uint32_t)node;
    }
    for (size_t node = 0; node < num_nodes; node++) {
        // Most have one child.
        if (p->next_sibling[p->first_child[node]] != 0) {
            sort_children(p, node);
        }
    }
}

/* Fills the columns of the new tree. */
static void
put_in_order(struct paths *p, uint32_t *parents, int32_t *places)
{
    parents[0] = 0;
    places[0] = NO_KEY;
    uint32_t num = 0;
    size_t node = 0;
    for (;;) {
        if (p->first_child[node] != 0) {
            node = p->first_child[node];
        }
        else {
            while (node != 0 && p->next_sibling[node] == 0) {
                node = parent_of(p, node);
            }
            if (node == 0) {
                return;
            }
            node = p->next_sibling[node];
        }
        p->numbers[node] = ++num;
        parents[num] = p->numbers[parent_of(p, node)];
        places[num] = (int32_t)place_of(p, node);
    }
}

static int
alloc_lists(struct paths *p, size_t num_nodes)
{
    p->first_child = PyMem_RawCalloc(num_nodes, sizeof(uint32_t));
    p->next_sibling = PyMem_RawCalloc(num_nodes, sizeof(uint32_t));
    p->numbers = PyMem_RawCalloc(num_nodes, sizeof(uint32_t));
    p->siblings = PyMem_RawMalloc(num_nodes * sizeof(uint64_t));
    if (p->first_child == NULL || p->next_sibling == NULL
        || p->numbers == NULL || p->siblings == NULL)
    {
        PyErr_NoMemory();
        return -1;
    }
    return 0;
}

static void
free_paths(struct paths *p)
{
    _PyPprof_FreeRows(&p->merged);
    PyMem_RawFree(p->first_child);
    PyMem_RawFree(p->next_sibling);
    PyMem_RawFree(p->numbers);
    PyMem_RawFree(p->siblings);
}

/* Returns (parents, places, new node of each node); a reference to `of_node`
   is stolen. */
static PyObject *
ordered(struct paths *p, PyObject *of_node)
{
    size_t num_nodes = p->merged.cells.num + 1;
    Py_ssize_t bytes = (Py_ssize_t)(num_nodes * sizeof(uint32_t));
    PyObject *parents = PyBytes_FromStringAndSize(NULL, bytes);
    PyObject *places = PyBytes_FromStringAndSize(NULL, bytes);
    if (parents == NULL || places == NULL || alloc_lists(p, num_nodes) < 0) {
        Py_XDECREF(parents);
        Py_XDECREF(places);
        Py_DECREF(of_node);
        return NULL;
    }
    link_children(p, num_nodes);
    put_in_order(p, (uint32_t *)PyBytes_AS_STRING(parents),
                 (int32_t *)PyBytes_AS_STRING(places));
    uint32_t *numbers = (uint32_t *)PyBytes_AS_STRING(of_node);
    for (Py_ssize_t node = 0; node < p->t->num_nodes; node++) {
        numbers[node] = p->numbers[numbers[node]];
    }
    return Py_BuildValue("(NNN)", parents, places, of_node);
}

PyObject *
_PyProfile_CallPaths(const struct packed_tables *t,
                     const int32_t *place_of_frame)
{
    struct paths p = {.t = t, .place_of_frame = place_of_frame};
    _PyPprof_InitRows(&p.merged, 2, 2);
    p.merged.is_tree = 1;
    Py_ssize_t bytes = t->num_nodes * (Py_ssize_t)sizeof(uint32_t);
    PyObject *of_node = PyBytes_FromStringAndSize(NULL, bytes);
    PyObject *result = NULL;
    if (of_node != NULL) {
        memset(PyBytes_AS_STRING(of_node), 0, (size_t)bytes);
        if (merge(&p, (uint32_t *)PyBytes_AS_STRING(of_node)) < 0) {
            Py_DECREF(of_node);
        }
        else {
            result = ordered(&p, of_node);
        }
    }
    free_paths(&p);
    return result;
}

/* --- The calls. */

struct calls {
    const struct tree *tree;
    const int32_t *function_of_place;
    int by_place;
    struct pprof_rows pairs;        // (caller, function that is called)
    Py_ssize_t num_functions;
    uint32_t *known;                // per pair, its call + 1, or 0; NULL: that
                                    // would be too large
    struct pprof_array num_open;    // per call, how often it is on the way
    // The way down to a node.
    uint32_t *way;
    uint32_t *outer;                // what innermost[] was before, per level
    uint32_t *innermost;            // per function, its last level + 1; 0:
                                    // it is not on the way
    int32_t *columns[NUM_CALL_COLUMNS];
};

static int32_t
function_of(const struct calls *c, size_t node)
{
    return c->function_of_place[c->tree->places[node]];
}

/* The number of a call; NO_KEY: nobody calls it.  -2: an exception is set. */
static int32_t
call_of(struct calls *c, size_t node)
{
    size_t caller = c->tree->parents[node];
    if (caller == 0) {
        return NO_KEY;
    }
    int64_t pair[2] = {c->by_place ? c->tree->places[caller]
                       : function_of(c, caller), function_of(c, node)};
    uint32_t *known = c->known == NULL ? NULL
        : &c->known[pair[0] * c->num_functions + pair[1]];
    if (known != NULL && *known != 0) {
        return (int32_t)*known - 1;
    }
    Py_ssize_t call = _PyPprof_Intern(&c->pairs, pair);
    uint32_t zero = 0;
    if (call < 0 || ((size_t)call == c->num_open.num
                     && _PyPprof_Append(&c->num_open, &zero, 1) < 0))
    {
        return -2;
    }
    if (known != NULL) {
        *known = (uint32_t)call + 1;
    }
    return (int32_t)call;
}

static uint32_t *
open_calls(const struct calls *c, int32_t call)
{
    return (uint32_t *)c->num_open.items + call;
}

static void
leave(struct calls *c, uint32_t level)
{
    uint32_t node = c->way[level];
    c->innermost[function_of(c, node)] = c->outer[level];
    int32_t call = c->columns[CALL][node];
    if (call != NO_KEY) {
        --*open_calls(c, call);
    }
}

/* Fills the columns of a node, on the level below its caller's. */
static int
enter(struct calls *c, uint32_t node, uint32_t level)
{
    int32_t function = function_of(c, node);
    int32_t call = call_of(c, node);
    if (call < NO_KEY) {
        return -1;
    }
    c->way[level] = node;
    c->columns[CALL][node] = call;
    c->columns[FIRST_CALL][node] = NO_KEY;
    if (call != NO_KEY && (*open_calls(c, call))++ == 0) {
        c->columns[FIRST_CALL][node] = call;
    }
    uint32_t known = c->innermost[function];
    c->columns[FUNCTION][node] = function;
    c->columns[FIRST_FUNCTION][node] = known == 0 ? function : NO_KEY;
    // What the function's frame above had called on this way.
    c->columns[OUTER_CALL][node] = known == 0 ? NO_KEY
        : c->columns[CALL][c->way[known]];
    c->outer[level] = known;
    c->innermost[function] = level + 1;
    return 0;
}

static int
find_calls(struct calls *c)
{
    for (int i = 0; i < NUM_CALL_COLUMNS; i++) {
        c->columns[i][0] = NO_KEY;
    }
    uint32_t depth = 0;
    for (size_t node = 1; node < (size_t)c->tree->num_nodes; node++) {
        while (depth > 0 && c->way[depth - 1] != c->tree->parents[node]) {
            leave(c, --depth);
        }
        if (depth == 0 && c->tree->parents[node] != 0) {
            PyErr_SetString(PyExc_ValueError, "the tree is not in preorder");
            return -1;
        }
        if (enter(c, (uint32_t)node, depth++) < 0) {
            return -1;
        }
    }
    return 0;
}

/* Returns the columns as a list of bytes, and points to them. */
static PyObject *
new_columns(struct calls *c)
{
    PyObject *list = PyList_New(NUM_CALL_COLUMNS);
    for (int i = 0; list != NULL && i < NUM_CALL_COLUMNS; i++) {
        PyObject *column = PyBytes_FromStringAndSize(
            NULL, c->tree->num_nodes * (Py_ssize_t)sizeof(int32_t));
        if (column == NULL) {
            Py_CLEAR(list);
            break;
        }
        PyList_SET_ITEM(list, i, column);
        c->columns[i] = (int32_t *)PyBytes_AS_STRING(column);
    }
    return list;
}

/* Faster than a search, as long as it is not large.  NULL: there is none. */
static uint32_t *
new_known(size_t num_callers, size_t num_functions)
{
    if (num_functions != 0 && num_callers > MAX_KNOWN / num_functions) {
        return NULL;
    }
    return PyMem_RawCalloc(num_callers * num_functions + 1, sizeof(uint32_t));
}

PyObject *
_PyProfile_FindCalls(const struct tree *tree,
                     const int32_t *function_of_place, Py_ssize_t num_places,
                     Py_ssize_t num_functions, int by_place)
{
    size_t num_nodes = (size_t)tree->num_nodes;
    struct calls c = {
        .tree = tree, .function_of_place = function_of_place,
        .by_place = by_place, .num_functions = num_functions,
        .known = new_known((size_t)(by_place ? num_places : num_functions),
                           (size_t)num_functions),
        .num_open = {.item_bytes = sizeof(uint32_t)},
        .way = PyMem_RawCalloc(num_nodes, sizeof(uint32_t)),
        .outer = PyMem_RawCalloc(num_nodes, sizeof(uint32_t)),
        .innermost = PyMem_RawCalloc((size_t)num_functions + 1,
                                     sizeof(uint32_t)),
    };
    _PyPprof_InitRows(&c.pairs, 2, 2);
    PyObject *result = NULL;
    PyObject *columns = new_columns(&c);
    if (c.way == NULL || c.outer == NULL || c.innermost == NULL) {
        PyErr_NoMemory();
    }
    else if (columns != NULL && find_calls(&c) == 0) {
        result = Py_BuildValue("(NO)", _PyPprof_ArrayBytes(&c.pairs.cells),
                               columns);
    }
    Py_XDECREF(columns);
    PyMem_RawFree(c.known);
    PyMem_RawFree(c.way);
    PyMem_RawFree(c.outer);
    PyMem_RawFree(c.innermost);
    _PyPprof_FreeArray(&c.num_open);
    _PyPprof_FreeRows(&c.pairs);
    return result;
}

/* --- Sums over the new tree. */

PyObject *
_PyProfile_SumSubtrees(const struct tree *tree, const int64_t *values)
{
    PyObject *result = PyBytes_FromStringAndSize(
        (const char *)values, tree->num_nodes * (Py_ssize_t)sizeof(int64_t));
    if (result == NULL) {
        return NULL;
    }
    // Unsigned: values need not be those of samples, and may overflow.
    uint64_t *sums = (uint64_t *)PyBytes_AS_STRING(result);
    for (size_t node = (size_t)tree->num_nodes - 1; node > 0; node--) {
        sums[tree->parents[node]] += sums[node];
    }
    return result;
}

PyObject *
_PyProfile_SumByKey(const int32_t *keys, const int64_t *values, Py_ssize_t num,
                    Py_ssize_t num_keys)
{
    PyObject *result = _PyProfile_NewSums(num_keys, 1);
    if (result == NULL) {
        return NULL;
    }
    uint64_t *sums = (uint64_t *)PyBytes_AS_STRING(result);
    for (Py_ssize_t i = 0; i < num; i++) {
        if (keys[i] >= num_keys) {
            Py_DECREF(result);
            PyErr_SetString(PyExc_ValueError, "there is no such key");
            return NULL;
        }
        if (keys[i] >= 0) {
            sums[keys[i]] += (uint64_t)values[i];
        }
    }
    return result;
}
