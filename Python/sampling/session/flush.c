/* Sampling profiler: the moments at which all time has to be on samples.

   Owns whose time that is.  Must not know when such a moment is
   (session/session.c, session/engine.c), or how time is recorded. */

#include "Python.h"

#include "pycore_interp.h"            // PyInterpreterState.sampling
#include "pycore_runtime.h"           // _PyRuntime
#include "pycore_tstate.h"            // _PyThreadStateImpl

#include "../sample/sample.h"
#include "../task/task.h"
#include "session.h"

#define STATE (&_PyRuntime.sampling)


/* For the caller, and all threads that its GIL keeps from running.  A thread
   of another GIL accounts for itself when it attaches.  Returns the moment,
   which is one for all. */
static uint64_t
for_threads(PyThreadState *tstate,
            void (*account)(_PySampling_Thread *thread, uint64_t now_ns))
{
    _PySampling_Thread *own = _PySampling_RECORD_OF(tstate);
    _PySampling_ENTER_HOOK(own);
    // Not before: a tick in between would record the caller beyond it.
    uint64_t now_ns = _PySampling_WallNow();
    // Stacks are walked into the buffer in which captures wait.
    _PySampling_Drain(tstate, own);
    _PySampling_LockRegistry();
    for (struct _sampling_interpreter_state *s = STATE->interpreters;
         s != NULL; s = s->next)
    {
        if (!_PySampling_SharesGIL(s, tstate)) {
            continue;
        }
        for (_PySampling_Thread *t = s->threads; t != NULL; t = t->next) {
            if (t->epoch == STATE->epoch) {
                account(t, now_ns);
            }
        }
    }
    _PySampling_UnlockRegistry();
    _PySampling_LEAVE_HOOK(own);
    return now_ns;
}

/* The same for tasks, which are on no thread's clock. */
static void
flush_tasks(PyThreadState *tstate, uint64_t now_ns)
{
    _PySampling_Thread *own = _PySampling_RECORD_OF(tstate);
    _PySampling_ENTER_HOOK(own);
    _PySampling_LockRegistry();
    for (struct _sampling_interpreter_state *s = STATE->interpreters;
         s != NULL; s = s->next)
    {
        if (_PySampling_SharesGIL(s, tstate)) {
            _PySampling_TasksFlush(tstate, own, s, now_ns);
        }
    }
    _PySampling_UnlockRegistry();
    _PySampling_LEAVE_HOOK(own);
}

uint64_t
_PySampling_FlushThreads(
    PyThreadState *tstate,
    void (*account)(_PySampling_Thread *thread, uint64_t now_ns))
{
    uint64_t now_ns = for_threads(tstate, account);
    flush_tasks(tstate, now_ns);
    STATE->flushed_wall_ns = now_ns;
    _PySampling_UpdateMemoryBytes();
    return now_ns;
}

void
_PySampling_AccountForBlocked(PyThreadState *tstate)
{
    _PySampling_LockControl();
    if (STATE->active && _PySampling_ThreadEnsure(tstate) != NULL) {
        (void)for_threads(tstate, _PySampling_RecordBlocked);
    }
    _PySampling_UnlockControl();
}

int
_PySampling_Flush(PyThreadState *tstate)
{
    if (!STATE->active) {
        return 1;
    }
    if (_PySampling_ThreadEnsure(tstate) == NULL) {
        return 0;
    }
    (void)_PySampling_FlushThreads(tstate, _PySampling_RecordAll);
    return 1;
}

uint64_t
_PySampling_FlushedNow(void)
{
    return STATE->active ? STATE->flushed_wall_ns : _PySampling_WallNow();
}

void
_PySampling_RecordLostThreads(PyThreadState *caller, uint64_t now_ns)
{
    _PySampling_LockRegistry();
    _PySampling_LockTables();
    for (struct _sampling_interpreter_state *s = STATE->interpreters;
         s != NULL; s = s->next)
    {
        if (_PySampling_SharesGIL(s, caller)) {
            continue;
        }
        for (_PySampling_Thread *t = s->threads; t != NULL; t = t->next) {
            if (_PySampling_IN_EPOCH(t)) {
                _PySampling_RecordLost(t, now_ns);
            }
        }
    }
    _PySampling_UnlockTables();
    _PySampling_UnlockRegistry();
}
