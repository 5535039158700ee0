/* Functions whose names are not what their type is called. */

#include <Python.h>

#include <stddef.h>

/* One definition at a time, so that each has the address of the one before, as
   those that an extension allocates may have. */
typedef struct {
    PyMethodDef method;
    char name[32];
} Definition;

static Definition *definition;

static PyObject *
call(PyObject *self, PyObject *job)
{
    return PyObject_CallNoArgs(job);
}

static void
forget(PyObject *capsule)
{
    memset(definition, 0, sizeof(*definition));
}

/* function(name, module): there is none yet, or no more. */
static PyObject *
function(PyObject *self, PyObject *args)
{
    const char *name;
    PyObject *module;
    if (!PyArg_ParseTuple(args, "sU:function", &name, &module)) {
        return NULL;
    }
    if (definition == NULL) {
        definition = calloc(1, sizeof(*definition));
    }
    if (definition == NULL || definition->name[0] != 0
        || strlen(name) >= sizeof(definition->name))
    {
        PyErr_SetString(PyExc_ValueError, name);
        return NULL;
    }
    strcpy(definition->name, name);
    definition->method = (PyMethodDef){definition->name, call, METH_O, NULL};
    PyObject *capsule = PyCapsule_New(definition, NULL, forget);
    if (capsule == NULL) {
        return NULL;
    }
    PyObject *result = PyCFunction_NewEx(&definition->method, capsule, module);
    Py_DECREF(capsule);
    return result;
}

/* Kept(name, qualname, module): in the object. */
typedef struct {
    PyObject_HEAD
    PyObject *name;
    PyObject *qualname;
    PyObject *module;
} Kept;

static PyMemberDef kept_members[] = {
    {"__name__", Py_T_OBJECT_EX, offsetof(Kept, name), 0, NULL},
    {"__qualname__", Py_T_OBJECT_EX, offsetof(Kept, qualname), 0, NULL},
    {"__module__", Py_T_OBJECT_EX, offsetof(Kept, module), 0, NULL},
    {NULL},
};

static int
kept_init(PyObject *self, PyObject *args, PyObject *kwargs)
{
    Kept *kept = (Kept *)self;
    if (!PyArg_ParseTuple(args, "OOO:Kept", &kept->name, &kept->qualname,
                          &kept->module)) {
        return -1;
    }
    Py_INCREF(kept->name);
    Py_INCREF(kept->qualname);
    Py_INCREF(kept->module);
    return 0;
}

static PyObject *
kept_call(PyObject *self, PyObject *args, PyObject *kwargs)
{
    PyObject *job;
    return PyArg_ParseTuple(args, "O", &job) ? PyObject_CallNoArgs(job) : NULL;
}

static void
kept_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    Kept *kept = (Kept *)self;
    Py_XDECREF(kept->name);
    Py_XDECREF(kept->qualname);
    Py_XDECREF(kept->module);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyType_Slot kept_slots[] = {
    {Py_tp_members, kept_members},
    {Py_tp_init, kept_init},
    {Py_tp_call, kept_call},
    {Py_tp_dealloc, kept_dealloc},
    {0, NULL},
};

static PyType_Spec kept_spec = {
    .name = "own_names.Kept",
    .basicsize = sizeof(Kept),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = kept_slots,
};

static PyMethodDef methods[] = {
    {"function", function, METH_VARARGS, NULL},
    {NULL},
};

static struct PyModuleDef module_def = {
    PyModuleDef_HEAD_INIT,
    .m_name = "own_names",
    .m_size = -1,
    .m_methods = methods,
};

PyMODINIT_FUNC
PyInit_own_names(void)
{
    PyObject *module = PyModule_Create(&module_def);
    PyObject *type = PyType_FromSpec(&kept_spec);
    if (module == NULL || type == NULL
        || PyModule_AddObjectRef(module, "Kept", type) < 0)
    {
        return NULL;
    }
    return module;
}
