/*[clinic input]
preserve
[clinic start generated code]*/

#if defined(Py_BUILD_CORE) && !defined(Py_BUILD_CORE_MODULE)
#  include "pycore_gc.h"          // PyGC_Head
#  include "pycore_runtime.h"     // _Py_ID()
#endif
#include "pycore_long.h"          // _PyLong_UnsignedLongLong_Converter()
#include "pycore_modsupport.h"    // _PyArg_UnpackKeywords()

PyDoc_STRVAR(_profile_start__doc__,
"start($module, /, *, mode=\'wall\', rate_hz=1000, depth_frames=0,\n"
"      names=-1, signal=0, manual=False, defer=False, times=False,\n"
"      alloc_bytes=0)\n"
"--\n"
"\n"
"Start a sampling session.\n"
"\n"
"A depth of 0 and names of -1 stand for what subscribers have, or the default.");

#define _PROFILE_START_METHODDEF    \
    {"start", _PyCFunction_CAST(_profile_start), METH_FASTCALL|METH_KEYWORDS, _profile_start__doc__},

static PyObject *
_profile_start_impl(PyObject *module, const char *mode, int rate_hz,
                    int depth_frames, int names, int signal, int manual,
                    int defer, int times, unsigned long long alloc_bytes);

static PyObject *
_profile_start(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    PyObject *return_value = NULL;
    #if defined(Py_BUILD_CORE) && !defined(Py_BUILD_CORE_MODULE)

    #define NUM_KEYWORDS 9
    static struct {
        PyGC_Head _this_is_not_used;
        PyObject_VAR_HEAD
        PyObject *ob_item[NUM_KEYWORDS];
    } _kwtuple = {
        .ob_base = PyVarObject_HEAD_INIT(&PyTuple_Type, NUM_KEYWORDS)
        .ob_item = { &_Py_ID(mode), &_Py_ID(rate_hz), &_Py_ID(depth_frames), &_Py_ID(names), &_Py_ID(signal), &_Py_ID(manual), &_Py_ID(defer), &_Py_ID(times), &_Py_ID(alloc_bytes), },
    };
    #undef NUM_KEYWORDS
    #define KWTUPLE (&_kwtuple.ob_base.ob_base)

    #else  // !Py_BUILD_CORE
    #  define KWTUPLE NULL
    #endif  // !Py_BUILD_CORE

    static const char * const _keywords[] = {"mode", "rate_hz", "depth_frames", "names", "signal", "manual", "defer", "times", "alloc_bytes", NULL};
    static _PyArg_Parser _parser = {
        .keywords = _keywords,
        .fname = "start",
        .kwtuple = KWTUPLE,
    };
    #undef KWTUPLE
    PyObject *argsbuf[9];
    Py_ssize_t noptargs = nargs + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0) - 0;
    const char *mode = "wall";
    int rate_hz = 1000;
    int depth_frames = 0;
    int names = -1;
    int signal = 0;
    int manual = 0;
    int defer = 0;
    int times = 0;
    unsigned long long alloc_bytes = 0;

    args = _PyArg_UnpackKeywords(args, nargs, NULL, kwnames, &_parser, 0, 0, 0, argsbuf);
    if (!args) {
        goto exit;
    }
    if (!noptargs) {
        goto skip_optional_kwonly;
    }
    if (args[0]) {
        if (!PyUnicode_Check(args[0])) {
            _PyArg_BadArgument("start", "argument 'mode'", "str", args[0]);
            goto exit;
        }
        Py_ssize_t mode_length;
        mode = PyUnicode_AsUTF8AndSize(args[0], &mode_length);
        if (mode == NULL) {
            goto exit;
        }
        if (strlen(mode) != (size_t)mode_length) {
            PyErr_SetString(PyExc_ValueError, "embedded null character");
            goto exit;
        }
        if (!--noptargs) {
            goto skip_optional_kwonly;
        }
    }
    if (args[1]) {
        rate_hz = PyLong_AsInt(args[1]);
        if (rate_hz == -1 && PyErr_Occurred()) {
            goto exit;
        }
        if (!--noptargs) {
            goto skip_optional_kwonly;
        }
    }
    if (args[2]) {
        depth_frames = PyLong_AsInt(args[2]);
        if (depth_frames == -1 && PyErr_Occurred()) {
            goto exit;
        }
        if (!--noptargs) {
            goto skip_optional_kwonly;
        }
    }
    if (args[3]) {
        names = PyLong_AsInt(args[3]);
        if (names == -1 && PyErr_Occurred()) {
            goto exit;
        }
        if (!--noptargs) {
            goto skip_optional_kwonly;
        }
    }
    if (args[4]) {
        signal = PyLong_AsInt(args[4]);
        if (signal == -1 && PyErr_Occurred()) {
            goto exit;
        }
        if (!--noptargs) {
            goto skip_optional_kwonly;
        }
    }
    if (args[5]) {
        manual = PyObject_IsTrue(args[5]);
        if (manual < 0) {
            goto exit;
        }
        if (!--noptargs) {
            goto skip_optional_kwonly;
        }
    }
    if (args[6]) {
        defer = PyObject_IsTrue(args[6]);
        if (defer < 0) {
            goto exit;
        }
        if (!--noptargs) {
            goto skip_optional_kwonly;
        }
    }
    if (args[7]) {
        times = PyObject_IsTrue(args[7]);
        if (times < 0) {
            goto exit;
        }
        if (!--noptargs) {
            goto skip_optional_kwonly;
        }
    }
    if (!_PyLong_UnsignedLongLong_Converter(args[8], &alloc_bytes)) {
        goto exit;
    }
skip_optional_kwonly:
    return_value = _profile_start_impl(module, mode, rate_hz, depth_frames, names, signal, manual, defer, times, alloc_bytes);

exit:
    return return_value;
}

PyDoc_STRVAR(_profile_limit_overhead__doc__,
"limit_overhead($module, percent, /)\n"
"--\n"
"\n"
"Let the rate of the session give way to that share of the CPU time; 0: not.");

#define _PROFILE_LIMIT_OVERHEAD_METHODDEF    \
    {"limit_overhead", (PyCFunction)_profile_limit_overhead, METH_O, _profile_limit_overhead__doc__},

static PyObject *
_profile_limit_overhead_impl(PyObject *module, int percent);

static PyObject *
_profile_limit_overhead(PyObject *module, PyObject *arg)
{
    PyObject *return_value = NULL;
    int percent;

    percent = PyLong_AsInt(arg);
    if (percent == -1 && PyErr_Occurred()) {
        goto exit;
    }
    return_value = _profile_limit_overhead_impl(module, percent);

exit:
    return return_value;
}

PyDoc_STRVAR(_profile_stop__doc__,
"stop($module, /)\n"
"--\n"
"\n"
"End the session and return what was sampled.");

#define _PROFILE_STOP_METHODDEF    \
    {"stop", (PyCFunction)_profile_stop, METH_NOARGS, _profile_stop__doc__},

static PyObject *
_profile_stop_impl(PyObject *module);

static PyObject *
_profile_stop(PyObject *module, PyObject *Py_UNUSED(ignored))
{
    return _profile_stop_impl(module);
}

PyDoc_STRVAR(_profile_snapshot__doc__,
"snapshot($module, /, clear=False)\n"
"--\n"
"\n"
"Return what has been sampled so far; with clear, begin anew.");

#define _PROFILE_SNAPSHOT_METHODDEF    \
    {"snapshot", _PyCFunction_CAST(_profile_snapshot), METH_FASTCALL|METH_KEYWORDS, _profile_snapshot__doc__},

static PyObject *
_profile_snapshot_impl(PyObject *module, int clear);

static PyObject *
_profile_snapshot(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    PyObject *return_value = NULL;
    #if defined(Py_BUILD_CORE) && !defined(Py_BUILD_CORE_MODULE)

    #define NUM_KEYWORDS 1
    static struct {
        PyGC_Head _this_is_not_used;
        PyObject_VAR_HEAD
        PyObject *ob_item[NUM_KEYWORDS];
    } _kwtuple = {
        .ob_base = PyVarObject_HEAD_INIT(&PyTuple_Type, NUM_KEYWORDS)
        .ob_item = { &_Py_ID(clear), },
    };
    #undef NUM_KEYWORDS
    #define KWTUPLE (&_kwtuple.ob_base.ob_base)

    #else  // !Py_BUILD_CORE
    #  define KWTUPLE NULL
    #endif  // !Py_BUILD_CORE

    static const char * const _keywords[] = {"clear", NULL};
    static _PyArg_Parser _parser = {
        .keywords = _keywords,
        .fname = "snapshot",
        .kwtuple = KWTUPLE,
    };
    #undef KWTUPLE
    PyObject *argsbuf[1];
    Py_ssize_t noptargs = nargs + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0) - 0;
    int clear = 0;

    args = _PyArg_UnpackKeywords(args, nargs, NULL, kwnames, &_parser, 0, 1, 0, argsbuf);
    if (!args) {
        goto exit;
    }
    if (!noptargs) {
        goto skip_optional_pos;
    }
    clear = PyObject_IsTrue(args[0]);
    if (clear < 0) {
        goto exit;
    }
skip_optional_pos:
    return_value = _profile_snapshot_impl(module, clear);

exit:
    return return_value;
}

PyDoc_STRVAR(_profile_running__doc__,
"running($module, /)\n"
"--\n"
"\n"
"Is a session running in this process?");

#define _PROFILE_RUNNING_METHODDEF    \
    {"running", (PyCFunction)_profile_running, METH_NOARGS, _profile_running__doc__},

static int
_profile_running_impl(PyObject *module);

static PyObject *
_profile_running(PyObject *module, PyObject *Py_UNUSED(ignored))
{
    PyObject *return_value = NULL;
    int _return_value;

    _return_value = _profile_running_impl(module);
    if ((_return_value == -1) && PyErr_Occurred()) {
        goto exit;
    }
    return_value = PyBool_FromLong((long)_return_value);

exit:
    return return_value;
}

PyDoc_STRVAR(_profile_write_at_exit__doc__,
"write_at_exit($module, write, quiet, children, /)\n"
"--\n"
"\n"
"Make the running session that of -X sampleprof.\n"
"\n"
"At the end write() is called with the tables, quiet, and whether the process\n"
"becomes another program.  With children, those of forks have such a session.");

#define _PROFILE_WRITE_AT_EXIT_METHODDEF    \
    {"write_at_exit", _PyCFunction_CAST(_profile_write_at_exit), METH_FASTCALL, _profile_write_at_exit__doc__},

static PyObject *
_profile_write_at_exit_impl(PyObject *module, PyObject *write, int quiet,
                            int children);

static PyObject *
_profile_write_at_exit(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    PyObject *return_value = NULL;
    PyObject *write;
    int quiet;
    int children;

    if (!_PyArg_CheckPositional("write_at_exit", nargs, 3, 3)) {
        goto exit;
    }
    write = args[0];
    quiet = PyObject_IsTrue(args[1]);
    if (quiet < 0) {
        goto exit;
    }
    children = PyObject_IsTrue(args[2]);
    if (children < 0) {
        goto exit;
    }
    return_value = _profile_write_at_exit_impl(module, write, quiet, children);

exit:
    return return_value;
}

PyDoc_STRVAR(_profile_is_written_at_exit__doc__,
"is_written_at_exit($module, /)\n"
"--\n"
"\n"
"Is the session of -X sampleprof running in this process?");

#define _PROFILE_IS_WRITTEN_AT_EXIT_METHODDEF    \
    {"is_written_at_exit", (PyCFunction)_profile_is_written_at_exit, METH_NOARGS, _profile_is_written_at_exit__doc__},

static int
_profile_is_written_at_exit_impl(PyObject *module);

static PyObject *
_profile_is_written_at_exit(PyObject *module, PyObject *Py_UNUSED(ignored))
{
    PyObject *return_value = NULL;
    int _return_value;

    _return_value = _profile_is_written_at_exit_impl(module);
    if ((_return_value == -1) && PyErr_Occurred()) {
        goto exit;
    }
    return_value = PyBool_FromLong((long)_return_value);

exit:
    return return_value;
}

PyDoc_STRVAR(_profile_write_now__doc__,
"write_now($module, /)\n"
"--\n"
"\n"
"End the session of -X sampleprof and write its profile.");

#define _PROFILE_WRITE_NOW_METHODDEF    \
    {"write_now", (PyCFunction)_profile_write_now, METH_NOARGS, _profile_write_now__doc__},

static PyObject *
_profile_write_now_impl(PyObject *module);

static PyObject *
_profile_write_now(PyObject *module, PyObject *Py_UNUSED(ignored))
{
    return _profile_write_now_impl(module);
}

PyDoc_STRVAR(_profile_own_descriptors__doc__,
"own_descriptors($module, begin, end, /)\n"
"--\n"
"\n"
"Give this thread a table of descriptors of its own, without those numbers.\n"
"\n"
"The thread is to end soon: what others close stays open in it.");

#define _PROFILE_OWN_DESCRIPTORS_METHODDEF    \
    {"own_descriptors", _PyCFunction_CAST(_profile_own_descriptors), METH_FASTCALL, _profile_own_descriptors__doc__},

static PyObject *
_profile_own_descriptors_impl(PyObject *module, int begin, int end);

static PyObject *
_profile_own_descriptors(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    PyObject *return_value = NULL;
    int begin;
    int end;

    if (!_PyArg_CheckPositional("own_descriptors", nargs, 2, 2)) {
        goto exit;
    }
    begin = PyLong_AsInt(args[0]);
    if (begin == -1 && PyErr_Occurred()) {
        goto exit;
    }
    end = PyLong_AsInt(args[1]);
    if (end == -1 && PyErr_Occurred()) {
        goto exit;
    }
    return_value = _profile_own_descriptors_impl(module, begin, end);

exit:
    return return_value;
}

PyDoc_STRVAR(_profile_stats__doc__,
"stats($module, /)\n"
"--\n"
"\n"
"Return the counters of the running or the last session.");

#define _PROFILE_STATS_METHODDEF    \
    {"stats", (PyCFunction)_profile_stats, METH_NOARGS, _profile_stats__doc__},

static PyObject *
_profile_stats_impl(PyObject *module);

static PyObject *
_profile_stats(PyObject *module, PyObject *Py_UNUSED(ignored))
{
    return _profile_stats_impl(module);
}

PyDoc_STRVAR(_profile_tick__doc__,
"tick($module, wall_ns, cpu_ns, /)\n"
"--\n"
"\n"
"Tick a manual session: this thread is asked, that long after the last tick.");

#define _PROFILE_TICK_METHODDEF    \
    {"tick", _PyCFunction_CAST(_profile_tick), METH_FASTCALL, _profile_tick__doc__},

static PyObject *
_profile_tick_impl(PyObject *module, unsigned long long wall_ns,
                   unsigned long long cpu_ns);

static PyObject *
_profile_tick(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    PyObject *return_value = NULL;
    unsigned long long wall_ns;
    unsigned long long cpu_ns;

    if (!_PyArg_CheckPositional("tick", nargs, 2, 2)) {
        goto exit;
    }
    if (!_PyLong_UnsignedLongLong_Converter(args[0], &wall_ns)) {
        goto exit;
    }
    if (!_PyLong_UnsignedLongLong_Converter(args[1], &cpu_ns)) {
        goto exit;
    }
    return_value = _profile_tick_impl(module, wall_ns, cpu_ns);

exit:
    return return_value;
}

PyDoc_STRVAR(_profile_begin_block__doc__,
"begin_block($module, /, *, mode=None, rate_hz=0, depth_frames=0,\n"
"            names=-1, signal=0, manual=False, times=False,\n"
"            alloc_bytes=0)\n"
"--\n"
"\n"
"Begin a block of profile(); return what end_block() takes.\n"
"\n"
"The defaults stand for what the running session has.");

#define _PROFILE_BEGIN_BLOCK_METHODDEF    \
    {"begin_block", _PyCFunction_CAST(_profile_begin_block), METH_FASTCALL|METH_KEYWORDS, _profile_begin_block__doc__},

static PyObject *
_profile_begin_block_impl(PyObject *module, const char *mode, int rate_hz,
                          int depth_frames, int names, int signal,
                          int manual, int times,
                          unsigned long long alloc_bytes);

static PyObject *
_profile_begin_block(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    PyObject *return_value = NULL;
    #if defined(Py_BUILD_CORE) && !defined(Py_BUILD_CORE_MODULE)

    #define NUM_KEYWORDS 8
    static struct {
        PyGC_Head _this_is_not_used;
        PyObject_VAR_HEAD
        PyObject *ob_item[NUM_KEYWORDS];
    } _kwtuple = {
        .ob_base = PyVarObject_HEAD_INIT(&PyTuple_Type, NUM_KEYWORDS)
        .ob_item = { &_Py_ID(mode), &_Py_ID(rate_hz), &_Py_ID(depth_frames), &_Py_ID(names), &_Py_ID(signal), &_Py_ID(manual), &_Py_ID(times), &_Py_ID(alloc_bytes), },
    };
    #undef NUM_KEYWORDS
    #define KWTUPLE (&_kwtuple.ob_base.ob_base)

    #else  // !Py_BUILD_CORE
    #  define KWTUPLE NULL
    #endif  // !Py_BUILD_CORE

    static const char * const _keywords[] = {"mode", "rate_hz", "depth_frames", "names", "signal", "manual", "times", "alloc_bytes", NULL};
    static _PyArg_Parser _parser = {
        .keywords = _keywords,
        .fname = "begin_block",
        .kwtuple = KWTUPLE,
    };
    #undef KWTUPLE
    PyObject *argsbuf[8];
    Py_ssize_t noptargs = nargs + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0) - 0;
    const char *mode = NULL;
    int rate_hz = 0;
    int depth_frames = 0;
    int names = -1;
    int signal = 0;
    int manual = 0;
    int times = 0;
    unsigned long long alloc_bytes = 0;

    args = _PyArg_UnpackKeywords(args, nargs, NULL, kwnames, &_parser, 0, 0, 0, argsbuf);
    if (!args) {
        goto exit;
    }
    if (!noptargs) {
        goto skip_optional_kwonly;
    }
    if (args[0]) {
        if (args[0] == Py_None) {
            mode = NULL;
        }
        else if (PyUnicode_Check(args[0])) {
            Py_ssize_t mode_length;
            mode = PyUnicode_AsUTF8AndSize(args[0], &mode_length);
            if (mode == NULL) {
                goto exit;
            }
            if (strlen(mode) != (size_t)mode_length) {
                PyErr_SetString(PyExc_ValueError, "embedded null character");
                goto exit;
            }
        }
        else {
            _PyArg_BadArgument("begin_block", "argument 'mode'", "str or None", args[0]);
            goto exit;
        }
        if (!--noptargs) {
            goto skip_optional_kwonly;
        }
    }
    if (args[1]) {
        rate_hz = PyLong_AsInt(args[1]);
        if (rate_hz == -1 && PyErr_Occurred()) {
            goto exit;
        }
        if (!--noptargs) {
            goto skip_optional_kwonly;
        }
    }
    if (args[2]) {
        depth_frames = PyLong_AsInt(args[2]);
        if (depth_frames == -1 && PyErr_Occurred()) {
            goto exit;
        }
        if (!--noptargs) {
            goto skip_optional_kwonly;
        }
    }
    if (args[3]) {
        names = PyLong_AsInt(args[3]);
        if (names == -1 && PyErr_Occurred()) {
            goto exit;
        }
        if (!--noptargs) {
            goto skip_optional_kwonly;
        }
    }
    if (args[4]) {
        signal = PyLong_AsInt(args[4]);
        if (signal == -1 && PyErr_Occurred()) {
            goto exit;
        }
        if (!--noptargs) {
            goto skip_optional_kwonly;
        }
    }
    if (args[5]) {
        manual = PyObject_IsTrue(args[5]);
        if (manual < 0) {
            goto exit;
        }
        if (!--noptargs) {
            goto skip_optional_kwonly;
        }
    }
    if (args[6]) {
        times = PyObject_IsTrue(args[6]);
        if (times < 0) {
            goto exit;
        }
        if (!--noptargs) {
            goto skip_optional_kwonly;
        }
    }
    if (!_PyLong_UnsignedLongLong_Converter(args[7], &alloc_bytes)) {
        goto exit;
    }
skip_optional_kwonly:
    return_value = _profile_begin_block_impl(module, mode, rate_hz, depth_frames, names, signal, manual, times, alloc_bytes);

exit:
    return return_value;
}

PyDoc_STRVAR(_profile_end_block__doc__,
"end_block($module, block, /)\n"
"--\n"
"\n"
"Return what was sampled in the block; None if a fork or the exit ended it.");

#define _PROFILE_END_BLOCK_METHODDEF    \
    {"end_block", (PyCFunction)_profile_end_block, METH_O, _profile_end_block__doc__},

PyDoc_STRVAR(_profile_enter_region__doc__,
"enter_region($module, /)\n"
"--\n"
"\n"
"Let a deferred session sample; return what leave_region() takes.");

#define _PROFILE_ENTER_REGION_METHODDEF    \
    {"enter_region", (PyCFunction)_profile_enter_region, METH_NOARGS, _profile_enter_region__doc__},

static PyObject *
_profile_enter_region_impl(PyObject *module);

static PyObject *
_profile_enter_region(PyObject *module, PyObject *Py_UNUSED(ignored))
{
    return _profile_enter_region_impl(module);
}

PyDoc_STRVAR(_profile_leave_region__doc__,
"leave_region($module, number, /)\n"
"--\n"
"\n"
"Take back one enter_region().");

#define _PROFILE_LEAVE_REGION_METHODDEF    \
    {"leave_region", (PyCFunction)_profile_leave_region, METH_O, _profile_leave_region__doc__},

static PyObject *
_profile_leave_region_impl(PyObject *module, unsigned int number);

static PyObject *
_profile_leave_region(PyObject *module, PyObject *arg)
{
    PyObject *return_value = NULL;
    unsigned int number;

    number = (unsigned int)PyLong_AsUnsignedLongMask(arg);
    if (number == (unsigned int)-1 && PyErr_Occurred()) {
        goto exit;
    }
    return_value = _profile_leave_region_impl(module, number);

exit:
    return return_value;
}

PyDoc_STRVAR(_profile_sample__doc__,
"sample($module, weight, labels, /)\n"
"--\n"
"\n"
"Add a sample of the stack of the caller\'s caller, if anybody samples.");

#define _PROFILE_SAMPLE_METHODDEF    \
    {"sample", _PyCFunction_CAST(_profile_sample), METH_FASTCALL, _profile_sample__doc__},

static PyObject *
_profile_sample_impl(PyObject *module, unsigned long long weight,
                     PyObject *labels);

static PyObject *
_profile_sample(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    PyObject *return_value = NULL;
    unsigned long long weight;
    PyObject *labels;

    if (!_PyArg_CheckPositional("sample", nargs, 2, 2)) {
        goto exit;
    }
    if (!_PyLong_UnsignedLongLong_Converter(args[0], &weight)) {
        goto exit;
    }
    if (!PyDict_Check(args[1])) {
        _PyArg_BadArgument("sample", "argument 2", "dict", args[1]);
        goto exit;
    }
    labels = args[1];
    return_value = _profile_sample_impl(module, weight, labels);

exit:
    return return_value;
}

PyDoc_STRVAR(_profile_function_of__doc__,
"function_of($module, coroutine, /)\n"
"--\n"
"\n"
"The function that a coroutine is a call of, within all decorators, or None.\n"
"\n"
"A task that runs the coroutine is known by it.");

#define _PROFILE_FUNCTION_OF_METHODDEF    \
    {"function_of", (PyCFunction)_profile_function_of, METH_O, _profile_function_of__doc__},

PyDoc_STRVAR(_profile_flush_task__doc__,
"flush_task($module, task, /)\n"
"--\n"
"\n"
"What the task has spent so far is of the labels that it has now.");

#define _PROFILE_FLUSH_TASK_METHODDEF    \
    {"flush_task", (PyCFunction)_profile_flush_task, METH_O, _profile_flush_task__doc__},

PyDoc_STRVAR(_profile_times_of__doc__,
"times_of($module, task, /)\n"
"--\n"
"\n"
"Return what a task has spent in this session: (running, loop wait, 0).\n"
"\n"
"Of None it is this thread: (CPU time, 0, waiting for the GIL).  None if nothing\n"
"is known.");

#define _PROFILE_TIMES_OF_METHODDEF    \
    {"times_of", (PyCFunction)_profile_times_of, METH_O, _profile_times_of__doc__},

PyDoc_STRVAR(_profile_begin_counting__doc__,
"begin_counting($module, mode, libraries, /)\n"
"--\n"
"\n"
"Count calls, as the number of the mode says, until end_counting().\n"
"\n"
"Returns what that takes, too; in the child of a fork it has no effect.\n"
"A line is the user\'s own if its file\'s name has none of *libraries* in it.");

#define _PROFILE_BEGIN_COUNTING_METHODDEF    \
    {"begin_counting", _PyCFunction_CAST(_profile_begin_counting), METH_FASTCALL, _profile_begin_counting__doc__},

static PyObject *
_profile_begin_counting_impl(PyObject *module, int mode, PyObject *libraries);

static PyObject *
_profile_begin_counting(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    PyObject *return_value = NULL;
    int mode;
    PyObject *libraries;

    if (!_PyArg_CheckPositional("begin_counting", nargs, 2, 2)) {
        goto exit;
    }
    mode = PyLong_AsInt(args[0]);
    if (mode == -1 && PyErr_Occurred()) {
        goto exit;
    }
    if (!PyTuple_Check(args[1])) {
        _PyArg_BadArgument("begin_counting", "argument 2", "tuple", args[1]);
        goto exit;
    }
    libraries = args[1];
    return_value = _profile_begin_counting_impl(module, mode, libraries);

exit:
    return return_value;
}

PyDoc_STRVAR(_profile_end_counting__doc__,
"end_counting($module, mode, token, /)\n"
"--\n"
"\n"
"Take back one begin_counting().");

#define _PROFILE_END_COUNTING_METHODDEF    \
    {"end_counting", _PyCFunction_CAST(_profile_end_counting), METH_FASTCALL, _profile_end_counting__doc__},

static PyObject *
_profile_end_counting_impl(PyObject *module, int mode, unsigned int token);

static PyObject *
_profile_end_counting(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    PyObject *return_value = NULL;
    int mode;
    unsigned int token;

    if (!_PyArg_CheckPositional("end_counting", nargs, 2, 2)) {
        goto exit;
    }
    mode = PyLong_AsInt(args[0]);
    if (mode == -1 && PyErr_Occurred()) {
        goto exit;
    }
    token = (unsigned int)PyLong_AsUnsignedLongMask(args[1]);
    if (token == (unsigned int)-1 && PyErr_Occurred()) {
        goto exit;
    }
    return_value = _profile_end_counting_impl(module, mode, token);

exit:
    return return_value;
}

PyDoc_STRVAR(_profile_read_calls__doc__,
"read_calls($module, /)\n"
"--\n"
"\n"
"Return all calls that have been counted, or None: nobody counts.\n"
"\n"
"(mode, functions, rows, number of events that no memory was left for, when\n"
"another tool was seen to have taken the id, or 0).");

#define _PROFILE_READ_CALLS_METHODDEF    \
    {"read_calls", (PyCFunction)_profile_read_calls, METH_NOARGS, _profile_read_calls__doc__},

static PyObject *
_profile_read_calls_impl(PyObject *module);

static PyObject *
_profile_read_calls(PyObject *module, PyObject *Py_UNUSED(ignored))
{
    return _profile_read_calls_impl(module);
}

PyDoc_STRVAR(_profile_watch_queries__doc__,
"watch_queries($module, function, /)\n"
"--\n"
"\n"
"Count calls of the function as queries of the user\'s lines.");

#define _PROFILE_WATCH_QUERIES_METHODDEF    \
    {"watch_queries", (PyCFunction)_profile_watch_queries, METH_O, _profile_watch_queries__doc__},

static PyObject *
_profile_watch_queries_impl(PyObject *module, PyObject *function);

static PyObject *
_profile_watch_queries(PyObject *module, PyObject *arg)
{
    PyObject *return_value = NULL;
    PyObject *function;

    if (!PyObject_TypeCheck(arg, &PyFunction_Type)) {
        _PyArg_BadArgument("watch_queries", "argument", (&PyFunction_Type)->tp_name, arg);
        goto exit;
    }
    function = arg;
    return_value = _profile_watch_queries_impl(module, function);

exit:
    return return_value;
}

PyDoc_STRVAR(_profile_watch_imports__doc__,
"watch_imports($module, function, callback, /)\n"
"--\n"
"\n"
"Have the callback called whenever the function returns.");

#define _PROFILE_WATCH_IMPORTS_METHODDEF    \
    {"watch_imports", _PyCFunction_CAST(_profile_watch_imports), METH_FASTCALL, _profile_watch_imports__doc__},

static PyObject *
_profile_watch_imports_impl(PyObject *module, PyObject *function,
                            PyObject *callback);

static PyObject *
_profile_watch_imports(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    PyObject *return_value = NULL;
    PyObject *function;
    PyObject *callback;

    if (!_PyArg_CheckPositional("watch_imports", nargs, 2, 2)) {
        goto exit;
    }
    if (!PyObject_TypeCheck(args[0], &PyFunction_Type)) {
        _PyArg_BadArgument("watch_imports", "argument 1", (&PyFunction_Type)->tp_name, args[0]);
        goto exit;
    }
    function = args[0];
    callback = args[1];
    return_value = _profile_watch_imports_impl(module, function, callback);

exit:
    return return_value;
}

PyDoc_STRVAR(_profile_send_request__doc__,
"send_request($module, pid, native_id, request, /)\n"
"--\n"
"\n"
"Ask a process, by a signal to one of its threads.");

#define _PROFILE_SEND_REQUEST_METHODDEF    \
    {"send_request", _PyCFunction_CAST(_profile_send_request), METH_FASTCALL, _profile_send_request__doc__},

static PyObject *
_profile_send_request_impl(PyObject *module, int pid, int native_id,
                           unsigned long long request);

static PyObject *
_profile_send_request(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    PyObject *return_value = NULL;
    int pid;
    int native_id;
    unsigned long long request;

    if (!_PyArg_CheckPositional("send_request", nargs, 3, 3)) {
        goto exit;
    }
    pid = PyLong_AsInt(args[0]);
    if (pid == -1 && PyErr_Occurred()) {
        goto exit;
    }
    native_id = PyLong_AsInt(args[1]);
    if (native_id == -1 && PyErr_Occurred()) {
        goto exit;
    }
    if (!PyLong_Check(args[2])) {
        _PyArg_BadArgument("send_request", "argument 3", "int", args[2]);
        goto exit;
    }
    request = PyLong_AsUnsignedLongLongMask(args[2]);
    return_value = _profile_send_request_impl(module, pid, native_id, request);

exit:
    return return_value;
}
/*[clinic end generated code: output=6f7810ca58e90505 input=a9049054013a1b77]*/
