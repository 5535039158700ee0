/* Sampling profiler: the session of the command line, process by process.

   Owns who writes which file and when: at exit, in children of a fork, in
   programs that were started with the same text.  Must not know what the text
   looks like (session/options.c), how a session is begun and ended
   (session/session.c) or how a process ends at once (session/ending.c). */

#include "Python.h"

#include "pycore_import.h"            // _PyImport_GetModules()
#include "pycore_initconfig.h"        // PyStatus_Exit()
#include "pycore_interp.h"            // PyInterpreterState.config
#include "pycore_pylifecycle.h"       // _Py_IsMainInterpreter()
#include "pycore_pystate.h"           // _PyInterpreterState_GetConfig()
#include "pycore_runtime.h"           // _PyRuntime

#include "../tables/profile.h"
#include "options.h"
#include "session.h"

#include <fcntl.h>                    // F_DUPFD_CLOEXEC
#include <signal.h>
#include <stdio.h>                    // dprintf()
#include <stdlib.h>                   // getenv()
#include <sys/mman.h>                 // memfd_create()
#include <sys/resource.h>             // getrlimit()
#include <sys/stat.h>
#include <unistd.h>
#include <wchar.h>                    // swscanf()

#define STATE (&_PyRuntime.sampling)

/* A helper has what waits to deliver, and then to end. */
#define MAX_HELPER_NS 1000000000


/* Whose file it is.

   A program of which out= has no {pid} may start others with the same text.
   The outermost of them writes the file; the others find its number and the
   time of its start in the environment, and the file. */

#define OWNER_VARIABLE "PYTHONSAMPLEPROF_OWNER"

/* In ticks since the machine's; 0: there is no such process, or no /proc.  A
   number alone may be that of another process by now, or in this namespace. */
static unsigned long long
start_of_process(long pid)
{
    char text[1024];
    (void)snprintf(text, sizeof(text), "/proc/%ld/stat", pid);
    FILE *file = fopen(text, "re");
    if (file == NULL) {
        return 0;
    }
    size_t length = fread(text, 1, sizeof(text) - 1, file);
    fclose(file);
    text[length] = '\0';
    // The name, in parentheses, may have anything in it; 19 fields lie between
    // it and the time.
    const char *field = strrchr(text, ')');
    for (int i = 0; field != NULL && i < 20; i++) {
        field = strchr(field + 1, ' ');
    }
    return field != NULL ? strtoull(field, NULL, 10) : 0;
}

/* As bytes. */
static PyObject *
path_of_file(PyObject *out, PyObject *cwd)
{
    PyObject *path = cwd == Py_None || PyUnicode_READ_CHAR(out, 0) == '/'
        ? Py_NewRef(out)
        : PyUnicode_FromFormat("%U/%U", cwd, out);
    PyObject *bytes = path != NULL ? PyUnicode_EncodeFSDefault(path) : NULL;
    Py_XDECREF(path);
    return bytes;
}

static int
is_anothers(const char *path)
{
    const char *owner = getenv(OWNER_VARIABLE);
    long pid;
    unsigned long long start;
    int length = 0;
    return owner != NULL
        && sscanf(owner, "%ld %llu %n", &pid, &start, &length) == 2
        && length > 0 && strcmp(owner + length, path) == 0
        && pid > 0 && pid != (long)getpid()
        && start != 0 && start == start_of_process(pid);
}

/* In the environment, and in the copy of it that os.environ is made from. */
static int
tell_children(const char *variable, PyObject *value)
{
    PyObject *bytes = PyUnicode_Check(value)
        ? PyUnicode_EncodeFSDefault(value) : Py_NewRef(value);
    PyObject *name = PyBytes_FromString(variable);
    PyObject *posix = PyImport_ImportModule("posix");
    PyObject *environ =
        posix != NULL ? PyObject_GetAttrString(posix, "environ") : NULL;
    int err = -1;
    if (bytes != NULL && name != NULL && environ != NULL
        && PyDict_SetItem(environ, name, bytes) == 0)
    {
        err = setenv(variable, PyBytes_AS_STRING(bytes), 1);
    }
    Py_XDECREF(environ);
    Py_XDECREF(posix);
    Py_XDECREF(name);
    Py_XDECREF(bytes);
    return err;
}

static int
claim_file(PyObject *out, PyObject *cwd)
{
    PyObject *path = path_of_file(out, cwd);
    if (path == NULL) {
        return -1;
    }
    int result = 0;
    if (!is_anothers(PyBytes_AS_STRING(path))) {
        long pid = getpid();
        char start[32];
        (void)snprintf(start, sizeof(start), "%llu", start_of_process(pid));
        PyObject *value = PyBytes_FromFormat(
            "%ld %s %s", pid, start, PyBytes_AS_STRING(path));
        result = value != NULL && tell_children(OWNER_VARIABLE, value) == 0
            ? 1 : -1;
        Py_XDECREF(value);
    }
    Py_DECREF(path);
    return result;
}


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
write_at_end(PyThreadState *tstate, struct _sampling_profile *profile,
             int is_exec)
{
    PyThreadState_EnterTracing(tstate);
    int was_collecting = PyGC_Disable();
    write_profile(profile, is_exec);
    if (was_collecting) {
        PyGC_Enable();
    }
    PyThreadState_LeaveTracing(tstate);
}

/* The session goes on, as the program may. */
static void
write_snapshot(PyThreadState *tstate, int is_exec)
{
    _PySampling_SetWriter(tstate);
    struct _sampling_profile *profile;
    if (_PySampling_Snapshot(tstate, 0, &profile) == _PySampling_OK) {
        write_at_end(tstate, profile, is_exec);
        _PySampling_ProfileFree(profile);
    }
    _PySampling_SetWriter(NULL);
}

static void
write_at_ending(PyThreadState *tstate)
{
    _PySampling_WaitForWriter(tstate);
    if (STATE->exit_session) {  // else it has been written meanwhile
        write_snapshot(tstate, 0);
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
        write_snapshot(tstate, 1);
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

static PyObject *
text_or_none(const wchar_t *text)
{
    return text != NULL ? PyUnicode_FromWideChar(text, -1) : Py_None;
}

/* None: a relative path begins wherever the program is then. */
static PyObject *
current_directory(void)
{
    char path[4096];
    return getcwd(path, sizeof(path)) != NULL
        ? PyUnicode_DecodeFSDefault(path) : Py_None;
}

/* What the first process says of itself to those that it starts, in the text
   that they inherit:

       parent=PID:FD:INODE:DIRECTORY

   FD and INODE are those of its ledger, a file without a name in which they
   say what became of their profiles
   (Lib/profile_sampling/_recording/ledger.py), or -1 and 0.  Their relative
   names begin in DIRECTORY, unless that is empty: where each of them was
   started is not what its user meant. */

struct parent {
    long pid;
    int ledger;
    unsigned long long inode;
};

/* Returns the directory, or NULL. */
static const wchar_t *
read_parent(const struct _sampling_request *request, struct parent *parent)
{
    *parent = (struct parent){.ledger = -1};
    int length = 0;
    if (request->parent == NULL
        || swscanf(request->parent, L"%ld:%d:%llu:%n", &parent->pid,
                   &parent->ledger, &parent->inode, &length) != 3
        || length == 0 || request->parent[length] == L'\0')
    {
        return NULL;
    }
    return request->parent + length;
}

/* What the options say of the file, as the writer wants it. */
struct file {
    PyObject *out;
    PyObject *format;
    PyObject *cwd;
    int is_elsewhere;           // cwd is where the first process was
    int duration_s;
    int timeline;
    // Kept open to the end, or -1: the directory, and one more, whose number
    // is free for the file if the program has taken all others.
    int directory;
    int spare;
    struct parent parent;
};

static int
describe_file(struct file *file, const struct _sampling_request *request)
{
    const wchar_t *directory = read_parent(request, &file->parent);
    file->out = text_or_none(request->out);
    file->format = text_or_none(request->format);
    file->is_elsewhere = directory != NULL;
    file->cwd = directory != NULL
        ? PyUnicode_FromWideChar(directory, -1) : current_directory();
    file->duration_s = request->duration_s;
    file->timeline = request->timeline;
    file->directory = file->spare = -1;
    return file->out && file->format && file->cwd ? 0 : -1;
}

/* Descriptors that we keep have numbers that programs do not come to.  Where
   they may have few, none is taken from them. */
#define KEPT_DESCRIPTORS 1008
#define MIN_DESCRIPTORS 1024

static int
keep_descriptor(int fd)
{
    struct rlimit limit;
    return fd >= 0 && getrlimit(RLIMIT_NOFILE, &limit) == 0
        && limit.rlim_cur >= MIN_DESCRIPTORS
        ? fcntl(fd, F_DUPFD_CLOEXEC, KEPT_DESCRIPTORS) : -1;
}

static int
check_file(struct file *file, const struct _sampling_request *request)
{
    // No path needs to lead to the directory that we are in ourselves.
    PyObject *cwd = file->is_elsewhere
        ? PyUnicode_EncodeFSDefault(file->cwd) : NULL;
    PyErr_Clear();
    int directory;
    int ok = _PySampling_CanWrite(
        request, cwd != NULL ? PyBytes_AS_STRING(cwd) : NULL, &directory);
    Py_XDECREF(cwd);
    file->directory = keep_descriptor(directory);
    file->spare = keep_descriptor(directory);
    if (directory >= 0) {
        (void)close(directory);
    }
    return ok;
}

static void
open_ledger(struct parent *parent)
{
    int fd = memfd_create("sampleprof", MFD_CLOEXEC);
    struct stat st;
    if (fd >= 0 && fstat(fd, &st) == 0) {
        parent->ledger = keep_descriptor(fd);
        parent->inode = st.st_ino;
    }
    if (fd >= 0) {
        (void)close(fd);
    }
}

static PyObject *
make_writer(const struct file *file)
{
    PyObject *module =
        PyImport_ImportModule("profile_sampling._recording.at_exit");
    PyObject *writer = module == NULL ? NULL : PyObject_CallMethod(
        module, "writer", "OOOii(ii)(liK)", file->out, file->format, file->cwd,
        file->duration_s, file->timeline, file->directory, file->spare,
        file->parent.pid, file->parent.ledger, file->parent.inode);
    Py_XDECREF(module);
    return writer;
}

/* The writer is imported before the program runs.  At its end sys.path may be
   the program's own, and the child of a fork may find an import locked for
   ever by a thread that only its parent has.  The modules are the writer's
   alone: the program finds in sys.modules what it would find without us. */
static int
import_writer(PyThreadState *tstate, const struct file *file)
{
    PyObject *modules = _PyImport_GetModules(tstate->interp);
    PyObject *before = PyDict_Copy(modules);
    if (before == NULL) {
        return -1;
    }
    STATE->exit_write = make_writer(file);
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
    return STATE->exit_write != NULL ? 0 : -1;
}

/* The writer raises ValueError for what it does not know: a format, or the
   extension of a name.  Returns whether that was it, and clears the
   exception. */
static int
complain_of_writer(const struct _sampling_request *request)
{
    PyObject *exc = PyErr_GetRaisedException();
    int is_refusal = PyErr_GivenExceptionMatches(exc, PyExc_ValueError);
    PyObject *text = PyObject_Str(exc);
    const char *reason = text != NULL ? PyUnicode_AsUTF8(text) : NULL;
    if (reason == NULL) {
        reason = "?";
    }
    if (is_refusal) {
        _PySampling_Complain(request, "%s", reason);
    }
    else {
        _PySampling_Complain(request, "not profiling: the writer of profiles "
                             "cannot be imported: %s: %s",
                             Py_TYPE(exc)->tp_name, reason);
    }
    PyErr_Clear();
    Py_XDECREF(text);
    Py_DECREF(exc);
    return is_refusal;
}

/* The program matters more than its profile: what fails here is said, and the
   program runs.  Returns 0 if the text asks for what there is not. */
static int
start(PyThreadState *tstate, const struct _sampling_request *request,
      const struct file *file)
{
    if (import_writer(tstate, file) < 0) {
        return !complain_of_writer(request);
    }
    _PySampling_Status status = _PySampling_Start(tstate, &request->options);
    if (status == _PySampling_OK) {
        STATE->exit_session = 1;
        _PySampling_EndingBegin(write_at_ending);
    }
    else {
        _PySampling_Complain(request, "not profiling: %s", reason_of(status));
    }
    return 1;
}

/* The text for processes that this one starts.  Only the process that the user
   started says where its profile is, if it was asked by an option. */
static PyObject *
text_for_children(PyObject *text, const char *more, const struct file *file)
{
    const struct parent *parent = &file->parent;
    // A comma would end it.
    int can_name = file->cwd != Py_None && PyUnicode_FindChar(
        file->cwd, ',', 0, PyUnicode_GET_LENGTH(file->cwd), 1) < 0;
    PyObject *inode = PyLong_FromUnsignedLongLong(parent->inode);
    PyObject *empty = PyUnicode_FromString("");
    PyObject *result = inode == NULL || empty == NULL ? NULL
        : PyUnicode_FromFormat(
            "%U%s,parent=%ld:%d:%S:%U", text, more, parent->pid,
            parent->ledger, inode, can_name ? file->cwd : empty);
    Py_XDECREF(empty);
    Py_XDECREF(inode);
    return result;
}

/* subprocess passes -X sampleprof on as sys._xoptions has it. */
static int
pass_on(const struct _sampling_request *request, struct file *file)
{
    if (file->parent.pid != 0 && file->parent.pid != (long)getpid()) {
        return 0;               // from one that has inherited it itself
    }
    file->parent.pid = getpid();
    file->parent.ledger = -1;
    if (!request->quiet && request->children) {
        open_ledger(&file->parent);
    }
    const char *more = request->quiet ? "" : ",quiet=1";
    PyObject *xoptions = PySys_GetXOptions();
    PyObject *option = xoptions == NULL
        ? NULL : PyDict_GetItemString(xoptions, "sampleprof");
    PyObject *text;
    int err = -1;
    if (option != NULL) {
        PyObject *given = PyUnicode_Check(option)
            ? Py_NewRef(option) : PyUnicode_FromString("wall");
        text = given == NULL ? NULL : text_for_children(given, more, file);
        Py_XDECREF(given);
        if (text != NULL) {
            err = PyDict_SetItemString(xoptions, "sampleprof", text);
        }
    }
    else {
        const char *variable = "PYTHONSAMPLEPROF";
        const char *value = getenv(variable);
        PyObject *given = PyUnicode_DecodeFSDefault(value ? value : "wall");
        text = given == NULL ? NULL : text_for_children(given, "", file);
        Py_XDECREF(given);
        if (text != NULL) {
            err = tell_children(variable, text);
        }
    }
    Py_XDECREF(text);
    return err;
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
    PyStatus result = _PyStatus_OK();
    STATE->exit_quiet = request.quiet;
    STATE->exit_children = request.children;
    struct file file;
    int is_ours = describe_file(&file, &request) < 0
                  || pass_on(&request, &file) < 0 ? -1
        : request.is_per_process ? 1 : claim_file(file.out, file.cwd);
    if (is_ours < 0) {
        result = _PyStatus_NO_MEMORY();
    }
    else if (is_ours) {
        int is_refused = check_file(&file, &request)
            ? !start(tstate, &request, &file) : !request.is_inherited;
        if (is_refused) {
            result = PyStatus_Exit(2);
        }
    }
    PyMem_RawFree(request.text);
    Py_XDECREF(file.out);
    Py_XDECREF(file.format);
    Py_XDECREF(file.cwd);
    return result;
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
#endif
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
        write_at_end(tstate, profile, 0);
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
_PySampling_Finalize(PyThreadState *tstate)
{
    if (!_Py_IsMainInterpreter(tstate->interp)) {
        return;
    }
    _PySampling_WaitForWriter(tstate);
    _PySampling_SetWriter(tstate);
    end_session(tstate);
    _PySampling_EndSubscriptions(tstate);
    wait_for_helpers();
    // What daemon threads have begun meanwhile.  From here on none of them
    // comes to run.
    end_session(tstate);
    _PySampling_EndSubscriptions(tstate);
    _PySampling_EndingOver();
    Py_CLEAR(STATE->exit_write);
    _PySampling_SetWriter(NULL);
}
