/* Sampling profiler: what an operator is called.

   Owns what instructions do that call nothing, and which operand's type does
   it.  Must not know how the types were found.

   Runs at the drain: with the GIL, but no Python object is made and no Python
   code runs. */

#include "Python.h"
#include "opcode.h"

#include "pycore_runtime.h"           // _PyRuntime

#include "naming.h"

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

static const struct binary_operator binary_operators[] = {
    // Ordered as NB_ADD and so on.
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
    // Ordered as Py_LT and so on.
    {"<", ID(__lt__), ID(__gt__), NULL},
    {"<=", ID(__le__), ID(__ge__), NULL},
    {"==", ID(__eq__), ID(__eq__), NULL},
    {"!=", ID(__ne__), ID(__ne__), NULL},
    {">", ID(__gt__), ID(__lt__), NULL},
    {">=", ID(__ge__), ID(__le__), NULL},
};
#define COMPARISONS (binary_operators + NB_INPLACE_ADD)

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
    (void)_PySampling_FindOwner(first, reflected, &of_first);
    if (_PySampling_FindOwner(second, reflected, &of_second) == NULL) {
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
append_type(struct _sampling_text *text, struct _sampling_tables *tables,
            PyTypeObject *type)
{
    struct _sampling_name name;
    _PySampling_ClearName(&name);
    _PySampling_NameType(tables, type, &name);
    if (name.module.size != 0) {
        _PySampling_AppendBytes(text, name.module.bytes,
                                (size_t)name.module.size);
        _PySampling_AppendString(text, ".");
    }
    _PySampling_AppendBytes(text, name.qualname.bytes,
                            (size_t)name.qualname.size);
}

static int
name_binary(struct _sampling_tables *tables,
            const struct binary_operator *operator, int in_place,
            PyTypeObject *first, PyTypeObject *second,
            struct _sampling_name *name)
{
    PyObject *value = NULL;
    if (in_place
        && _PySampling_FindOwner(first, operator->in_place, &value) != NULL)
    {
        return _PySampling_NameSpecial(tables, first, operator->in_place,
                                       name);
    }
    PyTypeObject *owner = _PySampling_FindOwner(first, operator->left, &value);
    if (owner != NULL && !second_decides(first, owner, value, second,
                                         operator->right))
    {
        return _PySampling_NameSpecial(tables, first, operator->left, name);
    }
    if (_PySampling_FindOwner(second, operator->right, &value) == NULL
        || PyFunction_Check(value))
    {
        return 0;
    }
    append_type(&name->qualname, tables, first);
    _PySampling_AppendString(&name->qualname, " ");
    _PySampling_AppendString(&name->qualname, operator->sign);
    _PySampling_AppendString(&name->qualname, in_place ? "= " : " ");
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
            PyObject *attribute, PyObject *special,
            struct _sampling_name *name)
{
    PyObject *value;
    PyTypeObject *owner = _PySampling_FindOwner(type, attribute, &value);
    if (owner != NULL && (Py_IS_TYPE(value, &PyGetSetDescr_Type)
                          || Py_IS_TYPE(value, &PyMemberDescr_Type)))
    {
        _PySampling_NameAttribute(tables, owner, attribute, name);
        return 1;
    }
    int is_common = special == ID(__setattr__)
        ? type->tp_setattro == PyObject_GenericSetAttr
        : type->tp_getattro == PyObject_GenericGetAttr
          || _PySampling_FindOwner(type, ID(__getattr__), &value) != NULL;
    if (is_common) {
        return 0;
    }
    return _PySampling_NameSpecial(tables, type, special, name);
}

int
_PySampling_NameOperator(struct _sampling_tables *tables,
                         PyInterpreterState *interp, int opcode, int oparg,
                         PyTypeObject *first, void *second,
                         struct _sampling_name *name)
{
    name->kind = _PySampling_KIND_OPERATOR;
    const char *fixed = fixed_name(opcode);
    if (fixed != NULL) {
        _PySampling_AppendString(&name->qualname, fixed);
        return 1;
    }
    if (opcode == IMPORT_NAME) {
        _PySampling_AppendString(&name->module, "builtins");
        _PySampling_AppendString(&name->qualname, "__import__");
        return 1;
    }
    if (!_PySampling_IsType(interp, first)
        || ((opcode == BINARY_OP || opcode == COMPARE_OP)
            && !_PySampling_IsType(interp, second)))
    {
        return 0;
    }
    PyObject *methods[2], *value;
    switch (opcode) {
    case FOR_ITER:
    case SEND:
        if (first == &PyGen_Type || first == &PyCoro_Type) {
            return 0;       // its own frame says it
        }
        break;
    case BINARY_OP: {
        int in_place = oparg >= NB_INPLACE_ADD;
        return oparg <= NB_OPARG_LAST
            && name_binary(tables,
                           &binary_operators[in_place ? oparg - NB_INPLACE_ADD
                                                      : oparg],
                           in_place, first, second, name);
    }
    case TO_BOOL:
        if (first == &PyBool_Type) {
            return 0;       // nothing to do, or done
        }
        break;
    case FORMAT_SIMPLE:
        if (first == &PyUnicode_Type) {
            return 0;       // the same
        }
        break;
    case COMPARE_OP:
        if (first == &PyBool_Type && second != &PyBool_Type) {
            return 0;       // most likely the result, stored already
        }
        return oparg >> 5 <= Py_GE
            && name_binary(tables, &COMPARISONS[oparg >> 5], 0, first, second,
                           name);
    case LOAD_ATTR:
        return name_access(tables, first, second, ID(__getattribute__), name);
    case STORE_ATTR:
        return name_access(tables, first, second, ID(__setattr__), name);
    }
    if (!special_methods(opcode, oparg, methods)) {
        return 0;
    }
    if (methods[1] != NULL
        && _PySampling_FindOwner(first, methods[0], &value) == NULL)
    {
        methods[0] = methods[1];
    }
    return _PySampling_NameSpecial(tables, first, methods[0], name);
}
