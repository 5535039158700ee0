/* Sampling profiler: what the files that name callees share
   (native/types.c, native/names.c, native/callables.c, native/operators.c), and
   how another process gets a name.  Without tables (NULL), texts are encoded
   and not kept. */

#ifndef Py_SAMPLING_NAMING_H
#define Py_SAMPLING_NAMING_H

#ifndef Py_BUILD_CORE
#  error "this header requires Py_BUILD_CORE define"
#endif

#include "native.h"

/* Longer names of functions in C are not believed. */
#define _PySampling_MAX_NAME_BYTES 256

/* Space for the longest name: two types, each of a module, and an operator. */
#define _PySampling_MAX_TEXT_BYTES (4 * _PySampling_MAX_NAME_BYTES)

struct _sampling_text {
    int size;
    char bytes[_PySampling_MAX_TEXT_BYTES];
};

/* What is to be interned: the module is empty for what is built in. */
struct _sampling_name {
    _PySampling_Kind kind;
    struct _sampling_text module;
    struct _sampling_text qualname;
};

/* Only what is in use: to clear all of it takes longer than to fill it in. */
static inline void
_PySampling_ClearName(struct _sampling_name *name)
{
    name->kind = _PySampling_KIND_C;
    name->module.size = 0;
    name->qualname.size = 0;
}

// Longer text is cut.
extern void _PySampling_AppendBytes(struct _sampling_text *text,
                                    const char *bytes, size_t size);
extern void _PySampling_AppendString(struct _sampling_text *text,
                                     const char *string);
extern void _PySampling_AppendObject(struct _sampling_text *text,
                                     struct _sampling_tables *tables,
                                     PyObject *string);

// Does the address found by the handler hold a type?  Once it has, its fields
// may be used.
extern int _PySampling_IsType(PyInterpreterState *interp, PyTypeObject *type);

// The class of the MRO that has the attribute, and its value; NULL: none.
extern PyTypeObject *_PySampling_FindOwner(PyTypeObject *type,
                                           PyObject *attribute,
                                           PyObject **value);

extern void _PySampling_NameType(struct _sampling_tables *tables,
                                 PyTypeObject *type,
                                 struct _sampling_name *name);
extern void _PySampling_NameAttribute(struct _sampling_tables *tables,
                                      PyTypeObject *type, PyObject *attribute,
                                      struct _sampling_name *name);

// What follows returns 0 if there is no name, or none that is known.

// Memory that may be gone: a string in C, a str, and the name of a method.
extern int _PySampling_ReadName(PyInterpreterState *interp,
                                const char *address,
                                struct _sampling_text *out);
extern int _PySampling_ReadText(PyInterpreterState *interp, PyObject *object,
                                struct _sampling_text *out);
extern int _PySampling_ReadMethodName(PyInterpreterState *interp,
                                      const PyMethodDef *method,
                                      struct _sampling_text *out);

// The object's own name (native/callables.c).
extern int _PySampling_NameCallable(struct _sampling_tables *tables,
                                    PyInterpreterState *interp,
                                    PyTypeObject *type, PyObject *object,
                                    struct _sampling_name *name);
// An entry of the dict of an object that is alive.  NULL: it has none.
extern PyObject *_PySampling_ReadOwn(PyInterpreterState *interp,
                                     PyObject *object, PyObject *key);
// What a functools.partial calls; NULL: it is none.
extern PyObject *_PySampling_WrappedCallable(PyInterpreterState *interp,
                                             PyTypeObject *type,
                                             PyObject *object);

// A special method in Python has no name: it has a frame of its own.
extern int _PySampling_NameSpecial(struct _sampling_tables *tables,
                                   PyTypeObject *type, PyObject *attribute,
                                   struct _sampling_name *name);
// What is done by an instruction that calls nothing.
extern int _PySampling_NameOperator(struct _sampling_tables *tables,
                                    PyInterpreterState *interp, int opcode,
                                    int oparg, PyTypeObject *first,
                                    void *second,
                                    struct _sampling_name *name);

// Of the callee that FindCallee() or CaptureCallee() has found.  Async-signal-
// safe, while nobody but the caller runs Python code (native/names.c).
extern int _PySampling_NameCallee(PyInterpreterState *interp,
                                  _PySampling_Frame words,
                                  _PySampling_Frame mark,
                                  struct _sampling_name *name);

#endif  // !Py_SAMPLING_NAMING_H
