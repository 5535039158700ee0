/* Sampling profiler: what is read of the interpreter's frames.

   All that another version of CPython keeps elsewhere is here: nobody else
   reads a field of a frame.  A signal handler calls these. */

#ifndef Py_SAMPLING_FRAME_H
#define Py_SAMPLING_FRAME_H

#ifndef Py_BUILD_CORE
#  error "this header requires Py_BUILD_CORE define"
#endif

#include "pycore_code.h"          // _PyCode_DEF()
#include "pycore_frame.h"         // _PyInterpreterFrame

extern const struct _PyCode_DEF(8) _Py_InitCleanup;

/* The innermost frame of a thread is there. */
static inline _PyInterpreterFrame **
_PySampling_CurrentFrameSlot(PyThreadState *tstate)
{
    return &tstate->current_frame;
}

static inline _PyInterpreterFrame *
_PySampling_CurrentFrame(PyThreadState *tstate)
{
    return *_PySampling_CurrentFrameSlot(tstate);
}

static inline _PyInterpreterFrame *
_PySampling_FramePrevious(const _PyInterpreterFrame *frame)
{
    return frame->previous;
}

/* C code called the frame that comes before this one. */
static inline int
_PySampling_IsEntry(const _PyInterpreterFrame *frame)
{
    return frame->owner == FRAME_OWNED_BY_CSTACK;
}

/* Frames that stand for no Python code: the eval loop's entry frames, and the
   shim that checks what __init__ returned. */
static inline int
_PySampling_IsArtificial(const _PyInterpreterFrame *frame)
{
    return _PySampling_IsEntry(frame)
        || frame->f_executable == (PyObject *)&_Py_InitCleanup;
}

/* Of a frame that is not an entry. */
static inline PyCodeObject *
_PySampling_FrameCode(const _PyInterpreterFrame *frame)
{
    return (PyCodeObject *)frame->f_executable;
}

static inline _Py_CODEUNIT *
_PySampling_FrameInstr(const _PyInterpreterFrame *frame)
{
    return frame->instr_ptr;
}

static inline PyObject *
_PySampling_FrameGlobals(const _PyInterpreterFrame *frame)
{
    return frame->f_globals;
}

/* NULL if the collector has cleared it. */
static inline PyObject *
_PySampling_FrameFunction(const _PyInterpreterFrame *frame)
{
    return frame->f_funcobj;
}

/* Arguments come first. */
static inline PyObject **
_PySampling_FrameLocals(_PyInterpreterFrame *frame)
{
    return frame->localsplus;
}

/* The evaluation stack, behind the locals of `code`. */
static inline PyObject **
_PySampling_FrameOperands(_PyInterpreterFrame *frame, const PyCodeObject *code)
{
    return frame->localsplus + code->co_nlocalsplus;
}

/* Of a copy of a frame: its code is a copy, too. */
static inline void
_PySampling_FrameSetCode(_PyInterpreterFrame *copy, PyCodeObject *code,
                         _Py_CODEUNIT *instr)
{
    copy->f_executable = (PyObject *)code;
    copy->instr_ptr = instr;
    copy->f_globals = NULL;
}

/* The top of the evaluation stack of a generator that is suspended. */
static inline PyObject *
_PySampling_FrameTop(_PyInterpreterFrame *frame)
{
    return _PyFrame_StackPeek(frame);
}

#endif  // !Py_SAMPLING_FRAME_H
