/*[clinic input]
preserve
[clinic start generated code]*/

#include "pycore_abstract.h"      // _PyNumber_Index()
#include "pycore_modsupport.h"    // _PyArg_CheckPositional()

PyDoc_STRVAR(_profile_check_tables__doc__,
"check_tables($module, frames, nodes, samples, weights, functions,\n"
"             labels, threads, states, /)\n"
"--\n"
"\n"
"Raise ValueError unless every index in packed tables names an existing row.\n"
"\n"
"  weights\n"
"    How many each sample has.");

#define _PROFILE_CHECK_TABLES_METHODDEF    \
    {"check_tables", _PyCFunction_CAST(_profile_check_tables), METH_FASTCALL, _profile_check_tables__doc__},

static PyObject *
_profile_check_tables_impl(PyObject *module, Py_buffer *frames,
                           Py_buffer *nodes, Py_buffer *samples,
                           Py_ssize_t weights, Py_ssize_t functions,
                           Py_ssize_t labels, Py_ssize_t threads,
                           Py_ssize_t states);

static PyObject *
_profile_check_tables(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    PyObject *return_value = NULL;
    Py_buffer frames = {NULL, NULL};
    Py_buffer nodes = {NULL, NULL};
    Py_buffer samples = {NULL, NULL};
    Py_ssize_t weights;
    Py_ssize_t functions;
    Py_ssize_t labels;
    Py_ssize_t threads;
    Py_ssize_t states;

    if (!_PyArg_CheckPositional("check_tables", nargs, 8, 8)) {
        goto exit;
    }
    if (PyObject_GetBuffer(args[0], &frames, PyBUF_SIMPLE) != 0) {
        goto exit;
    }
    if (PyObject_GetBuffer(args[1], &nodes, PyBUF_SIMPLE) != 0) {
        goto exit;
    }
    if (PyObject_GetBuffer(args[2], &samples, PyBUF_SIMPLE) != 0) {
        goto exit;
    }
    {
        Py_ssize_t ival = -1;
        PyObject *iobj = _PyNumber_Index(args[3]);
        if (iobj != NULL) {
            ival = PyLong_AsSsize_t(iobj);
            Py_DECREF(iobj);
        }
        if (ival == -1 && PyErr_Occurred()) {
            goto exit;
        }
        weights = ival;
    }
    {
        Py_ssize_t ival = -1;
        PyObject *iobj = _PyNumber_Index(args[4]);
        if (iobj != NULL) {
            ival = PyLong_AsSsize_t(iobj);
            Py_DECREF(iobj);
        }
        if (ival == -1 && PyErr_Occurred()) {
            goto exit;
        }
        functions = ival;
    }
    {
        Py_ssize_t ival = -1;
        PyObject *iobj = _PyNumber_Index(args[5]);
        if (iobj != NULL) {
            ival = PyLong_AsSsize_t(iobj);
            Py_DECREF(iobj);
        }
        if (ival == -1 && PyErr_Occurred()) {
            goto exit;
        }
        labels = ival;
    }
    {
        Py_ssize_t ival = -1;
        PyObject *iobj = _PyNumber_Index(args[6]);
        if (iobj != NULL) {
            ival = PyLong_AsSsize_t(iobj);
            Py_DECREF(iobj);
        }
        if (ival == -1 && PyErr_Occurred()) {
            goto exit;
        }
        threads = ival;
    }
    {
        Py_ssize_t ival = -1;
        PyObject *iobj = _PyNumber_Index(args[7]);
        if (iobj != NULL) {
            ival = PyLong_AsSsize_t(iobj);
            Py_DECREF(iobj);
        }
        if (ival == -1 && PyErr_Occurred()) {
            goto exit;
        }
        states = ival;
    }
    return_value = _profile_check_tables_impl(module, &frames, &nodes, &samples, weights, functions, labels, threads, states);

exit:
    /* Cleanup for frames */
    if (frames.obj) {
       PyBuffer_Release(&frames);
    }
    /* Cleanup for nodes */
    if (nodes.obj) {
       PyBuffer_Release(&nodes);
    }
    /* Cleanup for samples */
    if (samples.obj) {
       PyBuffer_Release(&samples);
    }

    return return_value;
}

PyDoc_STRVAR(_profile_sum_stacks__doc__,
"sum_stacks($module, nodes, samples, weights, keys, num_keys, /)\n"
"--\n"
"\n"
"Return (which keys are on stacks, own sums, sums with callees).\n"
"\n"
"  keys\n"
"    Per frame a number below num_keys, of 32 bits.");

#define _PROFILE_SUM_STACKS_METHODDEF    \
    {"sum_stacks", _PyCFunction_CAST(_profile_sum_stacks), METH_FASTCALL, _profile_sum_stacks__doc__},

static PyObject *
_profile_sum_stacks_impl(PyObject *module, Py_buffer *nodes,
                         Py_buffer *samples, Py_ssize_t weights,
                         Py_buffer *keys, Py_ssize_t num_keys);

static PyObject *
_profile_sum_stacks(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    PyObject *return_value = NULL;
    Py_buffer nodes = {NULL, NULL};
    Py_buffer samples = {NULL, NULL};
    Py_ssize_t weights;
    Py_buffer keys = {NULL, NULL};
    Py_ssize_t num_keys;

    if (!_PyArg_CheckPositional("sum_stacks", nargs, 5, 5)) {
        goto exit;
    }
    if (PyObject_GetBuffer(args[0], &nodes, PyBUF_SIMPLE) != 0) {
        goto exit;
    }
    if (PyObject_GetBuffer(args[1], &samples, PyBUF_SIMPLE) != 0) {
        goto exit;
    }
    {
        Py_ssize_t ival = -1;
        PyObject *iobj = _PyNumber_Index(args[2]);
        if (iobj != NULL) {
            ival = PyLong_AsSsize_t(iobj);
            Py_DECREF(iobj);
        }
        if (ival == -1 && PyErr_Occurred()) {
            goto exit;
        }
        weights = ival;
    }
    if (PyObject_GetBuffer(args[3], &keys, PyBUF_SIMPLE) != 0) {
        goto exit;
    }
    {
        Py_ssize_t ival = -1;
        PyObject *iobj = _PyNumber_Index(args[4]);
        if (iobj != NULL) {
            ival = PyLong_AsSsize_t(iobj);
            Py_DECREF(iobj);
        }
        if (ival == -1 && PyErr_Occurred()) {
            goto exit;
        }
        num_keys = ival;
    }
    return_value = _profile_sum_stacks_impl(module, &nodes, &samples, weights, &keys, num_keys);

exit:
    /* Cleanup for nodes */
    if (nodes.obj) {
       PyBuffer_Release(&nodes);
    }
    /* Cleanup for samples */
    if (samples.obj) {
       PyBuffer_Release(&samples);
    }
    /* Cleanup for keys */
    if (keys.obj) {
       PyBuffer_Release(&keys);
    }

    return return_value;
}

PyDoc_STRVAR(_profile_innermost__doc__,
"innermost($module, nodes, wanted, /)\n"
"--\n"
"\n"
"Return per node the innermost frame that is wanted and what that calls.\n"
"\n"
"  wanted\n"
"    A byte per frame.\n"
"\n"
"-1: there is none.");

#define _PROFILE_INNERMOST_METHODDEF    \
    {"innermost", _PyCFunction_CAST(_profile_innermost), METH_FASTCALL, _profile_innermost__doc__},

static PyObject *
_profile_innermost_impl(PyObject *module, Py_buffer *nodes,
                        Py_buffer *wanted);

static PyObject *
_profile_innermost(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    PyObject *return_value = NULL;
    Py_buffer nodes = {NULL, NULL};
    Py_buffer wanted = {NULL, NULL};

    if (!_PyArg_CheckPositional("innermost", nargs, 2, 2)) {
        goto exit;
    }
    if (PyObject_GetBuffer(args[0], &nodes, PyBUF_SIMPLE) != 0) {
        goto exit;
    }
    if (PyObject_GetBuffer(args[1], &wanted, PyBUF_SIMPLE) != 0) {
        goto exit;
    }
    return_value = _profile_innermost_impl(module, &nodes, &wanted);

exit:
    /* Cleanup for nodes */
    if (nodes.obj) {
       PyBuffer_Release(&nodes);
    }
    /* Cleanup for wanted */
    if (wanted.obj) {
       PyBuffer_Release(&wanted);
    }

    return return_value;
}

PyDoc_STRVAR(_profile_call_paths__doc__,
"call_paths($module, nodes, samples, weights, places, num_places, /)\n"
"--\n"
"\n"
"Return the tree of the stacks of samples in preorder, siblings by place.\n"
"\n"
"  places\n"
"    Per frame a number below num_places, of 32 bits.\n"
"\n"
"The result is (parents, places, new node of each node).");

#define _PROFILE_CALL_PATHS_METHODDEF    \
    {"call_paths", _PyCFunction_CAST(_profile_call_paths), METH_FASTCALL, _profile_call_paths__doc__},

static PyObject *
_profile_call_paths_impl(PyObject *module, Py_buffer *nodes,
                         Py_buffer *samples, Py_ssize_t weights,
                         Py_buffer *places, Py_ssize_t num_places);

static PyObject *
_profile_call_paths(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    PyObject *return_value = NULL;
    Py_buffer nodes = {NULL, NULL};
    Py_buffer samples = {NULL, NULL};
    Py_ssize_t weights;
    Py_buffer places = {NULL, NULL};
    Py_ssize_t num_places;

    if (!_PyArg_CheckPositional("call_paths", nargs, 5, 5)) {
        goto exit;
    }
    if (PyObject_GetBuffer(args[0], &nodes, PyBUF_SIMPLE) != 0) {
        goto exit;
    }
    if (PyObject_GetBuffer(args[1], &samples, PyBUF_SIMPLE) != 0) {
        goto exit;
    }
    {
        Py_ssize_t ival = -1;
        PyObject *iobj = _PyNumber_Index(args[2]);
        if (iobj != NULL) {
            ival = PyLong_AsSsize_t(iobj);
            Py_DECREF(iobj);
        }
        if (ival == -1 && PyErr_Occurred()) {
            goto exit;
        }
        weights = ival;
    }
    if (PyObject_GetBuffer(args[3], &places, PyBUF_SIMPLE) != 0) {
        goto exit;
    }
    {
        Py_ssize_t ival = -1;
        PyObject *iobj = _PyNumber_Index(args[4]);
        if (iobj != NULL) {
            ival = PyLong_AsSsize_t(iobj);
            Py_DECREF(iobj);
        }
        if (ival == -1 && PyErr_Occurred()) {
            goto exit;
        }
        num_places = ival;
    }
    return_value = _profile_call_paths_impl(module, &nodes, &samples, weights, &places, num_places);

exit:
    /* Cleanup for nodes */
    if (nodes.obj) {
       PyBuffer_Release(&nodes);
    }
    /* Cleanup for samples */
    if (samples.obj) {
       PyBuffer_Release(&samples);
    }
    /* Cleanup for places */
    if (places.obj) {
       PyBuffer_Release(&places);
    }

    return return_value;
}

PyDoc_STRVAR(_profile_find_calls__doc__,
"find_calls($module, parents, places, functions, num_functions,\n"
"           by_place, /)\n"
"--\n"
"\n"
"Return the (caller, function) of each call, and which ones nodes are.\n"
"\n"
"  places\n"
"    With these, what call_paths() returned.\n"
"  functions\n"
"    Per place a number below num_functions, of 32 bits.\n"
"  by_place\n"
"    A caller is a place, not a function.");

#define _PROFILE_FIND_CALLS_METHODDEF    \
    {"find_calls", _PyCFunction_CAST(_profile_find_calls), METH_FASTCALL, _profile_find_calls__doc__},

static PyObject *
_profile_find_calls_impl(PyObject *module, Py_buffer *parents,
                         Py_buffer *places, Py_buffer *functions,
                         Py_ssize_t num_functions, int by_place);

static PyObject *
_profile_find_calls(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    PyObject *return_value = NULL;
    Py_buffer parents = {NULL, NULL};
    Py_buffer places = {NULL, NULL};
    Py_buffer functions = {NULL, NULL};
    Py_ssize_t num_functions;
    int by_place;

    if (!_PyArg_CheckPositional("find_calls", nargs, 5, 5)) {
        goto exit;
    }
    if (PyObject_GetBuffer(args[0], &parents, PyBUF_SIMPLE) != 0) {
        goto exit;
    }
    if (PyObject_GetBuffer(args[1], &places, PyBUF_SIMPLE) != 0) {
        goto exit;
    }
    if (PyObject_GetBuffer(args[2], &functions, PyBUF_SIMPLE) != 0) {
        goto exit;
    }
    {
        Py_ssize_t ival = -1;
        PyObject *iobj = _PyNumber_Index(args[3]);
        if (iobj != NULL) {
            ival = PyLong_AsSsize_t(iobj);
            Py_DECREF(iobj);
        }
        if (ival == -1 && PyErr_Occurred()) {
            goto exit;
        }
        num_functions = ival;
    }
    by_place = PyObject_IsTrue(args[4]);
    if (by_place < 0) {
        goto exit;
    }
    return_value = _profile_find_calls_impl(module, &parents, &places, &functions, num_functions, by_place);

exit:
    /* Cleanup for parents */
    if (parents.obj) {
       PyBuffer_Release(&parents);
    }
    /* Cleanup for places */
    if (places.obj) {
       PyBuffer_Release(&places);
    }
    /* Cleanup for functions */
    if (functions.obj) {
       PyBuffer_Release(&functions);
    }

    return return_value;
}

PyDoc_STRVAR(_profile_sum_subtrees__doc__,
"sum_subtrees($module, parents, values, /)\n"
"--\n"
"\n"
"Return the values, each with those of all nodes below.\n"
"\n"
"  values\n"
"    One of 64 bits for each node.");

#define _PROFILE_SUM_SUBTREES_METHODDEF    \
    {"sum_subtrees", _PyCFunction_CAST(_profile_sum_subtrees), METH_FASTCALL, _profile_sum_subtrees__doc__},

static PyObject *
_profile_sum_subtrees_impl(PyObject *module, Py_buffer *parents,
                           Py_buffer *values);

static PyObject *
_profile_sum_subtrees(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    PyObject *return_value = NULL;
    Py_buffer parents = {NULL, NULL};
    Py_buffer values = {NULL, NULL};

    if (!_PyArg_CheckPositional("sum_subtrees", nargs, 2, 2)) {
        goto exit;
    }
    if (PyObject_GetBuffer(args[0], &parents, PyBUF_SIMPLE) != 0) {
        goto exit;
    }
    if (PyObject_GetBuffer(args[1], &values, PyBUF_SIMPLE) != 0) {
        goto exit;
    }
    return_value = _profile_sum_subtrees_impl(module, &parents, &values);

exit:
    /* Cleanup for parents */
    if (parents.obj) {
       PyBuffer_Release(&parents);
    }
    /* Cleanup for values */
    if (values.obj) {
       PyBuffer_Release(&values);
    }

    return return_value;
}

PyDoc_STRVAR(_profile_sum_by_key__doc__,
"sum_by_key($module, keys, values, num_keys, /)\n"
"--\n"
"\n"
"Return the sum of the values of each key.\n"
"\n"
"  keys\n"
"    Numbers below num_keys, of 32 bits; negative: left out.\n"
"  values\n"
"    One of 64 bits for each.");

#define _PROFILE_SUM_BY_KEY_METHODDEF    \
    {"sum_by_key", _PyCFunction_CAST(_profile_sum_by_key), METH_FASTCALL, _profile_sum_by_key__doc__},

static PyObject *
_profile_sum_by_key_impl(PyObject *module, Py_buffer *keys,
                         Py_buffer *values, Py_ssize_t num_keys);

static PyObject *
_profile_sum_by_key(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    PyObject *return_value = NULL;
    Py_buffer keys = {NULL, NULL};
    Py_buffer values = {NULL, NULL};
    Py_ssize_t num_keys;

    if (!_PyArg_CheckPositional("sum_by_key", nargs, 3, 3)) {
        goto exit;
    }
    if (PyObject_GetBuffer(args[0], &keys, PyBUF_SIMPLE) != 0) {
        goto exit;
    }
    if (PyObject_GetBuffer(args[1], &values, PyBUF_SIMPLE) != 0) {
        goto exit;
    }
    {
        Py_ssize_t ival = -1;
        PyObject *iobj = _PyNumber_Index(args[2]);
        if (iobj != NULL) {
            ival = PyLong_AsSsize_t(iobj);
            Py_DECREF(iobj);
        }
        if (ival == -1 && PyErr_Occurred()) {
            goto exit;
        }
        num_keys = ival;
    }
    return_value = _profile_sum_by_key_impl(module, &keys, &values, num_keys);

exit:
    /* Cleanup for keys */
    if (keys.obj) {
       PyBuffer_Release(&keys);
    }
    /* Cleanup for values */
    if (values.obj) {
       PyBuffer_Release(&values);
    }

    return return_value;
}

PyDoc_STRVAR(_profile_copy_stacks__doc__,
"copy_stacks($module, nodes, num_frames, stacks, places, hidden_frames,\n"
"            hidden_nodes, /)\n"
"--\n"
"\n"
"Copy stacks, and no more nodes and frames than they have.\n"
"\n"
"  stacks\n"
"    The nodes, of 32 bits, whose stacks are wanted.\n"
"  places\n"
"    The same, of stacks of which nothing is hidden.\n"
"  hidden_frames\n"
"    A byte per frame: whether it is to be left out; or none.\n"
"  hidden_nodes\n"
"    The same per node.\n"
"\n"
"The result is (nodes, old numbers of their frames, numbers of the wanted\n"
"stacks, those of the places).");

#define _PROFILE_COPY_STACKS_METHODDEF    \
    {"copy_stacks", _PyCFunction_CAST(_profile_copy_stacks), METH_FASTCALL, _profile_copy_stacks__doc__},

static PyObject *
_profile_copy_stacks_impl(PyObject *module, Py_buffer *nodes,
                          Py_ssize_t num_frames, Py_buffer *stacks,
                          Py_buffer *places, Py_buffer *hidden_frames,
                          Py_buffer *hidden_nodes);

static PyObject *
_profile_copy_stacks(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    PyObject *return_value = NULL;
    Py_buffer nodes = {NULL, NULL};
    Py_ssize_t num_frames;
    Py_buffer stacks = {NULL, NULL};
    Py_buffer places = {NULL, NULL};
    Py_buffer hidden_frames = {NULL, NULL};
    Py_buffer hidden_nodes = {NULL, NULL};

    if (!_PyArg_CheckPositional("copy_stacks", nargs, 6, 6)) {
        goto exit;
    }
    if (PyObject_GetBuffer(args[0], &nodes, PyBUF_SIMPLE) != 0) {
        goto exit;
    }
    {
        Py_ssize_t ival = -1;
        PyObject *iobj = _PyNumber_Index(args[1]);
        if (iobj != NULL) {
            ival = PyLong_AsSsize_t(iobj);
            Py_DECREF(iobj);
        }
        if (ival == -1 && PyErr_Occurred()) {
            goto exit;
        }
        num_frames = ival;
    }
    if (PyObject_GetBuffer(args[2], &stacks, PyBUF_SIMPLE) != 0) {
        goto exit;
    }
    if (PyObject_GetBuffer(args[3], &places, PyBUF_SIMPLE) != 0) {
        goto exit;
    }
    if (PyObject_GetBuffer(args[4], &hidden_frames, PyBUF_SIMPLE) != 0) {
        goto exit;
    }
    if (PyObject_GetBuffer(args[5], &hidden_nodes, PyBUF_SIMPLE) != 0) {
        goto exit;
    }
    return_value = _profile_copy_stacks_impl(module, &nodes, num_frames, &stacks, &places, &hidden_frames, &hidden_nodes);

exit:
    /* Cleanup for nodes */
    if (nodes.obj) {
       PyBuffer_Release(&nodes);
    }
    /* Cleanup for stacks */
    if (stacks.obj) {
       PyBuffer_Release(&stacks);
    }
    /* Cleanup for places */
    if (places.obj) {
       PyBuffer_Release(&places);
    }
    /* Cleanup for hidden_frames */
    if (hidden_frames.obj) {
       PyBuffer_Release(&hidden_frames);
    }
    /* Cleanup for hidden_nodes */
    if (hidden_nodes.obj) {
       PyBuffer_Release(&hidden_nodes);
    }

    return return_value;
}
/*[clinic end generated code: output=1231ba73ddcf0b94 input=a9049054013a1b77]*/
