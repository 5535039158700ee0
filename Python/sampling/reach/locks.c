/* Sampling profiler: the locks that a thread wants and has.

   Owns what can be read of them off a stack.  A thread wants the lock whose
   acquire() its innermost frame is in.  It has those inside of whose `with` a
   frame stands: their __exit__ lies on its evaluation stack.  Others may have
   been acquired, too; nothing is said of them.  Async-signal-safe, while
   nobody but the caller runs Python code. */

#include "Python.h"
#include "opcode.h"

#include "pycore_code.h"              // _PyCode_CODE()
#include "pycore_opcode_metadata.h"   // _PyOpcode_Deopt

#include "../base/frame.h"
#include "../native/naming.h"
#include "reach.h"

/* As Lib/profile_sampling/_reach/locks.py has it. */
enum {WANTS = 1, HAS = 2};

/* Private to Modules/_threadmodule.c. */
struct rlock {
    PyObject_HEAD
    PyThread_type_lock lock;
    PyThread_ident_t owner;
};

#define READ(INTERP, FROM, TO) \
    _PySampling_ReadMemory((INTERP), (FROM), (TO), sizeof(*(TO)))

enum {NO_LOCK = 0, LOCK, RLOCK};

static int
kind_of(PyInterpreterState *interp, PyObject *object)
{
    PyObject head;
    if ((uintptr_t)object % sizeof(void *) != 0
        || !READ(interp, object, &head)
        || !_PySampling_IsType(interp, head.ob_type))
    {
        return NO_LOCK;
    }
    const char *name = head.ob_type->tp_name;
    return strcmp(name, "_thread.lock") == 0 ? LOCK
        : strcmp(name, "_thread.RLock") == 0 ? RLOCK : NO_LOCK;
}

static void
put_lock(struct _sampling_records *r, PyInterpreterState *interp, int what,
         PyObject *object)
{
    struct rlock lock = {.owner = 0};
    int kind = kind_of(interp, object);
    if (kind == NO_LOCK
        || (kind == RLOCK && !READ(interp, (struct rlock *)object, &lock)))
    {
        return;
    }
    _PySampling_RecordBegin(r, _PySampling_RECORD_LOCK);
    _PySampling_PutNumber(r, (uint64_t)what);
    _PySampling_PutNumber(r, (uintptr_t)object);
    _PySampling_PutNumber(r, lock.owner);
    _PySampling_RecordEnd(r);
}

/* What a method of a lock is called on, of the frame's instruction. */
static PyObject *
object_of_call(PyInterpreterState *interp, int opcode, PyObject **operands)
{
    PyCFunctionObject function;
    if (opcode == BEFORE_WITH) {
        return operands[0];
    }
    if (opcode != CALL
        || !READ(interp, (PyCFunctionObject *)operands[0], &function))
    {
        return NULL;
    }
    PyTypeObject *type = function.ob_base.ob_type;
    return type == &PyMethodDescr_Type ? operands[1]
        : type == &PyCFunction_Type ? function.m_self : NULL;
}

static int
is_exit(PyInterpreterState *interp, PyObject *object,
        PyCFunctionObject *function)
{
    struct _sampling_text name;
    name.size = 0;
    return object != NULL && (uintptr_t)object % sizeof(void *) == 0
        && READ(interp, (PyCFunctionObject *)object, function)
        && function->ob_base.ob_type == &PyCFunction_Type
        && _PySampling_ReadMethodName(interp, function->m_ml, &name)
        && name.size == (int)strlen("__exit__")
        && memcmp(name.bytes, "__exit__", (size_t)name.size) == 0;
}

void
_PySampling_PutLocks(struct _sampling_records *r, PyInterpreterState *interp,
                     _PyInterpreterFrame *frame, int is_innermost)
{
    PyCodeObject *code = _PySampling_FrameCode(frame);
    if (!is_innermost && PyBytes_GET_SIZE(code->co_exceptiontable) == 0) {
        return;     // there is no `with` in it
    }
    _PySampling_SlotsClear(r->slots);
    int slot = _PySampling_SlotOf(r->slots, code,
                                  _PySampling_FrameInstr(frame));
    if (slot == _PySampling_NO_SLOT || slot >= code->co_stacksize) {
        return;
    }
    PyObject **stack = _PySampling_FrameOperands(frame, code);
    if (is_innermost) {
        int opcode = _PyOpcode_Deopt[
            _PySampling_OpcodeAt(code, _PySampling_FrameInstr(frame))];
        put_lock(r, interp, WANTS,
                 object_of_call(interp, opcode, stack + slot));
    }
    for (int i = 0; i < slot; i++) {
        PyCFunctionObject function;
        if (is_exit(interp, stack[i], &function)) {
            put_lock(r, interp, HAS, function.m_self);
        }
    }
}
