/* The Task type: a task of a scheduler that the core does not know.

   Owns the passage of what a scheduler tells into the hooks that asyncio calls
   itself.  Must not know what becomes of it. */

#ifndef Py_BUILD_CORE_BUILTIN
#  define Py_BUILD_CORE_MODULE 1
#endif

#include "Python.h"

#include "pycore_pystate.h"           // HEAD_LOCK()
#include "pycore_runtime.h"           // _PyRuntime
#include "pycore_sampling.h"

#include "_profile.h"

typedef struct {
    PyObject_HEAD
    PyObject *coroutine;
    PyObject *context;
    PyObject *name;
    struct _sampling_task *record;
    int state;                  // as in _PySampling_TaskInfo
    uint64_t runs_in;           // PyThreadState.id; 0: it does not run
} TaskObject;

/* Nothing is known of it. */
static PyObject *
awaited(PyObject *Py_UNUSED(task))
{
    return NULL;
}

static const struct _sampling_task_layout layout = {
    .coroutine = offsetof(TaskObject, coroutine),
    .context = offsetof(TaskObject, context),
    .name = offsetof(TaskObject, name),
    .record = offsetof(TaskObject, record),
    .awaited = awaited,
};

static _PySampling_TaskInfo
info_of(TaskObject *self, int skip_frames)
{
    return (_PySampling_TaskInfo){
        .task = (PyObject *)self,
        .layout = &layout,
        .state = self->state,
        .skip_frames = skip_frames,
    };
}

static uint64_t
own_id(void)
{
    return PyThreadState_Get()->id;
}

/* The thread that ran it may have ended. */
static int
is_running(TaskObject *self)
{
    if (self->runs_in == 0 || self->runs_in == own_id()) {
        return self->runs_in != 0;
    }
    // Threads without the GIL may add their states.
    HEAD_LOCK(&_PyRuntime);
    PyThreadState *tstate = PyInterpreterState_Get()->threads.head;
    while (tstate != NULL && tstate->id != self->runs_in) {
        tstate = tstate->next;
    }
    HEAD_UNLOCK(&_PyRuntime);
    if (tstate == NULL) {
        self->runs_in = 0;
    }
    return self->runs_in != 0;
}

static void
enter(TaskObject *self, int skip_frames)
{
    _PySampling_TaskInfo task = info_of(self, skip_frames);
    _PySampling_EnterTask(&task);
}

static void
leave(TaskObject *self)
{
    _PySampling_TaskInfo task = info_of(self, 0);
    _PySampling_LeaveTask(&task);
}

static PyObject *
task_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"", "name", "context", NULL};
    PyObject *coroutine, *name = NULL, *context = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$OO:Task", keywords,
                                     &coroutine, &name, &context)) {
        return NULL;
    }
    if (name != NULL && name != Py_None && !PyUnicode_Check(name)) {
        return PyErr_Format(PyExc_TypeError,
                            "Task() argument 'name' must be str or None, "
                            "not %.200s", Py_TYPE(name)->tp_name);
    }
    if (context != NULL && context != Py_None
        && !PyContext_CheckExact(context)) {
        return PyErr_Format(PyExc_TypeError,
                            "Task() argument 'context' must be a "
                            "contextvars.Context or None, not %.200s",
                            Py_TYPE(context)->tp_name);
    }
    TaskObject *self = (TaskObject *)type->tp_alloc(type, 0);
    if (self != NULL) {
        self->coroutine = Py_NewRef(coroutine);
        self->name = name == Py_None ? NULL : Py_XNewRef(name);
        self->context = context == Py_None ? NULL : Py_XNewRef(context);
    }
    return (PyObject *)self;
}

static int
check_goes_on(TaskObject *self)
{
    if (self->state != 0) {
        PyErr_SetString(PyExc_RuntimeError, "the task has ended");
        return -1;
    }
    return 0;
}

PyDoc_STRVAR(woken_doc,
"woken($self, /)\n"
"--\n"
"\n"
"What it waited for has happened, or it is new: it waits for its scheduler.\n"
"\n"
"Raise RuntimeError if the task has ended.");

static PyObject *
task_woken(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    TaskObject *self = (TaskObject *)op;
    if (check_goes_on(self) < 0) {
        return NULL;
    }
    _PySampling_TaskInfo task = info_of(self, 0);
    _PySampling_IF_ACTIVE(_PySampling_TaskWoken(&task));
    Py_RETURN_NONE;
}

PyDoc_STRVAR(resume_doc,
"resume($self, /, *, skip_frames=1)\n"
"--\n"
"\n"
"This thread runs it from here on.\n"
"\n"
"skip_frames  how many of the innermost frames, the caller's first, are the\n"
"             scheduler's way of telling, and not on the task's stack\n"
"\n"
"Raise RuntimeError if the task has ended or runs already, ValueError for\n"
"a number below 0.");

static PyObject *
task_resume(PyObject *op, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"skip_frames", NULL};
    TaskObject *self = (TaskObject *)op;
    int skip_frames = 1;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$i:resume", keywords,
                                     &skip_frames)) {
        return NULL;
    }
    if (skip_frames < 0) {
        PyErr_SetString(PyExc_ValueError, "skip_frames must not be negative");
        return NULL;
    }
    if (check_goes_on(self) < 0) {
        return NULL;
    }
    if (is_running(self)) {
        PyErr_SetString(PyExc_RuntimeError, "the task runs already");
        return NULL;
    }
    self->runs_in = own_id();
    enter(self, skip_frames);
    Py_RETURN_NONE;
}

PyDoc_STRVAR(suspend_doc,
"suspend($self, /)\n"
"--\n"
"\n"
"This thread runs it no more.  Nothing if it does not.");

static PyObject *
task_suspend(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    TaskObject *self = (TaskObject *)op;
    if (self->runs_in == own_id()) {
        self->runs_in = 0;
        leave(self);
    }
    Py_RETURN_NONE;
}

PyDoc_STRVAR(end_doc,
"end($self, /, *, cancelled=False)\n"
"--\n"
"\n"
"It is done, and runs no more.  Nothing if it has ended before.\n"
"\n"
"Raise RuntimeError if another thread runs it.");

static PyObject *
task_end(PyObject *op, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"cancelled", NULL};
    TaskObject *self = (TaskObject *)op;
    int is_cancelled = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$p:end", keywords,
                                     &is_cancelled)) {
        return NULL;
    }
    if (self->state != 0) {
        Py_RETURN_NONE;
    }
    if (!is_running(self)) {
        // Its last wait ends with it.
        enter(self, 1);
    }
    else if (self->runs_in != own_id()) {
        PyErr_SetString(PyExc_RuntimeError, "another thread runs the task");
        return NULL;
    }
    self->runs_in = 0;
    self->state = is_cancelled ? 1 : 2;
    leave(self);
    Py_RETURN_NONE;
}

static PyMethodDef task_methods[] = {
    {"woken", task_woken, METH_NOARGS, woken_doc},
    {"resume", (PyCFunction)(void(*)(void))task_resume,
     METH_VARARGS | METH_KEYWORDS, resume_doc},
    {"suspend", task_suspend, METH_NOARGS, suspend_doc},
    {"end", (PyCFunction)(void(*)(void))task_end,
     METH_VARARGS | METH_KEYWORDS, end_doc},
    {NULL, NULL}
};

static int
task_traverse(PyObject *op, visitproc visit, void *arg)
{
    TaskObject *self = (TaskObject *)op;
    Py_VISIT(Py_TYPE(op));
    Py_VISIT(self->coroutine);
    Py_VISIT(self->context);
    Py_VISIT(self->name);
    return 0;
}

static int
task_clear(PyObject *op)
{
    TaskObject *self = (TaskObject *)op;
    _PySampling_TaskEnd(&self->record);
    Py_CLEAR(self->coroutine);
    Py_CLEAR(self->context);
    Py_CLEAR(self->name);
    return 0;
}

static void
task_dealloc(PyObject *op)
{
    PyTypeObject *type = Py_TYPE(op);
    PyObject_GC_UnTrack(op);
    (void)task_clear(op);
    type->tp_free(op);
    Py_DECREF(type);
}

PyDoc_STRVAR(task_doc,
"Task(coroutine, /, *, name=None, context=None)\n"
"--\n"
"\n"
"A task of a scheduler of its own, for profiles.\n"
"\n"
"asyncio's tasks need no such object.  Another scheduler makes one for each\n"
"of its tasks and tells it what happens, from the thread that the scheduler\n"
"runs in: woken() when the task is to run, as when it is new; resume() before\n"
"and suspend() after each step; end().  While nobody profiles, that costs next\n"
"to nothing.\n"
"\n"
"coroutine  what it runs: a coroutine or a generator, whose stack says what\n"
"           the task waits in; a function; or any other object, whose type\n"
"           stands for what it runs\n"
"name       a str, if the program gave one\n"
"context    contextvars.Context with the labels of its waits\n"
"\n"
"Raise TypeError for a name or a context of another type.");

static PyType_Slot task_slots[] = {
    {Py_tp_new, task_new},
    {Py_tp_dealloc, task_dealloc},
    {Py_tp_traverse, task_traverse},
    {Py_tp_clear, task_clear},
    {Py_tp_methods, task_methods},
    {Py_tp_doc, (void *)task_doc},
    {0, NULL}
};

static PyType_Spec task_spec = {
    .name = "_profile.Task",
    .basicsize = sizeof(TaskObject),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC
             | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = task_slots,
};

int
_PyProfile_InitTasks(PyObject *module)
{
    PyObject *type = PyType_FromModuleAndSpec(module, &task_spec, NULL);
    if (type == NULL) {
        return -1;
    }
    int err = PyModule_AddType(module, (PyTypeObject *)type);
    Py_DECREF(type);
    return err;
}
