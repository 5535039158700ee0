/* The _profile module: what Lib/profile_sampling calls.

   Glue only: arguments, errors and the lifetime of results.  The profiler is
   in Python/sampling*.c. */

#ifndef Py_BUILD_CORE_BUILTIN
#  define Py_BUILD_CORE_MODULE 1
#endif

#include "Python.h"

#include "pycore_pystate.h"           // _PyThreadState_GET()
#include "pycore_runtime.h"           // _PyRuntime
#include "pycore_sampling_tables.h"

#include <signal.h>

/*[clinic input]
module _profile
[clinic start generated code]*/
/*[clinic end generated code: output=da39a3ee5e6b4b0d input=c968e7bb6e08bc3b]*/

#include "clinic/_profile.c.h"

static PyObject *
raise_status(_PySampling_Status status)
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
                        "no sampling session is running; start() one first");
        break;
    case _PySampling_ERR_EXIT_SESSION:
        PyErr_SetString(PyExc_RuntimeError,
                        "the session started by -X sampleprof ends with the "
                        "program; use snapshot()");
        break;
    case _PySampling_ERR_UNSUPPORTED:
        PyErr_SetString(PyExc_NotImplementedError,
                        "the sampling profiler needs Linux and a build of "
                        "CPython with the GIL");
        break;
    case _PySampling_ERR_SIGNAL_TAKEN:
        PyErr_SetString(PyExc_RuntimeError,
                        "the program has a handler for the profiler's "
                        "signal; choose another with signal=");
        break;
    case _PySampling_ERR_THREAD:
        PyErr_SetFromErrno(PyExc_OSError);
        break;
    case _PySampling_ERR_NO_MEMORY:
        PyErr_NoMemory();
        break;
    }
    return NULL;
}

static PyObject *
export_and_free(struct _sampling_tables *tables)
{
    PyObject *raw = _PySampling_Export(tables);
    _PySampling_TablesFree(tables);
    return raw;
}

static int
check_range(const char *name, int value, int min, int max)
{
    if (value < min || value > max) {
        PyErr_Format(PyExc_ValueError, "%s must be from %d to %d, not %d",
                     name, min, max, value);
        return -1;
    }
    return 0;
}

/*[clinic input]
_profile.start

    *
    mode: str = "wall"
    rate_hz: int = 1000
    depth_frames: int = 512
    names: int = 3
    signal: int = 0
    manual: bool = False

Start a sampling session.
[clinic start generated code]*/

static PyObject *
_profile_start_impl(PyObject *module, const char *mode, int rate_hz,
                    int depth_frames, int names, int signal, int manual)
/*[clinic end generated code: output=e78c05a39b57aa36 input=b69c36ea8a103574]*/
{
    _PySampling_Options options = {
        .mode = _PySampling_WALL,
        .rate_hz = rate_hz,
        .depth_frames = depth_frames,
        .names = names,
        .signal = signal,
        .manual = manual,
    };
    if (strcmp(mode, "cpu") == 0) {
        options.mode = _PySampling_CPU;
    }
    else if (strcmp(mode, "wall") != 0) {
        PyErr_Format(PyExc_ValueError,
                     "mode must be 'wall' or 'cpu', not '%s'", mode);
        return NULL;
    }
    if (check_range("rate_hz", rate_hz, 1, _PySampling_MAX_RATE_HZ) < 0
        || check_range("depth_frames", depth_frames, 1,
                       _PySampling_MAX_DEPTH_FRAMES) < 0
        || check_range("names", names, 0, _PySampling_ALL_NAMES) < 0)
    {
        return NULL;
    }
    if (signal != 0 && !_PySampling_IsUsableSignal(signal)) {
        PyErr_Format(PyExc_ValueError, "signal %d: "
                     _PySampling_USABLE_SIGNALS, signal);
        return NULL;
    }
    return raise_status(_PySampling_Start(_PyThreadState_GET(), &options));
}

/*[clinic input]
_profile.stop

End the session and return what was sampled.
[clinic start generated code]*/

static PyObject *
_profile_stop_impl(PyObject *module)
/*[clinic end generated code: output=9a0d8b4f0c03d30a input=a1111cf0f8d0ce25]*/
{
    if (_PySampling_ACTIVE() && _PyRuntime.sampling.exit_session) {
        return raise_status(_PySampling_ERR_EXIT_SESSION);
    }
    struct _sampling_tables *tables;
    _PySampling_Status status = _PySampling_Stop(_PyThreadState_GET(),
                                                 &tables);
    if (status != _PySampling_OK) {
        return raise_status(status);
    }
    return export_and_free(tables);
}

/*[clinic input]
_profile.snapshot

    clear: bool = False

Return what has been sampled so far; with clear, begin anew.
[clinic start generated code]*/

static PyObject *
_profile_snapshot_impl(PyObject *module, int clear)
/*[clinic end generated code: output=94597fcaef09d70f input=cfaaeae9ea351bd2]*/
{
    struct _sampling_tables *tables;
    _PySampling_Status status = _PySampling_Snapshot(_PyThreadState_GET(),
                                                     clear, &tables);
    if (status != _PySampling_OK) {
        return raise_status(status);
    }
    return export_and_free(tables);
}

/*[clinic input]
_profile.running -> bool

Is a session running in this process?
[clinic start generated code]*/

static int
_profile_running_impl(PyObject *module)
/*[clinic end generated code: output=85670d238a9e47d7 input=a11a50c3a8202475]*/
{
    return _PySampling_ACTIVE();
}

/*[clinic input]
_profile.stats

Return the counters of the running or the last session.
[clinic start generated code]*/

static PyObject *
_profile_stats_impl(PyObject *module)
/*[clinic end generated code: output=a46c3e6eaa7ea04e input=5ce5c094c7eadf52]*/
{
    if (_PySampling_ACTIVE()) {
        _PySampling_Measure();
    }
    return _PySampling_ExportCounters(&_PyRuntime.sampling.counters);
}

/*[clinic input]
_profile.tick

    wall_ns: unsigned_long_long
    cpu_ns: unsigned_long_long
    /

Tick a manual session: this thread is asked, that long after the last tick.
[clinic start generated code]*/

static PyObject *
_profile_tick_impl(PyObject *module, unsigned long long wall_ns,
                   unsigned long long cpu_ns)
/*[clinic end generated code: output=6b795527a07de8a0 input=a7545056426bef29]*/
{
    return raise_status(_PySampling_ManualTick(_PyThreadState_GET(), wall_ns,
                                               cpu_ns));
}

/*[clinic input]
_profile.set_thread_name

    ident: unsigned_long(bitwise=True)
    name: object
    /

Tell the running session, if any, what the thread is called.
[clinic start generated code]*/

static PyObject *
_profile_set_thread_name_impl(PyObject *module, unsigned long ident,
                              PyObject *name)
/*[clinic end generated code: output=137d712c4f46f726 input=d3c3a3bfe5491f9b]*/
{
    _PySampling_SetThreadName(ident, name);
    Py_RETURN_NONE;
}

PyDoc_STRVAR(module_doc, "The core of the sampling profiler.\n\n"
"Use the profile_sampling package.");

static PyMethodDef module_methods[] = {
    _PROFILE_START_METHODDEF
    _PROFILE_STOP_METHODDEF
    _PROFILE_SNAPSHOT_METHODDEF
    _PROFILE_RUNNING_METHODDEF
    _PROFILE_STATS_METHODDEF
    _PROFILE_TICK_METHODDEF
    _PROFILE_SET_THREAD_NAME_METHODDEF
    {NULL, NULL}
};

static PyModuleDef_Slot module_slots[] = {
    {Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED},
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
    {0, NULL}
};

static struct PyModuleDef module_def = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_profile",
    .m_doc = module_doc,
    .m_size = 0,
    .m_methods = module_methods,
    .m_slots = module_slots,
};

PyMODINIT_FUNC
PyInit__profile(void)
{
    return PyModuleDef_Init(&module_def);
}
