/* Sampling profiler: who shares the tables.

   Owns what holds for sessions, blocks of profile() and subscriptions alike:
   may they begin, and with which options.  The tables are deep enough, and
   name enough, for all of them.  And from when to when the profiles of
   sessions and blocks get samples. */

#include "Python.h"

#include "pycore_runtime.h"           // _PyRuntime

#include "session.h"

#include <errno.h>

#define STATE (&_PyRuntime.sampling)


/* Begin. */

int
_PySampling_IsRunning(void)
{
    return (STATE->session != NULL || STATE->profiles != NULL)
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
_PySampling_Share(const _PySampling_Options *options)
{
    if (STATE->tables == NULL) {
        return _PySampling_EnginePrepare(options);
    }
    if (options->depth_frames > STATE->options.depth_frames
        || (options->names & ~STATE->options.names)
        || (options->signal != 0
            && options->signal != _PySampling_ClockSignal())
        || options->manual != STATE->options.manual)
    {
        return _PySampling_ERR_OPTIONS;
    }
    return _PySampling_OK;
}


/* Profiles begin. */

_PySampling_Status
_PySampling_OpenProfile(PyThreadState *tstate,
                        struct _sampling_profile *profile)
{
    // What was before is not of it.
    if (!_PySampling_Flush(tstate)) {
        return _PySampling_ERR_NO_MEMORY;
    }
    _PySampling_LockTables();
    if (STATE->active && profile->start_wall_ns == 0) {
        _PySampling_BeginProfile(profile, _PySampling_FlushedNow());
    }
    _PySampling_LINK(STATE->profiles, profile);
    profile->is_open = 1;
    _PySampling_UnlockTables();
    _PySampling_Status status = _PySampling_EngineReconfigure(tstate);
    if (status != _PySampling_OK) {
        int saved_errno = errno;
        _PySampling_CloseProfile(tstate, profile);
        errno = saved_errno;
    }
    return status;
}

void
_PySampling_CloseProfile(PyThreadState *tstate,
                         struct _sampling_profile *profile)
{
    _PySampling_LockTables();
    _PySampling_UNLINK(STATE->profiles, profile);
    profile->is_open = 0;
    _PySampling_UnlockTables();
    if (STATE->tables != NULL) {
        // The others may want a lower rate.
        (void)_PySampling_EngineReconfigure(tstate);
    }
}


/* Profiles end. */

int
_PySampling_IsLast(const struct _sampling_profile *profile)
{
    return STATE->subscriptions == NULL
        && (STATE->session == NULL || STATE->session == profile)
        && (STATE->profiles == NULL
            || (STATE->profiles == profile && profile->next == NULL));
}

uint64_t
_PySampling_ProfileEnd(PyThreadState *tstate,
                       const struct _sampling_profile *profile)
{
    if (_PySampling_IsLast(profile)) {
        return _PySampling_EngineOff(tstate);
    }
    return _PySampling_Flush(tstate) ? _PySampling_FlushedNow() : 0;
}
