/* Sampling profiler: what a type is called, and which of its classes an
   attribute is of.

   Owns the proof that an address holds a type or a name, and the text of
   names.  Must not know what the names are for.

   Runs at the drain: with the GIL, but no Python object is made and no Python
   code runs. */

#include "Python.h"

#include "pycore_dict.h"              // DK_IS_UNICODE()
#include "pycore_runtime.h"           // _PyRuntime
#include "pycore_typeobject.h"        // _PyType_GetDict()

#include "../tables/store.h"
#include "naming.h"

/* How much of UTF-8 text goes into so much space: no part of a character. */
static size_t
whole_characters(const char *bytes, size_t size, size_t space)
{
    if (size <= space) {
        return size;
    }
    while (space > 0 && (bytes[space] & 0xC0) == 0x80) {
        space--;
    }
    return space;
}

void
_PySampling_AppendBytes(struct _sampling_text *text, const char *bytes,
                        size_t size)
{
    size = whole_characters(bytes, size,
                            sizeof(text->bytes) - (size_t)text->size);
    memcpy(text->bytes + text->size, bytes, size);
    text->size += (int)size;
}

void
_PySampling_AppendString(struct _sampling_text *text, const char *string)
{
    _PySampling_AppendBytes(text, string, strlen(string));
}

void
_PySampling_AppendObject(struct _sampling_text *text,
                         struct _sampling_tables *tables, PyObject *string)
{
    if (tables == NULL) {
        char bytes[_PySampling_MAX_NAME_BYTES];
        if (string != NULL && PyUnicode_Check(string)) {
            _PySampling_AppendBytes(text, bytes, _PySampling_EncodeText(
                string, bytes, sizeof(bytes)));
        }
        return;
    }
    uint32_t row = _PySampling_InternText(tables, string);
    if (row != NO_ROW) {
        const char *bytes = AT(tables, string, row)->bytes;
        _PySampling_AppendBytes(text, bytes,
               whole_characters(bytes, AT(tables, string, row)->size,
                                _PySampling_MAX_NAME_BYTES));
    }
}


/* Text that may be gone. */

/* A name in C: ASCII, as identifiers and, for some generated code, "<" ">". */
int
_PySampling_ReadName(PyInterpreterState *interp, const char *address,
                     struct _sampling_text *out)
{
    char bytes[_PySampling_MAX_NAME_BYTES];
    int size = _PySampling_ReadString(interp, address, bytes, sizeof(bytes));
    if (size <= 0) {
        return 0;
    }
    for (int i = 0; i < size; i++) {
        if (bytes[i] <= ' ' || bytes[i] > '~') {
            return 0;
        }
    }
    _PySampling_AppendBytes(out, bytes, (size_t)size);
    return 1;
}

/* A str that may be gone: the name of a module, say. */
int
_PySampling_ReadText(PyInterpreterState *interp, PyObject *object,
                     struct _sampling_text *out)
{
    PyASCIIObject head;
    char bytes[_PySampling_MAX_NAME_BYTES];
    if (!_PySampling_ReadMemory(interp, object, &head, sizeof(head))
        || head.ob_base.ob_type != &PyUnicode_Type
        || !head.state.compact || !head.state.ascii
        || head.length <= 0 || head.length >= (Py_ssize_t)sizeof(bytes)
        || !_PySampling_ReadMemory(interp, (PyASCIIObject *)object + 1, bytes,
                                   (size_t)head.length))
    {
        return 0;
    }
    _PySampling_AppendBytes(out, bytes, (size_t)head.length);
    return 1;
}

int
_PySampling_ReadMethodName(PyInterpreterState *interp,
                           const PyMethodDef *method,
                           struct _sampling_text *out)
{
    const char *address;
    return _PySampling_ReadMemory(interp, &method->ml_name, &address,
                                  sizeof(address))
        && _PySampling_ReadName(interp, address, out);
}


/* Types. */

/* Reads the head of what may be a type.  Freed memory often still looks like
   the object it was, so its reference count matters: a dead type has none. */
static int
read_type(PyInterpreterState *interp, PyTypeObject *type,
          PyTypeObject **metatype, unsigned long *flags)
{
    // At once: a large type is in no arena, and the kernel is asked.
    char bytes[offsetof(PyTypeObject, tp_flags) + sizeof(*flags)];
    PyObject head;
    if ((uintptr_t)type % sizeof(void *) != 0
        || !_PySampling_ReadMemory(interp, type, bytes, sizeof(bytes)))
    {
        return 0;
    }
    memcpy(&head, bytes, sizeof(head));
    memcpy(flags, bytes + offsetof(PyTypeObject, tp_flags), sizeof(*flags));
    *metatype = head.ob_type;
    return Py_REFCNT(&head) > 0 && (*flags & Py_TPFLAGS_READY) != 0;
}

/* Does the address found by the handler hold a type?  Once it has, its fields
   may be used.  What it points to must lead to `type` itself, by way of
   metatypes: free lists keep pointers to other free objects where objects have
   their type. */
#define MAX_METATYPES 4

int
_PySampling_IsType(PyInterpreterState *interp, PyTypeObject *type)
{
    for (int level = 0; level < MAX_METATYPES; level++) {
        PyTypeObject *metatype;
        unsigned long flags;
        if (!read_type(interp, type, &metatype, &flags)
            || (level > 0 && (flags & Py_TPFLAGS_TYPE_SUBCLASS) == 0))
        {
            return 0;
        }
        if (metatype == &PyType_Type) {
            return 1;
        }
        type = metatype;
    }
    return 0;
}

/* The class of the MRO that has the attribute, and its value; NULL: none. */
PyTypeObject *
_PySampling_FindOwner(PyTypeObject *type, PyObject *attribute,
                      PyObject **value)
{
    PyObject *mro = type->tp_mro;
    if (mro == NULL || !PyTuple_Check(mro)) {
        return NULL;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(mro); i++) {
        PyTypeObject *base = (PyTypeObject *)PyTuple_GET_ITEM(mro, i);
        *value = _PySampling_DictGet(_PyType_GetDict(base), attribute);
        if (*value != NULL) {
            return base;
        }
    }
    return NULL;
}

/* Splits at the last dot: what is before names a module. */
static void
append_dotted(struct _sampling_text *module, struct _sampling_text *qualname,
              const char *dotted)
{
    const char *dot = strrchr(dotted, '.');
    if (dot != NULL) {
        _PySampling_AppendBytes(module, dotted, (size_t)(dot - dotted));
        _PySampling_AppendString(qualname, dot + 1);
    }
    else {
        _PySampling_AppendString(qualname, dotted);
    }
}

void
_PySampling_NameType(struct _sampling_tables *tables, PyTypeObject *type,
                     struct _sampling_name *name)
{
    if (!PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE)) {
        append_dotted(&name->module, &name->qualname, type->tp_name);
        return;
    }
    PyObject *module = _PySampling_DictGet(type->tp_dict, &_Py_ID(__module__));
    if (module == NULL || !PyUnicode_Check(module)) {
        append_dotted(&name->module, &name->qualname, type->tp_name);
        return;
    }
    if (!_PyUnicode_EqualToASCIIString(module, "builtins")) {
        _PySampling_AppendObject(&name->module, tables, module);
    }
    _PySampling_AppendObject(&name->qualname, tables,
                             ((PyHeapTypeObject *)type)->ht_qualname);
}

void
_PySampling_NameAttribute(struct _sampling_tables *tables, PyTypeObject *type,
                          PyObject *attribute, struct _sampling_name *name)
{
    _PySampling_NameType(tables, type, name);
    _PySampling_AppendString(&name->qualname, ".");
    _PySampling_AppendObject(&name->qualname, tables, attribute);
}


/* A special method in C.  One in Python has a frame of its own. */
int
_PySampling_NameSpecial(struct _sampling_tables *tables, PyTypeObject *type,
                        PyObject *attribute, struct _sampling_name *name)
{
    PyObject *value;
    PyTypeObject *owner = _PySampling_FindOwner(type, attribute, &value);
    if (owner == NULL || PyFunction_Check(value)) {
        return 0;
    }
    _PySampling_NameAttribute(tables, owner, attribute, name);
    return 1;
}
