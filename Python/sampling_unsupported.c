/* The sampling profiler where there is none: asking for it fails, and the hooks
   do nothing. */

#include "Python.h"

#include "pycore_sampling.h"
#include "pycore_sampling_events.h"
#include "pycore_sampling_parts.h"

#ifndef _PySampling_SUPPORTED

_PySampling_Status
_PySampling_Start(PyThreadState *tstate, const _PySampling_Options *options)
{
    return _PySampling_ERR_UNSUPPORTED;
}

int
_PySampling_IsUsableSignal(int signum)
{
    return 1;       // start() says what is really missing
}

_PySampling_Status
_PySampling_Stop(PyThreadState *tstate, struct _sampling_tables **result)
{
    return _PySampling_ERR_NOT_RUNNING;
}

_PySampling_Status
_PySampling_Snapshot(PyThreadState *tstate, int clear,
                     struct _sampling_tables **copy)
{
    return _PySampling_ERR_NOT_RUNNING;
}

_PySampling_Status
_PySampling_Enter(PyThreadState *tstate)
{
    return _PySampling_ERR_NOT_RUNNING;
}

_PySampling_Status
_PySampling_Leave(PyThreadState *tstate)
{
    return _PySampling_ERR_NOT_RUNNING;
}

_PySampling_Status
_PySampling_Subscribe(PyThreadState *tstate,
                      struct _sampling_subscription *sub,
                      const _PySampling_Options *options)
{
    return _PySampling_ERR_UNSUPPORTED;
}

_PySampling_Status
_PySampling_Unsubscribe(PyThreadState *tstate,
                        struct _sampling_subscription *sub)
{
    return _PySampling_OK;
}

_PySampling_Status
_PySampling_FlushSubscription(PyThreadState *tstate,
                              struct _sampling_subscription *sub)
{
    return _PySampling_OK;
}

_PySampling_Status
_PySampling_SetSubscriptionRate(PyThreadState *tstate,
                                struct _sampling_subscription *sub,
                                int rate_hz)
{
    return _PySampling_OK;
}

void
_PySampling_AccountForBlocked(PyThreadState *tstate)
{
}

int
_PySampling_PutOffSignals(PyThreadState *tstate, int put_off)
{
    return 0;
}

void
_PySampling_DefaultOptions(_PySampling_Options *options)
{
    options->depth_frames = _PySampling_DEFAULT_DEPTH_FRAMES;
    options->names = _PySampling_ALL_NAMES;
}

_PySampling_Status
_PySampling_RenewIfFull(PyThreadState *tstate)
{
    return _PySampling_OK;
}

_PySampling_Status
_PySampling_Sample(PyThreadState *tstate, uint64_t weight, PyObject *pairs)
{
    return _PySampling_ERR_NOT_RUNNING;
}

_PySampling_Status
_PySampling_ManualTick(PyThreadState *tstate, uint64_t wall_ns,
                       uint64_t cpu_ns)
{
    return _PySampling_ERR_NOT_RUNNING;
}

void
_PySampling_EndSubscriptions(PyThreadState *tstate)
{
}

void
_PySampling_Measure(void)
{
}

void
_PySampling_SetThreadName(unsigned long ident, PyObject *name)
{
}

int
_PySampling_OwnThreads(void)
{
    return 0;
}

int
_PySampling_IsForkedUnheard(void)
{
    return 0;
}

// Never reached: active stays 0.
int _PySampling_Safepoint(PyThreadState *tstate) { return 0; }
void _PySampling_RecordNow(PyThreadState *tstate) {}
void _PySampling_BeforeDetach(PyThreadState *tstate) {}
void _PySampling_BeforeGILWait(PyThreadState *tstate) {}
void _PySampling_AfterAttach(PyThreadState *tstate) {}
void _PySampling_ThreadEnd(PyThreadState *tstate) {}
void _PySampling_InterpreterEnd(PyInterpreterState *interp) {}
void _PySampling_GCStart(PyThreadState *tstate, int generation) {}
void _PySampling_GCEnd(PyThreadState *tstate) {}
void _PySampling_CodeEnd(PyCodeObject *code) {}
void _PySampling_TypeEnd(PyTypeObject *type) {}
void _PySampling_AfterHandlerRaised(PyThreadState *tstate) {}
int _PySampling_PutsOffSignals(PyThreadState *tstate) { return 0; }
void _PySampling_BeforeSetSignal(int signum) {}
void _PySampling_BeforeExec(void) {}
void _PySampling_AfterFailedExec(void) {}
void _PySampling_BeforeFork(void) {}
void _PySampling_AfterForkParent(void) {}
void _PySampling_AfterForkChild(void) {}

#endif  // !_PySampling_SUPPORTED
