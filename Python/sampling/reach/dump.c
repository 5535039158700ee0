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

/* How long it has been so; 0: it is not so, or not known since when. */
static uint64_t
age_of(const struct _sampling_gil_note *note,
       const struct _gil_runtime_state *gil)
{
    return note->switches != gil->switch_number + 1 || note->since_ns == 0
        ? 0 : _PySampling_MonotonicNow() - note->since_ns;
}

/* A thread that waits for the GIL sleeps at an address in there. */
static void
put_gil(struct _sampling_records *r, const struct _gil_runtime_state *gil,
        PyThreadState *holder)
{
    _PySampling_RecordBegin(r, _PySampling_RECORD_GIL);
    _PySampling_PutNumber(r, holder != NULL ? holder->native_thread_id : 0);
    _PySampling_PutNumber(r, holder == NULL ? 0 : age_of(
        &_PyRuntime.sampling.reach.holds, gil));
    _PySampling_PutNumber(r, (uintptr_t)gil);
    _PySampling_PutNumber(r, (uintptr_t)(gil + 1));
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
    // Who has got it since has made a switch.
    int waits = holder != NULL && t != holder
        && own->waits.switches == gil->switch_number + 1;
    _PySampling_RecordBegin(r, _PySampling_RECORD_THREAD);
    _PySampling_PutNumber(r, t->native_thread_id);
    _PySampling_PutNumber(r, t->thread_id);
    _PySampling_PutNumber(r, t == holder);
    _PySampling_PutNumber(r, (uint64_t)waits);
    _PySampling_PutNumber(r, waits ? age_of(&own->waits, gil) : 0);
    _PySampling_PutText(r, own->name);
    _PySampling_RecordEnd(r);
}

/* Those of what runs in the thread now: a request, or a task. */
static void
put_labels(struct _sampling_records *r, PyThreadState *t)
{
    PyObject *pairs = _PySampling_PairsOf(t, t->context);
    Py_ssize_t size = pairs != NULL ? PyTuple_GET_SIZE(pairs) : 0;
    for (Py_ssize_t i = 0; i + 1 < size; i += 2) {
        _PySampling_RecordBegin(r, _PySampling_RECORD_LABEL);
        _PySampling_PutText(r, PyTuple_GET_ITEM(pairs, i));
        _PySampling_PutText(r, PyTuple_GET_ITEM(pairs, i + 1));
        _PySampling_RecordEnd(r);
    }
}

void
_PySampling_Dump(struct _sampling_records *r, PyInterpreterState *interp,
                 PyThreadState *holder, int is_asleep)
{
    uint64_t end_ns = _PySampling_MonotonicNow() + MAX_DUMP_NS;
    // A holder that wakes up may give memory back: then the kernel is asked
    // for each word of an object, as of memory that may be gone.
    PyInterpreterState *readable = is_asleep ? NULL : interp;
    put_moment(r);
    put_gil(r, interp->ceval.gil, holder);
    for (PyThreadState *t = interp->threads.head; t != NULL; t = t->next) {
        put_thread(r, t, holder);
        if (_PySampling_MonotonicNow() >= end_ns) {
            continue;
        }
        _PySampling_PutKernel(r, (int)t->native_thread_id);
        if (t == holder && is_asleep) {
            _PySampling_PutSleeper(r, t);
        }
        else {
            if (!is_asleep) {
                put_labels(r, t);
            }
            put_stack(r, readable, _PySampling_CurrentFrame(t));
        }
    }
    r->is_full |= _PySampling_MonotonicNow() >= end_ns;
}
