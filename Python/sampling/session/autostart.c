/* Sampling profiler: the session of the command line, process by process.

   Owns when its profile is written: at exit, in children of a fork, before the
   process becomes another program.  Must not know what the command line asks
   for (Lib/profile_sampling/_recording/command_line.py), how a session is
   begun and ended (session/session.c) or how a process ends at once
   (session/ending.c). */

#include "Python.h"

#include "pycore_import.h"            // _PyImport_GetModules()
#include "pycore_initconfig.h"        // PyStatus_Exit()
#include "pycore_interp.h"            // PyInterpreterState.config
#include "pycore_pylifecycle.h"       // _Py_IsMainInterpreter()
#include "pycore_pystate.h"           // _PyInterpreterState_GetConfig()
#include "pycore_runtime.h"           // _PyRuntime

#include "../tables/profile.h"
#include "session.h"

#include <fcntl.h>                    // AT_FDCWD
#include <stdio.h>                    // dprintf()
#include <unistd.h>
#include <wchar.h>                    // wcschr()

#define STATE (&_PyRuntime.sampling)

/* A helper has what waits to deliver, and then to end. */
#define MAX_HELPER_NS 1000000000


/* Writing. */

static void
write_profile(struct _sampling_profile *profile, int is_exec)
{
    PyObject *raw = STATE->exit_export(profile);
    PyObject *done = raw != NULL
        ? PyObject_CallFunction(STATE->exit_write, "Oii", raw,
                                STATE->exit_quiet, is_exec)
        : NULL;
    if (done == NULL) {
        // Not through sys.stderr: it may be locked for ever.
        dprintf(STDERR_FILENO, "sampleprof: process %d: the profile was not "
                "written: %s\n", (int)getpid(),
                ((PyTypeObject *)PyErr_Occurred())->tp_name);
        PyErr_Clear();
    }
    Py_XDECREF(done);
    Py_XDECREF(raw);
}

/* No code of the program runs meanwhile but its audit hooks and its handlers
   of signals: in the child of a fork any other might wait for a lock that
   nobody gives back. */
static void
write_alone(PyThreadState *tstate, struct _sampling_profile *profile)
{
    PyThreadState_EnterTracing(tstate);
    int was_collecting = PyGC_Disable();
    write_profile(profile, STATE->exit_by_exec);
    if (was_collecting) {
        PyGC_Enable();
    }
    PyThreadState_LeaveTracing(tstate);
}

static void
write_at_end(PyThreadState *tstate, struct _sampling_profile *profile)
{
    if (!_PySampling_EndingWrite(profile)) {
        write_alone(tstate, profile);
    }
}

/* The session goes on, as the program may. */
static void
write_snapshot(PyThreadState *tstate,
               void (*write)(PyThreadState *, struct _sampling_profile *))
{
    struct _sampling_profile *profile;
    if (_PySampling_Snapshot(tstate, 0, &profile) == _PySampling_OK) {
        write(tstate, profile);
        _PySampling_ProfileFree(profile);
    }
}

static void
write_at_ending(PyThreadState *tstate, struct _sampling_profile *handed)
{
    if (handed != NULL) {
        write_alone(tstate, handed);
    }
    else if (STATE->exit_session) {     // else it has been written meanwhile
        write_snapshot(tstate, write_alone);
    }
}

/* The process is about to be the program *path*, if there is one: many paths
   are tried for one name.  The child of a fork leaves nothing: its parent
   wanted that program, and has most of what it ran before. */
void
_PySampling_WriteBeforeExec(PyThreadState *tstate, const char *path)
{
    if (STATE->exit_session && STATE->num_forks == 0
        && !_PySampling_ForkedWithoutHooks()
        && !_PySampling_AnotherWrites(tstate)
        && _Py_IsMainInterpreter(tstate->interp)
        && (path == NULL
            || faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) == 0))
    {
        _PySampling_SetWriter(tstate);
        STATE->exit_by_exec = 1;
        write_snapshot(tstate, write_at_end);
        STATE->exit_by_exec = 0;
        _PySampling_SetWriter(NULL);
    }
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

/* The modules that the call imports are its own: the program finds in
   sys.modules what it would find without us.  They are there before it runs:
   at its end sys.path may be the program's own, and the child of a fork may
   find an import locked for ever by a thread that only its parent has.  What
   site imports next is the program's in any case, and need not run twice. */
static PyObject *
call_apart(PyThreadState *tstate, const char *module_name,
           const char *function, PyObject *text, int by_option)
{
    if (_PyInterpreterState_GetConfig(tstate->interp)->site_import) {
        PyObject *os = PyImport_ImportModule("os");
        if (os == NULL) {
            return NULL;
        }
        Py_DECREF(os);
    }
    PyObject *modules = _PyImport_GetModules(tstate->interp);
    PyObject *before = PyDict_Copy(modules);
    if (before == NULL) {
        return NULL;
    }
    PyObject *module = PyImport_ImportModule(module_name);
    PyObject *result = module == NULL ? NULL : PyObject_CallMethod(
        module, function, "Oi", text, by_option);
    Py_XDECREF(module);
    PyObject *exc = PyErr_GetRaisedException();
    PyObject *after = PyDict_Keys(modules);
    for (Py_ssize_t i = 0; after != NULL && i < PyList_GET_SIZE(after); i++) {
        PyObject *name = PyList_GET_ITEM(after, i);
        if (PyDict_Contains(before, name) == 0) {
            (void)PyDict_DelItem(modules, name);
        }
    }
    Py_XDECREF(after);
    Py_DECREF(before);
    PyErr_SetRaisedException(exc);
    return result;
}

/* multiprocessing's resource tracker runs no code of the program. */
static int
is_resource_tracker(const PyConfig *config)
{
    static const wchar_t command[] =
        L"from multiprocessing.resource_tracker import main;";
    return config->run_command != NULL
        && wcsncmp(config->run_command, command,
                   Py_ARRAY_LENGTH(command) - 1) == 0;
}

/* The program matters more than its profile: what fails here is said, and the
   program runs. */
static void
say_what_is_missing(int by_option)
{
    PyObject *exc = PyErr_GetRaisedException();
    if (PyErr_GivenExceptionMatches(exc, PyExc_KeyboardInterrupt)) {
        // Who pressed Control-C meant the program.
        PyErr_SetInterrupt();
    }
    else {
        PySys_FormatStderr("%s: not profiling: the writer of profiles cannot "
                           "be imported: %s: %S\n",
                           by_option ? "-X sampleprof" : "PYTHONSAMPLEPROF",
                           Py_TYPE(exc)->tp_name, exc);
    }
    Py_DECREF(exc);
}

PyStatus
_PySampling_Autostart(PyThreadState *tstate)
{
    const PyConfig *config = _PyInterpreterState_GetConfig(tstate->interp);
    const wchar_t *option =
        _Py_get_xoption(&config->xoptions, L"sampleprof");
    const char *variable =
        _Py_GetEnv(config->use_environment, "PYTHONSAMPLEPROF");
    if ((option == NULL && variable == NULL) || is_resource_tracker(config)) {
        return _PyStatus_OK();
    }
    PyObject *text;
    if (option != NULL) {
        const wchar_t *equals = wcschr(option, L'=');
        text = PyUnicode_FromWideChar(
            equals != NULL ? equals + 1 : L"wall", -1);
    }
    else {
        text = PyUnicode_DecodeFSDefault(variable);
    }
    PyObject *status = text == NULL ? NULL : call_apart(
        tstate, "profile_sampling._recording.command_line", "begin", text,
        option != NULL);
    Py_XDECREF(text);
    if (status == NULL) {
        say_what_is_missing(option != NULL);
        return _PyStatus_OK();
    }
    int is_refused = status != Py_False;
    Py_DECREF(status);
    return is_refused ? PyStatus_Exit(2) : _PyStatus_OK();
}

void
_PySampling_WriteAtExit(PyObject *write, int quiet, int children)
{
    STATE->exit_write = Py_NewRef(write);
    STATE->exit_quiet = quiet;
    STATE->exit_children = children;
    STATE->exit_session = 1;
    _PySampling_EndingBegin(write_at_ending);
}


/* Children of a fork. */

void
_PySampling_ContinueInChild(PyThreadState *tstate)
{
    if (!STATE->exit_goes_on) {
        return;
    }
    STATE->exit_goes_on = 0;
#ifdef _Py_THREAD_SANITIZER
    return;     // it ends a child that starts a thread
#endif
    // A child is one of many, and speaks on the stderr of its parent.
    STATE->exit_quiet = 1;
    _PySampling_Options options = STATE->session_options;
    _PySampling_Status status = _PySampling_Start(tstate, &options);
    if (status == _PySampling_OK) {
        STATE->exit_session = 1;
        _PySampling_EndingBegin(write_at_ending);
    }
    else {
        // Not through sys.stderr: it may be locked for ever.
        dprintf(STDERR_FILENO, "sampleprof: not profiling process %d: %s\n",
                (int)getpid(), reason_of(status));
    }
}


/* The end. */

/* Ends whatever session there is, and blocks of daemon threads. */
static void
end_session(PyThreadState *tstate)
{
    _PySampling_BlocksEnd(tstate);
    struct _sampling_profile *profile;
    int is_exit_session = STATE->exit_session;
    if (_PySampling_Stop(tstate, &profile) != _PySampling_OK) {
        return;
    }
    if (is_exit_session) {
        write_at_end(tstate, profile);
    }
    _PySampling_ProfileFree(profile);
}


/* The program goes on without its session. */
void
_PySampling_WriteNow(PyThreadState *tstate)
{
    if (!STATE->exit_session || _PySampling_AnotherWrites(tstate)) {
        return;
    }
    _PySampling_SetWriter(tstate);
    struct _sampling_profile *profile;
    if (_PySampling_Stop(tstate, &profile) == _PySampling_OK) {
        write_profile(profile, 0);
        _PySampling_ProfileFree(profile);
    }
    _PySampling_EndingOver();
    _PySampling_SetWriter(NULL);
}

/* Those of the main interpreter have ended.  One of an interpreter that is
   left over would be trapped from now on, and no interpreter may end before
   its threads have. */
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
_PySampling_EndAutostart(PyThreadState *tstate)
{
    if (!_Py_IsMainInterpreter(tstate->interp)) {
        return;
    }
    _PySampling_WaitForWriter(tstate);
    _PySampling_SetWriter(tstate);
    end_session(tstate);
    _PySampling_EndSubscriptions(tstate);
    wait_for_helpers();
    _PySampling_EndingOver();
    // What daemon threads have begun meanwhile; to hand over what is large gives
    // the GIL up, and so may what write() refers to.  From here on none of them
    // comes to run.
    do {
        end_session(tstate);
        _PySampling_EndSubscriptions(tstate);
        _PySampling_CountForget(tstate);
        Py_CLEAR(STATE->exit_write);
    } while (_PySampling_IsRunning());
    _PySampling_SetWriter(NULL);
}
