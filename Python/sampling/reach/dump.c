/* Sampling profiler: the stacks of all threads, for another process.

   Owns which threads there are and what is said of each.  Must not know who
   asks.  Async-signal-safe, while nobody but the caller runs Python code: no
   thread's frames change, and none of them ends. */

#include "Python.h"

#include "pycore_interp.h"            // PyInterpreterState.ceval
#include "pycore_pystate.h"           // _PyThreadState_GET()
#include "pycore_runtime.h"           // _PyRuntime
#include "pycore_tstate.h"            // _PyThreadStateImpl

#include "../base/frame.h"
#include "../native/native.h"         // _PySampling_ReadMemory()
#include "../tables/labels.h"
#include "reach.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Of a deeper stack the innermost and the outermost are said. */
#define LEAF_FRAMES 192
#define ROOT_FRAMES 64

/* Nobody waits longer than that for a dump: threads that come after get no
   stack. */
#define MAX_DUMP_NS 200000000
#define MAX_INTERPRETERS 256

static void
put_moment(struct _sampling_records *r)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    _PySampling_RecordBegin(r, _PySampling_RECORD_MOMENT);
    _PySampling_PutNumber(
        r, (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec);
    _PySampling_PutNumber(r, (uint64_t)syscall(SYS_gettid));
    _PySampling_RecordEnd(r);
}

/* Is it so still?  Who has got the GIL since has made a switch. */
static int
is_so(const struct _sampling_gil_note *note,
      const struct _gil_runtime_state *gil)
{
    return _Py_atomic_load_uint64_acquire(&note->switches)
        == gil->switch_number + 1;
}

/* How long it has been so; 0: it is not so, or not known since when. */
static uint64_t
age_of(const struct _sampling_gil_note *note,
       const struct _gil_runtime_state *gil)
{
    uint64_t since_ns =
        is_so(note, gil) ? _Py_atomic_load_uint64_relaxed(&note->since_ns) : 0;
    return since_ns == 0 ? 0 : _PySampling_MonotonicNow() - since_ns;
}

/* The next interpreter in the runtime's list, or NULL.  One that has a GIL of
   its own may end meanwhile: memory that may be gone is read as such. */
static PyInterpreterState *
next_interpreter(PyInterpreterState *interp)
{
    PyInterpreterState *next;
    return _PySampling_ReadMemory(NULL, &interp->next, &next, sizeof(next))
        ? next : NULL;
}

/* Those that share a GIL stand still together. */
static int
shares_gil(PyInterpreterState *interp, const struct _gil_runtime_state *gil)
{
    struct _gil_runtime_state *its;
    return _PySampling_ReadMemory(NULL, &interp->ceval.gil, &its, sizeof(its))
        && its == gil;
}

#define FOR_OTHERS(interp, main) \
    int left = MAX_INTERPRETERS; \
    for (PyInterpreterState *interp = _PyRuntime.interpreters.head; \
         interp != NULL && left-- > 0; interp = next_interpreter(interp)) \
        if (interp != main)

static uint64_t
num_of_other_gils(PyInterpreterState *main)
{
    uint64_t num = 0;
    FOR_OTHERS(interp, main) {
        num += !shares_gil(interp, main->ceval.gil);
    }
    return num;
}

/* A thread that waits for the GIL sleeps at an address in there. */
static void
put_gil(struct _sampling_records *r, PyInterpreterState *interp,
        PyThreadState *holder, int is_asleep)
{
    const struct _gil_runtime_state *gil = interp->ceval.gil;
    _PySampling_RecordBegin(r, _PySampling_RECORD_GIL);
    _PySampling_PutNumber(r, holder != NULL ? holder->native_thread_id : 0);
    _PySampling_PutNumber(r, holder == NULL ? 0 : age_of(
        &_PyRuntime.sampling.reach.holds, gil));
    _PySampling_PutNumber(r, (uintptr_t)gil);
    _PySampling_PutNumber(r, (uintptr_t)(gil + 1));
    _PySampling_PutNumber(r, (uint64_t)is_asleep);
    _PySampling_PutNumber(r, num_of_other_gils(interp));
    _PySampling_RecordEnd(r);
}

static int
depth_of(_PyInterpreterFrame *frame)
{
    int depth = 0;
    for (; frame != NULL; frame = _PySampling_FramePrevious(frame)) {
        depth += !_PySampling_IsArtificial(frame);
    }
    return depth;
}

static void
put_stack(struct _sampling_records *r, PyInterpreterState *interp,
          _PyInterpreterFrame *frame)
{
    int depth = depth_of(frame);
    int num_left_out = Py_MAX(0, depth - LEAF_FRAMES - ROOT_FRAMES);
    int is_in_c = 1;
    int i = 0;
    for (; frame != NULL && !r->is_full;
         frame = _PySampling_FramePrevious(frame))
    {
        if (_PySampling_IsArtificial(frame)) {
            // C code called the frame that comes before this one.
            is_in_c |= _PySampling_IsEntry(frame);
            continue;
        }
        if (i == LEAF_FRAMES && num_left_out > 0) {
            _PySampling_RecordBegin(r, _PySampling_RECORD_LEFT_OUT);
            _PySampling_PutNumber(r, (uint64_t)num_left_out);
            _PySampling_RecordEnd(r);
        }
        if (i < LEAF_FRAMES || i >= LEAF_FRAMES + num_left_out) {
            _PySampling_PutFrame(r, interp, frame,
                                 _PySampling_FrameCode(frame), is_in_c);
            _PySampling_PutLocks(r, interp, frame, i == 0);
        }
        is_in_c = 0;
        i++;
    }
}

static void
put_thread(struct _sampling_records *r, PyThreadState *t,
           PyThreadState *holder)
{
    const struct _gil_runtime_state *gil = t->interp->ceval.gil;
    const struct _sampling_thread_state *own =
        &((_PyThreadStateImpl *)t)->sampling;
    int waits = holder != NULL && t != holder && is_so(&own->waits, gil);
    _PySampling_RecordBegin(r, _PySampling_RECORD_THREAD);
    _PySampling_PutNumber(r, t->native_thread_id);
    _PySampling_PutNumber(r, t->thread_id);
    _PySampling_PutNumber(r, (uint64_t)t->interp->id);
    _PySampling_PutNumber(r, t == holder);
    _PySampling_PutNumber(r, (uint64_t)waits);
    _PySampling_PutNumber(r, waits ? age_of(&own->waits, gil) : 0);
    _PySampling_PutText(r, own->name);
    _PySampling_RecordEnd(r);
}

static void
put_label(struct _sampling_records *r, PyObject *key, PyObject *value)
{
    _PySampling_RecordBegin(r, _PySampling_RECORD_LABEL);
    _PySampling_PutText(r, key);
    _PySampling_PutText(r, value);
    _PySampling_RecordEnd(r);
}

/* Those of what runs in the thread now: a request, or a task. */
static void
put_labels(struct _sampling_records *r, PyThreadState *t)
{
    PyObject *pairs = _PySampling_PairsOf(t, t->context);
    Py_ssize_t size = pairs != NULL ? PyTuple_GET_SIZE(pairs) : 0;
    for (Py_ssize_t i = 0; i + 1 < size; i += 2) {
        put_label(r, PyTuple_GET_ITEM(pairs, i),
                  PyTuple_GET_ITEM(pairs, i + 1));
    }
}

static void
put_requests(struct _sampling_records *r, PyInterpreterState *interp)
{
    uint64_t now_ns = _PySampling_MonotonicNow();
    for (const _PySampling_Request *q = interp->sampling.requests;
         q != NULL && !r->is_full; q = q->next)
    {
        if (q->num_forks != _PyRuntime.sampling.num_forks) {
            continue;
        }
        _PySampling_RecordBegin(r, _PySampling_RECORD_REQUEST);
        _PySampling_PutNumber(r, now_ns - Py_MIN(q->begin_ns, now_ns));
        _PySampling_PutNumber(r, q->native_id);
        _PySampling_PutNumber(r, q->task);
        _PySampling_RecordEnd(r);
        PyObject *key, *value;
        Py_ssize_t pos = 0;
        while (PyDict_Next(q->labels, &pos, &key, &value)) {
            if (PyUnicode_CheckExact(key) && PyUnicode_CheckExact(value)) {
                put_label(r, key, value);
            }
        }
    }
}

static void
put_all_of(struct _sampling_records *r, PyThreadState *t,
           PyThreadState *holder, int is_asleep, uint64_t end_ns)
{
    put_thread(r, t, holder);
    if (_PySampling_MonotonicNow() >= end_ns) {
        return;
    }
    _PySampling_PutKernel(r, (int)t->native_thread_id);
    if (t == holder && is_asleep) {
        _PySampling_PutSleeper(r, t);
        return;
    }
    if (!is_asleep) {
        put_labels(r, t);
    }
    // A holder that wakes up may give memory back: then the kernel is asked
    // for each word of an object, as of memory that may be gone.
    put_stack(r, is_asleep ? NULL : t->interp, _PySampling_CurrentFrame(t));
}

static void
put_interpreter(struct _sampling_records *r, PyInterpreterState *interp,
                PyThreadState *holder, int is_asleep, uint64_t end_ns)
{
    for (PyThreadState *t = interp->threads.head; t != NULL; t = t->next) {
        // The profiler's own thread is not the program's.
        if (((_PyThreadStateImpl *)t)->sampling.is_excluded
                != _PySampling_HELPER)
        {
            put_all_of(r, t, holder, is_asleep, end_ns);
        }
    }
    if (!is_asleep) {
        put_requests(r, interp);
    }
}

void
_PySampling_Dump(struct _sampling_records *r, PyInterpreterState *interp,
                 PyThreadState *holder, int is_asleep)
{
    uint64_t end_ns = _PySampling_MonotonicNow() + MAX_DUMP_NS;
    put_moment(r);
    put_gil(r, interp, holder, is_asleep);
    put_interpreter(r, interp, holder, is_asleep, end_ns);
    FOR_OTHERS(its, interp) {
        if (shares_gil(its, interp->ceval.gil)) {
            put_interpreter(r, its, holder, is_asleep, end_ns);
        }
    }
    r->is_full |= _PySampling_MonotonicNow() >= end_ns;
}
