/* Sampling profiler: the name that a callable object has of its own.

   Functions of Cython, NumPy and others are no PyCFunction: each kind has a
   type, and each object a __qualname__ or __name__.  Owns where objects keep
   them.  Must not know whose call it is.

   Runs at the drain: with the GIL, but no Python object is made and no Python
   code runs.  The type is alive.  The object may be gone, as nothing reports
   that one dies, so it is read as memory that may be gone: a dict and its keys
   word by word. */

#include "Python.h"

#include "pycore_descrobject.h"       // PyMemberDescrObject
#include "pycore_dict.h"              // PyDictKeysObject
#include "pycore_moduleobject.h"      // PyModuleObject
#include "pycore_object.h"            // MANAGED_DICT_OFFSET
#include "pycore_runtime.h"           // _PyRuntime

#include "../tables/store.h"
#include "naming.h"

/* In larger dicts names are not searched for. */
#define MAX_DICT_ENTRIES 64

#define ID(NAME) ((PyObject *)&_Py_ID(NAME))

#define READ(INTERP, FROM, TO) \
    _PySampling_ReadMemory((INTERP), (FROM), (TO), sizeof(*(TO)))


/* Attributes. */

static int
read_pointer(PyInterpreterState *interp, PyObject *object, Py_ssize_t offset,
             void *pointer)
{
    return _PySampling_ReadMemory(interp, (const char *)object + offset,
                                  pointer, sizeof(void *));
}

/* The value of an attribute's name, which is interned.  NULL: there is
   none. */
static PyObject *
read_entry(PyInterpreterState *interp, const PyDictKeysObject *at,
           const PyDictValues *values, PyObject *key)
{
    PyDictKeysObject keys;
    if (!READ(interp, at, &keys) || keys.dk_kind == DICT_KEYS_GENERAL
        || keys.dk_log2_index_bytes > 8
        || keys.dk_nentries > MAX_DICT_ENTRIES)
    {
        return NULL;
    }
    const PyDictUnicodeEntry *entries = (const PyDictUnicodeEntry *)(
        (const char *)(at + 1) + ((size_t)1 << keys.dk_log2_index_bytes));
    PyDictUnicodeEntry entry;
    for (Py_ssize_t i = 0;
         i < keys.dk_nentries && READ(interp, &entries[i], &entry); i++)
    {
        if (entry.me_key == key) {
            return values == NULL || READ(interp, &values->values[i],
                                          &entry.me_value)
                ? entry.me_value : NULL;
        }
    }
    return NULL;
}

static PyObject *
read_dict(PyInterpreterState *interp, PyObject *dict, PyObject *key)
{
    PyDictObject head;
    return dict != NULL && READ(interp, (PyDictObject *)dict, &head)
            && head.ob_base.ob_type == &PyDict_Type
        ? read_entry(interp, head.ma_keys, head.ma_values, key) : NULL;
}

/* An entry of the object's own dict. */
static PyObject *
read_own(PyInterpreterState *interp, PyTypeObject *type, PyObject *object,
         PyObject *key)
{
    PyObject *dict = NULL;
    if (!PyType_HasFeature(type, Py_TPFLAGS_MANAGED_DICT)) {
        return type->tp_dictoffset > 0
                && read_pointer(interp, object, type->tp_dictoffset, &dict)
            ? read_dict(interp, dict, key) : NULL;
    }
    if (!read_pointer(interp, object, MANAGED_DICT_OFFSET, &dict)) {
        return NULL;
    }
    if (dict != NULL || !PyType_HasFeature(type, Py_TPFLAGS_INLINE_VALUES)) {
        return read_dict(interp, dict, key);
    }
    const PyDictKeysObject *keys = ((PyHeapTypeObject *)type)->ht_cached_keys;
    return keys != NULL
        ? read_entry(interp, keys,
                     (PyDictValues *)((char *)object + type->tp_basicsize),
                     key) : NULL;
}

PyObject *
_PySampling_ReadOwn(PyInterpreterState *interp, PyObject *object,
                    PyObject *key)
{
    return read_own(interp, Py_TYPE(object), object, key);
}

/* The offset of an attribute that C code keeps in the object; 0: there is no
   such attribute. */
static Py_ssize_t
offset_of_member(PyTypeObject *type, PyObject *key)
{
    PyObject *value;
    if (_PySampling_FindOwner(type, key, &value) == NULL
        || !Py_IS_TYPE(value, &PyMemberDescr_Type))
    {
        return 0;
    }
    const PyMemberDef *member = ((PyMemberDescrObject *)value)->d_member;
    return (member->type == _Py_T_OBJECT || member->type == Py_T_OBJECT_EX)
            && !(member->flags & Py_RELATIVE_OFFSET)
        ? member->offset : 0;
}

static PyObject *
read_attribute(PyInterpreterState *interp, PyTypeObject *type,
               PyObject *object, PyObject *key)
{
    PyObject *value;
    Py_ssize_t offset = offset_of_member(type, key);
    if (offset != 0) {
        return read_pointer(interp, object, offset, &value) ? value : NULL;
    }
    return read_own(interp, type, object, key);
}


/* Names. */

/* Is it "Class.name", say? */
static int
is_qualified(const struct _sampling_text *text,
             const struct _sampling_text *name)
{
    int before = text->size - name->size;
    return before > 0 && text->bytes[before - 1] == '.'
        && memcmp(text->bytes + before, name->bytes, (size_t)name->size) == 0;
}

/* Cython's functions begin as a PyCMethodObject.  Their __name__, if somebody
   has asked for it, and __qualname__ follow, or follow the dict of older
   versions. */
struct cython_function {
    PyCMethodObject function;
    PyObject *kept[3];
};

/* The one of what is kept that is "Class.name". */
static void
qualify(PyInterpreterState *interp, PyObject *const *kept, int num_kept,
        struct _sampling_text *name)
{
    for (int i = 0; i < num_kept; i++) {
        struct _sampling_text text;
        text.size = 0;
        if (_PySampling_ReadText(interp, kept[i], &text)
            && is_qualified(&text, name))
        {
            *name = text;
            return;
        }
    }
}

/* Those that are compiled for the limited API have a layout of their own,
   which differs between versions: the name of the module is before the dict,
   in the object or in a PyCFunction, and __name__ and __qualname__ are behind
   it. */
static int
name_limited_cython(PyInterpreterState *interp, PyTypeObject *type,
                    PyObject *object, struct _sampling_name *name)
{
    const char *last = strrchr(type->tp_name, '.');
    Py_ssize_t at = type->tp_dictoffset;
    PyObject *word;
    if (last == NULL || strcmp(last, ".cython_function_or_method") != 0
        || at <= (Py_ssize_t)sizeof(PyObject)
        || type->tp_basicsize < at + 3 * (Py_ssize_t)sizeof(word)
        || !read_pointer(interp, object, at + 2 * sizeof(word), &word)
        || !_PySampling_ReadText(interp, word, &name->qualname))
    {
        return 0;
    }
    for (Py_ssize_t i = sizeof(PyObject); i < at; i += sizeof(word)) {
        PyCFunctionObject function;
        if (read_pointer(interp, object, i, &word)
            && (_PySampling_ReadText(interp, word, &name->module)
                || (READ(interp, (PyCFunctionObject *)word, &function)
                    && function.ob_base.ob_type == &PyCFunction_Type
                    && _PySampling_ReadText(interp, function.m_module,
                                            &name->module))))
        {
            return 1;
        }
    }
    return 1;
}

static int
name_cython(PyInterpreterState *interp, PyTypeObject *type, PyObject *object,
            struct _sampling_text *name)
{
    struct cython_function f;
    if (offset_of_member(type, ID(__module__))
            != offsetof(PyCFunctionObject, m_module)
        || type->tp_basicsize < (Py_ssize_t)sizeof(f)
        || !READ(interp, (struct cython_function *)object, &f)
        || !_PySampling_ReadMethodName(interp, f.function.func.m_ml, name))
    {
        return 0;
    }
    qualify(interp, f.kept, 3, name);
    return 1;
}

/* The beginning of a PyUFuncObject, which is part of NumPy's ABI. */
struct ufunc {
    PyObject_HEAD
    int nin, nout, nargs;
    int identity;
    void *functions;
    void *data;
    int ntypes;
    int flags;
    const char *name;
};

static int
name_ufunc(PyInterpreterState *interp, PyTypeObject *type, PyObject *object,
           struct _sampling_text *qualname)
{
    struct ufunc ufunc;
    return strcmp(type->tp_name, "numpy.ufunc") == 0
        && type->tp_basicsize >= (Py_ssize_t)sizeof(ufunc)
        && READ(interp, (struct ufunc *)object, &ufunc)
        && ufunc.nargs > 0 && ufunc.nin + ufunc.nout == ufunc.nargs
        && _PySampling_ReadName(interp, ufunc.name, qualname);
}

/* nanobind keeps the name of a function with its first overload, which follows
   the object's fixed part, and the class or module that it is in there, too,
   or, since version 3, in the fixed part.  No attribute is kept: all are made
   when asked for. */
struct nanobind_overload {
    void *capture[3];
    void *functions[2];
    void *descriptions[2];
    uint32_t flags;
    uint16_t num_args[2];
    const char *name;
    const char *doc;
    PyObject *scope;
};

struct nanobind_function {
    PyObject_VAR_HEAD
    void *vectorcall;
    uint32_t max_args;
    uint32_t flags;
    void *internals;
    PyObject *scope;
    PyObject *module_name;
};

static int
name_nanobind(struct _sampling_tables *tables, PyInterpreterState *interp,
              PyTypeObject *type, PyObject *object,
              struct _sampling_name *name)
{
    struct nanobind_overload first;
    struct nanobind_function function;
    PyModuleObject module;
    if ((strcmp(type->tp_name, "nanobind.nb_func") != 0
         && strcmp(type->tp_name, "nanobind.nb_method") != 0)
        || type->tp_itemsize < (Py_ssize_t)sizeof(first)
        || !READ(interp, (struct nanobind_overload *)(
                             (char *)object + type->tp_basicsize), &first))
    {
        return 0;
    }
    PyObject *scope = first.scope;
    if (type->tp_basicsize >= (Py_ssize_t)sizeof(function)) {
        scope = READ(interp, (struct nanobind_function *)object, &function)
            ? function.scope : NULL;
    }
    if (_PySampling_IsType(interp, (PyTypeObject *)scope)) {
        _PySampling_NameType(tables, (PyTypeObject *)scope, name);
        _PySampling_AppendString(&name->qualname, ".");
    }
    else if (!READ(interp, (PyModuleObject *)scope, &module)
             || module.ob_base.ob_type != &PyModule_Type
             || !_PySampling_ReadText(interp, module.md_name, &name->module))
    {
        return 0;
    }
    return _PySampling_ReadName(interp, first.name, &name->qualname);
}

static int
name_attribute(PyInterpreterState *interp, PyTypeObject *type,
               PyObject *object, struct _sampling_text *qualname)
{
    return _PySampling_ReadText(
            interp, read_attribute(interp, type, object, ID(__qualname__)),
            qualname)
        || _PySampling_ReadText(
            interp, read_attribute(interp, type, object, ID(__name__)),
            qualname);
}

int
_PySampling_NameCallable(struct _sampling_tables *tables,
                         PyInterpreterState *interp, PyTypeObject *type,
                         PyObject *object, struct _sampling_name *name)
{
    struct _sampling_text *qualname = &name->qualname;
    if (name_nanobind(tables, interp, type, object, name)
        || name_limited_cython(interp, type, object, name))
    {
        return 1;
    }
    if (!name_attribute(interp, type, object, qualname)
        && !name_cython(interp, type, object, qualname)
        && !name_ufunc(interp, type, object, qualname))
    {
        return 0;
    }
    if (!_PySampling_ReadText(
            interp, read_attribute(interp, type, object, ID(__module__)),
            &name->module))
    {
        struct _sampling_name of_type;
        _PySampling_ClearName(&of_type);
        _PySampling_NameType(tables, type, &of_type);
        name->module = of_type.module;
    }
    return 1;
}

PyObject *
_PySampling_WrappedCallable(PyInterpreterState *interp, PyTypeObject *type,
                            PyObject *object)
{
    PyObject *func = NULL;
    while (type != NULL && strcmp(type->tp_name, "functools.partial") != 0) {
        type = type->tp_base;
    }
    Py_ssize_t offset = type != NULL ? offset_of_member(type, ID(func)) : 0;
    return offset != 0 && read_pointer(interp, object, offset, &func)
        ? func : NULL;
}
