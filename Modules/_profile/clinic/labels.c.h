/*[clinic input]
preserve
[clinic start generated code]*/

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
/*[clinic end generated code: output=5ba2c656935cc499 input=a9049054013a1b77]*/
