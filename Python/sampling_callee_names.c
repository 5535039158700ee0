/* Sampling profiler: what a C function or an operator is called.

   Owns the names of callees, as a user would write them, and the rows that
   remember them.  Must not know how a callee was found.

   Runs at the drain: with the GIL, but no Python object is made and no Python
   code runs.  Types are looked at directly once they have proved to be types:
   the drain comes before any type dies (_PySampling_TypeEnd).  All else that
   a callee refers to is read as memory that may be gone. */

#include "Python.h"
#include "opcode.h"

#include "pycore_dict.h"              // DK_IS_UNICODE()
#include "pycore_runtime.h"           // _PyRuntime
#include "pycore_sampling_callee.h"
#include "pycore_sampling_rows.h"
#include "pycore_typeobject.h"        // _PyType_GetDict()

#ifdef _PySampling_SUPPORTED

/* Longer names of functions in C are not believed. */
#define MAX_NAME_BYTES 256

/* Room for the longest name: two types, each of a module, and an operator. */
#define MAX_TEXT_BYTES (4 * MAX_NAME_BYTES)

struct text {
    int size;
    char bytes[MAX_TEXT_BYTES];
};

/* What is to be interned: the module is empty for what is built in. */
struct name {
    _PySampling_Kind kind;
    struct text module;
    struct text qualname;
};

/* How much of UTF-8 text goes into so much room: no part of a character. */
static size_t
whole_characters(const char *bytes, size_t size, size_t room)
{
    if (size <= room) {
        return size;
    }
    while (room > 0 && (bytes[room] & 0xC0) == 0x80) {
        room--;
    }
    return room;
}

static void
append(struct text *text, const char *bytes, size_t size)
{
    size = whole_characters(bytes, size,
                            sizeof(text->bytes) - (size_t)text->size);
    memcpy(text->bytes + text->size, bytes, size);
    text->size += (int)size;
}

static void
append_string(struct text *text, const char *string)
{
    append(text, string, strlen(string));
}

static void
append_object(struct text *text, struct _sampling_tables *tables,
              PyObject *string)
{
    uint32_t row = _PySampling_InternText(tables, string);
    if (row != NO_ROW) {
        const char *bytes = tables->string_bytes + tables->strings[row].offset;
        append(text, bytes,
               whole_characters(bytes, tables->strings[row].size,
                                MAX_NAME_BYTES));
    }
}


/* Types. */

/* Reads the head of what may be a type.  Freed memory often still looks like
   the object it was, so its reference count matters: a dead type has none. */
static int
read_type(PyInterpreterState *interp, PyTypeObject *type,
          PyTypeObject **metatype, unsigned long *flags)
{
    PyObject head;
    if ((uintptr_t)type % sizeof(void *) != 0
        || !_PySampling_ReadMemory(interp, type, &head, sizeof(head))
        || !_PySampling_ReadMemory(interp, &type->tp_flags, flags,
                                   sizeof(*flags)))
    {
        return 0;
    }
    *metatype = head.ob_type;
    return Py_REFCNT(&head) > 0 && (*flags & Py_TPFLAGS_READY) != 0;
}

/* Does the address found by the handler hold a type?  Once it has, its fields
   may be used.  What it points to must lead to `type` itself: free lists keep
   pointers to other free objects where objects have their type. */
static int
is_type(PyInterpreterState *interp, PyTypeObject *type)
{
    PyTypeObject *metatype, *metametatype;
    unsigned long flags;
    if (!read_type(interp, type, &metatype, &flags)) {
        return 0;
    }
    if (metatype == &PyType_Type) {
        return 1;
    }
    return read_type(interp, metatype, &metametatype, &flags)
        && metametatype == &PyType_Type
        && (flags & Py_TPFLAGS_TYPE_SUBCLASS) != 0;
}

static PyObject *
dict_get(PyObject *dict, PyObject *key)
{
    // A dict whose keys are all strings compares them without calling out.
    if (dict == NULL || !PyDict_Check(dict)
        || !DK_IS_UNICODE(((PyDictObject *)dict)->ma_keys))
    {
        return NULL;
    }
    return _PyDict_GetItem_KnownHash(dict, key,
                                     ((PyASCIIObject *)key)->hash);
}

/* The class of the MRO that has the attribute, and its value; NULL: none. */
static PyTypeObject *
find_owner(PyTypeObject *type, PyObject *attribute, PyObject **value)
{
    PyObject *mro = type->tp_mro;
    if (mro == NULL || !PyTuple_Check(mro)) {
        return NULL;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(mro); i++) {
        PyTypeObject *base = (PyTypeObject *)PyTuple_GET_ITEM(mro, i);
        *value = dict_get(_PyType_GetDict(base), attribute);
        if (*value != NULL) {
            return base;
        }
    }
    return NULL;
}

/* Splits at the last dot: what is before names a module. */
static void
append_dotted(struct text *module, struct text *qualname, const char *dotted)
{
    const char *dot = strrchr(dotted, '.');
    if (dot != NULL) {
        append(module, dotted, (size_t)(dot - dotted));
        append_string(qualname, dot + 1);
    }
    else {
        append_string(qualname, dotted);
    }
}

static void
name_type(struct _sampling_tables *tables, PyTypeObject *type,
          struct name *name)
{
    if (!PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE)) {
        append_dotted(&name->module, &name->qualname, type->tp_name);
        return;
    }
    PyObject *module = dict_get(type->tp_dict, &_Py_ID(__module__));
    if (module == NULL || !PyUnicode_Check(module)) {
        append_dotted(&name->module, &name->qualname, type->tp_name);
        return;
    }
    if (!_PyUnicode_EqualToASCIIString(module, "builtins")) {
        append_object(&name->module, tables, module);
    }
    append_object(&name->qualname, tables,
                  ((PyHeapTypeObject *)type)->ht_qualname);
}

static void
name_attribute(struct _sampling_tables *tables, PyTypeObject *type,
               PyObject *attribute, struct name *name)
{
    name_type(tables, type, name);
    append_string(&name->qualname, ".");
    append_object(&name->qualname, tables, attribute);
}


/* Calls. */

/* A name in C: ASCII, as identifiers and, for some generated code, "<" ">". */
static int
read_c_name(PyInterpreterState *interp, const char *address, struct text *out)
{
    char bytes[MAX_NAME_BYTES];
    int size = _PySampling_ReadString(interp, address, bytes, sizeof(bytes));
    if (size <= 0) {
        return 0;
    }
    for (int i = 0; i < size; i++) {
        if (bytes[i] <= ' ' || bytes[i] > '~') {
            return 0;
        }
    }
    append(out, bytes, (size_t)size);
    return 1;
}

/* A str that may be gone: the name of a module. */
static int
read_module_name(PyInterpreterState *interp, PyObject *object,
                 struct text *out)
{
    PyASCIIObject head;
    char bytes[MAX_NAME_BYTES];
    if (!_PySampling_ReadMemory(interp, object, &head, sizeof(head))
        || head.ob_base.ob_type != &PyUnicode_Type
        || !head.state.compact || !head.state.ascii
        || head.length <= 0 || head.length >= (Py_ssize_t)sizeof(bytes)
        || !_PySampling_ReadMemory(interp, (PyASCIIObject *)object + 1, bytes,
                                   (size_t)head.length))
    {
        return 0;
    }
    append(out, bytes, (size_t)head.length);
    return 1;
}

static int
read_method_name(PyInterpreterState *interp, const PyMethodDef *method,
                 struct text *out)
{
    const char *address;
    return _PySampling_ReadMemory(interp, &method->ml_name, &address,
                                  sizeof(address))
        && read_c_name(interp, address, out);
}

/* What the words lead to is gone, and something else may be there soon: no
   answer that holds. */
#define UNKNOWN (-1)

static int
name_function(PyInterpreterState *interp, const PyMethodDef *method,
              PyObject *module, struct name *name)
{
    return read_module_name(interp, module, &name->module)
        && read_method_name(interp, method, &name->qualname);
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

/* The class that defines the method: one of the MRO, or, as `type` may itself be
   what the method is bound to, its metaclass. */
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
            const PyMethodDef *method, PyTypeObject *type, struct name *name)
{
    if (!is_type(interp, type)) {
        return UNKNOWN;
    }
    name_type(tables, definer_of(type, method), name);
    append_string(&name->qualname, ".");
    return read_method_name(interp, method, &name->qualname);
}

static int
name_slot_wrapper(struct _sampling_tables *tables, PyInterpreterState *interp,
                  const struct wrapperbase *wrapper, PyTypeObject *type,
                  struct name *name)
{
    const char *address;
    if (!is_type(interp, type)
        || !_PySampling_ReadMemory(interp, &wrapper->name, &address,
                                   sizeof(address)))
    {
        return 0;
    }
    name_type(tables, type, name);
    append_string(&name->qualname, ".");
    return read_c_name(interp, address, &name->qualname);
}

static int
name_class(struct _sampling_tables *tables, PyInterpreterState *interp,
           PyTypeObject *type, struct name *name)
{
    if (!is_type(interp, type)) {
        return UNKNOWN;
    }
    name_type(tables, type, name);
    return 1;
}

/* A special method in C.  One in Python has a frame of its own. */
static int
name_special(struct _sampling_tables *tables, PyTypeObject *type,
             PyObject *attribute, struct name *name)
{
    PyObject *value;
    PyTypeObject *owner = find_owner(type, attribute, &value);
    if (owner == NULL || PyFunction_Check(value)) {
        return 0;
    }
    name_attribute(tables, owner, attribute, name);
    return 1;
}

static int
name_instance(struct _sampling_tables *tables, PyInterpreterState *interp,
              PyTypeObject *type, PyTypeObject *callable, struct name *name)
{
    if (!is_type(interp, type)) {
        return UNKNOWN;
    }
    if (PyType_HasFeature(type, Py_TPFLAGS_TYPE_SUBCLASS)) {
        return name_class(tables, interp, callable, name);
    }
    // What cannot be called is the result of the call, stored already.
    return type->tp_call != NULL
        && name_special(tables, type, &_Py_ID(__call__), name);
}


/* Operators with two operands. */

struct binary_operator {
    const char *sign;
    PyObject *left;
    PyObject *right;
    PyObject *in_place;
};

#define ID(NAME) ((PyObject *)&_Py_ID(NAME))
#define OPERATOR(SIGN, NAME) \
    {SIGN, ID(__##NAME##__), ID(__r##NAME##__), ID(__i##NAME##__)}

/* Ordered as NB_ADD and so on. */
static const struct binary_operator arithmetic[] = {
    OPERATOR("+", add),
    OPERATOR("&", and),
    OPERATOR("//", floordiv),
    OPERATOR("<<", lshift),
    OPERATOR("@", matmul),
    OPERATOR("*", mul),
    OPERATOR("%", mod),
    OPERATOR("|", or),
    OPERATOR("**", pow),
    OPERATOR(">>", rshift),
    OPERATOR("-", sub),
    OPERATOR("/", truediv),
    OPERATOR("^", xor),
};

/* Ordered as Py_LT and so on. */
static const struct binary_operator comparison[] = {
    {"<", ID(__lt__), ID(__gt__), NULL},
    {"<=", ID(__le__), ID(__ge__), NULL},
    {"==", ID(__eq__), ID(__eq__), NULL},
    {"!=", ID(__ne__), ID(__ne__), NULL},
    {">", ID(__gt__), ID(__lt__), NULL},
    {">=", ID(__ge__), ID(__le__), NULL},
};

/* Numbers of the core know those before them in the order int, float, complex
   and leave all else to the other operand. */
static int
number_rank(PyTypeObject *type)
{
    return PyType_IsSubtype(type, &PyLong_Type) ? 1
        : PyType_IsSubtype(type, &PyFloat_Type) ? 2
        : PyType_IsSubtype(type, &PyComplex_Type) ? 3 : 0;
}

/* Is it the second operand's type that does the work? */
static int
second_decides(PyTypeObject *first, PyTypeObject *owner, PyObject *value,
               PyTypeObject *second, PyObject *reflected)
{
    if (first == second) {
        return 0;
    }
    PyObject *of_first = NULL, *of_second = NULL;
    (void)find_owner(first, reflected, &of_first);
    if (find_owner(second, reflected, &of_second) == NULL) {
        return 0;
    }
    if (PyType_IsSubtype(second, first) && of_first != of_second) {
        return 1;       // a subclass that redefines it comes first
    }
    int rank = number_rank(owner);
    int other = number_rank(second);
    return rank != 0 && !PyFunction_Check(value)
        && (other == 0 || other > rank);
}

static void
append_type(struct text *text, struct _sampling_tables *tables,
            PyTypeObject *type)
{
    struct name name = {0};
    name_type(tables, type, &name);
    if (name.module.size != 0) {
        append(text, name.module.bytes, (size_t)name.module.size);
        append_string(text, ".");
    }
    append(text, name.qualname.bytes, (size_t)name.qualname.size);
}

static int
name_binary(struct _sampling_tables *tables,
            const struct binary_operator *operator, int in_place,
            PyTypeObject *first, PyTypeObject *second, struct name *name)
{
    PyObject *value = NULL;
    if (in_place && find_owner(first, operator->in_place, &value) != NULL) {
        return name_special(tables, first, operator->in_place, name);
    }
    PyTypeObject *owner = find_owner(first, operator->left, &value);
    if (owner != NULL && !second_decides(first, owner, value, second,
                                         operator->right))
    {
        return name_special(tables, first, operator->left, name);
    }
    if (find_owner(second, operator->right, &value) == NULL
        || PyFunction_Check(value))
    {
        return 0;
    }
    append_type(&name->qualname, tables, first);
    append_string(&name->qualname, " ");
    append_string(&name->qualname, operator->sign);
    append_string(&name->qualname, in_place ? "= " : " ");
    append_type(&name->qualname, tables, second);
    return 1;
}


/* Operators with one operand, and what always does the same. */

/* The special methods that an instruction calls: the first that there is. */
static int
special_methods(int opcode, int oparg, PyObject *methods[2])
{
    methods[1] = NULL;
    switch (opcode) {
    case CONTAINS_OP:
        methods[0] = ID(__contains__);
        methods[1] = ID(__iter__);
        return 1;
    case TO_BOOL:
        methods[0] = ID(__bool__);
        methods[1] = ID(__len__);
        return 1;
    case BINARY_SUBSCR:
    case BINARY_SLICE:
        methods[0] = ID(__getitem__);
        return 1;
    case STORE_SUBSCR:
    case STORE_SLICE:
        methods[0] = ID(__setitem__);
        return 1;
    case DELETE_SUBSCR:
        methods[0] = ID(__delitem__);
        return 1;
    case FOR_ITER:
        methods[0] = ID(__next__);
        return 1;
    case SEND:
        methods[0] = ID(send);
        methods[1] = ID(__next__);
        return 1;
    case GET_ITER:
    case UNPACK_SEQUENCE:
    case UNPACK_EX:
        methods[0] = ID(__iter__);
        return 1;
    case GET_AITER:
        methods[0] = ID(__aiter__);
        return 1;
    case GET_ANEXT:
        methods[0] = ID(__anext__);
        return 1;
    case GET_AWAITABLE:
        methods[0] = ID(__await__);
        return 1;
    case GET_LEN:
        methods[0] = ID(__len__);
        return 1;
    case UNARY_NEGATIVE:
        methods[0] = ID(__neg__);
        return 1;
    case UNARY_INVERT:
        methods[0] = ID(__invert__);
        return 1;
    case FORMAT_SIMPLE:
    case FORMAT_WITH_SPEC:
        methods[0] = ID(__format__);
        return 1;
    case CONVERT_VALUE:
        methods[0] = oparg == FVC_STR ? ID(__str__) : ID(__repr__);
        return 1;
    case BEFORE_WITH:
        methods[0] = ID(__enter__);
        return 1;
    default:
        return 0;
    }
}

static const char *
fixed_name(int opcode)
{
    switch (opcode) {
    case LIST_APPEND:
        return "list.append";
    case LIST_EXTEND:
        return "list.extend";
    case SET_ADD:
        return "set.add";
    case SET_UPDATE:
        return "set.update";
    case MAP_ADD:
        return "dict.__setitem__";
    case DICT_UPDATE:
    case DICT_MERGE:
        return "dict.update";
    case BUILD_STRING:
        return "str.join";
    case LOAD_GLOBAL:
    case LOAD_NAME:
        return "dict.__getitem__";
    default:
        return NULL;
    }
}

/* An attribute kept by C code, or a look-up that is not the common one. */
static int
name_access(struct _sampling_tables *tables, PyTypeObject *type,
            PyObject *attribute, PyObject *special, struct name *name)
{
    PyObject *value;
    PyTypeObject *owner = find_owner(type, attribute, &value);
    if (owner != NULL && (Py_IS_TYPE(value, &PyGetSetDescr_Type)
                          || Py_IS_TYPE(value, &PyMemberDescr_Type)))
    {
        name_attribute(tables, owner, attribute, name);
        return 1;
    }
    int is_common = special == ID(__setattr__)
        ? type->tp_setattro == PyObject_GenericSetAttr
        : type->tp_getattro == PyObject_GenericGetAttr
          || find_owner(type, ID(__getattr__), &value) != NULL;
    if (is_common) {
        return 0;
    }
    return name_special(tables, type, special, name);
}

static int
name_operator(struct _sampling_tables *tables, PyInterpreterState *interp,
              int opcode, int oparg, PyTypeObject *first, void *second,
              struct name *name)
{
    name->kind = _PySampling_KIND_OPERATOR;
    const char *fixed = fixed_name(opcode);
    if (fixed != NULL) {
        append_string(&name->qualname, fixed);
        return 1;
    }
    if (opcode == IMPORT_NAME) {
        append_string(&name->module, "builtins");
        append_string(&name->qualname, "__import__");
        return 1;
    }
    if (!is_type(interp, first)
        || ((opcode == BINARY_OP || opcode == COMPARE_OP)
            && !is_type(interp, second)))
    {
        return UNKNOWN;
    }
    PyObject *methods[2], *value;
    switch (opcode) {
    case FOR_ITER:
    case SEND:
        if (first == &PyGen_Type || first == &PyCoro_Type) {
            return 0;       // its own frame tells
        }
        break;
    case BINARY_OP: {
        int in_place = oparg >= NB_INPLACE_ADD;
        return oparg <= NB_OPARG_LAST
            && name_binary(tables,
                           &arithmetic[in_place ? oparg - NB_INPLACE_ADD
                                                : oparg],
                           in_place, first, second, name);
    }
    case TO_BOOL:
        if (first == &PyBool_Type) {
            return 0;       // nothing to do, or done
        }
        break;
    case COMPARE_OP:
        if (first == &PyBool_Type && second != &PyBool_Type) {
            return 0;       // most likely the result, stored already
        }
        return oparg >> 5 <= Py_GE
            && name_binary(tables, &comparison[oparg >> 5], 0, first, second,
                           name);
    case LOAD_ATTR:
        return name_access(tables, first, second, ID(__getattribute__), name);
    case STORE_ATTR:
        return name_access(tables, first, second, ID(__setattr__), name);
    }
    if (!special_methods(opcode, oparg, methods)) {
        return 0;
    }
    if (methods[1] != NULL && find_owner(first, methods[0], &value) == NULL) {
        methods[0] = methods[1];
    }
    return name_special(tables, first, methods[0], name);
}


/* Rows. */

static int
find_name(struct _sampling_tables *tables, PyInterpreterState *interp,
          uint32_t mark, void *word0, void *word1, struct name *name)
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
        return name_operator(tables, interp, mark >> 4 & 255, mark >> 12,
                             word0, word1, name);
    }
    return 0;
}

static uint32_t
intern_name(struct _sampling_tables *tables, const struct name *name)
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

uint32_t
_PySampling_TablesCallee(struct _sampling_tables *tables,
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
    struct name name = {0};
    int found = find_name(tables, interp, key.mark, (void *)key.word0, word1,
                          &name);
    if (found == UNKNOWN) {
        tables->code_version++;     // nor may the drain remember it
        return NO_ROW;
    }
    if (is_instance && !PyType_HasFeature((PyTypeObject *)key.word0,
                                          Py_TPFLAGS_TYPE_SUBCLASS))
    {
        key.word1 = 0;
    }
    uint32_t hash = hash_callee_row(&key);
    key.frame = found ? intern_name(tables, &name) : NO_ROW;
    if (!reserve_callee_index(tables)) {
        return key.frame;
    }
    row = tables->free_callee;
    if (row != NO_ROW) {
        tables->free_callee = tables->callees[row].frame;
    }
    else {
        if (!RESERVE(tables, callees)) {
            return key.frame;
        }
        row = tables->num_callees++;
    }
    tables->callees[row] = key;
    index_put(&tables->callee_index, hash, row);
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

#endif  // _PySampling_SUPPORTED
