/* Sampling profiler: what a C function or an operator is called.

   Owns the names of callees, as a user would write them, and keeps some.  Must
   not know how a callee was found.

   Runs at the drain: with the GIL, but no Python object is made and no Python
   code runs.  Types are read directly once they have proved to be types:
   the drain comes before any type dies (_PySampling_TypeEnd).  All else that
   a callee refers to is read as memory that may be gone. */

#include "Python.h"
#include "opcode.h"

#include "pycore_runtime.h"           // _PyRuntime

#include "../tables/store.h"
#include "naming.h"

/* Calls. */

static int
name_function(PyInterpreterState *interp, const PyMethodDef *method,
              PyObject *module, struct _sampling_name *name)
{
    return _PySampling_ReadText(interp, module, &name->module)
        && _PySampling_ReadMethodName(interp, method, &name->qualname);
}

static int
defines(PyTypeObject *type, const PyMethodDef *method)
{
    const PyMethodDef *m = type->tp_methods;
    for (; m != NULL && m->ml_name != NULL; m++) {
        if (m == method) {
            return 1;
        }
    }
    return 0;
}

/* The class that defines the method: one of the MRO, or, as `type` may itself
   be what the method is bound to, its metaclass. */
static PyTypeObject *
definer_of(PyTypeObject *type, const PyMethodDef *method)
{
    PyObject *mro = type->tp_mro;
    Py_ssize_t n = mro != NULL && PyTuple_Check(mro)
        ? PyTuple_GET_SIZE(mro) : 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyTypeObject *base = (PyTypeObject *)PyTuple_GET_ITEM(mro, i);
        if (defines(base, method)) {
            return base;
        }
    }
    return defines(&PyType_Type, method) ? &PyType_Type : type;
}

static int
name_method(struct _sampling_tables *tables, PyInterpreterState *interp,
            const PyMethodDef *method, PyTypeObject *type,
            struct _sampling_name *name)
{
    if (!_PySampling_IsType(interp, type)) {
        return 0;
    }
    _PySampling_NameType(tables, definer_of(type, method), name);
    _PySampling_AppendString(&name->qualname, ".");
    return _PySampling_ReadMethodName(interp, method, &name->qualname);
}

static int
name_slot_wrapper(struct _sampling_tables *tables, PyInterpreterState *interp,
                  const struct wrapperbase *wrapper, PyTypeObject *type,
                  struct _sampling_name *name)
{
    const char *address;
    if (!_PySampling_IsType(interp, type)
        || !_PySampling_ReadMemory(interp, &wrapper->name, &address,
                                   sizeof(address)))
    {
        return 0;
    }
    _PySampling_NameType(tables, type, name);
    _PySampling_AppendString(&name->qualname, ".");
    return _PySampling_ReadName(interp, address, &name->qualname);
}

static int
name_class(struct _sampling_tables *tables, PyInterpreterState *interp,
           PyTypeObject *type, struct _sampling_name *name)
{
    if (!_PySampling_IsType(interp, type)) {
        return 0;
    }
    _PySampling_NameType(tables, type, name);
    return 1;
}

static int
find_name(struct _sampling_tables *tables, PyInterpreterState *interp,
          _PySampling_Frame words, _PySampling_Frame mark, int may_unwrap,
          struct _sampling_name *name);

/* What is called by way of a functools.partial, if that is no Python code. */
static int
name_wrapped(struct _sampling_tables *tables, PyInterpreterState *interp,
             PyTypeObject *type, PyObject *callable,
             struct _sampling_name *name)
{
    _PySampling_Frame callee[_PySampling_CALLEE_ENTRIES];
    PyObject *wrapped = _PySampling_WrappedCallable(interp, type, callable);
    return wrapped != NULL && _PySampling_FindCallee(interp, wrapped, callee)
        && find_name(tables, interp, callee[0], callee[1], 0, name);
}

static int
name_instance(struct _sampling_tables *tables, PyInterpreterState *interp,
              PyTypeObject *type, PyObject *callable, int may_unwrap,
              struct _sampling_name *name)
{
    if (!_PySampling_IsType(interp, type)) {
        return 0;
    }
    if (PyType_HasFeature(type, Py_TPFLAGS_TYPE_SUBCLASS)) {
        return name_class(tables, interp, (PyTypeObject *)callable, name);
    }
    // What cannot be called is the result of the call, stored already.
    PyObject *call;
    PyTypeObject *owner = type->tp_call == NULL ? NULL
        : _PySampling_FindOwner(type, &_Py_ID(__call__), &call);
    if (owner == NULL || PyFunction_Check(call)) {
        return 0;
    }
    if (_PySampling_NameCallable(tables, interp, type, callable, name)
        || (may_unwrap
            && name_wrapped(tables, interp, type, callable, name)))
    {
        return 1;
    }
    _PySampling_ClearName(name);
    _PySampling_NameAttribute(tables, owner, &_Py_ID(__call__), name);
    return 1;
}

static int
find_name(struct _sampling_tables *tables, PyInterpreterState *interp,
          _PySampling_Frame words, _PySampling_Frame mark, int may_unwrap,
          struct _sampling_name *name)
{
    void *word0 = (void *)((uintptr_t)words.code & ~(uintptr_t)1);
    void *word1 = words.instr;
    uint32_t bits = (uint32_t)((uintptr_t)mark.instr >> 4);
    switch (_PySampling_KindOfCallee(mark)) {
    case _PySampling_CALLEE_FUNCTION:
        return name_function(interp, word0, word1, name);
    case _PySampling_CALLEE_METHOD:
        return name_method(tables, interp, word0, word1, name);
    case _PySampling_CALLEE_SLOT_WRAPPER:
        return name_slot_wrapper(tables, interp, word0, word1, name);
    case _PySampling_CALLEE_TYPE:
        return name_class(tables, interp, word0, name);
    case _PySampling_CALLEE_INSTANCE:
        return name_instance(tables, interp, word0, word1, may_unwrap, name);
    case _PySampling_CALLEE_OPERATOR:
        return _PySampling_NameOperator(tables, interp, bits >> 4 & 255,
                                        bits >> 12, word0, word1, name);
    }
    return 0;
}

int
_PySampling_NameCallee(PyInterpreterState *interp, _PySampling_Frame words,
                       _PySampling_Frame mark, struct _sampling_name *name)
{
    _PySampling_ClearName(name);
    return find_name(NULL, interp, words, mark, 1, name);
}


/* Rows. */

static uint32_t
intern_name(struct _sampling_tables *tables, const struct _sampling_name *name)
{
    uint32_t module = _PySampling_NO_STRING;
    if (name->module.size != 0) {
        module = _PySampling_InternBytes(tables, name->module.bytes,
                                         (uint32_t)name->module.size);
        if (module == NO_ROW) {
            return NO_ROW;
        }
    }
    return _PySampling_InternNative(
        tables, module,
        _PySampling_InternBytes(tables, name->qualname.bytes,
                                (uint32_t)name->qualname.size),
        name->kind);
}

uint32_t
_PySampling_TablesTypeFrame(struct _sampling_tables *tables,
                            PyTypeObject *type)
{
    struct _sampling_name name;
    _PySampling_ClearName(&name);
    _PySampling_NameType(tables, type, &name);
    return intern_name(tables, &name);
}

/* Another object may take the address of one that dies.  A type that dies is
   reported; definitions of functions are not, but most lie in a library.  All
   modules that share one have the same name. */
static int
may_keep(_PySampling_Frame words, _PySampling_Frame mark)
{
    switch (_PySampling_KindOfCallee(mark)) {
    case _PySampling_CALLEE_TYPE:
    case _PySampling_CALLEE_OPERATOR:
        return 1;
    case _PySampling_CALLEE_INSTANCE:
        return 0;
    default:
        return _PySampling_IsLoaded((void *)words.code);
    }
}

static void *
first_word(_PySampling_Frame words)
{
    return (void *)((uintptr_t)words.code & ~(uintptr_t)1);
}

static int
is_access(_PySampling_Frame mark)
{
    int opcode = (uintptr_t)mark.instr >> 8 & 255;
    return opcode == LOAD_ATTR || opcode == STORE_ATTR;
}

static struct _sampling_cached_callee
key_of(struct _sampling_tables *tables, _PySampling_Frame words,
       _PySampling_Frame mark)
{
    struct _sampling_cached_callee key = {.words = {
        (uintptr_t)words.code, (uintptr_t)words.instr,
        (uintptr_t)mark.instr}};
    if (is_access(mark)) {
        // The attribute by what it says: its address may become another's.
        key.words[1] = _PySampling_InternText(tables, (PyObject *)words.instr);
    }
    return key;
}

uint32_t
_PySampling_InternCallee(struct _sampling_tables *tables,
                         PyInterpreterState *interp, _PySampling_Frame words,
                         _PySampling_Frame mark)
{
    const struct _sampling_cached_callee key = key_of(tables, words, mark);
    struct _sampling_cached_callee *kept = &tables->callees[
        mix(key.words[0] ^ key.words[2], key.words[1])
        % _PySampling_CACHED_CALLEES];
    if (memcmp(kept->words, key.words, sizeof(key.words)) == 0) {
        return kept->frame;
    }
    struct _sampling_name name;
    _PySampling_ClearName(&name);
    int is_found = find_name(tables, interp, words, mark, 1, &name);
    uint32_t frame = is_found ? intern_name(tables, &name) : NO_ROW;
    // Most attributes have no name: that is kept, too, of a type that lives.
    if (is_found ? may_keep(words, mark)
        : is_access(mark) && _PySampling_IsType(interp, first_word(words)))
    {
        *kept = key;
        kept->frame = frame;
    }
    return frame;
}

void
_PySampling_TablesForgetType(struct _sampling_tables *tables,
                             PyTypeObject *type)
{
    for (int i = 0; i < _PySampling_CACHED_CALLEES; i++) {
        uintptr_t *words = tables->callees[i].words;
        if (words[0] == ((uintptr_t)type | 1) || words[1] == (uintptr_t)type) {
            memset(words, 0, sizeof(tables->callees[i].words));
        }
    }
}
