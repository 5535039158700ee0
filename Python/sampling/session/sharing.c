/* Sampling profiler: who shares the tables.

   Owns what holds for sessions, blocks of profile() and subscriptions alike:
   may they begin, with which options, and who gets the tables in the end.  The
   tables are deep enough, and name enough, for all of them.  Must not know
   which of the three it is. */

#include "Python.h"

#include "pycore_runtime.h"           // _PyRuntime

#include "session.h"

#define STATE (&_PyRuntime.sampling)


/* Begin. */

int
_PySampling_IsRunning(void)
{
    return (STATE->has_session || STATE->blocks != NULL)
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

_PySampling_Status
_PySampling_ShareAnew(PyThreadState *tstate,
                      const _PySampling_Options *options)
{
    int is_used = STATE->tables != NULL;
    _PySampling_Status status = _PySampling_Share(options);
    if (status == _PySampling_OK && is_used) {
        if (!_PySampling_Flush(tstate)) {
            return _PySampling_ERR_NO_MEMORY;
        }
        _PySampling_EngineClearSamples();
    }
    return status;
}


/* End. */

static struct _sampling_tables *
copy_tables(void)
{
    PyMutex_LockFlags(&STATE->tables_mutex, _Py_LOCK_DONT_DETACH);
    _PySampling_EngineDescribe(STATE->tables);
    struct _sampling_tables *copy = _PySampling_TablesCopy(STATE->tables);
    PyMutex_Unlock(&STATE->tables_mutex);
    return copy;
}

/* Records that wait for a subscriber who has closed refer to rows of theirs:
   for these they stay as they are. */
_PySampling_Status
_PySampling_OwnTables(struct _sampling_tables **tables)
{
    if (*tables == NULL || !_PySampling_TablesAreShared(*tables)) {
        return _PySampling_OK;
    }
    struct _sampling_tables *copy = _PySampling_TablesCopy(*tables);
    _PySampling_TablesFree(*tables);
    *tables = copy;
    return copy != NULL ? _PySampling_OK : _PySampling_ERR_NO_MEMORY;
}

_PySampling_Status
_PySampling_TakeTables(PyThreadState *tstate, int goes_on,
                       struct _sampling_tables **result)
{
    *result = NULL;
    if (!goes_on && STATE->subscriptions == NULL) {
        *result = _PySampling_EngineOff(tstate);
        (void)_PySampling_OwnTables(result);
    }
    else if (_PySampling_Flush(tstate)) {
        *result = copy_tables();
    }
    return *result != NULL ? _PySampling_OK : _PySampling_ERR_NO_MEMORY;
}
