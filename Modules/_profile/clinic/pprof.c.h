/*[clinic input]
preserve
[clinic start generated code]*/

#include "pycore_abstract.h"      // _PyNumber_Index()
#include "pycore_long.h"          // _PyLong_Size_t_Converter()
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

PyDoc_STRVAR(_profile_encode_pprof__doc__,
"encode_pprof($module, value_types, columns, weights, measures,\n"
"             functions, labels, threads, states, frames, nodes,\n"
"             samples, header, opnames=<unrepresentable>, /)\n"
"--\n"
"\n"
"Return a profile as an encoded pprof message.\n"
"\n"
"  value_types\n"
"    Pairs of a type and its unit.\n"
"  columns\n"
"    For each of these, which weight of a sample it is.\n"
"  weights\n"
"    How many each sample has.\n"
"  measures\n"
"    How many of these, the first, weigh: a sample that has none of them is\n"
"    at a place, but at no instruction.\n"
"  functions\n"
"    (name, place, first line, is it Python)\n"
"  header\n"
"    (binary, time, duration, period type, period, comments, default type,\n"
"    URL of the documentation)\n"
"  opnames\n"
"    Names of opcodes; without it instructions are left out.");

#define _PROFILE_ENCODE_PPROF_METHODDEF    \
    {"encode_pprof", _PyCFunction_CAST(_profile_encode_pprof), METH_FASTCALL, _profile_encode_pprof__doc__},

static PyObject *
_profile_encode_pprof_impl(PyObject *module, PyObject *value_types,
                           PyObject *columns, Py_ssize_t weights,
                           Py_ssize_t measures, PyObject *functions,
                           PyObject *labels, PyObject *threads,
                           PyObject *states, Py_buffer *frames,
                           Py_buffer *nodes, Py_buffer *samples,
                           PyObject *header, PyObject *opnames);

static PyObject *
_profile_encode_pprof(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    PyObject *return_value = NULL;
    PyObject *value_types;
    PyObject *columns;
    Py_ssize_t weights;
    Py_ssize_t measures;
    PyObject *functions;
    PyObject *labels;
    PyObject *threads;
    PyObject *states;
    Py_buffer frames = {NULL, NULL};
    Py_buffer nodes = {NULL, NULL};
    Py_buffer samples = {NULL, NULL};
    PyObject *header;
    PyObject *opnames = NULL;

    if (!_PyArg_CheckPositional("encode_pprof", nargs, 12, 13)) {
        goto exit;
    }
    if (!PyList_Check(args[0])) {
        _PyArg_BadArgument("encode_pprof", "argument 1", "list", args[0]);
        goto exit;
    }
    value_types = args[0];
    if (!PyList_Check(args[1])) {
        _PyArg_BadArgument("encode_pprof", "argument 2", "list", args[1]);
        goto exit;
    }
    columns = args[1];
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
        measures = ival;
    }
    if (!PyList_Check(args[4])) {
        _PyArg_BadArgument("encode_pprof", "argument 5", "list", args[4]);
        goto exit;
    }
    functions = args[4];
    if (!PyList_Check(args[5])) {
        _PyArg_BadArgument("encode_pprof", "argument 6", "list", args[5]);
        goto exit;
    }
    labels = args[5];
    if (!PyList_Check(args[6])) {
        _PyArg_BadArgument("encode_pprof", "argument 7", "list", args[6]);
        goto exit;
    }
    threads = args[6];
    if (!PyList_Check(args[7])) {
        _PyArg_BadArgument("encode_pprof", "argument 8", "list", args[7]);
        goto exit;
    }
    states = args[7];
    if (PyObject_GetBuffer(args[8], &frames, PyBUF_SIMPLE) != 0) {
        goto exit;
    }
    if (PyObject_GetBuffer(args[9], &nodes, PyBUF_SIMPLE) != 0) {
        goto exit;
    }
    if (PyObject_GetBuffer(args[10], &samples, PyBUF_SIMPLE) != 0) {
        goto exit;
    }
    if (!PyTuple_Check(args[11])) {
        _PyArg_BadArgument("encode_pprof", "argument 12", "tuple", args[11]);
        goto exit;
    }
    header = args[11];
    if (nargs < 13) {
        goto skip_optional;
    }
    if (!PyList_Check(args[12])) {
        _PyArg_BadArgument("encode_pprof", "argument 13", "list", args[12]);
        goto exit;
    }
    opnames = args[12];
skip_optional:
    return_value = _profile_encode_pprof_impl(module, value_types, columns, weights, measures, functions, labels, threads, states, &frames, &nodes, &samples, header, opnames);

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

PyDoc_STRVAR(_profile_parse_pprof__doc__,
"parse_pprof($module, read, limit, /)\n"
"--\n"
"\n"
"Take an encoded pprof message apart.\n"
"\n"
"  read\n"
"    Returns some bytes more of the message, none at its end.\n"
"  limit\n"
"    How many bytes of memory may be used.\n"
"\n"
"Columns of the result are of 64 bits.  What one part says of others has not\n"
"been looked at.");

#define _PROFILE_PARSE_PPROF_METHODDEF    \
    {"parse_pprof", _PyCFunction_CAST(_profile_parse_pprof), METH_FASTCALL, _profile_parse_pprof__doc__},

static PyObject *
_profile_parse_pprof_impl(PyObject *module, PyObject *read, size_t limit);

static PyObject *
_profile_parse_pprof(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    PyObject *return_value = NULL;
    PyObject *read;
    size_t limit;

    if (!_PyArg_CheckPositional("parse_pprof", nargs, 2, 2)) {
        goto exit;
    }
    read = args[0];
    if (!_PyLong_Size_t_Converter(args[1], &limit)) {
        goto exit;
    }
    return_value = _profile_parse_pprof_impl(module, read, limit);

exit:
    return return_value;
}

PyDoc_STRVAR(_profile_build_pprof__doc__,
"build_pprof($module, functions, is_python, locations, natives, lines,\n"
"            stacks, about, holders, samples, num_values, columns,\n"
"            limit, left, /)\n"
"--\n"
"\n"
"Put the parts of a message together as (frames, nodes, samples).\n"
"\n"
"  functions\n"
"    Their numbers.\n"
"  is_python\n"
"    A byte per function.\n"
"  natives\n"
"    Per location, the function if it has no line.\n"
"  about\n"
"    Per label set, what it says.\n"
"  holders\n"
"    (function, line, callee or -1)\n"
"  columns\n"
"    Per weight, its value and a factor; 0: there is none.\n"
"  left\n"
"    How many bytes of memory may still be used.");

#define _PROFILE_BUILD_PPROF_METHODDEF    \
    {"build_pprof", _PyCFunction_CAST(_profile_build_pprof), METH_FASTCALL, _profile_build_pprof__doc__},

static PyObject *
_profile_build_pprof_impl(PyObject *module, Py_buffer *functions,
                          Py_buffer *is_python, Py_buffer *locations,
                          Py_buffer *natives, Py_buffer *lines,
                          Py_buffer *stacks, Py_buffer *about,
                          Py_buffer *holders, Py_buffer *samples,
                          Py_ssize_t num_values, Py_buffer *columns,
                          size_t limit, size_t left);

static PyObject *
_profile_build_pprof(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    PyObject *return_value = NULL;
    Py_buffer functions = {NULL, NULL};
    Py_buffer is_python = {NULL, NULL};
    Py_buffer locations = {NULL, NULL};
    Py_buffer natives = {NULL, NULL};
    Py_buffer lines = {NULL, NULL};
    Py_buffer stacks = {NULL, NULL};
    Py_buffer about = {NULL, NULL};
    Py_buffer holders = {NULL, NULL};
    Py_buffer samples = {NULL, NULL};
    Py_ssize_t num_values;
    Py_buffer columns = {NULL, NULL};
    size_t limit;
    size_t left;

    if (!_PyArg_CheckPositional("build_pprof", nargs, 13, 13)) {
        goto exit;
    }
    if (PyObject_GetBuffer(args[0], &functions, PyBUF_SIMPLE) != 0) {
        goto exit;
    }
    if (PyObject_GetBuffer(args[1], &is_python, PyBUF_SIMPLE) != 0) {
        goto exit;
    }
    if (PyObject_GetBuffer(args[2], &locations, PyBUF_SIMPLE) != 0) {
        goto exit;
    }
    if (PyObject_GetBuffer(args[3], &natives, PyBUF_SIMPLE) != 0) {
        goto exit;
    }
    if (PyObject_GetBuffer(args[4], &lines, PyBUF_SIMPLE) != 0) {
        goto exit;
    }
    if (PyObject_GetBuffer(args[5], &stacks, PyBUF_SIMPLE) != 0) {
        goto exit;
    }
    if (PyObject_GetBuffer(args[6], &about, PyBUF_SIMPLE) != 0) {
        goto exit;
    }
    if (PyObject_GetBuffer(args[7], &holders, PyBUF_SIMPLE) != 0) {
        goto exit;
    }
    if (PyObject_GetBuffer(args[8], &samples, PyBUF_SIMPLE) != 0) {
        goto exit;
    }
    {
        Py_ssize_t ival = -1;
        PyObject *iobj = _PyNumber_Index(args[9]);
        if (iobj != NULL) {
            ival = PyLong_AsSsize_t(iobj);
            Py_DECREF(iobj);
        }
        if (ival == -1 && PyErr_Occurred()) {
            goto exit;
        }
        num_values = ival;
    }
    if (PyObject_GetBuffer(args[10], &columns, PyBUF_SIMPLE) != 0) {
        goto exit;
    }
    if (!_PyLong_Size_t_Converter(args[11], &limit)) {
        goto exit;
    }
    if (!_PyLong_Size_t_Converter(args[12], &left)) {
        goto exit;
    }
    return_value = _profile_build_pprof_impl(module, &functions, &is_python, &locations, &natives, &lines, &stacks, &about, &holders, &samples, num_values, &columns, limit, left);

exit:
    /* Cleanup for functions */
    if (functions.obj) {
       PyBuffer_Release(&functions);
    }
    /* Cleanup for is_python */
    if (is_python.obj) {
       PyBuffer_Release(&is_python);
    }
    /* Cleanup for locations */
    if (locations.obj) {
       PyBuffer_Release(&locations);
    }
    /* Cleanup for natives */
    if (natives.obj) {
       PyBuffer_Release(&natives);
    }
    /* Cleanup for lines */
    if (lines.obj) {
       PyBuffer_Release(&lines);
    }
    /* Cleanup for stacks */
    if (stacks.obj) {
       PyBuffer_Release(&stacks);
    }
    /* Cleanup for about */
    if (about.obj) {
       PyBuffer_Release(&about);
    }
    /* Cleanup for holders */
    if (holders.obj) {
       PyBuffer_Release(&holders);
    }
    /* Cleanup for samples */
    if (samples.obj) {
       PyBuffer_Release(&samples);
    }
    /* Cleanup for columns */
    if (columns.obj) {
       PyBuffer_Release(&columns);
    }

    return return_value;
}
/*[clinic end generated code: output=b5f8dfa99b0f7392 input=a9049054013a1b77]*/
