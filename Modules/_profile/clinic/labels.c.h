/*[clinic input]
preserve
[clinic start generated code]*/

#include "pycore_long.h"          // _PyLong_UnsignedLongLong_Converter()
#include "pycore_modsupport.h"    // _PyArg_BadArgument()

PyDoc_STRVAR(_profile_enter_labels__doc__,
"enter_labels($module, changes, /)\n"
"--\n"
"\n"
"Change the labels of this context; return what exit_labels() wants.");

#define _PROFILE_ENTER_LABELS_METHODDEF    \
    {"enter_labels", (PyCFunction)_profile_enter_labels, METH_O, _profile_enter_labels__doc__},

static PyObject *
_profile_enter_labels_impl(PyObject *module, PyObject *changes);

static PyObject *
_profile_enter_labels(PyObject *module, PyObject *arg)
{
    PyObject *return_value = NULL;
    PyObject *changes;

    if (!PyDict_Check(arg)) {
        _PyArg_BadArgument("enter_labels", "argument", "dict", arg);
        goto exit;
    }
    changes = arg;
    return_value = _profile_enter_labels_impl(module, changes);

exit:
    return return_value;
}

PyDoc_STRVAR(_profile_exit_labels__doc__,
"exit_labels($module, token, /)\n"
"--\n"
"\n"
"Bring the labels back that enter_labels() changed.");

#define _PROFILE_EXIT_LABELS_METHODDEF    \
    {"exit_labels", (PyCFunction)_profile_exit_labels, METH_O, _profile_exit_labels__doc__},

PyDoc_STRVAR(_profile_labels__doc__,
"labels($module, /)\n"
"--\n"
"\n"
"Return the labels of this context as a dict.");

#define _PROFILE_LABELS_METHODDEF    \
    {"labels", (PyCFunction)_profile_labels, METH_NOARGS, _profile_labels__doc__},

static PyObject *
_profile_labels_impl(PyObject *module);

static PyObject *
_profile_labels(PyObject *module, PyObject *Py_UNUSED(ignored))
{
    return _profile_labels_impl(module);
}

PyDoc_STRVAR(_profile_begin_request__doc__,
"begin_request($module, labels, begin_ns, task, /)\n"
"--\n"
"\n"
"Return what stands for a request under way, as long as it is referred to.");

#define _PROFILE_BEGIN_REQUEST_METHODDEF    \
    {"begin_request", _PyCFunction_CAST(_profile_begin_request), METH_FASTCALL, _profile_begin_request__doc__},

static PyObject *
_profile_begin_request_impl(PyObject *module, PyObject *labels,
                            unsigned long long begin_ns, PyObject *task);

static PyObject *
_profile_begin_request(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    PyObject *return_value = NULL;
    PyObject *labels;
    unsigned long long begin_ns;
    PyObject *task;

    if (!_PyArg_CheckPositional("begin_request", nargs, 3, 3)) {
        goto exit;
    }
    if (!PyDict_Check(args[0])) {
        _PyArg_BadArgument("begin_request", "argument 1", "dict", args[0]);
        goto exit;
    }
    labels = args[0];
    if (!_PyLong_UnsignedLongLong_Converter(args[1], &begin_ns)) {
        goto exit;
    }
    task = args[2];
    return_value = _profile_begin_request_impl(module, labels, begin_ns, task);

exit:
    return return_value;
}
/*[clinic end generated code: output=507964f83aac0036 input=a9049054013a1b77]*/
