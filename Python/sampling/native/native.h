/* Sampling profiler: the C function or operator that a Python frame is in.

   No frame is pushed for C code.  What an instruction calls or operates on
   lies in the frame's evaluation stack, at a place that the instruction's
   position in its code object gives.  The handler reads the few words that
   identify the callee; its name is made at the drain. */

#ifndef Py_SAMPLING_NATIVE_H
#define Py_SAMPLING_NATIVE_H

#ifndef Py_BUILD_CORE
#  error "this header requires Py_BUILD_CORE define"
#endif

#include "../tables/tables.h"

/* --- Memory that may be gone (native/safe_read.c).

   A slot of the evaluation stack keeps its pointer after the object has been
   released, so whatever it leads to may have been unmapped. */

// Finds out what can be read without asking the kernel, and how to ask it.
// At the start of a session, with the registry locked.
extern void _PySampling_MemoryInit(void);

// Copies `size` bytes.  Returns 0 if they cannot be read.  Async-signal-safe.
// `interp`: that of this thread, which holds its GIL; NULL: memory of a thread
// that may go on at any moment.
extern int _PySampling_ReadMemory(PyInterpreterState *interp,
                                  const void *from, void *to, size_t size);

// Does it lie in the interpreter's image or a library's, which stay as long as
// the process?
extern int _PySampling_IsLoaded(const void *address);

// Copies a string of at most `size` - 1 bytes.  Returns its length, or -1.
extern int _PySampling_ReadString(PyInterpreterState *interp,
                                  const char *from, char *to, int size);

/* --- Where the operand lies (native/depths.c). */

// Fills in a byte per code unit: 0, nothing known or nothing to know; the slot
// of the first operand + 1; or that the unit is an EXTENDED_ARG.
// Async-signal-safe.
#define _PySampling_UNIT_EXTENDED_ARG 255
extern void _PySampling_WorkOutSlots(PyCodeObject *code, uint8_t *units,
                                     int num_units);

/* --- The same, of code that was sampled (native/operands.c). */

struct _sampling_slots;

extern struct _sampling_slots *_PySampling_SlotsNew(void);
// So many zero bytes are slots, too, without memory of their own unless they
// are kept.
extern size_t _PySampling_SlotsSize(void);
extern void _PySampling_SlotsFree(struct _sampling_slots *slots);

// Forgets all code objects.  Async-signal-safe if none is kept.
extern void _PySampling_SlotsClear(struct _sampling_slots *slots);

#define _PySampling_NO_SLOT (-1)

// The index in the evaluation stack of the first object that the instruction
// calls or operates on, or _PySampling_NO_SLOT.  Async-signal-safe.
extern int _PySampling_SlotOf(struct _sampling_slots *slots,
                              PyCodeObject *code, _Py_CODEUNIT *instr);

// Keeps what SlotOf had to work out since the last call.  At the drain.
extern void _PySampling_SlotsKeep(struct _sampling_slots *slots);
extern void _PySampling_SlotsForget(struct _sampling_slots *slots,
                                    PyCodeObject *code);
extern size_t _PySampling_SlotsBytes(const struct _sampling_slots *slots);

// The oparg of an instruction, EXTENDED_ARG included, if the slots of its code
// are known; else the low 8 bits of it.
extern int _PySampling_OpargOf(struct _sampling_slots *slots,
                               PyCodeObject *code, _Py_CODEUNIT *instr);

/* --- Which callee (native/find.c). */

typedef enum {
    // Words: PyMethodDef, name of the module.
    _PySampling_CALLEE_FUNCTION = 1,
    // Words: PyMethodDef, type.
    _PySampling_CALLEE_METHOD,
    // Words: struct wrapperbase, type.
    _PySampling_CALLEE_SLOT_WRAPPER,
    // Words: type.  It is called itself.
    _PySampling_CALLEE_TYPE,
    // Words: type.  One of its instances is called.
    _PySampling_CALLEE_INSTANCE,
    // Words: type of the first operand, type of the second or NULL.
    _PySampling_CALLEE_OPERATOR,
} _PySampling_CalleeKind;

/* A callee takes two entries of a captured stack, its words and their mark;
   the Python frame that calls follows, nearer to the root. */
#define _PySampling_CALLEE_ENTRIES 2

static inline _PySampling_Frame
_PySampling_CalleeWords(void *word0, void *word1)
{
    // Objects and method definitions are aligned: the lowest bit is free.
    return (_PySampling_Frame){
        (PyCodeObject *)((uintptr_t)word0 | 1), (_Py_CODEUNIT *)word1};
}

static inline int
_PySampling_IsCallee(_PySampling_Frame frame)
{
    return ((uintptr_t)frame.code & 1) != 0;
}

static inline _PySampling_Frame
_PySampling_CalleeMark(_PySampling_CalleeKind kind, int opcode, int oparg)
{
    return _PySampling_PseudoFrame(
        _PySampling_PSEUDO_CALLEE,
        (uint32_t)oparg << 12 | (uint32_t)opcode << 4 | (uint32_t)kind);
}

static inline _PySampling_CalleeKind
_PySampling_KindOfCallee(_PySampling_Frame mark)
{
    return (_PySampling_CalleeKind)((uintptr_t)mark.instr >> 4 & 15);
}

/* A mark stands next to the entry that it says more about, nearer to the root:
   behind it in a stack that is copied leaf first. */
static inline int
_PySampling_IsMark(_PySampling_Frame frame)
{
    uintptr_t pseudo = (uintptr_t)frame.instr & 15;
    return frame.code == NULL && (pseudo == _PySampling_PSEUDO_OPCODE
                                  || pseudo == _PySampling_PSEUDO_CALLEE);
}

static inline int
_PySampling_OpcodeOfMark(_PySampling_Frame mark)
{
    return ((uintptr_t)mark.instr & 15) == _PySampling_PSEUDO_OPCODE
        ? (int)((uintptr_t)mark.instr >> 4) : 0;
}

// Writes the entries of what is called as `callable`, and returns how many: 0,
// as of Python code, or _PySampling_CALLEE_ENTRIES.  Async-signal-safe.
extern int _PySampling_FindCallee(PyInterpreterState *interp,
                                  PyObject *callable, _PySampling_Frame *out);

// Writes the entries of the callee that `frame` is in, and returns how many: 0
// or _PySampling_CALLEE_ENTRIES.  `call`: its evaluation stack as it was, or
// NULL.  Async-signal-safe.
extern int
_PySampling_CaptureCallee(PyInterpreterState *interp,
                          struct _sampling_slots *slots,
                          struct _PyInterpreterFrame *frame,
                          const struct _sampling_call *call,
                          _PySampling_Frame *out);

// Keeps the evaluation stack of this thread, whose leaf is `frame`, for a time
// when the call that it is in is over.
extern void _PySampling_KeepCall(struct _PyInterpreterFrame *frame,
                                 struct _sampling_call *call);

// On the sampler thread: copies the evaluation stack of a thread that sleeps,
// all but `sleeper->frame`, which is returned; NULL: it cannot be read.  What
// is copied is right if the thread has slept on meanwhile.
extern struct _PyInterpreterFrame *
_PySampling_ReadSleeper(PyThreadState *tstate,
                        struct _sampling_call *sleeper);

// The specialized opcode at `instr`, instrumentation taken off.
// Async-signal-safe.
extern int _PySampling_OpcodeAt(PyCodeObject *code, _Py_CODEUNIT *instr);

/* --- What it is called (native/names.c). */

// The frame row of a callee, or UINT32_MAX: it has no name, or the limit is
// reached.  At the drain.
extern uint32_t _PySampling_InternCallee(struct _sampling_tables *tables,
                                         PyInterpreterState *interp,
                                         _PySampling_Frame words,
                                         _PySampling_Frame mark);

// The frame of a type that something is called by.  The type is alive.
extern uint32_t _PySampling_TablesTypeFrame(struct _sampling_tables *tables,
                                            PyTypeObject *type);
// A type is being deallocated: its address may become another's.
extern void _PySampling_TablesForgetType(struct _sampling_tables *tables,
                                         PyTypeObject *type);

#endif  // !Py_SAMPLING_NATIVE_H
