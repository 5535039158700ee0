/* The _profile module: what Lib/profile_sampling calls.

   Glue only: arguments, errors and the lifetime of results.  The profiler is
   in Python/sampling/. */

#ifndef Py_BUILD_CORE_BUILTIN
#  define Py_BUILD_CORE_MODULE 1
#endif

#include "Python.h"

#include "pycore_pystate.h"           // _PyThreadState_GET()
#include "pycore_runtime.h"           // _PyRuntime

#include "../../Python/sampling/reach/reach.h"
#include "../../Python/sampling/task/task.h"
#include "_profile.h"

#include <sched.h>                    // unshare()
#include <sys/syscall.h>
#include <unistd.h>

/* That of Linux 5.9, in whose headers it is. */
#ifndef SYS_close_range
#  define SYS_close_range 436
#endif
#ifndef CLOSE_RANGE_UNSHARE
#  define CLOSE_RANGE_UNSHARE (1U << 1)
#endif

/*[clinic input]
module _profile
[clinic start generated code]*/
/*[clinic end generated code: output=da39a3ee5e6b4b0d input=c968e7bb6e08bc3b]*/

#include "clinic/_profile.c.h"

static PyObject *
export_and_free(struct _sampling_profile *profile)
{
    PyObject *raw = _PyProfile_ExportProfile(profile);
    _PySampling_ProfileFree(profile);
    return raw;
}

/*[clinic input]
_profile.start

    *
    mode: str = "wall"
    rate_hz: int = 1000
    depth_frames: int = 0
    names: int = -1
    signal: int = 0
    manual: bool = False
    defer: bool = False
    times: bool = False
    alloc_bytes: unsigned_long_long = 0

Start a sampling session.

A depth of 0 and names of -1 stand for what subscribers have, or the default.
[clinic start generated code]*/

static PyObject *
_profile_start_impl(PyObject *module, const char *mode, int rate_hz,
                    int depth_frames, int names, int signal, int manual,
                    int defer, int times, unsigned long long alloc_bytes)
/*[clinic end generated code: output=5c7a961d709bc559 input=ffa2ef8dadef928e]*/
{
    _PySampling_Options options = {
        .rate_hz = rate_hz,
        .depth_frames = depth_frames,
        .names = names,
        .signal = signal,
        .manual = manual,
        .is_deferred = defer,
        .has_timeline = times,
        .alloc_bytes = alloc_bytes,
    };
    _PySampling_DefaultOptions(&options);
    if (_PyProfile_ReadMode(mode, &options.mode) < 0
        || _PyProfile_CheckOptions(&options) < 0)
    {
        return NULL;
    }
    return _PyProfile_RaiseStatus(
        _PySampling_Start(_PyThreadState_GET(), &options));
}

/*[clinic input]
_profile.limit_overhead

    percent: int
    /

Let the rate of the session give way to that share of the CPU time; 0: not.
[clinic start generated code]*/

static PyObject *
_profile_limit_overhead_impl(PyObject *module, int percent)
/*[clinic end generated code: output=7fedf76dd5dd082d input=9acd9580aaa2b5fc]*/
{
    if (_PyProfile_CheckRange("percent", percent, 0, 100) < 0) {
        return NULL;
    }
    _PySampling_LimitOverhead(percent);
    Py_RETURN_NONE;
}

/*[clinic input]
_profile.stop

End the session and return what was sampled.
[clinic start generated code]*/

static PyObject *
_profile_stop_impl(PyObject *module)
/*[clinic end generated code: output=9a0d8b4f0c03d30a input=a1111cf0f8d0ce25]*/
{
    if (_PyRuntime.sampling.exit_session) {
        return _PyProfile_RaiseStatus(_PySampling_ERR_EXIT_SESSION);
    }
    struct _sampling_profile *profile;
    _PySampling_Status status = _PySampling_Stop(_PyThreadState_GET(),
                                                 &profile);
    if (status != _PySampling_OK) {
        return _PyProfile_RaiseStatus(status);
    }
    return export_and_free(profile);
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
    struct _sampling_profile *profile;
    _PySampling_Status status = _PySampling_Snapshot(_PyThreadState_GET(),
                                                     clear, &profile);
    if (status != _PySampling_OK) {
        return _PyProfile_RaiseStatus(status);
    }
    return export_and_free(profile);
}

/*[clinic input]
_profile.running -> bool

Is a session running in this process?
[clinic start generated code]*/

static int
_profile_running_impl(PyObject *module)
/*[clinic end generated code: output=85670d238a9e47d7 input=a11a50c3a8202475]*/
{
    return _PySampling_IsRunning();
}

/*[clinic input]
_profile.write_at_exit

    write: object
    quiet: bool
    children: bool
    /

Make the running session that of -X sampleprof.

At the end write() is called with the tables, quiet, and whether the process
becomes another program.  With children, those of forks have such a session.
[clinic start generated code]*/

static PyObject *
_profile_write_at_exit_impl(PyObject *module, PyObject *write, int quiet,
                            int children)
/*[clinic end generated code: output=407161dff5cc1c7f input=58289c79d0819f29]*/
{
    _PySampling_WriteAtExit(write, quiet, children);
    Py_RETURN_NONE;
}

/*[clinic input]
_profile.is_written_at_exit -> bool

Is the session of -X sampleprof running in this process?
[clinic start generated code]*/

static int
_profile_is_written_at_exit_impl(PyObject *module)
/*[clinic end generated code: output=85012418a0d8c321 input=ff7a5261c48acc66]*/
{
    return _PyRuntime.sampling.exit_session;
}

/*[clinic input]
_profile.write_now

End the session of -X sampleprof and write its profile.
[clinic start generated code]*/

static PyObject *
_profile_write_now_impl(PyObject *module)
/*[clinic end generated code: output=387d8bb5e353ca92 input=163c9d88beef6d59]*/
{
    _PySampling_WriteNow(_PyThreadState_GET());
    Py_RETURN_NONE;
}

/*[clinic input]
_profile.own_descriptors

    begin: int
    end: int
    /

Give this thread a table of descriptors of its own, without those numbers.

The thread is to end soon: what others close stays open in it.
[clinic start generated code]*/

static PyObject *
_profile_own_descriptors_impl(PyObject *module, int begin, int end)
/*[clinic end generated code: output=655b21710ed69e07 input=a9a824edf45b24c9]*/
{
    // In containers unshare() may be refused; older kernels have nothing else.
    if (syscall(SYS_close_range, begin, end - 1, CLOSE_RANGE_UNSHARE) == 0) {
        Py_RETURN_NONE;
    }
    if (unshare(CLONE_FILES) != 0) {
        return PyErr_SetFromErrno(PyExc_OSError);
    }
    for (int fd = begin; fd < end; fd++) {
        (void)close(fd);
    }
    Py_RETURN_NONE;
}

/*[clinic input]
_profile.stats

Return the counters of the running or the last session.
[clinic start generated code]*/

static PyObject *
_profile_stats_impl(PyObject *module)
/*[clinic end generated code: output=a46c3e6eaa7ea04e input=5ce5c094c7eadf52]*/
{
    struct _sampling_counters counters;
    _PySampling_GetCounters(&counters);
    return _PyProfile_ExportCounters(&counters);
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
    return _PyProfile_RaiseStatus(
        _PySampling_ManualTick(_PyThreadState_GET(), wall_ns, cpu_ns));
}

#define BLOCK_NAME "_profile block"

static void
free_block(PyObject *capsule)
{
    struct _sampling_sink *block =
        PyCapsule_GetPointer(capsule, BLOCK_NAME);
    _PySampling_BlockFree(_PyThreadState_GET(), block);
}

/*[clinic input]
_profile.begin_block

    *
    mode: str(accept={str, NoneType}) = None
    rate_hz: int = 0
    depth_frames: int = 0
    names: int = -1
    signal: int = 0
    manual: bool = False
    times: bool = False
    alloc_bytes: unsigned_long_long = 0

Begin a block of profile(); return what end_block() takes.

The defaults stand for what the running session has.
[clinic start generated code]*/

static PyObject *
_profile_begin_block_impl(PyObject *module, const char *mode, int rate_hz,
                          int depth_frames, int names, int signal,
                          int manual, int times,
                          unsigned long long alloc_bytes)
/*[clinic end generated code: output=df6d7b0504704a25 input=547ea3a234d4de6a]*/
{
    _PySampling_Options asked = {
        .mode = _PySampling_ANY_MODE,
        .rate_hz = rate_hz,
        .depth_frames = depth_frames,
        .names = names,
        .signal = signal,
        .manual = manual,
        .has_timeline = times,
        .alloc_bytes = alloc_bytes,
    };
    _PySampling_Options filled = asked;
    filled.rate_hz = rate_hz != 0 ? rate_hz : _PySampling_DEFAULT_RATE_HZ;
    _PySampling_DefaultOptions(&filled);
    if ((mode != NULL && _PyProfile_ReadMode(mode, &asked.mode) < 0)
        || _PyProfile_CheckOptions(&filled) < 0)
    {
        return NULL;
    }
    struct _sampling_sink *block;
    _PySampling_Status status =
        _PySampling_BlockBegin(_PyThreadState_GET(), &asked, &block);
    if (status == _PySampling_ERR_OPTIONS && _PySampling_IsRunning()) {
        return _PyProfile_RaiseJoin(&asked);
    }
    if (status != _PySampling_OK) {
        return _PyProfile_RaiseStatus(status);
    }
    PyObject *capsule = PyCapsule_New(block, BLOCK_NAME, free_block);
    if (capsule == NULL) {
        _PySampling_BlockFree(_PyThreadState_GET(), block);
    }
    return capsule;
}

/*[clinic input]
_profile.end_block

    block: object
    /

Return what was sampled in the block; None if a fork or the exit ended it.
[clinic start generated code]*/

static PyObject *
_profile_end_block(PyObject *module, PyObject *block)
/*[clinic end generated code: output=9748fdf0d56979a3 input=ad32faed06fcd26f]*/
{
    struct _sampling_sink *open = PyCapsule_GetPointer(block, BLOCK_NAME);
    if (open == NULL) {
        return NULL;
    }
    struct _sampling_profile *profile;
    _PySampling_Status status =
        _PySampling_BlockEnd(_PyThreadState_GET(), open, &profile);
    if (profile == NULL) {
        return _PyProfile_RaiseStatus(status);
    }
    return export_and_free(profile);
}

/*[clinic input]
_profile.enter_region

Let a deferred session sample; return what leave_region() takes.
[clinic start generated code]*/

static PyObject *
_profile_enter_region_impl(PyObject *module)
/*[clinic end generated code: output=c852310df1ea0753 input=62e2df8650fe1936]*/
{
    unsigned int number;
    _PySampling_Status status =
        _PySampling_RegionEnter(_PyThreadState_GET(), &number);
    if (status != _PySampling_OK) {
        return _PyProfile_RaiseStatus(status);
    }
    return PyLong_FromUnsignedLong(number);
}

/*[clinic input]
_profile.leave_region

    number: unsigned_int(bitwise=True)
    /

Take back one enter_region().
[clinic start generated code]*/

static PyObject *
_profile_leave_region_impl(PyObject *module, unsigned int number)
/*[clinic end generated code: output=d2c7792464040e7b input=6a29e5c8fc264525]*/
{
    return _PyProfile_RaiseStatus(
        _PySampling_RegionLeave(_PyThreadState_GET(), number));
}

/*[clinic input]
_profile.sample

    weight: unsigned_long_long
    labels: object(subclass_of='&PyDict_Type')
    /

Add a sample of the stack of the caller's caller, if anybody samples.
[clinic start generated code]*/

static PyObject *
_profile_sample_impl(PyObject *module, unsigned long long weight,
                     PyObject *labels)
/*[clinic end generated code: output=48125458b7a9c53e input=2f25f588d4cce243]*/
{
    PyObject *pairs = _PyProfile_PairsWith(get_profile_state(module), labels);
    if (pairs == NULL) {
        return NULL;
    }
    _PySampling_Status status =
        _PySampling_Sample(_PyThreadState_GET(), weight, pairs);
    Py_DECREF(pairs);
    if (status == _PySampling_ERR_NOT_RUNNING) {
        Py_RETURN_FALSE;
    }
    if (status != _PySampling_OK) {
        return _PyProfile_RaiseStatus(status);
    }
    Py_RETURN_TRUE;
}

/*[clinic input]
_profile.function_of

    coroutine: object
    /

The function that a coroutine is a call of, within all decorators, or None.

A task that runs the coroutine is known by it.
[clinic start generated code]*/

static PyObject *
_profile_function_of(PyObject *module, PyObject *coroutine)
/*[clinic end generated code: output=af474c1c30098e1d input=f370756c572dc8ff]*/
{
    PyObject *function = _PySampling_FunctionOf(coroutine);
    return Py_NewRef(function != NULL ? function : Py_None);
}

/*[clinic input]
_profile.flush_task

    task: object
    /

What the task has spent so far is of the labels that it has now.
[clinic start generated code]*/

static PyObject *
_profile_flush_task(PyObject *module, PyObject *task)
/*[clinic end generated code: output=7da0b318c2283770 input=67601cbc5700f711]*/
{
    _PySampling_FlushTask(task);
    Py_RETURN_NONE;
}

/*[clinic input]
_profile.times_of

    task: object
    /

Return what a task has spent in this session: (running, loop wait, 0).

Of None it is this thread: (CPU time, 0, waiting for the GIL).  None if nothing
is known.
[clinic start generated code]*/

static PyObject *
_profile_times_of(PyObject *module, PyObject *task)
/*[clinic end generated code: output=3ba54dd309f53f11 input=e01abeee8373602a]*/
{
    uint64_t running_ns, loop_wait_ns = 0, gil_wait_ns = 0;
    int is_known = task != Py_None
        ? _PySampling_TaskTimes(task, &running_ns, &loop_wait_ns)
        : _PySampling_ThreadTimes(_PyThreadState_GET(), &running_ns,
                                  &gil_wait_ns);
    if (!is_known) {
        Py_RETURN_NONE;
    }
    return Py_BuildValue("KKK", (unsigned long long)running_ns,
                         (unsigned long long)loop_wait_ns,
                         (unsigned long long)gil_wait_ns);
}

/*[clinic input]
_profile.begin_counting

    mode: int
    libraries: object(subclass_of='&PyTuple_Type')
    /

Count calls, as the number of the mode says, until end_counting().

Returns what that takes, too; in the child of a fork it has no effect.
A line is the user's own if its file's name has none of *libraries* in it.
[clinic start generated code]*/

static PyObject *
_profile_begin_counting_impl(PyObject *module, int mode, PyObject *libraries)
/*[clinic end generated code: output=f1503fc8cfeb27e7 input=b65a644a99bee3c0]*/
{
    unsigned int token;
    _PySampling_Status status = _PySampling_CountBegin(
        _PyThreadState_GET(), mode, libraries, &token);
    return status == _PySampling_OK ? PyLong_FromUnsignedLong(token)
                                    : _PyProfile_RaiseStatus(status);
}

/*[clinic input]
_profile.end_counting

    mode: int
    token: unsigned_int(bitwise=True)
    /

Take back one begin_counting().
[clinic start generated code]*/

static PyObject *
_profile_end_counting_impl(PyObject *module, int mode, unsigned int token)
/*[clinic end generated code: output=e12bd628f176c7f1 input=37904f111080d1a0]*/
{
    _PySampling_CountEnd(_PyThreadState_GET(), mode, token);
    Py_RETURN_NONE;
}

/*[clinic input]
_profile.read_calls

Return all calls that have been counted, or None: nobody counts.

(mode, functions, rows, number of events that no memory was left for, when
another tool was seen to have taken the id, or 0).
[clinic start generated code]*/

static PyObject *
_profile_read_calls_impl(PyObject *module)
/*[clinic end generated code: output=d9c4336f7e71e928 input=0c0621301b336ab7]*/
{
    return _PyProfile_ExportCalls(
        _PySampling_CountRead(_PyThreadState_GET()));
}

/*[clinic input]
_profile.watch_queries

    function: object(subclass_of='&PyFunction_Type')
    /

Count calls of the function as queries of the user's lines.
[clinic start generated code]*/

static PyObject *
_profile_watch_queries_impl(PyObject *module, PyObject *function)
/*[clinic end generated code: output=33f60ca0499679a7 input=bc9bb1693435e91b]*/
{
    return _PyProfile_RaiseStatus(_PySampling_CountWatch(
        _PyThreadState_GET(), (PyFunctionObject *)function));
}

/*[clinic input]
_profile.watch_imports

    function: object(subclass_of='&PyFunction_Type')
    callback: object
    /

Have the callback called whenever the function returns.
[clinic start generated code]*/

static PyObject *
_profile_watch_imports_impl(PyObject *module, PyObject *function,
                            PyObject *callback)
/*[clinic end generated code: output=5c3fdcfff731726e input=957a4153d510a95a]*/
{
    return _PyProfile_RaiseStatus(_PySampling_CountWatchImports(
        _PyThreadState_GET(), (PyFunctionObject *)function, callback));
}

PyDoc_STRVAR(module_doc, "The core of the sampling profiler.\n\n"
"Use the profile_sampling package.");

/*[clinic input]
_profile.send_request

    pid: int
    native_id: int
    request: unsigned_long_long(bitwise=True)
    /

Ask a process, by a signal to one of its threads.
[clinic start generated code]*/

static PyObject *
_profile_send_request_impl(PyObject *module, int pid, int native_id,
                           unsigned long long request)
/*[clinic end generated code: output=4375ba96d4691ade input=2bc0ac253fbcfa27]*/
{
    if (_PySampling_SendRequest(pid, native_id, request) != 0) {
        return PyErr_SetFromErrno(PyExc_OSError);
    }
    Py_RETURN_NONE;
}

static PyMethodDef module_methods[] = {
    _PROFILE_START_METHODDEF
    _PROFILE_LIMIT_OVERHEAD_METHODDEF
    _PROFILE_STOP_METHODDEF
    _PROFILE_SNAPSHOT_METHODDEF
    _PROFILE_RUNNING_METHODDEF
    _PROFILE_WRITE_AT_EXIT_METHODDEF
    _PROFILE_IS_WRITTEN_AT_EXIT_METHODDEF
    _PROFILE_WRITE_NOW_METHODDEF
    _PROFILE_OWN_DESCRIPTORS_METHODDEF
    _PROFILE_STATS_METHODDEF
    _PROFILE_TIMES_OF_METHODDEF
    _PROFILE_TICK_METHODDEF
    _PROFILE_BEGIN_BLOCK_METHODDEF
    _PROFILE_END_BLOCK_METHODDEF
    _PROFILE_ENTER_REGION_METHODDEF
    _PROFILE_LEAVE_REGION_METHODDEF
    _PROFILE_SAMPLE_METHODDEF
    _PROFILE_FUNCTION_OF_METHODDEF
    _PROFILE_FLUSH_TASK_METHODDEF
    _PROFILE_BEGIN_COUNTING_METHODDEF
    _PROFILE_END_COUNTING_METHODDEF
    _PROFILE_READ_CALLS_METHODDEF
    _PROFILE_WATCH_QUERIES_METHODDEF
    _PROFILE_WATCH_IMPORTS_METHODDEF
    _PROFILE_SEND_REQUEST_METHODDEF
    {NULL, NULL}
};

static int
module_exec(PyObject *module)
{
    profile_state *state = get_profile_state(module);
    if (PyModule_AddFunctions(module, _PyProfile_DeliveryMethods) < 0
        || PyModule_AddFunctions(module, _PyProfile_LabelMethods) < 0
        || _PyProfile_InitLabels(module, state) < 0
        || _PyProfile_InitSubscriptions(module, state) < 0
        || _PyProfile_InitTasks(module) < 0)
    {
        return -1;
    }
    _PyRuntime.sampling.exit_export = _PyProfile_ExportProfile;
    return _PyProfile_InitCAPI(module);
}

static int
module_traverse(PyObject *module, visitproc visit, void *arg)
{
    profile_state *state = get_profile_state(module);
    Py_VISIT(state->subscription_type);
    return _PyProfile_TraverseLabels(state, visit, arg);
}

static int
module_clear(PyObject *module)
{
    profile_state *state = get_profile_state(module);
    _PyProfile_ClearLabels(state);
    _PyProfile_ForgetSubscriptions(state);
    Py_CLEAR(state->subscription_type);
    return 0;
}

static void
module_free(void *module)
{
    (void)module_clear((PyObject *)module);
    profile_state *state = get_profile_state((PyObject *)module);
    if (state->wakeup.lock != NULL) {
        PyThread_free_lock(state->wakeup.lock);
    }
}

static PyModuleDef_Slot module_slots[] = {
    {Py_mod_exec, module_exec},
    {Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED},
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
    {0, NULL}
};

static struct PyModuleDef module_def = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_profile",
    .m_doc = module_doc,
    .m_size = sizeof(profile_state),
    .m_methods = module_methods,
    .m_slots = module_slots,
    .m_traverse = module_traverse,
    .m_clear = module_clear,
    .m_free = module_free,
};

PyMODINIT_FUNC
PyInit__profile(void)
{
    return PyModuleDef_Init(&module_def);
}
