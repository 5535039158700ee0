/* The _profile module: packed tables and their stacks.

   Glue only: arguments and errors.  Needs no profiler, so it is there in every
   build. */

#ifndef Py_BUILD_CORE_BUILTIN
#  define Py_BUILD_CORE_MODULE 1
#endif

#include "Python.h"

#include "stacks.h"

/*[clinic input]
module _profile
[clinic start generated code]*/
/*[clinic end generated code: output=da39a3ee5e6b4b0d input=c968e7bb6e08bc3b]*/

#include "clinic/stacks.c.h"

/*[clinic input]
_profile.check_tables

    frames: Py_buffer
    nodes: Py_buffer
    samples: Py_buffer
    weights: Py_ssize_t
        How many each sample has.
    functions: Py_ssize_t
    labels: Py_ssize_t
    threads: Py_ssize_t
    states: Py_ssize_t
    /

Raise ValueError unless every index in packed tables names an existing row.
[clinic start generated code]*/

static PyObject *
_profile_check_tables_impl(PyObject *module, Py_buffer *frames,
                           Py_buffer *nodes, Py_buffer *samples,
                           Py_ssize_t weights, Py_ssize_t functions,
                           Py_ssize_t labels, Py_ssize_t threads,
                           Py_ssize_t states)
/*[clinic end generated code: output=d1952d78f33ffef2 input=25ab35fed56d1a6e]*/
{
    struct packed_tables t = {
        .num_weights = weights, .num_functions = functions,
        .num_labels = labels, .num_threads = threads, .num_states = states,
    };
    if (_PyProfile_CheckTables(&t, frames, nodes, samples) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static int
has_bytes(const Py_buffer *buffer, const char *what, Py_ssize_t num,
          size_t item_bytes)
{
    if (buffer->len / (Py_ssize_t)item_bytes == num
        && buffer->len % (Py_ssize_t)item_bytes == 0)
    {
        return 1;
    }
    PyErr_Format(PyExc_ValueError, "there are not as many %s as there should "
                 "be", what);
    return 0;
}

/*[clinic input]
_profile.sum_stacks

    nodes: Py_buffer
    samples: Py_buffer
    weights: Py_ssize_t
    keys: Py_buffer
        Per frame a number below num_keys, of 32 bits.
    num_keys: Py_ssize_t
    /

Return (which keys are on stacks, own sums, sums with callees).
[clinic start generated code]*/

static PyObject *
_profile_sum_stacks_impl(PyObject *module, Py_buffer *nodes,
                         Py_buffer *samples, Py_ssize_t weights,
                         Py_buffer *keys, Py_ssize_t num_keys)
/*[clinic end generated code: output=424db96207a67ec9 input=7f0b055323891638]*/
{
    struct packed_tables t = {.num_weights = weights};
    if (_PyProfile_CheckStacks(&t, keys, num_keys, nodes, samples) < 0) {
        return NULL;
    }
    return _PyProfile_SumStacks(&t, keys->buf, num_keys);
}

/*[clinic input]
_profile.innermost

    nodes: Py_buffer
    wanted: Py_buffer
        A byte per frame.
    /

Return per node the innermost frame that is wanted and what that calls.

-1: there is none.
[clinic start generated code]*/

static PyObject *
_profile_innermost_impl(PyObject *module, Py_buffer *nodes,
                        Py_buffer *wanted)
/*[clinic end generated code: output=eb0288ddbc45aeaf input=91d7d20e70ba4dd9]*/

{
    struct packed_tables t = {.num_frames = wanted->len};
    if (_PyProfile_CheckNodes(&t, nodes) < 0) {
        return NULL;
    }
    return _PyProfile_Innermost(&t, wanted->buf);
}

/*[clinic input]
_profile.call_paths

    nodes: Py_buffer
    samples: Py_buffer
    weights: Py_ssize_t
    places: Py_buffer
        Per frame a number below num_places, of 32 bits.
    num_places: Py_ssize_t
    /

Return the tree of the stacks of samples in preorder, siblings by place.

The result is (parents, places, new node of each node).
[clinic start generated code]*/

static PyObject *
_profile_call_paths_impl(PyObject *module, Py_buffer *nodes,
                         Py_buffer *samples, Py_ssize_t weights,
                         Py_buffer *places, Py_ssize_t num_places)
/*[clinic end generated code: output=2b7b7be1311c433d input=51b7d42c89483fe4]*/
{
    struct packed_tables t = {.num_weights = weights};
    if (_PyProfile_CheckStacks(&t, places, num_places, nodes, samples) < 0) {
        return NULL;
    }
    return _PyProfile_CallPaths(&t, places->buf);
}

/* Takes the parents of a tree; -1: it is none. */
static int
take_tree(struct tree *tree, const Py_buffer *parents)
{
    tree->parents = parents->buf;
    tree->num_nodes = parents->len / (Py_ssize_t)sizeof(uint32_t);
    if (tree->num_nodes == 0 || tree->parents[0] != 0) {
        PyErr_SetString(PyExc_ValueError, "the tree has no root");
        return -1;
    }
    for (size_t node = 1; node < (size_t)tree->num_nodes; node++) {
        if (tree->parents[node] >= node) {
            PyErr_SetString(PyExc_ValueError,
                            "a node comes before its parent");
            return -1;
        }
    }
    return 0;
}

static int
check_places(const struct tree *tree, const Py_buffer *functions,
             Py_ssize_t num_functions)
{
    const int32_t *function_of_place = functions->buf;
    Py_ssize_t num_places = functions->len / (Py_ssize_t)sizeof(int32_t);
    int is_whole = 1;
    for (Py_ssize_t place = 0; place < num_places; place++) {
        is_whole &= is_row(function_of_place[place], num_functions);
    }
    for (Py_ssize_t node = 1; node < tree->num_nodes; node++) {
        is_whole &= is_row(tree->places[node], num_places);
    }
    if (!is_whole) {
        PyErr_SetString(PyExc_ValueError,
                        "a node is of a place that does not exist");
        return -1;
    }
    return 0;
}

/*[clinic input]
_profile.find_calls

    parents: Py_buffer
    places: Py_buffer
        With these, what call_paths() returned.
    functions: Py_buffer
        Per place a number below num_functions, of 32 bits.
    num_functions: Py_ssize_t
    by_place: bool
        A caller is a place, not a function.
    /

Return the (caller, function) of each call, and which ones nodes are.
[clinic start generated code]*/

static PyObject *
_profile_find_calls_impl(PyObject *module, Py_buffer *parents,
                         Py_buffer *places, Py_buffer *functions,
                         Py_ssize_t num_functions, int by_place)
/*[clinic end generated code: output=139228e1df9dc481 input=7514682240ee135e]*/
{
    struct tree tree = {.places = places->buf};
    if (take_tree(&tree, parents) < 0
        || !has_bytes(places, "places", tree.num_nodes, sizeof(int32_t))
        || _PyProfile_CheckCount("num_functions", num_functions) < 0
        || check_places(&tree, functions, num_functions) < 0)
    {
        return NULL;
    }
    return _PyProfile_FindCalls(
        &tree, functions->buf, functions->len / (Py_ssize_t)sizeof(int32_t),
        num_functions, by_place);
}

/*[clinic input]
_profile.sum_subtrees

    parents: Py_buffer
    values: Py_buffer
        One of 64 bits for each node.
    /

Return the values, each with those of all nodes below.
[clinic start generated code]*/

static PyObject *
_profile_sum_subtrees_impl(PyObject *module, Py_buffer *parents,
                           Py_buffer *values)
/*[clinic end generated code: output=a569ece6052e8855 input=6ce5a8514b64ad42]*/
{
    struct tree tree = {0};
    if (take_tree(&tree, parents) < 0
        || !has_bytes(values, "values", tree.num_nodes, sizeof(int64_t)))
    {
        return NULL;
    }
    return _PyProfile_SumSubtrees(&tree, values->buf);
}

/*[clinic input]
_profile.sum_by_key

    keys: Py_buffer
        Numbers below num_keys, of 32 bits; negative: left out.
    values: Py_buffer
        One of 64 bits for each.
    num_keys: Py_ssize_t
    /

Return the sum of the values of each key.
[clinic start generated code]*/

static PyObject *
_profile_sum_by_key_impl(PyObject *module, Py_buffer *keys,
                         Py_buffer *values, Py_ssize_t num_keys)
/*[clinic end generated code: output=f9263e51999dea27 input=7dacf03a65dd9fe3]*/
{
    Py_ssize_t num = keys->len / (Py_ssize_t)sizeof(int32_t);
    if (!has_bytes(values, "values", num, sizeof(int64_t))
        || _PyProfile_CheckCount("num_keys", num_keys) < 0)
    {
        return NULL;
    }
    return _PyProfile_SumByKey(keys->buf, values->buf, num, num_keys);
}

static int
take_nodes(const struct packed_tables *t, const Py_buffer *buffer,
           struct node_list *list)
{
    list->nodes = buffer->buf;
    list->num = buffer->len / (Py_ssize_t)sizeof(uint32_t);
    for (Py_ssize_t i = 0; i < list->num; i++) {
        if (!is_row(list->nodes[i], t->num_nodes)) {
            PyErr_SetString(PyExc_ValueError, "there is no such node");
            return -1;
        }
    }
    return 0;
}

/*[clinic input]
_profile.copy_stacks

    nodes: Py_buffer
    num_frames: Py_ssize_t
    stacks: Py_buffer
        The nodes, of 32 bits, whose stacks are wanted.
    places: Py_buffer
        The same, of stacks of which nothing is hidden.
    hidden_frames: Py_buffer
        A byte per frame: whether it is to be left out; or none.
    hidden_nodes: Py_buffer
        The same per node.
    /

Copy stacks, and no more nodes and frames than they have.

The result is (nodes, old numbers of their frames, numbers of the wanted
stacks, those of the places).
[clinic start generated code]*/

static PyObject *
_profile_copy_stacks_impl(PyObject *module, Py_buffer *nodes,
                          Py_ssize_t num_frames, Py_buffer *stacks,
                          Py_buffer *places, Py_buffer *hidden_frames,
                          Py_buffer *hidden_nodes)
/*[clinic end generated code: output=83e77979a30878f0 input=8528966cded21a90]*/
{
    struct packed_tables t = {.num_frames = num_frames};
    struct node_list stack_list, place_list;
    if (_PyProfile_CheckCount("num_frames", num_frames) < 0
        || _PyProfile_CheckNodes(&t, nodes) < 0
        || take_nodes(&t, stacks, &stack_list) < 0
        || take_nodes(&t, places, &place_list) < 0
        || (hidden_frames->len != 0
            && !has_bytes(hidden_frames, "frames", num_frames, 1))
        || (hidden_nodes->len != 0
            && !has_bytes(hidden_nodes, "nodes", t.num_nodes, 1)))
    {
        return NULL;
    }
    return _PyProfile_CopyStacks(
        &t, &stack_list, &place_list,
        hidden_frames->len != 0 ? hidden_frames->buf : NULL,
        hidden_nodes->len != 0 ? hidden_nodes->buf : NULL);
}

PyMethodDef _PyProfile_StackMethods[] = {
    _PROFILE_CALL_PATHS_METHODDEF
    _PROFILE_CHECK_TABLES_METHODDEF
    _PROFILE_COPY_STACKS_METHODDEF
    _PROFILE_FIND_CALLS_METHODDEF
    _PROFILE_INNERMOST_METHODDEF
    _PROFILE_SUM_BY_KEY_METHODDEF
    _PROFILE_SUM_STACKS_METHODDEF
    _PROFILE_SUM_SUBTREES_METHODDEF
    {NULL, NULL}
};
