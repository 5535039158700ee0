/* _profile: what is raised, and why. */

#include "Python.h"

#include "pycore_interp.h"            // monitoring_tool_names
#include "pycore_pystate.h"           // _PyInterpreterState_GET()
#include "pycore_runtime.h"           // _PyRuntime
#include "../../Python/sampling/clock/clock.h"  // _PySampling_IsUsableSignal()
#include "_profile.h"

static void
raise_no_tool_id(void)
{
    PyObject **names = _PyInterpreterState_GET()->monitoring_tool_names;
    PyErr_Format(PyExc_RuntimeError,
                 "calls are not counted: sys.monitoring has no free id "
                 "(2 %V, 3 %V, 4 %V, 5 %V)", names[2], "?", names[3], "?",
                 names[4], "?", names[5], "?");
}

PyObject *
_PyProfile_RaiseStatus(_PySampling_Status status)
{
    switch (status) {
    case _PySampling_OK:
        Py_RETURN_NONE;
    case _PySampling_ERR_RUNNING:
        PyErr_SetString(PyExc_RuntimeError,
                        _PyRuntime.sampling.exit_session
                        ? "the session started by -X sampleprof is running; "
                          "use snapshot()"
                        : "a sampling session is running already; "
                          "stop() it first");
        break;
    case _PySampling_ERR_NOT_RUNNING:
        PyErr_SetString(PyExc_RuntimeError,
                        _PySampling_IsRunning()
                        ? "no sampling session is running but those of "
                          "profile(), which end with their blocks"
                        : "no sampling session is running; start() one "
                          "first");
        break;
    case _PySampling_ERR_EXIT_SESSION:
        PyErr_SetString(PyExc_RuntimeError,
                        "the session started by -X sampleprof ends with the "
                        "program; use snapshot()");
        break;
    case _PySampling_ERR_SIGNAL_TAKEN:
        PyErr_SetString(PyExc_RuntimeError,
                        "the program has a handler for the profiler's "
                        "signal; choose another with signal=");
        break;
    case _PySampling_ERR_THREAD:
        PyErr_Format(PyExc_OSError, "the sampler thread cannot be started "
                     "(%s); is there a limit on threads or memory?",
                     strerror(errno));
        break;
    case _PySampling_ERR_OPTIONS:
        PyErr_SetString(PyExc_RuntimeError,
                        "sampling is under way with fewer depth_frames or "
                        "names or another signal or alloc_bytes than asked "
                        "for; end that "
                        "first, or leave these out");
        break;
    case _PySampling_ERR_FORKED:
        PyErr_SetString(PyExc_RuntimeError,
                        "this process was forked by C code that did not call "
                        "PyOS_AfterFork_Child(): it cannot be sampled");
        break;
    case _PySampling_ERR_ENDING:
        PyErr_SetString(PyExc_RuntimeError,
                        "the interpreter is shutting down: it cannot be "
                        "sampled any more");
        break;
    case _PySampling_ERR_NO_TOOL_ID:
        raise_no_tool_id();
        break;
    case _PySampling_ERR_NO_MEMORY:
        PyErr_NoMemory();
        break;
    }
    return NULL;
}

static const char *
names_text(int names)
{
    return names == 0 ? "off" : names == _PySampling_NAME_CALLS ? "calls"
        : names == _PySampling_NAME_OPCODES ? "opcodes" : "all";
}

static PyObject *
raise_other(const char *name, int has, int asked)
{
    PyErr_Format(PyExc_RuntimeError,
                 "a session is running with %s=%d, so profile() cannot have "
                 "%s=%d; leave it out, or end that first",
                 name, has, name, asked);
    return NULL;
}

PyObject *
_PyProfile_RaiseJoin(const _PySampling_Options *asked)
{
    const _PySampling_Options *have = &_PyRuntime.sampling.session_options;
    if (asked->rate_hz != 0 && asked->rate_hz != have->rate_hz) {
        return raise_other("rate_hz", have->rate_hz, asked->rate_hz);
    }
    if (asked->depth_frames != 0
        && asked->depth_frames != have->depth_frames)
    {
        return raise_other("depth_frames", have->depth_frames,
                           asked->depth_frames);
    }
    if (asked->names >= 0 && asked->names != have->names) {
        PyErr_Format(PyExc_RuntimeError,
                     "a session is running with names='%s', so profile() "
                     "cannot have names='%s'; leave it out, or end that "
                     "first", names_text(have->names),
                     names_text(asked->names));
        return NULL;
    }
    if (asked->alloc_bytes != 0
        && asked->alloc_bytes != have->alloc_bytes)
    {
        return raise_other("alloc_bytes", (int)have->alloc_bytes,
                           (int)asked->alloc_bytes);
    }
    return raise_other("signal", _PyRuntime.sampling.signal, asked->signal);
}

int
_PyProfile_CheckRange(const char *name, long long value, long long min,
                      long long max)
{
    if (value < min || value > max) {
        PyErr_Format(PyExc_ValueError,
                     "%s must be from %lld to %lld, not %lld",
                     name, min, max, value);
        return -1;
    }
    return 0;
}

int
_PyProfile_ReadMode(const char *text, _PySampling_Mode *mode)
{
    if (strcmp(text, "wall") == 0) {
        *mode = _PySampling_WALL;
        return 0;
    }
    if (strcmp(text, "cpu") == 0) {
        *mode = _PySampling_CPU;
        return 0;
    }
    if (strcmp(text, "alloc") == 0) {
        *mode = _PySampling_ALLOC;
        return 0;
    }
    PyErr_Format(PyExc_ValueError,
                 "mode must be 'wall', 'cpu' or 'alloc', not '%s'", text);
    return -1;
}

int
_PyProfile_CheckOptions(const _PySampling_Options *options)
{
    if (_PyProfile_CheckRange("rate_hz", options->rate_hz, 1,
                              _PySampling_MAX_RATE_HZ) < 0
        || _PyProfile_CheckRange("depth_frames", options->depth_frames, 1,
                                 _PySampling_MAX_DEPTH_FRAMES) < 0
        || _PyProfile_CheckRange("names", options->names, 0,
                                 _PySampling_ALL_NAMES) < 0)
    {
        return -1;
    }
    if (options->alloc_bytes != 0
        && _PyProfile_CheckRange("alloc_bytes",
                                 (long long)options->alloc_bytes, 1,
                                 _PySampling_MAX_ALLOC_BYTES) < 0)
    {
        return -1;
    }
    if (options->signal != 0
        && !_PySampling_IsUsableSignal(options->signal))
    {
        PyErr_Format(PyExc_ValueError, "signal %d: "
                     _PySampling_USABLE_SIGNALS, options->signal);
        return -1;
    }
    return 0;
}
