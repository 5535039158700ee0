/* Sampling profiler: the stack of a thread that sleeps with the GIL.

   No signal is sent to such a thread: it would cut short a call that does not
   go on by itself.  But it may wake up at any moment.  So what its stack
   refers to is copied, by way of the kernel, and the copies are read as any
   frame is.  Whether it has run meanwhile its CPU clock says.

   Owns what of a frame and its code is copied.  Async-signal-safe. */

#include "Python.h"

#include "pycore_code.h"              // _PyCode_NBYTES()
#include "pycore_frame.h"             // _PyInterpreterFrame
#include "pycore_runtime.h"           // _Py_SINGLETON()

#include "../base/frame.h"
#include "../native/native.h"         // _PySampling_ReadMemory()
#include "reach.h"

#include <time.h>

/* Deeper stacks are cut. */
#define MAX_FRAMES 256

/* Of one read (native/safe_read.c). */
#define CHUNK_BYTES 4096

/* Where the copies of one frame lie. */
struct scratch {
    char *at;
    char *end;
};

/* Copies `size` bytes; NULL: they cannot be read, or are too many. */
static void *
copy_bytes(struct scratch *s, const void *from, size_t size)
{
    char *copy = s->at;
    size_t rounded = (size + 15) & ~(size_t)15;
    if (from == NULL || size == 0 || size > (size_t)(s->end - s->at)
        || rounded > (size_t)(s->end - s->at))
    {
        return NULL;
    }
    for (size_t done = 0; done < size; done += CHUNK_BYTES) {
        if (!_PySampling_ReadMemory(NULL, (const char *)from + done,
                                    copy + done,
                                    Py_MIN(size - done, CHUNK_BYTES)))
        {
            return NULL;
        }
    }
    s->at += rounded;
    return copy;
}

static PyObject *
copy_var_object(struct scratch *s, PyObject *object, PyTypeObject *type,
                size_t basic_size, size_t item_size)
{
    PyVarObject head;
    if (!_PySampling_ReadMemory(NULL, object, &head, sizeof(head))
        || head.ob_base.ob_type != type || head.ob_size < 0
        || (size_t)head.ob_size > (size_t)(s->end - s->at))
    {
        return NULL;
    }
    return copy_bytes(s, object,
                      basic_size + (size_t)head.ob_size * item_size);
}

static PyObject *
copy_text(struct scratch *s, PyObject *text)
{
    PyASCIIObject head;
    if (!_PySampling_ReadMemory(NULL, text, &head, sizeof(head))
        || head.ob_base.ob_type != &PyUnicode_Type || !head.state.compact
        || head.length < 0 || head.length > s->end - s->at)
    {
        return NULL;
    }
    size_t begin = head.state.ascii ? sizeof(PyASCIIObject)
                                    : sizeof(PyCompactUnicodeObject);
    return copy_bytes(s, text, begin + (size_t)head.length
                                       * (size_t)head.state.kind);
}

static PyCodeObject *
copy_code(struct scratch *s, PyObject *at)
{
    PyCodeObject *code = (PyCodeObject *)copy_var_object(
        s, at, &PyCode_Type, offsetof(PyCodeObject, co_code_adaptive),
        sizeof(_Py_CODEUNIT));
    if (code == NULL) {
        return NULL;
    }
    code->co_linetable = copy_var_object(
        s, code->co_linetable, &PyBytes_Type,
        offsetof(PyBytesObject, ob_sval), 1);
    code->co_exceptiontable = copy_var_object(
        s, code->co_exceptiontable, &PyBytes_Type,
        offsetof(PyBytesObject, ob_sval), 1);
    code->co_filename = copy_text(s, code->co_filename);
    code->co_qualname = copy_text(s, code->co_qualname);
    code->co_names = (PyObject *)&_Py_SINGLETON(tuple_empty);
    return code->co_linetable != NULL && code->co_exceptiontable != NULL
        ? code : NULL;
}

/* The frame with its evaluation stack; its code is a copy, too. */
static _PyInterpreterFrame *
copy_frame(struct scratch *s, const _PyInterpreterFrame *at,
           const _PyInterpreterFrame *head)
{
    PyCodeObject *original = _PySampling_FrameCode(head);
    PyCodeObject *code = copy_code(s, (PyObject *)original);
    Py_ssize_t unit = code == NULL ? -1
        : _PySampling_FrameInstr(head) - _PyCode_CODE(original);
    if (unit < 0 || unit >= Py_SIZE(code)
        || code->co_framesize < FRAME_SPECIALS_SIZE)
    {
        return NULL;
    }
    _PyInterpreterFrame *frame = copy_bytes(
        s, at, (size_t)code->co_framesize * sizeof(PyObject *));
    if (frame != NULL) {
        _PySampling_FrameSetCode(frame, code, _PyCode_CODE(code) + unit);
    }
    return frame;
}

static uint64_t
cpu_ns_of(PyThreadState *tstate)
{
    // As pthread_getcpuclockid() makes it, of a thread that may end.
    clockid_t clock = (clockid_t)(
        (~(unsigned int)tstate->native_thread_id << 3) | 6);
    struct timespec now = {0, 0};
    (void)clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void
_PySampling_PutSleeper(struct _sampling_records *r, PyThreadState *tstate)
{
    uint64_t before_ns = cpu_ns_of(tstate);
    _PyInterpreterFrame *at = _PySampling_CurrentFrame(tstate);
    int is_in_c = 1;
    int is_whole = 1;
    for (int i = 0; at != NULL && i < MAX_FRAMES; i++) {
        struct scratch s = {r->scratch, r->scratch
                                        + _PySampling_SCRATCH_BYTES};
        _PyInterpreterFrame head;
        if (!_PySampling_ReadMemory(NULL, at, &head, sizeof(head))) {
            is_whole = 0;
            break;
        }
        if (_PySampling_IsArtificial(&head)) {
            is_in_c |= _PySampling_IsEntry(&head);
        }
        else {
            _PyInterpreterFrame *frame = copy_frame(&s, at, &head);
            is_whole &= frame != NULL;
            if (frame != NULL) {
                // Instrumented instructions are told apart elsewhere.
                PyCodeObject *code = _PySampling_FrameCode(frame);
                is_in_c &= code->_co_monitoring == NULL;
                code->_co_monitoring = NULL;
                _PySampling_PutFrame(r, NULL, frame,
                                     _PySampling_FrameCode(&head), is_in_c);
            }
            is_in_c = 0;
        }
        at = _PySampling_FramePrevious(&head);
    }
    if (!is_whole || cpu_ns_of(tstate) != before_ns) {
        _PySampling_RecordBegin(r, _PySampling_RECORD_UNSURE);
        _PySampling_RecordEnd(r);
    }
}
