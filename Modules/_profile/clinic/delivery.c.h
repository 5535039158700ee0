/*[clinic input]
preserve
[clinic start generated code]*/

#if defined(Py_BUILD_CORE) && !defined(Py_BUILD_CORE_MODULE)
#  include "pycore_gc.h"          // PyGC_Head
#  include "pycore_runtime.h"     // _Py_ID()
#endif
#include "pycore_long.h"          // _PyLong_UnsignedInt_Converter()
#include "pycore_modsupport.h"    // _PyArg_UnpackKeywords()

PyDoc_STRVAR(_profile_subscribe__doc__,
"subscribe($module, /, *, rate_hz=1000, depth_frames=0, names=-1,\n"
"          signal=0, manual=False, max_events=65536, times=0,\n"
"          batch_events=4096, interpreter_id=-1, threads=None,\n"
"          labels=None, task=False, alloc_bytes=0)\n"
"--\n"
"\n"
"Return a Subscription.\n"
"\n"
"threads is a tuple of thread idents, labels one of str: key, value, ...\n"
"task: it gets what tasks wait for, too.\n"
"depth_frames 0 and names -1: what holds already, or the default.");

#define _PROFILE_SUBSCRIBE_METHODDEF    \
    {"subscribe", _PyCFunction_CAST(_profile_subscribe), METH_FASTCALL|METH_KEYWORDS, _profile_subscribe__doc__},

static PyObject *
_profile_subscribe_impl(PyObject *module, int rate_hz, int depth_frames,
                        int names, int signal, int manual,
                        unsigned int max_events, unsigned int times,
                        unsigned int batch_events, long long interpreter_id,
                        PyObject *threads, PyObject *labels, int task,
                        unsigned long long alloc_bytes);

static PyObject *
_profile_subscribe(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    PyObject *return_value = NULL;
    #if defined(Py_BUILD_CORE) && !defined(Py_BUILD_CORE_MODULE)

    #define NUM_KEYWORDS 13
    static struct {
        PyGC_Head _this_is_not_used;
        PyObject_VAR_HEAD
        PyObject *ob_item[NUM_KEYWORDS];
    } _kwtuple = {
        .ob_base = PyVarObject_HEAD_INIT(&PyTuple_Type, NUM_KEYWORDS)
        .ob_item = { &_Py_ID(rate_hz), &_Py_ID(depth_frames), &_Py_ID(names), &_Py_ID(signal), &_Py_ID(manual), &_Py_ID(max_events), &_Py_ID(times), &_Py_ID(batch_events), &_Py_ID(interpreter_id), &_Py_ID(threads), &_Py_ID(labels), &_Py_ID(task), &_Py_ID(alloc_bytes), },
    };
    #undef NUM_KEYWORDS
    #define KWTUPLE (&_kwtuple.ob_base.ob_base)

    #else  // !Py_BUILD_CORE
    #  define KWTUPLE NULL
    #endif  // !Py_BUILD_CORE

    static const char * const _keywords[] = {"rate_hz", "depth_frames", "names", "signal", "manual", "max_events", "times", "batch_events", "interpreter_id", "threads", "labels", "task", "alloc_bytes", NULL};
    static _PyArg_Parser _parser = {
        .keywords = _keywords,
        .fname = "subscribe",
        .kwtuple = KWTUPLE,
    };
    #undef KWTUPLE
    PyObject *argsbuf[13];
    Py_ssize_t noptargs = nargs + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0) - 0;
    int rate_hz = 1000;
    int depth_frames = 0;
    int names = -1;
    int signal = 0;
    int manual = 0;
    unsigned int max_events = 65536;
    unsigned int times = 0;
    unsigned int batch_events = 4096;
    long long interpreter_id = -1;
    PyObject *threads = Py_None;
    PyObject *labels = Py_None;
    int task = 0;
    unsigned long long alloc_bytes = 0;

    args = _PyArg_UnpackKeywords(args, nargs, NULL, kwnames, &_parser, 0, 0, 0, argsbuf);
    if (!args) {
        goto exit;
    }
    if (!noptargs) {
        goto skip_optional_kwonly;
    }
    if (args[0]) {
        rate_hz = PyLong_AsInt(args[0]);
        if (rate_hz == -1 && PyErr_Occurred()) {
            goto exit;
        }
        if (!--noptargs) {
            goto skip_optional_kwonly;
        }
    }
    if (args[1]) {
        depth_frames = PyLong_AsInt(args[1]);
        if (depth_frames == -1 && PyErr_Occurred()) {
            goto exit;
        }
        if (!--noptargs) {
            goto skip_optional_kwonly;
        }
    }
    if (args[2]) {
        names = PyLong_AsInt(args[2]);
        if (names == -1 && PyErr_Occurred()) {
            goto exit;
        }
        if (!--noptargs) {
            goto skip_optional_kwonly;
        }
    }
    if (args[3]) {
        signal = PyLong_AsInt(args[3]);
        if (signal == -1 && PyErr_Occurred()) {
            goto exit;
        }
        if (!--noptargs) {
            goto skip_optional_kwonly;
        }
    }
    if (args[4]) {
        manual = PyObject_IsTrue(args[4]);
        if (manual < 0) {
            goto exit;
        }
        if (!--noptargs) {
            goto skip_optional_kwonly;
        }
    }
    if (args[5]) {
        if (!_PyLong_UnsignedInt_Converter(args[5], &max_events)) {
            goto exit;
        }
        if (!--noptargs) {
            goto skip_optional_kwonly;
        }
    }
    if (args[6]) {
        if (!_PyLong_UnsignedInt_Converter(args[6], &times)) {
            goto exit;
        }
        if (!--noptargs) {
            goto skip_optional_kwonly;
        }
    }
    if (args[7]) {
        if (!_PyLong_UnsignedInt_Converter(args[7], &batch_events)) {
            goto exit;
        }
        if (!--noptargs) {
            goto skip_optional_kwonly;
        }
    }
    if (args[8]) {
        interpreter_id = PyLong_AsLongLong(args[8]);
        if (interpreter_id == -1 && PyErr_Occurred()) {
            goto exit;
        }
        if (!--noptargs) {
            goto skip_optional_kwonly;
        }
    }
    if (args[9]) {
        threads = args[9];
        if (!--noptargs) {
            goto skip_optional_kwonly;
        }
    }
    if (args[10]) {
        labels = args[10];
        if (!--noptargs) {
            goto skip_optional_kwonly;
        }
    }
    if (args[11]) {
        task = PyObject_IsTrue(args[11]);
        if (task < 0) {
            goto exit;
        }
        if (!--noptargs) {
            goto skip_optional_kwonly;
        }
    }
    if (!_PyLong_UnsignedLongLong_Converter(args[12], &alloc_bytes)) {
        goto exit;
    }
skip_optional_kwonly:
    return_value = _profile_subscribe_impl(module, rate_hz, depth_frames, names, signal, manual, max_events, times, batch_events, interpreter_id, threads, labels, task, alloc_bytes);

exit:
    return return_value;
}

PyDoc_STRVAR(_profile_wait_for_batches__doc__,
"wait_for_batches($module, timeout_ns, /)\n"
"--\n"
"\n"
"Sleep until a batch of a subscription is worth taking, or the time is over.");

#define _PROFILE_WAIT_FOR_BATCHES_METHODDEF    \
    {"wait_for_batches", (PyCFunction)_profile_wait_for_batches, METH_O, _profile_wait_for_batches__doc__},

static int
_profile_wait_for_batches_impl(PyObject *module, long long timeout_ns);

static PyObject *
_profile_wait_for_batches(PyObject *module, PyObject *arg)
{
    PyObject *return_value = NULL;
    long long timeout_ns;
    int _return_value;

    timeout_ns = PyLong_AsLongLong(arg);
    if (timeout_ns == -1 && PyErr_Occurred()) {
        goto exit;
    }
    _return_value = _profile_wait_for_batches_impl(module, timeout_ns);
    if ((_return_value == -1) && PyErr_Occurred()) {
        goto exit;
    }
    return_value = PyBool_FromLong((long)_return_value);

exit:
    return return_value;
}

PyDoc_STRVAR(_profile_account_blocked__doc__,
"account_blocked($module, /)\n"
"--\n"
"\n"
"Make samples of the time that blocked threads have been blocked until now.");

#define _PROFILE_ACCOUNT_BLOCKED_METHODDEF    \
    {"account_blocked", (PyCFunction)_profile_account_blocked, METH_NOARGS, _profile_account_blocked__doc__},

static PyObject *
_profile_account_blocked_impl(PyObject *module);

static PyObject *
_profile_account_blocked(PyObject *module, PyObject *Py_UNUSED(ignored))
{
    return _profile_account_blocked_impl(module);
}

PyDoc_STRVAR(_profile_renew_if_full__doc__,
"renew_if_full($module, /)\n"
"--\n"
"\n"
"Begin with new tables if those of subscriptions have grown large.");

#define _PROFILE_RENEW_IF_FULL_METHODDEF    \
    {"renew_if_full", (PyCFunction)_profile_renew_if_full, METH_NOARGS, _profile_renew_if_full__doc__},

static PyObject *
_profile_renew_if_full_impl(PyObject *module);

static PyObject *
_profile_renew_if_full(PyObject *module, PyObject *Py_UNUSED(ignored))
{
    return _profile_renew_if_full_impl(module);
}

PyDoc_STRVAR(_profile_wake__doc__,
"wake($module, /)\n"
"--\n"
"\n"
"Wake wait_for_batches().");

#define _PROFILE_WAKE_METHODDEF    \
    {"wake", (PyCFunction)_profile_wake, METH_NOARGS, _profile_wake__doc__},

static PyObject *
_profile_wake_impl(PyObject *module);

static PyObject *
_profile_wake(PyObject *module, PyObject *Py_UNUSED(ignored))
{
    return _profile_wake_impl(module);
}

PyDoc_STRVAR(_profile_call_excluded__doc__,
"call_excluded($module, callback, argument, /)\n"
"--\n"
"\n"
"Call it; what this thread does meanwhile is not sampled, but counted apart.");

#define _PROFILE_CALL_EXCLUDED_METHODDEF    \
    {"call_excluded", _PyCFunction_CAST(_profile_call_excluded), METH_FASTCALL, _profile_call_excluded__doc__},

static PyObject *
_profile_call_excluded_impl(PyObject *module, PyObject *callback,
                            PyObject *argument);

static PyObject *
_profile_call_excluded(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    PyObject *return_value = NULL;
    PyObject *callback;
    PyObject *argument;

    if (!_PyArg_CheckPositional("call_excluded", nargs, 2, 2)) {
        goto exit;
    }
    callback = args[0];
    argument = args[1];
    return_value = _profile_call_excluded_impl(module, callback, argument);

exit:
    return return_value;
}

PyDoc_STRVAR(_profile_is_excluded__doc__,
"is_excluded($module, /)\n"
"--\n"
"\n"
"Does this thread serve subscribers, or has one started it?");

#define _PROFILE_IS_EXCLUDED_METHODDEF    \
    {"is_excluded", (PyCFunction)_profile_is_excluded, METH_NOARGS, _profile_is_excluded__doc__},

static int
_profile_is_excluded_impl(PyObject *module);

static PyObject *
_profile_is_excluded(PyObject *module, PyObject *Py_UNUSED(ignored))
{
    PyObject *return_value = NULL;
    int _return_value;

    _return_value = _profile_is_excluded_impl(module);
    if ((_return_value == -1) && PyErr_Occurred()) {
        goto exit;
    }
    return_value = PyBool_FromLong((long)_return_value);

exit:
    return return_value;
}

PyDoc_STRVAR(_profile_write_unraisable__doc__,
"write_unraisable($module, exception, where, /)\n"
"--\n"
"\n"
"Pass an exception of a subscriber to sys.unraisablehook.");

#define _PROFILE_WRITE_UNRAISABLE_METHODDEF    \
    {"write_unraisable", _PyCFunction_CAST(_profile_write_unraisable), METH_FASTCALL, _profile_write_unraisable__doc__},

static PyObject *
_profile_write_unraisable_impl(PyObject *module, PyObject *exception,
                               PyObject *where);

static PyObject *
_profile_write_unraisable(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    PyObject *return_value = NULL;
    PyObject *exception;
    PyObject *where;

    if (!_PyArg_CheckPositional("write_unraisable", nargs, 2, 2)) {
        goto exit;
    }
    exception = args[0];
    where = args[1];
    return_value = _profile_write_unraisable_impl(module, exception, where);

exit:
    return return_value;
}

PyDoc_STRVAR(_profile_start_helper__doc__,
"start_helper($module, start, run, daemon, /)\n"
"--\n"
"\n"
"Return start(run, daemon=daemon), which starts a thread to serve subscribers.\n"
"\n"
"It is counted as such from the beginning, until it ends.");

#define _PROFILE_START_HELPER_METHODDEF    \
    {"start_helper", _PyCFunction_CAST(_profile_start_helper), METH_FASTCALL, _profile_start_helper__doc__},

static PyObject *
_profile_start_helper_impl(PyObject *module, PyObject *start, PyObject *run,
                           int daemon);

static PyObject *
_profile_start_helper(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    PyObject *return_value = NULL;
    PyObject *start;
    PyObject *run;
    int daemon;

    if (!_PyArg_CheckPositional("start_helper", nargs, 3, 3)) {
        goto exit;
    }
    start = args[0];
    run = args[1];
    daemon = PyObject_IsTrue(args[2]);
    if (daemon < 0) {
        goto exit;
    }
    return_value = _profile_start_helper_impl(module, start, run, daemon);

exit:
    return return_value;
}
/*[clinic end generated code: output=bfc158ba161e6dd0 input=a9049054013a1b77]*/
