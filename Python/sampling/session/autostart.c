/* Sampling profiler: the session of the command line, process by process.

   Owns who writes which file and when: at exit, at os._exit(), in children of
   a fork, in programs that were started with the same text.  Must not know
   what the text looks like (session/options.c) or how a session is begun and
   ended (session/session.c). */

#include "Python.h"

#include "pycore_import.h"            // _PyImport_GetModules()
#include "pycore_initconfig.h"        // PyStatus_Exit()
#include "pycore_interp.h"            // PyInterpreterState.config
#include "pycore_moduleobject.h"      // _PyModuleSpec_IsInitializing()
#include "pycore_pylifecycle.h"       // _Py_IsMainInterpreter()
#include "pycore_pystate.h"           // _PyInterpreterState_GetConfig()
#include "pycore_runtime.h"           // _PyRuntime

#include "../tables/tables.h"
#include "options.h"
#include "session.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>                    // dprintf()
#include <stdlib.h>                   // getenv()
#include <time.h>                     // clock_nanosleep()
#include <unistd.h>

#define STATE (&_PyRuntime.sampling)

/* Writing takes some ten milliseconds, and a minute for the largest profile
   that is possible.  A process that ends at once holds whatever locks its
   threads, or those of its parent, had taken: if the writer waits for one of
   them, the process must end nevertheless. */
#define MAX_WRITE_S 60

/* A helper has what waits to deliver, and then to end. */
#define MAX_HELPER_NS 1000000000

/* The writer needs less, imports included. */
#define WRITER_FRAMES 200


/* Whose file it is.

   A program of which out= has no {pid} may start others with the same text.
   The outermost of them writes the file; the others find its number in the
   environment. */

#define OWNER_VARIABLE "PYTHONSAMPLEPROF_OWNER"

/* As bytes. */
static PyObject *
path_of_file(void)
{
    PyObject *path;
    if (STATE->exit_cwd == NULL
        || PyUnicode_READ_CHAR(STATE->exit_out, 0) == '/')
    {
        path = Py_NewRef(STATE->exit_out);
    }
    else {
        path = PyUnicode_FromFormat("%U/%U", STATE->exit_cwd,
                                    STATE->exit_out);
    }
    PyObject *bytes = path != NULL ? PyUnicode_EncodeFSDefault(path) : NULL;
    Py_XDECREF(path);
    return bytes;
}

static int
is_anothers(const char *path)
{
    const char *owner = getenv(OWNER_VARIABLE);
    if (owner == NULL) {
        return 0;
    }
    char *end;
    long pid = strtol(owner, &end, 10);
    return *end == ' ' && strcmp(end + 1, path) == 0
        && pid > 0 && pid != (long)getpid()
        && (kill((pid_t)pid, 0) == 0 || errno == EPERM);
}

/* In the environment, and in the copy of it that os.environ is made from. */
static int
tell_children(PyObject *path)
{
    PyObject *value = PyBytes_FromFormat("%d %s", (int)getpid(),
                                         PyBytes_AS_STRING(path));
    PyObject *name = PyBytes_FromString(OWNER_VARIABLE);
    PyObject *posix = PyImport_ImportModule("posix");
    PyObject *environ =
        posix != NULL ? PyObject_GetAttrString(posix, "environ") : NULL;
    int err = -1;
    if (value != NULL && name != NULL && environ != NULL
        && PyDict_SetItem(environ, name, value) == 0)
    {
        err = setenv(OWNER_VARIABLE, PyBytes_AS_STRING(value), 1);
    }
    Py_XDECREF(environ);
    Py_XDECREF(posix);
    Py_XDECREF(name);
    Py_XDECREF(value);
    return err;
}

static int
claim_file(void)
{
    PyObject *path = path_of_file();
    if (path == NULL) {
        return -1;
    }
    int result = 0;
    if (!is_anothers(PyBytes_AS_STRING(path))) {
        result = tell_children(path) == 0 ? 1 : -1;
    }
    Py_DECREF(path);
    return result;
}


/* Why there is no session. */
static const char *
reason_of(_PySampling_Status status)
{
    switch (status) {
    case _PySampling_ERR_RUNNING:
        return "a session is running already";
    case _PySampling_ERR_SIGNAL_TAKEN:
        return "the signal is in use; choose another with signal=NUMBER";
    case _PySampling_ERR_THREAD:
        return "the sampler thread cannot be started; is there a limit on "
               "threads or memory?";
    default:
        return "out of memory";
    }
}

/* Start. */

static PyObject *
text_or_null(const wchar_t *text)
{
    return text != NULL ? PyUnicode_FromWideChar(text, -1) : NULL;
}

static PyObject *
current_directory(void)
{
    char path[4096];
    if (getcwd(path, sizeof(path)) == NULL) {
        return NULL;            // a relative path is used as it is then
    }
    return PyUnicode_DecodeFSDefault(path);
}

PyStatus
_PySampling_InitFromConfig(PyThreadState *tstate)
{
    const PyConfig *config = _PyInterpreterState_GetConfig(tstate->interp);
    struct _sampling_request request;
    int is_asked_for = _PySampling_ReadOptions(config, &request);
    if (is_asked_for <= 0) {
        return is_asked_for < 0 ? PyStatus_Exit(2) : _PyStatus_OK();
    }
    STATE->exit_quiet = request.quiet;
    STATE->exit_children = request.children;
    STATE->exit_out = text_or_null(request.out);
    STATE->exit_format = text_or_null(request.format);
    STATE->exit_cwd = current_directory();
    int is_ours = PyErr_Occurred() ? -1
        : request.is_per_process ? 1 : claim_file();
    int can_write = is_ours <= 0 || _PySampling_CanWrite(&request);
    PyMem_RawFree(request.text);
    if (is_ours < 0) {
        return _PyStatus_NO_MEMORY();
    }
    if (!can_write && !request.is_inherited) {
        return PyStatus_Exit(2);
    }
    if (!is_ours || !can_write) {
        return _PyStatus_OK();
    }
    _PySampling_Status status = _PySampling_Start(tstate, &request.options);
    if (status == _PySampling_OK) {
        STATE->exit_session = 1;
    }
    else {
        // The program matters more than its profile.
        _PySampling_Complain(&request, "not profiling: %s",
                             reason_of(status));
    }
    return _PyStatus_OK();
}


/* Children of a fork. */

void
_PySampling_ContinueInChild(PyThreadState *tstate)
{
    if (!STATE->exit_goes_on) {
        return;
    }
    STATE->exit_goes_on = 0;
#ifndef _Py_THREAD_SANITIZER    // it ends a child that starts a thread
    STATE->exit_is_forked = 1;
    // A child is one of many, and speaks on the stderr of its parent.
    STATE->exit_quiet = 1;
    _PySampling_Options options = STATE->session_options;
    _PySampling_Status status = _PySampling_Start(tstate, &options);
    if (status == _PySampling_OK) {
        STATE->exit_session = 1;
    }
    else {
        // Not through sys.stderr: it may be locked for ever.
        dprintf(STDERR_FILENO, "sampleprof: not profiling process %d: %s\n",
                (int)getpid(), reason_of(status));
    }
#endif
}


/* Writing. */

/* The program may have changed sys.path: the writer is looked for where the
   standard library was at start-up.  Returns the old path, or NULL.  A program
   that calls Py_Main() after Py_Initialize() has a configuration with no path
   in it; then sys.path is all there is. */
static PyObject *
use_initial_path(PyThreadState *tstate)
{
    const PyConfig *config = _PyInterpreterState_GetConfig(tstate->interp);
    if (config->module_search_paths.length == 0) {
        return NULL;
    }
    PyObject *old = Py_XNewRef(PySys_GetObject("path"));
    PyObject *path = PyList_New(0);
    if (path == NULL) {
        Py_XDECREF(old);
        return NULL;
    }
    for (Py_ssize_t i = 0; i < config->module_search_paths.length; i++) {
        PyObject *item = PyUnicode_FromWideChar(
            config->module_search_paths.items[i], -1);
        if (item == NULL || PyList_Append(path, item) < 0) {
            Py_XDECREF(item);
            Py_DECREF(path);
            Py_XDECREF(old);
            return NULL;
        }
        Py_DECREF(item);
    }
    int err = PySys_SetObject("path", path);
    Py_DECREF(path);
    if (err < 0) {
        Py_CLEAR(old);
    }
    return old;
}

/* Is a module half imported? */
static int
is_initializing(PyObject *module)
{
    PyObject *spec = PyObject_GetAttr(module, &_Py_ID(__spec__));
    int answer = spec != NULL ? _PyModuleSpec_IsInitializing(spec) : -1;
    Py_XDECREF(spec);
    PyErr_Clear();          // a thing without a spec is not being imported
    return answer > 0;
}

/* What a thread of the parent was importing at the moment of the fork is
   locked, and half of a module, for ever. */
static void
forget_unfinished_imports(PyThreadState *tstate)
{
    PyObject *modules = _PyImport_GetModules(tstate->interp);
    PyObject *importlib = PyImport_ImportModule("_frozen_importlib");
    PyObject *locks = importlib != NULL
        ? PyObject_GetAttrString(importlib, "_module_locks") : NULL;
    PyObject *names = locks != NULL ? PyMapping_Keys(locks) : NULL;
    Py_ssize_t count = names != NULL ? PyList_GET_SIZE(names) : 0;
    for (Py_ssize_t i = 0; i < count && !PyErr_Occurred(); i++) {
        PyObject *name = PyList_GET_ITEM(names, i);
        PyObject *module;
        if (PyMapping_GetOptionalItem(modules, name, &module) > 0
            && is_initializing(module))
        {
            PyObject_DelItem(modules, name);
        }
        Py_XDECREF(module);
    }
    if (names != NULL && PyDict_Check(locks)) {
        PyDict_Clear(locks);
    }
    Py_XDECREF(names);
    Py_XDECREF(locks);
    Py_XDECREF(importlib);
}

static void
write_profile(PyThreadState *tstate, struct _sampling_tables *tables)
{
    PyObject *old_path = use_initial_path(tstate);
    PyObject *raw = NULL, *module = NULL, *done = NULL;
    if (STATE->exit_is_forked && !PyErr_Occurred()) {
        forget_unfinished_imports(tstate);
    }
    if (!PyErr_Occurred()) {
        raw = _PySampling_Export(tables);
    }
    if (raw != NULL) {
        module = PyImport_ImportModule("profile_sampling._recording.at_exit");
    }
    if (module != NULL) {
        done = PyObject_CallMethod(
            module, "write", "OOOOi", raw,
            STATE->exit_out ? STATE->exit_out : Py_None,
            STATE->exit_format ? STATE->exit_format : Py_None,
            STATE->exit_cwd ? STATE->exit_cwd : Py_None,
            STATE->exit_quiet);
    }
    if (done == NULL) {
        PyErr_FormatUnraisable("sampleprof: the profile was not written");
    }
    if (old_path != NULL && PySys_SetObject("path", old_path) < 0) {
        PyErr_FormatUnraisable("sampleprof: sys.path was not restored");
    }
    Py_XDECREF(done);
    Py_XDECREF(module);
    Py_XDECREF(raw);
    Py_XDECREF(old_path);
}

/* Ends whatever session there is, and blocks of daemon threads. */
static void
end_session(PyThreadState *tstate)
{
    _PySampling_BlocksEnd(tstate);
    struct _sampling_tables *tables;
    int is_exit_session = STATE->exit_session;
    if (_PySampling_Stop(tstate, &tables) != _PySampling_OK) {
        return;
    }
    if (is_exit_session) {
        // The program's trace function is not asked about our frames.
        PyThreadState_EnterTracing(tstate);
        write_profile(tstate, tables);
        PyThreadState_LeaveTracing(tstate);
    }
    _PySampling_TablesFree(tables);
}


/* The end of the process: of the main thread, or by os._exit() in any. */

static void
set_writer(PyThreadState *tstate)
{
    _Py_atomic_store_ptr(&STATE->exit_writer, tstate);
}

static int
another_writes(PyThreadState *tstate)
{
    PyThreadState *writer = _Py_atomic_load_ptr(&STATE->exit_writer);
    return writer != NULL && writer != tstate;
}

static void
end_unwritten(int status)
{
    dprintf(STDERR_FILENO, "sampleprof: process %d ends without its profile, "
            "which takes too long to write\n", (int)getpid());
    _exit(status);
}

static void
sleep_until_written(void)
{
    struct timespec deadline;
    (void)clock_gettime(CLOCK_MONOTONIC, &deadline);
    deadline.tv_sec += MAX_WRITE_S;
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &deadline, NULL)
           == EINTR)
    {
        // Signals are the program's.
    }
}

/* Another thread ends the process, and its status counts: this one would not
   have come to run again if there were nothing to write.  `status`: if it has
   none. */
static void
wait_for_end(int status)
{
    Py_BEGIN_ALLOW_THREADS
    sleep_until_written();
    if (_Py_atomic_load_ptr(&STATE->exit_writer) != NULL) {
        end_unwritten(STATE->exit_has_status ? STATE->exit_status : status);
    }
    for (;;) {
        pause();
    }
    Py_END_ALLOW_THREADS
}

/* Those of the main interpreter have ended.  One of an interpreter that is left
   over would be trapped from now on, and no interpreter may end before its
   threads have. */
static void
wait_for_helpers(void)
{
    uint64_t deadline_ns = _PySampling_MonotonicNow() + MAX_HELPER_NS;
    while (_Py_atomic_load_int(&STATE->num_helpers) > 0
           && _PySampling_MonotonicNow() < deadline_ns)
    {
        Py_BEGIN_ALLOW_THREADS
        usleep(1000);
        Py_END_ALLOW_THREADS
    }
}

void
_PySampling_Finalize(PyThreadState *tstate)
{
    if (!_Py_IsMainInterpreter(tstate->interp)) {
        return;
    }
    if (another_writes(tstate)) {
        wait_for_end(0);
    }
    set_writer(tstate);
    end_session(tstate);
    set_writer(NULL);
    _PySampling_EndSubscriptions(tstate);
    wait_for_helpers();
    // What daemon threads have begun meanwhile.  From here on none of them
    // comes to run.
    end_session(tstate);
    _PySampling_EndSubscriptions(tstate);
    Py_CLEAR(STATE->exit_out);
    Py_CLEAR(STATE->exit_format);
    Py_CLEAR(STATE->exit_cwd);
}

/* A thread without thread state, which needs no lock. */
static void *
end_in_time(void *status)
{
    sleep_until_written();
    end_unwritten((int)(intptr_t)status);
    return NULL;
}

static void
start_to_watch(int status)
{
    pthread_t thread;
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    // Without it there is no more than a risk.
    if (pthread_create(&thread, NULL, end_in_time,
                       (void *)(intptr_t)status) == 0)
    {
        pthread_detach(thread);
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

void
_PySampling_BeforeExit(int status)
{
    PyThreadState *tstate = _PyThreadState_GET();
    if (another_writes(tstate)) {
        wait_for_end(status);
    }
    if (!STATE->exit_session || _PySampling_IsForkedUnheard()
        || !_Py_IsMainInterpreter(tstate->interp)
        || _PyInterpreterState_GetFinalizing(tstate->interp) != NULL)
    {
        return;
    }
    STATE->exit_status = status;
    STATE->exit_has_status = 1;
    set_writer(tstate);
    // It may be a recursion without end that has come to this.
    tstate->py_recursion_remaining += WRITER_FRAMES;
    start_to_watch(status);
    end_session(tstate);
}
