/* Sampling profiler: which C function or operator a Python frame is in.

   Owns the choice of the words that identify a callee.  Must not know names.

   Everything here may run in the signal handler: no lock, no allocation.  The
   frame and its code object are alive; the objects on its evaluation stack
   need not be, since an instruction leaves the pointers behind when it
   releases them.  So objects are read with _PySampling_ReadMemory() only, and
   the types found are examined no closer than at the drain, which takes them
   for types only if they are. */

#include "Python.h"
#include "opcode.h"

#include "pycore_code.h"              // _PyCode_CODE()
#include "pycore_descrobject.h"       // _PyMethodWrapper_Type
#include "pycore_opcode_metadata.h"   // _PyOpcode_Deopt

#include "../base/frame.h"
#include "native.h"

#define READ(INTERP, FROM, TO) \
    _PySampling_ReadMemory((INTERP), (FROM), (TO), sizeof(*(TO)))

/* The type of an object, or NULL.  NULL on the stack is a method call's
   missing self, or a slot that a deleted variable left. */
static PyTypeObject *
type_of(PyInterpreterState *interp, PyObject *object)
{
    // Not static_assert(), which Tools/c-analyzer cannot parse in C files.
    Py_BUILD_ASSERT(offsetof(PyObject, ob_type) == sizeof(Py_ssize_t));
    struct { Py_ssize_t refcnt; PyTypeObject *type; } head;
    if ((uintptr_t)object % sizeof(void *) != 0
        || !READ(interp, object, &head)
        || (uintptr_t)head.type % sizeof(void *) != 0)
    {
        return NULL;
    }
    return head.type;
}

static int
add_callee(_PySampling_Frame *out, _PySampling_CalleeKind kind, int opcode,
           int oparg, const void *word0, const void *word1)
{
    out[0] = _PySampling_CalleeWords((void *)word0, (void *)word1);
    out[1] = _PySampling_CalleeMark(kind, opcode, oparg);
    return _PySampling_CALLEE_ENTRIES;
}


/* Calls. */

/* What pybind11 binds its functions to begins with the address of a record,
   which has the definition of the function and the class or module that it is
   in, one after the other; where depends on the version.  Returns the class,
   or NULL. */
static PyTypeObject *
class_of_pybind11(PyInterpreterState *interp,
                  const PyCFunctionObject *function)
{
    struct { PyObject head; void **record; } self;
    void *words[16];
    unsigned long flags;
    PyTypeObject *type = type_of(interp, function->m_self);
    if (type == NULL || type == &PyModule_Type
        || !_PySampling_ReadMemory(interp, function->m_self, &self,
                                   sizeof(self))
        || !READ(interp, (void *(*)[16])self.record, &words))
    {
        return NULL;
    }
    PyTypeObject *scope = NULL;
    for (size_t i = 1; scope == NULL && i < Py_ARRAY_LENGTH(words); i++) {
        if (words[i - 1] == function->m_ml) {
            scope = words[i];
        }
    }
    type = scope == NULL ? NULL : type_of(interp, (PyObject *)scope);
    return type != NULL && READ(interp, &type->tp_flags, &flags)
            && (flags & Py_TPFLAGS_TYPE_SUBCLASS)
        ? scope : NULL;
}

static int
add_function(PyInterpreterState *interp, PyObject *callable,
             _PySampling_Frame *out)
{
    PyCFunctionObject function;
    if (!READ(interp, (PyCFunctionObject *)callable, &function)) {
        return 0;
    }
    if (function.m_module != NULL) {
        PyTypeObject *scope = class_of_pybind11(interp, &function);
        return scope != NULL
            ? add_callee(out, _PySampling_CALLEE_METHOD, 0, 0, function.m_ml,
                         scope)
            : add_callee(out, _PySampling_CALLEE_FUNCTION, 0, 0,
                         function.m_ml, function.m_module);
    }
    // Bound to an object, or, as dict.fromkeys is, to a class, which may have
    // a metaclass of its own.
    PyTypeObject *type = type_of(interp, function.m_self);
    int flags;
    if (type == &PyType_Type
        || (_PySampling_ReadMemory(interp, (const char *)function.m_ml
                                           + offsetof(PyMethodDef, ml_flags),
                                   &flags, sizeof(flags))
            && (flags & METH_CLASS)))
    {
        type = (PyTypeObject *)function.m_self;
    }
    return type == NULL ? 0
        : add_callee(out, _PySampling_CALLEE_METHOD, 0, 0,
                     function.m_ml, type);
}

static int
add_descriptor(PyInterpreterState *interp, PyObject *callable,
               _PySampling_CalleeKind kind, _PySampling_Frame *out)
{
    // Both kinds of descriptors have their definition at the same place.
    Py_BUILD_ASSERT(offsetof(PyMethodDescrObject, d_method)
                    == offsetof(PyWrapperDescrObject, d_base));
    struct { PyDescrObject common; void *definition; } descriptor;
    if (!_PySampling_ReadMemory(interp, callable, &descriptor,
                                sizeof(descriptor)))
    {
        return 0;
    }
    return add_callee(out, kind, 0, 0, descriptor.definition,
                      descriptor.common.d_type);
}

/* What is bound to an object by a method; others are as they are. */
static PyObject *
unbind(PyInterpreterState *interp, PyObject *callable)
{
    PyMethodObject method;
    return type_of(interp, callable) == &PyMethod_Type
            && READ(interp, (PyMethodObject *)callable, &method)
        ? method.im_func : callable;
}

int
_PySampling_FindCallee(PyInterpreterState *interp, PyObject *callable,
                       _PySampling_Frame *out)
{
    callable = unbind(interp, callable);
    PyTypeObject *type = type_of(interp, callable);
    if (type == NULL || type == &PyFunction_Type || type == &PyMethod_Type) {
        return 0;       // Python code: its own frame says it
    }
    if (type == &PyCFunction_Type || type == &PyCMethod_Type) {
        return add_function(interp, callable, out);
    }
    if (type == &PyMethodDescr_Type || type == &PyClassMethodDescr_Type) {
        return add_descriptor(interp, callable,
                              _PySampling_CALLEE_METHOD, out);
    }
    if (type == &PyWrapperDescr_Type) {
        return add_descriptor(interp, callable,
                              _PySampling_CALLEE_SLOT_WRAPPER, out);
    }
    if (type == &PyType_Type) {
        return add_callee(out, _PySampling_CALLEE_TYPE, 0, 0, callable,
                          NULL);
    }
    // Maybe a class with a metaclass of its own: the drain can see.
    return add_callee(out, _PySampling_CALLEE_INSTANCE, 0, 0, type, callable);
}


/* Operators. */

/* Instructions that always do the same.  A global that is specialized needs no
   look-up. */
static int
needs_no_operand(int specialized)
{
    switch (specialized) {
    case LOAD_GLOBAL:
    case LOAD_NAME:
    case LIST_APPEND:
    case LIST_EXTEND:
    case SET_ADD:
    case SET_UPDATE:
    case MAP_ADD:
    case DICT_UPDATE:
    case DICT_MERGE:
    case BUILD_STRING:
    case IMPORT_NAME:
        return 1;
    default:
        return 0;
    }
}

static int
has_two_operands(int opcode)
{
    return opcode == BINARY_OP || opcode == COMPARE_OP;
}

static int
add_operator(PyInterpreterState *interp, struct _sampling_slots *slots,
             PyCodeObject *code, _Py_CODEUNIT *instr, int opcode,
             PyObject **operands, _PySampling_Frame *out)
{
    PyTypeObject *first = type_of(interp, operands[0]);
    if (first == NULL) {
        return 0;
    }
    void *second = NULL;
    int oparg = instr->op.arg;
    if (has_two_operands(opcode)) {
        second = type_of(interp, operands[1]);
        if (second == NULL) {
            return 0;
        }
    }
    else if (opcode == LOAD_ATTR || opcode == STORE_ATTR) {
        int name = _PySampling_OpargOf(slots, code, instr);
        if (opcode == LOAD_ATTR) {
            name >>= 1;
        }
        if (name >= PyTuple_GET_SIZE(code->co_names)) {
            return 0;
        }
        second = PyTuple_GET_ITEM(code->co_names, name);
        oparg = 0;
    }
    else if (opcode != CONVERT_VALUE) {
        oparg = 0;      // it only says where to jump, or how much to take
    }
    return add_callee(out, _PySampling_CALLEE_OPERATOR, opcode, oparg, first,
                      second);
}


int
_PySampling_OpcodeAt(PyCodeObject *code, _Py_CODEUNIT *instr)
{
    Py_ssize_t unit = instr - _PyCode_CODE(code);
    if (unit < 0 || unit >= Py_SIZE(code)) {
        return 0;
    }
    int opcode = instr->op.code;
    return opcode < MIN_INSTRUMENTED_OPCODE
        ? opcode : _Py_GetBaseOpcode(code, (int)unit);
}

int
_PySampling_CaptureCallee(PyInterpreterState *interp,
                          struct _sampling_slots *slots,
                          _PyInterpreterFrame *frame,
                          const struct _sampling_call *call,
                          _PySampling_Frame *out)
{
    PyCodeObject *code = _PySampling_FrameCode(frame);
    _Py_CODEUNIT *instr = _PySampling_FrameInstr(frame);
    int specialized = _PySampling_OpcodeAt(code, instr);
    int opcode = _PyOpcode_Deopt[specialized];
    if (needs_no_operand(specialized)) {
        return add_callee(out, _PySampling_CALLEE_OPERATOR, opcode, 0,
                          NULL, NULL);
    }
    int slot = _PySampling_SlotOf(slots, code, instr);
    if (slot == _PySampling_NO_SLOT
        || slot + has_two_operands(opcode) >= code->co_stacksize)
    {
        return 0;
    }
    PyObject *of_call[2];
    PyObject **operands = _PySampling_FrameOperands(frame, code) + slot;
    if (call != NULL) {
        if (slot + 1 >= _PySampling_CALL_OPERANDS) {
            return 0;
        }
        of_call[0] = call->operands[slot];
        of_call[1] = call->operands[slot + 1];
        operands = of_call;
    }
    switch (opcode) {
    case CALL:
    case CALL_KW:
    case CALL_FUNCTION_EX:
    case WITH_EXCEPT_START:
        return _PySampling_FindCallee(interp, operands[0], out);
    default:
        return add_operator(interp, slots, code, instr, opcode, operands,
                            out);
    }
}

void
_PySampling_KeepCall(_PyInterpreterFrame *frame, struct _sampling_call *call)
{
    call->frame = NULL;
    if (frame == NULL || _PySampling_IsEntry(frame)) {
        return;
    }
    PyCodeObject *code = _PySampling_FrameCode(frame);
    int num_operands =
        Py_MIN(code->co_stacksize, _PySampling_CALL_OPERANDS);
    memset(call->operands, 0, sizeof(call->operands));
    memcpy(call->operands, _PySampling_FrameOperands(frame, code),
           (size_t)num_operands * sizeof(PyObject *));
    call->instr = _PySampling_FrameInstr(frame);
    call->frame = frame;
}

_PySampling_RACES _PyInterpreterFrame *
_PySampling_ReadSleeper(PyThreadState *tstate,
                        struct _sampling_call *sleeper)
{
    // It may wake up meanwhile, and write without a lock.
    _PyInterpreterFrame *at;
    _PyInterpreterFrame frame;
    PyCodeObject code;
    if (!_PySampling_ReadMemory(NULL, _PySampling_CurrentFrameSlot(tstate),
                                &at, sizeof(at))
        || !_PySampling_ReadMemory(NULL, at, &frame, sizeof(frame))
        || _PySampling_IsEntry(&frame)
        || !_PySampling_ReadMemory(NULL, _PySampling_FrameCode(&frame), &code,
                                   sizeof(code)))
    {
        return NULL;
    }
    int num_operands =
        Py_MIN(code.co_stacksize, _PySampling_CALL_OPERANDS);
    if (num_operands <= 0 || code.co_nlocalsplus < 0) {
        return NULL;
    }
    memset(sleeper->operands, 0, sizeof(sleeper->operands));
    sleeper->instr = _PySampling_FrameInstr(&frame);
    if (!_PySampling_ReadMemory(NULL, _PySampling_FrameOperands(at, &code),
                                sleeper->operands,
                                (size_t)num_operands * sizeof(PyObject *)))
    {
        return NULL;
    }
    return at;
}
