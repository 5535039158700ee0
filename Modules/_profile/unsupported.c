/* The _profile module where there is no profiler: labels hold as anywhere,
   files are read and written, nobody samples, and who wants to gets an error
   that says what is missing.

   It has what can be called without a session or a subscription, since there
   never is one. */

#ifndef Py_BUILD_CORE_BUILTIN
#  define Py_BUILD_CORE_MODULE 1
#endif

#include "Python.h"
#include "cpython/sampling.h"

#include "pycore_sampling.h"          // _PySampling_MISSING

#include "_profile.h"

/* --- Who wants samples. */

/* The arguments do not matter. */
static PyObject *
refuse(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(args),
       PyObject *Py_UNUSED(kwargs))
{
    PyErr_SetString(PyExc_NotImplementedError, _PySampling_MISSING);
    return NULL;
}

static PyObject *
has_no_session(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(args),
               PyObject *Py_UNUSED(kwargs))
{
    PyErr_SetString(PyExc_RuntimeError, "no sampling session is running: "
                    _PySampling_MISSING);
    return NULL;
}

static PyObject *
no(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(args))
{
    Py_RETURN_FALSE;
}

static PyObject *
ignore(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(args))
{
    Py_RETURN_NONE;
}

static PyObject *
counters(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    static const char *const names[] = {
#define X(name) #name,
        _PySampling_COUNTERS(X)
#undef X
    };
    PyObject *zero = Py_GetConstantBorrowed(Py_CONSTANT_ZERO);
    PyObject *dict = PyDict_New();
    for (size_t i = 0; dict != NULL && i < Py_ARRAY_LENGTH(names); i++) {
        if (PyDict_SetItemString(dict, names[i], zero) < 0) {
            Py_CLEAR(dict);
        }
    }
    return dict;
}


/* --- The C API: its first call fails, and nothing else can be called. */

static PySampling_Subscription *
capi_subscribe(const PySampling_Options *Py_UNUSED(options))
{
    PyErr_SetString(PyExc_NotImplementedError, _PySampling_MISSING);
    return NULL;
}

static const PySampling_API capi = {
    .version = 2,
    .size = sizeof(PySampling_API),
    .subscribe = capi_subscribe,
};


/* --- The module. */

PyDoc_STRVAR(module_doc,
"The core of the sampling profiler, which is left out of this build.\n\n"
"Use the profile_sampling package.");

#define WITH_KEYWORDS(FUNCTION) \
    _PyCFunction_CAST(FUNCTION), METH_VARARGS | METH_KEYWORDS

static PyMethodDef module_methods[] = {
    {"start", WITH_KEYWORDS(refuse)},
    {"subscribe", WITH_KEYWORDS(refuse)},
    {"stop", WITH_KEYWORDS(has_no_session)},
    {"snapshot", WITH_KEYWORDS(has_no_session)},
    {"begin_block", WITH_KEYWORDS(refuse)},
    {"send_request", WITH_KEYWORDS(refuse)},
    {"enter_region", ignore, METH_NOARGS},
    {"leave_region", ignore, METH_VARARGS},
    {"running", no, METH_NOARGS},
    {"sample", no, METH_VARARGS},
    {"stats", counters, METH_NOARGS},
    {NULL, NULL}
};

static int
module_exec(PyObject *module)
{
    if (PyModule_AddFunctions(module, _PyProfile_LabelMethods) < 0
        || _PyProfile_InitLabels(module, get_profile_state(module)) < 0
        || _PyProfile_InitTasks(module) < 0)
    {
        return -1;
    }
    PyObject *capsule =
        PyCapsule_New((void *)&capi, PySampling_CAPSULE_NAME, NULL);
    return PyModule_Add(module, "C_API", capsule);
}

static int
module_traverse(PyObject *module, visitproc visit, void *arg)
{
    return _PyProfile_TraverseLabels(get_profile_state(module), visit, arg);
}

static int
module_clear(PyObject *module)
{
    _PyProfile_ClearLabels(get_profile_state(module));
    return 0;
}

static void
module_free(void *module)
{
    (void)module_clear((PyObject *)module);
}

static PyModuleDef_Slot module_slots[] = {
    {Py_mod_exec, module_exec},
    {Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED},
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
    {0, NULL}
};

static struct PyModuleDef module_def = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_profile",
    .m_doc = module_doc,
    .m_size = sizeof(profile_state),
    .m_methods = module_methods,
    .m_slots = module_slots,
    .m_traverse = module_traverse,
    .m_clear = module_clear,
    .m_free = module_free,
};

PyMODINIT_FUNC
PyInit__profile(void)
{
    return PyModuleDef_Init(&module_def);
}
