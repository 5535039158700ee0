/* Sampling profiler: what a task waits in, and for.

   Owns the way along suspended coroutines.  They stand still: nothing runs
   them but their task.  Must not know how long a task waits. */

#include "Python.h"

#include "opcode.h"
#include "pycore_code.h"              // _Py_GetBaseOpcode()
#include "pycore_genobject.h"         // _PyCoroWrapper_Type
#include "pycore_opcode_metadata.h"   // _PyOpcode_Deopt

#include "../base/frame.h"
#include "../native/native.h"
#include "task.h"

/* Longer chains of coroutines are cut. */
#define MAX_AWAITS 512

/* So are more decorators of one function than that. */
#define MAX_WRAPPERS 16

/* From RESUME, where a coroutine is suspended, back to the SEND that it is at
   while what it awaits runs: SEND and its cache, YIELD_VALUE. */
#define UNITS_SINCE_SEND 3

/* Their structs are private to Objects/genobject.c; these are what they begin
   with. */
struct wrapper {
    PyObject_HEAD
    PyObject *wrapped;
};

static int
is_generator(PyObject *object)
{
    return PyCoro_CheckExact(object) || PyGen_CheckExact(object)
        || PyAsyncGen_CheckExact(object);
}

/* What passes everything on to a coroutine or an asynchronous generator. */
static int
is_wrapper(PyObject *object)
{
    return Py_IS_TYPE(object, &_PyCoroWrapper_Type)
        || Py_IS_TYPE(object, &_PyAsyncGenASend_Type)
        || Py_IS_TYPE(object, &_PyAsyncGenAThrow_Type);
}

static int
is_suspended(const PyGenObject *gen)
{
    return FRAME_STATE_SUSPENDED(gen->gi_frame_state)
        || gen->gi_frame_state == FRAME_CREATED;
}

static _PyInterpreterFrame *
frame_of(PyGenObject *gen)
{
    return (_PyInterpreterFrame *)gen->gi_iframe;
}

static PyCodeObject *
code_of(PyGenObject *gen)
{
    return _PySampling_FrameCode(frame_of(gen));
}

/* NULL: the collector has cleared the function. */
static PyObject *
called_function(_PyInterpreterFrame *frame)
{
    PyObject *function = _PySampling_FrameFunction(frame);
    return function != NULL && PyFunction_Check(function) ? function : NULL;
}

static PyObject *
globals_of(_PyInterpreterFrame *frame)
{
    PyObject *function = called_function(frame);
    return function != NULL ? PyFunction_GET_GLOBALS(function) : NULL;
}

/* What a decorator has made another function of, as functools.wraps() notes
   it, or NULL.  Compares no keys, so it runs no code of the program. */
static PyObject *
wrapped_by(PyObject *function)
{
    PyObject *dict = ((PyFunctionObject *)function)->func_dict;
    PyObject *key, *value;
    Py_ssize_t pos = 0;
    while (dict != NULL && PyDict_Next(dict, &pos, &key, &value)) {
        if (PyUnicode_CheckExact(key)
            && PyUnicode_EqualToUTF8(key, "__wrapped__"))
        {
            return PyFunction_Check(value) ? value : NULL;
        }
    }
    return NULL;
}

/* The function that was called for it, as the program knows it and as asyncio
   calls the task: within all decorators.  NULL: it is not known any more. */
static PyObject *
function_of(PyGenObject *gen)
{
    if (gen->gi_frame_state >= FRAME_CLEARED) {
        return NULL;
    }
    PyObject *function = called_function(frame_of(gen));
    PyObject *inner = function != NULL ? wrapped_by(function) : NULL;
    for (int i = 0; inner != NULL && i < MAX_WRAPPERS; i++) {
        function = inner;
        inner = wrapped_by(function);
    }
    return function;
}

PyObject *
_PySampling_FunctionOf(PyObject *coroutine)
{
    return is_generator(coroutine) ? function_of((PyGenObject *)coroutine)
                                   : NULL;
}

static PyObject *
awaited_by(PyGenObject *gen, _PyInterpreterFrame *frame)
{
    return gen->gi_frame_state == FRAME_SUSPENDED_YIELD_FROM
        ? _PySampling_FrameTop(frame) : NULL;
}

/* As the running samples have it. */
static _Py_CODEUNIT *
instr_of(const PyGenObject *gen, PyCodeObject *code,
         _PyInterpreterFrame *frame)
{
    _Py_CODEUNIT *instr = _PySampling_FrameInstr(frame);
    Py_ssize_t index = instr - _PyCode_CODE(code) - UNITS_SINCE_SEND;
    if (gen->gi_frame_state == FRAME_SUSPENDED_YIELD_FROM && index >= 0
        && _PyOpcode_Deopt[_Py_GetBaseOpcode(code, (int)index)] == SEND)
    {
        instr -= UNITS_SINCE_SEND;
    }
    return instr;
}

static uint32_t
add_coroutine(struct _sampling_tables *tables, uint32_t node,
              const PyGenObject *gen, _PyInterpreterFrame *frame)
{
    PyCodeObject *code = _PySampling_FrameCode(frame);
    _PySampling_Frame entry = {code, instr_of(gen, code, frame)};
    PyObject *globals = _PySampling_FunctionLacksModule(tables, code)
        ? globals_of(frame) : NULL;
    return _PySampling_InternChild(
        tables, node, _PySampling_InternFrame(tables, entry, 0, globals));
}

/* Another task, by what it runs, or an object, by its type.  That of most
   says nothing. */
static uint32_t
add_awaited(struct _sampling_tables *tables, uint32_t node, PyObject *awaited)
{
    if (strcmp(Py_TYPE(awaited)->tp_name, "_asyncio.Future") == 0) {
        return node;
    }
    if (is_generator(awaited)) {
        PyCodeObject *code = code_of((PyGenObject *)awaited);
        _PySampling_Frame entry = {code, _PyCode_CODE(code)};
        return _PySampling_InternChild(
            tables, node, _PySampling_InternFrame(tables, entry, 0, NULL));
    }
    return _PySampling_InternChild(
        tables, node, _PySampling_TablesTypeFrame(tables, Py_TYPE(awaited)));
}

/* The next suspended coroutine of a chain, or NULL: there is none.  `next`
   goes on to what it awaits. */
static PyGenObject *
next_suspended(PyObject **next)
{
    for (int i = 0; *next != NULL && i < MAX_AWAITS; i++) {
        if (!is_wrapper(*next)) {
            break;
        }
        *next = ((struct wrapper *)*next)->wrapped;
    }
    if (*next == NULL || !is_generator(*next)
        || !is_suspended((PyGenObject *)*next))
    {
        return NULL;
    }
    PyGenObject *gen = (PyGenObject *)*next;
    *next = awaited_by(gen, frame_of(gen));
    return gen;
}

_PyInterpreterFrame *
_PySampling_NextAwait(PyObject **next)
{
    PyGenObject *gen = next_suspended(next);
    return gen != NULL ? frame_of(gen) : NULL;
}

int
_PySampling_IsExecuting(PyObject *coroutine)
{
    return is_generator(coroutine)
        && ((PyGenObject *)coroutine)->gi_frame_state == FRAME_EXECUTING;
}

int
_PySampling_HasEnded(PyObject *coroutine)
{
    return is_generator(coroutine)
        && FRAME_STATE_FINISHED(((PyGenObject *)coroutine)->gi_frame_state);
}

PyObject *
_PySampling_AwaitedBy(const _PySampling_TaskInfo *info)
{
    // The collector may have cleared its type.
    return Py_TYPE(info->task)->tp_mro != NULL
        ? info->layout->awaited(info->task) : NULL;
}

uint32_t
_PySampling_AwaitsNode(struct _sampling_tables *tables, uint32_t node,
                       const _PySampling_TaskInfo *info)
{
    PyObject *next = _PySampling_TaskCoroutine(info);
    PyGenObject *gen = next_suspended(&next);
    for (int i = 0; gen != NULL && i < MAX_AWAITS; i++) {
        node = add_coroutine(tables, node, gen, frame_of(gen));
        gen = next_suspended(&next);
    }
    PyObject *awaited = _PySampling_AwaitedBy(info);
    return awaited != NULL ? add_awaited(tables, node, awaited) : node;
}

_PyInterpreterFrame *
_PySampling_InnermostAwait(const _PySampling_TaskInfo *info)
{
    PyObject *next = _PySampling_TaskCoroutine(info);
    PyGenObject *last = NULL;
    PyGenObject *gen = next_suspended(&next);
    for (int i = 0; gen != NULL && i < MAX_AWAITS; i++) {
        last = gen;
        gen = next_suspended(&next);
    }
    return last != NULL ? frame_of(last) : NULL;
}

int
_PySampling_HasNotBegun(const _PySampling_TaskInfo *info)
{
    PyObject *coroutine = _PySampling_TaskCoroutine(info);
    return coroutine != NULL
        && (!is_generator(coroutine)
            || ((PyGenObject *)coroutine)->gi_frame_state == FRAME_CREATED);
}

PyCodeObject *
_PySampling_CodeOf(const _PySampling_TaskInfo *info)
{
    PyObject *coroutine = _PySampling_TaskCoroutine(info);
    if (coroutine == NULL) {
        return NULL;
    }
    PyObject *function = PyFunction_Check(coroutine)
        ? coroutine : _PySampling_FunctionOf(coroutine);
    PyCodeObject *code = NULL;
    if (function != NULL) {
        code = (PyCodeObject *)PyFunction_GET_CODE(function);
    }
    else if (is_generator(coroutine)) {
        code = code_of((PyGenObject *)coroutine);
    }
    return (PyCodeObject *)Py_XNewRef(code);
}

/* Of a task that runs no Python code.  The record owns no reference to it: the
   collector does not know of records, and a class may have its task. */
static PyTypeObject *
type_of(const _PySampling_TaskInfo *info)
{
    PyObject *coroutine = _PySampling_TaskCoroutine(info);
    return Py_TYPE(coroutine != NULL ? coroutine : info->task);
}

uint32_t
_PySampling_CoroutineRow(struct _sampling_tables *tables,
                         const struct _sampling_task *task)
{
    if (task->code == NULL) {
        uint32_t frame = _PySampling_TablesTypeFrame(tables,
                                                     type_of(&task->info));
        return _PySampling_TablesCoroutine(
            tables, frame == UINT32_MAX
                ? UINT32_MAX : _PySampling_AT(tables, frame, frame)->function);
    }
    PyObject *coroutine = _PySampling_TaskCoroutine(&task->info);
    PyObject *function =
        coroutine != NULL ? _PySampling_FunctionOf(coroutine) : NULL;
    PyObject *globals = function != NULL
            && PyFunction_GET_CODE(function) == (PyObject *)task->code
        ? PyFunction_GET_GLOBALS(function) : NULL;
    return _PySampling_TablesCoroutine(
        tables, _PySampling_TablesFunction(tables, task->code, globals));
}
