/* Sampling profiler: when what a task waited for happened, if that was before
   its loop saw it.

   A loop that is busy does not check its timers: it finds them late, and
   only then it wakes who waits for them.  Their own deadlines say since when
   these tasks wait for the loop.  Owns the way from a callback of asyncio's
   loop to the timer that it is of, and for other loops from a task that sleeps
   to how long.  What it knows of Lib/asyncio is matched by name, and where it
   does not fit there is no deadline. */

#include "Python.h"

#include "pycore_long.h"              // _PyLong_CompactValue()
#include "structmember.h"             // Py_T_OBJECT_EX

#include "../base/frame.h"
#include "task.h"

/* Between Handle._run() and what wakes a task there are callbacks: of a
   future, of asyncio.timeout(). */
#define MAX_FRAMES 8

/* Bases of the type of a timer, itself included. */
#define MAX_TYPES 4

static int
is_called(PyCodeObject *code, const char *qualname)
{
    return PyUnicode_GET_LENGTH(code->co_qualname)
               == (Py_ssize_t)strlen(qualname)
        && _PyUnicode_EqualToASCIIString(code->co_qualname, qualname);
}

static PyObject *
first_argument(_PyInterpreterFrame *frame)
{
    PyCodeObject *code = _PySampling_FrameCode(frame);
    return code->co_argcount > 0 ? _PySampling_FrameLocals(frame)[0] : NULL;
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

/* 0 of what is no time. */
static uint64_t
nanoseconds_of(PyObject *seconds)
{
    double ns = 0;
    if (PyFloat_CheckExact(seconds)) {
        ns = PyFloat_AS_DOUBLE(seconds) * 1e9;
    }
    else if (PyLong_CheckExact(seconds)
             && _PyLong_IsCompact((PyLongObject *)seconds))
    {
        ns = (double)_PyLong_CompactValue((PyLongObject *)seconds) * 1e9;
    }
    return ns > 0 && ns < 9e18 ? (uint64_t)ns : 0;
}

static uint64_t
deadline_of_callback(PyThreadState *tstate)
{
    _PyInterpreterFrame *frame = _PySampling_CurrentFrame(tstate);
    for (int i = 0; frame != NULL && i < MAX_FRAMES;
         i++, frame = _PySampling_FramePrevious(frame))
    {
        if (!_PySampling_IsArtificial(frame)
            && is_called(_PySampling_FrameCode(frame), "Handle._run"))
        {
            PyObject *self = first_argument(frame);
            PyObject *when = self != NULL ? when_of(self) : NULL;
            return when != NULL ? nanoseconds_of(when) : 0;
        }
    }
    return 0;
}

static int
is_of_asyncio(PyCodeObject *code)
{
    static const char name[] = "asyncio/tasks.py";
    Py_ssize_t size;
    const char *path = PyUnicode_IS_ASCII(code->co_filename)
        ? (const char *)PyUnicode_1BYTE_DATA(code->co_filename) : NULL;
    size = PyUnicode_GET_LENGTH(code->co_filename);
    return path != NULL && size >= (Py_ssize_t)sizeof(name) - 1
        && strcmp(path + size - (sizeof(name) - 1), name) == 0;
}

/* A task that sleeps does so since it was left. */
static uint64_t
end_of_sleep(const struct _sampling_task *task)
{
    _PyInterpreterFrame *frame = _PySampling_InnermostAwait(&task->info);
    if (frame == NULL) {
        return 0;
    }
    PyCodeObject *code = _PySampling_FrameCode(frame);
    if (!is_called(code, "sleep") || !is_of_asyncio(code)) {
        return 0;
    }
    PyObject *delay = first_argument(frame);
    uint64_t delay_ns = delay != NULL ? nanoseconds_of(delay) : 0;
    return delay_ns != 0 ? task->left_ns + delay_ns : 0;
}

uint64_t
_PySampling_Deadline(PyThreadState *tstate, const struct _sampling_task *task)
{
    uint64_t deadline_ns = deadline_of_callback(tstate);
    return deadline_ns != 0 ? deadline_ns : end_of_sleep(task);
}
