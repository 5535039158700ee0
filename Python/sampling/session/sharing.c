/* Sampling profiler: who shares the tables.

   Owns what holds for sessions, blocks of profile() and subscriptions alike:
   may they begin, and with which options.  The tables are deep enough, and
   name enough, for all of them.  And from when to when they get records. */

#include "Python.h"

#include "pycore_runtime.h"           // _PyRuntime

#include "session.h"

#include <errno.h>

#define STATE (&_PyRuntime.sampling)


/* Begin. */

int
_PySampling_IsRunning(void)
{
    return (STATE->session != NULL || STATE->num_profiles > 0)
        && !_PySampling_ForkedWithoutHooks();
}

_PySampling_Status
_PySampling_MayBegin(void)
{
    if (_PySampling_ForkedWithoutHooks()) {
        return _PySampling_ERR_FORKED;
    }
    return _PyRuntimeState_GetFinalizing(&_PyRuntime) == NULL
        ? _PySampling_OK : _PySampling_ERR_ENDING;
}

void
_PySampling_FillOptions(_PySampling_Options *options)
{
    if (STATE->tables != NULL) {
        // No table is cut for who asks for less: what is said of it is true.
        options->depth_frames = Py_MAX(options->depth_frames,
                                       STATE->options.depth_frames);
        options->names = options->names < 0 ? STATE->options.names
            : options->names | STATE->options.names;
        return;
    }
    if (options->depth_frames == 0) {
        options->depth_frames = _PySampling_DEFAULT_DEPTH_FRAMES;
    }
    if (options->names < 0) {
        options->names = _PySampling_ALL_NAMES;
    }
}

void
_PySampling_DefaultOptions(_PySampling_Options *options)
{
    _PySampling_LockControl();
    _PySampling_FillOptions(options);
    _PySampling_UnlockControl();
}

int
_PySampling_ClockSignal(void)
{
    return STATE->clock != NULL ? STATE->signal : STATE->options.signal;
}

_PySampling_Status
_PySampling_TablesEnsureOrCheck(const _PySampling_Options *options)
{
    if (STATE->tables == NULL) {
        return _PySampling_EnginePrepare(options);
    }
    if (!_PySampling_AllocMayJoin(options->alloc_bytes)
        || options->depth_frames > STATE->options.depth_frames
        || (options->names & ~STATE->options.names)
        || (options->signal != 0
            && options->signal != _PySampling_ClockSignal())
        || options->manual != STATE->options.manual)
    {
        return _PySampling_ERR_OPTIONS;
    }
    return _PySampling_OK;
}


/* Sinks begin. */

_PySampling_Status
_PySampling_OpenSink(PyThreadState *tstate, struct _sampling_sink *sink)
{
    // What was before is not of it.
    if (!_PySampling_Flush(tstate)) {
        return _PySampling_ERR_NO_MEMORY;
    }
    _PySampling_LockTables();
    int is_ready = _PySampling_SinkReady(sink);
    if (is_ready) {
        if (_PySampling_STANDS_STILL(_PySampling_PAUSES())
            && STATE->session != sink)
        {
            // It is between its regions, and time goes on for somebody else.
            _PySampling_SinkUnlink(STATE->session);
        }
        if (STATE->active && sink->start_wall_ns == 0) {
            _PySampling_BeginSink(sink, _PySampling_FlushedNow());
        }
        STATE->times_tasks = sink->options.mode != _PySampling_ALLOC
            || (STATE->times_tasks && STATE->sinks != NULL);
        _PySampling_SinkLink(sink);
    }
    _PySampling_UnlockTables();
    _PySampling_Status status = is_ready
        ? _PySampling_EngineReconfigure(tstate) : _PySampling_ERR_NO_MEMORY;
    if (status == _PySampling_OK) {
        status = _PySampling_AllocReconfigure();
    }
    if (is_ready && status != _PySampling_OK) {
        int saved_errno = errno;
        _PySampling_CloseSink(tstate, sink);
        errno = saved_errno;
    }
    return status;
}

_PySampling_Status
_PySampling_CloseSink(PyThreadState *tstate, struct _sampling_sink *sink)
{
    _PySampling_LockTables();
    _PySampling_SinkUnlink(sink);
    if (STATE->sinks == NULL && STATE->session != NULL
        && STATE->session != sink)
    {
        // It is between its regions: time stands still from now on.
        _PySampling_SinkLink(STATE->session);
    }
    _PySampling_UnlockTables();
    (void)_PySampling_AllocReconfigure();
    // The others may want a lower rate.
    return STATE->tables != NULL
        ? _PySampling_EngineReconfigure(tstate) : _PySampling_OK;
}


/* Sinks end. */

uint64_t
_PySampling_SinkEnd(PyThreadState *tstate, const struct _sampling_sink *sink)
{
    if (_PySampling_IsLast(sink)) {
        return _PySampling_EngineOff(tstate);
    }
    return _PySampling_Flush(tstate) ? _PySampling_FlushedNow() : 0;
}
