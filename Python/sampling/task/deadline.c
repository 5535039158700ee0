/* Sampling profiler: when what a task waited for happened, if that was before
   its loop saw it.

   A loop that is busy does not look at its timers: it finds them late, and
   only then it wakes who waits for them.  Their own deadlines say since when
   these tasks wait for the loop.  Owns the way from a callback of asyncio's
   loop to the timer that it is of; what it knows of Lib/asyncio is matched by
   name, and where it does not fit there is no deadline. */

#include "Python.h"

#include "pycore_frame.h"             // _PyInterpreterFrame
#include "structmember.h"             // Py_T_OBJECT_EX

#include "../sample/walk.h"           // _PySampling_IsArtificial()
#include "task.h"

/* Between Handle._run() and what wakes a task there are callbacks: of a
   future, of asyncio.timeout(). */
#define MAX_FRAMES 8

/* Bases of the type of a timer, itself included. */
#define MAX_TYPES 4

static int
is_handle_run(PyCodeObject *code)
{
    static const char name[] = "Handle._run";
    return PyUnicode_GET_LENGTH(code->co_qualname) == sizeof(name) - 1
        && _PyUnicode_EqualToASCIIString(code->co_qualname, name);
}

/* The frame's first local variable: `self` of a method. */
static PyObject *
self_of(_PyInterpreterFrame *frame)
{
    PyCodeObject *code = _PyFrame_GetCode(frame);
    return code->co_argcount > 0 ? frame->localsplus[0] : NULL;
}

/* What the slot `_when` of a TimerHandle holds: seconds, as a float. */
static PyObject *
when_of(PyObject *handle)
{
    PyTypeObject *type = Py_TYPE(handle);
    for (int i = 0; type != NULL && i < MAX_TYPES; i++, type = type->tp_base) {
        for (PyMemberDef *m = type->tp_members;
             m != NULL && m->name != NULL; m++)
        {
            if (m->type == Py_T_OBJECT_EX && strcmp(m->name, "_when") == 0) {
                return *(PyObject **)((char *)handle + m->offset);
            }
        }
    }
    return NULL;
}

uint64_t
_PySampling_DeadlineOfCallback(PyThreadState *tstate)
{
    _PyInterpreterFrame *frame = tstate->current_frame;
    for (int i = 0; frame != NULL && i < MAX_FRAMES;
         i++, frame = frame->previous)
    {
        if (_PySampling_IsArtificial(frame)
            || !is_handle_run(_PyFrame_GetCode(frame)))
        {
            continue;
        }
        PyObject *self = self_of(frame);
        PyObject *when = self != NULL ? when_of(self) : NULL;
        if (when == NULL || !PyFloat_CheckExact(when)) {
            return 0;
        }
        double ns = PyFloat_AS_DOUBLE(when) * 1e9;
        return ns > 0 && ns < 9e18 ? (uint64_t)ns : 0;
    }
    return 0;
}
