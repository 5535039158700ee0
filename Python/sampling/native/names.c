/* Sampling profiler: what a C function or an operator is called.

   Owns the names of callees, as a user would write them, and the rows that
   remember them.  Must not know how a callee was found.

   Runs at the drain: with the GIL, but no Python object is made and no Python
   code runs.  Types are looked at directly once they have proved to be types:
   the drain comes before any type dies (_PySampling_TypeEnd).  All else that
   a callee refers to is read as memory that may be gone. */

#include "Python.h"
#include "opcode.h"

#include "pycore_runtime.h"           // _PyRuntime

#include "../tables/store.h"
#include "naming.h"

/* Calls. */

/* A name in C: ASCII, as identifiers and, for some generated code, "<" ">". */
static int
read_c_name(PyInterpreterState *interp, const char *address,
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

/* A str that may be gone: the name of a module. */
static int
read_module_name(PyInterpreterState *interp, PyObject *object,
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

static int
read_method_name(PyInterpreterState *interp, const PyMethodDef *method,
                 struct _sampling_text *out)
{
    const char *address;
    return _PySampling_ReadMemory(interp, &method->ml_name, &address,
                                  sizeof(address))
        && read_c_name(interp, address, out);
}

static int
name_function(PyInterpreterState *interp, const PyMethodDef *method,
              PyObject *module, struct _sampling_name *name)
{
    return read_module_name(interp, module, &name->module)
        && read_method_name(interp, method, &name->qualname)
        ? 1 : _PySampling_UNKNOWN;
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
        return _PySampling_UNKNOWN;
    }
    _PySampling_NameType(tables, definer_of(type, method), name);
    _PySampling_AppendString(&name->qualname, ".");
    return read_method_name(interp, method, &name->qualname)
        ? 1 : _PySampling_UNKNOWN;
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
        return _PySampling_UNKNOWN;
    }
    _PySampling_NameType(tables, type, name);
    _PySampling_AppendString(&name->qualname, ".");
    return read_c_name(interp, address, &name->qualname)
        ? 1 : _PySampling_UNKNOWN;
}

static int
name_class(struct _sampling_tables *tables, PyInterpreterState *interp,
           PyTypeObject *type, struct _sampling_name *name)
{
    if (!_PySampling_IsType(interp, type)) {
        return _PySampling_UNKNOWN;
    }
    _PySampling_NameType(tables, type, name);
    return 1;
}

static int
name_instance(struct _sampling_tables *tables, PyInterpreterState *interp,
              PyTypeObject *type, PyTypeObject *callable,
              struct _sampling_name *name)
{
    if (!_PySampling_IsType(interp, type)) {
        return _PySampling_UNKNOWN;
    }
    if (PyType_HasFeature(type, Py_TPFLAGS_TYPE_SUBCLASS)) {
        return name_class(tables, interp, callable, name);
    }
    // What cannot be called is the result of the call, stored already.
    return type->tp_call != NULL
        && _PySampling_NameSpecial(tables, type, &_Py_ID(__call__), name);
}


/* Rows. */

static int
find_name(struct _sampling_tables *tables, PyInterpreterState *interp,
          uint32_t mark, void *word0, void *word1, struct _sampling_name *name)
{
    name->kind = _PySampling_KIND_C;
    switch ((_PySampling_CalleeKind)(mark & 15)) {
    case _PySampling_CALLEE_FUNCTION:
        return name_function(interp, word0, word1, name);
    case _PySampling_CALLEE_METHOD:
        return name_method(tables, interp, word0, word1, name);
    case _PySampling_CALLEE_SLOT_WRAPPER:
        return name_slot_wrapper(tables, interp, word0, word1, name);
    case _PySampling_CALLEE_TYPE:
        return name_class(tables, interp, word0, name);
    case _PySampling_CALLEE_INSTANCE:
        return name_instance(tables, interp, word0, word1, name);
    case _PySampling_CALLEE_OPERATOR:
        return _PySampling_NameOperator(tables, interp, mark >> 4 & 255,
                                        mark >> 12, word0, word1, name);
    }
    return 0;
}

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
    struct _sampling_name name = {.kind = _PySampling_KIND_C};
    _PySampling_NameType(tables, type, &name);
    return intern_name(tables, &name);
}

static uint32_t
hash_callee_row(const struct _sampling_callee_row *row)
{
    return mix(row->word0 ^ row->mark, row->word1);
}

DEFINE_INDEX(callee, tables->callees[row].mark == 0)

static uint32_t
find_callee(const struct _sampling_tables *tables,
            const struct _sampling_callee_row *key)
{
    FOR_CANDIDATES(tables->callee_index, hash_callee_row(key), row) {
        const struct _sampling_callee_row *r = &tables->callees[row];
        if (r->mark == key->mark && r->word0 == key->word0
            && r->word1 == key->word1)
        {
            return row;
        }
    }
    return NO_ROW;
}

/* If there is room. */
static void
remember_callee(struct _sampling_tables *tables,
                const struct _sampling_callee_row *key)
{
    if (!reserve_callee_index(tables)) {
        return;
    }
    uint32_t row = tables->free_callee;
    if (row != NO_ROW) {
        tables->free_callee = tables->callees[row].frame;
    }
    else {
        if (!RESERVE(tables, callees)) {
            return;
        }
        row = tables->num_callees++;
    }
    tables->callees[row] = *key;
    index_put(&tables->callee_index, hash_callee_row(key), row);
}

uint32_t
_PySampling_InternCallee(struct _sampling_tables *tables,
                         PyInterpreterState *interp, _PySampling_Frame words,
                         _PySampling_Frame mark)
{
    struct _sampling_callee_row key = {
        .mark = (uint32_t)((uintptr_t)mark.instr >> 4),
        .word0 = (uintptr_t)words.code & ~(uintptr_t)1,
        .word1 = (uintptr_t)words.instr,
    };
    void *word1 = words.instr;
    int opcode = key.mark >> 4 & 255;
    if ((key.mark & 15) == _PySampling_CALLEE_OPERATOR
        && (opcode == LOAD_ATTR || opcode == STORE_ATTR))
    {
        // The attribute by what it says: its address may become another's.
        key.word1 = _PySampling_InternText(tables, word1);
    }
    int is_instance = (key.mark & 15) == _PySampling_CALLEE_INSTANCE;
    if (is_instance) {
        // One row for all instances, if the type is no metaclass.
        key.word1 = 0;
    }
    uint32_t row = find_callee(tables, &key);
    if (row == NO_ROW && is_instance) {
        key.word1 = (uintptr_t)word1;
        row = find_callee(tables, &key);
    }
    if (row != NO_ROW) {
        return tables->callees[row].frame;
    }
    struct _sampling_name name = {0};
    int found = find_name(tables, interp, key.mark, (void *)key.word0, word1,
                          &name);
    if (found == _PySampling_UNKNOWN) {
        tables->code_version++;     // nor may the drain remember it
        return NO_ROW;
    }
    if (is_instance && !PyType_HasFeature((PyTypeObject *)key.word0,
                                          Py_TPFLAGS_TYPE_SUBCLASS))
    {
        key.word1 = 0;
    }
    key.frame = found ? intern_name(tables, &name) : NO_ROW;
    remember_callee(tables, &key);
    return key.frame;
}

void
_PySampling_TablesForgetType(struct _sampling_tables *tables,
                             PyTypeObject *type)
{
    for (uint32_t row = 0; row < tables->num_callees; row++) {
        struct _sampling_callee_row *r = &tables->callees[row];
        if (r->mark != 0 && (r->word0 == (uintptr_t)type
                             || r->word1 == (uintptr_t)type))
        {
            index_remove(&tables->callee_index, hash_callee_row(r), row);
            r->mark = 0;
            r->frame = tables->free_callee;
            tables->free_callee = row;
            tables->code_version++;
        }
    }
}
