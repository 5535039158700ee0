/* Sampling profiler: what the collector, code objects and types report.

   Owns the hooks that run because an object dies or a collection begins.  Must
   not know how a stack is walked or a row is laid out. */

#include "Python.h"

#include "pycore_interp.h"            // PyInterpreterState.sampling
#include "pycore_pystate.h"           // _PyThreadState_GET()
#include "pycore_runtime.h"           // _PyRuntime
#include "pycore_tstate.h"            // _PyThreadStateImpl

#include "alloc/alloc.h"
#include "base/frame.h"
#include "calls/calls.h"
#include "native/native.h"
#include "sample/sample.h"
#include "session/session.h"
#include "sinks/sinks.h"

#include <errno.h>

#define STATE (&_PyRuntime.sampling)


/* Collections. */

void
(_PySampling_GCStart)(PyThreadState *tstate, int generation)
{
    _PySampling_Thread *thread = _PySampling_ThreadEnsure(tstate);
    if (thread != NULL) {
        _PySampling_ENTER_HOOK(thread);
        thread->gc_start_ns = _PySampling_WallNow();
        thread->gc_frame = _PySampling_CurrentFrame(tstate);
        thread->gc_generation = generation;
        _PySampling_LEAVE_HOOK(thread);
    }
}

static void
count_collection(int generation)
{
    switch (generation) {
    case 0:
        _PySampling_COUNT(collections_gen0, 1);
        break;
    case 1:
        _PySampling_COUNT(collections_gen1, 1);
        break;
    default:
        _PySampling_COUNT(collections_gen2, 1);
    }
}

static void
emit_gc_record(_PySampling_Thread *thread, uint64_t pause_ns)
{
    _PySampling_LockTables();
    if (_PySampling_TABLES_OF(thread) != NULL) {
        count_collection(thread->gc_generation);
        _PySampling_EmitEvent(PySampling_GC, thread->thread_index,
                               (uint64_t)thread->gc_generation, 0, pause_ns);
    }
    _PySampling_UnlockTables();
}

static void
end_collection(PyThreadState *tstate, _PySampling_Thread *thread,
               Py_ssize_t freed, Py_ssize_t uncollectable)
{
    if (thread->excluded || _PySampling_STANDS_STILL(_PySampling_PAUSES())) {
        return;
    }
    const _PySampling_Collections its = {
        .number = 1,
        .pause_ns = _PySampling_WallNow() - thread->gc_start_ns,
        .freed = (uint64_t)freed,
        .uncollectable = (uint64_t)uncollectable,
    };
    emit_gc_record(thread, its.pause_ns);
    _PySampling_AllocCollection(tstate, thread, &its);
}

void
(_PySampling_GCEnd)(PyThreadState *tstate, Py_ssize_t freed,
                    Py_ssize_t uncollectable)
{
    _PySampling_Thread *thread = _PySampling_RECORD_OF(tstate);
    if (thread != NULL && thread->gc_generation >= 0) {
        _PySampling_ENTER_HOOK(thread);
        end_collection(tstate, thread, freed, uncollectable);
        thread->gc_generation = -1;
        _PySampling_LEAVE_HOOK(thread);
    }
}


/* Deaths. */

/* Before something dies that captures may refer to: what waits becomes
   samples, and the tables forget it. */
static void
forget(void (*forget_it)(struct _sampling_tables *tables, void *it), void *it)
{
    PyThreadState *tstate = _PyThreadState_GET();
    _PySampling_Thread *thread = _PySampling_RECORD_OF(tstate);
    int saved_errno = errno;
    if (thread != NULL) {
        _PySampling_ENTER_HOOK(thread);
        if (_PySampling_IN_EPOCH(thread)) {
            _PySampling_Drain(tstate, thread);
        }
    }
    _PySampling_LockTables();
    if (STATE->tables != NULL) {
        forget_it(STATE->tables, it);
    }
    _PySampling_UnlockTables();
    if (thread != NULL) {
        _PySampling_LEAVE_HOOK(thread);
    }
    errno = saved_errno;
}

static void
forget_code(struct _sampling_tables *tables, void *code)
{
    struct _sampling_buffer *buffer =
        _PyInterpreterState_GET()->sampling.buffer;
    if (buffer != NULL) {
        _PySampling_BufferForgetCode(buffer, code);
    }
    _PySampling_TablesForgetCode(tables, code);
}

static void
forget_type(struct _sampling_tables *tables, void *type)
{
    _PySampling_TablesForgetType(tables, type);
}

void
(_PySampling_CodeEnd)(PyCodeObject *code)
{
    forget(forget_code, code);
}

void
(_PySampling_TypeEnd)(PyTypeObject *type)
{
    forget(forget_type, type);
    _PySampling_CallsForgetType(type);
}
