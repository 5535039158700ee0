/* Sampling profiler: asyncio's tasks, for another process.

   Owns how they are found: in the sets that asyncio keeps of its tasks.  Must
   not know who asks.  Async-signal-safe, while nobody runs Python code: the
   caller is at a safepoint, or nobody holds the GIL. */

#include "Python.h"

#include "pycore_import.h"            // _PyImport_GetModules()
#include "pycore_interp.h"            // PyInterpreterState.sampling
#include "pycore_long.h"              // _PyLong_IsNonNegativeCompact()
#include "pycore_runtime.h"           // _PyRuntime
#include "pycore_setobject.h"         // _PySet_NextEntry()

#include "../base/frame.h"
#include "../native/naming.h"
#include "../task/task.h"
#include "reach.h"

#include <stddef.h>                   // offsetof()

/* Longer chains of coroutines are cut. */
#define MAX_AWAITS 64

/* An entry of a dict by its name; NULL: none.  Compares strings only. */
static PyObject *
entry_of(PyObject *dict, const char *name)
{
    PyObject *key, *value;
    Py_ssize_t pos = 0;
    while (dict != NULL && PyDict_Check(dict)
           && PyDict_Next(dict, &pos, &key, &value))
    {
        if (PyUnicode_CheckExact(key) && PyUnicode_EqualToUTF8(key, name)) {
            return value;
        }
    }
    return NULL;
}

static void
put_awaited(struct _sampling_records *r, PyObject *awaited)
{
    struct _sampling_name name;
    _PySampling_ClearName(&name);
    if (awaited != NULL) {
        _PySampling_NameType(NULL, Py_TYPE(awaited), &name);
    }
    _PySampling_PutNumber(r, (uintptr_t)awaited);
    _PySampling_PutBytes(r, name.module.bytes, (size_t)name.module.size);
    _PySampling_PutBytes(r, name.qualname.bytes, (size_t)name.qualname.size);
}

/* What asyncio has made of a task's name: a str, or a number. */
static void
put_name(struct _sampling_records *r, PyObject *name)
{
    if (name != NULL && PyLong_CheckExact(name)
        && _PyLong_IsNonNegativeCompact((PyLongObject *)name))
    {
        char text[40];
        int size = snprintf(text, sizeof(text), "Task-%zd",
                            _PyLong_CompactValue((PyLongObject *)name));
        _PySampling_PutBytes(r, text, (size_t)size);
    }
    else {
        _PySampling_PutText(r, name);
    }
}

static PyObject *
field_of(PyObject *task, size_t offset)
{
    return *(PyObject **)((char *)task + offset);
}

/* A task that has not ended, with the coroutines that it awaits, the outermost
   first. */
static void
put_task(struct _sampling_records *r, PyInterpreterState *interp,
         const _PySampling_TaskLayout *layout, PyObject *task)
{
    _PySampling_TaskInfo info = {.task = task, .layout = layout};
    PyObject *next = field_of(task, layout->coroutine);
    if (next == NULL || _PySampling_HasEnded(next)) {
        return;
    }
    _PySampling_RecordBegin(r, _PySampling_RECORD_TASK);
    _PySampling_PutNumber(r, (uintptr_t)task);
    _PySampling_PutNumber(r, (uintptr_t)next);
    _PySampling_PutNumber(r, (uint64_t)_PySampling_IsExecuting(next));
    put_name(r, field_of(task, layout->name));
    put_awaited(r, _PySampling_AwaitedBy(&info));
    _PySampling_RecordEnd(r);
    for (int i = 0; i < MAX_AWAITS; i++) {
        _PyInterpreterFrame *frame = _PySampling_NextAwait(&next);
        if (frame == NULL) {
            break;
        }
        _PySampling_PutFrame(r, interp, frame, _PySampling_FrameCode(frame),
                             0);
    }
}

static void
put_tasks(struct _sampling_records *r, PyInterpreterState *interp,
          PyTypeObject *type, PyObject *tasks)
{
    PyObject *key;
    Py_hash_t hash;
    Py_ssize_t pos = 0;
    while (tasks != NULL && PyAnySet_Check(tasks)
           && _PySet_NextEntry(tasks, &pos, &key, &hash))
    {
        PyObject *task = PyWeakref_Check(key)
            ? ((PyWeakReference *)key)->wr_object : key;
        if (PyType_IsSubtype(Py_TYPE(task), type) && Py_REFCNT(task) > 0) {
            put_task(r, interp, _PyRuntime.sampling.task_layout, task);
        }
    }
}

void
_PySampling_DumpTasks(struct _sampling_records *r, PyInterpreterState *interp)
{
    PyObject *module = entry_of(_PyImport_GetModules(interp), "_asyncio");
    if (module == NULL || !PyModule_Check(module)
        || _PyRuntime.sampling.task_layout == NULL)
    {
        return;     // no task has run
    }
    PyObject *dict = PyModule_GetDict(module);
    PyObject *type = entry_of(dict, "Task");
    PyObject *scheduled = entry_of(dict, "_scheduled_tasks");
    if (type == NULL || !PyType_Check(type) || scheduled == NULL) {
        return;
    }
    // A WeakSet has a set of references.
    put_tasks(r, interp, (PyTypeObject *)type,
              _PySampling_ReadOwn(interp, scheduled, &_Py_ID(data)));
    put_tasks(r, interp, (PyTypeObject *)type,
              entry_of(dict, "_eager_tasks"));
}
