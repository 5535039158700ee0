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
"subscribe($module, /, deliver, *, owner, mode=\'wall\', rate_hz=1000,\n"
"          depth_frames=0, names=-1, signal=0, manual=False,\n"
"          max_events=65536, batch_events=4096, interpreter_id=-1,\n"
"          sync=False, threads=None, labels=None)\n"
"--\n"
"\n"
"Return a Subscription.\n"
"\n"
"deliver is called with owner at safepoints if it is to be served there.\n"
"threads is a tuple of thread idents, labels one of str: key, value, ...\n"
"depth_frames 0 and names -1: what holds already, or the default.");

#define _PROFILE_SUBSCRIBE_METHODDEF    \
    {"subscribe", _PyCFunction_CAST(_profile_subscribe), METH_FASTCALL|METH_KEYWORDS, _profile_subscribe__doc__},

static PyObject *
_profile_subscribe_impl(PyObject *module, PyObject *deliver, PyObject *owner,
                        const char *mode, int rate_hz, int depth_frames,
                        int names, int signal, int manual,
                        unsigned int max_events, unsigned int batch_events,
                        long long interpreter_id, int sync,
                        PyObject *threads, PyObject *labels);

static PyObject *
_profile_subscribe(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    PyObject *return_value = NULL;
    #if defined(Py_BUILD_CORE) && !defined(Py_BUILD_CORE_MODULE)

    #define NUM_KEYWORDS 14
    static struct {
        PyGC_Head _this_is_not_used;
        PyObject_VAR_HEAD
        PyObject *ob_item[NUM_KEYWORDS];
    } _kwtuple = {
        .ob_base = PyVarObject_HEAD_INIT(&PyTuple_Type, NUM_KEYWORDS)
        .ob_item = { &_Py_ID(deliver), &_Py_ID(owner), &_Py_ID(mode), &_Py_ID(rate_hz), &_Py_ID(depth_frames), &_Py_ID(names), &_Py_ID(signal), &_Py_ID(manual), &_Py_ID(max_events), &_Py_ID(batch_events), &_Py_ID(interpreter_id), &_Py_ID(sync), &_Py_ID(threads), &_Py_ID(labels), },
    };
    #undef NUM_KEYWORDS
    #define KWTUPLE (&_kwtuple.ob_base.ob_base)

    #else  // !Py_BUILD_CORE
    #  define KWTUPLE NULL
    #endif  // !Py_BUILD_CORE

    static const char * const _keywords[] = {"deliver", "owner", "mode", "rate_hz", "depth_frames", "names", "signal", "manual", "max_events", "batch_events", "interpreter_id", "sync", "threads", "labels", NULL};
    static _PyArg_Parser _parser = {
        .keywords = _keywords,
        .fname = "subscribe",
        .kwtuple = KWTUPLE,
    };
    #undef KWTUPLE
    PyObject *argsbuf[14];
    Py_ssize_t noptargs = nargs + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0) - 2;
    PyObject *deliver;
    PyObject *owner;
    const char *mode = "wall";
    int rate_hz = 1000;
    int depth_frames = 0;
    int names = -1;
    int signal = 0;
    int manual = 0;
    unsigned int max_events = 65536;
    unsigned int batch_events = 4096;
    long long interpreter_id = -1;
    int sync = 0;
    PyObject *threads = Py_None;
    PyObject *labels = Py_None;

    args = _PyArg_UnpackKeywords(args, nargs, NULL, kwnames, &_parser, 1, 1, 1, argsbuf);
    if (!args) {
        goto exit;
    }
    deliver = args[0];
    owner = args[1];
    if (!noptargs) {
        goto skip_optional_kwonly;
    }
    if (args[2]) {
        if (!PyUnicode_Check(args[2])) {
            _PyArg_BadArgument("subscribe", "argument 'mode'", "str", args[2]);
            goto exit;
        }
        Py_ssize_t mode_length;
        mode = PyUnicode_AsUTF8AndSize(args[2], &mode_length);
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
    if (args[3]) {
        rate_hz = PyLong_AsInt(args[3]);
        if (rate_hz == -1 && PyErr_Occurred()) {
            goto exit;
        }
        if (!--noptargs) {
            goto skip_optional_kwonly;
        }
    }
    if (args[4]) {
        depth_frames = PyLong_AsInt(args[4]);
        if (depth_frames == -1 && PyErr_Occurred()) {
            goto exit;
        }
        if (!--noptargs) {
            goto skip_optional_kwonly;
        }
    }
    if (args[5]) {
        names = PyLong_AsInt(args[5]);
        if (names == -1 && PyErr_Occurred()) {
            goto exit;
        }
        if (!--noptargs) {
            goto skip_optional_kwonly;
        }
    }
    if (args[6]) {
        signal = PyLong_AsInt(args[6]);
        if (signal == -1 && PyErr_Occurred()) {
            goto exit;
        }
        if (!--noptargs) {
            goto skip_optional_kwonly;
        }
    }
    if (args[7]) {
        manual = PyObject_IsTrue(args[7]);
        if (manual < 0) {
            goto exit;
        }
        if (!--noptargs) {
            goto skip_optional_kwonly;
        }
    }
    if (args[8]) {
        if (!_PyLong_UnsignedInt_Converter(args[8], &max_events)) {
            goto exit;
        }
        if (!--noptargs) {
            goto skip_optional_kwonly;
        }
    }
    if (args[9]) {
        if (!_PyLong_UnsignedInt_Converter(args[9], &batch_events)) {
            goto exit;
        }
        if (!--noptargs) {
            goto skip_optional_kwonly;
        }
    }
    if (args[10]) {
        interpreter_id = PyLong_AsLongLong(args[10]);
        if (interpreter_id == -1 && PyErr_Occurred()) {
            goto exit;
        }
        if (!--noptargs) {
            goto skip_optional_kwonly;
        }
    }
    if (args[11]) {
        sync = PyObject_IsTrue(args[11]);
        if (sync < 0) {
            goto exit;
        }
        if (!--noptargs) {
            goto skip_optional_kwonly;
        }
    }
    if (args[12]) {
        threads = args[12];
        if (!--noptargs) {
            goto skip_optional_kwonly;
        }
    }
    labels = args[13];
skip_optional_kwonly:
    return_value = _profile_subscribe_impl(module, deliver, owner, mode, rate_hz, depth_frames, names, signal, manual, max_events, batch_events, interpreter_id, sync, threads, labels);

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

PyDoc_STRVAR(_profile_pause__doc__,
"pause($module, time_ns, /)\n"
"--\n"
"\n"
"Let others run for so long, or until a signal comes, and its handler run.");

#define _PROFILE_PAUSE_METHODDEF    \
    {"pause", (PyCFunction)_profile_pause, METH_O, _profile_pause__doc__},

static PyObject *
_profile_pause_impl(PyObject *module, long long time_ns);

static PyObject *
_profile_pause(PyObject *module, PyObject *arg)
{
    PyObject *return_value = NULL;
    long long time_ns;

    time_ns = PyLong_AsLongLong(arg);
    if (time_ns == -1 && PyErr_Occurred()) {
        goto exit;
    }
    return_value = _profile_pause_impl(module, time_ns);

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

PyDoc_STRVAR(_profile_ring__doc__,
"ring($module, /)\n"
"--\n"
"\n"
"Wake wait_for_batches().");

#define _PROFILE_RING_METHODDEF    \
    {"ring", (PyCFunction)_profile_ring, METH_NOARGS, _profile_ring__doc__},

static PyObject *
_profile_ring_impl(PyObject *module);

static PyObject *
_profile_ring(PyObject *module, PyObject *Py_UNUSED(ignored))
{
    return _profile_ring_impl(module);
}

PyDoc_STRVAR(_profile_call_excluded__doc__,
"call_excluded($module, callback, argument, waiting=False, /)\n"
"--\n"
"\n"
"Call it; what this thread does meanwhile is not sampled.\n"
"\n"
"It is counted apart, unless the thread mostly waits.");

#define _PROFILE_CALL_EXCLUDED_METHODDEF    \
    {"call_excluded", _PyCFunction_CAST(_profile_call_excluded), METH_FASTCALL, _profile_call_excluded__doc__},

static PyObject *
_profile_call_excluded_impl(PyObject *module, PyObject *callback,
                            PyObject *argument, int waiting);

static PyObject *
_profile_call_excluded(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    PyObject *return_value = NULL;
    PyObject *callback;
    PyObject *argument;
    int waiting = 0;

    if (!_PyArg_CheckPositional("call_excluded", nargs, 2, 3)) {
        goto exit;
    }
    callback = args[0];
    argument = args[1];
    if (nargs < 3) {
        goto skip_optional;
    }
    waiting = PyObject_IsTrue(args[2]);
    if (waiting < 0) {
        goto exit;
    }
skip_optional:
    return_value = _profile_call_excluded_impl(module, callback, argument, waiting);

exit:
    return return_value;
}

PyDoc_STRVAR(_profile_call_subscriber__doc__,
"call_subscriber($module, callback, batch, /)\n"
"--\n"
"\n"
"Call it; signal handlers may interrupt it, as they may any call.");

#define _PROFILE_CALL_SUBSCRIBER_METHODDEF    \
    {"call_subscriber", _PyCFunction_CAST(_profile_call_subscriber), METH_FASTCALL, _profile_call_subscriber__doc__},

static PyObject *
_profile_call_subscriber_impl(PyObject *module, PyObject *callback,
                              PyObject *batch);

static PyObject *
_profile_call_subscriber(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    PyObject *return_value = NULL;
    PyObject *callback;
    PyObject *batch;

    if (!_PyArg_CheckPositional("call_subscriber", nargs, 2, 2)) {
        goto exit;
    }
    callback = args[0];
    batch = args[1];
    return_value = _profile_call_subscriber_impl(module, callback, batch);

exit:
    return return_value;
}

PyDoc_STRVAR(_profile_call_uninterrupted__doc__,
"call_uninterrupted($module, function, argument, /)\n"
"--\n"
"\n"
"Call it; signal handlers wait until it is over.");

#define _PROFILE_CALL_UNINTERRUPTED_METHODDEF    \
    {"call_uninterrupted", _PyCFunction_CAST(_profile_call_uninterrupted), METH_FASTCALL, _profile_call_uninterrupted__doc__},

static PyObject *
_profile_call_uninterrupted_impl(PyObject *module, PyObject *function,
                                 PyObject *argument);

static PyObject *
_profile_call_uninterrupted(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    PyObject *return_value = NULL;
    PyObject *function;
    PyObject *argument;

    if (!_PyArg_CheckPositional("call_uninterrupted", nargs, 2, 2)) {
        goto exit;
    }
    function = args[0];
    argument = args[1];
    return_value = _profile_call_uninterrupted_impl(module, function, argument);

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

PyDoc_STRVAR(_profile_count_helpers__doc__,
"count_helpers($module, change, /)\n"
"--\n"
"\n"
"Tell that a thread which serves subscribers is to begin (1), or cannot (-1).");

#define _PROFILE_COUNT_HELPERS_METHODDEF    \
    {"count_helpers", (PyCFunction)_profile_count_helpers, METH_O, _profile_count_helpers__doc__},

static PyObject *
_profile_count_helpers_impl(PyObject *module, int change);

static PyObject *
_profile_count_helpers(PyObject *module, PyObject *arg)
{
    PyObject *return_value = NULL;
    int change;

    change = PyLong_AsInt(arg);
    if (change == -1 && PyErr_Occurred()) {
        goto exit;
    }
    return_value = _profile_count_helpers_impl(module, change);

exit:
    return return_value;
}

PyDoc_STRVAR(_profile_begin_to_serve__doc__,
"begin_to_serve($module, /)\n"
"--\n"
"\n"
"Tell that it is this thread, until it ends.");

#define _PROFILE_BEGIN_TO_SERVE_METHODDEF    \
    {"begin_to_serve", (PyCFunction)_profile_begin_to_serve, METH_NOARGS, _profile_begin_to_serve__doc__},

static PyObject *
_profile_begin_to_serve_impl(PyObject *module);

static PyObject *
_profile_begin_to_serve(PyObject *module, PyObject *Py_UNUSED(ignored))
{
    return _profile_begin_to_serve_impl(module);
}
/*[clinic end generated code: output=4be2390ee6b7e751 input=a9049054013a1b77]*/
